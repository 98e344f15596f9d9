"""Code as a row of tokens that comments, layout and the choice of names do not change.

Two answers are compared by these rows. One pattern reads any text, so that a cell that is no
Python, or no Python yet, is compared as well as it can be, in time that grows with its length.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import keyword
import re
from dataclasses import dataclass

import numpy as np

LENGTH = 12  # tokens of a shingle: right answers written apart then share at most 0.09 of them
MOST = 50_000  # tokens of one submission that are read; a chapter's notebook has about 4,000
TELLING = 80  # characters of a token: what is kept of each must stay small
KEPT = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins)])
NAME, STRING = "a name", "a string"  # no token can be written so
BASE = np.uint64(0x9E3779B97F4A7C15)
# A quotation mark that is never closed takes the rest of its line, and three of them the rest of
# the text. No repeat gives back what it took: hostile text costs one look at each character.
TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*+)
    |(?P<string>[bBfFrRtTuU]{0,2}+(?:
        \"{3}(?:[^"\\]++|\\.|"(?!""))*+(?:\"{3})? | '{3}(?:[^'\\]++|\\.|'(?!''))*+(?:'{3})?
        |"(?:[^"\\\n]++|\\.)*+"? | '(?:[^'\\\n]++|\\.)*+'?))
    |(?P<number>\.?\d[\w.]*+)
    |(?P<name>[^\W\d]\w*+)
    |(?P<mark>[^\w\s\\])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass
class Tokens:
    """A text's tokens: `plain` as written, `normal` with one word for all names, and their place.

    `places` holds (start, end) of each token in the text.
    """

    plain: list[str]
    normal: list[str]
    places: list[tuple[int, int]]


def tokens_of(text: str) -> Tokens:
    """The tokens of a text without comments, docstrings, layout and trailing commas.

    Keywords, built-in names and what follows a dot stay: a library's `sum` is no name that a
    student chose. Numbers stay; the words of a string do not.

    >>> tokens_of("def f(a, b,):  # both\\n    return a.sum() + b").normal[:6]
    ['def', 'a name', '(', 'a name', ',', 'a name']
    """
    found = Tokens([], [], [])
    depth, before = 0, 0
    for match in TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        begins_line = not before or "\n" in text[before : match.start()]
        before = match.end()
        if kind == "comment" or (
            kind == "string" and begins_line and not depth and _ends_line(text, before)
        ):
            continue
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if found.plain[-1:] == [","]:
                for row in (found.plain, found.normal, found.places):
                    row.pop()
        normal = STRING if kind == "string" else token
        if kind == "name" and token not in KEPT and found.plain[-1:] != ["."]:
            normal = NAME
        found.plain.append(token)
        found.normal.append(normal)
        found.places.append(match.span())
        if len(found.plain) == MOST:
            break
    return found


def _ends_line(text: str, at: int) -> bool:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return text[at : at + 1] in ("", "\n", "\r", "#")


def shingles(tokens: list[str]) -> np.ndarray:
    """One number for each stretch of LENGTH tokens, in order; alike stretches have one number.

    A polynomial in the tokens' own numbers, modulo 2^64: shape (len(tokens) - LENGTH + 1,).
    """
    size = max(0, len(tokens) - LENGTH + 1)
    numbers = np.fromiter((_number(t[:TELLING]) for t in tokens), np.uint64, len(tokens))
    total = np.zeros(size, np.uint64)
    for offset in range(LENGTH if size else 0):
        total = total * BASE + numbers[offset : offset + size]
    return total ^ (total >> np.uint64(32))  # the low bits of a product know little of the high


@functools.lru_cache(maxsize=1 << 16)
def _number(token: str) -> int:
    text = token.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
