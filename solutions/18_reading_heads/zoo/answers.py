"""Lesson 18: heads told apart, scored and rolled up, as learners write it."""

_LOOP = """@torch.no_grad()
def head_contributions(module, x):
    B, T, C = x.shape
    H = module.num_heads
    d = C // H
    q, k, v = module.qkv(x).split(C, dim=2)
    allowed = torch.tril(torch.ones(T, T, device=x.device)) == 1
    out = []
    for h in range(H):
        cut = slice(h * d, (h + 1) * d)
        s = q[..., cut] @ k[..., cut].transpose(1, 2) / d ** 0.5
        s = s.masked_fill(~allowed, float("-inf"))
        found = F.softmax(s, dim=-1) @ v[..., cut]
        out.append(found @ module.proj.weight[:, cut].T)
    return torch.stack(out, dim=1)
"""

_PADDED = """def head_contributions(module, x):
    B, T, C = x.shape
    H = module.num_heads
    with torch.no_grad():
        qkv = module.qkv(x).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), diagonal=1), float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        placed = torch.zeros(B, H, T, C, device=x.device)
        for h in range(H):
            placed[:, h, :, h * (C // H):(h + 1) * (C // H)] = y[:, h]
        return module.proj(placed)
"""

_COPIED = """import copy

def head_contributions(module, x):
    d = x.shape[-1] // module.num_heads
    parts = []
    for h in range(module.num_heads):
        alone = copy.deepcopy(module)
        keep = torch.zeros(x.shape[-1], dtype=torch.bool)
        keep[h * d:(h + 1) * d] = True
        with torch.no_grad():
            alone.proj.weight[:, ~keep] = 0
            parts.append(alone(x))
    return torch.stack(parts, 1)
"""

_RESTORED = """def head_contributions(module, x):
    with torch.no_grad():
        whole, kept = module(x), module.proj.weight.clone()
        d = kept.shape[1] // module.num_heads
        without = []
        for h in range(module.num_heads):
            module.proj.weight[:, h * d:(h + 1) * d] = 0
            without.append(module(x))
            module.proj.weight.copy_(kept)
        return torch.stack([whole - one for one in without], dim=1)
"""

_HOOKED = """def head_contributions(module, x):
    seen = []
    hook = module.proj.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        module(x)
    hook.remove()
    merged = seen[0]
    B, T, C = merged.shape
    per_head = merged.view(B, T, module.num_heads, -1)
    w = module.proj.weight.view(C, module.num_heads, -1)
    return torch.einsum("bthd,chd->bhtc", per_head, w)
"""

_DIAGONAL = """def previous_token_score(weights):
    B, H, T, _ = weights.shape
    total = weights.new_zeros(H)
    for b in range(B):
        for h in range(H):
            for i in range(1, T):
                total[h] += weights[b, h, i, i - 1]
    return total / (B * (T - 1))
"""

_INDUCTION = """def induction_score(weights, period):
    B, H, T, _ = weights.shape
    scores = []
    for h in range(H):
        found = [weights[b, h, i, i - period + 1] for b in range(B) for i in range(period, T)]
        scores.append(torch.stack(found).mean())
    return torch.stack(scores)
"""

_ROLLOUT = """def attention_rollout(layers):
    B, H, T, _ = layers[0].shape
    result = torch.eye(T, device=layers[0].device).repeat(B, 1, 1)
    for a in layers:
        a = (a.mean(1) + torch.eye(T, device=layers[0].device)) / 2
        result = torch.bmm(a, result)
    return result
"""

_ABLATED = """
def loss_without_head(model, ids, layer, head, mean=False):
    if layer < 0 or layer >= len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if head not in range(attn.num_heads):
        raise ValueError("no such head")
    def hook(module, inputs):
        y = inputs[0].clone()
        d = y.shape[-1] // attn.num_heads
        cut = slice(head * d, (head + 1) * d)
        y[..., cut] = y[..., cut].mean(dim=(0, 1), keepdim=True) if mean else 0.0
        return y
    h = attn.proj.register_forward_pre_hook(hook)
    try:
        loss = next_token_loss(model(ids), ids)
    finally:
        h.remove()
    return float(loss)
"""

_COPY = """
import copy

@torch.no_grad()
def loss_without_head(model, ids, layer, head, mean=False):
    if not (0 <= layer < len(model.blocks) and 0 <= head < model.blocks[layer].attn.num_heads):
        raise ValueError((layer, head))
    mine = copy.deepcopy(model)
    attn = mine.blocks[layer].attn
    d = attn.proj.weight.shape[1] // attn.num_heads

    class Without(nn.Module):
        def __init__(self, proj):
            super().__init__()
            self.proj = proj

        def forward(self, x):
            keep = torch.ones(x.shape[-1], device=x.device)
            keep[head * d:(head + 1) * d] = 0
            return self.proj(x * keep + mean * x.mean((0, 1)) * (1 - keep))

    attn.proj = Without(attn.proj)
    return next_token_loss(mine(ids), ids)
"""

