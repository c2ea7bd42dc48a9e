"""The endpoints as an ASGI application: who may ask, how much, and what becomes of those who go away."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muarl.inference.server import answers
from muarl.inference.server.problems import ApiError, failed, stopping
from muarl.inference.server.service import ChatService

log = logging.getLogger(__name__)

BODY_SECONDS = 60.0
"""A client may take so long to send a request's body."""
OPEN = ("/health", "/v1/models")
"""What needs no token on loopback; beyond it, /health alone."""
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Work = Callable[[bytes], Awaitable[dict[str, Any] | AsyncGenerator[bytes, None]]]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask. ``token``: what clients must send. ``knows``: whether a Host header may name this server.
    ``loopback``: only this machine can reach it. ``body``: most bytes of a request."""

    token: str
    knows: Callable[[str], bool]
    loopback: bool
    body: int = 16 << 20


def make_app(service: ChatService, access: Access) -> ASGIApp:
    """The application: routes behind the guard."""

    async def health(request: Request) -> Response:
        return _reply(stopping()) if service.engine.stopping else _json({"status": "ok"})

    async def models(request: Request) -> Response:
        return _json(service.models())

    async def model(request: Request) -> Response:
        return _json(service.model(request.path_params["name"]))

    async def chat(request: Request) -> Response:
        return await _Work(service.chat, await _body(request, access.body)).begin(request)

    async def text(request: Request) -> Response:
        return await _Work(service.text, await _body(request, access.body)).begin(request)

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", text, methods=["POST"]),
        ],
        exception_handlers={
            ApiError: _api_error,
            HTTPException: _http_error,
            ClientDisconnect: _gone,
            Exception: _defect,
        },
    )
    return _Guard(app, access)


class _Guard:
    """Refuses, before anything is read: names that are not ours (pages of other sites, by way of names pointed at this
    machine), strangers, bodies that are too large."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._expected = f"Bearer {access.token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is not None:
            await _reply(problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _problem(self, scope: Scope) -> ApiError | None:
        headers = dict(scope["headers"])
        if not self._access.knows(headers.get(b"host", b"").decode("latin-1")):
            return ApiError(421, "This server is not known by that name.", code="unknown_host")
        is_open = scope["path"] in (OPEN if self._access.loopback else OPEN[:1])
        if not is_open and not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            return ApiError(
                401, "The server's token is missing or wrong: send it as the API key.", code="invalid_api_key"
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._access.body:
            return _large(self._access.body)
        return None


class _Work:
    """One request's answer, which ends with the client's connection."""

    def __init__(self, work: Work, body: bytes) -> None:
        self._work, self._body = work, body

    async def begin(self, request: Request) -> Response:
        """The response: whole, or a stream whose first event is there. ApiError if there is none."""
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            answer = await _unless(gone, self._work(self._body))
            if isinstance(answer, dict):
                return _json(answer)
            try:
                first = await _unless(gone, anext(answer))
            except BaseException:
                await answer.aclose()
                raise
            return _Stream(answer, first)
        finally:
            gone.cancel()


class _Stream(Response):
    """Server-sent events. Whoever goes away, or cannot be written to, ends the generation."""

    def __init__(self, events: AsyncGenerator[bytes, None], first: bytes) -> None:
        super().__init__(media_type="text/event-stream", headers={**NO_STORE, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._first = events, first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_disconnected(Request(scope, receive)))
        try:
            with contextlib.suppress(ClientDisconnect):
                await _unless(gone, self._send(send))
        finally:
            gone.cancel()

    async def _send(self, send: Send) -> None:
        async def out(data: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        async with aclosing(self._events):
            await out(self._first)
            try:
                async for event in self._events:
                    await out(event)
            except ApiError as problem:
                await out(answers.event(problem.to_json()))
            except Exception as problem:
                log.exception("a stream broke off")
                await out(answers.event(_unexpected(problem).to_json()))
            await out(b"", more=False)


async def _unless(gone: asyncio.Future[None], work: Awaitable[Any]) -> Any:
    """The work's result; ClientDisconnect, and an end to the work, if the client goes away first."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=5)


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request, most: int) -> bytes:
    """The request's body. ApiError if it is too large or does not come."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise _large(most)
    except TimeoutError:
        raise ApiError(408, f"The request's body did not come within {BODY_SECONDS:g} seconds.") from None
    return bytes(data)


def _large(most: int) -> ApiError:
    return ApiError(413, f"The request is larger than {most} bytes.", code="request_too_large")


def _json(data: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        answers.to_bytes(data), status, media_type="application/json", headers={**NO_STORE, **(headers or {})}
    )


def _reply(problem: ApiError) -> Response:
    headers = problem.headers
    if problem.status == 413:
        headers["connection"] = "close"  # the rest of the body is not read
    return _json(problem.to_json(), problem.status, headers)


async def _api_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ApiError)
    return _reply(problem)


async def _http_error(request: Request, problem: Exception) -> Response:
    """Starlette's own: no such path, no such method."""
    assert isinstance(problem, HTTPException)
    said = "No such path; the API is under /v1." if problem.status_code == 404 else problem.detail
    error = ApiError(problem.status_code, said)
    return _json(error.to_json(), error.status, dict(problem.headers or {}))


async def _gone(request: Request, problem: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _defect(request: Request, problem: Exception) -> Response:
    return _reply(_unexpected(problem))


def _unexpected(problem: Exception) -> ApiError:
    return failed(f"This is a defect of the server: {type(problem).__name__}")
