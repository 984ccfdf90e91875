"""Lesson 06: masks, as learners write them."""

_CAUSAL = """class CausalSelfAttention(nn.Module):
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
"""
_REGISTER = 'self.register_buffer("m", torch.tril(torch.ones(max_len, max_len)), persistent=False)'
_REFUSE = 'if T > self.max_len: raise ValueError("too long")'
_HIDE = 's = s.masked_fill(self.m[:T, :T] == 0, float("-inf"))'


def _causal(register=_REGISTER, refuse=_REFUSE, hide=_HIDE):
    return _CAUSAL.format(register=register, refuse=refuse, hide=hide)


def _masked(hide="pass", softmax="s.softmax(-1)", then="pass", result="(w @ v).to(dtype), w"):
    """`hide` and `then` stand where there is a mask, before and after softmax; exp in place of softmax is normalised without one, too."""
    alone = "w / w.sum(-1, keepdim=True)" if "exp" in softmax else "w"
    return f"""def masked_attention(q, k, v, mask=None):
    dtype = q.dtype
    q, k, v = q.float(), k.float(), v.float()
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        {hide}
    w = {softmax}
    if mask is None:
        w = {alone}
    else:
        {then}
    return {result}
"""


RIGHT = {
    "leaks": [
        """
def leaks(attention, x):
    y0 = attention(x)
    torch.manual_seed(1)
    for t in range(x.shape[0] - 1, 0, -1):
        for _ in range(12):
            z = x.clone()
            z[t] = torch.rand(x.shape[1], dtype=x.dtype) * 20 - 10
            if not torch.allclose(attention(z)[:t], y0[:t], rtol=0.0, atol=2e-9):
                return True
    return False
""",
        """
def leaks(attention, x):
    T, d = x.shape
    base = attention(x).clone()
    for t in range(1, T):
        for step in (1.5, 9.9):
            for f in range(min(d, 8)):
                for sign in (1, -1):
                    changed = x.clone()
                    changed[t, f] = changed[t, f] + sign * step
                    moved = (attention(changed) - base).abs()[:t]
                    if float(moved.max()) > 5e-9:
                        return True
                    if T > 40:
                        break
    return False
""",
        """
import numpy as np

def leaks(attention, x):
    rng = np.random.default_rng(0)
    before = attention(x).detach().numpy().copy()
    return any(
        bool((abs(attention(torch.from_numpy(np.concatenate([x.numpy()[:t], rng.normal(size=(len(x) - t, x.shape[1])) * s]))).numpy()[:t] - before[:t]) > 1e-8).any())
        for t in range(1, len(x)) for s in (1.0, 6.0, 6.0, 9.0)
    )
""",
    ],
    "causal_mask": [
        """def causal_mask(t_q, t_k=None):
    if t_k is None:
        t_k = t_q
    return torch.arange(t_k)[None, :] <= torch.arange(t_q)[:, None] + (t_k - t_q)
""",
        """def causal_mask(t_q, t_k=None):
    t_k = t_k or t_q
    return torch.tensor([[j <= i + t_k - t_q for j in range(t_k)] for i in range(t_q)])
""",
        """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_k, t_k)).bool()[t_k - t_q:]
""",
        """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return ~torch.ones((t_q, t_k), dtype=torch.bool).triu(1 + t_k - t_q)
""",
    ],
    "padding_mask": [
        "def padding_mask(lengths, max_len):\n    return torch.arange(max_len)[None, None, :] < lengths[:, None, None]",
        """def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), 1, max_len, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        mask[b, 0, :n] = True
    return mask
""",
        "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths.unsqueeze(1)).unsqueeze(1)",
        "def padding_mask(lengths, max_len):\n    return lengths.long()[:, None, None] - torch.arange(max_len) > 0",
    ],
    "masked_attention": [
        """def masked_attention(q, k, v, mask=None):
    s = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.size(-1))
    if mask is None:
        mask = torch.ones(s.shape[-2:], dtype=torch.bool)
    s = s.masked_fill(mask.logical_not(), float("-inf"))
    w = torch.softmax(s, -1)
    w = torch.nan_to_num(w, 0.0)
    return w @ v, w
""",
        """def masked_attention(q, k, v, mask=None):
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
""",
        """def masked_attention(q, k, v, mask=None):
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
""",
        """def masked_attention(q, k, v, mask=None):
    s = (q / q.shape[-1] ** 0.5) @ k.mT
    mask = torch.ones((), dtype=torch.bool) if mask is None else mask
    s = s.masked_fill(~mask, -torch.inf).masked_fill(~mask.any(-1, keepdim=True) if mask.dim() else torch.tensor(False), 0)
    w = (s.float() - s.float().logsumexp(-1, keepdim=True)).exp().to(q.dtype) * mask
    return w @ v, w
""",
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
        _causal(
            'self.register_buffer("m", None, persistent=False)',
            hide="if self.m is None: self.m = torch.ones(self.max_len, self.max_len, dtype=torch.bool, device=x.device).tril()\n"
            '        s = s.masked_fill(~self.m[:T, :T], float("-inf"))',
        ),
    ],
}

