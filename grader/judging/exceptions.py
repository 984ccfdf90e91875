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
Condition = Callable[[Failure, Sequence[Slip]], bool]


def _fits_transposed(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether two arrays of the line would go together in `@` if the second was transposed."""
    shapes = [one.shape for one in failure.shapes if one.kind == "array" and len(one.shape) > 1]
    return len(shapes) == 2 and shapes[0][-1] == shapes[1][-1] and shapes[0][-1] != shapes[1][-2]


def _was_reduced(failure: Failure, slips: Sequence[Slip]) -> bool:
    """Whether the line uses a sum, a maximum or a mean along an axis that was not kept."""
    named = {one.name for one in failure.shapes}
    return any(slip.kind == "reduced" and (slip.line == failure.line or slip.name in named) for slip in slips)


def _slipped(kind: str) -> Condition:
    return lambda failure, slips: any(slip.kind == kind and slip.line == failure.line for slip in slips)


# (what the exception's type and message hold, what is said of it, when); the first that fits counts
_ADVICE = tuple(
    (re.compile(pattern), sentence, condition)
    for pattern, sentence, condition in (
        (_NO_PRODUCT,
         "`A @ B` needs A's last axis to be as long as B's second-to-last; here it is if B is transposed.", _fits_transposed),
        (_NO_PRODUCT,
         "`A @ B` needs A's last axis to be as long as B's second-to-last: compare both with the shapes on that line.", None),
        (r"remapped shapes|einsum\(\)|does not broadcast with previously seen",
         "In einsum one letter stands for one length: the same letter names axes of different lengths here.", None),
        (_NO_BROADCAST,
         "A sum or a maximum goes with its rows only if it keeps its axis: `keepdims=True` (torch: `keepdim=True`).", _was_reduced),
        (_NO_BROADCAST, "Shapes are matched from the right: two lengths go together if they are equal or one of them is 1.", None),
        (r"probability tensor contains",
         "`torch.multinomial` draws from probabilities: none negative, infinite or NaN. To turn logits into them, take a softmax.", None),
        (r"Module\.__init__\(\) call", "The `__init__` of an nn.Module begins with `super().__init__()`.", None),
        (r"cannot assign .* as parameter",
         "A module's parameter takes an `nn.Parameter`. To fill the one that is there, `copy_` the numbers under `torch.no_grad()`.", None),
        (r"leaf Variable that requires grad",
         "A tensor whose gradient is recorded cannot be changed in place: make a new one, `x = x + y`. Only an optimizer's step "
         "changes weights in place, under `torch.no_grad()`.", None),
        (r"view size is not compatible",
         "`view` moves nothing in memory. Split the last axis first, (B, T, num_heads, d_head), then transpose; after a transpose "
         "`reshape` makes the copy that is needed.", None),
        (r"is invalid for input of size|cannot reshape array",
         "The lengths of the new shape must multiply to the number of entries: check which of them is wrong.", None),
        (r"expected scalar type|same dtype|expected .* to have the same dtype",
         "Two precisions meet: give a tensor that you make the dtype of the input, `dtype=x.dtype`.", None),
        (r"numpy\(\) on Tensor that requires grad", "`detach()` gives the numbers without the graph.", None),
        (r"ScalarType BFloat16", "NumPy has no bfloat16: `float()` first.", None),
        (r"Cannot cast ufunc|result type .* can't be cast",
         "`x -= y` and `x /= y` write into x, here into whole numbers: make a new array, `x = x / y`.", None),
        (r"math range error", "`math.exp` overflows above 709.78: a softmax first subtracts the largest score of the row.", None),
        (r"^ZeroDivisionError", "The divisor is 0. A sum of `math.exp` becomes 0 where every exponent is below about −745.", None),
        (r"AxisError|Dimension out of range|axis .* is out of bounds|too many indices",
         "The input may have more or fewer axes than the example. Counted from the right, −1 is always the last.", None),
        (r"^IndexError.*out of (bounds|range)",
         "An index is past the end of its axis: compare the loop's end with the shapes. Keys may outnumber queries.", None),
        (r"values to unpack", "The left side has more or fewer names than the right side has values: compare with the shapes.", None),
        (r"NoneType",
         "Something here is None: the result of a function without `return`, perhaps, or an argument that was left out.", None),
        (r"truth value of an array|Boolean value of Tensor",
         "Python's own `max`, `min` and `sorted` ask whether one array is larger than another, and there are many answers; compare "
         "numbers, with `key=…`, or use the array's own `.max()`.", _slipped("compares")),
        (r"truth value of an array|Boolean value of Tensor",
         "`if` needs one True or False. Ask `mask is None`, or use `.any()` or `.all()` on the array.", _slipped("condition")),
        (r"truth value of an array|Boolean value of Tensor",
         "One True or False is needed here, and an array holds many: ask whether `.any()` or `.all()` of them are true.", None),
        (r"(length-1|0-dimensional) arrays can be converted|one element tensors can be converted",
         "The functions of `math` take one number; NumPy's and torch's take a whole array.", None),
        (r"required positional argument|unexpected keyword argument|positional arguments? but",
         "Compare the parameters with the exercise's: their names, their order, which have defaults, and `self` in a method.", None),
        (r"^NameError|^UnboundLocalError",
         "Cells run once, from top to bottom: is the name bound above, spelled this way, and not only inside another function?", None),
    )
)  # fmt: skip


def on(failure: Failure, slips: Sequence[Slip] = ()) -> str:
    """The sentence for an exception; '' where none is known. slips: what the source of the exercise shows."""
    said = f"{failure.type}: {failure.message}"
    fitting = (sentence for pattern, sentence, when in _ADVICE if pattern.search(said) and (when is None or when(failure, slips)))
    return next(fitting, "")
