"""What the walk-throughs ought to print for the first token: an answer, so that its mistakes are values."""

import numpy as np

from grader.course.declare import Case, exercise, mistake

WHOLE = [[5.0, 5.0], [6.0167, 3.9833], [6.2762, 3.7238]]  # the outputs of all three tokens


@exercise(kind="answer", points=2, minutes=7, difficulty=2, result_type="answer", rtol=0.0, atol=0.01)
class corrected_first_row:
    """Give the two numbers that ought to be printed as the first token's output."""

    def cases(rng):
        yield Case("answer", "the first token's output", probe="answer")

    hints = (
        "Each row of V sums to 10, and the weights sum to 1. What does every output then sum to?",
        "The first row of the output of `three_token_attention(Q, K, V)` has the two numbers. By hand: 10 times the "
        "first weight plus 5 times the third, and 10 times the second plus 5 times the third.",
        "```python\noutput, weights = three_token_attention(Q, K, V)\ncorrected_first_row = output[____]\n```",
    )

    mistakes = {
        "TT34": mistake(
            [5.3, 4.2],
            [5.0, 4.0],
            [5.3, 4.7],
            [5.8, 4.2],
            [6.0, 4.0],
            says="A printed result was given, or one of its numbers and what it lacks to 10; compute both numbers from the weights.",
            why="""Every row of V sums to 10 and the weights sum to 1, so every output sums to 10. [5.3, 4.2] sums to 9.5.
            [5, 4] sums to 9: its 4 is 0.4 · 10, without 0.2 · 5. The sum tells that something is wrong, not what. Each
            number is 10 times a weight plus 5 times the third weight.""",
        ),
        "TT36": mistake(
            [0.4011, 0.4011, 0.1978],
            [0.4223, 0.4223, 0.1554],
            [0.4011, 0.1978],
            says="Weights were given; the first token's output is asked for, two numbers: the values, blended with all three weights.",
            why="""output = weights @ V: 10 times the first weight plus 5 times the third, and likewise for the second
            number. The weights are [0.4011, 0.4011, 0.1978]. [0.42, 0.42, 0.16] is what softmax gives without the scale, for
            [1, 1, 0] before the division by √2.""",
        ),
        "TT38": mistake(
            [4.0111, 4.0111],
            says="The third token's share is missing: add 5 times the third weight to each number.",
            why="The third value is [5, 5], so both numbers gain 5 times the third weight.",
        ),
        "TT46": mistake(
            WHOLE,
            np.array(WHOLE),
            [6.0167, 3.9833],
            [5.0, 6.0167],
            [5.0, 6.0167, 6.2762],
            says="""Another part of the outputs was given: a column, another token's row, or all rows; the first token's row,
            `output[0]`, is asked for.""",
            why="""`three_token_attention` returns (output, weights). Row i of the output belongs to query i, and counting
            starts at 0. `output[:, 0]` has the first number of every token.""",
        ),
        "SM1": [3.4714, 5.0],
    }
