"""A prediction's options as buttons: the first choice is kept in the learner's record, and the answer is shown beside it.

The cell with the call stands below the prediction, whose answer is also folded away there: where no widget runs, that is how to read it.
"""

from __future__ import annotations

import re
from typing import Any

from grader.course import percent
from grader.notebook import toolbar
from grader.notebook.display import Display, sentence
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record

EXAMPLE = 'predict("01.1", "ABC")'
_NUMBER, _OPTIONS = re.compile(r"\d\d\.[1-9]"), re.compile(r"[^\W\d_]{2,}")


def display(number: Any, options: Any, choice: Any, record: Record) -> Display:
    """What predict() gives: buttons, or the answer once an option was chosen.

    number: '01.2' is lesson 01's second prediction. options: its letters. choice: one of them, for who has no buttons.
    """
    are_texts = isinstance(number, str) and isinstance(options, str)
    if not (are_texts and _NUMBER.fullmatch(number) and _OPTIONS.fullmatch(options)):
        return sentence(f"predict takes a prediction's number and the letters of its options, as in `{EXAMPLE}`.")
    key, as_in = _key(number), f'as in `predict("{number}", "{options}", "{options[0]}")`.'
    if choice and not (isinstance(choice, str) and len(choice) == 1 and choice.upper() in options):
        return sentence(f"The options of this prediction are {', '.join(options)}; choose one, {as_in}")
    if choice:
        _keep(key, choice.upper(), record)
    if record.prediction(key):
        return _answer(key, record)
    choose = f"Choose {', '.join(options[:-1])} or {options[-1]}, then unfold the answer above."
    words = sentence(f"{choose} To keep your choice, add it to the call, {as_in}")
    return Buttons(key, options, words, record) if toolbar.can_show_buttons() else words


def _key(number: str) -> str:
    """By what the record knows a prediction: '01_three_tokens.2', since lessons of another course have the same numbers."""
    lesson, position = number.split(".")
    return f"{next((name for name in kernel_course().lessons() if name.startswith(f'{lesson}_')), lesson)}.{position}"


def _keep(key: str, letter: str, record: Record) -> None:
    """Notes a choice, and tells a room of it; the first one counts."""
    if not record.prediction(key):
        record.add_prediction(key, letter)
        from grader.notebook import room_client

        room_client.send_prediction(key, letter)


def _prediction(key: str) -> percent.Prediction | None:
    """A prediction's text as its notebook has it; None where this course's copy has no such text."""
    (name, position), course = key.split("."), kernel_course()
    try:
        return percent.predictions(course.cells(name), course.quoted_values(name))[int(position) - 1]
    except (OSError, LookupError, percent.MissingValue):
        return None


def _answer(key: str, record: Record) -> Display:
    """What the learner chose, and the prediction's answer."""
    prediction = _prediction(key)
    answer = [prediction.answer, prediction.wrong] if prediction else ["The answer is folded away above."]
    markdown = "\n\n".join(filter(None, [f"**You said {record.prediction(key)}.**", *answer]))
    plain = sentence(markdown, more=record.take_notes())
    return Display(plain.text, plain.html, markdown=markdown)


class Buttons(Display):
    """A button for each option; a press keeps the choice and shows the answer below. words: for where no widget runs."""

    def __init__(self, key: str, options: str, words: Display, record: Record) -> None:
        super().__init__(words.text, words.html)
        self._key, self._options, self._record = key, options, record

    def _ipython_display_(self) -> None:
        from ipywidgets import HTML, HBox, Output, VBox

        self._status, self._output = HTML(), Output()
        self._row = HBox([toolbar.button(letter, f"Predict {letter}", self._press) for letter in self._options])
        toolbar.show_widget(VBox([self._row, self._status, self._output]), self)

    def _press(self, button: Any) -> None:
        letter, first = button.description, self._record.prediction(self._key)
        _keep(self._key, letter, self._record)
        answer = _answer(self._key, self._record)
        late = f" You chose {letter} now, and the first choice is kept." if first and first != letter else ""
        self._status.value = f'<p role="status">You said {first or letter}.{late} The answer is below.</p>'
        if not self._output.outputs:
            self._output.append_display_data(answer)
