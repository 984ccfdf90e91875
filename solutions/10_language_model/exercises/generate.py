"""A loop that lets a language model write on: greedy, whose ids are compared, and drawn, whose shares are."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings

ROWS = 1000  # drawn to count shares, half of them for each of two last tokens: the standard error of a share is below 0.023

SOFTMAX = "torch.softmax(logits / temperature, dim=-1)"


def _samples(rng: np.random.Generator) -> Iterator[Case]:
    def sample(
        key: str,
        title: str,
        temperature: float | None,
        seed: int | None = 5,
        shift: float = 0.0,
        scale: float = 1.0,
        each: int = 1,
        slope: float = 1.0,
        **more: Any,
    ) -> Case:
        logits = slope * rng.permutation([1.2, 0.4, -0.3, -1.5])
        rows = np.stack([logits, logits, logits, np.roll(np.sort(logits)[::-1], -1)[np.argsort(np.argsort(-logits))]])
        ids = rng.integers(0, 3, size=(ROWS, 3))
        ids[: ROWS // 2, -1], ids[ROWS // 2 :, -1] = 2, 3  # the last token decides
        args = (Tensor(ids), 1, 5) if temperature is None else (Tensor(ids), 1, 5, temperature)
        names = ("ids", "max_new_tokens", "max_len", "temperature")[: len(args)]
        table = shift + scale * np.repeat(rows, each, axis=1)
        options = {"table": table.astype(np.float32), "seed": seed, "again": seed is None or seed >= 5}
        return Case(
            key,
            title,
            args,
            probe="probes.sample",
            options=options,
            names=names,
            show=False,
            reading=readings.sample,
            **more,
        )

    yield sample("warm", "1000 rows, the temperature left to its default", None)
    yield sample(
        "warm-again",
        "1000 rows at temperature 1, 80 tokens to choose from, no generator",
        1.0,
        seed=None,
        each=20,
        slope=0.3,
        costly=True,
    )
    yield sample("cool", "1000 rows at temperature 0.01, logits that differ by hundredths", 0.01, seed=6, scale=0.01)
    yield sample(
        "hot",
        "1000 rows at temperature 100, logits that differ by hundreds, no generator",
        100.0,
        seed=None,
        scale=100.0,
    )
    # Here and at 2.2 no share of a likely mistake lies so near the tolerance's end that chance decides.
    yield sample("tepid", "1000 rows at temperature 4.7, logits that differ by a few", 4.7, seed=7, scale=2.35)
    yield sample("global", "1000 rows without a generator", 150.0, seed=None, scale=150.0)
    for i, (shift, temperature) in enumerate(((9000.0, 1.0), (-9000.0, 2.2), (9000.0, 0.9))):
        yield sample(f"large-{i}", f"logits around {shift:.0f}", temperature, seed=i, shift=shift, stage="extremes")


@exercise(
    points=3, minutes=17, difficulty=2, result_type="any", result_names=("ids",), atol=0.1, forbids=("tampering",)
)
class generate:
    """Let a language model continue given tokens, one token at a time."""

    def cases(rng):
        """Greedy runs, whose ids can be compared; then many rows, whose shares can."""

        def greedy(
            key: str, title: str, b: int, t: int, new: int, max_len: int, dtype: str = "int64", **more: Any
        ) -> Case:
            vocabulary = int(rng.integers(11, 15))
            options = {"table": rng.normal(size=(vocabulary, vocabulary)).astype(np.float32), "training": True, **more}
            ids = Tensor(rng.integers(0, vocabulary, size=(b, t)), dtype)
            return Case(
                key,
                title,
                (ids, new, max_len),
                probe="probes.greedy",
                options=options,
                names=("ids", "max_new_tokens", "max_len"),
                reading=readings.greedy,
            )

        yield greedy("small", "greedy, two tokens after three", 1, 3, 2, 8)
        yield greedy("sizes", "greedy, past max_len", 2, 3, 7, 5)
        yield greedy("seen-again", "greedy, the same sizes, new numbers", 2, 3, 7, 5, training=False)
        yield greedy("long", "greedy, the given ids alone are longer than max_len", 3, 9, 4, 5)
        yield greedy("short", "greedy, max_len 1", 2, 4, 3, 1, zero=0)
        yield greedy("one", "greedy, one given token, the model in evaluation before", 1, 1, 6, 4, training=False)
        yield greedy("none", "no new token", 2, 3, 0, 4)
        yield greedy("int32", "greedy, ids of int32", 2, 4, 5, 6, "int32", training=False)
        yield from _samples(rng)

    hints = (
        "Which of the logits that come back say something about the token that follows the last one?",
        "A sample in the middle of training has to switch dropout off, and then put the mode back as it was, whichever it was: "
        "`model.training` is the flag. `torch.no_grad()` keeps the graph away; `torch.multinomial` takes a `generator`.",
        "logits = model(ids[:, ____:])[:, ____]\n"
        "following = ____ if temperature == 0 else torch.multinomial(torch.softmax(____, dim=-1), 1, generator=____)\n"
        "ids = torch.cat([ids, following], dim=____)",
    )

    mistakes = {
        "CM42": (patch("model.train(was_training)", "pass"), patch("model.train(was_training)", "model.train()")),
        "CM43": (patch("torch.no_grad()", "torch.enable_grad()"),),
        "CM45": mistake(
            patch("logits / temperature", "logits * temperature"),
            says="The logits were multiplied by the temperature; divide them.",
            why="A low temperature should sharpen the distribution: dividing by 0.5 doubles every difference of logits.",
        ),
        "CM46": mistake(
            patch("logits / temperature", "logits"),
            says="The temperature has no effect.",
            why="It scales the logits before softmax. Dividing the weights afterwards changes nothing: drawing normalizes them again.",
        ),
        "CM47": mistake(
            patch("temperature == 0", "temperature < 0"),
            says="Temperature 0 divides by zero; it should take the largest logit.",
            why="As the temperature falls to 0 all weight goes to the largest logit. That limit is a case of its own: argmax.",
        ),
        "CM50": (patch("[:, -1]", "[:, 0]"),),
        "CM52": mistake(
            patch("ids[:, -max_len:]", "ids"),
            patch(
                "try:\n",
                "text, ids = (ids, ids[:, -max_len:])\n    try:\n",
                "model(ids[:, -max_len:])",
                "model(ids)",
                "ids = torch.cat([ids, following], dim=1)",
                "ids = torch.cat([ids, following], dim=1)\n                text = torch.cat([text, following], dim=1)",
                "return ids",
                "return text",
            ),
            patch("-max_len:", ":max_len"),
            patch("-max_len:", "-1:"),
            *(
                patch("ids[:, -max_len:]", cut)
                for cut in (
                    "ids[:, -max_len + 1:]",
                    "ids[:, -max_len - 1:]",
                    "ids[:, max(0, ids.shape[1] - max_len + 1):]",
                    "ids if ids.shape[1] <= max_len else ids[:, -max_len + 1:]",
                )
            ),
            says="The model was fed more of the text than its last max_len tokens, `ids[:, -max_len:]`, or another part of it.",
            why="""A model has positions for max_len tokens. Ours raises ValueError beyond; one without the check reads past its
            mask. What was cut once, before the loop, soon is too long again. With the first max_len tokens the context would never
            change again, and neither would the prediction. With the last one alone the model forgets the text: models with a cache of
            keys and values write so, but ours keeps nothing between two calls. One token fewer wastes a position. At max_len = 1 the
            slice `-max_len + 1:` is `0:`, the whole text.""",
        ),
        "CM54": (
            patch("return ids", "return ids[:, ids.shape[1] - max_new_tokens:]"),
            patch("return ids", "return ids[:, -max_len:]"),
            patch("logits = model(ids[:, -max_len:])", "ids = ids[:, -max_len:]\n                logits = model(ids)"),
        ),
        "CM56": mistake(
            patch("=generator)", "=torch.Generator().manual_seed(0))"),
            *(
                patch("torch.multinomial(weights", f"{seeded} and torch.multinomial(weights")
                for seeded in (
                    "(generator.manual_seed(0) if generator else True)",
                    "(generator or torch.default_generator).manual_seed(0)",
                )
            ),
            *(
                patch("was_training = model.training", f"was_training = model.training\n    {seeded}")
                for seeded in (
                    "generator = generator or torch.Generator()",
                    "if generator is None:\n        torch.manual_seed(0)",
                )
            ),
            says="""Random numbers are seeded inside generate, so the same ones come again; draw from the caller's generator, or
            torch's global one.""",
            why="""The caller's generator has a state that moves on with every draw; seeded anew, it starts from the same state. So
            does a new `torch.Generator()`, and the global one after `torch.manual_seed(0)`. With `generator=None` the functions of
            torch draw from the global one: pass None on to them.""",
        ),
        "SM5": patch(SOFTMAX, "(logits / temperature).exp()"),
        "LM24": mistake(
            patch("[:, -1]\n", "[:1, -1]\n", "[ids, following]", "[ids, following.expand(len(ids), 1)]"),
            patch("(weights, 1, generator=generator)", "(weights[:1], 1, generator=generator).expand(len(weights), 1)"),
            patch("temperature, dim=-1", "temperature, dim=0"),
            says="""The rows of the batch were mixed; each row should have its own logits, its own softmax over the vocabulary, and
            its own draw.""",
            why="""The rows of a batch are texts of their own, that share nothing but the call. The logits of the last position are
            (B, vocabulary), so dim 0 is the batch. With one draw for all, rows with the same context would all continue alike, and
            other rows would get a token drawn for another context.""",
        ),
    }
