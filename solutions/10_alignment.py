# %% [markdown]
# # 10 · Alignment: where attention came from
#
# **How can a translator that has read the whole sentence still find the one word it needs now?**
#
# We go back to 2014, three years before the Transformer. Translation was done by two recurrent networks: an *encoder*
# reads the sentence word by word, a *decoder* writes its translation. Attention was invented to mend one weakness of this pair. We
# measure the weakness, write the two scores that mended it, and train a translator of dates with our own function.
#
# **Predict** three things, and write the answers down before reading on:
#
# 1. A network is to repeat up to 14 letters from memory. What gets lost first as the sequence grows: speed, or letters?
# 2. It reads "3 March 2021" and writes "2021-03-03". Which character does it look at for the first 2?
# 3. Bahdanau's score holds a tanh. What breaks if we leave it out?

# %% role="given"
import torch
from torch import Tensor

from grader import check, explain, figures, hint, passed, progress, solution

# %% [markdown]
# ## One vector for a whole sentence
#
# The encoder's last state was all that the decoder received: one vector of fixed size, for three words or for fifty (Cho et al.
# 2014; Sutskever et al. 2014). On the way from French to English the order changes, too: "la voiture bleue" becomes "the
# blue car". Whoever may look back at each word needs no perfect memory.

# %% role="demo"
figures.lesson_10.two_roads()

# %% [markdown]
# A set of links like the one on the right is called an **alignment**. The alignment needs a weight for every pair of a new word
# and a read one. Where would such weights come from?
#
# ## An early idea: weights from something simple
#
# A published toy takes them from the length of the words: longer words tend to carry more. We follow it for its own sentence.
#
# **Predict:** which of the ten words wins, and does it win clearly?

# %% role="demo"
words = "Awareness is power in a world where knowledge is everywhere".split()
lengths = torch.tensor([float(len(word)) for word in words])
weights = torch.softmax(lengths, dim=0)
figures.lesson_10.word_weights(words, weights)

# %% [markdown]
# One letter more makes a weight e ≈ 2.7 times larger, and the last word takes more than half of everything. It takes it
# whatever the decoder wants to write next: nobody asked a question, and nothing here can be trained.
#
# The toy then sums its weighted word vectors, and keeps a single number. **Predict:** which of these two lines is it?

# %% role="demo" tags=["nbval-check-output"]
vectors = torch.arange(40.0).reshape(10, 4)  # ten words, four numbers each
weighted = weights[:, None] * vectors
print("sum()     :", round(weighted.sum().item(), 2))
print("sum(dim=0):", [round(number, 2) for number in weighted.sum(dim=0).tolist()])

# %% [markdown]
# A sum without an axis runs over words *and* features; what is left of a sentence is one number. The sum over the words alone keeps
# a vector, the **context**. It is the same step as `weights @ V` in lesson 01.
#
# ## A score that is learnt
#
# Bahdanau, Cho and Bengio (2015, section 3.1) let a small network judge how well the decoder's state $q$ (the *query*) fits the
# encoder's state $k_j$ (the *key*) at each word:
#
# $$s_j = v \cdot \tanh(q\, W_q + k_j W_k) \qquad w = \operatorname{softmax}(s) \qquad c = \sum_j w_j\, k_j$$
#
# Query and key may have different widths; both are brought to $d_a$ numbers and added, hence **additive attention**. $v$ makes one number
# of the $d_a$. Both matrices and $v$ are learnt together with the translator: nobody tells it which words belong together.
#
# By hand: two keys whose parts $k_j W_k$ are 1 and 0, $v = 1$, and a query whose part is $c$. **Predict** the two
# weights for c = −2, 0 and 2, with tanh and without.

# %% role="demo" tags=["nbval-check-output"]
def two_weights(c, tanh):
    inside = torch.tensor([c + 1.0, c + 0.0])
    return torch.softmax(torch.tanh(inside) if tanh else inside, dim=0)

for c in (-2, 0, 2):
    for tanh in (True, False):
        shown = [round(weight, 3) for weight in two_weights(c, tanh).tolist()]
        print(f"c = {c:2}, {'with tanh' if tanh else 'without  '}: {shown}")

