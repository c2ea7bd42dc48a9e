"""ACEBench's classes as the domain of generated tasks: native tool calls, fixed semantics, worlds of our own.

Beside ACEBench's tools there is one to transfer to a human agent, which its policies speak of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from muarl.basics.errors import DataError
from muarl.domains.base import Renderer
from muarl.domains.database import Database, View
from muarl.domains.kit import compact
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.types.chat import Requestor, ToolCall, ToolResult
from muarl_worlds.acebench.classes import CLASSES
from muarl_worlds.acebench.domain import AceBench, AceWorld, toolbox
from muarl_worlds.acebench.execute import instances_of, tools_of
from muarl_worlds.acebench.scenario import AceScenario
from muarl_worlds.acebench.texts import TEXTS

HELPERS = ("authenticate_user", "update_balance", "process_refund", "calculate_price_difference")
"""Tools of ACEBench's that are parts of others, or show what others hide: they are not offered."""
PHONE: tuple[str, ...] = ("BaseApi", "MessageApi", "ReminderApi", "FoodPlatform")
TRAVEL: tuple[str, ...] = ("Travel",)
"""The classes that a phone and a travel desk are made of."""
TINY_TOOLS = {
    PHONE: (
        "turn_on_wifi", "login_device", "send_message", "delete_message", "view_messages_between_users",
        "get_latest_message_id", "get_earliest_message_id", "add_reminder", "login_food_platform",
        "view_logged_in_users", "add_food_delivery_order", "get_products", "transfer_to_human_agents",
    ),
    TRAVEL: (
        "get_flight_details", "get_user_details", "get_reservation_details", "reserve_flight", "modify_flight",
        "cancel_reservation", "transfer_to_human_agents",
    ),
}  # fmt: skip
_NOTHING = tuple(TEXTS["en"][key] for key in ("no_flights", "no_transfers"))
"""What tools answer that have found nothing, in words alone."""


