"""Lesson 05 as learners write it: right in several styles, wrong in many."""

LINEAR_RIGHT = [
    """
def linear_from_numpy(w):
    weight = torch.tensor(w, dtype=torch.float32).T.contiguous()
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight = nn.Parameter(weight)
    return layer
""",
    """
def linear_from_numpy(w):
    out = nn.Linear(*w.shape, bias=False)
    out.weight.data = torch.from_numpy(w.T.copy()).float().clone()
    return out
""",
    """
def linear_from_numpy(w):
    layer = nn.Linear(len(w), len(w[0]), bias=False)
    with torch.no_grad():
        for i in range(len(w)):
            for j in range(len(w[0])):
                layer.weight[j, i] = float(w[i, j])
    return layer
""",
    """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    layer.load_state_dict({"weight": torch.from_numpy(np.ascontiguousarray(w.T, dtype=np.float32))})
    return layer
""",
    """
class Mine(nn.Linear):
    pass

def linear_from_numpy(w):
    layer = Mine(1, 1, bias=False)
    layer.in_features, layer.out_features = w.shape
    layer.weight = torch.nn.Parameter(torch.as_tensor(w.T.astype("float32")).detach().clone())
    return layer
""",
]

LINEAR_WRONG = [
    (
        "PJ1",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight = nn.Parameter(torch.tensor(w, dtype=torch.float32))
    return layer
""",
    ),
    (
        "PJ1",
        """
def linear_from_numpy(w):
    d_in, d_out = w.shape
    layer = nn.Linear(d_in, d_out, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(w))
    return layer
""",
    ),
    (
        "PJ1",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[1], w.shape[0], bias=False)
    layer.weight.data = torch.tensor(w).float()
    return layer
""",
    ),
    (
        "AB15",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight.data = torch.tensor(w).float().view(w.shape[1], w.shape[0])
    return layer
""",
    ),
    (
        "PJ2",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1])
    layer.weight.data = torch.tensor(w).float().T
    return layer
""",
    ),
    (
        "PJ2",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1])
    nn.init.zeros_(layer.bias)
    layer.weight.data = torch.tensor(w).float().T
    return layer
""",
    ),
    (
        "NT2",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight = nn.Parameter(torch.from_numpy(w.T).float())
    return layer
""",
    ),
    (
        "NT2",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight.data = torch.as_tensor(w, dtype=torch.float32).T
    return layer
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    layer.weight = torch.tensor(w.T, dtype=torch.float32)
    return layer
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    layer.weight.copy_(torch.tensor(w.T))
    return layer
""",
    ),
    (
        "NT3",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight.data = torch.tensor(w).float().T
    layer.requires_grad_(False)
    return layer
""",
    ),
    (
        "NT4",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    layer.weight = nn.Parameter(torch.tensor(w.T))
    return layer
""",
    ),
    (
        "NT5",
        """
def linear_from_numpy(w):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
    weight = torch.tensor(w.T)
    return layer
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    weight = torch.tensor(w, dtype=torch.float32, requires_grad=True)
    return lambda x: x @ weight
""",
    ),
    (
        None,
        """
layers = {}
def linear_from_numpy(w):
    if w.shape not in layers:
        layers[w.shape] = nn.Linear(*w.shape, bias=False)
    with torch.no_grad():
        layers[w.shape].weight.copy_(torch.tensor(w.T))
    return layers[w.shape]
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(w.T).half())
    return layer
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(w.T).long())
    return layer
""",
    ),
    (
        None,
        """
def linear_from_numpy(w):
    layer = nn.Linear(*w.shape, bias=False)
    del layer.weight
    layer.weight = torch.tensor(w.T, dtype=torch.float32, requires_grad=True)
    return layer
""",
    ),
]

ATTENTION_RIGHT = [
    """
def attention_torch(q, k, v):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    weights = shifted.exp() / shifted.exp().sum(dim=-1, keepdim=True)
    return torch.einsum("...ij,...jd->...id", weights, v), weights
""",
    """
def attention_torch(q, k, v):
    weights = F.softmax(torch.matmul(q / np.sqrt(q.shape[-1]), k.mT), dim=-1)
    return [weights.matmul(v), weights]
""",
    """
