"""Mistakes that two lessons or more know, told in a sentence and a paragraph; the code is that of an exercise's patch."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "GB18",
        "The weights should multiply the whole difference, once: weights ⊙ (grad_weights − the row's weighted mean).",
        "Multiplied out it is weights · grad_weights − weights · mean: each term has one factor of the weights. Without the factor in "
        "front, a key of weight 0 still gets a gradient, although moving its score a little changes nothing. If only grad_weights is "
        "multiplied, each of n keys loses all of the mean, not its share, and the row sums to (1 − n) times the mean, not to 0.\n\n"
        "Take weights [0.5, 0.5] and grad_weights [1, 0]. The mean is 0.5 and the result [0.25, −0.25]. Without any factor it is "
        "[0.5, −0.5], with the factor at grad_weights alone [0, −0.5], and with a second one at the mean [0.375, −0.125].",
    ),
    MistakeText(
        "GB21",
        "The sign between grad_weights and the row's weighted mean is wrong; it should be weights ⊙ (grad_weights − mean).",
        "A score that rises takes from all other weights of its row: hence the minus sign before the mean. With a plus sign the row "
        "sums to twice the mean, not to 0. With both signs reversed, mean − grad_weights, each score gets the opposite of its "
        "gradient, and a step of descent climbs.\n\n"
        "Take weights [0.5, 0.5] and grad_weights [1, 0]. The mean is 0.5 and the result [0.25, −0.25]. With a plus sign it is [0.75, "
        "0.25], and reversed [−0.25, 0.25].",
    ),
    MistakeText(
        "GB11",
        "The scale of the backward pass is not that of the forward pass: it should divide by √d_k once, not twice, and not multiply.",
        "scores = q kᵀ / √d_k is a product times the factor 1/√d_k, and the chain rule brings the same factor along: in grad_scores, "
        "or in grad_q and grad_k, not in both. Divided twice, or by d_k in place of its root, both gradients are too small by √d_k. "
        "Multiplied, they are too large by d_k. grad_v is right all the while.\n\n"
        "Take d_k = 4, the keys [4, 0, 0, 0] and [0, 0, 0, 0], and grad_scores = [0.25, −0.25] without the scale. The first entry of "
        "q's gradient is 0.25 · 4 / 2 = 0.5. Divided twice it is 0.25, and multiplied 2.",
    ),
    MistakeText(
        "GB8",
        "grad_v was formed with the scores or with a gradient; form it with the weights, of which the output is made.",
        "output = weights v, so the gradient of v is weightsᵀ grad_output. Scores may be negative and do not sum to 1. The gradients "
        "of weights and scores go on to q and k, not to v.\n\n"
        "Take one query with the weights [0.75, 0.25] and grad_output [4]. The two values get 3 and 1, together what the output "
        "received. Formed with the scores [ln 3, 0], they get 4.394 and 0.",
    ),
    MistakeText(
        "GB10",
        "The gradients came back in another order; (grad_q, grad_k, grad_v) is asked for.",
        "Callers unpack by position. The gradient of q has the shape of q, and so on; where sizes agree, an array is updated with "
        "another's gradient, without an error.\n\n"
        "Take 3 queries and 3 keys of width 4: grad_q and grad_k are both (3, 4), and only the numbers tell them apart.",
    ),
    MistakeText(
        "GB26",
        "The sign of all three gradients was reversed; return them without the minus.",
        "A gradient says how the result grows as an input grows. The minus sign of gradient descent is in the step that uses it.\n\n"
        "Take one key: the output is its value, so grad_v is the sum of grad_output over the queries. With grad_output 1 and 2 it is "
        "3, not −3.",
    ),
    MistakeText(
        "GB27",
        "grad_output is never used: these are the gradients for ones in its place; start from grad_output.",
        "Ones are the gradient of a plain sum of the outputs. Any other loss has a gradient of its own for each number of the output, "
        "and the chain rule starts from that.\n\n"
        "Take one key and two queries with grad_output 5 and −2. grad_v is 3; with ones it is 2.",
    ),
    MistakeText(
        "GH2",
        "The heads' numbers were divided by the number of KV heads; divide by the number of query heads that share one, H / H_kv.",
        "Head h reads h // (H / H_kv). With 4 heads and 2 KV heads both numbers are 2, and nothing shows.\n\n"
        "Take 6 heads and 3 KV heads: the groups are pairs, heads 0 and 1 read KV head 0. h // 3 makes triples, and KV head 2 is "
        "never read.",
        issue="PSAL-POSTECH/ONNXim#33",
    ),
    MistakeText(
        "GH3",
        "All query heads read the same keys and values; each group should have a KV head of its own.",
        "One for all is multi-query attention (Shazeer 2019), the case of a single KV head. Groups keep some difference between the "
        "heads (Ainslie et al. 2023).\n\n"
        "Take 4 heads and 2 KV heads: heads 0 and 1 should read KV head 0, and heads 2 and 3 should read KV head 1.",
    ),
    MistakeText(
        "GH4",
        "Keys and values were repeated in different orders; a query head should take both from the same KV head.",
        "Weights found with one KV head's keys are meant for that head's values, not for another head's.\n\n"
        "Take 4 heads and 2 KV heads. `repeat` gives the heads 0 1 0 1, `repeat_interleave` 0 0 1 1; k and v need the same one.",
    ),
    MistakeText(
        "KC10",
        "Keys and values were exchanged; the scores are made of the keys, and what is read are the values.",
        "Both have the same shape, so nothing raises. A cache that gets (k, v) should give (keys, values) back.\n\n"
        "Take the keys [1, 0] and values [5, 7] of two tokens, and the query 1. The scores are [1, 0], and the result lies between 5 "
        "and 7; exchanged it lies between 0 and 1.",
    ),
    MistakeText(
        "TB33",
        "x itself was added to the result; the residual connection should be left to the block.",
        "A block writes x + mlp(norm(x)) and x + attn(norm(x)): the part inside gives only what is added. Added inside as well, the "
        "normalized x comes in a second time.\n\n"
        "Take x = 2 and a part that gives 0.5. The block should go on with 2.5; with x added inside it goes on with 4.5.",
    ),
)
