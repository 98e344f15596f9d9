"""How exact the sines and cosines of the torch room are, far into a text, and what others lose.

Why: a rotation by a wrong angle is still a rotation, so nothing but the numbers shows it. They are
compared with forty digits of mpmath, which torch brings along.
"""

import functools

import mpmath
import numpy as np
import pytest
import torch

from solutions.with_torch.context_extension import ScaledRotaryEmbedding
from solutions.with_torch.rope import RotaryEmbedding, rope_angles
from solutions.with_torch.sinusoidal import SinusoidalEncoding
from solutions.with_torch.two_d import AxialRotaryEmbedding2D

POSITIONS = [10**3, 10**4, 10**5, 10**6]
far = pytest.mark.parametrize("position", POSITIONS)
widths = pytest.mark.parametrize("dim", [64, 128])
bases = pytest.mark.parametrize("base", [1e4, 5e5])


@functools.cache
def exact(position: int, dim: int, base: float) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Cosine and sine of every pair, in forty digits."""
    with mpmath.workdps(40):
        steps = [mpmath.mpf(-2 * i) / dim for i in range(dim // 2)]
        angles = [position * mpmath.power(mpmath.mpf(base), step) for step in steps]
        return [(mpmath.cos(angle), mpmath.sin(angle)) for angle in angles]


def units_off(table: torch.Tensor, position: int, dim: int, base: float) -> float:
    """Largest error of (cosines, sines) in units of the last place of the exact value."""
    worst = 0.0
    for i, pair in enumerate(exact(position, dim, base)):
        for found, value in zip(table[:, i].tolist(), pair, strict=True):
            unit = float(np.spacing(np.float32(abs(float(value)))))
            worst = max(worst, float(abs(mpmath.mpf(found) - value)) / unit)
    return worst


def arrows(pairs: int) -> torch.Tensor:
    """Every pair is (1, 0), so what comes out of a rotation is the table: cosine, sine."""
    return torch.tensor([1.0, 0.0]).repeat(pairs)[None, None, None]


def by_rope(position: int, dim: int, base: float) -> torch.Tensor:
    x = arrows(dim // 2)
    rotated, _ = RotaryEmbedding(dim, base, "interleaved")(x, x, torch.tensor([position]))
    return rotated.view(-1, 2).T


def by_scaled_rope(position: int, dim: int, base: float) -> torch.Tensor:
    """In the half layout the first half of a turned (1, …, 0, …) are the cosines."""
    x = torch.cat([torch.ones(1, 1, 1, dim // 2), torch.zeros(1, 1, 1, dim // 2)], dim=-1)
    rotated, _ = ScaledRotaryEmbedding(dim, base, "linear")(x, x, torch.tensor([position]))
    return rotated.view(2, -1)


def by_sinusoids(position: int, dim: int, base: float) -> torch.Tensor:
    module = SinusoidalEncoding(dim, max_len=position + 1, base=base)
    return module(torch.zeros(1, 1, dim), offset=position).view(-1, 2).T.flip(0)


def by_grid(position: int, dim: int, base: float) -> torch.Tensor:
    """The last patch of a single row; the second half of a vector turns with the column."""
    x = arrows(dim).expand(1, 1, position + 1, 2 * dim)
    rotated, _ = AxialRotaryEmbedding2D(2 * dim, base)(x, x, 1, position + 1)
    return rotated[0, 0, -1, dim:].view(-1, 2).T


@bases
@widths
@far
@pytest.mark.parametrize("tables", [by_rope, by_scaled_rope], ids=lambda f: f.__name__)
def test_cosines_and_sines_are_within_one_float32_unit_of_the_exact_ones(
    tables, position: int, dim: int, base: float
) -> None:
    """The cast costs half a unit. A float64 angle costs position·2⁻⁵², little beside it."""
    assert units_off(tables(position, dim, base), position, dim, base) <= 1


@pytest.mark.parametrize("tables", [by_sinusoids, by_grid], ids=lambda f: f.__name__)
def test_so_are_those_of_a_table_and_of_a_grid(tables) -> None:
    """Both make all rows up to the position, so one far position has to do."""
    assert units_off(tables(10**5, 8, 5e5), 10**5, 8, 5e5) <= 1


@bases
@pytest.mark.parametrize("position", [2**31 + 12_345, 2**40 + 1])
def test_positions_that_no_int32_holds_lose_what_float64_loses(position: int, base: float) -> None:
    """Frequency, product: three roundings of the angle, which cosine and sine follow."""
    table = by_rope(position, 64, base).double()
    values = torch.tensor([[float(v) for v in pair] for pair in exact(position, 64, base)]).T
    assert (table - values).abs().max() <= 3 * 2.0**-53 * position + 2.0**-25


def error_by(dtype: torch.dtype, position: int, dim: int, base: float) -> float:
    """Largest error of a cosine or sine whose angle was computed in `dtype`, and only the angle."""
    frequencies = rope_angles(torch.tensor(1), dim, base).to(dtype)
    angles = (torch.tensor([position]).to(dtype) * frequencies).double()
    values = torch.tensor(
        [[float(v) for v in pair] for pair in exact(position, dim, base)], dtype=torch.float64
    ).T
    return float((torch.stack([angles.cos(), angles.sin()]) - values).abs().max())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@bases
@widths
@far
def test_an_angle_is_off_by_its_roundings_times_the_position(
    dtype: torch.dtype, position: int, dim: int, base: float
) -> None:
    """Position, frequency and product are rounded, each by up to a unit of the angle.

    No angle is larger than the position, and a cosine follows its angle, up to the 2 between its
    two ends. Among so many pairs, one comes to at least a twentieth of that.
    """
    unit = torch.finfo(dtype).eps / 2
    bound = min(2.0, 3 * unit * position)
    assert bound / 20 <= error_by(dtype, position, dim, base) <= bound


@bases
@widths
@far
def test_float32_angles_cost_as_many_units_as_the_position_counts_and_bfloat16_angles_everything(
    position: int, dim: int, base: float
) -> None:
    """Half a unit, 2⁻²⁵, is the cost of the cast. Three roundings of 2⁻²⁴ are six times as much."""
    ratio = error_by(torch.float32, position, dim, base) / 2.0**-25
    assert 6 / 20 * position <= ratio <= 6 * position
    assert error_by(torch.bfloat16, position, dim, base) > 0.3
    assert error_by(torch.bfloat16, 10**6, dim, base) > 1.9  # of 2
