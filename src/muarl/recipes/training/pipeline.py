"""Rollouts that do not wait for the learner: a bounded stream of scored groups.

``Window`` is the bookkeeping: which tasks may be begun, and which finished groups make the next batch. ``Pipeline``
plays them in the event loop while the learner works in a thread.

**The capacity rule** (AReaL, Fu et al. 2025, arXiv 2505.24298): with ``step`` updates made, at most
(staleness + step + 1) x batch groups are accepted or running, accepted being those that were learned from and those
that wait for it. A group's *deadline* is the last batch that it may be part of: the one that is learned from
``staleness`` updates after those that had been made when the group was begun. AReaL's rule alone bounds how far ahead
rollouts run, not how old a straggler gets. So a batch is made of the groups that finished first *as far as all others
can still meet their deadlines*; where they could not, it waits for them. Two things follow:

- no token is learned from more than ``staleness`` versions after it was sampled, however slow its episode: by the rule
  there are never more groups with a deadline up to t than places in the batches up to t, and ``Window.choose`` keeps it
  so;
- nothing that was played is thrown away for being slow. Taking the first to finish favours short episodes for the
  moment, but each group has its turn within ``staleness`` batches, so over the run every drawn task counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from muarl.basics.errors import MuarlError
from muarl.domains.tasks import Task
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import Executor, Group, Groups, add_up, collect_groups, rollout
from muarl.types.episode import SPOILED, Episode, StopReason

MAX_DRAWS = 4
"""Dynamic sampling draws a step's number of tasks at most this often."""
PIPELINE = "pipeline"
"""Where an asynchronous run's checkpoint says which tasks are used up."""


class Window:
    """Task numbers between being drawn and being learned from; see this module's docstring. No clock, no threads.

    ``batch``: groups in a batch. ``staleness``: updates that a batch may lag. ``whole``: one step off. Only while an
    update is being made are the groups of the next batch running, and none of the one after. ``steps``: how many
    batches there will be; no more is begun than they need. ``step``: updates made before. ``first``: the number of the
    first task that was never begun; ``again``: numbers below it that were begun and not learned from.
    """

    def __init__(
        self,
        batch: int,
        staleness: int,
        steps: int,
        *,
        whole: bool = False,
        step: int = 0,
        first: int = 0,
        again: Sequence[int] = (),
    ) -> None:
        self.batch, self.staleness, self.steps, self.whole = batch, 1 if whole else staleness, steps, whole
        self.step = self.taken = step
        self._next = first
        self._again = sorted(again)
        self._deadlines: dict[int, int] = {}  # of what is open, in the order of beginning
        self._ready: list[int] = []  # of those, what is finished, in that order

    @property
    def room(self) -> int:
        """How many groups may be begun now."""
        last = self.taken if self.whole else self.step + self.staleness
        return (min(last, self.steps - 1) - self.taken + 1) * self.batch - len(self._deadlines)

    @property
    def waiting(self) -> int:
        """Finished groups that no batch has taken."""
        return len(self._ready)

    @property
    def running(self) -> int:
        """Groups that were begun and are not finished."""
        return len(self._deadlines) - len(self._ready)

    def begin(self) -> int:
        """The number of the task to begin next. ValueError if there is no room."""
        if self.room < 1:
            raise ValueError("the window is full")
        if self._again:
            number = self._again.pop(0)
        else:
            number, self._next = self._next, self._next + 1
        self._deadlines[number] = self.step + self.staleness
        return number

    def finish(self, number: int) -> None:
        """A group is complete, and waits to be learned from."""
        self._ready.append(number)

    def reject(self, number: int) -> None:
        """A group is complete and cannot be learned from: another task may be begun in its place."""
        del self._deadlines[number]

    def choose(self) -> list[int] | None:
        """The groups of the next batch, in the order of drawing; None if they must still be waited for.

        Those that finished first, except that as many with a deadline up to t must be among them as the later batches
        up to t have no places for.
        """
        if len(self._ready) < self.batch:
            return None
        chosen: list[int] = []
        for deadline in sorted(set(self._deadlines.values())):
            due = sum(d <= deadline for d in self._deadlines.values())
            later = max(0, deadline - self.taken) * self.batch
            owed = due - later - sum(self._deadlines[n] <= deadline for n in chosen)
            able = [n for n in self._ready if n not in chosen and self._deadlines[n] <= deadline]
            if owed > len(able):
                return None
            chosen += able[: max(0, owed)]
        chosen += [n for n in self._ready if n not in chosen][: self.batch - len(chosen)]
        return sorted(chosen)

    def take(self) -> list[int]:
        """Hand ``choose``'s groups to the learner. ValueError if there is no batch yet."""
        chosen = self.choose()
        if chosen is None:
            raise ValueError("there is no batch yet")
        self._ready = [n for n in self._ready if n not in chosen]
        for number in chosen:
            del self._deadlines[number]
        self.taken += 1
        return chosen

    def learned(self) -> None:
        """The update on the batch taken last is made, and samplers have its weights."""
        self.step += 1

    def overtaken(self, numbers: Sequence[int]) -> float:
        """The share of these numbers that were drawn after one that is still open: how far finishing first counted."""
        oldest = min(self._deadlines, default=None)
        return sum(oldest is not None and n > oldest for n in numbers) / max(1, len(numbers))

    def state(self) -> dict[str, Any]:
        """JSON values that a window can continue from: ``first`` and ``again``. What was open is then begun once
        more."""
        return {"first": self._next, "again": sorted([*self._deadlines, *self._again])}


