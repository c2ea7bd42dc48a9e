"""An ASGI application on a socket of its own: how it starts, how it ends, how long clients may take."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import Access

HEAD_SECONDS = 20.0
"""A client may take so long to send a request's head."""
IDLE_SECONDS = 75
"""A connection without a request is kept so long; clients keep theirs for less."""
LAST_SECONDS = 5.0
"""After ``grace``, what was aborted has so long to say so."""

Service = TypeVar("Service")


class WebServer:
    """Serves an application on a listening socket; ``run`` answers.

    ``name``: of the thread that ``start`` makes. ``grace``: seconds that running requests have to finish once the
    server is told to end. Subclasses may say what ``ending`` and ``abort`` mean to their application.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        where: ServerAddress,
        *,
        name: str,
        grace: float = 0.0,
        lifespan: Literal["on", "off"] = "off",
    ) -> None:
        self.where, self.grace, self._name, self._listener = where, grace, name, listener
        self._server = _Server(
            uvicorn.Config(
                app, http=_Protocol, ws="none", lifespan=lifespan, log_config=None, log_level="error",
                access_log=False,  # addresses may hold a token
                server_header=False, timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=int(grace + LAST_SECONDS),
            )
        )  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None
        self._killer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.where.port

    @property
    def loopback(self) -> bool:
        """True if only this machine can reach it."""
        return self.where.loopback

    def ending(self) -> None:
        """The server was told to end, and accepts nothing new."""

    def abort(self) -> None:
        """The time for running requests is over."""

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop`` or until cancelled; with ``signals``, also until SIGTERM or SIGINT. A second signal does
        not wait."""
        self._loop = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._stop)
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._listener]))
        try:
            await asyncio.shield(serving)
        finally:
            if not serving.done():  # cancelled: end in good order, or the loop goes on with a socket that is closed
                self._server.should_exit = True
                await asyncio.wait([serving], timeout=LAST_SECONDS)
            if self._killer is not None:
                self._killer.cancel()
            if signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._loop.remove_signal_handler(number)
            self._listener.close()

    def stop(self) -> None:
        """End, from any thread: accept nothing new, let running requests finish within ``grace``."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._server.should_exit:
            self.abort()
            self._server.force_exit = True
            return
        self.ending()
        self._server.should_exit = True
        self._killer = asyncio.get_running_loop().call_later(self.grace, self.abort)

    # ---- for tests and programs that serve beside what else they do

    def start(self) -> Self:
        """Serve in a thread of its own, until ``close``."""
        ready = threading.Event()

        def work() -> None:
            async def serve() -> None:
                asyncio.get_running_loop().call_soon(ready.set)
                await self.run()

            asyncio.run(serve())

        self._thread = threading.Thread(target=work, name=self._name, daemon=True)
        self._thread.start()
        ready.wait(30)
        return self

    def close(self) -> None:
        """End the thread, if there is one; waits for it. Frees the address."""
        self.stop()
        if self._thread is not None:
            self._thread.join(self.grace + 2 * LAST_SECONDS)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ServiceServer(WebServer, Generic[Service]):
    """Serves a service over HTTP, behind a guard. It listens as soon as it is made; ``run`` answers.

    ``grace``: seconds that running requests have to finish once the server is told to end. ``names``: further names
    by which clients may call it. ``body``: most bytes of a request. Subclasses say the program's ``name``, the ``root``
    of the API's paths, the ``application``, and which paths are ``open`` without a token.
    """

    name: ClassVar[str]
    root: ClassVar[str] = ""

    def __init__(
        self,
        service: Service,
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
        app = self.application(Access(where, token, open=self.open(where), body=body))
        super().__init__(app, listener, where, name=self.name, grace=grace)

    def application(self, access: Access) -> ASGIApp:
        """The service's paths behind a guard."""
        raise NotImplementedError

    def open(self, where: ServerAddress) -> tuple[str, ...]:
        """The paths that need no token."""
        return ("/health",)

    @property
    def address(self) -> str:
        """The API's root, as clients want it."""
        return self.where.url + self.root


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
