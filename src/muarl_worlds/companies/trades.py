"""What the author of a trade declares: its products, what its documents rule, and what its customers ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Unit = Literal["dollars", "days", "percent", "product"]
OperationKind = Literal["charge", "amount", "wait", "switch"]


@dataclass(frozen=True)
class Topic:
    """Something that documents rule for each product, such as a fee.

    ``name``: how documents and people call it. ``unit``: of its values; "product": it names another product.
    ``values``: those that it may have, each worth asking for: none is so small that it stands in any text. ``sheet``:
    the document of a product that has it. ``optional``: some products have no rule for it. ``wordings``: how customers
    call it.
    """

    name: str
    unit: Unit
    sheet: str
    values: Sequence[int] = ()
    optional: bool = False
    wordings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something that customers want done, by a tool that a document names.

    ``kind``: what its topic decides. "charge": a fee, which the tool is told; a product without one cannot have it
    done. "amount": the most that can be set. "wait": how many days a contract must have run. "switch": which product it
    can become. ``title``: the procedure's, behind "Procedure for", with a
    place for the {family} of products. ``stem``: of the tools' names. ``code``: of the
    procedures' codes. ``field`` and ``becomes``: what changes in the contract; None: to the amount or the product.
    ``says``, ``heard``, ``because``: of the intent; ``propose``, ``done``: of the write. ``doing``: as refusals put it.
    """

    name: str
    kind: OperationKind
    topic: str
    title: str
    stem: str
    code: str
    field: str
    becomes: str | None
    says: Sequence[str]
    heard: str
    because: Sequence[str]
    doing: str
    propose: Sequence[str]
    done: Sequence[str]
    share: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Trade:
    """A trade: companies of it differ in their products, rules, tools and documents.

    ``company``: what kind of company it is; ``contract``: what customers have there; ``prefix``: of its ids.
    ``places`` and ``brands``: of which names of companies and products are made. ``families``: kinds of product, with
    how documents call many of them. ``tiers``: what tells sister products apart. ``groups``: of customers, for whom
    there are exceptions. ``tiny_operations``: what a tiny model learns. ``remarks``: sentences that rule nothing, by
    which documents get their length; ``subjects``: of documents that rule nothing.
    """

    name: str
    company: str
    contract: str
    contracts: str
    prefix: str
    places: Sequence[str]
    endings: Sequence[str]
    brands: Sequence[str]
    families: dict[str, str]
    tiers: Sequence[str]
    groups: Sequence[str]
    topics: Sequence[Topic]
    operations: Sequence[Operation]
    tiny_operations: Sequence[str]
    remarks: Sequence[str]
    subjects: Sequence[str]
    outside: tuple[str, ...]

    @cached_property
    def product_pattern(self) -> str:
        """A regular expression of products, without groups: a brand, a family and a tier."""
        brands, families, tiers = (
            "|".join(map(re.escape, several)) for several in (self.brands, self.families, self.tiers)
        )
        return rf"(?:{brands}) (?:{families}) (?:{tiers})"

    @property
    def key(self) -> str:
        """The field with the id of a contract, such as "account_id"."""
        return f"{self.contract.split(' ')[-1]}_id"

    def topic(self, name: str) -> Topic:
        """The topic of that name. KeyError if there is none."""
        return next(topic for topic in self.topics if topic.name == name)

    def operation(self, name: str) -> Operation:
        """The operation of that name."""
        return next(operation for operation in self.operations if operation.name == name)

    def family(self, product: str) -> str:
        """The family that a product's name says."""
        return product.split(" ")[1]
