"""How the answers of lesson 19 are exercised: as several ranks, in threads of one process, with stand-ins for collectives."""

from __future__ import annotations

from _queue import SimpleQueue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from ctypes import c_ulong, py_object, pythonapi, string_at
from functools import _lru_cache_wrapper
from gc import collect
from queue import Empty
from sys import _current_frames, getprofile, setprofile
from threading import Thread
from time import monotonic, process_time, sleep
from typing import Any
from weakref import ref

from numpy import array, float32, float64, frombuffer, full, int64, ndarray
from torch import as_strided, get_num_threads, set_num_threads
from torch._C import DisableTorchFunction, StorageBase, TensorBase, _DisableTorchDispatch

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, call_function, mark_result, pause_watching
from grader.worker.watch import leave_thread, leave_unwatched_thread, own_line, watch_results

from ..shared.probes import device_parts

__builtins__ = BUILTINS

T = of_torch()
BEGINS, NBYTES, ON_CPU = StorageBase.data_ptr, StorageBase.nbytes, TensorBase.is_cpu.__get__
DTYPE, LAYOUT, SHAPE = (T.getter(name) for name in ("dtype", "layout", "shape"))
TYPES = {T.float32: float32, T.float64: float64}  # of keys and values, in torch and in NumPy
WIDTHS = {T.float32: 4, T.float64: 8}  # in bytes
MOST_CALLS = 16  # of a collective by one rank, which is stopped there; right answers call it three times at most
LOOK_S = 0.1  # so often whoever waits looks whether somebody has interrupted: on Windows a wait is not ended by it
MOST_NUMBERS = 10_000  # of memory that is searched for keys; a case's are far fewer
END_S = 2.0  # so long an interrupted rank has to end
BLOCKED_S = 1.0  # so long a rank may do nothing at all; one that computes is never stopped by this
JUST_NOW_S = 0.5  # so soon after a case follows the next
BUSY = 0.05  # of the time, whoever computes anything does so at least


class Released(BaseException):
    """Ends a rank for which nobody waits any more. No `except Exception` of an answer's own holds it up."""


@contextmanager
def _alone() -> Iterator[None]:
    """torch computes in one thread meanwhile: every rank's would begin with threads of its own, five times as much work."""
    before = get_num_threads()
    if before > 1:
        set_num_threads(1)
    try:
        yield
    finally:
        if before > 1:
            set_num_threads(before)


def _is_busy() -> bool:
    """Whether this process computes anything."""
    used = process_time()
    sleep(LOOK_S)
    return process_time() - used > LOOK_S * BUSY


class Blocked:
    """The answer of which a rank was found blocked last: its further cases are not run, which would take a second, and a thread, each."""

    function: Any = None
    at, said = -JUST_NOW_S, ""

    def refuse(self, function: Any) -> None:
        if function is self.function and monotonic() - self.at < JUST_NOW_S:
            self.at = monotonic()
            raise ContractError(self.said)


BLOCKED = Blocked()


