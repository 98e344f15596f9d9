"""Print a CSV file as an aligned table.

`make course` ends with the grades, and a terminal should show them as columns whatever
is in a name.

    python tools/table.py class/grades/grades.csv
"""

import csv
import sys
from pathlib import Path

WIDEST = 44


def plain(text: str) -> str:
    """Return `text` on one line, without control characters, cut to `WIDEST`.

    >>> plain("ada\\x1b[31m\\nlovelace")
    'ada?[31m?lovelace'
    """
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"


def is_number(text: str) -> bool:
    """Tell whether a column's entry reads as a number; such columns are set flush right."""
    try:
        float(text)
    except ValueError:
        return text == ""
    return True


def table(rows: list[list[str]]) -> str:
    """Return rows, the first of them the header, as text with aligned columns."""
    width = max((len(row) for row in rows), default=0)
    cells = [[plain(cell) for cell in row] + [""] * (width - len(row)) for row in rows]
    columns = list(zip(*cells, strict=True))
    sizes = [max(map(len, column)) for column in columns]
    right = [all(map(is_number, column[1:])) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(size) if flush else cell.ljust(size)
            for cell, size, flush in zip(row, sizes, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join([*lines[:1], "  ".join("-" * size for size in sizes), *lines[1:]])


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with Path(arguments[0]).open(newline="", encoding="utf-8-sig") as file:
        print(table(list(csv.reader(file))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
