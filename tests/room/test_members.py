"""Who is in a room: the same after a restart, each event once, the newest counts."""

from __future__ import annotations

import json
import os
import stat

import pytest

from grader.course.course import open_course
from grader.room.members import REMEMBERED, Room, RoomJournal, State
from grader.room.message import Event
from grader.util.errors import InputError
from tests.mixing_course import COURSE
from tests.room.running import SAID

FIRST, SECOND, *_ = COURSE.exercises["01_mixing"]


@pytest.fixture
def opened(tmp_path):
    """Opens the room of the test's folder, again too."""
    journals: list[RoomJournal] = []

    def start() -> Room:
        for journal in journals:
            journal.close()
        journals.append(RoomJournal(tmp_path / "room.jsonl"))
        return Room(open_course(), journals[-1], SAID)

    yield start
    for journal in journals:
        journal.close()


def at(time_s: float, exercise: str = FIRST, status: str = "failed", mistake: str = "") -> Event:
    return Event(time_s, exercise, status, mistake)


def test_a_restart_opens_the_same_room(opened):
    room = opened()
    ada, grace = room.join("ada"), room.join("grace")
    room.take(room.place(ada), [at(1, mistake="MX7"), at(2, SECOND, "error"), Event(3, note="stuck")])
    room.take(room.place(grace), [at(1, status="passed"), Event(2, note="left")])
    before = room.learners
    (learner,) = before
    assert learner.name == "ada" and learner.exercise == SECOND and learner.note == "stuck"
    assert learner.states == {FIRST: State("failed", "MX7", SAID["MX7"]), SECOND: State("error")}
    again = opened()
    assert again.learners == before and again.code == room.code and again.place(ada) == 0 and again.place(grace) == 1


def test_a_second_copy_of_an_event_counts_once(opened, tmp_path):
    room = opened()
    place = room.place(room.join("ada"))
    assert room.take(place, [at(1), at(1), at(2)]) == [at(1), at(2)]
    assert room.take(place, [at(1), at(3)]) == [at(3)]
    assert opened().take(place, [at(1), at(2), at(3)]) == []
    lines = [json.loads(line) for line in (tmp_path / "room.jsonl").read_text().splitlines()]
    assert [line["at"] for line in lines if "exercise" in line] == [1.0, 2.0, 3.0]


def test_what_is_remembered_has_an_end(opened):
    room = opened()
    place = room.place(room.join("ada"))
    for number in range(REMEMBERED + 20):
        room.take(place, [at(1.0 + number)])
    assert len(room.members[place].events) == REMEMBERED


def test_an_event_that_comes_late_does_not_undo_a_newer_one(opened):
    room = opened()
    place = room.place(room.join("ada"))
    room.take(place, [at(5, status="passed")])
    room.take(place, [at(4, status="failed"), at(3, SECOND, "error")])
    (learner,) = room.learners
    assert learner.states[FIRST].status == "passed" and learner.exercise == SECOND


def test_only_mistakes_of_the_course_are_shown(opened):
    room = opened()
    place = room.place(room.join("ada"))
    for time_s, id, shown in (
        (1, "MX7", ("MX7", SAID["MX7"])),
        (2, "MX7+MX16", ("MX7+MX16", f"{SAID['MX7']} {SAID['MX16']}")),
        (3, "FUN1", ("", "")),
        (4, "MX7+FUN1", ("", "")),
        (5, "", ("", "")),
    ):
        room.take(place, [at(time_s, mistake=id)])
        state = room.learners[0].states[FIRST]
        assert (state.mistake, state.sentence) == shown


def test_a_pass_takes_stuck_back_and_a_failure_does_not(opened):
    room = opened()
    place = room.place(room.join("ada"))
    room.take(place, [Event(1, note="stuck"), at(2)])
    assert room.learners[0].note == "stuck"
    room.take(place, [at(3, status="passed")])
    assert room.learners[0].note == ""
    room.take(place, [Event(4, note="stuck"), Event(5, note="fine")])
    assert room.learners[0].note == "fine"


