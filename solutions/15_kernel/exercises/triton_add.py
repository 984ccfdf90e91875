"""Two tensors added by a kernel."""

from __future__ import annotations

import numpy as np

from grader.course.declare import exercise, mistake, patch
from grader.course.readings import numbers

from ..shared import HALF, case, compiled, fault, kernel_result, normal

MASK = "mask = offsets < n"
X, Y = "tl.load(x + offsets, mask=mask)", "tl.load(y + offsets, mask=mask)"
STORE = "tl.store(out + offsets, total, mask=mask)"
OUT, GRID = "out = torch.empty_like(x)", "grid = (triton.cdiv(n, 1024),)"
NO_MASK = patch(X, "tl.load(x + offsets)", Y, "tl.load(y + offsets)")
MANY = 16_411  # beyond every usual block
PROGRAMS = 256  # that run of a launch in the larger cases: with one entry a program all of them would take ten seconds


@exercise(
    points=2,
    minutes=9,
    difficulty=1,
    result_type="tensor",
    forbids=("attention", "table"),
    process="own",
    pair_runs=30,
    libraries=("triton",),
)
class triton_add:
    """Add two tensors of one shape by a kernel of your own, one block of entries a program."""

    def cases(rng):
        yield case("small", "five entries", normal(rng, (5,), (5,)))
        yield case("sizes", "two rows of five", normal(rng, (2, 5), (2, 5)))
        yield case("seen again", "the same sizes, new numbers", normal(rng, (2, 5), (2, 5)))
        yield case("one", "one entry", normal(rng, (1,), (1,)))
        yield case("cube", "three axes", normal(rng, (2, 3, 4), (2, 3, 4)), options={"by_name": True})
        long = {"show": False, "options": {"programs": PROGRAMS}, "reading": added}
        yield case("several", "2,500 entries", normal(rng, (2500,), (2500,)), **long)
        yield case("several again", "the same, new numbers", normal(rng, (2500,), (2500,)), **long)
        for key, shape in (("half", (6,)), ("half rows", (3, 7)), ("half many", (1300,))):
            fields = long if key == "half many" else {}
            yield case(key, "float16", normal(rng, shape, shape, dtype=np.float16), **HALF, **fields)
        title = f"{MANY:,} entries"
        yield case("many", title, normal(rng, (MANY,), (MANY,)), costly=True, **{**long, "reading": one_block})
        yield compiled(rng, (2, 5), (2, 5))

    hints = (
        "Which entries belong to program 0, and which to program 1? What do the last program's last lanes have?",
        "`tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)` are a program's entries. Both loads and the store take a pointer plus these "
        "offsets, and a mask that says which of them exist. `triton.cdiv` rounds up.",
        "offsets = ____ * BLOCK + tl.arange(0, BLOCK)\nmask = offsets < ____\n"
        "total = tl.load(x + ____, mask=mask) + tl.load(____, mask=mask)\n"
        "tl.store(____, total, mask=____)\n\ngrid = (triton.cdiv(n, ____),)",
    )

    mistakes = {
        "KN1": mistake(
            NO_MASK,
            NO_MASK + patch(STORE, "tl.store(out + offsets, total)"),
            patch(X, "tl.load(x + offsets)"),
            patch(Y, "tl.load(y + offsets)"),
            says="The load has no mask: its last lanes read beyond the end of the tensor.",
            why="""A block has BLOCK lanes, whatever is left of the tensor. The lanes beyond its end have an address all the same, and what
            lies there is another tensor's, or nobody's, which ends the program. `mask=offsets < n` in the load keeps them from reading.""",
        ),
        "KN3": mistake(
            patch(STORE, "tl.store(out + offsets, total)"),
            says="The store has no mask: its last lanes write beyond the end of the result.",
            why="""Masked lanes of a load give nothing that may be used, and yet each lane of an unmasked store writes. Beyond the result
            lies memory of something else, which is then overwritten, without a word.""",
        ),
        "KN4": mistake(
            patch(GRID, "grid = (n // 1024,)"),
            patch(GRID, "grid = (max(1, n // 1024),)"),
            patch(GRID, "grid = (1,)"),
            says="Too few programs were launched, so that the last entries belong to none: the grid is triton.cdiv(n, BLOCK).",
            why="""2,500 entries in blocks of 1,024 are two full blocks and a part of a third. `n // BLOCK` counts the full ones alone;
            `triton.cdiv(n, BLOCK)` rounds up, and the mask takes care of what the last block has too much.""",
        ),
        "KN8": mistake(
            patch(Y, "tl.load(x + offsets, mask=mask)"),
            patch(X, "tl.load(y + offsets, mask=mask)"),
            patch(f" + {Y}", ""),
            says="Both loads read the same tensor; one reads x, the other y.",
            why="A pointer names the tensor, the offsets the entries: `x + offsets` and `y + offsets`.",
        ),
        "KN9": mistake(
            patch(MASK, "mask = offsets <= n"),
            says="The mask lets one entry too many through: the last one is n − 1.",
            why="Entries count from 0, so that n of them end at n − 1. `offsets <= n` lets entry n through, which is not there.",
        ),
        "KN11": mistake(
            patch(OUT, "out = torch.empty(x.shape, device=x.device)"),
            patch(OUT, "out = torch.empty(x.shape)"),
            says="The result has float32's type whatever the input's is: `torch.empty_like(x)` takes shape, type and device from x.",
            why="`torch.empty(shape)` makes float32 numbers on the CPU, unless it is told otherwise.",
        ),
        "KN70": mistake(
            patch("n = x.numel()", "n = len(x)"),
            says="The rows were counted, `len(x)` or `x.shape[0]`; all entries should be, `x.numel()`.",
            why="""For the kernel a tensor is one long row of numbers. A tensor (3, 4) has 12 of them, and with n = 3 those from entry 3 on
            are masked.""",
        ),
    }


def added(case, parts):
    return kernel_result(case, parts, lambda case: case.args[0].array + case.args[1].array)


def one_block(case, parts):
    """As `added`. Raises: ContractError where one program holds everything in a single block, or lanes were sent to an entry of
    another lane's, where they should be masked."""
    found = added(case, parts)
    shared = parts["twice"].array
    if shared is not None and shared.size:
        used, first, last = map(int, numbers(parts["twice"], (3,)))
        raise fault(
            "Clamped",
            f"In one load {used} lanes read entries {first} to {last}, of which there are {last - first + 1}: some are read by several "
            "lanes. A lane beyond the end is masked in the load, `mask=…`, and not sent to an entry that another lane reads.",
        )
    if int(numbers(parts["widest"], ())) >= MANY:
        raise fault(
            "OneBlock",
            f"One block holds all {MANY:,} entries. A block has to be a fixed number of lanes, such as 1,024: longer tensors take more "
            "programs, not a larger block, of which the compiler allows 1,048,576 lanes at most.",
        )
    return found
