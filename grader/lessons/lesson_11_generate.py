"""Lesson 11, `generate`: one implementation with its mistakes as switches, and the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from grader.lessons import lesson_11_readings as readings
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Tensor

ROWS = 3000  # drawn to count shares, half of them for each of two last tokens: the standard error of a share is below 0.013


def generate(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's loop with the named bugs switched on; with none it is right."""

    def follow(logits: torch.Tensor, temperature: float, generator: Any) -> torch.Tensor:
        if ("CM48" in bugs) or (temperature == 0 and "CM47" not in bugs):
            return logits.argmax(dim=-1, keepdim="CM61" not in bugs)
        scaled = logits if "CM46" in bugs else logits * temperature if "CM45" in bugs else logits / temperature
        weights = scaled.exp() if "CM57" in bugs else torch.softmax(scaled, dim=0 if "CM49" in bugs else -1)
        if "CM60" in bugs:
            weights = torch.softmax(logits, dim=-1) ** (1 / temperature)
            weights = weights / weights.sum(dim=-1, keepdim=True) if "normalised" in bugs else weights
        if "CM44" in bugs:
            generator = None
        if "CM56" in bugs:
            generator = torch.Generator().manual_seed(0)
        if "CM58" in bugs:
            return torch.multinomial(weights[:1], 1, generator=generator).expand(len(weights), 1)
        return torch.multinomial(weights, 1, generator=generator)

    def context(ids: torch.Tensor, max_len: int) -> torch.Tensor:
        if "CM62" in bugs:
            if "one more" in bugs:
                return ids[:, -max_len - 1 :]
            if "one fewer, counted from the front" in bugs:
                return ids[:, max(0, ids.shape[1] - max_len + 1) :]
            return ids if "when too long" in bugs and ids.shape[1] <= max_len else ids[:, -max_len + 1 :]
        return ids if "CM51" in bugs else ids[:, :max_len] if "CM52" in bugs else ids[:, -max_len:]

    def generate(
        model: Any, ids: torch.Tensor, max_new_tokens: int, max_len: int, temperature: float = 1.0, generator: Any = None
    ) -> torch.Tensor:
        was = model.training
        if "CM41" not in bugs:
            model.eval()
        start = ids.shape[1]
        with torch.set_grad_enabled("CM43" in bugs):
            for _ in range(max_new_tokens):
                fed = context(ids, max_len)
                if "in the loop" in bugs:
                    ids = ids[:, -max_len:]
                    fed = ids
                fed = ids[:, -1:] if "CM55" in bugs else fed
                logits = model(fed)[:, 0 if "CM50" in bugs else -1]
                ids = torch.cat([ids, follow(logits, temperature, generator)], dim=1)
        if "CM42" not in bugs:
            model.train("CM53" in bugs or was)
        return ids[:, start:] if "CM54" in bugs else ids[:, -max_len:] if bugs == ("CM59",) else ids

    return generate


MISTAKES = mistakes(generate, *(f"CM{number}" for number in range(41, 63))) + (
    Mistake("CM59", generate("CM59", "in the loop")),
    Mistake("CM60", generate("CM60", "normalised")),
    *(Mistake("CM62", generate("CM62", how)) for how in ("one more", "one fewer, counted from the front", "when too long")),
)


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Greedy runs, whose ids can be compared; then many rows, whose shares can."""
    def greedy(key: str, title: str, b: int, t: int, new: int, max_len: int, dtype: str = "int64", **more: Any) -> Case:
        vocabulary = int(rng.integers(11, 15))
        options = {"table": rng.normal(size=(vocabulary, vocabulary)).astype(np.float32), "training": True, **more}
        ids = Tensor(rng.integers(0, vocabulary, size=(b, t)), dtype)
        return Case(key, title, (ids, new, max_len), probe="lesson_11.greedy", options=options,
                    names=("ids", "max_new_tokens", "max_len"), reading=readings.greedy)  # fmt: skip

    yield greedy("small", "greedy, two tokens after three", 1, 3, 2, 8)
    yield greedy("sizes", "greedy, past max_len", 2, 3, 7, 5)
    yield greedy("seen-again", "greedy, the same sizes, new numbers", 2, 3, 7, 5, training=False)
    yield greedy("long", "greedy, the given ids alone are longer than max_len", 3, 9, 4, 5)
    yield greedy("short", "greedy, max_len 1", 2, 4, 3, 1, zero=0)
    yield greedy("one", "greedy, one given token, the model in evaluation before", 1, 1, 6, 4, training=False)
    yield greedy("none", "no new token", 2, 3, 0, 4)
    yield greedy("int32", "greedy, ids of int32", 2, 4, 5, 6, "int32", training=False)
    yield from _samples(rng)


def _samples(rng: np.random.Generator) -> Iterator[Case]:
    def sample(key: str, title: str, temperature: float | None, seed: int | None = 5, shift: float = 0.0, scale: float = 1.0,
               each: int = 1, **more: Any) -> Case:  # fmt: skip
        logits = rng.permutation([1.2, 0.4, -0.3, -1.5])
        rows = np.stack([logits, logits, logits, np.roll(np.sort(logits)[::-1], -1)[np.argsort(np.argsort(-logits))]])
        ids = rng.integers(0, 3, size=(ROWS, 3))
        ids[: ROWS // 2, -1], ids[ROWS // 2 :, -1] = 2, 3  # the last token decides
        args = (Tensor(ids), 1, 5) if temperature is None else (Tensor(ids), 1, 5, temperature)
        names = ("ids", "max_new_tokens", "max_len", "temperature")[: len(args)]
        table = shift + scale * np.repeat(rows, each, axis=1)
        options = {"table": table.astype(np.float32), "seed": seed, "again": seed is not None and seed >= 5}
        return Case(key, title, args, probe="lesson_11.sample", options=options, names=names,
                    show=False, reading=readings.sample, **more)  # fmt: skip

    yield sample("warm", "3000 rows, the temperature left to its default", None)
    yield sample("warm-again", "3000 rows at temperature 1, new numbers, 200 tokens to choose from", 1.0, seed=9, each=50)
    yield sample("cool", "3000 rows at temperature 0.01, logits that differ by hundredths", 0.01, seed=1, scale=0.01)
    yield sample("hot", "3000 rows at temperature 100, logits that differ by hundreds", 100.0, seed=2, scale=100.0)
    yield sample("tepid", "3000 rows at temperature 120, logits that differ by hundreds", 120.0, seed=7, scale=120.0)
    yield sample("global", "3000 rows without a generator", 150.0, seed=None, scale=150.0)
    for i, (shift, temperature) in enumerate(((9000.0, 1.0), (-9000.0, 1.5), (9000.0, 0.9))):
        yield sample(f"large-{i}", f"logits around {shift:.0f}", temperature, seed=i, shift=shift, stage="extremes")
