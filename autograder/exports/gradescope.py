"""Gradescope's results.json of each submission, as STUDENT/CHAPTER/results.json.

Its autograder puts such a file into /autograder/results/; the fields are those of Gradescope's
specification of autograders. What a resumed grading needs, seeds among it, stays at home.
"""

from __future__ import annotations

import json

from .. import outputs
from ..results import SubmissionResult
from . import Request
from .packing import pack


def write(request: Request, results: list[SubmissionResult]) -> None:
    files = {}
    for result in results:
        request.ungraded(result)  # its file has no score, which Gradescope shows as a failure
        name = f"{result.student}/{result.chapter}/results.json"
        record = json.loads((request.grades / outputs.STUDENTS / name).read_text("utf-8"))
        record.pop("extra_data", None)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        files[name] = text.encode("utf-8", "replace")
    pack(request.out, files)
