"""Attacks by the names of students and files: they become paths, cells of tables, and markup."""

from __future__ import annotations

import os
from pathlib import Path

from .attack import CHAPTER, Attack, unreadable

NAMES: dict[str, str | bytes] = {
    "starts-with-a-dash": "-rf",
    "is-a-formula": '=HYPERLINK("http:x","y")',
    "is-another-formula": "@SUM(1+1)*cmd|' C'!A0",
    "is-markup": "<img src=x onerror=alert('hostile')>",
    "moves-the-cursor": "\x1b[2J\x1b]0;hostile\x07",
    "turns-the-writing": "\u202egnp.exe",
    "has-new-lines": "new\nline\r\nand,\ttab",
    "has-quotes": "\"'`;--,",
    "is-a-command": "$(touch hostile)`touch hostile`",
    "is-no-text": b"\xff\xfe\x80",
    "is-very-long": "x" * 250,
    "is-a-table": "grades.csv",
    "is-another-table": "table.txt",
    "is-a-format": "{0.__class__}%s%n",
    "is-a-space": " ",
    "is-a-tilde": "~root",
    "is-a-pattern": "[a-z]*?",
    "has-a-back-slash": "..\\..\\x",
    "is-a-comment": "#",
    "is-a-question": "?x=1&y=2",
}


def other_names(folder: Path) -> None:
    """Files of odd names beside the notebook that was not handed in."""
    for name in (
        b"-rf",
        b"\xff",
        b"\x1b[2J",
        b"<img src=x onerror=alert(1)>",
        b"=1+1",
        b"new\nline",
    ):
        (folder / os.fsdecode(name)).write_text("x")
    (folder / f"{CHAPTER}.IPYNB").write_text("{}")
    (folder / f"{CHAPTER} (1).ipynb").write_text("{}")


PATTERN = "nbgrader looks for a student's folder by taking the name as a pattern"
ATTACKS: list[Attack] = [
    *(unreadable(f"name-{what}", f"is a student whose name {what.replace('-', ' ')}",
                 b"{ this is no notebook", student=name,
                 not_in_nbgrader=PATTERN if what == "is-a-pattern" else "")
      for what, name in NAMES.items()),
    Attack("name-in-a-page", "is a student whose name is markup, on a page of feedback",
           student="<b onclick=alert(1)>&amp;x", least=0.0),
    Attack("other-names", "hands in files of odd names, and no notebook", make=other_names,
           honest=0.0, status="missing"),
]  # fmt: skip
