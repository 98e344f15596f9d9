"""The interactive figure of chapter rope: its numbers against NumPy's, its page in a browser.

The page under test embeds the figure as the build does, and is opened from disk like a built book
that somebody double-clicks.
"""

import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
STATIC = BOOK / "_static"
SOURCE = (BOOK / "figures" / "rope.js").read_text(encoding="utf-8")

spec = importlib.util.spec_from_file_location("figure", BOOK / "_ext" / "figure.py")
figure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figure)

DEGREE = math.pi / 180
INITIAL = {
    "m": 4,
    "n": 10,
    "theta": 5 * DEGREE,
    "qAngle": 20 * DEGREE,
    "kAngle": 50 * DEGREE,
    "qLength": 1.2,
    "kLength": 1.0,
    "together": False,
}

HARNESS = """<!doctype html>
<html lang="en"{theme}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{static}/course.css">
<script src="{static}/figures.js"></script>
<style>
html {{ --pst-color-text-base: #222832; --pst-color-background: #ffffff; }}
html[data-theme="dark"] {{ --pst-color-text-base: #ced6dd; --pst-color-background: #121212; }}
body {{
  margin: 16px; font-family: sans-serif;
  color: var(--pst-color-text-base); background: var(--pst-color-background);
}}
.cell {{ display: flex; }}
</style>
</head>
<body>
<p>before</p>
<div class="cell tag_static-figure"><img alt="the static picture"></div>
<div class="interactive" data-figure="rope"></div>{script}
<p>after</p>
</body>
</html>
"""


class Page:
    """The harness page in one browser tab: reads what it shows, and notes what it complains of."""

    def __init__(self, tab, complaints: list[str]):
        self.tab = tab
        self.complaints = complaints

    def text(self, role: str) -> str:
        return self.tab.locator(f'[data-role="{role}"]').inner_text()

    @property
    def product(self) -> float:
        """The inner product in full precision, as compute() gave it."""
        return float(self.tab.locator('[data-role="product"]').get_attribute("data-value"))

    def tip(self, name: str):
        return self.tab.locator(f'[data-tip="{name}"]')

    def position(self, name: str) -> int:
        return int(self.tip(name).get_attribute("aria-valuenow"))

    def set_slider(self, label: str, value: float) -> None:
        self.tab.get_by_label(label, exact=True).fill(str(value))

    def lock(self) -> None:
        self.tab.get_by_label("Turn both together").check()

    def place(self, angle: float, length: float) -> tuple[float, float]:
        """Where on the screen a point of the plane lies (112 of 380 drawing units are length 1)."""
        box = self.tab.locator(".interactive svg").bounding_box()
        radius = length * 112 / 380 * box["width"]
        x = box["x"] + box["width"] / 2 + radius * math.cos(angle * DEGREE)
        y = box["y"] + box["height"] / 2 - radius * math.sin(angle * DEGREE)
        return x, y

    def drag(self, start: float, end: float, length: float) -> None:
        """Drags what lies at an angle in degrees to another angle, along the arc."""
        mouse = self.tab.mouse
        mouse.move(*self.place(start, length))
        mouse.down()
        for angle in np.linspace(start, end, 12):
            mouse.move(*self.place(float(angle), length))
        mouse.up()


@pytest.fixture
def open_page(browser, tmp_path) -> Iterator[Callable[..., Page]]:
    """Opens the harness page; keywords change the module, the theme or the browser context."""
    contexts = []

    def open_with(
        source: str = SOURCE, theme: str = "light", ready: bool = True, **context
    ) -> Page:
        script = figure.inline_script("rope", source)
        html = HARNESS.format(static=STATIC.as_uri(), script=script, theme=f' data-theme="{theme}"')
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **context))
        tab = contexts[-1].new_page()
        tab.set_default_timeout(5000)
        complaints: list[str] = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "console",
            lambda line: (
                complaints.append(line.text) if line.type in ("error", "warning") else None
            ),
        )
        tab.on("request", lambda request: check_local(request.url, complaints))
        tab.goto(path.as_uri())
        if ready:
            tab.wait_for_selector('.interactive[data-ready="true"]')
        return Page(tab, complaints)

    yield open_with
    for context in contexts:
        context.close()


