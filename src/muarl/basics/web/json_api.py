"""What servers of JSON share: requests that are not answered, in the shape that OpenAI's clients know, and clients who
go away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muarl.basics.web.guard import Refusal

T = TypeVar("T")


class ApiError(Exception):
    """A request that is not answered.

    ``status``: of HTTP. ``kind`` and ``code``: OpenAI's "type" and "code". ``param``: the field that is to blame.
    ``retry_after``: seconds after which to try again.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.kind, self.code, self.param = kind, code, param
        self.retry_after = retry_after

    def to_json(self) -> dict[str, Any]:
        """The body: {"error": {...}}."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with it."""
        out = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        return out if self.retry_after is None else out | {"retry-after": str(self.retry_after)}

    def response(self) -> Response:
        """The answer."""
        return json_response(self.to_json(), self.status, self.headers)


def invalid(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """400: this request can never be answered."""
    return ApiError(400, f"{param}: {message}" if param else message, param=param, code=code)


def busy() -> ApiError:
    """429: the queue is full."""
    return ApiError(
        429,
        "Too many concurrent requests; try again shortly.",
        kind="requests",
        code="rate_limit_exceeded",
        retry_after=1,
    )


def stopping() -> ApiError:
    """503: the server is about to end."""
    return ApiError(
        503, "The server is shutting down.", kind="service_unavailable_error", code="shutting_down", retry_after=5
    )


def failed(reason: str) -> ApiError:
    """500: this server, or what it serves, is at fault."""
    return ApiError(500, reason, kind="server_error", code="internal_error")


def defect(problem: BaseException) -> ApiError:
    """500: what nobody expected. Its text may hold anything, so only its kind is told."""
    return failed(f"This is a defect of the server: {type(problem).__name__}")


def to_bytes(data: Any) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def json_response(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer of JSON."""
    return Response(to_bytes(data), status, headers, media_type="application/json")


def refused(refusal: Refusal) -> Response:
    """What the guard refuses, in the same shape."""
    said, code = refusal.message, refusal.code
    if refusal.status == 401:
        said, code = f"{said.removesuffix('.')}: send it as the API key.", "invalid_api_key"
    return json_response(ApiError(refusal.status, said, code=code).to_json(), refusal.status, refusal.headers)


def exception_handlers(unknown_path: str) -> dict[Any, Any]:
    """What a Starlette application answers to exceptions. ``unknown_path``: what to say of a path that there is not."""

    async def api_error(request: Request, problem: Exception) -> Response:
        assert isinstance(problem, ApiError)
        return problem.response()

    async def http_error(request: Request, problem: Exception) -> Response:
        """Starlette's own: no such path, no such method."""
        assert isinstance(problem, HTTPException)
        said = unknown_path if problem.status_code == 404 else problem.detail
        error = ApiError(problem.status_code, said)
        return json_response(error.to_json(), error.status, dict(problem.headers or {}))

    async def gone(request: Request, problem: Exception) -> Response:
        return Response(status_code=499)  # nobody reads it

    async def unexpected(request: Request, problem: Exception) -> Response:
        return defect(problem).response()

    return {ApiError: api_error, HTTPException: http_error, ClientDisconnect: gone, Exception: unexpected}


# ── clients who go away ──────────────────────────────────────────────────────────────────────────────────────────────


TURNS = 5
"""Turns of the event loop in which a connection that has been closed is noticed."""


async def unless_gone(
    request: Request, work: Awaitable[T], *, undo: Callable[[T], Awaitable[object]] | None = None
) -> T:
    """The work's result; ClientDisconnect, and an end to the work, if the client goes away first. The request's body
    must have been read. ``undo``: takes back a result that comes when the client has gone."""
    gone = asyncio.ensure_future(disconnected(request))
    try:
        return await unless(gone, work, undo=undo)
    finally:
        gone.cancel()


async def unless(
    gone: asyncio.Future[None], work: Awaitable[T], *, undo: Callable[[T], Awaitable[object]] | None = None
) -> T:
    """The same, where ``gone`` says that the client has gone."""
    task = asyncio.ensure_future(work)
    try:
        both: set[asyncio.Future[Any]] = {gone, task}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if undo is None and task.done():
            return task.result()
        for _ in range(TURNS if task.done() else 0):
            await asyncio.sleep(0)
        if task.done() and not gone.done():
            return task.result()
        raise ClientDisconnect
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=5)
        if undo is not None and gone.done() and _succeeded(task):
            await undo(task.result())


def _succeeded(task: asyncio.Future[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def disconnected(request: Request) -> None:
    """Returns when the client has gone. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
