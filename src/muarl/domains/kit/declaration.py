"""What an author declares of a service: who its customers are, what they ask for, and how each request is served.

    BOOKING = Slot("booking", pattern("B-[0-9]{5}"), ask="Which booking is it?", draw=own("bookings", "booking_id"))

    @intent(says="cancel {booking}", slots=[BOOKING])
    def cancel_booking(it: Plan) -> None:
        it.b = it.look("get_booking", booking_id=it.booking)
        it.refuse_if(it.b.rate == "saver", "booking {booking} was made at the saver rate, which cannot be cancelled")
        it.write("cancel_booking", booking_id=it.booking, propose="cancel booking {booking}", done="It is cancelled.")

Everything else follows from it (``service.Service``): tasks with gold actions, the scripted expert, the rule-based
user, the scenario for a language model that plays the user, audit rules, red-team tasks, the tiny tokenizer's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from muarl import moved
from muarl.basics.errors import ConfigError
from muarl.basics.patterns import problem_of
from muarl.domains.authoring import nearest
from muarl.domains.kit.device import Trouble
from muarl.domains.kit.mistakes import one_of_them
from muarl.domains.kit.people import shift
from muarl.domains.kit.records import PLACE, Record, plain
from muarl.domains.kit.records import rows as records_of
from muarl.domains.overlay import sampled
from muarl.language.values import ValueKind, name_kind, pattern_kind, word_kind

BuiltInKind = Literal[
    "date", "day_first", "birthdate", "time", "money", "euro", "pound", "number", "person", "address", "quoted"
]
Texts = str | Sequence[str]
"""One wording, or several of which one is drawn each time."""
RESERVED = (
    "user", "today", "result", "look", "pick", "refuse", "refuse_if", "refuse_unless", "transfer", "transfer_if",
    "unavailable", "unavailable_if", "missing", "answer", "write", "then", "peek", "do", "look_anew", "instruct",
)  # fmt: skip
"""What ``Plan`` and texts have a meaning for, and no slot can be called."""
BUILT_IN = get_args(BuiltInKind)


def several(texts: Texts) -> tuple[str, ...]:
    """Wordings as a tuple. ConfigError for what is no text."""
    wordings = (texts,) if isinstance(texts, str) or not isinstance(texts, Iterable) else tuple(texts)
    if wrong := [text for text in wordings if not isinstance(text, str)]:
        raise ConfigError(f"{wrong[0]!r} is no text: give one wording, or a list of several")
    return wordings


# kinds of values


def pattern(expression: str, *, exact: bool = False) -> ValueKind:
    """Values that their form tells, such as ids: a regular expression without groups. ``exact``: upper and lower case
    as it stands there, such as an airport's "MIA", which is not Mia."""
    _checked(expression, "pattern")
    return pattern_kind(expression, expression, exact=exact)


def names(choices: Iterable[str]) -> ValueKind:
    """Names of a closed list, such as dishes or doctors."""
    chosen = tuple(choices)
    if not chosen:
        raise ConfigError("names: the list is empty")
    return name_kind("/".join(chosen[:3]), chosen)


def words(wordings: Mapping[str, Texts], *, own: bool = False) -> ValueKind:
    """Values of a closed list, each with the wordings that users have for it. ``own``: agents say the value itself."""
    if not wordings:
        raise ConfigError("words: there is no value")
    return word_kind("/".join(list(wordings)[:3]), {k: several(v) for k, v in wordings.items()}, own=own)


# where a slot's value comes from


@dataclass(frozen=True)
class Draw:
    """The values that a slot may have in a made world."""

    records: Callable[[DrawContext], Iterable[Any]]
    """The values, see ``DrawContext``."""
    field: str | None = None
    """The field of each record, where that is the value."""
    own: bool = False
    """Only the user's own records (in refusals now and then somebody else's)."""
    values: tuple[Any, ...] = ()
    """The values of a fixed list."""
    table: str = ""
    """Where the records are from."""
    key: str = ""
    """The field with the records' ids."""
    mark: str = ""
    """See ``auditing.Resource``."""


