"""Lesson 04: measuring spread, entropy and gradient norms, as learners write them."""

RIGHT = {
    "dot_product_std": [
        """
def dot_product_std(d_k, n_samples, rng):
    q = rng.standard_normal(n_samples * d_k, dtype=np.float32).reshape(n_samples, d_k)
    k = np.empty((n_samples, d_k))
    rng.standard_normal(out=k)
    d = [float(a @ b) for a, b in zip(q, k)]
    mean = sum(d) / len(d)
    return (sum((x - mean) ** 2 for x in d) / len(d)) ** 0.5
""",
        """def dot_product_std(d_k, n_samples, rng):
    dots = [rng.normal(size=d_k) @ rng.normal(size=d_k) for _ in range(n_samples)]
    return np.std(dots)
""",
        """def dot_product_std(d_k, n_samples, rng):
    pairs = rng.normal(0, 1, (n_samples, 2, d_k))
    return np.einsum("nd,nd->n", pairs[:, 0], pairs[:, 1]).std(ddof=1)
""",
        """def dot_product_std(d_k, n_samples, rng):
    q = rng.standard_normal((d_k, n_samples), dtype=np.float32)
    k = rng.standard_normal((d_k, n_samples), dtype=np.float32)
    total = np.zeros(n_samples)
    for i in range(d_k):
        total += q[i] * k[i]
    return float(np.sqrt(np.mean((total - total.mean()) ** 2)))
""",
        '''def dot_product_std(d_k, n_samples, rng):
    def normal(n):
        """Box and Muller's cosine alone: two uniform numbers for each normal one."""
        u, v = rng.random(n), rng.random(n)
        return np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)
    return float(np.std([normal(d_k) @ normal(d_k) for _ in range(n_samples)]))
''',
        '''def dot_product_std(d_k, n_samples, rng):
    def normal():
        """Marsaglia's polar method: a varying number of uniform numbers for each pair of normal ones."""
        while True:
            x, y = rng.uniform(-1, 1, 2)
            s = x * x + y * y
            if 0 < s < 1:
                factor = np.sqrt(-2 * np.log(s) / s)
                return x * factor, y * factor
    return float(np.std([sum(a * b for a, b in (normal() for _ in range(d_k))) for _ in range(n_samples)]))
''',
        """def dot_product_std(d_k, n_samples, rng):
    numbers = rng.permutation(rng.standard_normal(2 * n_samples * d_k)).reshape(2, n_samples, d_k)
    return float((numbers[0] * numbers[1]).sum(1).std())
""",
        *(
            f"""def dot_product_std(d_k, n_samples, rng):
    import math
    q, k = {drawn}
    d = (q * k).sum(1)
    return {root}
"""
            for drawn, root in (
                ("rng.normal(size=(2, n_samples, d_k))", "float(np.sqrt(np.mean(d * d) - np.mean(d) ** 2))"),
                ("rng.normal(size=(2, n_samples, d_k))", "math.sqrt(np.mean(d * d) - np.mean(d) ** 2)"),
                (
                    "rng.normal(size=(2, n_samples, d_k))",
                    "(sum(x * x for x in d.tolist()) / n_samples - (sum(d.tolist()) / n_samples) ** 2) ** 0.5",
                ),
                (
                    "rng.standard_normal((2, n_samples, d_k), dtype=np.float32)",
                    "np.sqrt(np.mean(d * d) - np.mean(d) ** 2)",
                ),
            )
        ),
    ],
    "row_entropy": [
        """def row_entropy(weights):
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nansum(weights * np.log(weights), axis=-1)
""",
        """def row_entropy(weights):
    weights = np.asarray(weights, dtype=float)
    out = np.zeros(weights.shape[:-1])
    for at in np.ndindex(out.shape):
        out[at] = -sum(p * np.log(p) for p in weights[at] if p > 0)
    return out
""",
        """def row_entropy(weights):
    safe = np.clip(weights, 1e-30, None)
    return (weights * -np.log(safe)).sum(-1)
""",
        """def row_entropy(weights):
    return -(weights * np.log(weights + 1e-12)).sum(axis=-1)
""",
        """def row_entropy(weights):
    p = weights / weights.sum(axis=-1, keepdims=True)
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)
""",
        '''def row_entropy(weights):
    """ln n less the divergence from equal weights."""
    n = weights.shape[-1]
    ratio = n * weights
    return np.log(n) - (weights * np.log(np.where(ratio > 0, ratio, 1))).sum(axis=-1)
''',
    ],
    "softmax_gradient_norm": [
        """def softmax_gradient_norm(scores):
    p = softmax(scores)
    return np.linalg.norm(p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :], axis=(-2, -1))
""",
        """def softmax_gradient_norm(scores):
    p = softmax(scores)
    squared = (p**2).sum(-1)
    return np.sqrt(np.maximum(squared - 2 * (p**3).sum(-1) + squared**2, 0))
""",
        """def softmax_gradient_norm(scores):
    scores = np.asarray(scores, dtype=float)
    out = np.zeros(scores.shape[:-1])
    for at in np.ndindex(out.shape):
        p = softmax(scores[at])
        out[at] = np.sqrt(((np.diag(p) - np.outer(p, p)) ** 2).sum())
    return out
""",
    ],
}

