"""Where learners' notebooks lie: in archives' folders, one folder a lesson, beside what is no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader import finding
from grader.finding import find, in_place_of_notebooks


def lay(top: Path, *places: str) -> Path:
    for place in places:
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        (top / place).write_text("x")
    return top


@pytest.mark.parametrize(
    ("places", "found"),
    [
        (["01.ipynb", "essay.txt"], ["01.ipynb"]),
        (["notebooks/01.ipynb", "05.ipynb"], ["05.ipynb", "notebooks/01.ipynb"]),
        (["ada/notebooks/01.ipynb", "__MACOSX/ada/notebooks/._01.ipynb"], ["ada/notebooks/01.ipynb"]),
        (["lesson01/01.ipynb", "lesson05/05.ipynb"], ["lesson01/01.ipynb", "lesson05/05.ipynb"]),
        (["a/b/c/d/01.ipynb"], ["a/b/c/d/01.ipynb"]),
        (["a/b/c/d/e/f/01.ipynb"], []),
        (["01.ipynb", "old/01.ipynb", "old/05.ipynb"], ["01.ipynb"]),  # the nearest count
        (["clone/notebooks/01.ipynb", "clone/solutions/05.ipynb", "clone/notebooks/backups/05.ipynb"], ["clone/notebooks/01.ipynb"]),
        (["solutions/05.ipynb", "a/.ipynb_checkpoints/05.ipynb", "backups/05.ipynb"], []),
        (["05.ipynb/inner.txt", "05.ipynb/01.IPYNB"], ["05.ipynb/01.IPYNB"]),
    ],
)
def test_the_nearest_notebooks_are_found(tmp_path, places, found):
    assert [path.relative_to(tmp_path).as_posix() for path in find(lay(tmp_path, *places)).files] == found


def test_links_that_lead_out_are_named_and_left(tmp_path):
    lay(tmp_path, "secret/01.ipynb", "ada/essay.txt", "ada/deep/02.ipynb")
    (tmp_path / "ada" / "01.ipynb").symlink_to(tmp_path / "secret" / "01.ipynb")
    (tmp_path / "ada" / "more").symlink_to(tmp_path / "secret")
    (tmp_path / "ada" / "round").symlink_to(tmp_path / "ada")
    found = find(tmp_path / "ada")
    assert {path.name for path in found.files} == {"02.ipynb"}
    assert found.notes == [f"{name} is a link that leads out of the folder; it was not read." for name in ("01.ipynb", "more")]


def test_an_endless_folder_is_not_walked_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(finding, "MAX_FOLDERS", 20)
    lay(tmp_path, *(f"{i:03}/{j}/{k}/x.txt" for i in range(9) for j in range(3) for k in range(3)))
    assert find(tmp_path).folders < 60
    monkeypatch.setattr(finding, "MAX_FILES", 3)
    assert len(find(lay(tmp_path, *(f"{i}.ipynb" for i in range(9)))).files) == 3


def test_what_lies_there_in_place_of_notebooks(tmp_path):
    assert in_place_of_notebooks(tmp_path) == in_place_of_notebooks(tmp_path / "gone") == ""
    assert in_place_of_notebooks(lay(tmp_path / "a", "b.txt", ".hidden", "__MACOSX/x")) == "What is there: b.txt."
    assert in_place_of_notebooks(lay(tmp_path / "z", "work.zip")) == "What is there: work.zip. Unpack work.zip first."
    many = in_place_of_notebooks(lay(tmp_path / "m", *(f"{i}\n.txt" for i in range(8))))
    assert many.endswith("and 3 more.") and "\n" not in many


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(OSError):
        find(tmp_path / "gone")
