"""Connections that many endpoints share."""

from __future__ import annotations

import asyncio

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.endpoints.connections import Connections
from muarl.endpoints.failures import HTTPStatusError
from support.fake_openai import Answer, FakeOpenAI, text


async def test_many_at_once_are_all_answered() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        settings = EndpointSettings(model="m", base_url=server.url, concurrency=128)
        async with Endpoint(settings, api_key="") as endpoint:
            asked = (endpoint.chat([{"role": "user", "content": str(n)}]) for n in range(96))
            replies = await asyncio.gather(*asked)
        assert {reply.content for reply in replies} == {"Hello."}
        assert {body["messages"][0]["content"] for body in server.bodies} == {str(n) for n in range(96)}


def test_an_endpoint_serves_one_loop_after_another() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        endpoint = Endpoint(EndpointSettings(model="m", base_url=server.url), api_key="")
        for _ in range(2):  # not closed: what it held goes with its event loop
            assert asyncio.run(endpoint.chat([{"role": "user", "content": "Hi."}])).content == "Hello."
        asyncio.run(endpoint.aclose())  # in a loop that it never served
        assert asyncio.run(endpoint.chat([{"role": "user", "content": "Hi."}])).content == "Hello."


async def test_a_redirect_to_another_server_is_followed_without_the_key() -> None:
    with FakeOpenAI(text("Hello.")) as other:
        moved = Answer(b"", 307, {"Location": f"{other.url}/chat/completions"})
        with FakeOpenAI(moved) as server:
            settings = EndpointSettings(model="m", base_url=server.url)
            async with Endpoint(settings, api_key="a-secret-key") as endpoint:
                assert (await endpoint.chat([{"role": "user", "content": "Hi."}])).content == "Hello."
        assert server.requests[0].headers["authorization"] == "Bearer a-secret-key"
        assert other.bodies == server.bodies and "authorization" not in other.requests[0].headers


async def test_without_a_key_none_is_sent_and_another_server_is_not_asked() -> None:
    with FakeOpenAI(text("Hello.")) as other, FakeOpenAI(Answer(b"", 307, {"Location": other.url})) as server:
        connections = Connections()
        try:
            with pytest.raises(HTTPStatusError) as refused:
                await connections.post(f"{server.url}/chat/completions", "", {"model": "m"})
        finally:
            await connections.aclose()
        assert refused.value.status == 307 and refused.value.headers["location"] == other.url
        assert "authorization" not in server.requests[0].headers and not other.requests


async def test_a_proxy_of_the_environment_is_asked_for_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(text("Hello.")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        settings = EndpointSettings(model="m", base_url="http://models.invalid/v1", attempts=1)
        async with Endpoint(settings, api_key="") as endpoint:
            with pytest.raises(InfrastructureError, match="nothing answers at this address"):
                await endpoint.chat([{"role": "user", "content": "Hi."}])
        assert proxy.requests[0].path == "http://models.invalid/v1/chat/completions"
