"""Hostile submissions beside honest ones, through both doors: none gains, none hurts another.

Each door runs once, over the whole corpus in `tests/hostile`; the tests look at what came out.
"""

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autograder import course, outputs, sandbox, submissions
from autograder.sample_class import two_mistakes
from tests.hostile import ATTACKS, Attack, pages
from tests.hostile.attack import CHAPTER, HONEST, RIGHT, attack, write
from tests.hostile.cheating import remembered
from tests.hostile.world import PATIENCE, World, adopting

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.long,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
]
WALL, MARGIN = 30, 20  # seconds for a submission; for a warm sandbox to start and its last to end
CELL, CALL, MEMORY, SEED = 1.5, 1.0, 768, 7
NUMPY = tuple(e.name for e in course.manifest(CHAPTER) if e.room == "with_numpy")
FULL = float(sum(e.points for e in course.manifest(CHAPTER) if e.name in NUMPY))
PAGE = set("html head meta title style body h1 p b code table tr td span div br pre".split())
MATES = (
    Attack("a-honest", "answers all right that needs no torch", right=NUMPY, honest=FULL),
    attack("j-honest", "makes a known mistake", two_mistakes(CHAPTER)[1][1], right=NUMPY),
    attack("z-honest", "answers half, and prints", "print('hello')"),
)
# A cell that finds something can tell it, or else silence would prove nothing.
CONTROL = attack(
    "control", "tells that it found something", "breach('nothing, this is the control')"
)
TOLD = "BREACH: nothing, this is the control"


@dataclass
class Doors:
    """What the two doors left behind."""

    world: World
    ours: dict[str, dict[str, Any]] = field(default_factory=dict)
    alone: dict[str, dict[str, Any]] = field(default_factory=dict)
    nbgrader: dict[str, float] = field(default_factory=dict)
    said: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    world = World(tmp_path_factory.mktemp("hostile"))
    found = Doors(world)
    with pytest.MonkeyPatch.context() as patched, world.listening(), adopting() as left:
        patched.setenv("HOSTILE_CANARY", str(world.course / "canary.txt"))
        known = {**world.known(), "@REMEMBERED@": remembered()}
        ours, alone, theirs = (world.course / n for n in ("ours", "alone", "class"))
        for one in (*MATES, CONTROL, *ATTACKS):
            write(one, ours / "submitted", known)
            if not one.not_in_nbgrader:
                write(one, theirs / "submitted", known)
        for mate in MATES:
            write(mate, alone / "submitted", known)
        found.before = world.digest()
        processes = [(d.name, world.start(*grade(d))) for d in (alone, ours)]
        for step in nbgrader_steps():
            name = f"nbgrader {step[3]}" if step[2] == "nbgrader" else step[3]
            out, err = (process := world.start(*step)).communicate(timeout=PATIENCE)
            found.said[name] = process.returncode, out, err
        for name, process in processes:
            out, err = process.communicate(timeout=PATIENCE)
            found.said[name] = process.returncode, out, err
        found.after = world.digest()
        found.left = left
        found.ours, found.alone = records(ours), records(alone)
        found.nbgrader = exported(theirs / "export.csv")
    yield found


def grade(folder: Path) -> list[object]:
    return [
        sys.executable, "-m", "autograder", "grade", folder / "submitted",
        "--out", folder / "grades", "--gradebook", f"sqlite:///{folder}/gradebook.db",
        "--chapter", CHAPTER, "--jobs", 2, "--seed", SEED,
        "--cell-seconds", CELL, "--call-seconds", CALL, "--wall-seconds", WALL, "--memory", MEMORY,
    ]  # fmt: skip


def nbgrader_steps() -> list[list[str]]:
    limits = {"cell_seconds": CELL, "call_seconds": CALL, "wall_seconds": float(WALL)}
    limits["memory_bytes"] = MEMORY << 20
    start = [sys.executable, "-m"]
    return [
        [*start, "autograder", "generate", CHAPTER],
        [*start, "nbgrader", "generate_assignment", CHAPTER],
        [*start, "nbgrader", "autograde", CHAPTER, f"--GradeInSandbox.limits={limits}",
         f"--GradeInSandbox.seed={SEED}"],
        [*start, "nbgrader", "generate_feedback", CHAPTER],
        [*start, "nbgrader", "export"],
    ]  # fmt: skip


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """The record of each submission, by student."""
    found = {}
    for file in (folder / "grades" / "students").glob("*/*/results.json"):
        record = json.loads(file.read_text("utf-8"))
        found[record["extra_data"]["student"]] = record
    return found


def exported(file: Path) -> dict[str, float]:
    with file.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        return {row["student_id"]: float(row["score"] or 0) for row in csv.DictReader(lines)}


def folder(one: Attack) -> str:
    name = one.student or one.name
    return name if isinstance(name, str) else os.fsdecode(name)


FOLDERS = [folder(a) for a in ATTACKS]
READABLE = dict(zip(FOLDERS, submissions._readable(FOLDERS), strict=True))


def student(one: Attack) -> str:
    """Its name as a record tells it: what is no text, by its bytes."""
    return READABLE[folder(one)]


IN_NBGRADER = [a for a in ATTACKS if not a.not_in_nbgrader]
each = pytest.mark.parametrize("one", ATTACKS, ids=lambda a: a.name)
each_in_nbgrader = pytest.mark.parametrize("one", IN_NBGRADER, ids=lambda a: a.name)


def test_the_corpus_is_large_and_says_what_each_attack_tries() -> None:
    names = [one.name for one in ATTACKS]
    assert len(names) >= 70 and len(set(names)) == len(names)
    assert all(len(one.tries) > 10 for one in ATTACKS)
    assert set(RIGHT) < set(NUMPY) and 0 < HONEST < FULL


