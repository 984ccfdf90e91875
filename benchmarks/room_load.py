"""Whether a room loses an event: `python benchmarks/room_load.py`; docs/instructors.md quotes it.

A real `grader room` in a process of its own; learners as their notebooks have it, each with the sender's own thread, each
checking once a second at a moment of its own; and two open pages, one of them with names. Both processes
are held to the same two processors where the system can do that. At the end the journal has to hold every event of everybody, once.

told after: from the check to the room's answer, when the event is in the journal. busy: the server, in share of one processor.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from grader.course.course import open_course
from grader.notebook.event_sender import Sender, now, post
from grader.room.message import Event

STATUSES = ("failed", "failed", "error", "passed", "not_started")


def opened(folder: Path) -> tuple[subprocess.Popen, str, str, list[str]]:
    """The server, its address and code, and the addresses of its pages."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "grader",
        "room",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--journal",
        str(folder / "room.jsonl"),
    ]
    running, said = subprocess.Popen(command, stdout=subprocess.PIPE, text=True), ""
    while "closes the room" not in said:
        line = running.stdout.readline()
        if not line:
            sys.exit(f"The room did not open: {said}")
        said += line
    threading.Thread(target=running.stdout.read, daemon=True).start()  # a full pipe would stop it
    address, code = re.search(r'join\("(.*?)", "(.*?)"', said).groups()
    return running, address, code, re.findall(r"names: +(\S+)", said)


def looked_at(page: str) -> list[int]:
    """How many times an open page was shown something new; grows while it is open."""
    host, _, path = page.removeprefix("http://").partition("/")
    shown = [0]

    def look() -> None:
        with socket.create_connection(tuple(host.split(":"))) as connection:
            connection.sendall(f"GET /{path}/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            for line in connection.makefile("rb"):
                shown[0] += line.startswith(b"data: <header>")

    threading.Thread(target=look, daemon=True).start()
    return shown


class Learner(threading.Thread):
    """Checks once a second for so long, and notes when the room has answered."""

    def __init__(self, number: int, address: str, code: str, seconds: float) -> None:
        super().__init__()
        token = post(address, "/join", {"code": code, "name": f"learner {number}"})["token"]
        self.seat, self.sent, self.waited = int(token.partition(".")[0]), [], []
        self._seconds, self._draw, self._sender = seconds, random.Random(number), Sender(address, token)

    def run(self) -> None:
        names, end = open_course().exercise_names(), time.monotonic() + self._seconds
        due = time.monotonic() + self._draw.random()
        while due < end:
            time.sleep(max(due - time.monotonic(), 0))
            event, began = Event(now(), self._draw.choice(names), self._draw.choice(STATUSES)), time.monotonic()
            self._sender.put(event)
            self.sent.append(event.at)
            if self._sender.drain(10):
                self.waited.append(1000 * (time.monotonic() - began))
            due += 1.0
        self._sender.drain(30)
        self._sender.close()


def measured(
    count: int, seconds: float, running: subprocess.Popen, address: str, code: str, pages: list[str], journal: Path
) -> bool:
    """Prints what was seen. Returns: whether every event counted once."""
    server, shown = psutil.Process(running.pid), [looked_at(page) for page in pages]
    learners = [Learner(number, address, code, seconds) for number in range(count)]
    began, busy = time.monotonic(), sum(server.cpu_times()[:2])
    for one in learners:
        one.start()
    for one in learners:
        one.join()
    took, busy = time.monotonic() - began, sum(server.cpu_times()[:2]) - busy
    kept = Counter(
        (line["learner"], line["at"])
        for line in map(json.loads, journal.read_text().splitlines())
        if "exercise" in line
    )
    sent = Counter((one.seat, at) for one in learners for at in one.sent)
    lost, twice = (sent - kept).total(), (kept - sent).total()
    waited = sorted(each for one in learners for each in one.waited)
    print(f"{count} learners, {sent.total()} events in {took:.0f} s; lost {lost}, counted twice {twice}")
    most = waited[int(0.99 * len(waited))]
    print(f"told after: median {statistics.median(waited):.0f} ms, 99 of 100 {most:.0f} ms, worst {waited[-1]:.0f} ms")
    memory = server.memory_info().rss / 2**20
    print(
        f"busy: {busy / took:.2f}; memory {memory:.0f} MB; the pages were shown anew {' and '.join(str(one[0]) for one in shown)} times"
    )
    return not lost and not twice


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether a room loses an event.")
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as folder:
        running, *where = opened(Path(folder))
        try:
            return 0 if measured(options.learners, options.seconds, running, *where, Path(folder) / "room.jsonl") else 1
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(10)


if __name__ == "__main__":
    sys.exit(main())
