"""Dates as people write them, each with its ISO 8601 form: what lesson 12's translator is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS_IN = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
PAD = " "  # fills short dates up
SOURCE = "".join(sorted(set(PAD + ",.0123456789" + "".join(MONTHS))))
TARGET = "-0123456789"
SIZES = len(SOURCE), len(TARGET)
LENGTH = 18  # characters of the longest way to write a date, 'September 30, 2021'
TRAINED_ON = 3 * 200 * 64  # dates that lesson 12 draws from seed 0, for its three translators one after the other


def written(seed: int) -> Iterator[tuple[str, str]]:
    """Endless pairs such as ('3 March 2021', '2021-03-03'); the years 1950 to 2049."""
    rng = np.random.default_rng(seed)
    while True:
        year, month = int(rng.integers(1950, 2050)), int(rng.integers(12))
        day = int(rng.integers(DAYS_IN[month])) + 1
        name = MONTHS[month]
        ways = (
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{day} {name[:3]} {year}",
            f"{name[:3]} {day}, {year}",
            f"{day}.{month + 1}.{year}",
            f"{day:02d}.{month + 1:02d}.{year}",
        )
        yield ways[rng.integers(len(ways))], f"{year}-{month + 1:02d}-{day:02d}"


def fresh(n: int) -> list[tuple[str, str]]:
    """n pairs that are not among those that the lesson trains on."""
    seen = set(islice(written(0), TRAINED_ON))
    return list(islice((pair for pair in written(1) if pair not in seen), n))


def encode(pairs: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor]:
    """Ids (n, 18) of the texts, filled up with PAD, and (n, 10) of their ISO forms. Raises: ValueError for a character unknown here."""
    import torch

    source = [[SOURCE.index(c) for c in text.ljust(LENGTH, PAD)] for text, _ in pairs]
    return torch.tensor(source), torch.tensor([[TARGET.index(c) for c in iso] for _, iso in pairs])


def decode(ids: Sequence[int]) -> str:
    """The text of ids (10,) of TARGET."""
    return "".join(TARGET[int(i)] for i in ids)
