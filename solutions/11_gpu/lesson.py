# %% [markdown]
# # 11 · Multi-head causal attention on the GPU
#
# **Where does the time go?**
#
# **Before this lesson:** lesson 09 (causal multi-head attention as one module), lesson 10 (the model that writes), and what a logarithmic
# axis is. A GPU is not needed.
#
# Lessons 09 and 10 left you with correct attention and a model that writes. How long does it take, and what is it
# waiting for? There are three possible answers: the call itself takes the time, or moving numbers to and from memory
# does, or the arithmetic does. Each needs a different repair. In this lesson you measure which one it is, and write a
# version of attention that moves fewer numbers.
#
# The notebook runs on a CUDA GPU, on an Apple GPU and on a laptop with neither. Every time and rate below belongs to
# the machine that ran it. **The copy that comes with the course was executed on one thread of a CPU. What the text
# says about GPUs comes from papers and data sheets, each named where it is used; it was not verified on a GPU.**

# %% role="given"
import itertools
import math
import statistics
import time
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
torch.set_num_threads(1)  # threads wait for each other and for other programs: one gives quieter numbers
here = figures.gpu.device()
print(f"measured on {figures.gpu.name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")

# %% [markdown]
# ## Which device?
#
# torch runs the same code on several devices, wherever the tensors are stored. It calls NVIDIA's GPUs `cuda` (and
# AMD's too, in builds made for them), Apple's `mps`, and for us everything else is `cpu`. A build of torch with CUDA
# support may run on a machine without a GPU. So there are two questions: was torch built for CUDA, and is a GPU
# available? Only the second one matters for the choice. `torch.device` asks neither: it only makes a name.

# %% role="demo"
print("built for:  cuda", torch.backends.cuda.is_built(), " mps", torch.backends.mps.is_built())
print("a name costs nothing:", torch.device("cuda", 7))

# %% [markdown]
# @exercise pick_device
#
# `pick_device()` → a `torch.device`
#
# Its type is `cuda` where torch says that CUDA is available, otherwise `mps` where that is available, otherwise `cpu`. You
# need no GPU for this: the check lets torch pretend to have one. `hint(pick_device)` asks a question first.

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

# %% role="payoff" exercise="pick_device"
if passed(pick_device):
    x = torch.ones(2, 3, device=pick_device())
    print(f"this machine works on {x.device}; a sum computed there: {x.sum().item():.0f}")

# %% [markdown]
# ## How much work is it?
#
# A rate is work divided by time, so the work has to be counted. We count floating-point operations, and a multiplication and an addition
# count as two. Softmax and the mask are left out: they are few, and rates in papers leave them out as well (Dao 2023, section 4.1). For
# the table of lesson 01, with 3 queries, 3 keys and d_k = 2, one score is 1·1 + 0·1: 2 multiplications and, adding to zero, 2 additions.

# %% role="demo" tags=["nbval-check-output"]
operations = 0
for _query in range(3):
    for _key in range(3):
        operations += 2 * 2  # one score: two multiply-adds
        operations += 2 * 2  # its weight times a value of two numbers, added to the output
print(operations, "operations")

# %% [markdown]
# @exercise attention_flops
#
# `batch`, `num_heads`, `t_q`, `t_k`, `d_head` integers, `causal` a bool → int or float
#
# ```text
# for each item of the batch, each head, each query and each key:
#     one score          d_head multiply-adds
#     one weighted value d_head multiply-adds
# causal: exactly half of that, by convention (the pairs that a causal mask allows are slightly more: the diagonal)
# ```
#
# A multiply-add counts 2. Projections and softmax are left out. Queries and keys may differ in number.

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
# @predict
#
# The projections of lesson 09's class, four matrices of d_model² numbers, cost 8 · T · d_model² operations, and causal attention
# 2 · T² · d_model. For d_model = 512, from which T on is attention the larger part?
#
# @answer
#
# From T = 4 · d_model = 2048 on: there 2 T² d_model = 8 T d_model². At the 64 tokens of lesson 10, attention is a small part.
#
# @wrong
#
# If you said "always", you assumed that T² is large at every T. A quadratic term overtakes a linear one only from
# some length on.

# %% role="payoff" exercise="attention_flops"
if passed(attention_flops):
    figures.gpu.share_of_work(attention_flops)
    assert attention_flops(1, 8, 2048, 2048, 64, causal=True) == 8 * 2048 * 512**2

