"""Lesson 11: what it measures with (the device, what cannot run and why, memory, traces, stored runs), then its figures.

Both are in one file, since a hand-out without solutions takes along no other of a lesson.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from grader.figures import COLOURS, panels, show

STORED = (
    Path(__file__).parents[1] / "shared" / "data" / "gpu_runs.json"
)  # made by `make gpu`: a list of runs, one a machine, the newest last
RUN: dict[str, Any] = {}  # what this kernel has measured so far, by name: see `record`

# What torch says, in part, where a way cannot run, and what that means.
_REASONS = (
    ("out of memory", "the score matrix does not fit into memory"),
    ("out of resource", "its tiles need more fast memory than this GPU has"),
    ("C++ compiler", "torch.compile writes C++, and no C++ compiler was found"),
    ("Python.h", "torch.compile writes C++, and Python's headers are missing"),
    ("too old to be supported by the triton", "Triton needs compute capability 7.0 or newer"),
    ("TritonMissing", "torch.compile writes Triton programs, and Triton is not installed"),
    ("working triton installation", "torch.compile writes Triton programs, and Triton is not installed"),
    ("No module named 'torch.nn.attention.flex", "torch has FlexAttention from 2.5 on"),
    ("only supports gpu architectures", "needs compute capability 8.0 or newer"),
    ("sm80", "needs compute capability 8.0 or newer"),
    ("torch.compile is not supported", "torch.compile does not support this version of Python"),
    ("Dynamo is not supported", "torch.compile does not support this version of Python"),
)


def device() -> torch.device:
    """The best device that is here."""
    names = [name for name, here in (("cuda", torch.cuda), ("mps", torch.backends.mps)) if here.is_available()]
    return torch.device((names or ["cpu"])[0])


def name() -> str:
    """The device in words: its model for CUDA, the processor and the number of threads otherwise."""
    kind = device().type
    if kind == "cuda":
        major, minor = torch.cuda.get_device_capability()
        return f"{torch.cuda.get_device_name()}, compute capability {major}.{minor}"
    if kind == "mps":
        return f"Apple GPU ({platform.machine()})"
    threads = torch.get_num_threads()
    return f"CPU ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"


def precision() -> torch.dtype:
    """In which the device's fast kernels work: 16 bits on a GPU, bfloat16 where its tensor cores have it; float32 on a CPU."""
    kind = device().type
    if kind == "cpu":
        return torch.float32
    return torch.bfloat16 if kind == "cuda" and torch.cuda.get_device_capability() >= (8, 0) else torch.float16


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def attempt(call: Callable[[], Any], reason: str = "") -> Any:
    """What call() returns; where it raises, the reason in one line, as a string. reason: where torch itself says no more."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            return call()
        except Exception as error:
            texts = [f"{type(error).__name__}: {error}", *(str(one.message) for one in said)]
    known = next((words for sign, words in _REASONS if any(sign in text for text in texts)), "")
    if known or reason:
        return known or reason
    line = next((line for line in texts[0].splitlines() if line.strip()), "no reason given")
    return line if len(line) <= 90 else line[:89] + "…"


def with_unit(value: float | str, unit: str) -> str:
    """What `attempt` returned, in words."""
    return (
        f"not here: {value}"
        if isinstance(value, str)
        else f"{value:.3g} {unit}"
        if value < 100
        else f"{value:,.0f} {unit}"
    )


def backends(call: Callable[[], Any], measure: Callable[[Callable[[], Any]], float]) -> dict[str, float | str]:
    """Milliseconds of `call` on each backend of the fused operator, or why it is not available."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    needs = {
        "FLASH_ATTENTION": "needs 16-bit numbers, compute capability 8.0 and d_head up to 256",
        "EFFICIENT_ATTENTION": "is written for CUDA alone",
        "CUDNN_ATTENTION": "needs CUDA, 16-bit numbers and compute capability 8.0",
        "MATH": "",
    }

    def on(backend: str) -> float:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return measure(call)

    known = [backend for backend in needs if hasattr(SDPBackend, backend)]
    return {backend: attempt(lambda backend=backend: on(backend), needs[backend]) for backend in known}


