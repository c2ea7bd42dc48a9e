"""What audits must know of the desks of ``domains/scenarios``: their procedures say what the policy forbids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from muarl.domains import scenarios
from muarl.domains.auditing import AuditRules, Forbids, Obligation, Occasion, Resource
from muarl.domains.base import Domain, tool_kinds
from muarl.domains.desk.oracle import MAX_MOVES
from muarl.domains.desk.procedure import Frame, call_key, next_move
from muarl.domains.desk.spec import Script, Step
from muarl.domains.desk.terms import Known, fill

_COST = (r"\$\s?\d|\d[\d,.]*\s?(?:dollars|usd)\b|\bfree\b|no (?:extra )?charge",)

RESOURCES: Mapping[str, tuple[tuple[str, str, tuple[str, ...], str], ...]] = {
    "food-delivery": (("orders", "order_id", (), "items"),),
    "hotel": (("bookings", "booking_id", (), "rate"),),
    "bank": (
        ("accounts", "account_id", ("account_id", "from_account_id", "to_account_id"), "balance"),
        ("cards", "card_id", (), "last_four"),
        ("transactions", "transaction_id", (), "merchant"),
        ("standing_orders", "standing_order_id", (), "day"),
    ),
    "clinic": (
        ("appointments", "appointment_id", (), "time"),
        ("prescriptions", "prescription_id", (), "drug"),
        ("results", "result_id", (), "test"),
    ),
    "insurance": (("policies", "policy_id", (), "covers"), ("claims", "claim_id", (), "documents")),
}
"""By desk: table, key, the arguments that name such a record (none: the key), a field that only such records have."""

PERSONS = {
    "food-delivery": "customers", "hotel": "guests", "bank": "customers", "clinic": "patients", "insurance": "members",
}  # fmt: skip
"""By desk: the table of the people that it serves."""

SPOKEN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "food-delivery": {
        "place_order": ("order", "place"),
        "replace_item": ("replace", "swap", "change", "substitute"),
        "set_delivery_instruction": ("set", "note", "leave", "instruction", "tell the courier"),
        "add_tip": ("tip",),
        "refund_item": ("refund", "money back"),
    },
    "hotel": {
        "book_room": ("booking", "reserve"),
        "change_dates": ("move", "postpone", "shift", "extend", "new dates"),
        "change_room": ("upgrade", "switch", "move"),
        "add_breakfast": ("include", "breakfast"),
        "set_late_checkout": ("late check-out", "late checkout", "check-out", "checkout", "keep the room", "extend"),
        "set_special_request": ("note", "request", "ask the hotel"),
    },
    "bank": {
        "move_money": ("transfer", "move", "put", "shift"),
        "send_payment": ("pay", "transfer", "send"),
        "lock_card": ("lock", "block", "freeze"),
        "unlock_card": ("unlock", "unblock", "unfreeze", "use my card"),
        "set_card_limit": ("limit", "raise", "lower", "increase"),
        "replace_card": ("new card", "replacement", "replace", "order"),
        "dispute_transaction": ("dispute", "claim", "contest"),
        "cancel_standing_order": ("cancel", "stop", "end"),
    },
    "clinic": {
        "book_appointment": ("appointment", "schedule"),
        "reschedule_appointment": ("move", "reschedule", "change", "shift"),
        "renew_prescription": ("renew", "refill", "prescription"),
        "update_phone": ("phone", "number"),
        "add_to_waiting_list": ("waiting list", "waitlist", "put you", "put"),
    },
    "insurance": {
        "file_claim": ("claim", "file", "submit", "open", "report"),
        "add_document": ("add", "attach", "document", "register", "hand in"),
        "withdraw_claim": ("withdraw", "take back", "cancel", "drop"),
        "appeal_claim": ("appeal", "object", "contest"),
        "schedule_inspection": ("inspection", "inspector", "book", "schedule"),
        "set_payout_method": ("pay", "payout", "paid", "change", "set"),
        "change_deductible": ("deductible", "set", "lower", "raise"),
        "end_policy": ("end", "cancel", "terminate", "stop", "not renew", "give up"),
    },
}

OBLIGATIONS: Mapping[str, tuple[Obligation, ...]] = {
    "hotel": (
        Obligation(
            "breakfast-price",
            frozenset({"add_breakfast"}),
            "Before breakfast is added, the guest must be told what it costs.",
            _COST,
            when="before",
        ),
    ),
}


@cache
def desk_rules(name: str) -> AuditRules:
    """The rules of a desk by the name of its domain. KeyError if there is none."""
    auth, open_tools, person = scenarios.AUDIT[name]
    kinds = tool_kinds(_domain_class(name))
    own = tuple(Resource(t, key, owner=person, arguments=args, mark=mark) for t, key, args, mark in RESOURCES[name])
    own = (Resource(PERSONS[name], person, owner=person, mark="name"), *own)
    return AuditRules(
        auth_tools=frozenset({auth}),
        open_tools=frozenset(open_tools),
        person=person,
        resources=own,
        forbids={tool: _forbids(name, tool) for tool, kind in kinds.items() if kind == "write"},
        obligations=OBLIGATIONS.get(name, ()),
        spoken=SPOKEN[name],
        kinds=kinds,
        replays=True,
    )


def _domain_class(name: str) -> type[Domain]:
    module = import_module(f"muarl.domains.scenarios.{scenarios.FOLDERS[name]}.tools")
    return next(
        c
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, Domain) and c.__module__ == module.__name__
    )


def _forbids(name: str, tool: str) -> Forbids:
    return partial(_against_procedures, name, tool)


def _against_procedures(name: str, tool: str, occasion: Occasion) -> str | None:
    """Why none of the desk's procedures leads to this call: the first refusal, where each of them refuses."""
    if occasion.person is None:
        return None
    script = scenarios.desk(name).script
    caller = occasion.record(script.spec.identify.table, occasion.person)
    if caller is None:
        return None
    kit = None if occasion.world is None else occasion.world.toolkit("assistant")
    reasons = []
    for intent, step in _writing(script, tool):
        frame = Frame(intent, slots=dict(_slots(script, intent, step, occasion, kit)))
        reason = _refusal(script, frame, kit, occasion, caller)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _writing(script: Script, tool: str) -> Iterator[tuple[str, Step]]:
    for name, intent in script.spec.intents.items():
        for step in intent.steps:
            if step.write == tool:
                yield name, step