# %% [markdown]
# ## A stopwatch that lies
#
# Two things go wrong if you read a clock once before a call and once after it. The first call is different from the
# later ones: libraries are loaded, memory is allocated, and *kernels*, the programs that run on the device, are
# chosen. And a GPU works *while Python goes on*: `a @ b` returns as soon as the work is queued, so the clock measures
# how long it takes to hand over the work, not to do it. Without a GPU, a second thread can stand in for one: it takes
# the work and lets Python go on.

# %% role="demo"
from concurrent.futures import ThreadPoolExecutor

a, single = torch.randn(383, 383), []
for _ in range(10):
    start = time.perf_counter()
    a @ a
    single.append(1000 * (time.perf_counter() - start))
with ThreadPoolExecutor(1) as queue:
    start = time.perf_counter()
    work = queue.submit(lambda: a @ a)
    asked = 1000 * (time.perf_counter() - start)
    work.result()
    done = 1000 * (time.perf_counter() - start)
figures.gpu.readings(single, asked, done)

# %% [markdown]
# @exercise time_ms
#
# `fn` a function without arguments, `device` a string or a `torch.device`, `warmup` and `repeats` integers → milliseconds
#
# ```text
# call fn() warmup times, unmeasured
# repeats times:
#     wait until the device is done; read the clock
#     call fn()
#     wait until the device is done; read the clock; note the difference
# the result is the median of what was noted
# ```
#
# `fn` is called exactly `warmup + repeats` times. For an even number of readings either middle one or their mean is fine. A
# CPU has finished when `fn()` returns. The check measures calls of known length, on pretended GPUs, too.

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
# Why the median and not the mean? Other programs run on the machine, too, and a disturbed reading can only be
# *longer*. One such reading can raise the mean by any amount, but shifts the median by at most one place among the
# sorted readings.
#
# CUDA has its own stopwatch: *events*, which are queued among the kernels and record the time when the GPU reaches
# them. They do not see what Python does before the first event and after the last. If your clock shows clearly more
# than the events do, the difference is mostly the cost of the call.

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    a = torch.randn(1024, 1024, device=here)
    print(f"by time_ms: {time_ms(lambda: a @ a, here):.3f} ms")
    if here.type == "cuda":
        by_events = []
        for _ in range(3 + 10):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            a @ a
            last.record()
            torch.cuda.synchronize()
            by_events.append(first.elapsed_time(last))
        print(f"by CUDA events: {statistics.median(by_events[3:]):.3f} ms")  # the first three only warm up
    else:
        print("by CUDA events: not available here")

# %% [markdown]
# ## Three regimes
#
# Now the stopwatch answers the question of this lesson. x + x does one operation for each number, and reads and writes that number, so
# arithmetic is hardly what it waits for. A product of two n × n matrices does 2n³ operations on 3n² numbers: the larger n is, the less
# it waits for memory.

# %% [markdown]
# @predict
#
# x + x, written into an existing tensor, for 256 numbers, for 4,096 and for 16 million: how do the three times compare?
#
# @answer
#
# The first two are nearly the same: at these sizes neither the additions nor the memory takes the time, but the
# *call* does. From some size on, the time grows in proportion to the numbers, because then the memory is the limit.
# The left panel shows both, with a bend between them.
#
# @wrong
#
# If you said 1 : 16 : 65,536, you counted operations. Time follows that count only where operations, or the bytes
# that grow with them, are the limit.

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    sizes, widths = [2**i for i in range(8, 25, 2)], [32, 64, 128, 256, 512, 1024]
    vectors = [torch.ones(n, device=here) for n in sizes]
    squares = [torch.randn(n, n, device=here) for n in widths]
    adding = [time_ms(partial(torch.add, x, x, out=torch.empty_like(x)), here, 2, 9) for x in vectors]
    products = [time_ms(partial(torch.mm, a, a), here, 2, 9) for a in squares]
    call_us = 1000 * adding[0]
    bandwidth = 8 * sizes[-1] / adding[-1] / 1e6  # GB/s: each number is read once and written once
    rate = max(2 * n**3 / ms / 1e6 for n, ms in zip(widths, products))  # GFLOP/s
    figures.gpu.regimes(sizes, adding, widths, products)
    print(f"a call costs {call_us:.1f} µs, memory moves {bandwidth:.1f} GB/s, products reach {rate:.0f} GFLOP/s")

