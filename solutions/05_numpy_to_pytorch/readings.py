"""Lesson 05: what follows from what its probes saw of a layer that was made from an array, and of an array made from a tensor."""

from collections.abc import Mapping

from grader.course.declare import Case
from grader.course.readings import ContractError, numbers, overlap
from grader.worker.values import Part

Parts = Mapping[str, Part]


def linear(case: Case, parts: Parts) -> dict[str, Part]:
    """The layer's numbers, if it is what the contract describes."""
    d_in, d_out = case.args[0].shape
    weight = parts["layer.weight"]
    if "bias" in parts["parameters"].text.split():
        raise ContractError("The layer has a bias; it should have none (bias=False).")
    if weight.dtype != "float32":
        raise ContractError(f"The layer's weight is {weight.dtype}; expected float32.")
    if weight.shape != (d_out, d_in):
        raise ContractError(
            f"layer.weight has shape {weight.shape}; nn.Linear stores (d_out, d_in), here ({d_out}, {d_in})."
        )
    if not numbers(parts["requires grad"]):
        raise ContractError("The layer's weight does not require grad, so training would never change it.")
    if overlap(*numbers(parts["addresses"], (2, 2))):
        raise ContractError("Changing w afterwards changed the layer: the two share memory.")
    return {name: part for name, part in parts.items() if name not in ("parameters", "requires grad", "addresses")}


def to_numpy(case: Case, parts: Parts) -> dict[str, Part]:
    """What came back, if it is no single number and the tensor still requires grad where it did."""
    result, kind = parts["result"], parts["type"].text
    before, after = numbers(parts["requires grad"], (2,))
    if before != after:
        raise ContractError(
            "The tensor that was handed over no longer requires grad: its caller can't train it any more."
        )
    if result.kind in ("number", "bool"):
        scalar = f"A NumPy scalar ({kind})" if numbers(parts["one of NumPy"]) else f"A Python {kind}"
        shape = tuple(map(int, numbers(parts["shape"])))
        raise ContractError(f"{scalar} came back; expected a NumPy array, here one of shape {shape}.")
    return {"result": result}
