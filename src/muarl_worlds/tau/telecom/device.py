"""The user's phone and its surroundings: how the network is found, what works then, and what a task can break.

None of these methods is a tool. Their names are TAU2's, as are the effects, down to the ones a failing call leaves.

The phone's database has the tables ``device`` and ``surroundings``, whose records are single fields. In "official"
semantics two fields may come to hold anything, since TAU2's tools store before they check: the APN settings (anything
but an object) and the network mode. Reading them fails then as it does in TAU2.
"""

from __future__ import annotations

from typing import Any

from muarl.domains.base import Domain

_NO_SERVICE = ("no_service", "none", "none")
_TECHNOLOGY = {"4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
_SIGNALS = {
    "none": "📵 No Signal",
    "poor": "📶¹ Poor",
    "fair": "📶² Fair",
    "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}
_SPEEDS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0), "none": (0.0, 0.0)}
_FACTORS = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0, "none": 0.0}
_VPN = {"server_address": "192.168.1.1", "protocol": "OpenVPN"}
_STATUSES = ("connected", "searching", "no_service", "emergency_only")


class PhoneState(Domain):
    """The state behind the user's tools."""

    _vpn_default = "excellent"
    """How well the default VPN server performs. TAU2 keeps one such server for a whole process, and ``break_vpn``
    spoils it for good. Here, in "official" semantics, it does so for this world: what TAU2 gives to a process that
    plays one task. In "fixed" semantics it spoils the connection and not the server."""
    _vpn_is_default = False

    def _get(self, field: str) -> Any:
        return self.db["device"].peek(field)

    def _set(self, **fields: Any) -> None:
        device = self.db.device
        for name, value in fields.items():
            device[name] = value

    def _around(self, field: str) -> Any:
        return self.db["surroundings"].peek(field)

    def _apn(self, attribute: str) -> Any:
        """One of the APN settings. AttributeError, in Python's words, if they were overwritten with something else."""
        settings = self._get("active_apn_settings")
        if not isinstance(settings, dict):
            raise AttributeError(f"'{type(settings).__name__}' object has no attribute '{attribute}'")
        return settings[attribute]

    def _sim_status(self) -> str:
        return "missing" if self._get("sim_card_missing") else self._get("sim_card_status")

    def simulate_network_search(self) -> None:
        """Find a network, as the SIM, the preferred mode, airplane mode, the APN and the line allow."""
        found = _NO_SERVICE
        if self._sim_status() == "active" and not self._get("airplane_mode"):
            found = ("connected", *self._reachable())
        self._connect(*found)
        if self._apn("apn_name") == "broken" or not self._around("line_active"):
            self._connect(*_NO_SERVICE)

    def _reachable(self) -> tuple[str, str]:
        """The technology that the preferred mode gives here, and its signal."""
        signals, mode = self._around("signal_strength"), self._get("network_mode_preference")
        if mode == "4g_5g_preferred" and signals.get("5G", "none") != "none":
            return "5G", signals["5G"]
        technology = _TECHNOLOGY.get(mode, "4G") if isinstance(mode, str) else "4G"
        return technology, signals.get(technology, "none")

    def _connect(self, status: str, technology: str, signal: str) -> None:
        self._set(
            network_connection_status=status, network_technology_connected=technology, network_signal_strength=signal
        )

    def _data_works(self) -> bool:
        """Whether mobile data gets through."""
        if self._get("airplane_mode") or self._get("network_signal_strength") == "none":
            return False
        if self._get("network_connection_status") == "no_service":
            return False
        if self._around("is_abroad") and not (self._get("roaming_enabled") and self._around("roaming_allowed")):
            return False
        return bool(self._get("data_enabled")) and not self._around("mobile_data_usage_exceeded")

    def _mms_works(self) -> bool:
        if not self._data_works() or self._get("network_technology_connected") == "2G":
            return False
        if self._get("wifi_calling_enabled") and self._get("wifi_calling_mms_over_wifi"):
            return False  # the carrier does not support it
        if self._apn("mmsc_url") is None:
            return False
        app = self._get("app_statuses").get("messaging")
        return app is not None and app["permissions"]["storage"] and app["permissions"]["sms"]

    def _speed(self) -> tuple[float | None, str]:
        """(Mbps rounded to two places, in a word), or (None, "No Connection")."""
        if not self._data_works():
            return None, "No Connection"
        details = self._get("vpn_details")
        slow_vpn = self._get("vpn_connected") and details and details["server_performance"] == "poor"
        factor = 0.1 if slow_vpn else 1.0
        if self._get("data_saver_mode"):
            factor *= 0.2
        low, high = _SPEEDS[self._get("network_technology_connected")]
        speed = round((low + high) / 2.0 * _FACTORS[self._get("network_signal_strength")] * factor, 2)
        words = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))
        return speed, next((word for limit, word in words if speed < limit), "Excellent")

    def _bar(self) -> str:
        """The phone's status bar."""
        parts = []
        if self._get("airplane_mode"):
            parts.append("✈️ Airplane Mode")
        else:
            technology = self._get("network_technology_connected")
            parts.append(_SIGNALS[self._get("network_signal_strength")])
            if technology != "none":
                parts.append(technology)
            if self._get("data_enabled") and technology != "none":
                parts.append("📱 Data Enabled")
                if self._get("data_saver_mode"):
                    parts.append("🔽 Data Saver")
            else:
                parts.append("📵 Data Disabled")
        if self._get("wifi_enabled") and self._get("wifi_connected"):
            name = self._get("wifi_ssid")
            parts.append(f"📡 Connected to {name}" if name else "📡 Enabled")
        if self._get("vpn_connected"):
            parts.append("🔒 VPN Connected")
        parts.append(f"🔋 {self._get('battery_level')}%")
        return " | ".join(parts)

    # What the tools and the task's initial actions share

    def _toggle(self, field: str) -> bool:
        new = not self._get(field)
        self.db.device[field] = new
        return new

    def _toggle_and_search(self, field: str) -> bool:
        new = self._toggle(field)
        self.simulate_network_search()
        return new

    def _toggle_airplane_mode(self) -> bool:
        new = self._toggle("airplane_mode")
        if new or self._get("wifi_enabled"):
            self._drop_wifi()
        if new:
            self._disconnect_vpn()
        self.simulate_network_search()
        return new

    def _drop_wifi(self) -> None:
        self._set(wifi_connected=False, wifi_ssid=None, wifi_signal_strength="none")

    def _connect_vpn(self) -> bool:
        """False if there is a connection already."""
        if self._get("vpn_connected"):
            return False
        self._set(vpn_connected=True, vpn_details={**_VPN, "server_performance": self._vpn_default})
        self._vpn_is_default = True
        return True

    def _disconnect_vpn(self) -> bool:
        """False if there is no connection."""
        if not self._get("vpn_connected"):
            return False
        self._set(vpn_connected=False, vpn_details=None)
        self._vpn_is_default = False
        return True

    # How a task sets up its world

    def set_user_info(self, name: str, phone_number: str) -> None:
        """Say who the user is, and which line is his."""
        self.db.surroundings["name"] = name
        self.db.surroundings["phone_number"] = phone_number

    def set_user_location(self, abroad: bool) -> None:
        """Say whether the user is abroad."""
        self.db.surroundings["is_abroad"] = abroad

    def turn_airplane_mode_on(self) -> str:
        """Toggle airplane mode until it is on."""
        self._toggle_airplane_mode() or self._toggle_airplane_mode()
        return "Airplane Mode is now ON."

    def turn_airplane_mode_off(self) -> str:
        """Toggle airplane mode until it is off."""
        if self._toggle_airplane_mode():
            self._toggle_airplane_mode()
        return "Airplane Mode is now OFF."

    def unseat_sim_card(self) -> str:
        """Take the SIM card out; ``reseat_sim_card`` fixes it."""
        self.db.device["sim_card_missing"] = True
        self.simulate_network_search()
        return "SIM card un-seated successfully."

    def lock_sim_card(self, mode: str) -> str:
        """Lock the SIM card ("pin" or "puk"); no tool fixes it."""
        if mode in ("pin", "puk"):
            self.db.device["sim_card_status"] = f"locked_{mode}"
        self.simulate_network_search()
        return f"SIM card locked successfully in {mode} mode."

    def turn_data_on(self) -> str:
        """Switch mobile data on, without a search."""
        self.db.device["data_enabled"] = True
        return "Data connection restored."

    def turn_data_off(self) -> str:
        """Toggle mobile data until it is off."""
        if self._toggle_and_search("data_enabled"):
            self._toggle_and_search("data_enabled")
        return "Data connection broken."

    def turn_roaming_on(self) -> str:
        """Toggle data roaming until it is on."""
        self._toggle_and_search("roaming_enabled") or self._toggle_and_search("roaming_enabled")
        return "Data Roaming is now ON."

    def turn_roaming_off(self) -> str:
        """Toggle data roaming until it is off."""
        if self._toggle_and_search("roaming_enabled"):
            self._toggle_and_search("roaming_enabled")
        return "Data Roaming is now OFF."

    def turn_data_saver_mode_on(self) -> str:
        """Switch the data saver on."""
        self.db.device["data_saver_mode"] = True
        return "Data Saver Mode is now ON."

    def turn_data_saver_mode_off(self) -> str:
        """Switch the data saver off."""
        self.db.device["data_saver_mode"] = False
        return "Data Saver Mode is now OFF."

    def break_apn_settings(self) -> str:
        """Break the APN, so that there is no service; ``reset_apn_settings`` and a reboot fix it."""
        self.db.device["active_apn_settings"]["apn_name"] = "broken"
        self.simulate_network_search()
        return "APN settings broken. Please call reset_apn_settings() to fix."

    def break_apn_mms_setting(self) -> str:
        """Remove the address of the MMS centre; ``reset_apn_settings`` and a reboot fix it."""
        self.db.device["active_apn_settings"]["mmsc_url"] = None
        return "APN MMS setting broken. Please call reset_apn_settings() to fix."

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> str:
        """Switch Wi-Fi calling, and MMS over Wi-Fi if that is given."""
        if self._get("wifi_calling_enabled") != enabled:
            self._toggle("wifi_calling_enabled")
        message = f"Wi-Fi Calling is now {'ON' if enabled else 'OFF'}."
        if mms_over_wifi is not None:
            self.db.device["wifi_calling_mms_over_wifi"] = mms_over_wifi
            message += f"\nMMS over Wi-Fi is now {'ON' if mms_over_wifi else 'OFF'}."
        return message

    def break_vpn(self) -> str:
        """Connect to a VPN and make it slow; ``disconnect_vpn`` fixes it."""
        self._connect_vpn()
        self.db.device["vpn_details"]["server_performance"] = "poor"
        if self._vpn_is_default and self.semantics == "official":
            self._vpn_default = "poor"
        return "VPN connection broken."

    def remove_app_permission(self, app_name: str, permission: str) -> tuple[bool, str]:
        """Take a permission from an app: (whether it was done, in words)."""
        permission = permission.lower()
        app = self._get("app_statuses").get(app_name)
        if app is None:
            return False, f"App '{app_name}' not found. Cannot remove permission."
        if permission not in app["permissions"]:
            return False, f"Permission '{permission}' not tracked for app '{app_name}'."
        self.db.device["app_statuses"][app_name]["permissions"][permission] = False
        return True, f"Permission '{permission}' removed from app '{app_name}'."

    # What can be asserted

    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        """True if airplane mode is as expected."""
        return bool(self._get("airplane_mode") == expected_status)

    def assert_service_status(self, expected_status: str) -> bool:
        """True if the phone's connection is as expected. ValueError for an unknown status."""
        if expected_status not in _STATUSES:
            raise ValueError(f"{expected_status!r} is not a valid NetworkStatus")
        return bool(self._get("network_connection_status") == expected_status)

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        """True if mobile data works, or does not, as expected."""
        return self._data_works() == expected_status

    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        """True if the phone's data roaming is as expected."""
        return bool(self._get("roaming_enabled") == expected_status)

    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        """True if the data saver is as expected."""
        return bool(self._get("data_saver_mode") == expected_status)

    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        """True if a speed test gives at least that many Mbps, and that word if one is given."""
        speed, word = self._speed()
        return (speed or 0.0) >= expected_speed and (expected_desc is None or word.lower() == expected_desc.lower())

    def assert_internet_not_excellent(self) -> bool:
        """True if a speed test gives another word than excellent."""
        return self._speed()[1] != "Excellent"

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        """True if MMS can be sent, or cannot, as expected."""
        return self._mms_works() == expected_status

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        """True if the month's data are used up, or not, as expected."""
        return bool(self._around("mobile_data_usage_exceeded") == expected_status)
