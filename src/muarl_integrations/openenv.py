"""muarl's environments as OpenEnv environments: reset, step and state, and tasks by split and number.

    app = make_app("retail-generated")          # serve it: uvicorn shop:app

An action is what the agent says next; an observation has what came of it. ``openenv_sessions`` has OpenEnv's other
interface, of sessions that a harness leads.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.environments.environment import Environment
from muarl.environments.registry import load_environment
from muarl.environments.session import Session
from muarl.environments.task_addresses import TaskAddress
from muarl_integrations.blocking import close_with, opened, submit

require("openenv", "muarl_integrations.openenv")

from openenv.core.env_server import Action, Observation, State, create_app
from openenv.core.env_server.interfaces import Environment as OpenEnvironment
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field


class SayAction(Action):
    """The agent's next message. ``tool_calls``: in the form of OpenAI's chat API. ``stop``: "turn_length" or
    "context_full" where a limit of the trainer's cut the message, which ends the conversation."""

    content: str | None = None
    tool_calls: list[dict[str, Any]] = Field(default_factory=list)
    stop: str | None = None


class ConversationObservation(Observation):
    """What came since the agent's last message, in the form of OpenAI's chat API.

    At the end ``reward`` is set; it is None where something outside the policy failed, and ``failure`` then says whose
    failure it was. ``parts``: of the reward; ``stop``: why the conversation ended.
    """

    messages: list[dict[str, Any]] = Field(default_factory=list)
    system: str = ""
    tools: list[dict[str, Any]] = Field(default_factory=list)
    parts: dict[str, float] = Field(default_factory=dict)
    failure: dict[str, Any] | None = None
    stop: str | None = None


class ConversationState(State):
    """``task``: its address; ``messages``: the conversation so far, as the agent sees it."""

    task: str = ""
    done: bool = False
    messages: list[dict[str, Any]] = Field(default_factory=list)


@dataclass
class _Conversation:
    session: Session
    episode_id: str | None
    steps: int = 0


class CustomerEnvironment(OpenEnvironment[SayAction, ConversationObservation, ConversationState]):
    """Conversations with an environment's customers, one after another, and its tasks (OpenEnv's ``TaskProvider``).

    ``environment``: its name, as `muarl domains` lists it, or FILE.py:NAME. ``announced``: how many tasks of a split
    are said to be there where they have no end. ``retries``: how often a conversation is begun anew whose customer
    failed before the agent had said anything. ``options``: see ``Environment.start``.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        environment: str,
        *,
        split: str = "train",
        size: str | None = None,
        announced: int = 1000,
        retries: int = 2,
        **options: Any,
    ) -> None:
        super().__init__()
        self._environment: Environment = load_environment(environment)
        self._split, self._size, self._announced = split, size, announced
        self._retries, self._options = retries, options
        self._now: _Conversation | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        split: str | None = None,
        index: int = 0,
        task: str | None = None,
        **kwargs: Any,
    ) -> ConversationObservation:
        """Begin the conversation about task ``index`` of a split, or about the one at the address ``task``."""
        return self._begin(seed, episode_id, split, index, task).result()

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        split: str | None = None,
        index: int = 0,
        task: str | None = None,
        **kwargs: Any,
    ) -> ConversationObservation:
        """The same for servers."""
        return await asyncio.wrap_future(self._begin(seed, episode_id, split, index, task))

    def step(self, action: SayAction, timeout_s: float | None = None, **kwargs: Any) -> ConversationObservation:
        """Say the agent's next message. RuntimeError where it is not its turn."""
        return submit(self._say(action)).result(timeout_s)

    async def step_async(
        self, action: SayAction, timeout_s: float | None = None, **kwargs: Any
    ) -> ConversationObservation:
        """The same for servers."""
        return await asyncio.wait_for(asyncio.wrap_future(submit(self._say(action))), timeout_s)

    @property
    def state(self) -> ConversationState:
        """Where the conversation stands."""
        now = self._now
        if now is None:
            return ConversationState()
        session = now.session
        address = "" if session.task.origin is None else str(session.task.origin.address)
        return ConversationState(
            episode_id=now.episode_id,
            step_count=now.steps,
            task=address,
            done=session.done,
            messages=session.messages,
        )

    def close(self) -> None:
        """End the conversation where it still runs."""
        if self._now is not None and not self._now.session.done:
            submit(self._now.session.aclose()).result()

    def get_metadata(self) -> EnvironmentMetadata:
        """What it is."""
        about = self._environment.about or f"{self._environment.name}: a customer-service agent's conversations"
        return EnvironmentMetadata(name=self._environment.name, description=about)

    # tasks

    def list_splits(self) -> list[str]:
        """The names of the splits."""
        return list(self._environment.splits)

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has; ``announced`` where they have no end."""
        self._environment.check_split(split)
        return self._announced if self._environment.endless else len(self._environment.fixed_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One task: where it is found. IndexError where there is none."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"the split {split} of {self._environment.name} has no task number {index}")
        address = TaskAddress(self._environment.name, split, index, self._size)
        return {"id": str(address), "task": str(address), "split": split, "index": index}

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """All tasks of a split."""
        return self.get_task_range(split)

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Tasks by number, as slices count."""
        return [self.get_task(split, index) for index in range(*slice(start, stop).indices(self.num_tasks(split)))]

    def _begin(
        self, seed: int | None, episode_id: str | None, split: str | None, index: int, task: str | None
    ) -> Future[ConversationObservation]:
        if task is None:
            task = str(TaskAddress(self._environment.name, split or self._split, index, self._size))
        elif TaskAddress.parse(task).environment != self._environment.name:
            raise ConfigError(f"task: {task} is not of {self._environment.name}, which is played here")
        self.close()
        return submit(self._open(task, seed or 0, episode_id))

    async def _open(self, task: str, seed: int, episode_id: str | None) -> ConversationObservation:
        session = await opened(task, retries=self._retries, seed=seed, **self._options)
        close_with(self, session)
        self._now = _Conversation(session, episode_id)
        return self._seen()

    async def _say(self, action: SayAction) -> ConversationObservation:
        if self._now is None:
            raise RuntimeError("the conversation has not begun: reset comes first")
        said = {"role": "assistant", "content": action.content, "tool_calls": action.tool_calls}
        await self._now.session.step(said, stop=action.stop)
        self._now.steps += 1
        return self._seen()

    def _seen(self) -> ConversationObservation:
        assert self._now is not None
        session = self._now.session
        seen = session.observation
        found = ConversationObservation(
            done=seen.done, messages=seen.openai_messages, system=seen.system, tools=seen.openai_tools
        )
        if seen.done:
            result = session.result
            found.reward, found.parts, found.stop = result.reward, dict(result.parts), result.stop.value
            found.failure = None if result.failure is None else result.failure.to_json()
        return found


def make_app(environment: str, *, conversations: int = 256, **options: Any) -> Any:
    """OpenEnv's server of an environment, as an ASGI app. ``conversations``: at most so many at once. ``options``: see
    ``CustomerEnvironment``."""
    factory = partial(CustomerEnvironment, environment, **options)
    factory()  # what is wrong with the options is said at once
    return create_app(
        factory,
        SayAction,
        ConversationObservation,
        env_name=load_environment(environment).name,
        max_concurrent_envs=conversations,
        state_cls=ConversationState,
    )
