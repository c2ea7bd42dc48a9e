"""From a run's configuration to its places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_text
from muarl.config.load import load_config
from muarl.config.rl import RlConfig
from muarl.config.rollout import RetrievalConfig
from muarl.config.sections import DomainConfig, EvalConfig, RunConfig
from muarl.config.world import FaultsConfig
from muarl.domains.base import Domain
from muarl.domains.faults.rates import FaultRates
from muarl.environments.environment import Environment
from muarl.environments.place import Place, RewardTerms
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.retrieval import searched
from muarl.environments.task_draws import by_database, check_intents, endless_draw, made_again, pool_of, with_red_team
from muarl.environments.task_pool import TaskPool
from muarl.rewards.judge import Judge, make_judge
from muarl.rollouts.rules import Limits
from muarl.types.chat import ToolSpec

if TYPE_CHECKING:  # a benchmark comes with its protocol
    from muarl.environments.benchmark import Benchmark


def places_of(
    config: RunConfig, *, measuring: bool = False, with_rl: bool = True, judge: Judge | None = None
) -> Places:
    """The run's places, as they are configured. Whoever makes some closes them.

    ``judge``: of tasks' assertions about words; None opens the one that the configuration names.
    ``measuring``: a benchmark's tasks are played by its own protocol and in its own semantics, rather than trained on.
    ``with_rl`` False: nobody learns from the rewards, so the section ``rl`` has no say in them.
    DataError if a benchmark's files are not installed; ConfigError for an unknown environment, size, intent or judge,
    or a policy file that cannot be read.
    """
    judge = make_judge(config.eval.judge, config.eval.prices) if judge is None else judge
    each = [config.model_copy(update={"domain": domain}) for domain in config.domains]
    places = [place_of(own, measuring=measuring, with_rl=with_rl, judge=judge) for own in each]
    return Places(places, [domain.weight for domain in config.domains])


def place_of(config: RunConfig, *, measuring: bool = False, with_rl: bool = True, judge: Judge | None = None) -> Place:
    """The place of a configuration with one domain; see ``places_of``."""
    rl = config.rl if with_rl and not measuring else None
    judge = make_judge(config.eval.judge, config.eval.prices) if judge is None else judge
    limits = Limits(turns=config.rollout.max_turns, tool_errors=config.rollout.max_tool_errors)
    validating = not measuring and (rl is None or rl.eval_every > 0)
    faults = _rates(config.world.faults)
    asked = _Asked(config.domain, config.retrieval, limits, config.eval, rl, judge, faults, validating)
    environment = find(config.domain.name)
    if environment.protocol is not None:
        if config.domain.tasks is not None:
            raise ConfigError(f"domain.tasks: a task file cannot be used with the benchmark {environment.name}")
        policy = _policy_text(config.domain)
        if measuring:
            if asked.faults is not None:
                raise ConfigError(
                    f"world.faults: {environment.name} is measured by its own protocol, which knows of no faults: "
                    "leave the section out, or measure on an environment with made tasks (muarl domains lists them)"
                )
            return _measured(asked, environment, environment.protocol, policy)
        return _trained_on(asked, environment, environment.protocol, policy)
    if measuring and config.eval.solo:
        raise ConfigError(f"eval.solo: {environment.name} has no solo mode")
    return _made(asked, environment, measuring)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a configuration asks of a place."""

    domain: DomainConfig
    retrieval: RetrievalConfig
    limits: Limits
    eval: EvalConfig
    rl: RlConfig | None
    """None where nobody learns from its rewards."""
    judge: Judge
    faults: FaultRates | None
    validating: bool
    """Whether training validates, be it in this run or in one that begins with its checkpoint."""


def _rates(faults: FaultsConfig) -> FaultRates | None:
    """How often tools fail; None for never."""
    return FaultRates.of(faults.model_dump()) if faults.any else None


