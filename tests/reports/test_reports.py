"""Each renderer: the format it promises, and that nothing a learner wrote acts in it."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from grader.course.course import open_course
from grader.course.spec import MistakeText
from grader.reports import class_page, heatmap, html, junit, markdown, report_json, terminal, text
from grader.reports.report import Report, SubmissionReport
from tests.reports import samples
from tests.reports.samples import HOSTILE, NAN, REPORT, VERDICTS, compared

RENDERERS = {
    "json": report_json,
    "junit": junit,
    "markdown": markdown,
    "terminal": terminal,
    "text": text,
    "html": class_page,
}


def test_json_has_the_promised_format():
    data = json.loads(report_json.render(REPORT))
    assert (data["format"], data["course"], data["seed"]) == (1, "mixing", 7)
    ada, bob = data["submissions"]
    assert (ada["name"], ada["path"], ada["score"], ada["max_score"]) == ("ada", "submissions/ada", 2, 14)
    assert (ada["message"], bob["message"]) == ("", "What to repair in 03_torch.ipynb.")
    lesson = ada["lessons"][0]
    assert (lesson["name"], lesson["score"], lesson["max_score"]) == ("01_mixing", 2, 10)
    failed = lesson["exercises"][2]
    wanted = {"name", "status", "score", "max_score", "mistakes", "headline", "message", "seconds"}
    assert wanted <= failed.keys()
    assert (failed["status"], failed["score"], failed["max_score"], failed["mistakes"]) == ("failed", 0, 2, ["MX7"])
    assert "The columns sum to 1; each row is to." in failed["message"]
    assert lesson["exercises"][4]["seconds"] == 0.0123


def test_json_in_a_log_holds_no_command_and_the_same_text():
    made = report_json.render(REPORT)
    assert "::" not in made and "##" not in made and made.isascii()
    assert "::error file=a::b" in json.loads(made)["submissions"][1]["lessons"][1]["exercises"][0]["headline"]


def test_junit_never_skips_and_counts_add_up():
    top = ElementTree.fromstring(junit.render(REPORT))
    suites = {suite.get("name"): suite for suite in top}
    assert list(suites) == [
        "ada.01_mixing",
        "ada.02_logs",
        "bob|<b>.01_mixing",
        "bob|<b>.03_torch",
        "bob|<b>.submission",
    ]
    for suite in suites.values():
        assert suite.get("skipped") == "0" and not suite.findall(".//skipped")
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
    kinds = {case.get("name"): [child.tag for child in case] for case in top.iter("testcase")}
    assert [child.tag for child in suites["ada.01_mixing"].find("testcase[@name='mix']")] == []
    assert kinds["shares"] == kinds["log_shares"] == kinds["surprise"] == kinds["first_output"] == ["failure"]
    assert kinds["products"] == kinds["Mixer"] == kinds["twice"] == ["error"]
    assert (top.get("tests"), top.get("failures"), top.get("errors")) == ("13", "8", "4")


def test_junit_keeps_learner_text_and_drops_what_xml_forbids():
    made = junit.render(REPORT)
    assert "::" not in made and "##[" not in made
    message = ElementTree.fromstring(made).find(".//testcase[@name='mix_torch']/failure").get("message")
    assert message == "::error file=a::b <script>alert(1)</script> | @all #1 [a](http://x) red ##[group]"


def test_junit_of_one_submission_names_suites_by_lesson():
    top = ElementTree.fromstring(junit.render(Report(REPORT.submissions[:1], 7)))
    assert [suite.get("name") for suite in top] == ["01_mixing", "02_logs"]
    nothing = ElementTree.fromstring(junit.render(Report((SubmissionReport("x", "x", ()),), 7)))
    assert nothing.find(".//error").get("message") == "No notebook was found."


def test_markdown_escapes_learner_text_and_fences_the_rest():
    made = markdown.render(open_course(), REPORT)
    row = next(line for line in made.splitlines() if line.startswith("| mix\\_torch |"))
    assert row.count("|") - row.count(r"\|") == 5
    for active in ("<script>", "@all", "[a](", "::error", "##["):
        assert active not in row
    fenced = re.search(r"<summary>mix\\_torch</summary>\n\n(`{3,})text\n(.*?)\n\1\n", made, re.DOTALL)
    assert fenced and fenced[1] not in fenced[2] and "</details>" in fenced[2]


@pytest.mark.parametrize(
    "said", ["| a |", "`x`", "<b>", "[a](b)", "@all", ":smile:", "https://x", "#1", "&#124;", "a\nb"]
)
def test_markdown_escape_leaves_nothing_active(said):
    made = markdown.escape(said)
    assert not re.search(r"(?<!\\)[|`\[\]<>*]|@|:[\w/]|(?<!&)#|\n|&#124;", made)


@pytest.mark.parametrize("rich", [True, False])
def test_terminal_shows_every_result_and_no_foreign_sequence(rich):
    made = terminal.render(REPORT, coloured=rich)
    plain = re.sub("\x1b\\[[0-9;]*m", "", made)
    assert "\x1b" not in plain and "\x07" not in plain and "\u202e" not in plain
    for said in (
        "shares",
        "not started",
        "0/2",
        "2/2",
        "MX7: The columns sum to 1; each row is to.",
        "bob|<b>: ? of 10 points, because Mixer could not be graded",
    ):
        assert said in plain
    assert not re.search(r"^\s*::|##\[", plain, re.MULTILINE)
    assert ("\x1b" in made) == rich


def test_terminal_takes_no_sentence_for_a_result():
    message = SubmissionReport("x", "x", (), message="  passed  2/2  mix")
    assert "\x1b" not in terminal.render(Report((message,), 7), coloured=True)


def test_terminal_is_plain_when_piped_and_without_colours_where_nobody_wants_them(monkeypatch):
    assert "\x1b" not in terminal.render(REPORT)
    monkeypatch.setenv("NO_COLOR", "1")
    made = terminal.render(REPORT, coloured=True)
    assert "\x1b" not in made and "✗ failed" in made


class Elements(HTMLParser):
    """Collects what an HTML text contains; keeps tags balanced."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.said = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in ("br", "meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.said += data


