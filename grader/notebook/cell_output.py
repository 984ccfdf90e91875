"""What a cell shows while a check runs, and what it leaves out while a payoff runs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, TextIO

from grader.notebook.display import Display, ipython
from grader.notebook.kernel_course import kernel_course
from grader.notebook.reach import code_files
from grader.util.words import pluralize

PATIENCE_S = 1.0


@contextlib.contextmanager
def running_sign(call: str) -> Iterator[None]:
    """While the body takes longer than PATIENCE_S, a notebook shows that `call` is running; gone when it ends."""
    if not hasattr(ipython(), "kernel") or threading.current_thread() is not threading.main_thread():
        yield
        return
    from IPython.display import DisplayHandle

    text = f"{call} is running; the stop button (the square) in the toolbar stops it."
    sign = Display(text, f'<p class="attn-running" style="opacity: .75; margin: 2px 0">{text}</p>')
    handle, visible = DisplayHandle(), threading.Event()

    def show() -> None:
        handle.display(sign)
        visible.set()

    timer = threading.Timer(PATIENCE_S, show)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a browser's Python has no threads: then nothing is said
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()  # it may be showing the sign
        if visible.is_set():
            handle.update(Display("", ""))


def mute_exercises(namespace: Mapping[str, Any]) -> None:
    """From now to the end of the cell, nothing is shown of what exercises print. In a script everything is shown."""
    if isinstance(sys.stdout, _Muted) or not getattr(ipython(), "attention_course", False):
        return
    exercises = [name for name in kernel_course().exercise_names() if name in namespace]
    names = {file: name for name in exercises for file in code_files(namespace[name])}
    sys.stdout = _Muted(sys.stdout, names)  # type: ignore[assignment]


def unmute() -> None:
    """The cell has run: says what was left out, if anything was."""
    muted = sys.stdout
    if isinstance(muted, _Muted):
        sys.stdout = muted.stream
        for name, lines in muted.lines.items():
            print(f"Left out here: {pluralize(lines, 'line')} that {name} prints; a print() is still in it.")


class _Muted:
    """Standard output without what is written while an exercise's code runs.

    stream: where all else goes. names: the file, or cell, of an exercise's code -> the exercise.
    """

    def __init__(self, stream: TextIO, names: Mapping[str, str]) -> None:
        self.stream, self._names = stream, names
        self.lines: Counter[str] = Counter()

    def write(self, text: str) -> int:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_filename in self._names and code.co_name != "<module>":  # a cell's own print is nobody's
                self.lines[self._names[code.co_filename]] += text.count("\n")
                return len(text)
            frame = frame.f_back
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
