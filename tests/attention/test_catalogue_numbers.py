"""The worked examples of the shared mistakes: each number that a text prints is computed here."""

import math

import numpy as np
import pytest
import torch

from grader.course.course import open_course

TEXTS = open_course().shared_texts()


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def shown(values, digits: int = 4) -> str:
    """A row of numbers as the texts write it, [0.8808, 0.1192], or one number; the minus sign is a long one."""
    row = np.atleast_1d(np.asarray(values, float)).round(digits) + 0.0
    said = ", ".join(f"{value:.0f}" if digits == 0 or value == 0 else f"{value:.{digits}f}" for value in row).replace(
        "-", "−"
    )
    return f"[{said}]" if np.ndim(values) else said


def counts(mask: torch.Tensor) -> list[int]:
    return mask.sum(dim=-1).tolist()


def said_list(numbers) -> str:
    """1, 2 and 3"""
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def tril(rows: int, columns: int, offset: int = 0) -> torch.Tensor:
    return torch.ones(rows, columns, dtype=torch.bool).tril(offset)


def softmax_examples():
    exps = np.array([[3.0, 1], [1, 1]])
    columns = exps / exps.sum(axis=0)
    yield "SM1", shown(columns[0], 2), shown(columns[1], 2), *(shown(row, 2) for row in columns.sum(axis=1))
    yield "SM1", *(shown(row, 2) for row in exps / exps.sum(axis=1, keepdims=True))
    yield "SM2", shown((exps / exps.sum(axis=0))[1], 2), shown(exps[1] / exps[1].sum(), 2)
    yield "SM3", shown(exps.sum(), 0), *(shown(total, 2) for total in (exps / exps.sum()).sum(axis=1))
    exps = np.array([[6.0, 2], [1, 1]])
    row = exps / exps.sum(axis=1)
    yield "SM4", shown(exps.sum(axis=1), 0), f"[{shown(row[0], 2)}, [{shown(row[1, 0], 3)}, {shown(row[1, 1], 2)}]]"
    yield "SM5", shown(softmax(np.array([1000.0, 999]))), f"{math.floor(math.log(np.finfo(float).max))}"
    yield "SM6", shown(softmax(np.array([-200.0, -201])))
    for id, digits in (("SM6", np.float32), ("SM6", np.float64)):
        with np.errstate(under="ignore"):
            yield id, str(next(far for far in range(50, 1000) if np.exp(digits(-far)) == 0))
    with np.errstate(under="ignore"):
        assert not np.exp(np.float32([-201, -202])).any()  # SM6 and, nearly, FL4
    assert round(math.log(np.finfo(np.float32).max), 1) == 88.7


def scale_examples():
    scores = np.array([4.0, 0])
    for id, factors in (("SD1", (1, 1 / 2)), ("SD2", (1 / 2, 1 / 4)), ("SD5", (1 / 2, 2))):
        for factor in factors:
            yield id, shown(scores * factor, 0), shown(softmax(scores * factor))
    yield "SD6", shown(softmax(scores / 2)), shown(softmax(scores) / 2), shown(softmax(scores).sum() / 2, 1)
    yield "SD3", f"4 / √4 = {4 / math.sqrt(4):.0f}", f"4 / √16 = {4 / math.sqrt(16):.0f}"
    yield "SD4", f"8 / √16 = {8 / math.sqrt(16):.0f}", f"8 / √4 = {8 / math.sqrt(4):.0f}"
    yield "SD7", f"4/2 − 2 = {4 / 2 - 2:.0f}", f"(4 − 2)/2 = {(4 - 2) / 2:.0f}"
    table_q, table_k = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[1, 1], [1, 0], [0, 1]])
    yield "SD8", shown((table_q @ table_k.T)[0], 0), shown((table_k @ table_q.T)[0], 0)
    x, w = np.array([1, 0]), np.array([[1, 2], [3, 4]])
    yield "PJ1", f"x @ w = {shown(x @ w, 0)}", f"x @ wᵀ = {shown(x @ w.T, 0)}"
    numbers = torch.arange(12)
    fused, per_head = numbers.chunk(3)[1].view(2, 2), numbers.view(2, 6).chunk(3, dim=-1)[1]
    yield "PJ3", f"its key is {per_head[0].tolist()}", f"true key is {fused[0].tolist()}"