@dataclass(frozen=True)
class DrawContext:
    """What a draw may look at. A slot that was drawn before is an attribute, its record where it was drawn from
    records."""

    tables: Record
    """The world's."""
    user: Record
    """The user's record."""
    today: str
    slots: Mapping[str, Any]
    owners: tuple[str, bool] | None = field(default=None, kw_only=True)
    """Whose records are asked for, where not everybody's: the field with their owner's id, and whether they are the
    user's (else those of all others). A draw need not leave the rest out: it is faster in large worlds if it does."""

    def wanted(self, rows: Iterable[Any]) -> list[Any]:
        """The rows of a table that may be among the records that are asked for."""
        if self.owners is None:
            return list(rows)
        key, users_own = self.owners
        user, matching = plain(self.user[key]), []
        for row in rows:
            try:
                if (row[key] == user) == users_own:
                    matching.append(row)
            except (LookupError, TypeError):  # whoever asked says what is wrong with it
                matching.append(row)
        return matching

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.slots:
            raise AttributeError(f"no slot {name!r} is drawn before; those before it: {', '.join(self.slots)}")
        return self.slots[name]


def rows(table: str, field: str | None = None) -> Draw:
    """A field of any record of a table."""
    return Draw(lambda drawn: _records(drawn, table), field, table=table)


def _records(drawn: DrawContext, table: str) -> Any:
    if table not in drawn.tables:
        raise ConfigError(f"there is no table {table!r}{one_of_them(table, drawn.tables)}")
    listed = plain(drawn.tables[table])
    if isinstance(listed, (Mapping, list, tuple)):
        user = str(next(iter(plain(drawn.user).values()), ""))
        listed = drawn.wanted(sampled(listed, user) if isinstance(listed, Mapping) else listed)
    return records_of(listed)


def own(table: str, field: str, *, key: str = "", mark: str = "") -> Draw:
    """A field of one of the user's own records of a table: those with the user's id in the field of the same name.
    Audits watch that nobody else's record is shown or changed.

    ``key``: the field with the record's id, where that is another one. ``mark``: a field by which such a record is told
    from others that hold the same id.
    """
    return Draw(lambda drawn: _records(drawn, table), field, own=True, table=table, key=key or field, mark=mark)


def of(records: Callable[[DrawContext], Iterable[Any]], field: str | None = None) -> Draw:
    """A field of the records that a function gives, such as ``of(lambda drawn: drawn.order.items, "name")``."""
    return Draw(lambda drawn: records_of(records(drawn)), field)


def one_of(*values: Any) -> Draw:
    """One of these values; one that is given twice is drawn twice as often."""
    return Draw(lambda drawn: values, values=values)


def days(first: int, last: int) -> Draw:
    """A date so many days from today."""
    if first > last:
        raise ConfigError(f"days({first}, {last}): the first day is after the last")
    return Draw(lambda drawn: [shift(drawn.today, n) for n in range(first, last + 1)])


# slots, intents, identification


@dataclass(frozen=True, kw_only=True)
class RecordDescription:
    """How a user who does not have an id speaks of a record: by another of its fields. The agent finds it with a
    look-up."""

    kind: ValueKind | BuiltInKind
    """The kind of the value of ``match``."""
    match: str
    """The field by which the user speaks of the record."""
    phrase: str
    """How the value stands in a clause."""
    say: Texts
    """The value as an answer."""
    id: str = ""
    """The field of the look-up's records with their id."""
    look: str = ""
    """The tool with which the agent finds the record."""
    records: str = ""
    """The field of the tool's answer with the records; empty: they are the answer."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The tool's arguments, each a field of the user's record."""
    find: Callable[[Any, str], Sequence[Any]] | None = None
    """Where one such look-up is not enough, a function of the plan and the description that gives the ids that fit;
    then nothing is said of ``look`` and the others."""
    cue: str | None = None
    """As for slots."""
    always: bool = False
    """Users never know the id."""
    share: float = 0.3
    """How often they do not have the id at hand. They have that of a record whose ``match`` is None."""

    def __post_init__(self) -> None:
        _kind_known(self.kind, "described")
        _checked(self.cue or "", "described: cue")
        _placed((self.phrase, *several(self.say)), "described")


