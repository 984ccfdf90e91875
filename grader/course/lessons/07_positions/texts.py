"""Lesson 07: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("PO1", "An odd width is not refused with ValueError.",
        "Both encodings work on pairs of columns, and an odd width leaves one column alone. Without a check the failure comes later, as "
        "a message about shapes, or not at all where something broadcasts."),
    MistakeText("PO2", "Every position is one too large: the first token stands at position 0.",
        "Counting from 1 shifts the whole table by a row. Distances stay right, so attention hardly notices, until weights or positions "
        "meet code that counts from 0."),
    MistakeText("PO3", "The base is ignored: 10000 is written into the code.",
        "The base sets how slowly the slowest pair turns. Models for long texts raise it, RoPE with 500000 for example, so it is a "
        "parameter, and 10000 only its default."),
    MistakeText("PO4", "Sine and cosine are exchanged.",
        "At position 0 every angle is 0, where the sine is 0 and the cosine 1. The encoding's first row is therefore 0, 1, 0, 1, …; and "
        "a rotation by 0 must leave a vector as it is."),
    MistakeText("PO5", "The angle is converted between degrees and radians; it already is in radians.",
        "`torch.sin` and `torch.cos` take radians, and position times frequency is meant as radians. Converting divides or multiplies "
        "every angle by 57.3."),
    MistakeText("PO6", "The exponent lost its factor 2: with i counting pairs, it is 2i/d.",
        "With i = 0, 1, …, d/2 − 1 the exponent 2i/d runs from 0 to nearly 1, and the slowest frequency is nearly 1/base. With i/d it "
        "ends at one half: the slowest pair turns √base times as fast as it should."),
    MistakeText("PO7", "The exponent has the wrong sign: the angles grow with the column.",
        "Position times base^(2i/d) turns faster from pair to pair, up to thousands of turns a step. Neighbouring positions then look "
        "unrelated. The position is divided by that power."),
    MistakeText("PO15", "All pairs turn at the same speed: each has its own frequency.",
        "One frequency returns to where it was after 2π positions and says nothing beyond. The slow pairs tell far positions apart: "
        "pair i turns by base^(−2i/d) a step."),
    MistakeText("PO18", "The exponent was divided by d/2 − 1; with i counting pairs from 0 it is i / (d/2).",
        "Divided by d/2 − 1, the exponents reach 1 and the slowest pair turns by exactly 1/base a step. Some libraries do it so, and "
        "such a model trains as well. The paper's exponent 2i/d stops one step short of 1, and with a single pair nothing divides by 0."),
    MistakeText("PO36", "The exponent was rounded down to a whole number: `//` stands where `/` belongs.",
        "The exponents −2i/d lie between −1 and 0. Rounded down, all but the first are −1: one pair turns by a full step and every "
        "other by 1/base, hardly at all. Without the minus all of them are 0."),
)  # fmt: skip
