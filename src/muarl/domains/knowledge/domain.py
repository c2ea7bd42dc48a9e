"""A domain with documents: what its author gave as ``documents``, those that only one world has, tools that search
them, and tools that only they tell of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.domains.base import Domain, World
from muarl.domains.database import View
from muarl.domains.knowledge.discovery import CALL, UNLOCK, discoverables_of, shown
from muarl.domains.knowledge.ways import SEARCHES, Ways, fitting
from muarl.domains.sources import beside
from muarl.domains.tooling import Kind, Tool, tool
from muarl.retrieval.bm25 import BM25Search
from muarl.retrieval.documents import Document, Knowledge, overlaid
from muarl.retrieval.embeddings import EmbeddingCache
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.markdown import read_folder
from muarl.retrieval.search import Hit, Search
from muarl.retrieval.variants import LEAST_RATING
from muarl.types.chat import ToolSpec
from muarl.types.episode import Usage


def as_knowledge(documents: Any, owner: type[Any]) -> Knowledge:
    """Whatever an author gave as ``documents``, as Knowledge. ConfigError or DataError says what is wrong."""
    where = f"{owner.__name__}.documents"
    if isinstance(documents, Knowledge):
        return documents
    if isinstance(documents, (str, Path)):
        try:
            folder = beside(owner, "documents", Path(documents))
            return _read(folder, _stamp(folder))
        except DataError as problem:
            raise DataError(f"{where}: {problem}") from None
    if documents is None:
        raise ConfigError(f'{where} is not set: name a folder of Markdown files, such as Path("documents")')
    if not isinstance(documents, Iterable):
        raise ConfigError(f"{where} must be a Path to a folder, or documents, not {type(documents).__name__}")
    several = tuple(documents)
    if wrong := [one for one in several if not isinstance(one, Document)]:
        raise ConfigError(f"{where}: {wrong[0]!r:.60} is no Document")
    ids = [one.id for one in several]
    if twice := [one for one in ids if ids.count(one) > 1]:
        raise ConfigError(f"{where}: two documents have the id {twice[0]!r}")
    return Knowledge(several)


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a file of the folder does."""
    stats = ((path, path.lstat()) for path in sorted(folder.rglob("*")))
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats)


@lru_cache(maxsize=8)
def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> Knowledge:
    """Read once for all domains of a process, which share its indexes."""
    return read_folder(folder)


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


_DISCOVERY = (UNLOCK, CALL)
NOTHING = "No document has these words."


