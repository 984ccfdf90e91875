# %% [markdown]
# # 11 · Multi-head causal attention on the GPU
#
# **Where does the time go?**
#
# **Before this lesson:** lesson 09 (causal multi-head attention as one module), lesson 10 (the model that writes), and what a logarithmic
# axis is. A GPU is not needed.
#
# Two programs compute one layer of GPT-2 medium's attention, forward and backward, on the same GPU, an A100. One takes 41.7
# milliseconds. The other does 13 % *more* operations, and takes 7.3 (Dao et al. 2022, figure 2). What did the first one do all that time?
#
# In this lesson you count the work, predict, and measure lesson 09's attention in four ways, on whatever device you have.

# %% role="given"
import itertools
import math
import statistics
import time
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo" tags=["hide-input"]
torch.set_num_threads(1)  # quieter: several wait for one another
bench = figures.gpu  # what this lesson measures with, beside the stopwatch that you write
here, precision = bench.device(), bench.precision()
bits = bench.dtype_name(precision)
print(f"measured on {bench.name()} in {bits}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")

# %% [markdown]
# Numbers in the text were measured on {{ bench.name(); it }}; yours differ. {{ bench.about_gpus(); it }}
#
# ## Which machine is this?
#
# torch runs the same code on several devices: `cuda` (NVIDIA's GPUs), `mps` (Apple's) and `cpu`. A torch built for CUDA may run on a
# machine without a GPU, so ask whether one is *available*.

# %% [markdown]
# @exercise pick_device
#
# `pick_device()` → a `torch.device`
#
# Its type is `cuda` where torch says that CUDA is available, otherwise `mps` where that is available, otherwise `cpu`.

# %% role="exercise" exercise="pick_device"
def pick_device() -> torch.device:
    """The device to work on: CUDA, else Apple's GPU, else the CPU."""
    # region solution
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
    # endregion

# %% role="check" exercise="pick_device"
check(pick_device)

# %% [markdown]
# ## A clock that does not wait
#
# A program that runs on the device is called a **kernel**. On a GPU `a @ b` only puts one into the device's queue, the *stream*, and
# Python goes on. This is a **kernel launch**.

# %% role="demo" tags=["hide-input"]
figures.gpu.queue()

# %% [markdown]
# In the upper picture the kernels are long. A clock that is read as soon as the last call returns shows the launches alone.
# `torch.cuda.synchronize()` and `torch.mps.synchronize()` wait until the queue is empty; the CPU needs no waiting.
#
# In the lower picture the kernels are short. The device is idle between them, and a faster GPU would change nothing.
#
# First calls are slower: libraries are loaded, kernels chosen. So a stopwatch warms up. It takes the median, which one
# disturbed reading hardly changes.

# %% [markdown]
# @exercise time_ms
#
# `fn` a function without arguments, `device` a string or a `torch.device`, `warmup` and `repeats` integers → milliseconds
#
# The median time of one call of `fn`, once it is warm. `fn` is called exactly `warmup + repeats` times. For an even number of
# readings either middle one or their mean is fine.

# %% role="exercise" exercise="time_ms"
def time_ms(fn, device, warmup: int = 3, repeats: int = 10) -> float:
    """Median time of fn() in milliseconds, once it is warm and the device has finished.

    device: where fn works, as a string or a torch.device; fn is called warmup + repeats times.
    """
    # region solution
    kind = torch.device(device).type
    waits = {"cuda": lambda: torch.cuda.synchronize(device), "mps": torch.mps.synchronize}
    wait = waits.get(kind, lambda: None)
    for _ in range(warmup):
        fn()
    seconds = []
    for _ in range(repeats):
        wait()  # nothing of the call before may be left
        start = time.perf_counter()
        fn()
        wait()  # fn() has only asked for the work
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)
    # endregion

# %% role="check" exercise="time_ms"
check(time_ms)

# %% [markdown]
# On CUDA we measure as authors of kernels do (`triton.testing.do_bench`): the GPU's cache is overwritten before each reading, and the
# device notes the time itself, by *events* in its queue. Elsewhere your stopwatch measures.

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    def measure(fn, budget_ms=200):
        """Median milliseconds of fn(), at most some twenty readings and about budget_ms."""
        once = time_ms(fn, here, 2, 1)
        repeats = max(3, min(20, int(budget_ms / once)))
        if here.type != "cuda":
            return time_ms(fn, here, 0, repeats)
        cache_filler, pairs = torch.empty(2**28, dtype=torch.int8, device=here), []  # 256 MiB: more than any L2
        for _ in range(repeats):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            cache_filler.zero_()
            start.record()
            fn()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in pairs)

# %% [markdown]
# ## Three things to wait for
#
# Time goes into the launch, into moving numbers to and from memory, or into arithmetic. x + x does one operation for each
# number that it reads and writes. A product of two n × n matrices does 2n³ operations on 3n² numbers.