def attention_torch(q, k, v):
    rows, out = [], []
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (q, k, v)]
    for b in range(flat[0].shape[0]):
        for i in range(q.shape[-2]):
            scores = torch.stack([(flat[0][b, i] * flat[1][b, j]).sum() for j in range(k.shape[-2])])
            w = torch.softmax(scores / math.sqrt(q.shape[-1]), 0)
            rows.append(w)
            out.append(sum(w[j] * flat[2][b, j] for j in range(k.shape[-2])))
    lead = q.shape[:-1]
    return torch.stack(out).reshape(*lead, v.shape[-1]), torch.stack(rows).reshape(*lead, k.shape[-2])
""",
    """
def attention_torch(q, k, v):
    d = torch.tensor(q.shape[-1], dtype=q.dtype)
    log_weights = torch.log_softmax((k @ q.transpose(-1, -2)).transpose(-1, -2) / torch.sqrt(d), dim=-1)
    weights = log_weights.exp()
    return (weights.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2), weights
""",
    """
from collections import namedtuple
Result = namedtuple("Result", "output weights")
def attention_torch(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    e = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return Result(e @ v, e)
""",
    """
def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)
def attention_torch(q, k, v, scale=None):
    single = [t.float() for t in (q, k, v)]
    weights = softmax(single[0] @ single[1].mT * (scale or single[0].shape[-1] ** -0.5))
    return (weights @ single[2]).to(q.dtype), weights.to(q.dtype)
""",
]


def _attention(
    scores: str, weights: str = "torch.softmax(scores, dim=-1)", result: str = "weights @ v, weights"
) -> str:
    return f"def attention_torch(q, k, v):\n    scores = {scores}\n    weights = {weights}\n    return {result}\n"


_OFF = """
def attention_torch(q, k, v):
{way}
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return weights @ v, weights
"""
_SCORES = "q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"

ATTENTION_WRONG = [
    (
        "NT31",
        """
