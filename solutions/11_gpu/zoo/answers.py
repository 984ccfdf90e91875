"""Lesson 11 as learners write it: right in several styles, wrong in many."""

PICK_RIGHT = [
    """
def pick_device():
    return torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
""",
    """
def pick_device():
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if hasattr(torch.backends, "mps") and torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
""",
    """
from torch.cuda import is_available as has_cuda
from torch.backends.mps import is_available as has_mps
def pick_device():
    for name, here in (("cuda:0", has_cuda()), ("mps", has_mps())):
        if here:
            return torch.device(name)
    return torch.device("cpu")
""",
    """
def pick_device():
    if hasattr(torch, "accelerator"):
        found = torch.accelerator.current_accelerator(check_available=True)
        if found is not None and found.type in ("cuda", "mps"):
            return found
        return torch.device("cpu")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
""",
    """
def pick_device():
    if torch.cuda.device_count() > 0:
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_built() and torch.backends.mps.is_available() else torch.device("cpu")
""",
]

PICK_WRONG = [
    (
        "GP9",
        """
def pick_device():
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
""",
    ),
    (
        "GP9",
        """
def pick_device():
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
""",
    ),
    (
        "GP3",
        """
def pick_device():
    if torch.backends.cuda.is_built():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
""",
    ),
    (
        "GP3",
        """
def pick_device():
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_built() else "cpu")
""",
    ),
    (
        "GP6",
        """
def pick_device():
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
""",
    ),
    (
        None,
        """
def pick_device():
    return torch.zeros(1).device
""",
    ),
    (
        None,
        """
_device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
def pick_device():
    return _device
""",
    ),
    (
        None,
        """
def pick_device():
    return torch.accelerator.current_accelerator()
""",
    ),
]

FLOPS_RIGHT = [
    """
def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):
    total = 4.0 * batch * num_heads * t_q * t_k * d_head
    return total * 0.5 if causal else total
""",
    """
def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):
    scores = math.prod((batch, num_heads, t_q, t_k))
    per_score = (2 * d_head) + (2 * d_head)
    return scores * per_score // (1 + bool(causal))
""",
    """
def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):
    q = torch.empty(batch, num_heads, t_q, d_head, device="meta")
    k = torch.empty(batch, num_heads, t_k, d_head, device="meta")
    first = 2 * q.numel() * k.shape[-2]
    second = 2 * batch * num_heads * t_q * t_k * d_head
    return (first + second) / (2 if causal else 1)
""",
    """
def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):
    total = 0
    for _ in range(batch):
        for _ in range(num_heads):
            for _ in range(t_q):
                for _ in range(t_k):
                    for _ in range(d_head):
                        total += 2
                    for _ in range(d_head):
                        total += 2
    return total // 2 if causal else total
""",
]


def _flops(count, half=" / 2 if causal else n"):
    return (
        f"def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):\n    n = {count}\n    return n{half}\n"
    )


FLOPS_WRONG = [
    ("GP11", _flops("2 * batch * num_heads * t_q * t_k * d_head")),
    ("GP12", _flops("4 * batch * t_q * t_k * d_head")),
    ("GP12", _flops("4 * num_heads * t_q * t_k * d_head", " // 2 if causal else n")),
    ("GP14", _flops("4 * batch * num_heads * t_q ** 2 * d_head")),
    (None, _flops("4 * batch * num_heads * t_q * t_k * (num_heads * d_head)")),
    ("GP17", _flops("4 * batch * num_heads * t_q * t_k * d_head", "")),
    ("GP17", _flops("2 * batch * num_heads * t_q * t_k * d_head", "")),
    ("GP17", _flops("4 * batch * num_heads * t_q * t_k * d_head", " // 2")),
    ("GP11", _flops("batch * num_heads * t_q * t_k * d_head")),
    ("GP17", _flops("4 * batch * num_heads * t_q * t_k * d_head", " if causal else n // 2")),
    ("GP19", _flops("4 * batch * num_heads * t_q * t_k * d_head + 8 * batch * t_q * (num_heads * d_head) ** 2")),
    (
        "GP19",
        _flops(
            "4 * batch * num_heads * t_q * t_k * d_head",
            " / (2 if causal else 1) + 6 * batch * t_q * (num_heads * d_head) ** 2",
        ),
    ),
    (None, _flops("2 * batch * num_heads * t_q * t_k * (2 * d_head - 1)")),
    ("GP19", _flops("4 * batch * num_heads * t_q * t_k * d_head + 5 * batch * num_heads * t_q * t_k")),
    ("GP18", _flops("4 * batch * num_heads * (t_q * (t_q + 1) // 2 if causal else t_q * t_k) * d_head", "")),
    (
        "GP18",
        _flops(
            "sum(4 * batch * num_heads * d_head for i in range(t_q) for j in range(t_k) if not causal or j <= i)", ""
        ),
    ),
]

