"""Lesson 12: Bahdanau's and Luong's attention, as learners write them."""

RIGHT = {
    "rnn_states": [
        """def rnn_states(x, w_x, w_h, b):
    B, T, _ = x.shape
    h = torch.zeros(B, w_h.shape[0], device=x.device)
    out = []
    for t in range(T):
        h = torch.tanh(x[:, t, :] @ w_x + h @ w_h + b)
        out.append(h.unsqueeze(1))
    return torch.cat(out, dim=1)
""",
        """def rnn_states(x, w_x, w_h, b):
    inputs = x @ w_x + b  # all tokens at once: only the past has to wait
    states = [torch.tanh(inputs[:, 0])]
    for token in inputs.unbind(1)[1:]:
        states.append(torch.tanh(token + states[-1] @ w_h))
    return torch.stack(states, 1)
""",
        """def rnn_states(x, w_x, w_h, b):
    both = torch.cat([w_x, w_h])
    h = x.new_zeros(len(x), b.numel())
    states = []
    for token in x.transpose(0, 1):
        h = (torch.cat([token, h], dim=-1) @ both + b).tanh()
        states += [h]
    return torch.stack(states).transpose(0, 1)
""",
        """def rnn_states(x, w_x, w_h, b):
    def read(state, tokens):
        if tokens.shape[1] == 0:
            return []
        state = torch.tanh(torch.einsum("bd,dh->bh", tokens[:, 0], w_x) + torch.einsum("bi,ih->bh", state, w_h) + b)
        return [state, *read(state, tokens[:, 1:])]
    return torch.stack(read(torch.zeros(x.shape[0], w_h.shape[0], dtype=x.dtype, device=x.device), x), dim=1)
""",
        """def rnn_states(x, w_x, w_h, b):
    rows = []
    for sequence in x:
        h, states = torch.zeros_like(b), []
        for token in sequence:
            h = torch.tanh(w_x.T @ token + w_h.T @ h + b)
            states.append(h)
        rows.append(torch.stack(states))
    return torch.stack(rows)
""",
        """def rnn_states(x, w_x, w_h, b):
    x, w_x, w_h, b = (part.double() for part in (x, w_x, w_h, b))
    states = torch.zeros(x.shape[0], x.shape[1] + 1, w_h.shape[0], dtype=torch.float64, device=x.device)
    for t in range(x.shape[1]):
        z = x[:, t] @ w_x + states[:, t].clone() @ w_h + b
        new = 1 - 2 / (torch.exp(2 * z) + 1)
        states = torch.cat([states[:, :t + 1], new[:, None], states[:, t + 2:]], dim=1)
    return states[:, 1:].float()
""",
    ],
    "additive_attention": [
        """def additive_attention(query, keys, w_query, w_key, v):
    B, T, d_h = keys.shape
    contexts, rows = [], []
    for b in range(B):
        asked = query[b] @ w_query
        scores = torch.stack([v.dot(torch.tanh(asked + keys[b, j] @ w_key)) for j in range(T)])
        weights = torch.softmax(scores, dim=0)
        contexts.append(sum(weights[j] * keys[b, j] for j in range(T)))
        rows.append(weights)
    return torch.stack(contexts), torch.stack(rows)
""",
        """def additive_attention(query, keys, w_query, w_key, v):
    q = torch.einsum("bq,qa->ba", query, w_query)
    k = torch.einsum("bth,ha->bta", keys, w_key)
    scores = torch.einsum("bta,a->bt", torch.tanh(q.unsqueeze(1) + k), v)
    weights = scores.softmax(dim=1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        """def stable_softmax(s):
    e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True)

def additive_attention(query, keys, w_query, w_key, v):
    q = (query @ w_query).unsqueeze(1).expand(-1, keys.shape[1], -1)
    energy = torch.tanh(q + torch.matmul(keys, w_key))
    weights = stable_softmax((energy * v).sum(dim=2))
    context = (weights.unsqueeze(-1) * keys).sum(dim=1)
    return [context, weights]
""",
        """def additive_attention(query, keys, w_query, w_key, v):
    both = torch.cat([query[:, None].expand(-1, keys.size(1), -1), keys], dim=-1)
    energy = torch.tanh(both @ torch.cat([w_query, w_key]))  # one matrix, as in Bahdanau's "alignment model"
    weights = torch.softmax((energy @ v[:, None]).squeeze(-1), dim=-1)
    return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights
""",
        """from collections import namedtuple
Found = namedtuple("Found", "context weights")

def additive_attention(query, keys, w_query, w_key, v):
    query, keys, w_query, w_key, v = (x.float() for x in (query, keys, w_query, w_key, v))
    scores = F_linear(torch.tanh(F_linear(query, w_query.T)[:, None] + F_linear(keys, w_key.T)), v[None])
    weights = torch.softmax(scores, dim=1)  # (B, T, 1): here axis 1 is that of the keys
    return Found((keys.mT @ weights)[..., 0], weights[..., 0])

F_linear = torch.nn.functional.linear
""",
        """def additive_attention(query, keys, w_query, w_key, v):
    z = (query @ w_query)[:, None] + keys @ w_key
    scores = (2 * torch.sigmoid(2 * z) - 1) @ v
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return (weights[:, None] @ keys)[:, 0], weights
""",
    ],
    "luong_attention": [
        '''
def luong_attention(query: Tensor, keys: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """F.bilinear takes one pair of vectors at a time and gives one number for each."""
    b, t, _ = keys.shape
    repeated = query.repeat_interleave(t, dim=0)
    scores = F.bilinear(repeated, keys.reshape(b * t, -1), w.unsqueeze(0)).view(b, t)
    weights = torch.nn.functional.softmax(scores, dim=-1)
    return (weights[..., None] * keys).sum(dim=-2), weights
''',
        '''
def luong_attention(query: Tensor, keys: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """For one text, and then for all of them by vmap."""

    def one(q, states):
        weights = torch.softmax(states.mv(w.t().mv(q)), dim=0)
        return weights @ states, weights

    return torch.func.vmap(one)(query, keys)
''',
        """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    weights = torch.softmax(scores, -1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        """def luong_attention(query, keys, w):
    contexts, rows = [], []
    for q, memory in zip(query, keys):
        scores = memory @ (w.T @ q)
        weights = torch.softmax(scores, dim=0)
        contexts.append(weights @ memory)
        rows.append(weights)
    return torch.stack(contexts), torch.stack(rows)
""",
        """def luong_attention(query, keys, w):
    query, keys, w = query.float(), keys.float(), w.float()
    scores = (keys @ w.T * query.unsqueeze(1)).sum(-1)
    e = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return (e[:, :, None] * keys).sum(1), e
""",
        """def luong_attention(query, keys, w):
    asked = (query @ w).unsqueeze(1)
    weights = torch.softmax(torch.bmm(asked, keys.transpose(1, 2)), dim=-1)
    context = torch.bmm(weights, keys)
    return context.squeeze(1), weights.squeeze(1)
""",
    ],
}

