"""Learners' cells for lesson 17, right in many styles and wrong in many ways."""

# --- rms_norm --------------------------------------------------------------------------------

_LLAMA = """def _norm(x, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

def rms_norm(x, weight, eps=1e-5):
    return _norm(x.float(), eps).type_as(x) * weight if x.dtype != torch.float64 else _norm(x, eps) * weight
"""
_HUB = """def rms_norm(x, weight, eps=1e-5):
    input_dtype = x.dtype
    hidden_states = x.to(torch.float32) if x.element_size() < 4 else x
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + eps)
    return weight * hidden_states.to(input_dtype)
"""
_DOUBLE = """def rms_norm(x, weight, eps=1e-5):
    y = x.double()
    return (weight.double() * y / (y.square().sum(-1, keepdim=True) / y.shape[-1] + eps).sqrt()).to(x.dtype)
"""
_LENGTH = """def rms_norm(x, weight, eps=1e-5):
    y = x.to(torch.promote_types(torch.float32, x.dtype))
    length = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
    return (y * (x.size(-1) / (length ** 2 + x.size(-1) * eps)) ** 0.5 * weight).to(x)
"""
_ROWS = """def rms_norm(x, weight, eps=1e-5):
    precise = x if x.dtype == torch.float64 else x.float()
    done = []
    for row in precise.reshape(-1, x.shape[-1]):
        total = sum(number * number for number in row)
        done.append(row * weight / (total / len(row) + eps) ** 0.5)
    return torch.stack(done).reshape(x.shape).to(x.dtype)
"""
_EINSUM = """def rms_norm(x, weight, eps=1e-5):
    kind = x.dtype
    x = x.to(torch.float64)
    mean_square = torch.einsum("...i,...i->...", x, x) / x.shape[-1]
    return torch.einsum("...i,...,i->...i", x, 1 / (mean_square + eps).sqrt(), weight.to(torch.float64)).to(kind)
"""

RIGHT = {
    "rms_norm": [
        _LLAMA,
        _HUB,
        _DOUBLE,
        _LENGTH,
        _ROWS,
        _EINSUM,
        _HUB.replace(
            "weight * hidden_states.to(input_dtype)",
            "(weight.float() * hidden_states.float()).to(input_dtype) "
            "if x.element_size() < 8 else weight * hidden_states",
        ),
    ]
}
WRONG = {
    "rms_norm": [
        (
            "TB89",
            """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    scaled = x.to(wide) * weight.to(wide)
    rms = (scaled.square().mean(-1, keepdim=True) + eps).sqrt()
    return (scaled / rms).to(x.dtype)
""",
        ),
        ("TB1", _DOUBLE.replace("y = x.double()", "y = x.double()\n    y = y - y.mean(-1, keepdim=True)")),
        (
            "TB1",
            _DOUBLE.replace(
                "(y.square().sum(-1, keepdim=True) / y.shape[-1] + eps)",
                "(y.var(-1, unbiased=False, keepdim=True) + eps)",
            ),
        ),
        ("TB2", _DOUBLE.replace(" / y.shape[-1]", "")),
        (
            "TB2",
            "def rms_norm(x, weight, eps=1e-5):\n    y = x.float()\n"
            "    return (y * y.shape[-1] / (y.norm(dim=-1, keepdim=True) + eps) * weight).to(x.dtype)\n",
        ),
        (
            "TB2",
            "def rms_norm(x, weight, eps=1e-5):\n    y = x.float()\n"
            "    return (y / torch.linalg.vector_norm(y, dim=-1, keepdim=True) * weight).to(x.dtype)\n",
        ),
        ("TB3", _DOUBLE.replace(".sqrt()", "")),
        ("TB4", _DOUBLE.replace("+ eps).sqrt())", ").sqrt() + eps))").replace("/ (y.square", "/ ((y.square")),
        ("TB13", _HUB.replace("variance + eps", "variance")),
        ("TB6", _HUB.replace("weight * hidden", "hidden")),
        ("TB7", _HUB.replace("weight * hidden", "(1 + weight) * hidden")),
        ("TB8", _HUB.replace("mean(-1", "mean(0")),
        ("TB8", _HUB.replace("mean(-1, keepdim=True)", "mean()")),
        (None, _HUB.replace("mean(-1, keepdim=True)", "mean(-1)")),
        (
            None,
            _HUB.replace(
                "return weight * hidden_states.to(input_dtype)",
                "return (x * weight * torch.rsqrt(variance + eps)).to(input_dtype)",
            ),
        ),
        (
            "TB11",
            "def rms_norm(x, weight, eps=1e-5):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight\n",
        ),
        (
            "TB11",
            "def rms_norm(x, weight, eps=1e-5):\n    return x / (x ** 2).mean(-1, keepdim=True).add(eps).sqrt() * weight\n",
        ),
        (None, _HUB.replace("hidden_states.to(input_dtype)", "hidden_states")),
        ("TB13", _HUB.replace("variance + eps", "variance + 1e-5")),
        ("TB14", _HUB.replace("eps=1e-5", "eps=1e-6")),
        (None, _HUB.replace("torch.rsqrt(variance + eps)", "torch.rsqrt(variance + eps).detach()")),
        (
            None,
            _HUB.replace(
                "hidden_states.pow(2).mean(-1, keepdim=True)", "hidden_states.abs().mean(-1, keepdim=True) ** 2"
            ),
        ),
        ("TB2", _DOUBLE.replace("/ y.shape[-1]", "/ (y.shape[-1] - 1)")),
        (None, "def rms_norm(x, weight, eps=1e-5):\n    return F.rms_norm(x, x.shape[-1:], weight, eps)\n"),
        (None, "def rms_norm(x, weight, eps=1e-5):\n    return torch.rms_norm(x, (x.shape[-1],), weight, eps)\n"),
        (
            None,
            "def rms_norm(x, weight, eps=1e-5):\n    return F.normalize(x.float(), dim=-1, eps=eps) * x.shape[-1] ** 0.5 * weight\n",
        ),
        (
            None,
            "def rms_norm(x, weight, eps=1e-5):\n    n = nn.RMSNorm(x.shape[-1], eps, elementwise_affine=False)\n    return (n(x.float()) * weight).to(x.dtype)\n",
        ),
        ("TB18", _HUB.replace("hidden_states * torch", "hidden_states.mul_(torch").replace("+ eps)\n", "+ eps))\n")),
        (None, _HUB.replace("variance + eps", "torch.clamp(variance, min=eps)")),
        (
            None,
            _HUB.replace("    return", "    hidden_states = hidden_states.clamp(-8, 8)\n    return").replace(
                "x.to(torch.float32) if x.element_size() < 4 else x", "x.half().float()"
            ),
        ),
        (
            None,
            _DOUBLE.replace("x.double()", "x.double().nan_to_num(posinf=1e4)").replace(
                ".to(x.dtype)", ".to(torch.float32)"
            ),
        ),
        (None, _LENGTH.replace("weight).to(x)", "weight)")),
        (None, _ROWS.replace("precise = x if x.dtype == torch.float64 else x.float()", "precise = x")),
    ]
}

