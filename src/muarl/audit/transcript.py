"""A conversation as the audit reads it: each of the agent's calls with what was known before it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from muarl.audit.calls import CallRecord, KindOf, agent_calls, as_documented, with_results
from muarl.audit.facts import Facts, persons_in
from muarl.audit.rules import kinds_by, rules_for
from muarl.basics.patterns import search
from muarl.domains.auditing import AuditRules, Obligation, Occasion, Statement
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.language.user_acts import may_correct_identity
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode


@dataclass(frozen=True, slots=True)
class RecordAccess:
    """A person's record that a call named."""

    table: str
    key: str
    owner: str | None
    """Whose it is, None if nobody could tell."""
    foretold: bool
    """Whether an earlier call had shown that to the agent."""


@dataclass(slots=True)
class AuditedCall:
    """One of the agent's calls with what was known before it."""

    record: CallRecord
    person: str | None = None
    """Whom the conversation served by then, None if nobody was identified."""
    newcomers: tuple[str, ...] = ()
    """Persons that this call identified although another was being served."""
    accesses: tuple[RecordAccess, ...] = ()
    """Records that it named."""
    forbidden: str | None = None
    """Why the policy forbids it."""
    beyond: str | None = None
    """Why it was beyond what the agent may do alone."""
    due: tuple[Obligation, ...] = ()
    """Obligations that it brings."""


@dataclass
class Transcript:
    """One conversation."""

    episode: Episode
    task: Task | None
    rules: AuditRules
    kind_of: KindOf
    domain: Domain | None = None
    beside: bool = False
    """Whether what the agent writes beside its calls reaches the user (logs of live agents; never in muarl)."""
    begin: int = -1
    """The first message that is judged; by default the first that is the agent's own doing, behind the task's
    history."""
    steps: list[AuditedCall] = field(default_factory=list)
    untrue: list[tuple[int, str]] = field(default_factory=list)
    """The numbers of messages that state what is not so, with what is wrong."""

    def __post_init__(self) -> None:
        self.messages: Sequence[Message] = as_documented(self.episode.messages)
        if self.begin < 0:
            self.begin = 0 if self.task is None else len(self.task.history)
        records = agent_calls(self.messages, self.kind_of, self.rules.spoken, self.begin)
        self.steps = [AuditedCall(r) for r in records]
        self._walk()

    @cached_property
    def said(self) -> list[tuple[int, str]]:
        """What the agent said to the user, with the messages' numbers."""
        return [
            (i, m.content)
            for i, m in enumerate(self.messages)
            if m.role == "assistant" and m.content and (self.beside or not m.tool_calls)
        ]

    @cached_property
    def told(self) -> list[tuple[int, str]]:
        """What the user said to the agent, with the messages' numbers."""
        return [
            (i, m.content) for i, m in enumerate(self.messages) if m.role == "user" and m.content and not m.tool_calls
        ]

    def told_before(self, index: int, after: int = -1) -> str:
        """All that the user said between two messages."""
        return "\n".join(text for i, text in self.told if after < i < index)

    def said_between(self, after: int, before: int) -> str:
        """All that the agent said between two messages."""
        return "\n".join(text for i, text in self.said if after < i < before)

    @property
    def own(self) -> Iterator[AuditedCall]:
        """The steps since ``begin``."""
        return (s for s in self.steps if s.record.index >= self.begin)

    @property
    def writes(self) -> Iterator[AuditedCall]:
        """The successful writes since ``begin``."""
        return (s for s in self.own if s.record.wrote)

    # What was known before each call.

    def _walk(self) -> None:
        facts = Facts(self.rules, self.task, self.domain)
        served = _Served(self)
        steps = iter(self.steps)
        done: list[ToolCall] = []
        looked_at: set[tuple[str, str]] = set()
        for index, message in enumerate(self.messages):
            if message.role == "user" and not message.tool_calls:
                facts.heard(message)
                served.hear(message.content or "", index)
            if message.role == "assistant" and (self.beside or not message.tool_calls):
                self._weigh(index, message, facts, served.person)
            if message.role not in ("user", "assistant") or not message.tool_calls:
                continue
            for call, result in with_results(self.messages, index):
                kind = "write" if message.role == "user" else "read"
                if message.role == "assistant":
                    step = next(steps)
                    kind = step.record.kind
                    step.person = served.person
                    if step.record.ok:
                        self._look(step, facts, done, looked_at)
                if message.role == "user":
                    kind = _kind(self.kind_of, call.name)
                if result is not None:
                    facts.called(call, result, kind)
                if message.role == "assistant" and step.record.ok:
                    self._look_again(step, facts)
                    step.newcomers = served.take(step)
                    done.append(call)

    def _weigh(self, index: int, message: Message, facts: Facts, person: str | None) -> None:
        """Note what is wrong with what the agent states."""
        disproves = self.rules.disproves
        if disproves is None or not message.content or index < self.begin:
            return
        before = self.messages[:index]
        results = tuple(m.content for m in before if m.role == "tool" and m.requestor == "assistant" and m.content)
        wrong = _asked(disproves, Statement(message.content, person, results, facts.world))
        if wrong is not None:
            self.untrue.append((index, wrong))

    def _look(self, step: AuditedCall, facts: Facts, done: list[ToolCall], looked_at: set[tuple[str, str]]) -> None:
        """Note what a call names and brings. ``looked_at``: the records that calls before it have named; its own are
        added."""
        record, rules = step.record, self.rules
        call = record.call
        step.accesses = tuple(
            RecordAccess(r.table, key, facts.owner(r, key, step.person), (r.table, key) in looked_at)
            for r in rules.resources
            if record.kind != "generic" and call.name not in rules.open_tools
            for key in r.named(call.arguments)
        )
        looked_at |= {(a.table, a.key) for a in step.accesses}
        if record.index < self.begin:
            return
        forbids = rules.forbids.get(call.name) if record.wrote else None
        authority = rules.authority.get(call.name) if record.wrote else None
        duties = [o for o in rules.obligations if call.name in o.tools]
        step.due = tuple(duties)
        if forbids is None and authority is None and all(o.applies is None for o in duties):
            return
        said = self.told_before(record.index)
        occasion = Occasion(call, facts.record, step.person, said, tuple(done), facts.world, facts.shown)
        step.forbidden = None if forbids is None else _asked(forbids, occasion)
        step.beyond = None if authority is None else _asked(authority, occasion)
        step.due = tuple(o for o in duties if o.applies is None or _asked(o.applies, occasion))

    def _look_again(self, step: AuditedCall, facts: Facts) -> None:
        """Whose a record is may only be shown by the call that looks at it."""
        if any(a.owner is None for a in step.accesses):
            resources = {r.table: r for r in self.rules.resources}
            step.accesses = tuple(
                replace(a, owner=facts.owner(resources[a.table], a.key, step.person)) if a.owner is None else a
                for a in step.accesses
            )