@dataclass(frozen=True)
class Slot:
    """One detail of a request.

    How a question for it is known in any agent's words: it asks for one of the ``noun`` s (default: the slot's name) or
    is one of ``ask``; or else it has a match of the regular expression ``asked``.
    """

    name: str
    kind: ValueKind | BuiltInKind
    """The kind of its value."""
    ask: Texts
    """The agent's questions."""
    phrase: str = "{}"
    """How the value stands in a clause."""
    say: Texts = ("{}.", "It's {}.", "{}, please.")
    """The user's answers."""
    change: Texts = ()
    """What a user says who wants another value now (none: only which of their own records it is)."""
    draw: Draw | None = None
    """Where its value comes from; None: any of the kind."""
    described: RecordDescription | None = None
    """How users speak of it who do not have it at hand."""
    noun: Texts = ()
    asked: str = ""
    cue: str | None = None
    """A regular expression for what stands right before the value, where several slots have the same kind."""
    after: str | None = None
    """A regular expression for what stands right behind the value."""
    strict: bool = False
    """It counts only with ``cue`` or ``after``, or as the answer to a question."""
    guess: tuple[Any, ...] = ()
    """What a careless agent takes for granted (default: any of a short list of values)."""
    weighed: bool = True
    """Whether a proposal with another value is not what the user wants; not so for what proposals may leave out or
    replace, such as the flight that is to be changed."""
    wrong: bool = False
    """Users may get it wrong at first, and tell what is somebody else's."""

    def __post_init__(self) -> None:
        where = f"slot {self.name}"
        if not self.name.isidentifier() or self.name in RESERVED:
            raise ConfigError(f"slot {self.name!r}: the name must be an identifier, and none of {', '.join(RESERVED)}")
        _kind_known(self.kind, where)
        if not all(several(self.ask) or ("",)):
            raise ConfigError(f"{where}: ask: give a question with which the agent asks for it")
        for part in ("asked", "cue", "after"):
            _checked(getattr(self, part) or "", f"{where}: {part}")
        _placed((self.phrase, *several(self.say), *several(self.change)), where)
        if self.draw is None and (isinstance(self.kind, str) or not self.kind.choices):
            raise ConfigError(f"{where}: draw: say where its values come from: own(...), rows(...), one_of(...), ...")


PlanFunction = Callable[[Any], None]
"""A plan, which is given a ``Plan``."""


@dataclass(frozen=True)
class Intent:
    """One thing that users ask for; ``intent`` makes one of a plan."""

    name: str
    plan: PlanFunction
    """How the policy serves it, see ``Plan``."""
    says: tuple[str, ...]
    """Clauses that follow "I want to"; each may leave out slots that are told later."""
    slots: tuple[Slot, ...] = ()
    """Its slots, in the order in which they are told."""
    share: float = 1.0
    """Its weight among first requests."""
    because: tuple[str, ...] = ()
    """Sentences that a talkative user adds."""
    heard: str = ""
    """A regular expression by which either side knows the intent in the other's words; empty: by the words of
    ``says``."""
    told: str = ""
    """The clause for a language model that plays the user, where it should say more than the fullest of ``says``."""
    forbidden: bool = False
    """Whether the policy has nothing but refusals for it."""
    trouble: Trouble | None = None
    """What the user's own device must show in the end, for requests that are over once it does."""

    def __post_init__(self) -> None:
        where = f"intent {self.name}"
        if not self.says:
            raise ConfigError(f"{where}: says: give a clause that follows 'I want to'")
        if not self.name.isidentifier() or self.name == "outside":
            raise ConfigError(f"{where}: the name must be an identifier, and not 'outside'")
        if self.share <= 0:
            raise ConfigError(f"{where}: share must be above 0, not {self.share}")
        _checked(self.heard, f"{where}: heard")
        if wrong := [slot for slot in self.slots if not isinstance(slot, Slot)]:
            raise ConfigError(f"{where}: slots: {wrong[0]!r} is no Slot")
        slot_names = [slot.name for slot in self.slots]
        if twice := {name for name in slot_names if slot_names.count(name) > 1}:
            raise ConfigError(f"{where}: slots: {min(twice)} is there twice")
        for clause in (*self.says, self.told):
            for place, _ in PLACE.findall(clause):
                if place not in slot_names:
                    hint = one_of_them(place, slot_names)
                    raise ConfigError(f"{where}: says: {clause!r} speaks of {place!r}, which is no slot of it{hint}")

    def always_says(self, slot: str) -> bool:
        """Whether a user who says the whole request names this slot: the clauses with the most slots all have it."""
        places = [{place for place, _ in PLACE.findall(clause)} for clause in self.says]
        return all(slot in named for named in places if len(named) == max(map(len, places)))


