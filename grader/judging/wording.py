"""A verdict's sentences on what was observed, each made of a finding, a failure or a case.

What may be behind it is worded where it is recognized: rules.py, symptoms.py, where_right.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging.compare import Finding, allowed_kinds, gaps, has_kind
from grader.judging.verdict import Line
from grader.source.slips import Slip
from grader.worker.values import Failure, Part, Tensor

_KINDS = {
    "ndarray": "a NumPy array",
    "tensor": "a torch tensor",
    "number": "a single number",
    "bool": "a single True or False",
    "none": "None",
    "text": "a text",
    "sequence": "a tuple",
}


# --- headlines -----------------------------------------------------------------------------------


def headline(exercise: Exercise, finding: Finding) -> str:
    """The one sentence that says what is not as it should be."""
    if exercise.kind == "answer" and finding.stage == "values":
        return "These are not the right numbers."
    return _HEADLINES[finding.kind](exercise, finding)


def subject(exercise: Exercise, finding: Finding) -> str:
    """What a finding speaks of: 'the result', '`weights`', 'the gradient of `x`'."""
    if finding.role == "gradient":
        return f"the gradient of `{finding.of}`"
    if finding.role == "returned" and len(exercise.result_names) == 1:
        return f"the result of the {finding.of}" if finding.of else "the result"
    return f"`{finding.part}`"


def describe(part: Part) -> str:
    """What a part is, in words: 'a NumPy array of shape (2, 3)'."""
    if part.kind == "sequence":
        return f"a {part.text or 'tuple'} of {len(part.items)}"
    if part.kind == "other" and " " not in part.text:
        return f"an object of type {part.text}"
    if part.kind == "other":
        return f"{'an' if part.text[:1] in 'aeiou' else 'a'} {part.text}"
    shape = f" of shape {part.shape}" if part.kind in ("ndarray", "tensor") else ""
    return _KINDS[part.kind] + shape


def _count(exercise: Exercise, finding: Finding) -> str:
    call = f" by the {finding.of}" if finding.of else ""
    names = ", ".join(exercise.result_names)
    return f"{_capital(describe(finding.actual))} was returned{call}; expected {len(exercise.result_names)} things: ({names})."


def _type(exercise: Exercise, finding: Finding) -> str:
    actual = finding.actual
    mixed = ", not all of them numbers" if actual.kind == "sequence" and exercise.result_type == "answer" else ""
    name, expected = _capital(subject(exercise, finding)), _result_type(exercise, finding)
    return f"{name} is {describe(actual)}{mixed}; expected {expected}."


def _result_type(exercise: Exercise, finding: Finding) -> str:
    expected, actual = finding.expected, finding.actual
    if exercise.result_type == "answer":
        return "a list, a tuple or an array of numbers"
    if expected.array is None or expected.kind == "bool":
        return describe(expected)
    kinds = allowed_kinds(exercise, finding.role, expected)
    if "number" in kinds:
        if actual.kind != "other" or expected.array.dtype.kind not in "iu":
            return "a number"
        digits = len(str(int(expected.array)))  # an integer that is longer than 64 bits is such an object, too
        return f"an int of {digits} digit{'s' if digits > 1 else ''}"
    shape = f" of shape {expected.shape}" if actual.unread or exercise.result_type == "any" else ""
    if actual.unread and "complex" in actual.text:
        shape = f" of real numbers, of shape {expected.shape}"
    return _KINDS[kinds[0]] + shape


def _family(dtype: str) -> str:
    """'float' of float16, float32, float64 and bfloat16; 'int' of the whole numbers."""
    return dtype.strip("bu0123456789")


def _dtype(exercise: Exercise, finding: Finding) -> str:
    actual = finding.actual.dtype
    if exercise.result_type == "number" and finding.allowed and has_kind(finding.expected, "iu"):
        is_float = finding.actual.kind == "number" and has_kind(finding.actual, "f")
        fault = "is a float" if is_float else f"has dtype {actual}"
        return f"{_capital(subject(exercise, finding))} {fault}; expected an int."
    if finding.allowed:
        fitting = [name for name in finding.allowed if _family(name) == _family(finding.expected.dtype)]
        wrong = f"; expected {' or '.join(fitting or finding.allowed)}"
    elif has_kind(finding.expected, "b"):
        wrong = "; expected bool"
    else:
        wrong = "; expected numbers" if actual == "bool" else ", which is too coarse here; expected float32 or float64"
    return f"{_capital(subject(exercise, finding))} has dtype {actual}{wrong}."


def _finite(exercise: Exercise, finding: Finding) -> str:
    array = np.asarray(finding.actual.array, dtype=np.float64)
    count = int((~np.isfinite(array)).sum())
    tests = (("NaN", np.isnan), ("infinite", np.isinf))
    kinds = " or ".join(word for word, test in tests if test(array).any())
    name = subject(exercise, finding)
    if array.ndim == 0:
        return f"{_capital(name)} is {kinds}."
    return f"{count} of {array.size} entries of {name} {'is' if count == 1 else 'are'} {kinds}."


def _numbers(exercise: Exercise, finding: Finding) -> str:
    expected, actual = np.asarray(finding.expected.array), np.asarray(finding.actual.array)
    truncated = actual.dtype.kind in "iu" and (expected != np.round(expected)).any()
    reason = f"; {actual.dtype.name} keeps whole numbers only" if truncated else ""
    gap = gaps(expected.astype(np.float64), actual.astype(np.float64))
    index = tuple(int(i) for i in np.unravel_index(int(gap.argmax()), gap.shape))
    place = f" at {index}" if index else ""
    return f"{_capital(subject(exercise, finding))} differs from what was expected by up to {gap[index]:.4g}{place}{reason}."


def _text(exercise: Exercise, finding: Finding) -> str:
    actual, expected = repr(finding.actual.text), repr(finding.expected.text)
    if " " in finding.part:  # it is in words, and so is what it is: 'what f was given'
        return f"{_capital(finding.part)} is {actual[1:-1]}; expected {expected[1:-1]}."
    return f"{_capital(subject(exercise, finding))} is {actual}; expected {expected}."


def _raises(exercise: Exercise, finding: Finding) -> str:
    failure = finding.failure
    result = f"raised {_exception(failure)}" if failure else "returned a value"
    if finding.actual.text == finding.claim:  # the exception, as a value
        result = "returned one: `raise` throws an exception, `return` hands it over like any other value"
    return f"{exercise.name} should raise {finding.claim} here, but it {result}."


def _unwritten(exercise: Exercise, finding: Finding) -> str:
    name, failure = exercise.name, finding.failure or Failure("not_started")
    owner, _, method = failure.function.partition(".")
    if failure.line:
        return f"{name} calls `{owner}`, which is not written yet: it still raises NotImplementedError. Start there."
    if method:
        return f"{name} is half done: `{method}` still raises NotImplementedError."
    return f"{name} is half done: it still raises NotImplementedError for {finding.claim}."


_HEADLINES = {
    "count": _count,
    "type": _type,
    "dtype": _dtype,
    "finite": _finite,
    "numbers": _numbers,
    "flag": lambda exercise, finding: (
        f"Expected: {finding.part}. This is not so." if finding.expected.array else f"Not expected: {finding.part}."
    ),
    "raises": _raises,
    "modified": lambda exercise, finding: (
        f"{exercise.name} changes its input {finding.claim} in place; it should leave its inputs as they are."
    ),
    "unwritten": _unwritten,
    "absent": lambda exercise, finding: f"{_capital(subject(exercise, finding))} is missing.",
    "cut": lambda exercise, finding: (
        f"No gradient reaches `{finding.of}`: the result does not depend on it, or the graph is cut on the way to it."
    ),
    "shape": lambda exercise, finding: (
        f"{_capital(subject(exercise, finding))} has shape {finding.actual.shape}; expected {finding.expected.shape}."
    ),
    "text": _text,
    "compared": lambda exercise, finding: finding.sentence,
    "property": lambda exercise, finding: f"Expected: {finding.claim}. {_capital(finding.sentence)}",
    "failure": lambda exercise, finding: failure_headline(exercise.name, finding.failure),
}


def failure_headline(name: str, failure: Failure) -> str:
    """The headline where there is no result."""
    if failure.kind in ("exception", "call") or failure.type and failure.kind == "memory":
        return f"{name} raised {_exception(failure)}"
    if failure.kind == "no function":
        return (
            f"{name} is now the name of a value of type {failure.type}, which cannot be called: give that value another name, and run the "
            "exercise's cell again."
        )
    if failure.kind == "invalid":
        return f"{name} gave no valid answer: {failure.message or 'what came back cannot be read'}"
    return failure.message or {
        "timeout": f"{name} did not finish within the time that an exercise has.",
        "memory": f"{name} asked for more memory than an exercise has.",
        "died": f"The process ended while {name} ran.",
    }.get(failure.kind, f"{name} gave no result.")


def _exception(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}" if failure.message else failure.type


def blame_callee(name: str, callee: str, check: str = "") -> str:
    """What comes first where another exercise is at fault as well. check: the call that checks it, for who can call."""
    return f"{name} calls `{callee}`, whose check fails: start there{check and f', with {check}'}."


def leftover_raise(exercise: Exercise, slip: Slip) -> str:
    """The headline where the stub's `raise` still stands beside what was written."""
    method = slip.name.partition(".")[2]
    name = f"`{method}`" if method else exercise.name
    return f"{name} is written, but it still contains the original cell's `raise`, which ends it: delete that line."


