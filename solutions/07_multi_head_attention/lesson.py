# %% [markdown]
# # 07 · Multi-head attention
#
# **One row of attention weights gives one mean. How can a token ask for several things at once, and keep the answers apart?**
#
# **Before this lesson:** lesson 03 (projections, attention for a batch), lesson 05 (`nn.Module`), lesson 06 (boolean masks: True may
# attend).
#
# "The animal didn't cross the street because **it** was too tired." To make sense of *it*, a reader needs two things at once: which
# noun it stands for (*animal*), and what is said about it (*tired*). A row of attention weights can put half of its weight on each of
# the two. But what comes back is one mean of their values, and an even mean does not say which part of it came from which word.
#
# The Transformer (Vaswani et al. 2017) has a simple answer: ask several times. Several attentions run side by side, each with
# projections of its own. Each of them is called a **head**, and all of them together are **multi-head attention**.

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## One row, one mean
#
# Three tokens have values of two numbers each: (10, 0), (5, 5) and (0, 10). The token in the middle wants the *first* number of its
# left neighbor and the *second* number of its right neighbor, which is (10, 10).

# %% [markdown]
# @predict
#
# One row of three weights blends the values (10, 0), (5, 5) and (0, 10). What do the weights (½, 0, ½) give? And could you tell that
# result from what the weights (0, 1, 0) give?
#
# @answer
#
# (½, 0, ½) gives (5, 5), and so does (0, 1, 0), so you cannot tell them apart. No other row reaches (10, 10), either. Each value's
# numbers sum to 10, so those of any weighted mean do, too. Those of (10, 10) sum to 20.
#
# @wrong
#
# (10, 10) takes each number from a different token. But a single row of weights multiplies *all* numbers of a value by the same weight.

# %% role="demo" tags=["hide-input"]
values = torch.tensor([[10.0, 0.0], [5.0, 5.0], [0.0, 10.0]])
one = torch.tensor([0.5, 0.0, 0.5])  # one row of weights for both numbers
two = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a row of its own for each number
assert torch.equal(one @ values, values[1])
figures.multi_head_attention.two_heads(one.numpy(), two.numpy(), values.numpy())

# %% [markdown]
# Two rows of weights, one for each number, reach (10, 10). Each row belongs to a head, and each head has values of its own: here those
# of head 0 are the first numbers, those of head 1 the second numbers.
#
# ## Each head has its own projections
#
# The paper gives each head three small matrices of shape (d_model, d_head), usually with d_head = d_model / num_heads (Vaswani et al.
# 2017, section 3.2.2). They turn every token into a short query, a short key and a short value. Then the head attends as in lesson 03.
# Queries and keys of a head have only d_head numbers, so its scores are divided by √d_head.

# %% role="demo"
torch.manual_seed(9)
d_model, num_heads, d_head = 6, 2, 3
w_q, w_k, w_v = torch.randn(3, num_heads, d_model, d_head) / math.sqrt(d_model)  # for each head three small matrices
w_o = torch.randn(num_heads * d_head, d_model) / math.sqrt(d_model)


def one_head(x, h, allowed=None):
    """What head h finds for the tokens x (T, d_model): (T, d_head). allowed: a mask (T, T), True may attend."""
    q, k, v = x @ w_q[h], x @ w_k[h], x @ w_v[h]
    scores = q @ k.mT / math.sqrt(d_head)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v

# %% [markdown]
# What the heads find is then put side by side, or **concatenated**. A last matrix, the **output projection** `w_o`, mixes it. Without
# `w_o` each head's findings would stay in a slice of their own.

# %% role="demo"
x = torch.randn(5, d_model)
heads = [one_head(x, h) for h in range(num_heads)]
concatenated = torch.cat(heads, dim=-1)
output = concatenated @ w_o
print([tuple(head.shape) for head in heads], "→", tuple(concatenated.shape), "→", tuple(output.shape))
figures.multi_head_attention.heads_in_parallel()

