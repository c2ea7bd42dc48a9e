"""What the server does, without the wire: it lists tasks, plays conversations, and lets clients lead some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from muarl.agents.outside import SaidOutside, SampledTokens
from muarl.basics.errors import MuarlError
from muarl.basics.event_loop import Closable
from muarl.basics.web.json_api import ApiError, invalid
from muarl.config.rollout import RetrievalConfig
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.connections import Connections
from muarl.environments.environment import Environment
from muarl.environments.play import play
from muarl.environments.results import PlayResult, tools_json
from muarl.environments.task_addresses import TaskAddress
from muarl.rewards.judge import Judge
from muarl.rollouts.rules import Limits
from muarl.users.base import UserFactory
from muarl_tools.serve_environments.held import HeldSession, HeldSessions, Room
from muarl_tools.serve_environments.requests import LimitsField, PlaceRequest, RunRequest, StepRequest, TaskQuery

TASKS_KEPT = 4096
"""Tasks that are kept once they are made: the rollouts of one share it, and the state that is right in its end."""


@dataclass(frozen=True, kw_only=True)
class ServedEnvironments:
    """What is served.

    ``split``, ``size``: where a request does not say; None: "train", or the only ones, and the smallest. ``users``: who
    plays the customers, None for each environment's rule-based ones. ``base_urls``: what the address of a client's
    model must begin with; empty: it may be any. ``concurrency``: conversations at once; ``queue``: requests that wait
    for one; ``idle``: seconds after which a session is closed that nobody asks for. ``clock``: for tests.
    """

    environments: Sequence[Environment]
    users: UserFactory | Endpoint | None = None
    judge: Judge | None = None
    split: str | None = None
    size: str | None = None
    base_urls: Sequence[str] = ()
    concurrency: int = 1024
    queue: int = 1024
    idle: float = 900.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


class EnvironmentService:
    """Answers requests. Belongs to one event loop."""

    def __init__(self, served: ServedEnvironments) -> None:
        self.served = served
        self.by_name: Mapping[str, Environment] = {e.name: e for e in served.environments}
        self.sessions = HeldSessions(served.idle, served.clock)
        self.room = Room(served.concurrency, served.queue)
        self.played = 0
        self._connections = Connections()
        self._task = lru_cache(TASKS_KEPT)(self._make_task)

    # ---- tasks

    def about(self) -> dict[str, Any]:
        """The environments that are served."""
        return {
            "environments": [
                {
                    "name": e.name,
                    "about": e.about,
                    "splits": list(e.splits),
                    "sizes": list(e.sizes),
                    "endless": e.endless,
                    "benchmark": e.is_benchmark,
                }
                for e in self.served.environments
            ]
        }

    async def tasks(self, wanted: TaskQuery) -> dict[str, Any]:
        """Tasks of a split by number: their ids and addresses. ``total`` is None where they are made without end."""
        environment = self.environment(wanted.environment)
        split, size = self.split(environment, wanted.split), wanted.size or self.served.size
        with as_invalid():
            source, found = environment.iter_tasks(split, size=size, seed=wanted.seed, start=wanted.start), []
            for _ in range(wanted.count):
                task = next(source, None)
                if task is None:
                    break
                address = task.origin.address
                found.append({"index": address.index, "id": task.id, "task": str(address)})
                await asyncio.sleep(0)  # conversations go on meanwhile
            total = None if environment.endless else len(environment.fixed_tasks(split))
        return {"environment": environment.name, "split": split, "total": total, "tasks": found}

    def find_task(self, wanted: PlaceRequest) -> Task:
        """The task that a request is about. ApiError if there is none."""
        if wanted.task is not None:
            if wanted.split is not None or wanted.index is not None:
                raise invalid("give either task, or split and index", "task")
            with as_invalid("task"):
                place = TaskAddress.parse(wanted.task)
            self.environment(place.environment, "task")  # no other is played, and no code imported
        else:
            if wanted.index is None:
                raise invalid("give task, an address such as NAME:train:17, or split and index", "task")
            environment = self.environment(wanted.environment)
            split, size = self.split(environment, wanted.split), wanted.size or self.served.size
            place = TaskAddress(environment.name, split, wanted.index, size, wanted.task_seed)
        with as_invalid("task"):
            return self._task(place)

    def split(self, environment: Environment, wanted: str | None) -> str:
        """The split that a request is about, where it need not say one."""
        usual = "train" if "train" in environment.splits else environment.splits[0]
        return wanted or self.served.split or usual

    def _make_task(self, place: TaskAddress) -> Task:
        return self.by_name[place.environment].task(place.split, place.index, size=place.size, seed=place.seed)

    def environment(self, name: str | None, field: str = "environment") -> Environment:
        """The environment that a request is about; None: the only one. ApiError if that is not served."""
        names = ", ".join(self.by_name)
        if name is None:
            if len(self.by_name) > 1:
                raise invalid(f"say which; this server has {names}", field)
            return self.served.environments[0]
        if name not in self.by_name:
            raise invalid(f"this server has no environment {name!r}; it has {names}", field)
        return self.by_name[name]

    # ---- whole conversations

    async def run(self, wanted: RunRequest) -> dict[str, Any]:
        """Play one task with the client's model: the result. A failure outside the model is part of it."""
        self._check_address(wanted.base_url)
        task = self.find_task(wanted)
        await self.room.wait()
        try:
            with as_invalid():
                result = await play(
                    task,
                    base_url=wanted.base_url,
                    model=wanted.model,
                    api_key=wanted.api_key.get_secret_value(),
                    seed=wanted.seed,
                    user_seed=wanted.user_seed,
                    users=self.served.users,
                    judge=self.served.judge,
                    limits=_limits(task, wanted.limits),
                    retries=wanted.retries,
                    connections=self._connections,
                    **wanted.options,
                )
        finally:
            self.room.give_back()
        self.played += 1
        return {"task": str(task.origin.address), "seed": wanted.seed, **result.to_json()}

    def _check_address(self, url: str) -> None:
        allowed = self.served.base_urls
        if allowed and not any(_begins_with(url, prefix) for prefix in allowed):
            raise ApiError(
                403,
                f"base_url: this server asks only models at {', '.join(allowed)} (its option --allow-base-url)",
                code="base_url_not_allowed",
                param="base_url",
            )

    # ---- conversations that clients lead

    async def create(self, wanted: PlaceRequest) -> dict[str, Any]:
        """Begin a conversation: what the agent is told, and the user's first message."""
        task = self.find_task(wanted)
        held = await self.begin(task, wanted.seed, wanted.user_seed, limits=_limits(task, wanted.limits))
        return {"seed": wanted.seed, "system": held.session.observation.system, **_state(held)}

    async def begin(
        self,
        task: Task,
        seed: int,
        user_seed: int | None = None,
        *,
        limits: Limits | None = None,
        idle: float | None = None,
        wait: bool = False,
        retrieval: RetrievalConfig | None = None,
    ) -> HeldSession:
        """A conversation that has begun and is held for its client.

        ``limits``: None for the environment's own. ``idle``: seconds after which it is closed if nobody asks for it,
        None for the server's. ``wait``: for a place, where there is none. ``retrieval``: how documents are found.
        ApiError for what cannot be played, or if there is no place.
        """
        served, address = self.served, task.origin.address
        await (self.room.wait() if wait else self.room.take())
        try:
            with as_invalid():
                session = self.by_name[address.environment].start(
                    task,
                    seed=seed,
                    user_seed=user_seed,
                    users=served.users,
                    limits=limits,
                    judge=served.judge,
                    retrieval=retrieval,
                )
        except BaseException:
            self.room.give_back()
            raise
        patience = served.idle if idle is None else idle
        held = HeldSession(session, str(address), self.room, self.sessions.clock, patience)
        try:
            with held.asked(), as_invalid():
                await session.opened()
        except BaseException:  # the client has gone, perhaps
            await held.aclose()
            raise
        self.sessions.add(held)
        return held

    async def step(self, name: str, wanted: StepRequest) -> dict[str, Any]:
        """Say the agent's next message: what came of it."""
        held = self.sessions.find(name)
        tokens = None if wanted.tokens is None else wanted.tokens.sampled()
        await self.say(held, wanted.message, stop=wanted.stop, tokens=tokens)
        return _state(held)

    async def say(
        self, held: HeldSession, message: SaidOutside, *, stop: str | None = None, tokens: SampledTokens | None = None
    ) -> None:
        """The agent's next message. ApiError if it is not its turn, or for what is no message."""
        if not held.session.waiting:
            said = (
                "The conversation is over." if held.session.done else "It is not the agent's turn: a step is running."
            )
            raise ApiError(409, said, code="not_your_turn")
        with held.asked(), as_invalid():
            await held.session.step(message, stop=stop, tokens=tokens)
        if held.session.done:
            self.played += 1

    async def look(self, name: str) -> dict[str, Any]:
        """How a conversation stands, with all that the agent has seen."""
        held = self.sessions.find(name)
        with held.asked():
            held.told = None
            return {**_state(held), "conversation": held.session.messages}

    async def delete(self, name: str) -> None:
        """End a conversation."""
        await self.sessions.remove(self.sessions.find(name))

    async def abandon(self, begun: Mapping[str, Any]) -> None:
        """End a conversation whose client went away before it was told that it has begun, and so knows no id of it."""
        await self.delete(begun["id"])

    async def expire(self) -> int:
        """Close the sessions that nobody asks for; how many they were."""
        return await self.sessions.expire()

    # ---- the end

    async def aclose(self) -> None:
        """Close all sessions, and the connections to users, judges and models."""
        self.room.stopping = True
        await self.sessions.aclose()
        for part in (self._connections, self.served.users, self.served.judge):
            if isinstance(part, Closable):
                await part.aclose()


