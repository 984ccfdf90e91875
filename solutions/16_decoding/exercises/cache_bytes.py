"""The bytes of a cache: a product of seven numbers, whose factors are easily forgotten."""

from grader.course.declare import Case, exercise, holds, mistake, patch

WHOLE = "2 * num_layers * num_kv_heads * d_head * t * batch * bytes_per_number"


@exercise(
    points=1,
    minutes=5,
    difficulty=1,
    result_type="number",
    rtol=0,
    atol=0,
    dtype=("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
class cache_bytes:
    """Say how many bytes the keys and values of t tokens take in all layers of a model together."""

    def cases(rng):
        names = ("num_layers", "num_kv_heads", "d_head", "t")
        yield Case("small", "one layer, one head, three tokens", (1, 1, 2, 3), names=names)
        yield Case("default", "all sizes different, batch and bytes_per_number left out", (3, 5, 7, 11), names=names)
        yield Case("batch", "a batch of 13", (3, 5, 7, 11, 13), names=(*names, "batch"))
        yield Case("float32", "numbers of 4 bytes", (5, 3, 8, 19), {"bytes_per_number": 4}, names=names)
        yield Case(
            "both", "a batch of 5, numbers of 1 byte", (7, 2, 6, 9), {"batch": 5, "bytes_per_number": 1}, names=names
        )
        drawn = (int(n) for n in rng.integers(2, 90, size=4))
        yield Case("random", "sizes drawn at random", tuple(drawn), {"batch": int(rng.integers(2, 9))}, names=names)
        yield Case(
            "large", "a model of 70 billion numbers, 100,000 tokens", (80, 8, 128, 100_000), {"batch": 16}, names=names
        )
        yield Case(
            "odd",
            "more than 2⁵³ bytes, in odd numbers",
            (3**10, 3**9, 3**9, 3**8),
            {"bytes_per_number": 1},
            names=names,
        )

    @holds("13 texts take 13 times the bytes of one", cases=("default", "batch"))
    def linear(case, parts, other, more):
        one, many = int(parts["result"]), int(more["result"])
        return None if many == 13 * one else f"a batch of 13 takes {many} bytes, and one text {one}."

    hints = (
        "Which two tensors does a new token need, in each layer, from every earlier token?",
        "A key is d_head numbers, one for each KV head, each layer and each token. A value is as large.",
        "return 2 * num_layers * ____ * d_head * ____ * batch * ____",
    )

    mistakes = {
        "CB1": mistake(
            patch("2 * num_layers", "num_layers"),
            patch("2 * num_layers", "3 * num_layers"),
            says="Keys and values should be counted, two tensors: one of them is missing, or queries were counted as well.",
            why="""The scores need every earlier key, and the weighted sum every earlier value. A query is asked once, by its own token;
            no later token reads it.""",
        ),
        "CB2": mistake(
            patch("num_layers * ", ""),
            patch(" * num_kv_heads", ""),
            patch(" * batch", ""),
            says="A factor is missing: each layer, each KV head and each text of the batch has keys and values of its own.",
            why="""Each layer projects its own input, so nothing of layer 1's keys can be had from layer 0's. A token has num_kv_heads
            keys of d_head numbers there. And different texts have different keys: serving 32 people at once takes 32 caches, and that is
            where memory goes.""",
        ),
        "CB7": mistake(
            patch("* t *", "* t * t *"),
            patch("* t *", "* (t * (t + 1) // 2) *"),
            says="The bytes grow with t², as the scores do; a cache should grow with t alone.",
            why="""Every token adds one key and one value to each head. The t × t scores are computed row by row and thrown away.""",
        ),
        "BY15": (patch(f"return {WHOLE}", f"return {WHOLE} / 1"), patch(f"return {WHOLE}", f"return {WHOLE} * 1.0")),
        "CB9": mistake(
            patch(f"return {WHOLE}", f"return ({WHOLE}) / 2 ** 20"),
            patch(f"return {WHOLE}", f"return ({WHOLE}) // 2 ** 20"),
            patch(f"return {WHOLE}", f"return ({WHOLE}) / 1000000000.0"),
            patch(f"return {WHOLE}", f"return ({WHOLE}) / 1000000.0"),
            patch(f"return {WHOLE}", f"return ({WHOLE}) / 1024 ** 3"),
            patch(f"return {WHOLE}", f"return 8 * {WHOLE}"),
            says="The result is in another unit, such as bits, MB or GiB; bytes are asked for.",
            why="""A function that is called cache_bytes gives bytes; the code that prints them chooses the unit. Widths of numbers are
            given in bits (float16), but bytes_per_number is in bytes already.""",
        ),
        "CB14": mistake(
            patch("* t *", "* (t + 1) *"),
            patch("* t *", "* (t - 1) *"),
            says="t + 1 or t − 1 tokens were counted; the cache holds t of them, each with a key and a value.",
            why="""The token that comes next has no key yet: it gets one when it is fed, and then it is among the t. The newest of them
            is, with a key and a value like all others.""",
        ),
    }
