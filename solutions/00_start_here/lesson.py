# %% [markdown]
# # 00 · Start here: looking things up
#
# **How does a machine look something up when no key fits exactly?**
#
# **Before this lesson:** Python and NumPy arrays. Nothing about attention, and nothing about neural networks.
#
# Read this sentence: *The animal didn't cross the street because it was too tired.* What is *it*? The animal, of
# course. Now change the last word: *The animal didn't cross the street because it was too wide.* This time *it* is
# the street. The word *it* is spelled the same in both. You understood it by looking at the other words, and what
# those words mean told you which of them mattered.
#
# A language model has to do this for every word. It reads text as a sequence of **tokens**, which are words or pieces
# of words. For each token it keeps a **vector**: a list of numbers that represents what the token means so far. At
# first the vector of *it* says little. It becomes useful once the token has looked up the others and taken in
# something of *animal*, or of *street*.
#
# This kind of look-up is called **attention**. A Python dictionary cannot do it, because a dictionary finds an entry
# only under exactly the key it was filed under. What *it* is looking for matches no other word exactly; it only fits
# some of them better than others. In this lesson we turn the dictionary's look-up into one that always gives an
# answer.

# %% [markdown]
# ## How a lesson works
#
# A lesson mixes text, code to run and exercises to write. Run a cell with **Shift + Enter**. *Run All* is safe at any
# time: an exercise that you have not written yet reports "not started", and the rest still runs. Where a paragraph
# asks you to predict, decide on an answer before you unfold the one below it. You learn more from a wrong guess than
# from an explanation that you only nod at.
#
# | type this | to get |
# |---|---|
# | `check(hard_lookup)` | a verdict: passed, or what differs and, where it can be proven, which mistake it is |
# | `hint(hard_lookup)` | a question; called again, where to look; then code with a blank |
# | `explain("HL3")` | more about a known mistake, by the id that a verdict shows |
# | `replay(hard_lookup)` | the inputs on which the last check failed, as variables, and a cell that runs your code on them |
# | `solution(hard_lookup)` | the course's version, once you have passed, seen three hints or made three different attempts |
# | `reset("hard_lookup")` | a question first, then the exercise's cell as it was at the start; your code is kept as a copy |
# | `progress()` | how far you are in this lesson, and one line for each of the others |
#
# Below each verdict, buttons do what fits it, and show the result right there: **Hint**, **Replay**, **Explain**, **Solution**,
# **Reset**.
#
# Your progress is kept in a small file next to the notebook. Nothing is sent anywhere unless you join a room in a
# workshop.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## A look-up that needs an exact match
#
# A kitchen keeps a menu, and a Python dictionary finds a dish by its name. That is a **hard look-up**. It has three parts, and
# attention has the same three: a **query** (what we ask for) is compared with **keys** (what the entries are filed under), and
# the **value** (what is stored there) comes back.

# %% role="demo" tags=["nbval-check-output"]
menu = {"tart": 30, "curry": 4, "chutney": 18, "bread": 2}  # grams of sugar

print("tart: ", menu.get("tart"))
print("sweet:", menu.get("sweet"))

# %% [markdown]
# Nothing comes back for "sweet", because no key is spelled that way. Yet the menu could help a guest who wants
# something sweet, if its keys said *what a dish is like* instead of what it is called.

# %% [markdown]
# ## Keys that can be compared
#
# So we make each key a vector of two numbers: how sweet and how spicy the dish is. A query has the same two numbers: how much
# sweetness and how much spice the guest wants. A value holds what we want to know about the dish: grams of sugar, grams of
# chili, and the price.

# %% role="given"
dishes = ["tart", "curry", "chutney", "bread"]
keys = np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 2.0], [1.0, 0.2]])  # (4, 2): sweet, spicy
values = np.array([  # (4, 3): grams of sugar, grams of chili, euros
    [30.0, 0.0, 4.0],
    [4.0, 9.0, 8.0],
    [18.0, 5.0, 3.0],
    [2.0, 0.0, 1.0],
])

# %% [markdown]
# How well does a key fit a query? We multiply the two vectors number by number and add up. This is the **dot product**, and we
# call the result the key's **score**. It is large where both vectors are large in the same places. For the query (1, 0), which
# means "sweet, no spice", the tart scores 1·3 + 0·0 = 3 and the curry 1·0 + 0·3 = 0.

