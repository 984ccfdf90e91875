"""Lesson 14: attention in tiles, as learners write it. In the wrong answers, None stands where the verdict names no mistake of a list."""

_PARTIAL = """
def partial(q, k, v, hidden=None):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if hidden is not None:
        s = s.masked_fill(hidden, float("-inf"))
    m = s.max(dim=-1).values
    p = torch.exp(s - torch.where(torch.isinf(m), torch.zeros_like(m), m).unsqueeze(-1))
    return m, p.sum(-1), p @ v
"""
_MERGE = """
def merge_partial(a, b):
    m = torch.max(a[0], b[0])
    base = torch.where(m == float("-inf"), 0.0, m)
    wa, wb = torch.exp(a[0] - base), torch.exp(b[0] - base)
    return m, wa * a[1] + wb * b[1], wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]
"""

MERGE_RIGHT = [
    _MERGE,
    '''def merge_partial(a, b):
    """Both sides stacked, and reduced over the new axis."""
    ms, ls = torch.stack((a[0], b[0])), torch.stack((a[1], b[1]))
    top = ms.amax(0)
    factors = torch.nan_to_num(torch.exp(ms - top), nan=0.0)
    return [top, (factors * ls).sum(0), torch.einsum("i...q,i...qd->...qd", factors, torch.stack((a[2], b[2])))]
''',
    '''from collections import namedtuple
Triple = namedtuple("Triple", "m l o")

def merge_partial(a, b):
    """Number by number."""
    m_out, l_out, o_out = (torch.empty_like(part) for part in a)
    flat = [part.reshape(-1) for part in (a[0], a[1], b[0], b[1], m_out, l_out)]
    d = a[2].shape[-1]
    oa, ob, oo = (part.reshape(-1, d) for part in (a[2], b[2], o_out))
    for i in range(flat[0].numel()):
        ma, la, mb, lb = (float(part[i]) for part in flat[:4])
        top = max(ma, mb)
        fa = math.exp(ma - top) if ma > -math.inf else 0.0
        fb = math.exp(mb - top) if mb > -math.inf else 0.0
        flat[4][i], flat[5][i] = top, la * fa + lb * fb
        oo[i] = oa[i] * fa + ob[i] * fb
    return Triple(m_out, l_out, o_out)
''',
    '''def merge_partial(a, b):
    """Through the two logsumexps, in float64."""
    (ma, la, oa), (mb, lb, ob) = (tuple(part.double() for part in side) for side in (a, b))
    m = torch.maximum(ma, mb)
    seen = m > -math.inf
    base = torch.where(seen, m, 0)
    l = torch.exp(torch.logaddexp(ma + la.log(), mb + lb.log()) - base)
    o = oa * (ma - base).exp()[..., None] + ob * (mb - base).exp()[..., None]
    return m, torch.where(seen, l, 0), torch.where(seen[..., None], o, 0)
''',
    '''def merge_partial(a, b):
    """One factor, below 1, for whichever side is lower."""
    gap = torch.nan_to_num(a[0] - b[0], nan=0.0)
    down = torch.exp(-gap.abs())
    fa, fb = torch.where(gap < 0, down, torch.ones_like(down)), torch.where(gap > 0, down, torch.ones_like(down))
    return torch.maximum(a[0], b[0]), a[1] * fa + b[1] * fb, a[2] * fa[..., None] + b[2] * fb[..., None]
''',
    '''def merge_partial(a, b):
    """b added in place to a copy of a, row by row where something is there."""
    m, l, o = (part.clone() for part in a)
    lower, has = b[0] <= m, b[1] > 0
    keep = has & lower
    f = torch.exp(b[0][keep] - m[keep])
    l[keep] += b[1][keep] * f
    o[keep] += b[2][keep] * f[:, None]
    raised = has & ~lower
    f = torch.exp(m[raised] - b[0][raised])
    l[raised] = l[raised] * f + b[1][raised]
    o[raised] = o[raised] * f[:, None] + b[2][raised]
    m[raised] = b[0][raised]
    return m, l, o
''',
]

MERGE_WRONG = [
    ("FL1", _MERGE.replace("wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]", "a[2] + b[2]")),
    (
        "FL2",
        _MERGE.replace("wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]", "a[2] + b[2]").replace(
            "wa * a[1] + wb * b[1]", "a[1] + b[1]"
        ),
    ),
    ("FL4", _MERGE.replace("m = torch.max(a[0], b[0])", "m = torch.max(a[0], b[0]).clamp_min(0)")),
    ("FL5", _MERGE.replace('torch.where(m == float("-inf"), 0.0, m)', "m")),
    ("OS1", _MERGE.replace("wb * b[1]", "b[1]").replace("wb.unsqueeze(-1) * b[2]", "b[2]")),
    (
        "OS2",
        _MERGE.replace(
            "torch.exp(a[0] - base), torch.exp(b[0] - base)", "1 / torch.exp(a[0] - base), 1 / torch.exp(b[0] - base)"
        ),
    ),
    (
        "OS3",
        "def merge_partial(a, b):\n    m = torch.max(a[0], b[0])\n    base = torch.where(m == -math.inf, 0.0, m)\n"
        "    l = sum((s[0] - base).exp() * s[1] for s in (a, b))\n"
        "    return m, l, sum(((s[0] - base).exp() / l)[..., None] * s[2] for s in (a, b))\n",
    ),
    (
        "OS3",
        _MERGE.replace("    return m, ", "    l = wa * a[1] + wb * b[1]\n    return m, ").replace(
            "wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]",
            "torch.where(l[..., None] > 0, (wa[..., None] * a[2] + wb[..., None] * b[2]) / l[..., None], 0.0)",
        ),
    ),
    ("OS6", _MERGE.replace("torch.exp(a[0] - base), torch.exp(b[0] - base)", "a[0].exp(), b[0].exp()")),
    (
        "OS6",
        "def merge_partial(a, b):\n    m = torch.max(a[0], b[0])\n    ea, eb, e = a[0].exp(), b[0].exp(), m.exp()\n"
        "    return m, (ea * a[1] + eb * b[1]) / e, (ea[..., None] * a[2] + eb[..., None] * b[2]) / e[..., None]\n",
    ),
    (None, _MERGE.replace("m = torch.max(a[0], b[0])", "m = torch.clamp(torch.max(a[0], b[0]), min=-5e4)")),
    (None, _MERGE.replace("return m,", "return torch.nan_to_num(m),")),
    ("OS8", _MERGE.replace("    base = ", "    m = ").replace("- base", "- m")),
    (None, _MERGE.replace("wa.unsqueeze(-1) * a[2] + wb.unsqueeze(-1) * b[2]", "wa * a[2] + wb * b[2]")),
    (
        "OS14",
        "def merge_partial(a, b):\n    if (a[0] == -math.inf).any():\n        return b\n    if (b[0] == -math.inf).any():\n        return a\n"
        + _MERGE.split("\n", 2)[2],
    ),
    (
        "OS14",
        "def merge_partial(a, b):\n    if torch.isinf(a[0]).all():\n        return b\n    if torch.isinf(b[0]).all():\n        return a\n"
        + _MERGE.replace('torch.where(m == float("-inf"), 0.0, m)', "m").split("\n", 2)[2],
    ),
    # no list holds these
    (None, "def merge_partial(a, b):\n    return a[0] + b[0], a[1] + b[1], a[2] + b[2]\n"),
    (None, "def merge_partial(a, b):\n    return b\n"),
    (None, _MERGE.replace("return m, ", "return ")),
    (
        None,
        _MERGE.replace("    m = ", "    a[0].copy_(torch.max(a[0], b[0]))\n    m = "),
    ),  # an input is changed in place
    (
        None,
        "def merge_partial(a, b):\n    s = torch.softmax(torch.stack((a[0], b[0])), 0)\n"
        "    return torch.maximum(a[0], b[0]), s[0] * a[1] + s[1] * b[1], s[0, ..., None] * a[2] + s[1, ..., None] * b[2]\n",
    ),
    (None, _MERGE.replace("m = torch.max(a[0], b[0])", "m = (a[0] + b[0]) / 2")),
]

