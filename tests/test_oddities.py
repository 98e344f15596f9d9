"""Right answers in odd surroundings, through both doors: what is no mistake costs no point.

Each oddity is a cell, a file or a habit that teachers find in honest notebooks. One is a matter of
fairness: a notebook that makes NumPy raise on underflow, or warnings raise, is graded as it stands,
as its author sees it; it costs nothing where the answer neither underflows nor warns.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from autograder import course, sandbox
from tests.hostile.attack import CHAPTER, Attack, attack, code, write
from tests.hostile.world import PATIENCE, World

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.long,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
]
POINTS = {e.name: e.points for e in course.manifest(CHAPTER)}
ONE, WIDE, TORCH = "causal_mask", "self_attention", "multi_head_attention"
SEED = 7


def odd(name: str, tells: str, *cells: str, right: str = ONE, **more: Any) -> Attack:
    """A notebook with this exercise right, and something odd beside it."""
    return attack(name, tells, *cells, right=(right,), honest=float(POINTS[right]), **more)


def mask(body: str, before: str = "", header: str = "def causal_mask(n):") -> str:
    """A right answer of another form."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    guard = "    if n < 0:\n        raise ValueError(n)\n"
    return f"import numpy as np\n{before}\n{header}\n{guard}{lines}\n"


NAMES, NUMBER = "failed_requirements", "permutation_gap"
NUMPY_TEXTS = """\
import numpy as np
before = failed_requirements
def failed_requirements(*args, **kwargs):
    found = before(*args, **kwargs)
    return set(np.array(sorted(found))) if found else set()"""
LONG_DOUBLE = """\
import numpy as np
wider = permutation_gap
def permutation_gap(*args, **kwargs):
    return np.longdouble(wider(*args, **kwargs))"""
TRIANGLE = "np.tri(n, dtype=bool)"
RETURN = f"return {TRIANGLE}"


