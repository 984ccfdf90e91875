"""A class on a real Dask scheduler with two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import psutil
import pytest

from grader.cli import main
from grader.grading.journal import load
from grader.util.errors import InputError
from tests import small_class
from tests.small_class import RIGHT, WRONG, hand_in, left_behind, run, scores, timeless

CODES = {f"s{i:02}": RIGHT if i % 3 else WRONG for i in range(16)}


@pytest.fixture
def cluster(tmp_path):
    """(address, workers): a scheduler and two workers of one thread each, as processes on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    environment = small_class.environment(tmp_path / "scratch")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": small_class.ROOT, "env": environment}
    host, port = address.removeprefix("tcp://").split(":")
    begun = [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", host, "--port", port,
                               "--no-dashboard", "--no-show"], **quiet)]
    try:
        wait_for(lambda: listens(host, int(port)), "the scheduler did not start")
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                  "--no-dashboard", "--local-directory", str(tmp_path / "dask")]
        begun += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        wait_for(lambda: workers_of(address) == 2, "the workers did not come")
        yield address, begun[1:]
    finally:
        for process in begun:
            process.kill()
            process.wait()


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
    process = subprocess.Popen(small_class.command(folder, out, "--scheduler", address), cwd=small_class.ROOT, text=True,
                               env=small_class.environment(scratch), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = out / "journal.jsonl"
    wait_for(lambda: process.poll() is not None or journal.exists() and len(load(journal).results) >= 2, "nothing is graded")
    before = len(load(journal).results)
    workers[0].kill()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert before < len(CODES), "the worker was to be killed in the middle"
    assert {name: status == "passed" for name, (_, status) in scores(out).items()} == {
        name: code is RIGHT for name, code in CODES.items()}
    assert journal.read_bytes().count(b'"digest"') == len(CODES), "each counts once"
    assert run(folder, tmp_path / "local", scratch, "--jobs", "1").returncode == 0
    assert timeless(tmp_path / "local") == timeless(out), "a report doesn't tell where it was made"
    for worker in workers:
        worker.kill()
    assert not [found for found in left_behind(scratch, 5.0) if "start.py" in found]


def test_no_scheduler_is_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grader.grading.dask_pool.CONNECT_S", 1)
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    assert main(["class", str(folder), "--out", str(tmp_path / "out"), "--scheduler", address]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_workers_with_another_version_of_the_course_are_refused(cluster, monkeypatch):
    from grader.grading import dask_pool as module

    real = module.course_digest
    monkeypatch.setattr(module.batch, "close_lanes", lambda: None)
    checked = module.Cluster(cluster[0])
    try:
        monkeypatch.setattr(checked._client, "run", lambda function, **_: {"tcp://there": real() + "x"})
        with pytest.raises(InputError, match="another version of the course"):
            checked._check()
        monkeypatch.setattr(checked._client, "run", lambda function, **_: {})
        with pytest.raises(InputError, match="has no workers yet"):
            checked._check()
    finally:
        checked._client.close()
    assert not [child for child in psutil.Process().children() if "start.py" in " ".join(child.cmdline())]
