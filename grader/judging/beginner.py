"""The commonest errors of beginners, each with its own sentence: told only where what was observed, or the source, proves it.

A rule is asked about one failing exercise and answers with a sentence or None. The first that answers counts; a rule that says
what a mistake of the catalogue says as well is left out where such a mistake is proven.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from grader.course.spec import Exercise
from grader.judging import exceptions
from grader.judging.compare import Compared, Finding, same_numbers
from grader.source.slips import Slip
from grader.worker.operations import ATTENTION, LOSSES, NORMALIZATION, SOFTMAX
from grader.worker.values import Failure, Part

READY_MADE = ATTENTION | LOSSES | NORMALIZATION | SOFTMAX  # which most exercises forbid
NOTHING = Failure("")
Rule = Callable[["Facts"], str | None]
Find = Callable[["Facts", str], Slip | None]
_WITHOUT_INPUT = {"tril", "triu", "ones", "zeros", "full", "arange", "eye"}  # what they make has no gradient


@dataclass(frozen=True)
class Facts:
    """What rules look at: the finding that is the headline, what every case showed, and what the source says."""

    exercise: Exercise
    finding: Finding
    compared: Collection[Compared]
    slips: Sequence[Slip]

    @property
    def failure(self) -> Failure:
        """What was raised; NOTHING where nothing was."""
        return self.finding.failure or NOTHING

    @property
    def torch(self) -> bool:
        return self.exercise.result_type == "tensor"

    def slip(self, kind: str) -> Slip | None:
        return next((slip for slip in self.slips if slip.kind == kind), None)

    def on_line(self, kind: str) -> Slip | None:
        """The slip of that kind in the line that raised."""
        return next((slip for slip in self.slips if slip.kind == kind and slip.line == self.failure.line), None)

    def returned(self) -> list[tuple[list[Part], list[Part]]]:
        """What was expected and what was returned, of each case in which both are; of a pair both things."""
        pairs = []
        for one in self.compared:
            expected, results = (
                [part for part in parts.values() if part.role == "returned" and not part.of]  # by the first call
                for parts in (one.right, one.actual.parts)
            )
            if results and expected and one.case.raises is None and one.actual.failure is None:
                pairs.append((expected, results))
        return pairs


def sentence(facts: Facts, proven: bool) -> str:
    """The sentence of the first rule that fits; '' for none. proven: whether a mistake of the catalogue is proven."""
    rules = (*READ, *(() if proven else OBSERVED))
    return next(filter(None, (rule(facts) for rule in rules)), "")


# --- what the source shows -----------------------------------------------------------------------


def _of_slip(
    kind: str, sentence: str, fits: Callable[[Facts], object] = lambda facts: True, find: Find = Facts.slip
) -> Rule:
    """What a slip of that kind comes to, where that fits. sentence: may have {name}, {line} and {number} of the slip."""

    def rule(facts: Facts) -> str | None:
        slip = find(facts, kind)
        return sentence.format(**slip._asdict()) if slip and fits(facts) else None

    return rule


def _nothing_returned(facts: Facts) -> str | None:
    if not facts.returned() or any([part.kind for part in results] != ["none"] for _, results in facts.returned()):
        return None
    name = facts.exercise.name if facts.exercise.kind == "function" else "forward"
    if facts.slip("print"):
        return (
            f"{name} prints its result and returns nothing. `print` only shows it; write `return` in place of `print`."
        )
    if facts.slip("no return"):
        return f"{name} has no `return`, so it gives None: end it with `return` and the result."
    return None


def _overwritten_before_backward(facts: Facts) -> str | None:
    """The only line that changes something in place, where the backward pass needs what was there."""
    slip = facts.slip("overwrites")
    lines = {slip.number for slip in facts.slips if slip.kind == "overwrites"}
    if not slip or len(lines) != 1 or not exceptions.overwritten(facts.failure):
        return None
    return (
        f"The backward pass still needs what was there before `{slip.line}` (line {slip.number} of its cell) changed it in place: "
        "make a new tensor, `x = x + y` in place of `x += y`."
    )


def _without_its_module(facts: Facts) -> str | None:
    """A function of NumPy's or torch's that is called by its name alone."""
    name = exceptions.unknown_name(facts.failure)
    library, short = (sys.modules.get("torch"), "torch") if facts.torch else (np, "np")
    if not name or name in READY_MADE or not callable(getattr(library, name, None)):
        return None
    number = f", or for a single number `math.{name}`" if facts.torch and hasattr(math, name) else ""
    return f"`{name}` by itself is not defined: write `{short}.{name}`{number}."


def _assert_for_raise(facts: Facts) -> str | None:
    if facts.finding.kind != "raises" or facts.failure.type != "AssertionError" or not facts.slip("assert"):
        return None
    claim = facts.finding.claim
    return f"`assert` raises AssertionError, and `python -O` leaves it out. Write `if …: raise {claim}(…)`, with the opposite condition."


def _numpy_in_torch(facts: Facts) -> str | None:
    finding, slip = facts.finding, facts.slip("numpy")
    if not (facts.torch and slip):
        return None
    if finding.failure:
        slip = facts.on_line("numpy")
    elif finding.actual.kind != "ndarray":
        slip = None
    if not slip:
        return None
    gradients = any(part.role == "gradient" for one in facts.compared for part in one.right.values())
    graph = gradients and slip.name.rpartition(".")[2] not in _WITHOUT_INPUT
    return (
        f"`{slip.name}` is a NumPy function; this exercise works with torch tensors. Use torch's own function or the tensor's method"
        + (", which also keep the graph for gradients." if graph else ".")
    )


def _unused(facts: Facts) -> str | None:
    unused = (one for one in facts.slips if one.kind == "unused" and one.name not in facts.exercise.unused_parameters)
    slip = next(unused, None)
    if not slip or facts.finding.kind == "failure":
        return None
    return (
        f"The parameter `{slip.name}` is never used in {facts.exercise.name}: a number or a name from elsewhere stands in its place, "
        "or a step is missing."
    )


# --- what was observed ---------------------------------------------------------------------------


def _float_as_length(facts: Facts) -> str | None:
    """A float with a whole value where a length or an index is needed."""
    failure = facts.failure
    if failure.type not in ("TypeError", "IndexError") or not exceptions.needs_whole(failure):
        return None
    division = "`/` always gives a float, also where it divides evenly; `//` gives a whole number."
    if "/" in failure.line.replace("//", ""):
        return f"A length or an index must be a whole number: {division}"
    for one in failure.shapes:
        if one.kind == "float" and one.value.is_integer():
            return f"A length or an index must be a whole number, and `{one.name}` is the float {one.text}: {division}"
    return None


def _star_for_product(facts: Facts) -> str | None:
    """Two arrays of the failing line that do not go together entry by entry, and do as a matrix product."""
    failure = facts.failure
    if failure.type not in ("ValueError", "RuntimeError"):
        return None
    shapes = {one.name: one.shape for one in failure.shapes if one.kind == "array"}
    for slip in facts.slips:
        if slip.kind != "star" or slip.line != failure.line:
            continue
        first, second = shapes.get(slip.name, ()), shapes.get(slip.other, ())
        if slip.transposed:
            second = (*second[:-2], *second[:-3:-1])
        if not first or len(second) < 2 or _go_together(first, second):
            continue
        why = f"`*` multiplies entry by entry, and shapes {first} and {second} do not fit so"
        if len(first) == 1 and first[0] == second[0] and len(second) == 2 and not slip.transposed:
            return f"{why}; `{slip.name} @ {slip.other}` multiplies row i by entry i and adds up the rows."
        if len(first) < 2:
            continue
        if first == second[::-1] and not slip.transposed:
            return f"{why}: one of the two is transposed, or the matrix product is meant, which is written `@`."
        if first[-1] == second[-2] and len(second) in (2, len(first)):
            return f"{why}; the matrix product is written `@`."
        two_axes = len(first) == len(second) == 2
        if facts.on_line("summed") and two_axes and first[-1] == second[-1] and not slip.transposed:
            return f"{why}; all rows times all rows is the matrix product `{slip.name} @ {slip.other}.T`."
    return None


def _go_together(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False))


def _a_list(facts: Facts) -> str | None:
    """A list in place of an array: one that NumPy or torch can make an array of the expected shape of."""
    if facts.exercise.result_type not in ("ndarray", "tensor") or facts.finding.kind != "type":
        return None
    actual = facts.finding.actual
    shape = _list_shape(actual)
    if actual.kind != "sequence" or shape is None:
        return None
    array, call = "an array", "np.array(rows)"
    if facts.torch:
        stacked = any(item.kind == "tensor" for item in actual.items)
        array, call = "a tensor", "torch.stack(rows)" if stacked else "torch.tensor(rows)"
    right = " Its numbers have the right shape." if shape == facts.finding.expected.shape else ""
    return f"The rows were collected in a {actual.text or 'list'}, which is not {array}: `{call}` makes one of them.{right}"


def _list_shape(part: Part) -> tuple[int, ...] | None:
    """The shape that an array of nested lists would have; None where they are uneven or hold something else."""
    if part.kind != "sequence":
        return part.shape
    shapes = {_list_shape(item) for item in part.items}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(part.items), *inner)


def _own_raise(facts: Facts) -> str | None:
    """The answer's own `raise` refused an input that the contract allows."""
    failure, slip = facts.failure, facts.on_line("raise")
    if facts.finding.kind != "failure" or not slip or not exceptions.raised_by(slip, failure):
        return None
    return "This input is valid, and the answer's own `raise` refused it: look at the condition of that `raise`."


