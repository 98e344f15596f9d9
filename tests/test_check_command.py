"""`check(...)` and `python -m autograder check`: the same findings, in every form."""

import json
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest

from autograder import check, course, report
from autograder.local import examine, show
from autograder.results import CheckResult, ExerciseResult
from solutions.with_numpy.rope import apply_rope, rope_angles

RIGHT = sorted((course.ROOT / "tests" / "right_answers" / "rope").glob("*.py"))


def command(*arguments: str, cwd: Path = course.ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "autograder", "check", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def notebook(file: Path, *cells: str) -> Path:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbformat.write(made, file)
    return file


def test_check_prints_what_passed_and_that_there_is_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check(apply_rope)
    shown = capsys.readouterr().out
    assert "rope.apply_rope:" in shown and "✓" in shown and "✗" not in shown
    assert "public checks, not the whole grade" in shown


def test_check_names_index_values_error_and_misconception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def apply_rope(x, positions, base=10000.0, layout="interleaved"):  # type: ignore[no-untyped-def]
        return apply_rope_right(x, -np.asarray(positions), base, layout)

    apply_rope_right = globals()["apply_rope"]
    check(apply_rope)
    shown = capsys.readouterr().out
    words = "✗", "First at index (0,", "yours is", "expected", "largest error", "→", "Read again"
    for part in (*words, "The call: apply_rope("):
        assert part in shown, part


def test_check_is_quick_once_it_is_imported() -> None:
    examine(rope_angles, course.find_exercise("rope_angles"))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        examine(apply_rope, course.find_exercise("apply_rope"))
        times.append(time.perf_counter() - started)
    assert min(times) < 0.3  # the least disturbed of five: other tests share the machine


def test_check_refuses_what_is_no_answer() -> None:
    first = next(iter(course.exercises().values())).name
    with pytest.raises(ValueError, match=rf"as in check\({first}\), but received an object"):
        check(3)
    with pytest.raises(ValueError, match="did you mean 'apply_rope'"):
        check(lambda x: x, "aply_rope")


def test_an_answer_may_have_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    check(lambda *a, **k: apply_rope(*a, **k), "rope.apply_rope")
    assert "✗" not in capsys.readouterr().out


def test_html_and_text_lose_nothing_and_escape_what_students_wrote() -> None:
    rows = [
        CheckResult("a", "It works.", 1, False, True),
        CheckResult("b", "It fails.", 1, True, False, "raised <b>\x1b[31mE</b> & \u202ex"),
    ]
    advice = {"id": "m", "message": "You did <this>.", "section": "Here & there"}
    result = ExerciseResult("c.d", 1.0, 2, "partly", rows, advice)
    html, text = report.html_block(result, public=False), report.text(result, public=False)
    for words in ("It works.", "It fails.", "hidden check", "1 of 2 points"):
        assert words in html and words in text
    assert "<b>E" not in html and "&lt;b&gt;E&lt;/b&gt; &amp; x" in html
    assert "\x1b" not in text + html and "\u202e" not in text + html
    assert "You did &lt;this&gt;." in html and "Here &amp; there" in html


def test_outside_a_notebook_the_report_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    show(examine(rope_angles, course.find_exercise("rope_angles")))
    assert "<" not in capsys.readouterr().out


@pytest.mark.sandbox
def test_a_right_file_passes_with_exit_code_0() -> None:
    done = command(str(RIGHT[0]), "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗" not in done.stdout and "hidden check" in done.stdout


@pytest.mark.sandbox
def test_json_has_one_object_per_exercise_and_nothing_else(tmp_path: Path) -> None:
    noisy = "import numpy as np\nprint('noise')\ndef rotate_2d(vector, angle):\n    return vector\n"
    done = command(str(notebook(tmp_path / "mine.ipynb", noisy, "1 / 0")), "--json")
    (found,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert found["id"] == "rope.rotate_2d" and found["max_points"] == 1
    assert found["status"] in ("failed", "partly") and found["points"] < 1
    assert {"name", "passed", "message"} <= set(found["checks"][0])
    assert "misconception" in found and "Code cell 2, `1 / 0`: ZeroDivisionError" in done.stderr


@pytest.mark.sandbox
def test_a_file_named_after_its_chapter_is_held_against_all_of_it(tmp_path: Path) -> None:
    done = command(str(notebook(tmp_path / "rope.ipynb", "x = 1")), "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f["id"] for f in found] == [e.id for e in course.manifest("rope")]
    assert {f["status"] for f in found} == {"missing"} and done.returncode == 1


@pytest.mark.sandbox
def test_one_exercise_can_be_asked_for(tmp_path: Path) -> None:
    file = notebook(tmp_path / "rope.ipynb", "def rope_angles(positions, dim):\n    return 0")
    done = command(str(file), "--exercise", "rope_angles")
    assert "rope.rope_angles" in done.stdout and "apply_rope" not in done.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        ("not json", "its content is not JSON"),
        ('{"worksheets": []}', "has no list of cells"),
        ('{"cells": [], "nbformat": 4}', "defines no exercise"),
    ],
)
def test_bad_files_are_told_with_exit_code_2(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "mine.ipynb"
    if content is not None:
        file.write_text(content)
    done = command(str(file))
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_without_walls_a_file_can_still_be_checked() -> None:
    done = command(str(RIGHT[0]), "--without-sandbox", "--exercise", "rope_angles")
    assert done.returncode == 0, done.stderr


def test_all_needs_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder import cli, sandbox

    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is missing")
    assert cli.main(["check", str(RIGHT[0]), "--all"]) == 3
