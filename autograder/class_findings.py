"""What the class report says about answers: checks, mistakes with and without a name, similar ones.

Each section begins with one sentence that says how to read it.
"""

from __future__ import annotations

from . import class_plots
from .class_numbers import ChapterCount, CheckCount, ExerciseCount
from .class_page import code, figure, table
from .code_tokens import LENGTH
from .report import escaped
from .similar import SHOWN, Findings, Pair

FEW = 5  # submissions: below, a check that all pass says little about the check
KINDS = 5  # of messages for an exercise


def checks(c: ChapterCount) -> str:
    return (
        '<h3>Checks</h3><p class="how">How many passed each check, of those who wrote the '
        "exercise; the lowest come first, in orange. A check that everybody passes or fails tells "
        "nobody apart: it may be too easy, or wrong.</p>"
        + "".join(_exercise(e) for e in c.exercises.values())
    )


def _exercise(e: ExerciseCount) -> str:
    head = f"<h4><code>{escaped(e.id)}</code></h4>"
    counts = ", ".join(f"{n} {status}" for status, n in sorted(e.statuses.items()))
    head += f'<p class="small">{escaped(counts)}</p>'
    checks = sorted((check for check in e.checks.values() if check.ran), key=lambda k: k.rate)
    if not checks:
        return head + "<p>Nobody wrote this one.</p>"
    shown = [check for check in checks if check.rate < 1][: class_plots.BARS]
    picture = "<p>Everybody who wrote it passed every check.</p>"
    if shown:
        names = [_short(check, e.id) for check in shown]
        rest = len(checks) - len(shown)
        told = f"{rest} with higher rates are in the table alone." if rest else "All checks."
        picture = figure(class_plots.pass_rates(shown, names), told)
    rows = [
        (
            escaped(check.sentence) + (' <span class="tag">hidden</span>' if check.hidden else ""),
            f"{check.passed} of {check.ran}",
            _hint(check),
        )
        for check in checks
    ]
    return (
        head
        + f'<div class="two"><div>{picture}</div><div>'
        + table(("check", "passed", "hint"), rows, numbers=(1,), raw=True)
        + "</div></div>"
    )


def _short(check: CheckCount, exercise: str) -> str:
    name = check.name.removeprefix(exercise.split(".")[-1]).strip("_").replace("_", " ")
    return name + (" (hidden)" if check.hidden else "")


def _hint(check: CheckCount) -> str:
    faults = f"the grader failed on {check.faults}" if check.faults else ""
    same = {0.0: "nobody passes", 1.0: "everybody passes"}.get(check.rate, "")
    hints = [faults, same if check.ran >= FEW else ""]
    return f'<span class="hint">{"; ".join(h for h in hints if h)}</span>'


def mistakes(c: ChapterCount) -> str:
    rows = sorted(
        (
            (n, e.written, e.id, id, message)
            for e in c.exercises.values()
            for (id, message), n in e.named.items()
        ),
        key=lambda row: (-row[0], row[2:]),
    )
    body = table(
        ("how many", "exercise", "mistake", "what the student is told"),
        [(f"{n} of {of}", exercise, id, message) for n, of, exercise, id, message in rows],
        numbers=(0,),
    )
    return (
        '<h3>Known mistakes</h3><p class="how">Most frequent first, of those who wrote the '
        "exercise: the first lines are what to explain again in class.</p>"
        + (body if rows else "<p>None was recognised.</p>")
    )


def unnamed(c: ChapterCount) -> str:
    found = sorted((e for e in c.exercises.values() if e.unnamed), key=lambda e: -e.unnamed)
    rows = []
    for e in found:
        failures = e.unnamed + sum(e.named.values())
        for at, ((check, line), n) in enumerate(e.lines.most_common(KINDS)):
            which = f"{e.id}: {e.unnamed} of {failures} failures have no name" if at == 0 else ""
            rows.append((which, str(n), check, line))
        if len(e.lines) > KINDS:
            rows.append(("", "", "", f"… and {len(e.lines) - KINDS} other kinds"))
    return (
        '<h3>Mistakes without a name</h3><p class="how">Failures that no known mistake explains, '
        "by the first check that failed and what it said, numbers left open. A line that many "
        "share is a candidate for a misconception of its own.</p>"
        + (
            table(("exercise", "how many", "first check", "said"), rows, numbers=(1,))
            if rows
            else "<p>None.</p>"
        )
    )


def similar(found: Findings | None) -> str:
    head = "<h3>Similar submissions</h3>"
    if found is None:
        return head + "<p>Not looked for: name the folder of submissions with --submitted.</p>"
    cut = found.found - len(found.pairs)
    said = (
        f"{found.compared} submissions, {found.too_short} of them with too little code of their "
        "own to compare. What the course gave out is left out, and so is what more than "
        f"{found.limit} wrote alike."
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
