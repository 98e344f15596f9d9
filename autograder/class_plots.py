"""The pictures of the class report: SVG that is part of the page and follows its colours.

Matplotlib draws them in the book's style. Its colours become variables of the page, so that they
are legible on light and dark; each is as wide as a telephone, so that its words stay readable.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure

from . import course
from .class_numbers import ChapterCount, CheckCount

STYLE = course.ROOT / "book" / "course.mplstyle"
WIDTH = 4.3  # inches: 310 points, which a narrow screen shows nearly in full size
BARS = 12  # checks in one picture
INK, GREY, BLUE, ORANGE, PALE = "#111111", "#5a6672", "#1f5fa8", "#e07b00", "#d3dbe3"
# Each colour of a picture: its variable in the page's style, which differs on dark.
VARIABLES = {INK: "ink", GREY: "grey", BLUE: "blue", ORANGE: "orange", PALE: "pale"}
STATUS_COLOURS = {
    "graded": BLUE,
    "timeout": ORANGE,
    "out of memory": "#b65c9e",
    "crashed": "#8a5a2b",
    "missing": PALE,
    "malformed": GREY,
    "grader error": "#c62828",
}
VARIABLES |= {"#b65c9e": "violet", "#8a5a2b": "brown", "#c62828": "red"}
LOOK = {
    "svg.fonttype": "none",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


def statuses(chapters: Sequence[ChapterCount]) -> str:
    """A bar for each chapter, divided by what became of its submissions."""

    def draw(axes: Any) -> None:
        for row, chapter in enumerate(chapters):
            left = 0
            axes.text(0, row - 0.32, chapter.name, va="bottom")
            for status, colour in STATUS_COLOURS.items():
                axes.barh(row, chapter.statuses[status], 0.5, left, color=colour)
                left += chapter.statuses[status]
        axes.set_ylim(len(chapters) - 0.5, -0.8)
        axes.set_yticks([])
        axes.spines.left.set_visible(False)
        axes.set_xlabel("submissions")
        axes.xaxis.get_major_locator().set_params(integer=True)

    said = "; ".join(
        f"{c.name}: " + ", ".join(f"{n} {status}" for status, n in sorted(c.statuses.items()))
        for c in chapters
    )
    return _svg(draw, 0.55 * len(chapters) + 0.7, "Statuses. " + said)


def scores(shares: Sequence[float]) -> str:
    """How many submissions earned which tenth of the points; full marks stand apart."""
    steps = [min(int(share * 10 + 1e-9), 10) for share in shares]
    counts = [steps.count(step) for step in range(11)]
    names = [f"{10 * step}–{10 * step + 9}" for step in range(10)] + ["100"]

    def draw(axes: Any) -> None:
        axes.bar(range(11), counts, 0.85, color=[BLUE] * 10 + [ORANGE])
        axes.set_xticks(range(11), [f"{10 * step}" for step in range(11)])
        axes.set_xlabel("per cent of the points: from here to the next")
        _count_axis(axes)

    said = ", ".join(f"{n} at {name} %" for n, name in zip(counts, names, strict=True) if n)
    return _svg(draw, 2.0, f"Scores of {len(shares)} submissions: {said or 'none'}.")


def seconds(times: Sequence[float]) -> str:
    """How long gradings took; the axis doubles from step to step, for a few take very long."""
    edges = [2.0**power for power in range(-2, 10)]
    counts = [sum(edge / 2 < t <= edge for t in times) for edge in edges]
    counts[0] += sum(t <= edges[0] / 2 for t in times)
    counts[-1] += sum(t > edges[-1] for t in times)
    used = [at for at, n in enumerate(counts) if n] or [0]
    shown = range(used[0], used[-1] + 1)

    def draw(axes: Any) -> None:
        axes.bar([*shown], [counts[at] for at in shown], 0.85, color=BLUE)
        axes.set_xticks([*shown], [f"{edges[at]:g}" for at in shown])
        axes.set_xlabel("seconds, at most")
        _count_axis(axes)

    said = ", ".join(f"{counts[at]} up to {edges[at]:g} s" for at in shown)
    return _svg(draw, 1.8, f"Time of {len(times)} gradings: {said}.")


def pass_rates(checks: Sequence[CheckCount], names: Sequence[str]) -> str:
    """A bar for each check, in the order given; those with the lowest rate stand out."""
    lowest = min(check.rate for check in checks)

    def draw(axes: Any) -> None:
        for row, (check, name) in enumerate(zip(checks, names, strict=True)):
            colour = ORANGE if check.rate == lowest < 1 else BLUE
            axes.barh(row, 1, 0.34, color=PALE)
            axes.barh(row, check.rate, 0.34, color=colour)
            axes.text(0, row - 0.22, name, va="bottom")
            axes.text(1, row - 0.22, f"{check.rate:.0%}", va="bottom", ha="right")
        axes.set_xlim(0, 1)
        axes.set_ylim(len(checks) - 0.7, -0.8)
        axes.axis("off")

    said = ", ".join(f"{n}: {c.rate:.0%}" for c, n in zip(checks, names, strict=True))
    return _svg(draw, 0.42 * len(checks) + 0.15, f"Pass rates. {said}.")


def _count_axis(axes: Any) -> None:
    axes.set_ylabel("submissions")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _svg(draw: Any, height: float, said: str) -> str:
    """What `draw` draws, as an element of a page with words for those who do not see it."""
    look: Any = [STYLE, {**LOOK, "svg.hashsalt": said}]
    with matplotlib.style.context(look):
        figure = Figure(figsize=(WIDTH, height))
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg ") :], flags=re.S)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # several pictures share a page: no id twice
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"| version="[^"]*"', "", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r"<style.*?</style>|font-family: [^;]*; ", "", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(said)}" ', 1)
