"""Calls of an endpoint against a local server, whose waits cost no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.endpoints.replies import Reply
from support.fake_openai import FakeOpenAI, Script

HELLO = [{"role": "user", "content": "hello"}]


class Waits(list[float]):
    """A sleep that only notes how long it should have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def endpoint(server: FakeOpenAI | str, waits: Waits | None = None, **options: Any) -> Endpoint:
    url = server if isinstance(server, str) else server.url
    config = EndpointSettings(model="m", base_url=url, **options)
    return Endpoint(config, sleep=waits if waits is not None else Waits(), jitter=lambda: 0.0)


async def ask(
    script: Script | Sequence[Script], waits: Waits | None = None, **options: Any
) -> tuple[Reply, FakeOpenAI]:
    with FakeOpenAI(script) as server:
        async with endpoint(server, waits, **options) as client:
            return await client.chat(HELLO), server


async def failure(script: Script | Sequence[Script], **options: Any) -> tuple[InfrastructureError, FakeOpenAI]:
    with FakeOpenAI(script) as server:
        async with endpoint(server, **options) as client:
            with pytest.raises(InfrastructureError) as caught:
                await client.chat(HELLO, boundary="user")
            return caught.value, server
