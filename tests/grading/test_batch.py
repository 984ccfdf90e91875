"""A class: everybody is graded once, whatever ends, is killed, or lies in the folder."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Future

import psutil
import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading import batch, class_folder
from grader.grading.journal import from_line, load
from grader.grading.scheme import RunSettings
from grader.sandbox import isolation
from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import START
from grader.submission.submission import read_submission
from grader.util.errors import InputError
from tests import small_class
from tests.conftest import children, heed_interrupts
from tests.small_class import ENDLESS, LESSON, RIGHT, WRONG, Here, hand_in, left_behind, notebook, run, scores, timeless

CODES = {"ada": RIGHT, "bob": WRONG, "cyd": "x = 3", "dan": RIGHT, "eve": WRONG, "flo": RIGHT}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A class, and an undisturbed run over it."""
    place = tmp_path_factory.mktemp("whole")
    folder = hand_in(place / "class", **CODES)
    done = run(folder, place / "out", place / "scratch", "--jobs", "2")
    return folder, place / "out", place / "scratch", done


def test_everybody_is_graded_and_listed_by_name(whole):
    folder, out, scratch, done = whole
    assert done.returncode == 0, done.stderr
    expected = {"ada": "passed", "bob": "failed", "cyd": "missing", "dan": "passed", "eve": "failed", "flo": "passed"}
    assert {name: status for name, (_, status) in scores(out).items()} == expected
    assert list(scores(out)) == sorted(expected)
    assert "6 learners, mean 50 %" in done.stdout and "6 of 6" in done.stderr
    assert left_behind(scratch) == []


def test_a_mistake_of_two_is_told_in_the_summary(whole):
    assert "2 × " in whole[3].stdout and "nearest" in whole[3].stdout


def test_every_report_is_written(whole):
    names = {path.name for path in whole[1].iterdir()}
    assert names >= {"report.json", "report.html", "grades.csv", "canvas.csv", "moodle.csv", "junit", "journal.jsonl"}


def test_a_score_is_the_one_that_grader_grade_gives(whole, tmp_path, capsys):
    folder, out, *_ = whole
    main(["grade", str(folder / "bob"), "--lessons", "00", "--timeout", "2", "--json", "-"])
    (alone,) = json.loads(capsys.readouterr().out)["submissions"]
    mine = next(one for one in json.loads((out / "report.json").read_text())["submissions"] if one["name"] == "bob")
    for one in (alone, mine):
        for exercise in one["lessons"][0]["exercises"]:
            del exercise["seconds"]
    assert alone == mine


def test_killed_at_any_moment_it_resumes_to_the_same_report(whole, tmp_path, scratch):
    folder, undisturbed, *_ = whole
    out, lucky = tmp_path / "out", random.Random(4)
    kept = 0
    for _ in range(5):
        process = subprocess.Popen(
            small_class.command(folder, out, "--resume", "--jobs", "2"),
            cwd=small_class.ROOT,
            env=small_class.environment(scratch),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        results_at_least, deadline = kept + lucky.choice([0, 1, 2]), time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            text = (out / "journal.jsonl").read_bytes() if (out / "journal.jsonl").exists() else b""
            if text and text.count(b"\n") > results_at_least:
                time.sleep(lucky.uniform(0, 0.05))
                break
            time.sleep(0.002)
        process.kill()
        process.wait()
        assert left_behind(scratch) == []
        now = len(load(out / "journal.jsonl").results)
        assert now >= kept
        kept = now
        if load(out / "journal.jsonl").finished:
            break
    with open(out / "journal.jsonl", "ab") as journal:
        journal.write(b'{"key": "eve", "digest": "torn in the mid')
    assert run(folder, out, scratch, "--resume").returncode == 0
    assert timeless(out) == timeless(undisturbed)
    assert left_behind(scratch) == []


def start(scratch, folder, out, *options, start_new_session=False):
    """Grades a class in a process that hears Ctrl-C."""
    return subprocess.Popen(
        small_class.command(folder, out, *options),
        cwd=small_class.ROOT,
        text=True,
        env=small_class.environment(scratch),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=heed_interrupts,
        start_new_session=start_new_session,
    )


def test_ctrl_c_keeps_what_was_done_and_says_how_to_go_on(tmp_path, scratch):
    folder = hand_in(tmp_path / "class", ada=RIGHT, **{f"z{i}": ENDLESS for i in range(6)})
    out = tmp_path / "out"
    process = start(scratch, folder, out, "--jobs", "1")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        (out / "journal.jsonl").exists() and load(out / "journal.jsonl").results
    ):
        time.sleep(0.05)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in said and "Traceback" not in said
    assert f"What was graded is kept in {out};" in said
    assert time.monotonic() - started < 40  # the endless ones would take a minute
    assert load(out / "journal.jsonl").results["ada"].report.score > 0
    assert left_behind(scratch) == []


