# %% [markdown]
# # 13 · Multi-head causal attention on the GPU
#
# **Where does the time go?**
#
# **Before this lesson:** lesson 11 (causal multi-head attention as one module), lesson 12 (the model that writes), and what a logarithmic
# axis is. A GPU is not needed.
#
# Lessons 11 and 12 left you with attention that is right and a model that writes. How long does it take, and what does it wait for? There
# are three answers, and they ask for three different repairs: the call itself takes the time, or moving numbers does, or computing
# with them does. In this lesson you measure which one it is, and write the version of attention that moves the least.
#
# The notebook runs on a CUDA GPU, on Apple's and on a laptop without either. Every time and rate below belongs to the machine that ran
# it. **The copy that comes with the course was executed on a CPU. What its text says of GPUs comes from papers and data sheets, each
# named where it is used; it was not verified on a GPU.**

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
here = figures.lesson_13.device()
print(f"measured on {figures.lesson_13.name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")

# %% [markdown]
# ## Which device?
#
# torch runs the same code on several devices, if the tensors lie there. It calls NVIDIA's GPUs `cuda` (AMD's, too, in the builds for
# them), Apple's `mps`, and everything else here is `cpu`. A build of torch that *knows* CUDA may run on a machine without a GPU. So there
# are two questions, built for it and available, and only the second one helps. `torch.device` asks neither: it is only a name.

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
# causal: exactly half of that
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
# The projections of lesson 11's class, four matrices of d_model² numbers, cost 8 · T · d_model² operations, and causal attention
# 2 · T² · d_model. For d_model = 512, from which T on is attention the larger part?
#
# @answer
#
# From T = 4 · d_model = 2048 on: there 2 T² d_model = 8 T d_model². At the 64 tokens of lesson 12, attention is a small part.
#
# @wrong
#
# If you said "always", you took T² for large by itself. A square beats a line only from some length on.

# %% role="payoff" exercise="attention_flops"
if passed(attention_flops):
    figures.lesson_13.share_of_work(attention_flops)
    assert attention_flops(1, 8, 2048, 2048, 64, causal=True) == 8 * 2048 * 512**2

# %% [markdown]
# ## A stopwatch that lies
#
# Two things go wrong when a clock is read once before and once after a call. The first call is different: libraries load, memory is
# asked for, and *kernels* are chosen, the programs that run on the device. And a GPU works *while Python goes on*: `a @ b` returns as soon
# as the work is queued. Then the clock says how long it takes to ask. Without a GPU, a second thread can stand in for one: it takes work
# and lets Python go on.

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
figures.lesson_13.readings(single, asked, done)

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
# Why the median and not the mean? Other programs run on the machine, too. A disturbed reading is only ever *longer*. It pulls the mean as
# far as it likes, and moves the median by one place.
#
# CUDA has a stopwatch of its own: *events*, which are queued between the kernels and note the time when the GPU passes them. They leave
# out what Python takes to ask. If your clock says more than the events do, the difference is the cost of the call.

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    a = torch.randn(1024, 1024, device=here)
    print(f"by time_ms: {time_ms(lambda: a @ a, here):.3f} ms")
    if here.type == "cuda":
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        a @ a
        last.record()
        torch.cuda.synchronize()
        print(f"by CUDA events: {first.elapsed_time(last):.3f} ms")
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
# The first two are nearly the same, because neither the adding nor the moving is what takes the time: the *call* is. From some size
# on the time grows in proportion, and then it is the memory's. The left panel shows both, with a bend between them.
#
# @wrong
#
# If you said 1 : 16 : 65,536, you counted operations. That holds only where operations, or bytes, are what is waited for.

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
    figures.lesson_13.regimes(sizes, adding, widths, products)
    print(f"a call costs {call_us:.1f} µs, memory moves {bandwidth:.1f} GB/s, products reach {rate:.0f} GFLOP/s")

# %% [markdown]
# On the machine of this copy a call costs {{ call_us:.1f }} µs, memory moves {{ bandwidth:.0f }} GB/s, and products reach
# {{ rate:.0f }} GFLOP/s, billions of operations a second. So this machine can do about {{ rate / bandwidth:.0f }} operations in the
# time in which it moves one byte. Work with fewer operations a byte is **memory bound**, work with more is **compute bound**, and work
# so small that the call itself takes longest is **overhead bound** (Williams et al. 2009; He 2022, "Making deep learning go brrrr").
#
# ## Why attention waits for memory
#
# Written out, attention makes a (T, T) table for every head. It writes the scores, reads them to scale and mask them, writes them
# again, reads them for softmax, and once more to weight the values. The table is only a step on the way to the output.

