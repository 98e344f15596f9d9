"""Brings what was handed in into nbgrader's tree: `submitted/STUDENT/CHAPTER/CHAPTER.ipynb`.

Nothing is lost and nothing is guessed: what is not taken is told with its reason, and what a newer
submission replaces is kept beside the tree.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path, PurePosixPath

from . import archives, course, handed_in, nbgrader_collect
from .notebooks import Malformed, code_cells
from .placing import Arrival, Report, place, time_in

KINDS = ("canvas", "moodle", "exchange", "flat")


def collect(
    source: Path,
    kind: str,
    into: Path,
    *,
    chapter: str | None = None,
    dry_run: bool = False,
    file_times: bool = False,
) -> Report:
    """Collect from a platform's download, the exchange or a folder. Raises CourseError."""
    if kind not in KINDS:
        raise course.CourseError(f"--from must be one of {', '.join(KINDS)}, but is {kind!r}")
    chapters = course.chapters()
    if chapter is not None:
        course.manifest(chapter)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="collect-") as made:
        work = Path(made)
        if kind == "exchange":
            asked = (chapter,) if chapter else chapters
            tree = nbgrader_collect.exchange(
                source, work, asked, report.refuse, report.notes.append
            )
            arrivals = _from_tree(tree, report)
        else:
            staged = _staged(source, kind, work, chapter, file_times, report)
            arrivals = _one_each(staged, report)
            if kind != "flat":
                arrivals = _through_nbgrader(arrivals, kind, work, report)
        place(arrivals, kind, into, dry_run, report)
    return report


def _staged(
    source: Path, kind: str, work: Path, asked: str | None, file_times: bool, report: Report
) -> list[Arrival]:
    """Each notebook in a numbered folder, with its student and chapter."""
    found, times = [], {}
    for number, entry in enumerate(archives.entries(source, report.refuse)):
        try:
            if entry.path.name.lower() == "timestamp.txt":
                if kind == "flat":
                    times[entry.path.parent] = time_in(
                        entry.read()[:100].decode("utf-8", "replace")
                    )
                else:
                    report.refuse(entry.name, "it is no notebook (.ipynb)")
                continue
            claim = handed_in.claim(kind, entry.name, course.chapters())
            folder = work / "staged" / str(number)
            folder.mkdir(parents=True)
            (folder / "handed-in.ipynb").write_bytes(entry.read())
            chapter, told = _chapter(folder / "handed-in.ipynb", claim, asked, report)
        except (handed_in.Unclear, Malformed, OSError) as error:
            report.refuse(entry.name, str(error))
            continue
        (folder / "handed-in.ipynb").rename(folder / f"{chapter}.ipynb")
        exact = claim.file == f"{chapter}.ipynb"
        order = (told, claim.number or 0, entry.time or datetime.min, exact, claim.file, number)
        time = entry.time if file_times else None
        found.append(Arrival(claim, chapter, entry.name, folder, time, order))
    for arrival in found:
        parent = PurePosixPath(arrival.origin).parent
        if parent != PurePosixPath("."):
            arrival.time = times.get(parent) or arrival.time
    return found


def _chapter(
    file: Path, claim: handed_in.Claim, asked: str | None, report: Report
) -> tuple[str, bool]:
    """The chapter by name, by the notebook's own cells, by what was asked for.

    Returns it and whether the notebook itself tells it. Raises Unclear.
    """
    try:
        ids = code_cells(file)[1]
    except Malformed:
        ids = set()  # grading will say so
    marked = {e.chapter for e in course.exercises().values() if e.name in ids}
    named = claim.chapter
    if named and marked and named not in marked:
        raise handed_in.Unclear(
            f"its name says {named}, its cells are of {', '.join(sorted(marked))}"
        )
    chapter = named or (asked if asked in marked else None)
    chapter = chapter or (next(iter(marked)) if len(marked) == 1 else None)
    chapter = chapter or (asked if not marked else None)
    if chapter is None:
        reason = "it tells no chapter: call it CHAPTER.ipynb, or say --chapter"
        if marked:
            reason = f"it has cells of {', '.join(sorted(marked))}: which one it is for is not told"
        raise handed_in.Unclear(reason)
    if asked and chapter != asked:
        raise handed_in.Unclear(f"it is of chapter {chapter}; only {asked} was asked for")
    if named is None and chapter in marked:
        report.notes.append(f"{claim.file} of {claim.student} is {chapter} by its cells")
    elif claim.file != f"{chapter}.ipynb" and claim.tail:
        report.notes.append(f"{claim.file} of {claim.student} is taken as {chapter}.ipynb")
    return chapter, bool(named or marked)


def _one_each(arrivals: list[Arrival], report: Report) -> list[Arrival]:
    """The latest of each student and chapter; names that a file system could mix up are refused."""
    spelled = defaultdict(set)
    for arrival in arrivals:
        spelled[arrival.claim.student.casefold()].add((arrival.claim.student, arrival.claim.who))
    latest: dict[tuple[str, str], Arrival] = {}
    for arrival in sorted(arrivals, key=lambda a: a.order):
        others = spelled[arrival.claim.student.casefold()]
        if len(others) > 1:
            names = ", ".join(sorted(who for _, who in others))
            report.refuse(arrival.origin, f"names that differ too little for folders: {names}")
            continue
        key = (arrival.claim.student, arrival.chapter)
        if key in latest:
            better = f"{arrival.origin} of the same student is later, or tells its chapter better"
            report.refuse(latest[key].origin, better)
        latest[key] = arrival
    return list(latest.values())


def _through_nbgrader(
    arrivals: list[Arrival], kind: str, work: Path, report: Report
) -> list[Arrival]:
    """Let nbgrader's `zip_collect` name and copy them."""
    taken = []
    for chapter in dict.fromkeys(a.chapter for a in arrivals):
        ours = [a for a in arrivals if a.chapter == chapter]
        for number, arrival in enumerate(ours):
            tail = PurePosixPath(arrival.claim.tail).with_suffix(".ipynb")
            staged = work / "downloaded" / chapter / "archive" / str(number) / tail
            staged.parent.mkdir(parents=True)
            arrival.notebook.rename(staged)
        submitted = nbgrader_collect.zip_collect(work, chapter, kind)
        for arrival in ours:
            arrival.folder = submitted / arrival.claim.student / chapter
            if arrival.notebook.is_file():
                taken.append(arrival)
            else:
                report.refuse(arrival.origin, "nbgrader's zip_collect did not take it")
    return taken


def _from_tree(tree: Path, report: Report) -> list[Arrival]:
    """What nbgrader collected from the exchange."""
    found = []
    for folder in sorted(tree.glob("*/*")):
        student, chapter = folder.parts[-2:]
        origin = f"{student}/{chapter}"
        notebooks = sorted(folder.glob("*.ipynb"))
        exact = [n for n in notebooks if n.name == f"{chapter}.ipynb"]
        for other in exact or notebooks:
            claim = handed_in.Claim(student, student, other.name, chapter, tail=other.name)
            if len(exact or notebooks) > 1:
                report.refuse(f"{origin}/{other.name}", "one of several, none of the right name")
                continue
            try:
                _chapter(other, claim, chapter, report)
            except handed_in.Unclear as error:
                report.refuse(f"{origin}/{other.name}", str(error))
                continue
            other.rename(folder / f"{chapter}.ipynb")
            time = folder / "timestamp.txt"
            when = time_in(time.read_text("utf-8", "replace")) if time.is_file() else None
            found.append(Arrival(claim, chapter, origin, folder, when))
        if not notebooks:
            report.refuse(origin, "there is no notebook in it")
    return found