class GeneratedAce(AceBench):
    """Generated phones and travel desks, in English, whose worlds are the tables of a task's database.

    A task offers the tools of its classes. ``tools``: only these; None: all but ``HELPERS``. ``policies``: by classes,
    in place of one ``policy`` for both. What a tool refuses is an error, so that everybody can tell.
    """

    classes: ClassVar[tuple[str, ...]] = (*PHONE, *TRAVEL)

    def __init__(
        self,
        *,
        database: Any = None,
        policy: Path | str | None = None,
        policies: Mapping[tuple[str, ...], str] | None = None,
        tools: Sequence[str] | None = None,
        render: Renderer | None = None,
    ) -> None:
        there = {name for wanted in self.classes for name in tools_of(CLASSES["en"][wanted])}
        offered = [n for n in toolbox("en") if n in there and n not in HELPERS]
        transfer = GeneratedAce.transfer_to_human_agents.__name__
        super().__init__("en", policy="none", tools=[*offered, transfer] if tools is None else tools, render=render)
        self._given_database = database
        self._policies = policies

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the conversation over to a human agent.

        Args:
            summary: What it is about.
        """
        return "Transfer successful"

    def policy_for(self, task: Task) -> str:
        """The policy for a phone, or for a travel desk."""
        return self.policy_text if self._policies is None else self._policies[self.classes_of(task)]

    def classes_of(self, task: Task | None) -> tuple[str, ...]:
        """The classes of a phone, or of a travel desk. DataError for a task that says nothing of its world."""
        if task is None or task.database is None:
            raise DataError(f"task {getattr(task, 'id', None)!r} was not generated: it says nothing of its world")
        return TRAVEL if "flights" in task.database.tables else PHONE

    def instances(self, task: Task | None) -> dict[str, AceScenario]:
        """Fresh objects of the classes that a task involves."""
        classes = self.classes_of(task)
        assert task is not None and task.database is not None
        state = _state(task.database.tables, travel=classes == TRAVEL)
        config = {"BaseApi": state.pop("BaseApi")} if classes == PHONE else {}
        return instances_of("en", classes, config, state, fixed=True)

    def world(self, task: Task | None = None) -> AceLiveWorld:
        """The fresh state of one episode."""
        return AceLiveWorld(self, task)


class Phone(GeneratedAce):
    """A phone: messages, reminders, food."""

    name: ClassVar[str] = "acebench-phone"
    classes: ClassVar[tuple[str, ...]] = PHONE


class TravelDesk(GeneratedAce):
    """A travel desk."""

    name: ClassVar[str] = "acebench-travel"
    classes: ClassVar[tuple[str, ...]] = TRAVEL


@lru_cache(maxsize=8)
def generated_acebench(size: str) -> GeneratedAce:
    """The domain that generated tasks of a size are played in. What a tool takes and does is the same at every size;
    tiny worlds have fewer tools, shorter policies and compact observations."""
    tiny = size == "tiny"
    folder, form = Path(__file__).parent, "_compact" if tiny else ""
    policies = {
        classes: (folder / f"policy_{name}{form}.md").read_text(encoding="utf-8").strip()
        for name, classes in (("phone", PHONE), ("travel", TRAVEL))
    }
    if not tiny:
        return GeneratedAce(policies=policies)
    tools = list(dict.fromkeys([*TINY_TOOLS[PHONE], *TINY_TOOLS[TRAVEL]]))
    return GeneratedAce(policies=policies, tools=tools, render=_brief)


_LEFT_OUT = {
    "get_flight_details": ("origin", "destination", "arrival_time"),
    "get_reservation_details": ("user_id", "payment_method", "arrival_time", "seats_available"),
}
"""Fields that tiny worlds do not show."""


def _brief(tool_name: str, value: Any) -> str:
    return compact.write(_without(value, _LEFT_OUT.get(tool_name, ())))


def _without(value: Any, fields: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without(one, fields) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _without(inner, fields) for name, inner in value.items() if name not in fields}


class AceLiveWorld(AceWorld):
    """One episode's live state of a generated phone or travel desk."""

    __slots__ = ()

    def toolkit(self, requestor: Requestor = "assistant") -> Any:
        """The tools over the live state, as audits look into it; None for the user, who has none."""
        return AceLiveKit(self) if requestor == "assistant" else None

    def _call_fixed(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        result = super()._call_fixed(requestor, call)
        return ToolResult(result.content, result.error or refuses(result.content, call, self))


def refuses(content: str, call: ToolCall, world: AceWorld) -> bool:
    """Whether a tool has said in its answer that it did nothing, or found nothing."""
    if world.domain.kind_of(call.name) == "write":
        return not (world.writes and world.writes[-1] is call)
    found = compact.read(content)
    return content in _NOTHING or (isinstance(found, Mapping) and found.get("status") in (False, "error"))


class AceLiveKit:
    """A world's tools as methods that raise what is wrong, and its state as tables (``db``)."""

    _tools: ClassVar[Mapping[str, Any]] = {}  # none that works on ``db``

    def __init__(self, world: AceLiveWorld) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        if name not in self._world.domain.tool_names():
            raise AttributeError(name)

        def run(**arguments: Any) -> Any:
            found = json.loads(json.dumps(self._world.invoke("assistant", name, arguments)))
            if found in _NOTHING or (isinstance(found, Mapping) and found.get("status") in (False, "error")):
                raise ValueError(found)
            return found

        return run

    @cached_property
    def db(self) -> View:
        task = self._world.task
        assert task is not None and task.database is not None
        return View(Database({**task.database.tables, **_tables(self._world.state())}))


def _state(tables: Mapping[str, Mapping[str, Any]], *, travel: bool) -> dict[str, dict[str, Any]]:
    """A made world's tables as attributes of ACEBench's classes."""
    if travel:
        listed = {name: list(tables[name].values()) for name in ("flights", "reservations")}
        return {"Travel": {"users": tables["users"], **listed}}
    open_for = [name for name, account in tables["accounts"].items() if account["open"]]
    shown = ("user_id", "password", "balance")
    accounts = {name: {field: account[field] for field in shown} for name, account in tables["accounts"].items()}
    return {
        "BaseApi": dict(tables["device"]["phone"]),
        "MessageApi": {
            "user_list": tables["people"],
            "inbox": tables["inbox"],
            "message_id_counter": max(map(int, tables["inbox"])),
        },
        "ReminderApi": {"reminder_list": tables["reminders"], "reminder_id_counter": len(tables["reminders"])},
        "FoodPlatform": {
            "users": accounts, "merchant_list": tables["merchants"], "logged_in_users": open_for, "orders": [],
        },
    }  # fmt: skip


def _tables(state: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The live state of ACEBench's classes as tables, as far as it may have changed."""
    if "Travel" in state:
        reservations = {r["reservation_id"]: r for r in state["Travel"]["reservations"]}
        return {"users": dict(state["Travel"]["users"]), "reservations": reservations}
    return {
        "inbox": {str(number): message for number, message in state["MessageApi"]["inbox"].items()},
        "reminders": {str(n): reminder for n, reminder in state["ReminderApi"]["reminder_list"].items()},
    }
