"""The wrong implementations of lesson 04: with no bug switched on, each is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


def std(*bugs: str) -> Callable[..., float]:
    """Draws q and k and measures their dot products, with the named bugs switched on."""

    def dot_product_std(d_k: int, n_samples: int, rng: np.random.Generator) -> float:
        if "WS7" in bugs:
            rng = np.random.default_rng(0)
        if "WS13" in bugs:
            n_samples = 1000
        shape = (d_k, n_samples) if "WS29 of exchanged sizes" in bugs else (n_samples, d_k)
        if "WS1" in bugs:
            q, k = rng.random(shape), rng.random(shape)
        elif "WS8" in bugs:
            q, k = np.random.standard_normal(shape), np.random.standard_normal(shape)
        elif "WS30 keys first" in bugs:
            k, q = rng.standard_normal(shape), rng.standard_normal(d_k)
        else:
            q, k = rng.standard_normal(d_k if "WS30" in bugs else shape), rng.standard_normal(shape)
        if "WS5" in bugs:
            k = q
        if "WS6" in bugs:
            return float((q * k).std())
        dots = (q * k).sum(axis=0 if "WS29" in bugs else -1)
        if "WS2" in bugs:
            return float(dots.var())
        if "WS3" in bugs:
            return float(np.abs(dots).mean())
        if "WS4" in bugs:
            return float((dots / np.sqrt(d_k)).std())
        return float(dots.std())

    return dot_product_std


def entropy(*bugs: str) -> Callable[..., Array]:
    def row_entropy(weights: Array) -> Array:
        if "WS33" in bugs:
            weights = softmax(weights)
        log = np.log2 if "WS10" in bugs else np.log10 if "WS23" in bugs else np.log
        if "WS9" in bugs:
            terms = weights * np.log(weights)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                seen = weights if "WS31" in bugs else np.where(weights > 0, weights, 1)
                terms = weights * log(seen)
        if "WS12" in bugs:
            return -terms.sum()
        if "WS18" in bugs:
            return -terms.mean(axis=-1)
        if "WS19" in bugs:
            return -terms.sum(axis=0)
        total = terms.sum(axis=-1, keepdims="WS34" in bugs)
        if "WS31" in bugs:
            return np.nan_to_num(-total)
        if "WS32" in bugs:
            return np.exp(-total)
        if "WS20" in bugs:
            return -total / np.log(max(weights.shape[-1], 2))
        return total if "WS11" in bugs else -total

    return row_entropy


def entropy_of_two(ids: frozenset[str]) -> Callable[..., Array]:
    # Some hide another: softmax leaves no weight of 0, and what ends in one way does not end in another.
    if ids & {"WS31", "WS32", "WS33"} or ("WS34" in ids and ids & {"WS12", "WS18", "WS19"}):
        raise KeyError(f"{' and '.join(sorted(ids))} are not tried together")
    return entropy(*ids)


def softmax(scores: Array, bugs: Sequence[str] = ()) -> Array:
    """Of lessons 04 and 08; the maximum that lost its axis has an id of its own in each."""
    axes = {"SM1": -2, "SM2": 0, "SM3": None}
    axis = next((axes[bug[:3]] for bug in bugs if bug[:3] in axes), -1)
    if any("of axis 1" in bug for bug in bugs):
        axis = 1
    if scores.ndim == 1 and any(bug.endswith("but for one row") for bug in bugs):
        axis = -1
    if "SM5" in bugs:
        e = np.exp(scores)
    elif "SM6" in bugs:
        e = np.exp(scores - scores.max())
    else:
        of_row = any(bug.endswith("of the row's maximum") for bug in bugs)
        kept = not {"WS25", "GB23", "SM4 of both"} & {*bugs}
        e = np.exp(scores - scores.max(axis=-1 if of_row else axis, keepdims=kept))
    return e / e.sum(axis=axis, keepdims="SM4" not in bugs and "SM4 of both" not in bugs)


def norm(*bugs: str) -> Callable[..., Array]:
    def softmax_gradient_norm(scores: Array) -> Array:
        p = softmax(scores, bugs)
        if "WS17" in bugs:
            p = scores
        eye = np.eye(p.shape[-1])
        outer = p[..., :, None] * p[..., None, :]
        jacobian = p[..., :, None] * eye - outer
        if "WS14" in bugs:
            jacobian = p[..., :, None] * eye
        if "WS16" in bugs:
            jacobian = (p * (1 - p))[..., :, None] * eye
        if "WS26" in bugs:
            jacobian = p[..., :, None] * eye + outer
        if "WS24" in bugs:
            return (p**2).sum(axis=-1)
        if "WS21" in bugs:
            return np.abs(jacobian).sum(axis=(-1, -2))
        if "WS22" in bugs:
            return np.linalg.norm(jacobian, ord=2, axis=(-2, -1))
        if "WS27" in bugs:
            return np.sqrt((jacobian**2).sum())
        if "WS28" in bugs:
            return np.sqrt((jacobian**2).mean(axis=(-1, -2)))
        squares = (jacobian**2).sum(axis=(-1, -2))
        return squares if "WS15" in bugs else np.sqrt(squares)

    return softmax_gradient_norm


def norm_of_two(ids: frozenset[str]) -> Callable[..., Array]:
    # The diagonal's absolute sum is also the nuclear norm of the whole Jacobian, its largest number the Jacobian's.
    if ids & {"WS14", "WS16", "WS24"} and ids & {"WS21", "WS22", "WS24"}:
        raise KeyError(f"{' and '.join(sorted(ids))} would fit what is something else")
    axes = ids & {"SM1", "SM3", "SM4"}
    if ids & {"SM2", "WS25", "WS26", "WS27", "WS28"} or len(axes) > 1 or (axes and "WS17" in ids):
        raise KeyError(f"{' and '.join(sorted(ids))} are not tried together")
    return norm(*ids)
