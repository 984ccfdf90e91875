# %% [markdown]
# # 15 · A kernel of your own: attention as a GPU program
#
# **A tile of scores should never leave the chip. Which program can keep it there?**
#
# **Before this lesson:** lesson 11 (kernels, memory traffic, the fused operator) and lesson 14 (attention in tiles). No GPU is needed.
#
# In lesson 14 you cut attention into tiles, so that the score matrix is never stored. How much memory traffic does that save? On a GPU
# each operator of PyTorch is a kernel, which reads its inputs from main memory and writes its result there. The folded cells count this
# (as if there were no cache) for one causal head with 1,024 tokens of 64 numbers.

# %% role="given"
import math
import os
import time
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported: its interpreter runs kernels on a CPU
try:
    import triton
    import triton.language as tl
except ImportError:  # macOS, Windows: kernels can be written here, not run
    triton, tl = SimpleNamespace(jit=lambda kernel: kernel), SimpleNamespace(constexpr=int)

# %% role="given" tags=["hide-input"]
kernels_run = hasattr(tl, "load")
here = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def eager_attention(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """Attention with the whole score matrix, as in lesson 11. hidden: (T, T), True where a key may not be seen."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, block_size: int) -> Tensor:
    """Lesson 14's causal attention in tiles, without the logsumexp, for as many queries as keys."""
    outputs = []
    for top in range(0, q.shape[-2], block_size):
        q_tile = q[..., top : top + block_size, :]
        rows = torch.arange(top, top + q_tile.shape[-2], device=q.device)
        m = q_tile.new_full(q_tile.shape[:-1], -math.inf)
        l, o = torch.zeros_like(m), torch.zeros_like(q_tile)
        for left in range(0, top + q_tile.shape[-2], block_size):
            k_tile, v_tile = k[..., left : left + block_size, :], v[..., left : left + block_size, :]
            columns = torch.arange(left, left + k_tile.shape[-2], device=q.device)
            scores = (q_tile @ k_tile.mT / math.sqrt(q.shape[-1])).masked_fill(columns > rows[:, None], -math.inf)
            m_new = torch.maximum(m, scores.amax(dim=-1))
            rescale, p = torch.exp(m - m_new), torch.exp(scores - m_new[..., None])
            l, o, m = l * rescale + p.sum(dim=-1), o * rescale[..., None] + p @ v_tile, m_new
        outputs.append(o / l[..., None])
    return torch.cat(outputs, dim=-2)

# %% role="demo" tags=["hide-input", "nbval-check-output"]
q, k, v = torch.randn(3, 1, 1, 1024, 64)
future = torch.ones(1024, 1024, dtype=torch.bool).triu(1)
eager = figures.kernel.operators(lambda: eager_attention(q, k, v, future))
tiled = figures.kernel.operators(lambda: tiled_attention(q, k, v, 64))
for way, count in {"eager attention": eager, "tiles of 64 in PyTorch": tiled}.items():
    print(f"{way:23} {count.kernels:5,} kernels move {count.bytes / 2**20:.1f} MiB")

# %% [markdown]
# The tiles move *more*. Each is a tensor, so every step of the loop writes it and reads it again. PyTorch's fused operator
# needs one kernel: a tile of scores is computed, used and forgotten on the chip. No loop over tensors can express
# that. A program that runs on the GPU itself can, and you now write one, in about thirty lines.
#
# ## The language
#
# **Triton** (Tillet et al. 2019) is a language for GPU kernels inside Python. Python does not run a function below `@triton.jit`: Triton
# compiles it for the GPU. Without a GPU, Triton's **interpreter** runs it on the CPU. The first cell has chosen:

# %% role="demo"
print(figures.kernel.where(triton))

# %% [markdown]
# ## One kernel, many programs
#
# A kernel is started many times at once. Each of these runs is a **program** (or *program instance*), and all together are the
# **grid**. All run the same lines. Each asks for its own number, `tl.program_id(0)`, and works out its share from it.
#
# That share is a **block**: the entries that a program handles at once. Their number is a power of two. One place of a block is a
# **lane** (in CUDA: one thread of a warp).
#
# A kernel does not get tensors. In place of `x` it gets a **pointer**, the address of x's first entry. Memory is one long row of
# entries, and `x + 3` points to the entry three places further on. The 3 is an **offset**. A pointer knows neither shape nor end.
# Here is a vector of ten entries in blocks of four:

# %% role="demo" tags=["nbval-check-output"]
figures.kernel.vector(10, 4)
for program in range(3):
    offsets = program * 4 + torch.arange(4)
    print(f"program {program}: offsets {offsets.tolist()}, mask {(offsets < 10).tolist()}")

# %% [markdown]
# The **mask** is True in the lanes that take part. The last two do not: entries 10 and 11 belong to something else.
#
# Now a whole kernel. It writes into each entry of `out` the number of the program that owns it. `owner_kernel[(3,)]` starts three programs,
# and passes a tensor on as a pointer.

# %% role="demo"
@triton.jit
def owner_kernel(out, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, program, mask=offsets < n)


if kernels_run:
    owner = torch.full((10,), -1, device=here)
    owner_kernel[(3,)](owner, 10, BLOCK=4)
    print(owner.tolist())

# %% [markdown]
# - `tl.arange(0, BLOCK)` is the block 0, 1, …, BLOCK − 1. `BLOCK` is a **compile-time constant** (`tl.constexpr`): a block's size has to be
#   known when the kernel is compiled. Apart from its arguments a kernel sees no number of the notebook.
# - `out + offsets` is a block of pointers, one for each lane.
# - `tl.store(pointers, values, mask=…)` writes. `tl.load(pointers, mask=…, other=…)` reads a block of values. Masked lanes read nothing;
#   they get the value `other`.

# %% [markdown]
# @predict
#
# What would `owner` be with a grid of two programs, `owner_kernel[(2,)]`?
#
# - **A** The same: the two share the work.
# - **B** The last two entries stay −1.
# - **C** An error, since the grid is too small.
#
# @answer
#
# **B.** No program has the offsets 8 and 9, and nobody notices. With `torch.empty` they would be whatever was there before.
#
# @wrong
#
# The launch alone decides how many programs run.

# %% [markdown]
# @exercise triton_add
#
# `x`, `y`, two tensors of one shape, any number of entries from 1 on → `x + y`
#
# Write the kernel, and the Python function that makes an empty output, chooses block and grid, and launches. The function may read
# shapes, make empty tensors and take views, and does no arithmetic on tensors. `triton.cdiv(a, b)` is a / b, rounded up. Lanes beyond
# the end must be masked in every load and store: the check looks at each address.

# %% role="exercise" exercise="triton_add"
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    """One program: the sum of one block. x, y, out: pointers to n numbers each."""
    # region solution
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)
    # endregion


