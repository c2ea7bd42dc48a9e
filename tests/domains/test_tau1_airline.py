"""TAU1 airline on a few flights: its results, texts and oddities, and what "fixed" semantics mend."""

from __future__ import annotations

import copy
import json

import pytest

from muarl.types.chat import ToolCall
from muarl_worlds.tau.tau1.airline import Tau1Airline

SEATS = {"basic_economy": 1, "economy": 2, "business": 3}
PRICES = {"basic_economy": 50, "economy": 100, "business": 300}


def day(status="available", extra=0):
    prices = {cabin: price + extra for cabin, price in PRICES.items()}
    return {"status": status, "available_seats": dict(SEATS), "prices": prices}


def flight(number, origin, destination, departs, arrives, **dates):
    return {
        "flight_number": number, "origin": origin, "destination": destination,
        "scheduled_departure_time_est": departs, "scheduled_arrival_time_est": arrives,
        "dates": {key.replace("d", "2024-05-"): value for key, value in dates.items()},
    }  # fmt: skip


FLIGHTS = (
    flight("HAT1", "JFK", "ORD", "08:00:00", "10:00:00", d16=day(), d17=day("landed")),
    flight("HAT2", "ORD", "SEA", "11:00:00", "13:00:00", d16=day(extra=1), d17=day(extra=2)),
    flight("HAT3", "JFK", "ORD", "22:00:00", "01:00:00+1", d16=day(), d18=day()),
    flight("HAT4", "ORD", "SEA", "09:00:00", "11:00:00", d19=day()),
)
TABLES = {
    "flights": {f["flight_number"]: f for f in FLIGHTS},
    "reservations": {
        "OLD": {
            "reservation_id": "OLD", "user_id": "bo_1", "origin": "JFK", "destination": "ORD", "flight_type": "one_way",
            "cabin": "economy", "passengers": [{"first_name": "Bo", "last_name": "Ek", "dob": "1990-01-01"}],
            "flights": [
                {"origin": "JFK", "destination": "ORD", "flight_number": "HAT1", "date": "2024-05-16", "price": 90}
            ],
            "payment_history": [{"payment_id": "credit_card_1", "amount": 90}], "created_at": "2024-05-01T00:00:00",
            "total_baggages": 1, "nonfree_baggages": 0, "insurance": "no",
        }
    },
    "users": {
        "bo_1": {
            "name": {"first_name": "Bo", "last_name": "Ek"},
            "payment_methods": {
                "credit_card_1": {"source": "credit_card", "id": "credit_card_1"},
                "gift_card_1": {"source": "gift_card", "amount": 120, "id": "gift_card_1"},
                "certificate_1": {"source": "certificate", "amount": 500, "id": "certificate_1"},
            },
            "reservations": ["OLD"],
        }
    },
}  # fmt: skip
TRIP = {
    "user_id": "bo_1", "origin": "JFK", "destination": "ORD", "flight_type": "one_way", "cabin": "economy",
    "flights": [{"flight_number": "HAT1", "date": "2024-05-16"}],
    "passengers": [{"first_name": "Bo", "last_name": "Ek", "dob": "1990-01-01"}],
    "payment_methods": [{"payment_id": "credit_card_1", "amount": 100}],
    "total_baggages": 0, "nonfree_baggages": 0, "insurance": "no",
}  # fmt: skip


def make(semantics):
    return Tau1Airline(database=copy.deepcopy(TABLES), policy="p", semantics=semantics).world()


@pytest.fixture(params=["official", "fixed"])
def world(request):
    return make(request.param)


@pytest.fixture
def official():
    return make("official")


def use(world, name, /, **arguments):
    return world.call("assistant", ToolCall("1", name, arguments))


def shown(world, name, /, **arguments):
    return json.loads(use(world, name, **arguments).content)


def methods(world):
    return world.toolkit().db.users.peek("bo_1")["payment_methods"]


