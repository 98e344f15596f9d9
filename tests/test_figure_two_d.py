"""What the figure of `two_d` computes, held to the chapter's reference, and what its page shows."""

import re

import numpy as np
import pytest

from solutions.with_numpy.two_d import (
    axial_rope_2d,
    grid_positions,
    mixed_rope_2d,
    sincos_2d,
)
from tests.figures import call, compute, constant

INITIAL = constant("two_d", "INITIAL")
METHODS = ["number", "added", "axial", "ridge", "mixed"]


def places(state: dict) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns that the method is told."""
    height, width = state["height"], state["width"]
    if state["swapped"] and state["method"] != "number":
        cols, rows = np.divmod(np.arange(height * width), height)
        return rows, cols
    return grid_positions(height, width)


def likeness(state: dict) -> np.ndarray:
    """By the reference: inner products of encodings, or of a query that equals its key."""
    rows, cols = places(state)
    chosen = state["row"] * state["width"] + state["column"]
    x = np.tile([1.0, 0.0], (len(rows), 8))  # eight arrows of length one
    angle = np.radians(state["angle"])
    if state["method"] == "added":
        by_place = sincos_2d(12, 12, 16).reshape(12, 12, 16)
        table = by_place[rows, cols]
    elif state["method"] == "axial":
        table = axial_rope_2d(x, rows, cols)
    elif state["method"] == "number":
        f = 10000.0 ** (-np.arange(8) / 8)
        table = mixed_rope_2d(x, np.arange(len(rows)), np.zeros(len(rows)), f, np.zeros(8))
    else:
        pairs = 8 if state["method"] == "ridge" else 4
        f = 100.0 ** (-np.arange(pairs) / pairs)
        turns = [angle] if pairs == 8 else [angle, angle + np.pi / 2]
        down = np.concatenate([-f * np.sin(turn) for turn in turns])
        across = np.concatenate([f * np.cos(turn) for turn in turns])
        table = mixed_rope_2d(x, rows, cols, down, across)
    return table @ table[chosen] / 8


def kept(state: dict) -> float | None:
    rows, cols = places(state)
    if state["method"] == "number":
        rows, cols = np.zeros_like(rows), np.arange(len(rows))
    at = np.stack([rows, cols], axis=-1).reshape(state["height"], state["width"], 2)
    steps = [np.abs(np.diff(at, axis=axis)).sum(axis=-1).ravel() for axis in (0, 1)]
    steps = np.concatenate(steps)
    return float(np.mean(steps == 1)) if steps.size else None


def random_states(count: int) -> list[dict]:
    rng = np.random.default_rng(8)
    states = []
    for i in range(count):
        height, width = (int(n) for n in rng.integers(1, [11, 13]))
        states.append(
            {
                "method": METHODS[i % 5],
                "height": height,
                "width": width,
                "row": int(rng.integers(height)),
                "column": int(rng.integers(width)),
                "angle": int(rng.integers(13)) * 15,
                "swapped": bool(rng.integers(2)),
            }
        )
    return states


SPECIAL = [
    {"method": method, "height": h, "width": w, "row": h - 1, "column": 0, "swapped": swapped}
    for method in METHODS
    for h, w in [(1, 1), (1, 7), (7, 1), (6, 6), (10, 12)]
    for swapped in (False, True)
]


def test_compute_agrees_with_the_reference_everywhere():
    states = [{**INITIAL, **state} for state in random_states(60) + SPECIAL]
    for state, view in zip(states, compute("two_d", states), strict=True):
        expected = likeness(state)
        np.testing.assert_allclose(view["likeness"], expected, atol=1e-12, err_msg=str(state))
        chosen = state["row"] * state["width"] + state["column"]
        assert view["chosen"] == chosen
        assert view["likeness"][chosen] == pytest.approx(1)
        edge = state["column"] == state["width"] - 1
        assert (view["right"] is None) == edge
        assert edge or view["right"] == pytest.approx(expected[chosen + 1])
        bottom = state["row"] == state["height"] - 1
        assert (view["below"] is None) == bottom
        assert bottom or view["below"] == pytest.approx(expected[chosen + state["width"]])
        assert view["kept"] == (None if kept(state) is None else pytest.approx(kept(state)))


def test_straight_on_two_mixed_directions_are_axial():
    axial, *turned = compute(
        "two_d", [{"method": "axial"}] + [{"method": "mixed", "angle": a} for a in (0, 90, 180)]
    )
    for view in turned:
        np.testing.assert_allclose(view["likeness"], axial["likeness"], atol=1e-12)


def test_on_a_square_the_swap_changes_nothing_but_the_names_of_the_axes():
    for method in ("added", "axial"):
        square = {"method": method, "height": 6, "width": 6, "row": 1, "column": 4}
        right, swapped = compute("two_d", [square, {**square, "swapped": True}])
        np.testing.assert_allclose(right["likeness"], swapped["likeness"], atol=1e-15)
        assert right["kept"] == swapped["kept"] == 1
        wide = {**square, "width": 7}
        right, swapped = compute("two_d", [wide, {**wide, "swapped": True}])
        assert np.abs(np.subtract(right["likeness"], swapped["likeness"])).max() > 0.2
        assert right["kept"] == 1
        assert swapped["kept"] < 0.5


def test_on_a_square_the_swap_mirrors_a_mixed_pattern():
    square = {"method": "ridge", "angle": 30, "height": 5, "width": 5, "row": 2, "column": 2}
    states = [square, {**square, "swapped": True}, {**square, "angle": 60}]
    plain, swapped, other = compute("two_d", states)
    flipped = np.reshape(plain["likeness"], (5, 5)).T
    np.testing.assert_allclose(np.reshape(swapped["likeness"], (5, 5)), flipped, atol=1e-12)
    np.testing.assert_allclose(swapped["likeness"], other["likeness"], atol=1e-12)


def test_a_ridge_tells_the_diagonals_apart_and_an_axial_cross_does_not():
    middle = {"height": 7, "width": 7, "row": 3, "column": 3, "angle": 45}
    axial, ridge = compute("two_d", [{**middle, "method": m} for m in ("axial", "ridge")])

    def diagonals(view: dict) -> tuple[float, float]:
        at = np.reshape(view["likeness"], (7, 7))
        return at[4, 4] + at[2, 2], at[4, 2] + at[2, 4]

    one, other = diagonals(axial)
    assert one == pytest.approx(other)
    one, other = diagonals(ridge)
    assert one == pytest.approx(2)  # nothing turns along it
    assert other < 1.7


def test_a_chosen_patch_outside_the_grid_is_brought_inside():
    assert call("two_d", "fit", [{**INITIAL, "height": 2, "width": 3, "row": 5, "column": 9}]) == [
        {**INITIAL, "height": 2, "width": 3, "row": 1, "column": 2}
    ]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({}, "A cross"),
        ({"height": 1, "width": 1}, "A grid of one patch"),
        ({"height": 1}, "One row only: a line, as in a text."),
        ({"width": 1, "swapped": True}, "One column only: a line, as in a text, which no swap"),
        ({"method": "number"}, "One to the right is one number on, one below is 8 numbers on."),
        ({"width": 5, "swapped": True}, "Swapped on a square: the axes trade names"),
        ({"swapped": True}, "Swapped on 5 × 8: patch 19 is taken for row 4, column 3"),
        ({"method": "ridge"}, "A ridge"),
        ({"method": "ridge", "angle": 90}, "All pairs turn along one axis"),
        ({"method": "mixed"}, "The cross is turned"),
        ({"method": "mixed", "angle": 180}, "A cross: a sum of one part"),
        ({"method": "number", "swapped": True}, "One to the right is one number on"),
    ],
)
def test_each_situation_has_its_sentence(state, sentence):
    full = call("two_d", "fit", [{**INITIAL, **state}])[0]
    view = compute("two_d", [full])[0]
    assert call("two_d", "relationText", [full, view])[0].startswith(sentence)


# ------------------------------------------------------------------------ the page


def test_the_first_picture_is_the_static_one(open_figure):
    page = open_figure("two_d")
    assert page.tab.locator(".patches rect.cell").count() == 40
    assert page.value("kept") == 1
    expected = likeness(INITIAL)
    assert page.value("right") == pytest.approx(expected[20])
    assert page.value("below") == pytest.approx(expected[27])


def test_the_swap_shows_on_a_rectangle_and_not_on_a_square(open_figure):
    page = open_figure("two_d")
    page.set_slider("Width, in patches", 5)
    before = page.tab.locator(".interactive svg").inner_html()
    page.tick("Swap the mesh")
    assert page.tab.locator(".interactive svg").inner_html() == before
    assert page.text("kept") == "100 %"
    page.set_slider("Width, in patches", 6)
    assert page.value("kept") < 0.5
    assert "neighbours are torn apart" in page.text("relation")


def test_a_click_chooses_the_patch_under_it(open_figure):
    page = open_figure("two_d")
    page.tab.locator(".patches rect.cell").nth(8 * 4 + 6).click()
    assert page.control("Row of the chosen patch").input_value() == "4"
    assert page.control("Column of the chosen patch").input_value() == "6"
    assert page.text("change") == "Chosen: patch 38, in row 4 and column 6."
    assert page.text("below") == "the edge"


@pytest.mark.parametrize(
    ("keys", "patch"),
    [
        (["ArrowRight"], 20),
        (["ArrowLeft"], 18),
        (["ArrowDown"], 27),
        (["ArrowUp"], 11),
        (["End"], 23),
        (["Home"], 16),
        (["PageDown"], 35),
        (["PageUp", "ArrowUp"], 3),
        (["End", "ArrowRight"], 23),
    ],
)
def test_keys_move_the_chosen_patch_as_they_point(open_figure, keys, patch):
    page = open_figure("two_d")
    chosen = page.tab.get_by_role("slider", name="Chosen patch", exact=True)
    chosen.focus()
    for key in keys:
        page.tab.keyboard.press(key)
    assert chosen.get_attribute("aria-valuenow") == str(patch)
    row, column = divmod(patch, 8)
    words = f"patch {patch}, row {row}, column {column}"
    assert chosen.get_attribute("aria-valuetext") == words


def test_the_chosen_patch_can_be_dragged(open_figure):
    page = open_figure("two_d")
    cells = page.tab.locator(".patches rect.cell")
    start, end = (cells.nth(t).bounding_box() for t in (19, 37))
    page.tab.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.tab.mouse.down()
    page.tab.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    page.tab.mouse.up()
    chosen = page.tab.get_by_role("slider", name="Chosen patch", exact=True)
    assert chosen.get_attribute("aria-valuenow") == "37"


def test_a_smaller_grid_keeps_a_chosen_patch(open_figure):
    page = open_figure("two_d")
    page.set_slider("Row of the chosen patch", 4)
    page.set_slider("Height, in patches", 2)
    assert page.control("Row of the chosen patch").input_value() == "1"
    page.set_slider("Height, in patches", 1)
    page.set_slider("Width, in patches", 1)
    assert page.text("relation") == "A grid of one patch: there is nothing to compare it with."
    assert page.text("kept") == "none"


def test_negative_products_have_a_dash_and_not_only_a_colour(open_figure):
    page = open_figure("two_d")
    page.set_slider("Height, in patches", 10)
    page.set_slider("Width, in patches", 12)
    page.set_slider("Row of the chosen patch", 0)
    page.set_slider("Column of the chosen patch", 11)
    negative = page.tab.locator(".patches rect.cell.series-2").count()
    state = {**INITIAL, "height": 10, "width": 12, "row": 0, "column": 11}
    assert negative == np.sum(likeness(state) < 0) > 0
    assert page.tab.locator(".interactive svg path.tick").count() == negative


def test_what_rests_is_read_out_and_reset_starts_over(open_figure):
    page = open_figure("two_d")
    page.choose("Method", "number")
    assert re.match(r"One to the right 0\.\d{3}, one below [−0-9.]+\. One to", page.spoken())
    page.set_slider("Direction of mixed pairs", 90)
    assert page.text("change") == "Mixed pairs now turn along 90°; this method has none."
    page.press("Reset")
    assert page.control("Method").input_value() == "axial"
    assert page.control("Direction of mixed pairs").input_value() == "135"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_chosen_patch_stands_out_in_both_themes(open_figure, theme):
    page = open_figure("two_d", theme=theme)
    assert page.contrast("[data-role=kept]", "color") >= 7
    assert page.contrast("rect.marked", "stroke") >= 7
    assert page.contrast("rect.marked", "fill") >= 4.5  # the number on it has the ground's colour
