"""The interactive figure of chapter kv_cache: its numbers against NumPy's, and its page."""

import numpy as np
import pytest

from solutions.with_numpy.rope import apply_rope
from tests.figures import FigurePage, call, compute, constant

Q = np.array([[1.0, 0.5, -0.5, 2.0]])
K = np.array([[0.5, 1.0, 1.5, -1.0]])
WORDS = ["Pour", "her", "some", "chocolate", "oat", "milk", "and", "stir"]
MODES = ["right", "zero", "again", "evicted"]
ROOM = 4  # earlier words that the evicting cache keeps
STATES = [{"newest": newest, "mode": mode} for mode in MODES for newest in range(8)]


def turned(vector: np.ndarray, position: int) -> np.ndarray:
    """The vector turned for a position, by the reference of the chapter on RoPE."""
    return apply_rope(vector, np.array([position]))[0]


class Decoder:
    """A cache that is really filled, word by word, with the mode's fault in it."""

    def __init__(self, mode: str):
        self.mode = mode
        self.keys: list[np.ndarray] = []
        self.words: list[int] = []  # which word each key belongs to

    def step(self, word: int) -> np.ndarray:
        """The scores of this word's query with all keys, its own last."""
        if self.mode == "again":  # every stored key once more by its own position
            stored = zip(self.words, self.keys, strict=True)
            self.keys = [turned(key[None], n) for n, key in stored]
        if self.mode == "evicted" and len(self.keys) > ROOM:
            del self.keys[0], self.words[0]
        position = len(self.keys)  # until something is evicted, the number of words before
        self.keys.append(turned(K, position))
        self.words.append(word)
        query = turned(Q, 0 if self.mode == "zero" else position)
        return np.array(self.keys) @ query


@pytest.mark.parametrize("mode", MODES)
def test_the_scores_are_those_of_a_cache_that_is_really_filled(mode):
    views = compute("kv_cache", [{"newest": newest, "mode": mode} for newest in range(8)])
    decoder = Decoder(mode)
    for newest, view in enumerate(views):
        scores = decoder.step(newest)
        rows = [view["rows"][n] for n in decoder.words]
        # Positions stay below 17, so angles below 17 rad: a dozen operations keep 1e-13.
        np.testing.assert_allclose([row["got"] for row in rows], scores, rtol=0, atol=1e-13)
        truth = [turned(Q, newest) @ turned(K, n) for n in decoder.words]
        np.testing.assert_allclose([row["truth"] for row in rows], truth, rtol=0, atol=1e-13)
        assert view["held"] == len(decoder.words)
        assert view["largest"] == pytest.approx(np.abs(scores - truth).max(), abs=1e-13)
        assert view["off"] == np.sum(np.abs(scores - truth) > 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_each_key_is_turned_for_the_position_that_the_row_names(mode):
    for view in compute("kv_cache", [{"newest": newest, "mode": mode} for newest in range(8)]):
        for row in view["rows"]:
            if row["got"] is not None:
                score = turned(Q, view["query"]) @ turned(K, row["turned"])
                assert row["got"] == pytest.approx(score, abs=1e-13)


def test_the_worked_example_is_in_the_first_picture():
    (view,) = compute("kv_cache", [{}])
    chocolate = view["rows"][3]
    assert (chocolate["word"], round(chocolate["got"], 4)) == ("chocolate", -2.5336)
    assert view["off"] == 0


def test_the_static_picture_shows_the_same_positions():
    """The lists that the chapter's matplotlib cell holds, for milk at 5."""
    views = compute("kv_cache", [{"mode": mode} for mode in MODES])
    assert [view["query"] for view in views] == [5, 0, 5, 4]
    positions = [[row["turned"] for row in view["rows"][:6]] for view in views]
    plain = [0, 1, 2, 3, 4, 5]
    assert positions == [plain, plain, [0, 5, 8, 9, 8, 5], [None, 1, 2, 3, 4, 4]]


def test_the_first_token_shows_no_fault_in_any_mode():
    for view in compute("kv_cache", [{"newest": 0, "mode": mode} for mode in MODES]):
        assert (view["off"], view["largest"]) == (0, 0)


def test_rows_that_are_not_there_have_no_numbers():
    (view,) = compute("kv_cache", [{"newest": 6, "mode": "evicted"}])
    assert [row["state"] for row in view["rows"]] == [
        *["evicted", "evicted", "off", "off", "off", "off", "right", "to come"]
    ]
    gone = [row for row in view["rows"] if row["state"] in ("evicted", "to come")]
    assert all(row["got"] is row["truth"] is row["turned"] is None for row in gone)


def test_every_score_lies_on_the_scale_that_is_drawn():
    for view in compute("kv_cache", STATES):
        for row in view["rows"]:
            assert row["got"] is None or (-4.5 < row["got"] < -1 and -4.5 < row["truth"] < -1)


def test_words_and_vectors_are_those_of_the_chapter():
    assert constant("kv_cache", "WORDS") == WORDS
    assert constant("kv_cache", "Q") == Q[0].tolist()
    assert constant("kv_cache", "K") == K[0].tolist()


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"newest": 0, "mode": "again"}, "One token only"),
        ({"newest": 3, "mode": "right"}, "The query is turned for 3, the number of tokens before"),
        ({"newest": 3, "mode": "zero"}, "The query is turned for 0 instead of 3"),
        ({"newest": 1, "mode": "again"}, "The key at position 0 is turned by nothing"),
        ({"newest": 4, "mode": "again"}, "The key of “chocolate” is turned for 3 and once more"),
        ({"newest": 3, "mode": "evicted"}, "Nothing is evicted yet"),
        ({"newest": 4, "mode": "evicted"}, "The cache is full: 4 rows, position 4."),
        ({"newest": 7, "mode": "evicted"}, "4 rows are kept, so the query is turned for 4 instead"),
    ],
)
def test_each_state_has_its_sentence(state, sentence):
    (view,) = compute("kv_cache", [state])
    (text,) = call("kv_cache", "relationText", [state, view])
    assert text.startswith(sentence)


