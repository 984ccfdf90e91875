"""Two partial results over disjoint keys become one."""

from __future__ import annotations

import numpy as np

from grader.course.declare import UNTRIED, Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import on_another_device

Array = np.ndarray


def partial(scores: Array, v: Array, dtype: type = np.float32) -> tuple[Tensor, Tensor, Tensor]:
    """(m, l, o) over the keys of scores (..., T_q, n) and v (..., n, d_v); over no keys where n is 0 or a whole row is −∞."""
    m = scores.max(axis=-1, initial=-np.inf)
    p = np.exp(scores - np.where(np.isinf(m), 0.0, m)[..., None])
    return tuple(Tensor(part.astype(dtype)) for part in (m, p.sum(axis=-1), p @ v))


def halves(
    rng: np.random.Generator,
    lead: tuple[int, ...],
    n_a: int,
    n_b: int,
    d_v: int,
    apart: float = 0.0,
    shift: float = 0.0,
    dtype: type = np.float32,
) -> tuple:
    """Both partial results; apart: by how much the scores of b lie above those of a; shift: of all of them."""
    sides = []
    for n, up in ((n_a, 0.0), (n_b, apart)):
        sides.append(
            partial(rng.normal(size=(*lead, n)) * 1.5 + up + shift, rng.normal(size=(*lead[:-1], n, d_v)), dtype)
        )
    return tuple(sides)


def emptied(side: tuple[Tensor, ...], rows: Array) -> tuple[Tensor, ...]:
    """The same partial result, over no keys in these rows."""
    m, l, o = (part.array for part in side)
    return (
        Tensor(np.where(rows, np.float32(-np.inf), m)),
        Tensor(np.where(rows, np.float32(0), l)),
        Tensor(np.where(rows[..., None], np.float32(0), o)),
    )


EXACT = 5e-7  # what rounding leaves; a 0 with an epsilon added lies above it
MAXIMUM, SHIFT = "m = torch.maximum(m_a, m_b)", "shift = m.masked_fill(m == -math.inf, 0.0)"
SCALES = "scale_a, scale_b = (torch.exp(m_a - shift), torch.exp(m_b - shift))"
L, O = "l = l_a * scale_a + l_b * scale_b", "o = o_a * scale_a[..., None] + o_b * scale_b[..., None]"
RETURN = "return (m, l, o)"
UNGUARDED = patch(SHIFT, "shift = m")


