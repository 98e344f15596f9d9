"""Where the course keeps its things, read from `_toc.yml` alone.

The machinery knows no chapter by name: a chapter is a stem of the table of contents that has a
file of checks, and everything else about it is found in the same-named file of each room.
"""

from __future__ import annotations

import difflib
import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .exercise import Exercise, Misconception

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("with_numpy", "with_torch")
CHECKS = Path(__file__).resolve().parent / "checks"


class CourseError(Exception):
    """The request cannot be served; the message says what to do instead."""


@cache
def chapters() -> tuple[str, ...]:
    """Stems of the chapters with exercises, in the order of the book (or of the bundle)."""
    toc = ROOT / "_toc.yml"
    if not toc.exists():  # a student's bundle has no book
        return tuple(sorted(p.stem for p in CHECKS.glob("[!_]*.py")))
    line = r"^\s*-?\s*(?:file|root):\s*book/(\w+)\s*(?:#.*)?$"
    listed = re.findall(line, toc.read_text("utf-8"), re.M)
    return tuple(stem for stem in listed if (CHECKS / f"{stem}.py").exists())


@cache
def manifest(chapter: str) -> tuple[Exercise, ...]:
    """The exercises of a chapter in the order of the book; the only source of points."""
    if chapter not in chapters():
        raise CourseError(
            f"there is no chapter {chapter!r}; the chapters with exercises are: "
            + ", ".join(chapters())
        )
    return tuple(importlib.import_module(f"autograder.checks.{chapter}").EXERCISES)


def exercises() -> dict[str, Exercise]:
    """Every exercise of the course by id (`rope.apply_rope`)."""
    return {e.id: e for chapter in chapters() for e in manifest(chapter)}


def find_exercise(name: str) -> Exercise:
    """The exercise with this id or this bare name."""
    known = exercises()
    found = [e for e in known.values() if name in (e.id, e.name)]
    if len(found) == 1:
        return found[0]
    near = difflib.get_close_matches(name.split(".")[-1], [e.name for e in known.values()], n=1)
    cure = f"did you mean {near[0]!r}?" if near else "the names are: " + ", ".join(known)
    raise CourseError(f"there is no exercise {name!r}; {cure}")


def misconceptions(exercise: Exercise) -> tuple[Misconception, ...]:
    """The known wrong answers of an exercise, as code (a bundle has only their outputs)."""
    module = importlib.import_module(f"autograder.misconceptions.{exercise.chapter}")
    return tuple(module.MISCONCEPTIONS[exercise.name])


def section_title(chapter: str, label: str) -> str:
    """The heading that carries a label in the chapter's text."""
    text = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    found = re.search(rf"^\({re.escape(label)}\)=\n+#+ (.+)$", text, re.M)
    if not found:
        raise CourseError(f"book/{chapter}.md has no heading labelled ({label})=")
    return found[1].strip()


def has_solutions() -> bool:
    """Whether the reference is at hand: true for instructors, false in a student's bundle."""
    return (ROOT / "solutions").is_dir()


def reference(exercise: Exercise) -> ModuleType:
    """The module of `solutions/` that holds the reference answer of an exercise."""
    return importlib.import_module(f"solutions.{exercise.room}.{exercise.chapter}")


def beside_reference(exercise: Exercise, answer: Any) -> dict[str, Any]:
    """Names for a runner: this answer, and the reference's for what else the exercise needs."""
    needed = {name: getattr(reference(exercise), name) for name in exercise.needs}
    return {**needed, exercise.name: answer}
