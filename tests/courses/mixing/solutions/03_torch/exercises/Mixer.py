"""The mix as a module that owns its three projections."""

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.inputs import normal32, rows_sum_to_1

LAYERS = ("w_q", "w_k", "w_v")


@exercise(
    kind="class",
    points=4,
    minutes=8,
    difficulty=2,
    result_names=("output", "weights"),
    result_type="tensor",
    forbids=("attention",),
)
class Mixer:
    """Write the mix as an `nn.Module` that owns its three projections."""

    def cases(rng):
        def draw(key, title, b, t, d_model, d, d_v, **options):
            x = normal32(rng, b, t, d_model)
            state = {f"{name}.weight": normal32(rng, n, d_model) for name, n in zip(LAYERS, (d, d, d_v), strict=True)}
            made = {"linear": LAYERS, "no_bias": LAYERS, "state": state, "init": (d_model, d, d_v), "gradients": True}
            tensor = Tensor(x, requires_grad=True)
            return Case(key, title, (tensor,), probe="module", options=made | options, names=("x",))

        yield draw("batch", "a batch of two", 2, 3, 5, 4, 6)
        yield draw("square", "with d_model = d = d_v", 2, 3, 4, 4, 4)
        yield draw("training", "in training mode", 3, 4, 6, 5, 2, mode="train")
        by_name = {"init": (), "init_kwargs": {"d_model": 2, "d": 6, "d_v": 5}}
        yield draw("keywords", "made with keyword arguments", 4, 3, 2, 6, 5, **by_name)
        yield draw("seen-again", "a batch of two again, new numbers", 2, 3, 5, 4, 6)

    sums = rows_sum_to_1("weights")

    hints = (
        "What has to be made once, and what at each call?",
        "`super().__init__()` first, then three `nn.Linear` without a bias.",
        "```python\nself.w_q = nn.Linear(____, ____, bias=False)\n```",
    )

    mistakes = {
        "MX28": mistake(
            patch("mix_torch(self.w_q(x), self.w_k(x)", "mix_torch(self.w_k(x), self.w_q(x)"),
            says="Queries and keys are exchanged.",
            why="The first argument of `mix_torch` asks, the second is found.",
        ),
        "MX29": mistake(
            patch("self.w_v(x))", "x)"),
            patch("self.w_v(x))", "self.w_q(x))"),
            says="The values were not projected by w_v.",
            why="A value has d_v numbers, which w_v gives.",
        ),
        "MX17": patch("(output, weights)", "(weights, output)"),
    }
