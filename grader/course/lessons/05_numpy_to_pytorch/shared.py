"""What `attention_torch` and `SelfAttention` share: their lines of maths, and so the mistakes in them."""

from typing import Any

from grader.course.declare import Property, patch
from grader.course.lessons.library import unmoved

SCALE = " / math.sqrt(q.shape[-1])"
ROOM = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}  # for scores of thousands


def items_apart() -> Property:
    return unmoved(
        "items of a batch do not meet", ("batch", "item changed"),
        "Replacing item 0 of the batch changed the output of item 1 by up to {gap}.", of=lambda output: output[1],
    )  # fmt: skip


def by_hand(indent: str, shifted: str, total: str):
    """Softmax made of exp."""
    return patch("weights = torch.softmax(scores, dim=-1)", f"e = torch.exp({shifted})\n{indent}weights = e / {total}")


def attention_mistakes(indent: str) -> dict[str, Any]:
    """indent: of the lines of the reference."""
    return {
        "SM1": patch("dim=-1", "dim=-2"),
        "SM2": patch("dim=-1", "dim=0"),
        "SM3": (by_hand(indent, "scores - scores.max()", "e.sum()"),
                by_hand(indent, "scores - scores.amax(dim=-1, keepdim=True)", "e.sum()")),
        "SM5": by_hand(indent, "scores", "e.sum(dim=-1, keepdim=True)"),
        "SM6": by_hand(indent, "scores - scores.max()", "e.sum(dim=-1, keepdim=True)"),
        "SM3+SM5": by_hand(indent, "scores", "e.sum()"),
        "SD1": patch(SCALE, ""),
        "SD2": patch("math.sqrt(q.shape[-1])", "q.shape[-1]"),
        "SD5": patch("/ math", "* math"),
        "SD6": patch(SCALE, "", "dim=-1)", f"dim=-1){SCALE}"),
        "SD8": patch("q @ k.transpose", "k @ q.transpose"),
        "BW3": (patch("dim=-1)", "dim=-1).detach()"), patch("weights @ v", "weights.detach() @ v"),
                patch("scores = q", f"q, k, v = (q.detach(), k.detach(), v.detach())\n{indent}scores = q")),
        "NT6": patch("math.sqrt(q", "math.sqrt(v"),
        "NT7": patch("(output, weights)", "(output, weights.detach())"),
        "NT8": patch("(output, weights)", "(weights, output)"),
        "NT23": patch("(output, weights)", "output"),
        "NT24": patch("q.shape[-1]", "k.shape[-2]"),
        "AB19": patch("(output, weights)", "(output, scores)"),
        "AB20": patch("torch.softmax(scores, dim=-1)", "scores"),
        "AB22": patch("weights @ v", "weights.mT @ v"),
        "TT29": patch("weights @ v", "weights @ k"),
    }  # fmt: skip
