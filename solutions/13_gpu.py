# %% [markdown]
# # 13 · Multi-head causal attention on the GPU
#
# **The same numbers, faster: how would we know that it is faster, and why is it?**
#
# Lesson 11 left us with a class that is right and trains. It also writes a (T, T) matrix into memory for every head, reads it
# back for softmax, writes it again and reads it again. In this lesson we count what attention has to compute, learn to measure
# time on a device that works while Python goes on, and let one fused operator do the same work without the matrix.
#
# The notebook runs on a CUDA GPU, on Apple's and on a laptop without either. Every time and rate below belongs to the machine
# that ran it, and what the machine lacks is called "not available here". The copy that comes with the course was executed on a
# CPU: what the prose says of GPUs is taken from the sources, and was not verified on a GPU.
#
# **Predict:** how much memory do the scores of 8 heads and 8192 tokens take in float32? And the output that we want, with
# 64 numbers a head?

# %% role="given"
import math
import statistics
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.lesson_13.numbers_in_memory()

# %% [markdown]
# Four tensors grow with T and one with T². At 8192 tokens the scores take 2 GB, and the output 16 MB. Nobody asked for the
# scores: they are a step on the way. This is what FlashAttention leaves out (Dao et al. 2022, section 3.1).

# %% role="demo"
figures.lesson_13.machine()

# %% [markdown]
# ## Which device?
#
# torch runs the same code on several devices, if the tensors lie there. It calls NVIDIA's GPUs `cuda` (AMD's, too, in the
# builds for them), Apple's `mps`, and everything else here is `cpu`. A build of torch that *knows* CUDA may run on a machine
# without a GPU, so there are two questions: built for it, and available? **Predict** which of the two lines below can differ.

# %% role="demo"
print("built for:  cuda", torch.backends.cuda.is_built(), " mps", torch.backends.mps.is_built())
print("a name costs nothing:", torch.device("cuda", 7))

# %% [markdown]
# @exercise pick_device
#
# `pick_device()` → a `torch.device`
#
# Its type is `cuda` where torch says that CUDA is available, otherwise `mps` where that is available, otherwise `cpu`. Nobody
# needs a GPU for this: the check lets torch pretend to have one. `hint(pick_device)` asks a question first.

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
    device = pick_device()
    x = torch.ones(2, 3, device=device)
    print(f"This machine works on {device.type}: {x.device}, sum {x.sum().item():.0f}")

# %% [markdown]
# What follows uses the best device that is here, found in the same way, whether or not the exercise is solved. On `cpu`
# every figure below is drawn all the same: the slopes are the lesson, not the seconds.
#
# ## How much work is it?
#
# A rate needs a numerator. We count floating-point operations, and a multiplication and an addition count as two. Softmax and
# the mask are left out: they are few, and rates in papers leave them out as well (Dao 2023, section 4.1).
#
# Start with the table of lesson 01: 3 queries, 3 keys, d_k = 2. One score is 1·1 + 0·1: 2 multiplications and, adding to zero,
# 2 additions. **Predict** the total for q kᵀ and for weights · v together.

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
# The projections of the class cost 8 · T · d_model² operations, linear in T; attention is quadratic. **Predict** at which T,
# for d_model = 512, causal attention becomes the larger part.

# %% role="payoff" exercise="attention_flops"
if passed(attention_flops):
    figures.lesson_13.share_of_work(attention_flops)

# %% [markdown]
# ## A stopwatch that lies
#
# Two things go wrong when we read a clock once before and once after a call.
#
# The first call is different: libraries load, kernels are chosen, memory is asked for. And a GPU works *while Python goes on*.
# `a @ b` on a GPU returns as soon as the work is queued. A clock read then says how long it takes to ask, not how long it
# takes to compute, and the difference can be orders of magnitude. Where there is no GPU, a second thread stands in for one: it
# works through a queue while Python goes on.
#
# **Predict** the first and the tenth of ten readings of one product, and a reading that does not wait. On a CPU all times in
# this lesson are those of one thread, which other programs disturb less.

# %% role="demo"
figures.lesson_13.single_readings()

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

# %% role="payoff" exercise="time_ms"
if passed(time_ms):
    figures.lesson_13.right_and_wrong(time_ms)

# %% [markdown]
# Why the median and not the mean? Other programs run on the machine, too. A disturbed reading is only ever *longer*, it pulls the
# mean as far as it likes, and it moves the median by one place.
#
# ## One operator
#
# `F.scaled_dot_product_attention` computes the same attention. It works through the keys in blocks, keeps for each query the
# largest score so far and the sum so far, and mends both when a larger score comes (Milakov and Gimelshein 2018; Dao et al.
# 2022, algorithm 1). No (T, T) matrix is ever written. Below is what it replaces, and a comparison of the numbers.

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
# The numbers agree to float32. What is left for us is to bring x into the operator's layout without moving it more often than
# needed. A projection gives (B, T, 3 · d_model). `view` and `transpose` change only how the memory is read; `contiguous` copies,
# and so does a `reshape` that cannot be a view. **Predict** which of these four lines copy.

# %% role="demo" tags=["nbval-check-output"]
x = torch.zeros(2, 5, 12)
for name, y in (("view", x.view(2, 5, 3, 4)), ("transpose", x.view(2, 5, 3, 4).transpose(1, 2)),
                ("reshape of the transpose", x.view(2, 5, 3, 4).transpose(1, 2).reshape(2, 3, 20)),
                ("chunk", x.chunk(3, dim=-1)[1])):  # fmt: skip
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
# Now the experiment of this lesson: lesson 11's attention and our class, on a CPU from 128 to 2048 tokens and further
# where a GPU has the memory, the time by our own stopwatch and the memory that was asked for beyond the inputs. Both axes
# are logarithmic, so a power of T is a line and its exponent the slope.
#
# **Predict** four slopes: time and memory of each.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    figures.lesson_13.against_length(explicit_attention, FastCausalMultiHeadAttention, time_ms)

