# %% [markdown]
# # 07 · Multi-head attention
#
# **One row of attention weights gives one mean. How can a token ask for several things at once, and keep the answers apart?**
#
# **Before this lesson:** lesson 03 (attention for a batch), lesson 05 (`nn.Module`), lesson 06 (boolean masks: True may attend).
#
# "The animal didn't cross the street because **it** was too tired." To make sense of *it*, a reader needs two things at once: which noun
# it stands for (*animal*), and what is said about it (*tired*). A single row of attention weights can put half of its weight on each of
# the two. But what comes back is one mean of their values, and a mean does not say which part of it came from which word.
#
# The Transformer (Vaswani et al. 2017) has a simple answer: ask several times. Each **head** has projections of its own,
# which make a short query, key and value from the *whole* token. Each head attends with its own weights, and the
# results are joined into one vector again. This is called *multi-head attention*. It needs no new mathematics, because
# each head computes the attention of lesson 03. What is difficult is keeping track of the axes: an array with its axes
# in the wrong order often has the right shape, and then no error is raised.

# %% role="given"
import math
import timeit

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.machine.draw(lit=("query", "key", "value", "scores", "weights", "blend"))

# %% [markdown]
# In the picture of the whole machine, the part in color will exist several times, once for each head.
#
# ## One row, one mean
#
# Three tokens carry two numbers each: (10, 0), (5, 5) and (0, 10). The token in the middle wants the *first* number of its left
# neighbor and the *second* number of its right neighbor, which is (10, 10).

# %% [markdown]
# @predict
#
# One row of three weights blends the tokens (10, 0), (5, 5) and (0, 10). What do the weights (½, 0, ½) give? And could you tell that
# result from what the weights (0, 1, 0) give?
#
# @answer
#
# (½, 0, ½) gives (5, 5), and so does (0, 1, 0). So the mean of both neighbors is the same as the middle token alone, and you cannot tell
# them apart. No other row reaches (10, 10), either. The two numbers of every token sum to 10, so those of each weighted mean sum to 10,
# too, while those of (10, 10) sum to 20.
#
# @wrong
#
# If you said (10, 10), you took each number from a different token. A single row of weights multiplies *all* numbers of a token by the
# same weight.

# %% role="demo"
values = torch.tensor([[10.0, 0.0], [5.0, 5.0], [0.0, 10.0]])
one = torch.tensor([0.5, 0.0, 0.5])  # one row of weights for both numbers
two = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a row of its own for each number
assert torch.equal(one @ values, values[1])
figures.multi_head_attention.two_heads(one.numpy(), two.numpy(), values.numpy())

# %% [markdown]
# Two rows of weights, one for each number of the values, reach (10, 10). Each row belongs to one head: the first head's
# values are the first numbers, the second head's the second numbers.
#
# ## Heads as a loop
#
# The paper gives each head its own three small matrices (d_model, d_head), usually with d_head = d_model / num_heads
# (Vaswani et al. 2017, section 3.2.2). In code the small matrices of all heads lie side by side in one large matrix, so
# a single product makes the queries of all heads: head 0's are the first d_head numbers of the result, head 1's the
# next, and so on. So what is cut into slices is the *projection*. The token is not: each number of each head's query is
# made from all of its numbers.
#
# The definition fits in a loop. Each head attends as in lesson 03, with scores divided by √d_head because its dot
# products sum over d_head products only. `cat` then lays the results side by side.

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
# This loop is the core of multi-head attention; only four linear layers around it are missing. But a loop over heads
# leaves a GPU idle most of the time, because a single head gives it too little work. So most published code has no
# loop. It gives the heads an axis of their own next to the batch axis, and one matrix product then serves all heads,
# just as in lesson 03 one product served all items of a batch. The picture shows the shape after each step. The two
# steps in color are new, and you write them now.

# %% role="demo"
figures.multi_head_attention.pipeline()

# %% [markdown]
# ## Cutting projections into heads
#
# The first new step turns (B, T, d_model) into (B, num_heads, T, d_head). It computes nothing and only puts the numbers into other
# groups.

