"""A test of a module's graph: which of its parameters does no gradient reach?"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

from ...shared.library import changes

PART, MODULE, WHOLE = "names", "module", "as it was"
# What the probe read twice, and what to say where the two differ.
CHANGES = {
    "parameters": "a parameter has other numbers",
    "identities": "other tensors stand in the place of its parameters or buffers",
    "trainable": "requires_grad of a parameter was switched",
    "gradients": "a parameter's `.grad` is not what it was",
    "buffers": "a buffer, such as BatchNorm's running mean, has other numbers",
    "modes": "a part of it is no longer in the mode (training or evaluation) in which it was",
    "hooks": "a hook was left on it or taken away",
    "x": "x requires a gradient, or has one in `x.grad`, that it did not have",
    "recording": "torch no longer records gradients",
}
# As in the probe, which needs torch.
CANDIDATES = (
    "a linear layer",
    "attention that returns its weights, too",
    "a softmax at the end",
    "a LayerNorm at the end",
    "a linear layer whose numbers come out with both signs",
    "attention whose numbers come out with both signs",
    "a linear layer, less each token's mean",
    "a linear layer, less its result for the token before",
    "cosine and sine of a layer, side by side",
    "cosine and sine of a layer, one token after the other",
    "cosine and sine of attention",
    "two layers with a result of ten-millionths",
    "attention, scaled down to a billionth",
    "a small step beside the tokens",
    "a table of positions that is longer than the text",
    "an embedding of more positions than there are",
    "a table of which every second row is used",
    "a detached path beside a whole one",
    "BatchNorm",
    "BatchNorm and dropout",
    "BatchNorm behind tanh",
    "BatchNorm, cut off before the last layer",
    "attention with detached queries",
    "attention with keys computed under no_grad",
    "attention with values that go through .data",
    "attention with values that go through NumPy",
    "a layer that is called with a copy of its weight",
    "a layer that makes a new parameter of its weight at each call",
    "a layer with a learned factor that is read by .item()",
    "two blocks, the second with detached queries and keys",
    "attention by argmax that returns soft weights, too",
    "attention that detaches its result, not its weights",
    "attention with queries detached for the result, not for the weights",
    "a layer whose result is rounded",
    "the sign of a layer",
    "a layer whose result is rounded down",
    "a layer with a hook that sets its gradient to 0",
    "attention under no_grad",
    "two layers whose result is detached",
    "a layer whose result goes through NumPy",
    "two layers, one bias frozen",
    "two layers, one of them frozen",
    "attention with frozen queries and detached keys",
    "a layer with everything frozen",
)
STALE = (
    "attention with keys computed under no_grad",
    "a layer whose result is rounded",
    "a layer that makes a new parameter of its weight at each call",
)
EVALUATED = (("BatchNorm", "norm"), ("BatchNorm and dropout", "drop"), ("BatchNorm behind tanh", "norm"))
COPY = "copied = copy.deepcopy(module)"
FIRST = "output = output[0] if isinstance(output, tuple) else output"
LOSS = "loss = (output * torch.randn(output.shape, generator=generator, dtype=output.dtype)).sum()"
GRADS = "grads = torch.autograd.grad(loss, list(trainable.values()), allow_unused=True)"
BACKWARD = "copied.zero_grad()\n        loss.backward()\n        grads = [p.grad for p in trainable.values()]"
ARRIVED = "grad is not None and grad.any()"
NOTHING = "if not output.requires_grad:\n            break"
END = "return silent"
UNDETACHED = ("copied(x.detach())", "copied(x)", GRADS, BACKWARD)


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The names in order, and the first thing that is no longer as it was."""
    result = parts["result"]
    if not parts["set"].array:
        others = {"none": "None", "sequence": "a list, a tuple, or a set of something else", "text": "a text"}
        what = others.get(result.kind, f"a {result.kind}")
        raise ContractError(
            f"What came back is {what}; a set of names was asked for, such as {{'w_q.weight'}}, and set() where none is."
        )
    names = Part("text", text=", ".join(item.text for item in result.items))
    return {PART: names, MODULE: Part("text", text=next(iter(changes(parts, CHANGES)), WHOLE))}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    candidate, left, x = case.options["candidate"], got.parts[MODULE].text, case.args[0].array
    wanted, said = (set(filter(None, one.parts[PART].text.split(", "))) for one in (expected, got))
    if wanted == said:
        return None if left == WHOLE else f"Tried on {candidate}: the names are right, but after the call {left}."
    start = f"Tried on {candidate}: {_text(said)} came back, and {_text(wanted)} was asked for."
    trainable = _trainable(candidate, x.shape[-1], str(x.dtype))
    unknown, blamed, missed = (sorted(names) for names in (said - trainable.keys(), said - wanted, wanted - said))
    if unknown:
        return f"{start} There is no parameter {unknown[0]!r}; the names are those of `named_parameters`."
    if missed:
        why = "gets no gradient from any loss on the result" if trainable[missed[0]] else "is frozen"
        return f"{start} {missed[0]} {why}."
    largest = _largest(candidate, x.tobytes(), x.shape, str(x.dtype))[blamed[0]]
    return f"{start} A gradient reaches {blamed[0]}: the largest number in it is {largest:.2g} for a random loss."


