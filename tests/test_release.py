"""The student's bundle: complete enough to work with, and silent about every solution."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder import course, release
from autograder.generate import student_notebook

CHAPTER = course.chapters()[0]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released zip, unpacked somewhere else, as a student has it."""
    folder = tmp_path_factory.mktemp("student")
    with zipfile.ZipFile(release.release(folder / "made")) as archive:
        archive.extractall(folder)
    return folder / release.FOLDER


def python(bundle: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=bundle, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_holds_notebooks_checks_and_recordings(bundle: Path) -> None:
    assert {f"{c}.ipynb" for c in course.chapters()} <= {f.name for f in bundle.iterdir()}
    assert (bundle / "autograder" / "recorded" / f"{CHAPTER}.zip").is_file()
    assert "numpy==" in (bundle / "requirements.txt").read_text()
    assert not list(release.leaks(bundle))


def test_no_solution_no_misconception_and_no_hidden_check_is_inside(bundle: Path) -> None:
    files = [f.relative_to(bundle) for f in bundle.rglob("*") if f.is_file()]
    assert not [f for f in files if {"solutions", "misconceptions"} & set(f.parts)]
    text = "".join(
        (bundle / f).read_text("utf-8", errors="replace") for f in files if f.suffix != ".zip"
    )
    assert release.hidden_names(CHAPTER)
    assert not [name for name in release.hidden_names(CHAPTER) if re.search(rf"\b{name}\b", text)]
    assert not [line for line in release.solution_lines(CHAPTER) if line in text]


def test_recordings_stay_small(bundle: Path) -> None:
    """A check with large arrays is recorded once for each known mistake: they add up."""
    sizes = {f.stem: f.stat().st_size for f in (bundle / "autograder" / "recorded").iterdir()}
    assert max(sizes.values()) < 8 << 20, sizes


@pytest.mark.parametrize("secret", ["a line of a solution", "a hidden check"])
def test_the_leak_test_finds_what_it_looks_for(bundle: Path, tmp_path: Path, secret: str) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    line = sorted(release.solution_lines(CHAPTER))[0]
    planted = line if secret == "a line of a solution" else sorted(release.hidden_names(CHAPTER))[0]
    planted = planted if planted == line else f"check_{planted}"
    notebook = tmp_path / "copy" / f"{CHAPTER}.ipynb"
    content = json.loads(notebook.read_text())
    content["cells"][0]["source"] += "\n" + planted
    notebook.write_text(json.dumps(content))
    assert any(secret in place for place in release.leaks(tmp_path / "copy"))


def test_a_leak_stops_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "leaks", lambda _: iter(["here"]))
    with pytest.raises(release.Leak, match="here"):
        release.release(tmp_path / "out")
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.zip").exists()


def test_a_folder_that_is_no_bundle_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(course.CourseError, match="is no bundle"):
        release.release(tmp_path)
    assert (tmp_path / "precious").exists()


def test_the_same_course_makes_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    first = next(bundle.parent.glob("*.zip"))
    contents = [zipfile.ZipFile(z) for z in (first, release.release(tmp_path / "again"))]
    for name in contents[0].namelist():
        if not name.endswith("README.md"):  # it names the zip
            assert contents[0].read(name) == contents[1].read(name), name


@pytest.mark.parametrize("chapter", course.chapters())
def test_in_the_bundle_right_answers_pass_and_known_mistakes_are_named(
    bundle: Path, chapter: str
) -> None:
    """Three misconceptions of each exercise are handed to the bundle's own `check`."""
    script = f"""
import sys
sys.path.insert(0, {str(bundle)!r})
from autograder import course, local
assert not course.has_solutions()
sys.path.append({str(course.ROOT)!r})
import importlib.util
def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
autograder_full = __import__("autograder")
folder = {str(course.ROOT / "autograder" / "misconceptions")!r}
autograder_full.__path__.append({str(course.ROOT / "autograder")!r})
known = __import__("autograder.misconceptions.{chapter}", fromlist=["x"]).MISCONCEPTIONS
course.has_solutions = lambda: False
missed = []
for exercise in course.manifest({chapter!r}):
    import importlib
    reference = importlib.import_module(f"solutions.{{exercise.room}}.{chapter}")
    needed = {{name: getattr(reference, name) for name in exercise.needs}}
    local._beside = lambda answer, exercise: needed
    result = local.examine(getattr(reference, exercise.name), exercise)
    assert result.status == "passed", (exercise.id, [c.message for c in result.checks])
    for wrong in known[exercise.name][:3]:  # how they are recognised is tested on all elsewhere
        result = local.examine(wrong.wrong, exercise)
        if result.status == "passed":
            continue  # only a hidden check catches it
        named = result.misconception and result.misconception["id"]
        if named != wrong.id:
            missed.append((wrong.id, named))
assert not missed, missed
print("all named")
"""
    done = python(bundle, "-c", script)
    assert done.returncode == 0 and "all named" in done.stdout, done.stderr


def test_the_command_line_of_the_bundle_offers_what_a_student_needs(bundle: Path) -> None:
    done = python(bundle, "-m", "autograder", "--help")
    assert "check" in done.stdout and "sample-class" not in done.stdout
    done = python(bundle, "-m", "autograder", "check", f"{CHAPTER}.ipynb", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(course.manifest(CHAPTER)), done.stderr
    assert all(f["points"] == 0 for f in found) and done.returncode == 1
    done = python(bundle, "-m", "autograder", "check", f"{CHAPTER}.ipynb", "--all")
    assert done.returncode == 2 and "only an instructor has" in done.stderr


def test_the_notebook_of_the_bundle_is_the_released_one(bundle: Path) -> None:
    released = nbformat.read(bundle / f"{CHAPTER}.ipynb", as_version=4)
    assert [c.source for c in released.cells] == [c.source for c in student_notebook(CHAPTER).cells]