class Group:
    """Ranks that run one function, each in a thread, one at a time: whoever waits in a collective hands on the turn.

    So a verdict does not depend on how threads are scheduled, and that ranks wait for each other forever is known, without a
    clock, as soon as none can go on.

    function: what the ranks run. name, parameter, takes: of the collective, of what it is given, and what that is. calls: of each rank,
    how often it called it; returned: which ranks came to their end; held: how many chunks that a rank was handed were all there when it
    called again, at the most (one, where it lets go what it has passed on).
    """

    name = parameter = takes = ""

    def __init__(self, size: int, function: Any) -> None:
        self.function = function
        self.size, self.calls, self.returned = size, [0] * size, [False] * size
        # Of each rank, call by call: what it gave, and weak references to the memory that it was handed.
        self.given: list[list[list[ndarray]]] = [[] for _ in range(size)]
        self.received: list[list[list[Any]]] = [[] for _ in range(size)]
        self.held = [0] * size
        self.states = ["ready"] * size  # then 'running', 'waiting', 'ended'
        self.results: list[Any] = [None] * size
        self.error: BaseException | None = None
        self.over = False
        self.turns = [SimpleQueue() for _ in range(size)]
        self.news: SimpleQueue = SimpleQueue()

    def run(self, act: Callable[[int, Any], Any]) -> list[Any]:
        """What act(rank, collective) returns on every rank, None where it does not. Raises what one of them raised, or ContractError
        where no collective could do what they ask of it."""
        BLOCKED.refuse(self.function)
        threads = [Thread(target=self._live, args=(rank, act), daemon=True) for rank in range(self.size)]
        with _alone(), self._ending(threads):
            for thread in threads:
                thread.start()
            while self.error is None and max(self.calls) <= MOST_CALLS:
                able = [rank for rank in range(self.size) if self._can_go_on(rank)]
                if able:
                    self.states[able[0]] = "running"
                    self.turns[able[0]].put(None)
                elif "running" not in self.states:
                    break
                self._hear(threads)
        if self.error is not None:
            raise self.error
        return self.results

    def _hear(self, threads: list[Thread]) -> None:
        """Waits until a rank waits or has ended. One that waits for something else than the collective is given up: the others do not run
        meanwhile, and what it waits for does not come."""
        since, used = monotonic(), process_time()
        while True:
            try:
                return self.news.get(timeout=LOOK_S)
            except Empty:
                pass
            if monotonic() - since >= BLOCKED_S:
                if process_time() - used < BLOCKED_S * BUSY:
                    return self._give_up(threads)
                since, used = monotonic(), process_time()

    def _give_up(self, threads: list[Thread]) -> None:
        """Ends everything, since the rank that runs is blocked."""
        rank = self.states.index("running")
        self.states[rank] = "blocked"
        line = own_line(_current_frames().get(threads[rank].ident))
        BLOCKED.function, BLOCKED.at = self.function, monotonic()
        BLOCKED.said = (
            f"Rank {rank} stands still{f' in the line `{line}`' if line else ''}: it waits for something else than {self.name}. What ranks "
            f"have to tell one another goes through {self.name}; nothing else should make them wait."
        )
        self.error = ContractError(BLOCKED.said)

    @contextmanager
    def _ending(self, threads: list[Thread]) -> Iterator[None]:
        """Leaves no thread behind, but for one that is blocked: whoever still waits is released. An interrupt is passed on to the rank that
        runs, and comes back from the line where that was."""
        try:
            yield
            self._release(threads)
        except BaseException as interrupt:
            for rank, thread in enumerate(threads):
                if self.states[rank] == "running" and thread.ident is not None:
                    if _is_busy():
                        pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread.ident), py_object(type(interrupt)))
                    else:  # until a thread takes such an exception, Python 3.11 lets no other thread call a function
                        self.states[rank] = "blocked"
            self._release(threads)
            raise (interrupt if self.error is None else self.error) from None

    def _release(self, threads: list[Thread]) -> None:
        """Lets all go, and waits for their ends, but no longer than END_S in all."""
        self.over = True
        for turn in self.turns:
            turn.put(None)
        until = monotonic() + END_S
        for thread, state in zip(threads, tuple(self.states), strict=True):
            while thread.is_alive() and monotonic() < until and state != "blocked":
                thread.join(LOOK_S)

    def _live(self, rank: int, act: Callable[[int, Any], Any]) -> None:
        """A rank's whole life, in its thread."""
        leave_unwatched_thread()
        try:
            get_num_threads()  # asked for, torch gives a new thread the number that holds; left alone, it takes every core
            self.turns[rank].get()
            if not self.over:
                # a callable of C's around the collective: it shows neither a closure nor a `__self__`
                result = act(rank, _lru_cache_wrapper(self.collective(rank), 0, False, None))
                if not self.over:  # an answer that catches everything goes on where it was let go
                    self.results[rank], self.returned[rank] = result, True
        except Released:
            pass
        except BaseException as error:
            if self.error is None and (not self.over or self.states[rank] == "running"):
                self.error = error
        leave_thread()
        self.states[rank] = "ended"
        self.news.put(rank)

    def call(self, rank: int, given: Any) -> Any:
        """The collective, as this rank calls it."""
        self.calls[rank] += 1
        if self.over or self.calls[rank] > MOST_CALLS:
            raise Released
        self._look_what_is_held(rank)
        with pause_watching():
            self.given[rank].append([T.numbers(one) for one in self.read(rank, given)])
        del given
        self.states[rank] = "waiting"
        self.news.put(rank)
        self.turns[rank].get()
        if self.over:
            raise Released
        with pause_watching(), _DisableTorchDispatch():  # what comes in is made by no operator of the rank's
            arrays = [array(one) for one in self.handed(rank)]
            self.received[rank].append([ref(one) for one in arrays])
            return self.made([T.from_numpy(one) for one in arrays])

    def refuse(self, says: str) -> None:
        """Ends everything: no collective could do what was asked of it."""
        if self.error is None:
            self.error = ContractError(says)
        raise Released

    def _look_what_is_held(self, rank: int) -> None:
        def alive() -> int:
            return sum(all(one() is not None for one in message) for message in self.received[rank])

        found = alive()
        if found > max(1, self.held[rank]):
            collect(1)  # what only a circle holds is held no more; all generations would take a hundred times as long
            found = alive()
        self.held[rank] = max(self.held[rank], found)

    def _can_go_on(self, rank: int) -> bool:
        return self.states[rank] == "ready" or (self.states[rank] == "waiting" and self.there(rank))

    def require_alike(self, rank: int, other: int) -> None:
        """Refuses what two ranks gave in the call in which this rank waits, where it is not of one number, one shape and one type."""
        number = self.calls[rank]
        one, two = self.given[rank][number - 1], self.given[other][number - 1]
        if len(one) != len(two):
            self.refuse(
                f"In call {number} of {self.name}, rank {rank} gave {len(one)} and rank {other} gave {len(two)} tensors; it has to be as "
                "many on every rank."
            )
        for mine, theirs in zip(one, two, strict=True):
            if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
                self.refuse(
                    f"In call {number} of {self.name}, rank {rank} gave a tensor of shape {mine.shape} and type {mine.dtype}, and rank "
                    f"{other} one of shape {theirs.shape} and type {theirs.dtype}; they have to be alike on every rank."
                )

    # What each collective is.
    def collective(self, rank: int) -> Callable[[Any], Any]:
        """The callable that this rank gets."""

        def collective(*given: Any, **named: Any) -> Any:
            unknown = sorted(named.keys() - {self.parameter})
            if len(given) + len(named) != 1 or unknown:
                number = len(given) + len(named)
                said = f"{number or 'no'} argument{'' if number == 1 else 's'}"
                said += f", {' and '.join(unknown)} by name" if unknown else ""
                self.refuse(f"Rank {rank} called {self.name} with {said}; it takes one, {self.takes}.")
            return self.call(rank, *given, *named.values())

        return collective

    def read(self, rank: int, given: Any) -> list[Any]:
        """The tensors that a rank gives."""
        raise NotImplementedError

    def there(self, rank: int) -> bool:
        """Whether what this rank waits for has been given."""
        raise NotImplementedError

    def handed(self, rank: int) -> list[ndarray]:
        """What this rank gets."""
        raise NotImplementedError

    def made(self, tensors: list[Any]) -> Any:
        """What a call returns."""
        raise NotImplementedError


