"""The website of the course: built without a warning, whole by itself, readable on a phone and in the dark, in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from playwright.sync_api import sync_playwright

from tests.conftest import ROOT, WHOLE_GRID
from tests.find_chromium import ADVICE, find_chromium

pytest.importorskip("myst_nb", reason="the extra [site], which `make test` installs, is not here")

LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("[0-9][0-9]_*.ipynb"))
LOOKED_AT = (
    "index.html",
    "lessons/01_three_tokens.html",
    "lessons/13_attention_backward.html",
    "lessons/glossary.html",
    "instructors.html",
    "teaching/index.html",
)
LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}


def build(place: Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(folder / "docs" / "site"), str(place)], capture_output=True, text=True, timeout=240
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder of the site, built where an older one lay; one that a warning stopped had replaced nothing of that."""
    place = tmp_path_factory.mktemp("site") / "made"
    place.mkdir()
    for name in (".buildinfo", "gone.html"):
        (place / name).write_text("of last year")
    spoiled = _repository(tmp_path_factory.mktemp("spoiled") / "repository", LESSONS[:1])
    (spoiled / "docs" / "instructors.md").write_text("# For instructors\n\n[nowhere](#nothing-there)\n")
    stopped = build(place, spoiled)
    assert stopped.returncode == 1 and stopped.stderr.count("WARNING") == 1 and "nothing-there" in stopped.stderr
    assert sorted(path.name for path in place.iterdir()) == [".buildinfo", "gone.html"]
    done = build(place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return place


class Page(HTMLParser):
    """What a page's tags say: what it loads, where it leads, its ids, its pictures; and which text is folded away."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.ids: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.open = self.folded = ""  # texts outside of details, and inside of closed ones
        self.text = path.read_text(encoding="utf-8")
        self._details: list[bool] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.ids |= {about["id"]} if about.get("id") else set()
        if (
            tag in LOADED
            and about.get(LOADED[tag])
            and about.get("rel") not in ("canonical", "next", "prev", "index", "search")
        ):
            self.loads.append(str(about[LOADED[tag]]))
        if tag == "a" and about.get("href"):
            self.leads.append(str(about["href"]))
        if tag == "img":
            self.pictures.append(about)
        if tag == "details":
            self._details.append("open" not in about)

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._details.pop()

    def handle_data(self, data: str) -> None:
        if any(self._details):
            self.folded += data
        else:
            self.open += data


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_lesson_every_note_and_the_instructors_page_are_there(pages):
    notes = [f"teaching/{path.stem}.html" for path in (ROOT / "docs" / "teaching").glob("[0-9]*.md")]
    wanted = {
        *(f"lessons/{name}.html" for name in LESSONS),
        *notes,
        *(page for page in LOOKED_AT),
        "contributing.html",
        "search.html",
    }
    assert LESSONS and wanted <= pages.keys(), wanted - pages.keys()


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for name, page in pages.items():
        for source in page.loads:
            assert not re.match(r"(https?:)?//", source), f"{name} loads {source}"
            assert (
                source.startswith("data:") or (site / name).parent.joinpath(unquote(source.split("?")[0])).is_file()
            ), f"{name}: {source}"
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")] + [page.text for page in pages.values()]
    assert styles and not any(re.search(r"""@import|url\(\s*["']?(https?:)?//""", style) for style in styles)


def test_every_link_leads_somewhere(site, pages):
    seen = 0
    for name, page in pages.items():
        for lead in page.leads:
            if re.match(r"(https?|mailto):", lead):
                continue
            path, _, anchor = unquote(lead).partition("#")
            there = (site / name).parent.joinpath(path).resolve() if path else (site / name)
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), f"{name} leads to {lead}"
            if anchor and there.suffix == ".html":
                assert anchor in pages[there.relative_to(site).as_posix()].ids or not anchor.strip(), (
                    f"{name} leads to {lead}"
                )
            seen += 1
    assert seen > 500


def test_each_figure_says_in_words_what_it_shows(pages):
    shown = 0
    for name in LESSONS:
        page = pages[f"lessons/{name}.html"]
        assert all((one.get("alt") or "").strip() for one in page.pictures), name
        shown += len(page.pictures)
    assert shown > 60


def _prose(cell: dict) -> str:
    return re.sub(r"\W+", "", "".join(cell["source"]))


@pytest.mark.parametrize("name", LESSONS)
def test_solutions_and_answers_are_folded_and_stubs_are_not(pages, name):
    page = pages[f"lessons/{name}.html"]
    solved = json.loads((ROOT / "solutions" / f"{name}.ipynb").read_text(encoding="utf-8"))
    stubs = {
        cell["id"]: cell
        for cell in json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    }
    folded, open_ = re.sub(r"\W+", "", page.folded), re.sub(r"\W+", "", page.open)
    exercises = [cell for cell in solved["cells"] if cell["metadata"]["grader"]["role"] == "exercise"]
    assert exercises
    for cell in exercises:
        assert _prose(cell) in folded and _prose(cell) not in open_, cell["id"]
        assert _prose(stubs[cell["id"]]) in open_, cell["id"]
        assert f"The course's solution of {cell['metadata']['grader']['exercise']}" in page.folded
    for cell in solved["cells"]:
        answer = re.search(r"</summary>\s*(.+?)</details>", "".join(cell["source"]), re.DOTALL)
        if cell["cell_type"] == "markdown" and answer:
            words = re.sub(r"\W+", "", re.sub(r"\$.*?\$|\[([^]]*)\]\([^)]*\)", "", answer[1].split("\n\n")[0]))[-60:]
            assert words in folded and words not in open_, words
    assert 'aria-label="Toggle hidden' not in page.text


