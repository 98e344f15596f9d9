"""Collecting: real names of real platforms, hostile archives, and nothing that is lost."""

import json
import os
import socket
import stat
import struct
import zipfile
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.utils import parse_utc

from autograder import archives, course, handed_in, notebooks
from autograder.cli import main
from autograder.collect import collect
from autograder.handed_in import Unclear, claim, folder_name
from autograder.placing import TIME, Report

CHAPTERS = course.chapters()
CHAPTER, OTHER = CHAPTERS[:2]
EMPTY = json.dumps({"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def notebook(chapter: str | None = None, text: str = "x = 1") -> str:
    """A small notebook, with the grade cells of a chapter where one is named."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
    for exercise in course.manifest(chapter) if chapter else ():
        cell = nbformat.v4.new_code_cell("pass")
        cell.metadata["nbgrader"] = {"grade_id": exercise.name, "grade": True}
        made.cells.append(cell)
    return nbformat.writes(made)


def zipped(file: Path, content: dict[str, str | bytes], **more: bytes) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (content | more).items():
            archive.writestr(name, text)
    return file


def tree(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): p.read_text("utf-8")
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def reasons(report: Report) -> dict[str, str]:
    return dict(report.refused)


# ---- names ----


@pytest.mark.parametrize(
    ("name", "student", "number"),
    [
        (f"lovelaceada_1234_5678_{CHAPTER}.ipynb", "lovelaceada_1234", 5678),
        (f"lovelaceada_LATE_1234_5678_{CHAPTER}-1.ipynb", "lovelaceada_1234", 5678),
        (f"lovelaceada_late_1234_5678_{CHAPTER}-12.ipynb", "lovelaceada_1234", 5678),
        (f"anon_x1Y2z_5678_{CHAPTER}.ipynb", "anon_x1Y2z", 5678),
        (f"LATE_anon_x1Y2z_5678_{CHAPTER}.ipynb", "anon_x1Y2z", 5678),
        (f"gödelkurt_7_8_{CHAPTER}.ipynb", "gödelkurt_7", 8),
        (f"submissions/o_haramary_9_10_{CHAPTER} (1).ipynb", "o_haramary_9", 10),
    ],
)
def test_canvas_names_are_read(name: str, student: str, number: int) -> None:
    read = claim("canvas", name, CHAPTERS)
    assert (read.student, read.number, read.chapter) == (student, number, CHAPTER)


@pytest.mark.parametrize(
    "name",
    [
        f"Ada Lovelace_1234567_assignsubmission_file_/{CHAPTER}.ipynb",
        f"Ada Lovelace_1234567_assignsubmission_file/{CHAPTER}.ipynb",  # Moodle 4.1 and later
        f"Ada Lovelace_1234567_assignsubmission_file_{CHAPTER}.ipynb",  # without folders
        f"download/Ada Lovelace_1234567_assignsubmission_file_/week 1/{CHAPTER}.ipynb",
        # a folder that the student made, named like somebody else's
        f"Ada Lovelace_1234567_assignsubmission_file_/Bob_2_assignsubmission_file_/{CHAPTER}.ipynb",
    ],
)
def test_moodle_names_are_read(name: str) -> None:
    read = claim("moodle", name, CHAPTERS)
    assert (read.student, read.who) == ("Ada-Lovelace_1234567", "Ada Lovelace_1234567")
    assert (read.file, read.chapter) == (f"{CHAPTER}.ipynb", CHAPTER)


@pytest.mark.parametrize("kind", ["canvas", "moodle"])
@pytest.mark.parametrize("name", [f"{CHAPTER}.ipynb", f"Default group_{CHAPTER}.ipynb", "_1_2_"])
def test_names_of_no_platform_are_unclear(kind: str, name: str) -> None:
    with pytest.raises(Unclear):
        claim(kind, name, CHAPTERS)


DASHES = CHAPTER.replace("_", "-")


@pytest.mark.parametrize(
    ("name", "student", "chapter"),
    [
        (f"ada_{CHAPTER}.ipynb", "ada", CHAPTER),
        (f"ada-{DASHES}.ipynb", "ada", CHAPTER),
        (f"Ada Lovelace_{CHAPTER}.ipynb", "Ada-Lovelace", CHAPTER),
        (f"{CHAPTER}/ada.ipynb", "ada", CHAPTER),
        (f"ada/{CHAPTER}.ipynb", "ada", CHAPTER),
        (f"ada/{CHAPTER} (1).ipynb", "ada", CHAPTER),
        (f"ada/{CHAPTER}-final.IPYNB", "ada", CHAPTER),
        (f"ada/{CHAPTER}/{CHAPTER}.ipynb", "ada", CHAPTER),
        (f"{CHAPTER}/ada/{CHAPTER}.ipynb", "ada", CHAPTER),
        ("ada.ipynb", "ada", None),
    ],
)
def test_flat_names_are_read(name: str, student: str, chapter: str | None) -> None:
    read = claim("flat", name, CHAPTERS)
    assert (read.student, read.chapter) == (student, chapter)


@pytest.mark.parametrize(
    "name",
    [
        f"{CHAPTER}.ipynb",
        f"{CHAPTER}_ada.ipynb",
        f"{CHAPTER}_{OTHER}.ipynb",
        f"{CHAPTER}/{OTHER}.ipynb",
        f"{CHAPTER}/{CHAPTER}.ipynb",
        f"{CHAPTER}/{OTHER}/{CHAPTER}.ipynb",
        "group/ada.ipynb",
        f"a/b/ada/{CHAPTER}.ipynb",
        f"=_{CHAPTER}.ipynb",
        "\u202e\u200b.ipynb",
    ],
)
def test_what_can_be_read_in_two_ways_is_not_guessed(name: str) -> None:
    with pytest.raises(Unclear):
        claim("flat", name, CHAPTERS)


@given(st.text(max_size=300))
def test_any_name_becomes_a_folder_that_stays_where_it_is(text: str) -> None:
    name = folder_name(text)
    assert len(name.encode()) <= handed_in.LONGEST and name == folder_name(name)
    assert not set(name) & set("/\\:*?\"<>|\0\n+=`$'") and name[:1] not in ("-", ".", "@")
    assert name.isprintable() and Path("a", name).resolve().parent in (
        Path("a").resolve(),
        Path().resolve() if not name else Path("a").resolve(),
    )


@given(st.sampled_from(["canvas", "moodle", "flat"]), st.text(max_size=200))
def test_any_name_of_a_file_is_read_or_unclear(kind: str, name: str) -> None:
    try:
        read = claim(kind, f"{name}.ipynb", CHAPTERS)
    except Unclear as unclear:
        assert str(unclear)
    else:
        assert read.student and "/" not in read.student


# ---- what an archive may do ----


def taken(source: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    refused: dict[str, str] = {}
    found = {}
    for entry in archives.entries(source, refused.__setitem__):
        try:
            found[entry.name] = entry.read()
        except notebooks.Malformed as error:
            refused[entry.name] = str(error)
    return found, refused


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../x.ipynb", "out of the archive"),
        ("a/../../x.ipynb", "out of the archive"),
        ("a//x.ipynb", "out of the archive"),
        ("/etc/x.ipynb", "absolute"),
        ("C:/x.ipynb", "absolute"),
        ("a\\..\\x.ipynb", "backslash"),
        ("a\x1b[2Jx.ipynb", "control"),
        ("a" * 300 + ".ipynb", "longer"),
        ("a/" * 40 + "x.ipynb", "longer"),
        ("x.zip", "archive inside"),
        ("x.tar.gz", "archive inside"),
        ("ada_1_text.html", "platform"),
        ("x.pdf", "no notebook"),
    ],
)
def test_names_that_must_not_become_paths_are_told(tmp_path: Path, name: str, words: str) -> None:
    found, refused = taken(zipped(tmp_path / "a.zip", {name: "x", "good.ipynb": "y"}))
    assert found == {"good.ipynb": b"y"}
    assert list(refused) == [name] and words in refused[name]


def test_what_systems_add_is_left_out_without_a_word(tmp_path: Path) -> None:
    found, refused = taken(
        zipped(tmp_path / "a.zip", {"__MACOSX/._x.ipynb": "", ".DS_Store": "", "x.ipynb": "y"})
    )
    assert (found, refused) == ({"x.ipynb": b"y"}, {})


def test_links_and_devices_in_a_zip_are_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, kind in (("link.ipynb", stat.S_IFLNK), ("pipe.ipynb", stat.S_IFIFO)):
            info = zipfile.ZipInfo(name)
            info.external_attr = (kind | 0o644) << 16
            archive.writestr(info, "/etc/passwd")
    found, refused = taken(tmp_path / "a.zip")
    assert not found and all("link or a device" in why for why in refused.values())
    assert len(refused) == 2


def test_links_pipes_and_sockets_in_a_folder_are_told(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "real").mkdir(parents=True)
    (source / "real" / "a.ipynb").write_text("x")
    (source / "link.ipynb").symlink_to("/etc/passwd")
    (source / "folder").symlink_to("/etc")
    os.mkfifo(source / "pipe.ipynb")
    here = os.getcwd()
    os.chdir(source)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.ipynb")
        os.chdir(here)
        found, refused = taken(source)
    assert list(found) == ["real/a.ipynb"]
    assert set(refused) == {"link.ipynb", "folder", "pipe.ipynb", "socket.ipynb"}


def test_a_bomb_is_told_and_never_unpacked(tmp_path: Path) -> None:
    found, refused = taken(
        zipped(tmp_path / "a.zip", {"bomb.ipynb": b" " * (8 << 20), "big.ipynb": os.urandom(1)})
    )
    assert list(found) == ["big.ipynb"] and "zip bomb" in refused["bomb.ipynb"]


def test_a_notebook_larger_than_any_is_told(tmp_path: Path) -> None:
    content = bytes(notebooks.MAX_BYTES + 1)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("big.ipynb", content)
    found, refused = taken(tmp_path / "a.zip")
    assert not found and "larger than 20 MiB" in refused["big.ipynb"]


def test_a_header_that_lies_about_the_size_is_told(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"liar.ipynb": b"0123456789" * 90_000})
    raw = bytearray(file.read_bytes())
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(signature) + place
        raw[at : at + 4] = struct.pack("<I", 10)
    file.write_bytes(raw)
    found, refused = taken(file)
    assert not found and "cannot be unpacked" in refused["liar.ipynb"]


def test_encrypted_archives_are_refused_and_single_entries_told(tmp_path: Path) -> None:
    def encrypt(file: Path, which: bytes) -> None:
        raw = bytearray(file.read_bytes())
        for signature, flags, name in ((b"PK\x03\x04", 6, 30), (b"PK\x01\x02", 8, 46)):
            at = raw.find(signature)
            while at >= 0:
                if raw[at + name :].startswith(which):
                    raw[at + flags] |= 1
                at = raw.find(signature, at + 1)
        file.write_bytes(raw)

    file = zipped(tmp_path / "a.zip", {"a.ipynb": "x", "b.ipynb": "y"})
    encrypt(file, b"a.ipynb")
    found, refused = taken(file)
    assert list(found) == ["b.ipynb"] and refused == {"a.ipynb": "it is encrypted"}
    encrypt(file, b"b.ipynb")
    with pytest.raises(course.CourseError, match="is encrypted"):
        taken(file)


def test_too_many_entries_and_too_much_in_all_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = zipped(tmp_path / "a.zip", {f"{n}.ipynb": "x" * 10 for n in range(5)})
    monkeypatch.setattr(archives, "MAX_TOTAL", 49)
    with pytest.raises(course.CourseError, match="would unpack to"):
        taken(file)
    monkeypatch.setattr(archives, "MAX_ENTRIES", 4)
    with pytest.raises(course.CourseError, match="has 5 entries"):
        taken(file)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_a_wrong_request(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    code = main(["collect", str(tmp_path / "a.zip"), "--from", "canvas", "--into", str(tmp_path)])
    assert code == 2 and "no zip" in capsys.readouterr().err


@given(st.binary(max_size=400), st.integers(0, 300))
def test_a_damaged_archive_never_breaks_the_collector(noise: bytes, at: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = zipped(Path(folder, "a.zip"), {f"a_1_2_{CHAPTER}.ipynb": EMPTY})
        raw = file.read_bytes()
        file.write_bytes(raw[:at] + noise + raw[at + len(noise) :])
        try:
            found, refused = taken(file)
        except course.CourseError as error:
            assert str(error)
        else:
            assert len(found) + len(refused) <= 1


# ---- the whole way ----


def test_a_canvas_zip_arrives_with_nothing_lost(tmp_path: Path) -> None:
    content: dict[str, str | bytes] = {
        f"lovelaceada_1_11_{CHAPTER}.ipynb": notebook(CHAPTER, "old"),
        f"lovelaceada_LATE_1_12_{CHAPTER}-1.ipynb": notebook(CHAPTER, "ada"),
        f"noetheremmy_2_21_{CHAPTER} (1).ipynb": notebook(CHAPTER, "emmy"),
        "gödelkurt_3_31_Untitled.ipynb": notebook(CHAPTER, "kurt"),
        f"turingalan_4_41_{CHAPTER}.ipynb": notebook(OTHER, "alan"),
        "erdőspál_5_51_essay.pdf": "x",
        "cantorgeorg_6_61_notes.ipynb": EMPTY,
        f"curiemarie_7_71_{CHAPTER}.ipynb": "{ no notebook",
    }
    source = zipped(tmp_path / "submissions.zip", content)
    into = tmp_path / "class" / "submitted"
    report = collect(source, "canvas", into)
    assert {name: text.split('"')[0][:5] for name, text in tree(into).items()}.keys() == {
        f"lovelaceada_1/{CHAPTER}/{CHAPTER}.ipynb",
        f"noetheremmy_2/{CHAPTER}/{CHAPTER}.ipynb",
        f"gödelkurt_3/{CHAPTER}/{CHAPTER}.ipynb",
        f"curiemarie_7/{CHAPTER}/{CHAPTER}.ipynb",
    }
    assert '"ada"' in tree(into)[f"lovelaceada_1/{CHAPTER}/{CHAPTER}.ipynb"]
    assert set(reasons(report)) == {
        f"lovelaceada_1_11_{CHAPTER}.ipynb",
        f"turingalan_4_41_{CHAPTER}.ipynb",
        "erdőspál_5_51_essay.pdf",
        "cantorgeorg_6_61_notes.ipynb",
    }
    assert len(report.new) + len(report.refused) == len(content)
    assert "its cells are of" in reasons(report)[f"turingalan_4_41_{CHAPTER}.ipynb"]
    assert any("Untitled.ipynb" in note and "by its cells" in note for note in report.notes)
    assert any("(1).ipynb" in note for note in report.notes)
    assert any(f"lovelaceada_1/{CHAPTER} is late" in note for note in report.notes)
    known = json.loads((tmp_path / "class" / "collected.json").read_text("utf-8"))
    assert known["lovelaceada_1"][CHAPTER]["name"] == f"lovelaceada_LATE_1_12_{CHAPTER}-1.ipynb"

    before = tree(tmp_path / "class")
    again = collect(source, "canvas", into)
    assert tree(tmp_path / "class") == before
    assert (again.new, again.replaced, len(again.unchanged)) == ([], [], 4)
    assert again.refused == report.refused


def test_a_notebook_beside_the_right_one_does_not_take_its_place(tmp_path: Path) -> None:
    names = [f"ada_1_11_{CHAPTER}.ipynb", "ada_1_12_notes.ipynb"]
    source = zipped(tmp_path / "a.zip", {names[0]: notebook(CHAPTER), names[1]: EMPTY})
    report = collect(source, "canvas", tmp_path / "submitted", chapter=CHAPTER)
    assert list(reasons(report)) == [names[1]] and report.new == [f"ada_1/{CHAPTER}"]
    assert "grade_id" in tree(tmp_path / "submitted")[f"ada_1/{CHAPTER}/{CHAPTER}.ipynb"]


def test_names_without_the_flag_for_utf8_are_read_as_utf8(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {f"g_del_1_2_{CHAPTER}.ipynb": EMPTY})
    file.write_bytes(file.read_bytes().replace(b"g_del", "göel".encode()))  # the same length
    report = collect(file, "canvas", tmp_path / "submitted")
    assert report.new == [f"göel_1/{CHAPTER}"]


def test_a_moodle_zip_arrives_in_both_of_its_forms(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"Ada Lovelace_101_assignsubmission_file_/{CHAPTER}.ipynb": notebook(CHAPTER),
        "Ada Lovelace_101_assignsubmission_onlinetext_/onlinetext.html": "x",
        f"Kurt Gödel_102_assignsubmission_file_{CHAPTER}.ipynb": notebook(CHAPTER),
        f"لم\u202e_103_assignsubmission_file_/{CHAPTER}.ipynb": notebook(CHAPTER),
        f"../Eve_104_assignsubmission_file_/{CHAPTER}.ipynb": notebook(CHAPTER),
        f"Eve_104_assignsubmission_file_/Ada Lovelace_101_assignsubmission_file_/{CHAPTER}.ipynb":
            notebook(CHAPTER, "eve"),
    }  # fmt: skip
    into = tmp_path / "submitted"
    report = collect(zipped(tmp_path / "a.zip", files), "moodle", into, chapter=CHAPTER)
    assert {name.split("/")[0] for name in tree(into)} == {
        "Ada-Lovelace_101", "Kurt-Gödel_102", "لم_103", "Eve_104",
    }  # fmt: skip
    assert len(report.refused) == 2
    assert "eve" not in tree(into)[f"Ada-Lovelace_101/{CHAPTER}/{CHAPTER}.ipynb"]


def test_names_that_some_file_systems_mix_up_are_told(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"Ada_1_assignsubmission_file_/{CHAPTER}.ipynb": EMPTY,
        f"ADA_1_assignsubmission_file_/{CHAPTER}.ipynb": EMPTY,
        f"A+b_2_assignsubmission_file_/{CHAPTER}.ipynb": EMPTY,
        f"A*b_2_assignsubmission_file_/{CHAPTER}.ipynb": EMPTY,
    }
    report = collect(zipped(tmp_path / "a.zip", files), "moodle", tmp_path / "submitted")
    assert set(reasons(report)) == set(files) and not report.new
    assert all("differ too little" in why for why in reasons(report).values())


def flat(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_flat_folder_arrives_and_the_cells_tell_the_chapter(tmp_path: Path) -> None:
    source = flat(tmp_path / "in", ada=notebook(OTHER), **{f"bob_{CHAPTER}": EMPTY}, eve=EMPTY)
    into = tmp_path / "submitted"
    report = collect(source, "flat", into)
    assert set(tree(into)) == {
        f"ada/{OTHER}/{OTHER}.ipynb", f"bob/{CHAPTER}/{CHAPTER}.ipynb",
    }  # fmt: skip
    assert "--chapter" in reasons(report)["eve.ipynb"]
    report = collect(source, "flat", into, chapter=CHAPTER)
    assert report.new == [f"eve/{CHAPTER}"] and report.unchanged == [f"bob/{CHAPTER}"]
    assert f"only {CHAPTER} was asked for" in reasons(report)["ada.ipynb"]


def test_a_newer_one_replaces_and_the_older_is_kept(tmp_path: Path) -> None:
    into = tmp_path / "submitted"
    for text in ("first", "second"):
        report = collect(flat(tmp_path / "in", **{f"ada__{CHAPTER}": text}), "flat", into)
    assert report.replaced == [f"ada/{CHAPTER}"]
    assert tree(into) == {f"ada/{CHAPTER}/{CHAPTER}.ipynb": "second"}
    kept = tree(tmp_path / "submitted-before" / "ada" / CHAPTER)
    assert list(kept.values()) == ["first"]


def test_an_older_attempt_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    into = tmp_path / "submitted"
    for number, text in ((12, "new"), (11, "old")):
        name = f"ada_1_{number}_{CHAPTER}.ipynb"
        report = collect(zipped(tmp_path / "a.zip", {name: text}), "canvas", into)
    assert "is newer" in reasons(report)[f"ada_1_11_{CHAPTER}.ipynb"]
    assert tree(into) == {f"ada_1/{CHAPTER}/{CHAPTER}.ipynb": "new"}


def test_the_same_notebook_handed_in_again_keeps_its_place_under_its_new_name(
    tmp_path: Path,
) -> None:
    into = tmp_path / "submitted"
    for number in (11, 12, 10):
        name = f"ada_1_{number}_{CHAPTER}.ipynb"
        report = collect(zipped(tmp_path / "a.zip", {name: EMPTY}), "canvas", into)
    assert report.unchanged == [f"ada_1/{CHAPTER}"] and not report.refused
    known = json.loads((tmp_path / "collected.json").read_text())
    assert known["ada_1"][CHAPTER]["number"] == 12
    assert not (tmp_path / "submitted-before").exists()


def test_times_are_written_as_nbgrader_reads_them(tmp_path: Path) -> None:
    source = flat(tmp_path / "in", **{f"ada__{CHAPTER}__{CHAPTER}": EMPTY, f"bob_{CHAPTER}": EMPTY})
    (source / "ada" / CHAPTER / "timestamp.txt").write_text("2026-11-30 12:00:00.5 UTC")
    os.utime(source / f"bob_{CHAPTER}.ipynb", (1_800_000_000, 1_800_000_000))
    into = tmp_path / "submitted"
    collect(source, "flat", into)
    assert not (into / "bob" / CHAPTER / "timestamp.txt").exists()
    collect(source, "flat", tmp_path / "dated", file_times=True)
    ada = (into / "ada" / CHAPTER / "timestamp.txt").read_text()
    bob = (tmp_path / "dated" / "bob" / CHAPTER / "timestamp.txt").read_text()
    assert parse_utc(ada) == datetime(2026, 11, 30, 12, 0, 0, 500_000)
    assert parse_utc(bob) == datetime(2027, 1, 15, 8, 0) and bob.endswith("UTC")
    assert datetime.strptime(bob, TIME)


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = flat(tmp_path / "in", **{f"ada_{CHAPTER}": EMPTY, "x\x1b[2J": EMPTY})
    into = tmp_path / "submitted"
    words = ["collect", str(source), "--from", "flat", "--into", str(into), "--dry-run"]
    assert main(words) == 1
    shown = capsys.readouterr()
    assert "1 would be new" in shown.out and "\x1b" not in shown.err and "not taken: x" in shown.err
    assert not into.exists() and os.listdir(tmp_path) == ["in"]


def test_everything_taken_is_exit_code_0(tmp_path: Path) -> None:
    source = flat(tmp_path / "in", **{f"ada_{CHAPTER}": EMPTY})
    words = ["collect", str(source), "--from", "flat", "--into", str(tmp_path / "submitted")]
    assert main(words) == 0 and main(words) == 0


def test_a_link_in_the_tree_is_not_written_through(tmp_path: Path) -> None:
    outside, into = tmp_path / "outside", tmp_path / "submitted"
    outside.mkdir()
    into.mkdir()
    (into / "ada").symlink_to(outside)
    report = collect(flat(tmp_path / "in", **{f"ada_{CHAPTER}": EMPTY}), "flat", into)
    assert "is a link" in reasons(report)[f"ada_{CHAPTER}.ipynb"]
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "--from", "flat"], "there is no"),
        (["nowhere", "--from", "exchange"], "root of the exchange"),
        ([str(Path(__file__)), "--from", "flat"], "no zip"),
        (["nowhere", "--from", "flat", "--chapter", "nothing"], "there is no chapter"),
    ],
)
def test_wrong_requests_are_told(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", *words, "--into", str(tmp_path / "submitted")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_the_exchange_is_collected_by_nbgrader_and_no_link_is_followed(tmp_path: Path) -> None:
    inbound = tmp_path / "exchange" / "positional-encoding" / "inbound"

    def hand_in(who: str, time: str, text: str, name: str = CHAPTER, more: str = "") -> Path:
        folder = inbound / f"{who}+{CHAPTER}+{time}{more}"
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text(text)
        (folder / "timestamp.txt").write_text(time)
        return folder

    hand_in("ada", "2026-11-01 10:00:00.0 UTC", notebook(CHAPTER, "old"))
    hand_in("ada", "2026-11-02 10:00:00.0 UTC", notebook(CHAPTER, "ada"), more="+Zm9v")
    hand_in("bob", "2026-11-02 10:00:00.0 UTC", notebook(CHAPTER, "bob"), name="mine")
    thief = hand_in("eve", "2026-11-02 10:00:00.0 UTC", notebook(CHAPTER, "eve"))
    (tmp_path / "secret").write_text("secret")
    (thief / "data.txt").symlink_to(tmp_path / "secret")
    (inbound / "no time").mkdir()
    (inbound / f"x+{CHAPTER}+yesterdayish").mkdir()
    into = tmp_path / "submitted"
    report = collect(tmp_path / "exchange", "exchange", into)
    found = tree(into)
    assert {name.split("/")[0] for name in found} == {"ada", "bob", "eve"}
    assert '"ada"' in found[f"ada/{CHAPTER}/{CHAPTER}.ipynb"]
    assert found[f"ada/{CHAPTER}/timestamp.txt"].startswith("2026-11-02")
    assert '"bob"' in found[f"bob/{CHAPTER}/{CHAPTER}.ipynb"]
    assert "secret" not in found.values() and len(report.refused) == 3
    assert any("belongs to the account" in note for note in report.notes)
    again = collect(tmp_path / "exchange", "exchange", into)
    assert len(again.unchanged) == 3 and tree(into) == found


def test_what_is_there_is_replaced_whatever_its_size(tmp_path: Path) -> None:
    source, into = tmp_path / "in", tmp_path / "submitted"
    there = into / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    there.parent.mkdir(parents=True)
    for file in (there, there.with_name("timestamp.txt")):
        with file.open("wb") as opened:
            opened.truncate(1 << 40)
    source.mkdir()
    (source / f"ada_{CHAPTER}.ipynb").write_text(EMPTY)
    assert collect(source, "flat", into).replaced == [f"ada/{CHAPTER}"]
    assert there.read_text() == EMPTY
