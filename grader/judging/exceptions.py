"""What an exception of Python, NumPy or torch most often means in these exercises, in a sentence that says where to look.

A mistake that is known by its results is named as such; this is for what ended before there was a result.
"""

from __future__ import annotations

import re

# (what the exception's type and message hold, what is said of it); the first that fits counts
_ADVICE = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (r"matmul: Input operand|shapes .* not aligned|mat1 and mat2 shapes|size mismatch, got|batch2 tensor",
         "In `A @ B` the last axis of A is as long as the last but one of B: look which of the two is to be transposed."),
        (r"operands could not be broadcast|size of tensor a|not broadcastable|not broadcast|non-broadcastable",
         "Axes are matched from the right, and only an axis of length 1 stretches. A sum or a maximum that is to stand beside "
         "its row keeps its axis with `keepdims=True` (torch: `keepdim=True`); in einsum one letter stands for one length."),
        (r"Module\.__init__\(\) call", "The `__init__` of an nn.Module begins with `super().__init__()`."),
        (r"cannot assign .* as parameter",
         "A module's parameter takes an `nn.Parameter`. To fill the one that is there, `copy_` the numbers under `torch.no_grad()`."),
        (r"leaf Variable that requires grad", "What is trained is changed in place only under `with torch.no_grad():`."),
        (r"view size is not compatible",
         "`view` moves nothing in memory. Split the last axis first, (B, T, num_heads, d_head), then transpose; after a transpose "
         "`reshape` makes the copy that is needed."),
        (r"is invalid for input of size|cannot reshape array",
         "The lengths of the new shape multiply to the number of entries: look which of them is another one."),
        (r"expected scalar type|same dtype|expected .* to have the same dtype",
         "Two precisions meet: give a tensor that you make the dtype of the input, `dtype=x.dtype`."),
        (r"numpy\(\) on Tensor that requires grad", "`detach()` gives the numbers without the graph."),
        (r"ScalarType BFloat16", "NumPy has no bfloat16: `float()` first."),
        (r"Cannot cast ufunc|result type .* can't be cast",
         "`x -= y` and `x /= y` write into x, here into whole numbers: make a new array, `x = x / y`."),
        (r"math range error", "`math.exp` ends at an exponent of 709.78: a softmax first subtracts the largest score of the row."),
        (r"^ZeroDivisionError", "What is divided by is 0. A sum of `math.exp` is, where every exponent lies below −745."),
        (r"AxisError|Dimension out of range|axis .* is out of bounds|too many indices",
         "The input may have more or fewer axes than the example. Counted from the right, −1 is always the last."),
        (r"^IndexError.*out of (bounds|range)",
         "A loop runs beyond an axis: compare its end with the shapes. There may be more keys than queries, or fewer."),
        (r"values to unpack", "The names on the left are more or fewer than the axes: compare them with the shapes."),
        (r"NoneType",
         "None is what a function without `return` gives, and what an argument that was left out may be: look where it comes from."),
        (r"truth value of an array|Boolean value of Tensor",
         "`if` takes one True or False. Ask `mask is None`, or whether `.any()` or `.all()` entries are true."),
        (r"(length-1|0-dimensional) arrays can be converted|one element tensors can be converted",
         "The functions of `math` take one number; NumPy's and torch's take a whole array."),
        (r"required positional argument|unexpected keyword argument|positional arguments? but",
         "Compare the parameters with the exercise's: their names, their order, which have defaults, and `self` in a method."),
        (r"^NameError|^UnboundLocalError",
         "Cells run once, from top to bottom: is the name bound above, spelled this way, and not only inside another function?"),
    )
)  # fmt: skip


def on(type: str, message: str) -> str:
    """The sentence for an exception of that type and message; '' where none is known."""
    said = f"{type}: {message}"
    return next((sentence for pattern, sentence in _ADVICE if pattern.search(said)), "")
