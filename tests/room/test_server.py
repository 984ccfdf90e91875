"""The room's server as it answers: bad input gets a sentence, floods cost their sender, the page is live, escaped and its own."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time

import pytest

from grader.room.message import MAX_EVENTS
from grader.util.web import MAX_BYTES
from tests.room.running import SAID, Running, running, until

EVENT = {"at": 1.0, "exercise": "shares", "status": "failed", "mistake": "MX7"}


@pytest.fixture
def room(tmp_path):
    with running(tmp_path / "room.jsonl") as made:
        yield made


def shown(room: Running, names: bool = True) -> str:
    status, _, body = room.ask("GET", f"/room/{room.live.key_with_names if names else room.live.key}")
    assert status == 200
    return body.decode()


def test_a_check_is_on_the_page(room):
    token = room.joined("ada")
    assert room.post("/events", token=token, events=[EVENT, {"at": 2.0, "note": "stuck"}]) == (200, {"taken": 2})
    page = shown(room)
    assert "<b>1</b> learner" in page and SAID["MX7"] in page and "ada" in page and "<b>1</b> stuck" in page
    assert "ada" not in shown(room, names=False) and room.room.code in shown(room, names=False)
    assert room.told == ["ada joined.", "ada is stuck at shares."]


@pytest.mark.parametrize(
    "data, status, said",
    [
        ({"code": "wrong-code-here", "name": "ada"}, 403, "not the room's code"),
        ({"name": "ada"}, 403, "not the room's code"),
        ({"code": 7, "name": "ada"}, 403, "not the room's code"),
        ({"code": None, "name": "\u200b"}, 400, "needs a name"),
        ({"code": "RIGHT", "name": "\u200b"}, 400, "needs a name"),
        ({"code": "RIGHT", "name": 7}, 400, "needs a name"),
        ({"code": "RIGHT", "name": "ada", "format": 2}, 400, "another version"),
    ],
)
def test_who_may_not_join_is_told_why(room, data, status, said):
    data = {**data, "code": room.room.code} if data.get("code") == "RIGHT" else data
    found, answer = room.post("/join", **data)
    assert (found, list(answer)) == (status, ["error"]) and said in answer["error"]
    assert not room.room.learners


def test_codes_cannot_be_tried_without_end_and_nobody_else_suffers(room):
    token = room.joined("grace")
    tried = [room.post("/join", code="a-b-c", name="x")[0] for _ in range(40)]
    assert tried.count(403) <= 6 and tried[-1] == 429
    status, answer = room.post("/join", code=room.room.code, name="x")
    assert status == 429 and re.search(r"; wait \d seconds\.$", answer["error"])  # the right one, too
    assert room.post("/events", token=token, events=[EVENT])[0] == 200 and "shares" in shown(room)


def test_a_hub_s_right_codes_get_in_despite_its_wrong_ones(room):
    """Forty learners behind one address, each of whom mistypes the code four times."""
    for name in range(40):
        assert [room.post("/join", code="a-b-c", name=f"l{name}")[0] for _ in range(4)] == [403] * 4
        room.joined(f"l{name}")
    assert len(room.room.learners) == 40 and not [line for line in room.told if "wrong codes" in line]


def test_invented_names_do_not_make_guesses_free(room):
    tried = [room.post("/join", code="a-b-c", name=f"n{number}")[0] for number in range(450)]
    assert (
        400 <= tried.count(403) <= 420
        and tried[-1] == 429
        and room.post("/join", code=room.room.code, name="z")[0] == 429
    )
    assert sum("wrong codes" in line for line in room.told) == 1


def test_the_page_counts_who_chose_which_option(room):
    choose = lambda option, at=1.0, number=2: {"at": at, "prediction": f"01_mixing.{number}", "option": option}
    tokens = [room.joined(name) for name in ("ada", "bob", "cyd")]
    for token, option in zip(tokens, "ABB", strict=True):
        assert room.post("/events", token=token, events=[choose(option)])[0] == 200
    assert "Prediction 01.2: A <b>1</b> B <b>2</b></span>" in shown(room, names=False)
    assert room.post("/events", token=tokens[0], events=[choose("C", 2.0), choose("D", 3.0, 3)])[0] == 200
    assert "Prediction 01.3: D <b>1</b></span>" in shown(room), "the newest one, and of each learner the first choice"
    assert room.room.options == [("D", 1)]


@pytest.mark.parametrize(
    "body, status, said",
    [
        (b"", 400, "only JSON"),
        (b"{", 400, "only JSON"),
        (b"[]", 400, "only JSON"),
        (b"\xff\xfe", 400, "only JSON"),
        (b"[" * 5_000, 400, "only JSON"),
        (b"{}", 400, "another version"),
        (b'{"format": 1}', 403, "does not know"),
        (b'{"format": 1, "token": [0]}', 403, "does not know"),
        (b'{"format": 1, "token": "0.guess", "events": []}', 403, "does not know"),
        (b'{"format": 1, "token": "' + b"x" * MAX_BYTES + b'"}', 413, f"{MAX_BYTES} bytes"),
    ],
)
def test_a_message_that_is_none_gets_a_sentence(room, body, status, said):
    room.joined()
    found, _, answer = room.ask("POST", "/events", body)
    assert found == status and said in json.loads(answer)["error"]
    assert room.post("/events", token=room.joined(), events=[EVENT])[0] == 200  # and the room goes on


@pytest.mark.parametrize(
    "events", [None, [], {}, [EVENT] * (MAX_EVENTS + 1), [EVENT, {"at": 1.0, "note": "x"}], [{**EVENT, "code": "x"}]]
)
def test_events_that_are_none_are_refused_whole(room, events):
    token = room.joined()
    status, answer = room.post("/events", token=token, events=events)
    assert status == 400 and answer["error"].endswith(".") and not room.room.learners[0].states


def test_a_site_that_a_learner_visits_cannot_post(room):
    body = json.dumps({"format": 1, "code": room.room.code, "name": "x"}).encode()
    status, _, answer = room.ask("POST", "/join", body, **{"Content-Type": "text/plain"})
    assert status == 400 and b"only JSON" in answer


def test_a_message_without_end_is_cut_off(room):
    with socket.create_connection(("127.0.0.1", room.port), 5) as sent:
        sent.sendall(b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert b"400" in sent.recv(200)
    with socket.create_connection(("127.0.0.1", room.port), 5) as sent:
        sent.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000)
        try:
            assert b" 200 " not in sent.recv(200)
        except ConnectionResetError:  # cut off while more was on its way
            pass
    assert room.post("/events", token=room.joined(), events=[EVENT])[0] == 200


def test_a_flood_costs_its_sender_alone(room):
    ada, grace = room.joined("ada"), room.joined("grace")
    connection = http.client.HTTPConnection("127.0.0.1", room.port, timeout=5)
    found = []
    for number in range(150):
        body = json.dumps({"format": 1, "token": ada, "events": [{**EVENT, "at": float(number + 1)}]})
        connection.request("POST", "/events", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        found.append(answer.status)
    connection.close()
    assert found.count(200) >= 60 and found[-1] == 429 and "wait" in said["error"]
    assert room.post("/events", token=grace, events=[EVENT])[0] == 200
    assert sum("sends more messages than" in line for line in room.told) == 1


def test_a_full_room_takes_nobody_more_but_those_who_were_in(room, monkeypatch):
    monkeypatch.setattr("grader.room.handlers.MAX_LEARNERS", 1)
    token = room.joined()
    status, answer = room.post("/join", code=room.room.code, name="b")
    assert status == 403 and "full" in answer["error"]
    assert room.post("/join", code=room.room.code, name="a", token=token) == (200, {"token": token})


def test_a_journal_that_fails_loses_nothing(room, monkeypatch):
    token = room.joined()

    def full(line):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room.room.journal, "add", full)
    status, answer = room.post("/events", token=token, events=[EVENT])
    assert status == 503 and "keep" in answer["error"] and sum("No space left" in line for line in room.told) == 1
    monkeypatch.undo()
    assert room.post("/events", token=token, events=[EVENT]) == (200, {"taken": 1})


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/room/", "/room/x", "/room/x/live", "/nothing", "/room/../x", "/room/%00", "/room/%C3%A9", "/favicon.ico"]
)
def test_who_does_not_know_the_page_s_address_sees_nothing(room, path):
    room.joined("ada")
    status, _, body = room.ask("GET", path)
    assert status == 404 and b"ada" not in body and room.room.code.encode() not in body and b"Traceback" not in body


def test_the_address_alone_tells_how_to_join_and_not_the_code(room):
    room.joined("ada")
    status, _, body = room.ask("GET", "/")
    assert status == 200 and b"join(" in body and room.room.code.encode() not in body and b"ada" not in body


def test_what_a_learner_calls_themselves_is_escaped(room):
    room.joined('</div><script>alert("1")</script>')
    room.joined("data: x\n\ndata: y")
    page = shown(room)
    assert 'alert("1")' not in page and "&lt;script&gt;" in page and page.count("<script") == 1
    with Stream(room) as events:
        assert "<script" not in events.next() and events.count == 1


def test_the_page_s_script_is_known_by_a_nonce_and_nothing_comes_from_elsewhere(room):
    _, headers, body = room.ask("GET", f"/room/{room.live.key}")
    (nonce,) = re.findall(r'<script nonce="([\w-]+)">', body.decode())
    policy = headers["Content-Security-Policy"]
    assert f"script-src 'nonce-{nonce}'" in policy and "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert nonce.encode() not in room.ask("GET", f"/room/{room.live.key}")[2]
    elsewhere = re.findall(r"""(?:src|href)=["'](?!data:)|url\(|@import""", body.decode())
    assert not elsewhere and headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"


