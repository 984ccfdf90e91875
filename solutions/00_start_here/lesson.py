# %% [markdown]
# # 00 · Start here: looking things up
#
# **How does a machine look something up when no key fits exactly?**
#
# **Before this lesson:** Python and NumPy arrays.
#
# *The animal didn't cross the street because it was too tired.* What is *it*? The animal. Now change the last
# word: *The animal didn't cross the street because it was too wide.* This time *it* is the street. The word *it*
# is spelled the same in both. You looked at the other words, and their meaning told you which one mattered.
# (The two sentences are Uszkoreit's, 2017.)
#
# A translation program has to do this for every word, and it has nothing but numbers to do it with. Here is a machine
# for it, so small that we can see all of it: three words, and two numbers for each. Run the cells below (**Shift +
# Enter**), then move the slider. (In JupyterLab, **Ctrl + B** closes the side bar: pictures get more room.)

# %% role="given" tags=["hide-input"]
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.start_here.moving_query()

# %% [markdown]
# The arrow is what *it* asks for. At 0° that is something that goes with *tired*, and the answer is nine tenths animal.
# At 90° it is something that goes with *wide*, and the answer is nine tenths street. In between, the answer glides
# from the one to the other. (Where sliders do not work, the picture shows four positions.)
#
# This kind of look-up is called **attention**. In this lesson you write it yourself.

# %% [markdown]
# ## A dictionary needs an exact match
#
# A Python dictionary is a look-up, too.

# %% role="demo" tags=["nbval-check-output"]
meaning = {"animal": "a living thing", "street": "a road"}

print("street:         ", meaning.get("street"))
print("something tired:", meaning.get("something tired"))

# %% [markdown]
# The second look-up finds nothing, because nothing is stored under exactly these letters. Attention works with three lists
# of numbers instead, which can fit each other *more or less*:
#
# - A **query** is what we ask for.
# - A **key** says what an entry can be found by. The query is compared with every key.
# - A **value** is what an entry hands over.
#
# Such a list of numbers is called a **vector**. The words or parts of words that a model reads are called **tokens**. These
# are the machine's keys and values:

# %% role="given"
words = ["animal", "street", "it"]
keys = np.array([[3.0, 0.0], [0.0, 3.0], [1.0, 1.0]])  # (3, 2): goes with "tired", goes with "wide"
values = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])  # (3, 2): about an animal, about a street

# %% [markdown]
# Animals get tired, and streets are wide. The word *it* can stand for either, so its key goes a little with both, and its
# value is half and half. We chose these numbers by hand; in a real model, training finds them. The query of *it* depends on
# the sentence: in a model that reads whole sentences, *it* has already read *tired* when it asks. Here we turn the arrow
# ourselves.
#
# How well does a key fit a query? We multiply the two vectors number by number and add up. This is the **dot product**, and
# the result is the key's **score**. For the query (1, 0), *animal* scores 1·3 + 0·0 = 3, *street* 1·0 + 0·3 = 0, and *it*
# 1·1 + 0·1 = 1.

# %% [markdown]
# @predict
#
# Now the query is (1, 0.6). The keys are still (3, 0) for *animal*, (0, 3) for *street* and (1, 1) for *it*. Which
# scores highest?
#
# - **A** *animal*
# - **B** *street*
# - **C** *it*, whose key is closest to the query
#
# @answer
#
# **A**. The scores are 3 for *animal*, 1.8 for *street* and 1.6 for *it*. The closest key comes last: a dot product
# rewards a key, seen as an arrow, for reaching far in the query's direction.
#
# @wrong
#
# C would be right for the smallest distance. But make the arrow of *animal* longer, and its score grows, however far away its
# tip moves.

# %% role="demo" tags=["nbval-check-output"]
query = np.array([1.0, 0.6])
for word, key in zip(words, keys):
    score = sum(query[feature] * key[feature] for feature in range(len(query)))
    print(f"{word:6} {query[0]:g}·{key[0]:g} + {query[1]:g}·{key[1]:g} = {score:.1f}")

# %% [markdown]
# ## The hard look-up: one answer
#
# A **hard look-up** returns the value of the best key and ignores all others. It is your first exercise: write your code
# in place of the `raise` line, and run the cell and the check below it.
#
# | this call | gives you |
# |---|---|
# | `check(hard_lookup)` | a verdict: passed, or what differs, with the mistake named where it can be proven |
# | `hint(hard_lookup)` | a question; the next time, where to look; then code with a blank |