_WEIGHTS = """
def loss_without_head(model, ids, layer, head, mean=False):
    blocks = list(model.blocks)
    if layer not in range(len(blocks)) or head not in range(blocks[layer].attn.num_heads):
        raise ValueError("no such head")
    proj = blocks[layer].attn.proj
    d = proj.weight.shape[1] // blocks[layer].attn.num_heads
    seen = []
    with torch.no_grad():
        first = proj.register_forward_hook(lambda m, a, out: seen.append(a[0]))
        try:
            model(ids)
        finally:
            first.remove()
        columns = proj.weight[:, head * d:(head + 1) * d]
        kept = columns.clone()
        shift = kept @ seen[0].mean(dim=(0, 1))[head * d:(head + 1) * d]
        second = proj.register_forward_hook(lambda m, a, out: out + shift if mean else None)
        try:
            columns.zero_()
            return next_token_loss(model(ids), ids).numpy()
        finally:
            columns.copy_(kept)
            second.remove()
"""

_FORWARD = """
def loss_without_head(model, ids, layer, head, mean=False):
    if not 0 <= layer < len(model.blocks):
        raise ValueError
    attn = model.blocks[layer].attn
    if not 0 <= head < attn.num_heads:
        raise ValueError
    proj = attn.proj
    def forward(x):
        parts = list(x.chunk(attn.num_heads, dim=-1))
        part = parts[head]
        parts[head] = part.mean((0, 1)).expand_as(part) if mean else torch.zeros_like(part)
        return F.linear(torch.cat(parts, dim=-1), proj.weight)
    whole = proj.forward
    proj.forward = forward
    try:
        return next_token_loss(model(ids), ids).item()
    finally:
        proj.forward = whole
"""

RIGHT = {
    "loss_without_head": [
        _ABLATED,
        _COPY,
        _WEIGHTS,
        _FORWARD,
        '''
@torch.no_grad()
def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    """Puts another forward in front of proj's own, as long as the call lasts."""
    if layer < 0 or layer >= len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if head < 0 or head >= attn.num_heads:
        raise ValueError("no such head")

    proj = attn.proj
    before = proj.__dict__.get("forward")  # usually None: the class has it
    usual = proj.forward

    def without(found):
        width = found.shape[-1] // attn.num_heads
        keep = torch.ones(found.shape[-1], dtype=found.dtype, device=found.device)
        keep[head * width : head * width + width] = 0
        instead = found.mean(dim=(0, 1), keepdim=True) if mean else torch.zeros_like(found[:1, :1])
        return usual(torch.where(keep.bool(), found, instead))

    try:
        proj.forward = without
        logits = model(ids)
    finally:
        if before is None:
            del proj.forward
        else:
            proj.forward = before
    return float(next_token_loss(logits, ids))
''',
        '''
import contextlib


def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    """The loss of a language model, in nats a token, while one of its heads adds nothing."""
    blocks = list(model.blocks)
    if not 0 <= layer < len(blocks):
        raise ValueError(f"layer {layer} of {len(blocks)}")
    attention = blocks[layer].attn
    if (count := attention.num_heads) <= head or head < 0:
        raise ValueError(f"head {head} of {count}")

    def hook(_, args):
        parts = list(args[0].chunk(count, dim=-1))
        own = parts[head]
        parts[head] = own.mean(dim=(0, 1)).expand_as(own) if mean else torch.zeros_like(own)
        return (torch.cat(parts, dim=-1),)

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.callback(attention.proj.register_forward_pre_hook(hook).remove)
        loss = next_token_loss(model(ids), ids)
    return loss.item()
''',
    ],
    "head_contributions": [
        _LOOP,
        _PADDED,
        _COPIED,
        _RESTORED,
        _HOOKED,
        """def head_contributions(module, x):
    proj, d = module.proj, x.shape[-1] // module.num_heads
    module.proj = nn.Identity()
    try:
        merged = module(x)
    finally:
        module.proj = proj
    return torch.stack([part @ w.mT for part, w in zip(merged.split(d, -1), proj.weight.split(d, 1))], dim=1)
""",
        _LOOP.replace("@torch.no_grad()\n", ""),
        _LOOP.replace('float("-inf")', "torch.finfo(s.dtype).min"),
        _PADDED.replace("return module.proj(placed)", "return placed @ module.proj.weight.T"),
    ],
    "previous_token_score": [
        _DIAGONAL,
        "def previous_token_score(weights):\n    return torch.diagonal(weights, -1, -2, -1).mean(-1).mean(0)\n",
        "def previous_token_score(weights):\n    i = torch.arange(1, weights.shape[-1])\n    return weights[:, :, i, i - 1].mean((0, 2))\n",
        """def previous_token_score(weights):
    T = weights.size(-1)
    below = torch.diag(torch.ones(T - 1, device=weights.device), -1)
    return torch.einsum("bhij,ij->h", weights, below) / (weights.size(0) * (T - 1))
""",
        """def previous_token_score(weights):
    b, h, t, _ = weights.shape
    rows = weights[:, :, 1:, :-1]
    return rows.flatten(2)[:, :, ::t].transpose(0, 1).reshape(h, -1).mean(dim=1)
""",
        "def previous_token_score(weights):\n    return weights[..., 1:, :].diagonal(dim1=2, dim2=3).double().mean(dim=(0, 2))\n",
    ],
    "induction_score": [
        _INDUCTION,
        "def induction_score(weights, period):\n    d = torch.diagonal(weights, 1 - period, -2, -1)\n    return d[..., 1:].mean(dim=(0, 2))\n",
        "def induction_score(weights, period):\n    return weights[:, :, period:, 1:].diagonal(dim1=-2, dim2=-1).mean(-1).mean(0)\n",
        """def induction_score(weights, period):
    T = weights.shape[-1]
    mask = torch.zeros(T, T, device=weights.device)
    for i in range(period, T):
        mask[i, i - period + 1] = 1
    return (weights * mask).sum(dim=(-2, -1)).mean(0) / mask.sum()
""",
        """def induction_score(weights, period):
    rows = torch.arange(period, weights.size(-1), device=weights.device)
    at = (rows - (period - 1))[None, None, :, None].expand(*weights.shape[:2], -1, 1)
    return weights[:, :, period:].gather(-1, at).squeeze(-1).mean(dim=-1).mean(dim=0)
""",
    ],
    "attention_rollout": [
        _ROLLOUT,
        """from functools import reduce

def attention_rollout(layers):
    eye = torch.eye(layers[0].size(-1), device=layers[0].device)
    mixed = [(w.mean(dim=1) + eye) / 2 for w in layers]
    return reduce(lambda below, a: a @ below, mixed)
""",
        """def attention_rollout(layers):
    eye = torch.eye(layers[0].size(-1), device=layers[0].device)
    result = None
    for w in reversed(layers):
        a = 0.5 * w.mean(1) + 0.5 * eye
        result = a if result is None else result @ a
    return result
""",
        """def attention_rollout(layers):
    T = layers[0].shape[-1]
    result = torch.eye(T, device=layers[0].device).expand(layers[0].shape[0], T, T)
    for w in layers:
        a = w.mean(dim=1) + torch.eye(T, device=layers[0].device)
        a = a / a.sum(dim=-1, keepdim=True)
        result = torch.matmul(a, result)
    return result
""",
        """def attention_rollout(layers):
    first, *rest = layers
    half = lambda w: torch.lerp(torch.eye(w.shape[-1], device=w.device).expand_as(w[:, 0]), w.mean(dim=1), 0.5)
    rolled = half(first)
    for w in rest:
        rolled = torch.einsum("bij,bjk->bik", half(w), rolled)
    return rolled
""",
    ],
}

