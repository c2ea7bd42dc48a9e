"""What clients ask, read strictly: an unknown field is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from muarl.agents.outside import SampledTokens
from muarl.basics.untrusted import parse_json
from muarl.basics.web.json_api import invalid
from muarl.rollouts.rules import Limits

MOST_TASKS = 1000
"""Tasks in one list."""


class ClientRequest(BaseModel):
    """What a client asks. What it sent is in no error text, since there may be keys in it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class TaskQuery(ClientRequest):
    """``GET /tasks``: which tasks are listed. ``seed``: of generated ones."""

    environment: str | None = None
    split: str | None = None
    start: int = Field(0, ge=0)
    count: int = Field(100, ge=1, le=MOST_TASKS)
    size: str | None = None
    seed: int = 0


class LimitsField(ClientRequest):
    """Where the conversation is cut, in place of the environment's own limits; see ``Limits``. null: nowhere."""

    turns: int | None = Field(None, ge=1)
    tool_errors: int | None = Field(None, ge=1)
    user_calls: int | None = Field(None, ge=1)
    agent_calls: int | None = Field(None, ge=1)
    steps: int | None = Field(None, ge=1)

    def over(self, usual: Limits) -> Limits:
        """The usual limits with those that were given."""
        return replace(usual, **self.model_dump(exclude_unset=True))


class PlaceRequest(ClientRequest):
    """Which task, by its address or by split and index; the seeds of the conversation, and its limits.

    ``environment``: needed where several are served. ``task_seed``: of generated tasks.
    """

    task: str | None = None
    environment: str | None = None
    split: str | None = None
    index: int | None = Field(None, ge=0)
    size: str | None = None
    task_seed: int = 0
    seed: int = 0
    user_seed: int | None = None
    limits: LimitsField | None = None


class RunRequest(PlaceRequest):
    """``POST /run``: the model that is the agent, and how it is asked. See ``muarl.play``."""

    base_url: str
    model: str
    api_key: SecretStr = SecretStr("")
    retries: int = Field(0, ge=0, le=5)
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    timeout: float = Field(90.0, gt=0, le=3600)
    deadline: float = Field(300.0, gt=0, le=7200)
    attempts: int = Field(6, ge=1, le=20)
    verbatim: bool = True
    extra: dict[str, Any] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Settings of the endpoint."""
        return self.model_dump(
            include={"temperature", "top_p", "max_tokens", "timeout", "deadline", "attempts", "verbatim", "extra"}
        )


class TokensField(ClientRequest):
    """The exact ids of a message; see ``SampledTokens``."""

    prompt_ids: list[int]
    ids: list[int]
    logprobs: list[float]
    version: int = 0

    def sampled(self) -> SampledTokens:
        """The same for the library."""
        return SampledTokens(self.prompt_ids, self.ids, self.logprobs, self.version)


class StepRequest(ClientRequest):
    """``POST /sessions/ID/step``: the agent's next message."""

    message: str | dict[str, Any]
    stop: str | None = None
    tokens: TokensField | None = None


R = TypeVar("R", bound=BaseModel)


def read_body(kind: type[R], body: bytes) -> R:
    """A request of this kind. ApiError names the field that is wrong."""
    try:
        data = parse_json(body or b"{}")
    except ValueError as problem:
        raise invalid(f"The body is no JSON: {problem}") from None
    return read_fields(kind, data)


def read_fields(kind: type[R], data: Any) -> R:
    """The same of fields that were read already."""
    try:
        return kind.model_validate(data)
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"] if part not in ("str", "dict[str,any]"))
        if first["type"] == "extra_forbidden":
            raise invalid(f"there is no such field; known: {', '.join(kind.model_fields)}", field) from None
        raise invalid(first["msg"], field or None) from None
