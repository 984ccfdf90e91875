# %% [markdown]
# # 12 · Alignment: where attention came from
#
# **How can a translator that has read the whole sentence still find the one word it needs now?**
#
# **Before this lesson:** lesson 03 (queries, keys, weights) and lesson 05 (modules and training in PyTorch). You need not have met
# recurrent networks.
#
# This lesson is a side road, and lesson 09 does not need it. Take it if you want to know which problem attention was
# invented to solve, and where the word *alignment* comes from.
#
# We go back to 2014, three years before the Transformer. Translation was done by two recurrent networks: an
# **encoder** read the sentence word by word, and a **decoder** wrote the translation. All that the decoder got from
# the encoder was a single vector. You will write a recurrent network, write the two kinds of attention that let the
# decoder see more than this vector, measure how much they help, and see where two trained models look: one that
# writes words backwards, and one that translates dates.

# %% role="given"
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## A network that reads one token at a time
#
# A **recurrent network** (Elman 1990) has a state, a vector $h$ of fixed size. At each step it reads one token $x_t$,
# mixes it with the state so far, and applies tanh (the hyperbolic tangent) to every number of the result. tanh leaves
# numbers near 0 almost as they are and squeezes large ones, so that all results lie between −1 and 1:
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h + b) \qquad h_{-1} = 0$$
#
# The same $W_x$, $W_h$ and $b$ serve every step, so a network of fixed size reads sentences of any length. Whatever it wants to
# remember must survive in $h$ from step to step.

# %% [markdown]
# @predict
#
# Each token is one number, and so is the state. $W_x = 1$, $W_h = ½$, $b = 0$. The network reads 1, 0, 0. How much of
# the 1 is left in the state after the third token?
#
# - **A** nearly all of it
# - **B** about a half
# - **C** about a fifth
#
# @answer
#
# **C**: {{ states[2]:.2f }}. After the first token the state is tanh(1) = {{ states[0]:.2f }}. Each later step halves what is there, and
# tanh takes a little more: {{ states[1]:.2f }}, then {{ states[2]:.2f }}. With a larger $W_h$ the 1 would last longer. But then newer
# tokens would have to share the same numbers with it.
#
# @wrong
#
# If you said a half: that is one step. The past is multiplied by $W_h$ at *every* step.

# %% role="demo"
state, states = torch.zeros(1), []
for token in (1.0, 0.0, 0.0):
    state = torch.tanh(token * 1.0 + state * 0.5)
    states.append(state.item())
print("states:", ", ".join(f"{number:.3f}" for number in states))

# %% [markdown]
# @exercise rnn_states
#
# `x` (B, T, d), `w_x` (d, h), `w_h` (h, h), `b` (h,) → (B, T, h): the state after each token
#
# ```text
# state = zeros (B, h)
# for each token t:
#     state = tanh( x[:, t] w_x + state w_h + b )
#     keep it as result[:, t]
# ```
#
# Differentiable with respect to all four inputs. Without `nn.RNN`, `nn.RNNCell`, `torch.rnn_tanh` and their like.

# %% role="exercise" exercise="rnn_states"
def rnn_states(x: Tensor, w_x: Tensor, w_h: Tensor, b: Tensor) -> Tensor:
    """The state of a recurrent network after each token; before the first it is 0.

    x: (B, T, d). w_x: (d, h). w_h: (h, h). b: (h,).
    Returns: (B, T, h).
    Source:  Elman 1990.
    """
    # region solution
    state = x.new_zeros(x.shape[0], w_h.shape[0])
    states = []
    for t in range(x.shape[1]):
        state = torch.tanh(x[:, t] @ w_x + state @ w_h + b)
        states.append(state)
    return torch.stack(states, dim=1)
    # endregion

# %% role="check" exercise="rnn_states"
check(rnn_states)

# %% [markdown]
# `nn.RNN` computes the same, with its weights stored transposed. Now comes the question behind this lesson: how much
# does the *last* state still depend on each token? Autograd answers it. The gradient of the last state with respect
# to token t says how much the state changes when that token changes. We measure it in a network with random weights,
# as it is before training.

