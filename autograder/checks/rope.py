"""Checks of the chapter on rotary position embeddings.

Inputs are drawn so that habit cannot pass for understanding: axes of different lengths, positions
that are no range, bases that are no default. Where a number is published it is compared with that
number, so that a fault of the reference is found as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    agrees,
    close,
    equal,
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
    Exercise("rope", "rotate_2d", 1),
    Exercise("rope", "rope_angles", 1),
    Exercise("rope", "apply_rope", 4),
    Exercise("rope", "rope_scores", 2),
    Exercise("rope", "interleaved_to_half", 3),
    Exercise("rope", "apply_partial_rope", 2),
    Exercise("rope", "score_bound", 2),
    Exercise("rope", "fixed_table_cache", 2),
    Exercise("rope", "RotaryEmbedding", 4, "with_torch"),
    Exercise("rope", "fused_rotation", 0, "with_torch", bonus=3, kernel="triton"),
)

# One query and one key, and what seven public libraries make of them at positions 5 and 3.
Q, K = np.array([[1.0, 0.5, -0.5, 2.0]]), np.array([[0.5, 1.0, 1.5, -1.0]])
Q_AT_5 = {
    "interleaved": [[0.76312435, -0.81709319, -0.59933347, 1.97251093]],
    "half": [[-0.19579995, 0.39941680, -1.10075545, 2.02249002]],
}
K_AT_3 = {
    "interleaved": [[-0.63611627, -0.91943252, 1.52932047, -0.95455682]],
    "half": [[-0.70667624, 1.02954555, -1.41442871, -0.96955454]],
}
DOT_PRODUCT = -2.533620451494303  # of the two, interleaved, before any scaling
PUBLISHED = 1e-6  # those libraries compute in float32


def scattered(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integer positions that are no range: out of order, one of them twice, none near zero."""
    places = 3 + np.cumsum(rng.integers(2, 30, math.prod(shape)))[::-1]
    places[1] = places[0]
    places[[-2, -1]] = places[[-1, -2]]
    return places.reshape(shape)


def room(x: Any, angles: Any, dtype: str = "float64", *, exact: bool = False) -> float:
    """Tolerance for numbers the size of x's, turned by angles up to the largest of these.

    Angles must be exact to float64 only where a check is about that: elsewhere coarser tables cost
    no points a second time.
    """
    largest, angle = np.abs(x).max(initial=1.0), np.abs(angles).max(initial=0.0)
    held = "float64" if exact else "float32"
    return tolerance(dtype, angle=float(angle), scale=float(largest), angle_dtype=held)


def bad_dims(answer: Any, *before: Any) -> None:
    """`answer(*before, dim)` refuses widths that have no pairs, by name."""
    for dim in (13, -6, 0):
        inputs, named = (*before, dim), (str(dim),)
        because = "a width that is odd or not positive"
        refuses(answer, *inputs, error="ValueError", naming=named, because=because)


def bad_layouts(answer: Any, *before: Any) -> None:
    """`answer(*before, layout=…)` refuses what is no layout, and names the two there are."""
    for layout in ("halves", "neox", ""):
        named, because = ("interleaved", "half"), "a layout that does not exist"
        refuses(answer, *before, layout=layout, error="ValueError", naming=named, because=because)


# ---------------------------------------------------------------------------------- rotate_2d


@behaviour("rotate_2d", weight=2)
def check_rotate_2d_quarter_turn(student: Answers, reference: Answers, rng: Any) -> None:
    """A quarter turn is anticlockwise: (3, 1) becomes (−1, 3)."""
    quarter = student.rotate_2d(np.array([3.0, 1.0]), np.pi / 2)
    one = student.rotate_2d(np.array([1.0, 0.0]), 1.0)  # asked first: a quarter turn hides much
    close(quarter, [-1.0, 3.0], room(3.0, 2.0))
    close(one, [0.540302306, 0.841470985], 1e-9, what="(1, 0) turned by one radian")


@behaviour("rotate_2d", weight=2)
def check_rotate_2d_one_angle_per_vector(student: Answers, reference: Answers, rng: Any) -> None:
    """The two numbers of a vector lie on the last axis, and every vector may have its own angle."""
    vectors, angles = rng.standard_normal((5, 2)), rng.uniform(-3, 3, 5)
    agrees(student, reference, "rotate_2d", vectors, angles, atol=room(vectors, angles))


@behaviour("rotate_2d")
def check_rotate_2d_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer vectors give float64 results with their fractions kept."""
    vectors = np.array([[3, 1], [-2, 5], [4, -7]])
    agrees(student, reference, "rotate_2d", vectors, 0.7, atol=room(vectors, 1.0), dtype="float64")


@behaviour("rotate_2d")
def check_rotate_2d_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The vector that went in is still what it was."""
    vectors = rng.standard_normal((3, 2))
    inputs, allowed = (vectors, 0.6), room(vectors, 1.0)
    leaves_inputs(student, reference, "rotate_2d", *inputs, names=("vector",), atol=allowed)


@behaviour("rotate_2d")
def check_rotate_2d_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the vector's floating dtype, whatever the dtype of the angle."""
    angles = rng.uniform(-3, 3, 5)
    for dtype in ("float32", "float16"):
        vectors = rng.standard_normal((5, 2)).astype(dtype)
        inputs, allowed = (vectors, angles), room(vectors, angles, dtype)
        agrees(student, reference, "rotate_2d", *inputs, atol=allowed, dtype=dtype)


@behaviour("rotate_2d")
def check_rotate_2d_refuses_other_axes(student: Answers, reference: Answers, rng: Any) -> None:
    """A last axis that is not of length 2 is a ValueError."""
    good = rng.standard_normal((2, 2))
    with good_input():
        close(student.rotate_2d(good, 0.4), reference.rotate_2d(good, 0.4), room(good, 1.0))
    for shape in ((2, 3), (2, 1), (5,), (2, 5)):
        vectors, because = rng.standard_normal(shape), "the last axis is not of length 2"
        refuses(student.rotate_2d, vectors, 0.4, error="ValueError", because=because)


@behaviour("rotate_2d", hidden=True)
def check_rotate_2d_broadcasting(student: Answers, reference: Answers, rng: Any) -> None:
    """Angles broadcast against the vectors' leading axes, as NumPy arrays do."""
    shapes = (((3, 5, 2), (5,)), ((3, 1, 2), (3, 5)), ((2,), (3,)))
    for vector_shape, angle_shape in (*shapes, ((4, 4, 2), (4, 4)), ((4, 4, 2), (4,))):
        vectors, angles = rng.standard_normal(vector_shape), rng.uniform(-3, 3, angle_shape)
        agrees(student, reference, "rotate_2d", vectors, angles, atol=room(vectors, angles))


@behaviour("rotate_2d", hidden=True)
def check_rotate_2d_large_angles(student: Answers, reference: Answers, rng: Any) -> None:
    """A float32 vector does not cost a large float64 angle its precision."""
    vectors = rng.standard_normal((5, 2)).astype("float32")
    angles = rng.uniform(40_000, 90_000, 5)
    allowed = room(vectors, angles, "float32", exact=True)
    agrees(student, reference, "rotate_2d", vectors, angles, atol=allowed)


# -------------------------------------------------------------------------------- rope_angles


@behaviour("rope_angles", weight=2)
def check_rope_angles_powers_of_ten(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 8 and base 10000 the four pairs turn by 1, 0.1, 0.01 and 0.001 per position."""
    expected = [[3.0, 0.3, 0.03, 0.003], [5.0, 0.5, 0.05, 0.005]]
    close(student.rope_angles(np.array([3, 5]), 8), expected, room(1.0, 5.0))
    close(student.rope_angles(np.array([5, 8]), 4), [[5.0, 0.05], [8.0, 0.08]], room(1.0, 8.0))


@behaviour("rope_angles", weight=2)
def check_rope_angles_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """With base 500000 and dim 128 the slowest pair turns by 2.455e-06 per position."""
    angles = shaped(student.rope_angles(np.array([1, 9]), 128, 500_000.0), (2, 64))
    slowest = 2.455140791131609e-06
    close(angles[:, -1], [slowest, 9 * slowest], 1e-11, what="the slowest pair's angle")
    close(angles[:, 0], [1.0, 9.0], room(1.0, 9.0), what="the fastest pair's angle")


@behaviour("rope_angles", weight=2)
def check_rope_angles_any_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any shape get one more axis, with one angle for each pair."""
    positions = scattered(rng, 2, 5)
    agrees(student, reference, "rope_angles", positions, 6, 700.0, atol=room(1.0, positions))


@behaviour("rope_angles")
def check_rope_angles_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Angles are float64, and exact to float64 at large positions too."""
    for dtype in ("float64", "int64", "int32", "float32"):
        positions = rng.uniform(60_000, 130_000, 5).astype(dtype)
        allowed = room(1.0, positions, exact=True)
        agrees(student, reference, "rope_angles", positions, 64, atol=allowed, dtype="float64")


@behaviour("rope_angles")
def check_rope_angles_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it."""
    positions = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "rope_angles", positions, 8, atol=room(1.0, positions))
    bad_dims(student.rope_angles, positions)


