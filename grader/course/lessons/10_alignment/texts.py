"""Lesson 10: what is said of mistakes that both of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("AL4", "The scores were divided or multiplied by a width or its root; these two scores are used as they are.",
        "The factor 1/√d_k belongs to scaled dot-product attention (Vaswani et al. 2017). Bahdanau's score is bounded by the sum of "
        "|v|, and Luong's w can learn any scale by itself. Both papers leave it out."),
    MistakeText("AL5", "A weight matrix was used transposed: here a projection is x @ w, with w of shape (width in, width out).",
        "`nn.Linear` and `F.linear` compute x @ wᵀ; these weights are stored the other way round. With square matrices nothing raises, "
        "and the numbers are wrong."),
    MistakeText("AL7", "The context was made from the projected keys; it is a weighted sum of the keys themselves.",
        "The projection serves the comparison alone. What the decoder receives has the width of the encoder's states, d_h. (Values with "
        "a projection of their own came later, with the Transformer.)"),
    MistakeText("AL8", "The scores are used as weights: softmax is missing.",
        "Scores have any sign and any sum. A context made with them grows with the length of the sentence."),
    MistakeText("AL9", "A sigmoid judges each key by itself; softmax lets the keys compete, so that the weights sum to 1.",
        "With sigmoids three good keys get a weight near 1 each, and the context is their sum, not their average."),
    MistakeText("AL11", "The context was averaged over the keys a second time: it is T times too small.",
        "The weights sum to 1, so the weighted *sum* is the average already. A `mean` divides by T once more."),
    MistakeText("AL12", "The weighted keys were summed over another axis than that of the keys.",
        "`weights[..., None] * keys` has the shape (B, T, d_h). The keys lie along axis 1; the sum over it leaves (B, d_h)."),
    MistakeText("AL17", "Something other than the largest score of its row was subtracted before exp: far above it, exp overflows.",
        "Softmax is the same whatever is subtracted from a whole row, so moderate scores show nothing. Only with the largest subtracted "
        "is every exponent at most 0. With the mean, the scores −9000, 9000 and 0 stay as they are, exp(9000) is inf, and inf / inf is "
        "NaN."),
    MistakeText("AL18", "An input was taken out of the graph, by `detach()`, `.data` or `torch.no_grad()`: no gradient reaches it.",
        "The numbers are right, and nothing behind that input can learn: a decoder whose query is detached never finds out which "
        "question it should have asked."),
    MistakeText("AL19", "The context is right, and the scores were returned beside it in place of the weights.",
        "Scores have any sign and any sum; a picture of an alignment is made of the weights, what softmax makes of the scores."),
    MistakeText("AL20", "log_softmax gives the logarithms of the weights; the weights themselves were asked for.",
        "Logarithms of weights are what a loss wants (lesson 02). They are 0 or negative, and a sum of keys weighed with them is no "
        "average."),
    MistakeText("AL21", "An axis of length 1 was left standing: the context is (B, d_h) and the weights are (B, T).",
        "The axis is a help for a product: (B, 1, T) times (B, T, d_h) gives (B, 1, d_h). Afterwards it goes, by `[:, 0]` or "
        "`.squeeze(1)`. A plain `.squeeze()` would take the batch axis, too, where B is 1."),
    MistakeText("AL22", "The weights were divided by the root of a width: nothing is to be scaled here, and weights sum to 1.",
        "A scale belongs to the scores of scaled dot-product attention, before softmax, and to neither of these two scores. Divided "
        "afterwards, every row of weights sums to less than 1, and the context shrinks by the same factor."),
)  # fmt: skip
