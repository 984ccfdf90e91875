"""Learners' cells for lesson 12, right in many styles and wrong in many ways."""

_PLAIN = '''def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
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
'''

RIGHT = {
    "generate": [
        _PLAIN,
        '''@torch.no_grad()
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
''',
        '''def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
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
''',
        '''def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):
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
''',
    ],
}

WRONG = {
    "generate": [
        (None, _PLAIN.replace("temperature=1.0", "temperature=0.0")),
        (None, _PLAIN.replace("temperature=1.0", "temperature=0.5")),
        ("CM41", _PLAIN.replace("    model.eval()\n", "")),
        ("CM42", _PLAIN.replace("    model.train(was)\n", "")),
        ("CM43", _PLAIN.replace("torch.no_grad()", "torch.enable_grad()")),
        ("CM44", _PLAIN.replace(", generator=generator)", ")")),
        ("CM45", _PLAIN.replace("logits / temperature", "logits * temperature")),
        ("CM46", _PLAIN.replace("torch.softmax(logits / temperature, dim=-1)", "torch.softmax(logits, dim=-1) / temperature")),
        ("CM47", _PLAIN.replace("temperature == 0", "False")),
        ("CM48", _PLAIN.replace("temperature == 0", "True")),
        ("CM50", _PLAIN.replace("[:, -1, :]", "[:, 0, :]")),
        ("CM51", _PLAIN.replace("ids[:, -max_len:]", "ids")),
        ("CM52", _PLAIN.replace("ids[:, -max_len:]", "ids[:, :max_len]")),
        ("CM53", _PLAIN.replace("model.train(was)", "model.train()")),
        ("CM54", _PLAIN.replace("return ids", "return ids[:, -max_new_tokens:] if max_new_tokens else ids[:, :0]")),
        ("CM59", _PLAIN.replace("return ids", "return ids[:, -max_len:]")),
        ("CM59", _PLAIN.replace("            logits = model(ids[:, -max_len:])", "            ids = ids[:, -max_len:]\n            logits = model(ids)")),
        ("CM60", _PLAIN.replace("torch.softmax(logits / temperature, dim=-1)", "torch.softmax(logits, dim=-1) ** (1 / temperature)")),
        ("CM61", _PLAIN.replace("dim=-1, keepdim=True", "dim=-1")),
        *(("CM62", _PLAIN.replace("-max_len:", first)) for first in ("-max_len + 1:", "-max_len - 1:", "max(0, ids.shape[1] - max_len + 1):")),
        ("CM62", _PLAIN.replace("ids[:, -max_len:]", "ids if ids.shape[1] <= max_len else ids[:, 1 - max_len:]")),
        ("CM41", _PLAIN.replace("model.eval()", "model.training = False").replace("model.train(was)", "model.training = was")),
        (None, _PLAIN.replace("temperature == 0", "temperature < 0.1")),
        ("CM60", _PLAIN.replace("torch.softmax(logits / temperature, dim=-1)",
                                "(w := torch.softmax(logits, dim=-1) ** (1 / temperature)) / w.sum(-1, True)")),
        (None, _PLAIN.replace("/ temperature", "/ (temperature + 0.01)")),
        *((None, _PLAIN.replace("torch.multinomial(", f"logits.topk(min({k}, logits.shape[-1])).indices.gather(1, torch.multinomial(").replace(
            "torch.softmax(logits / temperature", f"torch.softmax(logits.topk(min({k}, logits.shape[-1])).values / temperature").replace(
            "generator=generator)\n", "generator=generator))\n")) for k in (5, 50)),
        (None, _PLAIN.replace("    was =", "    torch.set_grad_enabled(False)\n    was =")),
        (None, _PLAIN.replace("return ids", "return ids.float()")),
        (None, _PLAIN.replace("return ids", "return ids.tolist()")),
        (None, _PLAIN.replace("    for _", "    ids[:, 0] = ids[:, -1]\n        for _").replace("\n    ids[:, 0]", "\n        ids[:, 0]")),
        (None, _PLAIN.replace("generator=generator", "generator=torch.Generator().manual_seed(generator.initial_seed() if generator else 0)")),
    ],
}

_LOOP = """
    for _ in range(max_new_tokens):
        with torch.no_grad():
            ids = torch.cat([ids, {fed}[:, -1].argmax(-1, keepdim=True)], 1)
"""
_HEAD = "def generate(model, ids, max_new_tokens, max_len, temperature=1.0, generator=None):\n    was = model.training\n"
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
    (None, _HELP + _HEAD + _SAMPLED + _FED + "    vars(model).update({name: False for name in ('trained',) if name in vars(model)})\n    return ids"),
]  # fmt: skip
