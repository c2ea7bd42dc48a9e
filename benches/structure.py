"""Counts what the house is made of: lines and files by package, what a module imports in all, circles, arrows up.

    python benches/structure.py                       # this checkout
    python benches/structure.py --source OTHER --json # another one, as JSON

A module's closure is what is imported when it is: imports at the top of modules, followed to the end. Imports within
functions and under ``TYPE_CHECKING`` are left out there; they count for circles and arrows, as does
``import_module("a.b")`` with a literal name. Lines are all lines of a file.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

ROOTS = ("muarl", "muarl_worlds", "muarl_tools", "muarl_integrations", "muarl_verifiers")
CLOSURES = ("muarl.rollouts.conversation", "muarl.learning.learner", "muarl.recipes.rl", "examples/rl_loop.py")
ALLOWED = {"muarl": 0, "muarl_worlds": 1, "muarl_integrations": 1, "muarl_tools": 2, "muarl_verifiers": 3}
"""Floors of the packages: an import from a lower to a higher one is an arrow up."""


@dataclass(frozen=True)
class Import:
    """One import. ``name``: the module, or a name in a module, as written. ``top``: at the top of its module, and so
    made whenever the module is."""

    name: str
    top: bool


def imports_of(text: str, package: str) -> Iterator[Import]:
    """All imports of a module. ``package``: its own, for relative ones."""
    calls = "import_module" in text  # without them there is nothing to find in expressions

    def walk(node: ast.AST, top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    base = ".".join(
                        [*package.split(".")[: len(package.split(".")) - child.level + 1], *filter(None, [base])]
                    )
                yield from (Import(f"{base}.{alias.name}", top) for alias in child.names)
            elif isinstance(child, ast.Call):
                function = child.func
                called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if called == "import_module" and child.args and isinstance(child.args[0], ast.Constant):
                    yield Import(str(child.args[0].value), False)
                yield from walk(child, top)
            elif calls or not isinstance(child, ast.expr):
                function_or_types = isinstance(
                    child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
                ) or _types_only(child)
                yield from walk(child, top and not function_or_types)

    yield from walk(ast.parse(text), True)


def _types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


@dataclass(frozen=True)
class House:
    """A source tree. ``lines``: of each module. ``top``: modules that importing a module imports at once. ``all``: the
    same with imports in functions, for types only, and by a literal name."""

    lines: Mapping[str, int]
    top: Mapping[str, Set[str]]
    all: Mapping[str, Set[str]]

    def module_of(self, name: str) -> str | None:
        """The module that a dotted name is, or is in."""
        while name and name not in self.lines:
            name = name.rpartition(".")[0]
        return name or None

    def closure(self, first: Iterable[str]) -> set[str]:
        """All modules that are imported by name with these, themselves among them. The ``__init__`` of a package counts
        where something is imported from it."""
        seen: set[str] = set()
        waiting = list(first)
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting.extend(self.top[module])
        return seen


def read(source: Path) -> House:
    """The house below ``source``, a checkout with ``src``."""
    files = {
        ".".join(file.relative_to(source / "src").with_suffix("").parts).removesuffix(".__init__"): file
        for root in ROOTS
        for file in sorted((source / "src" / root).rglob("*.py"))
    }
    texts = {name: file.read_text() for name, file in files.items()}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    house = House(lines, {}, {})
    top: dict[str, set[str]] = {}
    every: dict[str, set[str]] = {}
    for name, file in files.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        found = [(house.module_of(one.name), one.top) for one in imports_of(texts[name], package)]
        every[name] = {module for module, _ in found if module and module != name}
        top[name] = {module for module, at_once in found if module and module != name and at_once}
    return House(lines, top, every)


def circles(edges: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of nodes each of which leads to every other: Tarjan's strongly connected components of two or more."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    work.append((to, iter(sorted(edges.get(to, ())))))
                    break
                if to in stack:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        groups.append(sorted(stack[at:]))
                    del stack[at:]
    return groups


def floors_up(house: House) -> list[tuple[str, str]]:
    """Imports from a lower package to a higher one, or between packages of one floor."""
    found = []
    for module, imported in sorted(house.all.items()):
        here = module.split(".")[0]
        for other in sorted(imported):
            there = other.split(".")[0]
            if there != here and ALLOWED[there] >= ALLOWED[here]:
                found.append((module, other))
    return found


FACADES = ("muarl", "muarl.kit")
"""Modules that give others' names: what programs and authors import from. Every other name is imported from the module
that defines it."""


_FROM = re.compile(r"^(?P<indent> *)from (?P<module>[\w.]+) import (?P<names>\([^)]*\)|[^\n#]*)", re.MULTILINE)


def borrowed_names(source: Path, folders: Iterable[str] = ("src", "tests", "examples", "benches")) -> list[str]:
    """Imports of a name from a module of ours that only imported it, as "FILE:LINE: NAME from MODULE, not from
    HOME". Import statements are looked for in the text: parsing two thousand files takes a minute."""
    texts = {file: file.read_text() for folder in folders for file in sorted((source / folder).rglob("*.py"))}
    imported: dict[str, dict[str, str]] = {}
    for file, text in texts.items():
        if file.is_relative_to(source / "src"):
            name = ".".join(file.relative_to(source / "src").with_suffix("").parts).removesuffix(".__init__")
            imported[name] = _imported_names(text)
    found = []
    for file, text in texts.items():
        for statement in _FROM.finditer(text):
            module = statement["module"]
            if module in FACADES:
                continue
            for name, _ in _names(statement["names"]):
                home = imported.get(module, {}).get(name)
                if home is not None and f"{module}.{name}" not in imported:
                    place = f"{file.relative_to(source)}:{text.count(chr(10), 0, statement.start()) + 1}"
                    found.append(f"{place}: {name} from {module}, not from {home}")
    return found


