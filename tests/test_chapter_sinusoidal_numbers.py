"""Every number that the prose of the chapter `sinusoidal` states without printing it right there.

Computed here without the chapter's cells; tables by a plain loop, so that the reference cannot
agree with itself.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch

from solutions.with_numpy.sinusoidal import decode_position, shift_matrix


def pe(position: float, dim: int, base: float = 10000.0) -> np.ndarray:
    """Section 3.5 of the paper, one number at a time."""
    row = []
    for i in range(dim // 2):
        angle = position / base ** (2 * i / dim)
        row += [math.sin(angle), math.cos(angle)]
    return np.array(row)


def table(count: int, dim: int, base: float = 10000.0) -> np.ndarray:
    return np.stack([pe(position, dim, base) for position in range(count)])


def distances(gaps: np.ndarray, dim: int, base: float = 10000.0) -> np.ndarray:
    """Distance of two rows by their gap: two points on a circle are 2·|sin(angle/2)| apart."""
    turns = np.multiply.outer(gaps, [base ** (-2 * i / dim) for i in range(dim // 2)])
    return np.linalg.norm(2 * np.sin(turns / 2), axis=-1)


def test_the_phrase_counts_chocolate_at_3_and_milk_at_5() -> None:
    phrase = ["Pour", "her", "some", "chocolate", "oat", "milk"]
    assert (phrase.index("chocolate"), phrase.index("milk")) == (3, 5)


def test_the_odometer_takes_steps_of_different_length() -> None:
    bits = np.array([[int(bit) for bit in f"{position:04b}"] for position in range(9)])
    step = np.linalg.norm(np.diff(bits, axis=0), axis=1)
    assert (step[6], step[7]) == (1, 2)  # 6 → 7 and 7 → 8


def test_the_clock_takes_steps_of_one_length() -> None:
    steps = np.linalg.norm(np.diff(table(16, 8, base=16.0), axis=0), axis=1)
    np.testing.assert_allclose(steps, 1.1145, atol=5e-5)


def test_a_hand_of_a_bits_period_is_on_the_left_where_the_bit_is_one() -> None:
    for position in range(64):
        for k in range(6):
            sine = math.sin(2 * math.pi * (position + 0.5) / 2 ** (k + 1))
            assert (sine < 0) == bool(position >> k & 1)


def test_sine_alone_confuses_5_and_17_and_the_cosine_does_not() -> None:
    assert (round(math.sin(5), 4), round(math.sin(17), 4)) == (-0.9589, -0.9614)
    assert math.cos(5) > 0.28 and math.cos(17) < -0.27


def test_the_table_of_pairs_at_width_8() -> None:
    exponents = [Fraction(2 * i, 8) for i in range(4)]
    assert exponents == [0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    assert [10000.0 ** -float(e) for e in exponents] == pytest.approx([1, 0.1, 0.01, 0.001])


def test_the_worked_example_is_the_published_one() -> None:
    published = {
        0: [0, 1, 0, 1],
        1: [0.8415, 0.5403, 0.01, 1.0],
        5: [-0.9589, 0.2837, 0.05, 0.9988],
        8: [0.9894, -0.1455, 0.0799, 0.9968],
    }
    for position, row in published.items():
        np.testing.assert_allclose(pe(position, 4), row, atol=6e-5)


def test_an_index_doubled_twice_gives_one_in_ten_thousand_at_width_4() -> None:
    assert pytest.approx(0.0001) == 10000 ** (-2 * 2 / 4)
    reported = [math.sin(1), math.cos(0.01), math.sin(1e-4), math.cos(1e-6)]
    assert [round(value, 5) for value in reported] == [0.84147, 0.99995, 0.0001, 1.0]


def test_a_cosine_with_an_exponent_of_its_own_shows_at_position_1() -> None:
    own = math.cos(10000 ** (-1 / 4))  # coordinate 1 of 4, not doubled
    assert (round(math.sin(1), 4), round(math.cos(1), 4), round(own, 4)) == (0.8415, 0.5403, 0.9950)


def test_the_longest_wavelength_stays_below_its_limit() -> None:
    longest = {d: 2 * math.pi * 10000 ** ((d - 2) / d) for d in (4, 8, 512)}
    assert [round(longest[d]) for d in (4, 8, 512)] == [628, 6283, 60611]
    assert round(2 * math.pi * 10000) == 62832
    assert 2 * math.pi * 10000 / longest[4] == pytest.approx(100)


def test_two_of_four_hands_are_in_their_first_turn_at_300() -> None:
    waves = [2 * math.pi * 10**i for i in range(4)]
    assert [wave > 300 for wave in waves] == [False, False, True, True]


def test_the_lost_brackets_leave_five_hands_that_move() -> None:
    slipped = -math.log(10000) / 256 // 2
    meant = -math.log(10000) / (256 // 2)
    assert slipped == -1
    fast = [i for i in range(64) if math.exp(slipped * 2 * i) >= math.exp(meant * 126)]
    assert fast == [0, 1, 2, 3, 4]


def test_width_29_has_15_sines_and_14_cosines() -> None:
    assert (len(range(0, 29, 2)), len(range(1, 29, 2))) == (15, 14)


@pytest.mark.parametrize("start", [0, 5, 100, 12345])
def test_one_matrix_moves_every_row(start: int) -> None:
    np.testing.assert_allclose(shift_matrix(3, 4) @ pe(start, 4), pe(start + 3, 4), atol=1e-11)


def test_a_head_with_the_shift_matrix_looks_two_back_on_every_page() -> None:
    rows = table(110, 8)
    scores = rows @ shift_matrix(2, 8) @ rows.T
    for m in (5, 7, 105):
        assert np.argmax(scores[m]) == m - 2
        assert scores[m, m - 2] == pytest.approx(4)
    assert scores[5, 4] < 4
    ahead = rows @ shift_matrix(2, 8).T @ rows.T
    assert np.argmax(ahead[5]) == 7


def test_with_another_matrix_the_score_of_two_back_depends_on_the_page() -> None:
    rows = table(110, 8)
    other = np.random.default_rng(0).normal(size=(8, 8)) / np.sqrt(8)
    scores = [rows[m] @ other @ rows[m - 2] for m in (5, 7, 105)]
    assert [round(score, 4) for score in scores] == [-1.1464, 0.8845, -0.3612]
    bare = [rows[m] @ rows[m - 2] for m in (5, 7, 105)]
    np.testing.assert_allclose(bare, 2.5637, atol=5e-5)
    assert rows[5] @ rows[4] > bare[0]  # without a matrix the nearer word wins


def test_710_steps_are_almost_113_turns() -> None:
    assert 710 / (2 * math.pi) == pytest.approx(113, abs=1e-5)
    assert np.linalg.norm(pe(710, 2) - pe(0, 2)) == pytest.approx(0.00006, abs=1e-6)


def test_the_distance_of_rows_depends_on_the_gap_alone() -> None:
    for m, n in [(3, 5), (103, 105), (40, 42)]:
        apart = np.linalg.norm(pe(m, 8) - pe(n, 8))
        assert apart == pytest.approx(distances(np.array([2]), 8)[0], abs=1e-12)


def test_the_closest_of_100000_positions() -> None:
    gaps = np.arange(1, 100000)
    closest = {dim: distances(gaps, dim) for dim in (2, 4, 8, 64)}
    assert [gaps[closest[dim].argmin()] for dim in (2, 4, 8, 64)] == [710, 84823, 69115, 1]
    assert round(closest[64].min(), 2) == 1.47


def test_bfloat16_has_8052_places_for_one_hand() -> None:
    angles = torch.arange(100000, dtype=torch.float64)
    rows = torch.stack([angles.sin(), angles.cos()], dim=1).bfloat16().float()
    assert rows.unique(dim=0).shape[0] == 8052


def test_rows_0_and_1885_agree_within_the_tolerance_at_width_4() -> None:
    error = np.abs(pe(1885, 4) - pe(0, 4)).max()
    assert round(error, 4) == 0.0444
    assert decode_position(pe(1885, 4), 1000) == 0
    assert decode_position(pe(1885, 4), 2000) == 1885
    for position in range(1, 1885):
        assert np.abs(pe(position, 4) - pe(0, 4)).max() > 0.05
    assert 300 < 1885 / (2 * math.pi) < 300.01  # turns of the fast hand
    assert 3 < 1885 / (200 * math.pi) < 3.0001  # and of the slow one


def test_a_larger_base_brings_neighbours_closer_at_width_64() -> None:
    near = [distances(np.array([1]), 64, base)[0] for base in (100.0, 1e4, 1e6)]
    assert [round(value, 3) for value in near] == [1.952, 1.472, 1.277]


def test_at_width_8_all_hands_come_round_together_at_6283() -> None:
    for i in range(4):
        turns = 6283 / (2 * math.pi * 10**i)
        assert turns == pytest.approx(round(turns), abs=0.03)
    gaps = np.arange(1, 10001)
    assert gaps[distances(gaps, 8).argmin()] == 6283


def test_a_place_is_sixteen_times_as_long_as_an_unscaled_word() -> None:
    for position in (0, 5, 3000):
        assert np.linalg.norm(pe(position, 512)) == pytest.approx(16)
    words = np.random.default_rng(5).normal(scale=512**-0.5, size=(1000, 512))
    assert np.linalg.norm(words, axis=1).mean() == pytest.approx(1, abs=0.01)
    assert math.sqrt(512) > 16  # with the factor the word is longer


def test_products_fall_and_ripple() -> None:
    gaps = np.arange(513)
    products = [sum(math.cos(g * 10000 ** (-2 * i / 128)) for i in range(64)) for g in gaps]
    np.testing.assert_allclose(products, table(513, 128) @ pe(0, 128), atol=1e-10)
    assert np.argmax(products) == 0
    assert np.sum(np.diff(products) > 0) == 240
    drops = [products[a] - products[b] for a, b in [(1, 10), (10, 100), (100, 512)]]
    assert all(12 < drop < 20 for drop in drops)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For matrices this small one thread is fastest, by far where other work runs beside it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def head_hits(last_start: int, seed: int) -> np.ndarray:
    """The chapter's small head, written again: where it looks exactly two back."""
    rows = torch.from_numpy(table(512, 32))
    draw = torch.Generator().manual_seed(seed)
    weight = (0.02 * torch.randn(32, 32, generator=draw, dtype=torch.float64)).requires_grad_()
    optimiser = torch.optim.Adam([weight], lr=0.01)

    def scores(x: torch.Tensor) -> torch.Tensor:
        allowed = torch.tril(torch.ones(len(x), len(x))).bool()
        return (x @ weight @ x.T).masked_fill(~allowed, -torch.inf)

    for _ in range(600):
        start = int(torch.randint(last_start + 1, (), generator=draw))
        logs = scores(rows[start : start + 64]).log_softmax(dim=1)
        loss = -logs[range(2, 64), range(62)].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        best = scores(rows).argmax(dim=1).numpy()
    return best == np.arange(512) - 2


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_head_trained_on_64_places_loses_most_of_its_hits_behind_them(seed: int) -> None:
    found = head_hits(0, seed)
    assert found[2:64].all()
    assert found[64:128].mean() < 0.5 and found[128:256].mean() < 0.5 and found[256:].mean() < 0.5


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_head_that_saw_255_places_in_short_texts_reads_them_all_and_fades_after(
    seed: int,
) -> None:
    found = head_hits(192, seed)
    assert 192 + 64 - 1 == 255
    assert found[2:356].all()  # all that it saw, and a hundred more
    assert 0.6 < found[256:].mean() < 1
    stretches = "".join("x" if hit else "." for hit in found[256:]).split("x")
    assert max(map(len, stretches)) >= 20


