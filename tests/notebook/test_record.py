"""The learner's record: survives a broken file, a read-only folder, two kernels and a newer version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.notebook import record as module
from grader.notebook.record import ExerciseRecord, Record, default_path


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".attention-course" / "progress.json"


def test_attempts_are_counted_by_code_and_a_pass_stays(path):
    record = Record(path)
    assert record.entry("shares") == ExerciseRecord()
    record.add_attempt("shares", "a", "failed")
    record.add_attempt("shares", "a", "failed")
    record.add_attempt("shares", "b", "passed")
    record.add_attempt("shares", "c", "error")
    record.add_hint("shares", 2)
    record.add_hint("shares", 1)
    assert Record(path).entry("shares") == ExerciseRecord("error", passed=True, hints=2, attempts=3)
    assert Record(path).entry("log_shares") == ExerciseRecord()
    assert record.take_notes() == ()


def test_an_untouched_stub_is_no_attempt(path):
    record = Record(path)
    record.add_attempt("shares", "stub", "not_started")
    assert record.entry("shares") == ExerciseRecord("not_started", attempts=0)


def test_file_is_what_the_documentation_says(path):
    Record(path).add_attempt("shares", "a", "failed")
    data = json.loads(path.read_text())
    assert data == {
        "format": 1,
        "exercises": {"shares": {"attempts": {"a": "failed"}, "status": "failed", "passed": None}},
    }
    assert (path.parent / ".gitignore").read_text() == "*\n"
    assert sorted(os.listdir(path.parent)) == [".gitignore", "progress.json", "progress.lock"]


def test_the_number_of_attempts_is_bounded(path):
    record = Record(path)
    for i in range(module.MAX_ATTEMPTS + 5):
        record.add_attempt("shares", str(i), "failed")
    kept = json.loads(path.read_text())["exercises"]["shares"]["attempts"]
    assert len(kept) == module.MAX_ATTEMPTS and "0" not in kept and str(module.MAX_ATTEMPTS + 4) in kept


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": 1}',
        b'{"format": "1", "exercises": {}}',
        b'{"format": 1, "exercises": {"shares": 3}}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_broken_file_is_kept_aside_and_said_once(path, broken):
    path.parent.mkdir()
    path.write_bytes(broken)
    record = Record(path)
    record.add_attempt("shares", "a", "passed")
    assert record.entry("shares").passed and Record(path).entry("shares").passed
    (backup,) = path.parent.glob("progress.json.bak-*")
    assert backup.read_bytes() == broken
    (note,) = record.take_notes()
    assert note == f"The record of progress could not be read. It is kept as {backup.name}, and a new one is started."
    assert record.take_notes() == ()


def test_a_device_in_the_place_of_the_record_stays_where_it_is(monkeypatch):
    """Somebody who wants no record kept names /dev/null; root could move it away."""
    monkeypatch.setattr(module.os, "replace", lambda *_: pytest.fail("the device was to be moved"))
    record = Record(Path(os.devnull))
    record.add_attempt("shares", "a", "failed")
    assert record.entry("shares").attempts == 1
    assert "is not a regular file" in record.take_notes()[0]


def test_odd_values_inside_a_readable_file_count_as_nothing(path):
    path.parent.mkdir()
    odd = {"status": 3, "passed": None, "hints": "many", "attempts": [1, 2]}
    path.write_text(json.dumps({"format": 1, "exercises": {"shares": odd}}))
    record = Record(path)
    assert record.entry("shares") == ExerciseRecord()
    record.add_hint("shares", 1)
    record.add_attempt("shares", "a", "failed")
    assert record.entry("shares") == ExerciseRecord("failed", hints=1, attempts=1)


def test_what_this_version_does_not_know_is_kept(path):
    path.parent.mkdir()
    path.write_text('{"format": 1, "theme": "x", "exercises": {"shares": {"stars": 5}, "future": {"hints": 1}}}')
    Record(path).add_attempt("shares", "a", "failed")
    data = json.loads(path.read_text())
    assert (
        data["theme"] == "x"
        and data["exercises"]["shares"]["stars"] == 5
        and data["exercises"]["future"] == {"hints": 1}
    )


def test_a_newer_format_is_left_alone(path):
    path.parent.mkdir()
    newer = '{"format": 2, "exercises": {"shares": {"passed": "2026"}}}'
    path.write_text(newer)
    record = Record(path)
    assert record.entry("shares").passed
    record.add_hint("shares", 3)
    assert record.entry("shares").hints == 3 and path.read_text() == newer
    (note,) = record.take_notes()
    assert note.endswith(
        "was written by a newer version of the course and is left as it is; it is kept only until this kernel ends."
    )


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    record = Record(tmp_path / "file" / ".attention-course" / "progress.json")  # no folder can be made below a file
    record.add_attempt("shares", "a", "failed")
    record.add_attempt("shares", "b", "failed")
    assert record.entry("shares").attempts == 2
    (note,) = record.take_notes()
    assert note.startswith("Progress cannot be ") and note.endswith("; it is kept only until this kernel ends.")


@pytest.mark.skipif(os.name == "nt", reason="no folder is removed there in which a process works")
def test_a_folder_that_was_removed_is_said_once(tmp_path, monkeypatch):
    monkeypatch.delenv(module.PROGRESS_ENV, raising=False)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    record = Record(default_path())
    record.add_attempt("shares", "a", "passed")
    assert record.entry("shares").passed and "cannot be written" in record.take_notes()[0]


def test_a_full_disk_loses_nothing(path, monkeypatch):
    record = Record(path)
    record.add_attempt("shares", "a", "failed")
    before = path.read_text()

    def full(*args, **places):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    record.add_attempt("shares", "b", "passed")
    assert record.entry("shares") == ExerciseRecord("passed", passed=True, attempts=2)
    assert path.read_text() == before and not [
        one for one in path.parent.iterdir() if one.name.startswith(f".{path.name}")
    ]
    assert record.take_notes() == (
        f"Progress cannot be written to {path} (No space left on device); it is kept only until this kernel ends.",
    )


def test_kernels_that_write_at_once_lose_nothing(path):
    program = (
        "import sys; from pathlib import Path; from grader.notebook.record import Record\n"
        "record = Record(Path(sys.argv[1]))\n"
        "for i in range(40): record.add_attempt('shares', f'{sys.argv[2]}-{i}', 'failed')\n"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", program, str(path), str(kernel)]) for kernel in range(2)]
    assert [kernel.wait(60) for kernel in kernels] == [0, 0]
    assert Record(path).entry("shares").attempts == 80


def test_a_folder_that_another_kernel_makes_at_the_same_moment_is_used(path, monkeypatch):
    path.parent.mkdir()
    seen = iter([False])  # as it was a moment ago
    monkeypatch.setattr(Path, "is_dir", lambda folder: next(seen, True))
    record = Record(path)
    record.add_attempt("shares", "a", "failed")
    assert record.take_notes() == () and "failed" in path.read_text()


def test_the_environment_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "mine.json"))
    assert default_path() == tmp_path / "mine.json"


def test_one_learner_has_one_record_wherever_python_starts(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTENTION_COURSE_PROGRESS", raising=False)
    notebooks = tmp_path / "course" / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / "01_mixing.ipynb").write_text("{}")
    monkeypatch.chdir(notebooks)
    beside = default_path()
    assert beside == Path(notebooks / ".attention-course" / "progress.json")
    monkeypatch.chdir(tmp_path / "course")
    assert default_path() == beside
    Record(beside).add_hint("shares", 1)
    (notebooks / "scratch").mkdir()
    monkeypatch.chdir(notebooks / "scratch")
    assert default_path() == beside
    monkeypatch.chdir(tmp_path)
    assert default_path() == tmp_path / ".attention-course" / "progress.json"


def test_two_learners_below_a_record_without_notebooks_have_records_of_their_own(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTENTION_COURSE_PROGRESS", raising=False)
    Record(tmp_path / ".attention-course" / "progress.json").add_hint("shares", 1)
    for name in ("anna", "bert"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert default_path() == tmp_path / name / ".attention-course" / "progress.json"