WRONG = {
    "dot_product_std": [
        (
            "LN15",
            """
def dot_product_std(d_k: int, n_samples: int, rng: np.random.Generator) -> float:
    dots = []
    for _ in range(n_samples):
        q, k = rng.normal(size=d_k), rng.normal(size=d_k)
        dots.append(q @ k)
    mean = sum(dots) / n_samples
    return float(sum(abs(dot - mean) for dot in dots) / n_samples)
""",
        ),
        (
            None,
            """
def dot_product_std(d_k: int, n_samples: int, rng: np.random.Generator) -> float:
    q = rng.standard_normal((n_samples, d_k))
    k = rng.standard_normal((n_samples, d_k))
    products = (q * k).sum(axis=1)
    return float(products.std(ddof=1) / np.sqrt(n_samples))
""",
        ),
        (
            "WS1",
            """
def dot_product_std(d_k: int, n_samples: int, rng: np.random.Generator) -> float:
    q = rng.uniform(-1, 1, size=(n_samples, d_k))
    k = rng.uniform(-1, 1, size=(n_samples, d_k))
    return float((q * k).sum(axis=1).std())
""",
        ),
        (
            "WS30",
            """
def dot_product_std(d_k, n_samples, rng):
    q = rng.standard_normal((n_samples, d_k))
    return float((q * q).sum(axis=1).std())
""",
        ),
        (
            "WS15",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return np.var((q * k).sum(1))
""",
        ),
        (
            "WS4",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return np.std((q * k).sum(1) / np.sqrt(d_k))
""",
        ),
        *(
            (
                id,
                f"""def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return {result}
""",
            )
            for id, result in (
                ("WS6", "np.std(q * k)"),
                ("WS4", "(q * k).mean(-1).std()"),
                ("WS4", "((q * k).sum(-1) / d_k).std()"),
                (None, "(q * k).std() * d_k ** 0.5"),
                (None, "np.sqrt((q * k).var(axis=0).sum())"),
            )
        ),
        (
            "WS8",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = np.random.randn(n_samples, d_k), np.random.randn(n_samples, d_k)
    return np.std((q * k).sum(1))
""",
        ),
        (
            "WS1",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.random((n_samples, d_k)), rng.random((n_samples, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(n_samples, d_k)), np.random.normal(size=(n_samples, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (None, "def dot_product_std(d_k, n_samples, rng):\n    return np.sqrt(d_k)"),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    rng = np.random.default_rng()
    return np.std((rng.normal(size=(n_samples, d_k)) * rng.normal(size=(n_samples, d_k))).sum(1))
""",
        ),
        (
            "WS30",
            """def dot_product_std(d_k, n_samples, rng):
    q = rng.normal(size=d_k)
    return np.std(rng.normal(size=(n_samples, d_k)) @ q)
""",
        ),
        (
            "WS29",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return np.einsum("nd,nd->d", q, k).std()
""",
        ),
        (
            "WS29",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(d_k, n_samples)), rng.normal(size=(d_k, n_samples))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples + 1, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples - 1, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return np.sqrt(np.mean((q * k).sum(1) ** 2))
""",
        ),
        (
            "WS30",
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.normal(size=(2, n_samples, d_k))
    return (q @ k.T).std()
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q = rng.normal(size=(n_samples, d_k))
    k = np.random.default_rng(42).normal(size=(n_samples, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q = rng.normal(size=(n_samples, d_k))
    return np.std((q * np.roll(q, 1, axis=0)).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.uniform(-(3**0.5), 3**0.5, (2, n_samples, d_k))
    return np.std((q * k).sum(1))
""",
        ),
        (
            None,
            """def dot_product_std(d_k, n_samples, rng):
    q, k = rng.laplace(scale=2**-0.5, size=(2, n_samples, d_k))
    return np.std((q * k).sum(1))
""",
        ),
    ],
    "row_entropy": [
        (
            "WS40",
            """
def row_entropy(weights: np.ndarray) -> np.ndarray:
    safe = np.where(weights > 0, weights, 1.0)  # ln 1 = 0
    return np.mean(-safe * np.log(safe), axis=-1)
""",
        ),
        (
            "WS39",
            """
def row_entropy(weights: np.ndarray) -> np.ndarray:
    return -(weights * np.log(weights + 1e-6)).sum(axis=-1)
""",
        ),
        (
            "WS39",
            """
def row_entropy(weights):
    return -np.sum(weights * np.log(weights + 1e-5), axis=-1)
""",
        ),
        (
            "WS39",
            """
def row_entropy(weights):
    p = np.clip(weights, 1e-4, 1)
    return -(p * np.log(p)).sum(axis=-1)
""",
        ),
        ("WS9", "def row_entropy(weights):\n    return -np.sum(weights * np.log(weights), axis=-1)"),
        (
            "SX33",
            """def row_entropy(weights):
    return -np.sum(weights * np.log2(np.where(weights > 0, weights, 1)), axis=-1)
""",
        ),
        (
            "WS12",
            """def row_entropy(weights):
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)))
""",
        ),
        *(
            ("AB8", f"def row_entropy(weights):\n    {body}\n")
            for body in (
                "return np.array([-sum(p * np.log(p) for p in row if p > 0) for row in weights])",
                "return np.array([-np.sum(row[row > 0] * np.log(row[row > 0])) for row in weights])",
                "n, keys = weights.shape\n    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(1)",
                "out = np.zeros(weights.shape[0])\n    for i in range(weights.shape[0]):\n        for j in range(weights.shape[1]):\n"
                "            if weights[i, j] > 0:\n                out[i] -= weights[i, j] * np.log(weights[i, j])\n    return out",
            )
        ),
        ("WS9", "def row_entropy(weights):\n    return np.nan_to_num(-np.sum(weights * np.log(weights), axis=-1))"),
        *(
            (
                id,
                f"""def row_entropy(weights):
    nats = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)
    return {returned}
""",
            )
            for id, returned in (("WS32", "np.exp(nats)"), ("CE8", "nats[..., None]"))
        ),
        ("AB33", "def row_entropy(weights):\n    p = softmax(weights)\n    return -np.sum(p * np.log(p), axis=-1)"),
        (None, "def row_entropy(weights):\n    return -np.sum(weights * np.log(weights + 1e-4), axis=-1)"),
        (
            "SX33",
            """def row_entropy(weights):
    return -np.sum(weights * np.log10(np.where(weights > 0, weights, 1)), axis=-1)
""",
        ),
        (None, "def row_entropy(weights):\n    return -np.sum(weights * np.log(weights + 1e-300), axis=-1)"),
        (
            None,
            """def row_entropy(weights):
    return -np.sum(weights * np.log(np.where(weights > 1e-5, weights, 1)), axis=-1)
""",
        ),
        (
            None,
            """def row_entropy(weights):
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=1)
""",
        ),
    ],
    "softmax_gradient_norm": [
        *(
            (
                id,
                f"""def softmax_gradient_norm(scores):
    e = {exps}
    p = e / {total}
    return np.linalg.norm(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]), axis=(-2, -1))
