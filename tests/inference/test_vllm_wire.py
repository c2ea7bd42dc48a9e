"""What sampler and servers say to each other: frames, greetings, numbers, errors; and what a stranger may try."""

import asyncio
import socket
import struct

import pytest

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.basics.frames import WireError, receive, send
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.vllm import wire
from muarl.inference.vllm.link import Link
from muarl.inference.vllm.server import RpcServer, bind, main, token_for
from muarl.inference.vllm.settings import VllmSettings
from support.fake_vllm import FakeCore


def test_numbers_survive_the_way():
    params = SamplingParams(7, 0.7, 0.9, 5, (3, 2**31 - 1), 2**62 + 1)
    assert wire.unpack_request(*wire.pack_request([1, 0, 151_935], params)) == ([1, 0, 151_935], params)
    sampled = Completion((5, 6, 7), (-0.1, -1e-17, -33.3333333333333333), "length", 12)
    assert wire.unpack_sampled(*wire.pack_sampled(sampled)) == sampled


def test_what_is_no_number_is_refused():
    fields, payload = wire.pack_request([1], SamplingParams(7))
    for wrong in ({"max_tokens": "many"}, {"stop_ids": [None]}, {"seed": []}):
        with pytest.raises(ConfigError, match="cannot be read"):
            wire.unpack_request(fields | wrong, payload)
    with pytest.raises(ConfigError, match="cannot be read"):
        wire.unpack_request(fields, b"123")
    with pytest.raises(ConfigError, match="32 bits"):
        wire.pack_request([1 << 40], SamplingParams(7))
    with pytest.raises(WireError):
        wire.unpack_sampled({"finish": "stop", "version": 1}, b"1" * 13)
    with pytest.raises(WireError):
        wire.unpack_sampled({"finish": "why", "version": 1}, b"1" * 12)


@pytest.mark.parametrize(
    "problem",
    [
        ConfigError("a"),
        CheckpointError("b"),
        InfrastructureError("c", boundary="agent", retryable=False),
        InfrastructureError("d", boundary="agent"),
    ],
)
def test_errors_survive_the_way(problem):
    again = wire.unpack_error(wire.pack_error(problem))
    assert type(again) is type(problem)
    assert str(again) == str(problem)
    assert getattr(again, "retryable", None) == getattr(problem, "retryable", None)


class Running:
    """A server in this process, on a port of its own."""

    def __init__(self, token="secret"):
        self.core = FakeCore()
        self.listener = bind("127.0.0.1:0")
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(RpcServer(self.core, token).run(self.listener, self.stop))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.stop.set()
        await self.task


async def test_requests_are_answered_in_any_order_and_cancelled_ones_are_dropped():
    from support.fake_vllm import REFUSE, SLOW

    async with Running() as server:
        link = await Link.open("it", server.address, "secret", 5)
        slow = asyncio.create_task(link.sample([SLOW], SamplingParams(4), 60))
        quick = await link.sample([1, 2], SamplingParams(4), 60)
        assert quick.finish_reason == "stop" and quick.logprobs[1] == -0.5
        with pytest.raises(ConfigError, match="max_tokens"):
            await link.sample([REFUSE], SamplingParams(4), 60)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert link.pending == 0
        while not server.core.stats.evictions:  # the server hears of it
            await asyncio.sleep(0.01)
        link.break_off("the test is over")
        with pytest.raises(InfrastructureError, match="it was lost: the test is over") as lost:
            await link.sample([1], SamplingParams(4), 60)
        assert lost.value.retryable and lost.value.boundary == "agent"


async def test_a_server_that_answers_too_late_is_lost_but_one_that_answers_others_is_not():
    from support.fake_vllm import SLOW

    async with Running() as server:
        link = await Link.open("it", server.address, "secret", 5)
        slow = asyncio.create_task(link.sample([SLOW], SamplingParams(4), 1.5))
        await link.sample([1], SamplingParams(4), 60)
        with pytest.raises(InfrastructureError, match=r"did not complete a request in 1\.5 seconds"):
            await slow
        assert not link.closed.done()
        with pytest.raises(InfrastructureError, match="did not complete"):
            await link.sample([SLOW], SamplingParams(4), 0.2)
        assert "and nothing else either" in str(link.failure())


async def test_nobody_without_the_token_is_served():
    async with Running() as server:
        with pytest.raises(InfrastructureError, match="MUARL_ENGINE_TOKEN") as refused:
            await Link.open("it", server.address, "guess", 5)
        assert not refused.value.retryable
        # Somebody who does not greet: a request is not even read.
        host, port = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await receive(reader)
        send(writer, {"id": 1, "op": "sample"})
        answer, _ = await receive(reader)
        assert "refused" in answer
        assert await reader.read() == b""
        writer.close()
        assert server.core.stats.requests == 0


