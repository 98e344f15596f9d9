"""Sphinx extension: puts a chapter's interactive figure, a plain ES module, into its page.

A browser refuses ``<script type="module" src=...>`` on a page opened from disk, and readers do open
the built book from disk. So the module's text goes inline, right behind the raw HTML block that
names it, and book/_static/figures.js, a classic script, mounts it. In the chapter:

    ```{raw} html
    <div class="interactive" data-figure="NAME"></div>
    ```
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

BOOK = Path(__file__).resolve().parent.parent
FIGURES = BOOK / "figures"
STATIC = BOOK / "_static"

log = logging.getLogger(__name__)


def figures_in(html: str) -> list[str]:
    """Names in the ``data-figure`` attributes of some HTML, in order.

    >>> figures_in('<div class="interactive" data-figure="waves"></div>')
    ['waves']
    """
    return re.findall(r'\bdata-figure="([^"]+)"', html)


def inline_script(name: str, source: str) -> str:
    """The script element that holds a figure's module and hands its ``mount`` to the loader.

    >>> print(inline_script("waves", "export function mount(root) {}"))
    <script type="module">
    export function mount(root) {}
    document.dispatchEvent(new CustomEvent("figure", { detail: { name: "waves", mount } }));
    </script>
    """
    if re.search(r"</script|<!--", source, flags=re.IGNORECASE):
        raise ValueError(f"figure {name!r}: a module cannot hold '</script' or '<!--' inline")
    hand_over = (
        "document.dispatchEvent("
        f'new CustomEvent("figure", {{ detail: {{ name: "{name}", mount }} }}));'
    )
    return f'<script type="module">\n{source.rstrip()}\n{hand_over}\n</script>'


def insert_modules(app: Sphinx, doctree: nodes.document) -> None:
    """Follows every raw HTML block that names figures with their modules."""
    present: set[str] = set()
    for block in list(doctree.findall(nodes.raw)):
        if "html" not in block.get("format", "").split():
            continue
        scripts = []
        for name in figures_in(block.astext()):
            if name in present:  # one module serves every place of the page that shows the figure
                continue
            present.add(name)
            path = FIGURES / f"{name}.js"
            app.env.note_dependency(str(path))
            if not path.is_file():
                log.warning("no figure %r: %s is missing", name, path, location=block)
                continue
            script = inline_script(name, path.read_text(encoding="utf-8"))
            scripts.append(nodes.raw("", script, format="html"))
        block.parent[block.parent.index(block) + 1 : block.parent.index(block) + 1] = scripts


def add_static_files(app: Sphinx, config: object) -> None:
    """Ships the loader and the style sheet with every page."""
    app.config.html_static_path = [*app.config.html_static_path, str(STATIC)]


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the extension."""
    app.connect("config-inited", add_static_files)
    app.connect("doctree-read", insert_modules)
    app.add_css_file("course.css")
    app.add_js_file("figures.js")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
