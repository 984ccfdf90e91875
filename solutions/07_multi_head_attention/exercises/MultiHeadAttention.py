"""Attention in several heads, between two projections."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import (
    ROW_MAXIMUM,
    batch_independence,
    hidden_gets_no_weight,
    invariant,
    normal,
    random_mask,
    rows_sum_to_1,
    scale_mistakes,
    softmax_by_hand,
)
from ..shared import DEALT, INTERLEAVED, LAYERS, REFUSED, VIEWED, state_of

REFUSE = """if d_model % num_heads:
            raise ValueError(f'd_model = {d_model} is not divisible by num_heads = {num_heads}')"""
SCALE = " / math.sqrt(q.shape[-1])"
HIDE = "scores = scores.masked_fill(~mask, -torch.inf)"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"

# Ways in which right code is written otherwise. Where a mistake makes sizes that do not fit, each raises in other words.
PLAIN, LOW = patch(), patch("-torch.inf", "-1e9")
IN_PLACE = patch("scores.masked_fill(", "scores.clone().masked_fill_(")
FILLS = (PLAIN, IN_PLACE)
EINSUMS = tuple(
    patch("weights @ v", f"torch.einsum('{letters}', weights, v)") for letters in ("bhqk,bhkd->bhqd", "bhij,bhjd->bhid")
)
BY_QUERY = patch("merge_heads(weights @ v)", "(weights @ v).transpose(1, 2).reshape(query.shape)")

SCORES_TURNED = patch("q @ k.mT", "k @ q.mT")
Q_FROM_KEY, K_FROM_QUERY = patch("self.w_q(query)", "self.w_q(key)"), patch("self.w_k(key)", "self.w_k(query)")
ALL_EXCHANGED = K_FROM_QUERY + patch("self.w_v(value)", "self.w_v(query)")
Q_AS_LONG_AS_QUERY = patch(  # the keys, cut with the sizes of query
    "split_heads(self.w_q(query), self.num_heads)",
    "self.w_q(key).reshape(*query.shape[:2], self.num_heads, query.shape[2] // self.num_heads).transpose(1, 2)",
)


def _options(state: dict[str, np.ndarray], d: int, heads: int, **more: Any) -> dict[str, Any]:
    return {"init": (d, heads), "state": state, "linear": LAYERS, **more}


def _companions(rng: np.random.Generator) -> Iterator[Case]:
    options = _options(state_of(rng, 6), 6, 2)
    query, key, value = (rng.normal(size=(2, t, 6)).astype(np.float32) for t in (3, 4, 4))

    def case(name: str, title: str, *arrays: np.ndarray) -> Case:
        return Case(name, title, tuple(map(Tensor, arrays)), probe="module", options=options)

    order = [2, 0, 3, 1]
    yield case("keys", "three queries, four keys", query, key, value)
    yield case("keys reordered", "the same, keys and values in another order", query, key[:, order], value[:, order])
    others = [array.copy() for array in (query, key, value)]
    for array in others:
        array[0] = rng.normal(size=array.shape[1:])
    yield case("item changed", "the same, the first item of the batch replaced", *others)


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores of 0 and ±10,000 in every row, and halves beside them, which float32 holds exactly; heads of four numbers.

    A row that asks for the high scores finds them hidden, where there is a mask, and sees the low ones alone.
    """
    for i, (heads, masked) in enumerate(((3, ""), (2, "each head"), (3, "all"), (2, "each head"))):
        b, t_k, d = 2, 5, 4 * heads
        state = {name: 0.3 * array for name, array in state_of(rng, d).items()}
        for name in ("w_q", "w_k"):
            state[f"{name}.weight"][:], state[f"{name}.bias"][:] = 0, 0
        state["w_q.weight"][0::4, 0], state["w_q.bias"][1::4] = 1, 1
        for h in range(heads):
            state["w_k.weight"][4 * h, 0] = (-1) ** h  # what is high for one head is low for the next
            state["w_k.weight"][4 * h + 1, 1 + h] = 1
        query, key, value = (rng.normal(size=(b, t, d)).astype(np.float32) for t in (3, t_k, t_k))
        asked = rng.permutation([100, -100, 0])
        found = np.array([rng.permutation([-200, -200, 0, 200, 200]) for _ in range(b)])
        query[..., 0], key[..., 0] = asked, found
        key[..., 1 : 1 + heads] = rng.integers(-2, 3, size=(b, t_k, heads))
        mask = asked[:, None] * found[0] < 0  # a (T_q, T_k) mask of the lowest scores
        mask[asked == 0] = random_mask(rng, 1, t_k)
        if masked == "each head":
            mask = np.stack([mask, random_mask(rng, 3, t_k)])
        title = f"scores of 0 and ±10,000{f', with a mask for {masked}' if masked else ''}"
        given = (query, key, value, mask) if masked else (query, key, value)
        yield Case(
            f"large-{i}",
            title,
            tuple(map(Tensor, given)),
            probe="module",
            stage="extremes",
            options=_options(state, d, heads),
            atol=5e-3,
            rtol=1e-3,
        )


