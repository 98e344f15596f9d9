"""Checks of the chapter on stretching RoPE to longer texts.

Frequencies span many sizes, and the slow pairs, which all of this is about, have the smallest: so
ladders are compared number by number and also as ratios. Published numbers are those that several
libraries compute; invariants are written down here, not taken from the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    agrees,
    close,
    good_input,
    instance,
    leaves_inputs,
    pair,
    refuses,
    same_dtype,
    shaped,
    tolerance,
    trains,
    unchanged,
)
from ..exercise import Exercise, behaviour

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("context_extension", "interpolate_positions", 1),
    Exercise("context_extension", "ntk_base", 1),
    Exercise("context_extension", "dynamic_ntk_frequencies", 2),
    Exercise("context_extension", "yarn_frequencies", 4),
    Exercise("context_extension", "yarn_attention_factor", 1),
    Exercise("context_extension", "llama3_frequencies", 2),
    Exercise("context_extension", "longrope_frequencies", 2),
    Exercise("context_extension", "fixed_yarn_ramp", 2),
    Exercise("context_extension", "ScaledRotaryEmbedding", 3, "with_torch"),
)

# Some pairs of the ladders that transformers, the YaRN authors' code and, for Llama 3, Meta's and
# torchtune's compute in float32. Dim 64, base 10000, except Llama 3: dim 128, base 500000.
PLAIN = {0: 1.0, 5: 0.237137362, 15: 0.0133352149, 20: 0.00316227786, 31: 0.000133352150}
NTK_4 = {0: 1.0, 5: 0.189624116, 15: 0.00681837087, 20: 0.00129292754, 31: 3.33380340e-05}
DYNAMIC_4096 = {0: 1.0, 5: 0.198630050, 15: 0.00783672929, 20: 0.00155661011, 31: 4.44507132e-05}
YARN_4 = {
    5: 0.237137362,
    9: 0.0706631020,
    15: 0.00794983935,
    20: 0.000973008573,
    21: 0.000592843455,
    31: 3.33380376e-05,
}
LLAMA3_8 = {
    0: 1.0,
    20: 0.0165604409,
    28: 0.00321144611,
    29: 0.00216657063,
    31: 0.000856751456,
    34: 0.000178507791,
    35: 9.55621217e-05,
    63: 3.06892588e-07,
}
# One query and one key, and what seven public libraries make of them at positions 5 and 3.
Q, K = (1.0, 0.5, -0.5, 2.0), (0.5, 1.0, 1.5, -1.0)
Q_AT_5 = [-0.19579995, 0.39941680, -1.10075545, 2.02249002]
K_AT_3 = [-0.70667624, 1.02954555, -1.41442871, -0.96955454]
# The query at positions 3 and 8000 under linear scaling by 4, so at 0.75 and 2000.
Q_AT_3_BY_4 = [1.07250822, 0.48498607, 0.31579435, 2.00369358]
Q_AT_8000_BY_4 = [0.09756020, -1.62184954, 1.11376929, 1.27263677]
PUBLISHED = 1e-6  # those libraries compute in float32
ROUGH, EXACT = tolerance("float32"), tolerance("float64")


def scattered(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integer positions that are no range: out of order, one of them twice, none near zero."""
    places = 3 + np.cumsum(rng.integers(2, 30, math.prod(shape)))[::-1]
    places[1] = places[0]
    places[[-2, -1]] = places[[-1, -2]]
    return places.reshape(shape)


