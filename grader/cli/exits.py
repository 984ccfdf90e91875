"""What a command ends with: an exit code and, where something is amiss, a sentence on standard error."""

from __future__ import annotations

import sys

PASSED, NOT_PASSED, BAD_INPUT, NOT_GRADED = 0, 1, 2, 3
STOPPED = 130  # by Ctrl-C, as a shell counts it


def complain(sentence: str, code: int) -> int:
    say(sentence)
    return code


def say(*sentences: str) -> None:
    """Sentences on standard error, a line each."""
    for sentence in sentences:
        print(f"grader: {harmless(sentence)}", file=sys.stderr, flush=True)


def harmless(sentence: str) -> str:
    """A sentence in which no name, such as that of a learner's folder, commands the terminal or a CI service."""
    from grader.reports import text

    return text.defuse(text.clean(sentence))
