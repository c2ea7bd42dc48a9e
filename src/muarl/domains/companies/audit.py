"""What audits must know of companies: whether what was done is what the documents say, and if not, by which document.

A call is compared with the rules that the documents were written from, so that a finding can name both the document
that holds and the one that the agent seems to have gone by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from muarl.domains.auditing import AuditRules, Occasion
from muarl.domains.companies.company import Company
from muarl.domains.companies.rules import Procedure, Role
from muarl.domains.companies.statements import disproved, of_other
from muarl.domains.companies.tools import GIVE, CompanyDomain
from muarl.domains.companies.wording import value_in_words
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.service import Service
from muarl.domains.kit.worlds import Worlds
from muarl.domains.knowledge.discovery import CALL

NAMED_BY = {CALL: "agent_tool_name", GIVE: "discoverable_tool_name"}
"""By writing tool, the argument that names the tool which a document names."""


def company_audit(service: Service) -> AuditRules:
    """The rules by which conversations at the service desk of a company are audited."""
    return replace(
        audit_rules(Worlds(service)),
        forbids={tool: partial(_forbidden, name) for tool, name in NAMED_BY.items()},
        disproves=disproved,
    )


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
