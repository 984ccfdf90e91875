"""A penalty on the scores in proportion to the distance, for each head at its own rate."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

SLOPES = "2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)"
PUBLISHED = """2.0 ** (-8 * torch.arange(1, n + 1) / n)
    more = 2.0 ** (-4 * torch.arange(1, 2 * n + 1, 2) / n)
    slopes = torch.cat((slopes, more))[:num_heads]"""


@exercise(points=2, minutes=8, difficulty=1, result_type="tensor")
class alibi_bias:
    """Compute a bias that lowers each score in proportion to the distance, at a different rate for each head."""

    def cases(rng):
        for num_heads, t in ((2, 3), (1, 4), (8, 3), (3, 5), (4, 2), (5, 4), (6, 6), (4, 1), (12, 3)):
            yield Case(f"{num_heads}-{t}", f"with num_heads {num_heads}, t {t}", (num_heads, t), rtol=1e-4, atol=1e-6)
        num_heads, t = int(rng.integers(9, 16)), int(rng.integers(4, 9))
        yield Case("random", "sizes drawn at random", (num_heads, t), rtol=1e-4, atol=1e-6)
        yield Case("named", "both by name", (), {"num_heads": 7, "t": 3}, rtol=1e-4, atol=1e-6)
        yield Case("many heads", "with num_heads 32, t 14", (32, 14), show=False, rtol=1e-4, atol=1e-6)
        yield Case("8-3 again", "with num_heads 8, t 3, once more", (8, 3), rtol=1e-4, atol=1e-6)
        yield Case(
            "far", "258 tokens", (1, 258), stage="extremes", show=False
        )  # beyond int8, uint8 and the odd numbers of bfloat16, and quick for three loops

    @holds("no entry is above 0: the bias rewards no key")
    def no_reward(case, parts):
        highest = parts["result"].max()
        return None if highest < 1e-6 else f"an entry is {highest:.4g}."

    @holds("the bias depends on the distance, not on the direction")
    def both_sides(case, parts):
        bias = parts["result"]
        apart = np.abs(bias - bias.swapaxes(-1, -2)).max()
        return None if apart < 1e-5 else f"key j seen from i and key i seen from j differ by {apart:.4g}."

    hints = (
        "Which (t, t) matrix do all heads share, and by which one number does each head multiply it?",
        "`torch.arange(t)` as a column minus itself as a row gives all i − j. Slopes of shape (num_heads, 1, 1) broadcast.",
        "i = torch.arange(t)\ndistance = (i[:, None] - ____).abs()\n"
        "slopes = 2.0 ** (-8 * (torch.arange(num_heads) + ____) / ____)\nreturn -slopes[____] * distance",
    )

    mistakes = {
        "PO21": mistake(
            patch("arange(1, num_heads + 1)", "arange(num_heads)"),
            says="The slopes began one step too early, at 1; the first head's should be 2^(−8/num_heads).",
            why="""With h from 0 the exponent is −8(h + 1)/num_heads, so the last head's slope is 2⁻⁸ whatever their number.
            Without the + 1 the first slope is 1.""",
        ),
        "PO22": mistake(
            patch(".abs()", ""),
            says="The absolute value is missing: later tokens are rewarded, and the bias should lower both sides.",
            why="""i − j is negative for keys after the query, and minus times minus rewards the future. In a causal model a
            mask hides that; here the bias depends on the distance alone.""",
        ),
        "PO23": mistake(
            patch(".abs()", ".clamp(min=0)"),
            patch(".abs()", ".abs().triu()"),
            says="Keys on one side of the query were given no bias: a triangle beside the diagonal is 0; both sides should have one.",
            why="""`clamp` or `tril` leaves nothing for the keys after the query, `triu` nothing for those before it. In a causal
            model a mask hides the keys after the query anyway. Here the bias is −slope · abs(i − j), on both sides.""",
        ),
        "PO24": mistake(
            patch("-slopes", "-slopes.flip(0)"),
            says="The slopes, or the frequencies, are in reverse order, the smallest first; they should fall, the largest first.",
            why="""2^(−8(h + 1)/num_heads) falls with h: head 0 looks at what is near, the last head far back. So does base^(−2i/d)
            with i: the first pair turns by one radian per position, each later pair more slowly. In the other order attention works
            as well, but not with weights that were trained in this one.""",
        ),
        "PO26": mistake(
            patch("-8 * torch", "-torch", " / num_heads", ""),
            patch("-8 * torch", "-torch"),
            says="A factor is missing from the exponent: the slope of head h should be 2^(−8(h + 1)/num_heads).",
            why="""The example in the paper has 8 heads and slopes ½, ¼, …, 1/256, so 2^(−(h + 1)) is right for eight heads only. For
            another number of heads the same range is divided into num_heads steps. Without the 8 the last slope is ½, and even that
            head looks mostly at tokens nearby.""",
        ),
        "PO27": mistake(
            patch(f"slopes = {SLOPES}", f"n = 2 ** int(math.log2(num_heads))\n    slopes = {PUBLISHED}"),
            says="Another rule was used where num_heads is not a power of two; use one formula for all numbers.",
            why="""The paper's published code takes the slopes of the next lower power of two and adds every second slope of
            the next higher one. That is a good choice, too, but it gives other numbers than this exercise asks for.""",
        ),
        "PO28": mistake(
            patch(
                "return bias",
                "future = positions > positions[:, None]\n    return bias.masked_fill(future, -torch.inf)",
            ),
            says="Keys after the query were set to −∞, a causal mask; only a bias is asked for.",
            why="Bias and mask do different work. Kept apart, the same bias can be used in models that see both sides.",
        ),
        "PO15": (
            *(
                patch(SLOPES, f"torch.full((num_heads,), 2.0 ** {exponent})")
                for exponent in ("(-8 / num_heads)", "(-8)")
            ),
        ),
        "PO41": mistake(
            patch(SLOPES, "8 * torch.arange(1, num_heads + 1) / num_heads"),
            says="The exponent itself, 8(h + 1)/num_heads, became the slope; the slope should be 2 to the power of minus that.",
            why="""Slopes of 2^(−8(h + 1)/num_heads) lie between 0 and 1 and fall by a fixed factor from head to head. The exponents lie
            between 0 and 8 and grow.""",
        ),
        "PO42": mistake(
            patch(".abs()", ".abs() + 1"),
            says="The distance was counted from 1; it should be abs(i − j), which is 0 for a token and itself.",
            why="""One step more for every key lowers all scores of a row alike, which softmax undoes. But the bias is compared with
            −slope · abs(i − j) itself, whose diagonal is 0.""",
        ),
        "PO35": mistake(
            patch(SLOPES, "2.0 ** -8 * torch.arange(1, num_heads + 1) / num_heads"),
            says="Only −8 was used as the exponent, since `**` comes before `*` and `/`; put the whole exponent in brackets.",
            why="""`**` binds closer than `*` and `/`. Without brackets the slopes are (h + 1)/num_heads times 2⁻⁸: they grow from
            head to head by equal steps, where each should be a fixed fraction of the one before.""",
        ),
    }
