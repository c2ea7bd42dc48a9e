"""Samplers as processes of the cluster, and the one sampler that the rest of the house sees.

Every sampler holds all weights. A session stays with one sampler, so that its key/value cache is of use; if that one is
lost, the session moves, and since a completion follows from weights, prompt, parameters and seed alone, it is simply
asked for again. A sampler that Ray starts again fetches the newest weights by itself, from the ``Board``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.inference.base import Completion, SamplingParams, Weights
from muarl.models.buckets import buckets
from muarl.workers.cluster.calls import answer
from muarl.workers.cluster.crew import PAUSE, Crew
from muarl.workers.cluster.learners import RemoteWeights
from muarl.workers.cluster.runtime import find
from muarl.workers.cluster.sampler_actor import PostedWeights
from muarl.workers.failures import ProcessLost

if TYPE_CHECKING:
    from muarl.workers.cluster.direct import DirectRoute

log = logging.getLogger(__name__)


class Remote(Protocol):
    """One sampler that is somewhere else. ``sample`` raises ProcessLost where it does not answer in time."""

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, seconds: float
    ) -> Completion: ...

    def close_session(self, session: str) -> None: ...


class RoutedSampler:
    """A ``Sampler`` over several that are equal; see this module's docstring.

    ``deadline``: seconds that one completion may take, all tries included. ``first``: which sampler this client takes
    first; give each client another. ``name``: told apart from other clients' sessions of the same name. ``pause``: see
    ``Crew``.
    """

    def __init__(
        self, remotes: Sequence[Remote], *, deadline: float, first: int = 0, name: str = "", pause: float = PAUSE
    ) -> None:
        self.version = 0
        self._remotes = list(remotes)
        self._crew = Crew(len(self._remotes), first=first, pause=pause)
        self._deadline = deadline
        self._name = name
        self._homes: dict[str, int] = {}

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Sample one completion, wherever there is a sampler.

        InfrastructureError (boundary "agent") if none gave it before the deadline; not worth another try if all are
        lost for good.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._deadline
        home = None if session is None else self._homes.get(session)
        last = "no sampler could be reached"
        while (left := end - loop.time()) > 0:
            place = self._crew.choose(home)
            if place is None:
                pause = self._crew.pause()
                if pause is None:
                    text = f"all {self._crew.size} samplers are lost, and will not be started again: {last}"
                    raise InfrastructureError(text, boundary="agent", retryable=False)
                await asyncio.sleep(min(pause + 0.01, left))
                continue
            if session is not None and place != home:
                self._homes[session] = home = place
            own = None if session is None else f"{self._name}{session}"
            self._crew.begin(place)
            try:
                sampled = await self._remotes[place].sample(prompt_ids, params, own, left)
            except ProcessLost as problem:
                if self._crew.lost(place, final=problem.final):
                    log.warning("%s; its sessions continue on other samplers", problem)
                last = str(problem)
                continue
            finally:
                self._crew.end(place)
            self._crew.found(place)
            self.version = max(self.version, sampled.version)
            return sampled
        raise InfrastructureError(f"no completion within {self._deadline:.0f} s: {last}", boundary="agent")

    def close_session(self, session: str) -> None:
        """Let the sampler that holds the session forget it."""
        home = self._homes.pop(session, None)
        if home is not None:
            self._remotes[home].close_session(f"{self._name}{session}")


class ActorRemote:
    """A ``Remote`` that is a Ray actor, ``SamplerActor``, of this name."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    @cached_property
    def actor(self) -> Any:
        """The actor. ProcessLost if it is gone for good."""
        return find(self.name)

    @property
    def who(self) -> str:
        """Its name in messages."""
        return f"sampler {self.number}"

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, seconds: float
    ) -> Completion:
        """See ``Remote``."""
        reference = self.actor.sample.remote(tuple(prompt_ids), params, session)
        try:
            sampled: Completion = await answer(reference, seconds, self.who)
        except (asyncio.CancelledError, ProcessLost):
            forget(reference)
            raise
        return sampled

    def close_session(self, session: str) -> None:
        """See ``Remote``. Nobody waits for it."""
        with suppress(ProcessLost):
            self.actor.close_session.remote(session)


