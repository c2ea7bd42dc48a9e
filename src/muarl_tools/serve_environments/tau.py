"""The protocol of ART's tau servers, so that ``art.tau_bench.rollout`` runs against these environments.

A client lists scenarios, begins an environment about one, and sends one action a step: a text for the user, or one tool
call as Python writes it, ``name(key='value')``. An observation is a text that begins with the role of who said it.
"""

from __future__ import annotations

import ast
import json
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muarl.basics.errors import MuarlError
from muarl.basics.web.json_api import ApiError, invalid, json_response, unless_gone
from muarl.config.rollout import RetrievalConfig
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.results import tools_json
from muarl.environments.retrieval import models_of
from muarl.environments.task_addresses import TaskAddress
from muarl.types.chat import Message, ToolCall
from muarl.types.toolcalls import argument_problem
from muarl_tools.serve_environments.held import HeldSession
from muarl_tools.serve_environments.requests import MOST_TASKS, ClientRequest, PlaceRequest, read_body, read_fields
from muarl_tools.serve_environments.service import EnvironmentService, as_invalid

_CALL = re.compile(r"([A-Za-z_][\w.\-]*)\((.*)\)", re.DOTALL)
_MARKS = re.compile(r"""['"\[{(\]}),]""")
_STRINGS = {quote: re.compile(rf"{quote}(?:[^{quote}\\]|\\.)*+{quote}", re.DOTALL) for quote in "'\""}

RETRIEVAL_OPTIONS = ("top_k", "grep_top_k", "case_sensitive")
"""What a client may say of a retrieval variant."""


class ScenarioQuery(ClientRequest):
    """``GET /scenarios``: which tasks are listed. ``domain``: None for all environments that have the split."""

    domain: str | None = None
    split: str | None = None
    start: int = Field(0, ge=0)
    count: int | None = Field(None, ge=1, le=MOST_TASKS)


class TauRequest(ClientRequest):
    """``POST /environments``: about which task. The server says who plays its users, so that ``user_llm`` and the
    arguments of that model go unread, but for a ``seed`` among them. ``retrieval_config``: the retrieval variant, in
    domains with documents; ``retrieval_config_kwargs``: ``RETRIEVAL_OPTIONS``."""

    domain: str
    task_id: str
    user_llm: str | None = None
    user_llm_args: dict[str, Any] = Field(default_factory=dict)
    retrieval_config: str | None = None
    retrieval_config_kwargs: dict[str, Any] | None = None
    idle_timeout_seconds: float | None = Field(None, ge=1, le=86_400)

    @property
    def seed(self) -> int:
        """Of the conversation: each has its own unless the client names one. ApiError for what is no number."""
        seed = self.user_llm_args.get("seed")
        if seed is None:
            return secrets.randbelow(1 << 31)
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise invalid("must be a whole number", "user_llm_args.seed")
        return seed


class ActionRequest(ClientRequest):
    """``POST /environments/ID/step``: what the agent says or calls."""

    action: str


