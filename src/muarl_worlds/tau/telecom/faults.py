"""What can be wrong with a phone or an account: how a task breaks it, and which actions fix it.

A task composes such faults, as TAU2's tasks do, into one of three problems: no service, mobile data that do not work or
are slow, and picture messages that do not go out. ``FAULTS`` is in the order in which things are broken and fixed:
what comes first hides what comes later.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.generated import split_of
from muarl.domains.tasks import Action
from muarl.types.chat import Requestor

PROBLEMS = ("no_service", "mobile_data", "mms")
Call = Mapping[str, Any]
"""An initial action or an assertion, in TAU2's form: env_type, func_name, arguments."""


@dataclass(frozen=True, slots=True)
class FaultContext:
    """Whose phone and line it is. ``limit``: GB a month; ``bill``: a free id; ``amount``: GB the user will add."""

    name: str
    phone: str
    customer: str
    line: str
    limit: float
    bill: str
    amount: float | None

    def owner(self, **more: Any) -> dict[str, Any]:
        """The arguments that name the line."""
        return {"customer_id": self.customer, "line_id": self.line, **more}


Makes = Callable[[FaultContext], list[Call]]
Fixes = Callable[[FaultContext], list[Action]]


@dataclass(frozen=True, slots=True)
class Fault:
    """``group``: of which only one at a time. ``problems``: where it occurs. ``own``: where it is reason enough.

    ``fixes``: the gold actions; nothing fixes a fault without any. ``abroad``: whether it only shows there.
    """

    name: str
    group: str
    problems: tuple[str, ...]
    own: tuple[str, ...]
    breaks: Makes
    fixes: Fixes
    abroad: bool = False
    fixable: bool = True


def phone(func_name: str, **arguments: Any) -> Call:
    """A call of one of the phone's methods, in TAU2's form."""
    return {"env_type": "user", "func_name": func_name, "arguments": arguments}


def account(func_name: str, arguments: Mapping[str, Any]) -> Call:
    """A call of one of the accounts' methods, in TAU2's form."""
    return {"env_type": "assistant", "func_name": func_name, "arguments": dict(arguments)}


def act(side: Requestor, name: str, **arguments: Any) -> Action:
    """A gold action."""
    return Action(name, arguments, side)


def _user(*names: str) -> Fixes:
    return lambda place: [act("user", name) for name in names]


def _sets(*calls: Call) -> Makes:
    return lambda place: list(calls)


def _grants(*permissions: str) -> Fixes:
    return lambda place: [act("user", "grant_app_permission", app_name="messaging", permission=p) for p in permissions]


def _takes(*permissions: str) -> Makes:
    return _sets(*(phone("remove_app_permission", app_name="messaging", permission=p) for p in permissions))


def _suspends(contract_ended: bool) -> Makes:
    return lambda place: [
        account("suspend_line_for_overdue_bill", place.owner(new_bill_id=place.bill, contract_ended=contract_ended))
    ]


def _pay_and_resume(place: FaultContext) -> list[Action]:
    return [
        act("assistant", "send_payment_request", customer_id=place.customer, bill_id=place.bill),
        act("user", "make_payment"),
        *_resume(place),
    ]


def _resume(place: FaultContext) -> list[Action]:
    return [act("assistant", "resume_line", **place.owner()), act("user", "reboot_device")]


def _roaming(on_phone: bool, on_line: bool) -> tuple[Makes, Fixes]:
    def breaks(place: FaultContext) -> list[Call]:
        return [
            phone("turn_roaming_on" if on_phone else "turn_roaming_off"),
            account("enable_roaming" if on_line else "disable_roaming", place.owner()),
        ]

    def fixes(place: FaultContext) -> list[Action]:
        found = [] if on_phone else [act("user", "toggle_roaming")]
        return found if on_line else [*found, act("assistant", "enable_roaming", **place.owner())]

    return breaks, fixes


def _use_up(place: FaultContext) -> list[Call]:
    return [account("set_data_usage", place.owner(data_used_gb=used_up(place.limit)))]


def used_up(limit: float) -> float:
    """GB that are a little more than a plan gives."""
    return round(limit + 0.1, 1)


def _refuel(place: FaultContext) -> list[Action]:
    return [act("assistant", "refuel_data", **place.owner(gb_amount=place.amount))]


