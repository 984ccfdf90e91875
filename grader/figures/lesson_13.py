"""Figures of lesson 13: what attention costs, and how one measures it. Each says on which device it was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from grader.figures import COLOURS, lesson_13_machine as here, panels, show

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Timer = Callable[..., float]
_EXPLICIT, _FUSED, _OTHER = COLOURS["vermillion"], COLOURS["blue"], COLOURS["grey"]


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """torch's operator, causal."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def machine() -> None:
    """Prints what this notebook found and what that changes."""
    kind = here.device().type
    print(f"device: {here.name()}; torch {torch.__version__}; {here.today()}")
    print({
        "cuda": "Times, memory, TF32, backends and compiled kernels are all measured here.",
        "mps": "Times are measured on Apple's GPU. TF32, CUDA's backends and compiled kernels: not available here.",
        "cpu": "Times and memory are measured on the processor. TF32, CUDA's backends, compiled kernels: not available here.",
    }[kind])  # fmt: skip


def numbers_in_memory(num_heads: int = 8, d_head: int = 64) -> None:
    """Bytes of q, k, v and output against those of the scores, computed."""
    lengths = 2 ** np.arange(7, 16)
    ends, scores = 16 * num_heads * lengths * d_head, 4 * num_heads * lengths**2
    fig, (ax,) = panels(1, width=6.0, height=3.3)
    ax.loglog(lengths, scores / 2**20, color=_EXPLICIT, marker="o", markersize=4, label="scores (T, T): slope 2")
    ax.loglog(lengths, ends / 2**20, color=_FUSED, marker="s", markersize=4, label="q, k, v and output: slope 1")
    ax.set(xlabel="tokens T", ylabel="MiB in float32")
    _tick_lengths(ax, lengths)
    ax.set_title(f"Only the scores grow with T² ({num_heads} heads of {d_head})")
    ax.legend(frameon=False)
    show(fig, alt=f"Memory against tokens, both axes logarithmic. At 8192 tokens the scores take {scores[6] / 2**20:.0f} MiB, "
                  f"the four other tensors together {ends[6] / 2**20:.0f} MiB.")  # fmt: skip


def _tick_lengths(ax: Any, lengths: Any) -> None:
    ax.set_xticks(list(lengths), [str(int(length)) for length in lengths])
    ax.minorticks_off()


