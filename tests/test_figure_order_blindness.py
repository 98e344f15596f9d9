"""The interactive figure of chapter order_blindness: its numbers against NumPy's, its page."""

import itertools
import json
import re

import numpy as np
import pytest

from tests.figures import BOOK, FigurePage, call, compute

WORDS = ["some", "chocolate", "oat", "milk"]
EMBEDDING = {
    "some": [-1.0, 0.5, 0.5, 0.0],
    "chocolate": [0.5, 1.0, -0.5, 0.0],
    "oat": [0.5, 0.0, 1.0, -1.0],
    "milk": [1.0, 0.0, 0.5, -1.0],
}
W_Q = np.array([[1, 0, 0, 1], [0, -0.5, 1, 0], [0, 1, 0, 1], [0, 0, 0.5, -0.5]])
W_K = np.array([[1, 0, 1, 0], [0, 0.5, 1, 0], [0, -1, 0, 2], [0.5, 0, 0, -1]])
W_V = np.array([[1, 0, 0.5], [0, 2, 0], [0, -1, 1], [1, 0, -1]])


def attend(order: list[str], causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Shares and outputs, one query after the other."""
    x = np.array([EMBEDDING[word] for word in order])
    shares = np.zeros((len(order), len(order)))
    for i, token in enumerate(x):
        sees = i + 1 if causal else len(order)
        powers = np.exp([token @ W_Q @ (other @ W_K) / 2 for other in x[:sees]])
        shares[i, :sees] = powers / powers.sum()
    return shares, shares @ (x @ W_V)


class WordsPage(FigurePage):
    """The page with the four words."""

    def word(self, name: str):
        return self.tab.locator(f'[data-word="{name}"]')

    def column(self, place: float) -> tuple[float, float]:
        """Where on the screen the tile at a place lies."""
        box = self.tab.locator(".picture svg").first.bounding_box()
        return box["x"] + (place + 0.5) / 4 * box["width"], box["y"] + 0.1 * box["height"]

    def drag(self, start: int, end: int) -> None:
        mouse = self.tab.mouse
        mouse.move(*self.column(start))
        mouse.down()
        for place in np.linspace(start, end, 10):
            mouse.move(*self.column(float(place)))
        mouse.up()


@pytest.fixture
def open_page(open_figure):
    return lambda **options: open_figure("order_blindness", kind=WordsPage, **options)


# ------------------------------------------------------------------------ numbers


def test_words_and_weights_are_those_of_the_chapter():
    text = (BOOK / "order_blindness.md").read_text(encoding="utf-8")
    for word, vector in EMBEDDING.items():
        assert f'"{word}": {vector},' in text
    for name, table in [("w_q", W_Q), ("w_k", W_K), ("w_v", W_V)]:
        found = re.search(rf"^{name} = (\[\[.+\]\])$", text, re.M)
        assert found and json.loads(found[1]) == table.tolist()


@pytest.mark.parametrize("causal", [False, True])
def test_attention_agrees_with_numpy_in_every_order(causal):
    orders = [list(order) for order in itertools.permutations(WORDS)]
    views = call("order_blindness", "attend", *[[order, causal] for order in orders])
    for order, view in zip(orders, views, strict=True):
        shares, outputs = attend(order, causal)
        np.testing.assert_allclose(view["shares"], shares, rtol=0, atol=1e-13)
        np.testing.assert_allclose(view["outputs"], outputs, rtol=0, atol=1e-13)


def test_without_a_mask_no_order_changes_an_output():
    orders = [list(order) for order in itertools.permutations(WORDS)]
    for view in compute("order_blindness", [{"order": order} for order in orders]):
        assert view["largest"] < 1e-12
        assert not any(word["changed"] for word in view["words"].values())


def test_with_the_mask_a_word_changes_when_the_set_to_its_left_does():
    orders = [list(order) for order in itertools.permutations(WORDS)]
    views = compute("order_blindness", [{"order": order, "causal": True} for order in orders])
    for order, view in zip(orders, views, strict=True):
        for word in WORDS:
            now, first = set(order[: order.index(word)]), set(WORDS[: WORDS.index(word)])
            assert view["words"][word]["changed"] == (now != first), (order, word)


def test_a_word_is_put_in_where_it_goes_and_the_others_make_room():
    state = {"order": WORDS, "causal": False}
    moves = [("milk", 0), ("chocolate", 2), ("some", -3), ("some", 9)]
    states = call("order_blindness", "moveTo", *[[state, *move] for move in moves])
    assert [moved["order"] for moved in states] == [
        ["milk", "some", "chocolate", "oat"],
        ["some", "oat", "chocolate", "milk"],
        WORDS,
        ["chocolate", "oat", "milk", "some"],
    ]


# ------------------------------------------------------------------------ the page


def test_the_live_figure_takes_the_place_of_the_picture(open_page):
    page = open_page()
    assert page.tab.locator(".tag_static-figure").is_hidden()
    assert page.text("largest") == "0.00"
    assert page.text("order") == "some chocolate oat milk"
    assert page.text("relation").startswith("The words stand in the first order")


def test_dragging_a_word_changes_no_output(open_page):
    page = open_page()
    page.drag(3, 0)
    assert page.text("order") == "milk some chocolate oat"
    assert page.value("largest") < 1e-12
    assert page.text("change") == (
        "milk moved from place 3 to 0: the row reads milk some chocolate oat."
    )
    assert page.text("relation").startswith("Everybody looks at everybody")


def test_the_causal_mask_makes_the_outputs_change(open_page):
    page = open_page()
    page.press("Reverse")
    assert page.text("order") == "milk oat chocolate some"
    assert page.value("largest") < 1e-12
    page.tick("Causal mask")
    _, first = attend(WORDS, True)
    _, now = attend(WORDS[::-1], True)
    assert page.value("largest") == pytest.approx(np.abs(now[::-1] - first).max(), abs=1e-12)
    assert page.value("largest") > 1
    assert page.tab.locator(".ob-word.series-2").count() == 4


def test_swapping_the_first_two_leaves_the_later_words_alone(open_page):
    page = open_page()
    page.tick("Causal mask")
    page.set_slider("Place of some", 1)
    assert page.text("order") == "chocolate some oat milk"
    assert page.text("relation") == (
        "Under the causal mask the output of some and chocolate has changed. "
        "Not of oat and milk, with the same words to the left as in the first order."
    )
    assert page.tab.locator(".cell.hidden").count() == 6


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["ArrowRight"], 2),
        (["ArrowUp", "ArrowUp", "ArrowUp"], 3),
        (["ArrowLeft"], 0),
        (["End"], 3),
        (["End", "Home", "ArrowDown"], 0),
    ],
)
def test_keys_move_the_focused_word_and_do_not_reach_the_page(open_page, keys, place):
    page = open_page()
    page.tab.evaluate("document.addEventListener('keydown', (e) => { window.heard = e.key; })")
    page.word("chocolate").focus()
    for key in keys:
        page.tab.keyboard.press(key)
    assert page.word("chocolate").get_attribute("aria-valuenow") == str(place)
    assert page.text("order").split().index("chocolate") == place
    assert page.tab.evaluate("window.heard ?? null") is None


def test_a_finger_moves_a_word(open_page):
    page = open_page(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    page.tab.locator(".picture svg").first.scroll_into_view_if_needed()
    session = page.tab.context.new_cdp_session(page.tab)

    def touch(kind: str, *places: float) -> None:
        points = [dict(zip("xy", page.column(place), strict=True)) for place in places]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 3)
    for place in np.linspace(3, 1, 8):
        touch("touchMove", float(place))
    touch("touchEnd")
    assert page.text("order") == "some milk chocolate oat"


def test_every_control_is_reached_by_tab_and_has_a_name(open_page):
    page = open_page()
    names = []
    for _ in range(11):
        page.tab.keyboard.press("Tab")
        names.append(
            page.tab.evaluate(
                "(() => { const e = document.activeElement; return e.getAttribute('aria-label')"
                " ?? e.labels?.[0]?.textContent ?? e.textContent; })()"
            )
        )
    assert names == [
        *(f"Word {word}, place in the row" for word in WORDS),
        "Causal mask",
        "Reverse",
        "Reset",
        *(f"Place of {word}" for word in WORDS),
    ]


def test_the_change_is_read_out_once_it_rests(open_page):
    page = open_page()
    page.tick("Causal mask")
    page.word("milk").focus()
    page.tab.keyboard.press("Home")
    assert re.match(r"Largest change \d\.\d\d\. Under the causal mask", page.spoken())
    assert page.word("milk").get_attribute("aria-valuetext") == "place 0, output changed"


def test_reset_restores_the_first_state(open_page):
    page = open_page()
    page.tick("Causal mask")
    page.drag(0, 2)
    page.press("Reset")
    assert page.text("order") == "some chocolate oat milk"
    assert page.text("largest") == "0.00"
    assert not page.tab.get_by_label("Causal mask").is_checked()


# ------------------------------------------------------------------------ looks


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_have_contrast(open_page, theme):
    page = open_page(theme=theme)
    page.tick("Causal mask")
    page.set_slider("Place of some", 1)
    assert page.contrast(".ob-word text", "fill") >= 7
    assert page.contrast(".ob-word.series-1 .ob-bar", "fill") >= 3
    assert page.contrast(".ob-word.series-2 .ob-bar", "fill") >= 3
    assert page.contrast(".ob-first", "stroke") >= 3