_TILED = """
def tiled_attention(q, k, v, block_size, causal=False):
    B, H, Tq, d = q.shape
    Tk, n = k.shape[2], block_size
    out = torch.zeros(B, H, Tq, v.shape[3], dtype=q.dtype, device=q.device)
    lse = torch.zeros(B, H, Tq, dtype=q.dtype, device=q.device)
    for i in range(0, Tq, n):
        qi = q[:, :, i:i + n] / d ** 0.5
        m = torch.full((B, H, qi.shape[2], 1), float("-inf"), dtype=q.dtype, device=q.device)
        l, acc = torch.zeros_like(m), torch.zeros_like(out[:, :, i:i + n])
        for j in range(0, Tk, n):
            s = qi @ k[:, :, j:j + n].transpose(2, 3)
            if causal:
                row = torch.arange(i, i + s.shape[2], device=q.device).view(-1, 1) + Tk - Tq
                col = torch.arange(j, j + s.shape[3], device=q.device).view(1, -1)
                s = torch.where(col <= row, s, torch.tensor(float("-inf"), dtype=s.dtype))
            new = torch.maximum(m, s.max(3, keepdim=True)[0])
            p = (s - new).exp()
            alpha = (m - new).exp()
            l = alpha * l + p.sum(3, keepdim=True)
            acc = alpha * acc + p @ v[:, :, j:j + n]
            m = new
        out[:, :, i:i + n] = acc / l
        lse[:, :, i:i + n] = (m + l.log()).squeeze(3)
    return out, lse
"""

_SKIPPING = _TILED.replace(
    "            s = qi",
    "            if causal and j > i + qi.shape[2] - 1 + Tk - Tq:\n                break\n            s = qi",
)

