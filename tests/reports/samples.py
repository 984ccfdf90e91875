"""One verdict of every kind, as the judge makes it of real answers, and reports of them; `python -m tests.reports.samples` renews golden/.

Read the difference before committing renewed files: they are what learners and CI services see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from grader.course.spec import Case
from grader.grading.grade import Deadline
from grader.grading.lateness import CollectedWork
from grader.grading.scheme import MarkingScheme
from grader.judging.candidate import LiveObject
from grader.judging.evidence import Whole, make_tables
from grader.judging.judge import judge
from grader.judging.verdict import Line, Table, Verdict
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.sandbox.process import WorkerLost
from tests.conftest import MIXING, working_in
from tests.live import from_cells
from tests.mixing_course import COURSE, RIGHT

GOLDEN = Path(__file__).parent / "golden"
NAN, INF = float("nan"), float("inf")


def compared(name: str, want: np.ndarray, got: np.ndarray, **inputs: np.ndarray) -> tuple[Table, ...]:
    """The tables of a failing case as the judge makes them."""
    arrays = [Whole(title, array, "input") for title, array in inputs.items()]
    arrays += [Whole(name, want, "expected"), Whole(name, got, "actual")]
    if want.shape == got.shape:
        with np.errstate(invalid="ignore"):
            arrays.append(Whole(name, got.astype(np.float64) - want, "difference"))
    return make_tables(arrays)


def judged(exercise: str, *cells: str, cases: tuple[Case, ...] = ()) -> Verdict:
    """What the judge says of these cells, in no time. cases: in place of the exercise's own."""
    spec = COURSE.exercise(exercise)
    if cases:
        spec = replace(spec, cases=lambda rng: iter(cases))
    with working_in(MIXING):  # no test runs yet, and other files are still to be collected
        verdict = judge(spec, from_cells(exercise, *cells))
    return replace(verdict, seconds=0.0)


def ended(exercise: str, kind: str) -> Verdict:
    """What the judge says where a worker was lost in this way."""
    failure = WorkerLost(kind).failure(exercise, 10, 0)
    return replace(judge(COURSE.exercise(exercise), LiveObject(None, problem=failure)), seconds=0.0)


ERROR = judged("products", "def products(Q, K):\n    scores = Q @ K.reshape(3, 5)\n    return scores")
TWO = judged(  # of d² keys both are the same number
    "scaled",
    "def scaled(scores, d):\n    return scores / d",
    cases=tuple(
        Case(f"of {d}", f"{d**2} keys, d = {d}", (np.arange(d**2 * 2.0).reshape(2, -1), d), names=("scores", "d"))
        for d in (3, 2, 4)
    ),
)
PROVEN = judged(
    "shares",
    """def shares(scores):
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)""",
)
UNPROVEN = judged(
    "blend",
    """def blend(weights, V):
    result = weights @ V
    result[17, 10] = np.nan
    return result""",
    cases=(Case("twenty", "twenty queries", (np.arange(60.0).reshape(20, 3) / 10, np.arange(36.0).reshape(3, 12))),),
)
FIRST_FIVE = COURSE.exercises["01_mixing"][:5]
PASSED = replace(judged("mix", *(RIGHT[name] for name in FIRST_FIVE)), max_difference=2.2e-16, seconds=0.0123)
FORBIDDEN = judged(
    "log_shares",
    "def log_shares(scores):\n    from scipy import special\n    return special.log_softmax(scores, axis=-1)",
)
NOT_STARTED = judged("surprise", "def surprise(scores, target):\n    raise NotImplementedError")
PAIR = judged(
    "mix",
    *(RIGHT[name] for name in FIRST_FIVE[:4]),
    "def mix(Q, K, V):\n    weights = shares(products(Q, K))\n    return blend(weights, K), weights",
    cases=tuple(
        Case(
            f"of {n}",
            f"{n} keys",
            (np.eye(2, 4), np.arange(4.0 * n).reshape(n, 4) % 5 - 2, np.arange(4.0 * n).reshape(n, 4)),
        )
        for n in (3, 4, 5)
    ),
)
HOSTILE = Verdict(
    "mix_torch",
    "failed",
    "::error file=a::b <script>alert(1)</script> | @all #1 [a](http://x) \x1b[31mred\x07 ##[group]",
    "values",
    "</pre>\u202eevil",
    line=Line("```\n::warning::x\n</details>\x00"),
    next_step="]]> &amp; \ud800",
)
OURS = Deadline(60, clock=iter((0.0, 61.0)).__next__).verdict("Mixer")
SLOW = ended("twice", "timeout")
GONE = judged("first_output", "")
VERDICTS = {
    "proven": PROVEN,
    "unproven": UNPROVEN,
    "error": ERROR,
    "not_started": NOT_STARTED,
    "passed": PASSED,
    "forbidden": FORBIDDEN,
    "two": TWO,
    "pair": PAIR,
}