def triton_add(x: Tensor, y: Tensor) -> Tensor:
    """x + y by a kernel. x, y: contiguous, of one shape, any number of entries from 1 on. Returns: their shape and dtype."""
    # region solution
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out
    # endregion

# %% role="check" exercise="triton_add"
check(triton_add)

# %% [markdown]
# ## One row per program: softmax
#
# A matrix lies in memory row after row, so entry (i, j) of a matrix with n columns has the offset i · n + j. The n is a **stride**: how far
# it is from one row to the next. (`x.stride()` has one for each axis.) Now each program takes a row. Six entries need eight lanes:

# %% role="demo"
figures.kernel.rows(4, 6, 8)

# %% [markdown]
# Softmax needs the row's maximum and a sum. An operation that makes one number from many lanes is a **reduction**:
# `tl.max(block, axis=0)`, `tl.sum(block, axis=0)`. All lanes count, masked ones too.

# %% [markdown]
# @predict
#
# The row (ln 2, 0, 0) has the softmax (2/4, 1/4, 1/4). A program reads it into four lanes with `other=0`, takes softmax over the block, and
# stores three lanes. What does it store? Which `other` is right?
#
# @answer
#
# (2/5, 1/5, 1/5): the fourth lane counts as a third score of 0. With `other=-float("inf")` it adds exp(−∞) = 0, and it is never the
# maximum.
#
# @wrong
#
# The store's mask hides the fourth lane's *result*. The sum has counted it before.

# %% [markdown]
# @exercise triton_softmax
#
# `x` (rows, n), 1 ≤ n ≤ 2048 → softmax of each row, (rows, n)
#
# Entries may be ±10,000, and some −∞, never a whole row. x is float32 or float16; compute in float32, `block.to(tl.float32)`. A store
# converts back by itself. `triton.next_power_of_2(n)` helps. As before, no arithmetic of PyTorch.

