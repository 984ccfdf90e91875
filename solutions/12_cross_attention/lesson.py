# %% [markdown]
# # 12 · Cross-attention: one sequence looks into another
#
# **How can a translator that has read the whole sentence still find the one word it needs now?**
#
# **Before this lesson:** lesson 03 (queries, keys, weights), lesson 05 (modules and training in PyTorch); for the last part,
# lessons 06, 07 and 09.
#
# This lesson is about **cross-attention**: the queries come from one sequence, the keys and values from another. Models use
# it to write one thing while they look at another. The decoder of a translator looks at the sentence that
# the encoder has read (Vaswani et al. 2017). A speech recognizer writes words while it looks at sound (Radford et al.
# 2023). An image generator paints while it looks at the words of a prompt (Rombach et al. 2022).
#
# It is also how attention began, in 2014, three years before the Transformer (Bahdanau et al., ICLR 2015).

# %% role="given"
import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution
from grader.figures import meter

# %% [markdown]
# ## A network that reads one token at a time
#
# Neural translators were **recurrent networks** (RNNs; Elman 1990). Such a network has a **hidden state**, a vector $h$ of
# fixed size. At each step it reads one token $x_t$ and mixes it with the state so far:
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h + b) \qquad h_{-1} = 0$$
#
# tanh leaves numbers near 0 almost as they are and squeezes large ones, so that all results lie between −1 and 1. The same
# $W_x$, $W_h$ and $b$ serve every step, so the network reads sentences of any length. Whatever it wants to remember must
# survive in $h$.

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
# **C**: {{ states[2]:.2f }}. After the first token the state is tanh(1) = {{ states[0]:.2f }}. Each later step halves what is
# there, and tanh takes a little more: {{ states[1]:.2f }}, then {{ states[2]:.2f }}.
#
# @wrong
#
# One later step leaves about a half; here there are two.

# %% role="demo" tags=["hide-input"]
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
# How much does the *last* state still depend on each token? Its gradient with respect to a token says how much it changes
# when that token changes. The folded cell measures it with your function, in eight networks that have not been trained.

# %% role="payoff" exercise="rnn_states" tags=["hide-input"]
if passed(rnn_states):
    def felt(layer, x):
        states = rnn_states(x, layer.weight_ih_l0.T, layer.weight_hh_l0.T, layer.bias_ih_l0 + layer.bias_hh_l0)
        assert torch.allclose(states, layer(x)[0], atol=1e-6)  # nn.RNN computes the same
        (gradient,) = torch.autograd.grad(states[0, -1].sum(), x)
        return gradient[0].norm(dim=-1)

    curves = {"torch's default weights": [], "an orthogonal $W_h$": []}
    for seed in range(8):
        torch.manual_seed(seed)
        layer, x = nn.RNN(8, 16, batch_first=True), torch.randn(1, 20, 8, requires_grad=True)
        curves["torch's default weights"].append(felt(layer, x))
        nn.init.orthogonal_(layer.weight_hh_l0)  # turns the state, and keeps its length
        curves["an orthogonal $W_h$"].append(felt(layer, x))
    default, orthogonal = ([(curve[19] / curve[0]).item() for curve in each] for each in curves.values())
    figures.cross_attention.token_influence(curves)

# %% [markdown]
# With torch's default weights, token 19, the last one read, counts between {{ min(default) / 1e6:.1f; it > 0.1 }} million and
# {{ max(default) / 1e6:.0f; it > 10 }} million times as much as token 0. This is the **vanishing gradient**, here through time: what
# is far away can hardly be learned. With an orthogonal $W_h$, which keeps the length of the state, only tanh shrinks it, and the
# factor is {{ min(orthogonal):.0f; it > 10 }} to {{ max(orthogonal):.0f; it < 1000 }}. Networks with *gates*, numbers between 0 and 1
# that say how much of the old state stays (LSTM, Hochreiter and Schmidhuber 1997; GRU, Cho et al. 2014), keep things longer
# than the plain network. From here on we use `nn.GRU`. But one limit stays: the state has a fixed size.
#
# ## One vector for a whole sentence
#
# A translator without attention had two such networks (Cho et al. 2014; Sutskever et al. 2014). An **encoder** read the sentence, and
# a **decoder** wrote the translation. All that the decoder got was the encoder's last state: one vector, whether the sentence had
# three words or fifty. This is the **bottleneck**, on the left of the picture.

