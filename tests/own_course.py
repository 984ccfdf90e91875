"""The course of one's own that CONTRIBUTING shows, from its very code blocks."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.conftest import ROOT
from tests.toy_course import fill, write

NAME = "90_center"
RIGHT = "def center_rows(x):\n    return x - x.mean(1)[:, None]"
WRONG = "def center_rows(x):\n    return x - np.mean(x, axis=0)"
_SECTION = re.compile(r"^## A course of your own\n(.*?)^## ", re.MULTILINE | re.DOTALL)


def text() -> str:
    """The section of CONTRIBUTING."""
    return _SECTION.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))[1]


def written(place: Path) -> Path:
    """The folder `mine` in this place, with the files that the section shows and nothing else."""
    blocks = re.findall(r"^`(mine/\S+)`:\n\n```(?:python|toml)\n(.*?)^```", text(), re.MULTILINE | re.DOTALL)
    for name, body in blocks:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(body, encoding="utf-8")
    return place / "mine"


def with_probe(mine: Path) -> None:
    """Three cases more for the exercise, with the probe and the reading that the section shows."""
    (reading,) = re.findall(r"^```python\n(from grader\.course\.readings.*?)^```", text(), re.MULTILINE | re.DOTALL)
    path = mine / "solutions" / NAME / "exercises" / "center_rows.py"
    cases = (
        "        for n in range(3):\n"
        "            yield Case(f't{n}', 'twice', (rng.normal(size=(3, 4)),), probe='probes.twice', reading=read_twice)\n\n"
    )
    body = path.read_text(encoding="utf-8").replace("@exercise(", f"{reading}\n\n@exercise(forbids=('tampering',), ")
    path.write_text(body.replace("    mistakes = {", cases + "    mistakes = {"), encoding="utf-8")


def with_payoff(mine: Path) -> None:
    """The payoff that the section shows, in the lesson, and what its cells import of the grader."""
    (payoff,) = re.findall(r"^```python\n(# %% role=\"payoff\".*?)^```", text(), re.MULTILINE | re.DOTALL)
    path = mine / "solutions" / NAME / "lesson.py"
    body = path.read_text(encoding="utf-8").replace("grader import check", "grader import check, figures, passed")
    path.write_text(body.replace("check(center_rows)\n", f"check(center_rows)\n\n{payoff}"), encoding="utf-8")


def commands() -> list[list[str]]:
    """The commands that the section shows, in order, each without `grader`."""
    return [line.partition("#")[0].split()[1:] for line in re.findall(r"^    (grader .*)$", text(), re.MULTILINE)]


def hand_in(mine: Path, place: Path, code: str) -> Path:
    """A folder with the learner's notebook of the course, this code in its exercise cell."""
    notebook = json.loads((mine / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    place.mkdir(parents=True, exist_ok=True)
    write(place / f"{NAME}.ipynb", fill(notebook, {"center_rows": code}))
    return place
