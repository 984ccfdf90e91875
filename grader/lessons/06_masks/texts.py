"""Lesson 06: what is said of the mistakes that only this lesson knows."""

from grader.model import MistakeText

TEXTS = (
    MistakeText("MA1", "The triangle is the wrong one: each query sees its future and not its past.",
        "Row i is query i, column j is key j. The past of query i lies to the left of the diagonal, in the lower triangle: "
        "`tril`. With `triu` the first token sees everything and the last only itself.",
        "torch.ones(t, t, dtype=torch.bool).triu()", "torch.ones(t, t, dtype=torch.bool).tril()"),
    MistakeText("MA2", "The mask holds numbers; a boolean one was asked for, True where attention is allowed.",
        "Numbers invite arithmetic: 0 and 1 are added or multiplied where a choice is meant, and 0 with −∞ is another "
        "convention. A boolean mask says only what it means and works with `masked_fill` and `where`.",
        "torch.tril(torch.ones(t, t))", "torch.tril(torch.ones(t, t, dtype=torch.bool))"),
    MistakeText("MA4", "One padded position stays visible: position j is real where j < length.",
        "Positions start at 0, so a sequence of length 2 fills positions 0 and 1. `j <= length` also lets in position 2.",
        "positions <= lengths[:, None]", "positions < lengths[:, None]"),
    MistakeText("MA5", "The axis for the queries is missing: (B, 1, max_len) was asked for.",
        "A mask of shape (B, max_len) meets scores of shape (B, T_q, T_k) from the right, so its batch axis lands on the "
        "queries. An axis of length 1 in the middle makes every query of an item share its row.",
        "positions < lengths[:, None]", "(positions < lengths[:, None])[:, None, :]"),
    MistakeText("MA6", "The padding is taken to be at the front; the real tokens come first here.",
        "Both ways exist: models that generate text often pad at the left. Here a sequence of length 2 in max_len 4 fills "
        "positions 0 and 1, so its row is True, True, False, False.",
        "positions >= max_len - lengths[:, None]", "positions < lengths[:, None]"),
    MistakeText("MA7", "The mask is as wide as the longest sequence; max_len was asked for.",
        "A batch is padded to a width that is chosen before its lengths are known. Where no sequence reaches max_len, a mask of "
        "the longest length no longer fits the keys.",
        "positions = torch.arange(lengths.max())", "positions = torch.arange(max_len)"),
    MistakeText("MA8", "The mask is not used: every query sees every key.",
        "Without it a padded or future key receives weight like any other. During training a causal model then reads the answer "
        "from the next position, its loss falls wonderfully, and it can generate nothing.",
        "weights = torch.softmax(scores, dim=-1)",
        "weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)"),
    MistakeText("MA12", "An empty row gives zeros in the output, and its weights are still those of a visible row.",
        "Whoever plots or sums the weights sees attention that never happened. Zero the weights first and make the output of "
        "them: then both are zero.",
        "output = torch.where(seen, weights @ v, 0)", "weights = weights.masked_fill(~mask, 0)\noutput = weights @ v"),
    MistakeText("MA13", "The output is repaired, the gradient is NaN: −∞ was added, and softmax had already divided 0 by 0.",
        "Softmax over a row of −∞ gives NaN, and its backward pass multiplies by that NaN, whatever `nan_to_num` makes of the "
        "value later. Through an addition the NaN goes on to q and k, and one empty row turns every weight of the model into NaN "
        "at the first step. `masked_fill` stops it, since nothing flows back through what was filled; a finite fill never "
        "makes it.",
        "bias = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)\n"
        "weights = torch.softmax(scores + bias, -1).nan_to_num(0)",
        "low = torch.finfo(scores.dtype).min\nweights = torch.softmax(scores.masked_fill(~mask, low), -1).masked_fill(~mask, 0)"),
    MistakeText("MA14", "The mask is saved with the weights: register the buffer with `persistent=False`.",
        "A mask follows from max_len alone. Saved in `state_dict` it makes checkpoints larger, by max_len² entries, and a "
        "checkpoint no longer loads into a model of another max_len.",
        'self.register_buffer("mask", mask)', 'self.register_buffer("mask", mask, persistent=False)'),
    MistakeText("MA15", "The whole mask is used for every length: cut it to the T tokens that came.",
        "The buffer is max_len by max_len, the scores are T by T. Only a sequence of full length fits without cutting: "
        "`mask[:T, :T]`.",
        "scores.masked_fill(~self.mask, -torch.inf)", "scores.masked_fill(~self.mask[:T, :T], -torch.inf)"),
    MistakeText("MA16", "A sequence longer than max_len is not refused with ValueError.",
        "Without the check the failure comes later, as a message on shapes that says nothing of max_len, or not at all where "
        "something broadcasts.",
        "mask = self.mask[:T, :T]", 'if T > self.max_len:\n    raise ValueError(f"T = {T} is longer than max_len = {self.max_len}")'),
    MistakeText("MA17", "Output and weights are in float32; the output is to keep the input's dtype.",
        "To compute half precision in float32 is sound. What comes next in the model is still float16 or bfloat16, and torch refuses "
        "to multiply it with float32.",
        "q, k, v = q.float(), k.float(), v.float()\n...\nreturn weights @ v, weights",
        "dtype = q.dtype\nq, k, v = q.float(), k.float(), v.float()\n...\nreturn (weights @ v).to(dtype), weights.to(dtype)"),
    MistakeText("MA18", "Hidden scores took part until after exp: where one lies far above the visible ones, these are 0 by then.",
        "A second normalisation mends the sums only while something visible is left. exp(−104) is 0 in float32: with a hidden score "
        "104 above all that is visible the row is 0, and so is its sum. Without a guard 0 / 0 is NaN, as in a row that sees no key.",
        "weights = torch.softmax(scores, dim=-1) * mask\nweights = weights / weights.sum(dim=-1, keepdim=True)",
        "low = torch.finfo(scores.dtype).min\nweights = torch.softmax(scores.masked_fill(~mask, low), dim=-1).masked_fill(~mask, 0)"),
    MistakeText("MA19", "Output and weights came back; the output alone was asked for.",
        "This module is made to stand in a model, where the next layer takes its result as it is. `SelfAttention` of lesson 05 returned "
        "both, to be looked at.",
        "return weights @ v, weights", "return weights @ v"),
    MistakeText("MA20", "Rows and columns are exchanged: row i belongs to query i, column j to key j, so the shape is (t_q, t_k).",
        "Scores have a row for each query, and the mask lies on them. Transposed, a square mask shows each query its future, and a mask "
        "for fewer queries than keys has the wrong shape.",
        "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q).mT", "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)"),
    MistakeText("MA21", "The mask has a row for each position; one row for all queries was asked for: (B, 1, max_len).",
        "Padding says which keys are real, whoever asks, so one row is enough and fits any number of queries. A mask of max_len rows "
        "fits self-attention alone, and one that hides the rows of padded queries, too, makes them empty.",
        "real[:, :, None] & real[:, None, :]", "real[:, None, :]"),
    MistakeText("MA22", "The mask is transposed: its rows are the queries and its columns the keys already, as in the scores.",
        "A mask of shape (B, 1, T_k) becomes one of (B, T_k, 1), which hides queries and no key. One of (T_q, T_k) no longer fits the "
        "scores, or fits and exchanges who may look at whom.",
        "scores.masked_fill(~mask.mT, low)", "scores.masked_fill(~mask, low)"),
    MistakeText("MA23", "A call without a mask fails: with mask=None every query sees every key.",
        "`None` is no tensor: it can't be negated, compared entry by entry or multiplied. What uses the mask stands where there is one.",
        "scores = scores.masked_fill(~mask, low)", "if mask is not None:\n    scores = scores.masked_fill(~mask, low)"),
    MistakeText("MA24", "`if mask:` asks whether a whole tensor is true, which torch refuses; ask `if mask is not None:`.",
        "A tensor of several entries is neither true nor false as a whole: 'Boolean value of Tensor with more than one value is "
        "ambiguous'. What is to be known is whether a mask was given at all.",
        "if mask:\n    scores = scores.masked_fill(~mask, low)", "if mask is not None:\n    scores = scores.masked_fill(~mask, low)"),
    MistakeText("MA25", "The mask was added as 0 and 1: every key stays visible; hidden scores must be set to −∞.",
        "An additive mask holds 0 for allowed and −∞ for hidden. With True and False, or 1.0 and 0.0, the allowed scores gain 1 and the "
        "hidden ones stay as they were. Scores [1, 1] with the second hidden become [2, 1], with the weights [0.7311, 0.2689].",
        "scores = scores + self.mask[:T, :T]", "scores = scores.masked_fill(~self.mask[:T, :T], -torch.inf)"),
    MistakeText("MA26", "The mask has a row for each key; it needs one for each query, shape (t_q, t_k).",
        "The queries are the last t_q of the t_k positions, so of a triangle of t_k rows only the last t_q are wanted.",
        "torch.ones(t_k, t_k, dtype=torch.bool).tril()", "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)"),
    MistakeText("MA27", "The diagonal is shifted to the wrong side: by t_q − t_k, where t_k − t_q was meant.",
        "A positive offset of `tril` allows more. With fewer queries than keys each query also sees the t_k − t_q positions that came "
        "before the first of them; shifted the other way, 2 queries and 5 keys see nothing at all.",
        "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_q - t_k)", "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)"),
    MistakeText("MA28", "The mask allows everything: each query sees its future, too.",
        "Row i is to be True up to the position of query i and False after it. `torch.ones` alone is True everywhere; `tril` takes the "
        "future out.",
        "torch.ones(t_q, t_k, dtype=torch.bool)", "torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)"),
    MistakeText("MA29", "The last real token is hidden: position j is real where j < length.",
        "Positions start at 0, so a sequence of length 2 fills positions 0 and 1. Compared with length − 1, or counted from 1, only "
        "position 0 is left.",
        "positions < lengths[:, None] - 1", "positions < lengths[:, None]"),
    MistakeText("MA30", "The axes stand in other places: one for the items, one of length 1 for the queries, one for the keys, "
        "(B, 1, max_len).",
        "Scores have the shape (B, T_q, T_k), and broadcasting lines a mask up with them from the right. With the axis of length 1 at the "
        "front the items meet the queries, and with a fourth axis the items meet an axis that the scores do not have.",
        "(positions < lengths[:, None]).unsqueeze(0)", "(positions < lengths[:, None]).unsqueeze(1)"),
)  # fmt: skip
