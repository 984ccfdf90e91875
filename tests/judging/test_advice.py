"""What is said of an exception: each sentence belongs to one that NumPy, torch or Python really raises."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from grader.judging import rules
from grader.judging.compare import Finding
from grader.judging.facts import Facts
from grader.judging.judge import judge
from grader.source.slips import Slip
from grader.worker.values import Failure, Variable
from tests.live import from_cells
from tests.mixing_course import COURSE

A, B, WHOLE = np.ones((2, 3)), np.ones((4, 3)), np.ones((2, 3), dtype=int)
P, Q = torch.ones(2, 3), torch.ones(4, 3)
HALF = 2.0
LAYER, EMBED, LEAF = nn.Linear(3, 3), nn.Embedding(4, 2), torch.ones(2, 3, requires_grad=True)


class Bare(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


def facts(type_: str, message: str, line: str = "", shapes: tuple[Variable, ...] = (), function: str = "") -> Facts:
    failure = Failure("exception", type_, message, line, 1, shapes, function=function)
    return Facts(COURSE.exercise("shares"), Finding("failure", failure=failure))


def raised(code: str) -> Facts:
    with pytest.raises(Exception) as caught:
        exec(code, {**globals(), "math": math})
    return facts(type(caught.value).__name__, str(caught.value), code)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("A @ B", "second-to-last"),
        ("np.dot(A, B)", "second-to-last"),
        ("P @ Q", "second-to-last"),
        ("P[None] @ Q[None]", "second-to-last"),
        ("A / A.sum(-1)", "from the right"),
        ("P / P.sum(-1)", "from the right"),
        ("A - B", "from the right"),
        ("np.einsum('qd,kd->qk', A, B.T)", "one letter"),
        ("torch.einsum('qd,kd->qk', P, Q.T)", "one letter"),
        ("Bare()", "super"),
        ("LAYER.weight = torch.ones(3, 3)", "nn.Parameter"),
        ("LAYER.weight.copy_(torch.ones(3, 3))", "no_grad"),
        ("heads = torch.ones(1, 4, 6).transpose(1, 2); heads.view(1, 24)", "Split the last axis"),
        ("torch.ones(1, 4, 6).transpose(1, 2).view(1, 24)", "or a cut"),
        ("torch.ones(3, 5, 7)[:, :-1].view(-1, 7)", "or a cut"),
        ("A[None].repeat(2, 0) @ np.ones((3, 3, 2))", "in front of them"),
        ("LAYER.weight += 1", "an optimizer's step"),
        ("LAYER.requires_grad_().weight.relu_()", "an optimizer's step"),
        ("nn.ReLU(inplace=True)(LEAF)", "leave it out"),
        ("LEAF += 1", "make a new one"),
        ("y = LEAF.exp(); y += 1; y.sum().backward()", "The backward pass still needs"),
        ("P.view(4, 2)", "multiply"),
        ("A.reshape(4, 2)", "multiply"),
        ("LAYER(P.double())", "dtype=x.dtype"),
        ("P @ P.T.double()", "dtype=x.dtype"),
        ("LAYER.weight.numpy()", "detach()"),
        ("P.bfloat16().numpy()", "float()"),
        ("WHOLE /= 2.0", "new array"),
        ("torch.ones(2).int().div_(2.5)", "new array"),
        ("WHOLE[0] += 0.5", "in floats"),
        ("np.log(A, out=WHOLE)", "`dtype=float`"),
        ("(A > 0).round(4)", "`dtype=float`"),
        ("math.exp(1000)", "709.78"),
        ("1 / math.exp(-1000)", "below about −745"),
        ("A.sum(axis=2)", "from the right"),
        ("P.sum(dim=2)", "from the right"),
        ("A[0, 0, 0]", "from the right"),
        ("A[2]", "loop"),
        ("P[2]", "loop"),
        ("[1][1]", "loop"),
        ("A.shape[2]", "`x.shape[-1]`"),
        ("P.shape[2]", "`x.shape[-1]`"),
        ("(1, 2)[2]", "its length"),
        ("np.array(1)[:1]", "a single number"),
        ("torch.tensor(1)[0]", "a single number"),
        ("raise OSError(28, 'No space left on device')", "its folder holds 256 MiB"),
        ("rows = []; rows[0] = 1", "`rows.append(…)`"),
        ("EMBED(torch.tensor([5]))", "ids 0 to n − 1"),
        ("nn.functional.cross_entropy(torch.ones(2, 3, 7), torch.full((2, 7), 5))", "second axis"),
        ("torch.sin(0.5)", "`math.sqrt`"),
        ("b, t, d = A.shape", "names"),
        ("None + 1", "return"),
        ("None.shape", "return"),
        ("bool(A > 0)", ".any()"),
        ("bool(P > 0)", ".any()"),
        ("torch.multinomial(-P, 1)", "softmax"),
        ("math.exp(A)", "functions of `math`"),
        ("math.exp(P)", "functions of `math`"),
        ("float(A)", "holds several"),
        ("torch.tensor([P, P])", "`torch.stack(rows)`"),
        ("(lambda q, k: 0)(1)", "parameters"),
        ("(lambda q: 0)(k=1)", "parameters"),
        ("(lambda q: 0)(1, 2)", "parameters"),
        ("undefined", "top to bottom"),
        ("open('/no/such/file')", "a file beside it is not there"),
    ],
)
def test_an_exception_leads_on(code, says):
    error = raised(code)
    assert says in rules.advice(error), error.failure


@pytest.mark.parametrize(
    "code",
    [
        "range(HALF)",
        "np.zeros(HALF)",
        "np.zeros((3, HALF))",
        "A[HALF]",
        "A[:HALF]",
        "A.reshape(3, HALF)",
        "[1, 2, 3][HALF]",
        "torch.zeros(3, HALF)",
        "torch.empty(HALF, 3)",
        "P.view(3, HALF)",
        "P.repeat(HALF, 1)",
        "P[HALF]",
        "P.chunk(HALF)",
        "P.split(HALF)",
        "nn.Linear(3, HALF)",
        "nn.Embedding(HALF, 3)",
    ],
)
def test_a_float_in_place_of_a_length_is_recognized(code):
    error = raised(code)
    assert error.needs_whole(), error.failure


@pytest.mark.parametrize(
    "code",
    [
        "torch.sin(HALF)",
        "A[2]",
        "P[2]",
        "range([1])",
        "[1]['a']",
        "math.exp(A)",
        "(lambda q: 0)(1, 2)",
        "torch.softmax(P)",
    ],
)
def test_other_errors_are_not_taken_for_a_float_in_place_of_a_length(code):
    assert not raised(code).needs_whole()


def test_what_is_not_known_gets_no_sentence():
    for type_, message in (("ValueError", "the temperature must be positive"), ("KeyError", "'q'")):
        assert rules.advice(facts(type_, message)) == ""


def test_what_never_ended_or_took_too_much_gets_a_sentence_of_its_own_and_other_ends_none():
    def advice(kind: str) -> str:
        return rules.advice(
            Facts(COURSE.exercise("shares"), Finding("failure", failure=Failure(kind, message="einsum()")))
        )

    assert "a recursion that never ends" in advice("timeout") and "far larger than the inputs" in advice("memory")
    assert not advice("died") and not advice("contract") and "one letter" in advice("exception")


def test_a_cell_that_ends_in_what_has_another_meaning_is_told_so():
    other = Slip("rebound", "max(x, 1)", 2, "max", "from numpy import *")
    error = replace(facts("TypeError", "only integer scalar arrays", "max(x, 1)"), slips=(other,))
    assert rules.advice(error).startswith("`max` is not Python's own here: `from numpy import *`")
    assert not rules.advice(replace(error, slips=(other._replace(line="max(1, x)"),)))


def advised(cell: str, name: str = "shares") -> str:
    return " ".join(judge(COURSE.exercise(name), from_cells(name, cell)).details)


def test_keepdims_is_advised_where_a_sum_lost_its_axis_and_nowhere_else():
    for body in (
        "e = np.exp(scores)\n    return e / e.sum(axis=1)",
        "e = np.exp(scores)\n    total = e.sum(1)\n    return e / total",
    ):
        exercise = "def shares(scores):\n    scores = np.concatenate([scores, scores], axis=1)\n    " + body
        assert "keepdims" in advised(exercise)
    other = advised("def shares(scores):\n    return scores + np.ones((7, 5))")
    assert "keepdims" not in other and "matched from the right" in other


def test_keepdims_is_not_advised_for_a_sum_that_comes_later():
    later = advised("def shares(scores):\n    total = (scores * np.ones((7, 5))).sum(axis=1)\n    return total")
    assert "keepdims" not in later and "matched from the right" in later


def test_a_transposition_is_advised_where_it_would_fit():
    assert "if B is transposed" in advised("def shares(scores):\n    other = scores + 1\n    return scores @ other")
    wrong = advised("def shares(scores):\n    few = scores[:1, :2]\n    return scores @ few")
    assert "transposed" not in wrong and "as long as" in wrong


def advised_on(line: str, error: str, **arrays: np.ndarray) -> str:
    shapes = tuple(
        Variable(name, f"{array.shape} {array.dtype}", "array", array.shape) for name, array in arrays.items()
    )
    type_, _, message = error.partition(": ")
    return rules.advice(facts(type_, message, line, shapes))


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("s = q @ k", "here it is if B is transposed"),
        ("s = np.dot(q, k)", "here it is if B is transposed"),
        ("s = q @ k.T", "turns all axes round"),
        ("s = q @ k.transpose(0, 1)", "turns all axes round"),
        ("s = np.matmul(q, k.T)", "turns all axes round"),
        ("s = q @ turned(k)", "compare both"),
        ("s = q @ k.mT[:, 1:]", "compare both"),
        ("s = torch.bmm(q, k.transpose(1, 2))", "compare both"),
    ],
)
def test_what_is_advised_of_a_product_fits_how_it_was_written(line, advice):
    three = {"q": np.ones((2, 5, 4)), "k": np.ones((2, 7, 4))}
    assert advice in advised_on(line, "ValueError: matmul: Input operand 1 has a mismatch", **three)


def test_names_that_no_python_has_end_nothing():
    assert "compare both" in advised_on(
        "s = q @ k", "ValueError: matmul: Input operand 1", **{"(q": np.ones((5, 4)), "[k": np.ones((7, 4))}
    )


def test_what_is_averaged_is_not_to_be_transposed():
    said = advised_on(
        "out = weights @ v", "ValueError: matmul: Input operand 1", weights=np.ones((2, 2, 2)), v=np.ones((2, 3, 2))
    )
    assert "transposed" not in said and "compare both" in said


def test_x_turned_is_right_where_there_are_two_axes():
    assert "all axes" not in advised_on(
        "s = q @ k.T", "ValueError: matmul: Input operand 1", q=np.ones((5, 4)), k=np.ones((7, 3))
    )


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("p[targets] -= 1", "picks whole rows"),
        ("return -softmax(scores)[targets]", "picks whole rows"),
        ("x = np.eye(2)[targets]", "loop's end"),
        ("p[i, targets]", "loop's end"),
        ("p[i]", "loop's end"),
    ],
)
def test_whole_rows_are_spoken_of_where_an_array_is_the_only_index(line, advice):
    error = "IndexError: index 2 is out of bounds for axis 0 with size 2"
    said = advised_on(line, error, p=np.ones((2, 3)), targets=np.array([0, 2]), i=np.array(2))
    assert advice in said and "queries" not in said


RIGHT_ROWS = "def shares(scores):\n    e = np.exp(scores - max(scores.max(axis=1), 0.5))\n    return e / e.sum(axis=1, keepdims=True)\n"


@pytest.mark.parametrize(
    "before, says",
    [
        ("from numpy import *", "`max` is not Python's own here: `from numpy import *` has given it another meaning."),
        ("max = 3", "`max` is not Python's own here: `max = 3` has given it another meaning."),
        ("from math import *", ""),
    ],
)
def test_one_of_python_s_functions_that_is_something_else_is_told(before, says):
    text = f"{before}\n" + RIGHT_ROWS
    verdict = judge(COURSE.exercise("shares"), from_cells("shares", text))
    assert verdict.slip.startswith(says) and ("another meaning" in verdict.slip) == bool(says)


def test_no_einsum_is_blamed_where_there_is_none():
    error = "ValueError: operands could not be broadcast together with remapped shapes [original->remapped]: (2,3,2,5) (2,5,6)"
    assert "In einsum" in advised_on("out = np.einsum('bqk,bkd->bqd', w, v)", error)
    assert "in front of them" in advised_on("out = w @ v", error)
    cell = """
