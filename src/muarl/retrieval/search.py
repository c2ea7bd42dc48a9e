"""What every way of searching documents has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from muarl.retrieval.documents import Document


class Hit(NamedTuple):
    """A document that was found, and how well it fits by the measure of that search: the higher, the better."""

    document: Document
    score: float


class SearchError(ValueError):
    """A search that cannot be made as it was asked for. Its text is for whoever asked, such as an agent."""


class Search(ABC):
    """A way to search a collection of documents.

    ``waits``: whether a search asks somebody else, such as an endpoint, so that one should ``await asearch``.
    Instances hold no state of a conversation: all worlds may share one.
    """

    waits: ClassVar[bool] = False

    @abstractmethod
    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """At most ``top_k`` documents, best first; none for a blank query. SearchError if it cannot be made."""

    async def asearch(self, query: str, top_k: int = 10) -> list[Hit]:
        """The same in a running event loop."""
        return self.search(query, top_k)