class TauProtocol:
    """Answers such requests for a service."""

    def __init__(self, service: EnvironmentService) -> None:
        self.service = service

    async def scenarios(self, wanted: ScenarioQuery) -> dict[str, Any]:
        """Tasks as scenarios, whose ids are addresses: all of a benchmark's split, ``MOST_TASKS`` of one that has no
        end."""
        service, found = self.service, []
        places = list(service.by_name.values()) if wanted.domain is None else [self._environment(wanted.domain)]
        if wanted.domain is None and wanted.split is not None:
            places = [e for e in places if wanted.split in e.splits] or places
        for environment in places:
            with as_invalid():
                split = service.split(environment, wanted.split)
                environment.check_split(split, "split")
                listed = self._listed(environment, split, wanted.start, wanted.count)
            found += [
                {"domain": environment.name, "task": {"id": str(address), "description": name}}
                for address, name in listed
            ]
        return {"scenarios": found}

    async def create(self, wanted: TauRequest) -> dict[str, Any]:
        """Begin a conversation. Where there is no place the request waits, since this client does not ask again."""
        task = self._task(self._environment(wanted.domain), wanted.task_id)
        retrieval, idle = retrieval_of(task, wanted), wanted.idle_timeout_seconds
        held = await self.service.begin(task, wanted.seed, idle=idle, wait=True, retrieval=retrieval)
        try:
            seen = held.session.observation
            info = {"policy": seen.system, "tools": tools_json(seen.tools), "task": held.address}
            return {**self._observed(held), "info": info}
        except ApiError:
            await self.service.sessions.remove(held)
            raise

    async def step(self, name: str, wanted: ActionRequest) -> dict[str, Any]:
        """Say or call something: what came of it. A client that sends what is left of a message after the end is told
        once more that it is over, and gets no second reward."""
        held = self.service.sessions.find(name)
        session = held.session
        over = session.done
        if not over:
            known = {tool.name for tool in session.observation.tools}
            await self.service.say(held, read_action(wanted.action, f"call_{len(session.messages)}", known))
        out = self._observed(held)
        result = session.result if session.done else None
        return {
            **out,
            "observation": "" if over else out["observation"],
            "reward": 0.0 if over or result is None else result.reward,
            "terminated": result is not None,
            "truncated": result is not None and result.stop.truncated,
            "info": {**self._costs(), **({} if result is None else _told(result.to_json()))},
        }

    async def delete(self, name: str) -> dict[str, Any]:
        """End a conversation."""
        await self.service.delete(name)
        return {"id": name, "deleted": True}

    def _observed(self, held: HeldSession) -> dict[str, Any]:
        """What the agent is shown. ApiError if something failed: in this protocol there is always a reward, so that a
        failure must not be an answer."""
        failure = held.session.failure
        if failure is not None:
            raise ApiError(502, failure.text, kind="server_error", code="failed")
        shown = list(held.session.observation.messages)
        if shown and shown[0].role == "assistant" and not shown[0].tool_calls:
            shown.pop(0)  # a greeting, which would stand among the user's words
        return {"id": held.id, "observation": "\n".join(f"{m.role}: {m.content or ''}" for m in shown)}

    def _costs(self) -> dict[str, float]:
        """What the user's message cost, where that is known."""
        return {"user_message_cost": 0.0} if self.service.served.users is None else {}

    def _listed(
        self, environment: Environment, split: str, start: int, count: int | None
    ) -> list[tuple[TaskAddress, str | None]]:
        """Addresses of tasks, and the ids of those that need not be made first."""
        if not environment.endless:
            tasks = environment.fixed_tasks(split)[start:][:count]
            return [(task.origin.address, task.id) for task in tasks if task.origin is not None]
        size = self.service.served.size
        named = size if size in environment.sizes[1:] else None
        numbers = range(start, start + (count or MOST_TASKS))
        return [(TaskAddress(environment.name, split, n, named), None) for n in numbers]

    def _environment(self, domain: str) -> Environment:
        """An environment by its name, or TAU2's domains by theirs."""
        ours = f"tau2-{domain}"
        return self.service.environment(ours if ours in self.service.by_name else domain, "domain")

    def _task(self, environment: Environment, task_id: str) -> Task:
        """The task of an address, or of a benchmark's own id."""
        if not environment.endless:
            with as_invalid():
                everywhere = (t for split in environment.splits for t in environment.fixed_tasks(split))
                if (task := next((t for t in everywhere if t.id == task_id), None)) is not None:
                    return task
        task = self.service.find_task(PlaceRequest(task=task_id))
        if task.origin.environment is not environment:
            raise invalid(f"the task is of {task.origin.environment.name}, not of {environment.name}", "task_id")
        return task