def shares(scores):
    batch = np.stack([scores] * 3)
    return np.dot(batch, batch.swapaxes(-1, -2)) @ batch
"""
    assert "`np.dot` multiplies each matrix of one batch with each" in advised(cell)


def test_a_librarys_function_is_not_compared_with_the_exercise():
    line = "w = torch.softmax(s)"
    assert "What this line calls" in advised_on(
        line, 'TypeError: softmax() missing 1 required positional arguments: "dim"'
    )
    own = advised("def scaled(scores):\n    return scores / 2", "scaled")
    assert "the exercise's" in own and "this line" not in own


def test_expected_shapes_are_told_where_a_shape_may_be_at_fault():
    cell = """
class Mixer(nn.Module):
    def __init__(self, d_model, d, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d{bias})
        self.w_k, self.w_v = nn.Linear(d_model, d, bias=False), nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        return self.{w_q}(x) @ self.w_k(x), x
"""
    biased, without = (
        advised(cell.format(bias=bias, w_q=w_q), "Mixer") for bias, w_q in (("", "w_q"), (", bias=False", "query"))
    )
    assert "Expected shape" not in biased + without
    assert "Expected shapes: output" in advised(cell.format(bias=", bias=False", w_q="w_q"), "Mixer")


def test_if_is_blamed_only_where_there_is_one():
    assert "`if` needs one" in advised("def shares(scores):\n    if scores:\n        return scores\n    return 1")
    pairs = advised(
        "def shares(scores):\n    pairs = [(row, i) for i, row in enumerate(scores)]\n    return max(pairs)[1]"
    )
    assert "`if`" not in pairs and "`key=…`" in pairs


ARRAYS = "a, b, c, d, w = np.ones((2, 3)), np.ones((3, 2)), np.ones((3, 5)), np.ones((4, 3)), np.ones(2)"


@pytest.mark.parametrize(
    "line, says",
    [
        ("a * b", "one of the two is transposed"),
        ("a * c", "shapes (2, 3) and (3, 5) do not fit so; the matrix product"),
        ("1 + a*c", "the matrix product is written `@`"),
        ("w * a", "`w @ a` multiplies row i by entry i"),
        ("a * d.T", "shapes (2, 3) and (3, 4) do not fit so; the matrix product"),
        ("a * d.swapaxes(0, 1)", "the matrix product is written `@`"),
        ("(a * d).sum(axis=1)", "all rows times all rows is the matrix product `a @ d.T`"),
        ("a * a + a * c", "shapes (2, 3) and (3, 5) do not fit so"),
        *((line, "") for line in ("a * d", "b @ a * c", "a * c ** 2", "a * c[:2]", "a * c.copy()", "a + c  # a * c")),
        ("times(a, c)", ""),
        ("np.stack([a, c], f'a * c of {a} and {c}')", ""),
    ],
)
def test_a_star_is_blamed_where_these_two_arrays_do_not_fit_and_only_in_the_answer_s_own_line(line, says):
    cell = f"def times(x, y):\n    return x * y\ndef shares(scores):\n    {ARRAYS}\n    return {line}"
    slip = judge(COURSE.exercise("shares"), from_cells("shares", cell)).slip
    assert says in slip and bool(says) == ("`*` multiplies entry by entry" in slip)


@pytest.mark.parametrize(
    "line, own",
    [
        ("raise np.linalg.LinAlgError('no')", True),
        ("if len(scores): raise ValueError('no scores')", True),
        ("refuse(scores)", False),
        ("1 / 0  # raise ZeroDivisionError: division by zero", False),
        ("scores.shape[7 if 'raise IndexError' else 'tuple index out of range']", False),
    ],
)
def test_the_answer_s_own_raise_is_one_that_it_makes_in_that_line(line, own):
    cell = f"def refuse(x):\n    raise ValueError('no')\ndef shares(scores):\n    {line}\n    return scores"
    assert ("own `raise`" in judge(COURSE.exercise("shares"), from_cells("shares", cell)).slip) == own


@pytest.mark.parametrize(
    "line, says",
    [
        ("return 1 if scores > 0 else 2", "`if` needs one"),
        ("return scores and 1", "`if` needs one"),
        ("return max(scores)", "`key=…`"),
        ("return max(scores, key=lambda row: row if row.any() else -row)", "`if` needs one"),
        ("assert scores > 0, 'rows and columns'", "One True or False"),
        ("return bool(scores) is not None  # if there are any", "One True or False"),
        ("return bool(scores) not in (1, 2)", "One True or False"),
    ],
)
def test_what_asks_for_a_truth_value_is_told_by_the_line(line, says):
    assert says in advised(f"def shares(scores):\n    {line}")


MAXIMUM = "`.max` along an axis gives two things"


@pytest.mark.parametrize(
    "lines, says",
    [
        *((line, MAXIMUM) for line in ("x - x.max(-1)", "x.max(-1) + 1", "x * x.max(-1)", "torch.exp(x.max(dim=-1))")),
        ("x - x.min(-1, keepdim=True)", MAXIMUM.replace("max", "min")),
        ("m = x.max(-1)\n        x - m", MAXIMUM),
        *((line, "") for line in ("x.shape + x.max()", "x.max(-1).values + None", "x.shape + 1")),
        ("m = x - x.max(-1).values.sum()\n        None + 1", ""),
    ],
)
def test_a_maximum_s_two_things_are_told_where_they_are_what_failed(lines, says):
    cell = f"""
