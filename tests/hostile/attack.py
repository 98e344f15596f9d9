"""What an attack is, and the notebook that it is put into.

The notebook holds two right answers and the other exercises as they were released, so that one
number tells both ways: a grade above it was stolen, and a grade below it hurts an honest answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autograder import course
from autograder.generate import source_notebook, student_notebook

CHAPTER = course.chapters()[0]
RIGHT = ("binary_positions", "causal_mask")  # small answers, a point each
TORCH = tuple(e.name for e in course.manifest(CHAPTER) if e.room == "with_torch")
HONEST = float(sum(e.points for e in course.manifest(CHAPTER) if e.name in RIGHT))

# Cells tell the test by an exception that a wall did not stand. The word is not in their source,
# which comes back in nbgrader's feedback.
BREACH = "BREACH"
TELL = """\
def breach(what):
    raise RuntimeError("BRE" + "ACH: " + str(what))
"""


@dataclass(frozen=True)
class Attack:
    """One hostile submission.

    `honest` is the most that it may earn and `least` what its right answers must keep; `status` is
    what the grader says, alternatives split by a bar. `cells` stand after the answers, `before`
    ahead of them. `edit` changes the notebook, `make` writes other files into its folder, `content`
    is written in the place of the notebook. `not_in_nbgrader` says why its tree cannot hold it.
    """

    name: str
    tries: str
    cells: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    right: tuple[str, ...] = RIGHT
    honest: float = HONEST
    least: float | None = None
    status: str = "graded"
    edit: Callable[[dict[str, Any]], None] | None = None
    content: bytes | None = None
    make: Callable[[Path], None] | None = None
    student: str | bytes = ""
    not_in_nbgrader: str = ""

    @property
    def keeps(self) -> float:
        return self.honest if self.least is None else self.least

    @property
    def statuses(self) -> list[str]:
        return self.status.split("|")


def attack(name: str, tries: str, *cells: str, **more: Any) -> Attack:
    """An attack by cells that stand after the answers."""
    return Attack(name, tries, cells=cells, **more)


def unreadable(name: str, tries: str, content: bytes | None = None, **more: Any) -> Attack:
    """An attack by a file that is no notebook."""
    return Attack(name, tries, content=content, **{"honest": 0.0, "status": "malformed", **more})


@cache
def _answer_cells() -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """The released notebook as text without its story, and the answer cells with solutions."""
    released = student_notebook(CHAPTER)
    released.cells = [c for c in released.cells if c.metadata.get("nbgrader")]
    solved = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in source_notebook(CHAPTER).cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    return json.dumps(released), solved


def notebook(
    right: tuple[str, ...], before: tuple[str, ...] = (), after: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The released notebook with these exercises solved, and cells ahead and behind."""
    text, solved = _answer_cells()
    made: dict[str, Any] = json.loads(text)
    for cell in made["cells"]:
        number = cell["metadata"]["nbgrader"]["grade_id"]
        name = number.removeprefix("answer-")
        if number != name and name in right:
            cell["source"] = solved[number]
        elif number != name and name in TORCH:  # its stub imports torch, which takes a second
            cell["source"] = f"def {name}(*tensors, **more):\n    raise NotImplementedError"
    cells = made["cells"]
    made["cells"] = [
        *(code(f"before-{i}", source) for i, source in enumerate(before)),
        *cells,
        *(code(f"after-{i}", source) for i, source in enumerate(after)),
    ]
    return made


def code(name: str, source: str) -> dict[str, Any]:
    """A code cell as nbformat 4.5 writes it."""
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": source,
    }


def write(attack: Attack, submitted: Path, known: dict[str, str]) -> None:
    """Hand an attack in. `known` are the words that its cells may use, such as `@COURSE@`."""
    folder = bytes_or_text(submitted, attack.student or attack.name) / CHAPTER
    folder.mkdir(parents=True)
    file = folder / f"{CHAPTER}.ipynb"
    if attack.content is not None:
        file.write_bytes(attack.content)
    elif attack.make is None or attack.cells or attack.edit:
        cells = [tuple(filled(c, known) for c in cells) for cells in (attack.before, attack.cells)]
        made = notebook(attack.right, (TELL, *cells[0]), cells[1])
        if attack.edit is not None:
            attack.edit(made)
        file.write_text(json.dumps(made), "utf-8")
    if attack.make is not None:
        attack.make(folder)


def filled(text: str, known: dict[str, str]) -> str:
    for word, value in known.items():
        text = text.replace(word, value)
    return text


def bytes_or_text(folder: Path, name: str | bytes) -> Path:
    import os

    return folder / (os.fsdecode(name) if isinstance(name, bytes) else name)
