"""How far the dot products of random vectors spread."""

from functools import partial

from grader.course.declare import Case, exercise, mistake, patch

from ..sampled import judge, read_draws, read_results, read_use

# Words of 32 bits of which each way to make a normal number makes one at once, neither 0 nor large; of other size each.
WORDS = (0x3A5C91E7, 0x9999A0F3, 0xC3D2B1A9)
DRAWN = "standard_normal((n_samples, d_k))"
Q, K = f"q = rng.{DRAWN}", f"k = rng.{DRAWN}"


def drawn(otherwise: str):
    """q and k drawn by other means."""
    return patch(Q, f"q = {otherwise}", K, f"k = {otherwise}")


def every_key(d_k, n_samples, rng):
    """(q @ k.T).std() without its n² numbers, which would take a tenth of a second in every diagnosis."""
    q, k = rng.standard_normal((n_samples, d_k)), rng.standard_normal((n_samples, d_k))
    mean = q.sum(axis=0) @ k.sum(axis=0) / n_samples**2
    return float(max(((q.T @ q) * (k.T @ k)).sum() / n_samples**2 - mean**2, 0) ** 0.5)


@exercise(
    points=2,
    minutes=8,
    difficulty=2,
    result_type="number",
    result_names=("standard deviation",),
    forbids=("tampering",),
)
class dot_product_std:
    """Measure how far the dot products of random vectors spread."""

    compare = judge

    def cases(rng):
        sampled = partial(Case, names=("d_k", "n_samples"), probe="probes.samples", rtol=0.1)
        # The measured figure strays by 2 % or a little more, a fifth of what is allowed.
        for d_k, n_samples in ((1, 4000), (2, 3000), (3, 2500), (5, 2000), (16, 1500), (64, 1200)):
            seed = int(rng.integers(2**31))
            yield sampled(f"d{d_k}", f"{n_samples} pairs of length {d_k}", (d_k, n_samples), options={"seed": seed})
        yield sampled(
            "named",
            "1300 pairs of length 6, all passed by name",
            (6, 1300),
            options={"seed": int(rng.integers(2**31)), "by_name": True},
        )
        for n_samples in (5, 20, 50):
            yield sampled(
                f"drawn-{n_samples}",
                f"{n_samples} pairs of length 16, the numbers drawn counted",
                (16, n_samples),
                options={"seed": int(rng.integers(2**31)), "count": True},
                reading=read_draws,
            )
        yield sampled(
            "few",
            "1500 times two pairs of length 1",
            (1, 2),
            probe="probes.small_samples",
            rtol=0.3,
            costly=True,
            options={"seed": int(rng.integers(2**31)), "calls": 1500, "more": 50},
            reading=read_results,
        )
        for key in ("few-again", "few-once-more"):  # so that what these alone show is proven, too
            yield sampled(
                key,
                "1500 times two pairs of length 1, new numbers",
                (1, 2),
                probe="probes.small_samples",
                rtol=0.3,
                costly=True,
                options={"seed": int(rng.integers(2**31)), "calls": 1500},
                reading=read_results,
            )
        yield sampled(
            "few-long",
            "300 times two pairs of length 8",
            (8, 2),
            probe="probes.small_samples",
            rtol=0.65,
            costly=True,
            options={"seed": int(rng.integers(2**31)), "calls": 300},
            reading=read_results,
        )
        same, other = (int(word) for word in rng.permutation(WORDS)[:2])
        title = "ten pairs of length 2, once with all numbers equal, then with a third of them changed"
        yield Case(
            "used",
            title,
            (2, 10),
            names=("d_k", "n_samples"),
            probe="probes.generator_use",
            options={"same": same, "other": other},
            reading=read_use,
        )

    hints = (
        "If one product of two standard-normal numbers has variance 1, what variance has a sum of d_k of them?",
        "Draw q and k, each (n_samples, d_k), from rng. Each row gives one dot product: multiply entry by entry, sum over the last axis.",
        "q = rng.standard_normal((____, ____))\nk = ____\ndots = (q * k).sum(axis=____)\nreturn dots.____()",
    )

    mistakes = {
        "WS1": mistake(
            drawn("rng.random((n_samples, d_k))"),
            drawn("rng.uniform(-1, 1, (n_samples, d_k))"),
            says="The vectors were drawn uniform on [0, 1) or on [−1, 1); standard-normal ones are asked for.",
            why="""Uniform numbers on [0, 1) have mean ½, so every dot product is near d_k/4 and their spread is √(7 d_k)/12, not
            √d_k. On [−1, 1) the mean is 0, but the variance is ⅓ where it should be 1: the spread is √d_k / 3.""",
        ),
        "WS15": patch("dots.std()", "dots.var()"),
        "LN15": mistake(
            patch("dots.std()", "np.abs(dots - dots.mean()).mean()"),
            patch("dots.std()", "np.abs(dots).mean()"),
            says="The mean distance from the mean was taken; the standard deviation is the root of the mean squared distance.",
            why="""For normally distributed numbers the mean distance is √(2/π) = 0.8 of the standard deviation. For 1, 2 and 6 the mean
            distance is 2, and the root of the mean square 2.16. Only variances add up: that is why d_k products spread by √d_k.""",
        ),
        "WS4": mistake(
            patch("dots.std()", "(dots / np.sqrt(d_k)).std()"),
            patch("sum(axis=-1)", "mean(axis=-1)"),
            patch("dots.std()", "(dots / d_k).std()"),
            says="""The dot products were divided by √d_k or d_k, or a mean was taken in their place; measure the sums
            themselves, unscaled.""",
            why="""The experiment shows what happens without the scale: with d_k = 64 the sums spread by 8. Divided by √d_k
            they spread by 1 for every d_k, which removes what the experiment should show. Divided by d_k a sum is a mean,
            whose standard deviation is 1/√d_k, ⅛.""",
        ),
        "WS30": mistake(
            patch(Q, "q = rng.standard_normal(d_k)"),
            patch(Q, f"k = rng.{DRAWN}", K, "q = rng.standard_normal(d_k)"),
            every_key,
            patch("q * k", "q * q"),
            patch(K, "k = q"),
            says="""Vectors met themselves, one query met all keys, one key all queries, or every query every key; each pair
            should have a query and a key of its own.""",
            why="""q · q is a sum of squares: its mean is d_k and its standard deviation √(2 d_k), while for a query and a
            key the signs are independent and the mean is 0. With one query or one key for all, the dot products spread by
            how long it is, which for d_k = 1 is anything between 0 and 3. `q @ k.T` has n² dot products, made of n queries
            and n keys, which say less than n² independent pairs; with ten thousand pairs the array has a hundred million
            numbers. Draw two vectors for each pair.""",
        ),
        "WS6": mistake(
            patch("(q * k).sum(axis=-1)", "q * k"),
            says="The single products were measured; sum them over d_k first.",
            why="One product of two standard-normal numbers has standard deviation 1. Only the sum of d_k of them spreads by √d_k.",
        ),
        "WS8": mistake(
            drawn(f"np.random.{DRAWN}"),
            patch("q = rng", "rng = np.random.default_rng(0)\n    q = rng"),
            says="The numbers come from NumPy's global generator, or from one made inside the function; draw them from rng.",
            why="""np.random.standard_normal shares one hidden state with every other cell of the notebook, so the figure
            depends on what ran before. A generator made inside with a fixed seed returns the same figure every time, and the
            spread of repeated runs looks like 0. With rng passed in, the caller can repeat or vary the experiment.""",
        ),
        "WS29": mistake(
            patch("axis=-1", "axis=0"),
            drawn("rng.standard_normal((d_k, n_samples))"),
            says="The products were summed over the pairs; sum them over the d_k features of each pair.",
            why="""An array (n_samples, d_k) has a pair in each row, so the features lie along its last axis; in an array (d_k,
            n_samples) they lie along the first. Summed over the pairs there are d_k sums of n_samples products each, and their
            spread is near √n_samples. With d_k = 1 a single sum is left, whose spread is 0.""",
        ),
    }