TILED_RIGHT = [
    _TILED,
    _TILED.replace(
        'torch.tensor(float("-inf"), dtype=s.dtype)', "torch.tensor(-1e30, dtype=s.dtype)"
    ),  # as good within the contract
    _PARTIAL
    + _MERGE
    + '''
def tiled_attention(q, k, v, block_size, causal=False):
    """Each tile's own partial result, merged; in the keys' reverse order."""
    t_q, t_k = q.shape[2], k.shape[2]
    outs, sums = [], []
    for i in range(0, t_q, block_size):
        qi = q[:, :, i:i + block_size]
        state = (qi.new_full(qi.shape[:3], float("-inf")), qi.new_zeros(qi.shape[:3]), qi.new_zeros(*qi.shape[:3], v.shape[3]))
        for j in reversed(range(0, t_k, block_size)):
            kj, vj = k[:, :, j:j + block_size], v[:, :, j:j + block_size]
            hidden = None
            if causal:
                at = torch.arange(i + t_k - t_q, i + t_k - t_q + qi.shape[2], device=q.device)
                hidden = torch.arange(j, j + kj.shape[2], device=q.device) > at[:, None]
            state = merge_partial(state, partial(qi, kj, vj, hidden))
        m, l, o = state
        outs.append(o / l[..., None])
        sums.append(m + l.log())
    return torch.cat(outs, 2), torch.cat(sums, 2)
''',
    '''def tiled_attention(q, k, v, block_size, causal=False):
    """Loops over items and heads, too; normalized outputs and logsumexps, merged by logaddexp."""
    out = torch.empty(*q.shape[:3], v.shape[3], dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=q.dtype, device=q.device)
    shift = k.shape[2] - q.shape[2]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(0, q.shape[2], block_size):
                rows = q[b, h, i:i + block_size]
                o, total = torch.zeros(len(rows), v.shape[3], dtype=q.dtype, device=q.device), torch.full((len(rows),), -math.inf, dtype=q.dtype, device=q.device)
                for j in range(0, k.shape[2], block_size):
                    s = rows @ k[b, h, j:j + block_size].T / math.sqrt(q.shape[3])
                    if causal:
                        s += torch.full_like(s, -math.inf).triu(1 + i + shift - j)
                    part = torch.logsumexp(s, 1)
                    merged = torch.logaddexp(total, part)
                    o = torch.exp(total - merged)[:, None] * o + torch.exp(s - merged[:, None]) @ v[b, h, j:j + block_size]
                    total = merged
                out[b, h, i:i + block_size], lse[b, h, i:i + block_size] = o, total
    return out, lse
''',
    '''def tiled_attention(q, k, v, block_size, causal=False):
    """Keys in the outer loop, all queries' state in buffers."""
    b, h, t_q, d = q.shape
    t_k = k.shape[2]
    m, l = q.new_full((b, h, t_q), -math.inf), q.new_zeros(b, h, t_q)
    o = q.new_zeros(b, h, t_q, v.shape[3])
    for k0 in range(0, t_k, block_size):
        kt, vt = k[:, :, k0:k0 + block_size], v[:, :, k0:k0 + block_size]
        for q0 in range(0, t_q, block_size):
            rows = slice(q0, min(q0 + block_size, t_q))
            if causal and k0 > rows.stop - 1 + t_k - t_q:
                continue
            s = torch.einsum("bhqd,bhkd->bhqk", q[:, :, rows], kt) / math.sqrt(d)
            if causal:
                seen = torch.ones(s.shape[2:], dtype=torch.bool, device=q.device).tril(q0 + t_k - t_q - k0)
                s = s.masked_fill(~seen, -math.inf)
            new = torch.maximum(m[:, :, rows], s.amax(-1))
            p, f = torch.exp(s - new.unsqueeze(-1)), torch.exp(m[:, :, rows] - new)
            l[:, :, rows] *= f
            l[:, :, rows] += p.sum(-1)
            o[:, :, rows] *= f[..., None]
            o[:, :, rows] += torch.einsum("bhqk,bhkd->bhqd", p, vt)
            m[:, :, rows] = new
    o /= l[..., None]
    return o, m.add(l.log())
''',
    '''import torch.nn.functional as F

def tiled_attention(q, k, v, block_size, causal=False):
    """Padded to whole tiles, the padding hidden; tiles as an axis of a view, several queries' tiles at once."""
    t_q, t_k, n = q.shape[2], k.shape[2], block_size
    more = -t_k % n
    k, v = F.pad(k, (0, 0, 0, more)), F.pad(v, (0, 0, 0, more))
    tiles = list(zip(k.split(n, 2), v.split(n, 2)))
    m, l, o = q.new_full((*q.shape[:3], 1), -math.inf), 0, 0
    where = torch.arange(t_q, device=q.device).unsqueeze(1) + (t_k - t_q)
    for number, (kt, vt) in enumerate(tiles):
        at = number * n + torch.arange(n, device=q.device)
        hidden = (at >= t_k).expand(t_q, n)
        if causal:
            hidden = hidden | (at > where)
        s = (q @ kt.mT) * (1 / math.sqrt(q.shape[3]))
        s = s.masked_fill(hidden, -math.inf)
        new = torch.maximum(m, s.amax(-1, True))
        p = torch.exp(s - new)
        f = torch.exp(m - new)
        l, o, m = l * f + p.sum(-1, True), o * f + p @ vt, new
    return o / l, (m + torch.log(l))[..., 0]
''',
    '''def tiled_attention(q, k, v, block_size, causal=False):
    """One query at a time, and keys in tiles of another size than the queries'."""
    t_q, t_k = q.size(-2), k.size(-2)
    results = []
    for i in range(t_q):
        last = i + t_k - t_q + 1 if causal else t_k
        qi, m, l, o = q[..., i, :], None, None, None
        for j in range(0, last, 2 * block_size):
            stop = min(j + 2 * block_size, last)
            s = (k[..., j:stop, :] * qi[..., None, :]).sum(-1) / q.size(-1) ** 0.5
            top = s.max(-1)[0]
            new = top if m is None else torch.maximum(m, top)
            e = torch.exp(s - new[..., None])
            add_l, add_o = e.sum(-1), (e[..., None] * v[..., j:stop, :]).sum(-2)
            if m is not None:
                f = torch.exp(m - new)
                add_l, add_o = add_l + l * f, add_o + o * f[..., None]
            m, l, o = new, add_l, add_o
        results.append((o / l[..., None], m + torch.log(l)))
    return torch.stack([r[0] for r in results], -2), torch.stack([r[1] for r in results], -1)
''',
    '''class Running:
    """The state of one tile of queries, in float64."""

    def __init__(self, queries, width):
        self.q = queries
        self.m = queries.new_full(queries.shape[:-1], -torch.inf)
        self.l = torch.zeros_like(self.m)
        self.o = queries.new_zeros(*queries.shape[:-1], width)

    def add(self, keys, values, first, start):
        s = self.q @ keys.mT
        if first is not None:
            for r in range(s.shape[-2]):
                s[..., r, max(0, first + r + 1 - start):] = -torch.inf
        m = torch.maximum(self.m, s.amax(-1))
        p, f = torch.exp(s - m[..., None]), torch.exp(self.m - m)
        self.m, self.l, self.o = m, f * self.l + p.sum(-1), f[..., None] * self.o + p @ values


def tiled_attention(q, k, v, block_size, causal=False):
    q, k, v = q.double() / q.shape[-1] ** 0.5, k.double(), v.double()
    done = []
    for i in range(0, q.shape[-2], block_size):
        tile = Running(q[..., i:i + block_size, :], v.shape[-1])
        for j in range(0, k.shape[-2], block_size):
            first = i + k.shape[-2] - q.shape[-2] if causal else None
            if causal and j > first + tile.q.shape[-2] - 1:
                break
            tile.add(k[..., j:j + block_size, :], v[..., j:j + block_size, :], first, j)
        done.append(tile)
    return torch.cat([t.o / t.l[..., None] for t in done], -2), torch.cat([t.m + t.l.log() for t in done], -1)
''',
    _PARTIAL
    + _MERGE
    + '''
def tiled_attention(q, k, v, block_size, causal=False):
    """Keys halved until they fit: the order of merging does not matter."""
    offset = k.shape[2] - q.shape[2]

    def over(qi, i, lo, hi):
        if hi - lo <= block_size:
            hidden = None
            if causal:
                hidden = torch.arange(lo, hi, device=q.device) > (torch.arange(i, i + qi.shape[2], device=q.device) + offset)[:, None]
            return partial(qi, k[:, :, lo:hi], v[:, :, lo:hi], hidden)
        mid = (lo + hi) // 2
        return merge_partial(over(qi, i, lo, mid), over(qi, i, mid, hi))

    states = [over(q[:, :, i:i + block_size], i, 0, k.shape[2]) for i in range(0, q.shape[2], block_size)]
    return torch.cat([o / l[..., None] for m, l, o in states], 2), torch.cat([m + l.log() for m, l, o in states], 2)
''',
]
TILED_RIGHT += [_SKIPPING]

_NAIVE = """
def tiled_attention(q, k, v, block_size, causal=False):
    s = {scores} / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1 + s.shape[-1] - s.shape[-2]), -math.inf)
    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)
"""
_HELPED = "def scores(q, k):\n    return q @ k.mT\n" + _NAIVE.format(scores="scores(q, k)")
_THREADED = """
import threading

def in_thread(q, k):
    kept = []
    thread = threading.Thread(target=lambda: kept.append(q @ k.mT))
    thread.start()
    thread.join()
    return kept[0]
""" + _NAIVE.format(scores="in_thread(q, k)")

TABLES = {  # each holds a tensor as large as the table, and is right otherwise
    "the table itself": _NAIVE.format(scores="(q @ k.mT)"),
    "in a helper": _HELPED,
    "in a thread": _THREADED,
    "by einsum": _NAIVE.format(scores="torch.einsum('bhqd,bhkd->bhqk', q, k)"),
    "by cdist": _NAIVE.format(
        scores="((q ** 2).sum(-1)[..., None] + (k ** 2).sum(-1)[..., None, :] - torch.cdist(q, k) ** 2) / 2"
    ),
    "expanded and made real": _NAIVE.format(
        scores="(q[..., None, :].expand(-1, -1, -1, k.shape[2], -1).contiguous() * k[..., None, :, :]).sum(-1)"
    ),
    "grown in place": _NAIVE.format(
        scores="torch.empty(0).resize_(*q.shape[:3], k.shape[2]).copy_(torch.matmul(q, k.mT))"
    ),
    "item by item": _NAIVE.format(
        scores="torch.stack([torch.stack([a @ b.T for a, b in zip(x, y)]) for x, y in zip(q, k)])"
    ),
    "by vmap": _NAIVE.format(
        scores="torch.vmap(lambda one: (k[..., :] * one[:, :, None]).sum(-1), in_dims=2, out_dims=2)(q)"
    ),
    "traced": "product = torch.jit.trace(lambda a, b: a @ b.mT, (torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3)), check_trace=False)\n"
    + _NAIVE.format(scores="product(q, k)"),
    "captured from a list": "made = [torch.ops.aten.matmul.default]\n"
    + _NAIVE.format(scores="list(map(made[0], [q], [k.mT]))[0]"),
    "a mask for all": _TILED.replace(
        "    for i in range(0, Tq, n):",
        "    seen = torch.ones(Tq, Tk, dtype=torch.bool).tril(Tk - Tq)\n    for i in range(0, Tq, n):",
        1,
    ).replace("col <= row", "seen[i:i + n, j:j + n]"),
    "a mask made before": "SEEN = torch.ones(512, 512, dtype=torch.bool).tril()\n"
    + _TILED.replace("col <= row", "SEEN[i + Tk - Tq:i + Tk - Tq + s.shape[2], j:j + s.shape[3]]"),
    "tiles put together": _NAIVE.format(
        scores="torch.cat([torch.cat([a @ b.mT for b in k.split(block_size, 2)], 3) for a in q.split(block_size, 2)], 2)"
    ),
    "written into a buffer": _NAIVE.format(scores="torch.matmul(q, k.mT, out=torch.empty(0))"),
}

