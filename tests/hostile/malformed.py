"""Files that are no notebook, or barely one."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

from .attack import CHAPTER, Attack, code, unreadable

FILE = f"{CHAPTER}.ipynb"


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(FILE, bytes(50 << 20))
    return file.getvalue()


class Bomb:
    def __reduce__(self) -> Any:
        return os.system, ("touch $HOSTILE_MARK",)


def notebook(**fields: Any) -> bytes:
    return json.dumps(
        {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | fields
    ).encode()


def fifo(folder: Path) -> None:
    os.mkfifo(folder / FILE)


def link_to(target: str) -> Any:
    def make(folder: Path) -> None:
        (folder / FILE).symlink_to(target)

    return make


def link_to_canary(folder: Path) -> None:
    (folder / FILE).symlink_to(Path(os.environ["HOSTILE_CANARY"]))


def hard_link(folder: Path) -> None:
    os.link(Path(os.environ["HOSTILE_CANARY"]), folder / FILE)


def linked_chapter(folder: Path) -> None:
    folder.rmdir()
    folder.symlink_to(folder.parent.parent / "a-honest" / CHAPTER)


def linked_student(folder: Path) -> None:
    folder.rmdir()
    student = folder.parent
    student.rmdir()
    student.symlink_to(student.parent / "a-honest")


def a_folder(folder: Path) -> None:
    (folder / FILE).mkdir()


def chapter_is_a_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("x = 1")


def chapter_is_a_pipe(folder: Path) -> None:
    folder.rmdir()
    os.mkfifo(folder)


def chapter_is_a_loop(folder: Path) -> None:
    folder.rmdir()
    folder.symlink_to(folder)


def terabyte_beside(folder: Path) -> None:
    with (folder / "big.bin").open("wb") as file:
        file.truncate(1 << 40)


def thousands_beside(folder: Path) -> None:
    for number in range(1500):
        (folder / f"{number}.txt").touch()


def a_loop(folder: Path) -> None:
    (folder / FILE).symlink_to(folder / FILE)


def sparse(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(1 << 40)


def unreadable_mode(folder: Path) -> None:
    (folder / FILE).write_text("{}")
    (folder / FILE).chmod(0)


def many_cells(made: dict[str, Any]) -> None:
    made["cells"] += [code(f"many-{number}", "") for number in range(100_000)]


def large(made: dict[str, Any]) -> None:
    text = {"output_type": "stream", "name": "stdout", "text": "x" * (19 << 20)}
    made["cells"][-1]["outputs"] = [text]


def nul_bytes(made: dict[str, Any]) -> None:
    made["cells"].append(code("nul", "x = 1\0\nprint('\0')"))


def surrogates(made: dict[str, Any]) -> None:
    made["cells"].append(code("surrogate", "x = '\ud800'  # \udfff"))
    made["metadata"]["\ud800"] = "\udc00"


def numbers(made: dict[str, Any]) -> None:
    made["metadata"] |= {"nan": float("nan"), "infinity": float("inf"), "large": 10**4000}
    made["cells"][0]["execution_count"] = 10**4000


def same_ids(made: dict[str, Any]) -> None:
    for cell in made["cells"]:
        cell["id"] = "same"


def no_ids(made: dict[str, Any]) -> None:
    for cell in made["cells"]:
        del cell["id"]


def odd_types(made: dict[str, Any]) -> None:
    """Cells, sources, outputs and metadata of every wrong type beside right answers."""
    odd = [None, 5, "text", [], {}, [[]], True, {"cell_type": "code"}, {"source": "x = 1"}]
    odd += [{"cell_type": 5, "source": 5}, {"cell_type": "code", "source": {"a": 1}}]
    odd += [{"cell_type": "code", "source": [1, None, ["x"], "y = 2"], "metadata": []}]
    odd += [{"cell_type": "code", "source": "z = 3", "outputs": "x", "metadata": {"nbgrader": 5}}]
    odd += [{"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": []}}}]
    made["cells"] += odd
    made |= {"nbformat_minor": "5", "metadata": {"kernelspec": [], "language_info": 5}}


def odd_outputs(made: dict[str, Any]) -> None:
    odd = [{}, {"output_type": "execute_result"}, {"output_type": 5}, {"output_type": "stream"}]
    odd += [
        {"output_type": "error", "traceback": 5},
        {"output_type": "x", "data": {"text/plain": 1}},
    ]
    for cell in made["cells"]:
        cell["outputs"], cell["execution_count"] = odd, "five"


DUPLICATES = b'{"cells": [], "cells": 5, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
OLD = json.dumps({
    "nbformat": 3, "nbformat_minor": 0, "metadata": {},
    "worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1", "outputs": []}]}],
}).encode()  # fmt: skip

ATTACKS: list[Attack] = [
    unreadable("empty-file", "hands in no byte", b""),
    unreadable("no-json", "hands in text", b"{ this is no notebook"),
    unreadable("no-text", "hands in bytes that are no UTF-8", b"\xff\xfe{\x00}\x00"),
    unreadable("another-encoding", "hands in UTF-16", notebook().decode().encode("utf-16")),
    unreadable("compressed", "hands in a compressed file", gzip.compress(bytes(50 << 20))),
    unreadable("archive", "hands in an archive that grows", zipped()),
    unreadable("pickle", "hands in a pickle that acts when it is read", pickle.dumps(Bomb())),
    unreadable("deep-json", "nests a hundred thousand lists", b"[" * 100_000),
    unreadable("deep-json-inside", "nests them in a notebook's metadata",
               b'{"cells": [], "metadata": ' + b'{"a":' * 90_000 + b"1" + b"}" * 90_000
               + b', "nbformat": 4, "nbformat_minor": 5}'),
    unreadable("long-number", "writes a number of a million digits",
               b'{"cells": [], "nbformat": 4, "x": ' + b"9" * 10**6 + b"}"),
    unreadable("duplicate-keys", "gives its cells twice, the second time a number", DUPLICATES),
    unreadable("a-list", "hands in a list", b"[]"),
    unreadable("a-number", "hands in a number", b"4"),
    unreadable("a-word", "hands in null", b"null"),
    unreadable("cells-are-a-dict", "has an object in the place of its cells", notebook(cells={})),
    unreadable("old-format", "hands in a notebook of format 3", OLD),
    unreadable("too-large", "hands in 21 MiB", notebook(x="x" * (21 << 20))),
    unreadable("sparse", "hands in a terabyte of nothing", make=sparse),
    unreadable("fifo", "hands in a pipe on which a reader waits", make=fifo),
    unreadable("device", "hands in a link to a device", make=link_to("/dev/zero")),
    unreadable("link", "hands in a link to a file of the grader's", make=link_to_canary),
    unreadable("link-to-memory", "hands in a link to the grader's own memory",
               make=link_to("/proc/self/environ")),
    unreadable("linked-chapter", "links its folder to another student's", make=linked_chapter),
    unreadable("linked-student", "is a link to another student's folder", make=linked_student),
    unreadable("link-to-itself", "hands in a link to itself", make=a_loop),
    unreadable("hard-link", "hands in another name of a file of the grader's", make=hard_link),
    unreadable("a-folder", "hands in a folder of the notebook's name", make=a_folder),
    unreadable("unreadable", "hands in a file that may not be read", make=unreadable_mode),
    unreadable("chapter-is-a-file", "hands in a file for a folder", make=chapter_is_a_file),
    unreadable("chapter-is-a-pipe", "hands in a pipe for a folder", make=chapter_is_a_pipe),
    unreadable("chapter-is-a-loop", "has a link to itself for a folder", make=chapter_is_a_loop),
    Attack("a-terabyte-beside", "lays a terabyte of nothing beside its notebook", cells=("x = 1",),
           make=terabyte_beside),
    Attack("thousands-beside", "lays thousands of files beside its notebook", cells=("x = 1",),
           make=thousands_beside),
    Attack("new-format", "claims a format of the future",
           edit=lambda n: n.update(nbformat=99, nbformat_minor=99)),
    Attack("many-cells", "hands in a hundred thousand cells", edit=many_cells),
    Attack("large", "hands in 19 MiB", edit=large),
    Attack("nul-bytes", "has cells with NUL bytes", edit=nul_bytes),
    Attack("surrogates", "has half characters in its code and its metadata", edit=surrogates),
    Attack("odd-numbers", "has NaN, infinity and numbers of thousands of digits", edit=numbers),
    Attack("same-ids", "has cells of one and the same id", edit=same_ids),
    Attack("no-ids", "has cells without ids", edit=no_ids),
    Attack("odd-types", "has the wrong type everywhere", edit=odd_types),
    Attack("odd-outputs", "has outputs that are none", edit=odd_outputs),
]  # fmt: skip
