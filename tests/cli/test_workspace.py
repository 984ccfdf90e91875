"""A learner's folder: a lesson put back, work laid over a newer lesson, nothing lost."""

from __future__ import annotations

import copy
import json
import logging
import os
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import GLOSSARY, open_course
from grader.course.stubs import encode, learner_notebook, opening_cells
from grader.notebook import workspace
from grader.notebook.merge import merge
from grader.submission.submission import read_submission
from grader.util import libraries
from grader.util.digest import digest
from grader.util.errors import InputError
from tests import small_lesson as small

nbformat = libraries.import_nbformat()

WORK = "def double(x):\n    return 2 * x"


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A learner's folder, in a course of the small lesson that has two exercises' worth of room to change."""
    (tmp_path / "course").mkdir()
    small.install(monkeypatch, tmp_path / "course")
    monkeypatch.setattr(open_course(), "handout_notebook", lambda name: pristine(small.SOURCE))
    mine = tmp_path / "mine"
    mine.mkdir()
    return mine


def pristine(text: str) -> dict:
    return copy.deepcopy(learner_notebook(small.cells(text), small.LESSON))


def newer(monkeypatch, *changes: tuple[str, str]) -> None:
    """A newer version of the course, by replacing text in the lesson's source."""
    text = small.SOURCE
    for find, put in changes:
        assert find in text
        text = text.replace(find, put, 1)
    monkeypatch.setattr(open_course(), "handout_notebook", lambda name: pristine(text))


def added(text: str, id: str = "1234") -> dict:
    """A cell as JupyterLab adds it."""
    return {"cell_type": "code", "execution_count": 3, "id": id, "metadata": {}, "outputs": [], "source": [text]}


def write(place, notebook: dict):
    path = place / f"{small.NAME}.ipynb"
    path.write_text(encode(notebook), encoding="utf-8")
    return path


def cell(notebook: dict, id: str) -> dict:
    return next(each for each in notebook["cells"] if each["id"] == id)


def solved(text: str = WORK) -> dict:
    notebook = pristine(small.SOURCE)
    cell(notebook, "exercise-double")["source"] = text.splitlines(keepends=True)
    return notebook


def texts(place) -> list[str]:
    notebook = json.loads((place / f"{small.NAME}.ipynb").read_text(encoding="utf-8"))
    assert len({each["id"] for each in notebook["cells"]}) == len(notebook["cells"])
    return ["".join(each["source"]) for each in notebook["cells"]]


def backups(place) -> list:
    return sorted((place / "backups").glob("*.ipynb"))


def test_reset_puts_the_lesson_back_and_keeps_what_was_there(place):
    path = write(place, solved())
    before = path.read_bytes()
    change = workspace.reset(small.NAME, place)
    assert json.loads(path.read_text()) == pristine(small.SOURCE)
    assert [copy.read_bytes() for copy in backups(place)] == [before]
    assert str(backups(place)[0]) in str(change)


def test_reset_keeps_every_earlier_copy(place):
    for number in range(3):
        write(place, solved(f"{WORK} + {number}"))
        workspace.reset(small.NAME, place)
    assert len({copy.read_text() for copy in backups(place)}) == 3


def test_reset_keeps_even_what_is_no_notebook(place):
    (place / f"{small.NAME}.ipynb").write_text("half a fi")
    workspace.reset(small.NAME, place)
    assert backups(place)[0].read_text() == "half a fi"


def test_reset_lays_down_a_lesson_that_is_not_there(place):
    change = workspace.reset(small.NAME, place)
    assert change.backup is None
    assert len(texts(place)) == len(pristine(small.SOURCE)["cells"])


def test_update_of_a_current_lesson_changes_nothing(place):
    path = write(place, solved())
    before = path.read_bytes()
    assert not workspace.update(small.NAME, place).changed
    assert path.read_bytes() == before
    assert not backups(place)


def test_update_takes_the_course_s_cells_and_keeps_the_learner_s(place, monkeypatch):
    write(place, solved())
    newer(monkeypatch, ("import numpy as np", "import numpy as np\nPI = np.pi"), ("# # A small lesson", "# # Retold"))
    change = workspace.update(small.NAME, place)
    assert change.exercises == ("double",)
    now = texts(place)
    assert "import numpy as np\nPI = np.pi" in now and now[0].startswith("# Retold\n") and WORK in now
    assert "# A small lesson" not in "".join(now)
    assert WORK.splitlines()[1].strip() in backups(place)[0].read_text()


