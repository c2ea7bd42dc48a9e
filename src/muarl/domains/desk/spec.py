"""What a scenario's ``intents.yaml`` says, read and checked: slots, intents, and the procedure that serves each.

The classes below describe the file's sections, and domains/scenarios has five examples. References begin with a dollar
sign (``$order.total``): slots, records that a step has looked up, ``$caller`` and ``$today``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from muarl.domains.desk.values import Kind, Kinds, built_in, name_kind, pattern_kind, word_kind
from muarl.errors import DataError

PLACE = re.compile(r"\{([\w.]+)(?:\|(\w+))?\}")
"""A place in a text that a value fills: ``{order}``, ``{o.total|money}``."""


class Part(BaseModel):
    """A part of the file: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _expression(text: str) -> str:
    """A regular expression that can be compiled. ValueError says what is wrong with it."""
    try:
        re.compile(text)
    except re.error as problem:
        raise ValueError(f"{text!r} is no regular expression: {problem}") from None
    return text


Expression = Annotated[str, AfterValidator(_expression)]


class KindSpec(Part):
    """A kind of value. ``pattern``: its form; ``names``: a vocabulary of the domain; ``words``: values and the wordings
    that callers have for each. ``own``: agents have a wording of their own, the value's name."""

    pattern: Expression | None = None
    names: str | None = None
    words: Mapping[str, tuple[str, ...]] | None = None
    own: bool = False

    @model_validator(mode="after")
    def _one(self) -> KindSpec:
        if sum(v is not None for v in (self.pattern, self.names, self.words)) != 1:
            raise ValueError("give exactly one of pattern, names and words")
        return self


class Draw(Part):
    """Where a slot's value comes from in a made world.

    ``rows``: a table's name, or a reference to records (``$order.items``; slots that were drawn from records stand for
    them). ``via``: the reference is an id of this table, and ``path`` names the records within that one. ``field``:
    what of the record is the value; ``own``: only the caller's own records; ``where``: a condition on the record.

    Or ``days``: a date so many days from today; ``values``: one of these. Nothing: any of the kind's.
    """

    rows: str | None = None
    via: str | None = None
    path: str | None = None
    field: str | None = None
    own: bool = False
    where: Mapping[str, Any] = Field(default_factory=dict)
    days: tuple[int, int] | None = None
    values: tuple[Any, ...] = ()


class Described(Part):
    """How a caller who does not have an id speaks of a record: by another of its fields, which is a value of ``kind``.

    ``phrase``: in a clause. ``say``: as an answer. The agent finds it with a look-up: ``look`` and ``with``, the
    records in ``list``, by the field ``match``; its id is in ``id``. ``cue``: as for slots. ``always``: callers never
    know the id.
    """

    kind: str
    phrase: str
    say: tuple[str, ...]
    look: str
    args: Mapping[str, Any] = Field(alias="with")
    list: str
    match: str
    id: str
    cue: Expression | None = None
    always: bool = False


class Slot(Part):
    """One detail of a request.

    ``ask``: the agent's questions. ``asked``: a regular expression that finds such a question in any agent's words.
    ``phrase``: how the value stands in a clause; ``say``: the caller's answers; ``change``: what a caller says who
    wants another value now (none: never changed). ``cue`` and ``after``: what stands right before or behind the value,
    where several slots have the same kind. ``strict``: it counts only so, or as the answer to a question.
    """

    kind: str
    ask: tuple[str, ...]
    asked: Expression
    phrase: str = "{}"
    say: tuple[str, ...] = ("{}.", "It's {}.", "{}, please.")
    change: tuple[str, ...] = ()
    cue: Expression | None = None
    after: Expression | None = None
    strict: bool = False
    draw: Draw = Draw()
    described: Described | None = None


VERBS = ("look", "pick", "refuse", "transfer", "unavailable", "answer", "write")


