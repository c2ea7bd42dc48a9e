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
    r"muarl_worlds/(tau/(banking|mock|tau1)|bfcl)/"
    r"|muarl_worlds/.*/(tools|agent_tools|phone_tools|worlds)\.py"  # tools' texts
)


@cache
def modules() -> dict[str, str]:
    """The text of every module."""
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def classes(text: str) -> set[str]:
    """The names of a module's public classes."""
    found = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    return {name for name in found if not name.startswith("_")}


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of a page, or of a module's comments and docstrings; not of strings, which models may read."""
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    documents = {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start in documents):
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line


@cache
def lines() -> tuple[str, ...]:
    """Every line of prose with its place, of the files in which one of the words stands at all."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    texts |= {SOURCE / module: text for module, text in modules().items()}
    any_word = re.compile("|".join(WORDS), re.IGNORECASE)
    return tuple(
        f"{place}:{number}: {line.strip().replace('changed-wish-ignored', '')}"
        for path, text in texts.items()
        if not UNTOUCHED.search(place := path.relative_to(ROOT).as_posix()) and any_word.search(text)
        for number, line in prose(path, text)
    )


def test_public_class_names_are_unique() -> None:
    # Only what reads like the definition of a class in two modules needs a parser.
    written = defaultdict(set)
    for module, text in modules().items():
        if not SHOWN.fullmatch(module):
            for name in re.findall(r"^\s*class ([A-Za-z]\w*)", text, re.MULTILINE):
                written[name].add(module)
    doubtful = {name: where for name, where in written.items() if len(where) > 1}
    defined = {module: classes(modules()[module]) for module in set().union(*doubtful.values())}
    places = {name: [module for module in where if name in defined[module]] for name, where in doubtful.items()}
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
