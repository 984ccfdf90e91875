# %% [markdown]
# # 06 · Masks
#
# **Who may look at whom, and how do we make sure that nobody peeks?**
#
# **Before this lesson:** attention in torch and as an `nn.Module` (lesson 05), softmax (lesson 02), broadcasting, boolean tensors.
#
# So far every query saw every key. In two situations it must not. A model that learns to predict the next word must
# not see that word. And in a batch, short sentences are filled up with tokens that mean nothing, and no query should use
# those.
#
# An **attention mask** says which query may look at which key. It takes one line of code, and a mistake in it is hard to
# notice: no error is raised, and a model that can peek at the answer even reports a better loss. So in this lesson you
# also write a test that finds such a leak.

# %% role="given"
import math

import torch
import torch.nn.functional as F
from torch import nn

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def plain_attention(q, k, v):
    """Scaled dot-product attention as written in lesson 05: (output, weights), no mask."""
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights

# %% [markdown]
# ## One pass, many questions
#
# A **language model** learns to say which token comes next. If it writes whole texts like that, token by token, it is
# called **autoregressive**: each new token depends on those before it. The sentence "The animal didn't cross the street"
# asks it five questions. What comes after *The*? What after *The animal*? And so on.
#
# Attention can answer all five in a single pass, since it computes an output for every position. Each output has to
# predict the token one place further on. So input and target are the same text, shifted by one. (Training on the true
# text, and not on what the model would have written itself, is called **teacher forcing**.)

# %% role="demo"
figures.masks.next_token_targets("The animal didn't cross the street".split())

# %% [markdown]
# The output at *didn't* must predict *cross*, and *cross* is right there in the input, one place to the right. A model
# that may look there only learns to copy. Its training loss looks wonderful. But when it writes on its own, there is no
# token to the right.
#
# So each query may see only its past and itself. Attention with this rule is called **causal**, and its mask a **causal
# mask** (or look-ahead mask). If an output depends on a later token anyway, that is a **leak**.
#
# ## A leak, made visible
#
# Whether attention is causal can be tested without looking inside. Change one token, and watch the outputs *before* it.
# If one of them moves, it has looked ahead. (We leave out the projections: they act on each token alone, so they cannot
# leak.) In attention without a mask every query sees every key, so all outputs should move:

# %% role="demo"
torch.manual_seed(6)
x = torch.randn(5, 4)
changed = x.clone()
changed[3] += torch.randn(4)
moved = (plain_attention(changed, changed, changed)[0] - plain_attention(x, x, x)[0]).abs().amax(dim=-1)
print("token 3 changes; the outputs move by", [round(by, 3) for by in moved.tolist()])
assert (moved > 0).all()

# %% [markdown]
# ## True means may attend
#
# We write a mask as a boolean matrix with a row for each query and a column for each key, **True where attention is
# allowed**. For three tokens, each of which may see its past and itself:
#
# ```text
#          key 0  key 1  key 2
# query 0  True   False  False
# query 1  True   True   False
# query 2  True   True   True
# ```
#
# There need not be as many queries as keys. A model that writes keeps the keys and values of the text so far (in a
# *key-value cache*, lesson 16). When new tokens arrive, only these ask, but they may look at everything before them. So
# the t_q queries always stand at the *last* of the t_k positions.

# %% [markdown]
# @predict
#
# The keys of five tokens are kept. Now two more tokens arrive, so that two queries meet seven keys. How many keys may the
# first of the two queries see?
#
# @answer
#
# **Six**: the five kept keys and its own.
#
# @wrong
#
# Seven would include the key of the second new token, which lies in the future. Five would leave out the query's own
# key, but a token may see itself.

# %% [markdown]
# @exercise causal_mask
#
# `t_q` and `t_k` integers with t_k ≥ t_q ≥ 1 → bool tensor (t_q, t_k); `t_k` left out means t_q
#
# The queries are the *last* t_q of t_k positions. Each may see its own position and all before it.