# %% [markdown]
# What remains is to write this without a loop.

# %% [markdown]
# @predict
#
# In our small example a token has six numbers, and the query of head 1 has three. On which of the token's numbers does this query
# depend?
#
# - **A** On the last three: head 0 has the first half of the token, and head 1 the second.
# - **B** On all six.
# - **C** On three of the six, which training chooses.
#
# @answer
#
# **B.** The query is the token times a matrix (6, 3), so each of its three numbers is a sum over all six numbers of the token. Every
# head sees the whole token. What differs is the matrix through which it looks.
#
# @wrong
#
# A and C give the head a part of the token, as many drawings do. But it gets the whole. Its query is short because its matrix is
# narrow.

# %% role="demo"
changed = x.clone()
changed[:, 0] += 1.0  # the first number of every token
moved = (changed @ w_q[1] - x @ w_q[1]).abs().amax(dim=0)
print("the query of head 1 moves by", [round(by, 2) for by in moved.tolist()])
assert (moved > 0).all()

# %% [markdown]
# ## One matrix for all heads
#
# With many heads there are many small products, and a computer is faster at one large product. So we put the small matrices side by
# side. The two (6, 3) matrices become one of shape (6, 6), and a single product makes the queries of both heads:

# %% role="demo"
large = torch.cat(list(w_q), dim=-1)
projection = x @ large
assert torch.allclose(projection[:, :3], x @ w_q[0], atol=1e-6) and torch.allclose(projection[:, 3:], x @ w_q[1], atol=1e-6)
print("two matrices", tuple(w_q[0].shape), "side by side:", tuple(large.shape), "  queries of both heads:", tuple(projection.shape))

# %% [markdown]
# The first d_head columns of the *projection* are head 0's queries, the next d_head columns head 1's. Only
# the projection is sliced, never the token.
#
# The attention of all heads fits into one product, too, if the heads get an axis of their own next to the batch axis, just as in
# lesson 03 one product served all items of a batch. That takes two new steps: before attention the projections are split into heads,
# and after it the heads are merged again.
#
# ## Cutting the projection into heads
#
# The first new step turns (B, T, d_model) into (B, num_heads, T, d_head). It only regroups the numbers.

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
# **B**: the second slice of both tokens' projections. A holds all of token 1 and nothing of token 0. C takes every second number, and
# a slice is made of neighbors.
#
# @wrong
#
# `view(1, 2, 2, 2)` gives exactly A. It cuts the *sequence* in two instead of the projections. All three have the same
# shape, so no error message tells them apart.

# %% [markdown]
# `transpose` moves nothing in memory; it only changes the order in which numbers are read. Afterward reading order and memory order
# differ: the tensor is no longer **contiguous**. `view` cannot join such axes and raises an error; `reshape` makes a copy.

# %% [markdown]
# @exercise split_heads
#
# `x` (B, T, d_model), the projection of all tokens for all heads, `num_heads` → (B, num_heads, T, d_head), d_head = d_model / num_heads
#
# Head h gets the h-th slice of d_head neighboring numbers of each token's projection. A d_model that num_heads does not divide raises
# ValueError. Gradients flow to x.

# %% role="exercise" exercise="split_heads"
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Cut each token's projection into one contiguous slice for each head.

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
# Where do the numbers go? Let number j of token i be 10·i + j. The figure compares your split with a single `view` into the final
# shape, without a transpose. A published implementation split heads this way for two years (hyunwoongko/transformer#4).

# %% role="payoff" exercise="split_heads"
if passed(split_heads):
    figures.multi_head_attention.where_numbers_go(split_heads)

# %% [markdown]
# Row i of every head must come from token i. In the view, row 1 of head 0 is the second half of token 0.
#
# ## Side by side again
#
# After attention, what the heads found for each token is concatenated. The array has the axes (B, num_heads, T, d_head), and the two
# axes to join, num_heads and d_head, are not neighbors.