@exercise(
    kind="class",
    points=4,
    minutes=25,
    difficulty=3,
    result_type="tensor",
    result_names=("output", "weights"),
    forbids=("attention",),
    pair_runs=30,
)
class MultiHeadAttention:
    """Write multi-head attention as an `nn.Module`: project, attend in several heads, project again."""

    def cases(rng):
        """Self and cross attention, masks of every shape that broadcasts, large scores, what should be refused."""

        def case(
            key: str,
            title: str,
            sizes: tuple[int, ...],
            mask: Any = None,
            grad: bool = False,
            by_name: bool = False,
            **more: Any,
        ):
            b, t_q, t_k, d, heads = sizes
            inputs = [normal(rng, b, t, d, grad=grad) for t in (t_q, t_k, t_k)]
            mask = None if mask is None else Tensor(mask)
            given, named = ((), {"mask": mask}) if by_name else (() if mask is None else (mask,), {})
            small = 0.4 if d > 10 else 1  # sums so long round further off in float32
            state = {name: small * array for name, array in state_of(rng, d).items()}
            probe = "shared.probes.after_earlier_calls" if "earlier" in more else "module"
            return Case(
                key,
                title,
                (*inputs, *given),
                named,
                probe=probe,
                options=_options(state, d, heads, gradients=grad, **more),
            )

        yield case("small", "two queries, three keys, two heads of two numbers", (1, 2, 3, 4, 2))
        yield case("sizes", "all sizes different, three heads", (2, 4, 5, 6, 3), grad=True)
        yield case("seen-again", "the same sizes, new numbers, in training mode", (2, 4, 5, 6, 3), mode="train")
        yield case("square", "as many queries as keys, heads and numbers in a head", (2, 3, 3, 9, 3))
        ones = tuple(np.ones((2, t, 5), np.float32) for t in (3, 4, 4))
        yield case("one-head", "one head, after a call in which it had other weights", (2, 3, 4, 5, 1), earlier=(ones,))
        yield case(
            "single", "heads of one number, a mask (num_heads, T_q, T_k)", (2, 3, 4, 2, 2), random_mask(rng, 2, 3, 4)
        )
        yield case("one-token", "a batch of one, one query and one key", (1, 1, 1, 4, 2))
        yield case("masked", "a mask (T_q, T_k) for all", (2, 3, 4, 6, 2), random_mask(rng, 3, 4), grad=True)
        padding = random_mask(rng, 2, 1, 1, 5)
        padding[0] = True
        yield case("padding", "a mask (B, 1, 1, T_k) that hides nothing in the first item", (2, 3, 5, 4, 2), padding)
        yield case("each", "a mask for each head, by name", (2, 4, 3, 6, 3), random_mask(rng, 2, 3, 4, 3), by_name=True)
        yield case(
            "heads", "a mask (num_heads, T_q, T_k), as many heads as items", (3, 2, 4, 6, 3), random_mask(rng, 3, 2, 4)
        )
        yield case("none", "mask=None, by name, nine keys, six heads", (5, 4, 9, 12, 6), by_name=True)
        yield case(
            "as-many", "as many queries as keys, with a mask", (2, 3, 3, 4, 2), random_mask(rng, 3, 3), grad=True
        )
        earlier = ((*(rng.normal(size=(2, 4, 6)).astype(np.float32) for _ in range(3)), random_mask(rng, 4, 4)),)
        again = "in training mode, after a call with other tokens and a mask"
        yield case("training", again, (2, 4, 4, 6, 2), grad=True, mode="train", earlier=earlier)
        yield case(
            "training-masked", "in training mode, with a mask", (2, 3, 4, 4, 2), random_mask(rng, 3, 4), mode="train"
        )
        yield from _companions(rng)
        yield from _large(rng)
        for d_model, heads in ((6, 4), (8, 3), (5, 2)):
            x = normal(rng, 1, 3, d_model, grad=False)
            yield Case(
                f"uneven-{d_model}",
                f"{heads} heads do not divide d_model {d_model}",
                (x, x, x),
                probe="module",
                raises="ValueError",
                options={"init": (d_model, heads)},
            )

    sums = rows_sum_to_1()
    hidden = hidden_gets_no_weight()
    order = invariant(
        "the order of the keys does not matter",
        ("keys", "keys reordered"),
        "keys and values came in another order, and the output moved by {gap}.",
    )
    items = batch_independence("keys", "item changed")

    hints = (
        "Which of the steps project → split → scores → softmax → weighted sum → merge → project need to know that there are heads?",
        "After the split every product works on the last two axes, and the heads are one more axis of the batch. The width "
        "under the root is that of one head.",
        "q, k, v = (split_heads(layer(x), self.num_heads) for layer, x in ((self.w_q, ____), (self.w_k, ____), (self.w_v, ____)))\n"
        "scores = q @ k.mT / math.sqrt(____)\nif mask is not None:\n    scores = scores.masked_fill(____, -torch.inf)\n"
        "weights = torch.softmax(scores, dim=-1)\nreturn self.w_o(____), weights",
    )

    mistakes = {
        **scale_mistakes(),
        "SD3": patch("sqrt(q.shape", "sqrt(query.shape"),
        "SD4": patch("sqrt(q.shape[-1]", "sqrt(self.num_heads"),
        "SD6": patch(SCALE, "", SOFTMAX, f"{SOFTMAX}{SCALE}"),
        "SM1": (patch("dim=-1", "dim=-2"), patch("dim=-1", "dim=-2") + LOW),
        "SM2": (
            patch("dim=-1", "dim=0"),
            patch("dim=-1", "dim=1"),
            patch("dim=-1", "dim=0") + LOW,
            patch("dim=-1", "dim=1") + LOW,
        ),
        "SM3": (softmax_by_hand("scores - scores.max()", "e.sum()"), softmax_by_hand(ROW_MAXIMUM, "e.sum()")),
        "SM4": tuple(softmax_by_hand(ROW_MAXIMUM, "e.sum(dim=-1)") + way for way in (PLAIN, BY_QUERY)),
        "SM5": softmax_by_hand("scores"),
        "SM6": tuple(
            softmax_by_hand(f"scores - scores.{top}") for top in ("max()", "amax(dim=(-2, -1), keepdim=True)")
        ),
        "MH1": patch(*VIEWED, of="split_heads"),
        "MH2": patch(".transpose(1, 2)", "", of="merge_heads"),
        "MH3": patch(".transpose(1, 2)", "", of="split_heads")
        + patch("transpose(1, 2).reshape(b, t, num_heads * d_head)", "flatten(2)", of="merge_heads"),
        "MH4": patch("reshape", "view", of="merge_heads"),
        "MK1": (patch("~mask", "mask"), patch("~mask", "mask") + LOW),
        "MK2": patch(
            HIDE, "pass", SOFTMAX, f"{SOFTMAX}\n        weights = weights if mask is None else weights * mask"
        ),
        "MK3": patch(HIDE, "scores = scores * mask"),
        "MK4": (
            *(patch("-torch.inf", fill) for fill in ("-10000.0", "-1000.0", "-100.0", "-20.0")),
            patch(HIDE, "scores = scores + ~mask * -10000.0"),
        ),
        "MK5": patch(HIDE, "scores = scores + (1 - mask.to(scores)) * -torch.inf"),
        "MK6": patch(HIDE, "scores = scores + mask"),
        "MK12": tuple(patch("~mask", "~mask[..., :scores.shape[-2], :scores.shape[-2]]") + fill for fill in FILLS),
        "BW3": (patch("weights @ v", "weights.detach() @ v"), patch("dim=-1)", "dim=-1).detach()")),
        "NT7": patch("(output, weights)", "(output, weights.detach())"),
        "NT8": patch("(output, weights)", "(weights, output)"),
        "SD8": (
            *(SCORES_TURNED + way for way in (PLAIN, *EINSUMS)),
            Q_FROM_KEY + K_FROM_QUERY,
            patch("weights @ v", "weights.mT @ v"),
        ),
        "MU1": patch(REFUSE, "") + patch(*REFUSED, of="split_heads"),
        "MU2": patch("self.w_o(merge", "merge", "v))", "v)"),
        "MU3": mistake(
            patch("(output, weights)", "(output, weights.mean(dim=1))"),
            says="The weights are averaged over the heads; those of each head were asked for.",
            why="""`nn.MultiheadAttention` averages unless told otherwise (`average_attn_weights=False`). A mean of heads that look
            at different places is a picture of none of them.""",
        ),
        "MU4": patch(*DEALT, of="split_heads"),
        "MU5": mistake(
            patch("self.w_v(value)", "self.w_v(key)"),
            patch("self.w_k(key)", "self.w_k(value)"),
            ALL_EXCHANGED,
            *(Q_FROM_KEY + way for way in (PLAIN, BY_QUERY, ALL_EXCHANGED)),
            Q_AS_LONG_AS_QUERY,
            says="An argument went to another projection than its own: w_q should read query, w_k key, and w_v value.",
            why="""In self-attention query, key and value are one tensor, so the slip does not show. In cross-attention they differ:
            the queries come from the decoder and decide the number of rows, and what is compared with them is key. What is read is
            value. A decoder whose keys and values are made from query only ever reads itself.""",
        ),
        "MU7": mistake(
            patch("self.w_k(key)", "self.w_q(key)"),
            patch("self.w_k(key)", "self.w_q(key)", "self.w_v(value)", "self.w_q(value)"),
            patch("self.w_k(key)", "self.w_v(key)", "self.w_v(value)", "self.w_k(value)"),
            says="The layers were mixed up: w_q should make the queries, w_k the keys, and w_v the values.",
            why="""With w_q for queries and keys, each token's key in self-attention equals its query, so i scores j exactly as j
            scores i. With w_k and w_v exchanged, such a module learns as well, but weights that a right one has saved mean something
            else in it. Use each layer once.""",
        ),
        "MU11": (
            patch("~mask", "~mask.unsqueeze(1)"),
            patch("~mask", "~(mask.unsqueeze(1) if mask.dim() == 3 else mask)"),
            *(patch("~mask", "~mask.mT") + fill for fill in FILLS),
        ),
        "MU17": patch(*INTERLEAVED, of="merge_heads"),
        "MU18": tuple(
            patch(
                "transpose(1, 2).reshape(b, t, num_heads * d_head)",
                f"{added}(dim=1).repeat(1, 1, num_heads)",
                of="merge_heads",
            )
            for added in ("sum", "mean")
        ),
        "MU21": (
            patch(
                f"if mask is not None:\n            {HIDE}\n        {SOFTMAX}",
                f"""{SOFTMAX}
        if mask is not None:
            weights = weights * mask
            weights = weights / weights.sum(dim=-1, keepdim=True)""",
            ),
        ),
        "MU22": mistake(
            patch("-torch.inf", "torch.inf"),
            patch("-torch.inf", "1e9"),
            says="The fill has the wrong sign: hidden scores must be −∞, and a large positive score takes all the weight.",
            why="""Softmax gives the largest score the most. A hidden key at +10⁹ outweighs every visible one; at +∞ the row's
            maximum is ∞, and ∞ − ∞ is NaN. Rows in which nothing is hidden are right.""",
        ),
        "MU25": (
            *(
                patch("output =", f"weights = nn.functional.dropout(weights, {p})\n        output =")
                for p in (0.1, 0.2, 0.5)
            ),
            *(
                patch("output =", f"weights = nn.functional.dropout(weights, {p}, self.training)\n        output =")
                for p in (0.1, 0.2, 0.5)
            ),
        ),
        "MU45": mistake(
            patch(
                "q = split_heads(self.w_q(query)",
                """n = query.shape[-1] // self.num_heads
        blocks = torch.block_diag(*torch.ones(self.num_heads, n, n)).to(query)
        q = split_heads(nn.functional.linear(query, self.w_q.weight * blocks, self.w_q.bias)""",
                "self.w_k(key)",
                "nn.functional.linear(key, self.w_k.weight * blocks, self.w_k.bias)",
                "self.w_v(value)",
                "nn.functional.linear(value, self.w_v.weight * blocks, self.w_v.bias)",
            ),
            says="The tokens themselves were cut into heads, so each head saw one slice; project the whole token, then cut.",
            why="""A head's queries, keys and values are d_head numbers each, and every one of them may depend on all d_model features of
            the token. Cut first, a head multiplies its own slice by one block on the diagonal of each matrix; the rest is never used.""",
        ),
    }
