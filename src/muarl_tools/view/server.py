"""The server behind ``muarl view``: loopback, a token, GET alone.

What the pages show was written by models, so nothing of it is trusted: text is escaped, and the content policy lets the
browser neither run nor load anything but this server's own two assets. Who may ask at all is for ``muarl.basics.web``.
"""

from __future__ import annotations

import asyncio
import secrets
import traceback
from urllib.parse import parse_qsl, unquote

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from muarl.basics.errors import ConfigError
from muarl.basics.web.addresses import ServerAddress, listen
from muarl.basics.web.guard import Access, Guard, Refusal
from muarl.basics.web.server import WebServer
from muarl.pages.markup import tag
from muarl_tools.view.layout import ServerLinks, frame, script, stylesheet
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library

POLICY = (
    "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PORT = 8475
"""Tried first; another one is taken where it is not free."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class ViewServer(WebServer):
    """Serves a library's pages. ``host``: where to listen; another than loopback lets other machines in, who then need
    the token, which goes over the network in the clear. ``port``: None for the usual one, or a free one where that is
    taken; 0 for a free one. ConfigError if the address cannot be had."""

    def __init__(self, library: Library, *, host: str = "127.0.0.1", port: int | None = None, token: str = "") -> None:
        try:
            listener = listen(host, PORT if port is None else port)
        except ConfigError:
            if port is not None:
                raise
            listener = listen(host, 0)
        where = ServerAddress(host, int(listener.getsockname()[1]), own_port=True)
        self.token = token or secrets.token_urlsafe(24)
        self.cookie = f"muarl_view_{where.port}"  # cookies are shared between ports
        access = Access(where, self.token, self.cookie, body=0, headers=HEADERS)
        super().__init__(Guard(make_app(library), access, _refused), listener, where, name="muarl view")

    @property
    def address(self) -> str:
        """What to open; the token in it is kept as a cookie by the browser."""
        return f"{self.where.url}/?token={self.token}"

    def serve(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        asyncio.run(self.run(signals=True))


def make_app(library: Library) -> ASGIApp:
    """The pages as an ASGI application; each is made in a thread."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=40))
            answer = await run_in_threadpool(_answer, library, scope["raw_path"].decode("latin-1"), query)
        else:
            answer = PlainTextResponse("Only GET.\n", 405, {"allow": "GET, HEAD"})
        await answer(scope, receive, send)

    return app


def _answer(library: Library, path: str, query: dict[str, str]) -> Response:
    """A page or an asset."""
    if path == "/view.css":
        return Response(stylesheet(), media_type="text/css")
    if path == "/view.js":
        return Response(script(), media_type="text/javascript")
    parts = [unquote(part, errors="replace") for part in path.strip("/").split("/")] if path.strip("/") else []
    try:
        page = page_of(ServerLinks(), library, parts, query)
    except Exception as problem:
        traceback.print_exc()
        return _sentence(f"This page cannot be made: {type(problem).__name__}: {problem}"[:1000], 500)
    if page is not None:
        return _html(page)
    text = "No such page. The episode’s file may have been replaced."
    return _html(
        frame(ServerLinks(), library, "No such page", "", None, tag("h1", "No such page"), tag("p", text)), 404
    )


def _refused(refusal: Refusal) -> Response:
    if refusal.status == 401:  # a browser has no bearer token to send
        return _sentence(f"{refusal.message} Open the address that muarl view has printed.", 403)
    return _sentence(refusal.message, refusal.status, refusal.headers)


def _sentence(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """A page of one sentence."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "muarl view"))
    return _html(f"<!doctype html>\n{tag('html', head, tag('body', tag('p', text)))}\n", status, headers)


def _html(page: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return HTMLResponse(page.encode("utf-8", "replace"), status, headers)
