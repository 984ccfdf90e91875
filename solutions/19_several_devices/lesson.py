# %% [markdown]
# # 19 · Several devices: one attention that none of them holds
#
# **No device can hold it all. How can several compute one attention, and get what one would have got?**
#
# **Before this lesson:** lesson 09 (`qkv`, `proj` and the heads of `CausalMultiHeadAttention`), lesson 14 (partial results and how they
# merge).
#
# GPT-3 has 96 blocks like the one that you built in lesson 09, with d_model = 12,288 (Brown et al. 2020, table 2.1). What would it take to
# let it read a text of a million tokens, with two bytes per number?

# %% role="given" tags=["hide-input"]
import ast
import contextlib
import importlib
import inspect
import itertools
import json
import math
import os
import queue
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo" tags=["nbval-check-output"]
parameters, d_model, tokens = 175e9, 12_288, 1e6
print(f"all parameters:                                      {2 * parameters / 1e9:3.0f} GB")
print(f"queries, keys, values and output of one single block: {2 * 4 * d_model * tokens / 1e9:2.0f} GB")

# %% [markdown]
# A large GPU, NVIDIA's H100, has 80 GB. Neither the weights nor the text fit. So we cut attention in two ways, by heads and by tokens, and
# give the pieces to several devices.
#
# We cut the forward pass alone, and both cuts are exact: up to rounding, the output is that of one device. The price is what the devices
# send each other: you predict it, and we count it to the byte.
#
# ## One program, many ranks
#
# Each device has a process of its own, with its own memory, and all run *the same program*. The **world size** N is the number of
# processes. The **rank** of a process is its number, 0 to N − 1, by which it knows which part of the work is its own. The part of a
# tensor that a rank holds is a **shard**.
#
# A **collective** is an operation in which all ranks take part. Each has to call it, or the others wait.
#
# Real processes come at the end. Until then each rank is a thread of this notebook's program, and queues stand in for the network. One
# operation is enough, `exchange`: it gives tensors to the next rank and returns what the rank before gave. The last rank gives to rank 0,
# so the ranks form a ring.

# %% role="demo"
class Ring:
    """Stands in for a network. sent: the bytes that each rank has sent."""

    def __init__(self, world_size):
        self.boxes = [queue.SimpleQueue() for _ in range(world_size)]
        self.sent = [0] * world_size

    def exchange(self, rank, tensors):
        self.sent[rank] += sum(tensor.nbytes for tensor in tensors)
        self.boxes[(rank + 1) % len(self.boxes)].put(tuple(tensor.clone() for tensor in tensors))
        return self.boxes[rank].get(timeout=20)  # waits until the rank before has given something


def run_ranks(function, shares):
    """function(rank, world_size, exchange, *share), each rank in a thread. Returns: results, and bytes sent, by rank."""
    ring, n = Ring(len(shares)), len(shares)
    with ThreadPoolExecutor(n) as pool:
        runs = [pool.submit(function, rank, n, partial(ring.exchange, rank), *share) for rank, share in enumerate(shares)]
        return [run.result() for run in runs], ring.sent

# %% [markdown]
# Three ranks, each with a number for the next:

# %% role="demo" tags=["nbval-check-output"]
def pass_on(rank, world_size, exchange, number):
    (taken,) = exchange((torch.tensor(number),))
    return f"rank {rank} of {world_size} gave {number} and got {taken.item()}"


print(*run_ranks(pass_on, [(10,), (20,), (30,)])[0], sep="\n")

# %% [markdown]
# ## Heads over ranks
#
# In lesson 09's module a head needs its own rows of `qkv`, and nothing from other heads. So each rank can take some of the heads, with
# the weights that belong to them. This is **tensor parallelism** (Shoeybi et al. 2019, "Megatron-LM", section 3): every rank has a
# shard of both weights.

# %% [markdown]
# @predict
#
# Two ranks compute one attention in this way. How often do they have to talk to each other?
#
# - **A** Twice: softmax divides by a sum over all keys, and `proj` sums over all heads.
# - **B** Once, after `proj`.
# - **C** Once in each head.
#
# @answer
#
# **B.** Softmax sums over the keys of *one* head, which are all on its rank. Heads meet only in `proj`.
#
# @wrong
#
# A and C mix up keys and heads. Every rank has all tokens, but only some heads.

# %% [markdown]
# Only `proj` reads all heads. Yet it is a sum over them. Say that two heads give one number each, 3 and 5, for which `proj` has the
# weights 2 and 4. Its output is 2 · 3 + 4 · 5 = 26. A rank that has head 0 alone gets 6, the other rank gets 20, and these
# *add up* to the output. The collective that adds is the **all-reduce**: every rank gives a tensor, and every rank gets the sum.