def test_ctrl_c_in_a_terminal_before_anything_is_graded_says_so(tmp_path, scratch):
    """There it reaches every process that the command has started."""
    folder, out = hand_in(tmp_path / "class", ada=RIGHT), tmp_path / "out"
    process = start(scratch, folder, out, "--lessons", "03", start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not psutil.Process(process.pid).children():
        time.sleep(0.05)
    time.sleep(0.8)  # they import
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "grader: stopped. Nothing was graded.\n")
    assert not out.exists() and left_behind(scratch) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal's processes are a group elsewhere")
def test_ctrl_c_in_a_terminal_says_so_where_grading_processes_are_fresh_interpreters(tmp_path, scratch):
    """As everywhere but on Linux, and there where the temporary folder's path leaves no room for the fork server's socket."""
    folder, out, deep = (
        hand_in(tmp_path / "class", ada=RIGHT),
        tmp_path / "out",
        scratch / ("x" * batch.LONGEST_TEMPORARY),
    )
    process = start(deep, folder, out, start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(
        "spawn_main" in " ".join(child.cmdline()) for child in psutil.Process(process.pid).children()
    ):
        time.sleep(0.01)
    time.sleep(0.2)  # it imports
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "grader: stopped. Nothing was graded.\n")
    assert left_behind(deep) == []


def test_what_changed_since_is_graded_again_and_the_finished_run_is_kept(tmp_path, capsys):
    folder = hand_in(tmp_path / "class", ada=WRONG, bob=RIGHT)
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    assert run(folder, out, scratch).returncode == 0
    (folder / "ada" / f"{LESSON}.ipynb").write_text(notebook(RIGHT))
    again = run(folder, out, scratch, "--resume")
    assert again.returncode == 0, again.stderr
    assert "1 results are already in the journal; 1 to grade" in again.stderr
    assert scores(tmp_path / "out.backup-1")["ada"][1] == "failed" and scores(out)["ada"][1] == "passed"
    assert main(["class", str(folder), "--out", str(out), "--timeout", "2", "--resume", "--seed", "8"]) == 2
    assert "seed 7 (now 8)" in capsys.readouterr().err
    assert scores(out)["ada"][1] == "passed"
    assert run(folder, out, scratch, "--resume").returncode == 0
    assert [path.name for path in tmp_path.glob("out.backup-*")] == [
        "out.backup-1"
    ]  # neither of these two replaced anything


