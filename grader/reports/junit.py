"""A report as JUnit XML: a test suite for each lesson, a test case for each exercise, never a skip.

What is not written (not_started, missing) is a failure: a skip would count as a pass where a build is judged.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from grader.reports import text
from grader.reports.class_summary import ClassSummary
from grader.reports.report import LessonReport, Report, SubmissionReport

ERRORS = ("error", "timeout", "memory", "could_not_grade")  # the code did not run to its end, or ours did not
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2


def render(report: Report, learner: str = "") -> str:
    """The report as one XML document. learner: that of the only submission, where files of a class are read together."""
    top = ElementTree.Element("testsuites", name=_valid(report.course))
    several = len(report.submissions) > 1
    for label, submission in ClassSummary(report).learners:
        prefix = f"{learner or label}." if several or learner else ""
        for lesson in submission.lessons:
            _lesson(top, lesson, prefix)
        if submission.message or not submission.lessons:
            _message(top, submission, f"{prefix}submission")
    for key in ("tests", "failures", "errors"):
        top.set(key, str(sum(int(suite.get(key, "0")) for suite in top)))
    ElementTree.indent(top)
    # The same characters for an XML reader, and no command for the CI service whose log shows the file.
    xml = ElementTree.tostring(top, encoding="unicode").replace("::", ":&#58;").replace("##", "#&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


def _message(top: ElementTree.Element, submission: SubmissionReport, name: str) -> None:
    unread = not submission.lessons or any(verdict.status == "missing" for verdict in submission.verdicts)
    suite = _add(top, "testsuite", name=name, tests="1", failures="0", errors=str(int(unread)), skipped="0")
    case = _add(suite, "testcase", classname=name, name="can be read", time="0")
    if unread:
        _problem(case, "error", "could_not_read", submission.message or "No notebook was found.", "")
    else:
        _add(case, "system-out").text = _valid(submission.message)


def _lesson(top: ElementTree.Element, lesson: LessonReport, prefix: str) -> None:
    failed = [verdict for verdict in lesson.verdicts if not verdict.passed]
    errors = sum(verdict.status in ERRORS for verdict in failed)
    suite = _add(
        top,
        "testsuite",
        name=prefix + lesson.name,
        tests=str(len(lesson.verdicts)),
        failures=str(len(failed) - errors),
        errors=str(errors),
        skipped="0",
        time=f"{sum(verdict.seconds for verdict in lesson.verdicts):.3f}",
    )
    for verdict in lesson.verdicts:
        seconds = f"{verdict.seconds:.3f}"
        case = _add(suite, "testcase", classname=prefix + lesson.name, name=verdict.exercise, time=seconds)
        if not verdict.passed:
            kind = "error" if verdict.status in ERRORS else "failure"
            message = text.summary(verdict) or text.one_line(verdict.headline)
            _problem(case, kind, verdict.status, message, text.render_verdict(verdict))
    if notes := text.notes(lesson):
        _add(suite, "system-out").text = _valid("\n".join(notes))


def _problem(case: ElementTree.Element, kind: str, status: str, message: str, body: str) -> None:
    problem = _add(case, kind, type=status, message=text.one_line(message))
    problem.text = _valid(text.clean(body, text.MAX_TEXT - 1_000))


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, {key: _valid(value) for key, value in attributes.items()})


def _valid(value: str) -> str:
    """Text that XML 1.0 can hold."""
    return _INVALID.sub("", text.clean(value))
