"""OpenEnv: the same conversations as natively, by steps, over its wire and by its harness; its own validator passes."""

from __future__ import annotations

import json
import pickle
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed")

from openenv.core.harness import HarnessRunLimits, MCPHarnessAdapter, ModelStepResult
from openenv.core.llm_client import LLMResponse
from openenv.core.llm_client import ToolCall as OpenEnvCall

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.seeds import derive_seed
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message, to_openai
from muarl_integrations.blocking import _loop
from muarl_integrations.openenv import ConversationObservation, CustomerEnvironment, SayAction, make_app
from muarl_integrations.openenv_sessions import TaskSessions, UserTurnHarness
from support.scripted_replies import Outcome, written
from support.trainers import AS_NATIVELY, GENERATED, BrokenUsers, Told, native_outcome, sayable


def action(message: Message) -> SayAction:
    sent = to_openai(message)
    return SayAction(content=sent["content"], tool_calls=sent.get("tool_calls", []))


def compare(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **played: Any
) -> Counter[float | None]:
    """How often each reward was given, in conversations that were compared with native ones."""
    served = CustomerEnvironment(environment.name, **played)
    rewards: Counter[float | None] = Counter()
    for number, task in enumerate(tasks):
        native = native_outcome(environment, task, replies, number, **played)
        assert task.origin is not None
        seen = served.reset(seed=number, task=str(task.origin.address))
        left = list(replies[task.id])
        while not seen.done:
            seen = served.step(action(left.pop(0) if left else Message("assistant", "Anything else?")))
        assert served._now is not None and served._now.session.episode is not None
        assert Outcome.of(served._now.session.episode) == native
        assert (seen.reward, seen.parts, seen.stop) == (native.reward, native.parts, native.stop)
        rewards[native.reward] += 1
    return rewards


@AS_NATIVELY
def test_steps_give_the_same_conversations_as_natively(told: Told) -> None:
    told.check(compare(told.environment, told.tasks, sayable(told.replies), **told.means))


class Reading:
    """A model step that says replies, with ids for each."""

    def __init__(self, replies: list[Message], user_tool: str | None = None) -> None:
        self.left, self.user_tool, self.prompts = list(replies), user_tool, []

    def __call__(self, messages: list[Any], tools: list[Any], sampling: dict[str, Any]) -> ModelStepResult:
        self.prompts.append(list(messages))
        message = self.left.pop(0) if self.left else Message("assistant", "Anything else?")
        calls = [OpenEnvCall(c.id, c.name, dict(c.arguments)) for c in message.tool_calls]
        text = message.content or ""
        if self.user_tool and not calls:
            calls, text = [OpenEnvCall("said", self.user_tool, {"message": text})], ""
        number = len(self.prompts)
        return ModelStepResult(LLMResponse(text, calls), [1] * number, [2, 3], [-0.5, -0.25])


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("user_tool", [None, "talk_to_user"])
def test_harnesses_give_the_same_conversations_as_natively(name: str, user_tool: str | None) -> None:
    environment = find(name)
    tasks = environment.make_tasks("test", 5)
    replies = sayable(written(environment, tasks))
    sessions = pickle.loads(pickle.dumps(TaskSessions(user_tool)))
    harness = UserTurnHarness() if user_tool is None else MCPHarnessAdapter()
    for number, task in enumerate(tasks):
        assert task.origin is not None
        native = native_outcome(environment, task, replies, derive_seed(0, number))
        session = sessions.create(str(task.origin.address), seed=number)
        step = Reading(replies[task.id], user_tool)
        played = harness.run_white_box(step, session, HarnessRunLimits(max_turns=200))
        found = session.verify(played.messages)
        assert played.done and found.env_reward == native.reward and found.metrics == native.parts
        assert found.artifacts == {"stop": native.stop, "failure": None}
        assert Outcome.of(session._led.session.episode) == native
        assert played.metrics["tool_calls"] == len(played.tool_trace)
        if user_tool is None:
            assert [m["role"] for m in step.prompts[0]] == ["system", "user"]
            turns = session.fetch_training_trace().turns
            assert len(turns) == len(step.prompts) and turns[1].loss_mask == [0, 0, 1, 1]
        session.close()


def test_a_harness_that_stops_early_gets_nothing() -> None:
    session = TaskSessions().create([{"role": "user", "content": "retail-generated:train:0"}])
    step = Reading([Message("assistant", "Hello?")])
    played = UserTurnHarness().run_white_box(step, session, HarnessRunLimits(max_turns=1))
    assert not played.done
    found = session.verify(played.messages)
    assert found.env_reward == 0.0 and found.artifacts["stop"] == "turn_length"
    with pytest.raises(NotImplementedError):
        UserTurnHarness().run_black_box(session)


def test_failures_are_no_rewards() -> None:
    away = CustomerEnvironment("retail-generated", users=BrokenUsers(1))
    assert not away.reset().done
    seen = away.step(SayAction(content="What is it?"))
    assert seen.done and seen.reward is None and seen.failure is not None and seen.failure["boundary"] == "user"
    session = TaskSessions(users=BrokenUsers(1)).create("retail-generated:train:0")
    UserTurnHarness().run_white_box(Reading([]), session)
    assert session.verify([]).env_reward is None
    with pytest.raises(InfrastructureError, match="no answer"):
        TaskSessions(users=BrokenUsers()).create("retail-generated:train:0")


