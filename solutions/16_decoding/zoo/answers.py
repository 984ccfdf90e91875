"""Learners' cells for lesson 16, right in many styles and wrong in many ways."""

_BYTES = """def cache_bytes(num_layers, num_kv_heads, d_head, t, batch=1, bytes_per_number=2):
    per_token = 2 * num_kv_heads * d_head
    return num_layers * batch * t * per_token * bytes_per_number
"""
RIGHT = {
    "cache_bytes": [
        _BYTES,
        "def cache_bytes(num_layers, num_kv_heads, d_head, t, batch=1, bytes_per_number=2):\n"
        "    return math.prod((2, num_layers, num_kv_heads, d_head, t, batch, bytes_per_number))\n",
        "def cache_bytes(num_layers, num_kv_heads, d_head, t, batch=1, bytes_per_number=2):\n"
        "    keys = num_kv_heads * d_head * t\n    values = keys\n"
        "    return sum((keys + values) * bytes_per_number for _ in range(num_layers) for _ in range(batch))\n",
        "cache_bytes = lambda num_layers, num_kv_heads, d_head, t, batch=1, bytes_per_number=2: (\n"
        "    num_layers * num_kv_heads * d_head * t * batch * bytes_per_number) << 1\n",
        "def cache_bytes(num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2, things=('k', 'v')):\n"
        "    one = torch.Size((batch, num_kv_heads, t, d_head)).numel()\n    return len(things) * num_layers * one * bytes_per_number\n",
    ]
}
WRONG = {
    "cache_bytes": [
        ("CB1", _BYTES.replace("2 * num_kv", "num_kv")),
        ("CB2", _BYTES.replace("num_layers * batch", "batch")),
        ("CB2", _BYTES.replace("num_kv_heads * d_head", "d_head")),
        ("CB2", _BYTES.replace("* batch", "")),
        (None, _BYTES.replace(" * bytes_per_number", "")),
        (None, _BYTES.replace("* bytes_per_number", "* 2")),
        ("CB7", _BYTES.replace("* t *", "* t ** 2 *")),
        ("BY15", _BYTES.replace("return ", "return float(").replace("bytes_per_number\n", "bytes_per_number)\n")),
        ("CB9", _BYTES.replace("bytes_per_number\n", "bytes_per_number / 2**20\n")),
        ("CB1", _BYTES.replace("= 2 * num", "= 3 * num")),
        ("CB9", _BYTES.replace("bytes_per_number\n", "bytes_per_number * 8\n")),
        (None, _BYTES.replace("d_head\n", "d_head * num_kv_heads\n")),
        (None, _BYTES.replace("bytes_per_number=2", "bytes_per_number=4")),
        (None, _BYTES.replace("batch=1", "batch=8")),
        (None, _BYTES.replace("d_head\n", "(d_head + num_kv_heads)\n")),
        (None, _BYTES.replace("* t *", "* (t + 1) *")),
        (None, _BYTES.replace("return", "print(").replace("bytes_per_number\n", "bytes_per_number)\n")),
        (
            None,
            _BYTES.replace("bytes_per_number\n", "bytes_per_number / 1024\n")
            .replace("return ", "return ")
            .replace(" / 1024", " // 1000 * 1000"),
        ),
        (None, _BYTES.replace("return ", "return str(").replace("bytes_per_number\n", "bytes_per_number)\n")),
        (None, _BYTES.replace("batch=1, bytes_per_number=2", "bytes_per_number=2, batch=1")),
    ]
}

_CACHE = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.k = torch.empty(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
        self.v = torch.empty_like(self.k)
        self.pos = 0

    def append(self, k, v):
        n = k.size(-2)
        if self.pos + n > self.k.size(-2):
            raise ValueError("cache full")
        self.k[:, :, self.pos:self.pos + n] = k
        self.v[:, :, self.pos:self.pos + n] = v
        self.pos += n
        return self.k[:, :, :self.pos], self.v[:, :, :self.pos]

    def __len__(self):
        return self.pos
"""
_TOGETHER = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.memory = torch.zeros((2, batch, num_kv_heads, max_len, d_head), dtype=dtype, device=device)
        self.n = 0

    @torch.no_grad()
    def append(self, k, v):
        new = k.shape[2]
        room = self.memory.shape[3] - self.n
        if new > room:
            raise ValueError(f"{new} tokens, room for {room}")
        for place, given in zip(self.memory, (k, v)):
            place.narrow(2, self.n, new).copy_(given)
        self.n = self.n + new
        return list(self.memory[:, :, :, : self.n].unbind(0))

    def __len__(self):
        return self.n
"""
RIGHT["KVCache"] = [
    _CACHE,
    _TOGETHER,
    """class KVCache(nn.Module):
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        super().__init__()
        shape = (batch, num_kv_heads, max_len, d_head)
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype, device=device), persistent=False)
        self.register_buffer("values", torch.zeros(shape, dtype=dtype, device=device), persistent=False)
        self.register_buffer("length", torch.tensor(0), persistent=False)

    def append(self, k, v):
        at = torch.arange(k.shape[2]) + int(self.length)
        if at[-1] >= self.keys.shape[2]:
            raise ValueError("too many tokens")
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        self.length += k.shape[2]
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def __len__(self):
        return int(self.length)
""",
    """class KVCache:
    # tokens first: a new token lies in one piece
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.data = [torch.full((max_len, batch, num_kv_heads, d_head), float("nan"), dtype=dtype, device=device) for _ in "kv"]
        self.filled = 0

    def append(self, k, v):
        if self.filled + k.shape[2] > len(self.data[0]):
            raise ValueError("full")
        for t in range(k.shape[2]):
            self.data[0][self.filled] = k[:, :, t]
            self.data[1][self.filled] = v[:, :, t]
            self.filled += 1
        return tuple(one[: self.filled].permute(1, 2, 0, 3) for one in self.data)

    def __len__(self):
        return self.filled
""",
    """class Half:
    __slots__ = ("numbers",)

    def __init__(self, *shape, **more):
        self.numbers = torch.ones(shape, **more)


class Full(ValueError):
    pass


class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.halves = {name: Half(batch, num_kv_heads, max_len + 3, d_head, dtype=dtype, device=device) for name in ("keys", "values")}
        self.max_len, self.used = max_len, []

    def __len__(self):
        return sum(self.used)

    def append(self, k, v):
        start = len(self)
        stop = start + k.shape[2]
        if stop > self.max_len:
            raise Full(stop)
        for half, given in zip(self.halves.values(), (k, v)):
            half.numbers[..., start:stop, :].copy_(given.detach())
        self.used.append(k.shape[2])
        return tuple(half.numbers[..., :stop, :] for half in self.halves.values())
""",
    """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        both = torch.zeros((batch, num_kv_heads, max_len, 2 * d_head), dtype=dtype).to(device)
        self.max_len, self.length = max_len, 0
        self.write = lambda start, stop, new: both[:, :, start:stop].copy_(new)
        self.read = lambda stop: both[:, :, :stop].chunk(2, dim=-1)

    def append(self, k, v):
        stop = self.length + k.shape[2]
        if not stop <= self.max_len:
            raise ValueError
        self.write(self.length, stop, torch.cat([k, v], dim=-1))
        self.length = stop
        return self.read(stop)

    def __len__(self):
        return self.length
""",
]
_GROWING = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.k = torch.empty(batch, num_kv_heads, 0, d_head, dtype=dtype, device=device)
        self.v = torch.empty(batch, num_kv_heads, 0, d_head, dtype=dtype, device=device)
        self.max_len = max_len

    def append(self, k, v):
        if self.k.shape[2] + k.shape[2] > self.max_len:
            raise ValueError("full")
        self.k, self.v = torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)
        return self.k, self.v

    def __len__(self):
        return self.k.shape[2]
