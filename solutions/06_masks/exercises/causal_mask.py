"""The lower triangle, with queries that are the last of the positions."""

from grader.course.declare import Case, exercise, holds, mistake, patch


@exercise(points=2, minutes=5, difficulty=1, result_type="tensor", dtype=("bool",))
class causal_mask:
    """Mark for each query the keys that lie in its past, its own position included."""

    def cases(rng):
        for t_q in (3, 1, 5, 40):
            yield Case(f"square-{t_q}", f"{t_q} queries, t_k left out", (t_q,))
        # Positions above 127 do not fit into int8, and not all of those above 2048 into float16.
        for t_q, t_k in ((2, 5), (1, 4), (3, 4), (4, 4), (2, 2050)):
            yield Case(f"cache-{t_q}-{t_k}", f"{t_q} queries, {t_k} keys", (t_q, t_k))
        t_q, more = int(rng.integers(2, 7)), int(rng.integers(1, 6))
        yield Case("random", "sizes drawn at random", (t_q, t_q + more))
        yield Case("named", "with t_k given by name", (3,), {"t_k": 6})

    @holds("the last query sees every key")
    def last(case, parts):
        mask = parts["result"].astype(bool)
        return None if mask[-1].all() else f"the last query sees {int(mask[-1].sum())} of {mask.shape[1]} keys."

    hints = (
        "With 2 queries and 5 keys, the queries are the last two positions. Which keys may the first of them see?",
        "`torch.ones(t_q, t_k, dtype=torch.bool).tril(diagonal=…)` keeps j ≤ i + diagonal.",
        "t_k = t_q if t_k is None else ____\nreturn torch.ones(t_q, t_k, dtype=torch.bool).tril(____)",
    )

    mistakes = {
        "MK1": patch("torch.ones(", "~torch.ones("),
        "MK7": patch("t_k - t_q)", "t_k - t_q - 1)"),
        "MK8": patch("t_k - t_q)", "t_k - t_q + 1)"),
        "MK12": patch("t_q if t_k is None else t_k", "t_q"),
        "MK14": patch("diagonal=t_k - t_q", "diagonal=0"),
        "MA1": patch("tril", "triu"),
        "MA2": (
            *(patch("t_k - t_q)", f"t_k - t_q).{kind}()") for kind in ("float", "long", "int", "byte")),
            patch(
                "return torch",
                "mask = torch",
                "t_k - t_q)",
                "t_k - t_q)\n    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)",
            ),
        ),
        "MA27": mistake(
            patch("diagonal=t_k - t_q", "diagonal=t_q - t_k"),
            says="The diagonal was shifted to the wrong side; with fewer queries than keys each query should see more keys, not fewer.",
            why="""A positive offset of `tril` allows more. With fewer queries than keys each query also sees the t_k − t_q positions
            that came before the first of them, so the offset is t_k − t_q. Shifted the other way, 2 queries see none of 5 keys.""",
        ),
        "MA28": mistake(
            patch(".tril(diagonal=t_k - t_q)", ""),
            says="The mask allows everything, the future too; each query should see its past and itself.",
            why="Row i is True up to query i's own position, False after it. `torch.ones` is all True; `tril` takes the future out.",
        ),
    }
