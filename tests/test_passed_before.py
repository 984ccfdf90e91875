"""Tests that passed before are left out of a run of the whole suite, until something that decides them changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import passed_before
from tests.conftest import ROOT
from tests.passed_before import digest

CONFTEST = """
from pathlib import Path
from tests.passed_before import PassedBefore, digest

def pytest_configure(config):
    config.pluginmanager.register(PassedBefore(config, group_of, lambda group: digest([Path(group)])))

def group_of(nodeid):
    return "lesson" if "[lesson" in nodeid else ""
"""
TESTS = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", ["lesson-1", "lesson-2", "other"])
def test_it(name):
    assert name != Path("lesson/wrong.txt").read_text()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = suite\n")
    for folder in ("suite", "lesson"):
        (tmp_path / folder).mkdir()
    (tmp_path / "suite" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "suite" / "test_it.py").write_text(TESTS)
    (tmp_path / "lesson" / "wrong.txt").write_text("lesson-2")
    return tmp_path


def outcome(place: Path, *args: str) -> dict[str, int]:
    """How many tests passed, failed, and were deselected."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "--rootdir=.", "-p", "no:nbval", *args]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120)
    return {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|deselected|tests were left out)", ran.stdout)
    }


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_passed_is_left_out_and_what_failed_is_not(suite, processes):
    assert outcome(suite, "-n", processes) == {"passed": 2, "failed": 1}
    again = outcome(suite, "-n", processes)
    assert (again.get("passed"), again["failed"], again["tests were left out"]) == (1, 1, 1)
    assert outcome(suite, "-n", processes, "suite/test_it.py") == {"passed": 2, "failed": 1}  # it was asked for


def test_nothing_is_left_out_after_a_change(suite):
    outcome(suite, "-n", "0")
    (suite / "lesson" / "wrong.txt").write_text("lesson-1")
    assert outcome(suite, "-n", "0") == {"passed": 2, "failed": 1}


def test_the_digest_is_of_what_files_hold_and_of_where_they_lie(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "a.py").write_text("1")
    digests = [digest([one]), digest([two])]
    (one / "a.py").write_text("2")
    digests.append(digest([one]))
    (one / "a.py").rename(one / "b.py")
    digests.append(digest([one]))
    assert len(set(digests)) == 4
    (one / "b.pyc").write_text("of no weight")
    assert digest([one]) == digests[-1]


def test_the_digest_is_of_every_library_at_its_version(tmp_path, monkeypatch):
    before, libraries = digest([tmp_path]), passed_before._libraries()
    assert {"numpy", "jinja2", "pytest"} <= {library.split()[0].lower() for library in libraries}
    monkeypatch.setattr(passed_before, "_libraries", lambda: [f"{libraries[0]}.1", *libraries[1:]])
    assert digest([tmp_path]) != before
