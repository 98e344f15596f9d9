"""Every number that the prose of the chapter `rope` states without printing it right there.

Displayed numbers that nothing executes are where tutorials go wrong; these are executed here.
"""

import math

import numpy as np
import pytest
import torch

from solutions.with_numpy.rope import (
    apply_partial_rope,
    apply_rope,
    interleaved_to_half,
    rope_angles,
    rope_scores,
    rotate_2d,
    score_bound,
)

Q = np.array([1.0, 0.5, -0.5, 2.0])  # what "milk" asks
K = np.array([0.5, 1.0, 1.5, -1.0])  # what "chocolate" offers


def score(m: float, n: float, layout: str = "interleaved") -> float:
    """Unscaled score of milk at m and chocolate at n."""
    q = apply_rope(Q[None], np.array([m]), layout=layout)[0]
    k = apply_rope(K[None], np.array([n]), layout=layout)[0]
    return float(q @ k)


def place(position: float) -> np.ndarray:
    """The chapter's four-coordinate sinusoid."""
    fast, slow = position, position / 100
    return np.array([np.sin(fast), np.cos(fast), np.sin(slow), np.cos(slow)])


def permutation(head_dim: int) -> np.ndarray:
    """Where the rows of one head of this width come from."""
    return interleaved_to_half(np.arange(head_dim)[:, None], 1).ravel().astype(int)


def test_the_score_without_positions_is_minus_one_and_three_quarters() -> None:
    assert Q @ K == -1.75


def test_the_phrase_counts_milk_at_5_and_chocolate_at_3_and_two_later_when_moved() -> None:
    phrase = ["Pour", "her", "some", "chocolate", "oat", "milk"]
    moved = ["then", "please", "pour", "her", "some", "chocolate", "oat", "milk"]
    assert (phrase.index("milk"), phrase.index("chocolate")) == (5, 3)
    assert (moved.index("milk"), moved.index("chocolate")) == (7, 5)


def test_added_positions_drag_the_score_from_negative_to_positive_and_back() -> None:
    sums = [(Q + place(m)) @ (K + place(n)) for m, n in [(5, 3), (7, 5), (105, 103)]]
    assert [round(value, 4) for value in sums] == [-0.6557, 0.1788, -0.2561]


def test_place_with_place_depends_on_the_gap_alone() -> None:
    products = [place(m) @ place(m - 2) for m in (5, 7, 105)]
    np.testing.assert_allclose(products, 0.5837, atol=5e-5)


def test_a_quarter_turn_takes_the_first_axis_to_the_second() -> None:
    np.testing.assert_allclose(rotate_2d([1.0, 0.0], math.pi / 2), [0, 1], atol=1e-15)


def test_ninety_radians_are_a_good_fourteen_turns() -> None:
    assert 14 < 90 / (2 * math.pi) < 14.5


def test_one_plane_comes_round_after_about_six_words_and_nearly_at_44() -> None:
    assert 6 < 2 * math.pi < 6.5
    assert abs(44 / (2 * math.pi) - 7) < 0.003


def test_a_frequency_index_doubled_twice_gives_one_in_ten_thousand_at_dim_4() -> None:
    assert rope_angles(1, 4).tolist() == pytest.approx([1, 0.01])
    doubled_twice = 10000.0 ** (-2 * 2 / 4)
    assert doubled_twice == pytest.approx(0.0001)


def test_the_slowest_pair_stays_below_the_limit_that_is_often_quoted() -> None:
    slowest = {dim: 2 * math.pi / rope_angles(1, dim)[-1] for dim in (4, 128)}
    assert slowest[4] == pytest.approx(628.3, abs=0.05)
    assert slowest[128] == pytest.approx(54410.1, abs=0.05)
    assert slowest[128] == pytest.approx(2 * math.pi * 10000 ** (126 / 128))
    assert 2 * math.pi * 10000 / slowest[4] == pytest.approx(100)


def test_46_of_64_pairs_finish_a_turn_in_4096_tokens() -> None:
    wavelengths = 2 * np.pi / rope_angles(1, 128)
    assert np.sum(wavelengths <= 4096) == 46


