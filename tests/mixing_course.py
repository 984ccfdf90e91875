"""The course that the engine's tests judge: a few lessons of small exercises, in tests/courses/mixing.

A course of its own, so that no lesson of the attention course can break a test of the engine, and none of the engine's tests
is about one. What needs a smaller one still, of three lines an exercise, takes toy_course.py.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from grader.course import references
from grader.course.course import Course, open_course
from tests.conftest import MIXING
from tests.toy_course import fill, write

COURSE = open_course(MIXING)
# Of each exercise an answer that passes, written otherwise than the course's own solution.
RIGHT = {
    "nearest": "def nearest(query, keys, values):\n    return values[(keys @ query).argmax()]",
    "products": "def products(Q, K):\n    return np.einsum('qd,kd->qk', Q, K)",
    "scaled": "def scaled(scores, d):\n    return scores / d**0.5",
    "shares": "def shares(scores):\n    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
    "blend": "def blend(weights, V):\n    return np.einsum('qk,kv->qv', weights, V)",
    "mix": "def mix(Q, K, V):\n    weights = shares(scaled(products(Q, K), K.shape[1]))\n    return blend(weights, V), weights",
    "first_output": "first_output = np.array([5.0, 5.0])",
    "log_shares": "def log_shares(scores):\n    s = scores - scores.max(-1)[..., None]\n    return s - np.log(np.exp(s).sum(-1))[..., None]",
    "surprise": "def surprise(scores, target):\n    return np.mean([-log_shares(row)[at] for row, at in zip(scores, target)])",
    "mix_torch": "def mix_torch(q, k, v):\n    weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)\n    return weights @ v, weights",
    "Mixer": """class Mixer(nn.Module):
    def __init__(self, d_model, d, d_v):
        super().__init__()
        self.w_q, self.w_k = nn.Linear(d_model, d, bias=False), nn.Linear(d_model, d, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        return mix_torch(self.w_q(x), self.w_k(x), self.w_v(x))""",
    "twice": "def twice(tensor):\n    return tensor + tensor",
    "agreement": "def agreement(scores):\n    weights = shares(scores)\n    return np.einsum('...n,...n', weights, weights)",
}


def made(name: str, *ids: str) -> Any:
    """What the solution of an exercise makes, with these of its mistakes in it."""
    exercise = COURSE.exercise(name)
    wrong = {mistake.id: mistake.wrong for mistake in reversed(exercise.mistakes)}  # each in its first way
    edits = [edit for id in ids for edit in references.edits_of(exercise, wrong[id])]
    return references.patch_reference(exercise, tuple(edits)) if ids else references.reference(exercise)


def notebook(lesson: str, **codes: str) -> dict[str, Any]:
    """The learner's notebook of a lesson with these texts in the exercises' cells, the others' left as they are handed out."""
    return fill(COURSE.pristine(lesson), codes)


def solved(lesson: str, **codes: str) -> dict[str, Any]:
    """The same with every other exercise solved."""
    return notebook(lesson, **{name: RIGHT[name] for name in COURSE.exercises[lesson]} | codes)


def hand_in(folder: Path, lesson: str, **codes: str) -> Path:
    """The learner's folder, with that notebook in it."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"{lesson}.ipynb", notebook(lesson, **codes))
    return folder


def with_notebooks(place: Path) -> Course:
    """A copy of the course with the learner's notebooks, as a build leaves them; none is run."""
    shutil.copytree(MIXING, place, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "notebooks").mkdir()
    for lesson in COURSE.lessons():
        text = json.dumps(COURSE.pristine(lesson), indent=1)
        (place / "notebooks" / f"{lesson}.ipynb").write_text(text, encoding="utf-8")
    return open_course(place)