def mask_examples():
    causal = tril(3, 3)
    yield "MK1", said_list(counts(causal)), "2, 1 and 0"
    assert counts(~causal) == [2, 1, 0]
    equal = np.zeros(3)
    late = softmax(equal) * [1, 1, 0]
    yield "MK2", shown(softmax(equal[:2]), 2)[:-1] + ", 0]", shown(late, 2), shown(late.sum(), 2)
    yield "MK3", shown(softmax(np.array([2.0, 0]))), shown(softmax(np.array([-2.0, 0]))[1])
    yield "MK4", shown(softmax(np.array([-10001.0, -10000])))
    with np.errstate(invalid="ignore"):
        added = (1 - np.array([1.0, 0])) * -np.inf
    assert np.isnan(added[0]) and added[1] == -np.inf  # MK5
    yield "MK6", shown(softmax(np.array([1.0, 1]) + [True, False]))
    yield "MK7", said_list(counts(causal)), said_list(counts(tril(3, 3, -1)))
    yield "MK8", said_list(counts(causal)), said_list(counts(tril(3, 3, 1)))
    yield "MK9", shown(softmax(np.full(2, -1e9)), 1)
    yield "MK10", shown(softmax(equal), 2)
    yield "MK12", said_list(counts(tril(2, 4, 2)))
    yield "MK14", said_list(counts(tril(2, 4, 2))), said_list(counts(tril(2, 4)))
    outputs = np.mean([1, 2, 3]), np.mean([1, 2, 9])
    yield "MK13", f"Without it, it is {outputs[0]:.0f}", f"becomes {outputs[1]:.0f}"


