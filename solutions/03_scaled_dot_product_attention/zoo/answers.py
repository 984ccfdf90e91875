"""Submissions for lesson 03 as learners write them: right ones in many styles, wrong ones by name.

A pair (id, cell) in WRONG must be rejected and that mistake named; with None it must be rejected.
"""

RIGHT = {
    "project_qkv": [
        """
def project_qkv(x, w_q, w_k, w_v):
    q = np.matmul(x, w_q)
    k = np.matmul(x, w_k)
    v = np.matmul(x, w_v)
    return [q, k, v]
""",
        """
def project_qkv(x, w_q, w_k, w_v):
    return tuple(np.einsum("...td,dk->...tk", x, w) for w in (w_q, w_k, w_v))
""",
        """
def project_qkv(x, w_q, w_k, w_v):
    lead, d_model = x.shape[:-1], x.shape[-1]
    tokens = x.reshape(-1, d_model)
    return tuple((tokens @ w).reshape(*lead, w.shape[1]) for w in (w_q, w_k, w_v))
""",
        '''
def project_qkv(x, w_q, w_k, w_v):
    """One token after the other, in float32."""
    def project(w):
        out = np.zeros(x.shape[:-1] + (w.shape[1],), dtype=np.float32)
        for at in np.ndindex(*x.shape[:-1]):
            for j in range(w.shape[1]):
                out[at + (j,)] = sum(x[at][i] * w[i, j] for i in range(len(w)))
        return out
    return project(w_q), project(w_k), project(w_v)
''',
        """
from collections import namedtuple
Projected = namedtuple("Projected", "queries keys values")

def project_qkv(x, w_q, w_k, w_v):
    both = np.concatenate([w_q, w_k, w_v], axis=1)
    d_k = w_q.shape[1]
    q, k, v = np.split(np.dot(x, both), [d_k, 2 * d_k], axis=-1)
    return Projected(q, k, v)
""",
        """
def project_qkv(x, w_q, w_k, w_v, scale=1.0):
    one = lambda w: np.tensordot(x, w, axes=1) * scale
    return one(w_q), one(w_k), one(w_v)
""",
        """
def project_qkv(x, w_q, w_k, w_v):
    return (w_q.T @ x.swapaxes(-1, -2)).swapaxes(-1, -2), (x[..., None] * w_k).sum(-2), np.inner(x, w_v.T)
""",
    ],
    "scaled_dot_product_attention": [
        """
def scaled_dot_product_attention(q, k, v):
    d_k = k.shape[-1]
    scores = np.matmul(q, np.swapaxes(k, -2, -1)) / np.sqrt(d_k)
    scores = scores - np.max(scores, axis=-1, keepdims=True)
    weights = np.exp(scores) / np.sum(np.exp(scores), axis=-1, keepdims=True)
    return np.matmul(weights, v), weights
""",
        '''
def scaled_dot_product_attention(q, k, v):
    """By loops over everything, as the text says it."""
    lead = q.shape[:-2]
    output = np.zeros(lead + (q.shape[-2], v.shape[-1]))
    weights = np.zeros(lead + (q.shape[-2], k.shape[-2]))
    for at in np.ndindex(*lead):
        for i in range(q.shape[-2]):
            scores = [float(np.dot(q[at][i], k[at][j])) / math.sqrt(q.shape[-1]) for j in range(k.shape[-2])]
            exps = [math.exp(s - max(scores)) for s in scores]
            for j, e in enumerate(exps):
                weights[at][i, j] = e / sum(exps)
                output[at][i] += weights[at][i, j] * v[at][j]
    return output, weights
''',
        """
def scaled_dot_product_attention(q, k, v):
    scores = np.einsum("...qd,...kd->...qk", q, k) * k.shape[-1] ** -0.5
    e = np.exp(scores - scores.max(-1)[..., None])
    w = e / e.sum(-1)[..., None]
    return [np.einsum("...qk,...kd->...qd", w, v), w]
""",
        """
def softmax(x):
    x = x - np.amax(x, axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)

def scaled_dot_product_attention(q, k, v):
    q, k, v = (np.asarray(a, dtype=np.float32) for a in (q, k, v))
    weights = softmax(q / np.sqrt(np.float32(q.shape[-1])) @ k.mT)
    return weights @ v, weights
""",
        """
def one_sentence(q, k, v):
    scores = q @ k.T / np.sqrt(len(k[0]))
    largest = scores.max(axis=1, keepdims=True)
    log_total = largest + np.log(np.exp(scores - largest).sum(axis=1, keepdims=True))
    weights = np.exp(scores - log_total)
    return weights @ v, weights

def scaled_dot_product_attention(q, k, v):
    if q.ndim == 2:
        return one_sentence(q, k, v)
    pairs = [scaled_dot_product_attention(*item) for item in zip(q, k, v)]
    return np.stack([o for o, _ in pairs]), np.stack([w for _, w in pairs])
""",
        '''
def scaled_dot_product_attention(q, k, v):
    """Leading dimensions folded into one batch and unfolded at the end."""
    *lead, t_q, d_k = q.shape
    t_k, d_v = v.shape[-2:]
    q3, k3, v3 = q.reshape(-1, t_q, d_k), k.reshape(-1, t_k, d_k), v.reshape(-1, t_k, d_v)
    scores = (q3[:, :, None, :] * k3[:, None, :, :]).sum(axis=3) / d_k**0.5
    exps = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights = exps / exps.sum(axis=2, keepdims=True)
    output = np.matmul(weights, v3)
    return output.reshape(*lead, t_q, d_v), weights.reshape(*lead, t_q, t_k)
''',
        '''
def scaled_dot_product_attention(q, k, v):
    """Keys first, the softmax along axis -2, everything turned back at the end; normalised after the product."""
    scores = k @ np.moveaxis(q, -1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-2, keepdims=True))
    total = exps.sum(axis=-2)[..., None]
    output = exps.swapaxes(-1, -2) @ v / total
    return output, np.asfortranarray(exps.swapaxes(-1, -2) / total)
''',
        '''
def scaled_dot_product_attention(q, k, v, eps=1e-12):
    """One key at a time with a running maximum."""
    top = np.full(q.shape[:-1], -np.inf)
    total = np.zeros(q.shape[:-1])
    output = np.zeros(q.shape[:-1] + (v.shape[-1],))
    scores = []
    for j in range(k.shape[-2]):
        s = (q * k[..., j : j + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        new = np.maximum(top, s)
        shrink, grow = np.exp(top - new), np.exp(s - new)
        total = total * shrink + grow
        output = output * shrink[..., None] + grow[..., None] * v[..., j : j + 1, :]
        top = new
        scores.append(s)
    weights = np.exp(np.stack(scores, axis=-1) - top[..., None]) / total[..., None]
    return output / (total[..., None] + eps), weights
''',
    ],
    "attention_einsum": [
        """
def attention_einsum(q, k, v):
    scores = np.einsum("bij,bkj->bik", q, k) / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.einsum("bik,bkd->bid", weights, v)
""",
        '''
def attention_einsum(q, k, v):
    """One sentence at a time."""
    output = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for b in range(len(q)):
        scores = np.einsum("qd,kd->qk", q[b], k[b]) / math.sqrt(q.shape[2])
        exps = np.exp(scores - scores.max(axis=1, keepdims=True))
        output[b] = np.einsum("qk,kd->qd", exps / exps.sum(axis=1, keepdims=True), v[b])
    return output
''',
        """
from numpy import einsum

def attention_einsum(q, k, v):
    s = einsum("nqd,nkd->nqk", q, k) / math.sqrt(k.shape[-1])
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return einsum("nqk,nkd->nqd", e, v) / e.sum(axis=2)[:, :, None]
""",
        """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k, optimize=True) * q.shape[-1] ** -0.5
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bqk,bkd->bqd", weights, v, optimize=True)
""",
        """
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def attention_einsum(q, k, v):
    return np.einsum("...qk,...kd->...qd", softmax(np.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])), v)
""",
        '''
def attention_einsum(q, k, v):
    """The list form: axes by number."""
    scores = np.einsum(q, [0, 1, 3], k, [0, 2, 3], [0, 1, 2]) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return np.einsum(weights, [0, 1, 2], v, [0, 2, 3], [0, 1, 3])
''',
        '''
def attention_einsum(q, k, v):
    """The scale as a third operand, the normalisation, too."""
    scale = np.array(1 / math.sqrt(q.shape[-1]))
    scores = np.einsum("bqd,bkd,->bqk", q, k, scale)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd,bq->bqd", exps, v, 1 / np.einsum("bqk->bq", exps))
''',
        '''
def attention_einsum(q, k, v):
    """The scale folded into the queries, in float32."""
    q = np.asarray(q, dtype=np.float32) / np.sqrt(np.float32(q.shape[-1]))
    scores = np.einsum("bqd, bkd -> bqk", q, k.astype(np.float32))
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return np.einsum("bqk, bkd -> bqd", weights, v.astype(np.float32))
''',
        '''
import numpy

def scores_of(queries, keys):
    return numpy.einsum("bqd,bkd->bkq", queries, keys) / len(queries[0][0]) ** 0.5

def attention_einsum(q, k, v):
    """Keys first in the scores."""
    scores = scores_of(q, k)
    exps = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    weights = exps / exps.sum(axis=1, keepdims=True)
    return numpy.einsum("akb,akc->abc", weights, v)
''',
        '''
ein = np.einsum

def attention_einsum(q, k, v):
    """A helper of our own that happens to be called dot."""
    def dot(letters, left, right):
        return ein(letters, left, right)
    scores = dot("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return dot("bqk,bkd->bqd", exps / exps.sum(axis=-1, keepdims=True), v)
''',
        '''
def attention_einsum(q, k, v):
    """Local names that NumPy uses for products."""
    inner = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    outer = np.exp(inner - inner.max(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", outer / outer.sum(axis=-1, keepdims=True), v)
''',
        '''
def attention_einsum(q, k, v):
    """The scale as a diagonal matrix between queries and keys."""
    d_k = q.shape[-1]
    scores = np.einsum("bqd,de,bke->bqk", q, np.eye(d_k) / np.sqrt(d_k), k)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=-1, keepdims=True), v)
''',
        '''
def attention_einsum(q, k, v):
    """A column of ones beside the values sums the exponentials."""
    scores = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    values = np.concatenate([v, np.ones((*v.shape[:2], 1))], axis=-1)
    both = np.einsum("bqk,bkd->bqd", np.exp(scores - scores.max(-1, keepdims=True)), values)
    return both[..., :-1] / both[..., -1:]
''',
        '''
def attention_einsum(q, k, v):
    """Keys and values padded to a multiple of four, as a kernel does."""
    pad = -k.shape[1] % 4
    keys, values = (np.pad(a, ((0, 0), (0, pad), (0, 0))) for a in (k, v))
    scores = np.einsum("bqd,bkd->bqk", q, keys) / np.sqrt(q.shape[-1])
    scores[..., k.shape[1]:] = -np.inf
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=-1, keepdims=True), values)
''',
        '''
def attention_einsum(q, k, v):
    """All sentences in one matrix, each kept to its own keys."""
    (batch, t_q, d_k), t_k = q.shape, k.shape[1]
    own = np.repeat(np.repeat(np.eye(batch, dtype=bool), t_q, axis=0), t_k, axis=1)
    scores = np.where(own, np.einsum("qd,kd->qk", q.reshape(-1, d_k), k.reshape(-1, d_k)) / np.sqrt(d_k), -np.inf)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return np.einsum("qk,kd->qd", weights, v.reshape(-1, v.shape[-1])).reshape(batch, t_q, -1)
''',
        '''
def attention_einsum(q, k, v):
    """Each number by an einsum of its own."""
    scores = np.empty((q.shape[0], q.shape[1], k.shape[1]))
    for b, i, j in np.ndindex(scores.shape):
        scores[b, i, j] = np.einsum("d,d->", q[b, i], k[b, j])
    exps = np.exp((scores - scores.max(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1]))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    output = np.empty((q.shape[0], q.shape[1], v.shape[2]))
    for b, i, d in np.ndindex(output.shape):
        output[b, i, d] = np.einsum("j,j->", weights[b, i], v[b, :, d])
    return output
''',
    ],
}

