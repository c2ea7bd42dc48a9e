"""How a server starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from muarl.basics.web.addresses import ServerAddress, listen
from muarl.basics.web.server import WebServer


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


def made() -> WebServer:
    listener = listen("127.0.0.1", 0)
    where = ServerAddress("127.0.0.1", int(listener.getsockname()[1]))
    return WebServer(hello, listener, where, name="a test's server")


def test_a_server_in_a_thread_ends_with_its_block() -> None:
    with made().start() as server:
        assert httpx.get(server.where.url).text == "hello"
    assert not [t for t in threading.enumerate() if t.name == "a test's server"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.where.url)


def test_a_server_that_never_ran_frees_its_address() -> None:
    with made() as server:
        pass
    listen("127.0.0.1", server.port).close()


async def test_a_cancelled_server_ends_in_good_order() -> None:
    server = made()
    running = asyncio.create_task(server.run())
    async with httpx.AsyncClient() as client:
        assert (await client.get(server.where.url)).text == "hello"
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    listen("127.0.0.1", server.port).close()


async def test_what_is_under_way_may_finish_and_is_told_of_the_end() -> None:
    told: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(WebServer):
        def ending(self) -> None:
            told.append("ending")
            go_on.set()

        def abort(self) -> None:
            told.append("abort")

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await go_on.wait()
        await hello(scope, receive, send)

    listener = listen("127.0.0.1", 0)
    where = ServerAddress("127.0.0.1", int(listener.getsockname()[1]))
    server = Slow(slow, listener, where, name="slow", grace=60.0)
    running = asyncio.create_task(server.run())
    async with httpx.AsyncClient() as client:
        asked = asyncio.create_task(client.get(where.url))
        await begun.wait()
        server.stop()
        assert (await asked).text == "hello"
    await running
    assert told == ["ending"]