def test_the_perfect_head_is_right_at_every_length_and_the_slowest_hand_hardly_moves() -> None:
    rows = table(512, 32)
    scores = np.tril(rows @ shift_matrix(2, 32) @ rows.T + 100)  # + 100: above the zeros of tril
    assert np.array_equal(scores.argmax(axis=1)[2:], np.arange(510))
    assert math.degrees(64 * 10000 ** (-30 / 32)) < 1


# What the three models compute for position 1 at width 8, to four digits, by their own code.
DISTILBERT = [0.8415, 0.5403, 0.0998, 0.9950, 0.0100, 0.9999, 0.0010, 1.0000]
MARIAN = [0.8415, 0.0998, 0.0100, 0.0010, 0.5403, 0.9950, 0.9999, 1.0000]
M2M100 = [0.8415, 0.0464, 0.0022, 0.0001, 0.5403, 0.9989, 1.0000, 1.0000]


def test_three_models_have_three_tables() -> None:
    row = pe(1, 8)
    other = [1e4 ** (-i / 3) for i in range(4)]
    np.testing.assert_allclose(row, DISTILBERT, atol=1e-4)
    np.testing.assert_allclose([*row[0::2], *row[1::2]], MARIAN, atol=1e-4)
    np.testing.assert_allclose([*np.sin(other), *np.cos(other)], M2M100, atol=1e-4)
    assert other[-1] == pytest.approx(1e-4)
    assert 2 * math.pi / other[-1] == pytest.approx(62832, abs=0.5)


def test_the_other_ladder_is_right_at_0_and_a_twentieth_off_at_1() -> None:
    seated = [f(1e4 ** (-i / 3)) for i in range(4) for f in (math.sin, math.cos)]
    assert np.abs(np.array(seated) - pe(1, 8)).max() == pytest.approx(0.05, abs=0.005)


def test_finished_rows_lose_two_thousandths_in_bfloat16_and_angles_lose_everything() -> None:
    assert torch.finfo(torch.bfloat16).eps / 4 < 0.002  # half a step just below 1
    speed = torch.tensor([1e4 ** (-2 * i / 64) for i in range(32)], dtype=torch.float64)
    low = (torch.tensor(4000.0).bfloat16() * speed.bfloat16()).double().sin()
    assert (low - (4000 * speed).sin()).abs().max() > 1


def test_the_answers_of_the_self_check() -> None:
    assert pytest.approx(0.0022, abs=5e-5) == 10000 ** (-4 / 6)
    np.testing.assert_allclose(shift_matrix(2, 8).T, shift_matrix(-2, 8), atol=1e-15)
