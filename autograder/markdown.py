"""Turns MyST Markdown into plain Markdown for JupyterLab, VS Code and Colab.

The book is the only source; a student's notebook shows the same text without extensions. What has
no plain form is refused with file, line and cure, so that nothing unreadable is ever released.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .inline import Inline, anchor, as_html
from .myst import Block, MystError, children, parse
from .references import ADMONITIONS, Book

DROPPED = ("solution", "bibliography", "tableofcontents", "contents")
MOVES = (
    "In the online book this figure moves: drag its parts, or use its sliders and the keyboard. "
    "The picture here stands still."
)
REFUSED = (
    (re.compile(r"^ *\\begin\{", re.M), "an environment outside $$", "write it between $$ and $$"),
    (re.compile(r"^ *: +\S", re.M), "a definition list", "write a list or a paragraph"),
    (re.compile(r"^ *(?:> *)+(?::{3}|`{3,}\{)", re.M), "a directive behind >", "use {admonition}"),
    (re.compile(r"^(?!\|).*\n(?:=+|-+) *$", re.M), "an underlined heading", "write # or ##"),
)


def to_markdown(cells: list[tuple[int, str]], page: str, book: Book) -> list[str]:
    """The Markdown cells of one notebook, given as (number of the first line, text).

    `page` is the page's stem, `book` what all pages define. Headings that another cell points to
    get an anchor, so two passes are needed: the first finds out which.
    """
    renderer = Renderer(page, book)
    for line, text in cells:
        renderer.cell(line, text)
    return [renderer.cell(line, text) for line, text in cells]


@dataclass
class Renderer:
    """Writes the blocks of one page; remembers which headings are pointed to."""

    page: str
    book: Book
    linked: set[str] = field(default_factory=set)

    @property
    def file(self) -> str:
        return f"book/{self.page}.md"

    def cell(self, line: int, text: str) -> str:
        return self.blocks(parse(text, self.file, line))

    def blocks(self, blocks: list[Block], quoted: bool = False) -> str:
        """Blocks one below the other. `quoted`: within a block quote.

        JupyterLab takes mathematics out before it reads `> `, so there it must stay on one line.
        """
        parts = []
        for block in blocks:
            text = getattr(self, f"_{block.kind}")(block, quoted)
            if text.strip():
                margin = " " * block.indent
                parts.append("\n".join(margin + row if row else row for row in text.split("\n")))
        return "\n\n".join(parts)

    def inline(self, text: str, line: int) -> str:
        """Roles, links and mathematics inside a line of text."""
        return Inline(self.page, self.file, line, self.book, self.linked).convert(text)

    def _text(self, block: Block, quoted: bool) -> str:
        for pattern, problem, cure in REFUSED:
            if found := pattern.search(block.text):
                line = block.line + block.text.count("\n", 0, found.end())
                raise MystError(self.file, line, f"{problem} cannot be shown", cure)
        text = self.inline(block.text, block.line)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n")

    def _code(self, block: Block, quoted: bool) -> str:
        return block.text

    def _label(self, block: Block, quoted: bool) -> str:
        return ""

    def _heading(self, block: Block, quoted: bool) -> str:
        text = "#" * block.level + " " + self.inline(block.text, block.line)
        if block.text not in self.linked:
            return text
        name = html.escape(anchor(block.text), quote=True)
        return f'<a id="{name}" name="{name}"></a>\n\n{text}'

    def _math(self, block: Block, quoted: bool, label: str | None = None) -> str:
        body = list(block.lines)
        if any("\\\\" in row for row in body) and "\\begin" not in block.text:
            body = ["\\begin{aligned}", *body, "\\end{aligned}"]
        if label := label or block.name:
            body.append(rf"\tag{{{self.book.targets[label].number}}}")
        if quoted or len(body) == 1:
            return " ".join(["$$", *body, "$$"])
        return "\n".join(["$$", *body, "$$"])

    def _directive(self, block: Block, quoted: bool) -> str:
        if block.name in DROPPED:
            return ""
        if block.name in ADMONITIONS or block.name == "admonition":
            return self._admonition(block)
        writers: dict[str, Callable[[Block, bool], str]] = {
            "dropdown": self._dropdown,
            "math": self._math_directive,
            "figure": self._figure,
            "glossary": self._glossary,
            "raw": self._raw,
        }
        if block.name not in writers:
            allowed = sorted([*writers, *DROPPED, *ADMONITIONS, "admonition"])
            raise MystError(
                self.file,
                block.line,
                f"the directive {{{block.name}}} has no plain form",
                "use one of: " + ", ".join(allowed),
            )
        return writers[block.name](block, quoted)

    def _admonition(self, block: Block) -> str:
        inside = self._inside(block, quoted=True)
        if block.name == "admonition":
            title = self.inline(block.argument, block.line)
        else:
            title = ADMONITIONS[block.name]
            if block.argument:  # `{note} text` is the note's first paragraph
                inside = f"{self.inline(block.argument, block.line)}\n\n{inside}".strip()
        return quote(f"**{title}**\n\n{inside}")

    def _dropdown(self, block: Block, quoted: bool) -> str:
        if "$" in block.argument:
            problem = "mathematics in a drop-down's title, where VS Code shows it as text"
            raise MystError(self.file, block.line, problem, "say it in words")
        title = self.inline(block.argument, block.line) or "More"
        opened = "<details open>" if "open" in block.options else "<details>"
        summary = f"<summary>{as_html(title)}</summary>"
        return f"{opened}\n{summary}\n\n{self._inside(block, quoted)}\n\n</details>"

    def _math_directive(self, block: Block, quoted: bool) -> str:
        rows = [block.argument, *block.lines] if block.argument else block.lines
        body = [row.strip() for row in rows if row.strip()]
        inner = Block("math", block.line, body)
        return self._math(inner, quoted, label=block.options.get("label"))

    def _figure(self, block: Block, quoted: bool) -> str:
        caption = self._inside(block, quoted)
        if re.match(r"https?://", block.argument):
            image = f"![{block.options.get('alt', '')}]({block.argument})"
            return f"{image}\n\n{caption}".strip()
        target = self.book.targets.get(block.options.get("name", ""))
        title = f"Fig. {target.number}" if target else "Figure"
        return quote(f"**{title}** (in the online book)\n\n{caption}") if caption else ""

    def _glossary(self, block: Block, quoted: bool) -> str:
        entries: list[str] = []
        for row in block.lines:
            if not row.strip():
                continue
            if row[0] != " ":
                entries.append(f"- **{row.strip()}**:")
            elif entries:
                entries[-1] += " " + row.strip()
        return self.inline("\n".join(entries), block.body_line)

    def _raw(self, block: Block, quoted: bool) -> str:
        return quote(MOVES) if "data-figure" in block.text else ""

    def _inside(self, block: Block, quoted: bool) -> str:
        return self.blocks(children(block, self.file), quoted)


def quote(text: str) -> str:
    """Text as a block quote."""
    return "\n".join(f"> {row}".rstrip() for row in text.split("\n"))
