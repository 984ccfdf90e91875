"""The commonest errors of beginners: (exercise, cell, words that the verdict must say, words that it must not say)."""

SAID = [
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    e / e.sum(axis=1, keepdims=True)
""",
        ("softmax_rows has no `return`",),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    print(e / e.sum(axis=1, keepdims=True))
""",
        ("prints its result", "in place of `print`"),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    out = np.zeros(scores.shape)
    for i, row in enumerate(scores):
        e = np.exp(row - row.max())
        out[i] = e / e.sum()
        return out
""",
        ("`return` stands inside the loop (line 7 of its cell)",),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    rows = []
    for row in scores:
        e = np.exp(row - row.max())
        rows.append(e / e.sum())
    return rows
""",
        ("`np.array(rows)` makes one",),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    return np.array([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]])
""",
        ("The same numbers come back, whatever the inputs are",),
        (),
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    e = torch.exp(scores - scores.max(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return weights @ v, weights
""",
        ("`.max` along an axis gives two things", ".values"),
        ("keepdims",),
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    weights = torch.tensor(np.exp(scores.numpy()))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v, weights
""",
        ("`np.exp` is a NumPy function", "which also keep the graph for gradients"),
        ("detach()` gives",),
    ),
    (
        "split_heads",
        """
def split_heads(x, num_heads):
    b, t, d = x.shape
    d_head = d / num_heads
    return x.view(b, t, num_heads, d_head).transpose(1, 2)
""",
        ("`d_head` is the float", "`//` gives a whole number"),
        ("keepdims",),
    ),
    (
        "sinusoidal_positions",
        """
