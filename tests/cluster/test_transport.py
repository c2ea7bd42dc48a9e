"""Groups that carry weights: the same bits for all, a lost member is noticed, and a new group takes its place.

Between CPUs: gloo and a buffer in shared memory. NCCL and CUDA IPC need GPUs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from muarl.learning.process_group import host_store
from muarl.models.buckets import buckets
from muarl.workers.cluster.transport import GroupBroken, GroupKind, WeightGroup, give_up, join_group

CPU = torch.device("cpu")
BOTH = pytest.mark.parametrize("kind", ["broadcast", "ipc"])
Named = list[tuple[str, Tensor]]


def weights(seed: int) -> Named:
    made = torch.Generator().manual_seed(seed)
    shapes = {"large": (70, 33), "row": (33,), "nothing": (0, 4), "one": ()}
    found = [(n, torch.randn(s, generator=made)) for n, s in shapes.items()]
    half = torch.randn(5, 5, generator=made).to(torch.bfloat16)
    return [*found, ("half", half), ("count", torch.arange(9)), ("turned", found[0][1].t())]


class Members:
    """A sender and receivers as threads. Every wait ends after ``seconds``."""

    def __init__(self, kind: GroupKind, receivers: int, seconds: float = 30.0) -> None:
        self._store, self.address = host_store()
        self.groups: list[WeightGroup] = [None] * (receivers + 1)  # type: ignore[list-item]

        def join(rank: int) -> None:
            self.groups[rank] = join_group(kind, self.address, rank, receivers + 1, device=CPU, seconds=seconds)

        together([lambda r=rank: join(r) for rank in range(receivers + 1)])

    @property
    def sender(self) -> WeightGroup:
        return self.groups[0]

    def close(self) -> None:
        for group in self.groups:
            group.close()


def together(deeds: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each gives or raises, all at once."""
    found: list[Any] = [None] * len(deeds)

    def do(number: int) -> None:
        try:
            found[number] = deeds[number]()
        except BaseException as problem:
            found[number] = problem

    threads = [threading.Thread(target=do, args=(n,)) for n in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


def send(group: WeightGroup, named: Named, size: int = 4096) -> None:
    for bucket in buckets(named, size):
        assert len(bucket.data) <= size or len(bucket.entries) == 1
        group.send(bucket)
    group.end()


def receive(group: WeightGroup) -> Named:
    return [(name, tensor.clone()) for name, tensor in group.receive()]


def check_same(got: Any, sent: Named) -> None:
    assert not isinstance(got, BaseException), got
    assert [n for n, _ in got] == [n for n, _ in sent]
    for (_, a), (_, b) in zip(got, sent, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


@BOTH
def test_all_get_the_same_bits_set_after_set(kind: GroupKind) -> None:
    members = Members(kind, 2)
    for seed in range(3):
        sent = weights(seed)
        done = together([lambda s=sent: send(members.sender, s), *(lambda g=g: receive(g) for g in members.groups[1:])])
        assert done[0] is None
        for got in done[1:]:
            check_same(got, sent)
    members.close()


def test_a_shared_buffer_leaves_no_file() -> None:
    members = Members("ipc", 1)
    reading = members.groups[1].receive()
    sent = threading.Thread(target=lambda: send(members.sender, weights(0), 64))
    sent.start()
    while not buffers():  # there until its readers have opened it
        assert sent.is_alive()
        time.sleep(0.001)
    got = list(reading)
    sent.join(60)
    check_same(got, weights(0))
    assert not buffers(), "gone while the group is still of use"
    members.close()


def buffers() -> list[Path]:
    """Files of shared buffers that this process has made."""
    return list(Path("/dev/shm").glob(f"muarl-buffer-{os.getpid()}-*"))


@BOTH
def test_a_receiver_that_fails_is_told_to_all_and_the_rest_form_another_group(kind: GroupKind) -> None:
    members = Members(kind, 2)

    def fails() -> None:
        for _ in members.groups[2].receive():
            members.groups[2].fail("its disk is full")
            return

    done = together([lambda: send(members.sender, weights(1), 64), lambda: receive(members.groups[1]), fails])
    assert isinstance(done[0], GroupBroken) and isinstance(done[1], GroupBroken)
    assert all("rank 2: its disk is full" in str(d) for d in done[:2]), "in the words of whoever came first"
    members.close()
    rest = Members(kind, 1)
    _, got = together([lambda: send(rest.sender, weights(1)), lambda: receive(rest.groups[1])])
    check_same(got, weights(1))
    rest.close()


@BOTH
def test_nobody_waits_for_one_that_is_silent_once_somebody_knows(kind: GroupKind) -> None:
    members = Members(kind, 2, seconds=600.0)  # ``together`` waits for less
    reading = members.groups[1].receive()

    def knows() -> None:
        next(reading)
        give_up(members.address, "sampler 1 died")

    big: Named = [("w", torch.zeros(1 << 22)), ("v", torch.zeros(1 << 22))]  # more than sockets hold
    done = together(
        [lambda: send(members.sender, big, 1 << 20), knows]
        if kind == "ipc"
        else [lambda: send(members.sender, big, 1 << 20), lambda: give_up(members.address, "sampler 1 died")]
    )
    assert isinstance(done[0], GroupBroken) and "sampler 1 died" in str(done[0])
    members.close()


@BOTH
def test_waiting_ends(kind: GroupKind) -> None:
    members = Members(kind, 1)
    members.groups[1].seconds = 0.2
    (done,) = together([lambda: receive(members.groups[1])])
    assert isinstance(done, GroupBroken) and "waited" in str(done)
    members.close()


def test_who_waits_for_members_that_never_come_is_told() -> None:
    _store, address = host_store()

    def join() -> WeightGroup:
        return join_group("broadcast", address, 0, 2, device=CPU, seconds=30.0)

    alone, _ = together([join, lambda: give_up(address, "sampler 0 died as it joined")])
    assert isinstance(alone, GroupBroken) and "as it joined" in str(alone)


def test_a_store_that_is_gone_is_a_broken_group() -> None:
    store, address = host_store()
    del store
    with pytest.raises(GroupBroken, match="cannot reach"):
        join_group("ipc", address, 1, 2, device=CPU, seconds=1.0)


LONG = 600.0
"""Seconds that processes may take, which import all of PyTorch; nothing waits so long unless it is broken."""
SCRIPT = """
import os, signal, sys, torch
from muarl.workers.cluster.transport import join_group
kind, address, rank, dies = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "dies"
group = join_group(kind, address, rank, 3, device=torch.device("cpu"), seconds=600.0)
print("there", flush=True)
for number, (name, tensor) in enumerate(group.receive()):
    if dies and number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    print(name, flush=True)
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


@pytest.mark.slow
@BOTH
def test_a_process_that_is_killed_in_the_middle(kind: GroupKind, processes: list[subprocess.Popen[str]]) -> None:
    _store, address = host_store(deadline=LONG)
    for rank, fate in ((1, "lives"), (2, "dies")):
        command = [sys.executable, "-c", SCRIPT, kind, address, str(rank), fate]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ})
        )

    def know() -> None:  # as Ray tells the driver
        assert processes[1].wait(LONG) == -signal.SIGKILL
        give_up(address, "sampler 1 died")

    told = threading.Thread(target=know)
    told.start()
    group = join_group(kind, address, 0, 3, device=CPU, seconds=LONG)
    named: Named = [(f"w{n}", torch.full((1 << 20,), float(n))) for n in range(24)]
    with pytest.raises(GroupBroken):
        send(group, named, 1 << 20)
    told.join(LONG)
    said, _ = processes[0].communicate(timeout=LONG)
    assert processes[0].returncode == 1 and "GroupBroken" in said and "there\nw0\n" in said, said
    assert not buffers()
