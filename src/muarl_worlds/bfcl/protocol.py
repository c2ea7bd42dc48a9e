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
from muarl.domains.base import Domain, Task, World
from muarl.endpoints import Endpoint
from muarl.environments.official.base import LenientRules, Mode, Official
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits, Rules
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, Verdict
from muarl.users.base import UserFactory
from muarl.users.turns import TurnsUserFactory
from muarl_worlds.bfcl.domain import Bfcl

TEMPERATURE = 0.001
"""BFCL's, for every model."""


class QwenRules(LenientRules):
    """BFCL v4 with Qwen's function calling: only the calls that cannot be read are passed over."""

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """The others."""
        return tuple(c for c in message.tool_calls if c.invalid is None)


class BfclOfficial(Official):
    """A revision of BFCL's multi-turn entries, by function calling ("native"), by Qwen's, or in words ("text")."""

    modes: ClassVar[tuple[Mode, ...]] = ("native", "qwen", "text")
    sampled_mode: ClassVar[Mode] = "qwen"
    training_mode: ClassVar[Mode] = "qwen"
    splits: ClassVar[tuple[str, ...]] = ("test", "base", "miss_func", "miss_param", "long_context")
    temperature: ClassVar[float] = TEMPERATURE
    scores_cut: ClassVar[bool] = True
    own_score: ClassVar[bool] = True
    fixed_users: ClassVar[bool] = True

    @property
    def module(self) -> Any:
        """The benchmark's module."""
        from muarl_worlds.bfcl import official

        return official

    def rules(self, *, solo: bool = False) -> Rules:
        """What cannot be read ends the agent's turn; v4's handler of Qwen passes over the one call instead."""
        kind = QwenRules if self.mode == "qwen" and self.own_name == "v4" else LenientRules
        return kind(greeting_in_context=False)

    def training_rules(self) -> Rules:
        """The same."""
        return self.rules()

    def limits(self, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Messages with calls in a row."""
        most = self.module.MAX_STEPS if steps is None else steps
        return Limits(turns=None, tool_errors=errors, user_calls=None, agent_calls=most)

    def training_limits(self, configured: Limits) -> Limits:
        """The same."""
        return self.limits()

    @property
    def training_split(self) -> str:
        """All there is."""
        return "test"

    def offered(self, domain: Domain, task: Task, *, solo: bool = False) -> Sequence[ToolSpec]:
        """The benchmark's own descriptions of the tools; for Qwen its documents as they are."""
        specs = domain.specs_for(task)
        if self.mode != "qwen":
            return specs
        return tuple(replace(s, as_documented=True) for s in specs)

    def endpoint_agent(self, endpoint: Endpoint, *, solo: bool = False) -> Agent:
        """A model behind an endpoint, in whichever mode."""
        agent = EndpointAgent(endpoint, send_seed=False, keep_cut=True)
        if self.mode == "native":
            return agent
        codec = self.module.PromptCodec if self.mode == "text" else self.module.QwenCodec
        return PromptedAgent(agent, codec(self.own_name))

    def sampled_agent(self, agent: Agent) -> Agent:
        """A checkpoint: Qwen's function calling is its own way of speaking."""
        if self.mode != "text":
            return agent
        return PromptedAgent(agent, self.module.PromptCodec(self.own_name, "blocks"))

    def users(self, domain: Domain, model: Callable[[], Endpoint] | None) -> UserFactory:
        """Fixed turns. Missing functions come as tools in function calling, and else as documents in words."""
        how = "native" if self.mode == "native" else "text"
        return TurnsUserFactory(lambda task: self.module.user_lines(task, how), name="fixed turns")

    def needs_user_model(self, split: str) -> bool:
        """The turns are fixed."""
        return False

    async def score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """BFCL's verdict and the strict one."""
        found: Verdict = self.module.score(task, world, episode)
        return found

    async def training_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """The strict verdict: the world's semantics in training are not BFCL's."""
        return await self.score(task, world, episode, judge)

    async def do_nothing(self, domain: Domain, task: Task, judge: Judge | None) -> Verdict:
        """BFCL's verdict on no calls at all."""
        found = self.module.do_nothing(cast(Bfcl, domain), task)
        return Verdict(float(found.valid), {"official": float(found.valid)}, note=found.error_type)

    def figures(self, episodes: Sequence[Episode]) -> Mapping[str, float]:
        """The share of valid entries by category and, of all four, BFCL's overall; and the strict ones."""
        found: Mapping[str, float] = self.module.summary(episodes)
        return found
