"""The README: short, and its counts are true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from muarl.chat_formats.families import AUTO, NAMES
from muarl.environments.registry import built_in, find
from support.environments import MADE

MOST_LINES = 120


def test_it_is_read_in_a_sitting(repository: Path) -> None:
    assert len((repository / "README.md").read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("environments made from seeds", len(MADE)),
        ("benchmarks", sum(find(name).is_benchmark for name in built_in())),
        ("chat formats", len(set(NAMES) - {AUTO})),
    ],
)
def test_its_counts_are_those_of_the_code(repository: Path, what: str, count: int) -> None:
    assert stated(repository, what) == count


def test_it_names_as_many_trainers_as_there_are_pages_about_one(repository: Path) -> None:
    pages = {path.stem for path in (repository / "docs" / "integrations").glob("*.md")}
    assert stated(repository, "other trainers") == len(pages - {"publish"})


def test_it_counts_the_tests_to_the_hundred(repository: Path) -> None:
    functions = 0
    for path in (repository / "tests").rglob("test_*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        functions += sum(isinstance(node, kinds) and node.name.startswith("test_") for node in nodes)
    said = stated(repository, "test functions")
    assert said % 100 == 0 and said <= functions < said + 500


def stated(repository: Path, what: str) -> int:
    """The number before a few words of the README."""
    text = re.sub(r"\s+", " ", (repository / "README.md").read_text(encoding="utf-8"))
    counts = re.findall(rf"([\d,]+) {what}", text)
    assert len(counts) == 1, what
    return int(counts[0].replace(",", ""))
