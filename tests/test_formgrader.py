"""nbgrader's formgrader in Chromium, over a class that our own front door graded."""

import csv
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder import autograded, core, gradebook, sandbox, submissions
from autograder.course import ROOT
from autograder.sandbox import Limits
from tests.nbgrader_class import (
    CHAPTER,
    EXERCISES,
    config_for,
    feedback,
    hand_in,
    hand_in_notebook,
    totals,
)

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.long,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]
NAME = EXERCISES[0].name
TOKEN = "a-token-of-this-test"
HOSTILE = (
    "<script>window.stolen = 'text'</script><img src=x onerror=\"window.stolen = 'image'\">"
    "<a href='javascript:window.stolen = 1'>see</a> [see](javascript:window.stolen=2)"
)
CONFIG = """
c = get_config()
load_subconfig({course!r})
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_url = "sqlite:///" + {root!r} + "/gradebook.db"
"""


def front_door(root: Path, *students: str) -> None:
    """What `python -m autograder grade` does with each submission, one after the other."""
    results = []
    for task in submissions.find(root / "submitted"):
        if task.student not in students:
            continue
        content, result = submissions.read(task)
        if result is None:
            result = core.grade_bytes(
                task.student, task.chapter, content, seed=7, limits=Limits(), walls=True
            )
        autograded.of_task(root / "autograded", task, result)
        results.append(result)
    gradebook.write(f"sqlite:///{root / 'gradebook.db'}", results, root / "submitted")


def answered(source: str) -> Any:
    """The released notebook with this for the first answer."""
    notebook = autograded.restored(None, CHAPTER)
    next(c for c in notebook.cells if autograded.grade_id(c) == f"answer-{NAME}").source = source
    return notebook


def hostile() -> Any:
    notebook = answered(f"def {NAME}(*inputs):\n    raise ValueError({HOSTILE!r})")
    page = nbformat.v4.new_output("display_data", {"text/html": HOSTILE})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [page]
    notebook.cells.append(nbformat.v4.new_markdown_cell(HOSTILE))
    notebook.cells.append(nbformat.v4.new_raw_cell(HOSTILE, metadata={"raw_mimetype": "text/html"}))
    return notebook


@pytest.fixture(scope="module")
def classroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("class")
    hand_in_notebook(root, "ada", answered(f"def {NAME}(x, *more):\n    return x"))
    hand_in_notebook(root, "eve", hostile())
    hand_in(root, "bob", "{ this is no notebook")
    front_door(root, "ada", "bob", "eve")
    return root


