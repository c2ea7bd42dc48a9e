"""Whose audit rules hold where only a name, a log or a run's configuration is known.

Only environments that come with muarl or are installed are asked, and those that the person has named on this command
line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import of_person, unavailable, usable
from muarl.environments.registry import built_in, by_domain, environment_of, find, names
from muarl.rewards.state_changes import ReplayOutcome
from muarl.types.episode import Episode

TELLING = 3
"""Tools that must have a known domain's names for a conversation to be taken for that domain's."""


@dataclass(frozen=True)
class NamedRules:
    """The rules of an audit, and whose they are."""

    name: str
    """What to call the rules."""
    domain: str
    """The domain that they are for, as ``Task.domain`` says it."""
    rules: AuditRules


def rules_named(name: str) -> NamedRules | None:
    """The rules by the name of an environment, or of a domain, where a benchmark's policy holds if there is one. None
    where nobody has rules by that name."""
    environment = find(name) if name in names() else environment_of(name, benchmark=True)
    if environment is None:
        return None
    rules = _declared(environment)
    return NamedRules(name, environment.task_domain, rules) if rules.declared else None


def known_names() -> tuple[str, ...]:
    """Every name of a domain by which ``rules_named`` has rules."""
    return tuple(name for name in by_domain() if rules_named(name) is not None)


def domain_with_tools(tools: Collection[str]) -> str | None:
    """The domain that a conversation with these tools is of; None if it is no known one. Of two with the same tools,
    one with made tasks or a benchmark's rather than one with a fixed set of tasks for the tools of another."""
    declared = {name: _rules(domain) for name, domain in by_domain().items()}
    own = {name: (_telling(name, r) - r.transfer_tools) & set(tools) for name, r in declared.items()}
    plain = {name for name, some in by_domain().items() if any(e.endless or e.is_benchmark for e in some)}
    best = max(own, key=lambda name: (len(own[name]), name in plain))
    rest = len(set(tools) - own[best] - declared[best].transfer_tools)
    return best if len(own[best]) >= TELLING and rest <= len(own[best]) / 4 else None


def rules_recorded(
    config: Mapping[str, Any], episode: Episode, task: Task | None = None, domain: Domain | None = None
) -> NamedRules:
    """The rules for an episode of a run with this configuration. ``task``, ``domain``: where they could be made again.

    Rules that are not ``declared`` where the run names an environment that is not at hand.
    """
    named, official = usable(config), None if task is None else task.benchmark
    candidates = [e for e in (*of_person(episode), *named) if e.task_domain == episode.domain]
    environment = next((e for e in candidates if official in (None, e.is_benchmark)), None)
    if environment is None and not unavailable(config):
        usual = any(e.is_benchmark for e in named) if official is None else official
        environment = environment_of(episode.domain, benchmark=usual)
    if environment is None:
        declared = None if domain is None else type(domain).audit
        return NamedRules(episode.domain, episode.domain, declared or UNDECLARED)
    name = environment.task_domain if environment.is_benchmark else environment.name
    return NamedRules(name, episode.domain, environment.audit_rules(domain))


class RulesOfRuns:
    """The rules of recorded runs, as the viewer asks for them."""

    def of_run(self, config: Mapping[str, Any]) -> list[AuditRules]:
        """The rules of the domains that a run's configuration names, as far as they are at hand."""
        return [_declared(environment) for environment in usable(config)] or [UNDECLARED]

    def of_episode(self, config: Mapping[str, Any], episode: Episode, replayed: ReplayOutcome | None) -> AuditRules:
        """The rules for an episode, which may have been run again."""
        if replayed is None:
            return rules_recorded(config, episode).rules
        return rules_recorded(config, episode, replayed.task, replayed.domain).rules


def _rules(environments: tuple[Environment, ...]) -> AuditRules:
    return next((r for e in environments if (r := _declared(e)).declared), UNDECLARED)


def _declared(environment: Environment) -> AuditRules:
    """An environment's rules, with those of its domain's class, for which the domain is only made where it must be."""
    declared = environment.audit is not None or environment.is_benchmark
    return environment.audit_rules(None if declared else environment.make_domain())


def _telling(domain: str, rules: AuditRules) -> frozenset[str]:
    """The tools by which a domain's conversations are known: those that its rules name, and all of a plug-in's."""
    plugged = (e for e in by_domain()[domain] if e.name not in built_in())
    return frozenset(rules.kinds).union(*(e.make_domain().tool_names() for e in plugged if rules.declared))