# %% [markdown]
# @exercise hard_lookup
#
# `query` (d,), `keys` (n, d), `values` (n, d_v) → (d_v,): the value whose key has the largest dot product with the query
#
# Here n is how many entries there are, d how many numbers a key has, and d_v how many a value has. It has to work for all
# sizes, also when every score is negative. On a tie the first key counts. Write a loop, or use `keys @ query`, which gives
# all n dot products at once.


# %% role="exercise" exercise="hard_lookup"
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value whose key has the largest dot product with the query.

    query: (d,). keys: (n, d). values: (n, d_v). Returns: (d_v,). On a tie the first key counts.
    """
    # region solution
    scores = keys @ query
    best = np.argmax(scores)  # the position of the largest; of equal ones the first
    return values[best]
    # endregion


# %% role="check" exercise="hard_lookup"
check(hard_lookup)

# %% [markdown]
# Below each verdict are buttons for the next step. You can also type these calls in a new cell:
#
# | this call | gives you |
# |---|---|
# | `explain("HL3")` | more about a mistake |
# | `replay(hard_lookup)` | the inputs on which your code failed |
# | `solution(hard_lookup)` | the course's version, once you pass, see three hints or make three different attempts |
# | `reset("hard_lookup")` | the empty exercise; your code is kept as a copy |
# | `progress()` | how far you are |
#
# *Run All* is always safe: exercises that are not written yet say so. Your progress stays in a file next to the notebook;
# nothing is sent anywhere unless you join a room in a workshop.
#
# Optional, once your code passes: see how a verdict names a mistake. Return the best *key* in place of its value, run both
# cells, read the verdict, and change your code back.

# %% [markdown]
# ## The soft look-up: a blend
#
# A **soft look-up** blends all the values: the better a key fits, the more its value counts. So the scores have to
# become shares of a whole. The exponential makes each positive, and dividing by the sum makes them sum to 1. These two
# steps are called **softmax**, and the shares **attention weights**, or weights for short:
#
# $$w_i = \frac{e^{s_i}}{\sum_j e^{s_j}}, \qquad s_i = \text{sharpness} \cdot (\text{key}_i \cdot \text{query})$$
#
# The sharpness is a number that we choose. It is 1 in the picture above.

# %% [markdown]
# @exercise soft_lookup
#
# `query` (d,), `keys` (n, d), `values` (n, d_v), `sharpness` a number ≥ 0 → (d_v,): the sum of all values, each times
# its weight
#
# In the check, no score times the sharpness is beyond ±50, so `np.exp` never overflows.


# %% role="exercise" exercise="soft_lookup"
def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float = 1.0) -> np.ndarray:
    """Return all values, each weighted by how well its key fits the query.

    query: (d,). keys: (n, d). values: (n, d_v). sharpness: what the scores are multiplied by, at least 0. Returns: (d_v,).
    """
    # region solution
    scores = sharpness * (keys @ query)
    fits = np.exp(scores - scores.max())  # why the largest is subtracted: lesson 01
    weights = fits / fits.sum()
    return weights @ values
    # endregion


# %% role="check" exercise="soft_lookup"
check(soft_lookup)

# %% [markdown]
# So what is *it*? Your function answers; a model would add the answer to its vector for *it*.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup):
    for last_word, query in (("tired", np.array([1.0, 0.0])), ("wide", np.array([0.0, 1.0]))):
        animal, street = soft_lookup(query, keys, values)
        print(f"… because it was too {last_word + ':':6} it is {animal:.0%} animal, {street:.0%} street")

# %% [markdown]
# ## Why soft?
#
# The hard look-up finds the right word, too. Why blend? We turn the query and watch both answers.

# %% [markdown]
# @predict
#
# The query turns slowly from "tired" (1, 0) to "wide" (0, 1). How does the share of *animal* in the answer change?
#
# - **A** In both look-ups it falls smoothly.
# - **B** In the hard one it jumps once; in the soft one it falls smoothly.
# - **C** In the hard one it takes two steps; in the soft one it falls smoothly.
#
# @answer
#
# **B**. The hard answer is all animal until 45°, where *street* overtakes, and all street from there on. The soft answer
# glides, because its weights change smoothly with the query.
#
# @wrong
#
# A hard look-up returns one of the values and nothing in between, so A is out. C lets *it* win in the middle; but at 45°
# *animal* and *street* score 2.1, and *it*, with its short key, only 1.4.

# %% role="payoff" exercise="soft_lookup" tags=["hide-input"]
if passed(soft_lookup) and passed(hard_lookup):
    assert (keys == figures.start_here.KEYS).all() and (values == figures.start_here.VALUES).all()  # the machine above
    degrees = np.linspace(0, 90, 9002)  # none of them is 45, where the two keys tie
    queries = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    hard = np.array([hard_lookup(query, keys, values)[0] for query in queries])
    soft = np.array([soft_lookup(query, keys, values)[0] for query in queries])
    jumps = degrees[1:][np.diff(hard) != 0]
    assert len(jumps) == 1 and abs(jumps[0] - 45) < 0.01 and (np.diff(soft) < 0).all()
    figures.start_here.turning_query(degrees, hard, soft)

# %% [markdown]
# The jump is not the problem; the flat parts are. Training works in small steps: it asks how the result would change if one
# of the model's numbers changed a little, and moves that number in the direction that helps. Where the answer does not
# change at all, no direction helps. We move the query by a thousandth:

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup) and passed(hard_lookup):
    before, after = np.array([1.0, 0.6]), np.array([1.0, 0.601])
    for lookup in (hard_lookup, soft_lookup):
        moved = lookup(after, keys, values) - lookup(before, keys, values)
        print(f"{lookup.__name__}: the share of animal moves by {moved[0]:+.6f}")

# %% [markdown]
# The hard answer stays as it was, as after almost every small change. The soft one moves a little, and so tells training
# which way to go.

# %% [markdown]
# ## How sharp?

# %% [markdown]
# @predict
#
# For the query (1, 0.6) your soft look-up answers about 73% animal at sharpness 1. What does it answer at sharpness 0?
#
# - **A** nothing: 0% of both
# - **B** 50% animal, 50% street
# - **C** 100% animal
#
# @answer
#
# **B**. At sharpness 0 all weights are equal, and the plain average of the values comes back. At 100, nearly all weight is
# on *animal*, as in the hard look-up.
#
# @wrong
#
# A takes the weights to be 0, but e⁰ is 1: each weight is ⅓. C is the other end.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup):
    for sharpness in (0, 0.1, 1, 10, 100):  # add your own, up to 200
        animal, street = soft_lookup(np.array([1.0, 0.6]), keys, values, sharpness)
        print(f"sharpness {sharpness:5}: {animal:.4f} animal, {street:.4f} street")

# %% [markdown]
# ## Further: what a soft look-up is good for
#
# A soft look-up can predict, from nothing but examples. We try it on real measurements: how far a car travels before it
# stops. For anyone who wonders what attention has to do with statistics.

# %% [markdown]
# In the 1920s somebody drove cars at various speeds, braked, and wrote down the distance in which each came to a stop
# (50 stops; M. Ezekiel, *Methods of Correlation Analysis*, 1930; the data set `cars` of the language R). We make the
# speed the key and the distance the value, and ask for a speed that nobody drove.

# %% role="given" tags=["hide-input"]
speeds = np.array(
    [  # miles per hour; 10 of them are 16 km/h
        4,
        4,
        7,
        7,
        8,
        9,
        10,
        10,
        10,
        11,
        11,
        12,
        12,
        12,
        12,
        13,
        13,
        13,
        13,
        14,
        14,
        14,
        14,
        15,
        15,
        15,
        16,
        16,
        17,
        17,
        17,
        18,
        18,
        18,
        18,
        19,
        19,
        19,
        20,
        20,
        20,
        20,
        20,
        22,
        23,
        24,
        24,
        24,
        24,
        25,
    ]
)
distances = np.array(
    [  # feet; 10 of them are 3 m
        2,
        10,
        4,
        22,
        16,
        10,
        18,
        26,
        34,
        17,
        28,
        14,
        20,
        24,
        28,
        26,
        34,
        34,
        46,
        26,
        36,
        60,
        80,
        20,
        26,
        54,
        32,
        40,
        32,
        40,
        50,
        42,
        56,
        76,
        84,
        36,
        46,
        68,
        32,
        48,
        52,
        56,
        64,
        66,
        54,
        70,
        92,
        93,
        120,
        85,
    ]
)
assert speeds.mean() == 15.4 and distances.mean() == 42.98  # as published

# %% [markdown]
# Here a key should score high when it is *close* to the query, and a dot product does not measure closeness. With the
# right vectors it can. The squared distance between a speed q that we ask for and a recorded speed k is q² − 2qk + k².
# The closer, the higher the score should be, so we reverse the sign: 2qk − k² − q². That is a sum of three products,
# 2q · k + 1 · (−k²) + (−q²) · 1: the dot product of the query (2q, 1, −q²) and the key (k, −k², 1).


# %% role="given"
def speed_query(q):
    """The query (3,) for a speed."""
    return np.array([2.0 * q, 1.0, -(q**2)])


def speed_keys(speeds):
    """The keys (n, 3) of recorded speeds (n,): their scores are −(q − speed)²."""
    return np.stack([1.0 * speeds, -1.0 * speeds**2, np.ones(len(speeds))], axis=1)


# %% [markdown]
# @predict
#
# Nobody drove 21 mph. At 20 mph the five stops took 32, 48, 52, 56 and 64 feet, in this order; at 22 mph one took 66. What
# does the hard look-up say for 21 mph? Is the answer of the soft one larger or smaller?
#
# @answer
#
# The hard look-up says 32 feet: the stops at 20 and at 22 are equally near, and on a tie the first counts, which here
# happens to be the shortest. The soft answer is larger, about 59 feet at sharpness 0.1: it blends all stops nearby.
#
# @wrong
#
# An average is not what a hard look-up returns: it returns one row.

# %% [markdown]
# Many of the speeds were driven several times, and the list has the shortest stop of each speed first. So on a
# tie the hard look-up answers with the shortest stop; halfway between two speeds, with the shortest at the slower one. A fairer
# version takes the mean of all stops that are equally near. The next cell draws it beside your soft look-up and a straight line
# through all stops.

# %% role="payoff" exercise="soft_lookup"
if passed(soft_lookup) and passed(hard_lookup):

    def nearest_mean(query, keys, values):
        scores = keys @ query
        return values[scores == scores.max()].mean(axis=0)

    def line(query, keys, values):
        return np.polyval(np.polyfit(keys[:, 0], values[:, 0], 1), query[:1] / 2)

    asked, stored, feet = np.linspace(3, 26, 231), speed_keys(speeds), distances[:, None]
    ask = [speed_query(q) for q in asked]
    near, straight = (np.array([f(q, stored, feet)[0] for q in ask]) for f in (nearest_mean, line))
    soft_feet = np.array([soft_lookup(q, stored, feet, sharpness=0.1)[0] for q in ask])
    print(f"at 21 mph: hard {hard_lookup(ask[180], stored, feet)[0]} feet, soft {soft_feet[180]:.0f} feet")
    figures.start_here.stopping(speeds, distances, asked, near, soft_feet, straight)

# %% [markdown]
# Which one predicts best? We leave out one stop, predict it from the other 49, note how many feet we are off, and do
# this for all 50. The folded cell does so for each. In the plain hard look-up a tie goes to the stop that is listed first,
# so its result is a mean over 20 random orders.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output", "hide-input"]
if passed(soft_lookup) and passed(hard_lookup):

    def mean_miss(lookup, order=slice(None), **more):
        speed, distance, misses = speeds[order], distances[order], []
        for left_out in range(50):
            rest = np.arange(50) != left_out
            said = lookup(speed_query(speed[left_out]), speed_keys(speed[rest]), distance[rest, None], **more)
            misses.append(abs(said[0] - distance[left_out]))
        return np.mean(misses)

    orders = [np.random.default_rng(seed).permutation(50) for seed in range(20)]
    missed_hard = [mean_miss(hard_lookup, order) for order in orders]
    missed_soft = {s: mean_miss(soft_lookup, sharpness=s) for s in (0, 0.01, 0.1, 1, 10)}
    missed_mean, missed_line = mean_miss(nearest_mean), mean_miss(line)
    print(
        f"hard, first of the nearest: {np.mean(missed_hard):.1f} feet ({mean_miss(hard_lookup):.1f} in the list's own order)"
    )
    print(f"hard, mean of the nearest:  {missed_mean:.1f} feet")
    for sharpness, missed in missed_soft.items():
        print(f"soft, sharpness {sharpness:<11} {missed:.1f} feet")
    print(f"a straight line:            {missed_line:.1f} feet")
    assert min(missed_soft, key=missed_soft.get) == 0.1

# %% [markdown]
# Over the 20 orders, the plain hard look-up misses by {{ np.mean(missed_hard):.1f; 16 < it < 18 }} feet on average, and the
# blend by {{ missed_soft[0.1]:.1f; it < missed_mean - 1 }}. About
# {{ np.mean(missed_hard) - missed_mean:.0f; it < np.mean(missed_hard) - missed_soft[0.1] }} of the
# {{ np.mean(missed_hard) - missed_soft[0.1]:.0f }} extra feet come from trusting a single stop: the mean of the nearest misses
# by {{ missed_mean:.1f; 13 < it < 14.5 }}. The straight line misses by
# {{ missed_line:.1f; abs(it - missed_soft[0.1]) < 0.2 }}, about as much as the blend, whose sharpness we picked on these same
# stops. But the line assumes that stops lie near a line, and the blend assumes only that similar speeds have similar stops.
#
# This way of predicting is called **kernel regression** (Nadaraya 1964; Watson 1964). It has the queries, keys, values
# and weights of attention. But we chose the keys here; a language model learns them.

# %% [markdown]
# ## What we keep
#
# - A **query** is compared with every **key**. The fit is a dot product, the **score**.
# - A hard look-up returns one **value** and is constant between its jumps. A soft one blends all values, by **weights** that are
#   positive and sum to 1. It changes smoothly with the query, so it can be learned in small steps.
# - Sharpness leads from the plain average (0) to the hard look-up (very large).
# - Attention is the soft one: "mapping a query and a set of key-value pairs to an output", a weighted sum of the values
#   (Vaswani et al. 2017, *Attention is all you need*, section 3.2).
#
# | what | shape |
# |---|---|
# | query | (d,) |
# | keys, one row per entry | (n, d) |
# | values, one row per entry | (n, d_v) |
# | scores and weights | (n,) |
# | answer | (d_v,) |

# %% role="demo"
progress()

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners see attention work before they read a line about it, and answer *what is it?* in miniature with a function of their
# own. They see why a blend can be learned where a choice cannot. They also meet the tools (`check`, `hint`, `explain`) on an
# exercise that nobody fails for long, so that later lessons can be about attention alone.
#
# ## Cut for 60 minutes
#
# Nothing: with steps 1 to 3 of lesson 01 the core fills an hour. The further part is for those who finish early.
#
# ## Cut for 90 minutes
#
# Combine it with lesson 01. Leave out "How sharp?" and the further part; move the slider on the projector and
# ask the prediction about the turning query aloud.
#
# ## Mistakes to expect
#
# - hard_lookup HL1: You compared with the keys. What did *it* want to be told?
# - hard_lookup HL2: Two keys have the same largest score. Which of the two does your loop end with, and why?
# - hard_lookup HL12: `query @ keys` runs without an error here. Over which axis does it add up?
# - hard_lookup HL4: Which key is nearest to (1, 0.6), and which has the largest dot product?
# - soft_lookup SL1: What does your answer become at sharpness 0, and what should it become?
# - soft_lookup TT14: What do your weights sum to?
# - soft_lookup TT13: What is the weight of an entry whose score is −1?
#
# ## To discuss
#
# - When is a hard look-up what you want? A good answer names a case in which a blend is meaningless (a phone number, a file
#   name) and says that nothing has to be learned through it.
# - In the machine the query of *it* was turned by hand. What would a model need in order to turn it by itself? A good answer
#   notices that the query must depend on the rest of the sentence ("tired" or "wide"), so that *it* has to look up the last
#   word first, while the keys of *animal* and *street* can say what such a thing can be in any sentence.
# - Does the soft answer change with *every* small change of the query? A good answer finds cases in which it does not: at sharpness
#   0, where all values are equal, or where rounding has made all other weights 0.
#
# ## On paper
#
# Three keys (1, 0), (0, 1), (1, 1) have the values 6, 0 and 3. For the query (ln 2, 0), compute the weights of the soft look-up
# and its answer. *Solution:* the scores are ln 2, 0 and ln 2, the exponentials 2, 1 and 2, the weights 2/5, 1/5 and 2/5. The
# answer is 2/5·6 + 1/5·0 + 2/5·3 = 18/5 = 3.6. The hard look-up answers 6: the first and the third key tie, and the first
# counts.