class _Served:
    """Whom the conversation serves: who was identified first, unless the user then said that it was a mistake."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._persons: tuple[str, ...] = ()
        self._since = -1
        self._acts: list[int] = []  # messages with calls about persons, in order
        self._taken_back = -1  # the latest message that may say that an identity was wrong

    @property
    def person(self) -> str | None:
        return self._persons[0] if self._persons else None

    def hear(self, text: str, index: int) -> None:
        """Note who the user says they are, where the policy takes their word for it."""
        pattern = self._transcript.rules.told_person
        if pattern is not None and not self._persons and (said := search(pattern, text)) is not None:
            self._persons, self._since = (said,), index
        if may_correct_identity(text):
            self._taken_back = index

    def take(self, step: AuditedCall) -> tuple[str, ...]:
        """Note whom a call identified; who of them is another than the one served."""
        record, rules = step.record, self._transcript.rules
        if record.kind != "generic" and record.call.name not in rules.open_tools:
            self._acts.append(record.index)
        if record.call.name not in rules.auth_tools:
            return ()
        asked = record.call.arguments.get(rules.person)
        persons = (asked,) if isinstance(asked, str) else persons_in(record.result, rules.person)
        if not persons:
            return ()
        others = tuple(p for p in persons if p not in self._persons)
        if not self._persons or (others == persons and self._corrected(record.index)):
            self._persons, self._since = persons, record.index
            return ()
        if len(persons) > len(others):  # one of several namesakes, or the same person again
            self._persons = tuple(p for p in self._persons if p in persons)
            return ()
        return others

    def _corrected(self, index: int) -> bool:
        """Whether the user took back who they are, before anything was done for the first one."""
        if bisect_right(self._acts, self._since) < bisect_left(self._acts, index):
            return False
        return self._taken_back > self._since


def _asked(question: Callable[[Any], Any], occasion: Any) -> Any:
    """An author's answer; None where a malformed record or argument keeps it from being given."""
    try:
        return question(occasion)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None


def _kind(kind_of: KindOf, name: str) -> str:
    try:
        return kind_of(name)
    except Exception:  # an unknown tool of the user's: it wrote nothing
        return "generic"


def transcript_of(
    episode: Episode,
    task: Task | None = None,
    *,
    domain: Domain | None = None,
    rules: AuditRules | None = None,
    kind_of: KindOf | None = None,
    beside: bool = False,
) -> Transcript:
    """The transcript of an episode, with the rules that its domain's class declares if no others are given."""
    if rules is None:
        rules = rules_for(domain)
    return Transcript(episode, task, rules, kind_of or kinds_by(rules, domain), domain, beside)