def test_lessons_lead_to_the_glossary_to_each_other_and_to_the_notebook(site, pages):
    for at, name in enumerate(LESSONS):
        page = pages[f"lessons/{name}.html"]
        assert any(lead.startswith("glossary.html#term-") for lead in page.leads), name
        after = f"{LESSONS[at + 1]}.html" if at + 1 < len(LESSONS) else "glossary.html"
        assert page.leads.count(after) >= 2, f"{name}: sidebar and 'next'"
        (notebook,) = {lead for lead in page.leads if lead.endswith(f"{name}.ipynb")}
        made = (site / "lessons" / notebook).resolve()
        assert made.read_bytes() == (ROOT / "notebooks" / f"{name}.ipynb").read_bytes(), (
            "what one downloads is the learner's"
        )


def test_formulas_are_mathml_without_a_rest_of_latex(pages):
    formulas = [formula for page in pages.values() for formula in re.findall(r"<math.*?</math>", page.text, re.DOTALL)]
    assert len(formulas) > 60 and not any("\\" in re.sub(r"<[^>]*>", "", formula) for formula in formulas)


def _repository(place: Path, lessons: Sequence[str] = LESSONS) -> Path:
    """A copy of what the site is made of, to be spoiled. lessons: those that it has; the fewer, the sooner it is built."""
    others = shutil.ignore_patterns(*(f"{name}.*" for name in LESSONS if name not in lessons))
    for part in ("docs", "notebooks"):
        shutil.copytree(ROOT / part, place / part, ignore=others)
    (place / "solutions").mkdir()
    for part in (
        *(f"solutions/{name}.ipynb" for name in lessons),
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "pyproject.toml",
    ):
        (place / part).symlink_to(ROOT / part)
    return place


def test_a_page_that_does_not_fit_its_notebook_is_a_sentence(tmp_path):
    """Solved and learner's notebook of two versions."""
    repository = _repository(tmp_path / "repository")
    path = repository / "notebooks" / "00_start_here.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace('"exercise-hard_lookup"', '"other"'), encoding="utf-8")
    done = build(tmp_path / "made", repository)
    assert done.returncode == 1 and not (tmp_path / "made").exists()
    assert (
        done.stderr
        == "notebooks/00_start_here.ipynb is not what solutions/00_start_here.ipynb was built with; run `grader build 00`.\n"
    )


def test_a_folder_with_other_things_is_left_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    done = build(tmp_path)
    assert done.returncode == 2 and [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (
        done.stderr
        == f"{tmp_path} contains something other than a site, so nothing was changed. Name a new or an empty folder.\n"
    )


def test_a_site_is_replaced_as_a_whole(site):
    """What the newer one no longer has goes with the older one."""
    assert (site / "index.html").is_file() and not (site / "gone.html").exists()
    assert (site / ".buildinfo").read_text(encoding="utf-8") != "of last year"


def test_the_workflow_publishes_what_make_site_makes():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8"))["jobs"]
    steps = jobs["build"]["steps"]
    assert {"run": "make site"} in steps and steps[-1]["with"] == {"path": "build/site"}
    assert "\t$(BIN)/python docs/site build/site\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert jobs["publish"]["needs"] == "build" and jobs["publish"]["permissions"] == {
        "pages": "write",
        "id-token": "write",
    }


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    path = find_chromium()
    assert path, ADVICE
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


# What fits does not depend on the colors: each width and each scheme once.
VIEWS = [("light", 1280), ("dark", 390)] + [("light", 390), ("dark", 1280)] * WHOLE_GRID


@pytest.mark.parametrize("scheme, width", VIEWS)
def test_pages_fit_and_say_nothing_on_the_console(site, chromium, artefacts, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
    for name in LOOKED_AT:
        page.goto(f"{(site / name).as_uri()}")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, (
            f"{name} is too wide"
        )
        red, green, blue = map(
            int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
        )
        assert (red + green + blue > 600) == (scheme == "light"), name
        page.screenshot(path=artefacts / f"{name.replace('/', '-')}.png")
    context.close()
    assert said == []


def test_a_search_finds_a_lesson_and_a_solution_opens(site, chromium):
    page = chromium.new_page()
    page.goto((site / "search.html").as_uri() + "?q=padding+mask")
    page.wait_for_selector("#search-results li a")
    assert any("Masks" in one.inner_text() for one in page.query_selector_all("#search-results li a"))
    page.goto((site / "lessons" / "00_start_here.html").as_uri())
    solution = page.locator("details.hide", has_text="argmax").first
    assert not solution.locator("pre").is_visible()
    solution.locator("summary").click()
    assert solution.locator("pre").is_visible() and "argmax" in solution.locator("pre").inner_text()
    page.close()
