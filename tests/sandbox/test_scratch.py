"""Removing temporary folders, as root and (through test_ordinary_user.py) as somebody to whom a closed folder is closed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from grader.sandbox.scratch import new_folder, remove_folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of somebody else's, with a file; a test removes what lies beside that file, and this must stay as it is."""
    tmp_path.chmod(0o755)
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "mine").chmod(0o640)
    return tmp_path


def assert_only_mine(place: Path) -> None:
    assert [path.name for path in place.iterdir()] == ["mine"] and (place / "mine").read_text() == "kept"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, place / "mine")] == [0o755, 0o640]


def test_a_new_folder_is_its_owners_alone():
    folder = new_folder()
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    remove_folder(folder)
    assert not os.path.exists(folder)


def test_a_missing_folder_is_no_error(place):
    remove_folder(str(place / "never"))
    assert_only_mine(place)


@pytest.mark.parametrize("rights", [0, 0o500, 0o300])
def test_closed_folders_go_and_what_their_links_point_to_stays(place, rights):
    inner = place / "its" / "closed"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (inner / "link").symlink_to(place / "mine")
    (inner / "upwards").symlink_to(place)
    (place / "its" / "beside").mkdir()
    for folder in (inner, inner.parent):
        folder.chmod(rights)
    remove_folder(str(place / "its"))
    assert_only_mine(place)


def test_a_folder_nested_three_thousand_deep_goes(place):
    here = os.getcwd()
    try:
        os.mkdir(place / "its")
        os.chdir(place / "its")
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
        os.chmod(".", 0)
    finally:
        os.chdir(here)
    remove_folder(str(place / "its"))
    assert_only_mine(place)


def test_a_link_in_the_folders_place_is_left_alone(place):
    (place / "others").mkdir()
    (place / "others" / "work").write_text("kept")
    (place / "its").symlink_to(place / "others")
    remove_folder(str(place / "its"))
    assert (place / "others" / "work").read_text() == "kept" and (place / "its").is_symlink()
