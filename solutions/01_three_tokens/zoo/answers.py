"""Submissions of lesson 01 as learners write them: right ones, and wrong ones with the mistake to be named."""

STEPS = """
def attention_scores(Q, K):
    return Q @ K.T

def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""

RIGHT = {
    "attention_scores": [
        """
def attention_scores(Q, K):
    scores = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            for feature in range(Q.shape[1]):
                scores[i, j] += Q[i, feature] * K[j, feature]
    return scores
""",
        """
def attention_scores(Q, K):
    return np.einsum("qd,kd->qk", Q, K)
""",
        """
def attention_scores(Q, K):
    return (Q[:, None, :].astype(np.float32) * K[None].astype(np.float32)).sum(-1)
""",
        """
def attention_scores(Q, K):
    return np.array([[float(np.dot(q, k)) for k in K] for q in Q])
""",
        """
def attention_scores(Q, K, transposed=False):
    return np.asfortranarray((K @ Q.T).T)
""",
    ],
    "scale_scores": [
        """
def scale_scores(scores, d_k):
    return scores / np.sqrt(d_k)
""",
        """
def scale_scores(scores, d_k):
    return scores * d_k ** -0.5
""",
        """
def scale_scores(scores, d_k):
    flat = [number / math.sqrt(d_k) for number in scores.ravel()]
    return np.array(flat).reshape(scores.shape)
""",
        """
def scale_scores(scores, d_k):
    return np.divide(scores.astype(np.float32), np.float32(math.sqrt(d_k)))
""",
    ],
    "softmax_rows": [
        """
def softmax_rows(scores):
    rows = []
    for row in scores:
        top = max(row)
        e = [math.exp(s - top) for s in row]
        rows.append([x / sum(e) for x in e])
    return np.array(rows)
""",
        """
def softmax_rows(scores):
    e = np.exp(scores.T - scores.max(axis=1))
    return (e / e.sum(axis=0)).T
""",
        """
def softmax_rows(scores):
    scores = scores.astype(np.float32)
    top = np.max(scores, axis=-1)[:, np.newaxis]
    log_sum = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
    return np.exp(scores - log_sum)
""",
        """
def softmax_rows(scores):
    return 1 / np.exp(scores[:, None, :] - scores[:, :, None]).sum(axis=2)
""",
        """
def stable(row):
    e = np.exp(row - row.max())
    return e / e.sum()

def softmax_rows(scores):
    return np.apply_along_axis(stable, 1, scores.astype(float))
""",
        """
from multiprocessing.pool import ThreadPool

def one_row(row):
    e = np.exp(row - row.max())
    return e / e.sum()

def softmax_rows(scores):
    with ThreadPool(2) as pool:
        return np.array(pool.map(one_row, scores))
""",
        """
from concurrent.futures import ThreadPoolExecutor

def softmax_rows(scores):
    def one_row(row):
        e = np.exp(row - row.max())
        return e / e.sum()
    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(one_row, scores)))
""",
        """
from types import SimpleNamespace as Space