def test_booking_completes_the_flights_and_takes_the_money_but_no_seats(world):
    payments = [
        {"payment_id": "certificate_1", "amount": 70}, {"payment_id": "gift_card_1", "amount": 60},
        {"payment_id": "credit_card_1", "amount": 50},
    ]  # fmt: skip
    trip = {**TRIP, "payment_methods": payments, "insurance": "yes", "total_baggages": 1, "nonfree_baggages": 1}
    done = shown(world, "book_reservation", **trip)
    assert list(done) == [
        "reservation_id", "user_id", "origin", "destination", "flight_type", "cabin", "flights", "passengers",
        "payment_history", "created_at", "total_baggages", "nonfree_baggages", "insurance",
    ]  # fmt: skip
    assert json.dumps(done["flights"]) == (
        '[{"flight_number": "HAT1", "date": "2024-05-16", "price": 100, "origin": "JFK", "destination": "ORD"}]'
    )
    assert done["reservation_id"] == "HATHAT" and methods(world)["gift_card_1"]["amount"] == 60
    assert "certificate_1" not in methods(world)
    assert world.toolkit().db.flights.peek("HAT1")["dates"]["2024-05-16"]["available_seats"] == SEATS
    assert shown(world, "get_user_details", user_id="bo_1")["reservations"] == ["OLD", "HATHAT"]


def test_refunds_do_not_reach_the_users_lists(world):
    trip = copy.deepcopy(TRIP)
    use(world, "book_reservation", **trip)
    use(world, "cancel_reservation", reservation_id="HATHAT")
    done = shown(world, "cancel_reservation", reservation_id="HATHAT")
    assert [p["amount"] for p in done["payment_history"]] == [100, -100, -100, 100] and done["status"] == "cancelled"
    assert trip == TRIP


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"user_id": "x"}, "user not found"),
        ({"flights": [{"flight_number": "HAT9", "date": "2024-05-16"}]}, "flight HAT9 not found"),
        (
            {"flights": [{"flight_number": "HAT1", "date": "2024-05-30"}]},
            "flight HAT1 not found on date 2024-05-30",
        ),
        (
            {"flights": [{"flight_number": "HAT1", "date": "2024-05-17"}]},
            "flight HAT1 not available on date 2024-05-17",
        ),
        ({"cabin": "basic_economy", "passengers": TRIP["passengers"] * 2}, "not enough seats on flight HAT1"),
        ({"payment_methods": [{"payment_id": "x", "amount": 100}]}, "payment method x not found"),
        (
            {"payment_methods": [{"payment_id": "gift_card_1", "amount": 121}]},
            "not enough balance in payment method gift_card_1",
        ),
        (
            {"payment_methods": [{"payment_id": "credit_card_1", "amount": a} for a in (0.1, 0.2, 0.3, 99)]},
            "payment amount does not add up, total price is 100, but paid 99.6",
        ),
    ],
)
def test_what_a_booking_is_refused_for(world, wrong, text):
    before = world.full_hash()
    assert use(world, "book_reservation", **{**TRIP, **wrong}).content == f"Error: {text}"
    assert world.full_hash() == before


