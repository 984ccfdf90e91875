"""What a person at the command line, or an author, has to fix: errors that are sentences, not tracebacks."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass


class InputError(Exception):
    """The call or its input is wrong; the message says what, in one sentence."""


@dataclass(frozen=True)
class LintError:
    """One thing that an author has to fix, in one sentence. line counts from 1; 0: the whole file."""

    file: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}" if self.line else f"{self.file}: {self.sentence}"


class AuthorError(Exception):
    """A lesson's source or specification can't be built as it stands; `problems` says why."""

    def __init__(self, problems: Sequence[LintError]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def author_slip(error: Exception, otherwise: str) -> LintError:
    """An exception in a file of a course as one sentence, with that file and line. otherwise: the file where no frame is of one."""
    if isinstance(error, SyntaxError):
        place, line, sentence = error.filename or "", error.lineno or 0, f"this is not Python: {error.msg}."
    else:
        frames = reversed(traceback.extract_tb(error.__traceback__))
        course_frames = (frame for frame in frames if "/solutions/" in frame.filename.replace("\\", "/"))
        place, line = next(((frame.filename, frame.lineno or 0) for frame in course_frames), ("", 0))
        sentence = f"{type(error).__name__}: {error}."
    _, separator, rest = place.replace("\\", "/").rpartition("/solutions/")
    return LintError(f"solutions/{rest}" if separator else otherwise, line, sentence)
