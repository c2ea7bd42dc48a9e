"""The telecom domain: TAU2's tools over a carrier's accounts and a user's phone, which are kept in step."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any, ClassVar

from muarl.basics.errors import DataError
from muarl.domains.base import Domain, Semantics, World
from muarl.domains.database import Database, View
from muarl_worlds.tau.telecom.agent_tools import TelecomTools
from muarl_worlds.tau.telecom.phone_tools import TelecomUserTools
from muarl_worlds.tau.telecom.records import IDS, phone_database, telecom_database

FOLDER = "domains/telecom"


class TelecomPhone(TelecomUserTools):
    """The user's toolkit. ``database``: the phone, without one the installed benchmark's."""

    name = "telecom_phone"

    @property
    def base(self) -> Database:
        """The phone given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            given = self._given_database
            if given is None:
                given = _read_toml("user_db.toml")
            self._base = given if isinstance(given, Database) else phone_database(given)
        return self._base


class Telecom(TelecomTools):
    """TAU2's carrier.

    ``database``: a Database, or tables (plans, customers, lines, bills, devices) in TAU2's schema; ``phone``: the
    user's (device, surroundings). Without them, and without a ``policy``, those of the installed benchmark are used
    (DataError says how to install it). ``solo``: the installed policy is the one for an agent who works alone and has
    the user's tools beside his own. The other options are those of ``Domain``.
    """

    name = "telecom"
    workflow: ClassVar[bool] = False
    """Whether the installed policy gives technical support as a workflow rather than as a manual."""
    user_toolkit = TelecomPhone

    def __init__(
        self, *, phone: Any = None, solo: bool = False, semantics: Semantics = "fixed", **options: Any
    ) -> None:
        super().__init__(semantics=semantics, **options)
        self.solo = solo
        if phone is not None:
            self._user = TelecomPhone(database=phone, semantics=semantics)

    @property
    def policy_text(self) -> str:
        """The policy given, else the installed benchmark's. DataError if that is not installed."""
        if not self._policy_text:
            self._policy_text = official_policy(workflow=self.workflow, solo=self.solo)
        return self._policy_text

    @property
    def base(self) -> Database:
        """The accounts given, else the installed benchmark's. DataError if they are not installed."""
        if self._base is None:
            given = self._given_database
            if given is None:
                given = _read_toml("db.toml")
            self._base = given if isinstance(given, Database) else telecom_database(given)
        return self._base

    def render(self, tool_name: str, value: Any) -> str:
        """TAU2's text, or what the user's ``render`` gives.

        Strings stay as they are and records become a line of ASCII JSON; in a dict that is no record (data usage, a
        refuel) TAU2 writes numbers as strings.
        """
        if self._render is not None:
            return self._render(tool_name, value)
        if isinstance(value, str):
            return value
        if tool_name in ("get_data_usage", "refuel_data"):
            value = {k: str(v) if isinstance(v, (int, float)) else v for k, v in value.items()}
        return json.dumps(value, default=str)

    def prepare(self, world: World) -> None:
        """Lay the task's own data over both sides and run its initial actions, the sides kept in step after each.

        DataError names what is wrong. In "official" semantics one side's data make both sides share that side's
        database, as TAU2 does by mistake: worlds of such tasks are of little use there.
        """
        task = world.task
        self.sync(world)
        if task is None:
            return
        what = "initial data"
        try:
            for side, partial in (task.initial_data or {}).items():
                if partial is not None:
                    self._lay_over(world, side.removesuffix("_data"), partial)
            for action in task.initial_actions:
                what = f"initial action {action['func_name']!r}"
                _method(world, action)(**action["arguments"])
                self.sync(world)
        except Exception as problem:
            raise DataError(f"telecom task {task.id!r}: {what}: {type(problem).__name__}: {problem}") from problem
        self.sync(world)

    def _lay_over(self, world: World, side: str, partial: Mapping[str, Any]) -> None:
        own, other = ("user", "assistant") if side == "user" else ("assistant", "user")
        kit = world.toolkit(own)  # type: ignore[arg-type]
        tables = _merged(kit.db.to_tables(), partial)
        kit.db = View(phone_database(tables) if set(kit.db) != set(IDS) else telecom_database(tables))
        if self.semantics == "official":
            world.toolkit(other).db = kit.db  # type: ignore[arg-type]

    def sync(self, world: World) -> None:
        """Bring the phone's surroundings in line with the accounts, and the accounts with what the user has paid.

        ValueError if the user's number belongs to no line, or its plan or a bill is missing.
        """
        accounts, phone = world.toolkit("assistant"), world.toolkit("user")
        around = phone.db.surroundings
        number = around.peek("phone_number")
        if number is None:
            return
        line = accounts._line_by_phone(number)
        _keep(around, "line_active", line["status"] == "Active")
        _keep(around, "roaming_allowed", bool(line["roaming_enabled"]))
        limit = accounts._by_id("plans", line["plan_id"])["data_limit_gb"]
        _keep(around, "mobile_data_usage_exceeded", line["data_used_gb"] >= limit + line["data_refueling_gb"])
        request = around.peek("payment_request")
        if request is not None and request["paid"]:
            accounts._set_bill_to_paid(request["bill_id"])
            request = around["payment_request"] = None
        if request is None:
            for bill in accounts._bills_of(accounts._customer_by_phone(number), "Awaiting Payment")[:1]:
                amount = float(bill["total_due"])
                around["payment_request"] = {"bill_id": bill["bill_id"], "amount_due": amount, "paid": False}


class TelecomWorkflow(Telecom):
    """The same carrier under the other policy, which TAU2 calls telecom-workflow."""

    name = "telecom-workflow"
    workflow = True


def telecom_policy(main: str, tech_support: str) -> str:
    """The agent's policy, put together from its two parts as TAU2 does."""
    parts = {"main_policy": main, "tech_support_policy": tech_support}
    return "\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in parts.items())


def official_policy(*, workflow: bool = False, solo: bool = False) -> str:
    """The installed benchmark's policy, of which there are four. DataError if it is not installed."""
    from muarl_worlds.data import read_text

    main = "main_policy_solo.md" if solo else "main_policy.md"
    tech_support = "tech_support_manual.md"  # the same with and without a user
    if workflow:
        tech_support = "tech_support_workflow_solo.md" if solo else "tech_support_workflow.md"
    return telecom_policy(read_text("tau2", f"{FOLDER}/{main}"), read_text("tau2", f"{FOLDER}/{tech_support}"))


def _read_toml(file: str) -> dict[str, Any]:
    from muarl_worlds.data import read_text

    try:
        return tomllib.loads(read_text("tau2", f"{FOLDER}/{file}"))
    except tomllib.TOMLDecodeError as problem:
        raise DataError(f"tau2's {FOLDER}/{file} is not TOML: {problem}") from None


def _keep(table: Any, field: str, value: Any) -> None:
    """Set a field where it differs, so that what stays as it was costs no digest anything."""
    if table.peek(field) is not value:
        table[field] = value


def _method(world: World, action: Mapping[str, Any]) -> Any:
    """The method of a side's toolkit that an initial action names: any that is telecom's own and public."""
    name = action["func_name"]
    function = None if name.startswith("_") else getattr(world.toolkit(action["env_type"]), name, None)
    if function is None or hasattr(Domain, name):
        raise ValueError("there is no such function")
    return function


def _merged(old: Any, new: Any) -> Any:
    """``new`` over ``old``: objects key by key, at every depth; anything else is replaced."""
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new
