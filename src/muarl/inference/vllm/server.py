"""One vLLM engine behind a socket: ``python -m muarl.inference.vllm.server --model FOLDER --listen HOST:PORT``.

muarl starts such servers itself (``engine.servers``). To let them run elsewhere, start them there with the same token
in the environment variable MUARL_ENGINE_TOKEN on both sides, and name them in ``engine.urls``. Connections are not
encrypted: use a network that you trust, or a tunnel.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.child import Lifeline
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.basics.frames import WireError, receive, send
from muarl.basics.keys import is_loopback, read_secret
from muarl.basics.system import shared_memory
from muarl.inference.vllm import wire
from muarl.inference.vllm.settings import PREFIX, VllmSettings

if TYPE_CHECKING:
    from muarl.inference.vllm.core import Core

TOKEN = "MUARL_ENGINE_TOKEN"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
GRACE = 10.0


class RpcServer:
    """Serves a core to whoever knows the token; many clients at once, many requests on each connection."""

    def __init__(self, core: Core, token: str) -> None:
        self.core, self._token = core, token
        self._folder: Path | None = None
        self._changes: set[asyncio.Task[None]] = set()  # these continue when their client has gone

    async def run(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Serve until ``stop``."""
        path = listener.getsockname() if listener.family == socket.AF_UNIX else None
        begin = asyncio.start_unix_server if path else asyncio.start_server
        server = await begin(self._connection, sock=listener)
        try:
            await stop.wait()
        finally:
            server.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks: dict[int, asyncio.Task[None]] = {}
        parts: dict[int, asyncio.Queue[Mapping[str, Any] | None]] = {}
        try:
            await wire.greet_client(reader, writer, self._token)
            while True:
                value, payload = await receive(reader)
                number, verb = int(value.get("id", 0)), value.get("op")
                if verb == "cancel":
                    if number in tasks:
                        tasks[number].cancel()
                elif verb == "part":
                    if number in parts:
                        parts[number].put_nowait(value.get("tensors"))
                else:
                    if verb == "receive":
                        parts[number] = asyncio.Queue()
                    work = self._answer(writer, number, value, payload, parts.get(number))
                    task = asyncio.create_task(work)
                    if verb in ("load", "adapt", "receive", "sleep"):
                        self._changes.add(task)
                        task.add_done_callback(self._changes.discard)
                    else:
                        tasks[number] = task
                        task.add_done_callback(partial(_drop, tasks, number))
        except (WireError, OSError, EOFError, TimeoutError, ValueError, TypeError):
            pass  # the client is gone, or never was one
        finally:
            for task in list(tasks.values()):
                task.cancel()
            for queue in parts.values():
                queue.put_nowait(None)
            writer.close()

    async def _answer(
        self,
        writer: asyncio.StreamWriter,
        number: int,
        value: Mapping[str, Any],
        payload: bytes,
        parts: asyncio.Queue[Mapping[str, Any] | None] | None,
    ) -> None:
        try:
            answer, data = await self._do(value, payload, parts)
        except asyncio.CancelledError:
            raise
        except Exception as problem:
            answer, data = wire.pack_error(problem), b""
        with contextlib.suppress(OSError):
            send(writer, {"id": number, **answer}, data)
            await writer.drain()

    async def _do(
        self, value: Mapping[str, Any], payload: bytes, parts: asyncio.Queue[Mapping[str, Any] | None] | None
    ) -> tuple[dict[str, Any], bytes]:
        verb, core = value.get("op"), self.core
        if verb == "sample":
            return wire.pack_sampled(await core.sample(*wire.unpack_request(value, payload)))
        if verb == "upload":
            self._store(value, payload)
        elif verb == "load":
            sent = [self._uploaded(n) for n in value.get("uploads", ())]
            try:
                await core.load([*value.get("paths", ()), *map(str, sent)], int(value["version"]))
            finally:
                for path in sent:
                    path.unlink(missing_ok=True)
        elif verb == "adapt":
            folder = value.get("folder") or str(self._uploaded(value["upload"]))
            await core.adapt(folder, int(value["version"]))
        elif verb == "join":
            await core.join(value["info"])
        elif verb == "receive" and parts is not None:
            await core.receive(_until_none(parts), int(value["version"]))
        elif verb == "sleep":
            await core.sleep()
        elif verb == "ping":
            await core.check()
        else:
            raise ConfigError(f"a request this server does not know: {verb!r}")
        stats = {n: getattr(core.stats, n) for n in type(core.stats).__dataclass_fields__}
        return {"version": core.version, "stats": stats}, b""

    def _store(self, value: Mapping[str, Any], payload: bytes) -> None:
        path = self._uploaded(value["name"])
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            with open(path, "r+b" if value["offset"] else "wb") as file:
                if file.seek(0, os.SEEK_END) != value["offset"]:
                    raise ConfigError(f"{value['name']}: a piece of this upload is missing")
                file.write(payload)
        except OSError as problem:
            path.unlink(missing_ok=True)
            raise InfrastructureError(
                f"the server has no room for the weights sent to it: {problem.strerror}", boundary="agent"
            ) from None

    def _uploaded(self, name: str) -> Path:
        """The file of an upload: FILE or FOLDER/FILE within the server's own folder. ConfigError for another name."""
        pieces = str(name).split("/")
        if len(pieces) > 2 or not all(NAME.fullmatch(p) for p in pieces):
            raise ConfigError(f"{name!r} cannot be the name of an upload")
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=shared_memory()))
        return self._folder.joinpath(*pieces)


