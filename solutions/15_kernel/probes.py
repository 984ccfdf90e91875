"""How a kernel is tried: in Triton's interpreter, where each address is looked at before it is used.

Verdicts come from the interpreter on a computer with a GPU, too: it sees every address, and says the same on every machine. So whatever
`@triton.jit` has made of a kernel, for the time of a call it is run by the interpreter, on tensors of the CPU; of an autotuned kernel
its first configuration. Inputs lie between guard numbers. A read or a write beyond every tensor ends the call before it takes place,
since it could end the process. The probe tells what it saw, in numbers; what follows from it is decided in shared.py.

The interpreter takes a third of a millisecond for a program of three lines. Of a grid of very many, as of one entry a program, a case
may ask for some alone (option `programs`): as long as no program depends on what another one wrote, the others are left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, update_wrapper
from inspect import getblock, signature
from linecache import getlines
from math import prod
from os.path import dirname
from textwrap import dedent
from tokenize import TokenError
from types import CodeType, FunctionType, SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import torch
from numpy import arange, array, asarray, bool_, empty, float16, full, int64, isin, nan, unique, zeros
from torch.utils._python_dispatch import TorchDispatchMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import Run, call_function, mark_result
from grader.worker.watch import pause_watching

try:
    import triton
    from triton import compiler
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import code_generator  # noqa: F401  # it keeps functions of the language, and is else imported among patches
    from triton.compiler.errors import CompilationError
    from triton.runtime import autotuner, errors, interpreter, jit
except ImportError:  # then the exercises cannot be judged, which is said before one is tried
    triton = None

__builtins__ = BUILTINS

T = of_torch()
TENSOR = triton.language.core.tensor if triton else None
fill, as_strided = torch.Tensor.fill_, torch.as_strided
GUARD = 1 << 14  # entries before and after each input: what reads beyond it by less is seen to mean it
READ, WRITE, SHARED, LANES = (
    1,
    2,
    3,
    4,
)  # what went wrong: beyond a tensor, an entry of another program's, one of two lanes
# What a wrapper may do in torch: make tensors without numbers, and see or order those of others otherwise.
MAKING = "empty empty_like empty_strided new_empty new_empty_strided empty_permuted".split()
VIEWS = """
    view _unsafe_view reshape _reshape_alias as_strided transpose permute t expand select slice unsqueeze squeeze detach alias narrow
    split split_with_sizes chunk unbind flatten unflatten clone movedim swapaxes view_as expand_as
