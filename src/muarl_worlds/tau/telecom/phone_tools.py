# ruff: noqa: E501 (the interface's own lines)
"""TAU2 telecom's 30 user tools: what the user can look at and change on the phone.

The docstrings and result texts are the tools' interface, word for word as TAU2 gives it to models (sierra-research/
tau2-bench, MIT licence, Copyright Sierra Research): they are part of what the benchmark measures. What the tools do is
written anew.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from muarl.domains.tooling import tool
from muarl_worlds.tau.telecom.device import PhoneState
from muarl_worlds.tau.telecom.records import APNSettings, NetworkModePreference

_MODES = [mode.value for mode in NetworkModePreference]
_SIM = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}
_ADVICE = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}


def _switch(on: Any) -> str:
    return "ON" if on else "OFF"


def _yes(value: Any) -> str:
    return "Yes" if value else "No"


def _granted(app: dict[str, Any]) -> list[str]:
    return [name for name, allowed in app["permissions"].items() if allowed]


class TelecomUserTools(PhoneState):
    """The tools. Their class names and their own stand in Python's error texts."""

    def _with_bar(self, text: str) -> str:
        return f"{text}\nStatus Bar: {self._bar()}"

    @tool
    def check_status_bar(self) -> str:
        """Shows what icons are currently visible in your phone's status bar (the area at the top of the screen). Displays network signal strength, mobile data status (enabled, disabled, data saver), Wi-Fi status, and battery level."""
        return f"Status Bar: {self._bar()}"

    @tool
    def check_network_status(self) -> str:
        """Checks your phone's connection status to cellular networks and Wi-Fi. Shows airplane mode status, signal strength, network type, whether mobile data is enabled, and whether data roaming is enabled."""
        lines = [
            f"Airplane Mode: {_switch(self._get('airplane_mode'))}",
            f"SIM Card Status: {self._sim_status()}",
            f"Cellular Connection: {self._get('network_connection_status')}",
            f"Cellular Signal: {self._get('network_signal_strength')}",
            f"Cellular Network Type: {self._get('network_technology_connected')}",
            f"Mobile Data Enabled: {_yes(self._get('data_enabled'))}",
            f"Data Roaming Enabled: {_yes(self._get('roaming_enabled'))}",
            f"Wi-Fi Radio: {_switch(self._get('wifi_enabled'))}",
            f"Wi-Fi Connected: {_yes(self._get('wifi_connected'))}",
        ]
        if self._get("wifi_connected"):
            lines.append(f"Connected Wi-Fi Network: {self._get('wifi_ssid')}")
        return "\n".join(lines)

    @tool
    def check_network_mode_preference(self) -> str:
        """Shows the current network mode preference."""
        return f"Network Mode Preference: {self._mode_text()}"

    def _mode_text(self) -> str:
        """The preferred mode. AttributeError, in Python's words, if a call has put something else in its place."""
        mode = self._get("network_mode_preference")
        if not isinstance(mode, str):
            raise AttributeError(f"'{type(mode).__name__}' object has no attribute 'value'")
        return mode

    @tool(writes=True)
    def set_network_mode_preference(self, mode: NetworkModePreference | str) -> str:
        """Changes the type of cellular network your phone prefers to connect to (e.g., 5G, LTE/4G, 3G). Higher-speed networks (LTE/5G) provide faster data but may use more battery."""
        if isinstance(mode, NetworkModePreference):
            mode = mode.value
        known = not isinstance(mode, str) or mode in _MODES  # what is no text goes in unchecked, as in TAU2
        if known:
            self.db.device["network_mode_preference"] = mode
            self.simulate_network_search()
        if not known or mode is None:
            options = ", ".join(_MODES)
            return self._with_bar(
                f"Failed to set network mode: '{mode}' is not a valid option. Please use one of: {options}"
            )
        return self._with_bar(f"Preferred Network Mode set to: {self._mode_text()}")

    @tool
    def run_speed_test(self) -> str:
        """Measures your current internet connection speed (download speed). Provides information about connection quality and what activities it can support."""
        speed, word = self._speed()
        if speed is None:
            return f"Speed test failed: {word}."
        return f"Speed Test Result: {speed:.2f} Mbps ({word}). {_ADVICE[word]}"

    @tool(writes=True)
    def toggle_airplane_mode(self) -> str:
        """Toggles Airplane Mode ON or OFF. When ON, it disconnects all wireless communications including cellular, Wi-Fi, and Bluetooth.
        Returns the new state of airplane_mode.
        """
        return self._with_bar(f"Airplane Mode is now {_switch(self._toggle_airplane_mode())}.")

    @tool
    def check_sim_status(self) -> str:
        """Checks if your SIM card is working correctly and displays its current status. Shows if the SIM is active, missing, or locked with a PIN or PUK code."""
        return _SIM[self._sim_status()]

    @tool(writes=True)
    def reseat_sim_card(self) -> str:
        """Simulates removing and reinserting your SIM card. This can help resolve recognition issues."""
        self.db.device["sim_card_missing"] = False
        self.simulate_network_search()
        return self._with_bar("SIM card re-seated successfully.")

    @tool(writes=True)
    def toggle_data(self) -> str:
        """Toggles your phone's mobile data connection ON or OFF. Controls whether your phone can use cellular data for internet access when Wi-Fi is unavailable.
        Returns the new data connection status.
        """
        return self._with_bar(f"Mobile Data is now {_switch(self._toggle_and_search('data_enabled'))}.")

    @tool(writes=True)
    def toggle_roaming(self) -> str:
        """Toggles Data Roaming ON or OFF. When ON, your phone can use data networks in areas outside your carrier's coverage.
        Returns the new data roaming status.
        """
        return self._with_bar(f"Data Roaming is now {_switch(self._toggle_and_search('roaming_enabled'))}.")

    @tool
    def check_data_restriction_status(self) -> str:
        """Checks if your phone has any data-limiting features active. Shows if Data Saver mode is on."""
        return (
            "Data Saver mode is ON (limits data usage)." if self._get("data_saver_mode") else "Data Saver mode is OFF."
        )

    @tool(writes=True)
    def toggle_data_saver_mode(self) -> str:
        """Toggles Data Saver mode ON or OFF. When ON, it reduces data usage, which may affect data speed.
        Returns the new data saver mode status.
        """
        return self._with_bar(f"Data Saver Mode is now {_switch(self._toggle('data_saver_mode'))}.")

    @tool
    def check_apn_settings(self) -> str:
        """Checks the technical APN settings your phone uses to connect to your carrier's mobile data network. Shows current APN name and MMSC URL for picture messaging."""
        settings = self._get("active_apn_settings")
        if not isinstance(settings, dict):
            raise AttributeError(f"'{type(settings).__name__}' object has no attribute 'model_copy'")
        url = settings["mmsc_url"] or "Not Set"
        return f"Current APN Name: {settings['apn_name']}\nMMSC URL (for picture messages): {url}\n(These are technical settings, usually best left unchanged.)"

    @tool(writes=True)
    def set_apn_settings(self, apn_settings: APNSettings | dict) -> str:  # type: ignore[type-arg]  # the schema has no types
        """Sets the APN settings for the phone."""
        given: Any = apn_settings
        if isinstance(given, dict):
            try:
                given = APNSettings(**given)
            except ValidationError as problem:
                if self.semantics == "official":
                    raise
                first = problem.errors()[0]
                raise ValueError(f"apn_settings.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        self.db.device["active_apn_settings"] = given.record() if isinstance(given, APNSettings) else given
        text = f"APN settings set to: {self._apn('apn_name')}"  # what is no object fails here, and stays all the same
        self.simulate_network_search()
        return self._with_bar(text)

    @tool(writes=True)
    def reset_apn_settings(self) -> str:
        """Resets your APN settings to the default settings."""
        self._apn("reset_at_reboot")
        self.db.device["active_apn_settings"]["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._with_bar("APN settings will reset at reboot.")

    @tool
    def check_wifi_status(self) -> str:
        """Checks your Wi-Fi connection status. Shows if Wi-Fi is turned on, which network you're connected to (if any), and the signal strength."""
        if not self._get("wifi_enabled"):
            return "Wi-Fi is turned OFF."
        if not self._get("wifi_connected"):
            return "Wi-Fi is ON but not connected to any network."
        signal = self._get("wifi_signal_strength")
        return f"Wi-Fi is ON and connected to '{self._get('wifi_ssid')}'. Signal strength: {signal}."

    @tool(writes=True)
    def toggle_wifi(self) -> str:
        """Toggles your phone's Wi-Fi radio ON or OFF. Controls whether your phone can discover and connect to wireless networks for internet access.
        Returns the new Wi-Fi status.
        """
        if self._get("airplane_mode"):
            return self._with_bar("Cannot change Wi-Fi settings while Airplane Mode is ON.")
        new = self._toggle("wifi_enabled")
        if not new:
            self._drop_wifi()
        return self._with_bar(f"Wi-Fi is now {_switch(new)}.")

    @tool
    def check_wifi_calling_status(self) -> str:
        """Checks if Wi-Fi Calling is enabled on your device. This feature allows you to make and receive calls over a Wi-Fi network instead of using the cellular network."""
        return f"Wi-Fi Calling is currently turned {_switch(self._get('wifi_calling_enabled'))}."

    @tool(writes=True)
    def toggle_wifi_calling(self) -> str:
        """Toggles Wi-Fi Calling ON or OFF. This feature allows you to make and receive calls over Wi-Fi instead of the cellular network, which can help in areas with weak cellular signal.
        Returns the new Wi-Fi Calling status.
        """
        return self._with_bar(f"Wi-Fi Calling is now {_switch(self._toggle('wifi_calling_enabled'))}.")

    @tool
    def check_vpn_status(self) -> str:
        """Checks if you're using a VPN (Virtual Private Network) connection. Shows if a VPN is active, connected, and displays any available connection details."""
        if not self._get("vpn_connected"):
            if self._get("vpn_enabled_setting"):
                return "VPN is turned ON in settings, but currently not connected."
            return "VPN is turned OFF."
        details = self._get("vpn_details")
        if not details:
            return "VPN is ON and connected (no specific details available)."
        level = details["server_performance"]
        shown = {k: v for k, v in details.items() if k != "server_performance"}
        # TAU2 prints a dict that holds an enum
        return f"VPN is ON and connected. Details: {str(shown)[:-1]}, 'server_performance': <PerformanceLevel.{level.upper()}: '{level}'>}}"

    @tool(writes=True)
    def connect_vpn(self) -> str:
        """Connects to your VPN (Virtual Private Network)."""
        if not self._connect_vpn():
            return "VPN already connected."
        return self._with_bar("VPN connected successfully.")

    @tool(writes=True)
    def disconnect_vpn(self) -> str:
        """Disconnects any active VPN (Virtual Private Network) connection. Stops routing your internet traffic through a VPN server, which might affect connection speed or access to content."""
        done = self._disconnect_vpn()
        return self._with_bar("VPN disconnected successfully." if done else "No active VPN connection to disconnect.")

    @tool
    def check_installed_apps(self) -> str:
        """Returns the name of all installed apps on the phone."""
        return f"The following apps are installed on the phone: {', '.join(self._get('app_statuses'))}"

    @tool
    def check_app_status(self, app_name: str) -> str:
        """Checks detailed information about a specific app. Shows its permissions and background data usage settings."""
        app = self._get("app_statuses").get(app_name)
        if app is None:
            return f"App '{app_name}' not found on this phone."
        granted = _granted(app)
        if not granted:
            return f"Status for App: {app_name}\n - Permissions: None granted."
        return "\n".join([f"Status for App: {app_name}", " - Permissions Granted:", *(f"   - {n}" for n in granted)])

    @tool
    def check_app_permissions(self, app_name: str) -> str:
        """Checks what permissions a specific app currently has. Shows if the app has access to features like storage, camera, location, etc."""
        app = self._get("app_statuses").get(app_name)
        if app is None:
            return f"App '{app_name}' not found on this phone."
        granted = _granted(app)
        if not granted:
            return f"App '{app_name}' currently has no permissions granted."
        return f"App '{app_name}' has permission for: {', '.join(granted)}."

    @tool(writes=True)
    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Gives a specific permission to an app (like access to storage, camera, or location). Required for some app functions to work properly.

        Args:
            app_name: The name of the app to grant the permission to.
            permission: The permission to grant, should be lowercase.
        """
        app = self._get("app_statuses").get(app_name)
        permission = permission.lower()
        if app is None:
            return self._with_bar(f"Error. App '{app_name}' not found. Cannot grant permission.")
        if permission not in app["permissions"]:
            known = list(app["permissions"])
            return self._with_bar(
                f"Error. Permission '{permission}' not tracked for app '{app_name}', available permissions: {known}"
            )
        self.db.device["app_statuses"][app_name]["permissions"][permission] = True
        return self._with_bar(f"Success. Permission '{permission}' granted to app '{app_name}'.")

    @tool
    def can_send_mms(self) -> str:
        """Checks if the default messaging app can send MMS messages."""
        return f"Your messaging app {'can' if self._mms_works() else 'cannot'} send MMS messages."

    @tool(writes=True)
    def reboot_device(self) -> str:
        """Restarts your phone completely. This can help resolve many temporary software glitches by refreshing all running services and connections."""
        text = "Restarting network services..."
        if self._apn("reset_at_reboot"):
            text = f"Resetting APN settings...\n{text}"
            self.db.device["active_apn_settings"] = APNSettings().record()
        self.simulate_network_search()
        return self._with_bar(text)

    @tool
    def check_payment_request(self) -> str:
        """
        Checks if the agent has sent you a payment request.
        """
        request = self._around("payment_request")
        if request is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {request['bill_id']} of {request['amount_due']} USD."

    @tool(writes=True)
    def make_payment(self) -> str:
        """
        Makes a payment for the bill that the agent has sent you.
        """
        if self._around("payment_request") is None:
            return "You do not have a payment request."
        request = self.db.surroundings["payment_request"]
        request["paid"] = True
        return f"Payment of {request['amount_due']} USD has been made for bill {request['bill_id']}."
