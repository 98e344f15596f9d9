"""Every number that the prose of the chapter `alibi` states without printing it right there.

Displayed numbers that nothing executes are where tutorials go wrong; these are executed here.
Formulas are written out once more, so that a fault of the reference cannot pass twice.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from solutions.with_numpy.alibi import (
    alibi_attention,
    alibi_bias,
    alibi_slopes,
    fixed_bias,
    shaw_scores,
    t5_bucket,
)
from solutions.with_torch.alibi import QUERIES_AT_ONCE

Q = np.array([1.0, 0.5, -0.5, 2.0])  # what "milk" asks
K = np.array([0.5, 1.0, 1.5, -1.0])  # what "chocolate" offers
WORDS = "Pour her some chocolate oat milk".split()
PLACES = np.arange(6)
PAGE = Path(__file__).resolve().parent.parent / "book" / "alibi.md"
PROSE = " ".join(PAGE.read_text(encoding="utf-8").split())  # without its line breaks


def softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def one_bucket(distance: int, buckets: int, limit: int = 128) -> int:
    """Number of the bucket for one direction, by the chapter's formula."""
    exact = buckets // 2
    if distance < exact:
        return distance
    step = (buckets - exact) * math.log(distance / exact) / math.log(limit / exact)
    return min(exact + math.floor(step + 1e-9), buckets - 1)


# ------------------------------------------------------------------------ the puzzle, the family


def test_the_first_two_libraries_agree_and_the_third_looks_to_the_far_end() -> None:
    keys = np.random.default_rng(6).normal(size=(6, 4)).round(1)
    keys[3] = K
    scores = keys @ Q / 2
    first, second, third = (
        softmax(scores + bias) for bias in (-0.5 * (5 - PLACES), 0.5 * PLACES, 0.5 * (5 - PLACES))
    )
    np.testing.assert_allclose(first, second, rtol=1e-12)
    assert third[:2].sum() > 0.8 > 0.2 > first[:2].sum()


def test_milk_stands_at_5_and_chocolate_two_before() -> None:
    assert (WORDS.index("milk"), WORDS.index("chocolate"), WORDS.index("her")) == (5, 3, 1)


def test_shaw_needs_five_vectors_for_a_limit_of_two_and_t5_eleven_numbers_for_six_words() -> None:
    assert 2 * 2 + 1 == 5
    assert len({n - m for m in range(6) for n in range(6)}) == 11


# ------------------------------------------------------------------------ slopes


def test_a_slope_of_one_half_costs_what_the_sources_say() -> None:
    assert (-fixed_bias([8], [8, 7, 6, 4, 0], 0.5)[0]).tolist() == [0, 0.5, 1, 2, 4]


def test_half_of_a_weight_is_gone_after_1_4_words_and_at_8_less_than_a_fiftieth_is_left() -> None:
    assert 1.3 < math.log(2) / 0.5 < 1.5
    assert math.exp(-0.5 * 8) < 1 / 50


def test_eight_heads_run_from_a_half_to_a_256th_and_sixteen_put_one_before_each() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    sixteen = alibi_slopes(16)
    np.testing.assert_allclose(sixteen[1::2], alibi_slopes(8), rtol=1e-15)
    assert sixteen[0] == pytest.approx(2**-0.5)
    assert {alibi_slopes(2**a)[-1] for a in range(7)} == {2.0**-8}


def test_three_heads_take_a_quarter_from_four() -> None:
    assert alibi_slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]


def test_twelve_heads_jump_from_0039_to_7071() -> None:
    twelve = alibi_slopes(12).round(4)
    assert (twelve[7], twelve[8]) == (0.0039, 0.7071)


def test_four_smooth_slopes_are_right_ones_and_none_is_in_the_right_head() -> None:
    smooth, right = 2.0 ** (-8 * np.arange(1, 13) / 12), alibi_slopes(12)
    equal = np.isclose(smooth[:, None], right)
    assert equal.sum() == 4
    assert not np.diagonal(equal).any()
    assert np.flatnonzero(equal[11]).tolist() == [7]  # its 1/256 belongs to head 8


def test_112_is_no_power_of_two() -> None:
    assert 112 & 111 != 0


def test_counting_from_zero_doubles_the_slopes_of_eight_heads() -> None:
    wrong = 2.0 ** (-8 * np.arange(8) / 8)
    assert wrong[:3].tolist() == [1, 0.5, 0.25]
    assert (wrong / alibi_slopes(8)).tolist() == [2] * 8


def test_the_horizons_double_from_under_two_words_to_177() -> None:
    halved = math.log(2) / alibi_slopes(8)
    np.testing.assert_allclose(halved[1:] / halved[:-1], 2)
    assert halved[0] < 2
    assert round(halved[-1]) == 177


# ------------------------------------------------------------------------ the worked example