# %% role="exercise" exercise="triton_softmax"
@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    """One program: the softmax of one row. x, out: pointers to rows of n numbers each; BLOCK: a power of two, n or more."""
    # region solution
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    offsets = tl.program_id(0) * n + columns
    scores = tl.load(x + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(out + offsets, p / tl.sum(p, axis=0), mask=mask)
    # endregion


def triton_softmax(x: Tensor) -> Tensor:
    """Softmax over the last axis by a kernel. x: (rows, n), contiguous, 1 ≤ n ≤ 2048. Returns: (rows, n) in x's dtype."""
    # region solution
    rows, n = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
    # endregion

# %% role="check" exercise="triton_softmax"
check(triton_softmax)

# %% [markdown]
# What has that saved? Written out step by step, softmax is five kernels of PyTorch. Yours is one, like `torch.softmax`:

# %% role="payoff" exercise="triton_softmax"
if passed(triton_softmax):
    def by_hand(x):
        p = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return p / p.sum(dim=-1, keepdim=True)

    operators = figures.kernel.operators(partial(by_hand, torch.randn(256, 1000)))
    yours = figures.kernel.kernel_traffic(triton_softmax, (256, 1000))
    for way, count in {"operators": operators, "yours": yours}.items():
        print(f"{way:10} {figures.kernel.bytes_per_entry(count, 256_000)}")
    assert isinstance(yours, str) or yours.bytes < operators.bytes

# %% [markdown]
# Four bytes are read and four are written. Everything in between happens on the chip. A program's blocks live in **registers**, right
# beside the arithmetic units, and in **shared memory**, lesson 14's SRAM, where lanes exchange numbers. The rule for us
# is simple: **in your code only `tl.load` and `tl.store` move anything to or from main memory.** A tile that is never stored never
# travels. (Unless registers run out; then the compiler *spills* numbers to main memory.)
#
# ## Attention as one kernel
#
# Lesson 14's outer loop, over tiles of queries, becomes the grid: one program for one tile of queries in one head. The inner loop, over
# tiles of keys and values, stays a loop in the kernel, and m, l and o stay on the chip until it ends. A causal text of 256 tokens, with 64
# queries and 32 keys per tile:

# %% role="demo"
read, tiles = figures.kernel.schedule(256, queries=64, keys=32)
assert (read, tiles) == (20, 32)

# %% [markdown]
# @predict
#
# Why a program for each tile of *queries*, with a loop over keys? Could each program take a tile of keys and loop over the queries?
#
# @answer
#
# An output needs all keys of its query. A program that meets them all keeps m, l and o to itself and stores once. Programs that own keys
# would each have a part of *every* output, and would have to add to the same entries of main memory at the same time.
#
# @wrong
#
# Both ways compute the same tiles. They differ in who writes what.

# %% [markdown]
# A grid may have two axes; `tl.program_id(1)` counts the second. Two texts of 256 tokens, with three heads each, need 24
# programs:

# %% role="demo"
programs = figures.kernel.grid(batch=2, heads=3, t=256, queries=64, keys=32, program=(2, 4))
assert programs == (4, 6)

# %% [markdown]
# And a tile needs a table of offsets. As in PyTorch, a column and a row make one, `rows[:, None] * stride + columns[None, :]`, and masks
# broadcast the same way. Here program 1 forms its tile of a matrix with five rows of four entries, in tiles of four rows:

# %% role="demo"
figures.kernel.tile(program=1, rows=5, columns=4, block=4)

# %% [markdown]
# @predict
#
# `q` has the shape (B, H, T, d) = (2, 3, 5, 4), and lies in memory entry after entry. What is the offset of `q[1, 2, 3, 1]`?
#
# @answer
#
# Offset {{ torch.arange(120).view(2, 3, 5, 4)[1, 2, 3, 1].item(); it == 113 }}. It is in head 1 · 3 + 2 = 5 of the six,
# each of 5 · 4 entries. So the offset is (5 · 5 + 3) · 4 + 1.
#
# @wrong
#
# In `torch.arange(120).view(2, 3, 5, 4)` each entry is its own offset.

# %% [markdown]
# The lines of your loop, in Triton:
#
# | lesson 14 | in a kernel |
# |---|---|
# | `k[..., left:left + block_size, :]` | `tl.load(k + offsets, mask=…, other=…)` |
# | `q_tile @ k_tile.mT` | `tl.dot(q_tile, tl.trans(k_tile))`; the summed axis has 16 entries or more |
# | `q.new_full((n,), -math.inf)`, `new_zeros` | `tl.full((N,), -float("inf"), tl.float32)`, `tl.zeros((N, D), tl.float32)` |
# | `scores.amax(dim=-1)`, `p.sum(dim=-1)` | `tl.max(scores, axis=1)`, `tl.sum(p, axis=1)` |
# | `torch.maximum`, `torch.exp` | `tl.maximum`, `tl.exp` |
# | `scores.masked_fill(hidden, -math.inf)` | `tl.where(seen, scores, -float("inf"))` |
# | `for left in range(0, visible, block_size)` | the same, with `tl.minimum(a, b)` if you need it |
# | `if causal:` | the same, with `CAUSAL: tl.constexpr` |
#
# One thing that PyTorch did for you is yours now: a slice ends where the tensor does, and a block does not. Which score do the keys beyond
# the end get?

# %% [markdown]
# @exercise triton_attention
#
# `q` (B, H, T_q, d), `k` and `v` (B, H, T_k, d), d one of 16, 32, 64, 128; `causal` → (B, H, T_q, d)
#
# T_q and T_k are any numbers from 1 on. Causal means, as in lesson 14, that query i sees key j where j ≤ i + T_k − T_q, with T_k ≥ T_q. A
# program reads each key once at most, and if causal, no tile without a visible key. Inputs are float32 or float16; m, l and o are
# float32, and the two factors of a `tl.dot` have one dtype. Write it without the mask first, check, then add the mask. Tiles of 64
# queries and 32 keys are a good choice.

# %% role="exercise" exercise="triton_attention"
@triton.jit
def attention_kernel(
    q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    """One program: the output of one tile of queries in one head.

    q, out: pointers to (heads, t_q, D); k, v: to (heads, t_k, D), the heads of all items of the batch one after the other.
    """
    # region solution
    top, head = tl.program_id(0) * QUERIES, tl.program_id(1)
    rows, features = top + tl.arange(0, QUERIES)[:, None], tl.arange(0, D)[None, :]
    q_at = (head * t_q + rows) * D + features
    q_tile = tl.load(q + q_at, mask=rows < t_q, other=0.0)
    m = tl.full((QUERIES,), -float("inf"), tl.float32)
    l = tl.zeros((QUERIES,), tl.float32)
    o = tl.zeros((QUERIES, D), tl.float32)
    visible = tl.minimum(t_k, top + QUERIES + t_k - t_q) if CAUSAL else t_k
    for left in range(0, visible, KEYS):
        columns = left + tl.arange(0, KEYS)
        k_at = (head * t_k + columns[:, None]) * D + features
        k_tile = tl.load(k + k_at, mask=columns[:, None] < t_k, other=0.0)
        v_tile = tl.load(v + k_at, mask=columns[:, None] < t_k, other=0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile)) * scale
        seen = columns[None, :] < t_k
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows + (t_k - t_q))
        scores = tl.where(seen, scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))  # finite from the first tile on: every query sees key 0
        rescale, p = tl.exp(m - m_new), tl.exp(scores - m_new[:, None])
        l = l * rescale + tl.sum(p, axis=1)
        o = o * rescale[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)
        m = m_new
    tl.store(out + q_at, o / l[:, None], mask=rows < t_q)
    # endregion


