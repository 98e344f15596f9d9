"""Stretched contexts beside the code of transformers, torchtune and two smaller libraries.

Why: each way to slow the pairs down exists in several spellings, and a ramp that is upside down
looks like one. Ladders are compared, and with the torch room whole rotations, so that what belongs
on cosines and sines is compared too. See tests/peers.py for the bounds.
"""

import math

import numpy as np
import pytest
import torch

from solutions.with_numpy import context_extension as ext
from solutions.with_numpy.rope import apply_rope, rope_angles
from solutions.with_torch.context_extension import ScaledRotaryEmbedding, scaled_frequencies
from tests.peers import agree, ladder_bound, peer, rotation_bound, scattered, vectors

LADDERS = [(8, 10_000), (64, 10_000), (128, 500_000), (96, 1_000_000)]  # dim, base
# With the small base the slowest pair makes many turns, and the ramp ends beyond the last pair.
YARN_LADDERS = [*LADDERS, (8, 100)]
FACTORS = (1.5, 4.0, 32.0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20230831)


def plain(dim: int, base: float) -> np.ndarray:
    return rope_angles(1, dim, base)


def settings_of(dim: int, base: float, max_length: int, **parameters):
    """transformers' description of a model with this kind of RoPE."""
    library = peer("transformers.models.llama.configuration_llama")
    return library.LlamaConfig(
        hidden_size=2 * dim,
        num_attention_heads=2,
        head_dim=dim,
        max_position_embeddings=max_length,
        rope_parameters={"rope_theta": float(base), **parameters},
    )


def of_transformers(settings, length=None):
    """transformers' ladder and what it multiplies cosines and sines by."""
    kind = settings.rope_parameters["rope_type"]
    rules = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    return rules[kind](settings, torch.device("cpu"), seq_len=length)


def rotates_as_transformers_does(rng, settings, module, more=0.0, strength=1.0) -> None:
    """Queries and keys of the torch room beside those of transformers' Llama, heads grouped.

    The bound is that of the plain ladder: what is divided is as far off as it was before.
    """
    ladder = plain(module.head_dim, module.base)
    llama = peer("transformers.models.llama.modeling_llama")
    q, k = (torch.tensor(vectors(rng, 2, heads, 9, module.head_dim)) for heads in (4, 2))
    positions = torch.tensor(scattered(rng, 9))
    tables = llama.LlamaRotaryEmbedding(settings)(q, positions[None])
    theirs = llama.apply_rotary_pos_emb(q, k, *tables)
    for mine, expected, x in zip(module(q, k, positions), theirs, (q, k), strict=True):
        bound = rotation_bound(strength * x.numpy(), positions.numpy(), ladder, "half", more)
        agree(mine, expected, bound)


def on_ramp(mine, dim: int, base: float, factor: float, more: float) -> np.ndarray:
    """`more` for the pairs that are neither kept nor divided, 0 for those, whose ramp is exact."""
    ladder = plain(dim, base)
    return np.where(np.isclose(mine, ladder) | np.isclose(mine, ladder / factor), 0.0, more)


# --- linear -------------------------------------------------------------------------------------


@pytest.mark.peers("linear scaling")
@pytest.mark.parametrize("dim, base", LADDERS)
@pytest.mark.parametrize("factor", FACTORS)
def test_position_interpolation_is_linear_scaling_of_transformers(rng, dim, base, factor):
    settings = settings_of(dim, base, 2048, rope_type="linear", factor=factor)
    ladder, strength = of_transformers(settings)
    assert strength == 1
    one = ext.interpolate_positions(1, 2048, 2048 * factor)
    for mine in (rope_angles(one, dim, base), scaled_frequencies(dim, base, "linear", factor, 1)):
        agree(mine, ladder, ladder_bound(ladder))
    module = ScaledRotaryEmbedding(dim, base, "linear", factor)
    rotates_as_transformers_does(rng, settings, module)


@pytest.mark.peers("linear scaling")
@pytest.mark.parametrize("factor", FACTORS)
def test_position_interpolation_is_the_interpolation_of_two_libraries(rng, factor):
    x, positions = vectors(rng, 1, 2, 9, 16), scattered(rng, 9)
    places = ext.interpolate_positions(positions, 4096, 4096 * factor)
    mine = apply_rope(x.astype(float), places, base=700.0)
    bound = rotation_bound(x, places, plain(16, 700.0), "interleaved")

    library = peer("x_transformers.x_transformers")
    module = library.RotaryEmbedding(16, interpolation_factor=factor, base=700.0)
    freqs, _ = module(torch.tensor(positions))
    agree(mine, library.apply_rotary_pos_emb(torch.tensor(x), freqs), bound)

    library = peer("rotary_embedding_torch")
    module = library.RotaryEmbedding(16, theta=700.0, interpolate_factor=factor)
    freqs = module(module.get_seq_pos(2000))[positions]
    agree(mine, library.apply_rotary_emb(freqs, torch.tensor(x)).detach(), bound)


