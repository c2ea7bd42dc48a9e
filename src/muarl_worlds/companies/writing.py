"""The documents of a company, written from its rules and procedures; the rest rules nothing."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.retrieval.markdown import MarkdownDocument
from muarl_worlds.companies import wording
from muarl_worlds.companies.company import Company
from muarl_worlds.companies.rules import DocumentedRule, Procedure
from muarl_worlds.companies.trades import OperationKind

ORDER = (
    "What is ruled for a group of customers holds for them before what is ruled for all. A bulletin holds over the "
    "terms from its first day to its last, and terms hold over a leaflet. Of two terms the later one holds, once it is "
    "in force."
)
"""What holds where documents differ; ``rules.rule_that_holds`` decides by it."""


NEEDS: Mapping[OperationKind, str] = {
    "charge": "What is charged",
    "amount": "The most that can be set",
    "wait": "How long one must wait",
    "switch": "What it can become",
}
"""What a procedure leaves to the topic of its operation."""


@dataclass
class _Page:
    """A document before it has its number."""

    title: str
    content: str
    rules: Sequence[DocumentedRule] = ()
    procedure: Procedure | None = None

    @property
    def dates(self) -> tuple[str, str]:
        """Its first and its last day, as far as it has them."""
        if self.procedure is not None:
            return self.procedure.since, ""
        return (self.rules[0].since, self.rules[0].until) if self.rules else ("", "")


def documented(company: Company, rng: random.Random) -> Company:
    """The company with its documents, whose order and numbers tell nothing, and with rules and procedures that name
    theirs. ValueError if there are more than its size says."""
    pages = [*_Writer(company, rng).pages()]
    if len(pages) > company.size.documents:
        raise ValueError(f"{company.key}: {len(pages)} documents, and the size has {company.size.documents}")
    rng.shuffle(pages)
    documents, rules, procedures = [], [], []
    for number, page in enumerate(pages, 1):
        id_ = f"D{number:0{len(str(len(pages)))}d}"
        since, until = page.dates
        documents.append(MarkdownDocument(id_, page.title, page.content, effective_from=since, effective_until=until))
        rules += [replace(rule, document=id_) for rule in page.rules]
        procedures += [] if page.procedure is None else [replace(page.procedure, document=id_)]
    return replace(company, rules=tuple(rules), procedures=tuple(procedures), documents=tuple(documents))


class _Writer:
    def __init__(self, company: Company, rng: random.Random) -> None:
        self.company, self.trade, self.rng = company, company.trade, rng
        self.brief = company.size.brief
        self.dates: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for rule in company.rules:
            if rule.source == "terms":
                self.dates[rule.topic, rule.product, rule.group].append(rule.since)

    def pages(self) -> Iterable[_Page]:
        """All documents: those with rules, those with procedures, and others until there are enough."""
        found = [*self._sheets(), *map(self._procedure, self.company.procedures), self._order()]
        return [*found, *self._others(self.company.size.documents - len(found), {page.title for page in found})]

    # rules

    def _sheets(self) -> Iterable[_Page]:
        by_place: dict[str, list[DocumentedRule]] = defaultdict(list)
        for rule in self.company.rules:
            by_place[rule.document].append(rule)
        for place, rules in by_place.items():
            sort, _, rest = place.partition("|")
            if sort == "table":
                yield self._table(rules)
            elif sort == "sheet":
                yield self._sheet(rest.split("|")[1], rules)
            else:
                yield self._alone(rules[0])

    def _table(self, rules: Sequence[DocumentedRule]) -> _Page:
        topic, family = rules[0].topic, self.trade.families[self.trade.family(rules[0].product)]
        unit = self.trade.topic(topic).unit
        rows = [
            wording.ROW.format(product=r.product, value=wording.value_in_words(r.value, unit))
            for r in self.rng.sample(rules, len(rules))
        ]
        title = wording.table_title(topic, family)
        return _Page(title, self._text(title, self._header(rules[0]), wording.TABLE.format(topic=topic), *rows), rules)

    def _sheet(self, sheet: str, rules: Sequence[DocumentedRule]) -> _Page:
        title = f"{rules[0].product} {sheet}"
        sentences = [self._sentence(rule) for rule in rules]
        return _Page(title, self._text(title, self._header(rules[0]), *self._mixed(sentences)), rules)

    def _alone(self, rule: DocumentedRule) -> _Page:
        sort = {"terms": "", "bulletin": " bulletin", "leaflet": " leaflet"}[rule.source]
        title = f"{rule.product} {rule.topic}{sort}{f' for {rule.group}' if rule.group else ''}"
        return _Page(title, self._text(title, self._header(rule), *self._mixed([self._sentence(rule)])), [rule])

    def _header(self, rule: DocumentedRule) -> str:
        header = wording.HEADERS[rule.source].format(since=rule.since, until=rule.until)
        older = [since for since in self.dates[rule.topic, rule.product, rule.group] if since < rule.since]
        return f"{header} {wording.REPLACES.format(since=max(older))}" if older and rule.source == "terms" else header

    def _sentence(self, rule: DocumentedRule) -> str:
        value = wording.value_in_words(rule.value, self.trade.topic(rule.topic).unit)
        templates = wording.EXCEPTIONS if rule.group else wording.RULES
        template = templates[0] if self.brief else self.rng.choice(templates)
        return template.format(topic=rule.topic, product=rule.product, value=value, group=rule.group)

    # procedures and the rest

    def _procedure(self, procedure: Procedure) -> _Page:
        operation = self.trade.operation(procedure.operation)
        title = wording.procedure_title(operation.title, procedure.family)
        header = wording.PROCEDURE_HEADER.format(since=procedure.since)
        steps = [wording.step(procedure, self.trade.contract, operation.topic)]
        if not self.brief:
            needs = NEEDS[operation.kind]
            steps.insert(0, f"{needs} stands under the {operation.topic} of the product.")
        return _Page(title, self._text(title, header, *self._mixed(steps)), procedure=procedure)

    def _order(self) -> _Page:
        title = "Which document holds"
        return _Page(title, self._text(title, ORDER))

    def _others(self, count: int, taken: set[str]) -> Iterable[_Page]:
        """Documents that rule nothing, each with a title of its own."""
        made = 0
        while made < count:
            subject = self.rng.choice(self.trade.subjects)
            number = self.rng.randint(1, 99)
            title = self.rng.choice(
                (f"{subject}", f"{subject}, note {number}", f"{subject} in {self.rng.choice(self.trade.places)}")
            )
            if title in taken:
                continue
            taken.add(title)
            made += 1
            several = 2 if self.brief else self.rng.randint(4, 9)
            yield _Page(title, self._text(title, *self.rng.sample(self.trade.remarks, several)))

    # texts

    def _mixed(self, sentences: Sequence[str]) -> list[str]:
        """Sentences among remarks, where documents are not brief."""
        if self.brief:
            return list(sentences)
        remarks = self.rng.sample(self.trade.remarks, self.rng.randint(3, 6))
        found = [*sentences, *remarks]
        self.rng.shuffle(found)
        return found

    def _text(self, title: str, *parts: str) -> str:
        return f"{title}. {' '.join(parts)}" if self.brief else "\n".join([title, "", *parts])
