"""Lesson 19: attention over several ranks, as learners write it. In the wrong answers, None stands where the verdict names no mistake of
a list."""

_SHARD = """
def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    if num_heads % world_size != 0:
        raise ValueError("num_heads must be divisible by world_size")
    d_model = proj_weight.size(0)
    d_head = d_model // num_heads
    local = num_heads // world_size
    lo, hi = rank * local * d_head, (rank + 1) * local * d_head
    parts = [qkv_weight[i * d_model + lo : i * d_model + hi] for i in range(3)]
    return torch.cat(parts, dim=0), proj_weight[:, lo:hi].clone()
"""

SHARD_RIGHT = [
    _SHARD,
    '''def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    """By named axes: part, head, number."""
    if num_heads % world_size:
        raise ValueError(num_heads)
    n = num_heads // world_size
    qkv = qkv_weight.reshape(3, num_heads, -1, qkv_weight.shape[1])[:, rank * n:(rank + 1) * n]
    proj = proj_weight.reshape(proj_weight.shape[0], num_heads, -1)[:, rank * n:(rank + 1) * n]
    return [qkv.clone().reshape(-1, qkv_weight.shape[1]), proj.clone().reshape(proj_weight.shape[0], -1)]
''',
    '''def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    """chunk of chunk."""
    if num_heads / world_size != num_heads // world_size:
        raise ValueError
    qkv = torch.cat([part.chunk(world_size)[rank] for part in qkv_weight.chunk(3)])
    return qkv, proj_weight.chunk(world_size, dim=-1)[rank].clone()
''',
    '''def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    """A boolean for each column; indexing with it copies."""
    heads, rest = divmod(num_heads, world_size)
    if rest:
        raise ValueError(f"{rest} heads are left over")
    d = proj_weight.shape[1]
    owner = torch.arange(d, device=proj_weight.device) // (d // num_heads) // heads
    return qkv_weight[(owner == rank).repeat(3)], proj_weight[:, owner == rank]
''',
    '''from typing import NamedTuple

class Shards(NamedTuple):
    qkv: torch.Tensor
    proj: torch.Tensor

def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    """Row by row into new tensors, without gradients."""
    if num_heads % world_size > 0:
        raise ValueError("uneven")
    d = proj_weight.shape[0]
    w = d // world_size
    qkv, proj = qkv_weight.new_empty(3 * w, d), proj_weight.new_empty(d, w)
    with torch.no_grad():
        for part in range(3):
            for i in range(w):
                qkv[part * w + i] = qkv_weight[part * d + rank * w + i]
        for j in range(w):
            proj[:, j].copy_(proj_weight[:, rank * w + j])
    return Shards(qkv, proj)
''',
    '''def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):
    """index_select, which copies, and float64."""
    if num_heads not in range(0, num_heads + 1, world_size):
        raise ValueError("uneven")
    width = proj_weight.shape[1] // world_size
    own = torch.arange(rank * width, rank * width + width, device=proj_weight.device)
    rows = (own + torch.tensor([[0], [1], [2]], device=own.device) * proj_weight.shape[1]).flatten()
    return qkv_weight.index_select(0, rows).double(), proj_weight.T.index_select(0, own).double().T.contiguous()
''',
]

SHARD_WRONG = [
    (
        "HS1",
        _SHARD.replace(
            "parts = [qkv_weight[i * d_model + lo : i * d_model + hi] for i in range(3)]",
            "parts = [qkv_weight[3 * lo : 3 * hi]]",
        ),
    ),
    ("HS2", _SHARD.replace("proj_weight[:, lo:hi]", "proj_weight[lo:hi, :]")),
    ("HS2", _SHARD.replace("proj_weight[:, lo:hi]", "proj_weight[lo:hi].transpose(0, 1)")),
    ("HS3", _SHARD.replace(".clone()", "")),
    (
        "HS3",
        "def head_shard(qkv_weight, proj_weight, num_heads, rank, world_size):\n    if num_heads % world_size:\n        raise ValueError\n"
        "    d, n = proj_weight.shape[0], num_heads // world_size\n    own = slice(rank * n, rank * n + n)\n"
        "    return qkv_weight.view(3, num_heads, -1, d)[:, own].reshape(-1, d), proj_weight.view(d, num_heads, -1)[:, own].reshape(d, -1)\n",
    ),
    (
        "HS4",
        _SHARD.replace(
            "qkv_weight[i * d_model + lo : i * d_model + hi]",
            "qkv_weight[i * d_model + rank : (i + 1) * d_model : world_size]",
        ).replace("lo:hi", "rank::world_size"),
    ),
    (None, _SHARD.replace("    d_model =", "    rank = world_size - rank - 1\n    d_model =")),
    (
        "RS15",
        _SHARD.replace(
            'if num_heads % world_size != 0:\n        raise ValueError("num_heads must be divisible by world_size")',
            "pass",
        ),
    ),
    ("RS15", _SHARD.replace("num_heads % world_size != 0", "len(qkv_weight) % world_size != 0")),
    (
        "RS14",
        _SHARD.replace(
            'if num_heads % world_size != 0:\n        raise ValueError("num_heads must be divisible by world_size")',
            "assert num_heads % world_size == 0, 'uneven'",
        ),
    ),
    (None, _SHARD.replace("torch.cat(parts, dim=0)", "torch.stack(parts, 1).reshape(-1, d_model)")),
    (None, _SHARD.replace("for i in range(3)", "for i in (1, 0, 2)")),
    (None, _SHARD.replace("torch.cat(parts, dim=0)", "qkv_weight[:, lo:hi].clone()")),
    (None, _SHARD.replace(" * d_head", "")),
    (None, _SHARD.replace(".clone()", " / world_size")),
    (None, _SHARD.replace("proj_weight[:, lo:hi]", "proj_weight")),
    # no list holds these
    (None, _SHARD.replace("range(3)", "range(2)")),
    (None, _SHARD.replace("    d_model =", "    proj_weight /= 2\n    d_model =")),
    (None, _SHARD.replace("return ", "return num_heads // world_size, ")),
    (None, _SHARD.replace("d_head = d_model // num_heads", "d_head = num_heads")),
]