def _made(asked: _Asked, environment: Environment, measuring: bool) -> Place:
    config, rl = asked.domain, asked.rl
    policy, replayed = _policy_text(config), environment.replayed
    environment.check_size(config.size)
    check_intents(environment, config)
    domain = searched(environment.make_domain(config.size), asked.retrieval)
    if config.allow_failing_gold:
        domain = copy(domain)
        domain.allow_failing_gold = True
    pool = _pool(asked, environment, domain)
    draw = endless_draw(environment, config) if pool is None else pool.draw
    replayed = replayed or config.tasks is not None
    if config.red_team_share and not measuring:
        draw = with_red_team(environment, config, draw)
    if rl is not None and rl.reward_basis == "database":
        draw = by_database(draw)
    return Place(
        domain=domain,
        draw=draw,
        rules=environment.rules,
        limits=asked.limits,
        judge=asked.judge,
        system=policy,
        terms=_terms(rl),
        replayed=replayed,
        faults=asked.faults,
        held_out_note=None if pool is None else pool.held_out_note,
        **environment.as_declared(),
    )


def _pool(asked: _Asked, environment: Environment, domain: Domain) -> TaskPool | None:
    """The fixed tasks that a run draws, of a file or the environment's own; None where they have no end."""
    config = asked.domain
    if config.tasks is not None:
        from muarl.environments.task_files import TaskFile  # most runs have none

        again, path = partial(made_again, environment, config.size), config.tasks.expanduser()
        return TaskFile(path, domain, environment.task_domain, again, validating=asked.validating).pool
    return None if environment.endless else pool_of(environment, config, validating=asked.validating)


def _trained_on(asked: _Asked, environment: Environment, benchmark: Benchmark, policy: str | None) -> Place:
    from muarl.environments.benchmark import draw_of as official_draw

    rl = asked.rl
    domain = searched(benchmark.domain("fixed"), asked.retrieval)
    draw = official_draw(benchmark, validating=rl is None or rl.eval_every > 0)
    if rl is not None and rl.reward_basis == "database":
        if benchmark.place.own_score:
            raise ConfigError(
                f"rl.reward_basis: {environment.name} is scored by its own rules, not by parts: set "
                "rl.reward_basis=task"
            )
        draw = by_database(draw)
    place = benchmark.trained_on(
        domain,
        asked.limits,
        policy=policy,
        draw=draw,
        judge=asked.judge,
        terms=_terms(rl),
        **environment.as_declared(),
    )
    return replace(place, faults=asked.faults)


def _measured(asked: _Asked, environment: Environment, benchmark: Benchmark, policy: str | None) -> Place:
    config = asked.eval
    mode = benchmark.place.chosen_mode(config.mode, environment.name, sampled=config.agent == "sampled")
    return benchmark.measured(
        searched(benchmark.domain(benchmark.place.semantics_of(mode)), asked.retrieval),
        mode,
        solo=config.solo,
        policy=policy,
        steps=config.max_steps,
        errors=config.max_errors,
        judge=asked.judge,
        **environment.as_declared(),
    )


def _terms(rl: RlConfig | None) -> RewardTerms:
    return RewardTerms() if rl is None else RewardTerms(any(rl.shaping.model_dump().values()), rl.layers.active)


def _policy_text(domain: DomainConfig) -> str | None:
    if domain.policy is None:
        return None
    try:
        return read_text(domain.policy.expanduser())
    except DataError as problem:
        raise ConfigError(f"domain.policy: {problem}") from None


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is told before a conversation begins: for those who serve it by other means."""

    policy: str
    """The system message."""
    tools: Sequence[ToolSpec]
    """The tools, in the order in which the agent sees them."""
    size: str = ""
    """Empty for an environment that comes in one."""


def briefing(name: str, size: str | None = None) -> Briefing:
    """The policy and tools of a domain, of its first test task where they depend on the task. ``size`` None: the
    smallest. ConfigError for a size that it does not come in; DataError for a benchmark whose files are missing."""
    declared = find(name)
    if size is not None and declared.sizes:
        declared.check_size(size, "--size")
    elif size is not None:
        raise ConfigError(f"--size: {name} has only one size; remove --size")
    elif declared.sizes:
        size = declared.sizes[0]
    settings = [] if size is None else [f"domain.size={size}"]
    place = place_of(load_config("cpu", [f"domain.name={name}", *settings]), measuring=True)
    task = place.example_task("test")
    return Briefing(place.system_prompt(task), place.tools(task), size or "")
