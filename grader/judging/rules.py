"""What a failing exercise most often means, in a sentence that says where to look: an ordered table of questions.

A question is asked of `Facts`, or it is a pattern of what the exception says. The first rule that fits counts. What is advised beyond
an exception's own meaning is tested: against the shapes at hand in the line, and against what the source shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache

from grader.course.spec import Case, Exercise
from grader.judging.facts import Facts
from grader.source.definitions import defined_names
from grader.util.words import ELSEWHERE

Question = str | Callable[[Facts], object]
# To each question a sentence, or several, each with what else has to hold: a question, or a pattern of what the failing line has.
# In a sentence, {0} is the answer to the first question, {1} the Facts, {2} the answer to the second.
Rules = Mapping[Question, str | Mapping[Question, str]]

_ALWAYS = ""
_ANOTHER_MEANING = (
    "`{0.name}` is not Python's own here: `{0.other}` has given it another meaning. Choose another name, or import one by one what "
    "you need."
)
_DIVISION = "`/` always gives a float, also where it divides evenly; `//` gives a whole number."
_NUMPY = "`{0.name}` is a NumPy function; this exercise works with torch tensors. Use torch's own function or the tensor's method"


def _star_for_product(facts: Facts) -> str | None:
    """Of the first two arrays that do not go together entry by entry and do as a matrix product."""
    for left, right, first, second, transposed in facts.misfits():
        why, as_it_is = f"`*` multiplies entry by entry, and shapes {first} and {second} do not fit so", not transposed
        if len(second) < 2:
            continue
        if len(first) == 1:
            if first[0] == second[0] and len(second) == 2 and as_it_is:
                return f"{why}; `{left} @ {right}` multiplies row i by entry i and adds up the rows."
        elif first == second[::-1] and as_it_is:
            return f"{why}: one of the two is transposed, or the matrix product is meant, which is written `@`."
        elif first[-1] == second[-2] and len(second) in (2, len(first)):
            return f"{why}; the matrix product is written `@`."
        elif len(first) == len(second) == 2 and first[-1] == second[-1] and as_it_is:
            if facts.line_has(r"\* *\w+ *\)\.sum\("):
                return f"{why}; all rows times all rows is the matrix product `{left} @ {right}.T`."
    return None


# --- beginners' commonest errors, proven by what was observed or by the source: also beside a mistake of the catalogue --------------

PROVEN: Rules = {
    Facts.rebound_builtin: _ANOTHER_MEANING,
    Facts.none_returned: {
        lambda facts: facts.slip("print"): (
            "{0} prints its result and returns nothing. `print` only shows it; write `return` in place of `print`."
        ),
        lambda facts: facts.slip("no return"): (
            "{0} has no `return`, so it gives None: end it with `return` and the result."
        ),
    },
    lambda facts: facts.slip("return in loop"): (
        "`return` stands inside the loop (line {0.number} of its cell), so the loop ends after its first round: move `return` to the "
        "left, level with the loop's first line."
    ),
    lambda facts: facts.slip("input") if facts.failure.kind == "timeout" else facts.on_line("input"): (
        "`input()` waits for somebody to type, and a check types nothing: all that the exercise needs comes as its parameters."
    ),
    Facts.without_its_module: {
        lambda facts: facts.torch and hasattr(math, facts.unknown_name()): (
            "`{0}` by itself is not defined: write `torch.{0}`, or for a single number `math.{0}`."
        ),
        lambda facts: facts.torch: "`{0}` by itself is not defined: write `torch.{0}`.",
        _ALWAYS: "`{0}` by itself is not defined: write `np.{0}`.",
    },
    lambda facts: facts.slip("layer in forward"): (
        "`forward` makes a new `{0.name}` at each call, with new random weights that no optimizer knows: make layers in `__init__`, "
        "keep them as `self.…`, and only call them in `forward`."
    ),
    lambda facts: facts.slip("loose layers"): (
        "`self.{0.name}` keeps layers in a plain list or dict, where the module does not know them: neither `.to(…)` and "
        "`.double()` nor an optimizer reaches them. Use `nn.ModuleList` or `nn.ModuleDict`, or an attribute for each."
    ),
    lambda facts: facts.finding.kind == "raises" and facts.failure.type == "AssertionError" and facts.slip("assert"): (
        "`assert` raises AssertionError, and `python -O` leaves it out. Write `if …: raise {1.finding.claim}(…)`, with the opposite "
        "condition."
    ),
    lambda facts: facts.failure.type == "RuntimeError" and facts.on_line("in place"): (
        "`{0.line}` changes the input `{0.name}` in place, which torch refuses where gradients are recorded: write `{0.name} = "
        "{0.name} …`, which makes a new tensor."
    ),
    Facts.maximum_pair: (
        "In torch, `.{0[1]}` along an axis gives two things, the values and where they are: write `.{0[1]}(…).values`, or "
        "`.a{0[1]}(…)`, which gives the values alone."
    ),
    lambda facts: facts.slip("caret") if facts.exercise.dtype != ("bool",) else None: (
        "In Python, `^` is the bitwise 'exclusive or'; a power is written `**` (line {0.number} of its cell: `{0.line}`)."
    ),
    Facts.numpy_without_graph: f"{_NUMPY}, which also keep the graph for gradients.",
    Facts.numpy_in_torch: f"{_NUMPY}.",
    Facts.needs_whole: {
        r"(?<!/)/(//)*(?!/)": f"A length or an index must be a whole number: {_DIVISION}",
        Facts.whole_float: (
            f"A length or an index must be a whole number, and `{{2.name}}` is the float {{2.text}}: {_DIVISION}"
        ),
    },
    _star_for_product: "{0}",
}

# --- the same, where no mistake of the catalogue is proven, which would say it as well ----------------------------------------------

UNNAMED: Rules = {
    Facts.own_raise: "This input is valid, and the answer's own `raise` refused it: look at the condition of that `raise`.",
    Facts.overwriting_line: (
        "The backward pass still needs what was there before `{0.line}` (line {0.number} of its cell) changed it in place: make a new "
        "tensor, `x = x + y` in place of `x += y`."
    ),
    Facts.list_of_rows: (
        "The rows were collected in a {0[kind]}, which is not {0[array]}: `{0[call]}` makes one of them.{0[shape]}"
    ),
    Facts.another_order: (
        "The numbers are right and in another order: ({0[actual]}) is returned; expected ({0[expected]})."
    ),
    Facts.unused_parameter: (
        "The parameter `{0.name}` is never used in {1.exercise.name}: a number or a name from elsewhere stands in its place, or a step "
        "is missing."
    ),
}

# --- what ended before there was a result, where nothing above fits: what such an exception most often means ------------------------

_ONE_LETTER = "In einsum one letter stands for one length: the same letter names axes of different lengths here."
_NO_AXES = "An array of shape () is a single number and has no axes: the input may come as one."
_NEW_TENSOR = "A tensor whose gradient is recorded cannot be changed in place: make a new one, `x = x + y`."
_NO_PRODUCT = r"matmul: Input operand|shapes .* not aligned|mat1 and mat2 shapes|size mismatch, got|batch2 tensor"
_NO_BROADCAST = r"operands could not be broadcast|size of tensor a|not broadcastable|not broadcast|non-broadcastable"

GENERAL: Rules = {
    lambda facts: facts.failure.kind == "timeout": (
        "Look for a loop or a recursion that never ends, or for work that grows with every call."
    ),
    lambda facts: facts.failure.kind == "memory": (
        "Look for an array that is far larger than the inputs, or a list that keeps growing."
    ),
    Facts.rebound_builtin: _ANOTHER_MEANING,
    # A product or a sum of arrays whose shapes do not go together.
    rf"{_NO_PRODUCT}|{_NO_BROADCAST}": {
        Facts.transposes_batch: (
            "With a batch in front, only the last two axes are exchanged: `x.swapaxes(-1, -2)`, or `x.mT` in torch. `x.T` turns all "
            "axes round, and torch's `x.transpose(0, 1)` exchanges the first two."
        )
    },
    _NO_PRODUCT: {
        Facts.fits_transposed: "`A @ B` needs A's last axis to be as long as B's second-to-last; here it is if B is transposed.",
        _ALWAYS: "`A @ B` needs A's last axis to be as long as B's second-to-last: compare both with the shapes on that line.",
    },
    r"einsum\(\)|does not broadcast with previously seen": _ONE_LETTER,
    r"remapped shapes": {
        "einsum": _ONE_LETTER,
        Facts.calls_dot: "`np.dot` multiplies each matrix of one batch with each of the other; `@` takes them in pairs.",
        _ALWAYS: "`A @ B` multiplies along the last two axes. The axes in front of them, such as the batch, must be equal or 1.",
    },
    _NO_BROADCAST: {
        Facts.was_reduced: "A sum or a maximum goes with its rows only if it keeps its axis: `keepdims=True` (torch: `keepdim=True`).",
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
    "modified by an inplace operation": (
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
        lambda facts: () in facts.arrays.values(): _NO_AXES,
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
        Facts.picks_rows: (
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
        r"(?<![\w.])(max|min|sorted)\((?!.*\bkey *=)": (
            "Python's own `max`, `min` and `sorted` ask whether one array is larger than another, and there are many answers; "
            "compare numbers, with `key=…`, or use the array's own `.max()`."
        ),
        r"\b(if|elif|while|and|or|(?<!is )not(?! in\b))\b": (
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
        lambda facts: facts.failure.kind == "exception" and facts.failure.line: (
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


def slip(facts: Facts, proven: bool) -> str:
    """A beginner's error that is proven, in a sentence; '' for none. proven: whether a mistake of the catalogue is."""
    return _first(facts, PROVEN) or ("" if proven else _first(facts, UNNAMED))


