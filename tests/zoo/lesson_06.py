"""Lesson 06: masks, as learners write them."""

_CAUSAL = '''class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.max_len = max_len
        {register}

    def forward(self, x):
        B, T, C = x.shape
        {refuse}
        s = self.w_q(x) @ self.w_k(x).transpose(1, 2) / C**0.5
        {hide}
        return s.softmax(-1) @ self.w_v(x)
'''
_REGISTER = 'self.register_buffer("m", torch.tril(torch.ones(max_len, max_len)), persistent=False)'
_REFUSE = 'if T > self.max_len: raise ValueError("too long")'
_HIDE = 's = s.masked_fill(self.m[:T, :T] == 0, float("-inf"))'


def _causal(register=_REGISTER, refuse=_REFUSE, hide=_HIDE):
    return _CAUSAL.format(register=register, refuse=refuse, hide=hide)


RIGHT = {
    "causal_mask": [
        '''def causal_mask(t_q, t_k=None):
    if t_k is None:
        t_k = t_q
    return torch.arange(t_k)[None, :] <= torch.arange(t_q)[:, None] + (t_k - t_q)
''',
        '''def causal_mask(t_q, t_k=None):
    t_k = t_k or t_q
    return torch.tensor([[j <= i + t_k - t_q for j in range(t_k)] for i in range(t_q)])
''',
        '''def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_k, t_k)).bool()[t_k - t_q:]
''',
        '''def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return ~torch.ones((t_q, t_k), dtype=torch.bool).triu(1 + t_k - t_q)
''',
    ],
    "padding_mask": [
        "def padding_mask(lengths, max_len):\n    return torch.arange(max_len)[None, None, :] < lengths[:, None, None]",
        '''def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), 1, max_len, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        mask[b, 0, :n] = True
    return mask
''',
        "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths.unsqueeze(1)).unsqueeze(1)",
    ],
    "masked_attention": [
        '''def masked_attention(q, k, v, mask=None):
    s = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.size(-1))
    if mask is None:
        mask = torch.ones(s.shape[-2:], dtype=torch.bool)
    s = s.masked_fill(mask.logical_not(), float("-inf"))
    w = torch.softmax(s, -1)
    w = torch.nan_to_num(w, 0.0)
    return w @ v, w
''',
        '''def masked_attention(q, k, v, mask=None):
    s = (q / math.sqrt(q.size(-1))) @ k.transpose(-1, -2)
    if mask is not None:
        s = torch.where(mask, s, torch.tensor(torch.finfo(s.dtype).min, dtype=s.dtype))
    top = s.amax(-1, keepdim=True)
    e = torch.exp(s - top)
    if mask is not None:
        e = e * mask
    total = e.sum(-1, keepdim=True)
    w = e / torch.where(total == 0, torch.ones_like(total), total)
    return w @ v, w
''',
        '''def masked_attention(q, k, v, mask=None):
    dtype = q.dtype
    q, k, v = q.float(), k.float(), v.float()
    s = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf)
        empty = ~mask.any(-1, keepdim=True)
        s = s.masked_fill(empty, 0.0)
        w = s.softmax(-1).masked_fill(empty, 0.0)
    else:
        w = s.softmax(-1)
    return [(w @ v).to(dtype), w]
''',
    ],
    "CausalSelfAttention": [
        _causal(),
        _causal(
            'self.register_buffer("bias", torch.full((max_len, max_len), float("-inf")).triu(1)[None], persistent=False)',
            hide="s = s + self.bias[:, :T, :T].to(s.dtype)",
        ),
        _causal(
            'self.register_buffer("future", torch.ones(max_len, max_len, dtype=torch.bool).triu(1), persistent=False)\n'
            "        self.extra = nn.Parameter(torch.zeros(3))",
            hide="s = torch.where(self.future[:T, :T], torch.finfo(s.dtype).min, s)",
        ),
    ],
}

WRONG = {
    "causal_mask": [
        ("MK14", '''def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_q, t_k)).bool()
'''),
        ("MK1", '''def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.arange(t_k) > torch.arange(t_q)[:, None] + t_k - t_q
'''),
        ("MK12", "def causal_mask(t_q, t_k=None):\n    return torch.tril(torch.ones(t_q, t_q, dtype=torch.bool))"),
        ("MA2", '''def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_q, t_k), diagonal=t_k - t_q)
'''),
    ],
    "padding_mask": [
        ("MA5", "def padding_mask(lengths, max_len):\n    return torch.arange(max_len) < lengths[:, None]"),
        ("MA4", "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) <= lengths[:, None]).unsqueeze(1)"),
        ("MK10", "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[:, None]).unsqueeze(-1)"),
        (None, "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[0]).expand(len(lengths), 1, max_len)"),
    ],
    "masked_attention": [
        ("MK9", '''def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(mask == 0, float("-inf"))
    w = torch.softmax(s, -1)
    return w @ v, w
'''),
        ("DT1", '''def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -1e9)
    w = torch.softmax(s, -1)
    if mask is not None:
        w = w * mask
    return w @ v, w
'''),
        ("MK2", '''def masked_attention(q, k, v, mask=None):
    w = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
    if mask is not None:
        w = w * mask
    return w @ v, w
'''),
        ("MA13", '''def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s + torch.where(mask, 0.0, -torch.inf).to(s.dtype)
    w = torch.softmax(s, -1).nan_to_num(0.0)
    return w @ v, w
'''),
        (None, '''def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -1e9)
    w = torch.softmax(s, -1)
    return w @ v, w
'''),
        (None, '''def masked_attention(q, k, v, mask=None):
    import torch.nn.functional as F
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out, out
'''),
        (None, '''def masked_attention(q, k, v, mask=None):
    q, k, v = q.float(), k.float(), v.float()
    s = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
    w = s.softmax(-1)
    w = w * mask if mask is not None else w
    return w @ v, w
'''),
    ],
    "CausalSelfAttention": [
        ("DT3", _causal("self.m = torch.tril(torch.ones(max_len, max_len))")),
        ("MA14", _causal('self.register_buffer("m", torch.tril(torch.ones(max_len, max_len)))')),
        ("MA8", _causal(hide="pass")),
        ("MK7", _causal('self.register_buffer("m", torch.tril(torch.ones(max_len, max_len), -1), persistent=False)')),
        (None, _causal(refuse="pass", hide="s = s + torch.full((T, T), float('-inf')).triu(1)")),
        (None, _causal(refuse="assert T <= self.max_len")),
    ],
}  # fmt: skip
