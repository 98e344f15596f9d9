"""Every number that the prose of the chapter `context_extension` states without printing it there.

They are computed from the reference, or by plain loops, and not from the page.
"""

import cmath
import math

import numpy as np
import pytest

from solutions.with_numpy.context_extension import (
    dynamic_ntk_frequencies,
    fixed_yarn_ramp,
    interpolate_positions,
    llama3_frequencies,
    longrope_frequencies,
    ntk_base,
    yarn_attention_factor,
    yarn_frequencies,
)

Q = [1.0, 0.5, -0.5, 2.0]  # what "milk" asks
K = [0.5, 1.0, 1.5, -1.0]  # what "chocolate" offers
LENGTH, DIM, BASE = 4096, 128, 10000.0


def frequency(i: int, dim: int = DIM, base: float = BASE) -> float:
    return base ** (-2 * i / dim)


def turns(i: int, length: float = LENGTH, dim: int = DIM, base: float = BASE) -> float:
    return length * frequency(i, dim, base) / (2 * math.pi)


def rounds(length: float, dim: int, base: float) -> int:
    """How many pairs get all the way round."""
    return sum(turns(i, length, dim, base) >= 1 for i in range(dim // 2))


def score(gap: float) -> float:
    """Milk's query turned by the gap, times chocolate's key, by complex numbers."""
    pairs = zip(Q[::2], Q[1::2], K[::2], K[1::2], strict=True)
    return sum(
        (complex(a, b) * cmath.exp(1j * gap * 0.01**i) * complex(c, -d)).real
        for i, (a, b, c, d) in enumerate(pairs)
    )


# ------------------------------------------------------------------------ what breaks


def test_the_phrase_scores_the_same_wherever_it_stands() -> None:
    assert round(score(5 - 3), 4) == round(score(8005 - 8003), 4) == -2.5336


def test_46_of_64_pairs_have_been_round_and_the_slowest_saw_27_degrees() -> None:
    assert rounds(LENGTH, DIM, BASE) == 46
    assert 64 - 46 == 18
    assert turns(45) > 1 > turns(46)
    assert round(360 * turns(63)) == 27


def fitted(rcond: float) -> tuple[np.ndarray, np.ndarray]:
    """Eight heads shaped at 300 gaps: the sizes of their scores within and beyond 4096."""
    rng = np.random.default_rng(0)
    seen = rng.choice(LENGTH, 300, replace=False)
    wishes = rng.uniform(-1, 1, size=(300, 8))
    theta = np.array([frequency(i) for i in range(64)])

    def waves(gaps: np.ndarray) -> np.ndarray:
        phase = np.outer(gaps, theta)
        return np.hstack([np.cos(phase), np.sin(phase)])

    heads = np.linalg.lstsq(waves(seen), wishes, rcond=rcond)[0]
    sizes = [waves(np.arange(a, b, 4)) @ heads for a, b in [(0, LENGTH), (LENGTH, 4 * LENGTH)]]
    return np.abs(sizes[0]).max(axis=0), np.abs(sizes[1]).max(axis=0)


def test_fitted_heads_stay_near_one_within_and_reach_ten_and_more_beyond() -> None:
    within, beyond = fitted(1e-3)
    assert within.max() < 1.5
    assert beyond.max() > 20
    assert np.median(beyond) > 10


def test_with_smaller_weights_they_stay_below_about_three() -> None:
    within, beyond = fitted(1e-2)
    assert within.max() < 1.5
    assert 2 < beyond.max() < 3.1


def test_ten_points_more_are_a_factor_of_22026_in_a_softmax() -> None:
    assert round(math.exp(10)) == 22026


# ------------------------------------------------------------------------ interpolation, the base


def test_8000_becomes_2000_at_factor_4_and_1000_at_factor_8() -> None:
    assert interpolate_positions(8000, 2048, 8192) == 2000
    assert interpolate_positions(8000, 4096, 32768) == 1000
    assert interpolate_positions(8000, 2048, 16384) == 1000  # the factor alone decides
    assert interpolate_positions(3, 2048, 8192) == 0.75
    assert 8000 * 8192 / 2048 == 32000  # the fraction on its head


def test_the_longest_gap_of_2048_tokens_is_2047_and_32768_is_sixteen_times_as_long() -> None:
    assert max(range(2048)) == 2047
    assert 32768 / 2048 == 16


def test_a_squeeze_leaves_half_of_the_difference_and_less_than_a_third() -> None:
    difference = [score(2 / s) - score(-2 / s) for s in (1, 4, 8)]
    assert difference[1] / difference[0] == pytest.approx(0.55, abs=0.01)
    assert difference[2] / difference[0] == pytest.approx(0.28, abs=0.01)
    assert score(0) == -1.75
    assert 2 / 8 == 0.25  # a quarter of a token


def test_at_width_4_and_factor_4_the_base_becomes_160000() -> None:
    assert ntk_base(10000.0, 4.0, 4) == pytest.approx(160000)
    assert 160000**-0.5 == 0.0025 == 0.01 / 4


def test_of_18_partial_pairs_the_larger_base_holds_one() -> None:
    base = ntk_base(BASE, 4.0, DIM)
    held = [turns(i, 4 * LENGTH, base=base) <= turns(i) * (1 + 1e-9) for i in range(46, 64)]
    assert held == [False] * 17 + [True]


def test_without_the_full_exponent_factor_8_is_774() -> None:
    assert round(8 ** (126 / 128), 2) == 7.74


def test_a_large_base_leaves_29_pairs_that_have_not_been_round_where_10000_leaves_14() -> None:
    assert 64 - rounds(8192, DIM, 500000.0) == 29
    assert 64 - rounds(8192, DIM, 10000.0) == 14
    assert 1 / turns(63, 8192, base=500000.0) == pytest.approx(300, rel=0.05)


# ------------------------------------------------------------------------ dynamic scaling


def test_the_bracket_starts_at_one_and_would_be_negative_for_a_short_text() -> None:
    def bracket(n: int) -> float:
        return 2 * n / 2048 - (2 - 1)

    assert bracket(2048) == 1
    assert bracket(512) == -0.5
    short = dynamic_ntk_frequencies(64, BASE, 2.0, 2048, 512)
    np.testing.assert_allclose(short, [frequency(i, 64) for i in range(32)], rtol=1e-14)


def test_a_long_text_leaves_no_trace_in_the_next_short_one() -> None:
    def slowest(n: int) -> float:
        return float(dynamic_ntk_frequencies(4, BASE, 2.0, 2048, n)[-1])

    first, _, last = slowest(500), slowest(8192), slowest(500)
    assert first == last == 0.01


# ------------------------------------------------------------------------ YaRN


def index_of(beta: float, dim: int, base: float, length: float) -> float:
    return dim * math.log(length / (2 * math.pi * beta)) / (2 * math.log(base))


def test_the_index_formula_finds_the_number_of_turns_that_it_was_asked_for() -> None:
    for beta in (32, 1, 7.5):
        i = index_of(beta, DIM, BASE, LENGTH)
        assert LENGTH * BASE ** (-2 * i / DIM) / (2 * math.pi) == pytest.approx(beta)
    ends = index_of(32, DIM, BASE, LENGTH), index_of(1, DIM, BASE, LENGTH)
    assert (math.floor(ends[0]), math.ceil(ends[1])) == (20, 46)
    assert turns(20) > 32 > turns(21)


def test_the_example_of_width_8_has_its_ends_at_1008_and_2513() -> None:
    ends = [round(index_of(beta, 8, BASE, 2048), 3) for beta in (32, 1)]
    assert ends == [1.008, 2.513]
    found = yarn_frequencies(8, BASE, 4.0, 2048)
    np.testing.assert_allclose(found, [1, 0.1, 0.01 * (0.5 + 0.5 / 4), 0.00025], rtol=1e-12)


def test_yarn_holds_all_18_partial_pairs_and_keeps_a_third_untouched() -> None:
    ratio = yarn_frequencies(DIM, BASE, 4.0, LENGTH) * [1 / frequency(i) for i in range(64)]
    assert np.all(4 * ratio[46:] <= 1 + 1e-12)
    assert np.sum(ratio > 1 - 1e-12) == 21
    assert abs(21 / 64 - 1 / 3) < 0.01


def test_half_way_up_frequencies_wavelengths_and_powers_differ() -> None:
    assert (20 + 46) / 2 == 33
    assert round(1 / (0.5 + 0.5 * 8), 4) == 0.2222
    ratio = yarn_frequencies(DIM, BASE, 8.0, LENGTH)[33] / frequency(33)
    assert ratio == pytest.approx(0.5625)
    assert round((8 * BASE) ** (-66 / 128) / frequency(33), 4) == 0.3423


def test_gpt_oss_has_its_ends_at_809_and_1740() -> None:
    """Heads of 64, base 150000, 4096 tokens."""
    ends = [round(index_of(beta, 64, 150000.0, 4096), 2) for beta in (32, 1)]
    assert ends == [8.09, 17.4]
    assert (math.floor(ends[0]), math.ceil(ends[1])) == (8, 18)
    exact = yarn_frequencies(64, 150000.0, 32.0, 4096, truncate=False)
    rounded = yarn_frequencies(64, 150000.0, 32.0, 4096)
    changed = np.flatnonzero(~np.isclose(exact, rounded, rtol=1e-9))
    assert changed.tolist() == list(range(9, 18))  # every pair on the ramp


def test_the_clamp_acts_when_the_slowest_pair_has_been_round_twice() -> None:
    assert turns(63, 131072) > 2
    assert math.ceil(index_of(1, DIM, BASE, 131072)) == 70
    assert 63 < 70 < 127
    ratio = yarn_frequencies(DIM, BASE, 4.0, 131072)[-1] / frequency(63)
    low = math.floor(index_of(32, DIM, BASE, 131072))
    share = (63 - low) / (70 - low)
    assert ratio == pytest.approx(1 - share + share / 4)
    assert round(ratio, 2) == 0.46


# ------------------------------------------------------------------------ the attention factor


@pytest.mark.parametrize(
    ("factor", "once", "squared"),
    [(4, 1.1386, 1.2965), (8, 1.2079, 1.4591), (32, 1.3466, 1.8133), (40, 1.3689, 1.8739)],
)
def test_attention_factors(factor: float, once: float, squared: float) -> None:
    assert round(0.1 * math.log(factor) + 1, 4) == once
    assert round(yarn_attention_factor(factor), 4) == once
    assert round(yarn_attention_factor(factor) ** 2, 4) == squared


def test_the_temperature_applied_twice_is_213() -> None:
    assert round(1.2079**2, 3) == 1.459
    assert round(1.2079**4, 2) == 2.13


def test_a_lead_of_ten_is_worth_less_among_more_keys() -> None:
    def share(others: int, lead: float) -> float:
        return math.exp(lead) / (math.exp(lead) + others)

    assert [round(share(n, 10), 3) for n in (4096, 32768)] == [0.843, 0.402]
    assert round(share(32768, 14.59), 3) == 0.985


# ------------------------------------------------------------------------ Llama 3, LongRoPE


def test_six_pairs_of_llama_3_fade() -> None:
    wavelengths = [2 * math.pi / frequency(i, base=500000.0) for i in range(64)]
    kept = sum(w < 8192 / 4 for w in wavelengths)
    divided = sum(w > 8192 for w in wavelengths)
    assert (kept, divided, 64 - kept - divided) == (29, 29, 6)
    found = llama3_frequencies(DIM, 500000.0, 8.0, 8192)
    assert found[28] == pytest.approx(frequency(28, base=500000.0))
    assert found[35] == pytest.approx(frequency(35, base=500000.0) / 8)


def test_a_short_prompt_can_hardly_tell_the_plain_ladder_from_the_right_one() -> None:
    right = llama3_frequencies(DIM, 500000.0, 8.0, 8192)
    apart = [99 * abs(frequency(i, base=500000.0) - right[i]) for i in range(64)]
    assert 0.05 < max(apart) < 0.1


def test_131072_is_16_times_8192_so_slow_pairs_go_twice_as_far_as_in_training() -> None:
    assert 131072 / 8192 == 16
    slowest = llama3_frequencies(DIM, 500000.0, 8.0, 8192)[-1]
    assert 131072 * slowest / (8192 * frequency(63, base=500000.0)) == pytest.approx(2)


def test_llama_3_with_limits_1_and_32_fades_in_the_turns_as_yarns_paper_does() -> None:
    found = llama3_frequencies(DIM, BASE, 8.0, LENGTH, 1.0, 32.0)
    for i in range(64):
        gamma = min(max((turns(i) - 1) / (32 - 1), 0), 1)
        assert found[i] == pytest.approx((1 - gamma) * frequency(i) / 8 + gamma * frequency(i))


def test_the_boundary_belongs_to_the_short_list() -> None:
    short, long = np.ones(64), np.linspace(1, 8, 64)
    slowest = [longrope_frequencies(DIM, BASE, short, long, 4096, n)[-1] for n in (4096, 4097)]
    assert slowest[0] == pytest.approx(8 * slowest[1])


# ------------------------------------------------------------------------ the bug hunt, the cache


def test_a_ramp_upside_down_blurs_the_fast_and_lets_the_slow_run_eight_times_as_far() -> None:
    plain = np.array([frequency(i) for i in range(64)])
    right = fixed_yarn_ramp()(plain, 8.0, 20, 46)
    wrong = plain + plain / 8 - right  # the two weights change places
    assert wrong[0] == plain[0] / 8
    assert wrong[63] == plain[63]
    assert wrong[33] == pytest.approx(right[33])  # at the middle nobody can tell


def test_stored_keys_seem_to_lie_in_the_future() -> None:
    def slow(n: int) -> float:
        return 1 / (10000.0 * (2 * n / 2048 - 1) ** 2) ** 0.5

    assert dynamic_ntk_frequencies(4, BASE, 2.0, 2048, 8006)[1] == pytest.approx(slow(8006))
    seen = [8005 - m * slow(m + 1) / slow(8006) for m in (3000, 5000, 8000)]
    assert [round(gap, 1) for gap in seen] == [-2589.8, -773.0, -0.7]
    assert seen == sorted(seen)  # the farther back, the farther ahead
    for dim in (4, 64, 128):
        ladders = {n: dynamic_ntk_frequencies(dim, BASE, 2.0, 2048, n)[-1] for n in range(1, 8007)}
        gaps = [8005 - m * ladders[m + 1] / ladders[8006] for m in range(8005)]
        assert all(a < b < 0 for a, b in zip(gaps[2048:], gaps[2049:], strict=False))
        # within the trained length the order is right, and the clock wrong
        assert all(a > b for a, b in zip(gaps[:2047], gaps[1:2048], strict=True))
        assert round(gaps[1000]) == 1187
        assert gaps[1174] > 0 > gaps[1175]
    assert 8005 - 1000 == 7005


def test_longropes_attention_factor_is_smaller_than_yarns() -> None:
    assert 131072 / LENGTH == 32
    assert round(math.sqrt(1 + math.log(32) / math.log(LENGTH)), 4) == 1.1902
    assert round(yarn_attention_factor(32), 4) == 1.3466


def test_llama_3_changes_the_neighbourhood_least_and_linear_scaling_most() -> None:
    rng = np.random.default_rng(0)
    seen, wishes = rng.choice(LENGTH, 300, replace=False), rng.uniform(-1, 1, size=(300, 8))
    theta = np.array([frequency(i) for i in range(64)])

    def waves(gaps: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        phase = np.outer(gaps, frequencies)
        return np.hstack([np.cos(phase), np.sin(phase)])

    heads = np.linalg.lstsq(waves(seen, theta), wishes, rcond=1e-3)[0]
    near = np.arange(16)
    ntk = np.array([frequency(i, base=ntk_base(BASE, 4.0, DIM)) for i in range(64)])
    change = [
        np.sqrt(np.mean(((waves(near, new) - waves(near, theta)) @ heads) ** 2))
        for new in (
            theta / 4,
            ntk,
            yarn_frequencies(DIM, BASE, 4.0, LENGTH),
            llama3_frequencies(DIM, BASE, 4.0, LENGTH),
        )
    ]
    assert [round(c, 2) for c in change] == [0.31, 0.10, 0.09, 0.07]


# ------------------------------------------------------------------------ check yourself


def test_eleven_of_32_pairs_are_in_danger_beyond_2048_tokens() -> None:
    danger = [i for i in range(32) if turns(i, 2048, 64) < 1]
    assert danger == list(range(21, 32))
    assert len(danger) == 11
    assert round(index_of(1, 64, BASE, 2048), 1) == 20.1
