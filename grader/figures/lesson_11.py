"""Figures of lesson 11: dropped weights, a sequence reversed, and a mask that leaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show
from grader.figures.lesson_12_training import train

__all__ = ["dropped", "fused", "leaking", "reverse"]


def fused() -> None:
    """The numbers that a fused projection gives for one token, and whose they are."""
    fig, (ax,) = panels(1, width=8.2, height=1.5)
    colours = ("#CFE3F2", "#CFE3F2", "#FCE3B8", "#FCE3B8", "#CDEBE0", "#CDEBE0")
    names = ("q, head 0", "q, head 1", "k, head 0", "k, head 1", "v, head 0", "v, head 1")
    for group, (name, colour) in enumerate(zip(names, colours, strict=True)):
        ax.bar(4 * group + np.arange(4), 1, width=0.94, color=colour)
        ax.text(4 * group + 1.5, 0.5, name, ha="center", va="center", fontsize=10)
        ax.plot([4 * group - 0.5] * 2, [0, 1], color=COLOURS["black"], linewidth=1)
    ax.set(title="One token's 24 numbers: q, k and v, each with two heads of four", xlabel="number in qkv(x)",
           xlim=(-0.5, 23.5), ylim=(0, 1), xticks=range(24), yticks=[])  # fmt: skip
    ax.grid(False)
    show(fig, alt="A row of 24 cells in six groups of four: q head 0, q head 1, k head 0, k head 1, v head 0, v head 1.")


def dropped(attention: Callable[..., Any], p: float = 0.5) -> None:
    """One head's weights in evaluation, in one training step, and averaged over 400 steps, read off the output."""
    import torch

    t = 6
    torch.manual_seed(11)
    layer = attention(t, 1, t, p)
    with torch.no_grad():
        layer.qkv.weight[: 2 * t] = 0.9 * torch.randn(2 * t, t)
        layer.qkv.weight[2 * t :] = torch.eye(t)  # the value of token j is the j-th unit vector …
        layer.proj.weight.copy_(torch.eye(t))  # … so the output of a query is its row of weights
        x = torch.eye(t)[None]
        still = layer.eval()(x)[0].numpy()
        steps = layer.train()(x.repeat(400, 1, 1)).numpy()
    fig, axes = panels(3, width=9.2, height=3.6)
    for ax, values, title in zip(axes, (still, steps[0], steps.mean(axis=0)), (
            "In evaluation", f"One training step, dropout={p}", "Mean of 400 training steps"), strict=True):  # fmt: skip
        matrix(values, title, ax=ax, limits=(0, 2))
    gap = np.abs(steps.mean(axis=0) - still).max()
    show(fig, alt=f"Three causal weight matrices. In one training step {int((steps[0][np.tril_indices(t)] == 0).sum())} of 21 weights "
                  f"are 0 and the others doubled; the mean of 400 steps differs from evaluation by at most {gap:.2f}.")  # fmt: skip


def reverse(attention: Callable[..., Any], steps: int = 150, length: int = 10, letters: int = 16) -> None:
    """Trains one layer of the learner's attention to write a sequence backwards, and draws where it looks."""
    import torch
    from torch import nn

    class Reverser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(letters + 1, 64), nn.Embedding(2 * length, 64)
            self.attn, self.head = attention(64, 1, 2 * length), nn.Linear(64, letters + 1)

        def forward(self, ids: Any) -> Any:
            x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
            return self.head(x + self.attn(x))

    def draw(count: int = 64) -> tuple[Any, Any]:
        front = torch.randint(letters, (count, length), generator=generator)
        whole = torch.cat([front, torch.full((count, 1), letters), front.flip(1)], dim=1)
        targets = whole[:, 1:].clone()
        targets[:, :length] = -1  # the sequence itself is random: nothing to learn there
        return whole[:, :-1], targets

    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(11)
    model = Reverser()
    history = train(model, draw, steps, lr=3e-3, cap_s=30, title=f"Training {steps} steps.")
    ids, targets = draw(500)
    with torch.no_grad():
        right = ((model(ids).argmax(dim=-1) == targets) | (targets < 0)).all(dim=1).float().mean()
        x = model.token(ids[:1]) + model.position(torch.arange(2 * length))
        weights = attention_weights(model.attn, x, 1)[0, 0].numpy()
    asked = weights[length:, :length]
    on = np.fliplr(asked).diagonal()
    print(f"{history.steps} steps in {history.seconds:.0f} s: {right:.1%} of 500 new sequences reversed without a slip")
    print(f"mean weight on the position to be copied: {on.mean():.3f}")
    written = "".join(chr(97 + int(i)) if i < letters else "|" for i in ids[0])
    fig, (left, right_ax) = panels(2, width=9.0, height=4.0, ratios=(1, 1.3))
    left.plot(history.step, history.loss)
    left.axhline(math.log(letters), color="#7A7A7A", linestyle="--", linewidth=1)
    left.text(history.step[-1], math.log(letters), "guessing", ha="right", va="bottom", color="#555555")
    left.set(xlabel="step", ylabel="loss (nats)", title="It learns to reverse", ylim=(0, None))
    matrix(weights, "Each written letter looks at the one it copies", ax=right_ax, rows=written, columns=written)
    right_ax.tick_params(axis="x", rotation=0)
    show(fig, alt=f"Left the loss falls from {history.loss[0]:.2f} to {history.loss[-1]:.2f} nats. Right the weights: behind the bar they "
                  f"lie on the anti-diagonal, {on.mean():.2f} on average.")  # fmt: skip


