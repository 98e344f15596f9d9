"""What a grading process does with one submission: takes bytes, gives text.

All submissions of a process are run by one thread that lives as long as the process: a sandbox ends
with the thread that started it, and is to serve many.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import psutil

from . import core, identity
from .results import SubmissionResult, from_json, to_json
from .sandbox import Limits, SandboxMissing

_one_at_a_time = threading.Lock()


def grade(parcel: dict[str, Any]) -> str:
    """Grade the submission in a parcel; called by Dask, from any of its threads."""
    with _one_at_a_time:
        lane = _lane()
    return lane.submit(_grade, parcel).result()


@cache
def _lane() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "grading")


def _grade(parcel: dict[str, Any]) -> str:
    if identity.whole() != parcel["same"]:  # a worker that joined late
        return json.dumps({"other": identity.whole()})
    walls = parcel["walls"]
    try:
        if walls and parcel["try_walls"]:
            _walls_stand()
        result = core.grade_bytes(
            parcel["student"],
            parcel["chapter"],
            parcel["content"],
            seed=parcel["seed"],
            limits=Limits(**parcel["limits"]),
            walls=walls,
        )
    except SandboxMissing as fault:
        return json.dumps({"no sandbox": str(fault)})
    return json.dumps({"result": to_json(result), "memory": psutil.Process().memory_info().rss})


@cache
def _walls_stand() -> None:
    """Each wall was tried on this machine. Raises SandboxMissing where one does not stand."""
    from . import walls

    for _ in walls.check():
        pass


def answer(text: str | None, same: dict[str, Any]) -> tuple[SubmissionResult, int]:
    """(result, bytes of memory that the process used) from the text that `grade` gave.

    Raises SandboxMissing as `grade` met it, CourseError where the worker is not the `same`, and
    ValueError where the text is none of these.
    """
    if text is None:
        raise ValueError("the grading process died each time")
    try:
        told = json.loads(text)
    except RecursionError:
        told = None
    if not isinstance(told, dict):
        raise ValueError("the grading process told nothing that can be read")
    if "no sandbox" in told:
        raise SandboxMissing(str(told["no sandbox"]))
    try:
        if "other" in told:
            identity.agree("that joined last", same, told["other"])
        return from_json(told["result"]), int(told["memory"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"the grading process told no result ({error})") from None
