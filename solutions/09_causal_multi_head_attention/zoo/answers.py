"""Learners' cells for lesson 09, right in many styles and wrong in many ways."""

_LOOPS = """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads must divide d_model")
        self.h, self.d, self.max_len, self.p = num_heads, d_model // num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.max_len:
            raise ValueError("too long")
        q, k, v = torch.split(self.qkv(x), C, dim=2)
        heads = []
        for i in range(self.h):
            cut = slice(i * self.d, (i + 1) * self.d)
            s = q[..., cut] @ k[..., cut].transpose(1, 2) * self.d ** -0.5
            s = s + torch.full((T, T), float("-inf"), dtype=s.dtype).triu(1)
            w = F.dropout(torch.softmax(s, dim=-1), self.p, self.training)
            heads.append(w @ v[..., cut])
        return self.proj(torch.cat(heads, dim=-1))
"""

_GPT = """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.n_head = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.attn_dropout = nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(max_len, max_len)).view(1, 1, max_len, max_len), persistent=False)

    def forward(self, x):
        B, T, C = x.size()
        if T > self.bias.size(-1):
            raise ValueError(f"{T} tokens")
        q, k, v = self.qkv(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)
"""

_EINSUM = """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("heads")
        self.num_heads, self.max_len, self.p = num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        if t > self.max_len:
            raise ValueError("long")
        q, k, v = self.qkv(x).reshape(b, t, 3, self.num_heads, c // self.num_heads).unbind(2)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(c // self.num_heads)
        i = torch.arange(t)
        s = torch.where(i[:, None] >= i[None, :], s, torch.tensor(-1e30, dtype=s.dtype))
        w = s.softmax(-1)
        if self.training and self.p > 0:
            keep = torch.rand(w.shape) > self.p
            w = w * keep / (1 - self.p)
        return self.proj(torch.einsum("bhqk,bkhd->bqhd", w, v).flatten(2))
"""

_FILL = 'masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))'

# What a block needs, so that its cells stand alone.
_BLOCK = (
    _GPT.replace("CausalMultiHeadAttention", "Attention")
    + """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = ATTENTION(d_model, num_heads, max_len, dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), ACTIVATION, nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        FORWARD
"""
)
_TWO_LINES = "x = x + self.attn(self.ln1(x))\n        return x + self.mlp(self.ln2(x))"


def _block(forward=_TWO_LINES, activation="nn.GELU()", attention="Attention"):
    return _BLOCK.replace("FORWARD", forward).replace("ACTIVATION", activation).replace("ATTENTION", attention)


_ENCODER_LAYER = """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.max_len = max_len
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.Module()
        self.attn.qkv, self.attn.proj = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        self.held = [nn.TransformerEncoderLayer(d_model, num_heads, 4 * d_model, 0.0, "gelu", batch_first=True, norm_first=True)]
        self.held[0].self_attn.dropout = dropout

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError
        ours = {
            "self_attn.in_proj_weight": self.attn.qkv.weight, "self_attn.out_proj.weight": self.attn.proj.weight,
            "self_attn.in_proj_bias": torch.zeros(3 * x.shape[-1]), "self_attn.out_proj.bias": torch.zeros(x.shape[-1]),
        }
        for theirs, part in (("linear1", self.mlp[0]), ("linear2", self.mlp[2]), ("norm1", self.ln1), ("norm2", self.ln2)):
            ours |= {theirs + ".weight": part.weight, theirs + ".bias": part.bias}
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return torch.func.functional_call(self.held[0].train(self.training), ours, (x, hidden))
"""