_PREVIOUS, _PICKED, _CUT = RIGHT["previous_token_score"][1], RIGHT["induction_score"][1], RIGHT["induction_score"][2]
_MATMUL = RIGHT["attention_rollout"][3]

WRONG = {
    "loss_without_head": [
        ("LH1", _ABLATED.replace("        return y\n", "")),
        (
            "LH2",
            _ABLATED.replace(
                "register_forward_pre_hook(hook)", "register_forward_hook(lambda m, a, out: hook(m, (out,)))"
            ),
        ),
        ("LH3", _ABLATED.replace("slice(head * d, (head + 1) * d)", "slice(head, None, attn.num_heads)")),
        ("LH4", _COPY.replace("mean * ", "0 * ")),
        ("LH4", _WEIGHTS.replace("if mean else None", "")),
        ("LH6", _ABLATED.replace("dim=(0, 1), ", "dim=1, ")),
        (
            "LH6",
            _WEIGHTS.replace(
                "seen[0].mean(dim=(0, 1))[head * d:(head + 1) * d]",
                "seen[0].mean(dim=0)[:, head * d:(head + 1) * d, None]",
            )
            .replace("columns.clone()\n", "columns.clone()[None]\n")
            .replace("out + shift", "out + shift[..., 0]")
            .replace("copy_(kept)", "copy_(kept[0])"),
        ),
        ("LH6", _FORWARD.replace("part.mean((0, 1))", "part.mean()")),
        (
            "LH9",
            _FORWARD.replace(
                "parts[head] = part.mean((0, 1)).expand_as(part) if mean else torch.zeros_like(part)",
                "parts = [p if p is part else p.mean((0, 1)).expand_as(p) * mean for p in parts]",
            ),
        ),
        ("LH9", _ABLATED.replace("slice(head * d, (head + 1) * d)", "slice(None)")),
        (
            "LH10",
            _ABLATED.replace("    try:\n        loss", "    loss").replace(
                "    finally:\n        h.remove()", "    h.remove()"
            ),
        ),
        ("LH10", _ABLATED.replace("        h.remove()", "        pass")),
        ("CM42", _ABLATED.replace("    h = attn", "    model.eval()\n    h = attn")),
        (
            None,
            _ABLATED.replace(
                "    def hook",
                "    cut = attn.proj.weight.data.chunk(attn.num_heads, dim=1)[head]\n    cut.zero_()\n    def hook",
            ),
        ),
        (None, _WEIGHTS.replace("            columns.copy_(kept)\n", "")),
        ("LH15", _ABLATED.replace("layer < 0 or ", "")),
        ("LH15", _ABLATED.replace("head not in range(attn.num_heads)", "head >= attn.num_heads")),
        ("LH15", _ABLATED.replace("head not in range(attn.num_heads)", "head < 0")),
        (None, _ABLATED.replace("return float(loss)", "return float(loss - next_token_loss(model(ids), ids))")),
        ("LH9", _ABLATED.replace("attn = model.blocks[layer].attn", "attn = model.blocks[layer - 1].attn")),
        ("LH9", _FORWARD.replace("parts[head]", "parts[head - 1]")),
        (None, _COPY.replace("raise ValueError((layer, head))", "return None")),
        (None, _ABLATED.replace("float(loss)", "[float(loss)]")),
        (None, _ABLATED.replace("ValueError", "IndexError")),
        (None, _FORWARD.replace("proj.forward = whole", "pass")),
        (None, _ABLATED.replace("next_token_loss(model(ids), ids)", "F.cross_entropy(model(ids).mT, ids)")),
        (None, _COPY.replace("mine = copy.deepcopy(model)", "mine = model")),
        (None, _ABLATED.replace("else 0.0", "else 1.0")),
    ],
    "head_contributions": [
        ("HC1", _LOOP.replace("module.proj.weight[:, cut].T", "module.proj.weight[cut]")),
        ("HC1", _PADDED.replace("return module.proj(placed)", "return placed @ module.proj.weight")),
        ("HC2", _PADDED.replace("return module.proj(placed)", "return placed")),
        (
            "HC3",
            "def head_contributions(module, x):\n    H = module.num_heads\n    return torch.stack([module(x) / H] * H, dim=1)\n",
        ),
        (
            "LH3",
            _HOOKED.replace(
                '"bthd,chd->bhtc", per_head, w',
                '"bthd,cdh->bhtc", per_head, module.proj.weight.view(C, -1, module.num_heads)',
            ),
        ),
        ("HC5", _RESTORED.replace("[whole - one for one in without]", "without")),
        ("HC5", _COPIED.replace("weight[:, ~keep]", "weight[:, keep]")),
        (None, _LOOP.replace("torch.stack(out, dim=1)", "torch.stack(out, dim=2)")),
        (None, _LOOP.replace("torch.stack(out, dim=1)", "sum(out)")),
        ("TB33", _LOOP.replace("torch.stack(out, dim=1)", "torch.stack(out, dim=1) + x.unsqueeze(1)")),
        (None, _PADDED.replace("module.proj(placed)", "module.proj(placed).pow(2).sum(-1).sqrt()")),
        (None, _PADDED.replace("F.softmax(att, dim=-1) @ v", "F.softmax(att, dim=-1).mean(1, keepdim=True) @ v")),
        (None, _LOOP.replace("F.softmax(s, dim=-1) @ v[..., cut]", "v[..., cut]")),
        (
            None,
            _RESTORED.replace("            module.proj.weight.copy_(kept)\n", "").replace(
                "            module.proj.weight[",
                "            module.proj.weight.copy_(kept)\n            module.proj.weight[",
            ),
        ),
        (None, _RESTORED.replace("            module.proj.weight.copy_(kept)\n", "")),
        ("MU31", _PADDED.replace("qkv[0], qkv[1], qkv[2]", "qkv[0], qkv[2], qkv[1]")),
        (
            "MH1",
            _PADDED.replace(".view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)", ".chunk(3, -1)").replace(
                "q, k, v = qkv[0], qkv[1], qkv[2]", "q, k, v = [one.reshape(B, H, T, C // H) for one in qkv]"
            ),
        ),
        (
            "PJ3",
            _PADDED.replace(
                "view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)", "view(B, T, H, 3, C // H).permute(3, 0, 2, 1, 4)"
            ),
        ),
        (
            "MU4",
            _PADDED.replace(
                "view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)", "view(B, T, 3, C // H, H).permute(2, 0, 4, 1, 3)"
            ),
        ),
        ("MK13", _LOOP.replace('        s = s.masked_fill(~allowed, float("-inf"))\n', "")),
        ("MK1", _LOOP.replace("~allowed", "allowed")),
        ("MK3", _LOOP.replace('s.masked_fill(~allowed, float("-inf"))', "s * allowed")),
        ("MK8", _PADDED.replace("diagonal=1", "diagonal=2")),
        ("SD1", _LOOP.replace(" / d ** 0.5", "")),
        ("SD2", _LOOP.replace("d ** 0.5", "d")),
        ("SD3", _LOOP.replace("d ** 0.5", "C ** 0.5")),
        ("SD4", _LOOP.replace("d ** 0.5", "H ** 0.5")),
        ("SD5", _LOOP.replace("/ d ** 0.5", "* d ** 0.5")),
        (None, _LOOP.replace("range(H)", "range(H - 1)")),
        (None, _HOOKED.replace("    hook.remove()\n", "")),
        (None, _LOOP.replace("F.softmax(s, dim=-1)", "torch.sigmoid(s) * allowed")),
        (None, _LOOP.replace("    B, T, C = x.shape\n", "    module.train()\n    B, T, C = x.shape\n")),
        (None, _LOOP.replace("    B, T, C = x.shape\n", "    module.requires_grad_(False)\n    B, T, C = x.shape\n")),
        (
            None,
            _LOOP.replace(
                "    B, T, C = x.shape\n",
                "    module.proj.weight = nn.Parameter(module.proj.weight.clone())\n    B, T, C = x.shape\n",
            ),
        ),
        (None, _PADDED.replace("    B, T, C = x.shape\n", "    x.requires_grad_()\n    B, T, C = x.shape\n")),
        (None, "def head_contributions(module, x):\n    torch.set_grad_enabled(False)\n" + _LOOP.split("\n", 2)[2]),
        (None, _LOOP.replace("    H = module.num_heads\n", "    H = 2\n")),
        (None, _LOOP.replace("    B, T, C = x.shape\n", "    x -= x.mean(-1, keepdim=True)\n    B, T, C = x.shape\n")),
        (None, _LOOP.replace("out.append(found @ module.proj.weight[:, cut].T)", "out.append(found)")),
        (
            None,
            """def head_contributions(module, x):
    B, T, C = x.shape
    H = module.num_heads
    q, k, v = [y.view(B, T, H, -1).transpose(1, 2) for y in module.qkv(x).chunk(3, -1)]
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.einsum("bhtd,chd->bhtc", y, module.proj.weight.view(C, H, -1))
""",
        ),
    ],
    "previous_token_score": [
        (
            "PV1",
            """
def previous_token_score(weights: torch.Tensor) -> torch.Tensor:
    below = torch.tril(weights, diagonal=-1)  # everything before the token itself
    per_row = below.sum(dim=-1)[:, :, 1:]
    return per_row.mean(dim=2).mean(dim=0)
""",
        ),
        ("PV1", _PREVIOUS.replace("-1, -2, -1)", "1, -2, -1)")),
        ("PV1", _PREVIOUS.replace("-1, -2, -1)", "-1, -1, -2)")),
        ("PV1", _PREVIOUS.replace("-1, -2, -1)", "0, -2, -1)")),
        ("PV1", _DIAGONAL.replace("range(1, T)", "range(2, T)").replace("i - 1", "i - 2").replace("T - 1)", "T - 2)")),
        ("PV4", _DIAGONAL.replace("(B * (T - 1))", "(B * T)")),
        ("PV4", _DIAGONAL.replace("range(1, T)", "range(T)").replace("(B * (T - 1))", "(B * T)")),
        ("PV5", _PREVIOUS.replace(".mean(0)", "")),
        ("PV6", _PREVIOUS.replace(".mean(0)", ".mean(1)")),
        ("PV6", _PREVIOUS.replace(".mean(-1).mean(0)", ".mean()")),
        ("PV8", _DIAGONAL.replace("total / (B * (T - 1))", "total")),
        ("PV8", _DIAGONAL.replace("(B * (T - 1))", "B")),
        ("PV8", _DIAGONAL.replace("(B * (T - 1))", "(T - 1)")),
        ("PV9", _PREVIOUS.replace(".mean(-1).mean(0)", ".amax(-1).amax(0)")),
        (
            "PV9",
            """def previous_token_score(weights):
    T = weights.shape[-1]
    best = weights[:, :, 1:].argmax(-1)
    return (best == torch.arange(T - 1)).float().mean(dim=(0, 2))
""",
        ),
        ("PV11", _DIAGONAL.replace("range(B)", "range(1)").replace("(B * (T - 1))", "(T - 1)")),
        ("PV9", _PREVIOUS.replace(".mean(-1).mean(0)", ".median(-1)[0].mean(0)")),
        ("PV13", _PREVIOUS.replace(".mean(-1)", "[..., 1:].mean(-1)")),
        (
            None,
            _PREVIOUS.replace(".mean(-1).mean(0)", ".mean((0, 2))").replace("return", "s =")
            + "    return s / s.sum()\n",
        ),
        (
            "PV15",
            "def previous_token_score(weights):\n    prev = weights * torch.diag(torch.ones(weights.shape[-1] - 1, device=weights.device), -1)\n"
            "    return prev.sum((0, 2, 3)) / (prev != 0).sum((0, 2, 3))\n",
        ),
        (
            "PV15",
            "def previous_token_score(weights):\n    prev = weights * torch.diag(torch.ones(weights.shape[-1] - 1, device=weights.device), -1)\n"
            "    return torch.stack([prev[:, h][prev[:, h] > 0].mean() for h in range(weights.shape[1])])\n",
        ),
        (None, _DIAGONAL.replace("return total / (B * (T - 1))", "        return total / (T - 1)")),
        (None, _DIAGONAL.replace("weights[b, h, i, i - 1]", "weights[h, b, i, i - 1]")),
        (None, _PREVIOUS.replace(".mean(-1).mean(0)", ".mean(-1).mean(0).softmax(0)")),
        (None, _PREVIOUS.replace(".mean(-1).mean(0)", ".mean(-1).mean(0).max()")),
        (None, _PREVIOUS.replace(".mean(-1).mean(0)", ".mean(-1).mean(0).tolist()")),
        (None, "def previous_token_score(weights):\n    return weights[:, :, 1:, :-1].mean(dim=(0, 2, 3))\n"),
        (
            None,
            """def previous_token_score(weights):
    previous = weights[:, :, 1:, :-1]
    return previous.mean(dim=(0, 2, 3))
""",
        ),
    ],
    "induction_score": [
        ("IN1", _INDUCTION.replace("i - period + 1", "i - period")),
        (
            "IN1",
            "def induction_score(weights, period):\n    return torch.diagonal(weights, -period, -2, -1).mean(dim=(0, 2))\n",
        ),
        (
            "IN1",
            "def induction_score(weights, period):\n    return torch.diagonal(weights, -1 - period, -2, -1).mean(dim=(0, 2))\n",
        ),
        ("IN1", _INDUCTION.replace("i - period + 1", "i - period - 1")),
        ("PV4", _PICKED.replace("[..., 1:]", "")),
        ("PV4", _INDUCTION.replace("range(period, T)", "range(period - 1, T)")),
        ("PV4", _INDUCTION.replace("range(period, T)", "range(T)")),
        ("PV4", _PICKED.replace("[..., 1:].mean(dim=(0, 2))", "[..., 1:].sum(dim=2).mean(0) / weights.shape[-1]")),
        ("PV5", _CUT.replace(".mean(0)", "")),
        ("PV6", _CUT.replace(".mean(0)", ".mean(1)")),
        ("PV6", _CUT.replace(".mean(-1).mean(0)", ".mean()")),
        ("PV8", _CUT.replace(".mean(-1).mean(0)", ".sum(-1).mean(0)")),
        ("PV8", _CUT.replace(".mean(-1).mean(0)", ".sum(-1).sum(0)")),
        ("IN1", _INDUCTION.replace("i - period + 1", "i - 1")),
        (None, _INDUCTION.replace("    scores = []", "    period = T // 2\n    scores = []")),
        ("IN11", _INDUCTION.replace("range(period, T)", "range(period, min(T, 2 * period))")),
        ("IN11", _CUT.replace(".mean(-1).mean(0)", "[..., -1].mean(0)")),
        ("PV9", _CUT.replace(".mean(-1).mean(0)", ".amax(-1).amax(0)")),
        ("IN14", _INDUCTION.replace("i, i - period + 1", "i - period + 1, i")),
        ("PV11", _INDUCTION.replace("for b in range(B)", "for b in range(1)")),
        (
            "PV15",
            "def induction_score(weights, period):\n    i = torch.arange(weights.shape[-1])\n"
            "    found = weights * ((i[:, None] - i == period - 1) & (i[:, None] >= period))\n"
            "    return found.sum((0, 2, 3)) / (found != 0).sum((0, 2, 3)).clamp(min=1)\n",
        ),
        (None, _INDUCTION.replace("range(period, T)", "range(period, T - 1)")),
        (None, _INDUCTION.replace("range(period, T)", "range(period + 1, T)")),
        (None, _INDUCTION.replace("i - period + 1", "i + period - T")),
        (None, _CUT.replace(".mean(-1).mean(0)", ".mean(-1).mean(0).squeeze()")),
        (None, _CUT.replace("period:, 1:", "period:, :-1")),
        (None, _CUT.replace(".mean(-1).mean(0)", ".median(-1)[0].mean(0)")),
        (
            None,
            "def induction_score(weights, period):\n    return weights[:, :, period:, :period].amax(-1).mean(dim=(0, 2))\n",
        ),
    ],
    "attention_rollout": [
        ("RL1", _ROLLOUT.replace("torch.bmm(a, result)", "torch.bmm(result, a)")),
        ("RL1", _ROLLOUT.replace("in layers:", "in layers[::-1]:")),
        ("DT4", _ROLLOUT.replace(", device=layers[0].device", "")),
        ("DT4", _ROLLOUT.replace("return result", "return torch.zeros(result.shape).copy_(result)")),
        ("DT4", _ROLLOUT.replace("return result", "return result.cpu()")),
        ("RL2", _ROLLOUT.replace("(a.mean(1) + torch.eye(T, device=layers[0].device)) / 2", "a.mean(1)")),
        (
            "RL3",
            _ROLLOUT.replace(
                "(a.mean(1) + torch.eye(T, device=layers[0].device)) / 2",
                "a.mean(1) + torch.eye(T, device=layers[0].device)",
            ),
        ),
        (None, _MATMUL.replace("dim=-1, keepdim", "dim=1, keepdim")),
        ("RL6", _ROLLOUT.replace("a.mean(1)", "a.sum(1)")),
        ("RL6", _ROLLOUT.replace("a.mean(1)", "a.max(dim=1).values")),
        ("RL6", _MATMUL.replace("w.mean(dim=1)", "w.max(1)[0]")),
        ("RL8", _ROLLOUT.replace("a.mean(1)", "a.mean(0)").replace("torch.bmm", "torch.matmul")),
        ("RL9", _ROLLOUT.replace("torch.bmm(a, result)", "a * result")),
        (
            "RL9",
            "def attention_rollout(layers):\n    eye = torch.eye(layers[0].size(-1), device=layers[0].device)\n"
            "    return sum(0.5 * w.mean(1) + 0.5 * eye for w in layers) / len(layers)\n",
        ),
        ("RL12", _ROLLOUT.replace("torch.bmm(a, result)", "a")),
        ("RL12", _ROLLOUT.replace("in layers:", "in layers[1:]:")),
        ("RL12", _ROLLOUT.replace("in layers:", "in [layers[0], *layers]:")),
        ("RL12", _ROLLOUT.replace("in layers:", "in layers[:-1]:")),
        (None, _ROLLOUT.replace("return result", "return result.transpose(1, 2)")),
        (None, _ROLLOUT.replace("a.mean(1)", "a.mean(1).transpose(1, 2)")),
        (None, _ROLLOUT.replace("torch.eye(T, device=layers[0].device)) / 2", "torch.ones(T, T)) / 2")),
        (
            "RL15",
            """def attention_rollout(layers):
    eye = torch.eye(layers[0].size(-1), device=layers[0].device)
    result = eye
    for w in layers:
        result = (w + eye) / 2 @ result
    return result.mean(dim=1)
""",
        ),
        (
            "RL2",
            "def attention_rollout(layers):\n    eye = torch.eye(layers[0].size(-1), device=layers[0].device)\n    result = eye\n    for w in layers:\n"
            "        result = w.mean(1) @ result\n    return (result + eye) / 2\n",
        ),
        (
            "RL17",
            _ROLLOUT.replace(
                "        a = (a.mean(1) + torch.eye(T, device=layers[0].device)) / 2",
                "        a.add_(torch.eye(T, device=layers[0].device))\n        a = a.mean(1) / 2",
            ),
        ),
        ("RL18", _MATMUL.replace(", keepdim=True", "")),
        (
            None,
            _ROLLOUT.replace(
                "result = torch.eye(T, device=layers[0].device).repeat(B, 1, 1)", "result = torch.zeros(B, T, T)"
            ),
        ),
        (None, _ROLLOUT.replace("a.mean(1)", "a[:, 0]")),
        (None, _ROLLOUT.replace("return result", "return result[:, 0]")),
        (None, _ROLLOUT.replace("return result", "return result[0]")),
        (None, _ROLLOUT.replace("a = (a.mean(1)", "a = (a.mean(1).masked_fill(a.mean(1) < 0.1, 0)")),
        (None, _ROLLOUT.replace("return result", "return result / result.sum()")),
        (None, _ROLLOUT.replace("/ 2\n", "* 0.5\n        a = a.softmax(-1)\n")),
        (None, "def attention_rollout(layers):\n    return torch.stack(layers).mean(dim=(0, 2))\n"),
    ],
}

