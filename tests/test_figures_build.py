"""The build puts a figure's module into its page, with the kit in place of its import."""

from pathlib import Path

import pytest
from sphinx.application import Sphinx

from tests.figures import BOOK, KIT, STEMS, extension, source_of

IMPORT = 'import {\n  clamp,\n  svg,\n} from "./_kit.js";\n'


def build_page(folder: Path, name: str) -> tuple[str, str]:
    """A one-page Sphinx book that shows the figure `name`: its HTML and the build's warnings."""
    source = folder / "source"
    source.mkdir()
    block = f'.. raw:: html\n\n   <div class="interactive" data-figure="{name}"></div>\n'
    (source / "index.rst").write_text(f"Title\n=====\n\n{block}\nAfter.\n", encoding="utf-8")
    warnings = folder / "warnings.txt"
    with warnings.open("w", encoding="utf-8") as stream:
        Sphinx(
            str(source),
            None,
            str(folder / "html"),
            str(folder / "doctrees"),
            "html",
            confoverrides={"extensions": ["figure"], "html_theme": "basic"},
            status=None,
            warning=stream,
        ).build()
    html = (folder / "html" / "index.html").read_text(encoding="utf-8")
    return html, warnings.read_text(encoding="utf-8")


@pytest.fixture
def extension_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))


def test_the_build_puts_the_module_behind_its_block(tmp_path, extension_path):
    stem = STEMS[0]
    html, warnings = build_page(tmp_path, stem)
    assert warnings == ""
    block, script = html.index(f'data-figure="{stem}"'), html.index('<script type="module">')
    assert block < script < html.index("After.")
    assert extension.inline_script(stem, source_of(stem), KIT) in html
    assert (tmp_path / "html" / "_static" / "figures.js").is_file()
    assert (tmp_path / "html" / "_static" / "course.css").is_file()


def test_the_build_warns_of_a_figure_without_module(tmp_path, extension_path):
    html, warnings = build_page(tmp_path, "no_such_figure")
    assert "no figure 'no_such_figure'" in warnings
    assert '<script type="module">' not in html


@pytest.mark.parametrize("source", ["const text = '</script>';", "const text = '<!--';"])
def test_a_module_or_a_kit_that_would_end_its_script_element_is_refused(source):
    with pytest.raises(ValueError, match="cannot hold '</script'"):
        extension.inline_script("waves", source)
    with pytest.raises(ValueError, match="cannot hold '</script'"):
        extension.inline_script("waves", IMPORT, source + KIT)


def test_the_kit_stands_in_for_the_import():
    script = extension.inline_script("waves", IMPORT + "export const a = clamp;\n", KIT)
    assert "_kit.js" not in script
    assert "const { clamp, svg } = (() => {" in script
    assert script.index("return { clamp, svg };") < script.index("export const a")


@pytest.mark.parametrize(
    "line",
    [
        'import { waves } from "./waves.js";',
        'import * as kit from "./_kit.js";',
        'import { clamp as hold } from "./_kit.js";',
        IMPORT + IMPORT,
        'const other = await import("./waves.js");',
        'export { waves } from "./waves.js";',
        'import "./_kit.js";',
    ],
)
def test_any_other_import_is_refused(line):
    with pytest.raises(ValueError, match="imports only names from the kit"):
        extension.inline_script("waves", f"{line}\n", KIT)


def test_a_name_that_the_kit_has_not_is_refused():
    with pytest.raises(ValueError, match="the kit exports no waves"):
        extension.inline_script("sample", 'import { waves } from "./_kit.js";\n', KIT)