class KnowledgeDomain(Domain):
    """A domain whose agent has documents to search. Methods marked with ``@discoverable`` are tools that agents find in
    the documents.

    Options of an instance besides those of ``Domain``: other ``documents``. ``tools`` leaves out listed tools only.
    """

    documents: ClassVar[Any] = None
    """A Path to a folder of Markdown files, relative to the module that defines the class, or a ``Knowledge``, or
    ``Document`` s."""
    searches: ClassVar[Sequence[str]] = SEARCHES
    """Which search tools are offered."""
    top_k: ClassVar[int] = 10
    """How many documents a search shows."""
    _unlocked: set[str]

    def __init__(self, *, documents: Any = None, **options: Any) -> None:
        super().__init__(**options)
        cls = type(self)
        if unknown := [name for name in cls.searches if name not in SEARCHES]:
            raise ConfigError(f"{cls.__name__}.searches: there is no search {unknown[0]!r}; take of {SEARCHES}")
        self.discoverables: dict[str, Tool] = discoverables_of(cls)
        hidden = self.discoverables
        absent = {*hidden, *(n for n in SEARCHES if n not in cls.searches), *(() if hidden else _DISCOVERY)}
        self._tools = {n: t for n, t in self._tools.items() if n not in absent}
        self._given_documents = documents
        self._ways = Ways()
        self._knowledge: Knowledge | None = None

    @property
    def knowledge(self) -> Knowledge:
        """The documents that are searched; in a world also those of its own (``WORLD_DOCUMENTS``)."""
        return in_world(self.shared_knowledge, self.__dict__.get("db"))

    @property
    def shared_knowledge(self) -> Knowledge:
        """The documents of all worlds, read when first asked for. ConfigError or DataError says what is wrong with
        them."""
        if self._knowledge is None:
            cls = type(self)
            source = cls.documents if self._given_documents is None else self._given_documents
            self._knowledge = as_knowledge(source, cls)
        return self._knowledge

    def discoverable_names(self) -> tuple[str, ...]:
        """The names of the tools that agents find in the documents."""
        return tuple(self.discoverables)

    def discoverable_specs(self) -> tuple[ToolSpec, ...]:
        """The tools that agents find in the documents."""
        return tuple(one.schema.spec for one in self.discoverables.values())

    def make_search(self) -> Search:
        """What ``KB_search`` searches with, unless a configuration's section ``retrieval`` names a variant; override it
        to search in a way of your own."""
        return BM25Search(self.knowledge)

    # other ways to search

    def with_retrieval(
        self,
        retrieval: str | None = None,
        *,
        reranker_min_score: float | None = LEAST_RATING,
        embedding_cache: EmbeddingCache | None = None,
        **options: Any,
    ) -> Self:
        """The same domain, searched in another way: a variant's name (``ways.OFFERED``), and ``top_k``, ``grep_top_k``,
        ``case_sensitive``, ``embedder`` and ``reranker``. ConfigError for a variant that it cannot host."""
        made = copy(self)
        tools = [name for name in SEARCHES if name in self._tools]
        chosen = None if retrieval is None else fitting(retrieval, self.name, tools)
        made._ways = Ways(chosen, least=reranker_min_score, cache=embedding_cache, **options)
        if chosen is not None:
            made._tools = {n: t for n, t in self._tools.items() if n in chosen.tools or n not in SEARCHES}
            made.unreplayed = frozenset(SEARCHES)
        if made._ways.waits:
            made._tools["KB_search"] = replace(made._tools["KB_search"], waits=True)
            made.waits = True
        return made

    def as_declared(self) -> Self:
        """The same searched as the class declares, as plans and audits do."""
        return self if self._ways.variant is None else self.with_retrieval()

    def kind_of(self, tool_name: str) -> Kind:
        """ "read", "write" or "generic", also of a search that the variant leaves out, since gold actions name it."""
        return "read" if tool_name in self.unreplayed else super().kind_of(tool_name)

    @property
    def searching_usage(self) -> Usage:
        """What models that searches asked have used."""
        return self._ways.usage

    async def aclose(self) -> None:
        """Close the connections of models that searches have asked."""
        await self._ways.aclose()

    def prepare(self, world: World) -> None:
        """In a fresh world nothing is unlocked."""
        world.toolkit()._unlocked = set()

    @tool
    def KB_search(self, query: str) -> str:
        """Search the documents by words. Shows the documents that fit best, whole.

        query: what to look for, in a few words.
        """
        return self._searched(query)

    def _searched(self, query: str) -> str:
        """What ``KB_search`` answers; a coroutine where it asks somebody else."""
        chosen = self._ways.ranked(self.knowledge)
        if chosen is not None and self._ways.waits:
            return cast(str, self._waited(chosen, query))
        return self._laid_out(self._found(chosen or self.make_search(), query)) or NOTHING

    async def _waited(self, search: Search, query: str) -> str:
        return self._laid_out(await search.asearch(query, self._most())) or NOTHING

    def _most(self) -> int:
        """How many documents a search shows."""
        return self._ways.top_k or self._own_most()

    def _own_most(self) -> int:
        """The same, where nobody has said otherwise."""
        return self.top_k

    def _laid_out(self, hits: Sequence[Hit]) -> str:
        return _shown(hits)

    def _found(self, search: Search, query: str) -> list[Hit]:
        knowledge, most = self.knowledge, self._most()
        if not isinstance(search, BM25Search):
            return search.search(query, most)
        # BM25 ranks all documents, and in a handful of them a match may be worth no more than none
        words = set(query.lower().split())
        hits = search.search(query, len(knowledge))
        return list(islice((h for h in hits if not words.isdisjoint(_words_of(knowledge, h.document))), most))

    @tool
    def grep(self, pattern: str) -> str:
        """Search the documents by a regular expression. Shows those with most matches, whole.

        pattern: such as 'cancel|refund'; upper and lower case are the same.
        """
        return self._matched(pattern)

    def _matched(self, pattern: str) -> str:
        """What ``grep`` answers."""
        search = GrepSearch(self.knowledge, case_sensitive=self._ways.case_sensitive)
        hits = search.search(pattern, self._ways.grep_top_k or self._own_most())
        return self._laid_out(hits) or "Nothing in the documents matches."

    @tool
    def unlock_discoverable_agent_tool(self, agent_tool_name: str) -> str:
        """Unlock a tool that a document names, so that it can be called. Answers with its description and parameters.

        agent_tool_name: the name of the tool, as the document has it.
        """
        declared = self._known(agent_tool_name)
        self._unlocked.add(agent_tool_name)
        return f"{shown(declared.schema.spec)}\n\nYou can now call it with {CALL}."

    @tool(writes=True)
    def call_discoverable_agent_tool(self, agent_tool_name: str, arguments: str = "{}") -> Any:
        """Call a tool that you have unlocked.

        agent_tool_name: the name of the tool.
        arguments: its arguments as JSON, such as '{"user_id": "U-17"}'.
        """
        declared = self._known(agent_tool_name)
        if agent_tool_name not in self._unlocked:
            raise ValueError(f"the tool {agent_tool_name!r} is locked: unlock it first, with {UNLOCK}")
        try:
            values = parse_json(arguments)
        except ValueError as problem:
            raise ValueError(f"the arguments are no JSON: {problem}") from None
        if not isinstance(values, dict):
            raise ValueError("the arguments must be a JSON object")
        if (wrong := declared.schema.check(values)) is not None:
            raise ValueError(f"{agent_tool_name}: {wrong}")
        return getattr(self, agent_tool_name)(**declared.schema.convert(values))

    def _known(self, name: str) -> Tool:
        if name not in self.discoverables:
            raise ValueError(f"there is no tool {name!r} to unlock: take the name from a document")
        return self.discoverables[name]


def _words_of(knowledge: Knowledge, document: Document) -> set[str]:
    """The words of a document, which are kept with the collection."""
    words: dict[str, set[str]] = knowledge.index("words", dict)
    if document.id not in words:
        words[document.id] = set(document.content.lower().split())
    return words[document.id]


def _shown(hits: Sequence[Hit]) -> str:
    return "\n".join(
        f"{n}. {one.title}\n   ID: {one.id}\n   Score: {score:.4f}\n   Content: {one.content}\n"
        for n, (one, score) in enumerate(hits, 1)
    )
