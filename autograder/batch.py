"""Grades many submissions at once, each in a sandbox of its own, and keeps what is finished.

Each result is written the moment it is there, so that an interruption loses only what was running;
the next run takes finished results over when neither the submission nor the checks have changed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from . import core, course, outputs
from .notebooks import Malformed, read_bytes
from .results import GRADER_ERROR, ExerciseResult, SubmissionResult
from .sandbox import Limits


@dataclass(frozen=True)
class Task:
    """One notebook of one student, there or not."""

    student: str
    chapter: str
    file: Path


def find(submitted: Path, chapters: tuple[str, ...] | None = None) -> list[Task]:
    """The tasks in nbgrader's layout, `submitted/<student>/<chapter>/<chapter>.ipynb`.

    A chapter that anybody handed in is expected of everybody. Raises CourseError when there is
    nothing to grade.
    """
    if not submitted.is_dir():
        raise course.CourseError(
            f"there is no folder {submitted}: it should hold a folder a student"
        )
    folders = (p for p in submitted.iterdir() if p.is_dir() and not p.name.startswith("."))
    students = sorted(folders)
    wanted = chapters or tuple(
        c for c in course.chapters() if any((s / c).is_dir() for s in students)
    )
    if not students or not wanted:
        raise course.CourseError(
            f"nothing to grade in {submitted}: it should hold "
            f"STUDENT/CHAPTER/CHAPTER.ipynb, with CHAPTER one of {', '.join(course.chapters())}"
        )
    return [Task(_readable(s.name), c, s / c / f"{c}.ipynb") for c in wanted for s in students]


def _readable(name: str) -> str:
    """A folder's name as text that every file and data base takes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def grade_all(
    tasks: list[Task],
    out: Path,
    *,
    jobs: int,
    seed: int | None,
    limits: Limits,
    walls: bool,
    resume: bool,
    each: Callable[[SubmissionResult, bool], None],
) -> list[SubmissionResult]:
    """Grade every task; `each(result, taken_over)` is called at each end. Order as in `tasks`."""
    results: dict[Task, SubmissionResult] = {}

    def keep(task: Task, result: SubmissionResult, taken_over: bool) -> None:
        results[task] = result
        if not taken_over:
            outputs.write_submission(out, result)
        done = [results[t] for t in tasks if t in results]
        outputs.write_table(out / "grades.csv", done)
        each(result, taken_over)

    todo = []
    for task in tasks:
        earlier = _earlier(task, out, seed) if resume else None
        if earlier is None:
            todo.append(task)
        else:
            keep(task, earlier, True)
    for task, result in _in_parallel(todo, jobs, seed, limits, walls):
        keep(task, result, False)
    return [results[task] for task in tasks]


def _earlier(task: Task, out: Path, seed: int | None) -> SubmissionResult | None:
    """The finished result of the same submission by the same checks, if there is one."""
    result = outputs.read_submission(out, task.student, task.chapter)
    if result is None or result.status == GRADER_ERROR or seed not in (None, result.seed):
        return None
    try:
        now = core.fingerprint(read_bytes(task.file), task.chapter)
    except (OSError, Malformed):
        return None
    return result if now == result.fingerprint else None


def _in_parallel(
    tasks: list[Task], jobs: int, seed: int | None, limits: Limits, walls: bool
) -> Iterator[tuple[Task, SubmissionResult]]:
    """(task, result) in the order in which they finish; a grader that dies is told and replaced."""
    waiting = list(reversed(tasks))
    while waiting:
        running: dict[Future[SubmissionResult], Task] = {}
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(jobs, context, _prepare, (os.getpid(),))
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    task = waiting.pop()
                    running[pool.submit(_grade, task, seed, limits, walls)] = task
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    yield running.pop(future), result
        except BrokenProcessPool:
            suspects = list(running.values())
            if len(suspects) == 1:
                yield suspects[0], _broken(suspects[0])
            else:  # one of them did it: each alone, to find out which
                for suspect in suspects:
                    yield from _in_parallel([suspect], 1, seed, limits, walls)
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()  # and bubblewrap ends what they had started
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _grade(task: Task, seed: int | None, limits: Limits, walls: bool) -> SubmissionResult:
    return core.grade_file(
        task.student,
        task.chapter,
        task.file,
        seed=core.fresh_seed() if seed is None else seed,
        limits=limits,
        walls=walls,
    )


def _broken(task: Task) -> SubmissionResult:
    exercises = [
        ExerciseResult(e.id, None, e.points, GRADER_ERROR) for e in course.manifest(task.chapter)
    ]
    note = "the grading process itself died; grade this one again by itself"
    return SubmissionResult(task.student, task.chapter, GRADER_ERROR, exercises, note)


def _prepare(parent: int) -> None:
    """In each grading process: leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
