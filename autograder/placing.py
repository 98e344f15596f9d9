"""Puts submissions into nbgrader's tree, and keeps what they replace.

Each folder appears whole or not at all, and what is there is compared first, so that collecting
twice changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from . import handed_in, outputs, quarantine
from .notebooks import Malformed, read_bytes

FOUND = "collected.json"  # beside the tree: under which name each submission came
TIME = "%Y-%m-%d %H:%M:%S.%f UTC"  # nbgrader's format


@dataclass
class Report:
    """What happened to each submission, as lines for a person."""

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, what: str, why: str) -> None:
        self.refused.append((what, why))


@dataclass
class Arrival:
    """One notebook that can be placed. `folder` holds CHAPTER.ipynb and what came with it."""

    claim: handed_in.Claim
    chapter: str
    origin: str
    folder: Path
    time: datetime | None = None
    order: tuple[Any, ...] = ()

    @property
    def notebook(self) -> Path:
        return self.folder / f"{self.chapter}.ipynb"


def place(arrivals: list[Arrival], kind: str, into: Path, dry: bool, report: Report) -> None:
    """Put each where it belongs; a dry run only tells."""
    known = names_of(into)
    before = json.dumps(known, sort_keys=True)
    there = {p.name.casefold(): p.name for p in into.iterdir()} if into.is_dir() else {}
    try:
        for arrival in sorted(arrivals, key=lambda a: (a.claim.student, a.chapter)):
            student = arrival.claim.student
            spelled = there.setdefault(student.casefold(), student)
            if spelled != student:
                why = f"{spelled} is there, which differs too little for folders"
                report.refuse(arrival.origin, why)
            else:
                _place(arrival, kind, into, known.setdefault(student, {}), dry, report)
    finally:
        if not dry and json.dumps(known, sort_keys=True) != before:
            text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True)
            into.parent.mkdir(parents=True, exist_ok=True)
            outputs.replace(into.with_name(FOUND), text + "\n")


def _place(
    arrival: Arrival, kind: str, into: Path, known: dict[str, Any], dry: bool, report: Report
) -> None:
    """One submission; `known` holds the student's records by chapter."""
    student, chapter = arrival.claim.student, arrival.chapter
    label, folder = f"{student}/{chapter}", into / student / chapter
    target = folder / f"{chapter}.ipynb"
    if any(p.is_symlink() for p in (into / student, folder, target)):
        report.refuse(arrival.origin, f"{label} is a link where it would go: remove it")
        return
    content = arrival.notebook.read_bytes()
    same = _is(target, content)
    older = target.exists() and _older(arrival, kind, known.get(chapter, {}), folder)
    if older and not same:
        report.refuse(arrival.origin, f"what is in {label} is newer")
        return
    if arrival.claim.late:
        report.notes.append(f"{label} is late, by Canvas's word; its time is not told")
    if same:
        report.unchanged.append(label)
    else:
        (report.replaced if folder.exists() else report.new).append(label)
    if not same and not dry:
        if folder.exists():
            _keep(folder, into, student, chapter)
        _write(arrival, folder)
    if not same or not known.get(chapter) or (known[chapter].get("from") == kind and not older):
        record = {"from": kind, "name": arrival.origin, "number": arrival.claim.number}
        known[chapter] = record | {"sha256": hashlib.sha256(content).hexdigest()}


def _is(file: Path, content: bytes) -> bool:
    """Whether a file holds this; what is there may be anything, of any size."""
    try:
        return read_bytes(file) == content
    except (OSError, Malformed):
        return False


def _older(arrival: Arrival, kind: str, before: dict[str, Any], folder: Path) -> bool:
    """Whether what is there is newer than what arrives, as far as anything tells."""
    try:
        there = quarantine.handed_in(folder)
    except quarantine.NoDate:
        there = None
    if there and arrival.time:
        return arrival.time < there
    mine, theirs = arrival.claim.number, before.get("number")
    if before.get("from") == kind and mine is not None and isinstance(theirs, int):
        return mine < theirs
    return False


def _keep(folder: Path, into: Path, student: str, chapter: str) -> None:
    """Move what is replaced to `submitted-before/STUDENT/CHAPTER/DATE`."""
    newest = max(p.lstat().st_mtime for p in [folder, *folder.iterdir()])
    date = datetime.fromtimestamp(newest).strftime("%Y-%m-%d-%H%M%S")
    kept = into.with_name(f"{into.name}-before") / student / chapter
    kept.mkdir(parents=True, exist_ok=True)
    names = (date, *(f"{date}-{n}" for n in range(2, 10_000)))
    os.rename(folder, next(kept / name for name in names if not (kept / name).exists()))


def _write(arrival: Arrival, folder: Path) -> None:
    """The whole folder at once, so that a kill leaves none that is half there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
    shutil.copytree(arrival.folder, part)
    stamp = part / "timestamp.txt"
    if arrival.time and not stamp.exists():
        stamp.write_text(arrival.time.strftime(TIME), "utf-8")
    os.rename(part, folder)


def time_in(text: str) -> datetime | None:
    from nbgrader.utils import parse_utc

    try:
        when = parse_utc(text.strip())
        return when if isinstance(when, datetime) else None
    except (ValueError, OverflowError):
        return None


def names_of(into: Path) -> dict[str, Any]:
    """Under which names the submissions in a tree came."""
    try:
        known = json.loads(into.with_name(FOUND).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
