"""Weights from a learner's process straight to samplers: who gets them, what is sent, and who is made good for.

The actors are the real classes as objects of this process, behind something that looks like Ray's handles.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from muarl.basics.errors import MuarlError
from muarl.inference.base import Completion, SamplingParams, Weights
from muarl.learning.lora import AdaptedWeights
from muarl.learning.process_group import host_store
from muarl.learning.settings import LoraSettings
from muarl.workers.cluster import learners, sampler_actor, samplers
from muarl.workers.cluster.direct import DirectRoute
from muarl.workers.cluster.learners import LearnerActor, RemoteWeights
from muarl.workers.cluster.sampler_actor import Board, SamplerActor
from muarl.workers.cluster.samplers import ClusterSampler
from muarl.workers.cluster.transport import GroupKind
from muarl.workers.failures import Failure, ProcessLost

ray = pytest.importorskip("ray", reason="pip install ray")
SECONDS = 60.0
"""That anything may take here; nothing waits so long unless it is broken."""
LORA = LoraSettings(rank=2, alpha=4.0)
BOTH = pytest.mark.parametrize("kind", ["broadcast", "ipc"])


class ToySampler:
    """Holds what it was given; ``fails``: at which version its update does."""

    def __init__(self) -> None:
        self.version, self.held, self.adapter = 0, dict[str, Tensor](), dict[str, Tensor]()
        self.fails = -1
        self.slept = 0

    async def sample(self, prompt_ids: Any, params: SamplingParams, *, session: str | None = None) -> Completion:
        return Completion((int(self.held["w0"].sum()),), (0.0,), "stop", self.version)

    def close_session(self, session: str) -> None: ...

    async def update(self, weights: Weights, version: int) -> None:
        await asyncio.to_thread(self.take, weights, version)
        self.version = version

    def take(self, weights: Weights, version: int) -> None:
        if isinstance(weights, AdaptedWeights):
            self.adapter = {n: t.clone() for n, t in weights.adapter().items()}
            return
        for name, tensor in weights():
            if version == self.fails:
                raise MuarlError("no room")
            self.held[name] = tensor.clone()

    async def sleep(self) -> None:
        self.slept += 1

    async def aclose(self) -> None: ...


class ToyLearner:
    """Weights that follow from its version."""

    version = 0

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        made = torch.Generator().manual_seed(self.version)
        for n in range(5):
            yield f"w{n}", torch.randn(40, 9, generator=made)

    def adapter(self) -> dict[str, Tensor]:
        return {"lora_A": torch.full((2, 9), float(self.version)), "lora_B": torch.ones(40, 2)}


class Handle:
    """An object as a Ray handle: ``handle.method.remote(...)`` gives something to await. ``dead``: nobody answers."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made, self.object, self.dead = made, made(), False
        self.loop = asyncio.get_running_loop()
        self.calls: list[str] = []

    def restart(self) -> None:
        self.object, self.dead = self.made(), False

    def __getattr__(self, method: str) -> Any:
        handle = self

        class Method:
            def remote(self, *arguments: Any) -> Any:
                work = handle.call(method, *arguments)
                if threading.current_thread() is threading.main_thread():
                    return asyncio.ensure_future(work)
                return asyncio.run_coroutine_threadsafe(work, handle.loop)

        return Method()

    async def call(self, method: str, *arguments: Any) -> Any:
        self.calls.append(method)
        if self.dead:
            raise ray.exceptions.ActorDiedError(None)
        done = getattr(self.object, method)
        if inspect.iscoroutinefunction(done):
            return await done(*arguments)
        return await asyncio.to_thread(done, *arguments)


