"""What a command ends with: an exit code and, where something is amiss, a sentence on standard error."""

from __future__ import annotations

import sys

PASSED, NOT_PASSED, BAD_INPUT, NOT_GRADED = 0, 1, 2, 3
STOPPED = 130  # by Ctrl-C, as a shell counts it


def complain(sentence: str, code: int) -> int:
    print(f"grader: {sentence}", file=sys.stderr)
    return code
