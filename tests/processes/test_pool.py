"""Children that play: each request gives one episode, whoever dies; errors come back; nobody outlives the parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.basics.errors import MuarlError
from muarl.models.buckets import SharedWeights
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import rollout
from muarl.types.episode import Episode
from muarl.workers.processes.executor import PooledSampler, PoolExecutor, divided
from muarl.workers.processes.pool import TRIES, ProcessPool
from support.toy_shop import toy_task

STUB = "support.playing_child"
LIMIT = 120.0


class Sides:
    """A pool of stubs, and a model of two parameters."""

    def __init__(self, folder: Path, size: int = 2, **start: Any) -> None:
        self.model = torch.nn.Linear(2, 3, bias=True)
        self.set(1.0)
        self.folder = folder
        shared = SharedWeights.like(self.model.named_parameters())
        self.pool = ProcessPool(STUB, {"folder": str(folder), **start}, shared, size)
        self.sampler = self.begin()

    def begin(self) -> PooledSampler:
        return PooledSampler(self.pool, self.model, lambda: pytest.fail("nothing is sampled here"))

    def set(self, value: float) -> None:
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.fill_(value)

    def executor(self, concurrency: int = 8) -> PoolExecutor:
        return PoolExecutor(self.sampler, {"agent": "stub"}, concurrency)

    async def play(self, asked: list[RolloutRequest]) -> list[Episode]:
        async with asyncio.timeout(LIMIT):
            return (await rollout(asked, self.executor())).episodes


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Sides]:
    made = Sides(tmp_path)
    yield made
    made.pool.close()


def requests(*does: str | None, rollouts: int = 2) -> list[RolloutRequest]:
    tasks = [toy_task(f"t{n}", **({} if what is None else {"does": what})) for n, what in enumerate(does)]
    return requests_for(tasks, rollouts, seed=7)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" if Path("/proc").is_dir() else True
    )


async def gone(*pids: int) -> None:
    async with asyncio.timeout(LIMIT):
        while any(running(pid) for pid in pids):
            await asyncio.sleep(0.02)


def test_groups_stay_together_and_go_to_whoever_has_least_to_do() -> None:
    asked = requests(None, None, None, rollouts=3)
    shares = divided(asked, [0, 0])
    assert {place: [r.task.id for r in share] for place, share in shares.items()} == {
        0: ["t0"] * 3 + ["t2"] * 3,
        1: ["t1"] * 3,
    }
    assert [*divided(asked[:3], [4, 1])] == [1]


def test_every_request_gives_its_episode_in_order(sides: Sides) -> None:
    asked = requests(*[None] * 5)

    async def both() -> tuple[list[Episode], list[Episode]]:
        return await sides.play(asked), await sides.play(asked)

    first, second = asyncio.run(both())
    assert [e.id for e in first] == [r.episode_id for r in asked]
    assert [(e.seed, e.group, e.agent) for e in first] == [(r.seed, r.group, "stub") for r in asked]
    assert len({e.tags["pid"] for e in first}) == 2
    assert [e.tags["pid"] for e in first] == [e.tags["pid"] for e in second]  # the same children, divided alike
    assert os.getpid() not in {e.tags["pid"] for e in first}


def test_new_weights_are_seen_by_all_and_a_new_sampler_begins_anew(sides: Sides) -> None:
    async def stages() -> list[list[Episode]]:
        found = [await sides.play(requests(None, None))]
        sides.set(2.0)  # not told yet
        found.append(await sides.play(requests(None, None)))
        learner = torch.nn.Linear(2, 3)
        with torch.no_grad():
            for parameter in learner.parameters():
                parameter.fill_(3.0)
        await sides.sampler.update(learner.named_parameters, 5)
        found.append(await sides.play(requests(None, None)))
        await sides.sampler.aclose()
        old, sides.sampler = sides.sampler, sides.begin()
        with pytest.raises(RuntimeError, match="another sampler"):
            await old.update(learner.named_parameters, 6)
        found.append(await sides.play(requests(None, None)))
        return found

    def told(episodes: list[Episode]) -> set[tuple[Any, ...]]:
        return {(e.reward, e.tags["version"], e.tags["fresh"], e.tags["rested"]) for e in episodes}

    first, before, after, anew = asyncio.run(stages())
    assert told(first) == told(before) == {(1.0, 0, 1, 0)}
    assert told(after) == {(3.0, 5, 1, 0)}
    assert told(anew) == {(3.0, 0, 2, 1)}
    assert torch.equal(sides.model.bias, torch.full((3,), 3.0))  # an update leaves the weights in the model, too


def test_a_killed_child_is_replaced_and_its_episodes_are_played_again(sides: Sides) -> None:
    asked = requests(None, "die once", None, None)

    async def story() -> list[Episode]:
        sides.set(4.0)
        await sides.sampler.update(sides.model.named_parameters, 3)
        return await sides.play(asked)

    episodes = asyncio.run(story())
    assert [e.id for e in episodes] == [r.episode_id for r in asked]
    assert {(e.reward, e.tags["version"]) for e in episodes} == {(4.0, 3)}
    assert len({e.tags["pid"] for e in episodes}) >= 2


def test_a_child_that_is_killed_from_outside_between_rollouts(sides: Sides) -> None:
    async def story() -> tuple[list[Episode], list[Episode]]:
        before = await sides.play(requests(None, None))
        os.kill(before[0].tags["pid"], signal.SIGKILL)
        return before, await sides.play(requests(None, None))

    before, after = asyncio.run(story())
    assert [e.id for e in after] == [e.id for e in before]
    assert after[0].tags["pid"] != before[0].tags["pid"]
    assert after[-1].tags["pid"] == before[-1].tags["pid"]


def test_an_episode_that_kills_every_child_ends_the_run(sides: Sides) -> None:
    with pytest.raises(MuarlError, match=rf"(?s)process \d of 2 .*SIGKILL.*{TRIES} processes in a row"):
        asyncio.run(sides.play(requests(None, "die")))


def test_an_error_in_a_child_comes_with_its_traceback(sides: Sides) -> None:
    with pytest.raises(MuarlError) as caught:
        asyncio.run(sides.play(requests(None, "fail")))
    text = str(caught.value)
    assert "of 2 (engine.processes) failed" in text
    assert "Traceback" in text and "playing_child.py" in text and "KeyError: 'the table of orders'" in text


def test_an_error_that_says_what_is_wrong_keeps_its_words(sides: Sides) -> None:
    with pytest.raises(MuarlError, match="^the table of orders is empty$"):
        asyncio.run(sides.play(requests("refuse", None)))


def test_an_error_at_the_start(tmp_path: Path) -> None:
    sides = Sides(tmp_path, broken="domain.name: there is none")
    with pytest.raises(MuarlError, match=r"domain\.name: there is none"):
        asyncio.run(sides.play(requests(None)))
    sides.pool.close()


def test_a_child_that_cannot_start_says_why(tmp_path: Path) -> None:
    sides = Sides(tmp_path)
    sides.pool._module = "support.no_such_module"
    with pytest.raises(MuarlError, match=r"(?s)exit code 1.*no_such_module"):
        asyncio.run(sides.play(requests(None)))
    sides.pool.close()


def test_closing_early_cuts_off_what_runs_and_the_children_serve_on(sides: Sides) -> None:
    async def there(name: str) -> None:
        async with asyncio.timeout(LIMIT):
            while not (sides.folder / name).exists():
                await asyncio.sleep(0.02)

    async def story() -> list[Episode]:
        async with aclosing(sides.executor().run(iter(requests(None, "wait")))) as episodes:
            async for _ in episodes:
                await there("begun t1#1")
                break
        await there("cut off")
        assert sides.pool.loads == (0, 0)
        return await sides.play(requests(None, None))

    assert len(asyncio.run(story())) == 4


def test_requests_that_come_as_there_is_room(sides: Sides) -> None:
    asked = requests(None, None, None)

    async def slowly() -> AsyncIterator[RolloutRequest]:
        for request in asked:
            await asyncio.sleep(0)
            yield request

    async def story() -> list[Episode]:
        async with asyncio.timeout(LIMIT):
            return [episode async for episode in sides.executor(concurrency=1).run(slowly())]

    assert {e.id for e in asyncio.run(story())} == {r.episode_id for r in asked}


def test_another_event_loop_has_its_own_children(sides: Sides) -> None:
    first, second = (asyncio.run(sides.play(requests(None))) for _ in range(2))
    assert [e.id for e in first] == [e.id for e in second]


def test_closing_the_pool_ends_its_children(sides: Sides) -> None:
    async def story() -> set[int]:
        return {e.tags["pid"] for e in await sides.play(requests(None, None))}

    pids = asyncio.run(story())
    sides.pool.close()
    asyncio.run(gone(*pids))
    sides.pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(sides.play(requests(None)))


def test_a_task_that_cannot_travel_is_refused(sides: Sides) -> None:
    with pytest.raises(MuarlError, match=r"engine\.processes: a task of toy .*engine\.processes=1"):
        asyncio.run(sides.play(requests_for([toy_task("t0", odd=lambda: None)], 1, seed=0)))


PARENT = """
import asyncio, sys
from pathlib import Path
from processes.test_pool import Sides, requests

