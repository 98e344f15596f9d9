"""nbgrader's grade book as nbgrader would write it, but fast, and gentle with people's work."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import SaveCells

from autograder import autograded, gradebook
from autograder.course import CourseError
from tests.nbgrader_class import (
    CELLS,
    CHAPTER,
    COMMENTS,
    EXERCISES,
    autograde,
    config_for,
    grade_by,
    hand_in_notebook,
    result,
    rows,
    totals,
)

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
# A Persian name and an emoji of two persons, each joined by a sign that is not seen.
JOINED = ("\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "\U0001f468\u200d\U0001f469")
FULL = float(sum(e.points for e in EXERCISES))
TABLES = ("assignment", "student", "submitted_assignment", "submitted_notebook", "grade", "comment")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grade book without a row, made once: nbgrader needs a second for it."""
    file = tmp_path_factory.mktemp("empty") / "gradebook.db"
    with gradebook.opened(f"sqlite:///{file}"):
        pass
    return file


@pytest.fixture
def url(tmp_path: Path, empty: Path) -> str:
    (tmp_path / "gradebook.db").write_bytes(empty.read_bytes())
    return f"sqlite:///{tmp_path / 'gradebook.db'}"


@pytest.fixture
def nbgraders(url: str) -> Iterator[Any]:
    with Gradebook(url) as book:
        yield book


def everything(url: str) -> list[Any]:
    return [rows(url, f"select * from {table} order by id") for table in TABLES]


def test_the_book_is_as_nbgrader_itself_would_have_made_it(
    url: str, tmp_path: Path, empty: Path
) -> None:
    (tmp_path / "theirs.db").write_bytes(empty.read_bytes())
    theirs = f"sqlite:///{tmp_path / 'theirs.db'}"
    with Gradebook(theirs) as book:
        book.update_or_create_assignment(CHAPTER)
        about = {"notebook": CHAPTER, "assignment": CHAPTER, "db_url": theirs}
        SaveCells().preprocess(autograded.released(CHAPTER), {"nbgrader": about})
        for student, share in (("ada", 1.0), ("bob", 0.5)):
            book.update_or_create_student(student)
            book.update_or_create_submission(CHAPTER, student)
            for exercise in EXERCISES:
                grade = book.find_grade(exercise.name, CHAPTER, CHAPTER, student)
                grade.auto_score, grade.needs_manual_grade = exercise.points * share, False
        book.db.commit()
    gradebook.write(url, [result("ada"), result("bob", 0.5)])
    assert rows(url) == rows(theirs) and len(rows(url)) == 2 * len(EXERCISES)
    assert rows(url, CELLS) == rows(theirs, CELLS) and len(rows(url, CELLS)) == 2 * len(EXERCISES)
    assert rows(url, COMMENTS) == rows(theirs, COMMENTS) and len(rows(url, COMMENTS)) > 0
    kept = everything(theirs)
    gradebook.write(theirs, [result("ada"), result("bob", 0.5)])
    assert everything(theirs) == kept


def test_results_written_again_change_nothing_and_the_last_of_one_submission_counts(
    url: str,
) -> None:
    gradebook.write(url, [result("ada"), result("bob", 0.5)])
    before = everything(url)
    gradebook.write(url, [result("ada", 0.0), result("bob", 0.5), result("ada")])
    assert everything(url) == before and totals(url) == {"ada": FULL, "bob": FULL / 2}


def test_a_second_attempt_replaces_the_first_and_leaves_the_others(url: str) -> None:
    gradebook.write(url, [result("ada"), result("bob", 0.5)])
    gradebook.write(url, [result("bob", 0.0, "crashed")])
    assert totals(url) == {"ada": FULL, "bob": 0.0}


def test_a_fault_of_the_grader_is_no_score_and_asks_for_a_person(url: str, nbgraders: Any) -> None:
    broken = result("ada")
    broken.exercises[0].points = None
    gradebook.write(url, [broken])
    grade = nbgraders.find_grade(EXERCISES[0].name, CHAPTER, CHAPTER, "ada")
    assert grade.auto_score is None and grade.needs_manual_grade


