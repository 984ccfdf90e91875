"""How a batch shows itself on standard error: a bar with rate and time left in a terminal, else a line a result."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn

from grader.judging.verdict import SubmissionReport
from grader.reports import text


class Progress:
    """A context manager. total: submissions to grade now; done: those that the journal already has."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.done, self.now = total, done, 0
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self.done:
            print(
                f"{self.done} results are already in the journal; {self.total} to grade.", file=sys.stderr, flush=True
            )
        if sys.stderr.isatty() and self.total:
            self._bar, self._task = _bar(self.total)
            self._bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, report: SubmissionReport) -> None:
        """One more submission is graded."""
        self.now += 1
        said = f"{text.defuse(text.one_line(report.name, 60))}: {text.points(report)}"
        rate = 60 * self.now / max(time.monotonic() - self._started, 0.001)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, rate=f"{rate:.0f} a minute", said=said)
            return
        left = (self.total - self.now) * 60 / rate
        print(
            f"{self.now} of {self.total}, {rate:.0f} a minute, {left:.0f} s left · {said}", file=sys.stderr, flush=True
        )


def _bar(total: int) -> tuple[Any, Any]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    bar = Bar(*columns, console=Console(stderr=True, emoji=False), transient=True)
    return bar, bar.add_task("grading", total=total, rate="", said="")
