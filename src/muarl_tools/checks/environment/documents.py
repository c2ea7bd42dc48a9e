"""Checks of a domain's documents: whether they can be found, and whether what they name is there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import combinations
from typing import Any

from muarl.domains.authoring import nearest
from muarl.domains.checking import CheckReport, NotChecked, Problem, of_tool
from muarl.domains.knowledge.domain import KnowledgeDomain
from muarl.domains.knowledge.ways import SEARCHES
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.markdown import KEYS, MarkdownDocument
from muarl.types.chat import ToolCall
from muarl_tools.checks.environment.samples import CheckContext

Search = Callable[[str], str]
"""What a search for a text shows."""

_WORD = re.compile(r"[^\W_]+(?:[-'.][^\W_]+)*")
_NAME = r"[A-Za-z]\w*"
_USED = re.compile(
    rf"\b(?:tools?|calls?|calling|unlocks?|unlocking|use|uses|using|run|runs)\s+(?:the\s+)?"
    rf"[\"'`*]{{0,3}}(?P<used>{_NAME}_\w+)|(?P<kind>{_NAME}_\w+)[\"'`*]{{0,3}}\s+tool\b|`(?P<called>{_NAME})\("
    rf"|(?P<bare>{_NAME}_\w+)\(",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(rf"(?<![\w/.\-]){_NAME}_\w+(?![\w/])")
_LINK = re.compile(r"\]\([^()\n]{0,500}\)|\S{0,100}://\S{0,500}")
LIKE = 0.85
"""How near a name must be to a tool's to be a slip of the pen."""


def documents(context: CheckContext) -> CheckReport:
    """Documents are found by words of their titles, name only tools and documents that there are, and leave no
    discoverable tool unnamed."""
    domain = context.domain
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's documents are its own")
    if not isinstance(domain, KnowledgeDomain):
        return CheckReport("none")
    knowledge, hidden = domain.knowledge, domain.discoverable_names()
    tools = [*domain.tool_names(), *domain.tool_names("user"), *hidden]
    found = [
        *unknown_tools(knowledge, tools, _arguments(domain)),
        *untold(knowledge, {name: of_tool(domain, name) for name in hidden}),
    ]
    offered, world = [name for name in SEARCHES if name in domain.tool_names()], domain.world()

    def search(tool: str, text: str) -> str:
        given = {"query": text} if tool == "KB_search" else {"pattern": re.escape(text)}
        return world.call("assistant", ToolCall("check", tool, given)).content

    if offered:
        found += unreachable(knowledge, [partial(search, tool) for tool in offered])
    found += [*missing_links(knowledge), *same_titles(knowledge)]
    lengths = sorted(len(document.content.split()) for document in knowledge.documents) or [0]
    few = "" if len(hidden) == 1 else "s"
    told = f"{len(knowledge)} documents of {lengths[0]} to {lengths[-1]} words, {len(hidden)} discoverable tool{few}"
    return CheckReport(told, tuple(found))


def _arguments(domain: KnowledgeDomain) -> set[str]:
    """What the tools' arguments are called, and what they may be."""
    specs = [*domain.tool_specs(), *domain.discoverable_specs()]
    return {name for spec in specs for name in _names(spec.parameters)}


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from schema.get("properties", {})
        yield from (one for one in schema.get("enum", ()) if isinstance(one, str))
        for inner in schema.values():
            yield from _names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _names(inner)


def unreachable(knowledge: Knowledge, searches: Sequence[Search]) -> Iterator[Problem]:
    """Documents that no search with words of their titles shows: neither with all of them, nor with one or two."""
    for document in knowledge.documents:
        words = list(dict.fromkeys(_WORD.findall(document.title)))[:8]
        queries = [document.title, *words, *map(" ".join, combinations(words, 2))]
        shows = re.compile(rf"(?:\bID: |\[){re.escape(document.id)}(?:$|\])", re.MULTILINE)
        if not any(shows.search(search(query)) for search in searches for query in queries):
            remedy = "Write in it what those who need it will ask for, or merge it with the documents that hide it"
            yield Problem(f"no search with words of its title, {document.title!r}, shows it", _where(document), remedy)