# %% [markdown]
# @exercise merge_heads
#
# `x` (B, num_heads, T, d_head) → (B, T, num_heads · d_head)
#
# The heads of each token side by side, head 0 first: the inverse of `split_heads`. Gradients flow to x.

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
# Now your two functions replace the separate heads from above, in the folded cell. Both ways have to agree.

# %% role="payoff" exercise="merge_heads" tags=["hide-input"]
if passed(merge_heads) and passed(split_heads):
    q, k, v = (split_heads((x @ torch.cat(list(small), dim=-1))[None], num_heads) for small in (w_q, w_k, w_v))
    weights = torch.softmax(q @ k.mT / math.sqrt(d_head), dim=-1)
    batched = merge_heads(weights @ v)[0] @ w_o
    assert torch.allclose(batched, output, atol=1e-5)
    print(f"weights {tuple(weights.shape)}; one by one or all at once: they differ by at most {(batched - output).abs().max():.0e}")

# %% [markdown]
# ## The whole module
#
# In a module the large matrices are `nn.Linear` layers. $Q_h$, $K_h$ and $V_h$ are head h's slices (biases left out):
#
# $$\operatorname{head}_h = \operatorname{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d_{head}}}\right) V_h \qquad
# \operatorname{output} = [\operatorname{head}_0, \operatorname{head}_1, \ldots]\; w_o$$
#
# How does the number of **parameters**, the numbers that training changes, depend on the number of heads? Not at all. More heads are
# narrower, and side by side their matrices always make (d_model, d_model). PyTorch's own module has as many, with three of the
# four matrices stacked in one:

# %% role="demo" tags=["nbval-check-output"]
counts = {heads: sum(p.numel() for p in nn.MultiheadAttention(64, heads).parameters()) for heads in (1, 4, 16)}
print(counts)
assert all(count == 4 * (64 * 64 + 64) for count in counts.values())

# %% [markdown]
# If your split or merge is not finished: `spare_split` and `spare_merge` of the folded cell do the same.

# %% role="given" tags=["hide-input"]
def spare_split(x, num_heads):
    """As split_heads, without its ValueError."""
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def spare_merge(x):
    """As merge_heads."""
    return torch.cat(x.unbind(dim=1), dim=-1)

# %% [markdown]
# @exercise MultiHeadAttention
#
# `MultiHeadAttention(d_model, num_heads)`: four `nn.Linear(d_model, d_model)` with bias, as in PyTorch's module: `w_q`, `w_k`,
# `w_v`, `w_o`. forward: `query` (B, T_q, d_model), `key` and `value` (B, T_k, d_model), `mask` → (`output` (B, T_q, d_model),
# `weights` (B, num_heads, T_q, T_k))
#
# Queries are made from `query`, keys from `key`, values from `value`. `mask` is boolean, **True where attention is allowed**, and
# broadcasts to (B, num_heads, T_q, T_k); None allows everything. (A padding mask (B, 1, T_k) as in lesson 06 needs one more axis,
# `mask[:, None]`, before it is passed.) You may assume that each query sees a key. A d_model that num_heads does not divide raises
# ValueError. From scratch: without `F.scaled_dot_product_attention` or similar functions.

# %% role="exercise" exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """num_heads attentions side by side, each with its own projections of the whole token; w_o mixes what they find.

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
# Here is a small task that asks every token for two things, as *it* did in the opening. Eight people are in a room. Each of them has a
# name, a letter and two friends in the room. For every person the model has to say the letter of the first friend *and* the letter of
# the second. Names, letters and friends are drawn anew for each room.
#
# A token stands for a person. It is the sum of four learned vectors: for the person's name, the letter, and the name of each friend.
# One attention layer follows, and then one linear layer that computes both answers. The folded cell holds the rooms, the model and
# its training.

# %% role="demo" tags=["hide-input"]
PEOPLE, LETTERS = 8, 8


