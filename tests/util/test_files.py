"""Files are written whole, and are open to nobody but whom the umask lets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from grader.cli import main
from grader.notebook import workspace
from grader.notebook.record import Record
from grader.util.files import write_atomically
from tests import toy_course as toy
from tests.small_class import LEVEL, Here

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a umask is Unix's")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o077, 0o027, 0o022, 0o002], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_a_new_file_and_its_folder_follow_the_umask(tmp_path, umask):
    write_atomically(tmp_path / "new" / "file", "x")
    assert mode(tmp_path / "new" / "file") == 0o666 & ~umask and mode(tmp_path / "new") == 0o777 & ~umask
    Record(tmp_path / "mine" / "progress.json").add_attempt("shares", "a", "failed")
    assert mode(tmp_path / "mine" / "progress.json") == 0o666 & ~umask


@pytest.mark.parametrize("rights", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_there_stays_as_open_as_it_was_and_is_never_more_so(tmp_path, umask, monkeypatch, rights):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(rights)
    met = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new, **at: (met.append(mode(tmp_path / old)), real(old, new, **at)))
    write_atomically(path, "new")
    assert (path.read_text(), mode(path), met) == ("new", rights, [rights])
    assert os.listdir(tmp_path) == ["file"]


def test_a_private_file_is_its_owner_s_from_the_first_byte_on(tmp_path, umask, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    met = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *args, **at: (met.append(args[2:]), real(*args, **at))[1])
    write_atomically(path, "new", private=True)
    assert (path.read_text(), mode(path), met) == ("new", 0o600, [(), (0o600,)])


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / ("n" * 200)
    write_atomically(path, "old")

    def full(*_, **at):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old" and len(os.listdir(tmp_path)) == 1


def test_a_backup_is_as_open_as_the_notebook_from_the_first_byte_on(tmp_path, umask, monkeypatch):
    notebook = tmp_path / f"{'é' * 110}.ipynb"  # a name that leaves no room for a longer one
    notebook.write_text("{}")
    notebook.chmod(0o600)
    met = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *args, **at: (met.append(args[2:]), real(*args, **at))[1])
    assert mode(workspace._back_up(notebook)) == 0o600 and met[-1] == (0o600,)


def test_a_class_s_grades_are_for_whom_the_umask_lets_and_their_folder_is_the_owner_s(tmp_path, monkeypatch, umask):
    toy.install(monkeypatch)
    monkeypatch.setattr("grader.cli.classroom._pool", lambda options, settings: Here())
    (tmp_path / "class" / "ada").mkdir(parents=True)
    toy.write(tmp_path / "class" / "ada" / "01_toy.ipynb", toy.solved())
    out = tmp_path / "results"
    for again in range(2):  # the second run puts the first one's folder aside
        assert main(["class", str(tmp_path / "class"), "--out", str(out), *LEVEL]) == 0
        assert mode(out) == 0o700 and {mode(path) for path in out.rglob("*") if path.is_file()} == {0o666 & ~umask}
        assert len([path for path in out.rglob("*") if path.is_file()]) > 8 and again in (0, 1)
    assert mode(tmp_path / "results.backup-1") == 0o700
