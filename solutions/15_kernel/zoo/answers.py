"""Lesson 15: kernels as learners write them. In the wrong answers, None stands where the verdict names no mistake of a list."""

_ADD = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + y
    tl.store(out_ptr + offsets, output, mask=mask)

def triton_add(x, y):
    output = torch.empty_like(x)
    n_elements = output.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta['BLOCK_SIZE']),)
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)
    return output
"""

ADD_RIGHT = [
    _ADD,
    '''
@triton.jit
def _sum_of(a, b):
    """A helper kernel."""
    return a + b

@triton.jit
def several_blocks(x, y, out, n, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    """Each program does TIMES blocks, one after the other."""
    first = tl.program_id(0) * BLOCK * TIMES
    for i in range(TIMES):
        at = first + i * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        a = tl.load(x + at, mask=inside, other=0.0)
        b = tl.load(y + at, mask=inside, other=0.0)
        tl.store(out + at, _sum_of(a, b), mask=inside)

def triton_add(x, y):
    out = x.new_empty(x.shape)
    n = x.numel()
    several_blocks[(triton.cdiv(n, 512 * 4),)](x, y, out, n, 512, TIMES=4)
    return out
''',
    '''
@triton.jit
def strided(x, y, out, n, BLOCK: tl.constexpr):
    """A few programs walk through all blocks, with a stride."""
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, n, step):
        at = start + tl.arange(0, BLOCK)
        keep = at < n
        tl.store(out + at, tl.load(x + at, keep) + tl.load(y + at, keep), keep)

def triton_add(x: torch.Tensor, y: torch.Tensor):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    strided[8,](x, y, out, x.numel(), BLOCK=128)
    return out
''',
    """
@triton.jit
def by_block_pointers(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    xs = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(at,), block_shape=(BLOCK,), order=(0,))
    ys = tl.make_block_ptr(y, shape=(n,), strides=(1,), offsets=(at,), block_shape=(BLOCK,), order=(0,))
    to = tl.make_block_ptr(out, shape=(n,), strides=(1,), offsets=(at,), block_shape=(BLOCK,), order=(0,))
    total = tl.load(xs, boundary_check=(0,)) + tl.load(ys, boundary_check=(0,))
    tl.store(to, total, boundary_check=(0,))

def triton_add(x, y):
    flat = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
    by_block_pointers[(triton.cdiv(x.numel(), 1024),)](x.view(-1), y.view(-1), flat, x.numel(), BLOCK=1024)
    return flat.view(x.shape)
""",
    '''
BLOCK = tl.constexpr(128)

@triton.jit
def two_axes(x, y, out, n):
    """Blocks numbered over a grid of two axes."""
    number = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    at = number * BLOCK + tl.arange(0, BLOCK)
    x, y, out = x + at, y + at, out + at
    tl.store(out, tl.load(x, mask=at < n, other=0) + tl.load(y, mask=at < n, other=0), mask=at < n)

def triton_add(x, y):
    out, n = torch.empty_like(x), x.numel()
    blocks = triton.cdiv(n, 128)
    wide = min(blocks, 16)
    two_axes[(wide, triton.cdiv(blocks, wide))](x, y, out, n)
    return out
''',
    """
@triton.jit
def one_entry(x, y, out):
    i = tl.program_id(0)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))

def triton_add(x, y):
    out = torch.empty_like(x)
    one_entry[(x.numel(),)](x, y, out)
    return out