# %% role="demo"
figures.cross_attention.two_roads()

# %% [markdown]
# The right half shows the idea of Bahdanau, Cho and Bengio (2015): keep *all* states of the encoder, and let the decoder
# look back at each of them. The links are called an **alignment**. They cross here, because French puts *bleue* after
# *voiture*.
#
# ## A score that is learned
#
# The query $q$ is a state of the decoder. The keys are the encoder's states; $k_j$ is the one at word j. How well does the
# query fit each key? A feed-forward network with one hidden layer gives the score (Bahdanau et al. 2015, section 3.1):
#
# $$s_j = v \cdot \tanh(q\, W_q + k_j W_k) \qquad w = \operatorname{softmax}(s) \qquad c = \sum_j w_j\, k_j$$
#
# Query and key may have different widths. Two matrices bring both to $d_a$ numbers, which are added; hence the name
# **additive attention**. The vector $v$ turns the $d_a$ numbers into one score. All three are learned together with the
# translator. The result $c$ is called the **context**.
#
# Without the tanh the score is $v \cdot q' + v \cdot k_j'$, with $q'$ and $k_j'$ for the projections. The
# first term is the same for every key, and softmax cancels what all scores of a row share. So the query would have no say.
# Take two keys that are (1, ½) and (0, 0) after $W_k$, and queries that, after $W_q$, go from (0, 3) through (0, 0) to (3, 0):

# %% role="demo"
projected, v = torch.tensor([[1.0, 0.5], [0.0, 0.0]]), torch.tensor([1.0, -1.0])  # two keys after W_k, and v
figures.cross_attention.why_tanh(projected.numpy(), v.numpy())

# %% [markdown]
# @exercise additive_attention
#
# `query` (B, d_q), `keys` (B, T, d_h), `w_query` (d_q, d_a), `w_key` (d_h, d_a), `v` (d_a,)
# → (`context` (B, d_h), `weights` (B, T))
#
# The scores are used as they are, without a scale. Scores in the thousands must not overflow; `torch.softmax` is allowed and takes
# care of that. Both results are differentiable with respect to all five inputs. From scratch: ready-made attention is forbidden.

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
# ## A product in place of the sum
#
# Luong, Pham and Manning (2015, section 3.1) tried simpler scores. Their "general" one has no tanh and no $v$, and one matrix $W$,
# (d_q, d_h), is all that is learned. Here the query multiplies the keys, so softmax cannot cancel it. Which score do these shapes
# leave?

# %% [markdown]
# @exercise luong_attention
#
# `query` (B, d_q), `keys` (B, T, d_h), `w` (d_q, d_h) → (`context` (B, d_h), `weights` (B, T))
#
# Each score is a single product of the query, `w` and a key, without a scale. Scores of ±10,000 must not overflow; results are
# differentiable with respect to all three inputs. From scratch, as before.

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
# The score is $s_j = q\, W\, k_j$: $W$ brings the query into the space of the keys. This is nearly the attention of lesson 03. There the
# score of two tokens was $q \cdot k / \sqrt{d_k}$ with q = x W_q and k = y W_k. Written out it is
# $x\, (W_q W_k^\top / \sqrt{d_k})\, y$: Luong's score, with $W$ as a product of two narrow matrices. Your function gives the same weights:

# %% role="payoff" exercise="luong_attention"
if passed(luong_attention):
    torch.manual_seed(10)
    x, y, w_q, w_k = torch.randn(5, 6), torch.randn(7, 6), torch.randn(6, 4), torch.randn(6, 4)
    expected = torch.softmax((x @ w_q) @ (y @ w_k).T / 4**0.5, dim=-1)  # lesson 03: 5 queries, 7 keys
    _, weights = luong_attention(x, y.expand(5, 7, 6), w_q @ w_k.T / 4**0.5)
    print(f"largest difference of a weight: {(weights - expected).abs().max():.0e}")
    assert torch.allclose(weights, expected, atol=1e-5)

