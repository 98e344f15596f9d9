"""nbgrader for this course: its folders in `class/`, its grading in our sandbox.

nbgrader reads this file from the folder its commands are called in: the root of the repository.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CLASS = ROOT / "class"

# nbgrader imports the preprocessor below by its dotted name.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

# nbgrader calls alembic by its bare name, which is found only where the environment is activated.
TOOLS = str(Path(sys.executable).parent)
if TOOLS not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = TOOLS + os.pathsep + os.environ.get("PATH", "")

if "autograde" in sys.argv:
    from autograder.quarantine import before_command

    before_command(CLASS / "submitted", CLASS / "refused")

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.CourseDirectory.course_id = "positional-encoding"
c.CourseDirectory.root = str(CLASS)
c.CourseDirectory.db_url = f"sqlite:///{CLASS / 'gradebook.db'}"

# What is handed in may be anything: this opens what nbgrader would stop at, takes the course's own
# cells from the released notebook, and leaves the rest to the status that the submission gets.
c.Autograde.exporter_class = "autograder.nbgrader_plugin.AnyNotebook"
c.Autograde.sanitize_preprocessors = []
c.Autograde.pre_convert_hook = "autograder.quarantine.before_nbgrader"

# Grades of students never lie where git would see them.
c.ExportPlugin.to = str(CLASS / "export.csv")

# nbgrader's own export lets a student's name write cells, and formulas.
c.ExportApp.plugin_class = "autograder.nbgrader_export.SafeCsvExportPlugin"

# A student's notebook is never executed by a kernel of the grader's: in the place of nbgrader's
# Execute stands our preprocessor, which runs the answers in a sandboxed process and the checks
# outside it.
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader_plugin.GradeInSandbox",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "autograder.nbgrader_plugin.SaveBonus",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Late submissions. `nbgrader db assignment add CHAPTER --duedate="2027-03-01 18:00 UTC"` sets the
# date (say it in UTC: nbgrader reads the offset +0200 as 200 seconds), timestamp.txt beside a
# submission says when it came, and a plugin says what lateness costs, through both front doors:
# c.AssignLatePenalties.plugin_class = "my_plugins.AnEighthAnHour"
# c.LateSubmissionPlugin.penalty_method = "zero"  # nbgrader's own plugin; without it, no penalty

c.ClearSolutions.code_stub = {"python": "# Your code here\nraise NotImplementedError"}
