"""What requests about stocks, trips, cars and sums come to; the others stand in test_recipes.py."""

from __future__ import annotations

import pytest

from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes_trips import as_date
from muarl_worlds.bfcl.requests import RECIPES
from muarl_worlds.bfcl.routes import NEAREST, ROUTES
from support.bfcl import changed, check_effect, sent, serve, text_of, user

MESSAGES, TRADING, TRAVEL, CAR = "MessageAPI", "TradingBot", "TravelAPI", "VehicleControlAPI"
OURS = ("stock_", "trip_", "car_", "math_")
TIMES = 6


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


def stock_withdraw(s):
    account = s.config[TRADING]["account_info"]
    assert s.after[TRADING]["account_info"]["balance"] == account["balance"] - float(s.slots["dollars"])


def stock_logout(s):
    assert s.before[TRADING]["authenticated"] and not s.after[TRADING]["authenticated"]


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


def car_let_go(s):
    assert s.after[CAR] == changed(s, CAR, brakePedalStatus="released") != s.before[CAR]


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


@pytest.mark.parametrize("kind", [k for k in RECIPES if k.startswith(OURS)])
def test_a_request_comes_to_what_its_words_say(kind):
    for seed in range(TIMES):
        check_effect(kind, serve(kind, seed), globals()[kind])