def not_started(exercise: Exercise) -> str:
    state = "it is still None" if exercise.kind == "answer" else "it still raises NotImplementedError"
    return f"{exercise.name} is not started: {state}."


# --- details -------------------------------------------------------------------------------------


ON_A_COPY = "Work on a copy, or write x = x - y in place of x -= y."


def details(failure: Failure) -> str:
    """On the shapes at hand in the line that failed; '' for none."""
    shapes = ", ".join(f"{variable.name} {variable.text}" for variable in failure.shapes)
    return f"Shapes on that line: {shapes}." if shapes else ""


def line(name: str, failure: Failure) -> Line | None:
    """The learner's own line at which it failed. name: the exercise's."""
    if not failure.line or failure.kind in ("contract", "not_started"):
        return None
    owner = failure.function.partition(".")[0]
    return Line(failure.line, failure.line_number, "" if owner == name else owner)


def line_label(line: Line) -> str:
    """'Your line in `helper` (line 3 of its cell)'."""
    within = f" in `{line.function}`" if line.function else ""
    return f"Your line{within} (line {line.number} of its cell)" if line.number else f"Your line{within}"


def expected_shapes(exercise: Exercise, expected: Mapping[str, Part]) -> str:
    """The shapes that should come; '' where nothing of it has axes, or where what is compared was made of the answer."""
    shapes = {name: part.shape for name, part in expected.items() if part.role == "returned" and part.shape}
    if exercise.compare is not None or not shapes:
        return ""
    if len(exercise.result_names) == 1:
        return f"Expected shape of the result: {next(iter(shapes.values()))}."
    return f"Expected shapes: {', '.join(f'{name} {shape}' for name, shape in shapes.items())}."


