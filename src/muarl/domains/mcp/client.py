"""One connection to an MCP server: start it, list its tools, call them, and say clearly what goes wrong.

A connection lives in one task of the event loop it was made on (the SDK's sessions must end in the task they began in);
calls may come from any task of that loop.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.domains.mcp.launch import Launch, environment, filled
from muarl.domains.mcp.pipes import Pipes
from muarl.domains.mcp.sdk import sdk

PAGES = 50
"""How many pages a list of tools may have."""
REFUSED = (401, 403)


@dataclass(frozen=True)
class ServerTool:
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    reads_only: bool | None = None
    """Its annotation, None where it has none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool call gave back."""

    text: str
    error: bool = False
    full: int = 0
    """How many characters it had before it was cut to the bound."""


class ServerError(InfrastructureError):
    """A server failed: it is missing, hung, died, flooded or changed. ``slow``: it took too long for a call."""

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message, boundary="world")
        self.slow = slow


class Connection:
    """A live session with one server. Make it with ``connect``; ``tools``: what the server offers, by name."""

    def __init__(self, launch: Launch, folder: Path, home: Path) -> None:
        self.launch, self.folder, self._home = launch, folder, home
        self.tools: dict[str, ServerTool] = {}
        self.stale = False
        self._client: Any = None
        self._pipes: Pipes | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._broken = ""
        self._faults: list[str] = []

    @property
    def alive(self) -> bool:
        """Whether calls can still be made."""
        running = self._task is not None and not self._task.done() and (self._pipes is None or self._pipes.alive)
        return running and not self._broken

    async def start(self) -> None:
        """Start the server, greet it and list its tools. ServerError says what is wrong with it."""
        bounds = self.launch.bounds
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready))
        try:
            async with asyncio.timeout(bounds.start):
                await asyncio.shield(ready)
        except TimeoutError:
            words = "" if self._pipes is None else self._pipes.last_words()
            await self.close()
            raise ServerError(
                f"{self._who()} did not say hello within {bounds.start:g} s{_said(words)}", slow=True
            ) from None
        except BaseException:
            await self.close()
            raise

    async def _live(self, ready: asyncio.Future[None]) -> None:
        client: Any = None
        try:
            mode = "legacy" if self.launch.handshake == "initialize" else "auto"
            options = {"mode": mode, "cache": None, "message_handler": self._hear}
            client = sdk("mcp").Client(self._transport(), **options)
            async with client:
                self._client = client
                await self.refresh()
                if not ready.done():
                    ready.set_result(None)
                await self._over.wait()
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except BaseException as problem:
            failure = await self._failure(problem, "could not be started")
            if not ready.done():
                ready.set_exception(failure)
        finally:
            self._broken = self._broken or "closed"

    def _transport(self) -> Any:
        launch = self.launch
        if launch.url:
            return _http(launch, self._faults)
        command = [filled(part, self.folder) for part in launch.command]
        self._pipes = Pipes(command, environment(launch, self.folder, self._home), self.folder, launch.bounds.wire)
        return self._pipes

    async def _hear(self, message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self.stale = True

    async def refresh(self) -> None:
        """List the server's tools anew. ServerError if it cannot."""
        tools: dict[str, ServerTool] = {}
        cursor: str | None = None
        self._renew()
        self.stale = False
        try:
            async with asyncio.timeout(self.launch.bounds.call):
                for _ in range(PAGES):
                    page = await self._client.list_tools(cursor=cursor)
                    for tool in page.tools:
                        reads_only = getattr(tool.annotations, "read_only_hint", None)
                        tools[tool.name] = ServerTool(
                            tool.name, tool.description or "", dict(tool.input_schema), reads_only
                        )
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except BaseException as problem:
            await self._raise(problem, "did not list its tools")
        self.tools = tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool. What is wrong with the call comes back as an error answer; a broken server is a ServerError."""
        if not self.alive:
            raise ServerError(f"{self._who()} is gone: {self._broken or 'it ended'}")
        bounds = self.launch.bounds
        self._renew()
        try:
            async with asyncio.timeout(bounds.call):
                result = await self._client.call_tool(name, dict(arguments))
        except sdk("mcp").MCPError as problem:
            codes = sdk("mcp_types")
            if problem.code in (codes.CONNECTION_CLOSED, codes.REQUEST_TIMEOUT):
                await self._raise(problem, f"broke off in {name}")
            return Answer(f"Error: {problem.message}"[: bounds.output], True)
        except BaseException as problem:
            await self._raise(problem, f"failed in {name}")
        text = _text_of(result)
        return Answer(_cut(text, bounds.output), bool(result.is_error), len(text))

    async def close(self) -> None:
        """End the session and the process. Harmless if they have ended."""
        self._broken = self._broken or "closed"
        self._over.set()
        if self._task is not None:
            if self._client is not None:  # else it still waits for the server's hello
                with suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await asyncio.shield(self._settled())
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._settled()

    async def _settled(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _renew(self) -> None:
        if self._pipes is not None:
            self._pipes.renew()

    async def _raise(self, problem: BaseException, what: str) -> NoReturn:
        failure = await self._failure(problem, what)
        self._broken = str(failure) or "a call was broken off"
        raise failure from problem

    async def _failure(self, problem: BaseException, what: str) -> BaseException:
        """What a failure means, in words. Cancellation and clear errors pass as they are."""
        problem = _innermost(problem)
        if isinstance(problem, (asyncio.CancelledError, MuarlError)) or not isinstance(problem, Exception):
            return problem
        if isinstance(problem, TimeoutError):
            return ServerError(f"{self._who()} {what}: no answer within {self.launch.bounds.call:g} s", slow=True)
        if isinstance(problem, (FileNotFoundError, PermissionError, NotADirectoryError)) and self.launch.command:
            return ServerError(
                f"{self._who()} is missing: there is no program {self.launch.command[0]!r} that can be run"
            )
        if self._pipes is not None:
            words = self._pipes.last_words()
            if self._pipes.fault:
                return ServerError(f"{self._who()} {self._pipes.fault}")
            code = await self._pipes.exit_code()
            if code is not None:
                return ServerError(f"{self._who()} {what}: it died (exit code {code}){_said(words)}")
        if self._faults:
            return ServerError(f"{self._who()} {what}: it {self._faults[-1]}")
        detail = " ".join(str(problem).split())[:300]
        return ServerError(f"{self._who()} {what}: {type(problem).__name__}: {detail}")

    def _who(self) -> str:
        return f"the MCP server {self.launch.name}"


async def connect(launch: Launch, folder: Path, home: Path) -> Connection:
    """Start a server over a folder and connect to it. ServerError if that fails."""
    connection = Connection(launch, folder, home)
    await connection.start()
    return connection


def _http(launch: Launch, faults: list[str]) -> Any:
    """The SDK's transport for a URL, with the token from the environment. ``faults``: where it is noted what a server
    did wrong, which the SDK does not tell."""
    httpx = sdk("httpx2")
    headers = {}
    if launch.token_env:
        token = os.environ.get(launch.token_env)
        if not token:
            raise ServerError(f"the MCP server {launch.name} needs a token: set the variable {launch.token_env}")
        headers["Authorization"] = f"Bearer {token}"
    timeout = httpx.Timeout(launch.bounds.call + 5, connect=min(10.0, launch.bounds.start))

    async def look(response: Any) -> None:
        if response.status_code in REFUSED:
            faults.append(f"answers HTTP {response.status_code}; is the token the right one?")
        response.stream = _bounded(response.stream, launch.bounds.wire, faults)

    hooks = {"response": [look]}
    client = httpx.AsyncClient(headers=headers, timeout=timeout, trust_env=False, event_hooks=hooks)
    return _HttpTransport(sdk("mcp.client.streamable_http").streamable_http_client, launch, client)


def _bounded(stream: Any, most: int, faults: list[str]) -> Any:
    """The body of a response, broken off after so many bytes."""
    httpx = sdk("httpx2")
    base: Any = httpx.AsyncByteStream

    class Bounded(base):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = 0
            async for part in stream:
                received += len(part)
                if received > most:
                    faults.append(f"floods: an answer of more than {most >> 20} MiB")
                    raise httpx.ReadError(faults[-1])
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


class _HttpTransport:
    """The SDK's transport together with the HTTP client that it is given, so that both are closed."""

    def __init__(self, make: Any, launch: Launch, client: Any) -> None:
        self._client = client
        # Whole answers are bounded by the client; from version 2.3 on the SDK bounds a single event, too.
        bound = {"max_sse_event_size": launch.bounds.wire}
        parameters = inspect.signature(make).parameters
        self._inner = make(launch.url, http_client=client, **{k: v for k, v in bound.items() if k in parameters})

    async def __aenter__(self) -> Any:
        await self._client.__aenter__()
        return await self._inner.__aenter__()

    async def __aexit__(self, *about: Any) -> Any:
        try:
            return await self._inner.__aexit__(*about)
        finally:
            await self._client.__aexit__(None, None, None)


def _innermost(problem: BaseException) -> BaseException:
    """The first single error of nested groups, which task groups raise."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def _said(words: str) -> str:
    return f"; it last said: {words}" if words else ""


def _text_of(result: Any) -> str:
    """A tool's answer as text: what is no text is named, structured content stands in where there is nothing else."""
    parts = [_part(item) for item in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _part(item: Any) -> str:
    kind = getattr(item, "type", "")
    if kind == "text":
        return str(item.text)
    if kind == "resource":
        inner = item.resource
        text = getattr(inner, "text", None)
        return str(text) if text is not None else f"[resource {inner.uri}, {len(inner.blob)} characters of base64]"
    if kind == "resource_link":
        return f"[resource {item.uri}]"
    data: Sequence[Any] = getattr(item, "data", "")
    return f"[{kind} {getattr(item, 'mime_type', '')}, {len(data)} characters of base64]"


def _cut(text: str, bound: int) -> str:
    if len(text) <= bound:
        return text
    return f"{text[:bound]}\n[cut here: {len(text)} characters in all, the first {bound} are shown]"
