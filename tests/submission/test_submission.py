"""From a learner's file or folder to the cells that run."""

from __future__ import annotations

import html
import json
import os
import re
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.course.course import open_course
from grader.grading.class_folder import ClassEntry, pack, unpack
from grader.judging.verdict import Verdict
from grader.reports import class_page, feedback, grades_csv, junit, terminal
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.sandbox.reader import Reader
from grader.submission import ipynb
from grader.submission.submission import read_submission
from grader.util.errors import InputError
from tests import mixing_course, small_lesson, toy_course as toy
from tests.mixing_course import COURSE


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    toy.install(monkeypatch)


def plan_of(tmp_path: Path, content, file: str = "01_toy.ipynb"):
    submission = read_submission(open_course(), toy.write(tmp_path / file, content))
    assert list(submission.lessons) == [toy.NAME]
    return submission.plan(toy.NAME)


def owner_text(plan, name: str) -> str:
    return plan.cells[plan.owners[name]].text


def test_the_solved_lesson_runs_given_cells_and_exercises_in_order(tmp_path):
    plan = plan_of(tmp_path, toy.solved())
    assert [cell.label for cell in plan.cells] == ["given cell 2", "given cell 4", "cell 5", "cell 8", "cell 9"]
    assert [cell.own for cell in plan.cells] == [False, False, True, True, True]
    assert plan.own_texts == tuple(toy.RIGHT.values())
    assert plan.notes == ()


def test_a_definition_of_the_course_s_that_was_changed_is_a_note(tmp_path, monkeypatch):
    given = "import numpy as np\n\n\ndef half(x: np.ndarray):\n    return x / 2"
    course = small_lesson.install(monkeypatch, tmp_path, small_lesson.SOURCE.replace("import numpy as np", given))
    content = course.pristine(small_lesson.NAME)
    cell = next(cell for cell in content["cells"] if "def half(" in "".join(cell["source"]))
    cell["source"] = "import json\n" + "".join(cell["source"]).replace("(x: np.ndarray)", "(x)")
    submission = read_submission(course, toy.write(tmp_path / "01.ipynb", content))
    assert any(
        note.endswith(
            "belongs to the lesson: the course's copy ran, followed by the lines that were added, with its own `half`."
        )
        for note in submission.plan(small_lesson.NAME).notes
    )


def test_another_lesson_s_answers_in_a_notebook_are_a_note(tmp_path):
    content, other = mixing_course.notebook("02_logs"), COURSE.pristine("03_torch")
    content["cells"] += [cell for cell in other["cells"] if cell["cell_type"] == "code"]
    submission = read_submission(COURSE, toy.write(tmp_path / "02_logs.ipynb", content))
    assert submission.plan("02_logs").notes == (
        "02_logs.ipynb has answers of lesson 03_torch, too, which count in a notebook of its own: mix_torch, Mixer, twice.",
    )


def test_an_exercise_s_cell_that_became_markdown_is_a_note(tmp_path):
    content = toy.solved()
    number, cell = next((n, c) for n, c in enumerate(content["cells"], 1) if c["id"] == "exercise-double")
    cell["cell_type"] = "markdown"
    plan = plan_of(tmp_path, content)
    assert "double" not in plan.owners
    says = f"Cell {number}, that of double, is no code cell any more and is not run: make it one again (Esc, then Y)."
    assert plan.notes == (says,)


def test_a_cell_whose_answer_stands_below_a_magic_is_named(tmp_path):
    plan = plan_of(tmp_path, toy.solved(double="%%timeit\ndef double(x): return 2 * x"))
    assert "cell 5 begins with `%%timeit`, below which nothing is defined that lasts." in plan.missing("double").message


def test_given_cells_come_from_the_course(tmp_path):
    content = toy.solved()
    content["cells"][3]["source"] = "OFFSET = 100"
    plan = plan_of(tmp_path, content)
    assert [cell.text for cell in plan.cells if "OFFSET =" in cell.text] == ["OFFSET = 0"]


