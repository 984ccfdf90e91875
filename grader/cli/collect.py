"""`grader collect`: sorts what a learning platform lets one download into a folder per learner."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from grader.cli.exits import NOT_PASSED, PASSED, complain, harmless, say
from grader.course.course import open_course
from grader.grading.collecting import collection
from grader.grading.collecting.recognition import recognize
from grader.grading.collecting.sources import Sources
from grader.submission.roster import read_roster
from grader.util.errors import InputError
from grader.util.words import join_names, pluralize

MOST = 40  # files told that were not placed; collected.csv and the sources have all


def run(options: argparse.Namespace) -> int:
    """0: everything was placed; 1: something was not, and is told; 2: nothing was collected."""
    if options.by and not options.roster:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    roster = read_roster(options.roster, options.by or "") if options.roster else None
    collection.check(options.to, options.sources)
    with Sources() as sources:
        contents = [sources.contents(source) for source in options.sources]
        known = [recognize(each, roster) for each in contents]
        if not any(each.files for each in known):
            refused = [f" {path} {why}." for each in contents for path, why in each.refusals[:3]]
            raise InputError(
                f"nothing of {', '.join(map(str, options.sources))} is a learner's file, as Canvas, Moodle, Gradescope or GitHub Classroom "
                f"name them, or as one folder per learner.{''.join(refused)} Nothing was collected."
            )
        collection.check_disk_space(options.to, [one for each in known for one in each.files])
        say(*(roster.notes if roster else ()))
        outcome = collection.Collection(open_course(), options.to, roster, sources)
        try:
            try:
                for each, contained in zip(known, contents, strict=True):
                    outcome.place(each, contained.source)
            finally:
                outcome.record()
        except OSError as error:
            raise InputError(
                f"{error.filename or options.to}: {error.strerror or error}. All files copied so far are complete and stay; "
                "fix that, and run the same command again."
            ) from None
    print(_table(outcome, sorted({each.form for each in known if each.files}), options.to, roster))
    if outcome.others:
        left = pluralize(len(set(outcome.others)), "file")
        return complain(f"{left} not placed or not opened, see above; the originals were not changed.", NOT_PASSED)
    return PASSED


def _table(outcome: Any, forms: list[str], to: Path, roster: Any) -> str:
    """What became of everything: a line a learner, then what has no place and who is missing."""
    learners = [one for one in outcome.learners.values() if one.placed or one.same or one.earlier]
    learners.sort(key=lambda one: one.name)
    wide = max((len(one.name) for one in learners), default=0)
    platforms = " and ".join(form for form in forms if form != "folders")
    lines = [f"With the names from {platforms}:" if platforms else "One folder or notebook per learner:"]
    lines += [f"  {one.name:<{wide}}  {_learner(one)}" for one in learners]
    others = sorted(set(outcome.others))
    if others:
        width = min(max(len(path) for path, _ in others[:MOST]), 60)
        lines += ["", "Not placed, or not opened:", *(f"  {path:<{width}}  {why}" for path, why in others[:MOST])]
        lines += [f"  and {len(others) - MOST} more"] * (len(others) > MOST)
    here = {one.name for one in learners}
    absent = [one.key for one in roster.people if one.key not in here] if roster else []
    if absent:
        lines += ["", f"On the roster, but nothing was handed in here: {join_names(absent, 20)}."]
    if platforms and not roster:
        lines += ["", "Without --roster the folders have the platform's names, which no grade book knows."]
    return harmless(
        "\n".join([*lines, "", f"{pluralize(len(learners), 'learner')} in {to}; next: grader class {to} --out results"])
    )


def _learner(one: Any) -> str:
    older = " and ".join(f"{place}/" for place in one.replaced)
    parts = [
        one.placed and pluralize(len(one.placed), "new file"),
        one.same and f"{len(one.same)} unchanged",
        older and f"in place of an older attempt, which is kept in {older}",
        one.earlier and f"{len(one.earlier)} older than what counts, kept as {', '.join(sorted(one.earlier))}",
        one.shortened and f"{one.shortened} under a shorter name, as collected.csv tells",
        one.late and "late",
    ]
    return ", ".join(filter(None, parts))
