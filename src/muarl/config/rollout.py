"""The sections of a run configuration about how episodes are played: how long they may become, how many are played at
once, and how agents find documents in domains that have some to search.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from muarl.config.section import EndpointConfig, Positive, Section


class RolloutConfig(Section):
    """How episodes are played, by every command: in training, demonstrations, evaluation, chat and red teaming."""

    max_turns: Positive = Field(
        30,
        description="Maximum agent turns; then `max_turns`. At least 100 on TAU2's own tasks; BFCL and ACEBench "
        "have their own.",
    )
    tokens_per_turn: Positive = Field(256, description="Maximum tokens of one agent turn; then `turn_length`.")
    max_tool_errors: Positive = Field(10, description="Tool errors after which an episode ends with `tool_errors`.")
    concurrency: Positive = Field(256, description="Maximum concurrent episodes.")


class RetrievalConfig(Section):
    """How agents find documents, in domains with documents to search."""

    variant: str | None = Field(
        None,
        max_length=60,
        description="Search tools and their policy, by TAU2's names: `bm25_grep`, `bm25`, `grep_only`, "
        "`no_knowledge`, `full_kb`, `golden_retrieval`, `openai_embeddings`, `qwen_embeddings`; "
        "`bm25` and the embeddings also with `_reranker`, `_grep` or `_reranker_grep`; with a shell "
        "`terminal_use`, `terminal_use_write`, `alltools`, `alltools-qwen`. null: the domain's own. "
        "Only TAU2's bank can do without `KB_search` and `grep`.",
    )
    top_k: Positive = Field(
        10,
        description="Maximum documents of a search. 10: the domain's own number.",
    )
    grep_top_k: Positive = Field(10, description="The same of `grep`.")
    case_sensitive: bool = Field(False, description="Whether case counts in `grep`.")
    embedding_endpoint: EndpointConfig | None = Field(
        None,
        description="Embedding model (`/v1/embeddings`); null: TAU2's (`text-embedding-3-large` at OpenAI, "
        "`qwen/qwen3-embedding-8b` at OpenRouter).",
    )
    embedding_checkpoint: Path | None = Field(
        None,
        description="Folder with an embedding model to run here instead (`muarl[train]`), or `hashed`: hashes of "
        "words, for trying things out.",
    )
    pooling: Literal["mean", "first", "last"] = Field(
        "mean",
        description="Of `embedding_checkpoint`: which last hidden states make the vector (Qwen3-Embedding: `last`).",
    )
    query_prefix: str = Field("", description="Of `embedding_checkpoint`: text before a query.")
    document_prefix: str = Field("", description="Text before a document.")
    reranker_endpoint: EndpointConfig | None = Field(
        None, description="The reranking model; null: TAU2's (`gpt-5.2` at OpenAI)."
    )
    reranker_kind: Literal["rating", "rerank"] = Field(
        "rating",
        description="A language model that rates documents from 0 to 10, or a model behind `/v1/rerank`.",
    )
    reranker_min_score: int = Field(5, ge=0, le=10, description="Under `rating`: lower ratings are left out.")
    cache: Path | None = Field(
        None, description="Where embeddings of documents are kept; null: with the installed benchmark data."
    )

    @model_validator(mode="after")
    def _endpoints_name_models(self) -> RetrievalConfig:
        for name in ("embedding_endpoint", "reranker_endpoint"):
            section = getattr(self, name)
            if section is not None and not section.model:
                raise ValueError(f"{name}.model must name the model")
        if self.embedding_endpoint is not None and self.embedding_checkpoint is not None:
            raise ValueError("embedding_endpoint and embedding_checkpoint: give one of them")
        if self.reranker_kind == "rerank" and self.reranker_endpoint is None:
            raise ValueError("reranker_kind is rerank, so reranker_endpoint.model must name the reranking model")
        return self

    @property
    def asked(self) -> bool:
        """Whether anything differs from the defaults."""
        return self != RetrievalConfig()