class Mixer(nn.Module):
    def __init__(self, d_model, d, d_v):
        super().__init__()
        self.w_q, self.w_k = nn.Linear(d_model, d, bias=False), nn.Linear(d_model, d, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        {lines}
        return x, x
"""
    slip = judge(COURSE.exercise("Mixer"), from_cells("Mixer", cell)).slip
    assert says in slip and bool(says) == ("two things" in slip)


def test_what_a_mistake_says_as_well_is_silent_beside_a_proven_one_and_what_none_says_is_not():
    refused = facts("ValueError", "no", "raise ValueError('no')", function="shares")
    assert "own `raise`" in rules.slip(refused, False) and not rules.slip(refused, True)
    undefined = facts("NameError", "name 'sqrt' is not defined", "sqrt(2)")
    assert "`np.sqrt`" in rules.slip(undefined, False) == rules.slip(undefined, True)


def test_the_line_that_overwrites_what_a_gradient_needs_is_named_where_there_is_only_one():
    error = raised("y = LEAF.exp(); y += 1; y.sum().backward()")
    first, other = Slip("overwrites", "y += 1", 2), Slip("overwrites", "y -= 1", 3)
    assert "before `y += 1` (line 2 of its cell)" in rules.slip(replace(error, slips=(first,)), False)
    assert not rules.slip(replace(error, slips=(first, other)), False)


def test_where_a_mistake_is_proven_general_advice_is_silent():
    named = judge(COURSE.exercise("products"), from_cells("products", "def products(Q, K):\n    return Q @ K"))
    assert (
        named.status == "error"
        and named.mistakes
        and len(named.details) == 2
        and "second-to-last" not in " ".join(named.details)
    )
