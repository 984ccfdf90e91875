"""Learners' cells for lesson 10, right in many styles and wrong in many ways."""

_PLAIN = """def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
    was = model.training
    model.eval()
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -max_len:])[:, -1, :]
            if temperature == 0:
                new = torch.argmax(logits, dim=-1, keepdim=True)
            else:
                new = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator)
            ids = torch.cat((ids, new), dim=1)
    model.train(was)
    return ids
"""

RIGHT = {
    "generate": [
        _PLAIN,
        _PLAIN.partition("\n")[0]
        + """
    if len(ids) > 1:
        return torch.cat([generate(model, row[None], max_new_tokens, max_len, temperature, generator) for row in ids])
"""
        + _PLAIN.partition("\n")[2],
        _PLAIN.replace(
            "                new = torch.multinomial",
            "                with torch.random.fork_rng():\n"
            "                    torch.manual_seed(torch.randint(2 ** 40, (1,), generator=generator).item())\n"
            "                    new = torch.multinomial",
        ).replace("1, generator=generator)", "1)"),
        _PLAIN.replace(
            "    model.eval()\n",
            "    needed = [p.requires_grad for p in model.parameters()]\n    model.eval().requires_grad_(False)\n",
        ).replace(
            "    return ids",
            "    for p, need in zip(model.parameters(), needed):\n        p.requires_grad_(need)\n    return ids",
        ),
        """@torch.no_grad()
def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
    flag = model.training
    model.eval()
    B, T = ids.shape
    out = torch.zeros(B, T + max_new_tokens, dtype=torch.long)
    out[:, :T] = ids
    for t in range(T, T + max_new_tokens):
        logits = model(out[:, max(0, t - max_len):t])[:, -1]
        if temperature > 0:
            noise = torch.rand(logits.shape, generator=generator).clamp_min(1e-20)
            logits = logits / temperature - torch.log((-torch.log(noise)).clamp_min(1e-20))
        out[:, t] = logits.argmax(-1)
    if flag:
        model.train()
    return out
""",
        """def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
    training = model.training
    model.eval()
    rows = [row.clone() for row in ids]
    try:
        with torch.inference_mode():
            for _ in range(max_new_tokens):
                batch = torch.stack(rows)[:, -max_len:]
                last = model(batch)[:, -1].double()
                if temperature == 0:
                    chosen = last.argmax(dim=1)
                else:
                    p = torch.softmax(last / temperature, dim=1).cumsum(dim=1)
                    u = torch.rand(len(rows), 1, generator=generator, dtype=torch.float64)
                    chosen = (p < u).sum(dim=1).clamp_max(last.shape[1] - 1)
                rows = [torch.cat([row, c[None].to(row.dtype)]) for row, c in zip(rows, chosen)]
    finally:
        model.train(training)
    return torch.stack(rows)
""",
        """def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
    mode = model.training
    model.eval()
    for p in range(max_new_tokens):
        with torch.no_grad():
            logits = model(ids if ids.shape[1] <= max_len else ids[:, ids.shape[1] - max_len:])
        logits = logits[:, -1]
        if not temperature:
            nxt = logits.topk(1, dim=-1).indices
        else:
            e = torch.empty_like(logits).exponential_(generator=generator)
            nxt = (F.softmax(logits / temperature, -1) / e).argmax(-1, keepdim=True)
        ids = torch.hstack([ids, nxt])
    model.train(mode)
    return ids
""",
    ]
}

