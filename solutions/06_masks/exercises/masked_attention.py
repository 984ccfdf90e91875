"""Attention behind a boolean mask, with rows that may see nothing."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import hidden_gets_no_weight, invariant, qkv, random_mask, rows_sum_to_1, scale_mistakes
from .. import readings


def _hidden_pair(rng: np.random.Generator) -> Iterator[Case]:
    q, k, v = (Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = np.array([1, 1, 0, 1, 0], bool)
    yield Case("hidden-1", "two keys hidden from everyone, by a mask (T_k,)", (q, k, v, Tensor(mask)))
    other = [Tensor(np.where(mask[:, None], t.array, 7 * t.array + 3)) for t in (k, v)]
    yield Case("hidden-2", "the same, other numbers in what is hidden", (q, *other, Tensor(mask)))


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores from -10,000 to 10,000. Whole numbers and d_k = 4 keep them exact; each row is saturated or differs by whole halves."""
    levels = np.array([10, 90, -100, 100, -100])
    # The first query sees the lowest scores alone, beside hidden ones of 10,000: a fill of -10,000 is not out of reach, and what takes
    # the maximum over hidden keys leaves nothing. The greatest visible score of the last query stands first and last in no order of keys.
    seen = np.array([[0, 0, 1, 0, 1], [1, 1, 0, 1, 0], [1, 1, 1, 0, 1]], bool)
    q = np.stack([[100, -100, 50], np.ones(3), *np.zeros((2, 3))], axis=-1).astype(np.float32)
    for i in range(3):
        v = rng.normal(size=(2, 5, 2)).astype(np.float32)
        orders = [np.roll(np.arange(5), i), rng.permutation(5)]
        k = np.zeros((2, 5, 4), np.float32)
        k[..., 0], k[..., 1] = [2 * levels[order] for order in orders], [order + i for order in orders]
        mask = np.stack([seen[:, order] for order in orders])
        title = "scores of ±10,000, the lowest visible and the highest hidden"
        yield Case(
            f"large-{i}",
            title,
            (Tensor(np.stack([q, q])), Tensor(k), Tensor(v), Tensor(mask)),
            stage="extremes",
            rtol=2e-3,
            atol=2e-3,
        )


def _apart(rng: np.random.Generator) -> Iterator[Case]:
    """The highest score is visible, then hidden: what forgets the maximum is told from what takes a hidden one."""
    k = np.zeros((2, 4, 4), np.float32)
    q = np.zeros((2, 3, 4), np.float32)
    above = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]], bool)
    for key, top, asks, which, mask in (
        ("above", 300, [1, -1, 0.5], "visible", above),
        ("below", 60, [1, -1, 1], "hidden", ~above),
    ):
        q[..., 0] = asks
        k[..., 0] = 2 * np.array([[top, top - 1, -top, 1 - top], [top - 1, top, 1 - top, -top]])
        title = f"scores of ±{top}, the highest {which}"
        v = rng.normal(size=(2, 4, 2)).astype(np.float32)
        yield Case(key, title, (Tensor(q.copy()), Tensor(k.copy()), Tensor(v), Tensor(mask)), stage="extremes")


