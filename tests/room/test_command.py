"""`grader room` as an instructor starts it: bad input is a sentence, and what happened survives a kill."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.notebook.event_sender import Sender
from grader.room import server
from grader.room.message import Event
from tests.conftest import ROOT, heed_interrupts


def start(journal: Path, port: int, *more: str) -> tuple[subprocess.Popen, str]:
    """A room that listens, and what it printed."""
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
        str(journal),
        *more,
    ]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        preexec_fn=heed_interrupts if os.name != "nt" else None,
    )
    said = ""
    while "closes the room" not in said:
        line = running.stdout.readline()
        assert line, said
        said += line
    return running, said


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def ask(port: int, path: str, data: dict | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(
        "POST" if data else "GET", path, json.dumps({"format": 1, **(data or {})}), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.skipif(os.name == "nt", reason="Windows kills otherwise")
def test_a_room_survives_its_server(tmp_path):
    port = free()
    running, said = start(tmp_path / "room.jsonl", port)
    (address, code) = re.search(r'join\("(.*?)", "(.*?)", "ada"\)', said).groups()
    with_names = re.search(r"with names: +http://[^/]+(\S+)", said)[1]
    assert address == f"http://127.0.0.1:{port}"
    token = json.loads(ask(port, "/join", {"code": code, "name": "ada"})[1])["token"]
    ask(
        port,
        "/events",
        {"token": token, "events": [{"at": 1.0, "exercise": "shares", "status": "failed", "mistake": "MX7"}]},
    )
    running.send_signal(signal.SIGKILL)
    running.wait(10)
    running.stdout.close()

    sender = Sender(address, token)  # goes on while nobody listens
    sender.put(Event(2.0, "blend", "passed"))
    running, again = start(tmp_path / "room.jsonl", port, "--address", "https://room.example.org/ours/")
    assert "continues, with 1 learner." in again and code in again and with_names in again
    assert 'join("https://room.example.org/ours", ' in again
    assert sender.drain(10)
    sender.close()
    status, page = ask(port, with_names)
    assert status == 200 and b"The columns sum to 1; each row is to." in page and b"ada" in page
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 0 and "The room is closed." in running.stdout.read()
    running.stdout.close()
    told = [json.loads(line) for line in (tmp_path / "room.jsonl").read_text().splitlines()]
    assert [line["exercise"] for line in told if "exercise" in line] == ["shares", "blend"]


def test_a_port_in_use_is_told_with_another_one(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["room", "--host", "127.0.0.1", "--port", str(port), "--journal", str(tmp_path / "r.jsonl")]) == 2
    assert f"port {port} is in use" in (said := capsys.readouterr().err) and f"--port {port + 1}" in said
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--port", "0"],
        ["--port", "65536"],
        ["--port", "x"],
        ["--host", "no.such.host.invalid"],
        ["--host", "203.0.113.7"],
        ["--address", "room.example.org"],
        ["--address", 'http://x"), evil('],
    ],
)
def test_an_address_that_is_none_is_told(tmp_path, capsys, wrong):
    assert main(["room", "--journal", str(tmp_path / "r.jsonl"), *wrong]) == 2
    said = capsys.readouterr().err
    assert (
        "a number from 1 to 65535" in said
        or "not an address of this computer" in said
        or "not an address such as https" in said
    )


def test_a_journal_that_is_none_is_told_and_stays(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years")
    assert main(["room", "--host", "127.0.0.1", "--port", str(free()), "--journal", str(tmp_path / "thesis.txt")]) == 2
    assert "not the journal of a room" in capsys.readouterr().err and (tmp_path / "thesis.txt").read_text() == "years"
    assert main(["room", "--host", "127.0.0.1", "--port", str(free()), "--journal", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("grader: ")


def test_without_tornado_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] == "tornado"
        or name in ("grader.room.server", "grader.room.handlers", "grader.util.web")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tornado", None)
    assert main(["room", "--journal", str(tmp_path / "r.jsonl")]) != 0
    assert "tornado is not installed" in (said := capsys.readouterr().err) and "attention-course[lab]" in said


def test_every_mistake_has_its_sentence_before_the_first_learner_comes():
    found = server.known_mistakes(open_course())
    assert found["MX7"] == "The columns sum to 1; each row is to." and found["LU2"]


def test_the_address_is_one_that_others_can_reach():
    assert server._reachable("10.1.2.3") == "10.1.2.3" and server._reachable("::1") == "[::1]"
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", server._reachable(""))


def test_the_live_page_in_a_browser(tmp_path, artefacts):
    """What happens is shown without a reload, nothing is logged, nothing comes from elsewhere, and it comes back with its server."""
    from playwright.sync_api import sync_playwright

    from tests.find_chromium import find_chromium
    from tests.room.running import running

    logged, asked = [], []
    event = {"at": 1.0, "exercise": "shares", "status": "failed", "mistake": "MX7"}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1920, "height": 1080})
        tab.on("console", lambda said: logged.append(said.text))
        tab.on("pageerror", lambda error: logged.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        with running(tmp_path / "room.jsonl") as room:
            port, key, token = (
                room.port,
                room.live.key_with_names,
                room.joined('<img src=x onerror="document.title=1">'),
            )
            tab.goto(f"{room.address}/room/{key}")
            room.post("/events", token=token, events=[event])
            tab.get_by_text("The columns sum to 1; each row is to.").wait_for(timeout=10_000)
            assert tab.title() == "The room" and not logged
            assert tab.evaluate("document.documentElement.scrollHeight <= innerHeight")
            tab.screenshot(path=artefacts / "live.png")
            tab.goto(f"{room.address}/room/{room.live.key}")
            assert tab.get_by_text("Remove learners").count() == 0
            tab.goto(f"{room.address}/room/{key}")
            tab.get_by_text("Remove learners").click()
            tab.get_by_label("onerror").check()
            tab.get_by_role("button", name="Remove the selected").click()
            tab.get_by_text("Removed: 1.").wait_for(timeout=10_000)
            old = room.room.code
            tab.get_by_role("button", name="Change the code").click()
            tab.get_by_text("The code is now ").wait_for(timeout=10_000)
            assert not room.room.present() and room.room.code != old and tab.title() == "The room"
            tab.screenshot(path=artefacts / "removing.png")
        tab.get_by_text("The room does not answer").wait_for(timeout=10_000)
        with running(tmp_path / "room.jsonl", port) as room:
            room.joined("grace")
            tab.get_by_text("grace").wait_for(timeout=15_000)
            assert not tab.get_by_text("The room does not answer").is_visible()
        browser.close()
    assert all(
        url.startswith(
            ("data:", f"http://127.0.0.1:{port}/room/{key}", f"http://127.0.0.1:{port}/room/{room.live.key}")
        )
        for url in asked
    ), asked


def test_what_was_taken_is_in_the_journal_before_its_sender_hears_so(tmp_path):
    from tests.room.running import running

    with running(tmp_path / "room.jsonl") as room:
        token = room.joined()
        for number in range(20):
            room.post("/events", token=token, events=[{"at": float(number + 1), "note": "fine"}])
            assert (tmp_path / "room.jsonl").read_text().count('"fine"') == number + 1
