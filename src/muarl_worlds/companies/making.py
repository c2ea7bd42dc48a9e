"""A company from a seed: its products, rules, procedures, and the documents that say them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.kit.people import shift
from muarl.retrieval.bm25 import BM25Search
from muarl_worlds.companies import wording, writing
from muarl_worlds.companies.company import COMPANY_SIZES, TODAY, Company, CompanySize
from muarl_worlds.companies.rules import DocumentedRule, Mode, Procedure, Role
from muarl_worlds.companies.trades import Operation, Topic, Trade

ATTEMPTS = 200
TINY_BRANDS = 6
"""From how many brands those of tiny companies are taken, so that a tiny tokenizer knows all their products."""
PARAMETERS: Mapping[Role, Sequence[str]] = {
    "contract": ("{}_id", "{}_number", "{}_ref"),
    "fee": ("fee", "charge_usd", "cost"),
    "amount": ("amount", "new_amount", "limit_usd"),
    "target": ("product", "new_product", "target"),
    "code": ("code", "reason_code", "form"),
}
"""What the arguments of a company's tools are called, by role; companies differ in it."""
ROLES_OF: Mapping[str, tuple[Role, ...]] = {
    "charge": ("contract", "fee", "code"),
    "amount": ("contract", "amount", "code"),
    "wait": ("contract", "code"),
    "switch": ("contract", "target", "code"),
}
"""The arguments of an operation's tool, by the operation's kind."""


def company_key(size: str, number: int, *, known: bool) -> str:
    """What a company is called in databases: ``known``, whether training meets it."""
    return f"{size}-{'known' if known else 'new'}-{number}"


@lru_cache(maxsize=128)
def company(trade: Trade, key: str) -> Company:
    """The company of a key, such as "tiny-known-3"; the same one each time. ConfigError if that is no key."""
    size, _, rest = key.partition("-")
    if size not in COMPANY_SIZES or not rest:
        raise ConfigError(f"{trade.name}: company {key!r}: write SIZE-known-NUMBER or SIZE-new-NUMBER, such as "
                          f"tiny-known-3; the sizes are {', '.join(COMPANY_SIZES)}")  # fmt: skip
    for attempt in range(ATTEMPTS):
        made = _Making(trade, key, COMPANY_SIZES[size], attempt).made()
        if _is_searchable(made):
            return made
    raise ConfigError(f"{trade.name}: company {key}: none of {ATTEMPTS} could be searched: let documents differ more")


def _is_searchable(made: Company) -> bool:
    """Whether the search for a rule or a procedure shows every document that speaks of it."""
    wanted: dict[str, set[str]] = defaultdict(set)
    titles = {document.id: document.title for document in made.documents}
    for rule in made.rules:
        table = wording.table_title(rule.topic, made.trade.families[made.trade.family(rule.product)])
        is_table = titles[rule.document] == table
        wanted[table if is_table else wording.rule_query(rule.product, rule.topic)].add(rule.document)
    for procedure in made.procedures:
        title = made.trade.operation(procedure.operation).title
        wanted[wording.procedure_title(title, procedure.family)].add(procedure.document)
    search = BM25Search(made.knowledge)
    return all(
        documents <= {hit.document.id for hit in search.search(query, made.size.top_k)}
        for query, documents in wanted.items()
    )


