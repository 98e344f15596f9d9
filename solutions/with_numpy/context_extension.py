"""Stretching RoPE to longer texts than a model was trained on: which pairs to slow, and how much.

Why: past the trained length slow pairs reach angles that no training step has shown them.
Symbols: pair i = 0 … dim/2 − 1, frequency θ_i = base^(−2i/dim) (radians per token), wavelength
λ_i = 2π/θ_i (tokens per turn), trained length L, factor s = wanted length / L. "YaRN paper" is
Peng et al. (2023), arXiv:2309.00071.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .rope import as_floats, rope_angles


def require_above_zero(**numbers: float) -> None:
    """Refuse, by name, what can be no length, factor or base."""
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise ValueError(
                f"{name} must be finite and above 0, got {number!r}; "
                f"lengths count tokens, and a factor of 1 changes nothing"
            )


def require_count(sequence_length: int) -> None:
    """Refuse a number of tokens that is negative."""
    if not 0 <= sequence_length < math.inf:
        raise ValueError(
            f"sequence_length must be at least 0, got {sequence_length!r}; "
            f"it counts all tokens, those in a cache too"
        )


def interpolate_positions(
    positions: ArrayLike, trained_length: int, target_length: int
) -> np.ndarray:
    """Squeeze positions of a longer text into the range that the model was trained on.

    Position interpolation, Chen et al. (2023), arXiv:2306.15595, eq. 4: m → m·L/L′ with the
    trained length L and the target length L′. Positions stay as they are when L′ ≤ L.

    Shapes: positions any; result positions.shape.
    Dtype: float64 whatever the dtype of `positions`, whose integers become fractions.
        `positions` is not changed.
    Units: positions and lengths in tokens.
    Raises: ValueError when `trained_length` or `target_length` is not a finite number above 0.

    >>> interpolate_positions([3, 8000], trained_length=2048, target_length=8192).tolist()
    [0.75, 2000.0]
    """
    require_above_zero(trained_length=trained_length, target_length=target_length)
    squeeze = min(1.0, trained_length / target_length)
    return as_floats(positions, "positions").astype(np.float64) * squeeze


def ntk_base(base: float, factor: float, dim: int) -> float:
    """The larger base that slows the slowest pair by `factor` and leaves the fastest pair alone.

    NTK-aware scaling, YaRN paper, section 3.1: base·s^(dim/(dim − 2)). The exponent makes the
    last frequency, base^(−(dim − 2)/dim), exactly s times smaller.

    Shapes: numbers in, one number out.
    Dtype: float64 (a Python float).
    Units: none.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or is 2:
        one pair cannot be the slowest and the fastest; when `base` or `factor` is not a finite
        number above 0.

    >>> round(ntk_base(10000.0, factor=4.0, dim=64), 1)
    41829.4
    """
    rope_angles(0, dim, base)  # refuses a dim or base that makes no ladder
    require_above_zero(factor=factor)
    if dim == 2:
        raise ValueError(
            f"dim must be above 2 to change the base, got {dim!r}; a single pair turns by 1 per "
            f"token whatever the base is, so interpolate its positions"
        )
    return float(base * factor ** (dim / (dim - 2)))


def dynamic_ntk_frequencies(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> np.ndarray:
    """Frequencies of dynamic NTK scaling: the base grows with the text that is there.

    Dynamic NTK (YaRN paper, section 3.3) as model code writes it, for n tokens and the trained
    length L: up to n = L the plain ladder, beyond it the ladder of

        base·(s·n/L − (s − 1))^(dim/(dim − 2))

    The result depends on the arguments alone, never on an earlier call.

    Shapes: result (dim/2,).
    Dtype: float64.
    Units: lengths in tokens, frequencies in radians per token.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or is 2
        while `sequence_length` is beyond `original_length`; when `base`, `factor` or
        `original_length` is not a finite number above 0; when `sequence_length` is negative.

    >>> plain = dynamic_ntk_frequencies(4, 10000.0, 2.0, original_length=2048, sequence_length=2048)
    >>> plain.tolist()
    [1.0, 0.01]
    >>> slower = dynamic_ntk_frequencies(4, 10000.0, 2.0, 2048, sequence_length=4096)
    >>> slower.round(5).tolist()
    [1.0, 0.00333]
    """
    frequencies = rope_angles(1, dim, base)
    require_above_zero(factor=factor, original_length=original_length)
    require_count(sequence_length)
    if sequence_length <= original_length:
        return frequencies
    stretch = factor * sequence_length / original_length - (factor - 1)
    return rope_angles(1, dim, ntk_base(base, stretch, dim))


def yarn_frequencies(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> np.ndarray:
    """Frequencies of YaRN: fast pairs kept, slow pairs divided by `factor`, a ramp between.

    YaRN paper, sections 3.2 and 3.4, with the ramp in the pair index, as its authors' code has
    it. The pair that makes β turns over L tokens has, as a fraction, the index

        end(β) = dim·ln(L/(2π·β)) / (2·ln base)

    The ramp starts at low = end(beta_fast) and stops at high = end(beta_slow); with `truncate`
    low is rounded down and high up to whole pairs. Then low is raised to at least 0, high lowered
    to at most dim − 1, and, if both are equal, high raised by 0.001. With r_i = (i − low)/(high −
    low), clipped to 0 … 1, pair i gets the frequency

        (1 − r_i)·θ_i + r_i·θ_i/s

    Shapes: result (dim/2,).
    Dtype: float64.
    Units: `original_length` (L) in tokens, betas in turns, frequencies in radians per token.
    Raises: ValueError when `dim` is not a positive even integer (the message names it); when
        `base`, `factor`, `original_length` or a beta is not a finite number above 0.
        Unspecified: a `beta_fast` below `beta_slow`, which leaves no ramp; a base of 1 or less, on
        which no pair slows down; a length in which even the fastest pair makes hardly a turn.

    >>> yarn_frequencies(8, 10000.0, factor=4.0, original_length=2048).round(5).tolist()
    [1.0, 0.1, 0.00625, 0.00025]
    """
    frequencies = rope_angles(1, dim, base)
    require_above_zero(
        factor=factor, original_length=original_length, beta_fast=beta_fast, beta_slow=beta_slow
    )
    if base <= 1:
        raise ValueError(f"base must be above 1, got {base!r}; later pairs have to be slower ones")

    def end(beta: float) -> float:
        return dim * math.log(original_length / (2 * math.pi * beta)) / (2 * math.log(base))

    low, high = end(beta_fast), end(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, int(dim) - 1)
    if low > high or beta_fast < beta_slow:
        raise ValueError(
            f"the ramp must not stop (pair {high}) before it starts (pair {low}); got beta_fast "
            f"{beta_fast!r}, beta_slow {beta_slow!r} and original_length {original_length!r}: "
            f"check that the fast pairs make more turns than the slow ones"
        )
    if low == high:
        high += 0.001
    divided = np.clip((np.arange(len(frequencies)) - low) / (high - low), 0, 1)
    return (1 - divided) * frequencies + divided * frequencies / factor


def yarn_attention_factor(factor: float) -> float:
    """The number by which YaRN multiplies cosines and sines, so queries and keys alike.

    YaRN paper, section 3.4: √(1/t) = 0.1·ln(s) + 1, where the scores are divided by the
    temperature t. A rotated q and a rotated k carry √(1/t) each, so their product carries 1/t.
    A factor up to 1 stretches nothing and gets 1.

    Shapes: a number in, a number out.
    Dtype: float64 (a Python float).
    Units: none.
    Raises: as you like for a factor of 0 or less, which is left to you.

    >>> round(yarn_attention_factor(4.0), 4)
    1.1386
    >>> yarn_attention_factor(0.5)
    1.0
    """
    require_above_zero(factor=factor)
    return max(1.0, 0.1 * math.log(factor) + 1.0)


def llama3_frequencies(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> np.ndarray:
    """Frequencies of Llama 3.1: pairs are told apart by the turns they made in training.

    The rule of Meta's published model code. With the wavelength λ = 2π/θ and the trained length
    L, a pair makes L/λ turns; a = low_freq_factor and b = high_freq_factor are limits for them:

        λ above L/a:  θ/s                                   (slow, hardly turned: divided)
        λ below L/b:  θ                                     (fast, well known: kept)
        between:      (1 − w)·θ/s + w·θ,  w = (L/λ − a)/(b − a)

    Equal limits are allowed and leave nothing between: kept above, divided below.

    Shapes: result (dim/2,).
    Dtype: float64.
    Units: `original_length` (L) in tokens, frequencies in radians per token.
    Raises: ValueError when `dim` is not a positive even integer (the message names it); when
        `base`, `factor`, `original_length` or one of the two limits is not a finite number above
        0. What a `low_freq_factor` above `high_freq_factor` gives is left to you.

    >>> llama3_frequencies(8, 10000.0, factor=8.0, original_length=1000).round(6).tolist()
    [1.0, 0.1, 0.002975, 0.000125]
    """
    frequencies = rope_angles(1, dim, base)
    require_above_zero(
        factor=factor,
        original_length=original_length,
        low_freq_factor=low_freq_factor,
        high_freq_factor=high_freq_factor,
    )
    if low_freq_factor > high_freq_factor:
        raise ValueError(
            f"low_freq_factor must not be above high_freq_factor, got {low_freq_factor!r} and "
            f"{high_freq_factor!r}; both count turns over the trained length, slow pairs make few"
        )
    turns = original_length * frequencies / (2 * math.pi)
    # Equal limits are allowed: np.interp makes a step of them, where a quotient would be 0/0.
    kept = np.interp(turns, [low_freq_factor, high_freq_factor], [0.0, 1.0])
    return (1 - kept) * frequencies / factor + kept * frequencies


def longrope_frequencies(
    dim: int,
    base: float,
    short_factors: ArrayLike,
    long_factors: ArrayLike,
    original_length: int,
    sequence_length: int,
) -> np.ndarray:
    """Frequencies of LongRoPE: each pair has a factor of its own, found by a search.

    Ding et al. (2024), arXiv:2402.13753, as model code uses the result: pair i gets θ_i/short_i
    for texts up to and including the trained length, and θ_i/long_i for longer ones.

    Shapes: short_factors and long_factors (dim/2,) each; result (dim/2,).
    Dtype: float64, whatever numbers the factors are. They are not changed.
    Units: lengths in tokens, frequencies in radians per token.
    Raises: ValueError when `dim` is not a positive even integer (the message names it); when
        either set has not exactly dim/2 factors along one axis, or a factor that is not above 0;
        when `base` or `original_length` is not a finite number above 0; when `sequence_length` is
        negative.

    >>> for n in (4096, 4097):
    ...     longrope_frequencies(4, 10000.0, [1, 1], [1, 8], 4096, sequence_length=n).tolist()
    [1.0, 0.01]
    [1.0, 0.00125]
    """
    frequencies = rope_angles(1, dim, base)
    require_above_zero(original_length=original_length)
    require_count(sequence_length)
    short, long = as_floats(short_factors, "short_factors"), as_floats(long_factors, "long_factors")
    for name, factors in (("short_factors", short), ("long_factors", long)):
        if factors.shape != frequencies.shape:
            raise ValueError(
                f"{name} must hold {len(frequencies)} numbers, one for each pair of dim {dim}, "
                f"got shape {factors.shape}; give a uniform factor once for each pair"
            )
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise ValueError(
                f"{name} must be finite and above 0, got {factors.min()} among them; "
                f"a factor of 1 keeps a pair as it is"
            )
    return frequencies / (short if sequence_length <= original_length else long)


def fixed_yarn_ramp() -> Callable[..., np.ndarray]:
    """Make `blend`, the ramp between kept and divided frequencies, the right way up.

    Returns a function `blend(frequencies, factor, low, high)`: pair index i ≤ low keeps its
    frequency, i ≥ high gets frequency/factor, and between them a ramp linear in i blends the two
    frequencies, not their wavelengths. Equal ends: high is raised by 0.001.

    Shapes: frequencies (pairs,); result the same.
    Dtype: the floating dtype of `frequencies`; integers give float64. `frequencies` is not
        changed.
    Units: `low` and `high` are pair indices, whole or fractions.
    Raises: (`blend`) ValueError when `factor` is not a finite number above 0, when `low` is above
        `high`, or when `frequencies` has not one axis.

    >>> blend = fixed_yarn_ramp()
    >>> blend([8.0, 8.0, 8.0, 8.0, 8.0], factor=4.0, low=1, high=3)
    array([8., 8., 5., 2., 2.])
    """

    def blend(frequencies: ArrayLike, factor: float, low: float, high: float) -> np.ndarray:
        frequencies = as_floats(frequencies, "frequencies")
        require_above_zero(factor=factor)
        if frequencies.ndim != 1:
            raise ValueError(
                f"frequencies must be (pairs,), got {frequencies.shape}; blend one ladder a call"
            )
        if not low <= high:
            raise ValueError(
                f"low must not be above high, got {low!r} and {high!r}; "
                f"fast pairs, which are kept, come first"
            )
        if low == high:
            high = high + 0.001
        divided = np.clip((np.arange(len(frequencies)) - low) / (high - low), 0, 1)
        wide = frequencies.astype(np.float64)
        return ((1 - divided) * wide + divided * wide / factor).astype(frequencies.dtype)

    return blend
