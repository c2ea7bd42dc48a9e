"""TRL's ``environment_factory``: a domain's tools as methods, and the customer as one more tool.

    shop = UserAsTool("retail-generated")
    trainer = GRPOTrainer(..., train_dataset=Dataset.from_list(shop.rows("train", 1000)), environment_factory=shop)

TRL's tool loop knows no user turns. ``trl_rollouts`` has conversations with real ones.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.basics.seeds import derive_seed
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.place import Place
from muarl.environments.registry import load_environment
from muarl.environments.results import PlayResult, conversation_json
from muarl.environments.session import Observation
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import agent_view
from muarl.rollouts.rules import Limits
from muarl.types.chat import Message, ToolCall
from muarl.users.base import UserFactory
from muarl_integrations.blocking import OVER, BlockingSession, talk_tool
from muarl_integrations.function_schemas import as_method

require("trl", "muarl_integrations.trl")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UserAsTool:
    """An ``environment_factory`` for TRL's trainers: calling it makes one rollout's environment.

    ``environment``: its name, as `muarl domains` lists it, or FILE.py:NAME. ``user_tool``: the name of the tool that
    speaks to the customer. ``users``, ``limits``, ``judge``: as for ``muarl.play``. ``seed``: what the customers'
    randomness follows from; every rollout has its own. ``retries``: how often a conversation is begun anew whose
    customer failed before the policy had said anything.

    A conversation that something outside the policy broke has no reward (None), and TRL leaves it out of its group:
    its advantage is 0, and the others are compared without it; a warning says what happened. ``raise_failures``: the
    training ends with the failure instead.
    """

    environment: str
    size: str | None = None
    user_tool: str = "talk_to_user"
    users: UserFactory | Endpoint | None = None
    limits: Limits | None = None
    judge: Judge | None = None
    seed: int = 0
    retries: int = 2
    raise_failures: bool = False
    _made: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self) -> LedByTools:
        """The environment of one rollout after another."""
        self._made.append(len(self._made))
        return _class(self.environment, self.size, self.user_tool)(self, self._made[-1])

    def rows(self, split: str, count: int, *, start: int = 0, seed: int = 0) -> list[dict[str, Any]]:
        """Rows of a data set, one a task: ``prompt``, without the customer's first message, which comes with the
        conversation; ``task``, its address; ``environment``, which says to TRL whose tools a row has where there are
        several. ``seed``: of generated tasks. ConfigError for tasks that cannot begin in this form."""
        environment = load_environment(self.environment)
        place = environment.place(self.size, limits=self.limits, judge=self.judge, mode=_mode(environment))
        tasks = environment.make_tasks(split, count, size=self.size, seed=seed, start=start)
        assert all(task.origin is not None for task in tasks)
        return [
            {"prompt": _prompt(place, t), "task": str(t.origin.address), "environment": environment.name} for t in tasks
        ]


class LedByTools:
    """What TRL calls an environment: ``reset`` begins a conversation, ``get_reward`` ends it; tools are methods of the
    classes that are made of this one."""

    offered: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, settings: UserAsTool, number: int) -> None:
        self._settings, self._number = settings, number
        self._resets = self._calls = 0
        self._led: BlockingSession | None = None

    def reset(self, task: str | None = None, **row: Any) -> str:
        """Begin the conversation about the task at an address, and give the customer's first message."""
        if task is None:
            raise ConfigError("the data set has no column 'task' with addresses of tasks: take UserAsTool.rows")
        self._end()
        s = self._settings
        self._resets, self._calls = self._resets + 1, 0
        seed = derive_seed(s.seed, self._number, self._resets)
        self._led = BlockingSession(task, retries=s.retries, seed=seed, users=s.users, limits=s.limits, judge=s.judge)
        seen = self._led.session.observation
        strange = self.offered ^ {tool.name for tool in seen.tools}
        if strange and self.result is None:
            raise ConfigError(
                f"task {task} has other tools than {s.environment} usually has ({min(strange)}), and TRL "
                "gives all tasks of an environment the same: use muarl_integrations.trl_rollouts"
            )
        return (seen.messages[-1].content or "") if seen.messages else ""

    def get_reward(self) -> float | None:
        """The reward; None where something outside the policy failed. See ``BlockingSession.finish``."""
        assert self._led is not None
        result = self._led.finish()
        failure = result.failure
        if failure is not None and self._settings.raise_failures:
            raise failure.error()
        if failure is not None:
            log.warning("task %s has no reward: %s", result.task_id, failure.text)
        return result.reward

    @property
    def result(self) -> PlayResult | None:
        """What became of the conversation: for reward functions of one's own. None before it is over."""
        led = self._led
        return led.session.result if led is not None and led.session.done else None

    def _say(self, _: str, arguments: Mapping[str, Any]) -> str:
        """The tool that speaks to the customer."""
        text = arguments.get("message")
        if not isinstance(text, str) or len(arguments) != 1:
            return "Error: give one argument, message, a text"
        return self._step(Message("assistant", text))

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A tool of the domain."""
        self._calls += 1
        return self._step(Message("assistant", None, (ToolCall(f"call_{self._calls}", name, arguments),)))

    def _step(self, message: Message) -> str:
        if self._led is None or not self._led.session.waiting:
            return OVER
        return _read(self._led.step(message))

    def _end(self) -> None:
        if self._led is not None:
            self._led.close()


def _read(seen: Observation) -> str:
    """What came of a message, as the result of a tool."""
    texts = [message.content or "" for message in seen.messages]
    return "\n".join([*texts, OVER] if seen.done else texts)


def _prompt(place: Place, task: Task) -> list[dict[str, Any]]:
    """What a conversation begins with, up to a message of the customer's that is still empty."""
    before, first = place.rules.opening(task)
    seen = agent_view(before, place.rules)
    if first == "assistant" and seen[-1].role != "user":
        raise ConfigError(f"task {task.id} begins with results of tools, which UserAsTool cannot show")
    if first == "assistant":
        seen = seen[:-1]
    return [*conversation_json(place.system_prompt(task), seen), {"role": "user", "content": ""}]


@lru_cache(maxsize=64)
def _class(name: str, size: str | None, user_tool: str) -> type[LedByTools]:
    """The environment's class, whose methods are its tools."""
    environment = load_environment(name)
    place = environment.place(size, mode=_mode(environment))
    specs = list(place.tools(environment.task(environment.splits[0], 0, size=size)))
    taken = {"reset", "get_reward", "result", "offered"}
    for spec in specs:
        if spec.name in taken | {user_tool}:
            raise ConfigError(f"{environment.name} has a tool {spec.name}, a name that TRL or user_tool needs")
    methods = {spec.name: as_method(spec, LedByTools._call) for spec in specs}
    methods[user_tool] = as_method(talk_tool(user_tool), LedByTools._say)
    name = "".join(part.title() for part in environment.name.split("-"))
    return type(name, (LedByTools,), {**methods, "offered": frozenset(spec.name for spec in specs)})


def _mode(environment: Any) -> str:
    return "native" if environment.is_benchmark else "auto"
