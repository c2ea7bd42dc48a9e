"""verl: an agent loop in which muarl's user and world answer the policy, token by token verl's own.

    # the file of actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: muarl
      _target_: muarl_integrations.verl.MuarlAgentLoop
      user: agenda

Rows of the data set say ``agent_name: muarl`` and their ``task`` (``rows``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.extras import missing_extra
from muarl.domains.tasks import Task
from muarl.environments.session import Session
from muarl.types.chat import Message, ToolSpec, to_openai
from muarl_integrations.conversations import Conversations
from muarl_integrations.spoken import read_hermes, read_parsed
from muarl_integrations.turn_values import filled, turn_values

try:
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
    from verl.experimental.agent_loop.tool_parser import ToolParser
    from verl.tools.schemas import OpenAIFunctionToolSchema
except ImportError as problem:
    raise missing_extra(problem, "muarl_integrations.verl") or problem from None


def rows(tasks: Iterable[Task], *, agent_name: str = "muarl", **more: Any) -> list[dict[str, Any]]:
    """Rows of a data set for verl, one a task. ``more``: further columns, such as ``user_seed`` for an evaluation that
    meets the same users each time."""
    made = []
    for number, task in enumerate(tasks):
        assert task.origin is not None
        made.append(
            {
                "prompt": [{"role": "user", "content": task.id}],  # never shown: the conversation has its own beginning
                "task": str(task.origin.address),
                "agent_name": agent_name,
                "data_source": task.origin.environment.name,
                "reward_model": {"style": "rule", "ground_truth": ""},
                "extra_info": {"index": number},
                **more,
            }
        )
    return made


@dataclass
class _Tokens:
    """The tokens of a conversation so far, as verl merges them, and what its output needs besides."""

    ids: list[int]
    messages: list[dict[str, Any]]
    request: str = field(default_factory=lambda: uuid4().hex)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None
    experts: Any = None
    turns: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"generate_sequences": 0.0, "tool_calls": 0.0})
    preempted: int = -1
    extra: dict[str, Any] = field(default_factory=dict)


@register("muarl")
class MuarlAgentLoop(AgentLoopBase):
    """Plays the task of a row; its reward is the trajectory's.

    ``retries``: how often a conversation is played anew that something outside the policy broke. ``on_failure``: then
    "raise", whereupon verl marks the prompt as failed; or "drop", which leaves this one trajectory out (not with
    ``trainer.use_v1=False``). ``max_tokens``: of one message; None: what is left of ``response_length``.
    ``settings``: the fields of ``Conversations``, ``user``, ``judge`` and ``void_is_zero``.
    """

    def __init__(
        self,
        *args: Any,
        tools: Any = None,
        retries: int = 2,
        on_failure: str = "raise",
        max_tokens: int | None = None,
        **settings: Any,
    ) -> None:
        known = {name: settings.pop(name) for name in ("user", "judge", "void_is_zero") if name in settings}
        super().__init__(*args, **settings)
        if on_failure not in ("raise", "drop"):
            raise ConfigError(f"on_failure: must be raise or drop, not {on_failure!r}")
        self._retries, self._on_failure, self._max_tokens = retries, on_failure, max_tokens
        self._conversations, self._values = Conversations(**known), turn_values()
        self._format = self.rollout_config.multi_turn.format
        self._parser = ToolParser.get_tool_parser(self._format, self.tokenizer)
        self._room = int(self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **row: Any) -> Any:
        """Play the row's task: verl's output, or an empty list for what is dropped."""
        for left in range(self._retries, -1, -1):
            async with self._conversations.session(row) as session:
                tokens = await self._lead(session, sampling_params, int(priority))
                result = self._conversations.counted(session.result)
            failure = result.failure
            if failure is None:
                scores = self._values.scores(self._conversations.task(row), result.episode, float(result.reward or 0.0))
                return self._output(tokens, result, [] if scores is None else filled(scores)[1:])
            if not failure.retryable or not left:
                break
        if self._on_failure == "drop":
            return []
        assert failure is not None
        raise failure.error()

    async def _lead(self, session: Session, sampling: Mapping[str, Any], priority: int) -> _Tokens:
        """The conversation to its end."""
        tokens = await self._begin(session)
        while not session.done:
            message, cut = await self._turn(tokens, session, sampling, priority)
            started = time.perf_counter()
            seen = await session.step(message, stop="turn_length" if cut else None)
            tokens.seconds["tool_calls"] += time.perf_counter() - started
            if not session.done and not await self._hear(tokens, seen.openai_messages, seen.openai_tools):
                await session.step("", stop="context_full")
        return tokens

    async def _begin(self, session: Session) -> _Tokens:
        if session.done:
            return _Tokens([], [])
        messages = [_rendered(message) for message in session.messages]
        ids = await self.ct_build_initial_tokens(messages, tools=session.observation.openai_tools)
        if len(ids) >= self.rollout_config.prompt_length:  # verl cut it on the left
            raise ConfigError(
                f"task {session.task.id}: the system prompt and the tools do not fit into "
                f"actor_rollout_ref.rollout.prompt_length={self.rollout_config.prompt_length} tokens; raise it"
            )
        return _Tokens(list(ids), messages)

    async def _turn(
        self, tokens: _Tokens, session: Session, sampling: Mapping[str, Any], priority: int
    ) -> tuple[Message, bool]:
        """The policy's next message, and whether it was cut."""
        room = self._room - len(tokens.mask)
        most = min(room, self._max_tokens or room)
        asked = {**sampling, "max_tokens": most}
        if self._parser.stop_token_ids:
            asked["stop_token_ids"] = [*{*(sampling.get("stop_token_ids") or ()), *self._parser.stop_token_ids}]
        started = time.perf_counter()
        said = await self.server_manager.generate(
            request_id=tokens.request, prompt_ids=tokens.ids, sampling_params=asked, priority=priority
        )
        tokens.seconds["generate_sequences"] += time.perf_counter() - started
        if said.stop_reason in ("aborted", "abort"):
            raise InfrastructureError("verl's server broke a message off", boundary="agent", retryable=True)
        await self._keep(tokens, said)
        message = await self._read(said.token_ids, session.observation.tools, tokens.turns)
        tokens.messages.append(_rendered(to_openai(message)))
        ended = bool(said.token_ids) and said.token_ids[-1] in self._ends(asked)
        return message, len(said.token_ids) >= most and not ended

    async def _keep(self, tokens: _Tokens, said: Any) -> None:
        tokens.turns += 1
        before = tokens.logprobs if tokens.logprobs is not None else ([] if said.log_probs else None)
        merged, tokens.mask, tokens.logprobs = await self.ct_merge_assistant_token(
            tokens.ids, said.token_ids, tokens.mask, before, assistant_logprobs=said.log_probs or None
        )
        tokens.ids = merged.token_ids
        tokens.experts = said.routed_experts if said.routed_experts is not None else tokens.experts
        if said.num_preempted is not None:
            tokens.preempted = max(tokens.preempted, 0) + said.num_preempted
        new, known = said.extra_fields, tokens.extra
        tokens.extra = {**new, **known}
        if new.get("max_global_steps") is not None:
            tokens.extra["max_global_steps"] = new["max_global_steps"]
        for name in new.keys() & known.keys():
            if name.startswith("spec_num_"):  # counts of speculative decoding
                tokens.extra[name] = known[name] + new[name]

    async def _hear(self, tokens: _Tokens, new: list[dict[str, Any]], tools: list[dict[str, Any]]) -> bool:
        """Append what came of a message. False, with nothing appended, if no room is left for an answer to it."""
        told = [*tokens.messages, *map(_rendered, new)]
        merged, mask, logprobs = await self.ct_merge_context_msg(
            tokens.messages, told, tokens.ids, tokens.mask, tokens.logprobs, tools=tools
        )
        if len(mask) >= self._room:
            return False
        tokens.ids, tokens.mask, tokens.logprobs, tokens.messages = merged.token_ids, mask, logprobs, told
        return True

    async def _read(self, ids: list[int], tools: Iterable[ToolSpec], turn: int) -> Message:
        """The message in a policy's tokens. Calls that cannot be read are answered by the world, where they are
        Hermes's; verl's parsers of other formats leave them out."""
        text_ids = list(ids)
        while text_ids and text_ids[-1] in self._ends({}):
            text_ids.pop()
        if self._format == "hermes":
            return read_hermes(self.tokenizer.decode(text_ids), turn)
        content, calls = await self._parser.extract_tool_calls(text_ids, [_schema(tool) for tool in tools])
        return read_parsed(content, [(call.name, call.arguments) for call in calls], turn)

    def _ends(self, asked: Mapping[str, Any]) -> set[int]:
        ends = (self.tokenizer.eos_token_id, self.tokenizer.pad_token_id)  # Qwen's padding ends documents, too
        return {*(end for end in ends if end is not None), *(asked.get("stop_token_ids") or ())}

    def _output(self, tokens: _Tokens, result: Any, scores: list[float]) -> Any:
        prompt = tokens.ids[: len(tokens.ids) - len(tokens.mask)]
        known = result.to_json()
        reported = {name: known[name] for name in ("task_id", "stop", "parts", "usage", "audit")}
        return AgentLoopOutput(
            prompt_ids=prompt,
            response_ids=tokens.ids[len(prompt) :][: self._room],
            response_mask=tokens.mask[: self._room],
            response_logprobs=None if tokens.logprobs is None else tokens.logprobs[: self._room],
            routed_experts=None if tokens.experts is None else tokens.experts[: len(prompt) + self._room],
            reward_score=result.reward,
            num_turns=sum(message["role"] != "system" for message in tokens.messages),
            metrics={**tokens.seconds, "num_preempted": tokens.preempted},
            extra_fields={
                **tokens.extra,
                "turn_scores": scores,
                "tool_rewards": [],
                "reward_extra_info": {"success": float(result.reward >= 1.0)},
                "muarl": reported,
            },
        )


def _rendered(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as chat templates want it: text where there is none, and arguments as objects where they are JSON."""
    out = {**message, "content": message["content"] or ""}
    if "tool_calls" in message:
        out["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _object(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    return out


def _object(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _schema(tool: ToolSpec) -> Any:
    """A tool as verl's parsers want it: they look at the types of its parameters."""
    properties = {
        name: {"type": str(schema.get("type", "object")) if isinstance(schema, Mapping) else "object"}
        for name, schema in tool.parameters.get("properties", {}).items()
    }
    function = {"name": tool.name, "description": "", "parameters": {"type": "object", "properties": properties}}
    return OpenAIFunctionToolSchema.model_validate({"type": "function", "function": function})