def forget(reference: Any) -> None:
    """Nobody waits for this answer any more; whoever works on it may stop."""
    import ray

    try:
        ray.cancel(reference)
    except Exception:  # it is gone, or Ray is: what was to be cancelled does not run
        return


class ClusterSampler(RoutedSampler):
    """The driver's ``PolicySampler`` over all samplers: it also moves their weights and ends them.

    ``board``: the ``Board``'s name. ``bucket``: bytes in one piece of weights. ``seconds``: that an update may take.
    ``adapters``: samplers take an adapter alone, and all begin with the model that it is put on. ``direct``: how
    weights travel where they need not pass the object store.
    """

    def __init__(
        self,
        names: Sequence[str],
        board: str,
        *,
        deadline: float,
        seconds: float,
        bucket: int,
        release: Callable[[], None],
        adapters: bool = False,
        direct: DirectRoute | None = None,
    ) -> None:
        self._adapters, self._direct, self._board_name = adapters, direct, board
        self.remotes = [ActorRemote(name, n) for n, name in enumerate(names)]
        super().__init__(self.remotes, deadline=deadline, name="driver/")
        self._board, self._seconds, self._bucket, self._release = find(board), seconds, bucket, release

    def client(self, number: int) -> RoutedSampler:
        """Another router to the same samplers, for worker ``number``; it can be sent to its process."""
        remotes = [ActorRemote(r.name, r.number) for r in self.remotes]  # without what they have found
        return RoutedSampler(remotes, deadline=self._deadline, first=number, name=f"{number}/")

    async def update(self, weights: Weights, version: int) -> None:
        """Have every sampler sample from these weights, as policy ``version``.

        They are put into the cluster's object store once, by the learner's own process where it has one, and samplers
        on one machine share one copy; or they go there directly, and into the object store only for those that come
        back later. Samplers that are lost take them when they are back. Where a learner trains adapters and samplers
        take one alone, it is all that is sent.

        MuarlError if none took them.
        """
        await answer(self._board.clear.remote(version), self._seconds, "the board of weights")  # two copies may not fit
        remote = weights if isinstance(weights, RemoteWeights) else None
        lora = remote.lora if remote is not None and self._adapters else None
        if remote is not None and self._direct is not None and self._direct.open:
            await self._direct.send(remote, self.remotes, version, size=self._bucket, lora=lora, board=self._board_name)
        else:
            if remote is not None:
                references = await remote.publish(self._bucket, adapter=lora is not None)
            else:
                references = await asyncio.to_thread(_put, weights, self._bucket)
            posted = PostedWeights(version, references, lora)
            await answer(self._board.post.remote(posted), self._seconds, "the board of weights")
        done = await asyncio.gather(*(self._refresh(r, version) for r in self.remotes), return_exceptions=True)
        problems = [d for d in done if isinstance(d, BaseException)]
        for problem in problems:
            if not isinstance(problem, ProcessLost):
                raise problem
        if len(problems) == len(done):
            raise MuarlError(f"no sampler took the weights of version {version}: {problems[0]}")
        self.version = version

    async def sleep(self) -> None:
        """See ``SleepingSampler``. A sampler that is lost sleeps well enough."""
        done = await asyncio.gather(*(self._asleep(r) for r in self.remotes), return_exceptions=True)
        for problem in done:
            if isinstance(problem, BaseException) and not isinstance(problem, ProcessLost):
                raise problem

    async def aclose(self) -> None:
        """End the samplers' processes."""
        self._release()

    async def _asleep(self, remote: ActorRemote) -> None:
        await answer(remote.actor.sleep.remote(), self._seconds, remote.who)

    async def _refresh(self, remote: ActorRemote, version: int) -> None:
        try:
            await answer(remote.actor.refresh.remote(version), self._seconds, remote.who)
        except ProcessLost as problem:
            if self._crew.lost(remote.number, final=problem.final):
                log.warning("%s; it takes the weights of version %d when it is back", problem, version)
            raise


def _put(weights: Weights, size: int) -> list[Any]:
    import ray

    return [ray.put(bucket) for bucket in buckets(weights(), size)]
