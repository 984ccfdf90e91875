"""The wrong implementations of lesson 03: with no bug switched on, each is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from grader.lessons.lesson_01_mistakes import rows_by_math, scores_by_index

Arrays = tuple[np.ndarray, ...]

# At most one of each group can be meant at a time; pairs within a group are never tried.
_TURNED = ("SD8", "AB8", "AB15", "AB16", "AB17", "AB22", "AB23", "AB24")
_ONE_OF = (
    ("SM1", "SM2", "SM3", "SM4", "SX26", "AB10", "AB11", "AB20", "AB30"), ("SM5", "SM6", "SX23", "SX25", "SX26", "AB20"),
    ("SM3", "SM4", "SD6", "AB20", "AB30"),
    ("SD1", "SD2", "SD5", "SD6", "TT9", "TT11", "TT31", "AB12", "AB13", "AB14", "AB28", "AB29"), _TURNED, ("SM5", *_TURNED),
    ("SM6", *_TURNED),
    ("SD2", *_TURNED), ("AB1", "AB5", "AB8"), ("AB2", "AB3", "AB5"), ("AB4", "AB5", "AB9"), ("AB6", "AB8"),
    *((late, other) for late in ("AB28", "AB29") for other in ("SM5", "SM6")),
)  # fmt: skip
_ALONE = frozenset({"AB25", "AB26", "AB27", "AB31"})  # they fail, or leave nothing to be seen of another
LIKELY_IN_PAIRS = ("SD1", "SD2", "SM5", "SM6")  # left out beside another slip; all pairs would take half a second


def combine(build: Callable[..., Callable], *one_of: str) -> Callable[[frozenset[str]], Callable]:
    """Builds an implementation with two bugs, for pairs that make sense and, where given, hold one of these ids."""

    def combined(ids: frozenset[str]) -> Callable:
        if ids & _ALONE or any(len(ids.intersection(group)) > 1 for group in _ONE_OF) or (one_of and not ids.intersection(one_of)):
            raise KeyError(f"{' and '.join(sorted(ids))} are not tried together")
        return build(*ids)

    return combined


def project(*bugs: str) -> Callable[..., Arrays]:
    def project_qkv(x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray) -> Arrays:
        if "AB8 by einsum" in bugs:
            return tuple(np.einsum("btd,dk->btk", x, w) for w in (w_q, w_k, w_v))
        if "AB25 by einsum" in bugs:
            return tuple(np.einsum("td,dk->tk", x, w) for w in (w_q, w_k, w_v))
        if "AB25" in bugs:
            _tokens, _features = x.shape
        if "AB26" in bugs:
            return tuple(np.split(x @ np.concatenate([w_q, w_k, w_v], axis=1), 3, axis=-1))
        if "AB27" in bugs:
            w_k = w_v = w_q
        if "AB1 by inner" in bugs:
            return tuple(np.inner(x, w) for w in (w_q, w_k, w_v))
        if "AB1 by dot" in bugs:
            return tuple(x.dot(w.T) for w in (w_q, w_k, w_v))
        if "AB1 by einsum" in bugs:
            return tuple(np.einsum("...d,ed->...e", x, w) for w in (w_q, w_k, w_v))
        if "AB32" in bugs:
            return tuple(x @ w + 1 for w in (w_q, w_k, w_v))
        w_q, w_k, w_v = (w.T if f"AB1 of {name}" in bugs else w for name, w in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v)))
        if "AB1" in bugs:
            w_q, w_k, w_v = w_q.T, w_k.T, w_v.T
        if "AB2" in bugs:
            w_q, w_k = w_k, w_q
        if "AB8" in bugs:
            _batch, _tokens, _features = x.shape
        if "AB6" in bugs:
            x = x.reshape(-1, x.shape[-1])
        q = x @ w_q
        k = (q if "AB5" in bugs else x) @ (w_q if "AB3" in bugs else w_k)
        v = (k if "AB5" in bugs else x) @ (w_k if "AB4" in bugs else w_v)
        if "AB7" in bugs:
            q = q / math.sqrt(q.shape[-1])
        return (q, v, k) if "AB9" in bugs else (q, k, v)

    return project_qkv


def _scale(q: np.ndarray, k: np.ndarray, v: np.ndarray, bugs: Sequence[str]) -> float:
    """What the scores are divided by."""
    d_k = q.shape[-1]
    wrong = {
        "SD1": 1, "SD2": d_k**2, "SD5": 1 / d_k, "SD6": 1, "AB12": k.shape[-2], "AB13": v.shape[-1], "AB14": q.shape[1],
        "TT9": 4 * d_k**2, "TT11": int(math.sqrt(d_k)) ** 2, "TT31": d_k**2 / 4, "AB28": q.shape[-2],
        "AB28 by len": q.shape[0], "AB29": math.sqrt(d_k), "SD6 of the output": 1,
    }  # fmt: skip
    return math.sqrt(next((wrong[bug] for bug in bugs if bug in wrong), d_k))


def _divided(product: np.ndarray, scale: float, bugs: Sequence[str]) -> np.ndarray:
    if "AB31" in bugs:
        product /= scale
        return product
    return product / scale


def _softmax(scores: np.ndarray, bugs: Sequence[str]) -> np.ndarray:
    if "AB20" in bugs:
        return scores
    if "by math.exp" in bugs or "by math.exp into an array" in bugs:
        rows = scores.reshape(-1, scores.shape[-1])
        return rows_by_math(rows, 0.0, "by math.exp into an array" in bugs).reshape(scores.shape)
    axes = {"SM1": -2, "SM2": 0, "SM3": None, "SM3 of a matrix": (-2, -1), "AB10": 1, "AB11": 2}
    axis = next((axes[bug] for bug in bugs if bug in axes), -1)
    if "SM5" in bugs:
        exps = np.exp(scores)
    elif "SM6" in bugs or "SM6 of an item" in bugs:
        exps = np.exp(scores - scores.max(axis=(-2, -1) if "SM6 of an item" in bugs else None, keepdims=True))
    else:
        top = scores.max(axis=-1 if "of the sum alone" in bugs else axis, keepdims=not {"SX26", "SM4 of both"} & {*bugs})
        if "SX23" in bugs:
            top = np.abs(scores).max(axis=axis, keepdims=True)
        exps = np.exp(scores - (np.maximum(top, 0) if "SX25" in bugs else top))
    if "AB30" in bugs:
        return exps
    kept = "SM4" not in bugs and "SM4 of both" not in bugs
    return exps / exps.sum(axis=axis, keepdims=kept)


def _turned(k: np.ndarray, bugs: Sequence[str]) -> np.ndarray:
    """The keys as the right operand of the first product."""
    if "AB15" in bugs:
        return k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    if "AB16" in bugs:
        return k.T
    if "AB17" in bugs:
        return k.transpose(0, 2, 1)
    return k if "AB23" in bugs else k.swapaxes(-1, -2)


def attention(*bugs: str) -> Callable[..., Arrays]:
    def scaled_dot_product_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Arrays:
        if "AB8" in bugs:
            _batch, _queries, _features = q.shape
        if "AB25" in bugs:
            _queries, _features = q.shape
        if "AB8 by einsum" in bugs or "AB25 by einsum" in bugs:
            product = np.einsum("bqd,bkd->bqk" if "AB8 by einsum" in bugs else "qd,kd->qk", q, k)
        elif "SD8 by einsum" in bugs:
            product = np.einsum("...qd,...kd->...kq", q, k)
        elif "SD8 by index" in bugs:
            product = np.array([scores_by_index(*pair) for pair in zip(_matrices(q), _matrices(k), strict=True)])
            product = product.reshape(*q.shape[:-1], k.shape[-2])
        else:
            product = k @ q.swapaxes(-1, -2) if "SD8" in bugs else q @ _turned(k, bugs)
        scores = _divided(product, _scale(q, k, v, bugs), bugs)
        weights = _softmax(scores, bugs)
        if "SD6" in bugs:
            weights = weights / math.sqrt(q.shape[-1])
        if "SD8 by einsum" in bugs or "AB22 by einsum" in bugs:
            output = np.einsum("...kq,...kv->...qv" if "AB22 by einsum" in bugs else "...qk,...kv->...qv", weights, v)
        else:
            output = (weights.swapaxes(-1, -2) if "AB22" in bugs else weights) @ v
        if "SD6 of the output" in bugs:
            output = output / math.sqrt(q.shape[-1])
        if "AB21" in bugs:
            output = output.astype(v.dtype)
        if "AB19" in bugs:
            weights = scores
        return (weights, output) if "AB18" in bugs else (output, weights)

    return scaled_dot_product_attention


def _matrices(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[-2:])


def by_einsum(*bugs: str) -> Callable[..., np.ndarray]:
    first = "bqd,bkd->bqk"
    if "SD8" in bugs:
        first = "bqd,bkd->bkq"
    elif "AB23" in bugs:
        first = "bqd,bdk->bqk"
    elif "AB24" in bugs:
        first = "bqd,bkd->qk"
    second = f"{'qk' if 'AB24' in bugs else 'bqk'},{'bqd->bkd' if 'AB22' in bugs else 'bkd->bqd'}"

    def attention_einsum(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        weights = _softmax(_divided(np.einsum(first, q, k), _scale(q, k, v, bugs), bugs), bugs)
        output = np.einsum(second, weights, v)
        return output / math.sqrt(q.shape[-1]) if "SD6" in bugs else output

    return attention_einsum