# %% [markdown]
# On the machine of this copy a call costs {{ call_us:.1f; it < 100 }} µs, memory moves {{ bandwidth:.0f; it > 1 }} GB/s, and products reach
# {{ rate:.0f; it > bandwidth }} GFLOP/s, billions of operations a second. So this machine can do about
# {{ rate / bandwidth:.0f }} operations in the
# time in which it moves one byte. Work with fewer operations a byte is **memory bound**, work with more is **compute bound**, and work
# so small that the call itself takes longest is **overhead bound** (Williams et al. 2009; He 2022, "Making deep learning go brrrr").
#
# ## Why attention waits for memory
#
# Written out step by step, attention makes a (T, T) table for every head. It writes the scores, reads and writes them
# again to scale them, again to mask them and again for softmax, and reads the weights once more to multiply them by
# the values: eight passes over a table of T² numbers. And that table is only a step on the way to the output.

# %% role="demo"
figures.gpu.numbers_in_memory()

# %% [markdown]
# Four tensors (q, k, v and the output) grow with T, and the table grows with T². What if the table never had to leave
# the chip? A GPU has two kinds of memory: a large, slow one next to the chip, and a small, fast one on it.
# FlashAttention (Dao et al. 2022, section 3.1; the A100's numbers below are those of its Figure 1) cuts q, k and v
# into tiles so small that the matching tile of the scores fits into the fast memory.

# %% role="demo"
figures.gpu.hierarchy()

# %% [markdown]
# How much does that save? Count it before anything is measured. Good code needs three kernels and not eight passes: one
# for the scores, scaled and masked on the way; one for softmax; one for the sum of the values. Each kernel reads its
# inputs from the large memory and writes its result there.

# %% [markdown]
# @exercise attention_bytes
#
# `batch`, `num_heads`, `t_q`, `t_k`, `d_head`, `bytes_per_number` integers, `fused` a bool → int: the bytes that are read and
# written. Not fused, the three kernels above; fused, one kernel that reads q, k and v once and writes the output once.
#
# Values and output are d_head wide, as q and k are. Every number counts as often as it is read or written.

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
# Operations divided by bytes are the **arithmetic intensity**: how much work is done with each byte that was fetched.

# %% [markdown]
# @predict
#
# T grows from 512 to 8,192, with heads of 64 numbers in 16 bits. What does the arithmetic intensity of attention do, in three
# kernels and fused?
#
# - **A** It grows with T in both.
# - **B** In three kernels it stays near 32, fused it grows with T.
# - **C** It stays the same in both, since T² appears in the operations and in the bytes.
#
# @answer
#
# **B.** In three kernels the tables are most of the bytes, and each of their numbers serves d_head operations, whatever T is:
# 4 · T² · d_head operations for about 4 · T² · 2 bytes are d_head / 2. Fused, T² is left in the operations alone, and the
# intensity is T / 2.
#
# @wrong
#
# If you said A, you forgot that the tables grow as fast as the operations. If you said C, you forgot that the fused kernel
# has no tables in memory.

# %% role="payoff" exercise="attention_bytes" tags=["nbval-check-output"]
if passed(attention_bytes) and passed(attention_flops):
    for t in (512, 2048, 8192):
        flops = attention_flops(1, 1, t, t, 64)
        three, one = (flops / attention_bytes(1, 1, t, t, 64, fused=fused) for fused in (False, True))
        print(f"T = {t:4}: {three:5.1f} operations a byte in three kernels, {one:6.1f} fused")

# %% [markdown]
# An A100 can do 153 operations in 16 bits in the time in which it fetches one byte (312 TFLOP/s and 2,039 GB/s). Three
# kernels stay below that at every T: they are memory bound, however long the text. The fused kernel passes it at some 300
# tokens, and is compute bound from there on.
#
# Softmax needs a whole row of scores, and a tile holds only a piece of it. So for each query FlashAttention keeps
# three things: the largest score so far, the sum of the exponentials so far and the output so far. When a larger
# score comes, it rescales the last two (Milakov and Gimelshein 2018). The result is that of lesson 03, up to
# rounding; only the order of the work differs. Lesson 14 builds it. torch has it behind
# `F.scaled_dot_product_attention`, and the next cell is what it replaces.