_SOFTMAX = """
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""

WRONG = {
    "project_qkv": [
        (
            None,
            """def project_qkv(x, w_q, w_k, w_v):
    w = np.concatenate([w_q, w_k, w_v], axis=1)
    qkv = x @ w
    d = qkv.shape[-1] // 3
    return qkv[..., :d], qkv[..., d:2 * d], qkv[..., 2 * d:]
""",
        ),
        (
            "AB1",
            """
def project_qkv(x, w_q, w_k, w_v):
    return x @ w_q.T, x @ w_k.T, x @ w_v.T
""",
        ),
        (
            "AB9",
            """
def project_qkv(x, w_q, w_k, w_v):
    q = np.einsum("...d,dk->...k", x, w_k)
    k = np.einsum("...d,dk->...k", x, w_q)
    return q, k, np.einsum("...d,dk->...k", x, w_v)
""",
        ),
        (
            "AB3",
            """
def project_qkv(x, w_q, w_k, w_v):
    q = np.matmul(x, w_q)
    k = np.matmul(x, w_q)
    v = np.matmul(x, w_v)
    return q, k, v
""",
        ),
        (
            "AB3",
            """
def project_qkv(x, w_q, w_k, w_v):
    q, k = (np.dot(x, w) for w in (w_q, w_k))
    v = np.dot(x, w_k)
    return q, k, v
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    x = x @ w_q
    q = x
    x = x @ w_k
    k = x
    x = x @ w_v
    return q, k, x
