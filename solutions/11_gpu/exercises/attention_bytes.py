"""How many bytes attention reads and writes, in three kernels and in one."""

from grader.course.declare import Case, exercise, holds, mistake, patch

TABLE, VECTORS = "4 * t_q * t_k", "2 * t_q + 2 * t_k"
RETURN = "return batch * num_heads * (vectors * d_head + table) * bytes_per_number"


@exercise(
    points=3,
    minutes=10,
    difficulty=2,
    result_type="number",
    rtol=0,
    atol=0,
    dtype=("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
class attention_bytes:
    """Count the bytes that attention reads and writes, in three kernels or fused into one."""

    def cases(rng):
        def case(key, title, *sizes, **more):
            return Case(
                key,
                title,
                sizes,
                more,
                names=("batch", "num_heads", "t_q", "t_k", "d_head", "bytes_per_number")[: len(sizes)],
            )

        yield case("table", "the three tokens of lesson 01", 1, 1, 3, 3, 2)
        yield case("table, fused", "the three tokens, fused", 1, 1, 3, 3, 2, fused=True)
        yield case("heads", "a batch of two, three heads, four queries, seven keys", 2, 3, 4, 7, 5)
        yield case("heads, fused", "the same, fused", 2, 3, 4, 7, 5, fused=True)
        yield case("cross", "more queries than keys, float32", 3, 2, 9, 4, 5, bytes_per_number=4, fused=False)
        yield case("cross, fused", "more queries than keys, numbers of 1 byte, fused", 3, 2, 9, 4, 5, 1, fused=True)
        yield case("step", "one query and a cache of eleven keys", 2, 4, 1, 11, 8)
        yield case("step, fused", "one query and a cache, fused", 2, 4, 1, 11, 8, fused=True)
        yield case("seen-again", "a batch of two again, other sizes", 2, 3, 8, 5, 4, 4)
        drawn = [int(size) for size in rng.permutation(range(2, 9))[:5]]
        yield case("drawn", "sizes drawn at random, numbers of 8 bytes", *drawn, 8)
        yield case("drawn, fused", "sizes drawn at random, fused", *drawn[::-1], fused=True)
        yield case("odd", "more than 2⁵³ bytes, in odd numbers", 3**9, 3**7, 3**9, 3**8, 5, 1)

    @holds("fused, twice as many tokens take twice the bytes", cases=("heads, fused",))
    def linear(case, parts):
        batch, heads, t_q, t_k, d_head = case.args
        wanted = 2 * batch * heads * 2 * (t_q + t_k) * d_head
        return (
            None
            if int(parts["result"]) == wanted
            else f"{t_q} queries and {t_k} keys take {wanted} bytes, and here {int(parts['result'])}."
        )

    hints = (
        "Three kernels, each a program of its own: which tensors does the first one read, and what does it leave in memory for the second?",
        "Write down for each kernel what it reads and what it writes, in numbers: q and the output have t_q · d_head for each head and "
        "item, k and v have t_k · d_head, scores and weights t_q · t_k. What passes from kernel to kernel is written once and read once.",
        "vectors = ____ * t_q + ____ * t_k\ntable = 0 if fused else ____ * t_q * t_k\n"
        "return batch * num_heads * (vectors * d_head + table) * bytes_per_number",
    )

    mistakes = {
        "BY1": mistake(
            patch(TABLE, "2 * t_q * t_k"),
            patch(TABLE, "t_q * t_k"),
            patch(TABLE, "3 * t_q * t_k"),
            patch(TABLE, "8 * t_q * t_k"),
            patch(TABLE, "5 * t_q * t_k"),
            patch(RETURN, f"{RETURN} + (0 if fused else t_q * t_k)"),
            patch(RETURN, f"{RETURN} + (0 if fused else t_q * t_k * bytes_per_number)"),
            patch(RETURN, f"{RETURN} + (0 if fused else batch * num_heads * t_q * t_k)"),
            patch(RETURN, f"{RETURN} + (0 if fused else 4 * t_q * t_k)"),
            says="""The passes over the t_q × t_k matrices do not add up: scores and weights are each written once and read once,
            which is four.""",
            why="""The first kernel writes the scores, scaled and masked; softmax reads them and writes the weights, and the last
            kernel reads those: four passes. The score matrix is not only made. It goes to memory and comes back, twice: as scores and
            as weights. No mask of that size is read besides: a causal kernel knows the positions of its query and its key, and a
            comparison tells whether the key is hidden.""",
        ),
        "BY4": mistake(
            patch("0 if fused else 4 * t_q * t_k", "4 * t_q * t_k"),
            *(patch("0 if fused", f"{passes}t_q * t_k if fused") for passes in ("", "2 * ")),
            patch("if fused", "if not fused"),
            says="Fused, passes over a t_q × t_k matrix were counted; scores and weights reach memory in three kernels alone.",
            why="""That is the whole idea: the fused operator makes a tile of scores, uses it and throws it away, all in the chip's
            fast memory. Only q, k, v and the output are read or written. In three kernels scores and weights come on top.""",
        ),
        "BY6": mistake(
            patch(VECTORS, "t_q + 2 * t_k"),
            patch(VECTORS, "2 * t_q + t_k"),
            patch(VECTORS, "t_q + t_k if fused else 2 * t_q + 2 * t_k"),
            patch(VECTORS, "t_q + 2 * t_k if fused else 2 * t_q + 2 * t_k"),
            says="One of q, k, v and the output was left out: three are read once, and the output is written once, fused or not.",
            why="""q and the output have t_q rows each, k and v have t_k. Keys are read for the scores, values for the sum. What is
            written counts like what is read. The fused operator avoids scores and weights alone.""",
        ),
        "BY8": mistake(
            patch(VECTORS, "4 * t_q"),
            patch(VECTORS, "4 * t_k"),
            patch(VECTORS, "t_q + 3 * t_k"),
            says="A tensor was given the wrong number of rows: q and the output have t_q, k and v have t_k.",
            why="""Each query gets one blend of the values, however many of them there are, so the output has a row for each query.
            One query meets a whole cache of keys: then nearly all bytes are those of k and v.""",
        ),
        "GP12": (
            patch("num_heads * (", "("),
            patch("batch * num_heads", "num_heads"),
            patch(RETURN, "return batch * (num_heads * vectors * d_head + table) * bytes_per_number"),
        ),
        "PO3": (
            patch("* bytes_per_number", "* 2"),
            patch("* bytes_per_number", "* 4"),
            patch(" * bytes_per_number", ""),
        ),
        "BY15": (patch(RETURN, f"{RETURN} / 1"), patch(RETURN, f"{RETURN} * 1.0")),
        "BY22": mistake(
            patch(VECTORS, "2 * t_q + (2 * t_q * t_k if fused else 2 * t_k)"),
            patch(VECTORS, "2 * t_q + 2 * t_q * t_k"),
            says="Keys and values were counted once for every query; each of them should be counted once.",
            why="""Every query meets every key, but on the chip: a tile of keys serves many queries before it is thrown away. The
            task counts each tensor once.""",
        ),
    }
