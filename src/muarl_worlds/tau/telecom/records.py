"""The records of TAU2's telecom domain, as its data models check and order them: accounts, and the user's phone.

Field names, their order, types and the text of ``APNSettings`` are TAU2's to the letter (sierra-research/tau2-bench,
MIT licence, Copyright Sierra Research): they show in tool schemas, error texts and hashes.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from muarl.basics.errors import DataError
from muarl.domains.database import Database

Technology = Literal["none", "2G", "3G", "4G", "5G"]
Signal = Literal["none", "poor", "fair", "good", "excellent"]
Performance = Literal["unknown", "poor", "fair", "good", "excellent"]


class _Strict(BaseModel):
    """Unknown fields are refused, as TAU2 refuses them."""

    model_config = ConfigDict(extra="forbid")


class Address(_Strict):
    """Where a customer's bills go."""

    street: str
    city: str
    state: str
    zip_code: str


class Plan(_Strict):
    """What a line may use in a month (GB), and what it costs (USD)."""

    plan_id: str
    name: str
    data_limit_gb: float
    price_per_month: float
    data_refueling_price_per_gb: float


class Device(_Strict):
    """A device as the carrier knows it."""

    device_id: str
    device_type: Literal["phone", "router", "tablet", "watch", "other"]
    model: str
    imei: str | None = None
    is_esim_capable: bool
    activated: bool = False
    activation_date: dt.datetime | None = None
    last_esim_transfer_date: dt.datetime | None = None


class Line(_Strict):
    """A phone line."""

    line_id: str
    phone_number: str
    status: Literal["Active", "Suspended", "Pending Activation", "Closed"] = "Pending Activation"
    plan_id: str
    device_id: str | None = None
    data_used_gb: float = 0.0
    data_refueling_gb: float = 0.0
    roaming_enabled: bool = False
    contract_end_date: dt.date | None = None
    last_plan_change_date: dt.date | None = None
    last_sim_replacement_date: dt.date | None = None
    suspension_start_date: dt.date | None = None


class LineItem(_Strict):
    """One charge or credit (USD)."""

    description: str
    amount: float
    date: dt.date
    item_type: str


class Bill(_Strict):
    """One month's bill."""

    bill_id: str
    customer_id: str
    period_start: dt.date
    period_end: dt.date
    issue_date: dt.date
    total_due: float
    due_date: dt.date
    line_items: list[LineItem] = []
    status: Literal["Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"] = "Draft"


class PaymentMethod(_Strict):
    """How a customer pays."""

    method_type: Literal["Credit Card", "Debit Card", "PayPal"]
    account_number_last_4: str
    expiration_date: str


class Customer(_Strict):
    """A customer, with the ids of his lines and bills."""

    customer_id: str
    full_name: str
    date_of_birth: str
    email: str
    phone_number: str
    address: Address
    account_status: Literal["Active", "Suspended", "Pending Verification", "Closed"] = "Pending Verification"
    payment_methods: list[PaymentMethod] = []
    line_ids: list[str] = []
    bill_ids: list[str] = []
    created_at: dt.datetime = dt.date(2025, 1, 1)  # type: ignore[assignment]  # TAU2's default is a date, unchecked
    last_extension_date: dt.date | None = None
    goodwill_credit_used_this_year: float = 0.0


class TelecomDB(_Strict):
    """The agent's side."""

    plans: list[Plan] = []
    customers: list[Customer] = []
    lines: list[Line] = []
    bills: list[Bill] = []
    devices: list[Device] = []


class APNNames(StrEnum):  # without a docstring, which would show in the tools' schemas
    INTERNET = "internet"
    BROKEN = "broken"


class NetworkModePreference(StrEnum):
    FOUR_G_5G_PREFERRED = "4g_5g_preferred"
    FOUR_G_ONLY = "4g_only"
    THREE_G_ONLY = "3g_only"
    TWO_G_ONLY = "2g_only"


class APNSettings(_Strict):
    """Represents the configuration for a single Access Point Name (APN)."""

    apn_name: APNNames = Field(APNNames.INTERNET, description="The name identifier for the APN connection.")
    reset_at_reboot: bool = Field(False, description="Whether the APN settings will be reset at the next reboot.")
    mms_apn: str | None = Field(
        "mms", description="Specific APN name used for MMS traffic, if different from general data."
    )
    mmsc_url: str | None = Field(
        "http://mms.carrier.com/mms/wapenc",
        description="The URL of the Multimedia Messaging Service Center (MMSC). Crucial for MMS.",
    )
    mms_proxy: str | None = Field(
        None, description="The proxy server address required for MMS traffic on some networks."
    )
    mms_port: int | None = Field(None, description="The proxy server port required for MMS traffic on some networks.")

    def record(self) -> dict[str, Any]:
        """The settings as the phone's database holds them."""
        return {**self.model_dump(), "apn_name": self.apn_name.value}


