"""Reads MyST Markdown into blocks: text, headings, code, mathematics, labels and directives.

A notebook must not depend on a MyST extension, so the course reads the blocks itself and writes
them again as plain Markdown. Fences follow CommonMark: a block ends at the first fence of the same
sign that is at least as long, hence an outer fence is longer than the inner one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .course import CourseError

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>(?P<sign>[`~:])(?P=sign){2,})(?P<info>.*)$")
CODE_SPAN = re.compile(r"^ *(`{3,})[^`{]+\1")
DIRECTIVE = re.compile(r"^\{(?P<name>[\w:.-]+)\}\s*(?P<argument>.*)$")
LABEL = re.compile(r"^ *\((?P<label>[^\s()]+)\)= *$")
HEADING = re.compile(r"^(?P<hashes>#{1,6})\s+(?P<text>.*?)(?:\s+#+)?\s*$")
MATH_END = re.compile(r"^(?P<body>.*)\$\$\s*(?:\((?P<label>[^\s()]+)\))?\s*$")
OPTION = re.compile(r"^:(?P<key>[\w-]+):\s*(?P<value>.*)$")


class MystError(CourseError):
    """A construct that no notebook can show; the message names the place and the cure."""

    def __init__(self, page: str, line: int, problem: str, cure: str) -> None:
        super().__init__(f"{page}, line {line}: {problem}; {cure}")


@dataclass
class Block:
    """One piece of a page. `kind` is text, heading, code, math, label or directive.

    `indent` is the column of a block inside a list item. `lines` are without it; `line` is the
    number of the block's first line, `body_line` that of `lines[0]`.
    """

    kind: str
    line: int
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    level: int = 0
    name: str = ""
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body_line: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def parse(source: str, page: str, first_line: int = 1) -> list[Block]:
    """The blocks of a text whose first line has number `first_line` in the file `page`.

    >>> [b.kind for b in parse("(here)=\\n# Title\\n:::{note}\\nMind.\\n:::", "page.md")]
    ['label', 'heading', 'directive']
    """
    lines = source.split("\n")
    blocks: list[Block] = []
    at = _after_front_matter(lines)
    while at < len(lines):
        line = lines[at]
        if FENCE.match(line) and not CODE_SPAN.match(line):
            block, at = _fenced(lines, at, page, first_line)
        elif line.lstrip().startswith("$$"):
            block, at = _mathematics(lines, at, page, first_line)
        elif line.startswith("%"):
            blocks.append(Block("comment", first_line + at))
            at += 1
            continue
        else:
            block, at = _line(line, first_line + at), at + 1
        if block.kind == "text" and blocks and blocks[-1].kind == "text":
            blocks[-1].lines += block.lines
        else:
            blocks.append(block)
    return [block for block in blocks if block.kind != "comment"]


def children(block: Block, page: str) -> list[Block]:
    """The blocks inside a directive."""
    return parse(block.text, page, block.body_line)


def _line(line: str, number: int) -> Block:
    if label := LABEL.match(line):
        return Block("label", number, name=label["label"])
    if heading := HEADING.match(line):
        return Block("heading", number, [heading["text"]], level=len(heading["hashes"]))
    return Block("text", number, [line], body_line=number)


def _after_front_matter(lines: list[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    ends = [at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"]
    return ends[0] + 1 if ends else 0


def _fenced(lines: list[str], start: int, page: str, first_line: int) -> tuple[Block, int]:
    opening = FENCE.match(lines[start])
    assert opening is not None
    fence, indent = opening["fence"], len(opening["indent"])
    number = first_line + start
    end = _closing(lines, start, fence)
    directive = DIRECTIVE.match(opening["info"].strip())
    if fence[0] == "`" and "`" in opening["info"]:
        raise MystError(page, number, "a title with ` behind a fence of `", "fence it by :::")
    if end is None or (directive is None and fence[0] == ":"):
        problem = "is not closed" if end is None else "has no {name}"
        raise MystError(
            page,
            number,
            f"the block that opens with {lines[start].strip()!r} {problem}",
            "close it with a fence as long as its opening, and write longer fences outside "
            "shorter ones, as in ::::{note} … :::{dropdown} … ::: … ::::",
        )
    body = [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[start + 1 : end]]
    if directive is None:
        text = [opening["fence"] + opening["info"], *body, fence]
        return Block("code", number, text, indent), end + 1
    options, used = _options(body)
    return (
        Block(
            "directive",
            number,
            body[used:],
            indent,
            name=directive["name"],
            argument=directive["argument"].strip(),
            options=options,
            body_line=number + 1 + used,
        ),
        end + 1,
    )


def _closing(lines: list[str], start: int, fence: str) -> int | None:
    closing = re.compile(rf"^ *{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    return next((at for at in range(start + 1, len(lines)) if closing.match(lines[at])), None)


def _options(body: list[str]) -> tuple[dict[str, str], int]:
    """The options of a directive (`:key: value` lines, or between `---`), and their lines."""
    if body and body[0].strip() == "---":
        end = next((at for at, line in enumerate(body[1:], 1) if line.strip() == "---"), 0)
        pairs = [line.partition(":") for line in body[1:end] if ":" in line]
        return {key.strip(): value.strip() for key, _, value in pairs}, end + 1
    options: dict[str, str] = {}
    for line in body:
        option = OPTION.match(line)
        if option is None:
            break
        options[option["key"]] = option["value"].strip()
    return options, len(options)


def _mathematics(lines: list[str], start: int, page: str, first_line: int) -> tuple[Block, int]:
    """A `$$ … $$` block, with its `(label)`; text that only begins with mathematics is text."""
    number = first_line + start
    indent = len(lines[start]) - len(lines[start].lstrip())
    first = lines[start].lstrip()[2:]
    for at in range(start, len(lines)):
        line = first if at == start else lines[at]
        if end := MATH_END.match(line):
            inner = [first, *lines[start + 1 : at + 1]]
            inner[-1] = end["body"]
            body = [text.strip() for text in inner if text.strip()]
            return Block("math", number, body, indent, name=end["label"] or ""), at + 1
        if "$$" in line:
            return Block("text", number, lines[start : at + 1], body_line=number), at + 1
    raise MystError(page, number, "the mathematics that opens with $$ has no end", "close it by $$")
