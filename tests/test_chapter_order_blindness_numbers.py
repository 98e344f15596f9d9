"""Every number that the prose of the chapter `order_blindness` states without printing it there.

Computed here without the page's code and, where it matters, without the reference: plain loops.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

WORDS = {
    "pour": [0.0, -1.0, 1.0, 1.0],
    "her": [1.0, 1.0, 0.0, 0.5],
    "some": [-1.0, 0.5, 0.5, 0.0],
    "chocolate": [0.5, 1.0, -0.5, 0.0],
    "oat": [0.5, 0.0, 1.0, -1.0],
    "milk": [1.0, 0.0, 0.5, -1.0],
}
SENTENCE = "pour her some chocolate oat milk".split()
W_Q = [[1, 0, 0, 1], [0, -0.5, 1, 0], [0, 1, 0, 1], [0, 0, 0.5, -0.5]]
W_K = [[1, 0, 1, 0], [0, 0.5, 1, 0], [0, -1, 0, 2], [0.5, 0, 0, -1]]
W_V = [[1, 0, 0.5], [0, 2, 0], [0, -1, 1], [1, 0, -1]]


def project(vector: list[float], weight: list[list[float]]) -> list[float]:
    return (np.array(vector) @ np.array(weight)).tolist()


def shares(vectors: list[list[float]], causal: bool = False) -> list[list[float]]:
    """A row of shares for each token, by loops."""
    table = []
    for i, asks in enumerate(vectors):
        powers = []
        for j, offers in enumerate(vectors):
            q, k = project(asks, W_Q), project(offers, W_K)
            score = sum(a * b for a, b in zip(q, k, strict=True)) / 2
            powers.append(0.0 if causal and j > i else math.exp(score))
        table.append([power / sum(powers) for power in powers])
    return table


def outputs(vectors: list[list[float]], causal: bool = False) -> np.ndarray:
    values = np.array([project(vector, W_V) for vector in vectors])
    return np.array(shares(vectors, causal)) @ values


def look_up(phrase: str) -> list[list[float]]:
    return [WORDS[word] for word in phrase.split()]


def test_milk_asks_and_chocolate_offers_the_vectors_of_the_whole_book() -> None:
    q, k = project(WORDS["milk"], W_Q), project(WORDS["chocolate"], W_K)
    assert q == [1.0, 0.5, -0.5, 2.0]
    assert k == [0.5, 1.0, 1.5, -1.0]
    assert sum(a * b for a, b in zip(q, k, strict=True)) == -1.75


def test_chocolate_is_row_3_and_milk_row_5() -> None:
    assert (SENTENCE.index("chocolate"), SENTENCE.index("milk")) == (3, 5)


def test_the_puzzle_gives_the_same_rows_in_the_other_order() -> None:
    np.testing.assert_allclose(
        outputs(look_up("chocolate milk")), outputs(look_up("milk chocolate"))[::-1], atol=1e-14
    )


def test_the_variance_of_an_inner_product_is_the_width() -> None:
    rng = np.random.default_rng(5)
    for d_k in (4, 64):
        products = (rng.normal(size=(20000, d_k)) * rng.normal(size=(20000, d_k))).sum(axis=1)
        assert products.var() == pytest.approx(d_k, rel=0.1)


def test_a_score_larger_by_one_has_a_share_e_times_as_large() -> None:
    powers = np.exp([0.3, 1.3])
    assert powers[1] / powers[0] == pytest.approx(math.e)


def test_milk_gives_chocolate_little_and_gets_more_than_ten_times_as_much() -> None:
    table = shares(look_up(" ".join(SENTENCE)))
    assert round(table[5][3], 4) == 0.0158
    assert table[3][5] > 10 * table[5][3]
    assert [round(sum(row), 12) for row in table] == [1] * 6
    assert max(abs(sum(column) - 1) for column in zip(*table, strict=True)) > 0.3


def test_e_to_the_1000_is_no_floating_point_number() -> None:
    with pytest.raises(OverflowError):
        math.exp(1000)


def test_shares_set_to_zero_after_the_softmax_no_longer_add_up() -> None:
    row = shares(look_up(" ".join(SENTENCE)))[5]
    assert sum(row[:5]) < 0.8


def test_a_swap_is_its_own_inverse_and_a_shift_is_not() -> None:
    swap, shift = np.array([1, 0, 2]), np.array([1, 2, 0])
    assert np.array_equal(np.argsort(swap), swap)
    assert not np.array_equal(np.argsort(shift), shift)


def test_the_causal_mask_fits_no_shuffle_but_the_one_that_moves_nothing() -> None:
    mask = np.tri(5, dtype=bool)
    fits = [
        order
        for order in itertools.permutations(range(5))
        if np.array_equal(mask[np.ix_(order, order)], mask)
    ]
    assert fits == [tuple(range(5))]


def test_milk_has_length_one_and_a_half_and_an_index_of_5_makes_it_6_5_5_and_a_half_4() -> None:
    milk = np.array(WORDS["milk"])
    assert np.linalg.norm(milk) == 1.5
    assert (milk + 5).tolist() == [6, 5, 5.5, 4]


def test_numbered_words_from_the_second_on_all_look_at_the_last_one() -> None:
    numbered = (np.array(look_up(" ".join(SENTENCE))) + np.arange(6)[:, None]).tolist()
    table = shares(numbered)
    for row in table[1:]:
        assert row[5] > 0.99


def test_half_of_a_thousand_fractions_coincide_in_bfloat16() -> None:
    assert (torch.arange(1000) / 1000).to(torch.bfloat16).unique().numel() == 507


def test_one_coordinate_has_its_top_at_an_end_and_two_coordinates_anywhere() -> None:
    places = np.arange(8) / 8
    for a in np.linspace(-50, 50, 41):
        if a != 0:
            assert int(np.argmax(a * places)) in (0, 7)
    circle = np.exp(1j * np.pi * places)
    for wanted in range(8):
        assert int(np.argmax((np.conj(circle) * circle[wanted]).real)) == wanted


def test_a_hand_with_8_to_a_turn_comes_round() -> None:
    angle = np.arange(16) * np.pi / 4
    np.testing.assert_allclose(np.cos(angle[:8]), np.cos(angle[8:]), atol=1e-12)


def test_the_counter_flips_1_bit_then_4_and_0_differs_from_8_by_1() -> None:
    def flips(a: int, b: int) -> int:
        return bin(a ^ b).count("1")

    assert (flips(6, 7), flips(7, 8), flips(0, 8)) == (1, 4, 1)
    assert max(flips(a, b) for a in range(16) for b in range(16)) == 4
    assert max(flips(a, a + 1) for a in range(15) if a != 7) == 3


def test_under_the_mask_milk_does_not_mind_the_order_of_what_came_before() -> None:
    one = outputs(look_up("chocolate oat milk"), causal=True)
    other = outputs(look_up("oat chocolate milk"), causal=True)
    np.testing.assert_allclose(one[2], other[2], atol=1e-14)
    assert np.abs(one[0] - other[1]).max() > 0.5
    assert np.abs(one[1] - other[0]).max() > 0.01


def test_a_second_causal_layer_does_mind() -> None:
    tables = []
    for phrase in ("chocolate oat milk", "oat chocolate milk"):
        x = np.array(look_up(phrase))
        for _ in range(2):
            x = x + outputs(x.tolist(), causal=True) @ np.array(W_V).T
        tables.append(x)
    assert round(np.abs(tables[0][2] - tables[1][2]).max(), 4) == 1.7079


def test_equal_words_have_equal_outputs_under_the_mask_too() -> None:
    rows = outputs(look_up("milk milk milk milk"), causal=True)
    np.testing.assert_allclose(rows, np.tile(rows[0], (4, 1)), atol=1e-14)


def test_shares_around_position_1000_differ_by_a_millionth() -> None:
    assert pytest.approx(1e-6, rel=0.01) == 1 / 1001 - 1 / 1002


def test_bfloat16_keeps_490_of_1024_shares_and_189_is_the_first_to_meet_its_neighbour() -> None:
    kept = [float(torch.tensor(1 / (t + 1)).to(torch.bfloat16)) for t in range(1024)]
    assert len(set(kept)) == 490
    assert next(t for t in range(1023) if kept[t] == kept[t + 1]) == 189


def test_m_over_m_plus_1_has_twins_within_1e_9_from_about_31600_on() -> None:
    first = next(m for m in range(30000, 40000) if 1 / ((m + 1) * (m + 2)) <= 1e-9)
    assert 31500 < first < 31700


def test_the_two_functions_of_torch_read_true_in_opposite_ways() -> None:
    torch.manual_seed(0)
    q = torch.randn(1, 1, 5, 8)
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    expected = torch.softmax((q @ q.mT / 8**0.5).masked_fill(~allowed, -math.inf), -1) @ q
    torch.testing.assert_close(scaled_dot_product_attention(q, q, q, attn_mask=allowed), expected)

    module = torch.nn.MultiheadAttention(8, 1, bias=False, batch_first=True)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(8).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(8))
        ours, _ = module(q[0], q[0], q[0], attn_mask=~allowed)
    torch.testing.assert_close(ours, expected[0])


def test_the_upper_triangle_lets_token_0_see_every_later_token_and_the_last_one_none() -> None:
    mask = torch.ones(5, 5, dtype=torch.bool).triu(diagonal=1)
    assert mask.sum(dim=1).tolist() == [4, 3, 2, 1, 0]


def test_numbers_that_travel_with_the_rows_leave_the_gap_at_zero_and_chairs_do_not() -> None:
    """The second question of "Check yourself"."""
    rng = np.random.default_rng(3)
    x, places = np.array(look_up(" ".join(SENTENCE))), rng.normal(size=(6, 4))
    order = np.array([3, 5, 0, 4, 1, 2])
    attended = outputs((x + places).tolist())
    travelled = outputs((x + places)[order].tolist())
    stayed = outputs((x[order] + places).tolist())
    np.testing.assert_allclose(travelled, attended[order], atol=1e-13)
    assert np.abs(stayed - attended[order]).max() > 0.1
