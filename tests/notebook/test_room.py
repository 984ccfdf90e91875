"""A learner in a room: what leaves the notebook, when, and what they see; a room that fails costs no check anything."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import grader
from grader import check, fine, join, leave, progress, stuck
from grader.cli import main
from grader.notebook import ROOM, event_sender, room_client as rooms, verdicts
from grader.notebook.event_sender import Sender
from grader.room import rate_limits
from grader.room.message import Event
from grader.room.rate_limits import Budgets
from tests.live import from_cells
from tests.room.running import Running, running, until

SENTINEL = "xyzzy_sentinel"
RIGHT = "def nearest(query, keys, values):\n    return values[np.argmax(keys @ query)]"
WRONG = RIGHT.replace("argmax", "argmin")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(verdicts, "verdicts", {})
    monkeypatch.setattr(rooms, "_state", rooms._RoomState())
    monkeypatch.setattr(event_sender, "PAUSE_S", 0.05)
    yield
    rooms._state.sender.close()


@pytest.fixture
def room(tmp_path):
    with running(tmp_path / "room.jsonl") as made:
        yield made


@pytest.fixture
def sent(monkeypatch):
    """All bytes that leave this process by HTTP."""
    found: list[bytes] = []
    send = http.client.HTTPConnection.send

    def noting(self, data):
        found.append(bytes(data))
        return send(self, data)

    monkeypatch.setattr(http.client.HTTPConnection, "send", noting)
    return found


def checked(source: str, name: str = "nearest"):
    return check(from_cells(name, source).obj)


def states(room: Running) -> dict[str, str]:
    return {name: state.status for learner in room.room.learners for name, state in learner.states.items()}


def said(shown) -> str:
    return " ".join(str(shown).split())


# --- what is told -------------------------------------------------------------------------------


def test_a_check_tells_the_room_and_nothing_of_the_code(room, sent, tmp_path):
    join(room.address, room.room.code, "ada")
    raising = f'def nearest(query, keys, values):\n    {SENTINEL} = "{SENTINEL}"  # {SENTINEL}\n    print({SENTINEL})\n    raise ValueError({SENTINEL})'
    wrong = WRONG.replace("return", f"{SENTINEL} = 1\n    return")
    assert SENTINEL in str(checked(raising))  # the learner sees it
    until(lambda: states(room) == {"nearest": "error"})
    checked(wrong)
    until(lambda: states(room) == {"nearest": "failed"})
    assert checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})
    assert "Your words were not sent" in str(stuck(SENTINEL))
    until(lambda: room.room.learners[0].note == "stuck")
    fine()
    until(lambda: room.room.learners[0].note == "fine")
    leave()
    assert not room.room.learners
    bodies = b"".join(sent) + (tmp_path / "room.jsonl").read_bytes()
    assert (
        b'"nearest"' in bodies and SENTINEL.encode() not in bodies and b"argm" not in bodies and b"values" not in bodies
    )
    fields = {
        key for body in sent if body.startswith(b"{") for event in json.loads(body).get("events", []) for key in event
    }
    assert fields == {"at", "exercise", "status", "mistake", "note"}


def test_without_a_room_nothing_is_sent_and_nothing_of_it_is_loaded(sent):
    program = "import sys; from grader import check; check('nearest', lambda *_: 0); print([n for n in sys.modules if 'room' in n or n == 'http.client'])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert done.stdout.strip().endswith("[]"), done.stderr
    checked(WRONG)
    for call in (leave, stuck, fine):
        assert "you are not in" in said(call()).lower()
    assert not sent and not rooms._state.sender.address


def test_after_leave_nothing_is_sent_in_no_notebook(room, sent, monkeypatch):
    join(room.address, room.room.code, "ada")
    checked(WRONG)
    until(lambda: states(room))
    mine, other = rooms._state, rooms._RoomState()
    monkeypatch.setattr(rooms, "_state", other)  # another notebook of the same learner
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})
    monkeypatch.setattr(rooms, "_state", mine)
    assert "nothing more is sent" in said(leave())
    del sent[:]
    checked(WRONG)
    monkeypatch.setattr(rooms, "_state", other)
    checked(RIGHT)
    other.sender.put(Event(1.0, note="stuck"))  # even one that had waited
    time.sleep(0.3)
    assert not sent and states(room) == {}


def test_progress_says_that_it_is_on(room, capsys):
    assert "You are in the room" not in str(progress())
    join(room.address, room.room.code, "ada")
    on = f"You are in the room at {room.address} as ada: each check sends your name, the exercise, its status"
    assert on in said(progress()) and "leave() ends it" in said(progress())
    assert main(["progress"]) == 0
    assert on in " ".join(capsys.readouterr().out.split())
    leave()
    assert "You are in the room" not in str(progress())


def test_a_restarted_kernel_says_so_once_and_goes_on(room, monkeypatch):
    join(room.address, room.room.code, "ada")
    monkeypatch.setattr(rooms, "_state", rooms._RoomState())
    assert "You are in the room" in said(checked(WRONG))
    assert "You are in the room" not in said(checked(RIGHT))
    until(lambda: states(room) == {"nearest": "passed"})


def test_it_ends_by_itself_after_a_day(room, sent):
    join(room.address, room.room.code, "ada")
    mine = rooms.current()
    assert 11 * 3600 < mine.until - time.time() < 13 * 3600
    rooms._save(rooms.Membership(mine.address, mine.name, mine.token, time.time() - 1))
    del sent[:]
    assert "is over" in said(checked(WRONG)) and "is over" not in said(checked(RIGHT))
    assert not sent and "You are in the room" not in str(progress())


def test_who_comes_back_has_the_same_place(room):
    join(room.address, room.room.code, "ada")
    leave()
    join(room.address, room.room.code, "ada")
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})
    assert len(room.room.members) == 1


# --- what joins and what does not ---------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        (),
        (7, "a", "b"),
        ("", "a", "b"),
        ("not an address", "a", "b"),
        ("ftp://x", "a", "b"),
        ("http://", "a", "b"),
        ("http://x:99999999", "a", "b"),
        ("http://x:y", "a", "b"),
        ("http://[", "a", "b"),
        ("http://user:pass@x", "a", "b"),
        ("http://x/?a=b", "a", "b"),
        ("http://ä.b", "a", "b"),
        ("http://x", "", "b"),
        ("http://x", None, "b"),
        ("http://x", "a-b-c", ""),
        ("http://x", "a-b-c", "\u200b"),
        ("http://x", "a-b-c", ["ada"]),
        ("http://x\r\nHost: y", "a", "b"),
    ],
)
def test_what_joins_no_room_gets_an_example(given, sent):
    assert 'join("http://192.168.1.20:8765", "amber-falcon-river", "ada")' in said(join(*given))
    assert not sent and rooms.current() is None


def test_a_wrong_code_is_told(room):
    assert "This is not the room's code." in said(join(room.address, "wrong-wrong-wrong", "ada"))
    assert rooms.current() is None
    assert "You are in the room as ada" in said(
        join(f" 127.0.0.1:{room.port}/ ", room.room.code.upper().replace("-", " "), "ada")
    )


def test_nobody_answers(unused):
    shown = said(join(f"http://127.0.0.1:{unused}", "a-b-c", "ada"))
    assert f"No room answers at http://127.0.0.1:{unused} (Connection refused)" in shown and "same network" in shown
    assert "No room answers" in said(join("http://no-such-host.invalid", "a-b-c", "ada"))


@pytest.fixture
def unused() -> int:
    """A port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Other(threading.Thread):
    """A server that is no room: answers each connection with the same bytes, or holds it without an answer."""

    def __init__(self, answer: bytes | None) -> None:
        super().__init__(daemon=True)
        self._answer, self._held = answer, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        while True:
            try:
                taken, _ = self.socket.accept()
            except OSError:
                return
            if self._answer is None:
                self._held.append(taken)
                continue
            with taken:
                taken.settimeout(1)
                taken.recv(65_536)
                taken.sendall(self._answer)


