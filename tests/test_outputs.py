"""What graders and students read: nothing twice, and a name only for what it is."""

import numpy as np

from autograder.report import clean, text
from autograder.results import CheckResult, ExerciseResult, SubmissionResult
from autograder.tables import as_text, row
from tests.grading import graded


def test_what_a_student_did_not_hand_in_stands_in_one_row() -> None:
    def result(student: str, chapter: str, status: str) -> SubmissionResult:
        lost = ExerciseResult(f"{chapter}.one", 0.0, 4.0, "missing")
        return SubmissionResult(student, chapter, status, [lost], seed=1)

    rows = [result("ann", c, "missing") for c in ("first", "second", "third")]
    rows += [result("bob", "first", "graded"), result("bob", "second", "missing")]
    table = as_text([row(r) for r in rows]).splitlines()[2:]
    assert len(table) == 3
    assert "3 chapters" in table[0] and "0 / 12" in table[0]
    assert table[0].endswith("not handed in: first, second, third")
    assert "second" in table[2] and "0 / 4" in table[2]


def test_a_message_is_told_once() -> None:
    checks = [CheckResult(n, f"{n}.", 1, False, False, "No such name.") for n in ("a", "b")]
    lines = text(ExerciseResult("x.y", 0.0, 2.0, "failed", checks), public=True).splitlines()
    assert [line.strip() for line in lines[1:]] == ["✗ a.", "No such name.", "✗ b.", "As above."]


def test_a_list_is_not_told_that_it_is_float32() -> None:
    def rope_angles(positions, dim, base=10000.0, kind=list):
        ladder = base ** (-2 * np.arange(dim // 2) / dim)
        angles = np.asarray(positions, dtype=float)[..., None] * ladder
        return kind(angles) if dim > 0 and dim % 2 == 0 else ladder[dim]

    result = graded("rope_angles", rope_angles)
    assert result.status == "partly" and result.misconception is None

    def in_float32(positions, dim, base=10000.0):
        return rope_angles(positions, dim, base, np.float32)

    named = graded("rope_angles", in_float32).misconception
    assert named and named["id"] == "rope-angles-float32"


def test_what_joins_letters_stays_and_what_turns_or_hides_them_goes() -> None:
    assert clean("a\u200cb\u200dc") == "a\u200cb\u200dc"
    assert clean("a\u200b\u202e\u2066\ufeff\u00ad\x07\x7f\ud800\ue000b\n") == "ab\n"