def test_what_a_person_wrote_stays_and_is_asked_about_only_when_the_score_changes(
    url: str, nbgraders: Any
) -> None:
    name = EXERCISES[0].name
    gradebook.write(url, [result("ada", 0.5)])
    grade = nbgraders.find_grade(name, CHAPTER, CHAPTER, "ada")
    comment = nbgraders.find_comment(f"answer-{name}", CHAPTER, CHAPTER, "ada")
    grade.manual_score, grade.extra_credit, comment.manual_comment = 0.25, 2.0, "Look at the axes."
    nbgraders.db.commit()

    def now() -> tuple[Any, ...]:
        nbgraders.db.expire_all()
        human = grade.manual_score, grade.extra_credit, comment.manual_comment
        return (*human, grade.auto_score, grade.needs_manual_grade)

    kept, points = (0.25, 2.0, "Look at the axes."), EXERCISES[0].points
    nbgraders.db.rollback()
    gradebook.write(url, [result("ada", 0.5)])
    assert now() == (*kept, points / 2, False)
    nbgraders.db.rollback()
    gradebook.write(url, [result("ada", 1.0)])
    assert now() == (*kept, float(points), True)
    nbgraders.db.rollback()
    gradebook.write(url, [result("ada", 1.0)])
    assert now() == (*kept, float(points), True)


def test_nbgraders_note_on_an_older_attempt_goes(url: str, nbgraders: Any) -> None:
    gradebook.write(url, [result("ada", 0.0)])
    comment = nbgraders.find_comment(f"answer-{EXERCISES[0].name}", CHAPTER, CHAPTER, "ada")
    comment.auto_comment = "No response."
    nbgraders.db.commit()
    gradebook.write(url, [result("ada", 1.0)])
    assert all(auto is None for *_, auto, _ in rows(url, COMMENTS))


def test_a_large_class_is_written_in_some_seconds(url: str) -> None:
    """At least 100 submissions a second; it was measured at 1500 to 3000."""
    results = [result(f"student-{number:04}", number % 3 / 2) for number in range(600)]
    gradebook.write(url, results[:1])
    started = time.process_time()
    gradebook.write(url, results)
    assert time.process_time() - started < 6.0
    assert totals(url) == {r.student: r.score for r in results}


def test_a_kill_in_the_middle_and_a_second_try_give_the_same_book(
    url: str, tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole.db").write_bytes(empty.read_bytes())
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    monkeypatch.setattr(gradebook, "TOGETHER", 4)
    results = [result(f"student-{number:03}", number % 2) for number in range(160)]
    gradebook.write(whole, results)
    gradebook.write(url, results[:4])
    writer = multiprocessing.get_context("fork").Process(
        target=gradebook.write, args=(url, results)
    )
    writer.start()
    while len(totals(url)) < 12 and writer.is_alive():
        time.sleep(0.005)
    os.kill(writer.pid or 0, signal.SIGKILL)
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    survived = totals(url)
    assert 12 <= len(survived) < len(results) and len(survived) % 4 == 0
    assert len(rows(url)) == len(survived) * len(EXERCISES)
    gradebook.write(url, results)
    assert rows(url) == rows(whole) and rows(url, COMMENTS) == rows(whole, COMMENTS)


def test_two_that_write_at_once_lose_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "TOGETHER", 20)
    context = multiprocessing.get_context("fork")
    classes = [[result(f"student-{n:03}", share) for n in range(200)] for share in (0.5, 1.0)]
    writers = [context.Process(target=gradebook.write, args=(url, each)) for each in classes]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    found = totals(url)
    assert len(found) == 200 and set(found.values()) <= {FULL, FULL / 2}
    assert len(rows(url)) == 200 * len(EXERCISES)


def test_a_new_book_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nbgrader.api.get_alembic_version", failing)
    with pytest.raises(KeyboardInterrupt):
        gradebook.write(f"sqlite:///{tmp_path / 'new.db'}", [result("ada")])
    assert not (tmp_path / "new.db").exists()


def test_names_that_the_book_cannot_hold_are_told_and_the_others_are_written(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["ada", *JOINED, "x" * 129, "<script>alert(1)</script>", "turned\u202eround"]
    gradebook.write(url, [result(name) for name in names])
    assert totals(url) == dict.fromkeys(["ada", *JOINED], FULL)
    told = capsys.readouterr().err
    assert told.count("not in the grade book") == 3 and "\u202e" not in told


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("gradebook.db", "sqlite:///class/gradebook.db"),
        ("nonsense://x", "sqlite:///class/gradebook.db"),
        ("postgresql+pg8000://user:hunter2@localhost/book", "python -m pip install pg8000"),
    ],
)
def test_an_address_that_cannot_be_used_is_told_with_its_cure(address: str, words: str) -> None:
    with pytest.raises(CourseError) as told:
        gradebook.write(address, [result("ada")])
    assert words in str(told.value) and "hunter2" not in str(told.value)
    assert "hunter2" not in gradebook.shown(address)


