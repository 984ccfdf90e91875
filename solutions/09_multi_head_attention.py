# %% [markdown]
# # 9 · Multi-head attention
#
# **A row of weights returns one mean. How does a token get several answers at once?**
#
# **Before this lesson:** lesson 03 (attention for a batch), lesson 05 (`nn.Module`), lesson 06 (boolean masks: True may attend).
#
# "The animal didn't cross the street because **it** was too tired." To make sense of *it*, a reader needs two things at once: which
# noun it stands for (*animal*), and what is said about it (*tired*). A single row of attention weights can put half its weight on
# each, but what comes back is one mean of the two, and a mean does not say which part came from where. So the Transformer cuts its
# vectors into slices, lets each slice attend with weights of its own, and lays the answers side by side. There is no new
# mathematics in this. Almost everything in it is about axes, and mistakes with axes are silent.

# %% role="given"
import math
import timeit

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.machine.draw(lit=("scores", "weights", "blend"))

# %% [markdown]
# In the picture of the whole machine, the lit part is what there will be several copies of. Tokens, projections and output stay
# what they were.
#
# ## One row, one mean
#
# Three tokens carry two numbers each: (10, 0), (5, 5) and (0, 10). The token in the middle wants the *first* number of its left
# neighbor and the *second* number of its right neighbor, which is (10, 10).

# %% [markdown]
# @predict
#
# One row of three weights blends the tokens (10, 0), (5, 5) and (0, 10). What do the weights (½, 0, ½) give? And could anybody
# tell that result from the weights (0, 1, 0)?
#
# @answer
#
# (½, 0, ½) gives (5, 5), and so does (0, 1, 0): a mean of both neighbors cannot be told from a look at the token itself. No other
# row does better. The two numbers of every token sum to 10, so each weighted mean sums to 10, and (10, 10) is out of reach.
#
# @wrong
#
# If you said (10, 10): that takes each number from another token. A single row of weights multiplies *all* numbers of a token by the
# same weight.

# %% role="demo"
values = torch.tensor([[10.0, 0.0], [5.0, 5.0], [0.0, 10.0]])
one = torch.tensor([0.5, 0.0, 0.5])  # one row of weights for both numbers
two = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a row of its own for each number
assert torch.equal(one @ values, values[1])
figures.lesson_09.two_heads(one.numpy(), two.numpy(), values.numpy())

# %% [markdown]
# Two rows, each with its own slice of the values, reach (10, 10). Such a slice, together with its row of weights, is called a **head**.
#
# ## Heads as a loop
#
# The definition fits in a loop (Vaswani et al. 2017, section 3.2.2). With num_heads heads, each gets d_head = d_model / num_heads
# numbers of every query, key and value: head 0 takes the first d_head numbers, head 1 the next, and so on. Each head attends as in
# lesson 03, with scores divided by √d_head because its dot products sum over d_head products only. `cat` then lays the results
# side by side.

# %% role="demo"
torch.manual_seed(9)
q, k, v = torch.randn(3, 1, 5, 6).unbind()  # one item, five tokens, d_model = 6
num_heads, d_head = 2, 3
outputs = []
for h in range(num_heads):
    part = slice(h * d_head, (h + 1) * d_head)
    scores = q[..., part] @ k[..., part].mT / math.sqrt(d_head)
    outputs.append(torch.softmax(scores, dim=-1) @ v[..., part])
looped = torch.cat(outputs, dim=-1)
print(tuple(outputs[0].shape), "for each head,", tuple(looped.shape), "side by side")

# %% [markdown]
# That is all of multi-head attention, and you could stop here. But a loop over heads leaves a GPU idle most of the time, so
# published code does without it: it makes the heads one more axis of the batch. Then one matrix product serves all heads, as in
# lesson 03 it served all items. The picture shows the shapes on that way; the two steps in color are new.

# %% role="demo"
figures.lesson_09.pipeline()

# %% [markdown]
# ## Cutting vectors into heads
#
# The first new step turns (B, T, d_model) into (B, num_heads, T, d_head). It only regroups numbers; it computes nothing.

