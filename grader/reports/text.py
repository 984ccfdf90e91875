"""A verdict or a report as plain text: complete without color, for terminals and screen readers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from grader.course.spec import MistakeText
from grader.judging import wording
from grader.judging.verdict import Table, Verdict
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.reports.tables import by_content, caption, format_cells
from grader.util.names import IGNORED
from grader.util.words import join_names

WIDTH = 96
MANY_INPUTS = 30  # numbers of inputs from which on they stand behind the results, or are folded
MAX_PRINTED = 600  # characters of what a learner's code printed
MAX_TEXT = 20_000  # characters that one exercise may add to a report
Line = Callable[[Verdict, str, str], str]
# status -> (symbol, color of the rule and the symbol, style of the rule, word); mid tones that stand on white and on black
STATUS_STYLES = {
    "passed": ("✓", "#009E73", "solid", "passed"),
    "failed": ("✗", "#D55E00", "solid", "failed"),
    "error": ("!", "#B0559B", "solid", "error"),
    "timeout": ("!", "#B0559B", "dashed", "out of time"),
    "memory": ("!", "#B0559B", "dashed", "out of memory"),
    "forbidden": ("⊘", "#B8860B", "solid", "not allowed"),
    "not_started": ("○", "#8A8A8A", "dotted", "not started"),
    "missing": ("?", "#8A8A8A", "dotted", "missing"),
    "could_not_grade": ("?", "#8A8A8A", "dashed", "could not be graded"),
    "said": ("", "#8A8A8A", "solid", ""),  # of no exercise
}
STATUS_WORDS = {status: word for status, (*_, word) in STATUS_STYLES.items() if word}
# C0 and C1 controls without tab and newline, what reorders or hides text, what no encoding can carry.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    f"\ufffe\uffff\ud800-\udfff{IGNORED}\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_ESCAPE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)?", re.DOTALL)


def clean(value: object, limit: int = MAX_TEXT) -> str:
    """Text without control characters and terminal sequences, at most `limit` characters long."""
    text = str(value)[: 4 * limit]
    text = _CONTROL.sub("", _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    if len(text) > limit:
        note = " … (shortened)"
        text = text[: limit - len(note)] + note
    return text


def defuse(text: str) -> str:
    """Breaks what a CI service would take for a command in a log: `::error …::`, `##[…]`, `##vso[…]`, `##teamcity[…]`."""
    return re.sub(r"##(?=\w*\[)", "# #", re.sub(r"::(?=[A-Za-z])", ": :", text))


def one_line(text: object, limit: int = 300) -> str:
    return " ".join(clean(text, 4 * limit).split())[:limit]


_VERDICT_TEXTS: WeakKeyDictionary[Verdict, str] = WeakKeyDictionary()  # four formats of a class tell the same verdicts


def render_verdict(verdict: Verdict, notes: Sequence[str] = ()) -> str:
    """What failed; the likely mistake; the experiment; expected and got; where to look next."""
    if verdict not in _VERDICT_TEXTS:
        _VERDICT_TEXTS[verdict] = _render_verdict(verdict)
    return "\n".join([_VERDICT_TEXTS[verdict], *(_wrapped(f"Note: {note}") for note in notes)])


def _render_verdict(verdict: Verdict) -> str:
    title = f"{STATUS_WORDS[verdict.status].upper()}: {verdict.exercise}"
    blocks = [f"{title}\n{'-' * len(title)}"]
    if not verdict.passed:
        blocks.append(_wrapped(verdict.headline))
    if verdict.line:
        blocks.append(f"{wording.line_label(verdict.line)}:\n{textwrap.indent(clean(verdict.line.text), '    ')}")
    blocks += [_wrapped(sentence) for sentence in verdict.details]
    causes = [f"{id}: {sentence}" for id, sentence in zip(verdict.mistakes, verdict.sentences, strict=False)]
    several = len(verdict.mistakes) > 1
    heading = "Likely mistakes: each gives exactly this result" if several else "Likely mistake"
    blocks.append(_section(heading, [*filter(None, [verdict.slip]), *causes]))
    blocks.append(_section("Experiment", [*filter(None, [verdict.experiment])]))
    blocks += _tables(verdict.tables)
    blocks.append(_section("Warnings that your code raised", [f"- {sentence}" for sentence in verdict.warned]))
    printed = clean(verdict.printed, MAX_PRINTED).rstrip()
    if printed.strip():
        blocks.append(f"\nWhat it printed\n{textwrap.indent(printed, '    ')}")
    heading = "Verified" if verdict.passed else "What holds on ordinary inputs"
    blocks.append(_section(heading, [f"- {sentence}" for sentence in verdict.verified]))
    if verdict.verified and verdict.max_difference is not None:
        blocks.append(f"\n{difference(verdict.max_difference)}")
    if verdict.next_exercise:
        blocks.append(f"Next: {verdict.next_exercise}.")
    if verdict.next_step:
        blocks.append(_wrapped(verdict.next_step) if verdict.passed else _section("Where to look", [verdict.next_step]))
    return clean("\n".join(block for block in blocks if block), MAX_TEXT - 1_000).rstrip()


@by_content
def _tables(tables: Sequence[Table]) -> list[str]:
    inputs = [table for table in tables if table.role == "input"]
    others = [table for table in tables if table.role != "input"]
    input_blocks, compared = [*map(_table, inputs)], [*map(_table, others)]
    if others:
        compared.insert(0, "\nTwo runs" if others[0].role == "run" else "\nExpected and got")
        has_mark = any(table.mark for table in others) and max(table.cells.size for table in others) > 1
        compared += ["  * the largest difference shown"] * has_mark
    after = compared and sum(table.cells.size for table in inputs) > MANY_INPUTS  # a module's weights take pages
    return [*compared, "\nThe inputs", *input_blocks] if after else [*input_blocks, *compared]


def _wrapped(text: str, indent: str = "") -> str:
    """Wraps prose; lines that the text already has are kept."""
    lines = clean(text).splitlines() or [""]
    return "\n".join(
        textwrap.fill(
            line, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )
        for line in lines
    )


def _section(title: str, sentences: Sequence[str]) -> str:
    """'' where there are no sentences."""
    return "\n".join([f"\n{title}", *(_wrapped(sentence, "  ") for sentence in sentences)]) if sentences else ""


def difference(largest: float) -> str:
    """The sentence on the largest difference of a pass."""
    if largest == 0:
        return "The numbers equal the reference's exactly."
    return f"Largest difference from the reference: {largest:.1e} (relative where a number is above 1)."


def grid(table: Table) -> str:
    """The numbers of a table in aligned columns, '…' where more follow."""
    if table.cells.size == 0:
        return "(no entries)"
    cells = format_cells(table)
    if table.mark is not None and table.cells.size > 1:
        cells[table.mark[0]][table.mark[1]] += "*"
    columns = [_aligned(column) for column in zip(*cells, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    (top, left), (height, width), (total_rows, total_columns) = table.first, table.cells.shape, table.total
    for row in rows:
        row[:0] = ["…"] if left else []
        row += ["…"] if left + width < total_columns else []
    lines = ["  ".join(row).rstrip() for row in rows]
    return "\n".join([*(["…"] if top else []), *lines, *(["…"] if top + height < total_rows else [])])


def _table(table: Table) -> str:
    return f"\n  {clean(caption(table))}\n{textwrap.indent(grid(table), '    ')}"


def _aligned(column: Sequence[str]) -> list[str]:
    """One column of numbers, aligned at the decimal point."""
    parts = [re.match(r"([^.*]*)(.*)", text).groups() for text in column]  # type: ignore[union-attr]
    before, after = (max(len(part[side]) for part in parts) for side in (0, 1))
    return [f"{whole:>{before}}{rest:<{after}}" for whole, rest in parts]


def render(report: Report, line: Line = "{1}{2}".format) -> str:
    """Every submission with its lessons; below, in full, what did not pass though it was attempted.

    line: makes an exercise's line of its verdict, its result with its name, and what stands behind them.
    """
    submissions = (_submission(submission, line) for submission in report.submissions)
    return defuse("\n\n".join([*submissions, conditions(report)])) + "\n"


def conditions(report: Report) -> str:
    """Under which conditions was graded, as every report for a person says it."""
    others = ", others for each learner" if report.own_seeds else ""
    return f"Inputs drawn with seed {report.seed}{others}. Isolation while grading: {one_line(report.isolation)}."


def _submission(submission: SubmissionReport, line: Line) -> str:
    lines = [f"{one_line(submission.name)}: {points(submission)}"]
    if submission.message:
        lines.append(_wrapped(submission.message))
    for lesson in submission.lessons:
        lines += ["", f"{lesson.name}: {score_text(lesson.score)} of {lesson.max_score}"]
        wide = max((len(verdict.exercise) for verdict in lesson.verdicts), default=0)
        for verdict in lesson.verdicts:
            status, fraction = STATUS_WORDS[verdict.status], points_fraction(lesson, verdict)
            behind = f"{'':{wide - len(verdict.exercise)}}  {summary(verdict)}".rstrip()
            lines.append(line(verdict, f"  {status:<19}  {fraction:>5}  {verdict.exercise}", behind))
        lines += [_wrapped(f"Note: {note}", "  ") for note in notes(lesson)]
    for lesson in submission.lessons:
        lines += [f"\n{render_verdict(verdict)}" for verdict in lesson.verdicts if has_details(verdict)]
    return "\n".join(lines)


def score_text(score: float | None) -> str:
    """Points as they are shown: '?' where something could not be graded."""
    return "?" if score is None else str(score)


def points(submission: SubmissionReport) -> str:
    """'4 of 14 points'; of one that could not be graded, which exercises are at fault."""
    sentence = f"{score_text(submission.score)} of {submission.max_score} points"
    if submission.penalty:
        sentence += f" ({submission.unpenalized_score} before {submission.penalty} were taken off for being late)"
    if submission.ungraded:
        sentence += f", because {join_names(submission.ungraded)} could not be graded"
    return sentence


def points_fraction(lesson: LessonReport, verdict: Verdict) -> str:
    """'2/2', '0/2', or '?/2' for what could not be graded."""
    return f"{score_text(lesson.points_of(verdict))}/{lesson.points[verdict.exercise]}"


def mark_reason(lesson: LessonReport, verdict: Verdict) -> str:
    """A sentence where the points are not simply those of the verdict: a mark by hand, or a part; '' for none."""
    earned, most = lesson.points_of(verdict), lesson.points[verdict.exercise]
    mark = lesson.hand_marks.get(verdict.exercise)
    if mark is not None:
        if mark.points is None:
            return f"{verdict.exercise}: {mark.comment}".strip()
        sentence = f"marked by hand with {earned} of {most} points; automatically {score_text(lesson.automatic_points(verdict))}."
        return f"{verdict.exercise}: {sentence} {mark.comment}".strip()
    others, share = lesson.follow_through.get(verdict.exercise, ("", 0))
    reason = f"{verdict.exercise}: {earned} of {most} points, because"
    if others:
        return f"{reason} it passes with the course's {others} in place of the learner's, which is worth {100 * share:g} % of them."
    if not lesson.partial or verdict.passed or not earned:
        return ""
    return f"{reason} {verdict.cases[0]} of {verdict.cases[1]} cases agree."


def hand_marks(submission: SubmissionReport) -> list[str]:
    """What a person marked, a sentence each; comments alone are none."""
    return [
        mark_reason(lesson, verdict)
        for lesson in submission.lessons
        for verdict in lesson.verdicts
        if (mark := lesson.hand_marks.get(verdict.exercise)) and mark.points is not None
    ]


def notes(lesson: LessonReport) -> list[str]:
    """What stands below a lesson's table: of marks, then of the notebook."""
    return [*filter(None, (mark_reason(lesson, verdict) for verdict in lesson.verdicts)), *lesson.notes]


