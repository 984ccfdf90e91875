"""Any tensor as an array: off the graph, off its device, out of bfloat16."""

from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings

CONVERT = "if tensor.dtype == torch.bfloat16:\n        tensor = tensor.float()"
UNCONVERTED = patch(f"{CONVERT}\n    ", "")


@exercise(points=2, minutes=6, difficulty=1, result_type="ndarray", rtol=0.0, atol=0.0, forbids=("tampering",))
class as_numpy:
    """Bring any tensor back to NumPy: from the graph, from another device, from bfloat16."""

    def cases(rng):
        def case(
            title: str, dtype: str, array: Any, key: str = "", grad: bool = False, view: str = "plain", **fields: Any
        ) -> Case:
            allowed = ("float32", "float64") if dtype == "bfloat16" else (dtype,)
            return Case(
                key or title,
                title,
                (Tensor(np.array(array), dtype, grad),),
                probe="probes.to_numpy",
                options={"view": view},
                names=("tensor",),
                dtype=allowed,
                reading=readings.to_numpy,
                **fields,
            )

        def draw(title: str, dtype: str, *shape: int, **fields: Any) -> Case:
            return case(title, dtype, rng.normal(size=shape), **fields)

        whole = np.array([[1.0, 2, 3], [4, 5, 6]])
        yield case("a float32 tensor", "float32", whole, "small")
        yield case("a float32 tensor that requires grad", "float32", whole + 0.5, "trained", grad=True)
        yield case("a bfloat16 tensor", "bfloat16", whole / 4, "bfloat16")
        yield draw("a float64 tensor that requires grad", "float64", 3, 2, grad=True)
        yield draw("a tensor computed from one that requires grad", "float32", 2, 4, grad=True, view="computed")
        yield draw("a parameter", "float32", 4, 3, view="parameter")
        yield draw("a bfloat16 tensor that requires grad", "bfloat16", 3, 4, grad=True)
        yield draw("a transposed bfloat16 tensor", "bfloat16", 2, 3, 4, view="transposed")
        half = draw("a float16 tensor, passed by name", "float16", 3, 5)
        yield replace(half, options={**half.options, "by_name": True})
        yield draw("a transposed float64 tensor", "float64", 3, 2, 4, view="transposed")
        yield draw(
            "every second column of a float32 tensor that requires grad", "float32", 2, 6, grad=True, view="strided"
        )
        for dtype, low in (("int64", -1000), ("int32", -1000), ("int16", -1000), ("int8", -100), ("uint8", 0)):
            yield case(
                f"{'a' if dtype == 'uint8' else 'an'} {dtype} tensor", dtype, rng.integers(low, 100, size=(2, 4)), dtype
            )
        yield case("integers that float32 cannot hold", "int64", [[2**24 + 1, -(2**31) + 1]], "large integers")
        yield case("a mask: a bool tensor", "bool", np.tri(3, 4, dtype=bool), "bool")
        for dtype in ("float32", "bfloat16", "int64", "bool"):
            yield case(f"a single {dtype}, shape ()", dtype, 1.25 if "float" in dtype else 1, f"0-d {dtype}")
        yield case("a loss: shape (), requires grad", "float32", 0.1, "0-d trained", grad=True)
        for dtype, shape in (("float32", (0, 3)), ("bfloat16", (2, 0)), ("int32", (0,))):
            yield case(f"an empty {dtype} tensor of shape {shape}", dtype, np.zeros(shape), f"empty {dtype}")
        yield draw("the first shape again, new numbers", "float32", 2, 3)
        for shape in ((1,), (1, 1)):
            yield case(f"one number in a tensor of shape {shape}", "float32", np.full(shape, 0.5), f"one of {shape}")
        # Last, because a learner without a GPU cannot try them.
        for dtype, grad in (("float32", True), ("float64", False), ("bfloat16", True), ("int64", False)):
            title = f"a stand-in for {'an' if dtype[0] == 'i' else 'a'} {dtype} tensor on a GPU"
            values = rng.integers(-9, 9, size=(2, 3)) if dtype == "int64" else rng.normal(size=(2, 3))
            yield case(title, dtype, values, f"gpu {dtype}", grad=grad, view="elsewhere", stage="extremes")

    hints = (
        "Three things can keep a tensor from becoming a NumPy array. For two of them the error message says what to call: which two?",
        "`detach()` leaves the graph, `cpu()` leaves the device, and bfloat16 has no NumPy type: only that one is converted.",
        "tensor = tensor.____().____()\nif tensor.dtype == torch.____:\n    tensor = tensor.____()\nreturn tensor.numpy()",
    )

    mistakes = {
        "NT10": mistake(
            patch(".detach()", ""),
            patch(f"tensor = tensor.detach().cpu()\n    {CONVERT}\n    ", ""),
            says="A tensor that requires grad was handed to NumPy, which cannot take it; hand over what `detach()` returns.",
            why="""An array has no graph. Rather than cut the tensor's graph silently, torch raises 'Can't call numpy() on Tensor that
            requires grad'. `tensor.detach()` leaves `tensor` as it is and returns another, so it is that one that counts.""",
        ),
        "NT11": mistake(
            UNCONVERTED,
            patch("tensor.float()", "tensor.half()"),
            says="A bfloat16 tensor was handed to NumPy as it is, or as float16; convert it to float32.",
            why="""NumPy lacks bfloat16: `.numpy()`, with `force=True` too, raises 'Got unsupported ScalarType BFloat16'.
            bfloat16 has the exponent of float32 in 16 bits, and so its range: up to 3 · 10³⁸. float16 ends at 65504 and
            loses the small ones. `float()` keeps every bfloat16 number as it is.""",
        ),
        "NT10+NT11": patch(".detach()", "") + UNCONVERTED,
        "NT12": mistake(
            patch(CONVERT, "tensor = tensor.float()"),
            patch(CONVERT, "tensor = tensor.double()"),
            patch("tensor.dtype == torch.bfloat16", "tensor.is_floating_point()"),
            says="More than bfloat16 was converted to one float type; every other dtype should be kept, since NumPy has it.",
            why="float64 loses digits, integers stop being indices, a mask stops being one. Convert only where NumPy lacks the type.",
        ),
        "NT13": mistake(
            patch(".cpu()", ""),
            says="`cpu()` is missing: the tensor stays on its device, but NumPy reads the computer's own memory.",
            why="""On a laptop without a GPU nothing shows it. On one with a GPU, `.numpy()` raises 'can't convert cuda:0 device
            type tensor to numpy'. `cpu()` costs nothing where the tensor is there already.""",
        ),
        "NT15": mistake(
            patch("tensor.detach()", "tensor.requires_grad_(False)"),
            says="The caller's own tensor was switched to requires_grad=False and no longer trains; use `detach()`, which makes another.",
            why="""`requires_grad_(False)` and `detach_()` end in an underscore because they change the tensor itself. `detach()`
            returns another tensor and leaves the first alone.""",
        ),
        "NT16": mistake(
            patch("tensor.numpy()", "np.array(tensor.tolist())"),
            says="The tensor went through Python lists, which lose the dtype, and the shape of an empty tensor; use `numpy()`.",
            why="A list of Python floats becomes a float64 array, and a (2, 0) tensor becomes `[[], []]` or less.",
        ),
    }