# --- SwiGLU ----------------------------------------------------------------------------------

_GLU = """class SwiGLU(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        g, u = self.gate(x), self.up(x)
        return self.down(g * torch.sigmoid(g) * u)
"""
_ACT = """class SwiGLU(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.act = nn.SiLU()
        self.down = nn.Linear(in_features=d_hidden, out_features=d_model, bias=False)
        self.up = nn.Linear(d_model, d_hidden, False)
        self.gate = nn.Linear(d_model, d_hidden, False)

    def forward(self, x):
        return self.down(self.up(x) * self.act(self.gate(x)))
"""
_FUSED = """class SwiGLU(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        for name in ("gate", "up"):
            setattr(self, name, nn.Linear(d_model, d_hidden, bias=False))
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        both = x @ torch.cat([self.gate.weight, self.up.weight]).T
        g, u = both.chunk(2, dim=-1)
        return F.linear(F.silu(g).mul(u), self.down.weight)
"""
_EINS = """class SwiGLU(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d_model, d_hidden, bias=False), nn.Linear(d_model, d_hidden, bias=False), nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        g = torch.einsum("...i,hi->...h", x, self.gate.weight)
        h = g / (1 + torch.exp(-g)) * torch.einsum("...i,hi->...h", x, self.up.weight)
        return torch.einsum("...h,ih->...i", h, self.down.weight)
"""
RIGHT["SwiGLU"] = [
    _GLU,
    _ACT,
    _FUSED,
    _EINS.replace("g / (1 + torch.exp(-g))", "g * (1 + torch.tanh(g / 2)) / 2"),
    _GLU.replace("g * torch.sigmoid(g)", "F.hardtanh(F.silu(g), -1e9, 1e9)"),
]
WRONG["SwiGLU"] = [
    ("TB21", _GLU.replace("g, u = self.gate(x), self.up(x)", "u, g = self.gate(x), self.up(x)")),
    ("TB21", _FUSED.replace("g, u = both", "u, g = both")),
    ("TB22", _GLU.replace("g * torch.sigmoid(g) * u", "torch.sigmoid(g) * u")),
    ("TB22", _ACT.replace("nn.SiLU()", "nn.Sigmoid()")),
    ("TB22", _ACT.replace("nn.SiLU()", "nn.GELU()")),
    ("TB22", _ACT.replace("nn.SiLU()", "nn.ReLU()")),
    ("TB22", _ACT.replace("nn.SiLU()", "nn.Identity()")),
    ("TB26", _GLU.replace("(g) * u", "(g) + u")),
    ("TB27", _GLU.replace("g * torch.sigmoid(g) * u", "g * u * torch.sigmoid(g * u)")),
    ("TB27", _ACT.replace("self.up(x) *", "self.act(self.up(x)) *")),
    ("TB29", _ACT.replace("self.up(x) * ", "")),
    ("PJ2", _ACT.replace("bias=False", "bias=True")),
    ("PJ2", _ACT.replace("d_hidden, False", "d_hidden").replace(", bias=False", "")),
    ("TB31", _GLU.replace("super().__init__()", "super().__init__()\n        d_hidden = 2 * d_hidden // 3")),
    ("TB22", _GLU.replace("torch.sigmoid(g)", "torch.sigmoid(1.702 * g)")),
    ("TB33", _ACT.replace("return self.down", "return x + self.down")),
    ("TB29", _GLU.replace("u = self.gate(x), self.up(x)", "u = self.gate(x), self.gate(x)")),
    (
        "TB27",
        _ACT.replace(
            "self.down(self.up(x) * self.act(self.gate(x)))", "self.act(self.down(self.up(x) * self.act(self.gate(x))))"
        ),
    ),
    (
        None,
        _ACT.replace("self.gate", "self.gate_proj")
        .replace("self.up", "self.up_proj")
        .replace("self.down", "self.down_proj"),
    ),
    (None, _GLU.replace("class SwiGLU(nn.Module)", "class SwiGLU")),
    (None, _EINS.replace("x, self.gate.weight", "x.detach(), self.gate.weight")),
    (
        None,
        _GLU.replace("return self.down", "return nn.functional.dropout(self.down").replace(
            "* u)", "* u), 0.1, self.training)"
        ),
    ),
    (
        None,
        _GLU.replace(
            "g, u = self.gate(x), self.up(x)", "g, u = self.gate(x), self.up(x)\n        g = g.clamp(-20, 20)"
        ),
    ),
    (None, _GLU.replace("g, u =", "x = F.layer_norm(x, x.shape[-1:])\n        g, u =")),
    (None, _ACT.replace("nn.SiLU()", "nn.Hardswish()")),
    (None, _GLU.replace("g * torch.sigmoid(g) * u", "(g * torch.sigmoid(g) * u).detach()")),
]