def test_update_replaces_an_untouched_stub(place, monkeypatch):
    write(place, pristine(small.SOURCE))
    newer(monkeypatch, ("Twice x. x: (n,).", "Each number twice. x: (n,)."))
    assert workspace.update(small.NAME, place).exercises == ()
    assert any("Each number twice" in text for text in texts(place))
    assert not any("Twice x." in text for text in texts(place))


def test_update_keeps_added_cells_where_they_were(place, monkeypatch):
    notebook = solved()
    at = [each["id"] for each in notebook["cells"]].index("exercise-double")
    notebook["cells"].insert(at + 1, added("double(np.ones(3))"))
    notebook["cells"].insert(0, added("# my notes", "5678"))
    notebook["cells"].append(added("# the end", "9abc"))
    write(place, notebook)
    newer(monkeypatch, ("# # A small lesson", "# # Retold\n\n# %% [markdown]\n# More."))
    workspace.update(small.NAME, place)
    now = texts(place)
    assert now[0] == "# my notes" and now[-1] == "# the end"
    assert now[now.index(WORK) + 1] == "double(np.ones(3))"


# What a learner wrote in the course's own cells: (which cell, what it says then, what is kept of it, how the message names it).
OWN = {
    "an answer below a text": (
        "prose",
        "# A small lesson\n\n**Before this lesson:** addition,\nand arrays.\n\nMy guess: *three*.",
        "My guess: *three*.",
        "“My guess: *three*.”",
    ),
    "a parameter": ("demo", "print(np.arange(7).sum())", "print(np.arange(7).sum())", "“print(np.arange(7).sum())”"),
    "an import": (
        "given",
        "import numpy as np\nimport time",
        "import numpy as np\nimport time",
        "“import numpy as np”",
    ),
    "a line below a check": (
        "check",
        "check(double)\ndouble(np.ones(4))",
        "check(double)\ndouble(np.ones(4))",
        "“check(double)”",
    ),
}


@pytest.mark.parametrize("older", [False, True], ids=["with a note of what it was", "without"])
@pytest.mark.parametrize("retold", [False, True], ids=["same", "retold"])
@pytest.mark.parametrize("what", OWN)
def test_update_keeps_what_was_written_in_the_course_s_own_cells(place, monkeypatch, what, retold, older):
    role, written, kept, named = OWN[what]
    notebook = solved()
    mine = next(each for each in notebook["cells"] if each["metadata"]["grader"]["role"] == role)
    course, mine["source"] = "".join(mine["source"]), written.splitlines(True)
    if older:
        for each in notebook["cells"]:
            each["metadata"]["grader"].pop("text", None)
    path = write(place, notebook)
    newer(monkeypatch, *[("# ## What we keep", "# ## What stays")] * retold)
    change = workspace.update(small.NAME, place)
    now = texts(place)
    assert now[now.index(kept) - 1] == course and now.count(kept) == 1 and written not in now[: now.index(kept)]
    # Without a note, what the course said before may be the learner's, too.
    assert f"in cells of your own: {named}{', “What we keep”' * (older and retold)}." in str(change)
    plan = read_submission(open_course(), path).plan(small.NAME)
    assert kept not in [each.text for each in plan.cells] and any(WORK in each.text for each in plan.cells)
    assert not workspace.update(small.NAME, place).changed  # nothing twice


def test_update_keeps_what_was_written_in_a_cell_that_the_course_rewrote(place, monkeypatch):
    notebook = solved()
    demo = next(each for each in notebook["cells"] if each["metadata"]["grader"]["role"] == "demo")
    demo["source"] = ["print(np.arange(7).sum())"]
    write(place, notebook)
    newer(monkeypatch, ("print(np.arange(3).sum())", "print(np.arange(5).sum())"))
    assert workspace.update(small.NAME, place).beginnings == ("“print(np.arange(7).sum())”",)
    assert {"print(np.arange(7).sum())", "print(np.arange(5).sum())"} <= set(texts(place))


GENERATED = ("way", "install", "opened-alone", "predict-01-1")  # cells that stand in no source


