"""What a client asks for: the JSON of a chat completion, checked and turned into muarl's own words.

Fields that would change what comes out and cannot be honoured are refused unless they hold what is done anyway; fields
that nobody here knows are ignored, as other servers of this API do.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from muarl.basics.untrusted import parse_finite_json
from muarl.basics.web.json_api import invalid
from muarl.endpoints.replies import read_tool_call
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_tools.serve_model.problems import unsupported
from muarl_tools.serve_model.tools import ToolSpellings

MAX_CHOICES = 64
MAX_STOPS = 16
TOOL_SETS = 128
"""Sets of tools that are kept, so that a conversation's next request finds the same objects."""

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": ([],),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "ignore_eos": (False,),
    "logit_bias": ({},),
    "min_p": (0,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "response_format": ({"type": "text"},),
    "structured_outputs": (),
    "suffix": ("",),
    "use_beam_search": (False,),
    "web_search_options": (),
}
"""Fields that this server has not, with the values (besides null) that ask for nothing."""


_WORD = 1 << 63
"""Samplers count in 64 bits."""
M = TypeVar("M", bound=BaseModel)


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Part(_Model):
    type: str
    text: str | None = None


class _Function(_Model):
    name: str = Field(min_length=1)
    arguments: str | dict[str, Any] | None = None


class _Call(_Model):
    id: str | None = None
    type: Literal["function"] = "function"
    function: _Function


class _Message(_Model):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @field_validator("content")
    @classmethod
    def _text_only(cls, value: str | list[_Part] | None) -> str | list[_Part] | None:
        for part in value if isinstance(value, list) else ():
            if part.type not in ("text", "input_text", "output_text") or part.text is None:
                raise ValueError(f"a part of type {part.type!r}: this model reads text only")
        return value


class _ToolFunction(_Model):
    name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(_Model):
    type: Literal["function"]
    function: _ToolFunction


class _StreamOptions(_Model):
    include_usage: bool | None = None


class _Common(_Model):
    model: str
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=_WORD)] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=_WORD)] | None = None
    seed: Annotated[int, Field(ge=-_WORD, lt=_WORD)] | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    return_token_ids: bool | None = None


class _Chat(_Common):
    messages: list[_Message] = Field(min_length=1)
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=_WORD)] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    prompt_cache_key: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class _Text(_Common):
    prompt: str | list[int] | list[str] | list[list[int]]
    logprobs: int | None = None
    stop_token_ids: list[Annotated[int, Field(ge=0, lt=_WORD)]] | None = None


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """How to sample and how to answer, of whichever endpoint.

    ``max_tokens`` None: as many as there is room for. ``logprobs``: of the sampled ids. ``ids``: give all ids.
    """

    model: str
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int | None
    seed: int | None
    stop: tuple[str, ...]
    n: int
    stream: bool
    usage: bool
    logprobs: bool
    ids: bool


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat completion that is asked for.

    ``system``: the first message, where it is of that role; ``messages``: the others. ``tool_choice``: "none", "auto",
    "required", or ``named``: this tool. ``scope``: conversations of one scope continue each other's replies
    (``prompt_cache_key``). ``thinking``: None for the server's own way.
    """

    wanted: CompletionOptions
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    tool_choice: Literal["none", "auto", "required"]
    named: str | None
    parallel: bool
    scope: str
    thinking: bool | None


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A completion of a prompt that is asked for: text, or ids."""

    wanted: CompletionOptions
    prompt: str | tuple[int, ...]
    stop_ids: tuple[int, ...]


class RequestReader:
    """Reads requests. Keeps the tools it has seen: the same tools are the same objects. ``known``: tools as the model
    saw them in training (``ToolSpellings``)."""

    def __init__(self, known: Iterable[ToolSpec] = ()) -> None:
        self._spellings = ToolSpellings(known)
        self._tools: OrderedDict[bytes, tuple[ToolSpec, ...]] = OrderedDict()

    def chat(self, body: bytes) -> ChatRequest:
        """A chat completion. ApiError says what is wrong with it."""
        return self.chat_of(read_object(body))

    def chat_of(self, raw: dict[str, Any]) -> ChatRequest:
        """A chat completion whose JSON is read. ApiError says what is wrong with it."""
        fields = _checked(_Chat, raw)
        system, messages = _split([_message(m, n) for n, m in enumerate(fields.messages)])
        tools = self._specs(raw.get("tools") or [], fields.tools or [])
        choice, named = _choice(fields.tool_choice, tools)
        if fields.top_logprobs:
            raise unsupported("top_logprobs", "only the sampled tokens' own log-probabilities can be had; use 0")
        thinking = (fields.chat_template_kwargs or {}).get("enable_thinking")
        if thinking is not None and not isinstance(thinking, bool):
            raise invalid("must be true or false", "chat_template_kwargs.enable_thinking")
        most = fields.max_completion_tokens if fields.max_completion_tokens is not None else fields.max_tokens
        return ChatRequest(
            _wanted(fields, most, bool(fields.logprobs)),
            system,
            tuple(messages),
            tools,
            choice,
            named,
            fields.parallel_tool_calls is not False,
            fields.prompt_cache_key or "",
            thinking,
        )

    def text(self, body: bytes) -> TextRequest:
        """A completion. ApiError says what is wrong with it."""
        fields = _checked(_Text, read_object(body))
        prompt: Any = fields.prompt
        if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
            if len(prompt) > 1:
                raise unsupported("prompt", "one prompt in a request")
            prompt = prompt[0]
        if not prompt:
            raise invalid("is empty", "prompt")
        if fields.logprobs is not None and fields.logprobs > 1:
            raise unsupported("logprobs", "only the sampled tokens' own log-probabilities can be had; use 0 or 1")
        most = 16 if fields.max_tokens is None else fields.max_tokens  # OpenAI's own default at this endpoint
        wanted = _wanted(fields, most, fields.logprobs is not None)
        prompt = prompt if isinstance(prompt, str) else tuple(prompt)
        return TextRequest(wanted, prompt, tuple(fields.stop_token_ids or ()))

    def _specs(self, raw: list[dict[str, Any]], tools: list[_Tool]) -> tuple[ToolSpec, ...]:
        """The tools as the model is shown them."""
        if not tools:
            return ()
        names = [t.function.name for t in tools]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise invalid(f"there are two tools called {twice!r}", "tools")
        key = sha256(json.dumps(raw).encode()).digest()
        specs = self._tools.pop(key, None)
        if specs is None:
            specs = tuple(map(self._spellings.spec, raw))
        self._tools[key] = specs
        while len(self._tools) > TOOL_SETS:
            self._tools.popitem(last=False)
        return specs


