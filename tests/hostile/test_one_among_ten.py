"""Whatever hostile learners do, the others of their class have the same reports, to the byte, as without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import small_class
from tests.conftest import WHOLE_GRID
from tests.hostile import test_bombs, test_disk, test_limits, test_processes, test_scores, test_secrets
from tests.small_class import LESSON, RIGHT, WRONG, hand_in, left_behind, notebook

HONEST = {f"learner-{n}": (RIGHT, WRONG, "x = 3")[n % 3] for n in range(9)}
CODES = {
    name: text if isinstance(text, str) else text[0]
    for attacks in (
        test_scores.ATTACKS,
        test_limits.ENDLESS,
        test_limits.ATTACKS,
        test_processes.ATTACKS,
        test_secrets.ATTACKS,
    )
    for name, text in attacks.items()
} | {f"disk: {name}": f"{test_disk.flood(name)}\ndef double(x): flood()" for name in test_disk.FLOODS}
NO_NOTEBOOKS = {
    "nested": "[" * 100_000,
    "not JSON": "{",
    "a number": "7",
    "no cells": "{}",
    "a list of cells": '{"cells": 3, "nbformat": 4}',
}


def sample(names: list[str]) -> list[str]:
    """A tenth of the corpus, or all of it; neighbours attack the same promise."""
    return names if WHOLE_GRID else names[::10]


def graded(place: Path, folder: Path) -> dict[str, bytes]:
    """What is written for each honest learner, by name, after a run over the folder."""
    done = small_class.run(folder, place / "out", place / "scratch", "--jobs", "2", "--timeout", "1")
    assert done.returncode in (0, 3), done.stderr  # 3: of a hostile one something could not be graded
    assert left_behind(place / "scratch") == []
    found = {}
    for one in json.loads((place / "out" / "report.json").read_text())["submissions"]:
        if one["name"] in HONEST:
            for lesson in one["lessons"]:
                for exercise in lesson["exercises"]:
                    exercise["seconds"] = 0
            found[one["name"]] = json.dumps(one | {"path": Path(one["path"]).name}).encode()
            found[f"{one['name']}'s feedback"] = (place / "out" / "feedback" / f"{one['name']}.html").read_bytes()
    assert len(found) == 2 * len(HONEST)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, bytes]:
    """What the honest ones have where nobody is hostile."""
    place = tmp_path_factory.mktemp("alone")
    return graded(place, hand_in(place / "class", **HONEST))


def codes() -> list[str]:
    return [notebook(CODES[name].replace("double(x)", "nearest(x, *_)")) for name in sample(list(CODES))]


def files() -> list[str]:
    """Notebooks that are none, or too much."""
    bombs = {f"bomb: {name}": text for name, text in test_bombs.BOMBS.items()}
    return [NO_NOTEBOOKS.get(name) or notebook(bombs[name]) for name in sample([*NO_NOTEBOOKS, *bombs])]


@pytest.mark.timeout(3600 if WHOLE_GRID else 300)
@pytest.mark.parametrize(
    "hostile", [codes, pytest.param(files, marks=pytest.mark.any_user)]
)  # to read a file takes no right
def test_the_others_have_the_same_reports(alone, hostile, tmp_path):
    folder = hand_in(tmp_path / "beside" / "class", **HONEST)
    for number, text in enumerate(hostile()):
        place = (
            folder / f"learner-{number % 9}-hostile-{number}"
        )  # between the honest ones, who are graded in the order of their names
        place.mkdir()
        (place / f"{LESSON}.ipynb").write_text(text)
    assert graded(tmp_path / "beside", folder) == alone
