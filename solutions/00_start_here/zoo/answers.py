"""Submissions of lesson 00 as learners write them: right ones, and wrong ones with the mistake to be named."""

RIGHT = {
    "hard_lookup": [
        """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys @ query)]
""",
        """
def hard_lookup(query, keys, values):
    best, best_score = None, -float("inf")
    for key, value in zip(keys, values):
        score = 0.0
        for a, b in zip(query, key):
            score += a * b
        if score > best_score:
            best, best_score = value, score
    return best
""",
        """
def hard_lookup(query, keys, values):
    scores = np.einsum("d,nd->n", query.astype(np.float32), keys.astype(np.float32))
    return values[int(scores.argmax())].astype(np.float32)
""",
        """
def similarity(a, b):
    return float(np.dot(a, b))

def hard_lookup(query, keys, values):
    best = max(range(len(keys)), key=lambda i: similarity(query, keys[i]))
    return np.array([number for number in values[best]])
""",
        """
hard_lookup = lambda query, keys, values: values[(keys * query).sum(axis=1).tolist().index((keys * query).sum(1).max())]
""",
    ],
    "soft_lookup": [
        """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    return fits @ values / fits.sum()
""",
        """
import math

def soft_lookup(query, keys, values, sharpness=1.0):
    scores = []
    for key in keys:
        scores.append(sharpness * sum(a * b for a, b in zip(query, key)))
    top = max(scores)
    total = sum(math.exp(score - top) for score in scores)
    answer = [0.0] * len(values[0])
    for score, value in zip(scores, values):
        for i, number in enumerate(value):
            answer[i] += math.exp(score - top) / total * number
    return np.array(answer)
""",
        """
def soft_lookup(query, keys, values, sharpness=1.0):
    raw = np.exp((keys @ query).astype(float))
    fits = raw ** sharpness
    weights = fits / fits.sum()
    return np.einsum("n,nv->v", weights, values)
""",
        """
def weights_of(scores):
    logits = np.asarray(scores, dtype=np.float64)
    return np.exp(logits - np.logaddexp.reduce(logits))

def soft_lookup(query, keys, values, sharpness=1.0):
    return (weights_of(sharpness * np.dot(keys, query))[:, np.newaxis] * values).sum(axis=0)
""",
        """
def soft_lookup(query, keys, values, sharpness=1.0):
    q, k, v = (np.asarray(each, dtype=np.float32) for each in (query, keys, values))
    if sharpness == 0:
        return v.mean(0)
    s = np.float32(sharpness) * (k * q).sum(-1)
    e = np.exp(s - s.max())
    return ((e / e.sum())[None] @ v)[0]
""",
    ],
}