def test_what_a_learner_adds_to_a_given_cell_runs_after_the_course_s_copy(tmp_path):
    content = toy.solved()
    content["cells"][1]["source"] = (
        "import math\nimport numpy as np\nprint(np.pi)\n@math.foo\ndef helper():\n    return 1"
    )
    plan = plan_of(tmp_path, content)
    assert plan.cells[0].text.startswith("import numpy")
    added = plan.cells[1]
    assert added.own and added.text.split("\n") == ["import math", "", "", "@math.foo", "def helper():", "    return 1"]
    assert any("Cell 2 belongs to the lesson" in note for note in plan.notes)


def test_demonstrations_checks_and_payoffs_do_not_run(tmp_path):
    content = toy.solved()
    content["cells"][2]["source"] = "print('a longer demonstration')\nwhile True: pass"
    content["cells"][5]["source"] = "check(double)\nprint(double(3))"
    assert len(plan_of(tmp_path, content).cells) == 5


def test_a_changed_demonstration_runs_where_another_cell_needs_it(tmp_path):
    content = toy.solved(double="def double(x):\n    return times(x, 2)")
    content["cells"][2]["source"] = "def times(x, n):\n    return n * x"
    assert any("def times" in cell.text for cell in plan_of(tmp_path, content).cells)


def test_cells_that_the_learner_added_run_at_their_place(tmp_path):
    content = toy.solved()
    content["cells"].insert(7, toy.code("helper = 3"))
    assert [cell.text for cell in plan_of(tmp_path, content).cells][3] == "helper = 3"


def test_without_metadata_and_ids_cells_are_found_by_what_they_define(tmp_path):
    content = toy.notebook([toy.code("".join(cell["source"])) for cell in toy.solved()["cells"]], "")
    plan = plan_of(tmp_path, content, "homework.ipynb")
    assert set(plan.owners) == set(toy.EXERCISES)
    assert [cell.text for cell in plan.cells if not cell.own][1] == "OFFSET = 0"
    assert not any("print(np.pi)" in cell.text or cell.text == "check(double)" for cell in plan.cells)


def test_all_functions_in_one_cell(tmp_path):
    plan = plan_of(tmp_path, toy.notebook([toy.code("\n".join(toy.RIGHT.values()))], ""), "x.ipynb")
    assert set(plan.owners.values()) == {2}  # after both given cells


def test_imports_come_first_even_where_the_learner_s_cell_stands_above_them(tmp_path):
    content = toy.solved()
    content["cells"].insert(0, toy.code("size = np.zeros(3)"))
    assert plan_of(tmp_path, content).cells[0].text.startswith("import numpy")


def test_the_last_definition_counts_and_the_report_says_so(tmp_path):
    content = toy.solved()
    content["cells"].append(toy.code("def double(x):\n    return x + x"))
    plan = plan_of(tmp_path, content)
    assert owner_text(plan, "double").endswith("return x + x")
    assert plan.notes == ("double is defined in cells 5 and 10; the last of them, cell 10, counts.",)


def test_a_missing_definition_is_named_with_what_its_cell_begins_with(tmp_path):
    content = toy.solved()
    del content["cells"][7]
    plan = plan_of(tmp_path, content)
    assert "row_sums" not in plan.owners
    expected = "row_sums is missing: no cell of 01_toy.ipynb defines it; its cell begins with `def row_sums(x):`."
    assert plan.missing("row_sums").message == expected


@pytest.mark.parametrize(
    "text",
    [
        "double = lambda x: x",
        "(double, other) = (1, 2)",
        "from math import sqrt as double",
        "if True:\n    def double(x): return x",
        "class double: pass",
        "def double(x:\n  return",
        "with open('x') as double: pass",
        "ｄouble = 3",
    ],
)
def test_ways_to_define_a_name(tmp_path, text):
    plan = plan_of(tmp_path, toy.notebook([toy.code(text)]))
    assert plan.owners == {"double": 2}


