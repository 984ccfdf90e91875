"""Lesson 19: ranks that wait for each other, that raise, that never end, and what is seen of what they do in their threads."""

from __future__ import annotations

import _thread
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.judging import mistake_runs
from grader.judging.baseline import baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.worker import watch
from grader.worker.observe import failure_from, observe
from tests.conftest import heed_interrupts
from tests.live import from_cells

RING = references.solution_text(open_course(), "ring_attention")
HEADS = references.solution_text(open_course(), "tensor_parallel_attention")
SEND = "            k, v = exchange((k, v))\n"
SDPA = "getattr(torch._C._nn, 'scaled_dot_' + 'product_attention')"


def judged(text: str, name: str = "ring_attention"):
    """The verdict; no thread is left behind."""
    before = threading.active_count()
    verdict = judge(open_course().exercise(name), from_cells(name, text))
    assert threading.active_count() == before
    return verdict


def seen_running(text: str, name: str):
    """The verdict on what runs; the source is not looked at."""
    return judge(open_course().exercise(name), LiveObject(from_cells(name, text).obj))


def with_lines(*lines: str) -> str:
    """The ring with these lines in its loop, before an exchange."""
    assert RING.count(SEND) == 1
    return RING.replace(SEND, "".join(f"            {line}\n" for line in lines) + SEND)


@pytest.mark.parametrize(
    "text, said",
    [
        (
            with_lines("if rank == 0:", "    continue"),
            "rank 0 never called exchange, rank 1 called it once; with 2 ranks it should be once.",
        ),
        (
            RING.replace("        source =", "        if causal and rank < step:\n            break\n        source ="),
            "rank 0 called exchange once, ranks 1 and 2 called it twice; with 3 ranks it should be twice.",
        ),
        (
            with_lines(
                "if rank == 0:",
                "    continue",
                "try:",
                "    exchange((k, v))",
                "except BaseException:",
                "    raise ValueError",
            ),
            "rank 0 never called exchange, rank 1 called it once; with 2 ranks it should be once.",
        ),
        (
            with_lines("if rank == 0:", "    continue", "try:", "    exchange((k, v))", "except:", "    break"),
            "rank 0 never called exchange, rank 1 called it once; with 2 ranks it should be once.",
        ),
    ],
)
def test_ranks_that_wait_forever_are_told_who_called_what_how_often(text, said):
    judged(RING)  # the reference has run
    started = time.perf_counter()
    verdict = judged(text)
    assert verdict.headline == (
        f"Expected: every rank calls exchange world_size − 1 times. Ranks wait for one another forever: {said}"
    )
    assert not any("exchange" in claim for claim in verdict.verified)
    assert time.perf_counter() - started < 10  # on a machine that does much else; alone it takes less than one


def test_a_rank_that_raises_is_the_verdict_and_the_others_are_let_go():
    verdict = judged(with_lines("if rank == 1:", "    k = k @ k"))
    assert verdict.status == "error" and verdict.line.text == "k = k @ k", verdict.headline


def test_an_answer_that_catches_everything_cannot_hold_the_ranks():
    verdict = judged(
        with_lines(
            "while rank == 0:", "    try:", "        exchange((k,))", "        break", "    except:", "        break"
        )
    )
    assert verdict.headline == (
        "In call 1 of exchange, rank 0 gave 1 and rank 1 gave 2 tensors; it has to be as many on every rank."
    )


@pytest.mark.parametrize(
    "sent, said",
    [
        ("k", "Rank 0 gave exchange an object of type Tensor; it takes a tuple of tensors, as in exchange((k, v))."),
        ("k, v", "Rank 0 called exchange with 2 arguments; it takes one, a tuple of tensors, as in exchange((k, v))."),
        (
            "chunk=(k, v)",
            "Rank 0 called exchange with 1 argument, chunk by name; it takes one, a tuple of tensors, as in exchange((k, v)).",
        ),
        ("(k, v, rank)", "Rank 0 gave exchange a tuple with an object of type int; it sends tensors."),
        (
            "(k, v, v)[:2 + rank]",
            "In call 1 of exchange, rank 0 gave 2 and rank 1 gave 3 tensors; it has to be as many on every rank.",
        ),
        (
            "(k[..., rank:], v)",
            "In call 1 of exchange, rank 0 gave a tensor of shape (1, 1, 1, 2) and type float32, and rank 1 one of shape (1, 1, 1, 1) and "
            "type float32; they have to be alike on every rank.",
        ),
    ],
)
def test_what_no_collective_could_do_is_told(sent, said):
    assert judged(RING.replace("exchange((k, v))", f"exchange({sent})")).headline == said