async def story(sides):
    episodes = await sides.play(requests(None, None))
    print(*{e.tags["pid"] for e in episodes}, flush=True)
    await sides.play(requests("wait", "wait"))

asyncio.run(story(Sides(Path(sys.argv[1]))))
"""


def test_children_do_not_outlive_a_killed_parent(tmp_path: Path, repository: Path) -> None:
    path = os.pathsep.join([str(repository / "tests"), *filter(None, sys.path)])
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    try:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(running, pids))
    finally:
        parent.kill()
        parent.wait()
    asyncio.run(gone(*pids))
    assert parent.stdout.read() == ""
    parent.stdout.close()


def test_shared_memory_holds_what_was_written() -> None:
    tensors = {
        "a": torch.randn(3, 5),
        "b": torch.arange(7, dtype=torch.int64),
        "c": torch.zeros(2, dtype=torch.bfloat16),
    }
    shared = SharedWeights.like(tensors.items())
    seen = SharedWeights(shared.bucket.table, shared.descriptor)
    assert all(torch.equal(seen.tensors[name], tensor) for name, tensor in tensors.items())
    shared.write([("a", torch.ones(3, 5))])
    assert torch.equal(seen.tensors["a"], torch.ones(3, 5))
    for wrong in (("z", torch.ones(1)), ("a", torch.ones(2)), ("a", torch.ones(3, 5, dtype=torch.float64))):
        with pytest.raises(ValueError, match="other tensors"):
            shared.write([wrong])
    shared.close()
    shared.close()