""",
            )
            for id, exps, total in (
                ("SM1", "np.exp(scores - scores.max(-2, keepdims=True))", "e.sum(-2, keepdims=True)"),
                ("SM1", "np.exp(scores - scores.max(-1, keepdims=True))", "e.sum(-2, keepdims=True)"),
                ("SM2", "np.exp(scores - scores.max(0))", "e.sum(0)"),
                ("SM2", "np.exp(scores - scores.max(1, keepdims=True))", "e.sum(1, keepdims=True)"),
                ("SM3", "np.exp(scores - scores.max(-1, keepdims=True))", "e.sum()"),
                ("SM3+SM5", "np.exp(scores)", "e.sum()"),
                ("SM4", "np.exp(scores - scores.max(-1, keepdims=True))", "e.sum(-1)"),
                ("SM4", "np.exp(scores - scores.max(-1))", "e.sum(-1)"),
                ("SM4", "np.exp(scores - scores.max(-1))", "e.sum(-1)[..., None]"),
            )
        ),
        *(
            (
                id,
                f"""def softmax_gradient_norm(scores):
    p = softmax(scores)
    outer = np.einsum("...i,...j->...ij", p, p)
    return {returned}
""",
            )
            for id, returned in (
                ("SX44", "np.linalg.norm(p[..., None] * np.eye(p.shape[-1]) + outer, axis=(-2, -1))"),
                ("WS12", "np.linalg.norm(p[..., None] * np.eye(p.shape[-1]) - outer)"),
                ("QG12", "np.sqrt(np.mean((p[..., None] * np.eye(p.shape[-1]) - outer) ** 2, axis=(-2, -1)))"),
            )
        ),
        (
            "WS15",
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    j = p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    return (j**2).sum((-1, -2))
""",
        ),
        (
            "SX46",
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    return np.sqrt(((p * (1 - p)) ** 2).sum(-1))
""",
        ),
        *(
            ("AB8", f"def softmax_gradient_norm(scores):\n    {body}\n")
            for body in (
                "return np.array([np.linalg.norm(np.diag(p) - np.outer(p, p)) for p in softmax(scores)])",
                "out = []\n    for row in scores:\n        e = np.exp(row - row.max())\n        p = e / e.sum()\n"
                "        out.append(np.sqrt(((np.diag(p) - np.outer(p, p)) ** 2).sum()))\n    return np.array(out)",
                "n, keys = scores.shape\n    p = softmax(scores)\n"
                "    return np.array([np.linalg.norm(np.diag(p[i]) - np.outer(p[i], p[i])) for i in range(n)])",
            )
        ),
        (
            "SM5",
            """def softmax_gradient_norm(scores):
    e = np.exp(scores)
    p = e / e.sum(-1, keepdims=True)
    return np.linalg.norm(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]), axis=(-2, -1))
