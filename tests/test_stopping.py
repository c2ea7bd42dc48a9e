"""Ctrl-C and SIGTERM: when they take effect, and what a process says of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from muarl.basics import stopping
from muarl.recipes.training.ahead import uncut

BOTH = [signal.SIGINT, signal.SIGTERM]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", BOTH)
def test_both_signals_are_a_keyboard_interrupt(number: signal.Signals) -> None:
    before = [signal.getsignal(n) for n in BOTH]
    with pytest.raises(KeyboardInterrupt), stopping.stop_signals():
        send(number)
    assert stopping.stopped_by() == number.name and stopping.exit_code() == 128 + number
    assert [signal.getsignal(n) for n in BOTH] == before


@pytest.mark.parametrize("number", BOTH)
def test_what_is_held_is_whole_and_the_second_signal_does_not_wait(number: signal.Signals) -> None:
    def work(signals: int) -> None:
        with stopping.held():
            for _ in range(signals):
                send(number)
            done.append("held")
        done.append("never")

    for signals, expected in ((1, ["held"]), (2, [])):
        done: list[str] = []
        with pytest.raises(KeyboardInterrupt), stopping.stop_signals():
            work(signals)
        assert done == expected and stopping.stopped_by() == number.name


@pytest.mark.parametrize("number", BOTH)
def test_within_asyncio_the_main_task_is_cancelled(number: signal.Signals) -> None:
    told = []

    async def work() -> None:
        try:
            asyncio.get_running_loop().call_soon(send, number)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt), stopping.stop_signals():
        asyncio.run(work())
    assert told == ["cancelled"]


def test_uncut_work_ends_before_the_cancellation_passes() -> None:
    told = []

    async def update() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        told.append("updated")

    async def work() -> None:
        asyncio.get_running_loop().call_soon(send, signal.SIGINT)
        try:
            await uncut(update())
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert told == ["updated", "cancelled"]


def test_sigterm_stops_a_background_job_that_ignores_sigint() -> None:
    """A shell's `command &` in a script begins with SIGINT ignored."""
    code = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from muarl.basics import stopping
try:
    with stopping.stop_signals():
        with stopping.held():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        print("not reached")
except KeyboardInterrupt:
    sys.exit(stopping.exit_code())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (143, ""), done.stderr


def test_sigterm_cancels_the_main_task_of_a_background_job() -> None:
    """Where SIGINT is ignored too, work in a loop ends by cancellation, and Ctrl-C goes on being ignored."""
    code = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from muarl.basics import stopping
async def serve():
    await asyncio.sleep(0)
    signal.raise_signal(signal.SIGTERM)
async def work():
    signal.raise_signal(signal.SIGINT)
    serving = asyncio.create_task(serve())
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        print("saved")
        raise
try:
    with stopping.stop_signals():
        asyncio.run(work())
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    sys.exit(stopping.exit_code())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "saved\n", "")
