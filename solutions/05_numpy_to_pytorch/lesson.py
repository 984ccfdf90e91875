# %% [markdown]
# # 05 · From NumPy to PyTorch: the same numbers, with gradients
#
# **How do the projections learn, and how do we know that the numbers are still right?**
#
# **Before this lesson:** Python classes, partial derivatives and the chain rule; lesson 03 (attention and its
# projections), lesson 04 (learning rate).
#
# In lesson 03 you designed projections by hand. In lesson 04 a small head learned its own, with lines of calculus that
# were written for that head and no other. From now on you need neither. PyTorch finds the gradients itself, for any
# program built from its differentiable operations. This is called **autograd**. A short class does the same for numbers,
# and with it we differentiate attention.
#
# Autograd can fail silently, too: nothing raises an error, and a part of the model never learns. At the end of this lesson
# you write the test that finds such parts.

# %% role="given" tags=["hide-input"]
import copy
import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## A graph behind the numbers
#
# A **tensor** is PyTorch's array. Shapes, indices and `@` work mostly as in NumPy, and `t.mT` swaps the last two axes.
# What is new is that it can remember. A tensor that *requires grad* remembers how it was made: every operation notes which tensors
# went in. The notes form the **computational graph**. Computing the numbers is the **forward pass**. The **backward
# pass**, `backward()`, walks through the graph from its end to its beginning and applies the chain rule at each step.
#
# The class below does this for plain numbers. Each result stores what it was made from and, with each part, its own
# derivative by that part. A product y = a · b stores (a, b) and (b, a), since ∂y/∂a = b. A sum stores 1 with both. A quotient
# y = a / b stores 1/b with a, and −a/b² = −y/b with b.

# %% [markdown]
# @predict
#
# What does y = exp(a) store with a?
#
# @answer
#
# **y itself**: the derivative of eᵃ is eᵃ, the number that it has just computed.
#
# @wrong
#
# 1/a belongs to the logarithm. a · e^(a − 1) would be the rule for powers, where a is the base.

# %% [markdown]
# `backward` first puts the numbers into **topological order**, each one after those it was made from. Then it goes
# through them once, from the last to the first, and passes on the gradient times each derivative. What arrives at a
# number by several paths is *added*, and thanks to the order all of it has arrived before it is passed on.

