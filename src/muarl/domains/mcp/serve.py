"""Any domain as an MCP server: its tools over standard input and output, or over streamable HTTP.

Every client session gets a fresh world. The policy is what the server calls its instructions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from typing import Any

from muarl.chat import Requestor, ToolCall, ToolSpec
from muarl.domains.base import Domain, Task, World
from muarl.domains.mcp.sdk import sdk
from muarl.errors import ConfigError
from muarl.web.addresses import ServerAddress, listen
from muarl.web.guard import Access, Guard
from muarl.web.server import WebServer

PATH = "/mcp"
MOST_WORLDS = 1000
"""How many sessions' worlds are kept at once; the one used longest ago is dropped."""
_SESSION = "mcp-session-id"


class DomainServer:
    """A domain, or one task of it, offered to MCP clients. ``side``: whose tools, the assistant's or the user's.

    ``world_of(session)``: the world of a session, made at its first call; None is the session of standard input and
    output, and of HTTP clients that have none.
    """

    def __init__(self, domain: Domain, task: Task | None = None, *, side: Requestor = "assistant") -> None:
        self.domain, self.task, self.side = domain, task, side
        offered = domain.specs_for(task) if side == "assistant" and task is not None else domain.tool_specs(side)
        self.tools: tuple[ToolSpec, ...] = tuple(offered)
        if not self.tools:
            raise ConfigError(f"{domain.name}: the {side}'s side has no tools to serve")
        self._worlds: OrderedDict[str | None, World] = OrderedDict()

    async def world_of(self, session: str | None) -> World:
        """The world of a session."""
        if session not in self._worlds:
            world = self.domain.world(self.task)
            await world.aopen()
            self._worlds[session] = world
            while len(self._worlds) > MOST_WORLDS:
                await self.drop(next(iter(self._worlds)))
        self._worlds.move_to_end(session)
        return self._worlds[session]

    async def drop(self, session: str | None) -> None:
        """End the world of a session, if there is one."""
        world = self._worlds.pop(session, None)
        if world is not None:
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
            world = await self.world_of(_session(context))
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
            f"muarl-{self.domain.name}", instructions=text, on_list_tools=list_tools, on_call_tool=call_tool
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
    """An ASGI application in which a session that its client ends takes its world with it."""

    def __init__(self, app: Any, served: DomainServer) -> None:
        self._app, self._served = app, served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "DELETE":
            headers = dict(scope["headers"])
            await self._served.drop(headers.get(_SESSION.encode(), b"").decode("latin-1"))
