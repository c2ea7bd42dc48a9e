"""What every way of searching documents has in common."""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, NamedTuple

from muarl.retrieval.documents import Document


class Hit(NamedTuple):
    """A document that was found, and how well it fits by the measure of that search: the higher, the better."""

    document: Document
    score: float


class SearchError(ValueError):
    """A search that cannot be made as it was asked for. Its text is for whoever asked, such as an agent."""


class Search(ABC):
    """A way to search a collection of documents. Instances hold no state of a conversation: all worlds may share
    one."""

    waits: ClassVar[bool] = False
    """Whether a search asks somebody else, such as an endpoint, so that one should ``await asearch``."""

    @abstractmethod
    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """At most ``top_k`` documents, best first; none for a blank query. SearchError if it cannot be made."""

    async def asearch(self, query: str, top_k: int = 10) -> list[Hit]:
        """The same in a running event loop."""
        return self.search(query, top_k)


class WaitingSearch(Search):
    """A search that asks somebody else. ``search`` waits for it in an event loop of its own."""

    waits: ClassVar[bool] = True

    @abstractmethod
    async def asearch(self, query: str, top_k: int = 10) -> list[Hit]:
        """See ``Search.search``. InfrastructureError if whom it asks does not answer."""

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The same for plain code; where an event loop runs in this thread, it has to wait."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.asearch(query, top_k))
        context = contextvars.copy_context()  # so that what it takes is counted where it is asked
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(context.run, asyncio.run, self.asearch(query, top_k)).result()