_TENSOR = """
def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    B, T, D = x.shape
    qkv = torch.nn.functional.linear(x, qkv_shard)
    q, k, v = qkv.view(B, T, 3, num_local_heads, -1).permute(2, 0, 3, 1, 4)
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    mask = torch.tril(torch.ones(T, T, device=x.device)).bool()
    att = att.masked_fill(~mask, float("-inf"))
    att = torch.softmax(att, dim=-1)
    y = (att @ v).transpose(1, 2).contiguous().view(B, T, -1)
    out = torch.nn.functional.linear(y, proj_shard)
    return all_reduce(out)
"""

TENSOR_RIGHT = [
    _TENSOR,
    '''def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    """Head by head, each with its rows and columns."""
    rows, columns = qkv_shard.chunk(3), proj_shard.chunk(num_local_heads, dim=1)
    t, total = x.shape[1], 0
    for h in range(num_local_heads):
        q, k, v = (x @ part.chunk(num_local_heads)[h].T for part in rows)
        s = torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
        s = s + torch.full((t, t), -math.inf, dtype=s.dtype, device=s.device).triu(1)
        total = total + s.softmax(-1) @ v @ columns[h].T
    return all_reduce(tensor=total)
''',
    '''def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    """In float64, one query at a time, without gradients."""
    with torch.no_grad():
        x, w, p = x.double(), qkv_shard.double(), proj_shard.double()
        b, t, _ = x.shape
        q, k, v = (x @ w.T).reshape(b, t, 3, num_local_heads, -1).unbind(2)
        found = torch.zeros_like(q)
        for i in range(t):
            s = (q[:, i, None] * k[:, : i + 1]).sum(-1) * k.shape[-1] ** -0.5
            e = (s - s.amax(1, keepdim=True)).exp()
            found[:, i] = (e[..., None] * v[:, : i + 1]).sum(1) / e.sum(1)[..., None]
        return all_reduce(torch.einsum("bthc,dhc->btd", found, p.unflatten(1, (num_local_heads, -1))))
''',
    '''def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    """The ranks' parts are summed as a flat vector: of any shape."""
    B, T, D = x.size()
    n = qkv_shard.size(0) // 3
    q, k, v = (x @ qkv_shard.t()).split(n, dim=2)
    heads = lambda z: z.reshape(B, T, num_local_heads, n // num_local_heads).transpose(1, 2)
    s = torch.matmul(heads(q), heads(k).transpose(2, 3)) / math.sqrt(n // num_local_heads)
    at = torch.arange(T, device=x.device)
    s = torch.where(at[:, None] >= at, s, torch.tensor(torch.finfo(s.dtype).min, dtype=s.dtype, device=s.device))
    y = (torch.softmax(s, 3) @ heads(v)).transpose(1, 2).reshape(B, T, n)
    return all_reduce((y @ proj_shard.t()).flatten()).view(B, T, D)
''',
    '''def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    """What came back is written into a tensor of this function's own."""
    b, t, d_model = x.shape
    output = torch.empty_like(x)
    q, k, v = torch.einsum("btd,shcd->sbhtc", x, qkv_shard.unflatten(0, (3, num_local_heads, -1)))
    scores = q.div(math.sqrt(q.shape[-1])) @ k.mT
    scores[..., torch.ones(t, t, dtype=torch.bool, device=x.device).triu(diagonal=1)] = -torch.inf
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    output.copy_(all_reduce((weights @ v).movedim(1, 2).flatten(-2) @ proj_shard.mT))
    return output
''',
    '''class _Heads(torch.nn.Module):
    def __init__(self, qkv, proj, heads, reduce):
        super().__init__()
        self.qkv, self.proj, self.heads, self.reduce = qkv, proj, heads, reduce

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (x @ self.qkv.T).view(b, t, 3 * self.heads, -1).transpose(1, 2).split(self.heads, dim=1)
        a = (q @ k.mT / q.shape[-1] ** 0.5).tril()
        a = a.masked_fill(torch.ones_like(a).tril() == 0, -math.inf).softmax(-1)
        return self.reduce((a @ v).transpose(1, 2).reshape(b, t, -1) @ self.proj.T)

def tensor_parallel_attention(x, qkv_shard, proj_shard, num_local_heads, all_reduce):
    """A module around the same."""
    print("rank", num_local_heads)
    return _Heads(qkv_shard, proj_shard, num_local_heads, all_reduce)(x)
''',
]

