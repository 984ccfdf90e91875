"""The walls around a worker: what stands behind them cannot be read, written, reached or started."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv

import numpy as np
import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.course.spec import Case
from grader.grading.grade import Settings, grade
from grader.sandbox.sandbox import Sandbox
from grader.worker import kernel_walls
from tests import toy_course as toy
from tests.conftest import ROOT
from tests.mixing_course import COURSE
from tests.sandbox.test_sandbox import observation_of, plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")
CASE = Case("small", "three numbers", (np.arange(3),), names=("x",))
ATTEMPTS = {
    "read a solution": f"open({str(COURSE.source_path('01_mixing'))!r}).read()",
    "read the specification": f"open({str(ROOT / 'grader' / 'judging' / 'judge.py')!r}).read()",
    "read the tests": f"open({__file__!r}).read()",
    "list the solutions": f"os.listdir({str(ROOT / 'solutions')!r})",
    "list what the system has": "os.listdir('/usr')",
    "read what is no library": "open('/usr/bin/env', 'rb').read()",
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
    "msgget(7, 0o1666)",
    "semget(7, 1, 0o1666)",
    "shmget(7, 4096, 0o1666)",
    "klogctl(3, at(4096), 4096)",
    "sethostname(at(8), 0)",
    "setdomainname(at(8), 0)",
    "adjtimex(at(512))",
    "clock_settime(0, at(16))",
    "clock_adjtime(0, at(512))",
    "settimeofday(at(16), None)",
    "personality(0xFFFFFFFF)",
    "acct(None)",
    "swapoff(b'none')",
    "quotactl(0, None, 0, None)",
    "fanotify_init(0, 0)",
    "vhangup()",
    "name_to_handle_at(-100, b'.', at(64), at(8), 0)",
    "open_by_handle_at(-100, at(64), 0)",
    "umount2(b'/none', 2)",
    "chroot(b'.')",
    "syscall(467, -100, b'.', 0, None, 0)",
    "syscall(469, -100, b'.', at(64), 24, 0)",
    "syscall(447, 0)",
    "prctl(1, 0)",
    "prctl(4, 0)",
)


@pytest.fixture(scope="module")
def shut():
    with Sandbox(timeout_s=10.0) as made:
        yield made


@pytest.fixture(scope="module")
def shut_torch():
    with Sandbox(timeout_s=30.0, torch=True) as made:
        yield made


def _seen(sandbox, expression):
    text = f"import os\ndef f(x):\n    return {expression}"
    return observation_of(sandbox.candidates(plan(text))["f"], CASE)


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
    seen = observation_of(shut.candidates(plan(text))["f"], CASE)
    assert seen.failure is None and seen.parts["result"].text in ("-1 1", "-1 38"), seen  # EPERM, ENOSYS


@pytest.mark.parametrize(
    "expression",
    [
        "(open('own', 'w').write('abc'), open('own').read())[1]",
        "__import__('tempfile').NamedTemporaryFile().name and 'abc'",
        "__import__('concurrent.futures').futures.ThreadPoolExecutor(2).submit(lambda: 'abc').result()",
        "(__import__('matplotlib.figure').figure.Figure(), 'abc')[1]",
        "__import__('asyncio').run(__import__('asyncio').sleep(0.01, 'abc'))",
        "(__import__('numpy').linalg.svd(__import__('numpy').ones((50, 50))), 'abc')[1]",
    ],
)
def test_what_honest_code_does_still_works(shut, expression):
    seen = _seen(shut, expression)
    assert seen.failure is None and seen.parts["result"].text == "abc", seen.failure


LIBRARIES = [
    "torch.set_num_threads(2); torch.randn(600, 600, requires_grad=True).matmul(torch.randn(600, 600)).sum().backward()",
    "torch.save(torch.nn.MultiheadAttention(8, 2).state_dict(), 'w.pt'); torch.load('w.pt', mmap=True)",
    "list(torch.utils.data.DataLoader(list(range(10)), batch_size=2, shuffle=True))",
    "import torch.utils.benchmark as b; b.Timer('x @ x', globals={'x': torch.ones(9, 9)}).timeit(3)",
    "from torch.profiler import profile\n    with profile(): torch.ones(3).sum()",
    "torch.func.vmap(torch.func.grad(lambda x: x.sin()))(torch.ones(3)); torch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))",
    "import sympy; sympy.simplify('x + x')",
    "import matplotlib.pyplot as plt; plt.plot([1, 2]); [plt.savefig('x.' + kind) for kind in ('png', 'svg', 'pdf')]",
    "import sqlite3; db = sqlite3.connect('q'); db.execute('pragma journal_mode=wal'); db.execute('create table t(x)'); db.commit(); db.close()",
    "import shutil, tempfile; open('a', 'w').write('a' * 9999); shutil.copyfile('a', 'b'); shutil.move('b', 'c'); shutil.rmtree(tempfile.mkdtemp())",
    "import asyncio, time; asyncio.run(asyncio.wait_for(asyncio.to_thread(time.sleep, 0.01), 5))",
    "import fcntl, mmap; file = open('m', 'w+b'); file.write(bytes(9999)); file.flush(); fcntl.flock(file, 2); fcntl.lockf(file, 2); mmap.mmap(file.fileno(), 0).flush()",
    "import os, platform, shutil, zoneinfo; platform.platform(); shutil.get_terminal_size(); os.isatty(0); zoneinfo.ZoneInfo('Europe/Berlin')",
    "import signal; signal.setitimer(0, 9); signal.setitimer(0, 0); signal.raise_signal(signal.SIGCHLD); signal.sigtimedwait([10], 0.01)",
    "import subprocess, multiprocessing, queue, selectors, ssl, uuid, secrets, random; selectors.DefaultSelector().close(); uuid.uuid4()",
]


# That torch works behind the walls is tried as both; the list of calls is the same for them.
@pytest.mark.parametrize(
    "body", [LIBRARIES[0], *(pytest.param(body, marks=pytest.mark.any_user) for body in LIBRARIES[1:])]
)
def test_what_libraries_ask_of_the_kernel_is_on_the_list(shut_torch, body):
    seen = observation_of(
        shut_torch.candidates(plan(f"import torch\ndef f(x):\n    {body}\n    return 'abc'"))["f"], CASE
    )
    assert shut_torch.isolation == "full" and seen.failure is None and seen.parts["result"].text == "abc", seen.failure


def test_an_installed_package_is_hidden_among_its_neighbours(tmp_path):
    for name in ("numpy", "grader/worker", "grader/lessons", "torch", "attention_course-1.dist-info"):
        (tmp_path / "lib" / name).mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    hidden = {str(tmp_path / "lib" / "grader")}
    assert sorted(kernel_walls._without(str(tmp_path), hidden)) == [
        str(tmp_path / "lib" / name) for name in ("numpy", "torch")
    ]


def test_a_package_that_is_linked_from_a_store_can_be_read_and_a_linked_course_cannot(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    for name in ("numpy", "grader"):
        (tmp_path / "store" / name).mkdir(parents=True)
        (packages / name).symlink_to(tmp_path / "store" / name)
    monkeypatch.syspath_prepend(packages)
    found = kernel_walls.readable.__wrapped__()
    assert str(tmp_path / "store" / "numpy") in found
    assert not [path for path in found if kernel_walls._inside(str(tmp_path / "store" / "grader"), path)]


def test_an_environment_inside_a_checkout_is_open_and_the_checkout_is_not(tmp_path):
    libraries = tmp_path / "course" / ".venv" / "lib"
    libraries.mkdir(parents=True)
    hidden = {str(tmp_path / "course"), str(tmp_path / "course" / "grader")}
    assert kernel_walls._without(str(libraries), hidden) == [str(libraries)]
    assert kernel_walls._without(str(tmp_path), hidden) == []


def test_the_system_s_folders_are_open_for_libraries_alone():
    """A class or a checkout may lie anywhere below /usr."""
    for folder in ("", "/local", "/local/src", "/share", "/local/share", "/src", "/home", "/libexec"):
        place = f"/usr{folder}/class/ada"
        assert not [path for path in kernel_walls.readable() if kernel_walls._inside(place, path)]


ENVIRONMENTS = {  # the environment's folder in the checkout; whether the package is installed in it
    "beside the lessons": (".venv", False),
    "under another name": ("python", False),
    "the checkout's own folder": (".", False),
    "with the package in it": (".venv", True),
    "all in one": (".", True),
}
TRY = """
import sys
from grader.course.spec import Case
from grader.sandbox.sandbox import Sandbox
from grader.submission.plan import Plan, RunCell
cell = RunCell("cell 1", f"PLACES = {sys.argv[1:]!r}" + '''
import os
def f(x):
    got = []
    for place in PLACES:
        for way in (os.listdir, lambda place: open(place).read()):
            try: way(place); got.append(place)
            except OSError: pass
    import matplotlib.figure
    return "; ".join(got) or "nothing"
''', True)
with Sandbox(timeout_s=20.0) as sandbox:
    candidate = sandbox.candidates(Plan("01_toy", ("f",), (cell,), {"f": 0}))["f"]
    seen = candidate.observe_all((Case("c", "c", (1,), names=("x",)),))[-1]
    print(sandbox.isolation, seen.failure or seen.parts["result"].text)
