"""Environments over HTTP: the paths, as an ASGI application, on a socket with its own token and names, idle sessions
that expire, and an end in good order.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from muarl.basics.web.guard import Access, Guard
from muarl.basics.web.json_api import exception_handlers, json_response, refused, stopping, unless_gone
from muarl.basics.web.server import ServiceServer
from muarl_tools.serve_environments.requests import (
    PlaceRequest,
    RunRequest,
    StepRequest,
    TaskQuery,
    read_body,
    read_fields,
)
from muarl_tools.serve_environments.service import EnvironmentService
from muarl_tools.serve_environments.tau import tau_routes

PATHS = "No such path; there are /health, /environments, /tasks, /run and /sessions, and ART's /scenarios."


def make_app(service: EnvironmentService, access: Access) -> ASGIApp:
    """The application: routes behind the guard."""

    async def health(request: Request) -> Response:
        return stopping().response() if service.room.stopping else json_response({"status": "ok"})

    async def environments(request: Request) -> Response:
        return json_response(service.about())

    async def tasks(request: Request) -> Response:
        return json_response(await service.tasks(read_fields(TaskQuery, dict(request.query_params))))

    async def run(request: Request) -> Response:
        wanted = read_body(RunRequest, await request.body())
        return json_response(await unless_gone(request, service.run(wanted)))

    async def create(request: Request) -> Response:
        wanted = read_body(PlaceRequest, await request.body())
        return json_response(await unless_gone(request, service.create(wanted), undo=service.abandon), 201)

    async def step(request: Request) -> Response:
        wanted = read_body(StepRequest, await request.body())
        return json_response(await unless_gone(request, service.step(request.path_params["name"], wanted)))

    async def look(request: Request) -> Response:
        return json_response(await service.look(request.path_params["name"]))

    async def delete(request: Request) -> Response:
        await service.delete(request.path_params["name"])
        return Response(status_code=204)

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/environments", environments),
            Route("/tasks", tasks),
            Route("/run", run, methods=["POST"]),
            Route("/sessions", create, methods=["POST"]),
            Route("/sessions/{name}", look),
            Route("/sessions/{name}", delete, methods=["DELETE"]),
            Route("/sessions/{name}/step", step, methods=["POST"]),
            *tau_routes(service),
        ],
        exception_handlers=exception_handlers(PATHS),
    )
    return Guard(app, access, refused)


class EnvironmentServer(ServiceServer[EnvironmentService]):
    """Serves an ``EnvironmentService``; see ``ServiceServer``."""

    name = "muarl env serve"

    def application(self, access: Access) -> ASGIApp:
        """The paths behind the guard."""
        return make_app(self.service, access)

    async def run(self, *, signals: bool = False) -> None:
        """Serve until ``stop``; with ``signals``, also until SIGTERM or SIGINT. A second signal does not wait."""
        reaper = asyncio.ensure_future(self._expire())
        try:
            await super().run(signals=signals)
        finally:
            reaper.cancel()
            await self.service.aclose()

    def ending(self) -> None:
        """Begin no new conversation."""
        self.service.room.stopping = True

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(max(1.0, min(self.service.sessions.idle / 4, 30.0)))
            with contextlib.suppress(Exception):  # a world that cannot be closed must not keep the others open
                await self.service.expire()