def test_an_unfinished_run_is_not_begun_anew_by_oversight(whole, tmp_path, capsys):
    folder, undisturbed, *_ = whole
    out = tmp_path / "out"
    out.mkdir()
    lines = (undisturbed / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(b"".join(lines[:3]))
    assert main(["class", str(folder), "--out", str(out)]) == 2
    assert "2 results: add --resume" in capsys.readouterr().err
    assert (out / "journal.jsonl").read_bytes() == b"".join(lines[:3])


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["{class}/nowhere", "--out", "{out}"], "there is no folder"),
        (["{class}/ada/00_lookup.ipynb", "--out", "{out}"], "is a file"),
        (["{empty}", "--out", "{out}"], "contains no learner"),
        (["{class}", "--out", "{class}/reports"], "is inside the other"),
        (["{class}", "--out", "{class}/.."], "is inside the other"),
        (["{class}", "--out", "{other}"], "contains something other"),
        (["{class}", "--out", "{other}/a file"], "is a file"),
        (["{class}", "--out", "{out}", "--jobs", "0"], "1 or more"),
        (["{class}", "--out", "{out}", "--max-points", "-1"], "above 0"),
        (["{class}", "--out", "{out}", "--require-isolation", "most"], "invalid choice"),
        (["{class}"], "--out"),
    ],
)
def test_a_wrong_call_is_a_sentence_and_changes_nothing(tmp_path, capsys, arguments, said):
    places = {name: tmp_path / name for name in ("class", "empty", "other", "out")}
    hand_in(places["class"], ada=RIGHT)
    places["empty"].mkdir()
    places["other"].mkdir()
    (places["other"] / "a file").write_text("mine")
    assert main(["class", *(text.format(**places) for text in arguments)]) == 2
    said_there = capsys.readouterr().err
    assert said in said_there and "Traceback" not in said_there
    assert not places["out"].exists() and (places["other"] / "a file").read_text() == "mine"


# --- who is in the folder --------------------------------------------------------------------


def test_learners_are_folders_and_notebooks_but_no_links(tmp_path):
    hand_in(tmp_path / "outside", secret=RIGHT)
    folder = hand_in(tmp_path / "class", Ada=RIGHT, ada=WRONG)
    (folder / "e\u0301ve").mkdir()
    (folder / "\u00e9ve").mkdir()
    (folder / "zoe.ipynb").write_text(notebook(RIGHT))
    (folder / "link").symlink_to(tmp_path / "outside" / "secret")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "same").symlink_to(folder / "Ada")
    (folder / ".hidden").mkdir()
    (folder / "__pycache__").mkdir()
    (folder / "list.txt").write_text("names")
    (folder / "Ada" / "01.ipynb").symlink_to(tmp_path / "outside" / "secret" / f"{LESSON}.ipynb")
    found, passed_over = class_folder.entries(folder)
    assert {one.key for one in found} == {"Ada", "ada", "e\u0301ve", "\u00e9ve", "zoe.ipynb", "link", "loop", "same"}
    assert len(found) == 8 and passed_over == ["list.txt"]
    packed = {one.key: class_folder.pack(one) for one in found}
    targets = {"link": tmp_path / "outside" / "secret", "loop": folder / "loop", "same": folder / "Ada"}
    for name, target in targets.items():
        assert not packed[name].files
        assert packed[name].notes == (f"{name} is a link to {target}; links are not followed, so it was not read.",)
    assert [file.place for file in packed["Ada"].files] == [(f"{LESSON}.ipynb",)] and "01.ipynb is a link to" in packed[
        "Ada"
    ].notes[0]


def test_a_pipe_in_a_notebooks_place_is_that_learners_result(tmp_path):
    os.mkfifo(tmp_path / "eve.ipynb")
    laid = class_folder.unpack(class_folder.pack(class_folder.entries(tmp_path)[0][0]), tmp_path / "laid")
    assert "eve.ipynb is not a regular file" in read_submission(open_course(), laid).message


def test_a_digest_changes_with_what_a_result_depends_on_and_nothing_else(tmp_path):
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    path = folder / "ada" / f"{LESSON}.ipynb"
    (folder / "ada" / "copy.ipynb").write_text(notebook(WRONG))

    def digest() -> str:
        return class_folder.pack(class_folder.entries(folder)[0][0]).digest

    os.utime(path, (1000, 1000))
    first = digest()
    os.utime(path, (2000, 2000))
    assert digest() == first, "an archive unpacked again has other times"
    os.utime(folder / "ada" / "copy.ipynb", (500, 500))
    assert digest() != first, "of two notebooks the one saved last counts"
    second = digest()
    path.write_text(notebook(WRONG))
    assert digest() != second


