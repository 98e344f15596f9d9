"""Exports: what each platform reads, what stays as it was, and what is never turned into a zero."""

import csv
import html
import io
import json
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import course, outputs
from autograder.cli import main
from autograder.exports import FORMS, Request, export, junit, rosters
from autograder.results import GRADER_ERROR, CheckResult, ExerciseResult, SubmissionResult

CHAPTER, OTHER = course.chapters()[:2]
DATA = Path(__file__).parent / "data" / "exports"


def submission(student: str, kind: str = "right", chapter: str = CHAPTER) -> SubmissionResult:
    """A result of one kind: right, half, missing, broken (by the grader)."""
    one, two = f"{chapter}.one", f"{chapter}.two"
    result = SubmissionResult(student, chapter, "graded", [], seed=7, seconds=1.5)
    if kind == "missing":
        lost = [ExerciseResult(name, 0.0, 5.0, "missing") for name in (one, two)]
        result.status, result.exercises, result.note = "missing", lost, "not handed in"
    elif kind == "broken":
        check = CheckResult(
            "values", "The values agree.", 1, False, False, "", None, "ZeroDivisionError"
        )
        broken = ExerciseResult(one, None, 5.0, GRADER_ERROR, [check])
        rest = ExerciseResult(two, None, 5.0, GRADER_ERROR)
        result.status, result.exercises = GRADER_ERROR, [broken, rest]
        result.note = "these checks failed themselves: values"
    else:
        right = kind == "right"
        message = "" if right else '=HYPERLINK("x")'
        checks = [
            CheckResult("shape", "The shape is kept.", 1, False, True),
            CheckResult("values", "The values agree.", 1, True, right, message),
        ]
        named = {"id": "wrong-way", "message": "You turn the wrong way <b>.", "section": "Turning"}
        result.exercises = [
            ExerciseResult(one, 5.0 if right else 2.5, 5.0, "passed" if right else "partly",
                           checks, None if right else named),
            ExerciseResult(two, 5.0, 5.0, "passed", [
                CheckResult("all", "All is well.", 3, False, True)]),
        ]  # fmt: skip
    return result


def grades(folder: Path, *results: SubmissionResult) -> Path:
    for result in results:
        outputs.write_submission(folder / "grades", result)
    return folder / "grades"


def golden(name: str, folder: Path | None = None) -> str:
    """A file of tests/data/exports about this course's chapter; written to `folder` if named."""
    text = (DATA / name).read_text("utf-8").replace("CHAPTER", CHAPTER)
    if folder:
        (folder / name).write_text(text, "utf-8")
    return text


def exported(form: str, request: Request) -> str:
    export(form, request)
    return request.out.read_text("utf-8")


# ---- Canvas ----


def test_canvas_own_export_is_filled_and_nothing_else_changes(tmp_path: Path) -> None:
    golden("canvas_roster.csv", tmp_path)
    folder = grades(
        tmp_path,
        submission("ada@uni.example", "half"),  # by SIS Login ID
        submission("gödelkurt_102"),  # as Canvas names files: the name and its ID
        submission("s-3"),  # by SIS User ID, excused in Canvas
        submission("Erdős, Pál"),  # by name, not assigned in Canvas
        submission("Alan-Turing", "missing"),
        submission("106", "broken"),
        submission("stranger"),
        submission("turingalan_104"),  # the number of another person
    )
    request = Request(folder, tmp_path / "out.csv", roster=tmp_path / "canvas_roster.csv")
    assert exported("canvas", request) == golden("canvas_filled.csv")
    told = "\n".join(request.left_out)
    assert len(request.left_out) == 5 and "stranger: not in the roster" in told
    assert "turingalan_104: not in the roster" in told
    assert "Canvas says EX" in told and "Canvas says N/A" in told and "the grader failed" in told


