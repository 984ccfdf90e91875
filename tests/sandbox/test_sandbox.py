"""Worker processes: what they answer, what they may use, and that nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from grader.course.spec import Case
from grader.sandbox import usage
from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import Program
from grader.sandbox.sandbox import Candidate, Sandbox
from grader.sandbox.session import MAX_RESTARTS, SLOW_NOTE
from grader.sandbox.zygote import Zygote
from grader.source.definitions import defined_names
from grader.submission.plan import Plan, RunCell
from grader.worker import protocol
from grader.worker.values import Failure, Observation, Variable, describe

CASE = Case("small", "three numbers", (np.arange(3.0),), names=("x",))
ROOT = Path(__file__).resolve().parents[2]
MiB = 1 << 20


def plan(*texts: str, given: tuple[str, ...] = ()) -> Plan:
    """Cells that define f and g, run as the learner's after `given` ones of the course."""
    cells = tuple(RunCell(f"given cell {i}", text, False) for i, text in enumerate(given, 1))
    cells += tuple(RunCell(f"cell {i}", text, True) for i, text in enumerate(texts, 1))
    owners = {}
    for at, cell in enumerate(cells):
        owners.update({name: at for name in defined_names(cell.text) & {"f", "g"}})
    return Plan("01_toy", ("f", "g"), cells, owners)


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "spawned"])
def sandbox(request):
    if request.param and sys.platform != "linux":
        pytest.skip("a zygote needs Linux")
    # Without walls: what the process alone has to hold back, as on systems whose kernel has none.
    with Sandbox(timeout_s=1.5, memory_bytes=200 * MiB, fork=request.param, walls=False) as made:
        yield made


@pytest.fixture(scope="module")
def roomy():
    """One with more memory, also without walls."""
    with Sandbox(timeout_s=6.0, memory_bytes=400 * MiB, walls=False) as made:
        yield made


@pytest.fixture(scope="module")
def quick():
    """One sandbox of this system's own kind, for what does not depend on how a worker starts."""
    with Sandbox(timeout_s=1.5, memory_bytes=200 * MiB) as made:
        yield made