def test_a_name_inside_a_function_is_no_definition(tmp_path):
    plan = plan_of(
        tmp_path, toy.notebook([toy.code("def f():\n    double = 1\n[double for double in ()]\nf(double=3)")])
    )
    assert plan.owners == {}


def test_magics_are_taken_out_and_said(tmp_path):
    content = toy.solved(double="%%time\n!pip install x\n" + toy.RIGHT["double"])
    plan = plan_of(tmp_path, content)
    assert owner_text(plan, "double") == "\npass\n" + toy.RIGHT["double"]
    assert plan.notes == ("Magics and shell commands are not run while grading (cell 5).",)


def test_a_cell_that_is_indented_as_a_whole_runs_as_in_a_kernel(tmp_path):
    plan = plan_of(tmp_path, toy.solved(double="\n" + textwrap.indent(toy.RIGHT["double"], "    ")))
    assert (owner_text(plan, "double"), plan.notes) == ("\n" + toy.RIGHT["double"], ())


# --- which lesson -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file", ["01_toy.ipynb", "01_toy-Copy1.ipynb", "01.ipynb", "01 ada.ipynb", "lesson 01.ipynb", "ada_01_TOY.ipynb"]
)
def test_the_lesson_by_the_file_s_name(tmp_path, file):
    plan_of(tmp_path, toy.notebook([toy.code("x = 1")], ""), file)


def test_a_notebook_of_no_lesson_has_every_exercise_missing(tmp_path):
    submission = read_submission(
        open_course(), toy.write(tmp_path / "essay.ipynb", toy.notebook([toy.code("x = 1")], ""))
    )
    assert list(submission.lessons) == [toy.NAME, "02_second"]
    assert "essay.ipynb belongs to no lesson" in submission.message
    asked = read_submission(open_course(), tmp_path / "essay.ipynb", lessons=["01"])
    assert asked.message == "" and list(asked.lessons) == [toy.NAME]


def test_lessons_asked_for_and_not_handed_in_are_missing(tmp_path):
    toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    submission = read_submission(open_course(), tmp_path, lessons=["01_toy", "02"])
    assert list(submission.lessons) == [toy.NAME, "02_second"]
    absent = submission.plan("02_second").missing("nobody")
    assert (
        absent.message == "nobody is missing. No notebook of lesson 02_second was handed in."
        and absent.lesson == "02_second"
    )
    with pytest.raises(InputError, match="There is no lesson '99'"):
        read_submission(open_course(), tmp_path, lessons=["99"])


# --- folders ------------------------------------------------------------------------------------


def test_a_folder_of_notebooks_and_its_notebooks_folder(tmp_path):
    ada = tmp_path / "ada"
    (ada / "notebooks").mkdir(parents=True)
    (ada / "notebooks" / ".ipynb_checkpoints").mkdir()
    toy.write(ada / "notebooks" / "01_toy.ipynb", toy.solved())
    toy.write(ada / "notebooks" / ".ipynb_checkpoints" / "02_second.ipynb", toy.solved())
    submission = read_submission(open_course(), ada)
    assert (submission.name, list(submission.lessons)) == ("ada", [toy.NAME])


