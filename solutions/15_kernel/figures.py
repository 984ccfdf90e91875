"""Lesson 15: what it asks Triton beside running kernels (where they run, what they move, whether a GPU takes them), then its figures.

Counting and compiling happen in processes of their own: whether kernels are interpreted is decided when triton is imported.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grader.figures import COLOURS, panels, show

TIMEOUT_S = 120
SIZES = 4, 12, 64  # batch, heads and d of what is timed
LESSON_11 = 2048  # tokens for which lesson 11 times the same sizes
NEEDED = "Triton runs on Linux (a cloud notebook or WSL will do): pip install 'attention-course[kernel]'"
NO_RUN = "No GPU run of this lesson is stored yet. `make gpu`, on a computer with a GPU, makes one."

# --- where kernels run ---------------------------------------------------------------------------


def where(triton: Any) -> str:
    """Where this notebook's kernels run, in one or two sentences. triton: the module, or what stands in for it."""
    if not hasattr(triton, "__version__"):
        return f"Triton cannot be imported here. Kernels can be written, not run, and the checks say so.\n{NEEDED}."
    if torch.cuda.is_available():
        return f"Kernels are compiled by Triton {triton.__version__} and run on {torch.cuda.get_device_name()}."
    return (
        f"No GPU here: the interpreter of Triton {triton.__version__} runs kernels on this CPU ({platform.machine()}).\n"
        "It shows what is right and wrong, and nothing about speed."
    )


# --- what travels --------------------------------------------------------------------------------


class Traffic(NamedTuple):
    """Bytes read from and written to main memory, and how many kernels were launched for that."""

    bytes: int
    kernels: int


class _Operators(TorchDispatchMode):
    """Counts what PyTorch's operators read and write, each tensor once an operator; views move nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.kernels = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        inputs = {
            id(one): one for one in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)
        }
        storages = {one.untyped_storage().data_ptr() for one in inputs.values()}
        if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in storages:
            self.kernels += 1
            self.bytes += sum(one.numel() * one.element_size() for one in (*inputs.values(), made))
        return made


def operators(attention: Callable[[], Any]) -> Traffic:
    """What a call moves whose every operator is a kernel of its own."""
    with _Operators() as counted:
        attention()
    return Traffic(counted.bytes, counted.kernels)


_COUNT = """
import numpy
from triton.runtime import interpreter
count = {"bytes": 0, "kernels": 0}

def counting(access):
    def counted(self, ptrs, *args):
        mask = args[0 if access.__name__ == "create_masked_load" else 1]
        lanes = numpy.count_nonzero(numpy.broadcast_to(mask.data, numpy.shape(ptrs.data)))
        count["bytes"] += int(lanes) * ptrs.get_element_ty().primitive_bitwidth // 8
        return access(self, ptrs, *args)
    return counted

for name in ("create_masked_load", "create_masked_store"):
    setattr(interpreter.InterpreterBuilder, name, counting(getattr(interpreter.InterpreterBuilder, name)))
launch = interpreter.GridExecutor.__call__

def counted_launch(self, *args, **kwargs):
    count["kernels"] += 1
    return launch(self, *args, **kwargs)

interpreter.GridExecutor.__call__ = counted_launch
patch = interpreter._patch_lang

def patched(function):  # Triton until 3.6 makes an int of an array of one entry, which NumPy since 2.4 refuses
    scope = patch(function)
    interpreter.tl.tensor.__index__ = lambda number: number.handle.data.item()
    return scope

interpreter._patch_lang = patched
wrapper(*tensors, **settings)
print(json.dumps(count))
"""

# A card that is not here: Triton asks its driver for nothing else before it has compiled.
_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

class Card:
    def __init__(self, capability):
        self.capability = capability
    def get_current_device(self):
        return self.capability  # compiled kernels are kept by device
    def get_current_stream(self, device):
        return 0
    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)

def compiled_only(self, grid):
    return lambda *args, **kwargs: made.append(self.run(*args, grid=grid, warmup=True, **kwargs))

jit.KernelInterface.__getitem__ = compiled_only
result = {}
for capability in capabilities:
    driver.set_active(Card(capability))
    made = []
    try:
        wrapper(*tensors, **settings)
        result[capability] = [max(one.metadata.shared for one in made), sum(one.asm["ptx"].count("mma") for one in made)]
    except Exception as error:
        result[capability] = (str(error).strip() or type(error).__name__).splitlines()[-1]
print(json.dumps(result))
"""

