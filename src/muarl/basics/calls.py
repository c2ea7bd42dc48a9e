"""Calls of another process over one connection: many at once, each with a number that its answers bear."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from muarl.basics.frames import BYTES_LIMIT, WireError, receive, send

Frame = tuple[dict[str, Any], bytes]


class Calls(ABC):
    """One side of an open connection. When it ends, everything that waits for an answer fails, and ``closed`` is done.

    ``lost``: what became of it, once it has ended. ``payloads``: most bytes of an answer.
    """

    def __init__(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, payloads: int = BYTES_LIMIT
    ) -> None:
        self.name = name
        self.lost: str | None = None
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame | None]] = {}
        self.closed = asyncio.create_task(self._read(reader, payloads))

    @abstractmethod
    def failure(self) -> Exception:
        """What became of the connection, as an error."""

    @abstractmethod
    def problem(self, value: Mapping[str, Any]) -> Exception | None:
        """The error that an answer stands for, if it does."""

    @abstractmethod
    async def fate(self, problem: Exception) -> str:
        """What is said of a connection that ended with this, EOFError where the other side has closed it."""

    @property
    def pending(self) -> int:
        """How many calls wait for an answer."""
        return len(self._waiting)

    @contextmanager
    def call(self, verb: str, fields: Mapping[str, Any], payload: bytes = b"") -> Iterator[NumberedCall]:
        """A call, whose answers can be had within the block."""
        if self.lost is not None:
            raise self.failure()
        call = NumberedCall(self, next(self._numbers), asyncio.Queue())
        self._waiting[call.number] = call.frames
        try:
            call.say(verb, fields, payload)
            yield call
        finally:
            del self._waiting[call.number]

    async def ask(
        self, verb: str, fields: Mapping[str, Any] | None = None, payload: bytes = b"", *, seconds: float | None = None
    ) -> Frame:
        """One call and its one answer. TimeoutError after ``seconds``, or the error that it answers with."""
        with self.call(verb, fields or {}, payload) as call:
            try:
                async with asyncio.timeout(seconds):
                    with suppress(OSError):  # the reader hears of it too
                        await self._writer.drain()
                    return await call.answer()
            except (asyncio.CancelledError, TimeoutError):
                call.say("cancel")
                raise

    def tell(self, value: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame, if anybody hears it."""
        with suppress(OSError, RuntimeError):
            send(self._writer, value, payload)

    def hang_up(self, why: str) -> None:
        """End the connection and fail what waits. ``why``: what is then said of it."""
        self.lost = self.lost or why
        with suppress(RuntimeError):  # its event loop has ended, and all that waited there with it
            self.closed.cancel()
            self._fail()

    async def _read(self, reader: asyncio.StreamReader, payloads: int) -> None:
        why = f"{self.name} was closed"
        try:
            while True:
                value, data = await receive(reader, payloads=payloads)
                frames = self._waiting.get(int(value.get("id") or 0))
                if frames is not None:  # somebody waits still
                    frames.put_nowait((value, data))
        except (OSError, EOFError, WireError, ValueError, TypeError) as problem:
            why = await self.fate(problem)
        finally:
            self.lost = self.lost or why
            self._fail()

    def _fail(self) -> None:
        for frames in self._waiting.values():
            frames.put_nowait(None)
        with suppress(RuntimeError):
            self._writer.close()


@dataclass(frozen=True, slots=True)
class NumberedCall:
    """One call, and the frames that have come for it."""

    calls: Calls
    number: int
    frames: asyncio.Queue[Frame | None]

    async def answer(self) -> Frame:
        """The next answer, or the error that it stands for, or that the connection has ended with."""
        frame = await self.frames.get()
        problem = self.calls.failure() if frame is None else self.calls.problem(frame[0])
        if frame is None or problem is not None:
            assert problem is not None
            raise problem
        return frame

    def say(self, verb: str, fields: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        """Send a frame that belongs to this call."""
        self.calls.tell({"id": self.number, "op": verb, **(fields or {})}, payload)
