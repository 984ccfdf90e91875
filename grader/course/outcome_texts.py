"""What is said of mistakes that any exercise of any course may hold, told by what became of a right result (judging/symptoms.py)."""

from grader.course.spec import MistakeText

# Each explains all that was observed.
OUTCOMES = (
    MistakeText(
        "RS1",
        "The numbers were rounded before they were returned; return them as they were computed.",
        "Round only what you print. A rounded row of weights no longer sums to 1, and every later step computes with the error.\n\n"
        "With two digits the weights 0.6652, 0.2447 and 0.0900 become 0.67, 0.24 and 0.09. Print with `round` or within "
        "`np.printoptions(precision=2)`, and return what was computed.",
        "return np.round(weights, 2)",
        "return weights",
    ),
    MistakeText(
        "RS2",
        "One result serves for all: along one axis every entry has the result of the first one, or of the last.",
        "Typical causes are an index that stays the same in a loop (`x[0]` for `x[i]`), a `return` or an assignment outside of it, and "
        "an operation on one slice whose result is then broadcast. A batch of one item does not show it.\n\nWith two items whose results "
        "are [1, 2] and [3, 4], the result is [[1, 2], [1, 2]].",
        "for i in range(n):\n    result[i] = f(x[0])",
        "for i in range(n):\n    result[i] = f(x[i])",
    ),
    MistakeText(
        "RS3",
        "Every number has the wrong sign.",
        "Only the sign differs from what was expected, so the rest of the way is right. Look for a difference that was taken the other way "
        "round, `a - b` for `b - a`, and for a minus sign that is missing or written twice. A gradient says how the loss grows; "
        "the minus of gradient descent belongs to the step.",
        "return -result",
        "return result",
    ),
    MistakeText(
        "RS4",
        "A part was never filled: along one axis the first or the last entry, or all but one of them, is still 0.",
        "A loop ends too early or begins too late, or it returns on its first turn. `range(n - 1)` ends at n − 2, and `range(1, n)` begins "
        "with the second entry.\n\nFor three rows, `for i in range(3 - 1)` fills rows 0 and 1. Row 2 keeps the zeros with which the "
        "result was made.",
        "for i in range(n - 1):\n    result[i] = f(x[i])",
        "for i in range(n):\n    result[i] = f(x[i])",
    ),
    MistakeText(
        "RS5",
        "The results are right, but each is one place off along an axis.",
        "Each result is where its neighbor belongs. Check whether a list is appended to before or after the update, and look at indices "
        "with + 1 or − 1. An index of −1 raises no error in Python; it means the last entry.\n\nThe rows a, b and c came back as c, a and b, "
        "or with a row of zeros in front.",
        "result[i + 1] = f(x[i])",
        "result[i] = f(x[i])",
    ),
    MistakeText(
        "RS6",
        "The results are right but in reverse order along an axis.",
        "The numbers are right. The axis was walked from its end, or `flip` or `[::-1]` was applied once too often. A list that grows by "
        "`insert(0, …)` is in reverse order, too.\n\nThe rows a, b and c came back as c, b and a. Where all rows are equal, nothing "
        "shows it.",
        "return result[::-1]",
        "return result",
    ),
    MistakeText(
        "RS7",
        "Two axes of the result are exchanged.",
        "The numbers are right, but the axes are not in the order that was asked for. Where both axes have the same length, no error is "
        "raised, and only the numbers show it.\n\n[[1, 2], [3, 4]] came back as [[1, 3], [2, 4]]. Write the shape of the result "
        "next to the shapes of its factors, and see which factor brings which axis.",
        "return result.swapaxes(-1, -2)",
        "return result",
    ),
    MistakeText(
        "RS8",
        "An axis of length 1 was removed, as a bare `squeeze()` does with every one; the result should keep it.",
        "With one item, one head or one query, that axis is part of the shape that was asked for. A plain `squeeze()` removes it whenever "
        "it happens to have length 1, so a batch of two works and a batch of one does not.\n\nName the axis that has to go, "
        "`squeeze(-1)`, or index it, `[..., 0]`.",
        "return result.squeeze()",
        "return result.squeeze(-1)",
    ),
    MistakeText(
        "RS9",
        "The result is that of an earlier call with inputs of the same shapes.",
        "Something was kept from one call to the next: a cache whose key is a shape, a default argument that is changed, a global that is "
        "filled once, an attribute of the module. The first call is right, and later ones repeat it.\n\nA model is called with new "
        "numbers of the same shape at every step of its training.",
        "if key not in cache:\n    cache[key] = f(x)\nreturn cache[key]",
        "return f(x)",
    ),
    MistakeText(
        "RS10",
        "The same numbers come back, whatever the inputs are.",
        "Nothing that comes back depends on the parameters. Either an example's answer is written into the code, or the code reads the "
        "notebook's own Q, K and V in place of its parameters. Then the first experiment may agree and every other one differs. Use the "
        "names in the function's first line, and restart the kernel to see which names are the notebook's.",
        "return np.array([[0.4, 0.4, 0.2]])",
        "return softmax(scores) @ V",
    ),
    MistakeText(
        "RS11",
        "Results pile up along an axis: each entry holds the sum of those before it as well.",
        "An accumulator is set to 0 once, before the outer loop. It has to be set to 0 on each of that loop's turns, since each entry is a "
        "sum of its own.\n\nFor the rows 1, 2 and 3 the result is 1, 3 and 6. The first entry is right, which is why an example with one "
        "row does not show it.",
        "total = 0\nfor row in rows:\n    for x in row:\n        total += x",
        "for row in rows:\n    total = 0\n    for x in row:\n        total += x",
    ),
    MistakeText(
        "RS12",
        "The result is off by a factor: it was multiplied or divided by the length of one of its axes.",
        "Typical causes are `mean` where a sum was asked for, a sum where a mean was, and a division that is made twice. A weighted sum "
        "with weights that sum to 1 is a mean already.\n\nWith two keys and the weights ½ and ½, the values 2 and 4 give 3. Taking the "
        "mean of ½ · 2 and ½ · 4 gives 1.5.",
        "return x.mean(axis=-1)",
        "return x.sum(axis=-1)",
    ),
    MistakeText(
        "RS14",
        "Invalid input raised the wrong exception; the one that the task names is expected. All numbers are right.",
        "A caller who catches the exception that the task names does not catch another one. An `assert` raises "
        "AssertionError and vanishes under `python -O`. An exception that comes from inside NumPy or torch does not tell the caller "
        "what was wrong.\n\nTest the condition first, and raise with a sentence that says what was expected.",
        'assert temperature > 0, "…"',
        'if temperature <= 0:\n    raise ValueError("…")',
    ),
    MistakeText(
        "RS15",
        "Invalid input got a result; it should be refused with the exception that the task names. All numbers are right.",
        "Where there is no right result, an error is the right answer. Without it the mistake is found three functions later, if at "
        "all.\n\nA temperature of 0 divides by 0, and a d_model that is no multiple of num_heads silently loses numbers. Test the "
        "condition first, and raise with a sentence that says what was expected.",
        "return x / temperature",
        'if temperature <= 0:\n    raise ValueError("…")\nreturn x / temperature',
    ),
    MistakeText(
        "RS16",
        "The returned numbers are right, but an input was changed on the way; inputs should stay as they were.",
        "`x -= y`, `x[mask] = …` and methods that end in `_` write into the array that the caller still holds. A second call with the same "
        "array then gets other numbers.\n\nAfter `scores -= scores.max()` the caller's scores [3, 1] have become [0, −2]. Write "
        "`scores = scores - scores.max()`, which makes a new array, or work on a copy.",
        "scores -= scores.max()",
        "scores = scores - scores.max()",
    ),
    MistakeText(
        "RS17",
        "Everything after the decimal point was cut off; the results should keep their decimals.",
        "An array keeps the type with which it was made, and a number that is stored in it is cut to fit, without an error. "
        "`np.zeros_like(scores)` holds integers if the scores are integers, and `.astype(x.dtype)` turns a result into integers if x "
        "holds integers. Inputs of type float don't show it.\n\nThe weights 0.67 and 0.33 become 0 and 0, and the score 2.5 becomes 2. "
        "Say which type the result should have, or leave it to NumPy: `np.zeros(scores.shape)` holds floats.",
        "result = np.zeros_like(x)",
        "result = np.zeros(x.shape)",
    ),
)
# Each is true of what was observed, whose cause may be this or that.
SYMPTOMS = (
    MistakeText(
        "RS18",
        "A part of what comes back is right in every experiment, and another part is wrong.",
        "What is right needs no second look: the way up to it is right, and the slip lies behind, on the way to the part that is wrong. If "
        "weights are right and the output is not, it is the product with the values. If the result is right and a gradient is not, "
        "something cuts the graph or changes a tensor in place.\n\nPrint both parts of the experiment, and compute the wrong one from the "
        "right one by hand.",
        "return result, weights.detach()",
        "return result, weights",
    ),
    MistakeText(
        "RS19",
        "It is right in the experiments that have one thing in common, and wrong in all others.",
        "What separates the right experiments from the wrong ones says where to look. A result that is right only where two lengths are "
        "equal mixes up two axes. One that is right for a batch of one treats all items alike. One that is wrong only where an argument "
        "is given does not use it, or uses it elsewhere.\n\nTake the smallest wrong experiment and the smallest right one, and follow both "
        "line by line until they part.",
        "scores = q @ k.mT / len(q) ** 0.5",
        "scores = q @ k.mT / q.shape[-1] ** 0.5",
    ),
    MistakeText(
        "RS20",
        "The right numbers came back, each of them, and some in other places than where they belong.",
        "Each number was computed as it should be, so the slip is in what moves numbers around: `reshape` or `view` where axes should be "
        "exchanged, `repeat` for `repeat_interleave`, rows joined in another order.\n\nThe rows [1, 2] and [3, 4] with their axes exchanged "
        "are [1, 3] and [2, 4]; `reshape` never moves a number past another.",
        "return x.reshape(b, heads, t, d)",
        "return x.reshape(b, t, heads, d).transpose(1, 2)",
    ),
    MistakeText(
        "RS21",
        "The result is off by a factor that equals a size of an input, or the root of one.",
        "The factor names the slip: a sum where a mean was asked for, a mean where a sum was, a division that is made twice or left out, "
        "or a scale that comes from another axis.\n\nWith 4 keys a result that is 4 times too large was added up over the keys and not "
        "divided. With queries of 9 features a factor of 3 is a root that is missing.",
        "return total",
        "return total / n",
    ),
    MistakeText(
        "RS22",
        "The right result came back inside a tuple or a list, with other things; it should come back alone.",
        "What comes back is a contract as well: whoever calls the function uses its result at once. Return what the task names, and keep "
        "intermediate results inside.\n\n`return result, weights` gives a tuple of two, and `result` is its item 0. A comma at the end of "
        "a line, `return result,`, gives a tuple of one.",
        "return result, weights",
        "return result",
    ),
    MistakeText(
        "RS23",
        "The numbers are right and in the right order; their shape is another than was asked for.",
        "An axis of length 1 too many or too few, two axes that were not joined, or one that was not split. Compare the shape that came back "
        "with the one that was asked for, from left to right.\n\n`keepdims=True` keeps an axis of length 1, an index like `x[:1]` does so, "
        "too, and `x[0]` drops it.",
        "return x.sum(axis=-1, keepdims=True)",
        "return x.sum(axis=-1)",
    ),
    MistakeText(
        "RS24",
        "What comes back is right, and something else that was asked for does not hold.",
        "A contract is more than numbers: what should be left as it was, what should be refused, where results lie and what they keep. Nothing "
        "of it shows in the result, and it is found much later, far from its cause.\n\nThe verdict's first line says what does not "
        "hold, and for which input.",
        "model.eval()\nreturn model(x)",
        "before = model.training\nmodel.eval()\nresult = model(x)\nmodel.train(before)\nreturn result",
    ),
    MistakeText(
        "RS25",
        "In one place of the result all numbers are right; the wrong ones stand elsewhere.",
        "Where the right numbers stand says what the slip has to do with. If only the first item of a batch is right, the others are "
        "treated like it. If only the first token is right, something that each token gets from the one before it is missing. If only "
        "the diagonal is wrong, it needs a term of its own.\n\nCompute one number that is right and its neighbor that is not by hand, and "
        "look where the two ways part.",
        "state = torch.tanh(x[:, i] @ w_x) + state @ w_h",
        "state = torch.tanh(x[:, i] @ w_x + state @ w_h)",
    ),
)
TEXTS = (*OUTCOMES, *SYMPTOMS)