# --- GroupedQuerySelfAttention ----------------------------------------------------------------

_INIT = """class GroupedQuerySelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, base=10000.0):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads or d_model // num_heads % 2:
            raise ValueError("sizes")
        self.H, self.G, self.d, self.base = num_heads, num_kv_heads, d_model // num_heads, base
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.d, bias=False)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.d, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
"""
_BY_HAND = (
    _INIT
    + """
    def forward(self, x):
        B, T, C = x.shape
        q = self.w_q(x).view(B, T, self.H, self.d).transpose(1, 2)
        k = self.w_k(x).view(B, T, self.G, self.d).transpose(1, 2)
        v = self.w_v(x).view(B, T, self.G, self.d).transpose(1, 2)
        at = torch.arange(T, device=x.device)
        q = apply_rope(q, at, self.base)
        k = apply_rope(k, at, self.base)
        k = k.repeat_interleave(self.H // self.G, 1)
        v = v.repeat_interleave(self.H // self.G, 1)
        s = q @ k.mT * self.d ** -0.5
        s = s.masked_fill(torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        y = torch.softmax(s, -1) @ v
        return self.w_o(y.transpose(1, 2).reshape(B, T, C))
"""
)
_COMPLEX = (
    _INIT.replace("self.base = num", "self.theta = num")
    + """
    def forward(self, x):
        b, t, _ = x.shape
        i = torch.arange(0, self.d, 2, dtype=torch.float64, device=x.device)
        turn = torch.polar(torch.ones(t, self.d // 2, dtype=torch.float64, device=x.device), torch.outer(torch.arange(t, device=x.device), self.theta ** (-i / self.d)))
        def rotate(y):
            pairs = torch.view_as_complex(y.double().unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(pairs * turn[:, None]).flatten(-2).to(x.dtype)
        q, k, v = rotate(self.w_q(x).view(b, t, self.H, self.d)), rotate(self.w_k(x).view(b, t, self.G, self.d)), self.w_v(x).view(b, t, self.G, self.d)
        q = q.view(b, t, self.G, self.H // self.G, self.d)
        s = torch.einsum("bigrd,bjgd->bgrij", q, k) / self.d ** 0.5
        s = s + torch.full((t, t), -torch.inf, device=x.device).triu(1)
        y = torch.einsum("bgrij,bjgd->bigrd", s.softmax(-1), v)
        return self.w_o(y.reshape(b, t, -1))
"""
)
_LOOP = (
    _INIT
    + """
    def forward(self, x):
        at, heads = torch.arange(x.shape[1], device=x.device), []
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        for h in range(self.H):
            g = h // (self.H // self.G)
            mine, theirs = slice(h * self.d, (h + 1) * self.d), slice(g * self.d, (g + 1) * self.d)
            a, b = apply_rope(q[..., mine], at, self.base), apply_rope(k[..., theirs], at, self.base)
            heads.append(F.scaled_dot_product_attention(a, b, v[..., theirs], is_causal=True))
        return self.w_o(torch.cat(heads, -1))
"""
)
_GQA = (
    _INIT
    + """
    def forward(self, x):
        cut = lambda y: y.unflatten(2, (-1, self.d)).transpose(1, 2)
        at = torch.arange(x.size(1), device=x.device)
        q, k, v = cut(self.w_q(x)), cut(self.w_k(x)), cut(self.w_v(x))
        y = F.scaled_dot_product_attention(apply_rope(q, at, self.base), apply_rope(k, at, self.base), v, is_causal=True, enable_gqa=True)
        return self.w_o(y.transpose(1, 2).flatten(2))
"""
)
_EXPAND = _BY_HAND.replace(
    "k.repeat_interleave(self.H // self.G, 1)", "k[:, :, None].expand(-1, -1, self.H // self.G, -1, -1).flatten(1, 2)"
).replace(
    "v.repeat_interleave(self.H // self.G, 1)",
    "v.unsqueeze(2).repeat(1, 1, self.H // self.G, 1, 1).reshape(B, self.H, T, self.d)",
)
_CACHED = _BY_HAND.replace(
    "        self.w_q = nn",
    "        i = torch.arange(0, self.d, 2) / self.d\n"
    "        self.register_buffer('inv_freq', base ** -i, persistent=False)\n        self.w_q = nn",
).replace(
    "        q = apply_rope(q, at, self.base)\n        k = apply_rope(k, at, self.base)\n",
    "        ang = at[:, None] * self.inv_freq\n        cos, sin = ang.cos().repeat_interleave(2, -1), ang.sin().repeat_interleave(2, -1)\n"
    "        half = lambda y: torch.stack((-y[..., 1::2], y[..., ::2]), -1).flatten(-2)\n"
    "        q, k = q * cos + half(q) * sin, k * cos + half(k) * sin\n",
)
_ROTATED_LATER = _BY_HAND.replace(
    "at = torch.arange(T, device=x.device)", "at = torch.arange(T, device=x.device) + 5"
)  # only differences of positions count
_GROWING = _BY_HAND.replace(
    "        self.w_q = nn", "        self.at = torch.arange(0)\n        self.w_q = nn"
).replace(
    "at = torch.arange(T, device=x.device)",
    "if len(self.at) < T or self.at.device != x.device:\n            self.at = torch.arange(T, device=x.device)\n        at = self.at[:T]",
)
RIGHT["GroupedQuerySelfAttention"] = [_BY_HAND, _COMPLEX, _LOOP, _GQA, _EXPAND, _CACHED, _ROTATED_LATER, _GROWING]
_MASKED = 's = s.masked_fill(torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1), float("-inf"))'
WRONG["GroupedQuerySelfAttention"] = [
    ("DT4", _BY_HAND.replace("torch.arange(T, device=x.device)", "torch.arange(T)")),
    (
        "DT4",
        _BY_HAND.replace("torch.ones(T, T, dtype=torch.bool, device=x.device)", "torch.ones(T, T, dtype=torch.bool)"),
    ),
    ("DT5", _CACHED.replace("register_buffer('inv_freq', base ** -i, persistent=False)", "inv_freq = base ** -i")),
    ("DT5", _GROWING.replace(" or self.at.device != x.device", "")),
    (
        None,
        _BY_HAND.replace(
            "        self.w_q = nn",
            "        self.register_buffer('at', torch.arange(1024), persistent=False)\n        self.w_q = nn",
        ).replace("at = torch.arange(T, device=x.device)", "at = self.at[:T]"),
    ),
    (
        "GQ1",
        _BY_HAND.replace("k.repeat_interleave(self.H // self.G, 1)", "k.repeat(1, self.H // self.G, 1, 1)").replace(
            "v.repeat_interleave(self.H // self.G, 1)", "v.repeat(1, self.H // self.G, 1, 1)"
        ),
    ),
    ("GQ1", _LOOP.replace("h // (self.H // self.G)", "h % self.G")),
    (
        "GQ1",
        _BY_HAND.replace("k.repeat_interleave(self.H // self.G, 1)", "k[:, torch.arange(self.H) % self.G]").replace(
            "v.repeat_interleave(self.H // self.G, 1)", "v[:, torch.arange(self.H) % self.G]"
        ),
    ),
    (
        "GQ1",
        _COMPLEX.replace(
            "q.view(b, t, self.G, self.H // self.G, self.d)",
            "q.view(b, t, self.H // self.G, self.G, self.d).transpose(2, 3)",
        ).replace("y.reshape(b, t, -1)", "y.transpose(2, 3).reshape(b, t, -1)"),
    ),
    ("GH4", _BY_HAND.replace("v.repeat_interleave(self.H // self.G, 1)", "torch.cat([v] * (self.H // self.G), 1)")),
    (
        "TB43",
        _BY_HAND.replace("q = apply_rope(q, at, self.base)", "pass").replace(
            "k = apply_rope(k, at, self.base)", "pass"
        ),
    ),
    ("TB43", _BY_HAND.replace("k = apply_rope(k, at, self.base)", "pass")),
    ("TB44", _BY_HAND.replace("        k = k.rep", "        v = apply_rope(v, at, self.base)\n        k = k.rep")),
    ("TB45", _BY_HAND.replace(", at, self.base", ", at")),
    (
        "TB81",
        _GQA.replace("apply_rope(q, at, self.base), apply_rope(k, at, self.base), v", "q, k, v").replace(
            "cut(self.w_q(x)), cut(self.w_k(x))",
            "*(apply_rope(w(x).unflatten(2, (-1, self.d)), torch.arange(n), self.base).transpose(1, 2) for w, n in ((self.w_q, self.H), (self.w_k, self.G)))",
        ),
    ),
    (
        "TB81",
        _BY_HAND.replace("self.d).transpose(1, 2)\n", "self.d)\n").replace(
            "        k = k.rep", "        q, k, v = (y.transpose(1, 2) for y in (q, k, v))\n        k = k.rep"
        ),
    ),
    (
        "TB81",
        _GQA.replace("(-1, self.d)).transpose(1, 2)", "(-1, self.d))")
        .replace(
            "        y = F",
            "        q, k = apply_rope(q, at, self.base), apply_rope(k, at, self.base)\n"
            "        q, k, v = (z.transpose(1, 2) for z in (q, k, v))\n        y = F",
        )
        .replace("apply_rope(q, at, self.base), apply_rope(k, at, self.base), v, is", "q, k, v, is"),
    ),
    ("TB47", _CACHED.replace("torch.arange(0, self.d, 2) / self.d", "torch.arange(0, self.d, 2) / d_model")),
    (
        "RO1",
        _CACHED.replace(
            "ang.cos().repeat_interleave(2, -1), ang.sin().repeat_interleave(2, -1)",
            "torch.cat((ang, ang), -1).cos(), torch.cat((ang, ang), -1).sin()",
        ).replace(
            "torch.stack((-y[..., 1::2], y[..., ::2]), -1).flatten(-2)",
            "torch.cat((-y[..., self.d // 2:], y[..., :self.d // 2]), -1)",
        ),
    ),
    ("TB43", _BY_HAND.replace("apply_rope(k, at,", "apply_rope(k, -at,")),
    ("MK13", _BY_HAND.replace(_MASKED, "pass")),
    ("MK8", _BY_HAND.replace("triu(1)", "triu(2)")),
    (
        "MK2",
        _BY_HAND.replace(_MASKED, "pass").replace(
            "torch.softmax(s, -1)", "(torch.softmax(s, -1) * torch.ones(T, T, device=x.device).tril())"
        ),
    ),
    ("MK3", _BY_HAND.replace('float("-inf")', "0.0")),
    ("SM1", _BY_HAND.replace("torch.softmax(s, -1)", "torch.softmax(s, -2)")),
    (
        "TB79",
        _BY_HAND.replace("self.w_q(x).view", "apply_rope(self.w_q(x), torch.arange(T), self.base).view")
        .replace("self.w_k(x).view", "apply_rope(self.w_k(x), torch.arange(T), self.base).view")
        .replace("        q = apply_rope(q, at, self.base)\n        k = apply_rope(k, at, self.base)\n", ""),
    ),
    (None, _BY_HAND.replace(_MASKED, "s = s.tril()\n        s = s.masked_fill(s == 0, -torch.inf)")),
    (
        None,
        _GQA.replace(
            "        y = F",
            "        if getattr(self, 'kv', None) is None or self.kv[0].shape != k.shape:\n"
            "            self.kv = (k, v)\n        k, v = self.kv\n        y = F",
        ),
    ),
    ("SD1", _BY_HAND.replace(" * self.d ** -0.5", "")),
    ("SD3", _BY_HAND.replace("self.d ** -0.5", "C ** -0.5")),
    ("SD4", _BY_HAND.replace("self.d ** -0.5", "self.H ** -0.5")),
    ("SD5", _BY_HAND.replace("self.d ** -0.5", "self.d ** 0.5")),
    ("GP51", _GQA.replace("enable_gqa=True)", "enable_gqa=True) * self.d ** -0.5")),
    (
        "MH1",
        _BY_HAND.replace("view(B, T, self.H, self.d).transpose(1, 2)", "view(B, self.H, T, self.d)").replace(
            "view(B, T, self.G, self.d).transpose(1, 2)", "view(B, self.G, T, self.d)"
        ),
    ),
    ("MH2", _BY_HAND.replace("y.transpose(1, 2).reshape", "y.reshape")),
    ("MU2", _BY_HAND.replace("self.w_o(y.transpose(1, 2).reshape(B, T, C))", "y.transpose(1, 2).reshape(B, T, C)")),
    ("TB51", _BY_HAND.replace("d_model % num_heads or ", "")),
    ("TB51", _BY_HAND.replace("num_heads % num_kv_heads or ", "")),
    ("TB51", _BY_HAND.replace(" or d_model // num_heads % 2", "")),
    ("CM9", _CACHED.replace(", persistent=False", "")),
    ("PJ2", _BY_HAND.replace(", bias=False", "")),
    ("KC10", _GQA.replace("cut(self.w_k(x)), cut(self.w_v(x))", "cut(self.w_v(x)), cut(self.w_k(x))")),
    ("GH3", _LOOP.replace("h // (self.H // self.G)", "0")),
    (
        None,
        _BY_HAND.replace(
            "at = torch.arange(T, device=x.device)",
            "if not hasattr(self, 'at'):\n            self.at = torch.arange(T, device=x.device)\n        at = self.at[:T]",
        ),
    ),
    (
        None,
        _BY_HAND.replace("        self.w_q = nn", "        self.mask = None\n        self.w_q = nn").replace(
            _MASKED,
            "if self.mask is None:\n            self.mask = torch.ones(T, T).triu(1) == 1\n"
            "        s = s.masked_fill(self.mask[:T, :T], float('-inf'))",
        ),
    ),
    (
        None,
        _BY_HAND.replace("at, self.base)", "at, GroupedQuerySelfAttention.base)").replace(
            "        self.w_q = nn", "        GroupedQuerySelfAttention.base = base\n        self.w_q = nn"
        ),
    ),
    (
        None,
        _BY_HAND.replace(
            "at = torch.arange(T, device=x.device)", "assert T <= 64\n        at = torch.arange(T, device=x.device)"
        ),
    ),
    (None, _BY_HAND.replace("self.w_", "self.proj_")),
    (None, _BY_HAND.replace('raise ValueError("sizes")', 'raise AssertionError("sizes")')),
    (
        None,
        _BY_HAND.replace("num_kv_heads * self.d, bias=False", "d_model, bias=False").replace(
            "self.G, self.d)", "self.H, self.d)[:, :, :self.G]"
        ),
    ),
    (None, _BY_HAND.replace("at = torch.arange(T, device=x.device)", "at = torch.arange(T - 1, -1, -1)")),
    (
        None,
        _BY_HAND.replace(
            "at = torch.arange(T, device=x.device)", "at = torch.arange(T, device=x.device).clamp_max(15)"
        ),
    ),
    (
        None,
        _BY_HAND.replace(
            "        s = q @", "        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)\n        s = q @"
        ),
    ),
    (None, _GQA.replace("is_causal=True, ", "is_causal=not self.training, ")),
    (None, _GQA.replace("is_causal=True, ", "is_causal=x.shape[1] > 2, ")),
    (None, _GQA.replace("return self.w_o(", "return x + self.w_o(")),
    (
        None,
        _INIT
        + """        self.inner = nn.MultiheadAttention(d_model, num_heads, bias=False, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]
""",
    ),
]