CARDS = {
    "T4": (75, 64),
    "A100": (80, 163),
    "H100": (90, 227),
}  # compute capability × 10, KB of fast memory that a program can have


class Compiled(NamedTuple):
    """What a compiler made of a kernel: KB of fast memory for one program, and how many tensor-core instructions."""

    shared_kb: float
    tensor_core_instructions: int


def kernel_traffic(wrapper: Callable[..., Any], *shapes: tuple[int, ...], **settings: Any) -> Traffic | str:
    """What the kernels of wrapper(*tensors, **settings) load and store, counted in the interpreter; or why they could not be counted.

    shapes: of the tensors, in float32.
    """
    told = _asked(wrapper, _COUNT, shapes, "float32", settings, interpreted=True)
    return told if isinstance(told, str) else Traffic(**told)


def bytes_per_entry(traffic: Traffic | str, entries: int) -> str:
    """Traffic in words, in bytes for each of so many entries."""
    if isinstance(traffic, str):
        return f"not counted: {traffic}"
    return f"{traffic.kernels} kernel{'s' * (traffic.kernels > 1)}, {traffic.bytes / entries:.1f} bytes for each entry"


def compile_for_cards(
    wrapper: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float16", **settings: Any
) -> dict[str, Compiled | str]:
    """What the kernels of wrapper(*tensors, **settings) become on each of CARDS, none of which is needed; or why they become nothing."""
    header = f"capabilities = {[capability for capability, _ in CARDS.values()]}\n"
    told = _asked(wrapper, header + _COMPILE, shapes, dtype, settings, interpreted=False)
    found: dict[str, Compiled | str] = {}
    for card, (capability, _) in CARDS.items():
        one = told if isinstance(told, str) else told[str(capability)]
        found[card] = one if isinstance(one, str) else Compiled(one[0] / 1024, one[1])
    return found