async def test_a_server_that_does_not_know_the_token_is_not_believed():
    async def rogue(reader, writer):
        send(writer, {"hello": "1"})
        await receive(reader)
        send(writer, {"proof": "yes"})

    server = await asyncio.start_server(rogue, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(InfrastructureError, match="does not know this token"):
        await Link.open("it", f"127.0.0.1:{port}", "secret", 5)
    server.close()


@pytest.mark.parametrize(
    "bytes_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        struct.pack(">4sII", b"mua1", 2**31, 0),
        struct.pack(">4sII", b"mua1", 2, 0),
    ],
)
async def test_garbage_ends_the_connection_and_not_the_server(bytes_):
    async with Running() as server:
        host, port = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await receive(reader)
        writer.write(bytes_ + b"[]")
        writer.write_eof()
        async with asyncio.timeout(5):
            while await reader.read(1000):
                pass
        writer.close()
        link = await Link.open("it", server.address, "secret", 5)
        assert (await link.sample([1], SamplingParams(4), 5)).finish_reason == "stop"
        link.break_off("done")


async def test_uploads_cannot_leave_their_folder():
    async with Running() as server:
        link = await Link.open("it", server.address, "secret", 5)
        for name in ("../x", "/etc/x", "a/b/c", "..", "a/../b", ""):
            with pytest.raises(ConfigError, match="cannot be the name of an upload"):
                await link.ask("upload", {"name": name, "offset": 0}, b"1", seconds=5)
        await link.ask("upload", {"name": "a", "offset": 0}, b"12", seconds=5)
        with pytest.raises(ConfigError, match="a piece of this upload is missing"):
            await link.ask("upload", {"name": "a", "offset": 3}, b"4", seconds=5)
        link.break_off("done")


async def test_parts_of_an_update_arrive_in_order_and_a_lost_learner_ends_it():
    async with Running() as server:
        link = await Link.open("it", server.address, "secret", 5)
        with link.call("receive", {"version": 4}) as call:
            for names in (["a", "b"], ["c"]):
                call.say("part", {"tensors": {"names": names}})
            call.say("part", {"tensors": {}})
            assert (await call.answer())[0]["version"] == 4
        assert server.core.value == 3.0
        with link.call("receive", {"version": 5}) as call:
            link.break_off("gone")
            with pytest.raises(InfrastructureError, match="it was lost: gone"):
                await call.answer()
        other = await Link.open("it", server.address, "secret", 5)
        assert (await other.ask("ping", seconds=5))[0]["version"] == 4
        other.break_off("done")


async def test_a_server_that_is_gone_is_told_in_time():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(InfrastructureError, match="it could not be reached") as gone:
        await Link.open("it", address, "secret", 5)
    assert gone.value.retryable

    async def silent(reader, writer):
        await asyncio.sleep(60)

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    with pytest.raises(InfrastructureError, match="could not be reached"):
        await Link.open("it", f"127.0.0.1:{server.sockets[0].getsockname()[1]}", "secret", 0.1)
    server.close()


def test_a_port_in_use_is_told_before_the_engine_starts(capsys, tmp_path):
    taken = bind("127.0.0.1:0")
    port = taken.getsockname()[1]
    assert main(["--model", str(tmp_path), "--listen", f"127.0.0.1:{port}"]) == 1
    assert f"127.0.0.1:{port} cannot be listened on" in capsys.readouterr().err
    taken.close()


def test_the_commands_words_reach_the_engine(monkeypatch, tmp_path, capsys):
    given = []

    async def start(settings, listener, token, lifeline):
        given.append((settings, token, lifeline))
        listener.close()

    monkeypatch.setattr("muarl.inference.vllm.server._start", start)
    monkeypatch.setenv("MUARL_ENGINE_TOKEN", "t")
    words = ["--model", "m", "--max-context", "99", "--cache-gib", "2", "--lora-rank", "8", "--memory", "0.5", "--nccl"]
    assert main(["--listen", "0.0.0.0:0", *words]) == 0
    wanted = VllmSettings("m", 99, dtype="bfloat16", cache_gib=2.0, lora_rank=8, memory=0.5, nccl=True)
    assert given == [(wanted, "t", None)]
    assert main(["--listen", str(tmp_path / "s"), "--settings", wanted.to_json()]) == 0
    assert given[1][0] == wanted
    assert main(["--listen", "127.0.0.1:0"]) == 1
    assert "--model" in capsys.readouterr().err


def test_who_can_be_reached_from_elsewhere_needs_a_token(monkeypatch):
    monkeypatch.delenv("MUARL_ENGINE_TOKEN", raising=False)
    for address in ("0.0.0.0:1", "[::]:1", "10.0.0.7:1", "node7:1"):
        with pytest.raises(ConfigError, match="MUARL_ENGINE_TOKEN"):
            token_for(address)
    assert token_for("127.0.0.1:1") == token_for("[::1]:1") == token_for("localhost:1") == token_for("/run/x") == ""
    monkeypatch.setenv("MUARL_ENGINE_TOKEN", "t")
    assert token_for("0.0.0.0:1") == "t"