""",
    _ADD.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK_SIZE': b}) for b in (128, 1024)], key=['n_elements'])\n@triton.jit",
    ).replace(", BLOCK_SIZE=256", ""),
]

ADD_WRONG = [
    (
        "KN1",
        _ADD.replace("x_ptr + offsets, mask=mask", "x_ptr + offsets").replace(
            "y_ptr + offsets, mask=mask", "y_ptr + offsets"
        ),
    ),
    ("KN1", _ADD.replace(", mask=mask", "")),
    ("KN1", _ADD.replace("y_ptr + offsets, mask=mask", "y_ptr + offsets")),
    ("KN3", _ADD.replace("output, mask=mask", "output")),
    ("KN4", _ADD.replace("triton.cdiv(n_elements, meta['BLOCK_SIZE'])", "n_elements // meta['BLOCK_SIZE']")),
    (None, _ADD.replace("block_start = pid * BLOCK_SIZE", "block_start = pid")),
    (None, _ADD.replace("block_start + tl", "tl")),
    (None, _ADD.replace("x + y\n", "x - y\n")),
    ("KN8", _ADD.replace("tl.load(y_ptr", "tl.load(x_ptr")),
    ("KN9", _ADD.replace("offsets < n", "offsets <= n")),
    ("KN11", _ADD.replace("torch.empty_like(x)", "torch.empty(x.shape)")),
    # no list holds these
    (None, _ADD.replace("torch.empty_like(x)", "torch.zeros_like(x)")),
    (None, "def triton_add(x, y):\n    return x + y\n"),
    (None, _ADD.replace("return output", "return x + y")),
    (None, _ADD.replace("    add_kernel[grid]", "    x = x * 1\n    add_kernel[grid]")),
    (None, "def triton_add(x, y):\n    return torch.from_numpy(x.numpy() + y.numpy())\n"),
    (None, _ADD.replace("return output", "return output.clone().add_(0)")),
    (None, _ADD.replace("BLOCK_SIZE=256", "BLOCK_SIZE=triton.next_power_of_2(n_elements)")),  # one block for everything
    (None, _ADD.replace("    tl.store(out_ptr + offsets, output, mask=mask)\n", "")),
    (None, _ADD.replace("pid * BLOCK_SIZE\n", "pid * (BLOCK_SIZE - 1)\n")),
    (
        None,
        _ADD.replace(
            "mask = offsets < n_elements", "offsets = tl.minimum(offsets, n_elements - 1)\n    mask = offsets >= 0"
        ),
    ),
    (
        None,
        _ADD.replace("add_kernel[grid](x, y, output", "add_kernel[grid](x, y, x").replace("return output", "return x"),
    ),
    (None, "import numpy as np\n" + _ADD.replace("output = x + y", "output = np.add(x, y)")),
    (None, "SIZE = 256\n" + _ADD.replace("pid * BLOCK_SIZE", "pid * SIZE")),
    (None, _ADD.replace("x_ptr + offsets", "x_ptr - 1 + offsets")),
    (None, _ADD.replace("@triton.jit\n", "")),
    (None, _ADD.replace("x_ptr + offsets, mask", "x_ptr + 100_000_000 + offsets, mask")),
    (None, _ADD.replace("add_kernel[grid]", "add_kernel")),
    (None, _ADD.replace("add_kernel[grid]", "add_kernel[triton.cdiv(n_elements, 256)]")),
    (None, _ADD.replace("program_id(axis=0)", "program_id(axis=1)")),
    (
        None,  # the lanes beyond the end read the last entry again
        _ADD.replace("_ptr + offsets, mask=mask)\n", "_ptr + tl.minimum(offsets, n_elements - 1))\n"),
    ),
]

_SOFTMAX = """
@triton.jit
def softmax_kernel(output_ptr, input_ptr, row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    input_ptrs = input_ptr + row * row_stride + col_offsets
    mask = col_offsets < n_cols
    x = tl.load(input_ptrs, mask=mask, other=-float('inf')).to(tl.float32)
    x_minus_max = x - tl.max(x, axis=0)
    numerator = tl.exp(x_minus_max)
    denominator = tl.sum(numerator, axis=0)
    y = numerator / denominator
    tl.store(output_ptr + row * row_stride + col_offsets, y, mask=mask)

def triton_softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](y, x, x.stride(0), n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
    return y
"""

SOFTMAX_RIGHT = [
    _SOFTMAX,
    '''
@triton.jit
def rows_kernel(x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program, as a block of two axes."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (c < n)
    s = tl.load(x + r * n + c, mask=inside, other=float("-inf")).to(tl.float32)
    s = tl.where(r < rows, s, 0.0)
    e = tl.exp(s - tl.max(s, axis=1, keep_dims=True))
    tl.store(out + r * n + c, e / tl.sum(e, axis=1, keep_dims=True), mask=inside)

def triton_softmax(x):
    rows, n = x.shape
    out = torch.empty_like(x)
    rows_kernel[(triton.cdiv(rows, 4),)](x, out, rows, n, ROWS=4, BLOCK=triton.next_power_of_2(n))
    return out
''',
    '''
@triton.jit
def online_kernel(x, out, n, BLOCK: tl.constexpr):
    """The row in blocks: a running maximum and sum first, then the weights."""
    x, out = x + tl.program_id(0) * n, out + tl.program_id(0) * n
    m, l = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        s = tl.load(x + at, mask=at < n, other=-float("inf")).to(tl.float32)
        top = tl.maximum(m, tl.max(s, axis=0))
        safe = tl.where(top == -float("inf"), 0.0, top)
        l = l * tl.exp(m - safe) + tl.sum(tl.exp(s - safe), axis=0)
        m = top
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        s = tl.load(x + at, mask=at < n, other=-float("inf")).to(tl.float32)
        tl.store(out + at, tl.exp(s - m) / l, mask=at < n)

def triton_softmax(x):
    out = torch.empty_like(x)
    online_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
    return out
''',
    '''
LOG2_E = tl.constexpr(1.4426950408889634)

@triton.jit
def exp2_kernel(x, out, rows, n, BLOCK: tl.constexpr):
    """A few programs walk through the rows; powers of two."""
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        s = tl.load(x + row * n + lane, lane < n, float("-inf")).to(tl.float32) * LOG2_E
        e = tl.exp2(s - tl.max(s, 0))
        tl.store(out + row * n + lane, e * (1 / tl.sum(e, 0)), lane < n)

def triton_softmax(x):
    rows, n = x.size()
    out = x.new_empty(rows, n)
    exp2_kernel[(min(rows, 6),)](x, out, rows, n, 2048)
    return out
''',
    '''
@triton.jit
def masked_exps(x, out, n, BLOCK: tl.constexpr):
    """What is beyond the row is taken out by where, after the load."""
    lane = tl.arange(0, BLOCK)
    here = lane < n
    s = tl.load(x + tl.program_id(0) * n + lane, mask=here, other=0.0).to(tl.float32)
    s = tl.where(here, s, -float("inf"))
    e = tl.where(here, tl.exp(s - tl.max(s, axis=0)), 0.0)
    tl.store(out + tl.program_id(0) * n + lane, (e / tl.sum(e, axis=0)).to(out.dtype.element_ty), mask=here)

def triton_softmax(x):
    out = torch.empty_like(x)
    masked_exps[x.shape[:1]](x, out, x.shape[1], BLOCK=max(16, triton.next_power_of_2(x.shape[1])))
    return out
''',
    """
@triton.jit
def pointers(x, out, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.make_block_ptr(x, (rows, n), (n, 1), (row, 0), (1, BLOCK), (1, 0))
    target = tl.make_block_ptr(out, (rows, n), (n, 1), (row, 0), (1, BLOCK), (1, 0))
    s = tl.load(source, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    s = tl.where(tl.arange(0, BLOCK)[None, :] < n, s, -float("inf"))
    s = s - tl.max(s, axis=1)[:, None]
    e = tl.exp(s)
    tl.store(target, (e / tl.sum(e, axis=1)[:, None]).to(out.dtype.element_ty), boundary_check=(0, 1))

def triton_softmax(x):
    out = torch.empty_like(x)
    pointers[(x.shape[0],)](x, out, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
""",
]

_BY_BLOCKS = """
@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    m = -float("inf")
    l = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        safe = new
        l = l * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)
        m = new
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        tl.store(o_ptr + base + cols, (tl.exp(x - m) / l).to(o_ptr.dtype.element_ty), mask=cols < n)

def triton_softmax(x):
    rows, n = x.shape
    out = x.new_empty(rows, n)
    softmax_kernel[(rows,)](x, out, n, BLOCK=128)
    return out
"""

SOFTMAX_WRONG = [
    ("KN20", _SOFTMAX.replace("x - tl.max(x, axis=0)", "x")),
    ("KN21", _SOFTMAX.replace("-float('inf')", "0.0")),
    ("KN69", _SOFTMAX.replace(", other=-float('inf')", "")),
    (
        "KN22",
        _SOFTMAX.replace("-float('inf')", "0.0").replace(
            "tl.exp(x_minus_max)", "tl.where(mask, tl.exp(x_minus_max), 0.0)"
        ),
    ),
    ("KN23", _SOFTMAX.replace("x.stride(0), n_cols,", "triton.next_power_of_2(n_cols), n_cols,")),
    (None, _SOFTMAX.replace("tl.load(input_ptrs, mask=mask, other=-float('inf'))", "tl.load(input_ptrs)")),
    (None, _SOFTMAX.replace("y, mask=mask)", "y)")),
    ("TT14", _SOFTMAX.replace("numerator / denominator", "numerator")),
    ("TT14", _SOFTMAX.replace("numerator / denominator", "numerator / n_cols")),
    ("TT14", _SOFTMAX.replace("numerator / denominator", "numerator / BLOCK_SIZE")),
    (None, _SOFTMAX.replace("tl.program_id(0)", "0")),
    (None, _SOFTMAX.replace("[(n_rows,)]", "[(n_cols,)]")),
    ("KN33", _SOFTMAX.replace("tl.exp(", "tl.exp2(")),
    ("KN35", _SOFTMAX.replace("x - tl.max(", "x - tl.min(")),
    (None, _SOFTMAX.replace("tl.exp(x_minus_max)", "tl.exp(x_minus_max).to(input_ptr.dtype.element_ty)")),
    # no list holds these
    ("KN34", _SOFTMAX.replace("triton.next_power_of_2(n_cols)", "1024")),
    ("KN34", _SOFTMAX.replace("triton.next_power_of_2(n_cols)", "512")),
    (None, _BY_BLOCKS),  # the maximum of the first blocks may be −∞
    (None, _SOFTMAX.replace("triton.next_power_of_2(n_cols)", "n_cols")),
    (None, "def triton_softmax(x):\n    return torch.softmax(x, dim=-1)\n"),
    (
        None,
        _SOFTMAX.replace(
            "    y = torch.empty_like(x)", "    x = x - x.amax(dim=1, keepdim=True)\n    y = torch.empty_like(x)"
        ),
    ),
    (None, _SOFTMAX.replace("return y", "return y / y.sum(-1, keepdim=True)")),
    (None, _SOFTMAX.replace("return y", "return y.to(torch.float64)")),
    (None, _SOFTMAX.replace("    y = torch.empty_like(x)", "    y = x")),
    (None, _SOFTMAX.replace("tl.sum(numerator, axis=0)", "tl.sum(numerator, axis=0) + 1e-3")),
    (None, _SOFTMAX.replace("tl.max(x, axis=0)", "tl.sum(x, axis=0) / n_cols")),
    (None, _SOFTMAX.replace("col_offsets < n_cols", "col_offsets < n_cols - 1")),
    (None, _SOFTMAX.replace("tl.max(x, axis=0)", "tl.load(input_ptr + row * row_stride).to(tl.float32)")),
    (None, _SOFTMAX.replace("tl.max(x, axis=0)", "50.0")),
    (None, _SOFTMAX.replace("-float('inf')", "-1.0e4")),
    (
        None,
        _SOFTMAX.replace("tl.max(x, axis=0)", "tl.max(tl.abs(x), axis=0)")
        .replace("-float('inf')", "0.0")
        .replace("tl.exp(x_minus_max)", "tl.where(mask, tl.exp(x_minus_max), 0.0)"),
    ),
    (None, _SOFTMAX.replace("tl.sum(numerator, axis=0)", "tl.sum(tl.where(mask, numerator, 1.0), axis=0)")),
    (
        None,
        _SOFTMAX.replace(".to(tl.float32)", "").replace(
            "numerator = tl.exp(x_minus_max)", "numerator = tl.exp(x_minus_max.to(tl.float32)).to(x.dtype)"
        ),
    ),
]

_ATTENTION = """
@triton.jit
def attention_kernel(Q, K, V, O, H, Tq, Tk, sm_scale, stride_qh, stride_kh, IS_CAUSAL: tl.constexpr, D: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    start_m, off_h = tl.program_id(0), tl.program_id(1)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + off_h * stride_qh + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < Tq, other=0.0)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    if IS_CAUSAL:
        end = tl.minimum((start_m + 1) * BLOCK_M + Tk - Tq, Tk)
    else:
        end = Tk
    for start_n in range(0, end, BLOCK_N):
        cols = start_n + offs_n
        k = tl.load(K + off_h * stride_kh + cols[None, :] * D + offs_d[:, None], mask=cols[None, :] < Tk, other=0.0)
        v = tl.load(V + off_h * stride_kh + cols[:, None] * D + offs_d[None, :], mask=cols[:, None] < Tk, other=0.0)
        qk = tl.dot(q, k) * sm_scale
        qk = tl.where(cols[None, :] < Tk, qk, float("-inf"))
        if IS_CAUSAL:
            qk = tl.where(offs_m[:, None] + Tk - Tq >= cols[None, :], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(qk - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(O + off_h * stride_qh + offs_m[:, None] * D + offs_d[None, :], acc.to(q.dtype), mask=offs_m[:, None] < Tq)

def triton_attention(q, k, v, causal=False):
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    o = torch.empty_like(q)
    BLOCK_M, BLOCK_N = 32, 32
    attention_kernel[(triton.cdiv(Tq, BLOCK_M), B * H)](q, k, v, o, H, Tq, Tk, D ** -0.5, q.stride(1), k.stride(1),
                                                        causal, D, BLOCK_M, BLOCK_N)
    return o
"""

ATTENTION_RIGHT = [
    _ATTENTION,
    # where masked lanes are replaced, or belong to rows that are not stored, what they hold does not matter
    _ATTENTION.replace("Tq, other=0.0", "Tq").replace("mask=cols[None, :] < Tk, other=0.0", "mask=cols[None, :] < Tk"),
    _ATTENTION.replace("BLOCK_M, BLOCK_N = 32, 32", "BLOCK_M, BLOCK_N = 128, 64"),
    _ATTENTION.replace("tl.exp(", "tl.exp2(").replace("D ** -0.5", "D ** -0.5 * 1.4426950408889634"),
    '''
@triton.jit
def one_axis(q, k, v, out, heads, t_q, t_k, scale, causal: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """A grid of one axis; the end of the loop from the tile's last query; the bias is added."""
    tiles = tl.cdiv(t_q, M)
    head, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    q += head * t_q * D
    out += head * t_q * D
    k += head * t_k * D
    v += head * t_k * D
    i = tile * M + tl.arange(0, M)
    d = tl.arange(0, D)
    qs = tl.load(q + i[:, None] * D + d, mask=(i < t_q)[:, None], other=0)
    best = tl.full([M], float("-inf"), tl.float32)
    total = tl.full([M], 0.0, tl.float32)
    mean = tl.full([M, D], 0.0, tl.float32)
    last = t_k
    if causal:
        last = tl.minimum(t_q, (tile + 1) * M) + t_k - t_q
    j = tl.arange(0, N)
    while tl.min(j) < last:
        there = j < last
        ks = tl.load(k + j[:, None] * D + d, mask=there[:, None], other=0)
        vs = tl.load(v + j[:, None] * D + d, mask=there[:, None], other=0)
        s = tl.dot(qs, ks.T, input_precision="ieee") * scale
        bias = tl.where(there, 0.0, float("-inf"))[None, :]
        if causal:
            bias = bias + tl.where(j[None, :] > i[:, None] + t_k - t_q, float("-inf"), 0.0)
        s += bias
        top = tl.maximum(best, tl.max(s, axis=1))
        w = tl.exp(s - top[:, None])
        old = tl.exp(best - top) * total
        new = old + tl.sum(w, axis=1)
        mean = (mean * old[:, None] + tl.dot(w.to(vs.dtype), vs, input_precision="ieee")) / new[:, None]
        best, total = top, new
        j += N
    tl.store(out + i[:, None] * D + d, mean, mask=(i < t_q)[:, None])

def triton_attention(q, k, v, causal=False):
    b, h, t_q, d = q.shape
    out = q.new_empty(q.shape)
    one_axis[(b * h * triton.cdiv(t_q, 16),)](q, k, v, out, b * h, t_q, k.size(2), 1 / math.sqrt(d), bool(causal), d, M=16, N=16)
    return out
''',
    '''
@triton.jit
def step(acc, l, m, s, v):
    top = tl.maximum(m, tl.max(s, 1))
    a, p = tl.exp(m - top), tl.exp(s - top[:, None])
    return tl.dot(p.to(v.dtype), v, acc * a[:, None]), l * a + tl.sum(p, 1), top

@triton.jit
def by_pointers(Q, K, V, O, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Block pointers, a helper kernel, and a grid of three axes."""
    tile, head = tl.program_id(2), tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    q_block = tl.make_block_ptr(Q + head * t_q * D, (t_q, D), (D, 1), (tile * M, 0), (M, D), (1, 0))
    o_block = tl.make_block_ptr(O + head * t_q * D, (t_q, D), (D, 1), (tile * M, 0), (M, D), (1, 0))
    k_block = tl.make_block_ptr(K + head * t_k * D, (D, t_k), (1, D), (0, 0), (D, N), (0, 1))
    v_block = tl.make_block_ptr(V + head * t_k * D, (t_k, D), (D, 1), (0, 0), (N, D), (1, 0))
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    m, l = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    rows = tile * M + tl.arange(0, M)
    end = tl.minimum(t_k, (tile + 1) * M + t_k - t_q) if CAUSAL else t_k
    for left in range(0, end, N):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        cols = left + tl.arange(0, N)
        hidden = cols[None, :] >= t_k
        if CAUSAL:
            hidden = hidden | (cols[None, :] - (t_k - t_q) > rows[:, None])
        s = tl.where(hidden, -float("inf"), tl.dot(q, k) * scale)
        acc, l, m = step(acc, l, m, s, v)
        k_block = tl.advance(k_block, (0, N))
        v_block = tl.advance(v_block, (N, 0))
    tl.store(o_block, (acc / l[:, None]).to(O.dtype.element_ty), boundary_check=(0,))

def triton_attention(q, k, v, causal=False):
    b, h, t_q, d = q.shape
    out = torch.empty_like(q)
    by_pointers[(b, h, triton.cdiv(t_q, 64))](q, k, v, out, t_q, k.shape[-2], d ** -0.5, causal, d, 64, 32)
    return out
''',
    '''
@triton.jit
def parts(q, k, v, o, l, m, t_q, t_k, scale, causal: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SPLIT: tl.constexpr):
    """Two programs share the keys of a tile of queries, and a second kernel merges what they have."""
    tile, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i, d = tile * M + tl.arange(0, M), tl.arange(0, D)
    qs = tl.load(q + (head * t_q + i[:, None]) * D + d[None, :], mask=i[:, None] < t_q, other=0.0)
    top, total, acc = tl.full((M,), -1e30, tl.float32), tl.zeros((M,), tl.float32), tl.zeros((M, D), tl.float32)
    seen = tl.minimum(t_k, (tile + 1) * M + t_k - t_q) if causal else t_k
    for left in range(part * N, seen, N * SPLIT):
        j = left + tl.arange(0, N)
        at = (head * t_k + j[:, None]) * D + d[None, :]
        ks, vs = tl.load(k + at, mask=j[:, None] < t_k, other=0.0), tl.load(v + at, mask=j[:, None] < t_k, other=0.0)
        keep = (j[None, :] < t_k) & ((j[None, :] <= i[:, None] + t_k - t_q) if causal else (i[:, None] >= 0))
        s = tl.where(keep, tl.dot(qs, tl.trans(ks)) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w, old = tl.exp(s - new[:, None]), tl.exp(top - new)
        total, acc, top = total * old + tl.sum(w, 1), acc * old[:, None] + tl.dot(w.to(vs.dtype), vs), new
    row = (part * tl.num_programs(1) + head) * t_q + i
    tl.store(o + row[:, None] * D + d[None, :], acc, mask=i[:, None] < t_q)
    tl.store(l + row, total, mask=i < t_q)
    tl.store(m + row, top, mask=i < t_q)

@triton.jit
def merge(o, l, m, out, rows, D: tl.constexpr, M: tl.constexpr):
    i, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    here = i < rows
    m0, m1 = tl.load(m + i, here, 0.0), tl.load(m + rows + i, here, 0.0)
    l0, l1 = tl.load(l + i, here, 1.0), tl.load(l + rows + i, here, 1.0)
    at = i[:, None] * D + d[None, :]
    o0, o1 = tl.load(o + at, here[:, None], 0.0), tl.load(o + rows * D + at, here[:, None], 0.0)
    top = tl.maximum(m0, m1)
    a, b = tl.exp(m0 - top), tl.exp(m1 - top)
    tl.store(out + at, (o0 * a[:, None] + o1 * b[:, None]) / (l0 * a + l1 * b)[:, None], here[:, None])

def triton_attention(q, k, v, causal=False):
    b, h, t_q, d = q.shape
    rows = b * h * t_q
    o = torch.empty((2, rows, d), dtype=torch.float32, device=q.device)
    l, m = (torch.empty((2, rows), dtype=torch.float32, device=q.device) for _ in "lm")
    parts[(triton.cdiv(t_q, 32), b * h, 2)](q, k, v, o, l, m, t_q, k.shape[2], d ** -0.5, causal, d, 32, 32, 2)
    out = torch.empty_like(q)
    merge[(triton.cdiv(rows, 32),)](o, l, m, out, rows, d, 32)
    return out
''',
    '''
@triton.jit
def one_query(q, k, v, out, t_q, t_k, scale, causal: tl.constexpr, D: tl.constexpr, N: tl.constexpr):
    """A query a program, sums of products in place of tl.dot."""
    i, head = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    row = tl.load(q + (head * t_q + i) * D + d).to(tl.float32) * scale
    m, l, acc = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    end = i + 1 + t_k - t_q if causal else t_k
    for left in range(0, end, N):
        j = left + tl.arange(0, N)
        here = j[:, None] < end
        keys = tl.load(k + (head * t_k + j[:, None]) * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        s = tl.where(j < end, tl.sum(keys * row[None, :], axis=1), -float("inf"))
        values = tl.load(v + (head * t_k + j[:, None]) * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        top = tl.maximum(m, tl.max(s, axis=0))
        w, old = tl.exp(s - top), tl.exp(m - top)
        l = l * old + tl.sum(w, axis=0)
        acc = acc * old + tl.sum(w[:, None] * values, axis=0)
        m = top
    tl.store(out + (head * t_q + i) * D + d, acc / l)

def triton_attention(q, k, v, causal=False):
    b, h, t_q, d = q.shape
    out = torch.empty_like(q)
    one_query[(t_q, b * h)](q, k, v, out, t_q, k.shape[2], d ** -0.5, causal, d, 64)
    return out
''',
    '''
@triton.jit
def backwards(q, k, v, out, heads, t_q, t_k, scale, causal: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """All heads in a loop of one program, and the keys from the last to the first: tiles that a query may not see come first."""
    i, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    for head in range(heads):
        qs = tl.load(q + (head * t_q + i[:, None]) * D + d[None, :], mask=i[:, None] < t_q, other=0.0)
        m, l, acc = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32), tl.zeros((M, D), tl.float32)
        end = tl.minimum(t_k, (tl.program_id(0) + 1) * M + t_k - t_q) if causal else t_k
        tiles = tl.cdiv(end, N)
        for turn in range(tiles):
            j = (tiles - 1 - turn) * N + tl.arange(0, N)
            at = (head * t_k + j[:, None]) * D + d[None, :]
            ks, vs = tl.load(k + at, mask=j[:, None] < t_k, other=0.0), tl.load(v + at, mask=j[:, None] < t_k, other=0.0)
            s = tl.dot(qs, tl.trans(ks)) * scale
            s = tl.where(j[None, :] < t_k, s, -float("inf"))
            if causal:
                s = tl.where(j[None, :] <= i[:, None] + t_k - t_q, s, -float("inf"))
            top = tl.maximum(m, tl.max(s, 1))
            safe = tl.where(top == -float("inf"), 0.0, top)
            w, old = tl.exp(s - safe[:, None]), tl.exp(m - safe)
            l, acc = l * old + tl.sum(w, 1), acc * old[:, None] + tl.dot(w.to(vs.dtype), vs)
            m = top
        tl.store(out + (head * t_q + i[:, None]) * D + d[None, :], acc / l[:, None], mask=i[:, None] < t_q)

def triton_attention(q, k, v, causal=False):
    b, h, t_q, d = q.shape
    out = torch.empty_like(q)
    backwards[(triton.cdiv(t_q, 64),)](q, k, v, out, b * h, t_q, k.shape[2], 1 / math.sqrt(d), causal, d, 64, 32)
    return out
''',
]

_SKIP = "end = tl.minimum((start_m + 1) * BLOCK_M + Tk - Tq, Tk)"
ATTENTION_WRONG = [
    # the last visible key is left out where it is the first of a tile
    (
        None,
        """
@triton.jit
def attention_kernel(
    q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    top = tl.program_id(0) * QUERIES
    head = tl.program_id(1)
    rows = top + tl.arange(0, QUERIES)
    d = tl.arange(0, D)
    q_ptrs = q + (head * t_q + rows[:, None]) * D + d[None, :]
    q_tile = tl.load(q_ptrs, mask=rows[:, None] < t_q, other=0.0)
    m = tl.full((QUERIES,), -float("inf"), tl.float32)
    l = tl.zeros((QUERIES,), tl.float32)
    acc = tl.zeros((QUERIES, D), tl.float32)
    visible = t_k
    if CAUSAL:
        last_row = top + QUERIES - 1
        visible = tl.minimum(t_k, last_row + t_k - t_q)
    for left in range(0, visible, KEYS):
        cols = left + tl.arange(0, KEYS)
        kv = (head * t_k + cols[:, None]) * D + d[None, :]
        k_tile = tl.load(k + kv, mask=cols[:, None] < t_k, other=0.0)
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        ok = cols[None, :] < t_k
        if CAUSAL:
            ok = ok & (cols[None, :] <= rows[:, None] + t_k - t_q)
        s = tl.where(ok, s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)
        alpha = tl.exp(m - safe)
        p = tl.exp(s - safe[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        v_tile = tl.load(v + kv, mask=cols[:, None] < t_k, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v_tile.dtype), v_tile, input_precision="ieee")
        m = m_new
    tl.store(out + (head * t_q + rows[:, None]) * D + d[None, :], acc / l[:, None], mask=rows[:, None] < t_q)


def triton_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    batch, heads, t_q, d = q.shape
    t_k = k.shape[-2]
    out = torch.empty_like(q)
    QUERIES, KEYS = 64, 32
    attention_kernel[(triton.cdiv(t_q, QUERIES), batch * heads)](
        q, k, v, out, t_q, t_k, d**-0.5, CAUSAL=causal, D=d, QUERIES=QUERIES, KEYS=KEYS
    )
    return out
""",
    ),
    ("SD1", _ATTENTION.replace(" * sm_scale", "")),
    ("SD2", _ATTENTION.replace("D ** -0.5", "1 / D")),
    ("MK13", _ATTENTION.replace("if IS_CAUSAL:\n            qk", "if False:\n            qk")),
    ("MK14", _ATTENTION.replace("offs_m[:, None] + Tk - Tq >=", "offs_m[:, None] >=")),
    ("MK7", _ATTENTION.replace("+ Tk - Tq >= cols", "+ Tk - Tq > cols")),
    (
        "MK4",
        _ATTENTION.replace('>= cols[None, :], qk, float("-inf")', ">= cols[None, :], qk, -1.0e4").replace(
            '< Tk, qk, float("-inf")', "< Tk, qk, -1.0e4"
        ),
    ),
    ("KN40", _ATTENTION.replace('        qk = tl.where(cols[None, :] < Tk, qk, float("-inf"))\n', "")),
    ("FL1", _ATTENTION.replace("acc = acc * alpha[:, None] + ", "acc = acc + ")),
    ("FL2", _ATTENTION.replace("acc = acc * alpha[:, None] + ", "acc = acc + ").replace("l_i * alpha", "l_i")),
    ("TI18", _ATTENTION.replace("l_i * alpha", "l_i")),
    ("TT14", _ATTENTION.replace("    acc = acc / l_i[:, None]\n", "")),
    ("TI21", _ATTENTION.replace("        m_i = m_new\n", "")),
    ("FL4", _ATTENTION.replace(' - float("inf")\n    l_i', "\n    l_i")),
    ("KN47", _ATTENTION.replace(_SKIP, "end = Tk")),
    ("TI20", _ATTENTION.replace(_SKIP, "end = tl.minimum((start_m + 1) * BLOCK_M, Tk)")),
    ("TI3", _ATTENTION.replace(_SKIP, "end = start_m * BLOCK_M + Tk - Tq")),
    ("KN50", _ATTENTION.replace("K + off_h * stride_kh", "K").replace("V + off_h * stride_kh", "V")),
    (None, _ATTENTION.replace("O + off_h * stride_qh", "O")),
    (None, _ATTENTION.replace(" + off_h * stride_qh", "").replace(" + off_h * stride_kh", "")),
    ("KN50", _ATTENTION.replace("Q + off_h * stride_qh", "Q")),
    (
        "KN67",
        _ATTENTION.replace("tl.minimum((start_m + 1) * BLOCK_M + Tk - Tq, Tk)", "(start_m + 1) * BLOCK_M + Tk - Tq"),
    ),
    ("KN69", _ATTENTION.replace("mask=cols[:, None] < Tk, other=0.0", "mask=cols[:, None] < Tk")),
    (None, _ATTENTION.replace("B * H)]", "H)]")),
    ("KN52", _ATTENTION.replace("k.stride(1)", "q.stride(1)")),
    (None, _ATTENTION.replace("offs_d[:, None], mask=cols[None, :] < Tk, other=0.0)", "offs_d[:, None])")),
    (None, _ATTENTION.replace("offs_d[None, :], mask=cols[:, None] < Tk, other=0.0)", "offs_d[None, :])")),
    (None, _ATTENTION.replace("acc.to(q.dtype), mask=offs_m[:, None] < Tq", "acc.to(q.dtype)")),
    (None, _ATTENTION.replace("triton.cdiv(Tq, BLOCK_M)", "Tq // BLOCK_M")),
    ("KN33", _ATTENTION.replace("tl.exp(", "tl.exp2(")),
    (None, _ATTENTION.replace("cols = start_n + offs_n", "cols = offs_n")),
    (None, _ATTENTION.replace("p.to(v.dtype)", "p")),
    (
        None,
        _ATTENTION.replace("causal, D, BLOCK_M", "causal, 64, BLOCK_M").replace(
            "q.stride(1), k.stride(1)", "Tq * 64, Tk * 64"
        ),
    ),
    *(
        (id, _ATTENTION.replace("N = 32, 32", "N = 16, 16").replace(old, new))
        for id, old, new in (
            ("FL1", "acc = acc * alpha[:, None] + ", "acc = acc + "),
            ("TI18", "l_i * alpha", "l_i"),
            ("KN40", '        qk = tl.where(cols[None, :] < Tk, qk, float("-inf"))\n', ""),
            ("MK4", 'qk, float("-inf")', "qk, -1.0e4"),
        )
    ),
    # no list holds these
    (None, _ATTENTION.replace("* sm_scale\n", ".to(q.dtype) * sm_scale\n")),
    (None, _ATTENTION.replace(_SKIP, "end = Tk").replace("BLOCK_M, BLOCK_N = 32, 32", "BLOCK_M, BLOCK_N = 128, 128")),
    (
        None,
        "import torch.nn.functional as F\ndef triton_attention(q, k, v, causal=False):\n    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)\n",
    ),
    (
        None,
        "def triton_attention(q, k, v, causal=False):\n    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v\n",
    ),
    (
        None,
        _ATTENTION.replace("BLOCK_M, BLOCK_N = 32, 32", "BLOCK_M, BLOCK_N = 32, max(16, triton.next_power_of_2(Tk))"),
    ),
    (None, _ATTENTION.replace("BLOCK_M, BLOCK_N = 32, 32", "BLOCK_M, BLOCK_N = 32, 8")),
    (
        None,
        _ATTENTION.replace(
            "    o = torch.empty_like(q)", "    o = torch.empty_like(q)\n    table = torch.empty((B, H, Tq, Tk))"
        ),
    ),
    (None, _ATTENTION.replace("torch.empty_like(q)", "torch.zeros_like(q)")),
    (
        None,
        _ATTENTION.replace("    o = torch.empty_like(q)", "    q = q * D ** -0.5\n    o = torch.empty_like(q)").replace(
            "D ** -0.5, q.stride", "1.0, q.stride"
        ),
    ),
    (None, _ATTENTION.replace("tl.max(qk, 1))", "tl.max(tl.max(qk, 1), 0))")),
    (None, _ATTENTION.replace("* sm_scale\n", "* sm_scale\n        qk = qk.to(tl.float16).to(tl.float32)\n")),
    (None, _ATTENTION.replace("tl.dot(p.to(v.dtype), v)", "tl.dot(p.to(v.dtype), v, out_dtype=tl.float16)")),
    (None, _ATTENTION.replace("B * H)]", "B * H)]").replace("    return o", "    return o.to(torch.float32)")),
    (None, _ATTENTION.replace("offs_m = start_m * BLOCK_M", "offs_m = start_m * (BLOCK_M // 2)")),
    (None, _ATTENTION.replace("range(0, end, BLOCK_N)", "range(BLOCK_N, end, BLOCK_N)")),
    (None, _ATTENTION.replace("q.stride(1), k.stride(1),", "q.stride(1), k.stride(1) if B == 1 else k.stride(0),")),
    (None, _ATTENTION.replace("[None, :] < Tk, qk", "[None, :] <= Tk, qk")),
    (
        None,
        _ATTENTION.replace("(start_m + 1) * BLOCK_M + Tk - Tq, Tk)", "(start_m + 2) * BLOCK_M + Tk - Tq, Tk)"),
    ),  # one tile too many
    (
        None,
        _ATTENTION.replace(
            "(start_m + 1) * BLOCK_M + Tk - Tq, Tk)", "tl.minimum(start_m + 1, 2) * BLOCK_M + Tk - Tq, Tk)"
        ),
    ),
    (None, _ATTENTION.replace("D ** -0.5", "0.25")),
    (None, _ATTENTION.replace("tl.maximum(m_i, tl.max(qk, 1))", "tl.maximum(tl.maximum(m_i, tl.max(qk, 1)), 0.0)")),
    (None, _ATTENTION.replace("acc / l_i[:, None]", "acc / (l_i[:, None] + 1e-3)")),
    (None, _ATTENTION.replace("range(0, end, BLOCK_N)", "range(0, Tk + BLOCK_N, BLOCK_N)")),  # beyond the keys, masked
]

# Triton has tensor descriptors since 3.4, and has no block pointers since 3.9.
ADD_BY_DESCRIPTORS = """
@triton.jit
def by_descriptors(x, y, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    a = tl.make_tensor_descriptor(x, shape=[n], strides=[1], block_shape=[BLOCK])
    b = tl.make_tensor_descriptor(y, shape=[n], strides=[1], block_shape=[BLOCK])
    o = tl.make_tensor_descriptor(out, shape=[n], strides=[1], block_shape=[BLOCK])
    o.store([start], a.load([start]) + b.load([start]))

def triton_add(x, y):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device))
    out = torch.empty_like(x)
    n = x.numel()
    by_descriptors[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
    return out
"""
ATTENTION_BY_DESCRIPTORS = """
@triton.jit
def by_descriptors(q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    top, bh = tl.program_id(0) * QUERIES, tl.program_id(1)
    qd = tl.make_tensor_descriptor(q + bh * t_q * D, shape=[t_q, D], strides=[D, 1], block_shape=[QUERIES, D])
    kd = tl.make_tensor_descriptor(k + bh * t_k * D, shape=[t_k, D], strides=[D, 1], block_shape=[KEYS, D])
    vd = tl.make_tensor_descriptor(v + bh * t_k * D, shape=[t_k, D], strides=[D, 1], block_shape=[KEYS, D])
    od = tl.make_tensor_descriptor(out + bh * t_q * D, shape=[t_q, D], strides=[D, 1], block_shape=[QUERIES, D])
    q_tile = qd.load([top, 0])
    rows = top + tl.arange(0, QUERIES)
    m = tl.full((QUERIES,), float("-inf"), tl.float32)
    l = tl.zeros((QUERIES,), tl.float32)
    o = tl.zeros((QUERIES, D), tl.float32)
    visible = tl.minimum(t_k, top + QUERIES + t_k - t_q) if CAUSAL else t_k
    for left in range(0, visible, KEYS):
        k_tile = kd.load([left, 0])
        v_tile = vd.load([left, 0])
        columns = left + tl.arange(0, KEYS)
        s = tl.dot(q_tile, tl.trans(k_tile)) * scale
        s = tl.where(columns[None, :] < t_k, s, float("-inf"))
        if CAUSAL:
            s = tl.where(columns[None, :] <= rows[:, None] + t_k - t_q, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        a = tl.exp(m - m_new)
        l = l * a + tl.sum(p, axis=1)
        o = o * a[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)
        m = m_new
    od.store([top, 0], (o / l[:, None]).to(q_tile.dtype))

def triton_attention(q, k, v, causal=False):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=q.device))
    b, h, t_q, d = q.shape
    t_k = k.shape[2]
    out = torch.empty_like(q)
    by_descriptors[(triton.cdiv(t_q, 32), b * h)](q, k, v, out, t_q, t_k, d ** -0.5, CAUSAL=causal, D=d, QUERIES=32, KEYS=32)
    return out
"""

RIGHT = {
    "triton_add": [*ADD_RIGHT, ADD_BY_DESCRIPTORS],
    "triton_softmax": SOFTMAX_RIGHT,
    "triton_attention": [*ATTENTION_RIGHT, ATTENTION_BY_DESCRIPTORS],
}
WRONG = {"triton_add": ADD_WRONG, "triton_softmax": SOFTMAX_WRONG, "triton_attention": ATTENTION_WRONG}

WRONG["triton_add"] += [
    (
        "KN70",
        """@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x + offsets, mask=mask)
    b = tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, a + b, mask=mask)


def triton_add(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    n = len(x)
    add_kernel[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    return out
""",
    ),
    (
        None,
        """@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    a = tl.load(x + at, mask=keep)
    b = tl.load(y + tl.arange(0, BLOCK), mask=keep)
    tl.store(out + at, a + b, mask=keep)


def triton_add(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 32),)](x, y, out, n, BLOCK=32)
    return out
""",
    ),
]

WRONG["triton_softmax"] += [
    (
        "MK4",
        """@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    keep = col < n
    s = tl.load(x + row * n + col, mask=keep, other=-1000.0).to(tl.float32)
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out + row * n + col, e / tl.sum(e, axis=0), mask=keep)


def triton_softmax(x: Tensor) -> Tensor:
    rows, n = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
""",
    ),
    (
        None,
        """@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    keep = col < n
    s = tl.load(x + col, mask=keep, other=-float("inf")).to(tl.float32)
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out + row * n + col, e / tl.sum(e, axis=0), mask=keep)


def triton_softmax(x: Tensor) -> Tensor:
    rows, n = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
""",
    ),
]

_PLAIN_TRITON_ATTENTION = """@triton.jit
def attention_kernel(
    q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    first = tl.program_id(0) * QUERIES
    head = tl.program_id(1)
    rows = first + tl.arange(0, QUERIES)
    feat = tl.arange(0, D)
    q_at = head * t_q * D + rows[:, None] * D + feat[None, :]
    q_tile = tl.load(q + q_at, mask=rows[:, None] < t_q, other=0.0).to(tl.float32)
    m = tl.full((QUERIES,), float("-inf"), tl.float32)
    l = tl.zeros((QUERIES,), tl.float32)
    o = tl.zeros((QUERIES, D), tl.float32)
    end = t_k
    if CAUSAL:
        end = tl.minimum(first + QUERIES, t_q) + t_k - t_q
    for start in range(0, end, KEYS):
        cols = start + tl.arange(0, KEYS)
        at = head * t_k * D + cols[:, None] * D + feat[None, :]
        k_tile = tl.load(k + at, mask=cols[:, None] < t_k, other=0.0).to(tl.float32)
        v_tile = tl.load(v + at, mask=cols[:, None] < t_k, other=0.0).to(tl.float32)
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
        ok = cols[None, :] < t_k
        if CAUSAL:
            ok = ok & (cols[None, :] <= rows[:, None] + t_k - t_q)
        s = tl.where(ok, s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        c = tl.exp(m - new)
        l = l * c + tl.sum(p, 1)
        o = o * c[:, None] + tl.dot(p, v_tile, input_precision="ieee")
        m = new
    tl.store(out + q_at, o / l[:, None], mask=rows[:, None] < t_q)


def triton_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    B, H, T_q, d = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(T_q, 32), B * H)
    attention_kernel[grid](q, k, v, out, T_q, k.shape[2], d**-0.5, CAUSAL=causal, D=d, QUERIES=32, KEYS=32)
    return out
"""
WRONG["triton_attention"] += [
    (
        None,
        _PLAIN_TRITON_ATTENTION.replace(
            "tl.store(out + q_at, o / l[:, None], mask=rows[:, None] < t_q)",
            "tl.store(out + q_at, o / tl.sum(p, 1)[:, None], mask=rows[:, None] < t_q)",
        ),
    ),
    (
        "KN75",
        _PLAIN_TRITON_ATTENTION.replace(
            "v_tile = tl.load(v + at, mask=cols[:, None] < t_k, other=0.0).to(tl.float32)",
            "v_tile = tl.load(v + at, mask=cols[:, None] < t_q, other=0.0).to(tl.float32)",
        ),
    ),
    (
        "HL1",
        _PLAIN_TRITON_ATTENTION.replace(
            'o = o * c[:, None] + tl.dot(p, v_tile, input_precision="ieee")',
            'o = o * c[:, None] + tl.dot(p, k_tile, input_precision="ieee")',
        ),
    ),
]

WRONG["triton_softmax"] += [
    (
        None,
        """@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    keep = col < n
    s = tl.load(x + row * n + col, mask=keep, other=-float("inf")).to(tl.float32)
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out + row * n + col, tl.log(e / tl.sum(e, axis=0)), mask=keep)


def triton_softmax(x: Tensor) -> Tensor:
    rows, n = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
""",
    )
]

# What runs in the interpreter, and on no GPU
WRONG["triton_attention"] += [
    (
        "SD3",
        """
@triton.jit
def attention_kernel(
    q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    tile, head = tl.program_id(0), tl.program_id(1)
    i = tile * QUERIES + tl.arange(0, QUERIES)
    c = tl.arange(0, D)
    at_q = (head * t_q + i[:, None]) * D + c[None, :]
    mine = tl.load(q + at_q, mask=i[:, None] < t_q, other=0.0)
    top = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed = tl.zeros((QUERIES, D), tl.float32)
    stop = t_k
    if CAUSAL:
        stop = tl.minimum(t_k, (tile + 1) * QUERIES + (t_k - t_q))
    for left in range(0, stop, KEYS):
        j = left + tl.arange(0, KEYS)
        at_k = (head * t_k + j[:, None]) * D + c[None, :]
        keys = tl.load(k + at_k, mask=j[:, None] < t_k, other=0.0)
        values = tl.load(v + at_k, mask=j[:, None] < t_k, other=0.0)
        s = tl.dot(mine, tl.trans(keys), input_precision="ieee") * scale
        s = tl.where(j[None, :] < t_k, s, -float("inf"))
        if CAUSAL:
            s = tl.where(j[None, :] <= i[:, None] + (t_k - t_q), s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1))
        e = tl.exp(s - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(e, axis=1)
        mixed = mixed * shrink[:, None] + tl.dot(e.to(values.dtype), values, input_precision="ieee")
        top = new_top
    tl.store(out + at_q, mixed / total[:, None], mask=i[:, None] < t_q)


def triton_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    b, h, t_q, d = q.shape
    d_model = h * d
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(t_q, 64), b * h)](
        q, k, v, out, t_q, k.shape[2], d_model**-0.5, CAUSAL=causal, D=d, QUERIES=64, KEYS=32
    )
    return out
""",
    ),
    (
        None,
        _PLAIN_TRITON_ATTENTION.replace(
            "l = l * c + tl.sum(p, 1)", "total = l * c + tl.sum(p, 1)\n        l = total"
        ).replace("o / l[:, None]", "o / total[:, None]"),
    ),
    (
        None,
        _PLAIN_TRITON_ATTENTION.replace(
            "o = tl.zeros((QUERIES, D), tl.float32)", "o = tl.zeros((QUERIES, D), tl.float16)"
        ),
    ),
]
