"""How many operations attention's two matrix products take."""

from grader.course.declare import Case, exercise, mistake, patch

TRIANGLES = (  # the share of the scores that lie below the diagonal, the diagonal included, in the ways to count them
    "(t_q + 1) / (2 * t_q)",
    "(t_q + 1) / (2 * t_k)",
    "sum(min(i + 1, t_k) for i in range(t_q)) / (t_q * t_k)",
    "sum(max(i + 1 + t_k - t_q, 0) for i in range(t_q)) / (t_q * t_k)",
)
PROJECTED = ("(2 * t_q + 2 * t_k)", "4 * t_q", "3 * t_q")  # tokens, counted once for each of the projections
EXACT = "batch * num_heads * t_q * (t_k * (2 * d_head - 1) + d_head * (2 * t_k - 1))"
EXACT_TWICE = "products * batch * num_heads * t_q * t_k * (2 * d_head - 1)"
PRODUCTS = "products * 2 * batch * num_heads * t_q * t_k * d_head"


def projections(tokens: str):
    """Counted before causal halves, and after."""
    more = f"2 * batch * {tokens} * (num_heads * d_head) ** 2"
    return (
        patch("t_k * d_head", f"t_k * d_head + {more}"),
        patch("return total // 2 if causal else total", f"return (total // 2 if causal else total) + {more}"),
    )


def for_each_score(operations: int):
    """So many operations for each score, counted besides the products."""
    return patch("t_k * d_head", f"t_k * d_head + {operations} * batch * num_heads * t_q * t_k")


