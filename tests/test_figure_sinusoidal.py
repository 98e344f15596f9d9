"""The interactive figure of chapter sinusoidal: its numbers against NumPy's, and its page."""

import re

import numpy as np
import pytest

from solutions.with_numpy.sinusoidal import shift_matrix, sinusoidal_encoding, wavelengths
from tests.figures import FigurePage, call, compute

INITIAL = {"position": 5, "offset": 3, "dim": 12, "base": "halving"}


class ClockPage(FigurePage):
    """The page with the dials."""

    def values(self) -> np.ndarray:
        """The encoding as the dials show it, sine and cosine of each pair in turn."""
        texts = self.tab.locator(".interactive svg text.small").all_text_contents()
        assert [text.split()[0] for text in texts] == ["sine", "cosine"] * (len(texts) // 2)
        return np.array([float(text.split()[1].replace("\u2212", "-")) for text in texts])

    def hand(self, pair: int) -> np.ndarray:
        """Where the first hand of a dial points: to the right, and up, as a unit vector."""
        path = self.tab.locator(f'[data-hand="{pair}"]').get_attribute("d")
        x, y = map(float, re.findall(r"-?[\d.]+", path)[2:])
        return np.array([x, -y]) / np.hypot(x, y)

    def hands(self) -> int:
        return self.tab.locator("[data-hand]").count()


@pytest.fixture
def open_page(open_figure):
    return lambda **options: open_figure("sinusoidal", kind=ClockPage, **options)


# ------------------------------------------------------------------------ numbers


def base_of(state: dict) -> float:
    return 2.0 ** (state["dim"] / 2) if state["base"] == "halving" else float(state["base"])


def states() -> list[dict]:
    rng = np.random.default_rng(11)
    return [
        {
            "position": int(rng.integers(0, 64)),
            "offset": int(rng.integers(0, 21)),
            "dim": dim,
            "base": base,
        }
        for dim in (4, 8, 12)
        for base in ("halving", "100", "10000")
        for _ in range(3)
    ]


def test_compute_agrees_with_numpy():
    for state, view in zip(states(), compute("sinusoidal", states()), strict=True):
        dim, base = state["dim"], base_of(state)
        places = np.array([state["position"], state["position"] + state["offset"]])
        first, second = sinusoidal_encoding(places, dim, base)
        # Angles stay below 84 rad, whose last bit is 1.4e-14.
        np.testing.assert_allclose(view["first"], first, rtol=0, atol=1e-13)
        np.testing.assert_allclose(view["second"], second, rtol=0, atol=1e-13)
        assert view["product"] == pytest.approx(first @ second, abs=1e-12)
        assert view["distance"] == pytest.approx(np.linalg.norm(first - second), abs=1e-12)
        shown = [hand["wavelength"] for hand in view["hands"]]
        np.testing.assert_allclose(shown, wavelengths(dim, base))


def test_the_turn_is_that_of_the_shift_matrix_at_every_position():
    matrix = shift_matrix(3, 8)
    places = [{**INITIAL, "dim": 8, "base": "10000", "position": p} for p in (0, 5, 40)]
    for view in compute("sinusoidal", places):
        np.testing.assert_allclose(view["second"], matrix @ view["first"], atol=1e-13)
        cosines = [np.cos(hand["turn"]) for hand in view["hands"]]
        np.testing.assert_allclose(cosines, matrix.diagonal()[::2], atol=1e-13)
        assert view["product"] == pytest.approx(matrix.trace() / 2, abs=1e-12)


def test_bits_are_those_of_the_position_fastest_first():
    assert call("sinusoidal", "bitsOf", [5]) == [[1, 0, 1, 0, 0, 0]]
    texts = call("sinusoidal", "binary", *[[position] for position in range(64)])
    assert [int(text, 2) for text in texts] == list(range(64))


def test_halving_makes_each_hand_half_as_fast():
    widths = (4, 8, 12)
    ladders = call("sinusoidal", "frequencies", *[[dim, 2 ** (dim / 2)] for dim in widths])
    for dim, ladder in zip(widths, ladders, strict=True):
        assert ladder == pytest.approx(0.5 ** np.arange(dim // 2))


def test_turns_are_named_in_degrees():
    shown = call("sinusoidal", "degrees", [0], [np.pi], [0.03], [-0.5], [-0.03])
    assert shown == ["0°", "180°", "1.7°", "\u221229°", "\u22121.7°"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"position": 0}, "Position 0: every hand points to twelve, and every bit is 0."),
        ({}, "Position 5 is 000101 in binary. Each hand is half as fast as the one before"),
        ({"base": "10000", "dim": 4}, "Position 5 is 000101 in binary. With base 10000 the slow"),
    ],
)
def test_words_name_the_state(change, sentence):
    (text,) = call("sinusoidal", "relationText", [{**INITIAL, **change}])
    assert text.startswith(sentence)