class Stream:
    """The live page's events. count: how many have come."""

    def __init__(self, room: Running, names: bool = True) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", room.port, timeout=10)
        self._connection.request("GET", f"/room/{room.live.key_with_names if names else room.live.key}/live")
        self._answer, self.count = self._connection.getresponse(), 0
        self.status = self._answer.status
        assert self.status != 200 or self._answer.headers["Content-Type"].startswith("text/event-stream")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.sock.close() if self._connection.sock else None
        self._answer.close()

    def next(self) -> str:
        """The content of the next event."""
        lines = []
        while True:
            line = self._answer.readline().decode()
            if line.startswith("data: "):
                lines.append(line[6:])
            elif lines:
                self.count += 1
                return "".join(lines)


def test_the_page_shows_what_happens_and_after_a_reload_the_same(room):
    token = room.joined("ada")
    with Stream(room) as events:
        assert "<b>1</b> learner" in events.next()
        room.post("/events", token=token, events=[EVENT])
        assert SAID["MX7"] in events.next()
    with Stream(room) as again:
        assert SAID["MX7"] in again.next()


def test_a_page_without_names_hears_none(room):
    room.joined("xanthippe")
    with Stream(room, names=False) as events:
        assert "xanthippe" not in events.next()
        room.joined("theodora")
        assert "theodora" not in events.next()


def test_pages_that_are_closed_are_forgotten_and_too_many_are_refused(room, monkeypatch):
    monkeypatch.setattr("grader.room.broadcast.MAX_PAGES", 3)
    token = room.joined("ada")
    opened = [Stream(room, names=False) for _ in range(3)]
    assert all(each.next() for each in opened)
    for names in (True, False):
        with Stream(room, names) as fourth:
            assert fourth.status == 503
    for each in opened:
        each.__exit__()
    times = iter(range(1, 1000))

    def gone() -> bool:  # a closed page is noticed with the next thing that it would be sent
        room.post("/events", token=token, events=[{**EVENT, "at": float(next(times))}])
        time.sleep(0.3)
        return not room.live._pages

    assert until(gone)


@pytest.mark.parametrize("what", ["learners", "remove", "code"])
def test_what_the_instructor_asks_is_asked_by_post(room, what):
    assert room.ask("GET", f"/room/{room.live.key_with_names}/{what}")[0] == 405
    assert room.room.code in shown(room)
