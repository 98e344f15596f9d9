"""The page about a class: its numbers are exact, and nothing that students wrote is obeyed."""

import re
import statistics
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from autograder import class_numbers, class_page, class_plots, course, outputs
from autograder.class_numbers import LINES, NOTES, ChapterCount, count, kind, results_in
from autograder.class_report import page
from autograder.cli import main
from autograder.results import CheckResult, ExerciseResult, SubmissionResult, score

CHAPTER = course.chapters()[0]
EXERCISE = course.manifest(CHAPTER)[0].id
UNWRITTEN = "Not written yet (it raises NotImplementedError)."
MISTAKE = {"id": "some-mistake", "message": "The sum was forgotten.", "section": "S", "check": "a"}


def checks(*passed: bool, message: str = "In the result 2 of 8 numbers differ.") -> list[Any]:
    """Checks a, b, c … of weight 1, the last one hidden."""
    last = len(passed) - 1
    return [
        CheckResult("abc"[n], f"Sentence {n}.", 1, n == last, ok, "" if ok else message)
        for n, ok in enumerate(passed)
    ]


def submission(
    student: str,
    found: list[CheckResult],
    status: str = "graded",
    named: dict[str, str] | None = None,
    note: str = "",
    seconds: float = 1.0,
) -> SubmissionResult:
    points, how = score(found, 6) if found else (0.0, "missing")
    exercise = ExerciseResult(EXERCISE, points, 6, how, found, named)
    return SubmissionResult(student, CHAPTER, status, [exercise], note, seconds=seconds)


def small_class() -> list[SubmissionResult]:
    broken = checks(True, True, True)
    broken[1].passed, broken[1].fault = False, "Traceback"
    return [
        submission("ann", checks(True, True, True), seconds=2),
        submission("bob", checks(True, True, False), named=MISTAKE, seconds=4),
        submission("cat", checks(True, False, False), named=MISTAKE, seconds=8),
        submission("dan", checks(True, False, True, message="First: yours is 3.25, expected 4.")),
        submission("eve", checks(False, False, False, message=UNWRITTEN)),
        submission("fay", checks(True, False, True, message="First: yours is 7, expected -1e-3."),
                   "timeout", note="Code cell 3: stopped after 20 s", seconds=61),
        submission("gus", [], "missing", note="nothing was handed in", seconds=0),
        submission("hal", broken, "grader error", note="these checks failed themselves: b"),
    ]  # fmt: skip


def counted(results: list[SubmissionResult]) -> ChapterCount:
    (chapter,), unreadable = count(results)
    assert unreadable == []
    return chapter


def read(chapters: list[ChapterCount], **more: Any) -> BeautifulSoup:
    return BeautifulSoup(page(chapters, more.get("unreadable", [])), "html.parser")


def test_the_numbers_of_a_small_class_are_exact() -> None:
    chapter = counted(small_class())
    assert chapter.submissions == 8 and chapter.statuses["graded"] == 5
    # ann 6, bob 4, cat 2, dan 4, eve 0, fay 4 of 6; gus handed in nothing, hal has no grade
    assert sorted(round(6 * share, 9) for share in chapter.shares) == [0, 2, 4, 4, 4, 6]
    assert statistics.median(chapter.shares) == pytest.approx(4 / 6) and chapter.full == 1
    assert sorted(chapter.seconds) == [1, 1, 1, 2, 4, 8, 61]
    assert chapter.slowest[:2] == [(61, "fay", "timeout"), (8, "cat", "graded")]
    (exercise,) = chapter.exercises.values()
    assert exercise.statuses == {"passed": 1, "partly": 4, "not written": 1, "grader error": 1}
    rates = {c.name: (c.passed, c.ran, c.faults) for c in exercise.checks.values()}
    assert rates == {"a": (6, 6, 0), "b": (2, 5, 1), "c": (4, 6, 0)}
    assert exercise.named == {("some-mistake", "The sum was forgotten."): 2}
    assert exercise.unnamed == 2
    assert exercise.lines == {("b", "First: yours is …, expected …."): 2}


def test_the_page_shows_these_numbers() -> None:
    seen = read([counted(small_class())])
    text = seen.get_text(" ", strip=True)
    head, row = (r.get_text("|", strip=True).split("|") for r in seen.select("table")[1]("tr"))
    assert head == ["chapter", "all", "median", "full marks", "graded", "timeout", "missing"] + [
        "grader error"
    ]
    assert row == [CHAPTER, "8", "67%", "17%", "5", "1", "1", "1"]
    assert "6 submissions with a grade, median 67%, 1 with full marks." in text
    assert "Seconds to grade one, median 2.0 s." in text
    rows = [r.get_text(" ", strip=True) for r in seen.select("tr")]
    lowest = rows.index("2 of 5 Sentence 1. the grader failed on 1")
    assert rows[lowest + 1] == "4 of 6 Sentence 2. hidden"
    assert rows[lowest + 2] == "6 of 6 Sentence 0. everybody passes"
    assert any(r.startswith("2 of 5 The sum was forgotten.") for r in rows)
    assert "2 of 4 failures have no name" in text
    assert "2 First: yours is …, expected …. b" in rows
    assert "timeout Code cell 3: stopped after 20 s fay" in rows


