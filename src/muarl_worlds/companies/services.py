"""What customers of a trade want, and how each request is served by what the documents say."""

from __future__ import annotations

import json
from functools import partial

from muarl.domains.base import Domain
from muarl.domains.kit.declaration import Intent, intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service, WorldSize
from muarl.domains.knowledge.discovery import CALL, UNLOCK
from muarl_worlds.companies.company import TODAY
from muarl_worlds.companies.finding import find_procedure, find_rule
from muarl_worlds.companies.rules import Role
from muarl_worlds.companies.slots import IDENTITY, slots_of
from muarl_worlds.companies.tools import GIVE, policy_of
from muarl_worlds.companies.trades import Operation, Trade
from muarl_worlds.companies.vocabulary import vocabulary_of
from muarl_worlds.companies.wording import value_in_words
from muarl_worlds.companies.world import tables_of

SIZES = (WorldSize("tiny", 2, 1, tiny=True), WorldSize("small", 12, 30), WorldSize("full", 40, 100))
VARIANTS = {"done": 0.75, "unavailable": 0.12, "refuse": 0.05, "transfer": 0.04, "outside": 0.03, "impostor": 0.01}


def service_of(trade: Trade, domain: type[Domain]) -> Service:
    """The service of a trade, whose domain has its tools."""
    return Service(
        domain=domain,
        about=f"the service desk of a {trade.company}",
        today=TODAY,
        identity=IDENTITY,
        intents=(_question(trade), *(_served(trade, operation) for operation in trade.operations)),
        tables=tables_of(trade),
        outside=trade.outside,
        open_tools=("KB_search", "grep"),
        policy_compact=policy_of(trade, "policy_compact.md"),
        tiny_tools=(
            "identify_customer",
            f"list_{trade.contracts}",
            f"get_{trade.contract}",
            "KB_search",
            UNLOCK,
            CALL,
            GIVE,
            "transfer_to_human_agents",
        ),
        tiny_intents=("ask", *trade.tiny_operations),
        sizes=SIZES,
        variants=VARIANTS,
        more_requests=(0.3,),
        unlocks=(UNLOCK,),
        vocabulary=vocabulary_of(trade),
    )


def _own_contract(trade: Trade, it: Plan) -> None:
    """The customer's contract, which plans and texts call c."""
    it.c = it.look(f"get_{trade.contract}", **{trade.key: it.contract})
    it.refuse_unless(it.c.customer_id == it.user.customer_id, f"{trade.contract} {{contract}} is not yours")
    it.product = it.c.product


def _question(trade: Trade) -> Intent:
    slots = slots_of(trade)

    def plan(it: Plan) -> None:
        _own_contract(trade, it)
        it.rule = find_rule(it, trade, it.topic, it.c.product, it.user.group)
        it.refuse_if(it.rule is None, "no document of ours has a rule about the {topic} of {product}")
        unit = trade.topic(it.topic).unit
        it.number, it.value = str(it.rule.value), value_in_words(it.rule.value, unit)
        it.answer(
            ["The {topic} of {product} is {value}.", "For your {product} the {topic} is {value}."],
            tell="{number}",
        )

    return intent(
        says=("know {topic} of {contract}", "find out {topic} of {contract}", "know something of {contract}"),
        slots=[slots["contract"], slots["topic"]],
        share=1.6,
        because=["I cannot find it on your pages.", "I am comparing a few offers."],
        heard=r"\bknow (?:the|something)\b|\bfind out\b",
        name="ask",
    )(plan)


def _served(trade: Trade, operation: Operation) -> Intent:
    slots = slots_of(trade)
    more = {"amount": ["amount"], "switch": ["target"]}.get(operation.kind, [])
    return intent(
        says=operation.says,
        slots=[slots[name] for name in ("contract", *more)],
        share=operation.share,
        because=operation.because,
        heard=operation.heard,
        name=operation.name,
    )(partial(_serve, trade, operation))


def _serve(trade: Trade, operation: Operation, it: Plan) -> None:
    """Carry an operation out as the documents say."""
    _own_contract(trade, it)
    it.refuse_unless(it.c.status == "active", f"{trade.contract} {{contract}} is {{c.status}}")
    it.rule = find_rule(it, trade, operation.topic, it.c.product, it.user.group)
    if it.rule is None or trade.topic(operation.topic).optional:
        it.refuse_if(it.rule is None, f"no document of ours provides for {operation.doing} with {{product}}")
    values: dict[Role, object] = {"contract": it.contract, **_decided(operation, it)}
    it.p = find_procedure(it, trade, operation.name, it.c.product)
    if it.p is None:  # no company is made so, but a search may not show what there is
        it.refuse_if(True, f"no document of ours has a procedure for {operation.doing} with {{product}}")
    it.transfer_if(it.p.mode == "transfer", f"The customer wants {operation.doing} ({{contract}}).")
    arguments = json.dumps(it.p.named(values))
    if it.p.mode == "give":
        it.write(GIVE, discoverable_tool_name=it.p.tool, arguments=arguments, propose=operation.propose,
                 done=_given(trade, operation))  # fmt: skip
        return
    it.look(UNLOCK, agent_tool_name=it.p.tool)
    it.write(CALL, agent_tool_name=it.p.tool, arguments=arguments, propose=operation.propose, done=operation.done)


def _given(trade: Trade, operation: Operation) -> str:
    """It names what was asked for, by which customers know that they have got it."""
    asked = operation.says[0].replace("{contract}", f"{trade.contract} {{contract}}")
    return f"Done, you have the tool now to {asked}, and can do it yourself."


def _decided(operation: Operation, it: Plan) -> dict[Role, object]:
    """What the rule decides: the fee, or whether what is wanted can be had."""
    if operation.kind == "charge":
        it.fee = it.rule.value
        return {"fee": it.fee}
    if operation.kind == "amount":
        it.unavailable_if(it.amount > it.rule.value, "amount", [it.rule.value])
        return {"amount": it.amount}
    if operation.kind == "switch":
        it.unavailable_if(it.target != it.rule.value, "target", [it.rule.value])
        return {"target": it.target}
    it.period = it.rule.value
    it.refuse_if(
        it.c.held_for_days < it.period,
        f"{operation.doing} needs {{period}} days, and {{contract}} has been held for {{c.held_for_days}}",
    )
    return {}