""",
        ),
        (
            "AB6",
            """
def project_qkv(x, w_q, w_k, w_v):
    tokens = x.reshape(-1, x.shape[-1])
    return tokens @ w_q, tokens @ w_k, tokens @ w_v
""",
        ),
        (
            "TT1",
            """
def project_qkv(x, w_q, w_k, w_v):
    d_k = w_q.shape[1]
    return x @ (w_q / np.sqrt(d_k)), x @ w_k, x @ w_v
""",
        ),
        (
            "AB8",
            """
def project_qkv(x, w_q, w_k, w_v):
    B, T, d_model = x.shape
    q = np.zeros((B, T, w_q.shape[1])); k = np.zeros((B, T, w_k.shape[1])); v = np.zeros((B, T, w_v.shape[1]))
    for b in range(B):
        for t in range(T):
            q[b, t], k[b, t], v[b, t] = x[b, t] @ w_q, x[b, t] @ w_k, x[b, t] @ w_v
    return q, k, v
""",
        ),
        (
            "AB9",
            """
def project_qkv(x, w_q, w_k, w_v):
    out = [x @ w for w in (w_q, w_v, w_k)]
    return out[0], out[1], out[2]
""",
        ),
        (
            "TT1+AB9",
            """
def project_qkv(x, w_q, w_k, w_v):
    q = x @ w_k / math.sqrt(w_k.shape[1])
    return q, x @ w_q, x @ w_v
""",
        ),
        (
            "AB8",
            """
def project_qkv(x, w_q, w_k, w_v):
    return tuple(np.einsum("btd,dk->btk", x, w) for w in (w_q, w_k, w_v))
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    x = x[0] if x.ndim > 2 else x
    return x @ w_q, x @ w_k, x @ w_v
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    return np.stack([x @ w_q, x @ w_k, x @ w_v[:, : w_k.shape[1]]])
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    return {"q": x @ w_q, "k": x @ w_k, "v": x @ w_v}
""",
        ),
        (
            None,
            '''
def project_qkv(x, w_q, w_k, w_v):
    """Right numbers, and x is left in another order."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    x.sort(axis=-1)
    return q, k, v
''',
        ),
        (
            None,
            '''
def project_qkv(x, w_q, w_k, w_v):
    """Centres the tokens first."""
    x = x - x.mean(axis=-2, keepdims=True)
    return x @ w_q, x @ w_k, x @ w_v
''',
        ),
        (
            None,
            '''
seen = {}

def project_qkv(x, w_q, w_k, w_v):
    """Remembers by shape."""
    key = x.shape, w_q.shape, w_v.shape
    if key not in seen:
        seen[key] = x @ w_q, x @ w_k, x @ w_v
    return seen[key]
''',
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    return tuple(np.squeeze(x @ w) for w in (w_q, w_k, w_v))
""",
        ),
        (
            "AB8",
            """
def project_qkv(x, w_q, w_k, w_v):
    return tuple(np.einsum("ij,jk->ik", x, w) for w in (w_q, w_k, w_v))
""",
        ),
        (
            "AB8",
            """
def project_qkv(x, w_q, w_k, w_v):
    t, d = x.shape
    return tuple(np.array([x[i] @ w for i in range(t)]) for w in (w_q, w_k, w_v))
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    q, k, v = np.split(np.matmul(x, np.hstack([w_q, w_k, w_v])), 3, axis=-1)
    return q, k, v
""",
        ),
        (
            "AB3",
            """
def project_qkv(x, w_q, w_k, w_v):
    q, k, v = (np.dot(x, w_q) for _ in range(3))
    return q, k, v
""",
        ),
        (
            "RS17",
            '''
def project_qkv(x, w_q, w_k, w_v):
    """The results have the type of x."""
    def project(w):
        out = np.zeros((*x.shape[:-1], w.shape[1]), dtype=x.dtype)
        out[...] = x @ w
        return out
    return project(w_q), project(w_k), project(w_v)
''',
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    return tuple(np.round(x @ w, 3) for w in (w_q, w_k, w_v))
""",
        ),
        (
            None,
            '''
