"""The server behind ``muarl view``: loopback, a token, GET alone.

What the pages show was written by models, so nothing of it is trusted: text is escaped, and the content policy lets the
browser neither run nor load anything but this server's own two assets. Other programs and other people's pages in the
same browser are kept out by the token, by the Host header (against names that are pointed at this machine), and by
never answering to anything but GET.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from muarl.errors import MuarlError
from muarl.observe.markup import tag
from muarl.untrusted import host_of
from muarl.view.layout import Server, frame, script, stylesheet
from muarl.view.routes import page_of
from muarl.view.runs import Library

POLICY = (
    "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PORT = 8475
"""Tried first; another one is taken where it is not free."""
SECONDS = 30.0
"""A client that sends nothing for so long is cut off."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(ThreadingHTTPServer):
    """Serves a library's pages. ``host``: where to listen; another than loopback lets other machines in, who then need
    the token, which goes over the network in the clear. ``port``: None for the usual one, or a free one where that is
    taken; 0 for a free one. MuarlError if the port is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, library: Library, *, host: str = "127.0.0.1", port: int | None = None, token: str = "") -> None:
        self.library = library
        self.token = token or secrets.token_urlsafe(24)
        self.host = host
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, PORT if port is None else port), _Handler)
        except OSError as problem:
            if port is not None:
                raise MuarlError(
                    f"--port: {host}:{port} cannot be listened on: {problem.strerror or problem}"
                ) from None
            super().__init__((host, 0), _Handler)
        self.port = int(self.server_address[1])
        self.cookie = f"muarl_view_{self.port}"  # cookies are shared between ports

    @property
    def address(self) -> str:
        """What to open; the token in it is kept as a cookie by the browser."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?token={self.token}"

    def knows(self, host: str) -> bool:
        """True if a Host header names this server: by loopback, or, where it listens to others, by any address (which
        nobody can point elsewhere) or its own name."""
        name, port = host_of(host) or ("", None)
        if port != self.port:
            return False
        if name in ("127.0.0.1", "localhost", "::1"):
            return True
        if self.loopback:
            return False
        if name in (self.host.lower(), socket.gethostname().lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @property
    def loopback(self) -> bool:
        """True if only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error worth a trace."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def start(self) -> threading.Thread:
        """Serve in a thread of its own."""
        thread = threading.Thread(target=self.serve_forever, name="muarl view", daemon=True)
        thread.start()
        return thread


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "muarl"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS

    def do_GET(self) -> None:
        """A page or an asset, for whoever has the token."""
        if not self.server.knows(self.headers.get("Host", "")):
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "This server is not known by that name.")
            return
        split = urlsplit(self.path)
        try:
            query = dict(parse_qsl(split.query, max_num_fields=40))
        except ValueError:
            self._say(HTTPStatus.BAD_REQUEST, "The address is malformed.")
            return
        if "token" in query:
            self._enter(split.path, query)
        elif not self._known():
            text = "This page needs its token: open the address that muarl view has printed."
            self._say(HTTPStatus.FORBIDDEN, text)
        else:
            self._answer(split.path, query)

    do_HEAD = do_GET

    def _refuse(self) -> None:
        self.close_connection = True  # a body may follow, which is not read
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"Only GET.\n", {"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _enter(self, path: str, query: dict[str, str]) -> None:
        """Take the token out of the address and into a cookie."""
        if not hmac.compare_digest(query.pop("token").encode(), self.server.token.encode()):
            self._say(HTTPStatus.FORBIDDEN, "That is not this server’s token: open the address that it has printed.")
            return
        where = "/" + path.lstrip("/\\")
        where += f"?{urlencode(query)}" if query else ""
        if not where.isascii() or any(c in where for c in "\r\n"):
            where = "/"
        cookie = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Lax"
        self._send(HTTPStatus.SEE_OTHER, "text/plain", b"", {"Location": where, "Set-Cookie": cookie})

    def _known(self) -> bool:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.server.token.encode())

    def _answer(self, path: str, query: Mapping[str, str]) -> None:
        if path == "/view.css":
            self._send(HTTPStatus.OK, "text/css; charset=utf-8", stylesheet().encode())
            return
        if path == "/view.js":
            self._send(HTTPStatus.OK, "text/javascript; charset=utf-8", script().encode())
            return
        parts = [unquote(part, errors="replace") for part in path.strip("/").split("/")] if path.strip("/") else []
        try:
            page = page_of(Server(), self.server.library, parts, query)
        except (BrokenPipeError, ConnectionError):
            raise
        except Exception as problem:
            traceback.print_exc()
            text = f"This page cannot be made: {type(problem).__name__}: {problem}"
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, text[:1000])
            return
        if page is None:
            text = "No such page. The episode’s file may have been replaced."
            page = frame(
                Server(), self.server.library, "No such page", "", None, tag("h1", "No such page"), tag("p", text)
            )
            self._send(HTTPStatus.NOT_FOUND, "text/html; charset=utf-8", page.encode("utf-8", "replace"))
            return
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.encode("utf-8", "replace"))

    def _say(self, status: HTTPStatus, text: str) -> None:
        """A page of one sentence."""
        page = tag(
            "html", tag("head", tag("meta", charset="utf-8"), tag("title", "muarl view")), tag("body", tag("p", text))
        )
        self._send(status, "text/html; charset=utf-8", f"<!doctype html>\n{page}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing: addresses may hold the token, and a terminal full of requests helps nobody."""
