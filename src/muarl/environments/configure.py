"""Make a run's environment from its configuration: see ``configured`` and ``benchmark`` for the kinds."""

from __future__ import annotations

from copy import copy
from functools import partial

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_text
from muarl.config import RlConfig, RunConfig
from muarl.config.sections import DomainConfig
from muarl.environments.benchmark import BenchmarkEvaluation, BenchmarkTraining, by_protocol, own_prompt
from muarl.environments.configured import (
    PLAYED,
    ConfiguredEnvironment,
    EnvironmentTasks,
    FileTasks,
    ImaginedTools,
    RewardTerms,
)
from muarl.environments.draws import Draw, by_database, draw_of, with_red_team
from muarl.environments.environment import GENERATED_RULES, Environment
from muarl.environments.mixture import Mixture
from muarl.environments.official.draws import draw_tasks
from muarl.environments.practice_tasks import made_again
from muarl.environments.registry import find
from muarl.environments.retrieval import searched
from muarl.environments.task_files import TaskFile
from muarl.rewards.judge import Judge, make_judge
from muarl.rollouts.conversation import Limits

__all__ = [
    "GENERATED_RULES", "PLAYED", "BenchmarkEvaluation", "BenchmarkTraining", "ConfiguredEnvironment", "Draw",
    "EnvironmentTasks", "FileTasks", "ImaginedTools", "Mixture", "RewardTerms", "configure_environment",
]  # fmt: skip


def configure_environment(
    config: RunConfig, *, measuring: bool = False, with_rl: bool = True, judge: Judge | None = None
) -> ConfiguredEnvironment:
    """The run's environment as it is configured. Whoever makes one closes it.

    ``judge``: of tasks' assertions about words; None opens the one that the configuration names.
    ``measuring``: a benchmark's tasks are played by its own protocol and in its own semantics, rather than trained on.
    ``with_rl`` False: nobody learns from the rewards, so the section ``rl`` has no say in them.
    DataError if a benchmark's files are not installed; ConfigError for an unknown environment, size, intent or judge,
    or a policy file that cannot be read.
    """
    judge = make_judge(config.eval.judge, config.eval.prices) if judge is None else judge
    if len(config.domains) == 1:
        return _one(config, judge, measuring, with_rl)
    parts = [_one(config.model_copy(update={"domain": domain}), judge, measuring, with_rl) for domain in config.domains]
    return Mixture(parts, [domain.weight for domain in config.domains])


def _one(config: RunConfig, judge: Judge, measuring: bool, with_rl: bool) -> ConfiguredEnvironment:
    environment, rl = find(config.domain.name), config.rl if with_rl and not measuring else None
    if environment.is_benchmark:
        if config.domain.tasks is not None:
            raise ConfigError(f"domain.tasks: a task file cannot be used with the benchmark {environment.name}")
        policy = _policy_text(config.domain)
        if measuring:
            return _evaluation(config, environment, judge, policy)
        return _training(config, rl, environment, judge, policy)
    if measuring and config.eval.solo:
        raise ConfigError(f"eval.solo: {environment.name} has no solo mode")
    return _tasks(config, rl, environment, judge, measuring)


def _tasks(
    config: RunConfig, rl: RlConfig | None, environment: Environment, judge: Judge, measuring: bool
) -> ConfiguredEnvironment:
    wanted, kind, policy = config.domain, EnvironmentTasks, _policy_text(config.domain)
    environment.check_size(wanted.size)
    draw = draw_of(environment, wanted)
    domain = searched(environment.make_domain(wanted.size), config.retrieval)
    if wanted.allow_failing_gold:
        domain = copy(domain)
        domain.allow_failing_gold = True
    if wanted.tasks is not None:
        again = partial(made_again, environment, wanted.size)
        kind, draw = FileTasks, TaskFile(wanted.tasks.expanduser(), domain, environment.task_domain, again).draw
    if wanted.red_team_share and not measuring:
        draw = with_red_team(environment, wanted, draw)
    if rl is not None and rl.reward_basis == "database":
        draw = by_database(draw)
    return kind(domain, draw, environment.rules, _limits(config), judge, policy, environment, _terms(rl))


def _training(
    config: RunConfig, rl: RlConfig | None, environment: Environment, judge: Judge, policy: str | None
) -> ConfiguredEnvironment:
    protocol = environment.official(config.eval.mode, training=True)
    domain = searched(protocol.domain("fixed"), config.retrieval)
    draw = draw_tasks(protocol, validating=rl is None or rl.eval_every > 0)
    if rl is not None and rl.reward_basis == "database":
        if protocol.own_score:
            raise ConfigError(
                f"rl.reward_basis: {environment.name} is scored by its own rules, not by parts: set "
                "rl.reward_basis=task"
            )
        draw = by_database(draw)
    return BenchmarkTraining(
        domain,
        draw,
        protocol.training_rules(),
        protocol.training_limits(_limits(config)),
        judge,
        own_prompt(protocol, domain, policy),
        environment,
        _terms(rl),
        protocol=protocol,
    )


def _evaluation(config: RunConfig, environment: Environment, judge: Judge, policy: str | None) -> ConfiguredEnvironment:
    wanted = config.eval
    return by_protocol(
        environment,
        judge,
        mode=wanted.mode,
        sampled=wanted.agent == "sampled",
        solo=wanted.solo,
        policy=policy,
        steps=wanted.max_steps,
        errors=wanted.max_errors,
        retrieval=config.retrieval,
    )


def _limits(config: RunConfig) -> Limits:
    return Limits(turns=config.rollout.max_turns, tool_errors=config.rollout.max_tool_errors)


def _terms(rl: RlConfig | None) -> RewardTerms:
    return RewardTerms() if rl is None else RewardTerms(any(rl.shaping.model_dump().values()), rl.layers.active)


def _policy_text(domain: DomainConfig) -> str | None:
    if domain.policy is None:
        return None
    try:
        return read_text(domain.policy.expanduser())
    except DataError as problem:
        raise ConfigError(f"domain.policy: {problem}") from None