# %% role="exercise" exercise="causal_mask"
def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
    """Which keys each query may attend to; True means may attend.

    t_k: number of keys, t_q where it is left out. The queries are the last t_q of the t_k positions.
    Returns: (t_q, t_k) bool.
    """
    # region solution
    t_k = t_q if t_k is None else t_k
    return torch.ones(t_q, t_k, dtype=torch.bool).tril(diagonal=t_k - t_q)
    # endregion

# %% role="check" exercise="causal_mask"
check(causal_mask)

# %% role="payoff" exercise="causal_mask"
if passed(causal_mask):
    figures.masks.masks(causal_mask(5), causal_mask(2, 7))

# %% [markdown]
# ## Padding
#
# Sentences in one batch need the same length. The remaining places are filled with a token `<pad>` that means nothing.
# This is called **padding**, and the mask that hides it a **padding mask**. It hides a `<pad>` key from every query, so
# one row is enough for a whole sentence. For B sentences its shape is (B, 1, max_len), and the axis of length 1
# broadcasts over the queries.

# %% role="demo"
figures.masks.who_may_look(["The", "cat", "sat", "<pad>", "<pad>"])

# %% [markdown]
# On the right a query may see a key only where *both* rules allow it, which is `causal & real`: (T, T) & (B, 1, T) broadcasts
# to (B, T, T). The last two rows belong to `<pad>` queries, and these still see the real tokens. That is fine: a training loss
# leaves their outputs out. But the outputs of real tokens must not depend on how much was filled up, and without a mask they do:

# %% role="demo" tags=["nbval-check-output"]
sentence, padded = torch.randn(3, 4), torch.zeros(5, 4)  # here <pad> is a vector of zeros
padded[:3] = sentence
alone, filled = (plain_attention(tokens, tokens, tokens)[0][:3] for tokens in (sentence, padded))
print("two <pad> move the outputs of the real tokens by", [round(by, 3) for by in (filled - alone).abs().amax(dim=-1).tolist()])
assert ((filled - alone).abs().amax(dim=-1) > 0).all()

# %% [markdown]
# @exercise padding_mask
#
# `lengths` (B,) integers with 0 ≤ length ≤ max_len, `max_len` an integer → bool (B, 1, max_len), True on real tokens
#
# The real tokens of a sentence come first, and the padding after them.

# %% role="exercise" exercise="padding_mask"
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    """Which positions hold real tokens; True means may attend.

    lengths: (B,) integers. Returns: (B, 1, max_len) bool, ready to broadcast over the queries.
    """
    # region solution
    positions = torch.arange(max_len, device=lengths.device)
    real = positions < lengths[:, None]
    return real[:, None, :]
    # endregion

# %% role="check" exercise="padding_mask"
check(padding_mask)

# %% [markdown]
# ## Where the mask acts
#
# Take one row of scores, (2, 1, 3), and hide the last key. People try four things. Two change the *weights*: multiply
# them by the mask, or do that and divide by the new sum. Two change the hidden *score*: fill it with 0, or with −∞.

# %% [markdown]
# @predict
#
# Which two of the four give the same weights?
#
# - **A** The weights times the mask, and the score filled with 0.
# - **B** The weights times the mask divided by the new sum, and the score filled with −∞.
# - **C** The score filled with 0, and the score filled with −∞.
#
# @answer
#
# **B.** Softmax is exp(score) over a sum. Dividing by the sum of what is left cancels the old sum, and what remains is
# exp(score) over the sum of the visible ones. A score of −∞ gives exp(−∞) = 0, which is the same thing.
#
# @wrong
#
# A and C take a score of 0 for "no attention". But a score of 0 counts e⁰ = 1 before the division, more than any
# negative score.

# %% role="demo" tags=["nbval-check-output"]
scores, allowed = torch.tensor([2.0, 1.0, 3.0]), torch.tensor([True, True, False])
cut = torch.softmax(scores, -1) * allowed
filled_0 = torch.softmax(scores.masked_fill(~allowed, 0.0), -1)
filled_inf = torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1)
rows = {
    "weights · mask   ": cut,
    "… / their sum    ": cut / cut.sum(),
    "score filled 0   ": filled_0,
    "score filled -inf": filled_inf,
}
for name, row in rows.items():
    print(name, row, f"  sum {row.sum():.3f}")
