"""What an exception of Python, NumPy or torch most often means in these exercises, in a sentence that says where to look.

A mistake that is known by its results is named as such; this is for what ended before there was a result. What is advised
beyond the exception's own meaning is tested: against the shapes at hand in the line, and against what the source shows there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from grader.source.slips import Slip
from grader.worker.values import Failure

_NO_PRODUCT = r"matmul: Input operand|shapes .* not aligned|mat1 and mat2 shapes|size mismatch, got|batch2 tensor"
_NO_BROADCAST = r"operands could not be broadcast|size of tensor a|not broadcastable|not broadcast|non-broadcastable"
_ONE_NUMBER = r"(length-1|0-dimensional) arrays can be converted|one element tensors can be converted"
_PARAMETERS = r"required positional argument|unexpected keyword argument|positional arguments? but"
_INTO_WHOLE = r"Cannot cast ufunc|result type .* can't be cast"
_OVERWRITTEN = "modified by an inplace operation"
_NEEDS_WHOLE = re.compile(
    r"float\d*' object cannot be interpreted|tuple of ints.*float|must be (an )?int.*not float|got float"
    r"|only integers, slices|slice indices must be|indices must be integers.* not float|expected a sequence of integers"
    r"|^(repeat|expand|empty)\(\) takes 1 positional argument"
)
_OUT_OF_AXIS = r"^IndexError.*out of (bounds|range)"
Condition = Callable[[Failure, Sequence[Slip]], bool]


def _arrays(failure: Failure) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays at hand in the line."""
    return {one.name: one.shape for one in failure.shapes if one.kind == "array"}


