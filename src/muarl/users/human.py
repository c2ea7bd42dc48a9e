"""A person at the terminal as the user. Typing never blocks the event loop, and Ctrl-D ends the conversation."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.types.chat import STOP_WORDS, Message
from muarl.users.base import User, UserFactory, UserTurn

ReadLine = Callable[[], Awaitable[str | None]]
"""Gives the next line without its line break, or None at the end of input."""


class LineReader:
    """Reads lines from a terminal, pipe or file (standard input by default) without blocking the event loop.

    It reads the file descriptor itself: Python's own buffering would hide lines that have already come from the loop.
    Use one reader for a source; what one has read ahead another can't see.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = descriptor
        self._ahead = b""
        self._ended = False

    async def __call__(self) -> str | None:
        while b"\n" not in self._ahead and not self._ended:
            chunk = await self._read()
            self._ahead += chunk
            self._ended = not chunk
        if not self._ahead:
            # A terminal continues after Ctrl-D, if it is asked again.
            self._ended = False
            return None
        line, _, self._ahead = self._ahead.partition(b"\n")
        return line.decode("utf-8", errors="replace").rstrip("\r")

    async def _read(self) -> bytes:
        descriptor = sys.stdin.fileno() if self._descriptor is None else self._descriptor
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bytes] = loop.create_future()
        try:
            loop.add_reader(descriptor, _settle, ready, b"")
        except (OSError, NotImplementedError):
            # Plain files can't be watched, and on Windows nothing can: a thread waits, which dies with the process.
            threading.Thread(target=_read_in_thread, args=(descriptor, loop, ready), daemon=True).start()
            return await ready
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, 65536)


def _read_in_thread(descriptor: int, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[bytes]) -> None:
    try:
        chunk = os.read(descriptor, 65536)
    except OSError:
        chunk = b""
    with suppress(RuntimeError):  # The loop has closed meanwhile: nobody waits any more.
        loop.call_soon_threadsafe(_settle, ready, chunk)


def _settle(ready: asyncio.Future[bytes], value: bytes) -> None:
    if not ready.done():
        ready.set_result(value)


Before = Callable[[Sequence[Message], str | None], None]
"""Called before each line is read, with the conversation and the line that is suggested, if one is."""


class HumanUser:
    """A person in one episode. The end of input (Ctrl-D) becomes ###STOP###.

    ``before`` shows what is new and prints a prompt. ``suggests``: a simulated user who hears the same conversation and
    says what it would say; a blank line takes that. Without one, blank lines are asked again.
    """

    def __init__(self, read_line: ReadLine, before: Before | None = None, suggests: User | None = None) -> None:
        self._read_line = read_line
        self._before = before
        self._suggests = suggests

    def __deepcopy__(self, memo: object) -> HumanUser:
        raise ConfigError("it is a person")

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Wait for the next line that is not blank."""
        suggested = None
        if self._suggests is not None:
            suggested = (await self._suggests.reply(conversation)).message.content
        while True:
            if self._before is not None:
                self._before(conversation, suggested)
            line = await self._read_line()
            if line is None:
                return UserTurn(Message("user", STOP_WORDS[0]))
            said = line.strip() or suggested
            if said:
                return UserTurn(Message("user", said))


class HumanUserFactory:
    """Makes a person at the terminal. All episodes share one reader, so let them run one at a time. ``suggests``: who
    makes the users that suggest lines, for tasks with an agenda."""

    name = "human"

    def __init__(
        self,
        read_line: ReadLine | None = None,
        *,
        before: Before | None = None,
        suggests: UserFactory | None = None,
    ) -> None:
        self._read_line = read_line or LineReader()
        self._before = before
        self._suggests = suggests

    def __call__(self, task: Task, *, seed: int) -> User:
        suggests = None if self._suggests is None or task.agenda is None else self._suggests(task, seed=seed)
        return HumanUser(self._read_line, self._before, suggests)
