"""The same mistakes, written otherwise: a right answer in another style than the course's, and what to change in it for each id.

The style is a loop, einsum, another library call or another order of steps, so that a mistake is named by what it does and
not by how it is written. Each entry: (the right answer, {id: (old, new, old, new, …)}); every old text stands in it once.
"""

SOFTMAX_LOOP = """def softmax(x, axis=-1):
    rows = np.moveaxis(np.asarray(x), axis, -1)
    made = np.zeros(rows.shape, dtype=np.result_type(rows, np.float32))
    for at in np.ndindex(rows.shape[:-1]):
        largest = max(rows[at])
        grown = np.array([np.exp(number - largest) for number in rows[at]])
        made[at] = grown / sum(grown)
    return np.moveaxis(made, -1, axis)
"""
TEMPERATURE = """def softmax_with_temperature(x, temperature, axis=-1):
    if not temperature > 0:
        raise ValueError("temperature")
    rows = np.moveaxis(np.asarray(x), axis, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    out = []
    for row in flat:
        z = np.divide(row, temperature)
        e = np.exp(z - np.amax(z))
        out.append(e / np.sum(e))
    return np.moveaxis(np.array(out).reshape(rows.shape), -1, axis)
"""
LOG_SOFTMAX = """def log_softmax(x, axis=-1):
    peak = np.max(x, axis, keepdims=True)
    lse = peak + np.log(np.sum(np.exp(np.subtract(x, peak)), axis, keepdims=True))
    return np.subtract(x, lse)
"""
JACOBIAN = """def softmax_jacobian(p):
    n = len(p)
    J = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            J[i, j] = (p[i] if i == j else 0.0) - p[i] * p[j]
    return J
"""
CROSS = """def cross_entropy(scores, targets):
    top = scores.max(-1)
    lse = top + np.log(np.exp(scores - top[..., None]).sum(-1))
    chosen = np.zeros(targets.shape)
    for at in np.ndindex(targets.shape):
        chosen[at] = scores[at][targets[at]]
    return lse - chosen
"""
CROSS_GRADIENT = """def cross_entropy_gradient(scores, targets):
    e = np.exp(scores - np.amax(scores, axis=-1, keepdims=True))
    g = e / np.sum(e, axis=-1, keepdims=True)
    for at in np.ndindex(targets.shape):
        g[at + (targets[at],)] -= 1
    return g
"""
SCORES = """def attention_scores(Q, K):
    S = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            S[i, j] = sum(a * b for a, b in zip(Q[i], K[j]))
    return S
"""
SDPA = """def scaled_dot_product_attention(q, k, v):
    d_k = k.shape[-1]
    s = np.einsum("...id,...jd->...ij", q, k) * d_k ** -0.5
    s = s - np.amax(s, axis=-1, keepdims=True)
    p = np.exp(s)
    p = np.divide(p, np.sum(p, axis=-1, keepdims=True))
    out = np.einsum("...ij,...je->...ie", p, v)
    return out, p
"""
EINSUM = """def attention_einsum(q, k, v):
    result = []
    for one_q, one_k, one_v in zip(q, k, v):
        logits = np.einsum("td,sd->ts", one_q, one_k) * (one_q.shape[1] ** -0.5)
        grown = np.exp(logits - logits.max(1)[:, None])
        probabilities = grown / grown.sum(1)[:, None]
        result.append(np.einsum("ts,se->te", probabilities, one_v))
    return np.stack(result)
"""
PROJECT = """def project_qkv(x, w_q, w_k, w_v):
    q = np.einsum("...tm,md->...td", x, w_q)
    k = np.tensordot(x, w_k, axes=1)
    v = np.matmul(x, w_v)
    return q, k, v
"""
ENTROPY = """def row_entropy(weights):
    p = np.asarray(weights, dtype=float)
    inside = np.zeros_like(p)
    seen = p > 0
    inside[seen] = p[seen] * np.log(p[seen])
    return -np.sum(inside, axis=-1)
"""
TORCH_ATTENTION = """def attention_torch(q, k, v):
    s = torch.einsum("...id,...jd->...ij", q, k) * (q.size(-1) ** -0.5)
    e = (s - s.amax(-1, keepdim=True)).exp()
    w = e / e.sum(-1, keepdim=True)
    return torch.einsum("...ij,...je->...ie", w, v), w
"""
CAUSAL = """def causal_mask(t_q, t_k=None):
    if t_k is None:
        t_k = t_q
    rows = []
    for i in range(t_q):
        last = i + t_k - t_q
        rows.append([j <= last for j in range(t_k)])
    return torch.tensor(rows)
"""
PADDING = """def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), 1, max_len, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        mask[b, 0, :n] = True
    return mask
"""
MASKED = """def masked_attention(q, k, v, mask=None):
    s = torch.einsum("...id,...jd->...ij", q, k) / q.size(-1) ** 0.5
    seen = torch.ones_like(s, dtype=torch.bool) if mask is None else mask.expand(s.shape)
    s = torch.where(seen, s, torch.full_like(s, torch.finfo(s.dtype).min))
    e = torch.exp(s - s.amax(-1, keepdim=True)) * seen
    total = e.sum(-1, keepdim=True)
    p = e / torch.where(total > 0, total, torch.ones_like(total))
    return torch.einsum("...ij,...je->...ie", p, v), p
"""
CAUSAL_MODULE = """class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        for name in ("w_q", "w_k", "w_v"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        self.scale = d_model ** -0.5
        self.longest = max_len
        future = torch.full((max_len, max_len), float("-inf")).triu(1)
        self.register_buffer("bias", future, persistent=False)

    def forward(self, x):
        n = x.size(1)
        if n > self.longest:
            raise ValueError("too long")
        queries, keys, values = self.w_q(x), self.w_k(x), self.w_v(x)
        logits = torch.einsum("bid,bjd->bij", queries, keys) * self.scale
        logits = logits + self.bias[:n, :n]
        p = torch.softmax(logits, 2)
        return torch.einsum("bij,bjd->bid", p, values)
"""
SINUSOIDS = """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2 != 0:
        raise ValueError("odd")
    table = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = pos / base ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table
"""
ROPE = """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2 != 0:
        raise ValueError("odd")
    i = torch.arange(d // 2, dtype=torch.float64)
    theta = base ** (-2 * i / d)
    angle = torch.einsum("t,f->tf", positions.double(), theta)
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], d // 2, 2).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)
"""
ALIBI = """def alibi_bias(num_heads, t):
    bias = torch.zeros(num_heads, t, t)
    for h in range(num_heads):
        slope = 2 ** (-8 * (h + 1) / num_heads)
        for i in range(t):
            for j in range(t):
                bias[h, i, j] = -slope * abs(i - j)
    return bias
"""
SOFTMAX_BACKWARD = """def softmax_backward(grad_weights, weights):
    shape = weights.shape
    p, g = weights.reshape(-1, shape[-1]), grad_weights.reshape(-1, shape[-1])
    rows = []
    for one_p, one_g in zip(p, g):
        jacobian = np.diag(one_p) - np.outer(one_p, one_p)
        rows.append(jacobian @ one_g)
    return np.array(rows).reshape(shape)
"""
BACKWARD = """def attention_backward(q, k, v, grad_output):
    c = q.shape[-1] ** -0.5
    s = np.einsum("...id,...jd->...ij", q, k) * c
    p = np.exp(s - np.amax(s, axis=-1, keepdims=True))
    p = p / np.sum(p, axis=-1, keepdims=True)
    out = np.einsum("...ij,...je->...ie", p, v)
    dv = np.einsum("...ij,...ie->...je", p, grad_output)
    dp = np.einsum("...ie,...je->...ij", grad_output, v)
    D = np.sum(grad_output * out, axis=-1, keepdims=True)
    ds = p * (dp - D)
    dq = np.einsum("...ij,...jd->...id", ds, k) * c
    dk = np.einsum("...ij,...id->...jd", ds, q) * c
    return dq, dk, dv
"""
SPLIT = """def split_heads(x, num_heads):
    B, T, C = x.shape
    d, rest = divmod(C, num_heads)
    if rest:
        raise ValueError("uneven")
    return torch.stack([x[:, :, h * d:(h + 1) * d] for h in range(num_heads)], dim=1)
"""
MULTI_HEAD = """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("uneven")
        self.h, self.d = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        Q, K, V = self.w_q(query), self.w_k(key), self.w_v(value)
        mixed, maps = [], []
        for i in range(self.h):
            part = slice(i * self.d, (i + 1) * self.d)
            s = Q[:, :, part] @ K[:, :, part].transpose(1, 2) / self.d ** 0.5
            if mask is not None:
                allowed = mask.expand(Q.size(0), self.h, Q.size(1), K.size(1))[:, i]
                s = torch.where(allowed, s, float("-inf"))
            p = s.softmax(dim=2)
            maps.append(p)
            mixed.append(p @ V[:, :, part])
        return self.w_o(torch.cat(mixed, dim=2)), torch.stack(maps, dim=1)
"""
RNN = """def rnn_states(x, w_x, w_h, b):
    read = torch.einsum("btd,dh->bth", x, w_x) + b
    h = torch.zeros_like(read[:, 0])
    out = []
    for now in torch.unbind(read, 1):
        h = torch.tanh(now + torch.matmul(h, w_h))
        out.append(h)
    return torch.stack(out, 1)
"""
ADDITIVE = """def additive_attention(query, keys, w_query, w_key, v):
    B, T, d_h = keys.shape
    asked = torch.einsum("bq,qa->ba", query, w_query)
    known = torch.einsum("bth,ha->bta", keys, w_key)
    bent = torch.tanh(asked.unsqueeze(1) + known)
    s = torch.einsum("bta,a->bt", bent, v)
    e = torch.exp(s - s.amax(dim=1, keepdim=True))
    p = e / e.sum(dim=1, keepdim=True)
    return torch.einsum("bt,bth->bh", p, keys), p
"""
LUONG = """def luong_attention(query, keys, w):
    s = torch.einsum("bi,ih,bth->bt", query, w, keys)
    e = torch.exp(s - s.amax(dim=1, keepdim=True))
    p = e / e.sum(dim=1, keepdim=True)
    return (p.unsqueeze(2) * keys).sum(dim=1), p
"""
LAYER_NORM = """def layer_norm(x, weight, bias, eps=1e-5):
    n = x.size(-1)
    centered = x - x.sum(-1, keepdim=True) / n
    spread = torch.sqrt((centered * centered).sum(-1, keepdim=True) / n + eps)
    return centered / spread * weight + bias
"""
CAUSAL_HEADS = """class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("uneven")
        self.h, self.d, self.longest, self.p = num_heads, d_model // num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.longest:
            raise ValueError("too long")
        q, k, v = torch.split(self.qkv(x), C, dim=2)
        q, k, v = (part.view(B, T, self.h, self.d).permute(0, 2, 1, 3) for part in (q, k, v))
        s = torch.matmul(q, k.transpose(2, 3)) / self.d ** 0.5
        at = torch.arange(T, device=x.device)
        s = torch.where(at[None, :] <= at[:, None], s, float("-inf"))
        p = F.dropout(F.softmax(s, dim=3), self.p, self.training)
        y = torch.matmul(p, v).permute(0, 2, 1, 3).reshape(B, T, C)
        return self.proj(y)
"""

