"""Queries, keys and values of every token, by three products."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..cases import Arrays, one_decimal


def _drawn(rng: np.random.Generator, x_shape: tuple[int, ...], d_k: int, d_v: int) -> Arrays:
    d_model = x_shape[-1]
    return tuple(one_decimal(rng, *shape) for shape in (x_shape, (d_model, d_k), (d_model, d_k), (d_model, d_v)))


def all_three(product: str):
    """The same change of every product; {} stands for the weights' name."""
    return patch(*(text for w in ("w_q", "w_k", "w_v") for text in (f"x @ {w}", product.format(w))))


@exercise(points=1, minutes=4, difficulty=1, result_names=("q", "k", "v"), forbids=("attention",))
class project_qkv:
    """Project every token of x to its query, its key and its value."""

    def cases(rng):
        small = (
            [[1, 0], [1, 2], [3, 1]],
            [[1, 0, 2, 1], [0, 1, 1, 3]],
            [[2, 1, 0, 1], [1, 1, 4, 0]],
            [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]],
        )
        yield Case(
            "small", "one sentence of three tokens in whole numbers", tuple(np.array(a, dtype=float) for a in small)
        )
        batch = _drawn(rng, (2, 5, 3), 4, 6)
        yield Case("batch", "two sentences of five tokens", batch)
        changed = batch[0].copy()
        changed[1, 2] += 1 + one_decimal(rng, 3) ** 2  # every number of the token changes
        yield Case("one-token-changed", "the same batch with one token changed", (changed, *batch[1:]))
        for key, title, x_shape, d_k, d_v in (
            ("seen-again", "the same shapes, new numbers", (2, 5, 3), 4, 6),
            ("heads", "two leading dimensions", (2, 3, 5, 4), 6, 7),
            ("heads-again", "two leading dimensions, other sizes", (3, 2, 4, 5), 7, 1),
            ("long", "one sentence, many more tokens than features", (19, 2), 3, 5),
            ("one-token", "one sentence of one token", (1, 1, 4), 3, 2),
            ("square", "square weights", (4, 4), 4, 4),
            ("square-batch", "a batch with square weights", (2, 3, 4), 4, 4),
            ("square-heads", "two leading dimensions, square weights", (2, 3, 4, 5), 5, 5),
        ):
            yield Case(key, title, _drawn(rng, x_shape, d_k, d_v))
        whole = tuple(rng.integers(-4, 5, size=shape) for shape in ((3, 4, 2), (2, 5), (2, 5), (2, 6)))
        yield Case("whole", "arrays of whole numbers", whole)
        yield Case("float32", "float32 inputs", tuple(a.astype(np.float32) for a in _drawn(rng, (3, 2, 6), 5, 4)))
        # Whole numbers meet fractions of many decimals: neither the type of x nor a rounding may stay in the result.
        by_name = {
            "w_v": rng.normal(size=(3, 6)),
            "w_k": rng.normal(size=(3, 5)),
            "w_q": rng.normal(size=(3, 5)),
            "x": rng.integers(-4, 5, size=(2, 4, 3)),
        }
        yield Case("by-name", "arguments given by name, the tokens in whole numbers", kwargs=by_name)

    @holds("each token is projected on its own", cases=("batch", "one-token-changed"))
    def alone(case_1, before, case_2, after):
        kept = ~(case_1.args[0] != case_2.args[0]).any(axis=-1)
        moved = [
            name for name in before if not np.allclose(before[name][kept], after[name][kept], rtol=1e-4, atol=1e-4)
        ]
        return (
            f"only token 2 of item 1 changed, and other rows of {' and '.join(moved)} changed with it."
            if moved
            else None
        )

    hints = (
        "One token is a vector of d_model numbers, and its query `x[b, t] @ w_q` has d_k. What shape do the queries "
        "of all tokens have, and which axis of x does the product sum over?",
        "`@` treats all axes of x but the last two as a stack of matrices, and multiplies each matrix of the stack "
        "by the same w_q. So nothing has to be looped over, reshaped or transposed.",
        "```python\nq = x @ w_q\nk = ____\nv = ____\nreturn q, k, v\n```",
    )

    mistakes = {
        "AB1": (
            all_three("x @ {}.T"),
            all_three("np.inner(x, {})"),
            all_three("x.dot({}.T)"),
            all_three("np.einsum('...d,ed->...e', x, {})"),
            *(patch(f"x @ {w}", f"x @ {w}.T") for w in ("w_q", "w_k", "w_v")),
        ),
        "AB3": (
            patch("x @ w_k", "x @ w_q"),
            patch("x @ w_v", "x @ w_k"),
            patch("x @ w_k", "x @ w_q", "x @ w_v", "x @ w_q"),
        ),
        "AB6": mistake(
            patch("q = x", "x = x.reshape(-1, x.shape[-1])\n    q = x"),
            says="The leading dimensions of x were flattened and not restored; the results should have them, too.",
            why="""`x.reshape(-1, d_model)` lays all tokens of all sentences in one long matrix. The product is right, row by row,
            and the result still needs its leading dimensions back. `x @ w_q` keeps them without any reshape.""",
        ),
        "TT1": patch("return (q,", "return (q / math.sqrt(q.shape[-1]),"),
        "AB8": (
            patch("q = x", "batch, tokens, d_model = x.shape\n    q = x"),
            all_three("np.einsum('btd,dk->btk', x, {})"),
            patch("q = x", "tokens, d_model = x.shape\n    q = x"),
            all_three("np.einsum('td,dk->tk', x, {})"),
        ),
        "AB9": mistake(
            patch("(q, k, v)", "(q, v, k)"),
            patch("x @ w_q", "x @ w_k", "x @ w_k", "x @ w_q"),
            says="Two of the results stand in each other's place; (q, k, v) is asked for, each made with its own weights.",
            why="""A caller who unpacks the result takes the second array for the keys. With d_v = d_k no shape shows that it holds the
            values. Queries and keys always have the same shape: exchanged, the scores come out transposed, and row i belongs to
            key i.""",
        ),
    }
