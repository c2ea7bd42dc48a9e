"""Several services that are played in one domain: the expert of whichever it is, and the rules of audits for all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Asks, AuditRules, UserQuestion
from muarl.domains.kit.audit import Lazy, LazyList
from muarl.domains.kit.expert import ServiceExpert
from muarl.domains.kit.service import Service
from muarl.domains.kit.templates import HELLO
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolSpec


class AnyServiceExpert:
    """The scripted expert of one of several services: of the one whose tools it is offered, or, where it is offered
    none, of the one that the user's first words are about."""

    def __init__(self, services: Sequence[Service], *, seed: int, error_profile: ErrorProfile = ErrorProfile()) -> None:
        self._services = services
        self._make = partial(ServiceExpert, seed=seed, error_profile=error_profile)
        self._expert: ServiceExpert | None = None

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Take the service that has most of these tools."""
        names = {spec.name for spec in tools}
        self._expert = self._make(max(self._services, key=lambda one: len(names & set(one.tool_kinds))))

    def act(self, new: Sequence[Message]) -> Message:
        """Take in what came and answer."""
        if self._expert is None:
            said = " ".join(message.content or "" for message in new if message.role == "user")
            if not said:
                return Message("assistant", HELLO[0])
            self._expert = self._make(max(self._services, key=lambda one: len(one.intents_in(said))))
        return self._expert.act(new)


def merged_rules(rules: Sequence[AuditRules]) -> AuditRules:
    """The rules by which episodes of all these services are audited: a tool is of one of them, and keeps its rules.

    ConfigError for services whose users are known by different fields.
    """
    named = {r.person: r for r in rules if r.auth_tools}
    if len(named) > 1:
        raise ConfigError(f"services of one environment must know users by one field, not by {' and '.join(named)}")
    asks_nobody = [tool for r in rules if not r.auth_tools for tool in r.kinds]
    unasked = [tool for r in rules if not r.consent for tool in r.kinds]
    return AuditRules(
        auth_tools=frozenset().union(*(r.auth_tools for r in rules)),
        open_tools=frozenset(asks_nobody).union(*(r.open_tools for r in rules)),
        person=next(iter(named), rules[0].person),
        resources=tuple(resource for r in rules for resource in r.resources),
        forbids=_together([r.forbids for r in rules]),
        authority=_together([r.authority for r in rules]),
        obligations=LazyList(lambda: [obligation for r in rules for obligation in r.obligations]),
        asks=partial(_asks, [r.asks for r in rules if r.asks is not None]),
        spoken=Lazy(lambda: _together([r.spoken for r in rules])),
        consent=any(r.consent for r in rules),
        free_writes=frozenset(unasked).union(*(r.free_writes for r in rules)),
        kinds=_together([r.kinds for r in rules]),
        replays=all(r.replays for r in rules),
    )


def _asks(all_of: Sequence[Asks], task: Task, said: Sequence[str]) -> list[UserQuestion]:
    return [one for asks in all_of for one in asks(task, said)]


def _together(mappings: Sequence[Any]) -> dict[str, Any]:
    return {key: value for one in mappings for key, value in one.items()}