def advice(facts: Facts) -> str:
    """What the failure most often means; '' where that is not known."""
    return _first(facts, GENERAL)


def _first(facts: Facts, rules: Rules) -> str:
    for question, answer in rules.items():
        if fact := facts.says(question) if isinstance(question, str) else question(facts):
            for condition, sentence in ({_ALWAYS: answer} if isinstance(answer, str) else answer).items():
                if second := facts.line_has(condition) if isinstance(condition, str) else condition(facts):
                    return sentence.format(fact, facts, second)
    return ""


def ungraded_name(facts: Facts, case: Case) -> str:
    """What comes first where a name is one of the course's demonstrations; where a parameter is called nearly so, that it is none."""
    name = facts.unknown_name()
    if not name or name not in _ungraded_names(facts.exercise):
        return ""
    matches = get_close_matches(name, case.names, 1, 0.7)
    subject = f"`{name}` is no parameter (is `{matches[0]}` meant?): it" if matches else f"`{name}`"
    return f"{subject} {ELSEWHERE} it."


@cache
def _ungraded_names(exercise: Exercise) -> frozenset[str]:
    """The names that only the demonstrations and payoffs of an exercise's lesson define."""
    names: dict[bool, set[str]] = {False: set(), True: set()}
    for cell in exercise.course.cells(exercise.lesson):
        if cell.role != "prose":
            names[cell.role in ("demo", "payoff")] |= defined_names(cell.text)
    return frozenset(names[True] - names[False])
