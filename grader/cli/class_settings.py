"""What a run of `grader class` is graded and marked with: what the call names, what the run was begun with, the defaults."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.cli import policy
from grader.cli.arguments import NONE
from grader.cli.exits import say
from grader.cli.options import OF_THE_RUN
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.submission.discover import POLICY
from grader.util.errors import InputError
from grader.util.words import abridged

HALF = "half of the learners"  # who chose the lessons


def resolve_settings(options: argparse.Namespace, found: list, begun: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """What the run is graded and marked with, as its journal keeps it: what this call or class.toml names, else what the run was begun
    with, else the defaults. set_by says of each setting where it was set.

    Also the choice of lessons, None where somebody made it. Raises: InputError."""
    from grader.grading.dask_pool import course_digest
    from grader.grading.handed_in import choice
    from grader.grading.scheme import MarkingScheme
    from grader.sandbox.sandbox import TIMEOUT_S

    where = policy.fill(options)
    named = _named_settings(options, [one.name for one in found])
    before = begun.get("set_by", {})
    if (options.folder / POLICY).is_file():  # what no longer stands there no longer holds
        gone = {key for key, place in before.items() if place.startswith(POLICY)} - set(named)
        begun = {key: value for key, value in begun.items() if key not in gone}
        before = {key: place for key, place in before.items() if key not in gone}
    if named.get("anonymous") and (named.get("roster") or named.get("assignment")):
        raise InputError(
            "--anonymous writes no grade book, so --roster and --assignment have no use; leave one of them out."
        )
    about = {
        "seed": SEED,
        "timeout_s": TIMEOUT_S,
        "exercises": None,
        "core": None,
        "follow_through": None,
        "seed_per_learner": False,
        **MarkingScheme().settings(),
        **begun,
        **named,
    }
    about["course"] = course_digest(open_course())
    set_by: dict[str, str] = {}
    for name, setting in OF_THE_RUN.items():
        if name in where and setting in named:
            set_by.setdefault(setting, where[name])  # --roster comes before --by
    by = before.get("lessons", where.get("exercises") or where.get("lessons") or HALF)
    about["set_by"] = {**before, **set_by, "lessons": by}
    chosen = choice(open_course(), found, begun.get("lessons")) if by == HALF else None
    about.setdefault("lessons", list(chosen.lessons) if chosen else [])
    return about, chosen


def exercises_of(about: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The exercises that count in a run with these settings; None for all of its lessons."""
    if not about.get("core"):
        return about["exercises"] and tuple(about["exercises"])
    return tuple(
        name for name in open_course().core_exercises() if not about["exercises"] or name in about["exercises"]
    )


def _named_settings(options: argparse.Namespace, learners: Sequence[str]) -> dict[str, Any]:
    """Those of the journal's settings that this call names."""
    from grader.grading.marks import read_weights
    from grader.grading.scheme import MarkingScheme

    roster, lessons = _roster(options, learners), _lessons(options.lessons, options.exercises)
    named = {setting: getattr(options, attribute) for attribute, setting in OF_THE_RUN.items()}
    named |= {
        "lessons": lessons and sorted(lessons),
        "exercises": options.exercises and sorted(options.exercises),
        "weights": read_weights(open_course(), options.weights)
        if isinstance(options.weights, Path)
        else options.weights,
        "roster": roster,
    }
    del named["course"], named["isolation"]  # of which the run itself says what they are
    plain = MarkingScheme().settings()
    named = {key: plain.get(key) if value == NONE else value for key, value in named.items() if value is not None}
    return json.loads(json.dumps(named))  # as the journal gives it back


def _roster(options: argparse.Namespace, learners: Sequence[str]) -> Any:
    from grader.submission import enrolled

    if options.by and not options.roster:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    if options.roster in (None, NONE):
        return options.roster
    roster = enrolled.read(options.roster, options.by or "")
    if not any(map(roster.of, learners)):  # every grade book would be empty
        raise InputError(
            f"{options.folder} has no learner whose name stands in the column {roster.column!r} of {options.roster}. The column has "
            f"{abridged([one.key for one in roster.people])}; the folder has {abridged(learners)}. Name another column with --by, or sort "
            "the work anew with `grader collect` and this roster."
        )
    for sentence in roster.notes:
        say(sentence)
    return asdict(roster)


def _lessons(lessons: tuple[str, ...] | None, exercises: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The lessons to grade: those named, else those of the exercises named. Raises: InputError where these are in none of those."""
    theirs = {name: open_course().lesson_of(name) for name in exercises or ()}
    outside = [name for name, lesson in theirs.items() if lessons and lesson not in lessons]
    if outside:
        raise InputError(
            f"{outside[0]} belongs to lesson {theirs[outside[0]][:2]}, which --lessons leaves out; name it there, too, "
            "or leave --lessons out."
        )
    # A lesson without an exercise that counts would be an empty column.
    return tuple(sorted(set(theirs.values()))) if theirs else lessons
