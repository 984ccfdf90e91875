"""How much of a submission is the code of the course's solved notebooks, which are public: for whoever grades to look at, no accusation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from grader.course import references
from grader.course.course import Course

# Texts are compared, nothing of a stranger's is parsed: docstrings, comments and spaces do not count.
_NOISE = re.compile(r'"""[\s\S]*?"""|' + r"'''[\s\S]*?'''|#[^\n]*|\s+")
LENGTH = 100  # characters from which on the same code is no chance
FEWEST = 3  # exercises
SHARE = 0.75  # of those that are long enough and were answered


@dataclass
class Resemblance:
    """same: exercises with the solution's code; answered: all that were answered, are long enough and so might have it."""

    course: Course
    same: int = 0
    answered: int = 0

    def add(self, texts: Mapping[str, str]) -> None:
        """The learner's code by exercise."""
        for name, text in texts.items():
            solution = _normal(references.solution_text(self.course, name))
            if len(solution) >= LENGTH and "NotImplementedError" not in text:
                self.answered += 1
                self.same += _normal(text) == solution

    def sentence(self) -> str:
        """'' where it is no more than what chance may bring."""
        if self.same < FEWEST or self.same < SHARE * self.answered:
            return ""
        return (
            f"The code of {self.same} of the {self.answered} longer answers is that of the course's solved notebooks, but for comments "
            "and spaces. The solutions are public, so this proves nothing: talk about the code."
        )


def _normal(text: str) -> str:
    return _NOISE.sub("", text)
