"""Sphinx extension: puts a chapter's interactive figure, a plain ES module, into its page.

A browser refuses ``<script type="module" src=...>`` on a page opened from disk, and readers do open
the built book from disk. So the module's text goes inline, right behind the raw HTML block that
names it, and book/_static/figures.js, a classic script, mounts it. In the chapter:

    ```{raw} html
    <div class="interactive" data-figure="NAME"></div>
    ```

What figures share is in book/figures/_kit.js, the one module they may import from. An inline module
cannot import a file of a book opened from disk either, so the kit's text stands in for the import.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

BOOK = Path(__file__).resolve().parent.parent
FIGURES = BOOK / "figures"
KIT = FIGURES / "_kit.js"
STATIC = BOOK / "_static"

NAMES = r"\s*\w+(?:\s*,\s*\w+)*\s*,?\s*"
KIT_IMPORT = re.compile(rf'^import\s*\{{({NAMES})\}}\s*from\s*"\./_kit\.js";[^\S\n]*\n?', re.M)
ANY_IMPORT = re.compile(r"^\s*import\b|\bimport\s*\(|^\s*export\b[^;\n]*\bfrom\b", re.M)
EXPORT = re.compile(r"^export\s+(?=(?:const|let|class|function\*?|async\s+function)\s+(\w+))", re.M)

log = logging.getLogger(__name__)


def figures_in(html: str) -> list[str]:
    """Names in the ``data-figure`` attributes of some HTML, in order.

    >>> figures_in('<div class="interactive" data-figure="waves"></div>')
    ['waves']
    """
    return re.findall(r'\bdata-figure="([^"]+)"', html)


def with_kit(name: str, source: str, kit: str) -> str:
    """A figure's module with the kit in place of its import.

    The kit keeps a scope of its own, so that a figure may use any name it did not import.

    >>> kit = "const two = 2;\\nexport const double = (x) => two * x;"
    >>> print(with_kit("waves", 'import { double } from "./_kit.js";\\ndouble(3);', kit))
    const { double } = (() => {
    const two = 2;
    const double = (x) => two * x;
    return { double };
    })();
    double(3);
    """
    found = KIT_IMPORT.search(source)
    own = KIT_IMPORT.sub("", source, count=1)
    if ANY_IMPORT.search(own):
        raise ValueError(
            f"figure {name!r}: a module imports only names from the kit, "
            f'in one statement: import {{ … }} from "./{KIT.name}";'
        )
    if not found:
        return source
    wanted = re.findall(r"\w+", found[1])
    if unknown := sorted(set(wanted) - set(EXPORT.findall(kit))):
        raise ValueError(f"figure {name!r}: the kit exports no {', '.join(unknown)}")
    body, names = EXPORT.sub("", kit).strip(), ", ".join(wanted)
    return f"const {{ {names} }} = (() => {{\n{body}\nreturn {{ {names} }};\n}})();\n{own}"


def inline_script(name: str, source: str, kit: str = "") -> str:
    """The script element that holds a figure's module and hands its ``mount`` to the loader.

    >>> print(inline_script("waves", "export function mount(root) {}"))
    <script type="module">
    export function mount(root) {}
    document.dispatchEvent(new CustomEvent("figure", { detail: { name: "waves", mount } }));
    </script>
    """
    source = with_kit(name, source, kit)
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
            app.env.note_dependency(str(KIT))
            if not path.is_file():
                log.warning("no figure %r: %s is missing", name, path, location=block)
                continue
            source, kit = path.read_text(encoding="utf-8"), KIT.read_text(encoding="utf-8")
            script = inline_script(name, source, kit)
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