class Step(Part):
    """One step of a procedure; exactly one of ``VERBS``.

    look     call a reading tool (``with`` its arguments) and keep the result ``as`` a name
    pick     keep ``as`` this name the record of the list ``from`` that fits ``where``
    refuse   say why it is against the rules, ``when`` (or ``unless``) a condition holds
    transfer hand over with this summary, on a condition or always
    unavailable  a slot that must be chosen anew, on a condition; ``offer`` says what there is
    answer   tell the caller something; ``tell``: the values that must be said
    write    propose, wait for a yes, call the tool (``with``) and say that it is done

    ``pick`` without a match: ``unavailable`` names the slot to choose anew, ``offer`` the field of the other records to
    offer (those that fit ``among``); else ``refuse`` says why not.
    """

    look: str | None = None
    pick: str | None = None
    refuse: str | None = None
    transfer: str | None = None
    unavailable: str | None = None
    answer: tuple[str, ...] | None = None
    write: str | None = None
    args: Mapping[str, Any] = Field(default_factory=dict, alias="with")
    name: str | None = Field(None, alias="as")
    source: str | None = Field(None, alias="from")
    where: Mapping[str, Any] = Field(default_factory=dict)
    among: Mapping[str, Any] = Field(default_factory=dict)
    offer: str | None = None
    when: Mapping[str, Any] | None = None
    unless: Mapping[str, Any] | None = None
    tell: tuple[str, ...] = ()
    propose: tuple[str, ...] = ()
    done: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """Which of ``VERBS`` it is; "pick" may come with "unavailable" or "refuse"."""
        given = [v for v in VERBS if getattr(self, v) is not None]
        return "pick" if "pick" in given else given[0]

    def names(self) -> Iterator[str]:
        """The names of slots and records that it refers to."""
        given = [self.source, self.args, self.where, self.among, self.when, self.unless, self.tell]
        offered = [self.offer] if self.unavailable is not None and self.pick is None else []
        yield from (text[1:].split(".")[0] for text in _texts([*given, *offered]) if text.startswith("$"))
        yield from (path.split(".")[0] for path in [*(self.when or {}), *(self.unless or {})])
        said = [self.refuse, self.transfer, self.answer, self.propose, self.done, self.tell]
        yield from (place.split(".")[0] for text in _texts(said) for place, _ in PLACE.findall(text))

    @model_validator(mode="after")
    def _whole(self) -> Step:
        given = {v for v in VERBS if getattr(self, v) is not None}
        if len(given) != 1 and not ("pick" in given and given <= {"pick", "unavailable", "refuse"} and len(given) == 2):
            raise ValueError(f"a step has exactly one of {', '.join(VERBS)}; this one has {sorted(given) or 'none'}")
        if self.pick is not None and self.source is None:
            raise ValueError("pick needs from: the list to pick out of")
        if self.write is not None and not (self.propose and self.done):
            raise ValueError("write needs propose and done: what to say before and after it")
        return self


