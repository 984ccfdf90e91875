"""Says that a check is running where it takes more than a second."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from grader.notebook.showing import Shown, ipython

PATIENCE_S = 1.0


@contextlib.contextmanager
def waiting(call: str) -> Iterator[None]:
    """While the body takes longer than PATIENCE_S, a notebook shows that `call` is running; gone when it ends."""
    shell = ipython()
    if shell is None or not hasattr(shell, "kernel") or threading.current_thread() is not threading.main_thread():
        yield
        return
    sign = _Sign(call, shell)
    timer = threading.Timer(PATIENCE_S, sign.show)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a browser's Python has no threads: then nothing is said
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        sign.clear()


class _Sign:
    """A line in the cell's output that can be taken away again."""

    def __init__(self, call: str, shell: Any) -> None:
        self._call, self._shell, self._handle, self._done = call, shell, None, False
        self._lock = threading.Lock()

    def show(self) -> None:
        from IPython.display import DisplayHandle

        with self._lock:
            if not self._done:
                said = f"{self._call} is running; the stop button (the square) in the toolbar stops it."
                self._handle = DisplayHandle()
                self._handle.display(
                    Shown(said, f'<p class="attn-running" style="opacity: .75; margin: 2px 0">{said}</p>')
                )

    def clear(self) -> None:
        with self._lock:
            self._done = True
            if self._handle is not None:
                self._handle.update(Shown("", ""))
