"""What is wrong with phones in generated tasks, and how a problem is narrowed down, step by step.

The order is that of TAU2's workflow: service before data, data before picture messages, and what a user can see with
one look is asked for at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from muarl.domains.kit.declaration import DrawContext
from muarl.domains.kit.device import BrokenDevice, Facts, InitialCall, Trouble
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import plain
from muarl_worlds.tau.telecom import catalogue as cat
from muarl_worlds.tau.telecom import steps
from muarl_worlds.tau.telecom.faults import FAULTS, FaultContext, account, breaking, draw_faults, fixed_checks

HOME = "home"
NOTHING = "0"
"""What slots hold where the user is not abroad, and where no data are to be added."""
DEAD = "The customer's phone has no service, and no step has helped."
SLOW = "The customer's mobile data do not work well, and no step has helped."
UNSENT = "The customer's picture messages are not sent, and no step has helped."
"""Why a customer is handed over, by the problem."""


# what is wrong


def _breaks(problem: str, rng: random.Random, drawn: DrawContext, split: str, solvable: bool) -> BrokenDevice | None:
    """Draw what is wrong for a request; None where the request does not fit it."""
    goal, tables = drawn.slots, drawn.tables
    most = 3 if len(plain(tables.customers)) <= 2 else 5
    count = rng.choices(range(1, most + 1), [0.5**n for n in range(most)])[0]
    if not any(problem in fault.own and fault.fixable == solvable for fault in FAULTS.values()):
        return None
    names = draw_faults(rng, problem, count, split, "", solvable)
    if not names or not _fits(names, goal):
        return None
    place = _place(rng, drawn)
    bills = [plain(tables.bills)[number] for number in drawn.user.bill_ids]
    if any(FAULTS[name].group == "line" for name in names) and any(b["status"] == "Overdue" for b in bills):
        return None
    abroad = goal.get("place", HOME) != HOME
    used_up = any(FAULTS[name].group == "usage" for name in names)

    def checks(final: Mapping[str, Any]) -> list[InitialCall]:
        found = fixed_checks(problem, names, place)
        if problem != "no_service":
            amount = float(final["amount"]) if used_up and solvable else 0.0
            found.append(account("assert_data_refueling_amount", place.owner(expected_amount=amount)))
        return found

    return BrokenDevice(breaking(names, place, abroad)[1:], checks, names)


def _fits(names: list[str], goal: Mapping[str, Any]) -> bool:
    """Whether what the user is willing to do, and where the user is, make these faults what they are."""
    if any(FAULTS[name].abroad for name in names) and goal["place"] == HOME:
        return False
    if "amount" in goal and (goal["amount"] == NOTHING) != ("no_refuel" in names):
        return False
    return "pays" not in goal or (goal["pays"] == "no") == ("unpaid_bill" in names)


def _place(rng: random.Random, drawn: DrawContext) -> FaultContext:
    user, tables = drawn.user, drawn.tables
    line = next(
        record for number in user.line_ids if (record := tables.lines[number]).phone_number == user.phone_number
    )
    spare = rng.choice([number for number in cat.BILL_IDS if number not in tables.bills])
    limit = tables.plans[line.plan_id].data_limit_gb
    return FaultContext(user.full_name, user.phone_number, user.customer_id, line.line_id, limit, spare, None)


def _trouble(problem: str, shown_by: str, over: Callable[[Facts], bool]) -> Trouble:
    return Trouble(shown_by=shown_by, over=over, breaks=partial(_breaks, problem))


NO_SERVICE = _trouble("no_service", "check_status_bar", lambda facts: facts.get("signal", "none") != "none")
MOBILE_DATA = _trouble("mobile_data", "run_speed_test", lambda facts: facts.get("speed") == "excellent")
PICTURE_MESSAGES = _trouble("mms", "can_send_mms", lambda facts: facts.get("mms") == "on")


# how it is narrowed down


def own_line(it: Plan) -> Any:
    """The line that the customer's number belongs to."""
    for number in it.user.line_ids:
        it.line = it.look("get_details_by_id", id=number)
        if it.line.phone_number == it.user.phone_number:
            break
    return it.line


def mend_service(it: Plan, why: str) -> Any:
    """Steps towards a signal on an active line. Returns what the network status shows."""
    facts = it.instruct(steps.LOOK_NETWORK)
    if facts.airplane == "on":
        it.instruct(steps.AIRPLANE_OFF)
        facts = it.instruct(steps.LOOK_NETWORK)
    if facts.sim == "missing":
        it.instruct(steps.RESEAT_SIM)
        facts = it.instruct(steps.LOOK_NETWORK)
    it.transfer_if(facts.sim == "locked", why)
    if facts.signal == "none":
        it.instruct(steps.RESET_APN)
        facts = it.instruct(steps.LOOK_NETWORK)
        it.transfer_if(facts.signal == "none", why)
    return facts


