"""The buttons below a verdict: Hint, Replay, Explain, Solution, Reset, and a line of progress; a press shows its result below them.

They are widgets of ipywidgets, an output of their own below the verdict's. A front end that does not know widgets shows what the
verdict says in words instead, and so does a saved notebook where no kernel answers: it stores that text beside each bar.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from grader.notebook import hints, overview, replaying, resetting, solutions
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.showing import Shown, ipython, printed, sentence
from grader.notebook.target import Target
from grader.reports import html, text
from grader.reports.html import render, style

Press = Callable[[], Shown]
_bars: dict[tuple[type, str], Toolbar] = {}  # the latest of each exercise: an older one is about code that is no more


def possible() -> bool:
    """Whether somebody may press a button: in a kernel whose client can also be asked for input.

    Clients that only execute (nbval, nbclient, `grader build`) send allow_stdin false; what they store has no widgets. Colab asks
    by a channel of its own.
    """
    shell = ipython()
    request = getattr(shell, "get_parent", None)
    if request is None or not hasattr(shell, "kernel") or importlib.util.find_spec("ipywidgets") is None:
        return False
    return "google.colab" in sys.modules or bool((request() or {}).get("content", {}).get("allow_stdin"))


def shown(target: Target, verdict: Any, notes: tuple[str, ...], record: Record) -> Shown:
    """A verdict with its buttons; without any where nobody can press them, or none would do something."""
    bar = Toolbar(target, verdict, record) if possible() else None
    if bar is None or not bar.buttons:
        return printed(Shown(text.verdict(verdict, notes), html.verdict(verdict, notes), verdict))
    above = verdict
    bar.words = f"solution({target.argument}) shows the course's solution, or what opens it."
    if "hint(" in verdict.look and verdict.status not in (
        "passed",
        "could_not_grade",
    ):  # it offers calls, and the bar does so
        above, bar.words = replace(verdict, look=""), verdict.look
    return WithButtons(
        text.verdict(verdict, notes), html.verdict(above, notes), bar, verdict, text.verdict(above, notes)
    )


def reset_question(target: Target, record: Record) -> Shown:
    """What reset() shows: whether to do it, and two buttons."""
    question, bar = resetting.question(target.name, record), ResetBar(target, None, record)
    bar.words = resetting.by_code(target.name) or "There is nothing to reset in the notebook's file."
    return WithButtons(question.text, question.html, bar)


def display_widget(widget: Any, words: Shown) -> None:
    """Shows a widget as an output of the cell that runs; words: for where no widget runs."""
    from IPython.display import display

    bundle = widget._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**bundle, "text/plain": words.text, "text/html": words.html}, raw=True)


class WithButtons(Shown):
    """A verdict or a question, and the bar below it. above: the text without what the bar says in words where it has no buttons."""

    def __init__(self, text: str, html: str, bar: Toolbar, verdict: Any = None, above: str = "") -> None:
        super().__init__(text, f"<style>\n{style('toolbar.css')}</style>{html}", verdict)
        self._above, self._bar = above or text, bar

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({**self._repr_mimebundle_(), "text/plain": self._above}, raw=True)
        self._bar.display()


class Toolbar:
    """The buttons of one verdict. buttons: (label, what it does in a sentence, the press); words: what the verdict says in their place."""

    def __init__(self, target: Target, verdict: Any, record: Record) -> None:
        self._target, self._verdict, self._record = target, verdict, record
        self.words = ""
        self._hint = hints.next_level(target.name, record)
        self.buttons = list(self._actions())
        self._box: Any = None

    def _actions(self) -> Any:
        name, verdict = self._target.name, self._verdict
        if verdict.status == "could_not_grade":
            return
        if not verdict.passed:
            yield self._hint_label(), f"Shows the next hint for {name}", self._next_hint
        if replaying.possible(self._target, verdict):
            yield "Replay", f"Runs your {name} on the input for which the check failed", self._replay
        if verdict.mistakes:
            ids = "+".join(dict.fromkeys(id for one in verdict.mistakes for id in one.split("+")))
            yield f"Explain {ids.replace('+', ', ')}", "Explains the mistake at length", partial(hints.explain, ids)
        yield "Solution", f"Shows the course's solution of {name}, or what opens it", self._solution
        if verdict.status != "not_started":
            yield "Reset", f"Restores the original cell of {name}, after you confirm it", self._ask_to_reset

    # --- what a press does ------------------------------------------------------------------------------------------

    def _hint_label(self) -> str:
        return f"Hint {self._hint} of {hints.HINTS}"

    def _next_hint(self) -> Shown:
        answer = hints.hint(self._target, self._hint, self._record)
        self._hint = self._hint % hints.HINTS + 1
        self._row.children[0].description = self._hint_label()
        return answer

    def _replay(self) -> Shown:
        return replaying.run(self._target, self._verdict, ipython().user_ns)

    def _solution(self) -> Shown:
        return solutions.solution(self._target, self._record)

    def _ask_to_reset(self) -> Shown:
        from ipywidgets import HBox

        self._further.children = [HBox([self._button(*each) for each in self._answers()]).add_class("attn-bar")]
        return resetting.question(self._target.name, self._record)

    def _answers(self) -> list[tuple[str, str, Press]]:
        restore = ("Restore the original cell", "Your code is kept as a copy", self._reset)
        return [restore, ("Keep my code", "Nothing is changed", lambda: Shown("", ""))]

    def _reset(self) -> Shown:
        from ipywidgets import Output

        answer = resetting.in_the_cell(self._target.name, ipython().user_ns)
        self._further.children = [output := Output()]  # unlike an HTML widget it runs the script
        output.append_display_data(answer)
        return Shown("", "")

    # --- the widgets ------------------------------------------------------------------------------------------------

    def display(self) -> None:
        """Shows the bar as an output of the cell that runs."""
        earlier = _bars.pop(place := (type(self), self._target.name), None)
        if earlier is not None:
            earlier._empty()
        _bars[place] = self
        self._make()
        display_widget(self._box, sentence(self.words))

    def _empty(self) -> None:
        """Takes the buttons away. The box stays: JupyterLab would hide what takes its place when a cell runs again."""
        mine, self._box.children, self._further.children = self._box.children, [], []
        for widget in (*self._row.children, *mine):
            widget.close()

    def _make(self) -> None:
        from ipywidgets import HTML, HBox, VBox

        self._progress, self._result, self._further = HTML(self._progress_line()), HTML(), VBox()
        self._row = HBox([*(self._button(*each) for each in self.buttons), self._progress]).add_class("attn-bar")
        self._box = VBox([self._row, self._result, self._further]).add_class("attn-tools")

    def _button(self, label: str, purpose: str, press: Press) -> Any:
        from ipywidgets import Button

        button = Button(description=label, tooltip=purpose)
        button.on_click(lambda _: self._press(button, press))
        return button

    def _press(self, button: Any, press: Press) -> None:
        """Shows what a press gives below the bar. Nothing that it raises gets lost in a log."""
        label, further = button.description, self._further.children
        try:
            answer = press()
        except KeyboardInterrupt:
            answer = sentence(f"{label} was interrupted.")
        except Exception as error:
            answer = sentence(f"{label} failed: {type(error).__name__}: {error}")
        if self._further.children is further:  # the answers to another question
            self._further.children = []
        self._result.value = render("pressed.html", label=label, shown=answer.html) if answer.text else ""
        self._progress.value = self._progress_line()

    def _progress_line(self) -> str:
        """How this exercise and this lesson stand."""
        name, lesson = self._target.name, kernel_course().lesson_of(self._target.name)
        lines = overview.table(self._record, (lesson,))
        mine = next(line for line in lines if line.exercise == name)
        now = self._verdict is not None and self._verdict.passed
        return render(
            "standing.html", mine=mine, now=now, hints=self._record.entry(name).hints, lines=lines, lesson=lesson
        )


class ResetBar(Toolbar):
    """The answers to the question of reset()."""

    def _actions(self) -> Any:
        return self._answers()