@each
def test_our_door_gives_what_is_honestly_right_and_says_how_it_ended(
    doors: Doors, one: Attack
) -> None:
    record = doors.ours[student(one)]
    about = record["extra_data"]
    assert about["status"] in one.statuses, about["note"]
    assert one.keeps <= record["score"] <= one.honest, about["note"]
    assert about["seconds"] <= WALL + MARGIN


@each_in_nbgrader
def test_nbgraders_door_gives_what_is_honestly_right(doors: Doors, one: Attack) -> None:
    cell = outputs._cell(student(one))
    score = doors.nbgrader.get(cell, 0.0)  # a file that is refused may have no row
    assert math.isfinite(score)
    assert one.keeps <= score <= one.honest


@pytest.mark.parametrize("one", MATES, ids=lambda a: a.name)
def test_an_honest_mate_gets_what_it_gets_alone(doors: Doors, one: Attack) -> None:
    among, alone = doors.ours[one.name], doors.alone[one.name]
    assert among["extra_data"]["status"] == "graded"
    assert among["tests"] == alone["tests"] and among["score"] == alone["score"]
    assert among["extra_data"]["exercises"] == alone["extra_data"]["exercises"]
    assert doors.nbgrader[one.name] == alone["score"]
    if one is MATES[0]:
        assert alone["score"] == FULL


@pytest.mark.parametrize(
    "command",
    ["ours", "alone", "nbgrader autograde", "nbgrader generate_feedback", "nbgrader export"],
)
def test_no_command_fails(doors: Doors, command: str) -> None:
    code, out, err = doors.said[command]
    assert code == 0, (out + err)[-3000:]
    assert "Traceback" not in err, err[-3000:]


def test_nothing_outside_a_scratch_directory_changed(doors: Doors) -> None:
    assert doors.before == doors.after
    assert not doors.world.mark.exists(), doors.world.mark.read_text()


def test_no_process_is_left(doors: Doors) -> None:
    assert doors.left == []


def test_a_process_that_is_left_would_be_seen() -> None:
    with adopting() as left:
        subprocess.run(["sh", "-c", "sleep 100 &"], start_new_session=True, check=True)
    assert [" ".join(line.split()[2:]) for line in left] == ["sleep 100"]


def test_nobody_came_over_the_network(doors: Doors) -> None:
    assert doors.world.received == []


def test_nbgraders_table_has_rows_of_students_alone(doors: Doors) -> None:
    names = [*READABLE.values(), *(one.name for one in (*MATES, CONTROL))]
    assert set(doors.nbgrader) <= {outputs._cell(name) for name in names}
    assert len(doors.nbgrader) > len(IN_NBGRADER) - 20  # the names and links that are refused


def written(world: World) -> Iterator[tuple[Path, str]]:
    """Every file that a door wrote, and what it holds; submissions and copies of them are not."""
    for folder in ("ours/grades", "class/autograded", "class/feedback"):
        for file in (world.course / folder).rglob("*"):
            if file.is_file() and not file.is_symlink():
                yield file, file.read_text("utf-8", errors="replace")
    yield world.course / "class/export.csv", (world.course / "class/export.csv").read_text("utf-8")


def test_no_secret_and_no_breach_is_in_any_output(doors: Doors) -> None:
    told = [(command, out + err) for command, (_, out, err) in doors.said.items()]
    told += [(str(file), text) for file, text in written(doors.world)]
    secrets = {where for where, text in told if doors.world.secret in text}
    assert not secrets
    breaches = {}
    for name, record in doors.ours.items():
        text = json.dumps(record)
        if "BREACH" in text and name != CONTROL.name:
            breaches[name] = text[text.index("BREACH") :][:200]
    assert breaches == {}
    assert TOLD in doors.ours[CONTROL.name]["extra_data"]["note"]
    page = doors.world.course / "class/feedback" / CONTROL.name / CHAPTER / f"{CHAPTER}.html"
    assert TOLD in page.read_text("utf-8")


def test_no_page_runs_anything_of_a_students(doors: Doors) -> None:
    ours, theirs = 0, 0
    for file, text in written(doors.world):
        if file.suffix == ".html":
            assert pages.live(text) == [], file
            if "ours" in file.parts:
                ours += 1
                assert pages.tags(text) <= PAGE, file
            else:
                theirs += 1
    assert ours >= len(ATTACKS) and theirs >= len(MATES)


def test_no_output_obeys_a_terminal_or_a_spreadsheet(doors: Doors) -> None:
    assert pages.commands(doors.said["ours"][1] + doors.said["ours"][2]) == []
    for file, text in written(doors.world):
        if "ours" in file.parts:
            if file.suffix in (".html", ".txt", ".csv"):
                assert pages.commands(text) == [], file
            if file.name == "grades.csv" and file.parent.name == "grades":
                assert pages.formulas(text) == []
        elif file.name == "export.csv":
            assert pages.commands(text) == [] and pages.formulas(text) == []
    for record in doors.ours.values():
        shown = [record["output"], *(test["output"] for test in record["tests"])]
        assert pages.commands("".join(shown)) == []


def test_the_tests_would_see_what_they_look_for(tmp_path: Path) -> None:
    assert pages.live("<p onclick=\"alert('hostile')\">") and pages.live(
        "<script>alert(1)</script>"
    )
    assert not pages.live("&lt;script&gt;alert(1)&lt;/script&gt;")
    assert pages.commands("\x1b[2J") and pages.commands("\u202e") and not pages.commands("é\n")
    assert pages.formulas('a,"=1+1"\n') and not pages.formulas("a,'=1+1\n")