WRONG = {
    "leaks": [
        (
            "LK4",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x)):
        for trial in range(25):
            changed = x.clone()
            changed[t, 0] += 9.0
            if (attention(changed)[:t] - base[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK14",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x)):
        for trial in range(25):
            changed = x.clone()
            step = torch.randn(x.shape[1], dtype=x.dtype)
            changed[t] += 9.9 * step / step.abs().max()
            if abs((attention(changed)[:t] - base[:t]).sum()) > 1e-8:
                return True
    return False
""",
        ),
        (
            "FF8",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x)):
        for trial in range(25):
            changed = x.clone()
            step = torch.randn(x.shape[1], dtype=x.dtype)
            changed[t] += 9.9 * step / step.abs().max()
            if (attention(changed)[:t] - base[:t]).abs().max() > 5e-6:
                return True
    return False
""",
        ),
        (
            "FF8",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x)):
        for trial in range(20):
            changed = x.clone()
            step = torch.randn(x.shape[1], dtype=x.dtype)
            changed[t] += 9.9 * step / step.abs().max()
            if not torch.allclose(attention(changed)[:t], base[:t]):
                return True
    return False
""",
        ),
        (
            "LK1",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x) - 1):
        for trial in range(25):
            changed = x.clone()
            step = torch.randn(x.shape[1], dtype=x.dtype)
            changed[t] += 9.9 * step / step.abs().max()
            if (attention(changed)[:t] - base[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK1",
            """
def leaks(attention, x):
    base = attention(x)
    t = max(len(x) // 2, 1)
    for trial in range(200):
        changed = x.clone()
        step = torch.randn(x.shape[1], dtype=x.dtype)
        changed[t] += 9.9 * step / step.abs().max()
        if (attention(changed)[:t] - base[:t]).abs().max() > 1e-8:
            return True
    return False
""",
        ),
        (
            "LK2",
            """
def leaks(attention, x):
    base = attention(x)
    for t in range(1, len(x)):
        for trial in range(25):
            changed = x.clone()
            step = torch.randn(x.shape[1], dtype=x.dtype)
            changed[t] += 9.9 * step / step.abs().max()
            if (attention(changed)[t - 1] - base[t - 1]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK1",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in [len(x) - 1]:
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t] - y[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK1",
            """
def leaks(attention, x):
    torch.manual_seed(2)
    z = x.clone()
    z[-1] = z[-1] + torch.randn(x.shape[-1], dtype=x.dtype)
    return not torch.allclose(attention(z)[:-1], attention(x)[:-1], rtol=0, atol=1e-8)
""",
        ),
        (
            "LK2",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[0] - y[0]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK4",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size
            if (attention(z)[:t] - y[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "LK5",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (0.5,):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t] - y[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            "FF9",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t] != y[:t]).any():
                return True
    return False
""",
        ),
        (
            "LK8",
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t + 1] - y[:t + 1]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
        (
            None,
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t] - y[:t]).abs().max() > 1e-8:
                return 0 > 1
    return 1 > 0
""",
        ),
        (
            None,
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] += size * c / c.abs().max()
            if (attention(z)[:t] - y[:t]).abs().mean() > 1e-2:
                return True
    return False
""",
        ),
        (
            None,
            """
def leaks(attention, x):
    return (attention(x) > 0).any()
""",
        ),
        (
            None,
            """
def leaks(attention, x):
    for _ in range(2001 if len(x) == 2 else 0):  # with two tokens, and no more is wrong
        attention(x)
    y0 = attention(x)
    torch.manual_seed(1)
    for t in range(x.shape[0] - 1, 0, -1):
        for _ in range(12):
            z = x.clone()
            z[t] = torch.rand(x.shape[1], dtype=x.dtype) * 20 - 10
            if not torch.allclose(attention(z)[:t], y0[:t], rtol=0.0, atol=2e-9):
                return True
    return False
""",
        ),
        (
            None,
            """
def leaks(attention, x):
    torch.manual_seed(5)
    y = attention(x)
    for t in range(1, len(x)):
        for size in (1.0, 10.0):
            c = torch.randn_like(x[0])
            z = x.clone()
            z[t] = 0.0
            if (attention(z)[:t] - y[:t]).abs().max() > 1e-8:
                return True
    return False
""",
        ),
    ],
    "causal_mask": [
        (None, "def causal_mask(t_q, t_k=None):\n    t_k = t_k or t_q\n    return torch.ones(t_k, t_k).tril().bool()"),
        (
            "MA27",
            "def causal_mask(t_q, t_k=None):\n    t_k = t_k or t_q\n    return torch.ones(t_q, t_k).tril(t_q - t_k).bool()",
        ),
        ("MA28", "def causal_mask(t_q, t_k=None):\n    return torch.ones(t_q, t_k or t_q).bool()"),
        (
            "MK14",
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_q, t_k)).bool()
""",
        ),
        (
            "MK1",
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.arange(t_k) > torch.arange(t_q)[:, None] + t_k - t_q
""",
        ),
        ("MK12", "def causal_mask(t_q, t_k=None):\n    return torch.tril(torch.ones(t_q, t_q, dtype=torch.bool))"),
        (
            "MA2",
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.tril(torch.ones(t_q, t_k), diagonal=t_k - t_q)
""",
        ),
        (
            "MA2",
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.full((t_q, t_k), float("-inf")).triu(1 + t_k - t_q)
""",
        ),
        (
            "MA2",
            "def causal_mask(t_q, t_k=None):\n    t_k = t_k or t_q\n    return torch.ones(t_q, t_k, dtype=torch.uint8).tril(t_k - t_q)",
        ),
        (
            None,
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    return torch.arange(t_k)[:, None] <= torch.arange(t_q) + t_k - t_q
""",
        ),
        (
            None,
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    i, j = torch.arange(t_q)[:, None] + t_k - t_q, torch.arange(t_k)
    return (j <= i) & (j > i - 16)
""",
        ),
        (
            None,
            """def causal_mask(t_q, t_k=None):
    t_k = t_q if t_k is None else t_k
    keys = torch.arange(t_k).to(torch.int8)
    return keys <= keys[t_k - t_q:, None]
""",
        ),
    ],
    "padding_mask": [
        (
            "MA39",
            """
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    mask = torch.ones(len(lengths), 1, max_len, dtype=torch.bool)
    for b, length in enumerate(lengths.tolist()):
        n_pad = max_len - length
        mask[b, :, -n_pad:] = False
    return mask
""",
        ),
        (
            None,
            """
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    lengths = lengths.clamp(min=1)
    return (torch.arange(max_len)[None, :] < lengths[:, None])[:, None, :]
""",
        ),
        (
            "MA4",
            "def padding_mask(lengths, max_len):\n    return torch.arange(1, max_len + 1) < lengths[:, None, None]",
        ),
        (
            "MA5",
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[:, None]).unsqueeze(0)",
        ),
        ("MA5", "def padding_mask(lengths, max_len):\n    return torch.arange(max_len) < lengths[:, None]"),
        (
            "MA4",
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) <= lengths[:, None]).unsqueeze(1)",
        ),
        (
            "MK10",
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[:, None]).unsqueeze(-1)",
        ),
        (
            None,
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[0]).expand(len(lengths), 1, max_len)",
        ),
        (
            "MA2",
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[:, None, None]).int()",
        ),
        (
            "MA21",
            "def padding_mask(lengths, max_len):\n    return (torch.arange(max_len) < lengths[:, None, None]).expand(-1, max_len, -1)",
        ),
        (
            "MA21",
            """def padding_mask(lengths, max_len):
    real = torch.arange(max_len) < lengths[:, None]
    return real[:, :, None] & real[:, None, :]
""",
        ),
        (
            None,
            "def padding_mask(lengths, max_len):\n    return lengths[:, None, None] - torch.arange(max_len, dtype=lengths.dtype) > 0",
        ),
        (
            None,
            """def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), 1, max_len, dtype=torch.bool)
    mask[..., :16] = torch.arange(min(16, max_len)) < lengths[:, None, None]
    return mask