def _another_order(facts: Facts) -> str | None:
    """The right things, all of them, in another order than the exercise names."""
    names, returned = facts.exercise.result_names, facts.returned()
    if len(names) == 1 or not returned or len(names) > 4:
        return None
    for order in list(permutations(range(len(names))))[1:]:
        if all(
            len(results) == len(order) and all(map(same_numbers, (expected[at] for at in order), results))
            for expected, results in returned
        ):
            actual = ", ".join(names[at] for at in order)
            return f"The numbers are right and in another order: ({actual}) is returned; expected ({', '.join(names)})."
    return None


READ: Iterable[Rule] = (
    lambda facts: exceptions.another_meaning(facts.failure, facts.slips),
    _nothing_returned,
    _of_slip(
        "return in loop",
        "`return` stands inside the loop (line {number} of its cell), so the loop ends after its first round: "
        "move `return` to the left, level with the loop's first line.",
    ),
    _of_slip(
        "input",
        "`input()` waits for somebody to type, and a check types nothing: all that the exercise needs comes as its parameters.",
        lambda facts: facts.failure.kind == "timeout" or facts.on_line("input"),
    ),
    _without_its_module,
    _of_slip(
        "layer in forward",
        "`forward` makes a new `{name}` at each call, with new random weights that no optimizer knows: make layers in "
        "`__init__`, keep them as `self.…`, and only call them in `forward`.",
    ),
    _of_slip(
        "loose layers",
        "`self.{name}` keeps layers in a plain list or dict, where the module does not know them: neither `.to(…)` and "
        "`.double()` nor an optimizer reaches them. Use `nn.ModuleList` or `nn.ModuleDict`, or an attribute for each.",
    ),
    _assert_for_raise,
    _of_slip(
        "in place",
        "`{line}` changes the input `{name}` in place, which torch refuses where gradients are recorded: write `{name} = {name} …`, "
        "which makes a new tensor.",
        lambda facts: facts.failure.type == "RuntimeError",
        Facts.on_line,
    ),
    _of_slip(
        "max",
        "In torch, `.{name}` along an axis gives two things, the values and where they are: write `.{name}(…).values`, "
        "or `.a{name}(…)`, which gives the values alone.",
        lambda facts: facts.torch and facts.failure.type == "TypeError",
    ),
    _of_slip(
        "caret",
        "In Python, `^` is the bitwise 'exclusive or'; a power is written `**` (line {number} of its cell: `{line}`).",
        lambda facts: facts.exercise.dtype != ("bool",),
    ),
    _numpy_in_torch,
    _float_as_length,
    _star_for_product,
)
OBSERVED: Iterable[Rule] = (_own_raise, _overwritten_before_backward, _a_list, _another_order, _unused)
