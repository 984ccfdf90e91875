"""What need not be run again: tests that passed with the same files that decide them, on the same system, with the same Python and libraries.

pytest's own cache, `.pytest_cache`, remembers them. A fresh clone has none, so continuous integration runs everything, as
`WHOLE_GRID=1` does anywhere. Only a run of the whole suite leaves something out: whoever names a file or a test wants it run.
What was left out is counted at the end.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from platform import platform

import pytest

KEY = "attention-course/passed"


def digest(places: Iterable[Path]) -> str:
    """Of these files, of all files in these folders but what Python compiles, of the system, of Python, and of every installed library."""
    sha = hashlib.sha256(repr([platform(), sys.version, *_libraries()]).encode())
    for place in places:
        for path in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
            if path.suffix == ".pyc":
                continue
            sha.update(f"{path.relative_to(place.parent)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return sha.hexdigest()


@cache
def _libraries() -> list[str]:
    return sorted(f"{library.name} {library.version}" for library in distributions())


class PassedBefore:
    """A plugin of every process of the run.

    group_of: what a test, by its node id, is about: a lesson, 'packaging', 'engine', or '' for what is always run. digest_of: of all
        that decides a group's tests.
    """

    def __init__(self, config: pytest.Config, group_of: Callable[[str], str], digest_of: Callable[[str], str]) -> None:
        self._config, self._group_of, self._digest_of = config, group_of, digest_of
        stored = config.cache.get(KEY, {})
        self._passed = {
            lesson: set(ids) if old == digest_of(lesson) else set() for lesson, (old, ids) in stored.items()
        }
        self._left_out = 0
        whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
        self._whole = getattr(config, "workerinput", {}).get("whole", whole)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        node.workerinput["whole"] = self._whole  # a process of xdist's is given all paths

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if not self._whole:
            return
        left_out = {item for item in items if item.nodeid in self._passed.get(self._group_of(item.nodeid), ())}
        items[:] = [item for item in items if item not in left_out]
        self._config.hook.pytest_deselected(items=list(left_out))
        self._left_out = len(left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if group := self._group_of(report.nodeid):
            ids = self._passed.setdefault(group, set())
            if not report.passed:
                ids.discard(report.nodeid)
            elif report.when == "call":
                ids.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):  # a process of xdist's: the one that started it hears of every test
            self._config.workeroutput["left_out"] = self._left_out
        else:
            by_group = {group: [self._digest_of(group), sorted(ids)] for group, ids in self._passed.items()}
            self._config.cache.set(KEY, by_group)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self._left_out = getattr(node, "workeroutput", {}).get("left_out", 0)  # each process leaves out the same

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left_out:
            terminalreporter.write_line(
                f"{self._left_out} tests were left out, since nothing that decides them has changed since they passed; WHOLE_GRID=1 runs them."
            )