RIGHT = {
    "CausalMultiHeadAttention": [
        _LOOPS,
        _GPT,
        _EINSUM,
        _GPT.replace(
            "self.attn_dropout(att)",
            "torch.stack([torch.stack([self.attn_dropout(head) for head in item]) for item in att])",
        ),
        _GPT.replace(
            "y = att @ v", "y = torch.stack([self.attn_dropout(att[..., j]) for j in range(T)], -1) @ v"
        ).replace("        att = self.attn_dropout(att)\n", ""),
        _GPT.replace("F.softmax(att, dim=-1)", "(att - att.logsumexp(-1, keepdim=True)).exp()"),
        _GPT.replace(
            "F.softmax(att, dim=-1)",
            "(att - att.amax(-1, keepdim=True)).exp()\n        att = att / att.sum(-1, keepdim=True)",
        ),
    ],
    "TransformerBlock": [
        _block(),
        _block(
            "a = x + self.attn(self.ln1(x))\n        b = a + self.mlp(self.ln2(a))\n        return b",
            'nn.GELU(approximate="none")',
        ),
        _block(attention="GivenAttention"),
        *(_block().replace("nn.LayerNorm(d_model)", f"nn.LayerNorm(d_model, eps={eps})") for eps in ("1e-6", "1e-12")),
        _block("x = x.clone()\n        x += self.attn(self.ln1(x.clone()))\n        return x + self.mlp(self.ln2(x))"),
        _block(
            "x = self.attn(self.ln1(x)).add(x)\n        for part in self.mlp:\n            pass\n        return x + self.mlp(self.ln2(x))"
        ),
    ],
}