@pytest.mark.parametrize("id", GENERATED)
def test_what_was_written_over_a_cell_that_the_course_makes_by_itself_is_kept(monkeypatch, id):
    course = open_course()
    monkeypatch.setattr(course, "opening", lambda lesson: opening_cells(lesson, False, ""))
    ours = course.handout_notebook("01_mixing")["cells"]
    monkeypatch.setattr(course, "opening", lambda lesson: opening_cells(lesson, True, "https://github.com/a/b"))
    monkeypatch.setattr(course, "nav_links", lambda lesson, among: "[02 · Another lesson](02_another.ipynb) →")
    theirs = course.handout_notebook("01_mixing")["cells"]
    mine = cell({"cells": theirs}, id)
    assert id.startswith("predict") or mine != cell({"cells": ours}, id)
    assert merge(theirs, ours)[0] == ours  # as another version of the course has it
    original = "".join(mine["source"])
    for source, new_id in (("my own words", id), (f"{original}\n\nmy own words", id), ("my own words", "a-copy")):
        mine["source"], mine["id"] = source.splitlines(True), new_id
        merged, _, beginnings = merge(theirs, ours)
        assert sum("my own words" in "".join(each["source"]) for each in merged) == len(beginnings) == 1
        assert merge(merged, ours)[0] == merged


def test_a_copy_of_a_cell_of_the_course_is_no_work():
    ours = open_course().handout_notebook("01_mixing")["cells"]
    theirs = [one for each in ours for one in (each, {**each, "id": f"copy-of-{each['id']}"[:60]})]
    assert merge(theirs, ours) == (ours, (), ())


def test_a_change_without_a_word_is_told_too():
    ours = [{**added("a = 1", "x"), "metadata": {"grader": {"role": "demo", "text": digest("a = 1")}}}]
    assert merge([{**ours[0], "source": ["#"]}], ours)[2] == ("“#”",)


def test_an_added_cell_takes_no_id_of_the_course_s():
    ours = [{**added(id, id), "metadata": {"grader": {"role": "demo"}}} for id in ("x", "x-2")]
    merged = merge([added("mine", "x"), *ours], ours)[0]
    assert [each["id"] for each in merged] == ["x-3", "x", "x-2"] and merge(merged, ours)[0] == merged


def test_update_takes_no_text_of_the_course_for_the_learner_s(place, monkeypatch):
    """Every cell is told anew, numbers that prose quotes among them, and none was touched."""
    notebook = solved()
    write(place, notebook)
    newer(
        monkeypatch,
        ("# # A small lesson", "# # Retold"),
        ("import numpy", "import math\nimport numpy"),
        ("arange(3)", "arange(4)"),
        ("check(double)", "check( double )"),
        ("ones(2)", "ones(3)"),
        ("`x` (n,)", "`x` (m,)"),
        ("One line.", "Two lines."),
    )
    change = workspace.update(small.NAME, place)
    assert change.changed and change.beginnings == () and len(texts(place)) == len(notebook["cells"])


def test_update_keeps_both_halves_of_a_split_cell(place, monkeypatch):
    notebook = solved("def helper(x):\n    return x + x")
    at = [each["id"] for each in notebook["cells"]].index("exercise-double")
    half = copy.deepcopy(notebook["cells"][at])
    half.update(id="new-half", source=["def double(x):\n", "    return helper(x)"])
    notebook["cells"].insert(at + 1, half)
    write(place, notebook)
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    workspace.update(small.NAME, place)
    now = texts(place)
    first = now.index("def helper(x):\n    return x + x")
    assert now[first + 1] == "def double(x):\n    return helper(x)"


def test_update_finds_work_where_another_editor_dropped_the_metadata(place, monkeypatch):
    notebook = solved()
    for each in notebook["cells"]:
        each["metadata"] = {}
        del each["id"]
    notebook.update(metadata={}, nbformat_minor=4)
    write(place, notebook)
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    change = workspace.update(small.NAME, place)
    assert change.exercises == ("double",)
    now = texts(place)
    assert now.count(WORK) == 1 and now.count("check(double)") == 1


def test_update_puts_a_deleted_check_back(place):
    notebook = solved()
    notebook["cells"] = [each for each in notebook["cells"] if each["id"] != "check-double"]
    write(place, notebook)
    assert workspace.update(small.NAME, place).changed
    assert texts(place).count("check(double)") == 1


