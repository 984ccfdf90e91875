"""How designed projections are judged: by the attention weights that they give, whatever they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grader.course.readings import ContractError
from grader.course.spec import Case
from grader.worker.values import Observation, Part

SLACK = 1e-6  # by which a weight may miss the share
LARGEST = 1e300  # what scores are multiplied with
CLOSE = 1e-3  # how near the odds come to those of a known slip


def projection_case(key: str, t: int, share: float) -> Case:
    return Case(
        key, f"{t} tokens, a share of {share:g}", (t, share), reading=read, atol=1.0, costly=t > 200
    )  # weights alone never tell mistakes apart


def read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The attention weights of the learner's pair for x the identity, and what its rows do, in words: no two pairs agree in numbers.

    Raises: ContractError where the pair makes no weights.
    """
    pair = parts["result"]
    if pair.kind != "sequence" or len(pair.items) != 2:
        return {"result": pair}  # how many things were asked for is said where that is compared
    t, share = case.args or (case.kwargs["t"], case.kwargs["share"])
    w_q, w_k = (_matrix(name, part, t) for name, part in zip(("w_q", "w_k"), pair.items, strict=True))
    if w_q.shape != w_k.shape:
        raise ContractError(
            f"w_q has {w_q.shape[1]} columns and w_k {w_k.shape[1]}; a query and a key have the same length d_k."
        )
    sizes = [max(float(np.abs(w).max()), np.finfo(float).tiny) for w in (w_q, w_k)]
    products, size = (
        (w_q / sizes[0]) @ (w_k / sizes[1]).T,
        min(sizes[0] * sizes[1], LARGEST),
    )  # so that no product overflows
    root = np.sqrt(w_q.shape[1])
    weights = _softmax(products, size / root)
    does = _rows(weights, share) if share > 1 / t else []  # else equal weights are enough
    if "less" in does and set(does) <= {"asked", "less"}:
        does += [
            name
            for name, more in (("times root", size), ("times d_k", size * root))
            if _reached(_softmax(products, more), share)
        ]
        does += _odds(weights, share)
    return {
        "attention weights": Part("ndarray", weights.round(12), "float64"),
        "what its rows do": Part("text", text=" ".join(does)),
    }


def judge(case: Case, expected: Observation, got: Observation) -> str | None:
    """Whether each row gives its token the share that was asked for; any pair of projections may do that."""
    part = got.parts.get("attention weights")
    if part is None or part.array is None:
        return "Two arrays were asked for: (w_q, w_k)."
    t, share = case.args or (case.kwargs["t"], case.kwargs["share"])
    weights = part.array
    missed = np.flatnonzero(_chosen(weights) < share - SLACK)
    if not missed.size:
        return None
    row = int(missed[0])
    column = max(row - 1, 0)
    top = int(weights[row].argmax())
    most = (
        f"; its largest weight, {weights[row, top]:.4g}, is on column {top}"
        if weights[row, top] > weights[row, column] + 1e-9
        else ""
    )
    more = f" {missed.size} of {t} rows fall short." if missed.size > 1 else ""
    return (
        f"In the attention weights that this pair gives, row {row} has {weights[row, column]:.4g} on column {column}, and at least "
        f"{share:g} was asked for{most}.{more}"
    )


def _matrix(name: str, part: Part, t: int) -> np.ndarray:
    """A projection (t, d_k) in float64. Raises: ContractError, in words."""
    if part.kind != "ndarray" or part.array is None or part.array.dtype.kind not in "fiu":
        raise ContractError(f"{name} is {_said(part)}; a NumPy array of numbers was expected.")
    if part.array.ndim != 2 or part.array.shape[0] != t or part.array.shape[1] < 1:
        wanted = f"({t}, d_k) was expected, a row for each of the {t} numbers in a token's vector"
        raise ContractError(f"{name} has shape {part.array.shape}; {wanted}.")
    if not np.isfinite(part.array).all():
        raise ContractError(f"{name} has entries that are NaN or infinite; they should be finite.")
    return part.array.astype(np.float64)


def _said(part: Part) -> str:
    kinds = {
        "ndarray": "an array of other things than real numbers",
        "tensor": "a torch tensor",
        "sequence": "a list or tuple",
        "none": "None",
        "number": "a single number",
        "other": f"of another type ({part.text})",
    }
    return kinds.get(part.kind, "something else")


def _softmax(scores: np.ndarray, factor: float) -> np.ndarray:
    exps = np.exp((scores - scores.max(axis=-1, keepdims=True)) * factor)
    return exps / exps.sum(axis=-1, keepdims=True)


def _before(t: int) -> np.ndarray:
    """The column of each row's token: the one before it, for row 0 its own."""
    return np.maximum(np.arange(t) - 1, 0)


def _chosen(weights: np.ndarray) -> np.ndarray:
    """Each row's weight on its token."""
    return weights[np.arange(len(weights)), _before(len(weights))]


def _reached(weights: np.ndarray, share: float) -> bool:
    return bool((_chosen(weights) >= share - SLACK).all())


def _rows(weights: np.ndarray, share: float) -> list[str]:
    """What each row of weights does: 'asked', 'less' (its token has the most, and too little), 'even', 'least', 'tie' or a column."""
    t = len(weights)
    chosen, column = _chosen(weights), _before(t)
    others = weights[column[:, None] != np.arange(t)].reshape(t, t - 1)
    alike = np.ptp(others, axis=1) < 1e-9
    largest = weights > weights.max(axis=1, keepdims=True) - 1e-9
    most = largest.argmax(axis=1)
    does = {
        "asked": chosen >= share - SLACK,
        "even": np.ptp(weights, axis=1) < 1e-9,
        "least": alike & (chosen <= others[:, 0]),
        "tie": ~alike & (largest.sum(axis=1) > 1),
        "less": alike | (most == column),
    }
    return np.select(list(does.values()), list(does), most.astype(str)).tolist()


def _odds(weights: np.ndarray, share: float) -> list[str]:
    """Known slips, told by how a row's weights stand to one another: the odds against one other token, or against all."""
    top, others = _chosen(weights), (1 - _chosen(weights)) / (len(weights) - 1)
    found = []
    if np.allclose(top * (1 - share), share * others, rtol=CLOSE, atol=0):
        found.append("odds against one")
    if np.allclose(top, share / (1 + share), rtol=CLOSE, atol=0):
        found.append("share for odds")
    return found
