"""Samplers as processes of the cluster, and the one sampler that the rest of the house sees.

Every sampler holds all weights. A session stays with one sampler, so that its key/value cache is of use; if that one is
lost, the session moves, and since a completion follows from weights, prompt, parameters and seed alone, it is simply
asked for again. A sampler that Ray starts again fetches the newest weights by itself, from the ``Board``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from muarl.cluster.calls import Failure, Lost, answer
from muarl.cluster.crew import PAUSE, Crew
from muarl.cluster.runtime import find
from muarl.cluster.weights import Bucket, pack, unpack
from muarl.errors import InfrastructureError, MuarlError
from muarl.inference.base import PolicySampler, Sampled, SamplingParams, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from muarl.learning.settings import LoraSettings

log = logging.getLogger(__name__)

BuildSampler = Callable[[], PolicySampler]


class Remote(Protocol):
    """One sampler that is somewhere else. ``sample`` raises Lost where it does not answer in time."""

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, seconds: float
    ) -> Sampled: ...

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

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None) -> Sampled:
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
            except Lost as problem:
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
        """The actor. Lost if it is gone for good."""
        return find(self.name)

    @property
    def who(self) -> str:
        """Its name in messages."""
        return f"sampler {self.number}"

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, seconds: float
    ) -> Sampled:
        """See ``Remote``."""
        reference = self.actor.sample.remote(tuple(prompt_ids), params, session)
        try:
            sampled: Sampled = await answer(reference, seconds, self.who)
        except (asyncio.CancelledError, Lost):
            forget(reference)
            raise
        return sampled

    def close_session(self, session: str) -> None:
        """See ``Remote``. Nobody waits for it."""
        with suppress(Lost):
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
    ``adapters``: samplers have room for an adapter, and all begin with the model that it is put on.
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
    ) -> None:
        self._adapters = adapters
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
        on one machine share one copy. Samplers that are lost take them when they are back. Where a learner trains
        adapters and samplers have room for one, it is all that is sent.

        MuarlError if none took them.
        """
        await answer(self._board.clear.remote(), self._seconds, "the board of weights")  # two copies may not fit
        publish = getattr(weights, "publish", None)
        lora = getattr(weights, "lora", None) if self._adapters else None
        if publish is not None:
            buckets = await publish(self._bucket, adapter=lora is not None)
        else:
            buckets = await asyncio.to_thread(_put, weights, self._bucket)
        await answer(self._board.post.remote(Posted(version, buckets, lora)), self._seconds, "the board of weights")
        done = await asyncio.gather(*(self._refresh(r, version) for r in self.remotes), return_exceptions=True)
        problems = [d for d in done if isinstance(d, BaseException)]
        for problem in problems:
            if not isinstance(problem, Lost):
                raise problem
        if len(problems) == len(done):
            raise MuarlError(f"no sampler took the weights of version {version}: {problems[0]}")
        self.version = version

    async def aclose(self) -> None:
        """End the samplers' processes."""
        self._release()

    async def _refresh(self, remote: ActorRemote, version: int) -> None:
        try:
            await answer(remote.actor.refresh.remote(version), self._seconds, remote.who)
        except Lost as problem:
            if self._crew.lost(remote.number, final=problem.final):
                log.warning("%s; it takes the weights of version %d when it is back", problem, version)
            raise


def _put(weights: Weights, size: int) -> list[Any]:
    import ray

    return [ray.put(bucket) for bucket in pack(weights(), size)]


@dataclass(frozen=True, slots=True)
class Posted:
    """References to the weights of a version; ``lora``: they are those of an adapter alone."""

    version: int
    buckets: list[Any]
    lora: LoraSettings | None = None


class Board:
    """Where the newest weights are to be had: a small actor beside the driver, with references, not weights."""

    def __init__(self) -> None:
        self._newest: Posted | None = None
        self._posted = False
        self._news = asyncio.Event()
        self._news.set()

    async def clear(self) -> None:
        """New weights are on their way: let the old ones be freed, and have those who ask wait."""
        self._newest = None
        self._news.clear()

    async def post(self, newest: Posted) -> None:
        """From now on these."""
        self._newest = newest
        self._news.set()

    async def newest(self) -> Posted | None:
        """What was posted last, None if the samplers' own checkpoint is the newest."""
        await self._news.wait()
        return self._newest


class SamplerActor:
    """A sampler in a process of its own. ``build`` makes it, after ``setup``, when it is first asked for: an error in
    an actor's constructor would come back as Ray's, without its words. ``board``: the board's name."""

    def __init__(self, setup: Callable[[], None], build: BuildSampler, board: str, seconds: float) -> None:
        setup()
        self._build = build
        self._sampler: PolicySampler | None = None
        self._board, self._seconds = board, seconds
        self._version: int | None = None  # not known to be the newest
        self._moving = asyncio.Lock()

    async def ready(self) -> Failure | None:
        """Answers once it can sample."""
        return await self.refresh(0)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None) -> Sampled | Failure:
        """See ``Sampler``."""
        try:
            sampler = self._sampler
            if sampler is None or self._version is None:
                sampler = await self._catch_up()
            return await sampler.sample(prompt_ids, params, session=session)
        except MuarlError as problem:
            return Failure.of(problem)

    async def close_session(self, session: str) -> None:
        """See ``Sampler``."""
        if self._sampler is not None:
            self._sampler.close_session(session)

    async def refresh(self, version: int) -> Failure | None:
        """Take the newest weights, which are at least of this version."""
        try:
            await self._catch_up(version)
        except MuarlError as problem:
            return Failure.of(problem)
        return None

    async def _catch_up(self, wanted: int = 0) -> PolicySampler:
        async with self._moving:
            if self._sampler is None:
                self._sampler = self._build()
            if self._version is not None and self._version >= wanted:
                return self._sampler
            found = await answer(find(self._board).newest.remote(), self._seconds, "the board of weights")
            if found is None:
                self._version = 0
                return self._sampler
            buckets = await _fetched(found.buckets, self._seconds)
            await self._sampler.update(_weights(buckets, found.lora), found.version)
            self._version = found.version
            return self._sampler


def _weights(buckets: Sequence[Bucket], lora: LoraSettings | None) -> Weights:
    """The weights in the buckets as samplers take them."""
    if lora is None:
        return lambda: unpack(buckets)
    from muarl.learning.lora import AdaptedWeights

    def whole() -> Iterator[tuple[str, Tensor]]:
        raise MuarlError("only the adapter was sent (engine.lora_rank), and this sampler wants all weights")

    return AdaptedWeights(whole, lambda: dict(unpack(buckets)), lora)


async def _fetched(references: Sequence[Any], seconds: float) -> list[Bucket]:
    """The buckets themselves, from wherever they are. InfrastructureError if they cannot be had."""
    try:
        got = await answer(asyncio.gather(*(_one(r) for r in references)), seconds, "the owner of the weights")
    except Lost as problem:
        raise InfrastructureError(f"the newest weights cannot be fetched: {problem}", boundary="agent") from None
    return list(got)


async def _one(reference: Any) -> Bucket:
    bucket: Bucket = await reference
    return bucket