def triton_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Exact attention in one kernel, a tile of queries per program. q: (B, H, T_q, d), k, v: (B, H, T_k, d), contiguous.

    d: 16, 32, 64 or 128. causal: query i sees key j where j ≤ i + T_k − T_q, and T_k ≥ T_q.
    Returns: (B, H, T_q, d) in q's dtype.
    Source:  Dao 2023, "FlashAttention-2", algorithm 1, forward.
    """
    # region solution
    b, h, t_q, d = q.shape
    t_k = k.shape[2]
    out = torch.empty_like(q)
    queries, keys = 64, 32
    grid = (triton.cdiv(t_q, queries), b * h)
    attention_kernel[grid](q, k, v, out, t_q, t_k, 1 / math.sqrt(d), CAUSAL=causal, D=d, QUERIES=queries, KEYS=keys)
    return out
    # endregion

# %% role="check" exercise="triton_attention"
check(triton_attention)

# %% [markdown]
# Any length works, exact up to rounding (on a GPU, TF32's). Against PyTorch's own operator:

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention):
    torch.manual_seed(15)
    for t_q, t_k, dtype in ((70, 70, torch.float32), (37, 150, torch.float32), (37, 150, torch.float16)):
        q = torch.randn(2, 3, t_q, 32, device=here, dtype=dtype)
        k, v = torch.randn(2, 2, 3, t_k, 32, device=here, dtype=dtype)
        seen = torch.ones(t_q, t_k, dtype=torch.bool, device=here).tril(t_k - t_q)
        gap = (triton_attention(q, k, v, causal=True) - F.scaled_dot_product_attention(q, k, v, seen)).abs().max().item()
        print(f"{t_q} queries, {t_k} keys, {dtype}: largest difference {gap:.0e}")
        assert gap < (1e-5 if dtype == torch.float32 and here.type == "cpu" else 2e-2)

# %% [markdown]
# The count from the beginning, of your kernel's loads and stores in the interpreter:

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention):
    mine = figures.kernel.kernel_traffic(triton_attention, *[(1, 1, 1024, 64)] * 3, causal=True)
    once = 4 * 1024 * 64 * 4  # q, k, v and the output, 4 bytes a number
    figures.kernel.traffic({"eager attention": eager, "tiles in PyTorch": tiled, "your kernel": mine}, once)
    assert isinstance(mine, str) or once <= mine.bytes < eager.bytes

# %% [markdown]
# The course's kernel moves {{ tiled.bytes / mine.bytes:.0f; it >= 8 }} times less than the tiles in PyTorch. That is more than each tensor
# once, because every program reads K and V anew. More queries in a tile make fewer programs, each of which holds more:

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention):
    def moved(queries, t=1024, d=64):
        """Bytes to and from main memory: q and the output once; for each tile of queries, the keys and values up to its end."""
        return 4 * d * (2 * t + 2 * sum(range(queries, t + 1, queries)))

    def held(queries, keys=32, d=64):
        """Bytes on the chip for one program: q and o, a tile of k and of v, and their scores. (A compiler puts some into registers.)"""
        return 4 * (2 * queries * d + 2 * keys * d + queries * keys)

    figures.kernel.fast_memory({n: (held(n), moved(n)) for n in (16, 32, 64, 128, 256, 512, 1024)}, mine)
    assert held(64) < 64 * 1024 < held(128) < 163 * 1024 < held(256) < 227 * 1024 < held(512)

# %% [markdown]
# With 64 queries the formula gives {{ moved(64) / 2**20:.1f; it == mine.bytes / 2**20 }} MiB, exactly what was counted. With 128 it
# would be {{ moved(128) / 2**20:.1f; it < 3 }}. By this count a T4 has room for 64, an A100 for 128, an H100 for 256.
#
# ## Would a GPU take it?
#
# The interpreter is more patient than a GPU:
#
# | what the interpreter lets pass | on a GPU |
# |---|---|
# | a masked lane without `other` is 0 | no number is promised |
# | `tl.dot` that sums over fewer than 16 entries | refused by the compiler |
# | `tl.dot` of float32, in full precision | rounded to TF32, unless `input_precision="ieee"` is given |
# | programs one after the other | many at once: two that write one entry race |
# | bfloat16, computed wrongly | right results |
# | `break`, `list.append` | refused by the compiler |
#
# A compiler needs no GPU: each check asks it, and the folded cell compiles your kernel for three cards, in float32 with d = 128:

# %% role="payoff" exercise="triton_attention" tags=["hide-input"]
if passed(triton_attention):
    built = figures.kernel.compile_for_cards(triton_attention, *[(1, 1, 1024, 128)] * 3, dtype="float32", causal=True)
    for card, one in built.items():
        limit = figures.kernel.CARDS[card][1]
        if not isinstance(one, str):
            cores = "yes" if one.tensor_core_instructions else "no"
            one = f"{one.shared_kb:.0f} of {limit} KB shared memory; tensor cores: {cores}"
        print(f"{card:5} {one}")

# %% [markdown]
# The course's kernel becomes machine code for all three, and its tiles fit; if yours don't, take smaller. `tl.dot` uses tensor
# cores. A T4 has them; Triton since 3.3 leaves them unused.
#
# ## How fast is it?
#
# Only a GPU can say. On one, the folded cell times three ways (`triton.testing.do_bench`: medians, the cache cleared each time). Elsewhere
# stands a stored run.

# %% role="payoff" exercise="triton_attention" tags=["hide-input"]
if passed(triton_attention) and here.type == "cuda":
    bench, dtype = figures.gpu, torch.float16
    ways = {
        "eager": lambda q, k, v, hidden: eager_attention(q, k, v, hidden),
        "fused operator": lambda q, k, v, hidden: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "your kernel": lambda q, k, v, hidden: triton_attention(q, k, v, causal=True),
    }
    (batch, heads, d), times = figures.kernel.SIZES, {way: {} for way in ways}
    for t in (512, 1024, 2048, 4096, 8192):
        q, k, v = torch.randn(3, batch, heads, t, d, device=here, dtype=dtype)
        hidden = torch.ones(t, t, dtype=torch.bool, device=here).triu(1)
        for way, call in ways.items():
            timed = partial(triton.testing.do_bench, partial(call, q, k, v, hidden), return_mode="median")
            times[way][t] = bench.attempt(timed)
    shape = f"batch {batch}, {heads} heads of {d}, causal, {bench.dtype_name(dtype)}"
    bench.record("kernel", {"shape": shape, "ms": times, "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")})

# %% role="demo"
figures.kernel.speed(figures.kernel.newest_run(figures.gpu))

# %% [markdown]
# {{ figures.kernel.speed_in_words(figures.kernel.newest_run(figures.gpu)); it }} Eager attention waits for memory at
# every T; the other two use more of the chip's arithmetic the longer the text.
#
# ## Your kernel writes
#
# Last, lesson 10's model on your kernel. The folded cell loads your checkpoint, or trains for a few hundred steps.

# %% role="payoff" exercise="triton_attention" tags=["hide-input"]
if passed(triton_attention):
    class Attention(nn.Module):
        """Causal self-attention; attend(q, k, v) does the work."""

        attend = staticmethod(partial(F.scaled_dot_product_attention, is_causal=True))

        def __init__(self, d, heads):
            super().__init__()
            self.heads, self.qkv, self.proj = heads, nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous() for part in self.qkv(x).chunk(3, dim=-1))
            return self.proj(Attention.attend(q, k, v).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class Writer(nn.Module):
        """Lesson 10's model; names as in its checkpoint."""

        def __init__(self, vocabulary, d=128, heads=4, layers=2, max_len=64):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(max_len, d)
            self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

        def forward(self, ids):
            x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
            return self.head(self.norm(self.blocks(x)))

    text, kept = figures.language_model.reference_text(), figures.language_model.checkpoint()
    characters = sorted(set(text))
    torch.manual_seed(10)
    writer = Writer(len(characters))
    if kept.is_file():
        writer.load_state_dict(torch.load(kept, map_location="cpu", weights_only=True)["model"])
    else:
        from grader.figures import meter

        ids = torch.tensor([characters.index(one) for one in text])
        optimizer = torch.optim.AdamW(writer.parameters(), betas=(0.9, 0.95))
        for number, step in enumerate(meter.training_steps("training", 300)):
            optimizer.param_groups[0]["lr"] = 4e-3 * min(number / 30 + 0.1, (300 - number) / 200, 1)
            windows = ids[torch.randint(len(ids) - 65, (16, 1)) + torch.arange(65)]
            step.loss = F.cross_entropy(writer(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
            optimizer.zero_grad()
            step.loss.backward()
            optimizer.step()
    writer.to(here).eval()

    @torch.no_grad()
    def write(attend, beginning="If the object is ", length=47):
        """Text with the attention attend(q, k, v); and the logits of reading all of it once more."""
        Attention.attend, draws = staticmethod(attend), torch.Generator().manual_seed(1)
        ids = torch.tensor([[characters.index(one) for one in beginning]], device=here)
        for _ in range(length):
            weights = torch.softmax(writer(ids)[:, -1] / 0.7, dim=-1).cpu()
            ids = torch.cat([ids, torch.multinomial(weights, 1, generator=draws).to(here)], dim=1)
        return "".join(characters[number] for number in ids[0].tolist()), writer(ids)

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention):
    theirs, right = write(partial(F.scaled_dot_product_attention, is_causal=True))
    ours, logits = write(partial(triton_attention, causal=True))
    for way, written in (("fused operator", theirs), ("your kernel", ours)):
        print(f"{way:15} {written}".replace("\n", "↵"))
    print(f"largest difference of a logit: {(logits - right).abs().max().item():.0e}")
    assert here.type != "cpu" or (ours == theirs and (logits - right).abs().max() < 1e-4)

# %% [markdown]
# The same text, character for character, with attention from a GPU program that you wrote.

# %% [markdown]
# ## Further: a real model on your kernel
#
# Thirty layers of a model that others have trained, on your attention. For anyone who has lesson 17's optional weights.

# %% [markdown]
# SmolLM2-135M (Allal et al. 2025) has 30 blocks with nine heads of 64 numbers. Three parts of its blocks are newer than lesson 09's, and
# lesson 17 is about them, so here the course's `figures.kernel.real_logits` runs all but attention. For that it calls `attend(q, k, v)`
# once in each block, with q, k and v (1, 9, T, 64).

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention):
    from grader.data import smollm2

    real = smollm2.load() if smollm2.available() else None
    if real is None:
        print(smollm2.how_to_get())

