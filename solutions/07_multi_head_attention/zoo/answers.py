"""Lesson 07: heads, as learners write them."""

_CUT = """def split_heads(x, num_heads):
    B, T, C = x.shape
    return x.view(B, T, num_heads, C // num_heads).transpose(1, 2)
"""
_HEADS = (
    _CUT
    + """
def merge_heads(x):
    return x.transpose(1, 2).flatten(2)

"""
)

_MHA = """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads must divide d_model")
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B = query.size(0)
        q = self.w_q(query).view(B, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.w_k(key).view(B, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.w_v(value).view(B, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v).transpose(1, 2).contiguous().view(B, -1, self.d_model)
        return self.w_o(out), attn
"""

_LOOP = """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.h, self.d = num_heads, d_model // num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = [nn.Linear(d_model, d_model) for _ in range(4)]

    def forward(self, query, key, value, mask=None):
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        if mask is not None:
            mask = mask.expand(q.shape[0], self.h, q.shape[1], k.shape[1])
        outs, ws = [], []
        for i in range(self.h):
            cut = slice(i * self.d, i * self.d + self.d)
            s = q[..., cut] @ k[..., cut].transpose(1, 2) / self.d ** 0.5
            if mask is not None:
                s = torch.where(mask[:, i], s, torch.finfo(s.dtype).min)
            s = s - s.max(dim=-1, keepdim=True).values
            e = s.exp()
            w = e / e.sum(-1, keepdim=True)
            outs.append(w @ v[..., cut])
            ws.append(w)
        return self.w_o(torch.cat(outs, -1)), torch.stack(ws, 1)
"""

_EINSUM = """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        head, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError(f"{d_model} / {num_heads}")
        self.num_heads = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model))
        self.scale = head ** -0.5

    def forward(self, query, key, value, mask=None):
        cut = (self.num_heads, -1)
        q = self.w_q(query).unflatten(-1, cut) * self.scale
        k, v = self.w_k(key).unflatten(-1, cut), self.w_v(value).unflatten(-1, cut)
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        if mask is not None:
            scores = scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(mask.logical_not(), -torch.inf)
        weights = nn.functional.softmax(scores, -1)
        return self.w_o(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(-2)), weights
"""

_OWN = (
    _HEADS
    + """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("no")
        self.num_heads = num_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = (split_heads(w(x), self.num_heads) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores.masked_fill_(~mask, -torch.inf)
        weights = scores.softmax(-1)
        return [self.w_o(merge_heads(weights @ v)), weights]
"""
)

_BUFFERS = (
    _LOOP.replace(
        "        outs, ws = [], []\n",
        "        heads = torch.zeros(q.shape)\n"
        "        weights = torch.zeros(q.shape[0], self.h, q.shape[1], k.shape[1])\n",
    )
    .replace(
        "            outs.append(w @ v[..., cut])\n            ws.append(w)\n",
        "            heads[..., cut] = w @ v[..., cut]\n            weights[:, i] = w\n",
    )
    .replace("self.w_o(torch.cat(outs, -1)), torch.stack(ws, 1)", "self.w_o(heads), weights")
)

_COPY = """def copy_torch_weights(mine, torch_mha):
    with torch.no_grad():
        w_q, w_k, w_v = torch_mha.in_proj_weight.chunk(3)
        b_q, b_k, b_v = torch_mha.in_proj_bias.chunk(3)
        mine.w_q.weight.copy_(w_q)
        mine.w_k.weight.copy_(w_k)
        mine.w_v.weight.copy_(w_v)
        mine.w_q.bias.copy_(b_q)
        mine.w_k.bias.copy_(b_k)
        mine.w_v.bias.copy_(b_v)
        mine.w_o.weight.copy_(torch_mha.out_proj.weight)
        mine.w_o.bias.copy_(torch_mha.out_proj.bias)
"""