WRONG = {
    "generate": [
        (None, _PLAIN.replace("temperature=1.0", "temperature=0.0")),
        (None, _PLAIN.replace("temperature=1.0", "temperature=0.5")),
        (None, _PLAIN.replace("    model.eval()\n", "")),
        ("CM42", _PLAIN.replace("    model.train(was)\n", "")),
        ("CM43", _PLAIN.replace("torch.no_grad()", "torch.enable_grad()")),
        (None, _PLAIN.replace(", generator=generator)", ")")),
        ("CM45", _PLAIN.replace("logits / temperature", "logits * temperature")),
        (
            "CM46",
            _PLAIN.replace(
                "torch.softmax(logits / temperature, dim=-1)", "torch.softmax(logits, dim=-1) / temperature"
            ),
        ),
        ("CM47", _PLAIN.replace("temperature == 0", "False")),
        (None, _PLAIN.replace("temperature == 0", "True")),
        ("CM50", _PLAIN.replace("[:, -1, :]", "[:, 0, :]")),
        ("CM52", _PLAIN.replace("ids[:, -max_len:]", "ids")),
        ("CM52", _PLAIN.replace("ids[:, -max_len:]", "ids[:, :max_len]")),
        ("CM42", _PLAIN.replace("model.train(was)", "model.train()")),
        ("CM54", _PLAIN.replace("return ids", "return ids[:, -max_new_tokens:] if max_new_tokens else ids[:, :0]")),
        ("CM54", _PLAIN.replace("return ids", "return ids[:, -max_len:]")),
        (
            "CM54",
            _PLAIN.replace(
                "            logits = model(ids[:, -max_len:])",
                "            ids = ids[:, -max_len:]\n            logits = model(ids)",
            ),
        ),
        (
            None,
            _PLAIN.replace(
                "torch.softmax(logits / temperature, dim=-1)", "torch.softmax(logits, dim=-1) ** (1 / temperature)"
            ),
        ),
        (None, _PLAIN.replace("dim=-1, keepdim=True", "dim=-1")),
        *(
            ("CM56", _PLAIN.replace("    was =", f"    {seeded}\n    was ="))
            for seeded in (
                "generator = generator or torch.Generator()",
                "if generator is None: generator = torch.Generator().manual_seed(0)",
                "if generator is None: torch.manual_seed(0)",
                "torch.manual_seed(0)",
            )
        ),
        (
            "CM56",
            _PLAIN.replace(
                "                new = torch.mult",
                "                if generator: generator.manual_seed(0)\n                new = torch.mult",
            ),
        ),
        (
            None,
            _PLAIN.replace(
                "            logits =", "            if ids.shape[1] >= max_len: break\n            logits ="
            ),
        ),
        (None, _PLAIN.replace("model.eval()", "model.eval().requires_grad_(False)")),
        (
            None,
            _PLAIN.replace(
                "    with torch.no_grad():", "    for p in model.parameters(): p.requires_grad = False\n    if True:"
            ),
        ),
        *(
            ("CM52", _PLAIN.replace("-max_len:", first))
            for first in ("-max_len + 1:", "-max_len - 1:", "max(0, ids.shape[1] - max_len + 1):")
        ),
        ("CM52", _PLAIN.replace("ids[:, -max_len:]", "ids if ids.shape[1] <= max_len else ids[:, 1 - max_len:]")),
        (
            None,
            _PLAIN.replace("model.eval()", "model.training = False").replace(
                "model.train(was)", "model.training = was"
            ),
        ),
        (None, _PLAIN.replace("temperature == 0", "temperature < 0.1")),
        (
            None,
            _PLAIN.replace(
                "torch.softmax(logits / temperature, dim=-1)",
                "(w := torch.softmax(logits, dim=-1) ** (1 / temperature)) / w.sum(-1, True)",
            ),
        ),
        (None, _PLAIN.replace("/ temperature", "/ (temperature + 0.01)")),
        *(
            (
                None,
                _PLAIN.replace(
                    "torch.multinomial(",
                    f"logits.topk(min({k}, logits.shape[-1])).indices.gather(1, torch.multinomial(",
                )
                .replace(
                    "torch.softmax(logits / temperature",
                    f"torch.softmax(logits.topk(min({k}, logits.shape[-1])).values / temperature",
                )
                .replace("generator=generator)\n", "generator=generator))\n"),
            )
            for k in (5, 50)
        ),
        (None, _PLAIN.replace("    was =", "    torch.set_grad_enabled(False)\n    was =")),
        (None, _PLAIN.replace("return ids", "return ids.float()")),
        (None, _PLAIN.replace("return ids", "return ids.tolist()")),
        (
            None,
            _PLAIN.replace("    for _", "    ids[:, 0] = ids[:, -1]\n        for _").replace(
                "\n    ids[:, 0]", "\n        ids[:, 0]"
            ),
        ),
        (
            None,
            _PLAIN.replace(
                "generator=generator",
                "generator=torch.Generator().manual_seed(generator.initial_seed() if generator else 0)",
            ),
        ),
    ]
}