TENSOR_WRONG = [
    (None, _TENSOR.replace("return all_reduce(out)", "return out")),
    (None, _TENSOR.replace("return all_reduce(out)", "out = all_reduce(out)\n    return all_reduce(out)")),
    (
        "TA3",
        _TENSOR.replace("    out = ", "    y = all_reduce(y)\n    out = ").replace(
            "return all_reduce(out)", "return out"
        ),
    ),
    (
        None,
        _TENSOR.replace("    mask = ", "    att = all_reduce(att)\n    mask = ").replace(
            "return all_reduce(out)", "return out"
        ),
    ),
    (None, _TENSOR.replace("    y = ", "    att = all_reduce(att)\n    y = ")),
    ("TA5", _TENSOR.replace("return all_reduce(out)", "return all_reduce(out) * proj_shard.shape[1] / D")),
    ("TA6", _TENSOR.replace("return all_reduce(out)", "all_reduce(out)\n    return out")),
    ("TA7", _TENSOR.replace("return all_reduce(out)", "return all_reduce(out) if proj_shard.shape[1] < D else out")),
    (
        "TA15",
        _TENSOR.replace("math.sqrt(k.size(-1))", "math.sqrt(y_width)").replace(
            "    att = (q", "    y_width = qkv_shard.shape[0] // 3\n    att = (q", 1
        ),
    ),
    (
        "MU4",
        _TENSOR.replace(
            "view(B, T, 3, num_local_heads, -1).permute(2, 0, 3, 1, 4)",
            "view(B, T, 3, -1, num_local_heads).permute(2, 0, 4, 1, 3)",
        ),
    ),
    (
        "TA10",
        _TENSOR.replace("return all_reduce(out)", "return torch.cat([all_reduce(out[i : i + 1]) for i in range(B)])"),
    ),
    ("TB33", _TENSOR.replace("all_reduce(out)", "all_reduce(x + out)")),
    ("TB33", _TENSOR.replace("all_reduce(out)", "x + all_reduce(out)")),
    (
        None,
        _TENSOR.replace("linear(y, proj_shard)", "linear(y, all_reduce(proj_shard))").replace(
            "return all_reduce(out)", "return out"
        ),
    ),
    ("MH2", _TENSOR.replace(".transpose(1, 2).contiguous().view(B, T, -1)", ".reshape(B, T, -1)")),
    (
        "PJ3",
        _TENSOR.replace(
            "view(B, T, 3, num_local_heads, -1).permute(2, 0, 3, 1, 4)",
            "view(B, T, num_local_heads, 3, -1).permute(3, 0, 2, 1, 4)",
        ),
    ),
    ("MK13", _TENSOR.replace('    att = att.masked_fill(~mask, float("-inf"))\n', "")),
    ("SD3", _TENSOR.replace("k.size(-1)", "D")),
    ("TA15", _TENSOR.replace("k.size(-1)", "D / num_local_heads")),
    (
        None,
        _TENSOR.replace(
            "functional.linear(x, qkv_shard)", "functional.linear(x, qkv_shard)\n    qkv = all_reduce(qkv)"
        ).replace("return all_reduce(out)", "return out"),
    ),
    (
        "TA16",
        _TENSOR.replace("view(B, T, 3, num_local_heads, -1).permute(2, 0, 3, 1, 4)", "chunk(3, -1)")
        .replace("k.size(-1)", "k.size(-1) // num_local_heads")
        .replace(".transpose(1, 2).contiguous().view(B, T, -1)", ""),
    ),
    # parts are exchanged in a variable, and the collective is there to wait
    (
        "TA17",
        "_parts = {}\n"
        + _TENSOR.replace(
            "return all_reduce(out)",
            "mine = _parts.setdefault(D // proj_shard.shape[1], [])\n    mine.append(out)\n    all_reduce(torch.zeros(1))\n"
            "    return torch.stack(mine[-(D // proj_shard.shape[1]) :]).sum(0)",
        ),
    ),
    # no list holds these
    (None, _TENSOR.replace("return all_reduce(out)", "return all_reduce([out])")),
    (None, _TENSOR.replace("return all_reduce(out)", "x.zero_()\n    return all_reduce(out)")),
    (None, _TENSOR.replace("return all_reduce(out)", "while True:\n        out = all_reduce(out) / 2")),
    (None, _TENSOR.replace("return all_reduce(out)", "return all_reduce(out).mean(0)")),
    (None, _TENSOR.replace("att @ v", "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)")),
    # one rank calls it, and the others have returned
    (
        None,
        "_calls = []\n"
        + _TENSOR.replace(
            "return all_reduce(out)", "_calls.append(1)\n    return all_reduce(out) if len(_calls) % 2 else out"
        ),
    ),
    # what each rank gives is of another shape
    (
        None,
        "_calls = []\n"
        + _TENSOR.replace("return all_reduce(out)", "_calls.append(1)\n    return all_reduce(out[:, : len(_calls)])"),
    ),
]

