"""Attention in tiles, as one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch
from grader.course.patches import Patch

from ..shared import COMPILED, HALF, attention_result, case

K_AT = "k_at = (head * t_k + columns[:, None]) * D + features"
Q_TILE = "q_tile = tl.load(q + q_at, mask=rows < t_q, other=0.0)"
V_TILE = "v_tile = tl.load(v + k_at, mask=columns[:, None] < t_k, other=0.0)"
STORE = "tl.store(out + q_at, o / l[:, None], mask=rows < t_q)"
START = "m = tl.full((QUERIES,), -float('inf'), tl.float32)"
VISIBLE = "visible = tl.minimum(t_k, top + QUERIES + t_k - t_q) if CAUSAL else t_k"
LOOP = "for left in range(0, visible, KEYS):"
SCORES = "scores = tl.dot(q_tile, tl.trans(k_tile)) * scale"
SEEN = "seen = columns[None, :] < t_k"
CAUSAL = "if CAUSAL:\n            seen = seen & (columns[None, :] <= rows + (t_k - t_q))"
HIDDEN = "scores = tl.where(seen, scores, -float('inf'))"
MAXIMUM = "m_new = tl.maximum(m, tl.max(scores, axis=1))"
EXPS = "rescale, p = (tl.exp(m - m_new), tl.exp(scores - m_new[:, None]))"
SUM = "l = l * rescale + tl.sum(p, axis=1)"
ACC = "o = o * rescale[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)"
KEPT, BLOCKS = "m = m_new\n", "queries, keys = (64, 32)"
NO_SKIP = patch(VISIBLE, "visible = t_k")


def blocks(queries: int, keys: int):
    return patch(BLOCKS, f"queries, keys = ({queries}, {keys})")


# What a mistake gives may depend on the size of blocks, which is the learner's: it is tried with those that are usual.
KEYS = (patch(), blocks(64, 64), blocks(16, 16))
TILES = (*KEYS, blocks(32, 32))
SMALLEST = 16


def ways(*texts: str, of=KEYS, lanes: bool = False):
    """lanes: whether it depends on the lanes beyond the text, and so on a block's size where all fits into the smallest, too."""
    first = patch(*texts)
    return first, *((Patch((first + more).hunks, like=None if lanes else first)) for more in of[1:])


NEAR_ENDS = {"rtol": 4e-3, "atol": 4e-3}  # a score near 10,000 has an error of 1e-3 in float32, the reference's as well
PROGRAMS = 10  # that run of a launch where there are more queries: one query a program would take seconds
Sizes = tuple[int, int, int, int, int]  # B, H, T_q, T_k, d


def _qkv(rng: np.random.Generator, sizes: Sizes) -> tuple[np.ndarray, ...]:
    """q, k, v; scores of a standard deviation of 2."""
    b, h, t_q, t_k, d = sizes
    return 2 * rng.normal(size=(b, h, t_q, d)), rng.normal(size=(b, h, t_k, d)), rng.normal(size=(b, h, t_k, d))


def _case(key: str, title: str, arrays: tuple[np.ndarray, ...], causal: bool = False, **fields: Any) -> Case:
    dtype = fields.pop("dtype", np.float32)
    args = tuple(Tensor(array.astype(dtype)) for array in arrays)
    t_q, d = arrays[0].shape[2:]
    more = {"more queries": {"by_name": True}, "compiled": {"compiled": True}}.get(key, {})
    fields["options"] = {"accesses": True, **({"programs": PROGRAMS} if t_q > PROGRAMS else {}), **more}
    fields.setdefault("show", t_q * d < 100)
    fields.setdefault("costly", max(t_q, arrays[1].shape[2]) > SMALLEST)
    return case(key, title, args, {"causal": True} if causal else {}, reading=attention_result, **fields)


