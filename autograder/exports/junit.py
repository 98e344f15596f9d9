"""One JUnit report of all submissions, for continuous integration and whatever draws test reports.

A submission is a suite, a check a test: failed where the student's answer failed, an error where
the grader did, skipped where nothing was handed in.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from .. import outputs, report
from ..core import MISSING
from ..results import GRADER_ERROR, CheckResult, ExerciseResult, SubmissionResult
from . import Request

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0


def write(request: Request, results: list[SubmissionResult]) -> None:
    top = ET.Element("testsuites", name="autograder")
    for result in results:
        request.ungraded(result)
        top.append(_suite(result))
    for name in ("tests", "failures", "errors", "skipped"):
        top.set(name, str(sum(int(suite.get(name, "0")) for suite in top)))
    top.set("time", f"{sum(r.seconds for r in results):.2f}")
    ET.indent(top, " ")
    text = ET.tostring(top, "unicode")
    outputs.replace(request.out, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')


def _suite(result: SubmissionResult) -> ET.Element:
    suite = ET.Element("testsuite", name=legal(f"{result.student}/{result.chapter}"))
    properties = ET.SubElement(suite, "properties")
    score = "" if result.score is None else f"{result.score:g}"
    about = {"status": result.status, "score": score, "max_score": f"{result.max_score:g}"}
    for name, value in about.items():
        ET.SubElement(properties, "property", name=name, value=value)
    for exercise in result.exercises:
        cases = [_case(exercise, check, result) for check in exercise.checks]
        suite.extend(cases or [_alone(exercise, result)])
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, tag in kinds.items():
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{result.seconds:.2f}")
    if result.note:
        ET.SubElement(suite, "system-out").text = legal(report.clean(result.note))
    return suite


def _case(exercise: ExerciseResult, check: CheckResult, result: SubmissionResult) -> ET.Element:
    name = f"{check.name} (hidden check)" if check.hidden else check.name
    case = ET.Element("testcase", classname=exercise.id, name=name)
    message = report.clean(check.fault or check.message)
    if check.fault:
        _add(case, "error", message, "grader")
    elif not check.passed and MISSING in (exercise.status, result.status):
        _add(case, "skipped", message or "not written")
    elif not check.passed:
        _add(case, "failure", message or check.sentence, "check")
    return case


def _alone(exercise: ExerciseResult, result: SubmissionResult) -> ET.Element:
    """An exercise without checks: not handed in, a bonus not tried, or nothing could be run."""
    case = ET.Element("testcase", classname=exercise.id, name="exercise")
    message = exercise.untried or report.clean(result.note) or result.status
    if exercise.points is None or result.status == GRADER_ERROR:
        _add(case, "error", message, "grader")
    elif exercise.untried or result.status == MISSING:
        _add(case, "skipped", message)
    else:
        _add(case, "failure", message, result.status)
    return case


def _add(case: ET.Element, tag: str, message: str, kind: str | None = None) -> None:
    first = legal(message).split("\n")[0]
    node = ET.SubElement(case, tag, message=first)
    if kind:
        node.set("type", kind)
        node.text = legal(message)


def legal(text: str) -> str:
    """Text of which every character may stand in XML 1.0."""
    return FORBIDDEN.sub("\ufffd", text)
