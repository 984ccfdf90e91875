"""`grader mark`: what a person saves is in overrides.csv and in the reports, and nothing of anybody is lost."""

from __future__ import annotations

import asyncio
import contextlib
import html
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading.marking import Marking, serve
from grader.judging.verdict import Verdict
from grader.reports.report import HandMark
from tests.conftest import MIXING, ROOT, heed_interrupts
from tests.grading.test_by_hand import FULL, HEAD, ONE, TWO, place, totals
from tests.grading.test_handed_in import FIRST, hand_in

__all__ = ["place"]
TYPE = {"Content-Type": "application/json"}


class Browser:
    """What a browser on this computer sends to the pages of a folder of results."""

    def __init__(self, out: Path) -> None:
        self.file, self.told, self._ready = out / "overrides.csv", [], threading.Event()
        marking = Marking(open_course(), out / "journal.jsonl", self.file)
        self._thread = threading.Thread(target=self._serve, args=(marking,))
        self._thread.start()
        assert self._ready.wait(10)
        self.origin, self.path = re.search(r"(http://[^/]+)(\S+)", self.told[0]).groups()

    def _serve(self, marking: Marking) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            serve(marking, 0, self._tell)

    def _tell(self, line: str) -> None:
        self.told.append(line)
        if "Ctrl-C" in line:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            self._ready.set()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.origin.removeprefix("http://"), timeout=5)
        with contextlib.closing(connection):
            connection.request(method, path, body and body.encode(), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def page(self, who: object = "") -> str:
        status, page = self.ask("GET", f"{self.path}{who}")
        assert status == 200, page
        return page

    def save(self, points: str, comment: str = "", seen: object = None, exercise: str = ONE, **headers: str):
        """Of the first learner. seen: the mark that the page showed."""
        sent = {"format": 1, "exercise": exercise, "points": points, "comment": comment}
        body = json.dumps(sent | {"seen": seen if isinstance(seen, str) else repr(seen)})
        status, said = self.ask("POST", f"{self.path}0", body, **{"Origin": self.origin, **TYPE, **headers})
        return status, json.loads(said)


@pytest.fixture
def browser(place):
    made = Browser(place.parent / "out")
    yield made
    made.stop()


def test_a_mark_is_saved_shown_again_and_in_the_reports(graded, place, browser):
    status, said = browser.save(" 1.5 ", "The idea is right;\nthe axis, <b>not</b>.")
    assert status == 200 and said["said"] == "Saved." and said["score"].startswith("1")
    assert browser.file.read_text() == HEAD + f'ada,{ONE},1.5,"The idea is right;\nthe axis, <b>not</b>."\n'
    page = browser.page(0)
    assert 'value="1.5"' in page and "the axis, &lt;b&gt;not&lt;/b&gt;.</textarea>" in page
    assert html.unescape(re.search(rf'data-exercise="{ONE}" data-seen="(.*?)"', page)[1]) == said["seen"]
    assert (
        "marked by hand" in browser.page()
        and f"--resume --require-isolation process --course {MIXING}</code> puts the marks into every report."
        in browser.page()
    )
    assert graded(place, place.parent / "out", "--resume") == 0 and graded.ran == []
    assert float(totals(place.parent / "out")[0]) == float(totals(place.parent / "out")[1]) - 0.5
    status, again = browser.save("", "", said["seen"])
    assert status == 200 and again["seen"] == "None" and browser.file.read_text() == HEAD


def test_other_lines_columns_and_the_form_of_the_file_stay(browser):
    others = f"Learner;Exercise;Note;Points;Comment\r\nbob;{ONE};ask him;1;x\r\n\r\nzoe;{TWO};;;gone\r\n"
    browser.file.write_bytes(b"\xef\xbb\xbf" + others.encode())
    assert browser.save("2", "a; b")[0] == 200
    assert browser.file.read_bytes() == b"\xef\xbb\xbf" + others.encode() + f'ada;{ONE};;2;"a; b"\r\n'.encode()
    assert browser.save("0", "", HandMark(2.0, "a; b"))[1]["said"] == "Saved."
    assert browser.file.read_bytes().endswith(f"\r\nada;{ONE};;0;\r\n".encode())


def test_a_file_that_changes_its_form_is_copied_first(browser):
    written = f'"learner", exercise ,points\nbob,{TWO},1'
    browser.file.write_text(written)
    assert "overrides.csv.backup-1 keeps it" in browser.save("1", "Neat.")[1]["said"]
    assert browser.file.with_name("overrides.csv.backup-1").read_text() == written
    assert browser.file.read_text() == f"learner,exercise,points,comment\nbob,{TWO},1\nada,{ONE},1,Neat.\n"
    assert browser.save("1.25", "Neat.", HandMark(1.0, "Neat."))[1]["said"] == "Saved.", "now it has our form"
    browser.file.write_text(f"learner,exercise,points,ticket\nada,{ONE},1,T7\n")
    assert "backup-2" in browser.save("", "", HandMark(1.0))[1]["said"], "a line goes that says more than a mark"


def test_what_somebody_else_wrote_meanwhile_is_kept(browser):
    assert browser.save("1")[0] == 200
    browser.file.write_text(browser.file.read_text() + f"bob,{ONE},2,\n")
    assert 'value="1"' in browser.page(0) and browser.save("1.5", "", HandMark(1.0))[0] == 200
    assert browser.file.read_text() == HEAD + f"ada,{ONE},1.5,\nbob,{ONE},2,\n"
    status, said = browser.save("0.5", "mine", HandMark(1.0))
    assert status == 409 and "Somebody else has meanwhile changed this: 1.5 points" in said["error"]
    assert f"ada,{ONE},1.5,\n" in browser.file.read_text()
    assert browser.save("0.5", "mine", said["seen"])[0] == 200, "the second time it was seen"


def test_a_comma_may_stand_for_the_point(browser):
    assert browser.save("1,5")[0] == 200 and browser.file.read_text() == HEAD + f"ada,{ONE},1.5,\n"


@pytest.mark.parametrize("points", ["abc", "-1", "1,500", "nan", "1e9"])
def test_what_are_no_points_is_a_sentence_and_changes_nothing(browser, points):
    browser.save("1")
    before, seen = browser.file.read_text(), repr(HandMark(1.0))
    status, said = browser.save(points, "x", seen)
    assert status == 409 and said["seen"] == seen and browser.file.read_text() == before
    assert f"Not saved: '{points}' is not a number of points; expected 0 or more" in said["error"]


def test_a_wrong_file_is_a_sentence_and_stays(place, browser, capsys):
    browser.file.write_text(wrong := HEAD + f"ada,{ONE},much,\n")
    assert browser.ask("GET", browser.path)[0] == 409 and "'much' is not a number" in browser.save("1")[1]["error"]
    assert browser.file.read_text() == wrong
    assert main(["mark", str(place.parent / "out")]) == 2 and "overrides.csv, line 2" in capsys.readouterr().err


def test_only_this_page_with_its_key_saves(browser):
    assert browser.save("1", Origin="http://evil.example")[0] == browser.save("1", Origin="null")[0] == 403
    assert browser.save("1", **{"Content-Type": "text/plain"}) == (400, {"error": "This address accepts only JSON."})
    told = "This message is larger than the 8192 bytes that are accepted here."
    assert browser.save("1", "x" * 9_000) == (413, {"error": told})
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://evil.example"}
    assert browser.ask("POST", f"{browser.path}0", "points=2", **form)[0] == 403
    for path in ("/", "/0", "/wrong/", f"{browser.path[:-2]}/0", "/%C3%A9/0"):
        status, said = browser.ask("GET", path)
        assert status == 404 and "ada" not in said
        assert browser.ask("POST", path, "{}", Origin=browser.origin, **TYPE)[0] == 404
    for method, who in (("GET", "99"), ("POST", "99"), ("POST", "")):
        status, said = browser.ask(method, f"{browser.path}{who}", "{}", Origin=browser.origin, **TYPE)
        assert status == 404 and "no learner at this address" in said
    assert browser.save("1", exercise="no_such")[0] == 409
    assert not browser.file.exists()


def test_nothing_that_a_learner_wrote_becomes_markup(graded, tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    folder = hand_in(tmp_path / "class", **{evil: (FIRST,), "=cmd": (FIRST,)})
    graded.made[evil, ONE] = Verdict(ONE, "failed", f"{evil} </script>", printed=evil)
    assert graded(folder, tmp_path / "out") == 0
    browser = Browser(tmp_path / "out")
    assert browser.save("1", "</textarea>" + evil)[0] == 200
    for page in map(browser.page, ("", 0, 1)):
        assert evil not in page and page.count("</script>") <= 1
    assert evil not in browser.page(f"?exercise=%22%3E{evil.replace(' ', '%20')}")
    browser.stop()


def test_of_an_anonymous_run_nobody_s_name_is_shown(graded, place):
    assert graded(place, place.parent / "out", "--rescore", "--anonymous") == 0
    browser = Browser(place.parent / "out")
    pages = [browser.page(), browser.page(0), browser.page(1)]
    assert not any(re.search(r"\b(ada|bob)\b", page) for page in pages) and "learner " in pages[0]
    browser.save("1")
    first = re.search(r">(learner \w+)</a>", pages[0])[1]
    assert (
        f'"{first}","{browser.file.read_text().splitlines()[1].split(",")[0]}"'
        in (place.parent / "out" / "names.csv").read_text()
    )
    browser.stop()


def test_of_one_exercise_only_those_with_something_to_look_at(browser):
    page = browser.page(f"?exercise={ONE}")
    assert ">ada</a>" in page and ">bob</a>" not in page
    page = browser.page(f"0?exercise={ONE}")
    assert (
        f'data-exercise="{ONE}"' in page
        and TWO not in page
        and "Next: bob" not in page
        and "Next: bob" in browser.page(0)
    )


def test_who_has_left_the_class_is_on_no_page_until_they_are_back(graded, place):
    out, away, shown = place.parent / "out", place.parent / "ada", []
    for old, new in ((place / "ada", away), (away, place / "ada")):
        old.rename(new)
        assert graded(place, out, "--resume") == 0 and graded.ran == []
        browser = Browser(out)
        shown.append((browser.page(), browser.ask("GET", f"{browser.path}1")[0]))
        browser.stop()
    assert "ada</a>" not in shown[0][0] and shown[0][1] == 404
    assert "ada</a>" in shown[1][0] and shown[1][1] == 200


def test_a_folder_without_results_is_told(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "nowhere", ROOT / "README.md"):
        assert main(["mark", str(folder)]) == 2
        assert f"{folder} has no results of `grader class`; name the folder of its --out." in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows stops otherwise")
def test_it_starts_and_ends_with_ctrl_c(place):
    command = [sys.executable, "-m", "grader", "mark", str(place.parent / "out")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = subprocess.Popen(command, cwd=ROOT, preexec_fn=heed_interrupts, **pipes)
    said = [running.stdout.readline() for _ in range(2)]
    assert re.search(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/$", said[0].strip()) and "Ctrl-C ends this" in said[1]
    running.send_signal(signal.SIGINT)
    assert "--resume" in running.communicate(timeout=10)[0] and running.returncode == 0


def test_in_a_browser_what_was_typed_stays_until_it_is_saved(browser, artefacts):
    from playwright.sync_api import sync_playwright

    from tests.find_chromium import find_chromium

    logged = []
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        tab = chromium.new_page(viewport={"width": 1200, "height": 900})
        tab.on("pageerror", lambda error: logged.append(str(error)))
        tab.goto(f"{browser.origin}{browser.path}")
        tab.get_by_role("link", name=re.compile(f"{ONE} failed")).click()
        form = tab.locator(f"form[data-exercise={ONE}]")
        form.get_by_label("Points").fill("abc")
        form.get_by_label("Comment").fill("A good idea.")
        form.get_by_role("button").click()
        form.get_by_text("'abc' is not a number of points").wait_for()
        form.get_by_label("Points").fill("1.5")
        browser.file.write_text(HEAD + f"ada,{ONE},2,theirs\n")
        form.get_by_role("button").click()
        form.get_by_text("meanwhile changed this: 2 points, comment: theirs").wait_for()
        form.get_by_label("Comment").press("Control+Enter")
        form.get_by_text("Saved.").wait_for()
        form.get_by_text("--resume").wait_for()
        assert browser.file.read_text() == HEAD + f"ada,{ONE},1.5,A good idea.\n"
        assert tab.locator("#score").text_content().startswith(f"{FULL - 0.5} of")
        tab.screenshot(path=artefacts / "saved.png")
        tab.context.set_offline(True)
        form.get_by_label("Points").fill("1")
        form.get_by_role("button").click()
        form.get_by_text("does not answer").wait_for()
        assert form.get_by_label("Points").input_value() == "1" and not logged
        chromium.close()