# ------------------------------------------------------------------------ the page


def test_the_first_state_is_the_static_picture(open_page):
    page = open_page()
    assert page.tab.locator(".tag_static-figure").is_hidden()
    assert (page.hands(), page.text("binary")) == (6, "000101")
    np.testing.assert_allclose(page.values(), sinusoidal_encoding(5, 12, 64.0), atol=5e-5)


def test_moving_the_position_moves_the_hands_and_keeps_the_product(open_page):
    page = open_page()
    product, distance = page.text("product"), page.text("distance")
    page.set_slider("Position", 41)
    encoding = sinusoidal_encoding(41, 12, 64.0)
    np.testing.assert_allclose(page.values(), encoding, atol=5e-5)
    for pair in range(6):
        np.testing.assert_allclose(page.hand(pair), encoding[2 * pair : 2 * pair + 2], atol=1e-3)
    assert page.text("binary") == "101001"
    names = page.tab.locator(".interactive svg text:not(.small)").all_text_contents()
    assert names == [f"pair {i}, bit {bit}" for i, bit in enumerate([1, 0, 0, 1, 0, 1])]
    assert (page.text("product"), page.text("distance")) == (product, distance)
    assert f"the product is still {product}." in page.text("change")


def test_another_offset_changes_the_product(open_page):
    page = open_page()
    before = page.text("product")
    page.set_slider("Second position, further on by", 4)
    first, second = sinusoidal_encoding([5, 9], 12, 64.0)
    assert page.value("product") == pytest.approx(first @ second, abs=1e-12)
    assert page.text("change").endswith(f"from {before} to {page.text('product')}.")


def test_offset_zero_lays_one_hand_on_the_other(open_page):
    page = open_page()
    page.set_slider("Second position, further on by", 0)
    assert page.text("change") == "Offset 0: the second hand lies on the first in every dial."
    assert (page.text("product"), page.text("distance")) == ("6.00", "0.00")
    assert {path.get_attribute("d") for path in page.tab.locator(".wedge").all()} == {""}


def test_keys_move_the_position(open_page):
    page = open_page()
    page.control("Position").focus()
    page.tab.keyboard.press("ArrowRight")
    assert page.text("binary") == "000110"
    assert page.text("change").startswith("From 5 to 6 the hands turn by 57°, 29°, 14°, 7.2°")
    page.tab.keyboard.press("End")
    assert page.text("binary") == "111111"
    assert page.text("change").startswith("From 6 to 63")


def test_width_and_base_can_be_chosen(open_page):
    page = open_page()
    for dim, base in [(4, "10000"), (8, "100"), (12, "10000")]:
        page.choose("Width", str(dim))
        page.choose("Base", base)
        assert page.hands() == dim // 2
        np.testing.assert_allclose(
            page.values(), sinusoidal_encoding(5, dim, float(base)), atol=5e-5
        )


def test_reset_restores_the_first_state(open_page):
    page = open_page()
    page.set_slider("Position", 50)
    page.choose("Width", "4")
    page.press("Reset")
    assert (page.hands(), page.text("binary")) == (6, "000101")


def test_the_state_is_read_out_once_it_rests(open_page):
    page = open_page()
    page.set_slider("Position", 0)
    assert page.spoken().startswith("Position 0: every hand points to twelve")


@pytest.mark.parametrize("width", [320, 768])
def test_no_width_scrolls_sideways(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.outside() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_have_contrast(open_page, theme):
    page = open_page(theme=theme)
    assert page.contrast("[data-role=product]", "color") >= 7
    for hand in (".shaft", ".line"):  # WCAG 1.4.11 asks 3 of a graphic
        assert page.contrast(hand, "stroke") >= 3
