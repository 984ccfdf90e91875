"""What the rules of `rules.py` ask about one failing exercise: what was observed, the line that failed, what the source shows.

An answer is false, or it is what the rule's sentence speaks of.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from grader.course.spec import Exercise
from grader.judging.compare import Comparison, Finding, same_numbers
from grader.source.slips import Slip
from grader.worker.operations import ATTENTION, LOSSES, NORMALIZATION, SOFTMAX
from grader.worker.values import Failure, Part, Variable

READY_MADE = ATTENTION | LOSSES | NORMALIZATION | SOFTMAX  # which most exercises forbid
NOTHING = Failure("")
Shape = tuple[int, ...]
_WITHOUT_INPUT = {"tril", "triu", "ones", "zeros", "full", "arange", "eye"}  # what they make has no gradient
_NEEDS_WHOLE = (  # a float was given where a length or an index is needed
    r"float\d*' object cannot be interpreted|tuple of ints.*float|must be (an )?int.*not float|got float"
    r"|only integers, slices|slice indices must be|indices must be integers.* not float|expected a sequence of integers"
    r"|: (repeat|expand|empty)\(\) takes 1 positional argument"
)
_WORDS = re.compile(r"#.*|(['\"])[^'\" ]* [^'\"]*\1")  # comments and sentences
_STAR = re.compile(  # two names, the second maybe transposed, that are multiplied before anything else
    r"(?<![\w.@])(?<!@ )([^\W\d]\w*) *\* *([^\W\d]\w*)(\.m?T\b|\.(?:transpose|swapaxes)\([^()]*\))?(?![\w.(\[]| *\*\*)"
)


@dataclass(frozen=True)
class Facts:
    """The finding that is the headline, what every case showed, and what the source says."""

    exercise: Exercise
    finding: Finding
    comparisons: Collection[Comparison] = ()
    slips: Sequence[Slip] = ()

    @property
    def failure(self) -> Failure:
        """What was raised; NOTHING where nothing was."""
        return self.finding.failure or NOTHING

    @property
    def torch(self) -> bool:
        return self.exercise.result_type == "tensor"

    @property
    def arrays(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays at hand in the failing line."""
        return {variable.name: variable.shape for variable in self.failure.shapes if variable.kind == "array"}

    @property
    def own_line(self) -> bool:
        """Whether the failing line belongs to the exercise's own definition."""
        return self.failure.function.partition(".")[0] == self.exercise.name

    def says(self, pattern: str) -> re.Match[str] | None:
        """Where the exception, as in 'TypeError: its message', says that."""
        failure = self.failure
        raised = failure.kind in ("exception", "call")
        return re.search(pattern, f"{failure.type}: {failure.message}") if raised else None

    def line_has(self, pattern: str) -> re.Match[str] | None:
        """Where the failing line, without its comments and sentences, holds that."""
        return re.search(pattern, _WORDS.sub("''", self.failure.line))

    def slip(self, kind: str) -> Slip | None:
        return next((slip for slip in self.slips if slip.kind == kind), None)

    def on_line(self, kind: str) -> Slip | None:
        """The slip of that kind in the failing line."""
        return next((slip for slip in self.slips if slip.kind == kind and slip.line == self.failure.line), None)

    def result_pairs(self) -> list[tuple[list[Part], list[Part]]]:
        """What was expected and what was returned, of each case in which both are, by the first call; of a pair both things."""
        pairs = []
        for comparison in self.comparisons:
            expected, actual = (
                [part for part in observation.parts.values() if part.role == "returned" and not part.of]
                for observation in (comparison.expected, comparison.actual)
            )
            if actual and expected and comparison.case.raises is None and comparison.actual.failure is None:
                pairs.append((expected, actual))
        return pairs

    # --- what was returned -----------------------------------------------------------------------

    def none_returned(self) -> str:
        """What gives None in all cases: the name of the function, or 'forward'."""
        if {tuple(part.kind for part in actual) for _, actual in self.result_pairs()} != {("none",)}:
            return ""
        return self.exercise.name if self.exercise.kind == "function" else "forward"

    def list_of_rows(self) -> dict[str, str]:
        """A list in place of an array that NumPy or torch can make of it: 'kind'; 'array' and 'call', what it should be; 'shape'."""
        actual, expected = self.finding.actual, self.finding.expected
        shape = _list_shape(actual)
        fits = self.exercise.result_type in ("ndarray", "tensor") and self.finding.kind == "type"
        if not fits or actual.kind != "sequence" or shape is None:
            return {}
        array, call = "an array", "np.array(rows)"
        if self.torch:
            has_tensors = any(item.kind == "tensor" for item in actual.items)
            array, call = "a tensor", "torch.stack(rows)" if has_tensors else "torch.tensor(rows)"
        sentence = " Its numbers have the right shape." if shape == expected.shape else ""
        return {"kind": actual.text or "list", "array": array, "call": call, "shape": sentence}

    def another_order(self) -> dict[str, str]:
        """The right things, all of them, in another order than the exercise names: 'actual', 'expected'."""
        names, pairs = self.exercise.result_names, self.result_pairs()
        if len(names) == 1 or not pairs or len(names) > 4:
            return {}
        for order in list(permutations(range(len(names))))[1:]:
            if all(
                len(actual) == len(order) and all(map(same_numbers, (expected[i] for i in order), actual))
                for expected, actual in pairs
            ):
                return {"actual": ", ".join(names[i] for i in order), "expected": ", ".join(names)}
        return {}

    def unused_parameter(self) -> Slip | None:
        """A parameter that is never used and has to be, where the answer ran."""
        allowed = self.exercise.unused_parameters
        slips = (slip for slip in self.slips if slip.kind == "unused" and slip.name not in allowed)
        return None if self.finding.kind == "failure" else next(slips, None)

    # --- what was raised -------------------------------------------------------------------------

    def rebound_builtin(self) -> Slip | None:
        """A name of Python's own in the failing line that is something else in this notebook."""
        types = ("TypeError", "ValueError", "AxisError", "IndexError")
        return self.on_line("rebound") if self.failure.type in types else None

    def unknown_name(self) -> str:
        """The name that is not defined."""
        match = self.says(r"^NameError: name '([a-zA-Z]\w*)' is not defined")
        return match[1] if match else ""

    def without_its_module(self) -> str:
        """A function of NumPy's or torch's that is called by its name alone."""
        name, library = self.unknown_name(), sys.modules.get("torch") if self.torch else np
        return name if name and name not in READY_MADE and callable(getattr(library, name, None)) else ""

    def overwriting_line(self) -> Slip | None:
        """The only line that changes something in place, where the backward pass needs what was there."""
        lines = {slip.number for slip in self.slips if slip.kind == "overwrites"}
        return self.slip("overwrites") if len(lines) == 1 and self.says("modified by an inplace operation") else None

    def numpy_in_torch(self) -> Slip | None:
        """A NumPy function where torch's should be: it stands in the failing line, or an array comes of it."""
        if not self.torch:
            return None
        if self.finding.failure:
            return self.on_line("numpy")
        return self.slip("numpy") if self.finding.actual.kind == "ndarray" else None

    def numpy_without_graph(self) -> Slip | None:
        """Such a function of what may need a gradient."""
        slip = self.numpy_in_torch()
        gradients = any(
            part.role == "gradient" for comparison in self.comparisons for part in comparison.expected.parts.values()
        )
        return slip if slip and gradients and slip.name.rpartition(".")[2] not in _WITHOUT_INPUT else None

    def needs_whole(self) -> bool:
        """Whether a float was given where a length or an index is needed."""
        return self.failure.type in ("TypeError", "IndexError") and bool(self.says(_NEEDS_WHOLE))

    def whole_float(self) -> Variable | None:
        """A float with a whole value."""
        floats = (variable for variable in self.failure.shapes if variable.kind == "float")
        return next((number for number in floats if number.value.is_integer()), None)

    def maximum_pair(self) -> re.Match[str] | None:
        """`.max` or `.min` along an axis, which in torch gives two things, in place of one of them."""
        as_tuple = self.torch and self.says("^TypeError: (can only concatenate tuple|only integer tensors of a single)")
        in_line = self.line_has(r"\.(max|min)\([^()]+\)(?![.\[])") if as_tuple else None
        return self.says(r"^TypeError: .*torch\.return_types\.(max|min)") or in_line

    def misfits(self) -> Iterator[tuple[str, str, Shape, Shape, bool]]:
        """What the line multiplies by `*` and does not go together so: two names, their shapes, and whether the second is transposed."""
        line = self.failure.line if self.own_line and self.failure.type in ("ValueError", "RuntimeError") else ""
        for left, right, turn in _STAR.findall(_WORDS.sub("", line)):
            first, second = self.arrays.get(left, ()), self.arrays.get(right, ())
            second = (*second[:-2], *second[:-3:-1]) if turn else second
            if not all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False)):
                yield left, right, first, second, bool(turn)

    def own_raise(self) -> bool:
        """Whether the answer's own `raise` refused an input that the contract allows.

        It raised the exception, and not what stands before it in its line, such as a condition that cannot be decided.
        """
        line, failure = self.failure.line, self.failure
        match = self.own_line and self.finding.kind == "failure" and self.line_has(r"\braise +(?:\w+\.)*(\w+)")
        return bool(match and failure.is_a(match[1]) and (line.startswith("raise") or failure.message in line))

    def fits_transposed(self) -> bool:
        """Whether the line multiplies two arrays as they are that would go together in `@` if the second was transposed.

        What is averaged by weights is never transposed, though its lengths may allow it.
        """
        matrices = {re.escape(name): shape for name, shape in self.arrays.items() if len(shape) > 1}
        if len(matrices) != 2:
            return False
        (a, first), (b, second) = matrices.items()
        as_they_are = bool(self.line_has(rf"\b{a} *@ *{b}\b(?!\.|\[)|\( *{a}, *{b} *\)"))
        return as_they_are and "weights" not in a and first[-1] == second[-1] != second[-2]

    def transposes_batch(self) -> bool:
        """Whether the line turns all axes, or the first two, of an array that has more than two, and forms a product."""
        names = re.findall(r"(\w+)\.(?:T\b|t\(\)|(?:transpose|swapaxes)\((?: *0, *1| *1, *0)? *\))", self.failure.line)
        return bool(self.line_has(r"@|matmul|bmm|dot")) and any(len(self.arrays.get(name, ())) > 2 for name in names)

    def was_reduced(self) -> bool:
        """Whether the line goes on with a sum, a maximum or a mean along an axis that was not kept."""
        names = {variable.name for variable in self.failure.shapes}
        return any(
            slip.kind == "reduced" and (slip.name in names if slip.name else slip.line == self.failure.line)
            for slip in self.slips
        )

    def calls_dot(self) -> bool:
        return any(slip.kind == "numpy" and slip.name.endswith(".dot") for slip in self.slips)

    def picks_rows(self) -> bool:
        """Whether the only index is an array of whole numbers, other than into an identity matrix."""
        arrays = (variable for variable in self.failure.shapes if variable.kind == "array" and variable.shape)
        integers = {array.name for array in arrays if re.search(r"\bu?int", array.text)}
        indices = re.findall(r"[\w)\]]\[ *(\w+) *\]", self.failure.line)
        return "eye" not in self.failure.line and any(name in integers for name in indices)


def _list_shape(part: Part) -> tuple[int, ...] | None:
    """The shape that an array of nested lists would have; None where they are uneven or hold something else."""
    if part.kind != "sequence":
        return part.shape
    shapes = {_list_shape(item) for item in part.items}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(part.items), *inner)
