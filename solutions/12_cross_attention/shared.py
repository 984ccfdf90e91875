"""What both exercises share: the inputs, what every right answer has, and the mistakes after the scores."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, holds, mistake, patch

from ..shared.library import ROW_MAXIMUM, softmax_by_hand

Arrays = list[np.ndarray]
EXTREMES = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}  # float32 numbers near 10,000 are 0.001 apart
ORDER = [3, 0, 4, 2, 1]  # in which the keys of the case 'batch' come in the case 'permuted'
THREE = np.array([[[1.0, 0], [0, 1], [0, 0]]])  # keys; one of zeros is a key like any other


def case(key: str, title: str, arrays: Arrays, grad: str | tuple[int, ...] = "all", **fields: Any) -> Case:
    """grad: 'all', '' or the positions of the inputs that require grad."""
    wanted = range(len(arrays)) if grad == "all" else grad or ()
    return Case(key, title, tuple(Tensor(array, requires_grad=i in wanted) for i, array in enumerate(arrays)), **fields)


def alignment_cases(
    rng: np.random.Generator, learned: Callable[[int, int, int], list[tuple[int, ...]]]
) -> Iterator[Case]:
    """What both exercises are tried with. learned: the shapes of what comes after query and keys, by d_q, d_h and d_a."""

    def draw(b: int, t: int, d_q: int, d_h: int, d_a: int) -> Arrays:
        return [rng.normal(size=size) for size in ((b, d_q), (b, t, d_h), *learned(d_q, d_h, d_a))]

    batch = query, keys, *weights = draw(2, 5, 3, 4, 6)
    yield case("batch", "a batch of two, every size different", batch)
    yield case("square", "as many keys as items, all widths equal", draw(4, 4, 3, 3, 3))
    yield case("square again", "three keys, three items, widths of five", draw(3, 3, 5, 5, 5), "")
    yield case("widths alike", "a batch of two, six keys, all widths equal", draw(2, 6, 4, 4, 4), "")
    yield case("seen-again", "a batch of two again, new numbers", draw(2, 5, 3, 4, 6))
    yield case("permuted", "a batch of two, its keys in another order", [query, keys[:, ORDER], *weights], "")
    other = [np.stack([rng.normal(size=array[0].shape), array[1]]) for array in (query, keys)]
    yield case("item changed", "a batch of two, its first item replaced", [*other, *weights], "")
    yield case(
        "query changed",
        "a batch of two, other queries and the same keys",
        [rng.normal(size=query.shape), keys, *weights],
        "",
    )
    yield case("float32", "float32 inputs", [array.astype(np.float32) for array in draw(3, 4, 5, 2, 7)])
    yield case("one key", "a single key", draw(3, 1, 4, 5, 2), "")
    yield case("one item", "a batch of one", draw(1, 6, 2, 3, 4), "")
    yield case("many items", "more items than keys", draw(5, 2, 4, 3, 6), "")
    yield case(
        "strides",
        "tensors that are not contiguous in memory",
        [np.asfortranarray(array) for array in draw(2, 3, 4, 6, 5)],
        (0,),
    )
    # Enough keys for blocks of 16, and items enough that some item has its largest score in a later block.
    yield case("many keys", "seven items of 37 keys", draw(7, 37, 4, 10, 9), "", show=False)


@holds("the weights of each item sum to 1")
def sums(case, parts):
    sums = parts["weights"].sum(axis=-1)
    worst = sums.flat[np.abs(sums - 1).argmax()]
    return (
        None if abs(worst - 1) < 1e-4 else f"The weights of an item sum to {worst:.6g}."
    )  # of 1.0002 four digits would say 1


@holds("weights move with their keys, and the context stays", cases=("batch", "permuted"))
def order(case, parts, other, changed):
    moved = np.abs(parts["weights"][:, ORDER] - changed["weights"]).max()
    if moved > 1e-4:
        return f"The keys came in another order, and the weights did not move with them (difference {moved:.4g})."
    gap = np.abs(parts["context"] - changed["context"]).max()
    return None if gap < 1e-4 else f"Another order of the keys changed the context by up to {gap:.4g}."


@holds("one item of a batch does not affect another", cases=("batch", "item changed"))
def apart(case, parts, other, changed):
    gap = max(float(np.abs(parts[name][1] - changed[name][1]).max()) for name in ("context", "weights"))
    return None if gap < 1e-4 else f"Replacing item 0 of the batch changed item 1 by up to {gap:.4g}."


@holds("another query looks elsewhere", cases=("batch", "query changed"))
def query_matters(case, parts, other, changed):
    gap = np.abs(parts["weights"] - changed["weights"]).max()
    return None if gap > 1e-3 else f"Other queries on the same keys changed no weight by more than {gap:.1g}."


@holds("a single key is the context", cases=("one key",))
def one_key(case, parts):
    gap = np.abs(parts["context"] - case.args[1].array[:, 0]).max()
    return None if gap < 1e-4 else f"With a single key the context differs from it by up to {gap:.4g}."


PROPERTIES = (sums, order, apart, query_matters, one_key)

CONTEXT = "context = (weights[:, None] @ keys)[:, 0]"
SUMMED = patch(CONTEXT, "context = (weights[..., None] * keys).sum(dim=1)")  # which broadcasts where the product raises


def alignment_mistakes(scores: str, projected: str, widths: tuple[str, ...]) -> dict[str, Any]:
    """scores, projected: the reference's expression for the scores, and the keys as they enter it. widths: that a scale may use."""
    return {
        "SM2": patch("dim=-1", "dim=0"),
        "SM3": (softmax_by_hand("scores - scores.max()", "e.sum()", 4), softmax_by_hand(ROW_MAXIMUM, "e.sum()", 4)),
        "SM4": tuple(softmax_by_hand(ROW_MAXIMUM, "e.sum(dim=-1)", 4) + also for also in (patch(), SUMMED)),
        "SM5": (
            softmax_by_hand("scores", indent=4),
            *(
                softmax_by_hand(f"scores - {taken}", indent=4)
                for taken in ("scores.mean(dim=-1, keepdim=True)", "scores.amin(dim=-1, keepdim=True)", "scores[:, :1]")
            ),
        ),
        "SM6": softmax_by_hand("scores - scores.max()", indent=4),
        "SM4+SM6": softmax_by_hand("scores - scores.max()", "e.sum(dim=-1)", 4) + SUMMED,
        "LG1": tuple(
            patch("softmax(scores, dim=-1)", "softmax(scores[..., None], dim=-1)[..., 0]") + also
            for also in (patch(), patch("(context, weights)", "(context, weights[..., None])"))
        ),
        "AL4": mistake(
            *(
                patch(scores, f"{scores} {factor.format(width)}")
                for factor in ("/ {} ** 0.5", "/ {}", "* {} ** 0.5")
                for width in widths
            ),
            *(patch("dim=-1)", f"dim=-1) / {width} ** 0.5") for width in widths),
            says="The scores or the weights were divided or multiplied by a width or its root; nothing should be scaled here.",
            why="""The factor 1/√d_k belongs to scaled dot-product attention (Vaswani et al. 2017), to its scores before softmax.
            Bahdanau's score is bounded by the sum of |v|, and Luong's w can learn any scale by itself. Both papers leave it out. Where
            the weights are divided, they no longer sum to 1 either, and the context shrinks by the same factor.""",
        ),
        "AL7": mistake(
            patch("@ keys)[:, 0]", f"@ ({projected}))[:, 0]"),
            says="The context was made from the projected keys; it should be a weighted sum of the keys themselves.",
            why="""The projection serves the comparison alone. What the decoder receives has the width of the encoder's states, d_h.
            (Values with a projection of their own came later, with the Transformer.)""",
        ),
        "AB20": patch("torch.softmax(scores, dim=-1)", "scores"),
        "BW3": (patch("dim=-1)", "dim=-1).detach()"), patch("weights[:, None] @", "weights[:, None].detach() @")),
        "NT7": patch("(context, weights)", "(context, weights.detach())"),
        "NT8": patch("(context, weights)", "(weights, context)"),
    }
