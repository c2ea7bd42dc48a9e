"""The right calls: what an agent that makes no mistake does about a request, ids looked up in the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.texts import TEXTS
from muarl.domains.acebench.worlds import World
from muarl.domains.base import Action
from muarl.domains.drawing import Request

Wish = Mapping[str, Any]

TRANSFER = "transfer_to_human_agents"

WRITES: Mapping[str, str] = {
    "send": "send_message", "delete": "delete_message", "remind": "add_reminder", "forget": "delete_reminder",
    "order": "add_food_delivery_order", "book": "reserve_flight", "connect": "reserve_flight", "move": "modify_flight",
    "cabin": "modify_flight", "bags": "modify_flight", "cancel": "cancel_reservation",
}  # fmt: skip
"""The write tool that serves each kind of request."""

DEVICE = ("send", "delete", "remind", "read", "todo", "note", "forget")
"""Kinds for which one must be logged in to the phone."""
FOOD = ("order", "todo", "balance")
"""Kinds for which one must be logged in to the food platform."""
WIFI = ("send", *FOOD)

AIRLINE_CANCELLED = TEXTS["en"]["airline_reason"]


def gold(world: World, requests: Sequence[Request]) -> tuple[Action, ...]:
    """Look-ups and writes in the order an expert makes them."""
    return _errands(world, requests) if world.family == "phone" else _trips(world, requests)


def transfer(about: str) -> Action:
    """Handing over to a person."""
    return Action(TRANSFER, {"summary": f"The caller wants to talk about {about}."}, compare_args=())


# the phone


def _errands(world: World, requests: Sequence[Request]) -> tuple[Action, ...]:
    device, state = world.state["BaseApi"], world.state
    served = [r for r in requests if r.final is not None]
    kinds = {r.kind for r in served}
    reads_first = any("source" in r.wish for r in served)
    actions: list[Action] = []
    if not device["logged_in"] and (kinds & set(DEVICE) or reads_first):
        actions.append(Action("login_device", {}))
    if not device["wifi"] and kinds & set(WIFI):
        actions.append(Action("turn_on_wifi", {}))
    if kinds & set(FOOD) and world.me not in state["FoodPlatform"]["logged_in_users"]:
        actions.append(Action("login_food_platform", {"username": world.me, "password": world.password}))
    for request in requests:
        if request.kind == "outside":
            actions.append(transfer(request.wish["topic"]))
        elif request.final is not None and not request.final.get("drop"):
            actions += _errand(world, request, request.final)
    return tuple(actions)


def _errand(world: World, request: Request, final: Wish) -> list[Action]:
    kind, me = request.kind, world.me
    actions = []
    if "source" in final or kind == "read":
        sender = final.get("source", final.get("from"))
        actions.append(Action("view_messages_between_users", {"sender_name": sender, "receiver_name": me}))
    if kind in ("todo", "note", "forget"):
        actions.append(Action("view_reminder_by_title", {"title": final["title"]}))
    if kind == "balance":
        actions.append(Action("check_balance", {"user_name": me}))
    if kind in ("order", "todo"):
        items = [{"product": final["product"], "quantity": final["quantity"]}]
        order = {"username": me, "merchant_name": final["merchant"], "items": items}
        actions.append(Action(WRITES["order"], order))
    if "room_number" in final:
        actions.append(Action(WRITES["delete"], {"message_id": final["room_number"]}))
    if kind in ("send", "todo"):
        text = final.get("filled", final["text"])
        actions.append(Action(WRITES["send"], {"sender_name": me, "receiver_name": final["to"], "message": text}))
    if kind == "delete":
        actions.append(Action(WRITES["delete"], {"message_id": final["number"]}))
    if kind == "remind":
        reminder = {"title": final["title"], "description": final["note"], "time": final["time"]}
        actions.append(Action(WRITES["remind"], reminder))
    if kind == "forget":
        reminders = world.state["ReminderApi"]["reminder_list"].values()
        number = next(r["reminder_id"] for r in reminders if r["title"] == final["title"])
        actions.append(Action(WRITES["forget"], {"reminder_id": number}))
    return actions


# the travel desk


def _trips(world: World, requests: Sequence[Request]) -> tuple[Action, ...]:
    who = {"user_id": world.me, "password": world.password}
    actions = [Action("get_user_details", who)]
    for request in requests:
        if request.kind == "outside" or request.intent == "flown":
            actions.append(transfer(request.wish.get("topic", "cancelling a flight that has left")))
            continue
        if "reservation_id" in request.wish:
            actions.append(Action("get_reservation_details", {"user_id": world.me}))
        if request.final is not None:
            actions += _trip(world, request.kind, request.final)
    return tuple(actions)


def _trip(world: World, kind: str, final: Wish) -> list[Action]:
    flights: Sequence[Mapping[str, Any]] = world.state["Travel"]["flights"]
    who = {"user_id": world.me, "password": world.password}
    if kind in ("book", "connect"):
        numbers = final.get("flights") or [the_flight(flights, final, final["cabin"])["flight_no"]]
        common = {"cabin": final["cabin"], "payment_method": final["payment"], "baggage_count": final["bags"]}
        return [Action(WRITES["book"], {**who, "flight_no": number, **common}) for number in numbers]
    if kind not in WRITES:
        return []
    reservation = _reservation(world, final["reservation_id"])
    about = {"user_id": world.me, "reservation_id": final["reservation_id"]}
    if kind == "cancel":
        flight = next(f for f in flights if f["flight_no"] == reservation["flight_no"])
        gone = flight["status"] == "cancelled"
        return [Action(WRITES["cancel"], {**about, "reason": AIRLINE_CANCELLED if gone else final["reason"]})]
    if kind == "move":
        route = {"origin": reservation["origin"], "destination": reservation["destination"], "date": final["date"]}
        number = the_flight(flights, route, reservation["cabin"])["flight_no"]
        return [Action(WRITES["move"], {**about, "new_flight_no": number})]
    change = {"new_cabin": final["cabin"]} if kind == "cabin" else {"add_baggage": final["bags"]}
    return [Action(WRITES[kind], {**about, **change, "new_payment_method": final["payment"]})]


def _reservation(world: World, reservation_id: str) -> Mapping[str, Any]:
    found: Sequence[Mapping[str, Any]] = world.state["Travel"]["reservations"]
    return next(r for r in found if r["reservation_id"] == reservation_id)


def the_flight(flights: Sequence[Mapping[str, Any]], trip: Wish, cabin: str) -> Mapping[str, Any]:
    """The cheapest flight of a route on a day that can be booked."""
    price = "economy_price" if cabin == cat.CABINS[0] else "business_price"
    fit = [
        f
        for f in flights
        if (f["origin"], f["destination"], f["depart_time"][:10]) == (trip["origin"], trip["destination"], trip["date"])
        and f["status"] == "available"
        and f["seats_available"] > 0
    ]
    return min(fit, key=lambda f: int(f[price]))
