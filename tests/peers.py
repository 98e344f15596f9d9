"""Other projects' code, and how far it may be from ours.

Why: a reference that agrees with code which nobody here wrote is right, or wrong in good company. A
peer that is not installed, or not in the version that was looked at, is skipped aloud: silence
would look like agreement.

Most peers compute in float32. Each bound below counts the roundings on their way, one HALF_ULP
each, and what the later steps make of them; none is fitted to what came out. An angle of float32 is
off by an amount that grows with the position, so positions are taken where the bound still means
something: `agree` refuses one above a hundredth.
"""

import importlib
import importlib.metadata
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PINS = Path(__file__).resolve().parent.parent / "requirements-peers.txt"
HALF_ULP = 2.0**-24  # the relative error of one rounding to float32
MEANINGFUL = 1e-2


def peer(module: str) -> ModuleType:
    """A module of a peer, when the pinned version of its package is installed; else a loud skip."""
    package = module.split(".")[0].replace("_", "-")
    pin = re.search(rf"^{package}==(\S+)", PINS.read_text("utf-8"), re.MULTILINE)
    if pin is None:
        raise LookupError(f"{PINS.name} must pin {package}, which a test compares with")
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        installed = None
    if installed != pin[1]:
        found = "it is not installed" if installed is None else f"{installed} is installed"
        pytest.skip(
            f"NOT COMPARED WITH {package}=={pin[1]}: {found}. "
            f"'make test-peers' installs what {PINS.name} pins, and compares."
        )
    return importlib.import_module(module)


def agree(mine, theirs, bound) -> None:
    """Equal shapes, and nowhere further apart than the bound, which must mean something."""
    mine, theirs = (np.asarray(x, dtype=np.float64) for x in (mine, theirs))
    assert mine.shape == theirs.shape and mine.size
    bound = np.broadcast_to(bound, mine.shape)
    assert bound.max() < MEANINGFUL, f"a bound of {bound.max():.1e} would let anything pass"
    excess = np.abs(mine - theirs) - bound
    worst = np.unravel_index(excess.argmax(), excess.shape)
    assert excess.max() <= 0, (
        f"apart by {abs(mine[worst] - theirs[worst]):.2e} at {worst}, allowed {bound[worst]:.2e}"
    )


def ladder_bound(ladder, more=0.0) -> np.ndarray:
    """How far float32 code may be from these frequencies, θ = base^(−2i/dim).

    Rounding the exponent moves the power by |ln θ| roundings; base, power, reciprocal, the product
    with a position and a scaling are 8 at most. `more` is what a ramp adds.
    """
    ladder = np.asarray(ladder, dtype=np.float64)
    return HALF_ULP * (np.abs(np.log(ladder)) + 8 + more) * ladder


def rotation_bound(x, positions, ladder, layout: str, more=0.0) -> np.ndarray:
    """How far a rotation in float32 by float32 angles may be from a·cos φ − b·sin φ.

    Sine and cosine move by as much as the angle does. They are rounded twice each, the products and
    their sum once each, in the peer and in our torch room: 8 roundings of |a| + |b|.
    """
    moved = positions[..., np.newaxis] * ladder_bound(ladder, more) + 8 * HALF_ULP
    grid = (*x.shape[:-1], -1, 2) if layout == "interleaved" else (*x.shape[:-1], 2, -1)
    axis = -1 if layout == "interleaved" else -2
    lengths = np.abs(np.asarray(x, dtype=np.float64)).reshape(grid).sum(axis)
    return np.stack([lengths * moved] * 2, axis).reshape(x.shape)


def vectors(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random numbers that float32 holds exactly."""
    return rng.normal(size=shape).astype(np.float32)


def scattered(rng: np.random.Generator, count: int, below: int = 2000) -> np.ndarray:
    """Positions that are no range, none twice, in no order, with 0 and the last one among them."""
    between = rng.choice(np.arange(1, below - 1), size=count - 2, replace=False)
    return rng.permutation(np.concatenate([[0, below - 1], between]))
