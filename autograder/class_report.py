"""One page about a whole class: what went well, what to teach again, whom to look at.

It is a single file without scripts or anything from elsewhere, so that it can be kept, printed and
read without a network. Names, notes and code of students are shown as text and never obeyed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import class_findings, class_plots
from .class_numbers import NOTES, ChapterCount
from .class_page import document, figure, table, two_lines
from .report import escaped
from .results import GRADER_ERROR
from .similar import Findings


def page(
    chapters: Sequence[ChapterCount],
    unreadable: Sequence[Path],
    similar: Mapping[str, Findings] | None = None,
) -> str:
    """The whole page; `similar` has the findings of each chapter, where submissions were given."""
    sections = "".join(_chapter(c, (similar or {}).get(c.name)) for c in chapters)
    links = " · ".join(f'<a href="#{_id(c.name)}">{escaped(c.name)}</a>' for c in chapters)
    faults = _faults(chapters, unreadable)
    body = f"{faults}<nav>{links}</nav>\n{_overview(chapters)}{sections}"
    return document("Class report", body)


def _id(name: str) -> str:
    return "chapter-" + escaped(name)


def _faults(chapters: Sequence[ChapterCount], unreadable: Sequence[Path]) -> str:
    """What the grader did wrong, before everything else."""
    count = sum(c.statuses[GRADER_ERROR] for c in chapters)
    if not count and not unreadable:
        return ""
    told = [
        (student, c.name, note) for c in chapters for student, note in c.notes.get(GRADER_ERROR, [])
    ]
    told += [(f.parent.name, f.name, "results.json is not there, or not whole") for f in unreadable]
    shown = [(escaped(chapter), two_lines(note, student)) for student, chapter, note in told]
    shown = shown[: NOTES * len(chapters) + NOTES]
    more = count + len(unreadable) - len(shown)
    return (
        f'<section class="fault"><h2 style="border:0;margin:0">Grader errors: '
        f"{count + len(unreadable)}</h2><p>The fault is the grader's. These count in no statistic "
        "below, least of all as zeros: read the note, then grade them again.</p>"
        + table(("chapter", "note and student"), shown, raw=True)
        + (f"<p>… and {more} more.</p>" if more else "")
        + "</section>\n"
    )


def _overview(chapters: Sequence[ChapterCount]) -> str:
    known = [s for s in class_plots.STATUS_COLOURS if any(c.statuses[s] for c in chapters)]
    rows = []
    for c in chapters:
        middle = f"{statistics.median(c.shares):.0%}" if c.shares else "–"
        full = f"{c.full / len(c.shares):.0%}" if c.shares else "–"
        counts = [str(c.statuses[status]) for status in known]
        rows.append([escaped(c.name), str(c.submissions), middle, full, *counts])
    legend = " ".join(f'<span class="key">{_swatch(s)}{escaped(s)}</span>' for s in known)
    return (
        '<h2>Overview</h2><p class="how">The bar shows what became of each submission. The median '
        "and the share of full marks are of what was handed in and has a grade: who handed in "
        "nothing is in the column <i>missing</i> alone.</p>"
        + figure(class_plots.statuses(chapters), "Submissions by status.")
        + f'<p class="small">{legend}</p>'
        + table(
            ["chapter", "all", "median", "full marks", *known],
            rows,
            numbers=range(1, 4 + len(known)),
            raw=True,
        )
    )


def _swatch(status: str) -> str:
    variable = class_plots.VARIABLES[class_plots.STATUS_COLOURS[status]]
    return f'<span class="swatch" style="background:var(--{variable})"></span>'


def _chapter(c: ChapterCount, similar: Findings | None) -> str:
    parts = [
        f'<h2 id="{_id(c.name)}">{escaped(c.name)}</h2>',
        _marks_and_times(c),
        class_findings.checks(c),
        class_findings.mistakes(c),
        class_findings.unnamed(c),
        _notes(c),
        class_findings.similar(similar),
    ]
    return "\n".join(parts)


def _marks_and_times(c: ChapterCount) -> str:
    middle = f"{statistics.median(c.shares):.0%}" if c.shares else "unknown"
    slow = f"{statistics.median(c.seconds):.1f} s" if c.seconds else "unknown"
    return (
        '<div class="two"><div><h3>Scores</h3><p class="how">Two hills mean two classes in one; '
        "the orange column is full marks.</p>"
        + figure(
            class_plots.scores(c.shares),
            f"{len(c.shares)} submissions with a grade, median {middle}, {c.full} with full marks.",
        )
        + '</div><div><h3>Time</h3><p class="how">Each column goes to twice the time of the one '
        "before; what stands alone on the right waited for a limit.</p>"
        + figure(class_plots.seconds(c.seconds), f"Seconds to grade one, median {slow}.")
        + table(
            ("the slowest", "seconds", "status"),
            [(student, f"{seconds:.1f}", status) for seconds, student, status in c.slowest],
            numbers=(1,),
        )
        + "</div></div>"
    )


def _notes(c: ChapterCount) -> str:
    rows = []
    for status, told in sorted(c.notes.items()):
        if status == GRADER_ERROR:  # told at the top
            continue
        rows += [(escaped(status), two_lines(note, student)) for student, note in told]
        if c.statuses[status] > len(told):
            rows.append((escaped(status), f"… and {c.statuses[status] - len(told)} more"))
    return (
        '<h3>What did not go as usual</h3><p class="how">Every status but <i>graded</i>, with what '
        "the grader noted. Answers that work keep their points all the same.</p>"
        + (table(("status", "note and student"), rows, raw=True) if rows else "<p>Nothing.</p>")
    )
