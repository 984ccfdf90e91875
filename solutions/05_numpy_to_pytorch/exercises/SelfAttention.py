"""Attention as a module that owns its three projections."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, patch

from ...shared.library import after_earlier_calls, batch_independence, rows_sum_to_1
from ..shared import EXTREMES, attention_mistakes

ORDER = [2, 0, 1]  # in which the tokens of the case 'batch' come in the case 'permuted'
LAYERS = ("w_q", "w_k", "w_v")


def _case(
    key: str,
    title: str,
    x: np.ndarray,
    state: Mapping[str, np.ndarray],
    grad: bool = True,
    more: Mapping[str, Any] | None = None,
    **options: Any,
) -> Case:
    """One module with weights (out, in) called on x (B, T, d_model). more: further fields of the case. options: of the probe."""
    (d_k, d_model), (d_v, _) = state["w_q.weight"].shape, state["w_v.weight"].shape
    made = {"linear": LAYERS, "no_bias": LAYERS, "state": state, "init": (d_model, d_k, d_v), "gradients": grad}
    if x.dtype == np.float64:
        made["dtype"] = "float64"
    return Case(
        key,
        title,
        (Tensor(x, requires_grad=grad),),
        probe="module",
        options=made | options,
        names=("x",),
        **(more or {}),
    )


def _large() -> Iterator[Case]:
    """Scores of thousands; whole numbers and d_k = 4 keep them exact."""
    embed, values, x = np.eye(4, 2), np.array([[1.0, 2], [0, 1], [3, -1]]), np.array([[[1.0, 0], [0, 1], [-1, -1]]])
    for key, title, size, dtype in (
        ("large", "scores up to ±4900, float32", 70, "float32"),
        ("large double", "scores up to ±4900, float64", 70, "float64"),
        ("larger", "scores up to ±10,000 before scaling", -70, "float32"),
    ):
        state = {"w_q.weight": size * embed, "w_k.weight": 70 * embed, "w_v.weight": values}
        if key == "larger":
            x[0, 1] /= 2  # now the greatest scores of its rows differ
        yield _case(key, title, x.astype(dtype), state, grad=key == "large", more=EXTREMES)


def each(old: str, new: str):
    """Replacements that are made for w_q, w_k and w_v alike."""
    return patch(*(text.format(name) for name in LAYERS for text in (old, new)))


@exercise(
    kind="class",
    points=4,
    minutes=8,
    difficulty=2,
    result_names=("output", "weights"),
    result_type="tensor",
    forbids=("attention",),
)
class SelfAttention:
    """Write self-attention as an `nn.Module` that owns its three projections and can be trained."""

    def cases(rng):
        def draw(key, title, b, t, d_model, d_k, d_v, dtype="float32", **fields):
            x = rng.normal(size=(b, t, d_model)).astype(dtype)
            # Weights of a size that keeps the scores near 1: where scores lie near 20, float32 leaves some gradients four digits.
            state = {
                f"{name}.weight": (d_model**-0.5 * rng.normal(size=(width, d_model))).astype(np.float32)
                for name, width in zip(LAYERS, (d_k, d_k, d_v), strict=True)
            }
            return _case(key, title, x, state, **fields)

        small = {
            "w_q.weight": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]),
            "w_k.weight": np.array([[0.0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]]),
            "w_v.weight": np.array([[2.0, 0, 0], [0, 1, -1]]),
        }
        yield _case(
            "small", "two tokens, whole numbers", np.array([[[1, 0, 2], [0, 1, 0]]], np.float32), small, grad=False
        )
        yield (batch := draw("batch", "a batch of two, with gradients", 2, 3, 5, 4, 6))
        yield draw("square", "with d_model = d_k = d_v, where shapes hide mistakes", 2, 3, 4, 4, 4)
        yield draw("double", "after .double(), float64 inputs", 3, 4, 6, 5, 2, "float64")
        yield draw("double square", "after .double(), d_model = d_k = d_v", 2, 5, 3, 3, 3, "float64", grad=False)
        twice = "in training mode, one module called on x and then on other numbers"
        training = draw("training", twice, 2, 4, 3, 5, 6, mode="train", beside=(6, 2, 3))
        x = training.args[0].array
        yield replace(
            training,
            args=(Tensor(x), Tensor(1 - x)),
            names=("x", "x of the second call"),
            probe="shared.probes.two_calls",
        )
        by_name = {"init": (), "init_kwargs": {"d_model": 2, "d_k": 6, "d_v": 5}}
        yield draw("keywords", "made with keyword arguments", 4, 3, 2, 6, 5, grad=False, **by_name)
        yield draw("seen-again", "a batch of two again, new numbers, in training mode", 2, 3, 5, 4, 6, mode="train")
        x, state = batch.args[0].array, batch.options["state"]
        yield _case("permuted", "a batch of two, its tokens reordered", x[:, ORDER], state, grad=False)
        other = np.stack([rng.normal(size=x[0].shape), x[1]]).astype(np.float32)
        yield _case("item changed", "a batch of two, its first item replaced", other, state, grad=False)
        yield draw("one token", "one token attends to itself", 2, 1, 3, 4, 5, grad=False)
        yield draw(
            "long", "nineteen tokens, more than any width, in training mode", 1, 19, 4, 3, 2, grad=False, mode="train"
        )
        yield from _large()
        late = {"stage": "extremes"}
        used = draw("used", "a module that had other weights in earlier calls", 2, 3, 5, 4, 6, grad=False, more=late)
        yield after_earlier_calls(rng, used, (1, 2, 5), (2, 3, 5))

    sums = rows_sum_to_1()

    @holds("reordering the tokens reorders the outputs alike", cases=("batch", "permuted"))
    def reordered(case, parts, other, changed):
        gap = np.abs(parts["output"][:, ORDER] - changed["output"]).max()
        return None if gap < 1e-4 else f"Reordering the tokens changed an output by up to {gap:.4g}."

    apart = batch_independence("batch", "item changed")

    hints = (
        "A module makes what is learned in its constructor and uses it in `forward`. What does self-attention learn?",
        "`super().__init__()` comes first; then three `nn.Linear(..., bias=False)` under the names w_q, w_k and w_v. In `forward`, q, k"
        " and v all come from x, and the scale is the width of q, not of x.",
        "super().__init__()\nself.w_q = nn.Linear(d_model, ____, bias=____)\n...\nq, k, v = self.w_q(____), ____, ____\n"
        "weights = torch.softmax(q @ ____ / math.sqrt(____), dim=-1)",
    )

    mistakes = {
        **attention_mistakes(8),
        "NT9": each("self.{}(x)", "self.{}(x.float())"),
        "SD3": patch("q.shape[-1]", "x.shape[-1]"),
        "PJ1": each("self.{}(x)", "x @ self.{}.weight"),
        "AB3": patch("self.w_k(x)", "self.w_q(x)"),
        "MU25": tuple(
            patch("output =", f"weights = nn.functional.dropout(weights, {rate})\n        output =")
            for rate in ("0.1, self.training", "0.2, self.training", "0.5, self.training", "0.1")
        ),
        "PJ2": patch(
            "d_v, bias=False",
            "d_v",
            "self.w_q = nn.Linear(d_model, d_k, bias=False)",
            "self.w_q = nn.Linear(d_model, d_k)",
            "self.w_k = nn.Linear(d_model, d_k, bias=False)",
            "self.w_k = nn.Linear(d_model, d_k)",
        ),
    }
