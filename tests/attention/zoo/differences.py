"""Answers by finite differences where a formula is asked for. {up} and {down}: the steps, as numbers."""

DIFFERENCES = {
    "softmax_jacobian": """
def softmax_jacobian(p):
    with np.errstate(divide="ignore"):
        x = np.log(p.astype(float))
    columns = []
    for j in range(len(x)):
        ends = []
        for step in ({up}, {down}):
            y = x.copy()
            y[j] += step
            e = np.exp(y - y.max())
            ends.append(e / e.sum())
        columns.append((ends[0] - ends[1]) / ({up} - ({down})))
    return np.stack(columns, axis=1)
""",
    "cross_entropy_gradient": """
def cross_entropy_gradient(scores, targets):
    def losses(x):
        top = x.max(axis=-1, keepdims=True)
        picked = np.take_along_axis(x, np.asarray(targets)[..., None].astype(int), axis=-1)
        return (np.log(np.exp(x - top).sum(axis=-1, keepdims=True)) - (picked - top))[..., 0]
    grad = np.zeros(scores.shape)
    for j in range(scores.shape[-1]):
        moved = np.eye(scores.shape[-1])[j]
        grad[..., j] = (losses(scores + {up} * moved) - losses(scores + ({down}) * moved)) / ({up} - ({down}))
    return grad
""",
    "softmax_gradient_norm": """
def softmax_gradient_norm(scores):
    def weights(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
    squares = 0
    for moved in np.eye(scores.shape[-1]):
        slope = (weights(scores + {up} * moved) - weights(scores + ({down}) * moved)) / ({up} - ({down}))
        squares = squares + (slope ** 2).sum(axis=-1)
    return np.sqrt(squares)
""",
    "query_gradient_norm": """
def query_gradient_norm(q, keys, scale):
    def weights(q):
        s = scale * (keys @ q)
        e = np.exp(s - s.max())
        return e / e.sum()
    slopes = [(weights(q + {up} * moved) - weights(q + ({down}) * moved)) / ({up} - ({down})) for moved in np.eye(len(q))]
    return float(np.sqrt((np.array(slopes) ** 2).sum()))
""",
    "tiled_attention_backward": '''
def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    n, g = block_size, grad_output.double()
    def loss(q, k, v):
        """Of each item and head."""
        total = torch.zeros(q.shape[:2], dtype=q.dtype)
        for i in range(0, q.shape[2], n):
            rows = q[:, :, i:i + n]
            m = rows.new_full(rows.shape[:3], -math.inf)
            l, o = torch.zeros_like(m), rows.new_zeros(*rows.shape[:3], v.shape[3])
            for j in range(0, k.shape[2], n):
                s = rows @ k[:, :, j:j + n].mT / math.sqrt(q.shape[-1])
                if causal:
                    s = s + torch.full_like(s, -math.inf).triu(1 + i + k.shape[2] - q.shape[2] - j)
                new = torch.maximum(m, s.amax(-1))
                f, p = torch.exp(m - new), torch.exp(s - new[..., None])
                l, o, m = l * f + p.sum(-1), o * f[..., None] + p @ v[:, :, j:j + n], new
            total = total + (o / l[..., None] * g[:, :, i:i + n]).sum((-1, -2))
        return total
    given, grads = [x.double() for x in (q, k, v)], []
    for which, x in enumerate(given):
        grad = torch.zeros_like(x)
        for t in range(x.shape[2]):
            for d in range(x.shape[3]):
                ends = []
                for step in ({up}, {down}):
                    moved = x.clone()
                    moved[:, :, t, d] += step
                    ends.append(loss(*given[:which], moved, *given[which + 1:]))
                grad[:, :, t, d] = (ends[0] - ends[1]) / ({up} - ({down}))
        grads.append(grad.to(q.dtype))
    return tuple(grads)
''',
}
