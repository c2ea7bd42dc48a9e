"""Names: public classes are unique, and words that were given up for the field's own do not come back."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

SHOWN = re.compile(
    r"(muarl/domains/kit|muarl_worlds/.*)/records\.py|muarl_worlds/acebench/(chinese|food|phone|travel)\.py"
)
"""Modules whose class names stand in schemas, error texts or tasks, where benchmarks and models read them."""

WORDS = {
    r"\bwish(es)?\b": "request, or goal",
    r"\bthe callers? (says?|said|wants?|asks?|agrees?|tells?|hears?)\b": "user",
    r"\bhabits?\b": "error profile",
    r"\berrands?\b": "side task",
    r"\bbad manners\b": "behaviour",
    r"\battendants?\b": "policy steps",
    r"\bsayings\b": "templates",
    r"\btaken up again\b": "resumed",
    r"\bbegun again\b": "restarted",
    r"\bunder way\b": "running",
    r"\ba person can mend\b": "the user can fix",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bdo not try\b": "trivial baselines",
    r"\boperators' questions\b": "rule-based evaluation",
}
"""What is not to be written, and what is written instead (docs/glossary.md)."""

UNTOUCHED = re.compile(
    r"docs/(results|benchmarks|domains)\.md"  # measurements as they were written down; a page that is rewritten
    r"|muarl_worlds/(tau/(banking|mock|tau1)|bfcl)/"
    r"|muarl_worlds/.*/(tools|agent_tools|phone_tools|worlds)\.py"  # tools' texts
)


@cache
def parsed(path: Path) -> ast.Module:
    """A module's syntax, which two tests look at."""
    return ast.parse(path.read_text(encoding="utf-8"))


def classes() -> Iterator[tuple[str, str]]:
    """(name, module) of every public class."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if not SHOWN.fullmatch(module):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, module


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of a page, or of a module's comments and docstrings; not of strings, which models may read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    documents = {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start in documents):
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line


@cache
def lines() -> tuple[str, ...]:
    """Every line of prose with its place."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(SOURCE.rglob("*.py"))]
    places = ((path, path.relative_to(ROOT).as_posix()) for path in pages)
    return tuple(
        f"{place}:{number}: {line.strip().replace('changed-wish-ignored', '')}"
        for path, place in places
        if not UNTOUCHED.search(place)
        for number, line in prose(path)
    )


def test_public_class_names_are_unique() -> None:
    places = defaultdict(list)
    for name, module in classes():
        places[name].append(module)
    assert not {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.parametrize(("word", "instead"), WORDS.items())
def test_words_that_were_given_up_do_not_come_back(word: str, instead: str) -> None:
    pattern = re.compile(word, re.IGNORECASE)
    found = [line for line in lines() if pattern.search(line.partition(": ")[2])]
    assert not found, f"write: {instead}"


def test_the_glossary_is_linked_and_defines_each_term_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = [
        term.strip()
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| term")
        for term in line.split("|")[1].split(",")
    ]
    assert len(terms) > 50 and len(terms) == len(set(terms))
    assert "(glossary.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
