"""The user's phone: what network it finds, what works then, and what its tools say, break and mend."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.types.chat import ToolCall
from support.carrier import action, around, carrier, device, task, user, world

BOTH = pytest.mark.parametrize("semantics", ["official", "fixed"])
FULL = "📶⁴ Excellent | 5G | 📱 Data Enabled | 🔋 80%"
NOTHING = "📵 No Signal | 📵 Data Disabled | 🔋 80%"


def phone(*names, semantics="official", **fields):
    """A world in which the user's side has run these functions without arguments."""
    return world(*(action("user", name) for name in names), semantics=semantics, **fields)


@pytest.mark.parametrize(
    ("broken", "bar", "speed"),
    [
        ((), "📶³ Good | 5G | 📱 Data Enabled | 🔋 80%", "220.00 Mbps (Excellent). Connection is very fast."),
        (("simulate_network_search",), FULL, "275.00 Mbps (Excellent). Connection is very fast."),
        (("turn_airplane_mode_on",), "✈️ Airplane Mode | 🔋 80%", None),
        (("unseat_sim_card",), NOTHING, None),
        (("break_apn_settings",), NOTHING, None),
        (("turn_data_off",), "📶⁴ Excellent | 5G | 📵 Data Disabled | 🔋 80%", None),
        (
            ("turn_data_saver_mode_on",),
            "📶³ Good | 5G | 📱 Data Enabled | 🔽 Data Saver | 🔋 80%",
            "44.00 Mbps (Good). Connection is good for most activities, including HD streaming.",
        ),
        (
            ("turn_roaming_off", "break_vpn"),
            "📶⁴ Excellent | 5G | 📱 Data Enabled | 🔒 VPN Connected | 🔋 80%",
            "27.50 Mbps (Good). Connection is good for most activities, including HD streaming.",
        ),
    ],
)
def test_status_bar_and_speed_tell_what_is_broken(broken, bar, speed):
    live = phone(*broken)
    assert user(live, "check_status_bar") == f"Status Bar: {bar}"
    assert user(live, "run_speed_test") == (
        f"Speed Test Result: {speed}" if speed else "Speed test failed: No Connection."
    )


@pytest.mark.parametrize(
    ("mode", "bar", "speed", "mms"),
    [
        ("4g_5g_preferred", "📶⁴ Excellent | 5G", "275.00 Mbps (Excellent).", True),
        ("4g_only", "📶³ Good | 4G", "44.00 Mbps (Good).", True),
        ("3g_only", "📶² Fair | 3G", "1.50 Mbps (Poor).", True),
        ("2g_only", "📶¹ Poor | 2G", "0.05 Mbps (Very Poor).", False),
    ],
)
@BOTH
def test_each_mode_has_its_technology_speed_and_mms(mode, bar, speed, mms, semantics):
    live = world(semantics=semantics)
    answer = user(live, "set_network_mode_preference", mode=mode)
    assert answer == f"Preferred Network Mode set to: {mode}\nStatus Bar: {bar} | 📱 Data Enabled | 🔋 80%"
    assert user(live, "check_network_mode_preference") == f"Network Mode Preference: {mode}"
    assert f"Speed Test Result: {speed}" in user(live, "run_speed_test")
    assert user(live, "can_send_mms") == f"Your messaging app {'can' if mms else 'cannot'} send MMS messages."


def test_without_5g_the_phone_falls_back_to_4g():
    far = carrier(phone={"surroundings": {"signal_strength": {"4G": "fair"}}}).world(task())
    assert "📶² Fair | 4G" in user(far, "reboot_device")
    assert "📵 No Signal | 3G" in user(far, "set_network_mode_preference", mode="3g_only")


@BOTH
def test_an_unknown_mode_changes_nothing(semantics):
    live = world(semantics=semantics)
    before = live.digest()
    assert user(live, "set_network_mode_preference", mode="5g").splitlines()[0] == (
        "Failed to set network mode: '5g' is not a valid option. "
        "Please use one of: 4g_5g_preferred, 4g_only, 3g_only, 2g_only"
    )
    assert live.digest() == before


def test_official_modes_that_are_no_text_are_stored_and_break_the_phone_a_little():
    live = world()
    assert user(live, "set_network_mode_preference", mode=5) == "Error: 'int' object has no attribute 'value'"
    assert device(live, "network_mode_preference") == 5 and device(live, "network_technology_connected") == "4G"
    assert user(live, "check_network_mode_preference") == "Error: 'int' object has no attribute 'value'"
    assert user(live, "set_network_mode_preference", mode=None).startswith("Failed to set network mode: 'None' is not")
    assert device(live, "network_mode_preference") is None
    fixed = world(semantics="fixed")
    assert "argument 'mode' must be" in user(fixed, "set_network_mode_preference", mode=5)
    assert device(fixed, "network_mode_preference") == "4g_5g_preferred"


