"""What requests come to: every kind changes the state as its words say, or finds the answer, and nothing else."""

from __future__ import annotations

import pytest

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes_trips import as_date
from muarl.domains.bfcl.routes import NEAREST, ROUTES
from muarl.domains.bfcl.wishes import LOGINS, RECIPES
from support.bfcl import Served, serve

FILES, MESSAGES, POSTS = "GorillaFileSystem", "MessageAPI", "TwitterAPI"
TICKETS, TRADING, TRAVEL, CAR = "TicketAPI", "TradingBot", "TravelAPI", "VehicleControlAPI"
TIMES = 6


def at(slots, name):
    folder = slots["folder"]
    return slots[name] if folder == "the root folder" else f"{folder}/{slots[name]}"


def files(served: Served, *, gone=(), new=()):
    """The files that should be there: the old ones without ``gone`` and with ``new`` (path to text)."""
    return {p: t for p, t in served.before[FILES]["files"].items() if p not in gone} | dict(new)


def changed(served: Served, api: str, **wanted):
    """The state of a class but for some attributes that should have changed."""
    return served.before[api] | wanted


def user(served, name):
    return served.config[MESSAGES]["user_map"][name]


def sent(served, receiver, text):
    inbox = [*served.before[MESSAGES]["inbox"], {receiver: text}]
    after = served.after[MESSAGES]
    assert after["inbox"] == inbox and after["message_count"] == served.before[MESSAGES]["message_count"] + 1


def text_of(served):
    return served.before[FILES]["files"][at(served.slots, "file")]


def file_move(s):
    old, new = at(s.slots, "file"), f"{at(s.slots, 'into')}/{s.slots['file']}"
    assert s.after[FILES]["files"] == files(s, gone=[old], new={new: text_of(s)})


def file_collect(s):
    folder = at(s.slots, "new_folder")
    new = {folder: None, f"{folder}/{s.slots['file']}": text_of(s)}
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")], new=new)


def file_safe_copy(s):
    folder = at(s.slots, "new_folder")
    assert s.after[FILES]["files"] == files(s, new={folder: None, f"{folder}/{s.slots['file']}": text_of(s)})


def file_copy(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): text_of(s)})


def file_rename(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")], new={at(s.slots, "new_file"): text_of(s)})


def file_delete(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")])


def file_hunt(s):
    (path,) = [p for p in s.before[FILES]["files"] if p.rpartition("/")[2] == s.slots["file"]]
    assert s.after[FILES]["files"] == files(s, gone=[path]) and "find" in [name for name, _ in s.calls]


def file_write(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): s.slots["text"]})


def file_overwrite(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "file"): s.slots["text"]})


def file_retype(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): text_of(s)})


def file_count(s):
    assert s.answer == str(len(text_of(s)))


def file_grep(s):
    assert [s.answer] == [line for line in text_of(s).splitlines() if s.slots["word"] in line]


def file_last(s):
    assert s.answer == text_of(s).splitlines()[-1]


def file_rmdir(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "into")])


def message_send(s):
    sent(s, user(s, s.slots["name"]), s.slots["text"])


def message_delete(s):
    inbox = list(s.before[MESSAGES]["inbox"])
    last = max(n for n, message in enumerate(inbox) if user(s, s.slots["name"]) in message)
    assert len(s.after[MESSAGES]["inbox"]) == len(inbox) - 1
    assert s.after[MESSAGES]["inbox"] in (inbox[:last] + inbox[last + 1 :], _without_equal(inbox, inbox[last]))


def _without_equal(inbox, message):
    inbox = list(inbox)
    inbox.remove(message)
    return inbox


def message_contact(s):
    added = s.after[MESSAGES]["user_map"][s.slots["name"]]
    assert added not in s.before[MESSAGES]["user_map"].values()
    sent(s, added, s.slots["text"])


def message_search(s):
    assert [s.answer] == [u for m in s.config[MESSAGES]["inbox"] for u, text in m.items() if s.slots["word"] in text]


def message_file(s):
    sent(s, user(s, s.slots["name"]), text_of(s))


def posted(s):
    (number,) = set(s.after[POSTS]["tweets"]) - set(s.before[POSTS]["tweets"])
    return number, s.after[POSTS]["tweets"][number]


