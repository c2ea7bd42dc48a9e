"""Any domain as an MCP server: its tools over standard input and output, or over streamable HTTP.

Every client session gets a fresh world. The policy is what the server calls its instructions.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from muarl.chat import Requestor, ToolCall, ToolSpec
from muarl.domains.base import Domain, Task, World
from muarl.domains.mcp.sdk import sdk
from muarl.errors import ConfigError
from muarl.untrusted import host_of

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
    served: DomainServer, *, host: str, port: int, token: str, ready: Callable[[str], None] | None = None
) -> None:
    """Serve clients at http://HOST:PORT/mcp until cancelled. They must send the token as a bearer token.

    ``port`` 0 takes a free one; ``ready`` is told the address. ConfigError if the address cannot be had.
    """
    uvicorn = sdk("uvicorn")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(found[4][:2], family=found[0])
    except OSError as problem:
        raise ConfigError(f"--host {host} --port {port}: {problem.strerror or problem}") from None
    with listener:
        number = listener.getsockname()[1]
        secure = None
        if host not in LOOPBACK:  # clients may know it by other names; the token is what keeps strangers out
            secure = sdk("mcp.server.transport_security").TransportSecuritySettings(
                enable_dns_rebinding_protection=False
            )
        app = served.server().streamable_http_app(streamable_http_path=PATH, host=host, transport_security=secure)
        config = uvicorn.Config(
            _Guarded(app, served, token, host), log_level="error", lifespan="on", access_log=False,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = uvicorn.Server(config)
        if ready is not None:
            ready(f"http://{f'[{host}]' if ':' in host else host}:{number}{PATH}")
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(running)
        finally:
            server.should_exit = True  # a cancelled one would leave the loop listening on a socket that is closed
            await asyncio.wait([running], timeout=5)
            await served.close()


class _Guarded:
    """An ASGI application behind a bearer token and a Host header that can be ours (on loopback, only its names); a
    session that its client ends takes its world with it."""

    def __init__(self, app: Any, served: DomainServer, token: str, host: str) -> None:
        self._app, self._served, self._expected = app, served, f"Bearer {token}".encode()
        self._names = LOOPBACK if host in LOOPBACK else None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        found = host_of(headers.get(b"host", b"").decode("latin-1"))
        if found is None or (self._names is not None and found[0] not in self._names):
            await _refuse(send, 421, b"this server is not known by that name")
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            await _refuse(send, 401, b"a bearer token is needed", (b"www-authenticate", b"Bearer"))
            return
        await self._app(scope, receive, send)
        if scope["method"] == "DELETE":
            await self._served.drop(headers.get(_SESSION.encode(), b"").decode("latin-1"))


async def _refuse(send: Any, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(b"content-type", b"text/plain"), *headers]})
    await send({"type": "http.response.body", "body": text})
