"""Grading many on several processes: one result each, whatever dies, changes or is too much."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from autograder import core, course, engine, grading, grading_process, identity, outputs, sandbox
from autograder import submissions as handed_in
from autograder.results import SubmissionResult, from_json, to_json
from autograder.sandbox import Limits
from tests.tiny import CHAPTER, answers, command, grade, hand_in, notebook, table

pytestmark = [pytest.mark.sandbox, pytest.mark.long]
needs_sandbox = pytest.mark.skipif(
    not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"
)
SEED = 7
MEGABYTE = 1 << 20


# ---- what grading processes do in these tests ----


def about(parcel: dict[str, Any]) -> str:
    """Something about the process itself."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    interrupt = signal.SIGINT in blocked
    return f"{os.environ.get('OMP_NUM_THREADS')} {interrupt} {'numpy' in sys.modules}"


def size_of(parcel: dict[str, Any]) -> str:
    return str(len(parcel["content"]))


def die_sometimes(parcel: dict[str, Any]) -> str:
    """The process dies of a poison each time, and of an accident the first time."""
    if parcel["kind"] == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    if parcel["kind"] == "accident" and not os.path.exists(parcel["mark"]):
        Path(parcel["mark"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return str(parcel["number"])


@pytest.fixture(scope="module")
def crowd() -> Iterator[engine.Crowd]:
    with engine.Crowd(2) as made:
        yield made


# ---- the processes ----


def test_grading_processes_compute_on_one_thread_and_leave_ctrl_c_to_the_command(
    crowd: engine.Crowd,
) -> None:
    told = [text for _, text in crowd.run(iter([(n, {}) for n in range(4)]), about)]
    assert {str(text).rsplit(" ", 1)[0] for text in told} == {"1 True"}


def test_nobody_else_can_talk_to_the_scheduler_or_to_a_process(crowd: engine.Crowd) -> None:
    list(crowd.run(iter([(0, {})]), about))
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [c.laddr for p in family for c in p.net_connections() if c.status == "LISTEN"]
    assert listening and {address.ip for address in listening} <= {"127.0.0.1"}
    assert crowd._cluster.scheduler_address.startswith("tls://")
    with pytest.raises(course.CourseError, match="no scheduler answers"):
        engine.Crowd(1, crowd._cluster.scheduler_address).__enter__()  # without our certificate


def test_submissions_that_wait_are_bounded_in_number_and_in_memory(crowd: engine.Crowd) -> None:
    """100 submissions of 1 MiB: no more on their way than has places, and not all in memory."""
    pulled = ended = most = 0
    before = peak = psutil.Process().memory_info().rss

    def parcels() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal pulled, most
        for number in range(100):
            pulled += 1
            most = max(most, pulled - ended)
            yield number, {"content": os.urandom(MEGABYTE)}

    found = set()
    for number, text in crowd.run(parcels(), size_of):
        ended += 1
        peak = max(peak, psutil.Process().memory_info().rss)
        assert text == str(MEGABYTE)
        found.add(number)
    assert found == set(range(100))
    assert most <= engine.AHEAD * 2 + 1
    assert peak - before < 50 * MEGABYTE


def test_what_is_on_its_way_is_bounded_in_bytes_too(
    crowd: engine.Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BYTES_AHEAD", 10)
    pulled, ended = [], []

    def parcels() -> Iterator[tuple[int, dict[str, Any]]]:
        for number in range(6):
            pulled.append(number)
            assert len(pulled) - len(ended) <= 1
            yield number, {"content": b"x" * 20}

    for number, _ in crowd.run(parcels(), size_of):
        ended.append(number)
    assert sorted(ended) == list(range(6))


def test_of_a_process_that_dies_nothing_is_lost_and_only_a_poison_is_given_up(
    crowd: engine.Crowd, tmp_path: Path
) -> None:
    kinds = ["plain", "poison", "plain", "accident", "plain", "plain"]
    mark = str(tmp_path / "mark")
    parcels = [(n, {"kind": k, "mark": mark, "number": n}) for n, k in enumerate(kinds)]
    told = list(crowd.run(iter(parcels), die_sometimes))
    assert sorted(told) == [(n, None if k == "poison" else str(n)) for n, k in enumerate(kinds)]


def test_all_submissions_of_a_process_are_run_by_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sandbox ends with the thread that started it, and Dask may use several."""
    seen = []

    def note_thread(student: str, chapter: str, *_: Any, **__: Any) -> SubmissionResult:
        seen.append(threading.get_ident())
        return SubmissionResult(student, chapter, "graded", [])

    monkeypatch.setattr(core, "grade_bytes", note_thread)
    parcel = {
        "student": "a", "chapter": CHAPTER, "content": b"", "seed": 1,
        "limits": Limits().as_dict(), "walls": False, "try_walls": False, "same": identity.whole(),
    }  # fmt: skip
    callers = [threading.Thread(target=grading_process.grade, args=(parcel,)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(seen) == 4 and len(set(seen)) == 1
    assert not {caller.ident for caller in callers} & set(seen)


# ---- what they tell ----


def test_a_result_travels_as_text_unchanged() -> None:
    result = core.grade_bytes("é\x1b", CHAPTER, b"{", seed=3, limits=Limits(), walls=True)
    assert result.status == "malformed" and len(result.sha256) == 64
    assert from_json(to_json(result)) == result


BROKEN = [
    "", "[", "3", "{}", "[" * 100_000, '{"result": 3, "memory": 1}', '{"result": "{}"}',
    '{"result": "{\\"student\\": 1}", "memory": 1}', '{"memory": 1}',
]  # fmt: skip


@pytest.mark.parametrize("text", [None, *BROKEN], ids=lambda text: repr(text)[:20])
def test_a_text_that_is_no_result_is_a_fault_of_one_submission(
    text: str | None, tmp_path: Path
) -> None:
    class Told:
        versions = identity.versions()

        def run(self, parcels: Any, work: Any) -> Any:
            return ((key, text) for key, _ in parcels)

    hand_in(tmp_path, "ada", notebook("x = 1"))
    run = grading.Run(tmp_path / "out", Told(), lambda *_: SEED, Limits(), True)  # type: ignore[arg-type]
    (row,) = run.grade(handed_in.find(tmp_path)).rows
    assert (row.status, row.score) == ("grader error", None) and "grade this one again" in row.note
    (kept,) = outputs.read_all(tmp_path / "out")
    assert kept.seed == SEED and len(kept.sha256) == 64


def test_walls_that_fall_stop_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall(*_: Any, **__: Any) -> None:
        raise sandbox.SandboxFault("the worker did not even start")

    class Here:
        versions = identity.versions()

        def run(self, parcels: Any, work: Any) -> Any:
            return ((key, work(parcel)) for key, parcel in parcels)

    monkeypatch.setattr(core, "Session", fall)
    for student in ("ada", "bob"):
        hand_in(tmp_path, student, notebook("x = 1"))
    run = grading.Run(tmp_path / "out", Here(), lambda *_: SEED, Limits(), True)  # type: ignore[arg-type]
    with pytest.raises(sandbox.SandboxMissing, match="did not even start"):
        run.grade(handed_in.find(tmp_path))
    assert run.report.rows == []


def test_a_worker_with_another_course_is_refused_by_name() -> None:
    mine = identity.whole()
    identity.agree("w", mine, {**mine})
    with pytest.raises(course.CourseError, match="worker w has another course"):
        identity.agree("w", mine, {**mine, "course": "0" * 64})
    other = {**mine, "versions": {**mine["versions"], "numpy": "1.0"}}
    with pytest.raises(course.CourseError, match=r"numpy [\d.]+ → 1.0"):
        identity.agree("w", mine, other)


# ---- what decides whether a grade holds ----


def test_each_file_that_can_change_a_grade_changes_its_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copy_of_the_course(tmp_path)
    first, second = course.chapters()[:2]

    def digests() -> list[str]:
        for kept in (identity.of_course, identity.of_chapter, identity.machinery):
            kept.cache_clear()
        return [identity.of_course(), identity.of_chapter(first), identity.of_chapter(second)]

    before = digests()
    monkeypatch.setattr(course, "ROOT", copied)
    monkeypatch.setattr(identity, "HERE", copied / "autograder")
    monkeypatch.setattr(identity, "START", copied / "autograder" / "core.py")
    try:
        assert digests() == before
        for changed, expected in {
            f"solutions/with_numpy/{first}.py": [True, True, True],  # later ones may use it
            f"autograder/misconceptions/{second}.py": [True, False, True],
            "autograder/session.py": [True, True, True],
            "autograder/worker.py": [True, True, True],
            "autograder/assertions.py": [True, True, True],
            "autograder/release.py": [False, False, False],
        }.items():
            file = copied / changed
            file.write_text(file.read_text("utf-8") + "\n# changed\n", "utf-8")
            now = digests()
            assert [a != b for a, b in zip(before, now, strict=True)] == expected, changed
            before = now
    finally:
        monkeypatch.undo()
        digests()


def test_a_fingerprint_tells_attempts_seeds_versions_and_limits_apart() -> None:
    versions = identity.versions()
    how = core.conditions(Limits(), True)
    asked = [
        ("a", CHAPTER, 1, versions, how),
        ("b", CHAPTER, 1, versions, how),
        ("a", course.chapters()[1], 1, versions, how),
        ("a", CHAPTER, 2, versions, how),
        ("a", CHAPTER, 1, {**versions, "torch": "0"}, how),
        ("a", CHAPTER, 1, versions, core.conditions(Limits(cell_seconds=1), True)),
        ("a", CHAPTER, 1, versions, core.conditions(Limits(), False)),
    ]
    assert len({identity.fingerprint(*one) for one in asked}) == len(asked)


def copy_of_the_course(folder: Path) -> Path:
    copied = folder / "copy"
    skip = shutil.ignore_patterns("__pycache__", "_build", "figures", "_static")
    for part in ("autograder", "solutions", "book"):
        shutil.copytree(course.ROOT / part, copied / part, ignore=skip)
    for part in ("_toc.yml", "nbgrader_config.py"):
        shutil.copy(course.ROOT / part, copied / part)
    return copied


# ---- a small class, graded ----


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, crowd: engine.Crowd) -> Path:
    """A class of five, graded once without any disturbance."""
    folder = tmp_path_factory.mktemp("small")
    hand_in(folder / "submitted", "all", notebook(*map(answers, course.ROOMS)))
    hand_in(folder / "submitted", "half", notebook("1 / 0", answers(course.ROOMS[0])))
    hand_in(folder / "submitted", "none", notebook("x = 1"))
    hand_in(folder / "submitted", "odd", "{")
    (folder / "submitted" / "absent").mkdir()
    (folder / "secret").write_text("a secret of sixteen bytes or more")
    (folder / "secret").chmod(0o600)
    if sandbox.available():
        the_run(folder, folder / "grades", crowd).grade(handed_in.find(folder / "submitted"))
    return folder


def the_run(folder: Path, out: Path, crowd: engine.Crowd) -> grading.Run:
    """As the command runs it, with the class's secret."""
    from autograder import seeds

    key = seeds.secret(folder / "secret")
    limits = Limits(cell_seconds=6)
    return grading.Run(out, crowd, lambda s, c, b: seeds.of(s, c, b, key), limits, True)


LIKE_THE_RUN = ("--cell-seconds", 6)


@needs_sandbox
def test_the_small_class_is_graded_and_every_record_tells_how(small: Path) -> None:
    full = float(sum(e.points for e in course.manifest(CHAPTER)))
    rows = table(small / "grades")
    assert float(rows["all"]["score"]) == full
    assert 0 < float(rows["half"]["score"]) < full and "ZeroDivision" in rows["half"]["note"]
    statuses = {student: row["status"] for student, row in rows.items()}
    assert statuses == dict.fromkeys(("all", "half", "none"), "graded") | {
        "odd": "malformed", "absent": "missing"
    }  # fmt: skip
    kept = {result.student: result for result in outputs.read_all(small / "grades")}
    assert list(kept) == sorted(rows)
    found = kept["half"].environment
    assert found["numpy"] and found["torch"] and found["python"] and found["ipython"]
    assert found["device"] == "cpu" or found["device"].startswith("cuda: ")
    assert found["sandbox"] == "bubblewrap" and found["limits"]["cell_seconds"] == 6
    assert kept["half"].file == f"half/{CHAPTER}/{CHAPTER}.ipynb"
    assert len({kept[name].seed for name in ("all", "half", "none")}) == 3


@needs_sandbox
def test_a_killed_grading_process_changes_nothing(
    small: Path, crowd: engine.Crowd, tmp_path: Path
) -> None:
    victims = crowd._client.run(os.getpid).values()
    run = the_run(small, tmp_path, crowd)
    ends = []

    def each() -> None:
        ends.append(time.monotonic())
        if len(ends) == 3:  # of five, two of which need no running
            os.kill(next(iter(victims)), signal.SIGKILL)

    run.each = each
    report = run.grade(handed_in.find(small / "submitted"))
    assert len(ends) == len(report.rows) == 5
    assert (tmp_path / "grades.csv").read_bytes() == (small / "grades/grades.csv").read_bytes()
    assert report.memory > 10 * MEGABYTE


@needs_sandbox
def test_only_what_changed_is_graded_again_and_the_difference_is_told(
    small: Path, crowd: engine.Crowd, tmp_path: Path
) -> None:
    shutil.copytree(small / "grades", tmp_path / "grades")
    shutil.copytree(small / "submitted", tmp_path / "submitted")
    tasks = handed_in.find(tmp_path / "submitted")
    report = the_run(small, tmp_path / "grades", crowd).grade(tasks)
    assert report.unchanged == 5 and grading.told(report) == ""
    hand_in(tmp_path / "submitted", "odd", notebook("y = 2"))
    hand_in(tmp_path / "submitted", "half", notebook("y = 2"))
    report = the_run(small, tmp_path / "grades", crowd).grade(tasks)
    before = table(small / "grades")["half"]["score"]
    assert report.unchanged == 3
    assert grading.told(report).splitlines() == [
        "2 graded again, scores that have changed: 1",
        f"  half {CHAPTER}: {before} → 0",
    ]
    again = the_run(small, tmp_path / "grades", crowd)
    again.seed_of = lambda *_: SEED  # other seeds are another grading
    (tmp_path / "submitted" / "all" / CHAPTER / f"{CHAPTER}.ipynb").unlink()
    report = again.grade([task for task in tasks if task.student in ("all", "none")])
    assert (report.unchanged, report.compared) == (0, 2)


def test_at_most_thirty_changes_are_told_and_names_are_harmless() -> None:
    def result(student: str, points: float | None) -> SubmissionResult:
        from autograder.results import ExerciseResult

        return SubmissionResult(student, "c", "graded", [ExerciseResult("c.x", points, 1, "")])

    report = grading.Report()
    for number in range(40):
        report.compare(result(f"\x1b[31m{number}\n", None), result(f"\x1b[31m{number}\n", 1.0))
    lines = grading.told(report).split("\n")
    assert "\x1b" not in grading.told(report)
    assert lines[0].endswith(": 40") and lines[-1] == "  … and 10 more"
    assert sum("unknown → 1" in line for line in lines) == 30
    same = grading.Report()
    same.compare(result("a", 1.0), result("a", 1.0))
    assert grading.told(same) == "1 graded again: no score has changed"


# ---- the command ----


def grade_book(folder: Path) -> dict[str, float]:
    with sqlite3.connect(folder / "gradebook.db") as book:
        rows = book.execute(
            "select s.student_id, sum(g.auto_score) from grade g"
            " join submitted_notebook n on g.notebook_id = n.id"
            " join submitted_assignment s on n.assignment_id = s.id group by s.student_id"
        ).fetchall()
    return {name: round(score, 2) for name, score in rows}


@needs_sandbox
def test_kills_at_any_moment_leave_what_an_undisturbed_run_leaves(
    small: Path, tmp_path: Path
) -> None:
    shutil.copytree(small / "submitted", tmp_path / "submitted")
    said = command(tmp_path, "--jobs", 1, "--secret", small / "secret", *LIKE_THE_RUN)

    def records() -> int:
        return len(list(tmp_path.glob("grades/students/*/*/results.json")))

    moments = {  # how many records there must be, and the signal that comes then
        "as the first process starts": (0, signal.SIGKILL),
        "after the first that was run": (2, signal.SIGKILL),
        "by Ctrl-C after the next": (3, signal.SIGINT),
        "after the last": (5, signal.SIGKILL),
    }
    for moment, (wanted, ending) in moments.items():
        process = psutil.Popen(
            said, cwd=course.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        while records() < wanted or not (wanted or process.children()):
            assert process.poll() is None, moment
            time.sleep(0.02)
        family = process.children(recursive=True)
        os.killpg(process.pid, ending) if ending == signal.SIGINT else process.kill()
        code = process.wait(60)
        assert code == (-ending if ending == signal.SIGKILL else 130), moment
        _, left = psutil.wait_procs(family, timeout=20)
        assert not left, f"killed {moment}, these stay: {left}"
        if wanted:  # what there is of a table is whole
            assert all(row["note"] is not None for row in table(tmp_path / "grades").values())
        if ending == signal.SIGINT:
            assert b"Traceback" not in process.stderr.read()
            assert len(table(tmp_path / "grades")) == records()
    done = grade(tmp_path, "--jobs", 1, "--secret", small / "secret", *LIKE_THE_RUN)
    assert done.returncode == 0, done.stderr
    assert "5 submissions, 5 of them unchanged" in done.stdout
    undisturbed = (small / "grades" / "grades.csv").read_bytes()
    assert (tmp_path / "grades" / "grades.csv").read_bytes() == undisturbed
    rows = table(small / "grades")
    assert grade_book(tmp_path) == {name: float(row["score"]) for name, row in rows.items()}


# ---- the workers of a scheduler, and a replay ----


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Dask's own commands, with certificates; what Dask's configuration must say to join them."""
    from distributed.security import Security

    folder = tmp_path_factory.mktemp("scheduler")
    made = Security.temporary()
    for name, text in {"ca": made.tls_ca_file, "key": made.tls_client_key}.items():
        (folder / f"{name}.pem").write_text(str(text))
    for name in ("ca", "key"):
        (folder / f"{name}.pem").chmod(0o600)
    tls = [f"--tls-ca-file={folder}/ca.pem", f"--tls-cert={folder}/ca.pem"]
    tls += [f"--tls-key={folder}/key.pem", "--no-dashboard"]
    dask = [sys.executable, "-m", "dask"]
    address = folder / "address.json"
    with (folder / "said").open("w") as said:
        begun = [
            subprocess.Popen(
                [*dask, *command, *tls], cwd=course.ROOT, stdout=said, stderr=said,
                env={**os.environ, "PYTHONPATH": str(course.ROOT)},
            )
            for command in (
                ["scheduler", "--host=127.0.0.1", "--port=0", "--protocol=tls",
                 f"--scheduler-file={address}", "--dashboard-address=127.0.0.1:0"],
                ["worker", f"--scheduler-file={address}", "--nthreads=1", "--nworkers=1",
                 "--protocol=tls", "--host=127.0.0.1", f"--local-directory={folder}"],
            )
        ]  # fmt: skip
        try:
            deadline = time.monotonic() + 60
            while not address.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            told = json.loads(address.read_text())["address"]
            yield {
                "address": told,
                "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": f"{folder}/ca.pem",
                "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": f"{folder}/ca.pem",
                "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": f"{folder}/key.pem",
            }
        finally:
            for process in begun:
                process.terminate()
            for process in begun:
                process.wait(30)


def test_it_is_said_when_all_workers_have_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(engine, "LOOK", 0.1)
    options = {"processes": False, "dashboard_address": None, "n_workers": 1}
    with LocalCluster(**options) as cluster, engine.Crowd(1, cluster.scheduler_address):
        assert capsys.readouterr().err == ""
        cluster.scale(0)
        told, deadline = "", time.monotonic() + 30
        while "Ctrl-C" not in told and time.monotonic() < deadline:
            time.sleep(0.1)
            told += capsys.readouterr().err
        assert told.count("no worker is left") == 1 and "dask worker" in told


@needs_sandbox
def test_the_workers_of_a_scheduler_give_the_same_table(
    small: Path, scheduler: dict[str, str], tmp_path: Path
) -> None:
    address, *_ = scheduler.values()
    tls = {name: value for name, value in scheduler.items() if name != "address"}
    shutil.copytree(small / "submitted", tmp_path / "submitted")
    said = ("--scheduler", address, "--secret", small / "secret", *LIKE_THE_RUN)
    done = grade(tmp_path, *said, **tls)
    assert done.returncode == 0, done.stderr
    assert "submissions a second; largest grading process:" in done.stdout
    there, here = tmp_path / "grades" / "grades.csv", small / "grades" / "grades.csv"
    assert there.read_bytes() == here.read_bytes()

    copied = copy_of_the_course(tmp_path)
    with (copied / "autograder" / "checks" / f"{CHAPTER}.py").open("a") as file:
        file.write("# changed\n")
    done = grade(tmp_path, *said, "--again", cwd=copied, **tls)
    assert done.returncode == 2 and "has another course" in done.stderr
    assert "Traceback" not in done.stderr
