"""A whole service as an author declares it, and what follows for reading each other's words."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Obligation, Resource
from muarl.domains.authoring import nearest
from muarl.domains.base import Domain
from muarl.domains.kit import compact
from muarl.domains.kit.authority import Authority, Limit, authority_of
from muarl.domains.kit.declaration import Fact, Identity, Intent, RecordDescription, Remedy, Slot, several
from muarl.domains.kit.device import Device
from muarl.domains.kit.people import FIRST_NAMES, Maker
from muarl.domains.kit.records import PLACE
from muarl.domains.policy_numbers import numbers_of
from muarl.domains.scripted_expert import TRANSFER
from muarl.domains.tooling import Kind, tool_kinds
from muarl.language.values import Mention, ValueKind, blanked, built_in, unquoted, without

MOST_WORDS = 0.6
"""How much of a clause must stand in a sentence that brings it up."""
MakeTables = Callable[[Maker], dict[str, dict[str, Any]]]
View = Callable[[str, Any], Any]
"""What is to be seen of a tool's result, given the tool's name."""


@dataclass(frozen=True, slots=True)
class WorldSize:
    """How large a world is: people in it, and how many tasks share one."""

    name: str
    people: int
    tasks_per_world: int
    tiny: bool = False


SIZES = {
    size.name: size
    for size in (WorldSize("tiny", 2, 1, tiny=True), WorldSize("small", 12, 30), WorldSize("medium", 60, 200))
}
VARIANTS: Mapping[str, float] = {"done": 0.68, "unavailable": 0.15, "refuse": 0.08, "transfer": 0.03, "outside": 0.05,
                                 "impostor": 0.01, "declined": 0.08}  # fmt: skip
"""Share of each variant of the first request. Doing nothing is right for ``refuse`` and ``impostor`` only; so is
transferring at once, since the others want the user identified first."""
MORE_REQUESTS = (0.30, 0.15)
"""The share of users with a second request, and of those the share with a third."""
OUTSIDE = ("a job here", "a complaint about another {caller}")
_QUESTION = (
    r"(?:which|what|who[ms]?e?|how|when|where|why|give me|tell me|let me know|provide|specify|i(?: will|'ll)? need"
    r"|may i (?:have|know|ask))"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Service:
    """Who calls a service, what they ask for, and how each request is served."""

    domain: type[Domain]
    """Policy, database and tools."""
    about: str
    """What kind of place it is, for scenario texts."""
    today: str
    """The date that its tools go by, such as "2026-03-14"."""
    intents: Sequence[Intent]
    """See ``intent``."""
    identity: Identity | None = None
    """How users are identified; None: they are not."""
    tables: MakeTables | None = None
    """Makes the tables of a small world from chance (``Maker``); None: all tasks take place in the domain's own
    database. Where that is a SQL database, the user's own records are found by its indexes, and other people's (in
    requests that are refused) among the first ``overlay.SOME``."""
    outside: tuple[str, ...] = OUTSIDE
    """Topics that only a person can help with."""
    transfer: str = TRANSFER
    """The tool that hands the user over to a person."""
    caller: str = "customer"
    """What a user is called, such as "member"."""
    open_tools: tuple[str, ...] = ()
    """Reads that show no user's data."""
    obligations: tuple[Obligation, ...] = ()
    """What must be said."""
    policy_compact: Path | str = ""
    """The policy of the tiny size."""
    tiny_tools: tuple[str, ...] = ()
    """The tools of the tiny size, none: all of them."""
    tiny_intents: tuple[str, ...] = ()
    """The intents of the tiny size, none: all of them."""
    consent: bool = True
    """Whether users are asked before a write."""
    heard_in_proposals: bool = False
    """Whether users say no to a proposal that has the pattern ``heard`` of another intent only."""
    sizes: tuple[WorldSize, ...] = tuple(SIZES.values())
    """The sizes of made worlds."""
    remedies: tuple[Remedy, ...] = ()
    """What is done where tools refuse to work for the time being."""
    free_writes: tuple[str, ...] = ()
    """Tools for which users are never asked."""
    apart: tuple[frozenset[str], ...] = ()
    """Intents of which no conversation has two, because they get into each other's way."""
    rehearsal: type[Domain] | None = None
    """Where the domain's tools run on a server, a domain with the same tables, whose tools of the same names answer the
    same in this process: with it tasks are made."""
    view: View | None = None
    """What plans read of each tool's result, and tiny worlds show of it (default: all), such as "less than a day old"
    for a time: a tiny model cannot work it out."""
    vocabulary: tuple[str, ...] = ()
    """Fixed pieces of text that its tools answer with, which a tiny tokenizer makes one token each."""
    device: Device | None = None
    """What users have at hand, with the domain's user tools."""
    variants: Mapping[str, float] = field(default_factory=lambda: VARIANTS)
    """The share of each variant of the first request; one that no intent can end in is left out."""
    more_requests: Sequence[float] = MORE_REQUESTS
    """The share of users with a second request, and of those the share with a third."""
    free_texts: Mapping[str, str] = field(default_factory=dict)
    """By table, the field in which people's own words stand; red-team tasks write instructions in there. Without it
    they are added as a field "note", which tools on a server would not show."""
    texts: tuple[str, ...] = ()
    """Fields that always hold a text, such as a post code, and tools that always answer with one: tiny worlds show it
    without quotation marks even where it looks like a number, "yes", "no", "none" or a record."""
    unlocks: tuple[str, ...] = ()
    """Reads without which other tools do not work, such as those that unlock tools."""
    rules: Mapping[int | str, str] = field(default_factory=dict)
    """By number, what keeps a rule of the policy that stands in no plan: "identity", "consent", "authority", "outside",
    or why nothing needs to, such as "tone, which no check can tell" (``muarl domains check`` has the table)."""
    limits: tuple[Limit, ...] = ()
    """What agents may not do alone (``authority``); the domain must be an ``ApprovalDomain``."""
    resources: tuple[Resource, ...] = ()
    """Records that belong to a user and from which no slot is drawn with ``own``, for audits and red-team tasks."""
    first_names: tuple[str, ...] = field(default=FIRST_NAMES, repr=False)

    def __post_init__(self) -> None:
        if wrong := [one for one in self.intents if not isinstance(one, Intent)]:
            raise ConfigError(f"{self.name}: intents: {wrong[0]!r} is none: write @intent(says=...) above its plan")
        try:
            datetime.date.fromisoformat(self.today)
        except (TypeError, ValueError):
            raise ConfigError(f"{self.name}: today must be a date such as '2026-03-14', not {self.today!r}") from None
        twice = [n for n, count in Counter(intent.name for intent in self.intents).items() if count > 1]
        if twice:
            raise ConfigError(f"{self.name}: two intents are called {twice[0]}")
        if not self.intents:
            raise ConfigError(f"{self.name}: intents: there is none")
        for slot in (slot for intent in self.intents for slot in intent.slots):
            if self.slots[slot.name] is not slot:
                raise ConfigError(f"{self.name}: two slots are called {slot.name}: use one for both intents, or rename")
        if unknown := [name for name in self.tiny_intents if name not in self._intents]:
            there = ", ".join(self._intents)
            raise ConfigError(f"{self.name}: tiny_intents: there is no intent {unknown[0]!r}; there are {there}")
        if not self.variants.get("done") or self.variants.keys() - VARIANTS or min(self.variants.values()) < 0:
            raise ConfigError(
                f"{self.name}: variants: give a share of 0 or more to any of {', '.join(VARIANTS)}, and more than 0 to "
                f"done, not {dict(self.variants)}"
            )
        if len(self.more_requests) > 2 or not all(0 <= share <= 1 for share in self.more_requests):
            raise ConfigError(
                f"{self.name}: more_requests: give the share of users with a second request, and of those the share "
                f"with a third, each from 0 to 1, not {self.more_requests}"
            )
        for number in self.rules:
            numbers_of(number, f"{self.name}: rules")
        absent = {"identity": self.identity is None, "consent": not self.consent, "authority": not self.limits}
        if none := [keeper for keeper in self.rules.values() if absent.get(keeper)]:
            raise ConfigError(f"{self.name}: rules: the service has no {none[0]}: say in words what keeps the rule")
        self._check_tools()
        if self.authority is not None and self.rehearsal is not None:
            raise ConfigError(
                f"{self.name}: limits: the colleague is simulated in this process, the tools are on a server: write "
                "the request for approval into the plans (it.write, then it.then)"
            )
        if self.resources and (self.identity is None or not self.identity.tool):
            raise ConfigError(f"{self.name}: resources: users are not identified, so no record is anybody's")

    def _check_tools(self) -> None:
        """ConfigError for a tool that the domain has not."""
        identity = self.identity
        named = [("open_tools", tool) for tool in self.open_tools] + [("tiny_tools", tool) for tool in self.tiny_tools]
        named += [("unlocks", tool) for tool in self.unlocks]
        named += [("transfer", self.transfer)] if self.transfer != TRANSFER else []
        named += [("free_writes", tool) for tool in self.free_writes] + [("remedies", r.tool) for r in self.remedies]
        named += [("identity: tool", identity.tool)] if identity is not None and identity.tool else []
        named += [
            (f"slot {s.name}: described: look", s.described.look)
            for s in self.slots.values()
            if s.described and s.described.look
        ]
        for where, tool in named:
            if tool not in self.tool_kinds:
                there = list(self.tool_kinds)
                hint = nearest(tool, there)
                raise ConfigError(
                    f"{self.name}: {where}: the domain has no tool {tool!r}; it has {', '.join(there)}{hint}"
                )

    @cached_property
    def tool_kinds(self) -> Mapping[str, Kind]:
        """The domain's tools, and what each is: "read", "write" or "generic"."""
        domain = self.domain(database={}, policy="-") if self.rehearsal is None else self.domain()
        return {name: domain.kind_of(name) for name in domain.tool_names()}

    @cached_property
    def authority(self) -> Authority | None:
        """What needs a colleague's approval; None if agents may do everything alone."""
        return authority_of(self.name, self.limits, self.domain, self.tool_kinds if self.limits else {})

    @cached_property
    def user_tool_kinds(self) -> Mapping[str, Kind]:
        """The user's own tools, and what each is."""
        return {} if self.domain.user_toolkit is None else tool_kinds(self.domain.user_toolkit)

    def changes(self, tool: str) -> bool:
        """Whether one of the user's own tools changes something."""
        return self.user_tool_kinds.get(tool) == "write"

    @property
    def transfers(self) -> bool:
        """Whether agents can hand users over to a person."""
        return self.transfer in self.tool_kinds

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """``outside``, with what users are called."""
        return tuple(topic.replace("{caller}", self.caller) for topic in self.outside)

    def transfer_arguments(self, summary: str) -> dict[str, str]:
        """The arguments with which users are handed over: a sentence on why, if the tool takes one."""
        if self.transfer == TRANSFER:
            return {"summary": summary}
        return {self._transfer_argument: summary} if self._transfer_argument else {}

    @cached_property
    def _transfer_argument(self) -> str:
        """The argument of the tool that hands over which takes the sentence; empty if it takes none."""
        domain = self.domain(database={}, policy="-") if self.rehearsal is None else self.domain()
        form = next(spec.parameters for spec in domain.tool_specs() if spec.name == self.transfer)
        texts = [name for name, one in form.get("properties", {}).items() if one.get("type") == "string"]
        argument = "summary" if "summary" in texts else next(iter(texts), "")
        if rest := [name for name in form.get("required", ()) if name != argument]:
            raise ConfigError(
                f"{self.name}: transfer: the tool {self.transfer!r} must work with one sentence on why the user is "
                f"handed over; give {', '.join(rest)} a default"
            )
        return argument

    @property
    def name(self) -> str:
        """The domain's."""
        return self.domain.name

    def intent(self, name: str) -> Intent:
        """The intent of that name. KeyError if there is none."""
        return self._intents[name]

    @cached_property
    def _intents(self) -> Mapping[str, Intent]:
        return {intent.name: intent for intent in self.intents}

    @cached_property
    def slots(self) -> Mapping[str, Slot]:
        """All slots by name."""
        slots: dict[str, Slot] = {}
        for intent in self.intents:
            for slot in intent.slots:
                slots.setdefault(slot.name, slot)
        return slots

    def size(self, name: str) -> WorldSize:
        """The size of that name. ValueError if worlds do not come in it."""
        match = next((size for size in self.sizes if size.name == name), None)
        if match is None:
            raise ValueError(f"size must be one of {', '.join(s.name for s in self.sizes)}, not {name!r}")
        return match

    @property
    def smallest(self) -> WorldSize:
        """The tiny size; the first where there is none."""
        return next((size for size in self.sizes if size.tiny), self.sizes[0])

    def read(self, tool: str, observation: str) -> Any:
        """What a tool's observation says, as plans read it: JSON, or records in compact form, or else its text."""
        result = self.parsed(tool, observation)
        if not isinstance(result, str):
            return self.seen(tool, result)
        as_it_is = self.rehearsal is not None or result is not observation or self._is_text(tool, result)
        return result if as_it_is else compact.read(observation, self.texts)

    def parsed(self, tool: str, content: str) -> Any:
        """What stands in a tool's answer: JSON, or else its text. That of a tool which gives back a text ("-> str")
        holds no number or the like."""
        try:
            result = json.loads(content)
        except ValueError:
            return content
        return content if self._is_text(tool, content) and not isinstance(result, (dict, list, str)) else result

    def written(self, tool: str, result: Any) -> str:
        """A tool's result in compact form, as tiny worlds show it."""
        seen = self.seen(tool, result)
        return seen if self._is_text(tool, seen) else compact.write(seen, self.texts)

    def _is_text(self, tool: str, result: Any) -> bool:
        """Whether a result is a text by what is declared of its tool, and so is not read as anything else."""
        return isinstance(result, str) and tool in self._text_tools

    @cached_property
    def _text_tools(self) -> frozenset[str]:
        if self.view is not None:  # it may make something else of what a tool gives back
            return frozenset(self.texts)
        domain = self.rehearsal or self.domain
        hints = {tool: getattr(getattr(domain, tool, None), "__annotations__", {}) for tool in self.tool_kinds}
        return frozenset(self.texts).union(n for n, hint in hints.items() if hint.get("return") in (str, "str"))

    def seen(self, tool: str, result: Any) -> Any:
        """What is to be seen of a tool's result."""
        return result if self.view is None or result is None else self.view(tool, result)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts by which users are identified."""
        return () if self.identity is None else self.identity.facts

    def remedy(self, answer: str) -> str:
        """The tool to be called where a tool has refused with this answer; empty if there is none."""
        tools = (r.tool for r in self.remedies if re.search(r.refused, answer, re.IGNORECASE))
        return next(tools, "")

    # values

    @cached_property
    def _built_in(self) -> Mapping[str, ValueKind]:
        return built_in(self.today, self.first_names)

    def kind(self, of: Slot | Fact | RecordDescription) -> ValueKind:
        """The kind of value."""
        return self._built_in[of.kind] if isinstance(of.kind, str) else of.kind

    def mentions(self, text: str, kinds: Sequence[ValueKind]) -> dict[ValueKind, list[Mention]]:
        """The mentions of each of these kinds; a stretch of the text counts for one kind only."""
        mentions: dict[ValueKind, list[Mention]] = {kind: [] for kind in kinds}
        if self._built_in["quoted"] not in mentions:
            text = blanked(text)
        for kind in sorted(mentions, key=lambda kind: kind.rank):
            mentions[kind] = kind.find(text)
            if mentions[kind]:
                text = without(text, mentions[kind])
        return mentions

    def say(self, slot: str, value: Any, rng: Any = None) -> str:
        """A slot's value as a user says it."""
        return self.kind(self.slots[slot]).say(value, rng)

    def show(self, slot: str, value: Any) -> str:
        """A slot's value as an agent says it."""
        return str(value) if self.kind(self.slots[slot]).own else self.say(slot, value)

    def spoken(self, intent: str, values: Mapping[str, Any]) -> dict[str, str]:
        """The known slots of an intent as an agent says them."""
        return {s.name: self.show(s.name, values[s.name]) for s in self.intent(intent).slots if s.name in values}

    # words

    @cached_property
    def asked(self) -> Mapping[str, re.Pattern[str]]:
        """Slots with what finds a question for them in an agent's words."""
        return {name: _asking(slot, several(slot.ask)) for name, slot in self.slots.items()}

    @cached_property
    def asked_identity(self) -> Mapping[str, re.Pattern[str]]:
        """Facts with what finds a question for them."""
        asked = () if self.identity is None else (*several(self.identity.ask), *several(self.identity.retry))
        return {fact.name: _asking(fact, asked) for fact in self.facts}

    @cached_property
    def cues(self) -> Mapping[str, re.Pattern[str]]:
        """Slots, and "described NAME", with the pattern that must stand right before their value."""
        patterns = {n: s.cue for n, s in self.slots.items() if s.cue is not None}
        for name, slot in self.slots.items():
            if slot.described is not None and slot.described.cue is not None:
                patterns[f"described {name}"] = slot.described.cue
        return {n: re.compile(rf"(?<!\w)(?:{cue})\s*$", re.IGNORECASE) for n, cue in patterns.items()}

    @cached_property
    def fact_cues(self) -> Mapping[str, re.Pattern[str]]:
        """Facts with the pattern that must stand right before them."""
        patterns = {fact.name: fact.cue for fact in self.facts if fact.cue is not None}
        return {n: re.compile(rf"(?:{cue})\s*$", re.IGNORECASE) for n, cue in patterns.items()}

    @cached_property
    def tails(self) -> Mapping[str, re.Pattern[str]]:
        """Slots with the pattern that must stand right behind their value."""
        patterns = {n: s.after for n, s in self.slots.items() if s.after is not None}
        return {n: re.compile(rf"\s*(?:{tail})", re.IGNORECASE) for n, tail in patterns.items()}

    def intents_in(self, text: str) -> list[str]:
        """The intents whose words stand in a text, but for quotations: those with a pattern of their own in the order
        of declaration, then the others by how many of their words they are."""
        text = unquoted(text)
        by_pattern = [name for name, pattern in self._heard.items() if pattern.search(text)]
        spoken = content_words(text)
        scores = {name: _likeness(clauses, spoken) for name, clauses in self._clauses.items()}
        by_words = sorted((n for n, score in scores.items() if score >= MOST_WORDS), key=lambda n: -scores[n])
        return by_pattern + by_words

    def means_another(self, text: str, intent: str) -> bool:
        """Whether a text has the pattern of another intent and not this one's, where proposals are read by them."""
        own = self._heard.get(intent)
        if own is None or not self.heard_in_proposals or own.search(text):
            return False
        return any(pattern.search(text) for pattern in self._heard.values())

    @cached_property
    def _heard(self) -> Mapping[str, re.Pattern[str]]:
        return {i.name: re.compile(i.heard, re.IGNORECASE) for i in self.intents if i.heard}

    @cached_property
    def _clauses(self) -> Mapping[str, list[list[str]]]:
        """Of intents without a pattern: the words of each clause that are not values."""
        return {
            i.name: [content_words(PLACE.sub(" ", clause)) for clause in i.says] for i in self.intents if not i.heard
        }


