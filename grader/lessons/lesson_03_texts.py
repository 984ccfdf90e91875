"""What is said of the mistakes that lesson 03 alone knows: projections, axes, letters."""

from __future__ import annotations

from grader.model import MistakeText

TEXTS = (
    MistakeText(
        "AB1", "Weights enter transposed, be it by `w.T`, `np.inner` or letters of einsum; right of x they fit as they are.",
        "The last axis of x, d_model, meets the first axis of the weights. `nn.Linear` stores its weight the other "
        "way round, (d_out, d_in), and so computes x @ weightᵀ (lesson 05). With d_k = d_model both forms run, and "
        "only one is right.",
        "q = x @ w_q.T", "q = x @ w_q"),
    MistakeText(
        "AB2", "The weights of queries and keys are exchanged: q comes from w_k, and k from w_q.",
        "Queries and keys have the same shape, so nothing fails. The scores come out transposed: who asks and who "
        "answers have changed places.",
        "q, k = x @ w_k, x @ w_q", "q, k = x @ w_q, x @ w_k"),
    MistakeText(
        "AB3", "The keys are made with w_q; they have a weight matrix of their own, w_k.",
        "A copied line kept its weight. With k equal to q the scores are symmetric: what the first token is to the "
        "second, the second is to the first. Separate weights let 'fox' look at 'brown' without the reverse.",
        "k = x @ w_q", "k = x @ w_k"),
    MistakeText(
        "AB4", "The values are made with w_k; they have a weight matrix of their own, w_v.",
        "A copied line kept its weight. Keys say where to look, values say what is passed on, and d_v may differ "
        "from d_k.",
        "v = x @ w_k", "v = x @ w_v"),
    MistakeText(
        "AB5", "The projections are chained: k is made from q, and v from k; all three are made from x.",
        "Each projection reads the token's own embedding x. Chained products run only where d_k equals d_model, and "
        "give other numbers there.",
        "k = q @ w_k", "k = x @ w_k"),
    MistakeText(
        "AB6", "The leading dimensions of x were flattened and not restored.",
        "`x.reshape(-1, d_model)` lays all tokens of all sentences in one long matrix. The product is right, row by "
        "row, and the result still needs its leading dimensions back. `x @ w_q` keeps them without any reshape.",
        "x.reshape(-1, d_model) @ w_q", "x @ w_q"),
    MistakeText(
        "AB7", "The queries are divided by √d_k here already; the projection is x @ w_q alone.",
        "Scaling q in place of the scores is sound, and it happens inside attention. Done in the projection it is "
        "done twice as soon as attention scales, too.",
        "q = x @ w_q / math.sqrt(d_k)", "q = x @ w_q"),
    MistakeText(
        "AB8", "The code takes inputs of exactly three dimensions; they may have two, four or more.",
        "`B, T, d = x.shape`, or einsum letters without `...`, fit a batch of sentences and nothing else. The last "
        "two axes can be had without knowing the others: `x.shape[-2]` and `x.shape[-1]`.",
        "B, T, d_k = q.shape", "d_k = q.shape[-1]"),
    MistakeText(
        "AB9", "The values are returned before the keys; (q, k, v) was asked for.",
        "Whoever unpacks the result takes the second array for the keys. With d_v = d_k no shape tells.",
        "return q, v, k", "return q, k, v"),
    MistakeText(
        "AB10", "Softmax runs along axis 1, counted from the front: the keys are the last axis, -1.",
        "Axis 1 of the scores is the keys in a matrix, the queries in a batch, the heads with two leading "
        "dimensions. Counted from the end, the keys are always axis -1.",
        "exps.sum(axis=1, keepdims=True)", "exps.sum(axis=-1, keepdims=True)"),
    MistakeText(
        "AB11", "Softmax runs along axis 2, which is the keys for three dimensions only; count from the end: axis -1.",
        "Axis 2 of a matrix is an error, and with two leading dimensions it is the queries.",
        "exps.sum(axis=2, keepdims=True)", "exps.sum(axis=-1, keepdims=True)"),
    MistakeText(
        "AB12", "The scale uses the number of keys; it needs √d_k, the length of one key.",
        "`k.shape[-2]` counts keys, `k.shape[-1]` is d_k. The scale makes up for a sum over d_k products (lesson "
        "04); how many keys there are has no part in it.",
        "math.sqrt(k.shape[-2])", "math.sqrt(k.shape[-1])"),
    MistakeText(
        "AB13", "The scale uses d_v, the length of a value; it needs √d_k, the length of a query and a key.",
        "Values take no part in the scores. With d_v = d_k the slip is invisible.",
        "math.sqrt(v.shape[-1])", "math.sqrt(k.shape[-1])"),
    MistakeText(
        "AB14", "The scale reads axis 1, which is d_k in a matrix alone; in a batch it is the number of queries.",
        "In a batch, `shape[1]` is T_q; with two leading dimensions it counts heads. d_k is the last axis of q and "
        "k, `q.shape[-1]`.",
        "math.sqrt(q.shape[1])", "math.sqrt(q.shape[-1])"),
    MistakeText(
        "AB15", "The keys were reshaped where their axes were to be swapped: numbers of different tokens are mixed.",
        "`reshape` reads the numbers in their old order into a new shape: the first column of the result holds parts "
        "of several keys. `swapaxes(-1, -2)` turns each key into a column. Both have shape (d_k, T_k).",
        "k.reshape(B, d_k, T_k)", "k.swapaxes(-1, -2)"),
    MistakeText(
        "AB16", "`k.T` reverses all axes, the batch axis too; only the last two are to be swapped.",
        "A (2, 3, 4) array becomes (4, 3, 2), and the product fails. A (4, 4, 4) array becomes (4, 4, 4), and the "
        "product is wrong without a word. `k.swapaxes(-1, -2)` or `k.mT` leaves the batch where it is.",
        "q @ k.T", "q @ k.swapaxes(-1, -2)", "flrngel/Self-Attentive-tensorflow#3"),
    MistakeText(
        "AB17", "`transpose(0, 2, 1)` names three axes, so a matrix or an array with two leading dimensions fails.",
        "It is right for one batch axis. `swapaxes(-1, -2)` says the same for any number of leading dimensions.",
        "k.transpose(0, 2, 1)", "k.swapaxes(-1, -2)"),
    MistakeText(
        "AB18", "The weights are returned before the output; (output, weights) was asked for.",
        "Where T_k equals d_v no shape tells them apart, and a caller would take weights for output.",
        "return weights, output", "return output, weights"),
    MistakeText(
        "AB19", "The scores are returned in place of the weights: softmax was applied for the output alone.",
        "Weights are what softmax gives: none is negative and each row sums to 1.",
        "return softmax(scores) @ v, scores", "weights = softmax(scores)\nreturn weights @ v, weights"),
    MistakeText(
        "AB20", "Softmax is missing: the scaled scores themselves weight the values.",
        "Scores may be negative and sum to anything. Softmax turns each row into weights that sum to 1.",
        "output = scores @ v", "output = softmax(scores) @ v"),
    MistakeText(
        "AB21", "The output was stored in an array of integers, which cuts off all decimals.",
        "`np.zeros_like(v)` takes the type of v. For whole-number inputs the averages are cut to whole numbers when "
        "they are stored. `np.zeros(shape)` holds floats.",
        "output = np.zeros_like(v)", "output = np.zeros(v.shape)"),
    MistakeText(
        "AB22", "The weights are transposed before they meet v: each row of the output is to be one query's average.",
        "Output row i is the sum over keys j of weights[i, j] · v[j]. Transposed, the sum runs over the queries. It "
        "runs without an error where T_q = T_k.",
        "weights.swapaxes(-1, -2) @ v", "weights @ v"),
    MistakeText(
        "AB23", "The keys meet the queries untransposed: features are summed against tokens.",
        "The first product sums over d_k, the last axis of q and of k. `q @ k` sums over the last axis of q and the "
        "tokens of k; in letters, 'bqd,bdk->bqk' calls k's tokens d. Where T_k = d_k it runs and is wrong.",
        'q @ k, or np.einsum("bqd,bdk->bqk", q, k)', 'q @ k.swapaxes(-1, -2), or np.einsum("bqd,bkd->bqk", q, k)'),
    MistakeText(
        "AB24", "The letter b is missing from the scores: summed over the batch, they give each item the same weights.",
        "einsum sums every letter that does not stand right of the arrow. An axis that is to stay needs its letter "
        "there.",
        'np.einsum("bqd,bkd->qk", q, k)', 'np.einsum("bqd,bkd->bqk", q, k)'),
    MistakeText(
        "AB25", "The code takes a single matrix; there may be any number of leading dimensions before the last two.",
        "`T, d = x.shape`, or the einsum letters 'td,dk->tk', fit one sentence and nothing else. `x @ w` and `x.shape[-1]` take "
        "a batch, and a batch of heads, as they are; einsum does with `...` in front of the letters.",
        "T, d_k = q.shape", "d_k = q.shape[-1]"),
    MistakeText(
        "AB26", "The joint product was split into three equal parts; q and k have d_k columns each, v has d_v.",
        "One product with [w_q, w_k, w_v] side by side is sound. `np.split(..., 3)` cuts thirds, which fails or cuts in the wrong "
        "place where d_v differs from d_k; a list of places cuts where each part ends.",
        "np.split(product, 3, axis=-1)", "np.split(product, [d_k, 2 * d_k], axis=-1)"),
    MistakeText(
        "AB27", "All three projections use w_q; keys and values have weight matrices of their own.",
        "Lines that were copied kept their weight. With q = k = v each token looks mostly at itself, and d_v could not "
        "differ from d_k.",
        "q, k, v = x @ w_q, x @ w_q, x @ w_q", "q, k, v = x @ w_q, x @ w_k, x @ w_v"),
    MistakeText(
        "AB28", "The scale counts queries or sentences; it needs √d_k, the last axis of q.",
        "`q.shape[-2]` is the number of queries, and `len(q)` the length of the first axis: the queries of a matrix, the sentences of "
        "a batch. The scale makes up for a sum over d_k products (lesson 04).",
        "math.sqrt(len(q))", "math.sqrt(q.shape[-1])"),
    MistakeText(
        "AB29", "The root was taken twice: the scores were divided by the fourth root of d_k.",
        "With d_k = 16 the scale is 4, and its root 2. Dividing both q and k by the fourth root is sound, since the product then "
        "carries it twice; dividing one of them, or the scores, is half of that.",
        "scores / math.sqrt(math.sqrt(d_k))", "scores / math.sqrt(d_k)"),
    MistakeText(
        "AB30", "The exponentials were not divided by their sum: these weights do not sum to 1.",
        "exp makes every score positive; the division by the row's sum makes a distribution of it. Without it the output is no "
        "average of the values, and it grows with the number of keys.",
        "weights = np.exp(scores - scores.max(axis=-1, keepdims=True))", "weights = exps / exps.sum(axis=-1, keepdims=True)"),
    MistakeText(
        "AB31", "`scores /= …` stores fractions in an array of integers, which NumPy refuses; write scores = scores / …",
        "For whole-number q and k the product is an array of integers. `/=` would write the quotients into it, and NumPy raises a "
        "UFuncTypeError in place of cutting them off. `scores / scale` makes a new array of floats.",
        "scores /= math.sqrt(d_k)", "scores = scores / math.sqrt(d_k)"),
    MistakeText(
        "AB32", "A number is added to the products; the projection is x @ w alone, and zeros are to give zeros.",
        "The projections of attention are given here by their weights alone, without a bias. A number added to q and k shifts every "
        "score by an amount that differs from token to token.",
        "q = x @ w_q + 1", "q = x @ w_q"),
)  # fmt: skip