def test_official_apn_settings_that_are_no_object_corrupt_the_phone_for_good():
    live = world()
    missing = "Error: 'str' object has no attribute '{}'"
    assert user(live, "set_apn_settings", apn_settings="internet") == missing.format("apn_name")
    assert device(live, "active_apn_settings") == "internet"
    for name, attribute in [
        ("toggle_data", "apn_name"),
        ("reset_apn_settings", "reset_at_reboot"),
        ("reboot_device", "reset_at_reboot"),
        ("check_apn_settings", "model_copy"),
    ]:
        assert user(live, name) == missing.format(attribute)
    assert device(live, "data_enabled") is False  # it was switched before the search failed
    assert user(live, "check_status_bar").startswith("Status Bar: 📶⁴ Excellent | 5G | 📵 Data Disabled")
    assert user(live, "set_apn_settings", apn_settings={}).startswith("APN settings set to: internet\n")
    fixed = world(semantics="fixed")
    before = fixed.digest()
    assert "argument 'apn_settings' must be" in user(fixed, "set_apn_settings", apn_settings="internet")
    wrong = user(fixed, "set_apn_settings", apn_settings={"mms_port": "x"})
    assert wrong.startswith("Error: apn_settings.mms_port: Input should be a valid integer") and "\n" not in wrong
    assert fixed.digest() == before


@BOTH
def test_apn_settings_are_set_broken_and_reset_at_a_reboot(semantics):
    live = phone("break_apn_settings", "break_apn_mms_setting", semantics=semantics)
    assert user(live, "check_apn_settings") == (
        "Current APN Name: broken\nMMSC URL (for picture messages): Not Set\n"
        "(These are technical settings, usually best left unchanged.)"
    )
    assert user(live, "reboot_device") == f"Restarting network services...\nStatus Bar: {NOTHING}"
    assert user(live, "reset_apn_settings") == f"APN settings will reset at reboot.\nStatus Bar: {NOTHING}"
    assert user(live, "reboot_device") == (
        f"Resetting APN settings...\nRestarting network services...\nStatus Bar: {FULL}"
    )
    assert user(live, "can_send_mms") == "Your messaging app can send MMS messages."
    assert "set to: broken\nStatus Bar: 📵 No" in user(live, "set_apn_settings", apn_settings={"apn_name": "broken"})
    user(live, "set_apn_settings", apn_settings={"mms_port": "80", "mmsc_url": None})
    assert device(live, "active_apn_settings") == {
        "apn_name": "internet",
        "reset_at_reboot": False,
        "mms_apn": "mms",
        "mmsc_url": None,
        "mms_proxy": None,
        "mms_port": 80,
    }
    assert user(live, "can_send_mms") == "Your messaging app cannot send MMS messages."


def test_official_apn_errors_are_pydantics():
    text = user(world(), "set_apn_settings", apn_settings={"apn_name": "x", "extra": 1})
    assert text.startswith(
        "Error: 2 validation errors for APNSettings\napn_name\n  Input should be 'internet' or 'broken'"
    )


@pytest.mark.parametrize(("semantics", "level"), [("official", "POOR"), ("fixed", "EXCELLENT")])
def test_a_broken_vpn_stays_broken_for_its_own_world_officially_and_not_at_all_when_fixed(semantics, level):
    domain = carrier(semantics=semantics)
    live = domain.world(task(action("user", "break_vpn")))
    assert user(live, "check_vpn_status") == (
        "VPN is ON and connected. Details: {'server_address': '192.168.1.1', 'protocol': 'OpenVPN', "
        "'server_performance': <PerformanceLevel.POOR: 'poor'>}"
    )
    assert user(live, "connect_vpn") == "VPN already connected."
    assert user(live, "disconnect_vpn").startswith("VPN disconnected successfully.\nStatus Bar: ")
    assert user(live, "disconnect_vpn").startswith("No active VPN connection to disconnect.\n")
    assert user(live, "check_vpn_status") == "VPN is turned OFF."
    assert user(live, "connect_vpn").startswith("VPN connected successfully.\n")
    assert f"<PerformanceLevel.{level}: " in user(live, "check_vpn_status")
    for other in (domain.world(task()), domain.world(task(action("user", "connect_vpn")))):
        user(other, "connect_vpn")
        assert "<PerformanceLevel.EXCELLENT: 'excellent'>" in user(other, "check_vpn_status")


