"""Nothing that a learner wrote becomes markup, a formula, a command of a CI log, or a terminal escape; in any format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.course.course import open_course
from grader.judging.verdict import Line, Verdict
from grader.reports import canvas, grades_csv, moodle, report_files, sheet
from grader.reports.gradebook import Gradebook
from grader.reports.report import Report, SubmissionReport
from tests.mixing_course import COURSE
from tests.reports.samples import HOSTILE, PROVEN, lesson

Files = list[tuple[str, str]]
ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title><h1>mine</h1>",
    "</style><b>x",
    "<!-- ",
    "]]>",
    "]]><x/>",
    "&lt;script&gt;",
    "javascript:alert(1)",
    "a\nb\r\nc",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "\ud800",
    "\x00\x0b\ufffe",
    "::set-output name=score::100",
    "::error file=a::b",
    "##[group]x",
    "##vso[task.complete result=Succeeded]",
    "##teamcity[buildStop comment='x']",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\u200b=1+1",
    "＝1+1",
    '=HYPERLINK("http://x")',
    'a,b;c\td"e',
    "../../etc/passwd",
    "..",
    "",
    "x" * 100_000,
    "`code` [a](http://x) ![b](http://y) | @all #1 ~~~",
    "```\n</details>",
    "{{7*7}}{% x %}",
]


def attacked(said: str) -> Report:
    """The attack as a learner's name, a path, a message, a note, and every text of a verdict."""
    judged = Verdict(
        "shares",
        "failed",
        said,
        "values",
        said,
        (said,),
        PROVEN.tables,
        ("MX7", said),
        (said, said),
        (said,),
        next_step=said,
        next_exercise=said,
        line=Line(said, 3),
    )
    mine = SubmissionReport(
        said, said, (lesson("01_x", judged, replace(HOSTILE, exercise="b"), notes=(said,)),), said, (said,), said
    )
    return Report(
        (mine, SubmissionReport("neighbour", "n", (lesson("01_x", replace(PROVEN, exercise="b")),))),
        7,
        not_graded=((said, said),),
    )


class Tags(HTMLParser):
    """Every element and attribute of a page, the shape that text must not change."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.met: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.links: list[str] = []
        self.odd: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.met[tag, tuple(name for name, _ in attrs)] += 1
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "xlink:href")]

    def handle_comment(self, data):
        self.odd.append(data)

    def unknown_decl(self, data):
        self.odd.append(data)

    handle_pi = handle_comment


# The class's page, the learner's own, the neighbour's.
PLAIN = [
    Tags(content).met
    for name, content in report_files.files(COURSE, attacked("word"), Gradebook(100))
    if name.endswith(".html")
]


def no_element_or_attribute_of_a_learner_s(files: Files) -> None:
    pages = [(name, content) for name, content in files if name.endswith(".html")]
    for (name, content), plain in zip(pages, PLAIN, strict=True):
        read = Tags(content)
        extra = set(read.met - plain)
        assert extra <= {("code", ())}, name  # `code` in prose is ours to set
        assert all(link.startswith("#") or link == "similarity.html" for link in read.links) and not read.odd


def no_control_character(files: Files) -> None:
    for name, content in files:
        content.encode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ufffe\ud800-\udfff]", content), name


def no_cell_of_a_sheet_begins_a_formula(report: Report) -> None:
    for made in (grades_csv.render(report), canvas.render(report, Gradebook(10)), moodle.render(report)):
        rows = list(csv.reader(io.StringIO(made), strict=True))
        assert len({len(row) for row in rows}) == 1 and len(rows) in (3, 4)
        for cell in (cell for row in rows for cell in row):
            begins = cell.lstrip(" \u200b")[:1]
            assert begins not in tuple("=+-@\t\r\n＝＋－＠") or not begins
            assert "\n" not in cell and "\r" not in cell


def whole_and_without_a_command(files: Files) -> None:
    for name, content in files:
        if name.endswith((".json", ".xml", ".md")):
            assert not re.search(r"(?m)::[a-z-]+ ?[^:\n]*::|##\w*\[", content), name
        if name.endswith(".json"):
            json.loads(content)
            assert content.isascii()
        if name.endswith(".xml"):
            suites = ElementTree.fromstring(content)
            assert {child.tag for child in suites.iter()} <= {
                "testsuites",
                "testsuite",
                "testcase",
                "failure",
                "error",
                "system-out",
            }
            assert len({suite.get("name") for suite in suites}) == len(suites)


def in_their_folder(report: Report, tmp_path: Path) -> None:
    written = report_files.write_all(open_course(), report, tmp_path / "out")
    assert len(written) == 14
    assert {path.parent.relative_to(tmp_path / "out").as_posix() for path in written} == {
        ".",
        "feedback",
        "junit",
        "gradescope",
    }
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)


@pytest.mark.parametrize("said", ATTACKS, ids=ascii)
def test_no_file_takes_it_for_more_than_text(said, tmp_path):
    report = attacked(said)
    files = list(report_files.files(open_course(), report, Gradebook(100)))
    no_element_or_attribute_of_a_learner_s(files)
    no_control_character(files)
    whole_and_without_a_command(files)
    no_cell_of_a_sheet_begins_a_formula(report)
    in_their_folder(report, tmp_path)


def test_guarded_keeps_harmless_text():
    assert sheet.guard("ada") == "ada" and sheet.guard("a=b") == "a=b" and sheet.guard("") == ""
    assert sheet.guard("=1") == "'=1" and sheet.guard("\tada") == "'ada"


def test_a_template_is_not_filled_in():
    assert "{{7*7}}" in dict(report_files.files(open_course(), attacked("{{7*7}}")))["report.html"]