@dataclass(frozen=True, slots=True)
class StepData:
    """What one step learns from: its groups, and all episodes that were played (and paid for) to get them."""

    groups: Groups
    episodes: list[Episode]
    figures: dict[str, float] = field(default_factory=dict)
    """Metrics of the pipeline."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """The episodes' tasks, by id."""


class Pipeline:
    """Plays tasks ahead of the learner; an asynchronous context manager, in one event loop.

    ``requests``: the episodes of a task, by its number. ``minimum``: see ``collect_groups``. ``mixed``: dynamic
    sampling; groups of equal rewards are replaced, up to ``MAX_DRAWS`` - 1 times a batch's number of them.
    ``concurrency``: max concurrent episodes. ``patience``: seconds without a finished episode after which
    waiting ends with a MuarlError. ``begin`` is awaited before an episode begins, and may raise; what it gives is
    called with the episode once it is final, or with None if it was broken off. Leaving the context cancels what is
    running.
    """

    def __init__(
        self,
        window: Window,
        executor: Executor,
        requests: Callable[[int], Sequence[RolloutRequest]],
        *,
        minimum: int | None = None,
        mixed: bool = False,
        concurrency: int = 256,
        patience: float = 1800.0,
        begin: Callable[[], Awaitable[Callable[[Episode | None], None]]] | None = None,
    ) -> None:
        self.window = window
        self._account = begin
        self._executor, self._requests = executor, requests
        self._minimum, self._mixed, self._patience = minimum, mixed, patience
        self._concurrency, self._gate = concurrency, asyncio.Semaphore(concurrency)
        self._active = 0  # episodes that run or wait for the gate
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: dict[int, tuple[Group, list[Episode]]] = {}
        self._lost: list[list[Episode]] = []  # of groups that were dropped, since one was not
        self._dropped: list[Group] = []  # since the last batch, as are the next two
        self._even = 0  # groups replaced because all their rewards are equal
        self._unused: list[Episode] = []
        self._news = asyncio.Event()
        self._problem: BaseException | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def batch(self) -> StepData:
        """The groups of the next step, as soon as there are enough. What an episode raised passes through.

        MuarlError if a whole batch's number of groups in a row had too few scored episodes.
        """
        await self._complete()
        numbers = self.window.take()
        taken = [self._finished.pop(n) for n in numbers]
        figures = {
            "groups_overtaken": self.window.overtaken(numbers),
            "groups_waiting": float(self.window.waiting),
            "groups_running": float(self.window.running),
        }
        groups = Groups([group for group, _ in taken], self._dropped)
        played = StepData(groups, [e for _, episodes in taken for e in episodes] + self._unused, figures)
        self._dropped, self._unused, self._even = [], [], 0
        self._begin()
        return played

    async def learned(self, deliver: Callable[[], Awaitable[None]]) -> None:
        """The learner has moved: ``deliver`` brings its weights to the sampler, and rollouts may run further ahead.

        One step off, the next batch is played to its end first, so that it comes from one version.
        """
        if self.window.whole and self.window.taken < self.window.steps:
            await self._complete()
        await deliver()
        self.window.learned()
        self._begin()

    async def _complete(self) -> None:
        """Wait until the next batch is there."""
        while True:
            if self._problem is not None:
                raise self._problem
            if self.window.choose() is not None:
                return
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), self._patience)
            except TimeoutError:
                raise MuarlError(
                    f"no episode has finished for {self._patience:.0f} seconds, with {self._active} begun: see what "
                    "users, tools or samplers wait for, or raise rl.patience"
                ) from None

    def _begin(self) -> None:
        """Begin as many groups as the rule allows and as there is room for: no earlier, since a group's deadline counts
        from here."""
        while not self._closed and self._problem is None and self.window.room > 0 and self._active < self._concurrency:
            number = self.window.begin()
            requests = self._requests(number)
            self._active += len(requests)
            task = asyncio.create_task(self._play_group(number, requests))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._problem = self._problem or problem
        self._news.set()

    async def _play_group(self, number: int, requests: Sequence[RolloutRequest]) -> None:
        episodes = await self._play_all(requests)
        # What was running when something broke is as a rule what takes long, and must not be missing for that.
        again = [n for n, e in enumerate(episodes) if e.stop is StopReason.INFRASTRUCTURE and e.tags["retryable"]]
        if again:
            self._active += len(again)
            for n, episode in zip(again, await self._play_all([requests[n] for n in again]), strict=True):
                add_up(episode, episodes[n])
                episodes[n] = episode
        self._judge(number, episodes)
        self._begin()

    async def _play_all(self, requests: Sequence[RolloutRequest]) -> list[Episode]:
        playing = [asyncio.create_task(self._play(r)) for r in requests]
        try:
            return [*await asyncio.gather(*playing)]
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)

    async def _play(self, request: RolloutRequest) -> Episode:
        try:
            async with self._gate:
                ended = None if self._account is None else await self._account()
                episode: Episode | None = None
                try:
                    episode = (await rollout([request], self._executor)).episodes[0]
                finally:
                    if ended is not None:
                        ended(episode)
                return episode
        finally:
            self._active -= 1
            self._news.set()
            self._begin()

    def _judge(self, number: int, episodes: list[Episode]) -> None:
        """Whether a group that was played can be learned from. MuarlError if too many in a row cannot."""
        groups = collect_groups(episodes, len(episodes), minimum=self._minimum)
        if not groups.kept:
            self.window.reject(number)
            self._dropped += groups.dropped
            self._unused += episodes
            self._lost.append(episodes)
            if len(self._lost) >= self.window.batch:
                raise nothing_left(self.window.taken, [e for lost in self._lost for e in lost])
            return
        self._lost = []
        group = groups.kept[0]
        if self._mixed and len(set(group.rewards)) == 1 and self._even < (MAX_DRAWS - 1) * self.window.batch:
            self.window.reject(number)
            self._even += 1
            self._unused += episodes
            return
        self.window.finish(number)
        self._finished[number] = group, episodes