# --- NTK ----------------------------------------------------------------------------------------


@pytest.mark.peers("NTK-aware base")
@pytest.mark.parametrize("dim, base", LADDERS)
@pytest.mark.parametrize("factor", FACTORS)
def test_the_larger_base_is_that_of_two_libraries(dim, base, factor):
    larger = ext.ntk_base(base, factor, dim)
    x_transformers = peer("x_transformers.x_transformers").RotaryEmbedding(
        dim, base=base, base_rescale_factor=factor
    )
    lucidrains = peer("rotary_embedding_torch").RotaryEmbedding(
        dim, theta=base, theta_rescale_factor=factor
    )
    for ladder in (x_transformers.inv_freq, lucidrains.freqs.detach()):
        for mine in (plain(dim, larger), scaled_frequencies(dim, base, "ntk", factor, 1)):
            agree(mine, ladder, ladder_bound(mine))


@pytest.mark.peers("dynamic NTK")
@pytest.mark.parametrize("dim, base", LADDERS)
@pytest.mark.parametrize("factor", FACTORS)
def test_dynamic_ntk_is_that_of_transformers_at_every_length(rng, dim, base, factor):
    settings = settings_of(dim, base, 2048, rope_type="dynamic", factor=factor)
    for length in (1, 2047, 2048, 2049, 4096, *rng.integers(2050, 200_000, 3).tolist()):
        ladder, strength = of_transformers(settings, length)
        mine = ext.dynamic_ntk_frequencies(dim, base, factor, 2048, length)
        agree(mine, ladder, ladder_bound(mine))
        assert strength == 1


@pytest.mark.peers("dynamic NTK")
def test_a_model_that_grew_and_shrank_has_our_ladder_again():
    """transformers keeps a ladder between calls; ours depends on its arguments alone."""
    llama = peer("transformers.models.llama.modeling_llama")
    settings = settings_of(64, 10_000, 2048, rope_type="dynamic", factor=2.0)
    module = llama.LlamaRotaryEmbedding(settings)
    for length in (100, 5000, 9000, 100):
        module(torch.zeros(1), torch.arange(length)[None])
        mine = ext.dynamic_ntk_frequencies(64, 10_000, 2.0, 2048, length)
        agree(mine, module.inv_freq, ladder_bound(mine))
    module(torch.zeros(1), torch.arange(5000)[None])
    module(torch.zeros(1), torch.arange(4000)[None])  # shorter, but not short: it keeps the longer
    mine = ext.dynamic_ntk_frequencies(64, 10_000, 2.0, 2048, 5000)
    agree(mine, module.inv_freq, ladder_bound(mine))
    fresh = ext.dynamic_ntk_frequencies(64, 10_000, 2.0, 2048, 4000)
    assert np.abs(fresh - np.asarray(module.inv_freq)).max() > 1e-3


# --- YaRN ---------------------------------------------------------------------------------------


def yarn_more(base: float, beta_fast: float = 32, beta_slow: float = 1) -> float:
    """What the ramp adds to the roundings of a ladder.

    (i − low)/(high − low) rounds numbers up to dim, four times at most. The ramp is at least
    dim·ln(beta_fast/beta_slow)/(2·ln base) long, and where an end is cut off it begins at 0 or is
    longer than all its pairs; so one rounding of dim is 2·ln(base)/ln(beta_fast/beta_slow) of it.
    """
    return 4 * 2 * math.log(base) / math.log(beta_fast / beta_slow)


@pytest.mark.peers("YaRN")
@pytest.mark.parametrize("dim, base", YARN_LADDERS)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("length", [1000, 4096])
@pytest.mark.parametrize(
    "options", [{}, {"truncate": False}, {"beta_fast": 20.0, "beta_slow": 3.0}], ids=str
)
def test_yarn_is_that_of_transformers(dim, base, factor, length, options):
    settings = settings_of(
        dim, base, int(length * factor), rope_type="yarn", factor=factor,
        original_max_position_embeddings=length, **options,
    )  # fmt: skip
    ladder, strength = of_transformers(settings)
    assert ext.yarn_attention_factor(factor) == strength  # both in Python's floats
    mine = ext.yarn_frequencies(dim, base, factor, length, **options)
    betas = (options[name] for name in ("beta_fast", "beta_slow") if name in options)
    more = on_ramp(mine, dim, base, factor, yarn_more(base, *betas))
    agree(mine, ladder, ladder_bound(plain(dim, base), more))
    if not options:
        by_torch = scaled_frequencies(dim, base, "yarn", factor, length)
        agree(by_torch, ladder, ladder_bound(plain(dim, base), more))