def gone(pid: int, within_s: float = 60.0) -> bool:
    """Whether a process ends; a zombie that only its new parent can reap has. within_s: what a busy machine may take."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.Error:
            return True
        time.sleep(0.05)
    return False


def observation_of(candidate: Candidate, case: Case) -> Observation:
    """What a single case shows."""
    return candidate.observe_all((case,))[-1]


def seen(sandbox: Sandbox, name: str, *texts: str, case: Case = CASE):
    """What one exercise shows: an array, or a failure."""
    candidate = sandbox.candidates(plan(*texts))[name]
    if candidate.problem is not None:
        return candidate.problem
    observation = observation_of(candidate, case)
    return observation.failure or observation.parts["result"].array


DOUBLE = "def f(x):\n    return 2 * x"


def test_a_function_is_called_with_the_case_s_inputs(sandbox):
    assert seen(sandbox, "f", DOUBLE).tolist() == [0, 2, 4]


def test_what_a_function_raises_comes_with_its_line(sandbox):
    failure = seen(sandbox, "f", "def f(x):\n    y = x[:2]\n    return y @ x")
    assert (failure.kind, failure.type, failure.line) == ("exception", "ValueError", "return y @ x")
    assert Variable("x", "(3,) float64", "array", (3,)) in failure.shapes
    pasted = seen(sandbox, "f", "def f(x):  # as\u2028pasted\n    return (\n        x @ x[:2])")
    assert pasted.line == "x @ x[:2])"


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("while True: pass", "timeout", "f did not finish within 0.75 s."),
        ("a = np.ones((300, 300))\n    while True: a = np.tanh(a @ a)", "timeout", "f did not finish within 0.75 s."),
        ("import time; time.sleep(60)", "timeout", "f did not finish within 0.75 s."),
        ("os._exit(0)", "died", "f ended the process (exit status 0)."),
        ("os.kill(os.getpid(), 11)", "died", "f ended the process (signal SIGSEGV)."),
        ("return [0] * 10**9", "memory", ""),
        ("return np.ones(10**9)", "memory", "Unable to allocate"),
        ("held = []\n    while True: held.append(bytearray(10**6))", "memory", ""),
        ("raise SystemExit(0)", "exception", ""),
        ("raise KeyboardInterrupt", "exception", ""),
        ("return f(x)", "exception", "recursion"),
        ("raise NotImplementedError('f')", "not_started", ""),
        ("input()", "exception", ""),
    ],
)
def test_one_exercise_falls_and_the_other_stands(sandbox, monkeypatch, body, kind, says):
    if kind in ("memory", "timeout"):
        monkeypatch.setattr(
            sandbox, "timeout_s", 20.0 if kind == "memory" else 0.75
        )  # a busy machine hands out pages slowly
    candidates = sandbox.candidates(
        plan("import os\nimport numpy as np", f"def f(x):\n    {body}", "def g(x):\n    return x + 1")
    )
    failure = observation_of(candidates["f"], CASE).failure
    assert failure.kind == kind and says in failure.message
    assert observation_of(candidates["g"], CASE).parts["result"].array.tolist() == [1, 2, 3]
    if kind in ("timeout", "died"):
        worker = sandbox._session._worker
        assert observation_of(candidates["f"], CASE).failure == failure  # from memory, and no second process
        assert sandbox._session._worker is worker


def test_memory_of_several_processes_is_added_up(sandbox, monkeypatch):
    text = (
        "import mmap, os, time\n"
        "def f(x):\n"
        "    for i in range(4):\n"
        "        if os.fork() == 0:\n"
        "            os.setsid()\n"
        "            m = mmap.mmap(-1, 80 << 20)\n"
        "            for at in range(0, len(m), 4096): m[at] = 1\n"
        "            time.sleep(60)\n"
        "    time.sleep(60)"
    )
    monkeypatch.setattr(sandbox, "timeout_s", 20.0)
    assert seen(sandbox, "f", text).kind == "memory"


def test_children_that_leave_the_group_end_with_the_worker(sandbox, tmp_path):
    text = (
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        f"            open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "            time.sleep(60)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    time.sleep(0.3)\n"
        "    return x"
    )
    assert seen(sandbox, "f", text).tolist() == [0, 1, 2]
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    sandbox.candidates(plan(DOUBLE))  # closes the notebook before
    assert gone(pid)


def test_a_child_that_returns_from_the_function_answers_nothing(sandbox):
    candidates = sandbox.candidates(plan("import os\ndef f(x):\n    os.fork()\n    return x", "def g(x): return x"))
    for name in ("f", "g", "f", "g"):
        assert observation_of(candidates[name], CASE).failure is None


def test_what_an_exercise_returns_is_limited_in_all(quick, monkeypatch):
    monkeypatch.setattr("grader.sandbox.session.MAX_REPLY_BYTES", 1_000_000)
    candidates = quick.candidates(
        plan("import numpy as np\ndef f(x): return np.zeros(30_000)", DOUBLE.replace("f(", "g("))
    )
    seen = candidates["f"].observe_all([CASE] * 40)
    assert [one.failure for one in seen[:-1]] == [None] * 4 and seen[-1].failure.kind == "invalid"
    assert "returned more than" in seen[-1].failure.message
    assert observation_of(candidates["g"], CASE).parts["result"].array.tolist() == [0, 2, 4]


NAPS = "import time\ndef f(x):\n    time.sleep({})\n    return x"


@pytest.mark.parametrize(
    "busy, nap_s, kind",
    [(0.0, 1.6, "timeout"), (0.6, 1.6, None), (0.6, 60, "timeout"), (1.0, 1.0, None), (1.0, 60, "timeout")],
)
def test_time_for_which_the_machine_had_no_processor_is_not_the_exercise_s(quick, monkeypatch, busy, nap_s, kind):
    """busy: this part of the time others have the processors; where that is all of it, a limit still ends three times as late."""
    began = time.monotonic()
    monkeypatch.setattr(usage, "clocks_s", lambda pid: (busy * (time.monotonic() - began), 0.0))
    monkeypatch.setattr(quick, "timeout_s", 1.0)
    failure = observation_of(quick.candidates(plan(NAPS.format(nap_s)))["f"], CASE).failure
    assert (failure and failure.kind) == kind
    assert kind is None or time.monotonic() - began < 8


def test_cases_share_the_seconds_of_their_exercise_and_not_those_of_others(quick, monkeypatch):
    monkeypatch.setattr(quick, "timeout_s", 1.0)
    candidates = quick.candidates(plan(NAPS.format(0.4), "def g(x):\n    time.sleep(0.4)\n    return x"))
    assert [observation_of(candidates[name], CASE).failure for name in "fgfg"] == [None] * 4
    assert [observation_of(candidates[name], CASE).failure.kind for name in "fg"] == ["timeout"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_a_process_that_waits_for_a_processor_is_seen_to_wait():
    spin = "import os, time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    both = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
    try:
        end = time.monotonic() + 30
        while not all(usage.clocks_s(one.pid)[0] > 0.1 for one in both) and time.monotonic() < end:
            time.sleep(0.1)
        assert all(usage.clocks_s(one.pid)[0] > 0.1 for one in both)
    finally:
        for one in both:
            one.kill()
            one.wait()
    assert usage.clocks_s(both[0].pid)[0] == 0


CROWDED = """
import hashlib, os, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def burn(end=time.monotonic() + 60, block=bytes(1 << 22)):
    while time.monotonic() < end: hashlib.sha256(block).digest()
