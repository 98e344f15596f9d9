"""Puts the answers into a chapter's cells: a solution in each stub, and a grade cell behind it.

Points and names come from the manifest, never from the chapter; a chapter and a manifest that do
not agree make no notebook.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from .course import CourseError
from .exercise import Exercise
from .reference_code import Module, needed
from .stubs import exercise_names, solution_cell


def with_answers(
    cells: list[NotebookNode], exercises: tuple[Exercise, ...], chapter: Path, root: Path
) -> list[NotebookNode]:
    """The cells with a solution in each stub, and a grade cell after the words that follow it."""
    by_name = {exercise.name: exercise for exercise in exercises}
    rooms = list(dict.fromkeys(exercise.room for exercise in exercises))
    file = f"{chapter.stem}.py"
    modules = {room: Module(root / "solutions" / room / file, root) for room in rooms}
    stubs = _stubs(cells, by_name, chapter.name)
    code = {at: cell for at, cell in enumerate(cells) if cell.cell_type == "code"}
    given = {room: {e.name for e in exercises if e.room == room} for room in rooms}
    own = {room: _own(modules[room], given[room]) for room in rooms}
    narrative = _defined(cell for at, cell in code.items() if at not in stubs)
    done: list[NotebookNode] = []
    for at, cell in enumerate(cells):
        done.append(cell)
        if at not in stubs:
            continue
        exercise = by_name[stubs[at]]
        mine = modules[exercise.room]
        before = rooms[: rooms.index(exercise.room)]  # these keep their names, later ones yield
        others = {name for room in before for name in own[room]}
        cell.source = solution_cell(
            cell.source,
            exercise.name,
            mine,
            given=given[exercise.room],
            taken={*by_name, *narrative, *others},
        )
        cell.metadata["nbgrader"] = _role(f"answer-{exercise.name}", solution=True)
        following = cells[at + 1] if at + 1 < len(cells) else new_markdown_cell()
        words, following.source = _call(following.source, exercise.name)
        if words:
            done.append(new_markdown_cell(words))
        done.append(_grade_cell(exercise))
    return done


def _stubs(cells: list[NotebookNode], by_name: dict[str, Exercise], file: str) -> dict[int, str]:
    """The exercise of each stub's cell; every exercise must have exactly one."""
    found: dict[int, str] = {}
    for at, cell in enumerate(cells):
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        names = [name for name in exercise_names(cell.source) if name in by_name]
        if len(names) != 1:
            raise CourseError(
                f"book/{file}, line {cell.metadata['line']}: a cell tagged `exercise` must define "
                f"one exercise of the chapter, but this defines {exercise_names(cell.source)}; "
                f"the chapter's exercises are: {', '.join(by_name)}"
            )
        found[at] = names[0]
    counts = Counter(found.values())
    for name in by_name:
        if counts[name] != 1:
            raise CourseError(
                f"book/{file}: exercise {name!r} has {counts[name]} stubs; "
                "give it exactly one cell with the tag `exercise`"
            )
    return found


def _own(module: Module, given: set[str]) -> set[str]:
    """The names of a room in the notebook: its module's, and of what its answers take along."""
    names = set(module.definitions)
    for name in given & names:
        names |= {helper for _, helper in needed(module, name, given=given, taken=()).helpers}
    return names


def _defined(cells: Iterable[NotebookNode]) -> set[str]:
    """The names that the cells of the story define."""
    names: set[str] = set()
    for cell in cells:
        tree = ast.parse(cell.source)
        names |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        names |= {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
    return names


def _call(text: str, name: str) -> tuple[str, str]:
    """The paragraph that asks for `check(name)`, if the text begins with it, and the rest."""
    first, _, rest = text.partition("\n\n")
    return (first, rest) if re.search(rf"`check\({re.escape(name)}\)`", first) else ("", text)


def _grade_cell(exercise: Exercise) -> NotebookNode:
    source = f"from autograder import check\n\ncheck({exercise.name})"
    role = _role(exercise.name, grade=True, points=exercise.points)
    return new_code_cell(source, metadata={"nbgrader": role})


def _role(
    grade_id: str, *, grade: bool = False, solution: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "schema_version": 3,
        "grade": grade,
        "solution": solution,
        "locked": grade,
        "task": False,
        "grade_id": grade_id,
        **more,
    }