def check_local(url: str, complaints: list[str]) -> None:
    if not url.startswith(("file:", "data:")):
        complaints.append(f"asks the network for {url}")


@pytest.fixture
def pure(open_page) -> Callable[..., object]:
    """Calls one of the module's exports in the browser, with JSON in and out."""
    handed_out = SOURCE + "\nwindow.pure = { compute, moveTo, rotate, number, changeText };\n"
    page = open_page(source=handed_out)

    def call(name: str, *arguments: object) -> object:
        script = "([name, text]) => JSON.stringify(window.pure[name](...JSON.parse(text)))"
        return json.loads(page.tab.evaluate(script, [name, json.dumps(arguments)]))

    return call


# ------------------------------------------------------------------------ numbers


def expected_view(state: dict) -> dict:
    """The view by complex numbers: a turn is a factor exp(i angle)."""
    q = state["qLength"] * np.exp(1j * state["qAngle"])
    k = state["kLength"] * np.exp(1j * state["kAngle"])
    q_turned = q * np.exp(1j * state["m"] * state["theta"])
    k_turned = k * np.exp(1j * state["n"] * state["theta"])
    product = (np.conj(q_turned) * k_turned).real
    cosine = product / (state["qLength"] * state["kLength"])
    return {
        "q": [q_turned.real, q_turned.imag],
        "k": [k_turned.real, k_turned.imag],
        "offset": state["n"] - state["m"],
        "innerProduct": product,
        "angleBetween": np.arccos(np.clip(cosine, -1, 1)),
    }


def random_states(count: int) -> list[dict]:
    rng = np.random.default_rng(7)
    return [
        {
            "m": int(rng.integers(0, 73)),
            "n": int(rng.integers(0, 73)),
            "theta": float(rng.uniform(0.01, 1.0)),
            "qAngle": float(rng.uniform(-3, 3)),
            "kAngle": float(rng.uniform(-3, 3)),
            "qLength": float(rng.uniform(0.2, 1.5)),
            "kLength": float(rng.uniform(0.2, 1.5)),
            "together": False,
        }
        for _ in range(count)
    ]


def test_compute_agrees_with_numpy(pure):
    for state in random_states(40):
        view, expected = pure("compute", state), expected_view(state)
        # Angles reach 75 rad, whose last bit is 1.4e-14; a dozen operations stay below 1e-12.
        for name in ("q", "k", "innerProduct", "offset"):
            np.testing.assert_allclose(view[name], expected[name], rtol=0, atol=1e-12, err_msg=name)
        # arccos loses half the digits near 0 and pi, where the figure's arctan does not.
        np.testing.assert_allclose(view["angleBetween"], expected["angleBetween"], atol=1e-7)


def test_the_inner_product_is_the_one_of_the_offset_alone(pure):
    for state in random_states(20):
        view = pure("compute", state)
        assert view["relative"] == pytest.approx(view["innerProduct"], abs=1e-12)


def test_one_quarter_turn_is_counterclockwise(pure):
    assert pure("rotate", [1, 0], math.pi / 2) == pytest.approx([0, 1], abs=1e-15)


def test_moving_both_keeps_the_inner_product_and_moving_one_does_not(pure):
    start = pure("compute", INITIAL)["innerProduct"]
    assert start == pytest.approx(1.2 * math.cos(math.pi / 3), abs=1e-12)
    for position in range(0, 67):
        both = pure("moveTo", {**INITIAL, "together": True}, "q", position)
        assert (both["m"], both["n"]) == (position, position + 6)
        assert pure("compute", both)["innerProduct"] == pytest.approx(start, abs=1e-12)
    one = pure("moveTo", INITIAL, "q", 9)
    assert (one["m"], one["n"]) == (9, 10)
    assert abs(pure("compute", one)["innerProduct"] - start) > 0.1


def test_locked_arrows_stop_together_at_the_ends(pure):
    locked = {**INITIAL, "together": True}
    assert [pure("moveTo", locked, "q", 72)[key] for key in "mn"] == [66, 72]
    assert [pure("moveTo", locked, "k", 0)[key] for key in "mn"] == [0, 6]