def _text(names: set[str]) -> str:
    return "{" + ", ".join(map(repr, sorted(names))) + "}" if names else "set()"


# Every mistake is compared in every case, so that both are kept.
@lru_cache(256)
def _trainable(candidate: str, d: int, dtype: str) -> dict[str, bool]:
    """The parameters of a candidate by name, and whether each requires a gradient."""
    from ..probes_gradients import build_candidate  # with torch, which is not there for every lesson

    return {name: one.requires_grad for name, one in build_candidate(candidate, d, dtype).named_parameters()}


@lru_cache(256)
def _largest(candidate: str, numbers: bytes, shape: tuple[int, ...], dtype: str) -> dict[str, float]:
    """The largest number in each parameter's gradient for the result times random numbers."""
    import torch

    from ..probes_gradients import build_candidate

    module = build_candidate(candidate, shape[-1], dtype)
    result = module(torch.from_numpy(np.frombuffer(numbers, dtype).reshape(shape).copy()))
    result = result[0] if isinstance(result, tuple) else result
    random = torch.randn(result.shape, generator=torch.Generator().manual_seed(1), dtype=result.dtype)
    named = {name: one for name, one in module.named_parameters() if one.requires_grad}
    grads = torch.autograd.grad((result * random).sum(), [*named.values()], allow_unused=True)
    return {name: float(grad.abs().max()) for name, grad in zip(named, grads, strict=True) if grad is not None}


