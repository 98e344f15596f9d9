"""The inside of a line of MyST: roles, links, mathematics, and code that stays as it is.

Cross-references become links only where the target is a heading of the same notebook: that is the
one kind of place that JupyterLab, VS Code and Colab all can jump to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .course import CourseError
from .myst import MystError
from .references import Book, Target, find

TOKEN = re.compile(
    r"""
      (?P<escaped> \\[\\`{}\[\]$*_] )
    | \{(?P<role> [A-Za-z][\w:+.-]*)\}(?P<ticks> `+)(?P<content> .+?)(?<!`)(?P=ticks)(?!`)
    | (?P<code> (?P<mark> `+)(?!`).+?(?<!`)(?P=mark)(?!`) )
    | (?P<math> \$\$[^$]+\$\$ | \$(?!\s)(?:[^$\\]|\\.)+?(?<!\s)\$(?!\d) )
    | (?P<image> !\[[^\]]*\]\([^)]*\) )
    | \[(?P<words> (?:[^\[\]`]|`[^`]*`)*)\]\(<?(?P<url> [^)>\s]*)>?\)
    | (?P<refused> \[\^[^\]]+\] | \{\{.*?\}\} | ^[ ]*:{3,}.*$ | \{[A-Za-z][\w:+.-]*\}`
        | ^[ ]*\([^\s()]+\)=[ ]*$ )
    """,
    re.X | re.S | re.M,
)
NAMED = re.compile(r"^(?P<words>.+?)\s*<(?P<target>[^<>]+)>$", re.S)
ROLES = ("cite", "cite:p", "cite:t", "doc", "download", "eq", "numref", "ref", "term")
SAFE = re.compile(r"^[\w.~!$&'*+,;=:@/-]+$", re.A)


@dataclass
class Inline:
    """Converts pieces of text that begin at a line of a file."""

    page: str
    file: str
    line: int
    book: Book
    linked: set[str]

    def convert(self, text: str) -> str:
        """The text as plain Markdown. Paragraphs are taken apart first: no role spans two."""
        pieces = re.split(r"(\n[ \t]*\n)", text)
        for at, piece in enumerate(pieces):
            start = sum(p.count("\n") for p in pieces[:at])
            pieces[at] = TOKEN.sub(self._token(piece, start), piece)
        return "".join(pieces)

    def _token(self, piece: str, start: int) -> Callable[[re.Match[str]], str]:
        def write(match: re.Match[str]) -> str:
            line = self.line + start + piece.count("\n", 0, match.start())
            if match["role"]:
                content = " ".join(match["content"].split())
                return self._role(match["role"], content, line)
            if match["math"]:  # on one line, for the sake of block quotes
                return re.sub(r"\n[ >]*", " ", match["math"])
            if match["url"] is not None:
                return self._link(match["words"], match["url"], line)
            if match["refused"]:
                raise MystError(
                    self.file,
                    line,
                    f"{match[0].strip()!r} has no plain form",
                    "write it in words, or as one of the roles " + ", ".join(ROLES),
                )
            return match[0]

        return write

    def _role(self, role: str, content: str, line: int) -> str:
        if role not in ROLES:
            raise MystError(
                self.file,
                line,
                f"the role {{{role}}} in {{{role}}}`{content}` has no plain form",
                "use one of: " + ", ".join(ROLES),
            )
        named = NAMED.match(content)
        words, target = (named["words"], named["target"]) if named else ("", content)
        try:
            if role.startswith("cite"):
                return self._cite(content, in_text=role == "cite:t")
            if role in ("term", "download"):
                return words or target.rsplit("/", 1)[-1]
            if role == "doc":
                return words or self._title(target)
            place = find(self.book, target)
            if role == "eq":
                return f"({self._number(target, place, 'equation')})"
            if role == "numref":
                number = self._number(target, place, "figure")
                return words.replace("{number}", number).replace("%s", number) or f"Fig. {number}"
            return self._reference(words, place, target)
        except CourseError as error:
            problem, _, cure = str(error).partition("; ")
            raise MystError(self.file, line, f"{{{role}}}`{content}`: {problem}", cure) from None

    def _link(self, words: str, url: str, line: int) -> str:
        if re.match(r"[a-z]+:", url):
            return f"[{self.convert(words)}]({url})"
        try:
            if url.startswith("#"):
                return self._reference(words, find(self.book, url[1:]), url[1:])
            page, _, label = url.partition("#")
            if label:
                return words or find(self.book, label).text
            return words or self._title(page)
        except CourseError as error:
            problem, _, cure = str(error).partition("; ")
            raise MystError(self.file, line, f"the link to {url!r}: {problem}", cure) from None

    def _reference(self, words: str, place: Target, label: str) -> str:
        words = words or place.text
        if not words:
            raise CourseError(
                f"the label {label!r} stands at no heading and has no words of its own; "
                f"write the words: {{ref}}`these words <{label}>`"
            )
        if place.page != self.page:
            return words + self._chapter(place.page, words)
        if not place.heading:
            return words
        self.linked.add(place.heading)
        return f"[{words}](#{anchor(place.heading)})"

    def _chapter(self, page: str, words: str) -> str:
        """The chapter that words lead to in the book, unless they name it themselves."""
        title = self.book.titles.get(page, "").partition(":")[0]
        return f" (→ *{title}*)" if title and title.lower() not in words.lower() else ""

    def _number(self, label: str, place: Target, kind: str) -> str:
        if place.kind != kind:
            raise CourseError(f"the label {label!r} is no {kind}; refer to it by {{ref}}")
        return str(place.number)

    def _title(self, page: str) -> str:
        stem = page.rsplit("/", 1)[-1].removesuffix(".md")
        if stem not in self.book.titles:
            raise CourseError(f"there is no page {page!r}; name a page of book/ without .md")
        return self.book.titles[stem]

    def _cite(self, keys: str, in_text: bool) -> str:
        cited = []
        for key in re.split(r"\s*,\s*", keys):
            source = self.book.sources.get(key)
            if source is None:
                raise CourseError(
                    f"book/references.bib has no entry {key!r}; add it, or correct the key"
                )
            year = f"({source.year})" if in_text else source.year
            text = f"{source.authors} {year}" if in_text else f"{source.authors}, {year}"
            cited.append(f"[{text}]({source.url})" if source.url else text)
        return ", ".join(cited) if in_text else "(" + "; ".join(cited) + ")"


def plain(text: str) -> str:
    """What a reader sees of a line of Markdown.

    >>> plain("Exercise 3: *turn* `every` pair")
    'Exercise 3: turn every pair'
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parseInline(text)[0].children or []
    return "".join(token.content for token in tokens if token.type in ("text", "code_inline"))


def anchor(heading: str) -> str:
    """The name by which a heading is found from everywhere in a notebook.

    JupyterLab names headings itself, spaces replaced by hyphens; VS Code and Colab find an
    `<a id>` before the heading. So both get the same name, or, where a heading holds signs that a
    link cannot, one without these.

    >>> anchor("Exercise 3: turn `every` pair")
    'Exercise-3:-turn-every-pair'
    """
    name = plain(heading).replace(" ", "-")
    return name if SAFE.match(name) else re.sub(r"[^\w.-]+", "-", name, flags=re.A).strip("-")


def as_html(text: str) -> str:
    """A title inside `<summary>`, where no Markdown is read.

    >>> as_html("Hint 1: *use* `np.cos`")
    'Hint 1: <em>use</em> <code>np.cos</code>'
    """
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark").renderInline(text))