def attention_weights(layer: Any, x: Any, num_heads: int) -> Any:
    """(B, H, T, T): what a layer of the contract's form attends to, from its qkv.weight.

    Raises: ValueError where these weights do not give the layer's own output, so that no other picture is drawn.
    """
    import torch

    with torch.no_grad():
        b, t, d = x.shape
        q, k, v = (x @ layer.qkv.weight.T).view(b, t, 3, num_heads, d // num_heads).permute(2, 0, 3, 1, 4)
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax((q @ k.mT / math.sqrt(d // num_heads)).masked_fill(hidden, -torch.inf), dim=-1)
        output = (weights @ v).transpose(1, 2).reshape(b, t, d) @ layer.proj.weight.T
        if not torch.allclose(output, layer(x), rtol=1e-3, atol=1e-4):
            raise ValueError("the layer computes something else than its weights say")
    return weights


def leaking(steps: int = 120, letters: int = 16) -> None:
    """Trains a layer on random letters with a right mask and with one that lets the next token through."""
    import torch
    from torch import nn

    length, losses = 12, {}

    class Guesser(nn.Module):
        def __init__(self, mask: Any) -> None:
            super().__init__()
            self.mask, self.token, self.position = mask, nn.Embedding(letters, 48), nn.Embedding(length, 48)
            self.qkv, self.head = nn.Linear(48, 144, bias=False), nn.Linear(48, letters)

        def forward(self, ids: Any) -> Any:
            x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            scores = (q @ k.mT / math.sqrt(48)).masked_fill(~self.mask, -torch.inf)
            return self.head(x + torch.softmax(scores, dim=-1) @ v)

    for diagonal in (0, 1):
        torch.manual_seed(11)
        generator = torch.Generator().manual_seed(11)

        def draw(generator: Any = generator) -> tuple[Any, Any]:
            ids = torch.randint(letters, (64, length + 1), generator=generator)
            targets = ids[:, 1:].clone()
            targets[:, -1] = -1  # the last position has no next token to see
            return ids[:, :-1], targets

        model = Guesser(torch.ones(length, length, dtype=torch.bool).tril(diagonal))
        losses[diagonal] = train(model, draw, steps, lr=5e-3, cap_s=10, quiet=True)
    fig, (ax,) = panels(1, width=6.4, height=2.9)
    for diagonal, name in ((0, "tril(0): past and present"), (1, "tril(1): one future token")):
        ax.plot(losses[diagonal].step, losses[diagonal].loss, label=name, linestyle="-" if diagonal == 0 else "--")
    ax.axhline(math.log(letters), color="#7A7A7A", linestyle=":", linewidth=1)
    ax.text(steps, math.log(letters) - 0.06, "the best that is possible", ha="right", va="top", color="#555555")
    ax.set(xlabel="step", ylabel="loss (nats a letter)", ylim=(0, 3.4), title="Random letters cannot be predicted, unless they are seen")
    ax.legend(frameon=False, loc="center right")
    ends = [losses[diagonal].loss[-1] for diagonal in (0, 1)]
    show(fig, alt=f"Training loss on random letters: {ends[0]:.2f} nats with the causal mask, {ends[1]:.2f} with one that leaks a token; "
                  f"the best possible is {math.log(letters):.2f}.")  # fmt: skip
