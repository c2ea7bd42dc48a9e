"""What telecom users understand of an agent and of their phone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl_worlds.tau.telecom import steps
from muarl_worlds.tau.telecom.user_parsing import instructions, phone_facts
from support.telecom import broken_task

TELECOM = find("telecom-generated")

# what an agent asks for

STEPS = [
    (steps.LOOK_NETWORK, [("read", "check_network_status")]),
    (steps.LOOK_BAR, [("read", "check_status_bar")]),
    (steps.LOOK_CALLING, [("read", "check_wifi_calling_status")]),
    (steps.LOOK_APP, [("read", "check_app_permissions")]),
    (steps.LOOK_APN, [("read", "check_apn_settings")]),
    (steps.TEST_SPEED, [("read", "run_speed_test")]),
    (steps.AIRPLANE_OFF, [("set", "airplane off")]),
    (steps.RESEAT_SIM, [("sim", "")]),
    (steps.RESET_APN, [("apn", ""), ("reboot", "")]),
    (steps.RESTART, [("reboot", "")]),
    (steps.DATA_ON, [("set", "data on")]),
    (steps.NEWEST_MODE, [("mode", "4g_5g_preferred")]),
    (steps.ROAMING_ON, [("set", "roaming on")]),
    (steps.SAVER_OFF, [("set", "saver off")]),
    (steps.VPN_OFF, [("set", "vpn off")]),
    (steps.CALLING_OFF, [("set", "wifi_calling off")]),
    (steps.ALLOW[("sms",)], [("grant", "sms")]),
    (steps.ALLOW[("storage",)], [("grant", "storage")]),
    (steps.ALLOW[("sms", "storage")], [("grant", "sms"), ("grant", "storage")]),
    (steps.TRY_AGAIN, [("try", "")]),
    (steps.PAY, [("pay", "")]),
]


@pytest.mark.parametrize(("step", "understood"), STEPS, ids=[step.name for step, _ in STEPS])
def test_the_experts_own_words_are_understood(step, understood):
    (text,) = step.wordings
    assert instructions(text) == understood


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("Could you please check your status bar and tell me what you see?", [("read", "check_status_bar")]),
        ("Please toggle Airplane Mode OFF and let me know if service is restored.", [("set", "airplane off")]),
        ("If airplane mode is on, please turn it off.", [("set", "airplane off")]),
        ("Please check if Data Saver mode is on. If it is, turn it off.", [("set", "saver off")]),
        ("Please run the `check_network_status()` tool.", [("read", "check_network_status")]),
        ("Can you use toggle_airplane_mode() to turn off airplane mode?", [("set", "airplane off")]),
        ("Is your SIM card inserted properly?", [("read", "check_sim_status")]),
        ("Please remove and re-insert your SIM card, then restart your phone.", [("sim", ""), ("reboot", "")]),
        ("I'd like you to reset your APN settings and then reboot the device.", [("apn", ""), ("reboot", "")]),
        ("I have enabled roaming. Could you please run a speed test now?", [("read", "run_speed_test")]),
        ("Please make sure that Mobile Data is turned ON.", [("set", "data on")]),
        ("Please turn mobile data off.", [("set", "data off")]),
        ("Please check whether mobile data is turned on.", [("read", "check_network_status")]),
        ("Can you tell me your network mode preference?", [("read", "check_network_mode_preference")]),
        ("Please change the network mode preference to 4g_5g_preferred.", [("mode", "4g_5g_preferred")]),
        ("Set your network mode to 3g_only.", [("mode", "3g_only")]),
        ("Grant the storage and SMS permissions to the messaging app.", [("grant", "sms"), ("grant", "storage")]),
        ("Please check the app permissions (check_app_permissions).", [("read", "check_app_permissions")]),
        ("Are you able to send picture messages now?", [("read", "can_send_mms")]),
        ("I have sent a request. Please check your payment requests and make the payment.", [("pay", "")]),
        ("Please check your payment requests.", [("read", "check_payment_request")]),
        (
            "Please disconnect from the VPN and run another speed test.",
            [("set", "vpn off"), ("read", "run_speed_test")],
        ),
        ("Turn off Wi-Fi Calling.", [("set", "wifi_calling off")]),
        ("Please turn your phone off and on again.", [("reboot", "")]),
        ("1. Turn on data roaming\n2. Run a speed test", [("set", "roaming on"), ("read", "run_speed_test")]),
        ("Does the internet work now?", [("try", "")]),
        ("Would you like me to send a payment request?", []),
        ("I will now turn on roaming for your line.", []),
        ("Your line is suspended.", []),
        ("That is paid bill B1234 of $20.00. Anything else?", []),
    ],
)
def test_what_other_agents_say_is_understood_too(text, understood):
    assert instructions(text) == understood


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_no_text_makes_anybody_stumble(text):
    instructions(text), phone_facts(text), steps.PHONE.told(text), steps.PHONE.asked(text)


# what the phone says


def used(world, name, **arguments):
    return phone_facts(world.call("user", ToolCall("1", name, arguments, "user")).content)


def test_every_tool_of_the_phone_is_read():
    wrong = ["airplane_mode", "sim_out", "data_off", "mode_2g", "roaming_off"]
    world = TELECOM.make_domain().world(broken_task(wrong))
    assert used(world, "check_network_status") == {
        "airplane": "on", "sim": "missing", "signal": "none", "data": "off", "roaming": "off"
    }  # fmt: skip
    assert used(world, "check_status_bar") == {"airplane": "on", "vpn": "off"}
    assert used(world, "toggle_airplane_mode") == {"airplane": "off", "signal": "none", "vpn": "off"}
    assert used(world, "check_sim_status") == {"sim": "missing"}
    assert used(world, "run_speed_test") == {"speed": "none"}
    assert used(world, "check_network_mode_preference") == {"mode": "2g_only"}
    after = used(world, "reseat_sim_card")
    assert after == {"airplane": "off", "signal": "poor", "network": "2G", "data": "off", "vpn": "off"}
    assert used(world, "check_sim_status") == {"sim": "active"}
    assert used(world, "toggle_data")["data"] == "on"
    assert used(world, "toggle_roaming")["roaming"] == "on"
    assert used(world, "set_network_mode_preference", mode="4g_5g_preferred")["network"] == "5G"
    assert used(world, "run_speed_test") == {"speed": "excellent"}
    assert used(world, "can_send_mms") == {"mms": "on"}
    other = TELECOM.make_domain().world(broken_task(["data_saver", "slow_vpn"]))
    bar = used(other, "check_status_bar")
    assert (bar["saver"], bar["vpn"], bar["signal"]) == ("on", "on", "excellent")
    assert used(other, "check_data_restriction_status") == {"saver": "on"}
    assert used(other, "check_vpn_status") == {"vpn": "on"} and used(other, "disconnect_vpn")["vpn"] == "off"
    assert used(other, "run_speed_test") == {"speed": "good"}
    assert used(other, "toggle_data_saver_mode")["saver"] == "off"
    third = TELECOM.make_domain().world(broken_task(["wifi_calling", "app_storage", "mms_apn"]))
    assert used(third, "check_wifi_calling_status") == {"wifi_calling": "on"}
    assert used(third, "check_app_permissions", app_name="messaging") == {"sms": "on", "storage": "off"}
    assert used(third, "check_apn_settings") == {"apn": "internet", "mmsc": "off"}
    assert used(third, "can_send_mms") == {"mms": "off"}
    assert used(third, "grant_app_permission", app_name="messaging", permission="storage")["storage"] == "on"
    assert used(third, "check_wifi_status") == {"wifi": "off"} and used(third, "toggle_wifi")["wifi"] == "on"
