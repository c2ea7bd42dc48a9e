"""Which requests reach an application: the right Host, the token, no page of another site, a body within limits.

Other programs and other people on this machine are kept out by the token; web pages in a browser by the Host header
(against names that are pointed at this machine, "DNS rebinding") and the Origin header; no answer allows another site
to read it (CORS).

Every answer has a header ``x-request-id``, by which its request is found in the log.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muarl.basics.web.addresses import ServerAddress

log = logging.getLogger(__name__)

BODY_SECONDS = 60.0
"""A client may take so long to send a request's body."""
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
REQUEST_ID = "muarl.request_id"
"""Where a request's id lies in its ASGI scope."""
SHUTTING_DOWN = 503
"""The one status from 500 on that is no failure."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not passed on: HTTP status, a short name for programs, a sentence for people."""

    status: int
    code: str
    message: str

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with the status."""
        if self.status == 401:
            return {"www-authenticate": "Bearer"}
        return {"connection": "close"} if self.status in (408, 413) else {}  # the rest of the body is not read

    def as_text(self) -> Response:
        """The refusal as a line of text."""
        return PlainTextResponse(f"{self.message}\n", self.status, self.headers)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask, and how much."""

    where: ServerAddress
    token: str
    """Clients send it as a bearer token or, where ``cookie`` names one, as a cookie that a browser gets by opening any
    address with ?token=."""
    cookie: str = ""
    open: tuple[str, ...] = ()
    """Paths that need none."""
    body: int = 4 << 20
    """Most bytes of a request's body."""
    headers: Mapping[str, str] = field(default_factory=lambda: NO_STORE)
    """For every answer that does not set them itself."""


class Guard:
    """An ASGI application that passes on what ``access`` allows, with the body read whole. ``refused`` makes the answer
    to what it does not."""

    def __init__(self, app: ASGIApp, access: Access, refused: Callable[[Refusal], Response] = Refusal.as_text) -> None:
        self._app, self._access, self._refused = app, access, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, REQUEST_ID: f"req_{uuid.uuid4().hex}"}
        send = self._with_headers(send, scope)
        answer = self._instead(scope)
        if answer is None:
            body = await self._body(scope, receive)
            if body is None:
                return
            if isinstance(body, bytes):
                await self._app(scope, _replayed(body, receive), send)
                return
            answer = self._refused(body)
        await answer(scope, receive, send)

    def _instead(self, scope: Scope) -> Response | None:
        """What is answered in the application's place; None where the application answers."""
        access, headers = self._access, Headers(scope=scope)
        if not access.where.is_host(headers.get("host", "")):
            return self._refused(Refusal(421, "unknown_host", "This server is not known by that name."))
        if access.cookie:
            try:
                query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=40))
            except ValueError:
                return self._refused(Refusal(400, "bad_address", "The address is malformed."))
            if "token" in query:
                return self._enter(scope, query)
        if scope["path"] not in access.open and not self._has_token(headers):
            return self._refused(Refusal(401, "no_token", "The server's token is missing or wrong."))
        origin = headers.get("origin")
        if origin is not None and not access.where.is_origin(origin):
            return self._refused(Refusal(403, "foreign_origin", "Pages of other sites may not use this server."))
        return None

    def _has_token(self, headers: Headers) -> bool:
        token = self._access.token
        if not self._access.cookie:
            return _same(headers.get("authorization", ""), f"Bearer {token}")
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._access.cookie)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, token)

    def _enter(self, scope: Scope, query: dict[str, str]) -> Response:
        """Take the token out of the address and into a cookie."""
        token = self._access.token
        if not _same(query.pop("token"), token):
            return self._refused(Refusal(401, "wrong_token", "That is not this server's token."))
        where = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")  # never a way to another server
        where += f"?{urlencode(query)}" if query else ""
        if not where.isascii() or any(c in where for c in "\r\n"):
            where = "/"
        cookie = f"{self._access.cookie}={token}; Path=/; HttpOnly; SameSite=Lax"
        return Response(status_code=303, headers={"location": where, "set-cookie": cookie})

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Refusal | None:
        """The request's body; None if the client went away before it was there."""
        most = 0 if scope["path"] in self._access.open else self._access.body
        explanation = f"The request is larger than {most} bytes." if most else "Nothing may be sent to this address."
        too_large = Refusal(413, "request_too_large", explanation)
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > most:
            return too_large
        data, more = bytearray(), True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    data += message.get("body", b"")
                    if len(data) > most:
                        return too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            return Refusal(408, "timeout", f"The request's body did not come within {BODY_SECONDS:g} seconds.")
        return bytes(data)

    def _with_headers(self, send: Send, scope: Scope) -> Send:
        """``send``, which adds the headers that every answer has, and logs the answer."""
        always = {**self._access.headers, "x-request-id": scope[REQUEST_ID]}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                more = [(k.encode(), v.encode()) for k, v in always.items() if k not in headers]
                message = {**message, "headers": [*message["headers"], *more]}
                status = message["status"]
                level = logging.WARNING if status >= 500 and status != SHUTTING_DOWN else logging.INFO
                # The path alone: what follows it may hold a token.
                log.log(level, "%s %s: %d, request %s", scope["method"], _path(scope), status, scope[REQUEST_ID])
            await send(message)

        return sent


def _path(scope: Scope) -> str:
    """A request's path, in printable characters."""
    return quote(scope["path"], errors="replace")[:200]


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read already, then whatever comes."""
    replayed = False

    async def again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
