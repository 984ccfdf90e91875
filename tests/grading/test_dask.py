"""A class on a real Dask scheduler with two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import COURSE_ENV, Course, open_course
from grader.grading.journal import load
from grader.util.errors import InputError
from tests import own_course, small_class
from tests.conftest import MIXING, children
from tests.small_class import LEVEL, RIGHT, WRONG, hand_in, left_behind, run, scores, timeless

CODES = {f"s{i:02}": RIGHT if i % 3 else WRONG for i in range(16)}


@contextlib.contextmanager
def started(place: Path, count: int) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """(address, workers): a scheduler and so many workers of one thread each, as processes on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    environment = small_class.environment(place / "scratch") | {COURSE_ENV: os.environ.get(COURSE_ENV, str(MIXING))}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": small_class.ROOT, "env": environment}
    host, port = address.removeprefix("tcp://").split(":")
    begun = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--host",
                host,
                "--port",
                port,
                "--no-dashboard",
                "--no-show",
            ],
            **quiet,
        )
    ]
    try:
        wait_for(lambda: listens(host, int(port)), "the scheduler did not start")
        worker = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(place / "dask"),
        ]
        begun += [subprocess.Popen(worker, **quiet) for _ in range(count)]
        wait_for(lambda: workers_of(address) == count, "the workers did not come")
        yield address, begun[1:]
    finally:
        for process in begun:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    with started(tmp_path, 2) as made:
        yield made


@pytest.fixture
def one_worker(tmp_path):
    with started(tmp_path, 1) as made:
        yield made


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """One for those who ask its workers nothing but their version."""
    with started(tmp_path_factory.mktemp("cluster"), 1) as made:
        yield made


def wait_for(true, what: str, patience_s: float = 60.0) -> None:
    deadline = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def listens(host: str, port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((host, port)) == 0


def workers_of(address: str) -> int:
    from distributed import Client

    with Client(address, timeout=10, set_as_default=False) as client:
        return len(client.nthreads())


def test_a_worker_killed_in_the_middle_costs_nothing(cluster, tmp_path):
    address, workers = cluster
    folder = hand_in(tmp_path / "class", **CODES)
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    process = subprocess.Popen(
        small_class.command(folder, out, "--scheduler", address),
        cwd=small_class.ROOT,
        text=True,
        env=small_class.environment(scratch),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    journal = out / "journal.jsonl"
    wait_for(
        lambda: process.poll() is not None or journal.exists() and len(load(journal).results) >= 2, "nothing is graded"
    )
    before = len(load(journal).results)
    workers[0].kill()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert before < len(CODES), "the worker was to be killed in the middle"
    assert {name: status == "passed" for name, (_, status) in scores(out).items()} == {
        name: code is RIGHT for name, code in CODES.items()
    }
    assert journal.read_bytes().count(b'"digest"') == len(CODES), "each counts once"
    assert run(folder, tmp_path / "local", scratch, "--jobs", "1").returncode == 0
    assert timeless(tmp_path / "local") == timeless(out), "a report doesn't tell where it was made"
    for worker in workers:
        worker.kill()
    # The scheduler, which is of the same place, stays; so nothing is waited for but the processes of the workers.
    wait_for(
        lambda: not [found for found in left_behind(scratch, 0.0) if "start.py" in found], "a process was left", 5.0
    )


def test_no_scheduler_is_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grader.grading.dask_pool.CONNECT_S", 1)
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    assert main(["class", str(folder), "--out", str(tmp_path / "out"), "--scheduler", address]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_workers_with_another_version_of_the_course_are_refused(refused, monkeypatch):
    from grader.grading import dask_pool as module

    real = module.course_digest
    monkeypatch.setattr(module.batch, "close_sandboxes", lambda: None)
    checked = module.Cluster(open_course(), refused[0])
    try:
        monkeypatch.setattr(checked._client, "run", lambda function, **_: {"tcp://there": real(open_course()) + "x"})
        with pytest.raises(InputError, match="another version of the course"):
            checked._check()
        monkeypatch.setattr(checked._client, "run", lambda function, **_: {})
        with pytest.raises(InputError, match="has no workers yet"):
            checked._check()
    finally:
        checked._client.close()
    assert not [child for child in children() if "start.py" in " ".join(child.cmdline())]


# --- a course of one's own --------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path):
    """The course of CONTRIBUTING, and a class of two that handed it in."""
    folder = own_course.written(tmp_path)
    course = Course(folder)
    (folder / "notebooks").mkdir()
    course.notebook_path(own_course.NAME).write_text(
        json.dumps(course.handout_notebook(own_course.NAME)), encoding="utf-8"
    )
    for name, code in (("ada", own_course.RIGHT), ("eve", own_course.WRONG)):
        own_course.hand_in(folder, tmp_path / "class" / name, code)
    return folder


@pytest.fixture
def known(mine, monkeypatch):
    """What starts from now on finds it in its environment."""
    monkeypatch.setenv(COURSE_ENV, str(mine))


def test_workers_that_have_one_s_own_course_grade_it(mine, known, one_worker, tmp_path):
    assert (
        main(["class", str(tmp_path / "class"), "--out", str(tmp_path / "out"), "--scheduler", one_worker[0], *LEVEL])
        == 0
    )
    assert scores(tmp_path / "out") == {"ada": (2, "passed"), "eve": (0, "failed")}


def test_workers_without_it_are_refused_with_what_to_do(mine, refused, tmp_path, capsys):
    command = [
        "class",
        str(tmp_path / "class"),
        "--out",
        str(tmp_path / "out"),
        "--course",
        str(mine),
        "--scheduler",
        refused[0],
        *LEVEL,
    ]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert (
        "another version of the course; install this one there, and start it with ATTENTION_COURSE naming the folder of your course."
        in told
    )
