"""SkyRL-Gym's environment: texts give the same conversations as natively, limits end them, failures are no reward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("skyrl_gym", reason="skyrl-gym is not installed: pip install 'muarl[skyrl]'")

import skyrl_gym
from skyrl_gym.envs.registration import deregister

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.types.chat import Message
from muarl_integrations.skyrl_gym import MuarlTextEnv, register, rows, template_tools
from support.scripted_replies import Outcome, Replies, natively
from support.served import Users
from support.texts import WithUsers, as_text, read_back
from support.trainers import AS_NATIVELY, Told

ROW = {"task": "retail-generated:test:0", "seed": 3}


def played(env: MuarlTextEnv, texts: Sequence[str]) -> tuple[float, list[str]]:
    """What SkyRL's generator does with an environment: the sum of the rewards, and what the policy was shown."""
    prompt, _ = env.init([{"role": "user", "content": "stands in"}])
    assert prompt[0]["role"] == "system" and "<tools>" in prompt[0]["content"]
    shown, reward, done, left = [m["content"] for m in prompt[1:] if m["role"] != "assistant"], 0.0, False, list(texts)
    while not done:
        out = env.step(left.pop(0) if left else "Anything else?")
        shown += [m["content"] for m in out["observations"]]
        reward, done = reward + out["reward"], out["done"]
    assert all(isinstance(number, (int, float)) for number in env.get_metrics().values())
    env.close()
    return reward, shown


def compare(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **more: Any
) -> list[float | None]:
    """The rewards of the tasks, whose conversations were compared with native ones."""
    native = natively(environment, tasks, Replies(read_back(replies)), 3, **more)
    for task in tasks:
        env = skyrl_gym.make("muarl", env_config={}, extras={"task": str(task.origin.address), "seed": 3})
        assert isinstance(env, MuarlTextEnv)
        env._conversations = WithUsers(users=more.get("users"), own_judge=more.get("judge"))
        outcome = Outcome.of(native[task.id])
        texts = [as_text(m) for m in replies[task.id]]
        if outcome.stop == "infrastructure":
            with pytest.raises(InfrastructureError):
                played(env, texts)
            continue
        reward, shown = played(env, texts)
        assert env.result is not None and env.result.episode is not None
        assert Outcome.of(env.result.episode) == outcome and reward == outcome.reward
        said = [m.content for m in native[task.id].messages if m.role in ("user", "tool")
                and not m.tool_calls and not (m.role == "tool" and m.requestor == "user")]  # fmt: skip
        assert shown == said
    return [Outcome.of(episode).reward for episode in native.values()]


@pytest.fixture(autouse=True)
def registered() -> Any:
    register("muarl")
    yield
    deregister("muarl")


@AS_NATIVELY
def test_the_same_replies_give_the_same_as_natively(told: Told) -> None:
    told.check(Counter(compare(told.environment, told.tasks, told.replies, **told.means)))


def test_rows_name_tasks() -> None:
    made = rows("retail-generated", "test", 2, start=3)
    assert [row["task"] for row in made] == ["retail-generated:test:3", "retail-generated:test:4"]
    assert made[0]["env_class"] == "muarl" and made[0]["prompt"] == [{"role": "user", "content": made[0]["task"]}]


def test_limits_of_skyrl_end_a_conversation_with_0() -> None:
    env = MuarlTextEnv(extras={**ROW, "max_turns": 1})
    assert played(env, ["One moment."])[0] == 0.0
    assert env.turns == 1 and env.result is not None and env.result.stop == "turn_length"


def test_what_a_sampler_leaves_behind_a_reply_is_not_said() -> None:
    env = MuarlTextEnv(extras=ROW)
    played(env, ["<think>\nWell.\n</think>\n\nOne moment.<|im_end|>"])
    assert env.result is not None and env.result.episode is not None
    said = [m for m in env.result.episode.messages if m.role == "assistant" and m.content == "One moment."]
    assert said and said[0].reasoning == "Well."


def test_failures_are_raised_or_have_a_reward_of_their_own() -> None:
    wrong = InfrastructureError("the user's server is down", boundary="user")
    for users in (Users(wrong), Users("Hi.", wrong)):
        env = MuarlTextEnv(extras=ROW)
        env._conversations = WithUsers(users=users)
        with pytest.raises(InfrastructureError, match="the user's server is down"):
            played(env, ["Hello."])
        env = MuarlTextEnv(extras=ROW, failure_reward=0.5)
        env._conversations = WithUsers(users=users)
        assert played(env, ["Hello."])[0] == 0.5 and env.get_metrics()["failed"] == 1.0


def test_what_is_used_wrong_is_said() -> None:
    with pytest.raises(ConfigError, match="the row has no task"):
        MuarlTextEnv(extras={"seed": 1}).init([])
    with pytest.raises(ConfigError, match="call init"):
        MuarlTextEnv(extras=ROW).step("Hello.")


def test_tools_for_a_chat_template_are_those_of_the_tasks() -> None:
    env = MuarlTextEnv(extras=ROW, tools_in_prompt=False)
    prompt, _ = env.init([])
    assert "<tools>" not in prompt[0]["content"]
    assert env._session is not None and env._session.observation.openai_tools == template_tools("retail-generated")
    env.close()