# %% role="demo" tags=["hide-input"]
figures.several_devices.heads_over_ranks()

# %% [markdown]
# @exercise head_shard
#
# `qkv_weight` (3 · d_model, d_model) and `proj_weight` (d_model, d_model), the weights of lesson 09's module; `num_heads`, `rank`,
# `world_size` → (qkv_shard (3 · d_model / world_size, d_model), proj_shard (d_model, d_model / world_size))
#
# Rank 0 gets the first heads, rank 1 the next ones. In `qkv_shard` the rows of q come first, then those of k, then those of v. Both
# shards are copies, not views: a view would keep the whole weight in memory. If world_size does not divide num_heads, raise
# `ValueError`.

# %% role="exercise" exercise="head_shard"
def head_shard(qkv_weight: Tensor, proj_weight: Tensor, num_heads: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
    """One rank's share of the weights of a `CausalMultiHeadAttention`: its contiguous heads, in memory of their own.

    qkv_weight: (3 * d_model, d_model), the rows of q, then of k, then of v. proj_weight: (d_model, d_model).
    Returns: qkv_shard (3 * d_model / world_size, d_model), proj_shard (d_model, d_model / world_size), on the weights' device.
    Raises:  ValueError where num_heads is not divisible by world_size.
    """
    # region solution
    if num_heads % world_size:
        raise ValueError(f"num_heads = {num_heads} is not divisible by world_size = {world_size}")
    width = proj_weight.shape[1] // world_size
    own = slice(rank * width, (rank + 1) * width)
    q, k, v = qkv_weight.chunk(3, dim=0)
    qkv_shard = torch.cat([q[own], k[own], v[own]])
    proj_shard = proj_weight[:, own].clone()
    return qkv_shard, proj_shard
    # endregion

# %% role="check" exercise="head_shard"
check(head_shard)

# %% [markdown]
# @exercise tensor_parallel_attention
#
# `x` (B, T, d_model), the same on every rank; the rank's `qkv_shard` and `proj_shard`; `num_local_heads`, how many heads it has;
# `all_reduce` → (B, T, d_model), the same on every rank: the output of the whole module
#
# `all_reduce(tensor)` returns the sum of all ranks' tensors as a new tensor. Every rank calls it exactly once, even if there is only one.
# Attention is causal. From scratch: without `F.scaled_dot_product_attention` and its like.

# %% role="exercise" exercise="tensor_parallel_attention"
def tensor_parallel_attention(x: Tensor, qkv_shard: Tensor, proj_shard: Tensor, num_local_heads: int, all_reduce) -> Tensor:
    """Causal attention of many heads, of which this rank computes its own.

    x: (B, T, d_model), the same on every rank. qkv_shard, proj_shard: as `head_shard` gives them.
    all_reduce(tensor): the sum of this tensor over all ranks, a new tensor; every rank calls it once.
    Returns: (B, T, d_model), the same on every rank: what the whole module gives. All tensors on the way lie on the device of x.
    """
    # region solution
    q, k, v = (
        part.unflatten(-1, (num_local_heads, -1)).transpose(1, 2) for part in (x @ qkv_shard.mT).chunk(3, dim=-1)
    )
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(future, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    merged = (weights @ v).transpose(1, 2).flatten(2)
    partial = merged @ proj_shard.mT
    return all_reduce(partial)
    # endregion

# %% role="check" exercise="tensor_parallel_attention"
check(tensor_parallel_attention)

# %% [markdown]
# ## What an all-reduce sends
#
# The plain way: each rank sends its tensor to all others.
#
# A ring does better. Every rank cuts its tensor into N parts. In a first round (**reduce-scatter**) the parts travel around the
# ring, and each rank that a part comes to adds its own numbers. After N − 1 exchanges each rank has one finished part, the sum
# over all ranks. In a second round (**all-gather**) the finished parts travel on, until every rank has them all. Two ranks add [1,
# 2] and [3, 4]: rank 0 sends 1, rank 1 sends 4; now rank 0 has 2 + 4 = 6, rank 1 has 3 + 1 = 4, and they exchange these.

# %% [markdown]
# @predict
#
# Four ranks add their tensors by a ring. How much does each of them send?
#
# - **A** Three tensors' worth of bytes
# - **B** One and a half
# - **C** Three quarters of one
#
# @answer
#
# **B.** There are 3 exchanges in each round, each of a quarter of the tensor: 6/4. With N ranks it is 2(N − 1)/N, never more than two
# tensors.
#
# @wrong
#
# A is the plain way. C is the first round alone: every part is finished, but each on another rank.

# %% role="demo" tags=["hide-input"]
def ring_all_reduce(tensor, rank, world_size, exchange):
    """The sum of all ranks' tensors. world_size divides the number of entries."""
    parts = list(tensor.reshape(world_size, -1))
    for step in range(world_size - 1):  # first round: sums grow on their way
        (taken,) = exchange((parts[(rank - step) % world_size],))
        parts[(rank - step - 1) % world_size] = parts[(rank - step - 1) % world_size] + taken
    for step in range(world_size - 1):  # second round: finished sums travel on
        (parts[(rank - step) % world_size],) = exchange((parts[(rank - step + 1) % world_size],))
    return torch.stack(parts).reshape(tensor.shape)

# %% [markdown]
# Your function with this all-reduce (the folded cell), compared with lesson 09's attention in one piece:

# %% role="payoff" exercise="tensor_parallel_attention"
if passed(head_shard) and passed(tensor_parallel_attention):

    def share_of_heads(rank, world_size, exchange, x, qkv_shard, proj_shard):
        all_reduce = partial(ring_all_reduce, rank=rank, world_size=world_size, exchange=exchange)
        return tensor_parallel_attention(x, qkv_shard, proj_shard, 8 // world_size, all_reduce)

    torch.manual_seed(19)
    x, qkv_weight, proj_weight = torch.randn(1, 96, 64), torch.randn(192, 64) / 8, torch.randn(64, 64) / 8
    qkv = (x @ qkv_weight.mT).view(1, 96, 3, 8, 8).permute(2, 0, 3, 1, 4)
    whole = F.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2).flatten(2) @ proj_weight.mT
    for n in (1, 2, 4, 8):
        shares = [(x, *head_shard(qkv_weight, proj_weight, 8, rank, n)) for rank in range(n)]
        outputs, sent = run_ranks(share_of_heads, shares)
        gap, predicted = max((output - whole).abs().max() for output in outputs), 2 * (n - 1) * x.nbytes // n
        held = sum(weight.nbytes for weight in shares[0][1:])
        print(f"N = {n}: {held:6,} bytes of weights per rank; predicted {predicted:6,}, sent {sent[0]:6,}; largest difference {gap:.0e}")
        assert gap < 1e-5 and sent == [predicted] * n

# %% [markdown]
# A rank's weights shrink with N. What it sends does not shrink: for each attention it approaches twice the output's size, however many
# ranks share the work, and no rank can go on before the sum is there. So tensor parallelism is used where links are fast, inside one
# machine (Narayanan et al. 2021, section 1).
#
# ## Tokens over ranks
#
# Heads over ranks cut q, k and v, but every rank still has x and the output of all tokens, and there cannot be more ranks than heads. So
# let each rank take a *chunk* of the text: the q, k and v of its tokens. This is **context parallelism** (some say **sequence
# parallelism**, which in Megatron is something else). LayerNorm, feed-forward network and projections treat each
# token by itself. Attention cannot: a query has to meet the keys of all chunks.
#
# In **ring attention** (Liu, Zaharia and Abbeel 2023) the queries stay, and the keys and values travel. At each step every
# rank attends to the chunk that it has, and gives it to the next rank.

# %% role="demo" tags=["hide-input"]
assert figures.several_devices.ring_steps(4)[2] == [2, 1, 0, 3]

# %% [markdown]
# After N steps, with N − 1 exchanges between them, every query has met every key, and no rank held more than three
# chunks: its own, one in use, one arriving.
#
# But does softmax not need all scores of a row? As in lesson 14, the rank keeps for each query a **partial result** (m, l, o):
# the largest score so far, the sum of exp(score − m), and the sum of exp(score − m) · value. The folded cell has lesson 14's
# `merge_partial`, which merges two into one; use it, or write the update yourself.

# %% role="given" tags=["hide-input"]
def merge_partial(a, b):
    """Lesson 14: (m, l, o) over the keys of a and of b; over no keys it is (−∞, 0, 0)."""
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    shift = m.masked_fill(m == -math.inf, 0.0)
    scale_a, scale_b = torch.exp(m_a - shift), torch.exp(m_b - shift)
    return m, l_a * scale_a + l_b * scale_b, o_a * scale_a[..., None] + o_b * scale_b[..., None]

# %% [markdown]
# @predict
#
# Somebody writes a real `exchange` like this: *wait until something has come from the rank before; then send to the next.* All
# ranks call it. What happens?
#
# - **A** It works, but slowly: the ranks take turns.
# - **B** All of them wait forever.
# - **C** Rank 0 goes first, and the others follow.
#
# @answer
#
# **B.** Each rank waits for another that is waiting. This is a **deadlock**: processes wait for one another in a circle. The remedy is
# to *start* sending, and only then to wait.
#
# @wrong
#
# A and C need a rank that begins. But all run the same program, and a ring has no beginning.

# %% [markdown]
# A deadlock gives no error at first: the program stands still, until a time limit ends it. The same happens if one rank
# calls a collective once more than the others.
#
# With a causal mask, positions count in the *whole* text: with chunks of 4 tokens, the first token of rank 2 is at position 8. So at
# every step a rank has to know whose keys it holds.

# %% [markdown]
# @exercise ring_attention
#
# `q`, `k`, `v` (B, H, T_local, d), this rank's chunk; `rank`, `world_size`, `exchange`, `causal` → (B, H, T_local, d): the output for
# these queries, over the keys of all ranks
#
# `exchange(tensors)` gives a tuple of tensors to the next rank and returns the tuple that the rank before gave. Every rank calls it
# exactly world_size − 1 times. All chunks are equally long. Keys are never collected: **no tensor has more than T_local keys for
# each item and head.** Scores may be as large as ±10,000, q, k and v stay as they are, what you make
# lies on their device, and ready-made attention is not allowed.

# %% role="exercise" exercise="ring_attention"
def ring_attention(q: Tensor, k: Tensor, v: Tensor, rank: int, world_size: int, exchange, causal: bool = False) -> Tensor:
    """Attention of this rank's queries over the keys of all ranks, one chunk of keys and values at a time.

    q, k, v: (B, H, T_local, d); rank r has the tokens r * T_local to (r + 1) * T_local.
    exchange(tensors): gives a tuple of tensors to the next rank, and returns what the rank before gave; every rank calls it
        world_size − 1 times.
    causal: query i sees key j where j ≤ i, as positions in the whole sequence.
    Returns: (B, H, T_local, d), on the device of q, as all tensors on the way.
    Source:  Liu, Zaharia and Abbeel 2023, "Ring Attention".
    """
    # region solution
    t = q.shape[-2]
    rows = rank * t + torch.arange(t, device=q.device)
    m = q.new_full(q.shape[:-1], -math.inf)
    l = q.new_zeros(q.shape[:-1])
    o = torch.zeros_like(q)
    for step in range(world_size):
        if step > 0:
            k, v = exchange((k, v))
        source = (rank - step) % world_size  # whose chunk this is
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            columns = source * t + torch.arange(t, device=q.device)
            scores = scores.masked_fill(columns > rows[:, None], -math.inf)
        m_new = torch.maximum(m, scores.amax(dim=-1))  # finite from the first chunk on, which is this rank's own
        rescale = torch.exp(m - m_new)
        p = torch.exp(scores - m_new[..., None])
        l = l * rescale + p.sum(dim=-1)
        o = o * rescale[..., None] + p @ v
        m = m_new
    return o / l[..., None]
    # endregion

# %% role="check" exercise="ring_attention"
check(ring_attention)

# %% [markdown]
# @predict
#
# The keys and values of 768 tokens, in eight heads of 64 numbers of four bytes, take 3,145,728 bytes. Four ranks share them. How many
# bytes does each rank send?
#
# - **A** 786,432
# - **B** 2,359,296
# - **C** 3,145,728
#
# @answer
#
# **B.** Each of the N − 1 exchanges sends a chunk, 1/N of the keys and values: (N − 1)/N in all, here three quarters.
#
# @wrong
#
# A is one exchange. C is one exchange too many: after four, every rank has its own chunk again.

# %% [markdown]
# We compare, and count what your function sends:

# %% role="payoff" exercise="ring_attention"
if passed(ring_attention):

    def share_of_text(rank, world_size, exchange, q, k, v):
        return ring_attention(q, k, v, rank, world_size, exchange, causal=True)

    torch.manual_seed(19)
    text = torch.randn(3, 1, 8, 768, 64)  # q, k and v of 768 tokens, in eight heads
    whole = F.scaled_dot_product_attention(*text, is_causal=True)
    for n in (1, 2, 3, 4):
        outputs, sent = run_ranks(share_of_text, [tuple(chunk) for chunk in text.chunk(n, dim=-2)])
        gap, predicted = (torch.cat(outputs, dim=-2) - whole).abs().max(), 2 * (n - 1) * text[1].nbytes // n
        print(f"N = {n}: predicted {predicted:9,} bytes, sent {sent[0]:9,}; largest difference {gap:.0e}")
        assert gap < 1e-5 and all(predicted <= each <= predicted + 1000 for each in sent)  # a chunk's number may go with it

# %% [markdown]
# A published ring merged chunks by log(1 + exp(new − old)), where old and new are the logarithms of two such sums. Where a later chunk's
# scores lie far higher, the exponential overflows (zhuzilin/ring-flash-attention#30; repaired since). So your check tried scores near
# 10,000.

# %% [markdown]
# ## For real
#
# Now the threads become processes, by `torch.distributed`. What carries the bytes there is called a *backend*: **gloo** works between
# CPUs, **NCCL** between NVIDIA GPUs. Only `exchange` has to be rewritten. `isend` and `irecv` *start* to send and to receive, and
# return at once; `batch_isend_irecv` starts all of them before this rank waits.

# %% role="demo"
def exchange_over(rank, world_size, sent):
    """`exchange` between processes; sent: a list, to which each call adds its bytes."""

    def exchange(tensors):
        given = [tensor.contiguous() for tensor in tensors]
        taken = [torch.empty_like(tensor) for tensor in given]
        sent.append(sum(tensor.nbytes for tensor in given))
        calls = [dist.P2POp(dist.isend, tensor, (rank + 1) % world_size) for tensor in given]
        calls += [dist.P2POp(dist.irecv, tensor, (rank - 1) % world_size) for tensor in taken]
        for call in dist.batch_isend_irecv(calls):
            call.wait()
        return tuple(taken)

    return exchange


def one_process(rank, world_size, folder, function):
    """What each process does: meets the others, computes its share, leaves the result in the folder."""
    meeting = dist.FileStore(f"{folder}/meeting", world_size)  # a file by which processes of one machine find each other
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=world_size, timeout=timedelta(minutes=2))
    share, sent = torch.load(f"{folder}/share-{rank}.pt"), []
    result, peak = with_peak(partial(function, rank, world_size, exchange_over(rank, world_size, sent), *share))
    torch.save((result, sum(sent), peak, os.getpid()), f"{folder}/result-{rank}.pt")
    dist.barrier()  # nobody hangs up before all are done
    dist.destroy_process_group()

# %% [markdown]
# A new process cannot see the functions of a notebook. So the folded cell writes them into a file, yours and those above, and starts
# that file once for each rank with `torch.multiprocessing.spawn`.

# %% role="demo" tags=["hide-input"]
def with_peak(call):
    """What call() returns, and the largest number of bytes that PyTorch held for it at once."""
    torch.set_num_threads(1)  # several processes share this computer
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as record:
        result = call()
    with tempfile.TemporaryDirectory() as folder:
        record.export_chrome_trace(f"{folder}/record.json")
        events = json.loads(Path(folder, "record.json").read_text(encoding="utf-8"))["traceEvents"]
    pieces = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    return result, max(itertools.accumulate((size for _, size in pieces), initial=0))


def source(thing):
    """The text of a function or class of this notebook."""
    if inspect.isfunction(thing):
        return textwrap.dedent(inspect.getsource(thing))
    for cell in reversed(globals()["In"]):  # before 3.13 Python finds no class of a notebook: so the cells are read, the last one first
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(cell)):
                if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
                    first = min(part.lineno for part in (node, *node.decorator_list))
                    return textwrap.dedent("\n".join(cell.splitlines()[first - 1:node.end_lineno]))
    raise NameError(f"the text of the class {thing.__name__} is in no cell that has run: run its cell again")


