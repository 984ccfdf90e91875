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
        listings = [sources.contents(source) for source in options.sources]
        downloads = [recognize(listing, roster) for listing in listings]
        if not any(download.files for download in downloads):
            refusals = [f" {path} {reason}." for listing in listings for path, reason in listing.refusals[:3]]
            raise InputError(
                f"nothing of {', '.join(map(str, options.sources))} is a learner's file, as Canvas, Moodle, Gradescope or GitHub Classroom "
                f"name them, or as one folder per learner.{''.join(refusals)} Nothing was collected."
            )
        collection.check_disk_space(options.to, [file for download in downloads for file in download.files])
        say(*(roster.notes if roster else ()))
        outcome = collection.Collection(open_course(), options.to, roster, sources)
        try:
            try:
                for download, listing in zip(downloads, listings, strict=True):
                    outcome.place(download, listing.source)
            finally:
                outcome.record()
        except OSError as error:
            raise InputError(
                f"{error.filename or options.to}: {error.strerror or error}. All files copied so far are complete and stay; "
                "fix that, and run the same command again."
            ) from None
    print(_table(outcome, sorted({download.form for download in downloads if download.files}), options.to, roster))
    if outcome.others:
        files = pluralize(len(set(outcome.others)), "file")
        return complain(f"{files} not placed or not opened, see above; the originals were not changed.", NOT_PASSED)
    return PASSED


def _table(outcome: Any, forms: list[str], to: Path, roster: Any) -> str:
    """What became of everything: a line a learner, then what has no place and who is missing."""
    learners = [learner for learner in outcome.learners.values() if learner.placed or learner.same or learner.earlier]
    learners.sort(key=lambda learner: learner.name)
    name_width = max((len(learner.name) for learner in learners), default=0)
    platforms = " and ".join(form for form in forms if form != "folders")
    lines = [f"With the names from {platforms}:" if platforms else "One folder or notebook per learner:"]
    lines += [f"  {learner.name:<{name_width}}  {_learner(learner)}" for learner in learners]
    if others := sorted(set(outcome.others)):
        width = min(max(len(path) for path, _ in others[:MOST]), 60)
        lines += ["", "Not placed, or not opened:", *(f"  {path:<{width}}  {reason}" for path, reason in others[:MOST])]
        lines += [f"  and {len(others) - MOST} more"] * (len(others) > MOST)
    names = {learner.name for learner in learners}
    absent = [person.key for person in roster.people if person.key not in names] if roster else []
    if absent:
        lines += ["", f"On the roster, but nothing was handed in here: {join_names(absent, 20)}."]
    if platforms and not roster:
        lines += ["", "Without --roster the folders have the platform's names, which no grade book knows."]
    return harmless(
        "\n".join([*lines, "", f"{pluralize(len(learners), 'learner')} in {to}; next: grader class {to} --out results"])
    )


def _learner(learner: Any) -> str:
    places = " and ".join(f"{place}/" for place in learner.replaced)
    parts = [
        learner.placed and pluralize(len(learner.placed), "new file"),
        learner.same and f"{len(learner.same)} unchanged",
        places and f"in place of an older attempt, which is kept in {places}",
        learner.earlier
        and f"{len(learner.earlier)} older than what counts, kept as {', '.join(sorted(learner.earlier))}",
        learner.shortened and f"{learner.shortened} under a shorter name, as collected.csv tells",
        learner.late and "late",
    ]
    return ", ".join(filter(None, parts))
