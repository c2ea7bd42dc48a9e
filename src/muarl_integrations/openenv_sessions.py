"""OpenEnv's resource sessions, and a harness that lets customers speak: real user turns in TRL's AsyncGRPOTrainer.

    worker = HarnessRolloutWorker(harness_session_factory=partial(TaskSessions), harness_adapter=UserTurnHarness(), ...)
    trainer = AsyncGRPOTrainer(..., rollout_worker=worker)

A prompt of the data set is the address of a task. With ``user_tool``, the customer is a tool, so that OpenEnv's own
harnesses, which know tool calls only, can lead the sessions too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.basics.seeds import derive_seed
from muarl.endpoints.client import Endpoint
from muarl.environments.session import Observation
from muarl.rewards.judge import Judge
from muarl.rollouts.rules import Limits
from muarl.types.chat import Message, ToolCall, to_openai
from muarl.users.base import UserFactory
from muarl_integrations.blocking import OVER, BlockingSession, talk_tool

require("openenv", "muarl_integrations.openenv_sessions")

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import (
    HarnessAdapter,
    HarnessRolloutResult,
    HarnessRunLimits,
    ModelStep,
    ModelStepResult,
    ResourceSession,
    ResourceSessionFactory,
    ToolResult,
    ToolTraceEntry,
    TrainingTrace,
    TrainingTurn,
    VerifyResult,
)


class TaskSession(ResourceSession):
    """One conversation that a harness leads."""

    def __init__(self, led: BlockingSession, user_tool: str | None = None) -> None:
        self._led, self._user_tool = led, user_tool
        self._calls = 0
        self._turns: list[ModelStepResult] = []

    @property
    def done(self) -> bool:
        """Whether the conversation is over."""
        return self._led.session.done

    def initial_messages(self) -> list[dict[str, Any]]:
        """The system prompt and the customer's first message."""
        return self._led.session.messages

    def list_tools(self) -> list[Tool]:
        """The tools of the domain, and the one that speaks to the customer if there is one."""
        specs = list(self._led.session.observation.tools)
        if self._user_tool is not None:
            specs.append(talk_tool(self._user_tool))
        return [Tool(name=s.name, description=s.description, input_schema=dict(s.parameters)) for s in specs]

    def say(self, message: Mapping[str, Any], step: ModelStepResult | None = None) -> list[dict[str, Any]]:
        """The agent's message as OpenAI's chat API has it, and what came of it: results of its calls, or the customer's
        answer. ``step``: with the ids that were sampled, which ``fetch_training_trace`` gives back."""
        if step is not None:
            self._turns.append(step)
        return self._led.step(message).openai_messages

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """One tool call, or a message for the customer. KeyError for an unknown tool."""
        if not self._led.session.waiting:
            return ToolResult(OVER, done=True)
        if name == self._user_tool:
            return _result(self._led.step(str(arguments.get("message", ""))))
        if name not in {tool.name for tool in self._led.session.observation.tools}:
            raise KeyError(f"Unknown tool: {name}")
        self._calls += 1
        return _result(self._led.step(Message("assistant", None, (ToolCall(f"call_{self._calls}", name, arguments),))))

    def verify(self, transcript: Sequence[Any], final_state: Any | None = None) -> VerifyResult:
        """The reward, None where something outside the policy failed. A harness that stopped before the conversation
        was over gets 0."""
        result = self._led.finish()
        failure = self._led.session.failure
        artifacts = {"stop": result.stop.value, "failure": None if failure is None else failure.to_json()}
        return VerifyResult(result.reward, True, metrics=dict(result.parts), artifacts=artifacts)

    def fetch_training_trace(self) -> TrainingTrace:
        """The ids of every message that came with some, with what was before them; only sampled ones carry loss."""
        return TrainingTrace(
            turns=[
                TrainingTurn(
                    node_id=f"turn-{number}",
                    prompt_token_ids=list(step.prompt_ids),
                    completion_token_ids=list(step.completion_ids),
                    per_token_logps=list(step.logprobs),
                    loss_mask=[0] * len(step.prompt_ids) + [1] * len(step.completion_ids),
                    response={"choices": [{"message": step.response.to_message_dict()}]},
                )
                for number, step in enumerate(self._turns)
                if step.completion_ids
            ]
        )

    def close(self) -> None:
        """End the conversation where it still runs."""
        self._led.close()


