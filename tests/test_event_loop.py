"""The one event loop of a run: shared by nested blocks, and what is closed at their ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from muarl.basics.event_loop import EventLoop, event_loop


async def here() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


class Part:
    """Something to close."""

    def __init__(self, name: str, log: list[str], failure: Exception | None = None) -> None:
        self.name, self.log, self.failure = name, log, failure

    async def aclose(self) -> None:
        assert asyncio.get_running_loop()
        self.log.append(self.name)
        if self.failure is not None:
            raise self.failure


def test_all_stages_of_a_block_run_in_one_loop_and_another_block_has_another() -> None:
    with event_loop() as loop:
        first = loop.run(here())
        with event_loop() as inner:
            assert inner.run(here()) is first
        assert loop.run(here()) is first and not first.is_closed()
    assert first.is_closed()
    with event_loop() as loop:
        assert loop.run(here()) is not first


class Written:
    """A result that counts how often it is written out as text."""

    def __init__(self) -> None:
        self.count = 0

    def __repr__(self) -> str:
        self.count += 1
        return "a step's episodes"


def test_what_a_stage_gives_is_not_written_out_as_text() -> None:
    result = Written()

    async def stage() -> Written:
        await asyncio.sleep(0)
        return result

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # so that asyncio puts its own in place
    try:
        with event_loop() as loop:
            assert loop.run(stage()) is result
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.count == 0


def test_tasks_live_on_between_stages_and_are_cancelled_at_the_end() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task

    with event_loop() as loop:
        task = loop.run(begin())
        loop.run(here())
        assert not task.done() and not ended
    assert task.cancelled() and ended == ["cancelled"]


def test_parts_are_closed_at_the_end_of_their_own_block_the_last_one_first() -> None:
    log: list[str] = []
    with event_loop() as outer:
        outer.closes(Part("a", log), object(), Part("b", log))
        with event_loop() as inner:
            inner.closes(Part("c", log))
            assert log == []
        assert log == ["c"]
    assert log == ["c", "b", "a"]


def fails_with(*parts: Part) -> None:
    with event_loop() as loop:
        loop.closes(*parts)
        raise KeyError("first")


def test_parts_are_closed_after_a_failure_and_one_that_cannot_be_does_not_keep_the_others() -> None:
    log: list[str] = []
    with pytest.raises(KeyError):
        fails_with(Part("a", log))
    with pytest.raises(OSError, match="no") as caught:
        fails_with(Part("b", log), Part("c", log, OSError("no")))
    assert log == ["a", "c", "b"] and isinstance(caught.value.__context__, KeyError)


def test_another_thread_has_a_loop_of_its_own() -> None:
    found: list[asyncio.AbstractEventLoop] = []

    def work() -> None:
        with event_loop() as loop:
            found.append(loop.run(here()))

    async def in_a_thread() -> None:
        await asyncio.to_thread(work)  # takes the context along

    with event_loop() as loop:
        loop.run(in_a_thread())
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        found.append(loop.run(here()))
    assert len(set(found)) == 3


def test_what_is_awaited_sees_the_context_of_its_stage() -> None:
    value: ContextVar[str] = ContextVar("value", default="none")

    async def seen() -> str:
        return value.get()

    with event_loop() as loop:
        assert loop.run(seen()) == "none"
        token = value.set("set")
        assert loop.run(seen()) == "set"
        value.reset(token)
        assert loop.run(seen()) == "none"


@pytest.fixture
def interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_cancels_a_stage_and_the_block_can_still_close_and_run() -> None:
    log: list[str] = []

    async def stage() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            log.append("cut off")

    def whole(loop: EventLoop) -> None:
        with pytest.raises(KeyboardInterrupt):
            loop.run(stage())
        assert loop.run(asyncio.sleep(0, "goes on")) == "goes on"

    with event_loop() as loop:
        loop.closes(Part("closed", log))
        whole(loop)
    assert log == ["cut off", "closed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