RIGHT = {
    "split_heads": [
        _CUT.replace(
            "    return x.view", "    if C % num_heads:\n        raise ValueError('uneven')\n    return x.view"
        ),
        """def split_heads(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("d_model must be divisible by num_heads")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)
""",
        """def split_heads(x, num_heads):
    d_head = x.shape[2] // num_heads
    if d_head * num_heads != x.shape[2]:
        raise ValueError
    out = torch.empty(x.shape[0], num_heads, x.shape[1], d_head, dtype=x.dtype)
    for h in range(num_heads):
        out[:, h] = x[:, :, h * d_head:(h + 1) * d_head]
    return out
""",
        """def split_heads(x, num_heads):
    batch, tokens, width = x.size()
    if width % num_heads:
        raise ValueError(f"{width} by {num_heads}")
    return x.unflatten(-1, (num_heads, width // num_heads)).permute(0, 2, 1, 3).contiguous()
""",
    ],
    "merge_heads": [
        "def merge_heads(x):\n    return torch.cat(x.unbind(dim=1), dim=-1)\n",
        "def merge_heads(x):\n    B, H, T, D = x.shape\n    return x.transpose(1, 2).contiguous().view(B, T, H * D)\n",
        "def merge_heads(x):\n    return x.permute(0, 2, 1, 3).flatten(start_dim=2)\n",
        """def merge_heads(x):
    B, H, T, D = x.shape
    out = x.new_zeros(B, T, H * D)
    for h in range(H):
        out[..., h * D:(h + 1) * D] = x[:, h]
    return out
""",
    ],
    "MultiHeadAttention": [
        _MHA,
        _LOOP,
        _EINSUM,
        _OWN,
        _MHA.replace("torch.softmax(scores, dim=-1)", "(scores - scores.logsumexp(-1, keepdim=True)).exp()"),
        _MHA.replace('float("-inf")', "-2.5e4"),
        _BUFFERS,
    ],
    "copy_torch_weights": [
        _COPY,
        """def copy_torch_weights(mine, torch_mha):
    d = torch_mha.embed_dim
    state = torch_mha.state_dict()
    for i, layer in enumerate([mine.w_q, mine.w_k, mine.w_v]):
        layer.weight.data.copy_(state["in_proj_weight"][i * d:(i + 1) * d])
        layer.bias.data.copy_(state["in_proj_bias"][i * d:(i + 1) * d])
    mine.w_o.load_state_dict(torch_mha.out_proj.state_dict())
""",
        """@torch.no_grad()
def copy_torch_weights(mine, torch_mha):
    names = ("w_q", "w_k", "w_v")
    d = torch_mha.in_proj_weight.shape[0] // 3
    new = {}
    for name, w, b in zip(names, torch_mha.in_proj_weight.split(d), torch_mha.in_proj_bias.split(d)):
        new[f"{name}.weight"], new[f"{name}.bias"] = w, b
    new["w_o.weight"], new["w_o.bias"] = torch_mha.out_proj.weight, torch_mha.out_proj.bias
    mine.load_state_dict(new, strict=False)
    return mine
""",
        """def copy_torch_weights(mine, torch_mha):
    weights = torch_mha.in_proj_weight.detach().clone().view(3, -1, torch_mha.in_proj_weight.shape[1])
    biases = torch_mha.in_proj_bias.detach().clone().view(3, -1)
    for i, layer in enumerate((mine.w_q, mine.w_k, mine.w_v)):
        layer.weight.data = weights[i].clone()
        layer.bias.data = biases[i].clone()
    mine.w_o.weight.data[:] = torch_mha.out_proj.weight.data
    mine.w_o.bias.data[:] = torch_mha.out_proj.bias.data
""",
    ],
}

_SPLIT = RIGHT["split_heads"][0]
_RENORMALISED = _MHA.replace(
    '            scores = scores.masked_fill(mask == 0, float("-inf"))\n', "            pass\n"
).replace(
    "        attn = torch.softmax(scores, dim=-1)\n",
    "        attn = torch.softmax(scores, dim=-1)\n        if mask is not None:\n"
    "            attn = attn * mask\n        attn = attn / attn.sum(-1, keepdim=True)\n",
)