# %% [markdown]
# ## A translator, step by step
#
# Here is one step of a translator's decoder. The scores are set by hand.

# %% role="demo"
figures.cross_attention.one_step()

# %% [markdown]
# The GRU takes the old state, the word written last and the last context, and returns the next state. This state is the
# query: it gets a score with each key, softmax turns the scores into weights, and the weights blend the keys into the
# context. State and context together choose the next word. (This is Luong's order. In Bahdanau's decoder the *old* state asks.)
#
# `attend` is your function, or None for a translator without attention, whose context never changes:

# %% role="demo"
def decoder_step(model, last, state, context, keys):
    """Writes one token. Returns: scores of all tokens (B, n_out), the next state, the context, weights (B, T) or None."""
    state, weights = model.decoder(torch.cat([model.write(last), context], dim=-1), state), None
    if model.attend is not None:
        context, weights = model.attend(state, keys, model.w_query, model.w_key, model.v)
    return model.choose(torch.cat([state, context], dim=-1)), state, context, weights

# %% [markdown]
# The folded cell holds the rest: the layers, a whole translation (in training each step is given the *right* previous word,
# which is called **teacher forcing**), and a training loop as in lesson 05. The encoder is **bidirectional**: one GRU reads
# from left to right, another from right to left, and a key holds the states of both.

# %% role="demo" tags=["hide-input"]
torch.set_num_threads(1)  # a second thread gains nothing here


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
# ## Three French words
#
# The next folded cell makes a small **parallel corpus**: sentences in two languages that mean the same. A sentence is a list of one to
# three noun phrases. Each French word has one English word, but not always in the same place, and the adjectives agree with their
# noun. *voiture bleue* occurs in the training, but never right after *la*. All sentences of a batch are equally long. (Real ones are
# padded, and masked: lesson 06.)

# %% role="demo" tags=["hide-input"]
NOUNS = {
    "voiture": ("f", "car"), "maison": ("f", "house"), "fleur": ("f", "flower"), "porte": ("f", "door"), "table": ("f", "table"),
    "chat": ("m", "cat"), "chien": ("m", "dog"), "livre": ("m", "book"), "train": ("m", "train"), "jardin": ("m", "garden"),
}
BEHIND = (("bleu", "bleue", "blue"), ("rouge", "rouge", "red"), ("vert", "verte", "green"),
          ("noir", "noire", "black"), ("blanc", "blanche", "white"))
BEFORE = (("petit", "petite", "small"), ("grand", "grande", "big"))
ARTICLES = (("le", "la", "the"), ("un", "une", "a"))
SHAPES = ("RNA", "RBN", "RBNA", "RN")  # R article, B adjective before the noun, N noun, A adjective behind it
SHARED = (*BEHIND, *BEFORE, *ARTICLES)
FRENCH = sorted({"et", *NOUNS, *(word for row in SHARED for word in row[:2])})
ENGLISH = sorted({"and", *(english for _, english in NOUNS.values()), *(row[2] for row in SHARED)})


def sentence(rng, shapes):
    """(French words, English words, for each English word the place of its French one)."""
    source, target, places = [], [], []
    for shape in shapes:
        if source:
            source, target, places = [*source, "et"], [*target, "and"], [*places, len(source)]
        noun, begin = rng.choice(list(NOUNS)), len(source)
        gender, pick = "mf".index(NOUNS[noun][0]), {"R": ARTICLES, "B": BEFORE, "A": BEHIND}
        words = {kind: rng.choice(rows) for kind, rows in pick.items()} | {"N": (noun, noun, NOUNS[noun][1])}
        source = source + [words[kind][gender] for kind in shape]
        english = [kind for kind in "RBAN" if kind in shape]  # English puts every adjective before the noun
        target = target + [words[kind][2] for kind in english]
        places = places + [begin + shape.index(kind) for kind in english]
    return source, target, places


