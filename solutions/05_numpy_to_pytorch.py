# %% [markdown]
# # 5 · From NumPy to PyTorch: the same numbers, with gradients
#
# **How do the projections learn, and how do we know that nothing else changed?**
#
# Lesson 03's attention computes, but it cannot learn: somebody has to hand it the projections `w_q`, `w_k` and
# `w_v`. In this lesson we move the same attention to PyTorch, which keeps a record of every step and turns it
# into gradients. We check at each stage that the numbers stay the same, and at the end our own layer learns to
# look in the right place.
#
# **Predict** three things, and write the answers down before reading on:
#
# 1. `nn.Linear(3, 2)` maps 3 numbers to 2. What is the shape of its weight?
# 2. The same attention, once in float64 and once in float32: in which digit do the results part?
# 3. Someone writes `weights.detach() @ v` and trains. Which of q, k and v still learn?

# %% role="given"
import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, solution

# %% [markdown]
# The picture of this lesson: attention computes from left to right, as before. What is new comes back along the arrows, a gradient
# for each input, whose size (norm) is written beside it.

# %% role="demo"
figures.lesson_05.graph()

# %% [markdown]
# ## The starting point
#
# This is attention as lesson 03 left it: scores, a stable softmax over the keys, a weighted sum. The scale comes
# from `math.sqrt`, which returns a plain Python float. NumPy's own `np.sqrt(8)` returns a float64 *scalar*, and
# from version 2 on NumPy lets such a scalar turn a float32 array into float64.

# %% role="given"
def attention_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v)
    -> output (..., T_q, d_v), weights (..., T_q, T_k)."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ v, weights

# %% [markdown]
# ## Arrays and tensors
#
# A tensor is PyTorch's array: the same numbers, shapes, slices and `@`. One difference meets us at once. A Python
# 0.1 becomes float64 in NumPy and float32 in PyTorch, and `torch.from_numpy` keeps what it is given. Layers are
# float32, and they refuse to mix.

# %% role="demo" tags=["nbval-check-output"]
print("NumPy makes     ", np.array([0.1]).dtype)
print("PyTorch makes   ", torch.tensor([0.1]).dtype)
print("from_numpy keeps", torch.from_numpy(np.array([0.1])).dtype)
try:
    nn.Linear(2, 1)(torch.from_numpy(np.ones((1, 2))))
except RuntimeError as error:
    print("a layer says:   ", error)

# %% [markdown]
# ## How equal is equal?
#
# float64 carries about 16 digits, float32 about 7. So two right programs rarely agree to the last digit, and "the
# same numbers" needs a tolerance. Which one? We run `attention_numpy` on the same inputs in both precisions.

# %% role="demo"
rng = np.random.default_rng(5)
q, k, v = rng.normal(size=(3, 6, 8))  # three arrays of six tokens, eight numbers each

in64, _ = attention_numpy(q, k, v)
in32, _ = attention_numpy(*(array.astype(np.float32) for array in (q, k, v)))
print(f"largest difference: {np.abs(in64 - in32).max():.0e}")
for dtype in (np.float32, np.float64):
    print(f"the next {dtype.__name__} after 1 is {np.finfo(dtype).eps:.0e} away")
assert np.abs(in64 - in32).max() < 1e-6

# %% [markdown]
# The results part around the seventh digit. One published walk-through compares its NumPy and its PyTorch
# attention with a tolerance of 10⁻⁶, and for these scores that holds.
#
# **Predict:** softmax ignores a number that is added to every score. So if we add 10, 100 or 1000 to all of them,
# does the difference between the two precisions stay as it is?

# %% role="demo"
figures.lesson_05.rounding(attention_numpy)

# %% [markdown]
# float32 numbers near 1000 lie 0.00006 apart. Each score is rounded to one of them before softmax sees it, and
# `exp` turns an absolute error of its argument into a relative error of its result. So a fixed 10⁻⁶ fails right
# code once the scores are large; a tolerance comes from the precision *and* the size of the numbers. `check`
# leaves room for float32.
#
# ## The untransposed weight
#
# In our equations a projection is x @ w with w of shape (d_in, d_out). `nn.Linear` computes x @ weightᵀ: its
# weight has shape (out, in), as its documentation says, so that of `nn.Linear(3, 2)` is (2, 3). Suppose we forget
# that and copy a *square* w as it is.

