"""What a domain's author gave as ``documents``, read and checked."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.sources import beside
from muarl.retrieval import Document, Knowledge
from muarl.retrieval.markdown import read_folder


def as_knowledge(given: Any, owner: type[Any]) -> Knowledge:
    """Whatever an author gave as ``documents``, as Knowledge. ConfigError or DataError says what is wrong."""
    where = f"{owner.__name__}.documents"
    if isinstance(given, Knowledge):
        return given
    if isinstance(given, (str, Path)):
        try:
            folder = beside(owner, "documents", Path(given))
            return _read(folder, _stamp(folder))
        except DataError as problem:
            raise DataError(f"{where}: {problem}") from None
    if given is None:
        raise ConfigError(f'{where} is not set: name a folder of Markdown files, such as Path("documents")')
    if not isinstance(given, Iterable):
        raise ConfigError(f"{where} must be a Path to a folder, or documents, not {type(given).__name__}")
    several = tuple(given)
    if wrong := [one for one in several if not isinstance(one, Document)]:
        raise ConfigError(f"{where}: {wrong[0]!r:.60} is no Document")
    ids = [one.id for one in several]
    if twice := [one for one in ids if ids.count(one) > 1]:
        raise ConfigError(f"{where}: two documents have the id {twice[0]!r}")
    return Knowledge(several)


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a file of the folder does."""
    found = ((path, path.lstat()) for path in sorted(folder.rglob("*")))
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in found)


@lru_cache(maxsize=8)
def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> Knowledge:
    """Read once for all domains of a process, which share its indexes."""
    return read_folder(folder)