def sinusoidal_positions(n_positions, d_model, base=10000.0):
    i = torch.arange(d_model // 2)
    angles = torch.arange(n_positions)[:, None] / base ^ (2 * i / d_model)
    out = torch.zeros(n_positions, d_model)
    out[:, 0::2], out[:, 1::2] = torch.sin(angles), torch.cos(angles)
    return out
""",
        ("`^` is the bitwise 'exclusive or'", "`**`"),
        ("keepdims",),
    ),
    (
        "soft_lookup",
        """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    weights = fits / fits.sum()
    answer = weights * values
    return answer.sum(axis=0)
""",
        ("shapes (3,) and (3, 4) do not fit so", "`weights @ values` multiplies row i by entry i and adds up the rows"),
        (),
    ),
    (
        "attention_scores",
        """
def attention_scores(Q, K):
    return Q * K.T
""",
        ("the matrix product is written `@`",),
        ("keepdims",),
    ),
    (
        "attention_scores",
        """
def attention_scores(Q, K):
    return (Q * K).sum(axis=1)
""",
        ("all rows times all rows is the matrix product `Q @ K.T`",),
        ("keepdims",),
    ),
    (
        "apply_rope",
        """
def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    w = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions[None] * w[:, None]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
""",
        ("one of the two is transposed, or the matrix product is meant",),
        ("keepdims",),
    ),
    (
        "sinusoidal_positions",
        """
def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    pe = torch.zeros(n_positions, d_model)
    for i in range(d_model / 2):
        pe[:, 2 * i] = torch.sin(torch.arange(n_positions) / base ** (2 * i / d_model))
        pe[:, 2 * i + 1] = torch.cos(torch.arange(n_positions) / base ** (2 * i / d_model))
    return pe
""",
        ("A length or an index must be a whole number: `/` always gives a float",),
        ("is the float",),
    ),
    (
        "sinusoidal_positions",
        """
def sinusoidal_positions(n_positions, d_model, base=10000.0):
    pe = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            angle = pos / base ** (i / d_model)
            pe[pos, i] = math.sin(angle)
            pe[pos, i + 1] = math.cos(angle)
    return pe
""",
        ("Invalid input raised the wrong exception",),
        ("whole number", "float"),
    ),
    (
        "sinusoidal_positions",
        """
def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    pe = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            angle = pos / base ** (i / d_model)
            pe[pos, i] = torch.sin(angle)
            pe[pos, i + 1] = torch.cos(angle)
    return pe
""",
        ("here one is given a number of Python's",),
        ("whole number",),
    ),
    (
        "causal_mask",
        """
def causal_mask(t_q, t_k=None):
    return np.tril(np.ones((t_q, t_q), dtype=bool))
""",
        ("`np.tril` is a NumPy function",),
        ("gradients",),
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    exps = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    exps /= exps.sum(-1, keepdim=True)
    return exps @ v, exps
""",
        ("what was there before `exps /= exps.sum(-1, keepdim=True)` (line 4 of its cell) changed it in place",),
        ("keepdims",),
    ),
    (
        "split_heads",
        """
def split_heads(x, num_heads):
    b, t, d = x.shape
    assert d % num_heads == 0
    return x.view(b, t, num_heads, d // num_heads).transpose(1, 2)
""",
        (
            "should raise ValueError here, but it raised AssertionError",
            "`assert` raises AssertionError",
            "raise ValueError(…)",
        ),
        (),
    ),
    (
        "SelfAttention",
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        w_q = nn.Linear(x.shape[-1], self.w_q.weight.shape[0], bias=False)
        q, k, v = w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights
""",
        ("`forward` makes a new `nn.Linear` at each call",),
        (),
    ),
    (
        "SelfAttention",
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.layers = {name: nn.Linear(d_model, d, bias=False) for name, d in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v))}

    def __getattr__(self, name):
        layers = self.__dict__.get("layers", {})
        return layers[name] if name in layers else super().__getattr__(name)

    def forward(self, x):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights
""",
        ("`self.layers` keeps layers in a plain list or dict", "nn.ModuleList"),
        ("Two precisions meet",),
    ),
    (
        "softmax_rows",
        "softmax_rows = np.ones((2, 3))",
        ("is now the name of a value of type ndarray, which cannot be called",),
        ("TypeError", "parameters"),
    ),
    (
        "CausalSelfAttention",
        """
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.max_len = max_len
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x):
        t = x.shape[-2]
        if t > self.max_len:
            raise ValueError("too long")
        if len(self.mask) != t:
            self.mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(~self.mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
""",
        ("a buffer holds the mask for max_len tokens",),
        ("not: the mask is a buffer",),
    ),
    (
        "three_token_attention",
        """
def three_token_attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(K.shape[1])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return weights, weights @ V
""",
        (),
        ("keepdims", "transposed"),
    ),
    (
        "project_qkv",
        """
def project_qkv(x, w_q, w_k, w_v):
    return x @ w_v, x @ w_q, x @ w_k
""",
        ("(v, q, k) is returned; expected (q, k, v)",),
        ("keepdims",),
    ),
    (
        "weighted_sum",
        """
def weighted_sum(weights, V):
    return (weights @ V).T
""",
        ("Two axes of the result are exchanged",),
        (),
    ),
    (
        "generate",
        """
@torch.no_grad()
def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
    was = model.training
    model.eval()
    for _ in range(max_new_tokens):
        logits = model(ids[:, -max_len:])[:, -1]
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(logits / temperature, 1, generator=generator)
        ids = torch.cat([ids, new], dim=1)
    model.train(was)
    return ids
""",
        ("`torch.multinomial` draws from probabilities", "softmax"),
        (),
    ),
    (
        "split_heads",
        """
def split_heads(x, num_heads):
    b, t, d = x.shape
    if d % num_heads or t % num_heads:
        raise ValueError("not divisible")
    return x.view(b, t, num_heads, d // num_heads).transpose(1, 2)
""",
        ("the answer's own `raise` refused it",),
        (),
    ),
    (
        "alibi_bias",
        """
def alibi_bias(num_heads, t):
    i = torch.arange(t)
    return [-(2 ** (-8 * (h + 1) / num_heads)) * (i - i[:, None]).abs() for h in range(num_heads)]
""",
        ("which is not a tensor: `torch.stack(rows)`",),
        (),
    ),
    (
        "alibi_bias",
        """
def alibi_bias(num_heads, t):
    slopes = torch.tensor([(-2.0) ** (-8 * (h + 0.3) / num_heads) for h in range(num_heads)])
    i = torch.arange(t)
    return -slopes[:, None, None] * (i - i[:, None]).abs()
""",
        ("expected a torch tensor of real numbers",),
        (),
    ),
    (
        "query_for",
        """
def query_for(keys, target, share):
    return 5.0 * keys[target]
""",
        ("Your query gives key",),
        ("never used",),
    ),
    (
        "query_for",
        """
def query_for(keys, target, share):
    return share * 1e5 * keys[0]
""",
        ("The parameter `target` is never used",),
        (),
    ),
    (
        "cross_entropy",
        """
def log_softmax(x, axis=-1):
    return x - np.logaddexp.reduce(x, axis=axis, keepdims=True)

def cross_entropy(scores, targets):
    return -np.take_along_axis(log_softmax(scores), np.expand_dims(targets, -1), -1)[..., 0]
""",
        ("`numpy.logaddexp` is a ready-made log-sum-exp", "It stands in `log_softmax`, which cross_entropy uses."),
        (),
    ),
    (
        "cross_entropy",
        """
def cross_entropy(scores, targets):
    return np.logaddexp.reduce(scores, axis=-1) - np.take_along_axis(scores, np.expand_dims(targets, -1), -1)[..., 0]
""",
        ("`numpy.logaddexp` is a ready-made log-sum-exp",),
        ("It stands in",),
    ),
    (
        "softmax",
        """
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-3)
""",
        ("a sum is 0.9",),
        (),
    ),
    (
        "hard_lookup",
        """
def hard_lookup(query, keys, values):
    print(values[np.argmax(keys @ query)])
""",
        ("prints its result",),
        ("HL",),
    ),
    # an exception in front of the answer's own `raise`, in its line, and one with the words of that `raise`
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    if scores == None: raise ValueError("no scores")
    return scores