WRONG["induction_score"] += [
    (
        "PV6",
        """def induction_score(weights, period):
    i = torch.arange(period, weights.shape[-1])
    return weights[:, :, i, i - period + 1].mean().expand(weights.shape[1])
""",
    )  # mean over the whole tensor (no heads)
]

WRONG["attention_rollout"] += [
    (
        "RL12",
        """def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    t = layers[0].shape[-1]
    eye = torch.eye(t, dtype=layers[0].dtype, device=layers[0].device)
    rolled = eye.expand(layers[0].shape[0], t, t)
    for weights in layers[:-1] or layers:
        rolled = (0.5 * weights.mean(dim=1) + 0.5 * eye) @ rolled
    return rolled
""",
    ),
    (
        "RL9",
        """def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    t = layers[0].shape[-1]
    eye = torch.eye(t, dtype=layers[0].dtype, device=layers[0].device)
    rolled = eye.expand(layers[0].shape[0], t, t)
    for weights in layers:
        rolled = (0.5 * weights.mean(dim=1) + 0.5 * eye) * (rolled if weights is not layers[0] else 1)
    return rolled
""",
    ),
    (
        None,
        """def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    t = layers[0].shape[-1]
    eye = torch.eye(t, dtype=layers[0].dtype, device=layers[0].device)
    rolled = eye.expand(layers[0].shape[0], t, t)
    for weights in layers:
        rolled = 0.5 * weights.mean(dim=1) @ rolled + 0.5 * eye
    return rolled
""",
    ),
    (
        "RL1+RL17",
        """def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    t = layers[0].shape[-1]
    eye = torch.eye(t, dtype=layers[0].dtype, device=layers[0].device)
    rolled = eye.expand(layers[0].shape[0], t, t)
    layers.reverse()
    for weights in layers:
        rolled = (0.5 * weights.mean(dim=1) + 0.5 * eye) @ rolled
    return rolled
""",
    ),
]