# %% [markdown]
# @predict
#
# A guest asks for (1, 0.6): mostly sweet, with some spice. The keys are tart (3, 0), curry (0, 3), chutney (2, 2) and bread
# (1, 0.2). Which dish has the largest dot product?
#
# - **A** the bread, whose key is closest to the query
# - **B** the tart, the sweetest
# - **C** the chutney
#
# @answer
#
# **C**. The chutney scores 1·2 + 0.6·2 = 3.2 and the tart 1·3 + 0.6·0 = 3. The bread, though closest, comes last with
# 1·1 + 0.6·0.2 = 1.12, because a dot product rewards the right direction *and* length, and the bread's key is short.
#
# @wrong
#
# If you said the bread, you were thinking of distance. A dot product is not a distance: a key twice as long scores
# twice as much. If you said the tart, you looked only at the larger of the query's two numbers. The chutney also
# scores with its spice.

# %% role="demo" tags=["nbval-check-output"]
query = np.array([1.0, 0.6])
for dish, key in zip(dishes, keys):
    score = sum(query[feature] * key[feature] for feature in range(len(query)))
    print(f"{dish:8} {query[0]:g}·{key[0]:g} + {query[1]:g}·{key[1]:g} = {score:.2f}")

# %% [markdown]
# The figure shows the same numbers as lengths. From the tip of each key, drop a line that meets the query's direction
# at a right angle. The point where the two meet is the key's *foot*. The further out the foot, the larger the dot
# product: a key wins by reaching far in the direction of the query.

# %% role="demo"
figures.start_here.keys_in_the_plane(keys, dishes, query)

# %% [markdown]
# @exercise hard_lookup
#
# `query` (d,), `keys` (n, d), `values` (n, d_v) → (d_v,)
#
# As a loop over the entries, in words:
#
# ```text
# for each of the n keys: score = query · key
# the answer is the value that belongs to the largest score
# where several scores are equally large, the first of them counts
# ```
#
# Here n is the number of entries, d the length of a key and d_v the length of a value. Your function has to work for
# all sizes, and also when every score is negative. Any style will do; `keys @ query` gives all n dot products at
# once. Write your code in place of the `raise` line, run the cell, then run the check below it. If you are stuck,
# type `hint(hard_lookup)` in a new cell. A check hides what your function prints; to see that output, call the
# function yourself in another cell.

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
# Once it passes, see how a verdict deals with a mistake. Make your code pick the smallest score instead of the
# largest (`np.argmin` for `np.argmax`), run your cell and the check again, and read the verdict. `check` names a
# mistake only if your code returned exactly the numbers that code with that mistake returns. Type `explain("…")` with
# the id that you see, then change your code back.

# %% [markdown]
# ## From hard to soft
#
# A hard look-up takes one entry and ignores the rest. A **soft look-up** blends all the values: the better a key
# fits, the more its value counts. For that, the scores have to become shares of a whole, that is, positive numbers
# that sum to 1. The exponential makes every score positive, and dividing by the sum makes the results sum to 1. This
# recipe is called **softmax**; lessons 01 and 02 take it apart. The shares are called **weights**: the weight of entry
# i is
#
# $$w_i = \frac{e^{s_i}}{\sum_j e^{s_j}}, \qquad s_i = \text{sharpness} \cdot (\text{key}_i \cdot \text{query})$$
#
# The *sharpness* is a number that we choose. It says how much a better fit counts; what it does, you will see below.

# %% [markdown]
# @exercise soft_lookup
#
# `query` (d,), `keys` (n, d), `values` (n, d_v), `sharpness` a number ≥ 0 → (d_v,): the sum of all values, each times
# its weight
#
# No score times the sharpness is beyond ±50 here, so `np.exp` never overflows; lesson 02 takes care of larger ones. If
# you are stuck, type `hint(soft_lookup)` in a new cell.

# %% role="exercise" exercise="soft_lookup"
def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float = 1.0) -> np.ndarray:
    """Return all values, each weighted by how well its key fits the query.

    query: (d,). keys: (n, d). values: (n, d_v). sharpness: what the scores are multiplied by, at least 0. Returns: (d_v,).
    """
    # region solution
    scores = sharpness * (keys @ query)
    fits = np.exp(scores - scores.max())  # why the largest is subtracted: lesson 02
    weights = fits / fits.sum()
    return weights @ values
    # endregion

# %% role="check" exercise="soft_lookup"
check(soft_lookup)