class AnEighthAnHour(BasePlugin):
    """A penalty that depends on everything that a plugin is told."""

    def late_submission_penalty(self, student: str, score: float, seconds: float) -> float | None:
        return None if student == "excused" else score / 8 * seconds / 3600


PLUGIN = f"{__name__}.AnEighthAnHour"
DUE = datetime(2027, 3, 1, 18, 0)


def late_class(root: Path, config: Any) -> str:
    """A class with a due date: (student, hours after it)."""
    url = str(config.CourseDirectory.db_url)
    notebook = autograded.released(CHAPTER)
    gradebook.write(url, [result("excused", 0.0)])
    with Gradebook(url) as book:
        book.update_or_create_assignment(CHAPTER, duedate=DUE.isoformat())
        book.update_or_create_student("extended")
        book.update_or_create_submission(CHAPTER, "extended")
        book.grant_extension(CHAPTER, "extended", hours=2)
    for student, hours in (
        ("early", -1), ("late", 2), ("excused", 2), ("very-late", 48), ("extended", 3)
    ):  # fmt: skip
        stamp = f"{DUE + timedelta(hours=hours):%Y-%m-%d %H:%M:%S} UTC"
        hand_in_notebook(root, student, notebook, timestamp=stamp)
    hand_in_notebook(root, "undated", notebook)
    hand_in_notebook(root, "elsewhere", notebook, timestamp="2027-03-01T21:00:00+02:00")
    return url


def test_late_submissions_have_the_same_penalty_through_both_doors(
    tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = []
    for door in ("ours", "nbgraders"):
        root = tmp_path / door
        root.mkdir()
        (root / "gradebook.db").write_bytes(empty.read_bytes())
        config = config_for(root, AssignLatePenalties={"plugin_class": PLUGIN})
        monkeypatch.setattr(gradebook, "config", lambda config=config: config)
        url = late_class(root, config)
        if door == "ours":
            students = sorted(p.name for p in (root / "submitted").iterdir())
            gradebook.write(url, [result(s, 0.5) for s in students], root / "submitted")
        else:
            grade_by(lambda cells: 0.5, root, monkeypatch)
            autograde(config)
        books.append({(row[0], *row[-2:]) for row in rows(url)})
    assert books[0] == books[1]
    half = FULL / 2
    assert {student: penalty for student, penalty, _ in books[0]} == {
        "early": None, "late": half / 4, "excused": None, "very-late": half, "extended": half / 8,
        "undated": None, "elsewhere": half / 8,
    }  # fmt: skip


def test_a_penalty_goes_when_the_due_date_does(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(tmp_path, LateSubmissionPlugin={"penalty_method": "zero"})
    monkeypatch.setattr(gradebook, "config", lambda: config)
    late_class(tmp_path, config)
    for due, penalty in ((DUE, FULL), (DUE + timedelta(days=9), None)):
        with Gradebook(url) as book:
            book.update_or_create_assignment(CHAPTER, duedate=due.isoformat())
        gradebook.write(url, [result("late")], tmp_path / "submitted")
        assert {r[-2] for r in rows(url) if r[0] == "late"} == {penalty}


class Broken(BasePlugin):
    def late_submission_penalty(self, *_: Any) -> float | None:
        raise ZeroDivisionError("by zero")


def test_a_plugin_that_fails_is_named(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(tmp_path, AssignLatePenalties={"plugin_class": f"{__name__}.Broken"})
    monkeypatch.setattr(gradebook, "config", lambda: config)
    late_class(tmp_path, config)
    with pytest.raises(CourseError, match="Broken, failed: ZeroDivisionError: by zero"):
        gradebook.write(url, [result("late")], tmp_path / "submitted")


def test_the_released_notebook_is_not_changed_by_its_users() -> None:
    before = nbformat.v4.writes(autograded.released(CHAPTER))
    autograded.annotate(autograded.restored(None, CHAPTER), result("ada"))
    assert nbformat.v4.writes(autograded.released(CHAPTER)) == before
