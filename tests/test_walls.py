"""The walls around a worker: what stands behind them cannot be read, written, reached or started."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from grader import course
from grader.cli import main
from grader.grading import grade
from grader.model import Case
from grader.sandbox import Sandbox
from grader.worker import walls
from tests import toy_course as toy
from tests.test_sandbox import plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")
CASE = Case("small", "three numbers", (np.arange(3),), names=("x",))
ATTEMPTS = {
    "read a solution": f"open({str(course.source_path('01_three_tokens'))!r}).read()",
    "read the specification": f"open({str(course.root() / 'grader' / 'judge.py')!r}).read()",
    "read the tests": f"open({__file__!r}).read()",
    "list the solutions": f"os.listdir({str(course.root() / 'solutions')!r})",
    "read the accounts": "open('/etc/passwd').read()",
    "read another process": "open(f'/proc/{os.getppid()}/environ').read()",
    "write elsewhere": "open('/tmp/escaped', 'w').write('x')",
    "open a socket": "__import__('socket').socket()",
    "start a program": "__import__('subprocess').run(['true'])",
    "fork": "os.fork()",
    "signal the parent": "os.kill(os.getppid(), 0)",
    "change another's rights": f"os.chmod({__file__!r}, 0o777)",
    "change another's times": f"os.utime({__file__!r})",
    "slow the parent down": "os.sched_setaffinity(os.getppid(), {0})",
    "signal by a descriptor": "__import__('fcntl').fcntl(os.pipe()[0], 8, os.getppid())",
    "raise a limit": "__import__('resource').setrlimit(7, (4096, 4096))",
    "signal by a socket": "__import__('fcntl').ioctl(__import__('socket').socketpair()[0], 0x8901, os.getppid())",
    "make a device": "os.mknod('device', 0o20600, os.makedev(1, 11))",
    "make a pipe with a name": "os.mkfifo('pipe')",
    "make a file that stays": "__import__('fcntl').ioctl(os.open('stays', os.O_CREAT), 0x40086602, bytes(8))",
    "send a descriptor": "__import__('socket').send_fds(__import__('socket').socketpair()[0], [b'x'], [0])",
}
CALLS = (  # of the C library; what lies in the kernel would be there for the next submission, and what is the machine's for all
    "msgget(7, 0o1666)", "semget(7, 1, 0o1666)", "shmget(7, 4096, 0o1666)", "klogctl(3, at(4096), 4096)", "sethostname(at(8), 0)",
    "setdomainname(at(8), 0)", "adjtimex(at(512))", "clock_settime(0, at(16))", "clock_adjtime(0, at(512))", "settimeofday(at(16), None)",
    "personality(0xFFFFFFFF)", "acct(None)", "swapoff(b'none')", "quotactl(0, None, 0, None)", "fanotify_init(0, 0)", "vhangup()",
    "name_to_handle_at(-100, b'.', at(64), at(8), 0)", "open_by_handle_at(-100, at(64), 0)", "umount2(b'/none', 2)", "chroot(b'.')",
    "syscall(467, -100, b'.', 0, None, 0)", "syscall(469, -100, b'.', at(64), 24, 0)", "syscall(447, 0)", "prctl(1, 0)", "prctl(4, 0)",
)  # fmt: skip


@pytest.fixture(scope="module")
def shut():
    with Sandbox(timeout_s=10.0) as made:
        yield made


def _seen(sandbox, expression):
    text = f"import os\ndef f(x):\n    return {expression}"
    return sandbox.candidates(plan(text))["f"].observe(CASE)


@pytest.mark.parametrize("expression", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_what_is_refused(shut, expression):
    seen = _seen(shut, expression)
    assert shut.isolation == "full"
    assert seen.failure is not None and seen.failure.type in ("PermissionError", "ValueError"), seen
    assert seen.failure.type == "PermissionError" or "limit" in seen.failure.message


@pytest.mark.parametrize("call", CALLS)
def test_what_the_kernel_refuses(shut, call):
    text = (
        "import ctypes\nat, libc = ctypes.create_string_buffer, ctypes.CDLL(None, use_errno=True)\n"
        f"def f(x):\n    done = libc.{call}\n    return f'{{done}} {{ctypes.get_errno()}}'"
    )
    seen = shut.candidates(plan(text))["f"].observe(CASE)
    assert seen.failure is None and seen.parts["result"].text in ("-1 1", "-1 38"), seen  # EPERM, ENOSYS


@pytest.mark.parametrize("expression", [
    "(open('own', 'w').write('abc'), open('own').read())[1]",
    "__import__('tempfile').NamedTemporaryFile().name and 'abc'",
    "__import__('concurrent.futures').futures.ThreadPoolExecutor(2).submit(lambda: 'abc').result()",
    "(__import__('matplotlib.figure').figure.Figure(), 'abc')[1]",
    "__import__('asyncio').run(__import__('asyncio').sleep(0.01, 'abc'))",
    "(__import__('numpy').linalg.svd(__import__('numpy').ones((50, 50))), 'abc')[1]",
])  # fmt: skip
def test_what_honest_code_does_still_works(shut, expression):
    seen = _seen(shut, expression)
    assert seen.failure is None and seen.parts["result"].text == "abc", seen.failure


def test_an_installed_package_is_hidden_among_its_neighbours(tmp_path):
    for name in ("numpy", "grader/worker", "grader/lessons", "torch", "attention_course-1.dist-info"):
        (tmp_path / "lib" / name).mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    hidden = {str(tmp_path / "lib" / "grader")}
    assert sorted(walls._without(str(tmp_path), hidden)) == [str(tmp_path / "lib" / name) for name in ("numpy", "torch")]


def test_an_environment_inside_a_checkout_is_open_and_the_checkout_is_not(tmp_path):
    libraries = tmp_path / "course" / ".venv" / "lib"
    libraries.mkdir(parents=True)
    hidden = {str(tmp_path / "course"), str(tmp_path / "course" / "grader")}
    assert walls._without(str(libraries), hidden) == [str(libraries)]
    assert walls._without(str(tmp_path), hidden) == []


def test_less_isolation_than_required_runs_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grader.sandbox.Sandbox.start", _without_walls(Sandbox.start))
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    toy.install(monkeypatch)
    assert main(["grade", str(path), "--require-isolation", "full"]) == 3
    said = capsys.readouterr()
    assert "nothing was graded: isolation 'full' was asked for, and 'process' is what holds here." in said.err
    assert "row_sums" not in said.out
    assert main(["grade", str(path), "--lessons", "01", "--require-isolation", "process"]) == 0


def _without_walls(start):
    """As on a kernel that has none."""

    def started(sandbox):
        sandbox._walls = False
        return start(sandbox)

    return started


def test_full_isolation_is_reported(tmp_path, monkeypatch):
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    assert grade([path], require="full").isolation == "full"