# %% [markdown]
# @predict
#
# Token 0 holds the numbers 0 to 3, token 1 holds 4 to 7, and there are two heads. Which of these is head 1?
#
# - **A** [[4, 5], [6, 7]]
# - **B** [[2, 3], [6, 7]]
# - **C** [[1, 3], [5, 7]]
#
# @answer
#
# **B**: the second slice of both tokens. A holds all of token 1 and nothing of token 0. C deals the numbers out like cards.
#
# @wrong
#
# If you chose A: `view(1, 2, 2, 2)` gives exactly that. It cuts the *sequence* in two instead of the vectors.

# %% role="demo" tags=["nbval-check-output"]
x = torch.arange(8).view(1, 2, 4)
print("A", x.view(1, 2, 2, 2)[0, 1].tolist())
print("B", x[0, :, 2:].tolist())
print("C", x[0, :, 1::2].tolist())

# %% [markdown]
# All three have the shape (T, d_head). No error message will ever tell them apart.

# %% [markdown]
# @exercise split_heads
#
# `x` (B, T, d_model), `num_heads` → (B, num_heads, T, d_head) with d_head = d_model / num_heads
#
# ```text
# for each item b, head h, token t:
#     result[b, h, t] = x[b, t, h · d_head  to  (h + 1) · d_head]
# ```
#
# A d_model that num_heads does not divide raises ValueError. Gradients flow to x. When stuck, `hint(split_heads)` in a new cell asks a
# question first.

# %% role="exercise" exercise="split_heads"
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give each head its own contiguous slice of every token.

    x: (B, T, d_model). Returns: (B, num_heads, T, d_head).
    Raises: ValueError where num_heads does not divide d_model.
    """
    # region solution
    b, t, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
    return x.reshape(b, t, num_heads, d_model // num_heads).transpose(1, 2)
    # endregion

# %% role="check" exercise="split_heads"
check(split_heads)

# %% [markdown]
# To see where numbers go, let them say where they come from: number j of token i is 10·i + j. Beside your split stands a view
# straight into the final shape, which a published implementation used for two years (hyunwoongko/transformer#4).

# %% role="payoff" exercise="split_heads"
if passed(split_heads):
    figures.lesson_09.where_numbers_go(split_heads)

# %% [markdown]
# Each row of a head must come from one token. In the view, "row 1 of head 0" is the second half of token 0, and head 1 begins in the
# middle of token 1.
#
# ## Side by side again
#
# After attention, the slices of each token return to one vector. The numbers of one token have to be neighbors for that, so the
# tokens move back to axis 1 *before* the last two axes become one. `transpose` moves no number in memory; it changes the steps
# in which memory is read. `view` needs numbers in memory order and therefore refuses the result. `reshape` copies where it must.

# %% [markdown]
# @exercise merge_heads
#
# `x` (B, num_heads, T, d_head) → (B, T, num_heads · d_head)
#
# ```text
# for each item b, token t, head h:
#     result[b, t, h · d_head  to  (h + 1) · d_head] = x[b, h, t]
# ```
#
# The inverse of `split_heads`. Gradients flow to x.

# %% role="exercise" exercise="merge_heads"
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads of each token side by side: the inverse of split_heads.

    x: (B, num_heads, T, d_head). Returns: (B, T, num_heads · d_head).
    """
    # region solution
    b, num_heads, t, d_head = x.shape
    return x.transpose(1, 2).reshape(b, t, num_heads * d_head)
    # endregion

# %% role="check" exercise="merge_heads"
check(merge_heads)

# %% [markdown]
# @predict
#
# Three tokens with four numbers each are split into two heads. Then they come back in two ways: by `merge_heads`, and by
# `reshape(1, 3, 4)` alone. What is token 0 each time?
#
# @answer
#
# `merge_heads` returns token 0 as it was: [0, 1, 2, 3]. `reshape` alone reads memory in the order head, token, number, so its
# "token 0" is [0, 1, 10, 11]: the first halves of tokens 0 *and* 1.
#
# @wrong
#
# If you expected an error: the number of entries is right, and that is all `reshape` asks for.