@pytest.fixture(scope="module")
def formgrader(classroom: Path) -> Iterator[str]:
    """The address of a Jupyter server on loopback with nbgrader's formgrader."""
    about = {"course": str(ROOT / "nbgrader_config.py"), "root": str(classroom)}
    (classroom / "nbgrader_config.py").write_text(CONFIG.format(**about))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {
        f"JUPYTER_{n}_DIR": str(classroom / ".jupyter" / n) for n in ("CONFIG", "DATA", "RUNTIME")
    }
    extensions = {"nbgrader.server_extensions.formgrader": True}
    others = "jupyter_lsp jupyter_server_terminals jupyterlab jupyterlab_jupytext notebook"
    extensions |= dict.fromkeys(f"{others} notebook_shim".split(), False)
    command = [
        sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
        "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.jpserver_extensions={extensions}",
    ]  # fmt: skip
    with (classroom / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=classroom, env={**os.environ, **own}, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=5).close()
                break
            except OSError:
                told = (classroom / "server.log").read_text()
                assert server.poll() is None and time.monotonic() < deadline, told
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def tab(browser: Any, formgrader: str) -> Iterator[Any]:
    """A page of somebody who is logged in; nothing but the server can be reached."""
    context = browser.new_context()
    context.set_default_timeout(60_000)
    context.route(
        lambda url: not url.startswith(formgrader), lambda route: route.abort("blockedbyclient")
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{formgrader}/login?token={TOKEN}")
    yield page
    context.close()
    # nbgrader's page wants MathJax from the network, and says so where there is none
    assert [e for e in errors if "MathJax is not defined" not in e] == []


def open_submission(tab: Any, formgrader: str, student: str) -> None:
    tab.goto(f"{formgrader}/formgrader/gradebook/{CHAPTER}/{CHAPTER}")
    tab.wait_for_selector("tbody a")
    link = tab.locator("tbody a", has_text=student)
    tab.goto(formgrader + link.first.get_attribute("href"))
    for filled in (f"#{NAME}[placeholder]", f"#answer-{NAME}-comment[placeholder]"):
        tab.wait_for_selector(filled)  # by formgrader's script, with what is stored


def test_the_list_shows_every_submission_with_its_score(
    tab: Any, formgrader: str, classroom: Path
) -> None:
    tab.goto(f"{formgrader}/formgrader/gradebook/{CHAPTER}/{CHAPTER}")
    tab.wait_for_selector("tbody a")
    shown = tab.locator("tbody tr").evaluate_all("rows => rows.map(r => r.textContent)")
    scores = totals(f"sqlite:///{classroom / 'gradebook.db'}")
    assert len(shown) == len(scores) == 3
    for student, score in scores.items():
        (row,) = [row for row in shown if student in row]
        assert f"{score:g} / {sum(e.points for e in EXERCISES):g}" in row


def test_a_file_that_is_no_notebook_is_opened_and_says_why(tab: Any, formgrader: str) -> None:
    open_submission(tab, formgrader, "bob")
    text = tab.inner_text("#notebook")
    assert "Status of the submission: malformed." in text and "not JSON" in text


def test_its_button_grades_a_submission_as_the_command_does(
    tab: Any, formgrader: str, classroom: Path
) -> None:
    """Without the command there is no sweep: links are moved by nbgrader's hook."""
    beside = classroom / "submitted" / "bob" / CHAPTER / "stolen.txt"
    beside.symlink_to(classroom / "server.log")
    tab.goto(f"{formgrader}/formgrader/manage_submissions/{CHAPTER}")
    with tab.expect_response(lambda r: r.url.endswith("/bob/autograde")) as done:
        tab.locator("tbody tr", has_text="bob").locator(".autograde a").click()
    told = done.value.json()
    assert told["success"], told
    assert not os.path.lexists(beside)
    assert not (classroom / "autograded" / "bob" / CHAPTER / "stolen.txt").exists()
    assert (classroom / "refused" / "bob" / CHAPTER / "stolen.txt").is_symlink()
    open_submission(tab, formgrader, "bob")
    assert "Status of the submission: malformed." in tab.inner_text("#notebook")


def test_nothing_of_a_hostile_notebook_runs(tab: Any, formgrader: str) -> None:
    open_submission(tab, formgrader, "eve")
    text = tab.inner_text("#notebook")
    assert text.count("<script>window.stolen = 'text'</script>") >= 3  # its code, texts, message
    assert tab.evaluate("window.stolen") is None
    assert tab.locator("#notebook a[href^='javascript']").count() == 0
    assert tab.locator("#notebook script, #notebook img[src=x]").count() == 0


def test_what_a_person_writes_there_is_exported_and_outlives_a_new_grading(
    tab: Any, formgrader: str, classroom: Path
) -> None:
    open_submission(tab, formgrader, "ada")
    text = tab.inner_text("#notebook")
    assert "Status of the submission: graded." in text and "✗" in text
    saved = lambda r: r.request.method == "PUT" and r.status == 200  # noqa: E731
    with tab.expect_response(saved):
        tab.fill(f"#answer-{NAME}-comment", "Which axis is **summed** over?")
        tab.press(f"#answer-{NAME}-comment", "Tab")
    with tab.expect_response(saved):
        tab.fill(f"#{NAME}", "1.25")
        tab.press(f"#{NAME}", "Tab")

    config = config_for(classroom)
    book = config.CourseDirectory.db_url
    for attempt in ("first", "second"):
        if attempt == "second":
            room = ROOT / "solutions" / EXERCISES[0].room / f"{CHAPTER}.py"
            file = classroom / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
            file.write_text(nbformat.v4.writes(answered(room.read_text("utf-8"))))
            front_door(classroom, "ada")
        with Gradebook(book) as opened:
            grade = opened.find_grade(NAME, CHAPTER, CHAPTER, "ada")
            assert grade.manual_score == 1.25 and grade.score == 1.25
            assert (grade.auto_score, grade.needs_manual_grade) == (
                (EXERCISES[0].points, True) if attempt == "second" else (grade.auto_score, False)
            )
            CsvExportPlugin(to=str(classroom / "export.csv")).export(opened)
            others = sum(
                opened.find_grade(e.name, CHAPTER, CHAPTER, "ada").score for e in EXERCISES[1:]
            )
        with (classroom / "export.csv").open(newline="") as exported:
            scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(exported)}
        assert scores["ada"] == pytest.approx(1.25 + others)
        page = feedback(config, "ada")("ada")
        assert "<strong>summed</strong> over?" in page and "Score: 1.25 /" in page
    open_submission(tab, formgrader, "ada")
    assert tab.input_value(f"#{NAME}") == "1.25"
    assert tab.input_value(f"#answer-{NAME}-comment") == "Which axis is **summed** over?"
