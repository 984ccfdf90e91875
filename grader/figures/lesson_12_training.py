"""Trains the models of lesson 12: a fixed number of steps under a clock, in sight, interruptible, read back when run again."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.figures.meter import Meter
from grader.notebook.record import default_path

if TYPE_CHECKING:
    import torch

REPORTS = 40  # how often a training run says where it is


@dataclass
class History:
    """What a training run left besides its weights.

    step, loss: a running mean of the training loss in nats, at the step it was noted. held_step, held: the loss on
    held-out text. samples: (step, text). seconds, steps: what the run took; note: how it ended, '' for as planned.
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    held_step: list[int] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    samples: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0
    note: str = ""


def train(
    model: torch.nn.Module, draw: Callable[[], tuple[torch.Tensor, torch.Tensor]], steps: int, *, lr: float,
    cap_s: float = math.inf, title: str = "", held: Callable[[], float] | None = None,
    sample: Callable[[], str] | None = None, sample_at: tuple[float, ...] = (), quiet: bool = False,
) -> History:  # fmt: skip
    """Trains `model` on what `draw` gives, (ids, targets) with target −1 where nothing is asked.

    The learning rate rises for a tenth of the way and falls to 0 as a half cosine. The way is measured in steps, or
    in seconds of `cap_s` where the clock is ahead, so a slow machine stops early and still ends at a small rate.
    sample_at: shares of the way at which `sample()` is noted; held() is noted at a tenth of the reports.
    KeyboardInterrupt ends the run; what was trained so far is kept. The model is in eval mode afterwards.
    """
    import torch
    from torch.nn import functional as F

    history = History()
    meter = None if quiet else Meter(title, steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
    started, waiting, mean, every = time.perf_counter(), list(sample_at), None, max(steps // REPORTS, 1)
    model.train()
    try:
        for step in range(steps):
            history.seconds = time.perf_counter() - started
            way = max(step / steps, history.seconds / cap_s)
            if way >= 1:
                history.note = f"The clock of {cap_s:.0f} s ended it."
                break
            if waiting and way >= waiting[0] and sample is not None:
                history.samples.append((step, sample()))
                waiting.pop(0)
            for group in optimizer.param_groups:
                group["lr"] = lr * min(way / 0.1 + 0.02, 0.5 + 0.5 * math.cos(math.pi * max(way - 0.1, 0) / 0.9))
            ids, targets = draw()
            loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=-1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            now = float(loss.detach())
            mean = now if mean is None else 0.9 * mean + 0.1 * now
            history.steps = step + 1
            if step % every == 0 or step == steps - 1:
                history.step.append(step + 1)
                history.loss.append(mean)
                if held is not None and len(history.step) % (REPORTS // 10) == 1:
                    history.held_step.append(step + 1)
                    history.held.append(held())
                if meter is not None:
                    meter.show(step + 1, mean, history.seconds)
    except KeyboardInterrupt:
        history.note = f"Interrupted after {history.steps} steps; what was learned is kept."
    model.eval()
    history.seconds = time.perf_counter() - started
    if held is not None:
        history.held_step.append(history.steps)
        history.held.append(held())
    if sample is not None:
        history.samples.append((history.steps, sample()))
    return history


def checkpoint(name: str) -> Path:
    """Where a trained model of that name is kept: in the folder of the learner's record, beside the notebooks."""
    return default_path().parent / f"{name}.pt"


def save(path: Path, model: torch.nn.Module, history: History) -> bool:
    """Writes weights and history; False where the folder cannot be written. A reader never meets half a file."""
    import torch

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": dict(model.state_dict()), "history": asdict(history)}, part)
        part.replace(path)
    except (OSError, RuntimeError):
        part.unlink(missing_ok=True)
        return False
    return True


def load(path: Path, model: torch.nn.Module) -> History | None:
    """Fills `model` from a checkpoint and returns its history; None where there is none that fits.

    weights_only: a checkpoint is data; nothing in it is run.
    """
    import torch

    try:
        kept = torch.load(path, map_location="cpu", weights_only=True)
        history = History(**kept["history"])
        model.load_state_dict(kept["model"])
    except Exception:  # absent, of another model, of another version or damaged: then it is trained again
        return None
    model.eval()
    return history
