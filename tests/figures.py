"""What the tests of interactive figures share: a page that shows one, and its pure part in node.

The page embeds the figure as the build does, and is opened from disk like a built book that
somebody double-clicks.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BOOK = Path(__file__).resolve().parent.parent / "book"
FIGURES = BOOK / "figures"
STATIC = BOOK / "_static"
STEMS = sorted(path.stem for path in FIGURES.glob("[!_]*.js"))
KIT = (FIGURES / "_kit.js").read_text(encoding="utf-8")

spec = importlib.util.spec_from_file_location("figure", BOOK / "_ext" / "figure.py")
extension = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extension)

# ------------------------------------------------------------------------ the pure part, in node

NO_NODE = "NO NODE: tests of what the figures compute do not run. Install Node.js 20 or later."

# JSON has no NaN and no infinities; they come back as texts that float() and NumPy understand.
PROGRAM = """
import { readFileSync } from "node:fs";
const [file, name, calls] = JSON.parse(readFileSync(0, "utf-8"));
const module = await import(file);
const plain = (_, value) => {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return ArrayBuffer.isView(value) ? [...value] : value;
};
const results = calls === null ? module[name] : calls.map((call) => module[name](...call));
console.log(JSON.stringify(results ?? null, plain));
"""


def node(program: str, given: object) -> Any:
    """Runs a program in node: `given` as JSON on its standard input, JSON back from its output."""
    if shutil.which("node") is None:
        warnings.warn(NO_NODE, stacklevel=2)
        pytest.skip(NO_NODE)
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def address(stem: str) -> str:
    return (FIGURES / f"{stem}.js").as_uri()


def constant(stem: str, name: str) -> Any:
    """The value of one of a module's exports, such as INITIAL."""
    return node(PROGRAM, [address(stem), name, None])


def call(stem: str, name: str, *calls: tuple | list) -> list[Any]:
    """What an exported function returns for each list of arguments; one node for all of them."""
    return node(PROGRAM, [address(stem), name, calls])


def compute(stem: str, states: list[dict]) -> list[dict]:
    """The views of some states, each given by what differs from the figure's INITIAL."""
    initial = constant(stem, "INITIAL")
    return call(stem, "compute", *[[{**initial, **state}] for state in states])


# ------------------------------------------------------------------------ the page, in a browser

HARNESS = """<!doctype html>
<html lang="en" data-theme="{theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{static}/course.css">
<script src="{static}/figures.js"></script>
<style>
html {{
  --pst-color-text-base: #222832; --pst-color-text-muted: #48566b;
  --pst-color-background: #ffffff; --pst-color-border: #d1d5da;
}}
html[data-theme="dark"] {{
  --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
  --pst-color-background: #121212; --pst-color-border: #48566b;
}}
body {{
  margin: 16px; font-family: sans-serif;
  color: var(--pst-color-text-base); background: var(--pst-color-background);
}}
div.cell {{ display: flex; }}
</style>
</head>
<body>
<p>before</p>
<div class="cell tag_static-figure"><img alt="the static picture"></div>
<div class="interactive" data-figure="{stem}"></div>{script}
<p>after</p>
</body>
</html>
"""

# Parts of the figure that stick out of its frame, by name. What is only read out has no place.
OUTSIDE = """() => {
  const frame = document.querySelector(".interactive .frame").getBoundingClientRect();
  const kinds = "svg, svg text, input, select, button, label, span, p, strong, dd";
  return [...document.querySelectorAll(`.interactive :is(${kinds}):not(.spoken)`)]
    .filter((part) => {
      const { left, right, width } = part.getBoundingClientRect();
      return width > 0 && (left < frame.left - 1 || right > frame.right + 1);
    })
    .map((part) => `${part.tagName} ${part.textContent.trim().slice(0, 40)}`);
}"""


def source_of(stem: str) -> str:
    return (FIGURES / f"{stem}.js").read_text(encoding="utf-8")


def page_of(stem: str, source: str, theme: str) -> str:
    """The HTML of a page that shows a figure."""
    script = extension.inline_script(stem, source, KIT)
    return HARNESS.format(static=STATIC.as_uri(), stem=stem, script=script, theme=theme)


def luminance(color: str) -> float:
    """The relative luminance (WCAG) of a CSS color such as `rgb(31, 95, 168)`."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


class FigurePage:
    """A figure's page in one browser tab: reads what it shows, notes what it complains of."""

    def __init__(self, tab: Any):
        self.tab = tab
        self.complaints: list[str] = []
        tab.set_default_timeout(5000)
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("console", self.hear)
        tab.on("request", self.watch)

    def hear(self, line: Any) -> None:
        if line.type in ("error", "warning"):
            self.complaints.append(line.text)

    def watch(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.complaints.append(f"asks the network for {request.url}")

    def part(self, role: str) -> Any:
        return self.tab.locator(f'[data-role="{role}"]')

    def text(self, role: str) -> str:
        return self.part(role).inner_text()

    def value(self, role: str) -> float:
        """A reading in full precision, as compute() gave it."""
        return float(self.part(role).get_attribute("data-value"))

    def control(self, label: str) -> Any:
        return self.tab.get_by_label(label, exact=True)

    def set_slider(self, label: str, value: float) -> None:
        self.control(label).fill(str(value))

    def choose(self, label: str, value: str) -> None:
        self.control(label).select_option(value)

    def tick(self, label: str, ticked: bool = True) -> None:
        self.control(label).set_checked(ticked)

    def press(self, words: str) -> None:
        self.tab.get_by_role("button", name=words, exact=True).click()

    def spoken(self) -> str:
        """What is read out once the figure rests."""
        self.tab.wait_for_function("document.querySelector('[role=status]').textContent !== ''")
        return self.tab.get_by_role("status").text_content()

    def drawn(self) -> str:
        """The drawing's markup, and all text beside it."""
        return self.tab.locator(".interactive").inner_html()

    def outside(self) -> list[str]:
        """Parts that stick out of the frame, and the page itself where it scrolls sideways."""
        width = self.tab.viewport_size["width"]
        wider = self.tab.evaluate("document.documentElement.scrollWidth") > width
        return self.tab.evaluate(OUTSIDE) + (["the page"] if wider else [])

    def color(self, selector: str, name: str) -> str:
        script = "([s, n]) => getComputedStyle(document.querySelector(s))[n]"
        return self.tab.evaluate(script, [f".interactive {selector}", name])

    def contrast(self, selector: str, name: str) -> float:
        """The contrast (WCAG) of a part's color to the figure's ground; 3 is asked of graphics."""
        ground = luminance(self.color(".frame", "backgroundColor"))
        value = luminance(self.color(selector, name))
        return (max(value, ground) + 0.05) / (min(value, ground) + 0.05)