@behaviour("rope_angles")
def check_rope_angles_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    positions = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "rope_angles", positions, 6, 50.0, atol=room(1.0, positions))
    for base in (0.0, -50.0):
        because = "a base that is not positive"
        refuses(student.rope_angles, positions, 6, base, error="ValueError", because=because)


@behaviour("rope_angles", hidden=True)
def check_rope_angles_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions, negative, or zero."""
    positions = np.array([7.25, -3.5, 0.0, 0.125, -11.0])
    agrees(student, reference, "rope_angles", positions, 10, 300.5, atol=room(1.0, positions))


@behaviour("rope_angles", hidden=True)
def check_rope_angles_single_position(student: Answers, reference: Answers, rng: Any) -> None:
    """A single position without an axis gives just the pairs, and three axes give four."""
    for positions in (np.array(37), scattered(rng, 3, 2, 5)):
        for dim in (2, 16):
            inputs, allowed = (positions, dim, 90), room(1.0, positions)  # base is an integer
            agrees(student, reference, "rope_angles", *inputs, atol=allowed)


@behaviour("rope_angles", hidden=True)
def check_rope_angles_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The positions that went in are still what they were."""
    positions = scattered(rng, 5, 1) + 0.5
    inputs, allowed = (positions, 2), room(1.0, positions)
    leaves_inputs(student, reference, "rope_angles", *inputs, names=("positions",), atol=allowed)


# --------------------------------------------------------------------------------- apply_rope


@behaviour("apply_rope", weight=2)
def check_apply_rope_published_numbers(student: Answers, reference: Answers, rng: Any) -> None:
    """q at position 5 and k at position 3 become the published vectors."""
    close(student.apply_rope(Q, np.array([5])), Q_AT_5["interleaved"], PUBLISHED)
    close(student.apply_rope(K, np.array([3])), K_AT_3["interleaved"], PUBLISHED)


@behaviour("apply_rope", weight=2)
def check_apply_rope_many_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Each token turns by its own position, in whatever order they come, and with any base."""
    x, positions = rng.standard_normal((5, 8)), scattered(rng, 5)
    for base in (500.0, 90.0):
        agrees(student, reference, "apply_rope", x, positions, base, atol=room(x, positions))


@behaviour("apply_rope")
def check_apply_rope_relative(student: Answers, reference: Answers, rng: Any) -> None:
    """The dot product of q and k depends on their distance alone, and no length changes."""
    queries, keys = (
        np.repeat([*published, *rng.uniform(-2, 2, (1, 4))], 3, axis=0) for published in (Q, K)
    )
    start = np.array([0, 700, -31] * 2)
    right_q = reference.apply_rope(queries, np.full(6, 5))
    right_k = reference.apply_rope(keys, np.full(6, 3))
    turned = shaped(student.apply_rope(queries, start + 5), (6, 4), what="the rotated queries")
    others = shaped(student.apply_rope(keys, start + 3), (6, 4), what="the rotated keys")
    allowed, expected = room(4 * 4.0, 705), (right_q * right_k).sum(axis=-1)
    expected[:3] = DOT_PRODUCT
    scores = (turned * others).sum(axis=-1)
    close(scores, expected, allowed, what="the dot product of q and k, two apart,")
    lengths, before = ((v * v).sum(axis=-1) for v in (turned, queries))
    close(lengths, before, allowed, what="the squared length of the rotated q")


@behaviour("apply_rope")
def check_apply_rope_leading_axes(student: Answers, reference: Answers, rng: Any) -> None:
    """Batch and heads share the positions of the sequence axis, which is the last but one."""
    x, positions = rng.standard_normal((2, 3, 5, 8)), scattered(rng, 5)
    agrees(student, reference, "apply_rope", x, positions, 300.0, atol=room(x, positions))


@behaviour("apply_rope")
def check_apply_rope_positions_per_vector(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of the shape x.shape[:-1] give every vector its own position."""
    for shape in ((2, 5), (2, 3, 5)):
        x, positions = rng.standard_normal((*shape, 6)), scattered(rng, *shape)
        agrees(student, reference, "apply_rope", x, positions, 300.0, atol=room(x, positions))


@behaviour("apply_rope", weight=2)
def check_apply_rope_half_layout(student: Answers, reference: Answers, rng: Any) -> None:
    """With layout="half", q at 5 and k at 3 become the other published vectors."""
    for x, position, published in ((Q, 5, Q_AT_5), (K, 3, K_AT_3)):
        result = student.apply_rope(x, np.array([position]), layout="half")
        close(result, published["half"], PUBLISHED)


@behaviour("apply_rope")
def check_apply_rope_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer input gives a float64 result with its fractions kept."""
    x, positions = rng.integers(-9, 9, (5, 8)), scattered(rng, 5)
    unsigned = (x + 9).astype("uint8"), positions.astype("uint32")
    for inputs in ((x, positions), unsigned):
        agrees(student, reference, "apply_rope", *inputs, atol=room(*inputs), dtype="float64")


@behaviour("apply_rope")
def check_apply_rope_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """x and the positions that went in are still what they were."""
    x, positions = rng.standard_normal((5, 8)), scattered(rng, 5) + 0.5
    for layout in ("interleaved", "half"):
        inputs, names = (x, positions, 90.0, layout), ("x", "positions")
        allowed = room(x, positions)
        leaves_inputs(student, reference, "apply_rope", *inputs, names=names, atol=allowed)


@behaviour("apply_rope")
def check_apply_rope_precise_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """At large positions the angles are still exact to float64."""
    x, positions = rng.standard_normal((5, 16)), rng.uniform(60_000, 130_000, 5)
    inputs, allowed = (x, positions, 20_000.5), room(x, positions, exact=True)
    agrees(student, reference, "apply_rope", *inputs, atol=allowed)


@behaviour("apply_rope")
def check_apply_rope_refuses_layout(student: Answers, reference: Answers, rng: Any) -> None:
    """A layout that does not exist is a ValueError that names the two that do."""
    x, positions = rng.standard_normal((5, 8)), scattered(rng, 5)
    with good_input():
        agrees(
            student, reference, "apply_rope", x, positions, 90.0, "half", atol=room(x, positions)
        )
    bad_layouts(student.apply_rope, x, positions)


@behaviour("apply_rope", weight=2)
def check_apply_rope_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has x's floating dtype, whatever the dtype of the positions."""
    for dtype in ("float32", "float16"):
        for layout in ("interleaved", "half"):
            x, positions = rng.standard_normal((3, 10)).astype(dtype), np.array([4.5, 11.0, 2.0])
            inputs, allowed = (x, positions, 300.0, layout), room(x, positions, dtype)
            agrees(student, reference, "apply_rope", *inputs, atol=allowed, dtype=dtype)


@behaviour("apply_rope", weight=2)
def check_apply_rope_refuses_positions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any other shape raise, also where NumPy would broadcast them."""
    x, positions = rng.standard_normal((2, 3, 5, 8)), scattered(rng, 5)
    with good_input():
        agrees(student, reference, "apply_rope", x, positions, atol=room(x, positions))
    because = "positions are neither (seq,) nor x.shape[:-1]"
    for shape in ((), (1,), (4,), (3, 5), (1, 5), (1, 3, 5), (2, 1, 5), (2, 3, 1), (5, 1)):
        refuses(student.apply_rope, x, rng.uniform(2, 99, shape), because=because)
    for x_shape, shape in (((1, 8), (5,)), ((2, 1, 8), (2, 5)), ((5, 8), (1, 5)), ((5, 8), ())):
        some = rng.standard_normal(x_shape)
        refuses(student.apply_rope, some, rng.uniform(2, 99, shape), because=because)


@behaviour("apply_rope")
def check_apply_rope_refuses_dim_and_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or 0 is a ValueError that names it; so is a base that is not positive."""
    x, positions = rng.standard_normal((3, 7)), scattered(rng, 3)
    for layout in ("interleaved", "half"):
        inputs, allowed = (x[:, :6], positions, 9.0, layout), room(x, positions)
        with good_input():
            agrees(student, reference, "apply_rope", *inputs, atol=allowed)
        for dim in (7, 0):
            inputs, named, because = (x[:, :dim], positions, 9.0, layout), (str(dim),), f"dim {dim}"
            refuses(student.apply_rope, *inputs, error="ValueError", naming=named, because=because)
        for base in (0.0, -9.0):
            inputs = (x[:, :6], positions, base, layout)
            because = "a base that is not positive"
            refuses(student.apply_rope, *inputs, error="ValueError", because=because)


