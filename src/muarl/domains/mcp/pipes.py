"""A server process and its pipes, as the SDK's client wants a transport; bounded in all that the server may send.

The SDK has such a transport too, but it reads lines of any length, so that a server that floods fills the memory.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from muarl.basics.child import kill_group
from muarl.domains.mcp.sdk import sdk

GARBAGE_LINES = 100
"""How many lines that are no messages a server may write to its standard output (banners, prints left in)."""
LAST_WORDS = 600
"""How much of what a server writes to standard error is kept for the error message."""
GRACE = 0.3
"""Seconds that a server has to end by itself once its input is closed. Its state is in files by then."""

running: set[int] = set()
"""The process groups that live, so that none outlives this program."""


class Pipes:
    """One server process. An asynchronous context manager that yields the two streams of an SDK transport.

    ``fault``: what went wrong, "" as long as nothing has.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str], cwd: Path, wire: int) -> None:
        self._command, self._env, self._cwd, self._wire = list(command), env, cwd, wire
        self._process: Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Any] = []
        self._received = 0
        self._garbage = 0
        self._words = b""
        self.fault = ""

    def renew(self) -> None:
        """A call begins: count what the server sends from here on."""
        self._received = 0

    def last_words(self) -> str:
        """The end of what the server wrote to standard error, in one line."""
        lines = self._words.decode("utf-8", errors="replace").split("\n")
        return " ".join(" ".join(lines).split())[-LAST_WORDS:]

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def exit_code(self) -> int | None:
        """The code that the process ended with; it gets a moment to be noticed. None while it runs."""
        if self._process is not None and self._process.returncode is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self._process.wait()
        return None if self._process is None else self._process.returncode

    async def __aenter__(self) -> tuple[Any, Any]:
        import anyio

        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._env, cwd=self._cwd,
            limit=self._wire, start_new_session=True,
        )  # fmt: skip
        running.add(self._process.pid)
        to_client, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_client = anyio.create_memory_object_stream[Any](0)
        self._streams = [to_client, from_server, to_server, from_client]
        jobs = (self._read(self._process, to_client), self._write(self._process, from_client, to_client))
        self._tasks = [asyncio.create_task(job) for job in (*jobs, self._listen(self._process))]
        return from_server, to_server

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await _end(self._process)
        for stream in self._streams:
            stream.close()

    async def _read(self, process: Process, to_client: Any) -> None:
        assert process.stdout is not None
        parse = sdk("mcp_types").jsonrpc_message_adapter.validate_json
        message = sdk("mcp.shared.message").SessionMessage
        import anyio

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with to_client:
                while True:
                    try:
                        line = await process.stdout.readuntil(b"\n")
                    except asyncio.IncompleteReadError:
                        return
                    except asyncio.LimitOverrunError:
                        self._give_up(process, f"floods: one line of more than {self._wire >> 20} MiB")
                        return
                    self._received += len(line)
                    if self._received > self._wire:
                        self._give_up(process, f"floods: more than {self._wire >> 20} MiB in the course of one call")
                        return
                    try:
                        parsed = message(parse(line, by_name=False))
                    except (ValueError, RecursionError):
                        self._garbage += bool(line.strip())
                        if self._garbage > GARBAGE_LINES:
                            text = line[:80].decode("utf-8", errors="replace").strip()
                            self._give_up(
                                process, f"writes something other than messages to its standard output: {text!r}"
                            )
                            return
                        continue
                    await to_client.send(parsed)

    async def _write(self, process: Process, from_client: Any, to_client: Any) -> None:
        assert process.stdin is not None
        try:
            async with from_client:
                async for item in from_client:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
        except (OSError, RuntimeError):
            await to_client.aclose()  # the session then sees the end of the connection

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(1 << 16):
            self._words = (self._words + chunk)[-4 * LAST_WORDS :]
            self._received += len(chunk)
            if self._received > self._wire:
                self._give_up(process, f"floods: more than {self._wire >> 20} MiB on its standard error")
                return

    def _give_up(self, process: Process, fault: str) -> None:
        self.fault = fault
        kill_group(process.pid)


async def _end(process: Process) -> None:
    """Close its input, wait a moment, kill what is left of its process group."""
    if process.stdin is not None:
        with suppress(OSError, RuntimeError):
            process.stdin.close()
    try:
        async with asyncio.timeout(GRACE):
            await process.wait()
    except TimeoutError:
        pass
    kill_group(process.pid)
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await process.wait()
    running.discard(process.pid)


def kill_all() -> None:
    """Kill every server that is left, for the end of the program."""
    for group in tuple(running):
        kill_group(group)
    running.clear()