def answer(status: str, body: bytes, more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "bytes_",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        answer("200 OK", b"<html>a page</html>"),
        answer("200 OK", b"[]"),
        answer("200 OK", b'{"token": 7}'),
        answer("404 Not Found", b"no"),
        answer("302 Found", b"", "Location: http://127.0.0.1:1/\r\n"),
        answer("200 OK", b"[" * 60_000),
    ],
)
def test_what_answers_may_be_no_room(bytes_):
    other = Other(bytes_)
    shown = said(join(other.address, "a-b-c", "ada"))
    other.socket.close()
    assert "is not a room of this course" in shown or "No room answers" in shown
    assert rooms.current() is None


def test_a_proxy_is_not_asked(room, monkeypatch, unused):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused}")
    assert "You are in the room" in said(join(room.address, room.room.code, "ada"))


# --- a network that fails -----------------------------------------------------------------------


def test_a_check_waits_for_no_network():
    silent = Other(None)
    rooms._save(rooms.Membership(silent.address, "ada", "0.x", time.time() + 100))
    checked(RIGHT)  # which loads what checks need
    started = time.monotonic()
    for number in range(3):
        checked(WRONG.replace("return", f"x = {number}\n    return"))
    assert time.monotonic() - started < event_sender.TIMEOUT_S / 2
    silent.socket.close()