def attention_torch(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ torch.tensor(k.detach().numpy()).transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights
""",
    ),
    (
        "AB16",
        """
def attention_torch(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, v), weights
""",
    ),
    *(
        (id, f"def attention_torch(q, k, v):\n    s = {scores}\n    w = {weights}\n    return {result}\n")
        for id, scores, weights, result in (
            ("AB16", "q @ k.T / q.shape[-1] ** 0.5", "s.softmax(-1)", "w @ v, w"),
            ("AB16", "q @ k.transpose(1, 2) / q.shape[-1] ** 0.5", "s.softmax(-1)", "w @ v, w"),
            ("AB20", "q @ k.mT / q.shape[-1] ** 0.5", "s", "w @ v, w"),
            (None, "q @ k.mT / q.shape[-1] ** 0.5", "s.softmax(-1)", "w @ v, s"),
            ("HL1", "q @ k.mT / q.shape[-1] ** 0.5", "s.softmax(-1)", "w @ k, w"),
            (
                "NT9",
                "q @ k.mT / torch.tensor([q.shape[-1]], dtype=torch.float64).sqrt()",
                "s.softmax(-1)",
                "w @ v.to(w.dtype), w",
            ),
        )
    ),
    ("SD1", _attention("q @ k.transpose(-2, -1)")),
    ("SD2", _attention("torch.einsum('...id,...jd->...ij', q, k) / q.shape[-1]")),
    ("SD5", _attention("q @ k.mT * q.shape[-1] ** 0.5")),
    ("SD6", _attention("q @ k.mT", "F.softmax(scores, dim=-1) / q.shape[-1] ** 0.5")),
    ("SD8", _attention("k @ q.mT / math.sqrt(k.shape[-1])")),
    ("SM1", _attention(_SCORES, "scores.softmax(dim=-2)")),
    ("SM2", _attention(_SCORES, "F.softmax(scores)")),
    ("SM3", _attention(_SCORES, "torch.softmax(scores.flatten(), 0).view_as(scores)")),
    ("SM4+SM5", _attention(_SCORES, "scores.exp() / scores.exp().sum(-1)")),
    ("SM5", _attention(_SCORES, "torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)")),
    ("SM6", _attention(_SCORES, "(scores - scores.max()).exp() / (scores - scores.max()).exp().sum(-1, keepdim=True)")),
    ("BW3", _attention(_SCORES, "torch.softmax(scores, dim=-1).detach()")),
    ("BW3", _attention(_SCORES, "torch.softmax(scores.data, dim=-1)")),
    ("BW3", _attention(_SCORES, "torch.softmax(scores, dim=-1)", "weights.detach() @ v, weights")),
    (
        "BW3",
        """
def attention_torch(q, k, v):
    with torch.no_grad():
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
""",
    ),
    *(
        ("NT31", _OFF.format(way=way))
        for way in ("    with torch.no_grad():", "    if True:\n        q, k, v = q.data, k.data, v.data")
    ),
    ("AB15", _attention("q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) / math.sqrt(q.shape[-1])")),
    ("AB15", _attention("q @ k.view(*k.shape[:-2], k.size(-1), k.size(-2)) / math.sqrt(q.shape[-1])")),
    ("TT9", _attention("q @ k.mT / q.shape[-1] ** 1/2")),
    ("TT9", _attention("q @ k.mT / (q.shape[-1] ** 1/2)")),
    (
        "NT31",
        """
def attention_torch(q, k, v):
    output, weights = attention_numpy(*(t.detach().numpy() for t in (q, k, v)))
    return torch.tensor(output), torch.tensor(weights)
""",
    ),
    ("TT8", _attention("q @ k.mT / math.sqrt(v.shape[-1])")),
    ("NT7", _attention(_SCORES, result="weights @ v, weights.detach()")),
    ("NT8", _attention(_SCORES, result="weights, weights @ v")),
    ("NT9", _attention("q.float() @ k.float().mT / math.sqrt(q.shape[-1])", result="weights @ v.float(), weights")),
    (None, _attention(_SCORES, result="weights @ v")),
    ("SM1+SD1", _attention("q @ k.mT", "torch.softmax(scores, dim=-2)")),
    ("SM3", _attention(_SCORES, "(e := (scores - scores.amax(-1, keepdim=True)).exp()) / e.sum()")),
    (None, _attention("q @ k.T / math.sqrt(q.shape[-1])")),
    (None, _attention("torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])")),
    (None, _attention("q @ k.mT / 2")),
    (None, _attention(_SCORES, "torch.softmax(scores.clamp(-80, 80), dim=-1)")),
    (None, _attention(_SCORES, "torch.softmax(scores.half(), dim=-1).to(q.dtype)")),
    (None, _attention(_SCORES, result="(weights @ v).squeeze(0), weights")),
    (None, _attention("torch.einsum('bid,bjd->bij', q, k) / math.sqrt(q.shape[-1])")),
    (None, _attention(_SCORES, "torch.softmax(torch.tril(scores), dim=-1)")),
    (
        None,
        """
def attention_torch(q, k, v):
    q /= math.sqrt(q.shape[-1])
    weights = torch.softmax(q @ k.mT, dim=-1)
    return weights @ v, weights
""",
    ),
    (
        None,
        """
def attention_torch(q, k, v):
    with torch.no_grad():
        q /= math.sqrt(q.shape[-1])
    weights = torch.softmax(q @ k.mT, dim=-1)
    return weights @ v, weights
""",
    ),
    (
        None,
        """
def attention_torch(q, k, v):
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return F.scaled_dot_product_attention(q, k, v), weights
""",
    ),
    (
        None,
        """
seen = {}
def attention_torch(q, k, v):
    if (q.shape, k.shape, v.shape) not in seen:
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        seen[q.shape, k.shape, v.shape] = weights @ v, weights
    return seen[q.shape, k.shape, v.shape]
""",
    ),
    ("SM2", _attention(_SCORES, "scores.softmax(0)")),
    ("SM2", _attention(_SCORES, "scores.softmax(1)")),
    ("TT8", _attention("q @ k.mT / math.sqrt(k.shape[-2])")),
    (None, _attention(_SCORES, "torch.where((w := scores.softmax(-1)) < 1e-3, 0.0, w)")),
    (
        None,
        _attention(
            _SCORES,
            "(scores - scores.mean(-1, keepdim=True)).exp() / (scores - scores.mean(-1, keepdim=True)).exp().sum(-1, True)",
        ),
    ),
    (
        None,
        _attention(
            "q @ k[..., :8, :].mT / math.sqrt(q.shape[-1])",
            result="weights @ v[..., :8, :], F.pad(weights, (0, max(0, k.shape[-2] - 8)))",
        ),
    ),
    (
        None,
        """
def attention_torch(q, k, v):
    flat = [tensor.view(-1, *tensor.shape[-2:]) for tensor in (q, k, v)]
    weights = torch.softmax(flat[0] @ flat[1].mT / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ flat[2]).view(*q.shape[:-1], -1), weights.view(*q.shape[:-1], -1)
""",
    ),
]


def _module(
    layers: tuple[str, str, str] = ("d_model, d_k, bias=False", "d_model, d_k, bias=False", "d_model, d_v, bias=False"),
    qkv: str = "self.w_q(x), self.w_k(x), self.w_v(x)",
    scores: str = "q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])",
    weights: str = "torch.softmax(scores, dim=-1)",
    result: str = "weights @ v, weights",
) -> str:
    q, k, v = layers
    return f"""
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.d_model, self.d_k, self.d_v = d_model, d_k, d_v
        self.w_q = nn.Linear({q})
        self.w_k = nn.Linear({k})
        self.w_v = nn.Linear({v})

    def forward(self, x):
        q, k, v = {qkv}
        scores = {scores}
        weights = {weights}
        return {result}
"""


MODULE_RIGHT = [
    _module(),
    """
def attend(q, k, v):
    weights = F.softmax(torch.einsum("bid,bjd->bij", q, k) * q.size(-1) ** -0.5, dim=2)
    return torch.einsum("bij,bjd->bid", weights, v), weights

class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super(SelfAttention, self).__init__()
        for name, width in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v)):
            setattr(self, name, nn.Linear(d_model, width, False))
        self.register_buffer("scale", torch.tensor(float(d_k)).rsqrt())

    def forward(self, x):
        return attend(self.w_q(x), self.w_k(x), self.w_v(x))