def program(*functions):
    """The source of these functions and of all that they use, as the text of a file."""
    imports, values, texts, waiting = {"import os"}, set(), [], list(functions)
    while waiting:
        text = source(inspect.unwrap(waiting.pop(0)))
        if text in texts:
            continue
        texts.append(text)
        for name in {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}:
            value = globals().get(name)
            own = getattr(value, "__name__", name)
            home = next((one for one in (inspect.getmodule(value), torch) if getattr(one, own, None) is value), None)
            if inspect.ismodule(value):
                imports.add(f"import {own}" + f" as {name}" * (name != own))
            elif (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == "__main__":
                waiting.append(value)
            elif isinstance(value, (bool, int, float)):
                values.add(f"{name} = {value!r}" if math.isfinite(value) else f"{name} = float('{value}')")
            elif value is not None and home:
                imports.add(f"from {home.__name__} import {own}" + f" as {name}" * (name != own))
    values.add('os.environ["KINETO_LOG_LEVEL"] = "99"  # no log of the profiler')
    head = ["from __future__ import annotations", "", *sorted(imports), "", *sorted(values)]
    return "\n".join(head) + "\n\n\n" + "\n\n\n".join(text.strip() for text in reversed(texts)) + "\n"


def run_processes(function, shares):
    """As run_ranks, each rank in a process. Returns: results, bytes sent, bytes held at the peak, process ids, by rank."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "several_devices.py").write_text(program(one_process, function), encoding="utf-8")
        for rank, share in enumerate(shares):
            torch.save(tuple(tensor.clone() for tensor in share), f"{folder}/share-{rank}.pt")
        sys.path.insert(0, folder)
        try:
            module = importlib.import_module("several_devices")
            given = (len(shares), folder, getattr(module, function.__name__))
            mp.spawn(module.one_process, given, nprocs=len(shares))
        finally:
            sys.path.remove(folder)
            sys.modules.pop("several_devices", None)
        return list(zip(*(torch.load(f"{folder}/result-{rank}.pt") for rank in range(len(shares)))))


if not dist.is_available():
    print("This PyTorch was built without torch.distributed, so the cells below show nothing: the solved notebook has what they print.")

# %% [markdown]
# First your heads, in two processes (a few seconds: each imports torch):

# %% role="payoff" exercise="tensor_parallel_attention"
if passed(head_shard) and passed(tensor_parallel_attention) and dist.is_available():
    shares = [(x, *head_shard(qkv_weight, proj_weight, 8, rank, 2)) for rank in range(2)]
    outputs, sent, _, ids = run_processes(share_of_heads, shares)
    gap = max((output - run_ranks(share_of_heads, shares)[0][0]).abs().max() for output in outputs)
    print(f"processes {ids[0]} and {ids[1]} sent {sent[0]:,} bytes each; largest difference from the threads {gap:.0e}")
    assert gap < 1e-6 and sent == (x.nbytes, x.nbytes)

# %% [markdown]
# Then your ring, on 2,048 tokens:

# %% role="payoff" exercise="ring_attention"
if passed(ring_attention) and dist.is_available():
    text = torch.randn(3, 1, 8, 2048, 64, generator=torch.Generator().manual_seed(19))
    whole, peaks = F.scaled_dot_product_attention(*text, is_causal=True), {}
    print("processes   one chunk's k, v   peak beside inputs   sent by each   largest difference from one operator")
    for n in (1, 2, 4):
        outputs, sent, peak, _ = run_processes(share_of_text, [tuple(chunk) for chunk in text.chunk(n, dim=-2)])
        gap, peaks[n] = (torch.cat(outputs, dim=-2) - whole).abs().max(), max(peak)
        held = 2 * text[1].nbytes // n
        print(f"{n:9} {held / 2**20:14.1f} MiB {peaks[n] / 2**20:16.1f} MiB {sent[0] / 2**20:10.1f} MiB   {gap:.0e}")
        assert gap < 5e-6 and all((n - 1) * held <= each <= (n - 1) * held + 1000 for each in sent)
    figures.several_devices.skyline({n: peak / 2**20 for n, peak in peaks.items()})
    assert peaks[1] > 2 * peaks[2] > 4 * peaks[4]

# %% [markdown]
# The same output, from processes that share no memory. The peak falls faster than 1/N because most of it is a step's scores,
# (T / N)² per head, which lesson 14's tiles would avoid. What has to be *kept* falls like 1/N.
#
# So for the text that we began with: eight ranks for heads and feed-forward network leave {{ (350 - 1.3) / 8 + 1.3:.0f; it < 80 }} of
# GPT-3's 350 GB on each (the uncut embeddings included), and sixteen for tokens cut a block's 98 GB to {{ 98 / 16:.0f; it < 80 }}. Both
# together, on 8 · 16 GPUs, cut it to {{ 98 / 128:.1f; it < 1 }}. It fits, if tiles spare each the
# {{ 12 * (10**6 // 16) ** 2 * 2 / 1e9:.0f; it > 80 }} GB of a step's scores.

# %% [markdown]
# ## Further: when sending costs no time
#
# A device can send and compute at the same time: while it works on one chunk, the next one is on its way. Sending is hidden if it takes no
# longer than a step computes. For a chunk of T_local tokens, unmasked, with two bytes a number:
#
# - computing takes 4 · T_local² · d_model operations, for scores and weighted values;
# - the keys and values are 4 · T_local · d_model bytes.
#
# That is T_local operations for each byte sent. So sending is hidden if **T_local is at least the device's operations a second, divided by
# the link's bytes a second** (Liu et al. 2023, section 3). An H100 does up to 989 · 10¹² operations a second in 16 bits.
# **NVLink**, its direct link to other GPUs in the machine, carries 450 GB/s each way (NVIDIA, *H100 Tensor Core GPU Datasheet*: 900 both
# ways). With a network adapter of 400 gigabits a second for each GPU, as in NVIDIA's DGX H100, 50 GB/s go to other machines:

# %% role="demo" tags=["nbval-check-output"]
for link, bytes_per_s in (("NVLink", 450e9), ("network", 50e9)):
    print(f"{link}: hidden once each rank has {989e12 / bytes_per_s:6,.0f} tokens or more")
tokens_each = 10**6 // 16  # our text over sixteen ranks

# %% [markdown]
# Sixteen ranks of our text have {{ tokens_each:,; it > 39560 }} each: enough even where a causal mask halves the work of each
# step. Our `exchange` hides nothing, since it waits. A real ring starts it, computes, and then waits.

# %% [markdown]
# ## Further: more machines, and GPUs
#
# For anyone who has them: your `ring_attention` as a program that runs on any number of machines.

# %% [markdown]
# `torchrun` starts a program once for each rank, and tells it rank and world size by environment variables. The next cells write such a
# program. Each rank makes 512 tokens of its own, so the text grows with the number of ranks.

# %% role="demo" tags=["hide-input"]
def under_torchrun():
    """What each process does that torchrun starts."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")

    def chunk(number):
        return torch.randn(3, 1, 8, 512, 64, generator=torch.Generator().manual_seed(number)).to(device)

    sent, (q, k, v) = [], chunk(rank)
    output = ring_attention(q, k, v, rank, world_size, exchange_over(rank, world_size, sent), causal=True)
    keys, values = torch.cat([chunk(number)[1:] for number in range(rank + 1)], dim=-2)  # to compare with, and for nothing else
    mask = torch.ones(512, keys.shape[-2], dtype=torch.bool, device=device).tril(512 * rank)
    gap = (output - F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)).abs().max().item()
    print(f"rank {rank} of {world_size} on {device}: {sum(sent):,} bytes sent, largest difference {gap:.0e}", flush=True)
    dist.barrier()
    dist.destroy_process_group()