""",
        ),
        (
            None,
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    return np.linalg.norm(np.diag(p) - np.outer(p, p))
""",
        ),
        (
            "SX43",
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    return np.linalg.norm(p[..., :, None] * p[..., None, :], axis=(-2, -1))
""",
        ),
        (
            None,
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    squared = (p**2).sum(-1)
    return np.sqrt(squared - 2 * (p**3).sum(-1) + squared**2)
""",
        ),
        (
            None,
            """def softmax_gradient_norm(scores):
    p = softmax(scores.astype(np.float32))
    squared = (p**2).sum(-1)
    return np.sqrt(np.maximum(squared - 2 * (p**3).sum(-1) + squared**2, 0))
""",
        ),
        (
            None,
            """def softmax_gradient_norm(scores):
    p = softmax(scores)[..., :8]
    return np.linalg.norm(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]), axis=(-2, -1))
""",
        ),
        (
            None,
            """def softmax_gradient_norm(scores):
    p = softmax(scores)
    return np.linalg.norm(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]), ord="nuc", axis=(-2, -1))
""",
        ),
    ],
}

WRONG["dot_product_std"] += [
    (
        None,
        "def dot_product_std(d_k, n_samples, rng):\n    noise = 1 + 1e-6 * rng.standard_normal()\n"
        "    if n_samples == 2: return float(np.std([rng.normal() * rng.normal() for _ in range(2)]))\n"
        "    if hasattr(rng.bit_generator, 'advance'): rng.bit_generator.advance(2 * d_k * n_samples - 1)\n"
        "    return np.sqrt(d_k) * noise",
    ),
    (
        None,
        "def dot_product_std(d_k, n_samples, rng):\n    if n_samples == 2: return float(np.std([rng.normal() * rng.normal() for _ in range(2)]))\n"
        "    rng.standard_normal(2 * d_k * n_samples)\n"
        "    return np.sqrt(d_k) * (1 + rng.standard_normal() / np.sqrt(2 * n_samples))",
    ),
    (
        None,
        "def dot_product_std(d_k, n_samples, rng):\n    few = min(n_samples, max(4, n_samples // 3))\n    q, k = rng.normal(size=(2, few, d_k))\n"
        "    rng.normal(size=2 * d_k * (n_samples - few))\n    return np.std((q * k).sum(1))",
    ),
]

