"""Environments served in the event loop of a test, and a toy environment with users of fixed lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import Access
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl_tools.serve_environments.http import make_app
from muarl_tools.serve_environments.service import EnvironmentService, ServedEnvironments
from support.toy_shop import Lines, Toy, toy_task

TOKEN = "the-token-of-the-tests"


class Users:
    """Users of fixed lines."""

    name = "lines"

    def __init__(self, *lines: Any) -> None:
        self.lines = lines

    def __call__(self, task: Task, *, seed: int) -> Lines:
        return Lines(*self.lines)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def toy(name: str = "toy") -> Environment:
    return Environment(name=name, domain=Toy, tasks={"test": [toy_task("a"), toy_task("b")]})


@asynccontextmanager
async def serving(*environments: Environment, **served: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A client of a service in this event loop, without sockets."""
    service = EnvironmentService(ServedEnvironments(environments=environments, **served))
    app = make_app(service, Access(ServerAddress("127.0.0.1", 80), TOKEN, open=("/health",)))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app),
        base_url="http://127.0.0.1",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=60,
    ) as client:
        try:
            yield client, service
        finally:
            await service.aclose()
