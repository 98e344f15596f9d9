"""The grade book in PostgreSQL, in a server that this test starts and ends."""

import copy
import csv
import glob
import multiprocessing
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder import autograded, course, gradebook, sandbox, seeds
from autograder.course import CourseError
from tests.nbgrader_class import (
    CELLS,
    CHAPTER,
    COMMENTS,
    EXERCISES,
    autograde,
    config_for,
    hand_in,
    hand_in_notebook,
    result,
    rows,
    totals,
)

NO_SERVER = (
    "NO POSTGRESQL: the grade book is not tested in PostgreSQL. Install it with "
    "'apt-get install postgresql' (its server need not run)."
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: in the search path, or where Debian keeps the newest."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    debian = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    return Path(max(debian, key=lambda p: float(Path(p).parts[-3]))).parent if debian else None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server in a temporary folder, reached through a socket there alone."""
    found = programs()
    if found is None:
        warnings.warn(NO_SERVER, stacklevel=1)
        pytest.skip(NO_SERVER)
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path must be short
    someone: dict[str, Any] = {}
    if os.getuid() == 0:  # as root the server refuses to run
        user = next(
            u for u in ("postgres", "nobody") if any(p.pw_name == u for p in pwd.getpwall())
        )
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
        someone = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def run(*command: object) -> None:
        done = subprocess.run(
            [str(found / str(command[0])), *map(str, command[1:])],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False, **someone,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    try:
        run("initdb", "-D", folder / "data", "-U", "course", "-A", "trust", "-E", "UTF8",
            "--no-sync", "--locale=C")  # fmt: skip
        quick = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
        run("pg_ctl", "start", "-w", "-D", folder / "data", "-l", folder / "log", "-o", quick)
        try:
            yield f"postgresql+psycopg://course@/NAME?host={folder}"
        finally:
            run("pg_ctl", "stop", "-m", "immediate", "-D", folder / "data")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """A data base of its own for a test, without a table."""
    import psycopg

    name = f"book_{abs(hash(request.node.name))}"
    address = server.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(address.replace("NAME", "postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return server.replace("NAME", name)


def test_a_grade_book_in_postgresql_holds_what_one_in_sqlite_holds(
    url: str, tmp_path: Path
) -> None:
    submitted = tmp_path / "submitted"
    hand_in(tmp_path, "ada", "{}", timestamp="2027-03-01T18:00:00.25+01:00")
    lite = f"sqlite:///{tmp_path / 'gradebook.db'}"
    for address in (lite, url):
        gradebook.write(address, [result("ada"), result("bob", 0.5)], submitted)
        broken = result("eve", 0.0, "grader error")
        broken.exercises[0].points = None
        gradebook.write(address, [broken, result("bob", 1 / 3)], submitted)
    assert len(rows(url)) == 3 * len(EXERCISES)
    for query in (CELLS, COMMENTS):
        assert rows(url, query) == rows(lite, query) != []
    theirs = [row[:6] + (int(row[6]),) + row[7:] for row in rows(url)]
    assert theirs == rows(lite)
    before = rows(url, "select * from grade order by id")
    gradebook.write(url, [result("ada"), result("bob", 1 / 3)], submitted)
    assert rows(url, "select * from grade order by id") == before


def _write(url: str, ready: Any, share: float) -> None:
    ready.wait(30)
    gradebook.write(url, [result(f"student-{n:03}", share) for n in range(400)])


def test_two_that_write_at_once_from_the_first_table_on_lose_nothing(url: str) -> None:
    context = multiprocessing.get_context("fork")
    autograded.released(CHAPTER)  # made once, for both
    ready = context.Barrier(2)
    writers = [context.Process(target=_write, args=(url, ready, share)) for share in (0.5, 1.0)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    full = float(sum(e.points for e in EXERCISES))
    found = totals(url)
    assert len(found) == 400 and set(found.values()) <= {full, full / 2}
    assert len(rows(url)) == 400 * len(EXERCISES)
    assert len(rows(url, "select * from alembic_version")) == 1


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="grade book") as told:
        gradebook.write(f"postgresql+psycopg://a:hunter2@/b?host={tmp_path}", [result("ada")])
    assert "hunter2" not in str(told.value)


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}")
def test_both_front_doors_write_the_same_scores_into_postgresql(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(seeds.VARIABLE, str(tmp_path / "secret"))
    solved = copy.deepcopy(autograded.released(CHAPTER))
    first = EXERCISES[0]
    answer = next(c for c in solved.cells if autograded.grade_id(c) == f"answer-{first.name}")
    answer.source = (course.ROOT / "solutions" / first.room / f"{CHAPTER}.py").read_text("utf-8")
    hand_in_notebook(tmp_path, "solved", solved)
    command = [
        sys.executable, "-m", "autograder", "grade", str(tmp_path / "submitted"),
        "--out", str(tmp_path / "grades"), "--gradebook", url, "--jobs", "1",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=course.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, before = totals(url), rows(url)
    assert ours["solved"] >= first.points
    config = config_for(tmp_path, CourseDirectory={"db_url": url})
    autograde(config)
    assert rows(url) == before
    with Gradebook(url) as book:
        CsvExportPlugin(to=str(tmp_path / "export.csv")).export(book)
    with (tmp_path / "export.csv").open(newline="") as file:
        exported = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert exported == ours
