"""What a hint says: about the mistake that the last check proved, else the exercise's own."""

from __future__ import annotations

from grader.course import references
from grader.notebook import judged
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.showing import Shown, sentence
from grader.notebook.target import Target

HINTS = 3


def shown(wanted: Target, level: int, record: Record, more: tuple[str, ...] = ()) -> Shown:
    """A hint, which the record notes. more: what to do next."""
    record.hinted(wanted.name, level)
    text = told(wanted, level)
    is_code = level == HINTS and "```" not in text  # the third may be bare code, or prose with a fenced block
    return sentence(
        text, f"Hint {level} of {HINTS} for {wanted.name}", code=is_code, more=(*more, *record.take_notes())
    )


def following(name: str, record: Record) -> int:
    """The level of the hint that comes next."""
    return min(record.entry(name).hints + 1, HINTS)


def told(wanted: Target, level: int) -> str:
    """The text of a hint, Markdown; level: 1, 2 or 3."""
    mistake = _proven(wanted)
    if mistake and level < HINTS:
        found = kernel_course().mistake_text(mistake)
        lines = references.wrong_lines(kernel_course().exercise(wanted.name), mistake).strip("\n")
        if level == 1:
            return f"The check proved {mistake}: {found.sentence}\n\n{found.why}\n\nWhich of your lines does that?"
        if lines:
            return f"{mistake}: {found.sentence}\n\nWritten like this, it gives your result:\n\n```python\n{lines}\n```"
    return kernel_course().exercise(wanted.name).hints[level - 1].strip("\n")


def _proven(wanted: Target) -> str:
    """The mistake that the last check of this very code proved first; '' for none."""
    verdict = judged.last(wanted)
    return verdict.mistakes[0].partition("+")[0] if verdict is not None and verdict.mistakes else ""
