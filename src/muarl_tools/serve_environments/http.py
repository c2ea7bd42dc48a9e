"""Environments on a socket: their own token and names, idle sessions that expire, an end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import Access
from muarl.basics.web.server import WebServer
from muarl_tools.serve_environments.app import OPEN, make_app
from muarl_tools.serve_environments.service import EnvironmentService


class EnvironmentServer(WebServer):
    """Serves an ``EnvironmentService`` over HTTP. It listens as soon as it is made; ``run`` answers.

    ``grace``: seconds that running conversations have to finish once the server is told to end. ``names``: further
    names by which clients may call it. ``body``: most bytes of a request.
    """

    def __init__(
        self,
        service: EnvironmentService,
        listener: socket.socket,
        *,
        host: str = "127.0.0.1",
        token: str,
        grace: float = 30.0,
        names: tuple[str, ...] = (),
        body: int = 16 << 20,
    ) -> None:
        self.service = service
        where = ServerAddress(host, int(listener.getsockname()[1]), names)
        access = Access(where, token, open=OPEN, body=body)
        super().__init__(make_app(service, access), listener, where, name="muarl env serve", grace=grace)

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop``; with ``signals``, also until SIGTERM or SIGINT. A second signal does not wait."""
        reaper = asyncio.ensure_future(self._expire())
        try:
            await super().run(signals=signals)
        finally:
            reaper.cancel()
            await self.service.aclose()

    def ending(self) -> None:
        """Begin no new conversation."""
        self.service.room.stopping = True

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(max(1.0, min(self.service.sessions.idle / 4, 30.0)))
            with contextlib.suppress(Exception):  # a world that cannot be closed must not keep the others open
                await self.service.expire()