def _asking(what: Slot | Fact, texts: Sequence[str]) -> re.Pattern[str]:
    """What finds a question for a slot or fact: the expert's own questions, and the author's pattern, else a question
    word and its noun."""
    own = [re.escape(text.strip()) for text in texts]
    if what.asked:
        return re.compile("|".join([*own, what.asked]), re.IGNORECASE)
    nouns = "|".join(re.escape(noun) for noun in several(what.noun) or (what.name.replace("_", " "),))
    nouns = nouns.replace("email", "e-?mail")
    return re.compile("|".join([*own, rf"\b{_QUESTION}\b[^.?!]*\b(?:{nouns})(?:e?s|'s)?\b"]), re.IGNORECASE)


_SMALL = frozenset((
    "a", "an", "the", "of", "to", "for", "in", "on", "at", "my", "your", "i", "it", "is", "and", "with", "me", "one",
    "some", "please", "by", "know", "what",
))  # fmt: skip


def content_words(text: str) -> list[str]:
    """The words of a text that say something, in lower case."""
    return [word for word in re.findall(r"[a-z][a-z'-]*", text.lower()) if word not in _SMALL]


def _likeness(clauses: Sequence[Sequence[str]], spoken: Sequence[str]) -> float:
    """How much of a clause stands in a text; 0 where its first word does not."""
    said = set(spoken)
    fits = [clause for clause in clauses if clause and clause[0] in said]
    return max((sum(word in said for word in clause) / len(clause) + 0.001 * len(clause) for clause in fits), default=0)