# key, title, (B, H, T_q, T_k, d), causal
SIZES = (
    ("causal", "causal, as many queries as keys", (1, 1, 5, 5, 16), True),
    ("sizes", "all sizes different", (2, 3, 4, 7, 16), False),
    ("causal again", "the same, new numbers", (1, 1, 5, 5, 16), True),
    ("later queries", "causal, the queries are the last 4 of 9 positions", (1, 2, 4, 9, 16), True),
    ("one query", "causal, one query after eight keys", (2, 1, 1, 9, 16), True),
    ("more queries", "more queries than keys", (1, 2, 5, 3, 16), False),
    ("one key", "one key", (1, 1, 3, 1, 16), False),
    ("32 features", "with d = 32", (1, 1, 3, 5, 32), False),
    ("64 features", "with d = 64, causal", (1, 1, 3, 5, 64), True),
    ("128 features", "with d = 128", (1, 1, 3, 5, 128), False),
    ("sixteen", "sixteen queries, thirty-two keys", (1, 1, 16, 32, 16), False),
)
LONG = (
    ("long", "20 queries, 75 keys", (1, 1, 20, 75, 16), False),
    ("long causal", "causal, 70 positions", (1, 1, 70, 70, 16), True),
    # 65 keys before the queries: the last key that a tile of queries sees is the first of a tile of keys
    ("long later", "causal, the queries are the last 66 of 131 positions", (1, 1, 66, 131, 16), True),
    ("long again", "causal, 66 positions, new numbers", (1, 1, 66, 66, 16), True),
    ("one after many", "causal, one query after 139 keys", (1, 1, 1, 140, 16), True),
    ("two after many", "causal, two queries after 148 keys", (1, 1, 2, 150, 16), True),
    ("longer", "130 queries, 9 keys", (1, 1, 130, 9, 16), False),
    ("longer causal", "causal, 131 positions", (1, 1, 131, 131, 16), True),
    ("many keys", "one query, 260 keys", (1, 1, 1, 260, 16), False),
)


def _levels(rng: np.random.Generator) -> Iterator[Case]:
    """Scores that rise or fall from key to key: the maximum moves in every tile, or in none."""
    climb = np.arange(72.0) / 6
    for key, title, by in (
        ("rising", "scores that rise from key to key", climb),
        ("falling", "scores that fall from key to key", -climb),
    ):
        q, k, v = _qkv(rng, (1, 1, 2, 72, 16))
        q[..., 0], k[..., 0] = 4.0, by  # with d = 16 this is what it adds to the score
        yield _case(key, title, (q, k, v))


def _halves(rng: np.random.Generator) -> Iterator[Case]:
    for key, sizes, causal in (("half", (1, 1, 3, 7, 16), False), ("half causal", (2, 1, 3, 6, 16), True)):
        yield _case(key, "float16" + ", causal" * causal, _qkv(rng, sizes), causal, dtype=np.float16, **HALF)
    q, k, v = np.full((1, 1, 1, 16), 16.0), np.full((1, 1, 2, 16), 16.0), np.zeros((1, 1, 2, 16))
    k[0, 0, 1, 0], v[0, 0, 0] = 15.9375, 1  # products of 4,096 and 4,095, which float16 takes for one number
    yield _case("half close", "float16, scores of 1,024 and 1,023.75", (q, k, v), dtype=np.float16, **HALF)
    q, k, v = _qkv(rng, (1, 1, 2, 40, 16))
    yield _case("half large", "float16, values near 30,000", (q / 8, k, v * 300 + 30000), dtype=np.float16, **HALF)