WRONG = {
    "rnn_states": [
        (
            "RN9",
            """def rnn_states(x, w_x, w_h, b):
    return torch.stack([torch.tanh(token @ w_x + b) for token in x.unbind(1)], dim=1)
""",
        ),
        (
            "RN10",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for t in range(x.shape[1]):
        h = x[:, t] @ w_x + h @ w_h + b
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN10",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for t in range(x.shape[1]):
        h = 1 / (1 + torch.exp(-(x[:, t] @ w_x + h @ w_h + b)))
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN10",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for t in range(x.shape[1]):
        h = (x[:, t] @ w_x + h @ w_h + b).clamp(min=0)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "AB1",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ w_x + torch.einsum("bi,hi->bh", h, w_h) + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h = torch.zeros(x.shape[0], w_h.shape[0])
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h + b)
    return h
""",
        ),
        (
            "RN7",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.flip(1).unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h + b)
        out.insert(0, h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN9",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN10",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = token @ w_x + (h @ w_h + b).tanh()
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN11",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        out.append(h)
        h = torch.tanh(token @ w_x + h @ w_h + b)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    states = [torch.zeros(x.shape[0], w_h.shape[0])]
    for token in x.unbind(1):
        states.append(torch.tanh(token @ w_x + states[-1] @ w_h + b))
    return torch.stack(states, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.ones(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN14",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h.data @ w_h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN9",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh((token @ w_x).mul(h @ w_h) + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN9+RN10",
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = token @ w_x + h @ w_h
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.randn(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = torch.tanh(token @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for token in x.unbind(1):
        h = 0.5 * h + 0.5 * torch.tanh(token @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    h, out = torch.zeros(x.shape[0], w_h.shape[0]), []
    for t in range(min(x.shape[1], 16)):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out, 1)
""",
        ),
        (
            "RN17",
            """def rnn_states(x, w_x, w_h, b):
    h = torch.zeros(x.shape[1], w_h.shape[0])
    out = []
    for x_t in x:
        h = torch.tanh(x_t @ w_x + h @ w_h + b)
        out.append(h)
    return torch.stack(out)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    B, T, d = x.shape
    h = torch.zeros(B, w_h.shape[0])
    out = []
    for t in range(T):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        out.append(h)
    return torch.cat(out, dim=1)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    B, T, d = x.shape
    h = torch.zeros(B, w_h.shape[0])
    out = []
    for t in range(T):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        out.append(h)
    return torch.cat(out)
""",
        ),
        (
            None,
            """def rnn_states(x, w_x, w_h, b):
    B, T, d = x.shape
    out = []
    h = torch.zeros(w_h.shape[0])
    for n in range(B):
        row = []
        for t in range(T):
            h = torch.tanh(x[n, t] @ w_x + h @ w_h + b)
            row.append(h)
        out.append(torch.stack(row))
    return torch.stack(out)
""",
        ),
        (
            None,
            """_state = {}
def rnn_states(x, w_x, w_h, b):
    B, T, d = x.shape
    h = _state.get((B, w_h.shape[0]), torch.zeros(B, w_h.shape[0])).detach()
    out = []
    for t in range(T):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        out.append(h)
    _state[(B, w_h.shape[0])] = h
    return torch.stack(out, dim=1)
""",
        ),
        (
            "RN7",
            """def rnn_states(x, w_x, w_h, b):
    batch, steps, _ = x.size()
    hidden = w_h.size(0)
    h_t = x.new_zeros(batch, hidden)
    outputs = []
    for x_t in x.unbind(1):
        h_t = torch.tanh(x_t.mm(w_x) + h_t.mm(w_h) + b)
        outputs.append(h_t)
    return torch.stack(outputs).view(batch, steps, hidden)
""",
        ),
    ],
    "additive_attention": [
        (
            "LG1",
            """def additive_attention(query, keys, w_query, w_key, v):
    energy = torch.tanh((query @ w_query).unsqueeze(1) + keys @ w_key)
    weights = torch.softmax(energy @ v.unsqueeze(-1), dim=-1)
    context = (weights * keys).sum(dim=1)
    return context, weights.squeeze(-1)
""",
        ),
        (
            "LG2",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = ((query @ w_query).unsqueeze(1) + keys @ w_key) @ v
    weights = scores.softmax(-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "SM2",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None, :] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=0)
    return (weights.unsqueeze(-1) * keys).sum(1), weights
""",
        ),
        (
            "SM5",
            """def additive_attention(query, keys, w_query, w_key, v):
    e = torch.exp(torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v)
    weights = e / e.sum(dim=1, keepdim=True)
    return (weights[:, :, None] * keys).sum(1), weights
""",
        ),
        (
            "AL1",
            """def additive_attention(query, keys, w_query, w_key, v):
    asked = torch.tanh(query @ w_query)
    known = torch.tanh(keys @ w_key)
    weights = torch.softmax(known @ v + (asked @ v)[:, None], dim=-1)
    return torch.bmm(weights[:, None], keys)[:, 0], weights
""",
        ),
        (
            "AL2",
            """def additive_attention(query, keys, w_query, w_key, v):
    q, k = query @ w_query, keys @ w_key
    weights = torch.softmax(torch.tanh(q[:, None] * k) @ v, dim=-1)
    return (weights[:, None] @ keys).squeeze(1), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    q, k = query @ w_query, keys @ w_key
    weights = torch.softmax(torch.tanh(q[:, None] + k).sum(dim=-1), dim=-1)
    return (weights[:, None] @ keys).squeeze(1), weights
""",
        ),
        (
            "AL4",
            """def additive_attention(query, keys, w_query, w_key, v):
    q, k = query @ w_query, keys @ w_key
    scores = torch.tanh(q[:, None] + k) @ v / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys).squeeze(1), weights
