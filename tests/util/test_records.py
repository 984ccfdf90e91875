"""Records as JSON: what comes back is what was written, of the types that its fields name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pytest

from grader.util.records import NOT_STORED, decoded, encoded


class Point(NamedTuple):
    x: int
    label: str = ""


@dataclass(frozen=True)
class Drawing:
    points: tuple[Point, ...]
    sure: bool
    scale: float | None = None
    names: frozenset[str] = frozenset()
    places: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    color: Literal["red", "blue"] = "red"
    note: str = field(default="", metadata=NOT_STORED)


DRAWING = Drawing((Point(1, "a"), Point(2)), True, float("inf"), frozenset("bc"), {"here": (3, 0.5)})


def test_a_record_comes_back_from_json():
    assert decoded(Drawing, json.loads(json.dumps(encoded(DRAWING)))) == DRAWING


def test_what_is_not_stored_has_its_default():
    drawing = Drawing((), False, note="mine")
    assert "note" not in encoded(drawing) and decoded(Drawing, encoded(drawing)).note == ""


def test_records_within_collections():
    kind: Any = dict[str, tuple[Drawing | None, tuple[Point, ...]]]
    data = {"one": (None, (Point(1),)), "two": (DRAWING, ())}
    assert decoded(kind, json.loads(json.dumps(encoded(data)))) == data


@pytest.mark.parametrize(
    "change",
    [
        {"points": [[1]]},
        {"points": [[True, "a"]]},
        {"points": None},
        {"sure": 1},
        {"scale": "soon"},
        {"scale": True},
        {"names": [3]},
        {"places": {"here": [3]}},
        {"color": "green"},
    ],
)
def test_a_value_of_another_type_is_refused(change):
    with pytest.raises((TypeError, ValueError, LookupError)):
        decoded(Drawing, encoded(DRAWING) | change)


def test_a_field_that_is_missing_is_refused():
    data = encoded(DRAWING)
    del data["color"]
    with pytest.raises(LookupError):
        decoded(Drawing, data)