# %% [markdown]
# The operations grow with T² for both, so with growing T both times bend towards slope 2. The fused one lies lower and bends later,
# since the projections are linear in T and its larger part for longer. Memory is the clear case: slope 2 for the explicit scores,
# slope 1 for the operator. In the backward pass it *recomputes* what it did not keep, and Dao et al. (2022, section 3.2) find it
# faster nevertheless: on their GPUs moving numbers costs more than making them.
#
# Is the class itself cheap around the operator? We compare it with the bare operator plus two projections, and with
# `nn.MultiheadAttention`. On a GPU the goal is to stay within 5 % of the first and below the second (not verified on a GPU).

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(time_ms) and passed(FastCausalMultiHeadAttention):
    figures.lesson_13.overhead(FastCausalMultiHeadAttention, time_ms)

# %% [markdown]
# ## How near to the machine's limit?
#
# A device has two ceilings: how many operations a second it computes, and how many bytes a second it moves. Which one binds depends
# on the **intensity**, the operations for each byte moved. Drawn together they look like a roof (Williams et al. 2009, "Roofline").
# We measure both ceilings here: the rate of a large matrix product, and the bandwidth of a large copy.
#
# **Predict** under which part of the roof explicit attention lies.

# %% role="payoff" exercise="time_ms"
if passed(time_ms) and passed(attention_flops):
    figures.lesson_13.roofline(explicit_attention, attention_flops, time_ms)

# %% [markdown]
# The horizontal position is a count, not a measurement: the fused operator needs to move only q, k, v and its output, explicit
# attention moves the scores several times besides. The vertical one is the counted operations over the time by our stopwatch. What
# lies far below the roof has something else to wait for: softmax's exponentials, which we did not count, or
# hidden scores: explicit attention computes them all and we count half.
#
# ## Fewer bits
#
# Fewer bits are fewer bytes to move, and many GPUs have units that multiply 16-bit numbers many times faster. The price is the error.
# bfloat16 keeps float32's range and about 2 to 3 digits; TF32 is a mode of CUDA GPUs that reads float32 inputs with 10 bits after
# the point. We compare with float64, on weights as a model has them.

# %% role="demo"
figures.lesson_13.precision(explicit_attention)

# %% [markdown]
# Training in bfloat16 keeps the weights in float32 and lets `torch.autocast` choose where fewer bits do no harm: products yes,
# softmax and sums no (Micikevicius et al. 2018, section 3). Our class needs no change for that.

# %% role="payoff" exercise="FastCausalMultiHeadAttention"
if passed(FastCausalMultiHeadAttention):
    torch.manual_seed(0)
    layer, x = FastCausalMultiHeadAttention(64, 4), torch.randn(2, 100, 64)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        y = layer(x)
    error = (y.float() - layer(x)).abs().max().item()
    print(f"autocast gives {y.dtype}, weights stay {layer.qkv.weight.dtype}; largest difference {error:.0e}")

# %% [markdown]
# ## Who computes it?
#
# Behind the one operator stand several implementations, called backends, and torch chooses by device, type and shape. Its choice is
# not always the fastest, so a report of a rate says which one ran. `torch.compile` writes fused kernels for ordinary code, and
# FlexAttention does so for attention with a mask that is a *function*, such as lesson 06's (Dong et al. 2024). Both compile for tens of
# seconds on a CPU before the first number comes, which is why we try them only on a CUDA GPU.

# %% role="demo"
figures.lesson_13.backends(explicit_attention)

# %% [markdown]
# ## Break it on purpose: one query and a cache
#
# When text is generated, one new query meets all keys so far. Lesson 06's mask lets the last query see every key. **Predict** what
# `is_causal=True` makes of one query and three keys whose values are 10, 20 and 60.

# %% role="demo" tags=["nbval-check-output"]
one_query, keys = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 3, 4)
values = torch.tensor([10.0, 20.0, 60.0]).reshape(1, 1, 3, 1).expand(1, 1, 3, 4)
for flag in (True, False):
    output = F.scaled_dot_product_attention(one_query, keys, values, is_causal=flag)
    print(f"is_causal={flag}: {output[0, 0, 0, 0].item():.0f}")

# %% [markdown]
# With equal scores the right answer is the mean, 30. `is_causal=True` counts from the *first* key: query 0 sees key 0
# alone. For a cache the flag has to be off, or the mask has to say what is meant. The numbers are finite and the shapes
# right, so only a test with T_q ≠ T_k tells.
#
# ## What we keep
#
# - Ask what is available, not what was built.
# - Count operations before quoting a rate; say what was left out.
# - Warm up, wait for the device, take the median. A stopwatch that does not wait measures the asking.
# - The fused operator computes the same T² products and keeps no T² matrix: memory grows with T.
# - Bytes moved decide at least as much as operations.
#
# Sources: Dao et al. 2022, *FlashAttention*, sections 2 and 3; Dao 2023, *FlashAttention-2*; Milakov and Gimelshein 2018, *Online
# normalizer calculation for softmax*; Williams et al. 2009, *Roofline*; Micikevicius et al. 2018, *Mixed precision training*; Dong et al.
# 2024, *Flex Attention*; the PyTorch documentation of `scaled_dot_product_attention`.
#
# ## Where this goes on
#
# Longer contexts split the tokens over several GPUs (Liu et al. 2023, *Ring Attention*), and generation is limited by the cache of keys
# and values, which shared heads make smaller (Ainslie et al. 2023, *GQA*). Every part of the road is ours now, from three tokens to this.

# %% role="demo"
progress()