# ------------------------------------------------------------------------ the page


@pytest.fixture
def page(open_figure) -> FigurePage:
    return open_figure("kv_cache")


def test_the_figure_opens_on_milk_with_everything_right(page):
    assert page.text("largest") == "0.00"
    assert (page.text("query"), page.text("position")) == ("5", "5")
    assert page.text("off") == "0 of 6"
    assert page.control("Newest word").get_attribute("aria-valuetext") == "milk, position 5"


@pytest.mark.parametrize(
    ("mode", "query", "off", "largest"),
    [("zero", "0", "6 of 6", 1.5570), ("again", "5", "4 of 6", 2.3190)]
    + [("evicted", "4", "4 of 5", 1.1743)],
)
def test_choosing_a_fault_moves_the_dots(page, mode, query, off, largest):
    page.choose("What the code does", mode)
    assert (page.text("query"), page.text("off")) == (query, off)
    assert page.value("largest") == pytest.approx(largest, abs=5e-5)
    assert page.text("change").startswith("The same tokens, other code:")


def test_next_word_steps_to_the_last_and_stops_there(page):
    page.set_slider("Newest word", 5)
    page.press("Next word")
    assert page.text("change") == "“and” came in: every score is right."
    page.press("Next word")
    assert page.text("position") == "7"
    assert page.tab.get_by_role("button", name="Next word").is_disabled()


def test_the_first_word_can_go_and_is_said_to(page):
    page.choose("What the code does", "evicted")
    page.set_slider("Newest word", 4)
    page.press("Next word")
    assert page.text("change").startswith("“milk” came in, and the oldest word went: 4 scores are")


def test_the_drawing_says_in_words_what_it_shows(page):
    page.choose("What the code does", "zero")
    shown = page.tab.locator(".interactive svg [role=img]").get_attribute("aria-label")
    assert "chocolate: turned for 3, score −3.77, should be −2.53" in shown


def test_the_change_is_read_out_once_it_rests(page):
    page.choose("What the code does", "zero")
    assert page.spoken().startswith("The query is turned for 0 instead of 5")


def test_reset_restores_the_first_state(page):
    page.choose("What the code does", "again")
    page.set_slider("Newest word", 2)
    page.press("Reset")
    assert (page.text("position"), page.text("largest")) == ("5", "0.00")
    assert page.control("What the code does").input_value() == "right"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rings_and_dots_stand_out_in_both_themes(open_figure, theme):
    page = open_figure("kv_cache", theme=theme)
    assert page.contrast("circle.series-1", "stroke") >= 3
    assert page.contrast("circle.series-2", "fill") >= 3
