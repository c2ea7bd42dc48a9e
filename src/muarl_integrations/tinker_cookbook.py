"""tinker-cookbook: conversations with muarl's user as message environments, in groups and data sets for its recipes.

from tinker_cookbook.rl import train
builder = MuarlDatasetBuilder(environment="retail-generated", model_name_for_tokenizer=..., batch_size=16, ...)
config = train.Config(dataset_builder=builder, rollout_error_tolerance=True, ...)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from muarl.basics.extras import missing_extra
from muarl.environments.registry import load_environment
from muarl.environments.results import PlayResult
from muarl.environments.session import Session
from muarl.types.chat import Message, ToolCall
from muarl_integrations.conversations import Conversations
from muarl_integrations.spoken import read_hermes, read_parsed

try:
    from tinker_cookbook import model_info, renderers, tokenizer_utils
    from tinker_cookbook.renderers.base import get_text_content
    from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
    from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StopReason
except ImportError as problem:
    raise missing_extra(problem, "muarl_integrations.tinker_cookbook") or problem from None

import chz

_STOPS = {"max_turns": StopReason.MAX_TURNS, "user_stop": StopReason.COMPLETED, "transfer": StopReason.COMPLETED}
"""Why a conversation ended, in tinker-cookbook's words."""


class MuarlMessageEnv(MessageEnv):
    """One conversation. ``row``: ``task``, the address of a task, and ``seed`` and ``user_seed`` where they are to be
    fixed. ``renderer``: of the policy's family; it puts the tools into the prompt.

    What fails outside the policy is raised, and tinker-cookbook's rollout strategy retries it, or drops the group.
    """

    def __init__(self, row: Mapping[str, Any], conversations: Conversations, renderer: Any) -> None:
        self.example_id = str(row["task"])
        self._row, self._conversations, self._renderer = row, conversations, renderer
        self._stack = AsyncExitStack()
        self._session: Session | None = None
        self._messages: list[Any] = []

    async def initial_observation(self) -> list[Any]:
        """Begin: system prompt, tools and the user's first message."""
        self._session = await self._stack.enter_async_context(self._conversations.session(self._row))
        await self._raise_failure()
        seen = self._session.observation
        tools = [tool["function"] for tool in seen.openai_tools]
        first = [{"role": "system", "content": seen.system}] if seen.system else []
        prefix = self._renderer.create_conversation_prefix_with_tools(tools, seen.system) if tools else first
        self._messages = [*prefix, *map(_shown, seen.openai_messages)]
        return list(self._messages)

    async def step(self, message: Any) -> MessageStepResult:
        """Say the policy's message: the conversation so far, with results of its calls or the user's answer. The
        reward comes with the end."""
        session = self._session
        assert session is not None, "initial_observation begins the conversation"
        turn = sum(m["role"] == "assistant" for m in self._messages)
        await session.step(_said(message, turn))
        await self._raise_failure()
        self._messages += [_as_written(message), *map(_shown, session.observation.openai_messages)]
        result = self.result
        reward = 0.0 if result is None or result.reward is None else result.reward
        return MessageStepResult(reward, session.done, list(self._messages), _metrics(result))

    @property
    def result(self) -> PlayResult | None:
        """What became of the conversation; None before it is over."""
        session = self._session
        return None if session is None or session.episode is None else self._conversations.counted(session.result)

    async def aclose(self) -> None:
        """End the conversation where it still runs. Harmless afterwards."""
        await self._stack.aclose()

    async def _raise_failure(self) -> None:
        if self.result is not None and self.result.failure is not None:
            await self.aclose()
            raise self.result.failure.error()


class MuarlGroupBuilder(EnvGroupBuilder):
    """``group_size`` conversations about one task. The renderer is made where they are played, by the model's name, so
    that builders can be pickled."""

    def __init__(
        self,
        row: Mapping[str, Any],
        group_size: int,
        model_name: str,
        renderer_name: str | None = None,
        conversations: Conversations | None = None,
        max_trajectory_tokens: int | None = None,
        max_generation_tokens: int | None = None,
    ) -> None:
        self.row, self.group_size = dict(row), group_size
        self.model_name, self.renderer_name = model_name, renderer_name
        self.conversations = conversations or Conversations()
        self.limits = {"max_trajectory_tokens": max_trajectory_tokens, "max_generation_tokens": max_generation_tokens}
        self._made: list[MuarlMessageEnv] = []

    async def make_envs(self) -> Sequence[Any]:
        """The environments. What a limit cuts has reward 0, as everywhere in muarl."""
        name = self.renderer_name or model_info.get_recommended_renderer_name(self.model_name)
        renderer = renderers.get_renderer(name, tokenizer_utils.get_tokenizer(self.model_name))
        made = [MuarlMessageEnv(self.row, self.conversations, renderer) for _ in range(self.group_size)]
        self._made += made
        return [
            EnvFromMessageEnv(renderer, env, failed_parse_reward=0.0, context_overflow_reward=0.0, **self.limits)
            for env in made
        ]

    async def cleanup(self) -> None:
        """End the conversations that still run."""
        while self._made:
            await self._made.pop().aclose()

    def logging_tags(self) -> list[str]:
        """The environment's name."""
        return [str(self.row["task"]).partition(":")[0]]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": []}