def summary(verdict: Verdict) -> str:
    """One line on a verdict: the mistakes where some are proven, else a beginner's slip, else what failed; '' for a pass."""
    if verdict.status in ("passed", "not_started"):
        return ""
    if verdict.mistakes:
        pairs = zip(verdict.mistakes, verdict.sentences, strict=False)
        return one_line(" ".join(f"{id}: {sentence}" for id, sentence in pairs))
    return one_line(verdict.slip or verdict.headline)


def has_details(verdict: Verdict) -> bool:
    """True where more can be said than one line holds."""
    return verdict.status not in ("passed", "not_started", "missing")


def passages(markdown: str) -> list[tuple[str, str]]:
    """Markdown prose taken apart: ('prose', paragraph) and ('code', lines), fenced or indented code alike."""
    blocks: list[tuple[str, str]] = []
    fenced = re.compile(r"^```\w*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
    for index, part in enumerate(fenced.split(clean(markdown) + "\n")):
        if index % 2:
            blocks.append(("code", part.rstrip()))
            continue
        for paragraph in re.split(r"\n[ ]*\n", part):
            if paragraph.lstrip("\n").startswith("    ") and paragraph.strip():
                blocks.append(("code", textwrap.dedent(paragraph).strip("\n")))
            elif paragraph.strip():
                blocks.append(("prose", paragraph.strip()))
    return blocks


def plain(markdown: str) -> str:
    """Markdown prose as wrapped text, its code indented."""
    parts = passages(markdown)
    return "\n\n".join(textwrap.indent(part, "    ") if kind == "code" else _wrapped(part) for kind, part in parts)


def explanation(mistake: MistakeText) -> str:
    """A mistake at length: the sentence, why, wrong code, right code, and where it was met in public."""
    blocks = [f"{mistake.id}: {mistake.sentence}"]
    blocks += [f"\n{plain(mistake.why)}"] if mistake.why else []
    for title, lines in (("Wrong", mistake.wrong), ("Right", mistake.right)):
        if lines:
            blocks.append(f"\n{title}\n{textwrap.indent(textwrap.dedent(lines).strip(chr(10)), '    ')}")
    if mistake.issue:
        blocks.append(f"\nMet in public: {mistake.issue}")
    return clean("\n".join(blocks))