# %% role="demo"
figures.lesson_10.why_tanh(two_weights)

# %% [markdown]
# Without tanh the score falls into $v \cdot q'$ plus $v \cdot k'_j$. The first term is the same for every key, and softmax takes out
# what all scores of a row share (lesson 02). The query is gone. The bend of tanh is what makes the answer depend on the question.

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
# When stuck, `hint(additive_attention)` in a new cell asks a question first; called again it says where to look.

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
# ## The bottleneck, measured
#
# Now the first question. Two networks learn to read up to 14 different letters and to write them down again. They are alike (a
# recurrent encoder in both directions, a recurrent decoder, 32 numbers each) and get 400 steps each. One decoder receives the encoder's
# last states at every step, the other asks all states with **our function**. The code is in `grader/figures/lesson_10_training.py`.
#
# **Predict** both curves over the length, 16 and 18 letters included, which neither has ever seen. The cell takes about 20 seconds;
# the square in the toolbar ends a training early and keeps what was learnt.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    shares = {}
    for name, attend in (("one vector", None), ("attention", additive_attention)):
        model = figures.lesson_10_training.train_letters(attend, lengths=range(2, 15, 2), name=name)
        shares[name] = figures.lesson_10_training.shares_right(model, range(2, 19, 2))
    figures.lesson_10.bottleneck(shares, longest=14)

# %% [markdown]
# For two letters one vector is enough. Every further letter has to share the same few numbers, and more of them get lost. With
# attention the curve falls late and slowly: the decoder need not remember, only find. It is not perfect after so few steps, and it
# grows unsure beyond the lengths of its training. Bahdanau et al. drew the same picture for real sentences (their figure 2).

# %% [markdown]
# ## A translator of dates
#
# The second question. "3 March 2021", "Mar 3, 2021" or "03.03.2021" is to become "2021-03-03", a character at a time. We wrote a
# generator of such dates; dotted ones put the day first. Short ones are filled up with spaces, and nothing hides these from our
# function: the model has to learn that there is nothing to be read (a mask, as in lesson 06, would save it the effort).
#
# **Predict:** how many of 1000 fresh dates are right to the last character after half a minute?

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    translator, losses = figures.lesson_10_training.train_dates(additive_attention)
    fresh = figures.lesson_10_training.fresh_dates(1000)  # none of them was in the training
    written, _ = figures.lesson_10_training.translate(translator, [text for text, _ in fresh])
    right = sum(got == wanted for got, (_, wanted) in zip(written, fresh))
    print(f"{right} of {len(fresh)} dates right to the last character")
    for (text, _), got in list(zip(fresh, written))[:5]:
        print(f"{text:>18} -> {got}")

# %% [markdown]
# Where did it look? Each row is one character that the decoder wrote, each column one that the encoder read. **Predict** where the
# dark cells lie for the two spellings below, before running the cell.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    texts = ["3 March 2021", "Mar 3, 2021"]
    written, weights = figures.lesson_10_training.translate(translator, texts)
    figures.lesson_10.alignments(texts, written, weights, "The decoder looks where the date says it")

# %% [markdown]
# Nobody told the model where the year is. It writes the year first and looks at the end of the text, then comes back for month and
# day: the crossing of "voiture bleue", learnt from pairs alone. Not every row points at the very character it writes: the encoder's
# states know their neighbours, so looking *near* a number can be enough. A map of weights shows where a model looks, and that is not
# always where the reason lies.
#
# ## Break it on purpose: no tanh
#
# The third question. We take the trained translator and remove nothing but tanh. **Predict** what the map looks like now.

# %% role="payoff" exercise="additive_attention"
if passed(additive_attention):
    def without_tanh(query, keys, w_query, w_key, v):
        weights = torch.softmax(((query @ w_query)[:, None] + keys @ w_key) @ v, dim=-1)
        return (weights[:, None] @ keys)[:, 0], weights

    translator.attend = without_tanh
    written, weights = figures.lesson_10_training.translate(translator, texts)
    translator.attend = additive_attention
    figures.lesson_10.alignments(texts, written, weights, "Without tanh every character looks at the same place")