TIME_RIGHT = [
    """
from time import perf_counter
def sync(device):
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
def time_ms(fn, device, warmup=3, repeats=10):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        sync(device); a = perf_counter(); fn(); sync(device); times.append((perf_counter() - a) * 1e3)
    times.sort()
    return times[len(times) // 2]
""",
    """
def time_ms(fn, device, warmup=3, repeats=10):
    kind = str(device).split(":")[0]
    [fn() for _ in range(warmup)]
    marks = []
    for _ in range(repeats):
        if kind != "cpu":
            getattr(torch, kind).synchronize()
        start = time.perf_counter_ns()
        fn()
        if kind != "cpu":
            getattr(torch, kind).synchronize()
        marks.append(time.perf_counter_ns() - start)
    return torch.tensor(marks, dtype=torch.float64).median() / 1e6
""",
    """
import timeit
import numpy as np
def time_ms(fn, device, warmup=3, repeats=10):
    device = torch.device(device)
    def run():
        fn()
        if torch.cuda.is_available() and device.type == "cuda":
            torch.cuda.synchronize()
        if device.type == "mps":
            torch.mps.synchronize()
    for _ in range(warmup):
        run()
    return np.median(timeit.repeat(run, number=1, repeat=repeats)) * 1000
""",
    """
def time_ms(fn, device, warmup=3, repeats=10):
    for _ in range(warmup):
        fn()
    if torch.device(device).type == "cuda":
        pairs = []
        for _ in range(repeats):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(); fn(); end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) for a, b in pairs)
    wait = torch.mps.synchronize if torch.device(device).type == "mps" else (lambda: None)
    wait()
    out = []
    for _ in range(repeats):
        t = time.monotonic(); fn(); wait(); out.append(time.monotonic() - t)
    return 1000 * statistics.median_high(out)
""",
    """
def time_ms(fn, device, warmup=3, repeats=10):
    module = torch.get_device_module(torch.device(device))
    out = []
    for i in range(warmup + repeats):
        module.synchronize()
        t = time.time()
        fn()
        module.synchronize()
        if i >= warmup:
            out.append(time.time() - t)
    return 1000 * statistics.median_low(out)
""",
    """
from datetime import datetime
import functools
def time_ms(fn, device, warmup=3, repeats=10):
    wait = functools.partial(torch.accelerator.synchronize) if torch.device(device).type != "cpu" else int
    for _ in range(warmup):
        fn()
    def once():
        wait(); start = datetime.now(); fn(); wait()
        return (datetime.now() - start).total_seconds() * 1e3
    return sorted(once() for _ in range(repeats))[repeats // 2]
""",
    """
CLOCK = {"clock": time.perf_counter}
WAIT = {"cpu": lambda: None, "cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}
def measured(clock=time.perf_counter):
    def once(fn, wait):
        wait(); start = clock(); fn(); wait()
        return clock() - start
    return once
once = measured()
@torch.no_grad()
def time_ms(fn, device, warmup=3, repeats=10):
    wait = WAIT[torch.device(device).type]
    for _ in range(warmup):
        fn(); wait()
    times = [once(fn, wait) if i % 2 else measured(CLOCK["clock"])(fn, wait) for i in range(repeats)]
    return float(torch.tensor(times).quantile(0.5)) * 1e3
""",
    """
def time_ms(fn, device, warmup=3, repeats=10):
    kind = torch.device(device).type
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        if kind == "cuda":
            torch.cuda.current_stream().synchronize()
        elif kind == "mps":
            torch.mps.synchronize()
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        fn()
        if kind == "cuda":
            done = torch.cuda.Event(); done.record(); done.synchronize()
        elif kind == "mps":
            torch.mps.synchronize()
        times.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start)
    return statistics.median(times) / 1_000_000
""",
    """
class Clock:
    read = staticmethod(time.perf_counter)
def time_ms(fn, device, warmup=3, repeats=10):
    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(torch.device(device).type, lambda: None)
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        wait(); start = Clock.read(); fn(); wait(); times.append(Clock.read() - start)
    return 1000 * statistics.median(times)
""",
]

