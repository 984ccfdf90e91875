"""What became of a right result: mistakes that any exercise may hold (judging/outcomes.py)."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText("RS1", "The numbers were rounded before they were returned.",
        "Rounding belongs to printing. A rounded weight row no longer sums to 1, and whoever computes with the result carries the error "
        "on.\n\nThe weights 0.6652, 0.2447 and 0.0900 become 0.67, 0.24 and 0.09 with two digits. Print with `round`, or with "
        "`np.printoptions`, and return what was computed.",
        "return np.round(weights, 2)", "return weights"),
    MistakeText("RS2", "One result serves for all: along one axis every item, row or head has the result of the first one, or of the last.",
        "Typical causes are an index that stands still in a loop (`x[0]` for `x[i]`), a `return` or an assignment outside of the loop, and "
        "an operation on one slice whose result is then broadcast. A batch of one item does not show it.\n\nWith two items whose results "
        "are [1, 2] and [3, 4], the result is [[1, 2], [1, 2]].",
        "for i in range(n):\n    result[i] = f(x[0])", "for i in range(n):\n    result[i] = f(x[i])"),
    MistakeText("RS3", "Every number has the wrong sign.",
        "Only the sign differs from what was expected, so the rest of the way is right. Look for a difference taken the other way round "
        "(`a - b` for `b - a`) or a minus sign that is missing or stands twice.",
        "return -result", "return result"),
    MistakeText("RS4", "A part was never filled: along one axis the first or the last entry, or all but one of them, is still 0.",
        "A loop ends too early or begins too late, or returns on its first turn. `range(n - 1)` ends at n − 2, and `range(1, n)` begins "
        "at the second.\n\nFor three rows, `for i in range(3 - 1)` fills rows 0 and 1, and row 2 stays 0.",
        "for i in range(n - 1):", "for i in range(n):"),
    MistakeText("RS5", "The results are right and stand one place off along an axis.",
        "Each result stands where its neighbor belongs. Look at where a list is appended to, before or after the update, and at indices "
        "with + 1 or − 1.",
        "result[i + 1] = f(x[i])", "result[i] = f(x[i])"),
    MistakeText("RS6", "The results are right and stand in reverse order along an axis.",
        "The axis was walked from its end, or `flip` or `[::-1]` was applied once too often.",
        "return result[::-1]", "return result"),
    MistakeText("RS7", "Two axes of the result are exchanged.",
        "The numbers are right; the axes are not in the order that the exercise asks for. Where both axes have the same length nothing "
        "but the numbers tells.\n\n[[1, 2], [3, 4]] came back as [[1, 3], [2, 4]].",
        "return result.swapaxes(-1, -2)", "return result"),
    MistakeText("RS8", "An axis of length 1 was removed: a bare `squeeze()` takes every one of them, the batch's included.",
        "With one item, one head or one query, that axis is part of the shape that was asked for. Name the axis that is to go, "
        "`squeeze(-1)`, or index it, `[..., 0]`.",
        "return result.squeeze()", "return result.squeeze(-1)"),
    MistakeText("RS9", "The result is that of an earlier call with inputs of the same shapes.",
        "Something was kept from one call to the next: a cache by shape, a default argument that is changed, a global that is filled "
        "once, an attribute of the module. The first call is right and later ones repeat it.",
        "if key not in cache:\n    cache[key] = f(x)\nreturn cache[key]", "return f(x)"),
    MistakeText("RS10", "The same numbers come back, whatever the inputs are.",
        "Nothing that comes back depends on the parameters. Either an example's answer is written into the code, or the code reads the "
        "notebook's own Q, K and V in place of its parameters.",
        "return np.array([[0.4, 0.4, 0.2]])", "return weights @ values"),
    MistakeText("RS11", "Results pile up along an axis: each entry holds the sum of those before it as well.",
        "An accumulator is set to 0 once, before the outer loop, and has to be set to 0 for each of its turns.\n\nFor the rows 1, 2 and 3 "
        "the result is 1, 3 and 6.",
        "total = 0\nfor row in rows:\n    for x in row:\n        total += x", "for row in rows:\n    total = 0\n    for x in row:\n        total += x"),
    MistakeText("RS12", "The result is off by a factor: it was multiplied or divided by the length of one of its axes.",
        "Typical causes are `mean` where a sum was asked for, a sum where a mean was, and a division that is made twice.",
        "return x.mean(axis=-1)", "return x.sum(axis=-1)"),
    MistakeText("RS14", "All numbers are right; what should be refused is refused by another exception than the one that was asked for.",
        "Whoever calls the function catches the exception that its description names. An `assert` raises AssertionError and vanishes under "
        "`python -O`.",
        'assert temperature > 0, "…"', 'if temperature <= 0:\n    raise ValueError("…")'),
    MistakeText("RS15", "All numbers are right; what should be refused is computed all the same.",
        "Inputs for which there is no right result should raise, so that the error is seen where it is made and not three functions later.",
        "return x / temperature", 'if temperature <= 0:\n    raise ValueError("…")\nreturn x / temperature'),
    MistakeText("RS16", "All numbers are right, and an input was changed on the way.",
        "`x -= y`, `x[mask] = …` and functions that end in `_` write into the array that the caller still holds. A second call then gets "
        "other numbers.",
        "scores -= scores.max()", "scores = scores - scores.max()"),
)
