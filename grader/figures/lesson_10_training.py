"""The two small translators of lesson 10 and how they are trained: letters to letters, and dates to numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from grader.figures.meter import Meter

Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
DAYS_IN = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
PAD = " "  # fills short dates up; the model has to learn that nothing is to be read there
SOURCE = "".join(sorted(set(PAD + ",.0123456789" + "".join(MONTHS))))
TARGET = "-0123456789"
BATCH = 64
REPORTS = 40  # how often a training says how far it is
LENGTH = 18  # characters of the longest way to write a date, 'September 30, 2021'


class Translator(nn.Module):
    """A recurrent encoder and decoder; the decoder sees one vector, or attends with the function given.

    attend: called as `additive_attention` of the lesson, or None: every step then gets the same vector,
    the encoder's final states. All else is the same. Source: Bahdanau et al. 2015, appendix A, made small.
    """

    def __init__(self, n_in: int, n_out: int, attend: Attend | None, *, embedding: int = 32, hidden: int = 64) -> None:
        super().__init__()
        self.attend = attend
        self.embed_in, self.embed_out = nn.Embedding(n_in, embedding), nn.Embedding(n_out + 1, embedding)
        self.encoder = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        self.start = nn.Linear(2 * hidden, hidden)
        self.decoder = nn.GRUCell(embedding + 2 * hidden, hidden)
        self.read = nn.Linear(3 * hidden, n_out)
        self.w_query = nn.Parameter(torch.randn(hidden, hidden) / hidden**0.5)
        self.w_key = nn.Parameter(torch.randn(2 * hidden, hidden) / (2 * hidden) ** 0.5)
        self.v = nn.Parameter(torch.randn(hidden) / hidden**0.5)

    def forward(self, source: Tensor, steps: int, target: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """source: (B, T) ids. target: (B, steps) ids to be fed back in training; None: its own choices are.

        Returns: logits (B, steps, n_out) and weights (B, steps, T), None without attention.
        """
        keys, final = self.encoder(self.embed_in(source))
        summary = final.transpose(0, 1).flatten(1)  # the one vector: the last state of each direction
        state = torch.tanh(self.start(summary))
        last = torch.full_like(source[:, 0], self.embed_out.num_embeddings - 1)  # the id that says 'begin'
        logits, maps, context = [], [], summary
        for step in range(steps):
            if self.attend is not None:
                context, weights = self.attend(state, keys, self.w_query, self.w_key, self.v)
                maps.append(weights)
            state = self.decoder(torch.cat([self.embed_out(last), context], dim=-1), state)
            logits.append(self.read(torch.cat([state, context], dim=-1)))
            last = logits[-1].argmax(dim=-1) if target is None else target[:, step]
        return torch.stack(logits, dim=1), torch.stack(maps, dim=1) if maps else None


def train(
    model: Translator, batches: Callable[[], tuple[Tensor, Tensor]], steps: int, peak_lr: float, name: str
) -> list[float]:
    """Trains in place and says how far it is; returns the loss of each step.

    An interrupt (the square in the toolbar) ends the training early and keeps what was learnt.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=peak_lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak_lr, total_steps=steps)
    losses: list[float] = []
    meter = Meter(f"{name}:", steps)
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small gain nothing from a second thread and lose much on a busy machine
    model.train()
    try:
        for step in range(steps):
            source, target = batches()
            logits, _ = model(source, target.shape[1], target)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if (step + 1) % (steps // REPORTS) == 0 or step + 1 == steps:
                recent = losses[-steps // REPORTS :]
                meter.show(step + 1, sum(recent) / len(recent), time.perf_counter() - started)
    except KeyboardInterrupt:
        print(f"{name}: interrupted after {len(losses)} of {steps} steps; what was learnt so far is kept.")
    finally:
        torch.set_num_threads(threads)
    model.eval()
    return losses


def letters(length: int, n: int, generator: torch.Generator) -> Tensor:
    """(n, length) ids of different letters in random order."""
    return torch.rand(n, 26, generator=generator).argsort(dim=-1)[:, :length]


def train_letters(
    attend: Attend | None, lengths: Sequence[int], steps: int = 400, seed: int = 0, name: str = "letters"
) -> Translator:
    """A translator of letters to themselves, trained on all the lengths alike; some 8 s."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Translator(26, 26, attend, embedding=32, hidden=32)

    def batches() -> tuple[Tensor, Tensor]:
        length = lengths[int(torch.randint(len(lengths), (), generator=generator))]
        source = letters(length, BATCH, generator)
        return source, source

    train(model, batches, steps, 1e-2, name)
    return model


@torch.no_grad()
def shares_right(model: Translator, lengths: Sequence[int], seed: int = 1) -> dict[int, float]:
    """By length, the share of the letters that come back at their place, over 256 fresh sequences."""
    shares = {}
    for length in lengths:
        source = letters(length, 256, torch.Generator().manual_seed(seed))
        logits, _ = model(source, length)
        shares[length] = (logits.argmax(dim=-1) == source).float().mean().item()
    return shares


def written_dates(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Endless dates as people write them, each with its ISO 8601 form; the years 1950 to 2049."""
    while True:
        year, month = int(rng.integers(1950, 2050)), int(rng.integers(12))
        day = int(rng.integers(DAYS_IN[month])) + 1
        name = MONTHS[month]
        ways = (
            f"{day} {name} {year}", f"{name} {day}, {year}", f"{day} {name[:3]} {year}", f"{name[:3]} {day}, {year}",
            f"{day}.{month + 1}.{year}", f"{day:02d}.{month + 1:02d}.{year}",
        )  # fmt: skip
        yield ways[rng.integers(len(ways))], f"{year}-{month + 1:02d}-{day:02d}"


def fresh_dates(n: int, seed: int = 0, seen: int = 350 * BATCH) -> list[tuple[str, str]]:
    """n dates that are not among the first `seen` that `train_dates` draws from that seed."""
    trained_on = set(islice(written_dates(np.random.default_rng(seed)), seen))
    drawn = (pair for pair in written_dates(np.random.default_rng(seed + 1)) if pair not in trained_on)
    return list(islice(drawn, n))


def encode(texts: Sequence[str], alphabet: str, length: int) -> Tensor:
    """(n, length) ids; short texts are filled up with PAD. Raises ValueError for a character not in the alphabet."""
    return torch.tensor([[alphabet.index(c) for c in text.ljust(length, PAD)] for text in texts])


def train_dates(attend: Attend, steps: int = 350, seed: int = 0) -> tuple[Translator, list[float]]:
    """A translator of written dates to ISO dates, and its losses; some 20 to 30 s."""
    dates = written_dates(np.random.default_rng(seed))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Translator(len(SOURCE), len(TARGET), attend)

    def batches() -> tuple[Tensor, Tensor]:
        pairs = [next(dates) for _ in range(BATCH)]
        return encode([a for a, _ in pairs], SOURCE, LENGTH), encode([b for _, b in pairs], TARGET, 10)

    return model, train(model, batches, steps, 8e-3, "dates")


@torch.no_grad()
def translate(model: Translator, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The model's ISO dates, and its weights (n, 10, LENGTH)."""
    logits, weights = model(encode(texts, SOURCE, LENGTH), 10)
    return ["".join(TARGET[i] for i in row) for row in logits.argmax(dim=-1)], weights.numpy()