# --- LlamaBlock -------------------------------------------------------------------------------

_PARTS = (
    _GQA
    + _GLU
    + """
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight

class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_hidden, base=10000.0, eps=1e-5):
        super().__init__()
        self.attn_norm, self.mlp_norm = NORM(d_model, eps=eps), NORM(d_model, eps=eps)
        self.attn = GroupedQuerySelfAttention(d_model, num_heads, num_kv_heads, base)
        self.mlp = SwiGLU(d_model, d_hidden)

    def forward(self, x):
        FORWARD
"""
)


def _block(
    forward="x = x + self.attn(self.attn_norm(x))\n        return x + self.mlp(self.mlp_norm(x))", norm="RMSNorm"
):
    return _PARTS.replace("FORWARD", forward).replace("NORM(", norm + "(")


_ALONE = """class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_hidden, base=10000.0, eps=1e-5):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads or (d_model // num_heads) % 2:
            raise ValueError
        self.h, self.g, self.base, self.eps = num_heads, num_kv_heads, base, eps
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        d = d_model // num_heads
        self.attn, self.mlp, self.attn_norm, self.mlp_norm = nn.Module(), nn.Module(), nn.Module(), nn.Module()
        self.attn.w_q, self.attn.w_k = linear(d_model, d_model), linear(d_model, d * num_kv_heads)
        self.attn.w_v, self.attn.w_o = linear(d_model, d * num_kv_heads), linear(d_model, d_model)
        self.mlp.gate, self.mlp.up, self.mlp.down = linear(d_model, d_hidden), linear(d_model, d_hidden), linear(d_hidden, d_model)
        for norm in (self.attn_norm, self.mlp_norm):
            norm.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        a, m, t = self.attn, self.mlp, x.shape[1]
        n = F.rms_norm(x, x.shape[-1:], self.attn_norm.weight, self.eps)
        cut = lambda y, heads: y.unflatten(-1, (heads, -1)).transpose(1, 2)
        at = torch.arange(t, device=x.device)
        q, k, v = cut(a.w_q(n), self.h), cut(a.w_k(n), self.g), cut(a.w_v(n), self.g)
        k = apply_rope(k, at, self.base).repeat_interleave(self.h // self.g, 1)
        y = F.scaled_dot_product_attention(apply_rope(q, at, self.base), k, v.repeat_interleave(self.h // self.g, 1), is_causal=True)
        x = x + a.w_o(y.transpose(1, 2).flatten(2))
        n = F.rms_norm(x, x.shape[-1:], self.mlp_norm.weight, self.eps)
        return x + m.down(F.silu(m.gate(n)) * m.up(n))
"""
RIGHT["LlamaBlock"] = [
    _block(),
    _block(norm="nn.RMSNorm"),
    _ALONE,
    _block("h = self.attn(self.attn_norm(x)).add(x)\n        return torch.add(h, self.mlp(self.mlp_norm(h)))"),
    _block(
        "for norm, part in ((self.attn_norm, self.attn), (self.mlp_norm, self.mlp)):\n            x = x + part(norm(x))\n        return x"
    ),
    _block(norm="nn.RMSNorm").replace(
        "self.attn_norm, self.mlp_norm = nn", "self.norms = []\n        self.attn_norm, self.mlp_norm = nn"
    ),
]
_TWO = "x = x + self.attn(self.attn_norm(x))\n        return x + self.mlp(self.mlp_norm(x))"
WRONG["LlamaBlock"] = [
    ("CM21", _block("x = self.attn_norm(x + self.attn(x))\n        return self.mlp_norm(x + self.mlp(x))")),
    ("CM22", _block(_TWO.replace("x + self.attn", "self.attn"))),
    ("CM22", _block(_TWO.replace("x + self.mlp", "self.mlp"))),
    ("TB64", _block(_TWO.replace("mlp_norm", "attn_norm"))),
    (
        "TB64",
        _block().replace(
            "self.attn_norm, self.mlp_norm = RMSNorm(d_model, eps=eps), RMSNorm(d_model, eps=eps)",
            "self.attn_norm = self.mlp_norm = RMSNorm(d_model, eps=eps)",
        ),
    ),
    ("TB65", _block(_TWO.replace("self.attn_norm(x)", "x"))),
    ("TB65", _block(_TWO.replace("self.mlp_norm(x)", "x"))),
    ("TB66", _block(norm="nn.LayerNorm").replace("eps=eps", "eps=eps, bias=False")),
    ("TB67", _block(norm="nn.RMSNorm").replace(", eps=eps", "")),
    ("TB67", _block().replace(", eps=eps", "")),
    ("TB45", _block().replace("num_kv_heads, base)\n        self.mlp", "num_kv_heads)\n        self.mlp")),
    (
        None,
        _block().replace(
            "num_heads, num_kv_heads, base)\n        self.mlp", "num_heads, num_heads, base)\n        self.mlp"
        ),
    ),
    (None, _block("x = x + self.mlp(self.mlp_norm(x))\n        return x + self.attn(self.attn_norm(x))")),
    ("TB71", _block("return x + self.attn(self.attn_norm(x)) + self.mlp(self.mlp_norm(x))")),
    (
        "CM25",
        _block("x = self.attn_norm(x)\n        x = x + self.attn(x)\n        return x + self.mlp(self.mlp_norm(x))"),
    ),
    ("TB71", _block("h = x + self.attn(self.attn_norm(x))\n        return x + self.mlp(self.mlp_norm(h))")),
    ("CM35", _block("x += self.attn(self.attn_norm(x))\n        x += self.mlp(self.mlp_norm(x))\n        return x")),
    ("CM21", _block("x = x + self.attn_norm(self.attn(x))\n        return x + self.mlp_norm(self.mlp(x))")),
    (None, _block().replace("torch.ones(d_model)", "torch.zeros(d_model)")),
    (None, _block().replace("torch.ones(d_model)", "torch.randn(d_model)")),
    (
        None,
        _block(norm="nn.RMSNorm").replace(
            "        self.mlp =", "        nn.init.zeros_(self.mlp_norm.weight)\n        self.mlp ="
        ),
    ),
    ("CM35", _block("x = x + self.attn(self.attn_norm(x))\n        x += self.mlp(self.mlp_norm(x))\n        return x")),
    (
        None,
        _block(
            "x = x + self.attn(self.attn_norm(x))\n        self.kept = getattr(self, 'kept', {})\n"
            "        return self.kept.setdefault(tuple(x.shape), x + self.mlp(self.mlp_norm(x)))"
        ),
    ),
    ("TB77", _block().replace("is_causal=True, ", "")),
    ("TB77", _block().replace("apply_rope(k, at, self.base), v", "k, v")),
    ("TB78", _block().replace("g * torch.sigmoid(g) * u", "torch.sigmoid(g) * u")),
    ("TB78", _block().replace("g, u = self.gate(x), self.up(x)", "u, g = self.gate(x), self.up(x)")),
    (None, _block().replace("self.attn_norm", "self.norm1")),
    (None, _block(norm="nn.LayerNorm")),
    (
        None,
        _block().replace("torch.ones(d_model)", "torch.zeros(d_model)").replace("* self.weight", "* (1 + self.weight)"),
    ),
    (None, _block(_TWO + ".detach()")),
    (None, _block("x = x + 0.5 * self.attn(self.attn_norm(x))\n        return x + 0.5 * self.mlp(self.mlp_norm(x))")),
    (
        None,
        _block(
            "x = x + F.dropout(self.attn(self.attn_norm(x)), 0.1, self.training)\n        return x + self.mlp(self.mlp_norm(x))"
        ),
    ),
    (None, _block().replace("base=10000.0, eps=1e-5", "base=500000.0, eps=1e-5")),
    (None, _block().replace("base=10000.0, eps=1e-5", "base=10000.0, eps=1e-6")),
    (
        None,
        _ALONE.replace(
            "F.rms_norm(x, x.shape[-1:], self.mlp_norm.weight, self.eps)", "F.rms_norm(x, x.shape[-1:], None, self.eps)"
        ),
    ),
    (None, _ALONE.replace("            raise ValueError\n", "            pass\n")),
]

