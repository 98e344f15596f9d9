"""The closing pages: their numbers, the cheat sheet's formulas, and its two pages of paper.

Numbers are computed here without the solutions. The formulas are written as the sheet prints them
and held against the solutions, which the chapters' tests hold against the papers.
"""

import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from autograder import course
from solutions.with_numpy import alibi, context_extension, learned, rope, sinusoidal, two_d

BOOK = course.ROOT / "book"
HTML = course.ROOT / "_build" / "html" / "book"
CLOSING = ("which_one_when", "cheat_sheet", "interview")
Q = np.array([1.0, 0.5, -0.5, 2.0])  # what "milk" asks
K = np.array([0.5, 1.0, 1.5, -1.0])  # what "chocolate" offers


@cache
def text(page: str) -> str:
    """A page's source on one line, so that a sentence may be looked for."""
    return " ".join((BOOK / f"{page}.md").read_text("utf-8").split())


def says(page: str, *phrases: str) -> None:
    words = re.sub(r"\{[\w:]+\}`([^`<]+?)(?: <[^`]*>)?`", r"\1", text(page))  # roles to their words
    for phrase in phrases:
        assert phrase in words, f"{page}.md does not say {phrase!r}"


def turned(x: np.ndarray, position: float, half: bool = False) -> np.ndarray:
    """RoPE of one vector, its pairs as complex numbers."""
    angles = position * 10000.0 ** (-np.arange(0, len(x), 2) / len(x))
    first, second = np.split(x, 2) if half else (x[0::2], x[1::2])
    pairs = (first + 1j * second) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=0 if half else 1).ravel()


def score(m: float, n: float, half: bool = False) -> str:
    """The bare score of milk at m and chocolate at n, as the pages print it."""
    return f"{turned(Q, m, half) @ turned(K, n, half):.4f}".replace("-", "−")