WRONG = {
    "split_heads": [
        (
            "MH1",
            _SPLIT.replace(
                "x.view(B, T, num_heads, C // num_heads).transpose(1, 2)", "x.reshape(B, num_heads, T, C // num_heads)"
            ),
        ),
        (
            "MH1",
            _SPLIT.replace(
                "x.view(B, T, num_heads, C // num_heads).transpose(1, 2)", "x.view(B, num_heads, -1, C // num_heads)"
            ),
        ),
        (
            "MH1+MU1",
            "def split_heads(x, n_heads):\n    B, T, C = x.shape\n    return x.reshape(B, n_heads, T, C // n_heads)\n",
        ),  # and a name
        ("MU1", _CUT),
        (
            "MU1",
            "def split_heads(x, num_heads):\n    d = x.shape[-1] // num_heads\n"
            "    return torch.stack([x[..., h * d:(h + 1) * d] for h in range(num_heads)], 1)\n",
        ),
        ("MU1", "def split_heads(x, num_heads):\n    return torch.stack(x.chunk(num_heads, -1), 1)\n"),
        (
            "MU13",
            """def split_heads(x, num_heads):
    B, T, C = x.shape
    d, rest = divmod(C, num_heads)
    if rest:
        raise ValueError("uneven")
    return torch.stack([x[:, :, h * d:(h + 1) * d] for h in range(num_heads)], dim=0)
""",
        ),
        (
            "MU13",
            """def split_heads(x, num_heads):
    B, T, C = x.shape
    d, rest = divmod(C, num_heads)
    if rest:
        raise ValueError("uneven")
    return torch.stack([x[:, :, h * d:(h + 1) * d] for h in range(num_heads)], dim=1).mT
""",
        ),
        (None, _SPLIT.replace("return x.view", "x = torch.cat([x[:, :8], 0 * x[:, 8:]], 1)\n    return x.view")),
        (
            "MU4",
            _SPLIT.replace(
                "x.view(B, T, num_heads, C // num_heads).transpose(1, 2)",
                "torch.stack([x[..., h::num_heads] for h in range(num_heads)], dim=1)",
            ),
        ),
        ("MU13", _SPLIT.replace(".transpose(1, 2)", "")),
        (None, _SPLIT.replace("x.view", "torch.tensor(x.tolist(), dtype=x.dtype).view")),
        (None, _SPLIT.replace("raise ValueError('uneven')", "raise AssertionError('uneven')")),
        (None, _SPLIT.replace("return x.view", "x = x[:, :, : C]\n    x[:, 0] = 0\n    return x.view")),
    ],
    "merge_heads": [
        (
            "MU18",
            """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=1)
""",
        ),
        (
            "MU17",
            """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    merged = x[:, 0]
    for h in range(1, x.shape[1]):
        merged = torch.cat([x[:, h], merged], dim=-1)
    return merged
""",
        ),
        (
            "MU18",
            """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    return x.mean(dim=1).repeat(1, 1, x.shape[1])
""",
        ),
        (
            None,
            """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    B, H, T, E = x.shape
    return x.as_strided((B, T, H * E), (H * T * E, E, 1)) if H == 1 else x.transpose(1, 2).reshape(B, T, H * E)
""",
        ),
        ("MH2", "def merge_heads(x):\n    B, H, T, D = x.shape\n    return x.reshape(B, T, H * D)\n"),
        ("MH4", "def merge_heads(x):\n    B, H, T, D = x.shape\n    return x.transpose(1, 2).view(B, T, H * D)\n"),
        ("MU17", "def merge_heads(x):\n    return torch.stack(x.unbind(1), dim=-1).flatten(2)\n"),
        ("MU18", "def merge_heads(x):\n    return x.sum(1) / x.shape[1]\n"),
        (None, "def merge_heads(x):\n    return torch.cat(list(x.data.unbind(1)), dim=-1)\n"),
        (None, "def merge_heads(x):\n    return x.sum(1)\n"),
        (
            None,
            "def merge_heads(x):\n    x = torch.cat([x[:, :, :8], 0 * x[:, :, 8:]], 2)\n    return torch.cat(list(x.unbind(1)), dim=-1)\n",
        ),
        (None, "def merge_heads(x):\n    return torch.cat(list(x.unbind(1))[::-1], dim=-1)\n"),
    ],
    "MultiHeadAttention": [
        (
            "MU18",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            w(x).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        heads = (weights @ v).sum(dim=1)
        return self.w_o(heads.repeat(1, 1, self.num_heads)), weights
""",
        ),
        (
            "MU25",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            w(x).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        return self.w_o((weights @ v).transpose(1, 2).flatten(-2)), weights
""",
        ),
        (
            "MK4",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            w(x).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -20.0)
        weights = scores.softmax(dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(-2)), weights
""",
        ),
        (
            "MU45",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def project(self, layer, x):
        parts = []
        n = x.shape[-1] // self.num_heads
        for h, part in enumerate(x.chunk(self.num_heads, dim=-1)):
            rows = slice(h * n, h * n + n)
            parts.append(F.linear(part, layer.weight[rows, rows], layer.bias[rows]))
        return torch.stack(parts, dim=1)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.project(self.w_q, query), self.project(self.w_k, key), self.project(self.w_v, value)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
""",
        ),
        (
            "MU7",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.w_q(query)), self.split(self.w_v(key)), self.split(self.w_k(value))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
""",
        ),
        ("SD3", _MHA.replace("math.sqrt(self.d_k)", "math.sqrt(self.d_model)")),
        ("SD1", _MHA.replace(" / math.sqrt(self.d_k)", "")),
        (
            "MH1",
            _MHA.replace(
                ".view(B, -1, self.num_heads, self.d_k).transpose(1, 2)", ".view(B, self.num_heads, -1, self.d_k)"
            ),
        ),
        ("MH2", _MHA.replace(".transpose(1, 2).contiguous().view(B", ".view(B")),
        ("MK1", _MHA.replace("mask == 0", "mask")),
        ("MK1", _MHA.replace("mask == 0", "mask").replace('float("-inf")', "-1e9")),
        ("MK3", _MHA.replace('float("-inf")', "0.0")),
        ("MK4", _LOOP.replace("torch.finfo(s.dtype).min", "-1e4")),
        (None, _MHA.replace("mask is not None", "False")),
        (None, _MHA.replace("mask is not None", "mask is not None and self.training")),
        (None, _MHA.replace("mask is not None", "mask is not None and not self.training")),
        (
            None,
            _MHA.replace("        scores =", "        self.kept = getattr(self, 'kept', k)\n        scores =").replace(
                "return self.w_o(out)", "return self.w_o(out + 0 * self.kept.sum())"
            ),
        ),
        ("MU2", _MHA.replace("self.w_o(out)", "out")),
        ("MU3", _MHA.replace("return self.w_o(out), attn", "return self.w_o(out), attn.mean(1)")),
        ("MU4", _EINSUM.replace("unflatten(-1, cut)", "unflatten(-1, cut[::-1]).mT")),
        ("MU5", _MHA.replace("self.w_v(value)", "self.w_v(key)")),
        ("MU5", _MHA.replace("self.w_k(key)", "self.w_k(query)").replace("self.w_v(value)", "self.w_v(query)")),
        (None, _MHA.replace("nn.Linear(d_model, d_model)", "nn.Linear(d_model, d_model, bias=False)")),
        ("SM5", _LOOP.replace("            s = s - s.max(dim=-1, keepdim=True).values\n", "")),
        ("NT8", _MHA.replace("return self.w_o(out), attn", "return attn, self.w_o(out)")),
        (None, _MHA.replace("return self.w_o(out), attn", "return self.w_o(out)")),
        ("SD5", _MHA.replace("/ math.sqrt(self.d_k)", "* math.sqrt(self.d_k)")),
        ("SD6", _MHA.replace(" / math.sqrt(self.d_k)", "").replace("dim=-1)", "dim=-1) / math.sqrt(self.d_k)")),
        ("SM2", _MHA.replace("scores, dim=-1", "scores, dim=0")),
        ("SM2", _MHA.replace("scores, dim=-1", "scores, dim=1")),
        ("SM6", _LOOP.replace("s.max(dim=-1, keepdim=True).values", "s.max()")),
        (
            "SM6",
            _OWN.replace(
                "scores.softmax(-1)",
                "(scores - scores.amax((-1, -2), keepdim=True)).exp()\n"
                "        weights = weights / weights.sum(-1, keepdim=True)",
            ),
        ),
        ("MK4", _MHA.replace('masked_fill(mask == 0, float("-inf"))', "add((~mask) * -1e4)")),
        ("MK4", _MHA.replace('float("-inf")', "-100.0")),
        ("MK5", _MHA.replace('masked_fill(mask == 0, float("-inf"))', "add((1 - mask.float()) * -torch.inf)")),
        ("MU21", _RENORMALISED),
        (
            "MU21",
            _RENORMALISED.replace("torch.softmax(scores, dim=-1)", "(scores - scores.amax(-1, keepdim=True)).exp()"),
        ),
        (
            "MU11",
            _MHA.replace(
                "            scores = scores.masked",
                "            mask = mask[:, None] if mask.dim() == 3 else mask\n            scores = scores.masked",
            ),
        ),
        ("SM1", _MHA.replace('float("-inf")', "-1e9").replace("scores, dim=-1", "scores, dim=-2")),
        (
            "SM2",
            _MHA.replace('float("-inf")', "torch.finfo(scores.dtype).min").replace("scores, dim=-1", "scores, dim=0"),
        ),
        ("SM3", _MHA.replace("torch.softmax(scores, dim=-1)", "torch.softmax(scores.flatten(), 0).view_as(scores)")),
        (
            "SM4",
            _OWN.replace(
                "scores.softmax(-1)",
                "(scores - scores.amax(-1, keepdim=True)).exp()\n        weights = weights / weights.sum(-1)",
            ),
        ),
        ("SD8", _EINSUM.replace('"bihd,bjhd->bhij", q, k', '"bihd,bjhd->bhij", k, q')),
        ("SD8", _MHA.replace("torch.matmul(attn, v)", "torch.matmul(attn.transpose(-2, -1), v)")),
        ("SD8", _MHA.replace("self.w_q(query)", "self.w_q(key)").replace("self.w_k(key)", "self.w_k(query)")),
        ("MU5", _MHA.replace("self.w_q(query)", "self.w_q(key)")),
        (
            "MU5",
            _EINSUM.replace("self.w_q(query)", "self.w_q(key)")
            .replace("self.w_k(key)", "self.w_k(query)")
            .replace("self.w_v(value)", "self.w_v(query)"),
        ),
        ("MK12", _OWN.replace("~mask", "~mask[..., :q.size(2), :q.size(2)]")),
        (
            "MH1+MH2",
            _MHA.replace(
                ".view(B, -1, self.num_heads, self.d_k).transpose(1, 2)", ".view(B, self.num_heads, -1, self.d_k)"
            ).replace(".transpose(1, 2).contiguous().view(B", ".view(B"),
        ),
        ("MU7", _MHA.replace("self.w_k(key)", "self.w_q(key)").replace("self.w_v(value)", "self.w_q(value)")),
        ("MU22", _MHA.replace("-inf", "inf")),
        ("MU11", _MHA.replace("mask == 0", "mask.transpose(-2, -1) == 0")),
        (None, _OWN.replace("q @ k.mT", "q.detach() @ k.mT")),
        ("MU25", _MHA.replace("        out = ", "        attn = nn.functional.dropout(attn, 0.1)\n        out = ")),
        ("BW3", _MHA.replace("torch.softmax(scores,", "torch.softmax(scores.detach(),")),
        (
            None,
            _MHA.replace(
                "torch.softmax(scores, dim=-1)",
                "torch.softmax(scores - scores.mean(-1, keepdim=True), dim=-1).half().to(v)",
            ),
        ),
        (
            None,
            _MHA.replace(
                "        B = query.size(0)\n",
                "        B = query.size(0)\n        if getattr(self, 'seen', None) == query.shape:\n"
                "            return self.kept\n        self.seen = query.shape\n",
            ).replace("return self.w_o(out), attn", "self.kept = self.w_o(out), attn\n        return self.kept"),
        ),
        (
            None,
            _MHA.replace(
                "        B = query.size(0)\n",
                "        B = query.size(0)\n        self.mask = getattr(self, 'mask', mask)\n"
                "        mask = self.mask\n",
            ),
        ),
        (
            None,
            _MHA.replace(
                "        if mask is",
                "        if query.size(0) > 4 or key.size(1) > 8 or self.num_heads > 4:\n"
                "            scores = scores * 1.5\n        if mask is",
            ),
        ),
        *(
            (None, _LOOP.replace("s.max(dim=-1, keepdim=True).values", less))
            for less in (
                "s.mean(-1, keepdim=True)",
                "s.min(-1, keepdim=True).values",
                "s.median(-1, keepdim=True).values",
                "s[..., :1]",
                "s[..., -1:]",
            )
        ),
        (None, _MHA.replace("self.w_o", "self.out")),
        (None, _MHA.replace("query, key, value, mask=None", "query, key, value")),
        (
            None,
            """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.h = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = [nn.Linear(d_model, d_model) for _ in range(4)]

    def forward(self, query, key, value, mask=None):
        q, k, v = (y.unflatten(-1, (self.h, -1)).transpose(1, 2) for y in (self.w_q(query), self.w_k(key), self.w_v(value)))
        out = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(out.transpose(1, 2).flatten(2)), torch.softmax(q @ k.mT, -1)
""",
        ),
    ],
    "copy_torch_weights": [
        ("MU31", _COPY.replace("w_q, w_k, w_v = torch", "w_k, w_q, w_v = torch")),
        ("MU31", _COPY.replace("b_q, b_k, b_v = torch", "b_k, b_q, b_v = torch")),
        (
            "MU44",
            "def copy_torch_weights(mine, torch_mha):\n    mine.load_state_dict(torch_mha.state_dict(), strict=False)\n",
        ),
        (
            "MU44",
            _COPY.replace("    with", "    import copy\n    mine = copy.deepcopy(mine)\n    with")
            + "    return mine\n",
        ),
        (
            "MU44",
            "def copy_torch_weights(mine, torch_mha):\n    w = mine.w_q.weight\n    w = torch_mha.in_proj_weight.chunk(3)[0]\n",
        ),
        (None, _COPY.replace("    with", "    torch_mha.requires_grad_(False)\n    with")),
        (
            "MU31",
            _COPY.replace("w_q, w_k, w_v = torch", "w_q, w_v, w_k = torch").replace(
                "b_q, b_k, b_v = torch", "b_q, b_v, b_k = torch"
            ),
        ),
        (
            "MU31",
            _COPY.replace("w_q, w_k, w_v = torch", "w_k, w_q, w_v = torch").replace(
                "b_q, b_k, b_v = torch", "b_k, b_q, b_v = torch"
            ),
        ),
        ("MU33", _COPY.replace("out_proj.weight)", "out_proj.weight.t())")),
        ("MU33", _COPY.replace("(w_q)", "(w_q.T)")),
        ("MU33", _COPY.replace("(w_q)", "(w_q.T)").replace("(w_k)", "(w_k.mT)")),
        ("MU33", _COPY.replace("in_proj_weight.chunk(3)", "in_proj_weight.T.chunk(3)")),
        (
            "MU33",
            _COPY.replace("in_proj_weight.chunk(3)", "in_proj_weight.T.reshape(3, len(torch_mha.out_proj.bias), -1)"),
        ),
        (
            "MU41",
            """def copy_torch_weights(mine, torch_mha):
    (a, b, c), (d, e, f), o = torch_mha.in_proj_weight.chunk(3), torch_mha.in_proj_bias.chunk(3), torch_mha.out_proj
    with torch.no_grad():
        for p, new in zip(mine.parameters(), (a, d, b, e, c, f, o.weight, o.bias)):
            p.copy_(new)
""",
        ),
        ("MU42", RIGHT["copy_torch_weights"][2].replace(", strict=False", "")),
        (None, _COPY + "    mine.requires_grad_(False)\n"),
        (None, _COPY + "    torch.set_grad_enabled(False)\n"),
        (
            "MU33",
            _COPY.replace("(w_q)", "(w_q.t())")
            .replace("(w_k)", "(w_k.t())")
            .replace("(w_v)", "(w_v.t())")
            .replace("out_proj.weight)", "out_proj.weight.t())"),
        ),
        ("MU34", _COPY.replace("        mine.w_o.bias.copy_(torch_mha.out_proj.bias)\n", "")),
        (
            "MU34",
            _COPY.replace(
                "        mine.w_o.weight.copy_(torch_mha.out_proj.weight)\n        mine.w_o.bias.copy_(torch_mha.out_proj.bias)\n",
                "",
            ),
        ),
        (
            "MU36",
            """def copy_torch_weights(mine, torch_mha):
    for i, name in enumerate(["w_q", "w_k", "w_v"]):
        layer = getattr(mine, name)
        layer.weight = nn.Parameter(torch_mha.in_proj_weight.chunk(3)[i].detach().clone())
        layer.bias = nn.Parameter(torch_mha.in_proj_bias.chunk(3)[i].detach().clone())
    mine.w_o.weight = nn.Parameter(torch_mha.out_proj.weight.detach().clone())
    mine.w_o.bias = nn.Parameter(torch_mha.out_proj.bias.detach().clone())
""",
        ),
        (
            "MU37",
            """def copy_torch_weights(mine, torch_mha):
    for layer, w, b in zip((mine.w_q, mine.w_k, mine.w_v), torch_mha.in_proj_weight.chunk(3), torch_mha.in_proj_bias.chunk(3)):
        layer.weight.data = w.data
        layer.bias.data = b.data
    mine.w_o.weight.data = torch_mha.out_proj.weight.data
    mine.w_o.bias.data = torch_mha.out_proj.bias.data
""",
        ),
        (None, _COPY.replace("with torch.no_grad():", "if True:")),
        ("MU36", _COPY.replace(".copy_(", " = (")),
        (None, "def copy_torch_weights(mine, torch_mha):\n    mine.__dict__.update(torch_mha.__dict__)\n"),
        (None, "def copy_torch_weights(mine, torch_mha):\n    mine.w_o = torch_mha.out_proj\n"),
        (None, "def copy_torch_weights(mine, torch_mha):\n    return mine\n"),
    ],
}

# Right on ordinary inputs alone
WRONG["split_heads"] += [
    (
        None,
        '''def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """No copy at all: only another way to walk through the same memory."""
    B, T, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("num_heads does not divide d_model")
    d_head = d_model // num_heads
    shape = (B, num_heads, T, d_head)
    steps = (T * d_model, d_head, d_model, 1)  # next item, next head, next token, next number
    return torch.as_strided(x, shape, steps)
''',
    )
]
WRONG["MultiHeadAttention"] += [
    (
        None,
        """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads: raise ValueError("no")
        self.h = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.kept = None
    def weights(self):
        if self.training:
            self.kept = None
            return torch.cat([self.w_k.weight, self.w_v.weight])
        if self.kept is None or self.kept.dtype != self.w_q.weight.dtype:
            self.kept = torch.cat([self.w_k.weight, self.w_v.weight])
        return self.kept
    def forward(self, query, key, value, mask=None):
        w_k, w_v = self.weights().chunk(2)
        s = lambda y: y.unflatten(-1, (self.h, -1)).transpose(1, 2)
        q, k, v = s(self.w_q(query)), s(key @ w_k.T + self.w_k.bias), s(value @ w_v.T + self.w_v.bias)
        z = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None: z = z.masked_fill(~mask, -math.inf)
        w = z.softmax(-1)
        return self.w_o((w @ v).transpose(1, 2).flatten(2)), w
""",
    )
]