def keyword_names(case: Case) -> str:
    """The parameters' names, where inputs are passed by them."""
    names = case.options.get("by_name")
    return (
        f"This case passes the inputs by name: call the parameters {', '.join(names)}, in this order." if names else ""
    )


# --- the experiment, and where to look -----------------------------------------------------------


def experiment(exercise: Exercise, case: Case) -> str:
    """The case as a call: 'Scores of 1000: softmax_rows(scores (3, 3) float64)'; '' for an answer."""
    if exercise.kind == "answer":
        return ""
    options = {name: f"{name}={text}" for name, text in case.options.get("shown", {}).items()}
    inputs = {name: _input(name, value) for name, value in named_inputs(case)} | options
    return f"{_capital(case.title)}: {exercise.name}({', '.join(inputs.values())})"


def named_inputs(case: Case) -> list[tuple[str, Any]]:
    """The inputs of a case with the names under which they are shown."""
    names = [*case.names, *(f"argument {i + 1}" for i in range(len(case.names), len(case.args)))]
    return [*zip(names, case.args, strict=False), *case.kwargs.items()]


def _input(name: str, value: Any) -> str:
    array = value.array if isinstance(value, Tensor) else value
    if isinstance(array, np.ndarray):
        dtype = value.dtype if isinstance(value, Tensor) and value.dtype else array.dtype.name
        return f"{name} {array.shape} {dtype}"
    if isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
        return f"{name} of shapes {', '.join(str(getattr(item, 'array', np.array(item)).shape) for item in value)}"
    return f"{name}={value!r}" if isinstance(value, (int, float, str, bool, type(None))) else name


def next_step(
    exercise: Exercise, status: str, mistakes: Sequence[Sequence[str]] = (), failure: Failure | None = None
) -> str:
    """Where to look next, after what did not pass. mistakes: the ids of each that is proven."""
    name = f'"{exercise.name}"'  # an answer or an unwritten function may have no object to pass
    if status == "forbidden":
        return f"hint({name}) helps you to write it yourself."
    if status == "missing":
        if failure is not None and failure.lesson:
            return f"Hand in {failure.lesson}.ipynb."
        return "`grader reset` restores a lesson and keeps a backup."
    if status == "not_started" or failure is not None:
        return f"hint({name}) gives you a question to start from."
    if mistakes:
        calls = " or ".join(dict.fromkeys(f'explain("{id}")' for ids in mistakes for id in ids))
        return f"{calls} says more; hint({exercise.name}) asks which of your lines does it."
    return f"hint({exercise.name}) gives you a question to think about."


def resemblance(sentence: str, count: int, failing: int) -> str:
    """What a mistake says that shows only some of the failing cases."""
    return f"It looks like this in {count} of the {failing} experiments that fail: {sentence}"


def next_exercise(exercise: Exercise) -> str:
    """What comes next in the course; of another lesson, also which one. '' after the last."""
    course = exercise.course
    name = course.next_exercise(exercise.name)
    if name is None or course.lesson_of(name) == exercise.lesson:
        return name or ""
    return f"{name}, in lesson {course.lesson_of(name)}"


LAST_EXERCISE = "That was the last exercise of the course."
FORM_AS_EXPECTED = "type, shape and dtype are as expected"
NO_LARGE_TENSOR = "no tensor was as large as the T × T table, at any moment"
INPUTS_UNCHANGED = "the inputs are left as they are"


def verified(exercise: Exercise, stage: str, titles: Sequence[str], before: Sequence[str]) -> list[str]:
    """What is verified after a group of cases of those titles. before: what was before it, properties among it."""
    if stage == "extremes":
        return [*before, "extremes hold: " + "; ".join(dict.fromkeys(titles))]
    if exercise.kind == "answer":
        return [*before, "each number is within the tolerance"]
    inputs = f"{len(titles)} inputs (the first: {titles[0]})" if len(titles) > 1 else titles[0]
    claim = "the numbers agree on" if exercise.compare is None else "what was asked for holds on"
    return [FORM_AS_EXPECTED, *before, f"{claim} {inputs}"]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