# %% role="given"
class Number:
    """A number that remembers how it was made."""

    def __init__(self, value, made_from=()):
        self.value, self.made_from, self.grad = value, made_from, 0.0

    def __add__(self, other):
        return Number(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Number(self.value * other.value, [(self, other.value), (other, self.value)])

    def __truediv__(self, other):
        y = self.value / other.value
        return Number(y, [(self, 1 / other.value), (other, -y / other.value)])

    def exp(self):
        y = math.exp(self.value)
        return Number(y, [(self, y)])

    def backward(self):
        order, arriving = [], {self: 1.0}

        def visit(number):
            if number not in order:
                for part, _ in number.made_from:
                    visit(part)
                order.append(number)  # after all that it was made from

        visit(self)
        for number in reversed(order):
            number.grad += arriving[number]
            for part, derivative in number.made_from:
                arriving[part] = arriving.get(part, 0.0) + arriving[number] * derivative

# %% [markdown]
# For a = 3 and b = 2 we compute c = a · b and y = c · a. The figure shows what the class stored, and in blue the gradients
# that came back. Each edge shows the factor by which the gradient is multiplied.

# %% role="demo"
a, b = Number(3.0), Number(2.0)
c = a * b
y = c * a
y.backward()
assert (a.grad, b.grad, c.grad) == (12, 9, 3)
figures.numpy_to_pytorch.number_graph({"a": a, "b": b, "c = a · b": c, "y = c · a": y})

# %% [markdown]
# The number a enters y by two paths, and each brings back a gradient of 6. Their sum is 12, the derivative of a²b.

# %% [markdown]
# @predict
#
# Let a be `Number(3.0)`. What is `a.grad` after `(a * a).backward()`? And after the same line has run twice?
#
# @answer
#
# **6**, then **12**. A gradient of 3 arrives by each of the two paths, and their sum is 6. The second run makes a new
# product, but a is the same number, and `number.grad +=` adds the new gradient to the old one.
#
# @wrong
#
# 3 would mean that the second gradient to arrive replaces the first. "6 both times" expects somebody to set `grad` back
# to 0, and nobody does.

# %% role="demo" tags=["nbval-check-output"]
a, t = Number(3.0), torch.tensor(3.0, requires_grad=True)
for _ in range(2):
    (a * a).backward()
    (t * t).backward()
    print("by hand:", a.grad, "  PyTorch:", t.grad.item())

# %% [markdown]
# PyTorch adds, too. So a training loop clears the old gradients before it computes new ones, by
# `optimizer.zero_grad()`.
#
# ## Attention, differentiated
#
# The class has all that attention needs. Here one query meets two keys and two values, each a single number, so √d_k is 1.
# The output is a single number, too, and we can walk back from it. The same lines run on `Number` and on tensors.

# %% role="given"
def gradients(make, through=lambda weight: weight):
    """What arrives at a query, two keys and two values. make: wraps a plain number; through: is applied to the weights."""
    q, k0, k1, v0, v1 = (make(number) for number in (1.0, 2.0, 0.5, 10.0, 4.0))
    e0, e1 = (q * k0).exp(), (q * k1).exp()
    output = through(e0 / (e0 + e1)) * v0 + through(e1 / (e0 + e1)) * v1
    output.backward()
    arrived = {"q": [q.grad], "k": [k0.grad, k1.grad], "v": [v0.grad, v1.grad]}
    return {name: [grad if grad is None else round(float(grad), 3) for grad in grads] for name, grads in arrived.items()}


def tensor(number):
    return torch.tensor(number, requires_grad=True)

# %% role="demo" tags=["nbval-check-output"]
print("by hand:", gradients(Number))
print("PyTorch:", gradients(tensor))
figures.numpy_to_pytorch.graph("Numbers run forward, gradients come back", gradients(tensor))

# %% [markdown]
# One short class differentiates attention as PyTorch does.
#
# ## Break it on purpose: the cut graph
#
# `detach()` keeps a tensor's numbers and drops its graph. So do `.data`, `torch.no_grad()`, and a conversion to NumPy
# and back. With our numbers it is `Number(weight.value)`: the value stays, `made_from` is empty.

# %% [markdown]
# @predict
#
# Someone writes `weights.detach() @ v` and trains. The output is the same. Which of q, k and v still get a gradient?
#
# - **A** None of them: the graph is cut.
# - **B** Only v.
# - **C** q and k, since the values were not touched.
#
# @answer
#
# **B.** From the output the gradient goes directly to v. To get to q and k it would have to pass through the weights,
# and there the graph ends. So the head can no longer learn *where* to look, which q and k decide. It can still learn
# *what* to pass on.
#
# @wrong
#
# A overlooks the path from the output to v, which does not lead through the weights. C takes the arrows the wrong way:
# follow them backward from the output.

# %% role="demo" tags=["nbval-check-output"]
print("by hand:", gradients(Number, through=lambda weight: Number(weight.value)))
print("PyTorch:", gradients(tensor, through=Tensor.detach))
figures.numpy_to_pytorch.graph("weights.detach(): only v learns", gradients(tensor, through=Tensor.detach))

# %% [markdown]
# No error is raised, the output is right, and v learns. At q and k `Number` still has its first 0.0, and PyTorch None:
# nothing ever arrived.
#
# ## Attention as a layer
#
# This is lesson 03's attention, in NumPy.

# %% role="given"
def attention_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v)
    -> output (..., T_q, d_v), weights (..., T_q, T_k)."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ v, weights

# %% [markdown]
# @exercise attention_torch
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v) → (`output` (..., T_q, d_v), `weights` (..., T_q,
# T_k))
#
# The same on tensors, with any number of leading dimensions. Both results are differentiable with respect to q, k and v
# and keep their type: float32 stays float32, float64 stays float64. Scores of ±10,000 must not overflow;
# `torch.softmax` is allowed. Ready-made attention, such as `F.scaled_dot_product_attention`, is forbidden.

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
# Are the numbers still the same? One random x goes through three random projections. Here are the weights by NumPy in
# float64, yours in float32, and their difference.

# %% role="payoff" exercise="attention_torch" tags=["hide-input"]
if passed(attention_torch):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5, 8))
    q, k, v = (x @ w for w in rng.normal(size=(3, 8, 4)) / math.sqrt(8))
    _, expected = attention_numpy(q, k, v)
    _, got = attention_torch(*(torch.tensor(array, dtype=torch.float32) for array in (q, k, v)))
    assert np.abs(expected - got.numpy()).max() < 1e-6
    figures.numpy_to_pytorch.compare_weights(expected, got.numpy(), [f"token {i}" for i in range(5)])

