"""Lesson 11's stopwatch on a clock that cannot be pretended: it is judged while time passes."""

from __future__ import annotations

from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import from_cells

OUT_OF_REACH = """
clock = iter(time.perf_counter, None)
def time_ms(fn, device, warmup=3, repeats=10):
    wait = {{"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}}.get(torch.device(device).type, lambda: None)
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(repeats):
        wait(); start = next(clock); fn(); wait(); times.append(next(clock) - start)
    return 1000 * statistics.{what}(times)
"""


def verdict(what: str):
    return judge(open_course().exercise("time_ms"), from_cells("time_ms", OUT_OF_REACH.format(what=what)))


def test_the_median_passes_and_the_mean_does_not():
    # Other programs may take the processor in the midst of a call: of five tries one is quiet.
    assert any(verdict("median").passed for _ in range(5))
    assert not verdict("mean").passed