# %% role="demo"
w = np.array([[1.0, 2.0], [3.0, 4.0]])
x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
untransposed = nn.Linear(2, 2, bias=False)
with torch.no_grad():
    untransposed.weight.copy_(torch.tensor(w))  # no error: the shapes fit
    got = untransposed(torch.tensor(x, dtype=torch.float32)).numpy()
names = ("x @ w", "layer(x), w copied as it is")
figures.lesson_05.compare(x @ w, got, names, "Nothing raised, yet the numbers differ")

# %% [markdown]
# The figure's third panel shows by how much. With a 2 × 3 weight PyTorch would have complained about the shapes;
# with d_model = d_k, as in many models, it cannot. The rule that we take from this: **test with sizes that are
# all different.**
#
# There is a second trap on the way from an array to a layer. Some functions copy, others look at the same memory.

# %% role="demo" tags=["nbval-check-output"]
w32 = np.ones(3, dtype=np.float32)
copied, shared = torch.tensor(w32), torch.from_numpy(w32)
w32[0] = 7
print("torch.tensor:    ", copied)
print("torch.from_numpy:", shared)

# %% [markdown]
# @exercise linear_from_numpy
#
# `w` (d_in, d_out), an array of floats or integers → `nn.Linear` with `layer(x)` = x @ w
#
# The layer has no bias, its weight is float32 and can be trained. It shares no memory with `w`: a later change of
# one must not reach the other. `w` may be square or not, float64 or float32, and lie in memory in any order.
#
# When stuck, `hint(linear_from_numpy)` in a new cell asks a question first; called again it says where to look.

# %% role="exercise" exercise="linear_from_numpy"
def linear_from_numpy(w: np.ndarray) -> nn.Linear:
    """Turn a NumPy weight into a trainable layer without bias, layer(x) = x @ w.

    w: (d_in, d_out). Returns: nn.Linear, float32, that shares no memory with w.
    """
    # region solution
    d_in, d_out = w.shape
    layer = nn.Linear(d_in, d_out, bias=False, dtype=torch.float32)
    with torch.no_grad():  # filling the weight is no step of a computation to be differentiated
        layer.weight.copy_(torch.tensor(w.T))
    return layer
    # endregion

# %% role="check" exercise="linear_from_numpy"
check(linear_from_numpy)

# %% [markdown]
# The payoff compares our layer with x @ w for a weight of five rows and three columns, and then takes one
# training step. The layer moves, w stays where it is.

# %% role="payoff" exercise="linear_from_numpy"
if passed(linear_from_numpy):
    w = rng.normal(size=(5, 3))
    x = rng.normal(size=(4, 5))
    layer = linear_from_numpy(w)
    before, inputs = w.copy(), torch.tensor(x, dtype=torch.float32)
    got = layer(inputs).detach().numpy()
    names = ("x @ w in NumPy", "layer(x) in PyTorch")
    figures.lesson_05.compare(x @ w, got, names, "The same projection")
    layer(inputs).square().mean().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    moved = np.abs(layer.weight.detach().numpy().T - w).max()
    print(f"after one step the layer's weight moved by up to {moved:.2f}, w by {np.abs(w - before).max():.0f}")

# %% [markdown]
# ## A record beside the numbers
#
# A tensor that *requires grad* remembers how it was made. Every operation adds a node to a graph, and
# `backward()` walks it from the end to the beginning with the chain rule. By hand: softmax of the scores (0, 0)
# is (½, ½), and lesson 02's Jacobian gives ∂p₁/∂s = (p₁(1 − p₁), −p₁p₂) = (¼, −¼).

# %% role="demo" tags=["nbval-check-output"]
s = torch.zeros(2, requires_grad=True)
p = torch.softmax(s, dim=-1)
p[0].backward()
print("weights: ", p.detach())
print("gradient:", s.grad)

# %% [markdown]
# ## Break it on purpose: the cut graph
#
# `detach()`, `.data`, `torch.no_grad()` and a trip through NumPy keep the numbers and drop the record. Two scores
# choose between the values 10 and 4. **Predict** which gradient is missing when the weights are detached.