def _fits_transposed(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether the line multiplies two arrays as they are that would go together in `@` if the second was transposed.

    What is averaged by weights is never transposed, though its lengths may allow it.
    """
    shapes = {name: shape for name, shape in _arrays(failure).items() if len(shape) > 1}
    if len(shapes) != 2:
        return False
    (a, first), (b, second) = shapes.items()
    as_they_are = re.search(
        rf"\b{re.escape(a)} *@ *{re.escape(b)}\b(?!\.|\[)|\( *{re.escape(a)}, *{re.escape(b)} *\)", failure.line
    )
    return bool(as_they_are) and "weights" not in a and first[-1] == second[-1] != second[-2]


def _turned_otherwise(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether the line turns all axes, or the first two, of an array that has more than two, and forms a product."""
    turned = re.findall(r"(\w+)\.(?:T\b|t\(\)|(?:transpose|swapaxes)\((?: *0, *1| *1, *0)? *\))", failure.line)
    shapes = _arrays(failure)
    return bool(re.search(r"@|matmul|bmm|dot", failure.line)) and any(len(shapes.get(name, ())) > 2 for name in turned)


def _was_reduced(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether the line goes on with a sum, a maximum or a mean along an axis that was not kept."""
    named = {one.name for one in failure.shapes}
    return any(
        slip.kind == "reduced" and (slip.name in named if slip.name else slip.line == failure.line) for slip in slips
    )


def _slipped(kind: str) -> Condition:
    return lambda failure, slips: any(slip.kind == kind and slip.line == failure.line for slip in slips)


def _line(pattern: str) -> Condition:
    """Whether the learner's line holds that."""
    return lambda failure, slips: bool(re.search(pattern, failure.line))


def _picks_rows(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether the only index is an array of whole numbers, other than into an identity matrix."""
    whole = {
        one.name for one in failure.shapes if one.kind == "array" and one.shape and re.search(r"\bu?int", one.said)
    }
    return "eye" not in failure.line and any(
        name in whole for name in re.findall(r"[\w)\]]\[ *(\w+) *\]", failure.line)
    )


def _dotted_batches(failure: Failure, slips: Sequence[Slip]) -> bool:
    return any(slip.kind == "numpy" and slip.name.endswith(".dot") for slip in slips)


# (what the exception's type and message hold, what is said of it, when); the first that fits counts
_ADVICE = tuple(
    (re.compile(pattern), sentence, condition)
    for pattern, sentence, condition in (
        (
            rf"{_NO_PRODUCT}|{_NO_BROADCAST}",
            "With a batch in front, only the last two axes are exchanged: `x.swapaxes(-1, -2)`, or `x.mT` in torch. `x.T` turns all "
            "axes round, and torch's `x.transpose(0, 1)` exchanges the first two.",
            _turned_otherwise,
        ),
        (
            _NO_PRODUCT,
            "`A @ B` needs A's last axis to be as long as B's second-to-last; here it is if B is transposed.",
            _fits_transposed,
        ),
        (
            _NO_PRODUCT,
            "`A @ B` needs A's last axis to be as long as B's second-to-last: compare both with the shapes on that line.",
            None,
        ),
        (
            r"einsum\(\)|does not broadcast with previously seen",
            "In einsum one letter stands for one length: the same letter names axes of different lengths here.",
            None,
        ),
        (
            r"remapped shapes",
            "In einsum one letter stands for one length: the same letter names axes of different lengths here.",
            _line("einsum"),
        ),
        (
            r"remapped shapes",
            "`np.dot` multiplies each matrix of one batch with each of the other; `@` takes them in pairs.",
            _dotted_batches,
        ),
        (
            r"remapped shapes",
            "`A @ B` multiplies along the last two axes. The axes in front of them, such as the batch, must be equal or 1.",
            None,
        ),
        (
            _NO_BROADCAST,
            "A sum or a maximum goes with its rows only if it keeps its axis: `keepdims=True` (torch: `keepdim=True`).",
            _was_reduced,
        ),
        (
            _NO_BROADCAST,
            "Shapes are matched from the right: two lengths go together if they are equal or one of them is 1.",
            None,
        ),
        (
            r"probability tensor contains",
            "`torch.multinomial` draws from probabilities: none negative, infinite or NaN. To turn logits into them, take a softmax.",
            None,
        ),
        (r"Module\.__init__\(\) call", "The `__init__` of an nn.Module begins with `super().__init__()`.", None),
        (
            r"cannot assign .* as parameter",
            "A module's parameter takes an `nn.Parameter`. To fill the one that is there, `copy_` the numbers under `torch.no_grad()`.",
            None,
        ),
        (
            r"leaf Variable that requires grad",
            "`inplace=True` overwrites a tensor whose gradient is recorded, which torch refuses: leave it out.",
            _line("inplace=True"),
        ),
        (
            r"leaf Variable that requires grad",
            "A tensor whose gradient is recorded cannot be changed in place: make a new one, `x = x + y`. Only an optimizer's step "
            "changes weights in place, under `torch.no_grad()`.",
            _line(r"weight|bias|param|\.grad\b"),
        ),
        (
            r"leaf Variable that requires grad",
            "A tensor whose gradient is recorded cannot be changed in place: make a new one, `x = x + y`.",
            None,
        ),
        (
            _OVERWRITTEN,
            "The backward pass still needs a tensor that was changed in place, by `+=`, `x[…] = …` or a method such as `add_`: make a new "
            "one, `x = x + y`.",
            None,
        ),
        (
            r"view size is not compatible",
            "`view` moves nothing in memory. Split the last axis first, (B, T, num_heads, d_head), then transpose; after a transpose "
            "`reshape` makes the copy that is needed.",
            _line("head"),
        ),
        (
            r"view size is not compatible",
            "`view` moves nothing in memory, and after a transpose or a cut such as `x[:, :-1]` the numbers don't lie next to each other: "
            "`reshape` makes the copy that is needed.",
            None,
        ),
        (
            r"is invalid for input of size|cannot reshape array",
            "The lengths of the new shape must multiply to the number of entries: check which of them is wrong.",
            None,
        ),
        (
            r"expected scalar type|same dtype|expected .* to have the same dtype",
            "Two precisions meet: give a tensor that you make the dtype of the input, `dtype=x.dtype`.",
            None,
        ),
        (r"numpy\(\) on Tensor that requires grad", "`detach()` gives the numbers without the graph.", None),
        (r"ScalarType BFloat16", "NumPy has no bfloat16: `float()` first.", None),
        (
            _INTO_WHOLE,
            "`x[…] += y` writes into x, which keeps whole numbers here: collect a result in floats, such as `np.zeros(shape)`.",
            _line(r"\] *[-+*/]="),
        ),
        (
            _INTO_WHOLE,
            "`x -= y` and `x /= y` write into x, here into whole numbers: make a new array, `x = x / y`.",
            _line(r"[-+*/]=|\w_\("),
        ),
        (
            _INTO_WHOLE,
            "What has fractions cannot be written into an array of whole numbers, or of True and False: make that an array of floats "
            "(`dtype=float`).",
            None,
        ),
        (
            r"math range error",
            "`math.exp` overflows above 709.78: a softmax first subtracts the largest score of the row.",
            None,
        ),
        (
            r"^ZeroDivisionError",
            "The divisor is 0. A sum of `math.exp` becomes 0 where every exponent is below about −745.",
            None,
        ),
        (
            r"array is 0-dimensional|tensor of dimension 0|0-dim tensor",
            "An array of shape () is a single number and has no axes: the input may come as one.",
            None,
        ),
        (
            r"AxisError|Dimension out of range|axis .* is out of bounds|too many indices",
            "The input may have more or fewer axes than the example. Counted from the right, −1 is always the last.",
            None,
        ),
        (
            r"^IndexError: tuple index out of range",
            "An array of shape () is a single number and has no axes: the input may come as one.",
            lambda failure, slips: () in _arrays(failure).values(),
        ),
        (
            r"^IndexError: tuple index out of range",
            "The input may have fewer axes than the example. Counted from the right, `x.shape[-1]` is the length of the last.",
            _line(r"shape"),
        ),
        (
            r"^IndexError: list assignment index",
            "`rows[i] = …` replaces an entry that a list has already; `rows.append(…)` adds one.",
            None,
        ),
        (
            r"^IndexError: (list|tuple|string) index",
            "A list of n entries has the indices 0 to n − 1: compare the index, or the loop's end, with its length.",
            None,
        ),
        (
            r"^IndexError: Target .* is out of bounds",
            "`F.cross_entropy` takes the logits' second axis for the classes, and targets below their number: logits (B, T, V) "
            "first become (B · T, V).",
            None,
        ),
        (
            r"^IndexError: index out of range in self",
            "An embedding of n rows takes the ids 0 to n − 1: compare its size with the ids, or positions, that it is asked for.",
            None,
        ),
        (
            _OUT_OF_AXIS,
            "An array as the only index picks whole rows. One entry of each row needs two indices: `x[np.arange(n), columns]` "
            "(torch: `torch.arange`).",
            _picks_rows,
        ),
        (
            _OUT_OF_AXIS,
            "An axis of length n has the indices 0 to n − 1: compare the index, or the loop's end, with the shapes.",
            None,
        ),
        (
            r"values to unpack",
            "The left side has more or fewer names than the right side has values: compare with the shapes.",
            None,
        ),
        (
            r"No space left on device",
            "The disk is full. While a notebook is graded, its folder holds 256 MiB and 20,000 files: write less, or remove what is no "
            "longer needed.",
            None,
        ),
        (
            r"NoneType",
            "Something here is None: the result of a function without `return`, perhaps, or an argument that was left out.",
            None,
        ),
        (
            r"truth value of an array|Boolean value of Tensor",
            "Python's own `max`, `min` and `sorted` ask whether one array is larger than another, and there are many answers; compare "
            "numbers, with `key=…`, or use the array's own `.max()`.",
            _slipped("compares"),
        ),
        (
            r"truth value of an array|Boolean value of Tensor",
            "`if` needs one True or False. Ask `mask is None`, or use `.any()` or `.all()` on the array.",
            _slipped("condition"),
        ),
        (
            r"truth value of an array|Boolean value of Tensor",
            "One True or False is needed here, and an array holds many: ask whether `.any()` or `.all()` of them are true.",
            None,
        ),
        (
            _ONE_NUMBER,
            "`torch.tensor` takes numbers, here it is given tensors: `torch.stack(rows)` makes one tensor of a list of tensors.",
            _line(r"torch\.(tensor|Tensor|as_tensor|FloatTensor|DoubleTensor)\("),
        ),
        (
            _ONE_NUMBER,
            "The functions of `math` take one number; NumPy's and torch's take a whole array.",
            _line(r"\bmath\."),
        ),
        (
            _ONE_NUMBER,
            "One number is needed here, and an array holds several. `float` and the functions of `math` take one number; NumPy's and "
            "torch's functions take a whole array.",
            None,
        ),
        (
            r"must be Tensor, not (float|int)\b",
            "torch's functions take tensors, and here one is given a number of Python's, for which there are `math.sqrt` and its like.",
            None,
        ),
        (
            r"unexpected keyword argument '(dim|keepdim)'",
            "In NumPy it is `axis=` and `keepdims=`; `dim=` and `keepdim=` are torch's.",
            _line(r"\b(keep)?dim *="),
        ),
        (
            r"unexpected keyword argument '(axis|keepdims)'|invalid combination of arguments.*\b(axis|keepdims)=",
            "In torch it is `dim=` and `keepdim=`; `axis=` and `keepdims=` are NumPy's.",
            _line(r"\b(axis|keepdims) *="),
        ),
        (
            _PARAMETERS,
            "What this line calls takes other arguments: compare them with its parameters, which of them have defaults, and `self` in a "
            "method of your own.",
            lambda failure, slips: failure.kind == "exception" and bool(failure.line),
        ),
        (
            _PARAMETERS,
            "Compare the parameters with the exercise's: their names, their order, which have defaults, and `self` in a method.",
            None,
        ),
        (
            r"^ModuleNotFoundError",
            "Grading reads the notebook alone: the code of a file of your own has to stand in a cell. A library has to be installed.",
            None,
        ),
        (
            r"^RecursionError",
            "A function calls itself, directly or through others, and nothing ends that: a recursion needs a case that returns without "
            "another call.",
            None,
        ),
        (
            r"^NameError|^UnboundLocalError",
            "Cells run once, from top to bottom: is the name bound above, spelled this way, and not only inside another function?",
            None,
        ),
    )
)


def unknown_name(failure: Failure) -> str:
    """The name that is not defined; '' where it is something else that failed."""
    found = re.match(r"name '([a-zA-Z]\w*)' is not defined", failure.message) if failure.type == "NameError" else None
    return found[1] if found else ""


def raised_by(slip: Slip, failure: Failure) -> bool:
    """Whether that `raise` raised it, and not what stands before it in its line, such as a condition that cannot be decided."""
    return failure.is_a(slip.name.rpartition(".")[2]) and (
        slip.line.startswith("raise") or failure.message in slip.line
    )


def needs_whole(failure: Failure) -> bool:
    """Whether a float was given where a length or an index is needed."""
    return bool(_NEEDS_WHOLE.search(failure.message))


def divides(failure: Failure) -> bool:
    """Whether the line divides by `/`."""
    return bool(re.search(r"(?<!/)/(?!/)", failure.line))


def overwritten(failure: Failure) -> bool:
    """Whether the backward pass missed what was changed in place."""
    return _OVERWRITTEN in failure.message


def on(failure: Failure, slips: Sequence[Slip] = ()) -> str:
    """The sentence for an exception; '' where none is known. slips: what the source of the exercise shows."""
    said = f"{failure.type}: {failure.message}"
    fitting = (
        sentence
        for pattern, sentence, when in _ADVICE
        if pattern.search(said) and (when is None or when(failure, slips))
    )
    return next(fitting, "")
