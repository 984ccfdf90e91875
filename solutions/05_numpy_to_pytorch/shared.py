"""What `attention_torch` and `SelfAttention` share: their lines of maths, and so the mistakes in them."""

from typing import Any

from grader.course.declare import mistake, patch

from ..shared.library import ROW_MAXIMUM, scale_mistakes, softmax_by_hand

SCALE = " / math.sqrt(q.shape[-1])"
EXTREMES = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}  # for scores of thousands


def attention_mistakes(indent: int) -> dict[str, Any]:
    """indent: of the lines of the reference."""
    return {
        "SM1": patch("dim=-1", "dim=-2"),
        "SM2": patch("dim=-1", "dim=0"),
        "SM3": (
            softmax_by_hand("scores - scores.max()", "e.sum()", indent),
            softmax_by_hand(ROW_MAXIMUM, "e.sum()", indent),
            patch("torch.softmax(scores, dim=-1)", "scores.flatten(-2).softmax(-1).view_as(scores)"),
        ),
        "SM5": softmax_by_hand("scores", indent=indent),
        "SM6": softmax_by_hand("scores - scores.max()", indent=indent),
        "SM3+SM5": softmax_by_hand("scores", "e.sum()", indent),
        **scale_mistakes(),
        "SD6": patch(SCALE, "", "dim=-1)", f"dim=-1){SCALE}"),
        "SD8": patch("q @ k.transpose", "k @ q.transpose"),
        "BW3": (patch("dim=-1)", "dim=-1).detach()"), patch("weights @ v", "weights.detach() @ v")),
        "TT8": (patch("math.sqrt(q", "math.sqrt(v"), patch("q.shape[-1]", "k.shape[-2]")),
        "NT7": patch("(output, weights)", "(output, weights.detach())"),
        "NT8": patch("(output, weights)", "(weights, output)"),
        "NT31": mistake(
            patch("scores = q", f"q, k, v = (q.detach(), k.detach(), v.detach())\n{' ' * indent}scores = q"),
            *(patch("scores = q", f"{name} = {name}.detach()\n{' ' * indent}scores = q") for name in ("q", "k", "v")),
            says="One of q, k and v was cut from the graph, or all were, so that no gradient reaches it; use them as they come, in torch.",
            why="""`.detach()`, `.data`, `torch.tensor(…)` of a tensor and a way through NumPy make a constant. The results
            are the same, and whatever made the tensor that was cut off learns nothing. With `torch.no_grad()` around the
            whole, or above it, all is cut: the results require no grad, and `backward()` raises an error.""",
        ),
        "AB15": (
            patch("k.transpose(-2, -1)", "k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
            patch("k.transpose(-2, -1)", "k.view(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
        ),
        "AB20": patch("torch.softmax(scores, dim=-1)", "scores"),
        "AB22": patch("weights @ v", "weights.mT @ v"),
        "TT9": (
            patch("math.sqrt(q.shape[-1])", "q.shape[-1] ** 1 / 2"),
            patch("math.sqrt(q.shape[-1])", "(q.shape[-1] ** 1 / 2)"),
        ),
        "HL1": patch("weights @ v", "weights @ k"),
    }