def test_who_comes_back_has_their_place_and_a_namesake_another(opened):
    room = opened()
    token = room.join("ada")
    room.take(room.place(token), [at(1, status="passed"), Event(2, note="left")])
    assert room.learners == []
    assert room.join("ada l.", token) == token
    assert [learner.name for learner in room.learners] == ["ada l."] and room.learners[0].states
    room.join("ada l.")
    assert len(room.learners) == 2


@pytest.mark.parametrize("token", ["", "0", "0.", "0.wrong", "7.x", "-1.x", "x", "²", "9" * 30 + ".x", "0.\ud800"])
def test_a_token_that_is_none_has_no_place(opened, token):
    room = opened()
    room.join("ada")
    assert room.place(token) is None


# --- the journal --------------------------------------------------------------------------------


def test_what_a_kill_tore_off_is_left_out_and_the_rest_stays(opened, tmp_path):
    room = opened()
    place = room.place(room.join("ada"))
    room.take(place, [at(1), at(2)])
    path = tmp_path / "room.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    again = opened()
    assert again.take(place, [at(1), at(2)]) == [at(2)]
    assert path.read_bytes().endswith(b"}\n") and len(opened().learners) == 1


def test_a_first_line_that_was_torn_begins_anew(tmp_path):
    (tmp_path / "room.jsonl").write_text('{"room": 1, "be')
    journal = RoomJournal(tmp_path / "room.jsonl")
    journal.close()
    assert journal.code and json.loads((tmp_path / "room.jsonl").read_text())["code"] == journal.code


def test_a_damaged_line_costs_itself_alone(opened, tmp_path):
    room = opened()
    room.take(room.place(room.join("ada")), [at(1)])
    path = tmp_path / "room.jsonl"
    for harm in (
        b"\xff\xfe\n",
        b"[]\n",
        b'{"learner": 9, "at": 1}\n',
        b'{"learner": 0, "at": "x"}\n',
        b'{"learner": "a", "name": "b"}\n',
        b"[" * 5000 + b"\n",
    ):
        path.write_bytes(path.read_bytes() + harm)
    room = opened()
    assert len(room.learners) == 1 and room.journal.dropped == 6


@pytest.mark.parametrize(
    "content", ["my thesis\n", "my thesis", '{"room": 99, "code": "x"}\n', '{"grader_journal": 1, "settings": {}}\n']
)
def test_another_file_is_left_as_it_is(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError, match="not the journal of a room"):
        RoomJournal(tmp_path / "x")
    assert (tmp_path / "x").read_text() == content


def test_only_one_room_writes_to_a_journal(tmp_path):
    journal = RoomJournal(tmp_path / "room.jsonl")
    with pytest.raises(InputError, match="another room already uses"):
        RoomJournal(tmp_path / "room.jsonl")
    journal.close()
    RoomJournal(tmp_path / "room.jsonl").close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_nobody_else_may_read_the_journal(tmp_path):
    RoomJournal(tmp_path / "room.jsonl").close()
    assert stat.S_IMODE((tmp_path / "room.jsonl").stat().st_mode) == 0o600


def test_what_cannot_be_written_did_not_happen(opened, monkeypatch):
    room = opened()
    place = room.place(room.join("ada"))

    class Full:
        def __init__(self, file):
            self._file = file

        def write(self, raw):
            return self._file.write(raw[:10])

        def __getattr__(self, name):
            return getattr(self._file, name)

    monkeypatch.setattr(room.journal, "_file", Full(room.journal._file))
    with pytest.raises(OSError, match="space"):
        room.take(place, [at(1)])
    monkeypatch.undo()
    assert len(room.learners) == 1 and not room.learners[0].states
    assert room.take(place, [at(1)]) == [at(1)] and opened().take(place, [at(1)]) == []


def test_predictions_are_counted_by_option_after_a_restart_too(opened):
    room = opened()
    assert room.prediction == "" and room.options == []
    for name, options in {"ada": "AB", "bob": "B", "cyd": "B", "dan": "C"}.items():
        place = room.place(room.join(name))
        room.take(place, [Event(5 + at, prediction="01_mixing.1", option=one) for at, one in enumerate(options)])
        if name == "dan":
            room.remove([place])
    assert opened().options == room.options == [("A", 1), ("B", 2)]
    assert room.prediction == "01_mixing.1"
