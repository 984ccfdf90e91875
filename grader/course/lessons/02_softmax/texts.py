"""Lesson 02: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("SX1", "The argument `axis` is not used: the last axis is always taken.",
        "Along the last axis the result is right, so a test with rows alone cannot tell. Asked for axis=0, the columns have to sum to "
        "1, and here the rows still do."),
    MistakeText("SX4", "The mean was subtracted; only the maximum keeps every exponent at or below 0.",
        "Any shift leaves the weights alone, and only the maximum makes overflow impossible. With (0, 3000) the mean is 1500 and "
        "exp(1500) overflows; with an entry of −∞ the mean is −∞ and everything is NaN."),
    MistakeText("SX5", "x itself was changed: `-=` and `/=` write into the caller's array.",
        "The weights are right and the scores that the caller still needs are gone. `x = x - top` makes a new array; `x -= top` does "
        "not. In an array of whole numbers `/=` stops with a UFuncTypeError: fractions have no place in it."),
    MistakeText("SX10", "The minimum was subtracted; the largest number still overflows.",
        "Subtracting the minimum makes every exponent positive. For scores 1000 apart exp(1000) is infinite, and ∞/∞ is NaN."),
    MistakeText("SX23", "The largest absolute value was subtracted; it need not be the largest number.",
        "For (−1000, −999) it is 1000: both exponents fall to −2000, both exponentials to 0, and 0/0 is NaN. The absolute value of an "
        "entry of −∞ is ∞, which does the same to its whole slice."),
    MistakeText("SX25", "The maximum was sought from a fixed start such as 0: a slice far below it loses all its exponentials to 0.",
        "For (−1000, −999) a maximum that begins at 0 stays 0: exp(−1000) and exp(−999) are both 0, and 0/0 is NaN. It begins at the "
        "first number, or at −∞."),
    MistakeText("SX26", "The maxima lost their axis and broadcast across the others: keep it with `keepdims=True`.",
        "`x.max(axis=-1)` has one number a row and no axis for the columns. Broadcasting lines it up from the right, so the first row's "
        "maximum is subtracted from the first column. Where rows and columns differ in number this is an error; where they agree it "
        "runs."),
    MistakeText("SX27", "The sum did not run along the axis that was asked for; where none is named, that is the last.",
        "With `axis=0` in the code, or as the default, the columns sum to 1 where the rows should. For as many rows as columns no shape "
        "tells, and a single row gets the weight 1 everywhere."),
)  # fmt: skip
