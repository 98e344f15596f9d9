"""nbgrader's own collecting, `zip_collect` and `collect`, in folders that hold nothing dangerous.

Its rules for file names and for the exchange are kept; what it would follow or unpack without a
look (links, archives in archives, names that are dates and are not) is taken out before it runs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from . import course, handed_in
from .notebooks import Malformed, read_bytes

Refuse = Callable[[str, str], None]
MOST_FILES, MOST_BYTES = 1000, 200 << 20  # that a submission may consist of
INBOUND = r"(?P<student>.+?)\+(?P<chapter>[^+]+)\+(?P<time>[^+]+)(?:\+[^+]+)?"


def zip_collect(root: Path, chapter: str, kind: str) -> Path:
    """Run `nbgrader zip_collect CHAPTER` in `root`; returns its folder of submissions.

    What is to be collected lies in `root/downloaded/CHAPTER/archive/`, each file in a numbered
    folder of its own, so that two equal names do not meet.
    """
    from nbgrader.apps import ZipCollectApp
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.plugins import FileNameCollectorPlugin
    from traitlets.config import Config

    class Collector(FileNameCollectorPlugin):
        """The person as `handed_in` names folders, the file as the chapter's notebook."""

        def collect(self, submitted_file: str) -> dict[str, str] | None:
            found = super().collect(submitted_file)
            return found and {"student_id": handed_in.person(found)[1], "file_id": chapter}

    extracted = root / "downloaded" / chapter / "extracted"
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = chapter
    pattern = rf"{re.escape(str(extracted))}/\d+/{handed_in.PATTERNS[kind]}\Z"
    config.FileNameCollectorPlugin.named_regexp = pattern
    config.ExtractorPlugin.zip_ext = []
    app = ZipCollectApp(config=config, collector_plugin=Collector, log_level=50)
    app.coursedir = CourseDirectory(parent=app)
    try:
        app.init_plugins()
        app.extract_archive_files()
        app.process_extracted_files()
    except SystemExit:
        raise course.CourseError(f"nbgrader's zip_collect stopped on chapter {chapter}") from None
    return root / "submitted"


def exchange(
    source: Path, root: Path, chapters: Sequence[str], refuse: Refuse, note: Callable[[str], None]
) -> Path:
    """Run `nbgrader collect --update` for each chapter over a clean copy of the exchange."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(course.ROOT)).load_config()
    inbound = source / str(config.CourseDirectory.course_id) / "inbound"
    if not inbound.is_dir():
        raise course.CourseError(
            f"there is no folder {inbound}: SOURCE should be the root of the exchange, "
            f"which holds {config.CourseDirectory.course_id}/inbound"
        )
    clean = root / "exchange" / str(config.CourseDirectory.course_id) / "inbound"
    clean.mkdir(parents=True)
    present = _clean_copy(inbound, clean, chapters, refuse, note)
    config.Exchange.root = str(root / "exchange")
    config.ExchangeCollect.check_owner = False  # of a copy, all of it is ours; told from the source
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
    api = NbGraderAPI(config=config)
    for chapter in present:
        done: dict[str, Any] = api.collect(chapter, update=True)
        if not done["success"]:
            reason = str(done.get("error") or done.get("log") or "").strip().split("\n")[-1]
            raise course.CourseError(f"nbgrader's collect stopped on chapter {chapter}: {reason}")
    return root / "submitted"


def _clean_copy(
    inbound: Path, clean: Path, chapters: Sequence[str], refuse: Refuse, note: Callable[[str], None]
) -> list[str]:
    """Copy what can be collected; returns the chapters that occur."""
    present = set()
    for folder in sorted(inbound.iterdir()):
        found = re.fullmatch(INBOUND, folder.name)
        if found and chapters and found["chapter"] in course.chapters():
            if found["chapter"] not in chapters:
                continue  # not asked for
        elif not found or found["chapter"] not in course.chapters():
            refuse(folder.name, "its name is not STUDENT+CHAPTER+TIME with a chapter of the course")
            continue
        student = handed_in.folder_name(found["student"])
        if folder.is_symlink() or not folder.is_dir():
            refuse(folder.name, "it is no folder of its own")
        elif not student or not _is_time(found["time"]):
            refuse(folder.name, "its name does not tell a student and a time")
        else:
            if (owner := _owner(folder)) not in (None, found["student"]):
                note(f"{folder.name} names {found['student']} and belongs to the account {owner}")
            renamed = folder.name.replace(found["student"], student, 1)
            _copy(folder, clean / renamed, refuse)
            present.add(found["chapter"])
    return [c for c in course.chapters() if c in present]


def _copy(folder: Path, target: Path, refuse: Refuse) -> None:
    target.mkdir()
    files_left, bytes_left = MOST_FILES, MOST_BYTES
    for place, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f != ".ipynb_checkpoints"]
        for name in [*folders, *files]:
            path = Path(place, name)
            inside = path.relative_to(folder)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                (target / inside).mkdir(exist_ok=True)
                continue
            try:
                content = read_bytes(path)
                files_left, bytes_left = files_left - 1, bytes_left - len(content)
                if files_left < 0 or bytes_left < 0:
                    raise Malformed("there is too much beside the notebook")
                (target / inside).write_bytes(content)
            except (Malformed, OSError) as error:
                refuse(f"{folder.name}/{inside.as_posix()}", str(error))


def _is_time(text: str) -> bool:
    from nbgrader.utils import parse_utc

    try:
        return isinstance(parse_utc(text), datetime)
    except (ValueError, OverflowError):
        return False


def _owner(folder: Path) -> str | None:
    try:
        return folder.owner()
    except (KeyError, OSError, NotImplementedError):
        return None
