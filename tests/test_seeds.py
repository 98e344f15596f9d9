"""A seed that nobody can prepare for, and that is the same whoever asks for it."""

import os
import stat
from pathlib import Path

import pytest

from autograder import course, seeds

KEY = b"0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    named = tmp_path / "below" / "secret"
    monkeypatch.setenv(seeds.VARIABLE, str(named))
    return named


def test_students_chapters_attempts_and_courses_have_seeds_of_their_own() -> None:
    asked = [
        ("ada", "one", b"x = 1", KEY),
        ("bob", "one", b"x = 1", KEY),
        ("ada", "two", b"x = 1", KEY),
        ("ada", "one", b"x = 2", KEY),
        ("ada", "one", b"x = 1", KEY[::-1]),
        ("adaone", "", b"x = 1", KEY),  # nothing runs together
    ]
    found = [seeds.of(*one) for one in asked]
    assert len(set(found)) == len(asked)
    assert found == [seeds.of(*one) for one in asked]
    assert all(0 <= seed < 2**53 for seed in found)


def test_a_seed_is_what_its_definition_says() -> None:
    """HMAC-SHA256 of '["ada", "one", SHA-256("x = 1")]', its first six bytes, by `openssl dgst`."""
    assert seeds.of("ada", "one", b"x = 1", KEY) == 0xBA6A119F3843


def test_the_secret_is_made_on_first_use_for_its_owner_alone(file: Path) -> None:
    made = seeds.secret()
    assert len(made) == 64 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert seeds.secret() == made == seeds.secret(file)
    assert seeds.of("ada", "one", b"") == seeds.of("ada", "one", b"", made)
    assert [p.name for p in file.parent.iterdir()] == ["secret"]
    file.unlink()
    assert seeds.secret() != made


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "0 bytes"), (b"short\n", "5 bytes"), (b"x" * 5000, "more than")]
)
def test_a_secret_that_is_none_is_refused_with_the_cure(
    file: Path, content: bytes, words: str
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(course.CourseError, match=words) as refused:
        seeds.secret()
    assert str(file) in str(refused.value) and "remove the file" in str(refused.value)


def test_a_secret_that_others_can_read_is_warned_of(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds.secret()
    assert capsys.readouterr().err == ""
    file.chmod(0o644)
    seeds.secret()
    assert f"chmod 600 {file}" in capsys.readouterr().err


def test_a_secret_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(course.CourseError, match="cannot be read"):
        seeds.secret(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(course.CourseError, match="--secret"):
        seeds.secret(tmp_path / "file" / "below")


def test_the_secret_lies_in_the_class_folder_where_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(seeds.VARIABLE, raising=False)
    assert seeds.default_file() == course.ROOT / "class" / "secret"
    assert "class/" in (course.ROOT / ".gitignore").read_text().split(os.linesep)
