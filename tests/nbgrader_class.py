"""A class for tests of nbgrader's side: results, its own door, what the book holds."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sqlalchemy import create_engine, text
from traitlets.config import Config

from autograder import core, course, gradebook, seeds
from autograder.results import CheckResult, ExerciseResult, SubmissionResult

CHAPTER = course.chapters()[0]
EXERCISES = course.manifest(CHAPTER)

GRADES = """
select s.student_id, a.name, b.name, g.auto_score, g.manual_score, g.extra_credit,
       g.needs_manual_grade, n.late_submission_penalty, s.timestamp
from grade g join base_cell b on g.cell_id = b.id join submitted_notebook n on g.notebook_id = n.id
     join submitted_assignment s on n.assignment_id = s.id
     join assignment a on s.assignment_id = a.id
order by 1, 2, 3"""
COMMENTS = """
select s.student_id, b.name, c.auto_comment, c.manual_comment
from comment c join base_cell b on c.cell_id = b.id
     join submitted_notebook n on c.notebook_id = n.id
     join submitted_assignment s on n.assignment_id = s.id
order by 1, 2"""
CELLS = """
select b.name, b.type, g.max_score, s.cell_type, s.locked, s.source, s.checksum
from base_cell b join source_cell s on s.name = b.name and s.notebook_id = b.notebook_id
     left join grade_cells g on g.id = b.id
order by 1"""


def result(student: str, share: float = 1.0, status: str = "graded") -> SubmissionResult:
    """A result in which every exercise has this share of its points."""
    exercises = [
        ExerciseResult(
            e.id,
            e.points * share,
            e.points,
            "passed" if share == 1 else "partly",
            [CheckResult("c", f"{e.name} holds", 1, False, share == 1, "" if share == 1 else "no")],
        )
        for e in EXERCISES
    ]
    return SubmissionResult(student, CHAPTER, status, exercises)


def rows(url: str, query: str = GRADES) -> list[tuple[Any, ...]]:
    """What a grade book holds, asked without nbgrader."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [tuple(map(_plain, row)) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def _plain(value: Any) -> Any:
    """SQLite keeps dates as text and truth as numbers, PostgreSQL as they are."""
    return str(value).removesuffix(".000000") if hasattr(value, "year") else _unstamped(value)


def _unstamped(value: Any) -> Any:
    return value.removesuffix(".000000") if isinstance(value, str) else value


def totals(url: str) -> dict[str, float]:
    """The automatic score of each student, over all exercises."""
    found: dict[str, float] = {}
    for student, _, _, auto, *_ in rows(url):
        found[student] = found.get(student, 0.0) + auto
    return {student: round(total, 2) for student, total in found.items()}


def config_for(root: Path, **sections: dict[str, Any]) -> Config:
    """The course's configuration of nbgrader, for a class in this folder."""
    config = copy.deepcopy(gradebook.config())
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
    for section, values in sections.items():
        config[section].update(values)
    return config


def autograde(config: Config) -> None:
    """`nbgrader autograde CHAPTER --force`, in this process. Raises where it has errors."""
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory

    config = copy.deepcopy(config)
    config.CourseDirectory.assignment_id = CHAPTER
    directory = CourseDirectory(config=config)
    Autograde(coursedir=directory, config=config, force=True).start()


def feedback(config: Config, *students: str) -> Callable[[str], str]:
    """`nbgrader generate_feedback CHAPTER --force`; returns what gives a student's page."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    config = copy.deepcopy(config)
    config.CourseDirectory.assignment_id = CHAPTER
    everybody = {p.name for p in Path(config.CourseDirectory.root, "autograded").iterdir()}
    config.CourseDirectory.student_id_exclude = ",".join(everybody.difference(students))
    directory = CourseDirectory(config=config)
    GenerateFeedback(coursedir=directory, config=config, force=True).start()
    pages = Path(config.CourseDirectory.root) / "feedback"
    return lambda student: (pages / student / CHAPTER / f"{CHAPTER}.html").read_text("utf-8")


def hand_in(root: Path, student: str, content: bytes | str | None, **beside: str) -> Path:
    """Put a submission into `root/submitted`; `beside` are other files by their stem (.txt)."""
    folder = root / "submitted" / student / CHAPTER
    folder.mkdir(parents=True)
    file = folder / f"{CHAPTER}.ipynb"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    for stem, words in beside.items():
        (folder / f"{stem}.txt").write_text(words)
    return file


def hand_in_notebook(root: Path, student: str, notebook: Any, **beside: str) -> Path:
    return hand_in(root, student, nbformat.v4.writes(notebook), **beside)


def grade_by(
    share: Callable[[list[str]], float], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put this in the place of sandbox and checks: the share of the points for these cells."""

    def grade_cells(about: SubmissionResult, cells: list[str], **_: Any) -> SubmissionResult:
        about.exercises = result("", share(cells)).exercises
        about.status = "graded"
        return about

    monkeypatch.setattr(core, "grade_cells", grade_cells)
    monkeypatch.setenv(seeds.VARIABLE, str(root / "secret"))
    monkeypatch.setattr("autograder.sandbox.require", lambda: None)