def test_errors_of_the_grader_come_first_and_are_no_zeros() -> None:
    whole, without = counted(small_class()), counted(small_class()[:-1])
    assert whole.shares == without.shares
    seen = read([whole])
    assert seen.h1.find_next().get("class") == ["fault"]
    assert "Grader errors: 1" in seen.select_one(".fault").text
    assert "these checks failed themselves: b" in seen.select_one(".fault").text
    assert not read([without]).select(".fault")


def test_a_check_that_all_pass_or_fail_is_hinted_at_when_enough_tried() -> None:
    few = [submission(f"s{n}", checks(True, False)) for n in range(4)]
    assert read([counted(few)]).select(".hint") == []
    enough = read([counted([*few, submission("s4", checks(True, False))])])
    assert [h.text for h in enough.select(".hint")] == ["nobody passes", "everybody passes"]


def test_kinds_of_messages_are_told_apart_by_words_and_not_by_numbers() -> None:
    one = "First at index (0, 3): yours is -1.4e-3, expected 2.\nThe call: f(x)"
    other = "First at index (1, 0, 2): yours is 7, expected 1_000.5.\nThe call: g(y)"
    assert kind(one) == kind(other) == "First at index (…): yours is …, expected …."
    assert kind("float32 is not float64") != kind("float16 is not float64")
    assert len(kind("x" * 10_000)) <= 160


def test_frequent_kinds_are_kept_beside_any_number_of_rare_ones() -> None:
    def failing() -> Iterator[SubmissionResult]:
        for n in range(3 * LINES):
            word = "frequent" if n % 3 == 0 else "x" * (n % 97) + chr(0x4E00 + n)
            yield submission(f"s{n}", checks(False, message=word))

    (chapter,), _ = count(failing())
    lines = chapter.exercises[EXERCISE].lines
    assert lines["a", "frequent"] == LINES and len(lines) <= LINES
    assert chapter.exercises[EXERCISE].unnamed == 3 * LINES


def test_nothing_is_kept_of_long_messages() -> None:
    size, many = 100_000, 200

    def long() -> Iterator[SubmissionResult]:
        for n in range(many):
            found = checks(False, False, message=f"{n} " + chr(65 + n % 26) * size)
            yield submission(f"s{n}", found, "crashed", note="y" * size)

    count(long())  # what is loaded once is loaded
    tracemalloc.start()
    chapters, _ = count(long())
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert chapters[0].submissions == many
    assert kept < 2 * size  # 200 messages and notes are 400 times as much
    assert peak < 20 * size  # one result and the copies that cleaning it makes


def test_a_large_class_makes_no_longer_page() -> None:
    def large(many: int) -> str:
        results = [
            submission(f"s{n:05d}", checks(True, n % 2 == 0, False), "crashed", note=f"note {n}")
            for n in range(many)
        ]
        return page([counted(results)], [])

    small, big = large(100), large(2000)
    assert len(big) < 1.1 * len(small)  # longer numbers, a tick more
    assert f"… and {2000 - NOTES} more" in big


def test_a_page_needs_nothing_beside_it() -> None:
    text = page([counted(small_class())], [])
    seen = BeautifulSoup(text, "html.parser")
    assert not seen.select(
        "script, link, iframe, object, embed, img, base, form, image, meta[http-equiv]"
    )
    for element in seen.find_all(True):
        for name, value in element.attrs.items():
            assert not name.startswith("on") and name != "src"
            if "href" in name:
                assert str(value).startswith("#")
    assert "http" not in text and "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    ids = [e["id"] for e in seen.select("[id]")]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for a in seen.select("a[href], use[href]")}
    assert targets <= set(ids)