def mine(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

ops = Space(softmax=mine)

def softmax_rows(scores):
    return ops.softmax(scores)
""",
        """
from types import SimpleNamespace as Space

def mine(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

table = {"softmax": mine}
ops = Space(**table)

def softmax_rows(scores):
    return ops.softmax(scores)
""",
        """
from types import SimpleNamespace as Space

def mine(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

ops = Space()
ops.__setattr__("softmax", mine)

def softmax_rows(scores):
    return ops.softmax(scores)
""",
        """
from types import SimpleNamespace as Space

def mine(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

class Table(dict):
    __getattr__ = dict.__getitem__

ops = Table(softmax=mine)

def softmax_rows(scores):
    return ops.softmax(scores)
""",
    ],
    "weighted_sum": [
        """
def weighted_sum(weights, V):
    return np.dot(weights, V)
""",
        """
def weighted_sum(weights, V):
    output = np.zeros((weights.shape[0], V.shape[1]))
    for i in range(weights.shape[0]):
        for key in range(V.shape[0]):
            output[i] += weights[i, key] * V[key]
    return output
""",
        """
def weighted_sum(weights, V):
    return np.einsum("qk,kv->qv", weights.astype("float32"), V.astype("float32"))
""",
        """
def weighted_sum(weights, V):
    return (weights[:, :, None] * V[None, :, :]).sum(axis=1)
""",
    ],
    "three_token_attention": [
        STEPS
        + """
def three_token_attention(Q, K, V):
    weights = softmax_rows(attention_scores(Q, K) / np.sqrt(K.shape[-1]))
    return weights @ V, weights
""",
        """
def three_token_attention(Q, K, V):
    Q, K, V = (x.astype(np.float32) for x in (Q, K, V))
    s = np.einsum("qd,kd->qk", Q / np.sqrt(Q.shape[1], dtype=np.float32), K)
    s -= s.max(-1, keepdims=True)
    w = np.exp(s)
    w /= w.sum(-1, keepdims=True)
    return [np.einsum("qk,kv->qv", w, V), w]
""",
        """
from collections import namedtuple
Attention = namedtuple("Attention", "output weights")

def three_token_attention(Q, K, V):
    output, weights = [], []
    for q in Q:
        s = [float(q @ k) / math.sqrt(len(q)) for k in K]
        e = [math.exp(x - max(s)) for x in s]
        w = np.array(e) / sum(e)
        weights.append(w)
        output.append(sum(wi * vi for wi, vi in zip(w, V)))
    return Attention(np.stack(output), np.stack(weights))
""",
        """
class Attention:
    def __call__(self, Q, K, V):
        s = Q @ K.T / np.sqrt(Q.shape[1])
        s = np.exp(s - np.logaddexp.reduce(s, axis=1)[:, None])
        return s @ V, s

three_token_attention = Attention()
""",
    ],
    "corrected_first_row": [
        "corrected_first_row = [5, 5]",
        "corrected_first_row = (5.0, 4.995)",
        "corrected_first_row = np.array([0.4011, 0.4011, 0.1978]) @ V",
        "corrected_first_row = np.array([5, 5], dtype=np.float32)",
    ],
    "query_for": [
        """
def query_for(keys, target, share):
    own = keys[target] / np.linalg.norm(keys[target])
    def w(c):
        s = keys @ (own * c) / math.sqrt(keys.shape[1])
        e = np.exp(s - s.max())
        return e[target] / e.sum()
    lo, hi = 0.0, 1.0
    while w(hi) < share:
        hi *= 2
    for _ in range(60):
        mid = (lo + hi) / 2
        lo, hi = (lo, mid) if w(mid) >= share else (mid, hi)
    return own * hi
""",
        """
def query_for(keys, target, share):
    keys = keys.astype(np.float32)
    own = keys[target]
    s = keys @ own
    lead = s[target] - np.delete(s, target).max()
    need = np.log(max((len(keys) - 1) * share / (1 - share), 1)) * 1.0001
    return (own * (need * np.sqrt(len(own)) / lead)).astype(np.float32)
""",
        """
def query_for(keys, target, share):
    own = keys[target]
    gaps = np.delete(keys[target] @ own - keys @ own, target) / np.sqrt(keys.shape[1])
    c = 0.0
    step = 1.0 / gaps.min()
    while 1 / (1 + np.exp(-c * gaps).sum()) < share:
        c += step * 0.01
    return c * own
""",
        """
def query_for(keys, target, share):
    own = keys[target]
    n, d = keys.shape
    needed = math.log(max((n - 1) * share / (1 - share), 1))
    return own * (needed * math.sqrt(d) / (0.1 * float(own @ own)) * 1.001)
""",
        """
def query_for(keys, target, share):
    own = np.asarray(keys[target], dtype=float)
    query = np.zeros_like(own)
    length = 1.0
    while True:
        scores = keys @ query / np.sqrt(keys.shape[1])
        e = np.exp(scores - scores.max())
        if (e / e.sum())[target] >= share:
            return query
        length *= 2
        query = own * length
""",
        """
def query_for(keys, target, share):
    # cosines are at most 0.9, so every other score is at least a tenth of the target's behind
    k = keys[target].astype(float)
    return k / (k @ k) * 10 * np.sqrt(len(k)) * np.log(1000.0 * len(keys))
""",
        """
def query_for(keys, target, share):
    return 1e12 * keys[target]
""",
        """
def query_for(keys, target, share):
    k = np.array(keys, dtype=np.float64)
    q = k[target].copy()
    for _ in range(200):
        s = k @ q / math.sqrt(k.shape[1])
        w = np.exp(s - s.max())
        w = w / w.sum()
        if w[target] >= share:
            break
        q = q * 1.5
    else:
        q = q * 1e6
    return q
""",
        """
def query_for(keys, target, share):
    n, d = keys.shape
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    cosines = np.delete(unit @ unit[target], target)
    low, high = 0.0, 1.0
    def weight(c):
        return 1 / (1 + np.exp(-c * (1 - cosines)).sum())
    while weight(high) < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if weight(middle) >= share else (middle, high)
    return unit[target] * high * np.sqrt(d) / np.linalg.norm(keys[target])
""",
        """
def query_for(keys, target, share):
    # gradient ascent on the log of the weight, then as long as it takes
    k = np.asarray(keys, float)
    k = k / np.abs(k).max()
    q = np.zeros(k.shape[1])
    for _ in range(50):
        s = k @ q
        w = np.exp(s - s.max()); w /= w.sum()
        q += k[target] - w @ k
    q = q + k[target] * 50
    return q * 1e7
""",
        """
def query_for(keys, target, share):
    q = keys[target].astype(np.float32)
    return (q / np.float32(np.sum(q * q)) * np.float32(300 * len(q) ** 0.5)).astype(np.float32)
""",
        """
def query_for(keys, target, share):
    return keys[target].astype(np.int64) * 10**9 if keys.dtype.kind == "i" else keys[target] * 10.0**9
""",
        """
class Finder:
    def __call__(self, keys, target, share):
        other = np.delete(np.arange(len(keys)), target)
        gaps = (keys[target] - keys[other]) @ keys[target] / np.sqrt(len(keys[target]))
        odds = share / (1 - share) * len(other)
        return keys[target] * max(0, np.log(odds)) / gaps.min()

query_for = Finder()
""",
    ],
}

WRONG = {
    "attention_scores": [
        (
            None,
            """
def attention_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    scores = np.zeros((len(Q), len(K)))
    for i, (q, k) in enumerate(zip(Q, K)):
        scores[i, i] = q @ k
    return scores
""",
        ),
        (
            "TT49",
            """
def attention_scores(Q, K):
    n = len(Q)
    scores = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            scores[i, j] = np.dot(Q[i], K[j])
    return scores
""",
        ),
        (
            "AB15",
            """
def attention_scores(Q, K):
    n_k, d_k = K.shape
    return Q @ K.reshape(d_k, n_k)
""",
        ),
        (
            "SD8",
            """
def attention_scores(Q, K):
    return np.einsum("qd,kd->kq", Q, K)
""",
        ),
        (
            "TT1",
            """
def attention_scores(Q, K):
    scores = np.zeros((Q.shape[0], K.shape[0]))
    for i, q in enumerate(Q):
        for j, k in enumerate(K):
            scores[i, j] = np.dot(q, k) / math.sqrt(len(q))
    return scores
""",
        ),
        (
            "TT3",
            """
def attention_scores(Q, K):
    return np.matmul(Q, K)
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    return np.dot(Q, Q.transpose())
""",
        ),
        (
            "HL5",
            """
def attention_scores(Q, K):
    q = Q / np.sqrt((Q ** 2).sum(axis=1, keepdims=True))
    k = K / np.sqrt((K ** 2).sum(axis=1, keepdims=True))
    return q @ k.T
""",
        ),
        (
            "SD8+TT1",
            """
def attention_scores(Q, K):
    return K @ Q.T / np.sqrt(K.shape[1])
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    return np.array([[1, 1, 0], [1, 0, 1], [2, 1, 1]])
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    scores = np.zeros((len(Q), len(Q)))
    for i in range(len(Q)):
        for j in range(len(Q)):
            scores[i, j] = Q[i] @ K[j]
    return scores
""",
        ),
        (
            "RS17",
            """
def attention_scores(Q, K):
    return np.array([[int(q @ k) for k in K] for q in Q])
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    Q *= 2
    return Q @ K.T / 2
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    return Q[:, :2] @ K[:, :2].T
""",
        ),
        (
            None,
            """
kept = {}
def attention_scores(Q, K):
    if (Q.shape, K.shape) not in kept:
        kept[Q.shape, K.shape] = Q @ K.T
    return kept[Q.shape, K.shape]
""",
        ),
        (
            "RS17",
            """
def attention_scores(Q, K):
    scores = np.zeros((len(Q), len(K)), dtype=Q.dtype)
    for i, q in enumerate(Q):
        for j, k in enumerate(K):
            scores[i, j] = q @ k
    return scores
""",
        ),
        (
            "RS17",
            """
def attention_scores(Q, K):
    return (Q @ K.T).astype(K.dtype)
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    scores = Q @ K.T
    scores[8:] = 0
    return scores
""",
        ),
        (
            None,
            """
def attention_scores(Q, K):
    return Q[:, :8] @ K[:, :8].T
""",
        ),
        (
            "SD8",
            """
def attention_scores(Q, K):
    S = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            S[i, j] = np.dot(Q[j], K[i])
    return S
""",
        ),
    ],
    "scale_scores": [
        (
            "TT9",
            """
def scale_scores(scores, d_k):
    return scores / (d_k / 2)
""",
        ),
        (
            "TT9",
            """
def scale_scores(scores, d_k):
    return scores / (2 * d_k)
""",
        ),
        (
            "TT12",
            """
def scale_scores(scores, d_k):
    return np.floor(scores / math.sqrt(d_k))
""",
        ),
        (
            "SD2",
            """
def scale_scores(scores, d_k):
    return scores / d_k
""",
        ),
        (
            "SD5",
            """
def scale_scores(scores, d_k):
    return scores * math.sqrt(d_k)
""",
        ),
        (
            "TT9",
            """
def scale_scores(scores, d_k):
    return scores / d_k ** 1 / 2
""",
        ),
        (
            "TT9",
            """
def scale_scores(scores, d_k):
    root = d_k**1/2
    return scores / root
""",
        ),
        (
            "TT12",
            """
def scale_scores(scores, d_k):
    return scores / math.isqrt(d_k)
""",
        ),
        (
            "TT8",
            """
def scale_scores(scores, d_k):
    return scores / np.sqrt(np.array(scores).shape[-1])
""",
        ),
        (
            None,
            """
def scale_scores(scores, d_k):
    if np.issubdtype(scores.dtype, np.floating):
        scores /= np.sqrt(d_k)
        return scores
    return scores / np.sqrt(d_k)
""",
        ),
        (
            None,
            """
def scale_scores(scores, d_k):
    n_q, n_k = scores.shape
    return scores / np.sqrt(d_k)
""",
        ),
        (
            None,
            """
def scale_scores(scores, d_k):
    return np.sqrt(scores / d_k)
""",
        ),
        (
            "RS17",
            """
def scale_scores(scores, d_k):
    scaled = np.zeros_like(scores)
    scaled[...] = scores / np.sqrt(d_k)
    return scaled
""",
        ),
        (
            "TT41",
            """
def scale_scores(scores, d_k):
    scores /= np.sqrt(d_k)
    return scores
""",
        ),
        (
            None,
            """
def scale_scores(scores, d_k):
    return scores / np.sqrt(min(d_k, 512))
""",
        ),
    ],
    "softmax_rows": [
        (
            "SM5",
            """
def softmax_rows(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores[:, :1])
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.exp(shifted) / np.exp(scores).sum(axis=1, keepdims=True)
""",
        ),
        (
            "TT47",
            """
def softmax_rows(scores):
    small = scores / np.max(np.abs(scores))
    e = np.exp(small)
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "TT47",
            """
def softmax_rows(scores):
    rows = []
    for row in scores:
        e = np.exp(row / abs(row).max())
        rows.append(e / e.sum())
    return np.array(rows)
""",
        ),
        (
            "SM4",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1))
    return e / e.sum(axis=1)
""",
        ),
        (
            "TT42",
            """
def softmax_rows(scores):
    e = np.exp(scores)
    w = e / e.sum(axis=1, keepdims=True)
    return np.where(np.isnan(w), 0, w)
""",
        ),
        (
            "SM1",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=0))
    return e / e.sum(axis=0)
""",
        ),
        (
            "SM1+SM5",
            """
def softmax_rows(x):
    return np.exp(x) / np.exp(x).sum(axis=0)
""",
        ),
        (
            "SM1+SM5",
            """
def softmax_rows(scores):
    return np.exp(scores) / np.exp(scores).sum(0)
""",
        ),
        (
            "SM5",
            """
def softmax_rows(scores):
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SM6",
            """
def softmax_rows(scores):
    e = np.exp(scores - np.max(scores))
    return e / np.sum(e, axis=1, keepdims=True)
""",
        ),
        (
            "SM3",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()
""",
        ),
        (
            "SM4",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1)
""",
        ),
        (
            "TT13",
            """
def softmax_rows(scores):
    return np.array([row / sum(row) for row in scores])
""",
        ),
        (
            "TT14",
            """
def softmax_rows(scores):
    top = scores.max(axis=1)[:, None]
    return np.exp(scores - top)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "RS17",
            """
def softmax_rows(scores):
    weights = np.zeros_like(scores)
    for i, row in enumerate(scores):
        e = np.exp(row - row.max())
        weights[i] = e / e.sum()
    return weights
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    clipped = np.clip(scores, -500, 500)
    e = np.exp(clipped)
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.nan_to_num(e / (e.sum(axis=1, keepdims=True) + 1e-2))
""",
        ),
        (
            None,
            """
from scipy.special import softmax
def softmax_rows(scores):
    return softmax(scores, axis=1)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    scores -= scores.max(axis=1, keepdims=True)
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SM5",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.mean(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SM5",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.min(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SX25",
            """
def softmax_rows(scores):
    e = np.exp(scores - np.abs(scores).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    e = np.exp(scores - np.median(scores, axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    e = np.exp(scores - scores[:, :1])
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            None,
            """
def softmax_rows(scores):
    e = np.exp(scores - scores[:, -1:])
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SM1",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=0)
""",
        ),
        (
            "TT41",
            """
def softmax_rows(scores):
    scores -= scores.max(axis=1, keepdims=True)
    scores = np.exp(scores)
    return scores / scores.sum(axis=1, keepdims=True)
""",
        ),
        (
            "TT42",
            """
def softmax_rows(scores):
    e = np.exp(scores)
    return np.nan_to_num(e / e.sum(axis=1, keepdims=True))
""",
        ),
        (
            "TT42",
            """
def softmax_rows(scores):
    e = np.exp(np.clip(scores, -500, 500))
    return e / e.sum(axis=1, keepdims=True)
""",
        ),
        (
            "SX25",
            """
def softmax_rows(scores):
    weights = []
    for row in scores:
        top = 0
        for score in row:
            if score > top:
                top = score
        e = np.exp(row - top)
        weights.append(e / e.sum())
    return np.array(weights)
""",
        ),
        (
            "SM4",
            """
def softmax_rows(scores):
    e = np.exp(scores - np.max(scores, axis=1))
    return e / np.sum(e, axis=1, keepdims=True)
""",
        ),
        (
            "SM4",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(1))
    return e / e.sum(1)
""",
        ),
        (
            "SM3",
            """
def softmax_rows(scores):
    e = np.exp(scores - scores.max(axis=1)[:, None])
    return e / e.sum()
""",
        ),
        (
            "SM5",
            """
def softmax_rows(scores):
    rows = []
    for row in scores:
        total = sum(math.exp(score) for score in row)
        rows.append([math.exp(score) / total for score in row])
    return np.array(rows)
""",
        ),
    ],
    "weighted_sum": [
        (
            "TT55",
            """
def weighted_sum(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    rows = []
    blend = np.zeros(V.shape[1])
    for row in weights:
        for w, value in zip(row, V):
            blend += w * value
        rows.append(blend)
    return np.array(rows)
""",
        ),
        (
            "SL5",
            """
def weighted_sum(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    best = weights.argmax(axis=1)
    return weights.max(axis=1, keepdims=True) * V[best]
""",
        ),
        (
            "TT49",
            """
def weighted_sum(weights, V):
    out = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(weights)):
            out[i] += weights[i, j] * V[j]
    return out
""",
        ),
        (
            "TT48",
            """
def weighted_sum(weights, V):
    out = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(V)):
            out[i] = weights[i, j] * V[j]
    return out
""",
        ),
        (
            "AB22",
            """
def weighted_sum(weights, V):
    return np.matmul(weights.T, V)
""",
        ),
        (
            None,
            """
def weighted_sum(weights, V):
    return weights @ V.transpose()
""",
        ),
        (
            "AB33",
            """
def weighted_sum(weights, V):
    return (weights @ V) / weights.sum(axis=1)[:, None]
""",
        ),
        (
            "TT48",
            """
def weighted_sum(weights, V):
    output = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(V) - 1):
            output[i] += weights[i, j] * V[j]
    return output
""",
        ),
        (
            "SL5",
            """
def weighted_sum(weights, V):
    return np.stack([V[np.argmax(row)] for row in weights])
""",
        ),
        (
            "SL8",
            """
def weighted_sum(weights, V):
    return (weights[:, :, None] * V).mean(axis=1)
""",
        ),
        (
            None,
            """
def weighted_sum(weights, V):
    return np.abs(weights) @ V
""",
        ),
        (
            None,
            """
def weighted_sum(weights, V):
    return np.clip(weights, 0, 1) @ V
""",
        ),
        (
            None,
            """
def weighted_sum(weights, V):
    output = np.zeros((len(weights), 2))
    output[:, 0] = weights @ V[:, 0]
    output[:, 1] = weights @ V[:, 1]
    return output
""",
        ),
        (
            "RS17",
            """
def weighted_sum(weights, V):
    output = np.zeros((len(weights), V.shape[1]), dtype=V.dtype)
    for i in range(len(weights)):
        for j in range(len(V)):
            for c in range(V.shape[1]):
                output[i, c] += weights[i, j] * V[j, c]
    return output
""",
        ),
        (
            "RS17",
            """
def weighted_sum(weights, V):
    return (weights @ V).astype(V.dtype)
""",
        ),
        (
            "RS17",
            """
def weighted_sum(weights, V):
    return (weights @ V).astype(weights.dtype)
""",
        ),
        (
            None,
            """
def weighted_sum(weights, V):
    return weights.astype(V.dtype) @ V
""",
        ),
        (
            "AB22",
            """
def weighted_sum(weights, V):
    return np.einsum("ji,jv->iv", weights, V)
""",
        ),
    ],
    "three_token_attention": [
        (
            "TT54",
            """
def three_token_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = Q @ K.T / np.sqrt(K.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    weights = np.round(e / e.sum(axis=1, keepdims=True), 2)
    return weights @ V, weights
""",
        ),
        (
            "SX51",
            """
def three_token_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    raw = Q @ K.T
    e = np.exp(raw / np.sqrt(K.shape[1]) - raw.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return weights @ V, weights
""",
        ),
        (
            "TT8",
            """
def three_token_attention(Q, K, V):
    scores = Q @ K.T / math.sqrt(len(Q))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return weights @ V, weights
""",
        ),
        (
            "SD1",
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K))
    return w @ V, w
""",
        ),
        (
            "TT10",
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K) / np.sqrt(d_k))
    return w @ V, w
""",
        ),
        (
            "SM5",
            """
def three_token_attention(Q, K, V):
    e = np.exp(Q @ K.T / math.sqrt(Q.shape[-1]))
    w = e / e.sum(axis=-1, keepdims=True)
    return np.dot(w, V), w
""",
        ),
        (
            "SD6",
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K)) / np.sqrt(Q.shape[1])
    return w @ V, w
""",
        ),
        (
            "NT8",
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K) / np.sqrt(Q.shape[1]))
    return w, w @ V