def test_update_keeps_the_outputs_of_cells_that_stay_the_same(place, monkeypatch):
    notebook = solved()
    said = [{"output_type": "stream", "name": "stdout", "text": ["3\n"]}]
    demo = next(each for each in notebook["cells"] if each["metadata"]["grader"]["role"] == "demo")
    demo.update(outputs=said, execution_count=2)
    write(place, notebook)
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    workspace.update(small.NAME, place)
    now = json.loads((place / f"{small.NAME}.ipynb").read_text())
    assert cell(now, demo["id"])["outputs"] == said


def test_a_cell_of_the_course_that_became_prose_is_code_again():
    ours = [{**added("a = 1", "x"), "metadata": {"grader": {"role": "demo"}}}]
    prose = {key: ours[0][key] for key in ("id", "metadata", "source")} | {"cell_type": "markdown"}
    assert merge([prose], ours)[0] == ours


def test_an_updated_notebook_is_a_valid_one(place, monkeypatch):
    write(place, solved())
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    workspace.update(small.NAME, place)
    nbformat.validate(json.loads((place / f"{small.NAME}.ipynb").read_text()))


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', ""])
def test_update_leaves_what_it_cannot_read(place, content):
    path = place / f"{small.NAME}.ipynb"
    path.write_text(content)
    with pytest.raises(InputError, match="can't be read as a notebook"):
        workspace.update(small.NAME, place)
    assert path.read_text() == content


# --- what anybody may have put into a notebook -------------------------------------------------

JSON = [
    None,
    True,
    -1,
    1.5,
    10**400,
    "",
    "given",
    "exercise",
    "\ud800",
    [],
    ["double"],
    {"a": {}},
    {"role": ["exercise"]},
    {"role": "exercise", "exercise": {"double": 1}},
    {"role": {}, "exercise": ["double"], "stub": []},
]
KINDS = (0, 1, 4, 5)  # of the small lesson's cells, a prose, a given, an exercise and a check