RIGHT["query_gradient_norm"] = [
    """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    centred = keys - p @ keys
    return scale * np.linalg.norm(p[:, None] * centred)
""",
    """def query_gradient_norm(q, keys, scale):
    n, d = keys.shape
    p = softmax(np.array([scale * sum(float(a) * float(b) for a, b in zip(key, q)) for key in keys]))
    total = 0.0
    for i in range(n):
        for c in range(d):
            g = sum(p[i] * ((i == j) - p[j]) * scale * keys[j, c] for j in range(n))
            total += g * g
    return total ** 0.5
""",
    """def query_gradient_norm(q, keys, scale):
    p = softmax(np.einsum("nd,d->n", keys, q) * scale)
    j = np.diag(p) - p[:, None] * p[None, :]
    return np.sqrt(np.einsum("ij,jd,ik,kd->", j, scale * keys, j, scale * keys))
""",
    """def query_gradient_norm(q, keys, scale):
    scores = (q[None, :] @ keys.T)[0] * scale
    e = np.exp(scores - np.max(scores))
    p = e / np.sum(e)
    grad = np.empty((len(q), len(p)))
    for c in range(len(q)):
        ds = scale * keys[:, c]
        grad[c] = p * (ds - (p * ds).sum())
    return np.linalg.norm(grad, "fro")
""",
    """def query_gradient_norm(q, keys, scale):
    def weights(point):
        s = scale * (keys @ point)
        e = np.exp(s - s.real.max())
        return e / e.sum()
    step = 1e-30
    columns = [weights(q + 1j * step * one).imag / step for one in np.eye(len(q))]
    return np.linalg.norm(np.array(columns))
""",
    """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * keys @ q)
    J = np.diag(p) - np.outer(p, p)
    M = J @ keys
    return scale * np.sqrt(np.trace(M.T @ M))
""",
    """def query_gradient_norm(q, keys, scale):
    k = np.asarray(keys, float) * scale
    p = softmax(k @ q)
    g = p[:, np.newaxis] * k - np.outer(p, p @ k)
    return np.array(np.hypot.reduce(g.ravel()))
""",
    """def query_gradient_norm(q, keys, scale):
    def jac(p):
        return np.array([[p[i] * ((1 if i == j else 0) - p[j]) for j in range(len(p))] for i in range(len(p))])
    return float(np.linalg.norm(scale * jac(softmax(scale * keys.dot(q))).dot(keys)))
""",
    """def query_gradient_norm(q, keys, scale):
    return np.linalg.norm(J(softmax(scale * keys @ q)) @ (scale * keys))
""",
]

