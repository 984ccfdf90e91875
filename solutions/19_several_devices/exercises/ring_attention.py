"""Tokens over ranks: keys and values go around a ring, and each rank merges what passes."""

from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import UNTRIED, Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import on_another_device, scale_mistakes
from .. import readings
from ..readings import GATHERED, HOARDED

Array = np.ndarray

START_M = "m = q.new_full(q.shape[:-1], -math.inf)"
LOOP = "for step in range(world_size):"
SEND = "k, v = exchange((k, v))"
TURN = f"if step > 0:\n            {SEND}"
SOURCE = "source = (rank - step) % world_size"
SCORES = "scores = q @ k.mT / math.sqrt(q.shape[-1])"
COLUMNS = "columns = source * t + torch.arange(t, device=q.device)"
HIDE = "scores = scores.masked_fill(columns > rows[:, None], -math.inf)"
CAUSAL = f"if causal:\n            {COLUMNS}\n            {HIDE}"
M_NEW, RESCALE = "m_new = torch.maximum(m, scores.amax(dim=-1))", "rescale = torch.exp(m - m_new)"
P = "p = torch.exp(scores - m_new[..., None])"
L, O = "l = l * rescale + p.sum(dim=-1)", "o = o * rescale[..., None] + p @ v"
RETURN = "return o / l[..., None]"
# Each chunk's own mean, brought to the common maximum as if it were a sum.
MEANS_MERGED = (
    "o = o * rescale[..., None] + "
    "torch.exp(scores.amax(dim=-1) - m_new)[..., None] * torch.softmax(scores, dim=-1).nan_to_num() @ v"
)
# Answers that guard against rows that have seen nothing show some mistakes in other numbers.
GUARDED = patch(
    M_NEW,
    f"{M_NEW}\n        shift = m_new.masked_fill(m_new == -math.inf, 0.0)",
    RESCALE,
    "rescale = torch.exp(m - shift)",
    P,
    "p = torch.exp(scores - shift[..., None])",
)
# All of a rank's chunks in a list, before any is used; {next}: what follows.
CHUNKS = "held = [(k, v)]\n    for step in range(1, world_size):\n        held.append(exchange(held[-1]))\n    {next}"


def _merged(per_chunk: str, end: str = "") -> Any:
    """What chunks give is put together otherwise; per_chunk: in the loop, from `scores` and `v`; end: what is returned in another way."""
    ending = (RETURN, end) if end else ()
    return patch(M_NEW, per_chunk, RESCALE, "pass", P, "pass", L, "pass", O, "pass", "m = m_new", "pass", *ending)


