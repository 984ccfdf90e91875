"""What a learner's code still prints while a payoff runs is left out, and one line says so."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, TextIO

from grader.notebook.kernel_course import kernel_course
from grader.notebook.live import code_files
from grader.notebook.showing import ipython
from grader.util.words import counted


def begin(namespace: Mapping[str, Any]) -> None:
    """From now to the end of the cell, nothing is shown of what exercises print. In a script everything is shown."""
    shell = ipython()
    if shell is None or isinstance(sys.stdout, _Muted) or not getattr(shell, "attention_course", False):
        return
    names = {
        file: name
        for name in kernel_course().exercise_names()
        if name in namespace
        for file in code_files(namespace[name])
    }
    sys.stdout = _Muted(sys.stdout, names)


def end() -> None:
    """The cell has run: says what was left out, if anything was."""
    muted = sys.stdout
    if not isinstance(muted, _Muted):
        return
    sys.stdout = muted.shown
    for name, lines in muted.lines.items():
        if not lines:
            continue
        was = "was" if lines == 1 else "were"
        print(f"{counted(lines, 'line')} that {name} prints {was} left out here: a print() is still in it.")


class _Muted:
    """Standard output without what is written while an exercise's code runs.

    shown: where all else goes. names: the file, or cell, of an exercise's code -> the exercise.
    """

    def __init__(self, shown: TextIO, names: Mapping[str, str]) -> None:
        self.shown, self.lines = shown, dict.fromkeys(names.values(), 0)
        self._names = names

    def write(self, text: str) -> int:
        name = self._writer(sys._getframe(1))
        if name is None:
            return self.shown.write(text)
        self.lines[name] += text.count("\n")
        return len(text)

    def _writer(self, frame: FrameType | None) -> str | None:
        """The exercise that is running; a cell's own print is nobody's."""
        while frame is not None:
            code = frame.f_code
            if code.co_filename in self._names and code.co_name != "<module>":
                return self._names[code.co_filename]
            frame = frame.f_back
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shown, name)
