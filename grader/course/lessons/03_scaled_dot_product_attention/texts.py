"""Lesson 03: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("AB8", "The code takes inputs of exactly three dimensions; they may have two, four or more.",
        "`B, T, d = x.shape`, or einsum letters without `...`, fit a batch of sentences and nothing else. The last two axes can be had "
        "without knowing the others: `x.shape[-2]` and `x.shape[-1]`."),
    MistakeText("AB12", "The scale uses the number of keys; it needs √d_k, the length of one key.",
        "`k.shape[-2]` counts keys, `k.shape[-1]` is d_k. The scale makes up for a sum over d_k products (lesson 04); how many keys "
        "there are has no part in it."),
    MistakeText("AB13", "The scale uses d_v, the length of a value; it needs √d_k, the length of a query and a key.",
        "Values take no part in the scores. With d_v = d_k the slip is invisible."),
    MistakeText("AB14", "The scale reads axis 1, which is d_k in a matrix alone; in a batch it is the number of queries.",
        "In a batch, `shape[1]` is T_q; with two leading dimensions it counts heads. d_k is the last axis of q and k, `q.shape[-1]`."),
    MistakeText("AB20", "Softmax is missing: the scaled scores themselves weight the values.",
        "Scores may be negative and sum to anything. Softmax turns each row into weights that sum to 1."),
    MistakeText("AB22", "The weights are transposed before they meet v: each row of the output is to be one query's average.",
        "Output row i is the sum over keys j of weights[i, j] · v[j]. Transposed, the sum runs over the queries. It runs without an "
        "error where T_q = T_k."),
    MistakeText("AB23", "The keys meet the queries untransposed: features are summed against tokens.",
        "The first product sums over d_k, the last axis of q and of k. `q @ k` sums over the last axis of q and the tokens of k; in "
        "letters, 'bqd,bdk->bqk' calls k's tokens d. Where T_k = d_k it runs and is wrong."),
    MistakeText("AB25", "The code takes a single matrix; there may be any number of leading dimensions before the last two.",
        "`T, d = x.shape`, or the einsum letters 'td,dk->tk', fit one sentence and nothing else. `x @ w` and `x.shape[-1]` take a "
        "batch, and a batch of heads, as they are; einsum does with `...` in front of the letters."),
    MistakeText("AB28", "The scale counts queries or sentences; it needs √d_k, the last axis of q.",
        "`q.shape[-2]` is the number of queries, and `len(q)` the length of the first axis: the queries of a matrix, the sentences of a "
        "batch. The scale makes up for a sum over d_k products (lesson 04)."),
    MistakeText("AB29", "The root was taken twice: the scores were divided by the fourth root of d_k.",
        "With d_k = 16 the scale is 4, and its root 2. Dividing both q and k by the fourth root is sound, since the product then "
        "carries it twice; dividing one of them, or the scores, is half of that."),
    MistakeText("AB30", "The exponentials were not divided by their sum: these weights do not sum to 1.",
        "exp makes every score positive; the division by the row's sum makes a distribution of it. Without it the output is no average "
        "of the values, and it grows with the number of keys."),
    MistakeText("AB31", "`scores /= …` stores fractions in an array of integers, which NumPy refuses; write scores = scores / …",
        "For whole-number q and k the product is an array of integers. `/=` would write the quotients into it, and NumPy raises a "
        "UFuncTypeError in place of cutting them off. `scores / scale` makes a new array of floats."),
)  # fmt: skip