# Less than the table, and all keys of a query at once.
_ROWS = '''def tiled_attention(q, k, v, block_size, causal=False):
    """Rows of tiles: some queries against all keys at once, which is less than the table."""
    t_q, t_k = q.shape[2], k.shape[2]
    out, lse = [], []
    for i, qi in enumerate(q.split(block_size, dim=2)):
        s = qi @ k.mT / math.sqrt(q.shape[3])
        if causal:
            at = i * block_size + torch.arange(qi.shape[2], device=q.device) + t_k - t_q
            s = s.masked_fill(torch.arange(t_k, device=q.device) > at[:, None], -math.inf)
        out.append(torch.softmax(s, -1) @ v)
        lse.append(torch.logsumexp(s, -1))
    return torch.cat(out, 2), torch.cat(lse, 2)
'''
_BACK_ROWS = '''
def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """Rows of tiles: some queries against all keys at once."""
    root, delta = math.sqrt(q.shape[-1]), (grad_output * output).sum(-1, keepdim=True)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, q.shape[2], block_size):
        at = slice(i, i + block_size)
        s = q[:, :, at] @ k.mT / root
        if causal:
            s = s + torch.full_like(s, -math.inf).triu(1 + i + k.shape[2] - q.shape[2])
        w = torch.exp(s - logsumexp[:, :, at, None])
        gs = w * (grad_output[:, :, at] @ v.mT - delta[:, :, at]) / root
        dq[:, :, at] = gs @ k
        dk += gs.mT @ q[:, :, at]
        dv += w.mT @ grad_output[:, :, at]
    return dq, dk, dv
'''
_STEPS = {"rows of tiles": "block_size", "row by row": "1", "in two halves": "-(-q.shape[2] // 2)"}
AT_ONCE = {
    **{
        ("tiled_attention", way): _ROWS.replace("q.split(block_size", f"q.split({step}").replace(
            "i * block_size", f"i * ({step})"
        )
        for way, step in _STEPS.items()
    },
    **{
        ("tiled_attention_backward", way): _BACK_ROWS.replace(
            "block_size):\n        at", f"{step}):\n        at"
        ).replace("i + block_size", f"i + ({step})")
        for way, step in _STEPS.items()
    },
    ("tiled_attention", "keys in two halves"): _TILED.replace("range(0, Tk, n)", "range(0, Tk, -(-Tk // 2))").replace(
        "j:j + n", "j:j + -(-Tk // 2)"
    ),
}

TILED_WRONG = [
    *((None, text) for (name, _), text in AT_ONCE.items() if name == "tiled_attention"),
    *((None, text) for text in TABLES.values()),
    ("FL1", _TILED.replace("acc = alpha * acc + p", "acc = acc + p")),
    ("FL2", _TILED.replace("acc = alpha * acc + p", "acc = acc + p").replace("l = alpha * l + p", "l = l + p")),
    ("FL3", _TILED.replace("p = (s - new).exp()", "p = (s - s.amax(3, keepdim=True)).exp()")),
    ("FL4", _TILED.replace('float("-inf"), dtype=q.dtype, device', "0.0, dtype=q.dtype, device")),
    # the published guard: keys from the last to the first, so that a first tile may be hidden, and a kept maximum of 0 (flash-attention#2082)
    ("OS8", TILED_RIGHT[2].replace("    base = ", "    m = ").replace("- base", "- m")),
    (
        "OS8",
        TILED_RIGHT[2]
        .replace("reversed(range(0, t_k, block_size))", "range(0, t_k, block_size)")
        .replace("    return m, p.sum", "    return torch.nan_to_num(m, neginf=0.0), p.sum"),
    ),
    ("DT4", _TILED.replace("torch.arange(i, i + s.shape[2], device=q.device)", "torch.arange(i, i + s.shape[2])")),
    ("DT4", _TILED.replace("dtype=q.dtype, device=q.device", "dtype=q.dtype")),
    ("SD1", _TILED.replace(" / d ** 0.5", "")),
    ("SD2", _TILED.replace("d ** 0.5", "d")),
    ("MK14", _TILED.replace(" + Tk - Tq", "")),
    ("MK8", _TILED.replace("col <= row", "col <= row + 1")),
    ("MK4", _TILED.replace('torch.tensor(float("-inf"), dtype=s.dtype)', "torch.tensor(-1e4, dtype=s.dtype)")),
    ("MK13", _TILED.replace("if causal", "if False")),
    (
        "TI1",
        _TILED.replace("torch.arange(i, i + s.shape[2], device=q.device)", "torch.arange(s.shape[2], device=q.device)")
        .replace("torch.arange(j, j + s.shape[3], device=q.device)", "torch.arange(s.shape[3], device=q.device)")
        .replace(" + Tk - Tq", ""),
    ),
    ("TI2", _TILED.replace("range(0, Tk, n)", "range(0, Tk - Tk % n, n)")),
    ("TI7", _TILED.replace("m + l.log()", "m")),
    ("TI7", _TILED.replace("m + l.log()", "l.log()")),
    ("TT14", _TILED.replace("acc / l", "acc")),
    ("TI2", _TILED.replace("range(0, Tq, n)", "range(0, Tq // n * n, n)")),
    ("TI18", _TILED.replace("l = alpha * l + p", "l = l + p")),
    ("MK3", _TILED.replace('torch.tensor(float("-inf"), dtype=s.dtype)', "torch.zeros_like(s)")),
    ("MK3", _SKIPPING.replace('torch.tensor(float("-inf"), dtype=s.dtype)', "torch.zeros_like(s)")),
    ("TI20", _SKIPPING.replace("- 1 + Tk - Tq", "- 1")),
    ("TI21", _TILED.replace("            m = new\n", "")),
    ("TI21", _SKIPPING.replace("            m = new\n", "").replace("(m + l.log", "(new + l.log")),
    ("TI21", _TILED.replace("            m = new\n", "").replace("(m + l.log", "(new + l.log")),
    ("FL1+TI7", _TILED.replace("acc = alpha * acc + p", "acc = acc + p").replace("m + l.log()", "m")),
    # no list holds these
    (None, TILED_RIGHT[2].replace('torch.where(m == float("-inf"), 0.0, m)', "m")),
    (None, _TILED.replace("range(0, Tk, n)", "range(n, Tk, n)")),
    (None, _TILED.replace("qi = q", "assert Tq % n == 0 and Tk % n == 0\n        qi = q")),
    (None, _TILED.replace("qi = q", "assert n <= Tq and n <= Tk\n        qi = q")),
    (None, _TILED.replace("    Tk, n", "    assert q.shape == k.shape\n    Tk, n")),
    (None, _TILED.replace("qi @ k", "qi.flip(2) @ k")),
    (None, _TILED.replace("q[:, :, i:i + n] / d", "q[:, :, i:i + n] / B / d")),
    (None, _TILED.replace("return out, lse", "return out")),
    (
        None,
        "import torch.nn.functional as F\ndef tiled_attention(q, k, v, block_size, causal=False):\n"
        "    o = F.scaled_dot_product_attention(q, k, v)\n    return o, o.sum(-1)\n",
    ),
    (
        None,
        "def tiled_attention(q, k, v, block_size, causal=False):\n"
        "    s = torch.from_numpy(np.matmul(q.numpy(), k.numpy().swapaxes(-1, -2))) / q.shape[-1] ** 0.5\n    return torch.softmax(s, -1) @ v, s.logsumexp(-1)\n",
    ),
    (
        None,
        "import numpy as np\n\ndef tiled_attention(q, k, v, block_size, causal=False):\n    a, b, c = (x.numpy() for x in (q, k, v))\n"
        "    s = a @ b.swapaxes(-1, -2) / a.shape[-1] ** 0.5\n    if causal:\n        s = np.where(np.tri(*s.shape[-2:], s.shape[-1] - s.shape[-2]) > 0, s, -np.inf)\n"
        "    top = s.max(-1, keepdims=True)\n    e = np.exp(s - top)\n    l = e.sum(-1, keepdims=True)\n"
        "    return torch.from_numpy(e / l @ c), torch.from_numpy((top + np.log(l))[..., 0])\n",
    ),
    (None, _TILED.replace("block_size, causal", "block_size, *, causal")),
    # the largest score of all heads, or of all items
    (None, _TILED.replace("s.max(3, keepdim=True)[0]", "s.amax((1, 3), keepdim=True)")),
    (None, _TILED.replace("s.max(3, keepdim=True)[0]", "s.amax((0, 3), keepdim=True)")),
    # the maximum over what is hidden, too: nothing is left of a row that lies far below it
    (
        None,
        _TILED.replace('s = torch.where(col <= row, s, torch.tensor(float("-inf"), dtype=s.dtype))', "pass").replace(
            "p = (s - new).exp()", "p = (s - new).exp() * (col <= row) if causal else (s - new).exp()"
        ),
    ),
]