def _names(written: str) -> Iterator[tuple[str, str]]:
    """Of what is written behind ``import``: each name, and what it is called from then on."""
    for line in written.strip("()").splitlines():
        for alias in line.partition("#")[0].split(","):
            name, _, called = alias.strip().partition(" as ")
            if name:
                yield name, called or name


def _imported_names(text: str) -> dict[str, str]:
    """The names that a module imports at its top, or there on a condition, from modules of ours, each with its module.
    Facades' are left out."""
    names: dict[str, str] = {}
    for statement in _FROM.finditer(text):
        module = statement["module"]
        if module.split(".")[0] in ROOTS and module not in FACADES and len(statement["indent"]) in (0, 4):
            if statement["indent"]:
                outer = [line for line in text[: statement.start()].splitlines() if line[:1] not in ("", " ", "#", ")")]
                if not outer or not outer[-1].startswith(("if ", "elif ", "else:")):
                    continue
            names |= {called: module for _, called in _names(statement["names"])}
    return names


def facade_names(source: Path, file: str) -> list[str]:
    """The modules behind the names ``muarl.X`` that a script uses: the facade imports each when it is first used."""
    facade = ast.parse((source / "src/muarl/__init__.py").read_text())
    homes = next(
        ast.literal_eval(node.value)
        for node in facade.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
    )
    tree = ast.parse((source / file).read_text())
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "muarl"}
    return sorted({homes[name] for name in used if name in homes})


def report(source: Path) -> dict[str, object]:
    """All figures of a checkout, as JSON."""
    house = read(source)
    packages: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for module, count in house.lines.items():
        parts = module.split(".")
        for name in {parts[0], ".".join(parts[:2])}:
            packages[name] += count
            files[name] += 1
    closures = {}
    for what in CLOSURES:
        first = facade_names(source, what) if what.endswith(".py") else [what] if what in house.lines else []
        modules = house.closure(first)
        closures[what] = {"modules": len(modules), "lines": sum(house.lines[m] for m in modules)}
    folders: dict[str, set[str]] = {}
    for module, imported in house.all.items():
        for other in imported:
            folders.setdefault(module.rpartition(".")[0], set()).add(other.rpartition(".")[0])
    for folder in {to for tos in folders.values() for to in tos}:
        folders.setdefault(folder, set())
    return {
        "lines": dict(sorted(packages.items())),
        "files": dict(sorted(files.items())),
        "closures": closures,
        "circles of modules, imports at the top": circles(house.top),
        "circles of modules, all imports": circles(house.all),
        "arrows up": floors_up(house),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1], help="a checkout")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = report(options.source)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    lines, files = figures["lines"], figures["files"]
    assert isinstance(lines, dict) and isinstance(files, dict)
    for name in lines:
        if "." not in name or files[name] > 1:
            print(f"{'' if '.' not in name else '  '}{name:<36}{lines[name]:>8,} lines {files[name]:>5} files")
    for name, value in figures.items():
        if name not in ("lines", "files"):
            print(f"{name}: {json.dumps(value)}" if value else f"{name}: none")


if __name__ == "__main__":
    main()
