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
    "is-a-forged-row": "eve,,,,15.0,0.0,15.0,15.0",
    "is-a-formula-behind-a-semicolon": "a;=1+1",
    "is-a-formula-in-full-width": "\uff1d1+1",
    "joins-its-letters": "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
    "grows-when-it-is-written": b"\xff" * 70,
    "is-a-byte": b"\xfc",
    "is-that-byte-as-it-is-written": "\\xfc",
    "is-hidden": ".dot",
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


def links_without_an_end(folder: Path) -> None:
    """Links that cannot be followed, in the student's folder and beside it."""
    file = folder.parent / "a-file"
    file.write_text("x")
    for place in (folder, folder.parent, folder.parent.parent):
        (place / "loop").symlink_to("loop")
        (place / "through-a-file").symlink_to(file / "x")
        (place / "far-too-long").symlink_to("a" * 300)
    (folder / "is-it-there").symlink_to(Path(os.environ["HOSTILE_CANARY"]))


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
    Attack("endless-links", "hands in links that lead nowhere, and no notebook",
           make=links_without_an_end, honest=0.0, status="missing"),
]  # fmt: skip