# %% role="payoff" exercise="rnn_states"
if passed(rnn_states):
    torch.manual_seed(10)
    layer, x = nn.RNN(8, 16, batch_first=True), torch.randn(1, 20, 8, requires_grad=True)
    states = rnn_states(x, layer.weight_ih_l0.T, layer.weight_hh_l0.T, layer.bias_ih_l0 + layer.bias_hh_l0)
    assert torch.allclose(states, layer(x)[0], atol=1e-6)
    states[0, -1].sum().backward()
    felt = x.grad[0].norm(dim=-1)
    nn.init.orthogonal_(layer.weight_hh_l0)  # turns the state, and keeps its length
    (kept,) = torch.autograd.grad(layer(x)[0][0, -1].sum(), x)
    kept = kept[0].norm(dim=-1)
    figures.cross_attention.fading(felt)

# %% [markdown]
# Token 19, the last one read, counts {{ felt[19] / felt[9]:,.0f; it > 100 }} times as much as token 9, and
# {{ felt[19] / felt[0]:,.0f; it > 10_000 }} times as much as token 0, the first one read. These are torch's default
# weights, which shrink the state at each step. With an orthogonal w_h, which turns the state and keeps its length, only
# tanh shrinks it, and token 19 counts {{ kept[19] / kept[0]:.0f; 5 < it < 1000 }} times as much as token 0. Networks with
# *gates*, learned factors
# that decide what is kept (the LSTM of Hochreiter and Schmidhuber 1997, the GRU of Cho et al. 2014), slow this fading
# down, and a gate can hold a number for a long time. But the state still has a fixed size, so in a long sentence all
# tokens compete for the same few numbers. From here on the lesson uses `nn.GRU`, a recurrent network with gates.
#
# ## One vector for a whole sentence
#
# The encoder's last state was all that the decoder received: one vector, whether the sentence had three words or
# fifty (Cho et al. 2014; Sutskever et al. 2014). The left half of the picture below shows this. Translation has a
# second difficulty: it changes the order of the words. "la voiture bleue" becomes "the blue car". The right half
# shows the idea of Bahdanau, Cho and Bengio (2015): keep *all* states of the encoder, and let the decoder look back
# at each of them.

# %% role="demo"
figures.cross_attention.two_roads()

# %% [markdown]
# A set of links like the blue ones is called an **alignment**. It has a weight for every pair of a word that is written and a word that
# was read. These weights must depend on what the decoder is about to write, because each new word needs other words of the sentence.
#
# ## A score that is learned
#
# A small network judges how well the decoder's state $q$ fits the encoder's state $k_j$ at word j (Bahdanau et al.
# 2015, section 3.1). In the terms of lesson 03, $q$ is the *query* and $k_j$ is a *key*. The paper does not have
# these names yet: it calls the small network an *alignment model* and the states of the encoder *annotations*.
#
# $$s_j = v \cdot \tanh(q\, W_q + k_j W_k) \qquad w = \operatorname{softmax}(s) \qquad c = \sum_j w_j\, k_j$$
#
# Query and key may have different widths. Two matrices bring both to $d_a$ numbers, which are added; hence the name **additive
# attention**. The vector $v$ turns the $d_a$ numbers into one score. $W_q$, $W_k$ and $v$ are learned together with the rest of the
# translator, and nobody tells it which words belong together. The result $c$ is called the **context**.
#
# What is the tanh for? Take $d_a = 2$ and $v = (1, −1)$. There are two keys. After their projection, key 0 is (1, 1)
# and key 1 is (0, 0).

# %% [markdown]
# @predict
#
# Two queries, already projected, are (0, 3) and (3, 0). tanh is steep near 0 and flat near 3. Which key does each query prefer with
# tanh, and which without?
#
# @answer
#
# With tanh, the query (0, 3) prefers key 0 and the query (3, 0) prefers key 1. Take (0, 3). For key 0 the sums are
# (1, 4), and with v = (1, −1) the score is tanh 1 − tanh 4 ≈ 0.76 − 1 = −0.24. For key 1 the sums are (0, 3), and the
# score is 0 − 1 = −1. Where the query has 3, tanh is flat and the key's 1 hardly matters. Where the query has 0, the
# key's 1 counts. So the query decides *which* of the key's numbers matter.
#
# Without tanh no query has a preference. Then the score is $v \cdot (q + k_j) = v \cdot q + v \cdot k_j$. The first
# term is the same for every key, and softmax cancels what all scores of a row share (lesson 02). The second term is 0
# for both keys here, so each gets ½.
#
# @wrong
#
# If you expected the query to matter without tanh: it does change the scores, but it changes all of them by the same
# amount, and softmax sees only their differences.

