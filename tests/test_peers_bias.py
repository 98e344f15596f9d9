"""Biases on the scores, ALiBi's and T5's, beside the code of transformers and x-transformers.

Why: slopes for head counts that are no power of two, and buckets at their edges, are where one
formula has several readings. See tests/peers.py for the bounds.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from solutions.with_numpy import alibi
from solutions.with_torch.alibi import alibi_sdpa, causal_bias
from tests.peers import HALF_ULP, agree, peer, scattered, vectors

HEADS = (1, 2, 3, 5, 6, 8, 12, 16, 20, 33, 48)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210827)


# --- ALiBi --------------------------------------------------------------------------------------


def slopes_by_transformers(heads: int):
    """BLOOM's and MPT's, of a key that is one token later, or earlier, than where they count from.

    MPT's slopes were reported to differ from BLOOM's; here they are asked for the same thing.
    """
    bloom = peer("transformers.models.bloom.modeling_bloom")
    mpt = peer("transformers.models.mpt.modeling_mpt")
    yield bloom.build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]
    yield -mpt.build_mpt_alibi_tensor(heads, 2)[:, 0, 0]


def slope_bound(heads: int) -> np.ndarray:
    """BLOOM takes powers, up to the number of heads, of a first slope that was rounded twice."""
    return (heads + 4) * HALF_ULP * alibi.alibi_slopes(heads)


@pytest.mark.peers("ALiBi slopes")
@pytest.mark.parametrize("heads", HEADS)
def test_slopes_are_those_of_three_codes(heads):
    mine, bound = alibi.alibi_slopes(heads), slope_bound(heads)
    for theirs in slopes_by_transformers(heads):
        agree(mine, theirs, bound)
    module = peer("x_transformers.x_transformers").AlibiPositionalBias(heads)
    agree(mine, module.slopes.flatten(), bound)


@pytest.mark.peers("ALiBi bias")
@pytest.mark.parametrize("heads", HEADS)
def test_symmetric_bias_is_that_of_x_transformers(rng, heads):
    module = peer("x_transformers.x_transformers").AlibiPositionalBias(heads)
    q_positions, k_positions = scattered(rng, 5, below=300), scattered(rng, 7, below=300)
    mine = alibi.alibi_bias(q_positions, k_positions, alibi.alibi_slopes(heads))
    theirs = module.forward_custom_pos(torch.tensor(q_positions), torch.tensor(k_positions))
    # A distance of whole tokens is exact; its product with a slope is rounded once.
    agree(mine, theirs, (heads + 5) * HALF_ULP * np.abs(mine))
    for i, head in enumerate(alibi.alibi_slopes(heads)):
        agree(alibi.fixed_bias(q_positions, k_positions, head), mine[i], 0)


@pytest.mark.peers("ALiBi bias")
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("n_q, n_k", [(9, 9), (4, 9), (1, 30)])
def test_causal_bias_after_a_cache_is_that_of_x_transformers(heads, n_q, n_k):
    module = peer("x_transformers.x_transformers").AlibiPositionalBias(heads)
    theirs = module(n_q, n_k)
    slopes, offset = alibi.alibi_slopes(heads), n_k - n_q
    mine = alibi.alibi_bias(np.arange(offset, n_k), np.arange(n_k), slopes)
    bound = (heads + 6) * HALF_ULP * np.abs(mine)
    agree(mine, theirs, bound)
    by_torch = causal_bias(torch.tensor(slopes), n_q, n_k, offset, torch.float32)
    seen = torch.isfinite(by_torch)
    assert torch.equal(seen, torch.ones(n_q, n_k).tril(offset).bool().expand_as(seen))
    agree(by_torch[seen], theirs[seen], bound[seen])


@pytest.mark.peers("ALiBi bias")
@pytest.mark.parametrize("heads", HEADS)
def test_the_key_only_bias_of_bloom_differs_by_one_number_a_row(heads):
    """A softmax does not feel that number; padding on the left moves the positions in both."""
    library = peer("transformers.models.bloom.modeling_bloom")
    mask = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1]])
    theirs = library.build_alibi_tensor(mask, heads, torch.float32)[:, :, 3:].numpy()
    slopes, positions = alibi.alibi_slopes(heads), np.arange(5)
    mine = alibi.alibi_bias(positions, positions, slopes)
    row = (slopes[:, None] * positions)[..., None]
    earlier = np.tri(5, dtype=bool)
    bound = (heads + 5) * HALF_ULP * np.broadcast_to(theirs, mine.shape) + 1e-15
    both = (mine + row)[:, earlier], np.broadcast_to(theirs, mine.shape)[:, earlier]
    agree(*both, bound[:, earlier])


@pytest.mark.peers("ALiBi bias")
@pytest.mark.parametrize("heads", HEADS)
def test_attention_with_our_bias_is_attention_with_that_of_bloom(rng, heads):
    library = peer("transformers.models.bloom.modeling_bloom")
    q, k, v = (torch.tensor(vectors(rng, 1, heads, 9, 4)) for _ in range(3))
    slopes = alibi.alibi_slopes(heads)
    mask = library.build_alibi_tensor(torch.ones(1, 9), heads, torch.float32)
    mask = mask + torch.full((9, 9), -math.inf).triu(1)
    theirs = scaled_dot_product_attention(q, k, v, attn_mask=mask[None])
    # No score is above `reach`. It is rounded 16 times (products, sums, √d, softmax), its slope as
    # in `slope_bound`; a weight moves by twice that as a fraction, and a row's weights make one.
    largest = [float(x.abs().max()) for x in (q, k, v, mask[mask.isfinite()])]
    reach = largest[3] + q.shape[-1] * largest[0] * largest[1] / math.sqrt(q.shape[-1])
    bound = 2 * (16 + heads + 4) * HALF_ULP * reach * largest[2]
    mine = alibi.alibi_attention(*(x[0].double() for x in (q, k, v)), slopes, range(9), range(9))
    agree(mine, theirs[0], bound)
    agree(alibi_sdpa(q, k, v, torch.tensor(slopes)), theirs, bound)


# --- T5 -----------------------------------------------------------------------------------------


def by_t5(relative, bidirectional, num_buckets, max_distance):
    attention = peer("transformers.models.t5.modeling_t5").T5Attention
    return attention._relative_position_bucket(relative, bidirectional, num_buckets, max_distance)


def by_x_transformers(relative, bidirectional, num_buckets, max_distance):
    library = peer("x_transformers.x_transformers").RelativePositionBias
    return library._relative_position_bucket(relative, not bidirectional, num_buckets, max_distance)


def undecided(distances, buckets: int, max_distance: int) -> np.ndarray:
    """Distances at which rounding decides, in float32, on which side of an edge they are.

    The exact place is e + (N − e)·ln(Δ/e)/ln(max/e). The quotient inside is rounded once, which
    moves the logarithm by one rounding of 1; logarithm, quotient and product round thrice more.
    """
    exact = buckets // 2
    spread = (buckets - exact) / math.log(max_distance / exact)
    place = spread * np.log(np.maximum(distances, exact) / exact)
    return np.abs(place - np.rint(place)) <= HALF_ULP * (spread + 4 * place)


@pytest.mark.peers("T5 buckets")
@pytest.mark.parametrize("theirs", [by_t5, by_x_transformers])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_distance_falls_into_the_bucket_of_a_peer(theirs, bidirectional):
    """T5's own numbers of buckets: nothing is left out, edges included."""
    relative = np.arange(-1000, 1001)
    expected = theirs(torch.tensor(relative), bidirectional, 32, 128)
    assert alibi.t5_bucket(relative, bidirectional).tolist() == expected.tolist()


@pytest.mark.peers("T5 buckets")
@pytest.mark.parametrize("theirs", [by_t5, by_x_transformers])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_buckets, most", [(8, 20), (12, 50), (32, 500), (64, 128), (90, 999)])
def test_other_numbers_of_buckets_agree_but_where_rounding_decides(
    theirs, bidirectional, num_buckets, most
):
    relative = np.arange(-1100, 1101)
    expected = theirs(torch.tensor(relative), bidirectional, num_buckets, most).numpy()
    mine = alibi.t5_bucket(relative, bidirectional, num_buckets, most)
    one_way = num_buckets // 2 if bidirectional else num_buckets
    distances = np.abs(relative) if bidirectional else np.maximum(-relative, 0)
    left_out = undecided(distances, one_way, most) & (distances > one_way // 2) & (distances < most)
    assert left_out.mean() < 0.01
    assert mine[~left_out].tolist() == expected[~left_out].tolist()
    assert np.abs(mine - expected).max() <= 1
