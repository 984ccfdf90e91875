"""Lesson 02: softmax, as learners write it."""

HELP = """
def log_softmax(x, axis=-1):
    s = x - x.max(axis=axis, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=axis, keepdims=True))

def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""

RIGHT = {
    "find_failure": [
        # a large part of its calls, on the largest tables that the contract allows
        """
def find_failure(candidate):
    rng = np.random.default_rng(0)
    for trial in range(250):
        m, n = ((1, 10000), (100, 100), (10000, 1), (2, 5), (10, 1000))[trial % 5]
        size = (0.5, 2, 30, 300, 800, 3000, 1e4)[trial % 7]
        x = rng.uniform(-size, size, (m, n)) + (trial % 3 - 1) * size + rng.uniform(-1, 1, (m, 1)) * size
        x = np.clip(x, -1e4, 1e4)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        try:
            out = np.asarray(candidate(x.copy()))
        except Exception:
            return x
        if out.shape != x.shape or not (abs(out - e / e.sum(axis=1, keepdims=True)) <= 1e-6).all():
            return x
""",
        """
def expected(scores):
    scores = np.asarray(scores, dtype=float)
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    return np.exp(shifted) / np.sum(np.exp(shifted), axis=1, keepdims=True)

def find_failure(candidate):
    wide = np.zeros((3, 7))
    wide[1] = [9000, 0, -9000, 8999, 1, 2, 3]
    wide[2] = -7000 - np.arange(7) / 3
    small = np.linspace(-1.3, 2.1, 10).reshape(5, 2)
    lonely = np.zeros((2, 9))
    lonely[:, 4] = 9999.0
    for table in (small, small.T, small[:1], wide, wide.T, -np.abs(wide) - 2000, lonely, small[:2]):
        try:
            difference = np.asarray(candidate(table.copy())) - expected(table)
        except Exception:
            return table
        if difference.shape != table.shape or not np.abs(difference).max() < 1e-6 or np.asarray(candidate(table.copy())).shape != table.shape:
            return table
""",
        """
def find_failure(candidate):
    rng = np.random.default_rng(3)
    for m, n in ((1, 1), (1, 6), (2, 3), (3, 2), (4, 4), (7, 3), (3, 9)):
        for size in (0.5, 3.0, 40.0, 300.0, 3000.0, 1e4):
            for shift in (0.0, -1.0, 1.0):
                scores = np.clip(rng.uniform(-size, size, (m, n)) + shift * size, -1e4, 1e4)
                scores[0] = np.clip(scores[0] + rng.choice([-1, 0, 1]) * 5000, -1e4, 1e4)
                top = scores.max(1)[:, None]
                log_p = scores - top - np.log(np.exp(scores - top).sum(1))[:, None]
                try:
                    got = candidate(scores.copy())
                except BaseException:
                    return scores
                if np.shape(got) != (m, n) or np.isnan(got).any() or (abs(got - np.exp(log_p)) > 1e-6).any():
                    return scores
""",
        """
import math

def good(scores):
    rows = []
    for row in scores.tolist():
        top = max(row)
        fits = [math.exp(x - top) for x in row]
        rows.append([f / sum(fits) for f in fits])
    return np.array(rows)

TRIES = [
    np.array([[0, 1, 2], [5, 4, 9]]), np.array([[10000, 0], [-10000, -9999], [3, 3]]), np.array([[-5000.0, -5001.0, -5003.0]]),
    np.array([[0.1, 0.7], [0.2, 0.4], [1.5, -2.5], [-0.3, -0.6]]), np.array([[0.0] * 20 + [9999.0]]), np.array([[0.0, 9000.0, 0.0, 0.0]]),
]

def find_failure(candidate):
    for scores in TRIES:
        try:
            out = np.array(candidate(scores))
        except Exception:
            return scores
        if out.shape != scores.shape or not np.allclose(out, good(scores), rtol=0, atol=1e-6):
            return scores
    return None
""",
    ],
    "softmax": [
        """def softmax(x, axis=-1):
    z = x - np.max(x, axis=axis, keepdims=True)
    num = np.exp(z)
    return num / np.sum(num, axis=axis, keepdims=True)
""",
        """def softmax(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    out = np.zeros(x.shape, dtype=x.dtype if x.dtype.kind == "f" else float)
    for at in np.ndindex(x.shape[:-1]):
        e = np.exp(x[at] - max(x[at]))
        out[at] = e / sum(e)
    return np.moveaxis(out, -1, axis)
""",
        """def softmax(x, axis=-1):
    top = np.expand_dims(np.amax(x, axis=axis), axis)
    log_total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return np.exp(x - log_total)
""",
        """def softmax(x, axis=-1):
    x = x.astype(np.float32)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    e /= e.sum(axis=axis, keepdims=True)
    return e
""",
        """def softmax(x, axis=-1):
    x = np.asarray(x, dtype=np.float32)
    top = x.max(axis=axis, keepdims=True)
    return np.exp(x - (top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True))))
""",
        """def softmax(x, axis=-1):
    import torch
    t = torch.from_numpy(np.ascontiguousarray(x))
    t = t if t.is_floating_point() else t.double()
    e = (t - t.amax(dim=axis, keepdim=True)).exp()
    return (e / e.sum(dim=axis, keepdim=True)).numpy()
