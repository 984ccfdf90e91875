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
)
