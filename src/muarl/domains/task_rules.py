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
    """A gold call that the policy does not allow as it is. ``why``: half a sentence. ``instead``: the arguments that
    the policy asks for where they follow from the database, else None."""

    why: str
    instead: Arguments | None = None


@dataclass(frozen=True)
class OpenChoice:
    """Something about a call that only the user can decide.

    ``name``: what is chosen, for the finding. ``tools``: the calls that it is about. ``others``: the other arguments
    with which the call would serve the same request, each with what tells it from the gold one ("credit_card_123
    instead of paypal_456"); none where the scenario (``Occasion.said``) settles the matter. ``settle``: the sentence
    which, added to the scenario, settles it as the gold call has it. ``weight``: of the finding.
    """

    name: str
    tools: frozenset[str]
    others: Callable[[Occasion], Iterable[tuple[Arguments, str]]]
    settle: Callable[[Occasion], str | None] = lambda occasion: None
    weight: Literal["warning", "note"] = "warning"
    tried: bool = True


@dataclass(frozen=True)
class Claim:
    """Something that a user may claim and on which the policy's answer depends, such as an illness.

    ``tool``: the call that is or is not allowed by it; all of its arguments but ``key`` are missing. ``says``: how a
    user would claim it; ``denies``: the sentence which, added to a scenario, settles that it is not so. ``settled``: a
    pattern that a scenario holds which settles it. ``wanted``: a pattern of scenarios in which the call is at stake.
    """

    name: str
    tool: str
    key: str
    says: str
    denies: str
    settled: re.Pattern[str]
    wanted: re.Pattern[str]


@dataclass(frozen=True)
class Workaround:
    """Another way that the policy leaves to a user whose request it refuses, such as an upgrade before the change.

    ``table``: of the records that it is about, where ``applies(record)`` holds, in tasks whose gold actions call none
    of ``tools``. ``wanted``: a pattern of scenarios that ask for what is refused; ``settled``: of those that say
    whether the user would go the other way. ``about``: what the policy allows. ``denies``: the sentence that rules it
    out.
    """

    name: str
    table: str
    tools: frozenset[str]
    applies: Callable[[Record], bool]
    wanted: re.Pattern[str]
    settled: re.Pattern[str]
    about: str
    denies: str


@dataclass(frozen=True)
class TaskRules:
    """What a check of a domain's tasks must know.

    ``breaches``: by tool, how a gold call breaks the policy in a way that audits do not look at (too much charged, an
    exchange for the same item). ``forbids``: by tool, what audits forbid only in some environments. ``choices``,
    ``claims``, ``workarounds``: what the scenario must settle. ``people``: the table of persons, with the dotted field
    of each thing that a scenario may say of its user: "email", "zip", "first_name", "last_name", "dob". ``payments``:
    the field of a person's record with the payment methods.
    """

    breaches: Mapping[str, Callable[[Occasion], Breach | None]] = field(default_factory=dict)
    forbids: Mapping[str, Forbids] = field(default_factory=dict)
    choices: tuple[OpenChoice, ...] = ()
    claims: tuple[Claim, ...] = ()
    workarounds: tuple[Workaround, ...] = ()
    people: tuple[str, Mapping[str, str]] | None = None
    payments: str = "payment_methods"

    @property
    def declared(self) -> bool:
        """Whether anything is declared."""
        return self != NO_TASK_RULES


NO_TASK_RULES = TaskRules()


def field_of(record: Record, path: str) -> Any:
    """A field by its dotted path; None where there is none."""
    found: Any = record
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def words_for(method: Record) -> tuple[str, ...]:
    """The words that tell a payment method: its id, kind, brand, last digits (as they would stand in a text)."""
    kind = str(method.get("source", "")).replace("_", " ")
    found = [str(method.get("id", "")), kind, str(method.get("brand", "")), str(method.get("last_four", ""))]
    if kind == "gift card":
        found += ["giftcard", "gc"]
    if kind == "credit card":
        found += ["cc", "credit"]
    if kind == "certificate":
        found += ["voucher"]
    if method.get("brand") == "mastercard":
        found.append("master card")
    return tuple(w.lower() for w in found if w)


def says(text: str, words: Sequence[str]) -> set[str]:
    """Those of the words that a text holds, as whole words in whatever case; a plural counts."""
    low = text.lower()
    return {w for w in words if re.search(rf"(?<![\w-]){re.escape(w)}s?(?![\w])", low)}


def settles(text: str, chosen: Record, other: Record) -> bool:
    """Whether a text tells the chosen payment method from another one."""
    mine, theirs = says(text, words_for(chosen)), says(text, words_for(other))
    return bool(mine - theirs)