def test_a_vpn_of_ones_own_does_not_spoil_the_default():
    own = {"vpn_connected": True, "vpn_details": {"protocol": "WireGuard"}, "vpn_enabled_setting": True}
    live = carrier(semantics="official", phone={"device": own}).world(task(action("user", "break_vpn")))
    assert "{'server_address': None, 'protocol': 'WireGuard', 'server_performance': <PerformanceLevel.POOR" in (
        user(live, "check_vpn_status")
    )
    user(live, "toggle_airplane_mode")  # which cuts the connection
    assert user(live, "check_vpn_status") == "VPN is turned ON in settings, but currently not connected."
    user(live, "connect_vpn")
    assert "EXCELLENT" in user(live, "check_vpn_status")


def test_sim_cards():
    live = phone("unseat_sim_card")
    assert user(live, "check_sim_status") == "No SIM card detected in the phone."
    assert user(live, "reseat_sim_card") == f"SIM card re-seated successfully.\nStatus Bar: {FULL}"
    assert user(live, "check_sim_status") == "Your SIM card is active and working."
    for mode in ("pin", "puk"):
        locked = world(action("user", "lock_sim_card", mode=mode))
        assert user(locked, "check_sim_status") == f"The SIM card is locked with a {mode.upper()} code."
        assert user(locked, "reseat_sim_card") == f"SIM card re-seated successfully.\nStatus Bar: {NOTHING}"
        assert "SIM Card Status: locked_" in user(locked, "check_network_status")


def test_wifi_and_airplane_mode():
    home = {"wifi_enabled": True, "wifi_connected": True, "wifi_ssid": "Home", "wifi_signal_strength": "good"}
    live = carrier(semantics="official", phone={"device": home}).world(task())
    assert user(live, "check_wifi_status") == "Wi-Fi is ON and connected to 'Home'. Signal strength: good."
    assert "📡 Connected to Home" in user(live, "check_status_bar")
    assert user(live, "check_network_status").endswith("Wi-Fi Connected: Yes\nConnected Wi-Fi Network: Home")
    assert user(live, "toggle_airplane_mode") == "Airplane Mode is now ON.\nStatus Bar: ✈️ Airplane Mode | 🔋 80%"
    assert user(live, "check_wifi_status") == "Wi-Fi is ON but not connected to any network."
    assert user(live, "toggle_wifi").startswith("Cannot change Wi-Fi settings while Airplane Mode is ON.\n")
    assert user(live, "toggle_airplane_mode") == f"Airplane Mode is now OFF.\nStatus Bar: {FULL}"
    assert user(live, "toggle_wifi").startswith("Wi-Fi is now OFF.\n")
    assert user(live, "check_wifi_status") == "Wi-Fi is turned OFF."
    assert user(live, "check_network_status") == (
        "Airplane Mode: OFF\nSIM Card Status: active\nCellular Connection: connected\nCellular Signal: excellent\n"
        "Cellular Network Type: 5G\nMobile Data Enabled: Yes\nData Roaming Enabled: No\nWi-Fi Radio: OFF\n"
        "Wi-Fi Connected: No"
    )


def test_mms_needs_permissions_and_a_carrier_that_takes_it():
    live = world(
        action("user", "remove_app_permission", app_name="messaging", permission="SMS"),
        action("user", "set_wifi_calling", enabled=True, mms_over_wifi=True),
    )
    cannot = "Your messaging app cannot send MMS messages."
    assert (
        user(live, "check_app_permissions", app_name="messaging")
        == "App 'messaging' has permission for: storage, phone."
    )
    assert user(live, "can_send_mms") == cannot
    granted = user(live, "grant_app_permission", app_name="messaging", permission="Sms")
    assert granted.startswith("Success. Permission 'sms' granted to app 'messaging'.\nStatus Bar: ")
    assert user(live, "can_send_mms") == cannot
    assert user(live, "check_wifi_calling_status") == "Wi-Fi Calling is currently turned ON."
    assert user(live, "toggle_wifi_calling").startswith("Wi-Fi Calling is now OFF.\n")
    assert user(live, "can_send_mms") == "Your messaging app can send MMS messages."