def read_object(body: bytes) -> dict[str, Any]:
    """A request's JSON. ApiError if it is none, or asks for what this server has not."""
    try:
        value = parse_finite_json(body)
    except ValueError as problem:  # bytes that are no UTF-8 among them
        raise invalid(f"the request is not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise invalid("the request must be a JSON object")
    for name, neutral in NEUTRAL.items():
        given = value.get(name)
        if given is not None and given not in neutral:
            raise unsupported(name, "this server does not have it; leave it out")
    return value


def _checked(kind: type[M], raw: dict[str, Any]) -> M:
    try:
        return kind.model_validate(raw)
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        path = [str(p) for p in error["loc"] if not (isinstance(p, str) and ("[" in p or p in ("str", "int")))]
        missing = error["type"] == "missing"
        said = "is missing" if missing else error["msg"].removeprefix("Value error, ")
        code = "missing_required_parameter" if missing else "invalid_value"
        raise invalid(said[0].lower() + said[1:], ".".join(path), code) from None


def _wanted(fields: _Common, most: int | None, logprobs: bool) -> CompletionOptions:
    stop = [fields.stop] if isinstance(fields.stop, str) else fields.stop or []
    if len(stop) > MAX_STOPS or not all(stop):
        raise invalid(f"at most {MAX_STOPS} strings, none of them empty", "stop")
    options = fields.stream_options
    return CompletionOptions(
        fields.model,
        1.0 if fields.temperature is None else fields.temperature,
        1.0 if fields.top_p is None else fields.top_p,
        max(fields.top_k or 0, 0),
        most,
        fields.seed,
        tuple(stop),
        fields.n or 1,
        bool(fields.stream),
        bool(options is not None and options.include_usage),
        logprobs,
        bool(fields.return_token_ids),
    )


def _message(sent: _Message, number: int) -> Message:
    content = sent.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content)
    if sent.role == "assistant":
        calls = tuple(_call(c, f"call_{n}") for n, c in enumerate(sent.tool_calls or ()))
        reasoning = sent.reasoning_content or sent.reasoning
        return Message("assistant", content, calls, reasoning=reasoning)
    if content is None:
        raise invalid(f"a {sent.role} message needs content", f"messages.{number}.content")
    if sent.tool_calls:
        raise invalid("only an assistant message calls tools", f"messages.{number}.tool_calls")
    if sent.role == "developer":
        return Message("system", content)
    return Message(sent.role, content, tool_call_id=sent.tool_call_id, name=sent.name)


def _call(sent: _Call, default: str) -> ToolCall:
    return read_tool_call(sent.id or default, sent.function.name, sent.function.arguments)


def _split(messages: list[Message]) -> tuple[str, list[Message]]:
    """The leading system message and the others. A policy that comes in several messages stays several messages."""
    if messages[0].role == "system":
        return messages[0].content or "", messages[1:]
    return "", messages


def _choice(
    given: str | dict[str, Any] | None, tools: tuple[ToolSpec, ...]
) -> tuple[Literal["none", "auto", "required"], str | None]:
    if given is None or given == "auto":
        return "auto", None
    if given == "none":
        return "none", None
    if given == "required":
        if not tools:
            raise invalid("is required, but there are no tools", "tool_choice")
        return "required", None
    name = None
    if isinstance(given, dict) and given.get("type") == "function" and isinstance(given.get("function"), dict):
        name = given["function"].get("name")
    if not isinstance(name, str):
        raise invalid(
            'must be "none", "auto", "required" or {"type": "function", "function": {"name": …}}', "tool_choice"
        )
    if name not in {t.name for t in tools}:
        raise invalid(f"there is no tool called {name!r}", "tool_choice")
    return "required", name
