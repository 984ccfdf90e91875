"""Lesson 01: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("TT3", "K is not turned: `Q @ K` multiplies a query with the columns of K, but a key is a row.",
        "The shapes (n_q, d_k) and (n_k, d_k) only fit where n_k happens to equal d_k, and then the numbers are wrong without any "
        "error."),
    MistakeText("TT8", "The scale is taken from the number of keys; it is the length d_k of a query that counts.",
        "A dot product adds up d_k products and spreads more the more there are of them. How many keys there are has no part in it."),
    MistakeText("TT9", "The scores are divided by d_k and then by 2: `d_k ** 1 / 2` is no root.",
        "Python takes powers before divisions and divides from the left: `scores / d_k ** 1 / 2` is ((scores / d_k) / 2). Brackets "
        "around the exponent, or 0.5, give the root."),
    MistakeText("TT10", "The scale is √2 whatever d_k is: the table's d_k is written into the code.",
        "The three-token table has d_k = 2. Other queries are longer, so the scale follows d_k."),
    MistakeText("TT11", "The root is cut to a whole number: √2 became 1.",
        "`int` and `math.isqrt` drop what follows the point. Only for square numbers does it make no difference."),
    MistakeText("TT14", "The exponentials are not divided by their sum: these weights do not sum to 1.",
        "After subtracting the maximum the largest of them is exactly 1; the others come on top."),
    MistakeText("TT31", "The scores are divided by half of d_k: `(d_k ** 1 / 2)` is no root.",
        "Python takes powers before divisions, so this is (d_k ** 1) / 2. It agrees with the root for d_k = 4 alone."),
    MistakeText("TT41", "The input is changed in place: `/=` and `-=` write into the caller's array.",
        "Whoever called the function still needs those numbers. In an array of whole numbers fractions have no place: there `/=` stops "
        "with a UFuncTypeError."),
)  # fmt: skip