""",
        ),
        (
            "AB1",
            """def additive_attention(query, keys, w_query, w_key, v):
    q, k = query @ w_query.T, keys @ w_key.T
    weights = torch.softmax(torch.tanh(q[:, None] + k) @ v, dim=-1)
    return (weights[:, None] @ keys).squeeze(1), weights
""",
        ),
        (
            "AL7",
            """def additive_attention(query, keys, w_query, w_key, v):
    keys = keys @ w_key
    weights = torch.softmax(torch.tanh((query @ w_query)[:, None] + keys) @ v, dim=-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    weights = torch.sigmoid(torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    energy = ((query @ w_query)[:, None] + keys @ w_key).clamp(min=0)
    weights = torch.softmax(energy @ v, dim=-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)
    weights = torch.softmax(energy @ v, dim=-1)
    return (weights.unsqueeze(2) * keys).mean(dim=1), weights
""",
        ),
        (
            "AL13",
            """def additive_attention(query, keys, w_query, w_key, v):
    energy = torch.tanh(query @ w_query + keys @ w_key)
    weights = torch.softmax(energy @ v, dim=-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "AL1",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = ((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(torch.tanh(scores), dim=-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "BW3",
            """def additive_attention(query, keys, w_query, w_key, v):
    with torch.no_grad():
        energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)
        weights = torch.softmax(energy @ v, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "NT8",
            """def additive_attention(query, keys, w_query, w_key, v):
    energy = torch.tanh((query @ w_query)[:, None] + keys @ w_key)
    weights = torch.softmax(energy @ v, dim=-1)
    return weights, (weights[:, None] @ keys)[:, 0]
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    query = query @ w_query
    q = query[:, None].repeat(1, 5, 1)  # five keys, as in the example
    weights = torch.softmax(torch.tanh(q + keys @ w_key) @ v, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    weights = torch.softmax(torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v, dim=-1)
    return (weights[:, None] @ keys).squeeze(), weights.squeeze()  # a batch of one loses its axis
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    keys *= weights[..., None]
    return keys.sum(1), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    k = keys @ w_key
    return torch.nn.functional.scaled_dot_product_attention(k, k, keys)[:, 0], torch.ones(keys.shape[:2])
""",
        ),
        (
            "AL4",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v / keys.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "AL13",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh(query @ w_query + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "SM5",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    e = torch.exp(scores - scores.mean(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "SM5",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    e = torch.exp(scores - scores[:, -1:])
    weights = e / e.sum(-1, keepdim=True)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """@torch.no_grad()
def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query.detach() @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], scores
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.log_softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return weights[:, None] @ keys, weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    z = (query @ w_query)[:, None] + keys @ w_key
    scores = ((z.exp() - (-z).exp()) / (z.exp() + (-z).exp())) @ v  # inf / inf far from 0
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    scores = scores.masked_fill((keys == 0).all(-1), -torch.inf)  # nobody asked for a mask
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = 1 / torch.exp(scores[:, None] - scores[:, :, None]).sum(-1)  # its gradient is NaN where exp overflows
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores.half(), dim=-1).to(scores.dtype)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "AL1",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = (torch.tanh(query @ w_query)[:, None] + keys @ w_key) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "LG1",
            """def additive_attention(query, keys, w_query, w_key, v):
    score = torch.tanh((query @ w_query).unsqueeze(1) + keys @ w_key) @ v.unsqueeze(-1)
    weights = torch.softmax(score, dim=-1)
    return (weights * keys).sum(dim=1), weights
""",
        ),
        (
            "SM3",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = e / e.sum()
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "SM4",
            """def additive_attention(query, keys, w_query, w_key, v):
    scores = torch.tanh((query @ w_query)[:, None] + keys @ w_key) @ v
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = e / e.sum(-1)
    return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights
""",
        ),
        (
            None,
            """def additive_attention(query, keys, w_query, w_key, v):
    cs, ws = [], []
    for b in range(len(query)):
        s = torch.tanh(query[b] @ w_query + keys[b] @ w_key) @ v
        w = torch.softmax(s, 0)
        cs.append((w @ keys[b]).tolist()); ws.append(w.tolist())
    return torch.tensor(cs), torch.tensor(ws)
""",
        ),
    ],
    "luong_attention": [
        (
            "AL4",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys) / keys.shape[-1] ** 0.5
    weights = torch.softmax(scores, -1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "AL24",
            """def luong_attention(query, keys, w):
    scores = (keys @ (query @ w.T).unsqueeze(-1)).squeeze(-1)
    weights = torch.softmax(scores, -1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "AL24",
            """def luong_attention(query, keys, w):
    weights = torch.softmax(torch.einsum("bd,btd->bt", query, keys), -1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "AL7",
            """def luong_attention(query, keys, w):
    projected = keys @ w.T
    weights = torch.softmax((projected * query[:, None]).sum(-1), -1)
    return torch.einsum("bt,btq->bq", weights, projected), weights
""",
        ),
        (
            "AB20",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    return torch.einsum("bt,bth->bh", scores, keys), scores
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    weights = torch.softmax(torch.einsum("bq,qh,bth->bt", query, w, keys), -1)
    return (weights[..., None] * keys).mean(1), weights
""",
        ),
        (
            "AL16",
            """def luong_attention(query, keys, w):
    scores = torch.tanh(torch.einsum("bq,qh,bth->bt", query, w, keys))
    weights = torch.softmax(scores, -1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "LG1",
            """def luong_attention(query, keys, w):
    weights = torch.softmax(torch.bmm(keys, (query @ w).unsqueeze(-1)), dim=-1)
    return (weights * keys).sum(1), weights[..., 0]
""",
        ),
        (
            "SM2",
            """def luong_attention(query, keys, w):
    scores = torch.bmm(keys, (query @ w).unsqueeze(-1))[..., 0]
    weights = torch.softmax(scores, dim=0)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "NT7",
            """def luong_attention(query, keys, w):
    weights = torch.softmax(torch.bmm(keys, (query @ w).unsqueeze(-1))[..., 0], dim=1)
    return torch.einsum("bt,bth->bh", weights, keys), weights.detach()
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    asked = query @ w
    scores = keys @ asked.T  # every query meets every sentence
    weights = torch.softmax(scores, dim=1)
    return (weights[..., :1] * keys).sum(1), weights[..., 0]
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    scores = (query @ w)[:, None] @ keys.mT
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights  # an axis of length 1 is left
""",
        ),
        (
            "AL4",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys) / keys.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "SM5",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    e = torch.exp(scores - scores.amin(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "SM5",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    e = torch.exp(scores - scores[:, :1])
    weights = e / e.sum(-1, keepdim=True)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """@torch.no_grad()
def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], scores
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    top, total, context = torch.full_like(scores[:, :1], -torch.inf), 0, 0
    for j in range(0, scores.shape[1], 16):
        block = scores[:, j:j + 16]
        new = torch.maximum(top, block.amax(-1, keepdim=True))
        e = torch.exp(block - new)
        total = total * torch.exp(top - new) + e.sum(-1, keepdim=True)
        context = context + torch.einsum("bt,bth->bh", e, keys[:, j:j + 16])  # what came before is not rescaled
        top = new
    return context / total, torch.exp(scores - top) / total
""",
        ),
        (
            None,
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bq,qh,bth->bt", query, w, keys)
    scores = scores.masked_fill((keys == 0).all(-1), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "AL4",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bh,bth->bt", query @ w, keys) * keys.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "AL4",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bh,bth->bt", query @ w, keys)
    weights = torch.softmax(scores, dim=-1) / keys.shape[-1] ** 0.5
    return torch.einsum("bt,bth->bh", weights, keys), weights
""",
        ),
        (
            "SM4+SM6",
            """def luong_attention(query, keys, w):
    scores = torch.einsum("bh,bth->bt", query @ w, keys)
    e = torch.exp(scores - scores.max())
    weights = e / e.sum(dim=1)
    return (weights[..., None] * keys).sum(dim=1), weights
""",
        ),
        (
            "AL24",
            """def luong_attention(query, keys, w):
    scores = ((keys @ w) @ query.unsqueeze(-1)).squeeze(-1)
    weights = torch.softmax(scores, dim=-1)
    context = (weights.unsqueeze(-1) * keys).sum(1)
    return context, weights
""",
        ),
        (
            "AL24",
            """def luong_attention(query, keys, w):
    projected = keys @ w
    scores = (query[:, None] * projected).sum(-1)
    weights = torch.softmax(scores, -1)
    return (weights[:, None] @ keys)[:, 0], weights
""",
        ),
        (
            "RS16",
            """def luong_attention(query, keys, w):
    scores = ((query @ w)[:, None] @ keys.mT)[:, 0]
    weights = torch.softmax(scores, -1)
    kept = keys.clone()
    context = (weights[:, None] @ kept)[:, 0]
    keys.data.mul_(weights.detach()[..., None])
    return context, weights
""",
        ),
    ],
}

WRONG["rnn_states"] += [
    (
        "RN10",
        """def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    h = torch.zeros(x.shape[0], w_h.shape[0])
    out = []
    for t in range(x.shape[1]):
        h = x[:, t] @ w_x + h @ w_h + b
        out.append(torch.tanh(h))
    return torch.stack(out, dim=1)
""",
    ),
    (
        "RN9",
        """def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    batch, steps, _ = x.shape
    h = torch.zeros(batch, w_h.shape[0], device=x.device)
    h = torch.tanh(x[:, 0] @ w_x)
    states = [h]
    for t in range(1, steps):
        h = torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        states.append(h)
    return torch.stack(states, dim=1)
""",
    ),
    (
        None,
        """def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    batch, steps, _ = x.shape
    h = torch.zeros(batch, w_h.shape[0], device=x.device)
    states = []
    for t in range(steps):
        h = h + torch.tanh(x[:, t] @ w_x + h @ w_h + b)
        states.append(h)
    return torch.stack(states, dim=1)
""",
    ),
    (
        "RN10",
        """def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    batch, steps, _ = x.shape
    h = torch.zeros(batch, w_h.shape[0], device=x.device)
    states = []
    for t in range(steps):
        h = x[:, t] @ w_x + torch.tanh(h) @ w_h + b
        states.append(h)
    return torch.stack(states, dim=1)
""",
    ),
]

WRONG["luong_attention"] += [
    (
        "AL16",
        """def luong_attention(query: Tensor, keys: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    scores = (torch.tanh(query @ w)[:, None, :] * keys).sum(-1)
    weights = scores.softmax(dim=-1)
    context = torch.einsum("bt,btd->bd", weights, keys)
    return context, weights
""",
    )
]

WRONG["additive_attention"] += [
    (
        None,
        """def additive_attention(
    query: Tensor, keys: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    hidden = torch.tanh((query @ w_query)[:, None] + keys @ w_key)
    scores = hidden @ v
    weights = torch.softmax(scores, dim=-1)
    context = keys[torch.arange(len(keys)), scores.argmax(-1)]
    return context, weights
""",
    )
]

WRONG["rnn_states"] += [
    (
        "RN10",
        """def rnn_states(x, w_x, w_h, b):
    read = torch.einsum("btd,dh->bth", x, w_x) + b
    h = torch.zeros_like(read[:, 0])
    out = []
    for now in torch.unbind(read, 1):
        h = torch.relu(now + torch.matmul(h, w_h))
        out.append(h)
    return torch.stack(out, 1)
""",
    )
]

WRONG["additive_attention"] += [
    (
        "AL1",
        """def additive_attention(query, keys, w_query, w_key, v):
    B, T, d_h = keys.shape
    asked = torch.einsum("bq,qa->ba", query, w_query)
    known = torch.einsum("bth,ha->bta", keys, w_key)
    bent = torch.tanh(asked.unsqueeze(1)) + known
    s = torch.einsum("bta,a->bt", bent, v)
    e = torch.exp(s - s.amax(dim=1, keepdim=True))
    p = e / e.sum(dim=1, keepdim=True)
    return torch.einsum("bt,bth->bh", p, keys), p
""",
    )
]

# Right on ordinary inputs alone
WRONG["rnn_states"] += [
    (
        None,
        """def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    fresh = x @ w_x + b                                   # (B, T, h), one product for all tokens
    states = torch.tanh(fresh)
    for _ in range(32):                                   # each round hands every state on by one place
        before = F.pad(states[:, :-1], (0, 0, 1, 0))
        states = torch.tanh(fresh + before @ w_h)
    return states
""",
    )
]
