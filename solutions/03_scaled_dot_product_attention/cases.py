"""The arrays of lesson 03, and the cases of three dimensions that both attention exercises have."""

from collections.abc import Iterator

import numpy as np

from grader.course.declare import Case

Array = np.ndarray
Arrays = tuple[Array, ...]


def one_decimal(rng: np.random.Generator, *shape: int) -> Array:
    """Standard normal numbers of one decimal (and no −0), so that a failing case can be followed by hand."""
    return rng.normal(size=shape).round(1) + 0.0


def random_qkv(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> Arrays:
    """q, k, v."""
    return one_decimal(rng, *lead, t_q, d_k), one_decimal(rng, *lead, t_k, d_k), one_decimal(rng, *lead, t_k, d_v)


def integer_qkv(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> Arrays:
    """q, k, v of integers, the values far enough apart for a truncated output to show."""
    q, k = (rng.integers(-1, 2, size=(*lead, t, d_k)) for t in (t_q, t_k))
    return q, k, rng.integers(-9, 10, size=(*lead, t_k, d_v))


def qkv_with_scores(rng: np.random.Generator, centre: Array, t_k: int, d_v: int) -> Arrays:
    """q, k, v whose scaled scores lie within ±6 of each query's centre, of shape (..., T_q).

    d_k is 4 and q and k are whole numbers, so that the scores are exact in float32, too. Centres are multiples of 50.
    """
    lead = centre.shape[:-1]
    q = rng.integers(-2, 3, size=(*centre.shape, 4)).astype(float)
    k = rng.integers(-2, 3, size=(*lead, t_k, 4)).astype(float)
    q[..., 0], k[..., 0] = centre / 50, 100  # q0 k0 / sqrt(4) = centre
    return q, k, one_decimal(rng, *lead, t_k, d_v)


def keys_apart(rng: np.random.Generator, *lead: int) -> Case:
    """Two queries and five keys: in each row some scaled scores near 9,900 and some near −9,900, the first key's among either."""
    q, k, v = qkv_with_scores(rng, np.tile([9900.0, -9900.0], (*lead, 1)), 5, 3)
    k[..., 0] *= [-1, 1, 1, -1, 1]
    return Case("keys-apart", "scores near 9,900 and near −9,900 in one row", (q, k, v), stage="extremes")


# The three-token table of lesson 01; and two queries, three keys, d_k 4 (so that the scale is 2) and five numbers a value.
TABLE = tuple(
    np.array(a, float) for a in ([[1, 0], [0, 1], [1, 1]], [[1, 1], [1, 0], [0, 1]], [[10, 0], [0, 10], [5, 5]])
)
TWO_QUERIES = tuple(
    np.array(a, float)
    for a in (
        [[1, 0, 2, 1], [0, 3, 1, 0]],
        [[1, 0, 0, 1], [0, 1, 1, 0], [2, 0, 1, 0]],
        [[10, 0, 0, 1, 2], [0, 10, 0, 3, 4], [0, 0, 10, 5, 6]],
    )
)


def batches(rng: np.random.Generator) -> Iterator[Case]:
    """Cases of three dimensions, for both attention exercises."""
    q, k, v = random_qkv(rng, (2,), 3, 5, 4, 6)
    yield Case("batch", "two sentences, three queries, five keys", (q, k, v))
    order = np.array([3, 0, 4, 2, 1])
    yield Case("permuted", "the same batch, keys and values in another order", (q, k[:, order], v[:, order]))
    other = tuple(np.stack([one_decimal(rng, *array[0].shape), array[1]]) for array in (q, k, v))
    yield Case("item-0-changed", "the same batch with another item 0", other)
    yield Case("seen-again", "the same shapes, new numbers", random_qkv(rng, (2,), 3, 5, 4, 6))
    q, k, _ = random_qkv(rng, (3,), 2, 5, 4, 1)
    yield Case("identity", "the identity matrix as v", (q, k, np.tile(np.eye(5), (3, 1, 1))))
    yield Case("one-key", "a single key", random_qkv(rng, (2,), 4, 1, 3, 5))
    yield Case("one-query", "a single query", random_qkv(rng, (3,), 1, 5, 4, 2))
    q, k, v = random_qkv(rng, (1,), 5, 19, 4, 3)
    k[:, -3:] = (2 * q[:, :3]).round(
        1
    )  # what the first queries look for comes last, so that a running maximum has to grow
    yield Case("one-sentence", "a batch of one sentence with nineteen keys", (q, k, v))
    yield Case("square", "batch, queries, keys and features of equal size", random_qkv(rng, (4,), 4, 4, 4, 4))
    yield Case("whole", "arrays of whole numbers", integer_qkv(rng, (2,), 4, 3, 5, 6))
    yield Case("float32", "float32 inputs", tuple(a.astype(np.float32) for a in random_qkv(rng, (2,), 5, 3, 6, 4)))
    turned = tuple(np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) for a in random_qkv(rng, (2,), 6, 3, 5, 4))
    yield Case("layout", "arrays that lie transposed in memory", turned)
    q, k, v = random_qkv(rng, (2,), 4, 6, 3, 5)
    yield Case("negative", "every score is negative", (np.abs(q), -np.abs(k), -np.abs(v)))


def extremes(rng: np.random.Generator) -> Iterator[Case]:
    """Large scores of one sign (a softmax without a maximum), then rows far apart (one maximum for all)."""
    for key, title, centre, t_k, d_v in (
        ("large", "scores near 1,000", [[1000.0] * 3] * 2, 5, 6),
        ("large-negative", "scores near −1,000 and near −400", [[-1000.0, -400.0, -1000.0]] * 2, 4, 5),
        ("rows-apart", "a row of scores near 1,000 and one near −1,000", [[1000.0, -1000.0]], 3, 5),
        ("items-apart", "an item with scores near 9,900 and one near −9,900", [[9900.0] * 3, [-9900.0] * 3], 5, 6),
        ("mixed", "rows of scores a thousand apart in each item", [[0.0, -1000.0, 1000.0]] * 2, 4, 6),
        ("mixed-float32", "rows of scores a thousand apart in float32", [[-1000.0, 1000.0, 0.0]], 4, 2),
    ):
        arrays = qkv_with_scores(rng, np.array(centre), t_k, d_v)
        dtype = np.float32 if key == "mixed-float32" else float
        yield Case(key, title, tuple(array.astype(dtype) for array in arrays), stage="extremes")