_MERGE = """
def _partial(q, k, v, hidden=None):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if hidden is not None:
        s = s.masked_fill(hidden, float("-inf"))
    m = s.max(dim=-1).values
    p = torch.exp(s - torch.where(torch.isinf(m), torch.zeros_like(m), m).unsqueeze(-1))
    return m, p.sum(-1), p @ v

def _merge(a, b):
    m = torch.max(a[0], b[0])
    base = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    wa, wb = torch.exp(a[0] - base), torch.exp(b[0] - base)
    return m, wa * a[1] + wb * b[1], wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]
"""
_RING = (
    _MERGE
    + """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    T = q.shape[2]
    state = None
    for i in range(world_size):
        src = (rank - i) % world_size
        hidden = None
        if causal:
            pos = torch.arange(T, device=q.device)
            hidden = (src * T + pos)[None, :] > (rank * T + pos)[:, None]
        now = _partial(q, k, v, hidden)
        state = now if state is None else _merge(state, now)
        if i < world_size - 1:
            k, v = exchange((k, v))
    m, l, o = state
    return o / l.unsqueeze(-1)
"""
)

RING_RIGHT = [
    _RING,
    '''def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """Keys and values travel as one tensor; chunks of the future are passed on unseen."""
    T, kv = q.size(2), torch.stack((k, v))
    out, lse = None, None
    for step in range(world_size):
        source = rank - step + world_size * (step > rank)
        if step:
            (kv,) = exchange([kv])
        if causal and source > rank:
            continue
        s = torch.einsum("bhqd,bhkd->bhqk", q, kv[0]) / math.sqrt(q.size(3))
        if causal and source == rank:
            s = s + torch.full((T, T), float("-inf"), dtype=s.dtype, device=s.device).triu(1)
        new = torch.logsumexp(s, -1, keepdim=True)
        part = torch.exp(s - new) @ kv[1]
        if out is None:
            out, lse = part, new
        else:
            both = torch.logaddexp(lse, new)
            out, lse = out * (lse - both).exp() + part * (new - both).exp(), both
    return out
''',
    '''def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """In float64; the positions travel along; numerator and denominator are kept in one tensor."""
    t = q.shape[-2]
    own = torch.arange(rank * t, rank * t + t, device=q.device)
    keys, values, where = k.double(), v.double(), own.clone()
    top = q.new_full((*q.shape[:-1], 1), -math.inf, dtype=torch.float64)
    sums = torch.zeros(*q.shape[:-1], q.shape[-1] + 1, dtype=torch.float64, device=q.device)
    left = world_size
    while left > 0:
        scores = q.double().matmul(keys.mT).div(q.shape[-1] ** 0.5)
        if causal:
            scores = torch.where(where <= own.unsqueeze(1), scores, -math.inf)
        higher = torch.maximum(top, scores.max(-1, keepdim=True)[0])
        e = torch.exp(scores - higher)
        sums = sums * torch.exp(top - higher) + torch.cat((e @ values, e.sum(-1, keepdim=True)), -1)
        top, left = higher, left - 1
        if left:
            keys, values, where = exchange(tensors=(keys, values, where))
    return (sums[..., :-1] / sums[..., -1:]).to(q.dtype)
''',
    '''from concurrent.futures import ThreadPoolExecutor

def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """The next chunk travels while this one is used."""
    t, d = q.shape[-2:]
    at = torch.arange(t, device=q.device)
    m = l = o = None
    with ThreadPoolExecutor(1) as pool:
        for step in range(world_size):
            coming = pool.submit(exchange, (k, v)) if step < world_size - 1 else None
            s = q @ k.mT / math.sqrt(d)
            if causal:
                gap = (rank - (rank - step) % world_size) * t
                s = s.masked_fill(at[:, None] + gap < at, -math.inf)
            if m is None:
                m = s.amax(-1, keepdim=True)
                p = (s - m).exp()
                l, o = p.sum(-1, keepdim=True), p @ v
            else:
                new = torch.maximum(m, s.amax(-1, keepdim=True))
                p, c = (s - new).exp(), (m - new).exp()
                l, o, m = l * c + p.sum(-1, keepdim=True), o * c + p @ v, new
            if coming is not None:
                k, v = coming.result()
    return o / l
''',
    '''def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """Query by query and key by key in each chunk, item by item; the sums are filled in place."""
    B, H, t, d = q.shape
    m, l, o = q.new_full((B, H, t), -1e30), q.new_zeros(B, H, t), torch.zeros_like(q)
    source = rank
    for step in range(world_size):
        for j in range(t):
            for i in range(t):
                if causal and source * t + j > rank * t + i:
                    continue
                s = (q[:, :, i] * k[:, :, j]).sum(-1) / d ** 0.5
                new = torch.maximum(m[:, :, i], s)
                old, e = torch.exp(m[:, :, i] - new), torch.exp(s - new)
                l[:, :, i] = l[:, :, i] * old + e
                o[:, :, i] = o[:, :, i] * old[..., None] + e[..., None] * v[:, :, j]
                m[:, :, i] = new
        if step + 1 == world_size:
            break
        received = exchange((k, v))
        k, v = received
        del received
        source = source - 1 if source > 0 else world_size - 1
    return o.div_(l.unsqueeze(-1))
''',
    '''def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """Products by broadcasting, and a generator that goes around the ring."""
    def chunks():
        there = rank, k, v
        yield there
        for _ in range(world_size - 1):
            there = ((there[0] - 1) % world_size, *exchange(there[1:]))
            yield there

    t, acc = q.shape[2], [None, 0, 0]
    at = torch.arange(t, device=q.device)
    for source, keys, values in chunks():
        scores = (q.unsqueeze(3) * keys.unsqueeze(2)).sum(-1) * q.shape[3] ** -0.5
        visible = (at + rank * t)[:, None] >= at + source * t if causal else torch.ones(t, t, dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(~visible, -math.inf)
        top = scores.amax(-1, keepdim=True)
        if acc[0] is not None:
            top = torch.maximum(acc[0], top)
            old = torch.exp(acc[0] - top)
            acc[1], acc[2] = acc[1] * old, acc[2] * old
        e = torch.exp(scores - top)
        acc = [top, acc[1] + e.sum(-1, keepdim=True), acc[2] + (e.unsqueeze(-1) * values.unsqueeze(2)).sum(3)]
    return acc[2] / acc[1]
''',
    '''def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    """Keys and values side by side, received first and used afterwards; a tuple is sent that is changed once it has arrived."""
    d = q.shape[-1]
    now = torch.cat((k, v), dim=-1)
    rows = torch.arange(q.shape[-2], device=q.device) + rank * q.shape[-2]
    m, l, o = q.new_full((*q.shape[:-1], 1), -math.inf), 0, 0
    for step in range(world_size):
        sent = now.clone()
        coming = exchange((sent,)) if step < world_size - 1 else ()
        sent.zero_()
        s = q @ now[..., :d].mT / math.sqrt(d)
        if causal:
            columns = torch.arange(q.shape[-2], device=q.device) + (rank - step) % world_size * q.shape[-2]
            s[..., columns > rows.unsqueeze(-1)] = -math.inf
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p, c = torch.exp(s - new), torch.exp(m - new)
        l, o, m = l * c + p.sum(-1, keepdim=True), o * c + p @ now[..., d:], new
        if coming:
            (now,) = coming
    return o / l
''',
]
# What each chunk gives is kept, with no keys and no values, and put together at the end: outputs that are divided, or sums.
_PARTS = """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    n, outs, lses = q.shape[2], [], []
    for step in range(world_size):
        owner = (rank - step) % world_size
        if not causal or owner <= rank:
            s = q @ k.mT / math.sqrt(q.shape[-1])
            if causal and owner == rank:
                s = s.masked_fill(torch.ones(n, n, device=q.device).triu(1).bool(), -math.inf)
            outs.append(s.softmax(-1) @ v)
            lses.append(s.logsumexp(-1))
        if step < world_size - 1:
            k, v = exchange((k, v))
    share = torch.stack(lses).softmax(0)
    return torch.einsum("sbht,sbhtd->bhtd", share, torch.stack(outs))
"""
RING_RIGHT += [
    _PARTS,
    _PARTS.replace("torch.stack(outs))", "torch.cat(outs, dim=2).unflatten(2, (-1, n)).movedim(2, 0))"),
    _PARTS.replace(
        "n, outs, lses = q.shape[2], [], []", "n, outs, lses = q.shape[2], q.new_empty(world_size, *q.shape), []"
    )
    .replace("outs.append(s.softmax(-1) @ v)", "outs[len(lses)] = s.softmax(-1) @ v")
    .replace("torch.stack(outs)", "outs[: len(lses)]"),
    """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    T, held = q.shape[2], tuple(t.clone() for t in (k, v))
    ms, ls, os = [], [], []
    for step in range(world_size):
        s = q @ held[0].mT * (1 / q.shape[-1] ** 0.5)
        if causal:
            gap = T * (rank - (rank - step) % world_size)
            s = torch.where(torch.tril(torch.ones_like(s, dtype=torch.bool), gap), s, -math.inf)
        m = s.amax(-1).clamp(min=torch.finfo(s.dtype).min)
        e = torch.exp(s - m[..., None])
        ms.append(m)
        ls.append(e.sum(-1))
        os.append(e @ held[1])
        if step < world_size - 1:
            got = exchange(held)
            held = (got[0], got[1])
    m = torch.stack(ms)
    w = torch.exp(m - m.amax(0))
    return (w[..., None] * torch.stack(os)).sum(0) / (w * torch.stack(ls)).sum(0)[..., None]
""",
    # the own chunk comes last: what was seen before may be nothing
    _MERGE
    + """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    t, state, now = q.shape[2], None, (k, v)
    at = torch.arange(t, device=q.device)
    for i in range(1, world_size + 1):
        now = exchange(now) if i < world_size else (k, v)
        hidden = (rank - i) % world_size * t + at > (rank * t + at)[:, None] if causal else None
        part = _partial(q, *now, hidden)
        state = part if state is None else _merge(state, part)
    return state[2] / state[1][..., None]
""",
    # a view of the chunk before is still bound to a name while the next two are here
    _MERGE
    + """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    t, state = q.shape[2], None
    at = torch.arange(t, device=q.device)
    for i in range(world_size):
        coming = exchange((k, v)) if i < world_size - 1 else (k, v)
        flipped = k.mT
        hidden = (rank - i) % world_size * t + at > (rank * t + at)[:, None] if causal else None
        part = _partial(q, flipped.mT, v, hidden)
        state = part if state is None else _merge(state, part)
        k, v = coming
    return state[2] / state[1][..., None]
""",
    _RING.replace("def ring_attention", "@torch.inference_mode()\ndef _inside")
    + "\nring_attention = lambda *args, **more: _inside(*args, **more)\n",
    # a thread of the answer's own
    "import threading\n"
    + _RING.replace("def ring_attention", "def _inside")
    + """
def ring_attention(*args, **more):
    out = []
    thread = threading.Thread(target=lambda: out.append(_inside(*args, **more)))
    thread.start()
    thread.join()
    return out[0]
""",
]

