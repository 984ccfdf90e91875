"""Lesson 10: what follows from what its probes saw of a model's parts, of a step of training and of a generating loop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, describe_part, flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
Array = np.ndarray

# How far a share of 500 draws may be from what it should be: 4.5 standard errors. In one right answer of 10,000 a share of any case
# is further off by chance.
CHANCE = 0.1


def greedy(case: Case, parts: Parts) -> dict[str, Part]:
    """How the model was treated, as the stand-in for one noted at each call and as it was left."""
    found = {}
    if case.args[1]:
        fed = numbers(parts["tokens fed"])
        most = np.array(int(fed.max()) if fed.size else 0)
        found["most tokens fed to the model at once"] = Part("number", most, most.dtype.name)
        found["the model or a part of it was in training mode while it was asked"] = flag(
            numbers(parts["in training"]).any()
        )
        found["a graph was built"] = flag(numbers(parts["graphs"]).any())
    left = numbers(parts["flags"])
    found["the model's own flag is back"] = flag(left[:1].all() == case.options["training"])
    found["the flags of its parts are back"] = flag((left == case.options["training"]).all())
    found["torch records gradients after the call"] = parts["torch records gradients after the call"]
    found["the model's parameters are trainable after the call"] = flag(numbers(parts["trainable"]).all())
    return {**found, "result": parts["result"]}  # last: a model that is treated otherwise also gives other ids


def sample(case: Case, parts: Parts) -> dict[str, Part]:
    """How often each quarter of the vocabulary follows each last token, and whether the generator alone decides."""
    ids = numbers(parts["ids"])
    found = _shares(case, ids)
    if len(parts) == 1:
        return found
    first, same, other, second = (
        numbers(parts[which])
        for which in ("first", *(f"ids of {which}" for which in ("the same state", "another state", "a second call")))
    )
    state = "generator state" if case.options["seed"] is not None else "state of torch's global generator"
    found |= {
        f"the same {state} gives the same ids": flag(np.array_equal(first, same)),
        f"another {state} gives the same ids": flag(np.array_equal(first, other)),
    }
    if case.options["seed"] is not None:
        found["a second call with the same generator gives the same ids"] = flag(np.array_equal(first, second))
    return found


def _shares(case: Case, result: Array) -> dict[str, Part]:
    """As shares of 1 in the row of each last token."""
    ids, new, vocabulary = case.args[0].array, case.args[1], case.options["table"].shape[1]
    b, t = ids.shape
    if result.shape != (b, t + new):
        raise ContractError(
            f"The ids have shape {result.shape}; expected (B, T + max_new_tokens), here {(b, t + new)}."
        )
    if not np.array_equal(result[:, :t], ids):
        raise ContractError("The ids that came back do not begin with the ids that were given.")
    lasts, quarter = np.unique(ids[:, -1]).tolist(), vocabulary // 4
    drawn = [np.clip(result[ids[:, -1] == last, t:].astype(np.int64) // quarter, 0, 3).ravel() for last in lasts]
    name = "share of each token" if quarter == 1 else "share of each quarter of the vocabulary"
    shares = np.stack([np.bincount(of, minlength=4) / len(of) for of in drawn])
    logits = case.options["table"][lasts].astype(np.float64) / (case.args[3] if len(case.args) > 3 else 1.0)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    exact = weights.reshape(len(lasts), 4, quarter).sum(axis=-1) / weights.sum(axis=-1, keepdims=True)
    shares = np.where(np.abs(shares - exact) <= CHANCE, exact, shares)
    return {f"{name}, by the last token {lasts}": Part("ndarray", shares, "float64")}


def model(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Whether each part of a language model was handed what the one before it gave, then the logits.

    What a part got is known where it was called as a module; of one that was not, only the logits tell.
    """

    def went(name: str) -> Array | None:
        part = parts.get(f"went {name}")
        return None if part is None else numbers(part)

    state, ids, layers = case.options["state"], case.args[0].array, case.options["layers"]
    first = state["token.weight"][ids] + state["position.weight"][: ids.shape[1]]
    chain = [("token + position goes into the first block", first, went("into block 0"))]
    chain += [
        (f"block {i} goes on from what block {i - 1} gave", went(f"out of block {i - 1}"), went(f"into block {i}"))
        for i in range(1, layers)
    ]
    chain += [
        ("norm is applied to what the last block gave", went(f"out of block {layers - 1}"), went("into norm")),
        ("head is applied to what norm gave", went("out of norm"), went("into head")),
    ]
    head, token = numbers(parts["weights"], (2,))
    owned = numbers(parts["parameters"])
    own = {
        "the head has a weight of its own": flag(head != token),
        "the blocks have weights of their own": flag(len(np.unique(owned)) == len(owned) - (head == token)),
    }
    found = own | {name: flag(_agree(expected, actual)) for name, expected, actual in chain}
    return found | {name: part for name, part in parts.items() if part.role in ("returned", "gradient")}