def test_who_is_in_the_roster_alone_is_told_and_keeps_the_cell(tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text('Student,ID,SIS Login ID\nAda,1,ada\n"Gauss, Carl",2,gauss\n')
    request = Request(grades(tmp_path, submission("ada")), tmp_path / "out.csv", roster)
    export("canvas", request)
    (told,) = [note for note in request.notes if "nothing graded" in note]
    assert "Gauss, Carl" in told and "Ada" not in told and not request.left_out
    rows = list(csv.reader((tmp_path / "out.csv").open()))
    assert rows[2][-1] == "" and rows[1][-1] != ""


def test_without_a_roster_canvas_gets_what_it_needs(tmp_path: Path) -> None:
    folder = grades(
        tmp_path,
        submission("ada@uni.example", "half"),
        submission("kurtg_102", "broken"),
        submission("=cmd()"),
    )
    request = Request(folder, tmp_path / "out.csv")
    assert exported("canvas", request) == golden("canvas_new.csv")
    assert len(request.left_out) == 1 and "--roster" in request.notes[0]


def test_habits_of_a_roster_are_kept(tmp_path: Path) -> None:
    text = (
        f"\ufeffStudent;ID;SIS Login ID;Section;{CHAPTER} (7);Essay (8)\r\n"
        "    Points Possible;;;;10,00;5,00\r\n"
        "Lovelace, Ada;101;ada;A;;4,50\r\n"
    )
    (tmp_path / "roster.csv").write_bytes(text.encode())
    folder = grades(tmp_path, submission("ada", "half"))
    export("canvas", Request(folder, tmp_path / "out.csv", roster=tmp_path / "roster.csv"))
    filled = (tmp_path / "out.csv").read_bytes().decode()
    assert filled == text.replace("ada;A;;", "ada;A;7,5;")


def test_nobody_is_guessed(tmp_path: Path) -> None:
    rows = ["Student,ID,SIS Login ID,Section", '"Doe, Jan",1,jan,A', '"Doe, Jan",2,doe,A']
    (tmp_path / "roster.csv").write_text("\n".join(rows))
    folder = grades(tmp_path, *(submission(s) for s in ("Jan Doe", "jan", "doe", "2")))
    request = Request(folder, tmp_path / "out.csv", roster=tmp_path / "roster.csv")
    table = list(csv.reader(io.StringIO(exported("canvas", request))))
    assert [row[-1] for row in table] == [CHAPTER, "10", ""]  # jan is one person, the rest nobody
    assert "Jan Doe: 2 rows of the roster have this name" in request.left_out
    assert any("2, doe: all of these fit one row" in line for line in request.left_out)
    assert any("--column" in note for note in request.notes)


def test_a_column_of_another_name_is_filled_in_proportion(tmp_path: Path) -> None:
    rows = ["Student,ID,SIS Login ID,Section,Week 1 (5)", "Points Possible,,,,100", "x,1,ada,A,"]
    (tmp_path / "roster.csv").write_text("\n".join(rows))
    folder, out = grades(tmp_path, submission("ada", "half")), tmp_path / "out.csv"
    words = [
        "export",
        str(folder),
        str(out),
        "--to",
        "canvas",
        "--roster",
        str(tmp_path / "roster.csv"),
    ]
    column = ["--column", f"{CHAPTER}=Week 1"]
    assert main([*words, *column, "--scale"]) == 0
    assert out.read_text().splitlines()[-1] == "x,1,ada,A,75"
    assert main([*words, "--column", f"{CHAPTER}=Week 9"]) == 2
    assert main([*words, "--column", "nonsense"]) == 2


# ---- Moodle ----


def test_moodles_worksheet_is_filled_and_its_decimals_stay(tmp_path: Path) -> None:
    golden("moodle_roster.csv", tmp_path)
    folder = grades(
        tmp_path,
        submission("Ada-Lovelace_101", "half"),  # as `collect` names it
        submission("kurt@uni.example"),
        submission("Emmy Noether"),
        submission("s-4"),
        submission("Participant 105", "broken"),
        submission("Ada-Lovelace_103"),  # the number of another person
    )
    request = Request(folder, tmp_path / "out.csv", roster=tmp_path / "moodle_roster.csv")
    assert exported("moodle", request) == golden("moodle_filled.csv")
    told = "\n".join(request.left_out)
    assert "Ada-Lovelace_103: not in the roster" in told and "cannot be changed" in told
    assert "the grader failed" in told and len(request.left_out) == 3
    assert any("comment that is there stays" in note for note in request.notes)


def test_a_worksheet_in_another_language_and_of_other_points(tmp_path: Path) -> None:
    text = "Id,Nombre,Calificación,Máxima\nParticipante 7,Ada,,5.00\nParticipante 8,Kurt,,5.00\n"
    (tmp_path / "roster.csv").write_text(text)
    folder = grades(tmp_path, submission("Participante_7", "half"), submission("x_8"))
    names = {"Identifier": "Id", "Grade": "Calificación", "Maximum Grade": "Máxima"}
    request = Request(folder, tmp_path / "out.csv", roster=tmp_path / "roster.csv", columns=names)
    assert exported("moodle", request) == text
    assert any("more than Moodle's 5" in line for line in request.left_out)
    assert any("--scale" in note for note in request.notes)
    request = Request(
        folder, tmp_path / "out.csv", roster=tmp_path / "roster.csv", scale=True,
        columns={"Identifier": "Id", "Grade": "Calificación", "Maximum Grade": "Máxima"},
    )  # fmt: skip
    assert exported("moodle", request) == text.replace("Ada,,", "Ada,3.75,")


def test_a_comment_is_html_that_shows_and_does_nothing(tmp_path: Path) -> None:
    golden("moodle_roster.csv", tmp_path)
    result = submission("s-1", "half")
    assert result.exercises[0].misconception
    result.exercises[0].misconception["message"] = "<script>alert(1)</script>\x1b[2J"
    request = Request(
        grades(tmp_path, result), tmp_path / "out.csv", roster=tmp_path / "moodle_roster.csv"
    )
    filled = exported("moodle", request)
    assert "<script>" not in filled and "\x1b" not in filled
    assert html.escape("<script>alert(1)</script>", quote=False) in filled


# ---- tables, Gradescope, JUnit ----


def test_the_long_table_has_a_row_for_each_check(tmp_path: Path) -> None:
    folder = grades(
        tmp_path,
        submission("=cmd()", "half"),
        submission("broken", "broken"),
        submission("gone", "missing"),
    )
    request = Request(folder, tmp_path / "checks.csv")
    assert exported("csv", request) == golden("checks.csv")
    assert len(request.left_out) == 1


TEXT_FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
# https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
WHOLE = {
    "score": (int, float), "execution_time": (int, float), "output": str,
    "output_format": TEXT_FORMATS, "test_output_format": TEXT_FORMATS,
    "test_name_format": TEXT_FORMATS, "visibility": VISIBILITY, "stdout_visibility": VISIBILITY,
    "extra_data": dict, "tests": list, "leaderboard": list,
}  # fmt: skip
TEST = {
    "score": (int, float), "max_score": (int, float), "status": {"passed", "failed"}, "name": str,
    "name_format": TEXT_FORMATS, "number": str, "output": str, "output_format": TEXT_FORMATS,
    "tags": list, "visibility": VISIBILITY, "extra_data": dict,
}  # fmt: skip


def documented(record: dict[str, object], fields: dict[str, object]) -> bool:
    """Whether a record has only documented fields, each of a documented kind."""
    for name, value in record.items():
        allowed = fields[name]
        if isinstance(allowed, set):
            assert value in allowed, (name, value)
        else:
            assert isinstance(value, allowed), (name, value)  # type: ignore[arg-type]
    return True


@pytest.mark.parametrize("out", ["folder", "all.zip"])
def test_gradescope_gets_only_documented_fields(tmp_path: Path, out: str) -> None:
    folder = grades(tmp_path, submission("ada", "half"), submission("bad", "broken"))
    request = Request(folder, tmp_path / out)
    export("gradescope", request)
    if out.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / out) as archive:
            archive.extractall(tmp_path / "folder")
    ada = json.loads((tmp_path / "folder" / "ada" / CHAPTER / "results.json").read_text())
    assert documented(ada, WHOLE) and all(documented(test, TEST) for test in ada["tests"])
    assert ada["score"] == sum(test["score"] for test in ada["tests"]) == 7.5
    bad = json.loads((tmp_path / "folder" / "bad" / CHAPTER / "results.json").read_text())
    assert "score" not in bad and "tests" not in bad and bad["output"]
    assert len(request.left_out) == 1