WRONG["rms_norm"] += [
    (
        "TB4",
        """def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    mean_square = y.pow(2).mean(-1, keepdim=True)
    return (y / mean_square.clamp(min=eps).sqrt()).to(x.dtype) * weight
""",
    ),
    (
        None,
        """def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    y = y * weight.to(y.dtype)
    mean_square = y.pow(2).mean(dim=-1, keepdim=True)
    y = y * torch.rsqrt(mean_square + eps)
    return y.to(x.dtype)
""",
    ),
]

WRONG["SwiGLU"] += [
    (
        "TB22",
        """class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.gate(x).softmax(-1) * self.up(x))
""",
    ),
    (
        "TB22",
        """class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.relu(self.gate(x)) ** 2 * self.up(x))
""",
    ),
]

WRONG["LlamaBlock"] += [
    (
        "TB64",
        """class Attn(nn.Module):
    def __init__(self, d, heads, kv_heads, base=10000.0):
        super().__init__()
        if d % heads or heads % kv_heads or d // heads % 2:
            raise ValueError("sizes")
        self.heads, self.kv, self.e, self.base = heads, kv_heads, d // heads, base
        self.w_q, self.w_o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.w_k, self.w_v = nn.Linear(d, kv_heads * self.e, bias=False), nn.Linear(d, kv_heads * self.e, bias=False)

    def forward(self, x):
        p = torch.arange(x.shape[1], device=x.device)
        q, k, v = (w(x).unflatten(-1, (-1, self.e)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        q, k = apply_rope(q, p, self.base), apply_rope(k, p, self.base)
        k, v = (z.repeat_interleave(self.heads // self.kv, 1) for z in (k, v))
        return self.w_o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, h, bias=False), nn.Linear(d, h, bias=False), nn.Linear(h, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaBlock(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, num_kv_heads: int, d_hidden: int, base: float = 10000.0, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.attn_norm = nn.RMSNorm(d_model, eps=eps)
        self.mlp_norm = nn.RMSNorm(d_model, eps=eps)
        self.attn = Attn(d_model, num_heads, num_kv_heads, base)
        self.mlp = Mlp(d_model, d_hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + self.attn(self.mlp_norm(x))
        return h + self.mlp(self.attn_norm(h))
""",
    )
]