# %% role="payoff" exercise="triton_attention"
if passed(triton_attention) and real:
    ids, attend = real.encode("The capital of France is"), partial(triton_attention, causal=True)
    for _ in range(2):
        ids.append(figures.kernel.real_logits(real, torch.tensor(ids), attend, here).argmax().item())
    print(real.decode(ids))
    assert " Paris" in real.decode(ids)

# %% [markdown]
# ## Further: which block sizes?
#
# You chose 64 and 32, or others. For those with a GPU: how Triton finds the fastest choice by itself.

# %% [markdown]
# Large tiles move less and need more fast memory. Small ones leave room for several programs on one processor, which hide each other's
# waiting. The best choice is hard to predict. **Autotuning** tries a list, times each configuration once for each new value of the
# arguments in `key`, and keeps the fastest:
#
# ```python
# @triton.autotune(
#     configs=[triton.Config({"QUERIES": q, "KEYS": k}, num_warps=w) for q in (64, 128) for k in (32, 64) for w in (4, 8)],
#     key=["t_q", "t_k"],
# )
# @triton.jit
# def attention_kernel(...): ...
# ```
#
# The launch then leaves `QUERIES` and `KEYS` out, and the grid is a function of the choice: `lambda meta: (triton.cdiv(t_q,
# meta["QUERIES"]), b * h)`. A **warp** is a group of 32 threads that step together; `num_warps` says how many carry out one program. A list
# of several cannot be tried in the interpreter, so keep one `Config` there. Triton's tutorials *Matrix Multiplication* and *Fused
# Attention* tune in this way.

