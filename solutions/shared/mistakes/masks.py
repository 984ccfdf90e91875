"""Masks: what True means, where they enter, how they are filled, and how they line up."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "MK1",
        "Allowed and blocked were exchanged; here True should mean that attention is allowed.",
        "Both conventions exist. `F.scaled_dot_product_attention` allows where True, `nn.MultiheadAttention` blocks where True, and "
        "`masked_fill` fills where True. So `masked_fill(mask, …)` hides exactly what should be seen.\n\n"
        "Take a causal mask for three tokens, with rows that allow 1, 2 and 3 keys. Exchanged, the rows allow 2, 1 and 0: the first "
        "token sees only its future, and the last sees nothing.",
        "scores = scores.masked_fill(mask, -torch.inf)",
        "scores = scores.masked_fill(~mask, -torch.inf)",
        "rasbt/LLMs-from-scratch#1061",
    ),
    MistakeText(
        "MK2",
        "Hidden keys were removed after softmax had normalized; mask the scores before softmax.",
        "Softmax has already given the hidden keys their share. Setting it to 0 afterwards leaves the rows short: they sum to less than "
        "1, and the hidden scores still influence the others through the sum. The zeros themselves are in the right places, which makes "
        "a picture of the weights look right.\n\n"
        "Take three equal scores of which the last is hidden. Before softmax we get [0.50, 0.50, 0]. After it, [0.33, 0.33, 0], which "
        "sums to 0.67.",
        "weights = torch.softmax(scores, dim=-1) * mask",
        "weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)",
        "huggingface/pytorch-image-models#2236",
    ),
    MistakeText(
        "MK3",
        "Hidden scores were set to 0, or next to it, which still gets a weight, since e⁰ is 1; they should be −∞.",
        "Multiplying scores by a mask of 0 and 1, or filling with 0, sets hidden scores to 0. exp(0) is 1, so a hidden key keeps a "
        "share of the weight, and the lower the visible scores are, the larger that share is.\n\n"
        "Take scores [2, 5] with the second hidden. As 0, the pair [2, 0] gives [0.8808, 0.1192] where [1, 0] was wanted. With −2 for "
        "the visible score, the hidden key gets 0.8808.",
        "scores = scores * mask",
        "scores = scores.masked_fill(~mask, -torch.inf)",
    ),
    MistakeText(
        "MK4",
        "The fill value is not low enough for large scores; use −inf or `torch.finfo(scores.dtype).min`.",
        "A number such as −10000 hides a key only while the visible scores stay far above it. Softmax depends on differences of scores "
        "alone: if the visible scores lie near the fill, hidden keys get a share, and if they lie below it, hidden keys get most.\n\n"
        "Take a visible score of −10001 next to a hidden one that was filled with −10000. The row is [−1, 0] after the maximum is "
        "subtracted, and the weights are [0.2689, 0.7311]: most of it goes to the hidden key.",
        "weights = torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1)",
        "weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)",
        "huggingface/transformers#3181",
    ),
    MistakeText(
        "MK5",
        "The mask was multiplied by −∞, and 0 · −∞ is NaN; use `masked_fill` or `where`.",
        "The idea is to add 0 where attention is allowed and −∞ where it is not. But the product puts 0 · −∞ in the allowed places, "
        "which is not 0 but NaN, and one NaN makes its whole row NaN. With a finite number in place of −∞ the same line works; it "
        "breaks when that number is replaced by −∞.\n\n"
        "Take the mask [1, 0], where 1 means allowed. (1 − mask) is [0, 1], and times −∞ it is [NaN, −∞]; [0, −∞] was wanted.",
        "scores = scores + (1 - mask.float()) * -torch.inf",
        "scores = scores.masked_fill(~mask, -torch.inf)",
    ),
    MistakeText(
        "MK6",
        "The mask was added, True as the number 1; hidden scores should be set to −∞.",
        "A boolean tensor in a sum counts as 0 and 1. An additive mask holds 0 for allowed and −∞ for hidden; a boolean one is for "
        "`masked_fill` or `where`. With the two confused every key stays visible and the allowed ones gain 1.\n\n"
        "Take scores [1, 1] of which the second is hidden. Adding [True, False] gives [2, 1] and the weights [0.7311, 0.2689], where "
        "[1, 0] was wanted.",
        "scores = scores + mask",
        "scores = scores.masked_fill(~mask, -torch.inf)",
    ),
    MistakeText(
        "MK7",
        "The diagonal was blocked, so no token sees itself; each should see its past and itself.",
        "Row i is query i, and a causal query may see keys 0 to i, itself included. With the diagonal blocked the first token sees "
        "nothing: its row becomes NaN, uniform or zero, depending on the fill. The offset of `tril` counts from the main diagonal, and "
        "−1 leaves that out.\n\n"
        "For three tokens the rows should allow 1, 2 and 3 keys. With `tril(-1)` they allow 0, 1 and 2.",
        "mask = torch.ones(3, 3, dtype=torch.bool).tril(-1)",
        "mask = torch.ones(3, 3, dtype=torch.bool).tril()",
    ),
    MistakeText(
        "MK8",
        "The diagonal is off by one, so one future token leaks; a query should see no key after its own position.",
        "A language model with this mask reads the very token that it should predict. Its training loss falls close to 0, and what it "
        "generates is nonsense. The offset of `tril` counts from the main diagonal, so 1 allows one key too many. In `triu`, which "
        "marks what to block, the right offset is 1 and the leak is 2.\n\n"
        "For three tokens the rows should allow 1, 2 and 3 keys. With `tril(1)` they allow 2, 3 and 3.",
        "mask = torch.ones(3, 3, dtype=torch.bool).tril(1)",
        "mask = torch.ones(3, 3, dtype=torch.bool).tril()",
    ),
    MistakeText(
        "MK9",
        "A query that may see no key gave NaN or an average of what is hidden; it should give zeros.",
        "Padding makes such rows: a sequence of length 0 has no real key. Filled with −∞, softmax divides 0 by 0 and the row is NaN, "
        "which spreads to every weight of a model through the gradients. Filled with −1e9, all entries are equal and the weights "
        "uniform.\n\n"
        "Take scores [1, 3], both hidden. −∞ gives [NaN, NaN], −1e9 gives [0.5, 0.5]. Fill with a finite number, then set the hidden "
        "weights to 0: [0, 0].",
        "weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)",
        "low = torch.finfo(scores.dtype).min\nweights = torch.softmax(scores.masked_fill(~mask, low), dim=-1).masked_fill(~mask, 0.0)",
        "pytorch/pytorch#103749",
    ),
    MistakeText(
        "MK10",
        "The padding mask blocks queries instead of keys; keys are the last axis, so its shape should be (B, 1, T_k).",
        "A padded token must not be looked at, so its column should be hidden. On the query axis its row is hidden instead: real queries "
        "still read the padding, and the padded query sees nothing. In self-attention both axes have the same length, and no "
        "shape shows it.\n\n"
        "Take length 2 of 3 and equal scores. Query 0 should have the weights [0.50, 0.50, 0]. With the mask on the queries it has "
        "[0.33, 0.33, 0.33].",
        "scores = scores.masked_fill(~real[:, :, None], -torch.inf)",
        "scores = scores.masked_fill(~real[:, None, :], -torch.inf)",
        "hyunwoongko/transformer#40",
    ),
    MistakeText(
        "MK11",
        "The batch axis of the mask lines up with the queries; the mask should have an axis for them: (B, 1, T_k).",
        "Broadcasting lines shapes up from the right. A mask (B, L) against scores (B, L, L) puts its batch axis on the queries. With "
        "B = 1 the result is right, and with any other B ≠ L this is an error. With B = L it runs, and the length of item 0 applies to "
        "query 0 of every item.\n\n"
        "Take two items of two tokens with lengths 1 and 2: [[True, False], [True, True]]. In item 0 both queries should see key 0 "
        "alone. Broadcast wrongly, its query 1 sees both keys.",
        "scores = scores.masked_fill(~real, -torch.inf)",
        "scores = scores.masked_fill(~real[:, None, :], -torch.inf)",
        "ml-explore/mlx-lm#1903",
    ),
    MistakeText(
        "MK12",
        "The number of queries was used for the keys, too; the mask should have the shape (T_q, T_k).",
        "In self-attention over a whole sequence T_q equals T_k, and a square mask fits. With a cache, or in cross-attention, it does "
        "not: most sizes are an error, and a single query makes a 1 × 1 mask that broadcasts over all keys.\n\n"
        "Take 2 queries and 4 keys. The scores are 2 × 4 and a mask made of T_q alone is 2 × 2. The right one has rows that allow 3 and "
        "4 keys.",
        "mask = torch.ones(t_q, t_q, dtype=torch.bool).tril()",
        "mask = torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)",
        "harvard-edge/cs249r_book#1875",
    ),
    MistakeText(
        "MK13",
        "On some path the causal mask is missing or has no effect; no earlier output should change when a later token does.",
        "Often a padding mask, a fast kernel or a cached step takes the place of the causal mask instead of joining it. Tests on the "
        "plain path pass. The test that sees it: change the last token and compare all earlier outputs.\n\n"
        "Take three tokens, equal scores and values 1, 2, 3. With the mask the first output is 1. Without it, it is 2, and it becomes 4 "
        "when the last value changes to 9.",
        "mask = causal if padding is None else padding",
        "mask = causal if padding is None else causal & padding",
        "keras-team/keras#23038",
    ),
    MistakeText(
        "MK14",
        "The queries were placed at the first positions; with fewer queries than keys they are the last: query i is at i + T_k − T_q.",
        "With a cache, the queries are the last positions of the sequence. `tril()` counts from the top left corner, as if they were "
        "the first, so a single new query sees key 0 alone. Shift the diagonal by T_k − T_q; for T_q = T_k that is no shift.\n\n"
        "Take 2 queries and 4 keys. Shifted by 2, the rows allow 3 and 4 keys. Unshifted, they allow 1 and 2.",
        "mask = torch.ones(t_q, t_k, dtype=torch.bool).tril()",
        "mask = torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)",
        "pytorch/pytorch#144858",
    ),
)