# A loop that exchanges last; {}: how often it runs, a chunk's values, and when it exchanges.
_LOOP = """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    T, d = q.shape[-2:]
    m = torch.full(q.shape[:-1], -math.inf, dtype=q.dtype)
    l, o, rows = torch.zeros_like(m), torch.zeros_like(q), rank * T + torch.arange(T)
    for step in range({0}):
        s = q @ k.mT / math.sqrt(d)
        if causal:
            s = s.masked_fill((rank - step) % world_size * T + torch.arange(T) > rows[:, None], -math.inf)
        new = torch.maximum(m, s.amax(-1))
        c, p = torch.exp(m - new), torch.exp(s - new[..., None])
        l, o, m = l * c + p.sum(-1), o * c[..., None] + {1}, new
        if {2}:
            k, v = exchange((k, v))
    return o / l[..., None]
"""

# All chunks are kept, and used when all have come.
_KEPT = """
def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    kept, total = [(k, v)], None
    for _ in range(world_size - 1):
        {}
        {}
    for i, (k, v) in enumerate(kept):
        source, at = (rank - i) % world_size, torch.arange(q.shape[2])
        s = q @ k.to(q.dtype).mT / math.sqrt(q.shape[-1])
        if causal:
            s = s.masked_fill(source * len(at) + at > (rank * len(at) + at)[:, None], -1e30)
        lse, out = s.logsumexp(-1, keepdim=True), s.softmax(-1) @ v.to(q.dtype)
        if total is not None:
            both = torch.logaddexp(lse, total[0])
            out = out * (lse - both).exp() + total[1] * (total[0] - both).exp()
            lse = both
        total = lse, out
    return total[1]
"""

