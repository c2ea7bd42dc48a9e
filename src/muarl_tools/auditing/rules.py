"""By which rules a recorded conversation is audited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.audit.rules import FILE, RulesFile
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.environments.audit_rules import NamedRules, domain_with_tools, known_names, rules_named, rules_recorded
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import usable
from muarl.environments.registry import built_in, environment_of, find, is_reference, names
from muarl.records.conversation import RecordedConversation
from muarl.types.episode import Episode

NONE = "none"
"""What is named where no rules were declared for a conversation."""


@dataclass(frozen=True)
class Chosen:
    """Rules for a conversation."""

    rules: AuditRules
    named: str
    """What to call them, for people."""
    domain: str = ""
    """The domain that the conversation turned out to be of, "" where nothing tells."""
    in_code: tuple[str, ...] = ()
    """Rules that its domain's class declares in code, which nobody could apply."""


@dataclass
class RulesOfConversations:
    """Chooses rules. ConfigError for a domain that muarl does not know."""

    domain: str | None = None
    """The domain that is meant where a conversation names none."""
    rules: AuditRules | None = None
    """Rules in place of any domain's own."""
    rules_name: str = ""
    """The name of the file that those are from."""
    environment: Environment | None = field(default=None, init=False)
    """The environment that ``domain`` names, where it is not one of those whose rules go by a name of their own."""

    def __post_init__(self) -> None:
        if self.domain is None:
            return
        own = is_reference(self.domain) or (self.domain in names() and self.domain not in built_in())
        if own or (self.domain in built_in() and rules_named(self.domain) is None):
            self.environment = find(self.domain)
        else:
            self._known(self.domain, "--domain")

    def of_episode(
        self,
        episode: Episode,
        task: Task | None,
        domain: Domain | None,
        config: Mapping[str, Any],
        kept: tuple[RulesFile, ...],
    ) -> Chosen:
        """For an episode. ``task``, ``domain``: where they could be made again. ``config``: of its run; ``kept``: what
        the run's domain declares itself (``rules_file.FILE``)."""
        if (declared := self._declared(episode.domain, domain)) is not None:
            return declared
        own = next((found for found in kept if found.domain in ("", episode.domain)), None)
        at_hand = any(e.task_domain == episode.domain for e in usable(config))
        if self.rules is None and own is not None and not at_hand:
            return Chosen(own.rules, f"{episode.domain} ({FILE})", in_code=own.in_code)
        found = rules_recorded(config, episode, task, domain)
        rules = found.rules if self.rules is None else self.rules
        return Chosen(rules, self._named(rules, found.name, episode.domain))

    def of_benchmark(self, name: str, task: Task | None, domain: Domain | None) -> Chosen:
        """For a conversation that a benchmark's own program has recorded in its domain of that name."""
        if self.rules is not None:
            return Chosen(self.rules, self._named(self.rules, name))
        environment = environment_of(name, benchmark=True)
        rules = UNDECLARED if environment is None else environment.audit_rules(None if task is None else domain)
        return Chosen(rules, self._named(rules, name))

    def of_log(self, conversation: RecordedConversation) -> Chosen:
        """For a conversation of anybody, by the domain that it names, else by its tools."""
        given = self.domain if self.environment is None else self.environment.task_domain
        # A null domain is a domain that is not told, and not the one meant where there is no such field.
        name = conversation.domain if "domain" in conversation.value else given
        if (declared := self._declared(name)) is not None:
            return declared
        known = self._guess(name, conversation) if self.rules is None else None
        rules = self.rules or (UNDECLARED if known is None else known.rules)
        domain = (name or "") if known is None else known.domain
        return Chosen(rules, self._named(rules, name if known is None else known.name), domain)

    def _declared(self, name: str | None, domain: Domain | None = None) -> Chosen | None:
        """The rules of the environment that the person has named; None for another one's conversation, and where a file
        of rules counts instead."""
        environment = self.environment
        if self.rules is not None or environment is None or name not in (environment.name, environment.task_domain):
            return None
        rules = environment.audit_rules(domain or environment.make_domain())
        named = environment.name if rules.declared else f"{NONE} for {environment.name}"
        return Chosen(rules, named, name or "")

    def _named(self, rules: AuditRules, name: str | None, domain: str = "") -> str:
        """The rules that are used, for people; of a domain that has none, whose they would be."""
        if self.rules is not None:
            return self.rules_name
        if name is not None and rules.declared:
            return name
        return f"{NONE} for {domain or name}" if domain or name else NONE

    def _known(self, name: str, place: str) -> NamedRules | None:
        found = rules_named(name)
        if found is None and self.rules is None:
            raise ConfigError(
                f"{place}: there are no rules for {name!r}; there are some for {', '.join(known_names())} (by a "
                "benchmark's policy, where there is one), and by the names of `muarl domains`. For a domain of your "
                "own, describe it in a file: --rules, or name its environment: --domain FILE.py:NAME"
            )
        return found

    def _guess(self, name: str | None, conversation: RecordedConversation) -> NamedRules | None:
        """The rules of the domain of that name, else of the one whose tools a conversation has; None if that is no
        known one."""
        if name is not None:
            return self._known(name, conversation.place)
        used = {c.name for m in conversation.messages for c in m.tool_calls if m.role == "assistant"}
        tools = conversation.tools
        if isinstance(tools, str):  # as rows of datasets have them
            try:
                tools = parse_json(tools)
            except ValueError as problem:
                raise DataError(f"{conversation.place}: tools is text, and no JSON: {problem}") from None
        for given in tools if isinstance(tools, list) else []:
            made = given.get("function", given) if isinstance(given, Mapping) else None
            if isinstance(made, Mapping) and isinstance(made.get("name"), str):
                used.add(made["name"])
        guessed = domain_with_tools(used)
        return None if guessed is None else rules_named(guessed)