@pytest.mark.peers("YaRN")
@pytest.mark.parametrize("dim, base", YARN_LADDERS)
@pytest.mark.parametrize("factor", [1.0, *FACTORS])
def test_yarn_stretches_queries_and_keys_as_transformers_does(rng, dim, base, factor):
    settings = settings_of(
        dim, base, int(1000 * factor), rope_type="yarn", factor=factor,
        original_max_position_embeddings=1000,
    )  # fmt: skip
    mine = ext.yarn_frequencies(dim, base, factor, 1000)
    more = on_ramp(mine, dim, base, factor, yarn_more(base)) + 2  # cos and sin are multiplied
    module = ScaledRotaryEmbedding(dim, base, "yarn", factor, original_length=1000)
    strength = ext.yarn_attention_factor(factor)
    rotates_as_transformers_does(rng, settings, module, more, strength)


# --- Llama 3 ------------------------------------------------------------------------------------


def llama3_more(base: float, low: float = 1.0, high: float = 4.0) -> float:
    """What the ramp adds to the roundings of a ladder.

    Between the limits L/λ is below `high`, and as far off as a frequency, with λ and the quotient
    rounded four times more; so is the ramp, which divides by high − low.
    """
    return (math.log(base) + 12) * high / (high - low)


@pytest.mark.peers("Llama 3")
@pytest.mark.parametrize("dim, base", LADDERS)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("length, low, high", [(8192, 1.0, 4.0), (1000, 2.0, 9.0)])
def test_llama3_is_that_of_transformers_and_of_torchtune(rng, dim, base, factor, length, low, high):
    settings = settings_of(
        dim, base, int(length * factor), rope_type="llama3", factor=factor,
        original_max_position_embeddings=length, low_freq_factor=low, high_freq_factor=high,
    )  # fmt: skip
    ladder, strength = of_transformers(settings)
    assert strength == 1
    torchtune = peer("torchtune.models.llama3_1").Llama3ScaledRoPE(
        dim, 16, base, factor, low, high, length
    )
    mine = ext.llama3_frequencies(dim, base, factor, length, low, high)
    more = on_ramp(mine, dim, base, factor, llama3_more(base, low, high))
    for theirs in (ladder, torchtune.theta):
        agree(mine, theirs, ladder_bound(plain(dim, base), more))
    if (low, high) == (1, 4):
        by_torch = scaled_frequencies(dim, base, "llama3", factor, length)
        agree(by_torch, ladder, ladder_bound(plain(dim, base), more))
        module = ScaledRotaryEmbedding(dim, base, "llama3", factor, length)
        rotates_as_transformers_does(rng, settings, module, more)


# --- LongRoPE -----------------------------------------------------------------------------------


@pytest.mark.peers("LongRoPE")
@pytest.mark.parametrize("dim, base", LADDERS)
@pytest.mark.parametrize("factor", [1.0, *FACTORS])
def test_longrope_is_that_of_transformers_below_at_and_beyond_the_trained_length(
    rng, dim, base, factor
):
    short, long = (rng.uniform(1, most, dim // 2) for most in (2, 40))
    settings = settings_of(
        dim, base, int(4096 * factor), rope_type="longrope", factor=factor,
        original_max_position_embeddings=4096,
        short_factor=short.tolist(), long_factor=long.tolist(),
    )  # fmt: skip
    for length in (1, 4095, 4096, 4097, 100_000):
        ladder, strength = of_transformers(settings, length)
        mine = ext.longrope_frequencies(dim, base, short, long, 4096, length)
        agree(mine, ladder, ladder_bound(mine))
        # Ours gives frequencies alone. transformers multiplies cosines and sines by this too, for
        # every length, and it is not YaRN's factor; the chapter says so.
        assert strength == pytest.approx(math.sqrt(1 + math.log(factor) / math.log(4096)))
        if factor > 1:
            assert strength != pytest.approx(ext.yarn_attention_factor(factor), rel=1e-3)


@pytest.mark.peers("LongRoPE")
def test_the_factor_that_the_chapter_names_for_longrope_is_that_of_transformers():
    """Phi-3.5-mini: 4096 tokens stretched to 131072."""
    settings = settings_of(
        8, 10_000, 131_072, rope_type="longrope", original_max_position_embeddings=4096,
        short_factor=[1.0] * 4, long_factor=[2.0] * 4,
    )  # fmt: skip
    for length in (10, 100_000):
        assert f"{of_transformers(settings, length)[1]:.4f}" == "1.1902"
    assert f"{ext.yarn_attention_factor(32):.4f}" == "1.3466"