def _asked(
    wrapper: Callable[..., Any],
    program: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: str,
    settings: Mapping[str, Any],
    interpreted: bool,
) -> Any:
    """What a program prints that runs after the text of wrapper and of all it uses, with tensors of those shapes; where it fails, the
    last line of its error, as a text: a payoff stops no notebook."""
    start = (
        "import json, sys\nsys.path.insert(0, '.')\nimport torch\n"
        f"from learner import {wrapper.__name__} as wrapper\n"
        f"tensors = [torch.randn(shape, dtype=torch.{dtype}) for shape in {[tuple(shape) for shape in shapes]}]\n"
        f"settings = {dict(settings)!r}\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    if interpreted:
        environment["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-c", start + program]
        try:
            Path(folder, "learner.py").write_text(text_of(wrapper), encoding="utf-8")
            ran = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"it took more than {TIMEOUT_S} s"
        except (OSError, TypeError) as error:  # of a function that no cell wrote
            return str(error)
    if ran.returncode:
        return (ran.stderr.strip() or f"the process ended with {ran.returncode}").splitlines()[-1]
    return json.loads(ran.stdout.splitlines()[-1])


def text_of(wrapper: Callable[..., Any]) -> str:
    """A module with the text of a function and of every function, kernel, module and number of the notebook that it uses."""
    lines: dict[str, str] = {}

    def add(name: str, value: Any) -> None:
        if name in lines:
            return
        while hasattr(value, "fn"):  # of a kernel its function, below what tunes it
            value = value.fn
        if type(value).__name__ == "constexpr":
            lines[name] = f"{name} = tl.constexpr({value.value!r})"
        elif isinstance(value, ModuleType):
            lines[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, FunctionType) and value.__module__ in ("__main__", wrapper.__module__):
            lines[name] = ""  # its place; functions that call each other end here
            for used in sorted(_names(value)):
                if used in value.__globals__:
                    add(used, value.__globals__[used])
            lines[name] = inspect.getsource(value)
        elif isinstance(value, (bool, int, float, str)):
            lines[name] = f"{name} = {value!r}" if not isinstance(value, float) else f'{name} = float("{value!r}")'
        elif isinstance(value, (type, FunctionType)) and value.__module__ not in ("__main__", "builtins"):
            lines[name] = f"from {value.__module__} import {value.__name__} as {name}"

    add(wrapper.__name__, wrapper)
    own = lines.pop(wrapper.__name__)
    head = "import math\n\nimport torch\nimport triton\nimport triton.language as tl\nfrom torch import Tensor\n"
    order = sorted(lines.values(), key=lambda text: ("\n" in text, not text.startswith(("import", "from"))))
    return "\n\n".join([head, *order, own]) + "\n"


def _names(function: FunctionType) -> set[str]:
    """The names that a function uses, those of its annotations, defaults and decorators aside."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [one for one in code.co_consts if inspect.iscode(one)]
    return names


# --- a real model --------------------------------------------------------------------------------


@torch.no_grad()
def real_logits(
    model: Any, ids: torch.Tensor, attend: Callable[..., torch.Tensor], device: torch.device
) -> torch.Tensor:
    """The logits of the token after ids (T,), by lesson 17's blocks with the weights of SmolLM2.

    attend: causal attention of q, k and v (1, heads, T, d), contiguous and on this device.
    """
    w, c = model.weights, model.config
    d, x = c.d_model // c.heads, model.weights["token.weight"][ids][None]
    angles = torch.arange(len(ids))[:, None] * c.base ** (-torch.arange(0, d, 2) / d)

    def turned(y: torch.Tensor) -> torch.Tensor:
        a, b = y[..., 0::2], y[..., 1::2]
        pairs = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
        return torch.stack(pairs, dim=-1).flatten(-2)

    for layer in range(c.layers):
        of = {name.split(".", 2)[2]: one for name, one in w.items() if name.startswith(f"blocks.{layer}.")}
        y = F.rms_norm(x, (c.d_model,), of["attn_norm.weight"], c.eps)
        q, k, v = (F.linear(y, of[f"attn.w_{one}.weight"]).unflatten(-1, (-1, d)).transpose(1, 2) for one in "qkv")
        k, v = (one.repeat_interleave(c.heads // c.kv_heads, dim=1) for one in (turned(k), v))
        heads = attend(*(one.contiguous().to(device) for one in (turned(q), k, v))).cpu()
        x = x + F.linear(heads.transpose(1, 2).flatten(2), of["attn.w_o.weight"])
        y = F.rms_norm(x, (c.d_model,), of["mlp_norm.weight"], c.eps)
        gate, up = F.linear(y, of["mlp.gate.weight"]), F.linear(y, of["mlp.up.weight"])
        x = x + F.linear(F.silu(gate) * up, of["mlp.down.weight"])
    return F.linear(F.rms_norm(x[0, -1], (c.d_model,), w["norm.weight"], c.eps), w["token.weight"])


# --- measured runs -------------------------------------------------------------------------------


def newest_run(bench: Any) -> dict[str, Any] | None:
    """What `speed` draws: this notebook's own run, else the newest stored one, which is of the course's kernel; None where nobody
    measured. bench: lesson 11's figures. Its roof and backends, where it has measured these, come along."""
    if "kernel" in bench.RUN:
        run = {"machine": bench.name(), **bench.RUN, **bench.RUN["kernel"]}
        return {**run, "card": bench.card(run)}
    for run in reversed([one for one in bench.stored_runs() if "kernel" in one]):
        times = {COURSE if way == YOURS else way: each for way, each in run["kernel"]["ms"].items()}
        card = bench.card(run)
        return {**run, **run["kernel"], "ms": times, "card": card, "title": f"Stored run, {card}"}
    return None


def speed_in_words(run: Mapping[str, Any] | None) -> str:
    """Some sentences on such a run: the kernel beside the other two ways, at the longest text that all three could take, and beside
    torch's FlashAttention-2, where lesson 11 has timed that on the same shape."""
    ways = run["ms"] if run else {}
    lengths = [t for t in ways.get("eager", ()) if not any(isinstance(each[t], str) for each in ways.values())]
    if run is None or not lengths:
        return NO_RUN
    longest, kernel = max(lengths, key=int), YOURS if YOURS in ways else COURSE
    eager, fused, own = (ways[way][longest] for way in ("eager", "fused operator", kernel))
    told = (
        f"With {int(longest):,} tokens on {run['card']} {kernel} is {eager / own:.0f} times as fast as eager attention, and takes "
        f"{own / fused:.1f} times as long as the fused operator."
    )
    at, chosen = ({int(t): ms for t, ms in ways[way].items()}.get(LESSON_11, "") for way in (kernel, "fused operator"))
    flash = run.get("backends", {}).get("FLASH_ATTENTION", "not timed")
    if isinstance(at, str) or isinstance(chosen, str) or isinstance(flash, str):
        return told
    return (
        f"{told} With {LESSON_11:,} tokens it takes {at / chosen:.1f} times as long as the backend that the fused operator chooses, and "
        f"{at / flash:.1f} times as long as `FLASH_ATTENTION`, which lesson 11 has timed."
    )


# --- figures -------------------------------------------------------------------------------------

_PROGRAMS = tuple(COLOURS[name] for name in ("blue", "orange", "green", "purple", "sky"))
_INK = "#444444"
YOURS, COURSE = "your kernel", "the course's kernel"
_WAYS = {
    "eager": COLOURS["vermillion"],
    "fused operator": COLOURS["green"],
    YOURS: COLOURS["blue"],
    COURSE: COLOURS["blue"],
}


def _box(x: float, y: float, width: float, height: float, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, **{"linewidth": 1.2, **look})


def _lane(ax: Any, x: float, y: float, text: str, program: int, inside: bool) -> None:
    """One lane of a block: filled with its program's color inside the tensor, hatched beyond it."""
    colour = _PROGRAMS[program % len(_PROGRAMS)]
    fill = {"facecolor": colour, "edgecolor": "white"}
    beyond = {"facecolor": "white", "edgecolor": colour, "hatch": "////"}
    ax.add_patch(_box(x + 0.04, y + 0.06, 0.92, 0.88, **(fill if inside else beyond)))
    ink = "#555555" if not inside else "white" if colour == COLOURS["blue"] else "black"
    behind = {"facecolor": colour if inside else "white", "edgecolor": "none", "pad": 1}
    ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=10.5, color=ink, bbox=behind)