_BACK = """
def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    scale = q.shape[-1] ** -0.5
    Tq, Tk, n = q.shape[2], k.shape[2], block_size
    D = torch.einsum("bhqd,bhqd->bhq", output, grad_output)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for j in range(0, Tk, n):
        kj, vj = k[:, :, j:j + n], v[:, :, j:j + n]
        for i in range(0, Tq, n):
            qi, gi = q[:, :, i:i + n], grad_output[:, :, i:i + n]
            s = qi @ kj.transpose(-1, -2) * scale
            p = torch.exp(s - logsumexp[:, :, i:i + n].unsqueeze(-1))
            if causal:
                seen = torch.arange(j, j + kj.shape[2], device=q.device) <= torch.arange(i, i + qi.shape[2], device=q.device)[:, None] + (Tk - Tq)
                p = torch.where(seen, p, torch.zeros_like(p))
            dv[:, :, j:j + n] += p.transpose(-1, -2) @ gi
            ds = p * (gi @ vj.transpose(-1, -2) - D[:, :, i:i + n, None]) * scale
            dq[:, :, i:i + n] += ds @ kj
            dk[:, :, j:j + n] += ds.transpose(-1, -2) @ qi
    return dq, dk, dv
"""

_FILLED = _BACK.replace("            p = torch.exp(s - logsumexp[:, :, i:i + n].unsqueeze(-1))\n", "").replace(
    "p = torch.where(seen, p, torch.zeros_like(p))\n",
    's = s.masked_fill(~seen, float("-inf"))\n            p = torch.exp(s - logsumexp[:, :, i:i + n, None])\n',
)
_SKIPPED = _FILLED.replace(
    "            s = qi",
    "            if causal and j > i + qi.shape[2] - 1 + Tk - Tq:\n                continue\n            s = qi",
)