def _extremes(rng: np.random.Generator) -> Iterator[Case]:
    """Near −10,000 a mask that fills in −10,000 hides nothing; what is hidden may also lie far above what is seen."""
    for number, (title, levels, step) in enumerate(
        (
            *(("causal, scores near −10,000", [level] * 3, 0.0) for level in (-9998.0, -9997.0, -9999.0)),
            ("scores near −200", [-200.0] * 3, 0.0),
            ("each query at a level of its own", [9000.0, 0, -9000.0], 0.0),
            ("causal, scores that rise from −9,000 to 9,000", [1.0] * 3, 3000.0),
            ("scores that fall from 9,000 to −9,000", [1.0] * 3, -3000.0),
        )
    ):
        q, k, v = _qkv(rng, (1, 1, 3, 7, 16))
        q[..., 0] = levels
        k[..., 0] = 4 * step * (np.arange(7) - 3) if step else 4.0
        yield _case(f"large-{number}", title, (q, k, v), "causal" in title, stage="extremes", **NEAR_ENDS)
    for number, (title, sign) in enumerate((("fall", -1), ("rise", 1), ("fall", -1))):
        q, k, v = _qkv(rng, (1, 1, 1, 140, 16))
        q[..., 0], k[..., 0] = 4.0, sign * 60 * (np.arange(140.0) // 4 - 17)
        yield _case(
            f"cliff-{number}", f"scores that {title} by 2,000 over 140 keys", (q, k, v), stage="extremes", **NEAR_ENDS
        )


@exercise(
    points=5,
    minutes=31,
    difficulty=3,
    result_type="tensor",
    forbids=("attention", "table"),
    process="own",
    pair_runs=0,
    libraries=("triton",),
)
class triton_attention:
    """Compute exact attention in one kernel, one tile of queries a program, one tile of keys after the other."""

    def cases(rng):
        ln2 = float(np.log(2))
        q, k, v = (np.zeros((1, 1, t, 16)) for t in (1, 4, 4))
        q[..., 0], k[0, 0, :, 0], v[0, 0, :, 0] = 4.0, [ln2, 0, 2 * ln2, 0], [4, 8, 2, 0]
        yield _case("small", "one query, scores ln 2, 0, ln 4 and 0", (q, k, v))
        for key, title, sizes, causal in SIZES:
            yield _case(key, title, _qkv(rng, sizes), causal)
        yield from _halves(rng)
        yield from _levels(rng)
        for key, title, sizes, causal in LONG:
            yield _case(key, title, _qkv(rng, sizes), causal)
        yield from _extremes(rng)
        yield _case("compiled", COMPILED, _qkv(rng, (1, 1, 3, 5, 64)), True, dtype=np.float16, stage="extremes", **HALF)

    hints = (
        "Which numbers does a program keep from one tile of keys to the next, and how many of each?",
        "m, l and o of lesson 14, in float32, for each query of the tile. A key beyond T_k, or after "
        "the query, gets a score of −∞ before the "
        "maximum is taken. In a causal call the loop ends at the last key that the tile's last query sees.",
        "scores = tl.dot(____, tl.trans(k_tile)) * scale\nscores = tl.where(____, scores, ____)\nm_new = tl.maximum(m, ____)\n"
        "p = tl.exp(scores - ____)\nl = l * ____ + tl.sum(p, axis=1)\no = o * ____ + tl.dot(____, v_tile)",
    )

    mistakes = {
        "SD1": patch(SCORES, "scores = tl.dot(q_tile, tl.trans(k_tile))"),
        "SD2": patch("1 / math.sqrt(d)", "1 / d"),
        "SD3": patch("1 / math.sqrt(d)", "1 / math.sqrt(h * d)"),
        "SD5": patch("1 / math.sqrt(d)", "math.sqrt(d)"),
        "MK3": ways(HIDDEN, "scores = tl.where(seen, scores, 0.0)", of=TILES, lanes=True),
        "MK4": (
            *ways(HIDDEN, "scores = tl.where(seen, scores, -10000.0)", lanes=True),
            *(patch(HIDDEN, f"scores = tl.where(seen, scores, {fill})") for fill in (-1000.0, -100.0)),
        ),
        "MK7": patch("<= rows + (t_k - t_q)", "< rows + (t_k - t_q)"),
        "MK8": ways("<= rows + (t_k - t_q)", "<= rows + (t_k - t_q) + 1", of=TILES)
        + (patch("<= rows + (t_k - t_q)", "<= rows + (t_k - t_q) + 1") + NO_SKIP,),
        "MK13": (
            patch(CAUSAL, CAUSAL.replace("if CAUSAL", "if False")) + NO_SKIP,
            *ways(CAUSAL, CAUSAL.replace("if CAUSAL", "if False"), of=TILES),
        ),
        "MK14": (
            patch(CAUSAL, CAUSAL.replace(" + (t_k - t_q)", "")),
            patch(CAUSAL, CAUSAL.replace(" + (t_k - t_q)", ""), VISIBLE, VISIBLE.replace(" + t_k - t_q", "")),
        ),
        "FL1": ways(ACC, ACC.replace(" * rescale[:, None]", "")),
        "FL2": ways(ACC, ACC.replace(" * rescale[:, None]", ""), SUM, SUM.replace(" * rescale", "")),
        "FL3": ways(
            EXPS, EXPS.replace("scores - m_new[:, None]", "scores - tl.max(scores, axis=1)[:, None]"), of=TILES
        ),
        "FL4": patch(START, "m = tl.zeros((QUERIES,), tl.float32)"),
        "KN40": mistake(
            *ways(SEEN, "seen = columns[None, :] >= 0", lanes=True),
            says="The lanes beyond T_k count as keys: their score is 0, and they get weight. Give them −∞.",
            why="""The last tile of keys is not full. What was masked in the load is a key of zeros, whose score with any query is 0,
            and whose exponential goes into l. `tl.where(columns < T_k, scores, −∞)` takes it out, before the maximum.""",
        ),
        "TI18": ways(SUM, SUM.replace(" * rescale", "")),
        "TT14": patch(STORE, STORE.replace("o / l[:, None]", "o")),
        "TI21": ways(KEPT, "m = m\n", of=TILES),
        "TI13": ways(MAXIMUM, "m_new = tl.max(scores, axis=1)", of=TILES),
        "KN20": (
            patch(EXPS, "rescale, p = (tl.exp(m_new - m_new), tl.exp(scores))"),
            patch(MAXIMUM, "m_new = tl.zeros((QUERIES,), tl.float32)", START, "m = tl.zeros((QUERIES,), tl.float32)"),
        ),
        "KN47": mistake(
            *ways(VISIBLE, "visible = t_k", of=TILES),
            says="Blocks of keys that no query of the tile may see were read: end the loop at the last "
            "key that the tile's last query sees.",
            why="""Half of all blocks of a causal call are hidden as a whole. Read, computed and masked, they change nothing about the
            result, and cost as much as the others. A load counts as read whatever its mask is.""",
        ),
        "TI3": (
            *ways(VISIBLE, "visible = top + t_k - t_q if CAUSAL else t_k", of=TILES),
            patch(VISIBLE, "visible = top + 1 + t_k - t_q if CAUSAL else t_k"),
        ),
        "TI20": ways(VISIBLE, VISIBLE.replace(" + t_k - t_q", ""), of=TILES),
        "KN50": mistake(
            patch(K_AT, "k_at = columns[:, None] * D + features"),
            patch(Q_TILE, Q_TILE.replace("q_at", "rows * D + features")),
            says="Every head reads queries, or keys and values, of the first one: the offsets of a load lack head · T · d.",
            why="""The heads of all items lie one after the other, T_q · d entries each in q and T_k · d in k and v. The program's second
            number says which head is its own.""",
        ),
        "KN52": mistake(
            patch(K_AT, K_AT.replace("head * t_k", "head * t_q")),
            says="Keys were taken to lie T_q rows a head apart; there are T_k of them in each head.",
            why="q and the output have T_q rows a head, k and v have T_k. With T_q = T_k nothing shows.",
        ),
        "KN63": mistake(
            *ways(CAUSAL, CAUSAL.replace("rows +", "tl.arange(0, QUERIES)[:, None] +"), of=TILES),
            says="The mask counts queries from the tile's first row; positions count from the start of the sequence.",
            why="Row 3 of the tile that begins at 64 is query 67, and sees keys 0 to 67, not 0 to 3.",
        ),
        "TI2": ways(LOOP, "for left in range(0, visible // KEYS * KEYS, KEYS):", of=TILES),
        "KN33": patch(EXPS, EXPS.replace("tl.exp(", "tl.exp2(")),
        "KN67": mistake(
            *ways(VISIBLE, "visible = top + QUERIES + t_k - t_q if CAUSAL else t_k", of=TILES, lanes=True),
            says="In a causal call the loop goes on beyond T_k: end it at the smaller of T_k and what the tile's last query sees.",
            why="""The last tile of queries is not full, and its last rows are no queries. Counted as if they were, they see keys beyond
            the last one: blocks of nothing, read and masked as a whole.""",
        ),
        "KN75": mistake(
            patch(V_TILE, V_TILE.replace("< t_k", "< t_q")),
            says="The load of the values is masked by T_q; it should be masked by T_k, of which there are values.",
            why="""With fewer queries than keys the values from T_q on are loaded as 0, while their keys get weight. With more
            queries than keys the load reads beyond the last value.""",
        ),
        "KN69": ways(V_TILE, V_TILE.replace(", other=0.0", ""), of=TILES),
        "HL1": patch(ACC, ACC.replace("v_tile", "k_tile")),
    }