def test_a_packed_submission_is_laid_out_as_it_was(tmp_path):
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    (folder / "ada" / "notebooks").mkdir()
    (folder / "ada" / "notebooks" / "b.ipynb").write_bytes(b"\xff\x00")
    with open(folder / "ada" / "large.ipynb", "wb") as file:
        file.truncate(200 << 20)
    os.mkfifo(folder / "ada" / "pipe.ipynb")
    packed = class_folder.pack(class_folder.entries(folder)[0][0])
    assert sum(len(file.data or b"") for file in packed.files) < 100_000, "what isn't read needs not travel"
    laid = class_folder.unpack(packed, tmp_path / "laid")
    assert (laid / f"{LESSON}.ipynb").read_bytes() == (folder / "ada" / f"{LESSON}.ipynb").read_bytes()
    assert (laid / "notebooks" / "b.ipynb").read_bytes() == b"\xff\x00"
    assert (laid / "large.ipynb").stat().st_size == 200 << 20 and (laid / "pipe.ipynb").is_fifo()
    for place in (("..", "x"), ("", "etc"), ("a/../../b",)):
        with pytest.raises(ValueError):
            class_folder.unpack(
                class_folder.PackedSubmission("k", "n", "p", (class_folder.PackedFile(place, b"", 0, 0),)),
                tmp_path / "bad",
            )


# --- grading processes that end --------------------------------------------------------------


class Fragile:
    """A pool whose process ends with the submissions named, each time or the first time only, or is not sound with them, and which
    ends, as a worker of a cluster does, with whatever was handed in beside them."""

    def __init__(self, width: int, always=(), once=(), unsound=()) -> None:
        self.width, self.always, self.once, self.unsound = width, set(always), set(once), set(unsound)
        self.tried: list[str] = []
        self.held: Future | None = None
        self.in_hand = 0
        self.beside: list[int] = []  # of each second attempt, how many others were in hand

    def submit(self, function, packed, settings) -> Future:
        if packed.key in self.tried:
            self.beside.append(self.in_hand)
        self.tried.append(packed.key)
        self.in_hand += 1
        future: Future = Future()
        result = future.result
        future.result = lambda: (setattr(self, "in_hand", self.in_hand - 1), result())[1]
        if packed.key in self.always or packed.key in self.once:
            self.once.discard(packed.key)
            for lost in filter(None, (future, self.held)):
                lost.set_exception(OSError("ended"))
        elif self.width > 1 and packed.key == "b" and self.held is None:
            self.held = future  # in hand until its process ends
        else:
            future.set_result((packed.key, packed.key not in self.unsound))
            self.unsound.discard(packed.key)
        return future


def class_of(tmp_path, keys: str = "abcdef") -> list[class_folder.ClassEntry]:
    return [class_folder.ClassEntry(key, key, tmp_path / key) for key in keys]


@pytest.mark.parametrize("width, again", [(1, ["c"]), (4, ["b", "c"])])
def test_a_process_that_ends_once_costs_nothing(tmp_path, width, again):
    pool = Fragile(width, once={"c"})
    lines = list(batch.grade_all(class_of(tmp_path), batch.Settings(open_course()), pool))
    assert sorted(lines) == sorted("abcdef") and sorted(lines[-len(again) :]) == again, "after all others"
    assert pool.beside == [0] * len(again) and sorted(key for key in "abcdef" if pool.tried.count(key) == 2) == again


def test_where_the_grader_itself_failed_it_tries_once_more(tmp_path):
    pool = Fragile(4, unsound={"a", "f"})
    lines = list(batch.grade_all(class_of(tmp_path, "acdef"), batch.Settings(open_course()), pool))
    assert sorted(lines) == sorted("acdef") and sorted(pool.tried) == sorted("aacdeff") and pool.beside == [0, 0]


