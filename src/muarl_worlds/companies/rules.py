"""The rules of a company as data: what its documents are written from, and what is read back from them.

A ``DocumentedRule`` gives one topic of one product a value; a ``Procedure`` says how an operation is carried out for a
family of products. Several may speak of the same thing: ``rule_that_holds`` and ``procedure_that_holds`` say which one
counts. The generator, the expert's plans and the audit decide by these two functions only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Source = Literal["terms", "bulletin", "leaflet"]
RANKS: dict[Source, int] = {"leaflet": 0, "terms": 1, "bulletin": 2}
"""Which kind of document holds where they differ: the higher."""
Mode = Literal["call", "give", "transfer"]
"""How an operation is carried out: by a tool of the agent's, by one that the customer is given, by a person."""
Role = Literal["contract", "fee", "amount", "target", "code"]


@dataclass(frozen=True)
class DocumentedRule:
    """The value of a topic for a product: a number, or the name of a product.

    ``since``: the first day on which it holds; ``until``: the last one, empty: no end. ``group``: the customers for
    whom it is an exception; empty: it is for all. ``document``: the id of the document that says it.
    """

    topic: str
    product: str
    value: int | str
    since: str
    until: str = ""
    source: Source = "terms"
    group: str = ""
    document: str = ""


@dataclass(frozen=True)
class Procedure:
    """How an operation is carried out for a family of products.

    ``tool``: the discoverable tool; empty where a person does it. ``arguments``: what each of its arguments is called,
    by role. ``code``: the value of the argument of that role.
    """

    operation: str
    family: str
    since: str
    mode: Mode
    tool: str = ""
    arguments: tuple[tuple[Role, str], ...] = ()
    code: str = ""
    document: str = ""

    def named(self, values: dict[Role, object]) -> dict[str, object]:
        """The tool's arguments, from their values by role."""
        return {name: self.code if role == "code" else values[role] for role, name in self.arguments}


def rule_that_holds(
    rules: Iterable[DocumentedRule], topic: str, product: str, group: str, today: str
) -> DocumentedRule | None:
    """The rule that holds today for a customer of this group, None if there is none.

    An exception for the group holds before what is for all; then a bulletin before the terms, and the terms before a
    leaflet; then the later one. What is not in force yet, and what has run out, does not count.
    """
    found = [
        rule
        for rule in rules
        if rule.topic == topic
        and rule.product == product
        and rule.group in ("", group)
        and rule.since <= today
        and (not rule.until or today <= rule.until)
    ]
    return max(found, key=lambda rule: (bool(rule.group), RANKS[rule.source], rule.since), default=None)


def procedure_that_holds(procedures: Iterable[Procedure], operation: str, family: str, today: str) -> Procedure | None:
    """The latest procedure in force today, None if there is none."""
    found = [p for p in procedures if p.operation == operation and p.family == family and p.since <= today]
    return max(found, key=lambda procedure: procedure.since, default=None)