def test_junit_is_read_by_others(tmp_path: Path) -> None:
    folder = grades(
        tmp_path,
        submission("ada", "half"),
        submission("bad", "broken"),
        submission("gone", "missing"),
    )
    request = Request(folder, tmp_path / "report.xml")
    export("junit", request)
    read = junitparser.JUnitXml.fromfile(str(request.out))
    assert (read.tests, read.failures, read.errors, read.skipped) == (7, 1, 2, 2)
    suites = {suite.name: suite for suite in read}
    ada = {case.name: case for case in suites[f"ada/{CHAPTER}"]}
    assert set(ada) == {"shape", "values (hidden check)", "all"}
    (failure,) = ada["values (hidden check)"].result
    assert isinstance(failure, junitparser.Failure) and "HYPERLINK" in failure.text
    assert ada["shape"].is_passed and ada["shape"].classname == f"{CHAPTER}.one"
    for name, kind in (("bad", junitparser.Error), ("gone", junitparser.Skipped)):
        cases = list(suites[f"{name}/{CHAPTER}"])
        assert cases and all(isinstance(case.result[0], kind) for case in cases)


@given(st.text(alphabet=st.characters(), max_size=60))
def test_whatever_a_student_writes_is_legal_xml(text: str) -> None:
    result = submission("ada", "half")
    result.note = result.exercises[0].checks[1].message = text + "\x00\x1b\ufffe]]>&<"
    result.student = "a" + text
    suite = ET.fromstring(ET.tostring(junit._suite(result)))
    assert suite.attrib["failures"] == "1"
    assert not junit.FORBIDDEN.search("".join(suite.itertext()))


