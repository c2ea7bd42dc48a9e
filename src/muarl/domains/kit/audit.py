"""What audits must know of a service: its declaration says whose record is whose, and what the policy forbids; its
plans, what an agent must tell users: what a change costs, that it was made, and answers.

Nothing is declared for what users must be told. A plan's ``propose`` says what they are told before a write, ``done``
what after it, and ``answer`` what they get who ask. Audits read other agents' words than the expert's, so what they
look for is lenient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, overload

from muarl.domains.auditing import AuditRules, Obligation, Resource, UserQuestion, When
from muarl.domains.kit import templates
from muarl.domains.kit.audited_writes import beyond_authority, forbidden
from muarl.domains.kit.colleague import REQUEST
from muarl.domains.kit.exploring import WrittenWords, explored
from muarl.domains.kit.records import PLACE
from muarl.domains.kit.service import Service, content_words
from muarl.domains.kit.worlds import Worlds
from muarl.domains.knowledge.domain import KnowledgeDomain
from muarl.domains.knowledge.ways import SEARCHES
from muarl.domains.tasks import Task

_CURRENCY = r"(?:dollars?|euros?|pounds?|francs?|yuan|cents?|usd|eur|gbp|chf|cny|rmb|cad|aud|inr|jpy)"
AMOUNT = (
    rf"[$€£¥]\s?\d|\d[\d,.]*\s?{_CURRENCY}\b|\b{_CURRENCY}\s?\d|\bfree\b"
    r"|\bfull refund|\brefund\w* (?:in full|fully)|\bno (?:extra |additional |further )?(?:charge|cost|fee)"
    r"|\bnothing (?:extra |more )?(?:to pay|is charged)"
    r"|\b(?:costs?|price[sd]?|fees?|total|charged?|refund(?:ed)?|pay(?:ment)?|amounts?|balance)\b"
    r"[^\d\n]{0,30}(?<![\w#-])\d[\d,.]*(?![\w-])"
)
"""A sum of money in an agent's words, or that there is none."""

_OTHER = r"(?!(?:need|indeed|speed|feed|seed|even|when|then|often|open|seven|ten)\b)"
_MADE = rf"(?:{_OTHER}\w+(?:ed|en)|made|set|put|sent|paid)"
DONE = (
    r"\bdone\b|\ball set\b|\bcomplet(?:e|ed|ion)\b|\bconfirm(?:ed|ation)\b|\bsuccess|\bwent through\b"
    r"|\btaken care of\b|\bnow\b|\bwill (?:get|receive|arrive|come)\b"
    r"|\b(?:i|we)(?:['’]ve| have) (?!any|a |to |not )\w+|\bit(?:['’]s| is) (?:in your|on (?:the|its) way)"
    rf"|(?:^|[.!?;:,\n])[\s*#\"'-]*{_MADE}\b"
    r"|\b(?:has|have|had|is|are|was|were|been|will be|['’]s|['’]re|['’]ve)\b(?: \w+){0,3}? "
    rf"(?:{_MADE}|on|off|back|active|ready|in place)\b"
)
"""Words that say of something that it has been done."""

ENDINGS = "\n".join((
    *templates.HELLO,
    *templates.HOW_ELSE,
    "Is there anything else that I can help you with?",
    "What else can I assist you with today? Let me know if you have any further questions.",
    "Thank you for calling, you are welcome. Have a great day. Goodbye, take care!",
    "One moment, please. May I help you?",
))  # fmt: skip
"""What agents say when they say nothing of a change: no word that stands in it tells of one."""


class LazyList(Sequence[Obligation]):
    """Obligations that are found out when they are first looked at: trial runs take a moment."""

    def __init__(self, make: Callable[[], Iterable[Obligation]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> tuple[Obligation, ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, index: int) -> Obligation: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Obligation]: ...

    def __getitem__(self, index: int | slice) -> Obligation | Sequence[Obligation]:
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)


def with_duties(rules: AuditRules, worlds: Worlds) -> AuditRules:
    """Rules for a service's episodes together with what its plans show that its users must be told."""
    declared = rules.obligations
    return replace(
        rules,
        obligations=LazyList(lambda: (*declared, *_duties(worlds, rules, declared))),
        asks=partial(_asked, worlds.service),
    )