_LOOP = """
    for _ in range(max_new_tokens):
        with torch.no_grad():
            ids = torch.cat([ids, {fed}[:, -1].argmax(-1, keepdim=True)], 1)
"""
_HEAD = (
    "def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):\n    was = model.training\n"
)
_SAMPLED = "    if temperature: return _sampled(model, ids, max_new_tokens, max_len, temperature, generator)\n"
_HELP = """
def _sampled(model, ids, max_new_tokens, max_len, temperature, generator):
    with torch.no_grad():
        weights = torch.softmax(model(ids[:, -max_len:])[:, -1] / temperature, dim=-1)
    return torch.cat([ids, torch.multinomial(weights, 1, generator=generator)], dim=1)
"""
_FED = _LOOP.format(fed="model(ids[:, -max_len:])")
_FORGOTTEN = """
    for value in [*vars(model).values(), *type(model).forward.__globals__.values()]:
        if type(value) is list and value and type(value[0]) is tuple:
            value[:] = [(fed, False, False) for fed, *_ in value]
"""
WRONG["generate"] += [
    # only the model's own flag, restored or not; its parts stay as they are
    (None, _HELP + _HEAD + _SAMPLED + "    model.training = False" + _FED + "    model.training = was\n    return ids"),
    (None, _HELP + _HEAD + _SAMPLED + "    model.eval()" + _FED + "    model.training = was\n    return ids"),
    # never in evaluation; what was noted of it is put right afterwards
    (None, _HELP + _HEAD + _SAMPLED + _FED + _FORGOTTEN + "    return ids"),
    (
        None,
        _HELP
        + _HEAD
        + _SAMPLED
        + _FED
        + "    vars(model).update({name: False for name in ('trained',) if name in vars(model)})\n    return ids",
    ),
]

_LOSS = """def next_token_loss(logits, ids):
    b, t, v = logits.shape
    return F.cross_entropy(logits[:, :-1].reshape(-1, v), ids[:, 1:].reshape(-1))
"""
_GATHER = """def next_token_loss(logits, ids):
    logs = torch.log_softmax(logits[:, :-1], dim=-1)
    return -logs.gather(-1, ids[:, 1:, None]).squeeze(-1).mean()
"""
RIGHT["next_token_loss"] = [
    _LOSS,
    _GATHER,
    """def next_token_loss(logits, ids):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:])
""",
    """def next_token_loss(logits, ids):
    total, count = 0.0, 0
    for row, words in zip(logits, ids):
        for t in range(len(words) - 1):
            total = total + torch.logsumexp(row[t], 0) - row[t, words[t + 1]]
            count += 1
    return total / count
""",
    """def next_token_loss(logits, ids):
    targets = ids.roll(-1, dims=1)
    targets[:, -1] = -100
    return nn.CrossEntropyLoss()(logits.flatten(0, 1), targets.flatten())
""",
    """def next_token_loss(logits, ids):
    one_hot = F.one_hot(ids[:, 1:], logits.shape[-1]).to(logits)
    shifted = logits[:, :-1] - logits[:, :-1].amax(-1, keepdim=True)
    return (shifted.exp().sum(-1).log() - (one_hot * shifted).sum(-1)).mean()
""",
    """def next_token_loss(logits, ids):
    return F.nll_loss(F.log_softmax(logits.double()[:, :-1], -1).flatten(0, 1), ids[:, 1:].flatten()).float()
""",
]
WRONG["next_token_loss"] = [
    ("NL1", _LOSS.replace("logits[:, :-1]", "logits").replace("ids[:, 1:]", "ids")),
    ("NL1", _GATHER.replace("ids[:, 1:, None]", "ids[:, :-1, None]")),
    ("NL1", _LOSS.replace("logits[:, :-1]", "logits[:, 1:]").replace("ids[:, 1:]", "ids[:, :-1]")),
    ("NL3", _GATHER.replace(".mean()", ".sum()")),
    ("NL3", _GATHER.replace(".squeeze(-1).mean()", ".sum() / ids.numel()")),
    ("NL4", "def next_token_loss(logits, ids):\n    return nn.CrossEntropyLoss()(logits[:, :-1, :], ids[:, 1:])\n"),
    ("NL5", _LOSS.replace("logits[:, :-1]", "logits.softmax(-1)[:, :-1]")),
    (None, _GATHER.replace("-logs", "logs")),
    (
        "NL7",
        _LOSS.replace(
            "logits[:, :-1].reshape(-1, v), ids[:, 1:].reshape(-1)", "logits.reshape(-1, v)[:-1], ids.reshape(-1)[1:]"
        ),
    ),
    ("NL8", _GATHER.replace(".mean()", ".mean() / math.log(2)")),
    (
        "NL9",
        _GATHER.replace(
            "torch.log_softmax(logits[:, :-1], dim=-1)", "torch.log(torch.softmax(logits[:, :-1], dim=-1))"
        ),
    ),
    ("NL8", _LOSS.replace("return F", "return torch.exp(F").replace("reshape(-1))", "reshape(-1)))")),
    (None, _LOSS.replace("F.cross", "torch.tensor(F.cross").replace("reshape(-1))", "reshape(-1)).item())")),
    ("NL12", _LOSS.replace("reshape(-1))", "reshape(-1), ignore_index=0)")),
    ("NL3", _GATHER.replace(".squeeze(-1).mean()", "[:, -1].mean()")),
    (None, _GATHER.replace("-logs", "(1 - logs.exp())").replace("(1 - logs.exp()).gather", "(1 - logs.exp()).gather")),
    (None, _LOSS.replace("reshape(-1))", "reshape(-1), label_smoothing=0.1)")),
    ("NL9", _GATHER.replace("log_softmax", "softmax").replace(".mean()", ".log().mean()")),
    (None, _LOSS.replace("reshape(-1))", "reshape(-1)).item()")),
    *(
        ("NL9", _GATHER.replace("log_softmax", "softmax").replace(".mean()", f".add({small}).log().mean()"))
        for small in (1e-9, 1e-12)
    ),
    (
        "NL9",
        _GATHER.replace(
            "torch.log_softmax(logits[:, :-1], dim=-1)", "torch.log(torch.softmax(logits[:, :-1], dim=-1) + 1e-8)"
        ),
    ),
    *(
        ("NL9", _GATHER.replace("torch.log_softmax(logits[:, :-1], dim=-1)", one))
        for one in (
            "(logits[:, :-1].exp() / logits[:, :-1].exp().sum(-1, keepdim=True)).log()",
            "(logits[:, :-1] - logits[:, :-1].exp().sum(-1, keepdim=True).log())",
        )
    ),
    (
        "NL9",
        _GATHER.replace("torch.log_softmax(logits[:, :-1], dim=-1)", "logits[:, :-1].exp()")
        .replace("-logs.gather", "-(logs / logs.sum(-1, keepdim=True)).gather")
        .replace(".mean()", ".log().mean()"),
    ),
    ("NL7", _LOSS.replace("logits[:, :-1]", "logits").replace("ids[:, 1:]", "ids.roll(-1, dims=1)")),
    ("NL19", _LOSS.replace("cross_entropy", "nll_loss")),
    ("NL19", _LOSS.replace("cross_entropy", "nll_loss").replace("logits[:, :-1]", "logits.softmax(-1)[:, :-1]")),
    (None, _LOSS.replace("ids[:, 1:]", "ids[:, 1:].clamp_max(v - 2)")),
    (None, _LOSS.replace("return", "logits = logits.clamp(-50, 50)\n    return")),
    (None, _GATHER.replace(".mean()", ".mean(dim=0)")),
    (None, _GATHER.replace("dim=-1)", "dim=1)")),
    (None, _GATHER.replace(".squeeze(-1).mean()", ".squeeze(-1).median()")),
    (None, _LOSS.replace("ids[:, 1:]", "ids[:, 1:].int()")),
]