""",
        ("`if` needs one True or False",),
        ("own `raise`",),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    if scores.empty: raise ValueError("no scores")
    return scores
""",
        ("has no attribute 'empty'",),
        ("own `raise`",),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    if len(scores): raise ValueError("no scores")
    return scores
""",
        ("the answer's own `raise` refused it",),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    if len(scores):
        raise ValueError("no scores" + 1)
    return scores
""",
        ("TypeError",),
        ("own `raise`",),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    return scores * float(input("by what? "))
""",
        ("`input()` waits for somebody to type",),
        ("loop",),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    return softmax_rows(scores - scores.max())
""",
        ("a recursion needs a case that returns without another call",),
        ("a loop",),
    ),
    (
        "scale_scores",
        """
def scale_scores(scores, d_k):
    return scores / sqrt(d_k)
""",
        ("write `np.sqrt`.",),
        ("math", "Cells run once"),
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    return q @ k.mT / sqrt(q.shape[-1])
""",
        ("write `torch.sqrt`, or for a single number `math.sqrt`.",),
        ("Cells run once",),
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    return scaled_dot_product_attention(q, k, v)
""",
        ("Cells run once",),
        ("write `torch",),
    ),
    *(
        (
            "softmax_rows",
            f"""
def softmax_rows(scores):
    e = np.exp(scores - {top})
    return e / e.sum(axis=1, keepdims=True)
""",
            ("In NumPy it is `axis=` and `keepdims=`",),
            ("What this line calls",),
        )
        for top in (
            "scores.max(dim=1, keepdims=True)",
            "np.max(scores, axis=1, keepdim=True)",
            "np.mean(scores, dim=1)",
        )
    ),
    (
        "attention_torch",
        """
def attention_torch(q, k, v):
    return torch.nn.functional.normalize(q, axis=1), q
""",
        ("In torch it is `dim=` and `keepdim=`",),
        ("What this line calls",),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1)
""",
        (
            "could not be broadcast",
            "SM4: The sums or the maxima lost their axis, so that they line up with the columns",
        ),
        ("were broadcast",),
    ),
    (
        "softmax_rows",
        """
def helper(scores):
    raise NotImplementedError

def softmax_rows(scores):
    return helper(scores)
""",
        ("calls `helper`, which is not written yet",),
        (),
    ),
    (
        "softmax_rows",
        """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asmatrix(e / e.sum(axis=1, keepdims=True))
""",
        ("The result is a NumPy matrix (`np.matrix`); expected a NumPy array",),
        (),
    ),
]