@pytest.mark.parametrize(
    ("change", "relation"),
    [
        ({}, "acute"),
        ({"n": 25}, "obtuse"),
        ({"n": 16}, "perpendicular"),
        ({"n": 52}, "perpendicular"),
        ({"m": 16}, "same"),
        ({"n": 34}, "opposite"),  # 30 degrees apart before turning, 150 from the offset
        ({"qLength": 0}, "q-zero"),
        ({"kLength": 0}, "k-zero"),
        ({"qLength": 0, "kLength": 0}, "both-zero"),
    ],
)
def test_special_positions_are_recognised(pure, change, relation):
    view = pure("compute", {**INITIAL, **change})
    assert view["relation"] == relation
    assert (view["angleBetween"] is None) == relation.endswith("zero")


def test_numbers_have_a_true_minus_and_no_negative_zero(pure):
    assert pure("number", -1.239) == "\u22121.24"
    assert pure("number", -1e-17) == "0.00"
    assert pure("number", 0.6) == "0.60"


# ------------------------------------------------------------------------ the page


def test_the_live_figure_takes_the_place_of_the_picture(open_page):
    page = open_page()
    assert page.tab.locator(".tag_static-figure").is_hidden()
    assert page.text("product") == "0.60"
    assert page.text("offset") == "6 (30°)"
    assert page.text("angle") == "60°"
    assert page.complaints == []


def test_dragging_one_arrow_moves_the_number(open_page):
    page = open_page()
    page.drag(40, 70, length=1.2)  # q stands at 20 + 4 * 5 degrees
    assert (page.position("q"), page.position("k")) == (10, 10)
    assert page.product == pytest.approx(1.2 * math.cos(30 * DEGREE), abs=1e-12)
    assert page.text("product") == "1.04"
    assert page.text("change") == (
        "Only q moved, from position 4 to 10. "
        "The offset went from 6 to 0, the inner product from 0.60 to 1.04."
    )
    assert page.complaints == []


def test_dragging_with_the_lock_turns_both_and_the_number_stays(open_page):
    page = open_page()
    page.lock()
    page.drag(100, 300, length=1.0)  # k stands at 50 + 10 * 5 degrees
    assert (page.position("q"), page.position("k")) == (44, 50)
    assert page.product == pytest.approx(0.6, abs=1e-12)
    assert page.text("product") == "0.60"
    assert page.text("offset") == "6 (30°)"
    assert page.text("change") == (
        "Both moved by 40 positions (200°). "
        "The offset is still 6, and the inner product is still 0.60."
    )
    assert page.complaints == []


def test_an_arrow_can_be_taken_by_its_shaft_and_let_go(open_page):
    page = open_page()
    page.drag(40, 55, length=0.5)
    assert page.position("q") == 7
    page.tab.mouse.move(*page.place(120, 0.5))
    assert page.position("q") == 7


def test_a_drag_stops_at_the_ends_and_says_so(open_page):
    page = open_page()
    page.drag(40, -20, length=1.2)
    assert page.position("q") == 0
    assert "Positions in this figure run from 0 to 72." in page.text("change")


