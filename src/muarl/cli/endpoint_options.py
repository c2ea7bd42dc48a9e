"""Options that name a model behind an endpoint, and its prices, as settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def endpoint_settings(section: str, spec: str) -> Iterator[tuple[str, Any]]:
    """Settings for a section that describes a model, from endpoint:MODEL or endpoint:MODEL@URL."""
    from muarl.endpoints.config import parse_endpoint

    found = parse_endpoint(spec)
    yield f"{section}.model", found.model
    if found.base_url is not None:
        yield f"{section}.base_url", found.base_url


def prices_of(given: Sequence[str] | None) -> dict[str, list[float]] | None:
    """The setting ``eval.prices`` of MODEL=IN/OUT options; None if there are none. ConfigError for another form."""
    return dict(map(_price, given)) if given else None


def _price(text: str) -> tuple[str, list[float]]:
    from muarl.basics.errors import ConfigError

    model, equals, figures = text.rpartition("=")
    try:
        prompt, completion = map(float, figures.split("/"))
    except ValueError:
        equals = ""
    if not equals or not model:
        raise ConfigError(f"--price: {text!r} must look like MODEL=2/8, dollars for a million tokens in and out")
    return model, [prompt, completion]