def positions(node, path=()):
    """Where a value stands in parsed JSON, the whole left out."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from positions(value, (*path, key))


def with_value(notebook: dict, path: tuple, value) -> dict:
    made = copy.deepcopy(notebook)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return made


PLACES = [
    *(
        path
        for path in positions(solved())
        if path[0] != "cells" or len(path) > 1 and path[1] in KINDS and path[2:3] != ("source",)
    ),
    ("cells", 5, "source"),
    ("cells", 5, "source", 0),
    ("cells", 0, "metadata", "grader", "stub"),
    ("cells", 0, "metadata", "grader", "exercise"),
]


@pytest.mark.parametrize("at", PLACES, ids=lambda at: "/".join(map(str, at)))
def test_no_value_of_json_in_any_place_makes_a_command_raise_or_lose_work(place, monkeypatch, at):
    # nbformat's log quotes what it was given; half a surrogate pair in it would end the process that reports to pytest.
    monkeypatch.setattr(logging.getLogger("traitlets"), "disabled", True)
    mine = solved()
    mine["cells"].append(added("mine = 1"))
    path = place / f"{small.NAME}.ipynb"
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    for value in JSON:
        data = json.dumps(with_value(mine, at, value)).encode()
        path.write_bytes(data)
        before = set(backups(place))
        try:
            workspace.update(small.NAME, place)
        except InputError as error:
            assert "can't be read as a notebook" in str(error) and path.read_bytes() == data
            assert set(backups(place)) == before
        else:
            made = json.loads(path.read_text(encoding="utf-8"))
            nbformat.validate(made)
            assert any("Retold" in "".join(each["source"]) for each in made["cells"])
            if "metadata" in at or "id" in at:  # the work itself is as it was
                assert WORK in texts(place) and "mine = 1" in texts(place), value
                assert texts(place).count(WORK) == 1
            if path.read_bytes() != data:
                assert data in [copied.read_bytes() for copied in set(backups(place)) - before]
        path.write_bytes(data)
        workspace.reset(small.NAME, place)
        assert data in [copied.read_bytes() for copied in backups(place)]
        path.write_bytes(data)
        submission = read_submission(open_course(), path)
        for lesson in submission.lessons:
            submission.plan(lesson)


def test_work_on_an_exercise_that_the_course_no_longer_has_is_kept(place, monkeypatch):
    notebook = solved()
    cell(notebook, "exercise-double")["metadata"]["grader"] |= {"exercise": "triple"}
    cell(notebook, "exercise-double")["id"] = "exercise-triple"
    cell(notebook, "exercise-triple")["source"] = ["def triple(x):\n", "    return 3 * x"]
    write(place, notebook)
    workspace.update(small.NAME, place)
    assert "def triple(x):\n    return 3 * x" in texts(place)
    stub = cell(notebook, "exercise-triple")["source"] = ["def triple(x):\n", "    raise NotImplementedError"]
    cell(notebook, "exercise-triple")["metadata"]["grader"]["stub"] = digest("".join(stub))
    write(place, notebook)
    workspace.update(small.NAME, place)
    assert not any("triple" in text for text in texts(place))


@pytest.mark.parametrize("odd", [["double"], {"double": 1}, 3, None, "Double"])
def test_update_keeps_work_whose_metadata_are_odd(place, monkeypatch, odd):
    notebook = solved()
    cell(notebook, "exercise-double")["metadata"]["grader"]["exercise"] = odd
    write(place, notebook)
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))
    assert workspace.update(small.NAME, place).exercises == ("double",)
    assert texts(place).count(WORK) == 1


def test_update_of_a_lesson_that_is_not_there_says_what_lays_it_down(place):
    with pytest.raises(InputError, match="grader reset 01_small"):
        workspace.update(small.NAME, place)


def test_a_write_that_fails_leaves_the_notebook_as_it_was(place, monkeypatch):
    path = write(place, solved())
    before = path.read_bytes()
    newer(monkeypatch, ("# # A small lesson", "# # Retold"))

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        workspace.update(small.NAME, place)
    assert path.read_bytes() == before
    assert [file.name for file in place.iterdir() if file.is_file()] == [path.name]


def test_the_folder_is_notebooks_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(workspace.folder(None)) == "."
    (tmp_path / "notebooks").mkdir()
    assert str(workspace.folder(None)) == "notebooks"
    with pytest.raises(InputError, match="is not a folder"):
        workspace.folder(tmp_path / "nowhere")


def test_a_session_s_folder_is_meant_unless_one_stands_in_another(tmp_path, monkeypatch):
    for name in ("notebooks", "mine", "other", "below"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "01_small.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(open_course(), "exercises", {"01_small": ()})
    monkeypatch.setenv("ATTENTION_COURSE_FOLDER", str(tmp_path / "mine"))
    assert workspace.folder(None) == Path("mine") and workspace.folder(Path("other")) == Path("other")
    for place, meant in (("mine", Path(".")), ("below", tmp_path / "mine")):
        monkeypatch.chdir(tmp_path / place)
        assert workspace.folder(None) == meant
    monkeypatch.chdir(tmp_path / "other")
    (tmp_path / "other" / "01_small.ipynb").touch()
    assert workspace.folder(None) == Path(".")
    monkeypatch.setenv("ATTENTION_COURSE_FOLDER", str(tmp_path / "gone"))
    assert workspace.session_folder() is None


# --- the glossary ------------------------------------------------------------------------------


@pytest.fixture
def glossary(place):
    """This version's glossary, in the course's own folder."""
    open_course().glossary_path.write_text("# Glossary, new\n", encoding="utf-8")
    return place / GLOSSARY


def test_the_glossary_is_laid_beside_the_lessons(glossary, place):
    assert workspace.write_glossary(place) is None
    assert glossary.read_text() == "# Glossary, new\n"
    assert workspace.write_glossary(place) is None and not (place / "backups").exists()


def test_what_a_learner_wrote_into_the_glossary_is_kept(glossary, place):
    glossary.write_text("# Glossary\n\nmy own words\n")
    kept = workspace.write_glossary(place)
    assert kept.read_text() == "# Glossary\n\nmy own words\n" and kept.parent.name == "backups" and kept.suffix == ".md"
    assert glossary.read_text() == "# Glossary, new\n"


def test_reset_and_update_lay_the_glossary(glossary, place, capsys):
    for command in ("reset", "update"):
        glossary.write_text("mine")
        assert main([command, "01", "--folder", str(place)]) == 0
        assert glossary.read_text(encoding="utf-8") == "# Glossary, new\n"
        assert "The glossary is the one of this version; the earlier one is kept: " in capsys.readouterr().out
