"""How ACEBench's agent tasks are played (ACEBench/ACEBench, MIT licence).

In words ("text") everything is upstream's: the agent is shown the whole conversation anew at each turn, and writes its
calls as a list. Upstream has a path for models behind an API and one for models on its own machine; "text" is the
second, and "text-api" the first, which forgets the language in multi-step tasks, so that the prompts of English ones
are Chinese. By function calling ("native") the defects are repaired: real error texts, checked arguments, fixed
scores; that is also how a policy is trained.

Upstream also ends a conversation where a tool's result is the phrase that ends one. None of its tools has such a
result, so there is no rule for that here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.prompted import Codec, PromptedAgent
from muarl.basics.errors import ConfigError
from muarl.domains.base import Semantics, World
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.benchmark import Benchmark, BenchmarkPlace, Mode
from muarl.rewards.judge import Judge
from muarl.rollouts.rules import LenientRules, Limits, Rules
from muarl.types.chat import STOP_WORDS, Message
from muarl.types.episode import Episode, StopReason, Verdict
from muarl.users.base import User, UserFactory, UserTurn
from muarl.users.llm import PromptedUser
from muarl_worlds.acebench.execute import NO_QUESTIONS
from muarl_worlds.acebench.official.prompts import FIRST_STOP, MESSAGES, OPENING, STOP
from muarl_worlds.acebench.scenario import Language


class AceRules(LenientRules):
    """A stop word of either side ends the conversation, but not in its first messages."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """A stop word counts beside calls too, which are then not run."""
        message, stop = super().read_agent(message, stop, steps)
        if stop is None and steps > FIRST_STOP and any(word in (message.content or "") for word in self.stop_words):
            stop = StopReason.AGENT_STOP
        return message, stop

    def user_stops(self, message: Message, steps: int, spoken: int) -> bool:
        """By a stop word."""
        return steps > FIRST_STOP and super().user_stops(message, steps, spoken)


class AceOfficial(BenchmarkPlace):
    """ACEBench's agent tasks in one language."""

    modes: ClassVar[tuple[Mode, ...]] = ("text", "native", "text-api")
    sampled_mode: ClassVar[Mode] = "text"
    training_mode: ClassVar[Mode] = "native"
    temperature: ClassVar[float] = 0.001
    user_temperature: ClassVar[float | None] = 0.001
    max_tokens: ClassVar[int | None] = 1000
    scores_cut: ClassVar[bool] = True
    own_score: ClassVar[bool] = True
    """The fixed score, in training too."""
    fixed_users: ClassVar[bool] = True
    """Its users are prompted to end with a phrase of their own, and half of its tasks have none."""

    @property
    def language(self) -> Language:
        """The language of the tasks."""
        return cast(Language, self.benchmark.own_name)

    @classmethod
    def semantics_of(cls, mode: Mode) -> Semantics:
        """Upstream's in words, the repaired ones by function calling."""
        return "fixed" if mode == "native" else "official"

    @classmethod
    def rules_of(cls, benchmark: Benchmark, mode: Mode, *, solo: bool = False) -> Rules:
        """A phrase of either side ends the conversation, but for its first messages."""
        opening = OPENING[cast(Language, benchmark.own_name)]
        return AceRules(opening, greeting_in_context=False, stop_words=(STOP, *STOP_WORDS[:1]))

    @classmethod
    def training_rules_of(cls, benchmark: Benchmark) -> Rules:
        """The same."""
        return cls.rules_of(benchmark, cls.training_mode)

    @classmethod
    def limits_of(cls, benchmark: Benchmark, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Messages of all sides; the user's first does not count."""
        return Limits(turns=None, tool_errors=errors, user_calls=None, steps=1 + (steps or MESSAGES))

    @classmethod
    def training_limits_of(cls, benchmark: Benchmark, configured: Limits) -> Limits:
        """The same."""
        return cls.limits_of(benchmark)

    @classmethod
    def needs_user_model(cls, split: str) -> bool:
        """Multi-turn tasks do."""
        return split != "multi_step"

    def own_prompt(self, task: Task) -> str:
        """The policy. In words, upstream's agent of multi-step tasks has none."""
        if self.mode != "native" and task.tags["category"] == "multi_step":
            return ""
        return self.domain.policy_for(task)

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """A model behind an endpoint."""
        return self.sampled_agent(EndpointAgent(endpoint, send_seed=False, keep_cut=True))

    def sampled_agent(self, agent: Agent) -> Agent:
        """A checkpoint, or any other agent."""
        if self.mode == "native":
            return agent
        return PromptedAgent(agent, self._codec)

    def _codec(self, system: str) -> Codec:
        """The codec of a task by its policy, of which multi-step tasks have none."""
        module = self.benchmark.module
        if system:
            found: Codec = module.TextCodec(self.language, "multi_turn")
        else:
            forgotten: Language | None = "zh" if self.mode == "text-api" else None
            found = module.TextCodec(self.language, "multi_step", prompt_language=forgotten)
        return found

    def own_users(self, model: Callable[[], Endpoint] | None) -> UserFactory:
        """A model in multi-turn tasks; in multi-step ones somebody who tells the task and answers no questions."""
        return _Users(self.benchmark.module, None if model is None else model())

    async def official_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """End-to-end accuracy; process accuracy stands in the audit."""
        found: Verdict = self.benchmark.module.score(task, world, episode)
        return found

    async def untouched(self, task: Task) -> Verdict:
        """The verdict on an untouched world."""
        found: Verdict = self.benchmark.module.do_nothing(self.domain, task)
        return found

    def figures(self, episodes: Sequence[Episode]) -> Mapping[str, float]:
        """End-to-end and process accuracy by category, as upstream rounds them, and the fixed ones."""
        found: Mapping[str, float] = self.benchmark.module.summary(episodes)
        return found


def _module() -> Any:
    """The benchmark's module, whose import takes a while."""
    from muarl_worlds.acebench import official

    return official


def acebench(language: Language) -> Benchmark:
    """ACEBench in a language: "en" or "zh". All there is may be trained on."""
    return Benchmark(
        family="acebench",
        own_name=language,
        place=AceOfficial,
        load=_module,
        task_domain="acebench",
        splits=("test", "multi_turn", "multi_step"),
        training_split="test",
    )


class _Users:
    """ACEBench's users."""

    def __init__(self, module: Any, endpoint: Endpoint | None) -> None:
        self._module, self.endpoint = module, endpoint
        self.name = "told once" if endpoint is None else f"llm:{endpoint.model} (ACEBench's prompts)"

    async def aclose(self) -> None:
        """Close the model's connections."""
        if self.endpoint is not None:
            await self.endpoint.aclose()

    def __call__(self, task: Task, *, seed: int) -> User:
        if task.tags["category"] == "multi_step":
            return _Alone(task)
        if self.endpoint is None:
            raise ConfigError("ACEBench's multi-turn tasks need a model that plays the user: --user endpoint:MODEL")
        return PromptedUser(self.endpoint, lambda said: self._module.user_messages(task, said))


class _Alone:
    """Tells the task, and then that there will be no answers."""

    def __init__(self, task: Task) -> None:
        self._task, self._spoken = task, 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """The task, or that the agent must do with it."""
        self._spoken += 1
        return UserTurn(Message("user", self._task.scenario if self._spoken == 1 else NO_QUESTIONS))
