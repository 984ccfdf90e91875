"""Lesson 13: gradients by hand, as learners write them."""

_FORWARD = """
def attend(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return p @ v, p
"""

_SCORES, _BACK = "q @ k.mT / np.sqrt(q.shape[-1])", "/ np.sqrt(q.shape[-1])"
_EXPS, _TOTAL = "np.exp(s - s.max(-1, keepdims=True))", "e.sum(-1, keepdims=True)"

RIGHT = {
    "wrong_gradients": [
        '''
def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    """Two central differences, of a step and of half of it, combined so that the first error cancels (Richardson)."""
    wrong = []
    for position, given in enumerate(inputs):
        claim = np.asarray(backward(*[np.copy(x) for x in inputs], np.copy(grad_output))[position])
        if claim.shape != given.shape:
            wrong.append(position)
            continue
        if np.isnan(claim).any():
            wrong.append(position)
            continue
        true = np.zeros(given.shape)
        for place in np.ndindex(given.shape):
            slopes = []
            for step in (2e-4, 1e-4):
                difference = 0.0
                for sign in (1, -1):
                    arguments = [np.copy(x) for x in inputs]
                    arguments[position][place] += sign * step
                    difference += sign * np.sum(forward(*arguments) * grad_output)
                slopes.append(difference / (2 * step))
            true[place] = (4 * slopes[1] - slopes[0]) / 3
        if np.max(np.abs(claim - true)) > 1e-4 * (1 + np.max(np.abs(true))):
            wrong.append(position)
    return wrong
''',
        '''
def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    """All inputs as one long vector: its gradient is measured once, and cut up again."""
    sizes = np.array([x.size for x in inputs])
    long = np.concatenate([x.ravel() for x in inputs])

    def unpacked(vector):
        return [part.reshape(x.shape).copy() for part, x in zip(np.split(vector, np.cumsum(sizes)[:-1]), inputs)]

    def loss(vector):
        return (np.asarray(forward(*unpacked(vector))) * grad_output).sum()

    measured = np.empty_like(long)
    for n in range(long.size):
        up, down = long.copy(), long.copy()
        up[n] += 1e-5
        down[n] -= 1e-5
        measured[n] = (loss(up) - loss(down)) / (up[n] - down[n])

    found = []
    for n, (claim, true) in enumerate(zip(backward(*unpacked(long), grad_output.copy()), unpacked(measured))):
        if np.shape(claim) == true.shape:
            near = np.abs(claim - true) <= 1e-4 * (1 + np.abs(true).max())  # False for a NaN
            if near.all():
                continue
        found.append(n)
    return found
''',
        """
def slope(f, x, h=1e-4):
    steps = h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(8 * (f(x + s) - f(x - s)) - (f(x + 2 * s) - f(x - 2 * s))) / (12 * h) for s in steps]).reshape(x.shape)

def wrong_gradients(forward, backward, inputs, grad_output):
    claims = list(backward(*[x.copy() for x in inputs], grad_output.copy()))
    good = []
    for i, x in enumerate(inputs):
        def f(y):
            return float(np.einsum("...,...->...", forward(*inputs[:i], y, *inputs[i + 1:]), grad_output).sum())
        true = slope(f, x)
        claim = np.asarray(claims[i])
        good.append(claim.shape == x.shape and bool(np.all(np.abs(claim - true) < 1e-4 * (1 + np.abs(true).max()))))
    return [i for i, ok in enumerate(good) if not ok]
""",
        """
def wrong_gradients(forward, backward, inputs, grad_output):
    bad = []
    grads = backward(*inputs, grad_output)
    for i in range(len(inputs)):
        want = np.empty(inputs[i].shape)
        for at in np.ndindex(*inputs[i].shape):
            values = []
            for h in (2e-6, -2e-6):
                copies = [a.copy() for a in inputs]
                copies[i][at] += h
                values.append(np.vdot(forward(*copies), grad_output))
            want[at] = (values[0] - values[1]) / 4e-6
        g = grads[i]
        ok = np.shape(g) == want.shape and np.isfinite(g).all() and np.max(abs(g - want)) < 1e-4 * (1 + np.max(abs(want)))
        if not ok:
            bad += [i]
    return bad
""",
        """
def wrong_gradients(forward, backward, inputs, grad_output):
    found = set()
    base = (forward(*inputs) * grad_output).sum()
    for i, (x, g) in enumerate(zip(inputs, backward(*inputs, grad_output))):
        if g.shape != x.shape:
            found.add(i)
            continue
        slope = np.zeros_like(x)
        for j in range(x.size):
            moved = x.copy()
            moved.flat[j] += 1e-7
            slope.flat[j] = ((forward(*[moved if n == i else y for n, y in enumerate(inputs)]) * grad_output).sum() - base) / 1e-7
        if not np.allclose(g, slope, rtol=0, atol=1e-4 * (1 + abs(slope).max())):
            found.add(i)
    return sorted(found)
""",
    ],
    "numerical_gradient": [
        """def numerical_gradient(f, x, step=1e-5):
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = step
        grad[i] = (f(x + e) - f(x - e)) / (2 * step)
    return grad
""",
        """def numerical_gradient(f, x, step=1e-5):
    eye = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in eye]).reshape(x.shape)
""",
        """def numerical_gradient(f, x, step=1e-5):
    def slope(n):
        ends = []
        for sign in (1, -1):
            moved = np.array(x, dtype=np.float64)
            moved.flat[n] += sign * step
            ends.append(float(f(moved)))
        return (ends[0] - ends[1]) / 2 / step
    return np.reshape([slope(n) for n in range(x.size)], x.shape)
""",
        '''def numerical_gradient(f, x, step=1e-5):
    """On a flat copy, which is given in a fresh copy at each call; f is called once more than it need be."""
    flat, grad = x.ravel().copy(), np.empty(x.size)
    f(x.copy())
    for n in range(flat.size):
        old = flat[n]
        flat[n] = old + step
        above = f(flat.reshape(x.shape).copy())
        flat[n] = old - step
        grad[n] = (above - f(flat.reshape(x.shape).copy())) / (2 * step)
        flat[n] = old
    return grad.reshape(x.shape)
''',
        """def numerical_gradient(f, x, step=1e-5):
    import copy
    it, grad = np.nditer(x, flags=["multi_index"]), np.zeros(x.shape)
    while not it.finished:
        at = it.multi_index
        plus, minus = copy.deepcopy(x), copy.deepcopy(x)
        plus[at] = plus[at] + step
        minus[at] = minus[at] - step
        grad[at] = f(plus) / (2 * step) - f(minus) / (2 * step)
        it.iternext()
    return grad
""",
        '''def numerical_gradient(f, x, step=1e-5):
    """The mean of the slope ahead and the slope behind."""
    grad = np.zeros(x.shape)
    here = f(np.copy(x))
    for at, _ in np.ndenumerate(x):
        def moved(by):
            y = np.copy(x)
            y[at] += by
            return f(y)
        grad[at] = 0.5 * ((moved(step) - here) / step + (here - moved(-step)) / step)
    return grad
''',
        '''def numerical_gradient(f, x, step=1e-5):
    """Entry by entry, by recursion over the axes."""
    if x.ndim == 0:
        return np.array((f(np.array(x + step)) - f(np.array(x - step))) / (2 * step))
    parts = []
    for i in range(x.shape[0]):
        def inner(row, i=i):
            y = np.array(x)
            y[i] = row
            return f(y)
        parts.append(numerical_gradient(inner, np.array(x[i]), step))
    return np.stack(parts)
''',
        """def numerical_gradient(f, x, step=1e-5):
    moved = np.tile(x.reshape(1, -1), (2 * x.size, 1))
    for n in range(x.size):
        moved[2 * n, n] += step
        moved[2 * n + 1, n] -= step
    losses = np.array([f(one.reshape(x.shape)) for one in moved])
    return ((losses[::2] - losses[1::2]) / (2 * step)).reshape(x.shape)
""",
    ],
    "softmax_backward": [
        '''
def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """By the whole Jacobian of each row, diag(p) − p pᵀ."""
    p = np.asarray(weights, dtype=np.float64)
    jacobian = np.eye(p.shape[-1]) * p[..., None] - np.einsum("...i,...j->...ij", p, p)
    return np.einsum("...ij,...j->...i", jacobian, grad_weights)
''',
        '''
def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Row by row, number by number."""
    grad_scores = np.zeros(weights.shape)
    for place in np.ndindex(weights.shape[:-1]):
        g = grad_weights[place]
        p = weights[place]
        mean = 0.0
        for i in range(len(p)):
            mean += float(g[i]) * float(p[i])
        for i in range(len(p)):
            grad_scores[place + (i,)] = p[i] * (g[i] - mean)
    return grad_scores
''',
        """def softmax_backward(grad_weights, weights):
    out = np.zeros(weights.shape)
    for at in np.ndindex(weights.shape[:-1]):
        p, g = weights[at], grad_weights[at]
        for j in range(len(p)):
            out[at + (j,)] = sum(g[i] * p[i] * ((i == j) - p[j]) for i in range(len(p)))
    return out
""",
        """def softmax_backward(grad_weights, weights):
    n = weights.shape[-1]
    jacobian = weights[..., :, None] * (np.eye(n) - weights[..., None, :])
    return np.einsum("...i,...ij->...j", grad_weights, jacobian)
""",
        """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    inner = np.einsum("...i,...i->...", g, p)[..., None]
    return (p * g - p * inner).astype(np.float32)
""",
        """def softmax_backward(grad_weights, weights):
    product = grad_weights * weights
    return product - weights * np.sum(product, -1, keepdims=True)
""",
    ],
    "attention_backward": [
        '''
def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query after query; each adds its part to the gradients of all keys and values."""
    grad_q, grad_k, grad_v = (np.zeros(np.shape(x)) for x in (q, k, v))
    root = np.sqrt(q.shape[-1])
    for item in np.ndindex(q.shape[:-2]):
        keys, values = k[item], v[item]
        for i, (query, g) in enumerate(zip(q[item], grad_output[item])):
            scores = (keys * query).sum(axis=1) / root
            p = np.exp(scores - scores.max())
            p = p / p.sum()
            for j in range(len(keys)):
                grad_v[item][j] += p[j] * g
            g_p = np.array([(value * g).sum() for value in values])
            g_s = p * (g_p - (p * g_p).sum()) / root
            for j in range(len(keys)):
                grad_q[item][i] += g_s[j] * keys[j]
                grad_k[item][j] += g_s[j] * query
    return grad_q, grad_k, grad_v
''',
        '''
class _Product:
    """c = a @ b, and how a gradient goes back through it."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.value = a @ b

    def back(self, grad):
        return grad @ np.swapaxes(self.b, -1, -2), np.swapaxes(self.a, -1, -2) @ grad


class _Softmax:
    def __init__(self, scores):
        self.value = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))

    def back(self, grad):
        return self.value * (grad - (grad * self.value).sum(axis=-1, keepdims=True))


def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A tape of three steps, played backwards."""
    scale = np.float64(q.shape[-1]) ** -0.5
    first = _Product(q * scale, np.swapaxes(k, -1, -2))
    middle = _Softmax(first.value)
    last = _Product(middle.value, v)
    grad_weights, grad_v = last.back(grad_output)
    grad_scaled_q, grad_k_turned = first.back(middle.back(grad_weights))
    return grad_scaled_q * scale, np.swapaxes(grad_k_turned, -1, -2), grad_v
''',
        _FORWARD
        + """
def attention_backward(q, k, v, grad_output):
    p = attend(q, k, v)[1]
    gp = np.einsum("...qd,...kd->...qk", grad_output, v)
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return [np.einsum("...qk,...kd->...qd", gs, k), np.einsum("...qk,...qd->...kd", gs, q),
            np.einsum("...qk,...qd->...kd", p, grad_output)]
""",
        _FORWARD
        + """
def attention_backward(q, k, v, grad_output):
    out, p = attend(q, k, v)
    delta = (out * grad_output).sum(-1, keepdims=True)  # as FlashAttention does
    gs = p * (grad_output @ np.swapaxes(v, -1, -2) - delta)
    root = q.shape[-1] ** 0.5
    return gs @ (k / root), np.swapaxes(gs, -1, -2) @ (q / root), np.swapaxes(p, -1, -2) @ grad_output
""",
        """def attention_backward(q, k, v, grad_output):
    q, k, v, grad_output = (np.asarray(x, dtype=np.float32) for x in (q, k, v, grad_output))
    gq, gk, gv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    scale = np.float32(1 / np.sqrt(q.shape[-1]))
    for at in np.ndindex(q.shape[:-2]):
        for i in range(q.shape[-2]):
            s = k[at] @ q[at][i] * scale
            p = np.exp(s - s.max())
            p /= p.sum()
            gp = v[at] @ grad_output[at][i]
            gs = p * (gp - gp @ p) * scale
            gq[at][i] = gs @ k[at]
            gk[at] += np.outer(gs, q[at][i])
            gv[at] += np.outer(p, grad_output[at][i])
    return gq, gk, gv
""",
        """def softmax_gradient(g, p):
    return p * (g - (g * p).sum(axis=-1, keepdims=True))

def attention_backward(q, k, v, grad_output):
    d = q.shape[-1]
    _, p = attention(q, k, v)
    gs = softmax_gradient(grad_output @ v.swapaxes(-2, -1), p) / np.sqrt(d)
    return gs @ k, gs.swapaxes(-2, -1) @ q, p.swapaxes(-2, -1) @ grad_output
""",
    ],
}