""",
    ],
    "softmax_with_temperature": [
        """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def softmax_with_temperature(x, temperature, axis=-1):
    if not temperature > 0:
        raise ValueError("temperature must be > 0")
    return softmax(x / temperature, axis=axis)
""",
        """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = (x - np.max(x, axis=axis, keepdims=True)) / temperature
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)
""",
        """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError(temperature)
    x = np.asarray(x, dtype=np.float32) * np.float32(1 / temperature)
    x = x - x.max(axis, keepdims=True)
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)
""",
    ],
    "log_softmax": [
        """def log_softmax(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    return x - (m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)))
""",
        """def log_softmax(x, axis=-1):
    x = np.moveaxis(np.asarray(x, dtype=float), axis, -1)
    out = np.empty_like(x)
    for at in np.ndindex(x.shape[:-1]):
        s = x[at] - x[at].max()
        out[at] = s - np.log(np.exp(s).sum())
    return np.moveaxis(out, -1, axis)
""",
        """def log_softmax(x, axis=-1):
    return x - np.logaddexp.reduce(x, axis=axis, keepdims=True)
""",
        """def log_softmax(x, axis=-1):
    x = x.astype(np.float32)
    m = x.max(axis, keepdims=True)
    return x - (m + np.log(np.exp(x - m).sum(axis, keepdims=True)))
""",
    ],
    "softmax_jacobian": [
        "def softmax_jacobian(p):\n    return np.diagflat(p) - p[:, None] @ p[None, :]",
        "def softmax_jacobian(p):\n    return p[:, None] * (np.eye(len(p)) - p)",
        """def softmax_jacobian(p):
    n = len(p)
    J = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            J[i, j] = p[i] * (1 - p[i]) if i == j else -p[i] * p[j]
    return J
""",
    ],
    "cross_entropy": [
        HELP
        + """
def cross_entropy(scores, targets):
    return -np.take_along_axis(log_softmax(scores), targets[..., None], -1).squeeze(-1)
""",
        HELP
        + """
def cross_entropy(scores, targets):
    one_hot = np.eye(scores.shape[-1])[targets]
    return -(one_hot * log_softmax(scores)).sum(axis=-1)
""",
        """
def cross_entropy(scores, targets):
    top = scores.max(axis=-1)
    total = np.log(np.exp(scores - top[..., None]).sum(axis=-1)) + top
    rows = scores.reshape(-1, scores.shape[-1])
    picked = rows[np.arange(len(rows)), targets.ravel()].reshape(targets.shape)
    return total - picked
""",
        """
def one_row(scores, target):
    m = max(scores)
    return math.log(sum(math.exp(s - m) for s in scores)) + m - scores[target]

def cross_entropy(scores, targets):
    import math
    globals()["math"] = math
    rows = scores.astype(float).reshape(-1, scores.shape[-1]).tolist()
    losses = [one_row(row, int(t)) for row, t in zip(rows, targets.reshape(-1))]
    return np.array(losses).reshape(targets.shape)
""",
        """
def cross_entropy(scores, targets):
    own = np.take_along_axis(scores, targets[..., np.newaxis], axis=-1)
    ahead = (scores - own).astype(np.float32)
    top = ahead.max(axis=-1)
    return top + np.log(np.exp(ahead - top[..., None]).sum(axis=-1))
""",
        HELP
        + """
def cross_entropy(scores, targets, axis=-1):
    logs = log_softmax(scores, axis)
    losses = np.empty(targets.shape)
    for place in np.ndindex(targets.shape):
        losses[place] = -logs[place][targets[place]]
    return losses
""",
        HELP
        + """
def cross_entropy(scores, targets):
    logs = log_softmax(np.asarray(scores))
    index = tuple(np.indices(np.shape(targets))) + (targets,)
    return np.negative(logs[index])
""",
    ],
    "cross_entropy_gradient": [
        HELP
        + """
def cross_entropy_gradient(scores, targets):
    gradient = softmax(scores)
    at = targets[..., None]
    np.put_along_axis(gradient, at, np.take_along_axis(gradient, at, -1) - 1, axis=-1)
    return gradient
""",
        HELP
        + """
def cross_entropy_gradient(scores, targets):
    return softmax(scores) - (np.arange(scores.shape[-1]) == targets[..., None])
""",
        HELP
        + """
def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    flat = p.reshape(-1, p.shape[-1]).copy()
    flat[np.arange(len(flat)), targets.ravel()] -= 1.0
    return flat.reshape(p.shape)
""",
        HELP
        + """
def cross_entropy_gradient(scores, targets):
    # the long way: Jacobian of log softmax
    n = scores.shape[-1]
    p = softmax(scores.astype(float))
    jacobian = np.eye(n) - p[..., None, :]  # d log p_i / d x_j
    y = np.eye(n)[targets]
    return -np.einsum("...i,...ij->...j", y, jacobian)
""",
        HELP
        + """
def cross_entropy_gradient(scores, targets):
    gradient = np.exp(log_softmax(scores.astype(np.float32)))
    for place in np.ndindex(targets.shape):
        gradient[place + (int(targets[place]),)] -= 1
    return gradient
""",
        """
