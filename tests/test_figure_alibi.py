"""The figure of chapter alibi: its biases and weights against NumPy's, its page in a browser."""

import itertools

import numpy as np
import pytest

from solutions.with_numpy.alibi import alibi_bias, alibi_slopes
from tests.figures import call, compute, constant

ROLES = ("causal", "keyOnly", "content")
STATES = [
    {"heads": heads, "head": head, "position": position, **dict(zip(ROLES, flags, strict=True))}
    for heads, head in [(1, 1), (3, 3), (8, 1), (8, 8), (12, 10), (16, 2)]
    for position in (0, 1, 11, 22, 23)
    for flags in itertools.product((False, True), repeat=3)
]


@pytest.fixture(scope="module")
def views() -> list[dict]:
    return compute("alibi", STATES)


@pytest.fixture(scope="module")
def content() -> np.ndarray:
    return np.array(constant("alibi", "CONTENT"))


def biases(state: dict) -> tuple[np.ndarray, np.ndarray]:
    """The chosen form and the other one, −∞ where masked, from the chapter's reference."""
    keys = np.arange(24)
    slope = alibi_slopes(state["heads"])[state["head"] - 1]
    by_distance = alibi_bias([state["position"]], keys, [slope])[0, 0]
    forms = [by_distance, slope * keys]
    if state["causal"]:
        forms = [np.where(keys <= state["position"], form, -np.inf) for form in forms]
    return (forms[1], forms[0]) if state["keyOnly"] else (forms[0], forms[1])


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def test_slopes_are_the_reference_s_for_any_number_of_heads():
    for heads, got in enumerate(call("alibi", "slopes", *[(n,) for n in range(1, 17)]), 1):
        np.testing.assert_allclose(got, alibi_slopes(heads), rtol=1e-13)


def test_the_bias_is_the_reference_s(views):
    for state, view in zip(STATES, views, strict=True):
        for got, form in zip((view["bias"], view["otherBias"]), biases(state), strict=True):
            shown = [-np.inf if bias is None else bias for bias in got]
            np.testing.assert_allclose(shown, form, rtol=1e-13, atol=1e-13)


def test_weights_are_the_softmax_of_both_forms(views, content):
    for state, view in zip(STATES, views, strict=True):
        words = content if state["content"] else 0.0
        for got, bias in zip((view["weights"], view["otherWeights"]), biases(state), strict=True):
            np.testing.assert_allclose(got, softmax(bias + words), atol=1e-13)


def test_under_a_causal_mask_the_two_forms_have_the_same_weights(views):
    for state, view in zip(STATES, views, strict=True):
        one_sided = state["causal"] or state["position"] == 23
        assert (view["difference"] < 1e-9) == one_sided


def test_the_readings_follow_from_slope_and_weights(views):
    for state, view in zip(STATES, views, strict=True):
        distance = np.abs(np.arange(24) - state["position"])
        assert view["meanDistance"] == pytest.approx(np.array(view["weights"]) @ distance)
        assert np.exp(-view["slope"] * view["halving"]) == pytest.approx(0.5)
        assert view["visible"] == (state["position"] + 1 if state["causal"] else 24)


def test_the_words_name_a_single_key_and_the_last_query():
    states = constant("alibi", "INITIAL")
    states = [{**states, "position": 0}, {**states, "position": 23, "causal": False}]
    pairs = [(state, view) for state, view in zip(states, compute("alibi", states), strict=True)]
    single, last = call("alibi", "relationText", *pairs)
    assert single == "Only one key is visible. Its share is 1, whatever the bias."
    assert "the mask does not matter here" in last


# ------------------------------------------------------------------------ the page


def bars(page) -> list[str]:
    """The heights of the bars of the keys that are visible."""
    shown = page.tab.locator(".interactive [data-key]:visible")
    return [bar.get_attribute("height") for bar in shown.all()]


def biases_drawn(page) -> list[str]:
    """The paths of the chosen form's biases and of the other one's, which is dashed."""
    lines = page.tab.locator(".interactive .line").or_(page.tab.locator(".interactive .ghost"))
    return [path.get_attribute("d") for path in lines.all()]


def test_key_only_moves_the_biases_and_leaves_the_bars(open_figure):
    page = open_figure("alibi")
    (dashed, solid, _), heights = biases_drawn(page), bars(page)
    assert dashed != solid
    assert len(heights) == 17
    assert page.value("slope") == 0.25
    page.tick("Key-only bias")
    assert bars(page) == heights
    assert page.text("relation").startswith("No key lies after the query: by distance and key-only")
    assert "4.00 apart" in page.text("relation")
    assert page.text("difference") == "0.0000"
    assert biases_drawn(page)[:2] == [solid, dashed]


def test_without_the_mask_key_only_looks_ahead(open_figure):
    page = open_figure("alibi")
    page.tick("Key-only bias")
    page.tick("Causal mask", False)
    assert page.value("difference") > 0.1
    assert page.text("relation").startswith("Keys after the query: key-only rewards them")
    heights = [float(height) for height in bars(page)]
    assert len(heights) == 24
    assert heights == sorted(heights)


def test_fewer_heads_take_the_head_along(open_figure):
    page = open_figure("alibi")
    page.set_slider("Head h", 7)
    page.set_slider("Heads of the model", 3)
    assert page.control("Head h").input_value() == "3"
    assert page.text("slope") == "0.2500"  # the first of four heads
    assert page.text("change").startswith("Now 3 heads. The mean distance")


def test_what_changed_is_read_out_and_reset_restores(open_figure):
    page = open_figure("alibi")
    heights = bars(page)
    page.tick("Words score differently")
    assert page.spoken().startswith("The words have scores of their own. The mean distance")
    assert bars(page) != heights
    page.set_slider("Position of the query", 0)
    assert page.text("relation").startswith("Only one key is visible")
    page.press("Reset")
    assert bars(page) == heights
    assert not page.control("Words score differently").is_checked()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_and_dashes_stand_out_in_both_themes(open_figure, theme):
    page = open_figure("alibi", theme=theme)
    assert page.contrast("rect.mark", "fill") >= 3
    assert page.contrast("path.ghost", "stroke") >= 3