def _mode(mode: str) -> Makes:
    return _sets(phone("set_network_mode_preference", mode=mode))


def _nothing(place: FaultContext) -> list[Action]:
    return []


def _best_mode(place: FaultContext) -> list[Action]:
    return [act("user", "set_network_mode_preference", mode="4g_5g_preferred")]


_ALL, _SERVICE, _DATA, _MMS, _ONLINE = PROBLEMS, PROBLEMS[:1], PROBLEMS[1:2], PROBLEMS[2:], PROBLEMS[1:]
_LOCKED = (*_SERVICE, *_MMS)
_RESET = _user("reset_apn_settings", "reboot_device")

FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("overdue_bill", "line", _SERVICE, _SERVICE, _suspends(False), _pay_and_resume),
        Fault(
            "line_suspended", "line", _SERVICE, _SERVICE,
            lambda place: [account("suspend_line", place.owner(reason="long trip"))], _resume,
        ),
        Fault("unpaid_bill", "line", _SERVICE, _SERVICE, _suspends(False), _nothing, fixable=False),
        Fault("contract_ended", "line", _SERVICE, _SERVICE, _suspends(True), _nothing, fixable=False),
        Fault(
            "airplane_mode", "airplane", _ALL, _SERVICE, _sets(phone("turn_airplane_mode_on")),
            _user("toggle_airplane_mode"),
        ),
        Fault("sim_out", "sim", _ALL, _SERVICE, _sets(phone("unseat_sim_card")), _user("reseat_sim_card")),
        Fault(
            "sim_locked_pin", "sim", _LOCKED, _LOCKED, _sets(phone("lock_sim_card", mode="pin")), _nothing,
            fixable=False,
        ),
        Fault(
            "sim_locked_puk", "sim", _LOCKED, _LOCKED, _sets(phone("lock_sim_card", mode="puk")), _nothing,
            fixable=False,
        ),
        Fault("apn_broken", "apn", _ALL, _SERVICE, _sets(phone("break_apn_settings")), _RESET),
        Fault("data_off", "data", _ONLINE, _DATA, _sets(phone("turn_data_off")), _user("toggle_data")),
        Fault("mode_2g", "mode", _ONLINE, _ONLINE, _mode("2g_only"), _best_mode),
        Fault("mode_3g", "mode", _DATA, _DATA, _mode("3g_only"), _best_mode),
        Fault("roaming_off", "roaming", _ONLINE, _DATA, *_roaming(False, True), abroad=True),
        Fault("line_roaming_off", "roaming", _ONLINE, _DATA, *_roaming(True, False), abroad=True),
        Fault("both_roaming_off", "roaming", _ONLINE, _DATA, *_roaming(False, False), abroad=True),
        Fault("data_used_up", "usage", _ONLINE, _DATA, _use_up, _refuel),
        Fault("no_refuel", "usage", _DATA, _DATA, _use_up, _nothing, fixable=False),
        Fault(
            "data_saver", "saver", _DATA, _DATA, _sets(phone("turn_data_saver_mode_on")),
            _user("toggle_data_saver_mode"),
        ),
        Fault("slow_vpn", "vpn", _DATA, _DATA, _sets(phone("break_vpn")), _user("disconnect_vpn")),
        Fault(
            "wifi_calling", "wifi calling", _MMS, _MMS,
            _sets(phone("set_wifi_calling", enabled=True, mms_over_wifi=True)), _user("toggle_wifi_calling"),
        ),
        Fault("app_sms", "app", _MMS, _MMS, _takes("sms"), _grants("sms")),
        Fault("app_storage", "app", _MMS, _MMS, _takes("storage"), _grants("storage")),
        Fault("app_both", "app", _MMS, _MMS, _takes("sms", "storage"), _grants("sms", "storage")),
        Fault("mms_apn", "apn", _MMS, _MMS, _sets(phone("break_apn_mms_setting")), _RESET),
    )
}  # fmt: skip

TRIES = 40
"""How many compositions are drawn in search of one that belongs to the split."""