def test_what_ends_its_process_twice_could_not_be_graded_and_harms_no_other(tmp_path):
    pool = Fragile(1, always={"c"})
    lines = list(batch.grade_all(class_of(tmp_path), batch.Settings(open_course(), lessons=(LESSON,)), pool))
    assert sorted(line for line in lines if isinstance(line, str)) == sorted("abdef")
    (ours,) = [from_line(line) for line in lines if isinstance(line, bytes)]
    assert ours.key == "c" and {v.status for v in ours.report.verdicts} == {"could_not_grade"}
    assert pool.tried.count("c") == 2 and ours.report.max_score > 0


def test_less_isolation_in_the_middle_ends_the_batch(tmp_path):
    class Open:
        width = 2

        def submit(self, *_):
            future: Future = Future()
            future.set_exception(batch.TooOpen("no walls"))
            return future

    with pytest.raises(batch.TooOpen):
        list(batch.grade_all(class_of(tmp_path), batch.Settings(open_course()), Open()))


def grading_processes() -> list[psutil.Process]:
    """Those of this process's pools."""
    names = "multiprocessing.forkserver", "spawn_main"
    return [process for process in children() if any(name in " ".join(process.cmdline()) for name in names)]


def test_a_grading_process_that_is_killed_costs_nothing(tmp_path):
    folder = hand_in(tmp_path / "class", **CODES)
    found, _ = class_folder.entries(folder)
    pool = batch.LocalPool(1, torch=False)
    keys, killed = [], []
    try:
        settings = batch.Settings(open_course(), lessons=(LESSON,), timeout_s=2.0)
        batch.isolation_of(pool, settings)
        for line in batch.grade_all(found, settings, pool):
            entry = from_line(line)
            keys.append(entry.key)
            assert "could_not_grade" not in {verdict.status for verdict in entry.report.verdicts}
            if len(keys) == 2:
                killed = grading_processes()
                for process in killed:
                    process.kill()
    finally:
        pool.close()
    assert sorted(keys) == sorted(CODES) and len(killed) == 1
    assert not grading_processes()


def end_this_process(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raise_error(error: Exception) -> None:
    raise error


def test_a_pool_tells_what_ended_its_process_and_harms_nothing_beside_it():
    pool = batch.LocalPool(2, torch=False)
    try:
        beside, ended = pool.submit(time.sleep, 1), pool.submit(end_this_process)
        with pytest.raises(SandboxError, match=r"the grading process ended \(signal SIGKILL\)"):
            ended.result()
        assert pool.submit(len, "abc").result() == 3, "another has taken its place"
        with pytest.raises(batch.TooOpen, match="walls"):
            pool.submit(raise_error, batch.TooOpen("no walls")).result()
        assert beside.result() is None
    finally:
        pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="where nothing is forked, nothing is shared")
def test_grading_processes_share_one_zygote():
    pool = batch.LocalPool(2, torch=False)
    try:
        settings = batch.Settings(open_course(), lessons=(LESSON,))
        levels = [pool.submit(batch.isolation_level, settings) for _ in range(2)]
        assert len({level.result() for level in levels}) == 1 and len(grading_processes()) == 2
        warm = [process for process in children() if {"warm", str(START)} <= set(process.cmdline())]
        (zygote,) = (process for process in warm if process.parent() not in warm)
        for process in (zygote, *grading_processes()):  # as where memory is short
            process.kill()
        for ended in [pool.submit(len, "abc") for _ in range(2)]:
            assert isinstance(ended.exception(), SandboxError)
        assert pool.submit(batch.isolation_level, settings).result() == levels[0].result()
    finally:
        pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="where there is no fork server, processes end otherwise")
