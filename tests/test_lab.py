"""A real JupyterLab in headless Chromium: lesson 01 run untouched, softmax_rows wrong, right, broken and restarted.

Screenshots are kept in artefacts/. A browser is needed, not skipped: see tests/find_chromium.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from grader.course import prose, references, registry
from grader.course.stubs import code_or_prose, encode, notebook
from grader.judging.judge import judge
from tests import lab
from tests.find_chromium import ADVICE, find_chromium
from tests.live import from_cells

LESSON = "01_three_tokens"
WRONG = '''def softmax_rows(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()'''
PREDICTION = "prediction"
ASKED = prose.Prediction(
    "Which weight is the largest?\n\n- **A** the first\n- **B** the last",
    "**A**, since $e^{2} > e^{1}$:\n\n- the first key scores 2;\n- the last one 1.\n\n```python\nweights.argmax()\n```",
    "**B** reads the scores as *costs*.",
)

pytestmark = pytest.mark.timeout(420)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Of a JupyterLab whose folder holds the pristine lesson and a prediction."""
    place = tmp_path_factory.mktemp("lab") / "lab"
    with lab.jupyterlab(place, LESSON) as found:
        cells = [code_or_prose("p", prose.folded(ASKED), {}, True), code_or_prose("w", registry.way(LESSON), {}, True)]
        (place / "work" / f"{PREDICTION}.ipynb").write_text(encode(notebook(cells, {})))
        shutil.copy(registry.glossary_path(), place / "work")
        yield found


@pytest.fixture
def lesson_page(address) -> Iterator[Page]:
    with lab.notebook(address, LESSON) as page:
        yield page


def test_a_headline_is_in_view_after_shift_enter_on_a_low_screen(address):
    """JupyterLab has scrolled to the next cell by then."""
    with lab.notebook(address, LESSON, height=620) as page:
        lab.run_all(page)
        lab.rewrite(page, lab.cell(page, "def softmax_rows"), WRONG)
        page.keyboard.press("Shift+Enter")  # on the check, which has become the active cell
        output = lab.output(lab.cell(page, "check(softmax_rows)"))
        expect(output).to_contain_text("softmax_rows failed")
        page.wait_for_timeout(2500)
        expect(output.locator(".attn-head").first).to_be_in_viewport(ratio=0.9, timeout=1000)


def test_lesson_01_untouched_then_wrong_then_right(lesson_page, artefacts):
    page = lesson_page
    lab.run_all(page)
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    check = lab.cell(page, "check(softmax_rows)")
    expect(check.locator(".jp-OutputArea-output")).to_contain_text("not started", ignore_case=True)
    lab.picture(page, check, artefacts / "1-untouched.png")

    verdict = judge(registry.exercise("softmax_rows"), from_cells("softmax_rows", WRONG))
    assert verdict.mistakes, "the wrong answer of this test is to be one whose mistake is proven"
    lab.rewrite(page, lab.cell(page, "def softmax_rows"), WRONG)
    lab.run(page, check)
    output = lab.output(check)
    expect(output).to_contain_text(verdict.mistakes[0])
    expect(output).to_contain_text("failed", ignore_case=True)
    heat_map = output.locator("img").first
    heat_map.wait_for()
    box = heat_map.bounding_box()
    assert box and box["width"] > 40 and box["height"] > 20
    lab.picture(page, check, artefacts / "2-wrong.png")

    lab.rewrite(page, lab.cell(page, "def softmax_rows"), references.solution_text("softmax_rows"))
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
    expect(lab.output(check)).to_contain_text("check is not known in this kernel: run the cell near the top that imports it")
    lab.run(page, lab.cell(page, "import math"))
    lab.run(page, check)
    expect(lab.output(check)).to_contain_text("softmax_rows is not defined in this kernel: run the cell that defines it.")
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    lab.picture(page, check, artefacts / "6-restarted.png")

    lab.rewrite(page, replayed, 'reset("softmax_rows")')
    expect(lab.output(replayed)).to_contain_text("Save the notebook first")
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1500)
    lab.run(page, replayed)
    expect(lab.output(replayed)).to_contain_text("softmax_rows is the course's original again")
    lab.menu(page, "File", "Reload Notebook from Disk")
    page.locator("dialog.jp-Dialog .jp-mod-accept").first.click()
    expect(lab.cell(page, "def softmax_rows").locator(".cm-content")).to_contain_text("softmax_rows is not written yet")


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


def test_an_answer_is_folded_away_until_it_is_asked_for_and_the_glossary_is_a_click_away(address, artefacts):
    """The Markdown inside <details> is rendered, and the sanitizer leaves both elements."""
    with lab.notebook(address, PREDICTION) as page:
        cell = page.locator(".jp-Notebook .jp-RenderedMarkdown").first
        expect(cell.locator("p strong").first).to_have_text("Predict.")
        assert cell.locator("> ul > li").count() == 2
        answer = cell.locator("details")
        expect(answer.locator("li").first).to_be_hidden()
        answer.locator("summary").click()
        expect(answer.locator("li").first).to_be_visible()
        expect(answer.locator("p strong").first).to_have_text("A")
        expect(answer.locator("p em").first).to_have_text("What a wrong guess shows.")
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
