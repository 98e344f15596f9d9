"""Positions on a grid beside the code of transformers, torchtune and rotary-embedding-torch.

Why: row or column first, pairs or blocks, counting from 0 or from 1: all occur, and each peer says
in code which it is. What is written differently is put into our order here, never computed anew.
See tests/peers.py for the bounds.
"""

import numpy as np
import pytest
import torch

from solutions.with_numpy import two_d
from solutions.with_numpy.rope import interleaved_to_half, rope_angles
from solutions.with_torch.two_d import AxialRotaryEmbedding2D
from tests.peers import HALF_ULP, agree, peer, rotation_bound, vectors

GRIDS = [(2, 3), (7, 4), (1, 9), (16, 16)]
HEADS = 2


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240320)


def axial_bound(x, rows, cols, base: float) -> np.ndarray:
    """Each half is a rotation of its own."""
    ladder = rope_angles(1, x.shape[-1] // 2, base)
    halves = zip(np.split(x, 2, axis=-1), (rows, cols), strict=True)
    return np.concatenate([rotation_bound(h, p, ladder, "interleaved") for h, p in halves], axis=-1)


def both_rooms(x, height: int, width: int, base: float) -> list:
    """x (1, heads, height·width, dim) rotated by the NumPy room and by the torch room."""
    by_numpy = two_d.axial_rope_2d(x.astype(float), *two_d.grid_positions(height, width), base)
    module = AxialRotaryEmbedding2D(x.shape[-1], base)
    return [by_numpy, *module(torch.tensor(x), torch.tensor(x), height, width)]


def in_blocks(table) -> np.ndarray:
    """[s0 c0 s1 c1] → [s0 s1 c0 c1] in each half."""
    return table.reshape(len(table), 2, -1, 2).swapaxes(2, 3).reshape(table.shape)


@pytest.mark.peers("axial RoPE")
@pytest.mark.parametrize("height, width", GRIDS)
@pytest.mark.parametrize("dim, base", [(8, 100), (64, 100), (80, 10_000)])
def test_axial_rotation_is_that_of_rotary_embedding_torch(rng, height, width, dim, base):
    library = peer("rotary_embedding_torch")
    freqs = library.RotaryEmbedding(dim // 2, theta=base).get_axial_freqs(height, width)
    x = vectors(rng, 1, HEADS, height * width, dim)
    on_grid = torch.tensor(x).unflatten(2, (height, width))
    theirs = library.apply_rotary_emb(freqs, on_grid).detach().flatten(2, 3)
    bound = axial_bound(x, *two_d.grid_positions(height, width), base)
    for mine in both_rooms(x, height, width, base):
        agree(mine, theirs, bound)


@pytest.mark.peers("axial RoPE")
@pytest.mark.parametrize("height, width", GRIDS)
@pytest.mark.parametrize("dim, base", [(8, 100), (80, 10_000)])
def test_axial_rotation_is_that_of_qwen_vision_with_pairs_apart(rng, height, width, dim, base):
    """Qwen2-VL pairs (i, i + dim/2), in one ladder of rows and then columns over the whole head."""
    qwen = peer("transformers.models.qwen2_vl.modeling_qwen2_vl")
    settings = peer("transformers.models.qwen2_vl.configuration_qwen2_vl").Qwen2VLVisionConfig(
        embed_dim=HEADS * dim,
        num_heads=HEADS,
        rope_parameters={"rope_type": "axial", "rope_theta": float(base)},
    )
    rows, cols = two_d.grid_positions(height, width)
    x = vectors(rng, 1, HEADS, len(rows), dim)
    places = torch.tensor(np.stack([rows, cols], axis=-1))
    cos, sin = qwen.Qwen2VLVisionRotaryEmbedding(settings)(torch.tensor(x), places)

    def apart(vectors) -> np.ndarray:
        """The coordinates of every vector, from pairs side by side to pairs half a head apart."""
        flat = np.asarray(vectors, dtype=np.float64).reshape(-1, dim)
        return interleaved_to_half(flat.T, 1).T.reshape(np.shape(vectors))

    by_token = torch.tensor(apart(x), dtype=torch.float32)[0].transpose(0, 1)
    theirs, _ = qwen.apply_rotary_pos_emb_vision(by_token, by_token, cos, sin)
    bound = apart(axial_bound(x, rows, cols, base))
    for mine in both_rooms(x, height, width, base):
        agree(apart(mine), theirs.transpose(0, 1)[None], bound)


@pytest.mark.peers("axial RoPE")
@pytest.mark.parametrize("side", [2, 5, 16])
@pytest.mark.parametrize("dim, base", [(8, 100), (80, 10_000)])
def test_axial_rotation_is_that_of_torchtune_column_first_and_from_one(rng, side, dim, base):
    """torchtune counts rows and columns from 1, and its class token stands behind the patches."""
    module = peer("torchtune.modules").VisionRotaryPositionalEmbeddings(
        patch_size=1, tile_size=side, max_num_tiles=1, dim=dim // 2, base=base
    )
    rows, cols = two_d.grid_positions(side, side)
    x = vectors(rng, 1, HEADS, len(rows) + 1, dim)
    theirs = module(torch.tensor(x).transpose(1, 2)).transpose(1, 2)
    agree(x[:, :, -1], theirs[:, :, -1], 0)
    patches = x[:, :, :-1]
    mine = two_d.axial_rope_2d(patches.astype(float), cols + 1, rows + 1, base)
    agree(mine, theirs[:, :, :-1], axial_bound(patches, cols + 1, rows + 1, base))


@pytest.mark.peers("axial RoPE")
def test_scores_do_not_feel_from_which_number_rows_and_columns_are_counted(rng):
    """So torchtune's count from 1 and the torch room's from 0 serve the same weights."""
    module = peer("torchtune.modules").VisionRotaryPositionalEmbeddings(1, 5, 1, 8, 100)
    q, k = (vectors(rng, 1, HEADS, 26, 16) for _ in range(2))
    turned = [module(torch.tensor(x).transpose(1, 2)).transpose(1, 2)[0, :, :25] for x in (q, k)]
    theirs = turned[0] @ turned[1].mT
    halves = [torch.tensor(np.roll(x[:, :, :25], 8, axis=-1)) for x in (q, k)]  # row first in ours
    mine = [x[0] for x in AxialRotaryEmbedding2D(16)(*halves, 5, 5)]
    rows, cols = two_d.grid_positions(5, 5)
    # A coordinate of a rotated vector is off by `off` at most, in either; a sum rounds 16 more.
    off = max(axial_bound(x[:, :, :25], cols + 1, rows + 1, 100).max() for x in (q, k))
    largest = 2 * max(np.abs(x).max() for x in (q, k))  # of a coordinate, rotated
    agree(mine[0] @ mine[1].mT, theirs, 16 * largest * (2 * 2 * off + 16 * HALF_ULP * largest))


@pytest.mark.peers("sines of a grid")
@pytest.mark.parametrize("height, width", GRIDS)
@pytest.mark.parametrize("dim", [4, 8, 64])
@pytest.mark.parametrize("base", [10_000, 100])
def test_sines_of_a_grid_are_those_of_transformers_vit_mae(height, width, dim, base):
    """Row first and in blocks, unlike the code of MAE's authors, which is column first."""
    library = peer("transformers.models.vit_mae.modeling_vit_mae")
    theirs = library.build_2d_sinusoidal_position_embedding(
        height, width, dim, temperature=base, dtype=torch.float64
    )
    mine = in_blocks(two_d.sincos_2d(height, width, dim, base))
    # It computes in float64: a few roundings of the largest angle.
    agree(mine, theirs, 16 * 2.0**-53 * (1 + max(height, width)))
    if height != width:
        other = in_blocks(two_d.sincos_2d(height, width, dim, base, first="column"))
        assert np.abs(other - theirs.numpy()).max() > 0.1
