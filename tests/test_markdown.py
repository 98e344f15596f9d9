"""A page's Markdown becomes plain: it renders without extensions, and what cannot is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from autograder.markdown import to_markdown
from autograder.myst import MystError, parse
from autograder.references import Book, pages_in_order, read_book

SAMPLE = Path(__file__).parent / "data" / "sample_course"
PAGE = (SAMPLE / "book" / "sample.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def book() -> Book:
    return read_book(SAMPLE / "book", pages_in_order(SAMPLE / "_toc.yml"))


def convert(text: str, book: Book, line: int = 1) -> str:
    return to_markdown([(line, text)], "sample", book)[0]


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        (":::{note}\nMind.\n:::", "> **Note**\n>\n> Mind."),
        (":::{seealso}\nThere.\n:::", "> **See also**\n>\n> There."),
        (":::{admonition} My `title`\n:class: warning\nMind.\n:::", "> **My `title`**\n>\n> Mind."),
        ("```{tip}\nBy backticks.\n```", "> **Tip**\n>\n> By backticks."),
        (
            ":::{dropdown} 1: *the* `sum`\n$x$\n:::",
            "<details>\n<summary>1: <em>the</em> <code>sum</code></summary>\n\n$x$\n\n</details>",
        ),
        ("$$\na = b\n$$ (eq-first)", "$$\na = b\n\\tag{2}\n$$"),
        ("$$ c = d $$ (eq-second)", "$$\nc = d\n\\tag{3}\n$$"),
        ("$$ c $$", "$$ c $$"),
        ("```{math}\n:label: eq-third\ne\n```", "$$\ne\n\\tag{4}\n$$"),
        (r"$$ a \\ b $$", "$$\n\\begin{aligned}\na \\\\ b\n\\end{aligned}\n$$"),
        ("By {eq}`eq-quoted`.", "By (5)."),
        ("{cite}`one2021`", "([Müller, 2021](https://doi.org/10.1000/182))"),
        ("{cite:t}`two2022`", "[Knuth and Lamport (2022)](https://arxiv.org/abs/2201.00001)"),
        (
            "{cite:p}`one2021,many2023`",
            "([Müller, 2021](https://doi.org/10.1000/182); "
            "[Su et al., 2023](https://arxiv.org/abs/2104.09864))",
        ),
        ("{term}`words <key>`, {term}`key`", "words, key"),
        ("{doc}`other`, {doc}`its words <other>`", "The other page, its words"),
        ("{ref}`other-page`", "The other page"),
        ("{ref}`words there <other-page>`", "words there (→ *The other page*)"),
        ("{ref}`there <sample-place>`", "[there](#Turn-it,-then-turn-it-back)"),
        ("{ref}`over\ntwo lines <sample-top>`", "[over two lines](#A-sample-of-everything)"),
        ("{numref}`fig-picture`", "Fig. 1"),
        ("{numref}`the {number}th <fig-picture>`", "the 1th"),
        ("{download}`a table <../table.csv>`", "a table"),
        ("[the page](other.md), [](other.md)", "the page, The other page"),
        ("[a site](https://example.org)", "[a site](https://example.org)"),
        ("% nothing\nSomething", "Something"),
        ("(sample-place)=\nText", "Text"),
        ("```{solution} sample.norm\n```", ""),
        ("```{bibliography}\n```", ""),
        ("```{raw} html\n<b>bold</b>\n```", ""),
        ("`{ref}`, `` {eq}`x` `` and $a_{b}`c`$", "`{ref}`, `` {eq}`x` `` and $a_{b}`c`$"),
        ("```python\n:::{note}\n(x)=\n```", "```python\n:::{note}\n(x)=\n```"),
        ("> $a +\n> b$", "> $a + b$"),
        ("$a +\nb$", "$a + b$"),
        ("- item\n  :::{tip}\n  Mind.\n  :::", "- item\n\n  > **Tip**\n  >\n  > Mind."),
        ("costs \\$5, {term}`gap` and \\$6", "costs \\$5, gap and \\$6"),
    ],
)
def test_a_construct_becomes_plain_markdown(myst: str, plain: str, book: Book) -> None:
    assert convert(myst, book) == plain


def test_mathematics_in_a_quote_stays_on_one_line(book: Book) -> None:
    assert "\n> $$ k = l \\tag{5} $$\n" in convert(
        ":::{note}\nx\n\n$$\nk = l\n$$ (eq-quoted)\n\ny\n:::", book
    )


def test_the_interactive_figure_leaves_a_note(book: Book) -> None:
    text = convert('```{raw} html\n<div data-figure="sample"></div>\n```', book)
    assert text.startswith("> In the online book this figure moves")
    assert "div" not in text


def test_only_headings_that_are_pointed_to_get_an_anchor(book: Book) -> None:
    heading = "(sample-heading)=\n## Turn `it`, then turn it *back*"
    assert "<a " not in convert(heading, book)
    both = to_markdown([(1, heading), (3, "See {ref}`sample-heading`.")], "sample", book)
    assert both[0].startswith('<a id="Turn-it,-then-turn-it-back"')
    assert "](#Turn-it,-then-turn-it-back)" in both[1]


@pytest.mark.parametrize(
    ("myst", "named", "cure"),
    [
        (":::{grid}\n:::", "{grid}", "use one of: admonition, "),
        ("{abbr}`x`", "{abbr}`x`", "use one of: cite, "),
        ("{ref}`nowhere`", "'nowhere'", "write (nowhere)= before"),
        (
            "{ref}`sample-place`",
            "'sample-place'",
            "write the words: {ref}`these words <sample-place>`",
        ),
        ("{eq}`sample-top`", "'sample-top' is no equation", "by {ref}"),
        ("{cite}`nobody`", "'nobody'", "add it, or correct the key"),
        ("{doc}`missing`", "'missing'", "name a page of book/"),
        ("[x](#nowhere)", "'#nowhere'", "write (nowhere)= before"),
        ("A note[^1]", "'[^1]'", "write it in words"),
        ("{{ value }}", "'{{ value }}'", "write it in words"),
        (":::{note}\nopen", "':::{note}' is not closed", "longer fences outside"),
        (":::note\nx\n:::", "has no {name}", "longer fences outside"),
        ("$$\nopen", "has no end", "close it by $$"),
        ("\\begin{align}\nx\n\\end{align}", "an environment outside $$", "between $$ and $$"),
        (":::{dropdown} About $x$\n:::", "drop-down's title", "say it in words"),
    ],
)
def test_what_has_no_plain_form_is_refused_with_place_and_cure(
    myst: str, named: str, cure: str, book: Book
) -> None:
    with pytest.raises(MystError) as refused:
        convert(f"First.\n\n{myst}", book, line=40)
    message = str(refused.value)
    assert message.startswith("book/sample.md, line 42: ")
    assert named in message
    assert cure in message


def test_blocks_know_their_lines() -> None:
    lines = PAGE.split("\n")
    for block in parse(PAGE, "sample.md"):
        if block.kind == "heading":
            assert lines[block.line - 1].endswith(block.text)
        if block.kind == "directive":
            assert f"{{{block.name}}}" in lines[block.line - 1]
            if block.lines:
                assert lines[block.body_line - 1].strip() == block.lines[0].strip()


def test_the_whole_sample_renders_without_extensions(book: Book) -> None:
    story = re.sub(r"```\{code-cell\}.*?```", "", PAGE.partition("\n---\n")[2], flags=re.S)
    html = MarkdownIt("commonmark", {"html": True}).render(convert(story, book))
    for piece in (
        "<h1>A sample of everything</h1>",
        "<h2>Turn <code>it</code>, then turn it <em>back</em></h2>",
        "<summary>Inner <em>drop-down</em> with <code>code</code></summary>\n<ul>\n<li>one</li>",
        "<p><strong>Tip</strong></p>\n<p>inside the item, with $x^2$.</p>\n</blockquote>\n</li>",
        '<pre><code class="language-python">:::{note}\n',
        "<blockquote>\n<p><strong>Warning</strong></p>\n<blockquote>\n<p><strong>Note</strong></p>",
        "<details open>\n<summary>Hint 1: Pythagoras</summary>\n<p>Squares",
    ):
        assert piece in html
    assert html.count("<details") == html.count("</details>") == 3
