"""inspect_ai: an environment as a task, with muarl's users as the other side and muarl's score.

``inspect eval muarl/conversations -T environment=retail-generated`` runs it (docs/integrations/inspect_ai.md). The
model is inspect's, so that its log holds the conversation and every call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from pydantic import ConfigDict, Field

from muarl.agents.base import Agent
from muarl.agents.endpoint import NOT_RUN
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.extras import missing_extra
from muarl.domains.tasks import Task
from muarl.environments.registry import load_environment, load_task
from muarl.environments.results import PlayResult
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import StopReason
from muarl_integrations.conversations import Conversations

try:
    import inspect_ai
    from inspect_ai import model as models
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import ToolInfo, ToolParams
    from inspect_ai.util import JSONSchema, LimitExceededError
except ImportError as problem:
    raise missing_extra(problem, "muarl_integrations.inspect_ai") or problem from None

KEY = "muarl"
"""Where the result lies in a sample's store."""

CUT: dict[str, StopReason] = {"max_tokens": StopReason.TURN_LENGTH, "model_length": StopReason.CONTEXT_FULL}
"""How inspect says that a message was cut."""


@inspect_ai.task
def conversations(
    environment: str = "retail-generated",
    split: str = "test",
    count: int = 100,
    start: int = 0,
    size: str | None = None,
    seed: int = 0,
    user: str = "agenda",
    judge: str | None = None,
    baselines: bool = True,
    void_is_zero: bool = False,
) -> inspect_ai.Task:
    """``count`` tasks of a ``split``, from number ``start``.

    ``environment``: a name from `muarl domains`, FILE.py:NAME or package.module:NAME. ``size``: None for the smallest.
    ``seed``: of generated tasks, and of the users; each epoch has users of its own. ``user``: agenda (by rules),
    endpoint:MODEL or endpoint:MODEL@URL. ``judge``: of assertions in words. ``baselines``: beside the score, that of
    doing nothing and of always transferring, where users play by rules. ``void_is_zero``: what a benchmark voids,
    because the model wrote what its rules do not allow, counts as 0 instead of being an error.
    """
    found = load_environment(environment)
    tasks = found.make_tasks(split, count, size=size, seed=seed, start=start)
    return inspect_ai.Task(
        dataset=MemoryDataset([_sample(task) for task in tasks], name=f"{found.name}:{split}"),
        solver=conversation(user=user, judge=judge, seed=seed, void_is_zero=void_is_zero),
        scorer=outcome(seed=seed, baselines=baselines and user == "agenda"),
        fail_on_error=False,  # a failing user or tool server costs its sample, and not the evaluation
    )


@solver
def conversation(user: str = "agenda", judge: str | None = None, seed: int = 0, void_is_zero: bool = False) -> Solver:
    """muarl's user talks to the model until the conversation is over. Samples are those of ``conversations``.

    A failure of the user, of a judge or of a tool server is raised (InfrastructureError), and so is a first request
    that does not fit into the model's context, as the model did nothing then; inspect makes it an error of the sample,
    which has no score.
    """
    led = Conversations(user, judge, void_is_zero)
    led.check()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, row = models.get_model(), {"task": state.metadata["address"], "seed": _seed(seed, state)}
        async with led.session(row) as session:
            system = session.observation.system
            state.messages = [models.ChatMessageSystem(content=system)] if system else []
            spoken = False
            try:
                while not session.done:
                    now = session.observation
                    state.messages.extend(_heard(state.messages, now.messages))
                    output = await model.generate(state.messages, tools=[_tool(tool) for tool in now.tools])
                    if not spoken and _has_no_room(output):
                        raise _no_room(output)
                    state.output, spoken = output, True
                    state.messages.append(state.output.message)
                    await session.step(_said(state.output.message), stop=CUT.get(state.output.stop_reason))
            except LimitExceededError as limit:
                if limit.type in ("message", "token", "turn", "cost"):  # of what the model may use
                    state.store.set(KEY, {"reward": 0.0, "parts": {}, "stop": f"{limit.type}_limit"})
                raise
        played = led.counted(session.result)
        if played.failure is not None:
            raise played.failure.error()
        state.messages.extend(_heard(state.messages, session.observation.messages))
        state.store.set(KEY, _kept(played))
        state.completed = True
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def outcome(seed: int = 0, baselines: bool = True) -> Scorer:
    """muarl's reward, as "reward", and beside it those of the baselines on the same task."""

    async def score(state: TaskState, target: Target) -> Score:
        result = state.store.get(KEY)
        if result is None:
            return Score.unscored(explanation="The conversation was not played to its end by muarl's solver.")
        floors = await _floors(state, seed) if baselines else {}
        parts = ", ".join(f"{name} {value:g}" for name, value in result["parts"].items())
        return Score(
            value={"reward": result["reward"], **floors},
            answer=result["stop"],
            explanation=f"Ended by {result['stop']}. Reward: {parts or result['reward']}",
            metadata=result,
        )

    return score