class _Making:
    """The making of one company."""

    def __init__(self, trade: Trade, key: str, size: CompanySize, attempt: int) -> None:
        self.trade, self.key, self.size = trade, key, size
        self.rng = random.Random(f"company {trade.name} {key} {attempt}")
        self.used: set[str] = set()
        self.taken: dict[tuple[str, str], set[Any]] = {}
        self.dates: dict[str, str] = {}

    def made(self) -> Company:
        trade, size, rng = self.trade, self.size, self.rng
        name = f"{rng.choice(trade.places)} {rng.choice(trade.endings)}"
        brands = rng.sample(trade.brands[:TINY_BRANDS] if size.brief else trade.brands, size.brands)
        families = rng.sample(list(trade.families), size.families)
        tiers = rng.sample(trade.tiers, size.tiers)
        products = tuple(f"{b} {f} {t}" for b in brands for f in families for t in tiers)
        procedures = [p for operation in self._operations() for f in families for p in self._procedures(operation, f)]
        rules = [rule for topic in self._topics() for rule in self._rules(topic, products)]
        places = {rule.document for rule in rules}
        room = size.documents - len(places) - len(procedures) - OTHERS
        for rule in rng.sample(rules, int(len(rules) * size.extra)):
            if room > 1:
                more = self._second(rule, products)
                rules, room = [*rules, *more], room - len(more)
        bare = Company(self.key, name, trade, size, products, tuple(rules), tuple(procedures))
        return writing.documented(bare, rng)

    def _operations(self) -> list[Operation]:
        chosen = self.trade.tiny_operations if self.size.brief else ()
        return [o for o in self.trade.operations if not chosen or o.name in chosen]

    def _topics(self) -> list[Topic]:
        if not self.size.brief:
            return list(self.trade.topics)
        needed = [o.topic for o in self._operations()]
        return [topic for topic in self.trade.topics if topic.name in needed]

    # rules

    def _rules(self, topic: Topic, products: Sequence[str]) -> list[DocumentedRule]:
        found: list[DocumentedRule] = []
        there = [p for p in products if not topic.optional or self.rng.random() < 0.7]
        tables = [f for f in self.trade.families if not self.size.brief and self.rng.random() < TABLES]
        for product in there:
            family = self.trade.family(product)
            place = f"table|{topic.name}|{family}" if family in tables else f"sheet|{product}|{topic.sheet}"
            place = f"alone|{topic.name}|{product}" if self.size.brief else place
            value, since = self._value(topic, product, products), self._date_of(place)
            found.append(DocumentedRule(topic.name, product, value, since, document=place))
        return found

    def _value(self, topic: Topic, product: str, products: Sequence[str]) -> int | str:
        """A value that no other rule for the same product has: who goes by the wrong document is found out."""
        values: Sequence[Any] = topic.values
        if topic.unit == "product":
            values = [p for p in products if self.trade.family(p) == self.trade.family(product)]
        taken = self.taken.setdefault((topic.name, product), {product})
        left = [value for value in values if value not in taken]
        chosen: int | str = self.rng.choice(left or values)
        taken.add(chosen)
        return chosen

    def _second(self, rule: DocumentedRule, products: Sequence[str]) -> list[DocumentedRule]:
        """A second document on the same matter, or a third."""
        topic = self.trade.topic(rule.topic)
        sorts = ["old", "later", "bulletin", "past", "leaflet", "group", "group", "group"]
        count = 1 if self.size.brief or self.rng.random() < 0.7 else 2
        if rule.document.startswith("table"):  # which searches for the product would not show beside them
            sorts = sorts[2:]
        chosen = self.rng.sample(sorts[: -3 if topic.unit == "product" else None], count)
        if len({"group" if one == "group" else "all" for one in chosen}) > 1 or chosen[1:] == ["group"]:
            chosen = chosen[:1]
        found: list[DocumentedRule] = []
        for sort in chosen:
            value = self._value(topic, rule.product, products)
            other = replace(rule, value=value, document=f"alone|{topic.name}|{rule.product}|{sort}")
            if sort == "old":
                found.append(replace(other, since=self._date("old")))
            elif sort == "later":
                found.append(replace(other, since=self._date("later")))
            elif sort in ("bulletin", "past"):
                since, until = self._date(sort), self._date(f"{sort} until")
                found.append(replace(other, since=since, until=until, source="bulletin"))
            elif sort == "leaflet":
                found.append(replace(other, since=self._date("leaflet"), source="leaflet"))
            else:
                found.append(replace(other, group=self.rng.choice(self.trade.groups)))
        return found

    def _date_of(self, place: str) -> str:
        """When the terms of a document are in force since."""
        if place not in self.dates:
            self.dates[place] = self._date("terms")
        return self.dates[place]

    def _date(self, sort: str) -> str:
        """A date: few different ones in tiny companies."""
        first, last = DATES[sort]
        return shift(TODAY, first if self.size.brief else self.rng.randint(min(first, last), max(first, last)))

    # procedures

    def _procedures(self, operation: Operation, family: str) -> list[Procedure]:
        modes: tuple[Mode, ...] = (*CALL_MOSTLY, "give", "transfer")
        mode = self.rng.choice(modes)
        found = [self._procedure(operation, family, self._date("terms"), mode)]
        if self.rng.random() < (0.3 if self.size.brief else 0.5):
            old: Mode = self.rng.choice(["call", "call", "give"])
            found.append(self._procedure(operation, family, self._date("old"), old))
        return found

    def _procedure(self, operation: Operation, family: str, since: str, mode: Mode) -> Procedure:
        if mode == "transfer":
            return Procedure(operation.name, family, since, mode)
        contract = self.trade.contract.split(" ")[-1]
        named = tuple((role, self._pick(PARAMETERS[role]).format(contract)) for role in ROLES_OF[operation.kind])
        code = f"{operation.code}-{self._number(1)}"
        return Procedure(operation.name, family, since, mode, f"{operation.stem}_{self._number(4)}", named, code)

    def _pick(self, several: Sequence[str]) -> str:
        return self.rng.choice(several)

    def _number(self, digits: int) -> str:
        """A number that no other tool or code of the company has."""
        while True:
            if digits == 1:
                return str(self.rng.randint(2, 9))
            number = str(self.rng.choice(TINY_NUMBERS) if self.size.brief else self.rng.randint(1000, 9999))
            if number not in self.used:
                self.used.add(number)
                return number


DATES: Mapping[str, tuple[int, int]] = {
    "terms": (-300, -100),
    "old": (-900, -400),
    "later": (60, 300),
    "bulletin": (-60, -5),
    "bulletin until": (90, 300),
    "past": (-500, -400),
    "past until": (-200, -20),
    "leaflet": (-95, -10),
}
"""When what a document says begins, or ends: days from today, at first and at last."""
TINY_NUMBERS = tuple(random.Random("tool numbers of tiny companies").sample(range(1000, 9999), 60))
CALL_MOSTLY: tuple[Mode, ...] = ("call",) * 8
OTHERS = 8
"""At least so many documents rule nothing, one of which says which of the others hold."""
TABLES = 0.15
"""How often the rules of a topic stand in one table for a family of products."""