def lift(it: Plan) -> None:
    """Steps towards an active line: overdue bills are paid first, and an ended contract is final."""
    line = own_line(it)
    if line.status != "Suspended":
        return
    it.transfer_if(line.contract == "ended", DEAD)
    it.bill = it.pick(it.look("get_bills_for_customer", customer_id=it.user.customer_id), status="Overdue")
    if it.bill is not None:
        it.transfer_if(it.pays == "no", DEAD)
        collect(it, it.bill)
    it.write(
        "resume_line", customer_id=it.user.customer_id, line_id=line.line_id, propose="resume line {line.line_id}",
        done=(),
    )  # fmt: skip
    it.instruct(steps.RESTART)


def collect(it: Plan, bill: Any) -> None:
    """Have an overdue bill paid."""
    it.owed = bill
    it.write(
        "send_payment_request", customer_id=it.user.customer_id, bill_id=bill.bill_id,
        propose="send a payment request for overdue bill {owed.bill_id} of {owed.total_due|money}",
        done="Bill {owed.bill_id} is paid.",
    )  # fmt: skip
    it.instruct(steps.PAY)
    paid = it.look_anew("get_details_by_id", id=bill.bill_id)
    if paid.status != "Paid":
        it.transfer("The customer's payment has not arrived.")


def mend_data(it: Plan, slow: tuple[str, ...], why: str) -> Any:
    """Steps towards a connection. Returns what a speed test gives."""
    if own_line(it).status == "Suspended":
        it.transfer(why)
    facts = mend_service(it, why)
    if facts.data == "off":
        it.instruct(steps.DATA_ON)
        facts = it.instruct(steps.LOOK_NETWORK)
    if facts.network in slow:
        it.instruct(steps.NEWEST_MODE)
    speed = it.instruct(steps.TEST_SPEED)
    if speed.speed == "none":
        speed = _connect(it, facts, why)
    return speed


def _connect(it: Plan, facts: Any, why: str) -> Any:
    """Steps towards a connection where there is none."""
    line, owner = it.line, {"customer_id": it.user.customer_id, "line_id": it.line.line_id}
    if it.place != HOME:
        if facts.roaming == "off":
            it.instruct(steps.ROAMING_ON)
        if not line.roaming_enabled:
            it.write("enable_roaming", **owner, propose="enable roaming for line {line.line_id}", done=())
            it.instruct(steps.TRY_AGAIN)
        if facts.roaming == "off" or not line.roaming_enabled:
            speed = it.instruct(steps.TEST_SPEED)
            if speed.speed != "none":
                return speed
    used = it.look_anew("get_data_usage", **owner)
    it.transfer_if(used.data_left or it.amount == NOTHING, why)
    refuel(it)
    it.instruct(steps.TRY_AGAIN)
    return it.instruct(steps.TEST_SPEED)


def refuel(it: Plan, slot: str = "amount") -> None:
    """Add as much data to the line as the slot says, at the plan's price."""
    it.plan = it.look("get_details_by_id", id=it.line.plan_id)
    it.write(
        "refuel_data", customer_id=it.user.customer_id, line_id=it.line.line_id, gb_amount=float(getattr(it, slot)),
        propose=f"refuel line {{line.line_id}} with {{{slot}}} at {{plan.data_refueling_price_per_gb|money}} per GB",
        done=f"{{{slot}}} are added to your line.",
    )  # fmt: skip


def mend_speed(it: Plan) -> None:
    """Steps towards fast mobile data."""
    mend_data(it, ("2G", "3G", "4G"), SLOW)
    bar = it.instruct(steps.LOOK_BAR)
    if bar.saver == "on":
        it.instruct(steps.SAVER_OFF)
    if bar.vpn == "on":
        it.instruct(steps.VPN_OFF)
    it.transfer(SLOW)


def mend_messages(it: Plan) -> None:
    """Steps towards picture messages that go out."""
    mend_data(it, ("2G",), UNSENT)
    if it.instruct(steps.LOOK_CALLING).wifi_calling == "on":
        it.instruct(steps.CALLING_OFF)
    app = it.instruct(steps.LOOK_APP)
    lacking = tuple(name for name in ("sms", "storage") if app[name] == "off")
    if lacking:
        it.instruct(steps.ALLOW[lacking])
    if it.instruct(steps.LOOK_APN).mmsc == "off":
        it.instruct(steps.RESET_APN)
    it.transfer(UNSENT)