""".split()


USUAL = "int32 int64 fp16 fp32 fp64".split()
_MISSING = object()
# What the interpreter works out again in each operation, by the names of Triton's types:
_TYPES: dict[Any, dict[str, Any]] = {}  # what a block's type is made of, by its element's type and its shape
_NUMPY: dict[str, Any] = {}  # NumPy's type
_FITS: dict[tuple[int, str], bool] = {}  # whether numbers of so many bytes fit
_TENSORS: dict[str, dict[str, Any]] = {}  # what a tensor is made of beside its numbers
_INDEXED: dict[tuple[Any, ...], Any] = {}  # a tensor's type with axes added
_OPERANDS: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # to what two operands are brought, see `_types`


class Stop(Exception):
    """Ends a call in which something went wrong that must not take place."""


class Extent:
    """A tensor's place in memory, and what programs did there.

    writer: the program that wrote each entry in this launch, -1 for none. written: entries that any launch wrote.
    """

    def __init__(self, start: int, end: int, size: int, input: int) -> None:
        self.start, self.end, self.size, self.input = start, end, size, input
        self.entries = (end - start) // size
        self.writer, self.written = full(self.entries, -1, int64), zeros(self.entries, bool_)

    def count(self, addresses: Any, around: int) -> int:
        """How many of the addresses lie in it, or at most so many bytes beside it."""
        return int(((addresses >= self.start - around) & (addresses < self.end + around)).sum())

    def distance(self, low: int, high: int) -> int:
        """How far addresses lie outside, the farthest of them."""
        return max(self.start - low, high + self.size - self.end, 0)


class Trace:
    """What a call did. fault: what went wrong first, as `beyond` and `store` put it, else empty.

    programs: how many of a launch run at most, 0 for all. left_out: how many did not. again: whether what ran may depend on those.
    """

    def __init__(self, programs: int = 0) -> None:
        self.programs, self.left_out, self.again = programs, 0, False
        self.chosen: set[int] = set()  # the numbers of the programs that run; empty for all
        self.extents: list[Extent] = []
        self.fault: tuple[int, ...] = ()
        self.call = ""  # what the source shows of the load or store that went wrong, see `_call_at_fault`
        self.program = 0
        self.running = False  # whether a kernel is
        self.loads: list[tuple[int, ...]] = []
        self.widest = 0  # lanes of the largest load
        self.twice: tuple[int, ...] = ()  # lanes, first and last entry of a load that has more lanes than entries
        self.stores: list[tuple[int, ...]] = []
        self.computed: list[str] = []  # operators of torch that are no wrapper's
        self.launched: list[tuple[Any, tuple, dict[str, Any]]] = []  # kernels, and what they were called with
        self.half: list[str] = []  # what added up in float16
        self.largest = 0  # entries of the largest tensor that the wrapper made
        self.grid: tuple[int, ...] = ()
        self.grids: list[tuple[int, ...]] = []  # of each launch
        self.index: tuple[int, ...] = ()

    def extent_of(self, tensor: Any, input: int = -1) -> None:
        """Takes down where a tensor lies: an input as it is, another with all the memory that it is a part of."""
        size, (start, end) = T.element_size(tensor), T.memory(tensor)
        if any(one.start <= start and end <= one.end for one in self.extents):
            return
        if input < 0:
            storage = T.storage(tensor)
            start = storage.data_ptr()
            end = start + T.nbytes(storage)
        self.extents.append(Extent(start, end, size, input))

    def launch(self, grid: tuple[int, ...]) -> None:
        if self.left_out:
            self.depends()
        self.grid, count = grid, prod(grid)
        self.grids.append(grid)
        for extent in self.extents:
            extent.writer[:] = -1
        if 0 < self.programs < count:  # pairs of neighbours, from the first to the last
            firsts = [place * (count - 2) // (self.programs // 2 - 1) for place in range(self.programs // 2)]
            self.chosen = {number + more for number in firsts for more in (0, 1)}
            self.left_out = count - len(self.chosen)

    def depends(self) -> None:
        """Ends a call some programs of which were left out, where what comes may depend on them. Raises: Stop."""
        self.again = True
        raise Stop

    def number(self, index: tuple[int, ...]) -> int:
        """A program's number, of all that were launched."""
        return (index[0] * self.grid[1] + index[1]) * self.grid[2] + index[2]

    def runs(self, index: tuple[int, ...]) -> bool:
        """Whether a program is none of those that are left out."""
        return not self.chosen or self.number(index) in self.chosen

    def access(self, kind: int, index: tuple[int, ...], pointers: Any, mask: Any) -> None:
        """Looks at the addresses of one load or store. Raises: Stop."""
        if self.fault or self.again:
            raise Stop
        self.index, self.program = index, self.number(index)
        every = pointers.reshape(-1).view(int64)
        lanes = mask.reshape(-1) if mask.size == every.size else full(every.size, bool(mask.all()))
        used = every if lanes.all() else every[lanes]
        if not used.size:
            extent = self._nearest(every)
        else:
            low, high = int(used.min()), int(used.max())
            extent = next((one for one in self.extents if not one.distance(low, high)), None)
            if extent is None:
                self._beyond(kind, every, lanes)
        if extent is None:
            return
        if self.left_out and (kind == READ) == (extent.input < 0):
            self.depends()
        place = self.extents.index(extent)
        first = ((low if used is every else int(every.min())) - extent.start) // extent.size
        last = (high - extent.start) // extent.size if used.size else -1
        summary = (len(self.grids), self.program, place, first, last, every.size, used.size)
        (self.loads if kind == READ else self.stores).append(summary)
        if kind == READ:
            self.widest = max(self.widest, every.size)
            if not self.twice and used.size > last - first + 1 > 0:
                self.twice = (used.size, first, last)
        if kind == WRITE and used.size:
            entries = (used - extent.start) // extent.size
            others = (extent.writer[entries] >= 0) & (extent.writer[entries] != self.program)
            if others.any():
                lane = int(arange(every.size)[lanes][others.argmax()])
                entry = int(entries[others.argmax()])
                self._fault(SHARED, extent, entry, lane, int(extent.writer[entry]))
            first_lanes = unique(entries, return_index=True)[1] if entries.size > 1 else entries
            if first_lanes.size < entries.size:
                twice = int((~isin(arange(entries.size), first_lanes)).argmax())
                self._fault(
                    LANES,
                    extent,
                    int(entries[twice]),
                    int(arange(every.size)[lanes][twice]),
                    entries.size - first_lanes.size,
                )
            extent.writer[entries], extent.written[entries] = self.program, True

    def _nearest(self, addresses: Any) -> Any:
        low, high = int(addresses.min()), int(addresses.max())
        return min(self.extents, key=lambda one: one.distance(low, high), default=None)

    def _beyond(self, kind: int, every: Any, lanes: Any) -> None:
        """Addresses that no tensor has: of the tensor that has most of them, else of the one around which most of them lie."""
        used = every[lanes]
        for around in (0, GUARD):
            inside = [one.count(used, around * one.size) for one in self.extents]
            if any(inside):
                extent = self.extents[array(inside).argmax()]
                break
        else:
            self.fault = (kind, -1, 0, 0, int(lanes.argmax()), used.size, *self.index, *self.grid)
            raise Stop
        out = lanes & ((every < extent.start) | (every >= extent.end))
        lane = int(out.argmax())
        self._fault(kind, extent, (int(every[lane]) - extent.start) // extent.size, lane, int(out.sum()))

    def _fault(self, kind: int, extent: Extent, entry: int, lane: int, more: int) -> None:
        self.fault = (kind, extent.input, extent.entries, entry, lane, more, *self.index, *self.grid)
        self.call = _call_at_fault("load" if kind == READ else "store")
        raise Stop


def _call_at_fault(name: str) -> str:
    """What the kernel's source shows of the load or store that runs: 'masked', 'unmasked', or of one without a mask the names of its
    offsets and of what they should be below, 'offsets n', where they are plain to see; '' where nothing is."""
    frame = sys._getframe()
    between = (frame.f_code.co_filename, dirname(triton.__file__))  # what runs between a kernel and its access
    while frame.f_code.co_filename.startswith(between):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return _call_at(frame.f_code, frame.f_code.co_filename, frame.f_lineno, name)


@cache
def _call_at(code: CodeType, file: str, number: int, name: str) -> str:
    """The same of the line of that number: a mistake has its fault at one line in nearly all cases. Code of two files may be equal."""
    first = code.co_firstlineno
    try:
        block = getblock(getlines(file)[first - 1 :])
        kernel = ast.parse(dedent("".join(block))).body[0]
    except (SyntaxError, IndexError, TokenError):
        return ""
    nodes, line = [*ast.walk(kernel)], number - first + 1
    calls = [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name]
    here = {_shown(node, nodes) for node in calls if node.lineno <= line <= (node.end_lineno or 0)}
    return here.pop() if len(here) == 1 else ""


def _shown(call: ast.Call, kernel: list[ast.AST]) -> str:
    """What `_call_at_fault` says of one call."""
    plain = 1 if getattr(call.func, "attr", "") == "load" else 2
    if len(call.args) > plain or any(one.arg in ("mask", "boundary_check") for one in call.keywords):
        return "masked"
    match call.args:
        case [ast.BinOp(left=ast.Name(), op=ast.Add(), right=ast.Name(id=offsets)), *_]:
            read = {one.id for one in kernel if isinstance(one, ast.Name)}
            unread = {one.arg for one in kernel if isinstance(one, ast.arg) and not one.annotation} - read
            lengths = {length for one in kernel if (length := _bound(one, offsets))} or unread
            return f"{offsets} {lengths.pop()}" if len(lengths) == 1 else "unmasked"
    return "unmasked"


def _bound(node: ast.AST, offsets: str) -> str:
    """The name that a comparison asks the offsets to be below."""
    match node:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[ast.Name(id=length)]) if name == offsets:
            return length
    return ""