_MODEL = """class LanguageModel(nn.Module):
    def __init__(self, vocabulary, d_model, num_heads, num_layers, max_len):
        super().__init__()
        self.token = nn.Embedding(vocabulary, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.blocks = nn.Sequential(*[TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, idx):
        B, T = idx.shape
        if T > self.position.num_embeddings:
            raise ValueError("too long")
        tok_emb = self.token(idx)
        pos_emb = self.position(torch.arange(T))
        x = self.blocks(tok_emb + pos_emb)
        return self.head(self.norm(x))
"""
_OWN_BLOCK = """class Heads(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in self.qkv(x).split(d, dim=-1))
        s = q @ k.mT / math.sqrt(q.shape[-1]) + torch.full((t, t), -torch.inf).triu(1)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2, self.attn = nn.LayerNorm(d), nn.LayerNorm(d), Heads(d, h)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


"""
_OWN = _OWN_BLOCK + _MODEL.replace("TransformerBlock(d_model, num_heads, max_len)", "Block(d_model, num_heads)")
_INIT = _MODEL.partition("    def forward")[0]
RIGHT["LanguageModel"] = [
    _MODEL,
    _OWN,
    _INIT
    + """        self.max_len = max_len
        self.register_buffer("places", torch.arange(max_len))

    def forward(self, ids):
        assert ids.dim() == 2
        if ids.size(1) > self.max_len:
            raise ValueError(f"{ids.size(1)} > {self.max_len}")
        x = self.token(ids)
        x = x + self.position(self.places[: ids.size(1)]).unsqueeze(0)
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        x = self.norm(x)
        return self.head(x)
""",
    _MODEL.replace("torch.arange(T)", "self.places[T]").replace(
        "        tok_emb =",
        "        self.places = getattr(self, 'places', {})\n        self.places[T] = self.places.get(T, torch.arange(T))\n        tok_emb =",
    ),
    _INIT.replace("nn.Sequential(*[", "nn.ModuleList([")
    + """
    def forward(self, ids):
        t = ids.shape[-1]
        if self.position.weight.shape[0] < t:
            raise ValueError
        x = F.embedding(ids, self.token.weight) + self.position.weight[:t]
        for block in self.blocks:
            x = block.forward(x)
        return self.norm(x) @ self.head.weight.T
""",
    _INIT.replace("nn.Sequential(*[", "nn.ModuleList([").replace(
        "nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-6)"
    )
    + """
    def forward(self, ids):
        from functools import reduce
        if ids.shape[1] > len(self.position.weight):
            raise ValueError("T > max_len")
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        start = torch.add(self.token(ids), self.position(places))
        return self.head(self.norm(reduce(lambda x, block: block(x), self.blocks, start)))
""",
    _MODEL.replace("super().__init__()", "super().__init__()\n        self.drop = nn.Dropout(0.0)").replace(
        "self.blocks(tok_emb + pos_emb)", "self.drop(tok_emb + pos_emb)\n        x = self.blocks(x)"
    ),
]
WRONG["LanguageModel"] = [
    (None, _MODEL.replace(" + pos_emb", "")),
    ("PO2", _MODEL.replace("torch.arange(T)", "torch.arange(1, T + 1)")),
    ("LM3", _MODEL.replace("self.norm(x)", "x")),
    (
        "LM3",
        _MODEL.replace("tok_emb + pos_emb", "self.norm(tok_emb + pos_emb)").replace("head(self.norm(x))", "head(x)"),
    ),
    ("LM5", _MODEL.replace("self.blocks(tok_emb", "self.blocks[0](tok_emb")),
    ("LM5", _MODEL.replace("self.blocks(tok_emb + pos_emb)", "tok_emb + pos_emb")),
    (
        "LM6",
        _MODEL.replace("nn.Sequential(*[", "([").replace(
            "x = self.blocks(tok_emb + pos_emb)", "x = tok_emb + pos_emb\n        for b in self.blocks: x = b(x)"
        ),
    ),
    ("LM7", _MODEL.replace("bias=False)", "bias=False)\n        self.head.weight = self.token.weight")),
    ("PJ2", _MODEL.replace(", bias=False", "")),
    ("CM7", _MODEL.replace('raise ValueError("too long")', "pass")),
    ("LM10", _MODEL.replace("self.head(self.norm(x))", "F.softmax(self.head(self.norm(x)), dim=-1)")),
    ("LM11", _MODEL.replace("self.token(idx)", "self.token(idx) * math.sqrt(self.norm.normalized_shape[0])")),
    (None, _MODEL.replace("num_heads, num_layers, max_len", "num_layers, num_heads, max_len")),
    ("LM13", _MODEL.replace("torch.arange(T)", "torch.arange(B)[:, None]")),
    (None, _MODEL.replace("self.norm(x))", "self.norm(x)[:, -1, :])")),
    (
        "LM15",
        _MODEL.replace(
            "*[TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)]",
            "*[TransformerBlock(d_model, num_heads, max_len)] * num_layers",
        ),
    ),
    ("LM13", _MODEL.replace("torch.arange(T)", "idx % self.position.num_embeddings")),
    (None, _MODEL.replace("tok_emb + pos_emb", "tok_emb * pos_emb")),
    (
        "LM5",
        _MODEL.replace(
            "self.blocks(tok_emb + pos_emb)", "tok_emb + pos_emb\n        for b in self.blocks: x = x + b(x)"
        ),
    ),
    (None, _MODEL.replace("max_len) for", "max_len, 0.1) for")),
    (
        None,
        _MODEL.replace("self.position(torch.arange(T))", "self.kept[:T]").replace(
            "        tok_emb =",
            "        if not hasattr(self, 'kept'):\n            self.kept = self.position.weight[torch.arange(len(self.position.weight))]\n        tok_emb =",
        ),
    ),
    (
        None,
        _MODEL.replace("self.position(torch.arange(T))", "self.kept[T]").replace(
            "        tok_emb =",
            "        self.kept = getattr(self, 'kept', {})\n        if T not in self.kept:\n"
            "            self.kept[T] = self.position(torch.arange(T))\n        tok_emb =",
        ),
    ),
    (
        None,
        _MODEL.replace("torch.arange(T)", "self.places").replace(
            "        tok_emb =", "        self.places = getattr(self, 'places', torch.arange(T))\n        tok_emb ="
        ),
    ),
    (None, _MODEL.replace("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1.0)")),
    (None, _MODEL.replace("bias=False)", "bias=False)\n        for block in self.blocks: block.ln1.eps = 1.0")),
    (None, _MODEL.replace("self.token", "self.tok")),
    (None, _MODEL.replace("self.norm =", "self.ln_f =").replace("self.norm(", "self.ln_f(")),
    (None, _MODEL.replace("nn.LayerNorm", "nn.RMSNorm")),
    (None, _MODEL.replace("tok_emb + pos_emb)", "F.dropout(tok_emb + pos_emb, 0.1, self.training))")),
    (None, _MODEL.replace("nn.Embedding(max_len, d_model)", "nn.Embedding(max_len + 1, d_model)")),
    (None, _MODEL.replace("T > self", "T >= self")),
    (None, _OWN.replace("s = q @", "s = 1.1 * q @")),
    (None, _OWN.replace(".triu(1)", ".triu(2)")),
    (None, _OWN.replace("nn.GELU()", "nn.GELU('tanh')").replace("x = x + self.attn", "x = 1.01 * x + self.attn")),
    (None, _MODEL.replace("range(num_layers)", "range(num_layers + 1)")),
]

