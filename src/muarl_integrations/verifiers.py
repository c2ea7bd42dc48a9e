"""verifiers and prime-rl: a taskset of muarl's tasks, and a harness in which muarl's user talks to the model.

``vf-eval muarl-verifiers`` loads both (docs/integrations/verifiers.md). The harness plays in this process, and asks
verifiers' interception server for every message, which records tokens, applies sampling and limits, and counts turns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.agents.endpoint import NOT_RUN
from muarl.agents.outside import as_message
from muarl.basics.errors import InfrastructureError
from muarl.basics.extras import missing_extra
from muarl.environments.registry import load_environment
from muarl.environments.session import Session
from muarl_integrations.conversations import Conversations
from muarl_integrations.turn_values import turn_values

try:
    import openai
    import verifiers.v1 as vf
    from verifiers.v1.harnesses.utils.compaction import is_context_overflow
except ImportError as problem:
    raise missing_extra(problem, "muarl_integrations.verifiers") or problem from None


class MuarlState(vf.State):
    """What became of a conversation, for scoring: ``PlayResult.to_json``."""

    result: dict[str, Any] | None = None


class MuarlTaskData(vf.TaskData):
    """Where a task is found, ``ENVIRONMENT:SPLIT:NUMBER``."""

    address: str


class MuarlTask(vf.Task[MuarlTaskData, MuarlState, vf.TaskConfig]):
    """A task, scored by muarl while it was played."""

    @property
    def key(self) -> str:
        """Its address."""
        return self.data.address

    @vf.reward
    async def success(self, trace: Any) -> float:
        """muarl's reward."""
        return float(_result(trace)["reward"])

    @vf.metric
    async def parts(self, trace: Any) -> Mapping[str, float]:
        """What the reward is made of: DB, COMMUNICATE, ..."""
        return _result(trace)["parts"]


class MuarlTasksetConfig(vf.TasksetConfig):
    """``environment``: a name from `muarl domains`, FILE.py:NAME or package.module:NAME. ``count`` tasks of a ``split``
    from number ``start``. ``size``: None for the smallest; ``seed``: of generated tasks."""

    environment: str = "retail-generated"
    split: str = "train"
    start: int = 0
    count: int = 100
    size: str | None = None
    seed: int = 0


class MuarlTaskset(vf.Taskset[MuarlTask, MuarlTasksetConfig]):
    """Tasks of one environment."""

    def load(self) -> Iterator[MuarlTask]:
        """The tasks, in order. ConfigError for an environment, a split or a size that there is not."""
        c = self.config
        environment = load_environment(c.environment)
        for task in environment.make_tasks(c.split, c.count, size=c.size, seed=c.seed, start=c.start):
            address = str(task.origin.address)
            # The user's first words are the prompt, but verifiers refuses a task without any.
            yield MuarlTask(MuarlTaskData(address=address, id=address, name=task.id, prompt=task.id), c.task)


class MuarlHarnessConfig(vf.HarnessConfig):
    """``user``: who plays the customers: agenda (by rules), endpoint:MODEL or endpoint:MODEL@URL. ``judge``: of
    assertions in words, endpoint:MODEL. ``seed``: of the users; None: each rollout has its own. ``user_seed``: the same
    user in all rollouts of a task. ``void_is_zero``: what a benchmark voids, because the model wrote what its rules
    do not allow, counts as reward 0 instead of failing. ``retries``: further requests where one of a message failed."""

    user: str = "agenda"
    judge: str | None = None
    seed: int | None = None
    user_seed: int | None = None
    void_is_zero: bool = False
    retries: int = 2


