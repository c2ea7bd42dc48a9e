"""How BFCL's multi-turn entries are played (ShishirPatil/gorilla, Apache-2.0).

The user's turns are fixed. In each the agent acts until it writes a message without calls, or with one that cannot be
read; after more than twenty messages with calls in one turn the entry ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.prompted import PromptedAgent
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.benchmark import Benchmark, BenchmarkPlace, Mode
from muarl.rewards.judge import Judge
from muarl.rollouts.rules import LenientRules, Limits, Rules
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, Verdict
from muarl.users.base import UserFactory
from muarl.users.scripted import TurnsUserFactory
from muarl_worlds.bfcl.domain import Bfcl

TEMPERATURE = 0.001
"""BFCL's, for every model."""


class QwenRules(LenientRules):
    """BFCL v4 with Qwen's function calling: only the calls that cannot be read are passed over."""

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """The others."""
        return tuple(c for c in message.tool_calls if c.invalid is None)


class BfclOfficial(BenchmarkPlace):
    """A revision of BFCL's multi-turn entries, by function calling ("native"), by Qwen's, or in words ("text")."""

    modes: ClassVar[tuple[Mode, ...]] = ("native", "qwen", "text")
    sampled_mode: ClassVar[Mode] = "qwen"
    training_mode: ClassVar[Mode] = "qwen"
    temperature: ClassVar[float] = TEMPERATURE
    scores_cut: ClassVar[bool] = True
    own_score: ClassVar[bool] = True
    """The strict verdict, in training too: the world's semantics there are not BFCL's."""
    fixed_users: ClassVar[bool] = True

    @classmethod
    def rules_of(cls, benchmark: Benchmark, mode: Mode, *, solo: bool = False) -> Rules:
        """What cannot be read ends the agent's turn; v4's handler of Qwen passes over the one call instead."""
        kind = QwenRules if mode == "qwen" and benchmark.own_name == "v4" else LenientRules
        return kind(greeting_in_context=False)

    @classmethod
    def training_rules_of(cls, benchmark: Benchmark) -> Rules:
        """The same."""
        return cls.rules_of(benchmark, cls.training_mode)

    @classmethod
    def limits_of(cls, benchmark: Benchmark, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Messages with calls in a row."""
        most = benchmark.module.MAX_STEPS if steps is None else steps
        return Limits(turns=None, tool_errors=errors, user_calls=None, agent_calls=most)

    @classmethod
    def training_limits_of(cls, benchmark: Benchmark, configured: Limits) -> Limits:
        """The same."""
        return cls.limits_of(benchmark)

    @classmethod
    def needs_user_model(cls, split: str) -> bool:
        """The turns are fixed."""
        return False

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """The benchmark's own descriptions of the tools; for Qwen its documents as they are."""
        specs = self.domain.specs_for(task)
        if self.mode != "qwen":
            return specs
        return tuple(replace(s, as_documented=True) for s in specs)

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """A model behind an endpoint, in whichever mode."""
        agent = EndpointAgent(endpoint, send_seed=False, keep_cut=True)
        if self.mode == "native":
            return agent
        module = self.benchmark.module
        codec = module.PromptCodec if self.mode == "text" else module.QwenCodec
        return PromptedAgent(agent, codec(self.benchmark.own_name))

    def sampled_agent(self, agent: Agent) -> Agent:
        """A checkpoint: Qwen's function calling is its own way of speaking."""
        if self.mode != "text":
            return agent
        return PromptedAgent(agent, self.benchmark.module.PromptCodec(self.benchmark.own_name, "blocks"))

    def own_users(self, model: Callable[[], Endpoint] | None) -> UserFactory:
        """Fixed turns. Missing functions come as tools in function calling, and else as documents in words."""
        how, module = "native" if self.mode == "native" else "text", self.benchmark.module
        return TurnsUserFactory(lambda task: module.user_lines(task, how), name="fixed turns")

    async def official_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """BFCL's verdict and the strict one."""
        found: Verdict = self.benchmark.module.score(task, world, episode)
        return found

    async def untouched(self, task: Task) -> Verdict:
        """BFCL's verdict on no calls at all."""
        found = self.benchmark.module.do_nothing(cast(Bfcl, self.domain), task)
        return Verdict(float(found.valid), {"official": float(found.valid)}, note=found.error_type)

    def figures(self, episodes: Sequence[Episode]) -> Mapping[str, float]:
        """The share of valid entries by category and, of all four, BFCL's overall; and the strict ones."""
        found: Mapping[str, float] = self.benchmark.module.summary(episodes)
        return found


def _module() -> Any:
    """The benchmark's module, whose import takes a while."""
    from muarl_worlds.bfcl import official

    return official


def bfcl(revision: str) -> Benchmark:
    """A revision of BFCL: "v3" or "v4". All there is may be trained on."""
    return Benchmark(
        family="bfcl",
        own_name=revision,
        place=BfclOfficial,
        load=_module,
        task_domain="bfcl",
        splits=("test", "base", "miss_func", "miss_param", "long_context"),
        training_split="test",
    )
