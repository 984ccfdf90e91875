"""What an exception of Python, NumPy or torch most often means in these exercises, in a sentence that says where to look.

A mistake that is known by its results is named as such; this is for what ended before there was a result. What is advised
beyond the exception's own meaning is tested: against the shapes at hand in the line, and against what the source shows there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from grader.course.spec import Case, Exercise
from grader.source.definitions import defined_names
from grader.source.slips import Slip
from grader.util.words import ELSEWHERE
from grader.worker.values import Failure

_NO_PRODUCT = r"matmul: Input operand|shapes .* not aligned|mat1 and mat2 shapes|size mismatch, got|batch2 tensor"
_NO_BROADCAST = r"operands could not be broadcast|size of tensor a|not broadcastable|not broadcast|non-broadcastable"
_NEEDS_WHOLE = re.compile(  # a float was given where a length or an index is needed
    r"float\d*' object cannot be interpreted|tuple of ints.*float|must be (an )?int.*not float|got float"
    r"|only integers, slices|slice indices must be|indices must be integers.* not float|expected a sequence of integers"
    r"|^(repeat|expand|empty)\(\) takes 1 positional argument"
)
_OVERWRITTEN = "modified by an inplace operation"


@dataclass(frozen=True)
class _Error:
    """An exception, and what the exercise's source shows, as the rules below ask about them."""

    failure: Failure
    slips: Sequence[Slip]

    def says(self, pattern: str) -> bool:
        return bool(re.search(pattern, f"{self.failure.type}: {self.failure.message}"))

    def line_has(self, pattern: str) -> bool:
        """Whether the learner's line holds that."""
        return bool(re.search(pattern, self.failure.line))

    def slip(self, kind: str) -> bool:
        """Whether the learner's line shows a slip of that kind."""
        return any(slip.kind == kind and slip.line == self.failure.line for slip in self.slips)

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays at hand in the line."""
        return {one.name: one.shape for one in self.failure.shapes if one.kind == "array"}

    def fits_transposed(self) -> bool:
        """Whether the line multiplies two arrays as they are that would go together in `@` if the second was transposed.

        What is averaged by weights is never transposed, though its lengths may allow it.
        """
        matrices = {re.escape(name): shape for name, shape in self.arrays.items() if len(shape) > 1}
        if len(matrices) != 2:
            return False
        (a, first), (b, second) = matrices.items()
        as_they_are = self.line_has(rf"\b{a} *@ *{b}\b(?!\.|\[)|\( *{a}, *{b} *\)")
        return as_they_are and "weights" not in a and first[-1] == second[-1] != second[-2]

    def transposes_batch(self) -> bool:
        """Whether the line turns all axes, or the first two, of an array that has more than two, and forms a product."""
        turned = re.findall(r"(\w+)\.(?:T\b|t\(\)|(?:transpose|swapaxes)\((?: *0, *1| *1, *0)? *\))", self.failure.line)
        return self.line_has(r"@|matmul|bmm|dot") and any(len(self.arrays.get(name, ())) > 2 for name in turned)

    def was_reduced(self) -> bool:
        """Whether the line goes on with a sum, a maximum or a mean along an axis that was not kept."""
        names = {one.name for one in self.failure.shapes}
        return any(
            slip.kind == "reduced" and (slip.name in names if slip.name else slip.line == self.failure.line)
            for slip in self.slips
        )

    def calls_dot(self) -> bool:
        return any(slip.kind == "numpy" and slip.name.endswith(".dot") for slip in self.slips)

    def picks_rows(self) -> bool:
        """Whether the only index is an array of whole numbers, other than into an identity matrix."""
        shapes = self.failure.shapes
        whole = {one.name for one in shapes if one.kind == "array" and one.shape and re.search(r"\bu?int", one.text)}
        indices = re.findall(r"[\w)\]]\[ *(\w+) *\]", self.failure.line)
        return "eye" not in self.failure.line and any(name in whole for name in indices)


# --- the rules -----------------------------------------------------------------------------------

_ONE_LETTER = "In einsum one letter stands for one length: the same letter names axes of different lengths here."
_NO_AXES = "An array of shape () is a single number and has no axes: the input may come as one."
_NEW_TENSOR = "A tensor whose gradient is recorded cannot be changed in place: make a new one, `x = x + y`."
_ALWAYS = ""
# By what the exception says: a sentence, or several, each by what else has to hold, which is something that the learner's line
# has, or a question. The first that fits counts.
_ADVICE: Mapping[str, str | Mapping[str | Callable[[_Error], bool], str]] = {
    # A product or a sum of arrays whose shapes do not go together.
    rf"{_NO_PRODUCT}|{_NO_BROADCAST}": {
        _Error.transposes_batch: (
            "With a batch in front, only the last two axes are exchanged: `x.swapaxes(-1, -2)`, or `x.mT` in torch. `x.T` turns all "
            "axes round, and torch's `x.transpose(0, 1)` exchanges the first two."
        )
    },
    _NO_PRODUCT: {
        _Error.fits_transposed: "`A @ B` needs A's last axis to be as long as B's second-to-last; here it is if B is transposed.",
        _ALWAYS: "`A @ B` needs A's last axis to be as long as B's second-to-last: compare both with the shapes on that line.",
    },
    r"einsum\(\)|does not broadcast with previously seen": _ONE_LETTER,
    r"remapped shapes": {
        "einsum": _ONE_LETTER,
        _Error.calls_dot: "`np.dot` multiplies each matrix of one batch with each of the other; `@` takes them in pairs.",
        _ALWAYS: "`A @ B` multiplies along the last two axes. The axes in front of them, such as the batch, must be equal or 1.",
    },
    _NO_BROADCAST: {
        _Error.was_reduced: "A sum or a maximum goes with its rows only if it keeps its axis: `keepdims=True` (torch: `keepdim=True`).",
        _ALWAYS: "Shapes are matched from the right: two lengths go together if they are equal or one of them is 1.",
    },
    # What torch refuses: layers, gradients, changes in place, views and dtypes; NumPy's whole numbers, too.
    r"probability tensor contains": (
        "`torch.multinomial` draws from probabilities: none negative, infinite or NaN. To turn logits into them, take a softmax."
    ),
    r"Module\.__init__\(\) call": "The `__init__` of an nn.Module begins with `super().__init__()`.",
    r"cannot assign .* as parameter": (
        "A module's parameter takes an `nn.Parameter`. To fill the one that is there, `copy_` the numbers under `torch.no_grad()`."
    ),
    r"leaf Variable that requires grad": {
        "inplace=True": "`inplace=True` overwrites a tensor whose gradient is recorded, which torch refuses: leave it out.",
        r"weight|bias|param|\.grad\b": f"{_NEW_TENSOR} Only an optimizer's step changes weights in place, under `torch.no_grad()`.",
        _ALWAYS: _NEW_TENSOR,
    },
    _OVERWRITTEN: (
        "The backward pass still needs a tensor that was changed in place, by `+=`, `x[…] = …` or a method such as `add_`: make a"
        " new one, `x = x + y`."
    ),
    r"view size is not compatible": {
        "head": (
            "`view` moves nothing in memory. Split the last axis first, (B, T, num_heads, d_head), then transpose; after a "
            "transpose `reshape` makes the copy that is needed."
        ),
        _ALWAYS: (
            "`view` moves nothing in memory, and after a transpose or a cut such as `x[:, :-1]` the numbers don't lie next to each "
            "other: `reshape` makes the copy that is needed."
        ),
    },
    r"is invalid for input of size|cannot reshape array": (
        "The lengths of the new shape must multiply to the number of entries: check which of them is wrong."
    ),
    r"expected scalar type|same dtype|expected .* to have the same dtype": (
        "Two precisions meet: give a tensor that you make the dtype of the input, `dtype=x.dtype`, and convert none to a fixed one, "
        "as `.float()` does."
    ),
    r"numpy\(\) on Tensor that requires grad": "`detach()` gives the numbers without the graph.",
    r"ScalarType BFloat16": "NumPy has no bfloat16: `float()` first.",
    r"Cannot cast ufunc|result type .* can't be cast": {
        r"\] *[-+*/]=": "`x[…] += y` writes into x, which keeps whole numbers here: collect a result in floats, such as `np.zeros(shape)`.",
        r"[-+*/]=|\w_\(": "`x -= y` and `x /= y` write into x, here into whole numbers: make a new array, `x = x / y`.",
        _ALWAYS: (
            "What has fractions cannot be written into an array of whole numbers, or of True and False: make that an array of floats "
            "(`dtype=float`)."
        ),
    },
    # Numbers out of range, axes and indices.
    r"math range error": "`math.exp` overflows above 709.78: a softmax first subtracts the largest score of the row.",
    r"^ZeroDivisionError": "The divisor is 0. A sum of `math.exp` becomes 0 where every exponent is below about −745.",
    r"array is 0-dimensional|tensor of dimension 0|0-dim tensor": _NO_AXES,
    r"AxisError|Dimension out of range|axis .* is out of bounds|too many indices": (
        "The input may have more or fewer axes than the example. Counted from the right, −1 is always the last."
    ),
    r"^IndexError: tuple index out of range": {
        lambda error: () in error.arrays.values(): _NO_AXES,
        "shape": "The input may have fewer axes than the example. Counted from the right, `x.shape[-1]` is the length of the last.",
    },
    r"^IndexError: list assignment index": "`rows[i] = …` replaces an entry that a list has already; `rows.append(…)` adds one.",
    r"^IndexError: (list|tuple|string) index": (
        "A list of n entries has the indices 0 to n − 1: compare the index, or the loop's end, with its length."
    ),
    r"^IndexError: Target .* is out of bounds": (
        "`F.cross_entropy` takes the logits' second axis for the classes, and targets below their number: logits (B, T, V) first "
        "become (B · T, V)."
    ),
    r"^IndexError: index out of range in self": (
        "An embedding of n rows takes the ids 0 to n − 1: compare its size with the ids, or positions, that it is asked for."
    ),
    r"^IndexError.*out of (bounds|range)": {
        _Error.picks_rows: (
            "An array as the only index picks whole rows. One entry of each row needs two indices: `x[np.arange(n), columns]` "
            "(torch: `torch.arange`)."
        ),
        _ALWAYS: "An axis of length n has the indices 0 to n − 1: compare the index, or the loop's end, with the shapes.",
    },
    # Values of the wrong kind or number, arguments and names.
    r"values to unpack": "The left side has more or fewer names than the right side has values: compare with the shapes.",
    r"No space left on device": (
        "The disk is full. While a notebook is graded, its folder holds 256 MiB and 20,000 files: write less, or remove what is "
        "no longer needed."
    ),
    r"NoneType": "Something here is None: the result of a function without `return`, perhaps, or an argument that was left out.",
    r"truth value of an array|Boolean value of Tensor": {
        lambda error: error.slip("compares"): (
            "Python's own `max`, `min` and `sorted` ask whether one array is larger than another, and there are many answers; "
            "compare numbers, with `key=…`, or use the array's own `.max()`."
        ),
        lambda error: error.slip("condition"): (
            "`if` needs one True or False. Ask `mask is None`, or use `.any()` or `.all()` on the array."
        ),
        _ALWAYS: "One True or False is needed here, and an array holds many: ask whether `.any()` or `.all()` of them are true.",
    },
    r"(length-1|0-dimensional) arrays can be converted|one element tensors can be converted": {
        r"torch\.(tensor|Tensor|as_tensor|FloatTensor|DoubleTensor)\(": (
            "`torch.tensor` takes numbers, here it is given tensors: `torch.stack(rows)` makes one tensor of a list of tensors."
        ),
        r"\bmath\.": "The functions of `math` take one number; NumPy's and torch's take a whole array.",
        _ALWAYS: (
            "One number is needed here, and an array holds several. `float` and the functions of `math` take one number; NumPy's and "
            "torch's functions take a whole array."
        ),
    },
    r"must be Tensor, not (float|int)\b": (
        "torch's functions take tensors, and here one is given a number of Python's, for which there are `math.sqrt` and its like."
    ),
    r"unexpected keyword argument '(dim|keepdim)'": {
        r"\b(keep)?dim *=": "In NumPy it is `axis=` and `keepdims=`; `dim=` and `keepdim=` are torch's."
    },
    r"unexpected keyword argument '(axis|keepdims)'|invalid combination of arguments.*\b(axis|keepdims)=": {
        r"\b(axis|keepdims) *=": "In torch it is `dim=` and `keepdim=`; `axis=` and `keepdims=` are NumPy's."
    },
    r"required positional argument|unexpected keyword argument|positional arguments? but": {
        lambda error: error.failure.kind == "exception" and bool(error.failure.line): (
            "What this line calls takes other arguments: compare them with its parameters, which of them have defaults, and "
            "`self` in a method of your own."
        ),
        _ALWAYS: "Compare the parameters with the exercise's: their names, their order, which have defaults, and `self` in a method.",
    },
    r"^ModuleNotFoundError": (
        "Grading reads the notebook alone: the code of a file of your own has to stand in a cell. A library has to be installed."
    ),
    r"^FileNotFoundError": "Grading reads the notebook alone: a file beside it is not there. What you need of it has to stand in a cell.",
    r"^RecursionError": (
        "A function calls itself, directly or through others, and nothing ends that: a recursion needs a case that returns "
        "without another call."
    ),
    r"^NameError|^UnboundLocalError": (
        "Cells run once, from top to bottom: is the name bound above, in a cell that comes to its end, spelled this way, and not only "
        "inside another function?"
    ),
}


def unknown_name(failure: Failure) -> str:
    """The name that is not defined; '' where it is something else that failed."""
    match = re.match(r"name '([a-zA-Z]\w*)' is not defined", failure.message) if failure.type == "NameError" else None
    return match[1] if match else ""


def ungraded_name(exercise: Exercise, case: Case, failure: Failure) -> str:
    """What comes first where a name is one of the course's demonstrations; where a parameter is called nearly so, that it is none."""
    name = unknown_name(failure)
    if not name or name not in _ungraded_names(exercise):
        return ""
    near = get_close_matches(name, case.names, 1, 0.7)
    another = f"`{name}` is no parameter (is `{near[0]}` meant?): it" if near else f"`{name}`"
    return f"{another} {ELSEWHERE} it."