@exercise(
    points=3, minutes=25, difficulty=3, result_names=(PART,), result_type="any", forbids=("tampering",), pair_runs=20
)
class parameters_without_gradient:
    """Find the parameters of a module to which no gradient comes back from its result."""

    compare = _judge

    def cases(rng):
        def case(key: str, number: int, candidate: str, **more) -> Case:
            # The mean of 2, 4, 8 … numbers divides without rounding, so that sines and cosines cancel in a mean of squares, too.
            b, t = (2, 4) if candidate.startswith("cosine") else (2 + number % 2, 3 + number % 3)
            x = rng.normal(size=(b, t, 3 + number % 4)).astype(("float32", "float64")[number % 5 == 4])
            mode = "train" if "BatchNorm" in candidate or number % 3 == 0 else "eval"
            return Case(
                key,
                f"a module: {candidate}"
                + (f"; its part {more['evaluated']!r} in evaluation mode" if "evaluated" in more else ""),
                (Tensor(x, None, number % 7 == 5),),
                probe="probes_gradients.on_candidates",
                reading=_read,
                names=("x",),
                options={"candidate": candidate, "mode": mode, **more},
                show=False,
            )

        for number, candidate in enumerate(CANDIDATES):
            yield case(f"module-{number}", number, candidate, **({"by_name": ("module", "x")} if number == 1 else {}))
        for number, candidate in enumerate(STALE):
            yield case(f"stale-{number}", number, candidate, stale=True)
        for number, (candidate, part) in enumerate(EVALUATED):
            yield case(f"evaluated-{number}", number, candidate, evaluated=part)

    hints = (
        "After `loss.backward()`, what does `.grad` look like for a parameter that no path leads to, and for one behind `round`? And for "
        "which losses could a gradient be 0 although nothing is cut?",
        "Work on a `copy.deepcopy` of the module: its gradients, buffers and modes are nobody's. Multiply the result by random numbers "
        "before you sum it, several times over; a parameter that never has a gradient other than None or 0 is in the set. If the result "
        "does not require grad, all are.",
        "```python\ncopied = copy.deepcopy(module)\nparameters = dict(copied.named_parameters())\nsilent = set(parameters)\n"
        "for _ in range(3):\n    output = ____  # of copied(x.detach()): its first entry, if a tuple\n    if not ____:\n        break\n"
        "    loss = (output * torch.randn_like(output)).sum()\n    copied.zero_grad()\n    loss.backward()\n"
        "    silent -= {name for name, p in parameters.items() if p.grad is not None and ____}\nreturn silent\n```",
    )

    mistakes = {
        "PG1": mistake(
            patch(LOSS, "loss = output.sum()"),
            patch(LOSS, "loss = output.mean()"),
            patch(LOSS, "loss = output.square().sum()"),
            patch(LOSS, "loss = (output ** 2).mean()"),
            says="""The loss was the sum, the mean or the sum of squares of the result; where that cannot change, its
            gradient is 0 though nothing is cut.""",
            why="""The weights of a softmax sum to 1 and the numbers behind a LayerNorm to 0, whatever the parameters are.
            cos² + sin² is 1, and a normalized vector keeps its length. Multiply the result by random numbers first: then no
            such accident lasts.""",
        ),
        "PG3": mistake(
            patch(ARRIVED, "grad is not None"),
            says="Only None was looked for; behind `round`, `sign` or a hook a gradient arrives that is 0 everywhere.",
            why="Autograd has a derivative for `round`: it is 0. A parameter with a gradient of zeros learns as little as one with None.",
        ),
        "PG4": mistake(
            patch(END, "return {name for name, p in parameters.items() if not p.requires_grad}"),
            says="Only `requires_grad` was looked at; a cut path leaves it True, and no gradient comes back all the same.",
            why="`requires_grad` says that somebody wants a gradient. Whether one arrives depends on the path to the result.",
        ),
        "PG6": mistake(
            patch(
                COPY, "copied = module", GRADS, "loss.backward()\n        grads = [p.grad for p in trainable.values()]"
            ),
            patch(COPY, "copied = module.eval()", GRADS, BACKWARD),
            patch(COPY, "copied = module", GRADS, BACKWARD),
            patch(COPY, "copied = module.eval()"),
            patch(COPY, "training, copied = module.training, module.eval()", END, f"module.train(training)\n    {END}"),
            patch(COPY, "copied = module"),
            says="""The module was left changed, its `.grad`, its buffers or its mode; work on `copy.deepcopy(module)`, or
            put everything back.""",
            why="""`backward()` adds to `.grad`, and the next step of training would use or add to it; `torch.autograd.grad`
            leaves it alone. Each call in training mode moves BatchNorm's running mean and variance. A model that is left in
            evaluation mode has no dropout when it is trained on. `module.train(mode)` sets every part, also a frozen
            BatchNorm that was kept in evaluation mode: keep the mode of each of `module.modules()`.""",
        ),
        "PG18": mistake(
            patch(*UNDETACHED),
            patch("output = copied(x.detach())", "output = copied(x.requires_grad_(True))"),
            says="x was changed: it was switched to require a gradient, or `backward` left one in `x.grad`; give the module `x.detach()`.",
            why="""Where x requires a gradient, `backward()` goes on to it and adds to its `.grad`, too. Only the
            parameters' gradients are asked for. What x needs, `x.detach()` may have.""",
        ),
        "PG12": mistake(
            patch(
                FIRST, "output = torch.cat([one.flatten() for one in output]) if isinstance(output, tuple) else output"
            ),
            patch(FIRST, "output = output[-1] if isinstance(output, tuple) else output"),
            says="All entries of the tuple went into the loss, or the last one; the first one is the result.",
            why="Attention returns its weights beside its result. What reaches the weights alone trains nothing, since no loss uses them.",
        ),
        "PG13": mistake(
            patch(ARRIVED, "grad is not None and (grad.abs() > 1e-06).any()"),
            patch(ARRIVED, "grad is not None and not torch.allclose(grad, torch.zeros_like(grad), atol=1e-06)"),
            patch(ARRIVED, "grad is not None and grad.norm() > 1e-07"),
            says="Small gradients were taken for none; a gradient that is cut is exactly 0, or None.",
            why="How large a gradient is depends on the scale of loss and weights. With several random losses no tolerance is needed.",
        ),
        "PG14": mistake(
            patch(ARRIVED, "grad is not None and grad.all()"),
            says="A parameter was blamed in which some numbers have no gradient; it belongs to the set only where all of them are 0.",
            why="Of a table of positions a short text uses the first rows alone. The others get 0, and nothing is cut.",
        ),
        "PG15": mistake(
            patch(NOTHING, "pass"),
            says="Where the whole result was cut off, `backward` raised an error; then every parameter is in the set.",
            why="""A result that does not require grad has no graph at all, and torch refuses to walk back from it. Ask
            `output.requires_grad` first.""",
        ),
        # As many first tries are: x as it came, no word on a result without a graph, and a third.
        "PG1+PG15+PG18": (
            patch(*UNDETACHED, NOTHING, "pass", LOSS, "loss = output.sum()"),
            patch(*UNDETACHED, NOTHING, "pass", LOSS, "loss = output.square().sum()"),
        ),
        "PG3+PG15+PG18": patch(*UNDETACHED, NOTHING, "pass", ARRIVED, "grad is not None"),
    }