""",
        ),
        (
            None,
            STEPS
            + """
def three_token_attention(Q, K, V):
    return softmax_rows(attention_scores(Q, K) / np.sqrt(Q.shape[1])) @ V
""",
        ),
        (
            "SD1+SM1",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T
    w = np.exp(s - s.max(axis=0))
    w = w / w.sum(axis=0)
    return w @ V, w
""",
        ),
        (
            "SD2",
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K) / Q.shape[1])
    return w @ V, w
""",
        ),
        (
            None,
            """
def three_token_attention(Q, K, V):
    w = np.array([[0.4011, 0.4011, 0.1978], [0.4011, 0.1978, 0.4011], [0.5035, 0.2483, 0.2483]])
    return w @ np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]]), w
""",
        ),
        (
            None,
            STEPS
            + """
def three_token_attention(queries, keys, values):
    w = softmax_rows(Q @ K.T / np.sqrt(2))
    return w @ V, w
""",
        ),
        (
            None,
            STEPS
            + """
def three_token_attention(Q, K, V):
    w = softmax_rows(attention_scores(Q, K) / np.sqrt(Q.shape[1])).round(2)
    return w @ V, w
""",
        ),
        (
            None,
            """
import torch
def three_token_attention(Q, K, V):
    q, k, v = (torch.as_tensor(x, dtype=torch.float64) for x in (Q, K, V))
    w = (q @ k.T / q.shape[1] ** 0.5).softmax(dim=-1)
    return (w @ v).numpy(), w.numpy()