RING_WRONG = [
    ("RA1", _RING.replace("k, v = exchange((k, v))", "k, _ = exchange((k, v))")),
    ("RA2", _RING.replace("(src * T + pos)[None, :] > (rank * T + pos)[:, None]", "pos[None, :] > pos[:, None]")),
    ("RA3", _RING.replace("(rank - i) %", "(rank + i) %")),
    ("RA3", _RING.replace("(rank - i) %", "(rank - i - 1) %")),
    ("RA3", _RING.replace("src = (rank - i) % world_size", "src = i")),
    (
        "RA6",
        _RING.replace("    state = None", "    mine = (k, v)\n    state = None").replace(
            "exchange((k, v))", "exchange(mine)"
        ),
    ),
    (
        "RA7",
        _RING.replace(
            "        if i < world_size - 1:\n            k, v = exchange((k, v))", "        k, v = exchange((k, v))"
        ),
    ),
    (
        "RA8",
        "def ring_attention(q, k, v, rank, world_size, exchange, causal=False):\n    T, out = q.shape[2], 0\n    for i in range(world_size):\n"
        "        s = q @ k.mT / math.sqrt(q.shape[-1])\n        if causal:\n            src, pos = (rank - i) % world_size, torch.arange(T)\n"
        "            s = s.masked_fill(src * T + pos > (rank * T + pos)[:, None], -1e9)\n        w = torch.softmax(s, -1)\n"
        "        if causal and src > rank:\n            w = w * 0\n        out = out + w @ v\n"
        "        if i < world_size - 1:\n            k, v = exchange((k, v))\n    return out / world_size\n",
    ),
    ("RA10", _RING.replace("return o / l.unsqueeze(-1)", "return o")),
    (
        "RA13",
        _RING.replace(
            "    state = None",
            "    chunks = [(k, v)]\n    for _ in range(world_size - 1):\n        chunks.append(exchange(chunks[-1]))\n    state = None",
        )
        .replace("        if i < world_size - 1:\n            k, v = exchange((k, v))\n", "")
        .replace("        hidden = None\n", "        k, v = chunks[i]\n        hidden = None\n"),
    ),
    (
        "RA14",
        _RING.replace(
            "        hidden = None\n", "        if causal and src > rank:\n            break\n        hidden = None\n"
        ),
    ),
    ("RA15", _RING.replace("k, v = exchange((k, v))", "k, = exchange((k,))\n            v, = exchange((v,))")),
    ("RA16", _RING.replace("k, v = exchange((k, v))", "exchange((k, v))")),
    ("RA17", _RING.replace("k, v = exchange((k, v))", "v, k = exchange((k, v))")),
    ("RA18", _RING.replace("if causal:", "if causal and src == rank:")),
    (None, _RING.replace("i < world_size - 1", "i < max(world_size - 1, 1)")),
    (
        None,
        _RING.replace(
            "pos = torch.arange(T, device=q.device)\n            hidden = (src * T + pos)[None, :] > (rank * T + pos)[:, None]",
            "whole = torch.ones(world_size * T, world_size * T).triu(1).bool()\n            hidden = whole[rank * T:(rank + 1) * T, src * T:(src + 1) * T]",
        ),
    ),
    (
        None,
        "def ring_attention(q, k, v, rank, world_size, exchange, causal=False):\n    t, ks, vs = q.shape[2], {rank: k}, {rank: v}\n"
        "    for i in range(1, world_size):\n        k, v = exchange((k, v))\n        ks[(rank - i) % world_size], vs[(rank - i) % world_size] = k, v\n"
        "    k, v = (torch.cat([parts[r] for r in range(world_size)], dim=2) for parts in (ks, vs))\n    s = q @ k.mT / math.sqrt(q.shape[-1])\n"
        "    if causal:\n        s = s.masked_fill(torch.arange(k.shape[2]) > (rank * t + torch.arange(t))[:, None], -math.inf)\n"
        "    return torch.softmax(s, -1) @ v\n",
    ),
    ("FL1", _RING.replace("wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]", "a[2] + wb.unsqueeze(-1) * b[2]")),
    ("FL5", _RING.replace("torch.where(torch.isinf(m), torch.zeros_like(m), m).unsqueeze(-1)", "m.unsqueeze(-1)")),
    ("MK13", _RING.replace("if causal:", "if False:")),
    ("SD1", _RING.replace(" * q.shape[-1] ** -0.5", "")),
    (
        None,
        _RING.replace(
            "    state = None", "    state = None\n    room = q.new_empty(*q.shape[:2], T * world_size, q.shape[3])"
        ).replace(
            "        hidden = None\n", "        room[:, :, src * T : (src + 1) * T] = k\n        hidden = None\n"
        ),
    ),
    ("RA22", _RING.replace("wa * a[1] + wb * b[1]", "a[1] + wb * b[1]")),
    ("RA23", _LOOP.format("world_size - 1", "p @ v", "True")),
    (
        None,
        "def ring_attention(q, k, v, rank, world_size, exchange, causal=False):\n    T = q.shape[2]\n"
        "    s = q @ k.mT / math.sqrt(q.shape[-1])\n    if causal:\n        s = s.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)\n"
        "    return s.softmax(-1) @ v\n",
    ),
    ("RA25", _RING.replace("if causal:", "if True:")),
    ("RA2", _PARTS.replace("if causal and owner == rank:", "if causal:")),
    ("RA8", _LOOP.format("world_size", "(p @ v) / p.sum(-1, keepdim=True).clamp(min=1e-30)", "step < world_size - 1")),
    *(
        (
            "RA8",
            _RING.replace("p.sum(-1), p @ v", "p.sum(-1), (p @ v) / p.sum(-1, keepdim=True).clamp(min=1e-30)").replace(
                "o / l.unsqueeze(-1)", end
            ),
        )
        for end in ("o / l.unsqueeze(-1)", "o / world_size", "o")
    ),
    (
        "RA8",
        """def ring_attention(q, k, v, rank, world_size, exchange, causal=False):
    t = q.shape[2]
    outputs = []
    for step in range(world_size):
        source = (rank - step) % world_size
        if not causal or source <= rank:
            s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if causal and source == rank:
                s = s.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
            outputs.append(torch.softmax(s, dim=-1) @ v)
        if step < world_size - 1:
            k, v = exchange((k, v))
    return torch.stack(outputs).mean(dim=0)
""",
    ),
    (
        "RA28",
        _MERGE.replace("wa, wb = torch.exp(a[0] - base), torch.exp(b[0] - base)", "wa = wb = torch.ones_like(base)")
        + _RING.removeprefix(_MERGE),
    ),
    # each message is longer than the one before
    ("RA13", _KEPT.format("at = exchange(sum(kept, ()))", "kept = [(k, v), *zip(at[::2], at[1::2])]")),
    ("RA13", _KEPT.format("k, v = exchange((k, v))", "kept.append((k.clone(), v.clone()))")),
    (
        "RA13",
        _KEPT.format("k, v = exchange((k, v))", "kept.append((torch.tensor(k.tolist()), torch.tensor(v.tolist())))"),
    ),
    (
        None,
        _KEPT.format(
            "old = exchange(kept[0])", "kept = [tuple(torch.cat(both, 2) for both in zip((k, v), old))]"
        ).replace(
            "    for i, (k, v)",
            "    kept = list(zip(*(both.split(q.shape[2], 2) for both in kept[0])))\n    for i, (k, v)",
        ),
    ),
    # no list holds these
    (None, _RING.replace("exchange((k, v))", "exchange(k)")),
    (None, _RING.replace("k, v = exchange((k, v))", "k, v, _ = exchange((k, v, rank))")),
    (None, _RING.replace("k, v = exchange((k, v))", "k, v = exchange((k, v) if rank else (k, v, v))[:2]")),
    (None, _RING.replace("k, v = exchange((k, v))", "k, v = exchange((k[:, :, : 1 + rank], v[:, :, : 1 + rank]))")),
    (
        None,
        _RING.replace(
            "        if i < world_size - 1:",
            "        if rank == 1:\n            raise RuntimeError('out of memory')\n        if i < world_size - 1:",
        ),
    ),
    (None, _RING.replace("i < world_size - 1", "i < world_size - 1 and rank > 0")),
    (
        None,
        _RING.replace(
            "            k, v = exchange((k, v))", "            while True:\n                k, v = exchange((k, v))"
        ),
    ),
    (
        None,
        _RING.replace(
            "            k, v = exchange((k, v))", "            k, v = exchange((k, v))\n            k += 0.5"
        ),
    ),
    (None, _RING.replace("    state = None", "    k *= 2\n    k = k / 2\n    state = None")),
    (None, _RING.replace("    m, l, o = state", "    m, l, o = state\n    if rank == 0:\n        return None")),
    (
        None,
        _RING.replace(
            "now = _partial(q, k, v, hidden)",
            "now = _partial(q, k, v, hidden)\n        torch.nn.functional.scaled_dot_product_attention(q, k, v)",
        ),
    ),
    # ranks wait for one another by something else than the collective
    (
        None,
        "import threading\n_barriers = {n: threading.Barrier(n) for n in range(1, 5)}\n"
        + _RING.replace("    m, l, o = state", "    _barriers[world_size].wait()\n    m, l, o = state"),
    ),
    (
        None,
        "import queue\n_boxes = [queue.Queue() for _ in range(4)]\n"
        + _RING.replace(
            "k, v = exchange((k, v))",
            "_boxes[(rank + 1) % world_size].put((k, v))\n            k, v = _boxes[rank].get()",
        ),
    ),
    # keys are gathered where torch does not see it
    (
        None,
        "import numpy as np\n"
        + _RING.replace("    m, l, o = state", "    m, l, o = state\n    np.concatenate([k.numpy()] * world_size, 2)"),
    ),
]

