"""How telecom users understand an agent, and what their phone's tools tell them.

``instructions`` turns the agent's text into steps to take on the phone, ``phone_facts`` a tool's
text into facts. All work on plain English, so an agent need not be one of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Step = tuple[str, str]
"""("read", tool), ("set", "airplane off"), ("try", "") and the like: see ``instructions``."""

_OBJECTS: tuple[tuple[str, str], ...] = (
    ("payment", r"payment request|payment|\bpay\b"),
    ("wifi_calling", r"wi-?fi calling"),
    ("airplane", r"air ?plane( mode)?|flight mode"),
    ("saver", r"data[- ]saver|data (restriction|limiting)|restrict\w* data"),
    ("roaming", r"roaming"),
    ("mode", r"network (mode|preference|type prefer)\w*|preferred network|mode preference|network mode preference"),
    ("network", r"network (status|connection|settings)|cellular (status|connection|network)|connection status"),
    ("bar", r"status bar|\bsignal\b|\bbars\b|cell(ular)? service|(have|has|is) service"),
    ("data", r"(mobile|cellular) data|\bdata (switch|connection)\b|toggle data\b"),
    ("vpn", r"\bvpn\b"),
    ("sim", r"\bsim\b"),
    ("apn", r"\bapns?\b|access point|mmsc"),
    ("app", r"permission|app access"),
    ("speed", r"speed[- ]?test|internet speed|\bspeed\b"),
    ("mms", r"\bmms\b|(picture|photo|multimedia)( message)?s?\b"),
    ("reboot", r"re-?boot|re-?start|power (cycle|off and on)|off and (back )?on again"),
    ("wifi", r"wi-?fi"),
)
_READS: Mapping[str, str] = {
    "payment": "check_payment_request",
    "wifi_calling": "check_wifi_calling_status",
    "airplane": "check_network_status",
    "saver": "check_data_restriction_status",
    "roaming": "check_network_status",
    "mode": "check_network_mode_preference",
    "network": "check_network_status",
    "bar": "check_status_bar",
    "data": "check_network_status",
    "vpn": "check_vpn_status",
    "sim": "check_sim_status",
    "apn": "check_apn_settings",
    "app": "check_app_permissions",
    "speed": "run_speed_test",
    "mms": "can_send_mms",
    "wifi": "check_wifi_status",
}
_WANTED: Mapping[str, str] = {
    "airplane": "off", "saver": "off", "wifi_calling": "off", "vpn": "off", "wifi": "off", "data": "on",
    "roaming": "on",
}  # fmt: skip
"""What a switch is to be set to where an agent only says to toggle it."""

_SELF = re.compile(
    r"\b(like|want) me to\b"
    r"|\b(i|i'll|i've|i'm|we|we'll|shall|let me(?! know))\b(?!.*\b(you to\b|please (?!wait|hold|confirm|note)))"
)
_LOOK = re.compile(r"\b(check|look|see|tell|let me know|verify|show|run|try|report|find out|go to)\b")
_CHANGE = re.compile(
    r"\b(turn|switch|toggle|disable|enable|deactivate|activate|set|change|reset|re-?seat|re-?insert|remove|insert"
    r"|re-?start|re-?boot|power|grant|allow|give|disconnect|connect|make sure|ensure|pay|make (a|the) payment|accept"
    r"|complete)\b"
)
_GRANT = re.compile(r"\b(allow|grant|give|enable)\b[^.?!]*\b(sms|storage|permissions?)\b[^.?!]*")
_TRY = re.compile(
    r"try (it )?(again|now)|does (it|that|the internet|everything) work|is it working"
    r"|(issue|problem) (is )?(solved|resolved|fixed)"
)


def instructions(text: str) -> list[Step]:
    """What an agent asks the user to do on the phone, in order, each once.

    ("read", TOOL): look with that tool. ("set", "NAME VALUE"): bring a switch to a state. ("mode", MODE), ("grant",
    PERMISSION), ("sim", ""), ("apn", ""), ("reboot", ""), ("pay", ""). ("try", ""): see whether the trouble is over.
    """
    steps: list[Step] = []
    last = ""
    plain = re.sub(r"[`*_()]", " ", text.lower().replace("’", "'"))
    plain = re.sub(r"off and (then )?(back )?on\b", "restart", plain)
    for sentence in re.split(r"(?<=[.!?:])\s+|\n+", plain):
        if _SELF.search(sentence):
            continue
        if _TRY.search(sentence):
            steps.append(("try", ""))
            continue
        steps, last = _steps(steps, sentence, last)
    return list(dict.fromkeys(steps))


def _steps(steps: list[Step], sentence: str, last: str) -> tuple[list[Step], str]:
    """The steps so far and a sentence's own; ``last``: what was last spoken of, which "it" may mean."""
    granted = _GRANT.search(sentence)
    if granted:
        named = [p for p in ("sms", "storage") if re.search(rf"\b{p}\b", sentence)]
        steps = [*steps, *(("grant", p) for p in named or ("sms", "storage"))]
        sentence = sentence.replace(granted[0], " ")
    verb = ""
    for clause in re.split(r"\band\b|\bthen\b|[,;]", sentence):
        objects = _objects(clause)
        changes, looks = _CHANGE.search(clause), _LOOK.search(clause)
        whether = looks is not None and re.search(r"\b(if|whether|that|how)\b", clause) is not None
        if changes and not (whether and looks is not None and looks.start() < changes.start() and objects):
            verb = "change"
        elif looks or (objects and "?" in sentence):
            verb = "look"
        if not objects and changes and last and re.search(r"\b(it|that|this|them)\b", clause):
            objects = [last]
            steps = [s for s in steps if s != ("read", _READS.get(last, ""))]
        for name in objects:
            last = name
            steps = [*steps, *_step(name, verb, clause, sentence)]
    return steps, last


