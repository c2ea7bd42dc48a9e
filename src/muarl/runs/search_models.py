"""The models that searching documents needs, asked before any work starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muarl.backends.models import make_endpoint
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.config import RunConfig
from muarl.environments.retrieval import models_of
from muarl.observe.progress import Progress

if TYPE_CHECKING:
    from muarl.endpoints import Endpoint


def ask_searching(config: RunConfig, bound: str | None = None) -> None:
    """Ask the models that searching documents needs one tiny question each. InfrastructureError (not retryable) names
    the section of one that does not answer. ``bound``: see ``check_counted``."""
    models = models_of(config.retrieval)
    if not models:
        return
    progress = Progress()
    with event_loop() as loop:
        for section, described in models.items():
            endpoint = make_endpoint(described)
            progress.say(f"{section}: {endpoint.about}")
            ranks = section.endswith("reranker_endpoint")
            rates = ranks and config.retrieval.reranker_kind == "rating"
            loop.run(_ask_searching(section, endpoint, "chat" if rates else "rerank" if ranks else "embed"))
            check_counted(section, endpoint, bound)


def check_counted(section: str, endpoint: Endpoint, bound: str | None) -> None:
    """ConfigError if an endpoint that has been asked did not say how many tokens its answer took, and ``bound``, a
    setting, needs to know it."""
    if bound is not None and endpoint.usage.uncounted:
        raise ConfigError(
            f"{bound}: {section}: the answers of {endpoint.model} do not say how many tokens they take (usage with "
            "prompt_tokens and completion_tokens), so that the bound cannot be kept. Let the server say it, or leave "
            f"{bound} out"
        )


async def _ask_searching(section: str, endpoint: Endpoint, how: str) -> None:
    try:
        if how == "chat":
            await endpoint.check(boundary="world")
        elif how == "rerank":
            await endpoint.rerank("ready", ["ready"])
        else:
            await endpoint.embed(["ready"])
    except InfrastructureError as problem:
        raise InfrastructureError(f"{section}: {problem}", boundary="world", retryable=False) from None
    finally:
        await endpoint.aclose()