def tokens_for(ms_at_256: float, budget_ms: float) -> int:
    """The largest of 512, 1024 and 2048 whose step fits the budget; 512 in any case. A step of a block takes 2.3 times as long for
    twice the tokens: somewhat more than the projections alone."""
    fitting = [t for t in (1024, 2048) if ms_at_256 * 2.3 ** (t.bit_length() - 9) <= budget_ms]
    return max(fitting, default=512)


# --- memory ------------------------------------------------------------------------------------


def kept_bytes(forward: Callable[[], Any]) -> int:
    """What the forward pass keeps for the backward pass, each stretch of memory once."""
    seen: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(seen.values())


def peak_mib(forward: Callable[[], Any], step: Callable[[], Any]) -> float:
    """MiB that a step takes at most beside what was there before it; without CUDA, what its forward pass keeps."""
    if device().type != "cuda":
        return kept_bytes(forward) / 2**20
    step()  # gradients and the libraries' workspace are there from now on
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


# --- a trace -----------------------------------------------------------------------------------


class Span(NamedTuple):
    """One operation or kernel. row: 'CPU' or 'GPU'. Times in microseconds from the first one on."""

    row: str
    kind: str
    start: float
    length: float


# Looked for in this order in a name in lower case: CUDA's fused kernels have the names of products in theirs.
_KINDS = (
    ("attention kernel", ("flash", "fmha", "scaled_dot_product", "cudnn_generated", "sdpa")),
    ("matrix product", ("matmul", "bmm", "::mm", "gemm", "cutlass", "xmma", "nvjet", "cublas")),
    ("softmax", ("softmax",)),
    (
        "scale and mask",
        ("div", "mul", "masked_fill", "elementwise", "where", "memcpy dtod"),
    ),  # masked_fill copies first
)


_MEASURED = "measured"  # the profiler's name for what counts


def trace(call: Callable[[], Any]) -> list[Span]:
    """The operations of one warm call, as torch.profiler sees them: on a CUDA device the calls and the kernels."""
    from torch.profiler import ProfilerActivity, profile, record_function

    cuda = device().type == "cuda"
    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device().type, lambda: None)
    seen = []
    for _ in range(15):  # the quickest counts: other programs only ever add
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
        with _silent(), profile(activities=activities) as profiled:
            call()  # the profiler itself is slow at its first operation
            wait()
            with record_function(_MEASURED):
                call()
                wait()
        seen.append(list(_spans(profiled.events())))
    spans = min(seen, key=lambda one: _ends(one)[1] - _ends(one)[0])
    first, _ = _ends(spans)
    return [span._replace(start=span.start - first) for span in spans]


def _ends(spans: Sequence[Span]) -> tuple[float, float]:
    """When the first one began and the last one ended."""
    return min((one.start for one in spans), default=0.0), max((one.start + one.length for one in spans), default=0.0)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keeps away what the profiler writes to standard error when it starts and stops, its C++ part among it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _spans(events: Any) -> Iterator[Span]:
    start = min(event.time_range.start for event in events if event.name == _MEASURED)
    for event in events:
        on_gpu = "CUDA" in str(event.device_type)
        if not on_gpu and (
            (event.cpu_parent and event.cpu_parent.name != _MEASURED) or not event.name.startswith("aten::")
        ):
            continue
        low = event.name.lower()
        kind = next((kind for kind, signs in _KINDS if any(sign in low for sign in signs)), "other")
        at = event.time_range
        if at.end > at.start >= start and event.name != _MEASURED:
            yield Span("GPU" if on_gpu else "CPU", kind, at.start, at.end - at.start)


# --- stored runs -------------------------------------------------------------------------------


def record(what: str, value: Any) -> None:
    """Notes a result of this run, for `store`."""
    RUN[what] = value


def store(path: Path = STORED) -> str:
    """Writes this run into the file of stored runs; of an earlier one of the same machine, only what was not measured anew is kept.

    Lesson 15 adds to lesson 11's run. Returns: the machine.
    """
    machine, runs = name(), stored_runs(path)
    earlier = next((one for one in runs if one["machine"] == machine), {})
    run = {**earlier, "machine": machine, "torch": torch.__version__, "date": time.strftime("%Y-%m-%d"), **RUN}
    others = [one for one in runs if one["machine"] != machine]
    path.write_text(json.dumps([*others, run], indent=1) + "\n", encoding="utf-8")
    return machine