def test_payments_are_summed_as_python_3_12_sums_them(official):
    # 0.1 ten times is 1.0 with compensation and 0.9999999999999999 without.
    tenths = [{"payment_id": "credit_card_1", "amount": 0.1}] * 10
    rest = [{"payment_id": "credit_card_1", "amount": 99}]
    assert not use(official, "book_reservation", **{**TRIP, "payment_methods": tenths + rest}).error
    text = [{"payment_id": "credit_card_1", "amount": a} for a in (0.5, "x")]
    assert use(official, "book_reservation", **{**TRIP, "payment_methods": text}).content == (
        "Error: unsupported operand type(s) for +: 'float' and 'str'"
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"cabin": "first"}, "'first'"),
        ({"flights": [{"date": "2024-05-16"}]}, "'flight_number'"),
        ({"flights": "x"}, "string indices must be integers, not 'str'"),
        ({"flights": [["x"]]}, "list indices must be integers or slices, not str"),
        ({"flights": [{"flight_number": [], "date": ""}]}, "unhashable type: 'list'"),
        ({"passengers": 3}, "object of type 'int' has no len()"),
        ({"nonfree_baggages": "1"}, "unsupported operand type(s) for +=: 'int' and 'str'"),
        ({"nonfree_baggages": None}, "unsupported operand type(s) for *: 'int' and 'NoneType'"),
    ],
)
def test_wrong_types_meet_pythons_words_in_official_semantics_and_a_check_in_fixed(official, wrong, text):
    assert use(official, "book_reservation", **{**TRIP, **wrong}).content == f"Error: {text}"
    assert use(make("fixed"), "book_reservation", **{**TRIP, **wrong}).content.startswith("Error: book_reservation: ")


def test_a_certificate_used_twice_is_half_paid_officially_and_not_at_all_when_fixed():
    halves = [{"payment_id": "certificate_1", "amount": 50}] * 2
    for semantics in ("official", "fixed"):
        world = make(semantics)
        result = use(world, "book_reservation", **{**TRIP, "payment_methods": halves})
        assert result.content == "Error: 'certificate_1'"
        assert ("certificate_1" in methods(world)) == (semantics == "fixed")
        assert "HATHAT" not in world.toolkit().db.reservations


def test_the_fourth_booking_and_certificate():
    for semantics in ("official", "fixed"):
        world = make(semantics)
        booked = [shown(world, "book_reservation", **TRIP)["reservation_id"] for _ in range(3)]
        assert booked == ["HATHAT", "HATHAU", "HATHAV"]
        fourth = use(world, "book_reservation", **{**TRIP, "origin": "LGA"})
        sent = [use(world, "send_certificate", user_id="bo_1", amount=50) for _ in range(4)]
        assert sent[2].content == "Certificate certificate_3221324 added to user bo_1 with amount 50."
        if semantics == "official":
            assert world.toolkit().db.reservations.peek("HATHAV")["origin"] == "LGA"
            assert shown(world, "get_user_details", user_id="bo_1")["reservations"].count("HATHAV") == 2
            assert sent[3].content.startswith("Error: 1 validation error for EnvResponse\nobservation\n")
        else:
            assert fourth.content == "Error: too many reservations"
            assert sent[3].content == "Error: too many certificates"
        assert sent[3].error


def test_changing_flights_keeps_the_price_of_a_leg_that_stays(world):
    change = {"reservation_id": "OLD", "cabin": "economy", "payment_id": "gift_card_1"}
    legs = [{"flight_number": "HAT1", "date": "2024-05-16"}, {"flight_number": "HAT2", "date": "2024-05-16"}]
    done = shown(world, "update_reservation_flights", flights=legs, **change)
    assert [leg["price"] for leg in done["flights"]] == [90, 101]
    assert done["payment_history"][-1] == {"payment_id": "gift_card_1", "amount": 101}
    assert methods(world)["gift_card_1"]["amount"] == 19
    back = shown(world, "update_reservation_flights", flights=legs[:1], **change)
    assert back["payment_history"][-1]["amount"] == -101 and methods(world)["gift_card_1"]["amount"] == 120
    for wrong, text in (
        ({"payment_id": "certificate_1"}, "certificate cannot be used to update reservation"),
        ({"payment_id": "none"}, "payment method not found"),
        ({"cabin": "business"}, "gift card balance is not enough"),
        ({"reservation_id": "none"}, "reservation not found"),
    ):
        result = use(world, "update_reservation_flights", **{**change, "flights": legs[:1], **wrong})
        assert result.content == f"Error: {text}"