def test_the_worked_example_is_the_published_one() -> None:
    q = apply_rope(Q[None], np.array([5]))[0]
    k = apply_rope(K[None], np.array([3]))[0]
    np.testing.assert_allclose(q, [0.7631, -0.8171, -0.5993, 1.9725], atol=5e-5)
    np.testing.assert_allclose(k, [-0.6361, -0.9194, 1.5293, -0.9546], atol=5e-5)
    assert rope_angles(5, 4).tolist() == pytest.approx([5, 0.05])


@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [(5, 3, -2.5336), (7, 5, -2.5336), (105, 103, -2.5336), (3, 5, -3.7976), (0, 3, -3.7696)],
)
def test_scores_of_milk_and_chocolate(m: int, n: int, expected: float) -> None:
    assert round(score(m, n), 4) == expected


def test_the_layouts_agree_at_gap_zero_and_differ_at_gap_two() -> None:
    assert round(score(5, 3, "half"), 4) == 0.1456
    assert score(5, 5, "half") == pytest.approx(score(5, 5), abs=1e-14)


def test_rows_of_a_head_of_six_become_evens_then_odds() -> None:
    assert permutation(6).tolist() == [0, 2, 4, 1, 3, 5]
    assert permutation(4).tolist() == [0, 2, 1, 3]


def test_widths_4_and_8_cannot_tell_a_permutation_from_its_undo_and_others_can() -> None:
    def applied(times: int, width: int) -> list[int]:
        rows = np.arange(width)
        for _ in range(times):
            rows = rows[permutation(width)]
        return rows.tolist()

    assert applied(2, 4) == list(range(4))  # its own inverse
    assert applied(3, 8) == list(range(8))  # twice is the inverse
    for width in (6, 10, 16):
        assert applied(2, width) != list(range(width))
        assert applied(3, width) != list(range(width))


def test_the_wrong_count_of_heads_hid_behind_64_and_8() -> None:
    assert 64 // 8 == 8


def test_a_lower_base_mimics_the_ladder_of_the_whole_head() -> None:
    whole = rope_angles(1, 16)[:2]
    np.testing.assert_allclose(rope_angles(1, 4, base=10000 ** (4 / 16)), whole)
    assert np.all(whole[1:] > rope_angles(1, 4)[1:])  # every pair but the first turns too fast


def test_the_wrong_ladder_is_right_at_position_zero_only() -> None:
    x = np.random.default_rng(1).normal(size=(1, 16))
    errors = []
    for position in (0, 1, 10, 100):
        at = np.array([position])
        wrong = apply_partial_rope(x, at, 4, base=10000 ** (4 / 16))
        errors.append(np.abs(apply_partial_rope(x, at, 4) - wrong).max())
    assert errors[0] == 0 < errors[1] < errors[2] > errors[3]


def test_the_bound_starts_at_the_mean_of_1_to_64() -> None:
    assert np.mean(np.arange(1, 65)) == 32.5
    assert score_bound(0, 128) == pytest.approx(32.5)


def test_the_bound_falls_with_a_wobble_and_the_head_that_looks_back_peaks_at_50() -> None:
    gaps = np.arange(257)
    key = np.random.default_rng(3).normal(size=128)
    query = apply_rope(key[None], np.array([-50]))
    scores = rope_scores(np.tile(query, (257, 1)), key[None], gaps, np.array([0]))[:, 0]
    assert np.argmax(scores) == 50
    bound = score_bound(gaps, 128)
    assert bound[256] < bound[50] < bound[0]
    assert np.sum(np.diff(bound) > 0) == 115
    h = (query[0, 0::2] + 1j * query[0, 1::2]) * (key[0::2] - 1j * key[1::2])
    limit = np.abs(np.diff(np.append(h, 0))).max() * 64 * bound / np.sqrt(128)
    assert round(np.max(np.abs(scores) / limit), 3) == 0.014


def test_float16_turns_the_sign_of_a_cosine_at_position_1857() -> None:
    angle = 1857 * 10000 ** (-2 / 32)
    half = np.float16(1857) * np.float16(10000 ** (-2 / 32))
    assert (round(angle, 3), float(half)) == (1044.268, 1045.0)
    assert (round(math.cos(angle), 3), round(math.cos(half), 3)) == (0.307, -0.408)
    assert abs(float(half) - angle) / angle < 1e-3
    assert np.spacing(np.float16(1024)) == np.spacing(np.float16(2047)) == 1