"""


@pytest.mark.any_user  # which folders are named to the walls
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_an_environment_in_a_checkout_opens_no_more_than_its_libraries(tmp_path, kind):
    """Neither lessons, solutions, tests and hand-ins beside it, nor the copy of the course that an installation leaves in it."""
    folder, installed = ENVIRONMENTS[kind]
    checkout = tmp_path / "course"
    environment = checkout / folder
    venv.create(environment, symlinks=True)
    libraries = next(environment.glob("lib/python3*/site-packages"))
    added = [*site.getsitepackages(), *sys.path] + ([] if installed else [str(checkout)])
    ours = str(ROOT)
    (libraries / "more.pth").write_text("\n".join(entry for entry in added if entry not in ("", ours)))
    package = (libraries if installed else checkout) / "grader"
    shutil.copytree(ROOT / "grader", package, ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / "pyproject.toml").touch()
    secrets = [checkout / name / "01.py" for name in ("solutions", "notebooks", "tests", "hand-ins/ada", "share")]
    secrets += [libraries / "grader" / "_course" / "solutions" / "01.py"]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("answer = 42")
    places = [
        *secrets,
        *(secret.parent for secret in secrets),
        package / "judging" / "judge.py",
        package / "course" / "lessons",
        checkout,
    ]
    through_link = [
        environment / "lib64" / path.relative_to(environment / "lib")
        for path in places
        if (environment / "lib") in path.parents
    ]
    command = [environment / "bin" / "python", "-c", TRY, *places, *through_link]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "full nothing\n", done.stdout + done.stderr[-2000:]


HALVES = {
    "walls.landlock(folder) and calls.shut() and walls.verify_walls()": "True",
    "walls.verify_walls()": "False",
    "walls.landlock(folder) and walls.verify_walls()": "False",
    "calls.shut() and walls.verify_walls()": "False",
    "(threading.Thread(target=time.sleep, args=(9,), daemon=True).start(), walls.apply_walls(folder))[1]": "enforcement",
    "(setattr(walls, 'landlock', lambda folder: True), walls.apply_walls(folder))[1]": "enforcement",
    "(setattr(calls, 'shut', lambda: True), walls.apply_walls(folder))[1]": "enforcement",
    "(setattr(walls, 'landlock', lambda folder: False), walls.apply_walls(folder))[1]": "landlock",
    "(setattr(calls, 'shut', lambda: False), walls.apply_walls(folder))[1]": "seccomp",
    "walls.apply_walls(folder)": "",
}


@pytest.mark.parametrize("attempt", HALVES)
def test_the_level_is_what_was_tried_and_held(tmp_path, attempt):
    """A kernel may take a wall and not enforce it."""
    code = (
        f"import os, threading, time\nfrom grader.worker import kernel_walls as walls, limits, system_calls as calls\nfolder = {str(tmp_path)!r}\n"
        f"limits.apply(1 << 30, 10)\nos.write(1, str({attempt}).encode())\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == HALVES[attempt], done.stderr


def test_each_version_of_landlock_is_asked_for_what_it_knows():
    for version, (rights, size) in {
        1: (13, 8),
        2: (14, 8),
        3: (15, 8),
        4: (15, 16),
        5: (16, 16),
        6: (16, 24),
        9: (16, 24),
    }.items():
        handled, attribute = kernel_walls.rules(version)
        assert (handled, len(attribute)) == ((1 << rights) - 1, size)
    syscall = kernel_walls.c_library().syscall
    for version in range(1, syscall(444, None, 0, 1) + 1):  # what an older kernel knew, this one takes
        attribute = kernel_walls.rules(version)[1]
        ruleset = syscall(444, attribute, len(attribute), 0)
        assert ruleset >= 0
        os.close(ruleset)


@pytest.mark.any_user  # what is made of the level; test_full_isolation_is_reported asks for it as both
def test_less_isolation_than_required_runs_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grader.sandbox.sandbox.Sandbox.start", _without_walls(Sandbox.start))
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    toy.install(monkeypatch)
    assert main(["grade", str(path), "--require-isolation", "full"]) == 3
    said = capsys.readouterr()
    assert (
        "nothing was graded: isolation 'full' is required, but this computer has only 'process', because the walls"
        in said.err
    )
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
    assert grade(Settings(open_course(), require="full"), [path]).isolation == "full"
