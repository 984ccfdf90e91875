"""What lesson 13 asks of the machine it runs on: the device, its memory, its two ceilings."""

from __future__ import annotations

import platform
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def device() -> torch.device:
    """The best device that is here."""
    names = [name for name, here in (("cuda", torch.cuda), ("mps", torch.backends.mps)) if here.is_available()]
    return torch.device((names or ["cpu"])[0])


def name() -> str:
    """The device in words: its model for CUDA, the processor and the number of threads otherwise."""
    kind = device().type
    if kind == "cuda":
        return f"cuda ({torch.cuda.get_device_name()})"
    if kind == "mps":
        return f"mps ({platform.machine()})"
    threads = torch.get_num_threads()
    return f"cpu ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"


@contextmanager
def steady() -> Iterator[None]:
    """One thread of the processor: threads wait for the slowest of them, and other programs slow one down at random."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def today() -> str:
    return date.today().isoformat()


def wait() -> None:
    """Until the device has done what was asked."""
    {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device().type, lambda: None)()


def reading_ms(fn: Callable[[], object], waiting: bool = True) -> float:
    """One reading of the clock around fn(), waiting for the device or not."""
    wait()
    start = time.perf_counter()
    fn()
    if waiting:
        wait()
    return 1000 * (time.perf_counter() - start)


def asked_and_done_ms(fn: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds until the device was asked for fn(), and until it was done, each the least of five.

    On a CPU a second thread stands in for the GPU: it works through a queue while Python goes on.
    """
    if device().type != "cpu":
        return min(reading_ms(fn, waiting=False) for _ in range(5)), min(reading_ms(fn) for _ in range(5))
    asked, done = [], []
    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as stand_in:
        for _ in range(5):
            start = time.perf_counter()
            work = stand_in.submit(fn)
            asked.append(1000 * (time.perf_counter() - start))
            work.result()
            done.append(1000 * (time.perf_counter() - start))
    return min(asked), min(done)


def lengths(num_heads: int = 8) -> tuple[int, ...]:
    """Numbers of tokens to measure at: up to 2048 on a CPU, up to 16384 where a GPU has the memory for the scores."""
    kind = device().type
    if kind == "cpu":
        return tuple(2**i for i in range(7, 12))
    free = torch.cuda.mem_get_info()[0] if kind == "cuda" else 2**32  # mps shares it with everything else
    return tuple(t for t in (2**i for i in range(8, 15)) if 4 * 4 * num_heads * t * t < 0.6 * free)


def heads(t: int, dtype: torch.dtype = torch.float32, num_heads: int = 8, d_head: int = 64) -> list[torch.Tensor]:
    """Random q, k and v, each (1, num_heads, t, d_head), on the device."""
    generator = torch.Generator().manual_seed(t)
    return [torch.randn(1, num_heads, t, d_head, generator=generator).to(device(), dtype) for _ in range(3)]


def peak_bytes(fn: Callable[[], object]) -> int:
    """The most memory that fn() held at once beyond what was there before; on mps what it left behind."""
    kind = device().type
    if kind == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        fn()
        wait()
        return torch.cuda.max_memory_allocated() - before
    if kind == "mps":
        before = torch.mps.driver_allocated_memory()
        fn()
        wait()
        return max(torch.mps.driver_allocated_memory() - before, 0)
    with _Held() as held:
        fn()
    return held.most


class _Held(TorchDispatchMode):
    """The memory of all results that are alive, looked at after each operation; what an operator keeps inside is unseen."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[weakref.ref[torch.Tensor]] = []
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        old = {item.untyped_storage().data_ptr() for item in _tensors(args)} - self._alive().keys()
        result = func(*args, **(kwargs or {}))
        results = result if isinstance(result, (tuple, list)) else (result,)
        self.made += [weakref.ref(item) for item in _tensors(results) if item.untyped_storage().data_ptr() not in old]
        self.most = max(self.most, sum(self._alive().values()))
        return result

    def _alive(self) -> dict[int, int]:
        """Address and bytes of each storage that a result still holds."""
        alive = [item for item in (ref() for ref in self.made) if item is not None]
        return {item.untyped_storage().data_ptr(): item.untyped_storage().nbytes() for item in alive}


def _tensors(items: Any) -> list[torch.Tensor]:
    return [item for item in items if isinstance(item, torch.Tensor)]


def product_rate(time_ms: Callable[..., float], n: int | None = None, dtype: torch.dtype = torch.float32) -> float:
    """Operations a second of a square matrix product."""
    n = n or (1024 if device().type == "cpu" else 4096)
    a, b = (torch.randn(n, n).to(device(), dtype) for _ in range(2))
    return 2 * n**3 / (time_ms(lambda: a @ b, device(), 2, 7) * 1e-3)


def bandwidth(time_ms: Callable[..., float]) -> float:
    """Bytes a second of a large copy, each byte read and written."""
    size = 2**26 if device().type == "cpu" else 2**29  # of float32: far beyond any cache
    size //= 4
    a = torch.ones(size, device=device())
    b = torch.empty_like(a)
    return 2 * 4 * size / (time_ms(lambda: b.copy_(a), device(), 2, 7) * 1e-3)


def least_bytes(t: int, num_heads: int = 8, d_head: int = 64, itemsize: int = 4) -> int:
    """q, k and v read and the output written, once each."""
    return 4 * num_heads * t * d_head * itemsize


def scores_bytes(t: int, num_heads: int = 8, itemsize: int = 4) -> int:
    """Scores written; read and written for scale, mask and softmax; weights read: eight passes over (T, T)."""
    return 8 * num_heads * t * t * itemsize
