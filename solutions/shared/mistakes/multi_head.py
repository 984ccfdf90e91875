"""Multi-head attention: splitting, merging, and dropout."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "MH1",
        "The split mixed up the tokens; row t of every head should hold numbers of token t alone.",
        "`view` keeps the order of the numbers in memory, where one token's numbers lie side by side. A view straight to (B, H, T, "
        "d_head) has the right shape and cuts that order elsewhere: head 0 receives whole early tokens, the last head whole late ones. "
        "View as (B, T, H, d_head) first, which follows the order, and then transpose.\n\n"
        "Take two tokens [0, 1, 2, 3] and [4, 5, 6, 7] and two heads. Head 0 should hold [[0, 1], [4, 5]], the first half of each token. "
        "The direct view gives it [[0, 1], [2, 3]]: token 0 alone.",
        "heads = x.view(B, num_heads, T, d_head)",
        "heads = x.view(B, T, num_heads, d_head).transpose(1, 2)",
        "hyunwoongko/transformer#4",
    ),
    MistakeText(
        "MH2",
        "The heads were merged before the tokens were back on axis 1; transpose first, then reshape.",
        "`reshape` takes (B, H, T, d_head) for (B, T, d_model) without complaint, since both hold the same count of numbers. A row of "
        "the result then holds several tokens of one head. Every head on its own is right, so tests of the weights pass and only the "
        "output is wrong.\n\n"
        "Take heads [[0, 1], [4, 5]] and [[2, 3], [6, 7]]. Token 0 should be [0, 1, 2, 3]. Merged at once it is [0, 1, 4, 5].",
        "merged = heads.reshape(B, T, num_heads * d_head)",
        "merged = heads.transpose(1, 2).reshape(B, T, num_heads * d_head)",
        "jsbaan/transformer-from-scratch#6",
    ),
    MistakeText(
        "MH3",
        "Attention ran across the heads of one token, so tokens never meet; move the heads to axis 1 before the scores.",
        "A matrix product works on the last two axes and treats the others as a batch. Left as (B, T, H, d_head), q kᵀ compares the "
        "heads of one token with each other. Shapes fit everywhere, the output's included. A test that shows it: change "
        "token 2, and only row 2 of the output changes.\n\n"
        "Take B = 1, T = 5 and two heads. The scores should have shape (1, 2, 5, 5). Without the transpose it is (1, 5, 2, 2).",
        "q = x.view(B, T, num_heads, d_head)\nscores = q @ q.mT",
        "q = x.view(B, T, num_heads, d_head).transpose(1, 2)\nscores = q @ q.mT",
    ),
    MistakeText(
        "MH4",
        "`view` was called after a transpose, where memory is not contiguous; use `reshape`, or `contiguous()` first.",
        "`transpose` moves no number; it changes the steps (strides) by which memory is read. `view` needs numbers that lie in order and "
        "raises a RuntimeError ('view size is not compatible …') where they do not. `reshape` copies in that case.\n\n"
        "Take [[0, 1, 2], [3, 4, 5]]. Transposed, it reads 0, 3, 1, 4, 2, 5, while memory still holds 0 to 5. No fixed step leads "
        "through memory in that order, so a flat row needs a copy.",
        "merged = heads.transpose(1, 2).view(B, T, num_heads * d_head)",
        "merged = heads.transpose(1, 2).reshape(B, T, num_heads * d_head)",
    ),
    MistakeText(
        "MH5",
        "Dropout was active in evaluation; make it depend on `self.training`.",
        "`F.dropout(weights, p)` drops unless it is told `training=False`; it does not know the module it is called from. So "
        "`model.eval()` has no effect on it, and two calls with the same input differ. An `nn.Dropout` stored in the module follows its "
        "mode. `F.scaled_dot_product_attention(..., dropout_p=p)` does not know it, either.\n\n"
        "Take the weights [0.5, 0.5] and p = 0.5. In evaluation they should stay as they are. Dropped, each of them is 0 or 1, anew in "
        "every call.",
        "weights = F.dropout(weights, p=0.5)",
        "weights = F.dropout(weights, p=0.5, training=self.training)",
        "pytorch/pytorch#124464",
    ),
    MistakeText(
        "MU1",
        "A d_model that num_heads does not divide is not refused with ValueError.",
        "Each head takes d_model / num_heads numbers. With a remainder the failure comes later, as an error about shapes that never "
        "mentions heads, or not at all: `d_model // num_heads` rounds down without any error, and numbers or whole heads are silently "
        "lost.\n\n"
        "Take d_model = 10 and three heads. 10 // 3 is 3, and three heads of three numbers hold 9 of the 10.",
        "d_head = d_model // num_heads",
        "if d_model % num_heads:\n"
        "    raise ValueError(f'{num_heads} heads do not divide {d_model}')\n"
        "d_head = d_model // num_heads",
    ),
    MistakeText(
        "MU2",
        "The output projection is not applied: the merged heads should go through w_o (with a fused qkv it is called proj).",
        "Merged heads lie side by side. The output projection mixes them; without it, what one head found never reaches another's "
        "slice. A layer that is made and never called looks harmless: shapes and weights of attention are right, and only the output "
        "is not.\n\n"
        "Take two heads of width 1 that found 2 and 3, and a projection that adds all. The output should be [5, 5]. Without it, it is "
        "[2, 3].",
        "output = heads.transpose(1, 2).flatten(2)",
        "output = w_o(heads.transpose(1, 2).flatten(2))",
    ),
    MistakeText(
        "MU4",
        "Heads hold every num_heads-th number, of the projection or of what goes into the last one; each should have one contiguous slice.",
        "Head h should hold the numbers h · d_head to (h + 1) · d_head − 1. `view(B, T, d_head, num_heads)` deals the numbers out "
        "like cards. It trains as well, and no weights of another model fit it.\n\n"
        "Take d_model = 4 and two heads. Head 0 should hold the numbers 0 and 1. Dealt out, it gets the numbers 0 and 2.",
        "heads = x.view(B, T, d_head, num_heads).permute(0, 3, 1, 2)",
        "heads = x.view(B, T, num_heads, d_head).transpose(1, 2)",
    ),
    MistakeText(
        "MU25",
        "Dropout acts on the weights; this module should have none.",
        "`F.dropout(weights, p)` drops always, in evaluation, too, as does an `nn.Dropout` that is made anew in every forward; one "
        "that is made once drops in training. `F.scaled_dot_product_attention(..., dropout_p=p)` does not know `self.training`, "
        "either. Some weights become 0, the rest grow by 1/(1 − p), and a row no longer sums to 1. Lesson 09 has dropout, in training "
        "only.",
        "output = F.dropout(weights, p=0.5) @ v",
        "output = weights @ v",
    ),
    MistakeText(
        "MU31",
        "The thirds of a fused weight were mixed up; they should be read as q, k, v, in this order, each a block of its own.",
        "A fused weight, as `in_proj_weight` or that of `qkv`, stacks three matrices: rows 0 to d_model − 1 make queries, the next "
        "d_model keys, the last values. Nothing but the convention says so, since all have the same shape. Any order trains equally "
        "well. It matters when weights come from elsewhere: read in another order, or every third row at a time, they give nonsense.",
        "v, k, q = qkv.chunk(3, dim=-1)\nscores = q @ k.mT",
        "q, k, v = qkv.chunk(3, dim=-1)\nscores = q @ k.mT",
    ),
    MistakeText(
        "CM7",
        "A sequence longer than max_len is not refused with ValueError.",
        "Without the check the failure comes later, as a message about shapes or an index that never mentions max_len, or not at all: "
        "a slice `[:t]` of a table that is too short is the whole table, and ids that are cut off silently give fewer results than "
        "there are tokens.\n\n"
        "Take max_len = 4 and five tokens. The mask `hidden[:5, :5]` is 4 × 4, and the scores are 5 × 5.",
        "positions = torch.arange(ids.shape[1])",
        "if ids.shape[1] > max_len:\n"
        "    raise ValueError(f'{ids.shape[1]} tokens, at most {max_len}')\n"
        "positions = torch.arange(ids.shape[1])",
    ),
    MistakeText(
        "CM9",
        "The state_dict holds more than the weights that the task names; a buffer is kept out of it by `persistent=False`.",
        "Buffers are saved unless they are registered with `persistent=False`, and a parameter always is. A mask follows from "
        "max_len, a scale from the width of a head. Saved, they enlarge a checkpoint, which then fits no other max_len, and "
        "`load_state_dict` misses them in the weights of another model.\n\n"
        "Take max_len = 1024: the mask has 1,048,576 entries.",
        'module = nn.Module()\nmodule.register_buffer("mask", mask)\nsaved = list(module.state_dict())',
        "module = nn.Module()\n"
        'module.register_buffer("mask", mask, persistent=False)\n'
        "saved = list(module.state_dict())",
    ),
)
