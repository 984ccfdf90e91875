"""Figures of lesson 09: where numbers go, heads that attend differently, a merge that scrambles, the price of many heads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

T, LETTERS = 8, 8  # of the small task: as long as its sequences are in training, and how many letters there are


def two_heads(one: np.ndarray, two: np.ndarray, values: np.ndarray) -> None:
    """one: (3,) weights of a single head; two: (2, 3) weights of two heads, each for its own column of values (3, 2)."""
    fig, axes = panels(3, width=9.0, height=2.6, ratios=(2, 3, 3))
    tokens = ["token 0", "token 1", "token 2"]
    matrix(values, "values", kind="values", ax=axes[0], rows=tokens, columns=["first", "second"], xlabel="number", ylabel="")
    mixed = one @ values
    matrix(one[None], f"one head: output ({mixed[0]:g}, {mixed[1]:g})", ax=axes[1], rows=["both"], columns=tokens, xlabel="", ylabel="")
    apart = [two[h] @ values[:, h] for h in (0, 1)]
    matrix(two, f"two heads: output ({apart[0]:g}, {apart[1]:g})", ax=axes[2], rows=["first", "second"], columns=tokens,
           xlabel="", ylabel="")  # fmt: skip
    show(fig, alt=f"Three matrices: values of three tokens; one row of weights, whose output is ({mixed[0]:g}, {mixed[1]:g}); two rows of "
                  f"weights, one for each number, whose output is ({apart[0]:g}, {apart[1]:g}).")  # fmt: skip


def where_numbers_go(split: Callable[..., Any]) -> None:
    """Three tokens whose numbers tell where they come from, split by the learner's function and by a view alone."""
    import torch

    x = (10 * torch.arange(3)[:, None] + torch.arange(4)).float()[None]  # number j of token i is 10 i + j
    fig, axes = panels(5, width=10.4, height=3.1, ratios=(4, 2, 2, 2, 2), columns=5)
    owner = [f"token {i}" for i in range(3)]
    matrix(x[0].numpy(), "x: number j of token i is 10 i + j", ax=axes[0], kind="values", limits=(0, 30), rows=owner,
           columns=[str(j) for j in range(4)], xlabel="number", ylabel="", fmt=".0f")  # fmt: skip
    heads, cut = split(x, 2)[0], x.view(1, 2, 3, 2)[0]
    for ax, part, title in zip(axes[1:], (*heads, *cut), ("head 0", "head 1", "view alone: 0", "view alone: 1"), strict=True):
        rows = owner if ax is axes[1] else [""] * 3
        matrix(part.detach().numpy(), title, ax=ax, kind="values", limits=(0, 30), rows=rows, columns=["", ""], xlabel="", ylabel="",
               fmt=".0f")  # fmt: skip
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()  # the numbers are written in; a scale would say it twice
    said = [part.int().tolist() for part in (*heads, *cut)]
    show(fig, alt=f"Five matrices. x has rows of four numbers. Our split gives head 0 {said[0]} and head 1 {said[1]}; a view alone gives "
                  f"{said[2]} and {said[3]}.")  # fmt: skip