def intent(
    *,
    says: Texts,
    slots: Sequence[Slot] = (),
    share: float = 1.0,
    because: Texts = (),
    heard: str = "",
    told: str = "",
    forbidden: bool = False,
    name: str = "",
    trouble: Trouble | None = None,
) -> Callable[[PlanFunction], Intent]:
    """Make an intent of the plan below it, whose name is the intent's; see ``Intent``."""

    def made(plan: PlanFunction) -> Intent:
        called = name or plan.__name__
        words = several(says), tuple(slots), share, several(because)
        return Intent(called, plan, *words, heard, told, forbidden, trouble)

    return made


@dataclass(frozen=True)
class Fact:
    """A fact by which users are identified: an argument of the tool that does it."""

    name: str
    kind: ValueKind | BuiltInKind
    tells: str
    """A sentence that gives it."""
    field: str = ""
    """The field of the user's record (default: the same name), such as "address.zip" for a field within one. A value
    that is an object, such as a name with its parts, gives the tool an argument for each of its fields."""
    wrong: bool = False
    """Users may get it wrong at first."""
    noun: Texts = ()
    """As for slots."""
    asked: str = ""
    """As for slots."""
    cue: str | None = None
    """What must stand before it where it was not asked for."""

    def __post_init__(self) -> None:
        _kind_known(self.kind, f"fact {self.name}")
        _checked(self.asked, f"fact {self.name}: asked")
        _checked(self.cue or "", f"fact {self.name}: cue")
        if [place for place, _ in PLACE.findall(self.tells)] != [self.name]:
            raise ConfigError(f"fact {self.name}: tells: {self.tells!r} must have one place, {{{self.name}}}")

    def of(self, user: Mapping[str, Any]) -> Any:
        """The fact from a user's record. KeyError with the field that it lacks."""
        value: Any = user
        for part in (self.field or self.name).split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise KeyError(part)
            value = value[part]
        return value


@dataclass(frozen=True, kw_only=True)
class Identity:
    """How users are identified."""

    tool: str
    """Finds the user in ``table``, with the facts as arguments. It answers with the user's record, or with nothing but
    the user's id. Empty: users are taken at their word, and what a plan knows of them are the facts, ``key`` among
    them."""
    table: str
    key: str
    """The field with their id, by which records belong to them."""
    facts: tuple[Fact, ...]
    ask: Texts
    """The agent's questions at first."""
    say: Texts
    """The user's answers, each with all facts."""
    retry: Texts = ("I could not find you by these details. Could you check them, please?",)
    """The agent's questions when nobody was found."""

    def __post_init__(self) -> None:
        if not self.facts:
            raise ConfigError("identity: facts: give at least one by which users are found")
        for text in several(self.say):
            if missing := [f.name for f in self.facts if f"{{{f.name}}}" not in text]:
                raise ConfigError(f"identity: say: {text!r} has no place {{{missing[0]}}}")
            names = [fact.name for fact in self.facts]
            if strange := [place for place, _ in PLACE.findall(text) if place not in names]:
                raise ConfigError(f"identity: say: {text!r} speaks of {strange[0]!r}, which is no fact")

    def arguments(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's arguments."""
        arguments: dict[str, Any] = {}
        for name, value in facts.items():
            arguments |= value if isinstance(value, Mapping) else {name: value}
        return arguments

    def found(self, answer: Any) -> Mapping[str, Any]:
        """What the tool's answer tells of the user."""
        return answer if isinstance(answer, Mapping) else {self.key: answer}


@dataclass(frozen=True)
class Remedy:
    """What an agent does by itself where tools refuse to work for the time being: it calls ``tool``, without arguments,
    and then tries again."""

    refused: str
    """A regular expression of what tools answer then."""
    tool: str

    def __post_init__(self) -> None:
        _checked(self.refused, f"remedy {self.tool}: refused")


def _checked(expression: str, where: str) -> None:
    if expression and (problem := problem_of(expression)) is not None:
        raise ConfigError(f"{where}: {expression!r} is no regular expression: {problem}")


def _kind_known(kind: object, where: str) -> None:
    if isinstance(kind, str) and kind not in BUILT_IN:
        raise ConfigError(
            f"{where}: kind: there is no {kind!r}; there are {', '.join(BUILT_IN)}, pattern(...), names(...) and "
            f"words(...){nearest(kind, list(BUILT_IN))}"
        )


def _placed(texts: Iterable[str], where: str) -> None:
    for text in texts:
        if "{}" not in text:
            raise ConfigError(f"{where}: {text!r} has no place for the value: write {{}} where it stands")


moved.keep_old_names(__name__)