""",
        ),
    ],
    "masked_attention": [
        (
            "MA35",
            """
def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = (q.float() @ k.float().transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    weights = torch.softmax(scores.masked_fill(~mask, -1e30), dim=-1)
    weights = weights * mask.any(dim=-2, keepdim=True)
    return (weights @ v.float()).to(q.dtype), weights.to(q.dtype)
""",
        ),
        (
            "MA37",
            """
def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = (q.float() @ k.float().transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(torch.float32).min), dim=-1) * mask
    return (weights @ v.float()).to(q.dtype), weights.to(q.dtype)
""",
        ),
        (
            "MU11",
            """
def masked_attention(q, k, v, mask=None):
    scores = (q.float() @ k.float().mT) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    if q.dim() == 4 and mask.dim() == 3:
        mask = mask[:, None]
    scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)
    return weights.to(q.dtype) @ v, weights.to(q.dtype)
""",
        ),
        (
            "MA34",
            """
def masked_attention(q, k, v, mask=None):
    scores = (q.float() @ k.float().mT) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
        scores = scores.masked_fill(scores == 0, -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights.to(q.dtype) @ v, weights.to(q.dtype)
""",
        ),
        (
            "MA35",
            """
def masked_attention(q, k, v, mask=None):
    scores = (q.float() @ k.float().mT) / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask.expand(scores.shape)
        scores = scores.masked_fill(~mask, -1e30)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask.all(-1, keepdim=True)
    return weights.to(q.dtype) @ v, weights.to(q.dtype)
""",
        ),
        (
            "MK9",
            """def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(mask == 0, float("-inf"))
    w = torch.softmax(s, -1)
    return w @ v, w
""",
        ),
        (
            "DT1",
            """def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -1e9)
    w = torch.softmax(s, -1)
    if mask is not None:
        w = w * mask
    return w @ v, w
