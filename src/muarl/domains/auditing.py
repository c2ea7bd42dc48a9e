"""What a domain's author declares for audits (``muarl.audit``): who is who, what belongs to whom, required information.

Nothing here looks at a conversation. Where a domain declares nothing, audits ask what can be asked of any domain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from muarl import moved
from muarl.basics.errors import ConfigError
from muarl.basics.patterns import matches, problem_of
from muarl.basics.untrusted import parse_json
from muarl.domains.policy_numbers import RuleNumbers, numbers_of
from muarl.types.chat import Message, Requestor, ToolCall

if TYPE_CHECKING:
    from muarl.domains.tasks import Task

When = Literal["before", "after", "around"]
Weight = Literal["note", "violation"]
Record = Mapping[str, Any]
Sighting = tuple[str, str, Record]
"""Table, key, and the record as a tool has shown it."""


@dataclass(frozen=True)
class Resource:
    """A kind of record that belongs to one person."""

    table: str
    """The records' table in the database."""
    key: str
    """The field of a record that holds its id."""
    owner: str = ""
    """The record's field that names the person."""
    held: tuple[str, str] | None = None
    """Where the record does not say who owns it, (table of persons, field with the ids that a person has)."""
    arguments: tuple[str, ...] = ()
    """The arguments of tools that name one (``key`` alone, if none are given)."""
    pattern: str = r"\S+"
    """What such a value looks like, where arguments name several kinds of things."""
    mark: str = ""
    """A field by which such a record is told from others that hold the same id."""

    def __post_init__(self) -> None:
        if not self.owner and self.held is None:
            raise ConfigError(f"audit: the resource {self.table!r} needs owner or held, which say whose it is")

    def named(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """The ids of such records that a call's arguments name."""
        fields = spelled_out(arguments)
        for name in self.arguments or (self.key,):
            value = fields.get(name)
            for one in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(one, str) and matches(self.pattern, one):
                    yield one


@dataclass(frozen=True)
class Obligation:
    """Something that must be said."""

    name: str
    """For the finding ("unsaid-NAME")."""
    tools: frozenset[str]
    """Tools whose successful calls oblige."""
    text: str
    """Required information, for people and judges."""
    say: tuple[str, ...] = ()
    """Regular expressions (case does not count); the agent's words must hold a match of each. None: no pattern can
    tell, and only a judge is asked."""
    when: When = "around"
    """"before" the call, "after" it, or "around" it (either)."""
    applies: Callable[[Occasion], bool] | None = None
    """Whether it obliges on this occasion."""
    or_value: bool = False
    """Whether words will do as well that name a value of the call's arguments."""
    weight: Weight = "violation"
    """The weight of the finding."""
    rule: RuleNumbers = None
    """The numbers of the policy's rules that it stands for."""

    def __post_init__(self) -> None:
        numbers_of(self.rule, f"audit: the obligation {self.name!r}")
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", self.name):
            raise ConfigError(f"audit: the obligation {self.name!r} must be named in lower case with dashes")
        for pattern in self.say:
            if (problem := problem_of(pattern)) is not None:
                raise ConfigError(f"audit: {self.name}: {pattern!r} is no regular expression: {problem}")


def spelled_out(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call's arguments, those that are JSON objects in text replaced by their fields: a discoverable tool gets its
    arguments within those of another tool, and how they are spaced does not matter."""
    spelled: dict[str, Any] = {}
    for name, value in arguments.items():
        inner = None
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                inner = parse_json(value)
            except ValueError:
                inner = None
        spelled |= inner if isinstance(inner, dict) else {name: value}
    return spelled


class LiveWorld(Protocol):
    """What an audit may ask of a world (``domains.base.World``): one side's toolkit, to look into."""

    def toolkit(self, side: Requestor) -> Any: ...


@dataclass(frozen=True)
class Occasion:
    """A successful call of the agent's, and what is known at the moment before it."""

    call: ToolCall
    record: Callable[[str, str], Record | None]
    """``record(table, key)``: a record as it then was, by the database or by what tools had shown, None if unknown."""
    person: str | None = None
    """Who was authenticated."""
    said: str = ""
    """All that the user had said."""
    calls: tuple[ToolCall, ...] = ()
    """The agent's successful calls before."""
    world: LiveWorld | None = None
    """The live world at that moment, None where there is only a log: look, and change nothing."""
    shown: Callable[[str, Mapping[str, Any]], Any] = lambda tool, arguments: None
    """``shown(tool, arguments)``: what such a call answered before, as JSON or text, None if it was not made."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The call's arguments."""
        return self.call.arguments

    def of(self, table: str, argument: str) -> Record | None:
        """The record that an argument of the call names."""
        value = self.arguments.get(argument)
        return self.record(table, value) if isinstance(value, str) else None


Forbids = Callable[[Occasion], str | None]
"""Why the policy forbids a write that went through all the same, in half a sentence; None if it does not, or if that
cannot be told. It may raise what a malformed record makes it raise (KeyError, TypeError, ValueError...)."""


Grounded = Callable[["Task", LiveWorld, Sequence[Message]], Iterable[bool]]
"""Of a finished conversation, given its task and world: for each write and answer that hangs on documents, whether it
is what the document that holds says."""


@dataclass(frozen=True)
class Statement:
    """A message of the agent's to the user, and what is known at that moment."""

    text: str
    person: str | None = None
    """Who was authenticated."""
    results: tuple[str, ...] = ()
    """What the agent's calls had answered before."""
    world: LiveWorld | None = None
    """As in ``Occasion``."""


@dataclass(frozen=True)
class UserQuestion:
    """Something that a user has asked."""

    about: str
    """What, in a few words."""
    answer: str
    """What the agent's words must hold."""


Asks = Callable[["Task", Sequence[str]], Iterable[UserQuestion]]
"""Of a task and all messages of its user to the agent: what the user has asked, and must be told. It may raise as
``Forbids`` may."""

Disproves = Callable[[Statement], str | None]
"""What is wrong with what a message states, in a sentence; None if nothing is, or if that cannot be told. It may raise
as ``Forbids`` may."""


@dataclass(frozen=True)
class AuditRules:
    """What an audit must know of a domain. Calls of kind "generic" are always open."""

    auth_tools: frozenset[str] = frozenset()
    """A successful call of one of them establishes who the user is, and returns the user's id, by itself or as the
    field ``person``, which is also the argument of other tools that names whose data are meant."""
    open_tools: frozenset[str] = frozenset()
    """Reads that anybody may make, because they show no user's data."""
    transfer_tools: frozenset[str] = frozenset({"transfer_to_human_agents"})
    """Tools that hand the user to a person."""
    consent: bool = True
    """Whether users are to be asked before a write, all but the ``free_writes``."""
    person: str = "user_id"
    free_writes: frozenset[str] = frozenset()
    resources: tuple[Resource, ...] = ()
    """What belongs to whom."""
    forbids: Mapping[str, Forbids] = field(default_factory=dict)
    """By writing tool, why the policy forbids it."""
    authority: Mapping[str, Forbids] = field(default_factory=dict)
    """By writing tool, what the agent may not do alone and nobody has approved."""
    obligations: Sequence[Obligation] = ()
    """What must be said."""
    asks: Asks | None = None
    """What must be said to users who ask for it."""
    disproves: Disproves | None = None
    """What is wrong with what a message states (see there)."""
    spoken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By tool, further words for its action ("add" for refuel_data)."""
    wished: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By tool, further words with which people ask for it, or for what it fixes ("no service")."""
    trusted_tools: frozenset[str] = frozenset()
    """Tools whose results may give the agent instructions, such as a knowledge base."""
    search_tools: frozenset[str] = frozenset()
    """Tools that search documents."""
    grounded: Grounded | None = None
    """Which of the writes and answers that hang on documents go by those that hold."""
    one_person: bool = True
    """A conversation serves one person."""
    told_person: str | None = None
    """Where the policy lets users say who they are, what such an id looks like."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Tool to "read", "write" or "generic", for logs without a domain."""
    learns: Callable[[ToolCall, Any], Iterable[Sighting]] | None = None
    """What a result (parsed JSON, or text) shows beyond the records of ``resources``, which are found by themselves."""
    replays: bool = False
    """Whether a world made from the task can be brought to the state before each call, because tools depend on nothing
    else."""
    declared: bool = True
    """False where nobody has said what holds, so that an audit by these rules reassures of nothing."""

    def for_tools(self, names: Collection[str]) -> AuditRules:
        """These rules restricted to the tools that a domain really has; without auth tools that check is off."""
        return replace(self, auth_tools=self.auth_tools & frozenset(names))

    def alone(self) -> AuditRules:
        """These rules for an agent that works without a user: it has nobody to ask, to identify or to tell."""
        return replace(self, consent=False, obligations=(), auth_tools=frozenset())


UNDECLARED = AuditRules(declared=False)
"""The rules of a domain of which nothing is known."""

NO_CONSENT = AuditRules(consent=False)
"""For domains whose users say at once what is to be done, so that no consent is asked for (BFCL, ACEBench)."""

HANDOVER_NOTICE = Obligation(
    "handover-notice",
    frozenset({"transfer_to_human_agents"}),
    "The customer must be told that they are being transferred to a human agent, after the call.",
    (r"transferr|human agent|connect(?:ing|ed)? you|hand(?:ing|ed)? (?:you|this) over|specialist|colleague",),
    when="after",
)
"""What the policies of TAU2's domains ask of whoever hands a customer over."""

_READS = re.compile(
    r"^(?:get|list|find|search|look|lookup|check|show|view|fetch|read|query|describe|count|verify|identify|is|has|can)"
    r"(?:_|(?=[A-Z])|$)"
)
_GENERIC = re.compile(r"^(?:calculate|think|transfer|hand|escalate|done|respond|wait|note)(?:_|(?=[A-Z])|$)")


def guessed_kind(name: str) -> str:
    """What a tool's name lets one guess: "get_order" reads, "calculate" is generic, everything else writes."""
    if _GENERIC.match(name):
        return "generic"
    return "read" if _READS.match(name) else "write"


moved.keep_old_names(__name__)
