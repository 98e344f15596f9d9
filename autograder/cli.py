"""The command line: one parser, one module of `commands/` for each command.

A student's bundle carries only the commands that a student needs; what is not there is not offered.
"""

from __future__ import annotations

import argparse
import ast
import errno
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from . import commands
from .course import CourseError
from .sandbox import SandboxMissing

# Errors of disks and rights, which are no faults of ours.
OF_THE_MACHINE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EIO", "EMFILE", "ENFILE")
    if hasattr(errno, name)
}
NAMES = (
    "doctor",
    "check",
    "generate",
    "release",
    "sample-class",
    "collect",
    "grade",
    "report",
    "export",
    "selftest",
)


def parser(asked: str) -> argparse.ArgumentParser:
    """The parser of every command that is installed, with the options of the one that is asked.

    Others are not even imported: nbgrader alone takes longer than most commands.
    """
    top = argparse.ArgumentParser(
        prog="python -m autograder",
        description="Check, generate, release and grade the course's exercises.",
        epilog="Each command has its own help: python -m autograder check --help",
    )
    listed = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in NAMES:
        module_name = f"{commands.__name__}.{name.replace('-', '_')}"
        found = importlib.util.find_spec(module_name)
        if found is None or found.origin is None:
            continue
        text = Path(found.origin).read_text("utf-8")
        first, rest = str(ast.get_docstring(ast.parse(text))).split("\n", 1)
        command = listed.add_parser(
            name,
            help=first,
            description=first,
            epilog=rest.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == asked:
            module = importlib.import_module(module_name)
            module.arguments(command)
            command.set_defaults(run=module.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parser(words[0] if words else "").parse_args(words)
    try:
        return int(options.run(options))
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in OF_THE_MACHINE:
            raise
        place = f" ({error.filename})" if error.filename else ""
        print(
            f"error: {error.strerror}{place}. What was finished is kept: mend this and run the "
            "same command again",
            file=sys.stderr,
        )
        return 2
    except SandboxMissing as error:
        print(f"error: no sandbox, so no grading. {error}", file=sys.stderr)
        print(
            "To run the students' code without walls all the same: --without-sandbox "
            "(it can then read, change and send everything that you can).",
            file=sys.stderr,
        )
        return 3
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return 130