for _ in range(3): threading.Thread(target=burn, daemon=True).start()
burn()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_threads_of_one_s_own_are_no_other_programs():
    """Four of them on one processor, with the interpreter's lock open: the main one waits three quarters of its time, for its own."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", CROWDED])
    try:
        while usage.clocks_s(process.pid)[1] < 1 and time.monotonic() - began < 30:
            time.sleep(0.05)
        (waited_s, threads_s), used = usage.clocks_s(process.pid), psutil.Process(process.pid).cpu_times()
        elsewhere_s = (
            time.monotonic() - began - used.user - used.system
        )  # others had the processor for this long at most
        assert waited_s > 0.5 and threads_s >= 1 and waited_s - threads_s <= elsewhere_s + 0.1
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_a_limit_is_not_stretched_by_what_one_s_own_threads_use(quick, monkeypatch):
    began = time.monotonic()
    # The main thread waits for them all the time.
    monkeypatch.setattr(usage, "clocks_s", lambda pid: (time.monotonic() - began,) * 2)
    monkeypatch.setattr(quick, "timeout_s", 1.0)
    assert (
        observation_of(quick.candidates(plan(NAPS.format(2.0)))["f"], CASE).failure.message
        == "f did not finish within 1 s."
    )


def test_a_submission_has_a_limit_for_all_that_it_runs(quick, monkeypatch):
    """Whatever its exercises and cells may take; what was not tried is told, and the next learner has all the time again."""
    monkeypatch.setattr("grader.sandbox.sandbox.MORE_EXERCISES", -1)
    monkeypatch.setattr(quick, "timeout_s", 0.6)
    quick.begin_submission(2)  # 0.6 s
    candidates = quick.candidates(plan("def f(x):\n    while True: pass", "def g(x): return x"))
    assert observation_of(candidates["f"], CASE).failure.message == "f did not finish within 0.6 s."
    said = "g was not tried, because what ran before it used up the 0.6 s that this submission may take in all."
    assert [candidates["g"].problem, observation_of(candidates["g"], CASE).failure] == [
        Failure("timeout", message=said)
    ] * 2
    assert "may take 0.6 s in all" in quick.notes[-1]
    assert quick.candidates(plan(DOUBLE))["f"].problem.kind == "timeout"  # the same submission's next notebook
    quick.end_submission()
    assert observation_of(quick.candidates(plan(DOUBLE))["f"], CASE).failure is None and quick.notes == ()


def test_an_exercise_that_has_begun_keeps_its_time(quick):
    """Where the submission's ends between two of its messages."""
    quick.begin_submission(2)
    quick.budget.seconds = 0.2
    candidates = quick.candidates(plan(NAPS.format(0.02), "def g(x): return x"))
    assert [one.failure for one in candidates["f"].observe_all([CASE] * 40)] == [None] * 40
    assert quick.budget.is_over and observation_of(candidates["g"], CASE).failure.kind == "timeout"
    quick.end_submission()


def test_cells_use_up_the_time_of_their_submission_too(quick, monkeypatch):
    quick.begin_submission(2)
    quick.budget.seconds = 0.5
    candidates = quick.candidates(plan(*["import time; time.sleep(0.3)"] * 3, "def g(x): return x", DOUBLE))
    assert (
        "Cell 4, which defines g, was not run, because what ran before it used up the 0.5 s"
        in candidates["g"].problem.message
    )
    quick.end_submission()


# --- from one notebook to the next ------------------------------------------------------------------

WHO = "import os\ndef f(x):\n    return os.getpid()"


def process_of(sandbox: Sandbox, *texts: str) -> int:
    """The process in which f ran."""
    return int(observation_of(sandbox.candidates(plan(WHO, *texts))["f"], CASE).parts["result"].array)


@pytest.mark.parametrize("refuses", ["socket.socketpair", "subprocess.Popen"])
def test_a_machine_with_no_room_for_a_worker_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch, refuses):
    def refuse(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox(fork=False) as sandbox, monkeypatch.context() as patch, pytest.raises(SandboxError) as error:
        patch.setattr(refuses, refuse)
        sandbox.start()
    assert "a worker could not be prepared: [Errno 11]" in str(error.value) and not list(tmp_path.iterdir())


def test_what_the_guard_itself_cannot_do_costs_one_exercise(quick, monkeypatch):
    candidates = quick.candidates(plan(DOUBLE, "def g(x):\n    import time\n    time.sleep(1)\n    return x"))
    assert candidates["f"].problem is None

    def fail(*arguments):
        raise RuntimeError("not ours to see")

    with monkeypatch.context() as patch, pytest.raises(SandboxError, match="what a worker uses could not be looked at"):
        patch.setattr(usage, "find_excess", fail)
        observation_of(candidates["g"], CASE)
    assert observation_of(candidates["f"], CASE).failure is None and quick.notes == ()


def test_every_notebook_has_a_worker_of_its_own(sandbox):
    first = process_of(sandbox, "kept = 1")
    assert observation_of(sandbox.candidates(plan("def f(x): return kept"))["f"], CASE).failure.type == "NameError"
    assert process_of(sandbox) != first and gone(first)


@pytest.mark.parametrize(
    "cell",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "import _thread, time; _thread.start_new_thread(time.sleep, (9,)); time.sleep(0.2)",
        "open('note.txt', 'w').write('for later')",
        "import os; os.chdir('/')",
        "import os, time\nif os.fork() == 0:\n    time.sleep(9)\n    os._exit(0)",
    ],
)
def test_what_a_notebook_leaves_behind_ends_with_its_worker(roomy, cell):
    first = process_of(roomy, cell)
    folder = roomy._session._worker.folder
    assert process_of(roomy) != first
    assert gone(first) and not os.path.exists(folder)


