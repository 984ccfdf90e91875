"""Scores and their scale, the roles of query and key, and the projections that make them."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "SD1",
        "The scores are too large by a factor of √d_k: divide them by √d_k.",
        "A dot product adds up d_k products, so its spread grows with √d_k. Unscaled, the scores lie far apart and softmax gives "
        "nearly everything to one key; little gradient is left for the others. The weights still sum to 1, and with equal scores "
        "nothing shows.\n\n"
        "Take d_k = 4, the query [1, 1, 1, 1], and keys [1, 1, 1, 1] and [0, 0, 0, 0]. The scores [4, 0] give [0.9820, 0.0180]. Divided "
        "by 2 they are [2, 0] and give [0.8808, 0.1192].",
        "scores = q @ k.swapaxes(-1, -2)",
        "scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])",
    ),
    MistakeText(
        "SD2",
        "The scores were divided by d_k; divide by √d_k: the root is missing, or the scale was applied twice.",
        "√d_k · √d_k is d_k, so two slips look alike: a forgotten root, or q scaled first and the scores once more. The weights come "
        "out too even. For d_k = 1 nothing differs.\n\n"
        "Take d_k = 4 and dot products [4, 0]. Divided by √4 = 2 they are [2, 0], with weights [0.8808, 0.1192]. Divided by 4 they are "
        "[1, 0], with weights [0.7311, 0.2689].",
        "scores = q @ k.swapaxes(-1, -2) / q.shape[-1]",
        "scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])",
    ),
    MistakeText(
        "SD3",
        "The scores were divided by √d_model, from the model's width; divide by √d_k, where d_k is the width of one query.",
        "The scale makes up for a sum over d_k products, and d_k need not be d_model: one head may have any width, and each of several "
        "has d_k = d_head = d_model / num_heads. With d_k below d_model the weights come out too even, above it too sharp. Where the "
        "two are equal, the result is right by chance, so a test with such sizes cannot see the slip.\n\n"
        "Take d_model = 16 and four heads, so d_head = 4. A dot product of 4 is scaled to 4 / √4 = 2. With the model's width it becomes "
        "4 / √16 = 1.",
        "scores = q @ k.mT / math.sqrt(d_model)",
        "scores = q @ k.mT / math.sqrt(q.shape[-1])",
        "omihub777/ViT-CIFAR#11",
    ),
    MistakeText(
        "SD4",
        "The scores were divided by the root of the number of heads; divide by √d_head, from the width of one head.",
        "`q.shape` of a split tensor is (B, num_heads, T, d_head), and the slip is to read the wrong entry of it, or to divide by "
        "`num_heads ** 0.5`. How many heads there are does not enter a single dot product. Where num_heads equals d_head the numbers "
        "are right by chance.\n\n"
        "Take four heads of width 16. A dot product of 8 is scaled to 8 / √16 = 2. With the number of heads it becomes 8 / √4 = 4.",
        "scores = q @ k.mT / math.sqrt(num_heads)",
        "scores = q @ k.mT / math.sqrt(q.shape[-1])",
        "tenstorrent/tt-metal#56789",
    ),
    MistakeText(
        "SD5",
        "The scores were multiplied by √d_k; divide by it.",
        "A scale kept in a variable hides its direction: multiply by `d_k ** -0.5`, or divide by `d_k ** 0.5`. Multiplied the "
        "wrong way, the scores are d_k times too large, and softmax becomes nearly the hard look-up.\n\n"
        "Take d_k = 4 and dot products [4, 0]. Divided by 2 they are [2, 0], with weights [0.8808, 0.1192]. Multiplied by 2 they are "
        "[8, 0], with weights [0.9997, 0.0003].",
        "scale = q.shape[-1] ** 0.5\nscores = q @ k.swapaxes(-1, -2) * scale",
        "scale = q.shape[-1] ** -0.5\nscores = q @ k.swapaxes(-1, -2) * scale",
        "esceptico/perceiver-io#9",
    ),
    MistakeText(
        "SD6",
        "The scaling came after softmax; divide the scores before it.",
        "Divided after softmax, every row of weights sums to 1/√d_k, and the output shrinks by the same factor. The weights stay as "
        "sharp as without any scale. The formula softmax(QKᵀ/√d_k)V is easily read with the bracket in another place.\n\n"
        "Take d_k = 4 and dot products [4, 0]. Scaled first, the weights are [0.8808, 0.1192]. Scaled last, they are [0.9820, 0.0180] / "
        "2 = [0.4910, 0.0090], which sums to 0.5.",
        "weights = softmax(q @ k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])",
        "weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))",
    ),
    MistakeText(
        "SD7",
        "The additive bias was scaled with the scores; divide the dot products alone, then add the bias.",
        "A bias of 0 and −∞ is the same after any division, so a mask in this form hides the slip. A finite bias, such as a penalty on "
        "distance, shrinks by √d_k.\n\n"
        "Take d_k = 4, a dot product of 4 and a bias of −2. Scaled first, the score is 4/2 − 2 = 0. With both in the bracket it is (4 − "
        "2)/2 = 1.",
        "scores = (q @ k.mT + bias) / math.sqrt(q.shape[-1])",
        "scores = q @ k.mT / math.sqrt(q.shape[-1]) + bias",
        "tenstorrent/tt-metal#56406",
    ),
    MistakeText(
        "SD8",
        "Queries and keys have changed roles; row i of the scores and of the weights should belong to query i.",
        "k qᵀ is the transpose of q kᵀ: one row per key, and softmax normalizes over the queries. Or right weights are transposed "
        "before the product with v, or `k, q, v = …` unpacks in the wrong order. Where T_q and T_k differ, the shapes show it; "
        "where they agree no error is raised, and where the exchanged matrix is symmetric even the numbers are right.\n\n"
        "Take the three-token table: Q = [[1, 0], [0, 1], [1, 1]], K = [[1, 1], [1, 0], [0, 1]]. Query 0 meets the keys with scores [1, "
        "1, 0], the first row of Q Kᵀ. The first row of K Qᵀ is [1, 1, 2]: key 0 against all queries.",
        "scores = k @ q.swapaxes(-1, -2)",
        "scores = q @ k.swapaxes(-1, -2)",
    ),
    MistakeText(
        "PJ1",
        "A transpose is missing: `nn.Linear` stores wᵀ, of shape (d_out, d_in), and computes x @ weightᵀ.",
        "`nn.Linear(d_in, d_out)` stores its weight as (d_out, d_in). A matrix made for x @ w has shape (d_in, d_out). For d_in ≠ d_out "
        "the shapes disagree, at once or on the first call; a square w is taken without any error, and every result is that of wᵀ.\n\n"
        "Take x = [1, 0] and w = [[1, 2], [3, 4]]. We want x @ w = [1, 2]. A layer that stores w gives x @ wᵀ = [1, 3], and so "
        "does `x @ layer.weight` where the layer stores wᵀ.",
        "layer.weight = nn.Parameter(w.clone())",
        "layer.weight = nn.Parameter(w.T.clone())",
        "skyzh/tiny-llm#60",
    ),
    MistakeText(
        "PJ2",
        "A layer has a bias and should have none; pass `bias=False`.",
        "`nn.Linear` has a bias by default, drawn at random between −1/√d_in and 1/√d_in. With the weights of a reference "
        "loaded into it, its outputs are off by the same vector for every token, which is easily overlooked in a plot.\n\n"
        "Take a layer with weight 2 and bias 0.3. Then f(1) = 2.3 where x @ w is 2, and f(0) = 0.3 where it is 0.",
        "layer = nn.Linear(d_model, d_k)",
        "layer = nn.Linear(d_model, d_k, bias=False)",
    ),
    MistakeText(
        "PJ3",
        "The fused numbers, stored as [q, k, v], were read as q, k, v per head; cut them into three first, then into heads.",
        "A fused projection gives 3 · d_model numbers per token: first all of q, then all of k, then all of v. A view to (…, num_heads, "
        "3 · d_head) cuts per head first. The shapes are the same, and a model trained from scratch even learns; loaded weights give "
        "nonsense.\n\n"
        "Take d_model = 4 and two heads of width 2. The twelve numbers are q at 0–3, k at 4–7, v at 8–11. Per head, head 0 receives "
        "numbers 0–5, and its key is [2, 3]: the query of head 1. Its true key is [4, 5].",
        "per_head = qkv.view(B, T, num_heads, 3 * d_head)\nq, k, v = per_head.chunk(3, dim=-1)",
        "q, k, v = qkv.chunk(3, dim=-1)\nq, k, v = (part.view(B, T, num_heads, d_head) for part in (q, k, v))",
        "vllm-project/vllm#42803",
    ),
)