# ---- feedback ----


def test_pages_are_named_as_the_platforms_take_them_back(tmp_path: Path) -> None:
    names = {
        "lovelaceada_1": ("canvas", f"lovelaceada_LATE_1_12_{CHAPTER}-1.ipynb"),
        "anon_x1Y2z": ("canvas", f"submissions/anon_x1Y2z_13_{CHAPTER}.ipynb"),
        "Kurt-Gödel_2": ("moodle", f"Kurt Gödel_2_assignsubmission_file_/{CHAPTER}.ipynb"),
        "flat": ("flat", f"flat_{CHAPTER}.ipynb"),
    }
    known = {who: {CHAPTER: {"from": k, "name": n}} for who, (k, n) in names.items()}
    (tmp_path / "collected.json").write_text(json.dumps(known))
    folder = grades(tmp_path, *(submission(who, "half") for who in [*names, "<b>x"]))
    words = ["export", str(folder), str(tmp_path / "pages.zip"), "--to", "feedback"]
    assert main(words) == 0
    with zipfile.ZipFile(tmp_path / "pages.zip") as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(found) == {
        f"lovelaceada_LATE_1_12_{CHAPTER}-feedback.html",
        f"anon_x1Y2z_13_{CHAPTER}-feedback.html",
        f"Kurt Gödel_2_assignsubmission_file_/{CHAPTER}-feedback.html",
        f"flat/{CHAPTER}.html",
        f"<b>x/{CHAPTER}.html",
    }
    assert "Kurt-Gödel_2" in found[f"Kurt Gödel_2_assignsubmission_file_/{CHAPTER}-feedback.html"]
    index = (tmp_path / "pages.html").read_text("utf-8")
    assert "<b>x" not in index and "%3Cb%3Ex" in index and index.count("7.5 / 10") == 5
    first = (tmp_path / "pages.zip").read_bytes()
    assert main(words) == 0 and (tmp_path / "pages.zip").read_bytes() == first