def small_task(attention: Callable[..., Any], num_heads: int, seed: int = 0, steps: int = 150) -> Any:
    """Trains one layer to name, at each position, the letter before it and the letter at the mirrored position.

    Returns: answers(t) -> (share of right answers (2,), weights (num_heads, t, t)) on fresh sequences of length t; the
    letter before the first is not asked.
    """
    import torch
    from torch import nn

    torch.manual_seed(seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small gain nothing from a second thread
    width = 32
    layer, head = attention(width, num_heads), nn.Linear(width, 2 * LETTERS)
    letter, position = nn.Embedding(LETTERS, width), nn.Embedding(T, width)
    parameters = [p for module in (layer, head, letter, position) for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-2)

    def run(count: int, t: int) -> tuple[Any, Any, Any]:
        ids = torch.randint(LETTERS, (count, t))
        x = letter(ids) + position(torch.arange(t))
        output, weights = layer(x, x, x)
        return head(output).view(count, t, 2, LETTERS), torch.stack([ids.roll(1, 1), ids.flip(1)], dim=-1), weights

    for _ in range(steps):
        logits, wanted, _ = run(64, T)
        loss = nn.functional.cross_entropy(logits[:, 1:].flatten(0, 2), wanted[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)

    def answers(t: int) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            logits, wanted, weights = run(500, t)
        right = (logits.argmax(dim=-1) == wanted)[:, 1:].float().mean(dim=(0, 1))
        return right.numpy(), weights.mean(dim=0).numpy()

    return answers


def different_heads(attention: Callable[..., Any]) -> None:
    """One head and two on the small task, with the weights that they learned."""
    fig, axes = panels(3, width=10.2, height=3.7)
    said = []
    for num_heads, part in ((1, axes[:1]), (2, axes[1:])):
        right, weights = small_task(attention, num_heads)(T)
        said.append(f"{num_heads} head{'s' * (num_heads > 1)}: letter before {right[0]:.0%} right, mirrored letter {right[1]:.0%}")
        print(said[-1])
        for h, ax in enumerate(part):
            title = "the only head" if num_heads == 1 else f"head {h} of two"
            matrix(weights[h], title, ax=ax, limits=(0, 1), fmt=".1f")
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()
    show(fig, alt="Three weight matrices of a layer trained to look at two places at once. " + "; ".join(said) + ".")


def untransposed(attention: Callable[..., Any]) -> type:
    """The learner's class with its heads merged by a reshape alone."""
    import torch

    class Untransposed(attention):  # type: ignore[misc, valid-type]
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__(d_model, num_heads)
            self.shape = (num_heads, d_model // num_heads)

        def forward(self, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
            q, k, v = (layer(x).unflatten(-1, self.shape).transpose(1, 2)
                       for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))  # fmt: skip
            weights = torch.softmax(q @ k.mT / math.sqrt(self.shape[1]), dim=-1)
            return self.w_o((weights @ v).reshape(query.shape)), weights  # (B, H, T, d_head) taken for (B, T, d_model)

    return Untransposed


def scrambled(attention: Callable[..., Any]) -> None:
    """Trains with the right merge and without its transpose, and asks at lengths other than the trained one."""
    lengths = range(3, T + 1)
    fig, (ax,) = panels(1, width=6.4, height=3.3)
    said = []
    ways = (("heads moved back, then merged", attention, "o-"), ("merged by reshape alone", untransposed(attention), "s--"))
    for name, cls, style in ways:
        answers = small_task(cls, 2)
        right = [float(answers(t)[0][0]) for t in lengths]
        ax.plot(list(lengths), right, style, label=name)
        said.append(f"{name}: {right[-1]:.0%} at length {T}, {right[-2]:.0%} at {T - 1}, {right[0]:.0%} at {lengths[0]}")
        print(said[-1])
    ax.axhline(1 / LETTERS, color=COLOURS["grey"], linewidth=1.2, linestyle=":", label="guessing")
    ax.set(xlabel=f"length of the sequence (trained at {T})", ylabel="letter before: share right", ylim=(0, 1.05),
           title="It trains to perfection, for one length only")  # fmt: skip
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0.12))
    show(fig, alt="Share of right answers against the length of the sequence. " + "; ".join(said) + ".")


def price(attention: Callable[..., Any], d_model: int = 256, t: int = 256, repeats: int = 5) -> None:
    """Time and number of weights of the learner's module against the number of heads, d_model fixed."""
    import torch

    x = torch.randn(2, t, d_model, generator=torch.Generator().manual_seed(0))
    heads = [1, 2, 4, 8, 16, 32, 64]
    layers = [attention(d_model, count).eval() for count in heads]
    times: list[list[float]] = [[] for _ in heads]
    with torch.no_grad():
        for turn in range(repeats + 1):  # in turns, so that a busy moment hits all of them; the first turn warms up
            for row, layer in zip(times, layers, strict=True):
                started = time.perf_counter()
                layer(x, x, x)
                if turn:
                    row.append(1e3 * (time.perf_counter() - started))
    took = [median(row) for row in times]
    fig, (left, right) = panels(2, width=8.8, height=3.2)
    left.plot(heads, [2 * 4 * t * t * d_model / 1e6] * len(heads), "o-", color=COLOURS["blue"])
    left.set(xscale="log", ylim=(0, None), xlabel="heads", ylabel="million operations", title="Products in attention: the same for all")
    right.plot(heads, took, "o-", color=COLOURS["vermillion"])
    right.set(xscale="log", ylim=(0, None), xlabel="heads", ylabel="ms, median",
              title=f"Time here: {took[-1] / took[0]:.1f} times as long for 64")  # fmt: skip
    for ax in (left, right):
        ax.set_xticks(heads, [str(count) for count in heads])
        ax.minorticks_off()
    print(f"weights to be computed and kept: {2 * t * t:,} with one head, {2 * 64 * t * t:,} with 64")
    show(fig, alt=f"Left: the operations of both products do not depend on the number of heads. Right: the measured time, {took[0]:.1f} ms "
                  f"with one head and {took[-1]:.1f} ms with 64.")  # fmt: skip
