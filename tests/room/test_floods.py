"""What one sender does to a room costs the others nothing of theirs: silent connections, slow ones, places taken."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket

import pytest

from grader.notebook.event_sender import Sender
from grader.room.message import Event
from tests.room.running import SAID, Running, running, until
from tests.room.test_server import Stream

EVENT = {"at": 1.0, "exercise": "shares", "status": "failed", "mistake": "MX7"}
ROOM_FOR = 40  # connections


def post(room: Running, path: str, sender: str, **data) -> tuple[int, dict]:
    """One message from an address of this computer."""
    with contextlib.closing(
        connection := http.client.HTTPConnection("127.0.0.1", room.port, timeout=5, source_address=(sender, 0))
    ):
        return answer(connection, path, **data)


def answer(connection: http.client.HTTPConnection, path: str, **data) -> tuple[int, dict]:
    connection.request("POST", path, json.dumps({"format": 1, **data}), {"Content-Type": "application/json"})
    got = connection.getresponse()
    return got.status, json.loads(got.read())


def joins(room: Running, sender: str, name: str = "x", **data) -> tuple[int, dict]:
    return post(room, "/join", sender, **{"code": room.room.code, "name": name, **data})


def silent(room: Running, sender: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", room.port), 5, source_address=(sender, 0))


def test_who_holds_all_connections_keeps_newcomers_out_while_it_lasts_and_nothing_is_lost(tmp_path, monkeypatch, capfd):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (ROOM_FOR + 60, ROOM_FOR + 60))
    monkeypatch.setattr("grader.room.server.HEAD_S", 2.0)
    with running(tmp_path / "room.jsonl") as room:
        sender = Sender(room.address, room.joined("ada"))
        with Stream(room) as page:
            page.next()
            held = [silent(room, "127.0.0.2") for _ in range(2 * ROOM_FOR)]
            until(lambda: len(room.server._connections) == ROOM_FOR)
            sender.put(Event(1.0, "shares", "failed", "MX7"))
            until(lambda: sender.failing)
            with pytest.raises(OSError):
                joins(room, "127.0.0.3")
            assert len(room.server._connections) == ROOM_FOR and not room.room.members[0].states
            until(lambda: all(map(_ended, held)))  # the silent ones have had their time
            assert until(lambda: sender.drain(1)) and room.room.members[0].states["shares"].status == "failed"
            until(lambda: SAID["MX7"] in page.next())  # what was open stays so
        assert joins(room, "127.0.0.3")[0] == 200
        sender.close()
        for each in held:
            each.close()
    assert not any(capfd.readouterr()) and room.told == ["ada joined.", "x joined."]


def _ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("head", [b"", b"POST /events HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_s_head_has_a_time(tmp_path, monkeypatch, head):
    monkeypatch.setattr("grader.room.server.HEAD_S", 0.3)
    with running(tmp_path / "room.jsonl") as room, contextlib.closing(silent(room, "127.0.0.2")) as slow:
        slow.sendall(head)
        until(lambda: _ended(slow), 4)


def test_one_holder_of_the_code_leaves_places_for_others(tmp_path, monkeypatch):
    monkeypatch.setattr("grader.room.handlers.MAX_NEWCOMERS", 5, raising=False)
    monkeypatch.setattr("grader.room.handlers.MAX_LEARNERS", 12)
    monkeypatch.setattr("grader.room.handlers.MAX_LEARNERS", 12)
    with running(tmp_path / "room.jsonl") as room:
        taken = [joins(room, "127.0.0.2", f"fake {number}") for number in range(20)]
        assert [status for status, _ in taken] == [200] * 5 + [403] * 15
        assert "checked nothing yet" in taken[-1][1]["error"] and "tell the instructor" in taken[-1][1]["error"]
        assert sum("127.0.0.2" in line for line in room.told) == 1
        tokens = []
        for number in range(7):  # a class behind one address may grow for as long as it works
            status, joined = joins(room, "127.0.0.3", f"learner {number}")
            assert status == 200
            tokens.append(joined["token"])
            assert post(room, "/events", "127.0.0.3", token=joined["token"], events=[EVENT])[0] == 200
        assert joins(room, "127.0.0.3") == (
            403,
            {"error": "The room is full: 12 learners have joined. Ask the instructor to remove some."},
        )
        assert room.post(f"/room/{room.live.key_with_names}/remove", places=[0, 1, 2, 3, 4, 4]) == (200, {"removed": 5})
        assert joins(room, "127.0.0.2", "fake again", token=taken[0][1]["token"])[0] == 200  # the code is what lets in
        assert joins(room, "127.0.0.3", "grace")[0] == 200
        assert [learner.name for learner in room.room.learners] == [
            *(f"learner {number}" for number in range(7)),
            "fake again",
            "grace",
        ]
        assert post(room, "/events", "127.0.0.3", token=tokens[0], events=[{**EVENT, "at": 2.0}])[0] == 200


def test_only_the_page_with_names_removes_and_a_restart_keeps_it(tmp_path):
    with running(tmp_path / "room.jsonl") as room:
        token, old = room.joined("ada"), room.room.code
        for what in ("learners", "remove", "code"):
            assert room.post(f"/room/{room.live.key}/{what}", places=[0])[0] == 403
            assert room.post(f"/room/guess/{what}", places=[0])[0] == 404
            assert (
                room.ask(
                    "POST",
                    f"/room/{room.live.key_with_names}/{what}",
                    b'{"format": 1, "places": [0]}',
                    **{"Content-Type": "text/plain"},
                )[0]
                == 400
            )
        page = f"/room/{room.live.key_with_names}"
        assert room.post(f"{page}/learners")[1] == {"learners": [{"place": 0, "name": "ada", "checked": False}]}
        for places in (None, "0", [0.5], [True], {}):
            assert room.post(f"{page}/remove", places=places)[0] == 400
        assert room.post(f"{page}/remove", places=[7, -1]) == (200, {"removed": 0}) and room.room.place(token) == 0
        assert (
            room.post(f"{page}/remove", places=[0]) == (200, {"removed": 1})
            and room.told[-1] == "Removed 1 learner: ada."
        )
        assert room.post(f"{page}/code") == (200, {"code": room.room.code}) and room.room.code != old
    with running(tmp_path / "room.jsonl") as room:
        status, said = room.post("/events", token=token, events=[EVENT])
        assert (status, said) == (
            403,
            {"error": "The instructor removed you from the room."},
        ) and not room.room.learners
        assert room.post("/join", code=old, name="ada", token=token)[0] == 403
        assert room.post("/join", code=room.room.code, name="ada", token=token)[0] == 200
        assert room.room.code == room.room.code