def test_several_chapters_have_a_folder_each_and_an_index(tmp_path: Path) -> None:
    folder = grades(tmp_path, submission("ada"), submission("ada", "missing", OTHER))
    out = tmp_path / "pages"
    for _ in range(2):
        export("feedback", Request(folder, out))
    found = {p.relative_to(out).as_posix() for p in out.rglob("*.html")}
    assert found == {"index.html", f"{CHAPTER}/ada/{CHAPTER}.html", f"{OTHER}/ada/{OTHER}.html"}


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    out.mkdir()
    (out / "mine.txt").write_text("x")
    with pytest.raises(course.CourseError, match="was not exported before"):
        export("feedback", Request(grades(tmp_path, submission("ada")), out))
    assert (out / "mine.txt").read_text() == "x"


# ---- requests ----


@pytest.mark.parametrize("form", FORMS)
def test_no_grades_are_a_wrong_request(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path), str(tmp_path / "out"), "--to", form]) == 2
    assert "there are no grades" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_record_that_cannot_be_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = grades(tmp_path, submission("ada"), submission("bob"))
    (folder / "students" / "bob" / CHAPTER / "results.json").write_text('{"score": 1')
    assert main(["export", str(folder), str(tmp_path / "out.csv"), "--to", "csv"]) == 1
    assert f"bob {CHAPTER}: its results.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe", "not UTF-8"),
        (b"Student,ID\n", "no rows"),
        (b'a,b\n"x', "no CSV table"),
        (b"a,b\n1,2\n", "no export of Canvas"),
    ],
)
def test_a_roster_that_is_none_is_told(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster, folder = tmp_path / "roster.csv", grades(tmp_path, submission("ada"))
    if content is not None:
        roster.write_bytes(content)
    request = ["export", str(folder), str(tmp_path / "o.csv"), "--to", "canvas", "--roster"]
    assert main([*request, str(roster)]) == 2
    assert words in capsys.readouterr().err


def test_what_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden("canvas_roster.csv", tmp_path)
    roster, folder = tmp_path / "canvas_roster.csv", grades(tmp_path, submission("ada"))
    words = ["export", str(folder), "--to", "canvas", "--roster", str(roster)]
    assert main([*words, str(roster)]) == 2 and "roster itself" in capsys.readouterr().err
    assert main([*words, str(tmp_path)]) == 2 and "cannot be written" in capsys.readouterr().err


def test_a_record_about_somebody_else_is_told(tmp_path: Path) -> None:
    folder = grades(tmp_path, submission("ada"), submission("bob"))
    records = [folder / "students" / who / CHAPTER / "results.json" for who in ("ada", "bob")]
    records[1].write_text(records[0].read_text().replace('"ada"', '"../../eve"'))
    request = Request(folder, tmp_path / "out")
    export("gradescope", request)
    assert len(request.left_out) == 1 and request.left_out[0].startswith("bob")


def test_moodle_wants_its_worksheet_and_one_chapter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = grades(tmp_path, submission("ada"), submission("ada", "right", OTHER))
    words = ["export", str(folder), str(tmp_path / "o.csv"), "--to", "moodle"]
    assert main(words) == 2 and "--roster" in capsys.readouterr().err
    golden("moodle_roster.csv", tmp_path)
    assert main([*words, "--roster", str(tmp_path / "moodle_roster.csv")]) == 2
    assert "--chapter" in capsys.readouterr().err


@given(st.lists(st.lists(st.text(max_size=8), min_size=3, max_size=3), min_size=2, max_size=5))
def test_a_roster_is_written_back_as_it_was_read(rows: list[list[str]]) -> None:
    import tempfile

    rows = [["a", "b", "c"], *([c.replace("\0", "").replace("\r", "") for c in r] for r in rows)]
    rows = [[cell.encode("utf-8", "replace").decode() for cell in row] for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "roster.csv")
        file.write_bytes(text.getvalue().encode())
        roster = rosters.read(file)
        assert roster.rows == rows
        roster.write(file)
        assert file.read_bytes() == text.getvalue().encode()