# %% [markdown]
# They agree to about seven digits, all that float32 has.
#
# In attention it is the projections that learn. They have to be stored somewhere, and the optimizer, which moves
# them, has to find them. This is what an `nn.Module` is for. It keeps a list of its **parameters**, the tensors that
# training changes: every `nn.Parameter` and every layer that you assign to `self` is entered there.

# %% role="demo" tags=["nbval-check-output"]
class Home(nn.Module):
    def __init__(self):
        super().__init__()  # makes the list; without it nothing can be entered
        self.plain = torch.ones(2)
        self.parameter = nn.Parameter(torch.ones(2))
        self.layer = nn.Linear(3, 2, bias=False)

for name, parameter in Home().named_parameters():
    print(name, tuple(parameter.shape))

# %% [markdown]
# The plain tensor is missing, although it was assigned to `self`: no optimizer will move it, and `.double()` or
# `.to(device)` will not convert or move it.
#
# The projections of attention are `nn.Linear` layers. Two things about them are easy to miss. By default they
# add a bias, which the paper's projections do not have (Vaswani et al. 2017, section 3.2.2), so we write `bias=False`.
# And their weight is stored transposed: `nn.Linear(3, 2)` turns three numbers into two, and its weight has shape (2, 3).
# The layer computes x @ weightᵀ.

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
# You may call your own `attention_torch`, but no ready-made attention.

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
# The layer gets a task that projections alone cannot solve. There are six tokens, each with one of three colors and a
# random number. For each token we want the mean number *of its own color*. A color enters x as three numbers, 1 for this
# color and 0 for the others (a **one-hot** vector). Nothing tells the layer what a color is. It has to find out, from the
# loss alone, that a token should attend to its own. `color_batch`, folded, draws such tokens.

# %% role="given" tags=["hide-input"]
def color_batch(
    generator: torch.Generator, batch: int = 64, tokens: int = 6
) -> tuple[Tensor, Tensor, Tensor]:
    """-> x (batch, tokens, 4): a one-hot color and a number; the target (batch, tokens, 1); the colors."""
    colors = torch.randint(3, (batch, tokens), generator=generator)
    numbers = torch.randn(batch, tokens, 1, generator=generator)
    one_hot = F.one_hot(colors, 3).float()
    same = one_hot @ one_hot.mT  # 1 where two tokens share a color
    target = same @ numbers / same.sum(dim=-1, keepdim=True)
    return torch.cat([one_hot, numbers], dim=-1), target, colors

# %% [markdown]
# The **training loop** has the same four steps for every model in this course: compute the loss, clear the old
# gradients, walk the graph backward, move the parameters. The optimizer is lesson 04's Adam, and `lr` is the learning
# rate.