def _agree(expected: Array | None, actual: Array | None) -> bool:
    if expected is None or actual is None:
        return True
    return expected.shape == actual.shape and np.allclose(expected, actual, rtol=1e-4, atol=1e-5)


def flagged(part: Part) -> bool:
    """A part that is True or False. Raises ContractError for any other."""
    return bool(numbers(part).any())


def training_step(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """What a step of training did, one step after the other; what it should be is worked out here, without autograd."""
    if flagged(parts["graph"]):
        raise ContractError(
            "The loss came back as a tensor that still holds its graph; expected a float: `loss.item()`."
        )
    loss = parts["loss"]
    if loss.array is None or loss.kind == "bool" or loss.shape != ():
        shape = f" of shape {loss.shape}" if loss.shape else ""
        raise ContractError(
            f"What came back is {describe_part(loss)}{shape}; expected the loss before the step, a float."
        )
    left, times = numbers(parts["flags"]).ravel(), int(numbers(parts["steps"]))
    if times != 1:
        raise ContractError(
            f"The optimizer that was passed in took {times or 'no'} step{'s' * (times > 1)}; expected one."
        )
    if parts["table at the step"].array is None or parts["bias at the step"].array is None:
        backward = numbers(parts["backward"]).ravel()
        why = (
            "backward() never ran"
            if not backward.size
            else "backward() ran after the step"
            if backward.min()
            else ("backward() had run, so it was cleared again, or never arrived")
        )
        raise ContractError(f"When the optimizer stepped, there was a parameter without a gradient: {why}.")
    parts = {**parts, **_with_the_right_loss(case, parts)}
    return {
        "table's gradient at the step": parts["table at the step"],
        "bias's gradient at the step": parts["bias at the step"],
        "loss": Part("number", numbers(parts["loss"]).astype(np.float64), "float64"),
        "table after the step": parts["table after"],
        "bias after the step": parts["bias after"],
        "the model's mode is as it was": flag((left == case.options["training"]).all()),
        "torch records gradients after the call": parts["recording"],
        "a graph is kept after the call": flag(numbers(parts["held"])),
        "table before": parts["table before"],
        "bias before": parts["bias before"],
    }


Gradients = Sequence[Array]  # of the table and of the bias
# What a step can make of gradients and of the limit, the right way first.
CLIPPING: tuple[Callable[[Gradients, float], Gradients], ...] = (
    lambda grads, clip: clipped(grads, clip),
    lambda grads, clip: grads,
    lambda grads, clip: tuple(each.clip(-clip, clip) for each in grads),
    lambda grads, clip: tuple(clipped((each,), clip)[0] for each in grads),
    lambda grads, clip: tuple(clip / norm(grads) * each for each in grads),
    lambda grads, clip: clipped(grads, 1.0),
)


def norm(grads: Gradients) -> float:
    return float(np.sqrt(sum((each**2).sum() for each in grads)))


def clipped(grads: Gradients, clip: float) -> Gradients:
    scale = min(1.0, clip / (norm(grads) + 1e-6))
    return tuple(scale * each for each in grads)


def agree(one: Gradients, other: Gradients) -> bool:
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(one, other, strict=True))