# %% [markdown]
# @predict
#
# x + x, written into an existing tensor, for 256 numbers, for 4,096 and for 16 million: how do the three times compare?
#
# @answer
#
# 256 and 4,096 numbers take nearly the same time: both wait for the *call*. With 16 million numbers memory is the limit.
#
# @wrong
#
# 1 : 16 : 65,536 is the ratio of the operations. Time follows it only where operations or bytes are the limit.

# %% role="payoff" exercise="time_ms" tags=["hide-input"]
if passed(time_ms):
    sizes, widths, roofs = [2**i for i in range(8, 25, 2)], [2**i for i in range(6, 11 if here.type == "cpu" else 14)], {}
    vectors = [torch.ones(n, device=here) for n in sizes]
    adding = [min(time_ms(partial(torch.add, x, x, out=torch.empty_like(x)), here, 3, 9) for _ in range(3)) for x in vectors]
    call_us, bandwidth = 1000 * adding[0], 8 * sizes[-1] / adding[-1] / 1e6  # GB/s: each number is read once and written once

    def product_rates(dtype):
        squares = [torch.randn(n, n, device=here, dtype=dtype) for n in widths]
        products = [min(measure(partial(torch.mm, a, a), 60) for _ in range(3)) for a in squares]  # other programs only ever add
        return products, max(2 * n**3 / ms / 1e6 for n, ms in zip(widths, products))  # GFLOP/s

    products, rate = product_rates(torch.float32)
    roofs["float32"] = rate, bandwidth
    figures.gpu.regimes(sizes, adding, widths, products)
    print(f"a call costs {call_us:.1f} µs; memory moves {bandwidth:.1f} GB/s; products in float32 reach {rate:.0f} GFLOP/s")
    if here.type != "cpu":
        roofs["16 bits"] = product_rates(precision)[1], bandwidth
        print(f"products in {bits} reach {roofs['16 bits'][0]:.0f} GFLOP/s")
    if here.type == "cuda":
        torch.set_float32_matmul_precision("high")  # lets tensor cores round float32 to TF32
        print(f"products in TF32 reach {product_rates(torch.float32)[1]:.0f} GFLOP/s, where the card has it")
        torch.set_float32_matmul_precision("highest")
    bench.record("roofs", roofs)

# %% [markdown]
# Here a call costs {{ call_us:.1f; it < 100 }} µs. Memory moves {{ bandwidth:.0f; it > 1 }} GB/s: this is its **bandwidth**. Products reach
# {{ rate:.0f; it > bandwidth }} GFLOP/s (billions of operations per second), so {{ rate / bandwidth:.0f }} operations take as long as
# moving one byte. Work with fewer per byte is **memory bound**, work with more **compute bound**, and work so small that launching it
# takes longest **overhead bound** (Williams et al. 2009; He 2022). (In between, x + x is faster than memory: its numbers fit into a
# *cache* on the chip.)
#
# ## Count before you measure
#
# Which of the three is attention?

# %% [markdown]
# @exercise attention_flops
#
# `batch`, `num_heads`, `t_q`, `t_k`, `d_head` integers, `causal` a bool → int or float
#
# The floating-point operations of attention's two matrix products; a multiply-add counts 2. All else is left out, and `causal` counts
# exactly half, by the papers' convention (Dao 2023, section 4.1).

# %% role="exercise" exercise="attention_flops"
def attention_flops(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, causal: bool = False) -> int:
    """Floating-point operations of attention's two matrix products; a multiply-add counts 2.

    Returns: the count, exactly half of it when causal.
    Source:  Dao 2023, "FlashAttention-2", section 4.1.
    """
    # region solution
    products = 2  # q kᵀ, and weights times v
    total = products * 2 * batch * num_heads * t_q * t_k * d_head
    return total // 2 if causal else total
    # endregion

# %% role="check" exercise="attention_flops"
check(attention_flops)

# %% [markdown]
# Now the bytes. Three kernels could do the work: one for the scores, scaled and masked on the way; one for softmax; one
# for the weighted sum. Each reads its inputs from memory and writes its result there, the T × T scores and weights, too.
# The mask is computed from the positions, not read.
#
# **Kernel fusion** joins kernels, so that what is between them never goes to memory. FlashAttention (Dao et al. 2022)
# fuses all of attention into one, on tiles so small that their scores stay on the chip (lesson 14).

# %% [markdown]
# @exercise attention_bytes
#
# `batch`, `num_heads`, `t_q`, `t_k`, `d_head`, `bytes_per_number` integers, `fused` a bool → int: the bytes that are read and
# written. Not fused, the three kernels above; fused, one kernel that reads q, k and v once and writes the output once.
#
# Values are d_head wide, too. Every number counts as often as it is read or written.

# %% role="exercise" exercise="attention_bytes"
def attention_bytes(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, bytes_per_number: int = 2, fused: bool = False) -> int:
    """Bytes that attention moves between the large memory and the chip.

    fused: in one kernel, in place of three (scores, softmax, sum).
    Returns: a whole number.
    """
    # region solution
    vectors = 2 * t_q + 2 * t_k  # q and the output, k and v
    table = 0 if fused else 4 * t_q * t_k  # scores and weights, each written once and read once
    return batch * num_heads * (vectors * d_head + table) * bytes_per_number
    # endregion

