"""How the steps of lesson 01 go wrong: each mistake as a switch of one implementation, and as a text."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from grader.model import MistakeText


def wrong_scores(*bugs: str) -> Callable[..., np.ndarray]:
    def attention_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
        if "TT2" in bugs:
            return Q.T @ K
        if "TT3" in bugs:
            return Q @ K
        if "TT7" in bugs:
            return -((Q[:, None] - K[None]) ** 2).sum(axis=-1)
        if "SD8" in bugs and "by index" in bugs:
            return scores_by_index(Q, K)
        scores = K @ Q.T if "SD8" in bugs else Q @ (Q if "TT4" in bugs else K).T
        if "TT5" in bugs:
            scores = scores / (np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1))
        if "TT1" in bugs:
            scores = scores / np.sqrt(Q.shape[1])
        return wrong_softmax()(scores) if "TT6" in bugs else scores

    return attention_scores


def scores_by_index(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """One score at a time, with the indices of query and key exchanged."""
    scores = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            scores[i, j] = Q[j] @ K[i]
    return scores


def wrong_scale(*bugs: str) -> Callable[..., np.ndarray]:
    def scale_scores(scores: np.ndarray, d_k: int) -> np.ndarray:
        if "TT12" in bugs:
            return scores // np.sqrt(d_k)
        if "TT8" in bugs:
            d_k = scores.shape[-1]
        divisor = {
            "SD1": 1.0, "SD2": float(d_k), "SD5": 1 / np.sqrt(d_k), "TT9": 2.0 * d_k, "TT10": np.sqrt(2),
            "TT11": float(int(np.sqrt(d_k))), "TT31": d_k / 2,
        }  # fmt: skip
        root = next((divisor[bug] for bug in bugs if bug in divisor), np.sqrt(d_k))
        if "TT41" in bugs:
            scores /= root
            return scores
        return scores / root

    return scale_scores


def wrong_softmax(*bugs: str) -> Callable[..., np.ndarray]:
    def softmax_rows(scores: np.ndarray) -> np.ndarray:
        axis = 0 if "SM1" in bugs else None if "SM3" in bugs else 1
        if "TT13" in bugs:
            return scores / scores.sum(axis=axis, keepdims=True)
        if "TT16" in bugs:
            return np.eye(scores.shape[1])[scores.argmax(axis=1)]
        if "TT18" in bugs:
            return 1 / (1 + np.exp(-scores))
        if "by math.exp" in bugs or "by math.exp into an array" in bugs:
            return rows_by_math(scores, float(scores.max()) if "SM6" in bugs else 0.0, "by math.exp into an array" in bugs)
        scores = -scores if "TT19" in bugs else scores
        scores = _shifted(scores, axis, bugs)
        grown = (np.exp2 if "TT17" in bugs else np.exp)(scores)
        if "TT14" in bugs:
            return grown
        weights = grown / grown.sum(axis=axis, keepdims="SM4" not in bugs)
        return np.nan_to_num(weights) if "TT42" in bugs else weights

    return softmax_rows


def rows_by_math(scores: np.ndarray, top: float, stored: bool) -> np.ndarray:
    """Softmax of each row by math.exp, which raises where np.exp gives ∞; so does the division of Python's numbers by 0.

    top: what is subtracted everywhere. stored: the exponentials stand in an array before they are divided.
    """
    rows = []
    for row in scores:
        grown = [math.exp(score - top) for score in row]
        rows.append(np.array(grown) / sum(grown) if stored else [number / sum(grown) for number in grown])
    return np.array(rows)


def _shifted(scores: np.ndarray, axis: int | None, bugs: tuple[str, ...]) -> np.ndarray:
    """The scores less what keeps their exponentials small, or what the bugs do in its place."""
    if "SM5" in bugs or "TT42" in bugs:
        return scores
    if "TT43" in bugs:
        bound = 50 if "bound of float32" in bugs else 700
        return np.clip(scores, -bound, bound)
    measure = np.mean if "SX4" in bugs else np.min if "SX10" in bugs else np.max
    axis = None if "SM6" in bugs else 0 if "TT15" in bugs else 1 if "maximum of the row" in bugs else axis
    top = measure(np.abs(scores) if "SX23" in bugs else scores, axis=axis, keepdims=not {"SX26", "of both"} & {*bugs})
    top = np.maximum(top, 0) if "SX25" in bugs else top
    if "TT41" in bugs:
        scores -= top
        return scores
    return scores - top


def wrong_sum(*bugs: str) -> Callable[..., np.ndarray]:
    def weighted_sum(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        if "TT20" in bugs:
            return weights @ V.T
        if "TT32" in bugs:
            return V @ weights
        if "TT26" in bugs:
            return (weights[:, :, None] * V).sum(axis=-1)
        if "TT21" in bugs and "after the product" in bugs:
            return weights @ V / weights.sum(axis=1, keepdims=True)
        if "TT21" in bugs:
            weights = weights / weights.sum(axis=1, keepdims=True)
        if "TT23" in bugs:
            weights = wrong_softmax()(weights)
        if "TT24" in bugs:
            return V[weights.argmax(axis=1)]
        if "TT25" in bugs:
            weights, V = weights[:, :-1], V[:-1]
        if "SD8" in bugs and "by einsum" in bugs:
            return np.einsum("kq,kv->qv", weights, V)
        if "SD8" in bugs and "by index" in bugs:
            return _sum_by_index(weights, V)
        result = weights.T @ V if "SD8" in bugs else weights @ V
        return result / len(V) if "TT22" in bugs else result

    return weighted_sum


def _sum_by_index(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    """One share at a time, with the indices of the weights exchanged."""
    output = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(V)):
            output[i] += weights[j, i] * V[j]
    return output


def wrong_attention(*bugs: str) -> Callable[..., object]:
    def three_token_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> object:
        d_k = V.shape[1] if "TT28" in bugs else Q.shape[1]
        if "TT41" in bugs:
            Q /= np.sqrt(d_k)
            return wrong_attention("SD1")(Q, K, V)
        if "SD8" in bugs:
            scores = np.einsum("qd,kd->kq", Q, K) if "by einsum" in bugs else scores_by_index(Q, K) if "by index" in bugs else K @ Q.T
        else:
            scores = Q @ (K if "TT3" in bugs else K.T)
        scaled = scores if "SD6" in bugs else wrong_scale(*bugs)(scores, d_k)
        weights = wrong_softmax(*bugs)(scaled)
        if "SD6" in bugs and "output alone" not in bugs:
            weights = weights / np.sqrt(d_k)
        if "TT44" in bugs and "by index" in bugs:
            output = _sum_by_index(weights, V)
        elif "by einsum" in bugs:
            output = np.einsum("kq,kv->qv" if "TT44" in bugs else "qk,kv->qv", weights, V)
        else:
            output = (weights.T if "TT44" in bugs else weights) @ (K if "TT29" in bugs else V)
        output = output / np.sqrt(d_k) if "output alone" in bugs else output
        second = scaled if "TT30" in bugs else weights
        if "TT33" in bugs:
            return output
        return (second, output) if "TT27" in bugs else (output, second)

    return three_token_attention


TEXTS = (
    MistakeText(
        "TT1", "The scores are already divided by √d_k; this step asks for the plain dot products.",
        "Scaling is the next exercise's step. If both do it, the scores are divided twice.",
        "Q @ K.T / np.sqrt(Q.shape[1])", "Q @ K.T"),
    MistakeText(
        "TT2", "`Q.T @ K` adds up over the tokens and pairs features with features; tokens are to meet tokens.",
        "A matrix product sums over what lies inside. (d_k, n_q) @ (n_k, d_k) puts the tokens there: it needs "
        "n_q = n_k and gives (d_k, d_k). We want d_k inside: (n_q, d_k) @ (d_k, n_k).",
        "Q.T @ K", "Q @ K.T"),
    MistakeText(
        "TT3", "K is not turned: `Q @ K` multiplies a query with the columns of K, but a key is a row.",
        "The shapes (n_q, d_k) and (n_k, d_k) only fit where n_k happens to equal d_k, and then the numbers are "
        "wrong without any error.",
        "Q @ K", "Q @ K.T"),
    MistakeText(
        "TT4", "Queries meet queries: K does not enter the scores.",
        "A score says how well a key fits a query, so both are needed.", "Q @ Q.T", "Q @ K.T"),
    MistakeText(
        "TT5",
        "The scores are divided by the lengths of query and key (cosine similarity); attention keeps the lengths.",
        "Scaled dot-product attention divides by √d_k alone, the same number for every pair.",
        "Q @ K.T / (|q| |k|)", "Q @ K.T"),
    MistakeText(
        "TT6", "Softmax is applied already: these are weights, and the scores before it were asked for.",
        "Scores may be any number; weights are positive and sum to 1. The steps stay apart, so that the scale can "
        "come between.",
        "softmax_rows(Q @ K.T)", "Q @ K.T"),
    MistakeText(
        "TT7", "The scores are negative squared distances; attention uses dot products.",
        "Both are large for similar vectors, but a distance also punishes a key for being long.",
        "-((Q[:, None] - K) ** 2).sum(axis=-1)", "Q @ K.T"),
    MistakeText(
        "TT8", "The scale is taken from the number of keys; it is the length d_k of a query that counts.",
        "A dot product adds up d_k products and spreads more the more there are of them. How many keys there are "
        "has no part in it.",
        "scores / np.sqrt(scores.shape[-1])", "scores / np.sqrt(d_k)"),
    MistakeText(
        "TT9", "The scores are divided by d_k and then by 2: `d_k ** 1 / 2` is no root.",
        "Python takes powers before divisions and divides from the left: `scores / d_k ** 1 / 2` is "
        "((scores / d_k) / 2). Brackets around the exponent, or 0.5, give the root.",
        "scores / d_k ** 1 / 2", "scores / d_k ** 0.5"),
    MistakeText(
        "TT10", "The scale is √2 whatever d_k is: the table's d_k is written into the code.",
        "The three-token table has d_k = 2. Other queries are longer, so the scale follows d_k.",
        "scores / np.sqrt(2)", "scores / np.sqrt(d_k)"),
    MistakeText(
        "TT11", "The root is cut to a whole number: √2 became 1.",
        "`int` and `math.isqrt` drop what follows the point. Only for square numbers does it make no difference.",
        "scores / int(np.sqrt(d_k))", "scores / np.sqrt(d_k)"),
    MistakeText(
        "TT12", "`//` rounds every quotient down to a whole number; `/` keeps its decimals.",
        "Floor division turns a score of 0.7 into 0 and −0.2 into −1.", "scores // np.sqrt(d_k)",
        "scores / np.sqrt(d_k)"),
    MistakeText(
        "TT13", "The scores are divided by their sum without the exponential.",
        "A row such as [1, −1] sums to 0, and negative scores give negative weights. The exponential makes every "
        "score positive first.",
        "scores / scores.sum(axis=1, keepdims=True)",
        "exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))\n"
        "exponentials / exponentials.sum(axis=1, keepdims=True)"),
    MistakeText(
        "TT14", "The exponentials are not divided by their sum: these weights do not sum to 1.",
        "After subtracting the maximum the largest of them is exactly 1; the others come on top.",
        "return exponentials", "return exponentials / exponentials.sum(axis=1, keepdims=True)"),
    MistakeText(
        "TT15",
        "The largest score of each column is subtracted; only one number for a whole row leaves its weights unchanged.",
        "Subtracting the same c from a row multiplies all its exponentials by exp(−c), which the division removes. "
        "Different numbers within a row do not cancel.",
        "scores - scores.max(axis=0)", "scores - scores.max(axis=1, keepdims=True)"),
    MistakeText(
        "TT16", "The largest score of each row takes all the weight: that is the hard look-up, not softmax.",
        "Softmax gives every key some weight; only differences far beyond 10 make it look hard.",
        "np.eye(n_k)[scores.argmax(axis=1)]", "softmax_rows(scores)"),
    MistakeText(
        "TT17", "Powers of 2 are used; softmax uses powers of e.",
        "With base 2 every score counts ln 2 = 0.69 times as much.", "2 ** scores", "np.exp(scores)"),
    MistakeText(
        "TT18", "Each score goes through a sigmoid on its own; softmax shares one unit of weight among the keys.",
        "Sigmoids of a row sum to anything between 0 and n_k.", "1 / (1 + np.exp(-scores))",
        "np.exp(scores) / sum of the row"),
    MistakeText(
        "TT19", "The sign of the scores is turned: the smallest score gets the largest weight.",
        "exp grows with the score. `np.exp(scores.max() - scores)` has the two exchanged.",
        "np.exp(scores.max(axis=1, keepdims=True) - scores)", "np.exp(scores - scores.max(axis=1, keepdims=True))"),
    MistakeText(
        "TT20", "V is turned: `weights @ V.T` adds up over the features, not over the keys.",
        "(n_q, n_k) @ (n_k, d_v) fits as it stands. Turned, it fits only where n_k = d_v.", "weights @ V.T",
        "weights @ V"),
    MistakeText(
        "TT21", "The weights are divided by their sum again; they are to be taken as they are.",
        "Softmax has already made them sum to 1. A function that mends its input hides mistakes made before it.",
        "weights / weights.sum(axis=1, keepdims=True) @ V", "weights @ V"),
    MistakeText(
        "TT22", "The sum is divided by the number of keys; the weights already share out the whole.",
        "A weighted sum with weights that sum to 1 is an average. A second division makes it too small.",
        "weights @ V / len(V)", "weights @ V"),
    MistakeText(
        "TT23", "Softmax is applied to the weights once more.",
        "Weights between 0 and 1 lie close together, so a second softmax makes them nearly equal.",
        "softmax_rows(weights) @ V", "weights @ V"),
    MistakeText(
        "TT24", "The value with the largest weight is picked; all values are to be blended.",
        "That is the hard look-up of lesson 00.", "V[weights.argmax(axis=1)]", "weights @ V"),
    MistakeText(
        "TT25", "The last key's share is missing from the sum.",
        "A loop to n_k − 1 leaves one out. Published numbers of this table show the same slip: 0.42 · 10 = 4.2 "
        "lacks 0.16 · 5.",
        "for j in range(n_k - 1):", "for j in range(n_k):"),
    MistakeText(
        "TT26", "The sum runs over the features; it is to run over the keys.",
        "`weights[:, :, None] * V` has shape (n_q, n_k, d_v). Summing over its last axis leaves one number a key.",
        "(weights[:, :, None] * V).sum(axis=-1)", "(weights[:, :, None] * V).sum(axis=1)"),
    MistakeText(
        "TT27", "The pair is returned in the wrong order: the output comes first, then the weights.",
        "Both are arrays, so nothing complains until the shapes differ.", "return weights, output",
        "return output, weights"),
    MistakeText(
        "TT28", "The scale is taken from d_v, the length of a value; dot products add up d_k numbers.",
        "In the table both are 2. They differ in general.", "np.sqrt(V.shape[1])", "np.sqrt(Q.shape[1])"),
    MistakeText(
        "TT29", "The keys are blended; the values were to be.",
        "Keys decide how much of each value we take. V itself never enters this output.", "weights @ K", "weights @ V"),
    MistakeText(
        "TT30", "The scaled scores are returned beside the output; the weights after softmax were asked for.",
        "Weights are positive and each row of them sums to 1.", "return output, scaled", "return output, weights"),
    MistakeText(
        "TT31", "The scores are divided by half of d_k: `(d_k ** 1 / 2)` is no root.",
        "Python takes powers before divisions, so this is (d_k ** 1) / 2. It agrees with the root for d_k = 4 alone.",
        "scores / (d_k ** 1 / 2)", "scores / d_k ** (1 / 2)"),
    MistakeText(
        "TT32", "`V @ weights` has the order reversed: rows of weights belong to queries, so weights come first.",
        "(n_k, d_v) @ (n_q, n_k) only fits where d_v = n_q.", "V @ weights", "weights @ V"),
    MistakeText(
        "TT33", "Only the output is returned; the pair (output, weights) was asked for.",
        "The weights tell who looked at whom. Later lessons need both.", "return output", "return output, weights"),
    MistakeText(
        "TT34", "[5.3, 4.2] is one of the printed results, and its parts sum to 9.5.",
        "Every row of V sums to 10 and the weights sum to 1, so every output sums to 10."),
    MistakeText(
        "TT35", "[5, 4] is one of the printed results, and its parts sum to 9.",
        "Every row of V sums to 10 and the weights sum to 1, so every output sums to 10. The 4 is 0.4 · 10 with 0.2 "
        "· 5 left out."),
    MistakeText(
        "TT36", "These are the three weights of the first token; the output is what they make of V, two numbers.",
        "output = weights @ V: 10 times the first weight plus 5 times the third, and likewise for the second "
        "number."),
    MistakeText(
        "TT37", "These are the three weights without the scale; the output is what the weights make of V, two numbers.",
        "[0.42, 0.42, 0.16] is what softmax gives for [1, 1, 0], before the division by √2."),
    MistakeText(
        "TT38", "The third token's share is missing: 10 times the weight, but not 5 times the third weight.",
        "The third value is [5, 5], so both numbers gain 5 times the third weight."),
    MistakeText(
        "TT39", "That is the second token's output; the first token's was asked for.",
        "Row i of the output belongs to query i; counting starts at 0, so the first token has row 0."),
    MistakeText(
        "TT40", "The two numbers are shares of 1; an output is a blend of rows of V, and those sum to 10.",
        "Nothing divides the output. Its parts sum to what the rows of V sum to."),
    MistakeText(
        "TT41", "The input is changed in place: `/=` and `-=` write into the caller's array.",
        "Whoever called the function still needs those numbers. In an array of whole numbers fractions have no place: there "
        "`/=` stops with a UFuncTypeError.",
        "scores /= np.sqrt(d_k)", "scores = scores / np.sqrt(d_k)"),
    MistakeText(
        "TT42", "`np.nan_to_num` puts 0 where the overflow left NaN: such a row has lost its weights.",
        "exp(1000) is still infinite and ∞/∞ still NaN; only the sign of it is removed. Subtracting the row's largest score "
        "first leaves nothing to mend.",
        "np.nan_to_num(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))",
        "exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))\n"
        "exponentials / exponentials.sum(axis=1, keepdims=True)"),
    MistakeText(
        "TT43", "The scores are clipped before exp: those beyond the bound become equal.",
        "Clipped at 700, the scores 1000 and 999 are both 700 and share the weight evenly; their weights are 0.731 and "
        "0.269. Subtracting the largest score keeps the differences.",
        "np.exp(np.clip(scores, -700, 700))", "np.exp(scores - scores.max(axis=1, keepdims=True))"),
    MistakeText(
        "TT44", "The weights are turned before they meet V: row i of the weights belongs to query i.",
        "`weights @ V` adds up over the keys. Turned, the product adds up over the queries, and fits only where there are as "
        "many queries as keys.",
        "weights.T @ V", "weights @ V"),
)  # fmt: skip