def test_a_network_that_fails_is_one_line_and_loses_nothing(tmp_path):
    with running(tmp_path / "room.jsonl") as room:
        join(room.address, room.room.code, "ada")
        port = room.port
    lines = [said(checked(RIGHT.replace("return", f"x = {number}\n    return"))) for number in range(2)]
    until(lambda: rooms._state.sender.failing)
    lines += [said(checked(WRONG.replace("return", f"x = {number}\n    return"))) for number in range(3)]
    assert sum("does not answer at the moment" in line for line in lines) == 1
    assert all(line.startswith(("PASSED", "FAILED", "ERROR")) for line in lines)
    with running(tmp_path / "room.jsonl", port) as again:
        until(lambda: rooms._state.sender.drain(0.1))
        kept = [json.loads(line) for line in (tmp_path / "room.jsonl").read_text().splitlines()]
        assert [line["status"] for line in kept if "exercise" in line] == [
            "passed",
            "passed",
            "failed",
            "failed",
            "failed",
        ]
        assert again.room.learners[0].states["nearest"].status == "failed"


def test_who_leaves_a_room_that_is_gone_is_told_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "LEAVE_S", 30.0)
    with running(tmp_path / "room.jsonl") as room:
        join(room.address, room.room.code, "ada")
    started = time.monotonic()
    told = said(leave())
    assert "You have left the room" in told and "its page may still show you" in told
    assert time.monotonic() - started < 10 and rooms.active() is None


def test_an_answer_that_is_lost_counts_once(room, monkeypatch):
    join(room.address, room.room.code, "ada")
    post, lost = event_sender.post, []

    def losing(address, path, data):
        found = post(address, path, data)
        if not lost:
            lost.append(found)
            raise ConnectionResetError
        return found

    monkeypatch.setattr(event_sender, "post", losing)
    checked(RIGHT)
    assert until(lambda: lost and rooms._state.sender.drain(1))
    assert len(room.room.members[0].events) == 1


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "500 Oops", "503 Later"])
def test_what_is_not_taken_waits_whatever_answers(status):
    """As behind a network's page that asks for a password."""
    other = Other(answer(status, b"<html>a page</html>"))
    sender = Sender(other.address, "0.x")
    sender.put(Event(1.0, note="stuck"))
    until(lambda: sender.failing)
    assert not sender.drain(0.3) and len(sender._waiting) == 1 and not sender.refusal
    sender.close()
    other.socket.close()


def test_a_room_that_takes_it_later_does_not_fail():
    other = Other(answer("429 Too Many Requests", b'{"error": "wait"}'))
    sender = Sender(other.address, "0.x")
    sender.put(Event(1.0, note="stuck"))
    assert not sender.drain(0.5) and len(sender._waiting) == 1 and not sender.failing
    sender.close()
    other.socket.close()


def test_what_is_closed_sends_nothing_more(room, sent):
    sender = Sender(room.address, room.joined("ada"))
    sender.put(Event(1.0, note="stuck"))
    assert sender.drain(5)
    del sent[:]
    sender.close()
    until(lambda: not sender._thread.is_alive())
    assert not sent


def test_a_learner_who_thinks_for_long_reads_nothing_of_a_connection_that_ended(room, monkeypatch):
    join(room.address, room.room.code, "ada")
    checked(WRONG)
    until(lambda: states(room))
    room._loop.call_soon_threadsafe(lambda: [one.stream.close() for one in list(room.server._connections)])
    until(lambda: not room.server._connections)
    statuses, send = [], Sender._send
    monkeypatch.setattr(Sender, "_send", lambda self, events: statuses.append(send(self, events)) or statuses[-1])
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"} and statuses)
    assert statuses == [200]


def test_joining_again_keeps_what_waits(room):
    join(room.address, room.room.code, "ada")
    checked(WRONG)
    sender = rooms._state.sender
    join(room.address, room.room.code, "ada")  # as Run All does
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})
    assert rooms._state.sender is sender and len(room.room.members) == 1


def test_who_was_refused_can_join_again(room):
    rooms._save(rooms.Membership(room.address, "ada", "5.unknown", time.time() + 100))
    checked(WRONG)
    until(lambda: rooms._state.sender.refusal)
    assert "You are in the room" in said(join(room.address, room.room.code, "ada"))
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})


def test_a_room_that_knows_a_learner_no_more_is_told_once(room, sent):
    rooms._save(rooms.Membership(room.address, "ada", "5.unknown", time.time() + 100))
    checked(WRONG)
    until(lambda: rooms._state.sender.refusal)
    shown = said(checked(RIGHT))
    assert (
        "accepts nothing more from this notebook: The room does not know this notebook. join() joins it again." in shown
    )
    del sent[:]
    assert "takes nothing more" not in said(checked(WRONG)) and not sent
    assert "You are in the room" not in str(progress())