_TIMER = """
def sync(device):
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.synchronize()
    elif kind == "mps":
        torch.mps.synchronize()
def time_ms(fn, device, warmup=3, repeats=10):
    {warm}
    times = []
    for _ in range(repeats):
        {before}
        start = {clock}
        fn()
        {after}
        times.append({clock} - start)
    return {result}
"""


def _timer(
    warm="[fn() for _ in range(warmup)]",
    before="sync(device)",
    after="sync(device)",
    clock="time.perf_counter()",
    result="1000 * statistics.median(times)",
):
    return _TIMER.format(warm=warm, before=before, after=after, clock=clock, result=result)


TIME_WRONG = [
    ("GP67", _timer(warm="pass")),
    ("GP22", _timer(result="1000 * sum(times) / repeats")),
    ("GP22", _timer(result="min(times) * 1e3")),
    ("GP24", _timer(result="statistics.median(times)")),
    ("GP24", _timer(result="statistics.median(times) * 1e6")),
    ("GP26", _timer(before="pass", after="pass")),
    ("GP26", _timer(after="pass")),
    (
        "GP26",
        _timer(after="end = time.perf_counter(); sync(device)").replace("append(time.perf_counter() -", "append(end -"),
    ),
    ("GP26", _timer(before="pass")),
    (
        "GP29",
        """
def time_ms(fn, device, warmup=3, repeats=10):
    wait = torch.cuda.synchronize if device.type == "cuda" else torch.mps.synchronize if device.type == "mps" else (lambda: None)
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        wait(); start = time.perf_counter(); fn(); wait()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)
""",
    ),
    (None, _timer(clock="time.process_time()")),
    ("GP34", _timer(result="1000 * times[len(times) // 2]")),
    ("GP67", _timer(before="fn(); sync(device)")),
    (
        "GP22",
        """
def time_ms(fn, device, warmup=3, repeats=10):
    kind = torch.device(device).type
    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(kind, lambda: None)
    for _ in range(warmup):
        fn()
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        fn()
    wait()
    return 1000 * (time.perf_counter() - start) / repeats
""",
    ),
    ("GP22", _timer(result="1000 * max(times)")),
    (None, _timer(result="times")),
    (None, _timer(warm="fn()")),
    (None, _timer(result="1000 * statistics.median(times[1:])")),
    (None, _timer(result="int(1000 * statistics.median(times))")),
    (None, _timer(result="1.0")),
    ("GP26", _timer(clock="time.monotonic_ns() / 1e9", before="pass")),
    ("GP24", "import timeit\n" + _timer(clock="timeit.default_timer()", result="sorted(times)[repeats // 2]")),
]

_FAST = """
class FastCausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        {guard}
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias={bias})
        self.proj = nn.Linear(d_model, d_model, bias={bias})
    def forward(self, x):
        B, T, C = x.shape
        {split}
        y = {call}
        return {result}
"""
_SPLIT = "q, k, v = (p.view(B, T, self.h, C // self.h).transpose(1, 2) for p in self.qkv(x).split(C, dim=2))"
_CALL = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
_MERGE = "self.proj(y.transpose(1, 2).contiguous().view(B, T, C))"


