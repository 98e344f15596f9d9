"""The interactive figure of chapter context_extension: its numbers against the reference's."""

import numpy as np
import pytest

from solutions.with_numpy.context_extension import (
    llama3_frequencies,
    ntk_base,
    yarn_attention_factor,
    yarn_frequencies,
)
from solutions.with_numpy.rope import rope_angles
from tests.figures import FigurePage, call, compute, constant

STEM = "context_extension"
METHODS = ["none", "linear", "ntk", "yarn", "llama3"]
STATES = [
    {"method": method, "factor": factor, "trained": trained, "dim": dim, "base": base}
    for method in METHODS
    for factor, trained, dim, base in [
        (8, 4096, 128, 10000),
        (4, 2048, 64, 10000),
        (32, 8192, 128, 500000),
        (3, 2048, 64, 500000),
        (1, 8192, 64, 10000),
    ]
]


def reference(method: str, factor: float, trained: int, dim: int, base: float) -> np.ndarray:
    """The frequencies of the chapter's solution."""
    plain = rope_angles(1, dim, base)
    if method == "ntk":
        return rope_angles(1, dim, ntk_base(base, factor, dim))
    if method == "yarn":
        return yarn_frequencies(dim, base, factor, trained)
    if method == "llama3":
        return llama3_frequencies(dim, base, factor, trained)
    return plain / factor if method == "linear" else plain


def test_ratios_and_turns_are_those_of_the_reference():
    for state, view in zip(STATES, compute(STEM, STATES), strict=True):
        plain = rope_angles(1, state["dim"], state["base"])
        new = reference(**state)
        before = state["trained"] * plain / (2 * np.pi)
        after = state["factor"] * state["trained"] * new / (2 * np.pi)
        # A dozen operations and two powers, each good to an ulp or two: 1e-13 relative.
        for name, expected in [("ratio", new / plain), ("before", before), ("after", after)]:
            shown = [pair[name] for pair in view["pairs"]]
            np.testing.assert_allclose(shown, expected, rtol=1e-13, err_msg=name)


def test_fates_are_counted_as_the_chapter_counts_them():
    for state, view in zip(STATES, compute(STEM, STATES), strict=True):
        before = np.array([pair["before"] for pair in view["pairs"]])
        after = np.array([pair["after"] for pair in view["pairs"]])
        fresh = (before < 1) & (after > before * (1 + 1e-6))
        assert view["fresh"] == fresh.sum()
        assert view["slow"] == np.sum(before < 1)
        fates = np.array([pair["fate"] for pair in view["pairs"]])
        assert np.array_equal(fates == "new", fresh)
        assert np.array_equal(fates == "whole", before >= 1)
        expected = yarn_attention_factor(state["factor"]) ** 2 if state["method"] == "yarn" else 1
        assert view["sharper"] == pytest.approx(expected, rel=1e-14)


def test_the_chapters_counts_for_its_head_at_factor_4():
    views = compute(STEM, [{"method": method, "factor": 4} for method in METHODS])
    assert [view["slow"] for view in views] == [18] * 5
    assert [view["fresh"] for view in views] == [18, 0, 17, 0, 0]
    assert [view["kept"] for view in views] == [64, 0, 1, 21, 36]


def test_factor_one_stretches_nothing_whatever_the_method():
    for view in compute(STEM, [{"method": method, "factor": 1} for method in METHODS]):
        assert (view["fresh"], view["kept"], view["sharper"]) == (0, 64, 1)


def test_the_mark_stays_on_the_head():
    narrow, wide = compute(STEM, [{"dim": 64, "pair": 63}, {"pair": 63}])
    assert narrow["marked"]["index"] == 31
    assert wide["marked"]["index"] == 63


def test_turns_are_written_with_the_digits_they_deserve():
    shown = call(STEM, "amount", [651.9], [36.659], [1.0039], [0.4889], [0.0753], [0.0032])
    assert shown == ["652", "36.7", "1.00", "0.49", "0.075", "0.0032"]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"factor": 1}, "Factor 1: nothing is stretched"),
        ({"pair": 0}, "Pair 0 made 652 turns in training and knows every angle. It is kept."),
        ({"pair": 0, "method": "linear"}, "Pair 0 made 652 turns in training and knows every "),
        ({"pair": 46}, "Pair 46 knows a slice of 0.87 turns and stays in it, slowed to 0.125."),
        ({"pair": 46, "method": "ntk"}, "Pair 46 knows a slice of 0.87 turns and now goes to"),
    ],
)
def test_the_words_name_the_fate_of_the_marked_pair(state, sentence):
    initial = constant(STEM, "INITIAL")
    (view,) = compute(STEM, [state])
    (text,) = call(STEM, "relationText", [{**initial, **state}, view])
    assert text.startswith(sentence)


# ------------------------------------------------------------------------ the page


@pytest.fixture
def page(open_figure) -> FigurePage:
    return open_figure(STEM)


def test_the_figure_opens_on_yarn_with_no_pair_in_danger(page):
    assert page.text("fresh") == "0 of 64"
    assert (page.text("before"), page.text("ratio")) == ("0.87", "0.125")
    assert page.text("sharper") == "1.46"
    assert page.control("Factor").get_attribute("aria-valuetext") == "8: 4096 to 32768"


@pytest.mark.parametrize(
    ("method", "fresh", "kept"),
    [("none", 18, 64), ("linear", 0, 0), ("ntk", 17, 1), ("llama3", 0, 36)],
)
def test_choosing_a_method_counts_the_pairs_anew(page, method, fresh, kept):
    page.choose("Method", method)
    assert page.text("fresh") == f"{fresh} of 64"
    assert page.text("kept") == f"{kept} of 64"
    assert ("is slowed to 0.125" in page.text("change")) == (method == "linear")
    joined = "[...document.querySelectorAll('path.series-2')].filter((p) => !p.style.display)"
    assert page.tab.evaluate(f"{joined}.length") == fresh


def test_a_narrower_head_takes_the_mark_along(page):
    page.set_slider("Marked pair", 60)
    page.choose("Head width", "64")
    assert page.control("Marked pair").get_attribute("max") == "31"
    assert page.control("Marked pair").input_value() == "31"
    assert page.text("fresh").endswith("of 32")


def test_moving_the_factor_says_what_it_did(page):
    page.choose("Method", "ntk")
    page.set_slider("Factor", 1)
    assert page.text("change") == (
        "0 pairs meet new angles (17 before). The fastest pair keeps its speed."
    )


def test_the_drawing_says_in_words_what_it_shows(page):
    page.choose("Method", "none")
    shown = page.tab.locator(".interactive svg [role=img]").get_attribute("aria-label")
    assert shown == (
        "18 of 64 pairs meet new angles. Pair 46: ratio 1.000, 0.87 turns in training, "
        "6.95 over 32768 tokens."
    )


def test_the_change_is_read_out_once_it_rests(page):
    page.choose("Method", "none")
    assert page.spoken().startswith("Pair 46 knows a slice of 0.87 turns and now goes to 6.95")


def test_reset_restores_the_first_state(page):
    page.choose("Method", "linear")
    page.choose("Base", "500000")
    page.set_slider("Factor", 30)
    page.press("Reset")
    assert (page.text("fresh"), page.text("ratio")) == ("0 of 64", "0.125")
    assert page.control("Method").input_value() == "yarn"
    assert page.control("Base").input_value() == "10000"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rings_and_dots_stand_out_in_both_themes(open_figure, theme):
    page = open_figure(STEM, theme=theme)
    assert page.contrast("circle.line", "stroke") >= 3
    assert page.contrast("circle.mark.series-2", "fill") >= 3
