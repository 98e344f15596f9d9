"""Writes results into nbgrader's grade book, so that its export, formgrader and penalties apply.

The automatic scores of a submission are replaced as a whole, some hundred submissions at a time in
one transaction; what a person wrote (scores, comments, extra credit) stays untouched.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from . import bookrows, course, quarantine, report, submissions
from .results import SubmissionResult

TOGETHER = 300  # submissions in one transaction
ATTEMPTS = 7  # where somebody else writes at the same time
SQLITE_WAIT = "2"  # seconds; two that have both read would wait for each other, so try anew


@cache
def config() -> Any:
    """What `nbgrader_config.py` at the root says."""
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(course.ROOT)).load_config()


def default_url() -> str:
    """The grade book that `nbgrader_config.py` at the root names."""
    return str(config().CourseDirectory.db_url)


def shown(url: str) -> str:
    """The address of a grade book without its password."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url


def write(url: str, results: Iterable[SubmissionResult], submitted: Path | None = None) -> None:
    """Store results; assignment, notebook and cells are made where they are missing.

    `submitted` holds nbgrader's `STUDENT/CHAPTER/timestamp.txt`. Of several results of one
    submission the last counts. The same results written again change nothing.
    """
    unique, places = {}, {}
    for result in filter(_has_a_name, results):
        key = result.chapter, result.student
        unique[key], places[key] = bookrows.points(result), result.file
    if not unique:
        return
    late = _late_penalty()
    with warnings.catch_warnings(), opened(url) as book:
        for chapter, group in groupby(sorted(unique), lambda key: key[0]):
            _in_one(book.db, partial(bookrows.prepare, book, chapter))
            for students in _parts([student for _, student in group]):
                part = {student: unique[chapter, student] for student in students}
                where = {student: places[chapter, student] for student in students}
                dates = _dates(where, chapter, submitted) if submitted else {}
                _in_one(book.db, partial(bookrows.store, book.db, chapter, part, dates, late))


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """nbgrader's `Gradebook`, made where it is missing. Raises CourseError with a cure."""
    from nbgrader.api import Gradebook, InvalidEntry
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SAWarning

    warnings.simplefilter("ignore", SAWarning)  # nbgrader's own queries, newer SQLAlchemy
    beside = str(Path(sys.executable).parent)  # nbgrader calls alembic by its bare name
    if beside not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
    name = config().CourseDirectory.course_id
    try:
        address = make_url(url)
        if address.get_backend_name() == "sqlite" and address.database:
            _make_sqlite(Path(address.database), name)
            address = address.update_query_dict({"timeout": SQLITE_WAIT})
        problems = (DBAPIError, InvalidEntry)
        book = _patiently(lambda: Gradebook(address, name), problems)
    except (ArgumentError, NoSuchModuleError) as error:
        raise course.CourseError(
            "the grade book is named by an address such as sqlite:///class/gradebook.db or "
            f"postgresql+psycopg://NAME@HOST/BOOK, but this is {url!r}: {error}"
        ) from None
    except ModuleNotFoundError as error:
        raise course.CourseError(
            f"the grade book {shown(url)} needs the Python package {error.name}: "
            f"python -m pip install {error.name}"
        ) from None
    with book:
        yield book


def _make_sqlite(file: Path, name: str) -> None:
    """A new grade book, whole at once: nbgrader makes it in several steps."""
    from nbgrader.api import Gradebook

    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    Gradebook(f"sqlite:///{part}", name).close()
    try:
        os.link(part, file)
    except FileExistsError:  # another process was faster
        pass
    finally:
        part.unlink()


def _in_one(session: Any, step: Callable[[], None]) -> None:
    """A step in one transaction; from its beginning again where another writer came between."""
    from sqlalchemy.exc import IntegrityError, OperationalError

    def once() -> None:
        try:
            step()
            session.commit()
        except BaseException:
            session.rollback()
            raise

    _patiently(once, (IntegrityError, OperationalError))


def _patiently(step: Callable[[], Any], problems: tuple[type[Exception], ...]) -> Any:
    for attempt in range(ATTEMPTS):
        try:
            return step()
        except problems as error:
            if attempt == ATTEMPTS - 1:
                raise course.CourseError(
                    f"the grade book does not take what is written: {error}".split("\n[SQL")[0]
                    + "\nThe grades are kept: run the same command again when it works."
                ) from error
            time.sleep(0.05 * 2**attempt)


def _late_penalty() -> Callable[[str, float, float], float | None]:
    """The penalty for a late submission, as nbgrader's preprocessor is configured for it."""
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=config())
    step.init_plugin()

    def penalty(student: str, score: float, seconds: float) -> float | None:
        try:
            found = step.plugin_inst.late_submission_penalty(student, score, seconds)
            return None if found is None else min(max(float(found), 0.0), score)
        except Exception as error:
            raise course.CourseError(
                f"AssignLatePenalties.plugin_class, {step.plugin_class.__name__}, failed: "
                f"{type(error).__name__}: {error}; repair it and grade again"
            ) from error

    return penalty


def _dates(places: Mapping[str, str], chapter: str, submitted: Path) -> Mapping[str, Any]:
    """The dates by student. A folder's name that is no text is not the student's name."""
    found = {}
    for student, file in places.items():
        folder = submitted / student / chapter
        try:
            if file:
                folder = submissions.located(submitted, file).parent
            found[student] = quarantine.handed_in(folder)
        except quarantine.NoDate as error:
            print(report.clean(f"{folder / quarantine.STAMP}: {error}"), file=sys.stderr)
    return {student: date for student, date in found.items() if date is not None}


def _has_a_name(result: SubmissionResult) -> bool:
    problem = quarantine.name_problem(result.student)
    if problem:
        told = f"{result.student}: not in the grade book, for {problem}"
        print(report.clean(told), file=sys.stderr)
    return not problem


def _parts(students: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(students), TOGETHER):
        yield students[start : start + TOGETHER]