# %% role="given"
def explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of lesson 09, with its (T, T) scores. q, k, v: (B, num_heads, T, d_head)."""
    t = q.shape[-2]
    hidden = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v

# %% role="demo"
torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 50, 16)  # three tensors: a batch of two, four heads, fifty tokens
fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print(f"largest difference {(explicit_attention(q, k, v) - fused).abs().max():.0e}")
assert torch.allclose(explicit_attention(q, k, v), fused, atol=1e-5)

# %% [markdown]
# What is left for you is to bring x into the operator's layout without moving it more often than needed. `view` and `transpose` change
# only how the memory is read; `contiguous` copies, and so does a `reshape` that cannot be a view.

# %% role="demo" tags=["nbval-check-output"]
x = torch.zeros(2, 5, 12)
for name, y in (("view", x.view(2, 5, 3, 4)), ("transpose", x.view(2, 5, 3, 4).transpose(1, 2)),
                ("reshape of the transpose", x.view(2, 5, 3, 4).transpose(1, 2).reshape(2, 3, 20)),
                ("chunk", x.chunk(3, dim=-1)[1])):
    same = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    print(f"{name:25}", "the same memory" if same else "a copy")

# %% [markdown]
# @exercise FastCausalMultiHeadAttention
#
# `FastCausalMultiHeadAttention(d_model, num_heads)`; `forward(x)`: `x` (B, T, d_model) → (B, T, d_model)
#
# Lesson 09's class without `max_len` and dropout: `qkv` (d_model → 3 · d_model, in the order q, k, v, heads as contiguous slices)
# and `proj` (d_model → d_model), both without bias, and nothing else in the `state_dict`. `forward` calls
# `F.scaled_dot_product_attention(..., is_causal=True)` once, on tensors (B, num_heads, T, d_head), and makes no (T, T) tensor of its
# own. Any T. A `d_model` that `num_heads` does not divide raises `ValueError`. Under `torch.autocast` to bfloat16 the result is right to
# that precision.

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
# ## What T² looks like
#
# Now the main experiment of this lesson: the same weights, once with explicit attention and once with the operator,
# for growing T. The layer is narrow, with d_model = 128 in two heads of 64. By the count above, its attention becomes
# the larger part at T = 4 · 128 = 512, so most of the lengths below lie beyond that point. We measure the time with
# your stopwatch, and the memory that the forward pass keeps for the backward pass. On NVIDIA GPUs torch's fastest
# attention kernels accept only 16-bit numbers (bfloat16; or float16 on a T4 and other cards before compute capability
# 8.0, NVIDIA's count of generations), so both ways run in 16 bits as well. This is how the memory is measured, and how
# a slope is read off the last two points of a curve:

# %% role="demo"
def kept_bytes(fn):
    """What the forward pass of fn() keeps for the backward pass, each stretch of memory once."""
    seen = {}

    def pack(tensor):
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        fn()
    return sum(seen.values())


def slope(curve):
    """The exponent of T between the last two points: 2 where doubling T makes four times as much."""
    (t, before), (longer, after) = list(curve.items())[-2:]
    return math.log(after / before) / math.log(longer / t)

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    old_card = here.type == "cuda" and torch.cuda.get_device_capability() < (8, 0)
    half = torch.float16 if old_card or here.type == "mps" else torch.bfloat16
    lengths = [2**i for i in range(6, 14 if here.type == "cpu" else 17)]
    room = 2**29 if here.type == "cpu" else 2**60  # bytes that one way may keep; a GPU says by itself when it is full
    layer = FastCausalMultiHeadAttention(128, 2).to(here)

    def explicit(x):
        if 2 * 3 * x.element_size() * x.shape[1] ** 2 > room:  # scores, masked scores and weights of two heads
            raise RuntimeError(f"out of memory: more than the {room >> 20} MiB that we allow")
        q, k, v = (part.unflatten(-1, (2, 64)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=-1))
        return layer.proj(explicit_attention(q, k, v).transpose(1, 2).flatten(2))

    def projections(x):
        return layer.proj(layer.qkv(x)[..., :128])  # what the layer does besides attention

    def quickest(call, readings):
        return min(time_ms(call, here, 0, 1) for _ in range(readings))  # other programs only ever add

    ways = {"explicit": explicit, "fused": layer}

# %% [markdown]
# @predict
#
# Both axes will be logarithmic, so a power of T is a line and its exponent the slope. Which slopes do you expect at the
# long end: time and memory of the explicit way, time and memory of the fused one?
#
# @answer
#
# Memory: 2 for explicit, whose table is T × T, and 1 for fused. Time: 2 for both, because the operator does T² work
# too. The curves only approach these numbers, since the projections, which are linear in T, never disappear. In the
# run of this copy the last two points gave {{ slopes["time"]["explicit"]:.1f }} (explicit) and
# {{ slopes["time"]["fused"]:.1f }} (fused) for the time, {{ slopes["memory"]["explicit"]:.1f }} and
# {{ slopes["memory"]["fused"]:.1f }} for the memory.
#
# @wrong
#
# If you gave the fused way slope 1 in time because it has no table: it still computes every score that the mask
# allows, and only never writes them down.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    times, memory, full = {}, {}, {}
    for dtype, (way, module) in itertools.product((torch.float32, half), ways.items()):
        layer.to(dtype)
        name = way if dtype == torch.float32 else f"{way}, 16 bits"
        times[name], memory[name] = {}, {}
        for t in lengths:
            call = partial(module, torch.randn(1, t, 128, device=here, dtype=dtype))
            try:
                memory[name][t] = kept_bytes(call) / 2**20
                with torch.no_grad():
                    times[name][t] = quickest(call, 4 if t > 2048 else 6)
            except RuntimeError as error:  # the point at which it no longer fits is a result, too
                if "out of memory" not in str(error):
                    raise
                full[name] = t
                break
    layer.to(torch.float32)

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    with torch.no_grad():
        times["projections"] = {t: quickest(partial(projections, torch.randn(1, t, 128, device=here)), 20) for t in lengths}
    slopes = {"time": {name: slope(times[name]) for name in memory}, "memory": {name: slope(memory[name]) for name in memory}}
    figures.gpu.against_length(times, memory, full, slopes, crossing=4 * 128)

# %% [markdown]
# The gray line is the projections alone. Where the fused way takes more than twice as long as they do, attention is
# the larger part. By the count, that is so to the right of the dotted line.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    attending = {t: ms / times["projections"][t] - 1 for t, ms in times["fused"].items()}  # in units of the projections' time
    crossed, longest = next((t for t in attending if attending[t] > 1), math.inf), max(times["explicit"])
    speed = times["explicit"][longest] / times["fused"][longest]
    space = memory["explicit"][longest] / memory["fused"][longest]
    print(f"attention takes longer than the projections from {crossed} tokens on; at 512, {attending[512]:.1f} times as long")
    print(f"{longest} tokens, float32: fused is {speed:.1f} times as fast; explicit keeps {space:.0f} times as much")
    if here.type == "cpu":
        assert space > 8 and full["explicit"] > longest and attending[512] > 1
        assert min(slopes["time"]["explicit"], slopes["time"]["fused"]) > 1.4  # on an idle machine 1.8 to 2
        assert slopes["memory"]["explicit"] > 1.7 > 1.2 > slopes["memory"]["fused"]

# %% [markdown]
# On the machine of this copy, at {{ longest }} tokens, the fused way was {{ speed:.1f; it > 2 }} times as fast, and the
# explicit way kept {{ space:.0f }} times as much for the backward pass. The cross marks the length at which the
# explicit way ran out of memory. On a GPU that limit is real; on a CPU it is one of {{ room >> 20; it == 512 }} MiB, set in the
# cell. Two things in the left panel were not in the count:
#
# - At 512 tokens, where attention and the projections do equally many operations, attention took
#   {{ attending[512]:.1f }} times as long, and it was the larger part from {{ crossed; it <= 1024 }} tokens on. Equal counts are not
#   equal times: the exponentials of softmax, for one, are in no count.
# - The explicit way has a step, steeper than slope 2, between 512 and 2,048 tokens. Tables of that size come from the
#   operating system anew in every call, and it clears each page first. On the course's CPU, explicit attention took
#   about 10 ns for each pair of tokens before the step and 23 to 31 ns after it. When the program was allowed to keep
#   the memory between calls, it took 9 to 12 ns at every length, and the step was gone.
#
# In 16 bits every number takes half the memory. Whether that is also faster depends on whether the processor has units
# for 16-bit numbers; many CPUs have none.
#
# ## A training step
#
# Training also needs the backward pass. The operator has kept no weights, so in the backward pass it computes them
# *again*, tile by tile. That is more arithmetic, and Dao et al. (2022, section 3.1) still find it faster, because
# moving the table would have cost more time.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    x = torch.randn(1, 1024, 128, device=here)
    for way, module in ways.items():
        forward = time_ms(partial(module, x), here, 1, 5)
        both = time_ms(lambda module=module: module(x).square().mean().backward(), here, 1, 5)
        print(f"{way:9} forward {forward:7.1f} ms, with backward {both:7.1f} ms, {both / forward:.1f} times as long")

# %% [markdown]
# ## How near to the limit?
#
# Two of the regimes, memory and arithmetic, fit into one picture. The horizontal axis shows how many operations a
# program does for each byte it moves, the vertical axis how many it does in a second. Memory sets the slope on the
# left and arithmetic the flat part, and together they look like a roof (Williams et al. 2009). The roofs of three
# GPUs are drawn next to this machine's, from NVIDIA's data sheets (T4: 65 TFLOP/s in float16, 300 GB/s; A100 80 GB
# SXM: 312 TFLOP/s, 2,039 GB/s; H100 SXM: 989 TFLOP/s without sparsity, 3,350 GB/s; a TFLOP is 1,000 GFLOP). The stars
# are rates that papers report: FlashAttention-2 230 TFLOP/s on an A100 and, with the backward pass, 335 on an H100
# (Dao 2023, section 4.1), FlashAttention-3 740 on an H100 (Shah et al. 2024, the preprint; the NeurIPS version
# reports 840). Their heights are published; their horizontal positions are computed here, for a causal forward pass
# of 16,384 tokens.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(attention_flops) and passed(FastCausalMultiHeadAttention):
    operator = partial(F.scaled_dot_product_attention, is_causal=True)
    ready = {"explicit": explicit_attention, "fused": operator}
    points = {}
    for (way, attend), dtype in itertools.product(ready.items(), (torch.float32, half)):
        name = way if dtype == torch.float32 else f"{way}, 16 bits"
        points[name] = []
        for t in (128, 256, 512, 1024):
            q, k, v = torch.randn(3, 1, 8, t, 64, device=here, dtype=dtype)
            ends, table = 4 * 8 * t * 64 * q.element_size(), 8 * t * t * q.element_size()  # bytes: q, k, v, output; scores
            moved = ends + (8 * table if way == "explicit" else 0)  # the table is written or read eight times
            flops, ms = attention_flops(1, 8, t, t, 64, causal=True), time_ms(partial(attend, q, k, v), here, 1, 3)
            points[name].append((flops / moved, flops / ms / 1e6))
    roofs = {"T4": (65e3, 300), "A100": (312e3, 2039), "H100": (989e3, 3350)}
    stars = {"FlashAttention-2, A100": 230e3, "FlashAttention-2, H100": 335e3, "FlashAttention-3, H100": 740e3}
    stars = {name: (16384 / 4, height) for name, height in stars.items()}  # causal, 16 bits: T / 4 operations a byte
    figures.gpu.roofline(rate, bandwidth, points, roofs, stars)

# %% [markdown]
# Explicit attention stays at almost the same place on the horizontal axis however long the text is, because its
# operations and its bytes both grow with T². The fused way moves to the right as T grows, out from under the slope. A
# point that still lies below the roof spends time on work that we did not count: the exponentials of softmax and, in
# explicit attention, the scores that the mask then hides.
#
# ## Fewer bits
#
# 16 bits are half the bytes, and many GPUs multiply them many times faster. The price is the error. bfloat16 keeps float32's range
# and 2 to 3 digits, float16 more digits and a range that ends at 65,504. `torch.autocast` keeps the weights in float32 and chooses
# where fewer bits do no harm: products yes, softmax and sums no (Micikevicius et al. 2018, section 3). Your class needs no change for
# that.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(FastCausalMultiHeadAttention):
    torch.manual_seed(0)
    small, x = FastCausalMultiHeadAttention(64, 4).to(here), torch.randn(2, 100, 64, device=here)
    with torch.no_grad():
        with torch.autocast(here.type, torch.float16 if here.type == "mps" else torch.bfloat16):
            y = small(x)
        error = (y.float() - small(x)).abs().max().item()
    print(f"autocast on {here.type}: {y.dtype}, weights {small.qkv.weight.dtype}, largest difference {error:.0e}")
    assert error < 0.05

# %% [markdown]
# Behind the one operator stand several implementations, called backends, and torch chooses by device, type and shape. Its choice is not
# always the fastest, so a report of a rate says which one ran.

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = torch.randn(3, 1, 8, 512, 64, device=here)
    call = partial(F.scaled_dot_product_attention, q, k, v, is_causal=True)
    for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        try:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                print(f"{backend:22} {time_ms(call, here):8.2f} ms")
        except RuntimeError:
            print(f"{backend:22} not available here")

# %% [markdown]
# ## Break it on purpose: one query and a cache
#
# A model that writes can keep the keys and values of earlier tokens in a *cache* (lesson 16). Then one new query meets all keys so far, and
# lesson 06's mask lets the last query see every key. What does `is_causal=True` make of one query and three keys with values 10, 20 and 60?

# %% role="demo" tags=["nbval-check-output"]
one_query, keys = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 3, 4)
values = torch.tensor([10.0, 20.0, 60.0]).reshape(1, 1, 3, 1).expand(1, 1, 3, 4)
for flag in (True, False):
    output = F.scaled_dot_product_attention(one_query, keys, values, is_causal=flag)
    print(f"is_causal={flag}: {output[0, 0, 0, 0].item():.0f}")

# %% [markdown]
# With equal scores the right answer is the mean, 30. `is_causal=True` counts from the *first* key, so query 0 sees key 0 alone. For a
# cache the flag has to be off. The numbers are finite and the shapes right, so only a test with T_q ≠ T_k tells.
#
# ## Your model, on the fastest path
#
# Finally the whole model of lesson 10: what does the operator gain there, in a short text and in a long one? The next
# cell defines its shape again, with a free choice of attention. Its table of positions ends at 64, so for longer texts
# we make a model of the same shape with more positions and random weights. Its text would be noise, but the times do
# not depend on the weights.

# %% role="given"
class Writer(nn.Module):
    """Lesson 10's model around any attention(d_model, num_heads); names as in its checkpoint."""

    def __init__(self, attention, vocabulary, d=128, heads=4, layers=2, max_len=64):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(max_len, d)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "ln1": nn.LayerNorm(d), "attn": attention(d, heads), "ln2": nn.LayerNorm(d),
            "mlp": nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)),
        }) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = x + block["attn"](block["ln1"](x))
            x = x + block["mlp"](block["ln2"](x))
        return self.head(self.norm(x))