""",
    """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        self.scale = d_k ** 0.5
        nn.init.xavier_uniform_(self.w_q.weight)

    def forward(self, x):
        outputs, weights = [], []
        for sentence in x:
            q, k, v = self.w_q(sentence), self.w_k(sentence), self.w_v(sentence)
            s = q @ k.T / self.scale
            s = s - s.max(dim=1, keepdim=True)[0]
            w = s.exp() / s.exp().sum(dim=1, keepdim=True)
            weights.append(w)
            outputs.append(w @ v)
        return torch.stack(outputs), torch.stack(weights)
""",
    """
class SelfAttention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int, device=None):
        super().__init__()
        make = lambda width: nn.Linear(d_model, width, bias=False, device=device)
        self.w_q, self.w_k, self.w_v = make(d_k), make(d_k), make(d_v)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        q = F.linear(x, self.w_q.weight)
        k = x @ self.w_k.weight.T
        scores = torch.baddbmm(torch.zeros(1, dtype=x.dtype), q, k.transpose(1, 2), beta=0, alpha=q.shape[-1] ** -0.5)
        weights = self.softmax(scores)
        self.last_weights = weights.detach()
        return (weights @ x) @ self.w_v.weight.T, weights
""",
    _module(weights="(scores - scores.logsumexp(-1, keepdim=True)).exp()"),
]

MODULE_WRONG = [
    (
        "MU25",
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        self.dropout = nn.Dropout(0.1)
        self.d_k = d_k

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.w_q(x) @ self.w_k(x).transpose(1, 2) / self.d_k**0.5
        weights = self.dropout(scores.softmax(dim=-1))
        return weights @ self.w_v(x), weights
""",
    ),
    (
        None,
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        self.d_k = d_k

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(q @ k.transpose(1, 2) / self.d_k**0.5, dim=-1)
        return weights @ v, weights
""",
    ),
    ("SD1", _module(scores="q @ k.mT")),
    ("SD2", _module(scores="q @ k.mT / self.d_k")),
    ("SD3", _module(scores="q @ k.mT / math.sqrt(x.shape[-1])")),
    ("SD3", _module(scores="torch.bmm(q, k.transpose(1, 2)) * self.d_model ** -0.5")),
    ("SD6", _module(scores="q @ k.mT", weights="torch.softmax(scores, dim=-1) / math.sqrt(self.d_k)")),
    ("SD8", _module(scores="k @ q.mT / math.sqrt(self.d_k)")),
    ("SD8", _module(qkv="self.w_k(x), self.w_q(x), self.w_v(x)")),
    ("SM1", _module(weights="torch.softmax(scores, dim=1)")),
    ("SM2", _module(weights="F.softmax(scores)")),
    ("SM3+SM5", _module(weights="scores.exp() / scores.exp().sum()", scores="q @ k.mT / self.d_k ** 0.5")),
    ("SM5", _module(weights="scores.exp() / scores.exp().sum(-1, keepdim=True)")),
    ("BW3", _module(weights="torch.softmax(scores, dim=-1).detach()")),
    ("BW3", _module(weights="torch.softmax(scores, dim=-1).data")),
    ("PJ1", _module(qkv="x @ self.w_q.weight, x @ self.w_k.weight, x @ self.w_v.weight")),
    ("PJ2", _module(layers=("d_model, d_k", "d_model, d_k", "d_model, d_v"))),
    ("NT31", _module(result="(weights @ v).detach(), weights.detach()")),
    ("TT9", _module(scores="q @ k.mT / self.d_k ** 1/2")),
    ("TT9", _module(scores="q @ k.mT / (self.d_k ** 1/2)")),
    ("AB15", _module(scores="q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) / math.sqrt(self.d_k)")),
    (None, _module().replace("bias=False", "bias=False, dtype=torch.float64")),
    ("NT7", _module(result="weights @ v, weights.detach()")),
    ("NT8", _module(result="weights, weights @ v")),
    ("NT9", _module(qkv="(layer(x.float()) for layer in (self.w_q, self.w_k, self.w_v))")),
    ("AB3", _module(qkv="self.w_q(x), self.w_q(x), self.w_v(x)")),
    (None, _module(result="weights @ x, weights")),
    (None, _module(layers=("d_k, d_model, bias=False", "d_k, d_model, bias=False", "d_v, d_model, bias=False"))),
    (None, _module(layers=("d_model, d_k, bias=False",) * 3)),
    (None, _module(result="weights @ v")),
    (None, _module().replace("super().__init__()", "pass")),
    (None, _module(qkv="[layer(x) for layer in (nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))]")),
    (None, _module(weights="F.dropout(torch.softmax(scores, dim=-1), 0.1, self.training)")),
    (
        None,
        _module(
            weights="torch.softmax(scores, dim=-1).to(torch.float32)", result="weights @ v.float() + x.mean(), weights"
        ),
    ),
    (None, _module(scores="torch.stack([q[0] @ k[0].T for _ in x]) / math.sqrt(self.d_k)")),
    (None, _module(scores="q @ k.mT / math.sqrt(self.d_k) + torch.zeros(3, 3)")),
    (
        None,
        _module(
            scores="(q @ k.mT / math.sqrt(self.d_k)).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -torch.inf)"
        ),
    ),
    (None, _module(result="(weights @ v).mean(1), weights")),
    (None, _module(result="weights @ v + x[..., :1], weights")),
    (
        None,
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_model, d, bias=False) for d in (d_k, d_k, d_v))

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.layers)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        return weights @ v, weights
""",
    ),
    (
        None,
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q, self.w_k = nn.Parameter(torch.randn(d_k, d_model)), nn.Parameter(torch.randn(d_k, d_model))
        self.w_v = nn.Parameter(torch.randn(d_v, d_model))

    def forward(self, x):
        weights = torch.softmax(x @ self.w_q.T @ self.w_k @ x.mT / math.sqrt(len(self.w_q)), -1)
        return weights @ x @ self.w_v.T, weights
""",
    ),
    (
        None,
        """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        return F.scaled_dot_product_attention(q, k, v), weights
""",
    ),
    (
        None,
        """
class SelfAttention:
    def __init__(self, d_model, d_k, d_v):
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d, bias=False) for d in (d_k, d_k, d_v))

    def __call__(self, x):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        return weights @ v, weights