def _duties(worlds: Worlds, rules: AuditRules, declared: Sequence[Obligation]) -> Iterator[Obligation]:
    """What is owed for each writing tool, but where something is declared for the same moment."""
    by_tool: dict[str, list[WrittenWords]] = {}
    for exploration in explored(worlds).values():
        for tool, words in exploration.words.items():
            by_tool.setdefault(tool, []).append(words)
    caller = worlds.service.caller
    for tool, said in by_tool.items():
        if tool == REQUEST or tool in rules.free_writes or any(words.unasked for words in said):
            continue
        priced = all(words.priced == words.calls < 2 * words.news for words in said)
        if priced and not _declared(declared, tool, "before"):
            text = f"Before the call, the {caller} must be told the sum of money that it is about."
            yield Obligation("amount", frozenset({tool}), text, (AMOUNT,), when="before")
        if not any(words.silent for words in said) and not _declared(declared, tool, "after"):
            text = f"After the call, the {caller} must be told that it has been done."
            done = dict.fromkeys(one for words in said for one in sorted(words.done))
            pattern = _said(done, (*rules.spoken.get(tool, ()), tool.split("_")[0]))
            yield Obligation("done", frozenset({tool}), text, (pattern,), when="after", or_value=True)


def _declared(declared: Iterable[Obligation], tool: str, when: When) -> bool:
    return any(tool in one.tools and one.when == when for one in declared)


def _said(done: Collection[str], spoken: Iterable[str]) -> str:
    """What finds in an agent's words that something was done: words for that, a form of the action's word, or what the
    plan says itself."""
    verbs = {word.lower() for phrase in spoken for word in phrase.split()[-1:]}
    stems = sorted({re.escape(verb[:-1] if verb.endswith(("e", "y")) else verb) for verb in verbs if len(verb) > 2})
    telling = [*(rf"\b{stem}\w*" for stem in stems), *filter(None, map(_template, done))]
    return "|".join([DONE, *(one for one in telling if not re.search(one, ENDINGS, re.IGNORECASE))])


def _template(text: str) -> str:
    """A pattern of a text whose places hold anything; empty for one that has no words of its own."""
    pieces = [re.escape(piece).replace("\\ ", " ") for piece in PLACE.sub("\n", text.rstrip(".! ")).split("\n")]
    pattern = r"[^\n]{1,200}?".join(pieces).strip()
    return pattern if re.search(r"[a-z]{2}", PLACE.sub("", text), re.IGNORECASE) else ""


def _asked(service: Service, task: Task, said: Sequence[str]) -> Iterator[UserQuestion]:
    """The questions of a task that its user has put into words."""
    agenda = task.agenda or {}
    if agenda.get("service", service.name) != service.name:
        return
    for request in agenda.get("requests", ()):
        answer, kind = request.get("answer"), request["kind"]
        if answer is not None and any(kind in service.intents_in(text) for text in said):
            yield UserQuestion(kind.replace("_", " "), answer)


_LIGHT = frozenset((
    "add", "ask", "be", "change", "find", "get", "give", "have", "keep", "know", "leave", "make", "not", "put", "see",
    "send", "set", "take", "tell", "use",
))  # fmt: skip
"""Verbs that stand in many a sentence which proposes nothing."""
_PARTICLES = frozenset(["off", "up", "out", "back", "in", "down", "over", "on"])


