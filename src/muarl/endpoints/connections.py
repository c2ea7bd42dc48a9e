"""HTTP connections that many endpoints share: opening a client of one's own for each costs 20 ms of a CPU."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from openai import AsyncOpenAI

POOL = 32
"""Clients of one pool that are lent at once: for every request a pool looks at all of its connections, so that one pool
for a thousand would cost more than everything else."""


class Connections:
    """Connections of one event loop, to any number of servers, in as many pools as are needed at once. ``redirects``:
    whether they are followed; else an address leads to the server that it names."""

    def __init__(self, *, redirects: bool = False) -> None:
        self._redirects = redirects
        self._pools: list[_Pool] = []

    @contextmanager
    def client(self, url: str, key: str, timeout: float) -> Iterator[AsyncOpenAI]:
        """A client for this server, to be used within the block."""
        pool = next((pool for pool in self._pools if pool.lent < POOL), None)
        if pool is None:
            pool = _Pool(self._redirects)
            self._pools.append(pool)
        pool.lent += 1
        try:
            yield pool.client(url, key, timeout)
        finally:
            pool.lent -= 1

    async def aclose(self) -> None:
        """Close them all. They can be used again afterwards."""
        pools, self._pools = self._pools, []
        for pool in pools:
            await pool.base.close()

    def forget(self) -> None:
        """Let go of connections whose event loop is gone."""
        self._pools = []


class _Pool:
    def __init__(self, redirects: bool) -> None:
        import openai  # slow to import, and many runs need no endpoint

        self.lent = 0
        # No limit of its own: the endpoints' are lower.
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(max_connections=None, max_keepalive_connections=None)
        http = openai.DefaultAsyncHttpxClient(limits=limits, follow_redirects=redirects)
        self.base = openai.AsyncOpenAI(api_key="none", base_url="http://localhost/v1", max_retries=0, http_client=http)
        self.client = lru_cache(maxsize=64)(self._client)

    def _client(self, url: str, key: str, timeout: float) -> AsyncOpenAI:
        return self.base.with_options(api_key=key, base_url=url, timeout=timeout)


class _Shared(Connections):
    users = 0


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