def _sample(task: Task) -> Sample:
    """What the customer wants is the sample's input for its readers; the model hears the customer's own words."""
    gold = [f"{action.name}({json.dumps(dict(action.arguments))})" for action in task.actions or ()]
    return Sample(
        input=task.scenario,
        target=gold or "",
        id=task.id,
        metadata={"address": str(task.origin.address), **{k: str(v) for k, v in task.tags.items()}},
    )


def _has_no_room(output: models.ModelOutput) -> bool:
    """Whether a server refused a request as too long, which inspect makes a message of the model's."""
    sampled = output.usage is not None and output.usage.output_tokens > 0
    return CUT.get(output.stop_reason) is StopReason.CONTEXT_FULL and not sampled


def _no_room(output: models.ModelOutput) -> InfrastructureError:
    text = (
        "the first request of the conversation does not fit into the model's context, so that nothing of the model was "
        f"measured. Its server says: {output.completion.strip() or output.error or 'nothing'}. Serve it with more "
        "context (--max-context of muarl serve, --max-model-len of vLLM), or evaluate a model that has more"
    )
    return InfrastructureError(text, boundary="agent", retryable=False)


def _seed(seed: int, state: TaskState) -> int:
    return seed + state.epoch - 1


def _kept(result: PlayResult) -> dict[str, Any]:
    said = result.to_json()
    return {key: said[key] for key in ("reward", "parts", "stop", "failure", "usage", "audit")}


async def _floors(state: TaskState, seed: int) -> dict[str, float]:
    agents: dict[str, Agent] = {"do_nothing": IdleAgent(), "always_transfer": TransferAgent()}
    floors = {name: await _floor(state, agent, seed) for name, agent in agents.items()}
    return {name: reward for name, reward in floors.items() if reward is not None}


async def _floor(state: TaskState, agent: Agent, seed: int) -> float | None:
    """What an agent that needs no model gets for the sample's task; None where it cannot play it."""
    task = load_task(state.metadata["address"])
    async with task.origin.environment.start(task, seed=_seed(seed, state)) as session:
        now = session.observation
        try:
            playing = agent.open(now.system, now.tools, seed=0, session=task.id)
        except ConfigError:  # nobody to transfer to
            return None
        while not session.done:
            await session.step((await playing.act(())).message)
        return session.result.reward


def _heard(before: Sequence[models.ChatMessage], new: Iterable[Message]) -> list[models.ChatMessage]:
    """What came since the model's last message, in inspect's form; results first for calls that were passed over,
    since servers want one for each."""
    heard = list(new)
    last = before[-1] if before else None
    calls = (last.tool_calls or ()) if isinstance(last, models.ChatMessageAssistant) else ()
    answered = {m.tool_call_id for m in heard}
    return [
        *(_result(NOT_RUN, call.id, call.function) for call in calls if call.id not in answered),
        *(
            _result(m.content, m.tool_call_id, m.name)
            if m.role == "tool"
            else models.ChatMessageAssistant(content=m.content or "")
            if m.role == "assistant"
            else models.ChatMessageUser(content=m.content or "")
            for m in heard
        ),
    ]


def _result(content: str | None, call_id: str | None, name: str | None) -> models.ChatMessageTool:
    # An error is left in the text: inspect would send other words in its place.
    return models.ChatMessageTool(content=content or "", tool_call_id=call_id, function=name)


def _said(message: models.ChatMessageAssistant) -> Message:
    calls = tuple(
        ToolCall(c.id, c.function, {} if c.parse_error else c.arguments, invalid=c.parse_error or None)
        for c in message.tool_calls or ()
    )
    return Message("assistant", message.text or None, tool_calls=calls)


class _Schema(JSONSchema):
    """A schema with all that it says; inspect's own class keeps what it knows."""

    model_config = ConfigDict(extra="allow")

    items: Optional[_Schema] = None  # noqa: UP045
    properties: dict[str, _Schema] | None = None
    anyOf: list[_Schema] | None = None


class _Parameters(ToolParams):
    model_config = ConfigDict(extra="allow")
    properties: dict[str, _Schema] = Field(default_factory=dict)
    additionalProperties: Any = None


def _tool(tool: ToolSpec) -> ToolInfo:
    function = tool.to_openai()["function"]
    parameters = _Parameters.model_validate(function.get("parameters") or {})
    return ToolInfo(name=function["name"], description=function.get("description", ""), parameters=parameters)