# %% [markdown]
# @predict
#
# Count as before. A block's projections and feed-forward network cost 24 · T · d_model² operations. Attention adds
# 2 · T² · d_model with the operator and twice that when it is explicit, hidden scores included. So for d_model = 128
# the explicit model does 1.04 times the operations at 64 tokens, and 1.57 times at 2,048. What will the clock say at
# these two lengths: less than that, about that, or more?
#
# @answer
#
# At 64 tokens about that or a little more, {{ gains[64]:.2f }} in this copy: attention is a small part of the pass
# there, and the operator leaves the projections, the feed-forward network and the cost of their calls as they are. At
# 2,048 tokens far more, {{ gains[2048]:.1f }}: the operator skips hidden scores and, above all, moves no tables.
#
# @wrong
#
# If you said "about that" for both, you counted operations alone. They are the whole story only where arithmetic is the
# limit.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    class Explicit(FastCausalMultiHeadAttention):
        def forward(self, x):
            q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            return self.proj(explicit_attention(q, k, v).transpose(1, 2).flatten(2))

    characters, kinds = sorted(set(figures.language_model.reference_text())), {"explicit": Explicit, "fused": FastCausalMultiHeadAttention}

    @torch.no_grad()
    def pass_ms(writers, ids, rounds):
        spent = dict.fromkeys(writers, math.inf)
        for _ in range(rounds):  # in turn, and the quickest of each: other programs only ever add
            for name, writer in writers.items():
                spent[name] = min(spent[name], time_ms(partial(writer, ids), here, 0, 1))
        return spent

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    torch.manual_seed(13)
    long = {name: Writer(kind, len(characters), max_len=2048).to(here).eval() for name, kind in kinds.items()}
    gains = {}
    for t in (64, 256, 512, 1024, 2048):
        spent = pass_ms(long, torch.randint(len(characters), (1, t), device=here), max(3, 4096 // t))
        gains[t] = spent["explicit"] / spent["fused"]
        print(f"{t:4} tokens: explicit {spent['explicit']:6.1f} ms, fused {spent['fused']:5.1f} ms, {gains[t]:.2f} times as fast")
    counted = {t: (24 * 128 + 4 * t) / (24 * 128 + 2 * t) for t in gains}
    assert (round(counted[64], 2), round(counted[2048], 2)) == (1.04, 1.57)
    assert here.type != "cpu" or gains[2048] > max(gains[64], 1.6)

# %% [markdown]
# Now your own model writes, with the weights of the checkpoint from your training. (If there is none, the weights are
# random, and so is the text.) Both ways write 16 texts, so that we can see whether they agree. What is timed is the next
# character of one text, a pass over 63 characters.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    kept = figures.language_model.checkpoint()
    writers = {name: Writer(kind, len(characters)).to(here).eval() for name, kind in kinds.items()}
    trained = torch.load(kept, map_location=here, weights_only=True)["model"] if kept.is_file() else writers["fused"].state_dict()
    for writer in writers.values():
        writer.load_state_dict(trained)

    @torch.no_grad()
    def write(writer, rows=16, length=80):
        draws = torch.Generator().manual_seed(1)
        ids = torch.tensor([[characters.index(c) for c in "If the object is "]] * rows, device=here)
        for _ in range(length):
            weights = torch.softmax(writer(ids[:, -63:])[:, -1] / 0.7, dim=-1)  # the 64th position never learned
            ids = torch.cat([ids, torch.multinomial(weights.cpu(), 1, generator=draws).to(here)], dim=1)
        return ids

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    texts = {name: write(writer) for name, writer in writers.items()}
    same = (texts["explicit"] == texts["fused"]).float().mean().item()
    spent = pass_ms(writers, texts["fused"][:1, -63:], 200)
    ratio = spent["explicit"] / spent["fused"]
    print("".join(characters[i] for i in texts["fused"][0].tolist()))
    print(f"\n{same:.1%} of the characters agree")
    print(f"the next one takes {spent['explicit']:.2f} ms explicit, {spent['fused']:.2f} ms fused")
    print(f"your model writes {ratio:.2f} times as fast on {figures.gpu.name()}")
    print("" if kept.is_file() else "No checkpoint of lesson 10 is here: the weights are random, and so is the text.")

# %% [markdown]
# In this copy {{ same:.1%; it > 0.9 }} of the characters are the same. (A difference in the seventh digit can change a draw, and
# from there on two texts differ.) Your model writes {{ ratio:.2f; 0.8 < it < 1.4 }} times as fast, which is hardly a gain, and a model of
# its shape reads 2,048 tokens {{ gains[2048]:.1f }} times as fast. At 64 tokens the projections, the feed-forward network
# and the overhead of the calls dominate, as the count predicts. (On the course's CPU, a pass with attention left out
# altogether still took 76 to 86 % of the time.)
#
# ## What we keep
#
# - Three regimes: the call, the memory, the arithmetic. Ask which one it is before making anything faster.
# - A stopwatch warms up, waits for the device and takes the median. One that does not wait measures the asking.
# - Count operations before quoting a rate, and say what was left out.
# - For long texts the time grows with T² both ways. The fused operator writes no T × T table: its memory grows with T
#   alone, and time falls where memory was the limit. In short texts the projections and the calls dominate, and it
#   gains little.
# - 16 bits are half the bytes and fewer digits; weights stay in float32.
#
# | what | operations | memory that is kept |
# |---|---|---|
# | projections | 8 · T · d_model² | (B, T, 3 · d_model) |
# | causal attention, explicit | 2 · T² · d_model, twice that with hidden scores | the weights, (B, num_heads, T, T) |
# | causal attention, fused | 2 · T² · d_model, more in the backward pass | q, k, v, the output and (B, num_heads, T) |
#
# Sources: Dao et al. 2022, *FlashAttention*; Dao 2023, *FlashAttention-2*; Shah et al. 2024, *FlashAttention-3*; Milakov and
# Gimelshein 2018, *Online normalizer calculation for softmax*; Williams et al. 2009, *Roofline*; He 2022, *Making deep learning go
# brrrr from first principles*; Micikevicius et al. 2018, *Mixed precision training*; NVIDIA's data sheets of the T4, the A100 and the
# H100.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# One question runs through it: where does the time go? Learners leave with three regimes, a stopwatch that they can trust and a
# picture in which any kernel can be placed. The GPU is an example, not a requirement.
#
# ## Cut for 60 minutes
#
# `pick_device` and `attention_flops` as homework; stopwatch, regimes, the fast class, T² and the writer at the end.
#
# ## Cut for 90 minutes
#
# Leave out backends and autocast. Run the roofline together and let learners place their own kernel in it.
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
# - time_ms GP21: How long did your first reading take, and how long the tenth?
# - FastCausalMultiHeadAttention MH2: In which order do heads and tokens stand when you merge?
# - FastCausalMultiHeadAttention PJ3: Which numbers of `qkv(x)` are the keys of head 1?
#
# ## To discuss
#
# - A colleague replaces softmax by a cheaper function and nothing becomes faster. What do you ask first? A good answer asks for the
#   regime: explicit attention waits for memory, so less arithmetic saves nothing, and a second measurement with the tables kept on
#   the chip tells.
# - FlashAttention computes more in the backward pass and is faster. How can that be? A good answer compares the cost of recomputing a tile
#   on the chip with that of writing and reading it, and names the machine's operations per byte.
#
# ## On paper
#
# A processor computes 10 TFLOP/s and moves 500 GB/s. Below which number of operations for each byte is a kernel memory bound? Adding
# two float32 vectors: which share of the arithmetic can it reach? *Solution:* 10,000 / 500 = 20 operations a byte. Adding does 1
# operation on 12 bytes (two read, one written): 500 / 12 = 42 GFLOP/s, 0.4 % of the arithmetic.