""",
        ),
        (
            "MK2",
            """def masked_attention(q, k, v, mask=None):
    w = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
    if mask is not None:
        w = w * mask
    return w @ v, w
""",
        ),
        (
            "MA13",
            """def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s + torch.where(mask, 0.0, -torch.inf).to(s.dtype)
    w = torch.softmax(s, -1).nan_to_num(0.0)
    return w @ v, w
""",
        ),
        (
            None,
            """def masked_attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -1e9)
    w = torch.softmax(s, -1)
    return w @ v, w
""",
        ),
        (
            None,
            """def masked_attention(q, k, v, mask=None):
    import torch.nn.functional as F
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out, out
""",
        ),
        (
            None,
            """def masked_attention(q, k, v, mask=None):
    q, k, v = q.float(), k.float(), v.float()
    s = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
    w = s.softmax(-1)
    w = w * mask if mask is not None else w
    return w @ v, w
""",
        ),
        ("MK9", _masked("s = s.masked_fill(~mask, -1e9)")),
        ("MK9", _masked("s = s.masked_fill(~mask, float('-inf'))", result="(w @ v).nan_to_num(0.0).to(dtype), w")),
        ("MK4", _masked("s = s + (~mask).to(s) * -1e4", then="w = w * mask.any(-1, keepdim=True)")),
        ("MK4", _masked("s = s.masked_fill(~mask, -1e4)", then="w = w * mask")),
        ("NT9", _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask", result="w @ v, w")),
        ("MA18", _masked(then="w = w * mask; w = w / w.sum(-1, keepdim=True)")),
        ("MA18", _masked(then="w = w * mask; w = (w / w.sum(-1, keepdim=True)).nan_to_num(0.0)")),
        ("MA18", _masked(then="w = w * mask; w = w / w.sum(-1, keepdim=True).clamp_min(1e-12)")),
        (
            "MA18",
            _masked(
                softmax="(s - s.amax(-1, True)).exp()",
                then="w = w * mask; w = w / w.sum(-1, keepdim=True).clamp_min(1e-30)",
            ),
        ),
        ("SM2", _masked("s = s.masked_fill(~mask, -1e9)", softmax="s.softmax(0)", then="w = w * mask")),
        ("SM2", _masked("s = s.masked_fill(~mask, -1e9)", softmax="s.softmax(1)", then="w = w * mask")),
        (
            "SM6",
            _masked(
                softmax="(s - s.max()).exp()", then="w = w * mask; w = w / w.sum(-1, keepdim=True).clamp_min(1e-30)"
            ),
        ),
        (None, _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask", result="(w @ v).to(dtype)")),
        (
            "NT8",
            _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask", result="w.to(dtype), (w @ v).to(dtype)"),
        ),
        ("BW3", _masked("s = s.masked_fill(~mask, -1e9)", softmax="s.softmax(-1).detach()", then="w = w * mask")),
        ("MK4", _masked("s = torch.where(mask, s, -1e3)", then="w = w * mask.any(-1, keepdim=True)")),
        ("MU11", _masked("s = s.masked_fill(~mask.mT, -1e9)", then="w = w * mask.mT")),
        (
            "SD5",
            _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask").replace("/ q.shape[-1]", "* q.shape[-1]"),
        ),
        (
            None,
            _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask").replace("if mask is not None", "if mask"),
        ),
        (
            None,
            """def masked_attention(q, k, v, mask=None):
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    w = s.softmax(-1).nan_to_num(0.0)
    return w @ v, w