def phrases(rng, count=64, longest=3, exactly=None):
    """A batch of sentences of one shape: ids (count, T) of both languages, and the places (count, T)."""
    shapes, rows = [rng.choice(SHAPES) for _ in range(exactly or rng.randint(1, longest))], []
    while len(rows) < count:
        row = sentence(rng, shapes)
        if "la voiture bleue" not in " ".join(row[0]):
            rows.append(row)
    source, target, places = zip(*rows, strict=True)
    return (torch.tensor([[FRENCH.index(word) for word in row] for row in source]),
            torch.tensor([[ENGLISH.index(word) for word in row] for row in target]), torch.tensor(places))

# %% role="demo" tags=["nbval-check-output"]
rng = random.Random(5)
for shapes in (["RNA"], ["RBN", "RNA"], ["RN", "RBNA", "RBN"]):
    source, target, _ = sentence(rng, shapes)
    print(" ".join(source), "→", " ".join(target))

# %% [markdown]
# @predict
#
# The translator is trained for 400 steps. Then it reads *la voiture bleue*, which it has never read. What will it write, and at
# which French word will it look while it writes *blue*?
#
# @answer
#
# It writes *{{ said; it == "the blue car" }}*. While it writes *blue*, {{ small[1][2]:.0%; it > 0.5 }} of the weight lies on
# *bleue*, the last word. Then it writes *car* and looks back at *voiture*, with {{ small[2][1]:.0%; it > 0.5 }}. The phrase is
# new, but its words are known, and so is the rule that English puts the adjective first.
#
# @wrong
#
# A word-by-word translator would write *the car blue*.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    torch.manual_seed(0)
    rng = random.Random(0)
    translator = train("with attention", Translator(len(FRENCH), len(ENGLISH), additive_attention, 32), lambda: phrases(rng)[:2], 400)

    @torch.no_grad()
    def read(words):
        scores, weights = translate(translator, torch.tensor([[FRENCH.index(word) for word in words.split()]]), len(words.split()))
        return words.split(), [ENGLISH[i] for i in scores[0].argmax(dim=-1)], torch.stack(weights, dim=1)[0]

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    shown = [read("la voiture bleue"), read("un petit chat noir et la maison blanche")]
    said, small = " ".join(shown[0][1]), shown[0][2].tolist()
    figures.cross_attention.word_alignment(shown, "In most rows the decoder looks at the word that it translates")

# %% [markdown]
# Nobody told the translator which words belong together. We trained it with five seeds: each time it wrote *the blue car*, and each
# of these words gave its largest weight to its French word. Not every row is clear: on the right, *a* gives only
# {{ shown[1][2][0, 0].item():.0%; it < 0.5 }} of its weight to *un*. An encoder's state also knows the words around it, so the
# decoder may find what it needs at another place.
#
# ## What attention saves
#
# How much does attention help? We train the translator without it for as many steps, and let both translate longer and longer lists.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    torch.manual_seed(0)
    rng = random.Random(0)
    old = train("one vector", Translator(len(FRENCH), len(ENGLISH), None, 32), lambda: phrases(rng)[:2], 400)

    @torch.no_grad()
    def share_right(model, count, rounds=10):
        """The share of words that are right, in sentences of so many noun phrases."""
        rng, right = random.Random(99), 0.0
        for _ in range(rounds):
            source, target, _ = phrases(rng, exactly=count)
            right += (translate(model, source, target.shape[1])[0].argmax(dim=-1) == target).float().mean().item() / rounds
        return right

    readers = {"attention": translator, "one vector": old}
    shares = {name: {count: share_right(model, count) for count in range(1, 6)} for name, model in readers.items()}
    figures.cross_attention.bottleneck(shares, longest=3)
    assert shares["attention"][2] > 0.9 and shares["attention"][2] > shares["one vector"][2] + 0.2