def test_each_notebook_begins_as_if_it_were_the_first(sandbox):
    drawn = "import random, numpy as np\ndrawn = [random.random(), np.random.rand()]\nprint('x' * 2 * 10**6)\ndef f(x):\n    return drawn"
    first = drawn_by(sandbox, drawn)
    assert sandbox.notes and process_of(sandbox) and not sandbox.notes
    assert drawn_by(sandbox, drawn) == first


def drawn_by(sandbox: Sandbox, text: str) -> list[float]:
    part = observation_of(sandbox.candidates(plan(text))["f"], CASE).parts["result"]
    return [float(item.array) for item in part.items]


# --- cells ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        ("import os; os._exit(3)", "died", "Cell 2, which defines g, ended the process (exit status 3)."),
        ("while True: pass", "timeout", "Cell 2, which defines g, did not finish within 0.75 s."),
        ("raise ValueError('no')", "exception", "no"),
        ("import sys; sys.exit(0)", "exception", "0"),
        ("raise KeyboardInterrupt('stop')", "exception", "stop"),
        ("1 +", "exception", "invalid syntax"),
    ],
)
def test_a_cell_that_falls_takes_only_its_own_exercise(sandbox, monkeypatch, line, kind, says):
    if kind == "timeout":
        monkeypatch.setattr(sandbox, "timeout_s", 0.75)
    candidates = sandbox.candidates(plan(DOUBLE, f"{line}\ndef g(x):\n    return x", "h = 1"))
    problem = candidates["g"].problem
    assert problem.kind == kind and says in problem.message
    assert candidates["f"].problem is None
    assert observation_of(candidates["f"], CASE).parts["result"].array.tolist() == [0, 2, 4]


def test_a_name_that_was_bound_before_its_cell_failed_counts(quick):
    assert seen(quick, "f", f"{DOUBLE}\nassert f(1) == 3").tolist() == [0, 2, 4]


def test_the_last_definition_counts_even_when_its_cell_fails(quick):
    assert seen(quick, "f", DOUBLE, "raise ValueError('later')\ndef f(x): return x").message == "later"


def test_a_name_that_only_running_reveals_is_found(quick):
    assert seen(quick, "f", "globals()['f'] = lambda x: x + 5").tolist() == [5, 6, 7]


def test_a_name_that_nothing_defines_is_missing(quick):
    assert seen(quick, "g", DOUBLE).kind == "missing"
    assert seen(quick, "g", "if False:\n    g = 1").kind == "missing"


def test_cells_run_as_in_a_kernel(quick):
    text = (
        "import inspect\n"
        "if __name__ == '__main__':\n"
        "    display(get_ipython().run_line_magic('x', 'y'))\n"
        "def f(x):\n"
        "    return inspect.getsource(f)\n"
    )
    observation = observation_of(quick.candidates(plan(text))["f"], CASE)
    assert observation.parts["result"].text.startswith("def f(x):")


def test_check_and_figures_are_harmless_in_a_worker(quick):
    text = (
        "from grader import check, explain, figures, hint, passed, progress, solution\n"
        "from grader.figures import matrix\n"
        "import grader.figures.mixing as drawn\n"
        "fig, axes = figures.panels(2)\n"
        "matrix([[1]], 'x', ax=axes[0]).set_title('t')\n"
        "figures.show(fig, alt='x'); drawn.anything(1)[2].x = 3\n"
        "def f(x):\n"
        "    return x if not (check(f) or passed(f) or hint(f) or progress()) else None\n"
    )
    assert seen(quick, "f", text).tolist() == [0, 1, 2]


def test_the_course_is_not_importable(sandbox):
    modules = "grader.course grader.course.lessons.library grader.course.spec solutions grader.worker".split()
    cells = [f"import {module}\ndef {name}(x): return x" for module, name in zip(modules, "abcde", strict=True)]
    cells = tuple(RunCell(f"cell {i}", text, True) for i, text in enumerate(cells, 1))
    candidates = sandbox.candidates(Plan("01_toy", tuple("abcde"), cells, dict(zip("abcde", range(5), strict=True))))
    for name in "abcde":
        failure = candidates[name].problem
        assert failure.type == "ModuleNotFoundError" and "closed while a notebook is graded" in failure.message