# %% role="given"
def train(layer: nn.Module, steps: int = 300) -> list[float]:
    """Train on color batches, always the same ones. Returns: the loss at each step."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam([p for p in layer.parameters() if p.requires_grad], lr=0.03)
    losses = []
    for _ in range(steps):
        x, target, _ = color_batch(generator)
        loss = F.mse_loss(layer(x)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% [markdown]
# @predict
#
# We train your layer twice from the same initialization: once as it is, and once with `w_q` and `w_k` **frozen**, kept
# from changing by `requires_grad_(False)`. For training, that has the same effect as a `detach()` on the weights. Does the
# frozen layer's loss fall?
#
# - **A** No, it stays where it began.
# - **B** It falls part of the way and then stays there.
# - **C** It falls as far as the other, only later.
#
# @answer
#
# **B.** w_v still learns. But the weights come from random, frozen projections and cannot follow the color, so every
# token receives some mean over all six. The best that w_v can do is to pass on the number and ignore
# the color. That is better than nothing, and there it ends.
#
# @wrong
#
# A forgets w_v, which still receives its gradient. C: no amount of training changes where the frozen layer looks, and the
# task is about where to look.

# %% [markdown]
# The folded cell trains both layers for five initializations. The figure shows the first.

# %% role="payoff" exercise="SelfAttention" tags=["hide-input"]
if passed(SelfAttention):
    x, _, colors = color_batch(torch.Generator().manual_seed(9), batch=1)
    many, _, shades = color_batch(torch.Generator().manual_seed(10))
    def on_own(layer: nn.Module) -> float:  # the share of the weight that goes to a token's own color
        return (layer(many)[1] * (shades[:, :, None] == shades[:, None, :])).sum(dim=-1).mean().item()

    runs = []
    for seed in range(5):
        torch.manual_seed(seed)
        learner = SelfAttention(4, 3, 1)
        frozen = copy.deepcopy(learner)
        frozen.w_q.requires_grad_(False)
        frozen.w_k.requires_grad_(False)
        before, of_number = learner(x)[1][0].detach().numpy(), learner.w_v.weight[0, 3].item()
        early = copy.deepcopy(learner)
        train(early, steps=40)
        looks_away = on_own(early) < on_own(learner)
        runs.append((learner, frozen, before, of_number, train(learner), train(frozen), looks_away))
    learner, frozen, before, _, losses, losses_frozen, _ = runs[0]
    after = learner(x)[1][0].detach().numpy()
    both = {"everything learns": losses, "w_q and w_k frozen": losses_frozen}
    figures.numpy_to_pytorch.training(both, before, after, colors[0].tolist())
    ended = [(np.mean(run[4][-10:]), run[5][0], np.mean(run[5][-10:])) for run in runs]  # whole; frozen: first, last
    won = sum(bool(last < 0.01 * stuck) for last, _, stuck in ended)
    fell = sum(bool(stuck < 0.9 * first) for _, first, stuck in ended)
    assert max(last for last, _, _ in ended) < 0.01 and min(stuck for *_, stuck in ended) > 0.1
    tens = [[np.convolve(curve, np.ones(10) / 10, "valid") for curve in run[4:6]] for run in runs]  # means of ten steps
    halved = [int(np.argmax(whole < fixed / 2)) + 10 for whole, fixed in tens]
    slow, wrong_sign, away = [step > 80 for step in halved], [run[3] < 0 for run in runs], [run[6] for run in runs]

# %% [markdown]
# Before training every token looks everywhere. Afterward each spreads its weight over the tokens of its own color. The
# frozen layer's loss fell, too, in {{ {5: "all"}.get(fell, f"{fell} of"); fell >= 4 }} five starts, here from
# {{ losses_frozen[0]:.2f; it > 0.4 }} to {{ np.mean(losses_frozen[-10:]):.2f; 0.1 < it < 0.6 }}, although two of its three
# matrices learned nothing. The whole layer ended more than a hundred times lower in
# {{ {5: "all"}.get(won, f"{won} of"); won == 5 }} five.
#
# Why do the two curves run side by side for so long? The whole layer's loss falls to half the frozen one's after
# {{ halved[0]; it > 80 }} steps here, after {{ min(halved[1:]) }} to {{ max(halved[1:]) }} in the other starts. In the
# {{ {2: "two"}[sum(slow)]; slow == wrong_sign == away }} slowest the initial w_v passes numbers on with the wrong sign. So the
# layer first learns to look *away* from its own color, and has to turn back later.
#
# With no second run to compare, the frozen layer's falling loss would have looked like success. Its gradients tell: those
# of `w_q` and `w_k` are None. Nobody looks them up for every parameter of a large model. So you write the test that does.

# %% [markdown]
# @exercise parameters_without_gradient
#
# `module`, an `nn.Module`, and `x` (B, T, d), an input of it → the set of the names, as `named_parameters` gives them, of those
# parameters to which no gradient comes back from the module's result.
#
# - The result is what `module(x)` returns; where that is a tuple, its first entry.
# - No gradient comes back: *whatever* loss is computed from the result, autograd gives None, or exactly 0 everywhere. A single
#   loss may mislead. Under `result.sum()` the layers before a final softmax get rounding errors at most, since each row sums to 1
#   whatever they do. Other losses do reach them, so their parameters are not in the set.
# - Frozen parameters (`requires_grad=False`) are in the set. The set is empty where nothing is amiss.
# - Afterwards module and x are as they were: parameters, buffers (tensors kept untrained), `training`, and every `.grad`, that of x, too.
#
# Two tools: `copy.deepcopy(module)`, and `torch.autograd.grad(loss, tensors, allow_unused=True)`, which touches no `.grad`.

# %% role="exercise" exercise="parameters_without_gradient"
def parameters_without_gradient(module: nn.Module, x: Tensor) -> set[str]:
    """The names of the parameters to which no gradient comes back from module(x).

    x: (B, T, d). The module's result is a tensor, or the first entry of a tuple.
    """
    # region solution
    copied = copy.deepcopy(module)  # nothing done to the copy reaches the original
    parameters = dict(copied.named_parameters())
    trainable = {name: p for name, p in parameters.items() if p.requires_grad}
    silent = set(parameters)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        output = copied(x.detach())
        output = output[0] if isinstance(output, tuple) else output
        if not output.requires_grad:
            break
        loss = (output * torch.randn(output.shape, generator=generator, dtype=output.dtype)).sum()
        grads = torch.autograd.grad(loss, list(trainable.values()), allow_unused=True)
        silent -= {name for name, grad in zip(trainable, grads) if grad is not None and grad.any()}
    return silent
    # endregion

# %% role="check" exercise="parameters_without_gradient"
check(parameters_without_gradient)

# %% [markdown]
# Now put it to the two layers that you have just trained, and to one with a `detach()`.

# %% role="payoff" exercise="parameters_without_gradient" tags=["nbval-check-output"]
if passed(parameters_without_gradient) and passed(SelfAttention):
    class Cut(SelfAttention):
        def forward(self, x: Tensor) -> Tensor:
            weights = super().forward(x)[1]
            return weights.detach() @ self.w_v(x)

    x = color_batch(torch.Generator().manual_seed(9), batch=2)[0]
    for name, layer in {"everything learns": learner, "w_q and w_k frozen": frozen, "weights.detach()": Cut(4, 3, 1)}.items():
        print(f"{name:18}", sorted(parameters_without_gradient(layer, x)))
    assert not parameters_without_gradient(learner, x) and len(parameters_without_gradient(Cut(4, 3, 1), x)) == 2

# %% [markdown]
# Frozen on purpose or cut by accident: your test names both. Run it once before a long training.
#
# In lesson 03 you decided where a head looks. Here the layer found "a color looks for its own color" from nothing but a
# loss.

# %% [markdown]
# ## Further: between NumPy and PyTorch
#
# Weights often come from NumPy, from a file or from another library, and results go back. Two exercises on that way, for
# anyone who has to move numbers between libraries.

# %% [markdown]
# The weight of `nn.Linear` is transposed. With a square weight nothing warns you.

# %% [markdown]
# @predict
#
# Someone copies a *square* w into `nn.Linear(2, 2)` as it is. What happens?
#
# - **A** An error about shapes.
# - **B** No error, and the right numbers, since the shapes agree.
# - **C** No error, and wrong numbers.
#
# @answer
#
# **C.** A (2, 2) array fits into a (2, 2) weight, and the layer then computes x @ wᵀ. If w were 2 × 3, PyTorch would
# have raised an error. With square projections, which many models use, it cannot notice the mistake.
#
# @wrong
#
# A: an error needs shapes that differ, and a square transposed is the same square. B: shapes that agree say nothing about
# which axis is which. Lesson 03 showed the same with `k.T`.

# %% role="demo"
w = np.array([[1.0, 2.0], [3.0, 4.0]])
x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
untransposed = nn.Linear(2, 2, bias=False)
with torch.no_grad():
    untransposed.weight.copy_(torch.tensor(w))  # no error: the shapes fit
    got = untransposed(torch.tensor(x, dtype=torch.float32)).numpy()
assert np.allclose(got, x @ w.T) and not np.allclose(got, x @ w)
claim = "Nothing raised, yet the numbers differ"
figures.numpy_to_pytorch.compare(x @ w, got, ("x @ w", "layer(x), w as it is"), claim)

# %% [markdown]
# Two more things can cost hours if you do not know them.
#
# **Types.** A Python 0.1 becomes float64 in NumPy and float32 in PyTorch, and `torch.from_numpy` keeps what it is given.
# Layers are float32 and refuse an input of another type.

# %% role="demo" tags=["nbval-check-output"]
print("NumPy makes     ", np.array([0.1]).dtype)
print("PyTorch makes   ", torch.tensor([0.1]).dtype)
print("from_numpy keeps", torch.from_numpy(np.array([0.1])).dtype)
try:
    nn.Linear(2, 1)(torch.from_numpy(np.ones((1, 2))))
except RuntimeError as error:
    print("a layer says:   ", error)

# %% [markdown]
# **Shared memory.** `torch.tensor` copies. `torch.from_numpy` and `torch.as_tensor` look at the array's own memory where
# they can, so a change of one is a change of the other.

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
# The layer has no bias, its weight is float32 and can be trained. It shares no memory with `w`, so that a later change of
# one does not change the other. `w` may be square or not, float64 or float32, and lie in memory row by row, column by column, or
# as every second row and column of a larger array.

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
# One training step with your layer, made of a weight of five rows and three columns: the layer moves, and w stays where
# it is.

# %% role="payoff" exercise="linear_from_numpy"
if passed(linear_from_numpy):
    draws = np.random.default_rng(6)
    w, x = draws.normal(size=(5, 3)), draws.normal(size=(4, 5))
    layer = linear_from_numpy(w)
    before, inputs = w.copy(), torch.tensor(x, dtype=torch.float32)
    assert np.allclose(layer(inputs).detach().numpy(), x @ w, atol=1e-5)
    layer(inputs).square().mean().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    moved = np.abs(layer.weight.detach().numpy().T - w).max()
    print(f"after one step the layer's weight moved by up to {moved:.2f}, w by {np.abs(w - before).max():.0f}")

# %% [markdown]
# **The way back.** For the plots above we wrote `.detach().numpy()`. Three things can keep a tensor from becoming a
# NumPy array: the graph, the device, and a type that NumPy does not have. One such type is bfloat16, a 16-bit float
# in which many large models compute.

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
# Converting bfloat16 to float32 loses nothing, but digits that bfloat16 has already rounded away do not come back. The
# next cell converts 501 numbers from 1 to 1.05 to three types and brings them back with your function. Each step of a
# staircase is one number that the type can hold.

# %% role="payoff" exercise="as_numpy"
if passed(as_numpy):
    fine = torch.linspace(1, 1.05, 501, dtype=torch.float64)
    rounded = {dtype: as_numpy(fine.to(dtype)) for dtype in (torch.float32, torch.float16, torch.bfloat16)}
    kept = {dtype: len(np.unique(numbers)) for dtype, numbers in rounded.items()}
    figures.numpy_to_pytorch.staircase(as_numpy(fine), rounded)

# %% [markdown]
# Of {{ len(fine); it > 400 }} different numbers, {{ kept[torch.bfloat16]; it < 20 }} are still different after rounding to bfloat16. It
# spends its 16 bits on a range as wide as that of float32, which leaves it only about two digits. Large models
# compute in it all the same. But it cannot add up many small steps: 1 plus 0.001 rounds back to 1. So training usually
# adds the steps to a copy of the weights in float32. Micikevicius et al. (2018, section 3.1) introduced this for
# float16, the other 16-bit type.

# %% [markdown]
# ## Further: how equal is equal?
#
# NumPy in float64 and PyTorch in float32 agreed to seven digits. This part shows why a fixed tolerance of 10⁻⁶ is no good
# rule, for anyone who compares two programs.

# %% [markdown]
# Softmax ignores a number that is added to every score. So we add larger and larger ones and compare the weights in both
# precisions.

# %% role="demo"
draws, offsets, errors = np.random.default_rng(0), np.repeat(np.logspace(0, 4, 17), 8), []
for offset in offsets:
    q, k, v = draws.normal(size=(3, 6, 9))
    q[:, -1], k[:, -1] = 3 * offset, 1  # adds the offset to every score, since the scale is 1/√9
    exact, rounded = (
        attention_numpy(*(a.astype(kind) for a in (q, k, v)))[1] for kind in (np.float64, np.float32)
    )
    errors.append(np.abs(exact - rounded).max())
spacing = np.spacing(offsets.astype(np.float32))  # from one float32 number to the next, at this size
assert np.mean(np.array(errors) < spacing) > 0.9 and np.mean(np.array(errors)[offsets > 100] > 1e-6) > 0.9
figures.numpy_to_pytorch.rounding(offsets, errors, spacing)

# %% [markdown]
# Each dot is one draw, the black line is the distance from one float32 number to the next, and the dashed line is 10⁻⁶.
# Near 1000, neighboring float32 numbers are {{ np.spacing(np.float32(1000)):.1e }} apart. Each score is rounded to one of
# these numbers before softmax sees it, and `exp` turns an absolute error in its argument into a relative error in its
# result. So a fixed tolerance of 10⁻⁶ rejects correct code once the scores are large. A tolerance has to fit the precision
# *and* the size of the numbers. `check` allows for the rounding of float32.

# %% [markdown]
# ## What we keep
#
# - Same equation, same numbers: PyTorch adds the computational graph, from which `backward()` finds the gradients. It
#   adds to the gradients that are there, so a training loop clears them first.
# - With a cut graph the numbers are right, but only part of the model learns. The loss can fall all the same, so test
#   which parameters a gradient reaches, with random losses.
# - An `nn.Module` lists its parameters. A plain tensor is not among them, so it is not trained, moved or saved.
# - `nn.Linear` stores (d_out, d_in) and computes x @ weightᵀ.
#
# | what | shape |
# |---|---|
# | `nn.Linear(d_in, d_out).weight` | (d_out, d_in) |
# | x | (B, T, d_model) |
# | w_q(x), w_k(x); w_v(x) | (B, T, d_k); (B, T, d_v) |
# | weights; output | (B, T, T); (B, T, d_v) |
# | a gradient | the shape of the tensor that it belongs to |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section
# 3.2. Kingma and Ba 2015, *Adam*, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980). Micikevicius et al. 2018,
# *Mixed precision training*, [arXiv:1710.03740](https://arxiv.org/abs/1710.03740). The PyTorch documentation of `nn.Linear`
# and of autograd.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To move attention to PyTorch and to learn to distrust a falling loss. The learner sees autograd as a
# short class that differentiates attention and a graph that can be cut, builds the layer that owns its projections, watches it
# find out where to look, and writes the test that finds parameters which no gradient reaches.
#
# ## Cut for 60 minutes
#
# The graph of numbers at the board, the cut graph, `attention_torch`, `SelfAttention` and the color task. Show
# `parameters_without_gradient` solved.
#
# ## Cut for 90 minutes
#
# The core. Both further parts, with `linear_from_numpy` and `as_numpy`, are homework. Let the room vote on the frozen layer
# before the training cell runs.
#
# ## Mistakes to expect
#
# - attention_torch BW3: Which of the three inputs has a gradient, and what stands between the others and the loss?
# - attention_torch AB16: Which axes does `.T` exchange when there are three?
# - attention_torch NT9: Which dtype went in, which came out, and which line changed it?
# - linear_from_numpy PJ1: Which shape does the documentation give for the weight of nn.Linear(3, 2)?
# - linear_from_numpy NT2: If I set w[0, 0] = 100 after the call, what does your layer give?
# - SelfAttention PJ2: What does your module answer to an x of zeros?
# - SelfAttention SD3: Which vectors meet in a dot product, and how many numbers has each?
# - parameters_without_gradient PG1: What is the sum of a softmax's weights, and how does it change with the scores?
# - parameters_without_gradient PG3: What is the derivative of `round`, and does autograd say None?
# - parameters_without_gradient PG18: If x requires a gradient, where does `backward()` leave one?
# - as_numpy NT10: What would be lost silently if `.numpy()` did not refuse?
# - as_numpy NT12: Which types does NumPy lack, and which of yours did you convert?
#
# ## To discuss
#
# **A colleague's loss falls nicely, and the attention maps look the same after training as before. What do you ask?** A good
# answer asks for the gradient of w_q and w_k, names at least two ways of cutting a graph, and knows why the loss can fall
# nevertheless.
#
# **Why doesn't `.numpy()` detach the tensor for you?** A good answer says that a silent cut would be the mistake of this
# lesson, built into the library, and that an explicit `detach()` can be found by reading.
#
# ## On paper
#
# Two scores s = (0, 0), values v = (10, 4), output o = p · v with p = softmax(s). Compute ∂o/∂v and ∂o/∂s. Then the same where
# the weights are detached.
#
# *Solution.* p = (½, ½), o = 7. ∂o/∂v = p = (½, ½). ∂o/∂s_j = p_j (v_j − o): (½ · 3, ½ · (−3)) = (1.5, −1.5). Detached: ∂o/∂v is
# unchanged, and ∂o/∂s does not exist, though o is still 7.
