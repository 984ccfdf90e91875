"""A real JupyterLab in headless Chromium: lesson 01 run untouched, then softmax_rows wrong, then right.

Screenshots are kept in artefacts/. A browser is needed, not skipped: see tests/find_chromium.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from grader.course import prose, references, registry
from grader.course.stubs import code_or_prose, encode, notebook
from grader.judging.judge import judge
from tests.conftest import ROOT
from tests.find_chromium import ADVICE, find_chromium
from tests.live import from_cells

LESSON = "01_three_tokens"
TOKEN = "lesson"
WAIT_MS = 90_000  # two cores, and a second test process on one of them
WRONG = '''def softmax_rows(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()'''
PREDICTION = "prediction.ipynb"
ASKED = prose.Prediction(
    "Which weight is the largest?\n\n- **A** the first\n- **B** the last",
    "**A**, since $e^{2} > e^{1}$:\n\n- the first key scores 2;\n- the last one 1.\n\n```python\nweights.argmax()\n```",
    "**B** reads the scores as *costs*.",
)

pytestmark = [pytest.mark.xdist_group("lab"), pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """The address of a JupyterLab whose folder holds the pristine lesson and whose settings are its own."""
    place = tmp_path_factory.mktemp("lab")
    (place / "work").mkdir()
    shutil.copy(registry.notebook_path(LESSON), place / "work")
    cells = [code_or_prose("p", prose.folded(ASKED), {}, True), code_or_prose("w", registry.way(LESSON), {}, True)]
    (place / "work" / PREDICTION).write_text(encode(notebook(cells, {})))
    shutil.copy(registry.glossary_path(), place / "work")
    _settings(place / "settings", "@jupyterlab/apputils-extension", "notification",
              {"fetchNews": "false", "checkForUpdates": False})
    _settings(place / "settings", "@jupyterlab/notebook-extension", "tracker", {"windowingMode": "none"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(place / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(place / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(place / "workspaces"),
        "IPYTHONDIR": str(place / "ipython"), "ATTENTION_COURSE_PROGRESS": str(place / "progress.json"),
    }  # fmt: skip
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
               "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--notebook-dir={place / 'work'}"]
    with (place / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=place)
    address = f"http://127.0.0.1:{port}"
    try:
        _await_server(address, server, place / "server.log")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def _settings(folder: Path, package: str, plugin: str, values: dict) -> None:
    path = folder / package / f"{plugin}.jupyterlab-settings"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def _await_server(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(180):
        try:
            with urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=5):
                return
        except OSError:
            assert server.poll() is None, log.read_text()[-3000:]
            time.sleep(0.5)
    raise AssertionError(f"JupyterLab did not answer in 90 s:\n{log.read_text()[-3000:]}")


@pytest.fixture
def lesson_page(lab) -> Iterator[Page]:
    """The lesson, open in a browser, its kernel ready."""
    browser_path = find_chromium()
    assert browser_path, ADVICE
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(WAIT_MS)
        expect.set_options(timeout=WAIT_MS)
        page.goto(f"{lab}/lab/tree/{LESSON}.ipynb?token={TOKEN}")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        _await_idle(page)
        yield page
        browser.close()


def _await_idle(page: Page) -> None:
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first.wait_for(state="attached")


def _accept_dialogs(page: Page) -> None:
    """JupyterLab sometimes asks which kernel to use, or tells of an early restart: its own answer is right."""
    accept = page.locator("dialog.jp-Dialog .jp-mod-accept")
    while accept.count():
        print("JupyterLab asked:", page.locator("dialog.jp-Dialog").first.inner_text())
        accept.first.click()
        page.wait_for_timeout(500)


def _run_all(page: Page) -> None:
    """Run > Run All Cells, as a person clicks it; again where the session was not ready to listen."""
    last = page.locator(".jp-CodeCell").last.locator(".jp-InputPrompt")
    before = last.inner_text()
    for _ in range(4):
        _accept_dialogs(page)
        page.locator(".lm-MenuBar-item", has_text=re.compile(r"^Run$")).click()
        page.locator(".lm-Menu-item", has_text=re.compile(r"^Run All Cells")).first.click()
        try:
            expect(last).not_to_have_text(before, timeout=10_000)
        except AssertionError:
            continue  # an early kernel restart swallows the first click
        if _has_run(last):
            _await_idle(page)
            return
    raise AssertionError("'Run All Cells' never ran the last cell")


def _has_run(prompt: Locator) -> bool:
    """Waits while a cell runs. False where JupyterLab drops it, as it does when it connects to the kernel anew: '[*]' becomes '[ ]'."""
    expect(prompt).not_to_have_text(re.compile(r"\[\*\]:"), timeout=WAIT_MS)
    ran = re.search(r"\[\d+\]:", prompt.inner_text()) is not None
    if not ran:
        print("JupyterLab dropped a cell that was running")
    return ran


def _cell(page: Page, text: str) -> Locator:
    """The code cell whose source begins with this text."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    for number in range(cells.count()):
        if cells.nth(number).locator(".cm-content").first.inner_text().strip().startswith(text):
            return cells.nth(number)
    raise AssertionError(f"no code cell begins with {text!r}")