# %% [markdown]
# @predict
#
# The query turns slowly from "sweet" (1, 0) to "spicy" (0, 1), and we ask how much sugar comes back. How does the answer of
# `hard_lookup` move on the way, and how that of `soft_lookup`? Sketch two curves.
#
# @answer
#
# The hard answer is a staircase: 30 g while the tart wins, then 18 g for the chutney, then 4 g for the curry, with a jump
# wherever the winner changes. The soft answer glides down, because each weight changes a little whenever the query does.
#
# @wrong
#
# If you drew two sloping lines, you let the hard look-up answer something between two dishes. It cannot: it always returns one
# row of `values`. If your staircase had a step for the bread, note that in each of these directions some other dish reaches
# further.

# %% role="payoff" exercise="soft_lookup"
if passed(soft_lookup) and passed(hard_lookup):
    degrees = np.linspace(0, 90, 9001)
    queries = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    hard = np.array([hard_lookup(query, keys, values)[0] for query in queries])
    soft = np.array([soft_lookup(query, keys, values)[0] for query in queries])
    jumps = degrees[1:][np.diff(hard) != 0]
    assert len(jumps) == 2 and (np.diff(soft) < 0).all()  # two jumps; the soft answer falls all the way
    figures.start_here.turning_query(degrees, hard, soft, dict(zip(values[:, 0], dishes)))

# %% [markdown]
# The hard answer jumps at {{ jumps[0]:.1f }}° and {{ jumps[1]:.1f }}° and is constant everywhere else. This matters
# for learning. A model learns in small steps: training asks how the result would change if one of the model's numbers
# changed a little, and moves that number in the direction that helps. If a small change of the query changes nothing
# in the answer, there is no direction to move in. The next cell measures this: the query moves by a thousandth, and
# we see how far each answer moves.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup) and passed(hard_lookup):
    before, after = np.array([1.0, 0.6]), np.array([1.0, 0.601])
    for lookup in (hard_lookup, soft_lookup):
        moved = lookup(after, keys, values) - lookup(before, keys, values)
        print(f"{lookup.__name__}: sugar moves by {moved[0]:.4f} g")

# %% [markdown]
# ## Break it on purpose: how sharp?
#
# `soft_lookup` multiplies the scores by `sharpness` before the exponential. So far it was 1. The next cell tries other numbers
# for the guest who asks for (1, 0.6). Add your own, too.

# %% [markdown]
# @predict
#
# What does the soft look-up return at sharpness 0, and what does it come close to at sharpness 100?
#
# @answer
#
# At 0 all scores are 0, all weights are equal, and the average of the menu comes back: 13.50 g of sugar. At 100 nearly all
# weight is on the chutney, whose score is the largest, so that the answer agrees with the hard one to all the digits printed.
# It is not the same: the tart's score is 0.2 lower, and its weight is about e⁻²⁰, which is small and not 0.
#
# @wrong
#
# If you expected 0 g at sharpness 0, you took the weights to be 0. They are e⁰ = 1 each before the division, and ¼ after it. If
# you expected the two look-ups to be equal at 100, remember that an exponential is never 0.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup):
    query = np.array([1.0, 0.6])
    for sharpness in (0, 0.1, 1, 10, 100):
        sugar, chili, price = soft_lookup(query, keys, values, sharpness)
        print(f"sharpness {sharpness:5}: {sugar:5.2f} g sugar, {chili:.2f} g chili, {price:.2f} euros")

# %% [markdown]
# Attention works between these two extremes, and the size of the scores decides where. This is why lesson 01 divides
# the scores by √d_k (d_k is how many numbers a key has), and why lesson 04 is devoted to that division.

# %% [markdown]
# ## What a soft look-up is good for
#
# A soft look-up can predict. In the 1920s somebody drove cars at various speeds, braked, and wrote down the distance in which
# each came to a stop (50 stops; M. Ezekiel, *Methods of Correlation Analysis*, 1930; the data set `cars` of the language R). We
# make the speed the key and the distance the value, and ask for a speed that nobody drove.

# %% role="given"
speeds = np.array([  # miles per hour; 10 of them are 16 km/h
    4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15,
    15, 16, 16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25])
distances = np.array([  # feet; 10 of them are 3 m
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26,
    54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85])
assert speeds.mean() == 15.4 and distances.mean() == 42.98  # as published