def kernel(function: Any, run: Run) -> dict[str, Any]:
    """Calls a wrapper on copies of the inputs that lie between guard numbers, and tells what its kernels did.

    Parts: 'result', where the call came to its end; 'fault', as `Trace` has it; 'call', what the source shows of the load or store at
        fault; 'grids', a row for each launch; 'largest', the entries of the largest tensor that the wrapper made; 'written', whether a
        kernel wrote each entry of the result, in order; 'left_out', how many programs were; 'widest', the lanes of the largest load;
        'twice', of a load some lanes of which surely share an entry: how many lanes, the first and the last entry, else empty;
        'computed', operators of torch beside what a wrapper may do; 'half', what added up in float16. With option `compiled`,
        'refused', what the compiler for a GPU refuses, as `_refused` tells it. With option `accesses`, 'loads' and 'stores', a row
        each: launch, program, input (-1 for another tensor), lowest entry of all lanes, highest of those that were not masked, lanes,
        lanes that were not masked.
    """
    trace = Trace(0 if run.trusted else run.options.get("programs", 0))
    parts, guarded = _call(function, run, trace)
    if trace.again:
        trace = Trace()
        parts, guarded = _call(function, run, trace)
    with pause_watching():
        T.fill([(one, T.numbers(copy)) for one, copy in zip(run.args, guarded, strict=True) if is_a(one, T.Tensor)])
    parts |= {
        "fault": array(trace.fault, int64),
        "largest": array(trace.largest),
        "call": trace.call,
        "left_out": array(trace.left_out),
        "widest": array(trace.widest),
        "twice": array(trace.twice, int64),
        "grids": array(trace.grids, int64).reshape(-1, 3),
        "computed": " ".join(dict.fromkeys(trace.computed)),
        "half": " ".join(dict.fromkeys(trace.half)),
    }
    if run.options.get("compiled"):
        parts["refused"] = _refused(trace.launched) if trace.launched else ""
    if run.options.get("accesses"):
        inputs = [one.input for one in trace.extents]
        for name, rows in (("loads", trace.loads), ("stores", trace.stores)):
            parts[name] = array([(*row[:2], inputs[row[2]], *row[3:]) for row in rows], int64).reshape(-1, 7)
    return parts


def _call(function: Any, run: Run, trace: Trace) -> tuple[dict[str, Any], list[Any]]:
    """Calls a wrapper once. Returns: the parts 'result' and 'written' where it came to its end, and the inputs that it had."""
    with pause_watching():
        guarded = [_guarded(value) if is_a(value, T.Tensor) else value for value in run.args]
        for number, value in enumerate(guarded):
            if is_a(value, T.Tensor):
                trace.extent_of(value, number)
    try:
        with (_on_arrays if run.trusted else _in_interpreter)(trace), Wrapper(trace):
            result = call_function(function, run, *guarded)
        return {"result": mark_result(result), "written": _written(trace, result)}, guarded
    except Exception as error:
        if not trace.fault and not trace.again:
            raise _cause(error) from None
    return {}, guarded


