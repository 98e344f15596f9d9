"""The feedback pages under the names by which a platform gives each to its student.

Canvas reads person and attachment from the name that it gave to the submission, Moodle the person
from its folder; both names are in `collected.json`, which `collect` wrote.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from .. import outputs, report
from ..handed_in import CANVAS, MOODLE
from ..results import SubmissionResult
from . import Request
from .packing import pack

PAGE = "feedback.html"


def write(request: Request, results: list[SubmissionResult]) -> None:
    known = _collected(request)
    several = len({r.chapter for r in results}) > 1
    files, unknown = {}, 0
    rows = []
    for result in results:
        record = known.get(result.student, {}).get(result.chapter, {})
        name = _for_platform(record, result.chapter)
        unknown += name is None
        name = name or f"{result.student}/{result.chapter}.html"
        name = f"{result.chapter}/{name}" if several else name
        source = request.grades / outputs.STUDENTS / result.student / result.chapter / PAGE
        page = source.read_bytes() if source.is_file() else report.page(result).encode()
        files[name] = page
        score = "no grade" if result.score is None else f"{result.score:g} / {result.max_score:g}"
        rows.append((result, name, score))
        request.ungraded(result)
    index = _index(rows).encode("utf-8", "replace")
    if request.out.suffix == ".zip":  # the index is the teacher's, the zip goes to the platform
        pack(request.out, files)
        outputs.replace(request.out.with_suffix(".html"), index.decode())
        request.notes.append(f"index: {request.out.with_suffix('.html')}")
    else:
        pack(request.out, files | {"index.html": index})
    if unknown:
        request.notes.append(
            f"{unknown} pages have no name that a platform knows: they did not come by "
            "`collect --from canvas` or `moodle`"
        )
    if several:
        request.notes.append("a platform takes one assignment at a time: say --chapter")


def _for_platform(record: dict[str, Any], chapter: str) -> str | None:
    """The name under which Canvas or Moodle takes a page back, if one of them sent the notebook."""
    parts = PurePosixPath(str(record.get("name", ""))).parts
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        if record.get("from") == "canvas" and (found := re.fullmatch(CANVAS, tail)):
            return f"{tail[: found.start('file_id')]}{chapter}-{PAGE}"
        if record.get("from") == "moodle" and (found := re.fullmatch(MOODLE, tail)):
            person = f"{found['name']}_{found['student_id']}"
            return f"{person}_assignsubmission_file_/{chapter}-{PAGE}"
    return None


def _collected(request: Request) -> dict[str, Any]:
    file = request.collected or request.grades.with_name("collected.json")
    try:
        known = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _index(rows: list[tuple[SubmissionResult, str, str]]) -> str:
    lines = []
    for result, name, score in rows:
        link = quote(name.encode("utf-8", "replace"))
        lines.append(
            f'<tr><td><a href="{link}">{report.escaped(result.student)}</a></td>'
            f"<td>{report.escaped(result.chapter)}</td><td>{report.escaped(result.status)}</td>"
            f"<td>{score}</td></tr>"
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Feedback</title>'
        "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;"
        "max-width:50em;margin:2em auto;padding:0 1em}"
        "td,th{text-align:left;padding:.1em 1em .1em 0}</style></head><body>\n"
        "<h1>Feedback</h1>\n<table><tr><th>student</th><th>chapter</th>"
        f"<th>status</th><th>points</th></tr>\n{chr(10).join(lines)}\n</table></body></html>\n"
    )
