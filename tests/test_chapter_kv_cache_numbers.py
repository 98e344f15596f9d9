"""Every number that the prose of the chapter `kv_cache` states without printing it right there.

They are computed from the reference, or by plain loops, and not from the page.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.with_numpy.kv_cache import (
    KVCache,
    decode_step,
    fixed_decode,
    left_pad_positions,
    packed_positions,
    rerotate_keys,
    rope_tables,
    rope_with_offset,
)
from solutions.with_numpy.rope import apply_rope

PAGE = Path(__file__).resolve().parent.parent / "book" / "kv_cache.md"
Q = np.array([1.0, 0.5, -0.5, 2.0])  # what "milk" asks
K = np.array([0.5, 1.0, 1.5, -1.0])  # what "chocolate" offers


def turn(vector: np.ndarray, position: float) -> np.ndarray:
    """One vector turned for one position."""
    return apply_rope(vector[None], [position])[0]


def score(m: float, n: float) -> float:
    """Unscaled score of milk at m with chocolate at n."""
    return float(turn(Q, m) @ turn(K, n))


def rounded(m: float, n: float) -> float:
    return round(score(m, n), 4)


# ------------------------------------------------------------------------ the positions


def test_the_phrase_and_the_moved_phrase_count_as_the_text_says() -> None:
    phrase = "Pour her some chocolate oat milk".split()
    moved = "Then please pour her some chocolate oat milk".split()
    assert (phrase.index("chocolate"), phrase.index("milk")) == (3, 5)
    assert (moved.index("chocolate"), moved.index("milk")) == (5, 7)


def test_milk_alone_scores_with_chocolate_as_if_it_stood_at_zero() -> None:
    assert (rounded(5, 3), rounded(0, 3)) == (-2.5336, -3.7696)


def test_the_three_wrong_counts_have_the_numbers_of_the_table() -> None:
    assert rounded(7, 5) == -2.5336
    assert rounded(0, 5) == -1.6188  # the query at zero
    assert rounded(7, 5 + 5) == -3.7696  # the key turned twice
    assert rounded(8, 5) == -3.7079  # counted too early


def test_two_different_faults_share_a_number_because_they_share_a_difference() -> None:
    assert score(0, 3) == pytest.approx(score(7, 10), abs=1e-14)


def test_a_constant_shift_is_not_felt_and_a_seam_is_one_too_wide() -> None:
    assert score(5 + 1, 3 + 1) == pytest.approx(score(5, 3), abs=1e-14)
    assert (4 - 3, 6 - 3, 7 - 6) == (1, 3, 1)  # prompt, across the seam, new text
    assert rounded(6, 3) == -3.7079


def test_without_a_cache_n_tokens_need_the_sum_of_one_to_n_projections() -> None:
    assert [sum(range(1, n + 1)) for n in (10, 100, 1000)] == [55, 5050, 500500]


# ------------------------------------------------------------------------ tables and pieces


def test_a_slice_that_runs_out_gives_one_row_that_stretches_or_none_at_all() -> None:
    cos, _ = rope_tables(7, 4)
    assert (np.ones((3, 2)) * cos[6:9]).shape == (3, 2)
    assert (np.ones((1, 2)) * cos[9:10]).shape == (0, 2)
    assert cos[-2:1].shape == (0, 2)  # a negative offset cuts out nothing, too


def test_a_piece_with_its_offset_scores_as_the_whole() -> None:
    cos, sin = rope_tables(64, 4)
    milk = rope_with_offset(Q[None], cos, sin, offset=5)[0]
    chocolate = rope_with_offset(np.tile(K, (5, 1)), cos, sin)[3]
    assert round(float(milk @ chocolate), 4) == -2.5336


# ------------------------------------------------------------------------ memory


def cache_bytes(layers: int, kv_heads: int, head_dim: int, tokens: int) -> int:
    """Two bytes for each number of each key and each value, counted one array at a time."""
    key = value = np.empty((layers, kv_heads, tokens, head_dim), dtype=np.float16).nbytes
    return key + value


def test_the_smallest_llama_keeps_half_a_mebibyte_a_token_and_two_gibibytes_a_text() -> None:
    assert cache_bytes(32, 32, 128, 1) == 512 * 2**10
    assert cache_bytes(32, 32, 128, 1) * 4096 == 2 * 2**30


def test_four_query_heads_on_a_key_head_keep_a_quarter() -> None:
    assert cache_bytes(32, 8, 128, 1) == 128 * 2**10
    assert cache_bytes(32, 8, 128, 1) * 4096 == 2**29


def test_one_token_of_opt_13b_needs_800_kilobytes() -> None:
    """40 layers, width 5120 (40 heads of 128), two bytes: Kwon et al. (2023), section 3."""
    assert cache_bytes(40, 40, 128, 1) == 800 * 2**10


# ------------------------------------------------------------------------ padding and packing


def test_the_next_token_after_two_fillers_and_three_words_stands_at_3() -> None:
    mask = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    assert left_pad_positions(mask).tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]]
    assert mask.sum(axis=1).tolist() == [5, 3]


@pytest.mark.parametrize(
    ("chocolate", "milk", "expected"),
    [(3, 5, -2.5336), (3, 3, -1.75), (1, 5, -4.069), (1, 3, -2.5336)],
)
def test_two_counts_that_meet_break_the_score(chocolate: int, milk: int, expected: float) -> None:
    """Slots or mask for the prompt, slots or mask for the next; the same four after an eviction."""
    assert rounded(milk, chocolate) == expected


def test_a_softmax_over_nothing_is_no_number_and_stays_none() -> None:
    nothing = torch.softmax(torch.full((3,), -math.inf), dim=0)
    assert nothing.isnan().all()
    assert (0.0 * nothing).isnan().all()


def test_packed_documents_restart_and_with_blocks_the_restart_is_not_felt() -> None:
    assert packed_positions([3, 3]).tolist() == [0, 1, 2, 0, 1, 2]
    second = [[score(m, n) for n in (3, 4, 5)] for m in (3, 4, 5)]
    restarted = [[score(m, n) for n in (0, 1, 2)] for m in (0, 1, 2)]
    np.testing.assert_allclose(second, restarted, atol=1e-14)


# ------------------------------------------------------------------------ drafts and evictions


@pytest.mark.parametrize(
    ("length", "position", "exact"),
    [(4, 5, True), (None, 7, False), (0, 1, False)],
    ids=["cut back", "left in", "emptied"],
)
def test_after_a_rejected_draft_milk_stands_where_the_table_says(
    length: int | None, position: int, exact: bool
) -> None:
    """Pour her some | the draft: chocolate milk milk, of which chocolate is kept | oat, milk."""
    weights = np.random.default_rng(5).normal(size=(3, 6, 4))
    words = np.eye(6)

    def read(cache: KVCache, tokens: list[int]) -> np.ndarray:
        return [decode_step(words[token], *weights, cache) for token in tokens][-1]

    cache = KVCache()
    read(cache, [0, 1, 2, 3, 5, 5])
    if length is not None:
        cache.truncate(length)
    read(cache, [4])
    assert len(cache) == position
    same = np.allclose(read(cache, [5]), read(KVCache(), [0, 1, 2, 3, 4, 5]), atol=1e-14)
    assert same == exact


def test_evicting_two_and_repacking_gives_the_four_scores_of_the_padded_batch() -> None:
    kept = turn(K, 3)  # chocolate, third of five
    moved = rerotate_keys(kept[None], -2)[0]
    scores = [round(float(turn(Q, m) @ key), 4) for key in (kept, moved) for m in (5, 3)]
    assert scores == [-2.5336, -1.75, -4.069, -2.5336]


def test_sinks_are_numbered_by_their_place_in_the_cache() -> None:
    assert len([0, 1, 2, 3, 6, 7, 8]) == 7  # the position of token 9
    text = {"Pour": 0, "chocolate": 3, "oat": 4}
    keys = np.array([turn(K, n) for n in text.values()])
    in_cache = np.vstack([keys[:1], rerotate_keys(keys[1:], -2)])
    sink, *recent = in_cache @ turn(Q, 3)
    assert recent == pytest.approx([score(5, 3), score(5, 4)], abs=1e-14)
    assert sink == pytest.approx(score(3, 0), abs=1e-14)
    assert abs(sink - score(5, 0)) > 0.1  # as if it stood nearer


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_thousand_small_moves_lose_far_more_than_one_large_one(dtype: type) -> None:
    original = np.random.default_rng(4).normal(size=(16, 64))
    start = apply_rope(original, np.full(16, 5000)).astype(dtype)
    goal = apply_rope(original, np.full(16, 5000 - 1024))
    keys = start
    for _ in range(1024):
        keys = rerotate_keys(keys, -1)
    small = np.abs(keys - goal).max()
    one = np.abs(rerotate_keys(start, -1024) - goal).max()
    assert small > 10 * one


def test_dropping_500_of_1000_keys_moves_the_rest_by_500() -> None:
    kept = [*range(4), *range(504, 1000)]
    assert len(kept) == 500
    assert [n - 500 for n in kept[4:]] == list(range(4, 500))


def test_a_ring_of_four_holds_the_last_four_of_ten_with_the_newest_two_in_front() -> None:
    ring = [0] * 4
    for m in range(10):
        ring[m % 4] = m
    assert ring == [8, 9, 6, 7]


# ------------------------------------------------------------------------ the bug hunt


def wandering(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The faulty loop in plain scalars: stored keys turn again, each query stands at zero."""
    keys, rows = [], []
    for t in range(len(q)):
        keys = [turn(key, n) for n, key in enumerate([*keys, k[t]])]
        exponentials = [math.exp(q[t] @ key / math.sqrt(len(q[t]))) for key in keys]
        total = sum(exponentials)
        rows.append(sum(e / total * v[n] for n, e in enumerate(exponentials)))
    return np.array(rows)


