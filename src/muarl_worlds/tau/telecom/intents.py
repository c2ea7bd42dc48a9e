"""A carrier's service desk: what customers call about, and how each request is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.kit.declaration import Fact, Identity, Slot, intent, of, one_of, pattern, words
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.tau.telecom import catalogue as cat
from muarl_worlds.tau.telecom.accounts import TODAY
from muarl_worlds.tau.telecom.audit import TELECOM as RULES
from muarl_worlds.tau.telecom.customers import WORLD_SIZES, make_tables
from muarl_worlds.tau.telecom.domain import Telecom
from muarl_worlds.tau.telecom.steps import PHONE
from muarl_worlds.tau.telecom.tiny_vocabulary import PIECES
from muarl_worlds.tau.telecom.troubles import (
    DEAD,
    HOME,
    MOBILE_DATA,
    NO_SERVICE,
    NOTHING,
    PICTURE_MESSAGES,
    collect,
    lift,
    mend_messages,
    mend_service,
    mend_speed,
    own_line,
    refuel,
)
from muarl_worlds.tau.telecom.view import view

TINY_TOOLS = (
    "get_customer_by_phone", "get_details_by_id", "suspend_line", "resume_line",
    "get_bills_for_customer", "send_payment_request", "get_data_usage", "enable_roaming", "disable_roaming",
    "transfer_to_human_agents", "refuel_data",
)  # fmt: skip


class CarrierDesk(Telecom):
    """A made carrier with TAU2's tools: the policy is our own, and the accounts are a task's."""

    policy: ClassVar[Path | str] = Path("policy.md")

    def __init__(self, *, database: Any = None, **options: Any) -> None:
        super().__init__(database={} if database is None else database, phone={}, **options)


IDENTITY = Identity(
    tool="get_customer_by_phone", table="customers", key="customer_id",
    facts=(
        Fact("phone_number", pattern("[0-9]{3}-[0-9]{3}-[0-9]{4}"), tells="My number is {phone_number}.",
             wrong=True, noun=["phone number", "number"]),
    ),
    ask=["May I have your phone number?"],
    retry=["I could not find you. Please check your phone number.", "May I have your phone number again, please?"],
    say=["My number is {phone_number}.", "The number is {phone_number}.", "It's {phone_number}."],
)  # fmt: skip

_GB = {str(amount): f"{amount} GB" for amount in (*cat.AMOUNTS, *cat.TOO_MUCH)}
_HOW_MUCH = r"\bhow (?:much|many)\b[^.?!]*(?:\bGBs?\b|gigabyte|\bdata\b|\badd\b)|\bamount of data\b"
AMOUNT = Slot(
    "amount",
    words({**_GB, NOTHING: "no data at all"}),
    phrase="{} if the data are used up",
    ask="How much data would you like to add?",
    asked=_HOW_MUCH,
    say=["{}.", "I want {}.", "{}, please."],
    change=["Actually, {} is enough.", "Wait, I changed my mind. Make it {}."],
    draw=one_of(*map(str, cat.AMOUNTS), *map(str, cat.AMOUNTS), NOTHING),
)
MORE = Slot(
    "more",
    words(_GB),
    ask=AMOUNT.ask,
    asked=_HOW_MUCH,
    say=AMOUNT.say,
    change=AMOUNT.change,
    draw=one_of(*map(str, cat.AMOUNTS), *map(str, cat.TOO_MUCH[:2])),
)
PLACE = Slot(
    "place",
    words({HOME: "at home", **{name: f"abroad in {name}" for name in cat.ABROAD}}),
    ask="Are you abroad?",
    phrase="{}",
    say=["I am {}."],
    asked=r"\babroad\b[^.!]*\?|\bwhere are you\b",
    draw=one_of(HOME, HOME, *cat.ABROAD),
)
PAYS = Slot(
    "pays",
    words({"yes": "I will pay it", "no": "I will not pay that"}),
    ask="Are you willing to pay the overdue bill?",
    say=["{}."],
    asked=r"\bwilling to pay\b|\bcan you pay\b",
    draw=one_of("yes", "yes", "yes", "no"),
    guess=("yes",),
)
REASON = Slot(
    "reason",
    words(dict.fromkeys(cat.REASONS, ())),
    ask="What is the reason?",
    noun="reason",
    say=["The reason is {}.", "It is {}."],
)
BILL = Slot(
    "bill", pattern("B[0-9]+"), ask="Which bill is it?", phrase="bill {}", say=["It is bill {}.", "Bill {}."],
    draw=of(lambda drawn: [drawn.tables.bills[b] for b in drawn.user.bill_ids
                           if drawn.tables.bills[b].status != "Draft"], "bill_id"),
)  # fmt: skip


@intent(says=["have service on my phone again"], slots=[PAYS], share=4.0, trouble=NO_SERVICE,
        heard=r"\bservice on my phone\b|\bno service\b")  # fmt: skip
def no_service(it: Plan) -> None:
    lift(it)
    mend_service(it, DEAD)
    it.transfer(DEAD)


@intent(says=["get my mobile data to work well", "get my mobile data to work well {place}"], slots=[PLACE, AMOUNT],
        share=4.0, trouble=MOBILE_DATA, heard=r"\bmobile (?:data|internet)\b")  # fmt: skip
def mobile_data(it: Plan) -> None:
    mend_speed(it)


@intent(says=["send picture messages again", "send picture messages again {place}"], slots=[PLACE, AMOUNT], share=3.0,
        trouble=PICTURE_MESSAGES, heard=r"\b(?:picture messages|mms)\b")  # fmt: skip
def picture_messages(it: Plan) -> None:
    mend_messages(it)


@intent(says=["add {more} to my line", "add some data to my line"], slots=[MORE], share=2.0,
        heard=r"\b(?:add|refuel)\b")  # fmt: skip
def add_data(it: Plan) -> None:
    own_line(it)
    too_much = f"more than {cat.MOST_REFUEL} GB at once is not available"
    it.unavailable_if(float(it.more) > cat.MOST_REFUEL, MORE, [str(amount) for amount in cat.AMOUNTS], too_much)
    refuel(it, "more")


@intent(says=["switch on roaming for my line", "have roaming on my line"], share=0.9,
        heard=r"\b(?:switch on|enable|turn on) roaming\b|\bhave roaming on\b")  # fmt: skip
def roaming_on(it: Plan) -> None:
    own_line(it)
    it.refuse_if(it.line.roaming_enabled, "roaming is on already for line {line.line_id}")
    it.write(
        "enable_roaming", customer_id=it.user.customer_id, line_id=it.line.line_id,
        propose="enable roaming for line {line.line_id}", done="Roaming is on for line {line.line_id}.",
    )  # fmt: skip


@intent(says=["switch off roaming for my line", "have no more roaming on my line"], share=0.9,
        heard=r"\b(?:switch off|disable|turn off) roaming\b|\bno more roaming\b")  # fmt: skip
def roaming_off(it: Plan) -> None:
    own_line(it)
    it.refuse_unless(it.line.roaming_enabled, "roaming is off already for line {line.line_id}")
    it.write(
        "disable_roaming", customer_id=it.user.customer_id, line_id=it.line.line_id,
        propose="disable roaming for line {line.line_id}", done="Roaming is off for line {line.line_id}.",
    )  # fmt: skip


@intent(says=["pay my overdue bill"], share=1.2, heard=r"\bpay (?:my|the) overdue bill\b")
def pay_overdue(it: Plan) -> None:
    bills = it.look("get_bills_for_customer", customer_id=it.user.customer_id)
    overdue = it.pick(bills, status="Overdue") or it.refuse("there is no overdue bill")
    collect(it, overdue)


@intent(says=["pay {bill}"], slots=[BILL], share=0.4, heard=r"\bpay bill\b")
def pay_bill(it: Plan) -> None:
    it.bills = it.look("get_bills_for_customer", customer_id=it.user.customer_id)
    it.wanted = it.pick(it.bills, bill_id=it.bill) or it.missing(BILL)
    it.refuse_if(
        it.wanted.status != "Overdue", "bill {bill} is {wanted.status|lower}, and only overdue ones are collected"
    )
    collect(it, it.wanted)


@intent(says=["suspend my line, the reason is {reason}", "suspend my line"], slots=[REASON], share=1.0,
        heard=r"\bsuspend\b")  # fmt: skip
def suspend(it: Plan) -> None:
    own_line(it)
    it.write(
        "suspend_line", customer_id=it.user.customer_id, line_id=it.line.line_id, reason=it.reason,
        propose="suspend line {line.line_id} for {reason}", done="Line {line.line_id} is suspended.",
    )  # fmt: skip


@intent(says=["know how much data I have used"], share=0.3, heard=r"\bhow much data (?:have )?(?:I|you)\b")
def ask_usage(it: Plan) -> None:
    own_line(it)
    it.usage = it.look("get_data_usage", customer_id=it.user.customer_id, line_id=it.line.line_id)
    it.answer("You have used {usage.data_used_gb} GB.", tell="{usage.data_used_gb}")


@intent(says=["know what a further GB costs me"], share=0.3, heard=r"\bfurther GB\b")
def ask_price(it: Plan) -> None:
    own_line(it)
    it.plan = it.look("get_details_by_id", id=it.line.plan_id)
    it.answer(
        "One GB more is {plan.data_refueling_price_per_gb|money}.", tell="{plan.data_refueling_price_per_gb|plain}"
    )


@intent(says=["know how much {bill} is"], slots=[BILL], share=0.3, heard=r"\bhow much (?:is )?bill\b")
def ask_bill(it: Plan) -> None:
    it.bills = it.look("get_bills_for_customer", customer_id=it.user.customer_id)
    it.wanted = it.pick(it.bills, bill_id=it.bill) or it.missing(BILL)
    it.answer("Bill {bill} is {wanted.total_due|money}.", tell="{wanted.total_due|plain}")


SERVICE = Service(
    domain=CarrierDesk, about="telecom", today=TODAY, identity=IDENTITY,
    intents=(no_service, mobile_data, picture_messages, add_data, roaming_on, roaming_off, pay_overdue, pay_bill,
             suspend, ask_usage, ask_price, ask_bill),
    tables=make_tables, outside=cat.TOPICS, tiny_tools=TINY_TOOLS, view=view,
    texts=("suspend_line", "resume_line", "refuel_data"), vocabulary=PIECES, sizes=WORLD_SIZES,
    policy_compact=Path("policy_compact.md"), obligations=tuple(RULES.obligations), device=PHONE,
    variants={"done": 0.74, "unavailable": 0.11, "refuse": 0.04, "transfer": 0.07, "outside": 0.03, "impostor": 0.01},
)  # fmt: skip
