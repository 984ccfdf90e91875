"""The mix on tensors, with gradients for q, k and v."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.inputs import rows_sum_to_1


@exercise(
    points=3, minutes=5, difficulty=2, result_names=("output", "weights"), result_type="tensor", forbids=("attention",)
)
class mix_torch:
    """Write the mix on tensors, so that gradients flow to q, k and v."""

    def cases(rng):
        def case(key, title, arrays, grad=True, **fields):
            tensors = tuple(Tensor(array, requires_grad=grad) for array in arrays)
            return Case(key, title, tensors, dtype=(arrays[0].dtype.name,), **fields)

        def draw(lead, n_q, n_k, d, d_v, dtype="float64"):
            return [rng.normal(size=(*lead, *size)).astype(dtype) for size in ((n_q, d), (n_k, d), (n_k, d_v))]

        small = [
            np.array([[1.0, 0, 2, 0], [0, 1, 0, -1]]),
            np.array([[1.0, 1, 0, 0], [0, 2, 1, 1], [2, 0, 1, 0]]),
            np.array([[10.0], [0], [-5]]),
        ]
        yield case("small", "two queries, three keys, whole numbers", small, grad=False)
        yield case("square", "as many queries as keys", draw((), 3, 3, 4, 2))
        q, k, v = draw((2,), 3, 5, 4, 6)
        yield case("batch", "a batch of two", [q, k, v])
        yield case("heads", "two leading dimensions", draw((2, 3), 5, 4, 6, 7))
        yield case("float32", "float32 in, float32 out", draw((2,), 4, 3, 6, 5, "float32"))
        yield case("seen-again", "a batch of two again, new numbers", draw((2,), 3, 5, 4, 6))
        yield case("identity", "a batch of two, v = identity", [q, k, np.stack([np.eye(5)] * 2)], grad=False)
        large = [100 * small[0], 100 * small[1], small[2]]
        yield case("large", "scores of ±10,000", large, grad=False, stage="extremes")

    sums = rows_sum_to_1("weights")

    @holds("v = identity returns the weights", cases=("identity",))
    def identity(case, parts):
        gap = np.abs(parts["output"] - parts["weights"]).max()
        return None if gap < 1e-4 else f"With v = identity the output differs from the weights by up to {gap:.4g}."

    hints = (
        "Over which dimension does softmax run?",
        "`k.transpose(-2, -1)` swaps the last two dimensions.",
        "scores = q @ k.transpose(____, ____)\nweights = torch.softmax(scores, dim=____)\nreturn ____, weights",
    )

    mistakes = {
        "MX7": patch("dim=-1", "dim=-2"),
        "MX16": patch(" / math.sqrt(q.shape[-1])", ""),
        "MX27": mistake(
            patch("q @ k", "q.detach() @ k"),
            says="The queries were detached; no gradient reaches them.",
            why="What is detached is a number for the graph, which nothing can learn.",
        ),
        "MX17": patch("(output, weights)", "(weights, output)"),
    }
