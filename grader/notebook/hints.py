"""What a hint says: about the mistake that the last check proved, else the exercise's own."""

from __future__ import annotations

from grader.course import references, registry
from grader.notebook import judged
from grader.notebook.target import Target


def told(wanted: Target, level: int) -> str:
    """The text of a hint, Markdown; level: 1, 2 or 3."""
    mistake = _proven(wanted)
    if mistake and level < 3:
        found, lines = registry.mistake_text(mistake), references.wrong_lines(wanted.name, mistake).strip("\n")
        if level == 1:
            return f"The check proved {mistake}: {found.sentence}\n\n{found.why}\n\nWhich of your lines does that?"
        if lines:
            return f"{mistake}: {found.sentence}\n\nWritten like this, it gives your result:\n\n```python\n{lines}\n```"
    return registry.exercise(wanted.name).hints[level - 1].strip("\n")


def _proven(wanted: Target) -> str:
    """The mistake that the last check of this very code proved first; '' for none."""
    verdict = judged.last(wanted)
    return verdict.mistakes[0].partition("+")[0] if verdict is not None and verdict.mistakes else ""
