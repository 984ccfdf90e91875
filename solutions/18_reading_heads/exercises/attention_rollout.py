"""Attention of many layers rolled into one matrix, with the residual stream counted as half."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import on_another_device
from .. import readings
from ..shared import causal_weights, unmasked_weights

MIXED = "mixed = 0.5 * weights.mean(dim=1) + 0.5 * identity"
MEAN = "weights.mean(dim=1)"
ROLL = "rolled = mixed @ rolled"
START = "identity.expand(layers[0].shape[0], -1, -1)"
LOOP = "for weights in layers:"


@exercise(points=3, minutes=15, difficulty=2, result_type="tensor", forbids=("tampering",))
class attention_rollout:
    """Roll the attention of several layers into one table that says which token may have come from which."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, h: int, t: int, depth: int, drawn: Any = causal_weights, **more: Any
        ) -> Case:
            layers = [drawn(rng, b, h, t).astype(np.float32) for _ in range(depth)]
            return _case(key, title, layers, **more)

        yield case("small", "two layers, two heads, three tokens", 1, 2, 3, 2)
        yield case("sizes", "four layers, all sizes different", 2, 3, 5, 4)
        yield case("seen-again", "the same sizes, new numbers", 2, 3, 5, 4)
        yield case("one-layer", "one layer", 2, 3, 4, 1)
        yield case("one-head", "three layers of one head, without a mask", 2, 1, 4, 3, unmasked_weights)
        yield case("square", "as many items as heads, tokens and layers", 3, 3, 3, 3)
        yield case("unmasked", "three layers without a mask", 2, 4, 6, 3, unmasked_weights)
        yield case("deep", "nine layers", 2, 2, 4, 9, unmasked_weights)
        yield case("long", "two layers of eighteen tokens", 2, 3, 18, 2)
        yield case("named", "three layers, passed by name", 2, 2, 5, 3, options={"by_name": True})
        yield on_another_device(case("sizes", "four layers, all sizes different", 2, 3, 5, 4))

    @holds("each row of the rollout sums to 1")
    def sums(case, parts):
        sums = parts["result"].sum(axis=-1)
        at = np.unravel_index(np.abs(sums - 1).argmax(), sums.shape)
        return None if abs(sums[at] - 1) < 1e-3 else f"item {at[0]}, row {at[1]} sums to {sums[at]:.4g}."

    hints = (
        "If layer 1's token mixes what layer 0 has mixed, in which order do the two tables multiply?",
        "A_last @ … @ A_first: each new layer is multiplied from the left. A is (B, T, T): half of the mean over the heads, half of the "
        "identity, which stands for the residual stream.",
        "rolled = torch.eye(layers[0].shape[-1], device=____)\nfor weights in layers:\n    a = 0.5 * weights.mean(dim=____) + 0.5 * ____\n"
        "    rolled = ____ @ ____\nreturn rolled",
    )

    mistakes = {
        "RL1": mistake(
            patch(ROLL, "rolled = rolled @ mixed"),
            patch(LOOP, "for weights in layers[::-1]:"),
            patch(LOOP, "for weights in reversed(layers):"),
            says="The layers were multiplied in the wrong order; A_last @ … @ A_first is expected.",
            why="""Row i of the last table says which positions of the layer below token i reads. Those positions have read others in turn:
            last @ before. With two tables that happen to commute nothing shows it.""",
        ),
        "RL2": mistake(
            patch(MIXED, f"mixed = {MEAN}"),
            patch(MIXED, f"mixed = {MEAN}", "return rolled", "return 0.5 * rolled + 0.5 * identity"),
            says="""The identity is missing from the layers' tables, or was added once at the end; each layer should have its half, ½ · A
            + ½ · I.""",
            why="""A block adds the heads' result to x, so a token also keeps what it was, through the residual stream, and every block
            has a connection of its own. Without the identity a layer counts only what attention read; with a causal mask, everything then
            seems to come from the first token after enough layers.""",
        ),
        "RL3": mistake(
            patch(MIXED, f"mixed = {MEAN} + identity"),
            says="Attention and identity were added without the halves: rows sum to 2, and after n layers to 2ⁿ.",
            why="""½ · A + ½ · I keeps each row a set of shares that sum to 1. The result without the halves is off by 2 to the number of
            layers.""",
        ),
        "RL6": mistake(
            patch(MEAN, "weights.sum(dim=1)"),
            patch(MEAN, "weights.amax(dim=1)"),
            patch(
                MIXED, "mixed = weights.amax(dim=1) + identity\n        mixed = mixed / mixed.sum(dim=-1, keepdim=True)"
            ),
            says="The heads' sum or their largest weight was taken; their mean was asked for.",
            why="""With H heads the sum counts attention H times as much as the residual stream, and rows sum to more than 1. Published
            code offers the maximum and the minimum besides the mean, since they make cleaner pictures. Abnar and Zuidema take the mean.""",
        ),
        "RL8": mistake(
            patch(MEAN, "weights.mean(dim=0)"),
            patch(MEAN, "weights.mean(dim=0)", START, "identity"),
            patch(MEAN, "weights.mean(dim=(0, 1))"),
            says="The mean was taken over the batch, alone or as well; it should be taken over the heads alone, axis 1.",
            why="""Weights are (B, H, T, T): the heads are axis 1.""",
        ),
        "RL9": mistake(
            patch(ROLL, "rolled = mixed * rolled"),
            patch(ROLL, "rolled = mixed * rolled", START, "torch.ones_like(layers[0][:, 0])"),
            patch(ROLL, "rolled = rolled + mixed", "return rolled", "return (rolled - identity) / len(layers)"),
            says="The layers' tables were multiplied entry by entry or averaged; a matrix product is expected.",
            why="""Entry (i, j) of the product sums over all positions through which j can reach i, back to the tokens that a position
            *came from*. Entry by entry only the direct way counts, and it has to be taken in every layer. A mean says where layers look
            on average.""",
        ),
        "RL12": mistake(
            patch(LOOP, "for weights in layers[1:]:"),
            patch(LOOP, "for weights in layers[:-1]:"),
            patch(LOOP, "for weights in layers[1:] or layers:"),
            patch(LOOP, "for weights in layers[:-1] or layers:"),
            patch(ROLL, "rolled = mixed"),
            patch(START, "0.5 * layers[0].mean(dim=1) + 0.5 * identity"),
            says="A layer is left out, all but the last are, or the first has its part twice; each layer should have its part once.",
            why="""The last layer reads vectors into which earlier layers have mixed others already. Start from the identity and multiply
            by every layer, or start from the first layer's A and go on with the second.""",
        ),
        "RL15": mistake(
            patch(
                MIXED,
                "mixed = 0.5 * weights + 0.5 * identity",
                "return rolled",
                "return rolled.mean(dim=1)",
                START,
                "identity",
            ),
            says="Each head was rolled up by itself, and the mean taken at the end; the mean over the heads should be taken in each layer.",
            why="""What a head of layer 1 reads was written by *all* heads of layer 0. Head 0 of one layer has nothing to do with head 0
            of the next.""",
        ),
        "RL17": mistake(
            patch(
                MIXED,
                """weights += torch.eye(weights.shape[-1])
        mixed = 0.5 * weights.mean(dim=1)""",
            ),
            patch(LOOP, "while layers:\n        weights = layers.pop(0)"),
            says="The list, or the weights in it, was changed; a second call would get something else.",
            why="""`+=` writes into the caller's tensors, and `pop` empties the caller's list. Make new tensors.""",
        ),
        "RL1+RL17": patch(LOOP, "layers.reverse()\n    for weights in layers:"),
        "RL18": mistake(
            patch(MIXED, f"mixed = {MEAN} + identity\n        mixed = mixed / mixed.sum(dim=-1)"),
            says="The row sums lost their axis: (B, T) does not fit (B, T, T). Keep it with keepdim=True, or divide by 2.",
            why="""With one item the sums broadcast across the columns, and as all of them are 2 the result is even right. It goes wrong
            with a batch, or as soon as small weights are dropped before: then rows no longer sum to 2. A published rollout drops them.""",
            issue="jacobgil/vit-explain#16",
        ),
    }


def _case(key: str, title: str, layers: list[np.ndarray], **more: Any) -> Case:
    return Case(
        key, title, ([Tensor(layer) for layer in layers],), probe="probes.rollout", reading=readings.rollout, **more
    )