@behaviour("apply_rope", hidden=True)
def check_apply_rope_precise_in_any_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """Neither the dtype of x, of the positions, nor the layout costs the angles their precision."""
    for dtype in ("float64", "float32", "float16"):
        for layout, held in (("interleaved", "int32"), ("half", "float32"), ("half", "int64")):
            x = rng.standard_normal((3, 32)).astype(dtype)
            positions = rng.integers(60_000, 130_000, 3).astype(held)
            inputs, allowed = (x, positions, 2e4, layout), room(x, positions, dtype, exact=True)
            agrees(student, reference, "apply_rope", *inputs, atol=allowed)


@behaviour("apply_rope", hidden=True)
def check_apply_rope_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions, negative, or zero."""
    x, positions = rng.standard_normal((2, 5, 6)), np.array([7.25, -3.5, 0.0, 0.125, -11.0])
    for layout in ("interleaved", "half"):
        inputs, allowed = (x, positions, 40.0, layout), room(x, positions)
        agrees(student, reference, "apply_rope", *inputs, atol=allowed)


@behaviour("apply_rope", weight=2, hidden=True)
def check_apply_rope_half_in_general(student: Answers, reference: Answers, rng: Any) -> None:
    """The half layout is right for other widths, bases, leading axes and positions too."""
    for shape in ((3, 6), (2, 3, 10), (2, 2, 4, 16)):
        x = rng.standard_normal(shape)
        for positions in (scattered(rng, shape[-2]), scattered(rng, *shape[:-1])):
            inputs, allowed = (x, positions, 170.0, "half"), room(x, positions)
            agrees(student, reference, "apply_rope", *inputs, atol=allowed)


@behaviour("apply_rope", hidden=True)
def check_apply_rope_other_widths(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair, a wide vector, one token, and axes of equal length all work."""
    for shape in ((5, 2), (3, 64), (2, 1, 6), (8, 8), (5, 5, 6), (4, 4, 4, 4), (3, 5, 5, 6)):
        x, positions = rng.standard_normal(shape), rng.uniform(2, 99, shape[-2])
        agrees(student, reference, "apply_rope", x, positions, 3000, atol=room(x, positions))


# -------------------------------------------------------------------------------- rope_scores


def score_room(
    q: Any, k: Any, places: Any, dtype: str = "float64", *, exact: bool = False
) -> float:
    """Tolerance for scores: a sum over dim of products of q's and k's numbers."""
    return room(2 * (np.abs(q) @ np.abs(k).T).max(), places, dtype, exact=exact)


@behaviour("rope_scores", weight=2)
def check_rope_scores_published_number(student: Answers, reference: Answers, rng: Any) -> None:
    """q at 5 and k at 3 have the published dot product −2.5336, divided by √4."""
    queries, keys = np.repeat(Q, 2, axis=0), np.repeat(K, 3, axis=0)
    scores = student.rope_scores(queries, keys, np.array([5, 5]), np.array([3, 3, 3]))
    close(scores, np.full((2, 3), DOT_PRODUCT / 2), score_room(Q, K, 5))


@behaviour("rope_scores", weight=2)
def check_rope_scores_matrix(student: Answers, reference: Answers, rng: Any) -> None:
    """Row m and column n hold the score of query m with key n."""
    q, k = rng.standard_normal((3, 8)), rng.standard_normal((5, 8))
    places = rng.permutation(scattered(rng, 8))
    inputs = (q, k, places[:3], places[3:], 500.0)
    agrees(student, reference, "rope_scores", *inputs, atol=score_room(q, k, places))


@behaviour("rope_scores")
def check_rope_scores_relative(student: Answers, reference: Answers, rng: Any) -> None:
    """Moving all queries and all keys by the same number of positions changes no score."""
    q, k = (np.concatenate([published, rng.standard_normal((2, 4))]) for published in (Q, K))
    places = np.array([5, 9, 2, 3, 14, 4])
    expected = reference.rope_scores(q, k, places[:3], places[3:])
    first = student.rope_scores(q, k, places[:3], places[3:])
    close(first, expected, score_room(q, k, 14))
    moved = student.rope_scores(q, k, places[:3] + 1234, places[3:] + 1234)
    close(moved, first, score_room(q, k, 1300), what="the scores, all 1234 positions further on,")


@behaviour("rope_scores")
def check_rope_scores_keep_float32(student: Answers, reference: Answers, rng: Any) -> None:
    """float32 queries and keys give float32 scores."""
    q, k = rng.standard_normal((3, 8)).astype("f4"), rng.standard_normal((5, 8)).astype("f4")
    places = scattered(rng, 8)
    inputs, allowed = (q, k, places[:3], places[3:]), score_room(q, k, places, "float32")
    agrees(student, reference, "rope_scores", *inputs, atol=allowed, dtype="float32")


