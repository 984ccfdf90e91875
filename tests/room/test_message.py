"""What a room is told: nothing that could be code, and nothing that is not the course's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grader.course.course import open_course
from grader.judging.verdict import Line, Statuses, Table, Verdict
from grader.room import message
from grader.room.message import Event, MessageError
from grader.room.rate_limits import MAX_KEYS, Budgets, sender

RIGHT = {"at": 12.5, "exercise": "shares", "status": "failed", "mistake": "MX7"}


def test_an_event_holds_seven_things_and_no_other():
    fields = ["at", "exercise", "status", "mistake", "note", "prediction", "option"]
    assert [field.name for field in dataclasses.fields(Event)] == fields


def test_a_choice_is_read_and_is_one_letter_of_a_prediction_of_the_course():
    event = Event(1.5, prediction="01_mixing.2", option="B")
    assert message.read(open_course(), message.to_json(event)) == event
    for wrong in (
        {"prediction": "01_mixing.x"},
        {"prediction": "01_mixing"},
        {"prediction": "99_none.1"},
        {"prediction": 7},
        {"option": "BB"},
        {"option": "b"},
        {"option": 7},
        {"note": "stuck"},
        {"exercise": "shares"},
    ):
        with pytest.raises(MessageError):
            message.read(open_course(), message.to_json(event) | wrong)


def test_of_a_verdict_nothing_that_a_learner_wrote_is_told():
    secret = "SENTINEL"
    verdict = Verdict(
        "shares",
        "failed",
        secret,
        experiment=secret,
        details=(secret,),
        tables=(Table(secret, "input", np.zeros((1, 1)), "float64", (1,)),),
        mistakes=("MX7", "MX8"),
        sentences=(secret, secret),
        verified=(secret,),
        next_step=secret,
        line=Line(secret, 1, secret),
        slip=secret,
        printed=secret,
        warned=(secret,),
    )
    told = message.to_json(message.event_of(verdict, 12.5))
    assert told == RIGHT and secret not in str(told)


def test_a_mistake_that_is_no_id_is_not_told():
    assert message.event_of(Verdict("shares", "failed", "", mistakes=("my code",)), 1.0).mistake == ""


@pytest.mark.parametrize("status", Statuses)
def test_what_is_written_is_read(status):
    event = Event(1.5, "shares", status)
    assert message.read(open_course(), message.to_json(event)) == event


def test_pairs_and_notes_are_read():
    assert message.read(open_course(), {**RIGHT, "mistake": "MX7+MX16"}).mistake == "MX7+MX16"
    assert message.read(open_course(), {"at": 1, "note": "stuck"}) == Event(1.0, note="stuck")


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "x",
        {},
        {**RIGHT, "code": "def f(): pass"},
        {**RIGHT, "at": "now"},
        {**RIGHT, "at": float("nan")},
        {**RIGHT, "at": -1},
        {**RIGHT, "at": True},
        {**RIGHT, "at": 1e300},
        {**RIGHT, "exercise": "<script>"},
        {**RIGHT, "exercise": ["shares"]},
        {**RIGHT, "status": "great"},
        {**RIGHT, "status": {}},
        {**RIGHT, "mistake": "<b>"},
        {**RIGHT, "mistake": 7},
        {**RIGHT, "note": "stuck"},
        {"at": 1.0, "note": "dancing"},
        {"at": 1.0, "note": ["stuck"]},
        {"at": 1.0},
    ],
)
def test_what_is_no_event_is_refused(wrong):
    with pytest.raises(MessageError, match=r"\.$"):
        message.read(open_course(), wrong)


@pytest.mark.parametrize("wrong", [None, {}, [], [RIGHT] * (message.MAX_EVENTS + 1), [RIGHT, {}]])
def test_what_is_no_message_is_refused(wrong):
    with pytest.raises(MessageError):
        message.read_all(open_course(), wrong)


def test_names_are_one_line_that_can_be_seen():
    assert message.validate_name("  ada\n  lovelace ") == "ada lovelace"
    assert len(message.validate_name("x" * 1000)) <= message.MAX_NAME
    for nothing in ("", "  ", "\u200b\u202e", "\x00\x1b", None, 7, "\u2800"):
        with pytest.raises(MessageError, match="needs a name"):
            message.validate_name(nothing)
    assert "\x1b" not in message.validate_name("\x1b[2Jada") and "\u202e" not in message.validate_name("a\u202eda")


# --- the code -----------------------------------------------------------------------------------


def test_a_code_can_be_read_aloud_and_typed_as_heard():
    assert len(message.WORDS) == len(set(message.WORDS)) == 128 and all(
        word.isalpha() and word.islower() for word in message.WORDS
    )
    made = message.new_code()
    first, second, third = made.split("-")
    assert {first, second, third} <= set(message.WORDS)
    for typed in (made, made.upper(), f" {first} {second}  {third} ", f"{first.title()}, {second}; {third}."):
        assert message.is_code(typed, made)
    for wrong in ("", first, f"{made}-{first}", made.replace(first, "x"), "é", "x" * 10_000):
        assert not message.is_code(wrong, made)


def test_codes_differ():
    assert len({message.new_code() for _ in range(50)}) > 45


# --- budgets ------------------------------------------------------------------------------------


def test_a_budget_is_used_up_and_fills_again():
    now = [0.0]
    budgets = Budgets(burst=3, per_s=0.5, clock=lambda: now[0])
    for _ in range(3):
        assert budgets.wait_s("a") == 0
        budgets.take("a")
    assert budgets.wait_s("a") == 2 and budgets.wait_s("b") == 0
    now[0] = 2.0
    assert budgets.wait_s("a") == 0
    budgets.take("a", 1000)
    assert budgets.wait_s("a") == 8  # no flood is punished without end
    now[0] = 100.0
    budgets.take("a", 0)
    assert budgets.wait_s("a") == 0


def test_budgets_of_many_senders_take_no_memory_without_end():
    budgets = Budgets(burst=1, per_s=1)
    for number in range(MAX_KEYS + 50):
        budgets.take(str(number))
    assert len(budgets._left) == MAX_KEYS


def test_a_household_counts_as_one_sender():
    assert sender("2001:db8::1") == sender("2001:db8::2") != sender("2001:db8:1::1")
    assert sender("10.0.0.1") != sender("10.0.0.2") and sender("") == "" and sender("fe80::1%eth0") == sender("fe80::2")