def _precisions(rng: np.random.Generator) -> Iterator[Case]:
    sizes = {"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-4}
    for dtype, atol in sizes.items():
        for i in range(3 if dtype == "float16" else 1):
            tensors = tuple(Tensor(t.array.round(2), dtype, True) for t in qkv(rng, (2,), 3, 4, 2, 5))
            mask = random_mask(rng, 2, 3, 4)
            mask[1, i] = False
            given, title = ((*tensors, Tensor(mask)), "one row empty") if dtype != "float32" else (tensors, "no mask")
            yield Case(
                f"{dtype}-{i}",
                f"{dtype}, {title}",
                given,
                reading=readings.output_alone,
                stage="extremes",
                dtype=(dtype,),
                atol=atol,
                rtol=atol,
            )


SCALE = " / math.sqrt(q.shape[-1])"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
LOWEST = "lowest = torch.finfo(scores.dtype).min"
HIDE = "scores = scores.masked_fill(~mask, lowest)"
ADDED = "scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)"
ZERO = "weights = weights.masked_fill(~mask, 0.0)"
RETURN = "return (weights @ v, weights)"
UNZEROED = patch(ZERO, "pass")
EMPTY_ZEROED = patch(ZERO, "weights = weights * mask.any(dim=-1, keepdim=True)")
LOWERED = patch(HIDE, "scores = scores + (~mask).to(scores) * lowest")
GUARDED = "weights = weights / total.masked_fill(total == 0, 1.0)"
CLAMPED = "weights = weights / total.clamp_min(1e-20)"
REPAIRED = "weights = (weights / total).nan_to_num(0.0)"
TOTAL = "total = weights.sum(-1, keepdim=True)"


def by_hand(exponentials: str, *then: str):
    """Softmax of the visible scores made of exp where there is a mask; without one it stays as it is."""
    return patch(HIDE, "pass", ZERO, "\n        ".join((f"weights = {exponentials}", *then)))


def filled(fill: float):
    return patch(LOWEST, f"lowest = {fill}")


@exercise(
    points=4,
    minutes=18,
    difficulty=3,
    result_type="tensor",
    result_names=("output", "weights"),
    forbids=("attention",),
    pair_runs=20,
)
class masked_attention:
    """Compute attention only where a mask allows it, with zeros for a query that may see no key."""

    def cases(rng):
        """No mask, masks of every broadcastable shape, empty rows, large scores, half precision."""
        q, k, v = (
            Tensor(np.array(a, np.float32), None, True)
            for a in ([[1, 0], [0, 1], [1, 1]], [[1, 1], [1, 0], [0, 1]], [[10, 0], [0, 10], [5, 5]])
        )
        lower = Tensor(np.tri(3, dtype=bool))
        yield Case("small", "the three tokens of lesson 01, causal", (q, k, v, lower))
        yield Case("no-mask", "no mask given", qkv(rng, (2,), 3, 5, 4, 6))
        yield Case("none", "mask=None", qkv(rng, (2,), 3, 5, 4, 6), {"mask": None})
        for key, title in (
            ("sizes", "all sizes different, a mask for each item"),
            ("seen-again", "the same sizes, new numbers"),
        ):
            yield Case(key, title, (*qkv(rng, (2,), 5, 7, 4, 6), Tensor(random_mask(rng, 2, 5, 7))))
        yield Case(
            "shared", "one mask for the whole batch", (*qkv(rng, (3,), 2, 4, 5, 2), Tensor(random_mask(rng, 2, 4)))
        )
        yield Case(
            "padding", "a padding mask (B, 1, T_k)", (*qkv(rng, (3,), 3, 4, 2, 5), Tensor(random_mask(rng, 3, 1, 4)))
        )
        turned = (replace(tensor, array=np.asfortranarray(tensor.array)) for tensor in qkv(rng, (2, 3), 4, 5, 2, 3))
        heads = (*turned, Tensor(random_mask(rng, 2, 1, 4, 5)))
        yield Case("heads", "a mask shared by all heads, tensors that are not contiguous in memory", heads)
        for i, (b, h) in enumerate(((2, 3), (2, 2), (3, 2))):
            own = (*qkv(rng, (b, h), 3, 4, 2, 5), Tensor(random_mask(rng, h, 3, 4)))
            yield Case(f"own-{i}", "a mask (H, T_q, T_k): one for each head, the same for all items", own)
        for i, keys in enumerate(([[1, 1], [2, 0], [0, 1]], [[0, 1], [-1, 0], [3, 3]])):
            q, k = (Tensor(np.array(a, np.float32)) for a in ([[1, 0], [0, 2], [1, -1]], keys))
            v = Tensor(rng.normal(size=(3, 4)).astype(np.float32))
            yield Case(f"zeros-{i}", "visible scores that are 0", (q, k, v, Tensor(np.tri(3, dtype=bool))))
        wide = qkv(rng, (), 18, 19, 3, 2)
        yield Case(
            "plain", "no batch axis, nineteen keys, mask by name", wide, {"mask": Tensor(random_mask(rng, 18, 19))}
        )
        yield from _hidden_pair(rng)
        for i, (t_q, t_k) in enumerate(((3, 4), (4, 4), (2, 5))):
            mask = random_mask(rng, 2, t_q, t_k)
            mask[0, i % t_q] = False
            title = "a query that may see no key"
            if i == 1:
                mask, title = mask[:, 1:2], "a padding mask (B, 1, T_k), one item of length 0"
            elif i == 2:
                mask, title = mask[:, :, :1], "a mask (B, T_q, 1): a query sees all keys or none"
                mask[:, :, 0] = [[False, True], [True, False]]
            inputs = (*qkv(rng, (2,), t_q, t_k, 3, 2), Tensor(mask))
            yield Case(f"empty-{i}", title, inputs, stage="extremes")
        nothing = (*qkv(rng, (2,), 2, 3, 4, 5), Tensor(np.zeros((2, 2, 3), bool)))
        yield Case("nothing", "no query may see any key", nothing, stage="extremes", reading=readings.none_is_zero)
        yield from _large(rng)
        yield from _apart(rng)
        yield from _precisions(rng)

    hidden = hidden_gets_no_weight()
    sums = rows_sum_to_1()
    ignored = invariant(
        "what is hidden does not matter",
        ("hidden-1", "hidden-2"),
        "the output moved by {gap} when only hidden keys and values changed.",
    )

    hints = (
        "Where must a hidden key be taken out: before or after softmax? And what is softmax of a row from which all are taken?",
        "Fill hidden scores with the lowest finite number of their dtype, take softmax, then set hidden weights to 0.",
        "low = torch.finfo(____).min\nweights = torch.softmax(scores.masked_fill(____, low), dim=-1)\n"
        "weights = weights.masked_fill(____, ____)",
    )

    mistakes = {
        "MK1": patch(LOWEST, f"mask = ~mask\n        {LOWEST}"),
        "MK2": patch(HIDE, "pass"),
        "MK3": patch(HIDE, "scores = scores * mask") + UNZEROED,
        "MK4": (
            *(filled(fill) for fill in (-10000.0, -1000.0, -100.0)),
            *(filled(fill) + EMPTY_ZEROED for fill in (-10000.0, -1000.0, -100.0)),
            *(filled(fill) + UNZEROED for fill in (-10000.0, -1000.0, -100.0)),
            # −100, added to a hidden score, may still lie among the visible ones, as in MA18.
            *(filled(fill) + LOWERED for fill in (-10000.0, -1000.0)),
            *(filled(fill) + LOWERED + EMPTY_ZEROED for fill in (-10000.0, -1000.0)),
            *(filled(fill) + LOWERED + UNZEROED for fill in (-10000.0, -1000.0)),
        ),
        "MK5": tuple(
            patch(HIDE, "scores = scores + (1 - mask.to(scores)) * -torch.inf", ZERO, then)
            for then in ("pass", "weights = weights.nan_to_num(0.0)")
        ),
        "MK6": patch(HIDE, "scores = scores + mask") + UNZEROED,
        "MK9": (
            patch(LOWEST, "lowest = -torch.inf") + UNZEROED,
            UNZEROED,
            patch(LOWEST, "lowest = -torch.inf", RETURN, "return ((weights @ v).nan_to_num(0.0), weights)") + UNZEROED,
            patch(HIDE, ADDED) + UNZEROED,
        ),
        "MK12": patch(
            HIDE,
            """hidden = (~mask).expand(scores.shape).clone()
        hidden[..., scores.shape[-2]:] = False
        scores = scores.masked_fill(hidden, lowest)""",
        )
        + UNZEROED,
        "MA32": mistake(
            patch(ZERO, "return (weights @ v, weights.masked_fill(~mask, 0.0))"),
            patch(
                ZERO,
                "return (torch.where(mask.any(dim=-1, keepdim=True), weights @ v, torch.zeros((), dtype=v.dtype)), weights)",
            ),
            says="A row that sees no key is 0 in one of output and weights alone; both should be.",
            why="""Filled with one finite number, such a row has equal weights, and the output made of them is the average
            of what is hidden. With the output alone repaired, the weights show attention that never happened. Set hidden
            weights to 0 first, then multiply with the values.""",
        ),
        "MA13": mistake(
            patch(HIDE, ADDED, ZERO, "weights = weights.nan_to_num(0.0)"),
            says="The gradient of an empty row is still NaN, although its result was repaired; hide with `masked_fill`, not by adding −∞.",
            why="""Softmax over a row of −∞ gives NaN, and its backward pass multiplies by that NaN, whatever `nan_to_num` makes of
            the value later. Through an addition the NaN goes on to q and k, and one empty row turns the whole projections that made
            them into NaN at the first step. `masked_fill` stops it, since nothing flows back through what was filled; a finite fill never
            makes it.""",
        ),
        "NT9": (
            patch("scores = q @", "q, k, v = (q.float(), k.float(), v.float())\n    scores = q @"),
            patch("weights = torch", "scores, v = (scores.double(), v.double())\n    weights = torch"),
            patch("weights = torch", "scores = scores.double()\n    weights = torch"),
        ),
        "MA18": mistake(
            by_hand("weights * mask", TOTAL, GUARDED),
            by_hand("weights * mask", TOTAL, "weights = weights / total"),
            by_hand("weights * mask", TOTAL, REPAIRED),
            by_hand("weights * mask", TOTAL, CLAMPED),
            says="Hidden keys were removed only after exp, where one far above the rest takes all the weight; "
            "set hidden scores to the lowest number first.",
            why="""A second normalization repairs the sums only if something visible is left. exp(−104) is 0 in float32: with a
            hidden score 104 above all that is visible the row is 0, and so is its sum. Without a guard 0 / 0 is NaN, as in a row
            that sees no key.""",
        ),
        "MU11": (
            *(patch(LOWEST, f"mask = mask.{turned}\n        {LOWEST}") for turned in ("mT", "transpose(-2, -1)")),
            *(
                patch(LOWEST, f"if q.dim() == 4 and mask.dim() == 3:\n            mask = {more}\n        {LOWEST}")
                for more in ("mask[:, None]", "mask[:, None, :, :]", "mask.unsqueeze(1)")
            ),
        ),
        "MA34": mistake(
            patch(HIDE, "scores = scores * mask\n        scores = scores.masked_fill(scores == 0, lowest)"),
            patch(HIDE, "scores = scores * mask\n        scores = scores.masked_fill(scores == 0, -torch.inf)")
            + patch(ZERO, "weights = weights.nan_to_num(0.0)"),
            says="Scores that are 0 were taken for hidden; a visible score may be 0, so ask the mask itself.",
            why="""A query and a key that are orthogonal have the score 0, and that key may well be seen. `scores.masked_fill(~mask, …)`
            hides what the mask hides and nothing else.""",
        ),
        "MA35": mistake(
            patch(ZERO, "weights = weights * mask.all(dim=-1, keepdim=True)"),
            patch(ZERO, "weights = weights * mask.any(dim=-2, keepdim=True)"),
            says="""The wrong things were given zeros: queries with some hidden key, or keys that no query sees; it should be
            queries that see no key.""",
            why="""The last axis of a mask holds the keys. `mask.any(dim=-1, keepdim=True)` asks for each query whether it
            sees some key. `all` asks whether it sees every key: under a causal mask that is true of the last query alone.
            `any(dim=-2)` asks for each key whether some query sees it, and a mask (T_k,) has no axis −2 at all.""",
        ),
        "MA37": tuple(
            patch(
                "if mask is not None:\n        lowest",
                f"mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril({offset}) if mask is None else mask\n"
                "    if mask is not None:\n        lowest",
            )
            for offset in ("", "scores.shape[-1] - scores.shape[-2]")
        ),
        "DT1": patch(LOWEST, "lowest = -1000000000.0"),
        **scale_mistakes(),
        "SD6": patch(SCALE, "", RETURN, f"weights = weights{SCALE}\n    {RETURN}"),
        "SD8": patch("scores = q @", "q, k = (k, q)\n    scores = q @"),
        "SM1": patch("scores, dim=-1", "scores, dim=-2"),
        "SM2": tuple(patch("scores, dim=-1", f"scores, dim={dim}") for dim in (0, 1)),
        "SM3": (
            patch(SOFTMAX, "weights = torch.exp(scores - scores.max())\n    weights = weights / weights.sum()")
            + UNZEROED,
            patch(
                HIDE,
                "pass",
                SOFTMAX,
                """weights = torch.exp(scores - scores.max())
    if mask is not None:
        weights = weights * mask
    weights = weights / weights.sum()""",
            )
            + UNZEROED,
        ),
        "SM5": (
            by_hand("scores.masked_fill(~mask, -torch.inf).exp()", TOTAL, GUARDED),
            *(by_hand("scores.exp() * mask", TOTAL, then) for then in (GUARDED, REPAIRED, CLAMPED)),
        ),
        "SM5+MK9": (
            by_hand("scores.exp() * mask", TOTAL, "weights = weights / total"),
            by_hand("scores.masked_fill(~mask, -torch.inf).exp()", TOTAL, "weights = weights / total"),
        ),
        "SM6": (
            *(by_hand("(scores - scores.max()).exp() * mask", TOTAL, then) for then in (GUARDED, CLAMPED)),
            *(
                patch(ZERO, "\n        ".join(("weights = (scores - scores.max()).exp() * mask", TOTAL, then)))
                for then in (
                    GUARDED,
                    "weights = weights / total.masked_fill(~mask.any(-1, keepdim=True), 1.0)",
                    CLAMPED,
                )
            ),
        ),
        "BW3": patch(RETURN, f"weights = weights.detach()\n    {RETURN}"),
        "NT7": patch(RETURN, "return (weights @ v, weights.detach())"),
        "NT8": patch(RETURN, "return (weights, weights @ v)"),
        "TT8": patch("q.shape[-1]", "k.shape[-2]"),
        "AB22": patch("(weights @ v,", "(weights.mT @ v,"),
    }