def post_write(s):
    _, post = posted(s)
    assert (post["content"], post["tags"], post["mentions"]) == (s.slots["text"], [s.slots["tag"]], [])


def post_discuss(s):
    number, post = posted(s)
    assert post["content"] == s.slots["text"]
    assert [c["content"] for c in s.after[POSTS]["comments"][number]] == [s.slots["comment"]]


def post_file(s):
    assert posted(s)[1]["content"] == text_of(s)


def post_mention(s):
    assert s.after[POSTS]["tweets"][s.memory["post"]]["mentions"] == ["@" + s.slots["handle"]]


def _about(s):
    (number,) = [n for n, post in s.before[POSTS]["tweets"].items() if f"The {s.slots['word']} " in post["content"]]
    return number


def post_retweet(s):
    assert s.after[POSTS]["retweets"] == {s.config[POSTS]["username"]: [_about(s)]}


def post_reply(s):
    assert s.after[POSTS]["comments"] == {
        _about(s): [{"username": s.config[POSTS]["username"], "content": s.slots["text"]}]
    }


def post_follow(s):
    assert s.after[POSTS]["following_list"] == [*s.config[POSTS]["following_list"], s.slots["handle"]]


def post_unfollow(s):
    assert s.slots["handle"] in s.config[POSTS]["following_list"]
    assert s.slots["handle"] not in s.after[POSTS]["following_list"]


def opened(s):
    assert s.after[TICKETS]["ticket_queue"][:-1] == s.before[TICKETS]["ticket_queue"]
    return s.after[TICKETS]["ticket_queue"][-1]


def ticket_create(s):
    ticket = opened(s)
    assert (ticket["title"], ticket["priority"], ticket["status"]) == (s.slots["title"], int(s.slots["level"]), "Open")


def ticket_report(s):
    ticket_create(s)
    assert opened(s)["description"] == s.slots["text"]


def ticket_file(s):
    assert (opened(s)["title"], opened(s)["description"]) == (s.slots["title"], text_of(s))


def tickets(s):
    """Tickets that changed: (before, after)."""
    pairs = zip(s.before[TICKETS]["ticket_queue"], s.after[TICKETS]["ticket_queue"], strict=True)
    return [(old, new) for old, new in pairs if old != new]