def test_a_worker_inherits_nothing(sandbox, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "secret")
    text = (
        "import os, sys\n"
        "def f(x):\n"
        "    files = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "    return '|'.join([*os.environ, *sys.path, *sys.argv[1:], os.getcwd(), *files])"
    )
    said = observation_of(sandbox.candidates(plan(text))["f"], CASE).parts["result"].text
    assert "API_TOKEN" not in said and str(ROOT) not in said.replace(sys.prefix, "")
    assert "attention-" in said


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_worker_has_no_capabilities_but_to_read(sandbox):
    text = (
        "import ctypes, struct\n"
        "def f(x):\n"
        "    head, sets = struct.pack('=Ii', 0x20080522, 0), ctypes.create_string_buffer(24)\n"
        "    libc = ctypes.CDLL(None)\n"
        "    assert libc.capget(head, sets) == 0 and libc.capset(head, struct.pack('=6I', 5, 5, 0, 0, 0, 0)) != 0\n"
        "    return ' '.join(map(str, struct.unpack('=6I', sets)))"
    )
    held = observation_of(sandbox.candidates(plan(text))["f"], CASE)
    assert held.failure is None and held.parts["result"].text in ("4 4 0 0 0 0", "0 0 0 0 0 0")


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root reads what is closed")
def test_root_s_worker_still_reads_what_another_user_has_closed(sandbox, tmp_path):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "module.py").write_text("two = 2")
    for path, mode in ((tmp_path / "closed" / "module.py", 0o600), (tmp_path / "closed", 0o700)):
        os.chmod(path, mode)
        os.chown(path, 65534, 65534)
    text = (
        f"import sys\nsys.path.append({str(tmp_path / 'closed')!r})\nfrom module import two\ndef f(x): return two * x"
    )
    assert seen(sandbox, "f", text).tolist() == [0, 2, 4]


def test_the_lesson_s_own_cells_failing_is_the_grader_s_fault(quick):
    candidate = quick.candidates(plan(DOUBLE, given=("import no_such_library",)))["f"]
    with pytest.raises(SandboxError, match="no_such_library"):
        _ = candidate.problem
    assert seen(quick, "f", DOUBLE).tolist() == [0, 2, 4]


def test_ten_thousand_cells_that_end_the_process_come_to_an_end(quick):
    candidates = quick.candidates(plan(DOUBLE, *(["import os; os._exit(0)"] * 10_000), "def g(x): return x"))
    assert observation_of(candidates["f"], CASE).parts["result"].array.tolist() == [0, 2, 4]
    problem = candidates["g"].problem
    assert problem.kind == "died" and problem.message.endswith(
        f"because {MAX_RESTARTS + 1} other cells ended the process."
    )


def test_a_thousand_harmless_cells(quick):
    assert seen(quick, "f", *(f"x{i} = {i}" for i in range(1000)), DOUBLE).tolist() == [0, 2, 4]


def test_cells_together_have_a_limit(quick, monkeypatch):
    monkeypatch.setattr("grader.sandbox.session.CELLS_TIMES", 0.5)
    candidates = quick.candidates(plan(*["import time; time.sleep(0.3)"] * 5, "h = 1", "def g(x): return x + h"))
    assert candidates["g"].problem is None  # what defines an exercise runs nevertheless
    assert observation_of(candidates["g"], CASE).failure.message == "name 'h' is not defined"
    (note,) = quick._session.notes
    assert note.startswith(SLOW_NOTE.partition("{")[0]) and note.endswith("5, 6.")


def test_what_ran_in_time_runs_again_after_a_later_cell_fell(quick, monkeypatch):
    monkeypatch.setattr("grader.sandbox.session.CELLS_TIMES", 0.5)
    end = "import os; os._exit(0)"
    cells = [DOUBLE, *["import time; time.sleep(0.3)"] * 3, "def g(x): return h", end]
    candidates = quick.candidates(plan(*cells))
    for _ in range(2):
        assert candidates["f"].problem is None and observation_of(candidates["f"], CASE).parts[
            "result"
        ].array.tolist() == [0, 2, 4]
        assert candidates["g"].problem is None
        quick._session.close()
    candidates = quick.candidates(
        plan("def g(x): return 3", *["import time; time.sleep(0.3)"] * 3, end, given=("x = 1",))
    )
    assert observation_of(candidates["g"], CASE).failure is None


def test_cells_run_again_within_the_time_of_their_submission(quick):
    quick.begin_submission(2)
    quick.budget.seconds = 0.8
    candidates = quick.candidates(plan("import time; time.sleep(0.5)", "import os; os._exit(0)", "def g(x): return x"))
    assert (
        "Cell 3, which defines g, was not run, because what ran before it used up the 0.8 s"
        in candidates["g"].problem.message
    )
    quick.end_submission()


