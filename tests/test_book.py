"""The built book: its pages are there, show no error, have their figures, and need no network."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from autograder import course

HTML = course.ROOT / "_build" / "html"
PAGES = re.findall(r"(?:file|root): (book/\w+)", (course.ROOT / "_toc.yml").read_text("utf-8"))
CHAPTERS = course.chapters()

pytestmark = pytest.mark.skipif(
    not HTML.is_dir(), reason="THE BOOK IS NOT BUILT: make book, or make test, builds it"
)


def soup(page: str) -> Any:
    return parsed((HTML / f"{page}.html").resolve())


@functools.cache
def parsed(file: Path) -> Any:
    """A page is read once, however many links lead to it."""
    return BeautifulSoup(file.read_text("utf-8"), "html.parser")


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_there_and_has_a_title(page: str) -> None:
    assert soup(page).h1.text.strip("#\n ")


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_shows_an_error_or_a_warning(page: str) -> None:
    html = soup(page)
    assert not html.select(".output.traceback, .output.stderr, .problematic, .system-message")
    assert "Traceback (most recent call last)" not in html.text


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_and_every_link_inside_the_book_exists(page: str) -> None:
    html, here = soup(page), (HTML / page).parent
    for image in html.select("article img"):
        assert (here / image["src"]).is_file(), image["src"]
        assert image["src"].startswith("data:") or (here / image["src"]).stat().st_size > 1000
    for link in html.select("article a[href]"):
        target, _, anchor = link["href"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        other = html if not target else parsed((here / target).resolve())
        assert not anchor or other.find(id=anchor), link["href"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_chapter_has_pictures_and_its_interactive_figure(chapter: str) -> None:
    html = soup(f"book/{chapter}")
    assert len(html.select("article img")) >= 3
    assert html.select(f'[data-figure="{chapter}"]')


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_exercise_is_there_with_its_stub_hints_check_and_solution(chapter: str) -> None:
    html = soup(f"book/{chapter}")
    for exercise in course.manifest(chapter):
        section = html.find(id=re.compile(f"^ex-{exercise.name.replace('_', '[-_]')}$", re.I))
        section = section if section.name == "section" else section.find_parent("section")
        titles = [s.text for s in section.select("details summary")]
        assert sum("Hint" in t for t in titles) >= 2, exercise.name
        assert sum("Solution" in t for t in titles) == 1, exercise.name
        assert f"check({exercise.name})" in section.text
        assert re.search(rf"(def|class) {exercise.name}\b", section.text)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_nothing_from_the_network(page: str) -> None:
    html = soup(page)
    loaded = [t["src"] for t in html.select("script[src], img[src], iframe[src]")]
    loaded += [t["href"] for t in html.select("link[rel=stylesheet]")]
    assert not [source for source in loaded if "//" in source]


def test_the_list_of_mistakes_has_every_check_and_every_mistake_with_its_section() -> None:
    html = soup("book/what_the_checks_catch")
    told, codes = (
        " ".join(html.text.replace("’", "'").split()),
        {code.text for code in html.select("li code")},
    )
    for exercise in course.exercises().values():
        assert html.find(id=re.compile(f"^{exercise.name.replace('_', '-')}$", re.I)), exercise
        for mistake in course.misconceptions(exercise):
            assert mistake.id in codes
            assert course.section_title(exercise.chapter, mistake.section).replace("`", "") in told


@pytest.fixture(params=CHAPTERS)
def open_chapter(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """The built chapter, opened from disk as a double click does, without a network."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.goto((HTML / "book" / f"{request.param}.html").as_uri())
    page.figure = page.locator(f'[data-figure="{request.param}"]')
    yield page
    context.close()


def test_mathematics_is_set_without_a_network(open_chapter: Any) -> None:
    open_chapter.wait_for_selector("mjx-container", timeout=20_000)
    assert open_chapter.locator("mjx-container").count() > 10
    assert open_chapter.locator("mjx-merror").count() == 0


def test_the_figure_moves_in_the_built_page_and_its_picture_has_gone(open_chapter: Any) -> None:
    figure = open_chapter.figure
    figure.locator("svg").first.wait_for()
    sliders = figure.locator("input[type=range]")
    assert sliders.count() >= 1
    before = figure.inner_text()
    sliders.first.focus()
    for _ in range(5):
        open_chapter.keyboard.press("ArrowRight")
    assert figure.inner_text() != before
    assert not open_chapter.locator(".tag_static-figure").first.is_visible()


def test_without_scripts_the_static_picture_stays(browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for chapter in CHAPTERS:
        page.goto((HTML / "book" / f"{chapter}.html").as_uri())
        assert page.locator(".tag_static-figure img").first.is_visible()
    context.close()


def test_no_page_is_wider_than_a_narrow_screen(browser: Any) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    for name in PAGES:
        page.goto((HTML / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    context.close()


def test_no_absolute_path_of_the_builder_is_in_a_page() -> None:
    for page in PAGES:
        assert str(Path.home()) not in (HTML / f"{page}.html").read_text("utf-8")
        assert str(course.ROOT) not in (HTML / f"{page}.html").read_text("utf-8")