def ticket_close(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Closed"} and old["id"] == int(s.slots["ticket"])


def ticket_resolve(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Resolved", "resolution": s.slots["resolution"]}
    assert old["id"] == int(s.slots["ticket"])


def ticket_resolve_last(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Resolved", "resolution": s.slots["resolution"]}
    assert old is s.before[TICKETS]["ticket_queue"][-1] and old["id"] == s.memory["ticket"]


def ticket_close_mine(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Closed"} and old["title"] == s.slots["title"]


def ticket_level(s):
    ((old, new),) = tickets(s)
    assert new == old | {"priority": int(s.slots["level"])} and old["id"] == int(s.slots["ticket"])


def ticket_question(s):
    wanted = [t["description"] for t in s.config[TICKETS]["ticket_queue"] if t["id"] == int(s.slots["ticket"])]
    assert [s.answer] == wanted


def placed(s):
    orders = s.after[TRADING]["orders"]
    (number,) = set(orders) - set(s.before[TRADING]["orders"])
    return orders[number]


def price_of(s):
    return s.config[TRADING]["stocks"][pools.SYMBOLS[s.slots["company"]]]["price"]


def stock_buy(s):
    order = placed(s)
    assert (order["order_type"], order["price"], order["amount"]) == ("Buy", price_of(s), int(s.slots["amount"]))


def stock_sell(s):
    order = placed(s)
    wanted = ("Sell", float(s.slots["price"]), int(s.slots["amount"]))
    assert (order["order_type"], order["price"], order["amount"]) == wanted


def stock_cancel(s):
    orders = {n: o | ({"status": "Cancelled"} if n == int(s.slots["order"]) else {}) for n, o in _orders(s)}
    assert s.after[TRADING]["orders"] == orders


def _orders(s):
    return s.before[TRADING]["orders"].items()


def stock_cancel_last(s):
    orders = {n: o | ({"status": "Cancelled"} if n == s.memory["order"] else {}) for n, o in _orders(s)}
    assert s.after[TRADING]["orders"] == orders and s.memory["order"] == max(orders, key=list(orders).index)


def stock_watch(s):
    symbol = pools.SYMBOLS[s.slots["company"]]
    assert s.after[TRADING]["watch_list"] == [*s.config[TRADING]["watch_list"], symbol]


def stock_unwatch(s):
    symbol = pools.SYMBOLS[s.slots["company"]]
    assert s.after[TRADING]["watch_list"] == [x for x in s.config[TRADING]["watch_list"] if x != symbol]


def stock_fund(s):
    account = s.config[TRADING]["account_info"]
    assert s.after[TRADING]["account_info"]["balance"] == account["balance"] + float(s.slots["dollars"])


def stock_price(s):
    assert float(s.answer) == price_of(s)


def stock_balance(s):
    assert float(s.answer) == s.config[TRADING]["account_info"]["balance"]


def stock_order(s):
    assert float(s.answer) == s.config[TRADING]["orders"][s.slots["order"]]["price"]


def stock_tell(s):
    sent(s, user(s, s.slots["name"]), str(price_of(s)))


def trip_book(s):
    (number,) = set(s.after[TRAVEL]["booking_record"]) - set(s.before[TRAVEL]["booking_record"])
    booked = s.after[TRAVEL]["booking_record"][number]
    assert (booked["card_id"], booked["travel_class"]) == (s.slots["card"], s.slots["cabin"])
    assert booked["travel_date"] == as_date(s.slots["date"]) and booked["travel_date"].startswith("2027-")
    assert (booked["travel_from"], booked["travel_to"]) == (NEAREST[s.slots["city"]], NEAREST[s.slots["to_city"]])
    cards = s.before[TRAVEL]["credit_card_list"], s.after[TRAVEL]["credit_card_list"]
    assert cards[1][s.slots["card"]]["balance"] == cards[0][s.slots["card"]]["balance"] - booked["travel_cost"]


def trip_cost(s):
    base = ROUTES[(NEAREST[s.slots["city"]], NEAREST[s.slots["to_city"]])]
    times = {"economy": 1, "business": 2, "first": 5}[s.slots["cabin"]]
    even = sum(int(digit) for digit in as_date(s.slots["date"]) if digit.isdigit()) % 2 == 0
    assert float(s.answer) == base * times * (2 if even else 1)


def trip_insure(s):
    before, after = (t[TRAVEL]["credit_card_list"][s.slots["card"]]["balance"] for t in (s.before, s.after))
    assert after == before - float(s.slots["dollars"])
    assert (
        s.calls[0][1]["booking_id"] == s.memory["booking"] and s.calls[0][1]["insurance_type"] == s.slots["insurance"]
    )


def trip_cancel(s):
    assert set(s.before[TRAVEL]["booking_record"]) - set(s.after[TRAVEL]["booking_record"]) == {s.slots["booking"]}


def trip_cancel_last(s):
    assert set(s.before[TRAVEL]["booking_record"]) - set(s.after[TRAVEL]["booking_record"]) == {s.memory["booking"]}
    assert s.after[TRAVEL]["booking_record"] == s.config[TRAVEL]["booking_record"]


def trip_invoice(s):
    assert s.answer == s.config[TRAVEL]["booking_record"][s.slots["booking"]]["transaction_id"]


def trip_budget(s):
    rates = {"renminbi": 7, "euros": 0.8, "yen": 110, "pounds": 0.7, "Canadian dollars": 1.3}
    wanted = float(s.slots["money"]) / rates[s.slots["currency"]]
    assert s.after[TRAVEL]["budget_limit"] == pytest.approx(wanted, abs=0.01)


def trip_card(s):
    (number,) = set(s.after[TRAVEL]["credit_card_list"]) - set(s.before[TRAVEL]["credit_card_list"])
    card = s.after[TRAVEL]["credit_card_list"][number]
    assert (card["card_number"], card["expiration_date"]) == (s.slots["card_number"], s.slots["expiry"])
    assert (card["cardholder_name"], card["card_verification_number"]) == (s.slots["person"], int(s.slots["code"]))


def car_fill(s):
    wanted = s.config[CAR]["fuelLevel"] + float(s.slots["gallons"])
    assert s.after[CAR] == changed(s, CAR, fuelLevel=wanted) and wanted <= 50


def car_liters(s):
    gallons = round(int(s.slots["liters"]) * 0.264172)
    assert s.after[CAR] == changed(s, CAR, fuelLevel=s.config[CAR]["fuelLevel"] + gallons)


def car_start(s):
    state = s.after[CAR]
    assert set(state["doorStatus"].values()) == {"locked"} and state["engine_state"] == "running"


def car_cruise(s):
    distance = float(s.slots["meters"])
    assert s.after[CAR] == changed(s, CAR, cruiseStatus="active", distanceToNextVehicle=distance)
    assert s.calls[0][1]["speed"] == float(s.slots["speed"])


def car_lights(s):
    assert s.after[CAR] == changed(s, CAR, headLightStatus=s.slots["switch"]) != s.before[CAR]


def car_brake(s):
    status = {"engage": "engaged", "release": "released"}[s.slots["brake"]]
    assert s.after[CAR] == changed(s, CAR, parkingBrakeStatus=status) != s.before[CAR]


def car_navigate(s):
    assert s.after[CAR] == changed(s, CAR, destination=s.slots["place"])


def car_climate(s):
    wanted = {"acTemperature": float(s.slots["degrees"]), "fanSpeed": int(s.slots["fan"]), "acMode": s.slots["air"]}
    assert s.after[CAR] == changed(s, CAR, **wanted)


def pressure(s):
    first, second = s.slots["wheel"].split()
    return s.config[CAR][f"{first}{second.capitalize()}TirePressure"]


def car_tire(s):
    assert float(s.answer) == pressure(s)


def car_fuel(s):
    assert float(s.answer) == s.config[CAR]["fuelLevel"]


def car_distance(s):
    assert float(s.answer) >= 290


def car_tell(s):
    assert float(s.after[MESSAGES]["inbox"][-1][user(s, s.slots["name"])]) == pressure(s)


def numbers(s):
    return [int(n) for n in s.slots["numbers"].replace(" and ", ", ").split(", ")]


def math_mean(s):
    assert float(s.answer) == pytest.approx(sum(numbers(s)) / len(numbers(s)), abs=0.006)


def math_sum(s):
    assert float(s.answer) == sum(numbers(s))


def math_share(s):
    assert float(s.answer) == pytest.approx(100 * int(s.slots["part"]) / int(s.slots["whole"]), abs=0.006)


def math_file(s):
    lines = [int(line) for line in text_of(s).splitlines()]
    assert float(s.answer) == pytest.approx(sum(lines) / len(lines), abs=0.006)


@pytest.mark.parametrize("kind", list(RECIPES))
def test_a_request_comes_to_what_its_words_say(kind):
    for seed in range(TIMES):
        served = serve(kind, seed)
        globals()[kind](served)
        apis = {api for api in served.before if served.before[api] != served.after[api]}
        assert bool(served.answer) != bool(apis), "it changes something or has an answer, never both"
        assert 1 <= len(served.calls) <= 7
        if not kind.endswith("_file"):
            assert len([name for name, _ in served.calls if name != "cd"]) <= 4


@pytest.mark.parametrize("kind", sorted({*LOGINS} - {"travel_token"}))
def test_logins_log_in(kind):
    for seed in range(TIMES):
        served = serve(kind, seed)
        state = served.after[served_api(kind)]
        assert state.get("authenticated") or state.get("current_user") or state.get("access_token")
        if kind == "travel_login":
            assert served.memory["token"] == state["access_token"]


def served_api(kind):
    return LOGINS[kind].apis[0]


def test_a_travel_token_is_only_remembered():
    plan = LOGINS["travel_token"].plan({"token": "tok1"}, memory := {})
    with pytest.raises(StopIteration):
        next(plan)
    assert memory == {"token": "tok1"}


def test_each_folder_is_reached_from_each_other_one_level_at_a_time():
    from muarl.domains.bfcl.recipes_files import goes_to

    memory = {}

    def walk(folder):
        return [arguments["folder"] for _, arguments in goes_to(folder, memory)]

    assert walk("the root folder") == []
    assert walk("barn/attic") == ["barn", "attic"]
    assert walk("barn/attic") == []
    assert walk("barn/cellar") == ["..", "cellar"]
    assert walk("harbor") == ["..", "..", "harbor"]
    assert walk("the root folder") == [".."]
    assert memory["cwd"] == []