def test_html_escapes_everything():
    read = Elements(html.render_verdict(HOSTILE, notes=["<img src=x onerror=alert(1)>"]))
    assert not {"script", "img", "a"} & set(read.names) and not read.open
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in read.said and "\u202e" not in read.said and "\x1b" not in read.said


@pytest.mark.parametrize("name", VERDICTS)
def test_html_says_what_the_text_says(name):
    judged = VERDICTS[name]
    said = " ".join(Elements(html.render_verdict(judged)).said.split())
    for part in (
        judged.exercise,
        judged.experiment,
        *judged.sentences,
        *judged.verified,
        text.STATUS_WORDS[judged.status],
    ):
        assert " ".join(part.replace("`", "").split()) in said
    assert not re.search("[\U0001f000-\U0001faff\u2600-\u26ff\ufe0f]", said)


def test_the_outcomes_look_different():
    shown = ("passed", "proven", "unproven", "error", "not_started", "forbidden")
    frames = {html.STATUS_STYLES[VERDICTS[name].status] for name in shown}
    assert len(frames) == 5  # the two failures differ in what they say of the mistake
    for told in (html.render_verdict, text.render_verdict):  # a heading is for what can be said below it
        assert "Likely mistake" in told(VERDICTS["proven"]) and "Likely mistake" not in told(VERDICTS["unproven"])


