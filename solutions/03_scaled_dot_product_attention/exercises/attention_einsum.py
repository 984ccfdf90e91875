"""Attention whose two products are spelled in letters."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch
from grader.course.readings import flag, numbers
from grader.worker.values import Part

from ..cases import TABLE, TWO_QUERIES, batches, extremes, integer_qkv, keys_apart, one_decimal
from ..shared import MISTAKES, batch_independence, key_order_invariance, row_at_fault


def read_einsum(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The result, and whether the calls of np.einsum on which it depends do the work of both products."""
    by_einsum = "both products come from np.einsum"
    if parts["result"].array is None:  # no array: the other cases say so
        return {"result": parts["result"], by_einsum: flag(True)}
    result, adds = numbers(parts["result"]), numbers(parts["multiply-adds"]).tolist()
    others = [numbers(part, result.shape) for part in parts["with another result"].items]
    moved = [np.abs(other - result).max() > 1e-3 * np.abs(result).max() for other in others]
    done = sum(count for i, count in enumerate(adds) if i >= len(moved) or moved[i])
    q, k, v = (value.shape for value in case.args)
    return {"result": parts["result"], by_einsum: flag(done >= q[0] * q[1] * k[1] * (q[2] + v[2]))}


@exercise(points=2, minutes=8, difficulty=2, forbids=("attention",), requires=("einsum_products",))
class attention_einsum:
    """Compute attention with both products by `np.einsum`, and return the output alone."""

    def cases(rng):
        yield Case("table", "the three-token table of lesson 01 as a batch of one", tuple(a[None] for a in TABLE))
        yield Case(
            "small",
            "two queries and three keys as a batch of one, in whole numbers",
            tuple(a[None].astype(int) for a in TWO_QUERIES),
        )
        yield from batches(rng)
        yield Case("whole-again", "whole numbers, other sizes", integer_qkv(rng, (3,), 2, 6, 4, 5))
        yield Case(
            "by-einsum",
            "two queries, three keys, twice, each result of np.einsum changed in turn",
            tuple(one_decimal(rng, 2, *shape) for shape in ((2, 4), (3, 4), (3, 5))),
            probe="probes.by_einsum",
            reading=read_einsum,
        )
        yield from extremes(rng)
        yield keys_apart(rng, 1)

    @holds("with the identity as v each row of the output sums to 1", cases=("identity",))
    def identity(case, parts):
        return row_at_fault(parts["result"], "output (with v the identity it is the weights)")

    alone, order = batch_independence("result"), key_order_invariance("result")

    hints = (
        "Give each axis a letter: b batch, i query, j key, d feature. Which letter do q and k share that the scores do not have?",
        "A letter that is left of the arrow and not right of it is summed. The scores keep b, i and j; the output keeps b and i"
        " and takes the letter of v's last axis, so j is summed there.",
        '```python\nscores = np.einsum("bid,b____->b____", q, k) / math.sqrt(q.shape[-1])\n'
        "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))\nweights = exps / exps.sum(axis=-1, keepdims=True)\n"
        'return np.einsum("____,____->____", weights, v)\n```',
    )

    mistakes = {
        **MISTAKES,
        "SM4": (
            *MISTAKES["SM4"],
            patch("exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-1)[:, None, :]"),
            patch("exps.sum(axis=-1, keepdims=True)", "np.einsum('bij->bi', exps)[:, None, :]"),
        ),
        "SD8": patch("bid,bjd->bij", "bid,bjd->bji"),
        "AB22": patch("bij,bje->bie", "bij,bie->bje"),
        "TT3": patch("bid,bjd->bij", "bid,bdj->bij"),
        "AB38": mistake(
            patch("bid,bjd->bij", "bid,cjd->bij"),
            patch("bij,bje->bie", "bij,cje->bie"),
            patch("bij,bje->bie", "bij,bke->bie"),
            says="An axis that two operands share has two letters, so it is summed by itself; call the batch b, and the keys j, in both.",
            why="""A letter of one operand alone, left out on the right, is summed by itself. If k or v has a letter of its
            own for the batch, each query meets the sum of all sentences; with a batch of one nothing shows. `bij,bke->bie`
            sums each row of weights, which gives 1, and all values of the sentence: no weight meets its value.""",
        ),
        "AB24": mistake(
            patch("bid,bjd->bij", "bid,bjd->ij", "bij,bje->bie", "ij,bje->bie"),
            patch("bij,bje->bie", "bij,bje->be"),
            patch("bij,bje->bie", "bij,bje->bje"),
            says="""A letter is missing right of einsum's arrow, so that axis was summed; keep b and i, each item and each
            query has results of its own.""",
            why="""einsum sums every letter that is not right of the arrow. An axis that should stay needs its letter there:
            without b the scores are summed over the batch, without i the output over the queries. With `->bje` the keys, j,
            stay in their place: each value is multiplied by all the weight that the queries gave it.""",
        ),
    }
