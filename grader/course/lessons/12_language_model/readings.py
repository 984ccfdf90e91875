"""Lesson 12: what follows from what its probes saw of a generating loop."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
Array = np.ndarray


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