BACK_RIGHT = [
    _BACK,
    '''def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """The row's total from the weights, in a pass of its own; items and heads one at a time."""
    n, root, offset = block_size, math.sqrt(q.shape[-1]), k.shape[2] - q.shape[2]
    grads = [torch.zeros_like(x) for x in (q, k, v)]

    def tile(b, h, i, j):
        s = q[b, h, i:i + n] @ k[b, h, j:j + n].T / root
        if causal:
            s = s + torch.full_like(s, -math.inf).triu(1 + i + offset - j)
        w = torch.exp(s - logsumexp[b, h, i:i + n, None])
        return w, grad_output[b, h, i:i + n] @ v[b, h, j:j + n].T

    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(0, q.shape[2], n):
                starts, total = range(0, k.shape[2], n), 0
                for j in starts:
                    w, gw = tile(b, h, i, j)
                    total = total + (w * gw).sum(1, keepdim=True)
                for j in starts:
                    w, gw = tile(b, h, i, j)
                    gs = w * (gw - total) / root
                    grads[0][b, h, i:i + n] += gs @ k[b, h, j:j + n]
                    grads[1][b, h, j:j + n] += gs.T @ q[b, h, i:i + n]
                    grads[2][b, h, j:j + n] += w.T @ grad_output[b, h, i:i + n]
    return tuple(grads)
''',
    '''def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """Lists of tiles, put together at the end; causal tiles of the future skipped."""
    n, t_q, t_k = block_size, q.shape[-2], k.shape[-2]
    qs, gs = q.split(n, -2), grad_output.split(n, -2)
    ks, vs = k.split(n, -2), v.split(n, -2)
    ls = logsumexp.unsqueeze(-1).split(n, -2)
    ds = (output * grad_output).sum(-1, keepdim=True).split(n, -2)
    gq, gk, gv = ([torch.zeros_like(x) for x in xs] for xs in (qs, ks, vs))
    for i in range(len(qs)):
        for j in range(len(ks)):
            low = i * n + t_k - t_q
            if causal and j * n > low + qs[i].shape[-2] - 1:
                continue
            w = torch.exp(qs[i] @ ks[j].mT / q.shape[-1] ** 0.5 - ls[i])
            if causal:
                w = w.tril(low - j * n)
            gv[j] = gv[j] + w.mT @ gs[i]
            g = w * (gs[i] @ vs[j].mT - ds[i]) / q.shape[-1] ** 0.5
            gq[i] = gq[i] + g @ ks[j]
            gk[j] = gk[j] + g.mT @ qs[i]
    return [torch.cat(parts, -2) for parts in (gq, gk, gv)]
''',
    '''def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """All queries against one tile of keys: the gradients of a tile of keys are finished at once."""
    q_, k_, v_, g = (x.double() for x in (q, k, v, grad_output))
    root, t_q, t_k = math.sqrt(q.shape[-1]), q.shape[-2], k.shape[-2]
    delta = (g * output.double()).sum(-1)[..., None]
    dq, dks, dvs = torch.zeros_like(q_), [], []
    for j in range(0, t_k, block_size):
        kt, vt = k_[..., j:j + block_size, :], v_[..., j:j + block_size, :]
        s = q_ @ kt.mT / root
        if causal:
            later = (j + torch.arange(kt.shape[-2], device=q.device))[None] - (t_k - t_q) > torch.arange(t_q, device=q.device)[:, None]
            s = s.masked_fill(later, -math.inf)
        w = (s - logsumexp.double()[..., None]).exp()
        gs = w * (g @ vt.mT - delta)
        dq = dq + gs @ kt / root
        dks.append(gs.mT @ q_ / root)
        dvs.append(w.mT @ g)
    return dq, torch.cat(dks, -2), torch.cat(dvs, -2)
''',
    '''def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """One query at a time, by einsum, with the scale on q."""
    scaled = q / math.sqrt(q.shape[-1])
    gq, gk, gv = (x.new_zeros(x.shape) for x in (q, k, v))
    ahead = k.shape[2] - q.shape[2]
    for i in range(q.shape[2]):
        stop = i + ahead + 1 if causal else k.shape[2]
        g, one = grad_output[:, :, i], scaled[:, :, i]
        d = torch.einsum("bhd,bhd->bh", g, output[:, :, i])
        for j in range(0, stop, block_size):
            at = slice(j, min(j + block_size, stop))
            w = torch.exp(torch.einsum("bhd,bhkd->bhk", one, k[:, :, at]) - logsumexp[:, :, i, None])
            gv[:, :, at].add_(torch.einsum("bhk,bhd->bhkd", w, g))
            gs = w * (torch.einsum("bhd,bhkd->bhk", g, v[:, :, at]) - d[..., None])
            gk[:, :, at].add_(torch.einsum("bhk,bhd->bhkd", gs, one))
            gq[:, :, i].add_(torch.einsum("bhk,bhkd->bhd", gs, k[:, :, at]))
    return gq / math.sqrt(q.shape[-1]), gk, gv
''',
    '''def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    """Two passes: D from the weights in float64, then the gradients."""
    T_q, T_k = q.shape[2], k.shape[2]
    root = math.sqrt(q.shape[3])
    Q, K, V, L, G = (z.to(torch.float64) for z in (q, k, v, logsumexp, grad_output))

    def tiles(a, b):
        for c in range(0, T_k, block_size):
            d = min(T_k, c + block_size)
            if causal and c > b - 1 + T_k - T_q:
                return
            s = Q[:, :, a:b].matmul(K[:, :, c:d].transpose(2, 3)).div_(root)
            if causal:
                i = torch.arange(a, b, device=q.device).view(-1, 1)
                j = torch.arange(c, d, device=q.device).view(1, -1)
                s = torch.where(j - i > T_k - T_q, -torch.inf, s)
            yield c, d, (s - L[:, :, a:b, None]).exp(), G[:, :, a:b] @ V[:, :, c:d].transpose(2, 3)

    gq, gk, gv = torch.zeros_like(Q), torch.zeros_like(K), torch.zeros_like(V)
    for a in range(0, T_q, block_size):
        b = min(T_q, a + block_size)
        D = 0
        for _, _, p, dp in tiles(a, b):
            D = D + (p * dp).sum(-1, keepdim=True)
        for c, d, p, dp in tiles(a, b):
            ds = p * (dp - D) / root
            gv[:, :, c:d] += p.transpose(2, 3) @ G[:, :, a:b]
            gq[:, :, a:b] += ds @ K[:, :, c:d]
            gk[:, :, c:d] += ds.transpose(2, 3) @ Q[:, :, a:b]
    return gq.to(q.dtype), gk.to(k.dtype), gv.to(v.dtype)
''',
]

BACK_RIGHT += [_FILLED, _SKIPPED, _FILLED.replace('float("-inf")', "-1e3")]

_WHOLE = """
def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1 + s.shape[-1] - s.shape[-2]), -math.inf)
    w = torch.exp(s - logsumexp[..., None])
    gs = w * (grad_output @ v.mT - (grad_output * output).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return gs @ k, gs.mT @ q, w.mT @ grad_output
"""
_AUTOGRAD = """
def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        parts = []
        for i, row in enumerate(leaves[0].split(block_size, 2)):
            s = row @ leaves[1].mT / math.sqrt(q.shape[-1])
            if causal:
                at = i * block_size + torch.arange(row.shape[2], device=q.device) + k.shape[2] - q.shape[2]
                s = s.masked_fill(torch.arange(k.shape[2], device=q.device) > at[:, None], -math.inf)
            parts.append(torch.softmax(s, -1) @ leaves[2])
        made = torch.cat(parts, 2)
    {way}
"""