def stored_runs(path: Path = STORED) -> list[dict[str, Any]]:
    """The stored runs on GPUs, the newest last; none where nobody has measured yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def card(run: Mapping[str, Any]) -> str:
    """The short name of the machine of a run: 'NVIDIA H100 80GB HBM3'."""
    return run["machine"].split(",")[0]


def _stored_with(what: str) -> list[dict[str, Any]]:
    """The newest stored run that has measured this, in a list; an empty one where there is none, or where a GPU is here."""
    return [run for run in stored_runs() if what in run and device().type != "cuda"][-1:]


def _of(run: Mapping[str, Any]) -> str:
    """Whose figure it is."""
    return f"Stored run, {card(run)}"


def about_gpus() -> str:
    """One or two sentences: where the lesson's numbers about GPUs come from."""
    runs = stored_runs()
    if not runs:
        return "No GPU was at hand when this copy was made, so its numbers about GPUs are published ones, each with its source."
    run = runs[-1]
    return f"Pictures titled *Stored run* were measured on {run['machine']} with torch {run['torch']} on {run['date']}."


def stored_block() -> str:
    """One sentence: what the block of real size took in the newest stored run."""
    for run in _stored_with("block"):
        ms, mib = run["block"]["ms"], run["block"]["MiB"]
        longer, more = ms["eager"] / ms["fused"], mib["eager"] / mib["fused"]
        return f"{_of(run)}: the eager block takes {longer:.1f} times as long and needs {more:.1f} times as much."
    return ""


def stored_backends() -> str:
    """One sentence: what each backend took in the newest stored run, and the operator, which chooses among them."""
    for run in _stored_with("backends"):
        backends = ", ".join(
            f"{backend} {with_unit(ms, 'ms')}" for backend, ms in run["backends"].items() if not isinstance(ms, str)
        )
        return (
            f"{_of(run)}: {backends}; the operator, which chooses by itself, {with_unit(run['ways']['fused'], 'ms')}."
        )
    return ""


# --- figures -----------------------------------------------------------------------------------

_EAGER, _FUSED, _OTHER = COLOURS["vermillion"], COLOURS["green"], COLOURS["grey"]
_CURVE = COLOURS["blue"]
_LOOK = {
    "eager": _EAGER,
    "compiled": COLOURS["orange"],
    "fused": _FUSED,
    "FlexAttention": COLOURS["blue"],
    "projections": _OTHER,
}
_KIND = {
    "matrix product": COLOURS["blue"],
    "scale and mask": COLOURS["orange"],
    "softmax": COLOURS["vermillion"],
    "attention kernel": COLOURS["green"],
    "other": "#BBBBBB",
}


def queue() -> None:
    """Python's calls above the device's stream: where a clock that does not wait stops, and where the device runs dry."""
    fig, axes = panels(2, width=8.8, height=4.3, columns=1)
    for ax, lengths, title in (
        (axes[0], (24, 24, 24), "Long kernels: the calls return early, and the device is never idle"),
        (axes[1], (3, 3, 3), "Short kernels: the device waits for the next launch"),
    ):
        ax.set(xlim=(-19, 100), ylim=(0, 30))
        ax.axis("off")
        ax.set_title(title, loc="left", fontweight="bold")
        for y, words in ((22.5, "Python (CPU)"), (11, "stream (device)")):
            ax.text(-2, y, words, ha="right", va="center", fontsize=9.5)
        done = 0.0
        for number, length in enumerate(lengths):
            asked = 2 + 10.0 * number
            ax.add_patch(_box(asked, 19, 8.6, 7, "#E4E4E4"))
            ax.text(asked + 4.3, 22.4, f"launch {number + 1}", ha="center", va="center", fontsize=8)
            start = max(done, asked + 8.6)
            done = start + length
            ax.add_patch(_box(start, 7.5, length - 0.4, 7, "#BBD9EE"))
            label = f"kernel {number + 1}" if length > 10 else f"{number + 1}"
            ax.text(start + length / 2, 10.9, label, ha="center", va="center", fontsize=8)
        returned = 2 + 10.0 * len(lengths) - 1.0
        for x, words, colour in (
            (returned, "clock read without waiting", _EAGER),
            (done, "clock read after waiting", _CURVE),
        ):
            if x == returned and done - returned < 10:
                continue  # the two readings are nearly the same there
            ax.plot([x, x], [4.5, 28], color=colour, linewidth=1.8, linestyle="--")
            ax.text(x, 2, words, color=colour, ha="center", va="center", fontsize=9)
        if done - returned < 10:
            for number in (1, 2):
                ax.text(
                    7 + 10.0 * number, 10.9, "idle", ha="center", va="center", fontsize=8, color=_OTHER, style="italic"
                )
    axes[1].annotate(
        "time", (99, 3.5), (60, 3.5), va="center", fontsize=9, arrowprops={"arrowstyle": "->", "color": "#555555"}
    )
    show(
        fig,
        alt="Two time lines, Python's launches above the device's stream. With long kernels the three launches return while the first "
        "kernel runs: a clock read then shows a third of the time. With short kernels the device is idle between them.",
    )