"""
_NONE = (
    _GROWING.replace("torch.empty(batch, num_kv_heads, 0, d_head, dtype=dtype, device=device)", "None")
    .replace(
        "        self.k, self.v =",
        "        if self.k is None:\n            self.k, self.v = k, v\n            return k, v\n        self.k, self.v =",
    )
    .replace("if self.k.shape[2] + k", "if len(self) + k")
    .replace("return self.k.shape[2]", "return 0 if self.k is None else self.k.shape[2]")
)
_CHUNKS = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.k, self.v, self.max_len = [], [], max_len

    def append(self, k, v):
        if len(self) + k.shape[2] > self.max_len:
            raise ValueError("full")
        self.k.append(k.clone())
        self.v.append(v.clone())
        return torch.cat(self.k, dim=2), torch.cat(self.v, dim=2)

    def __len__(self):
        return sum(k.shape[2] for k in self.k)
"""
WRONG["KVCache"] = [
    ("KC1", _GROWING),
    (None, _NONE),
    (
        "KC1",
        _NONE.replace(
            "self.k, self.v = k, v\n            return k, v",
            "self.k, self.v = k.clone(), v.clone()\n            return self.k, self.v",
        ),
    ),
    ("KC1", _CHUNKS),
    (
        "KC1",
        _CACHE.replace(
            "        self.pos += n",
            "        self.k = torch.cat([self.k[:, :, :self.pos], k], 2)\n"
            "        self.v = torch.cat([self.v[:, :, :self.pos], v], 2)\n        self.pos += n",
        )
        .replace("self.pos = 0", "self.pos, self.room = 0, max_len")
        .replace("> self.k.size(-2)", "> self.room")
        .replace(
            "        self.k[:, :, self.pos:self.pos + n] = k\n        self.v[:, :, self.pos:self.pos + n] = v\n", ""
        ),
    ),
    (
        "KC2",
        _CACHE.replace("        self.pos += n\n", "").replace(
            "return self.k[:, :, :self.pos], self.v[:, :, :self.pos]", "return self.k[:, :, :n], self.v[:, :, :n]"
        ),
    ),
    (None, _CACHE.replace("return self.k[:, :, :self.pos], self.v[:, :, :self.pos]", "return k, v")),
    (
        "KC4",
        _CACHE.replace("torch.empty(", "torch.zeros(")
        .replace("torch.empty_like", "torch.zeros_like")
        .replace("return self.k[:, :, :self.pos], self.v[:, :, :self.pos]", "return self.k, self.v"),
    ),
    (
        None,
        _CACHE.replace('        if self.pos + n > self.k.size(-2):\n            raise ValueError("cache full")\n', ""),
    ),
    (None, _CACHE.replace("if self.pos + n > self", "if self.pos > self")),
    (None, _CACHE.replace("raise ValueError", "raise IndexError")),
    (
        None,
        _CACHE.replace(
            '        if self.pos + n > self.k.size(-2):\n            raise ValueError("cache full")\n',
            '        assert self.pos + n <= self.k.size(-2), "cache full"\n',
        ),
    ),
    ("KC6", _CACHE.replace("self.pos + n > self", "self.pos + n >= self")),
    (
        "KC7",
        _CACHE.replace(
            "        if self.pos + n > self.k.size(-2)", "        self.pos += n\n        if self.pos > self.k.size(-2)"
        )
        .replace("        self.pos += n\n        return", "        return")
        .replace("self.pos:self.pos + n]", "self.pos - n:self.pos]"),
    ),
    (
        "KC8",
        _TOGETHER.replace(
            'raise ValueError(f"{new} tokens, room for {room}")',
            "self.memory = self.memory.roll(room - new, 3)\n            self.n += room - new",
        ),
    ),
    ("KC18", _CACHE.replace("torch.empty_like(self.k)", "self.k")),
    (
        "KC10",
        _CACHE.replace("+ n] = k\n", "+ n] = w\n")
        .replace("+ n] = v\n", "+ n] = k\n")
        .replace("+ n] = w\n", "+ n] = v\n"),
    ),
    ("KC11", _TOGETHER.replace("dtype=dtype, ", "")),
    ("KC11", _TOGETHER.replace(", device=device)", ")")),
    ("KC13", _TOGETHER.replace("return self.n\n", "return self.memory.shape[3]\n")),
    (
        None,
        _CACHE.replace(
            "self.k[:, :, :self.pos], self.v[:, :, :self.pos]",
            "self.k[:, :, :self.pos].clone(), self.v[:, :, :self.pos].clone()",
        ),
    ),
    (
        "KC2",
        _CACHE.replace("self.pos += n", "self.pos += 1").replace(
            "return self.k[:, :, :self.pos], self.v[:, :, :self.pos]",
            "return self.k[:, :, :self.pos - 1 + n], self.v[:, :, :self.pos - 1 + n]",
        ),
    ),
    (
        "KV3",
        _CACHE.replace(
            "        self.pos += n",
            "        self.k = torch.cat([self.k[:, :, :self.pos], k], 1)\n"
            "        self.v = torch.cat([self.v[:, :, :self.pos], v], 1)\n        self.pos += n",
        )
        .replace("self.pos = 0", "self.pos, self.room = 0, max_len")
        .replace("> self.k.size(-2)", "> self.room")
        .replace(
            "        self.k[:, :, self.pos:self.pos + n] = k\n        self.v[:, :, self.pos:self.pos + n] = v\n", ""
        )
        .replace("return self.k[:, :, :self.pos], self.v[:, :, :self.pos]", "return self.k, self.v"),
    ),
    (
        "KC1",
        _CACHE.replace(
            "        self.k = torch.empty(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)\n"
            "        self.v = torch.empty_like(self.k)\n",
            "        self.sizes = batch, num_kv_heads, max_len, d_head\n"
            "        self.more = {'dtype': dtype, 'device': device}\n",
        ).replace(
            "        n = k.size(-2)\n",
            "        n = k.size(-2)\n        if not self.pos:\n            self.k, self.v = (torch.zeros(self.sizes, **self.more) for _ in 'kv')\n",
        ),
    ),
    (
        None,
        _CACHE.replace(
            "        self.pos += n\n        return", "        self.pos += n\n        k.zero_()\n        return"
        ),
    ),
    (None, _CACHE.replace("        return self.k[:, :, :self.pos], self.v[:, :, :self.pos]\n", "")),
    (
        None,
        _CACHE.replace(
            "return self.k[:, :, :self.pos], self.v[:, :, :self.pos]",
            "return torch.stack([self.k, self.v])[:, :, :, :self.pos]",
        ),
    ),
    (None, _CACHE.replace("        return self.pos", "        return float(self.pos)")),
    (None, _CACHE.replace("    def __len__(self):\n        return self.pos\n", "")),
    (None, _CACHE.replace("def append", "def update")),
    (None, _CACHE.replace("dtype=torch.float32, device=None)", "device=None, dtype=torch.float32)")),
    (None, _CACHE.replace("max_len, d_head, dtype=torch", "d_head, max_len, dtype=torch")),
    (
        None,
        _CACHE.replace(
            "        self.k = torch.empty(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)\n        self.v = torch.empty_like(self.k)",
            "        self.k = KVCache.memory.setdefault((batch, num_kv_heads, max_len, d_head, dtype, device), torch.zeros(2, batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device))[0]\n"
            "        self.v = KVCache.memory[batch, num_kv_heads, max_len, d_head, dtype, device][1]",
        ).replace("class KVCache:", "class KVCache:\n    memory = {}"),
    ),
    (
        None,
        _CACHE.replace("self.k[:, :, self.pos:self.pos + n] = k\n", "self.k[:, :, self.pos:self.pos + n] = k.half()\n"),
    ),
    (
        None,
        _CACHE.replace(
            "self.k[:, :, self.pos:self.pos + n] = k\n",
            "self.k[:, :, self.pos:self.pos + n] = k / k.norm(dim=-1, keepdim=True)\n",
        ),
    ),
    (
        None,
        _CACHE.replace(
            "self.k[:, :, :self.pos], self.v[:, :, :self.pos]",
            "self.k[:, :, :self.pos].transpose(1, 2), self.v[:, :, :self.pos].transpose(1, 2)",
        ),
    ),
    (None, _CACHE.replace("            raise", "            self.k[:, :, :1] = k[:, :, :1]\n            raise")),
    (
        None,
        _CACHE.replace("torch.empty_like(self.k)", "torch.empty(batch, num_kv_heads, max_len, d_head, dtype=dtype)"),
    ),
    (
        None,
        _CACHE.replace("torch.empty_like(self.k)", "torch.empty(batch, num_kv_heads, max_len, d_head, device=device)"),
    ),
    (
        None,
        _CACHE.replace("        self.pos = 0", "        self.pos, self.parts = 0, []").replace(
            "        self.v[:, :, self.pos:self.pos + n] = v",
            "        self.parts.append(v)\n        self.v[:, :, :self.pos + n] = torch.cat(self.parts, dim=2)",
        ),
    ),
]

