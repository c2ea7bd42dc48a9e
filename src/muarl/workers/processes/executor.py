"""A rollout over the children of a pool, and the policy's sampler that they share."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from muarl.inference.base import Completion, PolicySampler, SamplingParams, Weights
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import LocalExecutor, Requests
from muarl.types.episode import Episode
from muarl.workers.processes.pool import ProcessPool


class Model(Protocol):
    """What a sampler needs of a torch model."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]: ...


class PooledSampler:
    """The ``PolicySampler`` of a run whose episodes are played by a pool's children: it moves their weights.

    What is sampled in this process, such as by a function of the run's own, comes from an engine that ``here`` makes
    when it is first asked. ``model``: the policy's; an update leaves its weights there, too.
    """

    def __init__(self, pool: ProcessPool, model: Any, here: Callable[[], PolicySampler]) -> None:
        self.pool, self.stage = pool, pool.begin(model.named_parameters)
        self.version = 0
        self._model, self._make = model, here
        self._engine: PolicySampler | None = None

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Sample one completion in this process."""
        if self._engine is None:
            self._engine = self._make()
            self._engine.version = self.version
        return await self._engine.sample(prompt_ids, params, session=session)

    def close_session(self, session: str) -> None:
        """See ``Sampler``."""
        if self._engine is not None:
            self._engine.close_session(session)

    async def update(self, weights: Weights, version: int) -> None:
        """Have all children sample from these weights, as policy ``version``.

        CheckpointError for a name that the model lacks or a shape that differs.
        """
        from muarl.models.weights import copy_weights

        def write() -> None:
            copy_weights(weights(), self._model)
            self.pool.write(self._model.named_parameters())

        self.check()
        await self.pool.update(write, version)
        self.version = version
        if self._engine is not None:
            await self._engine.update(lambda: (), version)

    async def aclose(self) -> None:
        """Nothing is sampled any more: the children give its memory back, and wait for the next one."""
        self._engine = None
        if self.stage == self.pool.stage:
            await self.pool.rest()

    def check(self) -> None:
        """RuntimeError once the pool samples for another one."""
        if self.stage != self.pool.stage:
            raise RuntimeError("the processes sample for another sampler by now: make a new one, and executors of it")


class PoolExecutor:
    """An ``Executor`` over a sampler's pool. ``cast``: who plays; see ``Players.playing``. ``concurrency``: max
    concurrent episodes in all.

    The same requests are always divided in the same way, groups whole, so that each child has the same batches again.
    """

    def __init__(self, sampler: PooledSampler, cast: Mapping[str, Any], concurrency: int) -> None:
        self.concurrency = concurrency
        self._sampler, self._pool, self._cast = sampler, sampler.pool, dict(cast)
        self._each = math.ceil(concurrency / self._pool.size)

    def run(self, requests: Requests) -> AsyncGenerator[Episode, None]:
        """Play the requests; see ``Executor.run``. An iterator's are all drawn at once; an asynchronous one's, such as
        under a budget, when there is room."""
        self._sampler.check()
        if isinstance(requests, AsyncIterator):
            return LocalExecutor(self._play, self.concurrency).run(requests)
        return self._together(divided([*requests], self._pool.loads))

    async def _play(self, request: RolloutRequest) -> Episode:
        loads = self._pool.loads
        place = min(range(self._pool.size), key=lambda n: loads[n])
        async with aclosing(self._pool.play(place, [request], self._cast, 1)) as episodes:
            async for episode in episodes:
                return episode
        raise RuntimeError(f"no episode came of the request {request.episode_id}")

    async def _together(self, shares: Mapping[int, Sequence[RolloutRequest]]) -> AsyncGenerator[Episode, None]:
        """The episodes of all shares, as they are finished."""
        finished: asyncio.Queue[Episode | BaseException | None] = asyncio.Queue()

        async def follow(place: int, share: Sequence[RolloutRequest]) -> None:
            try:
                async with aclosing(self._pool.play(place, share, self._cast, self._each)) as episodes:
                    async for episode in episodes:
                        finished.put_nowait(episode)
            except BaseException as problem:
                finished.put_nowait(problem)
            else:
                finished.put_nowait(None)

        following = [asyncio.create_task(follow(place, share)) for place, share in shares.items()]
        try:
            left = len(following)
            while left:
                item = await finished.get()
                if item is None:
                    left -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def divided(requests: Sequence[RolloutRequest], loads: Sequence[int]) -> dict[int, list[RolloutRequest]]:
    """Requests by who is to play them: each group goes to whoever has least to do by then, the first of several.
    ``loads``: what each has to do already."""
    groups: dict[str, list[RolloutRequest]] = {}
    for request in requests:
        groups.setdefault(request.group, []).append(request)
    shares: dict[int, list[RolloutRequest]] = {}
    busy = [*loads]
    for members in groups.values():
        place = min(range(len(busy)), key=lambda n: busy[n])
        shares.setdefault(place, []).extend(members)
        busy[place] += len(members)
    return shares
