"""Figures of lesson 11: dropped weights, a sequence reversed, a model that learns to write, and what its heads look at."""

from __future__ import annotations

import hashlib
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grader.data import python_reference
from grader.figures import COLOURS, matrix, panels, show
from grader.figures.lesson_11_training import History, checkpoint, load, save, train

__all__ = ["dropped", "fused", "heads", "leaking", "learn_to_write", "learned", "reference_text", "reverse"]


def reference_text() -> str:
    """The excerpt of Python's own language reference that ships with the course (© Python Software Foundation)."""
    return python_reference()


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