BACK_WRONG = [
    *((None, text) for (name, _), text in AT_ONCE.items() if name == "tiled_attention_backward"),
    (None, _WHOLE),
    (None, _AUTOGRAD.format(way="return torch.autograd.grad(made, leaves, grad_output)")),
    (None, _AUTOGRAD.format(way="made.backward(grad_output)\n    return tuple(x.grad for x in leaves)")),
    (
        None,
        _AUTOGRAD.format(
            way="engine = getattr(torch.autograd.Variable, '_execution_engine')\n    "
            "return getattr(engine, 'run_' + 'backward')((made,), (grad_output,), False, False, tuple(leaves), allow_unreachable=True, accumulate_grad=False)"
        ),
    ),
    (
        None,
        "def tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False):\n"
        "    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(\n"
        "        grad_output, q, k, v, output, logsumexp, 0.0, causal)\n",
    ),
    ("BW1", _BACK.replace(" - D[:, :, i:i + n, None]", "")),
    ("BW2", _BACK.replace("None]) * scale", "None])")),
    ("SD1", _BACK.replace("transpose(-1, -2) * scale\n            p", "transpose(-1, -2)\n            p")),
    ("FB22", _BACK.replace("if causal", "if False")),
    ("MK3", _FILLED.replace('float("-inf")', "0.0")),
    ("MK3", _SKIPPED.replace('float("-inf")', "0.0")),
    ("MK4", _FILLED.replace('float("-inf")', "-100.0")),
    ("MK4", _SKIPPED.replace('float("-inf")', "-100.0")),
    ("TI20", _SKIPPED.replace("- 1 + Tk - Tq", "- 1")),
    (
        None,
        _BACK.replace("            dv[:, :, j:j + n] += p.transpose(-1, -2) @ gi\n", "").replace(
            "            dq[", "            dv[:, :, j:j + n] += ds.transpose(-1, -2) @ gi / scale\n            dq["
        ),
    ),
    ("GB18", _FILLED.replace("p * (gi", "(gi")),
    ("GB18", _SKIPPED.replace("p * (gi", "(gi")),
    ("MK14", _BACK.replace(" + (Tk - Tq)", "")),
    ("TI2", _BACK.replace("range(0, Tk, n)", "range(0, Tk // n * n, n)")),
    (
        "FB1",
        _BACK.replace(
            "ds = p * (gi @ vj.transpose(-1, -2) - D[:, :, i:i + n, None]) * scale",
            "dp = gi @ vj.transpose(-1, -2)\n            ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale",
        ),
    ),
    (
        "FB2",
        _BACK.replace("torch.exp(s - logsumexp[:, :, i:i + n].unsqueeze(-1))", "torch.softmax(s, -1)").replace(
            "p = torch.where(seen, p, torch.zeros_like(p))", "p = torch.softmax(s.masked_fill(~seen, -math.inf), -1)"
        ),
    ),
    ("FB3", _BACK.replace("dq[:, :, i:i + n] += ", "dq[:, :, i:i + n] = ")),
    (
        "FB3",
        _BACK.replace("dk[:, :, j:j + n] += ", "dk[:, :, j:j + n] = ").replace(
            "dv[:, :, j:j + n] += ", "dv[:, :, j:j + n] = "
        ),
    ),
    (None, _BACK.replace("output, grad_output)\n", "output, output)\n")),
    ("GB10", _BACK.replace("return dq, dk, dv", "return dk, dq, dv")),
    (None, _BACK.replace("return dq, dk, dv", "return -dq, -dk, -dv")),
    (
        "BW2+GB18",
        _BACK.replace("- D[:, :, i:i + n, None]) * scale", "+ D[:, :, i:i + n, None])").replace(
            "ds @ kj", "ds @ kj * scale"
        ),
    ),
    # no list holds these
    (None, _BACK.replace("p.transpose(-1, -2) @ gi", "p.transpose(-1, -2) @ gi * scale")),
    (None, _BACK.replace("p.transpose(-1, -2) @ gi", "p.transpose(-1, -2).roll(1, -2) @ gi")),
    (None, _BACK.replace("return dq, dk, dv", "return dq, dk")),
    (None, _BACK.replace("    D = ", "    grad_output *= 1\n    q.mul_(2)\n    q = q / 2\n    D = ")),
    (None, _BACK.replace("kj, vj = ", "assert Tk % n == 0\n        kj, vj = ")),
    (None, _BACK.replace("range(0, Tq, n)", "range(j, Tq, n)")),
    (None, _BACK.replace("block_size, causal", "block_size, *, causal")),
    # a weight of e^184 that is hidden afterwards: inf * 0
    (None, _BACK.replace("torch.where(seen, p, torch.zeros_like(p))", "p * seen")),
]

RIGHT = {"merge_partial": MERGE_RIGHT, "tiled_attention": TILED_RIGHT, "tiled_attention_backward": BACK_RIGHT}
WRONG = {"merge_partial": MERGE_WRONG, "tiled_attention": TILED_WRONG, "tiled_attention_backward": BACK_WRONG}

WRONG["tiled_attention"] += [
    (
        "TI1",
        """def tiled_attention(q, k, v, block_size, causal=False):
    T_q, T_k = q.shape[-2], k.shape[-2]
    outs, lses = [], []
    for i in range(0, T_q, block_size):
        qi = q[..., i:i + block_size, :]
        m = torch.full(qi.shape[:-1], -torch.inf, dtype=q.dtype, device=q.device)
        l = torch.zeros_like(m)
        o = torch.zeros(*qi.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        for j in range(0, T_k, block_size):
            kj, vj = k[..., j:j + block_size, :], v[..., j:j + block_size, :]
            s = qi @ kj.mT / q.shape[-1] ** 0.5
            if causal:
                rows = torch.arange(qi.shape[-2], device=q.device)[:, None] + i + T_k - T_q
                cols = torch.arange(kj.shape[-2], device=q.device)[None]
                s = s.masked_fill(cols > rows, -torch.inf)
            new = torch.maximum(m, s.amax(-1))
            safe = new.masked_fill(new == -torch.inf, 0)
            e = torch.exp(s - safe[..., None])
            f = torch.exp(m - safe)
            l = l * f + e.sum(-1)
            o = o * f[..., None] + e @ vj
            m = new
        outs.append(o / l[..., None])
        lses.append(m + torch.log(l))
    return torch.cat(outs, -2), torch.cat(lses, -1)
""",
    ),  # the causal mask of a tile uses positions inside the tile, offset of the tile forgotten for keys
    (
        "OS3",
        """def tiled_attention(q, k, v, block_size, causal=False):
    T_q, T_k = q.shape[-2], k.shape[-2]
    outs, lses = [], []
    for i in range(0, T_q, block_size):
        qi = q[..., i:i + block_size, :]
        m = torch.full(qi.shape[:-1], -torch.inf, dtype=q.dtype, device=q.device)
        l = torch.zeros_like(m)
        o = torch.zeros(*qi.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        for j in range(0, T_k, block_size):
            kj, vj = k[..., j:j + block_size, :], v[..., j:j + block_size, :]
            s = qi @ kj.mT / q.shape[-1] ** 0.5
            if causal:
                rows = torch.arange(i, i + qi.shape[-2], device=q.device)[:, None] + T_k - T_q
                cols = torch.arange(j, j + kj.shape[-2], device=q.device)[None]
                s = s.masked_fill(cols > rows, -torch.inf)
            new = torch.maximum(m, s.amax(-1))
            safe = new.masked_fill(new == -torch.inf, 0)
            e = torch.exp(s - safe[..., None])
            f = torch.exp(m - safe)
            l = l * f + e.sum(-1)
            o = o * f[..., None] + e @ vj
            o = o / l[..., None]
            m = new
        outs.append(o / l[..., None])
        lses.append(m + torch.log(l))
    return torch.cat(outs, -2), torch.cat(lses, -1)
""",
    ),  # divided by l at every tile
]

WRONG["merge_partial"] += [
    (
        "SM6",
        """def merge_partial(a, b):
    (ma, la, oa), (mb, lb, ob) = a, b
    m = torch.maximum(ma, mb)
    top = m.max()
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    fa, fb = torch.exp(ma - top), torch.exp(mb - top)
    return m, la * fa + lb * fb, oa * fa[..., None] + ob * fb[..., None]
""",
    )  # the maximum over the whole tensor instead of by row
]

WRONG["merge_partial"] += [
    (
        "OS1",
        """Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    m = torch.maximum(m_a, m_b)
    base = m.masked_fill(m == -torch.inf, 0)
    f_a, f_b = torch.ones_like(m_a), (m_b - m_a.masked_fill(m_a == -torch.inf, 0)).exp()
    l = f_a * l_a + f_b * l_b
    o = f_a[..., None] * o_a + f_b[..., None] * o_b
    return m, l, o
""",
    ),
    (
        "OS4",
        """Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    m = torch.maximum(m_a, m_b)
    base = m.masked_fill(m == -torch.inf, 0)
    f_a, f_b = (m_a - base).exp(), (m_b - base).exp()
    l = f_a * l_a + f_b * l_b
    o = (f_a * l_a)[..., None] * o_a + (f_b * l_b)[..., None] * o_b
    return m, l, o
""",
    ),
]