_GQA = """def grouped_query_attention(q, k, v, causal=True):
    B, H, T, d = q.shape
    H_kv, S = k.shape[1:3]
    if H % H_kv != 0:
        raise ValueError("heads")
    k = torch.repeat_interleave(k, H // H_kv, 1)
    v = torch.repeat_interleave(v, H // H_kv, 1)
    att = torch.einsum("bhid,bhjd->bhij", q, k) * d ** -0.5
    if causal:
        i, j = torch.arange(T, device=q.device)[:, None], torch.arange(S, device=q.device)[None]
        att = torch.where(j > i + (S - T), float("-inf"), att)
    return torch.einsum("bhij,bhjd->bhid", att.softmax(-1), v)
"""
_LOOPED = """def grouped_query_attention(q, k, v, causal=True):
    heads, shared = q.shape[1], k.shape[1]
    if heads % shared:
        raise ValueError(f"{heads} heads, {shared} shared")
    per = heads // shared
    outputs = []
    for h in range(heads):
        g = h // per
        s = q[:, h] @ k[:, g].mT / math.sqrt(q.shape[-1])
        if causal:
            s = s + torch.full(s.shape[-2:], -math.inf, device=s.device).triu(s.shape[-1] - s.shape[-2] + 1)
        outputs.append(F.softmax(s, dim=-1) @ v[:, g])
    return torch.stack(outputs, dim=1)
"""
_GROUPED = """def grouped_query_attention(q, k, v, causal=True):
    b, h, t, d = q.shape
    n = k.shape[1]
    if h % n:
        raise ValueError
    q = q.reshape(b, n, h // n, t, d)
    s = torch.einsum("bngtd,bnsd->bngts", q, k) / d**0.5
    if causal:
        hidden = ~torch.ones(t, k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - t)
        s = s.masked_fill(hidden, torch.finfo(s.dtype).min)
    return torch.einsum("bngts,bnsd->bngtd", s.softmax(dim=-1), v).reshape(b, h, t, d)
"""
RIGHT["grouped_query_attention"] = [
    _GQA,
    _LOOPED,
    _GROUPED,
    _GROUPED.replace("q = q.reshape(b, n, h // n, t, d)", "q = q.unflatten(1, (n, h // n))").replace(
        ".reshape(b, h, t, d)", ".flatten(1, 2)"
    ),
    _GQA.replace(
        "torch.repeat_interleave(k, H // H_kv, 1)",
        "k[:, :, None].expand(-1, -1, H // H_kv, -1, -1).reshape(B, H, S, d)",
    ).replace("torch.repeat_interleave(v, H // H_kv, 1)", "v[:, torch.arange(H) // (H // H_kv)]"),
    """def grouped_query_attention(q, k, v, causal=True):
    b, h, t, d = q.shape
    n, s = k.shape[1], k.shape[2]
    if h % n != 0:
        raise ValueError("no group of whole heads")
    g = h // n
    rows = q.reshape(b, n, g * t, d)  # a group's queries stand below one another
    scores = rows @ k.transpose(-1, -2) / math.sqrt(d)
    if causal:
        seen = torch.ones(t, s, device=q.device).tril(s - t).bool().repeat(g, 1)
        scores = scores.masked_fill(seen.logical_not(), -torch.inf)
    e = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return ((e @ v) / e.sum(-1, keepdim=True)).reshape(b, h, t, d)
""",
]
WRONG["grouped_query_attention"] = [
    ("DT4", _GQA.replace(", device=q.device", "")),
    ("DT4", _GROUPED.replace(", device=q.device", "")),
    (
        "GQ1",
        _GQA.replace("torch.repeat_interleave(k, H // H_kv, 1)", "k.repeat(1, H // H_kv, 1, 1)").replace(
            "torch.repeat_interleave(v, H // H_kv, 1)", "v.repeat(1, H // H_kv, 1, 1)"
        ),
    ),
    ("GQ1", _LOOPED.replace("g = h // per", "g = h % shared")),
    (
        "GQ1",
        _GROUPED.replace("reshape(b, n, h // n, t, d)", "reshape(b, h // n, n, t, d).transpose(1, 2)").replace(
            "v).reshape(b, h, t, d)", "v).transpose(1, 2).reshape(b, h, t, d)"
        ),
    ),
    (
        "GH1",
        _GQA.replace(
            "torch.repeat_interleave(k, H // H_kv, 1)", "torch.repeat_interleave(k, H // H_kv, 2).reshape(B, H, S, d)"
        ).replace(
            "torch.repeat_interleave(v, H // H_kv, 1)", "torch.repeat_interleave(v, H // H_kv, 2).reshape(B, H, S, d)"
        ),
    ),
    ("GH2", _LOOPED.replace("g = h // per", "g = h // shared % shared")),
    (None, _LOOPED.replace("g = h // per", "g = h // shared")),
    ("GH3", _LOOPED.replace("g = h // per", "g = 0")),
    ("GH4", _GQA.replace("torch.repeat_interleave(v, H // H_kv, 1)", "v.repeat(1, H // H_kv, 1, 1)")),
    (
        "RS14",
        _LOOPED.replace('    if heads % shared:\n        raise ValueError(f"{heads} heads, {shared} shared")\n', ""),
    ),
    ("GH6", _GQA.replace("if causal:", "if causal and S == T:")),
    (None, _GROUPED.replace("causal=True", "causal=False")),
    ("GH8", _GQA.replace("if causal:", "if True:")),
    (None, _GQA.replace('bhjd->bhid"', 'bhjd->bihd"')),
    ("GH10", _GROUPED.replace("v).reshape(b, h, t, d)", "v).mean(2)")),
    (None, _LOOPED.replace("torch.stack(outputs, dim=1)", "torch.stack(outputs, dim=1).detach()")),
    ("MK13", _LOOPED.replace("if causal:", "if causal and False:")),
    ("MK14", _GQA.replace("i + (S - T)", "i")),
    ("MK8", _GQA.replace("j > i + (S - T)", "j > i + (S - T) + 1")),
    ("MK3", _GQA.replace('float("-inf")', "0.0")),
    ("MK1", _GROUPED.replace("hidden = ~torch", "hidden = torch")),
    ("SD1", _GQA.replace(" * d ** -0.5", "")),
    ("SD2", _GROUPED.replace("d**0.5", "d")),
    ("SD4", _LOOPED.replace("math.sqrt(q.shape[-1])", "math.sqrt(heads)")),
    ("SM5", _GQA.replace("att.softmax(-1)", "att.exp() / att.exp().sum(-1, keepdim=True)")),
    ("SM1", _GQA.replace("softmax(-1)", "softmax(-2)")),
    ("SM2", _GQA.replace("softmax(-1)", "softmax(1).nan_to_num()")),
    (
        None,
        _GQA.replace("i, j =", "assert S >= T\n        i, j =").replace("if causal:", "assert S >= T\n    if causal:"),
    ),
    (
        None,
        "def grouped_query_attention(q, k, v, causal=True):\n    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)\n",
    ),
    (None, _GQA.replace("d ** -0.5", "(d * H // H_kv) ** -0.5")),
    (None, _GQA.replace("att.softmax(-1), v)", "att.softmax(-1), v.data)")),
    (None, _GQA.replace("    return", "    q *= 1\n    q += 1\n    return")),
    (None, _GROUPED.replace("v).reshape(b, h, t, d)", "v).reshape(b, n, t, -1)")),
    (None, _GQA.replace("if H % H_kv != 0", "if H % H_kv or H == 1")),
    (None, _GQA.replace("v, causal=True", "v, *, causal=True")),
    (None, _GQA.replace("    k = torch", "    q = q.float()\n    k = torch", 1)),
]