def test_tasks_are_found_by_split_and_number() -> None:
    environment = CustomerEnvironment("retail-generated", announced=7)
    assert environment.list_splits() == list(find("retail-generated").splits)
    assert environment.num_tasks("test") == 7 and len(environment.list_tasks("test")) == 7
    assert [t["index"] for t in environment.get_task_range("test", 2, -2)] == [2, 3, 4]
    with pytest.raises(IndexError, match="no task number 7"):
        environment.get_task("test", 7)
    environment.reset(**{k: v for k, v in environment.get_task("test", 3).items() if k in ("split", "index")})
    state = environment.state
    assert state.task == "retail-generated:test:3" and not state.done and state.step_count == 0
    assert [m["role"] for m in state.messages] == ["system", "user"]
    environment.step(SayAction(content="Hello?"))
    assert environment.state.step_count == 1
    environment.close()


def test_what_cannot_be_played_is_refused() -> None:
    environment = CustomerEnvironment("retail-generated")
    with pytest.raises(RuntimeError, match="reset comes first"):
        environment.step(SayAction(content="Hello?"))
    with pytest.raises(ConfigError, match="is not of retail-generated"):
        environment.reset(task="airline-generated:test:0")
    with pytest.raises(ConfigError, match="must be the address"):
        TaskSessions().create(3)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """A server of the app on a free port."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    started = threading.Event()
    startup = server.startup

    async def noted(*given: Any, **named: Any) -> None:
        await startup(*given, **named)
        started.set()

    server.startup = noted  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


def test_its_validator_passes_and_its_client_plays() -> None:
    from openenv.cli._validation import validate_running_environment
    from openenv.core.generic_client import GenericEnvClient

    with serving(make_app("retail-generated")) as url:
        report = validate_running_environment(url)
        assert report["passed"], report["criteria"]
        with GenericEnvClient(base_url=url).sync() as client:
            first = client.reset(seed=3, split="test", index=2)
            assert not first.done and [m["role"] for m in first.observation["messages"]] == ["user"]
            done = client.step({"content": None, "stop": "turn_length"})
            assert done.done and done.reward == 0.0 and done.observation["stop"] == "turn_length"
            assert client.state()["task"] == "retail-generated:test:2"


def test_observations_say_what_came() -> None:
    seen = CustomerEnvironment("retail-generated").reset(seed=1)
    assert isinstance(seen, ConversationObservation) and seen.system and seen.tools
    assert seen.reward is None and seen.failure is None


def test_trl_leads_sessions_with_user_turns_and_learns_from_what_it_sampled() -> None:
    """TRL's own code for a rollout of AsyncGRPOTrainer, without its server: the replies are sampled elsewhere."""
    for package in ("trl", "datasets"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    from types import SimpleNamespace

    from accelerate import PartialState
    from trl.chat_template_utils import add_response_schema, qwen3_training_chat_template
    from trl.experimental.async_grpo.openenv_harness import _HarnessRolloutLoop

    from support.trl_runs import tokenizer_and_model

    PartialState()  # or accelerate's logger refuses to say anything
    environment = find("retail-generated")
    task = environment.make_tasks("test", 1)[0]
    replies = sayable(written(environment, [task]))
    native = native_outcome(environment, task, replies, derive_seed(0, 5))
    tokenizer = add_response_schema(tokenizer_and_model()[0])
    left = list(replies[task.id])

    async def sampled(prompt_ids: list[int]) -> tuple[list[int], list[float]]:
        ids = tokenizer.encode(_as_text(left.pop(0) if left else Message("assistant", "Anything else?")))
        return ids, [-0.5] * len(ids)

    rollouts: Any = object.__new__(_HarnessRolloutLoop)
    rollouts.__dict__.update(
        tokenizer=tokenizer,
        chat_template=qwen3_training_chat_template,
        chat_template_kwargs={"enable_thinking": False},
        _factory=TaskSessions(),
        _adapter=UserTurnHarness(),
        _limits=HarnessRunLimits(max_turns=60),
        _rollout_reward_fn=None,
        _fork_threshold_tokens=0,
        _live_sessions=set(),
        _stop_event=SimpleNamespace(is_set=lambda: False),
        _loop=_loop(),
        _generate_one_turn=sampled,
    )
    prompt = [{"role": "user", "content": "retail-generated:test:0"}]
    (messages, ids, sequences, calls, failures, reward), metrics = rollouts._run_session(prompt, 5)
    assert reward == native.reward and failures == 0 and not rollouts._live_sessions
    assert [m["content"] for m in messages if m["role"] in ("user", "tool")] == [
        text for role, text, _, _, whose in native.said if role == "user" or whose == "assistant"
    ]
    assert sum(m["role"] == "user" for m in messages) > 1 and calls == len(messages_with_calls(messages))
    (sequence,) = sequences
    learned = [i for i, mask in zip(sequence.input_ids, sequence.completion_mask, strict=True) if mask]
    assert learned == ids and metrics["turns"] == sum(m["role"] == "assistant" for m in messages)
    rollouts._factory = TaskSessions(users=BrokenUsers(1))
    left[:] = [Message("assistant", "What is it?")]
    assert rollouts._run_session(prompt, 5)[0][-1] is None
    rollouts._factory = TaskSessions(users=BrokenUsers())
    assert rollouts._run_session(prompt, 5) == (_HarnessRolloutLoop._EMPTY_ROLLOUT, None)


def messages_with_calls(messages: list[Any]) -> list[Any]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def _as_text(message: Message) -> str:
    """A reply as a Qwen3 model writes it."""
    calls = [json.dumps({"name": call.name, "arguments": dict(call.arguments)}) for call in message.tool_calls]
    return (message.content or "") + "\n".join(f"<tool_call>\n{c}\n</tool_call>" for c in calls) + "<|im_end|>"
