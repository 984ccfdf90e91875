"""`grader watch`: what was saved is graded again; what is torn, gone or endless disturbs nobody."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading.batch import Settings
from grader.grading.watch.regrading import MOST_AT_ONCE, Regrading, Task, WatchResult, stamp_of
from grader.grading.watch.screen import draw, lines
from grader.grading.watch.watcher import LearnerState, News, WatchedRoom, Watcher, board_of, learners, next_step
from grader.judging.verdict import LessonReport, Verdict
from grader.reports.terminal import paint
from grader.room.board import common_failures
from grader.room.board_page import content
from grader.util import libraries
from tests import toy_course as toy
from tests.conftest import children, heed_interrupts
from tests.small_class import left_behind

WRONG = "def row_sums(x):\n    return x.sum(axis=0)"
installed = libraries.installed
LOOP = "def double(x):\n    while True: pass"


@pytest.fixture
def watching(monkeypatch, tmp_path):
    """Starts a watch of the test's folder; `until` looks until something holds. Of a room it would import torch twice, in advance: no
    lesson of the toy's needs it."""
    toy.install(monkeypatch)
    monkeypatch.setattr(libraries, "installed", lambda name: name != "torch" and installed(name))
    started: list[Watcher] = []

    def start(**options) -> Watcher:
        started.append(Watcher(tmp_path, Settings(open_course(), **{"timeout_s": 2.0, **options})))
        return started[-1]

    yield start
    for watcher in started:
        watcher.close()
    assert not children()


def until(watcher: Watcher, holds, within_s: float = 20.0) -> WatchedRoom:
    """The first room for which something holds."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        room = watcher.poll(0.1)
        if room is not None and holds(room):
            return room
    raise AssertionError("it did not come to hold")


def idle(room: WatchedRoom) -> bool:
    return bool(room.learners) and not room.waiting


def save(folder: Path, content, file: str = f"{toy.NAME}.ipynb") -> Path:
    """Saves a notebook; its time stamp differs from that of any earlier save."""
    folder.mkdir(parents=True, exist_ok=True)
    return toy.write(folder / file, content)


def statuses(room: WatchedRoom, at: int = 0, lesson: str = toy.NAME) -> list[str]:
    return [verdict.status for verdict in room.learners[at].lessons[lesson].verdicts]


def test_a_save_is_graded_again_and_shows_the_next_thing_to_do(watching, tmp_path):
    save(tmp_path, toy.pristine())
    watcher = watching()
    room = until(watcher, idle)
    assert room.alone and statuses(room) == ["not_started"] * 3
    save(tmp_path, toy.solved(row_sums=WRONG))
    room = until(watcher, lambda room: room.news)
    assert statuses(room) == ["passed", "failed", "passed"]
    lesson, verdict = next_step(room.learners[0])
    assert (lesson, verdict.exercise, verdict.mistakes) == (toy.NAME, "row_sums", ("TY1",))
    said = "\n".join(lines(open_course(), room, None))
    assert f"{toy.NAME}: 3/6 points" in said
    assert "Next: row_sums" in said and "TY1: This is TY1." in said and "hint(row_sums)" in said
    save(tmp_path, toy.solved())
    room = until(watcher, lambda room: room.news)
    assert next_step(room.learners[0]) is None and "Every exercise passed." in "\n".join(
        lines(open_course(), room, None)
    )


def test_what_was_not_saved_is_not_graded_again(watching, tmp_path):
    save(tmp_path / "ada", toy.solved())
    save(tmp_path / "grace", toy.pristine())
    watcher = watching()
    until(watcher, idle)
    assert all(watcher.poll(0.05) is None for _ in range(5))
    save(tmp_path / "grace", toy.solved())
    room = until(watcher, idle)
    assert [news.learner for news in room.news] == ["grace"]


class ByHand(Regrading):
    """Grades nothing by itself; `grade_one` says whose turn it is, and what became of it."""

    def start(self, task: Task, at_once: int) -> bool:
        if self._running:
            return False
        self._running[Future()] = task
        return True

    def grade_one(self) -> str:
        [(future, task)] = self._running.items()
        future.set_result(WatchResult(task, stamp_of(task.file)))
        return task.learner.name


def test_one_who_saves_all_the_time_keeps_nobody_waiting(watching, tmp_path):
    """Eve's five notebooks are always the newest, even of tomorrow."""
    for name in ("ada", "bob", "cyd", "dan"):
        save(tmp_path / name, toy.solved())
    hers = [save(tmp_path / "eve", toy.solved(), f"{number}.ipynb") for number in range(5)]
    watcher = watching()
    watcher._grading = by_hand = ByHand(Settings(open_course()))
    graded = []
    for save_number in range(15):
        for path in hers:
            os.utime(path, ns=(0, time.time_ns() + 86_400 * 10**9 + save_number))
        if save_number == 9:
            save(tmp_path / "ada", toy.solved())
        watcher.poll(0.01)
        graded.append(by_hand.grade_one())
    assert sorted(graded[:5]) == ["ada", "bob", "cyd", "dan", "eve"]
    assert set(graded[5:9]) == {"eve"} and "ada" in graded[9:12]


