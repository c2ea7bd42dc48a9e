"""Connections come in pools of bounded size."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from muarl.endpoints import Endpoint, EndpointSettings
from muarl.endpoints.connections import POOL, Connections
from support.fake_openai import FakeOpenAI, text


async def test_a_pool_lends_no_more_than_its_share_and_is_used_again() -> None:
    connections = Connections()
    with ExitStack() as stack:
        lent = [stack.enter_context(connections.client("http://127.0.0.1:9/v1", "k", 1.0)) for _ in range(2 * POOL + 1)]
    assert len({id(client) for client in lent}) == 3
    with connections.client("http://127.0.0.1:9/v1", "k", 1.0) as again:
        assert again is lent[0]
    with connections.client("http://127.0.0.1:9/v1", "other", 1.0) as other:
        assert other.api_key == "other" and other is not again
    await connections.aclose()


async def test_many_at_once_are_all_answered() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        settings = EndpointSettings(model="m", base_url=server.url, concurrency=4 * POOL)
        async with Endpoint(settings, api_key="") as endpoint:
            asked = (endpoint.chat([{"role": "user", "content": str(n)}]) for n in range(3 * POOL))
            replies = await asyncio.gather(*asked)
        assert {reply.content for reply in replies} == {"Hello."}
        assert {body["messages"][0]["content"] for body in server.bodies} == {str(n) for n in range(3 * POOL)}


def test_an_endpoint_serves_one_loop_after_another() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        endpoint = Endpoint(EndpointSettings(model="m", base_url=server.url), api_key="")
        for _ in range(2):  # not closed: what it held goes with its event loop
            assert asyncio.run(endpoint.chat([{"role": "user", "content": "Hi."}])).content == "Hello."
        asyncio.run(endpoint.aclose())  # in a loop that it never served
        assert asyncio.run(endpoint.chat([{"role": "user", "content": "Hi."}])).content == "Hello."