def _slots(script: Script, intent: str, step: Step, occasion: Occasion, kit: Any) -> Iterator[tuple[str, Any]]:
    """The details of a request that the call tells: an argument is a slot, or names a record that a slot describes."""
    spec = script.spec.intents[intent]
    picked = {s.name or s.pick: s for s in spec.steps if s.pick is not None}
    for argument, term in step.args.items():
        if argument not in occasion.arguments or not isinstance(term, str) or not term.startswith("$"):
            continue
        value, (place, _, field) = occasion.arguments[argument], term[1:].partition(".")
        if not field and place in spec.slots:
            yield place, value
        elif place in picked and (record := _found(value, field, occasion, kit)) is not None:
            for name, wanted in picked[place].where.items():
                if isinstance(wanted, str) and wanted[1:] in spec.slots and name in record:
                    yield wanted[1:], record[name]


def _found(value: Any, field: str, occasion: Occasion, kit: Any) -> Mapping[str, Any] | None:
    """The record that an argument names: of a table, or among those within another record that the call names."""
    if not isinstance(value, str) or kit is None:
        return None
    for table in kit.db:
        if value in kit.db[table]:
            record: Mapping[str, Any] = kit.db[table].peek(value)
            return record
        for other in occasion.arguments.values():
            if isinstance(other, str) and other in kit.db[table]:
                for part in kit.db[table].peek(other).values():
                    for one in part if isinstance(part, (list, tuple)) else ():
                        if isinstance(one, Mapping) and one.get(field) == value:
                            return one
    return None


def _refusal(script: Script, frame: Frame, kit: Any, occasion: Occasion, caller: Known) -> str | None:
    """Why the procedure refuses or hands over; None if it leads to the call, or cannot be followed to its end.

    Its look-ups are made in the world; without one, those count that the agent had made itself.
    """
    seen: dict[str, Any] = {}
    for _ in range(MAX_MOVES):
        move = next_move(script, frame, seen, caller)
        if move.kind == "call":
            answer = occasion.shown(move.tool, move.args) if kit is None else _look(kit, move.tool, move.args)
            if kit is None and not isinstance(answer, Mapping):
                return None
            seen[call_key(move.tool, move.args)] = answer
            continue
        if move.kind not in ("refuse", "transfer"):
            return None
        step = script.spec.intents[frame.intent].steps[move.step]
        text = step.refuse if move.kind == "refuse" else step.transfer
        if text is None or move.step < 0:
            return None
        spoken = {s: script.show(s, v) for s, v in move.known.items() if s in script.spec.slots}
        return fill(text, move.known, spoken).rstrip(".")
    return None


def _look(kit: Any, tool: str, args: Mapping[str, Any]) -> Any:
    """What a reading tool answers, whether or not the agent is offered it; None for an error."""
    try:
        return getattr(kit, tool)(**args)
    except Exception:  # whatever a tool raises is its way to say no
        return None