def _fast(
    split=_SPLIT, call=_CALL, result=_MERGE, bias=False, guard="if d_model % num_heads: raise ValueError('heads')"
):
    return _FAST.format(split=split, call=call, result=result, bias=bias, guard=guard)


FAST_RIGHT = [
    _fast(),
    "from torch.nn.functional import scaled_dot_product_attention as sdpa\n"
    + _fast(call="sdpa(q, k, v, None, 0.0, True)", result="self.proj(torch.einsum('bhtd->bthd', y).flatten(2))"),
    _fast(
        split="w = self.qkv.weight.unflatten(0, (3, self.h, C // self.h)); "
        "q, k, v = torch.einsum('btc,nhdc->nbhtd', x, w).unbind(0)",
        call="F.scaled_dot_product_attention(query=q.contiguous(), key=k.contiguous(), value=v, dropout_p=0.0, "
        "is_causal=True, scale=(C // self.h) ** -0.5)",
    ),
    _fast(
        split="q, k, v = self.qkv(x).reshape(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)",
        call="F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)",
        result="F.linear(y.permute(0, 2, 1, 3).reshape(B, T, -1), self.proj.weight)",
    ),
]

FAST_WRONG = [
    ("MK13", _fast(call="F.scaled_dot_product_attention(q, k, v)")),
    ("GP42", _fast(call="F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tril(torch.ones(T, T)).bool())")),
    (
        None,
        _fast(
            call="torch.softmax((q @ k.mT / math.sqrt(C // self.h)).masked_fill(torch.ones(T, T).triu(1) == 1, "
            "float('-inf')), dim=-1) @ v"
        ),
    ),
    (None, _fast(call="eager_attention(q, k, v, torch.ones(T, T, dtype=torch.bool).triu(1))")),
    ("MU25", _fast(call="F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)")),
    ("SD5", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=math.sqrt(q.size(-1)))")),
    ("MU31", _fast(split=_SPLIT.replace("q, k, v", "k, q, v", 1))),
    ("MU2", _fast(result="y.transpose(1, 2).reshape(B, T, C)")),
    ("MU1", _fast(guard="pass")),
    (
        "MU1",
        _fast(guard="pass", split="q, k, v = self.qkv(x).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)"),
    ),
    (
        None,
        _fast(
            guard="pass",
            split="D = C // self.h; E = self.h * D; q, k, v = (p[..., :E].reshape(B, T, self.h, D)"
            ".transpose(1, 2) for p in self.qkv(x).split(C, 2))",
            result="self.proj(F.pad(y.transpose(1, 2).reshape(B, T, -1), (0, C - E)))",
        ),
    ),
    ("MH1", _fast(split="q, k, v = (p.reshape(B, self.h, T, C // self.h) for p in self.qkv(x).split(C, dim=2))")),
    ("MH2", _fast(result="self.proj(y.reshape(B, T, C))")),
    (
        "MH3",
        _fast(
            split="q, k, v = (p.view(B, T, self.h, C // self.h) for p in self.qkv(x).split(C, dim=2))",
            result="self.proj(y.reshape(B, T, C))",
        ),
    ),
    ("PJ2", _fast(bias=True)),
    ("PJ3", _fast(split="q, k, v = self.qkv(x).view(B, T, self.h, 3 * C // self.h).transpose(1, 2).chunk(3, dim=-1)")),
    ("SD3", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=C ** -0.5)")),
    (
        None,
        _fast(
            call="torch.stack([F.scaled_dot_product_attention(q[:, i], k[:, i], v[:, i], is_causal=True) "
            "for i in range(self.h)], 1)"
        ),
    ),
    (None, _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True) + 0 * (q @ k.mT).sum()")),
    (None, _fast(call=_CALL + ".detach()")),
    (None, _fast(call="F.scaled_dot_product_attention(q.half(), k.half(), v.half(), is_causal=True).to(x.dtype)")),
    (None, _fast(guard="assert d_model % num_heads == 0")),
]

