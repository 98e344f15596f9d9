"""Finds submissions of one chapter that share more of their own code than chance explains.

What it finds is a reason to look, and no proof. Everything that the course gave out is taken away
first, then everything that several in the class wrote alike: short right answers look alike.
MinHash and LSH find the candidates, so that nobody is compared with everybody.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from datasketch import MinHash, MinHashLSH

from .code_tokens import LENGTH, shingles, tokens_of
from .notebooks import Malformed, cells_of, read_bytes

ALIKE = 0.3  # of two submissions' own shingles together; answers written apart share below 0.1
LEAST = 25  # shingles: who has fewer of their own cannot be compared, nor tell anything
SHOWN = 30  # pairs; the rest is counted
LINES = 16  # of an excerpt
SEED = 7  # of the permutations: the same class gives the same pairs
BANDS, ROWS = 42, 3  # a pair alike by 0.3 is a candidate with probability 0.68, by 0.4 with 0.94


@dataclass(frozen=True)
class Pair:
    """Two submissions: how alike they are, and the longest stretch that they share.

    `exact` and `estimated` are Jaccard's index, with names made one; `as_written` the same with
    the names as they stand; `shared` the number of shingles that both have and few others.
    """

    students: tuple[str, str]
    estimated: float
    exact: float
    as_written: float
    shared: int
    excerpts: tuple[str, str]


@dataclass
class Findings:
    """The pairs of a chapter, the most alike first, and what was not looked at.

    A stretch that more than `limit` submissions have counts for nobody.
    """

    limit: int
    compared: int = 0
    too_short: int = 0
    unreadable: list[str] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    found: int = 0


class Released:
    """What the course gave out, so that no student is taken to have written it."""

    def __init__(self, cells: Iterable[str]) -> None:
        self.cells = {cell.strip() for cell in cells}
        tokens = tokens_of("\n".join(sorted(self.cells)))
        self.normal = np.unique(shingles(tokens.normal))
        self.plain = np.unique(shingles(tokens.plain))

    def own(self, file: Path) -> str:
        """The code of a submission without the cells that are still as they were given out."""
        for folder in (file.parent, file.parent.parent):
            if folder.is_symlink():  # grading does not follow it either
                raise Malformed(f"{folder.name} is a link to another folder")
        cells = cells_of(read_bytes(file))
        return "\n".join(cell for cell in cells if cell.strip() not in self.cells)


def find(files: Iterable[tuple[str, Path]], released: Released) -> Findings:
    """The pairs among these (student, notebook), which are all of one chapter."""
    names, places, sets = [], [], []
    found = Findings(0)
    for student, file in files:
        try:
            tokens = tokens_of(released.own(file))
        except FileNotFoundError:
            continue
        except (Malformed, OSError):
            found.unreadable.append(student)
            continue
        row = shingles(tokens.normal)
        names.append(student)
        places.append(file)
        sets.append(np.unique(row[_free(row, released.normal)]))
    found.compared, found.limit = len(sets), limit(len(sets))
    sets = _rare(sets, found.limit)
    found.too_short = sum(len(own) < LEAST for own in sets)
    pairs = sorted(
        (-exact, -shared, names[one], names[other], one, other, estimated)
        for one, other, estimated, exact, shared in _alike(sets)
    )
    found.found = len(pairs)
    for less, fewer, *_, one, other, estimated in pairs[:SHOWN]:
        texts = released.own(places[one]), released.own(places[other])
        common = np.intersect1d(sets[one], sets[other])
        students = names[one], names[other]
        written, excerpts = _as_written(texts, released), _longest(texts, common)
        found.pairs.append(Pair(students, estimated, -less, written, -fewer, excerpts))
    return found


def limit(submissions: int) -> int:
    """How many may share a stretch before it counts as what one writes.

    At most a third of a small class, ten from thirty on, and one in fifty of a large class.
    """
    return max(2, min(10, submissions // 3), submissions // 50)


def _free(row: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Which stretches touch no token that stands in a stretch of the released notebook."""
    if not row.size:
        return np.zeros(0, bool)
    steps = np.zeros(row.size + LENGTH, np.int64)
    (starts,) = np.nonzero(np.isin(row, given))
    steps[starts] += 1
    np.subtract.at(steps, starts + LENGTH, 1)
    taken = np.concatenate([[0], np.cumsum(np.cumsum(steps)[:-1] > 0)])  # tokens, up to each
    return taken[LENGTH:] == taken[:-LENGTH]