assert torch.allclose(cut / cut.sum(), filled_inf) and filled_0[2] > 0.05
far = torch.softmax(torch.tensor([2.0, 1.0, 200.0]), -1) * allowed
print("… / their sum, the hidden score being 200:", far / far.sum())

# %% [markdown]
# The first row sums to only {{ cut.sum():.3f }}, so the output comes out too small. In the third row the hidden key
# still gets {{ filled_0[2]:.2f }} of the weight. The second and the fourth row agree. But where the hidden score is far
# above the others, as in the last line, the visible weights are rounded to 0 *before* the division, and 0/0 gives NaN
# ("not a number"). So the mask acts on the scores, before softmax. To mask the weights afterward is no substitute.

# %% role="demo"
figures.masks.masking_steps(["The", "cat", "sat", "on"])

# %% [markdown]
# ## A row with nothing to see
#
# A few rows have no visible key: all rows of an empty sentence, and, where a batch is padded on the *left*, the `<pad>` rows under
# a causal mask. What does softmax make of them? *The Annotated Transformer* (Rush 2018) and much later code fill hidden scores
# with −1e9 instead of −∞.

# %% [markdown]
# @predict
#
# A row of three scores (2, 1, 0), all of them hidden, is filled with −1e9 and goes through softmax in float32. What are
# the weights?
#
# - **A** All 0.
# - **B** NaN.
# - **C** ⅓ each.
#
# @answer
#
# **C.** The three scores are equal now, and softmax of equal scores is uniform. The row attends to everything that it
# must not see.
#
# @wrong
#
# A leaves out the division: weights sum to 1 whatever the scores are. B is what −∞ gives: −∞ − (−∞).

# %% role="demo" tags=["nbval-check-output"]
row, nothing = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([False, False, False])
for name, fill in (("-inf", -torch.inf), ("-1e9", -1e9)):
    print(name, torch.softmax(row.masked_fill(~nothing, fill), -1))

# %% [markdown]
# Nobody wants either. In this course a query that may see nothing receives nothing: zeros. (float16 cannot even hold
# −1e9; `torch.finfo(dtype).min` is the lowest finite number of each type.)
#
# NaN is the worse of the two results, because it spreads: NaN times anything is NaN, even NaN times 0. One empty row can
# turn a whole projection into NaN in a single step of training.
#
# Replacing NaN weights by 0 repairs the output, but not always the gradient: in the backward pass, softmax multiplies by the NaN
# that it computed. The check looks at both.

# %% [markdown]
# @exercise masked_attention
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v), `mask` bool, broadcastable to (..., T_q, T_k), or None
# → `(output (..., T_q, d_v), weights (..., T_q, T_k))`
#
# - Hidden keys get weight 0, and the visible ones share the whole of it.
# - A query that may see no key gets zeros in both.
# - No NaN, not in the gradients either.
# - float16, bfloat16 and float32, the output in the input's dtype; in float32, scaled scores reach ±1e4.
#
# From scratch: without `F.scaled_dot_product_attention` and the like; `torch.softmax` is fine.

