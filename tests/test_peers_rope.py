"""Rotary embeddings, whole and partial, beside the code of four other projects.

Why: the layout of the pairs and the ladder of a part are where implementations part company, and
our own loops were written by those who wrote the reference. See tests/peers.py for the bounds.
"""

import numpy as np
import pytest
import torch

from solutions.with_numpy import rope
from solutions.with_torch.rope import RotaryEmbedding
from tests.peers import agree, peer, rotation_bound, scattered, vectors

SHAPE = (2, 3, 9)  # batch, heads, tokens


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20231030)


# --- the peers: each rotates x (batch, heads, seq, dim) at positions (seq,) ---------------------


def of_model(name: str, config: str, class_name: str, x, positions, base, rotary_dim):
    """A model of transformers: its embedding makes the tables, its function turns with them."""
    model = peer(f"transformers.models.{name}.modeling_{name}")
    settings = peer(f"transformers.models.{name}.configuration_{name}")
    parameters = {"rope_type": "default", "rope_theta": base}
    parameters["partial_rotary_factor"] = rotary_dim / x.shape[-1]
    sizes = {"hidden_size": 4 * x.shape[-1], "num_attention_heads": 4, "head_dim": x.shape[-1]}
    embedding = getattr(model, class_name)(
        getattr(settings, config)(**sizes, rope_parameters=parameters)
    )
    cos, sin = embedding(x, positions[None])
    return model.apply_rotary_pos_emb(x, x, cos, sin)[1]


def llama(x, positions, base, rotary_dim):
    return of_model("llama", "LlamaConfig", "LlamaRotaryEmbedding", x, positions, base, rotary_dim)


def neox(x, positions, base, rotary_dim):
    names = "gpt_neox", "GPTNeoXConfig", "GPTNeoXRotaryEmbedding"
    return of_model(*names, x, positions, base, rotary_dim)


def glm(x, positions, base, rotary_dim):
    return of_model("glm", "GlmConfig", "GlmRotaryEmbedding", x, positions, base, rotary_dim)


def gptj(x, positions, base, rotary_dim):
    """Its base is always 10000, and heads come after tokens."""
    model = peer("transformers.models.gptj.modeling_gptj")
    assert base == 10_000
    table = model.create_sinusoidal_positions(2000, rotary_dim)[positions][None]
    sin, cos = table.split(rotary_dim // 2, dim=-1)
    by_token = x.transpose(1, 2)
    turned = model.apply_rotary_pos_emb(by_token[..., :rotary_dim], sin, cos)
    return torch.cat([turned, by_token[..., rotary_dim:]], dim=-1).transpose(1, 2)


def x_transformers(x, positions, base, rotary_dim):
    library = peer("x_transformers.x_transformers")
    freqs, scale = library.RotaryEmbedding(rotary_dim, base=base)(positions)
    return library.apply_rotary_pos_emb(x, freqs, scale)


def lucidrains(x, positions, base, rotary_dim):
    library = peer("rotary_embedding_torch")
    freqs = library.RotaryEmbedding(rotary_dim, theta=base)(positions)
    return library.apply_rotary_emb(freqs, x)


def torchtune(x, positions, base, rotary_dim):
    """Its heads come after tokens."""
    module = peer("torchtune.modules").RotaryPositionalEmbeddings(rotary_dim, 2000, base)
    shared = positions.expand(len(x), -1)
    return module(x.transpose(1, 2), input_pos=shared).transpose(1, 2)


WHOLE = {llama: "half", neox: "half", glm: "interleaved", gptj: "interleaved"}
WHOLE |= {x_transformers: "interleaved", lucidrains: "interleaved", torchtune: "interleaved"}
PARTIAL = {neox: "half", glm: "interleaved", gptj: "interleaved"}
PARTIAL |= {x_transformers: "interleaved", lucidrains: "interleaved"}


def cases(peers: dict, sizes: list) -> list:
    return [
        pytest.param(f, layout, *size, base, id=f"{f.__name__}-{'-'.join(map(str, size))}-{base}")
        for f, layout in peers.items()
        for size in sizes
        for base in ((10_000,) if f is gptj else (10_000, 500_000, 100))
    ]


# --- the comparisons ----------------------------------------------------------------------------


@pytest.mark.peers("RoPE")
@pytest.mark.parametrize("theirs, layout, dim, base", cases(WHOLE, [(4,), (10,), (128,)]))
def test_both_rooms_rotate_as_a_peer_does(rng, theirs, layout, dim, base):
    x, positions = vectors(rng, *SHAPE, dim), scattered(rng, SHAPE[-1])
    expected = theirs(torch.tensor(x), torch.tensor(positions), base, dim).detach()
    bound = rotation_bound(x, positions, rope.rope_angles(1, dim, base), layout)
    agree(rope.apply_rope(x.astype(float), positions, base, layout), expected, bound)
    module = RotaryEmbedding(dim, base, layout)
    for mine in module(torch.tensor(x), torch.tensor(x), torch.tensor(positions)):
        agree(mine, expected, bound)


@pytest.mark.peers("partial RoPE")
@pytest.mark.parametrize(
    "theirs, layout, dim, rotary_dim, base", cases(PARTIAL, [(16, 4), (64, 16), (80, 32)])
)
def test_a_part_is_rotated_as_a_peer_does(rng, theirs, layout, dim, rotary_dim, base):
    x, positions = vectors(rng, *SHAPE, dim), scattered(rng, SHAPE[-1])
    expected = theirs(torch.tensor(x), torch.tensor(positions), base, rotary_dim).detach()
    ladder = rope.rope_angles(1, rotary_dim, base)
    bound = np.zeros(x.shape)  # what is not rotated comes back bit for bit
    bound[..., :rotary_dim] = rotation_bound(x[..., :rotary_dim], positions, ladder, layout)
    mine = rope.apply_partial_rope(x.astype(float), positions, rotary_dim, base, layout)
    agree(mine, expected, bound)


@pytest.mark.peers("RoPE")
def test_queries_that_follow_on_a_cache_are_rotated_as_a_peer_with_a_cache_does(rng):
    """The peer once handed the tables of one offset to the next: its issue 11."""
    module = peer("rotary_embedding_torch").RotaryEmbedding(8)
    x = vectors(rng, *SHAPE, 8)
    for offset in (0, 700, 3):
        positions = np.arange(offset, offset + SHAPE[-1])
        bound = rotation_bound(x, positions, rope.rope_angles(1, 8), "interleaved")
        expected = module.rotate_queries_or_keys(torch.tensor(x), offset=offset).detach()
        agree(rope.apply_rope(x.astype(float), positions), expected, bound)
        ours = RotaryEmbedding(8, layout="interleaved")
        agree(ours(*[torch.tensor(x)] * 2, torch.tensor(positions))[0], expected, bound)