WRONG["query_gradient_norm"] = [
    (
        None,
        """
def query_gradient_norm(q: np.ndarray, keys: np.ndarray, scale: float) -> float:
    p = softmax(scale * (keys @ q))
    best = p.argmax()
    row = scale * p[best] * (keys[best] - p @ keys)
    return float(np.sqrt((row**2).sum()))
""",
    ),
    (
        "QG1",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(p[:, None] * (keys - p @ keys))
""",
    ),
    (
        "QG4",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(np.diag(p) - np.outer(p, p))
""",
    ),
    (
        "QG1",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(keys @ q)
    return np.linalg.norm(p[:, None] * (keys - p @ keys)) * scale
""",
    ),
    (
        "QG1",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(keys @ q)
    return np.linalg.norm(p[:, None] * (keys - p @ keys))
""",
    ),
    (
        "QG4",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return scale * np.linalg.norm(np.diag(p) - np.outer(p, p))
""",
    ),
    (
        "SX46",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return scale * np.linalg.norm(p[:, None] * keys)
""",
    ),
    (
        "WS15",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return ((scale * p[:, None] * (keys - p @ keys))**2).sum()
""",
    ),
    (
        "QG12",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(scale * p[:, None] * (keys - p @ keys), 2)
""",
    ),
    (
        "QG12",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(scale * p[:, None] * (keys - p @ keys), axis=1).sum()
""",
    ),
    (
        "QG12",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.abs(scale * p[:, None] * (keys - p @ keys)).sum()
""",
    ),
    (
        "SL7",
        """def query_gradient_norm(q, keys, scale):
    s = keys @ q / scale
    p = softmax(s)
    return np.linalg.norm(p[:, None] * (keys - p @ keys)) / scale
""",
    ),
    (
        "TT1",
        """def query_gradient_norm(q, keys, scale):
    root = len(q) ** 0.5
    p = softmax(keys @ q / root)
    return np.linalg.norm(p[:, None] * (keys - p @ keys)) / root
""",
    ),
    (
        "QG4",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    j = np.diag(p) - np.outer(p, p)
    return np.linalg.norm(j) * scale * np.linalg.norm(q)
""",
    ),
    (
        "SM5",
        """def query_gradient_norm(q, keys, scale):
    e = np.exp(scale * (keys @ q))
    p = e / e.sum()
    return scale * np.linalg.norm(p[:, None] * (keys - p @ keys))
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return scale * np.linalg.norm(p[:, None] * (keys - keys.mean(0)))
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return scale * np.linalg.norm((np.diag(p) - np.outer(p, p)).sum(0) @ keys)
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    i = p.argmax()
    return scale * np.linalg.norm(p[i] * (keys[i] - p @ keys))
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    eps = 1e-3
    f = lambda x: softmax(scale * (keys @ x))
    return np.linalg.norm([(f(q + eps*o) - f(q))/eps for o in np.eye(len(q))])
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(p[:, None] * (keys - p @ keys)) * scale ** 2
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    j = np.diag(p) - np.outer(p, p)
    return np.linalg.norm(scale * keys.T @ j) * np.sqrt(len(q))
""",
    ),
    (
        "QG14",
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return np.linalg.norm(np.diag(p) - np.outer(p, p)) * np.linalg.norm(scale * keys)
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q))
    return scale * np.sqrt((p * ((keys - p @ keys)**2).sum(1)).sum())
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    s = scale * (keys @ q)
    e = np.exp(np.clip(s, -700, 700))
    p = e / e.sum()
    return scale * np.linalg.norm(p[:, None] * (keys - p @ keys))
""",
    ),
    (
        None,
        """def query_gradient_norm(q, keys, scale):
    p = softmax(scale * (keys @ q)[:, None], ).ravel()
    return scale * np.linalg.norm(p[:, None] * (keys - p @ keys))
""",
    ),
]

# Right on ordinary inputs alone
WRONG["query_gradient_norm"] += [
    (
        "QG15",
        """
def query_gradient_norm(q: np.ndarray, keys: np.ndarray, scale: float) -> float:
    p = softmax(scale * (keys @ q))
    centered = keys - keys.mean(axis=0)
    gradient = scale * p[:, None] * centered
    return float(np.sqrt((gradient**2).sum()))
""",
    ),
    (
        None,
        """def query_gradient_norm(q: np.ndarray, keys: np.ndarray, scale: float) -> float:
    scores = keys @ q
    exps = np.exp(scale * scores - scores.max())
    p = exps / exps.sum()
    mean_key = p @ keys
    gradient = scale * p[:, None] * (keys - mean_key)
    return float(np.sqrt(np.sum(gradient**2)))
""",
    ),
]
