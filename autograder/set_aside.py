"""Moves what was handed in out of the submissions, so that nothing is lost and nothing is copied.

What lies there already may be hostile as well: no link among it is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from .course import CourseError


def move(path: Path, submitted: Path, refused: Path) -> Path:
    """Put it under its name below `refused`, or under a numbered one; returns where it is."""
    *folders, last = path.relative_to(submitted).parts
    place = refused
    for name in folders:
        place = next(p for p in _named(place, name) if _is_own_folder(p) or not os.path.lexists(p))
        place.mkdir(parents=True, exist_ok=True)
    refused.mkdir(parents=True, exist_ok=True)
    target = next(p for p in _named(place, last) if not os.path.lexists(p))
    rename(path, target)
    return target


def _named(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    short = os.fsdecode(os.fsencode(name)[:200])
    yield from (folder / f"{short}.{number}" for number in count(2))


def _is_own_folder(path: Path) -> bool:
    """What was refused before may be a link, and is not followed."""
    return path.is_dir() and not path.is_symlink()


def rename(path: Path, target: Path) -> None:
    """Move it on the same file system. Raises CourseError where that is not possible."""
    try:
        try:
            os.replace(path, target)
        except PermissionError:  # it may have come with rights that forbid it
            for folder in (path.parent, path):
                if _is_own_folder(folder):
                    folder.chmod(folder.lstat().st_mode | stat.S_IRWXU)
            os.replace(path, target)
    except OSError as error:
        raise CourseError(
            f"{path} must not be where nbgrader would copy or follow it, but it cannot be moved to "
            f"{target}: {error.strerror}; move it out of the submissions, and start again"
        ) from error
