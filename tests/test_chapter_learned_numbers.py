"""Every number that the prose of the chapter `learned` states without printing it right there.

Displayed numbers that nothing executes are where tutorials go wrong; these are executed here.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.with_numpy.learned import lookup_gradient, padded_positions, resize_table

Q = np.array([1.0, 0.5, -0.5, 2.0])  # what "milk" asks
K = np.array([0.5, 1.0, 1.5, -1.0])  # what "chocolate" offers
PAGE = Path(__file__).resolve().parent.parent / "book" / "learned.md"
PROSE = " ".join(PAGE.read_text(encoding="utf-8").split())  # without its line breaks
MOVED = ["Then", "please", "pour", "her", "some", "chocolate", "oat", "milk"]


@pytest.fixture
def table() -> np.ndarray:
    """The chapter's table; its first six rows are the small one."""
    return np.random.default_rng(15).normal(size=(8, 4)).round(1)


def said(pattern: str) -> list[int]:
    """The integers of the one place in the prose that a pattern matches."""
    (found,) = re.finditer(pattern, PROSE)
    return [int(number.replace(",", "")) for number in found.groups()]


def score(rows: np.ndarray, milk: int, chocolate: int) -> float:
    return float((Q + rows[milk]) @ (K + rows[chocolate]))


# ------------------------------------------------------------------------ the puzzle and the wall


def test_the_phrase_has_six_words_and_moves_by_two() -> None:
    assert len(MOVED[2:]) == 6
    assert [MOVED.index(word) for word in ("please", "chocolate", "oat", "milk")] == [1, 5, 6, 7]


def test_the_small_table_is_the_start_of_the_large_one(table: np.ndarray) -> None:
    assert np.array_equal(np.random.default_rng(15).normal(size=(6, 4)).round(1), table[:6])


def test_clamping_gives_three_words_one_row_and_wrapping_starts_over(table: np.ndarray) -> None:
    small, places = table[:6], np.arange(8)
    clamped = np.take(small, places, axis=0, mode="clip")
    assert (clamped[5:] == small[5]).all()
    assert np.array_equal(np.take(small, places, axis=0, mode="wrap")[7], small[1])
    with pytest.raises(IndexError):
        np.take(small, places, axis=0)


def test_behind_the_wall_both_orders_have_one_score(table: np.ndarray) -> None:
    clamped = np.take(table[:6], np.arange(8), axis=0, mode="clip")
    assert score(clamped, 7, 6) == score(clamped, 6, 7)
    assert score(table[:6], 5, 3) != score(table[:6], 3, 5)  # and in front of it two


def test_the_513th_token_stands_at_512_and_the_table_ends_at_511() -> None:
    book = torch.nn.Embedding(512, 2)
    book(torch.arange(513)[511:512])
    for index in (torch.arange(513)[512:], torch.tensor([-1])):
        with pytest.raises(IndexError):
            book(index)


def test_a_slice_with_one_row_left_broadcasts_and_one_with_two_crashes() -> None:
    rows, tokens = torch.zeros(6, 4), torch.zeros(3, 4)
    assert len(rows[5:8]) == 1 and (tokens + rows[5:8]).shape == (3, 4)
    assert len(rows[4:7]) == 2
    with pytest.raises(RuntimeError):
        tokens + rows[4:7]


# ------------------------------------------------------------------------ gradient and training


def test_a_product_adds_two_ones_where_plus_equals_keeps_one() -> None:
    positions, ones = np.array([3, 5, 3]), np.ones((3, 4))
    gradient = np.zeros((6, 4))
    gradient[positions] += ones
    assert gradient[[3, 5], 0].tolist() == [1, 1]
    right = lookup_gradient(ones, positions, 6)
    assert right[[3, 5], 0].tolist() == [2, 1]
    assert np.array_equal(right, np.eye(6)[positions].T @ ones)


def test_rows_12_to_15_stay_and_only_row_11_still_shows_an_error() -> None:
    """The chapter's run by a loop over tokens, without the chapter's functions."""
    rng = np.random.default_rng(0)
    start, readout = rng.normal(size=(16, 8)), rng.normal(size=(8, 2)) / np.sqrt(8)
    want = np.array([[p / 12, p % 2] for p in range(16)])
    rows, visits = start.copy(), [0] * 16
    for _ in range(400):
        for p in range(rng.integers(1, 13)):  # each row is read once in a text
            rows[p] -= 0.1 * readout @ (rows[p] @ readout - want[p])
            visits[p] += 1
    assert visits[0] == 400 and min(visits[:12]) == visits[11] == 38 and not any(visits[12:])
    assert np.flatnonzero((rows == start).all(axis=1)).tolist() == [12, 13, 14, 15]
    miss = np.abs(rows @ readout - want).max(axis=1)
    assert miss[:11].max() < 0.005 < miss[11] < 0.02 and miss[12:].min() > 1