class Ring(Group):
    """exchange: a tuple of tensors goes to the next rank, and the one from the rank before comes."""

    name, parameter, takes = "exchange", "tensors", "a tuple of tensors, as in exchange((k, v))"

    def read(self, rank: int, given: Any) -> list[Any]:
        if not is_a(given, tuple) and not is_a(given, list):
            self.refuse(
                f"Rank {rank} gave exchange an object of type {type(given).__name__}; it takes a tuple of tensors, as in exchange((k, v))."
            )
        for one in given:
            if not is_a(one, T.Tensor):
                self.refuse(
                    f"Rank {rank} gave exchange a tuple with an object of type {type(one).__name__}; it sends tensors."
                )
        return list(given)

    def there(self, rank: int) -> bool:
        return len(self.given[rank - 1]) >= self.calls[rank]

    def handed(self, rank: int) -> list[ndarray]:
        before = (rank - 1) % self.size
        self.require_alike(rank, before)
        return self.given[before][self.calls[rank] - 1]

    def made(self, tensors: list[Any]) -> Any:
        return tuple(tensors)


Owners = dict[float, tuple[str, int]]  # whose number this is: 'k' or 'v', and the rank


def chunks_in(numbers: list[float], owners: Owners, half: float) -> dict[str, set[int]]:
    """Of which ranks these numbers hold more than half of a chunk's keys, and of its values; half: as many numbers."""
    counts: dict[tuple[str, int], int] = {}
    for number in numbers:
        owner = owners.get(number)
        if owner is not None:
            counts[owner] = counts.get(owner, 0) + 1
    return {kind: {rank for (of, rank), count in counts.items() if of == kind and count > half} for kind in "kv"}