def test_a_new_cabin_is_stored_only_when_fixed(world):
    upgrade = {"reservation_id": "OLD", "cabin": "business", "payment_id": "credit_card_1"}
    done = shown(
        world, "update_reservation_flights", flights=[{"flight_number": "HAT1", "date": "2024-05-16"}], **upgrade
    )
    assert done["payment_history"][-1]["amount"] == 210
    assert done["cabin"] == ("economy" if world.domain.semantics == "official" else "business")


def test_bags_and_passengers(world):
    bags = {"reservation_id": "OLD", "total_baggages": 3, "nonfree_baggages": 2, "payment_id": "gift_card_1"}
    done = shown(world, "update_reservation_baggages", **bags)
    assert (done["total_baggages"], done["nonfree_baggages"], done["payment_history"][-1]["amount"]) == (3, 2, 100)
    fewer = shown(world, "update_reservation_baggages", **{**bags, "nonfree_baggages": 0})
    assert fewer["payment_history"] == done["payment_history"] and methods(world)["gift_card_1"]["amount"] == 20
    two = use(world, "update_reservation_passengers", reservation_id="OLD", passengers=TRIP["passengers"] * 2)
    assert two.content == "Error: number of passengers does not match"


def test_official_bags_keep_the_type_they_were_given(official):
    bags = {"reservation_id": "OLD", "total_baggages": "3", "nonfree_baggages": 0, "payment_id": "gift_card_1"}
    assert '"total_baggages": "3"' in use(official, "update_reservation_baggages", **bags).content


def test_searches(world):
    route = {"origin": "JFK", "destination": "ORD"}
    found = shown(world, "search_direct_flight", **route, date="2024-05-16")
    assert [f["flight_number"] for f in found] == ["HAT1", "HAT3"] and "dates" not in found[0]
    assert list(found[0])[-3:] == ["status", "available_seats", "prices"]
    assert shown(world, "search_direct_flight", **route, date="2024-05-17") == []
    both = shown(world, "search_onestop_flight", origin="JFK", destination="SEA", date="2024-05-16")
    legs = [[(leg["flight_number"], leg["date"], leg["prices"]["economy"]) for leg in pair] for pair in both]
    later = 101 if world.domain.semantics == "official" else 102  # officially the first day's, whatever the date
    assert legs == [
        [("HAT1", "2024-05-16", 100), ("HAT2", "2024-05-16", 101)],
        [("HAT3", "2024-05-16", 100), ("HAT2", "2024-05-17", later)],
    ]
    night = use(world, "search_onestop_flight", origin="JFK", destination="SEA", date="2024-05-18")
    assert night.content.startswith("Error: '2024-05-18'" if world.domain.semantics == "official" else "[[{")
    assert shown(world, "list_all_airports")["EWR"] == "Newark" and len(shown(world, "list_all_airports")) == 20


@pytest.mark.parametrize(
    ("date", "text"),
    [
        (5, "'int' object is not subscriptable"),
        ({}, "slice(-2, None, None)"),
        (["16"], "int() argument must be a string, a bytes-like object or a real number, not 'list'"),
        ("soon", "invalid literal for int() with base 10: 'on'"),
    ],
)
def test_dates_of_other_types_meet_the_same_words_on_every_python(date, text):
    overnight = {number: TABLES["flights"][number] for number in ("HAT2", "HAT3")}
    world = Tau1Airline(database={**TABLES, "flights": overnight}, policy="p", semantics="official").world()
    result = use(world, "search_onestop_flight", origin="JFK", destination="SEA", date=date)
    assert result.content == f"Error: {text}"


def test_an_unknown_reservation_is_an_unknown_user_officially(world):
    subject = "user" if world.domain.semantics == "official" else "reservation"
    assert use(world, "get_reservation_details", reservation_id="x").content == f"Error: {subject} not found"
    assert shown(world, "get_reservation_details", reservation_id="OLD") == TABLES["reservations"]["OLD"]
    assert use(world, "cancel_reservation", reservation_id="x").content == "Error: reservation not found"