def test_bert_left_three_quarters_of_its_table_without_visits_at_first() -> None:
    short, rows = said(r"on texts of (\d+) tokens and only then on (\d+)")
    assert "three quarters of its table" in PROSE
    assert (rows - short) / rows == 0.75


def test_weight_decay_shrinks_a_row_that_no_text_visits() -> None:
    assert round((1 - 0.01 * 0.5) ** 200, 3) == 0.367


# ------------------------------------------------------------------------ what ties rows together


def shift_error(rows: np.ndarray) -> float:
    """By the pseudo-inverse, in columns: how badly the step of the first half fits the second."""
    first, second = rows[: len(rows) // 2 + 1].T, rows[len(rows) // 2 :].T
    step = first[:, 1:] @ np.linalg.pinv(first[:, :-1])
    wrong = step @ second[:, :-1] - second[:, 1:]
    return float(np.linalg.norm(wrong) / np.linalg.norm(second[:, 1:]))


def test_sinusoids_keep_their_step_and_a_random_table_has_none() -> None:
    angles = np.arange(128)[:, None] * np.array([1.0, 0.1, 0.01, 0.001])
    assert shift_error(np.concatenate([np.sin(angles), np.cos(angles)], axis=1)) < 1e-10
    noise = shift_error(np.random.default_rng(1).normal(size=(128, 8)))
    assert round(noise, 2) == 1.05  # guessing zero gives 1


@pytest.fixture(scope="module")
def neighbourhood() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chapter's table and head, before and after training: drawn, rows, head."""
    torch.manual_seed(0)
    rows = torch.randn(32, 8).requires_grad_()
    head = (torch.randn(8, 8) / 8).requires_grad_()
    drawn = rows.detach().clone().numpy()
    far = torch.cdist(torch.arange(32.0)[:, None], torch.arange(32.0)[:, None], p=1)
    near = torch.exp(-far) / torch.exp(-far).sum(dim=1, keepdim=True)
    optimiser = torch.optim.Adam([rows, head], lr=0.03)
    for _ in range(300):
        optimiser.zero_grad()
        loss = -(near * torch.log_softmax(rows @ head @ rows.T, dim=1)).sum(dim=1).mean()
        loss.backward()
        optimiser.step()
    return drawn, rows.detach().numpy(), head.detach().numpy()


def mean_cosine(rows: np.ndarray, gap: int) -> float:
    lengths = np.linalg.norm(rows, axis=1)
    products = (rows[gap:] * rows[: len(rows) - gap]).sum(axis=1)
    return float((products / lengths[gap:] / lengths[: len(rows) - gap]).mean())


def test_training_makes_neighbours_alike_but_gives_no_step(neighbourhood) -> None:
    drawn, rows, _ = neighbourhood
    before = [mean_cosine(drawn, gap) for gap in (1, 2, 4)]
    after = [mean_cosine(rows, gap) for gap in (1, 2, 4)]
    assert max(np.abs(before)) < 0.2 < after[2] < after[1] < after[0]
    assert after[0] > 0.6
    assert shift_error(rows) > 0.7


def share_of_itself(rows: np.ndarray, head: np.ndarray) -> np.ndarray:
    """What each row gives to its own place."""
    weights = np.exp(rows @ head @ rows.T)
    return np.diagonal(weights) / weights.sum(axis=1)


def mean_distance(rows: np.ndarray, head: np.ndarray) -> np.ndarray:
    """How far from itself each row attends, on average."""
    far = []
    for place, query in enumerate(rows @ head):
        weights = np.exp(rows @ query - (rows @ query).max())
        far.append(np.abs(np.arange(len(rows)) - place) @ weights / weights.sum())
    return np.array(far)


def test_on_a_stretched_table_the_head_looks_2_4_times_as_far(neighbourhood) -> None:
    _, rows, head = neighbourhood
    stretched = resize_table(rows, 63)
    assert np.allclose(stretched[::2], rows, rtol=0, atol=1e-6)  # each old row at an even place
    old, new = mean_distance(rows, head).mean(), mean_distance(stretched, head)
    assert 0.75 < old < 0.85  # "0.8 tokens away"
    assert said(r"looks (\d)\.(\d) times as far") == [2, 4]
    assert 2.35 < new.mean() / old < 2.45
    at_home = [share_of_itself(table, head).mean() for table in (rows, stretched)]
    assert at_home[1] < 0.7 * at_home[0]  # "weight away from the row itself"
    assert abs(new[1::2].mean() - new[::2].mean()) < 0.4  # "the new ones as much as the old"
    fresh = np.random.default_rng(2).normal(size=(31, 8))
    noise = mean_distance(np.concatenate([rows, fresh]), head)[32:]
    assert noise.mean() > 10


# ------------------------------------------------------------------------ costs and counts


def test_the_table_of_gpt_2_is_0_6_percent_of_its_parameters() -> None:
    d, layers = 768, 12
    norm = 2 * d
    attention = d * 3 * d + 3 * d + d * d + d
    feed_forward = d * 4 * d + 4 * d + 4 * d * d + d
    total = (50257 + 1024) * d + layers * (2 * norm + attention + feed_forward) + norm
    assert total == 124_439_808
    assert round(100 * 1024 * d / total, 1) == 0.6
    assert 512 * 768 == 393_216
    (rows,) = said(r"At ([\d,]+) rows the table would outweigh the token table")
    assert rows > 50_257


def test_copies_and_stretches_of_published_models_add_up() -> None:
    long, short = said(r"a table of (\d+) with RoBERTa's (\d+), eight times over")
    assert 8 * short == long
    (rows,) = said(r"CLIP's text encoder has (\d+) rows")
    kept, factor, rest, total = said(r"(\d+) \+ (\d+) · (\d+) = (\d+)")
    assert kept + rest == rows and kept + factor * rest == total


def test_two_rows_stretch_to_three_with_their_mean_between() -> None:
    assert resize_table([[1.0, 4.0], [3.0, 8.0]], 3).tolist() == [[1, 4], [2, 6], [3, 8]]


def test_512_tokens_need_514_rows_with_padding_1_and_516_with_padding_3() -> None:
    for padding_id, rows in ((1, 514), (3, 516)):
        full = padded_positions(np.full(512, 7), padding_id)
        assert (full.min(), full.max() + 1) == (padding_id + 1, rows)


def test_opt_has_two_rows_more_than_positions() -> None:
    rows, tokens = said(r"Its table has (\d+) rows for (\d+) tokens")
    assert rows - tokens == 2


def test_a_padding_row_in_the_position_table_never_trains() -> None:
    book = torch.nn.Embedding(6, 4, padding_idx=1)
    book(torch.arange(6)).sum().backward()
    assert book.weight[1].tolist() == [0, 0, 0, 0]
    assert book.weight.grad.sum(dim=1).tolist() == [4, 0, 4, 4, 4, 4]


def test_a_shift_of_both_words_changes_an_added_score(table: np.ndarray) -> None:
    assert round(score(table, 5, 3), 4) == -1.13
    assert round(score(table, 7, 5), 4) == 0.43


def test_the_faulty_count_is_right_with_padding_on_the_right_only() -> None:
    def by_slot(token_ids: list[int], padding_id: int) -> list[int]:
        return [
            padding_id if token == padding_id else slot + padding_id + 1
            for slot, token in enumerate(token_ids)
        ]

    right, left = [0, 5, 6, 1, 1], [1, 1, 0, 5, 6]
    assert by_slot(right, 1) == padded_positions(right, 1).tolist() == [2, 3, 4, 1, 1]
    assert by_slot(left, 1) == [1, 1, 4, 5, 6]
    assert padded_positions(left, 1).tolist() == [1, 1, 2, 3, 4]


def test_the_reported_batch_gets_its_own_token_ids_as_positions() -> None:
    batch = [[4, 5, 6], [4, 3, 3]]
    assert padded_positions(batch, 3).tolist() == batch


def test_a_batch_of_32_texts_of_100_tokens_trains_100_rows() -> None:
    places = np.tile(np.arange(100), (32, 1))
    gradient = lookup_gradient(np.ones((32, 100, 2)), places, 512)
    assert (gradient[:100] == 32).all() and not gradient[100:].any()
    assert len(gradient[100:]) == 412