# %% role="payoff" exercise="ring_attention"
if passed(ring_attention):
    file = Path(tempfile.gettempdir(), "several_devices.py")
    start = '\n\nif __name__ == "__main__":\n    under_torchrun()\n'
    file.write_text(program(under_torchrun) + start, encoding="utf-8")
    print(f"{file.name} is written")

# %% [markdown]
# `print(file)` tells where the file is. In a terminal, in that folder, this starts two ranks; take as many as you like:
#
#     torchrun --nproc-per-node 2 several_devices.py
#
# For two machines with four ranks each, copy the file to both and start on both, where FIRST is the name of one of them:
#
#     torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint FIRST:29500 several_devices.py
#
# With NVIDIA GPUs the program uses NCCL, one GPU a rank. The course has tried both commands on one computer, on its CPUs, and one rank on
# a GPU, but not several machines or GPUs. torch's all-reduce is `dist.all_reduce(tensor)`; it overwrites its argument.

# %% [markdown]
# ## Further: who waits in a causal ring
#
# With a causal mask some ranks have less to do than others. For anyone who wondered about that: how long they wait, and an order of the
# tokens in which nobody does.

# %% [markdown]
# A rank can skip a chunk that lies wholly in the future of its queries.

# %% [markdown]
# @predict
#
# Four ranks, a causal mask, and hidden chunks are skipped. Without a mask the ring takes 4 units of time, one a step. How long does it
# take now?
#
# - **A** 2 units: half of the work is gone.
# - **B** 3½ units.
# - **C** 4 units.
#
# @answer
#
# **B.** At step 0 every rank has its own chunk, on the diagonal: half a unit. At each later step rank 3 works for one unit on a chunk
# of its past, so no step is shorter.
#
# @wrong
#
# A counts work, not waiting: a step takes as long as its slowest rank. C forgets step 0, where every rank saves half a chunk.

