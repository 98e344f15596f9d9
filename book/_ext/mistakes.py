"""Lists what every check asks and which known mistakes it catches, from the checks themselves.

A list written by hand would be wrong after the next check. The page that holds `{mistakes}` tells
the answers to many exercises, so `make` leaves it out of a book without solutions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent.parent


def listing() -> Iterator[str]:
    """The page as Markdown: a heading a chapter, a heading an exercise, a paragraph a check."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from autograder import course
    from autograder.running import collected

    for chapter in course.chapters():
        exercises = course.manifest(chapter)
        text = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
        yield f"## {re.search('^# (.+)$', text, re.M)[1]}"
        for exercise in exercises:
            yield f"### `{exercise.name}`"
            unit = "point" if exercise.points == 1 else "points"
            worth = (
                f"{exercise.bonus} bonus points" if exercise.bonus else f"{exercise.points} {unit}"
            )
            yield f"{{ref}}`ex-{exercise.name}` · {worth}"
            mine = [check for check in collected(chapter) if check.exercise == exercise.name]
            total = sum(check.weight for check in mine)
            known = course.misconceptions(exercise)
            for check in mine:
                kind = "hidden" if check.hidden else "public"
                yield f"**{check.sentence}** ({kind}, {check.weight} of {total})"
                for mistake in known:
                    if mistake.caught_by == check.name:
                        yield f"- {mistake.message} {{ref}}`{mistake.section}` (`{mistake.id}`)"


class Mistakes(SphinxDirective):
    """`{mistakes}`: every check with the mistakes that fail there first."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        for folder in ("checks", "misconceptions"):
            for file in sorted((ROOT / "autograder" / folder).glob("*.py")):
                self.env.note_dependency(str(file))
        lines = [line for block in listing() for line in (block, "")]
        container = nodes.section()
        source = self.get_source_info()[0]
        self.state.nested_parse(StringList(lines, source), 0, container, match_titles=True)
        return container.children


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the directive."""
    app.add_directive("mistakes", Mistakes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