BYTES = "def attention_bytes(batch, num_heads, t_q, t_k, d_head, bytes_per_number=2, fused=False):\n"


def _bytes(
    three: str,
    fused: str = "2 * t_q * d_head + 2 * t_k * d_head",
    whole: str = "batch * num_heads * n * bytes_per_number",
) -> str:
    return f"{BYTES}    n = {fused} if fused else {three}\n    return {whole}\n"


THREE = "2 * t_q * d_head + 2 * t_k * d_head + 4 * t_q * t_k"
BYTES_RIGHT = [
    BYTES
    + """
    q = out = t_q * d_head
    k = v = t_k * d_head
    scores = weights = t_q * t_k
    if fused:
        moved = q + k + v + out
    else:
        moved = (q + k + scores) + (scores + weights) + (weights + v + out)
    return moved * batch * num_heads * bytes_per_number
""",
    BYTES
    + """
    import torch
    q = torch.empty(batch, num_heads, t_q, d_head, device="meta")
    k = torch.empty(batch, num_heads, t_k, d_head, device="meta")
    s = torch.empty(batch, num_heads, t_q, t_k, device="meta")
    numbers = 2 * q.numel() + 2 * k.numel() + (not fused) * 4 * s.numel()
    return int(numbers * bytes_per_number)
""",
    BYTES
    + """
    reads_writes = [(t_q, d_head), (t_k, d_head), (t_k, d_head), (t_q, d_head)]
    reads_writes += [] if fused else [(t_q, t_k)] * 4
    return sum(rows * columns for rows, columns in reads_writes) * bytes_per_number * num_heads * batch
""",
    _bytes(THREE),
    "attention_bytes = lambda batch, num_heads, t_q, t_k, d_head, bytes_per_number=2, fused=False: ("
    "2 * batch * num_heads * bytes_per_number * (d_head * (t_q + t_k) + (0 if fused else 2 * t_q * t_k)))",
]
BYTES_WRONG = [
    ("BY1", _bytes("2 * t_q * d_head + 2 * t_k * d_head + 2 * t_q * t_k")),
    ("BY1", _bytes("2 * t_q * d_head + 2 * t_k * d_head + t_q * t_k")),
    (
        "BY1",
        _bytes("(t_q * d_head + t_k * d_head + t_q * t_k) + t_q * t_k + (t_q * t_k + t_k * d_head + t_q * d_head)"),
    ),
    ("BY4", _bytes(THREE, THREE)),
    ("BY4", _bytes("2 * t_q * d_head + 2 * t_k * d_head", THREE)),
    ("BY6", _bytes("t_q * d_head + 2 * t_k * d_head + 4 * t_q * t_k", "t_q * d_head + 2 * t_k * d_head")),
    ("BY8", _bytes("4 * t_q * d_head + 4 * t_q * t_k", "4 * t_q * d_head")),
    ("GP12", _bytes(THREE, whole="batch * n * bytes_per_number")),
    ("GP12", _bytes(THREE, whole="num_heads * n * bytes_per_number")),
    ("PO3", _bytes(THREE, whole="batch * num_heads * n")),
    ("PO3", _bytes(THREE, whole="batch * num_heads * n * 2")),
    ("BY15", _bytes(THREE, whole="float(batch * num_heads * n * bytes_per_number)")),
    ("BY6", _bytes(THREE, "t_q * d_head + 2 * t_k * d_head")),
    (None, _bytes("2 * t_q * d_head + 2 * t_k * d_head + 4 * t_q * t_k * d_head")),
    ("BY1", _bytes("2 * t_q * d_head + 2 * t_k * d_head + 5 * t_q * t_k")),
    ("BY1", _bytes(THREE, whole="batch * num_heads * n * bytes_per_number + (not fused) * t_q * t_k")),
    ("BY1", _bytes(THREE, whole="batch * num_heads * (n * bytes_per_number + (not fused) * t_q * t_k)")),
    ("BY1", _bytes("2 * t_q * d_head + 2 * t_k * d_head + 8 * t_q * t_k")),
]