# %% [markdown]
# One thing is missing. Here a key should score high when it is *close* to the query, and a dot product does not
# measure closeness. With the right keys, though, it can. The squared distance between a query q and a key k is
# q² − 2qk + k². The smaller it is, the larger the score should be, so we reverse the sign: −q² + 2qk − k². The term
# −q² is the same for all keys. It changes no comparison between them, and in softmax it multiplies every exponential
# by the same factor, which cancels. So we leave it out. What remains, 2qk − k², is the dot product of (q, 1) and (2k,
# −k²), and we file each stop under the key (2k, −k²).

# %% role="given"
def speed_keys(speed):
    """Keys (n, 2) for which the dot product with (q, 1) is largest where q is nearest to the speed."""
    return np.stack([2.0 * speed, -1.0 * speed**2], axis=1)

# %% [markdown]
# @predict
#
# Nobody drove 21 mph. At 20 mph the five stops took 32, 48, 52, 56 and 64 feet, in this order; at 22 mph one took 66. What
# does the hard look-up say for 21 mph? Is the answer of the soft one, which blends in slower and faster stops, larger or
# smaller than that?
#
# @answer
#
# The hard look-up says 32 feet: the stops at 20 and at 22 are equally near, and on a tie the first counts, which is the
# shortest of them. The soft answer is larger, about 59 feet: it blends all stops nearby, and the long ones at 22 to 25 mph
# count, too.
#
# @wrong
#
# If you said an average for the hard look-up, remember that it returns one row. If you said 66, remember the tie. A single stop
# says how one driver braked on one day; the blend of many says what to expect.

# %% role="payoff" exercise="soft_lookup"
if passed(soft_lookup) and passed(hard_lookup):
    asked = np.linspace(3, 26, 231)
    filed, feet = speed_keys(speeds), distances[:, None]
    hard_feet = np.array([hard_lookup(np.array([q, 1.0]), filed, feet)[0] for q in asked])
    soft_feet = np.array([soft_lookup(np.array([q, 1.0]), filed, feet, sharpness=0.1)[0] for q in asked])
    at_21 = np.argmin(np.abs(asked - 21))
    print(f"at 21 mph: hard {hard_feet[at_21]:.0f} feet, soft {soft_feet[at_21]:.0f} feet")
    figures.start_here.stopping(speeds, distances, asked, hard_feet, soft_feet)

# %% [markdown]
# Which of the two predicts better? We leave out one stop, predict it from the other 49, note how many feet we are off
# by, and do this for all 50. The hard look-up depends on the order in which the stops are listed, since on a tie the
# first counts. So we try it in 20 random orders. To be fair to the hard one, we also try its best version, which takes
# the mean of all stops that are equally near; and as a yardstick, a straight line through all the stops.

# %% role="payoff" exercise="soft_lookup" tags=["nbval-check-output"]
if passed(soft_lookup) and passed(hard_lookup):
    def nearest_mean(query, keys, values):
        return values[keys @ query == (keys @ query).max()].mean(axis=0)

    def line(query, keys, values):
        return np.polyval(np.polyfit(keys[:, 0] / 2, values[:, 0], 1), query[:1])

    def mean_miss(lookup, order, **more):
        speed, distance, misses = speeds[order], distances[order], []
        for left_out in range(50):
            rest = np.arange(50) != left_out
            asked_for = np.array([speed[left_out], 1.0])
            said = lookup(asked_for, speed_keys(speed[rest]), distance[rest, None], **more)
            misses.append(abs(said[0] - distance[left_out]))
        return np.mean(misses)

    orders = [np.random.default_rng(seed).permutation(50) for seed in range(20)]
    missed_hard = [mean_miss(hard_lookup, order) for order in orders]
    print(f"hard: misses by {min(missed_hard):.1f} to {max(missed_hard):.1f} feet")
    missed_soft = {s: mean_miss(soft_lookup, orders[0], sharpness=s) for s in (0, 0.01, 0.1, 1, 10)}
    for sharpness, missed in missed_soft.items():
        print(f"soft, sharpness {sharpness:4}: {missed:.1f} feet")
    missed_mean, missed_line = mean_miss(nearest_mean, orders[0]), mean_miss(line, orders[0])
    print(f"mean of the nearest: {missed_mean:.1f} feet, a straight line: {missed_line:.1f} feet")
    assert min(missed_soft, key=missed_soft.get) == 0.1 and missed_soft[0.1] < min(missed_hard)
    assert np.mean(missed_hard) - missed_mean > missed_mean - missed_soft[0.1] > 0
    assert abs(missed_line - missed_soft[0.1]) < 0.2