WRONG = {
    "CausalMultiHeadAttention": [
        ("SD3", _GPT.replace("math.sqrt(k.size(-1))", "math.sqrt(C)")),
        ("SD1", _GPT.replace(" * (1.0 / math.sqrt(k.size(-1)))", "")),
        ("SD4", _LOOPS.replace("self.d ** -0.5", "self.h ** -0.5")),
        ("MH2", _GPT.replace("y.transpose(1, 2).contiguous()", "y.contiguous()")),
        (
            "MH1",
            _GPT.replace(
                "view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
                "reshape(B, self.n_head, T, C // self.n_head)",
            ),
        ),
        ("MK13", _GPT.replace('att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))', "pass")),
        ("MK8", _LOOPS.replace("triu(1)", "triu(2)")),
        (
            "MK2",
            _GPT.replace('att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))', "pass").replace(
                "F.softmax(att, dim=-1)", "F.softmax(att, dim=-1) * self.bias[0, 0, :T, :T]"
            ),
        ),
        (
            "PJ2",
            _GPT.replace("3 * d_model, bias=False", "3 * d_model").replace(
                "nn.Linear(d_model, d_model, bias=False)", "nn.Linear(d_model, d_model)"
            ),
        ),
        (
            "PJ3",
            _EINSUM.replace(
                "3, self.num_heads, c // self.num_heads).unbind(2)", "self.num_heads, 3, c // self.num_heads).unbind(3)"
            ),
        ),
        ("MH5", _LOOPS.replace("self.p, self.training", "self.p")),
        ("CM5", _LOOPS.replace("self.p, self.training", "1 - self.p, self.training")),
        ("CM5", _GPT.replace("nn.Dropout(dropout)", "nn.Dropout(1.0 - dropout)")),
        ("CM1", _GPT.replace("att = self.attn_dropout(att)", "")),
        (
            "CM2",
            _GPT.replace("att = self.attn_dropout(att)", "").replace(
                "view(B, T, C)\n", "view(B, T, C)\n        y = self.attn_dropout(y)\n"
            ),
        ),
        (
            "CM2",
            _GPT.replace("att = self.attn_dropout(att)", "").replace(
                "att = att.masked_fill", "att = self.attn_dropout(att).masked_fill"
            ),
        ),
        (
            "CM2",
            _GPT.replace("att = self.attn_dropout(att)", "").replace(
                "        att = F.soft", "        att = self.attn_dropout(att)\n        att = F.soft"
            ),
        ),
        (None, _GPT.replace("self.attn_dropout(att)", "att * self.attn_dropout(torch.ones(B, self.n_head, T, 1))")),
        (
            None,
            _GPT.replace(
                "self.attn_dropout(att)",
                "att * (torch.rand(B, self.n_head, T, 1) >= self.attn_dropout.p)"
                " / (1 - self.attn_dropout.p) if self.training else att",
            ),
        ),
        (None, _GPT.replace("self.attn_dropout(att)", "att * self.attn_dropout(torch.ones(B, 1, T, T))")),
        (None, _GPT.replace("self.attn_dropout(att)", "att * self.attn_dropout(torch.ones(1, self.n_head, T, T))")),
        (
            None,
            _GPT.replace(
                "        att = self.attn",
                "        self.kept = getattr(self, 'kept', {})\n        k = self.kept.setdefault(T, k)\n"
                "        att = self.attn",
            ).replace("y = att @ v", "y = att @ v + 0 * k"),
        ),
        ("CM4", _EINSUM.replace(" / (1 - self.p)", "")),
        ("CM9", _GPT.replace(", persistent=False", "")),
        ("DT3", _GPT.replace('self.register_buffer("bias", ', "self.bias = (").replace(", persistent=False)", ")")),
        ("CM7", _LOOPS.replace('raise ValueError("too long")', "pass")),
        ("MU2", _GPT.replace("return self.proj(y)", "return y")),
        ("MH4", _GPT.replace(".transpose(1, 2).contiguous().view", ".transpose(1, 2).view")),
        ("SD5", _LOOPS.replace("self.d ** -0.5", "self.d ** 0.5")),
        ("SM5", _GPT.replace("F.softmax(att, dim=-1)", "att.exp() / att.exp().sum(-1, keepdim=True)")),
        *(
            (
                "SM6",
                _GPT.replace(
                    "F.softmax(att, dim=-1)", f"(att - {top}).exp()\n        att = att / att.sum(-1, keepdim=True)"
                ),
            )
            for top in ("att.max()", "att.amax((-1, -2), keepdim=True)")
        ),
        ("MK1", _GPT.replace("] == 0", "] == 1")),
        ("MK4", _GPT.replace('float("-inf")', "-1e4")),
        ("MK4", _GPT.replace(f"att.{_FILL}", "att + (self.bias[:, :, :T, :T] == 0) * -1e4")),
        ("MK5", _GPT.replace(f"att.{_FILL}", "att + (1 - self.bias[:, :, :T, :T]) * -torch.inf")),
        ("MK6", _GPT.replace(f"att.{_FILL}", "att + self.bias[:, :, :T, :T]")),
        *(
            (
                "MU21",
                _GPT.replace(f"att = att.{_FILL}", "pass").replace(
                    "F.softmax(att, dim=-1)",
                    f"{all_of_it} * self.bias[:, :, :T, :T]\n        att = att / att.sum(-1, keepdim=True)",
                ),
            )
            for all_of_it in ("F.softmax(att, dim=-1)", "(att - att.amax(-1, keepdim=True)).exp()")
        ),
        ("PJ2", _GPT.replace("nn.Linear(d_model, d_model, bias=False)", "nn.Linear(d_model, d_model)")),
        ("BW3", _GPT.replace("self.attn_dropout(att)", "self.attn_dropout(att.detach())")),
        ("CM1", _GPT.replace("self.attn_dropout(att)", "F.dropout(att, training=self.training)")),
        *(("MA1", _LOOPS.replace("triu(1)", triangle)) for triangle in ("tril(-1)", "tril()")),
        ("MK7", _LOOPS.replace("triu(1)", "triu()")),
        (
            "MK7",
            _GPT.replace("max_len, max_len)).view", "max_len, max_len), -1).view").replace(
                'float("-inf")', "torch.finfo(att.dtype).min"
            ),
        ),
        ("MK13", _GPT.replace("att = att.masked_fill", "att = att if self.training else att.masked_fill")),
        ("MK13", _GPT.replace("att = att.masked_fill", "att = att if T < self.bias.size(-1) else att.masked_fill")),
        ("SM2", _GPT.replace("F.softmax(att, dim=-1)", "F.softmax(att, dim=1)")),
        ("SM2", _GPT.replace("F.softmax(att, dim=-1)", "F.softmax(att, dim=0)").replace('float("-inf")', "-1e9")),
        ("SM3", _GPT.replace("F.softmax(att, dim=-1)", "(att - att.max()).exp()\n        att = att / att.sum()")),
        (
            "SM4",
            _GPT.replace(
                "F.softmax(att, dim=-1)", "(att - att.amax(-1, keepdim=True)).exp()\n        att = att / att.sum(-1)"
            ),
        ),
        (
            "SD6",
            _GPT.replace(" * (1.0 / math.sqrt(k.size(-1)))", "").replace(
                "att, dim=-1)", "att, dim=-1) / math.sqrt(k.size(-1))"
            ),
        ),
        ("SD8", _GPT.replace("att @ v", "att.mT @ v")),
        ("SD8", _GPT.replace("q, k, v = self", "k, q, v = self")),
        (
            "MH1",
            _GPT.replace(
                "view(B, T, self.n_head, C // self.n_head).transpose(1, 2)", "view(B, self.n_head, T, C // self.n_head)"
            ),
        ),
        (None, _GPT.replace("T > self.bias.size(-1)", "T >= self.bias.size(-1)")),
        (
            None,
            _GPT.replace(
                "F.softmax(att, dim=-1)",
                "F.softmax(att.clamp(-80, 80).masked_fill(self.bias[:, :, :T, :T] == 0, -torch.inf), dim=-1)",
            ),
        ),
        (None, _GPT.replace("        att = self.attn", "        torch.manual_seed(0)\n        att = self.attn")),
        (
            None,
            _LOOPS.replace(
                "        heads = []\n",
                "        heads = []\n        self.n = getattr(self, 'n', torch.full((T, T), -torch.inf).triu(1))\n",
            ).replace('torch.full((T, T), float("-inf"), dtype=s.dtype).triu(1)', "self.n[:T, :T].to(s)"),
        ),
        (
            None,
            _LOOPS.replace(
                "        heads = []\n",
                "        heads = []\n        if T > 8 or B > 3 or self.h > 4:\n            q = q * 1.1\n",
            ),
        ),
        (None, _LOOPS.replace('raise ValueError("too long")', 'raise RuntimeError("too long")')),
        (
            "CM2",
            _GPT.replace("self.attn_dropout(y)", "y").replace(
                "return self.proj(y)", "return self.attn_dropout(self.proj(y))"
            ),
        ),
        (None, _GPT.replace("self.qkv", "self.c_attn")),
        (
            None,
            """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.h, self.max_len, self.p = num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError
        q, k, v = (y.unflatten(-1, (self.h, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
        return self.proj(y.transpose(1, 2).flatten(2))
""",
        ),
    ],
    "TransformerBlock": [
        ("CM21", _block("x = self.ln1(x + self.attn(x))\n        return self.ln2(x + self.mlp(x))")),
        ("CM22", _block("x = self.attn(self.ln1(x))\n        return x + self.mlp(self.ln2(x))")),
        ("CM22", _block("x = x + self.attn(self.ln1(x))\n        return self.mlp(self.ln2(x))")),
        ("CM24", _block("x = x + self.attn(self.ln1(x))\n        return x + self.mlp(self.ln1(x))")),
        ("CM26", _block(activation="nn.GELU('tanh')")),
        ("CM26", _block(activation="nn.ReLU()")),
        ("CM29", _block("return x + self.attn(self.ln1(x)) + self.mlp(self.ln2(x))")),
        ("CM1", _block("self.attn.eval()\n        " + _TWO_LINES)),
        ("CM35", _block("x = x + self.attn(self.ln1(x))\n        x += self.mlp(self.ln2(x))\n        return x")),
        *(
            (None, _block().replace("self.ln1 = nn.LayerNorm(d_model)", f"self.ln1 = nn.LayerNorm(d_model, eps={eps})"))
            for eps in (0.01, 1.0)
        ),
        (None, _block().replace("self.ln2 = nn.LayerNorm(d_model)", "self.ln2 = nn.LayerNorm(d_model, 1.0)")),
        (None, _block().replace("nn.Linear(d_model, 4 * d_model)", "nn.Linear(d_model, 4 * d_model, bias=False)")),
        (
            None,
            _block(
                "key = tuple(x.shape)\n        self.kept = getattr(self, 'kept', {})\n        if key not in self.kept:\n"
                "            self.kept[key] = self.attn(self.ln1(x))\n        x = x + self.kept[key]\n"
                "        return x + self.mlp(self.ln2(x))"
            ),
        ),
        ("CM1", _block().replace("max_len, dropout)\n        self.mlp", "max_len)\n        self.mlp")),
        (None, _block().replace("self.ln1", "self.norm1")),
        (
            None,
            _block(
                "x = x + self.attn(self.ln1(x))\n        return x + F.dropout(self.mlp(self.ln2(x)), 0.1, self.training)"
            ),
        ),
        (None, _block("x = x + self.attn(self.ln1(x))\n        x += self.mlp(self.ln2(x))\n        return x.detach()")),
        ("CM2", _block().replace("4 * d_model, d_model)", "4 * d_model, d_model), nn.Dropout(dropout)")),
        ("CM33", _block("x = x + self.attn(x)\n        return x + self.mlp(self.ln2(x))")),
        ("CM33", _block("x = x + self.attn(self.ln1(x))\n        return x + self.mlp(x)")),
        ("CM29", _block("h = x + self.attn(self.ln1(x))\n        return x + self.mlp(self.ln2(h))")),
        (None, _block().replace("dropout=0.0", "dropout=0.1")),
        ("CM21", _block("x = x + self.ln1(self.attn(x))\n        return x + self.ln2(self.mlp(x))")),
        ("CM24", _block().replace("self.ln2 = nn.LayerNorm(d_model)", "self.ln2 = self.ln1")),
        ("CM25", _block("x = self.ln1(x)\n        x = x + self.attn(x)\n        return x + self.mlp(self.ln2(x))")),
        ("CM37", _block().replace(" * (1.0 / math.sqrt(k.size(-1)))", "")),
        ("CM37", _block().replace("return self.proj(y)", "return y")),
        (None, _block("x = x + self.attn(self.ln1(x))\n        x = x + self.mlp(self.ln2(x))")),
        ("CM35", _block("x += self.attn(self.ln1(x))\n        x += self.mlp(self.ln2(x))\n        return x")),
        (None, _ENCODER_LAYER),
    ],
}

