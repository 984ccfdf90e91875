"""Lesson 02: functions that claim to be a softmax of each row, for a learner's search to tell the right from the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import (
    abs as absolute,
    array,
    errstate,
    exp,
    float16,
    float32,
    float64,
    log,
    median,
    nan_to_num,
    ndarray,
    rint,
    where,
)

from grader.worker.originals import BUILTINS
from grader.worker.probes import ContractError, Run, call_function, mark_result

__builtins__ = BUILTINS


def on_candidates(function: Any, run: Run) -> dict[str, Any]:
    """Calls find_failure(candidate). options: candidate, one of CANDIDATES; by_name.

    Parts: 'calls of the candidate', and 'result'.
    """
    calls, raised = [0], []
    candidate = CANDIDATES[run.options["candidate"]]

    def counted(scores: Any) -> Any:
        calls[0] += 1
        try:
            return candidate(scores)
        except Exception as error:
            raised.append(error)
            raise

    try:
        result = call_function(function, run, counted)
    except Exception as error:
        if any(error is one for one in raised):
            what = type(error).__name__
            raise ContractError(f"The candidate raised {what}, which find_failure let through: catch it.") from None
        raise
    return {"calls of the candidate": calls[0], "result": mark_result(result)}


def _grown(scores: Any, shift: Callable[[ndarray], Any] = lambda s: s.max(axis=1, keepdims=True)) -> ndarray:
    s = array(scores, float64)
    return exp(s - shift(s))


def _rows(grown: ndarray) -> ndarray:
    return grown / grown.sum(axis=1, keepdims=True)


def _one_after_another(scores: Any) -> ndarray:
    grown = _grown(scores)
    return grown / grown.cumsum(axis=1)[:, -1:]  # rounds as a loop over the entries does, in compiled code


def _by_logarithm(scores: Any) -> ndarray:
    s = array(scores, float64)
    top = s.max(axis=1, keepdims=True)
    return exp(s - top - log(exp(s - top).sum(axis=1, keepdims=True)))


def _first_row_for_all(scores: Any) -> ndarray:
    grown = _grown(scores)
    return grown / grown[0].sum()


def _forgets_last_column(scores: Any) -> ndarray:
    grown = _grown(scores)
    return grown / grown[:, : max(1, grown.shape[1] - 1)].sum(axis=1, keepdims=True)


def _forgets_last_row(scores: Any) -> ndarray:
    right = _rows(_grown(scores))
    if len(right) > 1:
        right[-1] = 0.0
    return right


def _shifted(shift: Callable[[ndarray], Any]) -> Callable[[Any], ndarray]:
    """A softmax that subtracts `shift` of the scores; where that overflows or gives 0 / 0, it does so without a warning."""
    return _quiet(lambda scores: _rows(_grown(scores, shift)))


def _where_square(otherwise: Callable[[ndarray], ndarray]) -> Callable[[Any], ndarray]:
    """Right where there are as many rows as columns."""

    def candidate(scores: Any) -> ndarray:
        grown = _grown(scores)
        return _rows(grown) if grown.shape[0] == grown.shape[1] else otherwise(grown)

    return candidate


def _without_last(grown: ndarray) -> ndarray:
    right = _rows(grown)
    right[:, -1] = 0.0
    return right


def _quiet(way: Callable[[Any], ndarray]) -> Callable[[Any], ndarray]:
    def candidate(scores: Any) -> ndarray:
        with errstate(all="ignore"):
            return way(scores)

    return candidate


def _one_row_flat(scores: Any) -> ndarray:
    right = _rows(_grown(scores))
    return right[0] if len(right) == 1 else right


def _without_keepdims(scores: Any) -> ndarray:
    grown = _grown(scores)
    return grown / grown.sum(axis=1)


def _only_row(row: Any) -> ndarray:
    return _rows(_grown(row[None]))


def _top(s: ndarray) -> ndarray:
    return s.max(axis=1, keepdims=True)


def _cut(scores: Any, most: float) -> ndarray:
    return _rows(_grown(array(scores, float64).clip(-most, most)))


_NONE = _shifted(lambda s: 0.0)

# The right ones first. Each takes scores (m, n) and leaves them alone.
CANDIDATES: dict[str, Callable[[Any], Any]] = {
    "the maximum of each row is subtracted": _shifted(_top),
    "the exponentials are added up one after another": _one_after_another,
    "through the logarithm of the sum": _by_logarithm,
    "the result in float32": lambda scores: _rows(_grown(scores)).astype(float32),
    "each row's maximum, and 3 more, is subtracted": _shifted(lambda s: _top(s) + 3.0),
    "nothing is subtracted": _NONE,
    "nothing is subtracted, and NaN becomes 0": lambda scores: nan_to_num(_NONE(scores)),
    "scores are cut at ±100": lambda scores: _cut(scores, 100.0),
    "scores are cut at ±600": lambda scores: _cut(scores, 600.0),
    "each row's mean is subtracted": _shifted(lambda s: s.mean(axis=1, keepdims=True)),
    "each row's median is subtracted": _shifted(lambda s: median(s, axis=1, keepdims=True)),
    "each row's first score is subtracted": _shifted(lambda s: s[:, :1]),
    "half of each row's maximum is subtracted": _shifted(lambda s: _top(s) / 2),
    "each row's minimum is subtracted": _shifted(lambda s: s.min(axis=1, keepdims=True)),
    "each row's maximum is added": _shifted(lambda s: -_top(s)),
    "the maximum of the whole table is subtracted": _shifted(lambda s: s.max()),
    "the first row's maximum is subtracted everywhere": _shifted(lambda s: s[0].max()),
    "the mean of the rows' maxima is subtracted": _shifted(lambda s: _top(s).mean()),
    "each row's largest absolute value is subtracted": _shifted(lambda s: absolute(s).max(axis=1, keepdims=True)),
    "the maximum is subtracted only where it is positive": _shifted(lambda s: _top(s).clip(min=0.0)),
    "the maximum is subtracted only where it is above −100": _shifted(lambda s: where(_top(s) > -100.0, _top(s), 0.0)),
    "columns sum to 1": lambda scores: _rows(_grown(array(scores, float64).T)).T,
    "the whole table sums to 1": lambda scores: _grown(scores, ndarray.max) / _grown(scores, ndarray.max).sum(),
    "right for one row, columns otherwise": lambda scores: (
        _rows(_grown(scores)) if len(scores) == 1 else _rows(_grown(array(scores, float64).T)).T
    ),
    "every row is divided by the first row's sum": _first_row_for_all,
    "2 is raised to the scores": lambda scores: _rows(_grown(array(scores, float64) * log(2.0))),
    "absolute values of the scores": lambda scores: _rows(_grown(absolute(array(scores, float64)))),
    "scores rounded to whole numbers": lambda scores: _rows(_grown(rint(array(scores, float64)))),
    "weights rounded to three decimals": lambda scores: _rows(_grown(scores)).round(3),
    "weights rounded to four decimals": lambda scores: _rows(_grown(scores)).round(4),
    "weights kept in float16 for a moment": lambda scores: _rows(_grown(scores)).astype(float16).astype(float64),
    "the last column is left out of the sum": _forgets_last_column,
    "the last row is 0": _forgets_last_row,
    "right for square tables; columns otherwise": _where_square(lambda grown: grown / grown.sum(axis=0)),
    "right for square tables; the whole table otherwise": _where_square(lambda grown: grown / grown.sum()),
    "right for square tables; otherwise without the last column": _where_square(_without_last),
    "the transpose comes back": lambda scores: _rows(_grown(scores)).T,
    "keepdims is missing in the sum": _without_keepdims,
    "keepdims is missing in the maximum": _shifted(lambda s: s.max(axis=1)),
    ".item() is asked of the rows' maxima": _shifted(lambda s: s.max(axis=1).item()),
    "`if` is asked of the rows' maxima": _shifted(lambda s: _top(s) if s.max(axis=1) else 0.0),
    "the only row is unpacked": lambda scores: _only_row(*scores),
    "axes of length 1 are squeezed away": lambda scores: _rows(_grown(scores)).squeeze(),
    "a single row comes back flat": _one_row_flat,
    "an axis of length 1 comes first": lambda scores: _rows(_grown(scores))[None],
}
RIGHT = tuple(CANDIDATES)[:5]
