"""What audits must know of companies: whether what was done is what the documents say, and if not, by which document.

A call is compared with the rules that the documents were written from, so that a finding can name both the document
that holds and the one that the agent seems to have gone by. So is what stands in the database at the end, and what the
agent has told those who asked for a figure: of these the share that is right is a metric.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from muarl.domains.auditing import AuditRules, LiveWorld, Occasion
from muarl.domains.kit.audit import audit_rules, words_of
from muarl.domains.kit.service import Service
from muarl.domains.kit.worlds import Worlds
from muarl.domains.knowledge.discovery import CALL
from muarl.domains.tasks import Task
from muarl.types.chat import Message
from muarl_worlds.companies.company import Company
from muarl_worlds.companies.rules import Procedure, Role
from muarl_worlds.companies.statements import disproved, of_other
from muarl_worlds.companies.tools import GIVE, CompanyDomain
from muarl_worlds.companies.trades import Topic
from muarl_worlds.companies.wording import UNITS, value_in_words

NAMED_BY = {CALL: "agent_tool_name", GIVE: "discoverable_tool_name"}
"""By writing tool, the argument that names the tool which a document names."""
SPLIT = ("paid every",)
"""Words of proposals whose others stand behind a product's name: "have T-1, your ..., paid every quarter"."""


def company_audit(service: Service) -> AuditRules:
    """The rules by which conversations at the service desk of a company are audited."""
    assert issubclass(service.domain, CompanyDomain)
    operations = service.domain.trade.operations  # either tool may carry out any of them
    asked = words_of((text for o in operations for text in o.says), proposed=False)
    proposed = words_of((text for o in operations for text in (*o.says, *o.propose)), proposed=True)
    return replace(
        audit_rules(Worlds(service)),
        wished=dict.fromkeys(NAMED_BY, asked),
        spoken=dict.fromkeys(NAMED_BY, (*proposed, *SPLIT)),
        forbids={tool: partial(_forbidden, name) for tool, name in NAMED_BY.items()},
        disproves=disproved,
        grounded=_grounded,
    )


def _grounded(task: Task, world: LiveWorld, messages: Sequence[Message]) -> Iterator[bool]:
    """Whether each thing that was done, or given to the customer to do, is as the documents say; then each figure that
    the customer has asked for and been told."""
    desk = world.toolkit("assistant")
    if not isinstance(desk, CompanyDomain) or task.database is None:
        return
    company, tables = desk.company, task.database.tables
    contracts, customers = tables["contracts"], tables["customers"]

    def group(contract: Mapping[str, Any]) -> str:
        return str(customers[contract["customer_id"]]["group"])

    for _, order in desk.db.orders.scan():
        procedure, contract = company.tools[order["tool"]], contracts[order[company.trade.key]]
        values = {role: order[role] for role, _ in procedure.arguments if role in order}
        yield next(_faults(company, procedure, values, contract, group(contract)), None) is None
    said = [m.content for m in messages if m.role == "assistant" and m.content and not m.tool_calls]
    for request in (task.agenda or {}).get("requests", ()):
        contract = contracts.get(request["goal"].get("contract"))
        if request["kind"] == "ask" and contract is not None:
            topic = company.trade.topic(request["goal"]["topic"])
            rule = company.rule(topic.name, contract["product"], group(contract))
            if told := _told(said, topic, (contract["product"], contract[company.trade.key])):
                yield rule is not None and str(rule.value) in told


def _told(said: Sequence[str], topic: Topic, about: Sequence[str]) -> set[str]:
    """The figures in the last message that names the topic and has some of its unit, of those that also name what it is
    ``about`` if there are any."""
    figure = re.compile(re.escape(UNITS[topic.unit]).replace(r"\{\}", r"(\d+)(?:\.00)?") + r"(?!\.?\d)")
    names = (topic.name, *topic.wordings)
    told = [t for t in said if figure.search(t) and any(name in t.casefold() for name in names)]
    told = [t for t in told if any(one in t for one in about)] or told
    return set(figure.findall(told[-1])) if told else set()


def _forbidden(name: str, occasion: Occasion) -> str | None:
    """What is wrong with a call by the documents, None if nothing is, or if that cannot be told from a log."""
    desk = None if occasion.world is None else occasion.world.toolkit("assistant")
    if not isinstance(desk, CompanyDomain):
        return None
    company, contracts = desk.company, desk.db.contracts
    procedure = company.tools.get(str(occasion.arguments.get(name)))
    given = json.loads(occasion.arguments["arguments"])
    if procedure is None:
        return None
    values: dict[Role, Any] = {role: given[argument] for role, argument in procedure.arguments}
    contract = contracts.peek(values["contract"])
    customer = desk.db.customers.peek(contract["customer_id"])
    return next(_faults(company, procedure, values, contract, str(customer["group"])), None)


def _faults(
    company: Company, procedure: Procedure, values: Mapping[Role, Any], contract: Mapping[str, Any], group: str
) -> Iterator[str]:
    trade, product = company.trade, str(contract["product"])
    operation = trade.operation(procedure.operation)
    family = trade.family(product)
    valid = company.procedure(operation.name, family)
    if procedure.family != family:
        yield f"{procedure.tool} is for {procedure.family}, and {product} is not ({procedure.document})"
    elif valid != procedure:
        by = "no document" if valid is None else f"the document {valid.document} of {valid.since}"
        yield f"{procedure.tool} is of the document {procedure.document} of {procedure.since}, and {by} holds"
    elif "code" in values and values["code"] != procedure.code:
        yield f"the code is {procedure.code} ({procedure.document}), and not {values['code']}"
    rule = company.rule(operation.topic, product, group)
    if rule is None:
        yield f"no document has a rule about the {operation.topic} of {product}"
        return
    said = value_in_words(rule.value, trade.topic(operation.topic).unit)
    holds = f"the {operation.topic} of {product} is {said} ({rule.document})"
    if operation.kind == "charge" and values["fee"] != rule.value:
        yield f"{holds}, and not ${values['fee']}{of_other(company, rule, values['fee'])}"
    if operation.kind == "amount" and values["amount"] > rule.value:
        yield f"{holds}, and ${values['amount']} is above it{of_other(company, rule, values['amount'])}"
    if operation.kind == "switch" and values["target"] != rule.value:
        yield f"{holds}, and not {values['target']}{of_other(company, rule, values['target'])}"
    if operation.kind == "wait" and contract["held_for_days"] < int(rule.value):
        yield f"{holds}, and it has been held for {contract['held_for_days']}"