# %% role="check" exercise="attention_bytes"
check(attention_bytes)

# %% [markdown]
# Operations divided by bytes are the **arithmetic intensity**: how much is computed with each byte that is moved.

# %% [markdown]
# @predict
#
# T grows from 512 to 8,192, with heads of 64 numbers in 16 bits. What does the arithmetic intensity of attention do, in three
# kernels and fused?
#
# - **A** It grows with T in both.
# - **B** In three kernels it stays near 32, fused it grows with T.
# - **C** It stays the same in both.
#
# @answer
#
# **B.** In three kernels scores and weights make most of the bytes: 4 · T² · d_head operations on about 4 · T² · 2 bytes are
# d_head / 2, whatever T is. Fused, only the operations grow with T², and the intensity is T / 2.
#
# @wrong
#
# A forgets that the score matrix grows as fast as the operations. C forgets that the fused kernel never writes it.

# %% role="payoff" exercise="attention_bytes" tags=["nbval-check-output"]
if passed(attention_bytes) and passed(attention_flops):
    for t in (512, 2048, 8192):
        flops = attention_flops(1, 1, t, t, 64)
        three, one = (flops / attention_bytes(1, 1, t, t, 64, fused=fused) for fused in (False, True))
        print(f"T = {t:4}: {three:5.1f} operations per byte in three kernels, {one:6.1f} fused")

# %% [markdown]
# By its data sheet an A100 can do 153 operations in 16 bits in the time of one byte (312 TFLOP/s and 2,039 GB/s). So three kernels
# are memory bound at every T, and the fused one, without a mask, only below some 300 tokens.
#
# ## Four ways to one result
#
# - **Eager attention** is lesson 09's: scaling and masking go over the score matrix again.
# - **Compiled**: `torch.compile` fuses what stands between the two products. That is about the three kernels that you counted.
# - **Fused**: `F.scaled_dot_product_attention` is one kernel where a fused backend fits.
# - **FlexAttention** is one kernel, too, compiled for a mask that you write as a function of two positions.