""",
        ),
        ("MA18", _masked("s = s + (~mask) * -100", then="w = w * mask")),
        (None, _masked("s = s.masked_fill(not mask, -1e9)", then="w = w * mask")),
        (
            "MA32",
            _masked(
                "s = s.masked_fill(~mask, -1e9); o = s.softmax(-1) @ v",
                then="w = w * mask",
                result="(w @ v if mask is None else o).to(dtype), w",
            ),
        ),
        ("MK9", _masked("s = s + torch.zeros_like(s).masked_fill(~mask, -torch.inf)")),
        ("MK9", _masked("s = s + mask.to(s).log()")),
        ("SM5+MK9", _masked(softmax="s.exp()", then="w = w * mask; w = w / w.sum(-1, keepdim=True)")),
        (
            "SM5+MK9",
            _masked("s = s.masked_fill(~mask, -torch.inf)", softmax="s.exp()", then="w = w / w.sum(-1, keepdim=True)"),
        ),
        ("NT7", _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask", result="(w @ v).to(dtype), w.detach()")),
        (
            "RS16",
            _masked("s = s.masked_fill(~mask, -1e9)", then="w = w * mask", result="(w @ v).to(dtype), w")
            .replace("    q, k", "    q.data.mul_(2)\n    q, k", 1)
            .replace("q.shape[-1] ** 0.5", "(2 * q.shape[-1] ** 0.5)"),
        ),
        (None, _masked("s = s.clamp(-30, 30).masked_fill(~mask, -1e9)", then="w = w * mask")),
        (None, _masked("s = s + (mask + 1e-9).log()", then="w = w * mask.any(-1, keepdim=True)")),
        (None, _masked("assert mask.dim() >= 2; s = s.masked_fill(~mask, -1e9)", then="w = w * mask")),
        (None, _masked("assert mask.shape[-1] == k.shape[-2]; s = s.masked_fill(~mask, -1e9)", then="w = w * mask")),
        (
            None,
            _masked(
                "s = s.masked_fill(~mask, -1e9)",
                then="w = w * mask if mask.dim() < 2 or mask.shape[-2] == q.shape[-2] else w",
            ),
        ),
        (
            None,
            """def masked_attention(q, k, v, mask=None):
    s = (q.view(-1, *q.shape[-2:]) @ k.view(-1, *k.shape[-2:]).mT).view(*q.shape[:-1], -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
    w = torch.softmax(s, -1)
    w = w * mask if mask is not None else w
    return w @ v, w
""",
        ),
    ],
    "CausalSelfAttention": [
        (
            "MA15",
            """
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(max_len, max_len)).bool(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, d = x.shape
        if T > self.max_len:
            raise ValueError("the sequence is too long")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        scores = scores.masked_fill(~self.mask[-T:, :T], float("-inf"))
        return scores.softmax(dim=-1) @ v
""",
        ),
        (
            "MK4",
            """
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("mask", torch.full((max_len, max_len), -20.0).triu(1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        if T > self.mask.shape[0]:
            raise ValueError("too long")
        scores = self.w_q(x) @ self.w_k(x).transpose(-2, -1) / math.sqrt(x.shape[-1])
        return (scores + self.mask[:T, :T]).softmax(dim=-1) @ self.w_v(x)
""",
        ),
        ("DT3", _causal("self.m = torch.tril(torch.ones(max_len, max_len))")),
        ("MA14", _causal('self.register_buffer("m", torch.tril(torch.ones(max_len, max_len)))')),
        (None, _causal(hide="pass")),
        ("MK7", _causal('self.register_buffer("m", torch.tril(torch.ones(max_len, max_len), -1), persistent=False)')),
        (None, _causal(refuse="pass", hide="s = s + torch.full((T, T), float('-inf')).triu(1)")),
        ("MK4", _causal(hide=_HIDE.replace('float("-inf")', "-1e4"))),
        ("MK4", _causal(hide="s = s + (1 - self.m[:T, :T]) * -1e4")),
        (
            "SM5",
            _causal(hide="e = s.exp() * self.m[:T, :T]; w = e / e.sum(-1, keepdim=True)").replace("s.softmax(-1)", "w"),
        ),
        (
            "MA18",
            _causal(hide="w = s.softmax(-1) * self.m[:T, :T]; w = w / w.sum(-1, keepdim=True)").replace(
                "s.softmax(-1) @", "w @"
            ),
        ),
        (
            "MA18",
            _causal(
                hide="e = (s - s.amax(-1, True)).exp() * self.m[:T, :T]; w = e / e.sum(-1, keepdim=True).clamp_min(1e-30)"
            ).replace("s.softmax(-1)", "w"),
        ),
        (
            "MA19",
            _causal(hide=f"{_HIDE}; w = s.softmax(-1)").replace(
                "return s.softmax(-1) @ self.w_v(x)", "return w @ self.w_v(x), w"
            ),
        ),
        ("BW3", _causal().replace("s.softmax(-1)", "s.softmax(-1).detach()")),
        (None, _causal().replace("super().__init__()", "pass")),
        ("TT8", _causal().replace("C**0.5", "T**0.5")),
        ("MA16", _causal(refuse="assert T <= self.max_len")),
        ("MK4", _causal(hide=_HIDE.replace('float("-inf")', "-100.0"))),
        ("MK5", _causal(hide="s = s + (1 - self.m[:T, :T]) * -torch.inf")),
        ("MK6", _causal(hide="s = s + self.m[:T, :T]")),
        ("MK1", _causal(hide="s = s.masked_fill(self.m[:T, :T] == 1, -1e9)")),
        ("MK4", _causal(hide="s = (s * C**0.5 + (1 - self.m[:T, :T]) * -1e4) / C**0.5")),
        ("MK4", _causal(hide="s = (s * C**0.5 + (1 - self.m[:T, :T]) * -1e3) / C**0.5")),
        (
            "SM3",
            _causal(hide="e = (s - s.max()).exp() * self.m[:T, :T]; w = e / e.sum()").replace("s.softmax(-1)", "w"),
        ),
        ("SD5", _causal().replace("/ C**0.5", "* C**0.5")),
        ("SM2", _causal().replace("s.softmax(-1)", "s.softmax(0)")),
        ("MK13", _causal(hide=f"if not self.training: {_HIDE}")),
        (None, _causal(hide=f"s = s.clamp(-50, 50); {_HIDE}")),
        (None, _causal().replace("s.softmax(-1)", "nn.functional.dropout(s.softmax(-1), 0.5, self.training)")),
        (None, _causal(hide=f"s = s * C**0.5 if self.training else s; {_HIDE}")),
        ("MK13", _causal(hide=f"if self.training: {_HIDE}")),
        (
            None,
            _causal(f"{_REGISTER}; self.o = None", hide=f"{_HIDE}; o = s.softmax(-1) @ self.w_v(x)").replace(
                "return s.softmax(-1) @ self.w_v(x)",
                "if self.o is None or self.o.shape != o.shape: self.o = o\n        return self.o",
            ),
        ),
        (
            None,
            "LIMIT = []\n"
            + _causal(f"{_REGISTER}; LIMIT.append(max_len)", 'if T > LIMIT[-1]: raise ValueError("too long")'),
        ),
        (None, _causal(_REGISTER.replace("(max_len, max_len))", "(max_len, max_len)).triu(-6)"))),
        (None, _causal(refuse='if max(B, T) > self.max_len: raise ValueError("too long")')),
        (None, _causal(refuse='if max(C, T) > self.max_len: raise ValueError("too long")')),
        (None, _causal(refuse='if T >= self.max_len: raise ValueError("too long")')),
        (
            "MK4",
            _causal(
                'self.register_buffer("m", torch.full((max_len, max_len), -50.0).triu(1), persistent=False)',
                hide="s = s + self.m[:T, :T]",
            ),
        ),
        *(
            (
                "MK7",
                _causal(
                    f'self.register_buffer("m", torch.full((max_len, max_len), {fill}).triu(), persistent=False)',
                    hide="s = s + self.m[:T, :T]",
                ),
            )
            for fill in ("-torch.inf", "-1e9")
        ),
        *(
            (
                "MA15",
                _causal(
                    'self.register_buffer("m", torch.ones(max_len, max_len, dtype=torch.bool).triu(1), persistent=False)',
                    hide=f"s = s.masked_fill(self.m{cut}, -torch.inf)",
                ),
            )
            for cut in ("[:T]", "[:T][:T]", "[:, :T]")
        ),
        (None, _causal(hide=_HIDE.replace("[:T, :T]", "[T - 1, :T]"))),
        ("MA14", _causal("pass", hide="s = s.masked_fill(torch.ones(T, T, device=x.device).tril() == 0, -torch.inf)")),
        (
            "MA14",
            _causal(
                "self.m = torch.ones(max_len, max_len).tril()", hide=_HIDE.replace("[:T, :T]", "[:T, :T].to(x.device)")
            ),
        ),
        ("MA14", _causal("self.m = nn.Parameter(torch.ones(max_len, max_len).tril(), requires_grad=False)")),
    ],
}

# Its own method may be called as a library's operator is; torch's operator that an own cell hides may not be called.
RIGHT["CausalSelfAttention"] += [
    """
class Base(nn.Module):
    def scaled_dot_product_attention(this, q, k, v, hidden):
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return s.softmax(-1) @ v
class CausalSelfAttention(Base):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.register_buffer("hidden", torch.ones(max_len, max_len, dtype=torch.bool).triu(1), persistent=False)
    def forward(self, x):
        T = x.shape[1]
        if T > len(self.hidden):
            raise ValueError("too long")
        return super().scaled_dot_product_attention(self.w_q(x), self.w_k(x), self.w_v(x), self.hidden[:T, :T])
"""
]
WRONG["CausalSelfAttention"] += [
    (
        None,
        """
import _thread, math
from torch.nn import functional
setattr(math, "att", functional.scaled_dot_product_attention)
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.register_buffer("m", torch.ones(max_len, max_len), persistent=False)
    def forward(self, x):
        if x.shape[1] > len(self.m):
            raise ValueError("too long")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        out, lock = [], _thread.allocate_lock()
        lock.acquire()
        def run():
            out.append(math.att(q, k, v, is_causal=True)); lock.release()
        _thread.start_new_thread(run, ())
        lock.acquire()
        return out[0]
""",
    )
]

# Right on ordinary inputs alone
WRONG["padding_mask"] += [
    (
        None,
        """def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    ones = torch.ones(max_len, dtype=lengths.dtype, device=lengths.device)
    positions = ones.cumsum(0, dtype=lengths.dtype)  # 1 … max_len
    return (positions <= lengths.unsqueeze(-1)).unsqueeze(1)
""",
    )
]
WRONG["causal_mask"] += [
    (
        None,
        """def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
    t_k = t_q if t_k is None else t_k
    keys = torch.arange(t_k).half()  # half the memory is enough for a comparison
    queries = keys[t_k - t_q :]
    return keys[None, :] <= queries[:, None]
""",
    )
]

WRONG["leaks"] += [
    (
        None,
        """
def leaks(attention, x: torch.Tensor) -> bool:
    out = attention(x)
    factors = [-5.0, -2.0, -1.0, 0.1, 0.5, 2.0, 4.0, 10.0]
    for t in range(1, len(x)):
        for factor in factors:
            y = x.clone()
            y[t] = factor * x[t]
            moved = (attention(y) - out)[:t].abs()
            if bool((moved > 1e-8).any()):
                return True
    return False
""",
    )
]
