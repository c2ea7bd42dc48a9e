"""The site of the documentation: every page is in its navigation once, and a person can read all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

WORDS = 55_000
"""The most words that the pages may have together, history apart. The bars of tables and the like are no words."""


def site_pages(repository: Path) -> dict[str, Path]:
    """The pages by their path in docs/, without history."""
    docs = repository / "docs"
    pages = {path.relative_to(docs).as_posix(): path for path in docs.rglob("*.md")}
    return {name: path for name, path in pages.items() if not name.startswith("history/")}


def leaves(nav: Any) -> Iterator[str]:
    """The pages that a navigation names, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(part)


def words(text: str) -> int:
    """How many there are with a letter or a digit in them."""
    return sum(any(character.isalnum() for character in word) for word in text.split())


def test_the_navigation_has_every_page_once(repository: Path) -> None:
    nav = yaml.safe_load((repository / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(leaves(nav)) == sorted(site_pages(repository))


def test_the_site_is_not_longer_than_people_read(repository: Path) -> None:
    counted = {name: words(path.read_text(encoding="utf-8")) for name, path in site_pages(repository).items()}
    longest = sorted(counted.items(), key=lambda item: -item[1])[:8]
    assert sum(counted.values()) <= WORDS, f"{sum(counted.values())} words; the longest pages: {longest}"