def test_all_reduce_has_no_other_operation():
    verdict = judged(HEADS.replace("all_reduce(partial)", "all_reduce(partial, op='sum')"), "tensor_parallel_attention")
    assert verdict.headline == (
        "Rank 0 called all_reduce with 2 arguments, op by name; it takes one, a tensor, and always returns the sum."
    )


def test_a_call_without_end_is_stopped():
    verdict = judged(with_lines("while True:", "    k, v = exchange((k, v))"))
    assert "A rank called exchange without end and was stopped: rank 0 called exchange 17 times" in verdict.headline


@pytest.mark.parametrize(
    "setup, line",
    [
        ("import threading\nbarrier = threading.Barrier(2)", "barrier.wait()"),
        ("import threading\nlock = threading.Lock()\nlock.acquire()", "lock.acquire()"),
        ("import queue\nbox = queue.Queue()", "box.get()"),
        ("import time", "while True: time.sleep(0.01)"),
    ],
)
def test_a_rank_that_waits_for_something_else_is_told_within_two_seconds(setup, line):
    judged(RING)
    started = time.perf_counter()
    verdict = judge(open_course().exercise("ring_attention"), from_cells("ring_attention", setup, with_lines(line)))
    assert verdict.headline == (
        f"Rank 0 stands still in the line `{line}`: it waits for something else than exchange. What ranks have to tell one another goes "
        "through exchange; nothing else should make them wait."
    )
    assert time.perf_counter() - started < 10  # on a machine that does much else; alone it takes little more than one
    assert judge(open_course().exercise("ring_attention"), from_cells("ring_attention", RING)).passed


def test_a_process_ends_although_ranks_are_blocked_in_it():
    text = (
        "import threading\nfrom tests.attention.test_several_devices import *\n"
        "barrier = 'import threading', 'barrier = threading.Barrier(2)', with_lines('barrier.wait()')\n"
        "print(judge(open_course().exercise('ring_attention'), from_cells('ring_attention', *barrier)).status)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("failed\n", 0), done.stderr


def test_a_computation_is_not_taken_for_standing_still(monkeypatch):
    (ring,) = (module for name, module in sys.modules.items() if name.endswith("19_several_devices.probes"))
    monkeypatch.setattr(ring, "BLOCKED_S", 0.1)
    slow = with_lines("end = time.perf_counter() + 0.3", "while time.perf_counter() < end:", "    pass")
    run = from_cells("ring_attention", "import time", slow)
    assert not observe(run.obj, baseline_of(open_course().exercise("ring_attention"), SEED).cases[0]).failure


@pytest.mark.parametrize("loop", ["pass", "time.sleep(60)"])
@pytest.mark.parametrize("where", ["rank == 0", "rank == 1"])
def test_an_interrupt_ends_a_check_while_a_rank_runs_without_end(where, loop):
    text = with_lines(f"if {where}:", "    begun.set()", f"    while True: {loop}")
    candidate, before = (
        from_cells("ring_attention", "import threading, time", "begun = threading.Event()", text),
        threading.active_count(),
    )

    def interrupt():
        candidate.obj.__globals__["begun"].wait()
        _thread.interrupt_main()

    judged(RING)
    handler = signal.getsignal(signal.SIGINT)
    heed_interrupts()
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt) as stop:
        judge(open_course().exercise("ring_attention"), candidate)
    interrupter.join()
    signal.signal(signal.SIGINT, handler)
    assert time.perf_counter() - started < 20
    if loop == "pass":  # a rank that sleeps is left to itself
        assert failure_from(stop.value).line == "while True: pass" and threading.active_count() == before


@pytest.mark.parametrize(
    "name, text",
    [
        ("ring_attention", with_lines("if rank == 1:", f"    {SDPA}(q, k, v)")),
        ("tensor_parallel_attention", HEADS.replace("    partial =", f"    {SDPA}(q, k, v)\n    partial =")),
    ],
)
def test_a_ready_made_operator_is_seen_in_the_threads_of_ranks(name, text):
    verdict = seen_running(text, name)
    assert verdict.status == "forbidden"
    assert verdict.headline.startswith("While it ran, `scaled_dot_product_attention` was called")