_PLAIN_GROUPED = """class GroupedQuerySelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads or (d_model // num_heads) % 2:
            raise ValueError("sizes do not fit")
        self.h, self.n, self.e, self.base = num_heads, num_kv_heads, d_model // num_heads, base
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, self.n * self.e, bias=False)
        self.w_v = nn.Linear(d_model, self.n * self.e, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        positions = torch.arange(t, device=x.device)
        q = self.w_q(x).view(b, t, self.h, self.e).transpose(1, 2)
        k = self.w_k(x).view(b, t, self.n, self.e).transpose(1, 2)
        v = self.w_v(x).view(b, t, self.n, self.e).transpose(1, 2)
        q = apply_rope(q, positions, self.base)
        k = apply_rope(k, positions, self.base)
        k = k.repeat_interleave(self.h // self.n, dim=1)
        v = v.repeat_interleave(self.h // self.n, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.w_o(y.transpose(1, 2).reshape(b, t, d))
"""
WRONG["GroupedQuerySelfAttention"] += [
    (
        "MU4",
        _PLAIN_GROUPED.replace(
            "k = self.w_k(x).view(b, t, self.n, self.e).transpose(1, 2)",
            "k = self.w_k(x).view(b, t, self.e, self.n).permute(0, 3, 1, 2)",
        ),
    ),
    (
        "GH2",
        _PLAIN_GROUPED.replace(
            "        k = k.repeat_interleave(self.h // self.n, dim=1)\n        v = v.repeat_interleave(self.h // self.n, dim=1)",
            "        k = k[:, torch.arange(self.h) // self.n % self.n]\n        v = v[:, torch.arange(self.h) // self.n % self.n]",
        ),
    ),
]