def test_bfloat16_cannot_count_past_256() -> None:
    assert torch.arange(257).to(torch.bfloat16).unique().numel() == 257
    assert torch.tensor([256, 257]).to(torch.bfloat16).tolist() == [256, 256]


def test_302_and_300_are_exact_in_bfloat16_and_3002_falls_on_3000() -> None:
    assert torch.tensor([302, 300]).to(torch.bfloat16).tolist() == [302, 300]
    a, b = torch.tensor([3002, 3000]).to(torch.bfloat16).tolist()
    assert a == b


def test_the_bfloat16_column_ends_at_the_score_of_gap_zero() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 32)) + 1j * rng.normal(size=(2, 32))
    assert round((q * k.conj()).real.sum(), 4) == -7.8170


def test_bfloat16_steps_by_512_from_65536_on() -> None:
    pixels = torch.arange(65536, 65540).to(torch.bfloat16)
    assert pixels.unique().tolist() == [65536]


def test_float32_angles_are_harmless_at_4096_and_visible_at_131072() -> None:
    frequencies = rope_angles(1, 128)
    errors = []
    for length in (4096, 131072):
        positions = np.arange(length - 1000, length)
        exact = positions[:, None] * frequencies
        single = np.float32(positions)[:, None] * np.float32(frequencies)
        errors.append(np.abs(np.cos(np.float64(single)) - np.cos(exact)).max())
    assert errors[0] < 5e-4 < 5e-3 < errors[1]


def largest_error(position: int, dtype: torch.dtype, cast: torch.dtype = torch.float32) -> float:
    """Of cosines and sines that are cast at the end, when the angles were made in `dtype`."""
    exact = rope_angles(position, 128)
    frequencies = torch.from_numpy(rope_angles(1, 128))
    angles = (torch.tensor(position).to(dtype) * frequencies.to(dtype)).double()
    found = torch.stack([angles.cos(), angles.sin()]).to(cast).double().numpy()
    return float(np.abs(found - [np.cos(exact), np.sin(exact)]).max())


def test_errors_of_cosines_and_sines_up_to_a_million() -> None:
    single = [largest_error(m, torch.float32) for m in (1000, 1_000_000)]
    assert [round(error, 5) for error in single] == [0.00003, 0.05159]
    brain = largest_error(1_000_000, torch.bfloat16)
    assert 2 - 0.02 < brain < 2
    for m in (10**3, 10**4, 10**5, 10**6):
        double = largest_error(m, torch.float64)
        assert round(double, 8) == 0.00000003 and double < 2.0**-25 + 2.0**-50 * m
    assert 2.0**-25 < 0.00000003
    assert round(single[1] / double / 1e6, 1) == 1.8
    assert round(single[1] / largest_error(10**6, torch.float64, torch.bfloat16)) == 26


def test_the_answers_of_the_self_check() -> None:
    assert round(math.degrees(1), 1) == 57.3
    last = 10000 ** (-126 / 128)
    assert round(math.degrees(last), 4) == 0.0066
    assert round(2 * math.pi / last) == 54410
    assert not rope_angles(0, 64, base=7.0).any() and not rope_angles(0, 8).any()


def test_a_rotation_before_the_projections_leaves_a_score_that_depends_on_both_positions() -> None:
    w_q, w_k = np.random.default_rng(6).normal(size=(2, 4, 4))

    def early(m: int, n: int) -> float:
        x, y = (apply_rope(v[None], np.array([at]))[0] for v, at in [(Q, m), (K, n)])
        return float((w_q @ x) @ (w_k @ y))

    assert abs(early(5, 3) - early(7, 5)) > 0.1


def test_a_rotation_does_less_than_one_operation_for_a_byte() -> None:
    operations = 3  # for each number: two products and a sum
    assert operations / (2 * 4) < 1 and operations / (2 * 2) < 1  # float32: 8 bytes, bfloat16: 4


def test_the_half_split_form_moves_five_copies_and_a_table_is_a_32nd_of_32_heads() -> None:
    x, table = 1.0, 512 * 128 / (32 * 512 * 128)
    negated, joined, product, total = x / 2 + x / 2, x + x, x + table + x, x + x + x
    assert table == 1 / 32
    assert round((negated + joined + 2 * product + total) / (x + x)) == 5