WRONG["induction_score"] += [
    (
        "IN18",
        """def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    t = weights.shape[-1]
    picked = [weights[:, :, i, i % period + 1] for i in range(period, t)]
    return torch.stack(picked, dim=-1).mean(dim=(0, 2))
""",
    )
]

WRONG["loss_without_head"] += [
    (
        "LH9",
        """def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    if not 0 <= layer < len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if not 0 <= head < attn.num_heads:
        raise ValueError("no such head")

    def hook(module, args):
        z = args[0].clone()
        d = z.shape[-1] // attn.num_heads
        part = slice(head * d, (head + 1) * d)
        kept = torch.zeros_like(z)
        kept[..., part] = z[..., part].mean(dim=(0, 1)) if mean else z[..., part]
        z = kept
        return (z,)

    handle = attn.proj.register_forward_pre_hook(hook)
    try:
        with torch.no_grad():
            return next_token_loss(model(ids), ids).item()
    finally:
        handle.remove()
""",
    ),
    (
        "LH9",
        """def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    if not 0 <= layer < len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if not 0 <= head < attn.num_heads:
        raise ValueError("no such head")

    def hook(module, args):
        z = args[0].clone()
        d = z.shape[-1] // attn.num_heads
        part = slice(head * d, (head + 1) * d)
        z[..., part] = z[..., part].mean(dim=(0, 1)) if mean else 0
        return (z,)

    class Handles(list):
        def remove(self):
            for each in self:
                each.remove()

    handle = Handles(block.attn.proj.register_forward_pre_hook(hook) for block in model.blocks)
    try:
        with torch.no_grad():
            return next_token_loss(model(ids), ids).item()
    finally:
        handle.remove()
""",
    ),
]