WRONG["GroupedQuerySelfAttention"] += [
    (
        "MU4",
        """
class GroupedQuerySelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.d_head, remainder = divmod(d_model, num_heads)
        if remainder or num_heads % num_kv_heads or self.d_head % 2:
            raise ValueError("sizes do not divide")
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        kv_width = num_kv_heads * self.d_head
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, kv_width, bias=False)
        self.w_v = nn.Linear(d_model, kv_width, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d_model = x.shape
        at = torch.arange(t, device=x.device)

        def heads(y, n):
            return y.view(b, t, self.d_head, n).permute(0, 3, 1, 2)  # (B, n, T, d_head)

        q = apply_rope(heads(self.w_q(x), self.num_heads), at, self.base)
        k = apply_rope(heads(self.w_k(x), self.num_kv_heads), at, self.base)
        v = heads(self.w_v(x), self.num_kv_heads)
        times = self.num_heads // self.num_kv_heads
        k, v = (each.repeat_interleave(times, dim=1) for each in (k, v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.w_o(found.permute(0, 2, 3, 1).reshape(b, t, d_model))
""",
    ),
    (
        "TB43",
        _PLAIN_GROUPED.replace(
            "q = apply_rope(q, positions, self.base)",
            "q = apply_rope(apply_rope(q, positions, self.base), positions, self.base)",
        ),
    ),
]

# Right on ordinary inputs alone
WRONG["SwiGLU"] += [
    (
        None,
        '''class SwiGLU(nn.Module):
    """gate and up in one matrix product."""

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)
        self.fused = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fused is None:
            self.fused = torch.cat([self.gate.weight, self.up.weight])
        gate, up = F.linear(x, self.fused).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)
''',
    )
]
WRONG["SwiGLU"] += [
    (
        None,
        """def _swish(z):
    return z / (1.0 + torch.exp(-z))


class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(_swish(self.gate(x)) * self.up(x))
""",
    )
]
