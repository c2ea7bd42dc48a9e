"""The proxy's paths, and the proxy on a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from muarl.basics.untrusted import parse_json
from muarl.basics.web.guard import Access, Guard
from muarl.basics.web.json_api import exception_handlers, json_response, refused, stopping, to_bytes, unless_gone
from muarl.basics.web.server import ServiceServer
from muarl_tools.checks.user.proxy.service import GuardingProxy


def make_app(proxy: GuardingProxy, access: Access) -> ASGIApp:
    """The application: routes behind the guard of requests."""

    async def health(request: Request) -> Response:
        return stopping().response() if proxy.stopping else json_response({"status": "ok"})

    async def models(request: Request) -> Response:
        name = proxy.settings.model
        rows = [] if name is None else [{"id": name, "object": "model", "created": 0, "owned_by": "upstream"}]
        return json_response({"object": "list", "data": rows})

    async def guard(request: Request) -> Response:
        return json_response(proxy.totals.to_json())

    async def chat(request: Request) -> Response:
        body = await request.body()
        answer = await unless_gone(request, proxy.complete(body))
        if not _streams(body):
            return json_response(answer)
        return Response(_events(answer), media_type="text/event-stream")

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/models", models),
            Route("/v1/guard", guard),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ],
        exception_handlers=exception_handlers("No such path; there are /v1/chat/completions and /v1/guard."),
    )
    return Guard(app, access, refused)


def _streams(body: bytes) -> bool:
    found = parse_json(body)
    return isinstance(found, Mapping) and found.get("stream") is True


def _events(answer: Mapping[str, Any]) -> bytes:
    """A whole answer as a stream of one piece: it must be whole before it can be checked."""
    choices = []
    for choice in answer.get("choices") or ():
        message = dict(choice.get("message") or {})
        calls = [{**call, "index": n} for n, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, **({"tool_calls": calls} if calls else {})}
        choices.append({**{k: v for k, v in choice.items() if k != "message"}, "delta": delta})
    chunk = {**answer, "object": "chat.completion.chunk", "choices": choices}
    return b"data: " + to_bytes(chunk) + b"\n\ndata: [DONE]\n\n"


class ProxyServer(ServiceServer[GuardingProxy]):
    """Serves a ``GuardingProxy``; see ``ServiceServer``."""

    name = "muarl user proxy"
    root = "/v1"

    def application(self, access: Access) -> ASGIApp:
        """The paths behind the guard."""
        return make_app(self.service, access)

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop``; with ``signals``, also until SIGTERM or SIGINT. A second signal does not wait."""
        try:
            await super().run(signals=signals)
        finally:
            await self.service.aclose()

    def ending(self) -> None:
        """Answer no new request."""
        self.service.stopping = True
