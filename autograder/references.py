"""What the pages of the book refer to: labels, numbers of equations and figures, titles, sources.

A notebook has no cross-references of its own, so every one becomes the words or the number that the
reader of the book sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .course import CourseError
from .myst import Block, MystError, children, parse

ADMONITIONS = {
    "note": "Note",
    "tip": "Tip",
    "hint": "Hint",
    "warning": "Warning",
    "important": "Important",
    "seealso": "See also",
}
CONTAINERS = {*ADMONITIONS, "admonition", "dropdown", "glossary", "figure"}


@dataclass(frozen=True)
class Target:
    """A place with a label. `heading` is the heading it stands at or below, if any."""

    page: str
    kind: str
    text: str = ""
    number: int = 0
    heading: str = ""


@dataclass(frozen=True)
class Source:
    """One entry of the bibliography, as it is cited."""

    authors: str
    year: str
    url: str


@dataclass
class Book:
    """Everything the pages can point to."""

    targets: dict[str, Target] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)


def read_book(folder: Path, pages: list[str]) -> Book:
    """The targets of all pages of a folder, given in the order of the table of contents.

    Equations and captioned figures are counted through all pages, as Sphinx does where chapters
    have no numbers.
    """
    book = Book(sources=read_sources(folder / "references.bib"))
    counts = {"equation": 0, "figure": 0}
    for page in pages:
        path = folder / f"{page}.md"
        if path.is_file():
            blocks = parse(path.read_text(encoding="utf-8"), f"{folder.name}/{page}.md")
            _read_page(book, page, blocks, counts)
    return book


def pages_in_order(toc: Path) -> list[str]:
    """The pages of `book/` that a table of contents lists."""
    listed = re.findall(r"^\s*-?\s*(?:file|root):\s*book/(\S+)", toc.read_text("utf-8"), re.M)
    return [name.removesuffix(".md") for name in listed]


def read_sources(path: Path) -> dict[str, Source]:
    """The bibliography by key; without a file there is none."""
    if not path.is_file():
        return {}
    from pybtex.database import parse_file  # type: ignore[import-untyped]

    found = {}
    for key, entry in parse_file(str(path), bib_format="bibtex").entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = ["".join(str(part) for part in person.rich_last_names) for person in people]
        authors = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        fields = entry.fields
        if "url" in fields:
            url = fields["url"]
        elif "doi" in fields:
            url = "https://doi.org/" + fields["doi"]
        elif "eprint" in fields:
            url = "https://arxiv.org/abs/" + fields["eprint"]
        else:
            url = ""
        found[key] = Source(authors, fields.get("year", "no year"), url)
    return found


def _read_page(book: Book, page: str, blocks: list[Block], counts: dict[str, int]) -> None:
    waiting: list[str] = []
    heading = ""
    for block in _flat(blocks, page):
        target = None
        if block.kind == "heading":
            heading = block.text
            book.titles.setdefault(page, heading)
            target = Target(page, "heading", heading, heading=heading)
        elif block.kind == "label":
            waiting.append(block.name)
            continue
        elif block.kind == "math" or block.name == "math":
            label = block.name if block.kind == "math" else block.options.get("label", "")
            if label:
                counts["equation"] += 1
                _add(book, label, Target(page, "equation", number=counts["equation"]), block)
        elif block.name == "figure" and block.text.strip():
            counts["figure"] += 1
            target = Target(page, "figure", block.text.strip(), counts["figure"], heading)
        elif block.kind == "text" and not block.text.strip():
            continue
        if target is None:
            target = Target(page, "place", block.argument, heading=heading)
        named = [block.options["name"]] if "name" in block.options else []
        for label in (*waiting, *named):
            _add(book, label, target, block)
        waiting = []


def _add(book: Book, label: str, target: Target, block: Block) -> None:
    if label in book.targets:
        raise MystError(
            f"{target.page}.md", block.line, f"the label {label!r} exists already", "rename it"
        )
    book.targets[label] = target


def _flat(blocks: list[Block], page: str) -> Iterator[Block]:
    for block in blocks:
        yield block
        if block.kind == "directive" and block.name in CONTAINERS - {"figure"}:
            yield from _flat(children(block, page), page)


def find(book: Book, label: str) -> Target:
    """The place of a label."""
    if label not in book.targets:
        raise CourseError(f"no page defines the label {label!r}; write ({label})= before its place")
    return book.targets[label]
