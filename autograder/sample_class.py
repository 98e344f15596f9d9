"""A class of sample submissions, one of each kind that a grader meets.

They are made from the chapter's own notebook, so that they fit every chapter: the solutions give
the right answer, the misconceptions the wrong ones.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell

from . import course
from .generate import generate, student_notebook

LOOP = "while True:  # a scratch cell that somebody forgot\n    pass"
BOMB = """\
blocks = []
while True:
    blocks.append(bytearray(64 << 20))"""
CRASH = "import os\nos._exit(1)"
SPY = """\
import glob, os, socket
found = [p for depth in range(6) for p in glob.glob("/*" * depth + "/solutions/*/*.py")]
try:
    socket.create_connection(("127.0.0.1", 80), 2)
    found.append("network")
except OSError as error:
    print(error)
assert found, "nothing to be found here"
from solutions.with_numpy import *"""


def write(chapter: str, out: Path, *, odd: bool = True) -> list[str]:
    """Write `out/<student>/<chapter>/<chapter>.ipynb` for each sample; returns the students.

    `odd` asks for those too that hang, crash, spy or are no notebook.
    """
    solved = nbformat.read(generate(chapter, out.parent / "source"), as_version=4)
    stub = student_notebook(chapter)
    mistakes = two_mistakes(chapter)
    samples: dict[str, Callable[[], str | None]] = {
        "right-answer": lambda: nbformat.writes(solved),
        "untouched-stub": lambda: nbformat.writes(stub),
        "mistake-one": lambda: nbformat.writes(_with(solved, [mistakes[0][1]])),
        "mistake-two": lambda: nbformat.writes(_with(solved, [mistakes[1][1]])),
    }
    strange: dict[str, Callable[[], str | None]] = {
        "infinite-loop": lambda: nbformat.writes(_with(solved, [LOOP])),
        "memory-bomb": lambda: nbformat.writes(_with(stub, [BOMB])),
        "crash": lambda: nbformat.writes(_with(stub, [CRASH])),
        "not-json": lambda: "{ this is no notebook",
        "missing": lambda: None,
        "spy": lambda: nbformat.writes(_with(stub, [SPY])),
    }
    if odd:
        samples |= strange
    for student, make in samples.items():
        folder = out / student / chapter
        folder.mkdir(parents=True, exist_ok=True)
        content = make()
        if content is not None:
            (folder / f"{chapter}.ipynb").write_text(content, "utf-8")
    return list(samples)


def _with(notebook: Any, sources: list[str]) -> Any:
    """A copy of the notebook with more code cells at its end."""
    made = copy.deepcopy(notebook)
    made.cells += [new_code_cell(source) for source in sources]
    return made


def two_mistakes(chapter: str) -> list[tuple[str, str]]:
    """(id, code of a cell) for two misconceptions that cost points, of different exercises."""
    found = []
    for exercise in reversed([e for e in course.manifest(chapter) if e.points]):
        cells = ((w.id, _as_cell(exercise.name, w.wrong)) for w in course.misconceptions(exercise))
        found += [(name, cell) for name, cell in cells if cell][:1]
    if len(found) < 2:
        raise course.CourseError(f"{chapter} needs misconceptions that are plain functions")
    return found[:2]


def _as_cell(name: str, wrong: Any) -> str | None:
    """A misconception as a cell that replaces an answer; None when it cannot stand by itself.

    What it takes from the reference, it then takes from the answers that the notebook has.
    """
    lines, bodies, todo = ["from __future__ import annotations", ""], [], [wrong]
    known: set[str] = set()
    while todo:
        function = todo.pop()
        if not inspect.isfunction(function) or function.__closure__:
            return None
        body = textwrap.dedent(inspect.getsource(function))
        if "solutions." in body:  # which a student has not
            return None
        bodies.append(body)
        for used in _names(function.__code__) - known:
            value = function.__globals__.get(used, known)
            if inspect.ismodule(value):
                if value.__name__.startswith("solutions."):
                    lines.append(f"{used} = __import__('types').SimpleNamespace(**globals())")
                else:
                    lines.append(f"import {value.__name__} as {used}")
            elif inspect.isfunction(value) and value.__module__ == wrong.__module__:
                todo.append(value)
            elif value is not known:
                return None
            known.add(used)
    return "\n".join([*lines, "", *reversed(bodies), f"{name} = {wrong.__name__}"])


def _names(code: CodeType) -> set[str]:
    """The names that code uses, in the functions inside it too."""
    inner = [_names(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)