def rooms(count):
    """names, letters (count, 8); friends (count, 8, 2): at which places they sit; wanted (count, 8, 2): their letters."""
    names, letters = torch.rand(count, PEOPLE).argsort(dim=1), torch.randint(LETTERS, (count, PEOPLE))
    order = torch.rand(count, PEOPLE, PEOPLE)
    order.diagonal(dim1=1, dim2=2).fill_(2.0)  # nobody is a friend of their own
    friends = order.argsort(dim=-1)[..., :2]
    return names, letters, friends, of_friends(letters, friends)


def of_friends(what, friends):
    """For each person what (count, 8) says of the two friends: (count, 8, 2)."""
    return what.gather(1, friends.flatten(1)).view_as(friends)


class Reader(nn.Module):
    """People in, one attention layer, two answers out for each of them."""

    def __init__(self, attention):
        super().__init__()
        self.name, self.letter = nn.Embedding(PEOPLE, 32), nn.Embedding(LETTERS, 32)
        self.first, self.second = nn.Embedding(PEOPLE, 32), nn.Embedding(PEOPLE, 32)
        self.attention, self.answer = attention, nn.Linear(32, 2 * LETTERS)

    def forward(self, names, letters, friends):
        first, second = of_friends(names, friends).unbind(-1)
        x = self.name(names) + self.letter(letters) + self.first(first) + self.second(second)
        output, weights = self.attention(x, x, x)
        return self.answer(output).unflatten(-1, (2, LETTERS)), weights


