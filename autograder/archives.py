"""Opens what a learning platform hands out, zip or folder, and lets nothing dangerous out of it.

Students choose the names and the contents of these files. Only notebooks are ever unpacked, each
read to a limit, and whatever is not let through is told with its reason.
"""

from __future__ import annotations

import os
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from .course import CourseError
from .notebooks import MAX_BYTES, Malformed, read_bytes

MAX_ENTRIES = 50_000
MAX_TOTAL = 4 << 30  # bytes of all notebooks together, unpacked
MAX_RATIO = 100  # unpacked to packed; deflate can reach 1032, text and pictures stay far below
SMALL = 1 << 20  # below this, no ratio is dangerous
MAX_NAME = 255  # bytes, what file systems take
MAX_DEPTH = 20
PACKED = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar")
TYPED = ("_text.html", "_link.html", "onlinetext.html")
SYSTEM = ("__MACOSX", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini")

Refuse = Callable[[str, str], None]  # (what was not taken, why)


@dataclass(frozen=True)
class Entry:
    """One file that was let through: its name with "/", its date, and how to read it."""

    name: str
    time: datetime | None
    read: Callable[[], bytes]

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.name)


def entries(source: Path, refuse: Refuse) -> Iterator[Entry]:
    """The notebooks in a zip or a folder, and nbgrader's `timestamp.txt` files beside them.

    Raises CourseError where the whole is not to be opened, when reading an entry Malformed.
    """
    if source.is_dir():
        yield from _in_folder(source, refuse)
    elif source.is_file():
        yield from _in_zip(source, refuse)
    else:
        raise CourseError(f"there is no {source}: it should be a zip or a folder")


def _in_zip(source: Path, refuse: Refuse) -> Iterator[Entry]:
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise CourseError(f"{source} is no zip that can be read: {error}") from None
    with archive:
        infos = archive.infolist()
        if len(infos) > MAX_ENTRIES:
            raise CourseError(
                f"{source} has {len(infos)} entries; at most {MAX_ENTRIES} are opened: split it"
            )
        notebooks = [i for i in infos if _name(i).lower().endswith(".ipynb")]
        total = sum(i.file_size for i in notebooks)
        if total > MAX_TOTAL:
            raise CourseError(
                f"{source} would unpack to {total >> 20} MiB of notebooks; at most "
                f"{MAX_TOTAL >> 20} MiB are opened: look at it, or split it"
            )
        if notebooks and all(i.flag_bits & 1 for i in notebooks):
            raise CourseError(f"{source} is encrypted: unpack it, and name the folder")
        for info in infos:
            name = _name(info)
            if info.is_dir() or _of_the_system(name):
                continue
            reason = unsafe(name) or unwanted(name) or _dangerous(info)
            if reason:
                refuse(name, reason)
            else:
                yield Entry(name, _date(info), lambda info=info: _unpacked(archive, info))  # type: ignore[misc]


def _in_folder(source: Path, refuse: Refuse) -> Iterator[Entry]:
    count = 0
    for folder, folders, files in os.walk(source):
        for name in list(folders):
            path = Path(folder, name)
            if path.is_symlink():
                refuse(path.relative_to(source).as_posix(), "it is a link; only files are taken")
        folders[:] = sorted(f for f in folders if not _of_the_system(f))
        for file in sorted(files):
            count += 1
            if count > MAX_ENTRIES:
                raise CourseError(f"{source} has more than {MAX_ENTRIES} files: name a smaller one")
            path = Path(folder, file)
            name = path.relative_to(source).as_posix()
            if _of_the_system(name):
                continue
            status = path.lstat()
            reason = unsafe(name) or unwanted(name)
            if not stat.S_ISREG(status.st_mode):
                what = "a link" if stat.S_ISLNK(status.st_mode) else "a pipe or a device"
                reason = f"it is {what}; only files are taken"
            if reason:
                refuse(name, reason)
            else:
                time = datetime.fromtimestamp(status.st_mtime, UTC).replace(tzinfo=None)
                yield Entry(name, time, lambda path=path: read_bytes(path))  # type: ignore[misc]


def unsafe(name: str) -> str | None:
    """Why a name must not become a path, or None."""
    parts = name.split("/")
    if name.startswith("/") or name[1:2] == ":":
        return "its name is an absolute path"
    if "\\" in name:
        return "its name has a backslash, which is a folder for some systems"
    if any(part in ("", ".", "..") for part in parts):
        return "its name leads out of the archive or nowhere"
    if any(unicodedata.category(c) == "Cc" for c in name):
        return "its name has control characters"
    if len(parts) > MAX_DEPTH or any(len(os.fsencode(_plain(p))) > MAX_NAME for p in parts):
        return "its name is longer than file systems take"
    return None


def unwanted(name: str) -> str | None:
    """Why a file of this kind is not taken, or None."""
    lower = name.lower()
    if lower.endswith(".ipynb") or lower.rsplit("/", 1)[-1] == "timestamp.txt":
        return None
    if lower.endswith(PACKED):
        return "an archive inside is not opened: ask for the notebook itself"
    if lower.endswith(TYPED):
        return "typed or linked in the platform, not a file: ask for the notebook"
    return "it is no notebook (.ipynb)"


def _dangerous(info: zipfile.ZipInfo) -> str | None:
    kind = info.external_attr >> 16
    if stat.S_IFMT(kind) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "it is a link or a device; only files are taken"
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.file_size > MAX_BYTES and _name(info).lower().endswith(".ipynb"):
        return f"it is larger than {MAX_BYTES >> 20} MiB: ask for it with its outputs cleared"
    if info.file_size > SMALL and info.file_size > MAX_RATIO * max(1, info.compress_size):
        return (
            f"it unpacks to more than {MAX_RATIO} times its size, as a zip bomb does: "
            "ask for it with its outputs cleared"
        )
    return None


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The content, never more than its header says; a header that lies is told."""
    try:
        with archive.open(info) as file:
            content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES or file.read(1):
                raise Malformed(f"it is larger than {MAX_BYTES >> 20} MiB")
            return content
    except Malformed:
        raise
    except Exception as error:  # zlib, lzma, struct and zipfile each have errors of their own
        raise Malformed(f"it cannot be unpacked: {error}") from None


def _name(info: zipfile.ZipInfo) -> str:
    """The name in UTF-8 also where the archive does not say that it is (Canvas does not)."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _date(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def _of_the_system(name: str) -> bool:
    parts = name.split("/")
    return any(p in SYSTEM or p.startswith("._") for p in parts)


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