def _rewrite(page: Page, cell: Locator, code: str) -> None:
    """Replaces a cell's source through the keyboard and runs it."""
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(code)
    _run(page, cell)


def _run(page: Page, cell: Locator) -> None:
    prompt = cell.locator(".jp-InputPrompt")
    for _ in range(3):
        before = prompt.inner_text()
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")  # runs the cell as it now stands
        expect(prompt).not_to_have_text(before, timeout=WAIT_MS)
        if _has_run(prompt):
            return
    raise AssertionError("JupyterLab dropped the cell each time")


def _picture(page: Page, cell: Locator, path: Path) -> None:
    cell.scroll_into_view_if_needed()
    page.screenshot(path=str(path))
    assert path.stat().st_size > 10_000


def test_lesson_01_untouched_then_wrong_then_right(lesson_page, artefacts):
    page = lesson_page
    _run_all(page)
    assert page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    check = _cell(page, "check(softmax_rows)")
    expect(check.locator(".jp-OutputArea-output")).to_contain_text("not started", ignore_case=True)
    _picture(page, check, artefacts / "1-untouched.png")

    verdict = judge(registry.exercise("softmax_rows"), from_cells("softmax_rows", WRONG))
    assert verdict.mistakes, "the wrong answer of this test is to be one whose mistake is proven"
    _rewrite(page, _cell(page, "def softmax_rows"), WRONG)
    _run(page, check)
    output = check.locator(".jp-OutputArea-output")
    expect(output).to_contain_text(verdict.mistakes[0])
    expect(output).to_contain_text("failed", ignore_case=True)
    heat_map = output.locator("img").first
    heat_map.wait_for()
    box = heat_map.bounding_box()
    assert box and box["width"] > 40 and box["height"] > 20
    _picture(page, check, artefacts / "2-wrong.png")

    _rewrite(page, _cell(page, "def softmax_rows"), references.solution_text("softmax_rows"))
    _run(page, check)
    expect(output).to_contain_text("passed", ignore_case=True)
    expect(output).not_to_contain_text(verdict.mistakes[0])
    _picture(page, check, artefacts / "3-right.png")


def test_an_answer_is_folded_away_until_it_is_asked_for_and_the_glossary_is_a_click_away(lab, artefacts):
    """The Markdown inside <details> is rendered, and the sanitizer leaves both elements."""
    browser_path = find_chromium()
    assert browser_path, ADVICE
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(WAIT_MS)
        expect.set_options(timeout=WAIT_MS)
        page.goto(f"{lab}/lab/tree/{PREDICTION}?token={TOKEN}")
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
        page.screenshot(path=str(artefacts / "4-prediction.png"))
        page.locator(".jp-Notebook a", has_text="Glossary").click()
        expect(page.locator(".lm-TabBar-tab", has_text="glossary.md")).to_be_visible()
        expect(page.get_by_text("Glossary and notation").last).to_be_visible()
        page.screenshot(path=str(artefacts / "5-glossary.png"))
        browser.close()


def test_the_browser_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/no/such/browser")
    assert find_chromium() is None
    assert "Install one" in ADVICE
