"""A recorded grade comes out again to the last digit, or the replay says what differs."""

import json
from pathlib import Path

import pytest

from autograder import cli, core, course, identity, outputs, replay, sandbox, walls
from autograder.sandbox import Limits
from tests.tiny import CHAPTER, answers, hand_in, notebook

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`submitted/é b` was graded, and `record.json` is what was written of it."""
    made = tmp_path_factory.mktemp("replay")
    text = notebook(answers(course.ROOMS[0]), "import time\ntime.sleep(0)", "1 / 0")
    file = hand_in(made / "submitted", "é b", text)
    limits = Limits(cell_seconds=7)
    result = core.grade_bytes("é b", CHAPTER, file.read_bytes(), seed=11, limits=limits, walls=True)
    assert result.status == "graded" and 0 < (result.score or 0) < result.max_score
    result.file = f"%C3%A9 b/{CHAPTER}/{CHAPTER}.ipynb"
    outputs.write_submission(made, result)
    (written,) = made.glob("students/*/*/results.json")
    written.rename(made / "record.json")
    return made


@pytest.fixture(autouse=True)
def walls_are_tried_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "check", lambda: iter(()))


def replayed(
    record: Path, submitted: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    code = cli.main(["grade", "--replay", str(record), str(submitted)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def changed(folder: Path, tmp_path: Path, *places: tuple[tuple[str | int, ...], object]) -> Path:
    """The record with other values at these places below `extra_data`."""
    record = json.loads((folder / "record.json").read_text("utf-8"))
    for place, value in places:
        node = record["extra_data"]
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = value
    (tmp_path / "record.json").write_text(json.dumps(record))
    return tmp_path / "record.json"


def test_a_replay_of_an_unchanged_submission_is_identical(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = replayed(folder / "record.json", folder / "submitted", capsys)
    assert code == 0, out + err
    assert out.splitlines()[-1] == "identical" and "seed 11" in out


def test_a_replay_tells_each_digit_that_differs_and_what_else_is_different(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = course.manifest(CHAPTER)[0]
    record = changed(
        folder,
        tmp_path,
        (("exercises", 0, "points"), 0.5),
        (("exercises", 0, "checks", 0, "message"), "off by 1e-07"),
        (("environment", "numpy"), "1.0"),
        (("environment", "course"), "0" * 64),
    )
    code, out, _ = replayed(record, folder / "submitted", capsys)
    assert code == 1 and "identical" not in out
    assert f"{first.id} points: 0.5 → " in out and "'off by 1e-07' → " in out
    assert f"graded with another numpy 1.0 → {identity.versions()['numpy']}" in out
    assert "graded with another course 000000000000 → " in out


def test_a_replay_notices_a_changed_submission(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(tmp_path / "submitted", "é b", notebook("x = 1"))
    code, out, err = replayed(folder / "record.json", tmp_path / "submitted", capsys)
    assert code == 2 and "is not what was graded" in err and not out


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("file",), "../../etc/passwd", "below the folder of submissions"),
        (("file",), "", "below the folder of submissions"),
        (("file",), "nobody/x.ipynb", "cannot be read"),
        (("environment", "limits"), {"moons": 3}, "limits are not those of today"),
        (("environment",), {}, "nothing that was run"),
        (("seed",), "7", "must be a results.json"),
        (("chapter",), "nowhere", "there is no chapter"),
    ],
)
def test_a_record_that_cannot_be_replayed_is_refused(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: tuple[str, ...],
    value: object,
    words: str,
) -> None:
    record = changed(folder, tmp_path, (place, value))
    code, _, err = replayed(record, folder / "submitted", capsys)
    assert code == 2 and words in err and "Traceback" not in err


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[" * 100_000)
    for name in ("a", "b"):
        with pytest.raises(course.CourseError):
            replay.load(tmp_path / name)
