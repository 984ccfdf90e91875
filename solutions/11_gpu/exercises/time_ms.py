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
        "GP21": mistake(
            patch(WARM_UP, ""),
            says="There is no warm-up: the first calls, which are slow, are measured.",
            why="The first call loads libraries, compiles kernels, asks for memory. `warmup` calls come before any reading.",
        ),
        "GP22": mistake(
            patch("statistics.median", "statistics.mean"),
            says="The mean was returned; the median is expected.",
            why="One reading that something else disturbed moves the mean as far as it likes and the median hardly.",
        ),
        "GP23": mistake(
            patch("statistics.median", "min"),
            says="The shortest reading was returned; the median is expected.",
            why="The minimum is a statement about the best case. The median says what one may expect.",
        ),
        "GP24": mistake(
            patch("1000 * ", ""),
            says="The result is in seconds; milliseconds are asked for.",
            why="`time.perf_counter()` counts seconds.",
        ),
        "GP25": mistake(
            patch("1000 *", "1000000 *"),
            patch("1000 *", "1000000000 *"),
            says="The result is in microseconds or nanoseconds; milliseconds are asked for.",
            why="A second has 1000 milliseconds, and a millisecond 1,000,000 nanoseconds.",
        ),
        "GP26": mistake(
            patch(*BEFORE, *AFTER),
            says="fn's work is not waited for before the clock is read the second time: the launch was measured, and not the work.",
            why="A GPU works while Python goes on. Without waiting, the second reading of the clock comes before the work is done.",
        ),
        "GP27": mistake(
            patch(WARM_UP, "", "range(repeats)", "range(warmup + repeats)"),
            says="The warm-up calls are among the readings.",
            why="They are made so that their time need not be counted.",
        ),
        "GP28": mistake(
            patch(*BEFORE),
            says="Nothing waits for the warm-up before the clock is started: the rest of its work is measured with the first reading.",
            why="The warm-up calls only queue their work. The first measured call has to wait for it.",
        ),
        "GP29": mistake(
            patch("torch.device(device).type", "device.type"),
            says="`device` may be a string, which has no `.type`.",
            why="`torch.device(device)` accepts a string and a torch.device alike.",
        ),
        "GP30": mistake(
            patch("torch.device(device).type", "device"),
            says='The device is compared with a name only; `torch.device("cuda")` and "cuda:0" are not that name.',
            why="A torch.device never equals a string. Its type is the name without the number.",
        ),
        "GP31": mistake(
            patch("waits.get(kind, lambda: None)", "waits['cuda']"),
            says="`torch.cuda.synchronize()` is called on every machine and raises where there is no CUDA.",
            why="Only the device that did the work is waited for. The CPU is done when the call returns.",
        ),
        "GP32": mistake(
            patch(", 'mps': torch.mps.synchronize", ""),
            says="Apple's GPU is not waited for: it, too, works while Python goes on.",
            why="`torch.mps.synchronize()` waits for it.",
        ),
        "GP33": mistake(
            patch(
                "start = time.perf_counter",
                "start = time.process_time",
                "append(time.perf_counter",
                "append(time.process_time",
            ),
            says="Processor time was measured; the time that passes is expected.",
            why="""`time.process_time` counts what this process computes, over all threads: while a GPU works the processor may rest, and
            nothing is counted. `time.perf_counter` counts what passes.""",
        ),
        "GP34": mistake(
            patch("statistics.median(seconds)", "seconds[len(seconds) // 2]"),
            says="The readings were not sorted: the middle of an unsorted list is no median.",
            why="The median is the middle in order of size.",
        ),
        "GP35": mistake(
            patch("start = time", "fn()\n        start = time"),
            says="fn runs twice for each reading; it should be called warmup + repeats times in all.",
            why="A call before each reading is a warm-up that nobody asked for, and doubles the time of the measurement.",
        ),
        "GP61": mistake(
            patch("statistics.median", "max"),
            says="The longest reading was returned; the median is expected.",
            why="The longest reading is the one that something else disturbed most.",
        ),
        "GP62": mistake(
            patch("range(repeats)", "range(repeats - warmup)"),
            patch(
                "range(repeats)",
                "range(repeats - warmup)",
                "statistics.median(seconds)",
                "sorted(seconds)[len(seconds) // 2]",
            ),
            says="The warm-up calls were taken off the readings; `repeats` readings are asked for besides the warm-up.",
            why="fn is called warmup + repeats times in all. With more of a warm-up than repeats no reading would be left.",
        ),
        "GP67": mistake(
            patch("range(warmup)", "range(1, warmup)"),
            patch("range(warmup)", "range(warmup + 1)"),
            says="There is one warm-up call too few, or one too many: fn should be called `warmup` times before the first reading.",
            why="`range(1, n)` has n − 1 numbers, `range(n)` has n. In all, fn is called warmup + repeats times.",
        ),
        "GP63": mistake(
            patch("'cuda': lambda: torch.cuda.synchronize(device), ", ""),
            says="CUDA is not waited for: its GPU works while Python goes on.",
            why="`torch.cuda.synchronize(device)` waits for it; `torch.mps.synchronize()` waits for Apple's GPU only.",
        ),
    }
