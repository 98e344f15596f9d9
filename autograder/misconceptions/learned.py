"""Wrong answers to the exercises on learned positions, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import learned

from ..exercise import Misconception

Array = np.ndarray

# ------------------------------------------------------------------------------------- lookup


def integers(positions: Array) -> Array:
    """Positions of an integer dtype, wherever they point."""
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    return positions


def not_negative(positions: Array, length: int) -> Array:
    """Positions of which none is below 0, whatever their largest one is."""
    positions = integers(positions)
    learned.as_rows(positions[positions < 0], length)
    return positions


def lookup_wraps_round(table: Array, positions: Array) -> Array:
    return learned.as_table(table)[integers(positions)]


def lookup_modulo(table: Array, positions: Array) -> Array:
    table = learned.as_table(table)
    return table[integers(positions).astype(int) % max(len(table), 1)]


def lookup_clips(table: Array, positions: Array) -> Array:
    """np.take(…, mode="clip"), and what an index in JAX does past the end."""
    table = learned.as_table(table)
    return table[np.clip(integers(positions).astype(int), 0, len(table) - 1)]


def lookup_repeats_last_row(table: Array, positions: Array) -> Array:
    table = learned.as_table(table)
    positions = not_negative(positions, len(table)).astype(int)
    return table[np.minimum(positions, len(table) - 1)]


def lookup_offset_of_two(table: Array, positions: Array) -> Array:
    """transformers#20761: OPT's rows 0 and 1 belong to no position, and not everybody knows."""
    return learned.lookup(table, integers(positions).astype(int) + 2)


def lookup_counts_from_one(table: Array, positions: Array) -> Array:
    table = learned.as_table(table)
    return table[learned.as_rows(positions, len(table)).astype(int) - 1]


def lookup_of_a_range(table: Array, positions: Array) -> Array:
    table = learned.as_table(table)
    positions = learned.as_rows(positions, len(table))
    return learned.lookup(table, np.arange(positions.size).reshape(positions.shape))


def lookup_flattens(table: Array, positions: Array) -> Array:
    return learned.lookup(table, np.ravel(positions))


def lookup_keeps_integers(table: Array, positions: Array) -> Array:
    table = np.asarray(table)
    return learned.lookup(table, positions).astype(table.dtype)


def lookup_always_float64(table: Array, positions: Array) -> Array:
    return learned.lookup(table, positions).astype(np.float64)


def lookup_truncates(table: Array, positions: Array) -> Array:
    return learned.lookup(table, np.asarray(positions).astype(int))


def lookup_takes_a_mask(table: Array, positions: Array) -> Array:
    positions = np.asarray(positions)
    if positions.dtype == bool:
        return learned.as_table(table)[positions]
    return learned.lookup(table, positions)


LOOKUP = (
    Misconception(
        "lookup-wraps-round",
        lookup_wraps_round,
        "lookup_refuses_negative",
        "A position below 0 came back with a row counted from the end of the table: that is how "
        "arrays read −1. No token stands there, so refuse it before you index.",
        "learned-table",
    ),
    Misconception(
        "lookup-modulo",
        lookup_modulo,
        "lookup_refuses_negative",
        "Positions off the table start over at its beginning. Two places of a text would share a "
        "vector, and nobody would notice. Refuse what the table does not have.",
        "learned-puzzle",
    ),
    Misconception(
        "lookup-clips",
        lookup_clips,
        "lookup_refuses_negative",
        "Positions off the table were moved to its nearest end: all before it read row 0, all past "
        "it the last row. Order is lost there without a word; raise an IndexError.",
        "learned-puzzle",
    ),
    Misconception(
        "lookup-repeats-last-row",
        lookup_repeats_last_row,
        "lookup_refuses_past_the_end",
        "Every position past the end gets the last row, so all tokens there look as if they stood "
        "in one place. The table has no answer for them; raise an error that says so.",
        "learned-puzzle",
    ),
    Misconception(
        "lookup-offset-of-two",
        lookup_offset_of_two,
        "lookup_rows",
        "Each position gets the row two further on. Some models keep rows of their own before the "
        "first position, OPT for one; this table does not: position 0 is row 0.",
        "learned-table",
    ),
    Misconception(
        "lookup-counts-from-one",
        lookup_counts_from_one,
        "lookup_rows",
        "Each position gets the row before its own, and position 0 the last one of the table. "
        "Positions count from 0, as rows do.",
        "learned-table",
    ),
    Misconception(
        "lookup-of-a-range",
        lookup_of_a_range,
        "lookup_rows",
        "The rows came in the order of the table, 0, 1, 2, …, whatever positions were asked. The "
        "positions are what decides which row is read.",
        "learned-table",
    ),
    Misconception(
        "lookup-flattens",
        lookup_flattens,
        "lookup_any_shape",
        "The shape of the positions is lost: all vectors came in one long list. Each position is "
        "to be replaced by its vector where it stands, which adds one axis at the end.",
        "learned-table",
    ),
    Misconception(
        "lookup-keeps-integers",
        lookup_keeps_integers,
        "lookup_integers",
        "A table of integers gave vectors that are not float64: as integers, they would cut off "
        "the first gradient step. Integers become float64; floats stay as they are.",
        "learned-table",
    ),
    Misconception(
        "lookup-always-float64",
        lookup_always_float64,
        "lookup_keeps_dtype",
        "A float32 or float16 table gave float64 vectors. Looking up computes nothing, so the "
        "dtype of the table can stay what it is.",
        "learned-table",
    ),
    Misconception(
        "lookup-truncates",
        lookup_truncates,
        "lookup_refuses_other_dtypes",
        "Positions that are no integers were cut to integers without a word. A table has no row "
        "between two rows: look at the dtype before you convert anything.",
        "learned-table",
    ),
    Misconception(
        "lookup-takes-a-mask",
        lookup_takes_a_mask,
        "lookup_refuses_other_dtypes",
        "Booleans were taken as a mask, which picks rows and drops others. They are not positions; "
        "an attention mask passed by mistake should be an error.",
        "learned-table",
    ),
)