def project_qkv(x, w_q, w_k, w_v):
    """The first eight tokens."""
    first = np.where(np.arange(x.shape[-2])[:, None] < 8, x, 0)
    return first @ w_q, first @ w_k, first @ w_v
''',
        ),
        (
            "AB1",
            """
def project_qkv(x, w_q, w_k, w_v):
    return np.inner(x, w_q), np.inner(x, w_k), np.inner(x, w_v)
""",
        ),
        (
            "AB1",
            """
def project_qkv(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v.T
""",
        ),
        (
            None,
            """
def project_qkv(x, w_q, w_k, w_v):
    return x @ w_q + 1, x @ w_k + 1, x @ w_v + 1
""",
        ),
        (
            "AB3",
            """
def project_qkv(x, w_q, w_k, w_v):
    q = np.einsum("...tm,md->...td", x, w_q)
    k = np.tensordot(x, w_k, axes=1)
    v = np.matmul(x, w_k)
    return q, k, v
""",
        ),
        (
            "AB3",
            """
def project_qkv(x, w_q, w_k, w_v):
    q = np.einsum("...tm,md->...td", x, w_q)
    k = np.tensordot(x, w_q, axes=1)
    v = np.matmul(x, w_q)
    return q, k, v
""",
        ),
    ],
    "scaled_dot_product_attention": [
        (
            None,
            """
def scaled_dot_product_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    output = weights @ v / weights.sum(axis=-1, keepdims=True)
    return output, weights
""",
        ),
        (
            "MA37",
            """
def scaled_dot_product_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    hidden = np.triu(np.ones(scores.shape[-2:], dtype=bool), k=1)
    weights = softmax(np.where(hidden, -np.inf, scores))
    return weights @ v, weights
""",
        ),
        (
            "TT8",
            """
def scaled_dot_product_attention(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[1])
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w
""",
        ),
        (
            "SM1",
            """
def scaled_dot_product_attention(q, k, v):
    scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=-2, keepdims=True)
    weights = np.exp(scores)
    weights /= np.expand_dims(weights.sum(axis=-2), -2)
    return np.matmul(weights, v), weights
""",
        ),
        (
            "SM1+SM6",
            """
def scaled_dot_product_attention(q, k, v):
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1])
    scores = scores - scores.max()
    weights = np.exp(scores) / np.exp(scores).sum(axis=-2, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "SM2",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    exps = np.exp(scores - np.max(scores, axis=0))
    weights = exps / np.sum(exps, axis=0)
    return weights @ v, weights
""",
        ),
        (
            "SM3",
            """
def scaled_dot_product_attention(q, k, v):
    s = np.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max())
    w = e / e.sum()
    return w @ v, w
""",
        ),
        (
            "SM4",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1)
    return weights @ v, weights
""",
        ),
        (
            "SM4",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(-1))
    weights = exps / exps.sum(-1)
    return weights @ v, weights
""",
        ),
        (
            "AB8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(np.einsum("nid,njd->nij", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("nij,njd->nid", weights, v), weights
""",
        ),
        (
            "SM5",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "SM6",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - np.max(scores))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "SD1",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2))
    return weights @ v, weights
""",
        ),
        (
            "SD2",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1])
    return weights @ v, weights
""",
        ),
        (
            "SD2",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    root = math.sqrt(q.shape[-1])
    weights = softmax((q / root) @ (k / root).swapaxes(-1, -2))
    return weights @ v, weights
""",
        ),
        (
            "SD5",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) * np.sqrt(q.shape[-1]))
    return weights @ v, weights
""",
        ),
        (
            "SD6",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    return weights @ v, weights
""",
        ),
        (
            "SD8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(np.matmul(k, q.swapaxes(-1, -2)) / np.sqrt(q.shape[-1]))
    return np.matmul(weights, v), weights
""",
        ),
        (
            "AB8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    B, T, d_k = q.shape
    weights = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(d_k))
    return weights @ v, weights
""",
        ),
        (
            "SM2",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores -= scores.max(axis=1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "SM2",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights = exps / exps.sum(axis=2, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    n = k.shape[-2]
    weights = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(n))
    return weights @ v, weights
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) * v.shape[-1] ** -0.5)
    return weights @ v, weights
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    d_k = q.shape[1]
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d_k))
    return weights @ v, weights
""",
        ),
        (
            "AB15",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    *lead, t_k, d_k = k.shape
    weights = softmax(q @ k.reshape(*lead, d_k, t_k) / np.sqrt(d_k))
    return weights @ v, weights
""",
        ),
        (
            "AB16",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.T / np.sqrt(q.shape[-1]))
    return weights @ v, weights
""",
        ),
        (
            "AB16",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ np.transpose(k, (0, 2, 1)) / np.sqrt(q.shape[-1]))
    return weights @ v, weights
""",
        ),
        (
            "AB33",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])))
    return weights @ v, weights
""",
        ),
        (
            None,
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e @ v, e / e.sum(axis=-1, keepdims=True)
""",
        ),
        (
            "NT8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights, weights @ v
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(weights) @ v, weights
""",
        ),
        (
            "AB20",
            """
def scaled_dot_product_attention(q, k, v):
    weights = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
    return weights @ v, weights
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    output = np.zeros(weights.shape[:-1] + v.shape[-1:], dtype=v.dtype)
    output[...] = weights @ v
    return output, weights
""",
        ),
        (
            "AB22",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return np.swapaxes(weights, -1, -2) @ v, weights
""",
        ),
        (
            "TT3",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(np.matmul(q, k) / np.sqrt(q.shape[-1]))
    return np.matmul(weights, v), weights
""",
        ),
        (
            "SM1+SD1",
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    exps = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = exps / exps.sum(axis=-2, keepdims=True)
    return weights @ v, weights
""",
        ),
        (
            "SM5+SD1",
            """
def scaled_dot_product_attention(q, k, v):
    weights = np.exp(np.matmul(q, k.swapaxes(-1, -2)))
    weights = weights / weights.sum(-1, keepdims=True)
    return np.matmul(weights, v), weights
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """The output alone."""
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Right numbers, and q is scaled in place."""
    np.divide(q, np.sqrt(q.shape[-1]), out=q, casting="unsafe")
    weights = softmax(q @ k.swapaxes(-1, -2))
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Every sentence meets all keys of the batch."""
    flat_k, flat_v = k.reshape(-1, k.shape[-1]), v.reshape(-1, v.shape[-1])
    weights = softmax(q @ flat_k.T / np.sqrt(q.shape[-1]))
    return weights @ flat_v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Item 0's keys for everybody."""
    first = k[0] if k.ndim > 2 else k
    weights = softmax(q @ first.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights
''',
        ),
        (
            None,
            '''
def scaled_dot_product_attention(q, k, v):
    """Clips where it should subtract."""
    scores = np.clip(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -500, 500)
    exps = np.exp(scores)
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights
''',
        ),
        (
            "SM6",
            '''
def scaled_dot_product_attention(q, k, v):
    """One maximum for each sentence."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=(-2, -1), keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights
''',
        ),
        (
            None,
            '''
def scaled_dot_product_attention(q, k, v):
    """Hides NaN behind zeros."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.nan_to_num(np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True))
    return weights @ v, weights
''',
        ),
        (
            None,
            '''
def scaled_dot_product_attention(q, k, v):
    """A maximum for each key in place of each query."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Drops leading dimensions of size one."""
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return np.squeeze(weights @ v), np.squeeze(weights)
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
cache = {}

def scaled_dot_product_attention(q, k, v):
    """Remembers by shape."""
    if (q.shape, k.shape, v.shape) not in cache:
        weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        cache[q.shape, k.shape, v.shape] = weights @ v, weights
    return cache[q.shape, k.shape, v.shape]
''',
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    q /= np.sqrt(q.shape[-1])
    weights = softmax(q @ k.swapaxes(-1, -2))
    return weights @ v, weights
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Self-attention only: the keys are the queries."""
    weights = softmax(q @ q.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Hides the future."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = softmax(np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf))
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Compares directions: keys and queries made unit vectors."""
    q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """Rounds the weights, as a worked example in print does."""
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])).round(2)
    return weights @ v, weights
