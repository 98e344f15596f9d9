"""The rules of the house, as tests that know no chapter: the table of contents is the only list."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import course
from autograder.cli import NAMES, parser

ROOT = course.ROOT
CHAPTERS = course.chapters()
ROOMS = {
    "book": ".md",
    "book/figures": ".js",
    "solutions/with_numpy": ".py",
    "solutions/with_torch": ".py",
    "autograder/checks": ".py",
    "autograder/misconceptions": ".py",
}
PAGES = {"index", "how_exercises_work", "for_instructors", "glossary", "bibliography"}
PAGES |= {"what_the_checks_catch", "before_you_start", "notation"}
PAGES |= {"which_one_when", "cheat_sheet", "interview"}
PAGES |= {"strangers_code", "large_classes"}


def test_the_table_of_contents_lists_chapters() -> None:
    assert CHAPTERS


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_holds_a_file_for_each_chapter_and_no_other(room: str) -> None:
    files = (ROOT / room).glob(f"*{ROOMS[room]}")
    stems = {f.stem for f in files if not f.stem.startswith("_")}
    assert stems - (PAGES if room == "book" else set()) == set(CHAPTERS)


def test_the_table_of_contents_lists_every_page_once() -> None:
    listed = re.findall(r"(?:file|root): book/(\w+)", (ROOT / "_toc.yml").read_text())
    assert sorted(listed) == sorted(f.stem for f in (ROOT / "book").glob("*.md"))


def test_a_page_that_lists_the_mistakes_is_left_out_of_a_book_without_solutions() -> None:
    toc = (ROOT / "_toc.yml").read_text("utf-8")
    for page in (ROOT / "book").glob("*.md"):
        if "```{mistakes}" in page.read_text("utf-8"):
            assert f"file: book/{page.stem} # with solutions only\n" in toc
    assert "grep -v 'with solutions only' _toc.yml" in (ROOT / "Makefile").read_text("utf-8")


def machinery() -> Iterator[Path]:
    rooms = ("checks", "misconceptions")
    for file in sorted((ROOT / "autograder").rglob("*.py")):
        if file.parent.name not in rooms:
            yield file
    yield from sorted((ROOT / "book" / "_ext").glob("*.py"))
    yield from sorted((ROOT / "book" / "_static").glob("*.js"))
    yield from [ROOT / "Makefile", ROOT / "nbgrader_config.py", ROOT / "_config.yml"]
    yield from sorted((ROOT / "tools").iterdir())


@pytest.mark.parametrize("file", list(machinery()), ids=lambda f: str(f.relative_to(ROOT)))
def test_the_machinery_knows_no_chapter(file: Path) -> None:
    """Stems may stand in examples of documentation, nowhere else."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        tree = ast.parse(text)
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        words = [
            n.value
            for n in ast.walk(tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
        ]
        words += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
        words += [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    else:
        text = re.sub(r"bench-\w+|benchmarks/\S+", "", text)  # what measures a kernel names it
        words = [line for line in text.splitlines() if "PYTEST_ARGS" not in line]
    for stem in CHAPTERS:
        for name in [stem, *(e.name for e in course.manifest(stem))]:
            for word in words:
                assert not re.search(rf"\b{name}\b", word), f"{file.name} knows {name}: {word!r}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_checks_import_neither_solutions_nor_misconceptions(chapter: str) -> None:
    tree = ast.parse((course.CHECKS / f"{chapter}.py").read_text("utf-8"))
    modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    for module in modules:
        assert "solutions" not in module and "misconceptions" not in module


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solutions_use_earlier_chapters_of_their_own_room_only(chapter: str) -> None:
    earlier = CHAPTERS[: CHAPTERS.index(chapter)]
    for room in course.ROOMS:
        tree = ast.parse((ROOT / "solutions" / room / f"{chapter}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or "solutions" in str(node.module)):
                source = (node.module or "").split(".")[-1]
                assert source in earlier or source == "kernels", f"{room}/{chapter}: {source}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_chapter_tells_points_as_the_manifest_has_them(chapter: str) -> None:
    text = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    for exercise in course.manifest(chapter):
        heading = rf"\(ex-{exercise.name}\)=\n### Exercise \d+: .+\n\n\*(.+)\*"
        found = re.search(heading, text)
        assert found, f"no exercise section for {exercise.name}"
        unit = "point" if exercise.points == 1 else "points"
        worth, kinds = f"{exercise.points} {unit}", "warm-up|core|challenge|bug hunt"
        if exercise.bonus:
            assert exercise.points == 0
            worth, kinds = f"{exercise.bonus} bonus points", "bonus"
        assert re.fullmatch(rf"({kinds}) · \d+ minutes · {worth}", found[1]), found[1]
        assert f"check({exercise.name})" in text


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_numbers_of_exercises_count_on(chapter: str) -> None:
    text = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    numbers = [int(n) for n in re.findall(r"^### Exercise (\d+):", text, re.M)]
    assert numbers == list(range(1, len(course.manifest(chapter)) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_two_examples_and_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser(name).parse_args([name, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert shown.count(f"python -m autograder {name}") >= 2
    assert "exit codes: 0" in shown


def test_modules_stay_short() -> None:
    for file in (ROOT / "autograder").glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) <= 300, file.name
