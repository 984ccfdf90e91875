"""Lesson 09: what is said of the mistakes that only this lesson knows."""

from grader.model import MistakeText

TEXTS = (
    MistakeText("MU1", "A d_model that num_heads does not divide is not refused with ValueError.",
        "Each head takes d_model / num_heads numbers. With a remainder the failure comes later, from a view that says nothing of heads, "
        "or `d_model // num_heads` loses numbers in silence.",
        "d_head = d_model // num_heads",
        'if d_model % num_heads:\n    raise ValueError("d_model is not divisible by num_heads")'),
    MistakeText("MU2", "The output projection w_o is not applied.",
        "Merged heads lie side by side, each in its own slice. `w_o` is where they are mixed; without it no head's finding reaches "
        "another head's slice.",
        "return merged, weights", "return self.w_o(merged), weights"),
    MistakeText("MU3", "The weights are averaged over the heads; those of each head were asked for.",
        "`nn.MultiheadAttention` averages unless told otherwise (`average_attn_weights=False`). A mean of heads that look at different "
        "places is a picture of none of them.",
        "return output, weights.mean(dim=1)", "return output, weights"),
    MistakeText("MU4", "Heads take every num_heads-th number; here each is one contiguous slice of d_model.",
        "`view(B, T, d_head, num_heads)` deals the numbers out like cards: head 0 of two gets the numbers 0, 2, 4, …. It trains as well, "
        "and no weights of another model fit it.",
        "x.view(B, T, d_head, num_heads).permute(0, 3, 1, 2)", "x.view(B, T, num_heads, d_head).transpose(1, 2)"),
    MistakeText("MU5", "The values are made from key; the argument value is not used.",
        "In self-attention query, key and value are the same tensor and nobody notices. In cross-attention keys and values may differ: "
        "what is compared need not be what is fetched.",
        "v = self.w_v(key)", "v = self.w_v(value)"),
    MistakeText("MU6", "Keys and values are made from query; the arguments key and value are not used.",
        "That is self-attention, whatever is passed. A decoder that is to read an encoder would only ever read itself.",
        "k, v = self.w_k(query), self.w_v(query)", "k, v = self.w_k(key), self.w_v(value)"),
    MistakeText("MU7", "Queries and keys share one projection: w_q is used for both.",
        "Each token's key would be its query, so that scores are symmetric: i looks at j as much as j at i. Four layers, each used once.",
        "k = split_heads(self.w_q(key), self.num_heads)", "k = split_heads(self.w_k(key), self.num_heads)"),
    MistakeText("MU8", "The keys are made from value; the argument key is not used.",
        "In self-attention query, key and value are the same tensor and nobody notices. What is compared need not be what is fetched.",
        "k = self.w_k(value)", "k = self.w_k(key)"),
    MistakeText("MU9", "The values are not projected: w_v is not used.",
        "Without w_v a head cannot choose what to pass on; it copies its slice of the token as it is.",
        "v = split_heads(value, self.num_heads)", "v = split_heads(self.w_v(value), self.num_heads)"),
    MistakeText("MU11", "An axis is put into the mask; it comes in a shape that broadcasts to (B, num_heads, T_q, T_k) already.",
        "The axis is right for a mask (B, T_q, T_k), and no mask here has that shape: three axes are (num_heads, T_q, T_k), and the new "
        "one makes items of the heads. A mask (T_q, T_k) is read as one query row for each head, and one with four axes gets a fifth.",
        "scores.masked_fill(~mask.unsqueeze(1), -torch.inf)", "scores.masked_fill(~mask, -torch.inf)"),
    MistakeText("MU12", "The projections have no bias; here all four have one.",
        "Both kinds exist, and lesson 05 was without. `nn.MultiheadAttention` has biases by default, so weights of it can be copied only "
        "into layers that have them, too.",
        "nn.Linear(d_model, d_model, bias=False)", "nn.Linear(d_model, d_model)"),
    MistakeText("MU13", "The heads stay behind the tokens: (B, T, num_heads, d_head) came back.",
        "The numbers are right and the axes are not done. Matrix products take the last two axes, so with heads in that place tokens "
        "never meet.",
        "x.view(B, T, num_heads, d_head)", "x.view(B, T, num_heads, d_head).transpose(1, 2)"),
    MistakeText("MU14", "The heads come before the batch; (B, num_heads, T, d_head) was asked for.",
        "Batch first is a convention of the whole course: masks and losses rely on axis 0.",
        "x.view(B, T, num_heads, d_head).permute(2, 0, 1, 3)", "x.view(B, T, num_heads, d_head).permute(0, 2, 1, 3)"),
    MistakeText("MU15", "The number of heads and their width are exchanged.",
        "d_model = num_heads · d_head splits in two ways. `view(B, T, d_head, num_heads)` makes d_head heads of num_heads numbers.",
        "x.view(B, T, d_head, num_heads).transpose(1, 2)", "x.view(B, T, num_heads, d_head).transpose(1, 2)"),
    MistakeText("MU16", "The last two axes are exchanged: each head is (d_head, T) in place of (T, d_head).",
        "That is the shape in which k enters q @ k.mT, once more transposed there. The split itself keeps tokens in rows.",
        "x.view(B, T, num_heads, d_head).permute(0, 2, 3, 1)", "x.view(B, T, num_heads, d_head).permute(0, 2, 1, 3)"),
    MistakeText("MU17", "The merged numbers are interleaved: head 0 is to come first as a whole, then head 1.",
        "With d_head moved in front of the heads, the first number of every head comes before the second of any. `w_o` then meets them in "
        "another order than it was trained with.",
        "x.permute(0, 2, 3, 1).reshape(B, T, -1)", "x.transpose(1, 2).reshape(B, T, -1)"),
    MistakeText("MU18", "The heads are averaged; they are to lie side by side.",
        "A mean loses which head found what, and the width shrinks to d_head. Side by side all of it is kept.",
        "x.mean(dim=1)", "x.transpose(1, 2).reshape(B, T, -1)"),
    MistakeText("MU19", "The graph is cut: the numbers are right and no gradient reaches x.",
        "Moving numbers about is differentiable, and torch records it. `detach()`, `.data`, NumPy and `torch.tensor(...)` of a tensor "
        "drop the record, and nothing below learns.",
        "x.detach().reshape(B, T, num_heads, d_head)", "x.reshape(B, T, num_heads, d_head)"),
    MistakeText("MU20", "The tokens are back at axis 1, and the heads still have an axis of their own.",
        "(B, T, num_heads, d_head) has the numbers in the right order; the last two axes are to become one of num_heads · d_head.",
        "x.transpose(1, 2)", "x.transpose(1, 2).reshape(B, T, -1)"),
    MistakeText("MU21", "Hidden weights were set to 0 after softmax and the rest divided by its new sum: that sum may be 0.",
        "Where all visible scores lie far below a hidden one, softmax has given the hidden key everything and rounded the visible "
        "weights to 0; nothing is left to be divided, and 0 / 0 is NaN. A maximum that is taken over the hidden scores, too, does the "
        "same.\n\nTake the scores [0, 1] and a hidden one of 200. Softmax of all three gives [0, 0, 1] in float32. Masked first, it "
        "gives [0.2689, 0.7311, 0].",
        "weights = torch.softmax(scores, dim=-1) * mask\nweights = weights / weights.sum(dim=-1, keepdim=True)",
        "weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)"),
    MistakeText("MU22", "The fill has the wrong sign: hidden scores must be −∞, and a large positive score takes all the weight.",
        "Softmax gives the largest score the most. A hidden key at +10⁹ outweighs every visible one; at +∞ the row's maximum is ∞, and "
        "∞ − ∞ is NaN. Rows in which nothing is hidden are right.",
        'scores.masked_fill(~mask, float("inf"))', 'scores.masked_fill(~mask, float("-inf"))'),
    MistakeText("MU23", "The mask's last two axes were exchanged; it comes as (…, T_q, T_k), the keys last.",
        "Row i of the mask says what query i may see, and the scores have the same order. Transposed, a mask (B, 1, 1, T_k) for padded "
        "keys hides queries. Where T_q and T_k differ torch mostly raises; where they agree nothing warns.",
        "scores.masked_fill(~mask.transpose(-2, -1), -torch.inf)", "scores.masked_fill(~mask, -torch.inf)"),
    MistakeText("MU24", "The queries, the keys or the values were taken out of the graph: no gradient reaches their projection.",
        "The numbers are right, and the other projections go on learning, so that the loss still falls. The layer behind the cut keeps "
        "the weights it started with. No `detach()`, `.data` or `torch.no_grad()` belongs into forward.",
        "scores = q.detach() @ k.mT", "scores = q @ k.mT"),
    MistakeText("MU25", "Dropout acts on the weights; this module is to have none.",
        "`F.dropout(weights, p)` drops always, in evaluation, too, as does an `nn.Dropout` that is made anew in every forward. Some "
        "weights become 0, the rest grow by 1/(1 − p), and a row no longer sums to 1. Lesson 11 has dropout, in training only.",
        "weights = F.dropout(torch.softmax(scores, dim=-1), 0.1)", "weights = torch.softmax(scores, dim=-1)"),
    MistakeText("MU31", "The thirds of in_proj are mixed up: they are q, k, v, in this order.",
        "`in_proj_weight` stacks three matrices in the order of the arguments query, key, value. Nothing but the convention says so: "
        "all have the same shape.",
        "v, k, q = torch_mha.in_proj_weight.chunk(3)", "q, k, v = torch_mha.in_proj_weight.chunk(3)"),
    MistakeText("MU32", "Every third row was taken; q, k and v are three blocks of d_model rows each.",
        "Rows 0 to d_model − 1 make queries, the next d_model keys, the last values.",
        "torch_mha.in_proj_weight[0::3]", "torch_mha.in_proj_weight[:d_model]"),
    MistakeText("MU33", "A weight was transposed on the way; nn.Linear and nn.MultiheadAttention both store (out, in).",
        "Square matrices fit either way, so nothing raises. A transpose is needed only from code that computes x @ w (lesson 05).",
        "mine.w_q.weight.copy_(weight.T)", "mine.w_q.weight.copy_(weight)"),
    MistakeText("MU34", "A bias was not copied: there are in_proj_bias, in thirds like the weight, and out_proj.bias.",
        "Freshly made, `nn.MultiheadAttention` has biases of zero and our layers random ones. The outputs then differ by little, and by "
        "more once torch's module has been trained.",
        "mine.w_q.weight.copy_(weight)", "mine.w_q.weight.copy_(weight)\nmine.w_q.bias.copy_(bias)"),
    MistakeText("MU35", "The output projection was not copied: out_proj belongs into w_o.",
        "Scores and weights agree without it, and the outputs do not.",
        "mine.w_q.weight.copy_(q)\n…", "mine.w_o.weight.copy_(torch_mha.out_proj.weight)"),
    MistakeText("MU36", "The module has new parameters: the old ones are to be overwritten in place.",
        "An optimiser, or another module that shares the layer, holds the old objects and would go on with those. `copy_` changes the "
        "numbers and keeps the object.",
        "mine.w_q.weight = nn.Parameter(weight.clone())", "mine.w_q.weight.copy_(weight)  # under torch.no_grad()"),
    MistakeText("MU37", "Both modules share memory: training one would change the other.",
        "`.data = …` makes the parameter look at the other tensor, and `chunk` gives views of one large matrix. Copy the numbers.",
        "mine.w_q.weight.data = weight", "mine.w_q.weight.copy_(weight)"),
    MistakeText("MU38", "A parameter was changed in place while gradients are recorded: do it under torch.no_grad().",
        "A leaf that requires grad may not be overwritten in a graph. Copying weights is no computation to be differentiated.",
        "mine.w_q.weight.copy_(weight)", "with torch.no_grad():\n    mine.w_q.weight.copy_(weight)"),
    MistakeText("MU39", "The copy went the other way: torch's module has the weights of ours now.",
        "`a.copy_(b)` writes b into a.",
        "weight.copy_(mine.w_q.weight)", "mine.w_q.weight.copy_(weight)"),
    MistakeText("MU40", "A tensor was assigned where a parameter belongs: copy the numbers into the parameter that is there.",
        "`module.weight = tensor` raises TypeError, since a module's parameters can be replaced by parameters only. `copy_` keeps the "
        "parameter and changes its numbers.",
        "mine.w_q.weight = weight", "mine.w_q.weight.copy_(weight)  # under torch.no_grad()"),
    MistakeText("MU41", "The parameters are matched by their order in the module; match them by name.",
        "`parameters()` gives them in the order in which `__init__` made the layers. All weights have one shape, so with `w_o` made first "
        "each matrix lands in another layer, and nothing raises.",
        "for p, value in zip(mine.parameters(), values):\n    p.copy_(value)", "mine.w_q.weight.copy_(q)\n…"),
    MistakeText("MU42", "load_state_dict asks for every entry of the module, and this module has more than the four layers.",
        "A buffer or a further parameter of `mine` has no counterpart in torch's module. `strict=False` leaves it as it is; so does "
        "copying into the four layers one by one.",
        "mine.load_state_dict(new)", "mine.load_state_dict(new, strict=False)"),
)  # fmt: skip
