"""The parts that a page of a report is made of: its style, tables, figures and code.

One place for what a page may hold, so that all of it is escaped and nothing comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .report import escaped

CSS = """\
:root{color-scheme:light dark;--ink:#1b2026;--paper:#fff;--soft:#f2f5f8;--grey:#5a6672;
--blue:#1f5fa8;--orange:#c96a00;--pale:#d3dbe3;--violet:#9c4788;--brown:#8a5a2b;--red:#c62828}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ee;--paper:#14181d;--soft:#1e252c;
--grey:#9aa7b4;--blue:#6fa8e2;--orange:#f2a03d;--pale:#3b4650;--violet:#d58cc5;--brown:#c79a68;
--red:#ff7b72}}
@media print{:root{--ink:#000;--paper:#fff;--soft:#f2f5f8;--grey:#5a6672;--blue:#1f5fa8;
--orange:#c96a00;--pale:#d3dbe3;--violet:#9c4788;--brown:#8a5a2b;--red:#c62828}
figure,tr,.pair{break-inside:avoid}h2,h3,h4{break-after:avoid}nav,summary,.first{display:none}
details::details-content{content-visibility:visible;height:auto}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:66rem;margin:0 auto;padding:1rem 1rem 4rem}
h1{line-height:1.2}h2{margin:3rem 0 .5rem;padding-top:.5rem;border-top:2px solid var(--blue)}
h3{margin:2rem 0 .3rem}h4{margin:1.4rem 0 .2rem}p{max-width:46rem;margin:.3rem 0 .8rem}
a{color:var(--blue)}code,pre{font:.9em/1.4 ui-monospace,monospace}code{overflow-wrap:anywhere}
.how,figcaption,.small{color:var(--grey)}.small{font-size:.9em}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem 2rem;
align-items:start}.two>*{min-width:0}
figure{margin:.6rem 0;max-width:28rem}figure svg{width:100%;height:auto;color:var(--ink)}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.4rem 0 1rem;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .7rem .25rem 0;
border-bottom:1px solid var(--pale);overflow-wrap:anywhere}th{font-weight:600;overflow-wrap:normal}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;
padding-right:1.2rem}th.n{white-space:normal}
td:first-child:not(.n){min-width:9rem}h4 code{font-size:1em}
summary{cursor:pointer;color:var(--blue)}
.swatch{display:inline-block;width:.8em;height:.8em;margin-right:.5em;border:1px solid var(--grey);
print-color-adjust:exact}
.key{white-space:nowrap;margin-right:1rem}
.tag{border:1px solid var(--grey);border-radius:.3em;padding:0 .35em;font-size:.8em;
white-space:nowrap;color:var(--grey)}.hint{color:var(--orange)}
.fault{border-left:5px solid var(--red);background:var(--soft);padding:.6rem 1rem;margin:1rem 0}
svg *{stroke-linejoin:round;stroke-linecap:butt}
.pair{margin:1.5rem 0}pre{background:var(--soft);padding:.6rem;margin:.2rem 0;overflow-x:auto;
white-space:pre-wrap;overflow-wrap:anywhere}
"""


def document(title: str, body: str) -> str:
    """A whole page that needs nothing beside it."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escaped(title)}</title><style>\n{CSS}</style></head><body>\n"
        f"<h1>{escaped(title)}</h1>\n{body}</body></html>\n"
    )


def code(text: str) -> str:
    """Code as HTML that shows it; tabs are kept as spaces."""
    return escaped(text.expandtabs(4)).replace("<br>", "\n")


def two_lines(text: str, below: str) -> str:
    """What a cell says, and smaller what it is about."""
    return f'{escaped(text)}<div class="small">{escaped(below)}</div>'


def figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escaped(caption)}</figcaption></figure>"


def table(
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Iterable[int] = (),
    raw: bool = False,
) -> str:
    """A table of text; `numbers` are the columns set to the right.

    Names are HTML already, and so are the cells of `raw` rows.
    """
    numbers = set(numbers)

    def line(cells: Sequence[str], tag: str) -> str:
        right = [' class="n"' if at in numbers else "" for at in range(len(cells))]
        return "".join(f"<{tag}{r}>{c}</{tag}>" for c, r in zip(cells, right, strict=True))

    body = "".join(
        f"<tr>{line([c if raw else escaped(c) for c in row], 'td')}</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{line(names, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