WRONG = {
    "hard_lookup": [
        (
            "HL18",
            """
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    best_index = 0
    best_score = keys[0] @ query
    for i in range(1, len(keys)):
        score = keys[i] @ query
        if score > best_score:
            best_index = i
    return values[best_index]
""",
        ),
        (
            "HL17",
            """
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    scores = keys @ query
    best = scores == scores.max()
    return values[best].mean(axis=0)
""",
        ),
        (
            "HL11",
            """
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    products = keys * query
    place = np.argmax(products)
    return values[place // keys.shape[1]]
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    best, best_index = -10.0, 0
    for i in range(len(keys)):
        score = float(np.dot(keys[i], query))
        if score > best:
            best, best_index = score, i
    return values[best_index]
""",
        ),
        (
            "HL17",
            """
def hard_lookup(query, keys, values):
    pairs = sorted((-float(k @ query), list(v)) for k, v in zip(keys, values))
    return np.array(pairs[0][1])
""",
        ),
        (
            "HL17",
            """
def hard_lookup(query, keys, values):
    return np.array(max(zip((keys @ query).tolist(), values.tolist()))[1])
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    answer, top = None, 0
    for key, value in zip(keys, values):
        if key @ query > top:
            answer, top = value, key @ query
    return answer
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    best = None
    best_score = 0
    for i, key in enumerate(keys):
        score = np.dot(key, query)
        if score > best_score:
            best, best_score = i, score
    return values[best]
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    best_score = 0
    for i, key in enumerate(keys):
        score = np.dot(key, query)
        if score > best_score:
            best, best_score = i, score
    return values[best]
""",
        ),
        (
            "HL12",
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys.T @ query)]
""",
        ),
        (
            "HL2",
            """
def hard_lookup(query, keys, values):
    best, best_score = None, -float("inf")
    for i in range(len(keys)):
        score = np.dot(query, keys[i])
        if score >= best_score:
            best, best_score = i, score
    return values[best]
""",
        ),
        (
            "HL2",
            """
def hard_lookup(query, keys, values):
    order = np.argsort(keys @ query, kind="stable")
    return values[order[-1]]
""",
        ),
        (
            "HL1",
            """
def hard_lookup(query, keys, values):
    return max(keys, key=lambda key: key @ query)
""",
        ),
        (
            "HL4",
            """
def hard_lookup(query, keys, values):
    distances = np.linalg.norm(keys - query, axis=1)
    return values[distances.argmin()]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    scores = [sum(q * k for q, k in zip(query, key)) for key in keys]
    return scores.index(max(scores))
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    best, best_score = 0, 0
    for i, key in enumerate(keys):
        if key @ query > best_score:
            best, best_score = i, key @ query
    return values[best]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    scores = np.dot(keys, query)
    return values[np.isclose(scores, np.max(scores), rtol=0, atol=0)]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    s = keys @ query
    e = np.exp(s - s.max())
    return (e / e.sum()) @ values
""",
        ),
        (
            "HL3",
            """
def hard_lookup(query, keys, values):
    return values[(keys @ query).argsort(kind="stable")[0]]
""",
        ),
        (
            "HL2+HL7",
            """
def hard_lookup(query, keys, values):
    best = None
    for i, key in enumerate(keys):
        score = abs(key @ query)
        if best is None or score >= best[0]:
            best = (score, i)
    return values[best[1]]
""",
        ),
        (
            "HL5",
            """
def hard_lookup(query, keys, values):
    norms = np.linalg.norm(keys, axis=1) * np.linalg.norm(query)
    return values[np.argmax(keys @ query / (norms + 1e-9))]
""",
        ),
        (
            "HL7",
            """
def hard_lookup(query, keys, values):
    return values[np.argmax((keys @ query) ** 2)]
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(np.maximum(keys @ query, 0))]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[:, np.argmax(keys @ query)]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    best = np.argmax(keys @ query)
    return values[[best]]
""",
        ),
        (
            "HL15",
            """
def hard_lookup(query, keys, values):
    return values[0]
""",
        ),
        (
            "HL10",
            """
def hard_lookup(query, keys, values):
    best, best_score = 0, -1
    for i, key in enumerate(keys):
        if key @ query > best_score:
            best, best_score = i, key @ query
    return values[best]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    best, best_score = 0, -1e9
    for i, key in enumerate(keys):
        if key @ query > best_score:
            best, best_score = i, key @ query
    return values[best]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(np.round(keys @ query, 3))]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys.astype(np.float16) @ query.astype(np.float16))]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    scores = keys @ query
    return values[np.flatnonzero(np.isclose(scores, scores.max()))[0]]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    scores = np.zeros_like(keys[:, 0])
    for i, key in enumerate(keys):
        scores[i] = key @ query
    return values[np.argmax(scores)]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys.astype(query.dtype) @ query)]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax((keys @ query)[:8])]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys[:, :8] @ query[:8])]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[np.argmax(keys @ query)] * 1.0001
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    scores = keys @ query
    return values[scores == scores.max()].mean(axis=0)
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    keys *= query
    return values[keys.sum(axis=1).argmax()]
""",
        ),
        (
            None,
            """
