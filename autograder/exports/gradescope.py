"""Gradescope's results.json of each submission, as STUDENT/CHAPTER/results.json.

Its autograder puts such a file into /autograder/results/; the fields are those of Gradescope's
specification of autograders.
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
        text = json.dumps(outputs._gradescope(result), indent=1, ensure_ascii=False)
        files[name] = text.encode("utf-8", "replace")
    pack(request.out, files)
