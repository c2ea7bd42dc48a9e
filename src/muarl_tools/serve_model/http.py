"""The chat service on a socket: its own token and names, and a last chance for running completions.

By default only this machine can reach it, and even there a token is needed: other people may have accounts on it.
"""

from __future__ import annotations

import socket

from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import Access
from muarl.basics.web.server import WebServer
from muarl_tools.serve_model.app import OPEN, make_app
from muarl_tools.serve_model.service import ChatService


class ChatServer(WebServer):
    """Serves a ``ChatService`` over HTTP. It listens as soon as it is made; ``run`` answers.

    ``grace``: seconds that running requests have to finish once the server is told to end. ``names``: further names
    by which clients may call it. ``body``: most bytes of a request.
    """

    def __init__(
        self,
        service: ChatService,
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
        access = Access(where, token, open=OPEN if where.loopback else OPEN[:1], body=body)
        super().__init__(make_app(service, access), listener, where, name="muarl serve", grace=grace)

    @property
    def address(self) -> str:
        """The API's root, as clients want it."""
        return f"{self.where.url}/v1"

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop``; with ``signals``, also until SIGTERM or SIGINT. A second signal does not wait."""
        try:
            await super().run(signals=signals)
        finally:
            self.service.engine.close()

    def ending(self) -> None:
        """Answer no new request."""
        self.service.engine.stopping = True

    def abort(self) -> None:
        """End the running completions."""
        self.service.engine.abort()