def _rare(sets: list[np.ndarray], most: int) -> list[np.ndarray]:
    """The sets without what more than `most` of them hold."""
    if not sets:
        return []
    values, counts = np.unique(np.concatenate(sets), return_counts=True)
    common = values[counts > most]
    return [own[np.isin(own, common, invert=True, assume_unique=True)] for own in sets]


def _alike(sets: list[np.ndarray]) -> Iterable[tuple[int, int, float, float, int]]:
    """(one, other, estimated, exact, shared) of each pair that is alike enough."""
    first = MinHash(BANDS * ROWS, seed=SEED)
    index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
    sketches: dict[int, MinHash] = {}
    for other, own in enumerate(sets):
        if len(own) < LEAST:
            continue
        sketch = MinHash(
            seed=SEED, hashfunc=int, permutations=first.permutations, num_perm=len(first),
            scheme=first.scheme,
        )  # fmt: skip
        sketch.update_batch(own & np.uint64(0xFFFFFFFF))
        for one in sorted(index.query(sketch)):
            shared = np.intersect1d(sets[one], own, assume_unique=True).size
            exact = shared / (len(sets[one]) + len(own) - shared)
            if exact >= ALIKE and shared >= LEAST:
                yield one, other, sketch.jaccard(sketches[one]), exact, shared
        index.insert(other, sketch)
        sketches[other] = sketch


def _as_written(texts: tuple[str, str], released: Released) -> float:
    """The index of two texts whose names stay as they are: low beside `exact` means renamed."""
    rows = [shingles(tokens_of(text).plain) for text in texts]
    one, other = (np.unique(row[_free(row, released.plain)]) for row in rows)
    shared = np.intersect1d(one, other, assume_unique=True).size
    return shared / max(1, len(one) + len(other) - shared)


def _longest(texts: tuple[str, str], common: np.ndarray) -> tuple[str, str]:
    """The stretch of both texts that holds most of `common`, as lines of each.

    A stretch goes on over what others wrote too, but begins and ends with what they did not.
    """
    tokens = [tokens_of(text) for text in texts]
    one, other = (shingles(t.normal) for t in tokens)
    first = {int(value): at for at, value in reversed(list(enumerate(other)))}
    counts = np.isin(one, common)
    best = weight = (0, 0, 0)  # how many of `common`, its first in `one`, its last there
    previous = -2
    for at, value in enumerate(one.tolist()):
        there = first.get(value, -2)
        if there < 0 or there != previous + 1:
            weight = (0, 0, 0)
        if there >= 0 and counts[at]:
            weight = (weight[0] + 1, weight[1] if weight[0] else at, at)
            best = max(best, weight, key=lambda w: w[0])
        previous = there
    begin, end = best[1], best[2]
    there = first.get(int(one[begin]), 0) if one.size else 0
    return (
        _lines(texts[0], tokens[0].places, begin, end),
        _lines(texts[1], tokens[1].places, there, there + end - begin),
    )


def _lines(text: str, places: list[tuple[int, int]], begin: int, end: int) -> str:
    """The whole lines from one shingle to another, at the left margin, of bounded length."""
    if not places:
        return ""
    start = text.rfind("\n", 0, places[begin][0]) + 1
    stop = text.find("\n", places[end + LENGTH - 1][1])
    lines = textwrap.dedent(text[start : stop if stop >= 0 else len(text)]).split("\n")
    lines = [line for line in lines if line.strip()]
    more = [f"… {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([line[:160] for line in lines[:LINES]] + more)
