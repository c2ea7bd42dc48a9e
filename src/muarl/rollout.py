"""Many episodes: groups of rollouts a task, bounded concurrency, budgets, and what to do when something breaks.

Something outside the policy that fails (an endpoint, a sampler) is tried again, then excluded from its group: it never
counts as the policy's failure. What a limit cut is the policy's own doing: reward 0, and it stays.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import perf_counter
from typing import Protocol

from muarl.agents.base import Agent
from muarl.chat import ToolSpec
from muarl.conversation import Limits, Rules, run_episode
from muarl.domains.base import Task, World
from muarl.episode import Episode, StopReason, Usage, Verdict
from muarl.errors import InfrastructureError, MuarlError
from muarl.seeds import derive_seed
from muarl.users.base import UserFactory

MakeWorld = Callable[[Task], World]
Score = Callable[[Task, World, Episode], Verdict | Awaitable[Verdict]]
Audit = Callable[[Task, World, Episode], Mapping[str, float]]
Progress = Callable[[Episode, int, int], None]


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One episode to play. ``group`` names the rollouts that are compared with each other, ``number`` counts
    them.

    The agent's randomness follows from ``seed``; the user's from ``user_seed``, or from ``seed`` where that is None.
    ``one_seed``: the user is given that seed itself, as TAU2 gives both sides the same one.
    """

    task: Task
    seed: int
    group: str
    number: int = 0
    user_seed: int | None = None
    one_seed: bool = False

    @property
    def episode_id(self) -> str:
        """Unique among the requests of a rollout."""
        return f"{self.group}#{self.number}"


def requests_for(
    tasks: Iterable[Task], rollouts: int, *, seed: int, label: str = "", same_user: bool = False
) -> list[RolloutRequest]:
    """``rollouts`` requests a task, tasks in order. ``label`` (such as the training step) enters group names and seeds.

    ``same_user``: all rollouts of a task meet a user of the same seed, so that they differ only by what the agent does.
    """
    out = []
    for task in tasks:
        group = f"{label}/{task.id}" if label else task.id
        user = derive_seed(seed, group, "user") if same_user else None
        out += [RolloutRequest(task, derive_seed(seed, group, n), group, n, user) for n in range(rollouts)]
    return out


class Executor(Protocol):
    """Where episodes run. The local one is a loop over coroutines; a cluster's hands requests to other machines."""

    def run(
        self, play: Callable[[RolloutRequest], Awaitable[Episode]], requests: Iterator[RolloutRequest]
    ) -> AsyncGenerator[Episode, None]:
        """Play every request and yield the episodes as they finish, in any order.

        ``requests`` is drawn from lazily, when there is room for another episode. An exception of ``play`` passes
        through; closing the iterator early cancels what is under way.
        """
        ...


