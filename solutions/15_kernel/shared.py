"""What follows from what a kernel did, as probes.py tells it, and inputs that the lesson's exercises share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from grader.course.declare import Case, Tensor
from grader.course.readings import IN_PART, ContractError, numbers
from grader.worker.values import Part

Array = np.ndarray
Right = Callable[[Case], Array]  # gives the right result of a case
PROBE = "probes.kernel"
READ, WRITE, SHARED, LANES = 1, 2, 3, 4  # of a fault, as in probes.py
FAULT = 12  # numbers: kind, input, entries, entry, lane, how many more or whose, program (3), grid (3)
MOST_KEYS = 128  # in one load: a block of more does not fit where it is to stay
COMPILED = "float16, and compiled for a GPU"
HALF = {"rtol": 2e-2, "atol": 2e-4}  # of float16


class Written(NamedTuple):
    """The entries of the result in which a program's stores lie: at which the first store begins, the lowest and the highest."""

    begin: int
    first: int
    last: int


def normal(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: type = np.float32) -> tuple[Tensor, ...]:
    """Standard-normal numbers of these shapes."""
    return tuple(Tensor(rng.normal(size=shape).astype(dtype)) for shape in shapes)


def case(key: str, title: str, args: tuple, kwargs: Mapping[str, Any] | None = None, **fields: Any) -> Case:
    """A case whose result has the type of its first input, tried by the lesson's probe."""
    reading = fields.pop("reading", kernel_result)
    dtype = (str(args[0].array.dtype),)
    return Case(key, title, args, kwargs or {}, PROBE, reading=reading, dtype=dtype, **fields)


