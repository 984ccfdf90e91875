"""Lesson 09: what follows from what its probes saw of dropout and of a block in training."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, describe_part, flag
from grader.worker.values import Part

Parts = Mapping[str, Part]
Array = np.ndarray


def dropout(case: Case, parts: Parts) -> dict[str, Part]:
    """Which attention weights a module drops in training, and how it scales the others.

    The case's weights make the output of the last axis (num_heads, 2, T): every weight of a head's query, written out twice.
    Shares are of the weights that a causal mask leaves.
    """
    still, again = (_output(case, parts[name]) for name in ("still", "still again"))
    moving = [_output(case, part) for part in parts["moving"].items]
    weights, dropped = _weights(still), np.stack([_weights(output) for output in moving])
    agree = np.array_equal(still, again)
    return {
        "two calls in evaluation agree": flag(agree),
        "output in evaluation": _tensor(still[0] if agree else np.zeros_like(still[0])),  # one of many tells nothing
        **_shares_dropped(weights, dropped, agree and _readable(weights)),
        "two calls in training agree": flag(all(np.array_equal(moving[0], output) for output in moving[1:])),
    }


def _tensor(value: Array) -> Part:
    return Part("tensor", np.asarray(value, np.float32), "float32")


def _output(case: Case, part: Part) -> Array:
    """What forward gave, if it is a tensor of x's shape. Raises ContractError otherwise."""
    shape = case.args[0].array.shape
    if part.kind != "tensor" or part.shape != shape:
        found = part.shape if part.kind == "tensor" else describe_part(part)
        raise ContractError(f"forward gave {found} for x of shape {shape}; expected the same shape.")
    return part.array


def _weights(output: Array) -> Array:
    """(B, heads, 2, T_q, T_k): the two copies of each weight in an output (B, T_q, heads · 2 · T_k)."""
    b, t, d_model = output.shape
    return output.reshape(b, t, d_model // (2 * t), 2, t).transpose(0, 2, 3, 1, 4)


def _readable(weights: Array) -> bool:
    """Whether these are causal weights: what was read twice is the same, rows sum to 1, and no visible weight is 0."""
    same = np.allclose(weights[..., 0, :, :], weights[..., 1, :, :], atol=1e-4)
    visible = np.tri(weights.shape[-1], dtype=bool)
    return same and np.allclose(weights.sum(axis=-1), 1, atol=1e-3) and bool((weights[..., visible] > 1e-6).all())


def _shares_dropped(weights: Array, dropped: Array, readable: bool) -> dict[str, Part]:
    """What dropout did, in numbers; all 0 where the weights could not be read."""
    t = weights.shape[-1]
    with np.errstate(all="ignore"):
        all_ratios = dropped / weights  # (calls, B, heads, 2, T, T)
        ratio = all_ratios[..., np.tri(t, dtype=bool)]
        gone = np.abs(ratio) < 1e-4
        zero = np.abs(all_ratios) < 1e-4
        last = zero[..., -2:, : t - 1]  # the keys that the last two queries share
        beside = np.tri(t, t - 1, -1, dtype=bool)  # where a query sees this key and the next one
        by_head = np.moveaxis(zero[..., np.tri(t, dtype=bool)], 2, 0)  # (heads, calls, B, 2, n)
        kept = ratio[~gone] if (~gone).sum() > 1 else np.zeros(2)
        found = {
            "share of weights dropped in training": gone.mean(),
            "factor of the weights that are kept": kept.mean(),
            "spread of that factor": kept.std(ddof=1),
            "share of weights that are dropped or kept as a whole": (gone[..., 0, :] == gone[..., 1, :]).mean(),
            "share of weights dropped in two items of the batch at once": (
                by_head[:, :, ::2] & by_head[:, :, 1::2]
            ).mean(),
            "share of weights dropped in two heads at once": (by_head[0] & by_head[1]).mean(),
            "share of keys dropped for two queries at once": (last[..., 0, :] & last[..., 1, :]).mean(),
            "share of neighboring keys dropped at once for one query": (zero[..., :-1] & zero[..., 1:])[
                ..., beside
            ].mean(),
        }
    return {name: _tensor(value if readable else 0.0) for name, value in found.items()}


def attention(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether more is saved than the two weights of the contract, and whether a tensor stays behind when the module is moved."""
    more = set(parts["state_dict"].text.split()) - {"qkv.weight", "proj.weight"}
    return {name: part for name, part in parts.items() if name not in ("state_dict", "tensors")} | {
        "state_dict holds more than qkv.weight and proj.weight": flag(more),
        "a tensor is kept that is no buffer, so that `.to(device)` leaves it behind": flag(parts["tensors"].text),
    }


def block(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether two calls in training differ, where both were made."""
    if "one call" not in parts:
        return dict(parts)
    one, other = (_output(case, parts[name]) for name in ("one call", "another call"))
    return {"two calls in training differ": flag(not np.array_equal(one, other))}
