"""The figure of chapter learned: its counting against NumPy's, its page in a browser."""

import itertools

import numpy as np
import pytest

from solutions.with_numpy.learned import padded_positions
from tests.figures import compute, constant

STATES = [
    {"words": words, "padding": padding, "left": left, "offset": offset}
    for words, padding, left, offset in itertools.product(
        range(1, 10), range(4), (False, True), range(3)
    )
]


@pytest.fixture(scope="module")
def views() -> list[dict]:
    return compute("learned", STATES)


def real_slots(state: dict) -> np.ndarray:
    """True where a word stands, False where padding does."""
    words, padding = np.ones(state["words"], bool), np.zeros(state["padding"], bool)
    return np.concatenate([padding, words] if state["left"] else [words, padding])


def with_an_end(rows: np.ndarray, length: int) -> list[int | None]:
    return [int(row) if row < length else None for row in rows]


def test_by_slot_counts_everything(views):
    length = constant("learned", "ROWS")
    for state, view in zip(STATES, views, strict=True):
        rows = state["offset"] + np.arange(state["words"] + state["padding"])
        assert view["columns"]["slots"]["rows"] == with_an_end(rows, length)


def test_by_mask_counts_real_words(views):
    length = constant("learned", "ROWS")
    for state, view in zip(STATES, views, strict=True):
        real = real_slots(state)
        rows = np.where(real, np.cumsum(real) - 1 + state["offset"], 0)
        assert view["columns"]["mask"]["rows"] == with_an_end(rows, length)


def test_roberta_style_is_the_exercise(views):
    length, padding_id = constant("learned", "ROWS"), constant("learned", "PADDING_ID")
    for state, view in zip(STATES, views, strict=True):
        token_ids = np.where(real_slots(state), 7, padding_id)
        rows = padded_positions(token_ids, padding_id)
        assert view["columns"]["roberta"]["rows"] == with_an_end(rows, length)


def test_words_without_a_row_are_counted_and_padding_is_not(views):
    for state, view in zip(STATES, views, strict=True):
        real = real_slots(state)
        for column in view["columns"].values():
            rows = [row for row, word in zip(column["rows"], real, strict=True) if word]
            assert column["missing"] == rows.count(None)
            assert (column["first"], column["last"]) == (rows[0], rows[-1])


def test_padding_on_the_left_moves_words_by_slot_alone(views):
    pairs = zip(STATES, views, strict=True)
    found = {tuple(state.values()): view["columns"] for state, view in pairs}
    moved = found[6, 2, True, 0]
    alone = found[6, 0, True, 0]
    assert moved["slots"]["first"] == alone["slots"]["first"] + 2 == 2
    assert moved["mask"]["first"] == alone["mask"]["first"] == 0
    assert moved["roberta"]["first"] == alone["roberta"]["first"] == 2


def test_an_offset_of_two_makes_counting_by_mask_roberta_s(views):
    for state, view in zip(STATES, views, strict=True):
        real = real_slots(state)
        mask = np.array(view["columns"]["mask"]["rows"], float)[real]
        roberta = np.array(view["columns"]["roberta"]["rows"], float)[real]
        assert np.array_equal(mask, roberta, equal_nan=True) == (state["offset"] == 2)


# ------------------------------------------------------------------------ the page


def rows_of(page, column: str) -> list[str]:
    """What a column shows, slot by slot."""
    cells = page.tab.locator(f'.interactive [data-column="{column}"]:visible')
    return cells.all_text_contents()


def test_the_page_starts_with_two_slots_of_padding_on_the_left(open_figure):
    page = open_figure("learned")
    assert rows_of(page, "slots") == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert rows_of(page, "mask") == ["0", "0", "0", "1", "2", "3", "4", "5"]
    assert rows_of(page, "roberta") == ["1", "1", "2", "3", "4", "5", "6", "7"]
    assert page.text("slots") == "Pour: row 2, milk: row 7"
    assert page.text("relation").startswith("Padding on the left: counted by slot, every word")


def test_a_word_past_the_end_has_no_row(open_figure):
    page = open_figure("learned")
    page.set_slider("Words in the text", 7)
    assert page.text("relation") == (
        "The table ends at row 7. Without a row: by slot 1 word, in RoBERTa style 1 word."
    )
    assert rows_of(page, "slots")[-1] == rows_of(page, "roberta")[-1] == "no row"
    assert rows_of(page, "mask")[-1] == "6"
    assert page.text("roberta") == "Pour: row 2, into: none"
    assert page.value("roberta") == 1
    page.set_slider("Words in the text", 9)
    assert rows_of(page, "mask")[-1] == "no row"


def test_padding_on_the_right_needs_no_row_that_matters(open_figure):
    page = open_figure("learned")
    page.tick("Padding on the left", False)
    assert page.text("relation").startswith("Padding on the right")
    page.set_slider("Slots of padding", 3)
    assert rows_of(page, "slots")[-1] == "none"  # padding has run over the end, no word has
    assert page.value("slots") == 0


def test_the_offset_of_opt(open_figure):
    page = open_figure("learned")
    page.set_slider("Offset", 2)
    assert page.text("change").startswith("Offset 2, as in OPT")
    page.set_slider("Offset", 1)
    assert page.text("change").startswith("Position 0 now reads row 1.")
    assert rows_of(page, "roberta")[2] == "2"


def test_what_changed_is_read_out(open_figure):
    page = open_figure("learned")
    page.set_slider("Words in the text", 1)
    assert page.spoken().startswith("The text now has 1 word. Padding on the left")
    assert page.text("mask") == "Pour: row 0"


def test_reset_restores_the_first_state(open_figure):
    page = open_figure("learned")
    page.set_slider("Words in the text", 9)
    page.tick("Padding on the left", False)
    page.set_slider("Offset", 2)
    page.press("Reset")
    assert rows_of(page, "slots") == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert page.control("Padding on the left").is_checked()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_missing_row_stands_out_in_both_themes(open_figure, theme):
    page = open_figure("learned", theme=theme)
    page.set_slider("Words in the text", 7)
    assert page.contrast("rect.ghost", "stroke") >= 3
    assert page.contrast("text.tone", "fill") >= 4
