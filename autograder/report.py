"""Shows results to people: plain text for terminals, HTML for notebooks and feedback pages.

What a student's code can put into a message (its exceptions, its names) is cleaned of control
characters and escaped, so that a report shows it and never obeys it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .results import CheckResult, ExerciseResult, SubmissionResult

if TYPE_CHECKING:
    from .second_look import OnlyLook, SecondLook

PUBLIC_NOTE = (
    "These are the public checks, not the whole grade: hidden ones try other inputs, "
    "and the rest of what the docstring promises."
)
JOINERS = "\u200c\u200d"  # in Persian names and in emoji; they obey nothing and move nothing
MARKS = {True: "✓", False: "✗"}
COLOURS = {True: "#2e7d32", False: "#c62828"}
CELL = "padding:.1em .6em .1em 0;vertical-align:top;text-align:left"


def clean(text: str, limit: int = 1200) -> str:
    """Text that moves no cursor and reverses no writing, of bounded length."""
    text = text[: 4 * limit]
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    short = "".join(c for c in text if c == "\n" or seen(c))
    return short if len(short) <= limit else short[: limit - 1] + "…"


def seen(sign: str) -> bool:
    """Whether a sign is shown, and not obeyed."""
    return sign in JOINERS or unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Co")


def text(result: ExerciseResult, *, public: bool, look: SecondLook | OnlyLook | None = None) -> str:
    """The report of one exercise for a terminal; `look` is what it did on a GPU."""
    lines = [f"{result.id}: {headline(result, public=public)}", *_lines(result.checks, "  ")]
    if result.misconception:
        lines.append(f"  → {result.misconception['message']}")
        lines.append(f"    Read again: “{result.misconception['section']}”.")
    if look is not None:
        lines += [f"  {clean(look.headline())}", *_lines(look.failed, "    ")]
    return "\n".join(lines)


def _lines(checks: list[CheckResult], indent: str) -> Iterator[str]:
    for check, message in _told(checks):
        yield f"{indent}{MARKS[check.passed]} {_title(check)}"
        for line in clean(message).splitlines():
            yield f"{indent}    {line}"


def html_block(
    result: ExerciseResult, *, public: bool, look: SecondLook | OnlyLook | None = None
) -> str:
    """The same as HTML without style sheets or scripts, legible on light and dark."""
    advice = there = ""
    if result.misconception:
        advice = (
            f'<p style="border-left:4px solid #1565c0;padding-left:.8em;margin:.6em 0">'
            f"{escaped(result.misconception['message'])}<br>"
            f"Read again: “{escaped(result.misconception['section'])}”.</p>"
        )
    if look is not None:
        said = f'<p style="margin:.4em 0">{escaped(look.headline())}</p>'
        there = said + (_table(look.failed) if look.failed else "")
    note = f'<p style="opacity:.75;margin:.4em 0">{PUBLIC_NOTE}</p>' if public else ""
    return (
        f"<div><b><code>{escaped(result.id)}</code></b>: {escaped(headline(result, public=public))}"
        f"{_table(result.checks)}{advice}{there}{note}</div>"
    )


def _table(checks: list[CheckResult]) -> str:
    rows = []
    for check, message in _told(checks):
        colour, mark = COLOURS[check.passed], MARKS[check.passed]
        message = f"<br>{escaped(message)}" if message else ""
        rows.append(
            f'<tr style="background:none"><td style="{CELL};color:{colour}"><b>{mark}</b></td>'
            f'<td style="{CELL}">{escaped(_title(check))}'
            f'<span style="opacity:.8">{message}</span></td></tr>'
        )
    return f'<table style="border-collapse:collapse;margin:.4em 0">{"".join(rows)}</table>'


def headline(result: ExerciseResult, *, public: bool) -> str:
    """One line: how many checks passed, and what that is worth."""
    passed = sum(c.passed for c in result.checks)
    scope = "public checks" if public else "checks"
    counted = f"{passed} of {len(result.checks)} {scope} passed"
    if result.points is None:
        return "the grader failed here; this costs no points"
    points = f"{result.points:g} of {result.max_points:g} points"
    if result.max_bonus:
        points = f"{result.bonus:g} of {result.max_bonus:g} bonus points"
        if not result.checks:
            why = result.untried or "nothing to check"
            return f"optional, for {result.max_bonus:g} bonus points ({why}, which costs nothing)"
    if public:
        return counted
    return f"{points}, {counted}" if result.checks else f"{points}, nothing to check"


def page(result: SubmissionResult) -> str:
    """A feedback page of its own for one submission."""
    total = "unknown" if result.score is None else f"{result.score:g}"
    note = f"<pre>{escaped(result.note)}</pre>" if result.note else ""
    blocks = "\n".join(html_block(e, public=False) for e in result.exercises)
    title = f"{result.chapter}: {total} of {result.max_score:g} points"
    title += f", and a bonus of {result.bonus:g}" if result.bonus else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escaped(title)}</title><style>:root{{color-scheme:light dark}}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
        "pre{white-space:pre-wrap}div{margin-top:1.6em}</style></head><body>\n"
        f"<h1>{escaped(title)}</h1>\n<p>Submission of <b>{escaped(result.student)}</b>, "
        f"status: <b>{escaped(result.status)}</b>.</p>\n{note}\n{blocks}\n</body></html>\n"
    )


def _told(checks: list[CheckResult]) -> Iterator[tuple[CheckResult, str]]:
    """Each check with its message; a message that stands there already is not repeated."""
    before: set[str] = set()
    for check in checks:
        yield check, "As above." if check.message in before else check.message
        before |= {check.message} - {""}


def _title(check: CheckResult) -> str:
    return check.sentence + (" (hidden check)" if check.hidden else "")


def escaped(value: str) -> str:
    """Text as HTML that shows it, and does nothing else."""
    return html.escape(clean(value)).replace("\n", "<br>")