_PLAIN_TILED_ATTENTION = """def tiled_attention(q: Tensor, k: Tensor, v: Tensor, block_size: int, causal: bool = False) -> tuple[Tensor, Tensor]:
    b, h, t_q, d = q.shape
    t_k = k.shape[2]
    output = torch.empty(b, h, t_q, v.shape[3], dtype=q.dtype, device=q.device)
    logsumexp = torch.empty(b, h, t_q, dtype=q.dtype, device=q.device)
    for start in range(0, t_q, block_size):
        rows = torch.arange(start, min(start + block_size, t_q), device=q.device)
        q_tile = q[:, :, rows]
        m = torch.full((b, h, len(rows)), -torch.inf, dtype=q.dtype, device=q.device)
        l = torch.zeros_like(m)
        o = torch.zeros(b, h, len(rows), v.shape[3], dtype=q.dtype, device=q.device)
        for left in range(0, t_k, block_size):
            cols = torch.arange(left, min(left + block_size, t_k), device=q.device)
            scores = q_tile @ k[:, :, cols].transpose(2, 3) / math.sqrt(d)
            if causal:
                hidden = cols[None, :] > rows[:, None] + t_k - t_q
                scores = scores.masked_fill(hidden, -torch.inf)
            m_new = torch.maximum(m, scores.amax(dim=-1))
            p = torch.exp(scores - m_new[..., None])
            factor = torch.exp(m - m_new)
            l = l * factor + p.sum(dim=-1)
            o = o * factor[..., None] + p @ v[:, :, cols]
            m = m_new
        output[:, :, rows] = o / l[..., None]
        logsumexp[:, :, rows] = m + l.log()
    return output, logsumexp
"""
WRONG["tiled_attention"] += [
    (
        "OS3",
        _PLAIN_TILED_ATTENTION.replace(
            "o = o * factor[..., None] + p @ v[:, :, cols]",
            "o = o * factor[..., None] + (p / p.sum(dim=-1, keepdim=True)) @ v[:, :, cols]",
        ),
    ),
    (
        "TI2",
        _PLAIN_TILED_ATTENTION.replace(
            "for left in range(0, t_k, block_size):", "for left in range(0, max(t_k - block_size + 1, 1), block_size):"
        ),
    ),
    (
        "TT8",
        _PLAIN_TILED_ATTENTION.replace(
            "scores = q_tile @ k[:, :, cols].transpose(2, 3) / math.sqrt(d)",
            "scores = q_tile @ k[:, :, cols].transpose(2, 3) / math.sqrt(v.shape[3])",
        ),
    ),
    (
        "TI13",
        _PLAIN_TILED_ATTENTION.replace("m_new = torch.maximum(m, scores.amax(dim=-1))", "m_new = scores.amax(dim=-1)"),
    ),
]

_PLAIN_TILED_ATTENTION_BACKWARD = """def tiled_attention_backward(
    q: Tensor, k: Tensor, v: Tensor, output: Tensor, logsumexp: Tensor, grad_output: Tensor, block_size: int, causal: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    t_q, t_k, root = q.shape[2], k.shape[2], math.sqrt(q.shape[3])
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    d = (grad_output * output).sum(dim=-1)
    for left in range(0, t_k, block_size):
        c = slice(left, min(left + block_size, t_k))
        for start in range(0, t_q, block_size):
            r = slice(start, min(start + block_size, t_q))
            p = torch.exp(q[:, :, r] @ k[:, :, c].mT / root - logsumexp[:, :, r, None])
            if causal:
                row = torch.arange(r.start, r.stop, device=q.device)[:, None] + t_k - t_q
                p = p.masked_fill(torch.arange(c.start, c.stop, device=q.device) > row, 0)
            grad_p = grad_output[:, :, r] @ v[:, :, c].mT
            grad_s = p * (grad_p - d[:, :, r, None]) / root
            grad_q[:, :, r] += grad_s @ k[:, :, c]
            grad_k[:, :, c] += grad_s.mT @ q[:, :, r]
            grad_v[:, :, c] += p.mT @ grad_output[:, :, r]
    return grad_q, grad_k, grad_v
"""
WRONG["tiled_attention_backward"] += [
    (
        None,
        _PLAIN_TILED_ATTENTION_BACKWARD.replace(
            "grad_v[:, :, c] += p.mT @ grad_output[:, :, r]", "grad_v[:, :, c] += grad_s.mT @ grad_output[:, :, r]"
        ),
    ),
    (
        "FB2",
        _PLAIN_TILED_ATTENTION_BACKWARD.replace(
            "                p = p.masked_fill(torch.arange(c.start, c.stop, device=q.device) > row, 0)",
            "                p = p.masked_fill(torch.arange(c.start, c.stop, device=q.device) > row, 0)\n            p = p / p.sum(-1, keepdim=True).clamp_min(1e-30)",
        ),
    ),
    (
        "GB18",
        _PLAIN_TILED_ATTENTION_BACKWARD.replace(
            "grad_s = p * (grad_p - d[:, :, r, None]) / root", "grad_s = (p * grad_p - d[:, :, r, None]) / root"
        ),
    ),
    (
        "FB2",
        _PLAIN_TILED_ATTENTION_BACKWARD.replace(
            "p = torch.exp(q[:, :, r] @ k[:, :, c].mT / root - logsumexp[:, :, r, None])",
            "p = torch.exp(q[:, :, r] @ k[:, :, c].mT / root + logsumexp[:, :, r, None])",
        ),
    ),
]

WRONG["merge_partial"] += [
    (
        "TI13",
        """
Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    empty_a, empty_b = m_a.isneginf(), m_b.isneginf()
    # bring b to the scale of a; rows in which a has seen nothing take b as it is
    m = torch.where(empty_a, m_b, m_a)
    change = torch.where(empty_a, torch.ones_like(m_a), torch.exp(torch.where(empty_a | empty_b, m_a.new_tensor(0.0), m_b - m_a)))
    change = torch.where(empty_b, torch.zeros_like(change), change)
    l = l_a + change * l_b
    o = o_a + change[..., None] * o_b
    return m, l, o
""",
    ),
    (
        "TI13",
        """
Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.logaddexp(m_a, m_b)  # the stable way to put two logarithms together
    reference = m.masked_fill(m == -math.inf, 0.0)
    w_a = (m_a - reference).exp()
    w_b = (m_b - reference).exp()
    return m, w_a * l_a + w_b * l_b, w_a[..., None] * o_a + w_b[..., None] * o_b
""",
    ),
    (
        "OS17",
        """Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    m = torch.maximum(m_a, m_b)
    safe = m.clamp_min(-1000.0)
    f_a, f_b = torch.exp(m_a - safe), torch.exp(m_b - safe)
    return m, f_a * l_a + f_b * l_b, f_a[..., None] * o_a + f_b[..., None] * o_b
""",
    ),
]
