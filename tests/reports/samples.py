"""One verdict of every kind, as the judge makes it of real answers, and reports of them; `python -m tests.reports.samples` renews golden/.

Read the difference before committing renewed files: they are what learners and CI services see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import Case
from grader.grading.grade import Deadline
from grader.grading.lateness import CollectedWork
from grader.grading.scheme import MarkingScheme
from grader.judging.judge import judge
from grader.judging.verdict import LessonReport, Line, Report, SubmissionReport, Table, Verdict
from grader.worker.values import Failure
from tests.live import Live, from_cells

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


def judged(exercise: str, *cells: str, cases: tuple[Case, ...] = ()) -> Verdict:
    """What the judge says of these cells, in no time. cases: in place of the exercise's own."""
    spec = open_course().exercise(exercise)
    if cases:
        spec = replace(spec, cases=lambda rng: iter(cases))
    return replace(judge(spec, from_cells(exercise, *cells)), seconds=0.0)


def ended(exercise: str, kind: str) -> Verdict:
    """What the judge says where a worker sent this failure in place of an object."""
    failure = Failure(kind, exercise, f"{exercise} did not finish within 10 s.")
    return replace(judge(open_course().exercise(exercise), Live(exercise, None, problem=failure)), seconds=0.0)


PROVEN = judged(
    "softmax_rows",
    """def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)""",
)
UNPROVEN = judged(
    "weighted_sum",
    """def weighted_sum(weights, V):
    result = weights @ V
    result[17, 10] = np.nan
    return result""",
    cases=(Case("twenty", "twenty queries", (np.arange(60.0).reshape(20, 3) / 10, np.arange(36.0).reshape(3, 12))),),
)
ERROR = judged("attention_scores", "def attention_scores(Q, K):\n    scores = Q @ K.reshape(3, 5)\n    return scores")
NOT_STARTED = judged("scale_scores", "def scale_scores(scores, d_k):\n    raise NotImplementedError")
FIRST_FIVE = ("attention_scores", "scale_scores", "softmax_rows", "weighted_sum", "three_token_attention")
PASSED = replace(
    judged("three_token_attention", *(references.solution_text(open_course(), name) for name in FIRST_FIVE)),
    max_difference=2.2e-16,
    seconds=0.0123,
)
FORBIDDEN = judged(
    "attention_torch", "def attention_torch(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
)
TWO = judged("project_qkv", "def project_qkv(x, w_q, w_k, w_v):\n    return x @ w_k, x @ w_q, x @ w_v")
TWO = replace(  # and a pair that fits alike
    TWO,
    mistakes=(*TWO.mistakes, "SD1+SM1"),
    sentences=(*TWO.sentences, " Also: ".join(open_course().mistake_text(id).sentence for id in ("SD1", "SM1"))),
)
HOSTILE = Verdict(
    "softmax",
    "failed",
    "::error file=a::b <script>alert(1)</script> | @all #1 [a](http://x) \x1b[31mred\x07 ##[group]",
    "values",
    "</pre>\u202eevil",
    line=Line("```\n::warning::x\n</details>\x00"),
    next_step="]]> &amp; \ud800",
)
OURS = Deadline(60, clock=iter((0.0, 61.0)).__next__).verdict("log_softmax")
SLOW = ended("softmax_jacobian", "timeout")
GONE = judged("softmax_with_temperature", "")
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
                    notes=("Something to know of `softmax_rows`.",),
                ),
                lesson("05_numpy_to_pytorch", FORBIDDEN, TWO),
            ),
        ),
        SubmissionReport(
            "bob|<b>",
            "submissions/bob",
            (lesson("02_softmax", HOSTILE, OURS, SLOW, GONE),),
            "What to repair in 02_softmax.ipynb.",
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
            late=CollectedWork({"01_three_tokens.ipynb": (True, "")}).late(MarkingScheme(), (), 0)[0],
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
        class_page,
        feedback,
        grades_csv,
        gradescope,
        html,
        junit,
        markdown,
        moodle,
        report_json,
        terminal,
        text,
    )
    from grader.reports.gradebook import Gradebook

    files = {f"{name}.txt": text.render_verdict(judged) + "\n" for name, judged in VERDICTS.items()}
    files |= {"proven.html": html.render_verdict(PROVEN) + "\n", "report.json": report_json.render(REPORT)}
    files |= {"report.xml": junit.render(REPORT), "report.md": markdown.render(open_course(), REPORT)}
    files |= {
        "class.html": class_page.render(open_course(), CLASS),
        "class.md": markdown.render(open_course(), CLASS),
        "grades.csv": grades_csv.render(CLASS),
    }
    files |= {"attention.csv": attention.render(open_course(), CLASS)}
    files |= {"canvas.csv": canvas.render(CLASS, Gradebook(100)), "moodle.csv": moodle.render(CLASS, Gradebook(100))}
    files |= {"learner.xml": junit.render(replace(CLASS, submissions=CLASS.submissions[:1]), "ada")}
    files |= {"results.json": gradescope.render(replace(CLASS, submissions=CLASS.submissions[:1]), 100)}
    files |= {"feedback.html": feedback.page(CLASS.submissions[0], "ada", CLASS.course)}
    return files | {"report.txt": terminal.render(REPORT, coloured=False) + "\n"}


if __name__ == "__main__":
    for file, content in golden().items():
        (GOLDEN / file).write_text(content, encoding="utf-8", newline="\n")