# %% role="demo" tags=["hide-input"]
in_order = figures.several_devices.ring_timeline(
    "In the ranks' order", [[0], [1], [2], [3]]
)
assert in_order == 3.5

# %% [markdown]
# Rank 0 has nothing but its own chunk in its past, and waits for most of the time; the last rank never does. So give every rank some of
# both. Cut the text into 2N pieces, and give rank r the pieces r and 2N − 1 − r: one from the front, one from the back. This is the
# **zigzag order**.

# %% role="demo"
zigzag = [[rank, 7 - rank] for rank in range(4)]
balanced = figures.several_devices.ring_timeline("In zigzag order", zigzag, until=in_order)
assert balanced == 2

# %% [markdown]
# At every step each rank now has the same work, half a unit. The ring takes {{ balanced:g }} units instead of
# {{ in_order:g }}: half of the 4 without a mask. The mask has to know the true positions of both pieces, and
# hidden pieces are skipped, as chunks were.
#
# Striped attention (Brandon et al. 2023) deals the tokens out one by one, like cards: rank r gets the tokens r, r + N, r + 2N and so on.
# Llama 3 was trained on long texts with the two pieces of the zigzag order for each rank; there the keys and values are gathered on
# every rank, not sent around a ring (Llama Team 2024, section 3.3.2).

