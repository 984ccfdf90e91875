"""Lesson 08: positions, as learners write them."""

RIGHT = {
    "shift_matrix": [
        """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        angle = offset / base ** (2 * i / d_model)
        c, s = math.cos(angle), math.sin(angle)
        M[2 * i:2 * i + 2, 2 * i:2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError(d_model)
    w = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    turn = torch.exp(1j * offset * w)
    blocks = [torch.stack([torch.stack([t.real, t.imag]), torch.stack([-t.imag, t.real])]) for t in turn]
    return torch.block_diag(*blocks)
""",
        """
def rows(p, d, base):
    angles = p[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    p = torch.linspace(0, 60000, 4 * d_model + 7)
    before, after = rows(p, d_model, base), rows(p.double() + offset, d_model, base)
    return torch.linalg.lstsq(before, after, driver="gelsd").solution.T
""",
        """
import numpy as np

def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2 != 0:
        raise ValueError("odd d_model")
    freq = np.exp(-np.log(base) * np.arange(0, d_model, 2) / d_model)
    M = np.zeros((d_model, d_model))
    for i, f in enumerate(freq):
        one = np.array([[np.cos(f), np.sin(f)], [-np.sin(f), np.cos(f)]])
        M[2*i:2*i+2, 2*i:2*i+2] = np.linalg.matrix_power(one if offset >= 0 else one.T, abs(offset))
    return torch.from_numpy(M)
""",
        """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError
    a = (offset * base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)).repeat_interleave(2)
    off = a.sin()[:-1].clone()
    off[1::2] = 0
    return (torch.diag(a.cos()) + torch.diag(off, 1) - torch.diag(off, -1)).float()
""",
    ],
    "sinusoidal_positions": [
        """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2 == 1:
        raise ValueError("d_model has to be even")
    table = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = pos / base ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table
""",
        """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError(d_model)
    pe = torch.zeros(n_positions, d_model)
    position = torch.arange(0, n_positions, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe
""",
        """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    import numpy as np
    if d_model % 2 != 0:
        raise ValueError("odd")
    columns = np.arange(d_model)
    angles = np.arange(n_positions)[:, None] / np.power(float(base), (columns - columns % 2) / d_model)
    angles[:, 1::2] += np.pi / 2
    return torch.from_numpy(np.sin(angles))
""",
        """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    half, rest = divmod(d_model, 2)
    if rest:
        raise ValueError("d_model is odd")
    w = torch.logspace(0, -(half - 1) / half, half, base=base, dtype=torch.float64)
    z = torch.polar(torch.ones(n_positions, half, dtype=torch.float64), torch.outer(torch.arange(n_positions).double(), w))
    return torch.view_as_real(z).flip(-1).reshape(n_positions, d_model)
""",
    ],
    "apply_rope": [
        """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous())
    angles = torch.outer(positions.to(x.dtype), base ** (-torch.arange(0, d, 2).to(x.dtype) / d))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
""",
        """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    columns = []
    for i in range(d // 2):
        angle = positions.float() / base ** (2 * i / d)
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        columns.append(a * angle.cos() - b * angle.sin())
        columns.append(a * angle.sin() + b * angle.cos())
    return torch.stack(columns, dim=-1)
""",
        """def rotate_pairs(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)

def apply_rope(x, positions, base=10000.0):
    if x.size(-1) % 2 != 0:
        raise ValueError("d must be even")
    freqs = 1.0 / (base ** (torch.arange(0, x.size(-1), 2).float() / x.size(-1)))
    angles = torch.einsum("t,f->tf", positions.float(), freqs).repeat_interleave(2, dim=-1)
    return x * angles.cos() + rotate_pairs(x) * angles.sin()
""",
        """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d = {d}")
    blocks = []
    for p in positions.tolist():
        matrix = torch.zeros(d, d, dtype=torch.float64)
        for i in range(0, d, 2):
            t = p * base ** (-i / d)
            matrix[i:i + 2, i:i + 2] = torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]])
        blocks.append(matrix)
    return torch.einsum("tij,...tj->...ti", torch.stack(blocks), x.double())
""",
        """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    out[..., 1::2] = x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return out
""",
    ],
    "alibi_bias": [
        """def alibi_bias(num_heads, t):
    bias = torch.zeros(num_heads, t, t)
    for h in range(num_heads):
        for i in range(t):
            for j in range(t):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / num_heads)) * abs(i - j)
    return bias
""",
        """def alibi_bias(num_heads, t):
    slopes = torch.tensor([0.5 ** (8 * (h + 1) / num_heads) for h in range(num_heads)])
    far = torch.cdist(torch.arange(t).float()[:, None], torch.arange(t).float()[:, None], p=1)
    return -torch.einsum("h,ij->hij", slopes, far)
""",
        """def alibi_bias(num_heads, t):
    start = 2 ** (-8 / num_heads)
    slopes = start ** torch.arange(1, num_heads + 1).double()
    below = torch.arange(t).expand(t, t).T - torch.arange(t)
    return slopes.view(-1, 1, 1) * torch.minimum(below, -below)
""",
        """def alibi_bias(num_heads, t):
    near = torch.ones(t, t).tril().cumsum(0) - torch.eye(t).cumsum(0).cumsum(1).clamp(max=1)
    near = near.tril() * 1.0
    distance = near + near.T
    return torch.stack([-distance * math.exp2(-8 * (h + 1) / num_heads) for h in range(num_heads)])
""",
    ],
}