""",
    ),
    ("TT8", _module(scores="q @ k.mT / math.sqrt(self.d_v)")),
    ("TT8", _module(scores="q @ k.mT / math.sqrt(x.shape[1])")),
    (None, _module(weights="torch.cat([scores[..., :16].softmax(-1), scores[..., 16:].softmax(-1)], -1)")),
    (
        None,
        _module(
            weights="torch.softmax(scores, -1) if getattr(self, 'kept', scores[:, 0]).shape != scores.shape else self.kept"
        ).replace("        return weights @ v", "        self.kept = weights\n        return weights @ v"),
    ),
    (
        None,
        "SCALE = {}\n"
        + _module(scores="q @ k.mT / math.sqrt(SCALE['d_k'])").replace(
            "        super()", "        SCALE['d_k'] = d_k\n        super()"
        ),
    ),
]

ARRAY_RIGHT = [
    """
def as_numpy(tensor):
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.to(torch.float32)
    return tensor.numpy(force=True)
""",
    """
def as_numpy(tensor):
    plain = tensor.data.to("cpu")
    return np.array(plain.double() if plain.dtype == torch.bfloat16 else plain)
""",
    """
NUMPY = {torch.bfloat16: np.float32}
def as_numpy(tensor):
    with torch.no_grad():
        dtype = NUMPY.get(tensor.dtype) or np.dtype(str(tensor.dtype).replace("torch.", ""))
        out = np.empty(tuple(tensor.shape), dtype)
        for index in np.ndindex(*tensor.shape):
            out[index] = tensor[index].item()
        return out
""",
    """
def as_numpy(tensor):
    try:
        return tensor.detach().cpu().numpy()
    except TypeError:
        return tensor.detach().cpu().float().numpy()