RIGHT = {"head_shard": SHARD_RIGHT, "tensor_parallel_attention": TENSOR_RIGHT, "ring_attention": RING_RIGHT}
WRONG = {"head_shard": SHARD_WRONG, "tensor_parallel_attention": TENSOR_WRONG, "ring_attention": RING_WRONG}

WRONG["ring_attention"] += [
    (
        "RA3",
        """def ring_attention(q: Tensor, k: Tensor, v: Tensor, rank: int, world_size: int, exchange, causal: bool = False) -> Tensor:
    t, d = q.shape[2:]
    here = torch.arange(t, device=q.device)
    m = q.new_full(q.shape[:3], -torch.inf)
    l = torch.zeros_like(m)
    o = torch.zeros_like(q)
    for step in range(world_size):
        if step:
            k, v = exchange((k, v))
        source = (rank - step - 1) % world_size if step else rank
        s = q @ k.mT / math.sqrt(d)
        if causal:
            s = s.masked_fill(source * t + here > rank * t + here[:, None], -torch.inf)
        m_new = torch.maximum(m, s.amax(dim=-1))
        factor, p = torch.exp(m - m_new), torch.exp(s - m_new[..., None])
        l = l * factor + p.sum(dim=-1)
        o = o * factor[..., None] + p @ v
        m = m_new
    return o / l[..., None]
""",
    ),
    (
        "SM6",
        """def ring_attention(q: Tensor, k: Tensor, v: Tensor, rank: int, world_size: int, exchange, causal: bool = False) -> Tensor:
    t, d = q.shape[2:]
    here = torch.arange(t, device=q.device)
    m = q.new_full(q.shape[:3], -torch.inf)
    l = torch.zeros_like(m)
    o = torch.zeros_like(q)
    for step in range(world_size):
        if step:
            k, v = exchange((k, v))
        source = (rank - step) % world_size
        s = q @ k.mT / math.sqrt(d)
        if causal:
            s = s.masked_fill(source * t + here > rank * t + here[:, None], -torch.inf)
        m_new = torch.maximum(m, s.amax().expand_as(m))
        factor, p = torch.exp(m - m_new), torch.exp(s - m_new[..., None])
        l = l * factor + p.sum(dim=-1)
        o = o * factor[..., None] + p @ v
        m = m_new
    return o / l[..., None]
""",
    ),
]