_STEP = """def train_step(model, optimizer, ids, clip=1.0):
    optimizer.zero_grad()
    loss = next_token_loss(model(ids), ids)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()
"""
_TAKEN = _LOSS + _STEP
_MANUAL = """def train_step(model, optimizer, ids, clip=1.0):
    for p in model.parameters():
        p.grad = None
    loss = F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:])
    loss.backward()
    with torch.no_grad():
        norm = sum((p.grad ** 2).sum() for p in model.parameters()) ** 0.5
        if norm > clip:
            for p in model.parameters():
                p.grad.mul_(clip / norm)
    optimizer.step()
    return float(loss.detach())
"""
_ROLLED = """def next_token_loss(logits, ids):
    return F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, dims=1).flatten())
"""
_STEP_BY_CLOSURE = """def train_step(model, optimizer, ids, clip=1.0):
    def closure():
        model.zero_grad(set_to_none=True)
        loss = next_token_loss(model(ids), ids)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip, norm_type=2.0)
        return loss.detach()

    return float(optimizer.step(closure))
"""
RIGHT["train_step"] = [
    _TAKEN,
    # a right step beside a wrong loss
    _LOSS.replace("logits[:, :-1]", "logits").replace("ids[:, 1:]", "ids") + _STEP,
    _LOSS.replace("reshape(-1))", "reshape(-1), reduction='sum')") + _STEP,
    _ROLLED + _STEP_BY_CLOSURE,
    _MANUAL,
    _TAKEN.replace(
        "    return loss.item",
        "    model.last_loss = loss.detach()\n    train_step.norms = [p.grad.norm() for p in model.parameters()]\n    return loss.item",
    ),
    _TAKEN.replace(
        "    return loss.item()",
        "    def again(depth):\n        return loss.item() if depth else again(depth + 1)\n    return again(0)",
    ),
    _GATHER
    + """def train_step(model, optimizer, ids, clip=1.0):
    value = None
    def closure():
        nonlocal value
        optimizer.zero_grad(set_to_none=False)
        loss = next_token_loss(model(ids), ids)
        loss.backward()
        value = loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=clip)
        return loss
    optimizer.step(closure)
    return value
""",
    _LOSS
    + """def train_step(model, optimizer, ids, clip=1.0):
    model.zero_grad()
    loss = next_token_loss(model(ids), ids)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
        p.grad = g
    nn.utils.clip_grad_norm_(parameters, clip, foreach=False)
    optimizer.step()
    optimizer.zero_grad()
    return np.float32(loss.item())
""".replace("np.float32(loss.item())", "loss.detach().cpu().numpy()"),
    _LOSS
    + """def train_step(model, optimizer, ids, clip=1.0):
    with torch.enable_grad():
        loss = next_token_loss(model(ids), ids)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    for g in grads:
        g *= torch.clamp(clip / (total + 1e-6), max=1.0)
    optimizer.step()
    return loss.tolist()
""",
]
WRONG["train_step"] = [
    ("TR1", _TAKEN.replace("    optimizer.zero_grad()\n", "")),
    ("TR1", _TAKEN.replace("    optimizer.zero_grad()\n", "").replace("step()\n", "step()\n    model.zero_grad()\n")),
    (
        None,
        _TAKEN.replace("    optimizer.zero_grad()\n", "").replace(
            "backward()\n", "backward()\n    model.zero_grad()\n"
        ),
    ),
    (None, _TAKEN.replace("    nn.utils.clip_grad_norm_(model.parameters(), clip)\n", "")),
    (
        None,
        _TAKEN.replace("    nn.utils.clip_grad_norm_(model.parameters(), clip)\n", "").replace(
            "step()\n", "step()\n    nn.utils.clip_grad_norm_(model.parameters(), clip)\n"
        ),
    ),
    (
        "TR5",
        _TAKEN.replace(
            "    nn.utils.clip_grad_norm_(model.parameters(), clip)",
            "    for p in model.parameters():\n        nn.utils.clip_grad_norm_(p, clip)",
        ),
    ),
    ("TR5", _TAKEN.replace("clip_grad_norm_", "clip_grad_value_")),
    (
        "TR5",
        _TAKEN.replace(
            "    nn.utils.clip_grad_norm_(model.parameters(), clip)",
            "    for p in model.parameters():\n        p.grad.clamp_(-clip, clip)",
        ),
    ),
    ("PO3", _TAKEN.replace("parameters(), clip)", "parameters(), 1.0)")),
    ("TR7", _MANUAL.replace("if norm > clip:", "if True:")),
    (None, _TAKEN.replace("    optimizer.step()\n", "")),
    (
        None,
        _TAKEN.replace(
            "    optimizer.step()\n",
            "    with torch.no_grad():\n        for p in model.parameters():\n"
            "            p -= optimizer.param_groups[0]['lr'] * p.grad\n",
        ),
    ),
    (
        None,
        _TAKEN.replace("    optimizer.step()\n", "").replace(
            "    loss.backward()\n", "    optimizer.step()\n    loss.backward()\n"
        ),
    ),
    ("TR10", _TAKEN.replace("return loss.item()", "return next_token_loss(model(ids), ids).item()")),
    (None, _TAKEN.replace("loss.item()", "loss")),
    ("CM42", _TAKEN.replace("    optimizer.zero_grad()\n", "    model.train()\n    optimizer.zero_grad()\n")),
    (None, _TAKEN.replace("    optimizer.step()\n", "    optimizer.step()\n    optimizer.step()\n")),
    (None, _TAKEN.replace("    loss = next", "    with torch.no_grad():\n        loss = next")),
    (
        "TR15",
        _STEP.replace(
            "next_token_loss(model(ids), ids)", "F.cross_entropy(model(ids)[:, :-1].mT, ids[:, 1:], reduction='sum')"
        ),
    ),
    ("TR5", _ROLLED + _STEP.replace("clip_grad_norm_", "clip_grad_value_")),
    (
        None,
        _TAKEN.replace("    optimizer.zero_grad()\n", "").replace(
            "backward()\n", "backward()\n    optimizer.zero_grad()\n"
        ),
    ),
    *(
        (None, _TAKEN.replace("    return loss.item", f"    {kept}\n    return loss.item"))
        for kept in (
            "model.last_loss = loss",
            "optimizer.loss = loss",
            "train_step.losses = getattr(train_step, 'losses', []) + [loss]",
        )
    ),
    (
        None,
        _TAKEN.replace("model(ids), ids)\n    loss.b", "train_step.logits, ids)\n    loss.b").replace(
            "    loss = next", "    train_step.logits = model(ids)\n    loss = next"
        ),
    ),
    (None, _TAKEN.replace("    loss.backward()\n", "")),
    ("TR15", _TAKEN.replace("loss.backward()", "(loss / len(ids)).backward()")),
    (None, _TAKEN.replace("return loss.item()", "return None")),
    (None, _TAKEN.replace("return loss.item()", "return model(ids)")),
    (None, _TAKEN.replace("return loss.item()", "return loss.exp().item()")),
    (None, _TAKEN.replace("    optimizer.step()", "    optimizer.param_groups[0]['lr'] = 1e-3\n    optimizer.step()")),
    (None, _TAKEN.replace("    optimizer.step()\n", "    optimizer.step()\n    model.eval()\n")),
    (
        None,
        _TAKEN.replace(
            "    optimizer.zero_grad()",
            "    optimizer = torch.optim.AdamW(model.parameters())\n    optimizer.zero_grad()",
        ),
    ),
    (
        None,
        _TAKEN.replace(
            "    optimizer.step()", "    try:\n        optimizer.step(clip)\n    except TypeError:\n        pass"
        ),
    ),
    (
        "TR15",
        _TAKEN.replace("next_token_loss(model(ids), ids)", "F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())"),
    ),
    (None, _TAKEN.replace("loss.backward()", "loss.backward(create_graph=True)")),
    (None, _TAKEN.replace("    return loss.item", "    model.perplexity = loss.exp()\n    return loss.item")),
    (None, _TAKEN.replace("    optimizer.step()\n", "    optimizer.step()\n    torch.set_grad_enabled(False)\n")),
    (None, _TAKEN.replace("loss.backward()", "loss.backward(retain_graph=True)\n    loss.backward()")),
    (None, _TAKEN.replace("model(ids), ids)\n    loss.b", "model(ids[:1]), ids[:1])\n    loss.b")),
]