# %% [markdown]
# ## Further: other ways to share a model
#
# For anyone who meets these names in a paper: what else is cut, in a sentence each.

# %% [markdown]
# - **Data parallelism**: every rank has the whole model and other texts; after the backward pass an all-reduce averages the gradients
#   (Li et al. 2020, "PyTorch Distributed", section 3).
# - **Pipeline parallelism**: every rank has some of the blocks and passes activations to the rank that has the next ones
#   (Huang et al. 2019, "GPipe").
# - Tensor parallelism also cuts the feed-forward network: its first matrix so that each rank has some hidden numbers, its second so that
#   the parts add up, again with one all-reduce (Shoeybi et al. 2019, section 3).
#
# All this was the forward pass. In the backward pass the cut by heads needs one more all-reduce, of the gradient of x (Shoeybi et al.
# 2019, section 3). In the ring the gradients of keys and values travel with these: twice as much in each exchange.
#
# Large models use several of these cuts at once. Llama 3's largest model was trained on 16,384 GPUs with tensor, context, pipeline and data
# parallelism together (Llama Team 2024, section 3.3.2).

# %% [markdown]
# ## What we keep
#
# - All ranks run one program, and the rank decides which shard is whose. All call a collective equally often, or there is a deadlock.
# - Heads meet only in `proj`, a sum over heads: cut the weights by heads, add once. That sends 2(N − 1)/N of the output per rank.
# - Partial results merge in any order, so keys can come chunk by chunk; positions count in the whole text. That sends (N − 1)/N of the
#   keys and values.
#
# | on one of N ranks | shape |
# |---|---|
# | qkv_shard; proj_shard | (3 · d_model / N, d_model); (d_model, d_model / N) |
# | q, k, v of its chunk | (B, H, T / N, d) |
# | scores at one step | (B, H, T / N, T / N) |
# | m, l; o | (B, H, T / N); (B, H, T / N, d) |
#
# Here the course ends. It began with three tokens on paper. You have built every part of attention since, trained a model on it, and
# now computed it on several devices, no one of which ever held it all.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with the two cuts that large models are made of, by heads and by tokens, both in their own code, and with a count of what
# each of them costs. The one idea is that an exact result can be put together from parts: `proj` is a sum over heads, and softmax merges
# over chunks of keys. The rest is knowing whose part it is, and calling as often as everybody else.
#
# Two cells start processes, nine in all, each of which imports torch: half a minute on two cores that have nothing else to do. They find
# each other by a file, name no port, and end with the cell.
#
# ## Cut for 60 minutes
#
# The picture of the heads, `head_shard`, the picture of the ring, and `ring_attention`, started in class. `tensor_parallel_attention`
# and "What an all-reduce sends" stay at home. Show the last table from the solved notebook.
#
# ## Cut for 90 minutes
#
# Everything but the further parts. Let six people stand in a circle for the ring, each with a sheet of keys, and pass the sheets on;
# then let everyone wait until the neighbor's sheet has come before giving away their own.
#
# ## Mistakes to expect
#
# - head_shard HS1: With four heads on two ranks, which rows of qkv.weight are the keys of head 2?
# - head_shard HS2: Which axis of proj.weight meets the numbers of a head?
# - head_shard HS3: How much memory does a view keep alive?
# - tensor_parallel_attention TA3: To which head does column 0 of `merged` belong, on rank 0 and on rank 1?
# - tensor_parallel_attention TA6: Where is the sum after the call of `all_reduce`, and what do you return?
# - ring_attention RA1: Whose values belong to the keys that have just come?
# - ring_attention RA2: Rank 2 holds the keys of rank 0. Which of its queries may see them?
# - ring_attention RA3: Three ranks: who holds which chunk after one exchange? With two ranks, would you notice?
# - ring_attention RA6: How does chunk 0 ever get to rank 2?
#
# ## To discuss
#
# - Is anything approximated? (No. Both ways add the same numbers in another order, and differ by rounding.)
# - Why do keys and values travel, and not queries? (Queries could: their partial results would have to travel with them and come home.
#   Where there are few queries and many keys, as when a model writes, that is cheaper. The ring sends two tensors a step, the other way
#   three or four.)
# - One of a thousand ranks breaks down. What do the others notice? (They wait in the next collective until a time limit ends them. Large
#   training runs save their state often for that reason.)
#
# ## On paper
#
# Four ranks, chunks of 3 tokens, causal. At which step does rank 2 hold the keys of rank 3, and what does it do with them? How many
# exchanges are there? How many of the 16 pairs of chunks have to be computed, and how many of those need a mask? Solution: rank 2 holds
# the chunk (2 − step) mod 4, which is 3 at step 3; all its positions, 9 to 11, lie in the future of 6 to 8, and nothing is added. There
# are 3 exchanges. 10 pairs are computed, and the 4 on the diagonal need a mask.
