"""Attacks by the notebook file and its folder: each is that learner's result, never a crash, never text that acts."""

from __future__ import annotations

import json
import os

import pytest

from grader.course.course import open_course
from grader.grading import grade
from grader.reports import junit, report_json, terminal
from tests import toy_course as toy

DEEP = b"[" * 200_000
FILES = {
    "empty": b"",
    "not JSON": b"print(1)",
    "a hundred megabytes": b'{"cells": [' + b" " * (100 << 20) + b"]}",
    "nested deeply": DEEP,
    "deep inside a cell": b'{"cells": [{"cell_type": "code", "source": ' + b"[" * 50_000 + b"]" * 50_000 + b"}]}",
    "a list": b"[]",
    "cells are a number": b'{"cells": 7}',
    "cells are of other types": b'{"cells": [7, null, [], {"cell_type": "code", "source": {"a": 1}}]}',
    "half a surrogate": b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
    "zeros": b"\x00" * 4096,
    "random bytes": bytes(range(256)) * 40,
    "a huge number": b'{"cells": ' + b"9" * 100_000 + b"}",
    "not a number": b'{"cells": [NaN, Infinity]}',
    "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
}
UTF16 = json.dumps(toy.solved()).encode("utf-16")
TWICE = toy.notebook([toy.code(toy.RIGHT[name], id="same") for name in toy.EXERCISES])


def many() -> dict:
    return toy.notebook([*(toy.code(f"y{i} = {i}", id=str(i)) for i in range(4_000)), *toy.solved()["cells"]])


@pytest.mark.any_user  # what a file says
@pytest.mark.parametrize("promise", FILES)
def test_a_file_that_is_no_notebook_is_that_learner_s_result(monkeypatch, tmp_path, shared, promise):
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", FILES[promise])
    report = grade.grade_submission(grade.Settings(open_course()), path, sandbox=shared)
    assert {verdict.status for verdict in report.lessons[0].verdicts} == {"missing"} and report.score == 0


@pytest.mark.any_user
@pytest.mark.parametrize("content", [UTF16, {**TWICE}, many], ids=["UTF-16", "duplicate ids", "4,000 cells"])
def test_an_odd_notebook_keeps_its_points(monkeypatch, tmp_path, shared, content):
    toy.install(monkeypatch)
    content = content() if callable(content) else content
    monkeypatch.setattr(
        shared, "timeout_s", 30.0
    )  # all cells share a few of these; a busy machine asks for them slowly
    if content is TWICE or isinstance(content, dict) and len(content["cells"]) == 3:
        content["cells"].insert(0, toy.code("OFFSET = 0"))
    path = toy.write(tmp_path / "01_toy.ipynb", content)
    assert grade.grade_submission(grade.Settings(open_course()), path, sandbox=shared).score == 6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes of Unix")
def test_links_and_pipes_in_a_folder_are_not_followed(monkeypatch, tmp_path, shared):
    toy.install(monkeypatch)
    other = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    folder = tmp_path / "eve"
    folder.mkdir()
    (folder / "01_toy.ipynb").symlink_to("../01_toy.ipynb")
    (folder / "loop.ipynb").symlink_to("loop.ipynb")
    os.mkfifo(folder / "02_second.ipynb")
    report = grade.grade_submission(grade.Settings(open_course()), folder, sandbox=shared)
    assert report.score == 0 and other.exists()


@pytest.mark.any_user
@pytest.mark.parametrize(
    "name", ["a\nb", "<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "=1+1", "..", "é" * 60, "::error::x"]
)
def test_a_name_is_text_and_nothing_else(monkeypatch, tmp_path, shared, name):
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    report = grade.grade_submission(grade.Settings(open_course()), path, name=name, sandbox=shared)
    whole = grade.Report((report,), 7)
    assert report.score == 6
    for text in (terminal.render(whole), junit.render(whole), report_json.render(whole)):
        assert "\x1b" not in text
        assert not any(line.startswith("::") for line in text.splitlines())
    assert "<script>" not in junit.render(whole)