def same_titles(knowledge: Knowledge) -> Iterator[Problem]:
    """Documents of one title of which nothing says which one holds."""
    titled: dict[str, list[Document]] = defaultdict(list)
    for document in knowledge.documents:
        titled[document.title.casefold()].append(document)
    for several in titled.values():
        rest = [document for document in several if not _dated(document)]
        if len(several) > 1 and len(rest) > 1:
            others = ", ".join(document.id for document in rest[1:])
            what = f"has the same title as {others}, and nothing says which of them holds"
            remedy = "Retitle them, or give them version, effective_from or replaces in front matter"
            yield Problem(what, _where(rest[0]), remedy)


def _dated(document: Document) -> bool:
    """Whether a document says itself of which time or version it is."""
    return isinstance(document, MarkdownDocument) and bool(
        document.version or document.effective_from or document.effective_until or document.replaces
    )


def missing_links(knowledge: Knowledge) -> Iterator[Problem]:
    """Links to documents that there are not, and replaced documents that there are not."""
    written = [document for document in knowledge.documents if isinstance(document, MarkdownDocument)]
    ids = {document.id for document in knowledge.documents}
    files = {document.file for document in written}
    names = {id_.rpartition("/")[2].casefold() for id_ in ids} | {id_.casefold() for id_ in ids}
    names |= {document.title.casefold() for document in written}
    for document in written:
        for link in document.links:
            if link.startswith("[[") and link[2:-2].strip().casefold().removesuffix(".md") not in names:
                yield Problem(f"it links to {link}, which there is not", _where(document), "Correct the name")
            elif not link.startswith("[[") and link not in files:
                what = f"it links to {link}, which there is not{nearest(link, sorted(files))}"
                yield Problem(what, _where(document), "Correct the link")
        for replaced in document.replaces:
            if replaced not in ids or replaced == document.id:
                own = replaced == document.id
                what = "itself" if own else f"{replaced!r}, which there is not{nearest(replaced, sorted(ids))}"
                remedy = "Correct the id, or leave out what agents cannot find any more"
                yield Problem(f"its front matter says that it replaces {what}", _where(document), remedy)
        for key in document.ignored:
            if near := get_close_matches(key.lower().replace("-", "_").replace(" ", "_"), KEYS, 1, 0.8):
                what = f"its front matter has {key!r}, which means nothing here"
                yield Problem(what, _where(document), f"Write {near[0]} if that is meant")


def unknown_tools(knowledge: Knowledge, tools: Collection[str], others: Collection[str]) -> Iterator[Problem]:
    """Tools that documents name and that there are not. ``others``: names that are no tools, such as arguments."""
    known = {*tools, *others}
    for document in knowledge.documents:
        text = _LINK.sub(" ", document.content)
        named = [next(filter(None, found.groups())) for found in _USED.finditer(text)]
        for word in _IDENTIFIER.findall(text):
            if word not in known and get_close_matches(word, tools, 1, LIKE):
                named.append(word)
        for name in dict.fromkeys(named):
            if name not in known:
                remedy = "Correct the name, or make the tool: nobody can follow the document as it is"
                what = f"it names the tool {name!r}, which there is not{nearest(name, sorted(tools))}"
                yield Problem(what, _where(document), remedy)


def untold(knowledge: Knowledge, discoverable: Mapping[str, str]) -> Iterator[Problem]:
    """Discoverable tools that no document names, so that nobody can discover them. ``discoverable``: by name, how a
    problem names it."""
    for name, where in discoverable.items():
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        if not any(word.search(document.content) for document in knowledge.documents):
            remedy = "Write in a document when it is called and with what, or mark it with @tool to have it listed"
            yield Problem("no document names it, so that no agent finds it", where, remedy)


def _where(document: Document) -> str:
    """How a problem names a document."""
    if isinstance(document, MarkdownDocument) and document.file:
        return f"document {document.file}"
    return f"document {document.id}"