def windows(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")


def marked(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["source"] = "\ufeff" + cell["source"]


def lines(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)


def colab(notebook: dict[str, Any]) -> None:
    notebook["metadata"] |= {
        "colab": {"provenance": [{"file_id": "1x", "timestamp": 5}], "toc_visible": True},
        "accelerator": "GPU",
        "widgets": {"application/vnd.jupyter.widget-state+json": {}},
    }
    for cell in notebook["cells"]:
        cell["metadata"] |= {"id": "aBc", "outputId": "1-2", "colab": {"base_uri": "https://x"}}


def vscode(notebook: dict[str, Any]) -> None:
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    notebook["metadata"]["kernelspec"] = {"display_name": ".venv", "name": "python3"}
    notebook["metadata"]["vscode"] = {"interpreter": {"hash": "x"}}
    for cell in notebook["cells"]:
        cell["metadata"]["vscode"] = {"languageId": "python"}


def old_outputs(notebook: dict[str, Any]) -> None:
    error = {
        "output_type": "error",
        "ename": "NameError",
        "evalue": "x",
        "traceback": ["\x1b[0;31m"],
    }
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBOR" * 999}}
    for number, cell in enumerate(notebook["cells"]):
        cell["outputs"], cell["execution_count"] = [error, picture], 99 - number


def rich(notebook: dict[str, Any]) -> None:
    """Attachments, raw cells, tags, slides, and empty cells."""
    picture = {"x.png": {"image/png": "iVBORw0KGgo="}}
    text = {"cell_type": "markdown", "id": "m", "metadata": {"tags": ["a"]}}
    raw = {"cell_type": "raw", "id": "r", "metadata": {"raw_mimetype": "text/x-rst"}}
    notebook["cells"].insert(
        0, {**text, "source": "![x](attachment:x.png)", "attachments": picture}
    )
    notebook["cells"].insert(3, {**raw, "source": "\\begin{x}"})
    notebook["cells"].insert(5, code("empty", "   \n"))
    notebook["cells"][-1]["metadata"]["slideshow"] = {"slide_type": "skip"}


def minor(number: int) -> Any:
    def edit(notebook: dict[str, Any]) -> None:
        notebook["nbformat_minor"] = number
        if number < 5:
            for cell in notebook["cells"]:
                del cell["id"]

    return edit


def backwards(notebook: dict[str, Any]) -> None:
    notebook["cells"].reverse()


def merged(notebook: dict[str, Any]) -> None:
    """All code in the first answer's cell, as after "merge cells"."""
    answers = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("solution")]
    whole = "\n\n".join(cell["source"] for cell in answers)
    for cell in answers[1:]:
        notebook["cells"].remove(cell)
    answers[0]["source"] = whole


def split(notebook: dict[str, Any]) -> None:
    """The answer in a new cell below the one that was made for it, which is left empty."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == f"answer-{ONE}":
            notebook["cells"].insert(number + 1, code("split", cell["source"]))
            cell["source"] = "# see below"
            return


ODDITIES: list[Attack] = [
    odd("warnings", "warns in each call", "import warnings",
        mask("warnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)\n" + RETURN)),
    odd("streams", "writes to both streams", "import sys, os",
        mask("print('out')\nsys.stderr.write('err')\nsys.stdout.flush()\nos.write(2, b'x')\n"
             "os.system('echo hi')\n" + RETURN)),
    odd("a-megabyte", "prints a megabyte in a cell and in a call", "print('x' * 10**6)",
        mask("print('y' * 10**6)\n" + RETURN)),
    odd("plots", "draws in a cell and in a call",
        "import matplotlib.pyplot as plt\n%matplotlib inline\nplt.rcParams['figure.dpi'] = 300\n"
        "plt.style.use('ggplot')\nplt.plot([1, 2])\nplt.show()",
        mask("plt.figure()\nplt.imshow(np.eye(3))\nplt.close('all')\n" + RETURN)),
    odd("magics", "uses magics, shell lines and cell magics",
        "%timeit -n1 -r1 1\n%load_ext autoreload\n%autoreload 2\n%config X.y = 1\n%pdb off\n"
        "files = !ls\n!pip install numpy\n%pip install torch\n%cd .\n%env A=1",
        "%%time\nx = 1", "%%capture out\nprint(1)", "%%bash\necho hi", "%%html\n<b>x</b>",
        "%%writefile mine.py\nk = 1", "%whos\n?causal_mask\ncausal_mask??",
        "%debug\n%reset_selective -f zz",
        "%%javascript\nalert(1)", "%%nonsense\nx", "%%timeit -n1 -r1\ncausal_mask(3)"),
    odd("failing-cells", "leaves scratch cells that fail", "1 / 0", "def broken(:", "undefined",
        "assert False, 'to do'", "raise KeyboardInterrupt", "import nowhere", "  indented = 1"),
    odd("helpers-elsewhere", "defines what the answer needs in cells below it",
        mask("return triangle(n)"), "def triangle(n):\n    return np.greater_equal(*steps(n))",
        "def steps(n):\n    t = np.arange(n)\n    return t[:, None], t[None]"),
    odd("tabs", "indents with tabs", mask(RETURN).replace("    ", "\t")),
    odd("byte-order-marks", "begins every cell with a byte order mark", edit=marked),
    odd("windows-lines", "ends its lines as Windows does", edit=windows),
    odd("lists-of-lines", "keeps its sources as lists of lines", edit=lines),
    odd("colab", "comes from Colab", "from google.colab import drive\ndrive.mount('/content')",
        edit=colab),
    odd("vs-code", "comes from VS Code", edit=vscode),
    odd("old-outputs", "holds the outputs of earlier runs, errors too", edit=old_outputs),
    odd("rich", "has attachments, raw cells, tags and empty cells", edit=rich),
    odd("merged-cells", "has all code in one cell", edit=merged),
    odd("split-cells", "has its answer in a cell of its own below", edit=split),
    odd("backwards", "has its cells in the reverse order", edit=backwards),
    *(odd(f"format-4-{n}", f"is a notebook of format 4.{n}", edit=minor(n)) for n in range(6)),
    odd("letters", "names things in other letters",
        mask("größe, π, 数, naïve = n, 3.14, 1, 'é'\nreturn np.tri(größe * 数, dtype=bool)")),
    odd("float32-inside", "computes in single precision inside",
        mask("t = np.arange(n, dtype=np.float32)\nreturn t[:, None] - t >= 0")),
    odd("future-annotations", "defers its annotations, and has them of names that do not exist",
        "from __future__ import annotations\n"
        + mask(RETURN, header="def causal_mask(n: Anzahl) -> np.ndarray[Nowhere, 'x']:")),
    odd("cached", "caches its answer",
        mask(RETURN, "import functools", "@functools.cache\ndef causal_mask(n):")),
    odd("wrapped", "wraps its answer in decorators",
        mask("return np.tri(n * k, dtype=bool)", header="def causal_mask(k, n):"),
        "import functools, time\ndef timed(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n"
        "        start = time.perf_counter()\n        try:\n            return f(*a, **k)\n"
        "        finally:\n            print(time.perf_counter() - start)\n    return inner\n"
        "causal_mask = timed(functools.partial(causal_mask, 1))"),
    odd("object", "answers with an object that can be called",
        "import numpy as np\nclass Mask:\n    def __call__(self, n):\n        if n < 0:\n"
        f"            raise ValueError(n)\n        return {TRIANGLE}\ncausal_mask = Mask()"),
    odd("class", "answers with a class that makes arrays",
        "import numpy as np\nclass causal_mask:\n    def __new__(cls, n):\n        if n < 0:\n"
        f"            raise ValueError(n)\n        return {TRIANGLE}"),
    odd("lambda", "answers with a lambda",
        f"import numpy as np\ncausal_mask = lambda n: {TRIANGLE} if n >= 0 else 1 / 0"),
    odd("stars", "imports everything from everywhere",
        "from numpy import *\nfrom math import *\nfrom torch import *\nimport numpy as np",
        mask("return tri(n, dtype=bool_)", "from numpy import *")),
    odd("strict-numpy", "makes NumPy raise and print otherwise",
        "import numpy as np\nnp.seterr(all='raise')\nnp.set_printoptions(precision=2)"),
    odd("strict-warnings", "makes warnings raise",
        "import warnings\nwarnings.simplefilter('error')"),
    odd("torch-double", "makes double torch's usual type",
        "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.manual_seed(0)\n"
        "torch.set_printoptions(precision=2)", right=TORCH),
    odd("torch-no-grad", "turned gradients off in a scratch cell",
        "import torch\ntorch.set_grad_enabled(False)", right=TORCH),
    odd("torch-inference", "entered inference mode in a scratch cell",
        "import torch\nmode = torch.inference_mode()\nmode.__enter__()", right=TORCH),
    odd("torch-autocast", "left autocast on in a scratch cell",
        "import torch\ntorch.set_autocast_enabled('cpu', True)\n"
        "torch.autocast('cpu', dtype=torch.bfloat16).__enter__()", right=TORCH),
    odd("numpy-texts", "returns texts that NumPy made", NUMPY_TEXTS, right=NAMES),
    odd("old-names", "gives NumPy its old names back, as old libraries want them",
        "import numpy as np\nnp.bool, np.int, np.float = bool, int, float"),
    attack("long-double", "returns a number wider than double", LONG_DOUBLE,
           right=(WIDE, NUMBER), honest=float(POINTS[WIDE] + POINTS[NUMBER])),
    odd("torch-threads", "asks for threads and determinism",
        "import torch\ntorch.set_num_threads(2)\ntorch.use_deterministic_algorithms(True)\n"
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "torch.set_float32_matmul_precision('high')", right=TORCH),
    odd("logging", "logs everything",
        "import logging, sys\nlogging.basicConfig(level=0, stream=sys.stdout, force=True)",
        mask("logging.error('x')\nlogging.getLogger().debug('y')\n" + RETURN)),
    odd("progress", "shows a progress bar",
        mask("for _ in tqdm(range(3)):\n    pass\n" + RETURN,
             "from tqdm.auto import tqdm\nfrom tqdm import trange")),
    odd("widgets", "uses widgets that are not here",
        "import ipywidgets as widgets\nwidgets.interact(lambda x: x, x=3)",
        "from IPython.display import *\ndisplay(HTML('<b>x</b>'), Markdown('x'))\nclear_output()"),
    odd("file", "asks where its file is", "print(__file__)",
        "from pathlib import Path\nhere = Path(__file__).parent",
        "try:\n    __file__\nexcept NameError:\n    pass"),
    odd("input", "waits for somebody to type", "name = input('name? ')",
        "import getpass\ngetpass.getpass()", "import sys\nsys.stdin.read()"),
    odd("main", "answers only when it is run as a program",
        "if __name__ == '__main__':\n    " + mask(RETURN).replace("\n", "\n    "),
        "import unittest, doctest\ndoctest.testmod()\nunittest.main(argv=['x'], exit=False)"),
    odd("exits", "ends with exit", "import sys\nsys.exit()", "exit()", "quit(1)"),
    odd("asynchronous", "awaits at the top level, and starts threads",
        "import asyncio\nawait asyncio.sleep(0)\nasync def f(): return 1\nx = await f()",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1,)).start()",
        mask("from concurrent.futures import ThreadPoolExecutor\n"
             "with ThreadPoolExecutor(2) as pool:\n"
             "    return np.array(list(pool.map(lambda t: np.arange(n) <= t, range(n))),"
             " dtype=bool).reshape(n, n)")),
    odd("shadowed", "shadows builtins and modules by variables",
        "list = [1]; max = 3; id = 5; type = 'x'; input = 7; json = 8; os = 9; check = None"),
    odd("folders", "changes its folder and leaves files",
        "import os, pathlib\nos.makedirs('data', exist_ok=True)\nos.chdir('data')\n"
        "pathlib.Path('x.txt').write_text('x')\nimport tempfile, pickle\n"
        "pickle.dump([1], open('y.pkl', 'wb'))"),
    odd("deleted-names", "cleans up behind itself",
        mask("import numpy\nreturn numpy.tri(n, dtype=bool)"),
        "del np\nx = 1\ndel x\n%reset_selective -f x"),
    odd("nested-lists", "returns nested lists where an array was meant, of the right type",
        mask("rows = [[j <= t for j in range(n)] for t in range(n)]\n"
             "return np.array(rows, bool).reshape(n, n)")),
    odd("matrix", "returns views in another order of memory",
        mask("return np.asfortranarray(np.tri(n, dtype=bool)).T.T[::1]")),
    odd("random", "draws random numbers and seeds them",
        "import random, numpy as np\nrandom.seed(0)\nnp.random.seed(0)\nnp.random.rand(3)",
        right=WIDE),
    odd("course-check", "runs the course's own checks, and more",
        "from autograder import check\ncheck(causal_mask)\ncheck()",
        "from autograder import nothing"),
    odd("environment", "asks for a display, a home and threads",
        "import os, multiprocessing\nos.environ['OMP_NUM_THREADS'] = '8'\nos.environ['HOME']\n"
        "multiprocessing.cpu_count()\nos.getlogin()"),
]  # fmt: skip


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """What each door says of each oddity."""
    world = World(tmp_path_factory.mktemp("odd"))
    ours, theirs = world.course / "ours", world.course / "class"
    for one in ODDITIES:
        for folder in (ours, theirs):
            write(one, folder / "submitted", {})
    start = [sys.executable, "-m"]
    ours_running = world.start(
        *start, "autograder", "grade", ours / "submitted", "--out", ours / "grades",
        "--gradebook", f"sqlite:///{ours}/gradebook.db", "--chapter", CHAPTER,
        "--jobs", 2, "--seed", SEED,
    )  # fmt: skip
    for step in (
        ["autograder", "generate", CHAPTER],
        ["nbgrader", "generate_assignment", CHAPTER],
        ["nbgrader", "autograde", CHAPTER, f"--GradeInSandbox.seed={SEED}"],
        ["nbgrader", "export"],
    ):
        finish(world.start(*start, *step))
    finish(ours_running)
    records = {}
    for one in ODDITIES:
        file = ours / "grades/students" / one.name / CHAPTER / "results.json"
        records[one.name] = json.loads(file.read_text("utf-8"))
    with (theirs / "export.csv").open(newline="") as lines:
        scores = {row["student_id"]: float(row["score"] or 0) for row in csv.DictReader(lines)}
    yield {"ours": records, "nbgrader": scores}


def finish(process: "subprocess.Popen[str]") -> None:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, (out + err)[-3000:]


each = pytest.mark.parametrize("one", ODDITIES, ids=lambda o: o.name)


@each
def test_our_door_gives_full_marks(graded: dict[str, dict[str, Any]], one: Attack) -> None:
    record = graded["ours"][one.name]
    tests = [t for t in record["tests"] if t["name"].split(".")[-1] in one.right]
    told = [t["output"] for t in tests]
    assert sum(t["score"] for t in tests) == one.honest, (record["extra_data"]["note"], told)
    assert record["extra_data"]["status"] == "graded"


@each
def test_nbgraders_door_gives_full_marks(graded: dict[str, dict[str, Any]], one: Attack) -> None:
    assert graded["nbgrader"][one.name] == one.honest


def test_there_are_many_oddities_and_each_is_described() -> None:
    assert len({one.name for one in ODDITIES}) == len(ODDITIES) >= 30
    assert all(one.tries for one in ODDITIES)
