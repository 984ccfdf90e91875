"""An ablation: the loss of a language model one of whose heads adds nothing, or only its mean; the model comes back whole."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

from ...shared.library import changes, on_another_device, random_parameters

LOSS, MODEL = "loss", "model"
WHOLE = "as it was"
# What the probe read of the model twice, and what to say where the two differ.
CHANGES = {
    "weights": "its weights are not what they were",
    "parameters": "other parameters stand in the place of its own",
    "trainable": "its parameters do not require gradients as before",
    "modules": "another module stands in the place of one of its own",
    "hooks": "its hooks are not those that it had",
    "modes": "it is no longer in the mode (training or evaluation) in which it was",
    "recording": "torch no longer records gradients",
    "attributes": "an attribute, or the `forward`, of one of its modules is another than before",
}
LAYERS, HEADS = "0 <= layer < len(model.blocks)", "0 <= head < attention.num_heads"
PART = "part = found[:, :, head]"
PUT = "found[:, :, head] = part.mean(dim=(0, 1)) if mean else 0"
ENTERS = "return (found.flatten(-2),)"
HOOK = "handle = attention.proj.register_forward_pre_hook(without)"
RUN = "return next_token_loss(model(ids), ids).item()"
END = "finally:\n        handle.remove()"


def _state(rng: np.random.Generator, v: int, d: int, layers: int, max_len: int) -> dict[str, np.ndarray]:
    """Weights of every part, so large that each head changes the loss."""
    shapes: dict[str, tuple[int, ...]] = {
        "token.weight": (v, d),
        "position.weight": (max_len, d),
        "norm.weight": (d,),
        "norm.bias": (d,),
    }
    shapes["head.weight"] = (v, d)
    for block in (f"blocks.{i}." for i in range(layers)):
        shapes |= {
            f"{block}attn.qkv.weight": (3 * d, d),
            f"{block}attn.proj.weight": (d, d),
            f"{block}mlp.0.weight": (4 * d, d),
            f"{block}mlp.0.bias": (4 * d,),
            f"{block}mlp.2.weight": (d, 4 * d),
            f"{block}mlp.2.bias": (d,),
        }
        shapes |= {f"{block}{name}": (d,) for name in ("ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias")}
    return random_parameters(rng, shapes, 0.6)


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The loss as a number, and the first thing that is no longer as it was."""
    model = Part("text", text=next(iter(changes(parts, CHANGES)), WHOLE))
    if case.options.get("caught"):
        return {MODEL: model}
    result = parts["result"]
    if result.kind not in ("number", "ndarray", "tensor") or result.array is None or result.array.shape != ():
        what = f"of kind {result.kind}" if result.array is None else f"of shape {result.array.shape}"
        raise ContractError(f"What came back is {what}; the loss was asked for, a float.")
    return {LOSS: Part("number", np.array(float(result.array)), "float64"), MODEL: model}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    if case.key == "device":
        follows = all(part.array for part in got.parts.values() if part.role == "flag")
        stops = "On another device it would stop: a tensor that the function makes is not where the model is."
        return None if follows else stops
    _, layer, head, *mean = case.args
    done = f"Head {head} of layer {layer} {'was replaced by its mean' if mean and mean[0] else 'was removed'}"
    if LOSS in expected.parts:
        right, said = (float(one.parts[LOSS].array) for one in (expected, got))
        if not abs(said - right) <= 1e-4 * (1 + abs(right)):
            return f"{done}: {said:.4f} came back, and the loss is {right:.4f} nats."
    left = got.parts[MODEL].text
    after = "After a call that raised" if case.options.get("caught") else "After the call"
    return None if left == WHOLE else f"{after}, the model was not as it had been: {left}."