@behaviour("rope_scores")
def check_rope_scores_refuse(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not match raise; an odd dim or a base that is not positive is a ValueError."""
    q, k = rng.standard_normal((3, 8)), rng.standard_normal((5, 8))
    places = scattered(rng, 8)
    p_q, p_k = places[:3], places[3:]
    with good_input():
        agrees(student, reference, "rope_scores", q, k, p_q, p_k, atol=score_room(q, k, places))
    scores = student.rope_scores
    for bad_q, bad_k in ((p_q[:1], p_k), (p_q, p_k[:1]), (p_q, p_k[:3]), (p_k, p_k), (p_q, places)):
        because = "the number of positions is not the number of vectors"
        refuses(scores, q, k, bad_q, bad_k, because=because)
    refuses(scores, q[:1], k, p_q, p_k, because="several positions for a single query")
    refuses(scores, q, k[:, :6], p_q, p_k, because="queries and keys of different widths")
    refuses(scores, q[:, :7], k[:, :7], p_q, p_k, error="ValueError", because="an odd dim")
    for base in (0.0, -20.0):
        because = "a base that is not positive"
        refuses(scores, q, k, p_q, p_k, base, error="ValueError", because=because)


@behaviour("rope_scores", hidden=True)
def check_rope_scores_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """Integers give float64 scores with their fractions kept; float16 stays float16."""
    places = scattered(rng, 8)
    for given, held, wanted in (
        ("int64", "int64", "float64"),
        ("float16", "int64", "float16"),
        ("uint8", "uint16", "float64"),
    ):
        low, where = (0 if given == "uint8" else -5), places.astype(held)
        q = rng.integers(low, 5, (3, 6)).astype(given)
        k = rng.integers(low, 5, (5, 6)).astype(given)
        inputs, allowed = (q, k, where[5:], where[:5]), score_room(q, k, places, wanted)
        agrees(student, reference, "rope_scores", *inputs, atol=allowed, dtype=wanted)


@behaviour("rope_scores", hidden=True)
def check_rope_scores_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One query against many keys works, equal numbers of both, and other widths."""
    for n_q, n_k, dim in ((1, 7, 2), (6, 1, 16), (4, 4, 4), (8, 8, 10)):
        q, k = rng.standard_normal((n_q, dim)), rng.standard_normal((n_k, dim))
        places = np.concatenate([rng.uniform(-50, 50, n_q), scattered(rng, max(n_k, 2))[:n_k]])
        inputs = (q, k, places[:n_q], places[n_q:], 77)
        agrees(student, reference, "rope_scores", *inputs, atol=score_room(q, k, places))


@behaviour("rope_scores", hidden=True)
def check_rope_scores_precise_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """At large positions the scores are still exact, in float64 and in float32."""
    for dtype in ("float64", "float32"):
        q, k = rng.standard_normal((3, 16)).astype(dtype), rng.standard_normal((5, 16))
        k, places = k.astype(dtype), rng.uniform(60_000, 130_000, 8)
        allowed = score_room(q, k, places, dtype, exact=True)
        agrees(student, reference, "rope_scores", q, k, places[:3], places[3:], atol=allowed)


@behaviour("rope_scores", hidden=True)
def check_rope_scores_leave_input(student: Answers, reference: Answers, rng: Any) -> None:
    """Queries, keys and positions are still what they were."""
    q, k = rng.standard_normal((3, 6)), rng.standard_normal((5, 6))
    inputs = (q, k, rng.uniform(2, 90, 3), rng.uniform(2, 90, 5))
    names, allowed = ("q", "k", "q_positions", "k_positions"), score_room(q, k, 90)
    leaves_inputs(student, reference, "rope_scores", *inputs, names=names, atol=allowed)


# ------------------------------------------------------------------------ interleaved_to_half


def scores_of(w_q: Any, w_k: Any, x: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Scores (token, token, head, key head): turns[t] is the rotation at token t as a matrix."""
    dim = turns.shape[-1]
    q = np.einsum("thc,tcd->thd", (x @ w_q.T).reshape(len(x), -1, dim), turns)
    k = np.einsum("thc,tcd->thd", (x @ w_k.T).reshape(len(x), -1, dim), turns)
    return np.einsum("shd,tgd->sthg", q, k)


def ported_scores(
    student: Answers, reference: Answers, rng: Any, heads: int, key_heads: int, dim: int
) -> None:
    """The student's ported projections under half rotations against the originals."""
    x = rng.standard_normal((4, 3))
    w_q, w_k = rng.standard_normal((heads * dim, 3)), rng.standard_normal((key_heads * dim, 3))
    units = np.broadcast_to(np.eye(dim), (4, dim, dim)).copy()
    places = np.repeat(rng.uniform(1, 9, (4, 1)), dim, axis=1)
    turns = {name: reference.apply_rope(units, places, 100.0, name) for name in Q_AT_5}
    new_q = shaped(student.interleaved_to_half(w_q, heads), w_q.shape, what="the new weight")
    new_k = shaped(student.interleaved_to_half(w_k, key_heads), w_k.shape, what="the new weight")
    expected = scores_of(w_q, w_k, x, turns["interleaved"])
    scores = scores_of(new_q, new_k, x, turns["half"])
    close(scores, expected, room(np.abs(expected).max() * dim, 9.0), what="the ported score")


@behaviour("interleaved_to_half", weight=2)
def check_interleaved_to_half_published_order(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The rows of two heads of width 4 come as 0 2 1 3, 4 6 5 7; heads of width 2 stay."""
    weight = np.arange(8.0)[:, None] + 100 * np.arange(8.0)
    two, four = (student.interleaved_to_half(weight, heads) for heads in (2, 4))
    order = [0, 2, 1, 3, 4, 6, 5, 7]
    equal(two, weight[order], what="the new weight")
    equal(four, weight, what="the new weight of four heads")


@behaviour("interleaved_to_half", weight=2)
def check_interleaved_to_half_keeps_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Half code on the new rows gives the scores that interleaved code gave, head by head."""
    ported_scores(student, reference, rng, heads=2, key_heads=2, dim=6)


@behaviour("interleaved_to_half")
def check_interleaved_to_half_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows stay whole and in their head; float32 stays float32."""
    weight = rng.standard_normal((30, 7)).astype("float32")
    agrees(student, reference, "interleaved_to_half", weight, 3, atol=0.0, dtype="float32")


@behaviour("interleaved_to_half")
def check_interleaved_to_half_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The weight that went in is still what it was."""
    weight = rng.standard_normal((12, 5))
    inputs = (weight, 2)
    leaves_inputs(student, reference, "interleaved_to_half", *inputs, names=("weight",), atol=0.0)


@behaviour("interleaved_to_half")
def check_interleaved_to_half_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows that are no whole heads raise, so do no heads or less; an odd width is a ValueError."""
    weight = rng.standard_normal((20, 3))
    with good_input():
        agrees(student, reference, "interleaved_to_half", weight, 2, atol=0.0)
    to_half = student.interleaved_to_half
    for heads in (3, 8, 40):
        refuses(to_half, weight, heads, because="rows that cannot be shared out among the heads")
    for heads in (0, -1, -2, -10):
        refuses(to_half, weight, heads, because=f"{heads} heads")
    refuses(to_half, weight, 4, error="ValueError", because="an odd head width")
    refuses(to_half, weight, 20, error="ValueError", because="a head width of 1")


@behaviour("interleaved_to_half", weight=2, hidden=True)
def check_interleaved_to_half_grouped(student: Answers, reference: Answers, rng: Any) -> None:
    """Fewer key heads than query heads keep their scores too."""
    ported_scores(student, reference, rng, heads=6, key_heads=2, dim=10)
    ported_scores(student, reference, rng, heads=3, key_heads=1, dim=16)


@behaviour("interleaved_to_half", hidden=True)
def check_interleaved_to_half_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """Any even width and number of heads works; float16 stays, integers become float64."""
    for heads, dim, columns in ((1, 16, 3), (5, 2, 4), (4, 6, 24), (2, 14, 1), (3, 8, 8)):
        for given, wanted in (("float16", "float16"), ("int64", "float64")):
            weight = rng.permutation(heads * dim * columns).reshape(-1, columns).astype(given)
            inputs = (weight, heads)
            agrees(student, reference, "interleaved_to_half", *inputs, atol=0.0, dtype=wanted)


# ------------------------------------------------------------------------- apply_partial_rope


@behaviour("apply_partial_rope", weight=2)
def check_apply_partial_rope_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The first four coordinates turn like a vector of width four, the others stay."""
    tail = np.array([[7.0, -8.0, 9.0, 4.0]])
    expected = np.concatenate([Q_AT_5["interleaved"], tail], axis=1)
    x = np.concatenate([Q, tail], axis=1)
    close(student.apply_partial_rope(x, np.array([5]), 4), expected, PUBLISHED)


@behaviour("apply_partial_rope", weight=2)
def check_apply_partial_rope_half_layout(student: Answers, reference: Answers, rng: Any) -> None:
    """In the half layout coordinate i turns with i + rotary_dim/2, not with i + dim/2."""
    tail = np.array([[7.0, -8.0, 9.0, 4.0]])
    expected = np.concatenate([K_AT_3["half"], tail], axis=1)
    x = np.concatenate([K, tail], axis=1)
    close(student.apply_partial_rope(x, np.array([3]), 4, layout="half"), expected, PUBLISHED)


@behaviour("apply_partial_rope", weight=2)
def check_apply_partial_rope_many_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Leading axes, scattered positions and another base work as in apply_rope."""
    x, places = rng.standard_normal((2, 3, 5, 12)), scattered(rng, 5)
    agrees(student, reference, "apply_partial_rope", x, places, 8, 500.0, atol=room(x, places))


@behaviour("apply_partial_rope")
def check_apply_partial_rope_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer input gives a float64 result with its fractions kept."""
    x, places = rng.integers(-9, 9, (5, 8)), scattered(rng, 5)
    inputs, allowed = (x, places, 6), room(x, places)
    agrees(student, reference, "apply_partial_rope", *inputs, atol=allowed, dtype="float64")


@behaviour("apply_partial_rope")
def check_apply_partial_rope_refuses_rotary_dim(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A rotary_dim that is odd, below 2 or above dim is a ValueError."""
    x, places = rng.standard_normal((5, 8)), scattered(rng, 5)
    with good_input():
        agrees(student, reference, "apply_partial_rope", x, places, 2, atol=room(x, places))
    for rotary_dim in (3, 1, 0, -2, 9, 10, 0.5):
        because = f"rotary_dim {rotary_dim} of 8"
        inputs = (x, places, rotary_dim)
        refuses(student.apply_partial_rope, *inputs, error="ValueError", because=because)


@behaviour("apply_partial_rope")
def check_apply_partial_rope_all_of_it(student: Answers, reference: Answers, rng: Any) -> None:
    """With rotary_dim equal to dim it is apply_rope, also with a position for each vector."""
    for layout in ("interleaved", "half"):
        result = student.apply_partial_rope(Q, np.array([5]), 4, layout=layout)
        close(result, Q_AT_5[layout], PUBLISHED)
        x, places = rng.standard_normal((3, 10)), scattered(rng, 3)
        expected = reference.apply_rope(x, places, 70, layout)
        result = student.apply_partial_rope(x, places, 10, 70, layout)
        close(result, expected, room(x, places))
    x, places = rng.standard_normal((2, 5, 8)), scattered(rng, 2, 5)
    agrees(student, reference, "apply_partial_rope", x, places, 8, 70, atol=room(x, places))


@behaviour("apply_partial_rope")
def check_apply_partial_rope_precise(student: Answers, reference: Answers, rng: Any) -> None:
    """Floating dtypes are kept, and angles are exact at large positions."""
    for dtype in ("float64", "float32", "float16"):
        x, places = rng.standard_normal((5, 9)).astype(dtype), rng.uniform(60_000, 130_000, 5)
        inputs, allowed = (x, places, 6), room(x, places, dtype, exact=True)
        agrees(student, reference, "apply_partial_rope", *inputs, atol=allowed, dtype=dtype)


@behaviour("apply_partial_rope")
def check_apply_partial_rope_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """x and the positions that went in are still what they were."""
    x, places = rng.standard_normal((5, 8)), rng.uniform(2, 90, 5)
    for layout in ("interleaved", "half"):
        inputs, names, allowed = (x, places, 6, 60.0, layout), ("x", "positions"), room(x, places)
        leaves_inputs(student, reference, "apply_partial_rope", *inputs, names=names, atol=allowed)


@behaviour("apply_partial_rope")
def check_apply_partial_rope_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad layout is a ValueError that names both, a bad base one too; bad positions raise."""
    x, places = rng.standard_normal((5, 7)), scattered(rng, 5)
    with good_input():
        agrees(student, reference, "apply_partial_rope", x, places, 6, 30.0, atol=room(x, places))
    bad_layouts(student.apply_partial_rope, x, places, 6)
    for base in (0.0, -30.0):
        inputs, because = (x, places, 6, base), "a base that is not positive"
        refuses(student.apply_partial_rope, *inputs, error="ValueError", because=because)
    for shape in ((), (1,), (4,), (5, 1)):
        because = "positions are neither (seq,) nor x.shape[:-1]"
        refuses(student.apply_partial_rope, x, rng.uniform(2, 9, shape), 6, because=because)


@behaviour("apply_partial_rope", hidden=True)
def check_apply_partial_rope_odd_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """dim itself may be odd, in both layouts."""
    x, places = rng.standard_normal((2, 5, 11)), scattered(rng, 5)
    for layout in ("interleaved", "half"):
        inputs = (x, places, 6, 300.0, layout)
        agrees(student, reference, "apply_partial_rope", *inputs, atol=room(x, places))


@behaviour("apply_partial_rope", hidden=True)
def check_apply_partial_rope_positions(student: Answers, reference: Answers, rng: Any) -> None:
    """Every vector may have its own position; other shapes of positions raise."""
    x, places = rng.standard_normal((2, 3, 5, 8)), scattered(rng, 2, 3, 5) - 20.5
    inputs = (x, places, 6, 80.0, "half")
    with good_input():
        agrees(student, reference, "apply_partial_rope", *inputs, atol=room(x, places))
    for shape in ((), (1,), (4,), (3, 5), (2, 3, 1), (1, 1, 5)):
        because = "positions are neither (seq,) nor x.shape[:-1]"
        refuses(student.apply_partial_rope, x, rng.uniform(2, 9, shape), 6, because=because)
    because = "several positions for a single token"
    refuses(student.apply_partial_rope, x[:, :, :1], places[0, 0], 6, because=because)


# -------------------------------------------------------------------------------- score_bound


@behaviour("score_bound")
def check_score_bound_at_zero(student: Answers, reference: Answers, rng: Any) -> None:
    """At distance zero nothing cancels: the bound is the mean of 1, 2, …, dim/2."""
    for dim, expected in ((8, 2.5), (2, 1.0), (64, 16.5)):
        close(student.score_bound(np.array([0, 0]), dim), [expected] * 2, room(dim, 0.0))


@behaviour("score_bound", weight=2)
def check_score_bound_dim_4(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 4 the bound is 1.3800 at distance 1, 0.5857 at 3 and 0.7354 at 10."""
    expected = [1.379968710, 0.585691108, 0.735381443]
    close(student.score_bound(np.array([1, 3, 10]), 4), expected, 1e-5)


@behaviour("score_bound", weight=2)
def check_score_bound_array(student: Answers, reference: Answers, rng: Any) -> None:
    """Distances of any shape give a float64 result of that shape, with any dim and base."""
    distances = scattered(rng, 3, 5)
    inputs, allowed = (distances, 12, 600.0), room(12, distances)
    agrees(student, reference, "score_bound", *inputs, atol=allowed, dtype="float64")


@behaviour("score_bound")
def check_score_bound_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it."""
    distances = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "score_bound", distances, 8, atol=room(8, distances))
    bad_dims(student.score_bound, distances)


@behaviour("score_bound")
def check_score_bound_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    distances = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "score_bound", distances, 6, 50.0, atol=room(6, distances))
    for base in (0.0, -50.0):
        because = "a base that is not positive"
        refuses(student.score_bound, distances, 6, base, error="ValueError", because=because)


@behaviour("score_bound", hidden=True)
def check_score_bound_both_directions(student: Answers, reference: Answers, rng: Any) -> None:
    """The bound is the same ahead and behind, and fractions of a token count."""
    distances = np.array([0.5, 7.25, 2.0, 40.125])
    for sign in (1, -1):
        inputs, allowed = (sign * distances, 10, 50.0), room(10, distances)
        agrees(student, reference, "score_bound", *inputs, atol=allowed)


@behaviour("score_bound", hidden=True)
def check_score_bound_single_distance(student: Answers, reference: Answers, rng: Any) -> None:
    """A distance without an axis gives one number, and three axes give three."""
    for distances in (np.array(17), scattered(rng, 3, 2, 4)):
        for dim in (2, 6, 32):
            inputs, allowed = (distances, dim, 90), room(dim, distances)
            agrees(student, reference, "score_bound", *inputs, atol=allowed)


@behaviour("score_bound", hidden=True)
def check_score_bound_precise_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """At large distances the bound is still exact to float64."""
    distances = rng.uniform(60_000, 130_000, 5)
    allowed = room(128, distances, exact=True)
    agrees(student, reference, "score_bound", distances, 128, atol=allowed)


@behaviour("score_bound", hidden=True)
def check_score_bound_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The distances that went in are still what they were."""
    distances = scattered(rng, 5, 1) - 40.5
    inputs, allowed = (distances, 10), room(10, distances)
    leaves_inputs(student, reference, "score_bound", *inputs, names=("distances",), atol=allowed)


# -------------------------------------------------------------------------- fixed_table_cache


def tables_agree(
    student: Answers, reference: Answers, *requests: tuple[Any, ...], exact: bool = False
) -> Any:
    """One cache of the student's answers all requests, in this order; returns it."""
    expected = reference.fixed_table_cache()
    wanted = [pair(expected(*request)) for request in requests]
    tables = instance(student.fixed_table_cache(), what="the result of fixed_table_cache()")
    for request, want in zip(requests, wanted, strict=True):
        length, offset, *_ = request
        got, allowed = pair(tables(*request), what="the tables"), room(1.0, length + offset)
        for name, mine, right in zip(("cosines", "sines"), got, want, strict=True):
            what = f"the table of {name}"
            close(mine, right, allowed, what=what)
            if exact:
                close(mine, right, room(1.0, length + offset, exact=True), what=what)
                same_dtype(mine, "float64", what=what)
    return tables


def drawn(rng: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    """Two numbers, such as a length and an offset."""
    first, second = (int(n) for n in rng.integers(low, high, 2))
    return first, second


@behaviour("fixed_table_cache")
def check_fixed_table_cache_first_call(student: Answers, reference: Answers, rng: Any) -> None:
    """The first call gives cos and sin of positions offset … offset + length − 1."""
    tables = instance(student.fixed_table_cache(), what="the result of fixed_table_cache()")
    cos, sin = pair(tables(2, 5, 4), what="the tables")
    known_cos = [[0.283662185, 0.998750260], [0.960170287, 0.998200540]]
    known_sin = [[-0.958924275, 0.049979169], [-0.279415498, 0.059964006]]
    close(cos, known_cos, 1e-5, what="the table of cosines")
    close(sin, known_sin, 1e-5, what="the table of sines")
    tables_agree(student, reference, (*drawn(rng, 4, 9), 8, float(rng.integers(200, 900))))


@behaviour("fixed_table_cache", weight=2)
def check_fixed_table_cache_other_offset(student: Answers, reference: Answers, rng: Any) -> None:
    """A second call with another offset gets its own rows."""
    (length, offset), (more, dim) = drawn(rng, 4, 9), drawn(rng, 3, 7)
    later = offset + length + more
    tables_agree(student, reference, (length, offset, 2 * dim), (length, later, 2 * dim))


@behaviour("fixed_table_cache")
def check_fixed_table_cache_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A second call with another base gets its own ladder of frequencies."""
    request = (*drawn(rng, 4, 9), 8)
    other = (*request, float(rng.integers(200, 900)))
    tables_agree(student, reference, request, other, request)


@behaviour("fixed_table_cache")
def check_fixed_table_cache_other_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A second call with another dim gets tables of its own width."""
    span = drawn(rng, 4, 9)
    tables_agree(student, reference, (*span, 8), (*span, 6), (*span, 16))


@behaviour("fixed_table_cache")
def check_fixed_table_cache_other_length(student: Answers, reference: Answers, rng: Any) -> None:
    """More or fewer rows from the same offset, or up to the same end, are tables of their own."""
    (length, offset), (more, dim) = drawn(rng, 4, 9), drawn(rng, 3, 7)
    same_end, same_start = (length + more, offset, 2 * dim), (length, offset, 2 * dim)
    requests = (length, offset + more, 2 * dim), same_end, same_start
    tables_agree(student, reference, *requests, *requests)


@behaviour("fixed_table_cache")
def check_fixed_table_cache_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Tables are float64 and exact far out, and a slightly other base is another base."""
    far = [(5, int(offset), 32) for offset in rng.integers(60_000, 130_000, 3)]
    tables_agree(student, reference, *far, (*far[0], 10_000.5), far[0], exact=True)


@behaviour("fixed_table_cache")
def check_fixed_table_cache_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Negative lengths and offsets raise; a bad dim or base is a ValueError."""
    with good_input():
        tables = tables_agree(student, reference, (4, 9, 8))
    refuses(tables, -3, 9, 8, because="a negative length")
    refuses(tables, 4, -9, 8, because="a negative offset")
    for dim in (7, 0, -8):
        because = "a dim that is odd or not positive"
        refuses(tables, 4, 9, dim, error="ValueError", because=because)
    for base in (0.0, -40.0):
        because = "a base that is not positive"
        refuses(tables, 4, 9, 8, base, error="ValueError", because=because)


@behaviour("fixed_table_cache", hidden=True)
def check_fixed_table_cache_any_order(student: Answers, reference: Answers, rng: Any) -> None:
    """No order of calls confuses it: longer then shorter, later then earlier, and back."""
    spans = [(9, 3), (4, 3), (4, 8), (8, 4), (12, 3), (3, 12), (1, 23), (12, 0), (5, 2), (2, 5)]
    calls = [(*span, 6) for span in spans] + [(4, 8, 10), (4, 8, 6, 80.0), (8, 4, 10, 80)]
    calls += [(4, 8, 8, 60.0)]  # the same product of dim and base as another
    tables_agree(student, reference, *calls, *reversed(calls))
    tables_agree(student, reference, *(calls[i] for i in rng.permutation(len(calls))))


@behaviour("fixed_table_cache", hidden=True)
def check_fixed_table_cache_same_again(student: Answers, reference: Answers, rng: Any) -> None:
    """The same question has the same answer, the second and the third time too."""
    tables_agree(student, reference, (3, 11, 10), (3, 11, 10), (3, 11, 10), (3, 11, 10, 60.0))


@behaviour("fixed_table_cache", hidden=True)
def check_fixed_table_cache_no_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Length 0 gives two tables without rows, as wide as the others."""
    tables_agree(student, reference, (0, 9, 8), (3, 9, 8), (0, 9, 8), (0, 0, 6))


@behaviour("fixed_table_cache", hidden=True)
def check_fixed_table_cache_two_caches(student: Answers, reference: Answers, rng: Any) -> None:
    """Two caches in use at once do not disturb each other."""
    requests = [(4, 6, 8), (4, 9, 8, 30.0), (4, 9, 8), (4, 6, 8, 30.0)]
    expected = reference.fixed_table_cache()
    wanted = [pair(expected(*request)) for request in requests]
    caches = [instance(student.fixed_table_cache(), what="a cache") for _ in range(2)]
    for turn in range(6):
        for number, cache in enumerate(caches):
            which = (turn + number) % 4
            cos, sin = pair(cache(*requests[which]), what="the tables")
            close(cos, wanted[which][0], room(1.0, 13), what="the table of cosines")
            close(sin, wanted[which][1], room(1.0, 13), what="the table of sines")


# ---------------------------------------------------------------------------- RotaryEmbedding


def tensor(array: Any, dtype: str | None = None) -> torch.Tensor:
    import torch

    plain = torch.as_tensor(array if isinstance(array, torch.Tensor) else np.array(array))
    return plain if dtype is None else plain.to(getattr(torch, dtype))


def heads(rng: Any, *shape: int, dtype: str = "float32") -> torch.Tensor:
    """Random queries or keys (batch, heads, seq, head_dim)."""
    return tensor(rng.standard_normal(shape), dtype)


def module(answers: Answers, *args: Any, **kwargs: Any) -> Any:
    return instance(answers.RotaryEmbedding(*args, **kwargs), what="RotaryEmbedding(…)")


def rotated(result: Any, expected: Any, largest: float, dtype: str = "float32") -> None:
    """Both results have the expected values, up to angles in float32, and this dtype."""
    for name, mine, right in zip(
        ("queries", "keys"), pair(result, what="the result of forward"), pair(expected), strict=True
    ):
        allowed = tolerance(dtype, angle=largest, scale=4.0, angle_dtype="float32")
        close(mine, right, allowed, what=f"the rotated {name}")
        same_dtype(mine, dtype, what=f"the rotated {name}")


@behaviour("RotaryEmbedding", weight=2)
def check_rotary_embedding_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The default layout is "half": q at 5 and k at 3 become the published vectors."""
    x = tensor([[[[*Q[0]], [*K[0]]]]], "float32")
    expected = tensor([[[*Q_AT_5["half"], *K_AT_3["half"]]]], "float32")
    result = module(student, 4)(x, x, tensor([5, 3]))
    rotated(result, (expected, expected), 5)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_interleaved(student: Answers, reference: Answers, rng: Any) -> None:
    """With layout="interleaved" they become the other published vectors."""
    x = tensor([[[[*Q[0]], [*K[0]]]]], "float32")
    expected = tensor([[[*Q_AT_5["interleaved"], *K_AT_3["interleaved"]]]], "float32")
    result = module(student, 4, layout="interleaved")(x, x, tensor([5, 3]))
    rotated(result, (expected, expected), 5)


@behaviour("RotaryEmbedding", weight=2)
def check_rotary_embedding_grouped_queries(student: Answers, reference: Answers, rng: Any) -> None:
    """All heads of a batch turn alike; keys may have fewer heads and keep them."""
    q, k = heads(rng, 2, 6, 5, 8), heads(rng, 2, 3, 5, 8)
    positions = tensor(scattered(rng, 5))
    expected = module(reference, 8, 500.0, "half")(q, k, positions)
    rotated(module(student, 8, 500.0, "half")(q, k, positions), expected, 150)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_positions_per_row(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Positions (batch, seq) belong to the rows of the batch, not to the heads."""
    q, k = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8)
    inputs = (q[:, :2], k, tensor(scattered(rng, 2, 5)))
    expected = module(reference, 8, 300.0)(*inputs)
    rotated(module(student, 8, 300.0)(*inputs), expected, 300)
    inputs = (q, k, inputs[2])
    expected = module(reference, 8, 300.0, "interleaved")(*inputs)
    rotated(module(student, 8, 300.0, "interleaved")(*inputs), expected, 300)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_bfloat16(student: Answers, reference: Answers, rng: Any) -> None:
    """bfloat16 queries stay bfloat16, and their angles are exact nevertheless."""
    q, k = heads(rng, 2, 4, 5, 16, dtype="bfloat16"), heads(rng, 2, 2, 5, 16, dtype="bfloat16")
    positions = tensor(rng.integers(1000, 3000, 5))
    wide_q, wide_k = tensor(q, "float32"), tensor(k, "float32")
    wide = module(reference, 16)(wide_q, wide_k, positions)
    expected = module(reference, 16)(q, k, positions)
    with good_input():
        rotated(module(student, 16)(wide_q, wide_k, positions), wide, 3000)
    rotated(module(student, 16)(q, k, positions), expected, 3000, "bfloat16")


@behaviour("RotaryEmbedding", weight=2)
def check_rotary_embedding_cast_module(student: Answers, reference: Answers, rng: Any) -> None:
    """Casting the module to bfloat16 does not make its angles coarse."""
    for largest in (3000, 30):  # far out for the angles, near for the digits of their sines
        q, k = heads(rng, 2, 4, 5, 16), heads(rng, 2, 2, 5, 16)
        positions = tensor(rng.integers(largest // 3, largest, 5))
        expected = module(reference, 16)(q, k, positions)
        with good_input():
            rotated(module(student, 16)(q, k, positions), expected, largest)
        rope = module(student, 16)
        rope.cast("bfloat16")
        rotated(rope(q, k, positions), expected, largest)


@behaviour("RotaryEmbedding", weight=2)
def check_rotary_embedding_autocast(student: Answers, reference: Answers, rng: Any) -> None:
    """Under autocast angles are exact and results keep the dtype of q and k."""
    for dtype, layout, largest in (
        ("float32", "half", 3000),
        ("float32", "interleaved", 30),
        ("bfloat16", "half", 3000),
    ):
        q, k = heads(rng, 2, 4, 5, 16, dtype=dtype), heads(rng, 2, 2, 5, 16, dtype=dtype)
        positions = tensor(rng.integers(largest // 3, largest, (2, 5)))
        for where in (positions, positions[1]):
            expected = module(reference, 16, 5000.0, layout)(q, k, where)
            with good_input():
                rotated(module(student, 16, 5000.0, layout)(q, k, where), expected, largest, dtype)
            rope = module(student, 16, 5000.0, layout)
            with student.autocast("bfloat16"):
                result = rope(q, k, where)
            rotated(result, expected, largest, dtype)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_no_memory(student: Answers, reference: Answers, rng: Any) -> None:
    """A call owes nothing to the calls before it: other lengths, offsets, rows and dtypes."""
    right, mine = module(reference, 8, 200.0), module(student, 8, 200.0)
    calls = []
    dtypes = ("float32", "bfloat16", "float32", "float64", "float32", "float16")
    spans = ((4, 3), (9, 40), (4, 31), (4, 3), (1, 77), (9, 0))
    for (length, offset), dtype in zip(spans, dtypes, strict=True):
        q, k = heads(rng, 2, 4, length, 8, dtype=dtype), heads(rng, 2, 1, length, 8, dtype=dtype)
        calls.append((q, k, tensor(np.arange(length) + offset), dtype))
    q, k = heads(rng, 2, 4, 4, 8), heads(rng, 2, 4, 4, 8)
    calls.append((q, k, tensor(scattered(rng, 2, 4)), "float32"))
    calls.append((q[:1], k[:1], tensor(scattered(rng, 1, 4)), "float32"))
    for middle in ((40, 9), (17, 32)):  # the same first, last and largest one, and the same sum
        calls.append((q, k, tensor([3, *middle, 60]), "float32"))
    expected = [right(*inputs) for *inputs, _ in calls]
    with good_input():
        rotated(mine(*calls[0][:3]), expected[0], 240)
    for (*inputs, dtype), wanted in zip(calls, expected, strict=True):
        rotated(mine(*inputs), wanted, 240, dtype)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """float16 and float64 input keep their dtypes; positions may be fractions or negative."""
    positions = tensor([2.5, -7.0, 0.125, 31.0, -0.75])
    for dtype in ("float16", "float64"):
        for layout in ("half", "interleaved"):
            q, k = heads(rng, 3, 4, 5, 6, dtype=dtype), heads(rng, 3, 2, 5, 6, dtype=dtype)
            where = positions if layout == "half" else tensor(positions, "float32")
            expected = module(reference, 6, 90.0, layout)(q, k, where)
            rotated(module(student, 6, 90.0, layout)(q, k, where), expected, 31, dtype)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """q, k and the positions are still what they were: other code may hold them."""
    q, k = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8)
    inputs = (q, k, tensor(rng.uniform(2, 90, 5), "float32"))
    for layout in ("half", "interleaved"):
        expected = module(reference, 8, layout=layout)(*inputs)
        result, after = module(student, 8, layout=layout).with_inputs(*inputs)
        for name, now, before in zip(("q", "k", "positions"), after, inputs, strict=True):
            unchanged(now, before, what=name)
        with good_input():
            rotated(result, expected, 90)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_gradients(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients reach q and k, so that the projections before them can be trained."""
    inputs = (heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8), tensor(scattered(rng, 5)))
    weights = (heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8))
    allowed = tolerance("float32", angle=90, scale=6.0, angle_dtype="float32")
    mine, right = module(student, 8), module(reference, 8)
    trains(mine, right, *inputs, names=("q", "k"), weights=weights, atol=allowed)


@behaviour("RotaryEmbedding")
def check_rotary_embedding_refuses_at_once(student: Answers, reference: Answers, rng: Any) -> None:
    """A bad layout, head_dim or base is a ValueError, the first two when the module is made."""
    inputs = (heads(rng, 1, 2, 5, 6), heads(rng, 1, 2, 5, 6), tensor(scattered(rng, 5)))
    expected = module(reference, 6)(*inputs)

    def use_base(base: float) -> Any:
        return module(student, 6, base)(*inputs)

    with good_input():
        rotated(use_base(10000.0), expected, 150)
    bad_layouts(student.RotaryEmbedding, 6)
    bad_dims(student.RotaryEmbedding)
    for base in (0.0, -9.0):
        because = "a base that is not positive"
        refuses(use_base, base, error="ValueError", because=because)


@behaviour("RotaryEmbedding", weight=2)
def check_rotary_embedding_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not match raise, also where torch would broadcast them."""
    q, k, positions = heads(rng, 2, 4, 5, 8), heads(rng, 2, 2, 5, 8), tensor(scattered(rng, 5))
    expected = module(reference, 8)(q, k, positions)
    rope = module(student, 8)
    with good_input():
        rotated(rope(q, k, positions), expected, 150)
    because = "positions are neither (seq,) nor (batch, seq)"
    for shape in ((), (1,), (4,), (2,), (1, 5), (2, 1), (1, 1), (4, 5), (2, 4, 5), (2, 1, 5)):
        refuses(rope, q, k, tensor(rng.uniform(2, 9, shape)), because=because)
    because = "several positions for a single token"
    refuses(rope, q[:, :, :1], k[:, :, :1], positions, because=because)
    refuses(rope, q[:1], k[:1], tensor(scattered(rng, 2, 5)), because="positions of other rows")
    refuses(rope, q, k[:, :, :1], positions, because="fewer keys than queries")
    refuses(rope, q[:, :, :1], k, positions, because="fewer queries than keys")
    rows = tensor(scattered(rng, 2, 5))
    for where in (positions, rows):
        refuses(rope, q, k[:1], where, because="keys for one row of two")
        refuses(rope, q[:1], k, where, because="queries for one row of two")
        refuses(rope, q, heads(rng, 3, 2, 5, 8), where, because="more rows of keys than of queries")
    for width in (2, 6):
        refuses(rope, q, k[..., :width], positions, because="keys narrower than head_dim")
        refuses(rope, q[..., :width], k, positions, because="queries narrower than head_dim")
    refuses(module(student, 2), q, k, positions, because="vectors wider than head_dim")
    refuses(module(student, 2), q[..., :2], k, positions, because="keys wider than head_dim")


@behaviour("RotaryEmbedding", hidden=True)
def check_rotary_embedding_cast_parent(student: Answers, reference: Answers, rng: Any) -> None:
    """Casting a parent module, in either half precision, does not make the angles coarse."""
    right = module(reference, 16, 5000.0, "interleaved")
    for dtype in ("bfloat16", "float16"):
        for given, largest in (("float32", 3000), ("float32", 30), (dtype, 3000)):
            rope = module(student, 16, 5000.0, "interleaved")
            rope.cast(dtype, through_parent=True)
            q, k = heads(rng, 2, 4, 5, 16, dtype=given), heads(rng, 2, 2, 5, 16, dtype=given)
            positions = tensor(rng.integers(largest // 3, largest, (2, 5)))
            expected = right(q, k, positions)
            rotated(rope(q, k, positions), expected, largest, given)


@behaviour("RotaryEmbedding", hidden=True)
def check_rotary_embedding_two_modules(student: Answers, reference: Answers, rng: Any) -> None:
    """Modules in use at once do not disturb each other, nor does a first call in bfloat16."""
    kinds = ((8, 200.0, "half"), (8, 200.0, "interleaved"), (8, 30.0, "half"))
    right, mine = ([module(who, *kind) for kind in kinds] for who in (reference, student))
    positions = tensor(rng.integers(2, 30, 5))
    for dtype in ("bfloat16", "float32"):
        q, k = heads(rng, 2, 4, 5, 8, dtype=dtype), heads(rng, 2, 2, 5, 8, dtype=dtype)
        for which in (0, 1, 2, 0):
            expected = right[which](q, k, positions)
            rotated(mine[which](q, k, positions), expected, 30, dtype)


@behaviour("RotaryEmbedding", hidden=True)
def check_rotary_embedding_other_widths(student: Answers, reference: Answers, rng: Any) -> None:
    """Widths from 2 to 128 work in both layouts, and so do equal numbers of everything."""
    for shape in ((2, 3, 5, 2), (1, 2, 3, 128), (4, 4, 4, 4)):
        q, k = heads(rng, *shape), heads(rng, *shape)
        batch, _, length, dim = shape
        for layout, where in (("half", (length,)), ("interleaved", (batch, length))):
            positions = scattered(rng, *where)
            inputs = (q, k, tensor(positions))
            expected = module(reference, dim, 500_000, layout)(*inputs)
            rotated(module(student, dim, 500_000, layout)(*inputs), expected, positions.max())


# ----------------------------------------------------------------------------- fused_rotation

# One unit in the last place of numbers up to 4: what a rounding may cost that goes the other way.
LAST_PLACE = {"float32": 2.0**-22, "bfloat16": 2.0**-6, "float16": 2.0**-9}


def numbers(rng: Any, *shape: int, dtype: str = "float32") -> torch.Tensor:
    """Queries or keys so small that no rotation of a pair reaches 4."""
    return tensor(rng.uniform(-2, 2, shape), dtype)


def turns(rng: Any, tokens: int, head_dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of cos and sin whose angles are no ladder, and differ from token to token."""
    angles = rng.uniform(-3, 3, (tokens, head_dim // 2))
    return tensor(np.cos(angles), "float32"), tensor(np.sin(angles), "float32")


def in_memory(x: torch.Tensor, *order: int) -> torch.Tensor:
    """The same numbers, whose axes lie in memory in this order, the last without gaps."""
    back = [order.index(axis) for axis in range(x.ndim)]
    return x.permute(order).contiguous().permute(back)


def both_rotated(
    student: Answers, reference: Answers, *inputs: Any, dtype: str = "float32", units: float = 16
) -> None:
    """q and k come back rotated, off by so many units in the last place, and in their dtype."""
    expected = pair(reference.fused_rotation(*inputs))
    result = pair(student.fused_rotation(*inputs))
    for name, mine, right in zip(("queries", "keys"), result, expected, strict=True):
        close(mine, right, units * LAST_PLACE[dtype], what=f"the rotated {name}")
        same_dtype(mine, dtype, what=f"the rotated {name}")


def rounded_once(student: Answers, reference: Answers, rng: Any, dtype: str) -> None:
    """Pairs whose first coordinate nearly cancels: an earlier rounding is larger than the result.

    b is chosen so that a·cos − b·sin would be 0, but for the rounding of a and b themselves. Below
    2 and 4, they leave less than a unit in the last place of b; rounding that, or cutting it off as
    Triton's interpreter does, costs a unit of its own last place: a fourth of the square.
    """
    angles = rng.uniform(0.6, 0.9, (5, 4))
    cos, sin = tensor(np.cos(angles), "float32"), tensor(np.sin(angles), "float32")
    first = rng.choice([-1.0, 1.0], (2, 3, 5, 4)) * rng.uniform(1.0, 2.0, (2, 3, 5, 4))
    q = tensor(np.concatenate([first, first / np.tan(angles)], axis=-1), dtype)
    k = q[:, :1]
    expected = pair(reference.fused_rotation(q, k, cos, sin))
    result = pair(student.fused_rotation(q, k, cos, sin))
    allowed = LAST_PLACE[dtype] ** 2 / 4 + 16 * LAST_PLACE["float32"]
    for name, mine, right in zip(("queries", "keys"), result, expected, strict=True):
        what = f"the rotated {name}"
        close(mine, right, LAST_PLACE[dtype], what=what)
        same_dtype(mine, dtype, what=what)
        close(mine[..., :4], right[..., :4], allowed, what=f"the first half of {what}")


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_published_numbers(student: Answers, reference: Answers, rng: Any) -> None:
    """With cos and sin of positions 5 and 3, q and k become the published vectors."""
    angles = np.array([[5.0, 0.05], [3.0, 0.03]])
    cos, sin = tensor(np.cos(angles), "float32"), tensor(np.sin(angles), "float32")
    x = tensor([[[[*Q[0]], [*K[0]]]]], "float32")
    expected = tensor([[[*Q_AT_5["half"], *K_AT_3["half"]]]], "float32")
    for mine in pair(student.fused_rotation(x, x, cos, sin)):
        close(mine, expected, PUBLISHED)


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_one_row_a_token(student: Answers, reference: Answers, rng: Any) -> None:
    """A token's row of cos and sin turns it in every text and every head."""
    q, k = numbers(rng, 2, 3, 5, 8), numbers(rng, 2, 3, 5, 8)
    both_rotated(student, reference, q, k, *turns(rng, 5, 8))


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_fewer_key_heads(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys may have fewer heads than queries, and so lie closer together in memory."""
    q, k = numbers(rng, 2, 4, 3, 8), numbers(rng, 2, 2, 3, 8)
    both_rotated(student, reference, q, k, *turns(rng, 3, 8))


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_odd_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """Sizes need not be powers of two: 3 pairs, 3 heads, 5 tokens."""
    q, k = numbers(rng, 2, 3, 5, 6), numbers(rng, 2, 1, 5, 6)
    both_rotated(student, reference, q, k, *turns(rng, 5, 6))


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_strides(student: Answers, reference: Answers, rng: Any) -> None:
    """Heads may lie side by side in memory, token after token, as a projection leaves them."""
    q, k = numbers(rng, 2, 4, 3, 8), numbers(rng, 2, 4, 3, 8)
    side_by_side = in_memory(q, 0, 2, 1, 3)
    both_rotated(student, reference, side_by_side, k, *turns(rng, 3, 8))
    both_rotated(student, reference, side_by_side, side_by_side[:, 1:2], *turns(rng, 3, 8))


@behaviour("fused_rotation")
def check_fused_rotation_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """q, k, cos and sin are still what they were: the results are new tensors."""
    inputs = (numbers(rng, 1, 2, 3, 8), numbers(rng, 1, 1, 3, 8), *turns(rng, 3, 8))
    result, after = student.fused_rotation.with_inputs(*inputs)
    for name, now, before in zip(("q", "k", "cos", "sin"), after, inputs, strict=True):
        unchanged(now, before, what=name)
    with good_input():
        for mine, right in zip(pair(result), reference.fused_rotation(*inputs), strict=True):
            close(mine, right, 16 * LAST_PLACE["float32"])


@behaviour("fused_rotation", weight=2)
def check_fused_rotation_bfloat16(student: Answers, reference: Answers, rng: Any) -> None:
    """bfloat16 is computed in float32 and rounded once, at the end."""
    rounded_once(student, reference, rng, "bfloat16")


@behaviour("fused_rotation", hidden=True)
def check_fused_rotation_float16(student: Answers, reference: Answers, rng: Any) -> None:
    """float16 is computed in float32 and rounded once, and so is a mixture of sizes."""
    rounded_once(student, reference, rng, "float16")
    q, k = numbers(rng, 1, 5, 3, 10, dtype="float16"), numbers(rng, 1, 1, 3, 10, dtype="float16")
    both_rotated(student, reference, q, k, *turns(rng, 3, 10), dtype="float16", units=1)


@behaviour("fused_rotation", hidden=True, weight=2)
def check_fused_rotation_any_strides(student: Answers, reference: Answers, rng: Any) -> None:
    """The coordinates of a vector need not lie side by side, and q and k may lie differently."""
    q, k = numbers(rng, 2, 3, 5, 6), numbers(rng, 2, 3, 5, 6)
    tables = turns(rng, 5, 6)
    for q_order, k_order in (((0, 1, 3, 2), (0, 2, 1, 3)), ((3, 2, 0, 1), (1, 0, 2, 3))):
        inputs = in_memory(q, *q_order), in_memory(k, *k_order)[:, :1]
        both_rotated(student, reference, *inputs, *tables)


@behaviour("fused_rotation", hidden=True)
def check_fused_rotation_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair, 65 pairs, nine heads and equal numbers of everything work."""
    for batch, heads_of_q, tokens, width in ((1, 1, 1, 2), (1, 9, 2, 130), (2, 2, 2, 2)):
        q = numbers(rng, batch, heads_of_q, tokens, width)
        k = numbers(rng, batch, 1 if heads_of_q == 9 else heads_of_q, tokens, width)
        both_rotated(student, reference, q, k, *turns(rng, tokens, width))


@behaviour("fused_rotation", hidden=True)
def check_fused_rotation_tables_as_given(student: Answers, reference: Answers, rng: Any) -> None:
    """cos and sin are used as they are, also where a factor makes every vector longer."""
    q, k = numbers(rng, 1, 2, 3, 4), numbers(rng, 1, 2, 3, 4)
    cos, sin = turns(rng, 3, 4)
    both_rotated(student, reference, q, k, 1.2 * cos, 1.2 * sin)
