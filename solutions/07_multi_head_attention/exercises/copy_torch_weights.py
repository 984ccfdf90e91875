"""The weights of torch's own module, written into ours."""

from itertools import combinations

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch
from grader.course.readings import flag, numbers, overlap

from ..shared import LAYERS, state_of

WEIGHT, BIAS = "layer.weight.copy_(weight)", "layer.bias.copy_(bias)"
COPIES = f"""for layer, weight, bias in zip(layers, weights, biases):
            {WEIGHT}
            {BIAS}"""
EXCHANGED = "({0}[1], {0}[0], *{0}[2:])"
THREE_LAYERS = "(mine.w_q, mine.w_k, mine.w_v"


def each(copied: str):
    """Every copy made in another way; {layer} and {new} stand for a layer's parameter and what it should become."""
    return patch(
        WEIGHT,
        copied.format(parameter="layer.weight", new="weight"),
        BIAS,
        copied.format(parameter="layer.bias", new="bias"),
    )


def thirds(weight: str, bias: str, *more: str):
    """Both thirds of in_proj cut in another way."""
    return patch("*torch_mha.in_proj_weight.chunk(3)", weight, "*torch_mha.in_proj_bias.chunk(3)", bias, *more)


def _left(case, parts):
    """The weights of the module, and what else the call was to leave as it was."""
    held, lent = (numbers(parts[name]).reshape(-1, 2) for name in ("memory", "memory of the original"))
    given = [np.asarray(array, np.float32) for array in case.options["original"].values()]
    left = [part.array for part in parts["original"].items]
    same = [None if one is None else one.tobytes() for one in left] == [one.tobytes() for one in given]
    weights = {f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")}
    return {name: part for name, part in parts.items() if name in weights} | {
        "the parameters are the same objects as before": flag(
            np.array_equal(numbers(parts["before"]), numbers(parts["after"]))
        ),
        "memory is shared with the original": flag(any(overlap(one, other) for one in held for other in lent)),
        "the original has changed": flag(not same),
        "the original's parameters are trainable": flag(numbers(parts["original trainable"]).all()),
        "the parameters are trainable": flag(numbers(parts["trainable"]).all()),
        "torch records gradients after the call": parts["recording"],
    }


@exercise(points=2, minutes=12, difficulty=2, result_type="any", forbids=("tampering",))
class copy_torch_weights:
    """Copy the weights of torch's module into yours."""

    def cases(rng):
        sizes = (
            (4, 2, "four numbers, two heads"),
            (6, 3, "six numbers, three heads"),
            (6, 3, "the same sizes, new weights, both modules passed by name"),
            (8, 2, "eight numbers, two heads"),
            (5, 1, "one head"),
            (4, 4, "heads of one number"),
        )
        for i, (d, heads, title) in enumerate(sizes):
            other = i % 2 == 1
            state = state_of(rng, d)
            original = {
                "in_proj_weight": np.concatenate([state.pop(f"{name}.weight") for name in LAYERS[:3]]),
                "in_proj_bias": np.concatenate([state.pop(f"{name}.bias") for name in LAYERS[:3]]),
                "out_proj.weight": state.pop("w_o.weight"),
                "out_proj.bias": state.pop("w_o.bias"),
            }
            title += ", into a module that has w_o first and a buffer besides" if other else ""
            options = {"init": (d, heads, other), "mine": state_of(rng, d), "original": original}
            yield Case(
                f"copy-{i}",
                title,
                probe="probes.weight_copy",
                options=options | ({"by_name": True} if i == 2 else {}),
                reading=_left,
            )

    hints = (
        "`in_proj_weight` is (3 · d_model, d_model). Which of its rows make queries?",
        "`chunk(3)` cuts it into thirds in the order q, k, v. Under `torch.no_grad()`, `copy_` writes into a parameter that stays "
        "the same object.",
        "with torch.no_grad():\n    weights, biases = torch_mha.in_proj_weight.chunk(3), ____\n"
        "    for layer, weight, bias in zip((mine.w_q, ____, ____), weights, biases):\n"
        "        layer.weight.copy_(weight)\n        ____\n    mine.w_o.weight.copy_(____)\n    mine.w_o.bias.copy_(____)",
    )

    mistakes = {
        "MU31": (
            patch(THREE_LAYERS, "(mine.w_v, mine.w_k, mine.w_q"),
            patch(THREE_LAYERS, "(mine.w_q, mine.w_v, mine.w_k"),
            patch(THREE_LAYERS, "(mine.w_k, mine.w_q, mine.w_v"),
            *(
                patch("zip(layers, weights, biases)", f"zip(layers, {weights}, {biases})")
                for weights, biases in (
                    (EXCHANGED.format("weights"), "biases"),
                    ("weights", EXCHANGED.format("biases")),
                )
            ),
            thirds(
                "*(torch_mha.in_proj_weight[i::3] for i in range(3))",
                "*(torch_mha.in_proj_bias[i::3] for i in range(3))",
            ),
        ),
        "MU33": mistake(
            patch("copy_(weight)", "copy_(weight.T)"),
            *(
                patch("copy_(weight)", f"copy_(weight.T if layer in ({turned},) else weight)")
                for count in (1, 2, 3)
                for turned in map(", ".join, combinations(("mine.w_q", "mine.w_k", "mine.w_v", "mine.w_o"), count))
            ),
            patch("in_proj_weight.chunk(3)", "in_proj_weight.T.reshape(3, -1, torch_mha.embed_dim)"),
            patch("in_proj_weight.chunk(3)", "in_proj_weight.T.chunk(3)"),
            says="A weight was transposed; copy it as it is, since nn.Linear and nn.MultiheadAttention both store (out, in).",
            why="Square matrices fit either way, so nothing raises. Only code that computes x @ w needs a transpose (lesson 05).",
        ),
        "MU34": mistake(
            patch(BIAS, "pass"),
            patch(BIAS, f"if layer is mine.w_o:\n                {BIAS}"),
            patch(BIAS, f"if layer is not mine.w_o:\n                {BIAS}"),
            patch("mine.w_v, mine.w_o)", "mine.w_v)"),
            says="Not everything was copied: in_proj_weight and in_proj_bias, in thirds, and out_proj's weight and bias into w_o.",
            why="""Freshly made, `nn.MultiheadAttention` has biases of zero and our layers random ones. Without the biases the
            outputs differ by little, and by more once torch's module has been trained. Without out_proj scores and weights agree, but
            the outputs do not.""",
        ),
        "MU36": mistake(
            each("{parameter} = nn.Parameter({new}.clone())"),
            each("{parameter} = {new}"),
            says="A parameter was replaced, by a new one or by a tensor; its numbers should be overwritten in place, with `copy_`.",
            why="""An optimizer, or another module that shares the layer, holds the old objects and would go on with those. A tensor
            in place of a parameter, `module.weight = tensor`, raises TypeError. `copy_` changes the numbers and keeps the object.""",
        ),
        "MU37": mistake(
            each("{parameter}.data = {new}.data"),
            says="Both modules share memory: training one would change the other.",
            why="`.data = …` makes the parameter look at the other tensor, and `chunk` gives views of it. Copy the numbers.",
        ),
        "MU41": mistake(
            patch(
                COPIES,
                """values = [value for pair in zip(weights, biases) for value in pair]
        for parameter, value in zip(mine.parameters(), values):
            parameter.copy_(value)""",
            ),
            says="The parameters were matched by their order in the module; match them by name.",
            why="""`parameters()` gives them in the order in which `__init__` made the layers. All weights have one shape, so with
            `w_o` made first each matrix lands in another layer, and nothing raises.""",
        ),
        "MU42": mistake(
            patch(
                COPIES,
                """new = {}
        for name, weight, bias in zip(('w_q', 'w_k', 'w_v', 'w_o'), weights, biases):
            new[f'{name}.weight'], new[f'{name}.bias'] = (weight, bias)
        mine.load_state_dict(new)""",
            ),
            says="load_state_dict was given the four layers alone; it expects every entry of the module, and this module has more.",
            why="""A buffer or a further parameter of `mine` has no counterpart in torch's module. `strict=False` leaves it as it is;
            so does copying into the four layers one by one.""",
        ),
        "MU44": mistake(
            patch(COPIES, "pass"),
            each("{new}.copy_({parameter})"),
            says="Nothing was written into the module: its parameters are as they were.",
            why="""`a.copy_(b)` writes b into a: the other way round, torch's module gets your module's weights. `load_state_dict(…,
            strict=False)` passes over every name that it does not know, and torch's names differ from ours. A copy of the module is
            another module, and `w = other` gives the name w to another tensor.""",
        ),
        "PJ3": thirds(
            "*(part.flatten(0, 1) for part in of_heads(torch_mha.in_proj_weight))",
            "*(part.flatten(0, 1) for part in of_heads(torch_mha.in_proj_bias))",
            "layers =",
            """def of_heads(whole):
        return whole.unflatten(0, (torch_mha.num_heads, 3, -1)).unbind(1)
    layers =""",
        ),
    }
