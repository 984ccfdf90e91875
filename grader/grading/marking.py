"""`grader mark`: pages on this computer on which a person marks, beside the automatic verdicts.

GET  /KEY/       the class; with ?exercise=NAME who has something to look at there
GET  /KEY/3      a learner: verdicts, code, a form for each exercise
POST /KEY/3      {"format": 1, "exercise": …, "points": "1.5", "comment": …, "seen": …} → {"said": …, "seen": …, "score": …}
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.web import Application

from grader.course.course import COURSE_ENV, Course
from grader.grading import marks, pseudonyms
from grader.grading.journal import JournalContents, load
from grader.reports import html, sheet, text
from grader.reports.class_summary import ClassSummary
from grader.reports.report import HandMark, Report
from grader.util.errors import InputError
from grader.util.web import MAX_BODY, JsonHandler, bind

PLAIN = ("passed", "not_started", "missing")  # nothing of it needs a look
AGAIN = "Only what changed, or could not be graded, is judged again for it."


class Marking:
    """The results in a folder. names: of each learner, as marks.unique_spellings() has them. Raises: InputError where there are none."""

    def __init__(self, course: Course, journal: Path, overrides: Path) -> None:
        contents = load(journal) if journal.is_file() else JournalContents()
        if not contents.settings or not contents.results:
            raise InputError(f"{journal.parent} has no results of `grader class`; name the folder of its --out.")
        self.course, self.marks, self.scheme = course, overrides, contents.settings
        present = (result for key, result in contents.results.items() if key not in contents.absent)
        results = sorted(present, key=lambda result: result.report.name.casefold())
        report = Report(tuple(result.report for result in results), contents.settings.seed)
        self.report = marks.apply_weights(report, self.scheme.weights, self.scheme.partial)
        if self.scheme.anonymous:  # whoever marks is told no more than the reports tell
            aliases = pseudonyms.choose(journal.parent, [result.report.name for result in results])
            results.sort(key=lambda result: aliases[result.report.name])
            self.report = pseudonyms.pseudonymize(self.report, aliases)
        names = [(result.key, result.report.name) for result in results]
        self.names = marks.unique_spellings([(*pair, *map(sheet.guard, pair)) for pair in names])
        folder, out = (shlex.quote(str(path)) for path in (Path(results[0].report.path).parent, journal.parent))
        flags = "" if contents.settings.isolation == "full" else " --require-isolation process"
        flags += f" --course {shlex.quote(os.environ[COURSE_ENV])}" if COURSE_ENV in os.environ else ""
        self.renewal = f"`grader class {folder} --out {out} --resume{flags}` puts the marks into every report. {AGAIN}"
        self.summary()  # wrong marks are told at once

    def summary(self) -> ClassSummary:
        """The class with the marks that overrides.csv has now. Raises: InputError where that is wrong."""
        report = marks.apply_overrides(self.report, marks.read_overrides(self.course, self.marks), self.names)
        return ClassSummary(report, None if self.scheme.anonymous else self.scheme.roster)


class Pages(JsonHandler):
    def prepare(self) -> None:
        self.marking: Marking = self.settings["marking"]
        if not hmac.compare_digest(self.path_args[0].encode(), self.settings["key"].encode()):
            raise self.refuse(404, "There is no page at this address; the terminal of `grader mark` shows one.")
        if self.request.method != "GET" and self.request.headers.get("Origin") != self.settings["origin"]:
            raise self.refuse(403, "This comes from another site.")
        try:
            self.summary = self.marking.summary()
        except InputError as error:
            raise self.refuse(409, f"Nothing is shown or saved until this is fixed: {error}") from None
        learner = self.path_args[1]
        if int(learner) >= len(self.summary.labels) if learner else self.request.method != "GET":
            raise self.refuse(404, "There is no learner at this address.")

    def get(self, key: str, learner: str) -> None:
        nonce = self.set_page_headers()
        exercise = self.get_query_argument("exercise", "")
        self.finish(page(self.summary, self.marking.renewal, nonce, int(learner) if learner else None, exercise))

    def post(self, key: str, learner: str) -> None:
        data, position, marking = self.request_json(), int(learner), self.marking
        exercise, points, comment, previous = (str(data.get(k, "")) for k in ("exercise", "points", "comment", "seen"))
        try:
            mark = HandMark(marks.parse_points(points) if points.strip() else None, text.clean(comment).strip())
            exercise = marking.course.known_exercise(exercise)
            note = marks.write_mark(marking.course, marking.marks, marking.names[position], exercise, mark, previous)
        except InputError as error:
            self.set_status(409)
            self.finish({"error": f"Not saved: {error.args[0]}", "seen": [previous, *error.args[1:]][-1]})
            return
        except OSError as error:
            raise self.refuse(503, f"Not saved: {marking.marks}: {error.strerror}.") from None
        report = marking.summary().report.submissions[position]
        current = {name: mark for lesson in report.lessons for name, mark in lesson.hand_marks.items()}.get(exercise)
        self.finish({"said": f"Saved.{note}", "seen": repr(current), "score": text.points(report)})


def page(summary: ClassSummary, renewal: str, nonce: str, learner: int | None, exercise: str) -> str:
    """The class, or the learner at a position in it; with an exercise that alone, of who has something to look at there."""
    submissions = summary.report.submissions
    hand_marks = [{name for lesson in report.lessons for name in lesson.hand_marks} for report in submissions]
    looks_at = [
        {name: verdict.status for (_, name), verdict in row.items() if name in names or verdict.status not in PLAIN}
        for row, names in zip(summary.verdicts, hand_marks, strict=True)
    ]
    counts = Counter(name for statuses in looks_at for name in statuses)
    rows = [i for i, statuses in enumerate(looks_at) if i == learner or not exercise or exercise in statuses]
    title = "Marking by hand" if learner is None else summary.labels[learner]
    context = {"summary": summary, "renewal": renewal, "nonce": nonce, "learner": learner, "exercise": exercise}
    context |= {"title": title, "hand_marks": hand_marks, "looks_at": looks_at, "counts": counts, "rows": rows}
    return html.render("mark.html", feedback=html.feedback, repr=repr, **context)


def serve(marking: Marking, port: int, tell: Callable[[str], None]) -> None:
    """Until Ctrl-C. port: 0 for a free one. Raises: InputError where it is taken."""
    (socket,) = bind("127.0.0.1", port)
    origin, key = f"http://127.0.0.1:{socket.getsockname()[1]}", secrets.token_urlsafe(18)
    settings: dict[str, Any] = {"marking": marking, "origin": origin, "key": key, "tell": tell}
    settings["log_function"] = lambda _: None

    async def answer() -> None:
        application = Application([("/([^/]*)/([0-9]{0,6})", Pages)], **settings)
        HTTPServer(application, max_body_size=MAX_BODY).add_socket(socket)
        tell(f"Mark in a browser on this computer: {origin}/{key}/")
        tell(f"Marks are kept in {marking.marks}. Ctrl-C ends this.")
        await asyncio.Event().wait()

    with suppress(KeyboardInterrupt), socket:
        asyncio.run(answer())
    tell(f"Ended. {marking.renewal}")