# %% role="demo"
figures.lesson_13.numbers_in_memory()

# %% [markdown]
# Four tensors grow with T and one with T². What if the table never left the processor? A processor has two memories: a large and slow one
# beside it, and a small and fast one on the chip. FlashAttention (Dao et al. 2022, section 3.1; the A100's numbers below are those of its
# Figure 1) cuts q, k and v into tiles so small that a tile of the scores fits into the fast one.

# %% role="demo"
figures.lesson_13.hierarchy()

# %% [markdown]
# Softmax needs a whole row of scores, and a tile has only a piece of it. So for each query FlashAttention keeps the largest score, the sum
# of the exponentials and the output so far, and rescales the last two when a larger score comes (Milakov and Gimelshein 2018). The result
# is that of lesson 03; only the order of work is another. torch has it in `F.scaled_dot_product_attention`. Below is what it replaces.

# %% role="given"
def explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of lesson 11, with its (T, T) scores. q, k, v: (B, num_heads, T, d_head)."""
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
# Lesson 11's class without `max_len` and dropout: `qkv` (d_model → 3 · d_model, in the order q, k, v, heads as contiguous slices)
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
# Now the experiment of this lesson: the same weights around explicit attention and around the operator, for growing T. We measure the
# time by your stopwatch, and the memory that the forward pass keeps for the backward pass. NVIDIA's fastest kernels take 16-bit numbers
# only (bfloat16, or float16 on a T4 and other cards before compute capability 8.0, NVIDIA's count of generations), so both ways run in
# 16 bits as well. This is how the memory is measured:

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

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    old_card = here.type == "cuda" and torch.cuda.get_device_capability() < (8, 0)
    half = torch.float16 if old_card or here.type == "mps" else torch.bfloat16
    lengths = [128, 256, 512, 1024] + ([2048] if here.type == "cpu" else [2048, 4096, 8192, 16384, 32768])
    room = 2**30 if here.type == "cpu" else 2**60  # bytes that one way may keep; a GPU says by itself when it is full
    layer = FastCausalMultiHeadAttention(512, 8).to(here)

    def explicit(x):
        if 8 * 3 * x.element_size() * x.shape[1] ** 2 > room:  # scores, masked scores and weights of eight heads
            raise RuntimeError(f"out of memory: more than the {room >> 20} MiB that we allow")
        q, k, v = (part.unflatten(-1, (8, 64)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=-1))
        return layer.proj(explicit_attention(q, k, v).transpose(1, 2).flatten(2))

    ways = {"explicit": explicit, "fused": layer}

# %% [markdown]
# @predict
#
# Both axes will be logarithmic, so a power of T is a line and its exponent the slope. Which slopes do you expect for long texts: time
# and memory of the explicit way, time and memory of the fused one?
#
# @answer
#
# Time goes towards 2 for both: the operator does the same T² work. Memory is where they part: 2 for explicit, whose tables are T × T,
# and 1 for fused. Short texts stay below slope 2 in time, since the projections are linear in T and the larger part of the work
# there.
#
# @wrong
#
# If you gave the fused way slope 1 in time, you took "no table" for "no work". It computes every score; it only writes none of them
# down.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    times, memory, full = {}, {}, {}
    for dtype in (torch.float32, half):
        layer.to(dtype)
        for way, module in ways.items():
            name = way if dtype == torch.float32 else f"{way}, 16 bits"
            times[name], memory[name] = {}, {}
            for t in (lengths if way == "fused" else [*lengths, 4 * lengths[-1]]):
                x = torch.randn(1, t, 512, device=here, dtype=dtype)
                call = partial(module, x)
                try:
                    memory[name][t] = kept_bytes(call) / 2**20
                    with torch.no_grad():
                        times[name][t] = time_ms(call, here, 1, 3 if t > 1000 else 7)
                except RuntimeError as error:  # the point at which it no longer fits is a result, too
                    if "out of memory" not in str(error):
                        raise
                    full[name] = t
                    break
    figures.lesson_13.against_length(times, memory, full)

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    layer.to(torch.float32)
    longest = lengths[-1]
    speed = times["explicit"][longest] / times["fused"][longest]
    space = memory["explicit"][longest] / memory["fused"][longest]
    print(f"{longest} tokens, float32: fused is {speed:.1f} times as fast; explicit keeps {space:.0f} times as much")
    assert space > 4 and full["explicit"] > longest

# %% [markdown]
# On the machine of this copy, at {{ longest }} tokens, the fused way was {{ speed:.1f }} times as fast, and the explicit way kept
# {{ space:.0f }} times as much for the backward pass. The cross marks where the explicit way was out of memory: on a GPU a real
# limit, and here one of {{ room >> 20 }} MiB that the cell sets. In 16 bits every number takes half the room. Whether it is faster as
# well depends on whether the processor has units for it; many CPUs have none.
#
# ## A training step
#
# Training goes back as well. The operator kept no weights, so on the way back it computes them *again*, tile by tile. That is more
# arithmetic, and Dao et al. (2022, section 3.1) find it faster nevertheless, because moving the table would have cost more.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    x = torch.randn(1, 1024, 512, device=here)
    for way, module in ways.items():
        forward = time_ms(partial(module, x), here, 1, 5)
        both = time_ms(lambda module=module: module(x).square().mean().backward(), here, 1, 5)
        print(f"{way:9} forward {forward:7.1f} ms, with backward {both:7.1f} ms, {both / forward:.1f} times as long")

# %% [markdown]
# ## How near to the limit?
#
# Two of the regimes, memory and arithmetic, fit into one picture. Horizontally stand the operations for each byte moved, vertically those
# for each second. The slope on the left is memory, the flat part arithmetic, and together they look like a roof (Williams et al. 2009).
# Beside this machine's roof stand those of three GPUs, from NVIDIA's data sheets (T4: 65 TFLOP/s in float16, 300 GB/s; A100 80 GB SXM:
# 312 TFLOP/s, 2,039 GB/s; H100 SXM: 989 TFLOP/s without sparsity, 3,350 GB/s; a TFLOP is 1,000 GFLOP). The stars are rates that papers
# report: FlashAttention-2 230 TFLOP/s on an A100 and, with the backward pass, 335 on an H100 (Dao 2023, section 4.1), FlashAttention-3
# 740 on an H100 (Shah et al. 2024, the preprint; the NeurIPS version reports 840). Their height is published; where they stand
# horizontally we computed, for a causal forward pass of 16,384 tokens.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(attention_flops) and passed(FastCausalMultiHeadAttention):
    operator = partial(F.scaled_dot_product_attention, is_causal=True)
    ready = {"explicit": explicit_attention, "fused": operator}
    points = {}
    for (way, attend), dtype in itertools.product(ready.items(), (torch.float32, half)):
        name = way if dtype == torch.float32 else f"{way}, 16 bits"
        points[name] = []
        for t in lengths[1:5]:
            q, k, v = torch.randn(3, 1, 8, t, 64, device=here, dtype=dtype)
            ends, table = 4 * 8 * t * 64 * q.element_size(), 8 * t * t * q.element_size()  # bytes: q, k, v, output; scores
            moved = ends + (8 * table if way == "explicit" else 0)  # the table is written or read eight times
            flops, ms = attention_flops(1, 8, t, t, 64, causal=True), time_ms(partial(attend, q, k, v), here, 1, 3)
            points[name].append((flops / moved, flops / ms / 1e6))
    roofs = {"T4": (65e3, 300), "A100": (312e3, 2039), "H100": (989e3, 3350)}
    stars = {"FlashAttention-2, A100": 230e3, "FlashAttention-2, H100": 335e3, "FlashAttention-3, H100": 740e3}
    stars = {name: (16384 / 4, height) for name, height in stars.items()}  # causal, 16 bits: T / 4 operations a byte
    figures.lesson_13.roofline(rate, bandwidth, points, roofs, stars)

# %% [markdown]
# Explicit attention hardly moves along the horizontal axis however long the text is: its operations and its bytes both grow with T².
# The fused way moves to the right as T grows, out from under the slope. What still lies below the roof has something else to wait for:
# softmax's exponentials and, in explicit attention, the hidden scores. We counted neither.
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
# A model that writes can keep the keys and values of earlier tokens in a *cache* (lesson 15). Then one new query meets all keys so far, and
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
# At last the model of lesson 12 writes. Here is its shape again, with the attention left open, and the checkpoint from your training.
# Where there is none the weights are random: the text is noise then, and the times are the same.

# %% role="given"
class Writer(nn.Module):
    """Lesson 12's model around any attention(d_model, num_heads); names as in its checkpoint."""

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
# At 64 tokens and d_model = 128 the two products of attention are 4 % of a block's operations. If arithmetic were all, making
# attention infinitely fast would save 4 %. Will the fused class gain more than that, or less?
#
# @answer
#
# More. Explicit attention makes a mask, scales, fills, takes a softmax and multiplies: several calls on small tables, each with its
# overhead and its traffic, and the operator is one call. A pass of this model took 1.16 to 1.19 times as long with explicit attention,
# by processor time of one thread on the course's CPU. The clock below adds what other programs take.
#
# @wrong
#
# If you said "no more than 4 %", you counted operations alone; in two of the three regimes they are not what takes the time.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    class Explicit(FastCausalMultiHeadAttention):
        def forward(self, x):
            q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            return self.proj(explicit_attention(q, k, v).transpose(1, 2).flatten(2))

    characters, kept = sorted(set(figures.lesson_12.reference_text())), figures.lesson_12.checkpoint()
    torch.manual_seed(13)
    fast, slow = (Writer(kind, len(characters)).to(here).eval() for kind in (FastCausalMultiHeadAttention, Explicit))
    trained = torch.load(kept, map_location=here, weights_only=True)["model"] if kept.is_file() else fast.state_dict()
    for writer in (fast, slow):
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
    writers = {"explicit": slow, "fused": fast}
    texts = {name: write(writer) for name, writer in writers.items()}
    same = (texts["explicit"] == texts["fused"]).float().mean().item()
    spent = dict.fromkeys(writers, math.inf)
    for _ in range(40):  # in turn, and the quickest of each: other programs only ever add
        for name, writer in writers.items():
            with torch.no_grad():
                spent[name] = min(spent[name], time_ms(partial(writer, texts["fused"][:, -63:]), here, 0, 1))
    ratio = spent["explicit"] / spent["fused"]
    print("".join(characters[i] for i in texts["fused"][0].tolist()))
    print(f"\n{same:.1%} of the characters agree")
    print(f"the next one of 16 texts: explicit {spent['explicit']:.1f} ms, fused {spent['fused']:.1f} ms")
    print(f"your model writes {ratio:.2f} times as fast on {figures.lesson_13.name()}")
    print("" if kept.is_file() else "No checkpoint of lesson 12 is here: the weights are random, and so is the text.")