RIGHT = {
    "pick_device": PICK_RIGHT,
    "attention_flops": FLOPS_RIGHT,
    "time_ms": TIME_RIGHT,
    "attention_bytes": BYTES_RIGHT,
    "FastCausalMultiHeadAttention": FAST_RIGHT,
}
WRONG = {
    "pick_device": PICK_WRONG,
    "attention_flops": FLOPS_WRONG,
    "time_ms": TIME_WRONG,
    "attention_bytes": BYTES_WRONG,
    "FastCausalMultiHeadAttention": FAST_WRONG,
}

PICK_RIGHT += [
    """
import functools
@functools.cache
def pick_device():
    return torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
""",
    """
def pick_device():
    return torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.mps.device_count() > 0 else "cpu")
""",
]
PICK_WRONG += [
    (
        "GP5",
        """
def pick_device():
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available:
        return torch.device("mps")
    return torch.device("cpu")
""",
    )
]
TIME_WRONG += [
    (None, _timer(result="1000 * sorted(times)[repeats // 2 - 1]")),
    (None, _timer(result="1000 * sorted(times)[repeats // 2 + 1]")),
]
_KEPT = "if self.past is not None and self.past[0].shape == k.shape: k, v = self.past\n        self.past = k, v"
FAST_WRONG += [
    ("SD2", _fast(call="F.scaled_dot_product_attention(q / math.sqrt(C // self.h), k, v, is_causal=True)")),
    (None, _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=T > 2)")),
    # the length of the first text is kept
    (
        None,
        _fast().replace(
            "        q, k, v",
            "        self.T = getattr(self, 'T', T)\n        T = min(T, self.T)\n        x = x[:, :T]\n        q, k, v",
            1,
        ),
    ),
    (None, _fast(split=_SPLIT + "\n        if T > 1024: raise ValueError('too long')")),
    (None, _fast(split=f"{_SPLIT}\n        {_KEPT}", guard="self.past = None")),
    (
        None,
        _fast(
            call=_CALL + " * (1.5 if self.calls > 2 else 1)", split=_SPLIT + "; self.calls += 1", guard="self.calls = 0"
        ),
    ),
]

PICK_WRONG += [
    (
        "GP9",
        """
def pick_device():
    if torch.cuda.is_available() and torch.cuda.device_count() == 0:
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
""",
    ),
    (
        "GP9",
        """
def pick_device():
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
""",
    ),
    (
        "GP9",
        """
def pick_device():
    if torch.cuda.is_available():
        device = torch.device("cuda")
    if torch.backends.mps.is_available():
        device = torch.device("mps")
    else:
        device = torch.device("cpu")
    return device
""",
    ),
]
TIME_WRONG += [
    ("GP67", _timer().replace("range(repeats)", "range(repeats - warmup)")),
    (
        "GP67",
        _timer(result="1000 * sorted(times)[len(times) // 2]").replace("range(repeats)", "range(repeats - warmup)"),
    ),
    ("GP24", _timer(clock="time.perf_counter_ns()", result="statistics.median(times)")),
    ("GP63", _timer().replace('if kind == "cuda":\n        torch.cuda.synchronize()\n    el', "")),
    ("GP22+GP24", _timer(result="statistics.mean(times)")),
    ("GP22+GP26", _timer(before="pass", after="pass", result="1000 * statistics.mean(times)")),
    (None, _timer(warm="pass", result="statistics.median(times)")),
    (
        None,
        """
def time_ms(fn, device, warmup=3, repeats=10):
    kind = torch.device(device).type
    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(kind, lambda: None)
    times = []
    for _ in range(warmup + repeats):
        wait(); start = time.perf_counter(); fn(); wait()
        times.append(time.perf_counter() - start)
    return 1000 * sorted(times)[len(times) // 2]
""",
    ),
]


def _masked(mask):
    return _fast(call=f"F.scaled_dot_product_attention(q, k, v, attn_mask={mask})")


