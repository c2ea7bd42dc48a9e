"""A collection with some documents of one's own laid over it, which the collection itself knows nothing of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

from muarl.retrieval.documents import Document, Knowledge


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
