"""Many episodes: where they are played, groups of rollouts a task, budgets, and when to give a run up.

What infrastructure ended for good is excluded from its group (see episode_runner.py, which tries it again first).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from time import perf_counter
from typing import Protocol, Self

from muarl.accounts.budgets import Budget, RolloutEnd, add_besides, besides_of
from muarl.basics.errors import MuarlError
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest, requests_for
from muarl.types.episode import Episode, StopReason, Usage

__all__ = [
    "BoundedExecutor",
    "Budget",
    "Executor",
    "Group",
    "Groups",
    "LocalExecutor",
    "EpisodeRunner",
    "Progress",
    "Rollout",
    "RolloutEnd",
    "RolloutError",
    "RolloutRequest",
    "collect_groups",
    "requests_for",
    "rollout",
]

PlayEpisode = Callable[[RolloutRequest], Awaitable[Episode]]
Progress = Callable[[Episode, int, int], None]
Requests = Iterator[RolloutRequest] | AsyncIterator[RolloutRequest]


class Executor(Protocol):
    """Where episodes run. The local one is a loop over coroutines; a cluster's hands requests to other machines."""

    def run(self, requests: Requests) -> AsyncGenerator[Episode, None]:
        """Play every request and yield its one episode, as they finish, in any order.

        ``requests`` is drawn from lazily, when there is room for another episode; an asynchronous one may let a drawer
        wait, and several draw from it at once. An exception of whoever plays passes
        through; closing the iterator early cancels what is running.
        """
        ...


class BoundedExecutor(Executor, Protocol):
    """An executor that says how many episodes it plays at the same time."""

    concurrency: int


class LocalExecutor:
    """Plays episodes as coroutines of this process, at most ``concurrency`` at a time."""

    def __init__(self, play: PlayEpisode, concurrency: int = 256) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self.play = play
        self.concurrency = concurrency

    async def run(self, requests: Requests) -> AsyncGenerator[Episode, None]:
        """Play the requests; see ``Executor.run``."""
        finished: asyncio.Queue[Episode | BaseException | None] = asyncio.Queue()

        async def one(request: RolloutRequest) -> None:
            finished.put_nowait(await self.play(request))
            await asyncio.sleep(0)  # lets the reader count it before another one is drawn

        async def work(first: RolloutRequest | None) -> None:
            try:
                if first is not None:
                    await one(first)
                if isinstance(requests, AsyncIterator):
                    async for request in requests:
                        await one(request)
                else:
                    for request in requests:
                        await one(request)
            except BaseException as problem:
                finished.put_nowait(problem)
            else:
                finished.put_nowait(None)

        firsts: Iterable[RolloutRequest | None] = requests if isinstance(requests, Iterator) else repeat(None)
        workers = [asyncio.create_task(work(first)) for first in islice(firsts, self.concurrency)]
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
class Rollout:
    """The episodes of a rollout in the order of their requests, those that failed for good included."""

    episodes: list[Episode]
    end: RolloutEnd
    """Says whether a budget kept some requests from being played."""
    spent: Usage
    """Counts failed attempts too."""
    seconds: float


class RolloutError(MuarlError):
    """The run cannot continue. ``episodes`` are those that had finished."""

    def __init__(self, message: str, episodes: Sequence[Episode]) -> None:
        super().__init__(message)
        self.episodes = list(episodes)