# %% [markdown]
# On the machine of this copy the model wrote {{ ratio:.2f }} times as fast, and {{ same:.1% }} of the characters were the same. (A
# difference in the seventh digit can tip a draw, and then two texts part ways.) The fused class is the fastest path of this machine
# for every longer text as well, and there the gain grows with T.
#
# ## What we keep
#
# - Three regimes: the call, the memory, the arithmetic. Ask which one it is before making anything faster.
# - A stopwatch warms up, waits for the device and takes the median. One that does not wait measures the asking.
# - Count operations before quoting a rate, and say what was left out.
# - The fused operator does the same T² work and writes no T × T table: memory grows with T, and time falls where memory was the
#   limit.
# - 16 bits are half the bytes and fewer digits; weights stay in float32.
#
# | what | operations | memory that is kept |
# |---|---|---|
# | projections | 8 · T · d_model² | (B, T, 3 · d_model) |
# | causal attention, explicit | 2 · T² · d_model | several (B, num_heads, T, T) |
# | causal attention, fused | 2 · T² · d_model, more on the way back | q, k, v, the output and (B, num_heads, T) |
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
# - FlashAttention computes more on the way back and is faster. How can that be? A good answer compares the cost of recomputing a tile
#   on the chip with that of writing and reading it, and names the machine's operations per byte.
#
# ## On paper
#
# A processor computes 10 TFLOP/s and moves 500 GB/s. Below which number of operations for each byte is a kernel memory bound? Adding
# two float32 vectors: which share of the arithmetic can it reach? *Solution:* 10,000 / 500 = 20 operations a byte. Adding does 1
# operation on 12 bytes (two read, one written): 500 / 12 = 42 GFLOP/s, 0.4 % of the arithmetic.