OTHER = "def double(x):\n    return x + x"
SCRATCH = toy.code("print(double(2))  # tried")
HALF = {"double": toy.RIGHT["double"]}
COPIES = {  # what lies there: (solutions, saved at, in seconds); the first counts, and why the second does not
    "untouched and newer, beside": (
        {"week1/01_toy.ipynb": (toy.RIGHT, 100), "week2/01_toy.ipynb": ({}, 900)},
        "nothing was attempted in it",
    ),
    "untouched, newer, by its own name": (
        {"01_toy-Copy1.ipynb": (toy.RIGHT, 100), "01_toy.ipynb": ({}, 900)},
        "nothing was attempted in it",
    ),
    "untouched, newer, nearer": (
        {"old/01_toy.ipynb": (HALF, 100), "01_toy.ipynb": ({}, 900)},
        "nothing was attempted in it",
    ),
    "of two with work the newest, deeper": (
        {"new/01_toy.ipynb": (HALF, 900), "01_toy.ipynb": (toy.RIGHT, 100)},
        "saved earlier",
    ),
    "the newest by another name": (
        {"01_toy_final.ipynb": (HALF, 900), "01_toy.ipynb": (toy.RIGHT, 100)},
        "saved earlier",
    ),
    "the same time, more inside": (
        {"01_toy_final.ipynb": (toy.RIGHT, 100), "01_toy.ipynb": (HALF, 100)},
        "saved at the same time, with fewer exercises attempted",
    ),
    "unpacked in any order": (
        {"z/01_toy.ipynb": (toy.RIGHT, 100), "a/01_toy.ipynb": (HALF, 101)},
        "saved at the same time, with fewer exercises attempted",
    ),
    "the same time and as much": (
        {"01_toy.ipynb": (HALF, 100), "01_toy-Copy1.ipynb": ({"double": OTHER}, 100)},
        "saved at the same time, but without the lesson's own name",
    ),
    "the same time, as much, the same name": (
        {"01_toy.ipynb": (HALF, 100), "b/01_toy.ipynb": ({"double": OTHER}, 100)},
        "saved at the same time, but deeper in the folders",
    ),
}


def saved(path, solutions, seconds):
    path.parent.mkdir(parents=True, exist_ok=True)
    toy.write(path, toy.solved(**{**toy.STUBS, **solutions}))
    os.utime(path, (seconds, seconds))


@pytest.mark.parametrize("files, why", COPIES.values(), ids=COPIES)
def test_the_newest_copy_with_work_in_it_counts_and_the_choice_is_told(tmp_path, files, why):
    for place, about in files.items():
        saved(tmp_path / place, *about)
    best, other = files
    submission = read_submission(open_course(), tmp_path)
    plan = submission.plan(toy.NAME)
    assert owner_text(plan, "double") == files[best][0]["double"] and plan.notes == ()
    assert submission.message == (
        f"There is more than one notebook of lesson 01_toy: {best} counts. Set aside: {other} ({why}). "
        "Hand in one notebook of each lesson, as 01_toy.ipynb."
    )
    report = grade_of(submission)
    junit_of = junit.render(Report((report,), 7))
    assert ElementTree.fromstring(junit_of).find(".//error") is None
    everywhere = (
        feedback.page(report, "ada", "toy"),
        class_page.render(open_course(), Report((report, report), 7)),
        terminal.render(Report((report,), 7)),
        grades_csv.render(Report((report,), 7)),
    )
    for told in everywhere:
        said = " ".join(html.unescape(re.sub(r"<[^>]+>", "", told)).split())
        assert f"{best} counts. Set aside: {other} ({why})" in said


@pytest.mark.parametrize(
    "touch",
    [lambda text: text + "\n# TODO", lambda text: text.replace("\n", "  \n"), lambda text: ""],
    ids=["a comment", "spaces", "emptied"],
)
def test_comments_spaces_and_scratch_cells_are_no_attempt(tmp_path, touch):
    saved(tmp_path / "week1/01_toy.ipynb", toy.RIGHT, 100)
    stubs = {name: touch(text) for name, text in toy.STUBS.items()}
    untouched = toy.solved(**stubs)
    untouched["cells"].append(SCRATCH)
    toy.write(tmp_path / "01_toy.ipynb", untouched)
    assert (
        "week1/01_toy.ipynb counts. Set aside: 01_toy.ipynb (nothing was attempted in it)"
        in read_submission(open_course(), tmp_path).message
    )