def test_a_removed_learner_is_told_so(room):
    join(room.address, room.room.code, "ada")
    assert room.post(f"/room/{room.live.key_with_names}/remove", places=[0]) == (200, {"removed": 1})
    checked(WRONG)
    until(lambda: rooms._state.sender.refusal)
    assert (
        "The room accepts nothing more from this notebook: The instructor removed you from the room. join() joins it again."
        in said(checked(RIGHT))
    )
    assert (
        "You are in the room as ada" in said(join(room.address, room.room.code, "ada"))
        and room.room.place("1.x") is None
    )
    assert len(room.room.present()) == 1


def test_a_queue_has_an_end_and_keeps_the_newest(monkeypatch, unused):
    monkeypatch.setattr(event_sender, "MAX_WAITING", 10)
    sender = Sender(f"http://127.0.0.1:{unused}", "0.x")
    for number in range(50):
        sender.put(Event(float(number + 1), note="stuck"))
    assert [event.at for event in sender._waiting] == [float(number) for number in range(41, 51)]
    sender.close()


@pytest.fixture
def patient(monkeypatch):
    """A room that takes ten times as many events a second, so that a flood has ended in a second or two."""
    monkeypatch.setattr(rate_limits, "Budgets", lambda burst, per_s, reason: Budgets(burst, 10 * per_s, reason))


def test_a_flood_is_sent_later(patient, room):
    token = room.joined("ada")
    sender = Sender(room.address, token)
    for number in range(120):
        sender.put(Event(float(number + 1), "nearest", "failed"))
    until(lambda: len(room.room.members[0].events) == 120, 30)
    sender.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"address": 1}',
        b'{"address": "x", "name": "a", "token": "b", "until": 1}',
        b"\xff",
        b"[" * 9_000,
    ],
)
def test_a_file_that_is_torn_is_no_membership(content, sent):
    rooms.membership_file().parent.mkdir(parents=True, exist_ok=True)
    rooms.membership_file().write_bytes(content)
    assert checked(RIGHT) and not sent and "You are in the room" not in str(progress())


def test_a_folder_that_cannot_be_written_holds_for_the_kernel(room, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rooms, "write_atomically", full)
    assert "No space left" in said(join(room.address, room.room.code, "ada"))
    checked(RIGHT)
    until(lambda: states(room) == {"nearest": "passed"})
    leave()
    checked(WRONG)
    time.sleep(0.2)
    assert states(room) == {}


def test_nobody_else_reads_the_token(room):
    join(room.address, room.room.code, "ada")
    if os.name != "nt":
        assert rooms.membership_file().stat().st_mode & 0o077 == 0


# --- beside a kernel's other work ---------------------------------------------------------------


def test_sending_touches_no_random_state_and_no_output(room, capsys):
    join(room.address, room.room.code, "ada")
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    stuck()
    until(lambda: room.room.learners[0].note == "stuck")
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert capsys.readouterr().err == ""


def test_a_check_judges_as_ever_while_much_is_sent(room):
    """Each verdict, forbidden operations too, is the same with the sender's thread at work as without it."""
    shortcut = "def shares(scores):\n    import torch\n    return torch.softmax(torch.as_tensor(scores), 1).numpy()"
    alone = str(checked(shortcut, "shares"))
    verdicts.verdicts.clear()
    sender = Sender(room.address, room.joined("grace"))
    sender.put(Event(0.5, note="stuck"))
    stop = threading.Event()

    def busy() -> None:
        at = 1.0
        while not stop.is_set():
            sender.put(Event(at, note="stuck"))
            at += 1
            time.sleep(0.002)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        assert str(checked(shortcut, "shares")) == alone
        assert checked(RIGHT) and not checked(WRONG)
    finally:
        stop.set()
        thread.join()
        sender.close()


def test_a_script_that_ends_sends_what_waits(room):
    slowly = "import time, grader.notebook.event_sender as s; post = s.post; s.post = lambda *given: (time.sleep(0.3), post(*given))[1]; "
    program = (
        slowly
        + f"from grader import join, check; join({room.address!r}, {room.room.code!r}, 'ada'); check('nearest', lambda *_: 0)"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True, env=dict(os.environ))
    assert states(room) == {"nearest": "failed"}


def test_where_no_thread_starts_checks_go_on(room, monkeypatch):
    join(room.address, room.room.code, "ada")

    def none(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    assert checked(RIGHT) and "cannot start threads" in said(stuck())


def test_a_cell_that_breaks_sockets_breaks_no_check(room, monkeypatch):
    join(room.address, room.room.code, "ada")
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(http.client.HTTPConnection, "request", lambda *_, **__: 1 / 0)
    assert checked(RIGHT)
    until(lambda: rooms._state.sender.failing)
    assert not checked(WRONG)


def test_the_names_are_there_and_a_lesson_imports_none(monkeypatch):
    assert set(ROOM) <= set(grader.__all__) and all(callable(getattr(grader, name)) for name in ROOM)
