"""A real JupyterLab in headless Chromium: lesson 01 run untouched, softmax_rows wrong, right, broken and restarted.

Screenshots are kept in artefacts/. A browser is needed, not skipped: see tests/find_chromium.py.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from grader.course import percent, references
from grader.course.course import open_course
from grader.course.stubs import code_or_prose, encode, notebook
from grader.judging.judge import judge
from tests import lab
from tests.find_chromium import ADVICE, find_chromium
from tests.live import from_cells

LESSON = "01_three_tokens"
WRONG = """def softmax_rows(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()"""
BUTTONS = "buttons"
RECORD = (
    'import os\nos.environ["ATTENTION_COURSE_PROGRESS"] = "buttons.json"'  # of its own: other tests pass the exercise
)
ASKED = percent.Prediction(
    "Which weight is the largest?\n\n- **A** the first\n- **B** the last",
    "**A**, since $e^{2} > e^{1}$:\n\n- the first key scores 2;\n- the last one 1.\n\n```python\nweights.argmax()\n```",
    "**B** reads the scores as *costs*.",
)

pytestmark = pytest.mark.timeout(420)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Of a JupyterLab whose folder holds the pristine lesson, and an exercise of it with a prediction."""
    place = tmp_path_factory.mktemp("lab") / "lab"
    with lab.jupyterlab(place, LESSON) as found:
        mine = {
            "def": WRONG,
            "imports": f"{RECORD}\nimport numpy as np\nfrom grader import check",
            "check": "check(softmax_rows)",
        }
        cells = [code_or_prose(id, mine[id], {}, False) for id in ("imports", "def", "check")]
        cells += [
            code_or_prose("p", percent.prediction_markdown(ASKED), {}, True),
            code_or_prose("w", open_course().nav_links(LESSON), {}, True),
        ]
        (place / "work" / f"{BUTTONS}.ipynb").write_text(encode(notebook(cells, {})))
        shutil.copy(open_course().glossary_path, place / "work")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    with lab.browser() as context:
        yield context


# To open a notebook takes JupyterLab, a browser and a kernel seconds: each of both is opened once, and used as a learner uses it.
@pytest.fixture(scope="module")
def lesson_page(browser, address) -> Iterator[Page]:
    with lab.notebook(browser, address, LESSON) as page:
        yield page


@pytest.fixture(scope="module")
def buttons_page(browser, address) -> Iterator[Page]:
    with lab.notebook(browser, address, BUTTONS, 1400) as page:
        yield page


def test_a_prediction_is_clicked_and_its_answer_stays(lesson_page, artefacts):
    page = lesson_page
    predict = lab.cell(page, "from grader import predict")  # the first of its kind
    lab.run(page, predict)
    output = predict.locator(".jp-Cell-outputArea")
    button = output.get_by_role("button", name="B", exact=True)
    expect(button).to_have_attribute("title", "Predict B")
    expect(output).not_to_contain_text("You said")
    button.focus()
    page.keyboard.press("Enter")
    expect(output.get_by_role("status")).to_have_text("You said B. The answer is below.")
    expect(output).to_contain_text("both dot products are 1")
    expect(output.locator("strong").first).to_have_text("You said B.")
    output.get_by_role("button", name="C", exact=True).click()
    expect(output.get_by_role("status")).to_contain_text("You chose C now, and the first choice is kept.")
    assert output.locator("strong", has_text="You said B.").count() == 1
    lab.picture(page, predict, artefacts / "prediction.png")
    lab.restart(page)
    lab.run(page, predict)  # also where the cell with the lesson's imports has not run
    expect(output).to_contain_text("You said B.")
    assert output.get_by_role("button").count() == 0
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"]').count() == 0


def test_lesson_01_untouched_then_wrong_then_right(lesson_page, artefacts):
    page = lesson_page
    lab.run_all(page)
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    check = lab.cell(page, "check(softmax_rows)")
    expect(lab.output(check)).to_contain_text("not started", ignore_case=True)
    lab.picture(page, check, artefacts / "1-untouched.png")

    verdict = judge(open_course().exercise("softmax_rows"), from_cells("softmax_rows", WRONG))
    assert verdict.mistakes, "the wrong answer of this test is to be one whose mistake is proven"
    headline_in_view(page)
    output = lab.output(check)
    expect(output).to_contain_text(verdict.mistakes[0])
    expect(output).to_contain_text("failed", ignore_case=True)
    heat_map = output.locator("img").first
    heat_map.wait_for()
    box = heat_map.bounding_box()
    assert box and box["width"] > 40 and box["height"] > 20
    lab.picture(page, check, artefacts / "2-wrong.png")

    lab.rewrite(page, lab.cell(page, "def softmax_rows"), references.solution_text(open_course(), "softmax_rows"))
    lab.run(page, check)
    expect(output).to_contain_text("passed", ignore_case=True)
    expect(output).not_to_contain_text(verdict.mistakes[0])
    lab.picture(page, check, artefacts / "3-right.png")

    # A cell that is broken after its pass; a restart; the failing inputs; the exercise as it was.
    lab.rewrite(page, lab.cell(page, "def softmax_rows"), WRONG.replace("np.exp(", "np.exp(("))
    lab.run(page, check)
    expect(output).to_contain_text("The last run of the cell that defines softmax_rows failed: SyntaxError")
    expect(output).to_contain_text("is still in the kernel, but it was not judged")
    lab.picture(page, check, artefacts / "4-broken.png")

    lab.rewrite(page, lab.cell(page, "def softmax_rows"), WRONG)
    lab.run(page, check)
    replayed = lab.cell(page, "if passed(softmax_rows)")
    lab.rewrite(page, replayed, "replay(softmax_rows)")
    below = lab.cell(page, "got = softmax_rows(scores)")
    lab.run(page, below)
    expect(lab.output(below)).to_contain_text("array([[")
    lab.picture(page, replayed, artefacts / "5-replay.png")
    lab.rewrite(page, replayed, "%grader explain SM1")
    expect(lab.output(replayed)).to_contain_text("Softmax ran over the queries")

    lab.restart(page)
    lab.run(page, check)
    expect(lab.output(check)).to_contain_text(
        "check is not known in this kernel: run the cell near the top that imports it"
    )
    lab.run(page, lab.cell(page, "import math"))
    lab.run(page, check)
    expect(lab.output(check)).to_contain_text(
        "softmax_rows is not defined in this kernel: run the cell that defines it."
    )
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    lab.picture(page, check, artefacts / "6-restarted.png")

    lab.rewrite(page, replayed, 'reset("softmax_rows")')
    lab.run(page, replayed)  # as Run All would: it only asks again
    expect(lab.output(replayed)).to_contain_text("Restore the original cell of softmax_rows?")
    written = lab.cell(page, "def softmax_rows").locator(".cm-content")
    expect(written).to_contain_text("return exps / exps.sum()")
    replayed.get_by_role("button", name="Restore the original cell").click()
    expect(written).to_contain_text("softmax_rows is not written yet")


def headline_in_view(page: Page) -> None:
    """The wrong answer and its check, run with Shift+Enter on a low screen: JupyterLab has scrolled to the next cell by then."""
    usual = page.viewport_size
    page.set_viewport_size({"width": 1280, "height": 620})
    lab.rewrite(page, lab.cell(page, "def softmax_rows"), WRONG)
    page.keyboard.press("Shift+Enter")  # on the check, which has become the active cell
    output = lab.output(lab.cell(page, "check(softmax_rows)"))
    expect(output).to_contain_text("softmax_rows failed")
    page.wait_for_timeout(2500)
    expect(output.locator(".attn-head").first).to_be_in_viewport(ratio=0.9, timeout=1000)
    page.set_viewport_size(usual)


def test_every_button_shows_its_result_below_the_verdict(buttons_page, artefacts):
    """By mouse and by keyboard; the cell is reset where it stands, Ctrl+Z brings it back, and nothing is left behind."""
    page = buttons_page
    lab.run_all(page)
    mine, check = lab.cell(page, "def softmax_rows"), lab.cell(page, "check(softmax_rows)")
    bar, result = check.locator(".attn-bar").first, check.locator("section")
    bar.wait_for()
    lab.run_all(page)  # again: other buttons take the place of the first ones
    expect(bar.get_by_role("button")).to_have_text(["Hint 1 of 3", "Replay", "Explain SM3", "Solution", "Reset"])
    expect(bar).to_contain_text(re.compile(r"1 attempt.*lesson 01: 0 of 7 passed", re.S))
    expect(check).not_to_contain_text("Where to look")
    said = {"Replay": "They gave:", "Explain SM3": "each row needs its own sum", "Solution": "opens after a pass"}
    for label, text in said.items():
        bar.get_by_role("button", name=label).click()
        expect(result).to_contain_text(text)
        expect(check.get_by_role("alert")).to_have_text(f"{label}: the result is below the buttons.")
    bar.get_by_role("button", name="Hint 1 of 3").focus()
    for key, level in (("Enter", 1), ("Space", 2)):  # the notebook's own shortcuts don't take them
        page.keyboard.press(key)
        expect(result).to_contain_text(f"Hint {level} of 3 for softmax_rows")
    page.keyboard.press("Tab")
    expect(bar.get_by_role("button", name="Replay")).to_be_focused()
    lab.picture(page, check, artefacts / "buttons.png")

    bar.get_by_role("button", name="Reset").click()
    expect(result).to_contain_text("Restore the original cell of softmax_rows?")
    check.get_by_role("button", name="Restore the original cell").click()
    expect(check).to_contain_text("softmax_rows is the course's original again.")
    expect(check.locator("details pre").last).to_have_text(WRONG)
    expect(mine.locator(".cm-content")).to_contain_text("softmax_rows is not written yet")
    expect(mine.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(mine.locator(".cm-content")).to_contain_text("return exps / exps.sum()")
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 3
    assert (
        page.locator(
            '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'
        ).count()
        == 0
    )

    lab.restart(page)  # no kernel answers the buttons any more
    expect(check.get_by_role("button")).to_have_count(0)
    menu_saved(page)
    page.reload()
    stored = lab.cell(page, "check(softmax_rows)").locator(".jp-OutputArea-output.jupyter-widgets")
    expect(stored).to_have_text("Error displaying widget: model not found")
    assert stored.evaluate("e => getComputedStyle(e).fontSize") == "0px"  # not seen; a sentence takes its place
    assert "Run the check again" in stored.evaluate("e => getComputedStyle(e, '::after').content")


def menu_saved(page: Page) -> None:
    """File > Save Notebook, and waits until it is."""
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url):
        lab.menu(page, "File", "Save Notebook")


def test_an_answer_is_folded_away_until_it_is_asked_for_and_the_glossary_is_a_click_away(buttons_page, artefacts):
    """The Markdown inside <details> is rendered, and the sanitizer leaves both elements."""
    page = buttons_page
    cell = page.locator(".jp-Notebook .jp-RenderedMarkdown").first
    expect(cell.locator("p strong").first).to_have_text("Predict.")
    assert cell.locator("> ul > li").count() == 2
    answer = cell.locator("details")
    expect(answer.locator("li").first).to_be_hidden()
    answer.locator("summary").click()
    expect(answer.locator("li").first).to_be_visible()
    expect(answer.locator("p strong").first).to_have_text("A")
    expect(answer.locator("pre code")).to_contain_text("weights.argmax()")
    expect(answer.locator("mjx-container").first).to_be_visible()
    page.screenshot(path=str(artefacts / "prediction.png"))
    page.locator(".jp-Notebook a", has_text="Glossary").click()
    expect(page.locator(".lm-TabBar-tab", has_text="glossary.md")).to_be_visible()
    expect(page.get_by_text("Glossary and notation").last).to_be_visible()
    page.screenshot(path=str(artefacts / "glossary.png"))


def test_the_browser_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/no/such/browser")
    assert find_chromium() is None
    assert "Install one" in ADVICE