# %% role="demo"
explain("LG2")

# %% [markdown]
# ## Luong: a product in place of a sum
#
# Luong, Pham and Manning (2015, section 3.1) tried simpler scores. Their "general" one lets a matrix stand between query and key:
#
# $$s_j = q\, W\, k_j$$
#
# There is no tanh and no $v$, and nothing cancels: the query multiplies the key. For one query and T keys this is a matrix product, while
# the additive score computes T · d_a values of tanh for each query. $W$ translates the query's space into that of the keys, so
# the two may differ in width.
#
# **Predict** with q = (1, 2), k = (1, 0, 1) and the W below: which rows and columns of W play a part?

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
# With one-hot words $W$ is a table that can be read: entry (i, h) says how well English word i and French word h belong
# together. We write three English and four French words into it by hand, a small dictionary, and ask our function how to translate
# "la voiture bleue".

# %% role="payoff" exercise="luong_attention"
if passed(luong_attention):
    english, vocabulary = ["the", "blue", "car"], ["bleue", "la", "le", "voiture"]
    sentence = ["la", "voiture", "bleue"]
    w = torch.zeros(3, 4)
    for word, translation in (("the", "la"), ("the", "le"), ("blue", "bleue"), ("car", "voiture")):
        w[english.index(word), vocabulary.index(translation)] = 4
    keys = torch.eye(4)[[vocabulary.index(word) for word in sentence]]
    _, weights = luong_attention(torch.eye(3), keys.expand(3, 3, 4), w)
    figures.lesson_10.dictionary(w, weights, english, vocabulary, sentence)

# %% [markdown]
# The alignment crosses where the languages do. A trained model learns such a table for states in place of words.
#
# One step more, and we are back in lesson 03. There each token's state x was projected twice, q = x W_q and k = x W_k, and the
# score was $q \cdot k / \sqrt{d_k}$. Written out it is $x_i\, (W_q W_k^\top / \sqrt{d_k})\, x_j$. **Predict:** which `w` makes
# `luong_attention` give these very weights?

# %% role="payoff" exercise="luong_attention"
if passed(luong_attention):
    torch.manual_seed(10)
    x, w_q, w_k = torch.randn(5, 6), torch.randn(6, 4), torch.randn(6, 4)
    expected = torch.softmax((x @ w_q) @ (x @ w_k).T / 4**0.5, dim=-1)  # lesson 03
    _, weights = luong_attention(x, x.expand(5, 5, 6), w_q @ w_k.T / 4**0.5)
    print(f"largest difference of a weight: {(weights - expected).abs().max():.0e}")
    assert torch.allclose(weights, expected, atol=1e-5)

# %% [markdown]
# Scaled dot-product attention is Luong's score with $W$ in two thin factors and a fixed scale, asked by every token at once.
#
# ## What we keep
#
# - One vector of fixed size forgets; looking back at every state does not have to remember.
# - Weights need a question. A score without the query, or one in which softmax cancels it, looks at one place for ever.
# - Additive: $v \cdot \tanh(q W_q + k W_k)$. General: $q\,W\,k$. Both are learnt from pairs, without given alignments.
# - The context is a weighted sum of the keys themselves. Separate values came with the Transformer.
#
# Sources: Cho et al. 2014, *Learning phrase representations using RNN encoder–decoder*; Sutskever et al. 2014, *Sequence to
# sequence learning with neural networks*; Bahdanau et al. 2015, *Neural machine translation by jointly learning to align and
# translate*, section 3.1 and appendix A.1.2; Luong et al. 2015, *Effective approaches to attention-based neural machine
# translation*, section 3.1.
#
# Where this goes on: Luong et al. (section 3.2) let a decoder look at a window only, as today's sliding-window models do. Vaswani
# et al. (2017) kept the attention and dropped the recurrence. Next: **11 · Causal multi-head attention**, where every token
# asks all earlier ones at once and a small language model learns to write.

# %% role="demo"
progress()
