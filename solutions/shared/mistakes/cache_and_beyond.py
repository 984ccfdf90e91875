"""Additive attention, caches, shared heads, windows, online softmax, several devices."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "LG1",
        "Softmax ran over an axis of length 1; it should run over the axis of the keys.",
        "A product with v of shape (d_a, 1) leaves scores (B, T, 1), and `dim=-1` then means that last axis. Softmax of a "
        "single number s is exp(s) / exp(s) = 1, whatever s is. The context becomes the plain sum of the keys, and no gradient reaches the "
        "scores.\n\n"
        "Take keys 1, 2 and 3. A weighted average lies between 1 and 3. With every weight 1 the context is 6.",
        "column = energy @ v[:, None]\nweights = torch.softmax(column, dim=-1)[..., 0]",
        "column = energy @ v[:, None]\nweights = torch.softmax(column, dim=1)[..., 0]",
        "DEEP-PolyU/KEQA_WSDM19#2",
    ),
    MistakeText(
        "LG2",
        "tanh is missing, so the query's part cancels in softmax: the score should be v · tanh(query w_query + key w_key).",
        "v · (q' + k') is v · q' + v · k'. The first term is the same for all keys, and softmax ignores a number that is added to a whole "
        "row. So the weights do not depend on the query at all. tanh of the sum cannot be split into two terms like that.\n\n"
        "Take key parts 1 and 0, and the query's part c. Without tanh the scores [c + 1, c] give [0.7311, 0.2689] for every c. With "
        "tanh, c = 0 gives [0.6817, 0.3183] and c = 2 gives [0.5078, 0.4922].",
        "scores = (query @ w_query)[:, None] @ v + keys @ w_key @ v\nweights = torch.softmax(scores, dim=-1)",
        "scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v\nweights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "KV2",
        "The new token was rotated at position 0: add the length of the cache.",
        "A step with a cache receives one token, and `arange(T)` gives it position 0. The cached keys were rotated at their true "
        "positions, so all distances are wrong. The first step has an empty cache and is right; from the second on, cached and full "
        "results differ.\n\n"
        "Take 3 cached tokens, q = k = [1, 0] and an angle of 1 per position. The distance from position 3 to key 2 is 1, and the score "
        "cos(1) = 0.5403. From position 0 it is −2, and the score cos(2) = −0.4161.",
        "positions = torch.arange(t_new)",
        "positions = torch.arange(t_new) + cache_k.shape[-2]",
        "Blaizzy/mlx-vlm#1983",
    ),
    MistakeText(
        "KV3",
        "The cache grew along the wrong axis; new tokens should be joined along the token axis, −2.",
        "Keys in a cache have shape (B, H, T, d_head). Joined along axis 1, the first two tokens raise no error: they look like twice "
        "as many heads with one token each. From then on shapes or values are wrong.\n\n"
        "Take (1, 2, 1, 4) in the cache and (1, 2, 1, 4) new. Along axis −2 they make (1, 2, 2, 4): two heads, two tokens. Along axis 1 "
        "they make (1, 4, 1, 4).",
        "k = torch.cat([cache_k, new_k], dim=1)",
        "k = torch.cat([cache_k, new_k], dim=-2)",
    ),
    MistakeText(
        "KV4",
        "The causal mask was skipped because there is a cache; several new tokens need it all the same.",
        "A single new token may see everything, so the mask seems needless once a cache exists. A prompt fed in chunks brings several "
        "tokens at once, and within the chunk the earlier ones must not see the later ones. The full run and the chunked run then differ.\n\n"
        "Take 2 cached and 2 new tokens, equal scores and values 1, 2, 3, 4. The first new token should average 1, 2, 3, which is 2. "
        "Without the mask it averages all four, which is 2.5.",
        "mask = None if has_cache else torch.ones(t_q, t_k, dtype=torch.bool).tril()",
        "mask = torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)",
        "Mikyx-1/TinyLLM#18",
    ),
    MistakeText(
        "GQ1",
        "Query head h reads key/value head h mod num_kv_heads; neighboring query heads should share one, as `repeat_interleave` does it.",
        "With grouped queries several query heads use one key/value head, and each group is a run of neighbors. `repeat` lays the "
        "whole set down again and again, and so do `h % num_kv_heads` and a view with the groups' axis first: the groups are interleaved. Shapes agree, and some heads are right in both orders.\n\n"
        "Take 4 query heads and 2 key/value heads. The order should be 0, 0, 1, 1. Interleaved, it is 0, 1, 0, 1: the first and the last head "
        "are right.",
        "k = k.repeat(1, 2, 1, 1)",
        "k = k.repeat_interleave(2, dim=1)",
        "onnx/onnx#7274",
    ),
    MistakeText(
        "SW1",
        "The window is not `window` tokens long; it should be the token itself and window − 1 before it: key j is seen if p − j < window.",
        "p − j counts how far back key j lies from the query at position p: 0 is the token itself. `<=` counts w tokens before it and the "
        "token as well, and `< w - 1` leaves one out. Libraries differ in what they call the window, so a borrowed number needs a look at "
        "its definition. Half a window on each side suits an encoder; with a causal mask the other half would be the future.\n\n"
        "Take w = 2 and four causal tokens. The rows should allow 1, 2, 2 and 2 keys. With `<=` they allow 1, 2, 3 and 3.",
        "mask = (distance >= 0) & (distance <= window)",
        "mask = (distance >= 0) & (distance < window)",
        "huggingface/transformers#39408",
    ),
    MistakeText(
        "FL1",
        "The sum was rescaled to the new maximum and the accumulator was not; multiply it by exp(m_old − m_new), too.",
        "Online softmax keeps a maximum m, a sum l and an accumulator of weighted values, both relative to m. When a tile raises m, "
        "both must shrink by exp(m_old − m_new). With descending scores m never rises, and nothing shows it.\n\n"
        "Take score 0 with value 3, then score ln 2 with value 0: the answer is (1 · 3 + 2 · 0) / 3 = 1. Step two has the factor 1/2, "
        "so l = 0.5 + 1 = 1.5 and the accumulator is 1.5 + 0. Left unscaled it is 3, and 3 / 1.5 = 2.",
        "factor = math.exp(m_old - m_new)\nl = l * factor + p\nacc = acc + p * value\noutput = acc / l",
        "factor = math.exp(m_old - m_new)\nl = l * factor + p\nacc = acc * factor + p * value\noutput = acc / l",
    ),
    MistakeText(
        "FL2",
        "Neither the sum nor the accumulator was rescaled to the new maximum; multiply both by exp(m_old − m_new).",
        "Terms computed relative to the old maximum cannot be added to terms computed relative to the new one. Since both sums "
        "carry the same error, it cancels where all values are equal, so a test with v = 1 passes.\n\n"
        "Take score 0 with value 3, then score ln 2 with value 0; the answer is 1. Unscaled, l = 1 + 1 = 2 and the accumulator is 3 + 0 "
        "= 3, which gives 1.5. With both values 1 it gives 2 / 2 = 1, which is right.",
        "l = l + p\nacc = acc + p * value\noutput = acc / l",
        "factor = math.exp(m_old - m_new)\nl = l * factor + p\nacc = acc * factor + p * value\noutput = acc / l",
    ),
    MistakeText(
        "FL3",
        "The exponentials were taken relative to the tile's own maximum; use the running one: p = exp(s − m_new).",
        "The new terms must be relative to the same maximum as the sums they join. With ascending scores the tile's maximum is the "
        "running one and all is right; with descending scores the later tiles count too much.\n\n"
        "Take score ln 2 with value 0, then score 0 with value 3; the answer is 1. Relative to the running maximum the second p is 1/2: "
        "(0 + 1.5) / (1 + 0.5) = 1. Relative to its own it is 1: (0 + 3) / (1 + 1) = 1.5.",
        "p = np.exp(tile - tile.max())",
        "p = np.exp(tile - max(m_old, tile.max()))",
        "tile-ai/tilelang#1148",
    ),
    MistakeText(
        "FL4",
        "The maximum never falls below 0, so very negative scores underflow; a running maximum should start at −∞.",
        "A running maximum that starts at 0 never falls below 0. While the scores are moderate that is harmless, since any common shift "
        "cancels. If all of them lie far below 0, every exponential underflows and 0 / 0 is NaN.\n\n"
        "Take float32 scores [−200, −201]. Relative to 0 the exponentials are [0, 0]. Relative to their own maximum they are those of "
        "[0, −1], and the weights [0.7311, 0.2689].",
        "m = 0.0\nfor score in (-800.0, -801.0):\n    m = max(m, score)\np = math.exp(-800.0 - m)",
        "m = -math.inf\nfor score in (-800.0, -801.0):\n    m = max(m, score)\np = math.exp(-800.0 - m)",
    ),
    MistakeText(
        "FL5",
        "A tile or part in which nothing is visible gave −∞ − (−∞), which is NaN; guard against it.",
        "Where a tile is wholly masked and nothing was seen before, old and new maximum are both −∞, and the factor exp(m_old − m_new) "
        "is NaN. It stays in the sums for good, even if later tiles are visible. Subtracting 0 in place of −∞ repairs it.\n\n"
        "Take m = −∞ and a score of −∞. Unguarded, exp(−∞ − (−∞)) is NaN. With 0 in its place, exp(−∞ − 0) is 0: the hidden key adds "
        "nothing.",
        "p = np.exp(hidden - hidden.max())",
        "m = hidden.max()\np = np.exp(hidden - (0.0 if m == -np.inf else m))",
        "carlushuang/gcnasm#21",
    ),
    MistakeText(
        "TP1",
        "The bias was added on every rank; add it once, after the all-reduce.",
        "A layer that is split over its inputs gives each rank a partial product, and the all-reduce adds them up. A bias added before "
        "is added once per rank. With one rank nothing shows it; with R the result is off by (R − 1) · bias.\n\n"
        "Take two ranks with partial products 3 and 4, and a bias of 1. The answer is 3 + 4 + 1 = 8. With the bias on each rank it is 4 "
        "+ 5 = 9.",
        "output = sum(x @ w + bias for x, w in shards)",
        "output = sum(x @ w for x, w in shards) + bias",
        "Wenyueh/MinivLLM#80",
    ),
)