# %% [markdown]
# ## Further: the backward pass
#
# What training with this kernel would take. For those who have done lesson 14's further part.

# %% [markdown]
# `triton_attention` cannot be trained through: autograd does not look into a kernel. What is missing is lesson 14's
# `tiled_attention_backward` as kernels, and a `torch.autograd.Function` around both. The forward kernel stores one more number for each
# query, the logsumexp m + log l. FlashAttention-2's backward pass (Dao 2023, algorithm 2 and section 3.2) gives a program a tile of *keys*,
# since the gradients of k and v collect over queries; the gradient of q then collects over programs, by `tl.atomic_add` or in a second
# pass. Triton's tutorial *Fused Attention* computes all three gradients in one kernel, without atomics.

# %% [markdown]
# ## Further: finding a bug in a kernel
#
# For anyone whose check has failed more than twice: how to look inside.

# %% [markdown]
# - In the interpreter a kernel is Python. `print(scores)` in it prints a block, and `breakpoint()` stops there. Start with a grid of
#   one program and a tensor that fits into one block.
# - On a GPU, `tl.device_print("scores", scores)` prints lane by lane, from each thread: 256 lines for a program with four lanes.
#   `tl.static_print` prints while it is compiled: shapes and dtypes.
# - Addresses go wrong more often than arithmetic. Give each entry its own offset as value, `torch.arange(n)`, load, store, and compare.
# - Make lengths that no block divides the *first* test: 1, 17, 70. A Triton kernel in the FlashAttention repository built its mask in one
#   line and stored without it in the next (Dao-AILab/flash-attention#2790). Tests with whole blocks passed.

