"""Writes the solution cell of an exercise: the chapter's stub with the reference's body in it.

nbgrader's own ClearSolutions turns the cell into the stub again. It puts its `raise` where a region
begins and drops all lines to the region's end; so helpers follow the last body inside the same
region, where they leave nothing behind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .course import CourseError
from .reference_code import (
    Module,
    Needed,
    code_of,
    first_line,
    imported_names,
    module_lines,
    needed,
)

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
Named = ast.FunctionDef | ast.ClassDef


def solution_cell(
    stub: str, name: str, module: Module, *, given: Iterable[str], taken: Iterable[str]
) -> str:
    """The stub's cell with the reference `name` of `module` between solution marks.

    `given` and `taken` say which names the notebook defines, as in `needed`.
    """
    tree = ast.parse(stub)
    node = stub_of(tree, name)
    reference = module.definitions.get(name)
    if not isinstance(reference, Named):
        raise CourseError(f"{module.path} defines no {name!r}; write the reference there")
    if problem := disagreement(node, reference):
        raise CourseError(f"the stub of {name!r} differs from its reference: {problem}")
    along = needed(module, name, given=given, taken=taken)
    lines, changes = stub.split("\n"), along.renamed(module)
    written = module_lines(module, changes)
    pairs = _bodies(node, reference)
    for number, (empty, full) in reversed(list(enumerate(pairs))):
        rest: list[str] = []
        if number == len(pairs) - 1:
            own = reference if isinstance(reference, ast.ClassDef) else None
            rest = [*_remaining(own, node, module, changes), *_along(along, tree)]
        start = _after_docstring(empty, lines)
        body = written[_after_docstring(full, written) : full.end_lineno]
        indent = " " * (empty.col_offset + 4)
        end = END if any(row[:1].strip() for row in rest) else indent + END
        while body and not body[0].strip():
            body = body[1:]
        lines[start : empty.end_lineno] = [indent + BEGIN, *body, *rest, end]
    cell = "\n".join(lines)
    ast.parse(cell)
    return cell


def stub_of(tree: ast.Module, name: str) -> Named:
    """The definition of `name` in a stub's cell."""
    for node in tree.body:
        if isinstance(node, Named) and node.name == name:
            return node
    raise CourseError(f"the stub's cell defines no {name!r}; write its def or class there")


def exercise_names(stub: str) -> list[str]:
    """The functions and classes that a stub's cell defines."""
    return [node.name for node in ast.parse(stub).body if isinstance(node, Named)]


def disagreement(stub: Named, reference: Named) -> str:
    """What the signature or docstring of a stub has other than its reference, or nothing."""
    if type(stub) is not type(reference):
        return "one is a class and the other a function"
    if ast.get_docstring(stub) != ast.get_docstring(reference):
        return f"the docstring of {stub.name!r}; copy it from the reference"
    if isinstance(stub, ast.FunctionDef) and isinstance(reference, ast.FunctionDef):
        mine, its = _signature(stub), _signature(reference)
        return f"the stub has {mine} and the reference {its}" if mine != its else ""
    theirs = _methods(reference)
    for name, method in _methods(stub).items():
        if name not in theirs:
            return f"the reference has no method {name!r}"
        if problem := disagreement(method, theirs[name]):
            return problem
    return ""


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def _methods(node: Named) -> dict[str, ast.FunctionDef]:
    return {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}


def _bodies(stub: Named, reference: Named) -> list[tuple[ast.FunctionDef, ast.FunctionDef]]:
    """The functions of a stub with those of its reference, in the order of the stub."""
    if isinstance(stub, ast.FunctionDef) and isinstance(reference, ast.FunctionDef):
        return [(stub, reference)]
    theirs = _methods(reference)
    return [(method, theirs[name]) for name, method in _methods(stub).items()]


def _after_docstring(node: ast.FunctionDef, lines: list[str]) -> int:
    """The number of lines up to where the body proper begins, comments included."""
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        return first.end_lineno or first.lineno
    if first.lineno == node.lineno:
        raise CourseError(f"{node.name!r} has its body on the line of its def; write it below")
    start = first_line(first) - 1
    while not lines[start - 1].strip() or lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start


def _remaining(
    reference: ast.ClassDef | None, stub: Named, module: Module, changes: dict[str, str]
) -> list[str]:
    """The parts of a reference's class that its stub does not show."""
    rest: list[str] = []
    if reference is None:
        return rest
    shown = _methods(stub)
    for at, part in enumerate(reference.body):
        docstring = at == 0 and ast.get_docstring(reference) is not None
        if docstring or (isinstance(part, ast.FunctionDef) and part.name in shown):
            continue
        rest += ["", *code_of(module, part, changes)]
    return rest


def _along(along: Needed, stub: ast.Module) -> list[str]:
    """The imports and helpers that a reference uses, as they stand at the left margin."""
    has = {name: ast.unparse(node) for name, node in imported_names(stub)}
    imports = {text for name, text in along.imports.items() if has.get(name) != text}
    in_order = sorted(imports, key=lambda text: (text.startswith("from"), text))
    rest = ["", "", *in_order] if imports else []
    for module, name in along.helpers:
        changes = along.renamed(module)
        rest += ["", "", *code_of(module, module.definitions[name], changes)]
    return rest