class MuarlHarness(vf.Harness[MuarlHarnessConfig]):
    """Plays a whole conversation: muarl's user, world and rules, and the model behind verifiers' interception."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def __init__(self, config: MuarlHarnessConfig) -> None:
        super().__init__(config)
        self.conversations = Conversations(config.user, config.judge, config.void_is_zero)
        self.conversations.check()

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: Mapping[str, str],
        data: MuarlTaskData,
    ) -> Any:
        """Play the task of ``data`` to its end and keep the result in ``trace.state``.

        Raises the error class of verifiers that says whose failure it was, so that the rollout is not scored.
        """
        config = self.config
        seed = _seed(trace.id) if config.seed is None else config.seed
        row = {"task": data.address, "seed": seed, "user_seed": config.user_seed}
        # Timeouts are verifiers' to set.
        model = openai.AsyncOpenAI(api_key=secret, base_url=endpoint, timeout=None, max_retries=config.retries)
        async with model as client, self.conversations.session(row) as session:
            await _lead(session, client, ctx.model, trace, data.system_prompt)
        played = self.conversations.counted(session.result)
        if played.failure is not None:
            raise _error(played.failure.error())
        trace.state.result = result = played.to_json()
        scores = turn_values().scores(self.conversations.task(row), played.episode, float(played.reward or 0.0))
        if scores is not None:
            trace.info["turn_rewards"] = scores[1:]  # where prime-rl's credit by turn looks for them
        trace.info["muarl"] = {key: result[key] for key in ("task_id", "stop", "usage", "audit")}
        return vf.ProgramResult(0, "", "")


class MuarlEnvConfig(vf.EnvConfig):
    """One agent. No program runs in its runtime, so it is this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class MuarlEnv(vf.Env[MuarlEnvConfig]):
    """One conversation an episode."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play it."""
        await agents.agent.run(task)


async def _lead(session: Session, client: openai.AsyncOpenAI, model: str, trace: Any, system: str | None) -> None:
    """The conversation, with the model's own messages sent back as they came, so that they continue its tokens.
    ``system``: in place of muarl's."""
    told = session.observation.system if system is None else system
    said: list[Any] = [{"role": "system", "content": told}] if told else []
    while not session.done:
        now = session.observation
        said += _unanswered(said, now.openai_messages) + now.openai_messages
        tools: dict[str, Any] = {"tools": now.openai_tools} if now.tools else {}
        try:
            reply = await client.chat.completions.create(model=model, messages=said, **tools)
        except openai.APIStatusError as problem:
            if trace.stop_condition is None and not is_context_overflow(problem):
                raise  # verifiers knows what failed behind it
            # A limit of verifiers' own, or the model's: the conversation was cut, and has reward 0.
            await session.step("", stop="context_full")
            continue
        body = reply.choices[0].message.model_dump(exclude_none=True)
        said.append(_sent_back(body))
        await session.step(body, stop="turn_length" if reply.choices[0].finish_reason == "length" else None)


def _sent_back(body: Mapping[str, Any]) -> dict[str, Any]:
    """A message as history: servers refuse a whole request over a call whose arguments are no JSON."""
    broken = {call.id for call in as_message(body).tool_calls if call.invalid is not None}
    calls = [
        {**call, "function": {**call["function"], "arguments": "{}"}} if call["id"] in broken else call
        for call in body.get("tool_calls", ())
    ]
    return {**body, **({"tool_calls": calls} if calls else {"content": body.get("content") or ""})}


def _unanswered(said: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results for calls that the rules passed over: servers want one for each."""
    answered = {m.get("tool_call_id") for m in new}
    calls = said[-1].get("tool_calls", ()) if said else ()
    return [{"role": "tool", "tool_call_id": c["id"], "content": NOT_RUN} for c in calls if c["id"] not in answered]


def _error(failure: InfrastructureError) -> vf.RolloutError:
    """The error of verifiers that says whose failure it was."""
    text = f"{failure.boundary}: {failure}"
    if failure.boundary in ("user", "judge"):  # models, too
        return vf.ProviderError(text, status_code=503 if failure.retryable else 400)
    return vf.ToolsetError(text) if failure.boundary == "world" else vf.HarnessError(text)


def _result(trace: Any) -> Mapping[str, Any]:
    found = trace.state.result
    if found is None:
        raise RuntimeError("no conversation was played: these tasks need the harness muarl-verifiers")
    return found


def _seed(trace_id: str) -> int:
    return int.from_bytes(hashlib.sha256(trace_id.encode()).digest()[:4], "big")
