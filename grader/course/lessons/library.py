"""Inputs and properties that the exercises of several lessons share."""

from collections.abc import Callable, Mapping

import numpy as np

from grader.course.declare import Case, Property, Tensor

Array = np.ndarray
Parts = Mapping[str, Array]


def normal(rng: np.random.Generator, *shape: int, grad: bool = True) -> Tensor:
    """A float32 tensor of standard-normal numbers; grad: whether gradients with respect to it are taken."""
    return Tensor(rng.normal(size=shape).astype(np.float32), None, grad)


def qkv(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries (*lead, t_q, d_k), keys (*lead, t_k, d_k) and values (*lead, t_k, d_v)."""
    return normal(rng, *lead, t_q, d_k), normal(rng, *lead, t_k, d_k), normal(rng, *lead, t_k, d_v)


def random_mask(rng: np.random.Generator, *shape: int) -> Array:
    """A boolean mask in which every query sees some key, and not all."""
    mask = rng.random(shape) < 0.5
    mask[..., 0] |= ~mask.any(axis=-1)
    mask[..., -1] &= ~mask.all(axis=-1)
    return mask


def rows_sum_to_1(part: str = "weights") -> Property:
    """For attention weights: each row of that part sums to 1."""

    def check(case: Case, parts: Parts) -> str | None:
        sums = parts[part].sum(axis=-1)
        worst = np.unravel_index(np.abs(sums - 1).argmax(), sums.shape)
        if abs(sums[worst] - 1) < 1e-4:
            return None
        row = f"row {worst[0]}" if sums.ndim == 1 else f"row {tuple(map(int, worst))}" if sums.ndim else "the row"
        said = f"{sums[worst]:.4g}"
        return f"{row} sums to {said if said != '1' else f'{sums[worst]:.7g}'}."

    return Property("each row of weights sums to 1", check)


def hidden_gets_no_weight() -> Property:
    """For exercises whose fourth argument, or `mask`, is a boolean mask with True where attention is allowed."""

    def check(case: Case, parts: Parts) -> str | None:
        mask = case.args[3] if len(case.args) > 3 else case.kwargs.get("mask")
        if mask is None:
            return None
        hidden = parts["weights"][~np.broadcast_to(mask.array, parts["weights"].shape)]
        return None if np.abs(hidden).max(initial=0) < 1e-6 else f"a hidden key has the weight {np.abs(hidden).max():.3g}."

    return Property("what is hidden gets no weight", check)


def unmoved(
    title: str, needs: tuple[str, str], says: str, part: str = "output", of: Callable[[Array], Array] = lambda whole: whole,
) -> Property:  # fmt: skip
    """What a change of the input leaves as it was: `of` a part is the same in both cases.

    says: the sentence where it moved, with {gap} for by how much: "item 1 moved by {gap} when only item 0 changed."
    """

    def check(_: Case, before: Parts, __: Case, after: Parts) -> str | None:
        gap = np.abs(of(before[part]) - of(after[part])).max()
        return None if gap < 1e-4 else says.format(gap=f"{gap:.3g}")

    return Property(title, check, needs)