FAST_WRONG += [
    ("MH4", _fast(result="self.proj(y.transpose(1, 2).view(B, T, C))")),
    (
        "MH4",
        _fast(
            split=_SPLIT + "; q, k, v = q.contiguous(), k.contiguous(), v.contiguous()",
            result="self.proj(y.transpose(1, 2).view(B, T, C))",
        ),
    ),
    ("MH4", _fast(split="q, k, v = (p.view(B, self.h, T, C // self.h) for p in self.qkv(x).split(C, dim=2))")),
    ("SD1", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)")),
    ("SD1", _fast(call="F.scaled_dot_product_attention(q * math.sqrt(C // self.h), k, v, is_causal=True)")),
    ("SD4", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.h ** -0.5)")),
    ("SD6", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1) / math.sqrt(q.size(-1))")),
    ("GP51", _fast(call=_CALL + " / math.sqrt(q.size(-1))")),
    (None, _fast(result="self.proj(y.detach().transpose(1, 2).reshape(B, T, C))")),
    (None, _fast().replace("    def forward", "    @torch.no_grad()\n    def forward")),
    ("MK13", _fast(call="F.scaled_dot_product_attention(q, k, v, is_causal=self.training)")),
    ("PJ2", _fast().replace("nn.Linear(d_model, d_model, bias=False)", "nn.Linear(d_model, d_model)")),
    ("MK1", _masked("torch.ones(T, T, dtype=torch.bool).triu(1)")),
    ("MK1", _masked("torch.ones(T, T, dtype=torch.bool).triu()")),
    ("MK7", _masked("torch.ones(T, T, dtype=torch.bool).tril(-1)")),
    ("MK8", _masked("torch.ones(T, T, dtype=torch.bool).tril(1)")),
    ("GP42", _masked("torch.ones(T, T, dtype=torch.bool).tril(), is_causal=True")),
    (
        None,
        _fast(call="torch.softmax((q @ k.mT).masked_fill(torch.ones(T, T).triu(1) == 1, float('-inf')), dim=-1) @ v"),
    ),
]

_PEEK = """
def time_ms(fn, device, warmup=3, repeats=10):
    for _ in range(warmup + repeats):
        fn()
    return 1000 * statistics.median({lengths}[warmup:])
"""
_CELLS = "[c.cell_contents for f in ({of},) for c in (getattr(f, '__closure__', None) or ()) if hasattr(c.cell_contents, 'durations')]"
TIME_WRONG += [
    (None, "import statistics" + _PEEK.format(lengths="fn.__self__.durations")),
    (
        None,
        "import statistics"
        + _PEEK.format(
            lengths=_CELLS.format(of="fn, time.perf_counter, time.monotonic, torch.cuda.synchronize") + "[0].durations"
        ),
    ),
    (None, "import statistics" + _PEEK.format(lengths="(time.perf_counter(), fn.__self__.durations)[1]")),
    # the clock is read once, and never around a call
    (None, "import statistics" + _PEEK.format(lengths="(time.perf_counter(), [1e-3] * (warmup + repeats))[1]")),
]

WRONG["attention_bytes"] += [
    (
        "BY4",
        """def attention_bytes(batch, num_heads, t_q, t_k, d_head, bytes_per_number=2, fused=False):
    small = 2 * t_q * d_head + 2 * t_k * d_head
    big = t_q * t_k if fused else 4 * t_q * t_k
    return batch * num_heads * (small + big) * bytes_per_number
""",
    )  # the fused kernel still writes scores once
]

