"""Every number that the prose of the chapter `two_d` states without printing it right there.

Displayed numbers that nothing executes are where tutorials go wrong; these are executed here, by
ways other than the chapter's own.
"""

import cmath
import math

import numpy as np
import pytest
import torch

Q = [1.0, 0.5, -0.5, 2.0]  # what "milk" asks
K = [0.5, 1.0, 1.5, -1.0]  # what "chocolate" offers


def turned(vector: list[float], angles: list[float]) -> list[complex]:
    pairs = [complex(a, b) for a, b in zip(vector[0::2], vector[1::2], strict=True)]
    return [pair * cmath.exp(1j * angle) for pair, angle in zip(pairs, angles, strict=True)]


def product(a: list[complex], b: list[complex]) -> float:
    return sum((x * y.conjugate()).real for x, y in zip(a, b, strict=True))


def by_number(m: int, n: int) -> float:
    return product(turned(Q, [m, m / 100]), turned(K, [n, n / 100]))


def axial(milk: tuple[int, int], chocolate: tuple[int, int]) -> float:
    """At width 4 each half has one pair, which turns one radian a step."""
    return product(turned(Q, list(milk)), turned(K, list(chocolate)))


def wave(m: float, dim: int, base: float = 10000.0) -> list[float]:
    angles = [m / base ** (2 * i / dim) for i in range(dim // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


def place(row: float, column: float, dim: int) -> list[float]:
    return wave(row, dim // 2) + wave(column, dim // 2)


def kept(height: int, width: int, told: dict[tuple[int, int], tuple[int, int]]) -> float:
    """The share of the neighbours in the picture that are told places one step apart."""
    count = neighbours = 0
    for (r, c), (row, column) in told.items():
        for other in ((r + 1, c), (r, c + 1)):
            if other in told:
                neighbours += 1
                count += abs(told[other][0] - row) + abs(told[other][1] - column) == 1
    return count / neighbours


def grid(height: int, width: int) -> list[tuple[int, int]]:
    return [(r, c) for r in range(height) for c in range(width)]


def test_the_numbers_of_chocolate_and_milk() -> None:
    assert grid(3, 4).index((1, 2)) == 6 and grid(3, 4).index((2, 2)) == 10
    assert grid(4, 3).index((1, 2)) == 5 and grid(4, 3).index((2, 2)) == 8
    assert grid(4, 3)[9] == (1 + 2, 2 - 2)  # from 5 to 9: two rows down, two columns to the left


def test_one_below_has_two_scores_by_number() -> None:
    assert round(by_number(10, 6), 4) == round(by_number(9, 5), 4) == -4.0690
    assert round(by_number(8, 5), 4) == -3.7079


def test_vits_image_has_196_patches_of_768_numbers() -> None:
    assert (224 // 16) ** 2 == 14 * 14 == 196
    assert 16 * 16 * 3 == 768
    assert grid(14, 14)[2] == (0, 2) and grid(14, 14)[16] == (1, 2)  # one column


def test_tokens_3_and_4_stand_at_opposite_edges() -> None:
    assert (grid(3, 4)[3], grid(3, 4)[4]) == ((0, 3), (1, 0))


def test_a_division_by_the_height_gives_the_rows_that_hint_2_warns_of() -> None:
    assert [r for r, _ in grid(2, 3)] == [0, 0, 0, 1, 1, 1]
    assert [t // 2 for t in range(6)] == [0, 0, 1, 1, 2, 2]


def test_the_worked_vector_is_the_published_one() -> None:
    np.testing.assert_allclose(place(1, 2, 4), [0.8415, 0.5403, 0.9093, -0.4161], atol=5e-5)


def test_at_dim_8_the_second_frequency_is_a_hundredth() -> None:
    assert math.asin(wave(1, 4)[2]) == pytest.approx(0.01)


def test_by_number_the_patch_above_is_stranger_than_the_ends_of_the_row() -> None:
    gap = {n: sum(math.cos(n / 10000 ** (i / 32)) for i in range(32)) for n in (5, 6, 12)}
    assert gap[12] < min(gap[5], gap[6]) - 2  # above: 12; the ends of the row: 6 and 5


def test_two_down_and_two_across_is_stranger_than_five_across() -> None:
    def likeness(down: int, across: int) -> float:
        return float(np.dot(place(4, 6, 64), place(4 + down, 6 + across, 64)))

    assert likeness(2, 2) < likeness(0, 5) < likeness(1, 1)
    assert math.hypot(2, 2) < 3


def test_with_one_pair_in_each_half_blocks_and_alternation_are_the_same() -> None:
    def blocks(m: float, dim: int) -> list[float]:
        half = wave(m, dim)
        return half[0::2] + half[1::2]

    assert blocks(2, 2) == wave(2, 2)
    assert blocks(2, 4) != wave(2, 4)


def test_detrs_last_row_is_at_a_full_turn_at_every_size() -> None:
    for height in (10, 20, 40):
        assert 2 * math.pi * height / height == 2 * math.pi


def test_axial_scores_know_only_the_two_gaps() -> None:
    below = axial((2, 2), (1, 2))
    assert round(below, 4) == -1.5786
    assert axial((31, 7), (30, 7)) == pytest.approx(below)
    others = [axial((1, 2), (2, 2)), axial((1, 3), (1, 2)), axial((3, 2), (1, 2))]
    assert [round(v, 4) for v in others] == [-2.8408, -2.5895, -2.4842]
    assert min(abs(v - below) for v in others) > 0.5


@pytest.mark.parametrize(("base", "turning"), [(10000, 4), (100, 8), (10, 15)])
def test_pairs_that_make_a_quarter_turn_in_14_rows(base: int, turning: int) -> None:
    turns = [13 / base ** (i / 16) / (2 * math.pi) for i in range(16)]
    assert sum(t > 0.25 for t in turns) == turning
    assert 16 - 4 == 12


def test_the_square_root_of_the_base_is_100() -> None:
    assert math.sqrt(10000) == 100


def test_mixed_frequencies_of_a_base_model() -> None:
    heads, head_dim, layers = 12, 64, 12
    assert heads * head_dim == 768
    assert layers * heads * 2 * (head_dim // 2) == 9216


def test_a_window_of_seven_has_169_pairs_of_gaps() -> None:
    gaps = {(r - s, c - d) for r, c in grid(7, 7) for s, d in grid(7, 7)}
    assert len(gaps) == 169


def test_an_unrotated_token_stands_in_the_upper_left_corner() -> None:
    plain = turned(Q, [0, 0])
    for at in [(0, 0), (1, 2), (31, 7)]:
        assert product(plain, turned(K, list(at))) == pytest.approx(axial((0, 0), at))
    assert product(plain, turned(K, [0, 0])) == pytest.approx(np.dot(Q, K)) == -1.75


def test_one_late_tears_the_end_of_each_row_only() -> None:
    places = grid(14, 14)
    late = dict(zip(places, [*places[1:], (0, 0)], strict=True))
    assert round(kept(14, 14, late), 3) == 0.959
    # The end of each row is torn from its row; the last patch, told the corner, from both sides.
    lost = round((1 - kept(14, 14, late)) * 2 * 14 * 13)
    assert lost == 14 + 1


def test_shrinking_four_to_one_means_the_middle_two() -> None:
    four = [0, 10, 20, 90]
    centre = 0.5 * 4 / 1 - 0.5
    assert centre == 1.5
    assert (four[1] + four[2]) / 2 == 15 and sum(four) / 4 == 30


@pytest.mark.parametrize(
    ("old", "failing"), [(14, [61, 115, 122]), (37, [39, 43, 78, 86, 115, 123])]
)
def test_sizes_that_come_out_one_short(old: int, failing: list[int]) -> None:
    def by_the_library(new: int) -> int:
        line = torch.zeros(1, 1, old)
        factor = new / old
        return torch.nn.functional.interpolate(line, scale_factor=factor, mode="linear").shape[-1]

    short = [new for new in range(1, 130) if by_the_library(new) != new]
    assert short == failing
    assert all(by_the_library(new) == new - 1 for new in short)


def test_nine_sizes_fail_and_the_product_is_a_hair_below_78() -> None:
    assert 3 + 6 == 9
    assert 77.99999 < 37 * (78 / 37) < 78


def test_an_added_tenth_moves_the_places_a_little() -> None:
    places = [(j + 0.5) * 37 / 78 - 0.5 for j in range(78)]
    moved = [(j + 0.5) * 37 / 78.1 - 0.5 for j in range(78)]
    off = max(abs(a - b) for a, b in zip(places, moved, strict=True))
    assert int(37 * (78.1 / 37)) == 78
    assert 0 < off < 0.05


def test_zero_padding_tells_corners_edges_and_inside() -> None:
    padded = np.pad(np.ones((5, 7)), 1)
    sums = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum(axis=(-1, -2))
    assert set(sums.ravel()) == {4, 6, 9}


@pytest.mark.parametrize(
    ("height", "width", "share"), [(3, 3, 1.0), (3, 4, 0.353), (14, 20, 0.471), (6, 6, 1.0)]
)
def test_a_swapped_mesh_tears_rectangles(height: int, width: int, share: float) -> None:
    told = {p: (t % height, t // height) for t, p in enumerate(grid(height, width))}
    assert round(kept(height, width, told), 3) == share


def test_a_square_table_on_8_by_32_tears_every_neighbour_below() -> None:
    assert 8 * 32 == 16 * 16 == 256
    told = {p: divmod(t, 16) for t, p in enumerate(grid(8, 32))}
    assert round(kept(8, 32, told), 3) == 0.508
    assert told[0, 15] == (0, 15) and told[0, 16] == (1, 0)  # the right half: one row below
    assert told[1, 0] == (2, 0)


def test_two_roundings_agree_at_128_and_not_at_64() -> None:
    def built(d: int) -> list[int]:
        return [d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6)]

    def cut(d: int) -> list[int]:
        return [d - 2 * (d // 3), d // 3, d // 3]

    assert built(128) == cut(128)
    assert (built(64), cut(64)) == ([24, 20, 20], [22, 21, 21])


def test_sixths_instead_of_quarters() -> None:
    downs = [(r + 0.5) / 2 for r in range(2)]
    across = [(c + 0.5) / 3 for c in range(3)]
    assert downs == [0.25, 0.75]
    np.testing.assert_allclose(across, [1 / 6, 3 / 6, 5 / 6])


def test_rounded_to_bfloat16_the_score_is_the_same_within_the_rounding() -> None:
    def rounded(pairs: list[complex]) -> list[complex]:
        parts = torch.view_as_real(torch.tensor(pairs)).bfloat16().double()
        return torch.view_as_complex(parts).tolist()

    score = product(rounded(turned(Q, [2, 2])), rounded(turned(K, [1, 2])))
    assert round(score, 4) == -1.5826


def test_qwens_three_parts_fill_a_head_of_128() -> None:
    assert 16 + 24 + 24 == 64 == 128 // 2


def test_answers_to_check_yourself() -> None:
    places = grid(20, 30)
    assert places[100] == (3, 10)
    assert places[130] == (4, 10) and places[99] == (3, 9)
    assert 3 + 3 == -2 + 8