def _limits(task: Task, asked: LimitsField | None) -> Limits | None:
    return None if asked is None else asked.over(task.origin.environment.place().limits)


def _state(held: HeldSession) -> dict[str, Any]:
    session = held.session
    seen = session.observation
    out: dict[str, Any] = {
        "id": held.id,
        "task": held.address,
        "done": session.done,
        "messages": seen.openai_messages,
        **_result(session.result if session.episode is not None else None),
    }
    if held.told != seen.tools:
        held.told = seen.tools
        out["tools"] = tools_json(seen.tools)
    return out


def _result(result: PlayResult | None) -> dict[str, Any]:
    if result is None:
        return {"reward": None, "parts": {}, "failure": None, "stop": None}
    return {k: v for k, v in result.to_json().items() if k not in ("messages", "tools", "task_id")}


class as_invalid:
    """Within, a problem that the client can fix becomes an ApiError that names the field."""

    def __init__(self, field: str | None = None) -> None:
        self._field = field

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, MuarlError):
            raise invalid(str(problem), self._field) from None


def _begins_with(url: str, prefix: str) -> bool:
    """Whether an address lies below another: the same scheme, host and port, and a path within its path."""
    try:
        one, other = urlsplit(url), urlsplit(prefix)
        same = (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
    except ValueError:
        return False
    inside = f"{one.path.rstrip('/')}/".startswith(f"{other.path.rstrip('/')}/")
    return same and inside and not one.username and ".." not in _decoded(one.path)


def _decoded(path: str) -> str:
    """A path as whoever serves it may read it: ``%2e`` is a point there, and behind a proxy ``%252e``, too."""
    while (plain := unquote(path)) != path:
        path = plain
    return path
