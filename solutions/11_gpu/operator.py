"""What follows from what a probe saw of a module that calls the fused operator."""

from collections.abc import Mapping

from grader.course.declare import Case
from grader.course.readings import numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
SHAPES = "shapes of query, key and value"


def first_call(case: Case, parts: Parts) -> dict[str, Part]:
    """What the operator was told by its first call, in words, and whether any other operation made a (T, T) tensor.

    A single token has no future: is_causal says nothing for it, and every tensor of one number ends in (1, 1).
    """
    t, calls = case.args[0].array.shape[1], int(numbers(parts["calls"], ()))
    told = dict.fromkeys((SHAPES, "is_causal", "attn_mask"), "nothing: it was not called")
    if calls:
        shapes = [
            "missing" if part.kind == "none" else str(tuple(map(int, numbers(part)))) for part in parts["shapes"].items
        ]
        told = {
            SHAPES: ", ".join(shapes),
            "is_causal": "True" if t == 1 else parts["is_causal"].text,
            "attn_mask": "None" if parts["attn_mask"].text == "NoneType" else "a mask",
        }
    own = t > 1 and (numbers(parts["ends"]).reshape(-1, 2) == t).all(axis=1).any()
    found = {
        name: part for name, part in parts.items() if name not in ("calls", "shapes", "is_causal", "attn_mask", "ends")
    }
    times = {0: "never", 1: "once"}.get(calls, f"{calls} times")
    told = {"call of the operator": times, **told, "(T, T) tensors of its own": "some" if own else "none"}
    return found | {name: Part("text", text=text) for name, text in told.items()}