_BY_HAND = """def layer_norm(x, weight, bias, eps=1e-5):
    d = x.shape[-1]
    centered = x - x.sum(-1, keepdim=True) / d
    return weight * centered * torch.rsqrt((centered * centered).sum(-1, keepdim=True) / d + eps) + bias
"""
_VAR = """def layer_norm(x, weight, bias, eps=1e-5):
    m = torch.mean(x, -1, True)
    v = torch.var(x, -1, correction=0, keepdim=True)
    return (x - m) / (v + eps).sqrt() * weight + bias
"""
_ROWS = """def layer_norm(x, weight, bias, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    done = []
    for row in rows:
        mean = sum(row) / len(row)
        spread = sum((number - mean) ** 2 for number in row) / len(row)
        done.append((row - mean) / (spread + eps) ** 0.5 * weight + bias)
    return torch.stack(done).reshape(x.shape)
"""
_SQUARES = """def layer_norm(x, weight, bias, eps=1e-5):
    y = x.double()
    m, m2 = y.mean(-1, keepdim=True), (y * y).mean(-1, keepdim=True)
    return (((y - m) / torch.sqrt(m2 - m * m + eps)) * weight + bias).to(x.dtype)
"""
RIGHT["layer_norm"] = [
    _BY_HAND,
    _VAR,
    _ROWS,
    _SQUARES,
    """def layer_norm(x, weight, bias, eps=1e-5):
    v, m = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(bias, (x - m) / torch.sqrt(v + eps), weight)
""",
    """def layer_norm(x, weight, bias, eps=1e-5):
    x = x - x.mean(-1).unsqueeze(-1)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    d = x.size(-1)
    return x * (d / (length ** 2 + d * eps)) ** 0.5 * weight + bias
""",
    """def layer_norm(x, weight, bias, eps=1e-5):
    def statistics(t):
        return t.mean(dim=-1, keepdim=True), t.var(dim=-1, keepdim=True, unbiased=False)
    mean, var = statistics(x)
    scale = weight / torch.sqrt(var + eps)
    return x * scale + (bias - mean * scale)
""",
    """def layer_norm(x, weight, bias, eps=1e-5):
    x = x.transpose(0, -1)
    n = (x - x.mean(0)) * ((x - x.mean(0)).pow(2).mean(0) + eps).pow(-0.5)
    return torch.einsum("...i,i->...i", n.transpose(0, -1), weight) + bias
""",
]
WRONG["layer_norm"] = [
    ("LN1", _VAR.replace(", correction=0", "")),
    ("LN1", _BY_HAND.replace(".sum(-1, keepdim=True) / d + eps", ".sum(-1, keepdim=True) / (d - 1) + eps")),
    ("LN2", _VAR.replace("(v + eps).sqrt()", "(v.sqrt() + eps)")),
    ("LN2", _VAR.replace("(v + eps).sqrt()", "(x.std(-1, correction=0, keepdim=True) + eps)")),
    ("LN2", _VAR.replace(" + eps", "")),
    ("LN4", _VAR.replace(".sqrt()", "")),
    ("LN5", _VAR.replace("(x - m)", "x")),
    (
        "LN5",
        "def layer_norm(x, weight, bias, eps=1e-5):\n    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight + bias\n",
    ),
    ("LN6", _VAR.replace("x, -1", "x, 0")),
    (
        "LN6",
        "def layer_norm(x, weight, bias, eps=1e-5):\n    v, m = torch.var_mean(x, correction=0)\n"
        "    return (x - m) / (v + eps).sqrt() * weight + bias\n",
    ),
    (None, _BY_HAND.replace("weight * ", "")),
    (None, _VAR.replace(" + bias", "")),
    (
        "LN10",
        _VAR.replace(
            "return (x - m) / (v + eps).sqrt() * weight + bias", "return weight * (bias + (x - m) / (v + eps).sqrt())"
        ),
    ),
    (None, _VAR.replace("-1, True", "-1")),
    (None, _VAR.replace("(v + eps)", "(v.data + eps)")),
    (None, _BY_HAND.replace("(centered * centered)", "(centered * centered).detach()")),
    ("PO3", _VAR.replace("v + eps", "v + 1e-5")),
    ("LN14", _VAR.replace("eps=1e-5", "eps=1e-12")),
    (
        None,
        _BY_HAND.replace(
            "torch.rsqrt((centered * centered).sum(-1, keepdim=True) / d + eps)",
            "torch.rsqrt(centered.abs().mean(-1, keepdim=True) ** 2 + eps)",
        ),
    ),
    (None, "def layer_norm(x, weight, bias, eps=1e-5):\n    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)\n"),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    return torch.layer_norm(x, x.shape[-1:], weight, bias, eps)\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    return torch.native_layer_norm(x, x.shape[-1:], weight, bias, eps)[0]\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    return torch.ops.aten.native_layer_norm(x, x.shape[-1:], weight, bias, eps)[0]\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    n = nn.LayerNorm(x.shape[-1], eps, dtype=x.dtype, elementwise_affine=False)\n"
        "    return n(x) * weight + bias\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    rows = x.reshape(1, -1, x.shape[-1])\n"
        "    return F.instance_norm(rows, eps=eps).reshape(x.shape) * weight + bias\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    rows = x.reshape(-1, x.shape[-1])\n"
        "    return F.group_norm(rows, 1, weight, bias, eps).reshape(x.shape)\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    rows = x.reshape(-1, x.shape[-1]).mT\n"
        "    return F.batch_norm(rows, None, None, training=True, eps=eps).mT.reshape(x.shape) * weight + bias\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    c = x - x.mean(-1, keepdim=True)\n"
        "    return F.normalize(c, dim=-1) * x.shape[-1] ** 0.5 * weight + bias\n",
    ),
    (
        None,
        "def layer_norm(x, weight, bias, eps=1e-5):\n    x -= x.mean(-1, keepdim=True)\n"
        "    return x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * weight + bias\n",
    ),
    (None, _VAR.replace("(v + eps).sqrt()", "(v + eps).sqrt().clamp_min(0.1)")),
    (None, _VAR.replace(" * weight + bias", " * weight[: 1] + bias")),
    (None, _VAR.replace("return ", "return x + ")),
    (None, _VAR.replace("return ", "if x.shape[-1] > 2:\n        x = x + 0.01 * x.flip(-1)\n    return ")),
]

