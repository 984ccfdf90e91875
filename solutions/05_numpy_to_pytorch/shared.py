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
        ),
        "SM5": softmax_by_hand("scores", indent=indent),
        "SM6": softmax_by_hand("scores - scores.max()", indent=indent),
        "SM3+SM5": softmax_by_hand("scores", "e.sum()", indent),
        **scale_mistakes(),
        "SD6": patch(SCALE, "", "dim=-1)", f"dim=-1){SCALE}"),
        "SD8": patch("q @ k.transpose", "k @ q.transpose"),
        "BW3": (patch("dim=-1)", "dim=-1).detach()"), patch("weights @ v", "weights.detach() @ v")),
        "NT6": mistake(
            patch("math.sqrt(q", "math.sqrt(v"),
            says="The scale was taken from the width of the values; take it from d_k, the width of queries and keys.",
            why="A score is a sum over d_k products of a query and a key, so its spread grows with √d_k, whatever the width of v.",
        ),
        "NT7": mistake(
            patch("(output, weights)", "(output, weights.detach())"),
            says="The returned weights were cut from the graph, so no loss on them trains anything; return them with their graph.",
            why="""The output still has its graph; the weights do not, since they were detached before they were returned.
            To plot them, detach them later.""",
        ),
        "NT8": mistake(
            patch("(output, weights)", "(weights, output)"),
            says="The weights came back first; they should come second.",
            why="The contract names the output first: callers unpack by position.",
        ),
        "NT23": mistake(
            patch("(output, weights)", "output"),
            says="Only one thing came back; the weights are asked for as well.",
            why="The contract is (output, weights): the weights are what the next lessons look at.",
        ),
        "NT24": mistake(
            patch("q.shape[-1]", "k.shape[-2]"),
            says="The scale was taken from the number of keys; take it from d_k, the width of queries and keys.",
            why="""A score is a sum over the d_k products of one query and one key, however many keys there are. The width is the
            last entry of k's shape, the number of keys the one before it.""",
        ),
        "NT31": mistake(
            patch("scores = q", f"q, k, v = (q.detach(), k.detach(), v.detach())\n{' ' * indent}scores = q"),
            says="Everything was cut from the graph, so no gradient flows back at all; compute in torch, and leave the graph as it is.",
            why="""`with torch.no_grad():` around the whole, `@torch.no_grad()` above it, `.detach()` of what goes in or of what comes
            out, and a way through NumPy all have this effect: the results require no grad, and `backward()` raises an error.""",
        ),
        "AB15": (
            patch("k.transpose(-2, -1)", "k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
            patch("k.transpose(-2, -1)", "k.view(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
        ),
        "AB19": patch("(output, weights)", "(output, scores)"),
        "AB20": patch("torch.softmax(scores, dim=-1)", "scores"),
        "AB22": patch("weights @ v", "weights.mT @ v"),
        "TT9": patch("math.sqrt(q.shape[-1])", "q.shape[-1] ** 1 / 2"),
        "TT29": patch("weights @ v", "weights @ k"),
        "TT31": patch("math.sqrt(q.shape[-1])", "(q.shape[-1] ** 1 / 2)"),
    }