def _objects(clause: str) -> list[str]:
    """What a clause speaks of, in order of mention; each stretch of text counts once."""
    found: list[tuple[int, str]] = []
    for name, pattern in _OBJECTS:
        match = re.search(pattern, clause)
        if match:
            found.append((match.start(), name))
            clause = clause[: match.start()] + " " * len(match[0]) + clause[match.end() :]
    return [name for _, name in sorted(found)]


def _step(name: str, verb: str, clause: str, sentence: str) -> list[Step]:
    if name == "reboot":
        return [("reboot", "")]
    if name == "payment":
        return [("pay", "")] if re.search(r"\bpay\b|make|accept|complete", sentence) else [("read", _READS[name])]
    if not verb:
        return []
    if verb == "look" or name in ("network", "bar", "speed", "mms", "app"):
        return [("read", _READS[name])]
    if name == "sim":
        return [("sim", "")]
    if name == "apn":
        return [("apn", "")]
    if name == "mode":
        return [("mode", _mode(sentence))]
    return [("set", f"{name} {_state(name, clause)}")]


def _mode(text: str) -> str:
    """The network mode that an instruction names; one with 5G unless it says otherwise."""
    for mode in ("2g", "3g", "4g"):
        if re.search(rf"\b{mode}[_ -]only\b", text):
            return f"{mode}_only"
    return "4g_5g_preferred"


def _state(name: str, clause: str) -> str:
    """On or off: as the clause says, else what fixes things."""
    off = re.search(r"\boff\b|disable|deactivate|disconnect", clause)
    on = re.search(r"\bon\b|\benable|\bactivate|(?<!dis)connect", clause)
    if bool(off) == bool(on):
        return _WANTED[name]
    return "off" if off else "on"


_YES = {"Yes": "on", "No": "off", "ON": "on", "OFF": "off"}
_PHONE: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("airplane", r"Airplane Mode(?: is now|:) (ON|OFF)", _YES),
    ("sim", r"SIM Card Status: (active|missing|locked)", {}),
    ("sim", r"SIM card is (active|locked)", {}),
    ("sim", r"(No SIM card detected)", {"No SIM card detected": "missing"}),
    ("signal", r"Cellular Signal: (\w+)", {}),
    ("network", r"Cellular Network Type: (\dG)", {}),
    ("data", r"Mobile Data(?: Enabled: | is now )(Yes|No|ON|OFF)", _YES),
    ("roaming", r"Data Roaming(?: Enabled: | is now )(Yes|No|ON|OFF)", _YES),
    ("mode", r"(?:Network Mode Preference: |Preferred Network Mode set to: )(\w+)", {}),
    ("saver", r"Data Saver [Mm]ode is (?:now )?(ON|OFF)", _YES),
    ("wifi_calling", r"Wi-Fi Calling is (?:currently turned|now) (ON|OFF)", _YES),
    ("wifi", r"Wi-Fi is (?:turned |now )?(ON|OFF)", _YES),
    ("vpn", r"VPN is (ON|turned OFF)", {"ON": "on", "turned OFF": "off"}),
    ("vpn", r"(VPN disconnected|No active VPN)", {"VPN disconnected": "off", "No active VPN": "off"}),
    ("apn", r"APN Name: (\w+)", {}),
    ("mmsc", r"MMSC URL[^:]*: (Not Set|\S+)", {"Not Set": "off"}),
    ("speed", r"(Speed test failed)", {"Speed test failed": "none"}),
    ("speed", r"Mbps \(([A-Za-z ]+)\)", {}),
    ("mms", r"messaging app (cannot|can) send", {"can": "on", "cannot": "off"}),
)  # fmt: skip


def phone_facts(text: str) -> dict[str, str]:
    """The facts in the text of one of the phone's tools, by the keys of ``steps.FACT_WORDS``."""
    facts: dict[str, str] = {}
    for key, pattern, values in _PHONE:
        match = re.search(pattern, text)
        if match:
            facts[key] = values.get(match[1], "on" if key == "mmsc" else match[1])
    if "speed" in facts:
        facts["speed"] = facts["speed"].lower()
    allowed = re.search(r"has permission for: ([\w, ]+)|(no permissions granted)", text)
    if allowed:
        given = (allowed[1] or "").split(", ")
        facts |= {p: "on" if p in given else "off" for p in ("sms", "storage")}
    granted = re.search(r"Permission '(\w+)' granted", text)
    if granted:
        facts[granted[1]] = "on"
    bar = re.search(r"Status Bar: (.*)", text)
    return {**_bar_facts(bar[1]), **facts} if bar else facts


def _bar_facts(bar: str) -> dict[str, str]:
    """What the status bar shows. Without a signal it says nothing sure about mobile data."""
    facts = {"vpn": "on" if "VPN" in bar else "off"}
    if "Airplane" in bar:
        return {"airplane": "on", **facts}
    signal = re.search(r"(No Signal|Poor|Fair|Good|Excellent)", bar)
    network = re.search(r"\| (\dG)\b", bar)
    facts |= {"airplane": "off", "signal": signal[1].lower().replace("no signal", "none") if signal else "none"}
    if network:
        facts |= {"network": network[1], "data": "on" if "Data Enabled" in bar else "off"}
        if "Data Enabled" in bar:
            facts["saver"] = "on" if "Data Saver" in bar else "off"
    return facts