def drawn(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def tokens(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def plain(dim: int, base: float) -> np.ndarray:
    """The ladder before anything is stretched."""
    return base ** (-2 * np.arange(dim // 2) / dim)


def same_ladder(
    result: Any, expected: Any, *, exact: bool = False, what: str = "the frequencies"
) -> None:
    """Equal frequencies, the slow ones too. Tables must be exact only where a check says so."""
    want = np.asarray(expected, dtype=np.float64)
    got = shaped(result, want.shape, what=what)
    close(got, want, EXACT if exact else ROUGH, what=what)
    ratio = got / want
    close(ratio, np.ones(want.shape), 1e-11 if exact else 1e-5, what=f"{what}, yours over right,")
    if exact:
        same_dtype(result, "float64", what=what)


def ladders_agree(
    student: Answers, reference: Answers, name: str, *args: Any, exact: bool = False, **kwargs: Any
) -> None:
    """The student's frequencies are the reference's."""
    expected = getattr(reference, name)(*args, **kwargs)
    same_ladder(getattr(student, name)(*args, **kwargs), expected, exact=exact)


def published(result: Any, pairs: int, known: dict[int, float]) -> None:
    """Where the published ladder is known, the student's has its numbers."""
    got = shaped(result, (pairs,), what="the frequencies")
    where, values = list(known), list(known.values())
    what = f"the frequencies of pairs {', '.join(map(str, where))}"
    close(got[where], values, PUBLISHED, what=what)
    ratio = got[where] / np.array(values)
    close(ratio, np.ones(len(where)), 1e-5, what=f"{what}, yours over published,")


def bad_dims(answer: Callable[[int], Any]) -> None:
    """`answer(dim)` refuses widths that have no pairs, by name."""
    for dim in (13, -6, 0):
        because = "a dim that is odd or not positive"
        refuses(answer, dim, error="ValueError", naming=(str(dim),), because=because)


def bad_bases(answer: Callable[[float], Any]) -> None:
    """`answer(base)` refuses bases that are not positive."""
    for base in (0.0, -40.0):
        because = "a base that is not positive"
        refuses(answer, base, error="ValueError", because=because)


def bad_factors(answer: Callable[[float], Any]) -> None:
    """`answer(factor)` refuses factors that are not positive."""
    for factor in (0.0, -2.0, -0.5):
        refuses(answer, factor, because="a factor that is not positive")


def bad_lengths(answer: Callable[[int], Any], what: str) -> None:
    """`answer(length)` refuses lengths below 0; what a length of 0 does is left open."""
    for length in (-1, -64):
        refuses(answer, length, because=f"a {what} below 0")


# ---------------------------------------------------------------------- interpolate_positions


@behaviour("interpolate_positions", weight=2)
def check_interpolate_positions_worked_example(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """From 2048 to 8192 tokens position 8000 becomes 2000 and 3 becomes 0.75."""
    result = student.interpolate_positions(np.array([8000, 3, 5]), 2048, 8192)
    close(result, [2000.0, 0.75, 1.25], 2000 * ROUGH)
    close(student.interpolate_positions(np.array([8000, 6]), 4096, 32768), [1000.0, 0.75], 1e-3)


@behaviour("interpolate_positions", weight=2)
def check_interpolate_positions_any_lengths(student: Answers, reference: Answers, rng: Any) -> None:
    """Any two lengths and positions of any shape work, not only whole factors."""
    for trained, target in ((700, 1100), (tokens(rng, 90, 200), tokens(rng, 300, 900))):
        inputs = (scattered(rng, 2, 5), trained, target)
        agrees(student, reference, "interpolate_positions", *inputs, atol=300 * ROUGH)


@behaviour("interpolate_positions")
def check_interpolate_positions_short_texts(student: Answers, reference: Answers, rng: Any) -> None:
    """When the target length is not above the trained one, positions stay as they are."""
    places = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "interpolate_positions", places, 400, 900, atol=300 * ROUGH)
    for trained, target in ((900, 400), (512, 512), (tokens(rng, 300, 900), tokens(rng, 40, 300))):
        close(student.interpolate_positions(places, trained, target), places, 300 * ROUGH)


@behaviour("interpolate_positions")
def check_interpolate_positions_refuses_lengths(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A trained or a target length below 0 raises."""
    places = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "interpolate_positions", places, 40, 90, atol=300 * ROUGH)
    answer = student.interpolate_positions
    bad_lengths(lambda trained: answer(places, trained, 90), "trained length")
    bad_lengths(lambda target: answer(places, 40, target), "target length")


@behaviour("interpolate_positions")
def check_interpolate_positions_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The result is float64 and exact, whatever the dtype of the positions, stretched or not."""
    for dtype in ("float64", "int64", "int32", "float32", "uint16"):
        places = rng.uniform(20_000, 60_000, 5).astype(dtype)
        for lengths in ((4096, 50_000), (50_000, 4096)):
            inputs, allowed = (places, *lengths), 60_000 * EXACT
            result = student.interpolate_positions(*inputs)
            close(result, reference.interpolate_positions(*inputs), allowed)
            same_dtype(result, "float64")


@behaviour("interpolate_positions")
def check_interpolate_positions_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The positions that went in are still what they were."""
    for places in (rng.uniform(2, 90, (5, 2)), scattered(rng, 5)):
        inputs, allowed = (places, 30, 99), 200 * ROUGH
        name, names = "interpolate_positions", ("positions",)
        leaves_inputs(student, reference, name, *inputs, names=names, atol=allowed)


@behaviour("interpolate_positions", hidden=True)
def check_interpolate_positions_other_shapes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A single position, three axes, fractions and zero all work."""
    for places in (np.array(37), scattered(rng, 3, 2, 4), np.array([0.0, 7.25, 0.125, 60.5])):
        for lengths in ((30, 99), (99, 30)):
            inputs = (places, *lengths)
            agrees(student, reference, "interpolate_positions", *inputs, atol=300 * ROUGH)


# ----------------------------------------------------------------------------------- ntk_base


@behaviour("ntk_base", weight=2)
def check_ntk_base_published_number(student: Answers, reference: Answers, rng: Any) -> None:
    """A factor of 4 turns base 10000 into 41829.4 at dim 64, and 100 into 1600 at dim 4."""
    wide, narrow = (student.ntk_base(*of) for of in ((10_000.0, 4.0, 64), (100.0, 4.0, 4)))
    close(wide, 41_829.36592889948, 0.5)
    close(narrow, 1600.0, 1e-2)


@behaviour("ntk_base", weight=2)
def check_ntk_base_slowest_pair(student: Answers, reference: Answers, rng: Any) -> None:
    """On the new base the slowest pair turns exactly `factor` times more slowly than before."""
    for dim in (6, 16, 128):
        base, factor = drawn(rng, 200, 9000), drawn(rng, 1.5, 9)
        new = shaped(student.ntk_base(base, factor, dim), (), what="the new base")
        with np.errstate(all="ignore"):
            slower = (new / base) ** ((dim - 2) / dim)
        close(slower, factor, factor * 1e-5, what="how much slower the slowest pair turns")


@behaviour("ntk_base")
def check_ntk_base_refuses_single_pair(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 2 there is one pair and no exponent: a ValueError."""
    base = drawn(rng, 200, 900)
    with good_input():
        agrees(student, reference, "ntk_base", base, 2.0, 8, atol=4 * base * ROUGH)
    for factor in (3.0, 1.0):
        inputs, because = (base, factor, 2), "a dim of 2"
        refuses(student.ntk_base, *inputs, error="ValueError", because=because)


@behaviour("ntk_base")
def check_ntk_base_exact(student: Answers, reference: Answers, rng: Any) -> None:
    """The new base is exact to float64, for whole numbers too, and factor 1 changes nothing."""
    for base, factor, dim in ((500, 8, 32), (10_000, 2, 128), (drawn(rng, 50, 90), 1.0, 10)):
        expected = reference.ntk_base(base, factor, dim)
        close(student.ntk_base(base, factor, dim), expected, 4 * expected * EXACT)


@behaviour("ntk_base")
def check_ntk_base_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad dim is a ValueError that names it, a bad base a ValueError; a bad factor raises."""
    with good_input():
        agrees(student, reference, "ntk_base", 90.0, 2.0, 8, atol=400 * ROUGH)
    bad_dims(lambda dim: student.ntk_base(90.0, 2.0, dim))
    bad_bases(lambda base: student.ntk_base(base, 2.0, 8))
    bad_factors(lambda factor: student.ntk_base(90.0, factor, 8))


@behaviour("ntk_base", hidden=True)
def check_ntk_base_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """Narrow and wide heads, whole numbers and factors just above 1 work."""
    for dim, base, factor in ((4, 90, 3), (256, 500_000, 16), (66, drawn(rng, 50, 90), 1.01)):
        expected = reference.ntk_base(base, factor, dim)
        close(student.ntk_base(base, factor, dim), expected, 4 * expected * ROUGH)


# -------------------------------------------------------------------- dynamic_ntk_frequencies


@behaviour("dynamic_ntk_frequencies", weight=2)
def check_dynamic_ntk_frequencies_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """At twice the trained length, factor 2 gives the ladder that libraries compute."""
    published(student.dynamic_ntk_frequencies(64, 10_000.0, 2.0, 2048, 4096), 32, DYNAMIC_4096)


@behaviour("dynamic_ntk_frequencies", weight=2)
def check_dynamic_ntk_frequencies_short_texts(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Up to and including the trained length the ladder is the plain one."""
    for length in (1900, 1024, 2048):
        published(student.dynamic_ntk_frequencies(64, 10_000.0, 3.0, 2048, length), 32, PLAIN)
    base, original = drawn(rng, 200, 900), tokens(rng, 300, 900)
    for length in (original, original - original // 9, original // 3, 1):
        result = student.dynamic_ntk_frequencies(12, base, 4.0, original, length)
        same_ladder(result, plain(12, base))


@behaviour("dynamic_ntk_frequencies", weight=2)
def check_dynamic_ntk_frequencies_long_texts(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Beyond it the base grows with the length, for any dim, base and factor."""
    for dim in (6, 16, 40):
        for times in (3, 9.25):
            base, factor, original = drawn(rng, 200, 900), drawn(rng, 1.5, 7), tokens(rng, 300, 900)
            inputs = (dim, base, factor, original, int(times * original))
            ladders_agree(student, reference, "dynamic_ntk_frequencies", *inputs)


@behaviour("dynamic_ntk_frequencies")
def check_dynamic_ntk_frequencies_no_memory(student: Answers, reference: Answers, rng: Any) -> None:
    """After a long text a short one gets the plain ladder again: nothing is remembered."""
    base, original = drawn(rng, 200, 900), tokens(rng, 300, 900)
    lengths = [8 * original, 3 * original, original, original // 2]
    for length in lengths:
        inputs = (10, base, 2.5, original, length)
        ladders_agree(student, reference, "dynamic_ntk_frequencies", *inputs)
    for length in (5 * original, original // 2, 5 * original, 2 * original):
        inputs = (10, base + 1, 2.5, original, length)
        ladders_agree(student, reference, "dynamic_ntk_frequencies", *inputs)


@behaviour("dynamic_ntk_frequencies")
def check_dynamic_ntk_frequencies_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Ladders are float64 and exact, one token beyond the trained length and far beyond."""
    for dim, base in ((128, 500_000), (4, 50.5), (64, 10_000)):
        for factor, length in ((2, 131_072), (2, 4097), (2, 4096), (1.0, 30_000)):
            inputs = (dim, base, factor, 4096, length)
            ladders_agree(student, reference, "dynamic_ntk_frequencies", *inputs, exact=True)


@behaviour("dynamic_ntk_frequencies")
def check_dynamic_ntk_frequencies_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad dim or base, or dim 2 on a long text, is a ValueError; bad factors, lengths raise."""
    answer = student.dynamic_ntk_frequencies

    def answer_at(length: int, dim: int, base: float = 90.0) -> Any:
        return answer(dim, base, 2.0, 100, length)

    with good_input():
        inputs = (8, 90.0, 2.0, 100, 300)
        ladders_agree(student, reference, "dynamic_ntk_frequencies", *inputs)
    for length in (300, 50):
        bad_dims(partial(answer_at, length))
        bad_bases(partial(answer_at, length, 8))
    bad_factors(lambda factor: answer(8, 90.0, factor, 100, 300))
    bad_lengths(lambda original: answer(8, 90.0, 2.0, original, 300), "trained length")
    for length in (-1, -300):
        refuses(answer, 8, 90.0, 2.0, 100, length, because="a negative number of tokens")
    because = "a dim of 2 beyond the trained length"
    refuses(answer, 2, 90.0, 2.0, 100, 300, error="ValueError", because=because)


@behaviour("dynamic_ntk_frequencies", hidden=True)
def check_dynamic_ntk_frequencies_single_pair(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """dim 2 is left alone up to the trained length; beyond it, it is a ValueError."""
    for length in (700, 350):
        with good_input():
            close(student.dynamic_ntk_frequencies(2, 90.0, 3.0, 700, length), [1.0], ROUGH)
    for length in (701, 5000):
        inputs, because = (2, 90.0, 3.0, 700, length), "a dim of 2 beyond the trained length"
        refuses(student.dynamic_ntk_frequencies, *inputs, error="ValueError", because=because)


# --------------------------------------------------------------------------- yarn_frequencies


@behaviour("yarn_frequencies", weight=2)
def check_yarn_frequencies_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Factor 4: dim 64 gives the ladder that libraries compute, ramp 8 to 21; dim 128, 20 to 46."""
    expected = reference.yarn_frequencies(128, 10_000.0, 4.0, 4096)
    narrow = student.yarn_frequencies(64, 10_000.0, 4.0, 2048)
    wide = student.yarn_frequencies(128, 10_000.0, 4.0, 4096)  # how ends are rounded shows in both
    published(narrow, 32, YARN_4)
    same_ladder(wide, expected)


@behaviour("yarn_frequencies")
def check_yarn_frequencies_ends(student: Answers, reference: Answers, rng: Any) -> None:
    """The fastest pairs keep their frequency, the slowest are divided by the factor."""
    base, factor = drawn(rng, 5000, 9000), drawn(rng, 3, 20)
    result = student.yarn_frequencies(64, base, factor, 2048)
    ladder = shaped(result, (32,), what="the frequencies")
    same_ladder(ladder[:8], plain(64, base)[:8], what="the fast frequencies")
    same_ladder(ladder[24:], plain(64, base)[24:] / factor, what="the slow frequencies")


@behaviour("yarn_frequencies", weight=2)
def check_yarn_frequencies_other_arguments(student: Answers, reference: Answers, rng: Any) -> None:
    """Every argument counts: dim, base, factor, trained length and both betas."""
    for dim in (48, 96):
        base, factor, original = drawn(rng, 3e3, 9e3), drawn(rng, 2.5, 9), tokens(rng, 3000, 9000)
        betas = (drawn(rng, 20, 45), drawn(rng, 1.3, 3))
        inputs = (dim, base, factor, original, *betas)
        ladders_agree(student, reference, "yarn_frequencies", *inputs)


@behaviour("yarn_frequencies", weight=2)
def check_yarn_frequencies_without_rounding(student: Answers, reference: Answers, rng: Any) -> None:
    """With truncate=False the ends of the ramp lie between pairs."""
    for dim in (40, 64):
        base, factor, original = drawn(rng, 5e3, 3e4), drawn(rng, 3, 9), tokens(rng, 1000, 5000)
        inputs = (dim, base, factor, original)
        ladders_agree(student, reference, "yarn_frequencies", *inputs, truncate=False)


@behaviour("yarn_frequencies", weight=2)
def check_yarn_frequencies_clamped_ends(student: Answers, reference: Answers, rng: Any) -> None:
    """The ramp starts at pair 0 at the earliest and stops at dim − 1, beyond the last pair."""
    requests = []
    for truncate in (True, False):
        stops_late = (32, drawn(rng, 400, 600), drawn(rng, 3, 9), 8192)
        starts_early = (32, drawn(rng, 8e3, 12e3), drawn(rng, 3, 9), tokens(rng, 110, 150))
        stops_latest = (8, drawn(rng, 9, 12), drawn(rng, 3, 9), 12_000)
        requests += [(*stops_late, 32.0, 1.0, truncate), (*starts_early, 32.0, 1.0, truncate)]
        requests.append((*stops_latest, 1000.0, 0.25, truncate))
    expected = [reference.yarn_frequencies(*request) for request in requests]
    # All are asked before one is looked at: which limits are missing tells mistakes apart.
    results = [student.yarn_frequencies(*request) for request in requests]
    for result, wanted in zip(results, expected, strict=True):
        same_ladder(result, wanted)


@behaviour("yarn_frequencies")
def check_yarn_frequencies_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it."""
    with good_input():
        ladders_agree(student, reference, "yarn_frequencies", 16, 900.0, 3.0, 2000)
    bad_dims(lambda dim: student.yarn_frequencies(dim, 900.0, 3.0, 2000))


@behaviour("yarn_frequencies")
def check_yarn_frequencies_equal_ends(student: Answers, reference: Answers, rng: Any) -> None:
    """Equal ends make a step: no pair is lost to a division by zero."""
    both_at_pair_0 = (16, drawn(rng, 3e3, 9e3), drawn(rng, 3, 9), 4096, *[4096 / (2 * np.pi)] * 2)
    ladders_agree(student, reference, "yarn_frequencies", *both_at_pair_0)
    for beta in (4.3, 11.7):
        inputs = (24, drawn(rng, 3e3, 9e3), drawn(rng, 3, 9), 4096, beta, beta, False)
        ladders_agree(student, reference, "yarn_frequencies", *inputs)
    single_pair = (2, drawn(rng, 90, 110), drawn(rng, 3, 9), 32_768)
    ladders_agree(student, reference, "yarn_frequencies", *single_pair)


@behaviour("yarn_frequencies")
def check_yarn_frequencies_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Ladders are float64 and exact, truncated or not."""
    for dim, base, original in ((128, 500_000.0, 8192), (64, 150_000, 4096)):
        for truncate in (True, False):
            inputs = (dim, base, drawn(rng, 20, 40), original)
            ladders_agree(
                student, reference, "yarn_frequencies", *inputs, truncate=truncate, exact=True
            )


@behaviour("yarn_frequencies")
def check_yarn_frequencies_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad base is a ValueError; a bad factor or length raises."""
    answer = student.yarn_frequencies
    with good_input():
        ladders_agree(student, reference, "yarn_frequencies", 8, 900.0, 2.0, 1000)
    bad_bases(lambda base: answer(8, base, 2.0, 1000))
    bad_factors(lambda factor: answer(8, 900.0, factor, 1000))
    bad_lengths(lambda original: answer(8, 900.0, 2.0, original), "trained length")


@behaviour("yarn_frequencies", hidden=True)
def check_yarn_frequencies_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One pair, three pairs and 128 work; whole numbers do; factor 1 gives the plain ladder."""
    for dim in (2, 6, 22, 256):
        inputs = (dim, 10_000, 8, tokens(rng, 3000, 9000))
        ladders_agree(student, reference, "yarn_frequencies", *inputs)
        base = drawn(rng, 3e3, 9e3)
        same_ladder(student.yarn_frequencies(dim, base, 1.0, 4096), plain(dim, base))


# ---------------------------------------------------------------------- yarn_attention_factor


@behaviour("yarn_attention_factor", weight=2)
def check_yarn_attention_factor_published_number(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A factor of 4 gives 1.1386, a factor of 32 gives 1.3466."""
    close(student.yarn_attention_factor(4.0), 1.138629436111989, ROUGH)
    close(student.yarn_attention_factor(32.0), 1.3465735902799727, ROUGH)


@behaviour("yarn_attention_factor", weight=2)
def check_yarn_attention_factor_nothing_stretched(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A factor of 1 or less stretches nothing and gives 1."""
    with good_input():
        agrees(student, reference, "yarn_attention_factor", drawn(rng, 3, 9), atol=ROUGH)
    for factor in (1.0, 1, 0.5, drawn(rng, 0.01, 0.9)):
        close(student.yarn_attention_factor(factor), 1.0, ROUGH)


@behaviour("yarn_attention_factor")
def check_yarn_attention_factor_any_factor(student: Answers, reference: Answers, rng: Any) -> None:
    """Whole and fractional factors work, just above 1 and in the thousands."""
    for factor in (2, 8, 40, 1.01, drawn(rng, 1.5, 60), drawn(rng, 500, 9000)):
        expected = 0.1 * math.log(factor) + 1
        close(student.yarn_attention_factor(factor), expected, ROUGH)


@behaviour("yarn_attention_factor")
def check_yarn_attention_factor_exact(student: Answers, reference: Answers, rng: Any) -> None:
    """The number is exact to float64."""
    for factor in (drawn(rng, 1.5, 60), drawn(rng, 1.0001, 1.01), 16):
        expected = reference.yarn_attention_factor(factor)
        close(student.yarn_attention_factor(factor), expected, EXACT)


@behaviour("yarn_attention_factor", hidden=True)
def check_yarn_attention_factor_other_factors(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Factors in a row, above and below 1, do not disturb each other."""
    for factor in (3, 0.9, drawn(rng, 60, 500), 1, 1e-3, 1e5, 0.9, 3):
        agrees(student, reference, "yarn_attention_factor", factor, atol=ROUGH)


# ------------------------------------------------------------------------- llama3_frequencies


@behaviour("llama3_frequencies", weight=2)
def check_llama3_frequencies_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Llama 3.1's own numbers (dim 128, base 500000, factor 8, 8192 tokens) give its ladder."""
    published(student.llama3_frequencies(128, 500_000.0, 8.0, 8192), 64, LLAMA3_8)


@behaviour("llama3_frequencies")
def check_llama3_frequencies_bands(student: Answers, reference: Answers, rng: Any) -> None:
    """Short wavelengths keep their frequency, long ones are divided, and none lies outside."""
    base, factor, original = drawn(rng, 5e3, 9e3), drawn(rng, 3, 20), tokens(rng, 900, 1800)
    before = plain(64, base)
    result = student.llama3_frequencies(64, base, factor, original)
    ladder = shaped(result, (32,), what="the frequencies")
    short, long = 2 * np.pi / before < original / 4, 2 * np.pi / before > original
    same_ladder(ladder[short], before[short], what="the frequencies of short wavelengths")
    same_ladder(ladder[long], before[long] / factor, what="the frequencies of long wavelengths")
    limited = np.clip(ladder, before / factor, before)
    same_ladder(ladder, limited, what="the frequencies, held between divided and kept,")


@behaviour("llama3_frequencies", weight=2)
def check_llama3_frequencies_other_arguments(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """dim, base, factor and trained length all count."""
    for dim in (48, 96, 160):
        base, factor, original = drawn(rng, 3e3, 9e3), drawn(rng, 2.5, 9), tokens(rng, 900, 3000)
        ladders_agree(student, reference, "llama3_frequencies", dim, base, factor, original)


@behaviour("llama3_frequencies")
def check_llama3_frequencies_other_limits(student: Answers, reference: Answers, rng: Any) -> None:
    """Both limits may be others than 1 and 4."""
    base, original = drawn(rng, 3e3, 9e3), tokens(rng, 900, 3000)
    for low, high in ((2.0, 16.0), (1.0, 32), (0.5, 4.0), (drawn(rng, 1.5, 3), drawn(rng, 6, 20))):
        inputs = (80, base, 5.0, original, low, high)
        ladders_agree(student, reference, "llama3_frequencies", *inputs)


@behaviour("llama3_frequencies")
def check_llama3_frequencies_equal_limits(student: Answers, reference: Answers, rng: Any) -> None:
    """Equal limits are a step: pairs of more turns are kept, pairs of fewer are divided."""
    for limit in (1.0, 2.5):
        step = (40, drawn(rng, 3e3, 9e3), 5.0, 2048, limit, limit)
        ladders_agree(student, reference, "llama3_frequencies", *step)


@behaviour("llama3_frequencies")
def check_llama3_frequencies_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it."""
    with good_input():
        ladders_agree(student, reference, "llama3_frequencies", 16, 900.0, 3.0, 300)
    bad_dims(lambda dim: student.llama3_frequencies(dim, 900.0, 3.0, 300))


@behaviour("llama3_frequencies")
def check_llama3_frequencies_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Ladders are float64 and exact."""
    for dim, base, original in ((128, 500_000.0, 8192), (64, 10_000, 2048)):
        inputs = (dim, base, drawn(rng, 20, 40), original)
        ladders_agree(student, reference, "llama3_frequencies", *inputs, exact=True)


@behaviour("llama3_frequencies")
def check_llama3_frequencies_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad base is a ValueError; a bad factor or length raises."""
    answer = student.llama3_frequencies
    with good_input():
        ladders_agree(student, reference, "llama3_frequencies", 8, 900.0, 2.0, 300)
    bad_bases(lambda base: answer(8, base, 2.0, 300))
    bad_factors(lambda factor: answer(8, 900.0, factor, 300))
    bad_lengths(lambda original: answer(8, 900.0, 2.0, original), "trained length")


@behaviour("llama3_frequencies", hidden=True)
def check_llama3_frequencies_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One pair, ladders of one band, whole numbers and factor 1 work."""
    for dim, original in ((2, 10), (2, 60), (6, 8192), (30, 4), (256, 700), (18, 10_000_000)):
        for factor in (8, 1.0):
            inputs = (dim, 10_000, factor, original)
            ladders_agree(student, reference, "llama3_frequencies", *inputs)


# ----------------------------------------------------------------------- longrope_frequencies


def factor_sets(rng: np.random.Generator, pairs: int) -> tuple[Any, Any]:
    """A short and a long set of factors, all different, the long ones larger but for the first."""
    short, long = rng.uniform(1.3, 1.9, pairs), rng.uniform(4, 30, pairs)
    long[0] = rng.uniform(1.05, 1.2)
    return short, long


@behaviour("longrope_frequencies", weight=2)
def check_longrope_frequencies_worked_example(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Each pair is divided by a factor of its own, from the short set or the long one."""
    short, long = np.array([1.25, 2.0, 5.0]), np.array([2.0, 16.0, 40.0])
    base = 1000.0  # dim 6: frequencies 1, 0.1, 0.01
    same_ladder(student.longrope_frequencies(6, base, short, long, 100, 60), [0.8, 0.05, 0.002])
    result = student.longrope_frequencies(6, base, short, long, 300, 350)
    same_ladder(result, [0.5, 0.00625, 0.00025])


@behaviour("longrope_frequencies", weight=2)
def check_longrope_frequencies_boundary(student: Answers, reference: Answers, rng: Any) -> None:
    """A text of exactly the trained length still has the short set; one token more, the long."""
    for more in (-1, 0, 1):
        short, long = factor_sets(rng, 4)
        base, original = drawn(rng, 200, 900), tokens(rng, 300, 900)
        inputs = (8, base, short, long, original, original + more)
        expected = plain(8, base) / (long if more == 1 else short)
        same_ladder(student.longrope_frequencies(*inputs), expected)


@behaviour("longrope_frequencies")
def check_longrope_frequencies_other_arguments(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Any dim, base and lengths work, also one call after the other."""
    for dim in (10, 2, 64):
        base, original = drawn(rng, 200, 900), tokens(rng, 300, 900)
        for length in (9 * original, original // 2, 2 * original, original):
            inputs = (dim, base, *factor_sets(rng, dim // 2), original, length)
            ladders_agree(student, reference, "longrope_frequencies", *inputs)


@behaviour("longrope_frequencies", weight=2)
def check_longrope_frequencies_refuses_sets(student: Answers, reference: Answers, rng: Any) -> None:
    """A set that has not exactly dim/2 factors is a ValueError, even if it is not in use."""
    short, long = factor_sets(rng, 4)
    answer = student.longrope_frequencies
    with good_input():
        ladders_agree(student, reference, "longrope_frequencies", 8, 90.0, short, long, 50, 70)
    because = "a set that has not dim/2 factors"
    for length in (30, 70):
        for shape in ((1, 4), (2, 2)):
            for sets in ((short.reshape(shape), long), (short, long.reshape(shape))):
                inputs = (8, 90.0, *sets, 50, length)
                refuses(answer, *inputs, because="a set with two axes")
        for wrong in (short[:3], short[:1], rng.uniform(1, 2, 8), rng.uniform(1, 2, 5), short[:0]):
            for sets in ((wrong, long), (short, wrong)):
                inputs = (8, 90.0, *sets, 50, length)
                refuses(answer, *inputs, error="ValueError", because=because)


@behaviour("longrope_frequencies")
def check_longrope_frequencies_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Ladders are float64 and exact, whether the factors are a list, whole numbers or float32."""
    for kind in ("float64", "float32", "int64"):
        short, long = (4 * f for f in factor_sets(rng, 32))
        if kind == "int64":
            short, long = np.ceil(short), np.ceil(long)
        short, long = short.astype(kind), long.astype(kind)
        for length in (100_000, 4096):
            for sets in ((short, long), (short.tolist(), long.tolist())):
                inputs = (64, 10_000, *sets, 4096, length)
                ladders_agree(student, reference, "longrope_frequencies", *inputs, exact=True)


@behaviour("longrope_frequencies")
def check_longrope_frequencies_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """Both sets of factors are still what they were."""
    short, long = factor_sets(rng, 5)
    for length in (90, 40):
        inputs = (10, 60.0, short, long, 50, length)
        expected = reference.longrope_frequencies(*inputs)
        result, after = student.longrope_frequencies.with_inputs(*inputs)
        unchanged(after[2], short, what="short_factors")
        unchanged(after[3], long, what="long_factors")
        with good_input():
            same_ladder(result, expected)


@behaviour("longrope_frequencies")
def check_longrope_frequencies_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad dim or base is a ValueError; factors that are not positive and bad lengths raise."""
    short, long = factor_sets(rng, 3)
    answer = student.longrope_frequencies
    with good_input():
        ladders_agree(student, reference, "longrope_frequencies", 6, 90.0, short, long, 50, 70)
    for bad in (0.0, -2.0):
        spoilt_short, spoilt_long = short.copy(), long.copy()
        spoilt_short[1], spoilt_long[2] = bad, bad
        because = "a factor that is not positive"
        refuses(answer, 6, 90.0, spoilt_short, long, 50, 30, because=because)
        refuses(answer, 6, 90.0, short, spoilt_long, 50, 70, because=because)
    bad_bases(lambda base: answer(6, base, short, long, 50, 70))

    def answer_for(dim: int) -> Any:
        factors = np.full(max(dim // 2, 0), 2.0)
        return answer(dim, 90.0, factors, factors, 50, 70)

    bad_dims(answer_for)
    bad_lengths(lambda original: answer(6, 90.0, short, long, original, 70), "trained length")
    refuses(answer, 6, 90.0, short, long, 50, -3, because="a negative number of tokens")


@behaviour("longrope_frequencies", hidden=True)
def check_longrope_frequencies_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One pair and 128 work, whole bases, factors below 1, and a text of no tokens."""
    for dim, length in ((2, 0), (256, 5000), (22, 0), (2, 5000)):
        sets = (rng.uniform(0.5, 1.5, dim // 2), rng.uniform(2, 9, dim // 2))
        inputs = (dim, 10_000, *sets, 4096, length)
        ladders_agree(student, reference, "longrope_frequencies", *inputs)


# ---------------------------------------------------------------------------- fixed_yarn_ramp


def blends(student: Answers) -> Any:
    return instance(student.fixed_yarn_ramp(), what="the result of fixed_yarn_ramp()")


def ramps_agree(
    student: Answers, reference: Answers, *requests: tuple[Any, ...], exact: bool = False
) -> Any:
    """One `blend` of the student's answers all requests, in this order; returns it."""
    right = reference.fixed_yarn_ramp()
    wanted = [right(*request) for request in requests]
    blend = blends(student)
    for request, want in zip(requests, wanted, strict=True):
        same_ladder(blend(*request), want, exact=exact)
    return blend


def falling(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """A ladder of frequencies that is nobody's default: each a little below the one before."""
    return np.cumprod(rng.uniform(0.6, 0.95, pairs))


@behaviour("fixed_yarn_ramp", weight=2)
def check_fixed_yarn_ramp_worked_example(student: Answers, reference: Answers, rng: Any) -> None:
    """Factor 4, ramp from pair 1 to 3: pairs 0 and 1 kept, 3 and 4 divided, 2 half of each."""
    ladder = np.array([1.0, 0.5, 0.4, 0.2, 0.08])
    same_ladder(blends(student)(ladder, 4.0, 1, 3), [1.0, 0.5, 0.25, 0.05, 0.02])


@behaviour("fixed_yarn_ramp", weight=2)
def check_fixed_yarn_ramp_long_ramp(student: Answers, reference: Answers, rng: Any) -> None:
    """On a longer ramp each pair is one equal step nearer to the divided frequency."""
    for low in (2, 5):
        high, factor = low + tokens(rng, 5, 9), drawn(rng, 2, 9)
        ramps_agree(student, reference, (falling(rng, 17), factor, low, high))


@behaviour("fixed_yarn_ramp")
def check_fixed_yarn_ramp_equal_ends(student: Answers, reference: Answers, rng: Any) -> None:
    """Equal ends make a step after that pair, without a division by zero."""
    for end in (4, 0, 6):
        ramps_agree(student, reference, (falling(rng, 9), drawn(rng, 2, 9), end, end))


@behaviour("fixed_yarn_ramp")
def check_fixed_yarn_ramp_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """float32 frequencies stay float32; whole numbers give float64 with their fractions kept."""
    factor = drawn(rng, 2, 9)
    for given in ("float32", "float16", "int64", "float64"):
        wanted = "float64" if given == "int64" else given
        ladder = (100 * falling(rng, 9)).astype(given)
        right = reference.fixed_yarn_ramp()
        expected = right(ladder, factor, 2, 6)
        result = blends(student)(ladder, factor, 2, 6)
        close(result, expected, tolerance(wanted, scale=100.0, angle_dtype="float32"))
        same_dtype(result, wanted)


@behaviour("fixed_yarn_ramp")
def check_fixed_yarn_ramp_fractional_ends(student: Answers, reference: Answers, rng: Any) -> None:
    """The ends may lie between pairs, equal ones too, or beyond the last one."""
    for low, high in ((1.5, 6.25), (0.3, 0.7), (drawn(rng, 0, 3), drawn(rng, 4, 8)), (3, 15)):
        ramps_agree(student, reference, (falling(rng, 8), drawn(rng, 2, 9), low, high))
    ramps_agree(student, reference, (falling(rng, 8), drawn(rng, 2, 9), 20, 30))
    ramps_agree(student, reference, (falling(rng, 8), drawn(rng, 2, 9), 2.5, 2.5))


@behaviour("fixed_yarn_ramp")
def check_fixed_yarn_ramp_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The frequencies that went in are still what they were."""
    ladder = falling(rng, 8)
    right = reference.fixed_yarn_ramp()
    expected = right(ladder, 3.0, 2, 5)
    result, after = blends(student).with_inputs(ladder, 3.0, 2, 5)
    unchanged(after[0], ladder, what="frequencies")
    with good_input():
        same_ladder(result, expected)


@behaviour("fixed_yarn_ramp")
def check_fixed_yarn_ramp_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A factor that is not positive, or a low end above the high one, is a ValueError."""
    ladder = falling(rng, 8)
    with good_input():
        blend = ramps_agree(student, reference, (ladder, 3.0, 2, 5))
    for factor in (0.0, -3.0):
        because = "a factor that is not positive"
        refuses(blend, ladder, factor, 2, 5, error="ValueError", because=because)
    for low, high in ((5, 2), (3.5, 3.25), (1, 0)):
        because = "a low end above the high one"
        refuses(blend, ladder, 3.0, low, high, error="ValueError", because=because)


@behaviour("fixed_yarn_ramp", hidden=True)
def check_fixed_yarn_ramp_exact(student: Answers, reference: Answers, rng: Any) -> None:
    """float64 stays exact, a single pair works, and no call remembers another."""
    calls = [(falling(rng, n), drawn(rng, 2, 9), 1, 4) for n in (6, 6, 9, 1)]
    calls += [(calls[0][0], calls[0][1], 2, 3), (calls[0][0], 1.0, 1, 4), calls[0]]
    ramps_agree(student, reference, *calls, exact=True)


# ---------------------------------------------------------------------- ScaledRotaryEmbedding

KINDS = ("linear", "ntk", "yarn", "llama3")


def tensor(array: Any, dtype: str | None = None) -> torch.Tensor:
    import torch

    plain = torch.as_tensor(array if isinstance(array, torch.Tensor) else np.array(array))
    return plain if dtype is None else plain.to(getattr(torch, dtype))


def heads(rng: Any, *shape: int, dtype: str = "float32") -> torch.Tensor:
    """Random queries or keys (batch, heads, seq, head_dim)."""
    return tensor(rng.standard_normal(shape), dtype)


def module(answers: Answers, *args: Any, **kwargs: Any) -> Any:
    made = answers.ScaledRotaryEmbedding(*args, **kwargs)
    return instance(made, what="ScaledRotaryEmbedding(…)")


def rotated(result: Any, expected: Any, largest: float, dtype: str = "float32") -> None:
    """Both results have the expected values, up to angles in float32, and this dtype."""
    for name, mine, right in zip(
        ("queries", "keys"), pair(result, what="the result of forward"), pair(expected), strict=True
    ):
        allowed = tolerance(dtype, angle=largest, scale=6.0, angle_dtype="float32")
        close(mine, right, allowed, what=f"the rotated {name}")
        same_dtype(mine, dtype, what=f"the rotated {name}")


def far_out(answers: Answers, kind: tuple[Any, ...]) -> Any:
    """Queries and keys of ones, so far out that slow pairs have turned visibly too."""
    x = tensor([[[[1.0] * kind[0]] * 2]], "float32")
    return module(answers, *kind)(x, x, tensor([3000, 9000]))


def turns_at_once(made: Any, dim: int) -> tuple[Any, Any]:
    """(frequency, length) of every pair, seen from pairs (1, 0) that stand at position 1."""
    half = dim // 2
    x = tensor([[[[1.0] * half + [0.0] * half]]], "float32")
    points = []
    for name, y in zip(("queries", "keys"), pair(made(x, x, tensor([1]))), strict=True):
        first, second = shaped(y, (1, 1, 1, dim), what=f"the rotated {name}").reshape(2, half)
        points.append(first + 1j * second)
        length = np.abs(points[-1])
        close(length, np.full(half, length[0]), 1e-5, what=f"the lengths of the {name}' pairs")
    both = np.stack(points)
    return np.angle(both), np.abs(both)[:, 0]


def turned_as_published(made: Any, dim: int, known: dict[int, float], length: float = 1.0) -> None:
    """Queries and keys turn by published frequencies, and every pair becomes `length` long."""
    frequencies, lengths = turns_at_once(made, dim)
    close(lengths, [length, length], 1e-5, what="the length of rotated unit pairs, (q, k),")
    for mine in frequencies:
        published(mine, dim // 2, known)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_unscaled(student: Answers, reference: Answers, rng: Any) -> None:
    """With its defaults (factor 1) the module is RoPE in the half layout, for q and for k."""
    x = tensor([[[[*Q], [*K]]]], "float32")
    expected = tensor([[[Q_AT_5, K_AT_3]]], "float32")
    rotated(module(student, 4)(x, x, tensor([5, 3])), (expected, expected), 5)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_linear(student: Answers, reference: Answers, rng: Any) -> None:
    """linear by 4: position 3 turns as 0.75 does, position 8000 as 2000 does."""
    x = tensor([[[[*Q], [*Q]]]], "float32")
    rope = module(student, 4, scaling="linear", factor=4.0)
    result = pair(rope(x, x, tensor([3, 8000])), what="the result of forward")
    for name, mine in zip(("queries", "keys"), result, strict=True):
        got = shaped(mine, (1, 1, 2, 4), what=f"the rotated {name}")[0, 0]
        close(got[0], Q_AT_3_BY_4, 1e-5, what=f"the rotated {name} at position 3")
        close(got[1], Q_AT_8000_BY_4, 5e-3, what=f"the rotated {name} at position 8000")


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_ntk(student: Answers, reference: Answers, rng: Any) -> None:
    """ntk by 4 turns the pairs of dim 64 as libraries do: the fastest kept, the slowest by 4."""
    turned_as_published(module(student, 64, 10_000.0, "ntk", 4.0), 64, NTK_4)


@behaviour("ScaledRotaryEmbedding", weight=2)
def check_scaled_rotary_embedding_yarn(student: Answers, reference: Answers, rng: Any) -> None:
    """yarn, the default, by 4: published frequencies, and q and k 1.1386 times longer."""
    kind = (64, 10_000.0, "yarn", 4.0, 4096)
    expected, asked = far_out(reference, kind), far_out(student, kind)
    for rope in (module(student, 64, 10_000.0, "yarn", 4.0, 2048), module(student, 64, factor=4.0)):
        turned_as_published(rope, 64, YARN_4, 1.138629436)
    rotated(asked, expected, 9000)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_llama3(student: Answers, reference: Answers, rng: Any) -> None:
    """llama3 with the numbers of Llama 3.1 turns the pairs as Llama 3.1 does, and keeps lengths."""
    kind = (128, 500_000.0, "llama3", 8.0, 8192)
    expected, asked = far_out(reference, kind), far_out(student, kind)
    rope = module(student, 128, 500_000.0, scaling="llama3", factor=8.0, original_length=8192)
    turned_as_published(rope, 128, LLAMA3_8)
    rotated(asked, expected, 9000)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_rows_and_heads(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Heads turn alike, keys may have fewer, and each row of the batch may have its positions."""
    q, k = heads(rng, 2, 6, 5, 8), heads(rng, 2, 3, 5, 8)
    for scaling in KINDS:
        rows = tensor(scattered(rng, 2, 5))
        for queries, keys, where in ((q, k, rows[1]), (q[:, :2], k[:, :2], rows), (q, k, rows)):
            expected = module(reference, 8, 300.0, scaling, 3.0, 200)(queries, keys, where)
            result = module(student, 8, 300.0, scaling, 3.0, 200)(queries, keys, where)
            rotated(result, expected, 300)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions, negative or zero."""
    q, k = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8)
    for scaling in KINDS:
        kind = (8, 300.0, scaling, 3.0, 200)
        for places in ([2, -7, 0, 31, -1], [2.5, -7.75, 0.125, 31.0, -0.5]):
            expected = module(reference, *kind)(q, k, tensor(places))
            rotated(module(student, *kind)(q, k, tensor(places)), expected, 31)


@behaviour("ScaledRotaryEmbedding", weight=2)
def check_scaled_rotary_embedding_no_memory(student: Answers, reference: Answers, rng: Any) -> None:
    """A token turns by its own position alone: not by the length of this text or an earlier one."""
    for scaling in KINDS:
        kind = (8, 250.0, scaling, 2.0, 64)
        right, mine = module(reference, *kind), module(student, *kind)
        calls = []
        for length, offset in ((4, 3), (9, 4000), (4, 31), (4, 3), (1, 77), (150, 50)):
            q, k = heads(rng, 2, 4, length, 8), heads(rng, 2, 1, length, 8)
            calls.append((q, k, tensor(np.arange(length) + offset)))
        q, k = heads(rng, 2, 4, 4, 8), heads(rng, 2, 4, 4, 8)
        calls.append((q, k, tensor(scattered(rng, 2, 4))))
        for middle in ((40, 9), (17, 32)):  # the same first, last and largest one, the same sum
            calls.append((q, k, tensor([3, *middle, 60])))
        expected = [right(*inputs) for inputs in calls]
        with good_input():
            rotated(mine(*calls[0]), expected[0], float(calls[0][2].max()))
        for inputs, wanted in zip(calls, expected, strict=True):
            rotated(mine(*inputs), wanted, float(inputs[2].max()))


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_cast_module(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Casting the module to bfloat16 does not make its angles coarse."""
    for scaling, largest in zip(KINDS, (9000, 3000, 30, 3000), strict=True):
        kind = (16, 5000.0, scaling, 1.5, 512)
        q, k = heads(rng, 2, 4, 5, 16), heads(rng, 2, 2, 5, 16)
        positions = tensor(rng.integers(largest // 3, largest, 5))
        expected = module(reference, *kind)(q, k, positions)
        with good_input():
            rotated(module(student, *kind)(q, k, positions), expected, largest)
        rope = module(student, *kind)
        rope.cast("bfloat16")
        rotated(rope(q, k, positions), expected, largest)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_refuses_scaling(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A scaling that does not exist is a ValueError as soon as the module is made."""
    inputs = (heads(rng, 1, 2, 5, 6), heads(rng, 1, 2, 5, 6), tensor(scattered(rng, 5)))
    kind = (6, 90.0, "llama3", 2.0, 50)
    expected = module(reference, *kind)(*inputs)
    with good_input():
        rotated(module(student, *kind)(*inputs), expected, 150)
    for scaling in ("cubic", "llama2", "", "Linear"):
        made, because = student.ScaledRotaryEmbedding, "a scaling that does not exist"
        refuses(made, 6, 90.0, scaling, error="ValueError", because=because)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_low_precision(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Low-precision queries keep their dtype, and their angles are exact nevertheless."""
    for scaling, dtype in zip(KINDS, ("bfloat16", "float16", "bfloat16", "float16"), strict=True):
        kind = (16, 5000.0, scaling, 1.5, 512)
        q, k = heads(rng, 2, 4, 5, 16, dtype=dtype), heads(rng, 2, 2, 5, 16, dtype=dtype)
        positions = tensor(rng.integers(1000, 3000, 5))
        wide_q, wide_k = tensor(q, "float32"), tensor(k, "float32")
        wide = module(reference, *kind)(wide_q, wide_k, positions)
        expected = module(reference, *kind)(q, k, positions)
        with good_input():
            rotated(module(student, *kind)(wide_q, wide_k, positions), wide, 3000)
        rotated(module(student, *kind)(q, k, positions), expected, 3000, dtype)


@behaviour("ScaledRotaryEmbedding", weight=2)
def check_scaled_rotary_embedding_autocast(student: Answers, reference: Answers, rng: Any) -> None:
    """Under autocast angles are exact and results keep the dtype of q and k."""
    for scaling, dtype, largest in zip(
        KINDS, ("float32", "bfloat16", "float32", "float32"), (3000, 3000, 30, 3000), strict=True
    ):
        kind = (16, 5000.0, scaling, 1.5, 512)
        q, k = heads(rng, 2, 4, 5, 16, dtype=dtype), heads(rng, 2, 2, 5, 16, dtype=dtype)
        positions = tensor(rng.integers(largest // 3, largest, (2, 5)))
        for where in (positions, positions[1]):
            expected = module(reference, *kind)(q, k, where)
            with good_input():
                rotated(module(student, *kind)(q, k, where), expected, largest, dtype)
            rope = module(student, *kind)
            with student.autocast("bfloat16"):
                result = rope(q, k, where)
            rotated(result, expected, largest, dtype)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """q, k and the positions are still what they were: other code may hold them."""
    q, k = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8)
    for scaling in KINDS:
        kind = (8, 300.0, scaling, 3.0, 200)
        inputs = (q, k, tensor(rng.uniform(2, 90, 5), "float32"))
        expected = module(reference, *kind)(*inputs)
        result, after = module(student, *kind).with_inputs(*inputs)
        for name, now, before in zip(("q", "k", "positions"), after, inputs, strict=True):
            unchanged(now, before, what=name)
        with good_input():
            rotated(result, expected, 90)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_gradients(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients reach q and k, so that the projections before them can be trained."""
    inputs = (heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8), tensor(scattered(rng, 5)))
    weights = (heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8))
    allowed = tolerance("float32", angle=90, scale=8.0, angle_dtype="float32")
    for scaling in KINDS:
        kind = (8, 300.0, scaling, 3.0, 200)
        mine, right = module(student, *kind), module(reference, *kind)
        trains(mine, right, *inputs, names=("q", "k"), weights=weights, atol=allowed)


@behaviour("ScaledRotaryEmbedding")
def check_scaled_rotary_embedding_refuses_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A bad head_dim, or base, is a ValueError; a bad factor or trained length raises."""
    inputs = (heads(rng, 1, 2, 5, 6), heads(rng, 1, 2, 5, 6), tensor(scattered(rng, 5)))
    expected = [module(reference, 6, 90.0, scaling, 2.0, 50)(*inputs) for scaling in KINDS]

    def use(head_dim: int, base: float, scaling: str, factor: float, original: int) -> Any:
        return module(student, head_dim, base, scaling, factor, original)(*inputs)

    for scaling, wanted in zip(KINDS, expected, strict=True):
        with good_input():
            rotated(use(6, 90.0, scaling, 2.0, 50), wanted, 150)
        made = partial(student.ScaledRotaryEmbedding, base=90.0, scaling=scaling, factor=2.0)
        bad_dims(made)  # at once, before anything is rotated
        bad_bases(partial(use, 6, scaling=scaling, factor=2.0, original=50))
        bad_factors(partial(use, 6, 90.0, scaling, original=50))
        if scaling in ("yarn", "llama3"):
            bad_lengths(partial(use, 6, 90.0, scaling, 2.0), "trained length")
    pairs = [heads(rng, 1, 2, 5, 2) for _ in range(2)]

    def use_single_pair() -> Any:
        return module(student, 2, 90.0, "ntk", 2.0)(*pairs, inputs[2])

    refuses(use_single_pair, error="ValueError", because="ntk with a head_dim of 2")


@behaviour("ScaledRotaryEmbedding", weight=2)
def check_scaled_rotary_embedding_refuses_shapes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Shapes that do not match raise, also where torch would broadcast them."""
    q, k, positions = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8), tensor(scattered(rng, 5))
    for scaling in KINDS:
        kind = (300.0, scaling, 3.0, 200)
        expected = module(reference, 8, *kind)(q, k, positions)
        rope = module(student, 8, *kind)
        with good_input():
            rotated(rope(q, k, positions), expected, 150)
        because = "positions are neither (seq,) nor (batch, seq)"
        for shape in ((), (1,), (4,), (2,), (1, 5), (2, 1), (1, 1), (4, 5), (2, 4, 5), (2, 1, 5)):
            refuses(rope, q, k, tensor(rng.uniform(2, 9, shape)), because=because)
        because = "several positions for a single token"
        refuses(rope, q[:, :, :1], k[:, :, :1], positions, because=because)
        rows = tensor(scattered(rng, 2, 5))
        refuses(rope, q[:1], k[:1], rows, because="positions of other rows")
        refuses(rope, q, k[:, :, :1], positions, because="fewer keys than queries")
        refuses(rope, q[:, :, :1], k, positions, because="fewer queries than keys")
        for where in (positions, rows):
            refuses(rope, q, k[:1], where, because="keys for one row of two")
            refuses(rope, q[:1], k, where, because="queries for one row of two")
        for width in (2, 6):
            refuses(rope, q, k[..., :width], positions, because="keys narrower than head_dim")
            refuses(rope, q[..., :width], k, positions, because="queries narrower than head_dim")
        if scaling != "ntk":
            narrow = module(student, 2, *kind)
            refuses(narrow, q, k, positions, because="vectors wider than head_dim")
            refuses(narrow, q[..., :2], k, positions, because="keys wider than head_dim")


@behaviour("ScaledRotaryEmbedding", hidden=True)
def check_scaled_rotary_embedding_other_arguments(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """base, factor and original_length all count, for each scaling that uses them."""
    q, k = heads(rng, 2, 4, 5, 32), heads(rng, 2, 2, 5, 32)
    for scaling in KINDS:
        for base, factor, original in (
            (drawn(rng, 3e3, 9e3), drawn(rng, 2, 7), tokens(rng, 300, 700)),
            (10_000, 8, 256),
            (drawn(rng, 3e3, 9e3), drawn(rng, 2, 7), 2048),
            (drawn(rng, 3e2, 5e2), drawn(rng, 2, 7), 8192),  # YaRN's ramp stops beyond the pairs
            (drawn(rng, 3e3, 9e3), 0.5, 700),
        ):
            if factor < 1 and scaling != "yarn":
                continue
            kind, positions = (32, base, scaling, factor, original), tensor(scattered(rng, 5))
            expected = module(reference, *kind)(q, k, positions)
            rotated(module(student, *kind)(q, k, positions), expected, 150)


@behaviour("ScaledRotaryEmbedding", hidden=True)
def check_scaled_rotary_embedding_cast_parent(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Casting a parent module, in either half precision, does not make the angles coarse."""
    for dtype, scaling in zip(("bfloat16", "float16") * 2, KINDS, strict=True):
        kind = (16, 5000.0, scaling, 1.5, 512)
        right = module(reference, *kind)
        for given, largest in (("float32", 3000), ("float32", 30), (dtype, 3000)):
            rope = module(student, *kind)
            rope.cast(dtype, through_parent=True)
            q, k = heads(rng, 2, 4, 5, 16, dtype=given), heads(rng, 2, 2, 5, 16, dtype=given)
            positions = tensor(rng.integers(largest // 3, largest, (2, 5)))
            expected = right(q, k, positions)
            rotated(rope(q, k, positions), expected, largest, given)


@behaviour("ScaledRotaryEmbedding", hidden=True)
def check_scaled_rotary_embedding_several_modules(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Modules in use at once do not disturb each other, nor does a first call in bfloat16."""
    kinds = [(8, 200.0, scaling, 3.0, 64) for scaling in KINDS]
    kinds += [(8, 200.0, "yarn", 5.0, 64), (8, 30.0, "linear", 3.0, 64)]
    right, mine = ([module(who, *kind) for kind in kinds] for who in (reference, student))
    positions = tensor(rng.integers(2, 30, 5))
    for dtype in ("bfloat16", "float32"):
        q, k = heads(rng, 2, 4, 5, 8, dtype=dtype), heads(rng, 2, 2, 5, 8, dtype=dtype)
        for which in (0, 1, 2, 3, 4, 5, 2, 0):
            expected = right[which](q, k, positions)
            rotated(mine[which](q, k, positions), expected, 30, dtype)


@behaviour("ScaledRotaryEmbedding", hidden=True)
def check_scaled_rotary_embedding_other_sizes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Widths from 2 on, equal axes, float64, and fractional or negative positions work."""
    places = tensor([2.5, -7.0, 0.125, 31.0, -0.75])
    for scaling in KINDS:
        for shape, dtype in (
            ((2, 3, 5, 2), "float32"),
            ((1, 2, 5, 128), "float64"),
            ((5, 5, 5, 10), "float16"),
        ):
            if scaling == "ntk" and shape[-1] == 2:
                continue
            kind = (shape[-1], 900, scaling, 6, 100)
            q, k = heads(rng, *shape, dtype=dtype), heads(rng, *shape, dtype=dtype)
            expected = module(reference, *kind)(q, k, places)
            rotated(module(student, *kind)(q, k, places), expected, 31, dtype)