def test_milk_and_chocolate_score_less_by_one_point() -> None:
    assert Q @ K == -1.75
    assert Q @ K / 2 == -0.875
    for m, n in [(5, 3), (7, 5), (105, 103), (3, 5)]:
        assert Q @ K / 2 + alibi_bias([m], [n], [0.5])[0, 0, 0] == -1.875


def test_five_points_of_content_pay_for_ten_words_or_1280() -> None:
    assert (5 / (1 / 2), 5 / (1 / 256)) == (10, 1280)


def test_moving_a_text_does_not_move_a_bit_and_equal_tokens_stay_equal() -> None:
    q, k, v = np.random.default_rng(1).normal(size=(3, 8, 40, 16))
    at = np.arange(40)
    here = alibi_attention(q, k, v, alibi_slopes(8), at, at)
    assert np.array_equal(here, alibi_attention(q, k, v, alibi_slopes(8), at + 1000, at + 1000))
    same = np.tile(Q, (1, 6, 1))
    output = alibi_attention(same, same, same, [0.5], PLACES, PLACES)[0]
    np.testing.assert_allclose(output, np.tile(Q, (6, 1)))


# ------------------------------------------------------------------------ extrapolation


def test_only_the_gentlest_head_looks_past_1024_with_less_than_two_per_cent() -> None:
    beyond = np.exp(-alibi_slopes(8) * 1024)
    assert 0.01 < beyond[-1] < 0.02
    assert (beyond[:-1] < 0.001).all()


def test_slopes_32_times_as_steep_do_for_32_letters_what_the_paper_s_do_for_1024() -> None:
    assert 1024 / 32 == 32
    within = 1 - math.exp(-32 * alibi_slopes(4)[-1] * 32)
    assert within == pytest.approx(1 - math.exp(-1024 / 256))
    assert round(within, 2) == 0.98


def test_the_paper_s_claim_is_told_with_its_numbers() -> None:
    claim = re.search(r"Here is the sentence that made ALiBi famous.*?\(their abstract\)", PROSE)
    assert claim
    assert re.findall(r"[\d.]+(?= billion)|(?<=\*\*)\d+", claim[0]) == [
        "1.3", "1024", "2048", "11", "11",
    ]  # fmt: skip


def test_5000_tokens_cost_the_gentlest_head_twenty_points_and_6000_cost_23() -> None:
    assert round(5000 / 256) == 20
    assert round(6000 / 256) == 23


# ------------------------------------------------------------------------ T5


def test_an_encoder_has_16_buckets_a_side_and_8_are_exact_a_decoder_32_and_16() -> None:
    distances = np.arange(300)
    sided = [one_bucket(d, 16) for d in range(300)]
    assert t5_bucket(-distances).tolist() == sided
    assert t5_bucket(distances[1:]).tolist() == [16 + bucket for bucket in sided[1:]]
    past = [one_bucket(d, 32) for d in range(300)]
    assert t5_bucket(-distances, bidirectional=False).tolist() == past
    assert (sided[7], sided[8], sided[12]) == (7, 8, 9)
    assert past[:17] == [*range(16), 16]


def test_eight_shares_with_eleven_and_91_with_everything_beyond() -> None:
    assert t5_bucket([-8, -11, -12, -91, -128, -5000]).tolist() == [8, 8, 9, 15, 15, 15]
    assert t5_bucket(-90) == 14