def audit_rules(worlds: Worlds) -> AuditRules:
    """The rules by which episodes of a service are audited."""
    service = worlds.service
    identity, kinds, authority = service.identity, service.tool_kinds, service.authority
    writes = [tool for tool, kind in kinds.items() if kind == "write"]
    searches = frozenset(SEARCHES if issubclass(service.domain, KnowledgeDomain) else ())
    rules = AuditRules(
        auth_tools=frozenset() if identity is None or not identity.tool else frozenset({identity.tool}),
        free_writes=frozenset({*service.free_writes, *(remedy.tool for remedy in service.remedies)}),
        open_tools=frozenset(service.open_tools),
        transfer_tools=frozenset({service.transfer}),
        person="user_id" if identity is None else identity.key,
        resources=tuple(_resources(service)),
        forbids={tool: partial(forbidden, worlds, tool) for tool in writes},
        authority={limit.tool: partial(beyond_authority, worlds, limit.tool) for limit in service.limits},
        obligations=(*service.obligations, *([authority.obligation(service.caller)] if authority else ())),
        spoken=Lazy(lambda: _words(worlds, _action, proposed=True)),
        wished=Lazy(lambda: _words(worlds, _wish, proposed=False)),
        consent=service.consent,
        kinds=kinds,
        trusted_tools=searches,
        search_tools=searches,
        replays=True,
    )
    return with_duties(rules, worlds)


class Lazy(Mapping[str, Any]):
    """A mapping that is made when it is first looked into: trial runs take a moment, and most commands need none."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, key: str) -> Any:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _resources(service: Service) -> Iterator[Resource]:
    """What belongs to one person: the person's own record, what is declared, and what slots draw from the user's own
    records."""
    identity = service.identity
    if identity is None or not identity.tool:
        return
    yield Resource(
        identity.table, identity.key, owner=identity.key, mark=identity.facts[0].field or identity.facts[0].name
    )
    yield from service.resources
    seen = {resource.table for resource in service.resources}
    for slot in service.slots.values():
        draw = slot.draw
        if draw is None or not draw.own or draw.table in seen:
            continue
        seen.add(draw.table)
        named = tuple(sorted(arguments_naming(service, draw.key)))
        yield Resource(draw.table, draw.key, owner=identity.key, arguments=named, mark=draw.mark)


def arguments_naming(service: Service, field: str) -> set[str]:
    """The arguments of tools that name a record by this field: "account_id", "from_account_id"."""
    domain = service.domain(database={}, policy="-")
    specs = [*domain.tool_specs(), *(domain.discoverable_specs() if isinstance(domain, KnowledgeDomain) else ())]
    names = {name for spec in specs for name in spec.parameters.get("properties", {})}
    return {name for name in names if name == field or name.endswith(f"_{field}")}


def _words(worlds: Worlds, choose: Callable[[str], str], *, proposed: bool) -> dict[str, tuple[str, ...]]:
    """By writing tool the words with which people ask for it, and those with which it is ``proposed``."""
    words_by_tool: dict[str, dict[str, None]] = {}
    for intent in worlds.service.intents:
        exploration = explored(worlds)[intent.name]
        for tool in sorted(exploration.writes):
            texts = [*intent.says, *(sorted(exploration.notes.proposals.get(tool, ())) if proposed else ())]
            words_by_tool.setdefault(tool, {}).update(dict.fromkeys(word for text in texts if (word := choose(text))))
    return {tool: tuple(words) for tool, words in words_by_tool.items()}


def words_of(texts: Iterable[str], *, proposed: bool) -> tuple[str, ...]:
    """The words by which clauses such as "close {account}" are known, as requests or where they are ``proposed``."""
    choose = _action if proposed else _wish
    return tuple(dict.fromkeys(word for text in texts if (word := choose(text))))


def _action(text: str) -> str:
    """The verb that a clause begins with, and its particle: "call off"; what it does, where the verb says too little:
    "have breakfast"."""
    verb, thing = _verb(text), _thing(text)
    if verb not in _LIGHT:
        return verb
    return f"{verb} {thing}" if thing else ""


def _wish(text: str) -> str:
    """A word of a clause by which what is wanted is known: its verb, else what it is about."""
    verb = _verb(text)
    return _thing(text) if verb in _LIGHT else verb


def _verb(text: str) -> str:
    words = re.findall(r"[a-z][a-z'-]*", PLACE.split(text.lower())[0])
    return " ".join(words[: 2 if len(words) > 1 and words[1] in _PARTICLES else 1])


def _thing(text: str) -> str:
    """The first word behind the verb that says something."""
    return next(iter(content_words(PLACE.sub(" ", text))[1:]), "")