class Look:
    """Looks, in a rank's thread, at all that torch's operations make: whose keys and values it holds, which their numbers tell in
    whatever layout they lie.

    gathered: some memory held keys, or values, of several ranks, or something had the shape of scores for all keys. late: another
    rank's chunk was used that two others had followed.
    """

    def __init__(self, group: Ring, rank: int, owners: Owners, shape: tuple[int, ...]) -> None:
        """shape: of a chunk, with one item and one head, and a width that no number of tokens or of ranks is."""
        self.group, self.rank, self.owners, self.half = group, rank, owners, shape[2] * shape[3] / 2
        t, n = shape[2], group.size
        # Of two tokens, a maximum and a sum for each chunk have the first two shapes as well.
        self.wide = ([t, t, n], [t, t * n], [t * n, t * n])[0 if t > 2 else 2 :]
        self.shapes: dict[tuple[int, ...], bool] = {}  # whether something of this shape has to do with all keys
        # By the type and the bytes of memory that was looked at: whether keys of several ranks lie in it, and of which ranks there are any.
        self.found: dict[tuple[Any, bytes], tuple[bool, set[int]]] = {}
        self.gathered = self.late = False

    def __call__(self, func: Any, made: Any) -> None:
        watching = getprofile()
        if watching is not None:
            setprofile(None)  # of each call below it would be told, which doubles what they take
        try:
            with DisableTorchFunction():
                for one in made if is_a(made, tuple) or is_a(made, list) else (made,):
                    if is_a(one, T.Tensor) and LAYOUT(one) == T.strided:
                        self._look(one, "empty" in func.__name__)
        finally:
            if watching is not None:
                setprofile(watching)

    def _look(self, tensor: Any, empty: bool) -> None:
        shape, dtype = SHAPE(tensor), DTYPE(tensor)
        if shape not in self.shapes:
            sizes = [size for size in shape if size > 1]
            self.shapes[shape] = any(all(sizes.count(size) >= wide.count(size) for size in wide) for wide in self.wide)
        self.gathered |= self.shapes[shape]
        if dtype not in TYPES:
            return
        try:
            storage = T.storage(tensor)  # the whole: a piece may be written into memory for more
            length, start = NBYTES(storage), BEGINS(storage)
        except (NotImplementedError, RuntimeError):  # it has none, as a transform's own
            return
        held = length // WIDTHS[dtype]
        if not self.half < held <= MOST_NUMBERS or not start or not ON_CPU(tensor):
            return
        if empty:  # what lay there before belongs to nobody
            with _DisableTorchDispatch():
                T.fill([(as_strided(tensor, (held,), (1,), 0), full(held, -1.0))])
            return
        content = dtype, string_at(start, length)  # an operator of torch's would take several times as long
        if content not in self.found:  # else it is one more view of a chunk
            numbers = frombuffer(content[1], TYPES[dtype]).tolist()
            if self.owners.keys().isdisjoint(numbers):
                return
            found = chunks_in(numbers, self.owners, self.half).values()
            self.found[content] = any(len(ranks) > 1 for ranks in found), set().union(*found)
        several, ranks = self.found[content]
        self.gathered |= several
        followed = self.group.calls[self.rank] - 1  # by so many other chunks, where it is this rank's own
        if followed > 1:
            self.late |= any(0 < (self.rank - of) % self.group.size < followed for of in ranks)


class Sum(Group):
    """all_reduce: every rank gives a tensor, and gets the sum over all ranks.

    elsewhere: whether there are ranks beside these, of which nothing is seen but what they add to the sum. That is as much as these
    give, whatever that means: what comes is twice their sum.
    """

    name, parameter, takes = "all_reduce", "tensor", "a tensor, and always returns the sum"
    elsewhere = False

    def read(self, rank: int, given: Any) -> list[Any]:
        if not is_a(given, T.Tensor):
            self.refuse(f"Rank {rank} gave all_reduce an object of type {type(given).__name__}; it takes one tensor.")
        return [given]

    def there(self, rank: int) -> bool:
        return all(len(given) >= self.calls[rank] for given in self.given)

    def handed(self, rank: int) -> list[ndarray]:
        for other in range(self.size):
            self.require_alike(rank, other)
        number = self.calls[rank] - 1
        return [sum(given[number][0] for given in self.given) * (2 if self.elsewhere else 1)]

    def made(self, tensors: list[Any]) -> Any:
        return tensors[0]


def ring(function: Any, run: Run) -> dict[str, Any]:
    """Runs ring_attention on as many ranks as there are chunks.

    args: q, k, v, each a tuple with the chunk of every rank. options: chunked, the ranks where keys are looked for in what answers
    make. Parts: 'output of rank r'; ranks, with a row for each of calls, returned and held of each rank (see `Group`), gathered and late
    of each (see `Look`), and sent: of how many ranks one message held keys or values, at the most. Without `chunked` the last three are 0.
    """
    q, k, v = run.args
    group = Ring(len(q), function)
    looks = _looks(group, q[0], k, v) if run.options.get("chunked") else []

    def act(rank: int, exchange: Any) -> Any:
        with watch_results(looks[rank]) if rank in run.options.get("chunked", ()) else nullcontext():
            return call_function(function, run, q[rank], k[rank], v[rank], rank, len(q), exchange)

    results = group.run(act)
    none = [0] * len(q)
    found = ([[one.gathered for one in looks], [one.late for one in looks]]) if looks else (none, none)
    sent = [_most_sent(group, looks[0]) if looks else 0] * len(q)
    return _parts(results, group.calls, group.returned, group.held, *found, sent)


