"""Ways of going wrong that lesson 03 shares with lesson 01; they go when lesson 03 is declared in a folder."""

from __future__ import annotations

import math

import numpy as np


def scores_by_index(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """One score at a time, with the indices of query and key exchanged."""
    scores = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            scores[i, j] = Q[j] @ K[i]
    return scores


def rows_by_math(scores: np.ndarray, top: float, stored: bool) -> np.ndarray:
    """Softmax of each row by math.exp, which raises where np.exp gives ∞; so does the division of Python's numbers by 0.

    top: what is subtracted everywhere. stored: the exponentials stand in an array before they are divided.
    """
    rows = []
    for row in scores:
        grown = [math.exp(score - top) for score in row]
        rows.append(np.array(grown) / sum(grown) if stored else [number / sum(grown) for number in grown])
    return np.array(rows)
