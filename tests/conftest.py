"""Fixtures shared by the tests.

The browser is looked for once, in one place, so that every test of a page uses the same one.
"""

import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder import course
from tests.figures import FigurePage, page_of, source_of

# Small tensors on several threads wait for each other, most of all beside other tests' workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402

# Read when Triton is imported: without a GPU its kernels run on the CPU, one program after another.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

NO_BROWSER = (
    "NO BROWSER: tests of the interactive pages do not run. Install one with "
    "'apt-get install chromium' or '.venv/bin/playwright install chromium', "
    "or set COURSE_CHROMIUM to the path of a Chromium or Chrome."
)


# Pictures are drawn by the processor either way: a GPU made of software takes twice as long.
PLAIN_CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-gpu-rasterization --disable-gpu-compositing "
    "--disable-software-rasterizer --in-process-gpu --disable-background-networking "
    "--disable-component-update --disable-extensions --disable-sync --no-first-run"
).split()


def chromium_executable(bundled: str) -> str | None:
    """The browser to test with: COURSE_CHROMIUM, the system's own, or Playwright's (`bundled`)."""
    if chosen := os.environ.get("COURSE_CHROMIUM"):
        if not Path(chosen).is_file():
            raise FileNotFoundError(f"COURSE_CHROMIUM names no file: {chosen}")
        return chosen
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return bundled if Path(bundled).is_file() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that asks for the browser, so that `-m "not browser"` leaves them out."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


# Files whose tests take long and share nothing: each chapter's part is a unit of work of its own.
BY_CHAPTER = ("tests/test_matrix.py", "tests/test_right_answers.py", "tests/test_generate.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker takes a file, so that what its tests share is made once.

    A file of BY_CHAPTER is taken chapter by chapter. (Marks for `--dist loadgroup` do nothing under
    pytest 9.2 with pytest-xdist 3.8, which sets an attribute that is gone.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFileOrChapter(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return part_of(nodeid)

    return ByFileOrChapter(config, log)


def part_of(nodeid: str) -> str:
    """The unit of work that a test belongs to."""
    file, _, test = nodeid.partition("::")
    chapters = "|".join(course.chapters())
    found = re.search(rf"\[({chapters})\b", test) if file in BY_CHAPTER else None
    return f"{file} {found[1]}" if found else file


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """A headless Chromium (Playwright's `Browser`); skips with the cure where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason=NO_BROWSER)
    with playwright.sync_playwright() as driver:
        executable = chromium_executable(driver.chromium.executable_path)
        if executable is None:
            warnings.warn(NO_BROWSER, stacklevel=1)
            pytest.skip(NO_BROWSER)
        chromium = driver.chromium.launch(
            executable_path=executable,
            args=PLAIN_CHROMIUM,
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_figure(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a figure's page: `open_figure("STEM", theme="dark", viewport={...})` → FigurePage.

    `source` is another text for the module, `kind` a class of one's own made from FigurePage, and
    `ready=False` expects no figure; further keywords are the browser context's. A page that was to
    show its figure must end the test without a complaint.
    """
    contexts, pages = [], []

    def open_with(
        stem: str,
        source: str | None = None,
        theme: str = "light",
        ready: bool = True,
        kind: type = FigurePage,
        **context: Any,
    ) -> Any:
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(page_of(stem, source or source_of(stem), theme), encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **context))
        page = kind(contexts[-1].new_page())
        page.tab.goto(path.as_uri())
        if ready:
            pages.append(page)
            page.tab.wait_for_selector('.interactive[data-ready="true"]')
        return page

    yield open_with
    for context in contexts:
        context.close()
    assert [page.complaints for page in pages if page.complaints] == []