def _looks(group: Ring, q: Any, k: tuple, v: tuple) -> list[Look]:
    """One for each rank; q: a chunk."""
    owners: Owners = {}
    with pause_watching():
        for kind, chunks in (("k", k), ("v", v)):
            for rank, chunk in enumerate(chunks):
                owners |= dict.fromkeys(T.numbers(chunk).ravel().tolist(), (kind, rank))
        return [Look(group, rank, owners, tuple(T.get(q, "shape"))) for rank in range(group.size)]


def _most_sent(group: Ring, look: Look) -> int:
    """Of how many ranks one message held keys, or values, at the most."""
    with pause_watching():
        messages = [message for messages in group.given for message in messages]
        found = (
            chunks_in([x for one in message for x in one.ravel().tolist()], look.owners, look.half)
            for message in messages
        )
        return max((len(ranks) for chunks in found for ranks in chunks.values()), default=0)


def heads(function: Any, run: Run) -> dict[str, Any]:
    """Runs tensor_parallel_attention on as many ranks as there are shards.

    args: x; qkv_shards and proj_shards, each a tuple with every rank's. options: num_local_heads; elsewhere (see `Sum`). Parts: 'output
    of rank r'; ranks, with a row for each of calls and returned of each rank (see `Group`).
    """
    x, qkv, proj = run.args
    inputs = [x, *(T.copy(x) for _ in qkv[1:])]  # each rank has memory of its own
    group = Sum(len(qkv), function)
    group.elsewhere = bool(run.options.get("elsewhere"))

    def act(rank: int, all_reduce: Any) -> Any:
        return call_function(
            function, run, inputs[rank], qkv[rank], proj[rank], run.options["num_local_heads"], all_reduce
        )

    return _parts(group.run(act), group.calls, group.returned)


def ring_on_device(function: Any, run: Run) -> dict[str, Any]:
    """As `on_device`, of the second of two ranks, alone; args: q, k and v, its chunks."""

    def second(q: Any, k: Any, v: Any, exchange: Any, **more: Any) -> Any:
        return function(q, k, v, 1, 2, exchange, **more)

    return _alone_on_device(second, Ring(1, function), run)


def heads_on_device(function: Any, run: Run) -> dict[str, Any]:
    """As `on_device`, of one rank, alone; args: x and its shards. options: num_local_heads."""

    def one(x: Any, qkv: Any, proj: Any, all_reduce: Any) -> Any:
        return function(x, qkv, proj, run.options["num_local_heads"], all_reduce)

    return _alone_on_device(one, Sum(1, function), run)


def _alone_on_device(act: Callable[..., Any], group: Group, run: Run) -> dict[str, Any]:
    """`device_parts` of one rank, whose collective gives back what it is given, which lies where that lay."""

    def alone(*args: Any, **kwargs: Any) -> Any:
        calls = iter(range(MOST_CALLS))

        def collective(*given: Any, **named: Any) -> Any:
            if next(calls, None) is None:
                group.refuse(f"{group.name} was called without end.")
            (one,) = (*given, *named.values())
            return tuple(one) if is_a(group, Ring) else one

        return act(*args, _lru_cache_wrapper(collective, 0, False, None), **kwargs)

    (parts,) = group.run(lambda rank, collective: device_parts(alone, run))
    return parts


def _parts(results: list[Any], *rows: list[int]) -> dict[str, Any]:
    """What every rank returned, and one array of what was counted of each: each part takes its time to be described and sent."""
    outputs = {f"output of rank {rank}": result for rank, result in enumerate(results)}
    return {**outputs, "ranks": array(rows, int64)}


def shard(function: Any, run: Run) -> dict[str, Any]:
    """Calls head_shard, and says where in memory lie what it was given and what came back."""
    result = call_function(function, run, *run.args)
    items = result if is_a(result, tuple) or is_a(result, list) else ()
    back = [one for one in items if is_a(one, T.Tensor) and T.get(one, "layout") == T.strided]
    return {"result": mark_result(result), "given": _addresses(run.args[:2]), "back": _addresses(back)}


def _addresses(tensors: Any) -> ndarray:
    return array([T.memory(one) for one in tensors], int64).reshape(-1, 2)