def retrieval_of(task: Task, wanted: TauRequest) -> RetrievalConfig | None:
    """How a client wants documents to be found; None where it does not say. ApiError where the task has none, or not
    that way, or where a model would have to be asked, which would be at the server's cost."""
    name, options = wanted.retrieval_config, wanted.retrieval_config_kwargs or {}
    if name is None and not options:
        return None
    if unknown := sorted(options.keys() - set(RETRIEVAL_OPTIONS)):
        known = ", ".join(RETRIEVAL_OPTIONS)
        raise invalid(f"there is no {unknown[0]!r} to choose here; known: {known}", "retrieval_config_kwargs")
    try:
        chosen = RetrievalConfig.model_validate({"variant": name, **options})
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_url=False, include_context=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        where = "retrieval_config" if field == "variant" else f"retrieval_config_kwargs.{field}"
        raise invalid(first["msg"], where) from None
    if models_of(chosen):
        raise invalid(
            f"{name!r} asks models when documents are searched, and this server asks none for its clients; take a "
            "variant without embeddings and reranking, such as 'bm25_grep' or 'bm25'",
            "retrieval_config",
        )
    try:
        task.origin.environment.place(task.origin.address.size, retrieval=chosen)
    except MuarlError as problem:
        said = str(problem).removeprefix("retrieval.variant: ").removeprefix("retrieval: ")
        raise invalid(said.replace("leave the section out", "leave it out"), "retrieval_config") from None
    return chosen


def read_action(action: str, call_id: str, known: Collection[str]) -> Message:
    """An action as the agent's message: a call, if it is written as one, else a text. A call of a tool that the agent
    knows (``known``) whose arguments cannot be read becomes a broken one, which the world answers with an error."""
    match = _CALL.fullmatch(action)
    if match is None:
        return Message("assistant", action)
    name, text = match.groups()
    try:
        arguments = _arguments(text)
    except ValueError as problem:
        if name not in known:
            return Message("assistant", action)
        return Message("assistant", None, (ToolCall(call_id, name, invalid=str(problem), raw=text),))
    return Message("assistant", None, (ToolCall(call_id, name, arguments),))


def _arguments(text: str) -> Mapping[str, Any]:
    """``key=value, key=value``, where values are JSON's as Python writes them. Keys may be what no name in Python may
    be, such as ``from``. ValueError if it is not that."""
    found: dict[str, Any] = {}
    at, unended = 0, set[str]()
    while at < len(text):
        equals = text.find("=", at)
        if equals <= at:
            raise ValueError("arguments must be written key=value, separated by commas")
        end = _end_of_value(text, equals + 1, unended)
        found[text[at:equals]] = _value(text[equals + 1 : end])
        at = end + 2 if text.startswith(", ", end) else end
    return found


def _end_of_value(text: str, at: int, unended: set[str]) -> int:
    """Where the comma stands that ends the value that begins at ``at``. ``unended``: quotation marks that have begun a
    string without an end; no later one can have one, so that none is looked for again."""
    depth = 0
    while (mark := _MARKS.search(text, at)) is not None:
        at = mark.end()
        if mark[0] in _STRINGS:
            string = None if mark[0] in unended else _STRINGS[mark[0]].match(text, mark.start())
            if string is None:
                unended.add(mark[0])
            else:
                at = string.end()
        elif mark[0] in "[{(":
            depth += 1
        elif mark[0] in "]})":
            depth -= 1
        elif depth == 0:
            return mark.start()
    return len(text)


def _value(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"the value {text[:40]} is not one that JSON has") from None
    if problem := argument_problem(value):
        raise ValueError(problem)
    return value


def _told(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("task_id", "parts", "stop", "usage", "audit")}


def tau_routes(service: EnvironmentService) -> list[Route]:
    """The protocol's paths."""
    protocol = TauProtocol(service)

    async def scenarios(request: Request) -> Response:
        return json_response(await protocol.scenarios(read_fields(ScenarioQuery, dict(request.query_params))))

    async def create(request: Request) -> Response:
        wanted = read_body(TauRequest, await request.body())
        return json_response(await unless_gone(request, protocol.create(wanted), undo=service.abandon), 201)

    async def step(request: Request) -> Response:
        wanted = read_body(ActionRequest, await request.body())
        return json_response(await unless_gone(request, protocol.step(request.path_params["name"], wanted)))

    async def delete(request: Request) -> Response:
        return json_response(await protocol.delete(request.path_params["name"]))

    return [
        Route("/scenarios", scenarios),
        Route("/environments", create, methods=["POST"]),
        Route("/environments/{name}/step", step, methods=["POST"]),
        Route("/environments/{name}", delete, methods=["DELETE"]),
    ]