WRONG["head_shard"] += [
    (
        None,
        """def head_shard(qkv_weight: Tensor, proj_weight: Tensor, num_heads: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
    if num_heads % world_size:
        raise ValueError("num_heads is not divisible by world_size")
    d_model = proj_weight.shape[0]
    n = d_model // world_size
    mine = slice(rank * n, (rank + 1) * n)
    q, k, v = qkv_weight.split(d_model)
    return torch.cat([q[mine], k[mine], v]), proj_weight[:, mine].clone()
""",
    ),
    (
        None,
        """def head_shard(qkv_weight: Tensor, proj_weight: Tensor, num_heads: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
    if num_heads % world_size:
        raise ValueError("num_heads is not divisible by world_size")
    d_model = proj_weight.shape[0]
    n = d_model // world_size
    mine = slice(rank * n, (rank + 1) * n)
    q, k, v = qkv_weight.split(d_model)
    return torch.cat([q[mine], k[mine], v[mine]]), proj_weight[:, (world_size - 1 - rank) * n : (world_size - rank) * n].clone()
""",
    ),
]

# what is made lies on the CPU
WRONG["head_shard"] += [
    ("DT4", SHARD_RIGHT[5].replace(", device=proj_weight.device", "").replace(", device=own.device", "")),
    (
        "DT4",
        SHARD_RIGHT[4]
        .replace("qkv_weight.new_empty(", "torch.empty(")
        .replace("proj_weight.new_empty(", "torch.empty("),
    ),
]
WRONG["tensor_parallel_attention"] += [
    ("DT4", TENSOR_RIGHT[3].replace(", device=x.device", "").replace(", device=s.device", "")),
    ("DT4", _TENSOR.replace(", device=x.device", "")),
    ("DT4", TENSOR_RIGHT[1].replace(", device=s.device", "")),
]
WRONG["ring_attention"] += [
    ("DT4", _RING.replace(", device=q.device", "")),
    ("DT4", RING_RIGHT[1].replace(", device=s.device", "")),
    ("DT4", _PARTS.replace("torch.ones(n, n, device=q.device).triu(1)", "torch.ones(n, n).triu(1)")),
]
