"""Rollout workers: processes of the cluster that play whole episodes, and the ``Executor`` over them.

A worker makes its own world, users and agent; only requests go there and only episodes come back. An episode whose
worker is lost is restarted by another one. However often that happens, a request gives exactly one episode: what a
worker may still send after it was given up is not listened to. A worker that was lost is given an episode once it says
that it is ready, since that it is still away says nothing about the episode.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from muarl.basics.errors import MuarlError
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import LocalExecutor, Requests
from muarl.types.episode import Episode, StopReason
from muarl.workers.cluster.calls import answer
from muarl.workers.cluster.crew import PAUSE, Crew
from muarl.workers.cluster.runtime import find
from muarl.workers.cluster.samplers import forget
from muarl.workers.failures import ProcessLost, answering

log = logging.getLogger(__name__)

Play = Callable[[RolloutRequest], Awaitable[Episode]]


class Worker(Protocol):
    """Somebody elsewhere who plays. ``play`` raises ProcessLost where no episode comes back in time, ``ready`` where it
    does not answer."""

    async def ready(self, seconds: float) -> None: ...

    async def play(self, request: RolloutRequest, seconds: float) -> Episode: ...


class ClusterExecutor:
    """An ``Executor`` over rollout workers, least busy first.

    ``concurrency``: max concurrent episodes in one ``run``; requests are drawn when there is room, and no earlier.
    ``tries``: how often one is begun. ``seconds``: that an episode may take. ``patience``: seconds without an answer
    from any worker, once there is none that can be asked, after which MuarlError ends the run. ``pause``: see ``Crew``.
    Several ``run`` at once share the workers.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        *,
        concurrency: int,
        tries: int,
        seconds: float,
        patience: float,
        pause: float = PAUSE,
    ) -> None:
        self._workers = list(workers)
        self._crew = Crew(len(self._workers), pause=pause)
        self._concurrency, self._tries = concurrency, tries
        self._seconds, self._patience = seconds, patience
        self._silent: float | None = None  # since when nobody could be asked and nobody has answered

    def run(self, requests: Requests) -> AsyncGenerator[Episode, None]:
        """Play the requests; see ``Executor.run``."""
        return LocalExecutor(self.play, self._concurrency).run(requests)

    async def play(self, request: RolloutRequest) -> Episode:
        """The one episode of a request. One that ends with ``infrastructure`` (boundary "worker") if every worker that
        began it was lost; MuarlError if there are no workers left."""
        lost: list[str] = []
        before: list[int] = []
        away = ""
        while len(lost) < self._tries:
            place = await self._somebody(before, away)
            self._crew.begin(place)
            begun = not self._crew.doubtful(place)
            try:
                if not begun:
                    await self._workers[place].ready(self._seconds)
                    begun = True
                episode = await self._workers[place].play(request, self._seconds)
            except ProcessLost as problem:
                if self._crew.lost(place, final=problem.final):
                    log.warning("%s; its episodes are restarted on other workers", problem)
                away = str(problem)
                if begun:
                    lost.append(away)
                    before.append(place)
                continue
            finally:
                self._crew.end(place)
            self._crew.found(place)
            self._silent = None
            if lost:
                episode.tags["workers_lost"] = len(lost)
            return episode
        return _never_finished(request, lost)

    async def _somebody(self, before: Sequence[int], last: str) -> int:
        """A worker that is there. ``before``: those that had this episode and were lost, perhaps because of it.
        ``last``: why the one asked last did not answer, if it did not."""
        while (place := self._crew.choose(besides=before)) is None:
            why = f" The last failure: {last}" if last else ""
            pause, now = self._crew.pause(), time.monotonic()
            if pause is None:
                raise MuarlError(f"all {self._crew.size} rollout workers are lost and will not be started again.{why}")
            self._silent = self._silent or now
            if now - self._silent > self._patience:
                raise MuarlError(f"no rollout worker has answered for {self._patience:.0f} seconds.{why}")
            await asyncio.sleep(pause + 0.01)
        return place


def _never_finished(request: RolloutRequest, lost: Sequence[str]) -> Episode:
    return Episode(
        id=request.episode_id,
        task_id=request.task.id,
        domain=request.task.domain,
        turns=[],
        stop=StopReason.INFRASTRUCTURE,
        seed=request.seed,
        group=request.group,
        tags={**request.task.tags, "boundary": "worker", "retryable": True, "workers_lost": len(lost)},
        error=f"worker: the episode was begun {len(lost)} times, and each time its worker was lost: {lost[-1]}",
    )


class ActorWorker:
    """A ``Worker`` that is a Ray actor, ``WorkerActor``, of this name."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self._actor: Any = find(name)

    @property
    def who(self) -> str:
        """Its name in messages."""
        return f"rollout worker {self.number}"

    async def ready(self, seconds: float) -> None:
        """See ``Worker``."""
        await answer(self._actor.ready.remote(), seconds, self.who)

    async def play(self, request: RolloutRequest, seconds: float) -> Episode:
        """See ``Worker``."""
        reference = self._actor.play.remote(request)
        try:
            episode: Episode = await answer(reference, seconds, self.who)
        except (asyncio.CancelledError, ProcessLost):
            forget(reference)
            raise
        return episode


class WorkerActor:
    """Plays episodes in a process of its own. ``build`` gives who plays, after ``setup``, when first asked for."""

    def __init__(self, setup: Callable[[], None], build: Callable[[], Play]) -> None:
        setup()
        self._build = build
        self._play: Play | None = None

    @answering
    async def ready(self) -> None:
        """Answers once it can play."""
        self._runner()

    @answering
    async def play(self, request: RolloutRequest) -> Episode:
        """See ``EpisodeRunner.play``."""
        return await self._runner()(request)

    def _runner(self) -> Play:
        if self._play is None:
            self._play = self._build()
        return self._play
