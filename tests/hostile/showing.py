"""Attacks on whoever reads the results: markup, terminal codes, formulas and turned writing."""

from __future__ import annotations

from typing import Any

from .attack import Attack, attack

SCRIPTS = (
    "<script>alert('hostile')</script>",
    "<img src=x onerror=alert('hostile')>",
    "</pre></td></table><svg/onload=alert('hostile')>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "[x](javascript:alert('hostile'))",
    "<style>*{display:none}</style>",
    "$\\\\require{html}\\\\href{javascript:alert(1)}{x}$",
    "{{ config }} {% raw %} ${7*7} #{7*7}",
)
TERMINAL = (
    "\x1b[2J\x1b[H", "\x1b]0;hostile\x07", "\x1b]52;c;aG9zdGlsZQ==\x07", "\x9b31m", "\x08" * 50,
    "\r" + "owned" + " " * 90, "\x1bP+q\x1b\\", "\x00\x01\x7f", "\x1b]8;;http://x\x1b\\x\x1b]8;;\x1b\\",
)  # fmt: skip
TURNED = (
    "\u202e01\u202c",
    "\u2066x\u2069",
    "\ufeff\u200b\u200d",
    "\ud800",
    "\U000e0041",
    "a\u0300" * 400,
)
FORMULAS = ('=HYPERLINK("http://x","y")', "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1", "\n=1+1",
            "'=1", '"\n=cmd|calc!A1')  # fmt: skip


def raises(texts: tuple[str, ...]) -> str:
    """Answers whose exceptions carry these texts, in the message, the class and the function."""
    names = "self_attention permutation_gap failed_requirements positions_from_causal_average"
    lines = [f"texts = {ascii(texts)}"]
    for name in names.split():
        lines += [
            f"def {name}(*a, **k):",
            "    texts_now = ' '.join(texts[len(a) % 2:])",
            "    raise type(texts[len(a) % len(texts)], (ValueError,), {})(texts_now)",
            f"{name}.__qualname__ = {name}.__name__ = texts[0]",
            f"{name}.__code__ = {name}.__code__.replace(co_qualname=texts[0], co_name=texts[1])",
        ]
    return "\n".join(lines)


def cells(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Failing cells whose first line, error and class are these texts."""
    made = [f"raise type({ascii(t)}, (Exception,), {{}})({ascii(t)})" for t in texts]
    return (*made, *(f'"{t[:20]}"; 1 / 0' for t in texts if t.isprintable() and '"' not in t))


def in_the_text(notebook: dict[str, Any]) -> None:
    """Markup in Markdown and raw cells, outputs, attachments and metadata."""
    html = {"text/html": SCRIPTS[0], "application/javascript": "alert('hostile')",
            "image/svg+xml": SCRIPTS[2], "text/markdown": SCRIPTS[4]}  # fmt: skip
    output = {"output_type": "display_data", "data": html, "metadata": {}}
    stream = {"output_type": "stream", "name": "stdout", "text": "".join(TERMINAL) + SCRIPTS[0]}
    for number, text in enumerate(SCRIPTS):
        for kind in ("markdown", "raw"):
            cell: dict[str, Any] = {"cell_type": kind, "id": f"{kind}{number}", "source": text}
            cell["metadata"] = {"name": text, "tags": [text], "format": "text/html"}
            if kind == "markdown":
                cell["attachments"] = {"x.svg": {"image/svg+xml": SCRIPTS[2]}}
            notebook["cells"].append(cell)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [output, stream]
            cell["source"] += "\n# <script>alert('hostile')</script>"
    notebook["metadata"] |= {
        "title": SCRIPTS[0],
        "authors": [{"name": SCRIPTS[1]}],
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {"x": SCRIPTS[0]}}},
    }
    notebook["metadata"]["kernelspec"] = {"name": SCRIPTS[0], "display_name": SCRIPTS[0]}
    notebook["metadata"]["language_info"] = {"name": SCRIPTS[0], "pygments_lexer": SCRIPTS[0]}


ATTACKS: list[Attack] = [
    attack("scripts", "raises errors full of markup", raises(SCRIPTS), *cells(SCRIPTS)),
    attack("terminal-codes", "raises errors that move a terminal's cursor", raises(TERMINAL),
           *cells(TERMINAL)),
    attack("turned-writing", "raises errors in writing that is turned or invisible",
           raises(TURNED), *cells(TURNED)),
    attack("formulas", "raises errors that a spreadsheet computes", raises(FORMULAS),
           *cells(FORMULAS)),
    Attack("markup-in-the-notebook", "fills cells, outputs and metadata with markup",
           edit=in_the_text),
]  # fmt: skip
