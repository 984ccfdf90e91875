"""A real JupyterLab, driven in headless Chromium: started, opened at a notebook, its cells rewritten and run.

Run as a script it makes docs/verdict.png: `python -m tests.lab`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

from grader.course.course import open_course
from grader.course.stubs import encode
from tests.conftest import ROOT
from tests.find_chromium import ADVICE, find_chromium
from tests.readme import WRONG

TOKEN = "lesson"
WAIT_MS = 90_000  # two cores, and a second test process on one of them


@contextlib.contextmanager
def jupyterlab(place: Path, *lessons: str, theme: str = "JupyterLab Light") -> Iterator[str]:
    """The address of a JupyterLab whose folder, place/work, holds these pristine lessons, and whose settings are its own."""
    (place / "work").mkdir(parents=True)
    for lesson in lessons:
        (place / "work" / f"{lesson}.ipynb").write_text(encode(open_course().pristine(lesson)))
    _settings(
        place / "settings",
        "@jupyterlab/apputils-extension",
        "notification",
        {"fetchNews": "false", "checkForUpdates": False},
    )
    _settings(place / "settings", "@jupyterlab/apputils-extension", "themes", {"theme": theme})
    _settings(place / "settings", "@jupyterlab/notebook-extension", "tracker", {"windowingMode": "none"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(place / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(place / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(place / "workspaces"),
        "IPYTHONDIR": str(place / "ipython"),
        "ATTENTION_COURSE_PROGRESS": str(place / "progress.json"),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--LabApp.expose_app_in_browser=True",  # await_idle asks it
        f"--IdentityProvider.token={TOKEN}",
        f"--notebook-dir={place / 'work'}",
    ]
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


@contextlib.contextmanager
def browser(scale: int = 1) -> Iterator[BrowserContext]:
    """A browser without a page, for all notebooks of one JupyterLab: it fetches and compiles that once. scale: pixels of the screen
    for one of a page."""
    path = find_chromium()
    assert path, ADVICE
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = chromium.new_context(device_scale_factor=scale)
        context.set_default_timeout(WAIT_MS)
        expect.set_options(timeout=WAIT_MS)
        yield context
        chromium.close()


@contextlib.contextmanager
def notebook(context: BrowserContext, address: str, name: str, width: int = 1280, height: int = 1000) -> Iterator[Page]:
    """A notebook, open in a page of its own, its kernel ready."""
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    own = f"{name}-{time.monotonic_ns()}"  # a workspace: what was open in another one stays closed
    page.goto(f"{address}/lab/workspaces/{own}/tree/{name}.ipynb?token={TOKEN}")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    await_idle(page)
    yield page
    page.close()


# The circle beside a kernel's name is that of an idle kernel before there is one, and cells that are run by then make JupyterLab
# ask, cell by cell, which kernel to use.
_IS_IDLE = """() => {
    for (const widget of window.jupyterapp?.shell.widgets("main") ?? []) {
        const context = widget.sessionContext, kernel = context?.session?.kernel;
        if (kernel) return context.isReady && kernel.connectionStatus === "connected" && kernel.status === "idle";
    }
    return false;
}"""


def await_idle(page: Page) -> None:
    """Waits until the notebook's kernel is connected and has nothing to do."""
    page.wait_for_function(_IS_IDLE)


def menu(page: Page, name: str, item: str) -> None:
    """Clicks an item of the menu bar. item: how its label begins."""
    page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{name}$")).click()
    page.locator(".lm-Menu-item", has_text=re.compile(f"^{item}")).first.click()


# A prompt can go from "[2]:" over "[*]:" to "[2]:" again between two looks at it, as it does after a restart: its own changes are
# waited for, not another text.
_SAY_WHEN_SET = """prompt => {
    delete prompt.dataset.set;
    new MutationObserver((_, observer) => { prompt.dataset.set = "yes"; observer.disconnect(); }).observe(prompt, {childList: true});
}"""


def run_all(page: Page) -> None:
    """Run > Run All Cells, as a person clicks it."""
    last = page.locator(".jp-CodeCell").last.locator(".jp-InputPrompt")
    last.evaluate(_SAY_WHEN_SET)
    menu(page, "Run", "Run All Cells")
    _await_run(last)
    await_idle(page)


def restart(page: Page) -> None:
    """Kernel > Restart Kernel…, confirmed."""
    menu(page, "Kernel", "Restart Kernel…")
    page.locator("dialog.jp-Dialog .jp-mod-accept").first.click()
    page.wait_for_timeout(1000)
    await_idle(page)


def _await_run(prompt: Locator) -> None:
    expect(prompt).to_have_attribute("data-set", "yes")
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))


def cell(page: Page, text: str) -> Locator:
    """The code cell whose source begins with this text."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    for _ in range(20):  # a notebook that has just been opened shows its cells one after another
        for number in range(cells.count()):
            source = cells.nth(number).locator(".cm-content")  # a folded cell has none
            if source.count() and source.first.inner_text().strip().startswith(text):
                return cells.nth(number)
        page.wait_for_timeout(500)
    raise AssertionError(f"no code cell begins with {text!r}")


def rewrite(page: Page, one: Locator, code: str) -> None:
    """Replaces a cell's source through the keyboard and runs it."""
    one.scroll_into_view_if_needed()
    one.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(code)
    run(page, one)


def run(page: Page, one: Locator) -> None:
    """Runs a cell as it stands, with Shift+Enter."""
    prompt = one.locator(".jp-InputPrompt")
    prompt.evaluate(_SAY_WHEN_SET)
    one.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    _await_run(prompt)


def output(one: Locator) -> Locator:
    """What a cell shows below it."""
    return one.locator(".jp-OutputArea").first


def picture(page: Page, one: Locator, path: Path) -> None:
    one.scroll_into_view_if_needed()
    page.screenshot(path=str(path))
    assert path.stat().st_size > 10_000


def _main(place: Path) -> None:
    """Takes the picture of a verdict that README shows."""
    with (
        jupyterlab(place, "01_three_tokens") as address,
        browser(scale=2) as context,
        notebook(context, address, "01_three_tokens", 1500, 900) as page,
    ):
        run_all(page)
        rewrite(page, cell(page, "def softmax_rows"), WRONG)
        check = cell(page, "check(softmax_rows)")
        run(page, check)
        output(check).locator("img").first.wait_for()
        page.wait_for_timeout(500)
        output(check).screenshot(path=str(ROOT / "docs" / "verdict.png"))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        _main(Path(folder) / "lab")