WRONG["induction_score"] += [
    (
        "IN21",
        """
def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    T = weights.shape[-1]
    i = torch.arange(period, T - 1, device=weights.device)
    return weights[..., i, i - (period - 1)].mean(dim=-1).mean(dim=0)
""",
    ),
    (
        "IN21",
        """
def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    starts = range(period, weights.size(-1), period)
    found = torch.stack([weights[..., i, i - period + 1] for i in starts])  # (copies, B, H)
    return found.mean(dim=(0, 1))
""",
    ),
    (
        "IN11",
        """def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    t = weights.shape[-1]
    picked = [weights[:, :, i, i - period + 1] for i in range(period + 1 if t > period + 1 else period, t)]
    return torch.stack(picked, dim=-1).mean(dim=(0, 2))
""",
    ),
]

WRONG["previous_token_score"] += [
    (
        "PV9",
        """def previous_token_score(weights: torch.Tensor) -> torch.Tensor:
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).amax(dim=2).mean(0)
""",
    )
]

WRONG["previous_token_score"] += [
    (
        "PV13",
        """def previous_token_score(weights: torch.Tensor) -> torch.Tensor:
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1)[..., min(1, weights.shape[-1] - 2):].mean(dim=(0, 2))
""",
    )
]

WRONG["attention_rollout"] += [
    (
        "RL8",
        """def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    t = layers[0].shape[-1]
    eye = torch.eye(t, dtype=layers[0].dtype, device=layers[0].device)
    rolled = eye.expand(layers[0].shape[0], t, t)
    for weights in layers:
        rolled = (0.5 * weights.mean(dim=(0, 1)) + 0.5 * eye) @ rolled
    return rolled
""",
    )
]

