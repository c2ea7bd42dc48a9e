"""The user's phone, as the kit knows it: the steps that an agent may ask for, and what the phone shows in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.kit.device import Device, Step, UserCall
from muarl_worlds.tau.telecom import user_parsing
from muarl_worlds.tau.telecom.faults import phone

FACT_WORDS: Mapping[str, Mapping[str, str]] = {
    "airplane": {"on": "airplane mode on", "off": "airplane mode off"},
    "sim": {"active": "SIM active", "missing": "SIM missing", "locked": "SIM locked"},
    "signal": {"none": "no signal", **{s: f"signal {s}" for s in ("poor", "fair", "good", "excellent")}},
    "network": {n: f"network {n}" for n in ("2G", "3G", "4G", "5G")},
    "mode": {m: f"mode {m}" for m in ("2g_only", "3g_only", "4g_only", "4g_5g_preferred")},
    "data": {"on": "mobile data on", "off": "mobile data off"},
    "roaming": {"on": "roaming on", "off": "roaming off"},
    "saver": {"on": "data saver on", "off": "data saver off"},
    "vpn": {"on": "VPN on", "off": "VPN off"},
    "wifi": {"on": "wifi on", "off": "wifi off"},
    "wifi_calling": {"on": "wifi calling on", "off": "wifi calling off"},
    "sms": {"on": "sms allowed", "off": "sms not allowed"},
    "storage": {"on": "storage allowed", "off": "storage not allowed"},
    "apn": {"internet": "APN internet", "broken": "APN broken"},
    "mmsc": {"on": "MMSC set", "off": "MMSC missing"},
    "speed": {
        "none": "no connection",
        **{s: f"speed {s}" for s in ("very poor", "poor", "fair", "good", "excellent")},
    },
    "mms": {"on": "picture messages go out", "off": "picture messages do not go out"},
}
"""What can be seen on a phone, in the order in which users tell it, and the words for it."""
_MESSAGING = {"app_name": "messaging"}
SWITCHES: Mapping[str, tuple[str, str]] = {
    "airplane": ("check_network_status", "toggle_airplane_mode"),
    "data": ("check_network_status", "toggle_data"),
    "roaming": ("check_network_status", "toggle_roaming"),
    "saver": ("check_data_restriction_status", "toggle_data_saver_mode"),
    "wifi_calling": ("check_wifi_calling_status", "toggle_wifi_calling"),
    "wifi": ("check_wifi_status", "toggle_wifi"),
    "vpn": ("check_vpn_status", "disconnect_vpn"),
}
"""Each switch: the tool that shows it, and the one that turns it over."""


def _look(tool: str, says: str = "") -> Step:
    arguments = _MESSAGING if tool == "check_app_permissions" else {}
    return Step(name=tool, says=says, calls=((tool, arguments),))


def _switch(name: str, state: str, says: str = "") -> Step:
    look, turn = SWITCHES[name]
    if (name, state) == ("vpn", "on"):
        turn = "connect_vpn"
    return Step(name=f"{name} {state}", says=says, calls=((turn, {}),), look=look, sets={name: state})


def _grant(*permissions: str, says: str = "") -> Step:
    calls: list[UserCall] = [("grant_app_permission", {**_MESSAGING, "permission": p}) for p in permissions]
    return Step(name=f"grant {permissions}", says=says, calls=tuple(calls), sets=dict.fromkeys(permissions, "on"))


def _mode(mode: str, says: str = "") -> Step:
    return Step(name=f"mode {mode}", says=says, calls=(("set_network_mode_preference", {"mode": mode}),))


_RESET: UserCall = ("reset_apn_settings", {})
_REBOOT: UserCall = ("reboot_device", {})
LOOK_NETWORK = _look("check_network_status", "Please check your network status.")
LOOK_BAR = _look("check_status_bar", "Please check your status bar.")
LOOK_CALLING = _look("check_wifi_calling_status", "Please check your wifi calling.")
LOOK_APP = _look("check_app_permissions", "Please check the permissions of your messaging app.")
LOOK_APN = _look("check_apn_settings", "Please check your APN settings.")
TEST_SPEED = _look("run_speed_test", "Please run a speed test.")
AIRPLANE_OFF = _switch("airplane", "off", "Please turn off airplane mode.")
DATA_ON = _switch("data", "on", "Please turn on mobile data.")
ROAMING_ON = _switch("roaming", "on", "Please turn on data roaming.")
SAVER_OFF = _switch("saver", "off", "Please turn off data saver.")
CALLING_OFF = _switch("wifi_calling", "off", "Please turn off wifi calling.")
VPN_OFF = Step(name="vpn off", says="Please disconnect your VPN.", calls=(("disconnect_vpn", {}),), sets={"vpn": "off"})
RESEAT_SIM = Step(name="sim", says="Please reseat your SIM card.", calls=(("reseat_sim_card", {}),))
RESET_APN = Step(
    name="apn", says="Please reset your APN settings and restart your phone.", calls=(_RESET, _REBOOT),
    sets={"mmsc": "on"},
)  # fmt: skip
RESTART = Step(name="reboot", says="Please restart your phone.", calls=(_REBOOT,))
NEWEST_MODE = _mode("4g_5g_preferred", "Please set your network mode to 4g_5g_preferred.")
ALLOW: Mapping[tuple[str, ...], Step] = {
    ("sms",): _grant("sms", says="Please allow sms for your messaging app."),
    ("storage",): _grant("storage", says="Please allow storage for your messaging app."),
    ("sms", "storage"): _grant("sms", "storage", says="Please allow sms and storage for your messaging app."),
}
TRY_AGAIN = Step(name="try", says="Done. Please try again.")
PAY = Step(
    name="pay", says="Please check the payment request and pay it.",
    calls=(("check_payment_request", {}), ("make_payment", {})),
)  # fmt: skip


def asked(text: str) -> Sequence[Step]:
    """The steps that any agent's words ask for."""
    return [_step(kind, what) for kind, what in user_parsing.instructions(text)]


def _step(kind: str, what: str) -> Step:
    if kind == "read":
        return _look(what)
    if kind == "set":
        name, state = what.split(" ")
        return _switch(name, state)
    if kind == "mode":
        return _mode(what)
    if kind == "grant":
        return _grant(what)
    return {"sim": RESEAT_SIM, "reboot": RESTART, "pay": PAY, "try": TRY_AGAIN}.get(
        kind, Step(name="reset apn", calls=(_RESET,))
    )


def given(user: Any) -> Sequence[Mapping[str, Any]]:
    """The phone becomes the user's."""
    return [phone("set_user_info", name=user.full_name, phone_number=user.phone_number)]


PHONE = Device(read=user_parsing.phone_facts, words=FACT_WORDS, hear=asked, given=given)