def _drop(tasks: dict[int, asyncio.Task[None]], number: int, _: object) -> None:
    tasks.pop(number, None)


async def _until_none(queue: asyncio.Queue[Mapping[str, Any] | None]) -> AsyncIterator[Mapping[str, Any]]:
    while (part := await queue.get()) is not None:
        if not part:  # the last one
            return
        yield part
    raise InfrastructureError("the learner went away in the middle of an update", boundary="agent")


def bind(address: str) -> socket.socket:
    """A listening socket at HOST:PORT or, where there is no colon, at a path. ConfigError says why it cannot be had."""
    host, colon, port = address.rpartition(":")
    try:
        if not colon:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(address)
            Path(address).chmod(0o600)
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            listener = socket.socket(family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host.strip("[]"), int(port)))
        listener.listen(128)
    except (OSError, ValueError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(f"--listen: {address} cannot be listened on ({reason}): choose another port") from None
    return listener


def token_for(address: str) -> str:
    """The token that clients of this address must know. ConfigError if it may be reached from elsewhere without one."""
    token = read_secret(TOKEN)
    host, colon, _ = address.rpartition(":")
    if colon and not token and not is_loopback(host.strip("[]")):
        raise ConfigError(
            f"--listen: {address} can be reached from other machines, so {TOKEN} in the environment must hold a token, "
            "the same here and where training runs"
        )
    return token


async def serve(core: Core, listener: socket.socket, token: str, lifeline: Lifeline | None = None) -> None:
    """Serve until SIGTERM, SIGINT or the end of the lifeline; then close the core."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if lifeline is not None:
        lifeline.then(lambda: loop.call_soon_threadsafe(stop.set))
    await RpcServer(core, token).run(listener, stop)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(core.aclose(), GRACE)


async def _start(settings: VllmSettings, listener: socket.socket, token: str, lifeline: Lifeline | None) -> None:
    from muarl.inference.vllm.core import VllmCore

    await serve(await VllmCore.start(settings), listener, token, lifeline)


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m muarl.inference.vllm.server", description=(__doc__ or "").strip())
    parser.add_argument("--model", help="checkpoint folder (config.json and safetensors)")
    parser.add_argument("--listen", required=True, help="HOST:PORT, or the path of a socket")
    parser.add_argument("--max-context", type=int, default=32768, help="most tokens of prompt and completion together")
    parser.add_argument("--max-sequences", type=int, default=256, help="most completions at once")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="bfloat16")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="devices that share the model")
    parser.add_argument("--first-device", type=int, default=0, help="number of the first of them")
    parser.add_argument("--memory", type=float, default=0.85, help="share of each GPU's memory")
    parser.add_argument("--cache-gib", type=float, help="GiB for keys and values")
    parser.add_argument("--lora-rank", type=int, default=0, help="largest adapter that must fit")
    parser.add_argument("--nccl", action="store_true", help="be ready for updates by NCCL")
    parser.add_argument("--settings", help=argparse.SUPPRESS)  # all of the above, from muarl itself
    parser.add_argument("--lifeline", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        if options.settings is not None:
            settings = VllmSettings.from_json(options.settings)
        elif options.model is None:
            raise ConfigError("--model: name the checkpoint folder to serve")
        else:
            names = VllmSettings.__dataclass_fields__
            settings = VllmSettings(**{k: v for k, v in vars(options).items() if k in names})
        lifeline = Lifeline(GRACE) if options.lifeline else None
        token = token_for(options.listen)
        listener = bind(options.listen)  # before the engine is started: a port in use is told at once
        asyncio.run(_start(settings, listener, token, lifeline))
    except MuarlError as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
