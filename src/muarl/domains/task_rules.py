"""What a domain's author declares for checks of its tasks (``muarl tasks check``), beyond what audits must know.

An audit judges what an agent did; a check of tasks judges what a task says is right, and whether its scenario settles
it. Where a domain declares nothing, only what holds for any domain is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from muarl.domains.auditing import Forbids, Occasion, Record

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Breach:
    """A gold call that the policy does not allow as it is."""

    why: str
    """Half a sentence."""
    instead: Arguments | None = None
    """The arguments that the policy asks for where they follow from the database, else None."""


@dataclass(frozen=True)
class OpenChoice:
    """Something about a call that only the user can decide."""

    name: str
    """What is chosen, for the finding."""
    tools: frozenset[str]
    """The calls that it is about."""
    others: Callable[[Occasion], Iterable[tuple[Arguments, str]]]
    """The other arguments with which the call would serve the same request, each with what tells it from the gold one
    ("credit_card_123 instead of paypal_456"); none where the scenario (``Occasion.said``) settles the matter."""
    settle: Callable[[Occasion], str | None] = lambda occasion: None
    """The sentence which, added to the scenario, settles it as the gold call has it."""
    weight: Literal["warning", "note"] = "warning"
    """The weight of the finding."""
    tried: bool = True


@dataclass(frozen=True)
class Claim:
    """Something that a user may claim and on which the policy's answer depends, such as an illness."""

    name: str
    tool: str
    """The call that is or is not allowed by it; all of its arguments but ``key`` are missing."""
    key: str
    says: str
    """How a user would claim it."""
    denies: str
    """The sentence which, added to a scenario, settles that it is not so."""
    settled: re.Pattern[str]
    """A pattern that a scenario holds which settles it."""
    wanted: re.Pattern[str]
    """A pattern of scenarios in which the call is at stake."""


@dataclass(frozen=True)
class Workaround:
    """Another way that the policy leaves to a user whose request it refuses, such as an upgrade before the change."""

    name: str
    table: str
    """The table of the records that it is about, where ``applies(record)`` holds."""
    tools: frozenset[str]
    """Tools that none of a task's gold actions calls."""
    applies: Callable[[Record], bool]
    wanted: re.Pattern[str]
    """A pattern of scenarios that ask for what is refused."""
    settled: re.Pattern[str]
    """A pattern of those that say whether the user would go the other way."""
    about: str
    """What the policy allows."""
    denies: str
    """The sentence that rules it out."""


@dataclass(frozen=True)
class TaskRules:
    """What a check of a domain's tasks must know."""

    breaches: Mapping[str, Callable[[Occasion], Breach | None]] = field(default_factory=dict)
    """By tool, how a gold call breaks the policy in a way that audits do not look at (too much charged, an exchange for
    the same item)."""
    forbids: Mapping[str, Forbids] = field(default_factory=dict)
    """By tool, what audits forbid only in some environments."""
    choices: tuple[OpenChoice, ...] = ()
    """What the scenario must settle."""
    claims: tuple[Claim, ...] = ()
    """What the scenario must settle."""
    workarounds: tuple[Workaround, ...] = ()
    """What the scenario must settle."""
    people: tuple[str, Mapping[str, str]] | None = None
    """The table of persons, with the dotted field of each thing that a scenario may say of its user: "email", "zip",
    "first_name", "last_name", "dob"."""
    payments: str = "payment_methods"
    """The field of a person's record with the payment methods."""

    @property
    def declared(self) -> bool:
        """Whether anything is declared."""
        return self != NO_TASK_RULES


NO_TASK_RULES = TaskRules()


def field_of(record: Record, path: str) -> Any:
    """A field by its dotted path; None where there is none."""
    value: Any = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def words_for(method: Record) -> tuple[str, ...]:
    """The words that tell a payment method: its id, kind, brand, last digits (as they would stand in a text)."""
    kind = str(method.get("source", "")).replace("_", " ")
    words = [str(method.get("id", "")), kind, str(method.get("brand", "")), str(method.get("last_four", ""))]
    if kind == "gift card":
        words += ["giftcard", "gc"]
    if kind == "credit card":
        words += ["cc", "credit"]
    if kind == "certificate":
        words += ["voucher"]
    if method.get("brand") == "mastercard":
        words.append("master card")
    return tuple(w.lower() for w in words if w)


def says(text: str, words: Sequence[str]) -> set[str]:
    """Those of the words that a text holds, as whole words in whatever case; a plural counts."""
    low = text.lower()
    return {w for w in words if re.search(rf"(?<![\w-]){re.escape(w)}s?(?![\w])", low)}


def settles(text: str, chosen: Record, other: Record) -> bool:
    """Whether a text tells the chosen payment method from another one."""
    mine, theirs = says(text, words_for(chosen)), says(text, words_for(other))
    return bool(mine - theirs)