def test_the_wandering_loop_is_right_in_its_first_row_only() -> None:
    q, k, v = np.random.default_rng(8).normal(size=(3, 6, 4))
    error = np.abs(wandering(q, k, v) - fixed_decode()(q, k, v)).max(axis=1)
    assert error[0] < 1e-15
    assert np.all(error[1:] > 1e-3)


def test_the_wandering_loop_passes_a_test_whose_values_are_equal() -> None:
    q, k, _ = np.random.default_rng(8).normal(size=(3, 6, 4))
    v = np.tile([1.0, 2.0, 3.0, 4.0], (6, 1))
    np.testing.assert_allclose(wandering(q, k, v), fixed_decode()(q, k, v), atol=1e-14)


def test_chocolate_is_turned_for_3_then_6_then_9() -> None:
    key, places = K, []
    for step in (3, 4, 5):
        key = turn(key, 3)
        places.append(next(p for p in range(20) if np.allclose(key, turn(K, p), atol=1e-12)))
        assert places[-1] == 3 * (step - 3 + 1)
    assert places == [3, 6, 9]


def test_one_token_finds_none_of_the_faults() -> None:
    """At position 0 nothing turns, and a single key has all the weight wherever it stands."""
    w_q, w_k, w_v = np.random.default_rng(9).normal(size=(3, 6, 4))
    x = np.random.default_rng(10).normal(size=6)
    row = decode_step(x, w_q, w_k, w_v, KVCache())
    np.testing.assert_allclose(row, x @ w_v, atol=1e-14)  # no position in it
    np.testing.assert_array_equal(turn(Q, 0), Q)


def test_a_prompt_of_6_padded_to_9_makes_gaps_three_too_wide_by_its_length() -> None:
    mask = np.array([[0] * 3 + [1] * 6])
    positions = left_pad_positions(mask)[0, 3:]
    assert mask.sum() == 6
    assert (mask.shape[1] - positions - (6 - positions)).tolist() == [3] * 6


# ------------------------------------------------------------------------ the module


def test_is_causal_shows_the_first_key_to_a_single_query() -> None:
    one, five = torch.ones(1, 1, 1, 4), torch.ones(1, 1, 5, 4)
    attention = torch.nn.functional.scaled_dot_product_attention
    seen = attention(one, five, torch.eye(5)[None, None], is_causal=True)
    assert seen.flatten().tolist() == [1, 0, 0, 0, 0]