@dataclass(frozen=True)
class TaskSessions(ResourceSessionFactory[TaskSession]):
    """Makes the sessions of tasks by their addresses. ``users``, ``limits``, ``judge``: as for ``muarl.play``.

    ``user_tool``: the name of a tool that speaks to the customer, for harnesses without user turns. ``retries``: how
    often a conversation is begun anew whose customer failed before the agent had said anything.
    """

    user_tool: str | None = None
    users: UserFactory | Endpoint | None = None
    limits: Limits | None = None
    judge: Judge | None = None
    seed: int = 0
    retries: int = 2

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> TaskSession:
        """Begin a conversation. ``task``: an address, or a prompt whose last message is one. ``seed``: customers of the
        same task and seed are the same; TRL gives all rollouts of a group one. InfrastructureError where the customer
        is away."""
        led = BlockingSession(
            _address(task),
            retries=self.retries,
            seed=derive_seed(self.seed, 0 if seed is None else seed),
            users=self.users,
            limits=self.limits,
            judge=self.judge,
        )
        if led.session.failure is not None:
            raise led.session.failure.error()
        return TaskSession(led, self.user_tool)


class UserTurnHarness(HarnessAdapter):
    """Leads ``TaskSession``s: text goes to the customer, whose answer is a user's message; calls go to the tools."""

    def run_white_box(
        self, model_step: ModelStep, session: ResourceSession, limits: HarnessRunLimits | None = None
    ) -> HarnessRolloutResult:
        """One conversation whose messages ``model_step`` samples. ``limits.max_turns``: how many of them; tool calls
        are limited by the environment."""
        if not isinstance(session, TaskSession):
            raise ConfigError(f"UserTurnHarness leads sessions of TaskSessions, not a {type(session).__name__}")
        limits = limits or HarnessRunLimits(max_turns=100)
        result = HarnessRolloutResult(messages=session.initial_messages())
        turns = 0
        while not session.done and turns < limits.max_turns:
            step = model_step(result.messages, session.list_tools(), dict(limits.sampling))
            turns += 1
            said = step.response.to_message_dict()
            came = session.say(said, step)
            result.messages += [said, *came]
            result.prompt_ids += step.prompt_ids
            result.completion_ids += step.completion_ids
            result.logprobs += step.logprobs
            answers = {message.get("tool_call_id"): message for message in came}
            for call in step.response.tool_calls:
                answer = ToolResult(answers.get(call.id, {}).get("content"))
                result.tool_trace.append(ToolTraceEntry(call.name, dict(call.args), answer))
        result.done = session.done
        result.metrics = {"turns": turns, "tool_calls": len(result.tool_trace)}
        return result

    def run_black_box(self, session: ResourceSession, limits: HarnessRunLimits | None = None) -> HarnessRolloutResult:
        """Not this harness's way."""
        raise NotImplementedError("UserTurnHarness needs somebody who samples: run_white_box")


def _result(seen: Observation) -> ToolResult:
    errors = [m.content for m in seen.messages if m.error]
    texts = [to_openai(message).get("content") or "" for message in seen.messages]
    return ToolResult("\n".join(texts), done=seen.done, error=errors[0] if errors else None)


def _address(task: Any) -> str:
    """The address that a task of a trainer's is."""
    if isinstance(task, Mapping):
        task = task.get("task", task.get("content"))
    if isinstance(task, list) and task and isinstance(task[-1], Mapping):
        task = task[-1].get("content")
    if not isinstance(task, str):
        raise ConfigError("task: must be the address of a task, such as retail-generated:train:17")
    return task
