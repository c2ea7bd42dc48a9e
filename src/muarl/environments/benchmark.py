"""A benchmark's tasks as a run configures them: trained on, or played and scored by the benchmark's protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.agents.base import Agent
from muarl.basics.errors import ConfigError
from muarl.config.retrieval import RetrievalConfig
from muarl.config.sections import EvalConfig
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain, Task, World
from muarl.endpoints import Endpoint
from muarl.environments.configured import ConfiguredEnvironment
from muarl.environments.environment import Environment
from muarl.environments.official.base import Official, has_ticket
from muarl.environments.official.draws import draw_tasks, held_out
from muarl.environments.retrieval import searched
from muarl.rewards.judge import FixedJudge, Judge
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, Verdict
from muarl.users.base import UserFactory
from muarl.users.guidelines import Style


@dataclass(frozen=True, kw_only=True)
class BenchmarkTraining(ConfiguredEnvironment):
    """A benchmark's tasks, trained on, and played in a way of our own. ``protocol``: the benchmark's."""

    protocol: Official

    @property
    def unchecked(self) -> bool:
        """Official tasks may fail."""
        return False

    def validation_notes(self) -> list[str]:
        """That some training tasks are held out, where the benchmark has none to validate on."""
        if self.protocol.validation_split is not None:
            return []
        kept, held = (len(part) for part in held_out(self.protocol))
        return [
            f"{self.name} has no tasks to validate on: {held} of its {kept + held} training tasks are held out for "
            "that (rl.eval_every=0 trains on all of them)"
        ]

    def system_prompt(self, task: Task) -> str:
        """The benchmark's prompt."""
        return self.protocol.system_prompt(self.domain, task) if self.system is None else self.system

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """The tools that the benchmark offers."""
        return tuple(self.protocol.offered(self.domain, task, solo=self.rules.solo))

    def own_users(self, model: Callable[[], Endpoint] | None) -> UserFactory | None:
        """The benchmark's, where it has some."""
        return self.protocol.users(self.domain, model)

    @property
    def user_style(self) -> Style:
        """The benchmark's."""
        return self.protocol.user_style

    async def _score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        return await self.protocol.training_score(task, world, episode, judge)


@dataclass(frozen=True, kw_only=True)
class BenchmarkEvaluation(BenchmarkTraining):
    """A benchmark's tasks, played and scored by its protocol to the letter."""

    def eval_tasks(self, eval_config: EvalConfig) -> Sequence[Task]:
        """In the benchmark's order. Where the split has fewer than are asked for, all of them; for an agent that works
        alone, those with a ticket. ConfigError names an id that the split does not have."""
        split = eval_config.split
        if split == "validation":
            raise ConfigError(f"eval.split: {self.name} has no validation tasks; eval.split=test has some")
        found = self.protocol.tasks(split)
        if eval_config.task_ids:
            known = {task.id for task in found}
            missing = [i for i in eval_config.task_ids if i not in known]
            if missing:
                raise ConfigError(f"eval.task_ids: the {split} split of {self.name} has no task {missing[0]!r}")
            found = [task for task in found if task.id in eval_config.task_ids]
        if eval_config.solo:
            found = [task for task in found if has_ticket(task)]
            if not found:
                raise ConfigError(f"eval.solo: no task of the {split} split of {self.name} has a ticket to work from")
        return found[: eval_config.tasks]

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """In the benchmark's order, with its seeds."""
        return self.protocol.requests(tasks, trials, seed, label)

    def system_prompt(self, task: Task) -> str:
        """The benchmark's prompt; with the task's ticket for an agent that works alone."""
        told = super().system_prompt(task)
        return told if self.system is None or not self.rules.solo else told.replace("{ticket}", str(task.ticket))

    @property
    def reviews_users(self) -> bool:
        """Not where they say the same whatever they hear."""
        return super().reviews_users and not self.protocol.fixed_users

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """As the benchmark asks a model."""
        return self.protocol.endpoint_agent(endpoint, solo=self.rules.solo)

    def sampled_agent(self, agent: Agent) -> Agent:
        """As the benchmark asks a checkpoint."""
        return self.protocol.sampled_agent(agent)

    @property
    def playing(self) -> Mapping[str, Any]:
        """The benchmark's attempts, and whether it scores what a limit cut."""
        return {"retries": self.protocol.attempts - 1, "score_cut": self.protocol.scores_cut}

    async def _score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        return await self.protocol.score(task, world, episode, judge)

    def audit_rules(self, task: Task) -> AuditRules:
        """Who works alone has nobody to ask or to tell."""
        rules = super().audit_rules(task)
        return replace(rules, consent=False, obligations=(), auth_tools=frozenset()) if self.rules.solo else rules

    @property
    def completes(self) -> bool:
        """Where the benchmark's score has parts of its own, they tell it."""
        return not self.protocol.scores_cut

    def do_nothing(self) -> Callable[[Task], Awaitable[Verdict]] | None:
        """The verdict on an untouched world, so that no user has to be asked."""
        return lambda task: self.protocol.do_nothing(self.domain, task, FixedJudge(False))

    def about_scores(self, eval_config: EvalConfig, tasks: Sequence[Task], scored: Sequence[Episode]) -> Any:
        """The tasks, the protocol's limits, the seeds, and the benchmark's own figures."""
        return {
            "name": self.name,
            "split": eval_config.split,
            "tasks": len(tasks),
            "trials": eval_config.trials,
            "solo": eval_config.solo,
            "steps": self.limits.steps,
            "turns": self.limits.turns,
            "tool_errors": self.limits.tool_errors,
            "agent_calls": self.limits.agent_calls,
            "seeds": self.protocol.seeds(eval_config.seed, eval_config.trials),
            "mode": self.protocol.mode,
            **({"retrieval": self.domain.retrieval_text} if hasattr(self.domain, "retrieval_text") else {}),
            "figures": dict(self.protocol.figures(scored)),
        }


def own_prompt(protocol: Official, domain: Domain, policy: str | None = None) -> str | None:
    """The system prompt around another ``policy`` or the domain's; None where every task has one of its own."""
    if policy is None and getattr(domain, "policy_by_task", False):
        return None
    return protocol.prompt(policy or domain.policy_text)


def by_protocol(
    environment: Environment,
    judge: Judge,
    *,
    mode: str = "auto",
    sampled: bool = False,
    solo: bool = False,
    policy: str | None = None,
    steps: int | None = None,
    errors: int | None = None,
    retrieval: RetrievalConfig | None = None,
) -> BenchmarkEvaluation:
    """A benchmark's environment, played and scored by its protocol. ``mode``, ``sampled``: see
    ``Environment.official``. ``policy``: another than the benchmark's; ``steps``, ``errors``: other limits;
    ``retrieval``: how documents are found."""
    protocol = environment.official(mode, sampled=sampled)
    domain = searched(protocol.domain(protocol.semantics), retrieval)
    return BenchmarkEvaluation(
        domain,
        draw_tasks(protocol),
        protocol.rules(solo=solo),
        protocol.limits(steps=steps, errors=errors),
        judge,
        protocol.prompt(policy or protocol.solo_policy(), solo=True) if solo else own_prompt(protocol, domain, policy),
        environment,
        protocol=protocol,
    )