# %% role="demo" tags=["nbval-check-output"]
projected, v = torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([1.0, -1.0])
chosen = {}
for query in ((0.0, 3.0), (0.0, 0.0), (3.0, 0.0)):
    summed = torch.tensor(query) + projected
    chosen[query] = torch.softmax(torch.tanh(summed) @ v, dim=0), torch.softmax(summed @ v, dim=0)
    print("query", query, *(f"{name} {weights[0]:.2f} {weights[1]:.2f}"
                            for name, weights in zip(("  with tanh", "  without"), chosen[query], strict=True)))

# %% role="demo"
assert chosen[0.0, 3.0][0][0] > 0.6 and chosen[3.0, 0.0][0][1] > 0.6
figures.cross_attention.why_tanh(projected.numpy(), v.numpy())

# %% [markdown]
# @exercise additive_attention
#
# `query` (B, d_q), `keys` (B, T, d_h), `w_query` (d_q, d_a), `w_key` (d_h, d_a), `v` (d_a,)
# → (`context` (B, d_h), `weights` (B, T))
#
# ```text
# for each item b of the batch:
#     for each key j:
#         score[j] = sum over a of  v[a] · tanh( (query[b] w_query)[a] + (keys[b, j] w_key)[a] )
#     weights[b] = softmax of the T scores
#     context[b] = sum over j of  weights[b, j] · keys[b, j]
# ```
#
# The scores are used as they are, without a scale. Scores in the thousands must not overflow; `torch.softmax` is allowed and takes
# care of that. Both results are differentiable with respect to all five inputs. From scratch: ready-made attention is forbidden.
#
# When you are stuck, `hint(additive_attention)` in a new cell asks a question first; called again it says where to look.

