"""Takes a reference answer out of `solutions/` as text, with everything that it uses.

The source notebook of an assignment runs by itself: what a reference calls beside the exercises of
its own chapter goes with it, comments and all.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from .course import CourseError

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass
class Module:
    """One file of `solutions/`, with what it defines and imports at its top level."""

    path: Path
    root: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {t.id: node for t in targets if isinstance(t, ast.Name)}
        return found

    @cached_property
    def imports(self) -> dict[str, ast.Import | ast.ImportFrom]:
        """Each imported name with an import of this name alone."""
        return dict(imported_names(self.tree))

    def elsewhere(self, name: str) -> tuple[Module, str] | None:
        """The module of an earlier chapter that defines an imported name, and its name there."""
        node = self.imports.get(name)
        if not isinstance(node, ast.ImportFrom):
            return None
        parts = node.module.split(".") if node.module else []
        if node.level:
            folder = self.path.parents[node.level - 1].relative_to(self.root)
            parts = [*folder.parts, *parts]
        path = self.root.joinpath(*parts).with_suffix(".py")
        if parts[:1] == ["solutions"] and path.is_file():
            there, original = _module(path, self.root), node.names[0].name
            return there.elsewhere(original) or (there, original)
        return None

    def globals_of(self, node: ast.AST) -> set[str]:
        """The names of the module that a definition uses."""
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            return _names(node)
        table = next(
            t
            for t in symtable.symtable(self.text, str(self.path), "exec").get_children()
            if t.get_name() == node.name and t.get_lineno() in (node.lineno, first_line(node))
        )
        return _globals(table) | _names(_outside(node))


@cache
def _module(path: Path, root: Path) -> Module:
    """A module that many names lead to is read once."""
    return Module(path, root)


@dataclass
class Needed:
    """What goes along with a reference: imports, and helpers with the names they get."""

    imports: dict[str, str] = field(default_factory=dict)
    helpers: list[tuple[Module, str]] = field(default_factory=list)
    names: dict[tuple[Path, str], str] = field(default_factory=dict)

    def renamed(self, module: Module) -> dict[str, str]:
        """For one module, its names that differ in the notebook."""
        changes = {}
        for name in {*module.definitions, *module.imports}:
            there, original = module.elsewhere(name) or (module, name)
            new = self.names.get((there.path, original), name)
            if new != name:
                changes[name] = new
        return changes


def needed(module: Module, name: str, *, given: Iterable[str], taken: Iterable[str]) -> Needed:
    """Everything that the reference `name` uses beside itself.

    `given` are names of this module that the notebook defines already (its other exercises).
    `taken` are names that mean something else in the notebook: a helper so called is renamed.
    """
    found = Needed()
    seen: set[tuple[Path, str]] = set()
    given, taken = set(given), set(taken)

    def visit(where: Module, what: str) -> None:
        for used in sorted(where.globals_of(where.definitions[what])):
            there, original = where.elsewhere(used) or (where, used)
            key = (there.path, original)
            if key in seen or key == (module.path, name):
                continue
            seen.add(key)
            if there.path == module.path and original in given:
                continue
            if original in there.definitions:
                if original in taken:
                    room = there.path.parent.name.removeprefix("with_")
                    found.names[key] = f"{room}_{original}"
                visit(there, original)  # what a helper needs stands before it
                found.helpers.append((there, original))
            elif original in there.imports:
                found.imports[original] = ast.unparse(there.imports[original])

    visit(module, name)
    return found


def code_of(module: Module, node: ast.AST, changes: dict[str, str]) -> list[str]:
    """The lines of a definition as they are written, with some of its names changed."""
    return module_lines(module, changes)[first_line(node) - 1 : _last(node)]


def module_lines(module: Module, changes: dict[str, str]) -> list[str]:
    """The lines of a file in which some names are changed wherever they are code."""
    lines = module.text.split("\n")
    places: list[tuple[int, int, str]] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id in changes:
            places.append((node.lineno, node.col_offset, node.id))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in changes:
            start = lines[node.lineno - 1].encode().index(node.name.encode(), node.col_offset + 3)
            places.append((node.lineno, start, node.name))
        elif isinstance(node, ast.arg) and node.arg in changes:
            raise CourseError(
                f"{module.path.name}, line {node.lineno}: the argument {node.arg!r} is called "
                f"like an exercise that the notebook defines; rename the argument"
            )
    for line, column, name in sorted(places, reverse=True):
        row = lines[line - 1].encode()
        lines[line - 1] = (
            row[:column] + changes[name].encode() + row[column + len(name.encode()) :]
        ).decode()
    return lines


def imported_names(tree: ast.Module) -> Iterable[tuple[str, ast.Import | ast.ImportFrom]]:
    """Each name that top-level code imports, with an import of it alone."""
    for node in tree.body:
        nodes = node.body if isinstance(node, ast.If) else [node]  # if TYPE_CHECKING:
        for item in nodes:
            if isinstance(item, ast.Import):
                for alias in item.names:
                    yield alias.asname or alias.name.split(".")[0], ast.Import([alias])
            elif isinstance(item, ast.ImportFrom):
                for alias in item.names:
                    alone = ast.ImportFrom(item.module, [alias], item.level)
                    yield alias.asname or alias.name, alone


def first_line(node: ast.AST) -> int:
    """The line of a definition, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])  # type: ignore[attr-defined]


def _globals(table: symtable.SymbolTable) -> set[str]:
    own = {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return own.union(*(_globals(child) for child in table.get_children()))


def _outside(node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
    """What of a definition is evaluated in the module: decorators, defaults, annotations, bases."""
    if isinstance(node, ast.ClassDef):
        methods = [_outside(n) for n in node.body if isinstance(n, ast.FunctionDef)]
        return ast.List([*node.decorator_list, *node.bases, *methods])  # type: ignore[list-item]
    returns = [node.returns] if node.returns else []
    return ast.List([*node.decorator_list, node.args, *returns])  # type: ignore[list-item]


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _last(node: ast.AST) -> int:
    return node.end_lineno  # type: ignore[attr-defined]