@exercise(
    points=3,
    minutes=15,
    difficulty=2,
    result_type="tensor",
    result_names=("m", "l", "o"),
    forbids=("attention", "table"),
)
class merge_partial:
    """Merge what two sets of keys contribute to attention into what both together contribute."""

    def cases(rng):
        ln2 = float(np.log(2))
        a, b = (
            partial(np.array([[ln2, 0.0]]), np.array([[4.0], [8.0]])),
            partial(np.array([[2 * ln2, 0.0]]), np.array([[2.0], [0.0]])),
        )
        yield Case("small", "one query: scores ln 2 and 0 with values 4 and 8, then ln 4 and 0 with 2 and 0", (a, b))
        yield Case("small falling", "the same, exchanged: the larger score is in a", (b, a))
        none = partial(np.zeros((1, 0)), np.zeros((0, 1)))
        yield Case("one row", "one query, and neither a nor b has a key", (none, none), atol=EXACT)
        for key, title in (("sizes", "all sizes different"), ("seen-again", "the same sizes, new numbers")):
            yield Case(key, title, halves(rng, (2, 3, 5), 4, 7, 6))
        yield Case("rising", "the scores of b lie 3 above those of a", halves(rng, (2, 4), 3, 5, 2, 3.0))
        yield Case("falling", "the scores of b lie 3 below those of a", halves(rng, (2, 4), 3, 5, 2, -3.0))
        yield Case("square", "as many queries as features in a value", halves(rng, (4,), 3, 2, 4, 1.0))
        yield Case("square again", "the same, new numbers", halves(rng, (4,), 3, 2, 4, 1.0))
        yield Case("one feature", "values of one number", halves(rng, (3, 1), 2, 2, 1))
        yield Case(
            "many", "nineteen keys and seventeen, float64", halves(rng, (2, 17), 19, 17, 3, 0.5, dtype=np.float64)
        )
        a, b = halves(rng, (2, 6), 3, 4, 3, 1.0)
        rows = rng.permutation(12).reshape(2, 6)
        yield Case(
            "empty rows", "in some rows a is over no keys, in others b", (emptied(a, rows < 3), emptied(b, rows > 8))
        )
        yield Case("no keys in a", "a is over no keys: b comes back", (emptied(a, rows > -1), b))
        yield Case("no keys in b", "b is over no keys: a comes back", (a, emptied(b, rows > -1)))
        for key, more in (("no keys", 3), ("no keys again", 2), ("no keys once more", 4)):
            a, b = halves(rng, (2, 6), 3, 4, 3, 1.0)
            yield Case(
                key, "in some rows neither has a key", (emptied(a, rows < 6), emptied(b, rows % more == 0)), atol=EXACT
            )
        yield Case(
            "nothing", "neither has a key in any row", (emptied(a, rows > -1), emptied(b, rows > -1)), atol=EXACT
        )
        for i, (shift, apart) in enumerate(
            ((9990.0, 4.0), (-9990.0, -4.0), (0.0, 9000.0), (-9000.0, 0.5), (-200.0, 1.0), (200.0, -1.0))
        ):
            title = f"scores near {shift:,.0f}, b {abs(apart):,g} {'above' if apart > 0 else 'below'}"
            yield Case(f"large-{i}", title, halves(rng, (2, 3), 3, 4, 2, apart, shift), stage="extremes", rtol=2e-3)
        for i in range(2):
            a, b = halves(rng, (5,), 3, 4, 2)
            levels = np.array([-9000.0, -100, 0, 100, 9000], np.float32)[rng.permutation(5)]
            raised = tuple((Tensor(m.array + levels), l, o) for m, l, o in (a, b))
            yield Case(
                f"levels-{i}", "each query's scores at a level of their own", raised, stage="extremes", rtol=2e-3
            )
        yield on_another_device(Case("sizes", "all sizes different", halves(rng, (2, 3, 5), 4, 7, 6)))

    @holds("over no keys at all the result is exactly (−∞, 0, 0)")
    def neutral(case, parts):
        (m_a, *_), (m_b, *_) = case.args
        none = np.isinf(m_a.array) & np.isinf(m_b.array)
        if not none.any():
            return UNTRIED
        for name, right in (("m", -np.inf), ("l", 0.0), ("o", 0.0)):
            found = parts[name][none]
            if not (found == right).all():
                return f"`{name}` is {found.ravel()[(found != right).argmax()]:.4g} where neither a nor b has a key."
        return None

    hints = (
        "The sums of a are counted relative to m_a. What factor makes them relative to the common maximum?",
        "exp(s − m_a) · exp(m_a − m) = exp(s − m). The same factor goes on l and on o, once for a, once for b. Where both maxima are −∞, "
        "m_a − m is −∞ − (−∞), which is NaN: subtract something finite there.",
        "m = torch.maximum(____, ____)\nshift = m.masked_fill(m == -math.inf, ____)\nscale_a = torch.exp(____ - shift)\n"
        "l = l_a * ____ + l_b * ____\no = o_a * ____[..., None] + o_b * ____[..., None]",
    )

    mistakes = {
        "FL1": patch(O, "o = o_a + o_b"),
        "FL2": patch(L, "l = l_a + l_b", O, "o = o_a + o_b"),
        "FL4": (
            patch(MAXIMUM, "m = torch.maximum(m_a, m_b).clamp(min=0.0)"),
            patch(MAXIMUM, "m = torch.maximum(m_a, m_b).clamp(min=0)", SHIFT, "shift = m"),
        ),
        "FL5": (
            UNGUARDED,
            UNGUARDED
            + patch(
                SCALES,
                "diff = m_a - m_b\n    scale_a, scale_b = (torch.exp(diff.clamp(max=0)), torch.exp((-diff).clamp(max=0)))",
            ),
        ),
        "OS1": mistake(
            patch(L, "l = l_a * scale_a + l_b", O, "o = o_a * scale_a[..., None] + o_b"),
            patch(L, "l = l_a + l_b * scale_b", O, "o = o_a + o_b * scale_b[..., None]"),
            *(
                patch(SCALES, f"scale_a, scale_b = ({factors})")
                for factors in (
                    "torch.ones_like(m_a), torch.exp(m_b - m_a.masked_fill(m_a == -math.inf, 0.0))",
                    "torch.exp(m_a - m_b.masked_fill(m_b == -math.inf, 0.0)), torch.ones_like(m_b)",
                )
            ),
            says="Only one of the two sides is rescaled. Whichever has the smaller maximum needs a factor below 1.",
            why="""Which side holds the larger score differs from row to row. The factor exp(m_side − m) is 1 for the side that holds it
            and below 1 for the other, so writing it on both sides is always right. With m_a = 0 and m_b = −ln 2 the factors are 1 and
            ½.""",
        ),
        "OS2": mistake(
            patch("torch.exp(m_a - shift), torch.exp(m_b - shift)", "torch.exp(shift - m_a), torch.exp(shift - m_b)"),
            patch("torch.exp(m_a - shift), torch.exp(m_b - shift)", "torch.exp(m_b - shift), torch.exp(m_a - shift)"),
            says="A factor is upside down or belongs to the other side: sums relative to m_old should be multiplied by exp(m_old − m_new).",
            why="""A sum relative to a smaller maximum counts too much and has to shrink: exp(s − m_old) · exp(m_old − m_new) = exp(s −
            m_new). The reverse factor is above 1, and with maxima 89 apart it is infinite in float32. Of two sides each has its own
            m_old: exchanged, the side with the larger maximum shrinks and the other keeps its scale.""",
        ),
        "OS3": mistake(
            patch(RETURN, "return (m, l, o / l[..., None])"),
            patch(RETURN, "return (m, l, torch.nan_to_num(o / l[..., None]))"),
            says="""Something was divided by a sum of exponentials too early; only sums can be added, so divide o by l once, after the
            last tile or part.""",
            why="""After a division o, or a tile's share, is a mean: it has lost how much weight it had against the others. A tile with
            high scores has to count more than one with low scores, and that is what m and l carry along. A softmax of one tile divides,
            too. (A mean that is multiplied by its l again can be added: that is FlashAttention's first version, and one of the things
            that the second left out.)""",
        ),
        "OS4": mistake(
            patch(O, "o = (o_a * (l_a * scale_a)[..., None] + o_b * (l_b * scale_b)[..., None]) / l[..., None]"),
            patch(
                O,
                "o = (o_a * (l_a * scale_a)[..., None] + o_b * (l_b * scale_b)[..., None]) / l.clamp_min(1e-30)[..., None]",
            ),
            patch(O, "o = o_a * (l_a * scale_a)[..., None] + o_b * (l_b * scale_b)[..., None]"),
            says="o_a and o_b were weighted with l once more, as if they had been divided by it; they are sums, which should be added.",
            why="""Libraries often keep *normalized* outputs together with a logsumexp, and merge those as a weighted mean. Here o is
            the sum Σ exp(score − m) · value, not divided by anything: its weight is inside it already.""",
        ),
        "OS6": mistake(
            patch(
                SHIFT,
                "shift = torch.zeros_like(m)",
                L,
                "l = (l_a * scale_a + l_b * scale_b) / torch.exp(m)",
                O,
                "o = (o_a * scale_a[..., None] + o_b * scale_b[..., None]) / torch.exp(m)[..., None]",
            ),
            patch(SCALES, "scale_a, scale_b = (torch.exp(m_a), torch.exp(m_b))"),
            says="""exp was taken of a maximum itself, which overflows above 88 in float32; take it of a difference from the common
            maximum.""",
            why="""On paper exp(m_a) / exp(m) and exp(m_a − m) agree. In float32 exp(89) is infinite and exp(−104) is 0, and the
            quotient is NaN. A published ring attention took exp of a difference that may be positive, and overflowed as soon as the
            new part lay 89 above the old one.""",
            issue="zhuzilin/ring-flash-attention#30",
        ),
        "OS17": mistake(
            patch(SHIFT, "shift = m.clamp_min(-1000.0)"),
            patch(SHIFT, "shift = m.clamp_min(-100.0)"),
            says="A finite number was subtracted wherever m lies below it, against −∞ − (−∞); only −∞ itself should be replaced.",
            why="""Scores may lie below any number that one thinks of. With −1,000 subtracted in place of a maximum of −2,000 all
            exponentials of the row are 0, and nothing is left of it. `masked_fill(m == -math.inf, 0.0)` changes rows without a key
            alone.""",
        ),
        "OS8": mistake(
            patch(SHIFT, "m = m.masked_fill(m == -math.inf, 0.0)\n    shift = m"),
            patch(RETURN, "return (torch.nan_to_num(m, neginf=0.0), l, o)"),
            says="Over no keys the maximum that is kept became 0; it should stay −∞, or 0 counts as a score that was seen.",
            why="""The guard belongs to what is subtracted, not to the maximum that is kept. With m = 0 for a row that has seen nothing,
            real scores below −104 vanish in the next merge, since exp of them is 0 in float32. A kernel that reset it in this way lost
            whole heads.""",
            issue="Dao-AILab/flash-attention#2082",
        ),
        "SM6": (
            patch(MAXIMUM, "m = torch.maximum(m_a.max(), m_b.max()).expand_as(m_a)"),
            patch(MAXIMUM, "m = torch.full_like(m_a, max(m_a.max(), m_b.max()))"),
            patch(SHIFT, "shift = m.max().masked_fill(m.max() == -math.inf, 0.0)"),
        ),
        "TI13": (
            patch("torch.maximum", "torch.minimum"),
            patch("torch.maximum", "torch.logaddexp"),
            patch("torch.maximum(m_a, m_b)", "torch.where(m_a == -math.inf, m_b, m_a)"),
            patch("torch.maximum(m_a, m_b)", "m_b"),
        ),
        "TI18": patch(L, "l = l_a + l_b"),
        "OS14": mistake(
            patch(
                SHIFT,
                "if torch.isinf(m_a).any():\n        return b\n    if torch.isinf(m_b).any():\n        return a\n    shift = m",
            ),
            patch(
                SHIFT,
                """if torch.isinf(m_a).all():
        return b
    if torch.isinf(m_b).all():
        return a
    shift = m""",
            ),
            says="""A guard decides for all rows at once, by any() or all(); each row should be guarded by itself, with `masked_fill` or
            `where`.""",
            why="""Under a causal mask some queries of a tile see a key and others do not. With `any()` one empty row decides for rows
            that still need merging. With `all()` a single row in which neither side has a key is not guarded: m_a − m is −∞ − (−∞), which
            is NaN.""",
        ),
        "OS15": mistake(
            patch(L, "l = l_a * scale_a + l_b * scale_b + 1e-06"),
            patch(L, "l = (l_a * scale_a + l_b * scale_b).clamp_min(1e-06)"),
            says="l was kept above 0 by a small number, against a division by 0; over no keys it should be exactly 0.",
            why="""An epsilon hides the case that it guards: l = 1e-6 looks like a key with a tiny weight. Nothing is divided here, so
            there is nothing to guard but −∞ − (−∞).""",
        ),
    }
