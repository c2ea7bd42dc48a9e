"""A client's connection to one server: many requests at once, each answered, refused or failed by a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.inference.base import Sampled, SamplingParams
from muarl.inference.vllm import wire

CONNECTING = 10.0


class Link:
    """An open connection. When it breaks, everything that waits for an answer fails with an InfrastructureError that
    may be retried, and ``closed`` is done."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.name = name
        self.last_answer = time.monotonic()
        self.figures: Mapping[str, int] = {}
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._lost: str | None = None
        self.closed = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, name: str, address: str, token: str, patience: float) -> Link:
        """Connect to HOST:PORT or a socket's path, where the engine may need ``patience`` seconds to come up.

        InfrastructureError: nobody answers there (retryable), or does not know the token (not retryable).
        """
        host, colon, port = address.rpartition(":")
        writer = None
        try:
            async with asyncio.timeout(CONNECTING):
                if colon:
                    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                else:
                    reader, writer = await asyncio.open_unix_connection(address)
            await wire.greet_server(reader, writer, token, patience)
            return cls(name, reader, writer)
        except (OSError, EOFError, TimeoutError, ValueError, wire.WireError) as problem:
            if writer is not None:
                writer.close()
            refused = isinstance(problem, wire.WireError)
            what = str(problem) or type(problem).__name__
            raise InfrastructureError(
                f"{name} could not be reached: {what}", boundary="agent", retryable=not refused
            ) from problem

    @property
    def pending(self) -> int:
        """How many requests wait for an answer."""
        return len(self._waiting)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, seconds: float) -> Sampled:
        """One completion. After ``seconds`` an InfrastructureError; a server that has answered nobody for so long is
        taken to hang, and the link is broken."""
        began = time.monotonic()
        fields, payload = wire.pack_request(prompt_ids, params)
        try:
            value, data = await self.ask("sample", fields, payload, seconds=seconds)
        except TimeoutError:
            text = f"{self.name} did not complete a request in {seconds:g} seconds (engine.deadline)"
            if time.monotonic() - max(self.last_answer, began) >= seconds * 0.99:
                self.break_off(f"{text}, and nothing else either")
            raise InfrastructureError(text, boundary="agent") from None
        try:
            sampled = wire.unpack_sampled(value, data)
        except wire.WireError as problem:
            self.break_off(str(problem))
            raise InfrastructureError(f"{self.name} sent {problem}", boundary="agent") from None
        self.last_answer = time.monotonic()
        return sampled

    async def ask(
        self, verb: str, fields: Mapping[str, Any] | None = None, payload: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """One request and its answer. TimeoutError after ``seconds``, or the error that the server answers with."""
        if self._lost is not None:
            raise InfrastructureError(self._lost, boundary="agent")
        number = next(self._numbers)
        future: asyncio.Future[tuple[dict[str, Any], bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(OSError):  # the reader hears of it too
                    wire.send(self._writer, {"id": number, "op": verb, **(fields or {})}, payload)
                    await self._writer.drain()
                value, data = await future
        except (asyncio.CancelledError, TimeoutError):
            self._tell("cancel", number)
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in value:
            raise wire.unpack_error(value)
        self.figures = value.get("stats", self.figures)
        return value, data

    def start(self, verb: str, fields: Mapping[str, Any]) -> tuple[int, asyncio.Future[tuple[dict[str, Any], bytes]]]:
        """Begin a request that ``part`` adds to; its number, and the future of its answer."""
        if self._lost is not None:
            raise InfrastructureError(self._lost, boundary="agent")
        number = next(self._numbers)
        future: asyncio.Future[tuple[dict[str, Any], bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        future.add_done_callback(lambda _: self._waiting.pop(number, None))
        wire.send(self._writer, {"id": number, "op": verb, **fields})
        return number, future

    def part(self, number: int, tensors: Mapping[str, Any]) -> None:
        """One more part of a request; an empty one is the last."""
        with contextlib.suppress(OSError):
            wire.send(self._writer, {"id": number, "op": "part", "tensors": dict(tensors)})

    def break_off(self, why: str) -> None:
        """End the connection and fail what waits."""
        if self._lost is None:
            self._lost = f"{self.name} was lost: {why}"
        self.closed.cancel()
        self._fail()

    def _tell(self, verb: str, number: int) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            wire.send(self._writer, {"id": number, "op": verb})

    async def _read(self) -> None:
        try:
            while True:
                value, data = await wire.receive(self._reader)
                future = self._waiting.get(int(value.get("id", 0)))
                if future is not None and not future.done():
                    future.set_result((value, data))
        except (OSError, EOFError, wire.WireError, ValueError, TypeError) as problem:
            ended = isinstance(problem, EOFError)
            self._lost = self._lost or f"{self.name} was lost: {'it ended' if ended else problem}"
        finally:
            self._lost = self._lost or f"{self.name} was closed"
            self._fail()

    def _fail(self) -> None:
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(self.failure())
                future.exception()  # whoever waited may have given up
        with contextlib.suppress(RuntimeError):
            self._writer.close()

    def failure(self) -> MuarlError:
        """What became of the connection, as an error."""
        return InfrastructureError(self._lost or f"{self.name} was lost", boundary="agent")