BASE_PRINTS = frozenset((
    "102f79fb7654", "19d5693e8bf8", "1d11b3bed5ce", "3b5dceefe992", "593ff944a81a", "6090c6d5514c", "687da50d07aa",
    "72c12ebf86f2", "7c6a0e6e509d", "819e8c13b72e", "86628e99a298", "973e331438da", "986b75abc2ae", "a298965d296c",
    "ada9b3426e6e", "ba55410020a8", "c171c9dbeabc", "c4a6b6c8d97e", "c5f7304cbb2e", "cdea046be390", "d0e707273e2c",
    "d756643f06bd", "e6d20726cb85",
))  # fmt: skip
"""Fingerprints (``device_print``) of what users do in the tasks of TAU2's base split that no account is part of.

Such a task has the same writes whoever the user is, so compositions with one of these prints are never drawn. TAU2's
full split, 2285 tasks, has nearly every composition there is, single faults included, and cannot be kept apart so.
"""


def device_print(actions: Iterable[Action]) -> str:
    """A fingerprint of the phone's part in a set of gold writes, whatever their order: twelve hex digits."""
    keys = sorted({f"{a.name} {json.dumps(dict(a.arguments), sort_keys=True)}" for a in actions})
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()[:12]


def fixing(names: Sequence[str], place: FaultContext) -> list[Action]:
    """The gold actions of a composition, in order; none if anything in it cannot be fixed."""
    faults = [FAULTS[name] for name in names]
    return [] if not all(f.fixable for f in faults) else [a for f in faults for a in f.fixes(place)]


def breaking(names: Sequence[str], place: FaultContext, abroad: bool) -> list[Call]:
    """The initial actions of a composition: the user gets the line's phone, things break, a network is searched."""
    calls = [phone("set_user_info", name=place.name, phone_number=place.phone)]
    calls += [phone("set_user_location", abroad=True)] if abroad else []
    if abroad and not any(FAULTS[n].group == "roaming" for n in names):
        calls += _roaming(True, True)[0](place)
    for name in names:
        calls += FAULTS[name].breaks(place)
    return [*calls, phone("simulate_network_search")]


def fixed_checks(problem: str, names: Sequence[str], place: FaultContext) -> list[Call]:
    """The assertions that say that a composition was dealt with rightly."""
    if not all(FAULTS[n].fixable for n in names):
        found = [phone("assert_mobile_data_status", expected_status=False)]
        if problem == "no_service":
            found = [phone("assert_service_status", expected_status="no_service")]
        if any(FAULTS[n].group == "line" and not FAULTS[n].fixable for n in names):
            found.append(account("assert_line_status", place.owner(expected_status="Suspended")))
        return found
    found = {
        "no_service": [phone("assert_service_status", expected_status="connected")],
        "mobile_data": [
            phone("assert_mobile_data_status", expected_status=True),
            phone("assert_internet_speed", expected_speed=200, expected_desc="excellent"),
        ],
        "mms": [phone("assert_can_send_mms", expected_status=True)],
    }[problem]
    if "overdue_bill" in names:
        found.append(account("assert_no_overdue_bill", {"overdue_bill_id": place.bill}))
    return found


def draw_faults(rng: random.Random, problem: str, count: int, split: str, persona: str, fixable: bool) -> list[str]:
    """Up to ``count`` faults that make up a problem, in order; if not ``fixable``, with one that cannot be fixed.

    Compositions of several faults belong, together with the persona, to one split only. An empty list if the ones that
    were drawn belong elsewhere: draw again.
    """
    here = [f for f in FAULTS.values() if problem in f.problems]
    first = rng.choice([f for f in here if problem in f.own and f.fixable == fixable])
    for _ in range(TRIES):
        chosen = [first]
        others = [f for f in here if f.fixable]
        rng.shuffle(others)
        for fault in others:
            if len(chosen) < count and all(fault.group != f.group for f in chosen):
                chosen.append(fault)
        names = [name for name, fault in FAULTS.items() if fault in chosen]
        if len(names) == 1 or split_of("faults", problem, *names, persona) == split:
            return [] if _in_base(names) else names
    return []


def _in_base(names: Sequence[str]) -> bool:
    """Whether what fixes these faults is, to the letter, what fixes a task of TAU2's base split."""
    actions = fixing(names, FaultContext("", "", "", "", 0.0, "", None))
    return all(a.requestor == "user" for a in actions) and device_print(actions) in BASE_PRINTS
