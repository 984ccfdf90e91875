"""What lesson 01 draws."""

import matplotlib.pyplot as plt
import numpy as np


def draw_scores(scores: np.ndarray) -> None:
    """A score for each pair of a query and a key. scores: (n_q, n_k)."""
    _, axes = plt.subplots(figsize=(3, 2))
    axes.imshow(scores)
    axes.set(xlabel="key", ylabel="query")
    plt.show()
