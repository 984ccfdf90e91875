"""Lesson 06: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("MA1", "The triangle is the wrong one: each query sees its future and not its past.",
        "Row i is query i, column j is key j. The past of query i lies to the left of the diagonal, in the lower triangle: `tril`. With "
        "`triu` the first token sees everything and the last only itself."),
    MistakeText("MA2", "The mask holds numbers; a boolean one was asked for, True where attention is allowed.",
        "Numbers invite arithmetic: 0 and 1 are added or multiplied where a choice is meant, and 0 with −∞ is another convention. A "
        "boolean mask says only what it means and works with `masked_fill` and `where`."),
    MistakeText("MA8", "The mask is not used: every query sees every key.",
        "Without it a padded or future key receives weight like any other. During training a causal model then reads the answer from "
        "the next position, its loss falls wonderfully, and it can generate nothing."),
    MistakeText("MA18", "Hidden scores took part until after exp: where one lies far above the visible ones, these are 0 by then.",
        "A second normalisation mends the sums only while something visible is left. exp(−104) is 0 in float32: with a hidden score 104 "
        "above all that is visible the row is 0, and so is its sum. Without a guard 0 / 0 is NaN, as in a row that sees no key."),
)  # fmt: skip
