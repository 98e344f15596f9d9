"""What nbgrader must not see of a submission is moved away, and nothing is lost."""

import os
from pathlib import Path

from autograder.quarantine import sweep


def test_links_and_pipes_are_moved_and_files_stay(tmp_path: Path) -> None:
    submitted, refused = tmp_path / "submitted", tmp_path / "refused"
    (submitted / "ada" / "work").mkdir(parents=True)
    (submitted / "ada" / "work" / "work.ipynb").write_text("{}")
    (submitted / "ada" / "work" / "stolen.txt").symlink_to("/etc/passwd")
    (submitted / "eve").symlink_to(submitted / "ada")
    os.mkfifo(submitted / "ada" / "pipe")
    moved = sweep(submitted, refused)
    assert len(moved) == 3 and all("moved to" in line for line in moved)
    assert (refused / "ada" / "work" / "stolen.txt").is_symlink() and (refused / "eve").is_symlink()
    left = [p.name for p in submitted.rglob("*") if not p.is_dir()]
    assert left == ["work.ipynb"] and sweep(submitted, refused) == []
