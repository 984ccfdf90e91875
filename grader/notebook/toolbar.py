"""The buttons below a verdict: Hint, Replay, Explain, Solution, Reset, and a line of progress; a press shows its result below them.

They are widgets of ipywidgets, an output of their own below the verdict's. A front end that does not know widgets shows what the
verdict says in words instead, and so does a saved notebook where no kernel answers: it stores that text beside each bar.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from grader.notebook import hints, overview, replaying, resetting
from grader.notebook.display import Display, ipython, sentence
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.target import Target
from grader.reports import html, text
from grader.reports.html import render, style

Action = tuple[str, str, Callable[[], Display]]  # a button's label, what it does in a sentence, and what does it
# The latest of each exercise: an older one is about code that is no more.
_bars: dict[tuple[bool, str], DisplayWithButtons] = {}


def can_show_buttons() -> bool:
    """Whether somebody may press a button: in a kernel whose client can also be asked for input.

    Clients that only execute (nbval, nbclient, `grader build`) send allow_stdin false; what they store has no widgets. Colab asks
    by a channel of its own.
    """
    shell = ipython()
    request = getattr(shell, "get_parent", None)
    if request is None or not hasattr(shell, "kernel") or importlib.util.find_spec("ipywidgets") is None:
        return False
    return "google.colab" in sys.modules or bool((request() or {}).get("content", {}).get("allow_stdin"))


def verdict_with_buttons(target: Target, verdict: Any, notes: tuple[str, ...], record: Record) -> Display:
    """A verdict with its buttons; without any where nobody can press them, or none would do something."""
    plain = text.render_verdict(verdict, notes)
    if not can_show_buttons() or verdict.status == "could_not_grade":
        return Display(plain, html.render_verdict(verdict, notes), verdict)
    above, words = verdict, f"solution({target.argument}) shows the course's solution, or what opens it."
    if "hint(" in verdict.next_step and not verdict.passed:  # it offers calls, and the bar does so
        above, words = replace(verdict, next_step=""), verdict.next_step
    display = Display(plain, html.render_verdict(above, notes), verdict)
    return DisplayWithButtons(display, target, record, words, text.render_verdict(above, notes))


def reset_question(target: Target, record: Record) -> Display:
    """What reset() shows: whether to do it, and two buttons."""
    question = resetting.question(target.name, record)
    return DisplayWithButtons(question, target, record, resetting.by_command(target.name), question.text)


def button(label: str, purpose: str, press: Callable[[Any], None]) -> Any:
    """A widget; press: called with it."""
    from ipywidgets import Button

    widget = Button(description=label, tooltip=purpose)
    widget.on_click(press)
    return widget


def show_widget(widget: Any, words: Display) -> None:
    """Shows a widget as an output of the cell that runs; words: for where no widget runs."""
    from IPython.display import display

    display({**widget._repr_mimebundle_(), "text/plain": words.text, "text/html": words.html}, raw=True)


class DisplayWithButtons(Display):
    """A verdict, or the question of reset(), which has none, and its buttons below it.

    words: what stands for the buttons without widgets. above: the text without what the buttons, or the words, say.
    """

    def __init__(self, display: Display, target: Target, record: Record, words: str, above: str) -> None:
        super().__init__(display.text, f"<style>\n{style('toolbar.css')}</style>{display.html}", display.verdict)
        self._target, self._record, self._words, self._above = target, record, words, above
        self._hint = hints.next_level(target.name, record)

    def _actions(self) -> Iterator[Action]:
        target, name, verdict, record = self._target, self._target.name, self.verdict, self._record
        if verdict is None:
            yield from self._answers()
            return
        if not verdict.passed:
            yield self._hint_label(), f"Shows the next hint for {name}", self._next_hint
        if not replaying.refusal(target, verdict):
            purpose = f"Runs your {name} on the input for which the check failed"
            yield "Replay", purpose, lambda: replaying.replay(target, verdict, ipython().user_ns, at_once=True)
        if verdict.mistakes:
            ids = "+".join(dict.fromkeys(id for mistake in verdict.mistakes for id in mistake.split("+")))
            yield f"Explain {ids.replace('+', ', ')}", "Explains the mistake at length", partial(hints.explain, ids)
        solution = partial(hints.solution, target, record)
        yield "Solution", f"Shows the course's solution of {name}, or what opens it", solution
        if verdict.status != "not_started":
            yield "Reset", f"Restores the original cell of {name}, after you confirm it", self._ask_to_reset

    def _hint_label(self) -> str:
        return f"Hint {self._hint} of {hints.HINTS}"

    def _next_hint(self) -> Display:
        answer = hints.hint(self._target, self._hint, self._record)
        self._hint = self._hint % hints.HINTS + 1
        self._row.children[0].description = self._hint_label()
        return answer

    def _ask_to_reset(self) -> Display:
        from ipywidgets import HBox

        self._further.children = [HBox([self._button(*action) for action in self._answers()]).add_class("attn-bar")]
        return resetting.question(self._target.name, self._record)

    def _answers(self) -> list[Action]:
        restore = ("Restore the original cell", "Your code is kept as a copy", self._reset)
        return [restore, ("Keep my code", "Nothing is changed", lambda: Display("", ""))]

    def _reset(self) -> Display:
        from ipywidgets import Output

        answer = resetting.reset_cell(self._target.name, ipython().user_ns)
        self._further.children = [output := Output()]  # unlike an HTML widget it runs the script
        output.append_display_data(answer)
        return Display("", "")

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({**self._repr_mimebundle_(), "text/plain": self._above}, raw=True)
        self._show_bar()

    def _show_bar(self) -> None:
        """Shows the buttons as an output of the cell that runs."""
        from ipywidgets import HTML, HBox, VBox

        place = (self.verdict is None, self._target.name)
        if place in _bars:
            _bars[place]._empty()
        _bars[place] = self
        buttons = [self._button(*action) for action in self._actions()]
        self._progress, self._result, self._further = HTML(self._progress_line()), HTML(), VBox()
        self._row = HBox([*buttons, self._progress]).add_class("attn-bar")
        self._box = VBox([self._row, self._result, self._further]).add_class("attn-tools")
        show_widget(self._box, sentence(self._words))

    def _empty(self) -> None:
        """Takes the buttons away. The box stays: JupyterLab would hide what takes its place when a cell runs again."""
        widgets, self._box.children, self._further.children = self._box.children, [], []
        for widget in (*self._row.children, *widgets):
            widget.close()

    def _button(self, label: str, purpose: str, action: Callable[[], Display]) -> Any:
        return button(label, purpose, lambda widget: self._press(widget.description, action))

    def _press(self, label: str, action: Callable[[], Display]) -> None:
        """Shows what a press gives below the bar. Nothing that it raises gets lost in a log."""
        further = self._further.children
        try:
            answer = action()
        except KeyboardInterrupt:
            answer = sentence(f"{label} was interrupted.")
        except Exception as error:
            answer = sentence(f"{label} failed: {type(error).__name__}: {error}")
        if self._further.children is further:  # the answers to another question
            self._further.children = []
        self._result.value = render("pressed.html", label=label, result=answer.html) if answer.text else ""
        self._progress.value = self._progress_line()

    def _progress_line(self) -> str:
        """How this exercise and this lesson stand."""
        name, lesson = self._target.name, kernel_course().lesson_of(self._target.name)
        lines = overview.table(self._record, (lesson,))
        current = next(line for line in lines if line.exercise == name)
        hints = self._record.entry(name).hints
        return render("standing.html", mine=current, now=bool(self), hints=hints, lines=lines, lesson=lesson)