# %% role="demo" tags=["nbval-check-output"]
s = torch.zeros(2, requires_grad=True)
values = torch.tensor([10.0, 4.0], requires_grad=True)
result = torch.softmax(s, dim=-1).detach() @ values
result.backward()
print("result:", result.item())
print("gradient of the values:", values.grad)
print("gradient of the scores:", s.grad)

# %% [markdown]
# The result is right, nothing raises, and a loss may even fall, because the values still learn. The scores never
# do. In attention everything behind the cut is q and k: the part that decides where to look.

# %% role="demo"
figures.lesson_05.cut_graph()

# %% [markdown]
# @exercise attention_torch
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v) → (`output` (..., T_q, d_v), `weights` (..., T_q,
# T_k))
#
# The four lines of `attention_numpy`, on tensors. `...` is any number of leading dimensions, none included. Both
# results are differentiable with respect to q, k and v and keep their type: float32 stays float32, float64 stays
# float64. Scores of ±10,000 must not overflow; `torch.softmax` is allowed and takes care of that.
#
# Forbidden, as this is attention from scratch: `F.scaled_dot_product_attention`, `nn.MultiheadAttention` and
# their like.

# %% role="exercise" exercise="attention_torch"
def attention_torch(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention; gradients flow to q, k and v.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v).
    Returns: output (..., T_q, d_v) and weights (..., T_q, T_k), in the dtype of the inputs.
    Source:  Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    # region solution
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)  # subtracts each row's maximum itself
    output = weights @ v
    return output, weights
    # endregion

# %% role="check" exercise="attention_torch"
check(attention_torch)

# %% [markdown]
# First the proof that nothing else changed. Five words, random embeddings, random projections: NumPy in float64
# on the left, our function in float32 in the middle. These weights come from random numbers, not from a trained
# model, so they say nothing about English.

# %% role="payoff" exercise="attention_torch"
if passed(attention_torch):
    words = ["The", "quick", "brown", "fox", "jumps"]
    q, k, v = (rng.normal(size=(5, 8)) @ rng.normal(size=(8, 4)) / math.sqrt(8) for _ in range(3))
    _, expected = attention_numpy(q, k, v)
    _, got = attention_torch(*(torch.tensor(array, dtype=torch.float32) for array in (q, k, v)))
    figures.lesson_05.compare_weights(expected, got.numpy(), words)

# %% [markdown]
# Why normal random numbers, and not `rng.random`, which published walk-throughs use? Uniform numbers in [0, 1)
# are all positive, so the key with the largest entries wins, whoever asks. **Predict** how often five queries
# then prefer one and the same key.

# %% role="demo"
fresh = np.random.default_rng(0)
for name, draw in (("uniform [0, 1)", fresh.random), ("standard normal", fresh.standard_normal)):
    x, w_q, w_k = draw((1000, 5, 8)), draw((1000, 8, 8)), draw((1000, 8, 8))
    _, weights = attention_numpy(x @ w_q, x @ w_k, x)
    favourite = weights.argmax(axis=-1)
    agree = (favourite == favourite[:, :1]).all(axis=-1).mean()
    print(f"{name:15}: all five queries prefer the same key in {agree:.0%} of 1000 sentences")

# %% [markdown]
# Where every query looks at the same key, it hardly matters which query asks; and where one weight is nearly 1,
# the scale hardly matters either. Test inputs, too, must be able to show a mistake.
#
# Now what NumPy could not do. We take the table of lesson 01 and its second query, (0, 1), and ask for more of
# the second number of the output. The gradient of our own attention says in which direction to move the query;
# forty small steps later it has found the token whose value is (0, 10).

# %% role="payoff" exercise="attention_torch"
if passed(attention_torch):
    K = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    V = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
    query = torch.tensor([[0.0, 1.0]], requires_grad=True)
    path = [query.detach().clone()]
    for _ in range(40):
        output, _ = attention_torch(query, K, V)
        (gradient,) = torch.autograd.grad(output[0, 1], query)
        with torch.no_grad():
            query += 0.3 * gradient
        path.append(query.detach().clone())
    figures.lesson_05.query_walk(attention_torch, torch.cat(path), K, V)

# %% [markdown]
# ## A home for parameters
#
# Nobody trains queries directly: they depend on the sentence. What is learned are the projections, and they need
# an owner. An `nn.Module` enters every `nn.Parameter` and every layer that we assign to `self` in a register.
# **Predict** which of the three names below appear in it.

# %% role="demo" tags=["nbval-check-output"]
class Home(nn.Module):
    def __init__(self):
        super().__init__()  # makes the register; without it nothing can be entered
        self.visitor = torch.ones(2)
        self.tenant = nn.Parameter(torch.ones(2))
        self.family = nn.Linear(2, 2, bias=False)

print([name for name, _ in Home().named_parameters()])
print("after .double():", Home().double().visitor.dtype, "and", Home().double().tenant.dtype)

# %% [markdown]
# A plain tensor is only visiting: no optimizer sees it, `.double()` and `.to(device)` leave it behind,
# `state_dict()` does not save it. And one default is worth knowing. `nn.Linear` adds a bias, which the
# projections of the paper do not have (Vaswani et al. 2017, section 3.2.2: QW, a plain product). A bias shows
# itself at once: it answers a zero with something else.

# %% role="demo"
torch.manual_seed(0)
zero = torch.zeros(1, 4)
print("with its default bias:", nn.Linear(4, 2)(zero).detach())
print("with bias=False:      ", nn.Linear(4, 2, bias=False)(zero).detach())

# %% [markdown]
# @exercise SelfAttention
#
# `SelfAttention(d_model, d_k, d_v)`; `forward(x)`: `x` (B, T, d_model) → (`output` (B, T, d_v), `weights` (B, T,
# T))
#
# The module owns three layers `nn.Linear` without bias: `w_q` and `w_k` (d_model → d_k) and `w_v` (d_model →
# d_v). In *self*-attention queries, keys and values all come from the same x. After `.double()` it works on
# float64 inputs. Gradients reach x and all three weights.
#
# From scratch again; calling our own `attention_torch` is fine.

# %% role="exercise" exercise="SelfAttention"
class SelfAttention(nn.Module):
    """One head of self-attention with learned projections, without masks."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        """d_model: width of x. d_k: width of queries and keys. d_v: width of values and output."""
        # region solution
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        # endregion

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x: (B, T, d_model). Returns: output (B, T, d_v) and weights (B, T, T)."""
        # region solution
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        output = weights @ v
        return output, weights
        # endregion

# %% role="check" exercise="SelfAttention"
check(SelfAttention)

# %% [markdown]
# ## Does it learn where to look?
#
# A task that attention alone can solve. Six tokens, each with one of three colours and a random number. For each
# token we want the mean number *of its own colour*. Nothing tells the layer what a colour is: it must find out,
# from the loss alone, that a token should attend to its own colour, equally to all, and ignore the rest.

# %% role="given"
def colour_batch(generator: torch.Generator, batch: int = 64, tokens: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """-> x (batch, tokens, 4): a one-hot colour and a number; the target (batch, tokens, 1); the colours."""
    colours = torch.randint(3, (batch, tokens), generator=generator)
    numbers = torch.randn(batch, tokens, 1, generator=generator)
    one_hot = F.one_hot(colours, 3).float()
    same = one_hot @ one_hot.mT  # 1 where two tokens share a colour
    target = same @ numbers / same.sum(dim=-1, keepdim=True)
    return torch.cat([one_hot, numbers], dim=-1), target, colours

# %% [markdown]
# The training loop has four steps, the same for every model in this course: compute the loss, clear the old
# gradients, walk the graph backwards, move the parameters. Adam (Kingma and Ba 2015) chooses the step's length
# for each number.

# %% role="given"
def train(layer: nn.Module, steps: int = 300) -> list[float]:
    """Train a layer on colour batches, always the same ones. Returns: the loss at each step."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam([p for p in layer.parameters() if p.requires_grad], lr=0.03)
    losses = []
    for _ in range(steps):
        x, target, _ = colour_batch(generator)
        loss = F.mse_loss(layer(x)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% [markdown]
# We train the layer twice from the same beginning: once whole, and once with `w_q` and `w_k` frozen. Freezing
# them is what a `detach()` on the weights does. **Predict** how the two loss curves differ: does the frozen one
# fall at all?

# %% role="payoff" exercise="SelfAttention"
if passed(SelfAttention):
    x, _, colours = colour_batch(torch.Generator().manual_seed(9), batch=1)
    torch.manual_seed(1)
    whole = SelfAttention(4, 3, 1)
    frozen = SelfAttention(4, 3, 1)
    frozen.load_state_dict(whole.state_dict())
    frozen.w_q.requires_grad_(False)
    frozen.w_k.requires_grad_(False)
    before = whole(x)[1][0].detach()
    losses = {"everything learns": train(whole), "w_q and w_k frozen": train(frozen)}
    figures.lesson_05.training(losses, before.numpy(), whole(x)[1][0].detach().numpy(), colours[0].tolist())

# %% [markdown]
# Right: before training every token looks everywhere; afterwards each row of weights is spread over the tokens of
# one colour, its own. Left: the frozen layer's loss falls a little, because w_v still learns, and then it stays.
# A loss that falls is no proof that everything learns. Look at the gradients: `layer.w_q.weight.grad is None`
# tells it in one line. Or put a `.detach()` behind the softmax of `SelfAttention`, run its check, and read what
# the verdict says; then take it out again.
#
# ## Back to NumPy
#
# Above we wrote `.detach().numpy()` for each plot. Published walk-throughs of attention end with
# `output.numpy()`, on the output of layers with weights, and stop there with an error. Three things can stand
# between a tensor and NumPy: the graph, the device, and a type that NumPy does not have.

# %% role="demo"
trained = nn.Linear(2, 2)(torch.ones(1, 2))
for tensor in (trained, torch.ones(2, dtype=torch.bfloat16)):
    try:
        tensor.numpy()
    except (RuntimeError, TypeError) as error:
        print(f"{type(error).__name__}: {error}\n")

# %% [markdown]
# @exercise as_numpy
#
# `tensor`, any shape → NumPy array of the same shape and the same values
#
# The tensor may require grad, lie on any device, have shape () or no entries, and be a slice or a transpose of
# another. Its type is any float, integer or boolean type. bfloat16 becomes float32 (or float64); every other type
# is kept. The tensor itself is left as it was, its `requires_grad` too. The array may share memory with it.
#
# Nobody needs a GPU for this: the check brings a stand-in that refuses what a tensor on a GPU refuses.

# %% role="exercise" exercise="as_numpy"
def as_numpy(tensor: Tensor) -> np.ndarray:
    """Bring a tensor to NumPy, from the graph, from its device, from bfloat16.

    tensor: any shape. Returns: an array of the same shape, values and dtype; bfloat16 becomes float32.
    """
    # region solution
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:  # unknown to NumPy; float32 holds each of its numbers exactly
        tensor = tensor.float()
    return tensor.numpy()
    # endregion

# %% role="check" exercise="as_numpy"
check(as_numpy)

# %% [markdown]
# Converting bfloat16 to float32 loses nothing, and brings nothing back. The payoff sends the numbers from 1 to
# 1.05 through three types and returns them with our function. Models are trained in bfloat16 all the same: it
# spends its 16 bits on range, the same as that of float32, and keeps about two digits.

# %% role="payoff" exercise="as_numpy"
if passed(as_numpy):
    fine = torch.linspace(1, 1.05, 501, dtype=torch.float64)
    rounded = {dtype: as_numpy(fine.to(dtype)) for dtype in (torch.float32, torch.float16, torch.bfloat16)}
    figures.lesson_05.staircase(as_numpy(fine), rounded)

# %% [markdown]
# ## What we keep
#
# - Same equation, same numbers: PyTorch adds the record from which `backward()` makes gradients.
# - "The same" needs a tolerance, and the tolerance depends on the precision and on the size of the numbers.
# - `nn.Linear` stores (out, in) and computes x @ weightᵀ. Square sizes hide a forgotten transpose.
# - A cut graph gives right numbers and learns in part. Ask for `.grad`, not only for the loss.
# - An `nn.Module` owns what is learned; what is no parameter stays behind.
#
# Sources: Vaswani et al. 2017, *Attention is all you need*, section 3.2; the PyTorch documentation of `nn.Linear`
# and of autograd; Kingma and Ba 2015, *Adam*.
#
# Where this goes on: the record of every step costs memory, and large models keep only some steps and compute the others again (Chen
# et al. 2016, *Training deep nets with sublinear memory cost*, section 4). Our layer lets every token look at every other. Next: **06
# · Masks**, who may look at whom.

# %% role="demo"
progress()
