"""Which server and model an endpoint is, and how ``endpoint:MODEL@URL`` says so."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from muarl.basics.errors import ConfigError
from muarl.basics.untrusted import parse_json

DEFAULT_BASE_URL = "https://api.openai.com/v1"
USUAL_KEY = "OPENAI_API_KEY"
"""The variable with the key, where nothing names another."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million prompt tokens and a million completion tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Which server and model, and how to treat them. Holds no secret."""

    model: str
    base_url: str | None = None
    """The API's root, usually ending in ``/v1``; None takes OPENAI_BASE_URL, else OpenAI's own."""
    api_key_env: str = USUAL_KEY
    """Name of the environment variable with the key; empty: no key is sent."""
    temperature: float | None = 0.0
    """For requests that do not set their own; None leaves it to the server."""
    top_p: float | None = None
    """For requests that do not set their own; None leaves it to the server."""
    max_tokens: int | None = None
    """For requests that do not set their own; None leaves it to the server."""
    concurrency: int = 16
    """Requests in flight at once, waits for a retry included."""
    timeout: float = 90.0
    """Seconds for one attempt."""
    deadline: float = 300.0
    """Seconds for a request with all its retries, not counting the wait for a free slot."""
    attempts: int = 6
    """How often a request is sent at most."""
    backoff: float = 1.0
    """Seconds before the first retry, doubled for each further one."""
    max_backoff: float = 30.0
    """Seconds before a retry at most."""
    price: Price | None = None
    """None means unknown, and costs then count as 0."""
    cache: Path | None = None
    """A folder of stored responses, keyed by the request; give requests a seed if you use it at a temperature."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request body, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``."""
    verbatim: bool = False
    """What the model said in a conversation goes back to it as the server said it, its thinking and further fields
    included, so that a server which keeps the tokens of a conversation finds them; else in muarl's own form."""

    def __post_init__(self) -> None:
        if not self.model or self.model != self.model.strip():
            raise ConfigError(f"endpoint: {self.model!r} is no model name; write endpoint:MODEL or endpoint:MODEL@URL")
        if self.base_url is None:
            _check_name(self.model)
        else:
            check_url(self.base_url)
        for name in ("concurrency", "timeout", "deadline", "attempts"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"endpoint {self.model}: {name} must be above 0, not {getattr(self, name)!r}")

    @property
    def url(self) -> str:
        """The API root that requests go to, without a trailing slash."""
        url = self.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
        return check_url(url).rstrip("/")


_PORT = re.compile(r"[\w.-]+:\d{1,5}|\[[\da-f:.]+\](:\d{1,5})?", re.IGNORECASE)
_NAME = re.compile(r"localhost|(\d{1,3}\.){3}\d{1,3}|([\w-]+\.)+[a-z]{2,}", re.IGNORECASE)


def _check_name(model: str) -> None:
    """ConfigError if a model's name ends in what must be meant as an address: the request would go elsewhere.

    Names of models may hold an @ themselves (``@cf/meta/llama-3.1-8b``, ``name@2024-05``, ``name@v1.5``).
    """
    _, at, rest = model.rpartition("@")
    host = rest.split("/")[0]
    if not at:
        return
    if rest.lower().startswith(("http:", "https:")):
        raise ConfigError(f"endpoint: {rest!r} is no address; write it as http://HOST:PORT/v1 or https://HOST/v1")
    if _PORT.fullmatch(host) or _NAME.fullmatch(host):
        raise ConfigError(
            f"endpoint: the address {rest!r} lacks its http:// or https://; write http://{host}/v1 (or, if this is "
            "part of the model's name, say the address as well)"
        )


def check_url(url: str) -> str:
    """The URL itself. ConfigError if it is no plain http(s) address, or holds credentials, which logs would show."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() or c in "\\#" for c in url):
        raise ConfigError("endpoint: the base URL must look like http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise ConfigError("endpoint: the base URL may hold no key or password; the key goes into the environment")
    return url


def parse_endpoint(
    spec: str, *, prices: Mapping[str, Price | Mapping[str, float]] | None = None, **options: Any
) -> EndpointSettings:
    """Read ``endpoint:MODEL`` or ``endpoint:MODEL@http://HOST:PORT/v1``; ``options`` are fields of EndpointConfig.

    More than that is said as JSON, with the keys of a configuration's endpoint sections:
    ``endpoint:{"model": "MODEL", "extra": {...}}``.

    ``prices`` maps model names to dollars per million tokens: ``{"gpt-x": {"prompt": 2.0, "completion": 8.0}}``.
    ConfigError if the text has another form.
    """
    kind, colon, rest = spec.partition(":")
    if kind != "endpoint" or not colon:
        raise ConfigError(f"{spec!r} is no endpoint; write endpoint:MODEL or endpoint:MODEL@http://HOST:PORT/v1")
    if rest.startswith("{"):
        try:
            fields = parse_json(rest)
        except ValueError as problem:
            raise ConfigError(f"{spec!r}: what follows endpoint: is no JSON object: {problem}") from None
        try:
            return endpoint_config({**options, **fields})
        except (TypeError, ValueError) as problem:
            raise ConfigError(f"{spec!r}: a value is of another kind than its key wants: {problem}") from None
    # Model names may hold an @ themselves, so only one that a URL follows separates.
    cut = max(rest.rfind("@http://"), rest.rfind("@https://"))
    model, url = (rest[:cut], rest[cut + 1 :]) if cut >= 0 else (rest, None)
    price = (prices or {}).get(model)
    if price is not None and not isinstance(price, Price):
        try:
            price = Price(prompt=float(price["prompt"]), completion=float(price["completion"]))
        except (KeyError, TypeError, ValueError):
            raise ConfigError(f"prices.{model}: give prompt and completion in dollars per million tokens") from None
    if price is not None:
        options.setdefault("price", price)
    return EndpointSettings(model=model, base_url=options.pop("base_url", None) if url is None else url, **options)


def endpoint_config(fields: Mapping[str, Any]) -> EndpointSettings:
    """The settings that a configuration's endpoint section makes; what it leaves out has the defaults above.

    ConfigError names a key that there is not.
    """
    names = {name for name in EndpointSettings.__dataclass_fields__ if name not in ("cache", "price")}
    prices = {"prompt_price", "completion_price"}
    for name in fields:
        if name not in names | prices | {"price"}:
            raise ConfigError(f"endpoint: there is no key {name!r}; known: {', '.join(sorted(names | prices))}")
    if not isinstance(fields.get("model"), str):
        raise ConfigError("endpoint: the key model must name the model")
    options = {name: value for name, value in fields.items() if name in names}
    price = fields.get("price")
    if any(fields.get(name) for name in prices):
        price = Price(float(fields.get("prompt_price") or 0), float(fields.get("completion_price") or 0))
    return EndpointSettings(**options, price=price)
