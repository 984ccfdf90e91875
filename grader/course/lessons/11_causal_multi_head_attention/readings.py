"""Lesson 11: what follows from what its probes saw of dropout, of a block in training and of a generating loop."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
Array = np.ndarray


def dropout(case: Case, parts: Parts) -> dict[str, Part]:
    """Which attention weights a module drops in training, and how it scales the others.

    The case's weights make the output of the last axis (num_heads, 2, T): every weight of a head's query, written out twice.
    Shares are of the weights that a causal mask leaves.
    """
    still, again = (_output(case, parts[name]) for name in ("still", "still again"))
    moving = [_output(case, part) for name, part in parts.items() if name.startswith("moving")]
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
        found = part.shape if part.kind == "tensor" else part.text or part.kind
        raise ContractError(f"forward gave {found} for x of shape {shape}; the same shape was asked for.")
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
        last = np.abs(all_ratios[..., -2:, : t - 1]) < 1e-4  # the keys that the last two queries share
        kept = ratio[~gone] if (~gone).sum() > 1 else np.zeros(2)
        found = {
            "share of weights dropped in training": gone.mean(),
            "factor of the weights that are kept": kept.mean(),
            "spread of that factor": kept.std(ddof=1),
            "share of weights whose two readings fall together": (gone[..., 0, :] == gone[..., 1, :]).mean(),
            "share of keys dropped for two queries at once": (last[..., 0, :] & last[..., 1, :]).mean(),
        }
    return {name: _tensor(value if readable else 0.0) for name, value in found.items()}


def block(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether two calls in training differ, where both were made."""
    if "one call" not in parts:
        return dict(parts)
    one, other = (_output(case, parts[name]) for name in ("one call", "another call"))
    return {"two calls in training differ": flag(not np.array_equal(one, other))}


def greedy(case: Case, parts: Parts) -> dict[str, Part]:
    """How the model was treated, as the stand-in for one noted at each call and as it was left."""
    found = {}
    if case.args[1]:
        fed = numbers(parts["tokens fed"])
        most = np.array(int(fed.max()) if fed.size else 0)
        found["most tokens fed to the model at once"] = Part("number", most, most.dtype.name)
        found["the model or a part of it was in training mode while it was asked"] = flag(numbers(parts["in training"]).any())
        found["a graph was built"] = flag(numbers(parts["graphs"]).any())
    left = numbers(parts["flags"])
    found["the model's own flag is back"] = flag(left[:1].all() == case.options["training"])
    found["the flags of its parts are back"] = flag((left == case.options["training"]).all())
    found["torch records gradients after the call"] = parts["torch records gradients after the call"]
    return {**found, "result": parts["result"]}  # last: a model that is treated otherwise also gives other ids


def sample(case: Case, parts: Parts) -> dict[str, Part]:
    """How often each quarter of the vocabulary follows each last token, and whether the generator alone decides."""
    ids = numbers(parts["ids"])
    found = _shares(case, ids)
    if len(parts) == 1:
        return found
    same, other, second = (numbers(parts[f"ids of {which}"]) for which in ("the same state", "another state", "a second call"))
    return found | {
        "the same generator state gives the same ids": flag(np.array_equal(ids, same)),
        "another generator state gives the same ids": flag(np.array_equal(ids, other)),
        "a second call with the same generator gives the same ids": flag(np.array_equal(ids, second)),
    }


def _shares(case: Case, result: Array) -> dict[str, Part]:
    """As shares of 1 in the row of each last token."""
    ids, new, vocabulary = case.args[0].array, case.args[1], case.options["table"].shape[1]
    b, t = ids.shape
    if result.shape != (b, t + new):
        raise ContractError(f"The ids have shape {result.shape}; (B, T + max_new_tokens), here {(b, t + new)}, was asked for.")
    if not np.array_equal(result[:, :t], ids):
        raise ContractError("The ids that came back do not begin with the ids that were given.")
    lasts, quarter = np.unique(ids[:, -1]).tolist(), vocabulary // 4
    drawn = [np.clip(result[ids[:, -1] == last, t:].astype(np.int64) // quarter, 0, 3).ravel() for last in lasts]
    name = "share of each token" if quarter == 1 else "share of each quarter of the vocabulary"
    shares = np.stack([np.bincount(of, minlength=4) / len(of) for of in drawn])
    return {f"{name}, by the last token {lasts}": Part("ndarray", shares, "float64")}
