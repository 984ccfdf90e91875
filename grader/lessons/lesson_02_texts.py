"""Lesson 02: what is said of the mistakes that only this lesson knows."""

from grader.model import MistakeText

TEXTS = (
    MistakeText("SX1", "The argument `axis` is not used: the last axis is always taken.",
        "Along the last axis the result is right, so a test with rows alone cannot tell. Asked for axis=0, the columns have to sum "
        "to 1, and here the rows still do.",
        "e.sum(axis=-1, keepdims=True)", "e.sum(axis=axis, keepdims=True)"),
    MistakeText("SX2", "The exponential is missing: the numbers were divided by their sum.",
        "Dividing by the sum makes them add up to 1, and keeps negative ones negative. For (1, −1, 2) it gives (½, −½, 1), which "
        "is no set of weights; where the sum is 0 it divides by 0.",
        "x / x.sum(axis=axis, keepdims=True)", "e = np.exp(x - x.max(axis=axis, keepdims=True))\ne / e.sum(axis=axis, keepdims=True)"),
    MistakeText("SX3", "float32 went in and float64 came out.",
        "A model in float32 then carries on in float64 from here, at twice the memory. It happens with a float64 array or "
        "`np.asarray(x, dtype=float)` on the way. Cast back with `.astype(x.dtype)` where the input was a float.",
        "e = np.exp(np.asarray(x, dtype=float))", "e = np.exp(x - x.max(axis=axis, keepdims=True))  # keeps float32"),
    MistakeText("SX4", "The mean was subtracted; only the maximum keeps every exponent at or below 0.",
        "Any shift leaves the weights alone, and only the maximum makes overflow impossible. With (0, 3000) the mean is 1500 and "
        "exp(1500) overflows; with an entry of −∞ the mean is −∞ and everything is NaN.",
        "x - x.mean(axis=axis, keepdims=True)", "x - x.max(axis=axis, keepdims=True)"),
    MistakeText("SX5", "x itself was changed: `-=` and `/=` write into the caller's array.",
        "The weights are right and the scores that the caller still needs are gone. `x = x - top` makes a new array; "
        "`x -= top` does not. In an array of whole numbers `/=` stops with a UFuncTypeError: fractions have no place in it.",
        "x -= x.max(axis=axis, keepdims=True)", "x = x - x.max(axis=axis, keepdims=True)"),
    MistakeText("SX7", "The base is 2; softmax uses e.",
        "2ˣ = e^(0.693·x), so this is a softmax at a temperature of 1.44: flatter than it should be. For (0, 1) it gives (⅓, ⅔) in "
        "place of (0.269, 0.731).",
        "2.0 ** x", "np.exp(x)"),
    MistakeText("SX8", "The exponentials were divided by their Euclidean length; they are to sum to 1.",
        "Weights share out one unit, so they are divided by their sum. Divided by the root of the sum of squares, two equal ones "
        "are 0.707 each.",
        "e / np.linalg.norm(e, axis=axis, keepdims=True)", "e / e.sum(axis=axis, keepdims=True)"),
    MistakeText("SX10", "The minimum was subtracted; the largest number still overflows.",
        "Subtracting the minimum makes every exponent positive. For scores 1000 apart exp(1000) is infinite, and ∞/∞ is NaN.",
        "x - x.min(axis=axis, keepdims=True)", "x - x.max(axis=axis, keepdims=True)"),
    MistakeText("SX23", "The largest absolute value was subtracted; it need not be the largest number.",
        "For (−1000, −999) it is 1000: both exponents fall to −2000, both exponentials to 0, and 0/0 is NaN. The absolute value of "
        "an entry of −∞ is ∞, which does the same to its whole slice.",
        "x - np.abs(x).max(axis=axis, keepdims=True)", "x - x.max(axis=axis, keepdims=True)"),
    MistakeText("SX25", "The maximum was sought from a fixed start such as 0: a slice far below it loses all its exponentials to 0.",
        "For (−1000, −999) a maximum that begins at 0 stays 0: exp(−1000) and exp(−999) are both 0, and 0/0 is NaN. It begins at "
        "the first number, or at −∞.",
        "top = 0.0\nfor number in x:\n    top = max(top, number)", "top = -math.inf\nfor number in x:\n    top = max(top, number)"),
    MistakeText("SX26", "The maxima lost their axis and broadcast across the others: keep it with `keepdims=True`.",
        "`x.max(axis=-1)` has one number a row and no axis for the columns. Broadcasting lines it up from the right, so the first "
        "row's maximum is subtracted from the first column. Where rows and columns differ in number this is an error; where they "
        "agree it runs.",
        "x - x.max(axis=-1)", "x - x.max(axis=-1, keepdims=True)"),
    MistakeText("SX27", "The sum did not run along the axis that was asked for; where none is named, that is the last.",
        "With `axis=0` in the code, or as the default, the columns sum to 1 where the rows should. For as many rows as columns no "
        "shape tells, and a single row gets the weight 1 everywhere.",
        "e.sum(axis=0, keepdims=True)", "e.sum(axis=axis, keepdims=True)"),
    MistakeText("SX11", "The scores were multiplied by the temperature; they are divided by it.",
        "A high temperature makes the weights equal, as heat blurs. Multiplied, a high temperature makes them sharper.",
        "softmax(x * temperature)", "softmax(x / temperature)"),
    MistakeText("SX12", "The weights were divided by the temperature; the scores are.",
        "After softmax the row sums to 1, and divided by T it sums to 1/T. The temperature belongs before softmax, where it "
        "changes how the weights compare.",
        "softmax(x) / temperature", "softmax(x / temperature)"),
    MistakeText("SX13", "A temperature of 0 or below is not refused with ValueError.",
        "Dividing by 0 gives NaN, and a negative temperature turns the order around: the worst key wins. Neither raises anything "
        "by itself, so the function has to.",
        "return softmax(x / temperature)", 'if temperature <= 0:\n    raise ValueError("the temperature must be positive")'),
    MistakeText("SX14", "A negative temperature is refused, and 0 is not.",
        "0 is the likelier slip, since it reads as 'no randomness'. It divides by 0: softmax then returns NaN.",
        "if temperature < 0:", "if temperature <= 0:"),
    MistakeText("SX24", "A temperature of 0 is refused, and a negative one is not.",
        "A negative temperature divides without complaint and turns the order around: the lowest score gets the largest weight.",
        "if temperature == 0:", "if temperature <= 0:"),
    MistakeText("SX19", "The temperature has no effect: it is not used, or it cancels.",
        "At a temperature of 1 nothing shows. At 0.1 the weights have to be far sharper, at 10 far flatter. A temperature that divides "
        "the exponentials, or weights that are then shared out again, stands above and below the line and falls out.",
        "return softmax(x, axis)", "return softmax(x / temperature, axis)"),
    MistakeText("SX20", "The weights were raised to 1/T and not shared out again: they no longer sum to 1.",
        "softmax(x)^(1/T) is in the right proportions, since e^(x/T) is what it is made of. Divided by its own sum it would be "
        "right, where nothing underflows.",
        "softmax(x) ** (1 / temperature)", "softmax(x / temperature)"),
    MistakeText("SX21", "The scores were divided by the root of the temperature.",
        "√d_k is a root because of how dot products spread. A temperature divides as it stands.",
        "softmax(x / np.sqrt(temperature))", "softmax(x / temperature)"),
    MistakeText("SX22", "The temperature came after softmax, as a power of the weights: what had been rounded to 0 stays 0.",
        "softmax(x)^(1/T), shared out again, is the same on paper. For (0, −5000) at T = 10000 it should give (0.622, 0.378), "
        "but softmax has already made of it (1, 0), and no power brings the 0 back.",
        "p = softmax(x) ** (1 / temperature)\np / p.sum(axis=axis, keepdims=True)", "softmax(x / temperature)"),
    MistakeText("SX30", "The logarithm was taken after softmax, which had already rounded small weights to 0: ln 0 is −∞.",
        "e^−10000 is smaller than any float, so softmax returns exactly 0 and its logarithm is −∞, while the answer is −10000. "
        "Staying in logarithms never leaves the range: x − max − ln Σ e^(x − max).",
        "np.log(softmax(x))", "s = x - x.max(axis=axis, keepdims=True)\ns - np.log(np.exp(s).sum(axis=axis, keepdims=True))"),
    MistakeText("SX31", "A small number was added before the logarithm; it hides −∞ and caps the result near −27.",
        "ln(10⁻¹²) = −27.6, so every answer below that comes out as −27.6, finite and wrong. A loss then cannot tell a bad "
        "prediction from a terrible one.",
        "np.log(softmax(x) + 1e-12)", "s - np.log(np.exp(s).sum(axis=axis, keepdims=True))"),
    MistakeText("SX32", "Only the maximum was subtracted; the logarithm of the sum is missing.",
        "x − max puts the largest at 0, which would be a probability of 1. What remains to be subtracted is ln Σ e^(x − max). "
        "For (0, 0) both have to be −0.693.",
        "x - x.max(axis=axis, keepdims=True)", "s - np.log(np.exp(s).sum(axis=axis, keepdims=True))"),
    MistakeText("SX33", "The logarithm has base 2; the natural one is meant.",
        "softmax is made of e, and its logarithm in the same base is a plain difference: −0.693 for one half, where base 2 "
        "gives −1.",
        "np.log2(weights)", "np.log(weights)"),
    MistakeText("SX34", "The sign is reversed: logarithms of weights are negative.",
        "A weight is at most 1, its logarithm at most 0. Minus the logarithm is a loss, a useful thing with another name.",
        "-np.log(softmax(x))", "s - np.log(np.exp(s).sum(axis=axis, keepdims=True))"),
    MistakeText("SX35", "The maximum was subtracted inside the sum alone: what came off there has to come off x, too.",
        "ln Σ eˣ is max + ln Σ e^(x − max). Leaving out the max makes every answer too large by it: for (1000, 1000) it gives 999.3, "
        "where ln ½ is −0.693.",
        "x - np.log(np.exp(s).sum(axis=axis, keepdims=True))", "s - np.log(np.exp(s).sum(axis=axis, keepdims=True))"),
    MistakeText("SX40", "The sign is reversed: it is diag(p) − p pᵀ.",
        "Raising a score raises its own weight, so the diagonal p_i (1 − p_i) is positive. Reversed, learning runs uphill.",
        "np.outer(p, p) - np.diag(p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX41", "p was subtracted as a row; the product p pᵀ is a matrix.",
        "`np.diag(p) - p` broadcasts p over the rows: every entry loses p_j, where it should lose p_i p_j. Its rows sum to p_i − 1 "
        "and not to 0.",
        "np.diag(p) - p", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX42", "softmax was taken once more: p already is its output.",
        "The Jacobian is written in the weights. A second softmax makes them nearly equal: (0.9, 0.1) becomes (0.69, 0.31), and "
        "the matrix belongs to another point.",
        "p = softmax(p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX43", "The diagonal diag(p) is missing: only −p pᵀ came back.",
        "−p_i p_j is what one weight loses to another. The diagonal adds what a weight gains from its own score, p_i.",
        "-np.outer(p, p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX44", "p pᵀ was added; it is subtracted.",
        "The weights share out one unit: what one gains the others lose, so the entries off the diagonal are negative and each row "
        "sums to 0.",
        "np.diag(p) + np.outer(p, p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX45", "`p @ p` of two vectors is one number; the outer product is meant.",
        "The dot product Σ p_i² is subtracted from every entry. `np.outer(p, p)` or `p[:, None] * p` makes the matrix.",
        "np.diag(p) - p @ p", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX46", "The entries off the diagonal are missing: every score moves every weight.",
        "p(1 − p) is how a weight answers its own score, as for a sigmoid. In softmax it also answers all others, by −p_i p_j: a "
        "row then sums to 0.",
        "np.diag(p * (1 - p))", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX47", "A vector came back, p(1 − p): how each weight answers its own score, and no other.",
        "The Jacobian has a row for each weight and a column for each score. p(1 − p) is its diagonal; off it stands −p_i p_j.",
        "p * (1 - p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX48", "The identity matrix stands where diag(p) belongs.",
        "The derivative of p_i is p_i (δ_ij − p_j): the δ is multiplied by p_i as well. With the plain identity a row sums to 1 − p_i "
        "and not to 0.",
        "np.eye(len(p)) - np.outer(p, p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX49", "p was added to every entry; diag(p) has it on the diagonal alone.",
        "`p - np.outer(p, p)` broadcasts p over all rows, and `np.outer(p, 1 - p)` does it over all columns. Off the diagonal the "
        "entries are −p_i p_j, negative: what one weight gains the others lose.",
        "p - np.outer(p, p)", "np.diag(p) - np.outer(p, p)"),
    MistakeText("SX50", "p_i (δ_ij − p_j) was multiplied by p along the columns: off the diagonal −p_j² came out, not −p_i p_j.",
        "`p * M` multiplies column j by p_j, since broadcasting lines p up with the last axis. Row i is to be multiplied by p_i: "
        "`p[:, None] * M`.",
        "p * (np.eye(len(p)) - p)", "p[:, None] * (np.eye(len(p)) - p)"),
)  # fmt: skip
