"""Look at this machine: versions, notebook kernel, device, sandbox, and what to do about each.

Reads the installed packages and requirements.txt; writes nothing.

examples:
  python -m autograder doctor
  python -m autograder doctor --problems

exit codes: 0 everything needed is here, 1 something is missing.
"""

from __future__ import annotations

import argparse

from ..doctor import BAD, NOTE, OK, findings

MARKS = {OK: "✓", NOTE: "–", BAD: "✗"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--problems", action="store_true", help="list what needs attention only")


def run(options: argparse.Namespace) -> int:
    missing = 0
    for finding in findings():
        missing += finding.state == BAD
        if options.problems and finding.state == OK:
            continue
        print(f"{MARKS[finding.state]} {finding.what.ljust(15)}  {finding.found}")
        if finding.cure:
            print(f"  {' ' * 15}  → {finding.cure}")
    print("everything needed is here" if not missing else f"{missing} missing: see the arrows")
    return 1 if missing else 0