# %% [markdown]
# The hard look-up misses by {{ np.mean(missed_hard):.1f }} feet on average, and by {{ missed_mean:.1f }} where it takes the
# mean of equally near stops: more than half of its disadvantage was that single stops are noisy. The soft one at sharpness 0.1
# misses by {{ missed_soft[0.1]:.1f }}. At sharpness 0 the blend is the average of all stops and ignores the speed; at 10
# it relies on the nearest stops alone. The best of the values tried lies in between. It is no better than a straight
# line here ({{ missed_line:.1f }}), because these stops lie close to one; but nobody had to tell it so. This way of
# predicting is known as *kernel regression* (Nadaraya 1964; Watson 1964), and it has
# everything that attention has, a query, keys, values and weights, except learning. Here we chose the keys. In a
# language model the queries, keys and values come out of training.

# %% [markdown]
# ## What we keep
#
# - A **query** is compared with every **key**. The fit is a dot product, called the **score**.
# - A hard look-up returns one **value**. A soft one returns a blend of all values, by **weights** that are positive and sum to
#   1.
# - The soft answer changes smoothly with the query, and so it can be learned by small steps. The hard one is constant between
#   its jumps: a small step changes nothing.
# - Attention is the soft one: "mapping a query and a set of key-value pairs to an output", where the output is a weighted sum
#   of the values (Vaswani et al. 2017, *Attention is all you need*, section 3.2).
#
# | what | shape |
# |---|---|
# | query | (d,) |
# | keys, one row per entry | (n, d) |
# | values, one row per entry | (n, d_v) |
# | scores and weights | (n,) |
# | answer | (d_v,) |
#
# The picture below is the whole machine that this course builds. The token *it* asks, all tokens answer, and the
# token goes on with what it has found. The part in color is the soft look-up of this lesson, for one query. The step
# that makes queries, keys and values from the tokens is still pale; lesson 03 adds it.

# %% role="demo"
figures.machine.draw(lit=("query", "key", "value", "scores", "weights", "blend", "output"))

# %% role="demo"
progress()

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners meet the three words query, key and value on something that is not language, and see why a blend can be learned where
# a choice cannot. They also meet the tools (`check`, `hint`, `explain`) on an exercise that nobody fails for long, so that
# later lessons can be about attention alone.
#
# ## Cut for 60 minutes
#
# Nothing: with lesson 01 up to its first exercise it fills an hour. In a mixed class show the figure of the turning query and
# the stopping distances on the projector and skip the cells that make them.
#
# ## Cut for 90 minutes
#
# Combine it with lesson 01. Leave out "Break it on purpose" and the measurement of the misses; ask the prediction about 21 mph
# aloud.
#
# ## Mistakes to expect
#
# - hard_lookup HL1: You compared with the keys. What did the guest want to be told?
# - hard_lookup HL2: Two keys have the same largest score. Which of the two does your loop end with, and why?
# - hard_lookup HL12: `query @ keys` runs without an error here. Over which axis does it add up?
# - hard_lookup HL4: Which key is nearest to (1, 0.6), and which has the largest dot product?
# - soft_lookup SL1: What does your answer become at sharpness 0, and what should it become?
# - soft_lookup SL2: What do your weights sum to?
# - soft_lookup SL6: What is the weight of an entry whose score is −1?
#
# ## To discuss
#
# - When is a hard look-up what you want? A good answer names a case in which a blend is meaningless (a phone number, a file
#   name) and says that nothing has to be learned through it.
# - In the sentence about the animal, what would the query of *it* have to ask for, and what would the keys have to say? A good
#   answer notices that the query must depend on the rest of the sentence ("tired" or "wide"), and that keys must say what a
#   word *can do*, not how it is spelled.
#
# ## On paper
#
# Three keys (1, 0), (0, 1), (1, 1) have the values 6, 0 and 3. For the query (ln 2, 0), compute the weights of the soft look-up
# and its answer. *Solution:* the scores are ln 2, 0 and ln 2, the exponentials 2, 1 and 2, the weights 2/5, 1/5 and 2/5. The
# answer is 2/5·6 + 1/5·0 + 2/5·3 = 18/5 = 3.6. The hard look-up answers 6: the first and the third key tie, and the first
# counts.