@exercise(points=2, minutes=6, difficulty=1, result_type="number", rtol=1e-6, atol=0.0)
class attention_flops:
    """Count the floating-point operations of attention's two matrix products."""

    def cases(rng):
        def case(key, title, *sizes, **kwargs):
            return Case(key, title, sizes, kwargs, names=("batch", "num_heads", "t_q", "t_k", "d_head"))

        yield case("table", "the three tokens of lesson 01", 1, 1, 3, 3, 2)
        yield case("table, causal", "the three tokens, causal", 1, 1, 3, 3, 2, causal=True)
        yield case("heads", "a batch of two, three heads, four queries, five keys", 2, 3, 4, 5, 6)
        yield case("heads, causal", "the same, causal", 2, 3, 4, 5, 6, causal=True)
        yield case("cross", "more queries than keys", 3, 2, 7, 4, 5, causal=False)
        yield case("step", "one query and a cache of nine keys", 2, 4, 1, 9, 8)
        yield case("odd", "odd sizes, causal", 3, 5, 7, 7, 9, causal=True)
        yield case("layer", "four heads on 64 tokens", 1, 4, 64, 64, 32)
        yield case("layer, causal", "four heads on 64 tokens, causal", 1, 4, 64, 64, 32, causal=True)
        drawn = [int(size) for size in rng.permutation(range(2, 9))[:5]]
        yield case("drawn", "sizes drawn at random", *drawn)
        yield case("drawn, causal", "sizes drawn at random, causal", *drawn[::-1], causal=True)
        yield case("seen-again", "a batch of two again, other sizes", 2, 3, 8, 3, 4)

    hints = (
        "For one score, how many numbers are multiplied, and how many added? How many scores are there?",
        "The product q kᵀ has T_q · T_k entries of d_head multiply-adds each, and weights · v takes as many. "
        "Each multiply-add counts 2, each head of each item of the batch does it all.",
        "total = ____ * batch * num_heads * ____ * ____ * d_head\nreturn total // ____ if causal else total",
    )

    mistakes = {
        "GP11": mistake(
            patch("products = 2", "products = 1"),
            patch("products * 2 * batch", "batch"),
            patch("products * 2 * batch", "batch", "// 2", "/ 2"),
            says="Half or three quarters of the operations are missing: count two matrix products, and in each a multiply and an add.",
            why="""There are T_q · T_k · d_head multiply-adds in each of the two products, and each of them counts 2: 4 in all. Where
            only one product was counted, or a multiply-add as one operation, half is missing; with both, three quarters are.""",
        ),
        "GP12": mistake(
            patch("num_heads * t_q", "t_q"),
            patch("batch * num_heads", "num_heads"),
            says="The batch or the number of heads is missing, perhaps in one term only: each head of each item of the batch counts.",
            why="""Each item of the batch is one attention of its own. In it each head has its own q, k and v, its own scores, and
            its own two products.""",
        ),
        "GP14": mistake(
            patch("t_q * t_k", "t_q * t_q"),
            patch("t_q * t_k", "t_k * t_k"),
            patch(PRODUCTS, "2 * batch * num_heads * t_q * d_head * (t_k + d_head)"),
            patch(PRODUCTS, "2 * batch * num_heads * t_q * t_k * (d_head + t_k)"),
            says="A size was squared; each of the two products takes T_q · T_k · d_head multiply-adds.",
            why="""Queries and keys may differ in number: one query meets a whole cache of keys. q (T_q, d_head) times kᵀ (d_head,
            T_k) and weights (T_q, T_k) times v (T_k, d_head): three sizes each, the same ones, of which the inner one is summed over.""",
        ),
        "GP17": mistake(
            patch(" // 2 if causal else total", ""),
            patch("if causal", "if not causal"),
            patch(" if causal else total", ""),
            patch("total // 2", "total * 3 // 4"),
            patch("// 2 if", "// 4 if"),
            says="causal changes nothing, has the opposite effect, or leaves another share: with it half of the operations should count, "
            "without it all.",
            why="""By convention a causal attention is counted as exactly half, whatever the numbers of queries and keys: a query
            sees the keys up to its own, and half of q kᵀ is left as well as half of weights · v. Without causal every score is
            computed. Where half comes back either way, the halving does not ask for causal, or a factor of 2 is missing in the product
            (a multiply-add counts 2, and there are two products) and causal changes nothing.""",
        ),
        "GP18": mistake(
            *(patch("// 2 if", f"* {share} if") for share in TRIANGLES),
            says="The triangle was counted with its diagonal; by convention exactly half should be counted.",
            why="""T (T + 1) / 2 of T² scores are visible. For the lengths that matter the 1 vanishes, and papers count half (Dao
            2023, FlashAttention-2, section 4.1).""",
        ),
        "GP19": mistake(
            *(way for tokens in PROJECTED for way in projections(tokens)),
            *(for_each_score(operations) for operations in (5, 1, 2, 3, 4, 6)),
            *(for_each_score(operations) + patch("// 2", "/ 2") for operations in (1, 5)),
            patch(
                "return total // 2 if causal else total",
                "total = total * 7 // 2\n    return total // 2 if causal else total",
            ),
            patch(
                "return total // 2 if causal else total",
                "total = total * 3\n    return total // 2 if causal else total",
            ),
            says="""More was counted than the two matrix products of attention, such as the projections, softmax or the backward pass;
            leave it out.""",
            why="""The backward pass has five products, so that benchmarks of both directions count 3.5 times as much. The projections
            cost 2 · d_model² each per token. They are linear in T and are counted elsewhere. A softmax takes 3, 5 or more for each score,
            by convention, and scale and mask one each. Compared with 4 · d_head for the products these are few.""",
        ),
        "GP66": mistake(
            patch(PRODUCTS, EXACT),
            patch(PRODUCTS, EXACT, "// 2", "/ 2"),
            patch(PRODUCTS, EXACT_TWICE),
            patch(PRODUCTS, EXACT_TWICE, "// 2", "/ 2"),
            says="For n products of numbers n − 1 additions were counted; by convention each multiply-add counts 2.",
            why="""To add n numbers takes n − 1 additions, so the count is exact. Hardware starts its sum at 0 and adds n times, and papers
            count 2 n.""",
        ),
    }
