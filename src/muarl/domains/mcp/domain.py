"""A domain whose tools are an MCP server's: ``McpDomain``, and ``McpWorld``, one episode's server and folder.

An author gives a launch, a policy and, if not all, the tools to offer, and says what an episode begins with
(``lay_out``) and what of its end counts (``read_state``). Everything else is any other domain's.
"""

from __future__ import annotations

import asyncio
import hashlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.base import Domain, World
from muarl.domains.database import Database
from muarl.domains.frozen import canonical
from muarl.domains.mcp import pool
from muarl.domains.mcp.client import ServerError, ServerTool
from muarl.domains.mcp.folders import folder_state, inside
from muarl.domains.mcp.launch import Launch
from muarl.domains.mcp.tools import AgentTool, OfferedTool, changed, toolbox
from muarl.domains.tasks import Task
from muarl.domains.tooling import Kind
from muarl.types.chat import Requestor, ToolCall, ToolResult, ToolSpec

ALIAS = "/files"
"""What the agent sees in place of the path of its folder, which differs from place to place."""

Ask = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""One of the server's tools by its own name, and arguments, to its text. ServerError if it answers with an error."""


class McpDomain(Domain):
    """A domain on an MCP server. ``places``: how many of its processes may run at once, 0 for the machine's default."""

    launch: ClassVar[Launch]
    """How the server is reached."""
    offers: ClassVar[Sequence[OfferedTool] | None] = None
    """The tools that the agent gets, None for all."""
    listing: ClassVar[Mapping[str, ServerTool] | None] = None
    """The server's tools as they are known to be, so that the domain can be looked at without starting it; None: it is
    asked at the first need."""

    def __init__(
        self,
        *,
        launch: Launch | None = None,
        offers: Sequence[OfferedTool] | None = None,
        listing: Mapping[str, ServerTool] | None = None,
        policy: str | None = None,
        tools: Sequence[str] | None = None,
        places: int = 0,
    ) -> None:
        super().__init__(policy=policy)
        chosen = launch or getattr(type(self), "launch", None)
        if chosen is None:
            raise ConfigError(f"{self.name}: an MCP domain needs a launch: how its server is reached")
        self.server: Launch = chosen
        self._offers = offers if offers is not None else type(self).offers
        self._listing = listing if listing is not None else type(self).listing
        self._subset, self._places = tools, places
        self._offered: dict[str, AgentTool] | None = None

    # what an author may say otherwise

    def lay_out(self, database: Database, folder: Path) -> None:
        """Hook: write what an episode begins with. As it stands: the database's table "files", path to {"text"}."""
        for path, record in database.tables.get("files", {}).items():
            target = inside(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(record["text"], encoding="utf-8")

    def read_state(self, folder: Path) -> Any:
        """Hook: what counts of an episode's end, as JSON. As it stands: all files and folders, with their contents."""
        return folder_state(folder)

    async def state_by_tools(self, ask: Ask) -> Any:
        """Hook: ``read_state`` by the server's own tools, for servers whose files cannot be seen from here."""
        raise NotImplementedError

    def tidy(self, tool: str, text: str) -> str:
        """Hook: the observation made of a tool's answer, for servers whose answers differ from machine to machine."""
        return text

    def failed(self, tool: str, text: str) -> bool:
        """Hook: whether an answer is an error, for servers that do not mark theirs."""
        return False

    def guard(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Hook: why a call must not reach the server, as a sentence for the agent; None if it may."""
        return None

    # what the rest of muarl asks

    def offered(self) -> dict[str, AgentTool]:
        """The agent's tools by name. Asks the server for its tools, unless they are known. ServerError if it fails."""
        if self._offered is None:
            if self._listing is None:
                self._listing = self.ask()
            box = toolbox(self._listing, self._offers)
            unknown = [n for n in self._subset or () if n not in box]
            if unknown:
                raise ConfigError(f"tools: {self.name} has no tool {unknown[0]!r}; it has {', '.join(box)}")
            self._offered = {n: t for n, t in box.items() if self._subset is None or n in self._subset}
        return self._offered

    def ask(self) -> dict[str, ServerTool]:
        """Start the server once and list its tools. ServerError if it fails."""
        missing = self.missing()
        if missing is not None:
            raise ServerError(missing)
        return discover(self.server, partial(self.lay_out, self.base))

    @property
    def known(self) -> bool:
        """Whether the server's tools are known without asking it."""
        return self._listing is not None

    def learn(self, listing: Mapping[str, ServerTool]) -> None:
        """Take a server's tools as known, if nobody has asked it for them yet."""
        if self._listing is None:
            self._listing = dict(listing)

    def tool_names(self, requestor: Requestor = "assistant") -> tuple[str, ...]:
        """The names of one side's tools; users have none."""
        return tuple(self.offered()) if requestor == "assistant" else ()

    def tool_specs(self, requestor: Requestor = "assistant") -> tuple[ToolSpec, ...]:
        """The tools one side has, as a model sees them; users have none."""
        return tuple(t.schema.spec for t in self.offered().values()) if requestor == "assistant" else ()

    def kind_of(self, tool_name: str) -> Kind:
        """ "read", "write" or "generic". KeyError if there is no such tool."""
        return self.offered()[tool_name].kind

    def check(self, tasks: Iterable[Task] = ()) -> None:
        """Start the server once, and see that it has the tools. ConfigError says what is missing, or which of these
        tasks cannot be played on it."""
        for task in tasks:
            self.check_task(task)
        try:
            listing = self.ask()
        except InfrastructureError as problem:
            raise ConfigError(f"{self.name}: {problem}") from problem
        difference = changed(self.offered().values(), listing)
        if difference is not None:
            raise ConfigError(f"{self.name}: the MCP server {self.server.name} is another version: {difference}")

    def check_task(self, task: Task) -> None:
        """ConfigError where a server that is reached at a URL would have to be given files that it cannot see, or be
        judged by files that cannot be seen from here."""
        if not self.server.url:
            return
        files = task.database is not None and any(task.database.tables.values())
        where = f"{self.name}: the MCP server {self.server.name} is reached at a URL, so that"
        if files and not self._says("lay_out"):
            raise ConfigError(f"{where} it never sees the files that task {task.id} begins with: define lay_out")
        goal = task.actions is not None and "DB" in task.reward_basis
        if goal and not (self._says("read_state") or self._says("state_by_tools")):
            raise ConfigError(
                f"{where} its state cannot be read from here, and the goal of task {task.id} could not be checked: "
                "define state_by_tools, or give the server by its command"
            )

    def _says(self, hook: str) -> bool:
        """Whether an author has defined a hook."""
        return getattr(type(self), hook) is not getattr(McpDomain, hook)

    def world(self, task: Task | None = None) -> McpWorld:
        """The fresh state of one episode. Its server is started, or taken from the pool, when it is opened.

        ConfigError as ``check_task`` says.
        """
        if task is not None:
            self.check_task(task)
        return McpWorld(self, task)

    def missing(self) -> str | None:
        """Hook: what keeps the server from being started, with the remedy; None if nothing is known to."""
        return None

    async def pool(self) -> pool.McpServerPool:
        """The pool that its episodes take their places from."""
        return await pool.pool_of(self.server, self._places)


class McpWorld(World):
    """One episode on an MCP server. It opens itself at the first need, and must be closed to free its place."""

    domain: McpDomain

    def __init__(self, domain: McpDomain, task: Task | None) -> None:
        super().__init__(domain, task)
        self._place: pool.ServerFolder | None = None
        self._turn: asyncio.Lock | None = None
        self._digest: str | None = None
        self._closed = False
        self._good = True
        self._extra = False
        self._drop: weakref.finalize[Any, Any] | None = None

    def another(self) -> McpWorld:
        """A fresh world of the same task. It has a place to itself even while all the others are taken."""
        world = self.domain.world(self.task)
        world._extra = True
        return world

    def fork(self) -> McpWorld:
        """ConfigError: the state is the server's."""
        raise ConfigError(f"a world of {self.domain.name} cannot be copied: its state is that of a server")

    async def aopen(self) -> None:
        """Take a place: a fresh folder, and a server that answers. ServerError if there is none to be had."""
        await pool.over_there(self._opened())

    async def aclose(self) -> None:
        """Give the place back."""
        await pool.over_there(self._close())

    def close(self) -> None:
        """``aclose`` for plain code."""
        pool.waited_for(self._close())

    async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
        """The results of all calls of one message, in order."""
        for call in calls:
            yield await pool.over_there(self._answer(requestor, call))

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Run one tool call and block until it is answered."""
        return pool.waited_for(self._answer(requestor, call))

    def invoke(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool and return its text. ValueError if it answers with an error."""
        result = self.call(requestor, ToolCall("", name, arguments, requestor))
        if result.error:
            raise ValueError(result.content)
        return result.content

    def digest(self) -> str:
        """64 hex digits of the state that counts."""
        return pool.waited_for(self._read_digest())

    async def state_digest(self) -> str:
        """``digest``, without blocking."""
        return await pool.over_there(self._read_digest())

    def full_hash(self, requestor: Requestor = "assistant") -> str | None:
        """None: benchmarks know nothing of such worlds."""
        return None

    # on the servers' loop

    async def _opened(self) -> pool.ServerFolder:
        if self._closed:
            raise InfrastructureError("the world of this episode is closed already", boundary="world")
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            if self._place is None:
                own = self.task.database if self.task is not None and self.task.database is not None else None
                lay_out = partial(self.domain.lay_out, own if own is not None else self.domain.base)
                missing = self.domain.missing()
                if missing is not None:
                    raise ServerError(missing)
                source = await self.domain.pool()
                place = await source.take(lay_out, extra=self._extra)
                self._place = place
                self._drop = weakref.finalize(self, _abandon, source, place)
                assert place.connection is not None
                self.domain.learn(place.connection.tools)
                self._good = False
                self._check_tools(place)
                self._good = True
            return self._place

    def _check_tools(self, place: pool.ServerFolder) -> None:
        assert place.connection is not None
        difference = changed(self.domain.offered().values(), place.connection.tools)
        if difference is not None:
            raise ServerError(f"the MCP server {self.domain.server.name} changed its tools: {difference}")

    async def _answer(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        if not self.domain.known:
            await self._opened()
        tools = self.domain.offered() if requestor == "assistant" else {}
        offered = tools.get(call.name)
        if call.invalid is not None:
            return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True)
        if offered is None:
            return ToolResult(f"Error: there is no tool {call.name!r}. Tools: {', '.join(tools) or 'none'}.", True)
        problem = offered.schema.check(call.arguments) or self.domain.guard(call.name, call.arguments)
        if problem is not None:
            return ToolResult(f"Error: {call.name}: {problem}", True)
        place = await self._opened()
        assert self._turn is not None
        async with self._turn:
            self._digest, good = None, self._good
            self._good = False  # until it has answered: nobody knows what a server does that was left in a call
            try:
                answer = await self._ask(place, offered, call)
            except ServerError as failure:
                if not failure.slow or offered.kind == "write" or self.domain.server.slow_reads != "answer":
                    raise
                await self._start_again(place)
                seconds = self.domain.server.bounds.call
                answer = ToolResult(f"Error: {call.name} took longer than {seconds:g} seconds and was stopped", True)
            self._good = good
        if not answer.error and offered.kind == "write":
            self.writes.append(call)
        return answer

    async def _ask(self, place: pool.ServerFolder, offered: AgentTool, call: ToolCall) -> ToolResult:
        """One call to the server. A read that a dying server left without an answer is asked once more of a new one."""
        connection = place.connection
        assert connection is not None
        if connection.stale:
            await connection.refresh()
            self._check_tools(place)
        arguments = _renamed(offered.arguments(call.arguments, place.folder), ALIAS, str(place.folder))
        try:
            answer = await connection.call(offered.offer.tool, arguments)
        except ServerError as failure:
            again = offered.kind != "write" and self.domain.server.keeps == "folder" and not failure.slow
            if not again or self.domain.server.url:
                raise
            await self._start_again(place)
            answer = await place.connection.call(offered.offer.tool, arguments)  # type: ignore[union-attr]
        text = answer.text.replace(str(place.folder), ALIAS)
        return ToolResult(self.domain.tidy(call.name, text), answer.error or self.domain.failed(call.name, text))

    async def _start_again(self, place: pool.ServerFolder) -> None:
        await (await self.domain.pool()).restart(place)
        self._check_tools(place)

    async def _read_digest(self) -> str:
        place = await self._opened()
        assert self._turn is not None
        async with self._turn:
            if self._digest is None:
                if self.domain._says("state_by_tools"):
                    state = await self.domain.state_by_tools(partial(self._told, place))
                else:
                    state = await asyncio.to_thread(self.domain.read_state, place.folder)
                self._digest = hashlib.sha256(canonical(state).encode()).hexdigest()
            return self._digest

    async def _told(self, place: pool.ServerFolder, tool: str, arguments: Mapping[str, Any]) -> str:
        assert place.connection is not None
        answer = await place.connection.call(tool, arguments)
        if answer.error:
            raise ServerError(f"{self.domain.name}: the state cannot be read: {tool} answers {answer.text[:200]!r}")
        return answer.text

    async def _close(self) -> None:
        self._closed = True
        place, self._place = self._place, None
        if place is not None:
            if self._drop is not None:
                self._drop.detach()
            await (await self.domain.pool()).give(place, good=self._good)


def discover(launch: Launch, lay_out: Callable[[Path], None] | None = None) -> dict[str, ServerTool]:
    """The tools that a server says it has. It is started for that, over an empty folder unless ``lay_out`` fills it.

    ServerError if it fails.
    """

    async def ask() -> dict[str, ServerTool]:
        source = pool.McpServerPool(launch, 1)
        place = await source.take(lay_out or (lambda folder: None))
        try:
            assert place.connection is not None
            return dict(place.connection.tools)
        finally:
            await source.give(place, good=False)

    return pool.waited_for(ask())


def _renamed(value: Any, old: str, new: str) -> Any:
    """Arguments with the agent's name for its folder replaced by the real path, where a string is or begins with it."""
    if isinstance(value, str):
        return new + value[len(old) :] if value == old or value.startswith(f"{old}/") else value
    if isinstance(value, Mapping):
        return {k: _renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renamed(v, old, new) for v in value]
    return value


def _abandon(source: pool.McpServerPool, place: pool.ServerFolder) -> None:
    """A world was forgotten before it was closed: its place is thrown away."""
    pool.hand_over(source.give(place, good=False))