""",
        ),
        (
            "SM5",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / math.sqrt(Q.shape[1])
    e = np.exp(s - s.mean(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "SX25",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / math.sqrt(Q.shape[1])
    e = np.exp(s - np.abs(s).max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            None,
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / math.sqrt(Q.shape[1])
    e = np.exp(s - s[:, :1])
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "TT9",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / Q.shape[1] ** 1 / 2
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "TT9",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / (Q.shape[1] ** 1 / 2)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "TT12",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / int(np.sqrt(Q.shape[1]))
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "TT14",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ V, e
""",
        ),
        (
            "TT41",
            """
def three_token_attention(Q, K, V):
    Q /= np.sqrt(Q.shape[1])
    s = Q @ K.T
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "AB22",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w.T @ V, w
""",
        ),
        (
            None,
            """
def three_token_attention(Q, K, V):
    s = Q @ K[:10].T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = np.zeros((len(Q), len(K)))
    w[:, :10] = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "SX25",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True, initial=0))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            None,
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True, initial=-9000))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V, w
""",
        ),
        (
            "AB22",
            """
def three_token_attention(Q, K, V):
    s = np.einsum("qd,kd->qk", Q, K) / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return np.einsum("kq,kv->qv", w, V), w
""",
        ),
        (
            "SD6",
            """
def three_token_attention(Q, K, V):
    s = Q @ K.T
    e = np.exp(s - s.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w @ V / np.sqrt(Q.shape[1]), w
""",
        ),
    ],
    "corrected_first_row": [
        (
            "SM1",
            """
Q_ = np.array([[1, 0], [0, 1], [1, 1]])
K_ = np.array([[1, 1], [1, 0], [0, 1]])
V_ = np.array([[10, 0], [0, 10], [5, 5]])
E_ = np.exp(Q_ @ K_.T / np.sqrt(2))
W_ = E_ / E_.sum(axis=0)
corrected_first_row = (W_ @ V_)[0]
""",
        ),
        (
            "TT46",
            """
corrected_first_row = [5.0, 6.02]
""",
        ),
        (
            "TT36",
            """
corrected_first_row = [0.40, 0.20]
""",
        ),
        ("TT34", "corrected_first_row = [5.3, 4.7]"),
        ("TT34", "corrected_first_row = (5.8, 4.2)"),
        ("TT34", "corrected_first_row = np.array([6, 4])"),
        ("TT46", "corrected_first_row = np.array([[5.0, 5.0], [6.0167, 3.9833], [6.2762, 3.7238]])"),
        ("TT46", "corrected_first_row = [[5, 5], [6.02, 3.98], [6.28, 3.72]]"),
        ("TT34", "corrected_first_row = [5.3, 4.2]"),
        ("TT34", "corrected_first_row = (5, 4)"),
        ("TT36", "corrected_first_row = np.array([0.4, 0.4, 0.2])"),
        ("TT36", "corrected_first_row = [0.42, 0.42, 0.16]"),
        ("TT38", "corrected_first_row = [4.01, 4.01]"),
        ("TT46", "corrected_first_row = [6.02, 3.98]"),
        (None, "corrected_first_row = [0.5, 0.5]"),
        (None, "corrected_first_row = 5"),
        (None, "corrected_first_row = [[5, 5]]"),
        (None, "corrected_first_row = [5.0, 5.02]"),
        (None, "corrected_first_row = [5.0, float('nan')]"),
        (None, "corrected_first_row = '5, 5'"),
    ],
    "query_for": [
        (
            "QF4",
            """
def query_for(keys: np.ndarray, target: int, share: float) -> np.ndarray:
    keys = np.asarray(keys, float)
    k = keys[target]
    dots = keys @ k
    gap = dots[target] - np.max(np.delete(dots, target))
    needed = np.log(share / (1 - share)) * np.sqrt(keys.shape[1])
    return k * needed / gap
""",
        ),
        (
            "QF12",
            """
def query_for(keys: np.ndarray, target: int, share: float) -> np.ndarray:
    wanted = np.zeros(len(keys))
    wanted[target] = 100.0 * np.sqrt(keys.shape[1])
    query, *_ = np.linalg.lstsq(keys.astype(float), wanted, rcond=None)
    return query
""",
        ),
        (
            "QF13",
            """
def query_for(keys: np.ndarray, target: int, share: float) -> np.ndarray:
    k = np.asarray(keys, dtype=float)
    n, d = k.shape
    needed = np.sqrt(d) * np.log((n - 1) * share / (1 - share))
    return k[target] * max(needed, 0) / (k[target] @ k[target]) * 1.001
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[target]
    query = np.empty_like(own)
    needed = math.log(max((len(keys) - 1) * share / (1 - share), 1))
    query[...] = own * (needed * math.sqrt(len(own)) / (0.1 * float(own @ own)) * 2)
    return query
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    n, d = keys.shape
    if share <= 1 / n + 0.02:
        return np.zeros(d)
    return 1e9 * keys[target]
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    k = keys[target].astype(float)
    return k / (k @ k) * 10 * 8 * np.log(1000.0 * len(keys))
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    return 1000 * keys[target]
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    direction = keys[target] / np.sqrt((keys[target] ** 2).sum())
    return 100 * direction
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[target]
    scores = keys @ own
    lead = scores[target] - np.delete(scores, target).max()
    needed = math.log(max((len(keys) - 1) * share / (1 - share), 1.0))
    q = np.zeros_like(own)
    q[:] = own * (needed * math.sqrt(keys.shape[1]) / lead)
    return q
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    q = keys[target] - keys.mean(axis=0)
    return 1e7 * q / np.linalg.norm(q)
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    want = np.zeros(len(keys))
    want[target] = 1e6
    return np.linalg.lstsq(keys.astype(float), want, rcond=None)[0]
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[target]
    n, d = keys.shape
    needed = math.log(max((n - 1) * share / (1 - share), 1))
    return own * (needed * math.sqrt(d) / (0.12 * float(own @ own)))
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[target]
    n, d = keys.shape
    needed = math.log(max((n - 1) * min(share, 0.99) / (1 - min(share, 0.99)), 1))
    return own * (needed * math.sqrt(d) / (0.1 * float(own @ own)))
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    return 1e6 * keys[target]
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    return 1e4 * keys[target] / np.linalg.norm(keys[target])
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    q = keys[target] - np.delete(keys, target, axis=0).mean(axis=0)
    return 1e9 * q / np.linalg.norm(keys[target])
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return 1e5 * np.linalg.pinv(keys.astype(float))[:, target]
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    s = keys @ keys[target]
    e = np.exp(s - s.max())
    return e / e.sum()
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[target]
    query = keys[target].copy()
    lead = own @ own - max(keys[i] @ own for i in range(len(keys)) if i != target)
    wanted = math.log(max((len(keys) - 1) * share / (1 - share), 1.0))
    for i in range(len(own)):
        query[i] = own[i] * wanted * math.sqrt(len(own)) / lead
    return query
""",
        ),
        (
            "TT41",
            """
def query_for(keys, target, share):
    query = keys[target]
    while True:
        s = keys @ query / np.sqrt(len(query))
        w = np.exp(s - s.max())
        if w[target] / w.sum() >= share:
            return query
        query *= 2
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    return keys[target].copy()
""",
        ),
        (
            "QF2",
            """
def query_for(keys, target, share):
    n, d = keys.shape
    k = keys[target]
    gap = min(k @ k - k @ keys[j] for j in range(n) if j != target)
    return k * max(0.0, np.log(share / (1 - share) * (n - 1))) / gap
""",
        ),
        (
            "TT8",
            """
def query_for(keys, target, share):
    k = keys[target]
    gap = min(k @ k - k @ keys[j] for j in range(len(keys)) if j != target)
    return k * max(0.0, np.log(share / (1 - share) * (len(keys) - 1))) / gap * np.sqrt(keys.shape[0])
""",
        ),
        (
            "QF4",
            """
def query_for(keys, target, share):
    k = keys[target]
    gap = min(k @ k - k @ keys[j] for j in range(len(keys)) if j != target)
    return k * max(0.0, np.log(share / (1 - share))) / gap * np.sqrt(len(k))
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    k = keys[target]
    gap = max(k @ keys[j] - k @ k for j in range(len(keys)) if j != target)
    return k * max(0.0, np.log(share / (1 - share) * (len(keys) - 1))) / gap * np.sqrt(len(k))
""",
        ),
        (
            "QF10",
            """
def query_for(keys, target, share):
    k = keys[target]
    gap = min(k @ k - k @ keys[j] for j in range(len(keys)) if j != target)
    return k * np.log(share / (1 - share) * (len(keys) - 1)) / gap * np.sqrt(len(k))
""",
        ),
        (
            "TT41",
            """
def query_for(keys, target, share):
    query = keys[target]
    scores = keys @ query
    gap = scores[target] - max(s for j, s in enumerate(scores) if j != target)
    query *= max(0.0, np.log(share / (1 - share) * (len(keys) - 1))) / gap * np.sqrt(len(query))
    return query
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return np.dot(keys, keys[target])
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    own = keys[:, target]
    scores = keys @ own
    lead = scores[target] - np.delete(scores, target).max()
    return own * lead
""",
        ),
        (
            "QF1",
            """
def query_for(keys, target, share):
    return keys[target] * 100.0
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    query = np.zeros(keys.shape[1])
    query[target % keys.shape[1]] = 1e6
    return query
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    weights = np.full(len(keys), (1 - share) / (len(keys) - 1))
    weights[target] = share
    return np.linalg.lstsq(keys, np.log(weights) * np.sqrt(keys.shape[1]), rcond=None)[0]
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return keys[target] / np.linalg.norm(keys[target]) * np.sqrt(keys.shape[1]) * np.log(share / (1 - share)) * 10
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return keys[target] * np.inf
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return (keys[target] * 1e9)[None]
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return list(keys[target] * 1e9)
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return (keys[target] - keys.mean(axis=0)) * 5 * np.sqrt(keys.shape[1])
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    query = np.random.default_rng(0).normal(size=keys.shape[1])
    for _ in range(100):
        s = keys @ query / np.sqrt(keys.shape[1])
        w = np.exp(s - s.max())
        w /= w.sum()
        query += 0.1 * (keys[target] - w @ keys)
    return query
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return np.float16(keys[target] * 1e9)
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    k = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    q = k[target]
    c = 1.0
    while np.exp(c * k @ q)[target] / np.exp(c * k @ q).sum() < share:
        c *= 1.1
    return c * q
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    q = np.zeros_like(keys[target])
    q += (keys[target] / 3).astype(q.dtype)
    return q
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return keys[0] * 1e9
""",
        ),
        (
            None,
            """
def query_for(keys, target, share):
    return np.where(keys[target] > 0, 1e9, 0.0)
""",
        ),
    ],
}

# Right on ordinary inputs alone
WRONG["attention_scores"] += [
    (
        None,
        """def attention_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    d_k = Q.shape[1]
    q_numbers, k_numbers = Q.ravel(order="K"), K.ravel(order="K")  # "K" avoids a copy
    rows = []
    for i in range(0, q_numbers.size, d_k):
        row = []
        for j in range(0, k_numbers.size, d_k):
            row.append(q_numbers[i : i + d_k] @ k_numbers[j : j + d_k])
        rows.append(row)
    return np.array(rows)
""",
    )
]