# %% role="given"
def eager_attention(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """Attention of lesson 09. q, k, v: (B, num_heads, T, d_head); hidden: (T, T), True where a key may not be seen."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v

@cache
def future(t):
    """The mask, made once for each length: no way is charged for making it."""
    return torch.ones(t, t, dtype=torch.bool, device=here).triu(1)

# %% role="demo"
def flex(q, k, v):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # torch has it from 2.5 on
    t = q.shape[-2]
    causal = create_block_mask(lambda b, h, i, j: j <= i, None, None, t, t, device=str(here))
    return partial(torch.compile(flex_attention), q, k, v, block_mask=causal)

ways = {
    "eager": lambda q, k, v: partial(eager_attention, q, k, v, future(q.shape[-2])),
    "compiled": lambda q, k, v: partial(torch.compile(eager_attention), q, k, v, future(q.shape[-2])),
    "fused": lambda q, k, v: partial(F.scaled_dot_product_attention, q, k, v, is_causal=True),
    "FlexAttention": flex,
}

# %% [markdown]
# The folded cell compares each way's result with the eager one, and measures it (without compiling). Where one cannot run, the
# reason is shown.

# %% role="payoff" exercise="time_ms" tags=["hide-input"]
if passed(time_ms):
    torch.manual_seed(0)
    batch, heads, t_ways = (4 if here.type == "cuda" else 1), 12, (1024 if here.type == "cpu" else 2048)
    q, k, v = torch.randn(3, batch, heads, t_ways, 64, device=here, dtype=precision)  # three tensors
    right = ways["eager"](q, k, v)().float()

    def tried(make):
        call = make(q, k, v)
        error = (call().float() - right).abs().max().item()
        assert error < (1e-4 if precision == torch.float32 else 0.1), f"differs from eager attention by {error:.1e}"
        return measure(call, 400)

    with torch.no_grad():
        took = {way: bench.attempt(partial(tried, make)) for way, make in ways.items()}
    shape = f"batch {batch}, {heads} heads of 64, {t_ways:,} tokens, {bits}"
    figures.gpu.ways(took, shape)
    bench.record("ways", took)
    bench.record("shape", shape)

# %% [markdown]
# Fused is {{ took["eager"] / took["fused"]:.1f; it > 1.5 }} times as fast as eager here. Fusion saves bytes; skipping what the mask
# hides saves operations, here half. And on a GPU?

# %% role="demo" tags=["hide-input"]
figures.gpu.gpu_times()

# %% [markdown]
# What did the first program do all that time? Mostly it waited for memory: at an A100's 1.5 to 2.0 TB/s its 40.3 gigabytes take 20
# to 27 of the 41.7 milliseconds. The fused one computes the scores anew in its backward pass, and moves a ninth of the bytes.

# %% [markdown]
# ## The roofline
#
# A **roofline** shows how fast a machine can be at each arithmetic intensity: under the slope memory is the limit, under the flat
# part arithmetic. Each precision has its own roof. **Tensor cores** are units of a GPU that only multiply small matrices. In the V100,
# A100 and H100 they do so in 16 bits 8 to 16 times as fast as ordinary units in float32. They take float32 rounded to
# **TF32** (10 bits after the leading one, not 23), and torch rounds only if asked.
#
# Eager attention's five steps appear twice: writing into *new* memory, as eager attention does, and into existing memory.
# (The mask is `torch.where`, one kernel; `masked_fill` takes two.)

# %% role="payoff" exercise="attention_bytes"
if passed(time_ms) and passed(attention_bytes) and passed(attention_flops):
    sizes_here, n = (batch, heads, t_ways, t_ways, 64), batch * heads * t_ways**2  # n scores
    product, matrix, vector = attention_flops(*sizes_here) // 2, n * precision.itemsize, n * 64 // t_ways * precision.itemsize
    hidden, low, scores = future(t_ways), torch.tensor(-math.inf, device=here, dtype=precision), q @ k.mT
    weights = torch.softmax(scores, dim=-1)
    kernels = {  # operations, bytes, the call. out: where the result goes; None: into new memory
        "q kᵀ": (product, matrix + 2 * vector, lambda out: torch.matmul(q, k.mT, out=out)),
        "scale": (n, 2 * matrix, lambda out: torch.div(scores, 8, out=out)),
        "mask": (n, 2 * matrix, lambda out: torch.where(hidden, low, scores, out=out)),
        "softmax": (5 * n, 2 * matrix, lambda out: torch.softmax(scores, -1, out=out)),  # max, minus, exp, sum, division
        "weights · v": (product, matrix + 2 * vector, lambda out: torch.matmul(weights, v, out=out)),
        "exp": (n, 2 * matrix, lambda out: torch.exp(scores, out=out)),  # this one and the next for comparison
        "copy": (0, 2 * matrix, lambda out: scores.clone() if out is None else out.copy_(scores)),
    }
    with torch.no_grad():
        new, there = {}, {}
        for kernel, (_, _, call) in kernels.items():
            new[kernel], there[kernel] = (min(measure(partial(call, out), 60) for _ in range(3)) for out in (None, call(None)))

# %% role="payoff" exercise="attention_bytes" tags=["hide-input"]
# Prints both times of each kernel, and draws them under the roof
if passed(time_ms) and passed(attention_bytes) and passed(attention_flops):
    for kernel in kernels:
        print(f"{kernel:12} {new[kernel]:8.3g} ms into new memory, {there[kernel]:8.3g} ms into existing memory")
    points = {
        kernel: (flops / moved, flops / new[kernel] / 1e6, flops / there[kernel] / 1e6)
        for kernel, (flops, moved, _) in list(kernels.items())[:5]
    }
    flops = attention_flops(*sizes_here, causal=True)
    points["fused"] = (flops / attention_bytes(*sizes_here, precision.itemsize, True), flops / took["fused"] / 1e6, None)
    roof = roofs["float32" if here.type == "cpu" else "16 bits"]
    reached = [(flops / ms / 1e6, moved / ms / 1e6) for ms, (flops, moved, _) in zip(there.values(), kernels.values())]
    roof = tuple(max(top, *rates) for top, rates in zip(roof, zip(*reached)))  # a roof is the most that was reached here
    corner = roof[0] / roof[1]
    figures.gpu.roofline(roof, points, bits)
    bench.record("roofline", {"precision": bits, "roof": roof, "points": points})
    del scores, weights  # a GPU's memory is needed below

# %% [markdown]
# Here both products lie {{ "right" if points["weights · v"][0] > corner else "left"; it }} of the corner, at
# {{ points["weights · v"][0]:.0f; it > 20 }} operations per byte. Scaling, masking and softmax have less than two and are memory bound.
# Fused attention has {{ points["fused"][0]:.0f; it > 100 }}. On an A100 the corner lies
# farther right: there all five are memory bound. (A roof is the highest rate that a kernel reached.)
#
# On a CPU bytes alone do not explain the times: scaling takes {{ new["scale"]:.1f; here.type != "cpu" or it > 1.3 * there["scale"] }} ms
# into new memory, and {{ there["scale"]:.1f; it > 0 }} into existing memory. There a fourth wait comes in: the
# operating system hands out new memory page by page, and Linux does so again for each tensor from 32 MiB on. On a GPU torch keeps the
# memory that it once had.
#
# ## A trace
#
# Does eager attention really spend its time on the score matrix? A **profiler** such as `torch.profiler` notes when each operation begins
# and ends. These notes are a **trace**:

# %% role="demo"
q, k, v = torch.randn(3, 1, 12, 1024, 64, device=here, dtype=precision)
with torch.no_grad():
    seen = {way: bench.trace(ways[way](q, k, v)) for way in ("eager", "fused")}  # torch.profiler.profile around one warm call
figures.gpu.traces(seen)

# %% [markdown]
# {{ bench.over_the_matrix(seen["eager"]):.0%; it > 0.3 }} of eager attention's working time goes into scaling, masking and softmax.
# (On the GPU the gray piece before the mask is the copy of the scores that `masked_fill` makes.)
# The profiler takes time, too: read shares here, and times from the stopwatch. Where there is a gap
# between a GPU's kernels, it waits for Python.
#
# ## Your attention on the fused operator

# %% [markdown]
# @exercise FastCausalMultiHeadAttention
#
# `FastCausalMultiHeadAttention(d_model, num_heads)`; `forward(x)`: `x` (B, T, d_model) → (B, T, d_model)
#
# Lesson 09's class without `max_len` and dropout: `qkv` (d_model → 3 · d_model, in the order q, k, v, heads as contiguous slices)
# and `proj`, both without bias, and nothing else in the `state_dict`. `forward` calls
# `F.scaled_dot_product_attention(..., is_causal=True)` once, on tensors (B, num_heads, T, d_head), and makes no (T, T) tensor of its
# own. Any T. A `d_model` that `num_heads` does not divide raises `ValueError`.

# %% role="exercise" exercise="FastCausalMultiHeadAttention"
class FastCausalMultiHeadAttention(nn.Module):
    """Multi-head causal self-attention on the fused operator; no (T, T) tensor is made."""

    def __init__(self, d_model: int, num_heads: int):
        """d_model: width of x, divisible by num_heads."""
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads do not divide d_model = {d_model}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        # endregion

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model)."""
        # region solution
        b, t, d_model = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.num_heads, d_model // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # views: the operator reads strided memory itself
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        merged = attended.transpose(1, 2).reshape(b, t, d_model)
        return self.proj(merged)
        # endregion

# %% role="check" exercise="FastCausalMultiHeadAttention"
check(FastCausalMultiHeadAttention)

# %% [markdown]
# ## A block of real size
#
# Attention is not alone in a model. So take lesson 09's block at the width of GPT-2: d_model 768, 12 heads, on 2,048 tokens (fewer
# on a slow machine), forward and backward, as in training.

# %% role="payoff" exercise="FastCausalMultiHeadAttention" tags=["hide-input"]
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    class EagerAttention(FastCausalMultiHeadAttention):
        def __init__(self, d_model, num_heads):
            super().__init__(d_model, num_heads)
            self.heads = num_heads

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            return self.proj(eager_attention(q, k, v, future(x.shape[1])).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        """Lesson 09's block around any attention(d_model, num_heads); names as there."""

        def __init__(self, attention, d, heads):
            super().__init__()
            self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), attention(d, heads), nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    blocks = {"eager": Block(EagerAttention, 768, 12), "fused": Block(FastCausalMultiHeadAttention, 768, 12)}
    blocks = {way: block.to(here, precision) for way, block in blocks.items()}

    def step(block, x):
        block(x).sum().backward()

    def counted(t):
        """How many times the operations of the fused block the eager one does, forward and backward (twice as much)."""
        return (72 * 768 + 12 * t) / (72 * 768 + 7 * t)  # 7 = 3 · 2, and the scores once more in the backward pass

    def race(calls, rounds):
        """The quickest time of each call in ms; they take turns, and other programs only ever add."""
        once, spent = measure if here.type == "cuda" else partial(time_ms, device=here, warmup=0, repeats=1), dict.fromkeys(calls, math.inf)
        for way, call in [*calls.items()] * (3 if here.type == "cuda" else rounds):
            spent[way] = min(spent[way], once(call))
        return spent

    if here.type == "cuda" and not isinstance(took["compiled"], str):
        blocks["compiled"] = torch.compile(blocks["fused"])  # the whole block, where compiling works
    texts = 8 if here.type == "cuda" else 1  # one text alone would leave a large GPU waiting for Python
    x = torch.randn(texts, 256, 768, device=here, dtype=precision)
    t_block = bench.tokens_for(time_ms(partial(step, blocks["eager"], x), here, 1, 3), 3000)
    print(f"{t_block:,} tokens")

# %% [markdown]
# @predict
#
# For each token a block does 24 · d_model² operations in projections and feed-forward network. Attention adds
# 4 · T · d_model when eager, half of that fused. The backward pass does twice as much, and fused attention there computes its
# scores anew. So at 2,048 tokens the eager block does {{ counted(2048):.2f; round(it, 2) == 1.15 }} times as many operations as
# the fused one, and at 512 {{ counted(512):.2f; round(it, 2) == 1.04 }} times. Does it also take about that many times as long?
#
# @answer
#
# Longer: {{ block_ms["eager"] / block_ms["fused"]:.2f; it > counted(t_block) + 0.05 }} times at
# {{ t_block:,d; it in (512, 1024, 2048) }} tokens here; the count says {{ counted(t_block):.2f; 1 < it < 1.2 }}. The passes over the
# score matrix are few operations, but each reads and writes all of it.
#
# @wrong
#
# If you said yes, you counted operations alone.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    x = torch.randn(texts, t_block, 768, device=here, dtype=precision)
    training = {way: partial(step, block, x) for way, block in blocks.items()}  # forward and backward
    block_ms = race(training, 3)
    block_mib = {way: bench.peak_mib(partial(block, x), training[way]) for way, block in blocks.items()}
    for way in blocks:
        print(f"{way:9}{block_ms[way]:8.1f} ms {block_mib[way]:8.0f} MiB")
    bench.record("block", {"tokens": t_block, "ms": block_ms, "MiB": block_mib})

# %% [markdown]
# On CUDA the memory is the peak (`torch.cuda.max_memory_allocated`); elsewhere it is what the forward pass keeps for the backward
# pass. With its score matrices the eager block needs {{ block_mib["eager"] / block_mib["fused"]:.1f; it > 1.05 }} times as much.
# {{ bench.stored_block() }}
#
# ## Your model on it
#
# Lesson 10's model writes, if its checkpoint is there. Then models of its shape read a short and a long text.

# %% role="payoff" exercise="FastCausalMultiHeadAttention" tags=["hide-input"]
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    class Writer(nn.Module):
        """Lesson 10's model around any attention; names as in its checkpoint."""

        def __init__(self, attention, vocabulary, max_len, d=128, heads=4, layers=2):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(max_len, d)
            self.blocks = nn.ModuleList(Block(attention, d, heads) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

        def forward(self, ids):
            x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def write(writer, beginning="If the object is ", length=80):
        draws = torch.Generator().manual_seed(1)
        ids = torch.tensor([[characters.index(c) for c in beginning]], device=here)
        for _ in range(length):
            weights = torch.softmax(writer(ids[:, -64:])[:, -1] / 0.7, dim=-1)
            ids = torch.cat([ids, torch.multinomial(weights.cpu(), 1, generator=draws).to(here)], dim=1)
        return "".join(characters[i] for i in ids[0].tolist())

    torch.manual_seed(13)
    kept, characters = figures.language_model.checkpoint(), sorted(set(figures.language_model.reference_text()))
    kinds, gains = {"eager": EagerAttention, "fused": FastCausalMultiHeadAttention}, {}
    with torch.no_grad():
        if kept.is_file():
            writer = Writer(FastCausalMultiHeadAttention, len(characters), 64)
            writer.load_state_dict(torch.load(kept, map_location="cpu", weights_only=True)["model"])
            print(write(writer.to(here).eval()), "\n")
        for t, rounds in ((64, 200), (2048, 4)):
            ids = torch.randint(len(characters), (1, t), device=here)
            spent = race({way: partial(Writer(kind, len(characters), t).to(here).eval(), ids) for way, kind in kinds.items()}, rounds)
            gains[t] = spent["eager"] / spent["fused"]
            print(f"{t:4} tokens: eager {spent['eager']:.2f} ms, fused {spent['fused']:.2f} ms: {gains[t]:.2f} times as fast")
    bench.record("model", gains)

# %% [markdown]
# With the fused operator the model reads 64 tokens {{ gains[64]:.2f; it < 1.6 }} times as fast, and 2,048 tokens
# {{ gains[2048]:.1f; it > 1.5 }} times. In a short text most of the time goes into projections, feed-forward network and
# calls; on a fast GPU that holds for longer texts, too. A faster attention makes a faster model only as far as the model waits for
# attention.

# %% [markdown]
# ## Further: Which machine runs what
#
# A table of what each kind of machine can run, and the fused operator's kernels, each timed here. For those whose notebook says "not
# here".

# %% [markdown]
# **Compute capability** is NVIDIA's number for a generation of its GPUs: 7.5 for a T4, 8.0 for an A100, 9.0 for an H100. **Triton** is the
# language in which `torch.compile` writes kernels for GPUs; lesson 15 writes one in it.
#
# | | A100, H100, RTX 30 and newer | T4, RTX 20 | Apple GPU | CPU |
# |---|---|---|---|---|
# | precision | bfloat16 | float16: its tensor cores lack bfloat16 | float16 | float32 |
# | fused kernel | flash, memory-efficient, cuDNN | memory-efficient: flash needs compute capability 8.0 | Metal | flash for CPUs |
# | compiled, FlexAttention | by Triton | by Triton | tried | by a C++ compiler; Flex forward only |
# | memory | peak | peak | kept for backward | kept for backward |
# | trace | calls, kernels | calls, kernels | calls | operations |
#
# Behind the fused operator stand several kernels, its **backends**. torch chooses one by device, precision and shape.

# %% role="payoff" exercise="time_ms" tags=["hide-input"]
if passed(time_ms):
    q, k, v = torch.randn(3, batch, heads, t_ways, 64, device=here, dtype=precision)
    with torch.no_grad():
        by_backend = bench.backends(ways["fused"](q, k, v), measure)
    for backend, ms in by_backend.items():
        print(f"{backend:20} {bench.with_unit(ms, 'ms')}")
    bench.record("backends", by_backend)

# %% [markdown]
# {{ bench.stored_backends() }}

# %% [markdown]
# ## Further: What T² looks like
#
# Time and memory of a narrow attention layer for growing T, on two logarithmic axes, where a power of T is a line. For those who want to
# see the exponents with their own eyes.

# %% [markdown]
# @predict
#
# On logarithmic axes T² has slope 2. Which slopes do you expect at the long end: time and memory of the eager way, time and memory of
# the fused one?
#
# @answer
#
# Memory: 2 for eager, whose score matrix is T × T, and 1 for fused. Time: 2 for both, because the fused operator computes T² scores,
# too. The curves only approach these numbers, since the projections, which are linear in T, never disappear. In this copy the last
# two points gave {{ slopes["time"]["eager"]:.1f; it > 1.3 }} (eager) and {{ slopes["time"]["fused"]:.1f; it > 1.2 }} (fused) for the time,
# {{ slopes["memory"]["eager"]:.1f; 1.7 < it < 2.1 }} and {{ slopes["memory"]["fused"]:.1f; 0.9 < it < 1.1 }} for the memory.
#
# @wrong
#
# Slope 1 for the fused way's time would need fewer scores. It computes every score that the mask allows, and only never
# writes them down.

# %% role="payoff" exercise="FastCausalMultiHeadAttention" tags=["hide-input"]
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    def slope(curve):
        """The exponent of T between the last two points: 2 where doubling T makes four times as much."""
        (t, before), (longer, after) = list(curve.items())[-2:]
        return math.log(after / before) / math.log(longer / t)

    torch.manual_seed(0)
    layers = {"eager": EagerAttention(128, 2).to(here, precision), "fused": FastCausalMultiHeadAttention(128, 2).to(here, precision)}
    times, memory, full = {way: {} for way in layers}, {way: {} for way in layers}, {}
    room = 2**29 if here.type == "cpu" else 2**60  # bytes of scores that we allow; a GPU says by itself when it is full
    for (way, layer), t in itertools.product(layers.items(), [2**i for i in range(7, 14 if here.type == "cpu" else 17)]):
        if way in full:
            continue
        call = partial(layer, torch.randn(1, t, 128, device=here, dtype=precision))
        try:
            if way == "eager" and 2 * 3 * precision.itemsize * t**2 > room:  # scores, masked scores and weights of two heads
                raise RuntimeError("out of memory: more than we allow")  # before the machine slows down
            memory[way][t] = bench.kept_bytes(call) / 2**20
            with torch.no_grad():
                times[way][t] = min(measure(call, 60) for _ in range(3))  # other programs only ever add
        except RuntimeError as error:  # the point at which it no longer fits is a result, too
            if "out of memory" not in str(error):
                raise
            full[way] = t
            memory[way].pop(t, None)
    future.cache_clear()
    slopes = {what: {way: slope(curve) for way, curve in curves.items()} for what, curves in {"time": times, "memory": memory}.items()}
    limit = "more than we allow\n(512 MiB)" if here.type == "cpu" else "out of memory"
    figures.gpu.against_length(times, memory, full, slopes, crossing=4 * 128, limit=limit)

# %% [markdown]
# The dotted line is where fused attention and the four projections do equally many operations: 2 · T² · d_model = 8 · T · d_model²
# gives T = 4 · d_model. Eager attention, which computes the future, too, is there at half that length. On a fast GPU (the second picture)
# both curves of the time begin flat: short texts are overhead bound there.
#
# Between 1,024 and 2,048 tokens eager attention goes from {{ times["eager"][1024]:.0f; it > 0 }} to
# {{ times["eager"][2048]:.0f; it > times["eager"][1024] }} ms; T² alone makes four times as much. A step is larger where the scores
# outgrow a cache, or where the operating system begins to hand out new pages at each call. So a slope from two points says little.

# %% [markdown]
# ## Further: Fewer bits in training
#
# How `torch.autocast` uses 16 bits where they do no harm. For those who train on a GPU.

# %% [markdown]
# 16 bits are half the bytes, and tensor cores multiply them fast. The price is the error. bfloat16 keeps float32's range and 2 to 3
# digits; float16 keeps more digits and a range that ends at 65,504. `torch.autocast` keeps the weights in float32 and
# chooses: products in 16 bits, softmax and sums not (Micikevicius et al. 2018, section 3). Your class needs no change for that.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(FastCausalMultiHeadAttention):
    torch.manual_seed(0)
    small, x = FastCausalMultiHeadAttention(64, 4).to(here), torch.randn(2, 100, 64, device=here)
    with torch.no_grad():
        with torch.autocast(here.type, torch.bfloat16 if here.type == "cpu" else precision):
            y = small(x)
        error = (y.float() - small(x)).abs().max().item()
    print(f"autocast on {here.type}: {y.dtype}, weights {small.qkv.weight.dtype}, largest difference {error:.0e}")
    assert error < 0.05

# %% [markdown]
# ## Further: One query and a cache
#
# A flag that is right in training and wrong while a model writes. For those who go on to lesson 16.

# %% [markdown]
# A model that writes can keep the keys and values of earlier tokens in a *cache*. Then one new query meets all keys so far, and lesson
# 06's mask lets the last query see every key. What does `is_causal=True` make of one query and three keys with values 10, 20 and 60?

# %% role="demo" tags=["nbval-check-output"]
one_query, keys = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 3, 4)
values = torch.tensor([10.0, 20.0, 60.0]).reshape(1, 1, 3, 1).expand(1, 1, 3, 4)
for flag in (True, False):
    output = F.scaled_dot_product_attention(one_query, keys, values, is_causal=flag)
    print(f"is_causal={flag}: {output[0, 0, 0, 0].item():.0f}")

# %% [markdown]
# With equal scores the right answer is the mean, 30. `is_causal=True` counts from the *first* key, so query 0 sees key 0 alone. A
# single query needs no mask at all. The numbers are finite and the shapes right, so only a test with T_q ≠ T_k tells.

# %% [markdown]
# ## What we keep
#
# - Time goes into launches, memory (on a CPU *new* memory, too) or arithmetic. Ask which before making anything faster.
# - A stopwatch warms up, waits, and takes the median.
# - Operations ÷ bytes = arithmetic intensity. Below the machine's own ratio a kernel is memory bound.
# - Fused attention keeps no score matrix: memory grows with T, time with T².
#
# | what | operations, forward | what is kept for the backward pass |
# |---|---|---|
# | projections | 8 · T · d_model² | two inputs, (B, T, d_model) |
# | causal attention, eager | 4 · T² · d_model | q, k, v, the weights, (B, num_heads, T, T) |
# | causal attention, fused | 2 · T² · d_model | q, k, v, the output and (B, num_heads, T) |
#
# Sources: Dao et al. 2022, Dao 2023, Shah et al. 2024: *FlashAttention* 1 to 3; Dong et al. 2024, *Flex Attention*; Williams et al. 2009,
# *Roofline*; He 2022, *Making deep learning go brrrr*; Micikevicius et al. 2018, *Mixed precision training*.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# One question runs through it: where does the time go? Learners leave with three answers, a stopwatch that they can trust and a
# picture in which any kernel can be placed. The GPU is an example, not a requirement; on one, `make gpu` runs the whole lesson
# and stores what it measured, so that a class without a GPU sees it.
#
# ## Cut for 60 minutes
#
# `pick_device` and `attention_flops` as homework. "A clock that does not wait", "Count before you measure", "Four ways to one result",
# and the fast class.
#
# ## Cut for 90 minutes
#
# Leave out "A trace" and "Your model on it". Run the roofline together and let learners place their own kernel in it.
#
# The opening's 13 % comes from the paper's own counts, 66.6 and 75.2 billion operations. `attention_flops` gives 275 billion for the
# forward pass alone at its caption's sizes (64 texts of 1,024 tokens, 16 heads of 64), so the lesson shows only the ratio.
#
# ## Mistakes to expect
#
# - pick_device GP3: On which machines is torch built for CUDA, and on which of those is there a GPU?
# - pick_device GP5: What is the truth value of a function that is not called?
# - attention_flops GP11: How many matrix products does attention have, and how many operations is one multiply-add?
# - attention_bytes BY1: Who writes the scores, and who reads them?
# - attention_bytes BY4: Which tensors does the fused kernel never write?
# - attention_flops GP14: Which two numbers say how many scores there are when queries and keys differ in number?
# - time_ms GP26: What has the device done when `fn()` returns?
# - time_ms GP67: How long did your first reading take, and how long the tenth?
# - FastCausalMultiHeadAttention MH2: In which order do heads and tokens stand when you merge?
# - FastCausalMultiHeadAttention PJ3: Which numbers of `qkv(x)` are the keys of head 1?
#
# ## To discuss
#
# - A colleague replaces softmax by a cheaper function and nothing becomes faster. What do you ask first? A good answer asks what the
#   kernel waits for: on a GPU eager attention waits for memory, so less arithmetic saves nothing. (On a CPU exp is a large part of
#   softmax's time once the memory is there, and getting new memory often a larger one.)
# - FlashAttention computes more in the backward pass and is faster. How can that be? A good answer compares the cost of recomputing a tile
#   on the chip with that of writing and reading it, and names the machine's operations per byte.
# - A vendor plots a bfloat16 kernel under a float32 roof. What is wrong with the picture? A good answer says that the kernel can lie
#   above that roof, and that its distance from its own roof is what tells.
#
# ## On paper
#
# A processor computes 10 TFLOP/s and moves 500 GB/s. Below which number of operations for each byte is a kernel memory bound? Adding
# two float32 vectors: which share of the arithmetic can it reach? *Solution:* 10,000 / 500 = 20 operations a byte. Adding does 1
# operation on 12 bytes (two read, one written): 500 / 12 = 42 GFLOP/s, 0.4 % of the arithmetic.