@exercise(
    points=3, minutes=15, difficulty=3, result_names=(LOSS,), result_type="any", forbids=("tampering",), pair_runs=6
)
class loss_without_head:
    """Measure the loss of a language model in which one head adds nothing, or only its mean."""

    compare = _judge

    def cases(rng):
        def case(
            key: str,
            title: str,
            where: tuple[Any, ...],
            v: int = 7,
            d: int = 6,
            heads: int = 2,
            layers: int = 2,
            b: int = 2,
            t: int = 5,
            max_len: int = 0,
            raises: str | None = None,
            sequential: bool = False,
            refused: int = -1,
            **more: Any,
        ) -> Case:
            max_len = max_len or t + 1
            init = (v, d, heads, layers, max_len, sequential, refused)
            options = {"init": init, "state": _state(rng, v, d, layers, max_len), "raises": bool(raises), **more}
            return Case(
                key,
                title,
                (Tensor(rng.integers(0, v, size=(b, t))), *where),
                probe="probes_ablation.ablation",
                options=options,
                names=("ids", "layer", "head", "mean"),
                raises=raises,
                show=False,
                reading=None if raises else _read,
            )

        yield case("small", "one block of two heads", (0, 1), layers=1, d=4, b=1, t=3)
        yield case(
            "small-mean", "one block of two heads, the mean in the place of one", (0, 0, True), layers=1, d=4, b=2, t=3
        )
        yield case("sizes", "three blocks of three heads", (1, 2), d=12, heads=3, layers=3, v=9)
        yield case(
            "sizes-mean",
            "three blocks, the mean in the place of a head",
            (2, 0, True),
            d=12,
            heads=3,
            layers=3,
            v=9,
            b=3,
        )
        yield case(
            "named",
            "all passed by name, the last layer",
            (1, 0),
            d=8,
            heads=4,
            b=3,
            t=4,
            mode="train",
            by_name=("model", "ids", "layer", "head"),
        )
        yield case(
            "sequential",
            "blocks in an nn.Sequential",
            (0, 1, False),
            sequential=True,
            d=8,
            heads=2,
            layers=3,
            mode="train",
        )
        yield case(
            "sequential-mean", "blocks in an nn.Sequential, the mean", (1, 1, True), sequential=True, d=9, heads=3
        )
        yield case("hooked", "projections that have hooks already", (1, 1), hooked=True, layers=3)
        yield case(
            "hooked-mean",
            "projections that have hooks already, the mean",
            (0, 2, True),
            hooked=True,
            heads=3,
            d=6,
            mode="train",
        )
        yield case("hooked-first", "a first block with hooks", (0, 0), hooked=True, heads=3, d=6, b=1, t=6)
        yield case("one-head", "one head, which is the whole attention", (1, 0), heads=1, d=5)
        yield case("single", "heads of one number, in training mode", (0, 3, True), heads=5, d=5, t=4, mode="train")
        yield case("square", "as many rows, tokens, heads and numbers in a head", (1, 2, True), heads=3, d=9, b=3, t=3)
        for number, where in enumerate(((0, 1), (1, 1, True), (0, 0, True))):
            yield case(
                f"refused-{number}",
                "a model that raises once the blocks have run",
                where,
                v=4,
                b=3,
                t=6,
                refused=2,
                caught=True,
                mode=("eval", "train")[number % 2],
            )
        yield case("too-long", "more tokens than the model takes", (1, 0), t=5, max_len=4, caught=True)
        for number, (layer, head) in enumerate(((-1, 0), (-2, 1), (-1, 1), (0, -1), (1, -2), (0, -3))):
            which = f"layer {layer}" if layer < 0 else f"head {head}"
            yield case(
                f"negative-{number}", f"{which}, which does not exist", (layer, head), heads=3, raises="ValueError"
            )
        for number, (layer, head, *mean) in enumerate(((2, 0), (7, 0), (0, 3), (1, 3), (1, 3, True), (1, 8))):
            which = f"layer {layer} of two, counted from 0" if layer > 1 else f"head {head} of three, counted from 0"
            yield case(f"beyond-{number}", which, (layer, head, *mean), heads=3, raises="ValueError")
        on_device = on_another_device(
            case("sizes", "one block, the mean in the place of a head", (0, 1, True), layers=1)
        )
        yield replace(on_device, probe="probes_ablation.ablation_on_device")
        yield case("left", "a head that does not exist: the model stays as it was", (0, 5), heads=2, caught=True)

    hints = (
        "Where do the heads' results still lie side by side, and which module is called with them?",
        "A forward pre-hook on `proj` gets the module and its arguments; what it returns enters in their place. Take a copy, see it as "
        "(B, T, num_heads, d_head), and write 0, or the mean over batch and tokens, into one head. Remove the hook in a `finally`.",
        "```python\ndef without(module, args):\n    found = args[0].clone().unflatten(-1, (____, -1))  # (B, T, H, d_head)\n"
        "    found[:, :, head] = found[:, :, head].mean(dim=____) if mean else 0\n    return (found.flatten(-2),)\n\n"
        "handle = ____.register_forward_pre_hook(without)\ntry:\n    return next_token_loss(____, ids).item()\nfinally:\n    ____\n```",
    )

    mistakes = {
        "LH1": mistake(
            patch(ENTERS, "found.flatten(-2)"),
            patch(HOOK, f"{HOOK}\n    handle.remove()"),
            says="Nothing was taken away: the loss of the whole model came back.",
            why="""A pre-hook that returns nothing leaves the arguments as they were, and one that changes a copy changes nothing else.
            Return what should enter the module in their place. A loss that does not move for any head is a warning.""",
        ),
        "LH2": mistake(
            patch(
                HOOK,
                "handle = attention.proj.register_forward_hook(lambda module, args, output: without(module, (output,))[0])",
            ),
            says="A slice of what leaves proj was removed; a head's part is a slice of what enters it.",
            why="""Behind `proj` every number is a mixture of all heads. Only in front of it do the heads still lie side by side.""",
        ),
        "LH3": mistake(
            patch(
                "found = args[0].clone().unflatten(-1, (attention.num_heads, -1))",
                "found = args[0].clone().unflatten(-1, (-1, attention.num_heads)).mT.contiguous()",
                ENTERS,
                "return (found.mT.flatten(-2),)",
            ),
            says="Every num_heads-th number or column was taken; a head's numbers, and its columns of proj, should be consecutive.",
            why="""Heads are contiguous slices (lesson 07): head 0 has the first d_head numbers of what enters `proj`, and so the first
            d_head columns. unflatten(-1, (num_heads, -1)) sees them so.""",
        ),
        "LH4": mistake(
            patch(PUT, "found[:, :, head] = 0"),
            patch(PUT, "found[:, :, head] = part.mean(dim=(0, 1))"),
            patch(PUT, "found[:, :, head] = 0 if mean else part.mean(dim=(0, 1))"),
            says="`mean` has no effect, or the opposite one: with mean=True the head adds its own mean, with mean=False nothing.",
            why="""mean=False is the default: the head's slice is 0 at every token. With mean=True it is the head's mean over batch and
            tokens, which later layers are more used to than 0.""",
        ),
        "LH6": mistake(
            patch("part.mean(dim=(0, 1))", "part.mean(dim=1, keepdim=True)"),
            patch("part.mean(dim=(0, 1))", "part.mean(dim=0)"),
            patch("part.mean(dim=(0, 1))", "part.mean()"),
            patch("part.mean(dim=(0, 1))", "part.mean(dim=-1, keepdim=True)"),
            says="The mean was taken over other axes than batch and tokens, both at once: dim=(0, 1); each of the d_head numbers has one.",
            why="""A mean that differs from row to row, or from token to token, still tells the next layers something about this text. One
            mean for all of them tells nothing. The mean of a head is a vector, (d_head,).""",
        ),
        "LH9": mistake(
            patch(PART, "part = found", PUT, "found[:] = part.mean(dim=(0, 1)) if mean else 0"),
            patch(
                HOOK,
                "handles = [block.attn.proj.register_forward_pre_hook(without) for block in model.blocks]",
                "handle.remove()",
                "for handle in handles:\n            handle.remove()",
            ),
            patch(PUT, "found[:, :, :head] = 0\n        found[:, :, head + 1:] = 0"),
            patch(
                PUT,
                "kept = part.clone()\n        found[:] = found.mean(dim=(0, 1)) if mean else 0\n        found[:, :, head] = kept",
            ),
            patch(
                PUT,
                "kept = part.mean(dim=(0, 1)) if mean else part.clone()\n        found[:] = 0\n        found[:, :, head] = kept",
            ),
            patch("attention = model.blocks[layer].attn", "attention = model.blocks[layer - 1].attn"),
            patch("attention = model.blocks[layer].attn", "attention = model.blocks[-1].attn"),
            patch(
                PART,
                "part = found[:, :, head - 1]",
                PUT,
                "found[:, :, head - 1] = part.mean(dim=(0, 1)) if mean else 0",
            ),
            says="Another head was removed, or others with it; the named head alone should go, and layers and heads count from 0.",
            why="""The slice of head h is found[:, :, h], with found (B, T, num_heads, d_head), and the first is head 0. What is left when a
            single head stays is another question: what it can do alone. Head 1 of layer 0 and head 1 of layer 2 have nothing in common but
            a number: put the hook on `model.blocks[layer]` alone.""",
        ),
        "LH10": mistake(
            patch(
                RUN,
                f"loss = {RUN.removeprefix('return ')}\n            handle.remove()\n            return loss",
                END,
                "finally:\n        pass",
            ),
            patch(END, "finally:\n        pass"),
            says="The hook stayed on the model, always or where the model raised; remove it in a `finally`.",
            why="""`register_forward_pre_hook` returns a handle; `handle.remove()` takes the hook away again. An exception leaves the
            function at once, so what stands after the call of the model never runs. Every later loss is then that of a model without this
            head, with no sign of it.""",
        ),
        "CM42": patch(HOOK, f"model.eval()\n    {HOOK}"),
        "LH15": mistake(
            patch(LAYERS, "layer < len(model.blocks)"),
            patch(HEADS, "head < attention.num_heads"),
            patch(LAYERS, "layer < len(model.blocks)", HEADS, "head < attention.num_heads"),
            patch(
                HEADS,
                "0 <= head <= attention.num_heads",
                PART,
                "part = found[:, :, head:head + 1]",
                PUT,
                "found[:, :, head:head + 1] = part.mean(dim=(0, 1)) if mean else 0",
            ),
            patch(
                HEADS,
                "0 <= head",
                PART,
                "part = found[:, :, head:head + 1]",
                PUT,
                "found[:, :, head:head + 1] = part.mean(dim=(0, 1)) if mean else 0",
            ),
            says="A layer or a head that the model does not have was accepted; below 0 or beyond the last it should raise ValueError.",
            why="""For Python blocks[-1] is the last block, and −1 the last head. A loop that counts one too far down then silently
            measures the wrong one. A slice beyond the end is empty, as one that begins below 0 may be: nothing is removed, and the loss
            of the whole model looks like that of a head that does not matter.""",
        ),
        "LH22": mistake(
            patch("next_token_loss(model(ids), ids)", "next_token_loss(model(ids)[:, :-1], ids[:, 1:])"),
            says="Logits and ids were shifted before next_token_loss, which shifts them itself: each row met the token after next.",
            why="""next_token_loss leaves out the last row of the logits and the first id. Shifted before, row i meets id i + 2, and a row
            more is lost at the end. Give it what the model returned, and ids as they are.""",
        ),
    }
