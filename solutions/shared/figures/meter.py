"""How far a training is: a progress bar with the loss so far in a notebook, a line now and then in a terminal."""

from __future__ import annotations

import html
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

_WIDTH, _HEIGHT = 420, 90  # of the live curve, in CSS pixels


class Meter:
    """Says how far a run of `steps` steps is, in one place that is drawn over. unit: what is counted, where it is no step."""

    def __init__(self, title: str, steps: int, unit: str = "step") -> None:
        self.title, self.steps, self.unit, self.printed = title, steps, unit, 0
        self.curve: list[tuple[int, float]] = []
        self.handle: Any = None
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            return
        if get_ipython() is not None:
            self.handle = display(_Markup(f"<div>{html.escape(title)}</div>", title), display_id=True)

    def show(self, step: int, loss: float, seconds: float) -> None:
        """step: how many are done. loss: in nats, at that step. Costs under a millisecond."""
        self.curve.append((step, loss))
        said = f"{self.unit} {step} of {self.steps}, loss {loss:.2f} nats, {seconds:.0f} s"
        if self.handle is None:
            if 4 * step // self.steps > self.printed:
                self.printed = 4 * step // self.steps
                print(f"{self.title} {said}")
            return
        bar = f'<progress value="{step}" max="{self.steps}" style="width:{_WIDTH}px;max-width:100%"></progress>'
        markup = f"<div>{html.escape(self.title)}<br>{html.escape(said)}<br>{bar}<br>{self._curve()}</div>"
        self.handle.update(_Markup(markup, f"{self.title} {said}"))

    def _curve(self) -> str:
        top = max(loss for _, loss in self.curve) or 1.0
        points = " ".join(
            f"{_WIDTH * step / self.steps:.1f},{_HEIGHT * (1 - loss / top):.1f}" for step, loss in self.curve
        )
        return (
            f'<svg width="{_WIDTH}" viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}" style="max-width:100%" role="img" '
            f'aria-label="training loss so far">'
            f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/></svg>'
        )


class Step:
    """One step of a training; `loss`, a float or a 0-d tensor, is what the step sets."""

    loss: Any = 0.0


def training_steps(title: str, steps: int, shown: int = 40) -> Iterator[Step]:
    """Counts the steps of a training and says how far it is, `shown` times in all.

    An interrupt (the square in the toolbar) ends the counting after the step at hand, so that what was learned is kept;
    a second one is Python's own.
    """
    meter, started = Meter(f"{title}:", steps), time.perf_counter()
    asked: list[int] = []
    main = threading.current_thread() is threading.main_thread()

    def stop(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, stop) if main else None
    try:
        for number in range(1, steps + 1):
            step = Step()
            yield step
            if number % max(steps // shown, 1) == 0 or number == steps or asked:
                meter.show(
                    number, step.loss.item() if hasattr(step.loss, "item") else step.loss, time.perf_counter() - started
                )
            if asked:
                print(f"{title}: interrupted after {number} of {steps} steps; what was learned so far is kept.")
                return
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


class _Markup:
    """A display with a text beside its markup, for front ends that show text alone."""

    def __init__(self, markup: str, text: str) -> None:
        self.markup, self.text = markup, text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}
