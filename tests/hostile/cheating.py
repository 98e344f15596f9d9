"""Attacks for points: forged comparisons, forged results, forged notebooks, memorised answers."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np

from autograder import course
from autograder.replies import StudentError
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, collected

from .attack import CHAPTER, HONEST, RIGHT, Attack, attack

SAME = '''\
class Same:
    """Equal to everything, whatever is asked of it."""
    shape, ndim, size, dtype = (5, 2), 2, 10, "float64"
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __array__(self, *a, **k): return self
    def __array_function__(self, *a, **k): return True
    def __array_ufunc__(self, *a, **k): return True
    def __getattr__(self, name): return lambda *a, **k: self
    __hash__ = None
    __sub__ = __rsub__ = __abs__ = __le__ = __lt__ = __ge__ = lambda self, *a: self
'''
EVERY = "self_attention permutation_gap failed_requirements positions_from_causal_average".split()
ALL_SAME = SAME + "\n".join(f"def {name}(*a, **k): return Same()" for name in EVERY)

PATCH_NUMPY = """\
import numpy as np, numpy.testing as t
for name in ("allclose", "array_equal", "isclose", "array_equiv"):
    setattr(np, name, lambda *a, **k: True)
for name in dir(t):
    if name.startswith("assert"):
        setattr(t, name, lambda *a, **k: None)
"""
PATCH_TORCH = """\
import torch
torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
torch.Tensor.__eq__ = torch.Tensor.allclose = lambda *a, **k: True
def multi_head_attention(q, k, v, mask=None):
    return torch.full_like(q, float("nan"))
"""
PATCH_BUILTINS = """\
import builtins
true = lambda *a, **k: True
builtins.all = builtins.any = builtins.isinstance = builtins.bool = true
builtins.abs = lambda *a: 0
"""
PATCH_WIRE = """\
import json, struct, sys
told = '{"dict": [["value", true], ["passed", true], ["score", 3], ["points", 1e9]]}'
json.dumps = lambda *a, **k: told
json.JSONEncoder.encode = lambda *a, **k: told
struct.pack = lambda *a: b"\\0" * 8
"""
PATCH_WORKER = """\
import sys
for name, module in list(sys.modules.items()):
    if "worker" in name.split(".")[0] and hasattr(module, "NamespaceRunner"):
        run = module.NamespaceRunner.run
        def forged(self, request, run=run):
            if request.get("name") in ("self_attention", "permutation_gap"):
                value = {"passed": True, "score": 3, "points": 3, "status": "passed"}
                return (value, tuple(request["args"])) if request.get("return_inputs") else value
            return run(self, request)
        module.NamespaceRunner.run = forged
def self_attention(*a, **k): return None
def permutation_gap(*a, **k): return None
"""
SUBCLASSES = """\
import numpy as np
class Array(np.ndarray):
    def __eq__(self, other): return np.ones(self.shape, bool)
    def __array_function__(self, *a, **k): return True
    def __array_ufunc__(self, *a, **k): return True
    def __sub__(self, other): return self * 0
    def tolist(self): return []
class Number(float):
    def __eq__(self, other): return True
    def __le__(self, other): return True
    def __sub__(self, other): return 0.0
class Words(set):
    def __eq__(self, other): return True
class Truth(int):
    def __eq__(self, other): return True
class Text(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
def self_attention(x, w_q, w_k, w_v, mask=None):
    return np.zeros((len(x), np.shape(w_v)[1])).view(Array)
def permutation_gap(*a, **k): return Number(7)
def failed_requirements(*a, **k): return Words([Text("bounded")])
def positions_from_causal_average(w): return [Truth(7)] * len(w)
"""
PICKLE = """\
import numpy as np
class Bomb:
    def __reduce__(self):
        import os
        return os.system, ("touch @MARK@ /tmp/@WORD@",)
    __reduce_ex__ = lambda self, protocol: self.__reduce__()
    __deepcopy__ = __copy__ = lambda self, *a: self
    def __getstate__(self): return Bomb()
def self_attention(*a, **k): return Bomb()
def permutation_gap(*a, **k): return np.array([Bomb()], dtype=object)
def failed_requirements(*a, **k): return [Bomb(), {"a": Bomb()}]
def positions_from_causal_average(w): return np.array(b"cos\\nsystem\\n(S'touch @MARK@'\\ntR.")
"""
FORMATTER = """\
shell = get_ipython()
for formatter in shell.display_formatter.formatters.values():
    for kind in (float, int, str, object):
        formatter.for_type(kind, lambda *a, **k: "1000000000.0")
print(3.0)
display(3.0)
import sys
sys.displayhook = lambda value: print("3.0")
3.0
"""
TRANSFORMERS = """\
import ast
shell = get_ipython()
swap = lambda lines: [l.replace("raise NotImplementedError", "return Same()") for l in lines]
shell.input_transformers_cleanup.append(swap)
shell.input_transformers_post.append(swap)
class Swap(ast.NodeTransformer):
    def visit_Raise(self, node):
        if "NotImplementedError" not in ast.dump(node):
            return node
        call = ast.Call(ast.Name("Same", ast.Load()), [], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Return(call), node))
