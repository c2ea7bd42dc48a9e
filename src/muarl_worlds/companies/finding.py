"""How plans find in the documents what holds: by searches as any agent makes them, and by reading what they show."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muarl.domains.kit.plan import Plan
from muarl_worlds.companies.company import TODAY
from muarl_worlds.companies.rules import DocumentedRule, Procedure, procedure_that_holds, rule_that_holds
from muarl_worlds.companies.trades import Trade
from muarl_worlds.companies.wording import procedure_title, reader, rule_query, table_title

_LONG = re.compile(r"^\d+\. (?P<title>.*)\n   ID: (?P<id>.*)\n   Score: .*\n   Content: ", re.MULTILINE)
_BRIEF = re.compile(r"^\[(?P<id>\w+)\] (?P<title>[^.\n]*)\. ", re.MULTILINE)


def shown_documents(result: str) -> Iterator[tuple[str, str, str]]:
    """(id, title, text) of the documents that a search shows."""
    for layout in (_LONG, _BRIEF):
        found = list(layout.finditer(result))
        for number, one in enumerate(found):
            end = found[number + 1].start() if number + 1 < len(found) else len(result)
            yield one["id"], one["title"], result[one.end() : end]


def find_rule(it: Plan, trade: Trade, topic: str, product: str, group: str) -> DocumentedRule | None:
    """The rule that holds for a customer of this group, as far as searches show it; None if they show none.

    The second search is for a table, which a product's own documents may leave a topic to.
    """
    found = _rules(it, trade, rule_query(product, topic))
    if not any(r.topic == topic and r.product == product and r.source == "terms" and not r.group for r in found):
        found += _rules(it, trade, table_title(topic, trade.families[trade.family(product)]))
    return rule_that_holds(found, topic, product, group, TODAY)


def _rules(it: Plan, trade: Trade, query: str) -> list[DocumentedRule]:
    shown = shown_documents(str(it.look("KB_search", query=query)))
    return [rule for document in shown for rule in reader(trade).rules(*document)]


def find_procedure(it: Plan, trade: Trade, operation: str, product: str) -> Procedure | None:
    """The procedure that holds for an operation with a product; None if the search shows none."""
    family = trade.family(product)
    query = procedure_title(trade.operation(operation).title, family)
    shown = shown_documents(str(it.look("KB_search", query=query)))
    found = [p for document in shown if (p := reader(trade).procedure(*document)) is not None]
    return procedure_that_holds(found, operation, family, TODAY)
