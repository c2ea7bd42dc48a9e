"""Documents that belong to one world: laid over those of the domain, which other worlds go on sharing as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muarl.domains.database import View
from muarl.retrieval import Document, Knowledge
from muarl.retrieval.overlay import overlaid

WORLD_DOCUMENTS = "world_documents"
"""The table of a task's database with documents that only its world has, by id: {"title": ..., "content": ...}. One
with the id of a document of the domain stands in its place."""


def in_world(shared: Knowledge, view: View | None) -> Knowledge:
    """What is searched in a world: the documents of the domain with those of the world's own laid over them."""
    if view is None or WORLD_DOCUMENTS not in view:
        return shared
    own = tuple(Document(key, row["title"], row["content"]) for key, row in view[WORLD_DOCUMENTS].scan())
    return overlaid(shared, own) if own else shared


def with_documents(documents: Iterable[Document]) -> Mapping[str, Mapping[str, Any]]:
    """The changes by which a database gets documents of its world, as ``Database.derive`` takes them."""
    return {WORLD_DOCUMENTS: {d.id: {"title": d.title, "content": d.content} for d in documents}}