@cache
def _ungraded_names(exercise: Exercise) -> frozenset[str]:
    """The names that only the demonstrations and payoffs of an exercise's lesson define."""
    names: dict[bool, set[str]] = {False: set(), True: set()}
    for cell in exercise.course.cells(exercise.lesson):
        if cell.role != "prose":
            names[cell.role in ("demo", "payoff")] |= defined_names(cell.text)
    return frozenset(names[True] - names[False])


def raised_by(slip: Slip, failure: Failure) -> bool:
    """Whether that `raise` raised it, and not what stands before it in its line, such as a condition that cannot be decided."""
    in_line = slip.line.startswith("raise") or failure.message in slip.line
    return in_line and failure.is_a(slip.name.rpartition(".")[2])


def needs_whole(failure: Failure) -> bool:
    """Whether a float was given where a length or an index is needed."""
    return bool(_NEEDS_WHOLE.search(failure.message))


def overwritten(failure: Failure) -> bool:
    """Whether the backward pass missed what was changed in place."""
    return _OVERWRITTEN in failure.message


def another_meaning(failure: Failure, slips: Sequence[Slip]) -> str:
    """That a name of Python's own in the line that raised is something else in this notebook; '' where none is."""
    slip = next((slip for slip in slips if slip.kind == "rebound" and slip.line == failure.line), None)
    if slip is None or failure.type not in ("TypeError", "ValueError", "AxisError", "IndexError"):
        return ""
    return (
        f"`{slip.name}` is not Python's own here: `{slip.other}` has given it another meaning. Choose another name, or import one by "
        "one what you need."
    )


def advice(failure: Failure, slips: Sequence[Slip] = ()) -> str:
    """What such a failure most often means; '' where that is not known. slips: what the source of the exercise shows."""
    if failure.kind == "timeout":
        return "Look for a loop or a recursion that never ends, or for work that grows with every call."
    if failure.kind == "memory":
        return "Look for an array that is far larger than the inputs, or a list that keeps growing."
    if failure.kind not in ("exception", "call"):
        return ""
    if meaning := another_meaning(failure, slips):
        return meaning
    error = _Error(failure, slips)
    for pattern, answer in _ADVICE.items():
        if error.says(pattern):
            for also, sentence in ({_ALWAYS: answer} if isinstance(answer, str) else answer).items():
                if also(error) if callable(also) else error.line_has(also):
                    return sentence
    return ""