# %% role="demo"
@triton.jit
def look_kernel(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_print("lanes", tl.load(x + offsets, mask=offsets < n, other=-1.0))


if kernels_run and here.type == "cpu":
    look_kernel[(2,)](torch.arange(6.0, device=here), 6, BLOCK=4)

# %% [markdown]
# What a compiler refuses, the interpreter may not even notice. This kernel runs in it, and on no GPU:

# %% role="demo"
@triton.jit
def square_kernel(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    block = tl.load(x + offsets)
    tl.store(out + offsets, tl.dot(block, block))


def square(x):
    out = torch.empty_like(x)
    square_kernel[(1,)](x, out, N=x.shape[0])
    return out


if kernels_run:
    print("8 × 8, A100:", figures.kernel.compile_for_cards(square, (8, 8))["A100"])

# %% [markdown]
# ## What we keep
#
# - A kernel is started as a grid of programs. A program finds its own block from its number.
# - A pointer has no shape and no end. Offsets say where an entry lies, and a mask which lanes exist, in every load and store.
# - Reductions count all lanes: choose `other` so that a masked one changes nothing.
# - Only loads and stores move anything to or from main memory; what a program does not store stays on the chip.
# - The interpreter shows right and wrong, a compiler what a GPU would take, and only a GPU how fast it is.
#
# | what | shape, or number |
# |---|---|
# | grid of `triton_attention` | (T_q / QUERIES, rounded up; B · H) |
# | in one program: q and o; k, v; scores; m, l | (QUERIES, d); (KEYS, d); (QUERIES, KEYS); (QUERIES,) |
# | offset of entry (b, h, i, j) | ((b · H + h) · T + i) · d + j |
#
# Sources: Tillet et al. 2019, *Triton: an intermediate language and compiler for tiled neural network computations*; Dao et al. 2022 and
# Dao 2023, *FlashAttention* 1 and 2; Triton's tutorials *Vector Addition*, *Fused Softmax*, *Fused Attention*.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with attention as a GPU program that they wrote, and with the one rule behind every fused kernel: only loads and stores
# touch main memory. Each exercise adds one thing: a mask; a reduction over masked lanes; a loop that carries m, l and o. No GPU is needed.
# Checks always run in Triton's interpreter, in a process of their own, since a wild pointer ends a process; they see each address, and say
# which entry was read beyond its tensor.
#
# ## Cut for 60 minutes
#
# "One kernel, many programs" with `triton_add`, "One row per program" with its prediction, and the two pictures of attention. Show
# `triton_attention` solved, then "your kernel writes".
#
# ## Cut for 90 minutes
#
# All three exercises, the third in pairs: one writes the offsets and masks, one the loop. Leave out "Would a GPU take it?".
#
# ## Mistakes to expect
#
# - triton_add KN4: Which program owns the last entry, and how many programs did you launch?
# - triton_add KN3: Where does lane 3 of the last block write, if nothing masks it?
# - triton_softmax KN21: Which lanes does the sum count, and what does each add?
# - triton_softmax KN23: In memory, how far is row 1 from row 0?
# - triton_softmax KN20: What is the largest number that exp meets in your kernel?
# - triton_attention KN40: What is the score of a key that does not exist?
# - triton_attention TI18: What is l relative to before this tile, and after it?
# - triton_attention KN47: Which is the last key that any query of this tile may see?
# - triton_attention KN52: At which entry does head 1 of the keys begin, and at which head 1 of the queries?
#
# ## To discuss
#
# - Why does a program not own a tile of keys? (A good answer: every output would then be shared by many programs, which would have to add
#   into main memory at the same time. FlashAttention-2's backward pass does it for k and v, whose gradients collect over queries.)
# - The tiles in PyTorch moved more than eager attention. Was lesson 14 wrong? (No: its subject was memory, what must *fit*. What *moves*
#   depends on where a tile lives.)
# - A kernel passes every test in the interpreter. What can still go wrong on a GPU? (The table of "Would a GPU take it?": lanes without
#   `other`, TF32, races; and the picture before it: too much for the fast memory. The checks look for some of these, and ask the
#   compiler; only a GPU finds all.)
#
# ## On paper
#
# A matrix of 3 rows and 5 columns is read by one program a row, in blocks of 8. Which offsets does program 2 form, which lanes are
# masked, and what would lane 5 of program 0 read without a mask? *Solution:* 10 to 17; lanes 5, 6 and 7; offset 5, the first entry of row
# 1.
