"""A closed drop-down with an exercise's reference solution.

The book includes the code from `solutions/` at build time, so that the page and the tested
reference cannot differ. With COURSE_SOLUTIONS=hide in the environment nothing is shown.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOMS = ("with_numpy", "with_torch")


def room_of(root: Path, chapter: str, name: str) -> str | None:
    """The first room of `solutions/` whose file of this chapter defines `name`."""
    for room in ROOMS:
        path = root / "solutions" / room / f"{chapter}.py"
        if path.is_file():
            body = ast.parse(path.read_text(encoding="utf-8")).body
            if name in {getattr(node, "name", None) for node in body}:
                return room
    return None


class Solution(SphinxDirective):
    """`{solution} chapter.name`: the reference of one exercise, closed until it is clicked.

    `:file:` below `solutions/` holds the answer to show, from its first decorator on, where the
    reference has another purpose.
    """

    required_arguments = 1
    has_content = False
    option_spec = {"file": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        if not self.config.show_solutions:
            return []
        chapter, _, name = self.arguments[0].partition(".")
        root = Path(self.env.srcdir)
        room = room_of(root, chapter, name)
        if room is None:
            raise self.error(
                f"{{solution}} needs chapter.name of a reference in solutions/with_numpy or "
                f"solutions/with_torch; nothing there is called {self.arguments[0]!r}. "
                "Write the reference, or correct the name."
            )
        file = self.options.get("file", f"{room}/{chapter}.py")
        text = [
            "````{dropdown} Solution",
            ":class-container: solution",
            f"```{{literalinclude}} /solutions/{file}",
            ":language: python",
            ":start-at: '@'" if "file" in self.options else f":pyobject: {name}",
            "```",
            "````",
        ]
        container = nodes.container()
        self.state.nested_parse(StringList(text, self.get_source_info()[0]), 0, container)
        return container.children


def setup(app: Sphinx) -> dict[str, object]:
    shown = os.environ.get("COURSE_SOLUTIONS", "show").lower() != "hide"
    app.add_config_value("show_solutions", shown, "env")
    app.add_directive("solution", Solution)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
