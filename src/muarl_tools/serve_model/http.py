"""The chat service over HTTP: the endpoints as an ASGI application, what becomes of clients who go away, and a socket
with its own token and names, and a last chance for running completions.

By default only this machine can reach it, and even there a token is needed: other people may have accounts on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import REQUEST_ID, Access, Guard
from muarl.basics.web.json_api import (
    ApiError,
    defect,
    disconnected,
    exception_handlers,
    json_response,
    refused,
    stopping,
    unless,
)
from muarl.basics.web.server import ServiceServer
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.service import ChatService

log = logging.getLogger(__name__)

Work = Callable[[bytes], Awaitable[dict[str, Any] | AsyncGenerator[bytes, None]]]


def make_app(service: ChatService, access: Access) -> ASGIApp:
    """The application: routes behind the guard."""

    async def health(request: Request) -> Response:
        return stopping().response() if service.engine.stopping else json_response({"status": "ok"})

    async def guard(request: Request) -> Response:
        if service.served.guard is None:
            raise ApiError(404, "This server has no guard; `muarl serve --guard DOMAIN` has one.", code="no_guard")
        return json_response(service.served.guard.to_json())

    async def models(request: Request) -> Response:
        return json_response(service.models())

    async def model(request: Request) -> Response:
        return json_response(service.model(request.path_params["name"]))

    async def chat(request: Request) -> Response:
        return await _Work(service.chat, await request.body()).begin(request)

    async def response(request: Request) -> Response:
        return await _Work(service.response, await request.body()).begin(request)

    async def text(request: Request) -> Response:
        return await _Work(service.text, await request.body()).begin(request)

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/guard", guard),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/responses", response, methods=["POST"]),
            Route("/v1/completions", text, methods=["POST"]),
        ],
        exception_handlers=exception_handlers("No such path; the API is under /v1."),
    )
    return Guard(app, access, refused)


class _Work:
    """One request's answer, which ends with the client's connection."""

    def __init__(self, work: Work, body: bytes) -> None:
        self._work, self._body = work, body

    async def begin(self, request: Request) -> Response:
        """The response: whole, or a stream whose first event is there. ApiError if there is none."""
        gone = asyncio.ensure_future(disconnected(request))
        try:
            answer = await unless(gone, self._work(self._body))
            if isinstance(answer, dict):
                return json_response(answer)
            try:
                first = await unless(gone, anext(answer))
            except BaseException:
                await answer.aclose()
                raise
            return _Stream(answer, first)
        finally:
            gone.cancel()


class _Stream(Response):
    """Server-sent events. Whoever goes away, or cannot be written to, ends the generation."""

    def __init__(self, events: AsyncGenerator[bytes, None], first: bytes) -> None:
        super().__init__(media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._first = events, first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.ensure_future(disconnected(Request(scope, receive)))
        try:
            with contextlib.suppress(ClientDisconnect):
                await unless(gone, self._send(send, scope.get(REQUEST_ID)))
        finally:
            gone.cancel()

    async def _send(self, send: Send, request_id: str | None) -> None:
        async def out(data: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        async with aclosing(self._events):
            await out(self._first)
            try:
                async for event in self._events:
                    await out(event)
            except ApiError as problem:
                log.warning("a stream broke off, request %s: %s", request_id, problem.message)
                await out(answers.event(problem.to_json()))
            except Exception as problem:
                log.exception("a stream broke off, request %s", request_id)
                await out(answers.event(defect(problem).to_json()))
            await out(b"", more=False)


class ChatServer(ServiceServer[ChatService]):
    """Serves a ``ChatService``; see ``ServiceServer``."""

    name = "muarl serve"
    root = "/v1"

    def application(self, access: Access) -> ASGIApp:
        """The paths behind the guard."""
        return make_app(self.service, access)

    def open(self, where: ServerAddress) -> tuple[str, ...]:
        """On loopback the names of models, too."""
        return ("/health", "/v1/models") if where.loopback else super().open(where)

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