def test_gathered_keys_are_seen_in_the_last_rank_alone():
    lines = (
        "own = k if step == 1 else own",
        "if rank == world_size - 1 and step == 2:",
        "    torch.cat((own, k), dim=2)",
    )
    verdict = judged(with_lines(*lines))
    assert verdict.headline == (
        "Expected: no tensor holds keys of more than one chunk. A tensor was made with keys or values of several of the 4 ranks, or with "
        "the shape of scores or of a mask for the keys of all 8 tokens. One rank has 2 tokens."
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("torch.cat([k.mT[..., :1] * 0] * 4, dim=-1)",),  # of another shape than scores for all tokens
        ("torch.empty(4, *k.shape)", "torch.cat([q] * 4, dim=2)"),  # no keys
    ],
)
def test_what_is_as_large_as_all_keys_may_hold_something_else(lines):
    assert judged(with_lines(*lines)).passed


@pytest.mark.parametrize(
    "line",
    [
        "room[:, :, step * k.shape[2] : (step + 1) * k.shape[2]] = k",  # returns nothing
        "torch.ops.aten.cat([own, k], 2)",
        "torch.cat((own, k), dim=2, out=room)",
    ],
)
def test_gathered_keys_are_seen_however_they_were_put_together(line):
    lines = (
        "own = k if step == 1 else own",
        "room = k.new_zeros(*k.shape[:2], world_size * k.shape[2], k.shape[3]) if step == 1 else room",
    )
    ring = with_lines(*lines, line).replace("    for step in", "    own = room = k\n    for step in")
    assert "no tensor holds keys of more than one chunk" in judged(ring).headline


def test_of_a_mistake_that_costly_cases_alone_show_few_are_run_on_these(monkeypatch):
    exercise = open_course().exercise("ring_attention")
    text = with_lines("kept = kept + [(k, v)]").replace("    for step in", "    kept = []\n    for step in")
    baseline_of.cache_clear()
    runs = []
    monkeypatch.setattr(
        mistake_runs, "observe", lambda obj, case, **how: runs.append(case.key) or observe(obj, case, **how)
    )
    assert judge(exercise, from_cells("ring_attention", text)).mistakes == ("RA13",)
    assert sum(key.startswith("chunks") for key in runs) < len(exercise.mistakes) / 3


def test_a_sum_that_goes_through_a_variable_of_all_ranks_lacks_what_other_machines_add():
    lines = "shared.append(partial)\n    all_reduce(partial)\n    return sum(shared[-(x.shape[-1] // proj_shard.shape[1]):])"
    verdict = judged("shared = []\n" + HEADS.replace("return all_reduce(partial)", lines), "tensor_parallel_attention")
    assert verdict.case == "elsewhere" and verdict.mistakes == ("TA17",)


def test_what_was_sent_may_change_afterwards_and_what_came_is_the_receivers_own():
    lines = (
        "sent = (k.clone(), v.clone())",
        "k, v = exchange(sent)",
        "for one in sent: one.zero_()",
        "k += 0",
        "v += 0",
    )
    assert judged(with_lines(*lines).replace("v += 0\n" + SEND, "v += 0\n")).passed


def test_random_numbers_what_is_printed_and_warnings_are_kept_from_the_notebook(capsys):
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    noisy = with_lines(
        "print('rank', rank)", "import warnings, random; random.random(); torch.rand(3)", "warnings.warn('slow')"
    )
    verdict = judged(noisy.replace("return o / l", "return 2 * o / l"))
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
    assert verdict.printed.startswith("rank 0\nrank 1\n") and "slow" in verdict.warned[0]
    assert capsys.readouterr() == ("", "")


def test_torch_keeps_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        judged(RING)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_thread_of_the_graders_own_leaves_torchs_modes_before_it_ends():
    """Left to its end, they abort a process that is just closing."""
    heights = []

    def act():
        torch.zeros(1)
        heights.append(torch._C._len_torch_dispatch_stack())
        watch.leave_thread()
        heights.append(torch._C._len_torch_dispatch_stack())

    with watch.watching(("attention",)):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
    assert heights == [1, 0]