# ---------------------------------------------------------------------------- lookup_gradient


def gradient_loses_repeats(grad_output: Array, positions: Array, num_positions: int) -> Array:
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    gradient = np.zeros_like(right)
    gradient[np.asarray(positions)] += grad_output
    return gradient


def gradient_means_repeats(grad_output: Array, positions: Array, num_positions: int) -> Array:
    """torch's own embedding does this when it is given scale_grad_by_freq=True."""
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    times = np.bincount(np.ravel(positions), minlength=num_positions)
    return (right / np.maximum(times, 1)[:, None]).astype(right.dtype)


def gradient_once_per_text(grad_output: Array, positions: Array, num_positions: int) -> Array:
    """Texts add up, places of one text do not: in most batches no text has a position twice."""
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    gradient, positions = np.zeros_like(right), np.asarray(positions)
    seq, dim = positions.shape[-1] if positions.ndim else 1, right.shape[1]
    if positions.size:
        grads = np.asarray(grad_output).reshape(-1, seq, dim)
        for text, grad in zip(positions.reshape(-1, seq), grads, strict=True):
            gradient[text] += grad
    return gradient


def gradient_of_first_text(grad_output: Array, positions: Array, num_positions: int) -> Array:
    learned.lookup_gradient(grad_output, positions, num_positions)
    positions = np.asarray(positions)
    if positions.ndim > 1 and positions.size:
        first = positions.reshape(-1, positions.shape[-1])[0]
        positions = np.broadcast_to(first, positions.shape)
    return learned.lookup_gradient(grad_output, positions, num_positions)


def gradient_in_reading_order(grad_output: Array, positions: Array, num_positions: int) -> Array:
    gradient = np.zeros_like(learned.lookup_gradient(grad_output, positions, num_positions))
    grads = np.asarray(grad_output).reshape(-1, gradient.shape[1])[:num_positions]
    gradient[: len(grads)] = grads
    return gradient


def gradient_too_short(grad_output: Array, positions: Array, num_positions: int) -> Array:
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    return right[: np.max(positions) + 1]


def gradient_always_float64(grad_output: Array, positions: Array, num_positions: int) -> Array:
    return learned.lookup_gradient(grad_output, positions, num_positions).astype(np.float64)


def gradient_adds_in_small_dtype(grad_output: Array, positions: Array, num_positions: int) -> Array:
    """Where float16 holds 2048, one more is no more; so float32 at 16 million."""
    gradient = np.zeros_like(learned.lookup_gradient(grad_output, positions, num_positions))
    np.add.at(gradient, np.asarray(positions), np.asarray(grad_output).astype(gradient.dtype))
    return gradient


def gradient_keeps_integers(grad_output: Array, positions: Array, num_positions: int) -> Array:
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    return right.astype(np.asarray(grad_output).dtype)


def gradient_wraps_round(grad_output: Array, positions: Array, num_positions: int) -> Array:
    positions = integers(positions)
    inside = np.where((positions < 0) & (positions >= -num_positions), 0, positions)
    learned.lookup_gradient(grad_output, inside, num_positions)
    inside = np.where(positions < 0, positions + num_positions, positions)
    return learned.lookup_gradient(grad_output, inside, num_positions)