async def rollout(
    requests: Sequence[RolloutRequest],
    executor: Executor,
    *,
    budget: Budget | None = None,
    give_up: int | None = None,
    rounds: int = 1,
    progress: Progress | None = None,
) -> Rollout:
    """Have one episode played and scored for each request, wherever ``executor`` plays them.

    ``progress`` is called with each episode when it is final, how many are, and how many there will be: keep the
    episode there if it must survive an interruption. ``rounds``: what infrastructure ended is restarted, from the
    same seed, when all others are done; in all so often. What was running when something broke is as a rule what
    takes long, and must not be missing for that.

    RolloutError where trying again cannot help, after ``give_up`` episodes in a row for which agent or user could not
    be reached, or for any other MuarlError; cancellation ends what is running.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    places = {r.episode_id: n for n, r in enumerate(requests)}
    if len(places) != len(requests):
        raise ValueError("requests: two have the same group and number")
    play = _Rollout(requests, places, executor, budget or Budget(), give_up, progress)
    started = perf_counter()
    try:
        waiting = list(requests)
        for left in reversed(range(rounds)):
            await play.round(waiting, last=left == 0)
            waiting = [requests[n] for n in sorted(play.held)]
            if not waiting or play.end is not RolloutEnd.COMPLETE:
                break
        for place in sorted(play.held):
            play.final(place, play.held.pop(place))
    except RolloutError:
        raise
    except MuarlError as problem:
        raise play.error(str(problem)) from problem
    return Rollout(_ordered(play.done), play.end, play.spent, perf_counter() - started)


@dataclass(slots=True)
class _Rollout:
    """The accounts of one rollout."""

    requests: Sequence[RolloutRequest]
    places: Mapping[str, int]
    executor: Executor
    budget: Budget
    give_up: int | None
    progress: Progress | None
    done: dict[int, Episode] = field(default_factory=dict)
    """Final episodes by the place of their request."""
    held: dict[int, Episode] = field(default_factory=dict)
    """Episodes that are to be restarted."""
    spent: Usage = field(default_factory=Usage)
    charged: Usage = field(default_factory=Usage)
    end: RolloutEnd = RolloutEnd.COMPLETE
    in_a_row: int = 0
    tickets: dict[str, int] = field(default_factory=dict)

    def affordable(self, requests: Iterable[RolloutRequest]) -> Requests:
        """Those that may begin, as far as the budget goes."""
        return _Affordable(self, requests) if self.budget.bounded else iter(requests)

    async def round(self, requests: Sequence[RolloutRequest], *, last: bool) -> None:
        """Play these requests; what infrastructure ended is final in the last round only."""
        before, self.held = self.held, {}
        running = self.executor.run(self.affordable(requests))
        try:
            async for episode in running:
                place = self.places[episode.id]
                if place in self.done or place in self.held:
                    raise RuntimeError(f"the executor gave the episode {episode.id} twice")
                self.spent += episode.agent_usage + episode.user_usage
                self.charged += self.budget.of(episode)
                if (ticket := self.tickets.pop(episode.id, None)) is not None:
                    self.budget.reserve.end(ticket, self.budget.whole(episode))
                earlier = before.pop(place, None)
                if earlier is not None:
                    add_up(episode, earlier)
                failed = episode.stop is StopReason.INFRASTRUCTURE
                if failed and episode.tags["retryable"] and not last:
                    self.held[place] = episode
                else:
                    self.final(place, episode)
                self.count(episode, failed)
        finally:
            self.held |= before  # not restarted
            await running.aclose()
            for ticket in self.tickets.values():
                self.budget.reserve.end(ticket, None)
            self.tickets.clear()

    def final(self, place: int, episode: Episode) -> None:
        self.done[place] = episode
        if self.progress is not None:
            self.progress(episode, len(self.done), len(self.requests))

    def count(self, episode: Episode, failed: bool) -> None:
        """RolloutError where it makes no sense to continue."""
        if failed and not episode.tags["retryable"]:
            raise self.error(f"The run stopped, since trying again cannot help. {episode.error}")
        gone = failed and episode.tags["boundary"] in ("agent", "user") and not episode.tags.get("void")
        self.in_a_row = self.in_a_row + 1 if gone else self.in_a_row if failed else 0
        if self.give_up is not None and self.in_a_row >= self.give_up:
            text = f"The run stopped: {self.in_a_row} episodes in a row failed. The last failure: {episode.error}"
            raise self.error(text)

    def error(self, text: str) -> RolloutError:
        return RolloutError(text, _ordered({**self.held, **self.done}))


class _Affordable:
    """The requests of a rollout, each as soon as the budget has room for it beside what is running."""

    def __init__(self, play: _Rollout, requests: Iterable[RolloutRequest]) -> None:
        self._play, self._left = play, deque(requests)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RolloutRequest:
        play, budget = self._play, self._play.budget
        while self._left:
            if (gone := budget.gone(play.charged)) is not None:
                play.end = gone
                break
            if budget.admits(play.charged):
                request = self._left.popleft()
                play.tickets[request.episode_id] = budget.reserve.begin()
                return request
            await budget.reserve.changed()
        raise StopAsyncIteration


def add_up(episode: Episode, earlier: Episode) -> None:
    """Put on an episode's account what earlier attempts at it took."""
    add_besides(episode, besides_of(earlier))
    episode.agent_usage += earlier.agent_usage
    episode.user_usage += earlier.user_usage
    episode.tags["attempts"] = int(episode.tags.get("attempts", 1)) + int(earlier.tags.get("attempts", 1))


def _ordered(done: Mapping[int, Episode]) -> list[Episode]:
    return [done[n] for n in sorted(done)]


@dataclass(frozen=True, slots=True)
class Group:
    """The scored rollouts of one task at one step."""

    task_id: str
    name: str
    episodes: list[Episode]
    excluded: int = 0
    """How many failed for reasons outside the policy."""

    @property
    def rewards(self) -> list[float]:
        """The rewards of its episodes, in order."""
        return [e.reward for e in self.episodes]


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a rollout."""

    kept: list[Group]
    """Groups to learn from."""
    dropped: list[Group] = field(default_factory=list)
    """Groups with fewer than ``minimum`` scored episodes."""
    minimum: int = 1


def collect_groups(episodes: Iterable[Episode], rollouts: int, *, minimum: int | None = None) -> Groups:
    """Sort episodes into groups, leaving out those that infrastructure ended, or a user spoiled.

    ``rollouts``: the intended size of a group. ``minimum``: the smallest viable one, None for three quarters of the
    intended size, rounded up.
    """
    least = math.ceil(0.75 * rollouts) if minimum is None else minimum
    by_group: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_group.setdefault(episode.group or episode.task_id, []).append(episode)
    groups = []
    for name, members in by_group.items():
        scored = [e for e in members if e.learnable]
        groups.append(Group(members[0].task_id, name, scored, len(members) - len(scored)))
    viable = [g for g in groups if len(g.episodes) >= max(least, 1)]
    return Groups(viable, [g for g in groups if len(g.episodes) < max(least, 1)], least)
