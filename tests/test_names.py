"""A learner's name is that learner's alone, and whatever a stranger puts into one is seen."""

from __future__ import annotations

import csv
import io
import itertools
import sys
import unicodedata

import pytest

from grader.course.course import open_course
from grader.grading.class_folder import entries, same_name_warnings
from grader.judging.verdict import Verdict
from grader.reports import canvas, class_page, markdown, moodle, text
from grader.reports.report import Report, SubmissionReport
from grader.util.names import fold_name, labels, learner_name, printable, same_name_groups
from tests.reports.samples import lesson

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "bob")


def variants(name: str) -> list[str]:
    """Ways in which a folder can be named so that it reads, or is imported, as another one."""
    made = [
        f" {name}",
        f"{name} ",
        f"  {name}",
        name.upper(),
        name.title(),
        name + TAGS,
        TAGS + name,
        f"\u202e{name[::-1]}",
    ]
    made += [f"{name[0]}{unseen}{name[1:]}" for unseen in ("\u00ad", "\u200b", "\u2060", "\ufeff", "\u034f", "\u3164")]
    made += [unicodedata.normalize("NFD", name), name.replace("a", "\uff41")]
    return [each for each in dict.fromkeys(made) if each != name]


def test_nothing_in_a_printable_name_is_unseen():
    every = map(chr, range(sys.maxunicode + 1))
    unseen = [sign for sign in every if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Cs")]
    for sign in (*unseen, *"\u034f\u115f\u1160\u17b4\u2800\u3164\uffa0\ufe0f\U000e0100\u00a0\u2003"):
        assert printable(f"a{sign}da") == learner_name(f"a{sign}da") == "a\ufffdda", ascii(sign)
        if (
            sign not in "\n\r\t\u00a0\u2003"
            and unicodedata.bidirectional(sign) not in ("AN", "AL")
            and not "\U000110bd" <= sign < "\U00013460"
        ):
            assert sign not in text.clean(f"a{sign}da"), ascii(sign)  # but for signs that are seen


def test_spaces_at_the_ends_and_in_a_row_are_seen():
    assert learner_name(" ada") == "␣ada" and learner_name("ada  lovelace ") == "ada␣␣lovelace␣"
    assert learner_name("Ada Lovelace") == "Ada Lovelace"


@pytest.mark.parametrize("name", ["ada", "zoé lee", "ada.lovelace@example.org"])
def test_the_exact_name_has_the_label_and_no_other_has_it(name):
    odd = [learner_name(each) for each in variants(name)]
    for order in ([name, *odd], [*odd, name], [*odd[:5], name, *odd[5:]]):
        plain = [each for each in order if each not in (name.upper(), name.title())]
        made = labels(plain)
        assert made[plain.index(name)] == name
        assert len(set(made)) == len({fold_name(label) for label in made}) == len(plain)
        # Of two that differ in case neither is known to be the grade book's.
        made = labels(order)
        assert name not in made and len({fold_name(label) for label in made}) == len(order)


def test_names_that_are_nobody_elses_stay_as_they_are():
    names = ("ada", "Bob", "Li Na", "lina", "zoé", "\u0434\u0430", "王芳", "a (2)", "x²")
    assert labels(names) == names and same_name_groups(names) == []


@pytest.mark.parametrize(
    "names, said",
    [
        (("Ada", "ada"), ("Ada (1)", "ada (2)")),
        (("ada", "ada"), ("ada (1)", "ada (2)")),
        (("zoe\u0301", "zo\u00e9"), ("zoe\u0301 (2)", "zo\u00e9")),
        (("ada (2)", "ada", "␣ada"), ("ada (2)", "ada", "␣ada (3)")),
        (("a\ufffdda", "␣ada"), ("a\ufffdda (1)", "␣ada (2)")),
    ],
)
def test_who_is_numbered(names, said):
    assert labels(names) == said


def report(*names: str) -> Report:
    one = lesson("01_x", Verdict("softmax", "passed", "softmax passed."))
    return Report(tuple(SubmissionReport(name, "p", (one,)) for name in names), 7)


def test_no_grade_book_has_a_classmates_login_for_anybody_else():
    for odd in variants("ada"):
        for names in itertools.permutations((odd, "ada", "bob")):
            for made, column in ((canvas.render(report(*names)), 3), (moodle.render(report(*names)), 0)):
                logins = [row[column] for row in csv.reader(io.StringIO(made))][-3:]
                assert len({fold_name(login) for login in logins}) == 3
                if odd.casefold() != "ada":
                    assert logins[names.index("ada")] == "ada"
                assert logins[names.index(odd)].casefold() != "ada" and "bob" in logins


def test_a_class_tells_whose_names_are_alike(tmp_path):
    for name in (" ada", "ada", "bob", "b\u00adob", "cyd", "cy d"):
        (tmp_path / name).mkdir()
    ada, bob = same_name_warnings(entries(tmp_path)[0])
    assert (
        ada.startswith("ada, ␣ada differ at most in case, spaces") and "call them ada, ␣ada (2): find out whose" in ada
    )
    assert "call them bob, b\ufffdob (2)" in bob


LINKS = [
    "http://evil.example/x",
    "https://evil.example",
    "www.evil.example",
    "WWW.evil.example",
    "me@evil.example",
    "@octocat",
    "@org/team",
    "#1",
    "owner/repo#1",
    "GH-1",
    "mailto:me@evil.example",
    "xmpp:a@b.c",
    "ftp://evil.example",
]


@pytest.mark.parametrize("name", LINKS)
def test_a_name_is_no_link(name):
    """GitHub makes links of what entities stand for, too: what it looks for must not stand there once they are read."""
    import html
    import re

    read = html.unescape(markdown.render(open_course(), report(name, "bob")))
    assert not re.search(r"(?i)://\w|\bwww\.|@[\w.-]|(?<!#)#\d|\bGH-\d", read), read
    assert "href" not in class_page.render(open_course(), report(name))


def test_what_only_looks_a_bit_like_a_link_stays():
    assert markdown.escape("q @ k.T") == "q &#64; k.T" and "&#8203;" not in markdown.escape("x[:5] wwwa 1.5")
