"""A client's connection to one server: many requests at once, each answered, refused or failed by a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.basics.calls import Calls, Frame
from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.frames import WireError
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.vllm import wire

CONNECTING = 10.0


class Link(Calls):
    """An open connection. When it breaks, everything that waits for an answer fails with an InfrastructureError that
    may be retried, and ``closed`` is done."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.last_answer = time.monotonic()
        self.figures: Mapping[str, int] = {}
        super().__init__(name, reader, writer)

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
        except (OSError, EOFError, TimeoutError, ValueError, WireError) as problem:
            if writer is not None:
                writer.close()
            refused = isinstance(problem, WireError)
            what = str(problem) or type(problem).__name__
            raise InfrastructureError(
                f"{name} could not be reached: {what}", boundary="agent", retryable=not refused
            ) from problem

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, seconds: float) -> Completion:
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
        except WireError as problem:
            self.break_off(str(problem))
            raise InfrastructureError(f"{self.name} sent {problem}", boundary="agent") from None
        self.last_answer = time.monotonic()
        return sampled

    async def ask(
        self, verb: str, fields: Mapping[str, Any] | None = None, payload: bytes = b"", *, seconds: float | None = None
    ) -> Frame:
        """One request and its answer. TimeoutError after ``seconds``, or the error that the server answers with."""
        value, data = await super().ask(verb, fields, payload, seconds=seconds)
        self.figures = value.get("stats", self.figures)
        return value, data

    def break_off(self, why: str) -> None:
        """End the connection and fail what waits."""
        self.hang_up(f"{self.name} was lost: {why}")

    def failure(self) -> MuarlError:
        """See ``Calls``."""
        return InfrastructureError(self.lost or f"{self.name} was lost", boundary="agent")

    def problem(self, value: Mapping[str, Any]) -> MuarlError | None:
        """See ``Calls``."""
        return wire.unpack_error(value) if "error" in value else None

    async def fate(self, problem: Exception) -> str:
        """See ``Calls``."""
        return f"{self.name} was lost: {'it ended' if isinstance(problem, EOFError) else problem}"