def _texts(value: Any) -> Iterator[str]:
    """All texts within a value, keys of mappings left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


class Intent(Part):
    """One thing that callers want.

    ``share``: its weight among first requests. ``say``: clauses that follow "I want to"; each may leave out slots that
    are told later. ``because``: sentences that a talkative caller adds. ``heard``: a regular expression by which either
    side recognises the intent in the other's words. ``slots``: names, in the order in which they are told.
    """

    share: float = Field(gt=0)
    say: tuple[str, ...] = Field(min_length=1)
    heard: Expression
    because: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)

    @property
    def question(self) -> bool:
        """Whether it only asks for something to be told."""
        return all(s.write is None for s in self.steps) and any(s.answer is not None for s in self.steps)


class IdentityField(Part):
    """A fact that identifies the caller.

    ``field``: of the caller's record; ``asked``: as for slots; ``wrong``: callers may get it wrong at first.
    """

    kind: str
    asked: Expression
    field: str
    wrong: bool = False


class Identity(Part):
    """How callers are identified: ``tool``, with ``fields`` as arguments, finds the caller in ``table``.

    ``id``: the field of their id. ``ask`` and ``retry``: the agent's questions, at first and when nobody was found.
    ``say``: the caller's answers, each with all fields. ``parts``: a sentence for each field, for scenario texts.
    """

    tool: str
    table: str
    id: str
    fields: Mapping[str, IdentityField]
    ask: tuple[str, ...]
    retry: tuple[str, ...]
    say: tuple[str, ...]
    parts: Mapping[str, str]


class Spec(Part):
    """A whole ``intents.yaml``. ``about``: what kind of place the caller calls, for scenario texts. ``outside``: topics
    that only a person can help with. ``open_tools``: reads that show no caller's data. ``tiny_tools``: the tools of the
    tiny size, none: all of them.
    """

    about: str
    today: str
    identify: Identity
    kinds: Mapping[str, KindSpec] = Field(default_factory=dict)
    slots: Mapping[str, Slot]
    intents: Mapping[str, Intent]
    outside: tuple[str, ...] = Field(min_length=1)
    open_tools: tuple[str, ...] = ()
    tiny_tools: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Spec:
        for name, intent in self.intents.items():
            for slot in intent.slots:
                if slot not in self.slots:
                    raise ValueError(f"intents.{name}.slots: there is no slot {slot!r}")
            for clause in intent.say:
                for place, _ in PLACE.findall(clause):
                    if place not in intent.slots:
                        raise ValueError(f"intents.{name}.say: {clause!r} speaks of {place!r}, which is no slot of it")
            known = {"caller", "today", "result", *intent.slots}
            for number, step in enumerate(intent.steps):
                unknown = [n for n in step.names() if n not in known | {step.name}]
                if unknown:
                    raise ValueError(f"intents.{name}.steps.{number}: nothing before it is called {unknown[0]!r}")
                known |= {step.name or step.pick or step.look or ""}
        return self


class Script:
    """A spec with its vocabulary: what the generator, the caller and the expert of a scenario work from."""

    def __init__(self, name: str, spec: Spec, vocabulary: Mapping[str, tuple[str, ...]], first_names: tuple[str, ...]):
        self.name, self.spec, self.vocabulary = name, spec, vocabulary
        made: dict[str, Kind] = built_in(spec.today, first_names)
        for kind, given in spec.kinds.items():
            if given.pattern is not None:
                made[kind] = pattern_kind(kind, given.pattern)
            elif given.words is not None:
                made[kind] = word_kind(kind, given.words)
            elif given.names is not None and given.names in vocabulary:
                made[kind] = name_kind(kind, vocabulary[given.names])
            else:
                raise DataError(f"{name}: kinds.{kind}.names: the domain has no vocabulary {given.names!r}")
        self.kinds = Kinds(made)
        for where, kind in self._used_kinds():
            if kind not in made:
                raise DataError(f"{name}: {where}: there is no kind {kind!r}; there are {', '.join(made)}")
        self.heard = {n: re.compile(i.heard, re.IGNORECASE) for n, i in spec.intents.items()}
        self.asked = {n: re.compile(s.asked, re.IGNORECASE) for n, s in spec.slots.items()}
        self.asked_identity = {n: re.compile(f.asked, re.IGNORECASE) for n, f in spec.identify.fields.items()}

    def _used_kinds(self) -> Iterator[tuple[str, str]]:
        for name, slot in self.spec.slots.items():
            yield f"slots.{name}.kind", slot.kind
            if slot.described is not None:
                yield f"slots.{name}.described.kind", slot.described.kind
        for name, field in self.spec.identify.fields.items():
            yield f"identify.fields.{name}.kind", field.kind

    @cached_property
    def cues(self) -> Mapping[str, re.Pattern[str]]:
        """Slots, and "described NAME", with the pattern that must stand right before their value."""
        found = {n: s.cue for n, s in self.spec.slots.items() if s.cue is not None}
        for name, slot in self.spec.slots.items():
            if slot.described is not None and slot.described.cue is not None:
                found[f"described {name}"] = slot.described.cue
        return {n: re.compile(rf"(?:{cue})\s*$", re.IGNORECASE) for n, cue in found.items()}

    @cached_property
    def tails(self) -> Mapping[str, re.Pattern[str]]:
        """Slots with the pattern that must stand right behind their value."""
        found = {n: s.after for n, s in self.spec.slots.items() if s.after is not None}
        return {n: re.compile(rf"\s*(?:{tail})", re.IGNORECASE) for n, tail in found.items()}

    def intents_with(self, tools: Collection[str]) -> tuple[str, ...]:
        """The intents that need none but these tools."""
        return tuple(name for name in self.spec.intents if self._tools(name) <= set(tools))

    def _tools(self, intent: str) -> set[str]:
        steps, slots = self.spec.intents[intent].steps, self.spec.intents[intent].slots
        used = {s.look or s.write or "" for s in steps} - {""}
        return used | {how.look for s in slots if (how := self.spec.slots[s].described) is not None}

    def say(self, slot: str, value: Any, rng: Any = None) -> str:
        """A slot's value as a caller says it."""
        return self.kinds[self.spec.slots[slot].kind].say(value, rng)

    def show(self, slot: str, value: Any) -> str:
        """A slot's value as an agent says it."""
        kind = self.spec.kinds.get(self.spec.slots[slot].kind)
        return str(value) if kind is not None and kind.own else self.say(slot, value)


def read_spec(path: Path) -> Spec:
    """Read an ``intents.yaml``. DataError names file and field."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise DataError(f"{path} cannot be read as YAML: {problem}") from None
    if not isinstance(data, dict):
        raise DataError(f"{path} must hold sections: about, today, identify, slots, intents, outside")
    try:
        return Spec.model_validate(data)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {where}: {first['msg']}") from None
