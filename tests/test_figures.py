"""What holds for every interactive figure, whatever it shows."""

import math
import re

import pytest

from tests.figures import STEMS, address, call, luminance, node, source_of

each = pytest.mark.parametrize("stem", STEMS)
SIZES = {"wide": {"width": 1200, "height": 900}, "narrow": {"width": 360, "height": 800}}

# ------------------------------------------------------------------------ the module


@each
def test_node_imports_the_module_with_its_three_exports(stem):
    program = """
    import { readFileSync } from "node:fs";
    const { compute, mount, INITIAL } = await import(JSON.parse(readFileSync(0, "utf-8")));
    console.log(JSON.stringify([typeof compute, typeof mount, typeof INITIAL]));
    """
    assert node(program, address(stem)) == ["function", "function", "object"]


@each
def test_compute_leaves_its_state_alone_and_repeats_itself(stem):
    """On a state frozen to its depths a module, which is strict, fails where it writes."""
    program = """
    import { readFileSync } from "node:fs";
    const { compute, INITIAL } = await import(JSON.parse(readFileSync(0, "utf-8")));
    const freeze = (value) => {
      if (value === null || typeof value !== "object") return value;
      Object.values(value).forEach(freeze);
      return Object.freeze(value);
    };
    const frozen = freeze(structuredClone(INITIAL));
    const [first, second] = [compute(frozen), compute(structuredClone(INITIAL))];
    console.log(JSON.stringify([JSON.stringify(first) === JSON.stringify(second),
      JSON.stringify(frozen) === JSON.stringify(INITIAL), Object.isFrozen(INITIAL)]));
    """
    repeats, alone, initial_is_frozen = node(program, address(stem))
    assert repeats and alone
    assert initial_is_frozen, "export const INITIAL = Object.freeze({ … })"


@each
def test_the_module_asks_nobody_and_leaves_nothing_behind(stem):
    source = source_of(stem)
    found = re.findall(r"\bfetch\(|XMLHttpRequest|localStorage|https?://|\bwindow\.\w+ =", source)
    assert found == []


def test_numbers_have_a_true_minus_and_no_negative_zero():
    shown = call("_kit", "number", [-1.239], [-1e-17], [0.6], [-3.7, 0])
    assert shown == ["\u22121.24", "0.00", "0.60", "\u22124"]


# ------------------------------------------------------------------------ the page


@each
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_figure_mounts_in_place_of_the_picture_and_fits(open_figure, stem, theme, size):
    page = open_figure(stem, theme=theme, viewport=SIZES[size])
    assert page.tab.locator(".tag_static-figure").is_hidden()
    assert (luminance(page.color(".frame", "backgroundColor")) > 0.5) == (theme == "light")
    assert page.outside() == []


@each
def test_every_control_and_every_drawing_has_a_name(open_figure, stem):
    page = open_figure(stem)
    nameless = page.tab.evaluate("""() => {
      const words = (ids) => (ids ?? "").split(" ").map((id) =>
        document.getElementById(id)?.textContent ?? "").join(" ");
      const name = (part) => part.getAttribute("aria-label") || words(
        part.getAttribute("aria-labelledby")) || part.labels?.[0]?.textContent ||
        (part.matches("button") ? part.textContent : "");
      const kinds = "input, select, button, textarea, [tabindex], [role=slider], svg, .frame";
      return [...document.querySelectorAll(`.interactive :is(${kinds}):not([aria-hidden=true])`)]
        .filter((part) => !name(part).trim()).map((part) => part.outerHTML.slice(0, 120));
    }""")
    assert nameless == []
    assert page.tab.locator(".interactive [role=status][aria-live=polite]").count() == 1


@each
def test_labels_do_not_repeat(open_figure, stem):
    page = open_figure(stem)
    labels = page.tab.locator(".interactive label").all_inner_texts()
    assert len(labels) == len(set(labels))


@each
def test_every_control_goes_to_its_ends(open_figure, stem):
    """Where a control ends is where a division by zero hides."""
    page = open_figure(stem)

    def sound() -> None:
        assert not re.search(r"NaN|Infinity|undefined", page.drawn())

    sound()
    for control in page.tab.locator(".interactive input[type=range]").all():
        for end in ("max", "min"):
            control.fill(control.get_attribute(end))
            sound()
    for control in page.tab.locator(".interactive select").all():
        for value in control.evaluate("(e) => [...e.options].map((option) => option.value)"):
            control.select_option(value)
            sound()
    for control in page.tab.locator(".interactive input[type=checkbox]").all():
        control.click()
        sound()
    for control in page.tab.locator(".interactive button:enabled").all():
        control.click()
        sound()


@each
def test_nothing_moves_for_readers_who_ask_for_stillness(open_figure, stem):
    page = open_figure(stem, reduced_motion="reduce")
    assert page.tab.evaluate("document.getAnimations().length") == 0


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
def test_the_picture_stays_when_the_figure_fails(open_figure, source):
    page = open_figure("broken", source=source, ready=False)
    page.tab.wait_for_function("document.readyState === 'complete'")
    assert page.tab.locator(".tag_static-figure").is_visible()
    assert page.tab.locator(".interactive").is_hidden()
    assert page.tab.locator(".interactive").inner_text() == ""
    assert page.complaints  # a fault is for the console, not for the reader


def test_the_picture_stays_without_javascript(open_figure):
    page = open_figure(STEMS[0], ready=False, java_script_enabled=False)
    assert page.tab.locator(".tag_static-figure").is_visible()
    assert page.tab.locator(".interactive").is_hidden()


# ------------------------------------------------------------------------ the kit's styles

SAMPLE = """
import { checkbox, drawing, frame, html, select, svg, voice } from "./_kit.js";

const number = "the kit's names are free where they are not imported";

export function mount(root) {
  const tones = [1, 2, 3].map((i) => svg("path", { class: `line series-${i}`, d: "M 0 0 H 9" }));
  const cell = svg("rect", { class: "cell", width: 9, height: 9, style: "--share: 0.25" });
  const small = svg("text", { class: "small", y: 9 }, number);
  const choice = select("sample", "kind", ["Kind"], [["a", "first"], ["b", "second"]]);
  const tick = checkbox("sample", "on", ["On"]);
  root.replaceChildren(frame("Sample", {
    picture: [drawing("sample", "A sample", [0, 0, 400, 400], ...tones, cell, small)],
    panel: [choice.row, tick.row],
    words: [html("p", {}, "words")],
    live: voice().node,
  }));
}
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_tones_stand_out_in_both_themes(open_figure, theme):
    page = open_figure("sample", source=SAMPLE, theme=theme)
    for series in (1, 2, 3):
        assert page.contrast(f".series-{series}", "stroke") >= 3
    assert page.contrast("svg text.small", "fill") >= 4.5
    ground, tone = page.color(".frame", "backgroundColor"), page.color(".series-1", "stroke")
    shown = [float(part) for part in re.findall(r"[\d.]+", page.color(".cell", "fill"))[-3:]]
    ends = [[int(part) for part in re.findall(r"\d+", color)] for color in (ground, tone)]
    for got, low, high in zip(shown, *ends, strict=True):
        got = got * 255 if max(shown) <= 1 else got  # color(srgb …) or rgb(…)
        assert math.isclose(got, low + 0.25 * (high - low), abs_tol=1)