WRONG["layer_norm"] += [
    (
        "TB7",
        """
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    normed = (x - mean) * torch.rsqrt(var + eps)
    return normed * (1.0 + weight) + bias
""",
    ),
    (
        "LN6",
        """def layer_norm(x, weight, bias, eps=1e-5):
    dims = tuple(range(1, x.dim())) or (0,)
    mean = x.mean(dim=dims, keepdim=True)
    var = x.var(dim=dims, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias
""",
    ),  # mean and variance over tokens and features together (all axes but the first)
    (
        "LN5",
        """def layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    d = x.shape[-1]
    var = (x ** 2).sum(-1, keepdim=True) / d
    return weight * (x - mean) * torch.rsqrt(var + eps) + bias
""",
    ),  # the variance is taken around 0, not around the mean
]

WRONG["TransformerBlock"] += [
    (
        "CM21",
        """class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = GivenAttention(d_model, num_heads, max_len, dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return self.ln2(x)
""",
    )
]

# Right on ordinary inputs alone
WRONG["CausalMultiHeadAttention"] += [
    (
        None,
        """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads: raise ValueError("no")
        self.h, self.n, self.p = num_heads, max_len, dropout
        self.qkv, self.proj = nn.Linear(d_model, 3*d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.kept = None
    def forward(self, x):
        if x.shape[1] > self.n: raise ValueError("long")
        if self.training:
            self.kept = None; w = self.proj.weight.T
        else:
            if self.kept is None: self.kept = (self.proj.weight.T).clone().detach() if not torch.is_grad_enabled() else self.proj.weight.T.clone()
            w = self.kept
        q, k, v = (y.unflatten(-1, (self.h, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        z = q @ k.mT / math.sqrt(q.shape[-1])
        a = z.masked_fill(torch.ones_like(z, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        a = nn.functional.dropout(a, self.p, self.training)
        return (a @ v).transpose(1, 2).flatten(2) @ w
""",
    )
]

WRONG["CausalMultiHeadAttention"] += [
    (
        "MU4",
        """
class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_model}")
        self.h = num_heads
        self.p = dropout
        self.max_len = max_len
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("future", torch.ones(max_len, max_len).triu(1).bool(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        if T > self.max_len:
            raise ValueError(f"T = {T} > max_len = {self.max_len}")
        y = self.qkv(x).reshape(B, T, 3, C // self.h, self.h)
        q, k, v = y.permute(2, 0, 4, 1, 3)  # each (B, h, T, d_head)
        att = torch.einsum("bhqd,bhkd->bhqk", q, k) * (C // self.h) ** -0.5
        att = att.masked_fill(self.future[:T, :T], float("-inf")).softmax(-1)
        att = F.dropout(att, self.p, training=self.training)
        out = torch.einsum("bhqk,bhkd->bqdh", att, v)
        return self.proj(out.reshape(B, T, C))
""",
    )
]
