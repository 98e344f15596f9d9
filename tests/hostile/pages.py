"""What a page, a table or a terminal would do with a text, beyond showing it."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
HOSTILE = re.compile(r"alert\(|hostile", re.I)


class _Live(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.tags: set[str] = set()
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.add(tag)
        for name, value in attrs:
            runs = name.startswith("on") or name in ("href", "src", "srcdoc", "action", "style")
            if runs and HOSTILE.search(value or ""):
                self.found.append(f"<{tag} {name}={value!r}>")

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style") and HOSTILE.search(data):
            self.found.append(f"<{self._open}>{data[:80]}")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def live(page: str) -> list[str]:
    """Scripts and handlers of an attack's that a browser would run."""
    parser = _Live()
    parser.feed(page)
    return parser.found


def tags(page: str) -> set[str]:
    parser = _Live()
    parser.feed(page)
    return parser.tags


def commands(text: str) -> list[str]:
    """Characters that move a cursor, turn the writing, or cannot be seen."""
    kept = set("\n\t")
    return sorted({repr(c) for c in text if c not in kept and _acts(c)})


def _acts(character: str) -> bool:
    joins = character in "\u200c\u200d"  # letters of a Persian name, parts of an emoji
    return not joins and unicodedata.category(character) in ("Cc", "Cf", "Cs")


def formulas(table: str) -> list[str]:
    """Cells that a spreadsheet computes, also one that splits at semicolons or tabs."""
    rows = [
        r for sign in ",;\t" for r in csv.reader(io.StringIO(table, newline=""), delimiter=sign)
    ]
    return [cell for row in rows for cell in row if cell[:1] in FORMULA]