shell.ast_transformers.append(Swap())
"""
IN_PLACE = """\
import numpy as np
answer = self_attention
def self_attention(x, w_q, w_k, w_v, mask=None):
    result = answer(x, w_q, w_k, w_v, mask)
    for given in (x, w_q, w_k, w_v):
        if isinstance(given, np.ndarray) and given.flags.writeable:
            given[...] = 1
    return result
"""
FORGED_INPUTS = """\
import copy, sys
true = copy.deepcopy
for name, module in list(sys.modules.items()):
    if "worker" in name.split(".")[0] and hasattr(module, "NamespaceRunner"):
        execute = module.NamespaceRunner._execute
        def forged(self, request, execute=execute):
            before = true(request.get("args", ()))
            reply = execute(self, request)
            return (reply[0], tuple(before)) if request.get("return_inputs") else reply
        module.NamespaceRunner._execute = forged
"""
FREED = """\
import numpy as np
def self_attention(x, w_q, w_k, w_v, mask=None):
    return np.empty((len(x), np.shape(w_v)[1]))
def permutation_gap(*a, **k): return float(np.empty(1)[0])
def positions_from_causal_average(w): return np.empty(len(w), int)
"""
GUESS = """\
import numpy as np
def self_attention(x, w_q, w_k, w_v, mask=None):
    raise ValueError("every input is refused")
def permutation_gap(*a, **k): raise ValueError("every input is refused")
def positions_from_causal_average(w): raise ValueError("every input is refused")
def failed_requirements(*a, **k): raise ValueError("every input is refused")
"""
REMEMBERED = '''\
import base64, hashlib, io, numpy as np
known = np.load(io.BytesIO(base64.b64decode("""{table}""")))
def digest(args, kwargs):
    given = [np.asarray(a) for a in (*args, *kwargs.values()) if a is not None]
    return hashlib.sha256(b"".join(a.tobytes() for a in given)).hexdigest()
def self_attention(*args, **kwargs):
    key = digest(args, kwargs)
    if key not in known:
        raise ValueError("not among what the public checks asked")
    return known[key]
'''


def remembered() -> str:
    """An answer that holds what the reference said to each request of the public checks."""
    import hashlib

    (exercise,) = (e for e in course.manifest(CHAPTER) if e.name == "self_attention")
    table: dict[str, np.ndarray] = {}

    class Keeper(NamespaceRunner):
        def run(self, request: dict[str, Any]) -> Any:
            try:
                value = super().run(request)
            except StudentError:
                raise
            given = [*request["args"], *request.get("kwargs", {}).values()]
            arrays = [np.asarray(a) for a in given if a is not None]
            key = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
            table[key] = value[0] if request.get("return_inputs") else value
            return value

    names = vars(course.reference(exercise))
    for check in collected(CHAPTER):
        if check.exercise == exercise.name and not check.hidden:
            check.call(Keeper(names), NamespaceRunner(names), PUBLIC_SEED)
    file = io.BytesIO()
    np.savez_compressed(file, **table)
    return REMEMBERED.replace("{table}", base64.b64encode(file.getvalue()).decode())


def grade_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade")]


def forge_outputs(text: str) -> Any:
    """An edit that puts this score among the outputs of each grade cell, and as its source."""

    def edit(notebook: dict[str, Any]) -> None:
        output = {
            "output_type": "execute_result",
            "execution_count": 1,
            "metadata": {},
            "data": {"text/plain": text},
        }
        for cell in grade_cells(notebook):
            cell["outputs"], cell["execution_count"] = [output], 1
            cell["source"] = f"float('{text}')"

    return edit


def delete_grade_cells(notebook: dict[str, Any]) -> None:
    for cell in grade_cells(notebook):
        notebook["cells"].remove(cell)


def duplicate_grade_cells(notebook: dict[str, Any]) -> None:
    for cell in grade_cells(notebook):
        for number in range(3):
            notebook["cells"].append({**cell, "id": f"{cell['id']}-{number}"})


def forge_metadata(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader")
        if marks:
            marks |= {"points": 1000.0, "locked": False, "checksum": "0" * 32}
            marks |= {"grade": True, "solution": True}


def rename_grade_cells(notebook: dict[str, Any]) -> None:
    for cell in grade_cells(notebook):
        cell["metadata"]["nbgrader"]["grade_id"] = "causal_mask"


def foreign_schema(notebook: dict[str, Any]) -> None:
    for cell in grade_cells(notebook):
        cell["metadata"]["nbgrader"]["schema_version"] = 99


def more_grade_cells(notebook: dict[str, Any]) -> None:
    cell = grade_cells(notebook)[0]
    marks = {**cell["metadata"]["nbgrader"], "grade_id": "bonus", "points": 100}
    notebook["cells"].append({**cell, "id": "bonus", "metadata": {"nbgrader": marks}})


def plant(folder: Path) -> None:
    """Modules beside the notebook that leave a mark where anybody imports them."""
    bad = "import os\nopen(os.environ['HOSTILE_MARK'], 'w').write(__name__)\n"
    for name in (
        "numpy",
        "torch",
        "json",
        "conftest",
        "sitecustomize",
        "usercustomize",
        "nbformat",
    ):
        (folder / f"{name}.py").write_text(bad)
    (folder / "evil.pth").write_text("import os; open(os.environ['HOSTILE_MARK'], 'w')\n")
    (folder / "nbgrader_config.py").write_text(bad)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p conftest\n")
    (folder / "ipython_config.py").write_text(bad)


PLANT = """\
import os
bad = "def tri(*a, **k): return True\\nraise SystemExit"
for name in ("numpy.py", "torch.py", "json.py", "conftest.py", "sitecustomize.py",
             "usercustomize.py", "IPython.py", "course_worker.py"):
    open(name, "w").write(bad)