''',
        ),
        *(
            (
                id,
                f"""
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    exps = np.exp(scores - {shift})
    weights = exps{normalised}
    return weights @ v, weights
""",
            )
            for id, shift, normalised in (
                (None, "scores.min(axis=-1, keepdims=True)", " / exps.sum(axis=-1, keepdims=True)"),
                (None, "scores.mean(axis=-1, keepdims=True)", " / exps.sum(axis=-1, keepdims=True)"),
                (None, "scores[..., :1]", " / exps.sum(axis=-1, keepdims=True)"),
                (None, "np.median(scores, axis=-1, keepdims=True)", " / exps.sum(axis=-1, keepdims=True)"),
                ("TT14", "scores.max(axis=-1, keepdims=True)", ""),
                ("SM3", "scores.max(axis=(-2, -1), keepdims=True)", " / exps.sum(axis=(-2, -1), keepdims=True)"),
            )
        ),
        *(
            (
                id,
                _SOFTMAX
                + f"""
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt({size}))
    return weights @ v, weights
""",
            )
            for id, size in (("TT8", "len(q)"), ("TT8", "q.shape[-2]"), (None, "np.sqrt(q.shape[-1])"))
        ),
        (
            "AB8",
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(np.einsum("id,jd->ij", q, k) / np.sqrt(q.shape[-1]))
    return weights @ v, weights
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    scores = np.matmul(q, np.swapaxes(k, -1, -2))
    scores /= np.sqrt(q.shape[-1])
    weights = softmax(scores)
    return weights @ v, weights
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """The first nine keys."""
    weights = softmax(q @ k[..., :9, :].swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    missing = np.zeros((*q.shape[:-1], k.shape[-2] - weights.shape[-1]))
    return weights @ v[..., :9, :], np.concatenate([weights, missing], axis=-1)
''',
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return (weights @ v).tolist(), weights.tolist()
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def scaled_dot_product_attention(q, k, v):
    """The scale of the published example, d_k = 4, for every size."""
    weights = softmax(q @ k.swapaxes(-1, -2) / 2)
    return weights @ v, weights
