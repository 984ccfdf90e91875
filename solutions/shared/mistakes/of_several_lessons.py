"""Mistakes that two lessons or more know, told in a sentence and a paragraph; the code is that of an exercise's patch."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "HL1",
        "The keys came back, the best one or a blend of them; the values are asked for.",
        "Keys are compared, values are returned. They may differ in size: a key has d numbers, a value d_v.",
    ),
    MistakeText(
        "HL5",
        "The keys were compared by the angle to the query alone (cosine similarity); a dot product counts how long they are, too.",
        "Dividing by the norms removes how long the vectors are. In attention a longer key may score higher, and the scores are divided "
        "by √d_k alone, the same number for every pair.",
    ),
    MistakeText(
        "SL5",
        "Only the value with the largest weight was taken, as in the hard look-up; all values should be blended.",
        "Every weight is above 0, so every value counts a little. The hard look-up and the blend agree only where one score is far above "
        "the others.",
    ),
    MistakeText(
        "SL8",
        "The weighted values were averaged; they should be added up.",
        "With weights that sum to 1 the sum of the weighted values is an average already. A division by the number of keys makes it that "
        "many times too small.",
    ),
    MistakeText(
        "SL14",
        "Another base than e was raised to the scores; softmax is made of powers of e, as `np.exp` gives them.",
        "2ˣ = e^(0.693·x), so powers of 2 give the weights of scores that are 0.693 times as large, and powers of 10 those of scores 2.3 "
        "times as large. For (0, 1), base 2 gives (⅓, ⅔) in place of (0.269, 0.731).",
    ),
    MistakeText(
        "HL3",
        "The order of the scores was reversed, so the worst key counts most; the one with the largest score should.",
        "A large dot product means a good fit, and exp grows with the score. `np.argmin` looks for the worst fit, and `np.exp(scores.max() "
        "- scores)` has maximum and scores exchanged. Both would be right for a distance.",
    ),
    MistakeText(
        "TT13",
        "The exponential is missing: the scores themselves were divided by their sum; exp(score) should be.",
        "Scores can be negative, and then their shares are, too: for (1, −1, 2) they are (½, −½, 1). For (1, −1) the sum is 0. The "
        "exponential makes every score positive, and only differences of scores count.",
    ),
    MistakeText(
        "TT14",
        "The exponentials were not divided by their sum; the weights should sum to 1.",
        "Weights are shares of a whole. Without the division, or divided by something else, such as the largest of them or their number, "
        "they sum to anything, and what is blended with them is no average. After the maximum is subtracted, the largest exponential is "
        "exactly 1, and the others come on top of it.",
    ),
    MistakeText(
        "TT3",
        "The wrong matrix was transposed, or none; queries and keys are rows, so that K alone should be: `Q @ K.T`.",
        "A matrix product sums over what lies inside, and that should be d_k: (n_q, d_k) @ (d_k, n_k). `Q @ K` multiplies a query by the "
        "columns of K. `Q.T @ K` sums over the tokens and pairs features with features. They run where two sizes happen to agree, and the "
        "numbers are wrong. In a batch it is the last two axes of the keys that change places; in letters, 'bid,bdj->bij' calls the keys' "
        "tokens d.",
    ),
    MistakeText(
        "QF2",
        "The dot products are too small: they should be √d times the scores that are needed, to make up for attention's division by √d.",
        "The score that softmax sees is q · k / √d, where d is how many numbers a query has. For a scaled score of s the dot product has "
        "to be s · √d. Left out, it is too small by √d; divided by √d as well, by d.",
    ),
    MistakeText(
        "QF4",
        "The share was worked out against one other key; it should hold against all n − 1 others.",
        "Against a single other key, log(share / (1 − share)) is the lead that is needed. Each of n − 1 others that are equally near adds "
        "as much to the sum, so it has to be log(share · (n − 1) / (1 − share)). Without the n − 1 the result is right for two keys and "
        "too small for more.",
    ),
    MistakeText(
        "TT8",
        "The scale was taken from another size, such as the number of keys or d_v; take it from d_k, how many numbers a query has.",
        "A dot product adds up d_k products and spreads more the more there are. However many queries, keys or sentences there are, and "
        "however many numbers a value has, that does not change. d_k is the last axis of queries and keys, axis −1: axis −2 counts "
        "tokens, `len` the entries of the first axis, and axis 1, counted from the front, is d_k only in a matrix; in a batch it counts "
        "tokens or heads. Where two of the sizes agree, nothing shows.",
    ),
    MistakeText(
        "TT9",
        "The scores were divided by half of d_k, or by d_k and by 2, as `d_k ** 1 / 2` does it; divide by √d_k.",
        "Python takes powers before divisions and divides from the left: `(d_k ** 1 / 2)` is half of d_k, and `scores / d_k ** 1 / 2` is "
        "((scores / d_k) / 2). Half of d_k agrees with the root for d_k = 4 alone. Brackets around the exponent, or 0.5, give the root.",
    ),
    MistakeText(
        "TT41",
        "The input was changed in place: `*=`, `/=` and `-=` write into the caller's array; make a new one.",
        "The caller still needs those numbers. `x = x / 2` makes a new array, and `x /= 2` does not. An index such as `keys[target]` "
        "gives a view of the same memory, so `*=` changes the keys as well. An array of whole numbers cannot hold fractions: there `/=` "
        "stops with a UFuncTypeError.",
    ),
    MistakeText(
        "SX25",
        "A row far below 0 underflows: its largest absolute value, 0 or nothing was subtracted; subtract its own maximum, always.",
        "For (−1000, −999) a maximum that is sought from 0 on stays 0: exp(−1000) and exp(−999) are both 0, and 0/0 is NaN. With the "
        "largest absolute value, 1000, the exponents even fall to −2000. A maximum should begin at the first number, or at −∞. `if "
        "x.max() > 80:` before the subtraction does the same harm.",
    ),
    MistakeText(
        "SX51",
        "The maximum of the numbers before the division was subtracted, not of those that exp receives; subtract the largest of these.",
        "Any number that is the same for a whole row leaves its weights as they are, but only the maximum of the exponents themselves "
        "keeps exp in range. At a temperature of 0.001 the number 3 becomes 3000: less 3 that is 2997, and exp(2997) is infinite. From "
        "scores near 10,000, divided by √2, 10,000 is far too much: every exponential is 0, and 0 / 0 is NaN.",
    ),
    MistakeText(
        "SX53",
        "The maximum ran along another axis than the sum; take both along the same axis, so that a whole slice loses the same number.",
        "Subtracting the same c from a whole slice multiplies all its exponentials by exp(−c), which the division removes. Different "
        "numbers within a slice do not cancel: maxima of the columns change the ratios within a row, and a maximum along a fixed axis is "
        "wrong as soon as the call names another one.",
    ),
    MistakeText(
        "SX33",
        "The logarithm was taken with base 2 or 10; the natural one is asked for.",
        "Softmax is made of e, and in base e its logarithm is a plain difference. For one half it is −0.693; base 2 gives −1 and base 10 "
        "gives −0.301. The unit that goes with e is the nat, with base 2 the bit: 1 bit is 0.693 nats.",
    ),
    MistakeText(
        "AB33",
        "The weights were normalized once more, by softmax or by their sum; use them as they are.",
        "Softmax has made them already. It takes what it is given for scores, and weights lie between 0 and 1: softmax of such numbers is "
        "much more even, (0.9, 0.1) becomes (0.69, 0.31), and no key can get more than e times the weight of another. A function that "
        "divides its input by its sum hides mistakes made before it.",
    ),
    MistakeText(
        "SX43",
        "The term diag(p) is missing: p pᵀ alone was used; the Jacobian should be diag(p) − p pᵀ.",
        "As score j rises, weight i falls at the rate p_i p_j. With its own score it grows, by p_i − p_i²: diag(p) adds the p_i. For a "
        "saturated row (1, 0) nothing can move and the Jacobian is 0, while p pᵀ still has a 1.",
    ),
    MistakeText(
        "SX44",
        "Off the diagonal the sign is wrong; the entries there should be −p_i p_j, for p pᵀ is subtracted from diag(p).",
        "Raising one score takes weight from all others, so their derivatives are negative. Each row sums to 0, because adding the same "
        "to all scores changes no weight. With two equal weights the entries are ±¼.",
    ),
    MistakeText(
        "SX46",
        "A diagonal matrix was used for softmax's Jacobian; it is diag(p) − p pᵀ, with −p_i p_j off the diagonal.",
        "Every score moves every weight: when score j rises, its own weight grows at the rate p_j (1 − p_j), and every other weight p_i "
        "falls at the rate p_i p_j. With diag(p) alone the weights would no longer sum to 1. For two equal weights all four entries are "
        "±¼; the diagonal p(1 − p) alone has a norm of 0.354 in place of 0.5.",
    ),
    MistakeText(
        "CE8",
        "An axis of length 1 was left over; the result should have one axis less than what came in.",
        "`np.take_along_axis`, and `keepdims=True` in a sum, keep the axis along which they go. That is for results that are then "
        "combined with the array they came from. `[..., 0]`, `.squeeze(-1)` or a sum without `keepdims` drops it.",
    ),
    MistakeText(
        "AB20",
        "Softmax is missing: the scores themselves were used where their weights, or the logarithms of these, belong.",
        "Scores may be negative and sum to anything, and adding 100 to a whole row changes no weight. Softmax turns each row into "
        "weights that sum to 1. The values are averaged with these, and the formulas p − y, diag(p) − p pᵀ and −ln p[target] are written "
        "in them, too: scores in their place give numbers of any size.",
    ),
    MistakeText(
        "AB3",
        "Two projections, or all three, were made with one matrix; make each with its own: w_q, w_k, w_v.",
        "A copied line often keeps its weight. With k equal to q the scores are symmetric: what the first token is to the second, the "
        "second is to the first. Keys say where to look and values what is passed on, and d_v may differ from d_k. The matrix that is "
        "left out learns nothing.",
    ),
    MistakeText(
        "AB8",
        "The code takes inputs of one fixed number of axes; any number of leading axes, and none, should do.",
        "`B, T, d = x.shape`, `rows, keys = x.shape`, loops over the rows of a table, and einsum letters without `...` fit one number of "
        "axes and nothing else. The last two can be had without knowing the others, `x.shape[-2]` and `x.shape[-1]`, and `sum(axis=-1)` "
        "or `x @ w` take one row, a table or a batch as they are.",
    ),
    MistakeText(
        "AB15",
        "A matrix was reshaped where it should be transposed: the shape fits, and the numbers stand in other places.",
        "`reshape` and `view` keep the order of the numbers in memory and only cut the rows elsewhere: the first column of reshaped keys "
        "holds parts of several keys. A transpose puts the number of row i, column j into row j, column i. Both turn (2, 3) into (3, 2).",
    ),
    MistakeText(
        "AB16",
        "The axes of k were exchanged in a way that fits one number of axes alone; swap the last two: `swapaxes(-1, -2)`.",
        "`k.T` reverses all axes, the batch axis too: a (2, 3, 4) array becomes (4, 3, 2), and the product fails; a (4, 4, 4) array stays "
        "(4, 4, 4), and the product is wrong without any error. `transpose(0, 2, 1)` in NumPy and `transpose(1, 2)` in torch count from "
        "the front, which is right for one batch axis, and `torch.bmm` takes three axes and no other number. `k.swapaxes(-1, -2)` or "
        "`k.mT`, with `@`, leaves the leading axes where they are.",
        issue="flrngel/Self-Attentive-tensorflow#3",
    ),
    MistakeText(
        "AB22",
        "The weights were transposed before the product with v; row i of the weights should belong to query i.",
        "Output row i is the sum over keys j of weights[i, j] · v[j]. Transposed, the sum runs over the queries. It runs without an error "
        "where there are as many queries as keys.",
    ),
    MistakeText(
        "NT7",
        "The returned weights were cut from the graph, so no loss on them trains anything; return them with their graph.",
        "The output still has its graph; the weights do not, since they were detached before they were returned. To plot them, detach "
        "them later.",
    ),
    MistakeText(
        "NT8",
        "The weights were returned first; the output should come first, then the weights.",
        "Callers unpack by position. Both are arrays, so no error is raised until the shapes differ, and a caller takes weights for "
        "output.",
    ),
    MistakeText(
        "NT9",
        "Something was turned into another precision on the way and stayed so; the result should have the input's precision.",
        "`.float()` means float32: on float64 inputs it throws digits away, and beside modules of another precision torch refuses to "
        "multiply. A float64 tensor with at least one axis, such as `torch.tensor([8.0], dtype=torch.float64)`, turns what it divides "
        "into float64, and so does `.double()`; a Python number from `math.sqrt` does not. In NumPy it happens with a float64 array or "
        "`np.asarray(x, dtype=float)`. A model in float32 then carries on in float64, at twice the memory. Who computes in another "
        "precision casts the results back.",
    ),
    MistakeText(
        "MA1",
        "The wrong triangle was kept, so each query sees its future and not its past; keep the lower one.",
        "Row i is query i, column j is key j. The past of query i lies to the left of the diagonal, in the lower triangle: `tril`. With "
        "`triu` the first token sees everything and the last at most itself. A mask of what is hidden is the other triangle, without the "
        "diagonal: `triu(1)`.",
    ),
    MistakeText(
        "MU11",
        "An axis was inserted into the mask, or two were exchanged; use it as it is: its axes are matched from the right.",
        "The last two axes of a mask are queries and keys. Transposed, one of shape (B, 1, T_k) becomes (B, T_k, 1), which hides queries "
        "and no key; one of (T_q, T_k) no longer fits, or a query sees the wrong keys. Three axes beside four are heads, queries and keys: "
        "with an axis put into it, (H, T_q, T_k) becomes (H, 1, T_q, T_k), which has a mask for each *item*, or does not fit. A caller "
        "with a mask for each item passes (B, 1, T_q, T_k).",
    ),
    MistakeText(
        "MA37",
        "Without a mask a causal one was used; each query should see every key unless a mask is passed.",
        "Attention itself has no order. A function that masks of its own accord cannot serve an encoder, which sees both sides. A causal "
        "mask belongs to models that predict the next token (lesson 06), and who wants one passes it.",
    ),
    MistakeText(
        "TT1",
        "A division by √d_k was built in; none is asked for here.",
        "Scaling is a step of its own: of the scores, or inside attention. If both do it, the scores are divided twice. And where the "
        "caller passes a factor, it is the only one: 1, 1/√d_k as in lesson 01, or any other number.",
    ),
    MistakeText(
        "SL7",
        "The scores were divided by the factor that is passed; they should be multiplied by it.",
        "The caller passes a factor, such as a sharpness of 2 or a scale of 1/√d_k. What divides the scores is called a temperature "
        "(lesson 02): at 0 there would be nothing to divide by.",
    ),
    MistakeText(
        "QF1",
        "The right key gets the largest weight, but nothing makes it reach the share: make the query as long as keys and share ask for.",
        "Softmax looks at differences of scores: made larger, the same direction gives any share below 1. How large the lead has to be "
        "depends on the share and on how many keys there are, and the dot products are √d times that. A key times a fixed number is not "
        "enough everywhere: if all keys are a hundred times shorter, its scores are ten thousand times smaller. The query also has to be "
        "longer where another key is near. Measure the lead, or make the scores larger in a loop until the weight is large enough.",
    ),
    MistakeText(
        "FF8",
        "The tolerance was too wide, so small errors went unnoticed; every difference above the one that the task allows counts.",
        "Weights rounded to three decimals are off by up to 0.0005, and some leaks are as small as 2e-6. Rounding alone is far smaller: "
        "below 1e-7 in float32, about 1e-16 of the numbers in float64. `allclose` allows 1e-5 of each number unless told otherwise: with "
        "`rtol=0`, `atol` alone counts.",
    ),
    MistakeText(
        "FF9",
        "Every difference counted, rounding too; allow the small one that the task names.",
        "A loop, a logarithm, a float32 result or a sum over more numbers rounds differently in the last digits, even where what was "
        "added is 0. That is right all the same. Ask for more than rounding, and for less than any real error.",
    ),
    MistakeText(
        "GB18",
        "A factor or a sign is wrong in the way back through softmax, or all of it is missing; it should be weights ⊙ (grad_weights − "
        "the row's weighted mean).",
        "Multiplied out it is weights · grad_weights − weights · mean: each term has one factor of the weights. Without the factor in "
        "front, a key of weight 0 still gets a gradient, although moving its score a little changes nothing. A score that rises takes "
        "from all other weights of its row: hence the minus sign before the mean. With both signs reversed each score gets the opposite "
        "of its gradient.\n\n"
        "Take weights [0.5, 0.5] and grad_weights [1, 0]. The mean is 0.5 and the result [0.25, −0.25]. Without any factor it is "
        "[0.5, −0.5], with the factor at grad_weights alone [0, −0.5], and with a plus sign [0.75, 0.25].",
    ),
    MistakeText(
        "GB10",
        "The gradients came back in another order; (grad_q, grad_k, grad_v) is asked for.",
        "Callers unpack by position. The gradient of q has the shape of q, and so on; where sizes agree, an array is updated with "
        "another's gradient, without an error.\n\n"
        "Take 3 queries and 3 keys of width 4: grad_q and grad_k are both (3, 4), and only the numbers tell them apart.",
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
    MistakeText(
        "MU21",
        "Hidden keys were removed only after exp, whose maximum may be a hidden score; what is left may sum to 0.",
        "Where all visible scores lie far below a hidden one, softmax gives the hidden key everything and rounds the visible "
        "weights to 0. Their sum is then 0, and 0 / 0 is NaN. A softmax by hand that subtracts a maximum taken over the hidden "
        "scores as well fails in the same way.\n\n"
        "Take the scores [0, 1] and a hidden one of 200. Softmax of all three gives [0, 0, 1] in float32. Masked first, it gives "
        "[0.2689, 0.7311, 0].",
    ),
    MistakeText(
        "AB1",
        "Weights were transposed (by `w.T`, `F.linear`, `np.inner` or the letters of einsum); use them as they are, in `x @ w`.",
        "The last axis of x, d_model, meets the first axis of the weights. `nn.Linear` stores its weight the other way round, "
        "(d_out, d_in), and so computes x @ weightᵀ (lesson 05). With d_k = d_model both forms run, and only one is right.",
    ),
    MistakeText(
        "FF4",
        "A NaN went unnoticed: `NaN > 1e-6` is False; ask whether all differences are small, or for NaN by name.",
        "Every comparison with NaN is False. `not (difference <= 1e-6).all()` is True for NaN, and `(difference > 1e-6).any()` is "
        "not.",
    ),
    MistakeText(
        "BY15",
        "A float came back; a whole number of bytes is expected.",
        "Every factor is whole, and a float is exact up to 2⁵³ only.",
    ),
    MistakeText(
        "CM50",
        "The logits of the first position were used; take those of the last, which knows the whole context.",
        "Position t predicts the token after t. Only the last one predicts a token that is not there yet.",
    ),
    MistakeText(
        "CM43",
        "A graph is built for every token: put the loop under torch.no_grad().",
        "A text is never differentiated. With the graph each step keeps all its activations as long as its logits live.",
    ),
    MistakeText(
        "CM42",
        "The model is in another mode after the call, or works in another one than asked for; the caller's mode should be there at the end.",
        "A sample drawn in the middle of training then switches dropout off for all that follows, and `model.train()` switches it "
        "on in a model that was not training. Nothing reports it. What has to change the mode saves the flag first, "
        "`model.training`, and puts it back; a training step has no need to change it, since the loop around it decides.",
    ),
    MistakeText(
        "CM54",
        "A part of the text is missing from what came back; the given ids and all new ones are asked for, (B, T + max_new_tokens).",
        "Keep two things apart: the text, which grows and is returned, and the context, which slides along it. Only what is fed to "
        "the model should be cut to the last max_len tokens.",
    ),
    MistakeText(
        "MA2",
        "The mask holds numbers; a boolean one is asked for, True where attention is allowed.",
        "Numbers invite arithmetic: 0 and 1 are added or multiplied where a choice is meant, and 0 with −∞ is another convention. A"
        " boolean mask has one meaning only and works with `masked_fill` and `where`.",
    ),
    MistakeText(
        "GP51",
        "The output was divided by √d_head; nothing should be scaled after the operator, which has scaled the scores already.",
        "Left out, `scale` is 1/√d_head and acts on the scores, before softmax. The output is a weighted mean of the values.",
    ),
    MistakeText(
        "CM21",
        "A normalization acts behind a sum (post-norm), a branch, or the whole block; it should act on what goes into each branch, "
        "alone.",
        "Vaswani et al. 2017 normalize after the sum. Pre-norm, x + attn(ln1(x)), leaves a path from the input to the output on "
        "which nothing is ever rescaled, and trains without a warm-up (Xiong et al. 2020, section 3). With x + ln1(attn(x)) "
        "attention reads numbers that have grown from block to block, and the scale of what it adds is fixed by ln1. A single "
        "LayerNorm comes after the last block, and belongs to the model (lesson 10).",
    ),
    MistakeText(
        "CM22",
        "A residual connection is missing: x + attn(…), and then x + mlp(…), were asked for.",
        "Without the sum around attention a token keeps only what it gathered; without the one around mlp, what was gathered "
        "survives only if the network passes it on. With attention and mlp at zero the block should still pass x on. Where both "
        "sums are missing in a deep stack, the gradient vanishes.",
    ),
    MistakeText(
        "CM25",
        "The residual connection carries the normalized x; it should carry x itself.",
        "Overwriting x by ln1(x) puts a normalization into the residual stream, which should stay free of any.",
    ),
    MistakeText(
        "CM35",
        "`x += …` changes a tensor in place, the caller's x or one that the backward pass needs: write x = x + ….",
        "Before anything was added, x is the tensor that the caller passed: it changes with `+=`, and where it is a leaf that "
        "requires grad, torch refuses. The second normalization has kept its x to compute the gradient later. After `+=` torch "
        "finds another version of it at `backward()` and refuses; without gradients nothing shows.",
    ),
    MistakeText(
        "TI2",
        "The last tile, of keys or of queries, is dropped where it is not full.",
        "`T_k // block_size` counts full tiles alone. With 7 keys and tiles of 3 the seventh key belongs to a third tile, of one key. "
        "Where block_size exceeds T_q there is no full tile of queries at all. `range(0, T_k, block_size)` also starts the last tile; a "
        "slice ends where the tensor does, and in a kernel masks take care of what the tile has too much.",
    ),
    MistakeText(
        "TI3",
        "A tile was skipped although its later queries see some of its keys: skip only what lies in the future of the tile's *last* query.",
        "A tile that the diagonal crosses is hidden for its first queries and visible for its last. It has to be computed and masked. "
        "Only tiles that begin after the last query's own position can be left out.",
    ),
    MistakeText(
        "TI13",
        "The new maximum should be the larger of the two; it was only one side's own, the smaller one, or a soft maximum (logaddexp).",
        "Where m_new lies below what came before, exp(m − m_new) is above 1 and overflows as soon as the two lie 89 apart; within the "
        "range of float32 the result may still be right, since both sums carry the same factor. In a tile or a part in which a query "
        "sees nothing, the maximum is −∞: taken for the new one, it makes everything infinite or NaN.",
    ),
    MistakeText(
        "TI18",
        "l was not rescaled; it should get the same factor as o.",
        "l and o are both relative to the maximum. If only o is rescaled, the quotient o / l divides by a sum on another scale, and the "
        "weights no longer sum to 1.",
    ),
    MistakeText(
        "TI20",
        "Tiles that queries see were left out where there are fewer queries than keys: query i is at position i + T_k − T_q.",
        "The queries are the last positions. With 2 queries and 6 keys the last query sees all 6 keys, and a loop that ends at key 2 "
        "never gets to the others, with a causal mask or without one. The mask is right, and changes nothing about tiles that were left "
        "out. With T_q = T_k nothing shows.",
        issue="gittensor-ai-lab/sparkinfer#3",
    ),
    MistakeText(
        "TI21",
        "The running maximum was never updated: m stays −∞, and each tile forgets the ones before it. Set m = m_new at its end.",
        "What was summed before is multiplied by exp(m − m_new), and exp(−∞ − m_new) is 0: only the last tile is left. In a tile that a "
        "query may not see at all, m_new is −∞ as well, and −∞ − (−∞) is NaN.",
    ),
    MistakeText(
        "TB7",
        "The features were scaled by 1 + weight; they should be scaled by weight itself.",
        "Gemma stores its weights as differences from 1 and starts them at 0; Llama, nn.LayerNorm and nn.RMSNorm store the factors. A "
        "loader that mixes them up is off by 1 in every factor, and nothing raises.",
    ),
    MistakeText(
        "SX62",
        "This belongs to the logarithm of softmax; softmax itself has a factor p_i more in each row i.",
        "log p_i changes with score j by δ_ij − p_j, and p_i itself p_i times as much: p_i (δ_ij − p_j). Backward, the first gives "
        "g − p · Σ g, and the second p · (g − Σ p g).\n\n"
        "Take p = [0.25, 0.75]. The logarithm's Jacobian is [[0.75, −0.75], [−0.25, 0.25]], softmax's [[0.1875, −0.1875], "
        "[−0.1875, 0.1875]].",
    ),
)
