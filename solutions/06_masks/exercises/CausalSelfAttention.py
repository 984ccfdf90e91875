"""Causal attention as a module, its mask a buffer that is not saved."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import scale_mistakes
from .. import readings


def _build(rng: np.random.Generator, d: int, max_len: int, **more: Any) -> dict[str, Any]:
    names = ("w_q", "w_k", "w_v")
    state = {f"{name}.weight": rng.normal(size=(d, d)).astype(np.float32) for name in names}
    return {"init": (d, max_len), "state": state, "linear": names, "no_bias": names, **more}


def _future(rng: np.random.Generator) -> Case:
    """One module called twice, while a second one of another max_len stands beside it."""
    options = {**_build(rng, 3, 6), "beside": (3, 2)}
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    later = x.copy()
    later[:, 3:] += 2
    later[1] *= -1  # the other item of the batch changes altogether
    title = "five tokens, then the same with tokens 3 and 4 changed, and the other batch item, in eval mode"
    return Case(
        "future",
        title,
        (Tensor(x), Tensor(later)),
        probe="shared.probes.two_calls",
        options=options,
        names=("x", "x of the second call"),
    )


def _large_modules(rng: np.random.Generator) -> Iterator[Case]:
    """Scores from -10,000 to 10,000, exact as in `_large`: the first tokens see the lowest ones alone, and the highest come later."""
    w_q, w_k = np.zeros((2, 4, 4), np.float32)
    w_q[0, 0], w_q[1, 1], w_k[0, 2], w_k[1, 3] = 100, 1, 2, 1
    for i, (levels, max_len) in enumerate(
        (([-100, -100, 0, 90, 100], 6), ([-100, -100, 100], 5), ([-100, -100, 90, 0, 100, 10], 7))
    ):
        t = len(levels)
        x = np.ones((2, t, 4))
        x[..., 0], x[..., 2], x[..., 3] = np.where(np.arange(t) == t - 2, -1, 1), levels, np.arange(t) + i
        x[1] = x[1, rng.permutation(t)]
        w_v = rng.normal(size=(4, 4)) * [1, 1, 0.01, 1]
        state = {"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v.astype(np.float32)}
        options = {**_build(rng, 4, max_len), "state": state}
        if i == 2:
            options["dtype"] = "float64"
        if i < 2:
            options["mode"] = "train"
        title = "scores of ±10,000" + (", after .double()" if i == 2 else ", in training mode")
        yield Case(
            f"large-{i}",
            title,
            (Tensor(x, "float64" if i == 2 else "float32"),),
            probe="module",
            options=options,
            stage="extremes",
            rtol=2e-3,
            atol=2e-3,
        )


def _apart(rng: np.random.Generator) -> Iterator[Case]:
    """The highest score is visible, then hidden: what forgets the maximum is told from what takes a hidden one."""
    w_q, w_k = np.zeros((2, 4, 4), np.float32)
    w_q[0, 0], w_k[0, 1] = 1, 2
    for key, title, levels, asks in (
        ("above", "scores of up to 300, the highest visible", [300, 299, -300, -299], [1, 0.5, 1, 1]),
        ("below", "scores of ±60, the highest hidden", [-60, -59, 60], [1, 1, 1]),
    ):
        x = np.ones((1, len(levels), 4), np.float32)
        x[0, :, 0], x[0, :, 1] = asks, levels
        w_v = (rng.normal(size=(4, 4)) * [1, 0.01, 1, 1]).astype(np.float32)
        state = {"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v}
        yield Case(
            key, title, (Tensor(x),), probe="module", options={**_build(rng, 4, 6), "state": state}, stage="extremes"
        )


HIDE = "scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)"
FILLED = "scores = scores.masked_fill(self.hidden[:t, :t], {})"
ADDED = "scores = scores + self.hidden[:t, :t].to(scores) * {}"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
TOTAL = "total = weights.sum(-1, keepdim=True)"
GUARDED, UNGUARDED = "weights = weights / total.masked_fill(total == 0, 1.0)", "weights = weights / total"
REFUSE = """if t > self.max_len:
            raise ValueError(f'T = {t} is longer than max_len = {self.max_len}')"""
FUTURE = patch("triu(diagonal=1)", "tril()")
BARE, FINITE = patch(), patch("-torch.inf", "torch.finfo(scores.dtype).min")
REPAIRED = patch("dim=-1)", "dim=-1).nan_to_num(0.0)")


def by_hand(*lines: str):
    """Every score goes through softmax, and what is hidden is taken out afterwards."""
    return patch(HIDE, "pass", SOFTMAX, "\n        ".join((SOFTMAX, f"weights = {lines[0]}", *lines[1:])))


@exercise(
    kind="class",
    points=4,
    minutes=12,
    difficulty=2,
    result_type="tensor",
    result_names=("output",),
    forbids=("attention",),
)
class CausalSelfAttention:
    """Self-attention that cannot see the future, with its mask as a buffer."""

    def cases(rng):
        def case(key: str, title: str, shape: tuple[int, ...], max_len: int, grad: bool = False, **more: Any) -> Case:
            options = _build(rng, shape[-1], max_len, gradients=grad, **more)
            x = Tensor(rng.normal(size=shape).astype("float64" if more.get("dtype") else "float32"), None, grad)
            return Case(key, title, (x,), probe="module", options=options)

        yield case("small", "three tokens of two numbers, max_len 5, in eval mode", (1, 3, 2), 5)
        yield case("sizes", "all sizes different, in eval mode", (2, 4, 3), 7, grad=True)
        yield case(
            "full", "nineteen tokens, as many as max_len, in training mode", (2, 19, 4), 19, grad=True, mode="train"
        )
        yield case("seen-again", "the same sizes as before, new numbers", (2, 4, 3), 7, grad=True)
        yield case("one", "five items of one token, six numbers each, max_len 4", (5, 1, 6), 4)
        yield _future(rng)
        yield from _large_modules(rng)
        yield from _apart(rng)
        for i, (shape, max_len) in enumerate((((2, 3, 4), 5), ((1, 5, 2), 5), ((2, 4, 3), 9))):
            x = Tensor(np.zeros(shape, np.float32))
            options = {**_build(rng, shape[-1], max_len), "max_len": max_len}
            title = f"moved to another device (torch's meta device), T = {shape[1]} of {max_len}"
            yield Case(
                f"device-{i}",
                title,
                (x,),
                probe="probes.buffer",
                options=options,
                stage="extremes",
                reading=readings.buffer,
            )
        for i, (t, max_len) in enumerate(((6, 5), (4, 2), (9, 3))):
            x = Tensor(rng.normal(size=(2, t, 3)).astype(np.float32))
            yield Case(
                f"long-{i}",
                f"{t} tokens, max_len {max_len}",
                (x,),
                probe="module",
                options=_build(rng, 3, max_len),
                raises="ValueError",
            )

    @holds("a later token changes no earlier output", cases=("future",))
    def past_is_fixed(case, parts):
        moved = np.abs(parts["output"][0, :3] - parts["second call"][0, :3]).max(axis=-1)
        at = int(moved.argmax())
        return (
            None
            if moved[at] < 1e-5
            else f"output {at} moved by {moved[at]:.3g} when only tokens 3 and 4 of its sequence changed."
        )

    hints = (
        "Which of the module's tensors are learned, and which follow from max_len? Where should each kind live?",
        "`register_buffer(name, mask, persistent=False)` in __init__; in forward, cut the mask to the T tokens that came.",
        'self.register_buffer("mask", ____, persistent=____)\n...\nT = x.shape[1]\nif T > ____:\n    raise ____\n'
        "output, _ = masked_attention(q, k, v, self.mask[____, ____])",
    )

    mistakes = {
        "MK1": tuple(FUTURE + way for way in (BARE, FINITE, REPAIRED)),
        "MK2": patch(HIDE, "pass", SOFTMAX, f"{SOFTMAX} * ~self.hidden[:t, :t]"),
        "MK3": patch(HIDE, "scores = scores * ~self.hidden[:t, :t]"),
        "MK4": (
            *(patch(HIDE, FILLED.format(fill)) for fill in (-10000.0, -1000.0, -100.0)),
            # Large scores have a d_model of 4 here: −10000, added before the division by its root, is −5000 after it.
            *(patch(HIDE, ADDED.format(fill)) for fill in (-10000.0, -1000.0, -5000.0, -500.0, -50.0, -20.0)),
        ),
        "MK5": patch(HIDE, "scores = scores + self.hidden[:t, :t].to(scores) * -torch.inf"),
        "MK7": tuple(
            patch("diagonal=1", "diagonal=0") + way
            for way in (
                BARE,
                FINITE,
                REPAIRED,
                patch(HIDE, ADDED.format(-1e9)),
                patch(HIDE, "scores = scores + torch.zeros_like(scores).masked_fill(self.hidden[:t, :t], -torch.inf)"),
            )
        ),
        "MK8": patch("diagonal=1", "diagonal=2"),
        "MK13": tuple(
            patch(HIDE, f"if {seldom}:\n            {HIDE}")
            for seldom in ("self.training", "not self.training", "t == self.max_len")
        ),
        "MA1": patch("triu(diagonal=1)", "tril(diagonal=-1)"),
        "MA14": mistake(
            patch("persistent=False", "persistent=True"),
            patch(
                "self.register_buffer('hidden', hidden, persistent=False)",
                "self.hidden = hidden",
                "self.hidden[:t, :t]",
                "self.hidden[:t, :t].to(x.device)",
            ),
            says='The mask is saved with the weights, or is no buffer at all; use `register_buffer("mask", mask, persistent=False)`.',
            why="""A buffer moves with the module and is made once. A mask follows from max_len alone: in `state_dict`, as a
            persistent buffer or as a parameter, it makes checkpoints larger by max_len² entries, and a checkpoint no longer
            loads into a model of another max_len. A parameter is handed to the optimizer, too. A plain attribute has to be
            moved at each call, and what is made at each call takes time at each call.""",
        ),
        "MA15": mistake(
            *(patch("self.hidden[:t, :t]", f"self.hidden{cut}") for cut in ("", "[:t]", "[:, :t]")),
            *(patch("self.hidden[:t, :t]", f"self.hidden[{cut}]") for cut in ("-t:, :t", "self.max_len - t:, :t")),
            says="The mask was not cut to its first T rows and its first T columns, for the T tokens of the input: `mask[:T, :T]`.",
            why="""The buffer is max_len by max_len, the scores T by T. Only a full sequence fits without cutting.
            `mask[:T]` cuts the rows alone, and so does `mask[:T][:T]`: the columns come after the comma. Row i says what
            token i may see, so it is the first rows that are needed: the last ones belong to the last of max_len tokens,
            which see nearly everything.""",
        ),
        "MA16": mistake(
            patch(REFUSE, ""),
            patch(REFUSE, "assert t <= self.max_len"),
            patch("t, d_model =", "x = x[:, :self.max_len]\n        t, d_model ="),
            says="A sequence longer than max_len was not refused; it should raise a ValueError.",
            why="Without the check the failure comes later, in a message on shapes that does not name max_len, or never.",
        ),
        "MA18": (
            by_hand("weights * ~self.hidden[:t, :t]", TOTAL, GUARDED),
            by_hand("weights * ~self.hidden[:t, :t]", TOTAL, UNGUARDED),
        ),
        "MA19": mistake(
            patch("return weights @ v", "return (weights @ v, weights)"),
            says="Output and weights came back; the output alone is asked for.",
            why="""This module is made for a model, where the next layer takes its result as it is. `SelfAttention` of lesson
            05 returned both, to be looked at.""",
        ),
        "MK6": patch(HIDE, "scores = scores + ~self.hidden[:t, :t]"),
        "DT3": patch("self.register_buffer('hidden', hidden, persistent=False)", "self.hidden = hidden"),
        "PJ2": patch(
            "self.w_q = nn.Linear(d_model, d_model, bias=False)",
            "self.w_q = nn.Linear(d_model, d_model)",
            "self.w_k = nn.Linear(d_model, d_model, bias=False)",
            "self.w_k = nn.Linear(d_model, d_model)",
            "self.w_v = nn.Linear(d_model, d_model, bias=False)",
            "self.w_v = nn.Linear(d_model, d_model)",
        ),
        **scale_mistakes("d_model"),
        "SD6": patch(" / math.sqrt(d_model)", "", "return weights @ v", "return weights / math.sqrt(d_model) @ v"),
        "SD8": patch("q, k, v =", "k, q, v ="),
        "SM1": patch("dim=-1", "dim=-2"),
        "SM2": (patch("dim=-1", "dim=0"), patch("dim=-1", "dim=0") + FINITE),
        "SM3": (
            patch(
                HIDE,
                "pass",
                SOFTMAX,
                """weights = torch.exp(scores - scores.max()) * ~self.hidden[:t, :t]
        weights = weights / weights.sum()""",
            ),
            patch(SOFTMAX, "weights = torch.exp(scores - scores.max())\n        weights = weights / weights.sum()"),
        ),
        "SM5": (
            patch(SOFTMAX, f"weights = scores.exp()\n        {TOTAL}\n        {GUARDED}"),
            patch(SOFTMAX, f"weights = scores.exp()\n        {TOTAL}\n        {UNGUARDED}"),
            patch(
                HIDE,
                "pass",
                SOFTMAX,
                f"weights = scores.exp() * ~self.hidden[:t, :t]\n        {TOTAL}\n        {UNGUARDED}",
            ),
        ),
        "SM6": tuple(
            patch(
                HIDE,
                "pass",
                SOFTMAX,
                f"weights = (scores - scores.max()).exp() * ~self.hidden[:t, :t]\n        {TOTAL}\n        {then}",
            )
            for then in (GUARDED, UNGUARDED)
        ),
        "BW3": patch("return weights @ v", "return weights.detach() @ v"),
        "TT8": patch("math.sqrt(d_model)", "math.sqrt(t)"),
    }
