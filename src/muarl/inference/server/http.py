"""Where the server listens and how it ends: a socket of its own, a token, signals, a last chance for what is under way.

By default only this machine can reach it, and even there a token is needed: other people may have accounts on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from muarl.inference.server.addresses import listen as listen
from muarl.inference.server.addresses import save_token as save_token
from muarl.inference.server.addresses import token_for as token_for
from muarl.inference.server.app import Access, make_app
from muarl.inference.server.service import ChatService
from muarl.keys import is_loopback
from muarl.untrusted import host_of

log = logging.getLogger(__name__)

PORT = 8476
HEAD_SECONDS = 20.0
"""A client may take so long to send a request's head."""
IDLE_SECONDS = 75
"""A connection without a request is kept so long; clients keep theirs for less."""
LAST_SECONDS = 5.0
"""After ``grace``, what was ended has so long to say so."""


class ChatServer:
    """Serves a ``ChatService`` over HTTP. It listens as soon as it is made; ``run`` answers.

    ``grace``: seconds that requests under way have to finish once the server is told to end. ``names``: further names
    by which clients may call it.
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
        self.service, self.host, self.grace = service, host, grace
        self.port = int(listener.getsockname()[1])
        self.loopback = is_loopback(host)
        self._names = {n.lower() for n in (*names, host, socket.gethostname())}
        self._listener = listener
        app = make_app(service, Access(token, self.knows, self.loopback, body))
        self._server = _Server(
            uvicorn.Config(
                app, http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
                timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=int(grace + LAST_SECONDS),
            )
        )  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None
        self._killer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The API's root, as clients want it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
            self.host, f"[{self.host}]" if ":" in self.host else self.host
        )
        return f"http://{host}:{self.port}/v1"

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server: by loopback or, where others can reach it, by an address (which
        nobody can point elsewhere) or one of its names. The port does not matter: it may be forwarded."""
        found = host_of(host)
        if found is None:
            return False
        name = found[0]
        if name in ("127.0.0.1", "localhost", "::1"):
            return True
        if self.loopback:
            return name == self.host.lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop``; with ``signals``, also until SIGTERM or SIGINT. A second signal does not wait."""
        self._loop = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._stop)
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            if self._killer is not None:
                self._killer.cancel()
            if signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._loop.remove_signal_handler(number)
            self._listener.close()
            self.service.engine.close()

    def stop(self) -> None:
        """End, from any thread: accept nothing new, let what is under way finish within ``grace``."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        engine = self.service.engine
        if self._server.should_exit:
            engine.abort()
            self._server.force_exit = True
            return
        engine.stopping = True
        self._server.should_exit = True
        self._killer = asyncio.get_running_loop().call_later(self.grace, engine.abort)

    # ---- for tests and programs that serve beside what else they do

    def start(self) -> ChatServer:
        """Serve in a thread of its own, until ``close``."""
        ready = threading.Event()

        def work() -> None:
            async def serve() -> None:
                asyncio.get_running_loop().call_soon(ready.set)
                await self.run()

            asyncio.run(serve())

        self._thread = threading.Thread(target=work, name="muarl serve", daemon=True)
        self._thread.start()
        ready.wait(30)
        return self

    def close(self) -> None:
        """End the thread; waits for it."""
        self.stop()
        if self._thread is not None:
            self._thread.join(self.grace + 2 * LAST_SECONDS)


class _Server(uvicorn.Server):
    """uvicorn's, but what signals mean is ours to say."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(H11Protocol):
    """uvicorn's, which cuts off clients that begin a request's head and do not end it."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()