def test_all_ways_to_write_the_logarithm_agree_on_t5_s_numbers_and_not_at_8_buckets_up_to_32() -> (
    None
):
    def bucket(logs: float, n: int) -> int:
        return min(n // 2 + math.floor((n - n // 2) * logs), n - 1)

    def quotient(d: float, n: int, far: int) -> int:
        return bucket(math.log(d / (n // 2)) / math.log(far / (n // 2)), n)

    def difference(d: float, n: int, far: int) -> int:
        e = math.log(n // 2)
        return bucket((math.log(d) - e) / (math.log(far) - e), n)

    def single(d: float, n: int, far: int) -> int:
        logs = torch.log(torch.tensor(d / (n // 2))) / math.log(far / (n // 2))
        return bucket(float(logs.float()), n)

    for n in (16, 32):
        far = np.arange(n // 2, 300)
        expected = t5_bucket(-far, n == 16).tolist()
        for way in (quotient, difference, single):
            assert [way(float(d), n, 128) for d in far] == expected
    assert t5_bucket(-8, num_buckets=8, max_distance=32) == quotient(8.0, 4, 32) == 3
    assert difference(8.0, 4, 32) == 2
    u = [j for j in range(4) if 8**2 * 2**j >= 32**j * 2**2]  # N − e = e = 2
    assert u == [0, 1]  # so bucket 2 + 1


def test_t5_base_has_384_numbers() -> None:
    assert 32 * 12 == 384


def test_a_wrong_sign_or_a_query_at_zero_sends_the_whole_past_to_bucket_zero() -> None:
    assert not t5_bucket(5 - PLACES, bidirectional=False).any()
    assert not t5_bucket(PLACES - 0, bidirectional=False).any()
    assert t5_bucket(PLACES - 5, bidirectional=False).tolist() == [5, 4, 3, 2, 1, 0]


# ------------------------------------------------------------------------ Shaw


def test_shaw_s_score_keeps_the_gap_tells_the_order_and_stops_at_the_limit() -> None:
    table = np.random.default_rng(8).normal(size=(9, 4)).round(1)

    def score(m: int, n: int) -> float:
        expected = Q @ (K + table[min(max(n - m, -4), 4) + 4]) / 2
        got = float(shaw_scores(Q[None], K[None], table, [m], [n])[0, 0])
        assert got == pytest.approx(expected)
        return got

    assert score(5, 3) == score(105, 103) != score(3, 5)
    assert score(9, 3) == score(99, 3)
    assert (9 - 3, 99 - 3) == (6, 96)


def test_a_vector_for_each_pair_takes_256_mib_and_products_132_kib() -> None:
    assert 1024 * 1024 * 64 * 4 == 256 * 2**20
    assert 1024 * 33 * 4 == 132 * 2**10


# ------------------------------------------------------------------------ shift invariance


def test_left_padding_is_forgiven_and_padding_between_is_not() -> None:
    row = np.random.default_rng(2).normal(size=(6, 6))[5]
    true, left, between = (
        softmax(row + 0.5 * np.array(slots))
        for slots in (range(6), range(2, 8), [0, 1, 2, 3, 6, 7])
    )
    np.testing.assert_allclose(left, true)
    assert (between[:4] < true[:4]).all()


def test_her_looks_at_the_far_end_under_a_key_only_bias_without_a_mask() -> None:
    by_distance, key_only = softmax(fixed_bias([1], PLACES, 0.5)[0]), softmax(0.5 * PLACES)
    assert by_distance.argmax() == 1
    assert key_only.argmax() == 5


def test_a_row_one_too_far_changes_no_weight() -> None:
    row = np.random.default_rng(3).normal(size=6)
    near = softmax(row - 0.5 * np.arange(5, -1, -1))
    np.testing.assert_allclose(softmax(row - 0.5 * np.arange(6, 0, -1)), near)


def test_report_a_is_right_on_one_side_and_b_on_the_causal_one_up_to_a_constant() -> None:
    right = fixed_bias([4], [2, 4, 7], 0.5)[0]
    a, b = 0.5 * (4 - np.array([2, 4, 7])), 0.5 * np.array([2, 4, 7])
    assert (a == right).tolist() == [False, True, True]
    assert np.ptp((b - right)[:2]) == 0 != (b - right)[2] - (b - right)[1]


# ------------------------------------------------------------------------ cost and precision


def test_32_heads_at_8192_take_8_gib_and_one_row_takes_1_mib() -> None:
    assert 32 * 8192 * 8192 * 4 == 8 * 2**30
    assert 32 * 8192 * 4 == 2**20


def test_torch_documents_that_a_mask_and_is_causal_exclude_each_other() -> None:
    told = " ".join((scaled_dot_product_attention.__doc__ or "").split())
    assert "error is thrown if both attn_mask and is_causal are set" in told


def test_bfloat16_counts_by_ones_to_256_then_by_twos_then_by_fours() -> None:
    def steps(start: int, stop: int) -> set[float]:
        kept = torch.arange(start, stop + 1).to(torch.bfloat16).unique().tolist()
        return {b - a for a, b in itertools.pairwise(kept)}

    assert (steps(0, 256), steps(256, 512), steps(512, 1024)) == ({1}, {2}, {4})


def test_a_penalty_cast_to_bfloat16_is_off_by_up_to_a_256th_of_itself() -> None:
    penalties = torch.linspace(1, 4096, 40001, dtype=torch.float64)
    off = ((penalties.bfloat16().double() - penalties) / penalties).abs().max()
    assert 1 / 260 < off <= 1 / 256


def test_of_64_keys_five_groups_are_left_key_only_and_all_64_by_distance() -> None:
    near = torch.arange(4000 - 63, 4001)
    half = torch.tensor(0.5, dtype=torch.bfloat16)
    assert (half * near.to(torch.bfloat16)).unique().numel() == 5
    assert (half * (4000 - near).to(torch.bfloat16)).unique().numel() == 64


def test_a_slope_of_a_sixteenth_at_32_words() -> None:
    assert 32 / 16 == 2
    assert round(math.exp(-2), 3) == 0.135


def test_a_bias_does_two_operations_where_attention_does_four_for_each_coordinate() -> None:
    d = 128
    q, k, v = np.ones((3, d))
    products = [q * k, (q @ k) * v]  # of a score, and of its value's part in the result
    assert sum(2 * product.size for product in products) == 4 * d  # one sum with each product


def test_a_step_of_the_reference_takes_256_queries() -> None:
    assert QUERIES_AT_ONCE == 256
    assert "256 of them need a bias of $\\text{heads} \\times 256 \\times n$" in PROSE
