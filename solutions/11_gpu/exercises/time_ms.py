"""A stopwatch for devices that work while Python goes on, tried on calls of known length."""

from grader.course.declare import Case, exercise, mistake, patch

from ..clock import reading

# Lengths of the calls in units of the probe. In each plan the median, its neighbours in order of size, the mean, the shortest,
# the first, the middle one unsorted and the median with the warm-up counted are all different, so that a reading says where
# it came from.
_SEVEN = (6, 6, 2, 60, 20, 25, 4, 1, 3)
_QUEUED = (6, 6, 2, 20, 60, 25, 4, 1, 3)
_TEN = (6, 6, 6, 2, 1, 4, 40, 1.5, 9, 20, 30, 4.4, 1)
_FOUR = (12, 12, 12, 12, 12, 1, 1.6, 40, 2)  # more of a warm-up than readings: taken off them, it leaves none

WARM_UP = "for _ in range(warmup):\n        fn()"
BEFORE, AFTER = (
    ("wait()\n        start", "start"),
    ("wait()\n        seconds", "seconds"),
)  # one of the waits, and without it


@exercise(points=3, minutes=12, difficulty=2, result_type="any", forbids=("tampering",))
class time_ms:
    """Measure how long fn() takes on a device that works while Python goes on."""

    def cases(rng):
        def case(key, title, device, plan, as_device=False, **kwargs):
            shown = {name: str(number) for name, number in kwargs.items()}
            if as_device:
                shown["device"] = f"torch.device({device!r})"
            options = {"plan": plan, "kwargs": kwargs, "as_device": as_device, "shown": shown}
            return Case(
                key, title, (device,), probe="probes_clock.timing", options=options, names=("device",), reading=reading
            )

        seven = {"warmup": 2, "repeats": 7}
        yield case("cpu", "on the CPU, seven readings of calls of known length", "cpu", _SEVEN, **seven)
        yield case("cuda", "on a pretended CUDA GPU, which works while Python goes on", "cuda", _QUEUED, **seven)
        yield case("mps", "on a pretended Apple GPU", "mps", _QUEUED, **seven)
        yield case("cpu device", "device as torch.device('cpu')", "cpu", _SEVEN, as_device=True, **seven)
        yield case("cuda device", "device as torch.device('cuda')", "cuda", _QUEUED, as_device=True, **seven)
        yield case("mps device", "device as torch.device('mps')", "mps", _QUEUED, as_device=True, **seven)
        yield case("defaults", "warmup and repeats left to their defaults", "cpu", _TEN)
        yield case("cuda numbered", "the device 'cuda:0'", "cuda:0", _QUEUED, **seven)
        yield case(
            "cuda numbered device", "device as torch.device('cuda', 0)", "cuda:0", _QUEUED, as_device=True, **seven
        )
        yield case("even", "four readings: either middle one or their mean", "cpu", _FOUR, warmup=5, repeats=4)
        yield case("mps numbered", "the device 'mps:0'", "mps:0", _QUEUED, **seven)
        yield case("single", "one reading and no warm-up", "cpu", (3,), warmup=0, repeats=1)
        yield case(
            "seen-again",
            "seven readings on the CPU again, other lengths",
            "cpu",
            (7, 7, 3, 70, 25, 31, 5, 1.4, 3.6),
            **seven,
        )

    hints = (
        "When `fn()` returns, what has a GPU done so far? And what may it still be doing when the clock starts?",
        "`torch.cuda.synchronize(device)` and `torch.mps.synchronize()` wait; a CPU needs no waiting. `torch.device(device).type` is "
        "the name for strings and devices alike. `time.perf_counter()` counts seconds.",
        "for _ in range(____):\n    fn()\nfor _ in range(repeats):\n    wait(____)\n    start = time.perf_counter()\n    fn()\n    ____\n"
        "    times.append(time.perf_counter() - start)\nreturn ____ * statistics.median(times)",
    )

    mistakes = {
        "GP22": mistake(
            patch("statistics.median", "statistics.mean"),
            patch("statistics.median", "min"),
            patch("statistics.median", "max"),
            says="The mean, the shortest or the longest reading was returned; the median is expected.",
            why="""One reading that something else disturbed is the longest, and moves the mean as far as it likes. The shortest is a
            statement about the best case. The median says what one may expect.""",
        ),
        "GP24": mistake(
            patch("1000 * ", ""),
            patch("1000 *", "1000000 *"),
            patch("1000 *", "1000000000 *"),
            says="The result is in seconds, microseconds or nanoseconds; milliseconds are asked for.",
            why="`time.perf_counter()` counts seconds. A second has 1000 milliseconds, and a millisecond 1,000,000 nanoseconds.",
        ),
        "GP26": mistake(
            patch(*BEFORE, *AFTER),
            patch(*BEFORE),
            says="""The clock is read before earlier work of fn is done, at the start or at the end of a reading: wait before each
            of the two.""",
            why="""A GPU works while Python goes on. Without waiting at the end, the second reading of the clock comes before the
            work is done: the launch was measured, and not the work. Without waiting at the start, the first measured call has to wait
            for what the warm-up calls queued.""",
        ),
        "GP29": mistake(
            patch("torch.device(device).type", "device.type"),
            patch("torch.device(device).type", "device"),
            says="""`device` may be a string or a `torch.device`, with or without a number; `torch.device(device).type` is the name
            of each.""",
            why="""A string has no `.type`. A torch.device never equals a string, and "cuda:0" is not "cuda". `torch.device(device)`
            accepts a string and a torch.device alike, and its type is the name without the number.""",
        ),
        "GP34": mistake(
            patch("statistics.median(seconds)", "seconds[len(seconds) // 2]"),
            says="The readings were not sorted: the middle of an unsorted list is no median.",
            why="The median is the middle in order of size.",
        ),
        "GP67": mistake(
            patch("range(warmup)", "range(1, warmup)"),
            patch(WARM_UP, ""),
            patch("range(warmup)", "range(warmup + 1)"),
            patch("start = time", "fn()\n        start = time"),
            patch("range(repeats)", "range(repeats - warmup)"),
            patch(
                "range(repeats)",
                "range(repeats - warmup)",
                "statistics.median(seconds)",
                "sorted(seconds)[len(seconds) // 2]",
            ),
            says="""fn is called too often or too seldom: it should be called `warmup` times, and then once for each of `repeats`
            readings.""",
            why="""In all, fn is called warmup + repeats times. The first call loads libraries, compiles kernels, asks for memory:
            warm-up calls come before any reading, so that their time is not counted. `range(1, n)` has n − 1 numbers, `range(n)` has
            n. A call before each reading is a warm-up that nobody asked for. With the warm-up taken off the repeats, a longer warm-up
            would leave no reading.""",
        ),
        "GP63": mistake(
            patch("'cuda': lambda: torch.cuda.synchronize(device), ", ""),
            patch("waits.get(kind, lambda: None)", "waits['cuda']"),
            patch(", 'mps': torch.mps.synchronize", ""),
            says="What is waited for does not follow the device: CUDA and Apple's GPU each have a `synchronize`; the CPU needs none.",
            why="""Only the device that did the work is waited for: `torch.cuda.synchronize(device)` for CUDA, which raises where
            there is none, and `torch.mps.synchronize()` for Apple's GPU. Both work while Python goes on. The CPU is done when the
            call returns.""",
        ),
    }