def row(position: float, dim: int) -> list[float]:
    angles = [position * 10000 ** (-2 * i / dim) for i in range(dim // 2)]
    return [f(a) for a in angles for f in (math.sin, math.cos)]


# ---- every chapter stands behind every page ----


@cache
def labels() -> dict[str, str]:
    """Label → the chapter that has it."""
    found = {}
    for chapter in course.chapters():
        for label in re.findall(r"^\(([\w-]+)\)=$", (BOOK / f"{chapter}.md").read_text(), re.M):
            found[label] = chapter
    return found


def chapters_behind(source: str) -> set[str]:
    referred = re.findall(r"\{ref\}`[^`<]+ <([\w-]+)>`", source)
    unknown = [label for label in referred if label not in labels()]
    assert not unknown, f"no chapter has {unknown}"
    pages = re.findall(r"\{doc\}`[^`<]+ <(\w+)>`", source)
    return {labels()[label] for label in referred} | (set(pages) & set(course.chapters()))


@pytest.mark.parametrize("page", CLOSING)
def test_a_closing_page_leads_to_every_chapter(page: str) -> None:
    assert chapters_behind(text(page)) == set(course.chapters())


def methods() -> list[list[str]]:
    """The rows of the table of all methods, as lists of cells, without the header."""
    source = (BOOK / "which_one_when.md").read_text("utf-8")
    table = source.split("```{list-table}", 1)[1].split("```", 1)[0]
    rows = [re.split(r"^  - ", row, flags=re.M) for row in re.split(r"^\* - ", table, flags=re.M)]
    return [[cell.strip() for cell in cells] for cells in rows[2:]]


def test_the_table_has_a_cell_for_each_method_and_question() -> None:
    assert len(methods()) == 16
    for cells in methods():
        assert len(cells) == 6 and all(cells), cells


@pytest.mark.parametrize("cells", methods(), ids=lambda cells: re.sub(r"\W+", "-", cells[0])[:40])
def test_each_method_of_the_table_leads_to_a_chapter(cells: list[str]) -> None:
    assert chapters_behind(cells[0])
    assert chapters_behind(" ".join(cells[1:]))


# ---- numbers that others published: the page and the chapter that cites them say the same ----

QUOTED = [
    ("which_one_when", "at most 1000 steps", "context_extension", "at most 1000 steps"),
    ("which_one_when", "2048 to 32768", "context_extension", "reach up to 32768"),
    ("which_one_when", "800 billion tokens", "context_extension", "800 billion tokens"),
    ("which_one_when", "Falcon-RW", "alibi", "Falcon-RW"),
    ("which_one_when", "last quarter of the window", "context_extension", "the last quarter"),
    ("interview", "perplexity 4.92 twice", "learned", "perplexity of 4.92"),
    ("interview", "BLEU 25.8 and 25.7", "learned", "4.92 and 25.7"),
    ("interview", "11 % faster and took 11 % less memory", "alibi", "**11 %** less memory"),
    ("interview", "1.3 billion", "alibi", "1.3 billion"),
    ("interview", "on texts of 1024 tokens", "alibi", "on texts of **1024** tokens"),
    (
        "interview",
        "from 2048 to 32768 in at most 1000 steps",
        "context_extension",
        "at most 1000 steps",
    ),
    ("interview", "catastrophically high", "context_extension", "*catastrophically high*"),
    ("cheat_sheet", "perplexity 4.92 and 4.92, BLEU 25.7 and 25.8", "learned", "BLEU of 25.8"),
    ("cheat_sheet", "CLIP's text 77", "learned", "CLIP's text encoder has 77 rows"),
    ("cheat_sheet", "BERT 512, GPT-2 1024", "learned", "BERT has 512 rows"),
    ("cheat_sheet", "OPT 2050", "learned", "2050 rows for 2048 tokens"),
]


@pytest.mark.parametrize(("page", "phrase", "chapter", "source"), QUOTED)
def test_a_published_number_is_the_one_of_its_chapter(
    page: str, phrase: str, chapter: str, source: str
) -> None:
    says(page, phrase)
    says(chapter, source)


# ---- numbers that can be computed ----


def test_the_parameters_and_the_memory_of_the_table() -> None:
    says("which_one_when", f"{512 * 768:,} in BERT base", f"{32 * 12} in T5-base's encoder")
    says("which_one_when", f"{12 * 768} in ViT's base size")  # two for each of head_dim/2 pairs
    gib = 32 * 8192 * 8192 * 4 / 2**30
    says("which_one_when", f"{gib:.0f} GiB for 32 heads and 8192 tokens")
    says("which_one_when", f"factor 8 for {131072 // 8192} times the length")


def test_shares_of_far_counts_fall_together_in_bfloat16() -> None:
    says("which_one_when", "1/1001 against 1/1002")
    share = torch.tensor([1 / 1001, 1 / 1002])
    assert share[0] != share[1] and share.bfloat16().unique().numel() == 1


def test_heads_of_6_10_and_16_tell_a_permutation_from_its_inverse() -> None:
    says("which_one_when", "heads of width 6, 10 or 16")
    says("cheat_sheet", "test at widths 6, 10, 16, not at 4 or 8", "to half: 0 2 4 … 1 3 5 …")
    for width, hides in [(4, True), (8, True), (6, False), (10, False), (16, False)]:
        order = np.append(np.arange(0, width, 2), np.arange(1, width, 2))
        inverse = np.argsort(order)
        twice = order[order]
        same = np.array_equal(order, inverse) or np.array_equal(twice, inverse)
        assert same == hides, width


def test_scores_of_the_worked_example() -> None:
    assert score(5, 3) == score(7, 5) == "−2.5336"
    says("cheat_sheet", f"(5, 3), (7, 5): {score(5, 3)}; (3, 5): {score(3, 5)}")
    says("cheat_sheet", f"(5, 3) in half: {score(5, 3, half=True)}", f"= {Q @ K}".replace("-", "−"))
    says("cheat_sheet", f"query at 0, key at 5: {score(0, 5)}")
    says("cheat_sheet", f"(7, 5) with the key turned twice: {score(7, 5 + 5)}")
    says("interview", f"{score(5, 3)} at positions 5 and 3, and again at 7 and 5")
    says("interview", f"the last of the four scores above, {score(0, 5)}")


def test_rows_of_the_sinusoids() -> None:
    says("cheat_sheet", "$PE(0)$ = " + ", ".join(f"{x:.0f}" for x in row(0, 4)))
    assert np.round(row(1, 4), 4).tolist() == [0.8415, 0.5403, 0.01, 1.0]
    says("cheat_sheet", "$PE(1)$ = 0.8415, 0.5403, 0.01, 1.0")
    doubled = [math.cos(10000 ** (-2 / 4)), math.sin(10000 ** (-4 / 4))]  # 2·1/4 and 2·2/4
    assert [round(x, 5) for x in doubled] == [0.99995, 0.0001]
    says("cheat_sheet", "0.99995, 0.0001 in the middle")
    apart = np.linalg.norm(np.subtract(row(1, 64), row(0, 64)))
    says("cheat_sheet", f"neighbours at dim 64 are {apart:.2f} apart")


def test_the_longest_wavelength() -> None:
    longest = 2 * math.pi * 10000 ** (2 / 4)
    says("cheat_sheet", f"longest wave {longest:.0f}")
    says("interview", f"{longest:.0f} at width 4", f"about {2 * math.pi * 10000:.0f}")


def test_rows_that_tables_need() -> None:
    says("cheat_sheet", f"OPT {2048 + 2}, RoBERTa {512 + 1 + 1}")


def test_integers_that_bfloat16_can_tell_apart() -> None:
    says("cheat_sheet", "bfloat16 counts to 256")
    assert torch.arange(257).bfloat16().unique().numel() == 257
    assert torch.arange(258).bfloat16().unique().numel() == 257


def test_penalties_of_the_slopes() -> None:
    says("interview", "the distances 0, 1, 2, 4 and 8 cost 0, 0.5, 1, 2 and 4")
    assert [0.5 * distance for distance in (0, 1, 2, 4, 8)] == [0, 0.5, 1, 2, 4]
    content = Q @ K / math.sqrt(4)
    says("cheat_sheet", f"(5, 3): {content} − 1 = {content - 0.5 * 2}".replace("-", "−"))
    says("cheat_sheet", "3 heads: 1/16, 1/256, 1/4")
    assert [2 ** (-8 * h / 2) for h in (1, 2)] + [2 ** (-8 / 4)] == [1 / 16, 1 / 256, 1 / 4]


def test_stretched_positions_and_attention_factors() -> None:
    for factor, place in [(4, 2000), (8, 1000)]:
        assert 8000 / factor == place
        sharper = 0.1 * math.log(factor) + 1
        assert f"{sharper:.4f}" in text("cheat_sheet").split("factor 4: 8000 becomes 2000")[1][:60]
    says("cheat_sheet", "factor 8: 1000, 1.2079")


def test_a_place_on_a_grid_and_a_size_that_comes_out_short() -> None:
    numbers = ", ".join(f"{x:.4f}" for x in row(1, 2) + row(2, 2)).replace("-", "−")
    says("cheat_sheet", f"row 1, column 2, dim 4: {numbers}")
    says("cheat_sheet", f"`int(37 * (78 / 37))` is {int(37 * (78 / 37))}")


# ---- the formulas of the cheat sheet ----


def test_the_shift_and_the_products_as_the_sheet_prints_them() -> None:
    blocks = np.zeros((6, 6))
    for i in range(3):
        a = 3 * 10000 ** (-2 * i / 6)
        block = [[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    five, eight = sinusoidal.sinusoidal_encoding([5, 8], dim=6)
    np.testing.assert_allclose(blocks @ five, eight, atol=1e-12)
    product = sum(math.cos(10000 ** (-2 * i / 6) * 3) for i in range(3))
    assert math.isclose(five @ eight, product) and math.isclose(five @ five, 6 / 2)


def test_the_gradient_and_the_stretched_row_as_the_sheet_prints_them() -> None:
    rng = np.random.default_rng(0)
    table, g = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    positions = np.array([3, 1, 3, 0])
    expected = np.eye(5)[positions].T @ g
    np.testing.assert_allclose(learned.lookup_gradient(g, positions, 5), expected, atol=1e-12)
    u = 4 * (5 - 1) / (8 - 1)  # new row 4 of 8
    low = math.floor(u)
    between = (1 - (u - low)) * table[low] + (u - low) * table[low + 1]
    np.testing.assert_allclose(learned.resize_table(table, 8)[4], between, atol=1e-12)


def test_the_bound_as_the_sheet_prints_it() -> None:
    theta = 10000 ** (-np.arange(4) / 4)
    sums = [abs(np.exp(1j * 10 * theta[:j]).sum()) for j in range(1, 5)]
    assert math.isclose(rope.score_bound([10], dim=8)[0], 2 / 8 * sum(sums))


def test_the_slopes_and_buckets_as_the_sheet_prints_them() -> None:
    n, p = 12, 8
    slopes = [2 ** (-8 * h / p) for h in range(1, p + 1)]
    slopes += [2 ** (-8 * h / (2 * p)) for h in range(1, 2 * p, 2)][: n - p]
    np.testing.assert_allclose(alibi.alibi_slopes(n), slopes)
    for both, most in [(True, 16), (False, 32)]:
        e = most // 2
        for distance in (1, e - 1, e + 1, 50, 100, 5000):
            far = e + math.floor((most - e) * math.log(distance / e) / math.log(128 / e))
            bucket = distance if distance < e else min(far, most - 1)
            assert alibi.t5_bucket(-distance, bidirectional=both) == bucket


def test_the_stretched_ladders_as_the_sheet_prints_them() -> None:
    dim, base, s, length = 64, 10000.0, 4.0, 2048
    i = np.arange(dim // 2)
    theta = base ** (-2 * i / dim)

    assert math.isclose(context_extension.ntk_base(base, s, dim), base * s ** (dim / (dim - 2)))
    for n in (2048, 6000):
        grown = base * (s * n / length - (s - 1)) ** (dim / (dim - 2))
        dynamic = context_extension.dynamic_ntk_frequencies(dim, base, s, length, n)
        np.testing.assert_allclose(dynamic, grown ** (-2 * i / dim))

    ends = [dim * math.log(length / (2 * math.pi * b)) / (2 * math.log(base)) for b in (32, 1)]
    low, high = math.floor(ends[0]), math.ceil(ends[1])
    rho = np.clip((i - low) / (high - low), 0, 1)
    yarn = context_extension.yarn_frequencies(dim, base, s, length)
    np.testing.assert_allclose(yarn, (1 - rho) * theta + rho * theta / s)

    r = length * theta / (2 * math.pi)
    w = np.clip((r - 1) / (4 - 1), 0, 1)
    llama = context_extension.llama3_frequencies(dim, base, s, length)
    np.testing.assert_allclose(llama, w * theta + (1 - w) * theta / s)


def test_yarn_by_hand() -> None:
    says("cheat_sheet", "YaRN at dim 8, $L$ 2048, factor 4: 1, 0.1, 0.00625, 0.00025")
    ends = [8 * math.log(2048 / (2 * math.pi * b)) / (2 * math.log(10000)) for b in (32, 1)]
    assert (math.floor(ends[0]), math.ceil(ends[1])) == (1, 3)
    ladder, ramp = [1, 0.1, 0.01, 0.001], [0, 0, 0.5, 1]
    by_hand = [(1 - r) * f + r * f / 4 for f, r in zip(ladder, ramp, strict=True)]
    np.testing.assert_allclose(by_hand, [1, 0.1, 0.00625, 0.00025])


def test_the_grid_as_the_sheet_prints_it() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(5, 2))
    place = (2 + 0.5) * 5 / 8 - 0.5  # new centre 2 of 8
    low = math.floor(place)
    between = (1 - (place - low)) * table[low] + (place - low) * table[low + 1]
    np.testing.assert_allclose(two_d.resize_grid(table, (5, 1), (8, 1))[2], between)

    q, k = rng.normal(size=(2, 8))

    def axial(down: int, across: int) -> float:
        return float(two_d.axial_rope_2d(q[None], [down], [across])[0] @ k)

    assert math.isclose(axial(1, 1) + axial(-1, -1), axial(1, -1) + axial(-1, 1))


# ---- on the screen and on paper ----

built = pytest.mark.skipif(
    not (HTML / "cheat_sheet.html").is_file(), reason="THE BOOK IS NOT BUILT: make book builds it"
)


def open_page(browser: Any, name: str, **context: Any) -> Any:
    page = browser.new_context(offline=True, **context).new_page()
    page.goto((HTML / f"{name}.html").as_uri())
    return page


def sheets(page: Any, **options: Any) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", **options)))


@built
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_cheat_sheet_prints_on_two_pages(browser: Any, scheme: str) -> None:
    page = open_page(browser, "cheat_sheet", color_scheme=scheme)
    page.wait_for_selector("mjx-container", timeout=20_000)
    page.wait_for_function("MathJax.startup.promise.then(() => true)")
    assert sheets(page) == 2
    assert sheets(page, prefer_css_page_size=True) == 2
    assert sheets(page, margin=dict.fromkeys(("top", "right", "bottom", "left"), "1cm")) == 2
    # A browser with a wider font still needs no third page.
    page.add_style_tag(content="@media print { #cheat-sheet * { letter-spacing: 0.04em } }")
    assert sheets(page) == 2
    page.context.close()


@built
def test_the_printed_cheat_sheet_is_black_on_white_and_alone(browser: Any) -> None:
    page = open_page(browser, "cheat_sheet", color_scheme="dark")
    page.emulate_media(media="print")
    for around in ("header", "footer", ".bd-sidebar-primary", ".bd-sidebar-secondary"):
        for part in page.locator(around).all():
            assert not part.is_visible(), around
    for part in ("h1", "h3 a", "td", "p", "code"):
        first = page.locator(f"#cheat-sheet {part}").first
        assert first.evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)", part
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.context.close()


@built
def test_the_wide_table_scrolls_in_its_box_and_keeps_its_first_column(browser: Any) -> None:
    page = open_page(browser, "which_one_when", viewport={"width": 390, "height": 800})
    box = page.locator(":has(> table.methods)")
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    name = page.locator("table.methods tbody td").first
    before = name.bounding_box()["x"]
    box.evaluate("e => { e.scrollLeft = 300 }")
    assert abs(name.bounding_box()["x"] - before) < 1
    page.context.close()
