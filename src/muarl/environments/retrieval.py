"""Domains whose documents are searched as the configuration's section ``retrieval`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from muarl.basics.errors import ConfigError
from muarl.basics.folders import home
from muarl.config.rollout import RetrievalConfig
from muarl.config.section import EndpointConfig
from muarl.domains.base import Domain

if TYPE_CHECKING:  # what searches is imported where a configuration asks for a search: few environments have documents
    from muarl.endpoints.config import EndpointSettings
    from muarl.retrieval.documents import Document
    from muarl.retrieval.embeddings import Embedder
    from muarl.retrieval.reranking import Reranker


@runtime_checkable
class SearchedDomain(Protocol):
    """A domain with documents."""

    def with_retrieval(self, retrieval: str | None = None, **options: Any) -> Domain:
        """The same domain, searched in another way: a variant's name, and ``top_k``, ``grep_top_k``,
        ``case_sensitive``, ``embedder``, ``reranker``, ``reranker_min_score``, ``embedding_cache``."""


def searched(domain: Domain, config: RetrievalConfig | None) -> Domain:
    """A domain, searched as a configuration says. ConfigError if it has no documents, or not that way."""
    if config is None or not config.asked:
        return domain
    if not isinstance(domain, SearchedDomain):
        raise ConfigError(f"retrieval: {domain.name} has no documents to search; leave the section out")
    from muarl.retrieval.embeddings import EmbeddingCache

    try:
        return domain.with_retrieval(
            config.variant,
            **_plain(config),
            embedder=_embedder(config),
            reranker=_reranker(config),
            reranker_min_score=None if config.reranker_kind == "rerank" else config.reranker_min_score,
            embedding_cache=EmbeddingCache(cache_folder(config)),
        )
    except ConfigError as problem:
        raise ConfigError(f"retrieval.variant: {str(problem).removeprefix('retrieval: ')}") from None


def _plain(config: RetrievalConfig) -> dict[str, Any]:
    """The options that are no models; what is as by default is left to the domain."""
    return {name: getattr(config, name) for name, usual in _USUAL.items() if getattr(config, name) != usual}


_USUAL = {name: getattr(RetrievalConfig(), name) for name in ("top_k", "grep_top_k", "case_sensitive")}


class _AsFound:
    """Stands in for a reranker where none may be asked: what was found stays as it is."""

    async def scores(self, query: str, documents: Sequence[Document]) -> Sequence[float | None]:
        return [0.0] * len(documents)

    async def aclose(self) -> None:
        """There are no connections."""


def as_recorded(domain: Domain, config: Mapping[str, Any]) -> Domain:
    """A domain with the search tools that a run's configuration names, for running its episodes again: no model is
    asked, so that what searches by models find may be something else."""
    section = config.get("retrieval")
    if not isinstance(section, Mapping) or not isinstance(domain, SearchedDomain):
        return domain
    from muarl.retrieval.embedders import HashedEmbedder

    options = {name: section[name] for name in ("variant", *_USUAL) if section.get(name) is not None}
    try:
        retrieval = RetrievalConfig.model_validate(options)
        if not retrieval.asked:
            return domain
        return domain.with_retrieval(
            retrieval.variant,
            **_plain(retrieval),
            embedder=HashedEmbedder(),
            reranker=_AsFound(),
            reranker_min_score=None,
        )
    except (ConfigError, ValueError):  # a variant of another muarl
        return domain


def with_models(config: RetrievalConfig) -> RetrievalConfig:
    """The section with the models that its variant asks of its own accord, so that they can be priced and asked."""
    from muarl.retrieval.variants import DEFAULT, EMBEDDINGS, RERANKER, VARIANTS

    chosen = VARIANTS.get(config.variant or DEFAULT)
    if chosen is None:
        return config
    update: dict[str, EndpointConfig] = {}
    if chosen.embeds and config.embedding_endpoint is None and config.embedding_checkpoint is None:
        update["embedding_endpoint"] = _section(EMBEDDINGS[str(chosen.ranking)])
    if chosen.reranked and config.reranker_endpoint is None:
        update["reranker_endpoint"] = _section(RERANKER)
    return config.model_copy(update=update) if update else config


def _section(settings: EndpointSettings) -> EndpointConfig:
    return EndpointConfig(
        model=settings.model,
        base_url=settings.base_url,
        api_key_env=settings.api_key_env,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        extra=dict(settings.extra),
    )


def models_of(config: RetrievalConfig) -> dict[str, EndpointConfig]:
    """The endpoints that searching asks, by the name of their section."""
    from muarl.retrieval.variants import DEFAULT, VARIANTS

    chosen, full = VARIANTS.get(config.variant or DEFAULT), with_models(config)
    sections = {"retrieval.embedding_endpoint": full.embedding_endpoint if chosen is None or chosen.embeds else None}
    sections["retrieval.reranker_endpoint"] = full.reranker_endpoint if chosen is None or chosen.reranked else None
    return {name: section for name, section in sections.items() if section is not None}


def cache_folder(config: RetrievalConfig) -> Path:
    """Where embeddings of documents are kept."""
    return home() / "embeddings" if config.cache is None else config.cache.expanduser()


def _settings(section: EndpointConfig) -> EndpointSettings:
    from muarl.endpoints.config import endpoint_config

    return replace(endpoint_config(section.model_dump()), temperature=section.temperature)


def _embedder(config: RetrievalConfig) -> Embedder | None:
    from muarl.endpoints.client import Endpoint
    from muarl.retrieval.embedders import EndpointEmbedder, HashedEmbedder, LocalEmbedder

    if config.embedding_endpoint is not None:
        return EndpointEmbedder(Endpoint(_settings(config.embedding_endpoint)))
    if config.embedding_checkpoint is None:
        return None
    if str(config.embedding_checkpoint) == "hashed":
        return HashedEmbedder()
    return LocalEmbedder(
        config.embedding_checkpoint.expanduser(),
        pooling=config.pooling,
        prefixes=(config.query_prefix, config.document_prefix),
    )


def _reranker(config: RetrievalConfig) -> Reranker | None:
    from muarl.endpoints.client import Endpoint
    from muarl.retrieval.reranking import RATING_FORMAT, EndpointReranker, RatingReranker

    if config.reranker_endpoint is None:
        return None
    settings = _settings(config.reranker_endpoint)
    if config.reranker_kind == "rerank":
        return EndpointReranker(Endpoint(settings))
    return RatingReranker(Endpoint(replace(settings, extra={"response_format": RATING_FORMAT, **settings.extra})))
