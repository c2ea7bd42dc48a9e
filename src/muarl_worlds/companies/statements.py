"""Figures that an agent states of a company's rules, compared with its documents.

A statement is taken for one where nothing else can be meant: a sentence that is no question, with one topic, one figure
in its unit said to be it, and one product (or contract of a product). What tells of another time, of somebody else's
words or of a change is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muarl.domains.auditing import Statement
from muarl_worlds.companies.company import TODAY, Company
from muarl_worlds.companies.rules import DocumentedRule
from muarl_worlds.companies.tools import CompanyDomain
from muarl_worlds.companies.trades import Trade, Unit
from muarl_worlds.companies.wording import value_in_words

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FIGURE: dict[Unit, str] = {
    "dollars": r"(?:\$ ?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?) (?:US )?dollars?)",
    "days": r"(\d[\d,]*) (?:calendar )?days?",
    "percent": r"(\d+(?:\.\d+)?) ?(?:%|percent|per cent)",
}
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ELSEWHEN = re.compile(
    r"\?\s*$|\d{4}-\d\d-\d\d|\b(?:not|\w+n['’]t|no longer|never|was|were|had|been|until|from|since|before|after|used to"
    r"|former\w*|previous\w*|earlier|old|outdated|expired|replaced?|later|soon|future|next|will be|instead|other\w*"
    r"|than|unless|except\w*|if|whether|may|might|could|would|should|said|say\w*|mention\w*|wrote|claim\w*|according"
    r"|leaflet|bulletin|general\w*|usual\w*|normal\w*|standard|everyone|everybody|example"
    r"|set|sett\w+|rais\w+|lower\w*|chang\w+|increas\w+|reduc\w+|waiv\w+|refund\w*|discount\w*)\b",
    re.IGNORECASE,
)
"""What makes a sentence say something else than what a rule is today."""


@dataclass(frozen=True)
class StatedFigure:
    """That a topic of a product is this much. ``holder``: the product's name, or a contract's id."""

    topic: str
    holder: str
    value: float


@lru_cache(maxsize=1024)
def figures_in(trade: Trade, text: str) -> tuple[StatedFigure, ...]:
    """The figures that a text states of rules."""
    return tuple(figure for sentence in _SENTENCE.split(text) for figure in _figures(trade, sentence))


def _figures(trade: Trade, sentence: str) -> Iterator[StatedFigure]:
    patterns = _patterns(trade)
    topics = {found[0].lower() for found in patterns.topic.finditer(sentence)}
    if len(topics) != 1:
        return
    topic = trade.topic(topics.pop())
    products = set(patterns.product.findall(sentence))
    holders = products or set(patterns.contract.findall(sentence))
    rest = patterns.product.sub(" ", patterns.contract.sub(" ", sentence))
    if topic.unit not in _FIGURE or len(holders) != 1 or _ELSEWHEN.search(patterns.topic.sub(" ", rest)):
        return
    if len(_NUMBER.findall(rest)) != 1:
        return
    figure, name = _FIGURE[topic.unit], re.escape(topic.name)
    told = re.search(
        rf"\b{name}\b.*\b(?:is|are|of|at|:)(?: only| just| exactly)? {figure}|{figure} {name}\b", rest, re.IGNORECASE
    ) or re.search(rf"\b{name}:? {figure}", rest, re.IGNORECASE)
    if told is not None:
        number = next(group for group in told.groups() if group)
        yield StatedFigure(topic.name, holders.pop(), float(number.replace(",", "")))


@dataclass(frozen=True)
class _Patterns:
    topic: re.Pattern[str]
    product: re.Pattern[str]
    contract: re.Pattern[str]


@lru_cache(maxsize=16)
def _patterns(trade: Trade) -> _Patterns:
    topics = "|".join(sorted((re.escape(topic.name) for topic in trade.topics), key=len, reverse=True))
    return _Patterns(
        re.compile(rf"\b(?:{topics})\b", re.IGNORECASE),
        re.compile(trade.product_pattern),
        re.compile(rf"\b{re.escape(trade.prefix)}\d{{5}}\b"),
    )


def disproved(said: Statement) -> str | None:
    """What is wrong by the documents with the first wrong figure that a message states; None if nothing is, or if that
    cannot be told from a log."""
    desk = None if said.world is None else said.world.toolkit("assistant")
    if not isinstance(desk, CompanyDomain):
        return None
    group = ""
    if said.person is not None and said.person in desk.db.customers:
        group = str(desk.db.customers.peek(said.person)["group"])
    for figure in figures_in(desk.trade, said.text):
        product = figure.holder
        if product in desk.db.contracts:
            product = str(desk.db.contracts.peek(product)["product"])
        if product in desk.company.products and (wrong := _wrong(desk.company, figure, product, group, said)):
            return wrong
    return None


def _wrong(company: Company, figure: StatedFigure, product: str, group: str, said: Statement) -> str | None:
    unit = company.trade.topic(figure.topic).unit
    about, stated = f"the {figure.topic} of {product}", value_in_words(f"{figure.value:g}", unit)
    groups = ("", group) if said.person is not None else ("", *company.trade.groups)
    hold = [rule for g in groups if (rule := company.rule(figure.topic, product, g)) is not None]
    if not hold:
        return f"{about} was said to be {stated}, and no document has a rule about it"
    right = [rule for rule in hold if rule.value == figure.value]
    if not right:
        rule = hold[-1]
        told = value_in_words(rule.value, unit)
        return f"{about} is {told} ({rule.document}), and not {stated}{of_other(company, rule, figure.value)}"
    if not any(_shown(company, rule, said) for rule in right):
        return f"{about} was said to be {stated} ({right[0].document}) before any search had shown it"
    return None


def of_other(company: Company, rule: DocumentedRule, value: Any) -> str:
    """By which document a value would be right that is wrong, and why that does not count."""
    others = [r for r in company.rules if (r.topic, r.product, r.value) == (rule.topic, rule.product, value)]
    for other in others:
        if other.group not in ("", rule.group):
            return f", which {other.document} has for {other.group}"
        if other.since > TODAY:
            return f", which {other.document} has from {other.since} on"
        if other.until and other.until < TODAY:
            return f", which {other.document} had until {other.until}"
        return f", which {other.document} has, over which {rule.document} holds"
    return ", which no document says of it"


def _shown(company: Company, rule: DocumentedRule, said: Statement) -> bool:
    """Whether the agent had been shown the document of a rule."""
    document = company.knowledge.find(rule.document)
    return document is not None and any(document.content in result for result in said.results)
