"""The seed of a submission, from a secret of the course and from what was handed in.

Nobody without the secret can prepare for a seed, and whoever has it gets the same one again: by
nbgrader's own commands, on another machine, after an interruption. A new attempt has a new seed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import sys
from pathlib import Path

from . import course

VARIABLE = "COURSE_SECRET_FILE"
SHORTEST = 16  # bytes; a shorter secret can be guessed from a few recorded seeds
LONGEST = 4096
SEED_BYTES = 6  # a seed stays a whole number in every reader of JSON


def of(student: str, chapter: str, content: bytes, key: bytes | None = None) -> int:
    """The seed of an attempt: HMAC-SHA256(secret, student, chapter, SHA-256 of `content`).

    `content` is the file as it was handed in, byte for byte. `key` is what `secret` returns, and is
    read where none is given. Keep both away from students' processes.
    """
    attempt = hashlib.sha256(content).hexdigest()
    message = json.dumps([student, chapter, attempt]).encode()
    digest = hmac.digest(secret() if key is None else key, message, "sha256")
    return int.from_bytes(digest[:SEED_BYTES], "big")


def default_file() -> Path:
    """The file that COURSE_SECRET_FILE names, or `class/secret` of the course."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else course.ROOT / "class" / "secret"


def secret(file: Path | None = None) -> bytes:
    """The course's secret; it is made on first use. Raises CourseError when it is none."""
    file = default_file() if file is None else file
    try:
        if not file.exists():
            _make(file)
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            found = opened.read(LONGEST + 1).strip()
    except OSError as error:
        raise course.CourseError(
            f"the course's secret cannot be read from {file} ({error.strerror}): name a file with "
            f"--secret or {VARIABLE}"
        ) from None
    if not SHORTEST <= len(found) <= LONGEST:
        size = f"{len(found)} bytes" if len(found) <= LONGEST else f"more than {LONGEST} bytes"
        raise course.CourseError(
            f"the course's secret must have {SHORTEST} to {LONGEST} bytes, but {file} holds "
            f"{size}: remove the file, and a new secret is made, or bring back the old one"
        )
    if os.name == "posix" and mode & 0o077:
        print(
            f"warning: others on this machine can read the course's secret: chmod 600 {file}",
            file=sys.stderr,
        )
    return found


def _make(file: Path) -> None:
    """Write a new secret, whole or not at all; of two that try at once, one wins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w") as opened:
            opened.write(secrets.token_hex(32) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(part, file)
    finally:
        part.unlink()