class VpnDetails(_Strict):
    """A VPN connection."""

    server_address: str | None = None
    protocol: str | None = None
    server_performance: Performance = "unknown"


class AppPermissions(_Strict):
    """What an app may do."""

    sms: bool = False
    storage: bool = False
    phone: bool = False
    network: bool = False


class AppStatus(_Strict):
    """An app on the phone."""

    app_name: str
    permissions: AppPermissions = AppPermissions()


def _apps() -> dict[str, AppStatus]:
    messaging = AppPermissions(sms=True, storage=True, phone=True)
    browser = AppPermissions(network=True, storage=True)
    return {
        "messaging": AppStatus(app_name="messaging", permissions=messaging),
        "browser": AppStatus(app_name="browser", permissions=browser),
    }


class Phone(_Strict):
    """The phone itself."""

    sim_card_status: Literal["active", "missing", "locked_pin", "locked_puk"] = "active"
    sim_card_missing: bool = False
    airplane_mode: bool = False
    network_signal_strength: Signal = "good"
    network_technology_connected: Technology = "5G"
    network_connection_status: Literal["connected", "searching", "no_service", "emergency_only"] = "connected"
    battery_level: int = 80
    data_enabled: bool = True
    roaming_enabled: bool = False
    network_mode_preference: Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"] = "4g_5g_preferred"
    active_apn_settings: APNSettings = APNSettings()
    wifi_enabled: bool = False
    wifi_connected: bool = False
    wifi_ssid: str | None = None
    wifi_signal_strength: Signal = "none"
    wifi_calling_enabled: bool = False
    wifi_calling_mms_over_wifi: bool = False
    data_saver_mode: bool = False
    vpn_enabled_setting: bool = False
    vpn_connected: bool = False
    vpn_details: VpnDetails | None = None
    app_statuses: dict[str, AppStatus] = Field(default_factory=_apps)


class PaymentRequest(_Strict):
    """What the carrier asks the user to pay (USD)."""

    bill_id: str
    amount_due: float
    paid: bool = False


class Surroundings(_Strict):
    """Who the user is, where he is, and what the carrier makes of his line."""

    name: str | None = None
    phone_number: str | None = None
    is_abroad: bool = False
    roaming_allowed: bool = False
    signal_strength: dict[Technology, Signal] = {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"}
    mobile_data_usage_exceeded: bool = False
    line_active: bool = True
    payment_request: PaymentRequest | None = None


class PhoneDB(_Strict):
    """The user's side."""

    device: Phone = Phone()
    surroundings: Surroundings = Surroundings()


IDS = {"plans": "plan_id", "customers": "customer_id", "lines": "line_id", "bills": "bill_id", "devices": "device_id"}
"""The field of each table that names a record."""


def telecom_database(tables: Mapping[str, Any]) -> Database:
    """The agent's side as TAU2 holds it in memory: records in its models' order, defaults filled in, dates as text.

    ``tables``: plans, customers, lines, bills and devices, each a list of records as in TAU2's ``db.toml``, or a
    mapping of ids to records. TAU2 keeps lists, which shows in its hash; here a record is found by its id (a second one
    with the same id, which TAU2's look-ups never reach, keeps a key of its own). DataError says what is wrong.
    """
    lists = {n: list(t.values()) if isinstance(t, Mapping) else t for n, t in _mapping(tables, "telecom").items()}
    out: dict[str, dict[str, Any]] = {}
    for name, records in _read(TelecomDB, lists, "telecom").items():
        table = out[name] = {}
        for record in records:
            table[free_key(table, record[IDS[name]])] = record
    return Database(out, lists=out)


def phone_database(tables: Mapping[str, Any]) -> Database:
    """The user's side as TAU2 holds it in memory: ``device`` and ``surroundings``, whose fields are the records here.

    ``tables``: as in TAU2's ``user_db.toml``; what is missing gets its default. DataError says what is wrong.
    """
    return Database(_read(PhoneDB, _mapping(tables, "telecom phone"), "telecom phone"))


def free_key(table: Mapping[str, Any], wanted: str) -> str:
    """The id, made different from those that the table has already."""
    while wanted in table:
        wanted += "'"
    return wanted


def _mapping(tables: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(tables, Mapping):
        raise DataError(f"{what} database: it must be tables of records, not {type(tables).__name__}")
    return tables


def _read(model: type[BaseModel], tables: Mapping[str, Any], what: str) -> dict[str, Any]:
    try:
        found = model.model_validate(dict(tables)).model_dump(warnings=False)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{what} database: {where}: {first['msg']}") from None
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))  # dates as TAU2's hash and texts show them
    return plain