def compiled(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Case:
    """A case in which what the compiler for a GPU refuses is wrong as well."""
    args = normal(rng, *shapes, dtype=np.float16)
    return case("compiled", COMPILED, args, stage="extremes", options={"compiled": True}, **HALF)


def fault(kind: str, sentence: str) -> ContractError:
    """A fault of this kind: two of one kind are the same, whatever entries and programs their sentences name."""
    made: ContractError = type(kind, (ContractError,), {})(sentence)
    return made


def kernel_result(case: Case, parts: Mapping[str, Part], right: Right | None = None) -> dict[str, Part]:
    """The result alone; where only some programs ran, what the others would have written is taken to be `right`.

    Raises: ContractError for a read or a write beyond a tensor, an entry that two programs write or none, a sum in float16, for what
        a wrapper computes in torch, and for what the compiler refuses.
    """
    at = parts["fault"].array
    if at is not None and at.size:
        raise _beyond(case, tuple(map(int, numbers(parts["fault"], (FAULT,)))), parts["call"].text.split())
    computed = parts["computed"].text.split()
    if computed:
        raise fault(
            "Computed",
            f"Outside of a kernel, torch computed: `{computed[0]}` ran. A wrapper reads shapes, makes "
            "empty tensors and views, and launches "
            "kernels; everything else belongs into the kernel.",
        )
    half = parts["half"].text.split()
    if half:
        raise fault(
            "Half",
            f"`{half[0]}` adds up in float16, which keeps three digits and ends at 65,504: sums are "
            "kept in float32. The result is converted "
            "when it is stored.",
        )
    if "refused" in parts and parts["refused"].text:
        raise _refused(*parts["refused"].text.split("\n", 1))
    result, grids = parts["result"], numbers(parts["grids"]).reshape(-1, 3)
    if not len(grids):
        raise fault("NotLaunched", f"No kernel was launched. `name[grid]({', '.join(case.names)}, …)` launches one.")
    shape = np.shape(case.args[0].array)
    if result.kind != "tensor" or result.shape != shape:
        return {"result": result}
    written = np.asarray(numbers(parts["written"]), bool)
    if right is None or not numbers(parts["left_out"], ()) or written.size != np.prod(shape):
        _all_written(written, shape, grids[-1])
        return {"result": result}
    whole = np.where(written.reshape(shape), numbers(result), right(case)).astype(numbers(result).dtype)
    return {"result": replace(result, array=whole), IN_PART: Part("none")}


def _refused(line: str, message: str) -> ContractError:
    """line: of the kernel. message: the compiler's, which may be an exception as Python prints it."""
    plain = re.fullmatch(r"""\w+\((['"])(.*)\1\)""", message)
    at = f" at `{line}`" if line else ""
    return fault(
        "Refused",
        f"Triton's compiler refuses this kernel{at}: “{plain[2] if plain else message}”. The interpreter lets it pass, and no GPU would.",
    )


def attention_result(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """As `kernel_result`, of q, k, v and causal. Raises: ContractError where a program reads a key twice, all keys at once, or one that
    none of its queries may see, and where the wrapper makes room for all scores."""
    found = kernel_result(case, parts, _attention)
    q, k = (np.shape(value.array) for value in case.args[:2])
    scores, largest = int(np.prod(q[:3])) * k[2], int(numbers(parts["largest"], ()))
    if largest >= scores > q[2] * q[3] + 2 * k[2] * k[3]:  # so many scores that no tensor of another kind is as large
        raise fault(
            "Table",
            f"The wrapper made a tensor of {largest:,} entries: with {q[2]} queries and {k[2]} keys, "
            "that is room for every score. A tile of "
            "scores stays inside its program.",
        )
    # In Python's own numbers: there may be hundreds of loads, and each mistake has its own.
    loads, stores = (numbers(parts[name]).reshape(-1, 7).astype(int).tolist() for name in ("loads", "stores"))
    grids = numbers(parts["grids"]).reshape(-1, 3)
    read: Counter[tuple[int, ...]] = Counter()
    for load in loads:
        read[tuple(load[:3])] += load[6]
    written = _written(stores)
    for place, name in ((1, "key"), (2, "value")):
        for load in loads:
            if load[2] != place:
                continue
            own = written.get(tuple(load[:2]))
            program = partial(_number, load[1], grids[load[0] - 1])
            _once(name, k, load, read[tuple(load[:3])], _heads(own, q), program)
            if (
                case.kwargs.get("causal") and len(grids) == 1
            ):  # of several kernels, what one writes may be no row of the result
                _visible(q, k, load, own, program)
    return found


def _attention(case: Case) -> Array:
    """Attention of the case's q, k and v."""
    q, k, v = (value.array.astype(np.float64) for value in case.args)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if case.kwargs.get("causal"):
        t_q, t_k = scores.shape[-2:]
        scores = np.where(np.tri(t_q, t_k, t_k - t_q, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Array = weights / weights.sum(axis=-1, keepdims=True) @ v
    return found


def _written(stores: list[list[int]]) -> dict[tuple[int, ...], Written]:
    """What each program of each launch wrote of a tensor that is no input."""
    found: dict[tuple[int, ...], Written] = {}
    for launch, program, place, first, last, *_ in stores:
        if place < 0:
            before = found.get((launch, program), Written(first, first, last))
            found[launch, program] = Written(before.begin, min(first, before.first), max(last, before.last))
    return found


def _heads(own: Written | None, q: tuple[int, ...]) -> int:
    """How many heads of q a program's stores lie in."""
    if own is None:
        return 1
    head = q[2] * q[3]
    return own.last // head - own.first // head + 1


def _once(name: str, k: tuple[int, ...], load: list[int], read: int, heads: int, program: Callable[[], str]) -> None:
    """Raises: ContractError for a key that is read more than once, or all at once."""
    if read > heads * k[2] * k[3]:
        raise fault(
            "KeyTwice",
            f"Program {program()} reads {name}s more than once: {read // k[3]} rows of {k[3]} in all, "
            f"and its head has {k[2]}. One pass over the "
            "tiles is enough: m, l and o carry what is needed from tile to tile.",
        )
    if k[2] > 2 * MOST_KEYS and load[6] >= k[2] * k[3]:
        raise fault(
            "AllKeys",
            f"Program {program()} loads all {k[2]} {name}s at once. Take them in tiles of 16 to "
            f"{MOST_KEYS}: a tile has to fit into the chip's "
            "fast memory, however many keys there are.",
        )


def _visible(
    q: tuple[int, ...], k: tuple[int, ...], load: list[int], own: Written | None, program: Callable[[], str]
) -> None:
    """Raises: ContractError for a load in which every key, masked or not, lies after the program's last query."""
    if own is None or _heads(own, q) > 1:
        return
    head = own.begin // (q[2] * q[3])
    last = own.last // q[3] - head * q[2]
    key = load[3] // k[3] - head * k[2]
    if key >= k[2]:
        raise fault(
            "BeyondKeys",
            f"Program {program()} loads a block that begins at key {key}, and there are {k[2]}, 0 to {k[2] - 1}. The loop ends at T_k at "
            "the latest: take the smaller of that and what the last query sees.",
        )
    if key > last + k[2] - q[2]:
        raise fault(
            "HiddenBlock",
            f"Program {program()} has queries up to {last}, which see keys up to {last + k[2] - q[2]}, "
            f"and it loads a block that begins at key {key}: "
            "hidden as a whole. In a causal call the loop ends before such blocks; a load counts whatever its mask is.",
        )


def _beyond(case: Case, at: tuple[int, ...], call: list[str]) -> ContractError:
    kind, place, entries, entry, lane, more = at[:6]
    program = f"Program {_index(at[6:9], at[9:12])} of {_grid(np.array(at[9:12]))}"
    reads, masked = ("reads", "load") if kind == READ else ("writes", "store")
    if not entries:
        return fault(
            f"{reads.capitalize()}Nowhere",
            f"{program} {reads} where no tensor is, first in lane {lane} of its block. An offset is too large by far, or what it is "
            "added to is no pointer.",
        )
    name = f"`{case.names[place]}`" if 0 <= place < len(case.names) else "the result"
    if kind == SHARED:
        return fault(
            f"Shared{entry - lane}",
            f"{program} writes entry {entry} of {name}, which program {_number(more, at[9:12])} has written. Each entry is one program's "
            "alone: a program begins where the one before it ends, and a lane that has no entry there is masked in the store.",
        )
    if kind == LANES:
        return fault(
            "Lanes",
            f"{program} writes entry {entry} of {name} with two lanes of one store, the second of them lane {lane}. Each lane has an "
            "entry of its own; a lane that has none is masked, and not sent to another's.",
        )
    others = f", and so do {more - 1} more lanes" if more > 1 else ""
    advice = _advice(kind, masked, call) if entry >= 0 else "An offset below 0 is no entry."
    kinds = (
        f"{reads.capitalize()}Beyond{place}",
        ("ByOne" + "Masked" * (call == ["masked"])) * (more == 1),
        "Below" * (entry < 0),
    )
    return fault(
        "".join(kinds),
        f"{program} {reads} entry {entry} of {name}, which has {entries}, 0 to {entries - 1}: lane {lane} of its block does{others}. "
        f"{advice}",
    )


def _advice(kind: int, access: str, call: list[str]) -> str:
    """What to look at where a lane that has no entry reads or writes. call: what the source shows of it, as the probe tells it."""
    counts = ", and `other=` says what such a lane counts as" if kind == READ else ""
    if call == ["masked"]:
        return f"The {access} has a mask, which lets this lane through: either its condition or the lane's offset is wrong."
    if len(call) == 2 and all(map(str.isidentifier, call)):
        return f"The {access} has no mask: `mask={call[0]} < {call[1]}` is missing{counts}."
    bare = f"The {access} has no mask. " if call == ["unmasked"] else ""
    lane = f"{bare}A lane that has no entry there is masked in the {access} itself{counts};"
    return f"{lane} if it has one, its offset is wrong."


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
    axes = " Does each `tl.program_id` name the axis of the grid that it counts along?" if grid[1:].max() > 1 else ""
    raise fault(
        "Unwritten",
        f"No program wrote entry {at[0] if len(at) == 1 else at} of the result; of its {count} entries {missing.size} "
        f"{'is' if missing.size == 1 else 'are'} left out. The grid has {_grid(grid)} program{'' if grid.prod() == 1 else 's'}. Enough "
        f"programs, each of a block that is long enough, reach every entry, and each lane that has an entry stores it.{axes}",
    )


def _index(program: tuple[int, ...], grid: tuple[int, ...]) -> str:
    """'3', or '(0, 1)' where the grid has two axes."""
    axes = max((axis for axis in range(3) if grid[axis] > 1), default=0) + 1
    return str(program[0]) if axes == 1 else str(program[:axes])


def _number(number: int, grid: tuple[int, ...]) -> str:
    return _index(tuple(map(int, np.unravel_index(number, grid))), grid)


def _grid(grid: Array) -> str:
    """How many programs: '3', or '2 × 6' where the grid has two axes."""
    return " × ".join(str(size) for size in map(int, grid) if size > 1) if grid.prod() > 1 else str(int(grid.prod()))