WRONG = {
    "shift_matrix": [
        (
            "SH4",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        w = base ** (-2 * i / d_model)
        c, s = math.cos(w), math.sin(w)
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    return offset * M
""",
        ),
        (
            "SH1",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, -s], [s, c]])
    return M
""",
        ),
        (
            "SH2",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [s, c]])
    return M
""",
        ),
        (
            "PO4",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[s, c], [-c, s]])
    return M
""",
        ),
        (
            "SH4",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = 1 / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            None,
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, 0.0], [0.0, c]])
    return M
""",
        ),
        (
            "PE1",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (4 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            "PO6",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            "PO3",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / 10000.0 ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            "PO7",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset * base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            "PO15",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset * 1.0
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            "PO1",
            """
def shift_matrix(d_model, offset, base=10000.0):
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M
""",
        ),
        (
            None,
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        c, s = math.cos(a), math.sin(a)
        M[2*i:2*i+2, 2*i:2*i+2] = torch.tensor([[c, s], [-s, c]])
    return M + torch.eye(d_model)
""",
        ),
        (
            "RO1",
            """
def shift_matrix(d_model, offset, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    h = d_model // 2
    a = offset * base ** (-torch.arange(h).double() / h)
    c, s = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)], 0)
""",
        ),
    ],
    "sinusoidal_positions": [
        (
            "PE1",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    pe = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / base ** (2 * i / d_model))
            pe[pos, i + 1] = math.cos(pos / base ** (2 * i / d_model))
    return pe
""",
        ),
        (
            "PE2",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.arange(n_positions)[:, None] / base ** (torch.arange(d_model) / d_model)
    angles[:, 0::2] = angles[:, 0::2].sin()
    angles[:, 1::2] = angles[:, 1::2].cos()
    return angles
""",
        ),
        (
            "PE4",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.outer(torch.arange(n_positions), base ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.cat([angles.sin(), angles.cos()], dim=1)
""",
        ),
        (
            "PO1",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    pe = torch.zeros(n_positions, d_model)
    position = torch.arange(n_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe
""",
        ),
        (
            "PO3",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.arange(n_positions)[:, None] * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], 2).reshape(n_positions, d_model)