WRONG = {
    "wrong_gradients": [
        (
            "WG14",
            """
def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    claimed = backward(*inputs, grad_output)
    wrong = []
    for n, x in enumerate(inputs):
        if claimed[n].shape != x.shape or np.isnan(claimed[n]).any():
            wrong.append(n)
            continue
        true = np.zeros_like(x)
        for i in np.ndindex(x.shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[n][i] += 1e-5
            down[n][i] -= 1e-5
            true[i] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if abs(np.linalg.norm(claimed[n]) - np.linalg.norm(true)) > 1e-4 * (1 + np.abs(true).max()):
            wrong.append(n)
    return wrong
""",
        ),
        (
            "WG1",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = (forward(*up) - forward(*down)).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            wrong.append(i)
    return wrong
""",
        ),
        (
            "FF4",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or (abs(g - true) > 1e-4 * (1 + abs(true).max())).any():
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG14",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not abs(g.sum() - true.sum()) <= 1e-4 * (1 + abs(true).max()):
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG13",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 0.1 * (1 + abs(true).max())).all():
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG13",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) < 1e-5).all():
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG14",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not np.linalg.norm(g - true) <= 1e-3 * (np.linalg.norm(g) + np.linalg.norm(true)):
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG13",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (g == true).all():
            wrong.append(i)
    return wrong
""",
        ),
        (
            "WG8",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            return [i]
    return wrong
""",
        ),
        (
            "WG9",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            wrong.append(i + 1)
    return wrong
""",
        ),
        (
            "WG1",
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, np.ones_like(grad_output))):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            wrong.append(i)
    return wrong
""",
        ),
        (
            None,
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            wrong.append(i)
    return len(wrong)
""",
        ),
        (
            None,
            """
def wrong_gradients(forward, backward, inputs, grad_output):
    wrong = []
    for i, g in enumerate(backward(*inputs, grad_output)):
        true = np.zeros(inputs[i].shape)
        for at in np.ndindex(inputs[i].shape):
            up, down = [a.copy() for a in inputs], [a.copy() for a in inputs]
            up[i][at] += 1e-5
            down[i][at] -= 1e-5
            true[at] = ((forward(*up) - forward(*down)) * grad_output).sum() / 2e-5
        if g.shape != true.shape or not (abs(g - true) <= 1e-4 * (1 + abs(true).max())).all():
            wrong.append(i)
    return [i in wrong for i in range(len(inputs))]
""",
        ),
    ],
    "numerical_gradient": [
        *(
            (
                id,
                f"""def numerical_gradient(f, x, step=1e-5):
    grad = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = step
        grad[i] = {slope}
    return grad
""",
            )
            for id, slope in (
                ("ND1", "(f(x + e) - f(1 * x)) / step"),
                ("ND1", "(f(1 * x) - f(x - e)) / step"),
                ("ND2", "(f(x + e) - f(x - e)) / step"),
                ("ND2", "(f(x + e) - f(x - e)) / 2 * step"),
                ("ND2", "f(x + e) - f(x - e)"),
                (None, "(f(x - e) - f(x + e)) / (2 * step)"),
                ("ND11", "(f(x + e / 2) - f(x - e / 2)) / step"),
                ("ND14", "(f(x + step) - f(x - step)) / (2 * step)"),
                (None, "(f(x + e) - f(x - e)) / (4 * step)"),
                (None, "(f(x + 2 * e) - f(x - 2 * e)) / (4 * step)"),
                (None, "(8 * (f(x + e) - f(x - e)) - f(x + 2 * e) + f(x - 2 * e)) / (12 * step)"),
                (None, "(f(x + e) - 2 * f(1 * x) + f(x - e)) / step ** 2"),
                (None, "round((f(x + e) - f(x - e)) / (2 * step), 2)"),
                ("ND11", "(f(x + e / step * 1e-5) - f(x - e / step * 1e-5)) / 2e-5"),
                (None, "(f((x + e).astype(np.float32)) - f((x - e).astype(np.float32))) / (2 * step)"),
                (None, "(f(x[i] + step) - f(x[i] - step)) / (2 * step)"),
                (None, "(f((x + e).tolist()) - f((x - e).tolist())) / (2 * step)"),
                (None, "(f((x + e).ravel()) - f((x - e).ravel())) / (2 * step)"),
                (None, "(f(x + e) - f(x - e)) / (2 * step) * (abs(x[i]) > 1e-2 and abs(x[i]) < 1.0)"),
            )
        ),
        (
            "ND6",
            """def numerical_gradient(f, x, step=1e-5):
    grad = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        plus = x
        minus = x
        plus[i] += step
        minus[i] -= step
        grad[i] = (f(plus) - f(minus)) / (2 * step)
    return grad
""",
        ),
        (
            "ND8",
            '''def numerical_gradient(f, x, step=1e-5):
    """As in a well-known course's notes."""
    grad = np.zeros_like(x)
    it = np.nditer(x, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        ix = it.multi_index
        oldval = x[ix]
        x[ix] = oldval + step
        fxph = f(x)
        x[ix] = oldval - step
        fxmh = f(x)
        x[ix] = oldval
        grad[ix] = (fxph - fxmh) / (2 * step)
        it.iternext()
    return grad
''',
        ),
        (
            "ND8",
            """def numerical_gradient(f, x, step=1e-5):
    y, grad = np.array(x), np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        y[i] += step
        hi = f(y)
        y[i] -= 2 * step
        lo = f(y)
        y[i] += step
        grad[i] = (hi - lo) / (2 * step)
    return grad
""",
        ),
        (
            "ND6",
            """def numerical_gradient(f, x, step=1e-5):
    grad, hi, lo = np.zeros(x.shape), np.copy(x), np.copy(x)
    for i, _ in np.ndenumerate(x):
        hi[i] += step
        lo[i] -= step
        grad[i] = (f(hi) - f(lo)) / (2 * step)
    return grad
""",
        ),
        (
            "ND8",
            '''def numerical_gradient(f, x, step=1e-5):
    """Two arrays for all calls, put back."""
    g = np.zeros(x.shape)
    up, down = x.copy(), x.copy()
    for i in np.ndindex(x.shape):
        up[i] = x[i] + step
        down[i] = x[i] - step
        g[i] = (f(up) - f(down)) / (2 * step)
        up[i] = down[i] = x[i]
    return g
''',
        ),
        (
            "ND8",
            '''def numerical_gradient(f, x, step=1e-5):
    """One array for all calls, each entry put back from x."""
    g, work = np.zeros(x.shape), np.copy(x)
    for at in np.ndindex(x.shape):
        work[at] = x[at] + step
        high = f(work)
        work[at] = x[at] - step
        g[at] = (high - f(work)) / (2 * step)
        work[at] = x[at]
    return g
''',
        ),
        *(
            (
                None,
                f"""def numerical_gradient(f, x, step={step}):
    grad = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[i] = step
        grad[i] = (f(x + e) - f(x - e)) / (2 * step)
    return grad
""",
            )
            for step in ("0.1", "1e-3", "1e-4", "1e-6", "1e-9")
        ),
        (
            "ND8",
            '''def numerical_gradient(f, x, step=1e-5):
    """Put right in the end by a fresh copy, but one that is kept."""
    y, grad = np.array(x), np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        y[...] = x
        y[i] += step
        hi = f(y)
        y[...] = x
        y[i] -= step
        grad[i] = (hi - f(y)) / (2 * step)
    return grad
''',
        ),
        (
            None,
            """def numerical_gradient(f, x, step=1e-5):
    eye = step * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + e) - f(x - e)) / (2 * step) for e in eye])
""",
        ),
        (
            "ND14",
            """def numerical_gradient(f, x, step=1e-5):
    grad = np.zeros(x.shape)
    for i, _ in enumerate(x):
        e = np.zeros(x.shape)
        e[i] = step
        grad[i] = (f(x + e) - f(x - e)) / (2 * step)
    return grad
""",
        ),
        (
            "ND15",
            """def numerical_gradient(f, x, step=1e-5):
    out = []
    for n in range(x.size):
        hi, lo = np.array(x), np.array(x)
        hi.reshape(-1)[n] += step
        lo.reshape(-1)[n] -= step
        out.append((f(hi) - f(lo)) / (2 * step))
    return np.array(out).reshape(x.shape)
""",
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """The gradient of the transposed array."""
    grad = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[at] = step
        grad[at] = (f(x + e) - f(x - e)) / (2 * step)
    return grad.T.reshape(x.shape)
''',
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """float32 in the end."""
    grad = np.zeros(x.shape, dtype=np.float32)
    for at in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[at] = step
        grad[at] = (f(x + e) - f(x - e)) / (2 * step)
    return grad
''',
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """Matrices only."""
    grad = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            e = np.zeros(x.shape)
            e[i, j] = step
            grad[i, j] = (f(x + e) - f(x - e)) / (2 * step)
    return grad
''',
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """A step in proportion to each entry."""
    grad = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        h = step * max(1.0, abs(x[at]))
        e = np.zeros(x.shape)
        e[at] = h
        grad[at] = (f(x + e) - f(x - e)) / (2 * h)
    return grad
''',
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """All points in one call."""
    e = step * np.eye(x.size).reshape(x.size, *x.shape)
    return np.reshape((f(x + e) - f(x - e)) / (2 * step), x.shape)
''',
        ),
        (
            None,
            '''def numerical_gradient(f, x, step=1e-5):
    """By another's autograd."""
    import torch
    t = torch.tensor(x, requires_grad=True)
    f(t.detach().numpy())
    return np.zeros(x.shape)
''',
        ),
    ],
    "softmax_backward": [
        (
            "SX62",
            """
def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = np.sum(grad_weights, axis=-1, keepdims=True)
    return grad_weights - weights * total
""",
        ),
        *(
            (
                "AB8",
                f"def softmax_backward(grad_weights, weights):\n    out = np.zeros(weights.shape)\n    {body}\n    return out\n",
            )
            for body in (
                "for i in range(len(weights)):\n        out[i] = weights[i] * (grad_weights[i] - weights[i] @ grad_weights[i])",
                "for i in range(len(weights)):\n        p = weights[i]\n        out[i] = (np.diag(p) - np.outer(p, p)) @ grad_weights[i]",
                "for i in range(weights.shape[0]):\n        for j in range(weights.shape[1]):\n"
                "            out[i, j] = weights[i, j] * (grad_weights[i, j] - (weights[i] * grad_weights[i]).sum())",
                "n, keys = weights.shape\n    for i in range(n):\n        mean = sum(weights[i, j] * grad_weights[i, j] for j in range(keys))\n"
                "        for j in range(keys):\n            out[i, j] = weights[i, j] * (grad_weights[i, j] - mean)",
            )
        ),
        ("BW1", "def softmax_backward(grad_weights, weights):\n    return grad_weights * weights"),
        ("GB5", "def softmax_backward(grad_weights, weights):\n    return grad_weights * weights * (1 - weights)"),
        (
            "GB19",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * (g - np.sum(g, axis=-1)[..., None])
""",
        ),
        (
            "GB17",
            "def softmax_backward(grad_weights, weights):\n    g, p = grad_weights, weights\n    return p * (g - np.sum(g * p))",
        ),
        (
            "GB16",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * (g - np.einsum("...n,...n->...", g, p))
""",
        ),
        (
            "GB17",
            "def softmax_backward(grad_weights, weights):\n    g, p = grad_weights, weights\n    return p * (g - np.sum(g * p, axis=0))",
        ),
        (
            "GB17",
            "def softmax_backward(grad_weights, weights):\n    g, p = grad_weights, weights\n    return p * (g - np.sum(g * p, -2, keepdims=True))",
        ),
        (
            "GB18",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * g - (p * g).sum(axis=-1)[..., None]
""",
        ),
        (
            "GB19",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * (g - g.sum(-1, keepdims=True) / g.shape[-1])
""",
        ),
        (
            "GB17",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * (g - (g * p).sum(axis=-2 if p.ndim > 1 else 0, keepdims=True))
""",
        ),
        *(
            (
                id,
                f"def softmax_backward(grad_weights, weights):\n    g, p = grad_weights, weights\n    return {returned}",
            )
            for id, returned in (
                ("GB18", "g * (p - (g * p).sum(-1, keepdims=True))"),
                ("GB18", "p * g + p * np.sum(g * p, -1)[..., None]"),
            )
        ),
        (
            "RS17",
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    out = np.zeros_like(g)
    for at in np.ndindex(*p.shape[:-1]):
        out[at] = p[at] * (g[at] - g[at] @ p[at])
    return out
""",
        ),
        (
            None,
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    return p * (g - (g * p)[..., :8].sum(-1, keepdims=True))
""",
        ),
        (
            None,
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    g = g - (g * p).sum(axis=0)
    return p * g
""",
        ),
        (
            None,
            """def softmax_backward(grad_weights, weights):
    g, p = grad_weights, weights
    import torch
    s = torch.log(torch.tensor(p)).requires_grad_()
    (torch.softmax(s, -1) * torch.tensor(g)).sum().backward()
    return s.grad.numpy()
""",
        ),
        (
            None,
            '''def softmax_backward(grad_weights, weights):
    """By finite differences of the scores, which are the logarithms of the weights."""
    g, s = grad_weights, np.log(np.array(weights, dtype=float))
    out = np.zeros(s.shape)
    for at in np.ndindex(s.shape):
        ends = []
        for step in (1e-5, -1e-5):
            t = s.copy()
            t[at] += step
            e = np.exp(t - t.max(-1, keepdims=True))
            ends.append((g * e / e.sum(-1, keepdims=True)).sum())
        out[at] = (ends[0] - ends[1]) / 2e-5
    return out
''',
        ),
        (
            None,
            '''def softmax_backward(grad_weights, weights):
    """By finite differences, each row by itself and with a longer step."""
    def slope(g, p, j, h=1e-3):
        ends = []
        for sign in (1, -1):
            e = np.array(p, dtype=float)
            e[j] *= np.exp(sign * h)
            ends.append((g * e).sum() / e.sum())
        return (ends[0] - ends[1]) / (2 * h)
    out = np.zeros(weights.shape)
    for at in np.ndindex(weights.shape):
        out[at] = slope(grad_weights[at[:-1]], weights[at[:-1]], at[-1])
    return out
''',
        ),
        (
            None,
            "def softmax_backward(grad_weights, weights):\n    g, p = grad_weights, weights\n    g -= (g * p).sum(-1, keepdims=True)\n    return p * g",
        ),
    ],
    "attention_backward": [
        (
            "BW2",
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    p = attend(q, k, v)[1]
    gp = g @ v.swapaxes(-1, -2)
    gs = p * (gp - (gp * p).sum(-1, keepdims=True))
    return gs @ k, gs.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g
""",
        ),
        (
            "BW1",
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    p = attend(q, k, v)[1]
    gs = p * (g @ v.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g
""",
        ),
        (
            "GB7",
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    p = attend(q, k, v)[1]
    gp = g @ v.swapaxes(-1, -2)
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return gs @ k, gs @ q, p.swapaxes(-1, -2) @ g
""",
        ),
        (
            "SD1",
            """def attention_backward(q, k, v, grad_output):
    g = grad_output
    e = np.exp(q @ k.mT - (q @ k.mT).max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.mT @ q, p.mT @ g
""",
        ),
        *(
            (
                id,
                _FORWARD
                + f"""
def attention_backward(q, k, v, grad_output):
    g = grad_output
    root = np.sqrt(q.shape[-1])
    p = attend(q, k, v)[1]
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True))
    return {returned}
""",
            )
            for id, returned in (
                ("BW2", "gs @ k / root, gs.mT @ q, p.mT @ g"),
                ("BW2", "gs @ k, gs.mT @ q / root, p.mT @ g"),
                ("GB7", "gs @ k / root, gs.mT @ q / root, p @ g"),
                ("GB10", "p.mT @ g, gs @ k / root, gs.mT @ q / root"),
                ("GB10", "gs @ k / root, p.mT @ g, gs.mT @ q / root"),
            )
        ),
        *(
            (
                id,
                f"""def attention_backward(q, k, v, grad_output):
    g = grad_output
    s = {scores}
    e = {exps}
    p = e / {total}
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) {back}
    return gs @ k, gs.mT @ q, p.mT @ g
""",
            )
            for id, scores, exps, total, back in (
                ("SM1", _SCORES, "np.exp(s - s.max(-2, keepdims=True))", "e.sum(-2, keepdims=True)", _BACK),
                ("SM2", _SCORES, "np.exp(s - s.max(0))", "e.sum(0)", _BACK),
                ("SM3", _SCORES, _EXPS, "e.sum()", _BACK),
                ("SM4", _SCORES, _EXPS, "e.sum(-1)", _BACK),
                ("SM4", _SCORES, "np.exp(s - s.max(-1))", "e.sum(-1)", _BACK),
                ("GB16", _SCORES, "np.exp(s - np.max(s, -1))", _TOTAL, _BACK),
                ("SD2", "q @ k.mT / q.shape[-1]", _EXPS, _TOTAL, _BACK),
                ("SD2", "q @ k.mT / q.shape[-1]", _EXPS, _TOTAL, "/ q.shape[-1]"),
                (None, _SCORES, _EXPS, _TOTAL, "* q.shape[-1] ** 0.5"),
                ("SD1", "q @ k.mT", _EXPS, _TOTAL, ""),
                ("SD1", "q @ k.mT", _EXPS, _TOTAL, _BACK),
                ("TT9", "q @ k.mT / q.shape[-1] ** 1 / 2", _EXPS, _TOTAL, "/ q.shape[-1] ** 1 / 2"),
                ("TT9", "q @ k.mT / q.shape[-1] ** 1 / 2", _EXPS, _TOTAL, _BACK),
                ("TT9", "q @ k.mT / (q.shape[-1] ** 1 / 2)", _EXPS, _TOTAL, "/ (q.shape[-1] ** 1 / 2)"),
                ("SD5", "q @ k.mT * q.shape[-1] ** 0.5", _EXPS, _TOTAL, "* q.shape[-1] ** 0.5"),
                ("SD6", "q @ k.mT", _EXPS, f"{_TOTAL} / np.sqrt(q.shape[-1])", _BACK),
                ("SD8", "k @ q.mT / np.sqrt(q.shape[-1])", _EXPS, _TOTAL, _BACK),
            )
        ),
        *(
            (
                id,
                _FORWARD
                + f"""
def attention_backward(q, k, v, grad_output):
    g = {given}
    p = attend(q, k, v)[1]
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return {returned}
""",
            )
            for id, given, returned in (
                ("GB24", "grad_output", "gs @ q, gs.mT @ q, p.mT @ g"),
                ("GB24", "grad_output", "gs @ k, gs.mT @ k, p.mT @ g"),
                (None, "grad_output", "gs @ k, gs.mT @ q, p.mT @ g / np.sqrt(q.shape[-1])"),
                (None, "grad_output", "-gs @ k, -gs.mT @ q, -p.mT @ g"),
                (None, "np.ones(grad_output.shape)", "gs @ k, gs.mT @ q, p.mT @ g"),
            )
        ),
        (
            "GB16",
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    p = attend(q, k, v)[1]
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.mT @ q, p.mT @ g
""",
        ),
        (
            "SM6",
            """def attention_backward(q, k, v, grad_output):
    g = grad_output
    s = q @ k.mT / np.sqrt(q.shape[-1])
    p = np.exp(s - np.max(s))
    p = p / p.sum(-1, keepdims=True)
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.mT @ q, p.mT @ g
""",
        ),
        (
            None,
            '''def attention_backward(q, k, v, grad_output):
    """A softmax for each tile of sixteen keys."""
    g = grad_output
    s = q @ k.mT / np.sqrt(q.shape[-1])
    tiles = [np.exp(t - t.max(-1, keepdims=True)) for t in (s[..., i : i + 16] for i in range(0, s.shape[-1], 16))]
    p = np.concatenate([t / t.sum(-1, keepdims=True) for t in tiles], axis=-1)
    gp = g @ v.mT
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.mT @ q, p.mT @ g
''',
        ),
        (
            None,
            _FORWARD
            + '''
def numerical_gradient(f, x, step=1e-5):
    grad = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[at] = step
        grad[at] = (f(x + e) - f(x - e)) / (2 * step)
    return grad

def attention_backward(q, k, v, grad_output):
    """By measuring."""
    loss = lambda q, k, v: (attend(q, k, v)[0] * grad_output).sum()
    return (numerical_gradient(lambda x: loss(x, k, v), q), numerical_gradient(lambda x: loss(q, x, v), k),
            numerical_gradient(lambda x: loss(q, k, x), v))
''',
        ),
        (
            None,
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    grads = []
    for x in (q, k, v):
        grad = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            moved = []
            for step in (1e-5, -1e-5):
                y = np.array(x, dtype=float)
                y[at] += step
                inputs = [y if z is x else z for z in (q, k, v)]
                moved.append((attend(*inputs)[0] * g).sum())
            grad[at] = (moved[0] - moved[1]) / 2e-5
        grads.append(grad)
    return tuple(grads)
""",
        ),
        (
            None,
            _FORWARD
            + '''
def attention_backward(q, k, v, grad_output):
    """A step that suits the size of each array."""
    g = grad_output
    arrays, grads = [np.array(x, dtype=float) for x in (q, k, v)], []
    for x in arrays:
        grad, step = np.zeros(x.shape), 1e-6 * np.abs(x).max()
        for at in np.ndindex(x.shape):
            here, moved = x[at], []
            for x[at] in (here + step, here - step):
                moved.append((attend(*arrays)[0] * g).sum())
            x[at] = here
            grad[at] = (moved[0] - moved[1]) / (2 * step)
        grads.append(grad)
    return tuple(grads)
''',
        ),
        (
            None,
            """def attention_backward(q, k, v, grad_output):
    g = grad_output
    import torch
    q, k, v = (torch.tensor(np.asarray(x, dtype=float), requires_grad=True) for x in (q, k, v))
    (torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v).backward(torch.tensor(np.asarray(g, dtype=float)))
    return q.grad.numpy(), k.grad.numpy(), v.grad.numpy()
""",
        ),
        (
            None,
            _FORWARD
            + """
def attention_backward(q, k, v, grad_output):
    g = grad_output
    p = attend(q, k, v)[1]
    gp = g @ v.swapaxes(-1, -2)
    gs = p * (gp - (gp * p).sum(-2, keepdims=True)) / np.sqrt(q.shape[-1])
    return gs @ k, gs.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g
""",
        ),
    ],
}

WRONG["attention_backward"] += [
    (
        "GB18",
        """def attention_backward(q, k, v, grad_output):
    _, p = attention(q, k, v)
    gv = p.swapaxes(-1, -2) @ grad_output
    ds = grad_output @ v.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, gv
""",
    )  # the softmax's backward pass is left out (gradient of weights used as gradient of scores)
]

WRONG["softmax_backward"] += [
    (
        "AB33",
        """def softmax_backward(grad_weights, weights):
    p = softmax(weights)
    return p * (grad_weights - (grad_weights * p).sum(axis=-1, keepdims=True))
""",
    )  # softmax is taken again of the weights
]

WRONG["attention_backward"] += [
    (
        "TT8",
        """def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    grad_v = w.swapaxes(-1, -2) @ grad_output
    grad_w = grad_output @ v.swapaxes(-1, -2)
    grad_s = w * (grad_w - (grad_w * w).sum(-1, keepdims=True))
    grad_s = grad_s / np.sqrt(grad_output.shape[-1])
    return grad_s @ k, grad_s.swapaxes(-1, -2) @ q, grad_v
""",
    ),
    (
        None,
        """def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root = np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) / root
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    grad_weights = grad_output @ v.swapaxes(-1, -2)
    grad_v = grad_weights.swapaxes(-1, -2) @ grad_output
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(axis=-1, keepdims=True))
    grad_q = grad_scores @ k / root
    grad_k = grad_scores.swapaxes(-1, -2) @ q / root
    return grad_q, grad_k, grad_v
""",
    ),
    (
        "GB36",
        """def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root = np.sqrt(q.shape[-1])
    scores = q @ np.transpose(k) / root
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    grad_v = np.transpose(weights) @ grad_output
    grad_weights = grad_output @ np.transpose(v)
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(axis=-1, keepdims=True))
    grad_q = grad_scores @ k / root
    grad_k = np.transpose(grad_scores) @ q / root
    return grad_q, grad_k, grad_v
""",
    ),
]

WRONG["numerical_gradient"] += [
    (
        "ND1",
        """def numerical_gradient(f, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        moved = x.copy()
        moved[i] += step
        high = f(moved.copy())
        moved[i] -= step
        low = f(moved.copy())
        grad[i] = (high - low) / (2 * step)
    return grad
""",
    ),
    (
        "ND6",
        """def numerical_gradient(f, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    work = x.copy()
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        work[i] += step
        high = f(work.copy())
        work[i] -= 2 * step
        low = f(work.copy())
        grad[i] = (high - low) / (2 * step)
    return grad
""",
    ),
    (
        "ND11",
        """def numerical_gradient(f, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    grad = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        h = step * abs(x[index]) + 1e-12
        high[index] += h
        low[index] -= h
        grad[index] = (f(high) - f(low)) / (2 * h)
    return grad
""",
    ),
]

WRONG["softmax_backward"] += [
    (
        "GB18",
        """def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    inner = np.sum(grad_weights * weights, axis=-1, keepdims=True)
    return weights * (grad_weights - weights * inner)
""",
    ),
    (
        "GB19",
        """def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    inner = np.max(grad_weights, axis=-1, keepdims=True)
    return weights * (grad_weights - inner)
""",
    ),
]

WRONG["attention_backward"] += [
    (
        "GB24",
        """def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root = np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) / root
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    grad_v = weights.swapaxes(-1, -2) @ grad_output
    grad_weights = grad_output @ v.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(axis=-1, keepdims=True))
    grad_q = grad_scores @ k / root
    grad_k = grad_scores.swapaxes(-1, -2) @ grad_q / root
    return grad_q, grad_k, grad_v
""",
    )
]

WRONG["attention_backward"] += [
    (
        "BW2",
        """def attention_backward(q, k, v, grad_output):
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
    dk = np.einsum("...ij,...id->...jd", ds, q)
    return dq, dk, dv
""",
    ),
    (
        "GB10",
        """def attention_backward(q, k, v, grad_output):
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
    return dv, dk, dq
""",
    ),
    (
        "BW2",
        """def attention_backward(q, k, v, grad_output):
    c = q.shape[-1] ** -0.5
    s = np.einsum("...id,...jd->...ij", q, k) * c
    p = np.exp(s - np.amax(s, axis=-1, keepdims=True))
    p = p / np.sum(p, axis=-1, keepdims=True)
    out = np.einsum("...ij,...je->...ie", p, v)
    dv = np.einsum("...ij,...ie->...je", p, grad_output)
    dp = np.einsum("...ie,...je->...ij", grad_output, v)
    D = np.sum(grad_output * out, axis=-1, keepdims=True)
    ds = p * (dp - D)
    dq = np.einsum("...ij,...jd->...id", ds, k)
    dk = np.einsum("...ij,...id->...jd", ds, q) * c
    return dq, dk, dv
""",
    ),
    (
        None,
        """def attention_backward(q, k, v, grad_output):
    c = q.shape[-1] ** -0.5
    s = np.einsum("...id,...jd->...ij", q, k) * c
    p = np.exp(s - np.amax(s, axis=-1, keepdims=True))
    p = p / np.sum(p, axis=-1, keepdims=True)
    out = np.einsum("...ij,...je->...ie", p, v)
    dv = np.einsum("...ij,...ie->...je", p, grad_output)
    dp = np.einsum("...ie,...je->...ij", grad_output, v)
    D = np.sum(grad_output * out, axis=-1, keepdims=True)
    ds = p * (dp - D)
    dq = np.einsum("...ij,...jd->...id", ds, k) / c
    dk = np.einsum("...ij,...id->...jd", ds, q) / c
    return dq, dk, dv
""",
    ),
]

# Right on ordinary inputs alone
WRONG["softmax_backward"] += [
    (
        None,
        """def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    n = weights.shape[-1]
    grad_scores = np.zeros_like(weights, dtype=float)
    rows = grad_scores.reshape(-1, n)
    for r, (g, p) in enumerate(zip(grad_weights.reshape(-1, n), weights.reshape(-1, n))):
        rows[r] = p * (g - np.dot(p, g))
    return grad_scores
""",
    )
]
WRONG["wrong_gradients"] += [
    (
        None,
        """def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    h = 1e-5
    claimed = backward(*inputs, grad_output)
    work = [np.array(x) for x in inputs]
    answer = []
    for n, x in enumerate(inputs):
        true = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            work[n][place] = x[place] + h
            upper = forward(*work)
            work[n][place] = x[place] - h
            lower = forward(*work)
            work[n][place] = x[place]
            true[place] = ((upper - lower) * grad_output).sum() / (2 * h)
        if np.shape(claimed[n]) != x.shape or not np.isfinite(claimed[n]).all():
            answer.append(n)
        elif np.abs(claimed[n] - true).max() > 1e-4 * (1 + np.abs(true).max()):
            answer.append(n)
    return answer
""",
    )
]
WRONG["wrong_gradients"] += [
    (
        None,
        """def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    h = 1e-5
    claims = backward(*[x.copy() for x in inputs], grad_output.copy())

    def loss():
        return np.sum(forward(*inputs) * grad_output)

    found = []
    for position, (x, claim) in enumerate(zip(inputs, claims)):
        true = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            kept = x[place].copy()
            x[place] = kept + h
            up = loss()
            x[place] = kept - h
            down = loss()
            x[place] = kept                       # exactly as it was
            true[place] = (up - down) / (2 * h)
        claim = np.asarray(claim)
        limit = 1e-4 * (1 + np.abs(true).max())
        if claim.shape != x.shape or np.isnan(claim).any() or np.abs(claim - true).max() > limit:
            found.append(position)
    return found
""",
    )
]