@exercise(points=5, minutes=25, difficulty=3, result_type="tensor", forbids=("attention", "table"), pair_runs=12)
class ring_attention:
    """Attend to the tokens of all ranks, while keys and values go around a ring chunk by chunk."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, int, int, int],
            size: int,
            causal: bool = False,
            *,
            dtype: str = "float32",
            stage: Any = "values",
            watched: bool = True,
            levels: Array | None = None,
            **options: Any,
        ) -> Case:
            """watched: False where an answer goes the way that it goes in a case before, which shows whether by ready-made operators.

            levels: of each of all tokens, what is added to its scores, for all queries.
            """
            b, h, t, d = shape
            draw = rng.normal if key != "small" else lambda size: rng.integers(-2, 3, size=size)
            q, k, v = (draw(size=(b, h, size * t, d)) for _ in range(3))
            if levels is not None:
                q[..., 0], k[..., 0] = np.sqrt(d), levels
            chunks = (tuple(Tensor(part, dtype) for part in np.split(whole, size, axis=2)) for whole in (q, k, v))
            return Case(
                key,
                f"{title}, causal" if causal else title,
                tuple(chunks),
                {"causal": True} if causal else {},
                probe="probes.ring",
                reading=readings.ring,
                options=options,
                stage=stage,
                costly="chunked" in options,
                watched=watched,
                rtol=5e-3 if stage == "extremes" else None,
                atol=5e-3 if stage == "extremes" else None,
            )

        yield case("small", "two ranks with one token each", (1, 1, 1, 2), 2)
        yield case("small causal", "two ranks with two tokens each", (1, 1, 2, 3), 2, True)
        yield case("sizes", "three ranks with two tokens each", (1, 4, 2, 5), 3, watched=False)
        yield case("causal", "nine tokens on three ranks", (2, 1, 3, 5), 3, True, watched=False)
        # Two tokens are the fewest: what a single key gives is its value. Each case looks at another rank.
        for key, ranks in (("chunks", (3,)), ("chunks again", (1,)), ("chunks once more", (0,))):
            title = "four ranks with two tokens each, one item and one head"
            yield case(key, title, (1, 1, 2, 7), 4, True, chunked=ranks, watched=False)
        yield case(
            "square", "as many items, heads, tokens in a chunk and numbers as ranks", (2, 2, 2, 2), 2, watched=False
        )
        yield case("alone", "one rank", (1, 3, 2, 4), 1)
        yield case("alone causal", "one rank", (2, 1, 3, 2), 1, True, watched=False)
        yield case("alone again", "one rank, four tokens", (1, 1, 4, 2), 1, True, watched=False)
        title = "two ranks with two tokens each, float64"
        yield case("double", title, (1, 1, 2, 7), 2, True, dtype="float64", chunked=(1,), watched=False)
        yield case("named", "two ranks, all inputs passed by name", (1, 2, 2, 3), 2, True, by_name=True, watched=False)
        for key, levels, causal in (
            ("rising", [-9000.0, 9000.0], False),
            ("falling", [9000.0, -9000.0], False),
            ("low", [-9998.0, -9998.0], True),
            ("low again", [-9998.0, -9998.0], True),
            ("low once more", [-9998.0, -9998.0], True),
            ("future", np.linspace(-9000, 9000, 6), True),
            # The lowest first: the first query sees that alone, and the others' maximum is far above it.
            ("apart", np.array([-900, *rng.permutation(np.linspace(-540, 900, 5))]), True),
            ("apart again", np.array([-900, *rng.permutation(np.linspace(-540, 900, 5))]), True),
        ):
            span = f"{min(levels):,.0f} to {max(levels):,.0f}" if np.ptp(levels) else f"near {levels[0]:,.0f}"
            shape = (1, 2, len(levels) // 2, 3)
            yield case(
                key, f"scores {span}", shape, 2, causal, stage="extremes", watched=False, levels=np.array(levels)
            )
        other = on_another_device(case("sizes", "the second of two ranks", (1, 3, 1, 4), 2, True, watched=False))
        own = tuple(chunks[1] for chunks in other.args)
        yield replace(other, args=own, probe="probes.ring_on_device")

    @holds("every rank calls exchange world_size − 1 times")
    def often(case, parts):
        return readings.miscounted("exchange", len(case.args[0]) - 1, parts)

    @holds("no tensor holds keys of more than one chunk")
    def chunked(case, parts):
        if GATHERED not in parts:
            return UNTRIED
        if not parts[GATHERED].any():
            return None
        t, n = case.args[1][0].array.shape[2], len(case.args[1])
        return (
            f"a tensor was made with keys or values of several of the {n} ranks, or with the shape of scores or of a mask for the keys of "
            f"all {n * t} tokens. One rank has {t} tokens."
        )

    @holds("at most two chunks are held at once")
    def let_go(case, parts):
        if not parts[HOARDED].any():
            return None
        return "when a rank passed on the chunk that it had got last, it still had one that it had got before."

    hints = (
        "Every rank holds some chunk in every round, and after world_size − 1 exchanges it has had them all. What must a rank keep of a "
        "chunk that it has passed on?",
        "Keep the running maximum, sum and weighted values of lesson 14, (B, H, T_local) twice and (B, H, T_local, d). Begin with your own "
        "chunk: then every query has seen a key. After i exchanges you hold the chunk of rank (rank − i) mod world_size; causal compares "
        "positions in the whole sequence. A chunk that is hidden from you must still be passed on.",
        "for step in range(world_size):\n    if step > 0:\n        k, v = exchange(____)\n    source = ____  # whose chunk this is\n"
        "    scores = q @ k.mT / math.sqrt(d)\n    if causal:  # positions: rank · T_local + row, source · T_local + column\n"
        "        scores = scores.masked_fill(____, -math.inf)\n    …  # lesson 14: new maximum, rescale, add\nreturn ____",
    )

    mistakes = {
        **scale_mistakes(),
        "FL1": patch(O, "o = o + p @ v"),
        "FL2": patch(L, "l = l + p.sum(dim=-1)", O, "o = o + p @ v"),
        "FL3": patch(P, "p = torch.exp(scores - scores.amax(dim=-1, keepdim=True))"),
        "FL4": patch(START_M, "m = q.new_zeros(q.shape[:-1])"),
        "MK1": (patch("columns > rows", "columns <= rows"), patch("columns > rows", "columns <= rows") + GUARDED),
        "MK3": patch(HIDE, HIDE.replace("-math.inf", "0")),
        "MK4": (patch(HIDE, HIDE.replace("-math.inf", "-10000.0")), patch(HIDE, HIDE.replace("-math.inf", "-1000.0"))),
        "MK7": tuple(patch("columns > rows", "columns >= rows") + way for way in (patch(), GUARDED)),
        "MK8": patch("columns > rows[:, None]", "columns > rows[:, None] + 1"),
        "MK13": patch(CAUSAL, "pass"),
        "RA1": mistake(
            patch(SEND, "k = exchange((k,))[0]"),
            patch(SEND, "k = exchange((k, v))[0]"),
            says="The keys went around the ring and the values stayed; both should go.",
            why="""The weights are computed with another rank's keys and multiplied by this rank's own values. Keys and values belong
            together, row by row. `exchange((k, v))` sends both in one call.""",
        ),
        "RA2": mistake(
            patch(SOURCE, "source = rank"),
            patch(COLUMNS, "columns = torch.arange(t, device=q.device) + (rank if source <= rank else world_size) * t"),
            says="The chunks of earlier ranks were masked like the rank's own; positions should be those in the whole sequence.",
            why="""A triangle is right for the chunk on the diagonal alone. A chunk of an earlier rank lies in the past as a whole and is
            wholly visible; one of a later rank is wholly hidden. Compare rank · T_local + row with source · T_local + column.""",
        ),
        "RA3": mistake(
            patch(SOURCE, "source = (rank + step) % world_size"),
            *(
                patch(SOURCE, f"source = {other}") + way
                for other in ("(rank - step - 1) % world_size", "(rank - step + 1) % world_size", "step")
                for way in (patch(), GUARDED)
            ),
            *(
                patch(SOURCE, f"source = {other} if step else rank")
                for other in ("(rank - step - 1) % world_size", "(rank - step + 1) % world_size")
            ),
            says="A chunk was taken for another rank's: after i exchanges a rank holds the chunk of rank (rank − i) mod world_size.",
            why="""What a rank gets comes from the rank before. Rank 2 holds chunk 2, its own, before the first exchange, then chunk 1, then
            chunk 0. An error of one hides keys that should be seen and shows keys of the future. With two ranks both orders agree, so a
            test on two does not tell rank + i from rank − i.""",
        ),
        "RA6": mistake(
            patch(SEND, "k, v = exchange((own_k, own_v))", START_M, f"own_k, own_v = (k, v)\n    {START_M}"),
            says="Every round sent the rank's own chunk; what was received should be passed on.",
            why="""A chunk gets to the far side of the ring by being handed from rank to rank. If everyone always sends their own,
            everyone sees one neighbor's chunk over and over. With two ranks that is right by accident.""",
        ),
        "RA7": mistake(
            patch("m = m_new", f"m = m_new\n        {SEND}", TURN, "pass"),
            says="exchange was called world_size times; the last call sent home what nobody needs.",
            why="""After world_size − 1 exchanges every rank has had every chunk. Another one brings each chunk back to its owner: right,
            and a share of the traffic for nothing (with two ranks, half of it).""",
        ),
        "RA8": mistake(
            _merged("o = o + torch.softmax(scores, dim=-1) @ v", "return o / world_size"),
            _merged("o = o + torch.softmax(scores, dim=-1).nan_to_num() @ v", "return o / world_size"),
            _merged(
                "o = o + torch.softmax(scores, dim=-1).nan_to_num() @ v",
                "return o / (rank + 1 if causal else world_size)",
            ),
            _merged("o = o + torch.softmax(scores, dim=-1) @ v", "return o"),
            _merged("o = o + torch.softmax(scores, dim=-1).nan_to_num() @ v", "return o"),
            patch(O, "o = o * rescale[..., None] + p @ v / p.sum(dim=-1, keepdim=True).clamp(min=1e-30)"),
            patch(
                O,
                "o = o * rescale[..., None] + p @ v / p.sum(dim=-1, keepdim=True).clamp(min=1e-30)",
                RETURN,
                "return o",
            ),
            patch(O, MEANS_MERGED),
            *(patch(O, MEANS_MERGED, RETURN, f"return {end}") for end in ("o / world_size", "o")),
            says="Each chunk's weights were made to sum to 1 by themselves; chunks should count by the sums of their exponentials.",
            why="""The denominator of softmax is a sum over *all* keys. A chunk with high scores holds most of the weight, one with low
            scores next to none. Divided by its own sum, as by a softmax within the chunk, each is a mean and has lost how much weight it
            had. Add p @ v and p.sum() as they are, relative to one maximum, and divide once, after the last chunk.""",
        ),
        "RA10": mistake(
            patch(RETURN, "return o"),
            says="The weighted values were not divided by the sum of the exponentials.",
            why="""While chunks are still to come, o and l are sums, and only sums can be added up. After the last chunk o / l is the
            weighted mean.""",
        ),
        "FL5": _merged(
            "top = scores.amax(dim=-1, keepdim=True)\n"
            "        e = torch.exp(scores - top)\n"
            "        both = torch.maximum(m, top[..., 0])\n"
            "        old, new = (torch.exp(m - both), torch.exp(top[..., 0] - both))\n"
            "        l = l * old + e.sum(dim=-1) * new\n"
            "        o = o * old[..., None] + e @ v * new[..., None]\n"
            "        m = both"
        ),
        "RA13": mistake(
            patch(LOOP, CHUNKS.format(next=LOOP), TURN, "k, v = held[step]"),
            says="A rank still had chunks that it had passed on before the last one; a chunk should be used when it comes, and let go.",
            why="""In a list, under a second name, in calls that have not returned or in what is sent, chunks add up: with all of them a
            rank needs as much memory as if they had been gathered. Use a chunk, pass it on, and keep only m, l and o.""",
        ),
        "RA14": mistake(
            patch(SCORES, f"if causal and source > rank:\n            break\n        {SCORES}"),
            patch(LOOP, "for step in range(rank + 1 if causal else world_size):"),
            says="A rank stopped exchanging once all that was left was hidden from it, and the others wait for what it should pass on.",
            why="""Rank 0 sees no other chunk when attention is causal, and may leave the computing out. But the chunks that others need
            go through it. A rank that leaves a collective early stops every other: on real devices the program hangs without a message.""",
        ),
        "RA15": mistake(
            patch(SEND, "k = exchange((k,))[0]\n            v = exchange((v,))[0]"),
            says="Keys and values were sent in two calls a round; exchange takes any number of tensors: exchange((k, v)).",
            why="""Every call costs the time that a message takes, however short it is, and everyone's wait for the slowest. Both in one
            call are world_size − 1 calls in all.""",
        ),
        "RA16": mistake(
            patch(SEND, "exchange((k, v))"),
            says="What exchange returned was not used, and the rank attended to its own chunk again and again.",
            why="""exchange leaves what it is given as it is, and returns the chunk of the rank before. Without a mask, the same chunk in
            every round gives attention over the rank's own tokens alone: whatever is counted N times in both sums cancels.""",
        ),
        "RA17": mistake(
            patch(SEND, "v, k = exchange((k, v))"),
            says="Keys and values were exchanged on arrival; they come in the order in which they were given.",
            why="Both have the same shape, so nothing complains. What the rank before gave first comes first.",
        ),
        "RA18": mistake(
            patch(SOURCE, f"{SOURCE}\n        causal = causal and source == rank"),
            says="The rank's own chunk was masked and no other: chunks of later ranks should be hidden as a whole.",
            why="""Chunks before the own one are visible, chunks behind it lie in the future. A comparison of positions in the whole
            sequence says all three at once.""",
        ),
        "RA22": mistake(
            patch(L, "l = l + p.sum(dim=-1)"),
            says="The weighted values were rescaled to the new maximum and the sum of the exponentials was not; both should be.",
            why="""Both are sums of terms relative to the old maximum. When a chunk raises it, both shrink by exp(m_old − m_new). Only then
            is o / l a mean, with weights that sum to 1.""",
        ),
        "RA23": mistake(
            patch(SCORES, f"if step == world_size - 1:\n            break\n        {SCORES}"),
            patch(LOOP, "for step in range(world_size - 1):"),
            patch(LOOP, "for step in range(1, world_size):"),
            says="The last chunk, or the rank's own, was never used: there are world_size chunks, one more than exchanges.",
            why="""Every rank begins with a chunk and gets world_size − 1 more. A loop that uses a chunk and then exchanges it leaves one to
            be used after the last exchange; one that exchanges first leaves the rank's own. With one rank nothing at all is used, and 0 / 0
            is NaN.""",
        ),
        "RA25": mistake(
            patch("if causal:", "if True:"),
            says="Later tokens were hidden although causal is False; the mask should be used only where it is asked for.",
            why="""causal is False by default: an encoder's tokens see all others. Chunks of later ranks count there as those of earlier
            ones do.""",
        ),
        "RA28": mistake(
            patch(
                RESCALE, "rescale = torch.ones_like(m)", P, "p = torch.exp(scores - scores.amax(dim=-1, keepdim=True))"
            ),
            patch(
                RESCALE,
                "rescale = torch.ones_like(m)",
                P,
                "p = torch.exp(scores - scores.amax(dim=-1, keepdim=True)).nan_to_num()",
            ),
            says="Each chunk's sums are relative to its own maximum and were added as they are; first bring both to the larger maximum.",
            why="""exp(s − m) says how large a score is beside m, and each chunk has another m. With the same m, the chunk with the lower
            scores counts less; without, as much as the other.""",
        ),
        "SM5": patch(M_NEW, "m_new = torch.zeros_like(m)", RESCALE, "rescale = torch.ones_like(m)"),
        "SM6": tuple(
            patch(M_NEW, f"m_new = torch.maximum(m, {top}.expand_as(m))") + way
            for top in ("scores.max()", "scores.amax(dim=(-2, -1), keepdim=True)[..., 0]")
            for way in (patch(), GUARDED)
        ),
    }