class Stage:
    """A learner, samplers and a board, and the driver's sampler over them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: GroupKind | None, count: int = 2, **options: Any) -> None:
        self.toys: list[ToySampler] = []
        self.board = Handle(Board)
        names = {"board": self.board}

        def build() -> ToySampler:
            self.toys.append(ToySampler())
            return self.toys[-1]

        for n in range(count):
            names[f"s{n}"] = Handle(lambda: SamplerActor(lambda: None, build, "board", SECONDS))
        self.samplers = [names[f"s{n}"] for n in range(count)]
        self.learner = ToyLearner()
        actor = LearnerActor(lambda: None, lambda *_: self.learner, 0, 1)
        actor.make("")
        self.first = Handle(lambda: actor)
        for module in (learners, sampler_actor, samplers):
            monkeypatch.setattr(module, "find", names.__getitem__)
        monkeypatch.setattr(learners, "_hosted", lambda seconds: host_store(deadline=seconds))
        monkeypatch.setattr(ray, "put", self.put)
        monkeypatch.setattr(ray, "get", lambda asked: asked.result(SECONDS))
        self.kept: list[Any] = []
        route = None if kind is None else DirectRoute(kind, "cpu", SECONDS, SECONDS)
        self.weights = RemoteWeights(self, options.pop("lora", None))  # type: ignore[arg-type]
        self.sampler = ClusterSampler(
            [f"s{n}" for n in range(count)], "board", deadline=SECONDS, seconds=SECONDS, bucket=4096,
            release=lambda: None, direct=route, **options,
        )  # fmt: skip

    def put(self, value: Any) -> Any:
        self.kept.append(value)

        class Reference:
            def __await__(self) -> Any:
                if False:
                    yield
                return value

        return Reference()

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """As ``ClusterLearner.ask``."""
        given: list[Any] = getattr(self.first.object, method)(*arguments)
        return given

    async def update(self) -> None:
        self.learner.version += 1
        await self.sampler.update(self.weights, self.learner.version)

    def check(self, toy: ToySampler) -> None:
        assert toy.version == self.learner.version
        expected = dict(self.learner.weights())
        assert toy.held.keys() == expected.keys()
        assert all(torch.equal(toy.held[n], t) for n, t in expected.items())


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    return lambda *arguments, **options: Stage(monkeypatch, *arguments, **options)


@pytest.mark.parametrize("kind", [None, "broadcast", "ipc"])
async def test_all_samplers_have_the_learners_bits(stage: Callable[..., Stage], kind: GroupKind | None) -> None:
    found = stage(kind)
    for _ in range(3):
        await found.update()
        assert len(found.toys) == 2
        for toy in found.toys:
            found.check(toy)
    calls = [c for handle in found.samplers for c in handle.calls]
    assert calls.count("receive") == (0 if kind is None else 6)
    assert calls.count("join_group") == (0 if kind is None else 2), "one group for all updates"


@BOTH
async def test_a_sampler_that_starts_again_has_the_newest_weights_and_joins_a_new_group(
    stage: Callable[..., Stage], kind: GroupKind
) -> None:
    found = stage(kind)
    await found.update()
    found.samplers[1].restart()  # Ray has started it again: it knows nothing
    sampled = await found.samplers[1].object.sample((1,), SamplingParams(1), None)
    assert sampled.version == 1
    found.check(found.toys[2])
    await found.update()
    for toy in (found.toys[0], found.toys[2]):
        found.check(toy)
    assert found.samplers[0].calls.count("join_group") == 2 and found.samplers[1].calls.count("join_group") == 2


@BOTH
async def test_one_that_is_gone_keeps_nobody_waiting(stage: Callable[..., Stage], kind: GroupKind) -> None:
    found = stage(kind)
    await found.update()
    found.samplers[1].dead = True
    await found.update()
    found.check(found.toys[0])
    found.samplers[1].restart()
    await found.update()
    for toy in (found.toys[0], found.toys[2]):
        found.check(toy)
    assert found.sampler._direct is not None and found.sampler._direct.open


@BOTH
async def test_one_that_fails_in_the_middle_takes_the_weights_from_the_object_store(
    stage: Callable[..., Stage], kind: GroupKind, caplog: pytest.LogCaptureFixture
) -> None:
    found = stage(kind)
    await found.update()
    actor = found.samplers[1].object
    actor._sampler.fails = 2
    original = actor.refresh

    async def refresh(version: int) -> Any:
        actor._sampler.fails = -1
        return await original(version)

    actor.refresh = refresh
    for _ in range(2):
        await found.update()
        for toy in found.toys:
            found.check(toy)
    assert "did not reach all samplers directly" in caplog.text and "no room" in caplog.text
    assert found.samplers[0].calls.count("join_group") == 2


@BOTH
async def test_one_that_starts_again_while_an_update_begins_is_sent_the_weights_all_the_same(
    stage: Callable[..., Stage], kind: GroupKind, caplog: pytest.LogCaptureFixture
) -> None:
    found = stage(kind)
    await found.update()
    clear, asked = found.board.object.clear, []

    async def cleared(version: int) -> None:
        await clear(version)
        if version == 2:  # a rollout that did not wait for the update asks, and its sampler asks the board
            found.samplers[1].restart()
            before = found.board.calls.count("newest")
            asked.append(asyncio.ensure_future(found.samplers[1].object.sample((1,), SamplingParams(1), None)))
            while found.board.calls.count("newest") == before:
                await asyncio.sleep(0)

    found.board.object.clear = cleared
    await asyncio.wait_for(found.update(), SECONDS / 2)
    assert (await asked[0]).version == 2
    for toy in (found.toys[0], found.toys[2]):
        found.check(toy)
    assert "did not reach" not in caplog.text


async def test_who_waits_for_weights_that_cannot_be_stored_is_told(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = stage("broadcast")

    def full(value: Any) -> Any:
        raise OSError("the object store is full")

    monkeypatch.setattr(ray, "put", full)
    await found.update()
    for toy in found.toys:
        found.check(toy)
    found.samplers[1].restart()
    told = await asyncio.wait_for(found.samplers[1].object.sample((1,), SamplingParams(1), None), SECONDS / 2)
    assert isinstance(told, Failure) and "version 1 were not put" in told.text and "is full" in told.text
    monkeypatch.setattr(ray, "put", found.put)
    await found.update()
    for toy in (found.toys[0], found.toys[-1]):
        found.check(toy)


async def test_after_some_failures_the_object_store_is_the_way(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = stage("broadcast")

    def fails(seconds: float) -> Any:
        raise MuarlError("no network")

    monkeypatch.setattr(learners, "_hosted", fails)
    for _ in range(5):
        await found.update()
        for toy in found.toys:
            found.check(toy)
    assert caplog.text.count("no network") == 3
    assert not any("receive" in h.calls for h in found.samplers)


@pytest.mark.parametrize("kind", [None, "broadcast", "ipc"])
async def test_of_adapters_nothing_else_is_sent(stage: Callable[..., Stage], kind: GroupKind | None) -> None:
    found = stage(kind, lora=LORA, adapters=True)
    for _ in range(2):
        await found.update()
        for toy in found.toys:
            assert toy.held == {} and toy.version == found.learner.version
            assert all(torch.equal(toy.adapter[n], t) for n, t in found.learner.adapter().items())
        await found.board.object.newest()  # in the object store, too
    numbers = 2 * 9 + 40 * 2
    sent = [sum(entry.size for entry in bucket.entries) for bucket in found.kept]
    assert sent == [4 * numbers] * 2
    if kind is not None:
        group: Any = found.first.object._group
        assert 4 * numbers * 2 <= group.sent < 4 * numbers * 2 + 200, "padding between two matrices at most"


async def test_a_learner_that_dies_in_the_middle_ends_the_update(stage: Callable[..., Stage]) -> None:
    found = stage("broadcast")
    await found.update()

    def dies(*_: Any) -> Any:
        raise ProcessLost("learner 0 died")

    found.first.object.send = dies
    with pytest.raises(ProcessLost):
        await asyncio.wait_for(found.update(), SECONDS / 2)


async def test_sleep_reaches_all_that_are_there(stage: Callable[..., Stage]) -> None:
    found = stage(None)
    await found.update()
    found.samplers[1].dead = True
    await found.sampler.sleep()
    assert [toy.slept for toy in found.toys] == [1, 0]