def test_an_answer_in_a_cell_of_one_s_own_is_an_attempt(tmp_path):
    """As in a notebook without the course's metadata."""
    toy.write(tmp_path / "01_toy.ipynb", toy.pristine())
    toy.write(tmp_path / "01 mine.ipynb", toy.notebook([toy.code(OTHER)], ""))
    os.utime(tmp_path / "01 mine.ipynb", (1, 1))
    assert owner_text(read_submission(open_course(), tmp_path).plan(toy.NAME), "double") == OTHER


def test_a_newer_copy_that_cannot_be_read_is_told(tmp_path):
    saved(tmp_path / "01_toy-old.ipynb", toy.RIGHT, 100)
    (tmp_path / "01_toy.ipynb").write_text("{")
    submission = read_submission(open_course(), tmp_path)
    assert (
        submission.plan(toy.NAME).owners
        and "01_toy-old.ipynb counts. Set aside: 01_toy.ipynb (cannot be read)." in submission.message
    )
    saved(tmp_path / "01_toy-old.ipynb", {}, 100)
    assert read_submission(open_course(), tmp_path).message.startswith("01_toy.ipynb is not JSON"), (
        "an untouched copy says nothing about the work"
    )


def test_the_same_work_twice_is_a_note(tmp_path):
    for place in ("01_toy.ipynb", "b/01_toy.ipynb"):
        saved(tmp_path / place, toy.RIGHT, 100)
    submission = read_submission(open_course(), tmp_path)
    assert submission.message == "" and submission.plan(toy.NAME).notes == (
        "There is more than one notebook of lesson 01_toy: 01_toy.ipynb counts. Set aside: b/01_toy.ipynb (the same code).",
    )


@pytest.mark.parametrize(
    "places", [("01_toy\u200b.ipynb", "01_toy\u200c.ipynb"), ("x" * 220 + "/a.ipynb", "x" * 220 + "/b.ipynb")]
)
def test_copies_whose_names_read_alike_are_two(tmp_path, places):
    for place in places:
        saved(tmp_path / place, toy.RIGHT, 100)
    submission = read_submission(open_course(), tmp_path)
    assert submission.plan(toy.NAME).owners and "(the same code)." in submission.plan(toy.NAME).notes[0]


def test_lessons_are_taken_from_every_level_the_nearest_first(tmp_path):
    """Beside it a lesson of another week in a folder of its own, an older copy, and one in a folder called solutions."""
    x = tmp_path / "x"
    for place in ("week2", "old", "solutions"):
        (x / place).mkdir(parents=True)
    toy.write(x / "01_toy.ipynb", toy.solved())
    toy.write(x / "old" / "01_toy.ipynb", toy.pristine())
    toy.write(x / "week2" / "02_second.ipynb", toy.notebook([toy.code("def nobody(x): return 1")], "02_second"))
    os.utime(x / "old" / "01_toy.ipynb", (1, 1))
    submission = read_submission(open_course(), x)
    assert submission.lessons == (toy.NAME, "02_second")
    plan = submission.plan(toy.NAME)
    assert owner_text(plan, "double") == toy.RIGHT["double"]
    assert (
        plan.notes == ()
        and "01_toy.ipynb counts. Set aside: old/01_toy.ipynb (nothing was attempted in it)." in submission.message
    )
    assert submission.plan("02_second").owners == {"nobody": 0}
    (x / "week2").rename(tmp_path / "away")
    toy.write(x / "solutions" / "02_second.ipynb", toy.notebook([toy.code("def nobody(x): return 2")], "02_second"))
    assert owner_text(read_submission(open_course(), x).plan("02_second"), "nobody").endswith("return 2")
    ours = toy.notebook([toy.code("def nobody(x): return 3")], "02_second")
    ours["metadata"]["grader"]["built_from"] = "0123456789ab"
    toy.write(x / "solutions" / "02_second.ipynb", ours)
    submission = read_submission(open_course(), x, lessons=["01", "02"])
    assert submission.plan("02_second").owners == {}
    assert any("1 notebook of the course's own solutions" in note for note in submission.plan(toy.NAME).notes)