def gradient_drops_outside(grad_output: Array, positions: Array, num_positions: int) -> Array:
    positions, grad_output = integers(positions), np.asarray(grad_output)
    if num_positions < 0 or grad_output.shape[:-1] != positions.shape:
        return learned.lookup_gradient(grad_output, positions, num_positions)
    inside = (positions >= 0) & (positions < num_positions)
    return learned.lookup_gradient(grad_output[inside], positions[inside], num_positions)


def gradient_truncates(grad_output: Array, positions: Array, num_positions: int) -> Array:
    return learned.lookup_gradient(grad_output, np.asarray(positions).astype(int), num_positions)


def gradient_broadcasts(grad_output: Array, positions: Array, num_positions: int) -> Array:
    positions = learned.as_rows(positions, num_positions)
    grad_output = learned.as_floats(grad_output, "grad_output")
    gradient = np.zeros((num_positions, grad_output.shape[-1]))
    np.add.at(gradient, positions, grad_output)
    return gradient.astype(grad_output.dtype)


def gradient_folds_in_place(grad_output: Array, positions: Array, num_positions: int) -> Array:
    right = learned.lookup_gradient(grad_output, positions, num_positions)
    first: dict[int, Any] = {}
    for place in np.ndindex(np.shape(positions)):
        row = int(np.asarray(positions)[place])
        if row in first:
            grad_output[first[row]] += grad_output[place]
        else:
            first[row] = place
    return right


LOOKUP_GRADIENT = (
    Misconception(
        "lookup-gradient-loses-repeats",
        gradient_loses_repeats,
        "lookup_gradient_repeats",
        "Of a row that was read several times, one share was kept and the others are lost. With an "
        "index, = as well as += writes each row once, with what came last: += reads all of them "
        "before it adds anything.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-means-repeats",
        gradient_means_repeats,
        "lookup_gradient_repeats",
        "The shares of a row were averaged. The loss depends on the row through every place that "
        "read it, and the chain rule adds those up.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-once-per-text",
        gradient_once_per_text,
        "lookup_gradient_repeats",
        "Texts of a batch add up, but a position that comes twice within one text counts once. "
        "With an index, = and += lose repeats there just as they do anywhere.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-of-first-text",
        gradient_of_first_text,
        "lookup_gradient_any_shape",
        "All texts of the batch were taken to have the positions of the first one. With padding "
        "on the left, or packed documents, each text has its own.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-in-reading-order",
        gradient_in_reading_order,
        "lookup_gradient_rows",
        "The gradients were put down in the order of the tokens: row 0, row 1, row 2. They belong "
        "to the rows that the tokens have read, which `positions` names.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-too-short",
        gradient_too_short,
        "lookup_gradient_size",
        "The gradient ends with the last row that was read. It must have the shape of the table, "
        "num_positions rows, or no optimizer can subtract it.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-always-float64",
        gradient_always_float64,
        "lookup_gradient_float32",
        "A float32 gradient came back as float64. Add up in as many digits as you like, and "
        "return the dtype of grad_output.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-keeps-integers",
        gradient_keeps_integers,
        "lookup_gradient_integers",
        "Integer gradients came back as integers. Integers become float64, and small ones would "
        "overflow besides.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-adds-in-small-dtype",
        gradient_adds_in_small_dtype,
        "lookup_gradient_adds_in_float64",
        "The shares were added up in the dtype of grad_output, and of thousands of small ones most "
        "are rounded away beside a large sum. Add up in float64 and cast the sums.",
        "ex-lookup_gradient",
    ),
    Misconception(
        "lookup-gradient-wraps-round",
        gradient_wraps_round,
        "lookup_gradient_refuses_positions",
        "A position below 0 trained a row at the end of the table. np.add.at counts negative "
        "indices from the end like any other indexing: refuse them first.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-drops-outside",
        gradient_drops_outside,
        "lookup_gradient_refuses_positions",
        "Positions off the table were left out of the sum. The lookup could not have read them, "
        "so they tell of a mistake before this call: raise an IndexError.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-truncates",
        gradient_truncates,
        "lookup_gradient_refuses_positions",
        "Positions between two rows were cut to integers, and the row below got the whole share. "
        "A lookup refuses them, and so must its gradient.",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-broadcasts",
        gradient_broadcasts,
        "lookup_gradient_refuses_shapes",
        "A gradient of too few rows was stretched over all positions. grad_output must have "
        "exactly the shape that the lookup returned: positions.shape + (dim,).",
        "learned-gradient",
    ),
    Misconception(
        "lookup-gradient-folds-in-place",
        gradient_folds_in_place,
        "lookup_gradient_leaves_input",
        "The shares of a row were added up inside grad_output itself. The layer that handed it "
        "over still needs it; add up in an array of your own.",
        "learned-gradient",
    ),
)