# %% [markdown]
# @predict
#
# The projection of token 0 holds the numbers 0 to 3, that of token 1 holds 4 to 7, and there are two heads. Which of these is head 1?
#
# - **A** [[4, 5], [6, 7]]
# - **B** [[2, 3], [6, 7]]
# - **C** [[1, 3], [5, 7]]
#
# @answer
#
# **B**: the second slice of both tokens. A holds all of token 1 and nothing of token 0. C takes every second number of each token, and a
# slice is made of neighbors.
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
# All three have the shape (T, d_head), so no error message can tell them apart.

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
# A d_model that num_heads does not divide raises ValueError. Gradients flow to x. If you are stuck, type `hint(split_heads)` in a new
# cell.

# %% role="exercise" exercise="split_heads"
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give each head its own contiguous slice of every projected token.

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
# To see where the numbers go, we choose numbers that say where they come from: number j of token i is 10·i + j. The figure compares your
# split with a single `view` into the final shape, without a transpose. A published implementation used that for two years
# (hyunwoongko/transformer#4).

# %% role="payoff" exercise="split_heads"
if passed(split_heads):
    figures.multi_head_attention.where_numbers_go(split_heads)

# %% [markdown]
# Row i of every head must come from token i. In the view, row 1 of head 0 is the second half of token 0, and head 1 begins in the middle
# of token 1.
#
# ## Side by side again
#
# After attention, the slices of each token are joined into one vector again. The array has the axes (B, num_heads, T,
# d_head), and the two axes to join, num_heads and d_head, are not neighbors. So the token axis first moves back to
# axis 1, and only *then* do the last two axes become one.
#
# Three PyTorch functions matter here. `transpose` moves no numbers in memory and only changes the order in which they
# are read. `view` works only where the numbers lie in memory in the order of the axes, so after this transpose it
# raises an error. `reshape` makes a copy where `view` would fail.

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
# Three tokens with four numbers each are split into two heads. Then we put them together in two ways: by `merge_heads`, and by
# `reshape(1, 3, 4)` alone. Number j of token i is 10·i + j again. What is token 0 each time?
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
# The module adds four linear layers (Vaswani et al. 2017, section 3.2.2). Three compute the queries, keys and values,
# and the last one mixes the results of the heads:
#
# $$\operatorname{head}_h = \operatorname{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d_{head}}}\right) V_h \qquad
# \operatorname{output} = [\operatorname{head}_0, \ldots, \operatorname{head}_{H-1}]\, W_O$$
#
# One layer with d_model outputs computes the queries of all heads at once. Its first d_head outputs belong to head 0,
# the next d_head outputs to head 1, and so on. The paper writes a small projection of its own for each head. The result
# is the same, because side by side these small matrices are our one large matrix. To see it, we cut a large layer into
# small ones. `nn.Linear` has one row of weights for each output, so each head gets d_head of these rows.

# %% role="demo"
x, large = torch.randn(1, 5, 6), nn.Linear(6, 6)
small = zip(large.weight.chunk(num_heads), large.bias.chunk(num_heads))  # for each head a projection of its own, 6 → 3
parts = [F.linear(x, weight, bias) for weight, bias in small]
assert torch.allclose(torch.cat(parts, dim=-1), large(x), atol=1e-6)
print(tuple(parts[0].shape), "for each head; side by side they equal the large layer's", tuple(large(x).shape))

# %% [markdown]
# The last layer, `w_o`, is the only place where the results of different heads are combined. How does the number of
# parameters depend on the number of heads? We count them in PyTorch's own module, which has the same four layers.

# %% role="demo" tags=["nbval-check-output"]
counts = {}
for heads in (1, 4, 16):
    module = nn.MultiheadAttention(64, heads)
    counts[heads] = sum(p.numel() for p in module.parameters())
    print(f"{heads:2} heads: {counts[heads]:,} parameters")
assert counts[1] == counts[4] == counts[16] == 4 * (64 * 64 + 64)

# %% [markdown]
# The number of heads changes nothing: there are always four layers of 64·64 + 64 = 4,160 parameters, {{ counts[1]:, }} in all. The heads
# share the same layers. Each has d_head = 64 / num_heads numbers of every query, key and value, so with more heads each one has fewer.
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
# `mask` is boolean, **True where attention is allowed**, and broadcasts to (B, num_heads, T_q, T_k). With None, every
# query may attend to every key. A padding mask (B, 1, T_k) as in lesson 06 needs one more axis, `mask[:, None]`,
# before it is passed. You may assume that no query has all its keys hidden. A d_model that num_heads does not divide
# raises ValueError. From scratch: without `F.scaled_dot_product_attention` or similar functions.

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
# Here is a small task that asks every token for two things, as *it* did in the opening. A sequence has nine letters. At each position
# the model has to name the letter before it *and* the letter at the mirrored position, counted from the end (for position 1 that is
# position 7). Nine is odd, so these are always two different places. Position 0 has no letter before it, so the loss and the results
# leave it out.