# %% role="payoff" exercise="merge_heads"
if passed(merge_heads) and passed(split_heads):
    x = (10 * torch.arange(3)[:, None] + torch.arange(4))[None]
    print("split, then merge:        ", merge_heads(split_heads(x, 2))[0, 0].tolist())
    print("split, then reshape alone:", split_heads(x, 2).reshape(1, 3, 4)[0, 0].tolist())

# %% [markdown]
# Now your two functions replace the loop from above, on the same q, k and v. Both ways have to agree.

# %% role="payoff" exercise="merge_heads"
if passed(merge_heads) and passed(split_heads):
    q_heads, k_heads, v_heads = (split_heads(part, num_heads) for part in (q, k, v))
    weights = torch.softmax(q_heads @ k_heads.mT / math.sqrt(d_head), dim=-1)
    batched = merge_heads(weights @ v_heads)
    assert torch.allclose(batched, looped, atol=1e-6)
    print(f"{tuple(weights.shape)} weights; loop and batch differ by at most {(batched - looped).abs().max():.0e}")

# %% [markdown]
# ## The whole module
#
# A module adds four layers (Vaswani et al. 2017, section 3.2.2). Three project queries, keys and values; one mixes what the heads found:
#
# $$\operatorname{head}_h = \operatorname{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d_{head}}}\right) V_h \qquad
# \operatorname{output} = [\operatorname{head}_0, \ldots, \operatorname{head}_{H-1}]\, W_O$$
#
# One layer with d_model outputs computes the queries of all heads at once: its first d_head outputs belong to head 0, the next to head
# 1. The last layer, `w_o`, is where the findings of different heads meet. Before it, no head knows of another.

# %% role="demo" tags=["nbval-check-output"]
counts = {}
for heads in (1, 4, 16):
    module = nn.MultiheadAttention(64, heads)
    counts[heads] = sum(p.numel() for p in module.parameters())
    print(f"{heads:2} heads: {counts[heads]:,} parameters")
assert counts[1] == counts[4] == counts[16] == 4 * (64 * 64 + 64)

# %% [markdown]
# The number of heads changes nothing: there are always four layers of 64·64 + 64 = 4,160 parameters, {{ counts[1]:, }} in all. Heads
# divide what is there; each projects to d_head = 64 / num_heads numbers, so its share shrinks as the heads grow in number.
#
# If you have not finished `split_heads` or `merge_heads`, the next exercise can use these two. They do the same by cutting and joining:

# %% role="given"
def cut(x, num_heads):
    """As split_heads, without its ValueError."""
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def join(x):
    """As merge_heads."""
    return torch.cat(x.unbind(dim=1), dim=-1)

# %% [markdown]
# @exercise MultiHeadAttention
#
# `MultiHeadAttention(d_model, num_heads)`: four `nn.Linear(d_model, d_model)` with bias, `w_q`, `w_k`, `w_v`, `w_o`. forward: `query`
# (B, T_q, d_model), `key` and `value` (B, T_k, d_model), `mask` → (`output` (B, T_q, d_model), `weights` (B, num_heads, T_q, T_k))
#
# ```text
# q, k, v  = w_q(query), w_k(key), w_v(value), each split into heads
# each head: weights = softmax(q kᵀ / √d_head), hidden keys left out;  out = weights · v
# output   = w_o(heads side by side)
# ```
#
# `mask` is boolean, **True where attention is allowed**, and broadcasts to (B, num_heads, T_q, T_k); None allows everything. A
# padding mask (B, 1, T_k) of lesson 06 needs one more axis, `mask[:, None]`, before it is passed. Every query may see some key. A
# d_model that num_heads does not divide raises ValueError. From scratch: without `F.scaled_dot_product_attention` and its like.