def test_a_cell_may_await_as_in_a_kernel(sandbox):
    texts = (
        "import asyncio\nasync def later(y):\n    await asyncio.sleep(0.01)\n    return y\ntask = asyncio.create_task(later(2))",
        "import asyncio\nasync def later(y):\n    await asyncio.sleep(0.01)\n    return y\n"
        "await later(0)\ntask = asyncio.create_task(later(2))",
        "factor = await task\nones = [one async for one in (await later(i) for i in (1, 1, 1))]\n"
        "def f(x):\n    return factor * x + ones",
    )
    candidates = sandbox.candidates(plan(*texts, "y = x\nawait later(3)\ndef g(x): return x"))
    assert observation_of(candidates["f"], CASE).parts["result"].array.tolist() == [1, 3, 5]
    assert (candidates["g"].problem.type, candidates["g"].problem.line) == ("NameError", "y = x")


def test_an_endless_await_is_a_timeout(quick):
    assert seen(quick, "g", DOUBLE, "import asyncio\nawait asyncio.sleep(60)\ndef g(x): return x").kind == "timeout"


def test_future_imports_hold_for_the_cells_below(quick):
    later = "def f(x: Missing) -> Missing:\n    return x"
    assert seen(quick, "f", "from __future__ import annotations", "y = 1", later).tolist() == [0, 1, 2]
    assert seen(quick, "f", later).type == "NameError"


# --- attacks on the channel -----------------------------------------------------------------------


def test_garbage_on_every_descriptor_costs_only_its_own_cell(sandbox):
    text = "import os\nfor n in range(3, 1024):\n    try: os.write(n, b'x' * 100)\n    except OSError: pass\ndef g(x): return x"
    candidates = sandbox.candidates(plan(DOUBLE, text))
    assert candidates["g"].problem.kind == "invalid"
    assert observation_of(candidates["f"], CASE).parts["result"].array.tolist() == [0, 2, 4]


def test_a_reply_before_the_question_is_no_answer(quick):
    good = protocol.to_message(Observation({"result": describe(np.ones(3))}))
    text = (
        f"import os\nforged = {protocol.frame(protocol.body({'observation': good}))!r}\n"
        "def g(x):\n"
        "    for n in range(3, 1024):\n"
        "        try: os.write(n, forged)\n"
        "        except OSError: pass\n"
        "    return x"
    )
    candidates = quick.candidates(plan(DOUBLE, text))
    assert observation_of(candidates["g"], CASE).failure.kind == "invalid"
    assert observation_of(candidates["f"], CASE).failure is None


STALE = {"stale": True}
GOOD = {"observation": Observation({"result": describe(np.ones(3))})}


@pytest.mark.parametrize(
    "replies, shown",
    [
        ([GOOD, GOOD], [None, None]),
        ([STALE], [None, None]),  # a fresh one answers
        ([GOOD, STALE], [None, "invalid"]),
        ([{"stale": 1}], ["invalid"]),
        ([{"observation": 3}], ["invalid"]),
        ([{}], ["invalid"]),
    ],
)
def test_only_before_its_first_answer_may_a_worker_ask_to_be_replaced(quick, monkeypatch, replies, shown):
    candidates = quick.candidates(plan(DOUBLE, "def g(x):\n    return x"))
    assert candidates["f"].problem is None
    worker = candidates["f"].session._worker
    monkeypatch.setattr(worker, "replies", lambda request, count, timeout_s: map(protocol.body, replies))
    found = candidates["f"].observe_all((CASE, CASE))
    assert [one.failure and one.failure.kind for one in found] == shown
    assert observation_of(candidates["g"], CASE).failure is None


def test_closing_every_descriptor_costs_only_its_own_cell(quick):
    candidates = quick.candidates(plan(DOUBLE, "import os\nos.closerange(0, 250)\ndef g(x): return x"))
    assert candidates["g"].problem.kind == "died"
    assert observation_of(candidates["f"], CASE).failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
def test_a_zygote_that_was_killed_is_replaced():
    text = "import os, time\ndef f(x):\n    os.kill(os.getppid(), 9); time.sleep(5)"
    with Sandbox(timeout_s=1.5, memory_bytes=200 * MiB, walls=False) as open_one:
        candidates = open_one.candidates(plan(text, "def g(x): return x"))
        assert observation_of(candidates["f"], CASE).failure.kind == "died"
        assert observation_of(candidates["g"], CASE).failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