''',
        ),
        (
            None,
            _SOFTMAX
            + """
def scaled_dot_product_attention(q, k, v):
    import torch
    out = torch.nn.functional.scaled_dot_product_attention(*(torch.tensor(a) for a in (q, k, v)))
    return out.numpy(), softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
""",
        ),
        (
            "SX25",
            """
def scaled_dot_product_attention(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True, initial=0))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ v, w
""",
        ),
        (
            "SX25",
            """
def scaled_dot_product_attention(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - np.abs(s).max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ v, w
""",
        ),
        (
            "SM3",
            """
def scaled_dot_product_attention(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum()
    return w @ v, w
""",
        ),
        (
            "TT9",
            """
def scaled_dot_product_attention(q, k, v):
    root = q.shape[-1]**1/2
    s = q @ k.mT / root
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ v, w
""",
        ),
        (
            "SD8",
            """
def scaled_dot_product_attention(q, k, v):
    s = np.einsum("...qd,...kd->...kq", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return np.einsum("...qk,...kv->...qv", w, v), w
""",
        ),
        (
            "TT8",
            """
def scaled_dot_product_attention(q, k, v):
    d_k = v.shape[-1]
    s = np.einsum("...id,...jd->...ij", q, k) * d_k ** -0.5
    s = s - np.amax(s, axis=-1, keepdims=True)
    p = np.exp(s)
    p = np.divide(p, np.sum(p, axis=-1, keepdims=True))
    out = np.einsum("...ij,...je->...ie", p, v)
    return out, p
""",
        ),
    ],
    "attention_einsum": [
        (
            "AB38",
            """
def attention_einsum(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.einsum("bid,bjd->bij", q, k) / np.sqrt(q.shape[-1])
    weights = softmax(scores)
    return np.einsum("bij,cjv->biv", weights, v)
""",
        ),
        (
            "SM4",
            """
def attention_einsum(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.einsum("bid,bjd->bij", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1)[:, None, :]
    return np.einsum("bij,bjv->biv", weights, v)
""",
        ),
        (
            "AB38",
            """def attention_einsum(q, k, v):
    scores = np.einsum("bqd,akd->bqk", q, k) / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=-1, keepdims=True)
    w = np.exp(scores)
    w = w / w.sum(axis=-1, keepdims=True)
    return np.einsum("bqk,bkv->bqv", w, v)
""",
        ),
        (
            "AB24",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bqk,bkv->bkv", e / e.sum(-1, keepdims=True), v)
""",
        ),
        (
            "AB38",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bqk,bnv->bqv", e / e.sum(-1, keepdims=True), v)
""",
        ),
        (
            "AB24",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bqk,bkv->bv", e / e.sum(-1, keepdims=True), v)
""",
        ),
        (
            "AB22",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bqk,bqv->bkv", e / e.sum(-1, keepdims=True), v)
""",
        ),
        (
            "AB22",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bkq,bkv->bqv", e / e.sum(-1, keepdims=True), v)
""",
        ),
        (
            "SM1",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=1, keepdims=True), v)
""",
        ),
        (
            "SM2",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=0))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=0), v)
""",
        ),
        (
            "SM3",
            """
def attention_einsum(q, k, v):
    exps = np.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(exps - exps.max())
    return np.einsum("bij,bjd->bid", exps / exps.sum(), v)
""",
        ),
        (
            "SM4",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=-1), v)
""",
        ),
        (
            "SM5",
            """
def attention_einsum(q, k, v):
    exps = np.exp(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    weights = exps / np.einsum("bqk->bq", exps)[:, :, None]
    return np.einsum("bqk,bkd->bqd", weights, v)
""",
        ),
        (
            "SM6",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    scores -= scores.max()
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return np.einsum("bqk,bkd->bqd", weights, v)
""",
        ),
        (
            "SD1",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    return np.einsum("bqk,bkd->bqd", softmax(np.einsum("bqd,bkd->bqk", q, k)), v)
""",
        ),
        (
            "SD2",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    return np.einsum("bqk,bkd->bqd", softmax(np.einsum("bqd,bkd->bqk", q, k) / q.shape[-1]), v)
""",
        ),
        (
            "SD5",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    q = q * math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", softmax(np.einsum("bqd,bkd->bqk", q, k)), v)
""",
        ),
        (
            "SD6",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k)) / math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", weights, v)
""",
        ),
        (
            "SD8",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.einsum("bik,bjk->bji", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bij,bjk->bik", softmax(scores), v)
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k)
    return np.einsum("bqk,bkd->bqd", softmax(scores / math.sqrt(scores.shape[-1])), v)
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(v.shape[2])
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    batch, d_k = q.shape[:2]
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(d_k)
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)
""",
        ),
        (
            "AB20",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", scores, v)
""",
        ),
        (
            "AB22",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bij,bkj->bik", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("bik,bid->bkd", weights, v)
""",
        ),
        (
            "TT3",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bij,bjk->bik", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("bij,bjk->bik", weights, v)
""",
        ),
        (
            "AB24",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bqd,bkd->qk", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("qk,bkd->bqd", weights, v)
""",
        ),
        (
            "SM1+SD2",
            """
def attention_einsum(q, k, v):
    s = np.einsum("bqd,bkd->bqk", q, k) / q.shape[-1]
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    return np.einsum("bqk,bkd->bqd", e / e.sum(axis=-2, keepdims=True), v)
""",
        ),
        (
            "TT8",
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    return np.einsum("bqk,bkd->bqd", softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(len(q))), v)
""",
        ),
        (
            "TT14",
            """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", np.exp(scores - scores.max(axis=-1, keepdims=True)), v)
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k)
    scores /= math.sqrt(k.shape[-1])
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)
""",
        ),
        (
            None,
            '''
def attention_einsum(q, k, v):
    """The mean in place of the maximum."""
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.mean(axis=-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", exps / exps.sum(axis=-1, keepdims=True), v)
''',
        ),
        (
            None,
            '''
def attention_einsum(q, k, v):
    """Sixteen keys at a time with a running maximum, and nothing shrinks when it grows."""
    top, total, output = -np.inf, 0.0, 0.0
    for at in range(0, k.shape[1], 16):
        scores = np.einsum("bqd,bkd->bqk", q, k[:, at : at + 16]) / math.sqrt(q.shape[-1])
        top = np.maximum(top, scores.max(-1, keepdims=True))
        exps = np.exp(scores - top)
        total = total + exps.sum(-1, keepdims=True)
        output = output + np.einsum("bqk,bkd->bqd", exps, v[:, at : at + 16])
    return output / total
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """The scores once more for each query, and the values by broadcasting."""
    output = np.zeros((*q.shape[:2], v.shape[2]))
    for i in range(q.shape[1]):
        weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))[:, i]
        output[:, i] = (weights[:, :, None] * v).sum(axis=1)
    return output
