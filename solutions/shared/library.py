"""Inputs, properties and mistakes that the exercises of several lessons share."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from grader.course.declare import UNTRIED, Case, Property, Tensor, patch
from grader.course.patches import Patch
from grader.course.readings import flag, numbers
from grader.course.spec import Exercise
from grader.worker.values import Part

ROW_MAXIMUM = "scores - scores.amax(dim=-1, keepdim=True)"  # for softmax_by_hand

Array = np.ndarray
Parts = Mapping[str, Array]


def normal(rng: np.random.Generator, *shape: int, grad: bool = True) -> Tensor:
    """A float32 tensor of standard-normal numbers; grad: whether gradients with respect to it are taken."""
    return Tensor(rng.normal(size=shape).astype(np.float32), None, grad)


def earlier_inputs(rng: np.random.Generator, *shapes: tuple[int, ...]) -> tuple[tuple[Array], ...]:
    """What a module reads before the call that counts: option `earlier` of the probe after_earlier_calls, of multi-head attention."""
    return tuple((rng.normal(size=shape).astype(np.float32),) for shape in shapes)


def after_earlier_calls(rng: np.random.Generator, case: Case, *shapes: tuple[int, ...]) -> Case:
    """The case of a module that has read inputs of these shapes before."""
    return replace(
        case,
        probe="shared.probes.after_earlier_calls",
        reading=None,
        options={**case.options, "earlier": earlier_inputs(rng, *shapes)},
    )


def qkv(
    rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int
) -> tuple[Tensor, Tensor, Tensor]:
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
            return UNTRIED
        hidden = parts["weights"][~np.broadcast_to(mask.array, parts["weights"].shape)]
        if hidden.size == 0:
            return UNTRIED
        return None if np.abs(hidden).max() < 1e-6 else f"a hidden key has the weight {np.abs(hidden).max():.3g}."

    return Property("what is hidden gets no weight", check)


def invariant(
    title: str,
    cases: tuple[str, str],
    says: str,
    part: str = "output",
    of: Callable[[Array], Array] = lambda whole: whole,
) -> Property:
    """What a change of the input leaves as it was: `of` a part is the same in both cases.

    says: the sentence where it moved, with {gap} for by how much: "item 1 moved by {gap} when only item 0 changed."
    """

    def check(_: Case, before: Parts, __: Case, after: Parts) -> str | None:
        gap = np.abs(of(before[part]) - of(after[part])).max()
        return None if gap < 1e-4 else says.format(gap=f"{gap:.3g}")

    return Property(title, check, cases)


def batch_independence(before: str, after: str, part: str = "output") -> Property:
    """For two cases that differ in item 0 of the batch alone."""
    return invariant(
        "one item of a batch does not affect another",
        (before, after),
        "item 1 of the batch moved by {gap} when only item 0 changed.",
        part,
        lambda whole: whole[1],
    )


def random_parameters(
    rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]], size: float = 1.0
) -> dict[str, Array]:
    """Parameters of a module by name, float32: normal numbers times `size`."""
    return {name: (size * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def fused_shapes(d_model: int) -> dict[str, tuple[int, int]]:
    """The shapes of one projection for q, k and v and of the one behind the heads, neither with a bias."""
    return {"qkv.weight": (3 * d_model, d_model), "proj.weight": (d_model, d_model)}


def changes(parts: Mapping[str, Part], says: Mapping[str, str]) -> list[str]:
    """What `says` has for each thing that a probe read twice, as '… before' and '… after', where the two differ."""
    return [said for name, said in says.items() if not _same(parts[f"{name} before"], parts[f"{name} after"])]


def _same(before: Part, after: Part) -> bool:
    if before.kind == after.kind == "sequence":
        return len(before.items) == len(after.items) and all(map(_same, before.items, after.items))
    return (before.kind, before.shape) == (after.kind, after.shape) and numbers(before).tobytes() == numbers(
        after
    ).tobytes()


def mistakes_of(step: Exercise, *ids: str) -> dict[str, tuple[Patch, ...]]:
    """Mistakes that another exercise of the lesson declares, as patches of that one's solution."""
    patches: dict[str, tuple[Patch, ...]] = {id: () for id in ids}
    for one in step.mistakes:
        if one.id in patches:
            patches[one.id] += (Patch(tuple(replace(hunk, of=step.name) for hunk in one.wrong.hunks)),)
    return patches


def scale_mistakes(width: str = "q.shape[-1]") -> dict[str, Patch]:
    """No scale, d_k where its root belongs, and a product; the reference divides by math.sqrt(width)."""
    root = f"math.sqrt({width})"
    return {"SD1": patch(f" / {root}", ""), "SD2": patch(root, width), "SD5": patch("/ math", "* math")}


def softmax_by_hand(shifted: str, total: str = "e.sum(dim=-1, keepdim=True)", indent: int = 8) -> Patch:
    """Softmax written out in the place of torch's: e = exp of `shifted`, divided by a sum of e. indent: of the reference's line."""
    return patch(
        "weights = torch.softmax(scores, dim=-1)", f"e = torch.exp({shifted})\n{' ' * indent}weights = e / {total}"
    )


def on_another_device(case: Case) -> Case:
    """The same inputs, of which is asked on which device the result would lie if they lay on another one."""
    return replace(
        case,
        key="device",
        title=f"{case.title}, on another device",
        probe="shared.probes.on_device",
        reading=devices,
        stage="extremes",
        options={key: value for key, value in case.options.items() if key in ("init", "state")},
    )


def devices(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Whether all that a result is computed of lies on the inputs' device; DT4 and DT5 say what does not."""
    behind = parts["behind"].text
    return {
        "each tensor that is made lies on the inputs' device": flag(behind != "made", "DT4"),
        "each tensor that the module keeps follows it to another device": flag(behind != "kept", "DT5"),
    }