WRONG["attention_bytes"] += [
    (
        "BY22",
        """def attention_bytes(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, bytes_per_number: int = 2, fused: bool = False) -> int:
    if fused:
        n = t_q * d_head + t_q * 2 * t_k * d_head + t_q * d_head
    else:
        n = (t_q + t_k) * d_head + t_q * t_k + 2 * t_q * t_k + t_q * t_k + t_k * d_head + t_q * d_head
    return batch * num_heads * n * bytes_per_number
""",
    ),
    (
        "GP12",
        """def attention_bytes(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, bytes_per_number: int = 2, fused: bool = False) -> int:
    q = out = t_q * d_head
    k = v = t_k * d_head
    table = t_q * t_k
    if fused:
        numbers = q + k + v + out
    else:
        numbers = q + k + v + out
        return (batch * num_heads * numbers + batch * 4 * table) * bytes_per_number
    return batch * num_heads * numbers * bytes_per_number
""",
    ),
    (
        "BY1+BY6",
        """def attention_bytes(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, bytes_per_number: int = 2, fused: bool = False) -> int:
    q = out = t_q * d_head
    k = v = t_k * d_head
    table = t_q * t_k
    if fused:
        numbers = q + k + v
    else:
        numbers = (q + k) + table + (table + v)
    return batch * num_heads * numbers * bytes_per_number
""",
    ),
]

WRONG["attention_flops"] += [
    (
        "GP19",
        """
def attention_flops(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, causal: bool = False) -> int:
    forward = 4 * batch * t_q * t_k * num_heads * d_head // (2 if causal else 1)
    backward = 2.5 * forward
    return forward + backward
""",
    ),
    (
        "GP14",
        """def attention_flops(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, causal: bool = False) -> int:
    scores = 2 * t_q * t_k * d_head
    output = 2 * t_q * d_head * d_head
    total = batch * num_heads * (scores + output)
    return total // 2 if causal else total
""",
    ),
    (
        "GP17",
        """def attention_flops(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, causal: bool = False) -> int:
    scores = 2 * t_q * t_k * d_head
    mixing = 2 * t_q * t_k * d_head
    total = batch * num_heads * (scores + mixing)
    return batch * num_heads * (scores / 2 + mixing) if causal else total
""",
    ),
    (
        "GP66",
        """def attention_flops(batch: int, num_heads: int, t_q: int, t_k: int, d_head: int, causal: bool = False) -> int:
    scores = t_q * t_k * (2 * d_head - 1)
    mixing = t_q * d_head * (2 * t_k - 1)
    total = batch * num_heads * (scores + mixing)
    return total / 2 if causal else total
""",
    ),
]

WRONG["time_ms"] += [
    (
        "GP26",
        """def time_ms(fn, device, warmup: int = 3, repeats: int = 10) -> float:
    device = torch.device(device)

    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        elif device.type == "mps":
            torch.mps.synchronize()

    for _ in range(warmup):
        fn()
    readings = []
    for _ in range(repeats):
        start = time.perf_counter()
        wait()
        fn()
        wait()
        readings.append((time.perf_counter() - start) * 1000)
    return statistics.median(readings)
""",
    )
]

WRONG["time_ms"] += [
    (
        "GP67",
        """def time_ms(fn, device, warmup: int = 3, repeats: int = 10) -> float:
    device = torch.device(device)

    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        elif device.type == "mps":
            torch.mps.synchronize()

    for _ in range(1, warmup):
        fn()
    readings = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        fn()
        wait()
        readings.append((time.perf_counter() - start) * 1000)
    return statistics.median(readings)
""",
    )
]

# Right on ordinary inputs alone
WRONG["pick_device"] += [
    (
        "GP9",
        """
def pick_device() -> torch.device:
    # torch puts new tensors where it can compute
    probe = torch.empty(1)
    return probe.device
""",
    ),
    (
        None,
        '''def pick_device() -> torch.device:
    """torch knows the accelerator of this machine by itself since 2.6."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return found if found is not None else torch.device("cpu")
''',
    ),
]
WRONG["FastCausalMultiHeadAttention"] += [
    (
        "MU4",
        """
class FastCausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads has to divide d_model")
        self.h = num_heads
        self.qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(x).unflatten(-1, (3, self.h, -1))
        q, k, v = qkv.transpose(1, 3).unbind(2)  # each (B, h, T, d_head)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.permute(0, 2, 3, 1).flatten(2))
""",
    ),
    (
        None,
        """class FastCausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def split(self, part: Tensor) -> Tensor:
        batch, t, _ = part.shape
        return part.float().reshape(batch, t, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = map(self.split, self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))
""",
    ),
]