''',
        ),
        # Right numbers, another way than einsum for one product or both.
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    return softmax(scores) @ v
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax((q @ k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1]))
    return np.einsum("bqk,bkd->bqd", weights, v)
""",
        ),
        (
            None,
            _SOFTMAX
            + """
product = np.matmul

def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    return product(weights, v)
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    return (weights[:, :, :, None] * v[:, None, :, :]).sum(axis=2)
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Multiplied by broadcasting; einsum only adds up."""
    products = q[:, :, None, :] * k[:, None, :, :]
    weights = softmax(np.einsum("bqkd->bqk", products) / math.sqrt(q.shape[-1]))
    return np.einsum("bqkd->bqd", weights[..., None] * v[:, None])
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Multiplied by broadcasting; einsum multiplies by ones."""
    products = q[:, :, None, :] * k[:, None, :, :]
    weights = softmax(np.einsum("bqkd,d->bqk", products, np.ones(q.shape[-1])) / math.sqrt(q.shape[-1]))
    return np.einsum("bqk,bkd->bqd", weights, v)
''',
        ),
        (
            None,
            _SOFTMAX
            + """
def average(weights, v):
    return np.stack([np.dot(w, values) for w, values in zip(weights, v)])

def attention_einsum(q, k, v):
    return average(softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])), v)
""",
        ),
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.stack([q[b].dot(k[b].T) for b in range(len(q))]) / math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)
""",
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Plain loops for the second product."""
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    output = np.zeros((*weights.shape[:2], v.shape[-1]))
    for b, i, j in np.ndindex(weights.shape):
        output[b, i] += weights[b, i, j] * v[b, j]
    return output
''',
        ),
        (
            None,
            _SOFTMAX
            + """
def attention_einsum(q, k, v):
    scores = np.stack([np.inner(a, b) for a, b in zip(q, k)]) / math.sqrt(q.shape[-1])
    return np.stack([np.tensordot(w, b, axes=1) for w, b in zip(softmax(scores), v)])
""",
        ),
        (
            None,
            """
def scaled_dot_product_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights

def attention_einsum(q, k, v):
    return scaled_dot_product_attention(q, k, v)[0]
""",
        ),
        (
            None,
            '''
def plain(q, k, v):
    scores = getattr(np, "mat" + "mul")(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return getattr(np, "mat" + "mul")(exps / exps.sum(axis=-1, keepdims=True), v)

def attention_einsum(q, k, v):
    """einsum runs, and its results are thrown away."""
    np.einsum("bqd,bkd->bqk", q, k)
    return plain(q, k, v)
''',
        ),
        # Other ways to be wrong.
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Output and weights."""
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("bqk,bkd->bqd", weights, v), weights
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Every sentence meets every sentence's keys."""
    scores = np.einsum("bqd,ckd->bqck", q, k) / math.sqrt(q.shape[-1])
    flat = softmax(scores.reshape(*scores.shape[:2], -1)).reshape(scores.shape)
    return np.einsum("bqck,ckd->bqd", flat, v)
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Implicit output: letters in alphabetical order."""
    scores = np.einsum("bqd,bkd", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)
''',
        ),
        (
            None,
            _SOFTMAX
            + '''
def attention_einsum(q, k, v):
    """Sums the values over the queries."""
    weights = softmax(np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]))
    return np.einsum("bqk,bkd->bkd", weights, v)
''',
        ),
        (
            "TT8",
            """
def attention_einsum(q, k, v):
    result = []
    for one_q, one_k, one_v in zip(q, k, v):
        logits = np.einsum("td,sd->ts", one_q, one_k) * (one_v.shape[1] ** -0.5)
        grown = np.exp(logits - logits.max(1)[:, None])
        probabilities = grown / grown.sum(1)[:, None]
        result.append(np.einsum("ts,se->te", probabilities, one_v))
    return np.stack(result)
""",
        ),
    ],
}

_LOOPS = """
    output = np.zeros((len(q), q.shape[1], v.shape[2]))
    for b in range(len(q)):
        for i in range(q.shape[1]):
            scores = np.array([sum(x * y for x, y in zip(q[b, i], row)) for row in k[b]]) / math.sqrt(q.shape[2])
            exps = np.exp(scores - scores.max())
            for weight, value in zip(exps / exps.sum(), v[b]):
                output[b, i] = output[b, i] + weight * value
"""
_ZEROS = 'nothing = np.einsum("bqk,bkd->bqd", np.einsum("bqd,bkd->bqk", {q}, k), v)'
WRONG["attention_einsum"] += [
    (None, f"def attention_einsum(q, k, v):\n    {_ZEROS.format(q='0 * q')}{_LOOPS}    return output"),
    (None, f"def attention_einsum(q, k, v):\n    {_ZEROS.format(q='0 * q')}{_LOOPS}    return output + nothing"),
    (None, f"def attention_einsum(q, k, v):\n    {_ZEROS.format(q='q')}{_LOOPS}    return output"),
]

RIGHT["previous_token_projections"] = [
    """
def previous_token_projections(t, share):
    a = 2*np.pi*np.arange(t)/t
    w_k = np.stack([np.cos(a), np.sin(a)], axis=1)
    near = 1 - np.cos(2*np.pi/t)
    size = np.sqrt(2) * np.log(t/(1-share)) / near
    w_q = size * w_k[[0, *range(t-1)]]
    return w_q, w_k
""",
    """
def previous_token_projections(t, share):
    j = np.arange(t)
    want = np.maximum(j - 1, 0)
    w_k = np.stack([2.0*j, -1.0*j*j], 1)
    w_q = 2 * np.log(t/(1-share)) * np.stack([want, np.ones(t)], 1)
    return w_q, w_k
""",
    """
def previous_token_projections(t, share):
    w_q = np.zeros((t, t)); w_k = np.zeros((t, t))
    for i in range(t):
        w_k[i, i] = 1
        w_q[i, max(i-1, 0)] = 1000
    return w_q, w_k
""",
    """
def previous_token_projections(t, share):
    keys = np.eye(t, dtype=int)
    return (10**4 * keys[[0] + list(range(t - 1))], keys)
""",
    """
def previous_token_projections(t, share):
    need = max(math.log(share*(t-1)/(1-share)), 0) + 1e-9
    c = math.sqrt(need * math.sqrt(t))
    perm = np.concatenate([np.eye(t)[:1], np.eye(t)[:-1]])
    return [c*perm, c*np.eye(t)]
""",
    """
def previous_token_projections(t, share):
    w_k = np.eye(t, dtype=np.float32)
    idx = np.clip(np.arange(t) - 1, 0, None)
    return (w_k[idx] * np.float32(300)), w_k
""",
    """
def previous_token_projections(t, share):
    rng = np.random.default_rng(1)
    k = rng.normal(size=(t, 400)); k /= np.linalg.norm(k, axis=1, keepdims=True)
    q = k[np.maximum(np.arange(t)-1, 0)] * 1000 * 20
    return q, k
""",
    """
def previous_token_projections(t, share):
    want = np.zeros((t, t)); want[0, 0] = 1
    want[np.arange(1, t), np.arange(t-1)] = 1
    scores = math.sqrt(t) * (math.log(share / (1-share) * (t - 1)) + .01) * want
    return scores, np.eye(t)
""",
    """
def previous_token_projections(t, share):
    big = 50 * math.sqrt(t)
    w_q = np.full((t, t), -big)
    for i in range(t): w_q[i, max(0, i - 1)] = 0
    return w_q, np.eye(t)
""",
    """
def previous_token_projections(t, share):
    # one row more: a start marker
    d = t + 3
    w_k = np.zeros((t, d)); w_k[:, :t] = np.eye(t)
    w_q = np.zeros((t, d)); w_q[1:, :t] = np.eye(t)[:-1]; w_q[0, 0] = 1
    return w_q * 40 * math.sqrt(d), w_k
""",
    """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    return 1e200*w_q, 1e200*np.eye(t)
""",
]