# ------------------------------------------------------------------------------- resize_table


def read_at(table: Array, places: Array) -> Array:
    """The table read at places between its rows, in float64."""
    lower = np.floor(places).astype(int)
    upper = np.minimum(lower + 1, len(table) - 1)
    weight = (places - lower)[:, None]
    return (1 - weight) * table[lower] + weight * table[upper]


def resize_half_pixel(table: Array, new_length: int) -> Array:
    """torch.nn.functional.interpolate does this unless it is told align_corners=True."""
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    if new_length == 1:
        return right
    places = (np.arange(new_length) + 0.5) * len(table) / new_length - 0.5
    return read_at(table, np.clip(places, 0, len(table) - 1)).astype(right.dtype)


def resize_nearest(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    places = np.arange(new_length) * (len(table) - 1) / max(new_length - 1, 1)
    return table[np.rint(places).astype(int)].astype(right.dtype)


def resize_floor(table: Array, new_length: int) -> Array:
    """Places in whole rows, by // or by a cast, so that no fraction is left to weigh with."""
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    places = np.arange(new_length) * (len(table) - 1) // max(new_length - 1, 1)
    return table[places].astype(right.dtype)


def resize_swaps_lengths(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    last = len(table) - 1
    if not last:
        return right
    places = np.arange(new_length) * (new_length - 1) / last
    return read_at(table, np.minimum(places, last)).astype(right.dtype)


def resize_misses_last_row(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    return read_at(table, np.arange(new_length) * len(table) / new_length).astype(right.dtype)


def resize_by_cutting(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    rows = np.minimum(np.arange(new_length), len(table) - 1)
    return table[rows].astype(right.dtype)


def resize_by_empty_rows(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    if new_length <= len(table):
        return right
    return np.concatenate([table, np.zeros_like(right[len(table) :])]).astype(right.dtype)


def resize_by_tiling(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    if new_length <= len(table):
        return right
    return table[np.arange(new_length) % len(table)].astype(right.dtype)


def resize_columns(table: Array, new_length: int) -> Array:
    learned.resize_table(table, new_length)
    return learned.resize_table(np.asarray(table).T, new_length).T


def resize_every_nth_row(table: Array, new_length: int) -> Array:
    right, table = learned.resize_table(table, new_length), np.asarray(table)
    if new_length >= len(table):
        return right
    return table[:: len(table) // new_length][:new_length].astype(right.dtype)


def resize_averages_to_one(table: Array, new_length: int) -> Array:
    right = learned.resize_table(table, new_length)
    return np.mean(table, axis=0, keepdims=True).astype(right.dtype) if new_length == 1 else right


def resize_into_integers(table: Array, new_length: int) -> Array:
    return learned.resize_table(table, new_length).astype(np.asarray(table).dtype)


def resize_always_float64(table: Array, new_length: int) -> Array:
    return learned.resize_table(table, new_length).astype(np.float64)


def resize_places_rounded(table: Array, new_length: int) -> Array:
    """The places take the dtype of the table, which far out tells no two of them apart."""
    right = learned.resize_table(table, new_length)
    places = np.arange(new_length) * (len(table) - 1) / max(new_length - 1, 1)
    places = np.minimum(places.astype(right.dtype), len(table) - 1)
    return read_at(np.asarray(table), places).astype(right.dtype)


def resize_to_nothing(table: Array, new_length: int) -> Array:
    table = learned.as_table(table)
    return learned.resize_table(table, new_length) if new_length > 0 else table[:0]


def resize_in_place(table: Array, new_length: int) -> Array:
    """When a table shrinks no row that is still needed lies before the one that is written."""
    right = learned.resize_table(table, new_length)
    if new_length < len(table) and np.asarray(table).dtype == right.dtype:
        table[:new_length] = right
    return right


RESIZE_TABLE = (
    Misconception(
        "resize-table-half-pixel",
        resize_half_pixel,
        "resize_table_three_to_five",
        "The rows were placed at the centres of equal pieces, as for the pixels of a picture. Here "
        "the ends are fixed: the first row is kept, the last is kept, the rest is spread between.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-nearest",
        resize_nearest,
        "resize_table_three_to_five",
        "Each new row is a copy of the nearest old one, so neighbours share a vector and cannot be "
        "told apart. Between two rows take a weighted mean of both.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-floor",
        resize_floor,
        "resize_table_three_to_five",
        "Each new row is a copy of the old one before its place: the fraction of the place was cut "
        "off. It is the share of the next row, so keep it and mix the two.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-swaps-lengths",
        resize_swaps_lengths,
        "resize_table_three_to_five",
        "The step is upside down: the old and the new length have changed places in it, and a "
        "stretched table runs to its end too fast. From new row to new row the place moves on by "
        "(old_length − 1)/(new_length − 1).",
        "learned-resize",
    ),
    Misconception(
        "resize-table-misses-last-row",
        resize_misses_last_row,
        "resize_table_three_to_five",
        "The step is old_length/new_length, so the last row is never reached, or counts twice. "
        "From the first row to the last there are old_length − 1 steps in the old table and "
        "new_length − 1 in the new one.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-by-cutting",
        resize_by_cutting,
        "resize_table_three_to_five",
        "The old rows stayed where they are, the end was cut off or the last row repeated. "
        "Stretching spreads all old rows over the new length.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-by-empty-rows",
        resize_by_empty_rows,
        "resize_table_three_to_five",
        "Rows of zeros were added at the end. They tell the model nothing; interpolation fills "
        "the places between the rows there are.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-by-tiling",
        resize_by_tiling,
        "resize_table_three_to_five",
        "The table starts over after its end, so a late token has the vector of an early one. "
        "Stretch the table, do not repeat it.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-columns",
        resize_columns,
        "resize_table_three_to_five",
        "The coordinates were interpolated instead of the positions: the vectors have another "
        "width now. Positions are the first axis of the table.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-every-nth-row",
        resize_every_nth_row,
        "resize_table_shrinks",
        "A shorter table was made by taking every n-th row, with n rounded to an integer: what is "
        "left does not reach to the end. Places between two rows are allowed in shrinking too.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-averages-to-one",
        resize_averages_to_one,
        "resize_table_one_row",
        "A table of length 1 was filled with the mean of all rows. Its only token stands at "
        "position 0, and that row is kept.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-into-integers",
        resize_into_integers,
        "resize_table_integers",
        "A table of integers gave integers: the fractions of the rows between are cut off. "
        "Compute in floats, and let integers become float64.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-always-float64",
        resize_always_float64,
        "resize_table_keeps_dtype",
        "A float32 or float16 table came back as float64. Interpolate in float64, and return to "
        "the dtype of the table in the end.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-places-rounded",
        resize_places_rounded,
        "resize_table_long",
        "The places between the rows were held in the dtype of the table. Far out in a long table "
        "it has no fractions left: compute places and weights in float64.",
        "ex-resize_table",
    ),
    Misconception(
        "resize-table-to-nothing",
        resize_to_nothing,
        "resize_table_refuses",
        "A new length of 0 or less gave a table without rows. No model can use it, so it is a "
        "ValueError where it is made, and not a riddle later.",
        "learned-resize",
    ),
    Misconception(
        "resize-table-in-place",
        resize_in_place,
        "resize_table_leaves_input",
        "The shorter table was written into the one that came in, which is overwritten now. The "
        "caller may want to compare the two; write into a new array.",
        "learned-resize",
    ),
)

# --------------------------------------------------------------------------- padded_positions


def counted(token_ids: Array, padding_id: int) -> tuple[Array, Array]:
    """(which tokens are real, how many of its row are up to each)."""
    learned.padded_positions(token_ids, padding_id)
    real = np.asarray(token_ids) != padding_id
    return real, np.cumsum(real, axis=-1)


def padded_counts_all(token_ids: Array, padding_id: int) -> Array:
    real, _ = counted(token_ids, padding_id)
    return np.cumsum(np.ones_like(real, dtype=int), axis=-1) + padding_id


def padded_from_the_left(token_ids: Array, padding_id: int) -> Array:
    """nnsight#673: a batch padded on the left whose real tokens do not start at the first row."""
    real, _ = counted(token_ids, padding_id)
    return np.where(real, padded_counts_all(token_ids, padding_id), padding_id)


def padded_not_masked(token_ids: Array, padding_id: int) -> Array:
    _, count = counted(token_ids, padding_id)
    return count + padding_id


def padded_onto_padding(token_ids: Array, padding_id: int) -> Array:
    """transformers#9116, #10832 are the other side of this: the real rows start one further on."""
    real, count = counted(token_ids, padding_id)
    return np.where(real, padding_id + count - 1, padding_id)


def padded_from_one(token_ids: Array, padding_id: int) -> Array:
    real, count = counted(token_ids, padding_id)
    return np.where(real, count, padding_id)


def padded_with_zero(token_ids: Array, padding_id: int) -> Array:
    real, count = counted(token_ids, padding_id)
    return (padding_id + count) * real


def padded_across_texts(token_ids: Array, padding_id: int) -> Array:
    real, _ = counted(token_ids, padding_id)
    return np.where(real, padding_id + np.cumsum(real).reshape(real.shape), padding_id)


def padded_down_columns(token_ids: Array, padding_id: int) -> Array:
    real, _ = counted(token_ids, padding_id)
    return np.where(real, padding_id + np.cumsum(real, axis=0), padding_id)


def padded_by_one_alone(token_ids: Array, padding_id: int) -> Array:
    counted(token_ids, padding_id)
    return learned.padded_positions(token_ids, 1)


def padded_counts_holes(token_ids: Array, padding_id: int) -> Array:
    real, _ = counted(token_ids, padding_id)
    first = np.argmax(real, axis=-1)[..., None]
    return np.where(real, np.arange(real.shape[-1]) - first + padding_id + 1, padding_id)


def padded_as_floats(token_ids: Array, padding_id: int) -> Array:
    positions = np.full(np.shape(token_ids), float(padding_id))
    positions[...] = learned.padded_positions(token_ids, padding_id)
    return positions


def padded_like_ids(token_ids: Array, padding_id: int) -> Array:
    positions = learned.padded_positions(token_ids, padding_id)
    return positions.astype(np.asarray(token_ids).dtype)


def padded_in_place(token_ids: Array, padding_id: int) -> Array:
    token_ids = np.asarray(token_ids)
    positions = learned.padded_positions(token_ids, padding_id)
    if token_ids.dtype == int:  # narrower ones may not hold the positions
        token_ids[...] = positions
    return positions


PADDED_POSITIONS = (
    Misconception(
        "padded-positions-counts-all",
        padded_counts_all,
        "padded_positions_published",
        "Padding was counted and numbered like any token. It stays on padding_id, the row that is "
        "kept for it, and the real tokens count without it.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-from-the-left",
        padded_from_the_left,
        "padded_positions_left_padding",
        "Real tokens got the place where they stand in the row. With padding on the left the first "
        "of them then starts late: count real tokens, not places.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-not-masked",
        padded_not_masked,
        "padded_positions_published",
        "Padding got the number of the last real token before it. Only real tokens keep the count "
        "they have; padding goes to padding_id.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-onto-padding",
        padded_onto_padding,
        "padded_positions_published",
        "The first real token shares a row with padding. That row is taken: real tokens start at "
        "padding_id + 1, which is why 512 tokens need 514 rows when padding_id is 1.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-from-one",
        padded_from_one,
        "padded_positions_published",
        "Real tokens start at 1 whatever padding_id is. That is right for padding_id 0 alone; in "
        "general they count on from padding_id + 1.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-with-zero",
        padded_with_zero,
        "padded_positions_published",
        "Padding got position 0. It has a row of its own, number padding_id, and that is 0 only "
        "if padding_id is.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-across-texts",
        padded_across_texts,
        "padded_positions_published",
        "The count runs on from one text of the batch into the next. Each row starts anew at "
        "padding_id + 1.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-down-columns",
        padded_down_columns,
        "padded_positions_published",
        "The count runs down the batch instead of along each text. The sequence is the last axis.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-by-one-alone",
        padded_by_one_alone,
        "padded_positions_other_ids",
        "The padding id is 1 whatever was passed. RoBERTa's is 1, others have 0 or 50256: use the "
        "argument.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-counts-holes",
        padded_counts_holes,
        "padded_positions_between",
        "From the first real token on every place was counted, padding between real tokens too. "
        "Padding is never given a number, wherever it stands.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-as-floats",
        padded_as_floats,
        "padded_positions_integers",
        "The positions are floats. They are rows of a table, and a lookup refuses anything but "
        "integers.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-like-ids",
        padded_like_ids,
        "padded_positions_narrow_ids",
        "The positions have the dtype of the ids, and in a long row they overflow it: after 127 "
        "or 255 comes a negative number or 0. Count in a wide integer.",
        "learned-offsets",
    ),
    Misconception(
        "padded-positions-in-place",
        padded_in_place,
        "padded_positions_leaves_input",
        "The token ids were overwritten by their positions. The model still has to look up their "
        "word vectors; write into a new array.",
        "learned-offsets",
    ),
)

# ----------------------------------------------------------------- LearnedPositionalEmbedding


def embedding(
    max_len: int,
    dim: int,
    forward: Callable[..., Any],
    setup: Callable[[Any], None] = lambda module: None,
    refuse: bool = True,
) -> Any:
    """A torch module with a `weight` whose forward(module, x, offset) is given.

    Unless told not to, it refuses what the reference refuses. torch is imported here, since it
    costs a second that NumPy's exercises need not pay.
    """
    import torch

    from solutions.with_torch.learned import LearnedPositionalEmbedding

    class Positions(LearnedPositionalEmbedding):
        def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
            if refuse:
                super().forward(x.detach().clone(), offset)
            result: torch.Tensor = forward(self, x, offset)
            return result

    module = Positions(max_len, dim)
    setup(module)
    return module


def embedding_ignores_offset(max_len: int, dim: int) -> Any:
    return embedding(max_len, dim, lambda m, x, offset: (x + m.weight[: x.shape[1]]).to(x.dtype))


def embedding_rows_alone(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        return module.weight[offset : offset + x.shape[1]].to(x.dtype).expand(x.shape)

    return embedding(max_len, dim, forward)


def embedding_scales(max_len: int, dim: int) -> Any:
    """The Transformer multiplies its word vectors by √d_model (section 3.4), but not here."""

    def forward(module: Any, x: Any, offset: int) -> Any:
        return (x * math.sqrt(dim) + module.weight[offset : offset + x.shape[1]]).to(x.dtype)

    return embedding(max_len, dim, forward)


def embedding_along_batch(max_len: int, dim: int) -> Any:
    """numpy-transformer#1, with a learned table: every token of text b gets the row of b."""

    def forward(module: Any, x: Any, offset: int) -> Any:
        import torch

        rows = (offset + torch.arange(len(x))) % max_len
        return (x + module.weight[rows][:, None]).to(x.dtype)

    return embedding(max_len, dim, forward)


def embedding_not_trained(max_len: int, dim: int) -> Any:
    def setup(module: Any) -> None:
        table = module.weight.detach()
        del module.weight
        module.register_buffer("weight", table)

    def forward(module: Any, x: Any, offset: int) -> Any:
        return (x + module.weight[offset : offset + x.shape[1]]).to(x.dtype)

    return embedding(max_len, dim, forward, setup)


def embedding_padding_row(max_len: int, dim: int) -> Any:
    """transformers#10200: padding_idx belongs to the word table; here it stops a real position."""

    def setup(module: Any) -> None:
        import torch

        with torch.no_grad():
            module.weight[1:2].zero_()

    def forward(module: Any, x: Any, offset: int) -> Any:
        import torch

        places = torch.arange(offset, offset + x.shape[1])
        padding = 1 if max_len > 1 else None
        rows = torch.nn.functional.embedding(places, module.weight, padding_idx=padding)
        return (x + rows).to(x.dtype)

    return embedding(max_len, dim, forward, setup)


def embedding_short_slice(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        if offset < 0 or x.shape[-1] != dim or x.ndim != 3:
            raise ValueError("offset below 0, or x of another shape")
        return (x + module.weight[offset : offset + x.shape[1]]).to(x.dtype)

    return embedding(max_len, dim, forward, refuse=False)


def embedding_repeats_last_row(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        import torch

        if offset < 0 or x.shape[-1] != dim or x.ndim != 3:
            raise ValueError("offset below 0, or x of another shape")
        places = torch.arange(offset, offset + x.shape[1]).clamp(max=max_len - 1)
        return (x + module.weight[places]).to(x.dtype)

    return embedding(max_len, dim, forward, refuse=False)


def embedding_wraps_round(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        import torch

        places = torch.arange(offset, offset + x.shape[1])
        if offset + x.shape[1] > max_len or x.shape[-1] != dim or x.ndim != 3:
            raise ValueError(f"{offset + x.shape[1]} positions of {max_len}")
        return (x + module.weight[places]).to(x.dtype)

    return embedding(max_len, dim, forward, refuse=False)


def embedding_promotes(max_len: int, dim: int) -> Any:
    return embedding(max_len, dim, lambda m, x, offset: x + m.weight[offset : offset + x.shape[1]])


def embedding_one_hot(max_len: int, dim: int) -> Any:
    """diffusers#13920 in another place: under autocast a matrix product is taken in bfloat16."""

    def forward(module: Any, x: Any, offset: int) -> Any:
        import torch

        places = torch.arange(offset, offset + x.shape[1])
        picks = torch.nn.functional.one_hot(places, max_len).to(module.weight.dtype)
        return (x + picks @ module.weight).to(x.dtype)

    return embedding(max_len, dim, forward)


def embedding_in_place(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        x += module.weight[offset : offset + x.shape[1]]
        return x

    return embedding(max_len, dim, forward)


def embedding_stores_positions(max_len: int, dim: int) -> Any:
    def setup(module: Any) -> None:
        import torch

        module.register_buffer("position_ids", torch.arange(max_len))

    def forward(module: Any, x: Any, offset: int) -> Any:
        places = module.position_ids[offset : offset + x.shape[1]].long()
        return (x + module.weight[places]).to(x.dtype)

    return embedding(max_len, dim, forward, setup)


def embedding_broadcasts(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        end = offset + x.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(f"{end} positions of {max_len}")
        return (x + module.weight[offset:end]).to(x.dtype)

    return embedding(max_len, dim, forward, refuse=False)


def embedding_without_gradients(max_len: int, dim: int) -> Any:
    def forward(module: Any, x: Any, offset: int) -> Any:
        return (x.detach() + module.weight[offset : offset + x.shape[1]]).to(x.dtype)

    return embedding(max_len, dim, forward)


LEARNED_POSITIONAL_EMBEDDING = (
    Misconception(
        "learned-embedding-ignores-offset",
        embedding_ignores_offset,
        "learned_positional_embedding_offset",
        "The offset changes nothing: every call reads from row 0. When a model writes token by "
        "token, each new one would stand at position 0.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-rows-alone",
        embedding_rows_alone,
        "learned_positional_embedding_adds_rows",
        "The result is the position vectors alone, and the words are gone. Add the rows to x.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-scales",
        embedding_scales,
        "learned_positional_embedding_adds_rows",
        "x was multiplied by √dim before the rows were added. The Transformer does that in its "
        "word embedding; this module adds, and does nothing else.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-along-batch",
        embedding_along_batch,
        "learned_positional_embedding_adds_rows",
        "All tokens of a text got one row, and each text of the batch another. The sequence is the "
        "axis in the middle: token t gets row t, in every text alike.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-not-trained",
        embedding_not_trained,
        "learned_positional_embedding_gradient",
        "The weight is a buffer, or does not require a gradient: it would stay as random as it "
        "starts. What is to be trained is a parameter.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-padding-row",
        embedding_padding_row,
        "learned_positional_embedding_gradient",
        "One row of the weight gets no gradient: padding_idx starts it at zero and keeps it there. "
        "In a table of positions that row is a real place of the text.",
        "learned-offsets",
    ),
    Misconception(
        "learned-embedding-short-slice",
        embedding_short_slice,
        "learned_positional_embedding_refuses_past_the_end",
        "The slice ran past the table and came out short, and when one row is left it is added to "
        "all tokens. A slice never complains: compare offset + seq with max_len first.",
        "learned-end",
    ),
    Misconception(
        "learned-embedding-repeats-last-row",
        embedding_repeats_last_row,
        "learned_positional_embedding_refuses_past_the_end",
        "Tokens past the table all got its last row, as if they stood in one place. Raise a "
        "ValueError that names offset + seq and max_len.",
        "learned-end",
    ),
    Misconception(
        "learned-embedding-wraps-round",
        embedding_wraps_round,
        "learned_positional_embedding_refuses_negative",
        "A negative offset read rows from the end of the table. No token stands "
        "before the first one, so a ValueError is due.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-promotes",
        embedding_promotes,
        "learned_positional_embedding_bfloat16",
        "bfloat16 vectors came back as float32, since a sum takes the wider of two dtypes. Every "
        "later layer would run at that width: return to the dtype of x.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-one-hot",
        embedding_one_hot,
        "learned_positional_embedding_autocast",
        "The rows were picked by a matrix product with one-hot vectors, which autocast takes in "
        "bfloat16: the weight loses digits. A slice, or an index, loses none.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-in-place",
        embedding_in_place,
        "learned_positional_embedding_leaves_input",
        "x itself was changed: += writes into the tensor of the caller, who may still need the "
        "word vectors. Return a new one.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-stores-positions",
        embedding_stores_positions,
        "learned_positional_embedding_state",
        "The state_dict has an entry beside the weight. A buffer that can be computed at any time "
        "need not be in a checkpoint: other code, which lacks it, would refuse to load it.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-broadcasts",
        embedding_broadcasts,
        "learned_positional_embedding_refuses_shapes",
        "An x of another shape was stretched until it fitted the rows. Vectors of width 1 are no "
        "vectors of width dim: compare x with the weight before you add.",
        "learned-module",
    ),
    Misconception(
        "learned-embedding-cuts-gradients",
        embedding_without_gradients,
        "learned_positional_embedding_gradients",
        "The numbers are right, but no gradient arrives at x: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-LearnedPositionalEmbedding",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "lookup": LOOKUP,
    "lookup_gradient": LOOKUP_GRADIENT,
    "resize_table": RESIZE_TABLE,
    "padded_positions": PADDED_POSITIONS,
    "LearnedPositionalEmbedding": LEARNED_POSITIONAL_EMBEDDING,
}