def share_of_work(attention_flops: Callable[..., float], d_model: int = 512, num_heads: int = 8) -> None:
    """Operations of the projections and of causal attention, by length."""
    lengths = 2 ** np.arange(7, 15)
    attention = [attention_flops(1, num_heads, int(t), int(t), d_model // num_heads, causal=True) for t in lengths]
    projections = 8 * lengths * d_model**2
    fig, (ax,) = panels(1, width=6.0, height=3.3)
    ax.loglog(lengths, projections, color=_OTHER, linestyle="--", label="the four projections: slope 1")
    ax.loglog(lengths, attention, color=_FUSED, marker="o", markersize=4, label="causal attention: slope 2")
    ax.axvline(4 * d_model, color=COLOURS["green"], linestyle=":", label=f"T = 4 · d_model = {4 * d_model}")
    ax.set(xlabel="tokens T", ylabel="operations")
    _tick_lengths(ax, lengths)
    ax.set_title("From T = 4 · d_model on, attention is the larger part")
    ax.legend(frameon=False)
    show(fig, alt=f"Operations against tokens for d_model {d_model}: the projections lead until T = {4 * d_model}, attention after.")


@here.steady()
def single_readings() -> None:
    """Ten single readings of one product, and one reading that waits for the device beside one that does not."""
    kind = here.device().type
    n = 383 if kind == "cpu" else 4096
    a = torch.randn(n, n, device=here.device())
    readings = [here.reading_ms(lambda: a @ a) for _ in range(10)]
    asked, done = here.asked_and_done_ms(lambda: a @ a)
    fig, axes = panels(2, width=8.6, height=3.0)
    axes[0].bar(range(1, 11), readings, color=[_EXPLICIT] + [_FUSED] * 9)
    axes[0].set(xlabel="reading", ylabel="milliseconds", xticks=range(1, 11))
    axes[0].set_title(f"Ten readings of one {n} × {n} product")
    _bars(axes[1], ["does not wait", "waits"], [asked, done])
    axes[1].set_xscale("log")
    axes[1].set_xlim(asked / 3, done * 20)
    axes[1].set_title("The same product, waited for or not")
    device = f"{here.name()}, where a second thread stands in for a GPU in the right panel" if kind == "cpu" else here.name()
    show(fig, alt=f"On {device}. Ten readings, in ms: {', '.join(f'{r:.2f}' for r in readings)}. "
                  f"A reading without waiting {asked:.3g} ms, with waiting {done:.3g} ms.")  # fmt: skip
    print(f"{device}: without waiting {asked:.3g} ms, with waiting {done:.3g} ms")


def _bars(ax: Any, names: list[str], values: list[float]) -> None:
    """Horizontal bars in milliseconds with their values; the last is the right way."""
    ax.barh(names, values, color=[_EXPLICIT] * (len(names) - 1) + [_FUSED], height=0.55)
    for row, value in enumerate(values):
        ax.annotate(f"{value:.3g} ms", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_xlim(0, max(values) * 1.2)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set(xlabel="milliseconds")


@here.steady()
def right_and_wrong(time_ms: Timer) -> None:
    """The learner's stopwatch beside a single cold reading, on CUDA also beside one that does not wait."""
    q, k, v = here.heads(768 if here.device().type == "cpu" else 4096)

    def fn() -> torch.Tensor:
        return fused(q, k, v)

    names, values = ["first call"], [here.reading_ms(fn)]
    if here.device().type != "cpu":
        names, values = [*names, "no waiting"], [*values, here.reading_ms(fn, waiting=False)]
    names, values = [*names, "our time_ms"], [*values, float(time_ms(fn, here.device()))]
    fig, (ax,) = panels(1, width=5.6, height=2.4)
    _bars(ax, names, values)
    ax.set_title(f"The same attention, {len(names)} stopwatches")
    show(fig, alt=f"Bars, {here.name()}: " + "; ".join(f"{n} {v:.3g} ms" for n, v in zip(names, values, strict=True)) + ".")
    if here.device().type == "cpu":
        print("A stopwatch that does not wait for a GPU: not available here (the CPU is done when the call returns).")


def slope(lengths: Any, values: Any) -> float:
    """The exponent of T between the last three points."""
    return float(np.polyfit(np.log(lengths[-3:]), np.log(values[-3:]), 1)[0])


@here.steady()
def against_length(explicit: Attention, fast: type[nn.Module], time_ms: Timer) -> None:
    """Time and extra memory of explicit attention and of the learner's class, against T."""
    layer = fast(512, 8).to(here.device()).eval()

    def by_hand(x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, 8, 64).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=-1))
        return layer.proj(explicit(q, k, v).transpose(1, 2).reshape(b, t, d))

    times: dict[str, list[float]] = {"explicit": [], "our class": []}
    memory: dict[str, list[float]] = {"explicit": [], "our class": []}
    lengths = []
    with torch.no_grad():
        for t in here.lengths():
            x = torch.randn(1, t, 512).to(here.device())
            lengths.append(t)
            for name, module in (("explicit", by_hand), ("our class", layer)):
                fn = lambda module=module, x=x: module(x)
                memory[name].append(here.peak_bytes(fn) / 2**20)
                times[name].append(_measured(time_ms, fn))
    _draw_against_length(lengths, times, memory)


def _measured(time_ms: Timer, fn: Callable[[], object]) -> float:
    """Milliseconds by the learner's stopwatch; the longer a call takes, the fewer of them."""
    once = here.reading_ms(fn)
    return float(time_ms(fn, here.device(), 1 if once < 50 else 0, 9 if once < 50 else 3))


def _draw_against_length(lengths: list[int], times: dict[str, list[float]], memory: dict[str, list[float]]) -> None:
    fig, axes = panels(2, width=8.6, height=3.6)
    said = []
    for ax, what, unit, curves in zip(axes, ("Time", "Memory"), ("milliseconds", "MiB"), (times, memory), strict=True):
        for (name, values), colour, marker in zip(curves.items(), (_EXPLICIT, _FUSED), "os", strict=True):
            values = np.maximum(values, 1e-3)
            label = f"{name}: slope {slope(lengths, values):.1f}"
            ax.loglog(lengths, values, color=colour, marker=marker, markersize=4, label=label)
            said.append(f"{what.lower()} of {label}, {values[-1]:.0f} {unit} at {lengths[-1]} tokens")
        _tick_lengths(ax, lengths)
        ax.set(xlabel="tokens T", ylabel=unit)
        ax.set_title(f"{what}, with the slope of the last three points")
        ax.legend(frameon=False)
    show(fig, alt=f"Two log-log panels measured on {here.name()}: " + "; ".join(said) + ".")


@here.steady()
def overhead(fast: type[nn.Module], time_ms: Timer, d_model: int = 512, num_heads: int = 8) -> None:
    """The learner's class beside the bare operator plus its two projections, and nn.MultiheadAttention."""
    t = 512 if here.device().type == "cpu" else 4096
    dtype = torch.bfloat16 if here.device().type == "cuda" else torch.float32
    x = torch.randn(1, t, d_model).to(here.device(), dtype)
    q, k, v = here.heads(t, dtype, num_heads, d_model // num_heads)
    layer = fast(d_model, num_heads).to(here.device(), dtype).eval()
    torchs = nn.MultiheadAttention(d_model, num_heads, bias=False, batch_first=True).to(here.device(), dtype).eval()
    hidden = torch.ones(t, t, dtype=torch.bool, device=here.device()).triu(1)
    with torch.no_grad():
        rows = {
            "operator + 2 projections": _alternating(time_ms, lambda: (layer.qkv(x), fused(q, k, v), layer.proj(x))),
            "our class": _alternating(time_ms, lambda: layer(x)),
            "nn.MultiheadAttention": _alternating(
                time_ms, lambda: torchs(x, x, x, attn_mask=hidden, is_causal=True, need_weights=False)),
        }  # fmt: skip
    for name, ms in rows.items():
        print(f"{name:25} {ms:8.2f} ms   {ms / rows['operator + 2 projections']:5.2f} ×")
    print(f"(T = {t}, d_model = {d_model}, {str(dtype).removeprefix('torch.')}, {here.name()})")


def _alternating(time_ms: Timer, fn: Callable[[], object]) -> float:
    """The smaller of two medians: other programs only ever add."""
    return min(float(time_ms(fn, here.device(), 2, 7)) for _ in range(2))


@here.steady()
def roofline(explicit: Attention, attention_flops: Callable[..., float], time_ms: Timer) -> None:
    """Both ways of attention under the ceilings of the device's own product and copy."""
    rate, bytes_s = here.product_rate(time_ms), here.bandwidth(time_ms)
    fig, (ax,) = panels(1, width=6.6, height=3.9)
    intensity = np.logspace(-0.5, 4, 200)
    ax.loglog(intensity, np.minimum(rate, bytes_s * intensity) / 1e9, color=_OTHER, label="the roof, measured")
    said = []
    for name, fn, colour, marker in (("explicit", explicit, _EXPLICIT, "o"), ("fused operator", fused, _FUSED, "s")):
        points = []
        for t in here.lengths()[1:]:
            q, k, v = here.heads(t)
            with torch.no_grad():
                ms = _measured(time_ms, lambda fn=fn, q=q, k=k, v=v: fn(q, k, v))
            flops = attention_flops(1, 8, t, t, 64, causal=True)
            moved = here.least_bytes(t) + (here.scores_bytes(t) if fn is explicit else 0)
            points.append((flops / moved, flops / ms / 1e6))
        ax.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, linewidth=1, label=name)
        share = points[-1][1] * 1e9 / rate
        ax.annotate(f"T = {t}", points[-1], (6, -12), textcoords="offset points", fontsize=8.5, color=colour)
        said.append(f"{name} reaches {points[-1][1]:.0f} GFLOP/s at {t} tokens, {share:.0%} of the product's rate")
    ax.set(xlabel="operations for each byte moved", ylabel="GFLOP/s")
    ax.set_title(f"Product {rate / 1e9:.0f} GFLOP/s, copy {bytes_s / 1e9:.0f} GB/s on this {here.device().type}")
    ax.legend(frameon=False, loc="lower right")
    show(fig, alt=f"Roofline on {here.name()}: " + "; ".join(said) + ".")
    print("; ".join(said) + ".")


def precision(explicit: Attention, t: int = 512) -> None:
    """The largest error of each type against float64, measured; TF32 only where there is CUDA."""
    q, k, v = (part.cpu().double() for part in here.heads(t))
    exact = explicit(q, k, v)
    cuda = here.device().type == "cuda"
    print(f"largest error of causal attention over {t} tokens, values near 1, on {here.name()}")
    for name, dtype, allow in (("float32", torch.float32, False), ("TF32", torch.float32, True),
                               ("bfloat16", torch.bfloat16, False)):  # fmt: skip
        if name == "TF32" and not cuda:
            print(f"  {name:9} not available here")
            continue
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = allow
        try:
            got = explicit(*(part.to(here.device(), dtype) for part in (q, k, v))).cpu().double()
        except (RuntimeError, TypeError):  # a device may lack a type
            print(f"  {name:9} not available here")
            continue
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        print(f"  {name:9} {(got - exact).abs().max().item():.0e}")


@here.steady()
def backends(explicit: Attention) -> None:
    """Times of SDPA's backends, torch.compile and FlexAttention where the machine has them."""
    for name, fn in _ways(explicit):
        if isinstance(fn, str):
            print(f"{name:28} {fn}")
            continue
        try:
            with torch.no_grad():
                for _ in range(3):
                    fn()
                ms = sorted(here.reading_ms(fn) for _ in range(9))[4]
        except (RuntimeError, NotImplementedError, ImportError) as error:
            print(f"{name:28} not available here: {str(error).splitlines()[0][:70]}")
        else:
            print(f"{name:28} {ms:8.3f} ms")


def _ways(explicit: Attention) -> list[tuple[str, Callable[[], object] | str]]:
    """(name, what to run, or why it is not run)."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kind = here.device().type
    cuda = kind == "cuda"
    t, dtype = (4096, torch.bfloat16) if cuda else (512, torch.float32)
    q, k, v = here.heads(t, dtype)

    def chosen(backend: Any) -> Callable[[], object]:
        def fn() -> object:
            with sdpa_kernel(backend):
                return fused(q, k, v)

        return fn

    ways: list[tuple[str, Callable[[], object] | str]] = [("SDPA, torch's choice", lambda: fused(q, k, v))]
    for name in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        backend = getattr(SDPBackend, name, None)
        only_cuda = name in ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION") and not cuda
        ways.append((f"SDPA, {name}", "not available here: CUDA only" if only_cuda or backend is None else chosen(backend)))
    if not cuda:
        why = "skipped: tried on CUDA only" + (", compiling for a CPU takes tens of seconds" if kind == "cpu" else "")
        return [*ways, ("torch.compile, explicit", why), ("FlexAttention, causal", why)]
    return [*ways, ("torch.compile, explicit", _compiled(explicit, q, k, v)), ("FlexAttention, causal", _flex(q, k, v))]


def _compiled(explicit: Attention, q: Any, k: Any, v: Any) -> Callable[[], object]:
    compiled = torch.compile(explicit)
    return lambda: compiled(q, k, v)


def _flex(q: Any, k: Any, v: Any) -> Callable[[], object] | str:
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError:
        return "not available here: this torch is older than FlexAttention"
    t = q.shape[-2]
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, t, t, device=q.device)
    compiled = torch.compile(flex_attention)
    return lambda: compiled(q, k, v, block_mask=mask)
