"""README and the pages that it leads to are true: the failing check, the lessons, the tree, the commands."""

from __future__ import annotations

import re

from grader.cli import parser
from tests import readme, road
from tests.conftest import ROOT

PAGE = readme.README.read_text(encoding="utf-8")
GUIDES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("instructors", "learners", "setup")
}
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_failing_check_and_the_lessons_are_as_they_are_now():
    for page in readme.PAGES:
        assert readme.filled(page) == page.read_text(encoding="utf-8"), "run: python -m tests.readme"


def test_the_road_is_drawn_from_the_lessons_as_they_are_now():
    assert road.FILE.read_text(encoding="utf-8") == road.picture(), "run: python -m tests.readme"


def test_it_begins_with_two_commands_of_the_makefile():
    commands = re.findall(r"^    make (\w+)", PAGE, re.MULTILINE)
    assert commands[:2] == ["lab", "test"]
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {
        *commands,
        *re.findall(r"(?:^    |`)make (\w+)", "".join([PAGE, *GUIDES.values(), CONTRIBUTING]), re.MULTILINE),
    } <= targets
    assert PAGE.index("make test") < 250


def test_it_fits_on_two_screens():
    table = re.search(r"<!-- lessons -->.*<!-- end -->", PAGE, re.DOTALL)[0]
    assert len(PAGE.replace(table, "").splitlines()) < 90


def test_the_tree_names_what_is_there():
    tree = CONTRIBUTING.partition("```text\nnotebooks/")[2].partition("```")[0]
    for name in re.findall(r"^  (\S+\.py|\w+/) ", tree, re.MULTILINE):
        assert (ROOT / "grader" / name).exists(), name
    for name in re.findall(r"^(\w+/) ", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_every_grader_command_that_is_named_exists():
    named = set()
    for text in (PAGE, CONTRIBUTING, *GUIDES.values()):
        named |= set(re.findall(r"(?:`|^    |&& )grader (\w+)", text, re.MULTILINE))
    known = parser()._subparsers._group_actions[0].choices
    assert named <= set(known) and "grade" in named


def test_every_option_that_is_named_exists():
    commands = parser()._subparsers._group_actions[0].choices
    helps = "".join(command.format_help() for command in commands.values())
    text = PAGE + GUIDES["instructors"]
    options = re.findall(r"`(--[\w-]+)[ `]", text) + re.findall(r"grader [a-z]+ .*?(--[\w-]+)", text)
    assert options and all(option in helps for option in options)


def test_links_lead_somewhere():
    for folder, text in ((ROOT, PAGE + CONTRIBUTING), *((ROOT / "docs", guide) for guide in GUIDES.values())):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (folder / target).exists(), target