def _with_the_right_loss(case: Case, parts: Parts) -> dict[str, Part]:
    """What a step that calls a wrong `next_token_loss` would have shown beside a right one; nothing where that can't be said.

    It can where the gradients at the step are those of the learner's own loss, treated in one of the ways of CLIPPING: the same is
    then made of the right gradients. Raises: ContractError where those of the own loss are of quite another size, so that it stays open
    whether they are clipped.
    """
    names = [f"{which} {when}" for when in ("before", "at the step", "after") for which in ("table", "bias")]
    if any(name not in parts or parts[name].array is None for name in ("own loss", "own table", "own bias", *names)):
        return {}
    seen = [numbers(parts[name]).astype(np.float64) for name in names]
    before, step, after = seen[:2], seen[2:4], seen[4:]
    own = [numbers(parts[f"own {name}"]).astype(np.float64) for name in ("loss", "table", "bias")]
    of_each = [loss_and_gradients(case, *before, ids) for ids in (*case.options["before"], case.args[0].array)]
    exact = [np.array(each) for each in zip(*of_each, strict=True)]
    if [each.shape for each in own] != [each.shape for each in exact] or agree(own, exact):
        return {}
    own_loss, *own = (each[-1] for each in own)
    clip, lr, stale = case.kwargs.get("clip", 1.0), case.options["lr"], case.options["stale"] or (0.0, 0.0)
    treatments = [(treated, left) for left in (0, 1) for treated in CLIPPING]
    found = [(treated, left) for treated, left in treatments if agree(step, treated(_sum(own, stale, left), clip))]
    if not found:
        return {}
    if not 0.25 < norm(own) / norm(of_each[-1][1:]) < 100:
        raise ContractError(
            "The `next_token_loss` that train_step calls has a gradient of quite another size than the mean loss of the next token. "
            "Repair it first: beside it the step can't be judged."
        )
    treated, left = found[0]
    right_before = _after_earlier_steps(case, clip, treated)
    right_loss, *right = loss_and_gradients(case, *right_before)
    right_step = treated(_sum(right, stale, left), clip)
    moved = zip(right_before, after, before, step, right_step, strict=True)
    right_after = [start + (end - begin) + lr * (old - new) for start, end, begin, old, new in moved]
    came = numbers(parts["loss"])
    shown = dict(zip(names, (*right_before, *right_step, *right_after), strict=True))
    shown["loss"] = np.array(right_loss) if np.isclose(came, own_loss, rtol=1e-3, atol=1e-5) else came
    return {name: replace(parts[name], array=value.astype(parts[name].array.dtype)) for name, value in shown.items()}


def _sum(grads: Gradients, others: Gradients, times: int) -> Gradients:
    return [one + times * other for one, other in zip(grads, others, strict=True)]


def _after_earlier_steps(case: Case, clip: float, treated: Callable[[Gradients, float], Gradients]) -> Gradients:
    """The stand-in's table and bias after steps with the ids that go before the case's own."""
    weights = tuple(case.options[name].astype(np.float32).astype(np.float64) for name in ("table", "bias"))
    for ids in case.options["before"]:
        _, *grads = loss_and_gradients(case, *weights, ids)
        moves = treated(grads, clip)
        weights = tuple(each - case.options["lr"] * move for each, move in zip(weights, moves, strict=True))
    return weights


def loss_and_gradients(case: Case, table: Array, bias: Array, ids: Array | None = None) -> tuple[float, Array, Array]:
    """The loss of the stand-in at these weights, and its gradients, in the mode that the case begins in. ids: else the case's."""
    ids, options = case.args[0].array if ids is None else ids, case.options
    gain = options["gain"] if options["training"] else options["gain"] / 2
    seen, asked = ids[:, :-1].ravel(), ids[:, 1:].ravel()
    logits = gain * (table[seen] + bias)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    picked = weights[np.arange(len(asked)), asked]
    slope = weights.copy()
    slope[np.arange(len(asked)), asked] -= 1
    slope *= gain / len(asked)
    into_table = np.zeros_like(table, dtype=np.float64)
    np.add.at(into_table, seen, slope)
    return float(-np.log(picked).mean()), into_table, slope.sum(axis=0)
