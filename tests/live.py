"""A candidate for the tests: a learner's cell as text."""

from __future__ import annotations

import linecache
from functools import cache
from itertools import count
from types import CodeType, SimpleNamespace
from typing import Any

from grader.course.course import open_course
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.judging.verdict import Verdict
from grader.source.policy import Offence, Sources
from grader.worker.observe import failure_from
from grader.worker.values import Failure

_numbers = count(1)


def _compiled(text: str) -> CodeType:
    filename = f"<test cell {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return compile(text, filename, "exec")


_compiled_once = cache(_compiled)  # a lesson's given cells run before each of its hundreds of answers


def from_cells(exercise_name: str, *texts: str) -> LiveObject:
    """Runs learner cells over the lesson's given cells and takes what they define."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    given = [cell.text for cell in open_course().cells(open_course().lesson_of(exercise_name)) if cell.role == "given"]
    sources = Sources(tuple(texts), open_course().given_names)
    try:
        for text in given:
            exec(_compiled_once(text), namespace)
        for text in texts:
            exec(_compiled(text), namespace)
    except BaseException as error:
        return LiveObject(None, failure_from(error), sources)
    if exercise_name not in namespace:
        return LiveObject(None, Failure("missing"), sources)
    return LiveObject(namespace[exercise_name], sources=sources)


@cache
def verdict_on(exercise_name: str, text: str) -> Verdict:
    """On one learner cell; kept, since several tests ask about the same answers."""
    return judge(open_course().exercise(exercise_name), from_cells(exercise_name, text))


def offence(name: str, forbids: tuple[str, ...], requires: tuple[str, ...], sources: Sources) -> Offence | None:
    """What is forbidden or missing in cells."""
    return sources.offence(name, forbids, requires)


def shell_that_ran(*cells: str) -> Any:
    """What stands for IPython's shell in whose history these cells are."""
    return SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=cells, input_hist_parsed=cells))
