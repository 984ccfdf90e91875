"""What is said of the mistakes that only lesson 10 knows."""

from __future__ import annotations

from grader.model import MistakeText

TEXTS = (
    MistakeText(
        "AL1",
        "The query's part stands outside the tanh of the keys, where softmax cancels it.",
        "v · (tanh(k') + q') is v · tanh(k') + v · q'. The second term is the same for all keys of a sentence, and "
        "softmax takes out what all its scores share: every query gets the same weights. A tanh of the query alone "
        "changes nothing about that. Query and key must meet inside one tanh.",
        "energy = torch.tanh(keys @ w_key) + (query @ w_query)[:, None]",
        "energy = torch.tanh(keys @ w_key + (query @ w_query)[:, None])",
    ),
    MistakeText(
        "AL2",
        "Query and key were multiplied inside tanh; additive attention adds them.",
        "The name says it: the two projections are added, and v makes one number of the result. Multiplying is the "
        "other family, that of the dot product.",
        "energy = torch.tanh((query @ w_query)[:, None] * (keys @ w_key))",
        "energy = torch.tanh((query @ w_query)[:, None] + (keys @ w_key))",
    ),
    MistakeText(
        "AL3",
        "v is not used: the d_a numbers behind tanh were summed as if each counted the same.",
        "v says how much each of the d_a units counts, and with which sign. Without it a unit can never speak "
        "against a key, and v gets no gradient.",
        "scores = energy.sum(dim=-1)",
        "scores = energy @ v",
    ),
    MistakeText(
        "AL4",
        "The scores were divided or multiplied by a width or its root; these two scores are used as they are.",
        "The factor 1/√d_k belongs to scaled dot-product attention (Vaswani et al. 2017). Bahdanau's score is bounded "
        "by the sum of |v|, and Luong's w can learn any scale by itself. Both papers leave it out.",
        "weights = torch.softmax(scores / math.sqrt(w.shape[0]), dim=-1)",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "AL5",
        "A weight matrix was used transposed: here a projection is x @ w, with w of shape (width in, width out).",
        "`nn.Linear` and `F.linear` compute x @ wᵀ; these weights are stored the other way round. With square "
        "matrices nothing raises, and the numbers are wrong.",
        "projected = query @ w_query.T",
        "projected = query @ w_query",
    ),
    MistakeText(
        "AL6",
        "w is not used: this is the plain dot product of query and keys.",
        "Luong et al. call it the 'dot' score. It needs queries and keys of one width and of one meaning; the "
        "'general' score has w between them, which translates one into the other.",
        "scores = (keys @ query[:, :, None])[..., 0]",
        "scores = (keys @ (query @ w)[:, :, None])[..., 0]",
    ),
    MistakeText(
        "AL7",
        "The context was made from the projected keys; it is a weighted sum of the keys themselves.",
        "The projection serves the comparison alone. What the decoder receives has the width of the encoder's states, "
        "d_h. (Values with a projection of their own came later, with the Transformer.)",
        "context = (weights[:, None] @ (keys @ w_key))[:, 0]",
        "context = (weights[:, None] @ keys)[:, 0]",
    ),
    MistakeText(
        "AL8",
        "The scores are used as weights: softmax is missing.",
        "Scores have any sign and any sum. A context made with them grows with the length of the sentence.",
        "context = (scores[:, None] @ keys)[:, 0]",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "AL9",
        "A sigmoid judges each key by itself; softmax lets the keys compete, so that the weights sum to 1.",
        "With sigmoids three good keys get a weight near 1 each, and the context is their sum, not their average.",
        "weights = torch.sigmoid(scores)",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "AL10",
        "Another function than tanh stands between the projections and v.",
        "The contract's score is v · tanh(…), as in Bahdanau et al. 2015, appendix A.1.2. A ReLU or a sigmoid gives "
        "an attention that can be trained, but not these numbers.",
        "energy = torch.relu(projected)",
        "energy = torch.tanh(projected)",
    ),
    MistakeText(
        "AL11",
        "The context was averaged over the keys a second time: it is T times too small.",
        "The weights sum to 1, so the weighted *sum* is the average already. A `mean` divides by T once more.",
        "context = (weights[..., None] * keys).mean(dim=1)",
        "context = (weights[..., None] * keys).sum(dim=1)",
    ),
    MistakeText(
        "AL12",
        "The weighted keys were summed over another axis than that of the keys.",
        "`weights[..., None] * keys` has the shape (B, T, d_h). The keys lie along axis 1; the sum over it leaves "
        "(B, d_h).",
        "context = (weights[..., None] * keys).sum(dim=-1)",
        "context = (weights[..., None] * keys).sum(dim=1)",
    ),
    MistakeText(
        "AL13",
        "The batch axis of the query was lined up with the keys: key j meets the query of item j.",
        "query @ w_query has the shape (B, d_a), keys @ w_key (B, T, d_a). Broadcasting lines axes up from the right, so "
        "B falls on T. Where the two differ torch raises; where they are equal nothing warns. A new axis in the "
        "middle, (B, 1, d_a), puts it right.",
        "energy = torch.tanh(query @ w_query + keys @ w_key)",
        "energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)",
    ),
    MistakeText(
        "AL14",
        "tanh is taken of the finished score; it belongs before the product with v.",
        "v · tanh(…) weighs d_a bounded numbers. tanh(v · …) is one number between −1 and 1, and softmax of such "
        "scores never gets sharp: with three keys no weight exceeds 0.79.",
        "scores = torch.tanh((q_part[:, None] + k_part) @ v)",
        "scores = torch.tanh(q_part[:, None] + k_part) @ v",
    ),
    MistakeText(
        "AL15",
        "The score leaves the query out: the weights depend on the keys alone.",
        "Some keys may be worth more than others whoever asks, but then every step of the decoder looks at the "
        "same place. The query must enter the score.",
        "energy = torch.tanh(keys @ w_key)",
        "energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)",
    ),
    MistakeText(
        "AL16",
        "A tanh stands in the score; Luong's 'general' score is a plain product, query w key.",
        "tanh belongs to Bahdanau's score. Here it would press every score between −1 and 1, and softmax could not "
        "choose one key.",
        "scores = torch.tanh(projected)",
        "scores = projected",
    ),
    MistakeText(
        "AL17",
        "Something other than the largest score of its row was subtracted before exp: far above it, exp overflows.",
        "Softmax is the same whatever is subtracted from a whole row, so moderate scores show nothing. Only with the largest "
        "subtracted is every exponent at most 0. With the mean, the scores −9000, 9000 and 0 stay as they are, exp(9000) is "
        "inf, and inf / inf is NaN.",
        "e = torch.exp(scores - scores.mean(dim=-1, keepdim=True))",
        "e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))",
    ),
    MistakeText(
        "AL18",
        "An input was taken out of the graph, by `detach()`, `.data` or `torch.no_grad()`: no gradient reaches it.",
        "The numbers are right, and nothing behind that input can learn: a decoder whose query is detached never finds out "
        "which question it should have asked.",
        "projected = query.detach() @ w_query",
        "projected = query @ w_query",
    ),
    MistakeText(
        "AL19",
        "The context is right, and the scores were returned beside it in place of the weights.",
        "Scores have any sign and any sum; a picture of an alignment is made of the weights, what softmax makes of the scores.",
        "returned = context, scores",
        "returned = context, weights",
    ),
    MistakeText(
        "AL20",
        "log_softmax gives the logarithms of the weights; the weights themselves were asked for.",
        "Logarithms of weights are what a loss wants (lesson 02). They are 0 or negative, and a sum of keys weighed with them is no "
        "average.",
        "weights = torch.log_softmax(scores, dim=-1)",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "AL21",
        "An axis of length 1 was left standing: the context is (B, d_h) and the weights are (B, T).",
        "The axis is a help for a product: (B, 1, T) times (B, T, d_h) gives (B, 1, d_h). Afterwards it goes, by `[:, 0]` or "
        "`.squeeze(1)`. A plain `.squeeze()` would take the batch axis, too, where B is 1.",
        "context = weights[:, None] @ keys",
        "context = (weights[:, None] @ keys)[:, 0]",
    ),
    MistakeText(
        "AL22",
        "The weights were divided by the root of a width: nothing is to be scaled here, and weights sum to 1.",
        "A scale belongs to the scores of scaled dot-product attention, before softmax, and to neither of these two scores. Divided "
        "afterwards, every row of weights sums to less than 1, and the context shrinks by the same factor.",
        "weights = torch.softmax(scores, dim=-1) / math.sqrt(keys.shape[-1])",
        "weights = torch.softmax(scores, dim=-1)",
    ),
    MistakeText(
        "AL23",
        "tanh is taken of the query's part alone: query and key must meet inside it.",
        "v · (tanh(q') + k') is v · tanh(q') + v · k'. The first term is the same for all keys of a sentence, and softmax takes out "
        "what all its scores share: every query gets the same weights. A bracket that closes too early is enough.",
        "energy = torch.tanh((query @ w_query)[:, None]) + keys @ w_key",
        "energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)",
    ),
)