def _box(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.1", facecolor=colour, edgecolor="white")


def _tick_lengths(ax: Any, lengths: Any) -> None:
    ax.set_xticks(list(lengths), [str(int(length)) for length in lengths])
    ax.minorticks_off()


def regimes(sizes: Sequence[int], adding: Sequence[float], widths: Sequence[int], products: Sequence[float]) -> None:
    """Milliseconds of adding vectors of so many numbers, and GFLOP/s of products of square matrices."""
    fig, axes = panels(2, width=8.8, height=3.5)
    axes[0].loglog(sizes, adding, color=_CURVE, marker="o", markersize=4, label="measured")
    axes[0].axhline(min(adding), color=_OTHER, linestyle="--", linewidth=1.2, label="the call alone")
    slope = [adding[-1] * n / sizes[-1] for n in sizes]
    axes[0].loglog(sizes, slope, color=_EAGER, linestyle=":", linewidth=1.5, label="the memory alone")
    axes[0].set(xlabel="numbers in x", ylabel="milliseconds for x + x", ylim=(min(adding) / 4, adding[-1] * 4))
    axes[0].set_title("x + x waits for the call, then for memory")
    axes[0].legend(frameon=False, loc="upper left")
    rates = [2 * n**3 / ms / 1e6 for n, ms in zip(widths, products, strict=True)]
    axes[1].semilogx(widths, rates, color=_CURVE, marker="o", markersize=4)
    _tick_lengths(axes[1], widths)
    axes[1].set(xlabel="n", ylabel="GFLOP/s of an n × n product", ylim=(0, None))
    axes[1].set_title("Large products wait for arithmetic")
    show(
        fig,
        alt=f"Left: adding takes {adding[0]:.4f} ms for {sizes[0]} numbers and {adding[-1]:.2f} ms for {sizes[-1]}. Right: a product "
        f"reaches {rates[0]:.1f} GFLOP/s at width {widths[0]} and {rates[-1]:.1f} at {widths[-1]}.",
    )


def ways(took: Mapping[str, float | str], shape: str, run: str = "") -> None:
    """Milliseconds of each way to compute the same attention; in a way's place its reason, where it cannot run.

    shape: batch, heads, tokens and precision in words. run: whose times these are, where they are not this machine's.
    """
    fig, (ax,) = panels(1, width=8.0, height=2.9)
    ran = {way: ms for way, ms in took.items() if not isinstance(ms, str)}
    most = max(ran.values(), default=1.0)
    for row, (way, ms) in enumerate(took.items()):
        if isinstance(ms, str):
            ax.text(0.01 * most, row, f"not here: {ms}", va="center", fontsize=9, style="italic")
            continue
        ax.barh(row, ms, color=_LOOK[way], height=0.6)
        ax.text(ms + 0.012 * most, row, f"{ms:.3g} ms", va="center", fontsize=9.5)
    ax.set_yticks(range(len(took)), list(took))
    ax.invert_yaxis()
    ax.set(xlabel=f"milliseconds; {shape}", xlim=(0, 1.15 * most))
    ax.grid(axis="y", visible=False)
    gain = f": fused, {ran['eager'] / ran['fused']:.1f} times as fast" if {"eager", "fused"} <= set(ran) else ""
    ax.set_title(f"{run or 'The same attention'}{gain}")
    said = ", ".join(f"{way}: {ms}" if isinstance(ms, str) else f"{way} {ms:.3g} ms" for way, ms in took.items())
    show(fig, alt=f"Bars, {run or 'on ' + name()}, {shape}: {said}.")


_BROWN = "#8A5A00"  # orange letters are too pale on white
_KERNEL = {
    "q kᵀ": (COLOURS["blue"], (0, -20), "left"),
    "weights · v": (COLOURS["blue"], (0, -20), "center"),
    "scale": (COLOURS["orange"], (-9, 0), "right"),
    "mask": (COLOURS["orange"], (9, 0), "left"),
    "softmax": (COLOURS["vermillion"], (9, 0), "left"),
    "fused": (COLOURS["green"], (9, 0), "left"),
}  # the look of a kernel's point: color, where its name stands and on which side of that


Points = Mapping[str, tuple[float, float, float | None]]


def roofline(roof: tuple[float, float], points: Points, precision: str) -> None:
    """This machine's roof with each kernel under it, all in one precision; beside it that of the newest stored run, where there is one.

    roof: (GFLOP/s, GB/s). points: by kernel (operations a byte, GFLOP/s into new memory, GFLOP/s into memory that is there or None).
    """
    runs = _stored_with("roofline")
    fig, axes = panels(1 + len(runs), width=10.4 if runs else 6.4, height=4.6)
    alts = [_roof(axes[0], roof, points, f"Here, {precision}")]
    for run in runs:
        theirs = run["roofline"]
        alts.append(_roof(axes[1], theirs["roof"], theirs["points"], f"{_of(run)}, {theirs['precision']}"))
    axes[0].legend(frameon=False, fontsize=8.5, loc="upper left")
    show(fig, alt="A roofline. " + " ".join(alts))


def _roof(ax: Any, roof: Sequence[float], points: Points, run: str) -> str:
    """One machine's roof, with kernels as points. Returns: all of it in words."""
    top, moved = roof
    corner = top / moved
    eager = [kernel for kernel in points if kernel != "fused"]
    under = sum(points[kernel][0] < corner for kernel in eager)
    count = ("none", "one", "two", "three", "four", "all five")[under] + ("" if under == 5 else " of five")
    ax.set_title(f"{run}:\n{count} eager kernels under the slope", fontsize=10.5)
    heights = [value for _, new, there in points.values() for value in (new, there) if value]
    low, high = min(heights) / 5, 12 * max(top, *heights)
    left, right = 0.04, 6 * max(at for at, _, _ in points.values())
    intensity = np.geomspace(left, right, 200)
    ax.loglog(intensity, np.minimum(top, moved * intensity), color="black", linewidth=2)
    ax.plot([corner, corner], [low, top / 12], color=_OTHER, linestyle=":", linewidth=1)
    rate = f"{top / 1000:,.0f} TFLOP/s" if top >= 10_000 else f"{top:,.0f} GFLOP/s"
    ax.text(right / 1.15, 1.25 * top, f"arithmetic: {rate}", ha="right", va="bottom", fontsize=9)
    ax.text(corner / 5, top / 3, f"memory: {moved:,.0f} GB/s", ha="right", va="center", fontsize=9)
    for x, words, side in ((corner / 1.1, "memory bound", "right"), (corner * 1.1, "compute bound", "left")):
        ax.text(x, low * 1.25, words, ha=side, va="bottom", fontsize=8.5, color="#666666")
    said = [f"{run}: the roof is {top:.0f} GFLOP/s and {moved:.0f} GB/s, its corner at {corner:.1f}"]
    for kernel, (at, new, there) in points.items():
        colour, where, side = _KERNEL[kernel]
        shift = {"q kᵀ": 1 / 1.12, "weights · v": 1.12, "scale": 1 / 1.1, "mask": 1.1}.get(
            kernel, 1.0
        )  # equal intensities
        if there is not None:
            ax.plot([at * shift] * 2, [new, there], color=colour, linewidth=1.2, linestyle="-")
            ax.plot(at * shift, there, marker="o", markersize=10, color=colour, markerfacecolor="white", linestyle="")
        ax.plot(at * shift, new, marker="o", markersize=6.5, color=colour, linestyle="")
        if kernel != "weights · v":  # its point stands beside that of q kᵀ, which names both
            ax.annotate(
                "q kᵀ (left),\nweights · v (right)" if kernel == "q kᵀ" else kernel,
                (at * shift, new),
                where,
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=9,
                color=_BROWN if colour == COLOURS["orange"] else colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
            )
        both = f" into new memory, {there:.1f} into existing memory" if there is not None else ""
        said.append(f"{kernel}: {at:.2g} operations a byte, {new:.1f} GFLOP/s{both}")
    for face, size, words in (("#666666", 6.5, "result in new memory"), ("white", 10, "result in existing memory")):
        ax.plot([], [], marker="o", color="#666666", markerfacecolor=face, markersize=size, linestyle="", label=words)
    ax.set(
        xlabel="operations per byte moved (scale and mask are drawn apart)",
        ylabel="GFLOP/s",
        xlim=(left, right),
        ylim=(low, high),
    )
    return "; ".join(said) + "."


def traces(runs: Mapping[str, Sequence[Span]]) -> None:
    """What ran when, here and, where that is no GPU, in the newest stored run."""
    record("trace", {way: [list(span) for span in spans] for way, spans in runs.items()})
    _time_lines(runs)
    for run in _stored_with("trace"):
        _time_lines({way: [Span(*span) for span in spans] for way, spans in run["trace"].items()}, _of(run))


def _time_lines(runs: Mapping[str, Sequence[Span]], run: str = "") -> None:
    """A time line for each way, all to one scale, colored by what kind of work it was."""
    rows = [(way, row) for way, spans in runs.items() for row in ("CPU", "GPU") if any(one.row == row for one in spans)]
    fig, (ax,) = panels(1, width=9.2, height=1.5 + 0.55 * len(rows))
    end = max(span.start + span.length for spans in runs.values() for span in spans)
    used: dict[str, float] = {}
    for at, (way, row) in enumerate(rows):
        for span in runs[way]:
            if span.row == row:
                ax.barh(
                    at,
                    span.length / 1000,
                    left=span.start / 1000,
                    height=0.62,
                    color=_KIND[span.kind],
                    edgecolor="white",
                    linewidth=0.4,
                )
                used[span.kind] = used.get(span.kind, 0) + span.length
    where = {"CPU": "CPU" if len(rows) == len(runs) else "CPU: calls", "GPU": "GPU: kernels"}
    ax.set_yticks(range(len(rows)), [f"{way}\n{where[row]}" for way, row in rows])
    ax.invert_yaxis()
    ax.set(xlabel="milliseconds", xlim=(0, 1.02 * end / 1000))
    ax.grid(axis="y", visible=False)
    for kind in _KIND:
        if used.get(kind, 0) > 0.01 * end:
            ax.barh(0, 0, color=_KIND[kind], label=kind)
    ax.legend(frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8.5)
    share = over_the_matrix(runs["eager"])
    title = f"{run or 'Here'}: {share:.0%} of eager attention's working time goes into scaling, masking and softmax"
    if device().type == "mps" and not run:
        title = "On an Apple GPU the profiler sees the calls alone, not the kernels"
    fig.suptitle(title, fontsize=11)
    show(
        fig,
        alt=f"Time lines to one scale, {run or 'on ' + name()}. Eager: scaling, masking and softmax take {share:.0%} of the working "
        "time, the two products the rest; fused, one kernel does it all.",
    )


def over_the_matrix(spans: Sequence[Span]) -> float:
    """The share of the working time that scaling, masking and softmax take, of the kernels where there are some."""
    row = "GPU" if any(one.row == "GPU" for one in spans) else "CPU"
    lengths = {kind: sum(one.length for one in spans if (one.row, one.kind) == (row, kind)) for kind in _KIND}
    return (lengths["scale and mask"] + lengths["softmax"]) / max(sum(lengths.values()), 1e-9)


def gpu_times() -> None:
    """The newest stored run on a GPU, where there is one, then the published figures of an A100."""
    for run in _stored_with("ways"):
        ways(run["ways"], run["shape"], _of(run))
    fig, axes = panels(3, width=8.8, height=2.7)
    fig.suptitle(
        "Published for an A100: one layer of GPT-2 medium's attention, 64 texts of 1,024 tokens, forward and backward",
        fontsize=10.5,
    )
    for ax, (what, unit, eager, fused) in zip(
        axes,
        (
            ("More operations", "times eager's", 1, 1.13),  # 75.2 / 66.6, the paper's own counts
            ("A ninth of the bytes", "gigabytes", 40.3, 4.4),
            ("A sixth of the time", "milliseconds", 41.7, 7.3),
        ),
        strict=True,
    ):
        ax.bar(["eager", "fused"], [eager, fused], color=[_EAGER, _FUSED], width=0.6)
        for at, value in enumerate((eager, fused)):
            ax.annotate(f"{value}", (at, value), (0, 3), textcoords="offset points", ha="center", fontsize=9.5)
        ax.set(ylabel=unit, ylim=(0, 1.18 * max(eager, fused)))
        ax.set_title(what)
        ax.grid(axis="x", visible=False)
    show(
        fig,
        alt="Published for an A100: eager attention 40.3 GB moved, 41.7 ms; fused 1.13 times as many operations, 4.4 GB, 7.3 ms.",
    )


def against_length(
    times: Mapping[str, Mapping[int, float]],
    memory: Mapping[str, Mapping[int, float]],
    full: Mapping[str, int],
    slopes: Mapping[str, Mapping[str, float]],
    crossing: int,
    limit: str = "out of memory",
) -> None:
    """Milliseconds and MiB by length for each way, here and, where that is no GPU, in the newest stored run.

    full: the length at which a way reached the limit, by its name. slopes: under "time" and "memory", by the names of
    those ways whose slope is told. crossing: the length from which on attention does more operations than the projections.
    limit: in words, what is reached there.
    """
    record(
        "lengths",
        {"times": times, "memory": memory, "full": full, "slopes": slopes, "crossing": crossing, "limit": limit},
    )
    _curves(times, memory, full, slopes, crossing, limit)
    for run in _stored_with("lengths"):
        theirs = dict(run["lengths"])
        for what in ("times", "memory"):  # JSON's names are texts
            theirs[what] = {way: {int(t): value for t, value in curve.items()} for way, curve in theirs[what].items()}
        _curves(**theirs, run=_of(run))


def _curves(
    times: Mapping[str, Mapping[int, float]],
    memory: Mapping[str, Mapping[int, float]],
    full: Mapping[str, int],
    slopes: Mapping[str, Mapping[str, float]],
    crossing: int,
    limit: str,
    run: str = "",
) -> None:
    fig, axes = panels(2, width=9.2, height=4.0)
    said = []
    titles = ("Time: eager attention falls behind", "Memory: slope 2 eager, 1 fused")
    for ax, what, unit, curves, title in zip(
        axes, ("time", "memory"), ("milliseconds", "MiB"), (times, memory), titles, strict=True
    ):
        lengths = sorted({t for curve in curves.values() for t in curve} | set(full.values()))
        top = max(value for curve in curves.values() for value in curve.values())
        for way, curve in curves.items():
            t, values = np.array(list(curve)), np.maximum(list(curve.values()), 1e-3)
            slope = f": slope {slopes[what][way]:.1f}" if way in slopes[what] else ""
            ax.loglog(t, values, color=_LOOK[way], marker="o", markersize=4, label=f"{way}{slope}")
            said.append(f"{what} of {way}{slope}, {values[-1]:.3g} {unit} at {t[-1]} tokens")
        for way, t in full.items():
            ax.plot(t, 3 * top, marker="x", markersize=9, color=_LOOK[way], linestyle="")
        for t in set(full.values()):
            ax.annotate(limit, (t, 3 * top), (-6, 0), textcoords="offset points", ha="right", va="center", fontsize=8.5)
        _tick_lengths(ax, lengths[len(lengths) % 2 :: 2] if len(lengths) > 9 else lengths)
        ax.set(xlabel="tokens T", ylabel=unit, ylim=(None, 60 * top))
        ax.set_title(title)
    axes[0].axvline(
        crossing,
        ymax=0.58,
        color=COLOURS["green"],
        linestyle=":",
        linewidth=1.2,
        label=f"equal operations: T = {crossing}",
    )
    for ax in axes:
        ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    if run:
        fig.suptitle(run, fontsize=11)
    said += [f"{way} at {t} tokens: {limit}".replace("\n", " ") for way, t in full.items()]
    said.append(f"attention and projections do equally many operations at {crossing} tokens")
    show(
        fig,
        alt=f"Two log-log panels, {run or 'measured on ' + name()}, slopes between the last two points: "
        + "; ".join(said)
        + ".",
    )