def nothing_left(step: int, episodes: Sequence[Episode]) -> MuarlError:
    """The error for a step whose groups all lack episodes to learn from."""
    failed = [e.error or e.stop.value for e in episodes if e.stop is StopReason.INFRASTRUCTURE]
    spoiled = [e for e in episodes if e.tags.get(SPOILED)]
    causes = []
    if failed:
        causes.append(f"{len(failed)} failed for reasons outside the policy, the first: {failed[0]}.")
    if spoiled:
        causes.append(
            f"In {len(spoiled)} the simulated user broke a rule of its role that user.guard could not fix: choose a "
            "better model for the user, or look at it with `muarl user check`."
        )
    return MuarlError(
        f"step {step}: no group of {len(episodes)} episodes is large enough to learn from. {' '.join(causes)}".rstrip()
    )


def staleness(groups: Groups, version: int, oldest: int) -> dict[str, float]:
    """How old what is learned from is, given the learner's version before the update.

    ``staleness_mean`` and ``staleness_max``: versions that sampled tokens lag, over all of them; ``versions_mixed``:
    share of episodes whose tokens come from several versions; ``too_stale``: episodes with tokens older than
    ``oldest``.
    """
    traces = [e.tokens for g in groups.kept for e in g.episodes if e.tokens is not None and e.tokens.sampled_count]
    versions = [[v for v, sampled in zip(t.versions, t.loss_mask, strict=True) if sampled] for t in traces]
    lags = [version - v for own in versions for v in own]
    return {
        "staleness_mean": sum(lags) / max(1, len(lags)),
        "staleness_max": float(max(lags, default=0)),
        "versions_mixed": sum(len(set(own)) > 1 for own in versions) / max(1, len(versions)),
        "too_stale": float(sum(min(own) < oldest for own in versions)),
    }
