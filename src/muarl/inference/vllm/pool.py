"""Several servers as one: who serves which session, who is up, and which weights they must have.

Lives in one event loop. A server that is lost fails what it was asked; its sessions go to others, and if it is ours it
is started again and given the newest weights before it serves. All waiting has a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from muarl.basics.child import Child, end_all
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError, MuarlError
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.vllm.link import Link
from muarl.inference.vllm.process import reason

SESSIONS = 100_000
"""Sessions that are remembered; who never closes them must not fill the memory."""
UPLOAD_BYTES = 16 << 20
RETRY_FIRST, RETRY_LAST = 0.2, 10.0


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server: its name in messages, where it listens, how it is started (None: by somebody else), and whether it
    can read the files that weights are written to."""

    name: str
    address: str
    start: Callable[[], Child] | None = None
    shares_files: bool = True


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds to wait, and how often to start again."""

    deadline: float = 600.0
    """For one completion with its waiting."""
    start: float = 600.0
    """For a server to come up."""
    update: float = 600.0
    """For an update."""
    health_every: float = 5.0
    """Between health checks."""
    health: float = 60.0
    """For the answer to one."""
    grace: float = 5.0
    """For a server to stop."""
    restarts: int = 3
    """How often each server of ours is started again, in all."""


@dataclass(slots=True, eq=False)
class ServerState:
    """What the pool knows of a server. "stale": up, but without the newest weights until the next update."""

    plan: ServerPlan
    restarts: int
    state: Literal["starting", "stale", "ready", "lost", "dead"] = "starting"
    link: Link | None = None
    process: Child | None = None
    problem: str = ""
    sessions: int = 0
    asked: int = 0

    @property
    def load(self) -> tuple[int, int]:
        """How much it has to do: requests and sessions, then sessions ever."""
        return self.sessions + (self.link.pending if self.link else 0), self.asked


@dataclass(slots=True)
class Newest:
    """The weights that every server must have: files, an adapter on them, or sent without files."""

    version: int = 0
    paths: Sequence[Path] = ()
    adapter: Path | None = None
    direct: bool = False
    """Sent without files."""


@dataclass(slots=True)
class VllmPool:
    """See the module's docstring. ``start`` first, ``aclose`` last."""

    plans: Sequence[ServerPlan]
    token: str
    patience: Patience = field(default_factory=Patience)
    servers: list[ServerState] = field(default_factory=list)
    newest: Newest = field(default_factory=Newest)
    restarted: int = 0
    updating: asyncio.Lock = field(default_factory=asyncio.Lock)
    _sticky: OrderedDict[str, ServerState] = field(default_factory=OrderedDict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _up: bool = False

    async def start(self) -> None:
        """Bring all servers up. InfrastructureError if one does not come up; all are stopped then."""
        self.servers = [ServerState(plan, self.patience.restarts) for plan in self.plans]
        self._tasks = [asyncio.create_task(self._keep(s)) for s in self.servers]
        while any(s.state == "starting" for s in self.servers) and not any(s.state == "dead" for s in self.servers):
            await self._changed.wait()
        for server in self.servers:
            if server.state == "dead":
                raise InfrastructureError(server.problem, boundary="agent", retryable=False)
        self._up = True

    async def aclose(self) -> None:
        """Stop our servers and close all connections."""
        for task in self._tasks:
            task.cancel()
        for server in self.servers:
            server.state, server.problem = "dead", "the engine was closed"
            if server.link is not None:
                server.link.break_off("the engine was closed")
        end_all((s.process for s in self.servers if s.process is not None), self.patience.grace)
        self.notify()

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None) -> Completion:
        """One completion by the session's server; see ``Sampler``."""
        server = await self._route(session)
        assert server.link is not None
        return await server.link.sample(prompt_ids, params, self.patience.deadline)

    def forget(self, session: str) -> None:
        """The session is over."""
        server = self._sticky.pop(session, None)
        if server is not None:
            server.sessions -= 1

    async def update(self, newest: Newest) -> None:
        """Give all servers that are up these weights, or only their adapter if the files are the same; others get them
        when they come up.

        The error of the weights (ConfigError, CheckpointError) if they cannot be used, InfrastructureError if no server
        could take them; servers that are started again then get the last ones. A server that fails alone is started
        again and gets these.
        """
        async with self.updating:
            before = self.newest
            whole = list(newest.paths) != list(before.paths)
            self.newest = newest
            try:
                await self.settle({s: self._apply(s, whole) for s in self.servers if s.state in ("ready", "stale")})
            except BaseException:
                self.newest = before  # servers that are started again get weights that are known to work
                raise

    async def sleep(self) -> None:
        """Have all servers that are up give their memory back until the next ``update``. One that cannot is started
        again. InfrastructureError, or the error of its settings, if none can."""
        async with self.updating:
            links = [s.link for s in self.servers if s.state in ("ready", "stale") and s.link is not None]
            asked = (link.ask("sleep", seconds=self.patience.update) for link in links)
            done = await asyncio.gather(*asked, return_exceptions=True)
            problems = [d for d in done if isinstance(d, BaseException)]
            for link, problem in zip(links, done, strict=True):
                if isinstance(problem, BaseException):
                    link.break_off(f"it could not be put to sleep: {problem or type(problem).__name__}")
            if problems and len(problems) == len(links):
                if isinstance(problems[0], MuarlError):
                    raise problems[0]
                text = f"no server could be put to sleep: {problems[0] or type(problems[0]).__name__}"
                raise InfrastructureError(text, boundary="agent") from problems[0]

    async def settle(self, work: Mapping[ServerState, Any]) -> None:
        """Wait for what updates the servers; see ``update``."""
        results = await asyncio.gather(*work.values(), return_exceptions=True)
        failed = {s: r for s, r in zip(work, results, strict=True) if isinstance(r, BaseException)}
        for server, problem in failed.items():
            if server.link is not None:
                server.link.break_off(f"an update of weights failed: {problem or type(problem).__name__}")
        for server in work:
            if server not in failed and server.state == "stale":
                server.state = "ready"
        self.notify()
        if failed and len(failed) == len(work):
            first = next(iter(failed.values()))
            if isinstance(first, (ConfigError, CheckpointError)):
                raise first
            raise InfrastructureError(
                f"no server could take the weights of version {self.newest.version}: {first or type(first).__name__}",
                boundary="agent",
            ) from first

    # ---- who serves whom

    async def _route(self, session: str | None) -> ServerState:
        """The session's server, or the one with the least to do; waits for one if none is up."""
        server = self._sticky.get(session) if session is not None else None
        if server is not None and server.state == "ready":
            return server
        server = await self._free()
        if session is not None:
            self.forget(session)
            self._sticky[session] = server
            server.sessions += 1
            if len(self._sticky) > SESSIONS:
                self.forget(next(iter(self._sticky)))
        server.asked += 1
        return server

    async def _free(self) -> ServerState:
        try:
            async with asyncio.timeout(self.patience.start):
                while True:
                    ready = [s for s in self.servers if s.state == "ready"]
                    if ready:
                        return min(ready, key=lambda s: s.load)
                    if all(s.state == "dead" for s in self.servers):
                        problem = self.servers[0].problem
                        raise InfrastructureError(f"no server is left: {problem}", boundary="agent", retryable=False)
                    await self._changed.wait()
        except TimeoutError:
            problem = next((s.problem for s in self.servers if s.problem), "none came up")
            raise InfrastructureError(
                f"no server was up for {self.patience.start:g} seconds: {problem}", boundary="agent"
            ) from None

    # ---- keeping servers up

    async def _keep(self, server: ServerState) -> None:
        """Bring a server up, watch it, and begin again when it is lost."""
        wait = RETRY_FIRST
        while True:
            try:
                await self._bring_up(server)
                wait = RETRY_FIRST
                server.problem = await self._watch(server)
            except MuarlError as problem:
                server.problem = str(problem)
            except Exception as problem:  # whatever it was, nobody may wait for ever
                server.problem = f"{server.plan.name}: {type(problem).__name__}: {problem}"
            self._take_down(server)
            if not self._up or (server.plan.start is not None and server.restarts == 0):
                server.state = "dead"
                self.notify()
                return
            server.restarts -= server.plan.start is not None
            self.restarted += server.plan.start is not None
            self.notify()
            await asyncio.sleep(wait)
            wait = min(2 * wait, RETRY_LAST)

    async def _bring_up(self, server: ServerState) -> None:
        plan = server.plan
        if plan.start is not None:
            if ":" not in plan.address:
                Path(plan.address).unlink(missing_ok=True)
            server.process = plan.start()
        try:
            async with asyncio.timeout(self.patience.start):
                server.link = await self._connect(server)
        except TimeoutError:
            raise InfrastructureError(
                f"{plan.name} was not up after {self.patience.start:g} seconds (engine.start_deadline)",
                boundary="agent",
            ) from None
        async with self.updating:
            if self.newest.paths or self.newest.adapter:
                await self._apply(server, whole=bool(self.newest.paths))
            server.state = "stale" if self.newest.direct else "ready"
        self.notify()

    async def _connect(self, server: ServerState) -> Link:
        plan, wait = server.plan, RETRY_FIRST
        while True:
            try:
                return await Link.open(plan.name, plan.address, self.token, self.patience.start)
            except InfrastructureError as problem:
                if server.process is not None and server.process.ended is not None:
                    text = f"{plan.name} ended while it started: {reason(server.process)}"
                    raise InfrastructureError(text, boundary="agent") from problem
                if not problem.retryable:
                    raise
                server.problem = str(problem)
            await asyncio.sleep(wait)
            if server.process is None:
                wait = min(2 * wait, RETRY_LAST)

    async def _watch(self, server: ServerState) -> str:
        """Until the connection is lost; why it was."""
        link = server.link
        assert link is not None
        while True:
            done, _ = await asyncio.wait([link.closed], timeout=self.patience.health_every)
            if done:
                return str(link.failure())
            try:
                await link.ask("ping", seconds=self.patience.health)
            except TimeoutError:
                link.break_off(f"it did not answer a health check in {self.patience.health:g} seconds")
            except MuarlError as problem:
                link.break_off(str(problem))

    def _take_down(self, server: ServerState) -> None:
        server.state = "lost"
        if server.link is not None:
            server.link.break_off(server.problem)
            server.link = None
        if server.process is not None:
            if server.process.ended is not None:
                server.problem += f" (its last words: {reason(server.process)})"
            server.process.end(0)
            server.process = None
        for session in [s for s, at in self._sticky.items() if at is server]:
            self.forget(session)

    def notify(self) -> None:
        """Tell those who wait that the servers' states have changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    # ---- weights

    async def _apply(self, server: ServerState, whole: bool) -> None:
        """Give one server the newest weights, all or only the adapter on them."""
        newest, link = self.newest, server.link
        assert link is not None
        shared = server.plan.shares_files
        ask: dict[str, Any] = {"seconds": self.patience.update}
        with _told_late(server.plan.name, self.patience.update):
            if whole and newest.paths:
                files = [str(p) for p in newest.paths] if shared else []
                uploads = [] if shared else [await self._upload(link, p, p.name) for p in newest.paths]
                fields = {"paths": files, "uploads": uploads, "version": newest.version}
                await link.ask("load", fields, **ask)
            if newest.adapter is not None:
                where = {"folder": str(newest.adapter)}
                if not shared:
                    for path in sorted(newest.adapter.iterdir()):
                        await self._upload(link, path, f"{newest.adapter.name}/{path.name}")
                    where = {"upload": newest.adapter.name}
                await link.ask("adapt", {**where, "version": newest.version}, **ask)

    async def _upload(self, link: Link, path: Path, name: str) -> str:
        with open(path, "rb") as file:
            offset = 0
            while True:
                piece = await asyncio.to_thread(file.read, UPLOAD_BYTES)
                if not piece and offset:
                    return name
                await link.ask("upload", {"name": name, "offset": offset}, piece, seconds=self.patience.update)
                if not piece:
                    return name
                offset += len(piece)


@contextlib.contextmanager
def _told_late(name: str, seconds: float) -> Any:
    try:
        yield
    except TimeoutError:
        raise InfrastructureError(
            f"{name} did not take new weights in {seconds:g} seconds (engine.update_deadline)", boundary="agent"
        ) from None
