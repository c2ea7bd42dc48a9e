"""SkyRL: an environment of SkyRL-Gym, text in and text out, over a conversation with muarl's user.

    from muarl_integrations import skyrl_gym
    skyrl_gym.register("muarl", user="endpoint:MODEL@http://127.0.0.1:8000/v1")

Rows of the data set (``rows``) have ``env_class`` "muarl" and ``task``, the address of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.extras import missing_extra
from muarl.environments.registry import load_environment
from muarl.environments.results import PlayResult, tools_json
from muarl.environments.session import Session
from muarl.types.chat import Message
from muarl_integrations.blocking import run
from muarl_integrations.conversations import Conversations
from muarl_integrations.hermes import read_text, tools_prompt

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as problem:
    raise missing_extra(problem, "muarl_integrations.skyrl_gym") or problem from None


def register(name: str = "muarl", **settings: Any) -> None:
    """Make the environment known to SkyRL-Gym. ``settings``: those of ``MuarlTextEnv``, as plain values.

    Call it in the process that generates: SkyRL's own examples register in the remote function that trains.
    """
    skyrl_gym.register(id=name, entry_point="muarl_integrations.skyrl_gym:MuarlTextEnv", kwargs=settings)


def rows(
    environment: str, split: str, count: int, *, start: int = 0, size: str | None = None, seed: int = 0,
    name: str = "muarl",
) -> list[dict[str, Any]]:  # fmt: skip
    """Rows of a data set, one a task. Their ``prompt`` stands in for the one that ``init`` gives, which has the words
    that a user begins with. ``name``: as registered. ConfigError for an environment, a split or a size that there is
    not."""
    made = load_environment(environment).make_tasks(split, count, size=size, seed=seed, start=start)
    addresses = [str(task.origin.address) for task in made if task.origin is not None]
    return [{"prompt": [{"role": "user", "content": a}], "env_class": name, "task": a} for a in addresses]


def template_tools(environment: str, size: str | None = None) -> list[dict[str, Any]]:
    """The tools of an environment's tasks in OpenAI's form, for ``generator.chat_template_kwargs.tools``."""
    place = load_environment(environment).place(size)
    return tools_json(place.tools(place.example_task("train")))


class MuarlTextEnv(BaseTextEnv):
    """One conversation: ``init`` begins it, ``step`` says the policy's text, with the tool calls in it.

    ``extras``: a row's further columns: ``task``, and ``seed`` and ``user_seed`` where they are to be fixed;
    ``max_turns``, SkyRL's limit. ``user``, ``judge``, ``void_is_zero``: see ``Conversations``. ``checkpoint``: whose
    chat format the texts have, a folder or a name on Hugging Face's hub; None: Hermes, JSON in ``<tool_call>``.
    ``tools_in_prompt``: whether the system prompt says in Hermes' form which tools there are; False where the chat
    template is given them (``template_tools``).

    SkyRL ends the training where an environment raises, as it does if something outside the policy fails.
    ``failure_reward``: what such a conversation gets instead, None to raise.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        user: str = "agenda",
        judge: str | None = None,
        void_is_zero: bool = False,
        checkpoint: str | None = None,
        tools_in_prompt: bool = True,
        failure_reward: float | None = None,
    ) -> None:
        super().__init__()
        self._row = dict(extras or {})
        self._conversations = Conversations(user=user, judge=judge, void_is_zero=void_is_zero)
        self._checkpoint, self._tools_in_prompt, self._failure_reward = checkpoint, tools_in_prompt, failure_reward
        self.max_turns = self._row.get("max_turns") or 0
        self._stack = AsyncExitStack()
        self._session: Session | None = None

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The first prompt, in place of the row's: system prompt, tools and the user's first message."""
        self._session = run(self._stack.enter_async_context(self._conversations.session(self._row)))
        seen = self._session.observation
        self._raise_failure()
        system = tools_prompt(seen.system, seen.tools) if self._tools_in_prompt else seen.system
        first = [{"role": "system", "content": system}] if system else []
        return [*first, *seen.openai_messages], {"task": self._row["task"]}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Say what the policy wrote: results of its calls, or the user's answer. The reward comes with the end."""
        session = self._opened()
        self.turns += 1
        if not session.done:  # it is, if the user failed at once
            run(session.step(self._read(action)))
        seen = session.observation
        if self.max_turns and self.turns >= self.max_turns and not session.done:
            run(session.step("", stop="turn_length"))  # nobody hears what the policy would say next
        self._raise_failure()
        result = self.result
        return BaseTextEnvStepOutput(
            observations=seen.openai_messages,
            reward=self._reward(result) if result is not None else 0.0,
            done=session.done,
            metadata={} if result is None else {"stop": result.stop.value, "parts": dict(result.parts)},
        )

    @property
    def result(self) -> PlayResult | None:
        """What became of the conversation; None before it is over."""
        session = self._opened()
        return self._conversations.counted(session.result) if session.done else None

    def get_metrics(self) -> dict[str, Any]:
        """How the conversation ended, as numbers that SkyRL averages: ``failed``, ``turns`` and the reward's parts."""
        result = self.result
        failed = result is not None and result.failure is not None
        return {"turns": self.turns, "failed": float(failed), **({} if result is None else result.parts)}

    def close(self) -> None:
        """End the conversation where it still runs. Harmless afterwards."""
        run(self._stack.aclose())

    def _read(self, action: str) -> Message:
        return read_text(action, self.turns, self._opened().observation.tools, self._checkpoint)

    def _opened(self) -> Session:
        if self._session is None:
            raise ConfigError("the conversation has not begun: call init")
        return self._session

    def _reward(self, result: PlayResult) -> float:
        if result.reward is not None:
            return result.reward
        assert self._failure_reward is not None
        return self._failure_reward

    def _raise_failure(self) -> None:
        result = self.result
        if result is not None and result.failure is not None and self._failure_reward is None:
            self.close()
            raise result.failure.error()