@pytest.mark.parametrize("libraries", ["plain", "torch"])
def test_a_rehearsal_goes_well_and_leaves_one_thread(libraries):
    code = (
        "import os, sys\n"
        "from grader.worker import warm\n"
        "if sys.argv[1] == 'torch': import torch; torch.set_num_threads(1)\n"
        "failed = warm.rehearse(sys.argv[1] == 'torch')\n"
        "print(failed, 'torch' in sys.modules, len(os.listdir('/proc/self/task')), 'sympy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, libraries],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    # sympy: 500 modules, which torch imports for some calls that can be done without
    assert done.stdout.split() == ["[]", str(libraries == "torch"), "1", "False"], done.stdout + done.stderr


@pytest.fixture
def shared(tmp_path):
    """Two sandboxes whose supervisors were forked from one zygote, and that zygote."""
    if sys.platform != "linux":
        pytest.skip("a zygote needs Linux")
    zygote = Zygote(Program(), str(tmp_path))
    made = [Sandbox(timeout_s=1.5, memory_bytes=200 * MiB, walls=False, zygote=zygote.channel) for _ in range(2)]
    yield zygote, *made
    for one in made:
        one.close()
    zygote.close()
    assert gone(zygote.process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
def test_a_zygote_removes_its_folder_when_whoever_started_it_is_gone(tmp_path):
    (tmp_path / "its").mkdir()
    zygote = Zygote(Program(), str(tmp_path / "its"))
    (tmp_path / "its" / "left.txt").write_text("by a sandbox")
    zygote.channel.control.close()
    assert gone(zygote.process.pid) and os.listdir(tmp_path) == []
    zygote.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
def test_a_worker_ends_with_its_zygote_by_the_kernel(patient):
    """While nobody asks it anything."""
    worker = patient.start()
    patient._forker.zygote.process.kill()
    assert gone(worker._pid)
    worker.close()


def test_supervisors_of_one_zygote_work_side_by_side(shared):
    zygote, *sandboxes = shared
    candidates = [one.candidates(plan(DOUBLE))["f"] for one in sandboxes]
    for _ in range(2):
        assert [observation_of(one, CASE).parts["result"].array.tolist() for one in candidates] == [[0, 2, 4]] * 2
    parted = zygote.process.children()
    assert len(parted) == 2 and all(len(one.children()) == 1 for one in parted)
    sandboxes[0].close()
    assert gone(parted[0].pid) or gone(parted[1].pid)
    assert len(zygote.process.children()) == 1
    assert observation_of(candidates[1], CASE).parts["result"].array.tolist() == [0, 2, 4]


def test_a_supervisor_that_was_killed_is_replaced_and_leaves_nothing(shared):
    zygote, one, other = shared
    kept = other.candidates(plan(DOUBLE))["f"]
    assert observation_of(kept, CASE).failure is None
    text = (
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True: time.sleep(1)\n"
        "    os.kill(os.getppid(), 9); time.sleep(5)"
    )
    candidates = one.candidates(plan(text, "def g(x): return x"))
    assert observation_of(candidates["f"], CASE).failure.kind == "died"
    assert observation_of(candidates["g"], CASE).failure is None
    assert observation_of(kept, CASE).failure is None
    end = time.monotonic() + 5
    while len(zygote.process.children(recursive=True)) > 4 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(zygote.process.children()) == 2 and len(zygote.process.children(recursive=True)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
def test_a_zygote_that_cannot_start_says_why(tmp_path, monkeypatch):
    (tmp_path / "start.py").write_text("raise ImportError('no NumPy here')")
    monkeypatch.setattr("grader.sandbox.process.START", tmp_path / "start.py")
    with Sandbox(timeout_s=1.0, fork=True) as made, pytest.raises(SandboxError, match="no NumPy here"):
        made.verify()


@pytest.mark.skipif(sys.platform != "linux", reason="a zygote needs Linux")
def test_a_sandbox_takes_torch_in_later(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asks = "def f(x):\n    import sys\n    return x + ('torch' in sys.modules)"
    with Sandbox(timeout_s=5.0) as made:
        for torch in (False, True):
            if torch:
                made.need_torch()
            assert seen(made, "f", asks).tolist() == [torch, torch + 1, torch + 2]
            if not torch:
                made._forker.zygote.close()
                assert seen(made, "f", asks).tolist() == [0, 1, 2]
        made._session.close()
        made._forker.zygote.process.kill()  # while it waits for nothing
        assert gone(made._forker.zygote.process.pid) and seen(made, "f", asks).tolist() == [1, 2, 3]
    assert os.listdir(tmp_path) == []


def test_without_its_zygote_a_sandbox_starts_one_of_its_own(shared):
    zygote, one, other = shared
    assert observation_of(one.candidates(plan(DOUBLE))["f"], CASE).failure is None
    zygote.process.kill()
    assert gone(zygote.process.pid)
    for sandbox in (one, other):
        assert observation_of(sandbox.candidates(plan(DOUBLE))["f"], CASE).failure is None


def test_a_flood_of_prints_is_no_timeout(quick):
    text = "def f(x):\n    for _ in range(200): print('x' * 1_000_000)\n    import os; os.write(1, b'y' * 10_000_000)\n    return x"
    assert seen(quick, "f", text + "\nprint('z' * 50_000_000)").tolist() == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_threads_that_go_on_use_up_the_processor_time(monkeypatch):
    monkeypatch.setattr(
        "grader.sandbox.sandbox.CPU_TIMES", 1 / 60
    )  # one second of the processor, where the clock allows sixty
    spin = "def spin():\n    while True: pass\nimport threading\nthreading.Thread(target=spin, daemon=True).start()\n"
    with Sandbox(timeout_s=60.0, memory_bytes=200 * MiB) as patient:
        candidates = patient.candidates(plan(spin + DOUBLE, "def g(x): return x"))
        assert candidates["f"].problem is None
        assert gone(patient._session._worker._pid)  # nothing is asked, and still it computes
        failure = observation_of(candidates["f"], CASE).failure
        assert failure.kind == "died" and "processor time" in failure.message
        assert observation_of(candidates["g"], CASE).failure is None


def test_a_file_may_not_grow_without_end(quick):
    text = "def f(x):\n    with open('big', 'wb') as file:\n        while True: file.write(bytes(10**7))"
    assert seen(quick, "f", text).type == "OSError"


@pytest.mark.parametrize(
    "way",
    [
        "import grader.worker.observe",
        "import sys; sys.modules['grader.worker']",
        "from grader.worker import protocol",
        "import grader.worker",
    ],
)
def test_the_worker_s_own_modules_are_not_to_be_had(quick, way):
    assert seen(quick, "f", f"def f(x):\n    {way}").type in ("ModuleNotFoundError", "KeyError")


FLOODS = {  # and what is said of it
    "large files": (
        "for i in range(6):\n        with open(f'big{i}', 'wb') as file: file.write(bytes(60 << 20))",
        "more than 256 MiB",
    ),
    "files without a name": (
        "held.extend(tempfile.TemporaryFile() for _ in range(6))\n    for one in held: one.write(bytes(60 << 20))",
        "more than 256 MiB",
    ),
    "many files": ("for i in range(600): os.close(os.open(str(i), os.O_CREAT))", "more than 500 files"),
    "deep folders": (
        "for _ in range(700): os.mkdir('deeper'); os.chdir('deeper')",
        "cannot be looked into (File name too long)",
    ),
}


@pytest.fixture(scope="module")
def patient():
    with Sandbox(timeout_s=20.0, memory_bytes=500 * MiB) as made:  # a busy machine writes slowly
        yield made


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of files without a name")
@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("where", ["exercise", "cell"])
def test_a_folder_may_not_be_filled_and_only_who_fills_it_falls(patient, monkeypatch, flood, where):
    if flood == "many files":
        monkeypatch.setattr(usage, "MAX_FILES", 500)  # hostile/test_limits.py makes more than are really allowed
    text, says = FLOODS[flood]
    text = f"import os, tempfile\nheld = []\ndef g(x):\n    {text}\n    return x" + "\ng(1)" * (where == "cell")
    candidates = patient.candidates(plan("def h(x): return x", text, DOUBLE))
    failure = candidates["g"].problem or observation_of(candidates["g"], CASE).failure
    assert failure.kind == "died" and "filled the notebook's folder" in failure.message and says in failure.message
    patient.end_submission()  # a cell's flood leaves its own learner no room
    assert observation_of(patient.candidates(plan(DOUBLE))["f"], CASE).parts["result"].array.tolist() == [0, 2, 4]


KEEPS = "import os\ndef f(x):\n    for i in range(9): open(f'big{i}', 'wb').write(bytes(25 << 20))\n    held = bytearray(300 << 20)\n"
KEEPS += "    held[::4096] = bytes(len(held) // 4096)\n    import time; time.sleep(0.3)\n    return x"


def test_what_a_worker_keeps_in_its_folder_is_no_memory(patient):
    """225 MiB of files and 300 MiB of numbers, where 500 may be used."""
    assert observation_of(patient.candidates(plan(KEEPS))["f"], CASE).failure is None


def test_a_few_files_are_no_flood(quick):
    text = "def f(x):\n    for i in range(100): open(f'{i}', 'wb').write(bytes(10**5))\n    return x"
    assert seen(quick, "f", text).tolist() == [0, 1, 2]


def test_closing_leaves_no_process_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(psutil.pids())
    for fork in {sys.platform == "linux", False}:
        with Sandbox(timeout_s=1.0, fork=fork) as made:
            assert (
                seen(made, "f", "import os\nos.mkdir('d'); open('d/x', 'w').close(); os.chmod('d', 0)\n" + DOUBLE)
                is not None
            )
            mine = {process.pid for process in psutil.Process().children(recursive=True)} - before
            assert mine
        assert all(gone(pid) for pid in mine)
    assert os.listdir(tmp_path) == []