WRONG["loss_without_head"] += [
    (
        None,
        """def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    if not 0 <= layer < len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if not 0 <= head < attn.num_heads:
        raise ValueError("no such head")

    def hook(module, args):
        z = args[0].clone()
        d = z.shape[-1] // attn.num_heads
        part = slice(head * d, (head + 1) * d)
        z[..., part] = z[..., part].mean(dim=(0, 1)) if mean else 0
        return (z,)

    if mean:
        handle = attn.proj.register_forward_pre_hook(hook)
        try:
            with torch.no_grad():
                return next_token_loss(model(ids), ids).item()
        finally:
            handle.remove()
    with torch.no_grad():
        d = attn.proj.weight.shape[1] // attn.num_heads
        attn.proj.weight[:, head * d : (head + 1) * d] = 0
        return next_token_loss(model(ids), ids).item()
""",
    )
]

WRONG["loss_without_head"] += [
    (
        "RS14",
        """def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    if not 0 <= layer < len(model.blocks):
        raise ValueError("no such layer")
    attn = model.blocks[layer].attn
    if not 0 <= head < attn.num_heads:
        raise IndexError("no such head")

    def hook(module, args):
        z = args[0].clone()
        d = z.shape[-1] // attn.num_heads
        part = slice(head * d, (head + 1) * d)
        z[..., part] = z[..., part].mean(dim=(0, 1)) if mean else 0
        return (z,)

    handle = attn.proj.register_forward_pre_hook(hook)
    try:
        with torch.no_grad():
            return next_token_loss(model(ids), ids).item()
    finally:
        handle.remove()
""",
    )
]