def test_pictures_speak():
    view = compared("weights", np.array([[1.0, 0.0]]), np.array([[NAN, 0.25]]))[1]
    drawn = heatmap.svg(view, heatmap.shared_scale([view]))
    picture = ElementTree.fromstring(drawn)
    assert picture.get("role") == "img"
    label = "got weights (1, 2) float64: nan, 0.25. The largest difference is at 0."
    assert picture.get("aria-label") == label
    assert [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")][-2:] == ["nan", "0.25"]

    shown = dict(Elements(heatmap.image(view, heatmap.shared_scale([view]))).attributes)
    assert shown["alt"] == label
    alone = ElementTree.fromstring(base64.b64decode(shown["src"].removeprefix("data:image/svg+xml;base64,")))
    assert (alone.get("color"), alone[0].get("fill")) == (heatmap.INK, heatmap.PAPER)
    assert [node.text for node in alone.iter("{http://www.w3.org/2000/svg}text")][-2:] == ["nan", "0.25"]


def test_nothing_of_a_verdict_falls_apart_in_a_notebook_that_is_not_trusted():
    assert "img" in Elements(html.render_verdict(VERDICTS["proven"])).names
    for judged in VERDICTS.values():
        assert not {"svg", "text", "script"} & set(
            Elements(html.render_verdict(judged)).names
        )  # of these their words would stay


def test_scales():
    def scale(*arrays):
        return heatmap.shared_scale([table for array in arrays for table in compared("r", array, array)[:1]])

    assert scale(np.array([0.2, 1.0]), np.array([0.0, 0.9])) == heatmap.Scale("weights", 0.0, 1.0)
    assert scale(np.array([0.2, 1.0]), np.array([4.0, NAN])) == heatmap.Scale("values", 0.0, 4.0)
    assert scale(np.array([0.2, -1.0]), np.array([4.0, 1.0])) == heatmap.Scale("diverging", -4.0, 4.0)
    assert scale(np.array([0.0])).colour(0.0) == (255, 255, 255)
    huge = scale(np.array([-1.7e308, 1.7e308]))
    assert all(0 <= part <= 255 for part in huge.colour(1.7e308))


def test_numbers_in_cells_can_be_read_on_every_colour():
    def light(colour):
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    for kind, low in (("weights", 0.0), ("values", 0.0), ("diverging", -1.0)):
        for value in np.linspace(low, 1, 41):
            colour = heatmap.Scale(kind, low, 1.0).colour(value)
            ink = light(bytes.fromhex(heatmap._ink(colour)[1:]))
            assert max(ink, light(colour)) / min(ink, light(colour)) >= 4.2, (kind, value)


def test_long_text_is_cut_in_every_format():
    judged = samples.Verdict("first_output", "failed", "x" * 500_000, "values", details=("y" * 500_000,) * 3)
    report = Report((SubmissionReport("ada", "a", (samples.lesson("01_mixing", judged),)),), 7)
    plain = Report((SubmissionReport("ada", "a", (samples.lesson("01_mixing", samples.GONE),)),), 7)
    for name, renderer in RENDERERS.items():
        course = [open_course()] * (renderer in (markdown, class_page))
        assert len(renderer.render(*course, report)) - len(renderer.render(*course, plain)) <= text.MAX_TEXT + 500, name
    assert "(shortened)" in text.render(report)


def test_a_page_stands_alone():
    read = Elements(class_page.render(open_course(), REPORT))
    assert not read.open and read.names[0] == "html" and "link" not in read.names and "img" not in read.names
    assert (
        "ada 2 of 14 points" in read.said and "bob|<b> ? of 10 points, because Mixer could not be graded" in read.said
    )


@pytest.mark.parametrize(
    ("said", "cleaned"),
    [
        ("a\x00b", "ab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\ud800x", "x"),
        ("\u202eabc", "abc"),
        ("tab\tstays", "tab\tstays"),
        ("é−√✓", "é−√✓"),
    ],
)
def test_clean(said, cleaned):
    assert text.clean(said) == cleaned


@pytest.mark.parametrize(
    "said",
    ["::error::x", "a ::warning file=x::y", "##[group]", "##vso[task]", "##teamcity[x]", "x\n::set-output name=a::b"],
)
def test_defuse(said):
    assert not re.search(r"::[A-Za-z]|##\w*\[", text.defuse(said))


def test_an_explanation_reads_as_text_and_as_html():
    told = MistakeText(
        "MX7", "It ran over the queries.", "First `a`.\n\n```python\nx = 1\n```\n\nThen b.", "y\n  z", "w", "a/b#1"
    )
    assert text.explanation(told) == (
        "MX7: It ran over the queries.\n\nFirst `a`.\n\n    x = 1\n\nThen b.\n\n"
        "Wrong\n    y\n      z\n\nRight\n    w\n\n"
        "Met in public: a/b#1"
    )
    made = html.explanation(told)
    assert "<code>a</code>" in made and '<pre class="attn-code">x = 1</pre>' in made and "```" not in made