def vector(n: int, block: int) -> None:
    """A vector of n entries in blocks: which program owns which offsets, and which lanes of the last one are beyond the end."""
    programs = -(-n // block)
    fig, (ax,) = panels(1, width=8.4, height=2.1)
    ax.set_axis_off()
    gap = 0.5
    for program in range(programs):
        left = program * (block + gap)
        for lane in range(block):
            offset = program * block + lane
            _lane(ax, left + lane, 0, str(offset), program, offset < n)
        ax.text(left + block / 2, 1.28, f"program {program}", ha="center", va="center", fontsize=10, color=_INK)
    beyond = programs * block - n
    end = programs * (block + gap) - gap
    if beyond:
        ax.text(end - beyond / 2, -0.35, "beyond x: masked", ha="center", va="center", fontsize=9.5, color=_INK)
    ax.set(xlim=(-0.2, end + 0.2), ylim=(-0.6, 1.6))
    ax.set_title(f"{n} entries in blocks of {block}: {programs} programs, {beyond} masked lanes")
    show(
        fig,
        alt=f"{programs} blocks of {block} offsets, one a program, from 0 on; the last {beyond}, from {n} on, are beyond x and masked.",
    )


def rows(count: int, n: int, block: int) -> None:
    """A matrix of count rows of n entries, one program a row of block lanes: each lane with the offset that it would read."""
    fig, (ax,) = panels(1, width=7.6, height=0.55 * count + 1.3)
    ax.set_axis_off()
    for row in range(count):
        ax.text(-0.25, row + 0.5, f"program {row}", ha="right", va="center", fontsize=10, color=_INK)
        for lane in range(block):
            _lane(ax, lane, row, str(row * n + lane), row, lane < n)
    ax.text(
        n + (block - n) / 2, count + 0.35, "beyond the row: masked", ha="center", va="center", fontsize=9.5, color=_INK
    )
    ax.text(n / 2, count + 0.35, f"a row of {n} entries", ha="center", va="center", fontsize=9.5, color=_INK)
    ax.set(xlim=(-1.6, block + 0.2), ylim=(count + 0.7, -0.1))
    ax.set_title(f"Without a mask, lane {n} of row 0 would read offset {n}: the next row's first entry")
    show(
        fig,
        alt=f"{count} rows of {block} lanes, one program a row. The first {n} lanes have the offsets of their row; "
        "the others, hatched, have those of the next one.",
    )


def tile(program: int, rows: int, columns: int, block: int) -> None:
    """The offsets of one tile: block rows of a matrix of rows · columns entries, as a column of offsets plus a row of them."""
    fig, (ax,) = panels(1, width=7.6, height=0.5 * block + 2.3)
    ax.set_axis_off()
    first = program * block
    edge = {"facecolor": "white", "edgecolor": "#9A9A9A"}
    for row in range(first, first + block):
        y = row - first
        ax.text(-0.3, y + 0.5, f"row {row}", ha="right", va="center", fontsize=10, color=_INK)
        ax.add_patch(_box(0.04, y + 0.06, 0.92, 0.88, **edge))
        ax.text(0.5, y + 0.5, str(row * columns), ha="center", va="center", fontsize=10.5)
        for column in range(columns):
            _lane(ax, 2 + column, y, str(row * columns + column), program, row < rows)
    for column in range(columns):
        ax.add_patch(_box(2.04 + column, -1.44, 0.92, 0.88, **edge))
        ax.text(2.5 + column, -1.0, str(column), ha="center", va="center", fontsize=10.5)
    ax.text(0.5, -1.0, "+", ha="center", va="center", fontsize=15, color=_INK)
    ax.text(0.5, block + 0.4, f"rows[:, None] * {columns}", ha="center", va="center", fontsize=9.5, color=_INK)
    ax.text(2 + columns / 2, -1.85, "columns[None, :]", ha="center", va="center", fontsize=9.5, color=_INK)
    ax.text(2 + columns / 2, block + 0.4, "offsets", ha="center", va="center", fontsize=9.5, color=_INK)
    beyond = first + block - rows
    if beyond > 0:
        said = f"beyond the {rows} rows:\nmasked, rows[:, None] < {rows}"
        ax.text(2.3 + columns, block - beyond / 2, said, ha="left", va="center", fontsize=9.5, color=_INK)
    ax.set(xlim=(-1.4, columns + 5.6), ylim=(block + 0.8, -2.2))
    ax.set_title("A column plus a row: one offset for each lane of the tile")
    table = "; ".join(
        f"row {row}: {', '.join(str(row * columns + column) for column in range(columns))}"
        for row in range(first, first + block)
    )
    show(
        fig,
        alt=f"A column of row numbers times {columns}, plus the row 0 to {columns - 1}, makes the offsets of program {program}. {table}. "
        f"The rows from {rows} on, hatched, are beyond the matrix and masked.",
    )


_TILES: dict[str, dict[str, str]] = {
    "read": {"facecolor": "#A9CCE6", "edgecolor": "white"},
    "read, then masked in part": {"facecolor": "#F3C892", "edgecolor": "white", "hatch": "////"},
    "hidden: never read": {"facecolor": "white", "edgecolor": "#BBBBBB", "linestyle": ":"},
}


def schedule(t: int, queries: int, keys: int) -> tuple[int, int]:
    """Which program reads which tile of keys and values when, in causal attention. Returns: how many tiles are read, of how many."""
    programs, tiles = -(-t // queries), -(-t // keys)
    fig, (ax,) = panels(1, width=8.4, height=0.62 * programs + 1.5)
    steps = [0] * programs
    for program, tile in np.ndindex(programs, tiles):
        top, end = program * queries, min((program + 1) * queries, t)
        first, last = tile * keys, min((tile + 1) * keys, t) - 1
        kind = "hidden: never read" if first >= end else "read, then masked in part" if last > top else "read"
        look = _TILES[kind]
        ax.add_patch(_box(tile + 0.04, program - 0.42, 0.92, 0.84, **look))
        if first < end:
            steps[program] += 1
            behind = {"facecolor": look["facecolor"], "edgecolor": "none", "pad": 1}
            ax.text(tile + 0.5, program, f"{first}–{last}", ha="center", va="center", fontsize=8.5, bbox=behind)
    handles = [_box(0, 0, 1, 1, label=kind, **look) for kind, look in _TILES.items()]
    ax.legend(handles=handles, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, fontsize=9)
    ax.set(xlim=(0, tiles), ylim=(programs - 0.5, -0.5))
    ax.set_xticks(np.arange(tiles) + 0.5, [str(tile) for tile in range(tiles)])
    ends = [min((program + 1) * queries, t) - 1 for program in range(programs)]
    ax.set_yticks(range(programs), [f"program {one}: queries {one * queries}–{end}" for one, end in enumerate(ends)])
    ax.set_xlabel("step of the program's loop; in the box, the keys that it reads")
    ax.grid(visible=False)
    ax.set_title(f"{programs} programs side by side; {sum(steps)} of {programs * tiles} tiles are read")
    said = "; ".join(f"program {program} reads {count}" for program, count in enumerate(steps))
    show(
        fig,
        alt=f"A strip for each program, a box for each tile of {keys} keys, of {tiles} in all. {said}. "
        "Tiles that the diagonal crosses are masked in part.",
    )
    return sum(steps), programs * tiles


def grid(batch: int, heads: int, t: int, queries: int, keys: int, program: tuple[int, int]) -> tuple[int, int]:
    """A grid of two axes over the causal score matrices of all heads, and where one program's queries lie in memory.

    program: the one that is drawn out, (tile of queries, head of all). Returns: the sizes of the two axes.
    """
    from matplotlib.patches import ConnectionPatch

    tiles, count = -(-t // queries), batch * heads
    fig, (ax,) = panels(1, width=9.4, height=4.5)
    ax.set_axis_off()
    step, side = 1.16, 1.0  # from one head to the next; of a score matrix
    lefts = [head * step + 0.34 * (head // heads) for head in range(count)]
    end, row, column = lefts[-1] + side, *program
    for head, left in enumerate(lefts):
        for tile in range(tiles):
            top, here = tile * queries * side / t, (tile, head) == program
            _band(ax, left, top, side, tile, t, queries, keys, _PROGRAMS[tile % len(_PROGRAMS)], here)
        ax.text(left + side / 2, -0.09, f"head {head % heads}", ha="center", va="center", fontsize=9.5, color=_INK)
        bold = {"weight": "bold"} if head == column else {}
        ax.text(left, side + 0.12, str(head), ha="left", va="center", fontsize=10.5, **bold)
    for item in range(batch):
        first, last = lefts[item * heads], lefts[(item + 1) * heads - 1] + side
        ax.plot((first, last), (-0.19, -0.19), color=_INK, linewidth=1)
        ax.text((first + last) / 2, -0.29, f"text {item}", ha="center", va="center", fontsize=9.5, color=_INK)
    for tile in range(tiles):
        bold = {"weight": "bold"} if tile == row else {}
        ax.text(-0.1, (tile + 0.5) * queries * side / t, str(tile), ha="center", va="center", fontsize=10.5, **bold)
    ax.text(-0.3, side / 2, "program_id(0):\ntile of queries", ha="center", va="center", fontsize=9.5, rotation=90)
    said = "program_id(1): the heads of all texts, one after the other"
    ax.text(end / 2, side + 0.3, said, ha="center", va="center", fontsize=9.5)
    low, high, box = 1.92, 0.2, end / (count * tiles)
    for head in range(count):
        for tile in range(tiles):
            here = (tile, head) == program
            look = {"facecolor": _PROGRAMS[tile % len(_PROGRAMS)] if here else "#E4E4E4", "edgecolor": "white"}
            ax.add_patch(_box((head * tiles + tile) * box, low, box, high, **look))
        ax.text(
            (head + 0.5) * tiles * box, low + high + 0.1, str(head), ha="center", va="center", fontsize=9, color=_INK
        )
    for head in range(count + 1):
        ax.plot((head * tiles * box,) * 2, (low - 0.04, low + high + 0.04), color=_INK, linewidth=1)
    at = column * tiles + row
    foot = (at + 0.5) * box
    head_of = min(max(foot, lefts[column] + 0.1), lefts[column] + side - 0.1), min((row + 1) * queries, t) * side / t
    ink = _PROGRAMS[row % len(_PROGRAMS)]
    arrow = ConnectionPatch(head_of, (foot, low), "data", "data", arrowstyle="-|>", color=ink, linewidth=1.6)
    arrow.set_zorder(6)
    ax.add_artist(arrow)
    first, last = row * queries, min((row + 1) * queries, t) - 1
    place = f"text {column // heads}, head {column % heads}"
    begin = f"in memory they begin at row {column} · {t} + {first} = {column * t + first:,}"
    owner = f"program {program} owns queries {first}–{last} of {place};"
    ax.text(0, low - 0.28, f"{owner}\n{begin}", ha="left", va="center", fontsize=9.5, color=_INK, linespacing=1.35)
    ax.text(end, low - 0.2, "q in memory", ha="right", va="center", fontsize=9.5, color=_INK)
    ax.set(xlim=(-0.42, end + 0.05), ylim=(low + high + 0.22, -0.4))
    ax.set_title(f"A grid of ({tiles}, {count}): a program for each tile of queries in each head")
    show(
        fig,
        alt=f"{count} triangles, the causal score matrices of {batch} texts with {heads} heads each, cut into {tiles} bands of {queries} "
        f"queries, one a program. program_id(0) counts bands, program_id(1) heads. Below, q in memory: head after head. "
        f"{owner} {begin}.",
    )
    return tiles, count


def _band(
    ax: Any, left: float, top: float, side: float, tile: int, t: int, queries: int, keys: int, colour: str, here: bool
) -> None:
    """One program's part of a score matrix: the tiles of keys that it reads, and a frame where it is the one that is drawn out."""
    height, columns = side * min(queries, t - tile * queries) / t, -(-t // keys)
    for number in range(columns):
        seen = number * keys < (tile + 1) * queries
        look = {"facecolor": colour if seen else "white", "edgecolor": "white" if seen else "#DDDDDD", "linewidth": 0.6}
        ax.add_patch(
            _box(
                left + number * side / columns,
                top,
                side / columns,
                height,
                **look,
                alpha=1 if here or not seen else 0.42,
            )
        )
    if here:
        ax.add_patch(_box(left, top, side, height, facecolor="none", edgecolor="black", linewidth=2, zorder=5))


def fast_memory(sizes: Mapping[int, tuple[int, int]], yours: Traffic | str) -> None:
    """Traffic against the memory that one program takes, by the number of its queries; the limits of CARDS; what was counted.

    sizes: by queries in a tile, bytes that a program holds and bytes that all of them move. yours: a level to compare with.
    """
    fig, (ax,) = panels(1, width=8.4, height=4.0)
    kb, mib = np.array(list(sizes.values()), dtype=float).T / [[2**10], [2**20]]
    blue, shades = COLOURS["blue"], ("#E9E9E9", "#F2F2F2", "#F9F9F9")
    edges, said = [8.0, *(limit for _, limit in CARDS.values())], []
    for (card, (_, limit)), low, shade in zip(CARDS.items(), edges, shades, strict=False):
        ax.axvspan(low, limit, color=shade, linewidth=0, zorder=0)
        ax.axvline(limit, color="#8A8A8A", linewidth=1)
        ax.text(limit * 0.97, 38, f"{card}\n{limit} KB", ha="right", va="top", fontsize=9, color=_INK, linespacing=1.3)
        said.append(f"{card} {limit} KB")
    ax.loglog(kb, mib, color=blue, linewidth=2, zorder=3)
    largest = max(limit for _, limit in CARDS.values())
    for x, y, queries in zip(kb, mib, sizes, strict=True):
        fits = x <= largest
        ax.plot(x, y, "o", markersize=7, color=blue, markerfacecolor=blue if fits else "white", zorder=4)
        ax.annotate(f"{queries:,}", (x, y), (7, 5), textcoords="offset points", fontsize=9.5, color=blue)
    if isinstance(yours, Traffic):
        level = yours.bytes / 2**20
        ax.axhline(level, color=COLOURS["vermillion"], linestyle="--", linewidth=1.4, zorder=2)
        words = f"counted in your kernel: {level:.1f} MiB"
        ax.text(850, level * 1.06, words, ha="right", va="bottom", fontsize=9, color="#A34700")
        said.append(words)
    ax.text(
        13,
        1.25,
        "queries in a tile;\nhollow: fits on none of the three",
        fontsize=9,
        color=blue,
        va="bottom",
        linespacing=1.3,
    )
    ax.set(
        xlim=(11, 900),
        ylim=(0.85, 44),
        xlabel="memory on the chip for one program, KB",
        ylabel="MiB to and from main memory",
    )
    ax.set_xticks((16, 32, 64, 128, 256, 512), ("16", "32", "64", "128", "256", "512"))
    ax.set_yticks((1, 2, 4, 8, 16, 32), ("1", "2", "4", "8", "16", "32"))
    ax.minorticks_off()
    ax.grid(visible=False, axis="x")
    ax.set_title("More queries in a tile move less, as long as they fit")
    told = ", ".join(
        f"{queries:,} queries {x:.0f} KB, {y:.1f} MiB" for queries, x, y in zip(sizes, kb, mib, strict=True)
    )
    show(
        fig,
        alt=f"Traffic against memory on the chip, both logarithmic; it falls: {told}. Upright lines: {', '.join(said)}.",
    )


def traffic(ways: Mapping[str, Traffic | str], once: int) -> None:
    """MiB that each way moves, in how many kernels, or why it was not counted; a line where each tensor travels once. once: bytes."""
    fig, (ax,) = panels(1, width=8.6, height=0.62 * len(ways) + 1.4)
    most = max(one.bytes for one in ways.values() if isinstance(one, Traffic)) / 2**20
    colours = (COLOURS["vermillion"], COLOURS["orange"], COLOURS["blue"])
    said = {}
    for row, ((way, one), colour) in enumerate(zip(ways.items(), colours, strict=True)):
        mib = 0.0 if isinstance(one, str) else one.bytes / 2**20
        kernels = "" if isinstance(one, str) else "1 kernel" if one.kernels == 1 else f"{one.kernels:,} kernels"
        said[way] = f"not counted: {one}" if isinstance(one, str) else f"{mib:.1f} MiB, {kernels}"
        ax.barh(row, mib, color=colour, height=0.6)
        ax.text(mib + 0.012 * most, row, said[way], va="center", fontsize=9.5)
    level, words = once / 2**20, f"q, k, v and the output once: {once / 2**20:.1f} MiB"
    ax.axvline(level, color=_INK, linestyle=":", linewidth=1.4)
    ax.text(level + 0.012 * most, len(ways) - 0.42, words, va="center", fontsize=9, color=_INK)
    ax.set_yticks(range(len(ways)), list(ways))
    ax.set(xlabel="MiB read and written", xlim=(0, 1.32 * most), ylim=(len(ways) - 0.25, -0.5))
    ax.grid(axis="y", visible=False)
    ax.set_title("Tiles of tensors travel; tiles inside a kernel do not")
    told = "; ".join(f"{way}: {what}" for way, what in said.items())
    show(fig, alt=f"Bars of what is read and written. {told}. A line: {words}.")


def speed(run: Mapping[str, Any] | None) -> None:
    """Milliseconds against T on a GPU, by way, and the kernel's speed relative to the eager way's; without a run, one sentence.

    run: {"machine", "torch", "date", "shape", "ms": {way: {T: ms}}}; where a way could not run, a text stands in place of its ms.
    """
    if run is None:
        print(NO_RUN)
        return
    fig, (ax, rate) = panels(2, width=9.2, height=3.8)
    for way, by_length in run["ms"].items():
        curve = {int(t): ms for t, ms in by_length.items() if not isinstance(ms, str)}
        look = {"color": _WAYS[way], "marker": "o", "markersize": 4, "label": way}
        ax.loglog(list(curve), list(curve.values()), **look)
        rate.loglog(list(curve), [_tflops(t, ms) for t, ms in curve.items()], **look)
    if "roofline" in run:
        top = run["roofline"]["roof"][0] / 1000
        rate.axhline(top, color="black", linestyle="--", linewidth=1.2)
        said = "the highest rate that lesson 11 reached"
        rate.annotate(
            said, (0.98, top), (0, -4), rate.get_yaxis_transform(), "offset points", ha="right", va="top", fontsize=9
        )
    for one in (ax, rate):
        lengths = sorted({int(t) for by_length in run["ms"].values() for t in by_length})
        one.set_xticks(lengths, [f"{t:,}" for t in lengths])
        one.minorticks_off()
        one.set_xlabel("tokens T")
    ax.legend(frameon=False)
    ax.set(ylabel="milliseconds", title="Time")
    ticks = [n * 10**power for power in range(4) for n in (1, 2, 5)]
    rate.set_yticks([one for one in ticks if rate.get_ylim()[0] <= one <= rate.get_ylim()[1]])
    rate.yaxis.set_major_formatter("{x:,.0f}")
    rate.set(ylabel="TFLOP/s of visible scores", title="Eager waits for memory at every T")
    fig.suptitle(f"{run.get('title', run['machine'])}; {run['shape']}", fontsize=11)
    said = "; ".join(
        f"{way}: "
        + ", ".join(
            f"{ms:.3g} ms ({_tflops(int(t), ms):.0f} TFLOP/s) at {t}"
            for t, ms in by_length.items()
            if not isinstance(ms, str)
        )
        for way, by_length in run["ms"].items()
    )
    show(
        fig,
        alt=f"Time and rate against T, measured on {run['machine']} with torch {run['torch']} on {run['date']}. {said}.",
    )


def _tflops(t: int, ms: float) -> float:
    """The rate of causal attention's two products, a multiply-add counted as 2, of the scores that the mask leaves."""
    batch, heads, d = SIZES
    return 2 * batch * heads * t * t * d / ms / 1e9