_WINDOW = """def window_mask(t_q, t_k, window, sinks=0):
    i = torch.arange(t_k - t_q, t_k).unsqueeze(1)
    j = torch.arange(t_k).unsqueeze(0)
    causal = j <= i
    near = i - j < window
    sink = j < sinks
    return causal & (near | sink)
"""
_ROWS = """def window_mask(t_q, t_k, window, sinks=0):
    mask = torch.zeros(t_q, t_k, dtype=torch.bool)
    for i in range(t_q):
        p = t_k - t_q + i
        mask[i, max(0, p - window + 1):p + 1] = True
        mask[i, :min(sinks, p + 1)] = True
    return mask
"""
RIGHT["window_mask"] = [
    _WINDOW,
    _ROWS,
    """def window_mask(t_q, t_k, window, sinks=0):
    ones = torch.ones(t_q, t_k, dtype=torch.bool)
    shift = t_k - t_q
    recent = ones.tril(shift) & ones.triu(shift - window + 1)
    first = ones.tril(shift) & (torch.arange(t_k) < sinks)
    return recent | first
""",
    """def window_mask(t_q, t_k, window, sinks=0):
    def sees(i, j):
        p = i + t_k - t_q
        return j <= p and (p - j < window or j < sinks)
    return torch.tensor([[sees(i, j) for j in range(t_k)] for i in range(t_q)])
""",
    """def window_mask(t_q, t_k, window, sinks=0):
    back = torch.arange(t_k - t_q, t_k)[:, None] - torch.arange(t_k)
    seen = torch.logical_and(back >= 0, back < window)
    seen[:, :sinks] |= back[:, :sinks] >= 0
    return seen
""",
    """def window_mask(t_q, t_k, window, sinks=0):
    full = torch.ones(t_k, t_k).tril()
    old = torch.ones(t_k, t_k).tril(-window)
    old[:, :sinks] = 0
    return (full - old)[t_k - t_q:].bool()
""",
]
WRONG["window_mask"] = [
    ("SW1", _WINDOW.replace("< window", "<= window")),
    ("SW1", _ROWS.replace("p - window + 1)", "p - window)")),
    ("SW1", _ROWS.replace("p - window + 1)", "min(p, p - window + 2))")),
    ("MK14", _WINDOW.replace("torch.arange(t_k - t_q, t_k)", "torch.arange(t_q)")),
    (
        "WM15",
        _ROWS.replace("p = t_k - t_q + i", "p = t_q - t_k + i")
        .replace("mask[i, max(0, p - window + 1):p + 1] = True", "mask[i, max(0, p - window + 1):max(0, p + 1)] = True")
        .replace("min(sinks, p + 1)", "max(0, min(sinks, p + 1))"),
    ),
    ("WM3", _WINDOW.replace("causal & (near | sink)", "near | sink")),
    ("WM4", _WINDOW.replace("causal & (near | sink)", "(causal & near) | sink")),
    ("WM4", _ROWS.replace("min(sinks, p + 1)", "sinks")),
    ("WM5", _WINDOW.replace("(near | sink)", "near")),
    ("WM9", _WINDOW.replace("j < sinks", "j <= sinks")),
    ("WM7", _WINDOW.replace("< window", "< window - sinks")),
    ("WM5", _WINDOW.replace("(near | sink)", "near & ~sink")),
    ("WM9", _WINDOW.replace("j < sinks", "j >= t_k - sinks")),
    ("MK1", _WINDOW.replace("return causal & (near | sink)", "return ~(causal & (near | sink))")),
    ("MK7", _WINDOW.replace("j <= i", "j < i")),
    ("MK8", _WINDOW.replace("j <= i", "j <= i + 1")),
    ("MA2", _ROWS.replace(", dtype=torch.bool", "")),
    (None, _WINDOW.replace("return causal & (near | sink)", "return (causal & (near | sink)).T")),
    (None, _WINDOW.replace("near = i - j < window", "near = j >= t_k - window")),
    ("WM7", _WINDOW.replace("(near | sink)", "(i - j < window + sinks)")),
    (None, _WINDOW.replace("(near | sink)", "(near & sink)")),
    (None, _WINDOW.replace("i - j < window", "(i - j).abs() < window // 2")),
    (None, _WINDOW.replace("(near | sink)", "(near ^ sink)")),
    (None, _WINDOW.replace("return causal & (near | sink)", "return (causal & (near | sink))[None]")),
    (
        None,
        _WINDOW.replace("torch.arange(t_k - t_q, t_k)", "torch.arange(t_k - t_q, t_k, dtype=torch.int8)").replace(
            "torch.arange(t_k).", "torch.arange(t_k, dtype=torch.int8)."
        ),
    ),
    (
        None,
        _WINDOW.replace("return", "sinks = 0\n    return").replace("sink = j < sinks", "sink = j < min(sinks, window)"),
    ),
    (None, _WINDOW.replace("i - j < window", "i - j < max(window, 2)")),
    (
        None,
        "_kept = {}\n"
        + _WINDOW.replace(
            "return causal & (near | sink)", "return _kept.setdefault((t_q, t_k, window), causal & (near | sink))"
        ),
    ),
    (
        None,
        """_kept = {}
def window_mask(t_q, t_k, window, sinks=0):
    i, j = torch.arange(t_k - t_q, t_k).unsqueeze(1), torch.arange(t_k)
    mask = _kept.setdefault((t_q, t_k, window), (j <= i) & (i - j < window))
    mask |= (j <= i) & (j < sinks)
    return mask
""",
    ),
]