class LocalExecutor:
    """Runs episodes as coroutines of this process, at most ``concurrency`` at a time."""

    def __init__(self, concurrency: int = 256) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self.concurrency = concurrency

    async def run(
        self, play: Callable[[RolloutRequest], Awaitable[Episode]], requests: Iterator[RolloutRequest]
    ) -> AsyncGenerator[Episode, None]:
        """Play the requests; see ``Executor.run``."""
        finished: asyncio.Queue[Episode | BaseException | None] = asyncio.Queue()

        async def work(first: RolloutRequest) -> None:
            try:
                finished.put_nowait(await play(first))
                await asyncio.sleep(0)  # lets the reader count it before another one is drawn
                for request in requests:
                    finished.put_nowait(await play(request))
                    await asyncio.sleep(0)
            except BaseException as problem:
                finished.put_nowait(problem)
            else:
                finished.put_nowait(None)

        workers = []
        for request in requests:
            workers.append(asyncio.create_task(work(request)))
            if len(workers) == self.concurrency:
                break
        try:
            working = len(workers)
            while working:
                item = await finished.get()
                if item is None:
                    working -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a rollout may spend: US dollars, and tokens (prompt and completion, agent and users). None: no bound.

    When it is spent, no new episode begins; those under way finish. ``besides``: what else counts against it, such as
    the judge's usage and what an interrupted run had spent.
    """

    cost: float | None = None
    tokens: int | None = None
    besides: Callable[[], Usage] | None = None

    def gone(self, spent: Usage) -> RolloutEnd | None:
        """Which of the bounds is reached, None if neither."""
        total = spent if self.besides is None else spent + self.besides()
        if self.cost is not None and total.cost >= self.cost:
            return RolloutEnd.COST
        if self.tokens is not None and total.prompt_tokens + total.completion_tokens >= self.tokens:
            return RolloutEnd.TOKENS
        return None


class RolloutEnd(StrEnum):
    """Why a rollout ended."""

    COMPLETE = "complete"
    COST = "cost_budget"
    TOKENS = "token_budget"


@dataclass(frozen=True, slots=True)
class Rollout:
    """The episodes of a rollout in the order of their requests, those that failed for good included.

    ``end`` says whether a budget kept some requests from being played; ``spent`` counts failed attempts too.
    """

    episodes: list[Episode]
    end: RolloutEnd
    spent: Usage
    seconds: float


class RolloutError(MuarlError):
    """The run cannot go on. ``episodes`` are those that had finished."""

    def __init__(self, message: str, episodes: Sequence[Episode]) -> None:
        super().__init__(message)
        self.episodes = list(episodes)


async def rollout(
    requests: Sequence[RolloutRequest],
    *,
    make_world: MakeWorld,
    agent: Agent,
    make_user: UserFactory,
    score: Score,
    audit: Audit | None = None,
    limits: Limits | None = None,
    rules: Rules | None = None,
    system: Callable[[Task], str | None] | str | None = None,
    tools: Callable[[Task], Sequence[ToolSpec] | None] | Sequence[ToolSpec] | None = None,
    executor: Executor | None = None,
    retries: int = 2,
    score_cut: bool = False,
    backoff: float = 1.0,
    budget: Budget | None = None,
    give_up: int | None = None,
    progress: Progress | None = None,
) -> Rollout:
    """Play and score one episode per request.

    ``score`` (it may be a coroutine) gets the world as the episode left it; it is not asked about episodes that a limit
    cut, unless ``score_cut``: they get reward 0 with the part "finished": 0.0.

    ``audit`` adds figures to every verdict. ``progress`` is called with each episode when it is final, how many are,
    and how many there will be: keep the episode there if it must survive an interruption.

    An episode that ends with ``infrastructure`` is played again in a fresh world, up to ``retries`` times, after a
    random wait below ``backoff`` * 2**attempt seconds; ``tags["attempts"]`` counts from the second on. RolloutError
    where trying again cannot help, after ``give_up`` episodes in a row for which agent or user could not be reached, or
    for any other MuarlError; cancellation closes all sessions.

    ``system`` and ``tools``: what the agent is told, None for the domain's policy and tools for the task. Every world
    is closed once its episode is scored.
    """
    if retries < 0:
        raise ValueError(f"retries must not be negative, not {retries}")
    budget = budget or Budget()
    started = perf_counter()
    spent = Usage()
    end = RolloutEnd.COMPLETE
    places = {r.episode_id: n for n, r in enumerate(requests)}
    if len(places) != len(requests):
        raise ValueError("requests: two have the same group and number")
    done: dict[int, Episode] = {}

    async def play(request: RolloutRequest) -> Episode:
        wait = random.Random(request.seed)
        lost = Usage(), Usage()
        for attempt in range(retries + 1):
            episode = await attempt_once(request, attempt)
            episode.agent_usage, episode.user_usage = episode.agent_usage + lost[0], episode.user_usage + lost[1]
            if attempt:
                episode.tags["attempts"] = attempt + 1
            if episode.stop is not StopReason.INFRASTRUCTURE or not episode.tags["retryable"] or attempt == retries:
                break
            lost = episode.agent_usage, episode.user_usage
            await asyncio.sleep(wait.uniform(0, backoff * 2**attempt))
        return episode

    async def attempt_once(request: RolloutRequest, attempt: int) -> Episode:
        name = request.episode_id
        world = make_world(request.task)
        try:
            episode = await attempt_in(world, request, name, attempt)
        except BaseException:
            await _close(world)
            raise
        unclosed = await _close(world)
        if unclosed is not None:
            episode.tags["unclosed"] = unclosed
        return episode

    async def attempt_in(world: World, request: RolloutRequest, name: str, attempt: int) -> Episode:
        task = request.task
        user_seed = request.seed if request.user_seed is None else request.user_seed
        episode = await run_episode(
            task,
            world,
            agent,
            make_user(task, seed=user_seed if request.one_seed else derive_seed(user_seed, "user")),
            limits,
            seed=request.seed,
            episode_id=f"{name}+{attempt}" if attempt else name,
            group=request.group,
            rules=rules,
            user_name=make_user.name,
            system=system(task) if callable(system) else system,
            tools=tools(task) if callable(tools) else tools,
        )
        episode.id = name
        if episode.stop is StopReason.INFRASTRUCTURE:
            return episode
        try:
            episode.verdict = await _verdict(task, world, episode, score, audit, score_cut)
        except InfrastructureError as failure:
            episode.error = f"{failure.boundary}: {failure}"
            episode.tags |= {
                "boundary": failure.boundary,
                "retryable": failure.retryable,
                "stopped": episode.stop.value,
            }
            episode.stop = StopReason.INFRASTRUCTURE
        return episode

    def affordable() -> Iterator[RolloutRequest]:
        nonlocal end
        for request in requests:
            if (gone := budget.gone(spent)) is not None:
                end = gone
                return
            yield request

    running = (executor or LocalExecutor()).run(play, affordable())
    in_a_row = 0
    try:
        async for episode in running:
            done[places[episode.id]] = episode
            spent += episode.agent_usage + episode.user_usage
            if progress is not None:
                progress(episode, len(done), len(requests))
            failed = episode.stop is StopReason.INFRASTRUCTURE
            if failed and not episode.tags["retryable"]:
                raise RolloutError(f"The run stopped, since trying again cannot help. {episode.error}", _ordered(done))
            gone = failed and episode.tags["boundary"] in ("agent", "user") and not episode.tags.get("void")
            in_a_row = in_a_row + 1 if gone else in_a_row if failed else 0
            if give_up is not None and in_a_row >= give_up:
                text = f"The run stopped: {in_a_row} episodes in a row failed. The last failure: {episode.error}"
                raise RolloutError(text, _ordered(done))
    except RolloutError:
        raise
    except MuarlError as problem:
        raise RolloutError(str(problem), _ordered(done)) from problem
    finally:
        await running.aclose()
    return Rollout(_ordered(done), end, spent, perf_counter() - started)


async def _close(world: World) -> str | None:
    """Close a world; what goes wrong then is told, since it must not cost the finished episode."""
    try:
        await world.aclose()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


async def _verdict(
    task: Task, world: World, episode: Episode, score: Score, audit: Audit | None, score_cut: bool
) -> Verdict:
    if episode.stop.truncated and not score_cut:
        verdict = Verdict(0.0, {"finished": 0.0}, note=f"cut: {episode.stop.value}")
    else:
        given = score(task, world, episode)
        verdict = await given if inspect.isawaitable(given) else given
    return verdict if audit is None else replace(verdict, audit={**verdict.audit, **audit(task, world, episode)})


def _ordered(done: Mapping[int, Episode]) -> list[Episode]:
    return [done[n] for n in sorted(done)]


@dataclass(frozen=True, slots=True)
class Group:
    """The scored rollouts of one task at one step. ``excluded``: how many failed for reasons outside the policy."""

    task_id: str
    name: str
    episodes: list[Episode]
    excluded: int = 0

    @property
    def rewards(self) -> list[float]:
        """The rewards of its episodes, in order."""
        return [e.reward for e in self.episodes]


@dataclass(frozen=True, slots=True)
class Groups:
    """``kept``: groups to learn from. ``dropped``: those with fewer than ``minimum`` scored episodes."""

    kept: list[Group]
    dropped: list[Group] = field(default_factory=list)
    minimum: int = 1


def collect_groups(episodes: Iterable[Episode], rollouts: int, *, minimum: int | None = None) -> Groups:
    """Sort episodes into groups, leaving out those that infrastructure ended.

    ``rollouts``: the intended size of a group. ``minimum``: the smallest viable one, None for three quarters of the
    intended size, rounded up.
    """
    least = math.ceil(0.75 * rollouts) if minimum is None else minimum
    found: dict[str, list[Episode]] = {}
    for episode in episodes:
        found.setdefault(episode.group or episode.task_id, []).append(episode)
    groups = []
    for name, members in found.items():
        scored = [e for e in members if e.stop is not StopReason.INFRASTRUCTURE]
        groups.append(Group(members[0].task_id, name, scored, len(members) - len(scored)))
    viable = [g for g in groups if len(g.episodes) >= max(least, 1)]
    return Groups(viable, [g for g in groups if len(g.episodes) < max(least, 1)], least)