def test_apps():
    live = world()
    assert user(live, "check_installed_apps") == "The following apps are installed on the phone: messaging, browser"
    assert user(live, "check_app_status", app_name="browser") == (
        "Status for App: browser\n - Permissions Granted:\n   - storage\n   - network"
    )
    for name in ("check_app_status", "check_app_permissions"):
        assert user(live, name, app_name="x") == "App 'x' not found on this phone."
        assert user(live, name, app_name=["x"]) == "Error: unhashable type: 'list'"
    answer = user(live, "grant_app_permission", app_name="x", permission="sms")
    assert answer.startswith("Error. App 'x' not found. Cannot grant permission.\nStatus Bar: ")
    assert "'sms2' not tracked for app 'browser', available permissions: ['sms', 'storage', 'phone', 'network']" in (
        user(live, "grant_app_permission", app_name="browser", permission="sms2")
    )
    for permission in ("storage", "network"):
        live.toolkit("user").remove_app_permission("browser", permission)
    assert user(live, "check_app_status", app_name="browser").endswith(" - Permissions: None granted.")
    assert (
        user(live, "check_app_permissions", app_name="browser") == "App 'browser' currently has no permissions granted."
    )
    assert live.toolkit("user").remove_app_permission("x", "sms")[0] is False
    assert live.toolkit("user").remove_app_permission("browser", "x")[0] is False


def test_functions_that_only_tasks_use():
    live = phone("turn_airplane_mode_on", "turn_airplane_mode_off", "turn_data_off", "turn_data_on", "turn_roaming_on")
    assert [device(live, f) for f in ("airplane_mode", "data_enabled", "roaming_enabled")] == [False, True, True]
    live = phone("turn_roaming_on", "turn_roaming_off", "turn_data_saver_mode_on", "turn_data_saver_mode_off")
    assert [device(live, f) for f in ("roaming_enabled", "data_saver_mode")] == [False, False]
    live = world(action("user", "set_wifi_calling", enabled=False))
    assert device(live, "wifi_calling_enabled") is False and device(live, "wifi_calling_mms_over_wifi") is False


def test_assertions():
    live = phone("turn_data_saver_mode_on", "turn_roaming_on")
    kit = live.toolkit("user")
    assert kit.assert_airplane_mode_status(False) and kit.assert_mobile_data_status(True)
    assert kit.assert_service_status("connected") and not kit.assert_service_status("searching")
    assert kit.assert_mobile_roaming_status(True) and kit.assert_mobile_data_saver_mode_status(True)
    assert kit.assert_internet_speed(50) and kit.assert_internet_speed(50, "GOOD")
    assert not kit.assert_internet_speed(50, "excellent") and not kit.assert_internet_speed(60)
    assert kit.assert_internet_not_excellent() and kit.assert_can_send_mms(True)
    assert kit.assert_mobile_data_usage_exceeded(False)
    with pytest.raises(ValueError, match="'perfect' is not a valid NetworkStatus"):
        kit.assert_service_status("perfect")
    user(live, "toggle_airplane_mode")
    assert kit.assert_internet_speed(0) and not kit.assert_internet_speed(0, "excellent")


WRITES = tuple(n for n in carrier().tool_names("user") if carrier().kind_of(n) == "write" and not n.startswith("set_"))
CALLS = st.one_of(
    st.sampled_from([(name, ()) for name in WRITES if name != "grant_app_permission"]),
    st.sampled_from(["4g_only", "2g_only", "4g_5g_preferred", "x"]).map(
        lambda mode: ("set_network_mode_preference", (("mode", mode),))
    ),
    st.sampled_from(["internet", "broken"]).map(
        lambda apn: ("set_apn_settings", (("apn_settings", {"apn_name": apn}),))
    ),
)


@given(st.lists(CALLS, max_size=12))
@settings(max_examples=50)
def test_well_formed_calls_never_fail_and_give_the_same_in_both_semantics(calls):
    worlds = [carrier(semantics=semantics).world(task()) for semantics in ("official", "fixed")]
    for name, arguments in calls:
        results = [w.call("user", ToolCall("1", name, dict(arguments), "user")) for w in worlds]
        assert results[0] == results[1] and not results[0].error
        assert results[0].content.splitlines()[-1] in (results[0].content, user(worlds[0], "check_status_bar"))
    assert worlds[0].digest() == worlds[1].digest()
    assert worlds[0].full_hash("user") == worlds[1].full_hash("user")
    works = worlds[0].toolkit("user").assert_mobile_data_status(True)
    assert works == user(worlds[0], "run_speed_test").startswith("Speed Test Result")
    assert around(worlds[0], "line_active") is True