def test_a_finger_turns_an_arrow(open_page):
    page = open_page(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    page.tab.locator(".interactive svg").scroll_into_view_if_needed()
    session = page.tab.context.new_cdp_session(page.tab)

    def touch(kind: str, *angles: float) -> None:
        points = [dict(zip("xy", page.place(angle, 1.2), strict=True)) for angle in angles]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    scrolled = page.tab.evaluate("scrollY")
    touch("touchStart", 40)
    for angle in range(44, 101, 4):
        touch("touchMove", angle)
    touch("touchEnd")
    assert page.position("q") == 16
    assert page.product == pytest.approx(1.2, abs=1e-12)
    assert page.tab.evaluate("scrollY") == scrolled


@pytest.mark.parametrize(
    ("keys", "m"),
    [
        (["ArrowUp"], 5),
        (["ArrowRight", "ArrowRight"], 6),
        (["ArrowLeft"], 3),
        (["ArrowDown"], 3),
        (["PageUp"], 10),
        (["PageUp", "PageDown", "PageDown"], 0),
        (["End"], 72),
        (["End", "Home"], 0),
    ],
)
def test_keys_turn_the_focused_arrow(open_page, keys, m):
    page = open_page()
    page.tip("q").focus()
    for key in keys:
        page.tab.keyboard.press(key)
    assert (page.position("q"), page.position("k")) == (m, 10)
    state = {**INITIAL, "m": m}
    assert page.product == pytest.approx(expected_view(state)["innerProduct"], abs=1e-12)


def test_keys_with_the_lock_keep_the_number(open_page):
    page = open_page()
    page.lock()
    page.tip("k").focus()
    for _ in range(5):
        page.tab.keyboard.press("ArrowUp")
    assert (page.position("q"), page.position("k")) == (9, 15)
    assert page.text("product") == "0.60"


def test_arrow_keys_do_not_reach_the_page(open_page):
    page = open_page()
    page.tab.evaluate("document.addEventListener('keydown', (e) => { window.heard = e.key; })")
    page.tip("q").focus()
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.evaluate("window.heard ?? null") is None
    page.tab.keyboard.press("x")
    assert page.tab.evaluate("window.heard") == "x"


def test_every_control_is_reached_by_tab_and_has_a_name(open_page):
    page = open_page()
    names = []
    for _ in range(8):
        page.tab.keyboard.press("Tab")
        names.append(
            page.tab.evaluate(
                "(() => { const e = document.activeElement; return e.getAttribute('aria-label')"
                " ?? e.labels?.[0]?.textContent ?? e.textContent; })()"
            )
        )
    assert names == [
        "Arrow q, position m",
        "Arrow k, position n",
        "Turn both together",
        "Reset",
        "Position m of q",
        "Length of q",
        "Position n of k",
        "Length of k",
    ]


def test_sliders_move_positions_and_lengths(open_page):
    page = open_page()
    page.set_slider("Position n of k", 16)
    assert page.text("product") == "0.00"
    page.set_slider("Position n of k", 4)
    page.set_slider("Length of q", 0.6)
    state = {**INITIAL, "n": 4, "qLength": 0.6}
    assert page.product == pytest.approx(expected_view(state)["innerProduct"], abs=1e-12)
    assert page.text("change").startswith("The length of q went from 1.2 to 0.6")


def test_sliders_with_the_lock_keep_the_number(open_page):
    page = open_page()
    page.lock()
    page.set_slider("Position m of q", 40)
    assert (page.position("q"), page.position("k")) == (40, 46)
    assert page.product == pytest.approx(0.6, abs=1e-12)


def test_a_locked_slider_springs_back_where_the_other_arrow_ends(open_page):
    page = open_page()
    page.lock()
    page.set_slider("Position m of q", 72)
    assert page.tab.get_by_label("Position m of q").input_value() == "66"
    assert "Positions in this figure run from 0 to 72." in page.text("change")


@pytest.mark.parametrize(
    ("sliders", "sentence"),
    [
        ({"Position n of k": 16}, "The arrows are perpendicular: the inner product is 0."),
        ({"Position m of q": 16}, "The arrows point the same way"),
        ({"Position n of k": 34}, "The arrows point in opposite directions"),
        ({"Length of q": 0}, "q has length 0"),
        ({"Length of k": 0}, "k has length 0"),
        ({"Length of q": 0, "Length of k": 0}, "Both arrows have length 0"),
        ({"Position n of k": 25}, "More than a right angle"),
        ({"Position n of k": 11}, "Less than a right angle"),
    ],
)
def test_words_name_the_special_states(open_page, sliders, sentence):
    page = open_page()
    for label, value in sliders.items():
        page.set_slider(label, value)
    assert page.text("relation").startswith(sentence)
    drawn = page.tab.locator(".interactive svg").inner_html()
    assert not re.search("NaN|Infinity|undefined", drawn)
    assert page.complaints == []


def test_the_number_is_read_out_once_it_rests(open_page):
    page = open_page()
    page.tip("q").focus()
    page.tab.keyboard.press("PageUp")
    status = page.tab.get_by_role("status")
    page.tab.wait_for_function("document.querySelector('[role=status]').textContent !== ''")
    assert status.text_content().startswith("Inner product 1.04.")
    assert status.get_attribute("aria-live") == "polite"
    assert page.tip("q").get_attribute("aria-valuetext") == "position 10, turned by 50°"


def test_reset_restores_the_first_state(open_page):
    page = open_page()
    page.lock()
    page.set_slider("Position m of q", 30)
    page.set_slider("Length of k", 0.3)
    page.tab.get_by_role("button", name="Reset").click()
    assert (page.position("q"), page.position("k")) == (4, 10)
    assert page.text("product") == "0.60"
    assert not page.tab.get_by_label("Turn both together").is_checked()


def test_two_figures_on_one_page_do_not_share_their_state(open_page):
    twice = SOURCE + (
        "\nconst second = document.createElement('div');"
        "\nsecond.className = 'interactive second'; second.dataset.ready = 'true';"
        "\ndocument.body.append(second); mount(second, { state: { m: 10 } });\n"
    )
    page = open_page(source=twice)
    second = page.tab.locator(".second")
    second.get_by_label("Position n of k").fill("10")
    assert page.tab.locator('[data-figure] [data-role="product"]').inner_text() == "0.60"
    assert second.locator('[data-role="product"]').inner_text() == "1.04"


# ------------------------------------------------------------------------ when it does not start


@pytest.mark.parametrize(
    "source",
    [
        "export function mount() { throw new Error('broken on purpose'); }",
        "export function mount(root) { root.append('half'); throw new Error('broken'); }",
        "export function mount( {",
        "throw new Error('broken before mount'); export function mount() {}",
    ],
    ids=["mount fails", "mount fails half-way", "no JavaScript", "module fails"],
)
def test_the_picture_stays_when_the_figure_fails(open_page, source):
    page = open_page(source=source, ready=False)
    page.tab.wait_for_function("document.readyState === 'complete'")
    assert page.tab.locator(".tag_static-figure").is_visible()
    assert page.tab.locator(".interactive").is_hidden()
    assert page.tab.locator(".interactive").inner_text() == ""
    assert page.complaints  # a fault is for the console, not for the reader


def test_the_picture_stays_without_javascript(open_page):
    page = open_page(ready=False, java_script_enabled=False)
    assert page.tab.locator(".tag_static-figure").is_visible()
    assert page.tab.locator(".interactive").is_hidden()


# ------------------------------------------------------------------------ looks


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_no_width_scrolls_sideways(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    frame = page.tab.locator(".interactive .frame").bounding_box()
    for part in page.tab.locator(".interactive :is(svg, input, label, span, p, strong)").all():
        if "spoken" in (part.get_attribute("class") or ""):
            continue
        box = part.bounding_box()
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1


def luminance(color: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_have_contrast(open_page, theme):
    page = open_page(theme=theme)

    def color(selector: str, name: str) -> float:
        script = "([s, n]) => getComputedStyle(document.querySelector(s))[n]"
        return luminance(page.tab.evaluate(script, [selector, name]))

    sheet = color(".interactive .frame", "backgroundColor")
    assert (sheet > 0.5) == (theme == "light")

    def contrast(value: float) -> float:
        return (max(value, sheet) + 0.05) / (min(value, sheet) + 0.05)

    assert contrast(color(".interactive [data-role=product]", "color")) >= 7
    for arrow in ("q", "k"):  # WCAG 1.4.11 asks 3 of a graphic and of large text
        assert contrast(color(f".arrow-{arrow} .shaft", "stroke")) >= 3
        assert contrast(color(f".arrow-{arrow} .name", "fill")) >= 3


def test_nothing_slides_for_readers_who_ask_for_stillness(open_page):
    page = open_page(reduced_motion="reduce")
    script = "getComputedStyle(document.querySelector('.interactive .fill')).transitionDuration"
    assert page.tab.evaluate(script) == "0s"


# ------------------------------------------------------------------------ the build


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
    html, warnings = build_page(tmp_path, "rope")
    assert warnings == ""
    block, script = html.index('data-figure="rope"'), html.index('<script type="module">')
    assert block < script < html.index("After.")
    assert figure.inline_script("rope", SOURCE) in html
    assert (tmp_path / "html" / "_static" / "figures.js").is_file()
    assert (tmp_path / "html" / "_static" / "course.css").is_file()


def test_the_build_warns_of_a_figure_without_module(tmp_path, extension_path):
    html, warnings = build_page(tmp_path, "no_such_figure")
    assert "no figure 'no_such_figure'" in warnings
    assert '<script type="module">' not in html


def test_a_module_that_would_end_its_script_element_is_refused():
    with pytest.raises(ValueError, match="cannot hold '</script'"):
        figure.inline_script("waves", "const text = '</script>';")