def train(make_attention, seed=0, steps=300):
    """A Reader trained from a fixed start, in seconds."""
    torch.manual_seed(seed)
    model, threads = Reader(make_attention()), torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        *room, wanted = rooms(64)
        logits, _ = model(*room)
        loss = F.cross_entropy(logits.flatten(0, 2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    return model


@torch.no_grad()
def tested(model):
    """On fresh rooms: the share of right answers (first friend, second friend); each head's weight on first, second and all others."""
    names, letters, friends, wanted = rooms(500)
    logits, weights = model(names, letters, friends)
    right = (logits.argmax(dim=-1) == wanted).float().mean(dim=(0, 1))
    places = friends[:, None].expand(-1, weights.shape[1], -1, -1)
    on = weights.gather(-1, places).mean(dim=(0, 2))
    return right.tolist(), torch.cat([on, 1 - on.sum(dim=-1, keepdim=True)], dim=-1)

# %% [markdown]
# @predict
#
# We train the model with **one** head (in the cell below, which takes some seconds). For each person one row of weights gives one mean.
# What will the model do?
#
# - **A** answer both questions half of the time
# - **B** answer one question nearly always, and guess at the other
# - **C** answer both nearly always
#
# @answer
#
# **B.** It answers one question correctly {{ max(one_head_right):.0%; it > 0.85 }} of the time and the other
# {{ min(one_head_right):.0%; it < 0.4 }}. Guessing gives {{ 1 / LETTERS:.1%; it == 0.125 }}. An even mean of both friends' values does
# not say which letter is whose. So training prefers one friend. From 8 of 10 starts the head came to look at one friend alone. From the
# other two it looked at both, with unequal weights: then the letter with the larger weight stands out in the mean, and the other is
# nearly lost.
#
# @wrong
#
# A would come from two equal weights: the model could only choose one of the two letters at random. C is possible by a trick: unequal
# weights mark whose letter is whose. But our *linear* layer reads only the heavier one.

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    one_head_right, single = tested(train(lambda: MultiHeadAttention(32, 1)))
    two_heads_right, pair = tested(train(lambda: MultiHeadAttention(32, 2)))
    for name, right in (("one head ", one_head_right), ("two heads", two_heads_right)):
        print(f"{name}: first friend {right[0]:.0%}, second friend {right[1]:.0%}")
    assert min(one_head_right) < 0.4 and max(one_head_right) > 0.85 and min(two_heads_right) > 0.95
    figures.multi_head_attention.weights_of_heads(single.numpy(), pair.numpy())

# %% [markdown]
# With two heads both answers are right {{ min(two_heads_right):.0%; it > 0.95 }} of the time, and each head looks at one of the friends.
# Nobody told the heads which question is theirs. From each of 25 starts they divided the friends between them. So *it* can ask one
# head for *animal* and another for *tired*.
#
# In large models many heads can be removed with little loss (Michel et al. 2019, section 3), so not every head finds work of its own.
#
# ## Break it on purpose: a merge without its transpose
#
# What if somebody merges heads by `reshape` alone? We try it on the two heads from the beginning, with a causal mask. All shapes are
# right, and no error is raised: `reshape` only asks whether the number of entries fits. The test of lesson 06 sees more. We change the
# last of nine tokens, and see which outputs move.

# %% role="demo" tags=["nbval-check-output"]
causal = torch.ones(9, 9, dtype=torch.bool).tril()

def scrambled(x):
    heads = torch.stack([one_head(x, h, causal) for h in range(num_heads)])  # (num_heads, T, d_head)
    return heads.reshape(9, d_model)

def sound(x):
    return torch.cat([one_head(x, h, causal) for h in range(num_heads)], dim=-1)

nine, changed = torch.randn(2, 9, d_model)
changed[:8] = nine[:8]  # only token 8 differs
for attend, expected in ((scrambled, [4, 8]), (sound, [8])):
    moved = (attend(changed) - attend(nine)).abs().amax(dim=-1) > 1e-6
    print(f"{attend.__name__:9}: outputs that move:", moved.nonzero().flatten().tolist())
    assert moved.nonzero().flatten().tolist() == expected

# %% [markdown]
# Scrambled, output 4 moves, too: it sees token 8, four places ahead, in spite of the mask. The reason is the order in memory. All tokens
# of head 0 come first, and each row of the result has room for two of them. Tokens 0 and 1 fill row 0, and so token 8 comes to lie in
# row 4. A language model trained like this can read part of the answer.

# %% role="demo"
explain("MH2")

# %% [markdown]
# ## Further: the same numbers as PyTorch
#
# For those who read or load other people's models: the weights of PyTorch's own module in yours, with one exercise.

# %% [markdown]
# `nn.MultiheadAttention` is the module that you will meet in most code. It computes what yours computes, under other names. Its
# `in_proj_weight` (3 · d_model, d_model) stacks the three projections in the order q, k, v; `in_proj_bias` does likewise; `out_proj` is
# your `w_o`. Copy its weights, and every number has to agree.
#
# Two of its habits need care. It **averages** the weights over the heads unless you pass `average_attn_weights=False`. And its boolean
# mask is the reverse of this course's: True hides (lesson 06).

# %% [markdown]
# @exercise copy_torch_weights
#
# `mine` a module with the attributes of `MultiHeadAttention` (it may hold more besides), `torch_mha` an
# `nn.MultiheadAttention(d_model, num_heads, batch_first=True)` → nothing; `mine` is changed in place
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
# Now the comparison, with a causal mask. The third way is `F.scaled_dot_product_attention`. It takes tensors that are already split,
# follows this course's convention for masks, and returns no weights.

# %% role="payoff" exercise="copy_torch_weights"
if passed(copy_torch_weights) and passed(MultiHeadAttention):
    torch.manual_seed(9)
    theirs, mine = nn.MultiheadAttention(8, 2, batch_first=True), MultiHeadAttention(8, 2)
    five, allowed = torch.randn(1, 5, 8), torch.ones(5, 5, dtype=torch.bool).tril()
    copy_torch_weights(mine, theirs)
    my_output, my_weights = mine(five, five, five, allowed)
    their_output, their_weights = theirs(five, five, five, attn_mask=~allowed, average_attn_weights=False)
    q, k, v = (spare_split(layer(five), 2) for layer in (mine.w_q, mine.w_k, mine.w_v))
    fused = mine.w_o(spare_merge(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)))
    gaps = [(a - b).abs().max().item() for a, b in ((my_output, their_output), (my_weights, their_weights), (my_output, fused))]
    print("nn.MultiheadAttention: outputs differ by {:.0e}, weights by {:.0e}".format(*gaps))
    print(f"the fused operator:    outputs differ by {gaps[2]:.0e}")
    assert max(gaps) < 1e-5

# %% [markdown]
# ## What we keep
#
# - A head has its own projections of the whole token and its own attention weights. What the heads find is concatenated, and `w_o` mixes
#   it.
# - In code the matrices of all heads lie side by side in one layer. What is cut into slices is the projection, never the token.
# - To split, first reshape to (B, T, num_heads, d_head), which follows the order in memory, and then swap tokens and heads. To merge,
#   swap them back first and reshape last.
# - A right shape does not show that the axes are right. Test with numbers that say where they come from, or change one token and see
#   which outputs move.
#
# | step | shape |
# |---|---|
# | query; key and value | (B, T_q, d_model); (B, T_k, d_model) |
# | after `split_heads` | (B, num_heads, T_q, d_head); (B, num_heads, T_k, d_head) |
# | scores, weights | (B, num_heads, T_q, T_k) |
# | after `merge_heads`, and after `w_o` | (B, T_q, d_model) |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.2.
# Michel et al. 2019, *Are sixteen heads really better than one?*, [arXiv:1905.10650](https://arxiv.org/abs/1905.10650).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners know that every head sees the whole token through projections of its own, and that what is cut into slices is the projection.
# They leave with a module that gives the same numbers as `nn.MultiheadAttention`, and with a test for scrambled axes. The idea is small
# (separate heads and a `cat`); the difficulty is in axes that no error message guards.
#
# ## Cut for 60 minutes
#
# Leave out "Break it on purpose: a merge without its transpose" and the further part. Show "Each head has its own projections" and "One
# matrix for all heads", then `split_heads`, `merge_heads` and the module; run "Two questions at once" from the solved notebook.
#
# ## Cut for 90 minutes
#
# Keep the whole core. Let pairs write `split_heads` and `merge_heads` on paper with the numbers 0 to 7 first. `copy_torch_weights` is good
# homework.
#
# ## Mistakes to expect
#
# - split_heads MH1: Write the numbers 10·i + j into x. From which token does each row of your head 0 come?
# - split_heads MU4: Which numbers of token 0's projection does your head 0 hold: neighbors, or every second one?
# - merge_heads MH2: What lies next to the first number of head 0, token 0 in memory: the same token's next head, or the next token?
# - merge_heads MH4: What does `is_contiguous()` say before and after your transpose?
# - MultiHeadAttention SD3: Over how many products does one score of one head sum?
# - MultiHeadAttention MK1: Print one row of your mask and read it aloud. Which tokens may this query see?
# - copy_torch_weights MU33: `nn.Linear` computes x @ weight.T. In which of the two orders are the rows of `in_proj_weight` stored?
# - copy_torch_weights MU37: Train one of the two modules for a step. Which of them changed?
#
# ## To discuss
#
# - A drawing shows a token cut into eight parts, one for each head. What is wrong with it? (A good answer: each head multiplies the whole
#   token by a narrow matrix; only the product, the projection, is cut. So a head can use any feature of the token.)
# - Why does one head answer one of the two questions nearly always? (A good answer: an even mean of both friends' values does not say
#   which letter is whose. With unequal weights, or all of the weight on one friend, at least one letter can be read.)
# - A colleague's attention has the right shapes and its loss is surprisingly good. What do you test? (Change one token and see which
#   outputs move; compare with torch's module; look for a reshape after attention.)
#
# ## On paper
#
# Two tokens whose projections are (1, 2, 3, 4) and (5, 6, 7, 8), two heads. Write down head 0 and head 1, swap the two rows of head 1
# as if it attended to the other token alone, and merge. Solution: head 0 is [[1, 2], [5, 6]], head 1 [[3, 4], [7, 8]]; after the swap
# and the merge the tokens are (1, 2, 7, 8) and (5, 6, 3, 4).
