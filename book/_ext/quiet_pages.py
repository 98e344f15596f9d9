"""Take scripts off the pages that the course does not use.

The theme's live-code button (Thebe) is switched off, but its settings are still written into every
page, twice, which a browser reports as an error.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def is_unused(script: Any) -> bool:
    """Whether a script element belongs to the live-code button."""
    attributes = getattr(script, "attributes", {})
    return "thebe" in f"{getattr(script, 'filename', script)} {attributes.get('body', '')}".lower()


def drop_unused_scripts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    context["script_files"] = [
        script for script in context.get("script_files", []) if not is_unused(script)
    ]


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("html-page-context", drop_unused_scripts, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