def test_a_half_written_save_keeps_the_last_result_and_is_read_again(watching, tmp_path):
    path = save(tmp_path, toy.solved())
    watcher = watching()
    until(watcher, idle)
    whole = json.dumps(toy.solved(row_sums=WRONG))
    path.write_text(whole[: len(whole) // 2])
    deadline = time.monotonic() + 1.2
    while time.monotonic() < deadline:
        room = watcher.poll(0.1)
        assert room is None or statuses(room) == ["passed"] * 3
    path.write_text(whole)
    assert statuses(until(watcher, lambda room: room.news)) == ["passed", "failed", "passed"]


def test_a_file_that_stays_torn_is_told_beside_the_last_result(watching, tmp_path, monkeypatch):
    monkeypatch.setattr("grader.grading.watch.watcher.TORN_S", 0.5)
    path = save(tmp_path, toy.solved())
    watcher = watching()
    until(watcher, idle)
    path.write_text('{"cells": [')
    room = until(watcher, lambda room: room.learners[0].notes)
    assert statuses(room) == ["passed"] * 3
    assert "is not JSON" in room.learners[0].notes[0] and "the previous save" in room.learners[0].notes[0]
    save(tmp_path, toy.pristine())
    room = until(watcher, lambda room: room.news)
    assert room.learners[0].notes == () and statuses(room) == ["not_started"] * 3


def test_a_renamed_notebook_stays_and_a_deleted_one_goes(watching, tmp_path):
    path = save(tmp_path, toy.solved())
    other = save(tmp_path, {**toy.notebook([], "02_second")}, "02_second.ipynb")
    watcher = watching()
    room = until(watcher, idle)
    assert sorted(room.learners[0].lessons) == [toy.NAME, "02_second"]
    save(tmp_path, toy.solved(), "02_second.ipynb")  # another lesson's notebook under its name
    until(watcher, lambda room: idle(room) and list(room.learners[0].lessons) == [toy.NAME])
    save(tmp_path, {**toy.notebook([], "02_second")}, "02_second.ipynb")
    until(watcher, lambda room: idle(room) and len(room.learners[0].lessons) == 2)
    path.rename(tmp_path / "mine 01_toy.ipynb")
    other.unlink()
    room = until(watcher, lambda room: idle(room) and "02_second" not in room.learners[0].lessons)
    assert statuses(room) == ["passed"] * 3
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert until(watcher, lambda room: not room.learners).learners == ()


def test_checkpoints_backups_and_other_files_are_no_submissions(tmp_path):
    save(tmp_path, toy.solved())
    save(tmp_path / ".ipynb_checkpoints", toy.solved(), "01_toy-checkpoint.ipynb")
    save(tmp_path / "backups", toy.solved(), "01_toy-2026-11-22-101500.ipynb")
    (tmp_path / ".~01_toy.ipynb").write_text("{}")
    (tmp_path / "notes.txt").write_text("x")
    assert learners(tmp_path)[0] == {tmp_path: {tmp_path / "01_toy.ipynb": stamp_of(tmp_path / "01_toy.ipynb")}}
    found, alone, _ = learners(tmp_path)
    assert alone and list(found) == [tmp_path]


def test_a_workshop_s_folder_is_told_from_a_learner_s(tmp_path):
    save(tmp_path / "course" / "notebooks", toy.solved())
    save(tmp_path / "course" / "solutions", toy.solved())
    assert learners(tmp_path / "course")[1]
    save(tmp_path / "room" / "ada" / "notebooks", toy.solved())
    save(tmp_path / "room" / "grace", toy.solved())
    save(tmp_path / "room", toy.solved(), "for everyone.ipynb")
    found, alone, _ = learners(tmp_path / "room")
    assert not alone and sorted(place.name for place in found) == ["ada", "grace"]


def test_an_endless_loop_costs_its_learner_and_the_others_go_on(watching, tmp_path):
    save(tmp_path / "ada", toy.pristine())
    save(tmp_path / "grace", toy.pristine())
    watcher = watching(timeout_s=2.5)
    until(watcher, idle)
    save(tmp_path / "ada", toy.solved(double=LOOP))
    until(watcher, lambda room: room.waiting)
    save(tmp_path / "grace", toy.solved(row_sums=WRONG))
    room = until(watcher, lambda room: room.news)
    assert [news.learner for news in room.news] == ["grace"]  # ada's loop still runs
    room = until(watcher, lambda room: room.news)
    assert room.news[0].learner == "ada" and statuses(room) == ["timeout", "passed", "passed"]
    found = common_failures(board_of(room).learners)
    assert {(wrong.exercise, wrong.state.status, wrong.learners) for wrong in found} == {
        ("double", "timeout", ("ada",)),
        ("row_sums", "failed", ("grace",)),
    }


def test_ending_in_the_middle_of_a_loop_is_quick_and_leaves_nothing(watching, tmp_path, tmp_path_factory, monkeypatch):
    scratch = tmp_path_factory.mktemp("scratch")  # of this test alone
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    save(tmp_path, toy.solved(double=LOOP))
    watcher = watching(timeout_s=60.0)
    until(watcher, lambda room: room.waiting)
    deadline = time.monotonic() + 20
    while len(children()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)  # until the worker is there
    time.sleep(0.5)
    started = time.monotonic()
    watcher.close()
    assert time.monotonic() - started < 30.0  # half of what the loop has, and a busy machine ends it late
    assert not children()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("busy", [True, False])
def test_a_grading_process_that_ends_is_replaced_and_what_it_had_is_graded(watching, tmp_path, busy):
    save(tmp_path, toy.solved())
    watcher = watching(timeout_s=1.0)
    until(watcher, idle)
    if busy:
        save(tmp_path, toy.solved(double=LOOP))
        until(watcher, lambda room: room.waiting)
    for process in watcher._grading._pool._pool._processes.values():
        process.kill()
    if not busy:
        save(tmp_path, toy.solved(double=LOOP))
    room = until(watcher, lambda room: room.news, 60.0)
    assert statuses(room) == ["timeout", "passed", "passed"] and room.learners[0].notes == ()


def test_a_folder_that_is_away_for_a_moment_costs_nothing(watching, tmp_path, monkeypatch):
    save(tmp_path, toy.solved())
    watcher = watching()
    until(watcher, idle)

    def away(folder):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("grader.grading.watch.watcher.learners", away)
    room = until(watcher, lambda room: room.note)
    assert "Input/output error" in room.note and statuses(room) == ["passed"] * 3


def many(count: int) -> tuple[LearnerState, ...]:
    """A room in which every third learner has the same mistake; one has a name that attacks the terminal."""

    def verdicts(at: int):
        status = "failed" if at % 3 == 0 else "passed"
        ids = ("SM1",) if status == "failed" else ()
        return (
            Verdict("attention_scores", "passed", "attention_scores passed."),
            Verdict(
                "softmax_rows",
                status,
                "Row 0 sums to \x1b[31m2.",
                mistakes=ids,
                sentences=("The \x1b]0;x\x07rows.",) * len(ids),
            ),
        )

    points = {"attention_scores": 1, "softmax_rows": 2}
    return tuple(
        LearnerState(
            f"learner\x1b[2J-{at:02}", {"01_three_tokens": LessonReport("01_three_tokens", verdicts(at), points)}
        )
        for at in range(count)
    )


@pytest.mark.parametrize("height", [24, 60])
def test_a_full_room_fits_the_terminal_and_names_the_mistake(height):
    room = WatchedRoom("room", many(40), alone=False, waiting=0)
    shown = draw(open_course(), room, 100, height - 1)
    assert len(shown.splitlines()) <= height
    assert "14 × softmax_rows, failed. SM1: The rows." in shown
    assert "\x1b[2J" not in shown and "\x1b]0" not in shown and "softmax_rows" in shown


def test_lines_of_a_room_carry_no_escapes():
    said = "\n".join(lines(open_course(), WatchedRoom("room", many(3), False, 0, news=()), None))
    assert "\x1b" not in said


def test_several_lessons_are_shown_by_their_exercises():
    learner = many(2)[1]
    other = LessonReport(
        "00_start_here", (Verdict("hard_lookup", "passed", "hard_lookup passed."),), {"hard_lookup": 1}
    )
    both = LearnerState("ada", {"00_start_here": other, **learner.lessons})
    shown = draw(open_course(), WatchedRoom("room", (both, learner), alone=False, waiting=0), 80, 29)
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if "✓" in line}
    assert rows["softmax_rows"][:6] == ["✓", "2", "✗", "0", "○", "0"] and "scale_scores" in rows
    assert rows["hard_lookup"] == ["✓", "1", "✗", "0", "○", "1"]
    assert shown.splitlines()[0] == paint("2 learners · 00_start_here, 01_three_tokens", "bold")


def test_what_cannot_be_read_is_not_everything_passed():
    passed = LessonReport(
        "00_start_here", (Verdict("hard_lookup", "passed", "hard_lookup passed."),), {"hard_lookup": 1}
    )
    note = "01_three_tokens.ipynb is not JSON."
    torn, empty = LearnerState("ada", {"00_start_here": passed}, notes=(note,)), LearnerState("bob", {}, notes=(note,))
    room = WatchedRoom("room", (torn, empty), alone=False, waiting=0, news=(News("ada", passed, None, 0.1),))
    said = "\n".join(lines(open_course(), room, None))
    assert (
        "The notebooks of 2 learners cannot be read; nobody else has anything wrong now." in said
        and f"bob: {note}" in said
    )
    assert "Every exercise passed" not in "\n".join(
        lines(open_course(), replace(room, learners=(torn,), alone=True), None)
    )
    shown = draw(open_course(), room, 100, 29)
    assert "cannot be read; nobody else" in shown
    assert f"bob: {note}" in shown
    shown = content(open_course(), board_of(room), names=True)
    assert "cannot be read <b>2</b>" in shown and "everything passed" not in shown and "no check yet" not in shown


def test_a_missing_folder_is_a_sentence(capsys, tmp_path):
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals to a process of its own are of POSIX")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_shows_a_save_and_ends_with_nothing_left(tmp_path, ending):
    """The real command, piped, on a real lesson: first result, a save, the end."""
    name = "01_three_tokens"
    place, scratch = tmp_path / "ada", tmp_path / "tmp"
    place.mkdir()
    scratch.mkdir()
    shutil.copy(open_course().notebook_path(name), place)
    command = [sys.executable, "-m", "grader", "watch", str(place)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            first = [next(process.stdout) for _ in range(4)]
            points = sum(exercise.points for exercise in open_course().lesson(name).exercises)
            assert f"0/{points} points" in first[0] and "Next: attention_scores" in first[1]
            saved = time.monotonic()
            shutil.copy(open_course().root / "solutions" / f"{name}.ipynb", place)
            assert f"{points}/{points} points" in next(process.stdout)
            assert time.monotonic() - saved < 60.0  # about half a second on an idle machine; a busy one takes its time
            process.send_signal(ending)
            assert process.wait(10) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert left_behind(scratch) == [] and list(scratch.iterdir()) == []


def test_lessons_with_and_without_torch_are_graded_side_by_side(tmp_path):
    for learner, lesson in (("ada", "01_three_tokens"), ("bob", "06_masks"), ("cyd", "02_softmax")):
        (tmp_path / learner).mkdir()
        shutil.copy(open_course().notebook_path(lesson), tmp_path / learner)
    grading, files = Regrading(Settings(open_course(), timeout_s=20.0)), sorted(tmp_path.glob("*/*.ipynb"))
    left, found, deadline = [Task(file.parent, file) for file in files], [], time.monotonic() + 200
    while len(found) < len(files) and time.monotonic() < deadline:
        while left and grading.start(left[0], MOST_AT_ONCE):
            left.pop(0)
        found += grading.results(1.0)
    grading.close()
    assert [{verdict.status for verdict in one.lesson.verdicts} for one in found] == [{"not_started"}] * 3, found
