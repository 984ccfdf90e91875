"""An answer: two numbers, whose mistakes are values."""

from grader.course.declare import Case, exercise, mistake


@exercise(kind="answer", points=2, minutes=2, difficulty=1, result_type="answer", rtol=0.0, atol=0.01)
class first_output:
    """Give the first query's output."""

    def cases(rng):
        yield Case("answer", "the first query's output", probe="answer")

    hints = ("What does each row of V sum to?", "Ask `mix`.", "```python\nfirst_output = mix(Q, K, V)[0][____]\n```")

    mistakes = {
        "MX19": mistake(
            [5.3, 4.2],
            [5.0, 4.0],
            says="The two numbers sum to less than 10, as no output can.",
            why="Each row of V sums to 10, and the weights sum to 1.",
        ),
        "MX20": mistake(
            [0.4011, 0.4011, 0.1978],
            says="These are the weights; the output is asked for.",
            why="An output has as many numbers as a value.",
        ),
        "MX21": mistake([10.0, 0.0], says="This is the first value.", why="The output is a blend of all three values."),
    }
