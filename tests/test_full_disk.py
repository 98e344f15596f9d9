"""A disk that is full is told as such, by a real one."""

import os
import subprocess
from pathlib import Path

import pytest

from autograder import course, sandbox
from tests import tiny

STUDENTS = 6


@pytest.mark.sandbox
@pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}")
def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    for number in range(STUDENTS):
        tiny.hand_in(tmp_path / "submitted", f"student-{number}", "no notebook")
    (tmp_path / "grades").mkdir()
    small = ["--size", str(16 << 10), "--tmpfs", str(tmp_path / "grades")]
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *small, *tiny.command(tmp_path, "--without-sandbox")],
        capture_output=True, text=True, cwd=course.ROOT, env=os.environ, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "No space left on device" in done.stderr and "same command again" in done.stderr
    assert "Traceback" not in done.stderr

    done = tiny.grade(tmp_path, "--without-sandbox")  # with room
    assert done.returncode == 0, done.stderr
    assert len(tiny.table(tmp_path / "grades")) == STUDENTS
