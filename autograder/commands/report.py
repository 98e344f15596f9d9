"""Write one page about the whole class from what grading found.

Reads GRADES, the folder that `grade` wrote, and with --submitted the notebooks themselves, to look
for similar ones. Writes one HTML file, which needs no network and nothing beside it.

examples:
  python -m autograder report class/grades --out class/report.html
  python -m autograder report class/grades --submitted class/submitted --chapter rope

exit codes: 0 the page is written, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import course


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grades", type=Path, metavar="GRADES", help="the folder that grade wrote")
    parser.add_argument(
        "--submitted", type=Path, help="look for similar ones in STUDENT/CHAPTER/CHAPTER.ipynb here"
    )
    parser.add_argument("--chapter", action="append", help="only this chapter (may be repeated)")
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), help="the page (%(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from .. import class_numbers, class_report, outputs, similar, submissions  # a second's work

    wanted = tuple(options.chapter or ())
    for chapter in wanted:
        course.manifest(chapter)  # an unknown one is refused here
    chapters, unreadable = class_numbers.count(class_numbers.results_in(options.grades, wanted))
    found: dict[str, similar.Findings] = {}
    if options.submitted:
        from ..generate import student_notebook

        for chapter in (c.name for c in chapters if c.name in course.chapters()):
            given = [c.source for c in student_notebook(chapter).cells if c.cell_type == "code"]
            tasks = submissions.find(options.submitted, (chapter,))
            files = ((task.student, task.file) for task in tasks)
            found[chapter] = similar.find(files, similar.Released(given))
    if options.out.is_dir():
        raise course.CourseError(
            f"--out {options.out} is a folder: name a file, such as report.html"
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    outputs.replace(options.out, class_report.page(chapters, unreadable, found or None))
    pairs = sum(findings.found for findings in found.values())
    said = f"; similar pairs: {pairs}" if options.submitted else ""
    of = f"{len(chapters)} chapter{'s' * (len(chapters) > 1)}"
    print(f"{sum(c.submissions for c in chapters)} results of {of}{said}")
    print(f"report: {options.out}")
    return 0