_WRITE = """def generate_cached(model, ids, max_new_tokens):
    cache = model.new_cache(ids.shape[0])
    out, fed = ids, ids
    with torch.no_grad():
        for _ in range(max_new_tokens):
            fed = model(fed, cache)[:, -1].argmax(-1, keepdim=True)
            out = torch.cat((out, fed), dim=1)
    return out
"""
_PREFILL = """@torch.no_grad()
def generate_cached(model, ids, max_new_tokens):
    B, T = ids.shape
    out = torch.empty(B, T + max_new_tokens, dtype=torch.int64, device=ids.device)
    out[:, :T] = ids
    if max_new_tokens == 0:
        return out
    cache = model.new_cache(B)
    logits = model(ids, cache)
    out[:, T] = logits[:, -1, :].argmax(dim=1)
    for t in range(T, T + max_new_tokens - 1):
        logits = model(out[:, t:t + 1], cache)
        out[:, t + 1] = logits[:, 0].argmax(dim=1)
    return out
"""
_LAST = """@torch.no_grad()
def generate_cached(model, ids, max_new_tokens):
    # the last new token is fed, too
    cache, text = model.new_cache(len(ids)), ids
    logits = model(ids, cache)
    for _ in range(max_new_tokens):
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        text = torch.cat([text, token], dim=1)
        logits = model(token, cache)
    return text
"""
RIGHT["generate_cached"] = [
    _WRITE,
    _PREFILL,
    _LAST,
    """def generate_cached(model, ids, max_new_tokens):
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            cache = model.new_cache(len(ids))
            texts = [ids.clone()]
            logits = model(ids, cache)
            for _ in range(max_new_tokens):
                token = logits[:, -1:].argmax(dim=-1)
                texts.append(token)
                logits = model(token, cache)
        return torch.cat(texts, dim=1)
    finally:
        model.train(training)
""",
    """def generate_cached(model, ids, max_new_tokens):
    cache = model.new_cache(batch=ids.size(0))
    seen = 0
    text = ids
    while text.shape[1] < ids.shape[1] + max_new_tokens:
        with torch.no_grad():
            scores = model.forward(text[:, seen:], cache)
        seen = text.shape[1]
        best = torch.topk(scores[:, -1], 1).indices
        text = torch.hstack([text, best])
    return text
""",
    """def generate_cached(model, ids, max_new_tokens):
    was = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        cache, columns, new = model.new_cache(ids.shape[0]), list(ids.unbind(1)), ids
        for _ in range(max_new_tokens):
            last = torch.log_softmax(model(new, cache)[:, -1], dim=-1)
            columns.append(last.max(dim=-1).indices)
            new = columns[-1][:, None]
        return torch.stack(columns, dim=1)
    finally:
        torch.set_grad_enabled(was)
""",
]
WRONG["generate_cached"] = [
    ("GC1", _WRITE.replace("model(fed, cache)", "model(out, cache)")),
    (None, _WRITE.replace("model(fed, cache)", "model(out, model.new_cache(len(ids)))")),
    (None, _WRITE.replace("model(fed, cache)", "model(fed, model.new_cache(len(ids)))")),
    (
        None,
        _WRITE.replace(
            "    with torch.no_grad():\n",
            "    with torch.no_grad():\n        for t in range(ids.shape[1] - 1):\n            model(ids[:, t, None], cache)\n"
            "        fed = ids[:, -1:]\n",
        ),
    ),
    (
        "GC5",
        _WRITE.replace(
            "    with torch.no_grad():\n",
            "    with torch.no_grad():\n        model(ids, cache)\n        fed = ids[:, -1:]\n",
        ),
    ),
    (None, _WRITE.replace("out, fed = ids, ids", "out, fed = ids, ids[:, -1:]")),
    ("CM50", _WRITE.replace("cache)[:, -1]", "cache)[:, 0]")),
    ("CM43", _WRITE.replace("torch.no_grad()", "torch.enable_grad()")),
    ("CM42", _WRITE.replace("    cache =", "    model.eval()\n    cache =")),
    ("CM42", _WRITE.replace("    return out", "    model.train()\n    return out")),
    ("CM54", _WRITE.replace("return out", "return out[:, ids.shape[1]:]")),
    ("GC18", _WRITE.replace("argmax(-1, keepdim=True)", "argmax(-1)")),
    (
        "GC17",
        _WRITE.replace(
            "model(fed, cache)[:, -1].argmax(-1, keepdim=True)",
            "torch.multinomial(model(fed, cache)[:, -1].softmax(-1), 1)",
        ),
    ),
    (
        "GC13",
        _PREFILL.replace("T + max_new_tokens, dtype", "T + max_new_tokens + 1, dtype")
        .replace("T + max_new_tokens - 1)", "T + max_new_tokens)")
        .replace("    if max_new_tokens == 0:\n        return out\n", ""),
    ),
    ("GC13", _WRITE.replace("range(max_new_tokens)", "range(1, max_new_tokens)")),
    (None, _WRITE.replace("new_cache(ids.shape[0])", "new_cache(1)")),
    (None, _WRITE.replace("            out =", "            fed = fed[:1].repeat(len(ids), 1)\n            out =")),
    ("GC17", _WRITE.replace("argmax", "argmin")),
    ("GC1", _LAST.replace("model(token, cache)", "model(text, cache)")),
    (None, _LAST.replace("model(token, cache)", "model(text, model.new_cache(len(ids)))")),
    (None, _LAST.replace("model(token, cache)", "model(token, model.new_cache(len(ids)))")),
    (
        None,
        _LAST.replace(
            "logits = model(ids, cache)",
            "for t in range(ids.shape[1]):\n        logits = model(ids[:, t:t + 1], cache)",
        ),
    ),
    ("GC5", _LAST.replace("logits = model(ids, cache)", "model(ids, cache)\n    logits = model(ids[:, -1:], cache)")),
    (None, _LAST.replace("logits = model(ids, cache)", "logits = model(ids[:, -1:], cache)")),
    ("CM43", _LAST.replace("@torch.no_grad()\n", "")),
    ("CM54", _LAST.replace("return text", "return text[:, -max_new_tokens:]")),
    ("GC13", _LAST.replace("range(max_new_tokens)", "range(max_new_tokens + 1)")),
    ("GC13", _LAST.replace("range(max_new_tokens)", "range(1, max_new_tokens)")),
    (None, _LAST.replace("new_cache(len(ids))", "new_cache(1)")),
    (None, _LAST.replace("new_cache(len(ids))", "new_cache(ids.shape[1])")),
    ("GC18", _LAST.replace("argmax(dim=-1, keepdim=True)", "argmax()")),
    ("GC18", _LAST.replace("argmax(dim=-1, keepdim=True)", "argmax().expand(len(ids), 1)")),
    ("GC18", _WRITE.replace("argmax(-1, keepdim=True)", "argmax().view(1, 1)")),
    (None, _LAST.replace("range(max_new_tokens)", "range(max(1, max_new_tokens))")),
    (None, _LAST.replace("model(token, cache)", "model(text[:, -2:], cache)")),
    (None, _WRITE.replace("model(fed, cache)", "model(fed, None)")),
    (None, _WRITE.replace("model(fed, cache)", "model(fed)")),
    (None, _WRITE.replace("    return out", "    return out.int()")),
    (None, _WRITE.replace("    return out", "    return out.tolist()")),
    (None, _WRITE.replace("    with torch.no_grad():\n", "    torch.set_grad_enabled(False)\n    if True:\n")),
    (None, _WRITE.replace("out = torch.cat((out, fed), dim=1)", "out = torch.cat((out[:, 1:], fed), dim=1)")),
    (None, _PREFILL.replace("    if max_new_tokens == 0:\n        return out\n", "")),
    (None, _WRITE.replace("        for _", "        model(ids, cache)\n        for _")),
    (
        None,
        _WRITE.replace(
            "fed = model(fed, cache)",
            "cache = model.new_cache(len(ids)) if _ == 2 else cache\n            fed = model(fed, cache)",
        ),
    ),
    (None, _WRITE.replace("    return out", "    ids[:, 0] = 0\n    return out")),
    (
        None,
        _WRITE.replace(
            "for _ in range(max_new_tokens):",
            "for _ in range(max_new_tokens):\n            if _ and (fed == 0).any(): break",
        ),
    ),
    (None, _WRITE.replace("(fed, cache)[:, -1]", "(fed, cache)[:, -1].round()")),
    (
        None,
        _WRITE.replace(
            "    cache = model.new_cache(ids.shape[0])",
            "    if not hasattr(model, 'cache'):\n        model.cache = model.new_cache(ids.shape[0])\n    cache = model.cache",
        ),
    ),
    (None, _WRITE.replace("    cache =", "    model.requires_grad_(False)\n    cache =")),
    (
        None,
        _WRITE.replace(
            "cat((out, fed), dim=1)", "cat((out, fed), dim=1)\n            if (fed == 0).all():\n                break"
        ),
    ),
    (None, _WRITE.replace("max_new_tokens", "steps")),
    (
        None,
        _WRITE.replace(
            "    return out",
            "    for p in model.parameters():\n        p.data = p.data.bfloat16().float()\n    return out",
        ),
    ),
]

