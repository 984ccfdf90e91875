"""The journal: reports come back bit for bit, torn and foreign lines cost their own submission only."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from grader.grading import journal
from grader.grading.journal import Journal, JournalEntry, from_line, load, to_line
from grader.grading.scheme import RunSettings
from grader.judging.evidence import Whole, make_tables
from grader.judging.verdict import Line, Verdict
from grader.reports import report_json
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.submission.roster import Person, Roster
from grader.util.errors import InputError
from grader.util.records import encoded

SETTINGS = RunSettings(seed=7, timeout_s=5.0, lessons=("01_mixing",))
ARRAYS = [
    np.array([[1.5, np.nan], [np.inf, -np.inf]]),
    np.array([-0.0, 5e-324]),
    np.array(True),
    np.zeros((0, 3), np.int8),
    np.arange(6, dtype=np.uint16).reshape(2, 3).T,
    np.array([1e-45], np.float32),
    np.array([2**63 - 1]),
    np.array([1, 2], ">i4"),
    np.array([0x7FF8000000000001], np.uint64).view(np.float64),
    np.array([True, False]),
]
NAMES = [
    "ada",
    "",
    'z\n\u2028{"}\x1b[31m\x00',
    "é",
    "e\u0301",
    "\udcff",
    "\ud83d\ude00 or two halves",
    "\U0001f600",
    "名" * 100,
]


def verdict(**changes) -> Verdict:
    made = Verdict(
        "double",
        "failed",
        "wrong",
        "values",
        "small integers",
        ("line 1", "a\nb"),
        make_tables([Whole(f"t{i}", array, "actual", "float64") for i, array in enumerate(ARRAYS)]),
        ("MX7", "MX7+MX16"),
        ("one", "two"),
        ("type",),
        0.1 + 0.2,
        "look",
        "row_sums",
        "small",
        Line("x = y\ud83d", 3, "helper"),
        "slip\n",
        "printed\x00",
        ("warned",),
        0.012345678901234567,
        (3, 5),
    )
    return dataclasses.replace(made, **changes)


def report(name: str = "ada", **changes) -> SubmissionReport:
    lesson = LessonReport(
        "01_toy",
        (verdict(**changes), Verdict("row_sums", "passed", "holds")),
        {"double": 2, "row_sums": 3, "unjudged": 1},
        ("a note", name),
    )
    return SubmissionReport(name, f"class/{name}", (lesson,), "a message")


def same(one, other) -> None:
    """Every field equal, arrays in type, shape and bits."""
    assert type(one) is type(other)
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other):
            same(mine, yours)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert repr(one) == repr(other)
    else:
        assert one == other


@pytest.mark.parametrize("name", NAMES)
def test_a_report_comes_back_bit_for_bit(name):
    result = JournalEntry(name, "d1", "full", report(name))
    line = to_line(result)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    same(from_line(line), result)
    back, before = (Report((one.report,), 1) for one in (from_line(line), result))
    assert report_json.render(back) == report_json.render(before)


def test_a_table_that_was_cut_comes_back():
    large = make_tables(
        [
            Whole("x", np.arange(3_000.0).reshape(2, 30, 50), "actual", "float64"),
            Whole("y", np.full((40, 30), np.nan), "input"),
        ]
    )
    line = to_line(JournalEntry("ada", "d1", "full", report(tables=large)))
    assert len(line) < 4_000
    same(from_line(line).report.lessons[0].verdicts[0].tables, large)


@pytest.mark.parametrize("number", [None, 0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-320])
def test_the_largest_difference_comes_back(number):
    result = JournalEntry("ada", "d", "full", report(max_difference=number))
    assert repr(from_line(to_line(result)).report.lessons[0].verdicts[0].max_difference) == repr(number)


def test_every_line_is_json_for_others_too():
    line = to_line(JournalEntry("ada", "d", "full", report(max_difference=float("nan"))))
    json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("key"),
        lambda data: data.update(digest=3),
        lambda data: data.update(report=[]),
        lambda data: data["report"]["lessons"][0]["verdicts"][0].update(status="perfect"),
        lambda data: data["report"]["lessons"][0]["points"].pop("double"),
        lambda data: data["report"]["lessons"][0]["verdicts"][0]["tables"][0]["cells"].update(shape=[7, 7]),
        lambda data: data["report"]["lessons"][0]["verdicts"][0]["tables"][0]["cells"].update(dtype="O"),
        lambda data: data["report"]["lessons"][0]["verdicts"][0].update(seconds="soon"),
    ],
)
def test_a_line_that_was_changed_is_no_result(change):
    data = json.loads(to_line(JournalEntry("ada", "d", "full", report())))
    change(data)
    with pytest.raises(ValueError):
        from_line(json.dumps(data).encode())


def begun(path, *names: str):
    with Journal(path, SETTINGS) as made:
        for name in names:
            made.add(to_line(JournalEntry(name, "d", "full", report(name))))
    return path


def test_what_was_added_is_there_when_it_is_opened_again(tmp_path):
    path = begun(tmp_path / "new" / "journal.jsonl", "ada", "bob")
    with Journal(path, SETTINGS) as again:
        assert list(again.results) == ["ada", "bob"] and not load(path).finished and again.dropped == 0
        again.finish(["bob"])
    assert load(path).finished and load(path).absent == {"ada"}


def test_each_result_is_synced_before_the_next(tmp_path, monkeypatch):
    path, seen = tmp_path / "journal.jsonl", []
    with Journal(path, SETTINGS) as made:
        monkeypatch.setattr(journal.os, "fsync", lambda handle: seen.append(path.read_bytes()))
        lines = [to_line(JournalEntry(name, "d", "full", report(name))) for name in ("ada", "bob")]
        for line in lines:
            made.add(line)
    assert [text.endswith(line) for text, line in zip(seen, lines, strict=True)] == [True, True]


def test_a_later_result_of_a_key_counts_and_opens_a_finished_run(tmp_path):
    path = begun(tmp_path / "journal.jsonl", "ada")
    with Journal(path, SETTINGS) as again:
        again.finish([])
        again.add(to_line(JournalEntry("ada", "d2", "full", report())))
    found = load(path)
    assert found.results["ada"].digest == "d2" and not found.finished and not found.absent


def test_settings_come_back_as_they_were(tmp_path):
    roster = Roster(
        "r.csv", (Person("ada", {"name": "Ada"}, ("ada", "Ada")),), "login", ("a note",), {"A (1)": ""}, ("login",)
    )
    settings = RunSettings(
        *({"double": 3.5}, True, 10.0, "A (1)", roster, False, "2026-10-01T09:00:00+00:00", 900, (10.0, True)),
        *({"ada": 600, "bob": "2026-10-02T09:00:00+00:00"}, "digest", ("01_mixing", "02_logs"), ("double",), True),
        *(8, 2.5, 0.5, True, "full"),
        set_by={"seed": "--seed", "lessons": "class.toml, line 1"},
    )
    assert all(getattr(settings, name) for name in encoded(settings) if name != "anonymous"), "each has a value"
    with Journal(tmp_path / "journal.jsonl", settings):
        assert load(tmp_path / "journal.jsonl").settings == settings
        assert load(tmp_path / "journal.jsonl").settings.require == "full", "each call says it anew"


def test_a_journal_from_before_there_was_a_setting_has_its_default(tmp_path):
    path = begun(tmp_path / "journal.jsonl", "ada")
    header, *lines = path.read_bytes().splitlines(keepends=True)
    data = json.loads(header)
    for key in ("seed_per_learner", "follow_through", "extensions", "roster", "set_by"):
        del data["settings"][key]
    path.write_bytes(
        json.dumps(data | {"settings": data["settings"] | {"no_more": 1}}).encode() + b"\n" + b"".join(lines)
    )
    with Journal(path, SETTINGS) as again:
        assert list(again.results) == ["ada"] and load(path).settings == SETTINGS


@pytest.mark.parametrize("changed", [{"seed": "7"}, {"lessons": None}, {"roster": {"path": "r.csv", "people": []}}])
def test_settings_that_are_none_are_refused_and_stay(tmp_path, changed):
    path = begun(tmp_path / "journal.jsonl", "ada")
    header, *lines = path.read_bytes().splitlines(keepends=True)
    data = json.loads(header)
    data["settings"] |= changed
    path.write_bytes(b"".join([json.dumps(data).encode() + b"\n", *lines]))
    before = path.read_bytes()
    with pytest.raises(InputError, match="written by another version of the grader; name another folder"):
        Journal(path, SETTINGS)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line", [b'{"finished": true}', b'{"finished": 3}', b'{"rescored": 1}', b'{"rescored": {"seed": ""}}']
)
def test_a_line_of_another_kind_costs_nothing_else(tmp_path, line):
    path = begun(tmp_path / "journal.jsonl", "ada")
    path.write_bytes(path.read_bytes() + line + b"\n")
    contents = load(path)
    assert contents.dropped == 1 and list(contents.results) == ["ada"] and not contents.absent
    assert contents.settings == SETTINGS


def test_a_torn_line_at_any_byte_is_dropped_and_written_over(tmp_path):
    path = begun(tmp_path / "journal.jsonl", "ada", "bob")
    whole = path.read_bytes()
    header, first = (whole.splitlines(keepends=True) + [b""])[:2]
    for length in {0, 1, 5, len(header) - 1, len(header), len(header + first) - 1, len(header + first), len(whole) - 1}:
        path.write_bytes(whole[:length])
        with Journal(path, SETTINGS) as again:
            kept = list(again.results)
            assert kept == ["ada"] * (length >= len(header + first))
            for name in ("ada", "bob"):
                if name not in kept:
                    again.add(to_line(JournalEntry(name, "d", "full", report(name))))
        assert path.read_bytes() == whole


def test_a_broken_line_in_the_middle_costs_its_own_submission_only(tmp_path):
    path = begun(tmp_path / "journal.jsonl", "ada", "bob", "eve")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:100] + b"\n"
    path.write_bytes(b"".join(lines))
    with Journal(path, SETTINGS) as again:
        assert list(again.results) == ["ada", "eve"] and again.dropped == 1


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"seed": 8}, r"seed 7 \(now 8\)"),
        ({"lessons": ("02_logs",)}, r"01_mixing \(now 02_logs\)"),
        ({"exercises": ("double",)}, r"exercises all \(now double\)"),
    ],
)
def test_other_settings_are_refused_and_the_journal_stays(tmp_path, changed, said):
    path = begun(tmp_path / "journal.jsonl", "ada")
    before = path.read_bytes()
    with pytest.raises(InputError, match=said):
        Journal(path, dataclasses.replace(SETTINGS, **changed))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"hello\n", b"hello", b"[]\n", b'{"grader_journal": 99, "settings": {}}\n', b"\xff\xff"]
)
def test_a_file_that_is_no_journal_is_refused_and_stays(tmp_path, content):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="another folder"):
        Journal(path, SETTINGS)
    assert path.read_bytes() == content


def test_two_runs_at_once_are_refused(tmp_path):
    pytest.importorskip("fcntl", reason="locks of this kind are POSIX only")
    path = tmp_path / "journal.jsonl"
    with Journal(path, SETTINGS), pytest.raises(InputError, match="another run is writing"):
        Journal(path, SETTINGS)
    Journal(path, SETTINGS).close()