def lesson(name: str, *verdicts: Verdict, notes: tuple[str, ...] = ()) -> LessonReport:
    return LessonReport(name, verdicts, {judged.exercise: 2 for judged in verdicts}, notes)


REPORT = Report(
    (
        SubmissionReport(
            "ada",
            "submissions/ada",
            (
                lesson("01_mixing", ERROR, TWO, PROVEN, UNPROVEN, PASSED, notes=("Something to know of `shares`.",)),
                lesson("02_logs", FORBIDDEN, NOT_STARTED),
            ),
        ),
        SubmissionReport(
            "bob|<b>",
            "submissions/bob",
            (lesson("01_mixing", PAIR, GONE), lesson("03_torch", HOSTILE, OURS, SLOW)),
            "What to repair in 03_torch.ipynb.",
        ),
    ),
    seed=7,
    course=COURSE.title,
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
                    "01_mixing",
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
                        for judged in (ERROR, TWO, PROVEN, UNPROVEN, PASSED)
                    ),
                ),
            ),
            attention=("<b>.ipynb.txt has an odd name.", "=1+1|2 has an odd one, too."),
            late=CollectedWork({"01_mixing.ipynb": (True, "")}).late(MarkingScheme(), (), 0)[0],
        ),
        SubmissionReport(
            "grace@example.org",
            "submissions/grace@example.org",
            (
                lesson(
                    "01_mixing",
                    replace(PASSED, exercise="products"),
                    TWO,
                    PROVEN,
                    replace(PASSED, exercise="blend"),
                    PASSED,
                ),
                lesson("02_logs", *(replace(PASSED, exercise=name) for name in ("log_shares", "surprise"))),
            ),
        ),
    ),
    seed=7,
    isolation="full",
    course=COURSE.title,
    not_graded=(("eve.ipynb.txt", "Why it was not graded."),),
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
    files |= {f"{name}.html": html.render_verdict(VERDICTS[name]) + "\n" for name in ("proven", "pair")}
    files |= {"report.json": report_json.render(REPORT)}
    files |= {"report.xml": junit.render(REPORT), "report.md": markdown.render(COURSE, REPORT)}
    files |= {
        "class.html": class_page.render(COURSE, CLASS),
        "class.md": markdown.render(COURSE, CLASS),
        "grades.csv": grades_csv.render(CLASS),
    }
    files |= {"attention.csv": attention.render(COURSE, CLASS)}
    files |= {"canvas.csv": canvas.render(CLASS, Gradebook(100)), "moodle.csv": moodle.render(CLASS, Gradebook(100))}
    files |= {"learner.xml": junit.render(replace(CLASS, submissions=CLASS.submissions[:1]), "ada")}
    files |= {"results.json": gradescope.render(replace(CLASS, submissions=CLASS.submissions[:1]), 100)}
    files |= {"feedback.html": feedback.page(CLASS.submissions[0], "ada", CLASS.course)}
    return files | {"report.txt": terminal.render(REPORT, coloured=False) + "\n"}


if __name__ == "__main__":
    for file, content in golden().items():
        (GOLDEN / file).write_text(content, encoding="utf-8", newline="\n")