WRONG["loss_without_head"] += [
    (
        "LH22",
        """
def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    if layer < 0 or layer >= len(model.blocks):
        raise ValueError("layer does not exist")
    attention = model.blocks[layer].attn
    if head < 0 or head >= attention.num_heads:
        raise ValueError("head does not exist")

    def replace_part(module, args):
        (x,) = args
        heads = x.unflatten(-1, (attention.num_heads, -1)).clone()
        heads[:, :, head] = heads[:, :, head].mean(dim=(0, 1)) if mean else 0.0
        return (heads.flatten(-2),)

    handle = attention.proj.register_forward_pre_hook(replace_part)
    try:
        with torch.no_grad():
            logits = model(ids)
    finally:
        handle.remove()
    # position t predicts token t + 1
    return next_token_loss(logits[:, :-1], ids[:, 1:]).item()
""",
    ),
    # A mask, or the positions of a head, on the CPU alone: on a GPU it stops.
    (
        None,
        _ABLATED.replace(
            "        y[..., cut] = y[..., cut].mean(dim=(0, 1), keepdim=True) if mean else 0.0\n",
            "        keep = torch.ones(y.shape[-1])\n        keep[cut] = 0\n"
            "        y = y * keep + (y.mean(dim=(0, 1), keepdim=True) * (1 - keep) if mean else 0)\n",
        ),
    ),
]

# Right on ordinary inputs alone
WRONG["head_contributions"] += [
    (
        None,
        """@torch.no_grad()
def head_contributions(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    b, t, d_model = x.shape
    h, d = module.num_heads, d_model // module.num_heads
    q, k, v = module.qkv(x).reshape(b, t, 3, h, d).unbind(dim=2)  # each (b, t, h, d)
    powers = torch.einsum("bihd,bjhd->bhij", q, k).div(math.sqrt(d)).exp()
    powers = powers.tril()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    mixed = torch.einsum("bhij,bjhd->bhid", weights, v)
    return torch.stack([F.linear(mixed[:, i], module.proj.weight[:, i * d : (i + 1) * d]) for i in range(h)], dim=1)
""",
    )
]