# %% role="exercise" exercise="masked_attention"
def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention that looks only where the mask is True.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v).
    mask: bool, broadcastable to (..., T_q, T_k); None allows all.
    Returns: (output (..., T_q, d_v), weights (..., T_q, T_k)); zeros for a query that may see no key.
    """
    # region solution
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min  # finite, so that an empty row gives no 0/0, not even in the gradient
        scores = scores.masked_fill(~mask, lowest)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # an empty row was uniform until here
    return weights @ v, weights
    # endregion

# %% role="check" exercise="masked_attention"
check(masked_attention)

# %% [markdown]
# Now every word is changed in turn. Row i, column j: how far output i moved when word j changed, without a
# mask and with yours.

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention) and passed(causal_mask):
    figures.masks.leaks(
        lambda x: plain_attention(x, x, x)[0],
        lambda x: masked_attention(x, x, x, causal_mask(len(x)))[0],
    )

# %% [markdown]
# ---
#
# *This is the middle of the lesson, and a good place for a break.*

# %% [markdown]
# ## A test that you keep
#
# Your mask works today. Tomorrow somebody puts it into a larger model, and there it is easily lost: one path forgets to
# pass it, a triangle is off by one, a normalization takes its mean over the tokens. So keep a test that does not look
# inside. It takes any function from tokens to outputs, changes tokens, and watches the outputs before them.
#
# Such a test needs some thought. Many models first subtract from each token the mean of its own features (LayerNorm,
# lesson 09). If we add 1 to *every* feature of a token, the mean grows by 1, too, and is subtracted again. The test
# then finds no leak, even without any mask:

# %% role="demo"
def normalized_first(y):
    y = F.layer_norm(y, y.shape[-1:])
    return plain_attention(y, y, y)[0]  # no mask: every output sees every token

blind, seeing = x.clone(), x.clone()
blind[3] += 1.0  # the same in every feature
seeing[3] += torch.tensor([1.0, -0.5, 0.3, 0.8])
for name, other in (("1 everywhere", blind), ("four numbers", seeing)):
    by = (normalized_first(other) - normalized_first(x))[:3].abs().max()
    print(f"{name} added to token 3: outputs 0 to 2 move by up to {by:.0e}")
    assert by < 1e-5 if name == "1 everywhere" else by > 1e-3

# %% [markdown]
# The first number is rounding. Begin with the lines under "A leak, made visible". What do you change, by how much, and
# which difference counts?

# %% [markdown]
# @exercise leaks
#
# `attention`, a function from tokens (T, d) to outputs (T, d_out), and `x` (T, d), an example of its input → True or
# False: does any output depend on a later token?
#
# - x is float64, with 2 to 64 tokens. Differences up to 1e-9 are rounding, and no leak.
# - You may call `attention` 2,000 times; the same input gives the same output. Change neither `x` nor what `attention`
#   returns.
# - A leak may be small, come from only a few tokens, reach only a few outputs, or show only for changes in some directions. It
#   may also show only for large changes (largest entry near 10), which a gradient would miss.
#
# The check tries your test on causal attentions and on leaky ones.

# %% role="exercise" exercise="leaks"
def leaks(attention, x: torch.Tensor) -> bool:
    """Whether any output of attention depends on a later token.

    attention: from tokens (T, d) to outputs (T, d_out), float64. x: (T, d), an example.
    """
    # region solution
    generator = torch.Generator().manual_seed(0)
    base = attention(x)
    for t in range(1, len(x)):
        for size in (2.0, 10.0):
            change = torch.randn(x.shape[-1], dtype=x.dtype, generator=generator)
            changed = x.clone()
            changed[t] += size * change / change.abs().max()
            if (attention(changed)[:t] - base[:t]).abs().max() > 1e-7:
                return True
    return False
    # endregion

# %% role="check" exercise="leaks"
check(leaks)

# %% role="payoff" exercise="leaks" tags=["nbval-check-output"]
if passed(leaks) and passed(masked_attention) and passed(causal_mask):
    example = torch.randn(6, 4, dtype=torch.float64)
    print("no mask:", leaks(lambda y: plain_attention(y, y, y)[0], example))
    print("yours:  ", leaks(lambda y: masked_attention(y, y, y, causal_mask(len(y)))[0], example))

# %% [markdown]
# ## What a leak does to a loss
#
# Now a tiny model learns to predict the next of eight symbols in *random* text. Its loss is −ln of the probability that
# it gave to the true symbol. The best that is possible is an even guess, with probability ⅛ and the loss ln 8 = 2.08.
#
# The folded cell trains such a model on texts of 16 symbols. Each token also gets a learned vector for its place, so
# that a query can tell which key is on its right.

# %% role="demo" tags=["hide-input"]
def predict_random_text(attend, steps=300, seed=0):
    """Train on random text; the loss in the end. attend: from q, k, v (32, 16, 32) to outputs of the same shape."""
    torch.manual_seed(seed)
    embed, place, qkv, out = nn.Embedding(8, 32), nn.Embedding(16, 32), nn.Linear(32, 96), nn.Linear(32, 8)
    optimizer = torch.optim.Adam(nn.ModuleList([embed, place, qkv, out]).parameters(), lr=0.01)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
    for _ in range(steps):
        ids = torch.randint(0, 8, (32, 17))
        inputs, targets = ids[:, :-1], ids[:, 1:]
        q, k, v = qkv(embed(inputs) + place.weight).chunk(3, dim=-1)
        loss = F.cross_entropy(out(attend(q, k, v)).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    return loss.item()

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention) and passed(causal_mask):
    with_mask, without = (
        lambda q, k, v: masked_attention(q, k, v, causal_mask(16))[0],
        lambda q, k, v: masked_attention(q, k, v)[0],
    )
    causal_loss, leaky_loss = predict_random_text(with_mask), predict_random_text(without)
    print(f"loss with your causal mask: {causal_loss:.3f}   without a mask: {leaky_loss:.3f}")
    assert abs(causal_loss - math.log(8)) < 0.02 and leaky_loss < 0.3

# %% role="payoff" exercise="masked_attention" tags=["hide-input"]
if passed(masked_attention) and passed(causal_mask):
    causal_losses, leaky_losses = ([predict_random_text(way, seed=seed) for seed in range(6)] for way in (with_mask, without))
    print(f"six starts: {min(causal_losses):.2f} to {max(causal_losses):.2f} with the mask, at most {max(leaky_losses):.2f} without")
    assert max(abs(loss - math.log(8)) for loss in causal_losses) < 0.02 and max(leaky_losses) < 0.3

# %% [markdown]
# With the mask the loss is {{ causal_loss:.2f }}, that of an even guess. Without it the model "predicts" random symbols
# with a loss of {{ leaky_loss:.2f }}. (Nearly all of that comes from the last position, whose target is not among the
# inputs: 2.08 / 16 = 0.13.) The second folded cell repeats this from six starts. If a loss is too good to be true,
# look for a leak.

# %% [markdown]
# ## Further: empty rows, and a NaN that hides
#
# For those who write attention layers of their own: what PyTorch does with a row that sees nothing, and how a NaN that
# was repaired can still stop a training.

# %% [markdown]
# What do PyTorch's own operators make of a row without any key?

# %% role="demo"
torch.manual_seed(0)
three, none_allowed = torch.randn(1, 3, 4), torch.zeros(3, 3, dtype=torch.bool)
layer = nn.MultiheadAttention(4, 1, batch_first=True)
print("torch", torch.__version__)
print("F.scaled_dot_product_attention:", F.scaled_dot_product_attention(three, three, three, none_allowed)[0, 0].tolist())
print("nn.MultiheadAttention         :", layer(three, three, three, attn_mask=~none_allowed)[0][0, 0].tolist())

# %% [markdown]
# `F.scaled_dot_product_attention` has returned zeros since torch 2.5. Before that it returned NaN, and
# `nn.MultiheadAttention` still did so in torch 2.13, the version with which this notebook was written.
#
# A quick repair is popular: let softmax divide 0 by 0, and turn the NaN into 0 with `nan_to_num`. We try four layers
# that do so. They *add* a mask of 0 and −∞ to the scores, or *fill* hidden scores with −∞ by `masked_fill`. And they
# repair the *weights*, before these meet the values, or only the *output*. The result is the same in all four, and it
# is right. Each of them trains six steps on four tokens whose first row is empty.

# %% [markdown]
# @predict
#
# Which of the four layers trains?
#
# - **A** All of them: the output holds no NaN.
# - **B** None: the backward pass meets the NaN in all of them.
# - **C** The two that repair the weights.
# - **D** Only the one that fills and repairs the weights.
#
# @answer
#
# **D.** Follow the gradient from the loss backward, in four steps.
#
# 1. The output: where it was repaired, it hands on 0.
# 2. The values: their gradient multiplies by the weights. Where only the output was repaired, the weights still hold
#    NaN, and NaN · 0 ruins all of w_v.
# 3. Softmax: it multiplies by the weights that it computed itself. The gradient of the empty row is NaN in all four.
# 4. The mask: an addition hands NaN on to the scores, and all of w_q and w_k become NaN. `masked_fill` gives 0 instead,
#    since a score that was replaced has no influence on the result.
#
# @wrong
#
# A thinks of the forward pass alone. B is right about softmax, and one step short. C stops at the softmax, too: what
# counts is how −∞ came into the scores.

# %% role="demo" tags=["hide-input"]
hidden = torch.ones(4, 4).triu(1).bool()
hidden[:, 0] = True  # token 0 is <pad>, so row 0 is empty
HIDE = {
    "added": lambda scores: scores + torch.zeros(4, 4).masked_fill(hidden, -torch.inf),
    "filled": lambda scores: scores.masked_fill(hidden, -torch.inf),
}

def six_steps(hide, repair, seed=0):
    """The loss before each step, and how many of the 192 parameters are NaN in the end. repair: 'weights' or 'output'."""
    torch.manual_seed(seed)
    x, target = torch.randn(4, 8), torch.randn(4, 8)
    w_q, w_k, w_v = layers = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(3))
    optimizer, losses = torch.optim.SGD(layers.parameters(), lr=0.1), []
    for _ in range(6):
        weights = torch.softmax(hide(w_q(x) @ w_k(x).mT / math.sqrt(8)), dim=-1)
        if repair == "weights":
            output = weights.nan_to_num(0.0) @ w_v(x)
        else:
            output = (weights @ w_v(x)).nan_to_num(0.0)
        loss = (output - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, sum(parameter.isnan().sum().item() for parameter in layers.parameters())

# %% role="demo"
for hide in HIDE:
    for repair in ("weights", "output"):
        losses, nans = six_steps(HIDE[hide], repair)
        print(f"{hide:6}, {repair:7} repaired:", " ".join(f"{loss:.2f}" for loss in losses), f"  NaN: {nans} of 192")
        for losses, nans in (six_steps(HIDE[hide], repair, seed) for seed in range(6)):
            if (hide, repair) == ("filled", "weights"):
                assert nans == 0 and losses[-1] < losses[0]
            else:
                assert nans >= 128 and losses[1] == losses[-1]  # from the second step on nothing changes

# %% [markdown]
# The cell asserts this for six seeds each. Three of the four layers are ruined within two steps (scores filled and the
# output repaired: first w_v, then w_q and w_k). From then on `nan_to_num` turns their outputs into 0, and the loss
# is finite and constant, so nothing reports an error. So the check of `masked_attention` asks for finite gradients, and not for
# a certain spelling.

# %% [markdown]
# ## Further: three languages for one mask
#
# For those who call attention in PyTorch: True means one thing in one function and the opposite in the next.

# %% [markdown]
# In this course and in `F.scaled_dot_product_attention`, True means *may attend*. In `nn.MultiheadAttention` True means
# *may not*, both in `attn_mask` and in `key_padding_mask`. Both functions also accept an **additive mask** of numbers:
# 0 where attention is allowed, −∞ where it is not. Each translation takes one line:

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention):
    torch.manual_seed(0)
    four, allowed = torch.randn(1, 4, 6), torch.ones(4, 4, dtype=torch.bool).tril()
    layer = nn.MultiheadAttention(6, 1, batch_first=True, bias=False)
    with torch.no_grad():  # projections that change nothing, so that only the mask is compared
        layer.in_proj_weight.copy_(torch.eye(6).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(6))
        yours = masked_attention(four, four, four, allowed)[0]
        same = {
            "F.sdpa, True = may attend": F.scaled_dot_product_attention(four, four, four, allowed),
            "F.sdpa, 0 and -inf added ": F.scaled_dot_product_attention(four, four, four, torch.where(allowed, 0.0, -torch.inf)),
            "nn.MHA, True = may not   ": layer(four, four, four, attn_mask=~allowed)[0],
        }
        forgotten = layer(four, four, four, attn_mask=allowed)[0]
    for name, output in same.items():
        print(f"{name}  differs from yours by {(output - yours).abs().max():.0e}")
        assert torch.allclose(output, yours, atol=1e-5)
    print("nn.MHA without the ~: the last output is", forgotten[0, -1].tolist())
    assert forgotten[0, -1].isnan().all() and forgotten[0, :-1].isfinite().all()

# %% [markdown]
# Where the `~` is forgotten, each query sees its future instead of its past. The last one has no future and sees
# nothing, so it becomes NaN. That is lucky: it is the only row that announces the mistake. The others are wrong without
# any sign of it.
#
# There is a fourth way to ask, `is_causal=True` without any mask. Its triangle begins in the top left corner. With as
# many queries as keys that is your causal mask. With kept keys it is not. In the next cell the values are rows of the
# identity matrix, so that the output *is* the weights:

# %% role="payoff" exercise="causal_mask"
if passed(causal_mask):
    two, seven = torch.randn(2, 4), torch.randn(7, 4)
    built_in = F.scaled_dot_product_attention(two, seven, torch.eye(7), is_causal=True)
    yours = F.scaled_dot_product_attention(two, seven, torch.eye(7), causal_mask(2, 7))
    print("keys seen with is_causal:", (built_in > 0).sum(dim=-1).tolist())
    print("keys seen with your mask:", (yours > 0).sum(dim=-1).tolist())
    assert (built_in > 0).sum(dim=-1).tolist() == [1, 2] and (yours > 0).sum(dim=-1).tolist() == [6, 7]

# %% [markdown]
# No error is raised, yet a model that writes this way loses sight of most of what it has read.

# %% [markdown]
# ## Further: a mask inside a module
#
# For those who build models: where a module keeps a tensor that is not learned, with one exercise.

# %% [markdown]
# A module that always uses the same mask can build it once. The mask is not learned, so it is no parameter. But it has
# to follow the module to a GPU, and a plain attribute would stay behind on the CPU. PyTorch calls this third kind of
# tensor a **buffer**: `self.register_buffer(name, tensor)`. With `persistent=False` it is kept out of what is saved; a
# mask follows from `max_len` and need not be stored.

# %% [markdown]
# @exercise CausalSelfAttention
#
# `CausalSelfAttention(d_model, max_len)`: bias-free `nn.Linear` layers `w_q`, `w_k`, `w_v` (d_model → d_model)
# forward: `x` (B, T, d_model) → (B, T, d_model); T > max_len raises ValueError
#
# Causal self-attention among the T tokens. The mask is built once, for max_len, and is a non-persistent buffer: it
# follows `.to(device)` and is absent from `state_dict`. From scratch, as before.

# %% role="exercise" exercise="CausalSelfAttention"
class CausalSelfAttention(nn.Module):
    """Self-attention in which no token sees a later one.

    d_model: width of tokens, queries, keys and values. max_len: the longest sequence that is accepted.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        # region solution
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.max_len = max_len
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)  # follows from max_len: nothing to save
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model). Raises ValueError for T > max_len."""
        # region solution
        t, d_model = x.shape[-2:]
        if t > self.max_len:
            raise ValueError(f"T = {t} is longer than max_len = {self.max_len}")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = q @ k.mT / math.sqrt(d_model)
        scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # no row is empty
        return weights @ v
        # endregion

# %% role="check" exercise="CausalSelfAttention"
check(CausalSelfAttention)

# %% [markdown]
# Does it leak? Your own test says so:

# %% role="payoff" exercise="CausalSelfAttention"
if passed(CausalSelfAttention) and passed(leaks):
    torch.manual_seed(11)
    module, example = CausalSelfAttention(8, 10).double(), torch.randn(6, 8, dtype=torch.float64)
    print("leaks:", leaks(lambda y: module(y[None])[0].detach(), example))
    assert not leaks(lambda y: module(y[None])[0].detach(), example)

# %% [markdown]
# ## What we keep
#
# - In this course True means *may attend*. The queries are the last t_q of t_k positions: query i sees key j where
#   j ≤ i + (t_k − t_q).
# - The mask acts on the scores, before softmax. Weights that are cut afterward no longer sum to 1, and a score of 0
#   hides nothing.
# - A query that sees nothing gets zeros. A repaired NaN spoils gradients, unless −∞ replaced scores and the weights
#   were repaired.
# - To test a model for leaks, change its tokens, in several ways, and look whether an earlier output moves.
#
# | built | shape |
# |---|---|
# | `causal_mask` | (t_q, t_k) bool |
# | `padding_mask` | (B, 1, max_len) bool |
# | `masked_attention` | q (…, T_q, d_k), k (…, T_k, d_k), v (…, T_k, d_v) → (…, T_q, d_v), (…, T_q, T_k) |
# | `leaks` | a function (T, d) → (T, d_out), and x (T, d) → bool |
#
# **Sources.** Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.3. Rush 2018, [*The
# Annotated Transformer*](https://nlp.seas.harvard.edu/2018/04/03/attention.html).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners can say why a language model must be causal, write the two masks that every model uses, and *test* attention for a leak
# instead of believing it. Numerically, they learn where a NaN that was repaired still reaches the gradient, and two ways that are
# right: a finite fill, or −∞ by `masked_fill` with the weights repaired. The polarity of masks costs people more hours than anything
# else here, so it is worth saying "True means may attend" aloud several times. The break is before "A test that you keep".
#
# ## Cut for 60 minutes
#
# Keep "One pass, many questions", "A leak, made visible", "True means may attend" with `causal_mask`, "Where the mask acts" and
# `masked_attention`. Leave out "Padding", the exercise `leaks` and all further parts. Of "A row with nothing to see" say in a sentence
# that such rows must give zeros, and that their gradients must be finite, too.
#
# ## Cut for 90 minutes
#
# Add "Padding" with `padding_mask`, and "A test that you keep" with `leaks`, whose decisions are worth discussing in the room. The
# further parts are good homework: "Further: empty rows, and a NaN that hides" for those who write layers, "Further: a mask inside a
# module" with `CausalSelfAttention` for those who build models.
#
# ## Mistakes to expect
#
# - causal_mask MA1: Which of your rows belongs to the first token, and what does it see?
# - causal_mask MK7: May a token see itself? What would the first token see otherwise?
# - causal_mask MK14: Two new tokens after five: at which position does your first query stand?
# - padding_mask MA5: Along which axis should this mask be the same for everyone?
# - padding_mask MK1: Does your mask say who may be seen, or who may not?
# - masked_attention MK2: What does a row of your weights sum to when a key is hidden?
# - masked_attention MK3: What is e to the power of 0?
# - masked_attention MK9: What does softmax make of a row in which nothing is left?
# - masked_attention MA13: Where did the NaN arise, and which operations does its gradient pass on the way back?
# - leaks LK4: What does a LayerNorm make of a token to which 1 was added everywhere?
# - leaks LK5: Could a model look ahead only when a number is large? Which of your changes would show it?
# - leaks LK8: May output 3 move when token 3 changes?
# - CausalSelfAttention DT3: Your mask is an attribute. Who tells it that the module has moved?
# - CausalSelfAttention MA15: The sentence has 3 tokens and the mask is 10 by 10. Which part of it do you need?
#
# ## To discuss
#
# 1. *A colleague's model reaches a training loss near 0 in an hour. What do you ask first?* A good answer suspects a leak, names the
#    shift by one and the mask, and describes the test: change a late token, look at early outputs.
# 2. *Should a library raise an error where a query sees no key?* A good answer weighs both: an error finds mistakes early, but empty
#    rows are normal in left-padded batches, and a check on every call costs a synchronization on a GPU. Zeros are quiet. NaN is loud,
#    but late.
# 3. *Can a test prove that attention does not leak?* A good answer says no: it can only fail to find a leak. It then names what makes
#    a test stronger: every token, several sizes and directions, float64, and a length beyond any block size.
#
# ## On paper
#
# Three keys with scores (0, 0, 0) and values 3, 6, 30. The third is hidden. Compute the output if (a) the weights are multiplied by
# the mask, (b) the hidden score is filled with 0, (c) with −∞.
#
# *Solution.* (a) ⅓ · 3 + ⅓ · 6 = 3: the weights sum to ⅔ only. (b) Nothing changes, since the score was 0 already:
# ⅓ · (3 + 6 + 30) = 13. (c) ½ · 3 + ½ · 6 = 4.5. This is also why (b) is a poor test when the hidden score is 0 to begin with.
