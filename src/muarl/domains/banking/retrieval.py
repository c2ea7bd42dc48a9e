"""How an agent may look into the bank's documents: TAU2's retrieval variants, their tools and their policies.

The prompts are the benchmark's own, read from the installed data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from muarl.endpoints import EndpointSettings
from muarl.errors import ConfigError, DataError
from muarl.retrieval import Document, Knowledge
from muarl.retrieval.reranking import RATING_FORMAT

ReadPrompt = Callable[[str], str]
Ranking = Literal["bm25", "openai", "qwen"]


@dataclass(frozen=True)
class Variant:
    """A retrieval variant. ``prompt``: its template's name; ``tools``: its search tools; ``inlined``: which documents
    stand in the policy itself, "all", "required" (the task's) or None.

    ``ranking``: how ``KB_search`` (in alltools ``KB_search_dense``) ranks documents: BM25, or the embeddings of one of
    ``EMBEDDINGS``; ``reranked``: whether a model then rates them. ``writes``: whether the shell may write.
    """

    prompt: str
    tools: tuple[str, ...] = ()
    inlined: str | None = None
    ranking: Ranking | None = None
    reranked: bool = False
    writes: bool = False

    @property
    def embeds(self) -> bool:
        """Whether it needs an embedding model."""
        return self.ranking in EMBEDDINGS


def _searching() -> dict[str, Variant]:
    """KB_search by each ranking, with and without reranking and grep."""
    found: dict[str, Variant] = {}
    rankings: Mapping[str, Ranking] = {"qwen_embeddings": "qwen", "openai_embeddings": "openai", "bm25": "bm25"}
    for name, ranking in rankings.items():
        for reranked in (False, True):
            plain = f"{name}_reranker" if reranked else name
            prompt = f"classic_rag_{ranking}"
            found[f"{plain}_grep"] = Variant(prompt, ("KB_search", "grep"), ranking=ranking, reranked=reranked)
            found[plain] = Variant(f"{prompt}_no_grep", ("KB_search",), ranking=ranking, reranked=reranked)
    return found


_ALL_TOOLS = ("KB_search_bm25", "KB_search_dense", "shell")
VARIANTS: Mapping[str, Variant] = {
    "no_knowledge": Variant("no_knowledge"),
    "full_kb": Variant("full_kb", inlined="all"),
    "golden_retrieval": Variant("required_docs", inlined="required"),
    **_searching(),
    "grep_only": Variant("grep_only", ("grep",)),
    "terminal_use": Variant("agentic_search", ("shell",)),
    "terminal_use_write": Variant("agentic_search_write", ("shell",), writes=True),
    "alltools": Variant("all_tools", _ALL_TOOLS, ranking="openai"),
    "alltools-qwen": Variant("all_tools", _ALL_TOOLS, ranking="qwen"),
}
"""All of TAU2's (1.0.1)."""

_ALIASES = {"AllTools": "alltools"}

DEFAULT = "bm25_grep"
"""TAU2's own default, "alltools", needs an embedding service and a shell."""

EMBEDDINGS: Mapping[str, EndpointSettings] = {
    "openai": EndpointSettings("text-embedding-3-large", temperature=None),
    "qwen": EndpointSettings(
        "qwen/qwen3-embedding-8b",
        base_url="https://openrouter.ai/api/v1",
        api_key_env="OPENROUTER_API_KEY",
        temperature=None,
    ),
}
"""The models that TAU2 embeds with, and whom it asks."""

RERANKER = EndpointSettings(
    "gpt-5.2", temperature=None, extra={"reasoning_effort": "low", "response_format": RATING_FORMAT}
)
"""The model that rates documents in TAU2."""

LEAST_RATING = 5
"""TAU2's: documents with a lower rating are left out."""

_DENSE = {
    "openai": "The `KB_search_dense` tool uses **OpenAI API** with embedding model `text-embedding-3-large` for dense "
    "retrieval.",
    "qwen": "The `KB_search_dense` tool uses **OpenRouter** with embedding model `qwen3-embedding-8b` for dense "
    "retrieval.",
}
"""What alltools' policy says of its search (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research)."""


def variant(name: str) -> Variant:
    """A variant by TAU2's name. ConfigError if TAU2 has none of that name."""
    found = VARIANTS.get(_ALIASES.get(name, name))
    if found is None:
        raise ConfigError(f"retrieval: must be one of {', '.join(VARIANTS)}, not {name!r}")
    return found


def policy(chosen: Variant, read: ReadPrompt, knowledge: Callable[[], Knowledge], required: Sequence[str] = ()) -> str:
    """A variant's policy, put together as TAU2 does.

    ``read``: the text of a file of the prompts' folder. ``required``: ids or titles of the documents that the task
    needs, for the variant that inlines them; DataError names one that does not exist.
    """

    def component(found: re.Match[str]) -> str:
        return read(f"components/{found.group(1)}.md")

    text = re.sub(r"\{\{component:(\w+)\}\}", component, read(f"{chosen.prompt}.md"))
    if chosen.inlined == "all":
        text = text.replace("{{full_knowledge_base}}", _laid_out(knowledge().documents))
    elif chosen.inlined == "required":
        find = knowledge().find
        found = [(reference, find(reference)) for reference in required]
        for reference, document in found:
            if document is None:
                raise DataError(f"there is no document {reference!r}")
        documents = [document for _, document in found if document is not None]
        text = text.replace("{{required_documents}}", _laid_out(documents) or "(No documents provided)")
    if "KB_search_dense" in chosen.tools:
        text = text.replace("{{all_tools_dense_instructions}}", _DENSE[str(chosen.ranking)])
    return text


def _laid_out(documents: Sequence[Document]) -> str:
    return "\n\n---\n\n".join(f"## {d.title}\n\n{d.content}" for d in documents)