class MuarlDataset(RLDataset):
    """Groups of tasks in batches; what does not fill a batch is left out."""

    def __init__(self, builders: Sequence[MuarlGroupBuilder], batch_size: int) -> None:
        self.builders, self.batch_size = list(builders), batch_size

    def get_batch(self, index: int) -> Sequence[MuarlGroupBuilder]:
        """The builders of a batch."""
        return self.builders[index * self.batch_size : (index + 1) * self.batch_size]

    def __len__(self) -> int:
        return len(self.builders) // self.batch_size


@chz.chz
class MuarlDatasetBuilder(RLDatasetBuilder):
    """``count`` tasks of an environment's ``split`` to learn from, ``test_count`` of ``test_split`` to test with; of a
    ``size`` (None: the smallest) and, if generated, a ``seed``. ``user``, ``judge``, ``void_is_zero``: see
    ``Conversations``."""

    environment: str
    model_name_for_tokenizer: str
    batch_size: int
    group_size: int
    renderer_name: str | None = None
    split: str = "train"
    count: int = 1024
    test_split: str = "test"
    test_count: int = 0
    size: str | None = None
    seed: int = 0
    user: str = "agenda"
    judge: str | None = None
    void_is_zero: bool = False
    max_trajectory_tokens: int | None = None
    max_generation_tokens: int | None = None

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        """The data sets. ConfigError for an environment, a split or a size that there is not."""
        test = None if not self.test_count else MuarlDataset(self._builders(self.test_split, self.test_count, 1), 1)
        return MuarlDataset(self._builders(self.split, self.count, self.group_size), self.batch_size), test

    def _builders(self, split: str, count: int, group_size: int) -> list[MuarlGroupBuilder]:
        tasks = load_environment(self.environment).make_tasks(split, count, size=self.size, seed=self.seed)
        conversations = Conversations(user=self.user, judge=self.judge, void_is_zero=self.void_is_zero)
        return [
            MuarlGroupBuilder(
                {"task": str(task.origin.address)},
                group_size,
                self.model_name_for_tokenizer,
                self.renderer_name,
                conversations,
                self.max_trajectory_tokens,
                self.max_generation_tokens,
            )
            for task in tasks
            if task.origin is not None
        ]


def _said(message: Mapping[str, Any], turn: int) -> Message:
    """A message of tinker-cookbook's as muarl's. Calls that its renderer could not read come last."""
    content = message["content"]
    thoughts = [] if isinstance(content, str) else [p["thinking"] for p in content if p["type"] == "thinking"]
    calls = [(call.function.name, call.function.arguments) for call in message.get("tool_calls") or ()]
    said = read_parsed(get_text_content(message), calls, turn)
    broken = [
        _broken(b, f"call_{turn}_{len(calls) + n}") for n, b in enumerate(message.get("unparsed_tool_calls") or ())
    ]
    thought = "".join(thoughts) or said.reasoning
    return Message("assistant", said.content, (*said.tool_calls, *broken), reasoning=thought)


def _broken(call: Any, call_id: str) -> ToolCall:
    """A call that could not be read; why, in muarl's words where it is a Hermes call."""
    found = read_hermes(call.raw_text, 0).tool_calls
    reason = found[0].invalid if len(found) == 1 else None
    return ToolCall(call_id, found[0].name if found else "", invalid=reason or call.error, raw=call.raw_text)


def _as_written(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as history. Renderers leave out calls that could not be read, so their text is put back."""
    broken = "".join(call.raw_text for call in message.get("unparsed_tool_calls") or ())
    if not broken:
        return dict(message)
    content = message["content"]
    content = content if isinstance(content, str) and broken in content else [*_parts(content), _text(broken)]
    return {name: v for name, v in {**message, "content": content}.items() if name != "unparsed_tool_calls"}


def _parts(content: Any) -> list[Any]:
    return ([_text(content)] if content else []) if isinstance(content, str) else list(content)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "content": message["content"] or ""}


def _metrics(result: PlayResult | None) -> dict[str, float]:
    if result is None:
        return {}
    reason = _STOPS.get(result.stop.value)
    return {**dict(result.parts), **({} if reason is None else {f"{STOP_METRIC_PREFIX}{reason}": 1.0})}
