"""What callers may want of a phone: messages, reminders, food."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.phone import CAPACITY
from muarl.domains.acebench.wishes import Draw, Drawer
from muarl.domains.drawing import Infeasible, Request

REQUEST = re.compile(r"Please order (\d) x (.+?) from (.+?) for me")
"""A message that asks for food."""
TASKS = re.compile(r'Order (\d) x (.+?) from (.+?)\. Then send (\w+) the message "(.+?)"')
"""A reminder that is a list of things to do."""


def inbox(draw: Draw) -> list[dict[str, Any]]:
    """The messages with the names of who sent and got them and their number, oldest first."""
    part = draw.part("MessageApi")
    names = {p["user_id"]: n for n, p in part["user_list"].items()}
    found = [
        {"number": int(n), "from": names[m["sender_id"]], "for": names[m["receiver_id"]], **m}
        for n, m in part["inbox"].items()
    ]
    return sorted(found, key=lambda m: str(m["time"]))


def others(draw: Draw) -> list[str]:
    """Everybody on the phone but the caller."""
    return [n for n in draw.part("MessageApi")["user_list"] if n != draw.world.me]


def received(draw: Draw) -> list[dict[str, Any]]:
    """The messages that the caller has got, but for those that ask for food."""
    mine = [m for m in inbox(draw) if m["for"] == draw.world.me]
    return [m for m in mine if not REQUEST.fullmatch(m["message"])]


def _which(draw: Draw) -> dict[str, Any]:
    """A message to be deleted, as one describes it: how old it is, who has sent it, or what it is about."""
    messages = inbox(draw)
    about = [(m, cat.topic_of(m["message"])) for m in messages if draw.world.me in (m["from"], m["for"])]
    ways = [("the oldest message", messages[0]["number"]), ("the latest message", messages[-1]["number"])]
    ways += [(f"the message from {m['from']}", m["number"]) for m in received(draw)] * 2
    ways += [(f"the message about {topic}", m["number"]) for m, topic in about if topic is not None]
    said, number = draw.chosen(ways)
    return {"which": said, "number": number}


def _room(draw: Draw) -> dict[str, Any]:
    """What is deleted if there is no room for one more message."""
    messages = inbox(draw)
    if len(messages) < CAPACITY:
        return {}
    oldest = draw.rng.random() < 0.6
    message = messages[0 if oldest else -1]
    return {"room": f"the {'oldest' if oldest else 'latest'} message", "room_number": message["number"]}


def _send(draw: Draw) -> Request:
    people = others(draw)
    base: dict[str, Any] = _room(draw)
    wish = {**base, "to": draw.chosen(people), "text": _text(draw)}
    if draw.misses() and not base:
        stranger = draw.chosen(n for n in cat.PEOPLE[: cat.TINY_PEOPLE] if n not in (*people, draw.world.me))
        wrong = {**wish, "to": stranger}
        return Request("send", wrong, fallback=wish, final=wish, intent="unavailable")
    then = None
    if draw.changes():
        to = draw.chosen(n for n in people if n != wish["to"])
        then = {**wish, "to": to} if draw.rng.random() < 0.4 else {**wish, "text": _text(draw)}
        if then == wish:
            raise Infeasible
    return Request("send", wish, then=then, final=then or wish)


def _text(draw: Draw) -> str:
    return cat.message(draw.rng, tiny=draw.tiny)


def _delete(draw: Draw) -> Request:
    wish = _which(draw)
    then = None
    if draw.changes():
        if draw.part("BaseApi")["logged_in"] and draw.drops():
            return Request("delete", wish, then={"drop": True}, final=None)
        then = _which(draw)
        if then["number"] == wish["number"]:
            raise Infeasible
    return Request("delete", wish, then=then, final=then or wish)


def _remind(draw: Draw) -> Request:
    reminders = draw.part("ReminderApi")["reminder_list"]
    if len(reminders) >= CAPACITY:
        raise Infeasible
    taken = {r["title"] for r in reminders.values()}
    titles = cat.TITLES[: cat.TINY_TITLES] if draw.tiny else cat.TITLES
    times = cat.TIMES[: cat.TINY_TIMES] if draw.tiny else (*cat.TIMES, *[cat.PHONE_NOW] * 20)
    wish: dict[str, Any] = {"title": draw.chosen(t for t in titles if t not in taken)}
    if not draw.tiny and draw.rng.random() < 0.4:
        message = draw.chosen(received(draw))
        wish |= {"source": message["from"], "number": message["number"], "note": message["message"]}
    else:
        wish["note"] = draw.chosen(cat.NOTES)
    wish["time"] = draw.chosen(times)
    then = {**wish, "time": draw.chosen(t for t in times if t != wish["time"])} if draw.changes() else None
    unknown = ["note"] if "source" in wish else []
    return Request("remind", wish, then=then, final=then or wish, unknown=unknown)


def _read(draw: Draw) -> Request:
    message = draw.chosen(received(draw))
    wish = {"from": message["from"], "number": message["number"]}
    return Request("read", wish, final=wish, answer=message["message"])


def _prices(draw: Draw) -> Mapping[str, Mapping[str, float]]:
    merchants = draw.part("FoodPlatform")["merchant_list"]
    return {name: {d["product"]: d["price"] for d in m["menu"]} for name, m in merchants.items()}


def _purse(draw: Draw) -> float:
    return float(draw.part("FoodPlatform")["users"][draw.world.me]["balance"])


def _order(draw: Draw) -> Request:
    menus, purse = _prices(draw), _purse(draw)
    way = "plain" if draw.tiny else draw.rng.choice(("plain", "plain", "plain", "cheapest", "source"))
    if way == "source":
        return _order_for(draw, menus, purse)
    merchant = draw.chosen(menus)
    menu = menus[merchant]
    count = draw.rng.randint(1, 3)
    base: dict[str, Any] = {"merchant": merchant, "quantity": count}
    if way == "cheapest":
        dish = min(menu, key=menu.__getitem__)
        wish = {**base, "product": dish, "cheapest": True}
        if menu[dish] * count > purse:
            raise Infeasible
        return Request("order", wish, final=wish, unknown=["product"])

    def affordable(quantity: int) -> list[str]:
        return [d for d, price in menu.items() if price * quantity <= purse]

    dish = draw.chosen(affordable(count))
    wish = {**base, "product": dish}
    if draw.misses():
        return _unavailable_order(draw, wish, menus, purse)
    then = None
    if draw.changes():
        if draw.rng.random() < 0.5:
            then = {**wish, "product": draw.chosen(d for d in affordable(count) if d != dish)}
        else:
            counts = [q for q in range(1, 6) if q != count and menu[dish] * q <= purse]
            then = {**wish, "quantity": draw.chosen(counts)}
    return Request("order", wish, then=then, final=then or wish)


def _unavailable_order(
    draw: Draw, wish: Mapping[str, Any], menus: Mapping[str, Mapping[str, float]], purse: float
) -> Request:
    """A dish that the merchant does not have, or one too dear; the fallback is ``wish``, or nothing."""
    menu = menus[wish["merchant"]]
    if draw.rng.random() < 0.5:
        known = list(cat.MENUS)[: cat.TINY_MERCHANTS]
        elsewhere = [d for m in known if m != wish["merchant"] for d in cat.MENUS[m][: cat.TINY_DISHES]]
        first = {**wish, "product": draw.chosen(elsewhere)}
        intent = "unavailable"
    else:
        dear = [d for d, price in menu.items() if price * wish["quantity"] > purse and d != wish["product"]]
        first = {**wish, "product": draw.chosen(dear)}
        intent = "insufficient"
    open_already = draw.world.me in draw.part("FoodPlatform")["logged_in_users"]
    if not open_already and draw.drops():
        return Request("order", first, fallback={"drop": True}, final={"drop": True}, intent=intent)
    return Request("order", first, fallback=dict(wish), final=dict(wish), intent=intent)


def _order_for(draw: Draw, menus: Mapping[str, Mapping[str, float]], purse: float) -> Request:
    """What somebody asks for in a message."""
    asking = [m for m in inbox(draw) if m["for"] == draw.world.me and REQUEST.fullmatch(m["message"])]
    message = draw.chosen(asking)
    found = REQUEST.fullmatch(message["message"])
    assert found is not None
    wish = {
        "source": message["from"], "number": message["number"], "merchant": found[3], "product": found[2],
        "quantity": int(found[1]),
    }  # fmt: skip
    if menus[found[3]][found[2]] * int(found[1]) > purse:
        raise Infeasible
    return Request("order", wish, final=wish, unknown=["merchant", "product", "quantity"])


def totalled(draw: Draw, order: Request) -> Request:
    """A message that tells somebody what the food of another request costs."""
    final = order.final
    if final is None or "product" not in final:
        raise Infeasible
    total = _prices(draw)[final["merchant"]][final["product"]] * final["quantity"]
    wish = {**_room(draw), "to": draw.chosen(others(draw)), "text": draw.rng.choice(cat.TOTALS)}
    wish["filled"] = wish["text"].replace("()", str(total))
    return Request("send", wish, final=wish, intent="total")


def _todo(draw: Draw) -> Request:
    reminders = draw.part("ReminderApi")["reminder_list"].values()
    reminder = draw.chosen(r for r in reminders if TASKS.match(r["description"]))
    found = TASKS.match(reminder["description"])
    assert found is not None
    price = _prices(draw)[found[3]][found[2]] * int(found[1])
    if price > _purse(draw):
        raise Infeasible
    wish = {
        **_room(draw), "title": reminder["title"], "quantity": int(found[1]), "product": found[2],
        "merchant": found[3], "to": found[4], "text": found[5], "filled": found[5].replace("()", str(price)),
    }  # fmt: skip
    unknown = ["quantity", "product", "merchant", "to", "text"]
    return Request("todo", wish, final=wish, unknown=unknown)


def _plain_reminder(draw: Draw) -> dict[str, Any]:
    reminders: dict[str, dict[str, Any]] = draw.part("ReminderApi")["reminder_list"]
    return draw.chosen(r for r in reminders.values() if not TASKS.match(r["description"]))


def _note(draw: Draw) -> Request:
    reminder = _plain_reminder(draw)
    wish = {"title": reminder["title"]}
    return Request("note", wish, final=wish, answer=reminder["description"], intent="question")


def _forget(draw: Draw) -> Request:
    wish = {"title": _plain_reminder(draw)["title"]}
    then = None
    if draw.changes():
        then = {"title": _plain_reminder(draw)["title"]}
        if then == wish:
            raise Infeasible
    return Request("forget", wish, then=then, final=then or wish)


def _balance(draw: Draw) -> Request:
    return Request("balance", {}, final={}, answer=f"{_purse(draw):g}", intent="question")


def _forbidden(draw: Draw) -> Request:
    """Other people's messages and other people's money: right is to refuse, and the phone stays as it is."""
    people = others(draw)
    if draw.rng.random() < 0.5:
        message = draw.chosen(m for m in inbox(draw) if draw.world.me not in (m["from"], m["for"]))
        return Request("snoop", {"from": message["from"], "to": message["for"]}, intent="forbidden")
    menus = _prices(draw)
    merchant = draw.chosen(menus)
    wish = {"merchant": merchant, "product": draw.chosen(menus[merchant]), "quantity": draw.rng.randint(1, 3)}
    return Request("lend", {**wish, "account": draw.chosen(people)}, intent="forbidden")


def _outside(draw: Draw) -> Request:
    return Request("outside", {"topic": draw.rng.choice(cat.TOPICS_PHONE)})


ERRANDS: Mapping[str, Drawer] = {
    "send": _send, "delete": _delete, "remind": _remind, "read": _read, "order": _order, "todo": _todo, "note": _note,
    "forget": _forget, "balance": _balance, "forbidden": _forbidden, "outside": _outside,
}  # fmt: skip