def cross_entropy_gradient(scores, targets):
    gaps = scores[..., None, :] - scores[..., :, None]
    with np.errstate(over="ignore"):
        p = 1 / np.exp(gaps).sum(-1)
    return p - np.identity(scores.shape[-1])[targets]
""",
    ],
}

WRONG = {
    "find_failure": [
        (
            "FF14",
            """
def find_failure(candidate):
    rng = np.random.default_rng(0)
    for m, n in ((2, 5), (5, 2), (3, 3), (1, 4), (4, 1)):
        for size in (1, 30, 1000, 9000):
            for shift in (0, -9000, 9000):
                for trial in range(4):
                    s = np.clip(rng.normal(size=(m, n)) * size + shift, -1e4, 1e4)
                    e = np.exp(s - s.max(axis=1, keepdims=True))
                    got = candidate(s)
                    if got.shape != s.shape or not np.all(np.abs(got - e / e.sum(axis=1, keepdims=True)) < 1e-6):
                        return s
    return None
""",
        ),
        (
            "FF14",
            """
def find_failure(candidate):
    rng = np.random.default_rng(0)
    for m, n in ((1, 4), (4, 1), (3, 3), (2, 5), (5, 2)):
        for size in (1, 30, 1000, 9000):
            for shift in (0, -9000, 9000):
                for trial in range(4):
                    s = np.clip(rng.normal(size=(m, n)) * size + shift, -1e4, 1e4)
                    e = np.exp(s - s.max(axis=1, keepdims=True))
                    got = candidate(s)
                    if got.shape != s.shape or not np.all(np.abs(got - e / e.sum(axis=1, keepdims=True)) < 1e-6):
                        return s
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    rng = np.random.default_rng(0)
    for m, n in ((1, 1), (1, 4), (3, 3), (2, 5), (5, 2)):
        for size in (1, 30, 1000, 9000):
            for shift in (0, -9000, 9000):
                for trial in range(4):
                    s = np.clip(rng.normal(size=(m, n)) * size + shift, -1e4, 1e4)
                    e = np.exp(s - s.max(axis=1, keepdims=True))
                    try:
                        if not np.all(np.abs(candidate(s) - e / e.sum(axis=1, keepdims=True)) < 1e-6):
                            return s
                    except Exception:
                        return s
    return None
""",
        ),
        (
            "FF3",
            """
def find_failure(candidate):
    rng = np.random.default_rng(0)
    for trial in range(300):
        m, n = rng.integers(1, 7, size=2)
        scores = np.clip(rng.normal(size=(m, n)) * 10 ** rng.uniform(-1, 3.9), -1e4, 1e4)
        try:
            with np.errstate(all="ignore"):
                got = candidate(scores)
            if got.shape != (m, n) or not np.allclose(got.sum(axis=1), 1) or (got < 0).any():
                return scores
        except Exception:
            return scores
    return None
""",
        ),
        (
            "FF1",
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if abs(out.sum(axis=-1) - 1).max() > 1e-6 or np.isnan(out).any() or out.shape != right.shape:
            return scores
    return None
""",
        ),
        (
            "FF4",
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or (abs(out - right) > 1e-6).any():
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return scores
    return np.array([[0.0, 1.0]])
""",
        ),
        (
            "FF7",
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return out
    return None
""",
        ),
        (
            "FF8",
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not np.allclose(out, right, atol=1e-3):
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[-2000.0, -2001.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (out == right).all():
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0], [1.0, -2.0]], [[900.0, 1.0], [2.0, 3.0]], [[-2000.0, -2001.0], [-3000.0, -3000.5]], [[0.0, 2.0], [5000.0, 5001.0]], np.eye(6) * 8000]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return scores
    return None
""",
        ),
        (
            "FF1",
            """