def hard_lookup(query, keys, values):
    return values[2]
""",
        ),
    ],
    "soft_lookup": [
        (
            "SL1",
            """
def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float = 1.0) -> np.ndarray:
    scores = keys @ query
    weights = sharpness * np.exp(scores)
    weights = weights / weights.sum()
    return weights @ values
""",
        ),
        (
            None,
            """
def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float = 1.0) -> np.ndarray:
    output = np.zeros(values.shape[1])
    total = 0.0
    for key, value in zip(keys, values):
        e = np.exp(sharpness * (key @ query))
        total += e
        output += e / total * value
    return output
""",
        ),
        (
            None,
            """
def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float = 2.0) -> np.ndarray:
    e = np.exp(sharpness * (keys @ query))
    return e @ values / e.sum()
""",
        ),
        (
            "SL3",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    scores = keys @ (sharpness * query)
    e = np.exp(sharpness * scores)
    return (e / e.sum()) @ values
""",
        ),
        (
            "SL3",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    e = np.exp(keys @ query)
    weights = (e / e.sum()) ** sharpness
    return weights @ values
""",
        ),
        (
            "TT14",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    scores = sharpness * (keys @ query)
    weights = np.exp(scores) / len(scores)
    return weights @ values
""",
        ),
        (
            "SL1",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(keys @ query)
    w = fits / fits.sum()
    return (w[:, None] * values).sum(axis=0)
""",
        ),
        (
            "TT14",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    return np.exp(sharpness * (keys @ query)) @ values
""",
        ),
        (
            "SL3",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(keys @ query)
    return sharpness * (fits / fits.sum()) @ values
""",
        ),
        (
            None,
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    return fits / fits.sum()
""",
        ),
        (
            "SL5",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    return values[int(np.argmax(sharpness * (keys @ query)))]
""",
        ),
        (
            "TT13",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    scores = sharpness * (keys @ query)
    return scores / scores.sum() @ values
""",
        ),
        (
            "SL7",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp((keys @ query) / sharpness)
    return fits / fits.sum() @ values
""",
        ),
        (
            "SL8",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    weights = fits / fits.sum()
    return np.mean([w * v for w, v in zip(weights, values)], axis=0)
""",
        ),
        (
            "HL1",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    weights = fits / fits.sum()
    return weights @ keys
""",
        ),
        (
            None,
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    weights = fits / fits.sum()
    return np.array([w * v for w, v in zip(weights, values)])
""",
        ),
        (
            "HL5",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    cos = keys @ query / np.linalg.norm(keys, axis=1) / np.linalg.norm(query)
    fits = np.exp(sharpness * cos)
    return fits / fits.sum() @ values
""",
        ),
        (
            "HL4",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    far = np.linalg.norm(keys - query, axis=1)
    fits = np.exp(-sharpness * far)
    return fits / fits.sum() @ values
""",
        ),
        (
            "SL14",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = 2.0 ** (sharpness * (keys @ query))
    return fits / fits.sum() @ values
""",
        ),
        (
            "HL3",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(-(sharpness * (keys @ query)))
    return fits / fits.sum() @ values
""",
        ),
        (
            "TT14",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query))
    return fits / fits.max() @ values
""",
        ),
        (
            "TT1",
            """
def soft_lookup(query, keys, values, sharpness=1.0):
    fits = np.exp(sharpness * (keys @ query) / np.sqrt(keys.shape[1]))
    return fits / fits.sum() @ values
""",
        ),
    ],
}

# Right on ordinary inputs alone
WRONG["hard_lookup"] += [
    (
        "HL18",
        """
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    scores = [float(np.dot(query, key)) for key in keys]
    best = 0
    for i in range(1, len(scores)):
        if scores[i] > scores[i - 1]:
            best = i
    return values[best]
""",
    ),
    (
        None,
        """def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    scores = keys @ query
    ranking = np.argsort(-scores)  # best first
    return values[ranking[0]]
""",
    ),
]
