"""Predictions that are clicked: where the course asks for a choice, what a choice shows, and what is kept of it."""

from __future__ import annotations

import json

import pytest

from grader.authoring.notebook_run import WIDGET, NotebookRun
from grader.course import percent
from grader.notebook import api, predictions, room_client
from grader.notebook.record import Record
from tests import small_lesson
from tests.mixing_course import COURSE

CALL = 'predict("01.1", "ABC")'


@pytest.fixture
def record(tmp_path, monkeypatch) -> Record:
    made = Record(tmp_path / "progress.json")
    monkeypatch.setattr(api, "_record", lambda: made)
    return made


@pytest.mark.parametrize(
    "question, letters",
    [
        ("Which?\n\n- **A** one\n- **B** two\n", "ABC"[:2]),
        ("Which?\n\n- **A** one\n  over two lines\n- **B** two\n- **C** three", "ABC"),
        ("What comes?", ""),
        ("Of **A** and **B**?\n\n- one\n- two", ""),
        ("- **B** two\n- **A** one", ""),
        ("- **A** alone", ""),
    ],
)
def test_options_are_a_list_of_letters(question, letters):
    assert percent.options(question) == letters


ASKED = """
# %% [markdown]
# @predict
#
# What is twice 1?
#
# - **A** 1
# - **B** 2
#
# @answer
#
# **B**: 1 + 1 is 2.

# %% [markdown]
# @predict
#
# What is twice 0?
#
# @answer
#
# 0.

# %% [markdown]
# @predict
#
# What is twice 3?
#
# - **A** 6
# - **B** 9
# - **C** 3
#
# @answer
#
# **A**: 3 + 3 is 6.
"""


def test_below_each_prediction_with_options_is_its_own_cell(monkeypatch, tmp_path):
    course = small_lesson.install(monkeypatch, tmp_path, small_lesson.BODY + ASKED + small_lesson.END)
    cells = course.handout_notebook(small_lesson.NAME)["cells"]
    asked = [at for at, cell in enumerate(cells) if percent.is_folded("".join(cell["source"]))]
    calls = {at: cell for at, cell in enumerate(cells) if "predict(" in "".join(cell["source"])}
    assert len(asked) == 3 and list(calls) == [asked[0] + 1, asked[2] + 1]
    for call, arguments in zip(calls.values(), ('"01.1", "AB"', '"01.3", "ABC"'), strict=True):
        assert "".join(call["source"]) == f"from grader import predict\n\npredict({arguments})"
        assert call["metadata"]["grader"]["role"] == "demo"  # grading does not run it


def test_a_choice_shows_the_answer_and_the_first_one_counts(record):
    assert api.predict("01.1", "ABC").text.startswith("Choose A, B or C, then unfold the answer above.")
    assert not record.path.exists()
    shown = api.predict("01.1", "ABC", "b")
    assert shown.text.startswith("**You said B.**\n\n**C**: both dot products are 1.")
    assert api.predict("01.1", "ABC").text == api.predict("01.1", "ABC", "C").text == shown.text
    assert json.loads(record.path.read_text())["predictions"] == {"01_mixing.1": {"choice": "B"}}
    assert set(shown._repr_mimebundle_()) == {"text/plain", "text/markdown"}  # Markdown has its formulas set
    record.add_attempt("shares", "x", "failed")
    assert Record(record.path).prediction("01_mixing.1") == "B" and Record(record.path).prediction("01_mixing.5") == ""


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "takes a prediction's number"),
        ((1.1, "ABC"), "takes a prediction's number"),
        (("1", "ABC"), "takes a prediction's number"),
        (("01.1",), "takes a prediction's number"),
        (("01.1", 3), "takes a prediction's number"),
        (("01.1", "ABC", "D"), "The options of this prediction are A, B, C"),
        (("01.1", "ABC", 2), "The options of this prediction are A, B, C"),
        (("01.1", "ABC", "AB"), "The options of this prediction are A, B, C"),
    ],
)
def test_what_is_no_prediction_or_no_option_gets_a_sentence(record, arguments, said):
    assert said in api.predict(*arguments).text and not record.path.exists()


@pytest.mark.parametrize("predicted", [None, [], "B", {"01.1": None}, {"01.1": {"choice": 7}}, {"01.1": []}])
def test_a_record_that_was_damaged_has_no_choice_and_takes_one(record, predicted):
    record.path.write_text(json.dumps({"format": 1, "exercises": {}, "predictions": predicted}))
    assert record.prediction("01.1") == ""
    record.add_prediction("01.2", "A")
    assert record.prediction("01.2") == "A"


@pytest.mark.parametrize("number", ["01.9", "01.1", "77.1"])
def test_without_the_text_the_answer_is_the_folded_one(record, monkeypatch, number):
    if number == "01.1":
        monkeypatch.setattr(COURSE, "cells", lambda name: (_ for _ in ()).throw(FileNotFoundError(name)))
    assert api.predict(number, "AB", "A").text == "**You said A.**\n\nThe answer is folded away above."


def test_a_press_keeps_the_choice_and_says_so(record, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(predictions.toolbar, "can_show_buttons", lambda: True)
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: bundles.append(bundle))
    buttons = api.predict("01.1", "ABC")
    buttons._ipython_display_()
    (bundle,) = bundles
    assert (
        WIDGET in bundle and "then unfold the answer above" in bundle["text/html"]
    )  # in a saved notebook, without a kernel
    row = buttons._row.children
    assert [(button.description, button.tooltip) for button in row] == [
        ("A", "Predict A"),
        ("B", "Predict B"),
        ("C", "Predict C"),
    ]
    row[1].click()
    assert (
        record.prediction("01_mixing.1") == "B"
        and buttons._status.value == '<p role="status">You said B. The answer is below.</p>'
    )
    row[2].click()
    assert (
        record.prediction("01_mixing.1") == "B"
        and "You chose C now, and the first choice is kept." in buttons._status.value
    )
    (output,) = buttons._output.outputs
    assert output["data"]["text/markdown"].startswith("**You said B.**\n\n**C**: both")


def test_who_only_executes_a_notebook_stores_no_widget(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    with NotebookRun(COURSE) as kernel:
        _, outputs = kernel.run(f"from grader import predict\n\n{CALL}", 60)
    (output,) = outputs
    assert WIDGET not in output["data"] and "Choose A, B or C" in output["data"]["text/plain"]


def test_the_room_hears_of_the_first_choice_alone(record, monkeypatch):
    told = []
    monkeypatch.setattr(room_client, "send_prediction", lambda *said: told.append(said))
    for letter in ("b", "C"):
        predictions.display("01.1", "ABC", letter, record)
    assert told == [("01_mixing.1", "B")]