# %% role="exercise" exercise="additive_attention"
def additive_attention(
    query: Tensor, keys: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """A decoder's state chooses among an encoder's states, by Bahdanau's score.

    query: (B, d_q). keys: (B, T, d_h). w_query: (d_q, d_a). w_key: (d_h, d_a). v: (d_a,).
    Returns: context (B, d_h) and weights (B, T).
    Source:  Bahdanau et al. 2015, section 3.1 and appendix A.1.2.
    """
    # region solution
    asked = (query @ w_query)[:, None]  # (B, 1, d_a): the same question to every key
    energy = torch.tanh(asked + keys @ w_key)
    scores = energy @ v
    weights = torch.softmax(scores, dim=-1)
    context = (weights[:, None] @ keys)[:, 0]
    return context, weights
    # endregion

# %% role="check" exercise="additive_attention"
check(additive_attention)

# %% [markdown]
# ## A translator in four cells
#
# The translator has two parts. The *encoder* reads the source in both directions, so that its state at each place depends on what stands
# to the left and to the right of it. The *decoder* writes one token at a time. Before we write its step in code, here is one in a picture.
# The three scores are set by hand; the weights and the context follow from them.

# %% role="demo"
figures.cross_attention.one_step()

# %% [markdown]
# From left to right: the state takes in the token written last and becomes the next state. This state is the query. It gets a score with
# each key, softmax turns the scores into weights, and the weights blend the keys into the context. State and context together choose what
# is written, and both are passed on.
#
# Bahdanau's decoder asks *before* it has taken in the last token. Luong, Pham and Manning (2015, section 3.1) take the token in first, and
# so do we: a query that knows what was just written can ask for what comes next.
#
# Now the code, in four cells: the layers, this step, a whole translation, and the training. The first cell makes the layers: `read` and
# `write` are embeddings, `start` makes the decoder's first state, and `choose` gives a score to every token that could come next. `attend`
# is your function, or None.

# %% role="demo"
class Translator(nn.Module):
    """A recurrent encoder and decoder: Bahdanau et al. 2015, appendix A, made small, with the order of Luong et al. 2015."""

    def __init__(self, n_in, n_out, attend, hidden):
        super().__init__()
        self.attend, self.begin = attend, n_out  # the id that says "begin to write"
        self.read, self.write = nn.Embedding(n_in, 32), nn.Embedding(n_out + 1, 32)
        self.encoder = nn.GRU(32, hidden, batch_first=True, bidirectional=True)
        self.start = nn.Linear(2 * hidden, hidden)
        self.decoder = nn.GRUCell(32 + 2 * hidden, hidden)
        self.choose = nn.Linear(3 * hidden, n_out)
        sizes = (hidden, 32), (2 * hidden, 32), (32,)  # d_a = 32
        self.w_query, self.w_key, self.v = (nn.Parameter(torch.randn(size) / size[0] ** 0.5) for size in sizes)

# %% [markdown]
# The second cell is the step in the picture. Without attention the context stays what it was before the first step: one vector.

# %% role="demo"
def decoder_step(model, last, state, context, keys):
    """Writes one token. Returns: scores of all tokens (B, n_out), the next state, the context, weights (B, T) or None."""
    state, weights = model.decoder(torch.cat([model.write(last), context], dim=-1), state), None
    if model.attend is not None:
        context, weights = model.attend(state, keys, model.w_query, model.w_key, model.v)
    return model.choose(torch.cat([state, context], dim=-1)), state, context, weights

# %% [markdown]
# The third cell translates a whole batch. It runs the encoder once and the decoder step by step. The first context is the
# single vector of the old translators: the last state of each direction, side by side. In training, each step is
# given the correct previous token, so that one early mistake does not spoil everything after it. This is called
# *teacher forcing*. After training, each step gets the token that the decoder itself wrote last.

# %% role="demo"
def translate(model, source, steps, target=None):
    """(B, T) ids to scores (B, steps, n_out) and a list of weights. In training the right tokens are fed back."""
    keys, final = model.encoder(model.read(source))
    context = final.transpose(0, 1).flatten(1)  # the one vector: the last state of each direction
    state, last = torch.tanh(model.start(context)), torch.full_like(source[:, 0], model.begin)
    written, maps = [], []
    for step in range(steps):
        scores, state, context, weights = decoder_step(model, last, state, context, keys)
        last = scores.argmax(dim=-1) if target is None else target[:, step]
        written.append(scores)
        maps.append(weights)
    return torch.stack(written, dim=1), maps

# %% [markdown]
# The fourth cell trains with the loop of lesson 05. Two lines are new. A schedule makes the steps small at the beginning and at the
# end of the training. And gradients longer than 1 are shortened to 1, because those of recurrent networks can become very large.

# %% role="demo"
from grader.figures import meter

torch.set_num_threads(1)  # tensors this small gain nothing from a second thread


def train(name, model, draw, steps, rate=1e-2):
    """draw() gives (source, target). To end early, press the square in the toolbar: what was learned is kept."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for step in meter.training_steps(name, steps):
        source, target = draw()
        scores, _ = translate(model, source, target.shape[1], target)
        step.loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        step.loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()

# %% [markdown]
# ## A task where attention counts: write it backwards
#
# We begin with a task whose alignment we know. The source is up to 12 different letters in random order, and the target is the same
# letters from the last to the first. Nothing is translated, everything has to be kept, and there is one right place to look at each step.

# %% role="demo"
def letters(count, length):
    """(count, length) ids of different letters in random order."""
    return torch.rand(count, 26).argsort(dim=-1)[:, :length]


def backwards():
    source = letters(64, 2 * int(torch.randint(1, 7, ())))
    return source, source.flip(1)


@torch.no_grad()
def shares_right(model, lengths=range(2, 17, 2)):
    """The share of letters that are written in their right place, by the length of the sequence."""
    tests = {length: letters(256, length) for length in lengths}
    return {length: (translate(model, x, length)[0].argmax(dim=-1) == x.flip(1)).float().mean().item() for length, x in tests.items()}

# %% [markdown]
# We train one model with your function for 400 steps. Then it writes 12 letters backwards, and we look at its weights: a row for each
# letter written, a column for each letter read. The first letter written is the last one read, so the right map is a line from the upper
# right corner to the lower left one. Nobody tells the model about this line: all that it is given is pairs of words.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    torch.manual_seed(0)
    writer, source = Translator(26, 26, additive_attention, 32), letters(256, 12)
    with torch.no_grad():
        before = torch.stack(translate(writer, source, 12)[1], dim=1)
    train("backwards", writer, backwards, 400)
    with torch.no_grad():
        scores, after = translate(writer, source, 12)
    after = torch.stack(after, dim=1)  # (256, 12, 12): sequence, letter written, letter read
    on_line = after.flip(2).diagonal(dim1=1, dim2=2).mean().item()
    assert on_line > 0.7 > before.max()
    names = [["abcdefghijklmnopqrstuvwxyz"[i] for i in row] for row in (source[0], scores[0].argmax(dim=-1))]
    figures.cross_attention.reversed_letters(*names, before[0], after[0])

# %% [markdown]
# On average over 256 sequences {{ on_line:.0% }} of a row's weight lies on the right letter. This is an alignment, and it was learned from
# pairs alone. The order within the step matters for the map: three models with Bahdanau's order, trained for 600 steps, also write more
# than 90% of 12 letters correctly, but only 30% of their weight lies on the line, and about half of it on the letter just written.
#
# ## The bottleneck, measured
#
# How much does attention help here? We vary three things: with attention or with one vector, the width of the vectors, and the number of
# training steps.

# %% [markdown]
# @predict
#
# One vector of 2 · 32 numbers has to carry 10 letters. After 400 steps of training the decoder writes fewer than
# half of them in the right place. What would raise that number? More than one answer may be right.
#
# - **A** nothing: ten letters do not fit into 64 numbers
# - **B** twice as many steps
# - **C** twice the width
#
# @answer
#
# **B** and **C** both help: the share rises from {{ shares["one vector, 400 steps"][10]:.0% }} to
# {{ shares["one vector, 800 steps"][10]:.0% }} with more steps, and to {{ shares["one vector, twice as wide, 400 steps"][10]:.0% }} with
# more width. So the letters do fit. What is hard is to *learn* how to put them into the vector and get them out again. Attention at the
# small width reaches {{ shares["attention, 400 steps"][10]:.0% }} in 400 steps. With attention the model only has to learn where each
# letter is. It does not have to store the letter in a vector.
#
# @wrong
#
# If you chose A: 64 numbers of 32 bits have room for far more than ten letters. So at this length the size of the vector is not the
# limit.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    plans = {"one vector, 400 steps": (32, 400), "one vector, twice as wide, 400 steps": (64, 400), "one vector, 800 steps": (32, 800)}
    shares = {"attention, 400 steps": shares_right(writer)}  # the model of the map
    for name, (hidden, steps) in plans.items():
        torch.manual_seed(0)
        shares[name] = shares_right(train(name, Translator(26, 26, None, hidden), backwards, steps))
    figures.cross_attention.bottleneck(shares, longest=12)
    attending, short, wider, longer = (row[10] for row in shares.values())
    assert attending > short + 0.4 and attending > max(wider, longer) + 0.1 and shares["attention, 400 steps"][16] > 0.8

# %% [markdown]
# For two letters one vector is enough. With every further letter it becomes harder to learn how to pack them all into the same numbers, so
# the dashed curves, those of one vector, fall early. The solid one, with attention, stays high, even beyond the lengths of the training.
# Each curve is a single training, so we ran everything with three seeds: at ten letters attention had 97% to 99%, one vector 44% to 47%,
# the wider one 54% to 58%, and the one with 800 steps 57% to 63%. After 1,200 steps it had at most 72%. Bahdanau et al. drew similar
# curves for real sentences (their figure 2).
#
# ## A translator of dates
#
# The same four cells can translate. The source is a date such as "3 March 2021", "Mar 3, 2021" or "03.03.2021", and the target is
# "2021-03-03", one character at a time. In dates with dots the day comes first. Short dates are padded with spaces to 18 characters. There
# is no mask, so your function can look at these spaces, too.
#
# Attention is optional for this task. A date is short, and one vector learns to carry it: at the end of the lesson a translator without
# attention gets nearly all dates right. We show dates for two other reasons. You know where you would look, so you can judge where the
# model looks. And some of what is written needs nothing from the text, so we can see where weights go that have nothing to find.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    from grader.data import dates

    drawn, fresh = dates.written(seed=0), dates.fresh(1000)  # none of the fresh ones is in the training

    def date_pairs():
        return dates.encoded([next(drawn) for _ in range(64)])

    def score(model):
        """How many of the fresh dates are right to the last character, and the weights (1000, 10, 18) or None."""
        source, target = dates.encoded(fresh)
        with torch.no_grad():
            written, maps = translate(model, source, 10)
        right = (written.argmax(dim=-1) == target).all(dim=-1).sum().item()
        return right, None if maps[0] is None else torch.stack(maps, dim=1)

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    torch.manual_seed(0)
    translator = train("dates", Translator(*dates.SIZES, additive_attention, 64), date_pairs, 200, rate=1.5e-2)
    right, maps = score(translator)
    print(f"{right} of {len(fresh)} fresh dates right to the last character")

# %% [markdown]
# @predict
#
# The translator reads "3 March 2021" and six spaces, and writes "2021-03-03". Where does it look while it writes the year? And where
# does it look while it writes a hyphen, for which it needs nothing from the text?
#
# @answer
#
# For the year it looks at the year, at the end of the text: on average over the fresh dates, the largest weight is
# {{ largest[3]:.0% }} while it writes the last digit of the year. While it writes the first hyphen, the largest weight is only
# {{ largest[4]:.0% }}. The weights must sum to 1 even when there is nothing to find, so they are spread thinly
# over places where looking does no harm; in short dates {{ sink:.0%; it > 0.4 }} of the weight lies on the padding.
#
# @wrong
#
# If you said that for a hyphen it looks nowhere: the weights of softmax always sum to 1, so they have to go somewhere.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    texts = ["3 March 2021", "Mar 3, 2021"]
    with torch.no_grad():
        scores, weights = translate(translator, dates.encoded([(text, "0000-00-00") for text in texts])[0], 10)
    written = [dates.decoded(row) for row in scores.argmax(dim=-1)]
    figures.cross_attention.alignments(texts, written, torch.stack(weights, dim=1), "The decoder looks at the part it is writing")
    largest = maps.max(dim=-1).values.mean(dim=0)  # (10,): of each character's row
    short = [i for i, (text, _) in enumerate(fresh) if len(text) < 15]
    sink = sum(maps[i, 4, len(fresh[i][0]):].sum().item() for i in short) / len(short)
    assert largest[3] > 0.9 and largest[4] < 0.5

# %% [markdown]
# For the year it looks at the end of the text, and then it goes back for month and day, so the order is exchanged as in "voiture bleue".
# Not every row has its weight on the very character that it writes, because an encoder's state also knows the characters around it. For
# the same reason a map of weights shows where a model looks, and not always which character made it decide.
#
# Read nothing into the rows of the hyphens. Where their weight goes is a matter of chance: we trained with three seeds, and 61%, 47% and
# 7% of the first hyphen's weight lay on the padding of short dates. The rest lay here and there in the text. Large language models
# settle on one place for weight that finds nothing, mostly the first token of the text. It is called an **attention sink** (Xiao et al.
# 2024).
#
# ## Break it on purpose: no tanh, and no attention
#
# First we take the trained translator and remove only its tanh. Then we train one translator without tanh from the start, and one without
# any attention.

# %% [markdown]
# @predict
#
# How many of 1000 dates does a translator get right if it is trained *without tanh* from the start?
#
# - **A** nearly none
# - **B** fewer than half
# - **C** more than three quarters
#
# @answer
#
# **C**: {{ scored["no tanh from the start"]:, }}. Its weights are the same at every step, so attention has become one fixed summary of
# the text: one vector again. And one vector carries most of what is needed here: the translator with no attention at all gets
# {{ scored["no attention"]:, }}. Dates are short. The curves above show how soon this becomes hard to learn as sequences grow longer.
#
# @wrong
#
# If you chose A: without tanh the text still reaches the decoder, as one fixed summary, and the decoder's own state knows what it has
# already written. Only the *query* has lost its effect.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    def without_tanh(query, keys, w_query, w_key, v):
        weights = torch.softmax(((query @ w_query)[:, None] + keys @ w_key) @ v, dim=-1)
        return (weights[:, None] @ keys)[:, 0], weights

    translator.attend, scored = without_tanh, {"with tanh": right}
    scored["tanh removed afterwards"], _ = score(translator)
    for name, attend in (("no tanh from the start", without_tanh), ("no attention", None)):
        torch.manual_seed(0)
        scored[name], weights = score(train(name, Translator(*dates.SIZES, attend, 64), date_pairs, 200, rate=1.5e-2))
        if weights is not None:
            assert torch.allclose(weights[:, 0], weights[:, 9], atol=1e-5)  # every step looks at the same place
    assert scored["no tanh from the start"] > 750 and scored["no attention"] > 900
    for name, count in scored.items():
        print(f"{name:24} {count:5,} of 1,000 dates right")

# %% [markdown]
# Without its tanh the trained translator gets {{ scored["tanh removed afterwards"]:, }} dates right, because it had
# learned to rely on weights that change from step to step. A translator trained without tanh finds another way, here
# through its recurrent state. With three seeds, 80% to 88% of the dates came out right without tanh, and 96% to 98% without any
# attention. So a good result does not show that attention did the work. To see whether attention
# does something, change the query: the weights have to change with it.

# %% role="demo"
explain("LG2")

# %% [markdown]
# ## Luong: a product in place of a sum
#
# Luong, Pham and Manning (2015, section 3.1) tried simpler scores. In their "general" one a matrix stands between query and key:
#
# $$s_j = q\, W\, k_j$$
#
# There is no tanh and no $v$, and nothing cancels, because the query *multiplies* the key. For one query and T keys
# it takes two matrix products, $q\, W$ and then its product with all keys, while the additive score computes T · d_a
# values of tanh for each query. $W$ maps the query into the space of the keys, so the two may differ in width. With
# q = (1, 2), k = (1, 0, 1) and the W below, the middle column of W has no effect, since the key's middle number is 0:

# %% role="demo" tags=["nbval-check-output"]
q, k = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0, 1.0])
W = torch.tensor([[3.0, 9.0, 0.0], [1.0, 9.0, -1.0]])
print("q W   =", (q @ W).tolist())
print("q W k =", (q @ W @ k).item())

# %% [markdown]
# @exercise luong_attention
#
# `query` (B, d_q), `keys` (B, T, d_h), `w` (d_q, d_h) → (`context` (B, d_h), `weights` (B, T))
#
# ```text
# for each item b of the batch:
#     for each key j:
#         score[j] = sum over i and h of  query[b, i] · w[i, h] · keys[b, j, h]
#     weights and context as in additive_attention
# ```
#
# No scale here either. Scores of ±10,000 must not overflow; results are differentiable with respect to all three inputs. From
# scratch, as before.

# %% role="exercise" exercise="luong_attention"
def luong_attention(query: Tensor, keys: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """A decoder's state chooses among an encoder's states, by Luong's "general" score.

    query: (B, d_q). keys: (B, T, d_h). w: (d_q, d_h).
    Returns: context (B, d_h) and weights (B, T).
    Source:  Luong et al. 2015, section 3.1.
    """
    # region solution
    asked = query @ w  # (B, d_h): the query in the language of the keys
    scores = (keys @ asked[:, :, None])[..., 0]
    weights = torch.softmax(scores, dim=-1)
    context = (weights[:, None] @ keys)[:, 0]
    return context, weights
    # endregion

# %% role="check" exercise="luong_attention"
check(luong_attention)

# %% [markdown]
# When every word is a one-hot vector (1 in a place of its own, 0 elsewhere), $W$ is a table that you can read: entry (i, h) says how well
# English word i and French word h belong together. Here three English and four French words are written into it by hand, as in a small
# dictionary. Your function then aligns "la voiture bleue".

# %% role="payoff" exercise="luong_attention"
if passed(luong_attention):
    english, vocabulary = ["the", "blue", "car"], ["bleue", "la", "le", "voiture"]
    sentence = ["la", "voiture", "bleue"]
    w = torch.zeros(3, 4)
    for word, translation in (("the", "la"), ("the", "le"), ("blue", "bleue"), ("car", "voiture")):
        w[english.index(word), vocabulary.index(translation)] = 4
    keys = torch.eye(4)[[vocabulary.index(word) for word in sentence]]
    _, weights = luong_attention(torch.eye(3), keys.expand(3, 3, 4), w)
    figures.cross_attention.dictionary(w, weights, english, vocabulary, sentence)

# %% [markdown]
# The links cross where the two languages have their words in a different order. A trained model learns such a matrix for states, which
# are not one-hot, so it cannot be read as easily.
#
# One more step takes us back to lesson 03. There the vector x of each token was projected twice, q = x W_q and k = x W_k, and the score
# was $q \cdot k / \sqrt{d_k}$. Written out it is $x_i\, (W_q W_k^\top / \sqrt{d_k})\, x_j$. So this $W$, in `luong_attention`, must give
# the very weights of lesson 03:

# %% role="payoff" exercise="luong_attention"
if passed(luong_attention):
    torch.manual_seed(10)
    x, w_q, w_k = torch.randn(5, 6), torch.randn(6, 4), torch.randn(6, 4)
    expected = torch.softmax((x @ w_q) @ (x @ w_k).T / 4**0.5, dim=-1)  # lesson 03
    _, weights = luong_attention(x, x.expand(5, 5, 6), w_q @ w_k.T / 4**0.5)
    print(f"largest difference of a weight: {(weights - expected).abs().max():.0e}")
    assert torch.allclose(weights, expected, atol=1e-5)

# %% [markdown]
# So scaled dot-product attention uses Luong's score, with $W$ written as a product of two narrow matrices and a fixed
# scale. Three more things change around it. Values get a projection of their own. Every token is a query, and all of
# them ask at once. And there is no recurrent network any more, which is what the title "Attention is all you need" is
# about (Vaswani et al. 2017).
#
# ## What we keep
#
# - A recurrent state has a fixed size, and what it holds of early tokens fades. With attention the decoder looks back
#   at every state, so one vector no longer has to carry the whole sentence.
# - Weights have to depend on the query. Where softmax cancels the query, as without tanh, attention looks at the same
#   place at every step.
# - Additive: $v \cdot \tanh(q W_q + k_j W_k)$. General: $q\,W\,k_j$. Both are learned from pairs of sentences,
#   without given alignments.
# - The weights of softmax always sum to 1. When there is nothing to read, they go where it does no harm, to a sink.
# - The context is a weighted sum of the keys themselves. Separate values came later.
#
# | what | shape |
# |---|---|
# | query: the decoder's state | (B, d_q) |
# | keys: the encoder's states | (B, T, d_h) |
# | scores, weights | (B, T) |
# | context | (B, d_h) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# It shows the problem for which attention was invented, so that query, key and alignment get a meaning. It also shows that a model can
# reach its goal without using its attention, which is a good warning to those who read weights as explanations.
#
# ## Cut for 60 minutes
#
# `rnn_states` on the board only. `additive_attention`, one step of the decoder drawn at the board, and from the solved notebook the
# map and the curves of the letters. Leave out the dates.
#
# ## Cut for 90 minutes
#
# Add `rnn_states` as an exercise and the comparison without tanh. Leave Luong for home.
#
# ## Mistakes to expect
#
# - rnn_states RN11: After your loop has read one token, which state stands at index 0 of your result?
# - rnn_states RN6: How many states does a sentence of five tokens have, and how many do you return?
# - additive_attention LG2: Replace the query by another one. Do your weights change?
# - additive_attention LG1: Over which axis does your softmax run, and how long is it?
# - luong_attention SM2: Do the weights of one sentence sum to 1, or the weights of one position over the batch?
# - luong_attention AL6: Which of your inputs could you delete without changing the result?
#
# ## To discuss
#
# - Nearly all of 1000 dates come out right with one vector. Why use attention at all? (A good answer: a date fits
#   into one vector, and writing backwards shows how soon that becomes hard to learn; attention also learns in fewer
#   steps and shows where it looks.)
# - Is the map of weights an explanation of the translation? (A good answer: it says where the decoder looked, not what it used. States
#   know their neighbors, a hyphen's row means nothing, and a model without useful weights can translate as well.)
#
# ## On paper
#
# One number each: W_x = 1, W_h = 1, no bias and no tanh. What is the state after reading 1, 2, 3? What after 3, 2, 1? What does
# that say about such a state? Solution: 6 both times. Without a bend and with W_h = 1 the state is a sum, so the order is lost.
