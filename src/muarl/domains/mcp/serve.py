"""Any domain as an MCP server: its tools over standard input and output, or over streamable HTTP.

Every client session gets a fresh world. The policy is what the server calls its instructions.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from typing import Any

from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.version import __version__
from muarl.basics.web.addresses import ServerAddress, listen
from muarl.basics.web.guard import Access, Guard
from muarl.basics.web.server import WebServer
from muarl.domains.base import Domain, World
from muarl.domains.mcp.sdk import sdk
from muarl.domains.tasks import Task
from muarl.types.chat import Requestor, ToolCall, ToolSpec

PATH = "/mcp"
MOST_WORLDS = 1000
"""How many sessions' worlds are kept at once; the session used longest ago is ended."""
ENDED_KEPT = 100_000
"""How many ended sessions are remembered. The SDK has at most 10,000 at once, and forgets one that is idle."""
_SESSION = "mcp-session-id"


class SessionEndedError(MuarlError):
    """A call in a session whose world is gone: a fresh one would quietly undo what the session has done."""


class DomainServer:
    """A domain, or one task of it, offered to MCP clients. ``side``: whose tools, the assistant's or the user's.

    ``world_of(session)``: the world of a session, made at its first call; None is the session of standard input and
    output, and of HTTP clients that have none. It is never ended to make room.
    """

    def __init__(self, domain: Domain, task: Task | None = None, *, side: Requestor = "assistant") -> None:
        self.domain, self.task, self.side = domain, task, side
        offered = domain.specs_for(task) if side == "assistant" and task is not None else domain.tool_specs(side)
        self.tools: tuple[ToolSpec, ...] = tuple(offered)
        if not self.tools:
            raise ConfigError(f"{domain.name}: the {side}'s side has no tools to serve")
        self._worlds: OrderedDict[str | None, asyncio.Task[World]] = OrderedDict()
        self._ended: OrderedDict[str | None, None] = OrderedDict()

    async def world_of(self, session: str | None) -> World:
        """The world of a session. SessionEndedError if it had one that is gone."""
        self._must_last(session)
        # Calls that come while the world is being opened wait for the same one.
        opening = self._worlds.get(session)
        if opening is None:
            opening = self._worlds[session] = asyncio.ensure_future(self._open())
        self._worlds.move_to_end(session)
        try:
            world = await asyncio.shield(opening)
        except Exception:
            if self._worlds.get(session) is opening:  # the next call tries again
                del self._worlds[session]
            raise
        self._must_last(session)
        while len(self._worlds) > MOST_WORLDS:
            await self.drop(next(s for s in self._worlds if s is not None))
        return world

    def _must_last(self, session: str | None) -> None:
        if session in self._ended:
            raise SessionEndedError("this session has ended, and what was done in it is gone; begin another one")

    async def _open(self) -> World:
        world = self.domain.world(self.task)
        await world.aopen()
        return world

    def has_ended(self, session: str | None) -> bool:
        """Whether a session had a world that is gone."""
        return session in self._ended

    async def drop(self, session: str | None) -> None:
        """End a session's world, if there is one, and the session with it."""
        opening = self._worlds.pop(session, None)
        if opening is None:
            return
        self._ended[session] = None
        while len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)
        try:
            world = await asyncio.shield(opening)
        except Exception:  # told to whoever wanted to use it
            return
        await world.aclose()

    async def close(self) -> None:
        """End all worlds."""
        for session in list(self._worlds):
            await self.drop(session)

    def server(self) -> Any:
        """The SDK's server, with this domain behind it."""
        types = sdk("mcp_types")

        async def list_tools(context: Any, params: Any) -> Any:
            return types.ListToolsResult(tools=[self._described(types, spec) for spec in self.tools])

        async def call_tool(context: Any, params: Any) -> Any:
            try:
                world = await self.world_of(_session(context))
            except SessionEndedError as problem:
                return _answer(types, f"Error: {problem}.", True)
            call = ToolCall(str(context.request_id), params.name, params.arguments or {}, self.side)
            if params.name not in {spec.name for spec in self.tools}:
                names = ", ".join(spec.name for spec in self.tools)
                return _answer(types, f"Error: there is no tool {params.name!r}. Tools: {names}.", True)
            async for result in world.answers(self.side, [call]):
                return _answer(types, result.content, result.error)
            raise RuntimeError("the world gave no answer")

        text = self.domain.policy_text if self.task is None else self.domain.policy_for(self.task)
        lowlevel = sdk("mcp.server").Server
        return lowlevel(
            f"muarl-{self.domain.name}",
            version=__version__,
            instructions=text,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )

    def _described(self, types: Any, spec: ToolSpec) -> Any:
        kind = self.domain.kind_of(spec.name)
        about = types.ToolAnnotations(read_only_hint=kind != "write", open_world_hint=False)
        schema = {"type": "object", **spec.parameters}
        return types.Tool(name=spec.name, description=spec.description, input_schema=schema, annotations=about)


def _answer(types: Any, text: str, error: bool) -> Any:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=error)


def _session(context: Any) -> str | None:
    headers = getattr(context.request, "headers", None)
    return None if headers is None else headers.get(_SESSION)


async def serve_stdio(served: DomainServer) -> None:
    """Serve one client on standard input and output until it closes them."""
    server = served.server()
    try:
        async with sdk("mcp.server.stdio").stdio_server() as (from_client, to_client):
            await server.run(from_client, to_client, server.create_initialization_options())
    finally:
        await served.close()


async def serve_http(
    served: DomainServer,
    *,
    host: str,
    port: int,
    token: str,
    ready: Callable[[str], None] | None = None,
    signals: bool = False,
) -> None:
    """Serve clients at http://HOST:PORT/mcp until cancelled; with ``signals``, also until SIGTERM or SIGINT. They must
    send the token as a bearer token.

    ``port`` 0 takes a free one; ``ready`` is told the address. ConfigError if the address cannot be had.
    """
    with closing(listen(host, port)) as listener:
        # On other machines clients may know it by any name; the token is what keeps strangers out.
        where = ServerAddress(host, listener.getsockname()[1], names=None)
        # The guard knows the Host and Origin headers that may come; the SDK would allow fewer.
        sdk_checks = sdk("mcp.server.transport_security").TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        )
        app = served.server().streamable_http_app(streamable_http_path=PATH, host=host, transport_security=sdk_checks)
        guard = Guard(_Sessions(app, served), Access(where, token))
        server = WebServer(guard, listener, where, name="muarl mcp serve", lifespan="on")
        if ready is not None:
            ready(f"{where.url}{PATH}")
        try:
            await server.run(signals=signals)
        finally:
            await served.close()


class _Sessions:
    """An ASGI application in which a session that its client ends takes its world with it, and one whose world is gone
    is answered by 404, by which MCP's clients know that they must begin another."""

    def __init__(self, app: Any, served: DomainServer) -> None:
        self._app, self._served = app, served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        session = dict(scope["headers"]).get(_SESSION.encode(), b"").decode("latin-1")
        ends = scope["method"] == "DELETE"
        if self._served.has_ended(session) and not ends:
            await _not_found(send)
            return
        await self._app(scope, receive, send)
        if ends:
            await self._served.drop(session)


async def _not_found(send: Any) -> None:
    error = {"code": -32600, "message": "Session not found: it has ended, as others needed its place"}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
