"""report.html: a class on one page that stands alone, needs no script, and reads without color and by ear.

From what concerns the room to what concerns one learner: figures, scores, mistakes, exercises, the table, each learner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from grader.course.course import Course
from grader.judging.verdict import Verdict
from grader.reports import attention, feedback, text
from grader.reports.class_summary import ATTEMPTED, ClassSummary, explain, remarks
from grader.reports.html import STATUS_STYLES, Pictures, render as rendered
from grader.reports.items import FEWEST, items, remark
from grader.reports.report import Report
from grader.submission.roster import Roster

BINS = 10  # of the scores' distribution
MOST = 8  # mistakes told at once, the rest folded
MOST_OPEN = 30  # learners told in whole; of more each is folded to a line, and the code stands on their own pages
# One sign a status, no two alike, each drawn by common fonts: meaning never stands in a color alone.
SIGNS = {status: STATUS_STYLES[status][0] for status in text.STATUS_WORDS}
SIGNS |= {"timeout": "T", "memory": "M", "not_started": "·", "missing": "–"}


def render(course: Course, report: Report, roster: Roster | None = None, similarity: bool = False) -> str:
    """The page of the class; of one submission alone, what is said of it.

    roster: whose names stand beside the folders'. similarity: whether similarity.html is beside the page.
    """
    summary = ClassSummary(report, roster)
    if len(report.submissions) == 1:
        return feedback.page(report.submissions[0], summary.labels[0], report.course, report=report)
    pictures = Pictures()
    parts = [
        ("attention", attention.TITLE, attention.section(course, summary)),
        ("scores", "Scores", distribution(summary)),
        ("mistakes", "What the class got wrong", mistakes(course, summary) + others(summary)),
        ("exercises", "Exercises, hardest first", exercises(summary)),
        ("table", "Learners × exercises", matrix(summary)),
        ("learners", "Each learner", _learners(summary, pictures)),
    ]
    context = {
        "title": f"{report.course[:1].upper()}{report.course[1:]}: report of the class",
        "parts": [part for part in parts if part[2]],
        "remarks": remarks(summary),
        "figures": _figures(summary),
        "definitions": pictures.definitions(),
        "similarity": similarity,
    }
    return rendered("class.html", report=report, **context) + "\n"


def _figures(summary: ClassSummary) -> list[tuple[str, str]]:
    full = sum(0 < submission.max_score == submission.score for submission in summary.report.submissions)
    return [
        ("learners", f"{len(summary.report.submissions)}"),
        ("mean", percent(summary.mean)),
        ("median", percent(summary.median)),
        ("everything passed", f"{full}"),
        ("exercises", f"{len(summary.columns)}"),
    ]


def distribution(summary: ClassSummary) -> str:
    """Learners who have a score by tenths of what they could reach, as a picture and in words; 100 % is in the last: '90–100'."""
    counts = Counter(min(int(share * BINS + 1e-9), BINS - 1) for share in summary.shares)
    bins = [(f"{bin * 100 // BINS}–{(bin + 1) * 100 // BINS - (bin < BINS - 1)}", counts[bin]) for bin in range(BINS)]
    return rendered("scores.html", bins=bins, median=summary.median, ungraded=len(summary.ungraded))


def percent(share: float | None) -> str:
    """0.514 as '51 %'; None, a share of nothing, as '–'."""
    return "–" if share is None else f"{round(100 * share)} %"


def mistakes(course: Course, summary: ClassSummary) -> str:
    """Each mistake: how many made it, the sentence, why, and who."""
    pairs = [(mistake, explain(course, mistake)) for mistake in summary.mistakes]
    return rendered("mistakes.html", summary=summary, mistakes=pairs, most=MOST)


def others(summary: ClassSummary) -> str:
    """Who needs something that no mistake names; what needs a look before grades are imported stands above."""

    def find(holds: Callable[[Verdict], bool]) -> list[int]:
        return [learner for learner, verdicts in enumerate(summary.verdicts) if any(map(holds, verdicts.values()))]

    attempted = find(lambda verdict: verdict.status in (*ATTEMPTED, "could_not_grade"))
    present = find(lambda verdict: verdict.status != "missing")
    groups = {
        "a note on their submission: a lesson is missing, or something could not be read": [
            learner for learner, submission in enumerate(summary.report.submissions) if submission.message
        ],
        "nothing of these lessons that could be read": [
            learner for learner in range(len(summary.labels)) if learner not in present
        ],
        "nothing attempted": [learner for learner in present if learner not in attempted],
        "used what an exercise does not allow": find(lambda verdict: verdict.status == "forbidden"),
        "code that does not end, or takes too much memory": find(
            lambda verdict: verdict.status in ("timeout", "memory")
        ),
        "a slip that their own report names, such as a missing return": find(
            lambda verdict: bool(verdict.slip) and not verdict.mistakes
        ),
        "a wrong result that no known mistake explains": find(
            lambda verdict: verdict.status == "failed" and not verdict.mistakes and not verdict.slip
        ),
    }
    return rendered("others.html", summary=summary, groups=[(title, group) for title, group in groups.items() if group])


def exercises(summary: ClassSummary) -> str:
    """The exercises, those that fewest passed first, with what each tells of the class."""
    return rendered("exercises.html", items=items(summary), remark=remark(summary), tells=len(summary.shares) >= FEWEST)


def matrix(summary: ClassSummary) -> str:
    """Learners × exercises: the legend and the table; it scrolls in its own box, names and headings stay."""
    if not summary.columns:
        return "<p>No exercise was graded.</p>"
    lessons = Counter(column.lesson for column in summary.columns)
    width = sum(max(len(name), 4 * count) for name, count in lessons.items())
    links = [f"#learner-{learner}-code-" for learner in range(len(summary.labels))]
    if len(summary.labels) > MOST_OPEN:
        links = [f"feedback/{stem}.html#code-" for stem in summary.stems]
    return rendered(
        "matrix.html",
        signs=SIGNS,
        statuses={verdict.status for verdicts in summary.verdicts for verdict in verdicts.values()},
        few=width <= 90,  # characters: every lesson's whole name fits above its columns
        lessons=list(lessons.items()),
        links=links,  # for each learner where it stands, without the exercise's name
        summary=summary,
        by_hand=any(lesson.hand_marks for submission in summary.report.submissions for lesson in submission.lessons),
    )


def _learners(summary: ClassSummary, pictures: Pictures) -> str:
    many = len(summary.labels) > MOST_OPEN
    return "".join(
        feedback.section(
            submission,
            summary.labels[learner],
            pictures.draw,
            level=3,
            id=f"learner-{learner}",
            person=summary.people[learner],
            folded=many,
            code_at=f"feedback/{summary.stems[learner]}.html" if many else "",
        )
        for learner, submission in enumerate(summary.report.submissions)
    )