# %% [markdown]
# For one noun phrase, one vector is enough. For two it gets {{ shares["one vector"][2]:.0%; it < 0.8 }} of the words right, and for
# three {{ shares["one vector"][3]:.0%; it < 0.6 }}. With attention it gets {{ shares["attention"][2]:.0%; it > 0.9 }} and
# {{ shares["attention"][3]:.0%; it > 0.8 }}. Over five seeds, one vector had 41% to 50% for three phrases, attention 95% to 100%. In
# four times as many steps one vector learns two phrases (99%), in twelve times as many three (98%, one seed): here it lacks time, not
# room. Beyond the lengths of the training both get worse.
#
# ## From here to today
#
# The Transformer keeps encoder, decoder and attention (Vaswani et al. 2017). Keys and values get projections of their own. In training
# all queries ask at once. And the recurrent networks are gone, which is what the title "Attention is all you need" is about.
# Cross-attention is lesson 07's module with two inputs. Here one with a single head stands in a small Transformer for the same
# corpus; `nn.MultiheadAttention` is torch's module of this kind:

# %% role="demo"
def look_across(model, source, before, hidden=None):
    """Scores of all tokens (B, T_q, n_out), and the weights (B, T_q, T_k). before: the words written so far.

    hidden: (B, T_k) bool, True for a word at which the decoder may not look; the encoder reads it all the same.
    """
    encoder = model.encode(source)  # (B, T_k, d_model), by self-attention over the whole source
    decoder = model.decode(before)  # (B, T_q, d_model), by causal self-attention
    found, weights = model.attention(decoder, encoder, encoder, key_padding_mask=hidden)  # query, key, value
    return model.choose(decoder + found), weights

# %% [markdown]
# The output is as long as the decoder's sequence. Cross-attention needs no causal mask, since the whole source may be
# seen. The decoder's own self-attention still has one. The folded cell holds the layers, and trains them for 400 steps.