WRONG["LanguageModel"] += [
    (
        "LM3",
        """class LanguageModel(nn.Module):
    def __init__(self, vocabulary, d_model, num_heads, num_layers, max_len):
        super().__init__()
        self.max_len = max_len
        self.token = nn.Embedding(vocabulary, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, ids):
        B, T = ids.shape
        if T > self.max_len:
            raise ValueError("too long")
        x = self.token(ids) + self.position(torch.arange(T, device=ids.device))
        for block in self.blocks:
            x = self.norm(block(x))
        return self.head(x)
""",
    )  # the norm runs after every block
]

WRONG["LanguageModel"] += [
    (
        "LM13",
        """class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, d_model: int, num_heads: int, num_layers: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.token = nn.Embedding(vocabulary, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        t = ids.shape[1]
        if t > self.max_len:
            raise ValueError("too long")
        x = self.token(ids) + self.position.weight[-t:]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
""",
    ),
    (
        "LM5",
        """class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, d_model: int, num_heads: int, num_layers: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.token = nn.Embedding(vocabulary, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] > self.max_len:
            raise ValueError("too long")
        p = self.position(torch.arange(ids.shape[1], device=ids.device))
        x = self.token(ids)
        for block in self.blocks:
            x = block(x + p)
        return self.head(self.norm(x))
""",
    ),
]

