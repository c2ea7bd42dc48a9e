"""A company: its products, the rules and procedures of its documents, and the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muarl.retrieval.documents import Document, Knowledge
from muarl_worlds.companies.rules import DocumentedRule, Procedure, procedure_that_holds, rule_that_holds
from muarl_worlds.companies.trades import Trade

TODAY = "2026-03-14"


@dataclass(frozen=True)
class CompanySize:
    """How large a company is. ``documents``: how many it has; ``brands``, ``families`` and ``tiers``: of which its
    products are made; ``known``: how many companies training knows. ``top_k``: how many documents a search shows;
    ``brief``: whether a document rules one topic in few words. ``extra``: the share of rules of which there is a second
    document: an old version, a later one, a bulletin, a leaflet or an exception."""

    name: str
    documents: int
    brands: int
    families: int
    tiers: int
    known: int
    top_k: int
    brief: bool = False
    extra: float = 0.35


COMPANY_SIZES = {
    size.name: size
    for size in (
        CompanySize("tiny", 50, brands=2, families=2, tiers=2, known=24, top_k=2, brief=True, extra=0.5),
        CompanySize("small", 150, brands=3, families=3, tiers=2, known=12, top_k=10),
        CompanySize("full", 700, brands=13, families=3, tiers=3, known=6, top_k=10, extra=0.2),
    )
}


@dataclass(frozen=True, eq=False)
class Company:
    """A company. ``rules`` and ``procedures``: all that its documents say, whether it holds or not."""

    key: str
    name: str
    trade: Trade
    size: CompanySize
    products: tuple[str, ...]
    rules: tuple[DocumentedRule, ...]
    procedures: tuple[Procedure, ...]
    documents: tuple[Document, ...] = field(repr=False, default=())

    @cached_property
    def knowledge(self) -> Knowledge:
        """The documents with their indexes, which all worlds of the company share."""
        return Knowledge(self.documents)

    @cached_property
    def tools(self) -> Mapping[str, Procedure]:
        """The discoverable tools, also those of procedures that do not hold any more."""
        return {p.tool: p for p in self.procedures if p.tool}

    @cached_property
    def contested(self) -> frozenset[str]:
        """The products of which several documents say something on one topic."""
        matters = Counter((rule.topic, rule.product) for rule in self.rules)
        return frozenset(product for (_, product), count in matters.items() if count > 1)

    def rule(self, topic: str, product: str, group: str = "") -> DocumentedRule | None:
        """The rule that holds today."""
        return rule_that_holds(self.rules, topic, product, group, TODAY)

    def procedure(self, operation: str, family: str) -> Procedure | None:
        """The procedure that holds today."""
        return procedure_that_holds(self.procedures, operation, family, TODAY)