def test_a_pool_ends_though_more_waits_than_its_queue_has_room_for():
    """As after Ctrl-C or on a full disk: its processes end, and nobody reads what was being written to them."""
    code = """
import time
from grader.grading import batch
pool = batch.LocalPool(1, torch=False)
pool.submit(time.sleep, 0).result()
pool.submit(time.sleep, 60)
for _ in range(4):
    pool.submit(len, bytes(4 << 20))
time.sleep(0.5)  # until the first of them fills the pipe
pool.close()
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=small_class.ROOT, timeout=40).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="signals are others elsewhere")
def test_a_pool_s_files_go_with_its_last_process_whatever_was_killed(scratch):
    code = """
import os, psutil, signal
from grader.grading import batch
pool = batch.LocalPool(1, torch=False)
pool.submit(len, "abc").result()
(zygote,) = (process for process in psutil.Process().children() if "warm" in process.cmdline())
zygote.kill()
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=small_class.ROOT, env=small_class.environment(scratch), timeout=40)
    assert ended.returncode == -signal.SIGKILL and left_behind(scratch) == []


def test_less_isolation_than_asked_for_grades_nothing(tmp_path, monkeypatch, capsys):
    """A class is strangers' work; what is lacking, and what helps, is said."""
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    real = batch.Sandbox
    monkeypatch.setattr("grader.grading.grade.Sandbox", lambda *a, **k: real(*a, **k, walls=False))
    monkeypatch.setattr("grader.cli.classroom._pool", lambda options, settings: Here())
    assert main(["class", str(folder), "--out", str(tmp_path / "out"), "--lessons", "00"]) == 3
    assert capsys.readouterr().err == (
        "grader: isolation 'full' is required, but this computer has only 'process', because the walls around a submission are switched "
        "off; nothing was graded below it. Grade on Linux 5.13 or newer: in a container or a virtual machine, on Windows also in WSL2. If "
        "you trust what was handed in, add --require-isolation process; a submission can then read your files, the solutions among "
        "them, and write to them.\n"
    )
    assert not (tmp_path / "out").exists()
    assert (
        main(
            ["class", str(folder), "--out", str(tmp_path / "out"), "--lessons", "00", "--require-isolation", "process"]
        )
        == 0
    )
    assert scores(tmp_path / "out") == {"ada": (2, "passed")}
    batch.close_sandboxes()


@pytest.mark.parametrize("lacking", ["linux", "landlock", "seccomp", "enforcement", "walls"])
def test_what_a_computer_lacks_is_told_in_words(lacking):
    isolation.require("process", lacking)
    with pytest.raises(isolation.TooOpen, match="has only 'process', because (its|the) [a-z]+ .*[a-z]"):
        isolation.require("full", lacking)
    isolation.require("full", "")


def test_a_sandbox_refuses_below_the_level_asked_for(monkeypatch):
    real = batch.Sandbox
    monkeypatch.setattr("grader.grading.grade.Sandbox", lambda *a, **k: real(*a, **k, walls=False))
    with pytest.raises(isolation.TooOpen):
        batch.isolation_level(batch.Settings(open_course(), require="full"))
    batch.close_sandboxes()


def test_a_full_disk_is_a_sentence_and_keeps_what_was_done(tmp_path, monkeypatch, capsys):
    from grader.grading.journal import Journal

    folder = hand_in(tmp_path / "class", ada=RIGHT, bob=RIGHT)

    def full(self, line):
        if line.startswith(b'{"key"'):
            raise OSError(28, "No space left on device")
        add(self, line)

    add = Journal.add
    monkeypatch.setattr(Journal, "add", full)
    assert main(["class", str(folder), "--out", str(tmp_path / "out"), "--lessons", "00", "--jobs", "1"]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said and "--resume" in said
    with pytest.raises(InputError):  # nothing was lost: the journal is one that can be resumed
        Journal(tmp_path / "out" / "journal.jsonl", RunSettings(seed=99))