WRONG["previous_token_projections"] = [
    (
        "PT1",
        """
def previous_token_projections(t, share):
    c = math.sqrt(t)*(math.log((t-1)*share/(1-share))+1)
    w_k = np.zeros((t,t)); w_k[1:, :-1] = np.eye(t-1)
    return c*np.eye(t), w_k
""",
    ),
    (
        "PT1",
        """
def previous_token_projections(t, share):
    big = 1e4
    return big*np.eye(t), np.eye(t)[[0]+list(range(t-1))]
""",
    ),
    (
        "PT2",
        """
def previous_token_projections(t, share):
    return np.diag(np.ones(t-1), -1)*1000., np.eye(t)
""",
    ),
    (
        "PT3",
        """
def previous_token_projections(t, share):
    x = np.eye(t)
    return np.roll(x, 1, axis=0) * 5000, x
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    return np.eye(t)*1000, np.eye(t)
""",
    ),
    (
        "QF1",
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    return 3*w_q, 3*np.eye(t)
""",
    ),
    (
        "QF2",
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    s = np.log(share) - np.log(1-share) + np.log(t-1)
    return s*w_q, np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    s = np.log(t/(1-share))+.1
    return s*w_q, np.eye(t)
""",
    ),
    (
        "QF4",
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    s = np.log(share/(1-share))*np.sqrt(t)
    return w_q, s*np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    return w_q @ np.eye(t) * 1000
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w = np.full((t,t), (1-share)/(t-1)); 
    for i in range(t): w[i, max(i-1,0)] = share
    return w, np.eye(t)
""",
    ),
    (
        "QF2",
        """
def previous_token_projections(t, share):
    w = np.full((t,t), (1-share)/(t-1)); 
    for i in range(t): w[i, max(i-1,0)] = share
    return np.log(w), np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    return np.eye(t), np.eye(t), np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    a = np.arange(t)
    return np.stack([a-1, a]), np.stack([a, a])
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    return np.arange(t), np.arange(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    return 100.*np.arange(t)[:, None]-100, 1.*np.arange(t)[:, None]
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    m = np.full((t,t), -np.inf)
    for i in range(t): m[i, max(i-1,0)] = 0
    return m, np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.zeros((t,t)); w_q[:,0]=1000
    return w_q, np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    return np.eye(t).tolist(), np.eye(t).tolist()
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = 50*np.eye(t, k=-1); w_q[0,-1]=50
    return w_q, np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1); w_q[0,0]=1
    return w_q, np.sqrt(t)*np.log(share*t)*np.eye(t)
""",
    ),
    (
        "QF2",
        """
def previous_token_projections(t, share):
    w_q = np.eye(t, k=-1) + np.diag([1.0] + [0.0] * (t - 1))
    return w_q / np.sqrt(t), np.log(share * (t - 1) / (1 - share)) * np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.vstack([np.eye(t)[:1], np.eye(t)[:-1]])
    return -w_q * 500, np.eye(t)
""",
    ),
    (
        None,
        """
def previous_token_projections(t, share):
    w_q = np.vstack([np.eye(t)[:1], np.eye(t)[:-1]])
    return w_q * np.log(share * (t - 1)) * np.sqrt(t), np.eye(t)
""",
    ),
]

RIGHT["scaled_dot_product_attention"] += [
    '''
def scaled_dot_product_attention(q, k, v):
    """With the softmax that the lesson gives."""
    weights = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5)
    return weights @ v, weights
'''
]

# Right on ordinary inputs alone
WRONG["previous_token_projections"] += [
    (
        None,
        """def previous_token_projections(t: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    w_k = np.eye(t)
    w_q = np.eye(t, k=-1)
    w_q[0, 0] = 1.0
    return 10.0 * math.sqrt(t) * w_q, w_k
""",
    ),
    (
        None,
        """def previous_token_projections(t: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    angles = 2 * math.pi * np.arange(t) / t
    w_k = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    before = np.maximum(np.arange(t) - 1, 0)
    w_q = 10_000.0 * w_k[before]
    return w_q, w_k
""",
    ),
]
WRONG["scaled_dot_product_attention"] += [
    (
        None,
        """def scaled_dot_product_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    t_k = k.shape[-2]
    block = min(64, t_k)  # keys at a time, so that a block fits into the cache
    scores = np.zeros(q.shape[:-1] + (t_k,))
    for number in range(t_k // block):
        part = slice(number * block, (number + 1) * block)
        scores[..., part] = q @ np.swapaxes(k[..., part, :], -1, -2)
    weights = softmax(scores / math.sqrt(q.shape[-1]))
    return weights @ v, weights
""",
    )
]
