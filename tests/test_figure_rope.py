"""The interactive figure of chapter rope: its numbers against NumPy's, its page in a browser."""

import math
import re

import numpy as np
import pytest

from tests.figures import FigurePage, call, compute, source_of

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


class RopePage(FigurePage):
    """The page with the two arrows."""

    @property
    def product(self) -> float:
        """The inner product in full precision, as compute() gave it."""
        return self.value("product")

    def tip(self, name: str):
        return self.tab.locator(f'[data-tip="{name}"]')

    def position(self, name: str) -> int:
        return int(self.tip(name).get_attribute("aria-valuenow"))

    def lock(self) -> None:
        self.tick("Turn both together")

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
def open_page(open_figure):
    return lambda **options: open_figure("rope", kind=RopePage, **options)


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


def test_compute_agrees_with_numpy():
    states = random_states(40)
    for state, view in zip(states, compute("rope", states), strict=True):
        expected = expected_view(state)
        # Angles reach 75 rad, whose last bit is 1.4e-14; a dozen operations stay below 1e-12.
        for name in ("q", "k", "innerProduct", "offset"):
            np.testing.assert_allclose(view[name], expected[name], rtol=0, atol=1e-12, err_msg=name)
        # arccos loses half the digits near 0 and pi, where the figure's arctan does not.
        np.testing.assert_allclose(view["angleBetween"], expected["angleBetween"], atol=1e-7)


def test_the_inner_product_is_the_one_of_the_offset_alone():
    for view in compute("rope", random_states(20)):
        assert view["relative"] == pytest.approx(view["innerProduct"], abs=1e-12)


def test_one_quarter_turn_is_counterclockwise():
    (turned,) = call("rope", "rotate", [[1, 0], math.pi / 2])
    assert turned == pytest.approx([0, 1], abs=1e-15)


def test_moving_both_keeps_the_inner_product_and_moving_one_does_not():
    positions = range(0, 67)
    locked = {**INITIAL, "together": True}
    moved = call("rope", "moveTo", *[[locked, "q", position] for position in positions])
    assert [(state["m"], state["n"]) for state in moved] == [(m, m + 6) for m in positions]
    start = 1.2 * math.cos(math.pi / 3)
    for view in compute("rope", [INITIAL, *moved]):
        assert view["innerProduct"] == pytest.approx(start, abs=1e-12)
    (one,) = call("rope", "moveTo", [INITIAL, "q", 9])
    assert (one["m"], one["n"]) == (9, 10)
    (view,) = compute("rope", [one])
    assert abs(view["innerProduct"] - start) > 0.1


def test_locked_arrows_stop_together_at_the_ends():
    locked = {**INITIAL, "together": True}
    high, low = call("rope", "moveTo", [locked, "q", 72], [locked, "k", 0])
    assert (high["m"], high["n"]) == (66, 72)
    assert (low["m"], low["n"]) == (0, 6)


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
def test_special_positions_are_recognised(change, relation):
    (view,) = compute("rope", [{**INITIAL, **change}])
    assert view["relation"] == relation
    assert (view["angleBetween"] is None) == relation.endswith("zero")


# ------------------------------------------------------------------------ the page


def test_the_live_figure_takes_the_place_of_the_picture(open_page):
    page = open_page()
    assert page.tab.locator(".tag_static-figure").is_hidden()
    assert page.text("product") == "0.60"
    assert page.text("offset") == "6 (30°)"
    assert page.text("angle") == "60°"


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


def test_the_number_is_read_out_once_it_rests(open_page):
    page = open_page()
    page.tip("q").focus()
    page.tab.keyboard.press("PageUp")
    assert page.spoken().startswith("Inner product 1.04.")
    assert page.tip("q").get_attribute("aria-valuetext") == "position 10, turned by 50°"


def test_reset_restores_the_first_state(open_page):
    page = open_page()
    page.lock()
    page.set_slider("Position m of q", 30)
    page.set_slider("Length of k", 0.3)
    page.press("Reset")
    assert (page.position("q"), page.position("k")) == (4, 10)
    assert page.text("product") == "0.60"
    assert not page.tab.get_by_label("Turn both together").is_checked()


def test_two_figures_on_one_page_do_not_share_their_state(open_page):
    twice = source_of("rope") + (
        "\nconst second = document.createElement('div');"
        "\nsecond.className = 'interactive second'; second.dataset.ready = 'true';"
        "\ndocument.body.append(second); mount(second, { state: { m: 10 } });\n"
    )
    page = open_page(source=twice)
    second = page.tab.locator(".second")
    second.get_by_label("Position n of k").fill("10")
    assert page.tab.locator('[data-figure] [data-role="product"]').inner_text() == "0.60"
    assert second.locator('[data-role="product"]').inner_text() == "1.04"


# ------------------------------------------------------------------------ looks


@pytest.mark.parametrize("width", [320, 768])
def test_no_width_scrolls_sideways(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.outside() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_have_contrast(open_page, theme):
    page = open_page(theme=theme)
    assert page.contrast("[data-role=product]", "color") >= 7
    for arrow in ("q", "k"):  # WCAG 1.4.11 asks 3 of a graphic and of large text
        assert page.contrast(f".arrow-{arrow} .shaft", "stroke") >= 3
        assert page.contrast(f".arrow-{arrow} .name", "fill") >= 3


def test_nothing_slides_for_readers_who_ask_for_stillness(open_page):
    page = open_page(reduced_motion="reduce")
    script = "getComputedStyle(document.querySelector('.interactive .fill')).transitionDuration"
    assert page.tab.evaluate(script) == "0s"
