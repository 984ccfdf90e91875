"""A layer made from a NumPy weight: transposed, copied, float32, trainable."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from .. import readings

COPY = "layer.weight.copy_(torch.tensor(w.T))"


def assigned(weight: str):
    """The weight is replaced, not written into."""
    return patch(f"with torch.no_grad():\n        {COPY}", f"layer.weight = {weight}")


@exercise(points=2, minutes=8, difficulty=2, result_type="tensor", forbids=("tampering",))
class linear_from_numpy:
    """Turn a NumPy weight matrix into an `nn.Linear` layer that computes x @ w and can be trained."""

    def cases(rng):
        def case(key: str, title: str, w: np.ndarray, x: np.ndarray, view: str = "plain", **more: bool) -> Case:
            return Case(
                key,
                title,
                (w, x),
                probe="probes.linear",
                options={"view": view, **more},
                names=("w", "x for the layer"),
                reading=readings.linear,
            )

        def draw(
            title: str, d_in: int, d_out: int, n: int, dtype: str = "float64", view: str = "plain", **more: bool
        ) -> Case:
            return case(
                title, title, rng.normal(size=(d_in, d_out)).astype(dtype), rng.normal(size=(n, d_in)), view, **more
            )

        yield case(
            "small",
            "two inputs, three outputs, whole numbers",
            np.array([[1.0, 2, 3], [4, 5, 6]]),
            np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]]),
        )
        yield case(
            "square",
            "a square w, whose shape hides mistakes",
            np.array([[1.0, 2], [3, 4]]),
            np.array([[1.0, 0], [0, 1], [1, -1]]),
        )
        yield case(
            "integers",
            "a w of integers",
            np.array([[2, -1], [0, 3], [5, 1]]),
            np.array([[1.0, 0, 0], [0, 1, 1], [2, 0, -1], [0, 0, 0]]),
        )
        yield draw("a float32 w", 4, 3, 5, "float32")
        yield draw("a square float32 w", 3, 3, 2, "float32")
        yield draw("a float32 w in Fortran order", 5, 2, 3, "float32", "fortran")
        yield draw("a float32 w of one row", 1, 4, 2, "float32")
        yield draw("every second row and column of a larger float32 array", 2, 5, 3, "float32", "strided")
        yield draw("a square w in Fortran order", 4, 4, 3, view="fortran")
        yield draw("every second row and column of a larger array", 6, 4, 2, view="strided")
        yield draw("one output, w passed by name", 5, 1, 3, by_name=True)
        yield draw("the shape of the first float32 w, new numbers", 4, 3, 5, "float32")

    hints = (
        "Print `nn.Linear(3, 2, bias=False).weight.shape`. Which of its two numbers is d_in?",
        "`nn.Linear` computes x @ weightᵀ, so the weight must hold wᵀ. `torch.from_numpy` and `torch.as_tensor` share memory with a "
        "float32 array; `torch.tensor` copies, and so does `copy_` into an existing weight.",
        "layer = nn.Linear(____, ____, bias=____)\nwith torch.no_grad():\n    layer.weight.copy_(torch.tensor(____))\nreturn layer",
    )

    mistakes = {
        "PJ1": (patch("w.T", "w"), assigned("nn.Parameter(torch.tensor(w, dtype=torch.float32))")),
        "AB15": (
            patch("w.T", "w.reshape(d_out, d_in)"),
            assigned("nn.Parameter(torch.tensor(w).float().view(d_out, d_in))"),
        ),
        "PJ2": patch("bias=False, ", ""),
        "NT2": mistake(
            assigned("nn.Parameter(torch.as_tensor(w.T, dtype=torch.float32))"),
            says="The layer shares memory with the array, so a change of one changes the other; copy the numbers.",
            why="""`torch.from_numpy`, `torch.as_tensor` and `torch.asarray` do not copy a float32 array; they use its memory.
            The first step of an optimizer would then overwrite w.""",
        ),
        "NT3": mistake(
            patch("return layer", "return layer.requires_grad_(False)"),
            says="The weight was frozen, so no optimizer would change it; it should require grad.",
            why="""`nn.Parameter` requires grad unless `requires_grad=False` is passed or `requires_grad_(False)` is called. A frozen
            weight gets no gradient from `backward()`.""",
        ),
        "NT4": mistake(
            assigned("nn.Parameter(torch.tensor(w.T))"),
            says="The weight kept NumPy's type; the layer should be float32.",
            why="NumPy makes float64 by default, torch float32, and a float64 layer refuses a float32 input: 'must have the same dtype'.",
        ),
        "NT5": mistake(
            patch(f"with torch.no_grad():\n        {COPY}\n    ", ""),
            says="w was never copied: the layer still has its random initial weight; copy w into it.",
            why="`nn.Linear(d_in, d_out)` draws its weight at random. The numbers of w must be copied into it.",
        ),
    }