# %% role="demo"
LETTERS, T = 8, 9
assert all(i - 1 != T - 1 - i for i in range(T))  # the two places are never the same


def questions(count, t=T):
    """ids (count, t), and for each position the letter before it and the mirrored one, (count, t, 2)."""
    ids = torch.randint(LETTERS, (count, t))
    return ids, torch.stack([ids.roll(1, dims=1), ids.flip(1)], dim=-1)


ids, wanted = questions(1)
print("letters    ", ids[0].tolist())
print("one before ", ["-", *wanted[0, 1:, 0].tolist()])
print("mirrored   ", wanted[0, :, 1].tolist())

# %% [markdown]
# The model has three parts. An embedding turns letters and positions into vectors. Then comes your attention, and then one linear layer
# that computes both answers from the output of attention.

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
# We train the model with **one** head. So at each position one row of weights gives one mean, and the linear layer has to read both
# letters from it. What will the model do?
#
# - **A** answer both questions half of the time
# - **B** answer one question nearly always, and guess at the other
# - **C** answer both nearly always
#
# @answer
#
# **B**, and the interesting part is how. The only head looks at *both* places, with weights that are almost equal but
# not quite. At position 6 the mirrored letter gets {{ single[0, 6, 2]:.2f; 0.35 < it < 0.65 }} and the letter before it
# {{ single[0, 6, 5]:.2f; 0.3 < it < 0.6 }}. The letter with the larger weight stands out a little in the mean, and a linear layer can
# read it. It can hardly tell the letter with the *second* largest weight from all the others, so the model answers
# the other question correctly only {{ min(one_head):.0% }} of the time. Guessing gives {{ 1 / LETTERS:.1% }}.
#
# @wrong
#
# If you chose A: that would happen if the two weights were equal. Then the mean would not say which letter is which,
# and the model could only choose one of them at random. With unequal weights the mean does say it, at least for the
# letter with the larger weight. If you chose C: 32 numbers do have room for two letters, but the only head sends both
# letters through the same projection and adds them up.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    one_head, single = shares_right(train(lambda: MultiHeadAttention(32, 1)))
    sound = train(lambda: MultiHeadAttention(32, 2))
    two_heads, pair = shares_right(sound)
    assert min(one_head) < 0.4 and max(one_head) > 0.85
    for name, right in (("one head ", one_head), ("two heads", two_heads)):
        print(f"{name}: letter before {right[0]:.0%}, mirrored letter {right[1]:.0%}")
    figures.multi_head_attention.different_heads(single.numpy(), pair.numpy())

# %% [markdown]
# With two heads each question has a row of weights of its own. One head looks at the letter before, which makes a diagonal in the map,
# and the other at the mirrored letter, which makes the anti-diagonal. So both answers are right
# {{ min(two_heads):.0%; it > 0.99 }} of the time.
# Nobody told the heads which question is theirs. That depends on the random start. From 3 of the 40 starts that we tried, the heads
# never divided the work: change the seed in `train` to 11, and one question stays unanswered with two heads, too.
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
# When torch's module gets the mask reversed, the two modules agree to the last digits of float32. Passing a padding
# mask the wrong way round does even more harm than a causal one: items without padding become NaN as a whole, and the
# other items attend to nothing but their padding, without any sign of it.
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
# We take the `reshape` that scrambled tokens, and put it into the module in place of `merge_heads`. All shapes are right, and no error is
# raised. Can such a model learn? The figure shows its answers to the first question, the letter before, for sequences of several lengths.

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

    broken = train(lambda: Scrambled(32, 2))
    shares = {name: [shares_right(model, t)[0][0] for t in range(3, T + 1)]
              for name, model in (("merged by reshape alone", broken), ("heads moved back first", sound))}
    figures.multi_head_attention.by_length(range(3, T + 1), shares, trained_at=T, guessing=1 / LETTERS)