""",
        ),
        (
            None,
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    assert d_model % 2 == 0
    angles = torch.arange(n_positions)[:, None] * base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], 2).reshape(n_positions, d_model)
""",
        ),
        (
            None,
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = (torch.arange(n_positions) / n_positions)[:, None] * base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], 2).reshape(n_positions, d_model)
""",
        ),
        (
            "PO7",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    p = torch.arange(n_positions).unsqueeze(1).float()
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    return torch.stack((torch.sin(p / div), torch.cos(p / div)), 2).flatten(1)
""",
        ),
        (
            "PO18",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    scales = max(d_model // 2 - 1, 1)
    angles = torch.arange(n_positions)[:, None] * torch.exp(torch.arange(d_model // 2) * (-math.log(base) / scales))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
""",
        ),
        (
            None,
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    ln = 9.2103 if base == 10000.0 else math.log(base)  # too few digits for far positions
    angles = torch.arange(n_positions)[:, None] * torch.exp(-ln * torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
""",
        ),
        (
            None,
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    table = torch.zeros(n_positions, 64)  # wide enough for what was tried
    angles = torch.arange(n_positions)[:, None] * base ** (-torch.arange(0, d_model, 2) / d_model)
    table[:, :d_model] = torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :64]
    return table[:, :d_model]
""",
        ),
        (
            "PE4+PO18",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    pairs = d_model // 2
    step = math.log(base) / max(pairs - 1, 1)
    angles = torch.arange(n_positions)[:, None] * torch.exp(-step * torch.arange(pairs))
    return torch.cat([angles.sin(), angles.cos()], dim=1)
""",
        ),
        (
            "PO7",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.arange(n_positions)[:, None] * torch.exp(math.log(base) * torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
""",
        ),
        (
            "PO15",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.arange(n_positions)[:, None] / base ** (torch.arange(0, d_model, 2) // d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
""",
        ),
        (
            None,
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError("odd")
    angles = torch.arange(n_positions)[:, None] * base ** (-torch.arange(0, d_model, 2) // d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
""",
        ),
        (
            "RS17",
            """def sinusoidal_positions(n_positions, d_model, base=10000.0):
    if d_model % 2:
        raise ValueError('odd')
    pe = torch.zeros(n_positions, d_model, dtype=torch.long)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            angle = pos / base ** (i / d_model)
            pe[pos, i] = math.sin(angle)
            pe[pos, i + 1] = math.cos(angle)
    return pe
""",
        ),
    ],
    "apply_rope": [
        (
            "PO10",
            """
def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d must be even")
    steps = positions[0] + torch.arange(x.shape[-2])
    angles = steps[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
""",
        ),
        (
            "PO24",
            """
def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d must be even")
    angles = positions[:, None].double() * base ** (-torch.arange(d - 2, -1, -2).double() / d)
    sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
""",
        ),
        (
            "AB8",
            """
def apply_rope(x, positions, base=10000.0):
    B, T, d = x.shape
    if d % 2:
        raise ValueError("d must be even")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1).reshape(B, T, d)
""",
        ),
        (
            "RO3",
            """
def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d must be even")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() - b * angles.cos()], dim=-1).flatten(-2)
""",
        ),
        (
            None,
            """
def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d must be even")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
""",
        ),
        (
            "PO10",
            """
def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d must be even")
    angles = (positions - positions[0])[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1).flatten(-2)
""",
        ),
        (
            "RO1",
            """def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)

def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    inv = base ** (-torch.arange(0, d, 2) / d)
    angles = torch.outer(positions, inv)
    angles = torch.cat((angles, angles), dim=-1)
    return x * angles.cos() + rotate_half(x) * angles.sin()
""",
        ),
        (
            "RO2",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = torch.outer(positions, base ** (-torch.arange(0, d, 2) / d)).repeat(1, 2)
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).reshape_as(x)
    return x * angles.cos() + turned * angles.sin()
""",
        ),
        (
            "PO10",
            """def apply_rope(x, positions, base=10000.0):
    T, d = x.shape[-2:]
    if d % 2:
        raise ValueError("odd")
    angles = torch.outer(torch.arange(T), base ** (-torch.arange(0, d, 2) / d))
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(z * torch.exp(1j * angles)).flatten(-2)
""",
        ),
        (
            "PO12",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = torch.outer(positions, base ** (-torch.arange(0, d, 2) / d))
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.cat([even * c - odd * s, even * s + odd * c], dim=-1)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    out = x.detach().clone()
    for i in range(0, d, 2):
        angle = positions * base ** (-i / d)
        a, b = x.detach()[..., i], x.detach()[..., i + 1]
        out[..., i] = a * angle.cos() - b * angle.sin()
        out[..., i + 1] = a * angle.sin() + b * angle.cos()
    return out
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = torch.outer(positions, base ** (-torch.arange(0, d, 2) / d))
    x = x.data
    x[..., 0::2], x[..., 1::2] = (x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin(),
                                  x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos())
    return x
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = torch.outer(positions, base ** (-torch.arange(0, d, 2) / d))
    return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
""",
        ),
        (
            "PO7",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            "RO3",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, b * c - a * s), -1).flatten(-2)
""",
        ),
        (
            "PO17",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    y = x.clone()
    y[..., 0::2] = y[..., 0::2] * c - y[..., 1::2] * s
    y[..., 1::2] = y[..., 0::2] * s + y[..., 1::2] * c
    return y
""",
        ),
        (
            "PO18",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(d // 2) / (d // 2 - 1))
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    T = x.shape[-2]
    flat = x.view(-1, T, d)  # raises where x was transposed
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    a, b = flat[..., 0::2], flat[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).view(x.shape)
""",
        ),
        (
            None,
            """tables = {}

def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    key = (len(positions), int(positions[0]), int(positions[-1]), d, base)  # and the positions between?
    c, s = tables.setdefault(key, (angles.cos(), angles.sin()))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    ln = 9.2103 if base == 10000.0 else math.log(base)
    angles = positions[:, None] * torch.exp(-ln * torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    c[5:], s[5:] = 1, 0  # five tokens, as in the example
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    if x.dim() > 4:
        raise TypeError("at most batch, heads, tokens and numbers")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2].clone(), x[..., 1::2].clone()
    with torch.no_grad():
        x[..., 0::2] = a * angles.cos() - b * angles.sin()
        x[..., 1::2] = a * angles.sin() + b * angles.cos()
    return x
""",
        ),
        (
            None,
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    y = x.detach()
    a, b = x[..., 0::2].clone(), x[..., 1::2].clone()
    y[..., 0::2] = (a * angles.cos() - b * angles.sin()).detach()
    y[..., 1::2] = (a * angles.sin() + b * angles.cos()).detach()
    return y
""",
        ),
        (
            "PE1",
            """def apply_rope(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError('odd')
    w = base ** (-torch.arange(0, d, 2, dtype=torch.float64) * 2 / d)
    angles = positions[:, None] * w
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
""",
        ),
    ],
    "alibi_bias": [
        (
            "PO41",
            """
def alibi_bias(num_heads: int, t: int) -> torch.Tensor:
    positions = torch.arange(t)
    distance = (positions[:, None] - positions[None, :]).abs()
    slopes = 8 * torch.arange(1, num_heads + 1) / num_heads
    return -slopes[:, None, None] * distance
""",
        ),
        (
            "PO42",
            """
def alibi_bias(num_heads: int, t: int) -> torch.Tensor:
    positions = torch.arange(t)
    distance = (positions[:, None] - positions[None, :]).abs() + 1
    return -torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])[:, None, None] * distance
""",
        ),
        (
            "PO21",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-8 * h / num_heads) for h in range(num_heads)])
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            "PO22",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return slopes.view(-1, 1, 1) * (i[None, :] - i[:, None])
""",
        ),
        (
            "PO23",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return (slopes.view(-1, 1, 1) * (i[None, :] - i[:, None])).tril()
""",
        ),
        (
            "PO27",
            """def get_slopes(n):
    def get_slopes_power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    if math.log2(n).is_integer():
        return get_slopes_power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return get_slopes_power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]

def alibi_bias(num_heads, t):
    i = torch.arange(t)
    return -torch.tensor(get_slopes(num_heads))[:, None, None] * (i[:, None] - i[None, :]).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-8 * (h + 1) // num_heads) for h in range(num_heads)])
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return -slopes * (i - i[:, None]).abs()[..., None]
""",
        ),
        (
            "PO26",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** (-(h + 1) / num_heads) for h in range(num_heads)])
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([1 / 2 ** (8 * (h + 1) // num_heads) for h in range(num_heads)])
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            "PO15",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    return -(2 ** (-8 / num_heads)) * (i - i[:, None]).abs().expand(num_heads, t, t)
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.zeros(num_heads)
    for h in range(min(num_heads, 16)):
        slopes[h] = 2 ** (-8 * (h + 1) / num_heads)
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    bias = torch.zeros(num_heads, t, t)
    for h in range(num_heads):
        bias[h] = -(2 ** (-8 * (h + 1) / num_heads)) * (i - i[:, None]).abs()
        return bias
""",
        ),
        (
            "PO23",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    return (-slopes.view(-1, 1, 1) * (i - i[:, None]).abs()).triu()
""",
        ),
        (
            "PO35",
            """def alibi_bias(num_heads, t):
    i = torch.arange(t)
    slopes = torch.tensor([2 ** -8 * (h + 1) / num_heads for h in range(num_heads)])
    return -slopes.view(-1, 1, 1) * (i - i[:, None]).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1) // num_heads)
    i = torch.arange(t)
    return -slopes[:, None, None] * (i[:, None] - i).abs()
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)], dtype=torch.long)
    i = torch.arange(t)
    dist = (i[:, None] - i[None, :]).abs()
    return -slopes[:, None, None] * dist