def test_every_picture_has_words_and_the_colours_of_the_page() -> None:
    text = page([counted(small_class())], [])
    pictures = BeautifulSoup(text, "html.parser").select("svg")
    assert len(pictures) == 4  # statuses, scores, times, the checks of one exercise
    for picture in pictures:
        assert picture["role"] == "img" and len(picture["aria-label"]) > 20
        assert picture.find_parent("figure").figcaption.text
        assert not re.search(r"#[0-9a-fA-F]{6}\b", str(picture)), "a colour that dark cannot change"
    assert any("b: 40%, c (hidden): 67%" in p["aria-label"] for p in pictures)
    assert page([counted(small_class())], []) == text, "the same class makes the same page"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_legible_on_light_and_dark(theme: str) -> None:
    parts = class_page.CSS.split("@media(prefers-color-scheme:dark)")
    colours = dict(re.findall(r"--(\w+):(#\w+)", parts[theme == "dark"].split("@media")[0]))
    assert set(colours) == {*class_plots.VARIABLES.values(), "paper", "soft"}

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * d for d in colour[1:])
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted(luminance(colours[c]) for c in (one, other))
        return (high + 0.05) / (low + 0.05)

    for ground in ("paper", "soft"):
        for text in ("ink", "grey", "blue", "orange", "red"):
            wanted = 3 if text == "orange" else 4.5  # WCAG AA; orange is a shape or a hint
            assert contrast(text, ground) >= wanted, (theme, text, ground)
    for shape in ("violet", "brown"):
        assert contrast(shape, "paper") >= 3


HOSTILE = "</td></svg><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u2066\x1b[31m&"


def test_hostile_words_are_shown_and_not_obeyed() -> None:
    named = {**MISTAKE, "message": HOSTILE}
    results = [
        submission(HOSTILE, checks(False, False, message=HOSTILE), "crashed", note=HOSTILE),
        submission("bob", checks(False, True, message=HOSTILE), named=named),
        submission(HOSTILE + "2", checks(True, True), "grader error", note=HOSTILE),
    ]
    lost = [Path("grades", "<script>", CHAPTER)]
    seen = read([counted(results)], unreadable=lost)
    assert not seen.select("script, img")
    assert "<script>alert(1)</script>" in seen.select_one(".fault").text
    text = str(seen)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", text)
    assert text.count("&lt;script&gt;") >= 6


def test_results_are_read_from_what_grading_wrote(tmp_path: Path) -> None:
    for result in small_class():
        outputs.write_submission(tmp_path, result)
    cut = tmp_path / outputs.STUDENTS / "ivy" / CHAPTER
    cut.mkdir(parents=True)
    (cut / "results.json").write_text('{"extra_data": {"student": "ivy"')
    (chapter,), unreadable = count(results_in(tmp_path))
    assert chapter == counted(small_class()) and unreadable == [cut]
    text = read([chapter], unreadable=unreadable).select_one(".fault").text
    assert "Grader errors: 2" in text and "results.json is not there, or not whole" in text


def test_the_command_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result in small_class():
        outputs.write_submission(tmp_path / "grades", result)
    out = tmp_path / "page.html"
    asked = ["report", str(tmp_path / "grades"), "--chapter", CHAPTER, "--out", str(out)]
    assert main(asked) == 0
    assert f"report: {out}" in capsys.readouterr().out
    assert out.read_text("utf-8") == page([counted(small_class())], [])
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["page.html"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["."], "there are no results in"),
        (["nowhere"], "grade SUBMITTED --out FOLDER"),
        ([".", "--chapter", "no-such-chapter"], "there is no chapter 'no-such-chapter'"),
        (["full", "--chapter", course.chapters()[-1]], "there are no results of"),
        (["full", "--out", "full"], "is a folder: name a file"),
        (["full", "--submitted", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_a_wrong_request_says_what_is_wanted(
    asked: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    outputs.write_submission(tmp_path / "full", small_class()[0])
    monkeypatch.chdir(tmp_path)
    assert main(["report", *asked]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ") and told in shown.err and shown.out == ""
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_a_browser_shows_it_without_scrolling_sideways(
    theme: Any, width: int, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page([counted(small_class())], []), "utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, offline=True,
        java_script_enabled=True,
    )  # fmt: skip
    tab = context.new_page()
    asked_for: list[str] = []
    tab.on("request", lambda request: asked_for.append(request.url))
    tab.goto(file.as_uri())
    assert asked_for == [file.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    sizes = tab.eval_on_selector_all(
        "svg text", "all => all.map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 10  # pixels: a line of words of nine points, as wide as the screen lets it
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (theme == "light")
    context.close()


def test_what_counts_as_not_written_is_what_the_checks_say() -> None:
    """The words are those of running an unwritten answer, not a copy of them."""
    from tests.grading import graded

    def unwritten(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    result = graded(EXERCISE.split(".")[1], unwritten)
    chapter = counted([SubmissionResult("ann", CHAPTER, "graded", [result])])
    assert chapter.exercises[EXERCISE].statuses == {class_numbers.UNWRITTEN: 1}
