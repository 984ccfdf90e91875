"""One step of training, judged step by step: what the optimizer finds when it steps, and what comes back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.course.declare import UNTRIED, Case, Tensor, exercise, holds, mistake, patch

from .. import readings

Array = np.ndarray

FORWARD, ZERO, BACKWARD = "loss = next_token_loss(model(ids), ids)", "optimizer.zero_grad()", "loss.backward()"
CLIP, STEP, RETURN = (
    "torch.nn.utils.clip_grad_norm_(model.parameters(), clip)",
    "optimizer.step()",
    "return loss.item()",
)
AT = "table's gradient at the step", "bias's gradient at the step"


def _found(case: Case, parts: Mapping[str, Array]) -> tuple[readings.Gradients, readings.Gradients, float]:
    """The gradients that the optimizer found, those of the loss alone, and the loss before the step."""
    loss, *grads = readings.loss_and_gradients(case, parts["table before"], parts["bias before"])
    return tuple(parts[name] for name in AT), tuple(grads), loss


@exercise(points=3, minutes=10, difficulty=2, result_type="any", forbids=("tampering",))
class train_step:
    """Take one step of training: loss, gradients, clipping, the optimizer's step; return the loss before it."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            b: int,
            t: int,
            v: int,
            gain: float,
            *,
            stale: bool = False,
            training: bool = True,
            before: int = 0,
            **kwargs: Any,
        ) -> Case:
            bent = rng.normal(size=(v, v)), rng.normal(size=v)
            options = {
                "table": bent[0],
                "bias": 0.5 * bent[1],
                "gain": gain,
                "training": training,
                "lr": float(rng.uniform(0.05, 0.3)),
                "stale": (rng.normal(size=(v, v)), rng.normal(size=v)) if stale else None,
                "before": [rng.integers(0, v, size=(b, t)) for _ in range(before)],
            }
            ids = Tensor(rng.integers(0, v, size=(b, t)))
            return Case(
                key,
                title,
                (ids,),
                kwargs,
                probe="probes.training_step",
                options=options,
                names=("ids",),
                reading=readings.training_step,
            )

        yield case("small", "a model of three tokens, its gradients small", 1, 3, 3, 0.5)
        yield case("sizes", "all sizes different, clip=0.2", 2, 5, 4, 2.0, clip=0.2)
        yield case("stale", "gradients are left over from before", 2, 5, 4, 0.5, stale=True, clip=20.0)
        yield case("stale-again", "gradients are left over from before, clip=0.1", 3, 4, 5, 2.0, stale=True, clip=0.1)
        yield case("large", "gradients whose norm is above 1, clip left to its default", 2, 6, 4, 9.0)
        yield case("large-again", "gradients whose norm is above 1, new numbers", 2, 6, 4, 12.0)
        yield case("second", "the second of two steps", 2, 5, 4, 1.0, before=1, clip=5.0)
        yield case("third", "the third of three steps, clip=0.3", 2, 5, 4, 2.0, before=2, clip=0.3)
        yield case(
            "evaluation",
            "a model in evaluation mode, which gives other logits then",
            2,
            4,
            6,
            2.0,
            training=False,
            clip=0.5,
        )
        yield case(
            "evaluation-again", "a model in evaluation mode, twice", 2, 4, 6, 1.0, training=False, before=1, clip=9.0
        )
        yield case("long", "more than sixteen tokens, clip=0.05", 2, 20, 5, 1.0, stale=True, clip=0.05)
        yield case("little", "gradients below clip=3, in evaluation mode", 3, 7, 4, 0.6, training=False, clip=3.0)

    @holds("gradients that were left before the call do not count")
    def cleared(case, parts):
        there, own, _ = _found(case, parts)
        stale = case.options["stale"]
        if stale is None:
            return UNTRIED
        clip = case.kwargs.get("clip", 1.0)
        if readings.agree(there, own) or readings.agree(there, readings.clipped(own, clip)):
            return None
        both = tuple(a + b for a, b in zip(own, stale, strict=True))
        if not any(readings.agree(there, each) for each in (both, readings.clipped(both, clip), stale)):
            return UNTRIED
        return (
            f"at the step the gradients have the norm {readings.norm(there):.4g}, which includes what was left from before the call; "
            f"those of this loss alone have the norm {readings.norm(own):.4g}."
        )

    @holds("the norm of all gradients together is clipped before the step")
    def clipped(case, parts):
        there, own, _ = _found(case, parts)
        clip = case.kwargs.get("clip", 1.0)
        if readings.agree(there, readings.clipped(own, clip)):
            return None
        norms = f"{readings.norm(own):.4g} before clipping"
        if readings.norm(there) > 1.001 * clip:
            return (
                f"at the step their norm is {readings.norm(there):.4g}, {norms}; clip={clip:g} allows {clip:g} at most."
            )
        if readings.norm(own) <= clip and readings.agree(
            tuple(each * readings.norm(own) / max(readings.norm(there), 1e-12) for each in there), own
        ):
            return (
                f"the loss's own gradients have the norm {readings.norm(own):.4g}, below clip={clip:g}, and should stay as they are; at "
                f"the step the norm is {readings.norm(there):.4g}."
            )
        return UNTRIED

    @holds("the loss that comes back is the one before the step")
    def before(case, parts):
        _, _, loss = _found(case, parts)
        after, *_ = readings.loss_and_gradients(case, parts["table after the step"], parts["bias after the step"])
        got = float(parts["loss"])
        if abs(got - loss) < 1e-3 * max(1.0, loss):
            return None
        if not abs(got - after) <= 1e-4 * max(1.0, after):
            return UNTRIED
        return f"{got:.4g} came back, which is the loss after the step; before it the loss is {loss:.4g}."

    hints = (
        "`backward()` adds to the gradients that it finds. Which may be there when your function is called? And what does the "
        "optimizer read when it steps?",
        "Five lines: loss, optimizer.zero_grad(), backward(), torch.nn.utils.clip_grad_norm_ over all parameters, step(). "
        "`loss.item()` is a float without a graph.",
        "loss = next_token_loss(____, ids)\n"
        "optimizer.zero_grad()\n"
        "loss.____()\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), ____)\n"
        "optimizer.step()\n"
        "return ____",
    )

    mistakes = {
        "TR1": mistake(
            patch(ZERO, "pass"),
            patch(ZERO, "pass", STEP, f"{STEP}\n    optimizer.zero_grad()"),
            says="Gradients that were there before the call are added to: clear them before `backward()`.",
            why="""`backward()` adds to what is in `.grad`. Clearing after the step works as long as nothing else leaves
            gradients behind; clearing just before `backward()` works always.""",
        ),
        "TR5": mistake(
            patch(CLIP, "torch.nn.utils.clip_grad_value_(model.parameters(), clip)"),
            patch(
                CLIP, "for parameter in model.parameters():\n        torch.nn.utils.clip_grad_norm_([parameter], clip)"
            ),
            patch(
                CLIP,
                "grads = [p.grad for p in model.parameters() if p.grad is not None]\n    norm = sum(grad.norm() for grad in grads)\n"
                "    for grad in grads if norm > clip else ():\n        grad *= clip / norm",
            ),
            says="""Each entry, or each parameter's gradient, was clipped by itself, or their norms were added up; the norm of all
            gradients together should be clipped.""",
            why="""The norm of all is the root of the sum of all squares: for norms of 3 and 4 it is 5, not 7. `clip_grad_value_` cuts
            every entry off at ±clip. Clipped one by one, gradients change their proportions. Either way the step goes in another
            direction. `clip_grad_norm_` scales the whole gradient by one number and keeps it.""",
        ),
        "PO3": patch("parameters(), clip)", "parameters(), 1.0)"),
        "TR7": mistake(
            patch(
                CLIP,
                "norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))\n    for p in model.parameters():\n"
                "        p.grad *= clip / norm",
            ),
            says="The gradients were always scaled to the norm clip; those that are smaller should stay as they are.",
            why="""A limit works in one direction. Near a minimum gradients become small, and that is how the steps
            become small; scaled up, the training never settles.""",
        ),
        "TR10": mistake(
            patch(RETURN, "return next_token_loss(model(ids), ids).item()"),
            says="The loss after the step came back; the loss before it is asked for.",
            why="""It costs a second forward pass, and flatters: the model has just been moved to suit this very batch.""",
        ),
        "CM42": (patch(FORWARD, f"model.train()\n    {FORWARD}"), patch(FORWARD, f"model.eval()\n    {FORWARD}")),
        "TR15": mistake(
            patch(FORWARD, "loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())"),
            patch(FORWARD, "loss = F.cross_entropy(model(ids)[:, 1:].flatten(0, 1), ids[:, :-1].flatten())"),
            patch(
                FORWARD,
                "loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction='sum')",
            ),
            patch(FORWARD, "loss = F.cross_entropy(model(ids).flatten(0, 1), ids.roll(-1, dims=1).flatten())"),
            patch(BACKWARD, "(loss * ids.shape[0]).backward()"),
            patch(BACKWARD, "(loss / ids.shape[0]).backward()"),
            patch(FORWARD, "loss = next_token_loss(model(ids[:, :-1]), ids[:, 1:])"),
            says="The step itself agrees; the loss that it goes back from is another than next_token_loss(model(ids), ids).",
            why="""Everything that the optimizer does is right for another loss: without the shift, with the shift in the other
            direction or made twice, summed, or scaled by the batch size. next_token_loss pairs logits[:, :-1] with ids[:, 1:] itself,
            and it is a mean already. Call it with all of ids; its own check would say whether it is right.""",
        ),
    }
