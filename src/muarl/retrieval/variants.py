"""How an agent may look into documents: TAU2's retrieval variants, their search tools and the models that they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from muarl.basics.errors import ConfigError
from muarl.endpoints.config import EndpointSettings
from muarl.retrieval.reranking import RATING_FORMAT

Ranking = Literal["bm25", "openai", "qwen"]


@dataclass(frozen=True)
class Variant:
    """A retrieval variant."""

    prompt: str
    """Its template's name."""
    tools: tuple[str, ...] = ()
    """Its search tools."""
    inlined: str | None = None
    """Which documents stand in the policy itself, "all", "required" (the task's) or None."""
    ranking: Ranking | None = None
    """How ``KB_search`` (in alltools ``KB_search_dense``) ranks documents: BM25, or the embeddings of one of
    ``EMBEDDINGS``."""
    reranked: bool = False
    """Whether a model then rates them."""
    writes: bool = False
    """Whether the shell may write."""

    @property
    def embeds(self) -> bool:
        """Whether it needs an embedding model."""
        return self.ranking in EMBEDDINGS


def _searching() -> dict[str, Variant]:
    """KB_search by each ranking, with and without reranking and grep."""
    variants: dict[str, Variant] = {}
    rankings: Mapping[str, Ranking] = {"qwen_embeddings": "qwen", "openai_embeddings": "openai", "bm25": "bm25"}
    for name, ranking in rankings.items():
        for reranked in (False, True):
            plain = f"{name}_reranker" if reranked else name
            prompt = f"classic_rag_{ranking}"
            variants[f"{plain}_grep"] = Variant(prompt, ("KB_search", "grep"), ranking=ranking, reranked=reranked)
            variants[plain] = Variant(f"{prompt}_no_grep", ("KB_search",), ranking=ranking, reranked=reranked)
    return variants


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


def variant(name: str) -> Variant:
    """A variant by TAU2's name. ConfigError if TAU2 has none of that name."""
    match = VARIANTS.get(_ALIASES.get(name, name))
    if match is None:
        raise ConfigError(f"retrieval: must be one of {', '.join(VARIANTS)}, not {name!r}")
    return match
