"""What follows from what a kernel did, as probes.py tells it, and inputs that the lesson's exercises share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor
from grader.course.readings import ContractError, numbers
from grader.worker.values import Part

Array = np.ndarray
PROBE = "probes.kernel"
READ, WRITE, SHARED = 1, 2, 3  # of a fault, as in probes.py
FAULT = 12  # numbers: kind, input, entries, entry, lane, how many more or whose, program (3), grid (3)
MOST_KEYS = 128  # in one load: a block of more does not fit where it is to stay
SMALLEST = 16  # size over which `tl.dot` sums, on a GPU
HALF = {"rtol": 2e-2, "atol": 2e-4}  # of float16


def normal(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: type = np.float32) -> tuple[Tensor, ...]:
    """Standard-normal numbers of these shapes."""
    return tuple(Tensor(rng.normal(size=shape).astype(dtype)) for shape in shapes)


def case(key: str, title: str, args: tuple, kwargs: Mapping[str, Any] | None = None, **fields: Any) -> Case:
    """A case whose result has the type of its first input, tried by the lesson's probe."""
    reading = fields.pop("reading", kernel_result)
    dtype = (str(args[0].array.dtype),)
    return Case(key, title, args, kwargs or {}, PROBE, reading=reading, dtype=dtype, **fields)


def fault(kind: str, sentence: str) -> ContractError:
    """A fault of this kind: two of one kind are the same, whatever entries and programs their sentences name."""
    made: ContractError = type(kind, (ContractError,), {})(sentence)
    return made


def kernel_result(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The result alone. Raises: ContractError for a read or a write beyond a tensor, an entry that two programs write or none,
    a sum in float16, and for what a wrapper computes in torch."""
    at = parts["fault"].array
    if at is not None and at.size:
        raise _beyond(case, tuple(map(int, numbers(parts["fault"], (FAULT,)))))
    computed = parts["computed"].text.split()
    if computed:
        raise fault(
            "Computed",
            f"Outside of a kernel, torch computed: `{computed[0]}` ran. A wrapper reads shapes, makes empty tensors and views, and launches "
            "kernels; everything else belongs into the kernel.",
        )
    half = parts["half"].text.split()
    if half:
        raise fault(
            "Half",
            f"`{half[0]}` adds up in float16, which keeps three digits and ends at 65,504: sums are kept in float32. The result is converted "
            "when it is stored.",
        )
    result, launches = parts["result"], int(numbers(parts["launches"], ()))
    if not launches:
        raise fault("NotLaunched", f"No kernel was launched. `name[grid]({', '.join(case.names)}, …)` launches one.")
    shape = np.shape(case.args[0].array)
    if result.kind == "tensor" and result.shape == shape:
        _all_written(np.asarray(numbers(parts["written"]), bool), shape, numbers(parts["grid"], (3,)))
    return {"result": result}


def gpu_result(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """As `kernel_result`. Raises: ContractError for what the interpreter lets pass, and a GPU's compiler does not."""
    found = kernel_result(case, parts)
    foreign = parts["foreign"].text.split()
    if foreign:
        raise fault(
            "Foreign",
            f"A kernel uses `{foreign[0]}`, which the compiler for a GPU does not know there: a kernel sees its own parameters, `tl`, other "
            f"kernels, and names that stand for a `tl.constexpr`. Hand a number over as a parameter.",
        )
    if "products" in parts:
        sums = numbers(parts["products"]).reshape(-1, 3)[:, 1]
        if (sums < SMALLEST).any():
            raise fault(
                "SmallDot",
                f"`tl.dot` sums over {int(sums.min())} entries; on a GPU it needs at least {SMALLEST}: choose larger blocks.",
            )
    return found


def _beyond(case: Case, at: tuple[int, ...]) -> ContractError:
    kind, place, entries, entry, lane, more = at[:6]
    program, grid = _index(at[6:9], at[9:12]), _grid(np.array(at[9:12]))
    name = f"`{case.names[place]}`" if 0 <= place < len(case.names) else "the result" if entries else "any tensor"
    if kind == SHARED:
        return fault(
            f"Shared{entry - lane}",
            f"Two programs write entry {entry} of {name}: program {program} and program {_number(more, at[9:12])}, of {grid}. Each entry "
            "is one program's alone: offsets have to differ by a whole block from program to program, and a lane that has no entry "
            "there is masked in the store.",
        )
    does, masked = ("read", "load") if kind == READ else ("written", "store")
    others = "this lane alone is" if more == 1 else f"{more} lanes are"
    counts = ", with `other=…` for what such a lane counts as" if kind == READ else ""
    advice = (
        "An offset below 0 is no entry." if entry < 0 else f"Mask such lanes in the {masked} itself, `mask=…`{counts}."
    )
    kinds = f"{does.capitalize()}Beyond{place}", "ByOne" * (more == 1), "Below" * (entry < 0)
    return fault(
        "".join(kinds),
        f"Entry {entry} of {name} is {does}, which has {entries}, 0 to {entries - 1}: program {program} of {grid}, lane {lane} of its block; "
        f"{others} beyond it. {advice}",
    )


def _all_written(written: Array, shape: tuple[int, ...], grid: Array) -> None:
    """Raises: ContractError where no program wrote an entry."""
    count = int(np.prod(shape))
    missing = np.flatnonzero(~written) if written.size == count else np.arange(count)
    if not missing.size:
        return
    if missing.size == count and grid.prod():
        raise fault(
            "NotStored",
            "No program wrote any entry of the result: `tl.store(pointers, value, mask=…)` writes, through pointers to it.",
        )
    at = tuple(map(int, np.unravel_index(missing[0], shape)))
    raise fault(
        "Unwritten",
        f"No program wrote entry {at[0] if len(at) == 1 else at} of the result, the first of {missing.size} of {count} that are left out: the "
        f"grid has {_grid(grid)}. Programs times block has to reach the last entry, and each lane that has an entry stores it.",
    )


def _index(program: tuple[int, ...], grid: tuple[int, ...]) -> str:
    """'3', or '(0, 1)' where the grid has two axes."""
    axes = max((axis for axis in range(3) if grid[axis] > 1), default=0) + 1
    return str(program[0]) if axes == 1 else str(program[:axes])


def _number(number: int, grid: tuple[int, ...]) -> str:
    return _index(tuple(map(int, np.unravel_index(number, grid))), grid)


def _grid(grid: Array) -> str:
    count = int(np.prod(grid))
    axes = [int(size) for size in grid if size > 1]
    shape = f" ({' × '.join(map(str, axes))})" if len(axes) > 1 else ""
    return f"{count} program{'s' * (count != 1)}{shape}"
