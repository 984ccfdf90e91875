"""How a batch shows itself on standard error: in a terminal one line that is written over, else a line a result."""

from __future__ import annotations

import shutil
import sys
import time

from grader.judging.verdict import SubmissionReport
from grader.reports import text


class Progress:
    """A context manager. total: submissions to grade now; done: those that the journal already has."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.done, self.now = total, done, 0
        self._started, self._over = time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if self.done:
            print(
                f"{self.done} results are already in the journal; {self.total} to grade.", file=sys.stderr, flush=True
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._over and self.now:
            print(file=sys.stderr, flush=True)

    def tell(self, report: SubmissionReport) -> None:
        """One more submission is graded."""
        self.now += 1
        rate = 60 * self.now / max(time.monotonic() - self._started, 0.001)
        left = (self.total - self.now) * 60 / rate
        said = f"{text.defuse(text.one_line(report.name, 60))}: {text.points(report)}"
        line = f"{self.now} of {self.total}, {rate:.0f} a minute, {left:.0f} s left · {said}"
        width = shutil.get_terminal_size((100, 24)).columns - 1
        shown = f"\r{line[:width]:<{width}}" if self._over else f"{line}\n"
        print(shown, end="", file=sys.stderr, flush=True)
