"""Similar submissions: a copy is found whatever its names, and honest answers are left alone."""

import ast
import builtins
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from autograder import course, similar
from autograder.class_numbers import ChapterCount
from autograder.class_report import page
from autograder.cli import main
from autograder.code_tokens import LENGTH, MOST, NAME, STRING, shingles, tokens_of
from autograder.generate import student_notebook
from autograder.outputs import write_submission
from autograder.results import SubmissionResult
from autograder.similar import Findings, Released

CHAPTER = course.chapters()[0]
ANSWERS = Path(__file__).parent / "right_answers"


def answers(chapter: str) -> dict[str, str]:
    return {f.stem: f.read_text("utf-8") for f in sorted((ANSWERS / chapter).glob("*.py"))}


class Renamed(ast.NodeTransformer):
    """Gives every function, argument and variable another name; attributes are a library's."""

    def _new(self, name: str) -> str:
        return name if hasattr(builtins, name) else f"my_{name}"

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._new(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._new(node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self._new(node.name)
        self.generic_visit(node)
        return node


def renamed(text: str) -> str:
    """The same program with other names, without comments, and laid out anew."""
    return ast.unparse(Renamed().visit(ast.parse(text)))


def handed_in(folder: Path, students: dict[str, list[str]]) -> list[tuple[str, Path]]:
    files = []
    for student, cells in students.items():
        file = folder / student / CHAPTER / f"{CHAPTER}.ipynb"
        file.parent.mkdir(parents=True)
        code = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
        file.write_text(json.dumps({"cells": code, "nbformat": 4}), "utf-8")
        files.append((student, file))
    return files


def found(folder: Path, students: dict[str, list[str]], released: Iterable[str] = ()) -> Findings:
    return similar.find(handed_in(folder, students), Released(released))


def pairs(findings: Findings) -> list[tuple[str, str]]:
    return [pair.students for pair in findings.pairs]


def body(seed: int, lines: int = 30) -> str:
    """A function that nobody else would write."""
    rng = np.random.default_rng(seed)
    words = ["sum", "mean", "reshape", "exp", "cumsum", "sort", "argmax", "ravel"]
    rows = [
        "    v{} = np.{}(v{}, {}) {} {}".format(
            a, words[rng.integers(8)], b, c, "+-*/"[rng.integers(4)], d
        )
        for a, b, c, d in rng.integers((9, 9, 99, 99), size=(lines, 4))
    ]
    return f"def f{seed}(v0):\n" + "\n".join(rows)


def test_names_layout_comments_and_docstrings_do_not_count() -> None:
    one = 'def f(a, b):\n    """What it does."""\n    return a.sum() + len(b)  # both\n'
    other = "def g(\n  first,\n  second,\n):\n  return (  first.sum()+len(second)\n)"
    normal = tokens_of(one).normal
    assert normal == ["def", NAME, "(", NAME, ",", NAME, ")", ":", "return", NAME, ".", "sum"] + [
        "(", ")", "+", "len", "(", NAME, ")",
    ]  # fmt: skip
    without = [t for t in tokens_of(other).normal if t not in "()"]
    assert without == [t for t in normal if t not in "()"]
    assert tokens_of(one).plain != tokens_of(other).plain


def test_the_words_of_a_string_do_not_count_but_numbers_do() -> None:
    assert tokens_of("x = 'a'").normal == tokens_of('y = f"""b"""').normal == [NAME, "=", STRING]
    assert tokens_of("x = 1").normal != tokens_of("x = 2").normal
    assert tokens_of("f('a',\n'b'\n)").normal.count(STRING) == 2, "an argument is no docstring"


def test_equal_stretches_have_equal_numbers_and_others_differ() -> None:
    row = [str(n) for n in range(LENGTH)]
    numbers = shingles([*row, "x", *row])
    assert numbers.shape == (LENGTH + 2,)
    assert numbers[0] == numbers[-1] and len(set(numbers.tolist())) == LENGTH + 1
    assert shingles(row[1:]).size == 0
    assert shingles(row) != shingles(row[::-1])


@pytest.mark.parametrize(
    "piece", ["'\\", '"""x\\', "('a'", "'x'\n", " ", "#", "\\", "\ud800", "{'''}", 'f"{', "é\u202e"]
)
def test_any_text_is_read_in_time_that_grows_with_its_length(piece: str) -> None:
    text = (piece * (1 << 20))[: 1 << 20]
    began = time.process_time()
    tokens = tokens_of(text)
    assert len(tokens.plain) <= MOST
    assert shingles(tokens.normal).size == max(0, len(tokens.normal) - LENGTH + 1)
    assert time.process_time() - began < 3  # measured: at most 0.5; a quadratic one takes hours


@pytest.mark.parametrize("chapter", course.chapters())
def test_right_answers_written_apart_are_not_alike(chapter: str, tmp_path: Path) -> None:
    """Each must find itself, renamed: so that what is not found was really looked at."""
    right = answers(chapter)
    assert len(right) >= 3
    apart = found(tmp_path / "apart", {name: [text] for name, text in right.items()})
    assert pairs(apart) == [] and apart.compared == len(right) and apart.too_short == 0
    copied, text = next(iter(right.items()))
    students = {name: [text] for name, text in right.items()} | {"zoe": [renamed(text)]}
    (pair,) = found(tmp_path / "copied", students).pairs
    assert pair.students == (copied, "zoe")
    assert pair.exact > 0.6 > 0.3 > pair.as_written
    # a mean of 126 draws: four standard deviations are at most 4 · 0.5 / √126
    assert abs(pair.estimated - pair.exact) < 0.18


def test_what_the_course_gave_out_belongs_to_nobody(tmp_path: Path) -> None:
    given = [c.source for c in student_notebook(CHAPTER).cells if c.cell_type == "code"]
    filled = [cell.replace("raise NotImplementedError", "return None") for cell in given]
    assert filled != given
    findings = found(tmp_path, dict.fromkeys(("ann", "bob", "eve"), filled), given)
    assert findings.too_short == findings.compared == 3 and findings.pairs == []
    assert found(tmp_path / "unaware", {"ann": filled, "bob": filled}).found == 1


def test_what_many_wrote_alike_belongs_to_nobody(tmp_path: Path) -> None:
    students = {f"s{n:02d}": [body(0, 200), body(n, 20)] for n in range(1, 13)}
    assert pairs(found(tmp_path / "honest", students)) == []
    copied = {**students, "s12": [body(0, 200), body(3, 20)]}
    findings = found(tmp_path / "copied", copied)
    assert pairs(findings) == [("s03", "s12")] and findings.limit == 4


@pytest.mark.parametrize(
    ("submissions", "limit"), [(1, 2), (6, 2), (12, 4), (30, 10), (400, 10), (2000, 40)]
)
def test_the_limit_of_what_many_wrote_grows_with_the_class(submissions: int, limit: int) -> None:
    assert similar.limit(submissions) == limit


def test_a_pair_tells_its_numbers_exactly(tmp_path: Path) -> None:
    shared, one, other = body(1), body(2, 10), body(3, 10)
    (pair,) = found(tmp_path, {"ann": [shared, one], "bob": [shared, other]}).pairs
    sets = [set(shingles(tokens_of(f"{shared}\n{x}").normal).tolist()) for x in (one, other)]
    both = len(sets[0] & sets[1])
    assert pair.shared == both and pair.exact == both / len(sets[0] | sets[1])
    assert pair.excerpts[0] == pair.excerpts[1]
    shown = pair.excerpts[0].splitlines()
    assert shown[:-1] == shared.splitlines()[: similar.LINES]
    # the head of the function that follows, and the numbers that begin its first line, are alike
    assert shown[-1] == f"… {len(shared.splitlines()) + 2 - similar.LINES} more lines"


def test_the_excerpt_shows_each_persons_own_lines(tmp_path: Path) -> None:
    mine = body(1, 10)
    theirs = re.sub(r"\bv(?=\d)", "other_", mine).replace("\n", "  # mine\n")
    students = {"ann": [body(2, 5), mine], "bob": [theirs, body(3, 5)]}
    (pair,) = found(tmp_path, students).pairs
    assert pair.excerpts == (mine, theirs)


def test_the_same_class_gives_the_same_pairs_in_any_order(tmp_path: Path) -> None:
    students = {f"s{n}": [body(n % 4), body(n, 8)] for n in range(8)}
    files = handed_in(tmp_path, students)
    first = similar.find(files, Released([]))
    assert len(first.pairs) == 4 and first == similar.find(files, Released([]))
    back = similar.find(files[::-1], Released([]))
    assert [set(p) for p in pairs(back)] == [set(p) for p in pairs(first)]


def test_code_that_is_no_python_is_compared_all_the_same(tmp_path: Path) -> None:
    broken = "%timeit f(x)\n!ls 'a\n" + body(1).replace("(v", "((v").replace("def", "dfe")
    (pair,) = found(tmp_path, {"ann": [broken], "bob": [broken], "eve": [body(2)]}).pairs
    assert pair.students == ("ann", "bob") and pair.exact == 1
    with pytest.raises(SyntaxError):
        ast.parse(broken)


def test_what_cannot_be_read_is_counted_and_stops_nobody(tmp_path: Path) -> None:
    files = handed_in(tmp_path, {n: [body(1)] for n in ("ann", "bob", "cut", "link", "gone")})
    places = dict(files)
    places["cut"].write_text("{ no notebook")
    places["gone"].unlink()
    places["link"].unlink()
    places["link"].symlink_to(places["ann"])
    findings = similar.find(files, Released([]))
    assert pairs(findings) == [("ann", "bob")]
    assert findings.compared == 2 and findings.unreadable == ["cut", "link"]


def test_of_many_pairs_the_most_alike_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    students = {f"{n:02d}{one}": [body(n, 12)] for n in range(similar.SHOWN + 3) for one in "ab"}
    findings = found(tmp_path, students)
    assert len(findings.pairs) == similar.SHOWN and findings.found == similar.SHOWN + 3
    assert f"… and 3 more pairs; the {similar.SHOWN} most alike are shown" in page(
        [ChapterCount(CHAPTER)], [], {CHAPTER: findings}
    )


def test_an_excerpt_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    hostile = 'x = "</pre><script>alert(1)</script>\u202e"\n' + body(1, 10)
    findings = found(tmp_path, {"<b>ann": [hostile], "bob": [hostile]})
    text = page([ChapterCount(CHAPTER)], [], {CHAPTER: findings})
    assert "<script" not in text and "\u202e" not in text and "<b>ann" not in text
    assert "&lt;b&gt;ann" in text and "&lt;script&gt;" in text
    assert "A reason to look, and no proof." in text


def test_the_command_finds_a_copy_in_notebooks_as_they_are_handed_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [c.source for c in student_notebook(CHAPTER).cells if c.cell_type == "code"]
    right = answers(CHAPTER)
    students = {name: [*given, text] for name, text in right.items()}
    students["zoe"] = [*given, renamed(right["plain_loops"])]
    handed_in(tmp_path / "submitted", students)
    for student in students:
        write_submission(tmp_path / "grades", SubmissionResult(student, CHAPTER, "graded", []))
    out = tmp_path / "new" / "report.html"
    asked = ["--submitted", str(tmp_path / "submitted"), "--out", str(out)]
    assert main(["report", str(tmp_path / "grades"), *asked]) == 0
    assert "similar pairs: 1\n" in capsys.readouterr().out
    assert "plain_loops and zoe: " in out.read_text("utf-8")