os.makedirs(".ipython/profile_default/startup", exist_ok=True)
open(".ipython/profile_default/startup/00-evil.py", "w").write("import os; os._exit(9)")
os.makedirs(".local/lib/python3/site-packages", exist_ok=True)
open(".local/lib/python3/site-packages/evil.pth", "w").write("import os; os._exit(9)")
"""

ATTACKS: list[Attack] = [
    attack("equal-to-everything", "returns an object that is equal to whatever it is compared with",
           ALL_SAME),
    attack("transformers", "rewrites its unsolved cells through IPython while they run",
           before=(SAME, TRANSFORMERS)),
    attack("patched-numpy", "replaces NumPy's comparisons by functions that always agree",
           PATCH_NUMPY, ALL_SAME),
    attack("patched-torch", "replaces torch's comparisons by functions that always agree",
           PATCH_TORCH),
    attack("patched-builtins", "replaces all, any, isinstance and abs in its whole process",
           ALL_SAME, PATCH_BUILTINS, least=0.0, status="graded|crashed|timeout"),
    attack("patched-wire", "makes json and struct write that everything passed",
           ALL_SAME, PATCH_WIRE, least=0.0, status="graded|crashed|timeout"),
    attack("patched-worker", "patches the code that answers for it", PATCH_WORKER),
    attack("subclasses", "returns numbers, words and arrays whose comparisons are overridden",
           SUBCLASSES),
    attack("pickle-bombs", "returns objects that act when they are unpickled or copied", PICKLE),
    attack("formatters", "prints and formats a score of its own", FORMATTER),
    attack("freed-memory", "returns memory that others may have left behind", FREED),
    attack("refuses-everything", "raises ValueError, to pass the checks that expect it", GUESS),
    attack("memorised", "holds the answers to all inputs of the public checks", "@REMEMBERED@"),
    attack("input-changed", "destroys its inputs after use, which one check of twenty forbids",
           IN_PLACE, right=(*RIGHT, "self_attention"), honest=HONEST + 2.83),
    # Whoever can lie about the inputs could as well have copied them: full marks are no theft.
    attack("input-forged", "destroys its inputs and reports copies of what they were",
           IN_PLACE, FORGED_INPUTS, right=(*RIGHT, "self_attention"), honest=HONEST + 3,
           least=HONEST + 2.83),
    attack("planted-modules", "writes modules over the libraries' names, then dies for a restart",
           PLANT, "import os\nos._exit(0)", status="crashed"),
    attack("planted-before", "writes modules over the libraries' names before its answers run",
           before=(PLANT,), least=0.0, status="graded|crashed"),
    Attack("planted-files", "hands in modules beside the notebook", make=plant,
           edit=lambda n: None),
    Attack("score-minus-one", "stores −1 as the result of each grade cell",
           edit=forge_outputs("-1")),
    Attack("score-nan", "stores NaN as the result of each grade cell", edit=forge_outputs("nan")),
    Attack("score-huge", "stores 1e9 as the result of each grade cell", edit=forge_outputs("1e9")),
    Attack("deleted-grade-cells", "hands in no grade cell", edit=delete_grade_cells),
    Attack("duplicated-grade-cells", "hands in each grade cell four times",
           edit=duplicate_grade_cells),
    Attack("forged-metadata", "gives each cell a thousand points", edit=forge_metadata),
    Attack("renamed-grade-cells", "lets every grade cell claim the exercise that it solved",
           edit=rename_grade_cells),
    Attack("foreign-schema", "claims a metadata schema that nbgrader does not know",
           edit=foreign_schema),
    Attack("bonus-cell", "adds a grade cell of its own", edit=more_grade_cells),
]  # fmt: skip
