"""What the class report says about answers: checks, mistakes with and without a name, similar ones.

Each section begins with one sentence that says how to read it.
"""

from __future__ import annotations

from . import class_plots
from .class_numbers import ChapterCount, CheckCount, ExerciseCount
from .class_page import code, figure, table, two_lines
from .code_tokens import LENGTH
from .report import escaped
from .similar import ALIKE, SHOWN, Findings, Pair

FEW = 5  # submissions: below, a check that all pass says little about the check
KINDS = 5  # of messages for an exercise
FIRST, MISTAKES = 4, 12  # rows that are shown at once; the whole table is below, folded


def checks(c: ChapterCount) -> str:
    return (
        '<h3>Checks</h3><p class="how">How many passed each check, of those who wrote the '
        "exercise; the lowest come first, in orange. A check that everybody passes or fails tells "
        "nobody apart: it may be too easy, or wrong.</p>"
        + "".join(_exercise(e) for e in c.exercises.values())
    )


def _exercise(e: ExerciseCount) -> str:
    head = f"<h4><code>{escaped(e.id)}</code></h4>"
    counts = ", ".join(f"{n} {status}" for status, n in e.statuses.most_common())
    head += f'<p class="small">{escaped(counts)}</p>'
    checks = sorted((check for check in e.checks.values() if check.ran), key=lambda k: k.rate)
    if not checks:
        return head + "<p>Nobody wrote this one.</p>"
    shown = [check for check in checks if check.rate < 1][: class_plots.BARS]
    picture = "<p>Everybody who wrote it passed every check.</p>"
    if shown:
        names = [_short(check, e.id) for check in shown]
        rest = len(checks) - len(shown)
        told = f"{rest} more, with higher rates, in the table alone." if rest else "All checks."
        picture = figure(class_plots.pass_rates(shown, names), told)
    rows = [(f"{check.passed} of {check.ran}", _told(check)) for check in checks]
    return (
        head
        + f'<div class="two"><div>{picture}</div><div>{_first(rows, FIRST, "check")}</div></div>'
    )


def _first(rows: list[tuple[str, str]], most: int, what: str) -> str:
    """The first rows of a long table, and the whole one for who opens it."""

    def shown(rows: list[tuple[str, str]]) -> str:
        return table(("how many", what), rows, numbers=(0,), raw=True)

    if len(rows) <= most:
        return shown(rows)
    whole = f"<details><summary>All {len(rows)} {what}s</summary>{shown(rows)}</details>"
    return f'<div class="first">{shown(rows[:most])}</div>{whole}'


def _short(check: CheckCount, exercise: str) -> str:
    name = check.name.removeprefix(exercise.split(".")[-1]).strip("_").replace("_", " ")
    return name + (" (hidden)" if check.hidden else "")


def _told(check: CheckCount) -> str:
    """The check's sentence, and what to think of when looking at its rate."""
    faults = f"the grader failed on {check.faults}" if check.faults else ""
    same = {0.0: "nobody passes", 1.0: "everybody passes"}.get(check.rate, "")
    hints = [hint for hint in (faults, same if check.ran >= FEW else "") if hint]
    hidden = ' <span class="tag">hidden</span>' if check.hidden else ""
    told = f' <span class="hint">{"; ".join(hints)}</span>' if hints else ""
    return escaped(check.sentence) + hidden + told


def mistakes(c: ChapterCount) -> str:
    found = [
        (-n, e.id.split(".")[-1], name, f"{n} of {e.written}", message)
        for e in c.exercises.values()
        for (name, message), n in e.named.items()
    ]
    rows = [
        (count, two_lines(message, f"{exercise} · {name}"))
        for _, exercise, name, count, message in sorted(found)
    ]
    return (
        '<h3>Known mistakes</h3><p class="how">Most frequent first, of those who wrote the '
        "exercise: the first lines are what to explain again in class.</p>"
        + (_first(rows, MISTAKES, "mistake") if rows else "<p>None was recognised.</p>")
    )


def unnamed(c: ChapterCount) -> str:
    found = sorted((e for e in c.exercises.values() if e.unnamed), key=lambda e: -e.unnamed)
    return (
        '<h3>Mistakes without a name</h3><p class="how">Failures that no known mistake explains, '
        "by the first check that failed and what it said, numbers left open. A line that many "
        "share is a candidate for a misconception of its own.</p>"
        + ("".join(map(_unnamed, found)) or "<p>None.</p>")
    )


def _unnamed(e: ExerciseCount) -> str:
    failures = e.unnamed + sum(e.named.values())
    rows = [(str(n), two_lines(line, check)) for (check, line), n in e.lines.most_common(KINDS)]
    rest = e.unnamed - sum(n for _, n in e.lines.most_common(KINDS))
    return (
        f'<h4><code>{escaped(e.id)}</code></h4><p class="small">{e.unnamed} of {failures} '
        f"failures have no name{f'; {rest} are rarer than these' if rest else ''}</p>"
        + table(("how many", "what the first check said"), rows, numbers=(0,), raw=True)
    )


def similar(found: Findings | None) -> str:
    head = "<h3>Similar submissions</h3>"
    if found is None:
        return head + "<p>Not looked for: name the folder of submissions with --submitted.</p>"
    cut = found.found - len(found.pairs)
    said = (
        f"{found.compared} submissions, {found.too_short} of them with too little code of their "
        "own to compare. What the course gave out is left out, and so is what more than "
        f"{found.limit} wrote alike. Pairs are shown from {ALIKE:.0%} on: one exercise that was "
        "copied among several of one's own stays below."
    )
    if found.unreadable:
        said += f" {len(found.unreadable)} could not be read."
    return (
        f'{head}<p class="how"><b>A reason to look, and no proof.</b> Two people may learn from '
        "one source, or from each other as they were told to. Look at the excerpts, then talk to "
        "both. The share is of the code that few others wrote: how much of it both have, all names "
        "of variables made one. Where it is much lower as written, the names differ.</p>"
        f'<p class="small">{escaped(said)}</p>'
        + ("".join(map(_pair, found.pairs)) or "<p>No pair is alike.</p>")
        + (f"<p>… and {cut} more pairs; the {SHOWN} most alike are shown.</p>" if cut else "")
    )


def _pair(pair: Pair) -> str:
    one, other = map(escaped, pair.students)
    excerpts = "".join(
        f"<div><b>{escaped(student)}</b><pre>{code(excerpt)}</pre></div>"
        for student, excerpt in zip(pair.students, pair.excerpts, strict=True)
    )
    return (
        f'<div class="pair"><h4>{one} and {other}: {pair.exact:.0%}</h4><p class="small">'
        f"estimated {pair.estimated:.0%}, exact {pair.exact:.0%}, as written "
        f"{pair.as_written:.0%}; {pair.shared} stretches of {LENGTH} words and signs shared. "
        "The longest run of them:</p>"
        f'<div class="two">{excerpts}</div></div>'
    )