def _guarded(tensor: Any) -> Any:
    """A copy, contiguous, with GUARD entries of NaN before and after it."""
    numbers = T.numbers(tensor)
    whole = full(numbers.size + 2 * GUARD, nan, numbers.dtype)
    whole[GUARD : GUARD + numbers.size] = numbers.reshape(-1)
    strides = [int(step) // numbers.itemsize for step in numbers.strides]
    return as_strided(T.from_numpy(whole), numbers.shape, strides, GUARD)


def _written(trace: Trace, result: Any) -> Any:
    """Whether a kernel wrote each entry of a tensor, which is read as contiguous; none where it lies in no memory that a kernel had."""
    if not is_a(result, T.Tensor):
        return zeros(0, bool_)
    (start, end), size = T.memory(result), T.numel(result)
    for one in trace.extents:
        if one.start <= start and end <= one.end:
            first = (start - one.start) // one.size
            return one.written[first : first + size].copy()
    return zeros(size, bool_)


def _cause(error: BaseException) -> BaseException:
    """What the interpreter says with an error of its own; its traceback leads from the wrapper into the kernel."""
    outer = []
    while is_a(error, errors.InterpreterError) and error.__cause__ is not None:
        trace = error.__traceback__
        while trace is not None:
            outer.append(trace)
            trace = trace.tb_next
        error = error.__cause__
    trace = error.__traceback__
    for one in reversed(outer):
        trace = TracebackType(trace, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(trace)


class Wrapper(TorchDispatchMode):
    """Notes what a wrapper computes in torch, and fills what it makes with NaN, so that nothing is right by what was there before."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import torch's compiler

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = func.__name__.partition(".")[0]
        made = func(*args, **(kwargs or {}))
        if self.trace.running:
            return made
        if name in (*MAKING, "clone") and is_a(made, T.Tensor):
            self.trace.largest = max(self.trace.largest, T.numel(made))
        if name in MAKING:
            if is_a(made, T.Tensor) and T.get(made, "dtype").is_floating_point:
                fill(made, nan)
        elif name not in VIEWS:
            self.trace.computed.append(name)
        return made


@contextmanager
def _patched(patches: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """For so long, each owner has under each name the value beside it."""
    with pause_watching():
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in patches]
        for owner, name, value in patches:
            setattr(owner, name, value)
    try:
        yield
    finally:
        with pause_watching():
            for owner, name, value in before:
                setattr(owner, name, value)


class Block(np.ndarray):
    """A block of values, as Triton's."""

    def to(self, dtype: Any) -> Any:
        return self.astype(dtype)


class Pointers:
    """Addresses of entries of one type: of a tensor's first, or of a block's."""

    def __init__(self, at: Any, kind: Any) -> None:
        self.at, self.kind, self.dtype = at, kind, SimpleNamespace(element_ty=kind)

    def __add__(self, offsets: Any) -> Pointers:
        return Pointers(self.at + asarray(offsets, int64) * self.kind.itemsize, self.kind)


class Language:
    """What the course's own kernels use of Triton's language, as NumPy computes it.

    The interpreter rewrites a kernel before it runs it, and a mistake is a kernel that runs once or twice: this takes a tenth of the time.
    A test compares the two.
    """

    float16, float32 = np.dtype(np.float16), np.dtype(np.float32)
    exp, exp2, log, maximum, minimum = map(staticmethod, (np.exp, np.exp2, np.log, np.maximum, np.minimum))
    max, min, trans = map(staticmethod, (np.fmax.reduce, np.fmin.reduce, np.transpose))

    def __init__(self, trace: Trace) -> None:
        self.trace, self.index = trace, (0, 0, 0)

    def program_id(self, axis: int) -> int:
        return self.index[axis]

    def num_programs(self, axis: int) -> int:
        return self.trace.grid[axis]

    def arange(self, start: int, end: int) -> Any:
        return arange(start, end).view(Block)

    def full(self, shape: tuple[int, ...], value: float, dtype: Any) -> Any:
        return full(shape, value, dtype).view(Block)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.full(shape, 0, dtype)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no).view(Block)

    def load(self, pointers: Pointers, mask: Any = True, other: float = nan) -> Any:
        at, lanes = self._lanes(READ, pointers, mask)
        return interpreter._interpreter.load(at, lanes, full(at.shape, other, pointers.kind), pointers.kind).view(Block)

    def store(self, pointers: Pointers, value: Any, mask: Any = True) -> None:
        at, lanes = self._lanes(WRITE, pointers, mask)
        interpreter._interpreter.store(at, np.broadcast_to(value, at.shape).astype(pointers.kind), lanes)

    def _lanes(self, kind: int, pointers: Pointers, mask: Any) -> tuple[Any, Any]:
        """The addresses of a load or a store, and which of them are not masked; the trace is told first."""
        at, lanes = np.add(pointers.at, zeros(np.shape(mask), int64)), zeros(pointers.at.shape, bool_) | mask
        self.trace.access(kind, self.index, at, lanes)
        return at.view(np.uint64), lanes

    def sum(self, block: Any, axis: int) -> Any:
        self.trace.half += ["tl.sum"] * (block.dtype == float16)
        return np.sum(block, axis=axis)

    def dot(self, a: Any, b: Any) -> Any:
        kinds = [f"fp{8 * block.itemsize}" for block in (a, b)]
        assert a.dtype == b.dtype, f"Both operands must be same dtype. Got {' and '.join(kinds)}"
        return np.matmul(a, b, dtype=np.float32)


@contextmanager
def _on_arrays(trace: Trace) -> Iterator[None]:
    """For so long, kernels of the course run on NumPy's arrays; what they do is told to the trace as the interpreter's is."""

    def launch(kernel: Any, *args: Any, grid: tuple[int, ...], warmup: bool, **kwargs: Any) -> None:
        function, language = kernel.fn, Language(trace)
        names = {name: language if one is triton.language else one for name, one in function.__globals__.items()}
        with pause_watching(), np.errstate(all="ignore"):  # the interpreter's warnings are its own, and no kernel's
            for one in args:
                if is_a(one, T.Tensor):
                    trace.extent_of(one)
            trace.launch((*map(int, grid), 1, 1)[:3])
            trace.running = True
            program, given = FunctionType(function.__code__, names), [_argument(value) for value in args]
            try:
                for language.index in np.ndindex(*trace.grid):
                    program(*given, **kwargs)
            finally:
                trace.running = False

    with _patched([(kind, "run", launch) for kind in (interpreter.InterpretedFunction, jit.JITFunction)]):
        yield


def _argument(value: Any) -> Any:
    """What a kernel gets of an argument: of a tensor where it lies, and a number that is not whole in float32."""
    if is_a(value, T.Tensor):
        return Pointers(array(T.memory(value)[0]), np.dtype(str(value.dtype).partition(".")[2]))
    return np.float32(value) if type(value) is float else value


@contextmanager
def _in_interpreter(trace: Trace) -> Iterator[None]:
    """For so long, kernels run in the interpreter, and each of their accesses is told to the trace first."""
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas, dot, execute = builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot, executor.__call__
    dim, add_up = builder.set_grid_dim, interpreter.ReduceOps.sum

    def traced_load(self: Any, pointers: Any, mask: Any, other: Any = None, *more: Any, **others: Any) -> Any:
        trace.access(READ, self.grid_idx, pointers.data, asarray(mask.data))
        kind = pointers.get_element_ty()
        if other is None and kind.is_floating() and not kind.is_bf16() and not kind.is_fp8():
            # The interpreter would give 0, where a compiled kernel gives what happens to be there.
            numbers = full(pointers.data.shape, nan, interpreter._get_np_dtype(kind))
            other = interpreter.TensorHandle(numbers, kind)
        return load(self, pointers, mask, other, *more, **others)

    def traced_store(self: Any, pointers: Any, value: Any, mask: Any, *more: Any, **others: Any) -> Any:
        trace.access(WRITE, self.grid_idx, pointers.data, asarray(mask.data))
        return store(self, pointers, value, mask, *more, **others)

    def traced_rmw(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *more: Any) -> Any:
        if trace.left_out:
            trace.depends()
        trace.access(WRITE, self.grid_idx, pointers.data, asarray(mask.data))
        return rmw(self, operation, pointers, value, mask, *more)

    def traced_cas(self: Any, pointers: Any, *more: Any) -> Any:
        if trace.left_out:
            trace.depends()
        trace.access(WRITE, self.grid_idx, pointers.data, full(pointers.data.shape, True))
        return cas(self, pointers, *more)

    def traced_dot(self: Any, a: Any, b: Any, to: Any, *more: Any) -> Any:
        trace.half += ["tl.dot"] * (to.data.dtype == float16)
        return dot(self, a, b, to, *more)

    def traced_sum(self: Any, blocks: Any) -> Any:
        trace.half += ["tl.sum"] * (blocks.handle.data.dtype == float16)
        return add_up(self, blocks)

    def traced_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.grid) and not is_a(self.grid, tuple):
            raise TypeError("a grid is a tuple of one to three sizes, such as kernel[(programs,)](…)")
        for value in (*args, *kwargs.values()):
            for one in value if type(value) is tuple else (getattr(value, "base", value),):
                if is_a(one, T.Tensor):
                    trace.extent_of(one)
        trace.running = True
        if trace.programs:
            self.fn = chosen(self.fn)
        try:
            return execute(self, *args, **kwargs)
        finally:
            trace.running = False

    def chosen(program: Any) -> Any:
        def run(**args: Any) -> None:
            if trace.runs(whole.grid_idx):
                program(**args)

        run.__signature__ = signature(program)  # type: ignore[attr-defined]
        return update_wrapper(run, program)

    def traced_grid(self: Any, *sizes: Any) -> None:
        dim(self, *sizes)
        trace.launch(tuple(map(int, sizes)))

    def traced_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace.launched.append((self.fn, args, kwargs))
        with pause_watching():
            return run(self, *args, **kwargs)

    def traced_inputs(self: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return (args, kwargs) if all(map(_here, (*args, *kwargs.values()))) else to_host(self, args, kwargs)

    def traced_outputs(self: Any, args: Any, hosts: Any, *others: Any) -> None:
        if hosts is not args:
            from_host(self, args, hosts, *others)

    def traced_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not trace.running:
            raise TypeError(
                f"a kernel is started with a grid, as {self.fn.__name__}[grid](…); without one only a kernel calls it"
            )
        return inner(self, *args, **kwargs)

    inner = interpreter.InterpretedFunction.__call__
    run, whole = interpreter.InterpretedFunction.run, interpreter.interpreter_builder
    to_host, from_host = executor._init_args_hst, executor._restore_args_dev
    semantic = type(interpreter.interpreter_semantic)
    exchanged: list[tuple[Any, str, Any]] = []
    patches = [
        (builder, "create_masked_load", traced_load),
        (builder, "create_masked_store", traced_store),
        (builder, "create_atomic_rmw", traced_rmw),
        (builder, "create_atomic_cas", traced_cas),
        (builder, "create_dot", traced_dot),
        (builder, "set_grid_dim", traced_grid),
        (interpreter.ReduceOps, "sum", traced_sum),
        (executor, "__call__", traced_launch),
        (executor, "_init_args_hst", traced_inputs),
        (executor, "_restore_args_dev", traced_outputs),
        (interpreter.InterpretedFunction, "run", traced_run),
        (interpreter.InterpretedFunction, "__call__", traced_call),
        (jit.JITFunction, "run", lambda self, *a, **k: interpreter.InterpretedFunction(self.fn).run(*a, **k)),
        (jit.JITFunction, "__call__", lambda self, *a, **k: interpreter.InterpretedFunction(self.fn)(*a, **k)),
        (autotuner.Autotuner, "run", lambda self, *a, **k: self.fn.run(*a, **k, **self.configs[0].all_kwargs())),
        (interpreter, "_patch_lang", _exchanged_once(interpreter._patch_lang, exchanged)),
        # it computes each `+` of whole numbers twice
        (whole, "options", replace(whole.options, sanitize_overflow=False)),
        (interpreter, "_get_np_dtype", _numpy_once(interpreter._get_np_dtype)),
        (interpreter, "_validate_np_data_size", _fits_once(interpreter._validate_np_data_size)),
        *_types_at_once(),
        (semantic, "broadcast_impl_value", _operands_once(semantic.broadcast_impl_value)),
        (semantic, "binary_op_type_checking_impl", _operands_once(semantic.binary_op_type_checking_impl)),
    ]
    try:
        with _patched(patches):
            yield
    finally:
        with pause_watching():
            _put_back(exchanged)  # else kernels could not be compiled any more; Triton itself does not always


def _here(value: Any) -> bool:
    """Whether the interpreter may take an argument as it is. It would make another tensor of the same memory, and in the end copy all of
    that memory to where it is."""
    if is_a(value, T.Tensor):
        return bool(T.get(value, "device").type == "cpu")
    return type(value) in (int, float, bool, str, type(None))


def _exchanged_once(patch: Callable[[Any], Any], exchanged: list[tuple[Any, str, Any]]) -> Callable[[Any], Any]:
    """The interpreter turns the language's functions into its own, at each launch and again at each call of one of the language's own
    kernels, such as `tl.sum`: once is enough. exchanged: is filled with owner, name and value of what was there before."""

    def once(function: Any) -> Any:
        if not exchanged:
            for owner, name, value in _exchanges(patch):
                exchanged.append((owner, name, vars(owner).get(name, _MISSING)))
                setattr(owner, name, value)
        return SimpleNamespace(restore=lambda: None)

    return once


@cache
def _exchanges(patch: Callable[[Any], Any]) -> list[tuple[Any, str, Any]]:
    """Owner, name and value of what the interpreter exchanges in Triton's language: the same each time, so that it is looked for once
    in a process."""
    before = [(owner, dict(vars(owner))) for owner in _language()]
    patch(SimpleNamespace(__globals__={"tl": triton.language, "core": triton.language.core}))
    changed = [
        (owner, name, value, members.get(name, _MISSING))
        for owner, members in before
        for name, value in vars(owner).items()
        if value is not members.get(name)
    ]
    _put_back([(owner, name, former) for owner, name, _, former in changed])
    found = [(owner, name, _direct(value)) for owner, name, value, _ in changed]
    found = [(owner, name, _index_once(value) if name == "__getitem__" else value) for owner, name, value in found]
    # A number is an array of one entry there, which NumPy since 2.4 makes no int of; Triton until 3.6 asks it to.
    return [*found, (triton.language.tensor, "__index__", lambda number: number.handle.data.item())]


def _direct(exchange: Any) -> Any:
    """What the interpreter exchanges calls the language's own function through two others, which do the same at each call: here at once."""
    between = (getattr(exchange, "__kwdefaults__", None) or {}).get("member")
    if getattr(between, "__code__", None) is not triton.language.core.builtin(lambda: None).__code__:
        return exchange
    own = between.__wrapped__

    def call(*args: Any, **named: Any) -> Any:
        named["_semantic"] = interpreter.interpreter_semantic
        return own(*args, **named)

    return call


def _adds_at_most(index: Any) -> bool:
    """Whether an entry of an index is None, or a slice of everything."""
    return index is None or (type(index) is slice and index.start is index.stop is index.step is None)


def _index_once(index: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An index adds axes, as in `rows[:, None]`: to which type is worked out once for each type."""

    def index_once(tensor: Any, at: Any) -> Any:
        if type(at) is not tuple or not tensor.type.is_block() or not all(map(_adds_at_most, at)):
            return index(tensor, at)
        key = (tensor.type.name, *(one is None for one in at))
        to = _INDEXED.get(key)
        if to is None:
            made = index(tensor, at)
            _INDEXED[key] = made.type
            return made
        handle = tensor.handle
        numbers = handle.data.reshape(_sizes(to.shape))
        return TENSOR(interpreter.TensorHandle(numbers, handle.dtype.scalar), to)

    return index_once


def _put_back(before: list[tuple[Any, str, Any]]) -> None:
    for owner, name, value in reversed(before):
        if value is not _MISSING:
            setattr(owner, name, value)
        elif isinstance(owner, type):  # a module keeps it: rewritten kernels use it
            delattr(owner, name)


def _types_at_once() -> list[tuple[Any, str, Any]]:
    """Owner, name and value of what Triton's types and tensors are made and compared by, without what is the same each time."""
    core = triton.language.core
    return [
        (core.block_type, "__init__", _type_once(core.block_type.__init__)),
        (core.tensor, "__init__", _tensor_once(core.tensor.__init__)),
        (core.dtype, "__eq__", _equal_at_once(core.dtype.__eq__)),
    ]


def _type_once(make: Callable[..., None]) -> Callable[..., None]:
    """The interpreter makes some block's type in nearly each operation, and there are few of them: each is worked out once."""

    def make_once(self: Any, element: Any, shape: Any) -> None:
        sizes = _sizes(shape)
        key = (element.name, *sizes)
        if key in _TYPES:
            self.__dict__.update(_TYPES[key])
        else:
            make(self, element, shape)
            if all(type(size) is int for size in sizes):
                _TYPES[key] = dict(vars(self))

    return make_once


def _numpy_once(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def find_once(type: Any) -> Any:
        if type.name not in _NUMPY:
            _NUMPY[type.name] = find(type)
        return _NUMPY[type.name]

    return find_once


def _tensor_once(make: Callable[..., None]) -> Callable[..., None]:
    """So is what a kernel's tensor has beside its numbers: it depends on its type alone."""

    def make_once(self: Any, handle: Any, type: Any) -> None:
        kept = _TENSORS.get(type.name)
        if kept is None:
            make(self, handle, type)
            kept = _TENSORS[type.name] = dict(vars(self))
        self.__dict__.update(kept)
        self.handle, self.type = handle, type

    return make_once


def _fits_once(fits: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Whether numbers fit into a type is asked of each block, and depends on how large one of them is."""

    def fits_once(numbers: Any, type: Any) -> bool:
        key = (numbers.itemsize, type.name)
        found = _FITS.get(key)
        if found is None:
            found = _FITS[key] = fits(numbers, type)
        return found

    return fits_once


def _equal_at_once(equal: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Two types of numbers are compared in nearly each operation."""
    plain = triton.language.core.dtype

    def equal_at_once(self: Any, other: Any) -> Any:
        return self.name == other.name if type(other) is plain else equal(self, other)

    return equal_at_once


def _operands_once(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Two operands of one shape, and those of an operator of one type as well: to what they are brought is worked out once for each two
    types, where no tensor's numbers are converted."""

    def prepare_once(self: Any, one: Any, other: Any, *flags: bool, **named: bool) -> Any:
        kinds = _kind(one), _kind(other)
        key = (prepare.__name__, *kinds, *flags)
        types = () if named else _OPERANDS.get(key)
        if types:
            first, second = types
            return (one if first is None else _spread(one, first)), (
                other if second is None else _spread(other, second)
            )
        made = prepare(self, one, other, *flags, **named)
        if types is None and None not in kinds:
            _OPERANDS[key] = _types((one, other), made)
        return made

    return prepare_once


def _kind(operand: Any) -> Any:
    """What decides to which type an operand is brought: a tensor's type, or that of a number of a usual size; None for all else."""
    kind = type(operand)
    if kind is TENSOR:
        return operand.type.name
    return kind if kind is float or (kind is int and abs(operand) < 1 << 31) else None


def _types(before: tuple[Any, Any], after: tuple[Any, Any]) -> tuple[Any, ...]:
    """To what two operands were brought, None for one that stays; empty where a tensor's numbers were converted, or a plain number to
    another type than its partner has."""
    types = []
    for old, new, partner in zip(before, after, reversed(before), strict=True):
        if new is old:
            types.append(None)
            continue
        alike = old if type(old) is TENSOR else partner
        if (
            type(alike) is not TENSOR
            or alike.dtype != new.dtype
            or (alike is partner and alike.dtype.name not in USUAL)
        ):
            return ()
        types.append(new.type)
    return tuple(types)


def _spread(operand: Any, to: Any) -> Any:
    """A tensor or a number whose numbers are repeated until it has this type."""
    if type(operand) is not TENSOR:
        scalar = array([operand or 0], interpreter._get_np_dtype(to))  # without the sign of -0.0
        operand = TENSOR(interpreter.TensorHandle(scalar, to.scalar), to.scalar)
        if not to.is_block():
            return operand
    handle = operand.handle
    kind = handle.data.dtype if operand.type.is_block() else interpreter._get_np_dtype(handle.dtype)
    numbers = empty(_sizes(to.shape), kind)
    numbers[...] = handle.data
    return TENSOR(interpreter.TensorHandle(numbers, handle.dtype.scalar), to)


def _sizes(shape: Any) -> Any:
    """Of a block, without Triton's own tuple, which is slow to go through."""
    return getattr(shape, "values", shape)


@cache
def _language() -> tuple[Any, ...]:
    """Triton's modules and classes of which the interpreter may exchange functions."""
    modules = [module for name, module in sys.modules.items() if name.startswith("triton.language")]
    kinds = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return (*modules, *(kind for kind in kinds if kind.__module__.startswith("triton.language")))


def _refused(launched: list[tuple[Any, tuple, dict[str, Any]]]) -> str:
    """What the compiler for a GPU refuses, which the interpreter lets pass: the kernel's line, a line break, and what it says; '' for
    nothing. Only its front end runs, which needs no GPU and takes a hundredth of a second."""
    try:
        with pause_watching(), _patched([*_compilable(), *_types_at_once()]):
            for function, args, kwargs in launched:
                _front_end(_as_jit(function), args, kwargs)
        return ""
    except CompilationError as error:
        line = error.src.splitlines()[error.node.lineno - 1].strip() if error.src else ""
        while error.__cause__ is not None:
            error = error.__cause__
        return f"{line}\n{getattr(error, 'error_message', None) or error}"
    except Exception:  # what is not the compiler's own verdict is none
        return ""


def _front_end(kernel: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Of a compilation the steps in which a kernel can be refused. args, kwargs: of its launch. Raises: CompilationError."""
    own = {name: value for name, value in kwargs.items() if name in kernel.arg_names}  # the others tune it
    bound = signature(kernel.fn).bind(*args, **own)
    bound.apply_defaults()
    given = bound.arguments
    fixed = {one.name: given[one.name] for one in kernel.params if one.is_constexpr or given[one.name] is None}
    kinds = {name: "constexpr" if name in fixed else _compiled_type(value) for name, value in given.items()}
    target, context = GPUTarget("cuda", 80, 32), ir.context()
    backend = compiler.make_backend(target)
    options = backend.parse_options(
        {"sanitize_overflow": False}
    )  # the checks of a kernel that is debugged, which refuse nothing
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = compiler.ASTSource(kernel, kinds, fixed)
    source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)


def _compiled_type(value: Any) -> str:
    """'*fp16', 'i32', 'fp32': what the compiler takes an argument for. Raises: KeyError for other kinds."""
    if is_a(value, T.Tensor):
        return "*" + jit.type_canonicalisation_dict[str(value.dtype).partition(".")[2]]
    return {bool: "i1", int: "i32" if abs(value) < 1 << 31 else "i64", float: "fp32"}[type(value)]


def _as_jit(function: Any) -> Any:
    """A kernel as `@triton.jit` makes it where nothing is interpreted, and with it those that it calls."""
    names = dict(function.__globals__)
    kernels = {name: value.fn for name, value in names.items() if is_a(value, interpreter.InterpretedFunction)}
    made: dict[Any, Any] = {}
    todo = [function]
    while todo:
        one = todo.pop()
        if one not in made:
            copy = update_wrapper(FunctionType(one.__code__, names, argdefs=one.__defaults__), one)
            del copy.__wrapped__  # else its text would be sought there
            made[one] = jit.JITFunction(copy)
            todo += [kernels[name] for name in _names(one.__code__) if name in kernels]
    names.update((name, made[one]) for name, one in kernels.items() if one in made)
    return made[function]


def _names(code: CodeType) -> set[str]:
    """The names that a function reads, and what is in it."""
    inner = (_names(one) for one in code.co_consts if type(one) is CodeType)
    return set(code.co_names).union(*inner)


@cache
def _compilable() -> list[tuple[Any, str, Any]]:
    """Owner, name and value of what Triton's language has as a function that is interpreted, made one to compile."""
    found = []
    for owner in _language():
        for name, value in vars(owner).items():
            cells = (value, *(cell.cell_contents for cell in getattr(value, "__closure__", None) or ()))
            one = next((one for one in cells if is_a(one, interpreter.InterpretedFunction)), None)
            if one is not None:
                found.append((owner, name, jit.JITFunction(one.fn)))
    return found