# %% role="exercise" exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Attention in num_heads slices of d_model, between two projections.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        # endregion

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """query: (B, T_q, d_model). key, value: (B, T_k, d_model).

        mask: bool, True where attention is allowed.

        Returns: output (B, T_q, d_model) and weights (B, num_heads, T_q, T_k).
        """
        # region solution
        q = split_heads(self.w_q(query), self.num_heads)
        k = split_heads(self.w_k(key), self.num_heads)
        v = split_heads(self.w_v(value), self.num_heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # one head's width, not d_model
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        output = self.w_o(merge_heads(weights @ v))
        return output, weights
        # endregion

# %% role="check" exercise="MultiHeadAttention"
check(MultiHeadAttention)

# %% [markdown]
# ## Two questions at once
#
# Here is a small task that asks every token for two things, as *it* did in the opening. A sequence has eight letters. At each position
# the model has to name the letter before it *and* the letter at the mirrored position (position 1 mirrors 6). Position 0 has no letter
# before it, so the loss and the results leave it out.

# %% role="demo"
LETTERS, T = 8, 8


def questions(count, t=T):
    """ids (count, t), and for each position the letter before it and the mirrored one, (count, t, 2)."""
    ids = torch.randint(LETTERS, (count, t))
    return ids, torch.stack([ids.roll(1, dims=1), ids.flip(1)], dim=-1)


ids, wanted = questions(1)
print("letters    ", ids[0].tolist())
print("one before ", ["-", *wanted[0, 1:, 0].tolist()])
print("mirrored   ", wanted[0, :, 1].tolist())

# %% [markdown]
# The model is your attention between an embedding and one linear layer that reads both answers off the output.

# %% role="demo"
class Reader(nn.Module):
    """Letters and positions in, one attention layer, two answers out at every position."""

    def __init__(self, attention):
        super().__init__()
        self.letter, self.position = nn.Embedding(LETTERS, 32), nn.Embedding(T, 32)
        self.attention, self.answer = attention, nn.Linear(32, 2 * LETTERS)

    def forward(self, ids):
        x = self.letter(ids) + self.position(torch.arange(ids.shape[1]))
        output, weights = self.attention(x, x, x)
        return self.answer(output).unflatten(-1, (2, LETTERS)), weights

# %% [markdown]
# Training takes 300 steps of 64 sequences each. The start is fixed, so that you and the course see the same run.

# %% role="demo"
def train(make_attention, steps=300):
    """A Reader trained from a fixed start, about a second of one processor core."""
    torch.manual_seed(0)
    model = Reader(make_attention())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        ids, wanted = questions(64)
        logits, _ = model(ids)
        loss = F.cross_entropy(logits[:, 1:].flatten(0, 2), wanted[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

# %% [markdown]
# Fresh sequences then tell how many answers are right, and where the heads looked on average.

# %% role="demo"
@torch.no_grad()
def shares_right(model, t=T):
    """The share of right answers (letter before, mirrored letter) on fresh sequences, and the mean weights."""
    ids, wanted = questions(500, t)
    logits, weights = model(ids)
    right = (logits.argmax(dim=-1) == wanted)[:, 1:].float().mean(dim=(0, 1))
    return right.tolist(), weights.mean(dim=0)

# %% [markdown]
# @predict
#
# With **one** head, what will the model do?
#
# - **A** answer both questions half of the time
# - **B** answer one question nearly always, and guess at the other
# - **C** answer both nearly always
#
# @answer
#
# **B**, and the interesting part is how. The only head looks at *both* places, with weights that are almost equal but not quite. At
# position 5 they are {{ single[0, 5, 4]:.2f }} and {{ single[0, 5, 2]:.2f }}. The letter with the larger share stands out a little in the
# mean, and a linear layer can read off what stands out. The *second* largest share it cannot tell from noise, so the other
# question is answered right only {{ min(one_head):.0% }} of the time, against {{ 1 / LETTERS:.0% }} by guessing.
#
# @wrong
#
# If you chose A: that would need a mean which says nothing about order. Unequal weights do carry order; one row of weights
# is not blind, it is narrow. If you chose C: 32 numbers have room for two letters, but both letters arrive through the same
# projection, added up.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    one_head, single = shares_right(train(lambda: MultiHeadAttention(32, 1)))
    two_heads, pair = shares_right(train(lambda: MultiHeadAttention(32, 2)))
    for name, right in (("one head ", one_head), ("two heads", two_heads)):
        print(f"{name}: letter before {right[0]:.0%}, mirrored letter {right[1]:.0%}")
    figures.lesson_09.different_heads(single.numpy(), pair.numpy())

# %% [markdown]
# With two heads each question has a row of its own: one head finds the diagonal, the other the anti-diagonal, and both answers
# are right {{ min(two_heads):.0% }} of the time. Nobody assigned them. Which head does what depends on the random start, and some starts
# never divide the work: change the seed in `train` to 2 and one question stays unanswered with two heads, too.
#
# ## The same numbers as PyTorch
#
# `nn.MultiheadAttention` is the module that you will meet in most code. It computes what yours computes, under other names. Its
# `in_proj_weight` (3 · d_model, d_model) stacks the three projections in the order q, k, v; `in_proj_bias` does likewise; `out_proj` is
# your `w_o`. Copy its weights, and every number has to agree.
#
# Two of its habits need care. It **averages** the weights over the heads unless you pass `average_attn_weights=False`. And its
# boolean mask is **the reverse of this course's: True hides**. Passing the same mask to both is a silent mistake.

# %% [markdown]
# @exercise copy_torch_weights
#
# `mine` a module with the attributes of `MultiHeadAttention` (it may hold more besides), `torch_mha` an
# `nn.MultiheadAttention(d_model, num_heads, batch_first=True)` → nothing; `mine` is changed in place
#
# ```text
# in_proj_weight, in_proj_bias   three blocks of d_model rows, for w_q, w_k, w_v
# out_proj.weight, out_proj.bias  w_o
# ```
#
# The parameters of `mine` stay the same objects, and no memory is shared: training one module must not change the other.

# %% role="exercise" exercise="copy_torch_weights"
def copy_torch_weights(mine: nn.Module, torch_mha: nn.MultiheadAttention) -> None:
    """Write the weights of torch's module into mine, in place, so that both give the same output."""
    # region solution
    layers = (mine.w_q, mine.w_k, mine.w_v, mine.w_o)
    weights = (*torch_mha.in_proj_weight.chunk(3), torch_mha.out_proj.weight)
    biases = (*torch_mha.in_proj_bias.chunk(3), torch_mha.out_proj.bias)
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    # endregion

# %% role="check" exercise="copy_torch_weights"
check(copy_torch_weights)

# %% [markdown]
# Now the comparison, with a causal mask, query by query.

# %% [markdown]
# @predict
#
# Your module and torch's get the *same* causal mask of five tokens, True on and below the diagonal. What does torch's module do with
# queries 0 to 3, and with query 4?
#
# @answer
#
# It hides what is True. Queries 0 to 3 then see *only* the future, and their numbers are wrong without any sign of it. Query 4
# may see nothing and becomes NaN. The NaN is the lucky part: it is the only row that announces the mistake.
#
# @wrong
#
# If you expected NaN everywhere, or an error: a mask of the right shape and type is never refused.

# %% role="payoff" exercise="copy_torch_weights"
if passed(copy_torch_weights) and passed(MultiHeadAttention):
    torch.manual_seed(9)
    theirs, mine = nn.MultiheadAttention(8, 2, batch_first=True), MultiHeadAttention(8, 2)
    x, allowed = torch.randn(1, 5, 8), torch.ones(5, 5, dtype=torch.bool).tril()
    copy_torch_weights(mine, theirs)
    output, weights = mine(x, x, x, allowed)
    for name, mask in (("mask reversed", ~allowed), ("the same mask", allowed)):
        their_output, _ = theirs(x, x, x, attn_mask=mask, average_attn_weights=False)
        gaps = (output - their_output).abs().amax(dim=-1)[0].tolist()
        print(f"{name}, largest difference for each query:", "  ".join(f"{gap:.0e}" for gap in gaps))

# %% [markdown]
# With the mask reversed, the two agree to the last digits of float32. A padding mask passed the wrong way round is worse than a causal
# one: items of full length become NaN, and the shorter ones attend to their padding without a sign.
#
# `F.scaled_dot_product_attention` follows the convention of this course. It takes tensors that are already split, and returns no weights:

# %% role="payoff" exercise="copy_torch_weights"
if passed(copy_torch_weights) and passed(MultiHeadAttention):
    q, k, v = (cut(layer(x), 2) for layer in (mine.w_q, mine.w_k, mine.w_v))
    fused = mine.w_o(join(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)))
    gap = (output - fused).abs().max().item()
    assert gap < 1e-5
    print(f"the fused operator, the same mask: outputs differ by {gap:.0e}")

# %% [markdown]
# ## Break it on purpose: a merge without its transpose
#
# Take the reshape that scrambled tokens, and put it into a module that has the right shapes everywhere. Nothing raises an error.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    class Scrambled(MultiHeadAttention):
        def forward(self, query, key, value, mask=None):
            q, k, v = cut(self.w_q(query), 2), cut(self.w_k(key), 2), cut(self.w_v(value), 2)
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            weights = torch.softmax(scores, dim=-1)
            return self.w_o((weights @ v).reshape(query.shape)), weights  # the heads never moved back

    broken, sound = train(lambda: Scrambled(32, 2)), train(lambda: MultiHeadAttention(32, 2))
    shares = {name: [shares_right(model, t)[0][0] for t in range(3, T + 1)]
              for name, model in (("merged by reshape alone", broken), ("heads moved back first", sound))}
    figures.lesson_09.by_length(range(3, T + 1), shares, trained_at=T, guessing=1 / LETTERS)

# %% [markdown]
# It learns to perfection: {{ shares["merged by reshape alone"][-1]:.0% }} at the length of its training. For sequences of one
# length the scrambling is always the same rearrangement, and the weights before and after it learn to live with it. Another length
# rearranges differently, so everything learned is in the wrong place. At length 7 the scrambled model gets
# {{ shares["merged by reshape alone"][-2]:.0% }}, the sound one {{ shares["heads moved back first"][-2]:.0% }}. Training at one fixed
# length, as many language models do, hides this mistake until the first short prompt.
#
# With a causal mask it is worse, because scrambled rows carry numbers of later tokens. Change token 7 and look at which outputs move:

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    x, causal = torch.randn(1, 8, 32), torch.ones(8, 8, dtype=torch.bool).tril()
    changed = x.clone()
    changed[0, 7] += 1.0
    for name, layer in (("scrambled", broken.attention), ("sound", sound.attention)):
        moved = (layer(x, x, x, causal)[0] - layer(changed, changed, changed, causal)[0]).abs().amax(dim=-1)[0] > 0
        print(f"{name:9}: outputs that move:", moved.nonzero().flatten().tolist())

# %% [markdown]
# In the scrambled module output 3 moves: it can see token 7, four steps into its future, in spite of the mask. A language model
# trained so reads part of the answer. This is the test to keep: change one token, and see which outputs move.

# %% role="demo"
explain("MH2")

# %% [markdown]
# ## What heads cost
#
# The scores take T² · d_head multiplications and as many additions a head, and so does the weighted sum: 4 · T² · d_head operations.
# There are num_heads heads, and d_head = d_model / num_heads, so the number of heads cancels: 4 · T² · d_model for any number of
# heads. But every head has its own T × T weights to compute, exponentiate and keep.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    x, heads, took = torch.randn(2, 256, 256), (1, 2, 4, 8, 16, 32, 64), []
    for number in heads:
        layer = MultiHeadAttention(256, number).eval()
        with torch.no_grad():
            runs = timeit.repeat("layer(x, x, x)", globals={"layer": layer, "x": x}, number=1, repeat=12)
        took.append(1e3 * min(runs))  # the quietest of twelve
    figures.lesson_09.price(heads, took, weights=[2 * number * 256 * 256 for number in heads])

# %% [markdown]
# On the machine that built this page, 64 heads took {{ took[-1] / took[0]:.1f }} times as long as one, with the same number of
# operations in both products. What grows is the work on weights. So wide heads are cheaper, and many heads look at more places;
# common models settle near d_head = 64 to 128.
#
# ## Where this goes on
#
# Many heads of a trained model can be removed with little loss (Michel et al. 2019, section 3). Keys and values can be shared among
# heads, so that less has to be kept while a model writes: one pair for all heads (Shazeer 2019, section 3), or one for each group
# (Ainslie et al. 2023, section 2.2). Lesson 10 is a side road to the problem for which attention was invented. Lesson 11 puts these
# heads into the block of a language model.
#
# ## What we keep
#
# - A head is a slice of the vectors with a row of weights of its own; `w_o` mixes what the heads found.
# - Split: name the axes in memory order, then move the heads forward. Merge: move the tokens back, then flatten.
# - Shapes prove nothing here. Numbers that say where they come from do, and so does changing one token.
# - There are two conventions for masks. In this course and in the fused operator, True may attend.
#
# | step | shape |
# |---|---|
# | query; key and value | (B, T_q, d_model); (B, T_k, d_model) |
# | after `split_heads` | (B, num_heads, T_q, d_head); (B, num_heads, T_k, d_head) |
# | scores, weights | (B, num_heads, T_q, T_k) |
# | after `merge_heads`, and after `w_o` | (B, T_q, d_model) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with a module that gives the same numbers as `nn.MultiheadAttention`, and with a test for scrambled axes. The idea
# is small (a loop and a `cat`); the difficulty is in axes that no error message guards.
#
# ## Cut for 60 minutes
#
# Skip "The same numbers as PyTorch" with `copy_torch_weights`, and "What heads cost". Show the loop, then `split_heads`,
# `merge_heads` and the module; run the two-question task from the solved notebook.
#
# ## Cut for 90 minutes
#
# Keep everything but "What heads cost". Let pairs write `split_heads` and `merge_heads` on paper with the numbers 0 to 7 first.
#
# ## Mistakes to expect
#
# - split_heads MH1: Write the numbers 10·i + j into x. From which token does each row of your head 0 come?
# - split_heads MU4: Which numbers of token 0 does your head 0 hold: neighbors, or every second one?
# - merge_heads MH2: What lies next to the first number of head 0, token 0 in memory: the same token's next head, or the next token?
# - merge_heads MH4: What does `is_contiguous()` say before and after your transpose?
# - MultiHeadAttention SD3: Over how many products does one score of one head sum?
# - MultiHeadAttention MK1: Print one row of your mask and read it aloud. Which tokens may this query see?
# - copy_torch_weights MU33: `nn.Linear` computes x @ weight.T. In which of the two orders are the rows of `in_proj_weight` stored?
# - copy_torch_weights MU37: Train one of the two modules for a step. Which of them changed?
#
# ## To discuss
#
# - Why does one head answer one of the two questions nearly always? (A good answer: its weights are unequal, so the mean carries an
#   order; a linear layer reads the largest share and cannot read the second largest.)
# - A colleague's model trains well at length 512 and writes nonsense for short prompts. What do you test first? (Change one token
#   and see which outputs move; compare with torch's module at two lengths; look for a reshape after attention.)
#
# ## On paper
#
# Two tokens (1, 2, 3, 4) and (5, 6, 7, 8), two heads. Write down head 0 and head 1, swap the two rows of head 1 as if it attended
# to the other token alone, and merge. Solution: head 0 is [[1, 2], [5, 6]], head 1 [[3, 4], [7, 8]]; after the swap and the merge
# the tokens are (1, 2, 7, 8) and (5, 6, 3, 4).