# %% [markdown]
# It learns perfectly: {{ shares["merged by reshape alone"][-1]:.0%; it > 0.99 }} at the length it was trained on. For sequences
# of one length the scrambling is always the same rearrangement of numbers, and training adapts the weights before and
# after it. At another length the numbers are rearranged differently, and the trained weights no longer fit. At length
# 8 the scrambled model gets {{ shares["merged by reshape alone"][-2]:.0%; it < 0.85 }}, the sound one
# {{ shares["heads moved back first"][-2]:.0% }}. Training at one fixed length, which is common for language models,
# hides this mistake until the first short prompt.
#
# With a causal mask it is worse, because a scrambled row contains numbers of later tokens. We change token 8, the last one, and look
# at which outputs change:

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    x, causal = torch.randn(1, T, 32), torch.ones(T, T, dtype=torch.bool).tril()
    changed = x.clone()
    changed[0, T - 1] += 1.0
    for name, layer, expected in (("scrambled", broken.attention, [4, 8]), ("sound", sound.attention, [8])):
        change = (layer(x, x, x, causal)[0] - layer(changed, changed, changed, causal)[0]).abs().amax(dim=-1)[0]
        moved = (change > 1e-6).nonzero().flatten().tolist()
        print(f"{name:9}: outputs that move:", moved)
        assert moved == expected

# %% [markdown]
# In the scrambled module output 4 changes, too. It sees token 8, four positions ahead, in spite of the mask. The
# reason is the order in memory. All tokens of head 0 come first, and each row of the result has room for two of them:
# tokens 0 and 1 fill row 0, and so on, until token 8 comes to lie in row 4. A language model trained like this can read
# part of the answer. Remember this test for later: change one token, and see which outputs change.

# %% role="demo"
explain("MH2")

# %% [markdown]
# ## What heads cost
#
# In each head the scores take T² · d_head multiplications and as many additions, and so does the weighted sum. That
# makes 4 · T² · d_head operations for each head. There are num_heads heads, and d_head = d_model / num_heads. So
# num_heads cancels, and all heads together take 4 · T² · d_model operations, however many there are. But each head
# has its own T × T weights to exponentiate, and the module above also stores them. `F.scaled_dot_product_attention`
# can do without storing them, so we time it, too, between the same projections.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    def fused_layer(layer, x, number):
        q, k, v = (cut(project(x), number) for project in (layer.w_q, layer.w_k, layer.w_v))
        return layer.w_o(join(F.scaled_dot_product_attention(q, k, v)))

    x, heads, took, took_fused = torch.randn(2, 256, 256), (1, 2, 4, 8, 16, 32, 64), [], []
    for number in heads:
        layer = MultiHeadAttention(256, number).eval()
        for times, call in ((took, "layer(x, x, x)"), (took_fused, "fused_layer(layer, x, number)")):
            with torch.no_grad():
                runs = timeit.repeat(call, globals=globals(), number=1, repeat=12)
            times.append(1e3 * min(runs))  # the quietest of twelve
    figures.multi_head_attention.price(heads, took, took_fused, weights=[2 * number * 256 * 256 for number in heads])

# %% [markdown]
# On the machine that built this page, 64 heads took {{ took[-1] / took[0]:.1f; it > 3 }} times as long as one, with the
# same number of operations
# in both products. What grows is the work on the weights. With the fused operator 64 heads took only
# {{ took_fused[-1] / took[0]:.1f; it < took[-1] / took[0] }} times as long as one head of your module; lessons 11 and 14
# show how it does that. So there is a choice
# to make: few wide heads are cheaper, and many narrow heads can look at more places. Common models choose d_head = 64 to 128.
#
# ## Where this leads
#
# Many heads of a trained model can be removed with little loss (Michel et al. 2019, section 3). Keys and values can be shared among
# heads, so that less has to be kept while a model writes: one pair for all heads (Shazeer 2019, section 3), or one for each group
# (Ainslie et al. 2023, section 2.2). Lesson 12, which you may skip, goes back to the problem for which attention was invented. Lesson 09
# puts these heads into the block of a language model.
#
# ## What we keep
#
# - A head has its own projections of the whole token and its own attention weights. In code its projections are slices
#   of `w_q`, `w_k` and `w_v`. `w_o` mixes the results of the heads.
# - To split, first reshape to (B, T, num_heads, d_head), which follows the order in memory, and then swap the axes of
#   tokens and heads. To merge, swap them back first and reshape last.
# - A right shape does not show that the axes are right. Test with numbers that say where they come from, or change one token and see
#   which outputs change.
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
