"""Documents, and collections of them, which may be laid over another one that knows nothing of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from muarl.basics.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """One document."""

    id: str
    title: str
    content: str
    """Its text without the title."""


class Knowledge:
    """A collection of documents in a fixed order, which decides ties between equal scores.

    Of several documents with one id the last one counts. What searches make of the documents (``index``) is made when
    first needed and kept here, so that all searches, domains and worlds over one collection share it.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = tuple({d.id: d for d in documents}.values())
        self._indexes: dict[Hashable, Any] = {}

    @classmethod
    def read(cls, folder: Path) -> Knowledge:
        """All documents of a folder and its subfolders, in the order of their paths.

        Each ``.json`` file holds one document's id, title and content, as TAU2's do; other files and hidden ones are
        left out. (Markdown is read by ``markdown.read_folder``.) DataError names a file that is no document, or the
        folder if there is none.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder of documents")
        files = (f for f in sorted(folder.rglob("*.json")) if not _hidden(f.relative_to(folder)))
        return cls(_from_json(f) for f in files if f.is_file())

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def key(self) -> str:
        """A hash of all documents in their order: equal for equal collections."""
        rows = [[d.id, d.title, d.content] for d in self.documents]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    @cached_property
    def _by_name(self) -> dict[str, Document]:
        return {**{d.id: d for d in self.documents}, **{d.title: d for d in self.documents}}

    def find(self, reference: str) -> Document | None:
        """A document by its title (the last one of that title), or by its id."""
        return self._by_name.get(reference)

    def index(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, kept under ``key``: made once for this collection, when first asked for."""
        if key not in self._indexes:
            self._indexes.setdefault(key, make())
        return cast(T, self._indexes[key])

    def has(self, key: Hashable) -> bool:
        """Whether an index is kept under ``key``."""
        return key in self._indexes


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _from_json(file: Path) -> Document:
    try:
        row = json.loads(file.read_text(encoding="utf-8"))
        document = Document(row["id"], row["title"], row["content"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(f"{file} is no document: {problem}") from None
    if not all(isinstance(text, str) for text in (document.id, document.title, document.content)):
        raise DataError(f"{file} is no document: id, title and content must be strings")
    return document


class OverlaidKnowledge(Knowledge):
    """The documents of ``base``, some of them replaced (those of the same id), and others added behind them.

    Searches find in it what they would find in a collection made anew. What they keep of ``base`` is not made again:
    they look at ``changed`` only, the replaced and added documents by their places. Nothing is kept in ``base``.
    """

    def __init__(self, base: Knowledge, own: Iterable[Document]) -> None:
        laid = {document.id: document for document in own}
        super().__init__([laid.pop(d.id, d) for d in base.documents] + list(laid.values()))
        self.base = base
        before = base.documents
        self.changed = {
            place: document
            for place, document in enumerate(self.documents)
            if place >= len(before) or document is not before[place]
        }

    @cached_property
    def own(self) -> Knowledge:
        """The replaced and added documents by themselves."""
        return Knowledge(self.changed.values())


@lru_cache(maxsize=32)
def overlaid(base: Knowledge, own: tuple[Document, ...]) -> OverlaidKnowledge:
    """``base`` with ``own`` laid over it; the last ones that were asked for are kept, with what searches made of them,
    so that all worlds of one task share them."""
    return OverlaidKnowledge(base, own)