GROUPED = """def grouped_query_attention(q, k, v, causal=True):
    B, H, T, d = q.shape
    n, S = k.shape[1], k.shape[2]
    if H % n != 0:
        raise ValueError("uneven")
    made = []
    for h in range(H):
        g = h // (H // n)
        s = torch.einsum("btd,bsd->bts", q[:, h], k[:, g]) * d ** -0.5
        if causal:
            at = torch.arange(T, device=q.device)[:, None] + (S - T)
            s = torch.where(torch.arange(S, device=q.device)[None] <= at, s, float("-inf"))
        e = torch.exp(s - s.amax(2, keepdim=True))
        made.append(torch.einsum("bts,bsd->btd", e / e.sum(2, keepdim=True), v[:, g]))
    return torch.stack(made, 1)
"""
WINDOW = """def window_mask(t_q, t_k, window, sinks=0):
    rows = []
    for i in range(t_q):
        p = i + t_k - t_q
        rows.append([j <= p and (p - j < window or j < sinks) for j in range(t_k)])
    return torch.tensor(rows)
"""
CACHED = """def generate_cached(model, ids, max_new_tokens):
    memory = model.new_cache(len(ids))
    columns, fresh = [ids], ids
    while len(columns) <= max_new_tokens:
        with torch.no_grad():
            fresh = model(fresh, memory)[:, -1:].argmax(2)
        columns.append(fresh)
    return torch.cat(columns, 1)
"""
CACHE = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None):
        self.both = torch.zeros(2, batch, num_kv_heads, max_len, d_head, dtype=dtype, device=device)
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
"""

OTHERWISE = {
    "softmax": (
        SOFTMAX_LOOP,
        {
            "SM5": ("number - largest", "number"),
            "TT13": ("np.exp(number - largest)", "number"),
            "SL14": ("np.exp(number - largest)", "2.0 ** (number - largest)"),
            "SM6": ("max(rows[at])", "rows.max()"),
            "SX25": ("max(rows[at])", "max(abs(rows[at]))"),
            "SX1": ("axis, -1)", "-1, -1)", "-1, axis)", "-1, -1)"),
        },
    ),
    "softmax_with_temperature": (
        TEMPERATURE,
        {
            "SM5": ("z - np.amax(z)", "z"),
            "SX12": ("np.divide(row, temperature)", "row", "e / np.sum(e)", "e / np.sum(e) / temperature"),
            "SX13": ("if not temperature > 0:", "if temperature < 0:"),
            "SX1": ("axis, -1)", "-1, -1)", "-1, axis)", "-1, -1)"),
        },
    ),
    "log_softmax": (
        LOG_SOFTMAX,
        {
            "SM6": ("np.max(x, axis, keepdims=True)", "np.max(x)"),
            "SM5": ("np.max(x, axis", "np.min(x, axis"),
            "SX25": ("np.max(x, axis", "np.max(abs(x), axis"),
            "SX35": ("lse = peak +", "lse ="),
            "SX1": ("np.max(x, axis,", "np.max(x, -1,", "peak)), axis,", "peak)), -1,"),
        },
    ),
    "softmax_jacobian": (
        JACOBIAN,
        {
            "SX43": ("(p[i] if i == j else 0.0)", ""),
            "SX44": ("- p[i] * p[j]", "+ p[i] * p[j]"),
            "SX46": (" - p[i] * p[j]", ""),
            "SX49": ("- p[i] * p[j]", "- sum(p * p)"),
            "AB33": ("n = len(p)", "p = np.exp(p - p.max())\n    p = p / p.sum()\n    n = len(p)"),
        },
    ),
    "cross_entropy": (
        CROSS,
        {
            "SX33": (
                "np.log(np.exp(scores - top[..., None]).sum(-1))",
                "np.log2(np.exp(scores - top[..., None]).sum(-1))",
            ),
            "SX35": ("lse = top +", "lse ="),
            "SM6": ("top = scores.max(-1)", "top = np.full(scores.shape[:-1], scores.max())"),
        },
    ),
    "cross_entropy_gradient": (
        CROSS_GRADIENT,
        {
            "SM6": ("np.amax(scores, axis=-1, keepdims=True)", "np.amax(scores)"),
            "SM3": ("np.sum(e, axis=-1, keepdims=True)", "np.sum(e)"),
            "CE10": ("(targets[at],)", "(targets[at] - 1,)"),
        },
    ),
    "attention_scores": (
        SCORES,
        {"SD8": ("S = np.zeros((len(Q), len(K)))", "S = np.zeros((len(K), len(Q)))", "S[i, j] =", "S[j, i] =")},
    ),
    "scaled_dot_product_attention": (
        SDPA,
        {
            "SD1": (" * d_k ** -0.5", ""),
            "SD2": ("d_k ** -0.5", "1 / d_k"),
            "SD5": ("d_k ** -0.5", "d_k ** 0.5"),
            "SD6": (
                " * d_k ** -0.5",
                "",
                "p = np.divide(p, np.sum(p, axis=-1, keepdims=True))",
                "p = np.divide(p, np.sum(p, axis=-1, keepdims=True)) * d_k ** -0.5",
            ),
            "SM1": ("np.amax(s, axis=-1", "np.amax(s, axis=-2", "np.sum(p, axis=-1", "np.sum(p, axis=-2"),
            "SM2": ("np.amax(s, axis=-1", "np.amax(s, axis=0", "np.sum(p, axis=-1", "np.sum(p, axis=0"),
            "SM3": (
                "np.sum(p, axis=-1, keepdims=True)",
                "np.sum(p)",
                "np.amax(s, axis=-1, keepdims=True)",
                "np.amax(s)",
            ),
            "SM5": ("s - np.amax(s, axis=-1, keepdims=True)", "s"),
            "SM6": ("np.amax(s, axis=-1, keepdims=True)", "np.amax(s)"),
            "TT8": ("d_k = k.shape[-1]", "d_k = k.shape[-2]"),
            "AB20": (
                "p = np.exp(s)\n    p = np.divide(p, np.sum(p, axis=-1, keepdims=True))",
                "p = s",
                "s = s - np.amax(s, axis=-1, keepdims=True)",
                "pass",
            ),
            "TT14": ("p = np.divide(p, np.sum(p, axis=-1, keepdims=True))", "pass"),
            "NT8": ("return out, p", "return p, out"),
            "AB22": ('"...ij,...je->...ie", p', '"...ji,...je->...ie", p'),
            "SX25": ("np.amax(s, axis", "np.amax(abs(s), axis"),
        },
    ),
    "attention_einsum": (
        EINSUM,
        {
            "SD1": (" * (one_q.shape[1] ** -0.5)", ""),
            "SD2": ("one_q.shape[1] ** -0.5", "1 / one_q.shape[1]"),
            "SD5": ("one_q.shape[1] ** -0.5", "one_q.shape[1] ** 0.5"),
            "SM5": ("logits - logits.max(1)[:, None]", "logits"),
            "TT8": ("one_q.shape[1] ** -0.5", "one_k.shape[0] ** -0.5"),
            "AB20": ("grown / grown.sum(1)[:, None]", "logits"),
            "TT14": ("grown / grown.sum(1)[:, None]", "grown"),
            "SM1": ("logits.max(1)[:, None]", "logits.max(0)", "grown.sum(1)[:, None]", "grown.sum(0)"),
            "SD6": (
                " * (one_q.shape[1] ** -0.5)",
                "",
                "grown / grown.sum(1)[:, None]",
                "grown / grown.sum(1)[:, None] / one_q.shape[1] ** 0.5",
            ),
            "SX25": ("logits.max(1)", "abs(logits).max(1)"),
        },
    ),
    "project_qkv": (
        PROJECT,
        {
            "AB3": ("x, w_k, axes", "x, w_q, axes"),
            "AB9": ("return q, k, v", "return q, v, k"),
            "TT1": ("return q, k, v", "return q * q.shape[-1] ** -0.5, k, v"),
        },
    ),
    "row_entropy": (ENTROPY, {}),
    "attention_torch": (
        TORCH_ATTENTION,
        {
            "SD1": (" * (q.size(-1) ** -0.5)", ""),
            "SD2": ("q.size(-1) ** -0.5", "1 / q.size(-1)"),
            "SD5": ("q.size(-1) ** -0.5", "q.size(-1) ** 0.5"),
            "SM1": ("s.amax(-1", "s.amax(-2", "e.sum(-1", "e.sum(-2"),
            "SM5": ("(s - s.amax(-1, keepdim=True)).exp()", "s.exp()"),
            "SM6": ("s.amax(-1, keepdim=True)", "s.max()"),
            "NT8": ("w, v), w", "w, v)[()]", "return torch", "return w, torch"),
            "NT7": ("w, v), w", "w, v), w.detach()"),
            "BW3": ("w = e / e.sum(-1, keepdim=True)", "w = (e / e.sum(-1, keepdim=True)).detach()"),
            "SM3": ("e.sum(-1, keepdim=True)", "e.sum()", "s.amax(-1, keepdim=True)", "s.max()"),
        },
    ),
    "causal_mask": (
        CAUSAL,
        {
            "MK7": ("j <= last", "j < last"),
            "MK8": ("j <= last", "j <= last + 1"),
            "MA1": ("j <= last", "j >= last"),
            "MK14": ("last = i + t_k - t_q", "last = i"),
            "MK1": ("j <= last", "j > last"),
        },
    ),
    "padding_mask": (
        PADDING,
        {
            "MK1": ("torch.zeros(", "torch.ones(", "= True", "= False"),
            "MA6": (":n]", "max_len - n:]"),
            "MA7": ("len(lengths), 1, max_len", "len(lengths), 1, int(lengths.max())"),
        },
    ),
    "masked_attention": (
        MASKED,
        {
            "MK1": ("mask.expand", "(~mask).expand"),
            "SD1": (" / q.size(-1) ** 0.5", ""),
            "SD2": ("q.size(-1) ** 0.5", "q.size(-1)"),
            "MK3": ("torch.full_like(s, torch.finfo(s.dtype).min)", "torch.zeros_like(s)", " * seen", ""),
            "TT8": ("q.size(-1) ** 0.5", "k.size(-2) ** 0.5"),
            "SM1": ("s.amax(-1", "s.amax(-2", "e.sum(-1", "e.sum(-2"),
            "AB22": ('"...ij,...je->...ie", p', '"...ji,...je->...ie", p'),
            "SD6": (
                " / q.size(-1) ** 0.5",
                "",
                "p = e / torch.where(total > 0, total, torch.ones_like(total))",
                "p = e / torch.where(total > 0, total, torch.ones_like(total)) / q.size(-1) ** 0.5",
            ),
        },
    ),
    "CausalSelfAttention": (
        CAUSAL_MODULE,
        {
            "MK8": ("triu(1)", "triu(2)"),
            "MA1": ("triu(1)", "tril(-1)"),
            "SD1": (" * self.scale", ""),
            "SD2": ("d_model ** -0.5", "1 / d_model"),
            "SM1": ("torch.softmax(logits, 2)", "torch.softmax(logits, 1)"),
            "PJ2": (", bias=False", ""),
            "SD8": ('"bid,bjd->bij"', '"bid,bjd->bji"'),
            "MA15": ("self.bias[:n, :n]", "self.bias"),
            "SD6": (" * self.scale", "", "p = torch.softmax(logits, 2)", "p = torch.softmax(logits, 2) * self.scale"),
            "MK2": (
                "logits = logits + self.bias[:n, :n]",
                "pass",
                "torch.softmax(logits, 2)",
                "torch.softmax(logits, 2) * (self.bias[:n, :n] == 0)",
            ),
        },
    ),
    "sinusoidal_positions": (
        SINUSOIDS,
        {
            "PE1": ("2 * i / d_model)", "2 * 2 * i / d_model)"),
            "PO2": ("angle = pos /", "angle = (pos + 1) /"),
            "PO4": ("math.sin(angle)", "math.cos( angle)", "math.cos(angle)", "math.sin(angle)"),
            "PO6": ("2 * i / d_model)", "i / d_model)"),
            "PO3": ("/ base **", "/ 10000.0 **"),
            "PE4": ("table[pos, 2 * i] =", "table[pos, i] =", "table[pos, 2 * i + 1]", "table[pos, d_model // 2 + i]"),
        },
    ),
    "apply_rope": (
        ROPE,
        {
            "PO11": ("angle)\n    pairs", "-angle)\n    pairs"),
            "PE1": ("-2 * i / d", "-4 * i / d"),
            "PO6": ("-2 * i / d", "-i / d"),
            "PO2": ("positions.double()", "positions.double() + 1"),
            "PO3": ("theta = base", "theta = 10000.0"),
            "PO15": ("theta = base ** (-2 * i / d)", "theta = torch.ones_like(i)"),
            "PO1": ('    if d % 2 != 0:\n        raise ValueError("odd")\n', ""),
        },
    ),
    "alibi_bias": (
        ALIBI,
        {
            "PO26": ("-8 * (h + 1) / num_heads", "-(h + 1)"),
            "PO24": ("(h + 1)", "(num_heads - h)"),
            "PO28": ("-slope * abs(i - j)", '-slope * abs(i - j) if j <= i else float("-inf")'),
        },
    ),
    "softmax_backward": (SOFTMAX_BACKWARD, {"BW1": ("np.diag(one_p) - np.outer(one_p, one_p)", "np.diag(one_p)")}),
    "attention_backward": (
        BACKWARD,
        {
            "BW1": ("(dp - D)", "dp"),
            "BW2": ("ds, k) * c", "ds, k)", "ds, q) * c", "ds, q)"),
            "GB7": ('"...ij,...id->...jd", ds', '"...ji,...id->...jd", ds'),
            "GB10": ("return dq, dk, dv", "return dk, dq, dv"),
        },
    ),
    "split_heads": (SPLIT, {"MU13": ("dim=1)", "dim=2)"), "MU4": ("h * d:(h + 1) * d", "h::num_heads")}),
    "MultiHeadAttention": (
        MULTI_HEAD,
        {
            "SD1": (" / self.d ** 0.5", ""),
            "SD2": ("self.d ** 0.5", "self.d"),
            "SD3": ("self.d ** 0.5", "Q.size(-1) ** 0.5"),
            "SD4": ("self.d ** 0.5", "self.h ** 0.5"),
            "SD5": ("/ self.d ** 0.5", "* self.d ** 0.5"),
            "SM1": ("softmax(dim=2)", "softmax(dim=1)"),
            "MK1": ("torch.where(allowed,", "torch.where(~allowed,"),
            "MK3": ('float("-inf")', "0.0"),
            "MK2": (
                's = torch.where(allowed, s, float("-inf"))',
                "pass",
                "p = s.softmax(dim=2)",
                "p = s.softmax(dim=2) if mask is None else s.softmax(dim=2) * allowed",
            ),
        },
    ),
    "rnn_states": (
        RNN,
        {
            "AB1": ("torch.matmul(h, w_h)", "torch.matmul(w_h, h.T).T"),
            "RN7": ("torch.stack(out, 1)", "torch.stack(out, 0)"),
            "RN9": (" + b\n", "\n"),
            "RN10": ("torch.tanh(now", "(now"),
            "RN14": ("torch.matmul(h, w_h)", "torch.matmul(h.detach(), w_h)"),
            "RN11": (
                "        h = torch.tanh(now + torch.matmul(h, w_h))\n        out.append(h)",
                "        out.append(h)\n        h = torch.tanh(now + torch.matmul(h, w_h))",
            ),
        },
    ),
    "additive_attention": (
        ADDITIVE,
        {
            "LG2": ("torch.tanh(asked.unsqueeze(1) + known)", "asked.unsqueeze(1) + known"),
            "SM2": ("s.amax(dim=1", "s.amax(dim=0", "e.sum(dim=1", "e.sum(dim=0"),
            "SM5": ("s - s.amax(dim=1, keepdim=True)", "s"),
            "SM6": ("s.amax(dim=1, keepdim=True)", "s.max()"),
            "AL1": ("torch.tanh(asked.unsqueeze(1) + known)", "asked.unsqueeze(1) + torch.tanh(known)"),
            "AL2": ("asked.unsqueeze(1) + known", "asked.unsqueeze(1) * known"),
            "AL4": ("bent, v)", "bent, v) / len(v) ** 0.5"),
            "AL7": ('"bt,bth->bh", p, keys', '"bt,bth->bh", p, known'),
            "AB20": ("p = e / e.sum(dim=1, keepdim=True)", "p = s"),
            "NT8": ("return torch", "return p, torch", ", keys), p", ", keys)"),
        },
    ),
    "luong_attention": (
        LUONG,
        {
            "SM2": ("s.amax(dim=1", "s.amax(dim=0", "e.sum(dim=1", "e.sum(dim=0"),
            "SM5": ("s - s.amax(dim=1, keepdim=True)", "s"),
            "SM6": ("s.amax(dim=1, keepdim=True)", "s.max()"),
            "AL4": ("query, w, keys)", "query, w, keys) * w.shape[0] ** -0.5"),
            "AB20": ("p = e / e.sum(dim=1, keepdim=True)", "p = s"),
            "AL16": ("query, w, keys)", "query, w, keys).tanh()"),
            "NT8": ("return (p.", "return p, (p.", ".sum(dim=1), p", ".sum(dim=1)"),
            "BW3": ("p = e / e.sum(dim=1, keepdim=True)", "p = (e / e.sum(dim=1, keepdim=True)).data"),
            "NT7": ("dim=1), p", "dim=1), p.detach()"),
        },
    ),
    "layer_norm": (LAYER_NORM, {}),
    "CausalMultiHeadAttention": (
        CAUSAL_HEADS,
        {
            "SD1": (" / self.d ** 0.5", ""),
            "SD2": ("self.d ** 0.5", "self.d"),
            "SD3": ("self.d ** 0.5", "C ** 0.5"),
            "SD4": ("self.d ** 0.5", "self.h ** 0.5"),
            "SM1": ("dim=3), self.p", "dim=2), self.p"),
            "MK1": ("at[None, :] <= at[:, None]", "at[None, :] > at[:, None]"),
            "MK3": ('float("-inf")', "0.0"),
            "MK8": ("at[None, :] <= at[:, None]", "at[None, :] <= at[:, None] + 1"),
            "MH2": (".permute(0, 2, 1, 3).reshape(B, T, C)", ".reshape(B, T, C)"),
            "MH5": ("self.p, self.training", "self.p, True"),
            "MH1": ("view(B, T, self.h, self.d).permute(0, 2, 1, 3)", "reshape(B, self.h, T, self.d)"),
        },
    ),
    "grouped_query_attention": (
        GROUPED,
        {
            "GQ1": ("g = h // (H // n)", "g = h % n"),
            "GH2": ("g = h // (H // n)", "g = h // n % n"),
            "GH3": ("g = h // (H // n)", "g = 0"),
            "GH6": ("if causal:", "if causal and T == S:"),
            "GH8": ("if causal:", "if 1:"),
            "MK13": ("if causal:", "if not q.numel():"),
            "MK14": (" + (S - T)", ""),
            "MK7": ("<= at", "< at"),
            "MK8": ("<= at", "<= at + 1"),
            "MK1": ("<= at", "> at"),
            "MK3": ('float("-inf")', "0.0"),
            "MK4": ('float("-inf")', "-1e4"),
            "SD1": (" * d ** -0.5", ""),
            "SD2": ("d ** -0.5", "d ** -1"),
            "SD5": ("d ** -0.5", "d ** 0.5"),
            "SD4": ("d ** -0.5", "H ** -0.5"),
            "SM5": ("torch.exp(s - s.amax(2, keepdim=True))", "torch.exp(s)"),
            "SM1": ("e.sum(2, keepdim=True), v", "e.sum(1, keepdim=True), v", "s.amax(2", "s.amax(1"),
            "BW3": ("torch.exp(s - s", "torch.exp(s.data - s.data"),
        },
    ),
    "window_mask": (
        WINDOW,
        {
            "SW1": ("< window", "<= window"),
            "MK14": ("p = i + t_k - t_q", "p = i"),
            "WM15": ("i + t_k - t_q", "i + t_q - t_k"),
            "WM3": ("j <= p and ", ""),
            "WM4": ("(p - j < window or j < sinks)", "p - j < window or j < sinks"),
            "WM5": (" or j < sinks", ""),
            "WM7": ("< window", "< window - sinks"),
            "WM9": ("j < sinks", "j >= t_k - sinks"),
            "MK1": (
                "[j <= p and (p - j < window or j < sinks) for",
                "[not (j <= p and (p - j < window or j < sinks)) for",
            ),
            "MA2": ("torch.tensor(rows)", "torch.tensor(rows).long()"),
        },
    ),
    "KVCache": (
        CACHE,
        {
            "KC2": ("self.used = last", "pass"),
            "KC4": ("self.both[0, :, :, :last], self.both[1, :, :, :last]", "self.both[0], self.both[1]"),
            "KC6": ("last > self.most", "last >= self.most"),
            "KC10": ("enumerate((k, v))", "enumerate((v, k))"),
            "KC11": ("dtype=dtype, ", ""),
            "KC13": ("return self.used", "return self.most"),
            "KC18": (
                "self.both[half, :, :, self",
                "self.both[0, :, :, self",
                "self.both[1, :, :, :last]",
                "self.both[0, :, :, :last]",
            ),
            "KC7": (
                "        last = self.used + k.size(2)\n",
                "        last = self.used = self.used + k.size(2)\n",
                "self.used:last]",
                "last - k.size(2):last]",
                "        self.used = last\n",
                "",
            ),
        },
    ),
    "generate_cached": (
        CACHED,
        {
            "GC1": ("model(fresh,", "model(torch.cat(columns, 1),"),
            "CM50": ("[:, -1:]", "[:, :1]"),
            "CM43": ("torch.no_grad()", "torch.enable_grad()"),
            "GC13": ("<= max_new", "<= 1 + max_new"),
            "CM54": ("cat(columns, 1)", "cat(columns[1:] or [ids[:, :0]], 1)"),
            "GC17": ("argmax(2)", "argmin(2)"),
        },
    ),
}
