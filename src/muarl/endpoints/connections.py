"""HTTP connections that many endpoints share."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary, WeakSet

from muarl.basics.version import __version__
from muarl.endpoints.failures import HTTPStatusError

if TYPE_CHECKING:
    import aiohttp

KEPT = 4.0
"""Seconds that an idle connection is kept: shorter than servers usually keep it, so that none is used as it closes."""


class Connections:
    """Connections of one event loop, to any number of servers. ``redirects``: whether they are followed; else an
    address leads to the server that it names."""

    def __init__(self, *, redirects: bool = False) -> None:
        self._redirects = redirects
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, key: str, body: Mapping[str, Any]) -> bytes:
        """Send JSON; returns the body of a successful answer as it came. ``key``: sent as a bearer token unless empty.

        HTTPStatusError for any other answer, aiohttp.ClientError or OSError where none came. The time is not limited.
        """
        session = self._opened()
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        answer = await session.post(
            url,
            data=json.dumps(body).encode(),
            headers=headers,
            allow_redirects=self._redirects,
            proxy=_proxy(url),
        )
        async with answer:
            content = await answer.read()
            if not 200 <= answer.status < 300:
                raise HTTPStatusError(answer.status, answer.headers, content)
            return content

    async def aclose(self) -> None:
        """Close them all, in their event loop, or in another once that is closed. They can be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp  # slow to import, and many runs need no endpoint

            _opened_in.setdefault(asyncio.get_running_loop(), WeakSet()).add(self)
            self._session = aiohttp.ClientSession(
                # No limit of its own: the endpoints' are lower.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT, ssl=_trusted()),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"muarl/{__version__}", "Accept": "application/json"},
            )
        return self._session


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Certificates as other HTTP libraries take them: certifi's, or those of SSL_CERT_FILE and SSL_CERT_DIR."""
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)


@lru_cache(maxsize=256)
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address (HTTPS_PROXY, ALL_PROXY, NO_PROXY ...), if any."""
    parts, proxies = urlsplit(url), getproxies()
    if proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


class _Shared(Connections):
    users = 0


_opened_in: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Connections]] = WeakKeyDictionary()
_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


@asynccontextmanager
async def shared_connections() -> AsyncIterator[Connections]:
    """The connections that all who are within this block in the same event loop share; the last one closes them."""
    loop = asyncio.get_running_loop()
    shared = _of_loop.setdefault(loop, _Shared())
    shared.users += 1
    try:
        yield shared
    finally:
        shared.users -= 1
        if not shared.users:
            _of_loop.pop(loop, None)
            await shared.aclose()


async def close_all() -> None:
    """Close all connections that were opened in this event loop, for one that ends with the process. They can be used
    again afterwards."""
    for connections in list(_opened_in.get(asyncio.get_running_loop(), ())):
        await connections.aclose()