# %% role="demo" tags=["hide-input"]
class SmallTransformer(nn.Module):
    """One layer of Vaswani et al. 2017 for each side, with its norms in front (lesson 09)."""

    def __init__(self, n_in, n_out, d_model=64, longest=32):
        super().__init__()
        self.begin = n_out  # the id that says "begin to write"
        self.read, self.write, self.place = (nn.Embedding(n, d_model) for n in (n_in, n_out + 1, longest))
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        self.reader = nn.TransformerEncoderLayer(d_model, 4, 2 * d_model, **options)
        self.own = nn.MultiheadAttention(d_model, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(d_model, 1, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.choose = nn.Sequential(nn.LayerNorm(d_model), nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, n_out))

    def encode(self, source):
        return self.norms[0](self.reader(self.read(source) + self.place.weight[: source.shape[1]]))

    def decode(self, before):
        x = self.write(before) + self.place.weight[: before.shape[1]]
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        y = self.norms[1](x)
        return self.norms[2](x + self.own(y, y, y, attn_mask=future, need_weights=False)[0])


torch.manual_seed(0)
rng, transformer = random.Random(0), SmallTransformer(len(FRENCH), len(ENGLISH))
optimizer = torch.optim.Adam(transformer.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=400)
for step in meter.training_steps("Transformer", 400):
    source, target, _ = phrases(rng)
    before = F.pad(target[:, :-1], (1, 0), value=transformer.begin)  # teacher forcing, for all places at once
    step.loss = F.cross_entropy(look_across(transformer, source, before)[0].flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    step.loss.backward()
    nn.utils.clip_grad_norm_(transformer.parameters(), 1.0)
    optimizer.step()
    schedule.step()


@torch.no_grad()
def across(words, hidden=""):
    """As `read` above: the words read, the words written one after the other, and the weights (T_q, T_k)."""
    source, before = torch.tensor([[FRENCH.index(word) for word in words.split()]]), torch.tensor([[transformer.begin]])
    out_of_sight = torch.tensor([[word == hidden for word in words.split()]])
    for _ in words.split():
        scores, weights = look_across(transformer, source, before, out_of_sight)
        before = torch.cat([before, scores[:, -1:].argmax(dim=-1)], dim=1)
    return words.split(), [ENGLISH[i] for i in before[0, 1:]], weights[0]

# %% role="demo"
mapped = [across("la voiture bleue"), across("un petit chat noir et la maison blanche")]
written, newest = " ".join(mapped[0][1]), mapped[0][2].tolist()
figures.cross_attention.word_alignment(mapped, "The Transformer may look at a neighbor of the word that it translates")

# %% [markdown]
# It writes *{{ written; it == "the blue car" }}*. But while it writes *blue*, {{ newest[1][1]:.0%; it > 0.5 }} of the weight lies on
# *voiture*.

# %% [markdown]
# @predict
#
# We hide *bleue* from the decoder: it gets no weight. The encoder still reads all three words. What does the Transformer write?
#
# - **A** *the blue car*, as before
# - **B** *the … car*, with a color that is a guess
#
# @answer
#
# **A**: *{{ unseen["bleue"]; it == "the blue car" }}*. The encoder's self-attention has told *voiture* what stands behind it. Without
# *voiture* it writes *{{ unseen["voiture"]; it != "the blue car" }}*: the noun is a guess.
#
# @wrong
#
# The decoder looks at a vector, not at a word.

# %% role="demo"
unseen = {word: " ".join(across("la voiture bleue", hidden=word)[1]) for word in ("", "bleue", "voiture")}
for word, written_then in unseen.items():
    print(f"hidden: {word or 'nothing':8} → {written_then}")
changed = " ".join(across("la voiture verte")[1])  # the word itself, not only its vector
print(f"verte in place of bleue → {changed}")

# %% [markdown]
# With five seeds, *blue* looked at *voiture* in four, and hiding *bleue* changed nothing. In one it looked at *bleue*, and lost the
# color without it, as four of five do where *voiture bleue* is kept out of the training. So a map shows where a model looks, and not
# always which word decides. To know that, change the word in the source, as in the last line: *{{ changed; it == "the green car" }}*.
# Hiding its vector is not enough.

# %% [markdown]
# ## Further: a translator of dates
#
# The same cells translate "3 March 2021" into "2021-03-03", character by character. This part shows what attention does
# when there is nothing to find, and that a model can do well without using it.

# %% [markdown]
# The source is a date such as "3 March 2021", "Mar 3, 2021" or "03.03.2021", and the target is "2021-03-03". In dates with
# dots the day comes first. Short dates are padded with spaces to 18 characters, and there is no mask, so your function can
# look at these spaces, too.

# %% role="payoff" exercise="additive_attention" tags=["hide-input"]
if passed(additive_attention):
    from grader.data import dates

    drawn, fresh = dates.written(seed=0), dates.fresh(1000)  # none of the fresh ones is in the training

    def date_pairs():
        return dates.encode([next(drawn) for _ in range(64)])

    def score(model):
        """How many of the fresh dates are right to the last character, and the weights (1000, 10, 18) or None."""
        source, target = dates.encode(fresh)
        with torch.no_grad():
            written, maps = translate(model, source, 10)
        right = (written.argmax(dim=-1) == target).all(dim=-1).sum().item()
        return right, None if maps[0] is None else torch.stack(maps, dim=1)

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    torch.manual_seed(0)
    dater = train("dates", Translator(*dates.SIZES, additive_attention, 64), date_pairs, 200, rate=1.5e-2)
    right, maps = score(dater)
    print(f"{right} of {len(fresh)} fresh dates right to the last character")

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    texts = ["3 March 2021"]
    with torch.no_grad():
        scores, weights = translate(dater, dates.encode([(text, "0000-00-00") for text in texts])[0], 10)
    written = [dates.decode(row) for row in scores.argmax(dim=-1)]
    figures.cross_attention.alignments(texts, written, torch.stack(weights, dim=1), "The decoder looks at the part it is writing")
    largest = maps.max(dim=-1).values.mean(dim=0)  # (10,): of each character's row
    assert largest[3] > 0.7 and largest[4] < largest[3]

# %% [markdown]
# For the year it looks at the end of the text, and then it goes back for month and day. While it writes the last digit of
# the year, its largest weight is {{ largest[3]:.0%; it > 0.7 }} on average; while it writes the first hyphen, for which it needs
# nothing from the text, only {{ largest[4]:.0%; it < 0.8 }}. The weights of softmax always sum to 1, so they go somewhere even then.
# Where is a matter of chance: with five seeds, between 3% and 61% of the hyphen's weight lay on the padding of short
# dates. Large language models put such weight mostly on the first token of the text, an **attention sink** (Xiao et al.
# 2024).
#
# Now we break it. First we take the tanh out of the trained translator. Then we train one without tanh from the start, and
# one without any attention.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    def without_tanh(query, keys, w_query, w_key, v):
        weights = torch.softmax(((query @ w_query)[:, None] + keys @ w_key) @ v, dim=-1)
        return (weights[:, None] @ keys)[:, 0], weights

    dater.attend, scored = without_tanh, {"with tanh": right}
    scored["tanh removed afterwards"], _ = score(dater)
    for name, attend in (("no tanh from the start", without_tanh), ("no attention", None)):
        torch.manual_seed(0)
        scored[name], weights = score(train(name, Translator(*dates.SIZES, attend, 64), date_pairs, 200, rate=1.5e-2))
        if weights is not None:
            assert torch.allclose(weights[:, 0], weights[:, 9], atol=1e-5)  # every step looks at the same place
    assert scored["no tanh from the start"] > 500 and scored["no attention"] > 800
    for name, count in scored.items():
        print(f"{name:24} {count:5,} of 1,000 dates right")

# %% [markdown]
# Without its tanh the trained translator gets {{ scored["tanh removed afterwards"]:,; it < 200 }} dates right, because it had learned
# to rely on weights that change from step to step. Trained without tanh, its weights are the same at every step: one
# vector again. A date is short, and one vector can carry it. With five seeds, 80% to 89% of the dates came out right without
# tanh, and 94% to 98% without any attention.
#
# Why is this attention worse than none? Without attention the context is the encoder's *last* states, which have read the
# whole date and can learn to keep its parts apart. Without tanh it is one weighted mean of all states, which blends what
# stands at different places. In a third experiment the context was the plain mean of the states: 73% to 78%. This fits, but does not
# prove it.
#
# So a good result does not show that attention did the work. To see whether
# it does something, change the query: the weights have to change with it.

# %% [markdown]
# ## What we keep
#
# - Cross-attention: queries from one sequence, keys and values from another. Its map says where a decoder looks, not what decides.
# - A recurrent state has a fixed size. With attention the decoder looks back at every state.
# - Additive: $v \cdot \tanh(q W_q + k_j W_k)$. General: $q\,W\,k_j$, which scaled dot-product attention has kept.
# - Weights have to depend on the query. Without the tanh, softmax cancels it.
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
# It shows cross-attention, which the lessons on self-attention leave out, and the problem for which attention was invented, so that
# query, key and alignment get a meaning. Its further part shows that a model can reach its goal without using its attention, which is
# a good warning to those who read weights as explanations.
#
# ## Cut for 60 minutes
#
# `rnn_states` on the board only. `additive_attention`, one step of the decoder drawn at the board, and from the solved notebook the
# map of "la voiture bleue" and the curves of the bottleneck. Leave out the dates.
#
# ## Cut for 90 minutes
#
# Add `rnn_states` as an exercise. Leave Luong for home.
#
# ## Mistakes to expect
#
# - rnn_states RN11: After your loop has read one token, which state stands at index 0 of your result?
# - rnn_states RN14: If the last word is wrong, how far back in the sentence does the gradient reach?
# - additive_attention LG2: Replace the query by another one. Do your weights change?
# - additive_attention LG1: Over which axis does your softmax run, and how long is it?
# - luong_attention SM2: Do the weights of one sentence sum to 1, or the weights of one position over the batch?
# - luong_attention AL24: Which of your inputs could you delete without changing the result?
#
# ## To discuss
#
# - Nearly all of 1000 dates come out right with one vector. Why use attention at all? (A good answer: a date fits
#   into one vector, and the lists of noun phrases show how soon that becomes hard to learn; attention also shows where it looks.)
# - Is the map of weights an explanation of the translation? (A good answer: it says where the decoder looked, not what it used. States
#   know their neighbors: *bleue* is translated when it is hidden. A hyphen's row means nothing, and a model without useful weights can
#   translate as well. What would explain more is an experiment: take the word away.)
#
# ## On paper
#
# One number each: W_x = 1, W_h = 1, no bias and no tanh. What is the state after reading 1, 2, 3? What after 3, 2, 1? What does
# that say about such a state? Solution: 6 both times. Without tanh and with W_h = 1 the state is a sum, so the order is lost.