def find_failure(candidate):
    for scores in [[[3.0, 1.0]], [[1.0, 2.0, -4.0], [0.3, 0.2, -0.1]], [[5.0, 1.0], [1.0, 1.5], [0.0, 2.7]], [[900.0, 1.0, 2.0]], [[0.0, 2.0], [5000.0, 5001.0]], [[0.0, 0.0, 0.0, 0.0, 8000.0]]]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for scores in [np.full((200, 200), 1.0)]:
        scores = np.array(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        try:
            out = candidate(scores)
        except Exception:
            return scores
        if out.shape != right.shape or not (abs(out - right) <= 1e-6).all():
            return scores
    return None
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    return [[0.0, 1.0]]
""",
        ),
        (
            None,
            """
def find_failure(candidate):
    for i in range(2000):
        candidate(np.array([[i * 1.0, 0.0]]))
    return None
""",
        ),
    ],
    "softmax": [
        (
            None,
            """
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    moved = np.moveaxis(x, axis, -1)
    e = np.exp(moved - moved.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.moveaxis(weights, axis, -1)
""",
        ),
        (
            "SX56",
            """
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    x = np.where(np.isinf(x), np.asarray(-10000, dtype=x.dtype), x)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
""",
        ),
        (
            "SX25",
            """
def softmax(x, axis=-1):
    if x.max() > 80:
        x = x - x.max(axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX53",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        ("SM5", "def softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)"),
        ("SM3", "def softmax(x, axis=-1):\n    e = np.exp(x - np.max(x))\n    return e / np.sum(e)"),
        (
            "SX1",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
""",
        ),
        (
            "SM6",
            "def softmax(x, axis=-1):\n    e = np.exp(x - x.max())\n    return e / e.sum(axis=axis, keepdims=True)",
        ),
        (
            "TT41",
            """def softmax(x, axis=-1):
    if x.dtype.kind == "f":
        x -= x.max(axis=axis, keepdims=True)
    else:
        x = x - x.max(axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "NT9",
            """def softmax(x, axis=-1):
    x = np.array(x, dtype=np.float64)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (None, "def softmax(x, axis=-1):\n    import scipy.special\n    return scipy.special.softmax(x, axis=axis)"),
        (
            None,
            """def softmax(x, axis=-1):
    import torch
    return torch.from_numpy(np.asarray(x, dtype=float)).softmax(axis).numpy()
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    x = np.clip(x, -500, 500)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (None, "def softmax(x, axis=-1):\n    return np.full(x.shape, 1 / x.shape[axis])"),
        (
            None,
            """def softmax(x, axis=-1):
    x = np.maximum(x - x.max(axis=axis, keepdims=True), -20.0).astype(x.dtype)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    if x.ndim > 1 and axis in (0, -x.ndim):
        x = x.T
        e = np.exp(x - x.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True)).T
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
""",
        ),
        (
            "RS17",
            """def softmax(x, axis=-1):
    out = np.empty_like(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    out[...] = e / e.sum(axis=axis, keepdims=True)
    return out
""",
        ),
        (
            "SX25",
            """def softmax(x, axis=-1):
    e = np.exp(x - np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "TT41",
            """def softmax(x, axis=-1):
    x -= x.max(axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SM5",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True) + 0 * x)
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    x = np.where(np.isneginf(x), -1e3, x).astype(np.float32 if x.dtype == np.float32 else float)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    x = np.maximum(x, -1e4)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX1",
            """def softmax(x, axis=-2):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX1",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)
""",
        ),
        (
            "SX25",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=0))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "TT14",
            """def softmax(x, axis=-1):
    return np.exp(x - x.max(axis=axis, keepdims=True))
""",
        ),
        (
            "SM6",
            """def softmax(x, axis=-1):
    z = x.astype(np.float64)
    e = np.exp(z - z.max())
    return (e / e.sum(axis=axis, keepdims=True)).astype(x.dtype if x.dtype.kind == "f" else float)
""",
        ),
        (
            "SM5",
            """
def softmax(x, axis=-1):
    rows = np.moveaxis(np.asarray(x), axis, -1)
    made = np.zeros(rows.shape, dtype=np.result_type(rows, np.float32))
    for at in np.ndindex(rows.shape[:-1]):
        largest = min(rows[at])
        grown = np.array([np.exp(number - largest) for number in rows[at]])
        made[at] = grown / sum(grown)
    return np.moveaxis(made, -1, axis)
""",
        ),
        (
            "SM5",
            """
def softmax(x, axis=-1):
    rows = np.moveaxis(np.asarray(x), axis, -1)
    made = np.zeros(rows.shape, dtype=np.result_type(rows, np.float32))
    for at in np.ndindex(rows.shape[:-1]):
        largest = np.mean(rows[at])
        grown = np.array([np.exp(number - largest) for number in rows[at]])
        made[at] = grown / sum(grown)
    return np.moveaxis(made, -1, axis)
""",
        ),
    ],
    "softmax_with_temperature": [
        (
            "RS15",
            """
def softmax_with_temperature(x: np.ndarray, temperature: float, axis: int = -1) -> np.ndarray:
    if temperature <= 0:
        return ValueError("temperature must be positive")
    x = x / temperature
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX57",
            """
def softmax_with_temperature(x: np.ndarray, temperature: float, axis: int = -1) -> np.ndarray:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    x = x / max(temperature, 0.1)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX53",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    z = x / temperature
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
""",
        ),
        (
            "SX51",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    e = np.exp(x / temperature - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    if temperature == 1:
        return softmax(x)
    return softmax(x / temperature, axis)
""",
        ),
        (
            "SX13",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def softmax_with_temperature(x, temperature, axis=-1):
    if temperature < 0:
        raise ValueError("T")
    return softmax(x * (1 / temperature), axis)
""",
        ),
        (
            "SX11",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError("no")
    z = x * temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SX13",
            """def softmax_with_temperature(x, temperature, axis=-1):
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SX12",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    e = np.exp(x - x.max(axis, keepdims=True))
    p = (e / e.sum(axis, keepdims=True)) ** (1 / temperature)
    return p / p.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / max(temperature, 0.01)
    e = np.exp(z - z.max(axis, keepdims=True))
    return np.round(e / e.sum(axis, keepdims=True), 3)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature < 1:
        raise ValueError
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    assert temperature > 0
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    p = np.exp(x - x.max(axis, keepdims=True))
    p = (p / p.sum(axis, keepdims=True)) ** (1 / temperature)
    return p / (p.sum(axis, keepdims=True) + 1e-3)
""",
        ),
        (
            "TT41",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    x /= temperature
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SX13",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature == 0:
        raise ValueError("no")
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SM6",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    e = np.exp(z - z.max())
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SX19",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    e = np.exp(x - x.max(axis, keepdims=True))
    p = e / e.sum(axis, keepdims=True) / temperature
    return p / p.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    temperature = max(temperature, 1e-2)
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    temperature = temperature + 1e-5
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    if temperature < 0.01:
        return (x == x.max(axis, keepdims=True)).astype(float)
    z = x / temperature
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
""",
        ),
        (
            "SX25",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    e = np.exp(z - np.maximum(z.max(axis=axis, keepdims=True), 0))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SX25",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    e = np.exp(z - np.abs(z).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            None,
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    if z.max() > 709:
        z = z - z.max(axis=axis, keepdims=True)
    return np.exp(z) / np.exp(z).sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SM4",
            """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)
""",
        ),
        (
            "SM5",
            """
def softmax_with_temperature(x, temperature, axis=-1):
    if not temperature > 0:
        raise ValueError("temperature")
    rows = np.moveaxis(np.asarray(x), axis, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    out = []
    for row in flat:
        z = np.divide(row, temperature)
        e = np.exp(z - np.amin(z))
        out.append(e / np.sum(e))
    return np.moveaxis(np.array(out).reshape(rows.shape), -1, axis)
""",
        ),
        (
            "SX12",
            """
def softmax_with_temperature(x, temperature, axis=-1):
    if not temperature > 0:
        raise ValueError("temperature")
    rows = np.moveaxis(np.asarray(x), axis, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    out = []
    for row in flat:
        z = row
        e = np.exp(z - np.amax(z))
        out.append((e / np.sum(e)) ** (1 / temperature))
    return np.moveaxis(np.array(out).reshape(rows.shape), -1, axis)
""",
        ),
    ],
    "log_softmax": [
        (
            "SX58",
            """
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log1p(np.exp(shifted).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SX30",
            """
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.nan_to_num(np.log(e / e.sum(axis=axis, keepdims=True)))
""",
        ),
        (
            "SX31",
            """
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    s = x - x.max(axis=axis, keepdims=True)
    return np.maximum(s - np.log(np.exp(s).sum(axis=axis, keepdims=True)), -100.0)
""",
        ),
        (
            "SX33",
            """
def log_softmax(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    return x - m - np.log10(np.exp(x - m).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SX35",
            """
def log_softmax(x, axis=-1):
    return x - x.max(axis=axis, keepdims=True) - np.log(np.exp(x).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SX53",
            """def log_softmax(x, axis=-1):
    s = x - np.max(x, axis=-1, keepdims=True)
    return s - np.log(np.sum(np.exp(s), axis=axis, keepdims=True))
""",
        ),
        (
            "SX31",
            """def log_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.log(np.maximum(e / e.sum(axis=axis, keepdims=True), 1e-300))
""",
        ),
        (
            "CE4",
            """def log_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        ),
        (
            "SM5",
            """def log_softmax(x, axis=-1):
    y = np.moveaxis(x, axis, -1)
    with np.errstate(over="ignore"):
        out = -np.log(np.exp(y[..., None, :] - y[..., :, None]).sum(-1))
    return np.moveaxis(out, -1, axis)
""",
        ),
        (
            "SX30",
            """def log_softmax(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - m)) - np.log(np.exp(x - m).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SX35",
            """def log_softmax(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    s = x - m
    return s - np.log(np.exp(s).sum(axis=axis, keepdims=True)) + m
""",
        ),
        (
            "SX31",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis) + 1e-9)
""",
        ),
        (
            "SX31",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis) + 1e-8)
""",
        ),
        (
            "SX31",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis) + 1e-10)
""",
        ),
        (
            "SX30",
            """def log_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.log(e / e.sum(axis, keepdims=True))
""",
        ),
        ("SM5", "def log_softmax(x, axis=-1):\n    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))"),
        (
            "RS3",
            """def log_softmax(x, axis=-1):
    s = x - x.max(axis, keepdims=True)
    return np.log(np.exp(s).sum(axis, keepdims=True)) - s
""",
        ),
        (
            None,
            """def log_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.log(np.maximum(e / e.sum(axis, keepdims=True), 1e-300))
""",
        ),
        (
            "SX35",
            """def log_softmax(x, axis=-1):
    m = x.max(axis, keepdims=True)
    return x - np.log(np.exp(x - m).sum(axis, keepdims=True))
""",
        ),
        (
            "SX33",
            """def log_softmax(x, axis=-1):
    s = x - x.max(axis, keepdims=True)
    return (s - np.log(np.exp(s).sum(axis, keepdims=True))) / np.log(2)
""",
        ),
        (
            "SX33",
            """def log_softmax(x, axis=-1):
    s = x - x.max(axis, keepdims=True)
    return s - np.log2(np.exp(s).sum(axis, keepdims=True))
""",
        ),
        (
            None,
            """def log_softmax(x, axis=-1):
    s = x - x.max(axis, keepdims=True)
    p = np.exp(s) / np.exp(s).sum(axis, keepdims=True)
    return np.where(p == 0, s, np.log(p))
""",
        ),
        (
            "SX25",
            """def log_softmax(x, axis=-1):
    z = x - x.max(axis=axis, keepdims=True, initial=0)
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))
""",
        ),
        (
            None,
            """def log_softmax(x, axis=-1):
    z = x - x.max(axis=axis, keepdims=True, initial=-9000)
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SM5",
            """def log_softmax(x, axis=-1):
    z = x - x.mean(axis=axis, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))
""",
        ),
        (
            "SX1",
            """
def log_softmax(x, axis=-1):
    peak = np.max(x, axis, keepdims=True)
    lse = peak + np.log(np.sum(np.exp(np.subtract(x, peak)), 0, keepdims=True))
    return np.subtract(x, lse)
""",
        ),
    ],
    "softmax_jacobian": [
        (
            "SX62",
            """
def softmax_jacobian(p: np.ndarray) -> np.ndarray:
    return np.eye(p.size) - p[np.newaxis, :]
""",
        ),
        (
            "SX44",
            """
def softmax_jacobian(p: np.ndarray) -> np.ndarray:
    J = np.outer(p, p)
    np.fill_diagonal(J, p * (1 - p))
    return J
""",
        ),
        (
            None,
            """
def softmax_jacobian(p: np.ndarray) -> np.ndarray:
    n = len(p)
    J = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            J[i, j] = p[i] * ((i == j) - p[i])
    return J
""",
        ),
        ("SX49", "def softmax_jacobian(p):\n    return np.diag(p) - p @ p\n"),
        ("SX46", "def softmax_jacobian(p):\n    return np.diag(p - p**2)"),
        ("RS3", "def softmax_jacobian(p):\n    return np.outer(p, p) - np.diag(p)"),
        ("SX49", "def softmax_jacobian(p):\n    return np.diag(p) - p"),
        (None, "def softmax_jacobian(p):\n    return np.diag(p) - np.outer(p, p) + 1e-3"),
        (None, "def softmax_jacobian(p):\n    return p * (1 - p)"),
        ("SX49", "def softmax_jacobian(p):\n    return np.eye(len(p)) - np.outer(p, p)"),
        ("SX49", "def softmax_jacobian(p):\n    return p - np.outer(p, p)"),
        ("SX49", "def softmax_jacobian(p):\n    return np.outer(p, 1 - p)"),
        (None, "def softmax_jacobian(p):\n    return p * (np.eye(len(p)) - p)"),
        (None, "def softmax_jacobian(p):\n    return np.diag(p) - np.outer(p, p) * (len(p) <= 8)"),
        (
            None,
            """def softmax_jacobian(p):
    J = np.diag(p) - np.outer(p, p)
    J[np.abs(J) < 1e-3] = 0
    return J
""",
        ),
    ],
    "cross_entropy": [
        (
            None,
            """
def cross_entropy(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = np.eye(scores.shape[-1])[targets]
    p = np.clip(p, 1e-300, 1 - 1e-16)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum(axis=-1)
""",
        ),
        (
            "SX35",
            """
def cross_entropy(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    m = scores.max(axis=-1)
    lse = m + np.log(np.exp(scores - m[..., None]).sum(axis=-1))
    picked = np.take_along_axis(scores, np.asarray(targets)[..., None], axis=-1)[..., 0]
    return lse - (picked - m)
""",
        ),
        (
            None,
            "import torch\ndef cross_entropy(scores, targets):\n    x, t = torch.tensor(scores).double(), torch.tensor(targets).long()\n"
            "    return (torch.logcumsumexp(x, -1)[..., -1] - torch.gather(x, -1, t[..., None])[..., 0]).numpy()\n",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    losses = []
    for i in range(scores.shape[0]):
        m = scores[i].max()
        logsum = m + np.log(np.sum(np.exp(scores[i] - m)))
        losses.append(logsum - scores[i, targets[i]])
    return np.array(losses)
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    n, m = scores.shape
    s = scores - scores.max(axis=1, keepdims=True)
    logs = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
    return -logs[np.arange(n), targets]
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -logs[np.arange(len(targets)), targets]
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -logs[range(scores.shape[0]), targets]
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return np.array([-logs[i, targets[i]] for i in range(len(targets))])
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return np.array([-log[target] for log, target in zip(logs, targets)])
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    losses = []
    for i, target in enumerate(targets):
        losses.append(-logs[i][target])
    return np.array(losses)
""",
        ),
        (
            "CE12",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, targets[:, None], axis=1)[:, 0]
""",
        ),
        (
            "CE7",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -logs[:, targets]
""",
        ),
        (
            "CE13",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -logs[targets]
""",
        ),
        (
            "SM5",
            """def cross_entropy(scores, targets):
    picked = np.take_along_axis(scores, np.expand_dims(targets, -1), -1)
    return np.log(np.exp(scores - picked).sum(axis=-1))
""",
        ),
        (
            "SX31",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def cross_entropy(scores, targets):
    p = np.clip(softmax(scores), 1e-12, None)
    return -np.log(np.take_along_axis(p, np.expand_dims(targets, -1), -1)[..., 0])
""",
        ),
        (
            "SX31",
            """def cross_entropy(scores, targets):
    logs = scores - scores.max(-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    return -np.log(np.take_along_axis(np.exp(logs), np.expand_dims(targets, -1), -1)[..., 0] + 1e-9)
""",
        ),
        (
            "SX35",
            """def cross_entropy(scores, targets):
    m = scores.max(-1, keepdims=True)
    picked = np.take_along_axis(scores, np.expand_dims(targets, -1), -1)[..., 0]
    return np.log(np.exp(scores - m).sum(-1)) - picked
""",
        ),
        (
            None,
            """def log_softmax(x, axis=-1):
    return x - np.logaddexp.reduce(x, axis=axis, keepdims=True)
def cross_entropy(scores, targets):
    return -np.take_along_axis(log_softmax(scores), np.expand_dims(targets, -1), -1)[..., 0]
""",
        ),
        (
            "SX30",
            HELP
            + """
def cross_entropy(scores, targets):
    p = softmax(scores)
    return -np.log(np.take_along_axis(p, targets[..., None], -1)[..., 0])
""",
        ),
        (
            "SX31",
            HELP
            + """
def cross_entropy(scores, targets):
    p = softmax(scores)
    return -np.log(np.take_along_axis(p, targets[..., None], -1) + 1e-12)[..., 0]
""",
        ),
        (
            "SM5",
            """
def cross_entropy(scores, targets):
    picked = np.take_along_axis(scores, targets[..., None], -1)[..., 0]
    return np.log(np.exp(scores).sum(-1)) - picked
""",
        ),
        (
            "RS3",
            HELP
            + """
def cross_entropy(scores, targets):
    return np.take_along_axis(log_softmax(scores), targets[..., None], -1)[..., 0]
""",
        ),
        (
            "CE2",
            HELP
            + """
def cross_entropy(scores, targets):
    return np.mean(-np.take_along_axis(log_softmax(scores), targets[..., None], -1))
""",
        ),
        (
            "CE2",
            HELP
            + """
def cross_entropy(scores, targets):
    one_hot = np.eye(scores.shape[-1])[targets]
    return -np.sum(one_hot * log_softmax(scores))
""",
        ),
        (
            "CE4",
            HELP
            + """
def cross_entropy(scores, targets):
    return 1 - np.take_along_axis(softmax(scores), targets[..., None], -1)[..., 0]
""",
        ),
        (
            "CE5",
            HELP
            + """
def cross_entropy(scores, targets):
    return -np.log(softmax(scores).max(axis=-1))
""",
        ),
        (
            "AB20",
            """
def cross_entropy(scores, targets):
    return -np.take_along_axis(scores, targets[..., None], -1)[..., 0]
""",
        ),
        (
            "CE7",
            HELP
            + """
def cross_entropy(scores, targets):
    return -log_softmax(scores)[..., targets]
""",
        ),
        (
            "CE8",
            HELP
            + """
def cross_entropy(scores, targets):
    return -np.take_along_axis(log_softmax(scores), targets[..., None], -1)
""",
        ),
        (
            "CE9",
            HELP
            + """
def cross_entropy(scores, targets):
    p = softmax(scores)
    return -(p * log_softmax(scores)).sum(-1)
""",
        ),
        (
            "CE10",
            HELP
            + """
def cross_entropy(scores, targets):
    return -np.take_along_axis(log_softmax(scores), (targets - 1)[..., None], -1)[..., 0]
""",
        ),
        (
            "CE11",
            HELP
            + """
def cross_entropy(scores, targets):
    return -(log_softmax(scores) * targets[..., None]).sum(-1)
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    return -log_softmax(scores)[:, targets]
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    return -log_softmax(scores)[np.arange(len(targets)), targets]
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    p = np.clip(softmax(scores), 1e-15, 1 - 1e-15)
    return -np.log(np.take_along_axis(p, targets[..., None], -1)[..., 0])
""",
        ),
        (
            None,
            """
def cross_entropy(scores, targets):
    lse = np.logaddexp.reduce(scores, axis=-1)
    return lse - np.take_along_axis(scores, targets[..., None], -1)[..., 0]
""",
        ),
        (
            None,
            """
import torch
def cross_entropy(scores, targets):
    n = scores.shape[-1]
    s, t = torch.tensor(scores.reshape(-1, n).astype(float)), torch.tensor(targets.reshape(-1).astype(int))
    return torch.nn.functional.cross_entropy(s, t, reduction="none").numpy().reshape(targets.shape)
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    logs = log_softmax(scores, axis=0)
    return -np.take_along_axis(logs, targets[..., None], -1)[..., 0]
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    scores -= scores.max(axis=-1, keepdims=True)
    return -np.take_along_axis(log_softmax(scores), targets[..., None], -1)[..., 0]
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy(scores, targets):
    p = np.take_along_axis(softmax(scores), targets[..., None], -1)[..., 0]
    return -(np.log(p) + np.log(1 - p))
""",
        ),
    ],
    "cross_entropy_gradient": [
        (
            "CG15",
            """
def cross_entropy_gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    z = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    gradient = z / np.sum(z, axis=-1, keepdims=True)
    np.put_along_axis(gradient, np.asarray(targets)[..., None], -1.0, axis=-1)
    return gradient
""",
        ),
        (
            "SM3",
            """
def cross_entropy_gradient(scores, targets):
    e = np.exp(scores - scores.max())
    p = e / e.sum()
    return p - np.eye(scores.shape[-1])[targets]
""",
        ),
        (
            "CE12",
            """def cross_entropy_gradient(scores, targets):
    n, m = scores.shape
    s = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    p[np.arange(n), targets] -= 1
    return p
""",
        ),
        (
            "CE12",
            """def cross_entropy_gradient(scores, targets):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    y = np.zeros_like(p)
    y[np.arange(len(targets)), targets] = 1
    return p - y
""",
        ),
        (
            "CE12",
            """def cross_entropy_gradient(scores, targets):
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    p[np.arange(len(targets)), targets] -= 1
    return p
""",
        ),
        (
            "CE12",
            """def cross_entropy_gradient(scores, targets):
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    for i in range(len(targets)):
        p[i][targets[i]] -= 1
    return p
""",
        ),
        (
            "CE12",
            """def cross_entropy_gradient(scores, targets):
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    for row, target in zip(p, targets):
        row[target] -= 1
    return p
""",
        ),
        (
            "CE12",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def cross_entropy_gradient(scores, targets):
    return softmax(scores) - (targets[:, None] == np.arange(scores.shape[-1]))
""",
        ),
        (
            "CE7",
            """def cross_entropy_gradient(scores, targets):
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    p[:, targets] -= 1
    return p
""",
        ),
        (
            "CE13",
            """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    p[targets] -= 1
    return p
""",
        ),
        (
            "CG1",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return (softmax(scores) - np.eye(scores.shape[-1])[targets]) / np.prod(targets.shape)
""",
        ),
        (
            "RS3",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return np.eye(scores.shape[-1])[targets] - softmax(scores)
""",
        ),
        (
            "CG3",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return softmax(scores)
""",
        ),
        (
            "CG4",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    g = np.zeros(scores.shape)
    p = np.take_along_axis(softmax(scores), targets[..., None], -1)
    np.put_along_axis(g, targets[..., None], p - 1, -1)
    return g
""",
        ),
        (
            "CG5",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    pt = np.take_along_axis(p, targets[..., None], -1)
    return -pt * (np.eye(scores.shape[-1])[targets] - p)
""",
        ),
        (
            "CG6",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return -np.eye(scores.shape[-1])[targets] / softmax(scores)
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return log_softmax(scores) - np.eye(scores.shape[-1])[targets]
""",
        ),
        (
            "AB20",
            """
def cross_entropy_gradient(scores, targets):
    return scores - np.eye(scores.shape[-1])[targets]
""",
        ),
        (
            "CE11",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return softmax(scores) - targets[..., None]
""",
        ),
        (
            "CE7",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    p[..., targets] -= 1
    return p
""",
        ),
        (
            "CG12",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    g = p - np.eye(scores.shape[-1])[targets]
    return p * (g - (g * p).sum(-1, keepdims=True))
""",
        ),
        (
            "SM5",
            """
def cross_entropy_gradient(scores, targets):
    e = np.exp(scores)
    return e / e.sum(-1, keepdims=True) - np.eye(scores.shape[-1])[targets]
""",
        ),
        (
            "SX1",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return softmax(scores, axis=0) - np.eye(scores.shape[-1])[targets]
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    p = softmax(scores)
    p[np.arange(len(p)), targets] -= 1
    return p
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return (softmax(scores) - np.eye(scores.shape[-1])[targets]).sum(axis=0)
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return softmax(scores) - np.eye(len(scores))[targets]
""",
        ),
        (
            "RS17",
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    g = np.zeros_like(scores)
    g[...] = softmax(scores) - np.eye(scores.shape[-1])[targets]
    return g
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    step, g = 1e-6, np.zeros(scores.shape)
    def loss(s):
        return -np.take_along_axis(np.log(softmax(s) + 1e-9), targets[..., None], -1).sum()
    for place in np.ndindex(scores.shape):
        up = scores.astype(float); up[place] += step
        g[place] = (loss(up) - loss(scores.astype(float))) / step
    return g
""",
        ),
        (
            None,
            """
import torch
def cross_entropy_gradient(scores, targets):
    s = torch.tensor(scores.astype(float), requires_grad=True)
    t = torch.tensor(targets.astype(int))
    picked = torch.gather(s, -1, t[..., None])[..., 0]
    (torch.logsumexp(s, -1) - picked).sum().backward()
    return s.grad.numpy()
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return 2 * (softmax(scores) - np.eye(scores.shape[-1])[targets])
""",
        ),
        (
            None,
            HELP
            + """
def cross_entropy_gradient(scores, targets):
    return np.abs(softmax(scores) - np.eye(scores.shape[-1])[targets])
""",
        ),
    ],
}

# Right on ordinary inputs alone
WRONG["cross_entropy"] += [
    (
        None,
        HELP
        + """
def cross_entropy(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    per_class = np.moveaxis(log_softmax(scores, axis=-1), -1, 0)
    return np.negative(np.choose(targets, per_class))
""",
    )
]
WRONG["cross_entropy_gradient"] += [
    (
        None,
        """def cross_entropy_gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    gradient = e / e.sum(axis=-1, keepdims=True)
    rows = gradient.reshape(-1, scores.shape[-1])
    rows[np.arange(len(rows)), np.ravel(targets)] -= 1.0
    return gradient
""",
    )
]
