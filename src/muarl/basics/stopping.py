"""Ctrl-C and SIGTERM: what has begun and must be whole is finished first; the second signal does not wait.

SIGTERM (Slurm, Kubernetes, ``timeout``) does what Ctrl-C does: a KeyboardInterrupt in the main thread, or, within
``asyncio.run``, the cancellation of its main task. Whoever works in steps saves then, and lets it pass.

    with stop_signals():
        for step in ...:
            roll_out()             # is cut off at once
            with held():
                update()           # is not
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_by = signal.Signals.SIGINT


def stopped_by() -> str:
    """The name of the signal that stops this process: SIGTERM where that came, else SIGINT."""
    return _by.name


def exit_code() -> int:
    """What a process that a signal stopped ends with, as shells have it: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + int(_by)


@contextmanager
def stop_signals() -> Iterator[None]:
    """SIGTERM stops what the block does as Ctrl-C would. Only in the main thread, where signals arrive."""
    global _by
    _by = signal.Signals.SIGINT
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        with _ignored_sigint_as_blocked():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _ignored_sigint_as_blocked() -> Iterator[None]:
    """A shell's background job, or what ``nohup`` starts, ignores SIGINT. It still does here, but by the signal mask:
    so asyncio puts its own handler in place, through which SIGTERM cancels the main task. A KeyboardInterrupt out of
    whatever callback the signal came in would leave tasks that nobody waits for."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets what came meanwhile
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def held() -> Iterator[None]:
    """What the block does is not cut off: a signal that comes meanwhile stops at its end. A second one stops at once,
    and then the block is not whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, Any] = {}

    def later(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            handlers[number](number, frame)

    for number in SIGNALS:
        if callable(handler := signal.getsignal(number)):  # not what is ignored, or ends the process
            handlers[number] = handler
            signal.signal(number, later)
    try:
        yield
    finally:
        for which, handler in handlers.items():
            signal.signal(which, handler)
    if came:
        handlers[came[0]](came[0], None)


def _terminated(number: int, frame: FrameType | None) -> None:
    global _by
    _by = signal.Signals.SIGTERM
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):  # such as asyncio's, which cancels the main task
        interrupt(signal.SIGINT, frame)
    else:  # a shell's background job ignores SIGINT
        raise KeyboardInterrupt
