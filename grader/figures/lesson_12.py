"""Figures of lesson 12: a model that learns to write, and what its heads look at."""

from __future__ import annotations

import hashlib
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grader.data import python_reference
from grader.figures import matrix, panels, show
from grader.figures.lesson_11 import attention_weights
from grader.figures.lesson_12_training import History, checkpoint, load, save, train

__all__ = ["heads", "learn_to_write", "learned", "reference_text"]


def reference_text() -> str:
    """The excerpt of Python's own language reference that ships with the course (© Python Software Foundation)."""
    return python_reference()


def learn_to_write(
    model: Any, ids: Any, max_len: int, sample: Callable[[], str], steps: int = 800, cap_s: float = 75.0, again: bool = False,
) -> History:  # fmt: skip
    """Trains `model` to predict the next character of `ids` (N,), or reads what an earlier run has trained.

    The last tenth is held out. again: trains anew where a checkpoint lies. Returns the run's history.
    """
    import torch

    shapes = [(name, tuple(value.shape)) for name, value in model.state_dict().items()]
    print_ = hashlib.sha256(repr((shapes, steps, max_len, ids[::97].tolist())).encode()).hexdigest()[:12]
    path = checkpoint(f"writer-{print_}")
    history = None if again else load(path, model)
    if history is not None:
        print(f"Read from {path.name}, which a run of {history.seconds:.0f} s has left; again=True trains anew.")
        return history
    cut = 9 * len(ids) // 10
    fresh = torch.Generator().manual_seed(11)
    held_ids = ids[cut:][: (len(ids) - cut - 1) // max_len * max_len + 1]
    held = (held_ids[:-1].view(-1, max_len), held_ids[1:].view(-1, max_len))

    def draw() -> tuple[Any, Any]:
        starts = torch.randint(cut - max_len - 1, (32, 1), generator=fresh)
        windows = ids[starts + torch.arange(max_len + 1)]
        return windows[:, :-1], windows[:, 1:]

    history = train(
        model, draw, steps, lr=4e-3, cap_s=cap_s, held=lambda: held_loss(model, *held), sample=sample, sample_at=(0.0, 0.1, 0.35),
        title=f"Training {steps} steps, at most {cap_s:.0f} s. Interrupt the kernel to stop early: what was learned is kept.",
    )  # fmt: skip
    if history.note:
        print(history.note)
    elif not save(path, model, history):
        print("The checkpoint could not be written, so the next run trains again.")
    return history


def held_loss(model: Any, ids: Any, targets: Any) -> float:
    """Mean loss in nats a character on text that was not trained on; the model's mode is put back."""
    import torch
    from torch.nn import functional as F

    was, total = model.training, 0.0
    model.eval()
    with torch.no_grad():
        for x, y in zip(ids.split(64), targets.split(64), strict=True):
            total += float(F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum"))
    model.train(was)
    return total / targets.numel()


def learned(history: History, vocabulary: int) -> None:
    """The loss curve, and the samples drawn on the way."""
    fig, (ax,) = panels(1, width=7.2, height=3.3)
    ax.plot(history.step, history.loss, label="training text, running mean")
    ax.plot(history.held_step, history.held, "o-", markersize=4, label="held-out text")
    ax.axhline(math.log(vocabulary), color="#7A7A7A", linestyle="--", linewidth=1)
    ax.text(history.steps, math.log(vocabulary), f"all {vocabulary} characters alike: {math.log(vocabulary):.2f}", ha="right", va="bottom",
            color="#555555")  # fmt: skip
    ax.set(xlabel="step", ylabel="loss (nats a character)", ylim=(0, math.log(vocabulary) * 1.12),
           title=f"{history.held[-1]:.2f} nats on text it has never seen")  # fmt: skip
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.86))
    show(fig, alt=f"Loss against step: the held-out loss falls from {history.held[0]:.2f} to {history.held[-1]:.2f} nats a character.")
    print(f"{history.steps} steps in {history.seconds:.0f} s; held-out loss {history.held[-1]:.3f} nats, "
          f"as unsure as between {math.exp(history.held[-1]):.1f} equally likely characters")  # fmt: skip
    for step, text in history.samples:
        print(f"\n--- after {step} steps " + "-" * 40)
        print(textwrap.indent(text, "    "))


def heads(model: Any, ids: Any, characters: Sequence[str]) -> None:
    """What each head of each block looks at while the model reads a short passage."""
    import torch

    seen: list[Any] = []
    hooks = [block.attn.register_forward_pre_hook(lambda _, args: seen.append(args[0])) for block in model.blocks]
    try:
        with torch.no_grad():
            model.eval()(ids[None])
    finally:
        for hook in hooks:
            hook.remove()
    num_heads = model.num_heads
    weights = [attention_weights(block.attn, x, num_heads)[0].numpy() for block, x in zip(model.blocks, seen, strict=True)]
    letters = ["␣" if characters[i] == " " else "↵" if characters[i] == "\n" else characters[i] for i in ids.tolist()]
    fig, axes = panels(len(weights) * num_heads, width=10.0, height=5.6, columns=num_heads)
    said = []
    for number, ax in enumerate(axes):
        layer, head = divmod(number, num_heads)
        shown = weights[layer][head]
        back, share = _favourite(shown)
        said.append(f"layer {layer} head {head}: {back} back, {share:.2f}")
        matrix(shown, f"Layer {layer}, head {head}\n{share:.0%} on {_place(back)}", ax=ax, rows=letters, columns=letters,
               xlabel="", ylabel="", limits=(0, 1))  # fmt: skip
        ax.tick_params(labelsize=6, rotation=0)
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()  # one scale, 0 to 1, serves all
    show(fig, alt="Heat maps of the learned heads on a short passage. The distance that each looks back most: " + "; ".join(said) + ".")


def _favourite(weights: np.ndarray) -> tuple[int, float]:
    """The distance that receives most weight, and its mean weight over the queries that reach so far back."""
    t = len(weights)
    means = [float(np.diagonal(weights, -back).mean()) for back in range(t // 2)]
    return int(np.argmax(means)), max(means)


def _place(back: int) -> str:
    return "itself" if back == 0 else f"{back} back"