WRONG["KVCache"] += [
    (
        "KC2",
        """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.keys = torch.zeros(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def append(self, k, v):
        n = k.shape[2]
        if self.length + n > self.keys.shape[2]:
            raise ValueError("full")
        self.keys[:, :, self.length : self.length + n] = k
        self.values[:, :, self.length : self.length + n] = v
        self.length += 1
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def __len__(self):
        return self.length
""",
    )  # the length grows by 1 whatever the chunk
]

WRONG["window_mask"] += [
    (
        "WM14",
        """def window_mask(t_q, t_k, window, sinks=0):
    p = torch.arange(t_q)[:, None] + t_k - t_q
    j = torch.arange(t_k)[None, :]
    mask = (j <= p) & (p - j < window)
    return mask & (j < sinks) if sinks else mask
""",
    )  # window and sinks ANDed
]

WRONG["window_mask"] += [
    (
        "WM15",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    p = torch.arange(t_q)[:, None] + t_k - t_q
    j = torch.arange(t_k)
    return (j <= p) & ((p - (t_k - t_q) - j < window) | (j < sinks))
""",
    ),
    (
        "WM9",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    p = torch.arange(t_q)[:, None] + t_k - t_q
    j = torch.arange(t_k)
    return (j <= p) & ((p - j < window) | (p < sinks))
""",
    ),
    (
        "WM18",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    p = torch.arange(t_q)[:, None] + t_k - t_q
    j = torch.arange(t_k)
    return (j <= p) & ((p // window == j // window) | (j < sinks))
""",
    ),
    (
        "SW1",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    p = torch.arange(t_q)[:, None] + t_k - t_q
    j = torch.arange(t_k)
    return (j <= p) & ((p - j < (window + 1) // 2) | (j < sinks))
""",
    ),
    (
        "WM15",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    p = torch.arange(t_q)[:, None] + t_k - t_q - 1
    j = torch.arange(t_k)
    return (j <= p) & ((p - j < window) | (j < sinks))
""",
    ),
]

WRONG["KVCache"] += [
    (
        "KC7",
        """class KVCache:
    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
        self.max_len, self.length = max_len, 0
        self.k = torch.zeros(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
        self.v = torch.zeros_like(self.k)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(k.shape[2]):
            if self.length == self.max_len:
                raise ValueError("full")
            self.k[:, :, self.length] = k[:, :, i]
            self.v[:, :, self.length] = v[:, :, i]
            self.length += 1
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def __len__(self) -> int:
        return self.length
""",
    ),
    (
        "KC8",
        """class KVCache:
    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
        self.max_len, self.length = max_len, 0
        self.k = torch.zeros(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
        self.v = torch.zeros(batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(k.shape[2]):
            slot = self.length % self.max_len
            self.k[:, :, slot] = k[:, :, i]
            self.v[:, :, slot] = v[:, :, i]
            self.length += 1
        n = min(self.length, self.max_len)
        return self.k[:, :, :n], self.v[:, :, :n]

    def __len__(self) -> int:
        return min(self.length, self.max_len)
""",
    ),
    (
        "KC4",
        """class KVCache:
    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
        size = (batch, num_kv_heads, max_len, d_head)
        self.k = torch.empty(size, dtype=dtype, device=device)
        self.v = torch.empty(size, dtype=dtype, device=device)
        self.n = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        end = self.n + k.shape[2]
        if end > self.k.shape[2]:
            raise ValueError("no room")
        self.k[:, :, self.n : end] = k.detach()
        self.v[:, :, self.n : end] = v.detach()
        self.n = end
        return self.k, self.v

    def __len__(self) -> int:
        return self.n
""",
    ),
    (
        None,
        """class KVCache:
    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
        size = (batch, num_kv_heads, max_len, d_head)
        self.k = torch.empty(size, dtype=dtype, device=device)
        self.v = torch.empty(size, dtype=dtype, device=device)
        self.n = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        end = self.n + k.shape[2]
        if end > self.k.shape[2]:
            raise ValueError("no room")
        new = k.shape[2]
        self.k[:, :, new:end] = self.k[:, :, : self.n].clone()
        self.v[:, :, new:end] = self.v[:, :, : self.n].clone()
        self.k[:, :, :new], self.v[:, :, :new] = k.detach(), v.detach()
        self.n = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def __len__(self) -> int:
        return self.n
""",
    ),
]

WRONG["cache_bytes"] += [
    (
        None,
        """def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    one = num_kv_heads * d_head * t * bytes_per_number
    keys = batch * one
    values = one
    return num_layers * (keys + values)
""",
    ),
    (
        "CB7",
        """def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    total = 0
    for step in range(1, t + 1):
        total += step * d_head * num_kv_heads * 2
    return total * num_layers * batch * bytes_per_number
""",
    ),
    (
        None,
        """def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    keys = batch * t * num_kv_heads * d_head
    values = batch * t * num_kv_heads * d_head
    return num_layers * (keys * bytes_per_number + values)
""",
    ),
    (
        "CB14",
        """def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    keys = batch * (t + 1) * num_kv_heads * d_head
    values = batch * (t + 1) * num_kv_heads * d_head
    return num_layers * (keys + values) * bytes_per_number
""",
    ),
]

WRONG["grouped_query_attention"] += [
    (
        "GH10",
        """def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Tensor:
    b, h, t_q, d = q.shape
    h_kv, t_k = k.shape[1], k.shape[2]
    if h % h_kv:
        raise ValueError("not divisible")
    g = h // h_kv
    grouped = q.reshape(b, h_kv, g, t_q, d).mean(dim=2)
    s = grouped @ k.transpose(-1, -2) / math.sqrt(d)
    if causal:
        mask = torch.ones(t_q, t_k, dtype=torch.bool, device=q.device).tril(t_k - t_q)
        s = s.masked_fill(~mask, -torch.inf)
    out = s.softmax(dim=-1) @ v
    return out.repeat_interleave(g, dim=1)
""",
    )
]

WRONG["window_mask"] += [
    (
        "WM15",
        """def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    i = torch.arange(t_k - t_q, t_k)[:, None]
    p = i + (t_k - t_q)
    j = torch.arange(t_k)[None, :]
    return (j <= p) & ((p - j < window) | (j < sinks))
""",
    )
]

WRONG["cache_bytes"] += [
    (
        "CB14",
        """
def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    kept = t - 1  # the current token brings its own key and value
    per_token = 2 * num_layers * num_kv_heads * d_head * bytes_per_number
    return batch * kept * per_token
""",
    ),
    (
        "CB9",
        """def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    keys = batch * t * num_kv_heads * d_head
    values = batch * t * num_kv_heads * d_head
    return num_layers * (keys + values) * bytes_per_number / 1e6
""",
    ),
]

WRONG["generate_cached"] += [
    (
        None,
        """def generate_cached(model: nn.Module, ids: Tensor, max_new_tokens: int) -> Tensor:
    cache = model.new_cache(ids.shape[0])
    out, feed = ids, ids
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(feed, cache)
            feed = logits[:, -1].argmax(dim=-1, keepdim=True)
            ids.set_(torch.cat([ids, feed], dim=1))
    return ids
""",
    )
]

WRONG["window_mask"] += [
    (
        "WM3",
        """
def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    position = torch.arange(t_q).view(-1, 1) + (t_k - t_q)
    key = torch.arange(t_k).view(1, -1)
    local = (position - key).abs() < window
    always = (key < sinks) & (key <= position)
    return torch.logical_or(local, always)
""",
    ),
    (
        "SW1",
        """def window_mask(t_q, t_k, window, sinks=0):
    rows = []
    for i in range(t_q):
        p = i + t_k - t_q
        rows.append([j <= p and (p - j < window - 1 or j < sinks) for j in range(t_k)])
    return torch.tensor(rows)
""",
    ),
    (
        "WM9",
        """def window_mask(t_q, t_k, window, sinks=0):
    rows = []
    for i in range(t_q):
        p = i + t_k - t_q
        rows.append([j <= p and (p - j < window or j <= sinks) for j in range(t_k)])
    return torch.tensor(rows)
""",
    ),
    (
        "WM5",
        """def window_mask(t_q, t_k, window, sinks=0):
    rows = []
    for i in range(t_q):
        p = i + t_k - t_q
        rows.append([j <= p and (p - j < window and j >= sinks) for j in range(t_k)])
    return torch.tensor(rows)
""",
    ),
    (
        "WM7",
        """def window_mask(t_q, t_k, window, sinks=0):
    rows = []
    for i in range(t_q):
        p = i + t_k - t_q
        rows.append([j <= p and (p - j < window + sinks) for j in range(t_k)])
    return torch.tensor(rows)
""",
    ),
]

WRONG["KVCache"] += [
    (
        "KC13",
        """
class KVCache:
    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
        self.memory = torch.empty(2, batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
        self.position = 0  # where the next token goes
        self.count = 0

    @torch.no_grad()
    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        end = self.position + k.shape[2]
        if end > self.memory.shape[3]:
            raise ValueError("the cache is full")
        self.memory[0, :, :, self.position : end].copy_(k)
        self.memory[1, :, :, self.position : end].copy_(v)
        self.position = end
        self.count += 1
        return self.memory[0, :, :, :end], self.memory[1, :, :, :end]

    def __len__(self) -> int:
        return self.count
""",
    ),
    (
        "KC11",
        """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.both = torch.zeros(2, batch, num_kv_heads, max_len, d_head, dtype=dtype)
        self.used, self.most = 0, max_len

    def append(self, k, v):
        last = self.used + k.size(2)
        if last > self.most:
            raise ValueError("full")
        for half, new in enumerate((k, v)):
            self.both[half, :, :, self.used:last].copy_(new)
        self.used = last
        return self.both[0, :, :, :last], self.both[1, :, :, :last]

    def __len__(self):
        return self.used
""",
    ),
]

WRONG["generate_cached"] += [
    (
        None,
        """def generate_cached(model, ids, max_new_tokens):
    memory = model.new_cache(len(ids))
    columns, fresh = [ids], ids
    while len(columns) <= max_new_tokens:
        with torch.no_grad():
            fresh = model(fresh, model.new_cache(len(ids)))[:, -1:].argmax(2)
        columns.append(fresh)
    return torch.cat(columns, 1)
""",
    ),
    (
        "GC13",
        """def generate_cached(model, ids, max_new_tokens):
    memory = model.new_cache(len(ids))
    columns, fresh = [ids], ids
    while len(columns) < max_new_tokens:
        with torch.no_grad():
            fresh = model(fresh, memory)[:, -1:].argmax(2)
        columns.append(fresh)
    return torch.cat(columns, 1)
""",
    ),
]

WRONG["generate_cached"] += [
    # The text is gathered in a tensor on the CPU, whichever device the prompt is on.
    (
        "DT4",
        """@torch.no_grad()
def generate_cached(model, ids, max_new_tokens):
    before = model.training
    model.eval()
    try:
        b, t = ids.shape
        text = torch.zeros(b, t + max_new_tokens, dtype=torch.long)
        text[:, :t] = ids
        cache, fed = model.new_cache(b), ids
        for i in range(max_new_tokens):
            fed = model(fed, cache)[:, -1].argmax(dim=-1, keepdim=True)
            text[:, t + i : t + i + 1] = fed
        return text
    finally:
        model.train(before)
""",
    )
]
