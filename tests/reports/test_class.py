"""The reports of a class: counts that can be checked by hand, files that others import, a page that holds together."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from grader.cli.class_reports import summary as class_summary
from grader.course.course import open_course
from grader.judging.verdict import Verdict
from grader.reports import (
    canvas,
    class_page,
    feedback,
    grades_csv,
    gradescope,
    junit,
    markdown,
    moodle,
    report_files,
    sheet,
    terminal,
)
from grader.reports.class_summary import RESERVED, ClassSummary, stems
from grader.reports.gradebook import Gradebook
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.reports.text import one_line
from grader.util.errors import InputError
from tests.reports.samples import CLASS, HOSTILE, NOT_STARTED, OURS, PAIR, PASSED, PROVEN, UNPROVEN, compared, lesson
from tests.reports.test_reports import Elements


def read(said: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(said), strict=True))


def test_the_room_counts_what_stands_in_the_report():
    room = ClassSummary(CLASS)
    assert room.shares == pytest.approx((2 / 14, 0, 10 / 14))  # grace: all but scaled and shares
    assert [column.exercise for column in room.columns][:2] == ["products", "scaled"]
    assert room.lessons == ("01_mixing", "02_logs")
    met = {one.id: (one.learners, one.exercises) for one in room.mistakes}
    assert met["MX7"] == ((0, 2), ("shares",)) and met["MX4"] == ((0, 2), ("scaled",))
    assert "MX6" not in met  # the second of several that fit alike is not counted
    assert room.median == pytest.approx(2 / 14)


def test_a_pair_counts_for_both_of_its_halves():
    room = ClassSummary(Report((SubmissionReport("a", "a", (lesson("01_x", PAIR),)),), 7))
    assert [one.id for one in room.mistakes] == ["MX16", "MX18"]
    made = class_page.mistakes(open_course(), room)
    assert "The scores were not scaled." in made and "The keys were blended; the values are asked for." in made


def test_grades_are_read_again_by_a_reader_of_csv():
    heading, ada, formula, grace = read(grades_csv.render(CLASS))
    assert heading[:5] == ["learner", "01_mixing", "02_logs", "total", "max"]
    assert dict(zip(heading, ada, strict=True))["shares"] == "failed"
    assert ada[:5] == ["ada", "2", "0", "2", "14"] and grace[0] == "grace@example.org"
    assert formula[0] == "'=cmd|' /C calc'!A0" and formula[2] == "" and formula[-4:] == ["", "late", "", ""]


def test_canvas_has_its_columns_and_points_possible():
    heading, possible, ada, _, grace = read(canvas.render(CLASS, Gradebook(100)))
    assert heading == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "mixing"]
    assert possible == ["    Points Possible", "", "", "", "", "100"]
    assert (ada[0], ada[3], ada[5]) == ("ada", "ada", "14.29") and grace[5] == "71.43"
    assert read(canvas.render(CLASS))[1][5] == "14" and read(canvas.render(CLASS))[2][5] == "2"


def test_moodle_has_the_points_scaled():
    assert [row[:2] for row in read(moodle.render(CLASS, Gradebook(10)))] == [
        ["Username", "mixing"],
        ["ada", "1.43"],
        ["'=cmd|' /C calc'!A0", "0"],
        ["grace@example.org", "7.14"],
    ]


@pytest.mark.parametrize("scaled", [None, 50.0])
def test_gradescope_adds_up(scaled):
    data = json.loads(gradescope.render(replace(CLASS, submissions=CLASS.submissions[:1]), scaled))
    assert data["score"] == pytest.approx(2 if scaled is None else 50 * 2 / 14, abs=1e-3)
    assert sum(test["score"] for test in data["tests"]) == pytest.approx(data["score"], abs=1e-3)
    assert sum(test["max_score"] for test in data["tests"]) == pytest.approx(scaled or 14, abs=1e-3)
    assert {test["status"] for test in data["tests"]} == {"passed", "failed"}
    wanted = {"name", "score", "max_score", "status", "output", "output_format", "visibility"}
    assert all(wanted <= test.keys() and test["output_format"] == "text" for test in data["tests"])
    assert "MX7" in data["tests"][2]["output"] and data["output_format"] == "text" and data["visibility"] == "visible"


def test_the_page_says_what_the_room_gets_wrong_and_whom_to_ask():
    read = Elements(class_page.render(open_course(), CLASS))
    said = " ".join(read.said.split())
    assert "Mixing: report of the class" in said and "Isolation while grading: full" in said
    assert "2 of 3 MX7: The columns sum to 1; each row is to." in said
    assert "Talk to ada, grace@example.org" in said
    assert "nothing attempted1=cmd|' /C calc'!A0" in said
    assert "a wrong result that no known mistake explains1ada" in said
    assert "used what an exercise does not allow1ada" in said


def test_a_slip_is_no_result_that_nothing_explains():
    ada, *rest = CLASS.submissions
    lessons = [
        replace(
            lesson,
            verdicts=tuple(
                replace(verdict, slip="" if verdict.passed else "No return.") for verdict in lesson.verdicts
            ),
        )
        for lesson in ada.lessons
    ]
    said = Elements(
        class_page.render(open_course(), replace(CLASS, submissions=(replace(ada, lessons=tuple(lessons)), *rest)))
    ).said
    assert "such as a missing return 1 ada" in " ".join(said.split()).replace("return1ada", "return 1 ada")
    assert "that no known mistake explains" not in said


def test_the_page_is_valid_where_it_matters():
    made = class_page.render(open_course(), CLASS)
    read = Elements(made)
    ids = [value for name, value in read.attributes if name == "id"]
    links = [value for name, value in read.attributes if name == "href"]
    assert not read.open and len(ids) == len(set(ids))
    assert links and all(link.startswith("#") and link[1:] in ids for link in links)
    assert not {"script", "link", "img", "iframe", "form", "object"} & set(read.names)
    assert "@import" not in made and "url(" not in made and "http-equiv" in made
    assert made.count("<caption") == made.count("<table") == 4
    assert read.names.count("h1") == 1 and made.count(html_style()) == 1


def html_style() -> str:
    from grader.reports.html import STYLE

    return STYLE


def test_the_table_reads_without_colour_and_by_ear():
    made = class_page.matrix(ClassSummary(CLASS))
    assert made.count('scope="row"') == 3 and made.count('scope="colgroup"') == 2 and made.count('scope="col"') == 9
    assert len(set(class_page.SIGNS.values())) == len(class_page.SIGNS)
    assert '<td class="failed"><span aria-hidden="true">✗</span><span class="unseen">failed</span></td>' in made
    assert made.count("not asked for") == 2


def test_the_scores_picture_says_its_counts():
    made = class_page.distribution(ClassSummary(CLASS))
    assert 'aria-label="Learners by share of the points. 0–9 %: 1; 10–19 %: 1; 70–79 %: 1."' in made
    full = Report((SubmissionReport("a", "a", (lesson("01_x", PASSED),)),), 7)
    assert 'points. 90–100 %: 1."' in class_page.distribution(ClassSummary(full))


def test_what_many_share_is_drawn_once():
    same = replace(PROVEN)
    one, two = (
        class_page.render(
            open_course(),
            Report(tuple(SubmissionReport(f"a{n}", "a", (lesson("01_x", same),)) for n in range(count)), 7),
        )
        for count in (2, 40)
    )
    assert one.count("<g id=") == two.count("<g id=") == 4
    assert two.count('role="img"') == 40 * 4 + 1 and two.count("<use") == 160


def test_a_report_of_nobody_is_a_report():
    empty = Report((), 7)
    for name, content in report_files.files(open_course(), empty):
        assert content, name
    alone = Report((SubmissionReport("a", "a", (), "No notebook was found."),), 7)
    made = class_page.render(open_course(), alone)
    assert "No notebook was found." in made and "<table" not in made and "seed 7" in made


def test_markdown_of_a_class_fits_a_summary():
    many = Report(tuple(SubmissionReport(f"s{n}", "s", (lesson("01_x", HOSTILE, PROVEN),) * 40) for n in range(60)), 7)
    made = markdown.render(open_course(), many)
    assert len(made.encode()) < 1_000_000 and "submissions the details did not fit here." in made
    assert "| MX7 | 60 | The columns sum to 1; each row is to." in made


def test_markdown_of_one_learner_with_much_to_say_fits_a_summary():
    wordy = [Verdict(f"exercise_{at}", "failed", "x", details=("word " * 3_000,)) for at in range(84)]
    made = markdown.render(open_course(), Report((SubmissionReport("ada", "ada", (lesson("01_x", *wordy),)),), 7))
    assert len(made.encode()) < 1_000_000 and "Of the exercises the details did not fit here." in made
    assert "| exercise\\_83 | ✗ failed |" in made and "<details>" not in made


def test_suites_and_rows_of_learners_who_read_alike_stay_apart():
    twins = Report(
        tuple(SubmissionReport(name, "x", (lesson("01_x", PASSED),)) for name in (" a", "a", "A\u00ad", "a (2)")), 7
    )
    assert ClassSummary(twins).labels == ("␣a (3)", "a", "A\ufffd (4)", "a (2)") and ClassSummary(twins).same_names == [
        0,
        1,
        2,
    ]
    assert junit.render(twins).count('<testsuite name="a.01_x"') == 1
    assert "find out whose work this is" in class_page.render(open_course(), twins)


def test_write_all_writes_every_format(tmp_path):
    written = report_files.write_all(open_course(), CLASS, tmp_path / "out", gradebook=Gradebook(100))
    names = [path.relative_to(tmp_path / "out").as_posix() for path in written]
    assert names[:8] == [
        "report.html",
        "similarity.html",
        "grades.csv",
        "attention.csv",
        "canvas.csv",
        "moodle.csv",
        "report.json",
        "summary.md",
    ]
    stems = ("ada", "cmd-C-calc-A0", "grace-example.org")
    assert names[8:] == [
        name for stem in stems for name in (f"feedback/{stem}.html", f"junit/{stem}.xml", f"gradescope/{stem}.json")
    ]
    assert all(path.is_file() for path in written)
    grace = (tmp_path / "out/feedback/grace-example.org.html").read_text(encoding="utf-8")
    assert "ada" not in Elements(grace).said and "grace@example.org 10 of 14 points" in Elements(grace).said


def test_files_of_learners_who_left_the_class_go_and_others_stay(tmp_path):
    report_files.write_all(open_course(), CLASS, tmp_path)
    (tmp_path / "feedback" / "notes.txt").write_text("my own")
    fewer = replace(CLASS, submissions=CLASS.submissions[1:])
    written = report_files.write_all(open_course(), fewer, tmp_path)
    kept = {path for kind in ("feedback", "junit", "gradescope") for path in (tmp_path / kind).iterdir()}
    assert kept == {path for path in written if path.parent != tmp_path} | {tmp_path / "feedback" / "notes.txt"}


def test_the_terminal_tells_the_mistakes_of_a_pair_in_the_course_s_words():
    ids = [mistake.id for mistake in open_course().exercise("shares").mistakes][:2]
    judged = Verdict("shares", "failed", "shares failed.", mistakes=("+".join(ids),), sentences=("Both at once.",))
    lesson = LessonReport("01_mixing", (judged,), {"shares": 2})
    report = replace(CLASS, submissions=(SubmissionReport("ada", "ada", (lesson,)),))
    said = class_summary(report, Path("out"))
    for id in ids:
        assert f"1 × {id} (shares): {one_line(open_course().mistake_text(id).sentence)}" in said


def test_the_same_report_gives_the_same_files(tmp_path):
    first, again = (
        {path.name: path.read_bytes() for path in report_files.write_all(open_course(), CLASS, tmp_path / n)}
        for n in "ab"
    )
    assert first == again


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written.*run the same command with --resume"):
        report_files.write_all(open_course(), CLASS, tmp_path / "file")


# --- what could not be graded ----------------------------------------------------------------


def failing(who: int, exercise: str) -> Report:
    """CLASS, where the grader fails on one exercise of one learner."""

    def ours(judged: Verdict) -> Verdict:
        return replace(OURS, exercise=exercise) if judged.exercise == exercise else judged

    one = CLASS.submissions[who]
    lessons = tuple(replace(lesson, verdicts=tuple(map(ours, lesson.verdicts))) for lesson in one.lessons)
    return replace(
        CLASS, submissions=(*CLASS.submissions[:who], replace(one, lessons=lessons), *CLASS.submissions[who + 1 :])
    )


EVERYWHERE = [(who, judged.exercise) for who, one in enumerate(CLASS.submissions) for judged in one.verdicts]


@pytest.mark.parametrize("who, exercise", EVERYWHERE)
@pytest.mark.parametrize("most", [None, 10.0])
def test_what_could_not_be_graded_is_no_number_in_any_file(tmp_path, who, exercise, most):
    report_files.write_all(
        open_course(), CLASS, tmp_path, gradebook=Gradebook(most)
    )  # an earlier run, whose files are not to stay
    report = failing(who, exercise)
    label = ClassSummary(report).labels[who]
    report_files.write_all(open_course(), report, tmp_path, gradebook=Gradebook(most))
    files = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir() if path.is_file()}
    stem = ClassSummary(report).stems[who]
    cell = sheet.guard(label)

    assert [row[0] for row in read(files["moodle.csv"])[1:]] == [
        sheet.guard(one) for one in ClassSummary(report).labels if one != label
    ]
    assert [row[0] for row in read(files["canvas.csv"])[2:]] == [
        sheet.guard(one) for one in ClassSummary(report).labels if one != label
    ]
    assert read(files["canvas.csv"])[1] == read(canvas.render(CLASS, Gradebook(most)))[1]
    rows = read(files["grades.csv"])
    mine = dict(zip(rows[0], next(row for row in rows if row[0] == cell), strict=True))
    assert mine["total"] == "" and mine[exercise] == "could_not_grade" and exercise in mine["message"]
    lesson = next(lesson for lesson in report.submissions[who].lessons if exercise in lesson.points)
    assert mine[lesson.name] == "" and lesson.score is None

    data = json.loads(files["report.json"])["submissions"][who]
    assert data["score"] is None and [one["score"] for one in data["lessons"] if one["name"] == lesson.name] == [None]
    assert [e["score"] for one in data["lessons"] for e in one["exercises"] if e["name"] == exercise] == [None]
    assert sorted(path.stem for path in (tmp_path / "gradescope").iterdir()) == sorted(
        set(ClassSummary(report).stems) - {stem}
    )
    assert gradescope.render(report) == ""

    suites = ElementTree.parse(tmp_path / "junit" / f"{stem}.xml")
    (case,) = [
        case
        for case in suites.iter("testcase")
        if case.get("classname").startswith(f"{label}.") and case.get("name") == exercise
    ]
    assert [child.tag for child in case] == ["error"] and case[0].get("type") == "could_not_grade"


@pytest.mark.parametrize("who, exercise", EVERYWHERE)
def test_who_could_not_be_graded_is_named_wherever_marks_are_read(who, exercise):
    report = failing(who, exercise)
    label = ClassSummary(report).labels[who]
    named = f"no learner's: {one_line(label)} ({exercise})."
    score = f"? of {report.submissions[who].max_score} points, because {exercise} could not be graded"
    summary = class_summary(report, Path("out"))
    assert named in summary.splitlines()[0]
    told = Elements(class_page.render(open_course(), report))
    assert named in told.said and f"{label} {score}" in told.said
    said = markdown.render(open_course(), report)
    assert markdown.escape(named) in said and markdown.escape(score) in said
    for rich in (False, True):
        assert f"{one_line(label)}: {score}" in plain(terminal.render(report, coloured=rich))
    assert score in Elements(feedback.page(report.submissions[who], label, "mixing")).said


def plain(said: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", said)


def test_what_could_not_be_graded_counts_for_nobody():
    report = failing(2, "shares")
    room, whole = ClassSummary(report), ClassSummary(CLASS)
    assert (
        room.shares == whole.shares[:2]
        and room.mean == pytest.approx(sum(whole.shares[:2]) / 2)
        and room.ungraded == (2,)
    )
    picture = class_page.distribution(room)
    assert sum(map(int, re.findall(r" %: (\d+)", picture))) == 2 and "not counted here: 1." in picture
    row = next(row for row in class_page.exercises(room).split("<tr>") if ">shares<" in row)
    assert "0 of 2" in row and "1 could not be graded" in row
    nobody = Report((SubmissionReport("bob", "b", (lesson("01_x", OURS),)), *CLASS.submissions[:1]), 7)
    assert "nothing attempted" not in class_page.others(ClassSummary(nobody)), "it isn't known what bob attempted"
    unread = [
        SubmissionReport(name, name, (LessonReport("01_x", (Verdict("shares", status, "x"),), {"shares": 2}),))
        for name, status in (("ada", "missing"), ("bob", "not_started"))
    ]
    page = class_page.others(ClassSummary(Report(tuple(unread), 7)))
    for group, who in (("nothing of these lessons that could be read", 0), ("nothing attempted", 1)):
        assert f'{group}</th><td class="number">1</td><td><a href="#learner-{who}">' in page
    alone = Report(nobody.submissions[:1], 7)  # a class of which nobody has a score: that is no mean of 0 %
    assert ClassSummary(alone).mean is None and ClassSummary(alone).median is None
    assert "1 learner, nobody has a score; isolation" in class_summary(alone, Path("out"))
    assert dict(class_page._figures(ClassSummary(alone)))["mean"] == "–"


def test_file_names_are_safe_and_no_two_alike_anywhere():
    names = [
        "ada",
        "Ada",
        "ADA",
        "../../etc/passwd",
        "..",
        ".",
        "",
        "a\nb",
        "<b>",
        "x" * 500,
        "é",
        "e\u0301",
        "con",
        "NUL.txt",
        "雪" * 200,
        "a/b\\c",
        "-rf",
        ".hidden",
        "ada-2",
        "a:b",
        "ß",
        "ss",
    ]
    made = stems(names)
    assert len({stem.casefold() for stem in made}) == len(names)
    for stem in made:
        assert stem and len(stem.encode()) <= 100 and stem[0] not in ".-" and not set(stem) & set('/\\:<>"|?*\n\0')
        assert stem.split(".")[0].casefold() not in RESERVED
    assert made[:3] == ["ada", "Ada-2", "ADA-3"] and made[3] == "etc-passwd"


def big(learners: int = 300, exercises: int = 40) -> Report:
    """A class that fails alike, as classes do: a third of all fails, with six wrong results an exercise."""
    names = [f"exercise_{n}" for n in range(exercises)]
    tables = {}
    for n, name in enumerate(names):
        x = np.random.default_rng(n).normal(size=(4, 5)).round(1)
        for kind in range(6):
            tables[name, kind] = [
                np.tanh(x) ** 2,
                np.tanh(x + np.random.default_rng(kind).normal(size=x.shape)) ** 2,
                x,
            ]
    subs = []
    for who in range(learners):
        rng = np.random.default_rng(who)
        verdicts = []
        for name in names:
            kind = int(rng.integers(18))
            if kind >= 6:
                verdicts.append(replace(PASSED if kind < 15 else NOT_STARTED, exercise=name))
                continue
            want, got, x = tables[name, kind]  # arrays of their own, as each submission's are
            drawn = compared("result", want.copy(), got.copy(), scores=x.copy())
            verdicts.append(replace(PROVEN if kind < 5 else UNPROVEN, exercise=name, tables=drawn))
        subs.append(
            SubmissionReport(f"learner {who}", "x", (LessonReport("01_x", tuple(verdicts), dict.fromkeys(names, 2)),))
        )
    return Report(tuple(subs), 7)


def test_three_hundred_learners_and_forty_exercises():
    report = big()
    statuses = Counter(v.status for one in report.submissions for part in one.lessons for v in part.verdicts)
    assert statuses.total() == 12_000 and statuses["failed"] > 3_500

    def timed(of: Report) -> tuple[float, str]:
        """The seconds of this process alone, and the page."""
        started = time.process_time()
        page = class_page.render(open_course(), of)
        return time.process_time() - started, page

    # six times the learners take no more than six times as long, on any machine; the first page of a process takes longer
    few_s = min(timed(replace(report, submissions=report.submissions[:50]))[0] for _ in range(2))
    many_s, made = timed(report)
    assert many_s < 6 * few_s
    assert len(made.encode()) < 25_000_000


def test_many_learners_are_folded_and_their_code_stands_on_their_own_pages(tmp_path):
    few, many = (
        replace(
            CLASS,
            submissions=tuple(
                SubmissionReport(
                    f"l{at}", "x", (replace(lesson("01_x", PASSED, PROVEN), code={PROVEN.exercise: f"own = {at}"}),)
                )
                for at in range(count)
            ),
        )
        for count in (class_page.MOST_OPEN, class_page.MOST_OPEN + 1)
    )
    made = {name: class_page.render(open_course(), report) for name, report in (("few", few), ("many", many))}
    assert 'href="#learner-3-code-shares"' in made["few"] and 'id="learner-3-code-shares"' in made["few"]
    assert "own = 3" in made["few"] and '<details class="whole">' not in made["few"]
    assert made["many"].count('<details class="whole">') == class_page.MOST_OPEN + 1 and "own = 3" not in made["many"]
    report_files.write_all(open_course(), many, tmp_path)
    for target in set(re.findall(r'href="(feedback/[^"#]+)#(code-\w+)"', made["many"])):
        assert f'id="{target[1]}"' in (tmp_path / target[0]).read_text()
    assert 'href="feedback/l3.html#code-shares"' in made["many"]
    for said in made.values():
        ids = {value for name, value in Elements(said).attributes if name == "id"}
        assert {link[1:] for link in re.findall(r'href="(#[^"]+)"', said)} <= ids


def test_names_of_the_roster_stand_beside_logins(tmp_path):
    from grader.submission.roster import read_roster as roster

    (tmp_path / "roster.csv").write_text('login,name\nada,"Lovelace, Ada"\ngrace@example.org,grace@example.org\n')
    made = class_page.render(open_course(), CLASS, roster(tmp_path / "roster.csv"))
    heading, ada, *_ = read(grades_csv.render(CLASS, roster(tmp_path / "roster.csv")))
    assert heading[:2] == ["learner", "name"] and ada[:2] == ["ada", "Ada Lovelace"]
    assert made.count('<span class="person">Ada Lovelace</span>') == 2, "in the table and above what is said of her"
    assert made.count('class="person"') == 2, "a name that is the login itself stands once"
    assert 'class="person"' not in class_page.render(open_course(), CLASS)