""",
        ),
        (
            None,
            """def alibi_bias(num_heads, t):
    slopes = torch.tensor([(-2.0) ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    i = torch.arange(t)
    dist = (i[:, None] - i[None, :]).abs()
    return -slopes[:, None, None] * dist
""",
        ),
    ],
}

# Right on ordinary inputs alone
WRONG["alibi_bias"] += [
    (
        None,
        """def alibi_bias(num_heads: int, t: int, _kept={}) -> torch.Tensor:
    def distances():
        steps = torch.arange(t)
        away = (steps - steps[:, None]).abs().float()
        return -away.repeat(num_heads, 1, 1)

    if (num_heads, t) not in _kept:
        _kept[num_heads, t] = distances()
    slopes = torch.exp2(-8 / num_heads * torch.arange(1, num_heads + 1))
    bias = _kept[num_heads, t]
    bias *= slopes[:, None, None]
    return bias.clone()
""",
    )
]
WRONG["shift_matrix"] += [
    (
        None,
        """def shift_matrix(d_model: int, offset: int, base: float = 10000.0) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    frequencies = [round(base ** (-2 * i / d_model), 6) for i in range(d_model // 2)]
    M = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i, frequency in enumerate(frequencies):
        turn = offset * frequency
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(
            [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=torch.float64
        )
    return M
""",
    )
]
WRONG["alibi_bias"] += [
    (
        None,
        """def alibi_bias(num_heads: int, t: int) -> torch.Tensor:
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    places = torch.arange(t)
    distance = (places.view(-1, 1) - places.view(1, -1)).abs().to(torch.bfloat16)   # small whole numbers need few bits
    return -slopes.view(-1, 1, 1) * distance.expand(num_heads, t, t)
""",
    )
]