def grade_of(submission) -> SubmissionReport:
    """Its report, with no exercise attempted."""
    verdict = Verdict("double", "not_started", "double is not written yet.")
    return SubmissionReport("ada", "p", (LessonReport(toy.NAME, (verdict,), {"double": 2}),), submission.message)


def test_links_in_the_folder_are_not_read(tmp_path):
    secret = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    ada = tmp_path / "ada"
    ada.mkdir()
    (ada / "01_toy.ipynb").symlink_to(secret)
    (ada / "02_second.ipynb").write_text(json.dumps(toy.notebook([], "02_second")))
    submission = read_submission(open_course(), ada)
    assert list(submission.lessons) == ["02_second"]
    note = f"01_toy.ipynb is a link to {secret}; links are not followed, so it was not read."
    assert submission.plan("02_second").notes == (note,)


def test_paths_that_cannot_be_graded(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "essay.txt").write_text("x")
    for path, sentence in (
        (tmp_path / "nowhere", "is not there"),
        (tmp_path / "empty", "contains no notebook"),
        (tmp_path / "essay.txt", "is not a notebook"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_submission(open_course(), path)


# --- what cannot be read ------------------------------------------------------------------------

UNREADABLE = {
    "empty": (b"", "is empty"),
    "broken": (b'{"cells": [', "is not JSON \\(line 1"),
    "deep": (b"[" * 500_000, "nested too deeply"),
    "deep dicts": (b'{"a":' * 500_000, "nested too deeply"),
    "a list": (b"[1, 2]", "no list called cells"),
    "a number": (b"1e400", "no list called cells"),
    "digits": (b"1" * 10_000, "is not JSON"),
    "cells is a dict": (b'{"cells": {}}', "no list called cells"),
    "zip": (b"PK\x03\x04\xff\xfe\x00\x00\x81", "is not JSON"),
    "too many cells": (json.dumps({"cells": [{"cell_type": "code"}] * 20_001}).encode(), "has 20001 cells"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_notebook_is_a_result_that_says_what_to_mend(tmp_path, kind):
    data, sentence = UNREADABLE[kind]
    submission = read_submission(open_course(), toy.write(tmp_path / "01_toy.ipynb", data))
    plan = submission.plan(toy.NAME)
    assert submission.lessons == (toy.NAME,) and plan.own_texts == ()
    with pytest.raises(ipynb.Unreadable, match=sentence) as raised:
        ipynb.read_notebook(tmp_path / "01_toy.ipynb")
    assert submission.message == str(raised.value)
    assert (
        plan.missing("double").message == f"double is missing. {raised.value.summary}"
        and not plan.missing("double").lesson
    )


def test_a_notebook_that_is_too_large_is_not_opened(tmp_path, monkeypatch):
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    monkeypatch.setattr(ipynb, "MAX_BYTES", 1000)
    assert "without its outputs, more than" in read_submission(open_course(), path).message
    monkeypatch.setattr(ipynb, "MAX_FILE_BYTES", 2000)
    assert "clear its outputs" in read_submission(open_course(), path).message.lower()


LARGE = {  # outputs, pasted images and the state of widgets
    "a picture, and a pasted one": {
        "outputs": [{"data": {"image/png": "A" * (17 << 20)}}],
        "attachments": {"a.png": {"image/png": "A" * (17 << 20)}},
    },
    "a plot of many numbers": {
        "outputs": [{"output_type": "display_data", "data": {"x": [0] * (ipynb.MAX_MARKS + 1)}}]
    },
    "text like a notebook's": {
        "outputs": [{"output_type": "stream", "text": ['{"outputs": [}]', "\\", '\\"', "]"] * 510_000}]
    },
}


@pytest.mark.parametrize("what", LARGE)
def test_a_notebook_that_is_large_in_its_outputs_alone_is_read_without_them(tmp_path, what):
    content = toy.solved(double='# "outputs": [\n' + toy.RIGHT["double"])
    content["cells"][-1].update(LARGE[what])
    (tmp_path / "class" / "ada").mkdir(parents=True)
    toy.write(tmp_path / "class" / "ada" / "01_toy.ipynb", content)
    (tmp_path / "laid").mkdir()
    packed = pack(ClassEntry("ada", "ada", tmp_path / "class" / "ada"))
    with Reader() as reader:
        submission = read_submission(open_course(), unpack(packed, tmp_path / "laid"), reader=reader)
        plan = submission.plan(toy.NAME)
    assert submission.message == "" and '# "outputs": [' in owner_text(plan, "double")
    assert len(plan.notes) == 1, plan.notes
    assert "most of it in outputs; it was read without them." in plan.notes[0]


@pytest.mark.parametrize(
    "data, left",
    [
        (b'{"outputs": [1, {"a": "]"}], "b": 2}', b'{"outputs": [], "b": 2}'),
        (b'{"outputs" :\n["\\"]"], "outputs": {}}', b'{"outputs" :\n[], "outputs": {}}'),
        (b'["\\"outputs\\": [1]"]', b'["\\"outputs\\": [1]"]'),
        (b'{"a": "outputs", "widgets": {"b": {}}}', b'{"a": "outputs", "widgets": {}}'),
        (b'{"outputs": "x"}', b'{"outputs": "x"}'),
        (b'{"outputs": [1', b'{"outputs": [1'),
        (b'{"outputs": ["', b'{"outputs": ["'),
        (b'"outputs', b'"outputs'),
        (b"", b""),
    ],
)
def test_outputs_are_cut_out_of_the_bytes(data, left):
    assert ipynb.without_outputs(data) == left


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "01_toy.ipynb")
    with pytest.raises(InputError):
        read_submission(open_course(), tmp_path / "01_toy.ipynb")
    assert "not a regular file" in read_submission(open_course(), tmp_path).message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_read(tmp_path, encoding):
    text = json.dumps(toy.solved(double="# naïve\n" + toy.RIGHT["double"]), ensure_ascii=False)
    plan = plan_of(tmp_path, text.encode(encoding))
    assert "# naïve" in owner_text(plan, "double") and plan.notes == ()


def test_latin_1_is_read_and_said(tmp_path):
    text = json.dumps(toy.solved(double="# naïve\n" + toy.RIGHT["double"]), ensure_ascii=False)
    plan = plan_of(tmp_path, text.encode("latin-1"))
    assert "# naïve" in owner_text(plan, "double") and "save it as UTF-8" in plan.notes[0]


def test_the_older_format_is_read(tmp_path):
    cells = [{"cell_type": "code", "input": text, "language": "python"} for text in toy.RIGHT.values()]
    plan = plan_of(tmp_path, {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}, 3, {"cells": None}]})
    assert set(plan.owners) == set(toy.EXERCISES)


def test_strange_cells_are_passed_over(tmp_path):
    strange = [
        None,
        3,
        [],
        {},
        {"cell_type": []},
        {"cell_type": "code"},
        {"cell_type": "code", "source": [1, None, "x = 1"]},
        {"cell_type": "code", "source": 7, "metadata": "no", "id": 4},
        {"cell_type": "code", "source": "y = '\ud800'", "metadata": {"grader": {"role": [], "exercise": {}}}},
        {"cell_type": "code", "source": "", "metadata": {"grader": {"role": "exercise", "exercise": "unknown"}}},
    ]
    content = toy.solved()
    content["cells"] += strange
    content["metadata"]["grader"]["lesson"] = {"not": "a string"}
    plan = plan_of(tmp_path, content)
    assert set(plan.owners) == set(toy.EXERCISES) and plan.cells[-1].text == "y = '?'"


def test_ten_thousand_cells_are_planned(tmp_path):
    content = toy.solved()
    content["cells"] += [toy.code(f"def double(x): return {i}") for i in range(10_000)]
    plan = plan_of(tmp_path, content)
    assert len(plan.cells) == 10_005 and len(plan.notes[0]) < 300


def test_of_more_code_than_is_read_the_longest_cells_are_left_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(ipynb, "MAX_CODE", 1000)
    content = toy.solved()
    content["cells"].insert(0, toy.code("DATA = '" + "0" * 900 + "'"))
    content["cells"] += [toy.code("more = '" + "0" * 900 + "'")] * 30
    plan = plan_of(tmp_path, content)
    assert set(plan.owners) == set(toy.EXERCISES) and "0000" not in "".join(plan.own_texts)
    numbers = ", ".join(map(str, [1, *range(11, 30)]))
    assert plan.notes == (
        f"01_toy.ipynb has more code than the 1,000 characters that are read; not read and not run: cell {numbers}, …. "
        "Keep data in files, and delete cells that you do not need.",
    )


def test_of_many_notes_the_first_are_kept(tmp_path):
    content = toy.solved()
    text = {**toy.code("text", "exercise", "double"), "cell_type": "markdown"}
    content["cells"] += [text] * 1_000
    notes = plan_of(tmp_path, content).notes
    assert len(notes) == 20 and notes[0].startswith("Cell ") and notes[-1] == "There are 981 more notes like these."


@pytest.mark.parametrize(
    "text",
    [
        "-" * 100_000 + "1",
        "(" * 100_000,
        "a" + "+1" * 90_000,
        "x = '''" + "a" * 100_000,
        "%" + " " * 100_000,
        " " * 150_000 + "= !",
        "\x00",
        "lambda:" * 20_000 + "1",
        "=" * 100_000,
    ],
)
def test_code_that_breaks_parsers_is_only_code(tmp_path, text):
    content = toy.solved()
    content["cells"].append(toy.code(text))
    assert set(plan_of(tmp_path, content).owners) == set(toy.EXERCISES)


# --- what a learner changed in a given cell -----------------------------------------------------------


@pytest.mark.parametrize(
    ("added", "kept"),
    [
        ("import math, numpy as np, time", ["import math, time"]),
        ("from math import (pi,\n    sqrt as OFFSET,\n    tau)", ["from math import pi, tau", "", ""]),
        ("from math import pi, tau", ["from math import pi, tau"]),
        ("import numpy.linalg", ["import numpy.linalg"]),
        ("import numpy as np", []),
        ("x = 3; import numpy as np, math; y = 4", ["x = 3; import numpy as np, math; y = 4"]),
        ("from __future__ import annotations", ["from __future__ import annotations"]),
        (
            "class Mine: pass\nMine.forward = len\nnp.pi = 3\nprint(Mine)",
            ["class Mine: pass", "Mine.forward = len", "", ""],
        ),
        (
            "held = []\nheld.append(1)\nnp.seterr()\nif held:\n    held[0] = 2",
            ["held = []", "held.append(1)", "", "if held:", "    held[0] = 2"],
        ),
        (
            "def f(): pass\nsetattr(f, 'size', 3)\nf.size += 1\ndel f.size",
            ["def f(): pass", "setattr(f, 'size', 3)", "f.size += 1", "del f.size"],
        ),
        ("await g()\nx = await g()", ["", "x = await g()"]),
    ],
)
def test_of_a_changed_given_cell_what_is_new_is_kept(tmp_path, added, kept):
    content = toy.solved()
    content["cells"][1]["source"] = added
    own = [cell.text for cell in plan_of(tmp_path, content).cells if cell.own and cell.label == "cell 2"]
    assert own == (["\n".join(kept)] if kept else [])