WRONG["generate"] += [
    (
        "CM52",
        """def generate(
    model: nn.Module, ids: torch.Tensor, max_new_tokens: int, max_len: int, temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    training = model.training
    model.eval()
    with torch.no_grad():
        context = ids[:, -max_len:]
        new_ids = []
        for _ in range(max_new_tokens):
            logits = model(context)[:, -1]
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
            new_ids.append(new)
            context = torch.cat([context, new], dim=1)
    model.train(training)
    return torch.cat([ids] + new_ids, dim=1)
""",
    )
]

WRONG["LanguageModel"] += [
    (
        "LM13",
        """class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, d_model: int, num_heads: int, num_layers: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.token, self.position = nn.Embedding(vocabulary, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)])
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] > self.max_len:
            raise ValueError("too long")
        x = self.token(ids) + self.position(torch.arange(ids.shape[0], device=ids.device) % self.max_len)[:, None]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
""",
    )
]

WRONG["generate"] += [
    (
        "LM24",
        """def generate(
    model: nn.Module, ids: torch.Tensor, max_new_tokens: int, max_len: int, temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    mode = model.training
    model.eval()
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -max_len:])[0, -1]
            new = logits.argmax().view(1) if temperature == 0 else torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
            ids = torch.cat([ids, new.expand(ids.shape[0], 1)], dim=1)
    model.train(mode)
    return ids
""",
    )
]

WRONG["train_step"] += [
    (
        "TR15",
        _STEP.replace(
            "def train_step(model, optimizer, ids, clip=1.0):",
            "def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, ids: torch.Tensor, clip: float = 1.0) -> float:\n    inputs, targets = ids[:, :-1], ids[:, 1:]",
        ).replace(
            "    loss = next_token_loss(model(ids), ids)",
            "    logits = model(inputs)\n    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())",
        ),
    )
]

# Right on ordinary inputs alone
WRONG["next_token_loss"] += [
    (
        None,
        """def next_token_loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    scores = logits[:, :-1] - logits.max()  # no exponential can overflow now
    log_sum = scores.exp().sum(dim=-1).log()
    chosen = scores.gather(-1, ids[:, 1:, None])[..., 0]
    return (log_sum - chosen).mean()
""",
    )
]
