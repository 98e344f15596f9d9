"""Writes files to a folder, or to a zip where the name ends in .zip.

A zip of the same grades is the same zip, and either is there whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from .. import course

DATE = (2017, 6, 12, 0, 0, 0)  # one date for every file
MARK = ".exported"  # in a folder that may be replaced


def pack(out: Path, files: dict[str, bytes]) -> None:
    """Write {name: content}. Raises CourseError where `out` is somebody else's."""
    for name in files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(f"{name} leads out of {out}")
    part = out.with_name(f".{out.name}.{os.getpid()}")
    if out.suffix == ".zip":
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name, DATE), content, zipfile.ZIP_DEFLATED)
        os.replace(part, out)
        return
    if out.exists() and not (out / MARK).exists() and not (out.is_dir() and not any(out.iterdir())):
        raise course.CourseError(f"{out} exists and was not exported before: name another folder")
    shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
    for name, content in (files | {MARK: b""}).items():
        file = part / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