def position_examples():
    angle, doubled = 1 / 10000 ** (2 / 4), 1 / 10000 ** (4 / 4)
    yield "PE1", f"{angle:.2f}", f"{math.sin(angle):.7f}", f"{doubled:.4f}"

    def product(p: int, exponent: float) -> float:
        other = 10000**-exponent
        return math.sin(p) * math.sin(p + 1) + math.cos(p * other) * math.cos((p + 1) * other)

    assert all(math.isclose(product(p, 0), math.cos(1)) for p in range(5))
    yield "PE2", f"{math.cos(1):.4f}", f"{product(0, 1 / 2):.5f}", f"{product(1, 1 / 2):.4f}"
    log = -math.log(10000)
    yield (
        "PE3",
        shown(log),
        shown(log / 2),
        shown(log / 4),
        shown(log / 4 // 2, 0),
        shown(math.exp(log / 4 // 2)),
        "0.01",
    )
    assert {log / width // 2 for width in (64, 512, 4096)} == {-1} and round(math.exp(log / 2), 4) == 0.01
    s, c = np.sin([1, 0.01]), np.cos([1, 0.01])
    yield "PE4", shown([s[0], c[0], s[1], c[1]], 3), shown([s[0], s[1], c[0], c[1]], 3)
    yield "PO2", said_list(range(3)), said_list(range(1, 4))
    yield "PO3", f"is {1 / 100 ** (1 / 2):.1f}", f"is {1 / 10000 ** (1 / 2):.2f}"
    yield "RO1", shown([c[0], s[0], 0, 0], 3), shown([c[0], 0, s[0], 0], 3)
    yield "RO2", shown([c[0], 0, s[1], 0], 3), f"length {math.hypot(c[0], s[1]):.3f}"
    right, wrong = (c[0] - s[0], s[0] + c[0]), (c[0] + s[0], s[0] + c[0])
    yield "RO3", shown(right, 3), f"{math.hypot(*right):.3f}", shown(wrong, 3), f"{math.hypot(*wrong):.3f}"


def head_and_gradient_examples():
    x = torch.arange(8).view(1, 2, 4)
    heads = x.view(1, 2, 2, 2).transpose(1, 2)
    yield "MH1", str(heads[0, 0].tolist()), str(x.view(1, 2, 2, 2)[0, 0].tolist())
    yield "MH2", str(heads[0, 1].tolist()), str(heads.reshape(1, 2, 4)[0, 0].tolist()), str(x[0, 0].tolist())
    token = torch.zeros(1, 5, 2, 3)
    yield (
        "MH3",
        str(tuple((token.transpose(1, 2) @ token.transpose(1, 2).mT).shape)),
        str(tuple((token @ token.mT).shape)),
    )
    yield "MH4", ", ".join(map(str, torch.arange(6).view(2, 3).T.flatten().tolist()))
    weights, grad = np.array([0.5, 0.5]), np.array([1.0, 0])
    grad_scores = weights * (grad - (weights * grad).sum())
    yield "BW1", shown(grad_scores, 2), "[0.5, 0]"
    first = (grad_scores @ np.array([[4.0, 0, 0, 0], [0, 0, 0, 0]]))[0]
    yield "BW2", f"0.25 · 4 / 2 = {first / 2:.1f}", f"it is {first:.0f}"
    q = torch.zeros(1, requires_grad=True)
    (torch.softmax(q * torch.tensor([1.0, 0]), dim=-1) @ torch.tensor([1.0, 0])).backward()
    yield "BW3", f"0.5 · 0.5 = {q.grad.item():.2f}"
    yield "DT1", f"{1e9 / torch.finfo(torch.float16).max:.0f}", f"{torch.finfo(torch.float16).max:.0f}"


def later_examples():
    yield "LG1", f"the context is {1 + 2 + 3}"
    for c in (0.0, 2.0):
        yield "LG2", shown(softmax(np.tanh([c + 1, c]))), shown(softmax(np.array([c + 1, c])))
    yield "KV2", f"cos(1) = {shown(math.cos(1))}", f"cos(2) = {shown(math.cos(-2))}"
    cache = torch.zeros(1, 2, 1, 4)
    yield "KV3", *(str(tuple(torch.cat([cache, cache], dim).shape)) for dim in (1, -2))
    yield "KV4", f"which is {np.mean([1, 2, 3]):.0f}", f"which is {np.mean([1, 2, 3, 4])}"
    pair = torch.arange(2)
    yield "GQ1", *(", ".join(map(str, order.tolist())) for order in (pair.repeat_interleave(2), pair.repeat(2)))
    distance = torch.arange(4)[:, None] - torch.arange(4)
    for mask in ((distance >= 0) & (distance < 2), (distance >= 0) & (distance <= 2)):
        yield "SW1", said_list(counts(mask))
    one = shown(softmax(np.array([0, math.log(2)])) @ [3, 0], 0)
    yield "FL1", f"(1 · 3 + 2 · 0) / 3 = {one}", f"3 / 1.5 = {3 / (0.5 + 1):.0f}"
    yield "FL2", f"which gives {3 / (1 + 1)}", f"2 / 2 = {(1 + 1) / (1 + 1):.0f}"
    yield "FL3", f"(0 + 1.5) / (1 + 0.5) = {one}", f"(0 + 3) / (1 + 1) = {(0 + 3) / (1 + 1)}"
    yield "FL4", shown(softmax(np.array([-200.0, -201])))
    yield "TP1", f"3 + 4 + 1 = {3 + 4 + 1}", f"4 + 5 = {(3 + 1) + (4 + 1)}"


EXAMPLES = [
    example
    for group in (
        softmax_examples,
        scale_examples,
        mask_examples,
        position_examples,
        head_and_gradient_examples,
        later_examples,
    )
    for example in group()
]


@pytest.mark.parametrize("id, numbers", [(id, numbers) for id, *numbers in EXAMPLES])
def test_the_numbers_of_the_worked_example_are_right(id, numbers):
    for number in numbers:
        assert number in TEXTS[id].why, f"{id} does not say {number}"