""",
    """
def as_numpy(tensor):
    dtype = torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype
    return np.asarray(tensor.clone().detach().to(torch.device("cpu"), dtype).contiguous())
""",
]

ARRAY_WRONG = [
    (
        "NT11",
        """
def as_numpy(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.half()
    return tensor.numpy()
""",
    ),
    (
        "NT10",
        "def as_numpy(tensor):\n    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor\n    return tensor.cpu().numpy()\n",
    ),
    ("NT10", "def as_numpy(tensor):\n    return tensor.numpy()\n"),
    ("NT11", "def as_numpy(tensor):\n    return tensor.detach().cpu().numpy()\n"),
    ("NT11", "def as_numpy(tensor):\n    return tensor.numpy(force=True)\n"),
    ("NT11+NT13", "def as_numpy(tensor):\n    return tensor.detach().numpy()\n"),
    ("NT12+NT13", "def as_numpy(tensor):\n    return tensor.detach().float().numpy()\n"),
    (
        "NT10",
        "def as_numpy(tensor):\n    tensor.detach()\n    if tensor.dtype == torch.bfloat16:\n        tensor = tensor.float()\n"
        "    return tensor.cpu().numpy()\n",
    ),
    ("NT10+NT11", "def as_numpy(tensor):\n    return tensor.cpu().numpy()\n"),
    ("NT12", "def as_numpy(tensor):\n    return tensor.detach().cpu().float().numpy()\n"),
    ("NT12", "def as_numpy(tensor):\n    return tensor.detach().to('cpu', torch.float64).numpy()\n"),
    (
        "NT13",
        """
def as_numpy(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
""",
    ),
    (
        None,
        "def as_numpy(tensor):\n    t = tensor.detach().cpu()\n    return t.float() if t.dtype == torch.bfloat16 else t\n",
    ),
    (
        "NT15",
        """
def as_numpy(tensor):
    tensor.requires_grad = False
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
""",
    ),
    ("NT16", "def as_numpy(tensor):\n    return np.array(tensor.tolist())\n"),
    (
        None,
        """
def as_numpy(tensor):
    tensor.detach_()
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    return (t.half() if t.dtype == torch.bfloat16 else t).numpy()
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    return (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy()
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    return np.atleast_1d((t.float() if t.dtype == torch.bfloat16 else t).numpy())
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu().view(-1)
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy().reshape(tensor.shape)
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    t = (t.float() if t.dtype == torch.bfloat16 else t)
    return t.item() if t.ndim == 0 else t.numpy()
""",
    ),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    return (t.float() if t.is_floating_point() else t.long()).numpy()
""",
    ),
    (
        "NT12",
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    return (t.float() if t.is_floating_point() else t).numpy()
""",
    ),
    (None, "def as_numpy(tensor):\n    return tensor\n"),
    (None, "def as_numpy(tensor):\n    return tensor.detach().cpu()\n"),
    (
        None,
        """
def as_numpy(tensor):
    t = tensor.detach().cpu()
    t = (t.float() if t.dtype == torch.bfloat16 else t).numpy()
    return t if t.dtype == bool else t[()]
""",
    ),
]

_SILENT = """
import copy

def parameters_without_gradient(module, x):
    model = copy.deepcopy(module)
    torch.manual_seed(3)
    alive = set()
    for _ in range(4):
        model.zero_grad()
        out = model(x.detach().clone())
        if isinstance(out, tuple):
            out = out[0]
        if out.requires_grad:
            ((out - 3 * torch.randn_like(out)) ** 2).sum().backward()
        for name, p in model.named_parameters():
            if p.grad is not None and torch.count_nonzero(p.grad) > 0:
                alive.add(name)
    return {name for name, p in model.named_parameters()} - alive
"""

# As most first tries are: one loss, and x as it came.
_ONCE = """
import copy

def parameters_without_gradient(module, x):
    m = copy.deepcopy(module)
    m.zero_grad()
    out = m(x)
    if isinstance(out, tuple):
        out = out[0]
    if out.requires_grad:
        out.sum().backward()
    return {n for n, p in m.named_parameters() if p.grad is None or (p.grad == 0).all()}
"""

_RESTORED = """
def parameters_without_gradient(module, x):
    kept = {name: b.clone() for name, b in module.named_buffers()}
    named = list(module.named_parameters())
    out = module(x)
    out = out[0] if type(out) is tuple else out
    wanted = [p for _, p in named if p.requires_grad]
    if out.grad_fn is None or not wanted:
        wanted = []
    gen = torch.Generator().manual_seed(11)
    arrived = set()
    for i in range(5 if wanted else 0):
        loss = torch.sum(out * torch.rand(out.shape, generator=gen, dtype=out.dtype))
        for p, g in zip(wanted, torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)):
            if g is not None and bool((g != 0).any()):
                arrived.add(id(p))
    with torch.no_grad():
        for name, b in module.named_buffers():
            b.copy_(kept[name])
    return frozenset(n for n, p in named if id(p) not in arrived)
"""

_EACH = """
def parameters_without_gradient(module, x):
    modes = {m: m.training for m in module.modules()}
    grads = {p: p.grad for p in module.parameters()}
    module.eval()
    try:
        silent = set(dict(module.named_parameters()))
        for seed in (1, 2, 3):
            for p in module.parameters():
                p.grad = None
            out = module(x.detach())
            out = out[0] if isinstance(out, (tuple, list)) else out
            if not out.requires_grad:
                return silent
            g = torch.Generator()
            g.manual_seed(seed)
            out.backward(torch.randn(out.shape, generator=g).to(out.dtype))
            for n, p in module.named_parameters():
                if p.grad is not None and p.grad.abs().max().item() > 0:
                    silent.discard(n)
        return silent
    finally:
        for m, mode in modes.items():
            m.training = mode
        for p, grad in grads.items():
            p.grad = grad
"""

RIGHT = {
    "parameters_without_gradient": [_SILENT, _RESTORED, _EACH],
    "linear_from_numpy": LINEAR_RIGHT,
    "attention_torch": ATTENTION_RIGHT,
    "SelfAttention": MODULE_RIGHT,
    "as_numpy": ARRAY_RIGHT,
}
WRONG = {
    "parameters_without_gradient": [
        (
            "PG6",
            """
def parameters_without_gradient(module, x):
    was = module.training
    module.eval()
    names = {n for n, _ in module.named_parameters()}
    named = {n: p for n, p in module.named_parameters() if p.requires_grad}
    reached = set()
    for trial in range(4):
        result = module(x.detach().clone())
        if isinstance(result, tuple):
            result = result[0]
        if not result.requires_grad:
            break
        loss = (result * torch.randn_like(result)).sum()
        grads = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        reached |= {n for n, g in zip(named, grads) if g is not None and g.any()}
    module.train(was)
    return names - reached
""",
        ),
        ("PG1", _SILENT.replace("((out - 3 * torch.randn_like(out)) ** 2).sum()", "out.sum()")),
        ("PG18", _ONCE.replace("out.sum()", "(out * torch.randn_like(out)).sum()")),
        ("PG1+PG18", _ONCE),
        ("PG1+PG15+PG18", _ONCE.replace("if out.requires_grad:", "if True:")),
        ("PG1+PG15+PG18", _ONCE.replace("out.sum()", "(out**2).sum()").replace("if out.requires_grad:", "if True:")),
        ("PG3+PG15+PG18", _ONCE.replace(" or (p.grad == 0).all()", "").replace("if out.requires_grad:", "if True:")),
        ("PG1", _ONCE.replace("m(x)", "m(x.detach())")),
        ("PG1", _SILENT.replace("((out - 3 * torch.randn_like(out)) ** 2).sum()", "out.pow(2).sum()")),
        ("PG1", _SILENT.replace("((out - 3 * torch.randn_like(out)) ** 2).sum()", "(out * out).mean()")),
        ("PG3", _SILENT.replace("is not None and torch.count_nonzero(p.grad) > 0", "is not None")),
        (
            "PG4",
            "def parameters_without_gradient(module, x):\n    return {n for n, p in module.named_parameters() if not p.requires_grad}\n",
        ),
        (
            None,
            _SILENT.replace(
                "model.named_parameters()} - alive", "model.named_parameters() if p.requires_grad} - alive"
            ),
        ),
        ("PG6", _EACH.replace("            p.grad = grad\n", "            pass\n")),
        ("PG6", _EACH.replace("m.training = mode", "pass")),
        ("PG6", _RESTORED.replace("b.copy_(kept[name])", "pass")),
        (None, _SILENT.replace("return {name for name, p in model.named_parameters()} - alive", "return alive")),
        (
            "PG12",
            _RESTORED.replace(
                "out[0] if type(out) is tuple", "torch.cat([o.flatten() for o in out]) if type(out) is tuple"
            ),
        ),
        ("PG12", _EACH.replace("out[0] if", "out[-1] if")),
        ("PG13", _EACH.replace("> 0:", "> 1e-6:")),
        ("PG14", _RESTORED.replace("(g != 0).any()", "(g != 0).all()")),
        ("PG15", _SILENT.replace("        if out.requires_grad:\n            ((", "        ((")),
        (None, _EACH.replace("return silent", "return {n.rsplit('.', 1)[0] for n in silent}")),
        (
            None,
            _EACH.replace(
                "set(dict(module.named_parameters()))", "{n for n, _ in module.named_parameters() if 'weight' in n}"
            ),
        ),
        (None, _RESTORED.replace("frozenset", "list")),
        (None, "def parameters_without_gradient(module, x):\n    return set()\n"),
        (None, _EACH.replace("silent.discard(n)", "silent.discard(n)\n                    p.requires_grad_(False)")),
        (None, _SILENT.replace("copy.deepcopy(module)", "module")),
        (None, _SILENT.replace("((out - 3 * torch.randn_like(out)) ** 2).sum()", "(out ** 3).sum()")),
    ],
    "linear_from_numpy": LINEAR_WRONG,
    "attention_torch": ATTENTION_WRONG,
    "SelfAttention": MODULE_WRONG,
    "as_numpy": ARRAY_WRONG,
}

# "From scratch" is asked of what the exercise reaches: cells beside it, earlier tries and own methods are innocent.
_OWN = """
def attention_torch(q, k, v):
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
"""
_BY = """
def attention_torch(q, k, v):
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return {call}, weights
"""
_CORE = """
class Core:
    def scaled_dot_product_attention(self, q, k, v):
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return weights @ v, weights
def attention_torch(q, k, v):
    {way}.scaled_dot_product_attention(q, k, v)
"""
ATTENTION_RIGHT += [
    "import sys, gc\nIN_COLAB = 'google.colab' in sys.modules\nprint(len(gc.get_objects()))\n" + _OWN,
    "def attention_torch(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v), None\nfast = attention_torch\n"
    + _OWN,
    "from torch.nn.functional import scaled_dot_product_attention, softmax\n"
    + _OWN.replace("torch.softmax", "softmax"),
    _CORE.format(way="return Core()"),
    _CORE.format(way="core = Core()\n    return core"),
    _OWN.replace("    weights", "    q = q.to(getattr(torch, str(q.dtype).split('.')[1]))\n    weights", 1),
]
ATTENTION_WRONG += [
    (None, "setattr(math, 'att', F.scaled_dot_product_attention)\n" + _BY.format(call="math.att(q, k, v)")),
    (None, "box = []\nbox.append(F.scaled_dot_product_attention)\n" + _BY.format(call="box[0](q, k, v)")),
    (
        None,
        _BY.format(call="torch.ops.aten.__getattr__('_scaled_dot_product' + '_attention_math').default(q, k, v)[0]"),
    ),
    (
        None,
        "setattr(math, 'att', F.scaled_dot_product_attention)\ntraced = torch.jit.trace(lambda q, k, v: math.att(q, k, v), "
        "tuple(torch.randn(3, 2, 5, 4)), check_trace=False)\n" + _BY.format(call="traced(q, k, v)"),
    ),
]

# Right on ordinary inputs alone
WRONG["attention_torch"] += [
    (
        None,
        """def attention_torch(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    difference = q[..., :, None, :] - k[..., None, :, :]
    squared = difference.square().sum(-1)
    dots = (q.square().sum(-1)[..., :, None] + k.square().sum(-1)[..., None, :] - squared) / 2
    weights = (dots / math.sqrt(q.shape[-1])).softmax(-1)
    return weights @ v, weights
""",
    )
]
WRONG["SelfAttention"] += [
    (
        None,
        """class SelfAttention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        self.fused = None

    def comparison(self) -> Tensor:
        if self.training:
            self.fused = None
            return self.w_q.weight.T @ self.w_k.weight / math.sqrt(self.w_q.out_features)
        if self.fused is None or self.fused.dtype != self.w_q.weight.dtype:
            self.fused = self.w_q.weight.T @ self.w_k.weight / math.sqrt(self.w_q.out_features)
        return self.fused

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(x @ self.comparison() @ x.mT, dim=-1)
        return weights @ self.w_v(x), weights
""",
    )
]

# One number keeps its axes
WRONG["as_numpy"] += [
    (
        None,
        """def as_numpy(tensor):
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    if tensor.numel() == 1:
        return np.array(tensor.item(), dtype=tensor.numpy().dtype)
    return tensor.numpy()
""",
    )
]
