"""A prediction's options as buttons: the first choice is kept in the learner's record, and the answer is shown beside it.

The cell with the call stands below the prediction, whose answer is also folded away there: where no widget runs, that is how to read it.
"""

from __future__ import annotations

import re
from typing import Any

from grader.course import prose
from grader.notebook import room, toolbar
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.showing import Shown, sentence

EXAMPLE = 'predict("01.1", "ABC")'
_NUMBER = re.compile(r"(\d\d)\.([1-9])")


def shown(number: Any, options: Any, choice: Any, record: Record) -> Shown:
    """What predict() gives: buttons, or the answer once an option was chosen.

    number: '01.2' is lesson 01's second prediction. options: its letters. choice: one of them, for who has no buttons.
    """
    if not (isinstance(number, str) and _NUMBER.fullmatch(number) and isinstance(options, str) and options.isalpha()):
        return sentence(f"predict takes a prediction's number and the letters of its options, as in `{EXAMPLE}`.")
    as_in = f'as in `predict("{number}", "{options}", "{options[0]}")`.'
    if choice and not (isinstance(choice, str) and len(choice) == 1 and choice.upper() in options):
        return sentence(f"The options of this prediction are {', '.join(options)}; choose one, {as_in}")
    if choice and not record.prediction(_key(number)):
        _keep(number, choice.upper(), record)
    if record.prediction(_key(number)):
        return Answer(number, record)
    return Buttons(number, options, as_in, record) if toolbar.possible() else _words(options, as_in)


def _words(options: str, as_in: str) -> Shown:
    """In place of the buttons."""
    choose = f"Choose {', '.join(options[:-1])} or {options[-1]}, then unfold the answer above."
    return sentence(f"{choose} To keep your choice, add it to the call, {as_in}")


class Answer(Shown):
    """What the learner chose, and the prediction's answer."""

    def __init__(self, number: str, record: Record) -> None:
        prediction = _prediction(number)
        self.status = f"You said {record.prediction(_key(number))}."
        parts = [f"**{self.status}**", prediction.answer if prediction else "The answer is folded away above."]
        if prediction and prediction.wrong:
            parts.append(prediction.wrong)
        self.markdown = "\n\n".join(parts)
        plain = sentence(self.markdown, more=record.take_notes())
        super().__init__(plain.text, plain.html)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/markdown": self.markdown}  # Markdown, for its formulas


def _keep(number: str, letter: str, record: Record) -> None:
    record.predicted(_key(number), letter)
    room.send_prediction(_key(number), letter)


def _key(number: str) -> str:
    """By what the record knows a prediction: '01_three_tokens.2', since lessons of another course have the same numbers."""
    lesson, at = number.split(".")
    return f"{next((name for name in kernel_course().lessons() if name.startswith(f'{lesson}_')), lesson)}.{at}"


def _prediction(number: str) -> prose.Prediction | None:
    """A prediction's text as its notebook has it; None where this course's copy has no such text."""
    name, at = _key(number).split(".")
    try:
        values = iter(kernel_course().quoted_values(name))
        texts = [
            prose.filled(cell.text, values)
            for cell in prose.learner_cells(kernel_course().cells(name))
            if cell.role == "prose"
        ]
        return prose.prediction([text for text in texts if prose.is_prediction(text)][int(at) - 1])
    except (OSError, LookupError, prose.MissingValue):
        return None


class Buttons(Shown):
    """A button for each option; a press keeps the choice and shows the answer below."""

    def __init__(self, number: str, options: str, as_in: str, record: Record) -> None:
        plain = _words(options, as_in)
        super().__init__(plain.text, plain.html)
        self._number, self._options, self._record = number, options, record

    def _ipython_display_(self) -> None:
        from ipywidgets import HTML, HBox, Output, VBox

        self._status, self._output = HTML(), Output()
        self._row = HBox([self._button(letter) for letter in self._options])
        toolbar.display_widget(VBox([self._row, self._status, self._output]), self)

    def _button(self, letter: str) -> Any:
        from ipywidgets import Button

        button = Button(description=letter, tooltip=f"Predict {letter}")
        button.on_click(lambda _: self._press(letter))
        return button

    def _press(self, letter: str) -> None:
        first = self._record.prediction(_key(self._number))
        if not first:
            _keep(self._number, letter, self._record)
        answer = Answer(self._number, self._record)
        late = f" You chose {letter} now, and the first choice is kept." if first and first != letter else ""
        self._status.value = f'<p role="status">{answer.status}{late} The answer is below.</p>'
        if not self._output.outputs:
            self._output.append_display_data(answer)
