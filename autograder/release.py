"""Makes the student's bundle: notebooks, the public checks, and recorded answers for them.

What would give a solution away is left out, and a leak test looks for it in every file before the
bundle is handed over.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat

from . import course
from .generate import student_notebook
from .running import collected
from .standard import record

MODULES = (
    "__init__ __main__ answers assertions channel cli course doctor exercise gpu local notebooks "
    "nursery report replies results runner running recognise sandbox seccomp second_look session "
    "standard usage warm wire wording worker "
    "commands/__init__ commands/check commands/doctor"
).split()
PINNED = "numpy torch matplotlib pytest psutil jupyterlab ipython ipykernel triton".split()
FOLDER = "positional-encoding"  # what the zip unpacks to
TELLING = 24  # characters; a shorter line gives nothing away
PLAIN = ("import ", "from ", "def ", ") -> ", "class ", "#", '"""', "raise ", "__all__")
DATE = (2017, 6, 12, 0, 0, 0)  # one date for every file: the same course makes the same bundle

README = """# Positional Encoding from Scratch: exercises

    python -m pip install -r requirements.txt
    python -m autograder doctor
    jupyter lab

Open a notebook, write your answers in the cells that say so, and run the `check(...)` cell below
each. In a terminal:

    python -m autograder check {first}.ipynb

The checks in this bundle are the public ones. Your grade also counts hidden checks, which try other
inputs and the rest of what the docstrings promise. Hand in the notebook alone, under its own name.

In Colab: upload the notebook and the bundle's zip file, and run `!unzip -qo {zip}` in a first cell.
"""


class Leak(Exception):
    """Something that gives a solution away is in the bundle."""


def release(out: Path) -> Path:
    """Write the bundle to the folder `out` and to `out.zip`; returns the zip. Raises Leak."""
    if out.exists() and not (out / "autograder").is_dir():
        raise course.CourseError(f"{out} exists and is no bundle: name another folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    zipped = out.with_name(out.name + ".zip")
    with tempfile.TemporaryDirectory(dir=out.parent) as making:
        bundle = Path(making, FOLDER)
        _fill(bundle, zipped.name)
        for place in leaks(bundle):
            raise Leak(place)
        archive = Path(making, zipped.name)
        _zip(bundle, archive)
        shutil.rmtree(out, ignore_errors=True)
        bundle.rename(out)
        archive.replace(zipped)
    return zipped


def _fill(bundle: Path, zip_name: str) -> None:
    package = bundle / "autograder"
    here = Path(__file__).resolve().parent
    for module in [*MODULES, "checks/__init__"]:
        target = package / f"{module}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here / f"{module}.py", target)
    for chapter in course.chapters():
        nbformat.write(student_notebook(chapter), bundle / f"{chapter}.ipynb")
        (package / "checks" / f"{chapter}.py").write_text(public_checks(chapter), "utf-8")
        record(chapter, package / "recorded" / f"{chapter}.zip")
    text = README.format(first=course.chapters()[0], zip=zip_name)
    (bundle / "README.md").write_text(text, "utf-8")
    (bundle / "requirements.txt").write_text(_requirements(), "utf-8")


def _zip(bundle: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(p for p in bundle.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(str(Path(FOLDER) / file.relative_to(bundle)), DATE)
            out.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def public_checks(chapter: str) -> str:
    """The file of checks without its hidden ones, and without helpers that only these use."""
    text = (course.CHECKS / f"{chapter}.py").read_text("utf-8")
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    hidden = {f"check_{name}" for name in hidden_names(chapter)}
    dropped = [node for node in tree.body if getattr(node, "name", "") in hidden]
    while idle := _idle([node for node in tree.body if node not in dropped]):
        dropped += idle
    for node in sorted(dropped, key=lambda n: -n.lineno):
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(d.lineno for d in decorators)])
        del lines[start - 1 : node.end_lineno]
    return "".join(lines)


def hidden_names(chapter: str) -> set[str]:
    """The ids of a chapter's hidden checks."""
    return {check.name for check in collected(chapter) if check.hidden}


def leaks(bundle: Path) -> Iterator[str]:
    """Every place of a bundle that shows a solution, a misconception or a hidden check."""
    for folder in ("solutions", "autograder/misconceptions"):
        if (bundle / folder).exists():
            yield f"{folder} is in the bundle"
    secrets: dict[str, str] = {}
    for chapter in course.chapters():
        secrets |= {f"check_{name}": "a hidden check" for name in hidden_names(chapter)}
        secrets |= dict.fromkeys(solution_lines(chapter), "a line of a solution")
    for file in sorted(p for p in bundle.rglob("*") if p.is_file() and p.suffix != ".zip"):
        text = file.read_text("utf-8", errors="replace")
        if file.suffix == ".ipynb":
            cells = nbformat.reads(text, as_version=4).cells
            text = "\n".join(cell.source for cell in cells)
        stripped = {line.strip() for line in text.splitlines()}
        for secret, what in secrets.items():
            if secret in stripped or (secret.isidentifier() and _word(secret, text)):
                yield f"{file.relative_to(bundle)} holds {what}: {secret}"


def _word(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def solution_lines(chapter: str) -> set[str]:
    """Lines of the chapter's references that say something and stand in no stub."""
    rooms = [course.ROOT / "solutions" / room for room in course.ROOMS]
    files = [room / f"{chapter}.py" for room in rooms]
    files += [room / "kernels" / f"{e.name}.py" for room in rooms for e in course.manifest(chapter)]
    lines = {line.strip() for f in files if f.exists() for line in _code(f.read_text("utf-8"))}
    given = {
        line.strip() for cell in student_notebook(chapter).cells for line in cell.source.split("\n")
    }
    return {line for line in lines - given if len(line) >= TELLING and not line.startswith(PLAIN)}


def _code(text: str) -> list[str]:
    """The lines of a module without its docstrings: those are words about an answer, and repeat."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [""] * (last - first)
    return lines


def _idle(nodes: list[ast.stmt]) -> list[ast.stmt]:
    """The helpers that nothing else among these statements uses."""
    uses = [{n.id for n in ast.walk(node) if isinstance(n, ast.Name)} for node in nodes]
    counts = Counter(name for used in uses for name in used)
    found = []
    for node, own in zip(nodes, uses, strict=True):
        names = _names(node)
        kept = any(name == "EXERCISES" or name.startswith("check_") for name in names)
        elsewhere = any(counts[name] > (name in own) for name in names)
        if names and not kept and not elsewhere:
            found.append(node)
    return found


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    return set()


def _requirements() -> str:
    """The pins of the course that a student needs."""
    kept = []
    for line in (course.ROOT / "requirements.txt").read_text("utf-8").splitlines():
        name = _package(line)
        if name in PINNED:
            kept.append(line.split("#")[0].strip())
    missing = set(PINNED) - set(map(_package, kept))
    if missing:
        raise course.CourseError(f"requirements.txt pins no {', '.join(sorted(missing))}")
    return "\n".join(kept) + "\n"


def _package(line: str) -> str:
    """The name at the beginning of a requirement."""
    return re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()
