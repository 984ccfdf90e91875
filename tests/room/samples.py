"""Rooms of 3, 30 and 60 in lesson 01, as the tests look at them; run as a script, takes pictures of their pages: python -m tests.room.samples FOLDER."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

from grader.room.board_page import page
from grader.room.members import Member, Room, State, next_exercise
from tests.mixing_course import COURSE

LESSON = "01_mixing"
NAMES = """ada grace linus mary alan barbara edsger katherine donald frances ken margaret dennis radia tim sophie
niklaus hedy claude evelyn john anita leslie shafi robin xiaoyuan aleksandra maximilian-alexander jo béla""".split()
ADDRESS, CODE = "http://192.168.1.20:8765", "amber-falcon-river"
SAID = {
    pair: " ".join(COURSE.mistake_text(id).sentence for id in pair.split("+")) for pair in ("MX1", "MX4", "MX10+MX7")
}
STATUSES = ("failed", "failed", "not_started", "error", "failed", "not_started", "timeout")


def learner(number: int, name: str, lesson: str) -> Member:
    """A learner who passed the lesson's first exercises, and is at the next."""
    names = COURSE.exercises[lesson]
    at = (1, 1, 2, 2, 1, 3, 2, 2, 4, 0, 2, len(names))[number % 12] if len(names) > 4 else number % (len(names) + 1)
    states = {each: State("passed") for each in names[:at]}
    if at < len(names):
        status = STATUSES[number % len(STATUSES)]
        mistake = tuple(SAID)[at % 3] if status == "failed" and number % 5 else ""
        states[names[at]] = State(status, mistake, SAID.get(mistake, ""))
    here = next_exercise(COURSE, states, names[min(at, len(names) - 1)])
    return Member(name, states=states, exercise=here, note={4: "stuck", 12: "stuck", 17: "fine"}.get(number, ""))


def room_with(learners: Iterable[Member], code: str = CODE) -> Room:
    """A room without a file, in which nothing happens any more."""
    room = Room(COURSE, SimpleNamespace(lines=[], code=code), {})
    room.members.extend(learners)
    return room


def thirty(lesson: str = LESSON) -> Room:
    return room_of(30, lesson)


def room_of(count: int, lesson: str = LESSON) -> Room:
    """So many learners, of whom one in fifteen has checked nothing yet; beyond thirty, names are long."""
    names = [*NAMES, *(f"{name} of-the-long-name-{at}" for at, name in enumerate(NAMES * 2))][:count]
    late = count // 15
    learners = [learner(number, name, lesson) for number, name in enumerate(names[: count - late])]
    return room_with(learners + [Member(name) for name in names[count - late :]])


def still(room: Room, names: bool = False) -> str:
    """The page without its script, as a file that no server stands behind."""
    return re.sub("<script.*?</script>", "", page(room, ADDRESS, names=names), flags=re.DOTALL)


def main(folder: Path, lesson: str = LESSON) -> None:
    from playwright.sync_api import sync_playwright

    from tests.find_chromium import find_chromium

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        for count, names in itertools.product((3, 30, 60), (False, True)):
            file = folder / f"room-{count}-{'names' if names else 'anonymous'}.html"
            file.write_text(still(room_of(count, lesson), names), encoding="utf-8")
            for width, height, scheme in ((1920, 1080, "light"), (1280, 720, "dark")):
                tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                tab.on("console", lambda said: print("console:", said.text))
                tab.goto(file.as_uri())
                tab.screenshot(path=folder / f"{file.stem}-{width}-{scheme}.png")
                tab.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
