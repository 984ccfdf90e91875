"""What a cell shows while a check runs, and what it leaves out while a payoff runs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, TextIO

from grader.notebook.kernel_course import kernel_course
from grader.notebook.reach import code_files
from grader.notebook.showing import Shown, ipython
from grader.util.words import counted

PATIENCE_S = 1.0


@contextlib.contextmanager
def running_sign(call: str) -> Iterator[None]:
    """While the body takes longer than PATIENCE_S, a notebook shows that `call` is running; gone when it ends."""
    shell = ipython()
    if shell is None or not hasattr(shell, "kernel") or threading.current_thread() is not threading.main_thread():
        yield
        return
    sign = _RunningSign(call)
    timer = threading.Timer(PATIENCE_S, sign.show)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a browser's Python has no threads: then nothing is said
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        sign.clear()


class _RunningSign:
    """A line in the cell's output that can be taken away again."""

    def __init__(self, call: str) -> None:
        self._text = f"{call} is running; the stop button (the square) in the toolbar stops it."
        self._handle: Any = None
        self._ended = False
        self._lock = threading.Lock()

    def show(self) -> None:
        from IPython.display import DisplayHandle

        html = f'<p class="attn-running" style="opacity: .75; margin: 2px 0">{self._text}</p>'
        with self._lock:
            if not self._ended:
                self._handle = DisplayHandle()
                self._handle.display(Shown(self._text, html))

    def clear(self) -> None:
        with self._lock:
            self._ended = True
            if self._handle is not None:
                self._handle.update(Shown("", ""))


def mute_exercises(namespace: Mapping[str, Any]) -> None:
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
    sys.stdout = _Muted(sys.stdout, names)  # type: ignore[assignment]


def unmute() -> None:
    """The cell has run: says what was left out, if anything was."""
    muted = sys.stdout
    if not isinstance(muted, _Muted):
        return
    sys.stdout = muted.shown
    for name, lines in muted.lines.items():
        if lines:
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
