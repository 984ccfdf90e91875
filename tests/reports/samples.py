"""One verdict of every kind and a report of two submissions; `python -m tests.reports.samples` renews golden/.

Read the difference before committing renewed files: they are what learners and CI services see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from grader.judging.verdict import LessonReport, Line, Report, SubmissionReport, Table, Verdict

GOLDEN = Path(__file__).parent / "golden"
NAN, INF = float("nan"), float("inf")


def compared(name: str, want: np.ndarray, got: np.ndarray, **inputs: np.ndarray) -> tuple[Table, ...]:
    """The tables of a failing case as the judge makes them."""
    tables = [Table(title, array, "input") for title, array in inputs.items()]
    tables += [Table(name, want, "expected", want.dtype.name), Table(name, got, "actual", got.dtype.name)]
    if want.shape == got.shape:
        with np.errstate(invalid="ignore"):
            tables.append(Table(name, got.astype(np.float64) - want, "difference"))
    return tuple(tables)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


SCORES = np.array([[0.0, 1.0, 3.0], [2.0, 2.0, 0.0]])
PROVEN = Verdict(
    "softmax_rows",
    "failed",
    "Expected: each row of weights sums to 1. Row 0 sums to 1.341.",
    "properties",
    "Two queries, three keys: softmax_rows(scores (2, 3) float64)",
    tables=compared("", softmax(SCORES, 1), softmax(SCORES, 0), scores=SCORES),
    mistakes=("SM1",),
    sentences=("Softmax ran over the queries; each query needs its own distribution over the keys.",),
    verified=("type, shape and dtype are as expected",),
    look='explain("SM1") says more; hint(softmax_rows) asks which of your lines does it.',
)
_LARGE = np.arange(240.0).reshape(20, 12) / 10
_OFF = np.where(np.arange(240).reshape(20, 12) == 12 * 17 + 10, NAN, _LARGE)
UNPROVEN = Verdict(
    "weighted_sum",
    "failed",
    "1 of 240 entries of the result is NaN.",
    "finite",
    "Twenty queries: weighted_sum(weights (20, 3) float64, V (3, 12) float64)",
    tables=compared("", _LARGE, _OFF),
    look="hint(weighted_sum) gives you a question to think about.",
)
ERROR = Verdict(
    "attention_scores",
    "error",
    "attention_scores raised ValueError: shapes (2,4) and (3,4) not aligned",
    "runs",
    "Two queries, three keys: attention_scores(Q (2, 4) float64, K (3, 4) float64)",
    ("Shapes on that line: Q (2, 4) float64, K (3, 4) float64.", "Expected shape of the result: (2, 3)."),
    line=Line("scores = Q @ K", 3),
    tables=(Table("Q", np.arange(8.0).reshape(2, 4), "input"), Table("K", np.eye(3, 4), "input")),
    look="hint(attention_scores) gives you a question to think about.",
)
NOT_STARTED = Verdict(
    "scale_scores",
    "not_started",
    "scale_scores is not started: it still raises NotImplementedError.",
    "attempted",
    look='hint("scale_scores") gives you a question to start from.',
)
PASSED = Verdict(
    "three_token_attention",
    "passed",
    "three_token_attention passed.",
    verified=(
        "type, shape and dtype are as expected",
        "each row of weights sums to 1",
        "the inputs are left as they are",
    ),
    max_difference=2.2e-16,
    following="corrected_first_row",
    seconds=0.0123,
)
FORBIDDEN = Verdict(
    "attention_torch",
    "forbidden",
    "`F.scaled_dot_product_attention` is a ready-made attention operator; this exercise is written from scratch.",
    "allowed",
    line=Line("return F.scaled_dot_product_attention(q, k, v)"),
    look='hint("attention_torch") helps you to write it yourself.',
)
TWO = Verdict(
    "project_qkv",
    "failed",
    "`q` differs from what was expected by up to 1 at (0, 1, 0).",
    "values",
    "A batch of two",
    tables=compared("q", np.zeros((2, 3, 2)), np.eye(3, 2) * np.array([[[0.0]], [[1.0]]])),
    mistakes=("PJ1", "SD1+SM1"),
    sentences=("`nn.Linear` computes x @ weightᵀ: copy wᵀ.", "First. Also: Second."),
    look='explain("PJ1") tells more.',
)
HOSTILE = Verdict(
    "softmax",
    "failed",
    "::error file=a::b <script>alert(1)</script> | @all #1 [a](http://x) \x1b[31mred\x07 ##[group]",
    "values",
    "</pre>\u202eevil",
    line=Line("```\n::warning::x\n</details>\x00"),
    look="]]> &amp; \ud800",
)
OURS = Verdict("log_softmax", "could_not_grade", "The check itself failed.", details=("OSError: no space",))
SLOW = Verdict("softmax_jacobian", "timeout", "softmax_jacobian did not finish in the time an exercise has.", "runs")
GONE = Verdict("softmax_with_temperature", "missing", "No cell defines softmax_with_temperature.", "attempted")
VERDICTS = {
    "proven": PROVEN,
    "unproven": UNPROVEN,
    "error": ERROR,
    "not_started": NOT_STARTED,
    "passed": PASSED,
    "forbidden": FORBIDDEN,
    "two": TWO,
}


def lesson(name: str, *verdicts: Verdict, notes: tuple[str, ...] = ()) -> LessonReport:
    return LessonReport(name, verdicts, {judged.exercise: 2 for judged in verdicts}, notes)


REPORT = Report(
    (
        SubmissionReport(
            "ada",
            "submissions/ada",
            (
                lesson(
                    "01_three_tokens",
                    ERROR,
                    NOT_STARTED,
                    PROVEN,
                    UNPROVEN,
                    PASSED,
                    notes=("Two cells define softmax_rows; the last one counts.",),
                ),
                lesson("05_numpy_to_pytorch", FORBIDDEN, TWO),
            ),
        ),
        SubmissionReport(
            "bob|<b>",
            "submissions/bob",
            (lesson("02_softmax", HOSTILE, OURS, SLOW, GONE),),
            "02_softmax.ipynb is not JSON: mend line 3.",
        ),
    ),
    seed=7,
)

# A class: who passed, who failed alike, who has not begun, who was not asked for everything, and a formula for a name.
CLASS = Report(
    (
        REPORT.submissions[0],
        SubmissionReport(
            "=cmd|' /C calc'!A0",
            "submissions/=cmd",
            (
                lesson(
                    "01_three_tokens",
                    *(
                        replace(
                            judged,
                            status="not_started",
                            headline="",
                            tables=(),
                            details=(),
                            mistakes=(),
                            sentences=(),
                            verified=(),
                            experiment="",
                        )
                        for judged in (ERROR, NOT_STARTED, PROVEN, UNPROVEN, PASSED)
                    ),
                ),
            ),
            attention=(
                "<b>.ipynb.txt does not end in .ipynb; it was not read. Rename it to <b>.ipynb.",
                "=1+1|2 is a link.",
            ),
            late="Handed in late, as the platform says: 01_three_tokens.ipynb.",
        ),
        SubmissionReport(
            "grace@example.org",
            "submissions/grace@example.org",
            (
                lesson(
                    "01_three_tokens",
                    replace(PASSED, exercise="attention_scores"),
                    replace(PASSED, exercise="scale_scores"),
                    PROVEN,
                    replace(PASSED, exercise="weighted_sum"),
                    PASSED,
                ),
                lesson("05_numpy_to_pytorch", replace(PASSED, exercise="attention_torch"), TWO),
            ),
        ),
    ),
    seed=7,
    isolation="full",
    not_graded=(("eve.ipynb.txt", "Not graded, because it is neither a learner's folder nor a notebook."),),
)


def golden() -> dict[str, str]:
    """Every golden file's name and what it should hold."""
    from grader.reports import (
        attention,
        canvas,
        csv,
        feedback,
        gradescope,
        html,
        json,
        junit,
        markdown,
        moodle,
        page,
        terminal,
        text,
    )
    from grader.reports.books import Books

    files = {f"{name}.txt": text.verdict(judged) + "\n" for name, judged in VERDICTS.items()}
    files |= {"proven.html": html.verdict(PROVEN) + "\n", "report.json": json.render(REPORT)}
    files |= {"report.xml": junit.render(REPORT), "report.md": markdown.render(REPORT)}
    files |= {"class.html": page.render(CLASS), "class.md": markdown.render(CLASS), "grades.csv": csv.render(CLASS)}
    files |= {"attention.csv": attention.render(CLASS)}
    files |= {"canvas.csv": canvas.render(CLASS, Books(100)), "moodle.csv": moodle.render(CLASS, Books(100))}
    files |= {"learner.xml": junit.render(replace(CLASS, submissions=CLASS.submissions[:1]), "ada")}
    files |= {"results.json": gradescope.render(replace(CLASS, submissions=CLASS.submissions[:1]), 100)}
    files |= {"feedback.html": feedback.page(CLASS.submissions[0], "ada", CLASS.course)}
    return files | {"report.txt": terminal.render(REPORT, rich=False) + "\n"}


if __name__ == "__main__":
    for file, content in golden().items():
        (GOLDEN / file).write_text(content, encoding="utf-8", newline="\n")
