"""Generated airlines: the same from the same seed, whole in themselves, and in TAU2's schema."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.generated import split_of
from muarl.types.chat import ToolCall
from muarl_worlds.tau.airline import catalogue as cat
from muarl_worlds.tau.airline import policy_checks
from muarl_worlds.tau.airline.domain import Airline
from muarl_worlds.tau.airline.network import SIZES
from support import kit

made_tables = partial(kit.tables, "airline")

QUICK = settings(max_examples=10)


def check_whole(tables, size):
    """Every reference leads somewhere, every sum is right, nothing contradicts the calendar."""
    flights, users, reservations = (tables[t] for t in ("flights", "users", "reservations"))
    size = SIZES[size]
    assert len(users) == size.users
    assert sorted(r for u in users.values() for r in u["reservations"]) == sorted(reservations)
    for key, flight in flights.items():
        assert key == flight["flight_number"] and flight["origin"] != flight["destination"]
        assert flight["scheduled_departure_time_est"] < flight["scheduled_arrival_time_est"] < "24"
        for day, on in flight["dates"].items():
            assert (on["status"] == "available") == (day > cat.TODAY)
            if on["status"] == "available":
                assert set(on["prices"]) == set(on["available_seats"]) == set(cat.CABINS)
                assert on["prices"]["basic_economy"] < on["prices"]["economy"] < on["prices"]["business"]
    for key, user in users.items():
        assert key == user["user_id"] and user["membership"] in cat.MEMBERSHIPS
        assert size.reservations[0] <= len(user["reservations"]) <= size.reservations[1]
        assert all(m == method["id"] for m, method in user["payment_methods"].items())
        sources = [m["source"] for m in user["payment_methods"].values()]
        assert len(set(sources)) == len(sources), "a source names one method only"
        assert set(sources) & {"credit_card", "gift_card"}, "something can pay for a change"
    for key, r in reservations.items():
        owner = users[r["user_id"]]
        assert key == r["reservation_id"] and key in owner["reservations"]
        legs, people = r["flights"], r["passengers"]
        assert len(legs) == (1 if r["flight_type"] == "one_way" else 2) and 1 <= len(people) <= size.passengers
        assert (r["origin"], r["destination"]) == (legs[0]["origin"], legs[0]["destination"])
        assert [leg["date"] for leg in legs] == sorted({leg["date"] for leg in legs})
        for leg in legs:
            flight = flights[leg["flight_number"]]
            assert (leg["origin"], leg["destination"]) == (flight["origin"], flight["destination"])
            assert leg["date"] in flight["dates"]
            assert r["created_at"][:10] <= leg["date"]
        assert len({p["first_name"] for p in people}) == len(people), "a first name names one passenger only"
        paid = policy_checks.paid_bags(r["total_baggages"], owner["membership"], r["cabin"], len(people))
        assert r["nonfree_baggages"] == paid
        price = sum(leg["price"] for leg in legs) * len(people) + 50 * paid
        price += 30 * len(people) * (r["insurance"] == "yes")
        assert [p["amount"] for p in r["payment_history"]] == [price]
        assert r["payment_history"][0]["payment_id"] in owner["payment_methods"]
        assert r["status"] is None


@pytest.mark.parametrize("size", list(SIZES))
def test_every_size_makes_a_whole_airline(size):
    check_whole(made_tables("a", size), size)


def test_the_official_size_is_the_benchmarks():
    tables = made_tables("a", "official")
    assert (len(tables["flights"]), len(tables["users"])) == (300, 500)
    assert 1800 < len(tables["reservations"]) < 2200


@given(st.text(max_size=20), st.sampled_from(["tiny", "small"]))
@QUICK
def test_any_seed_makes_a_whole_airline_and_the_same_one_again(seed, size):
    tables = made_tables(seed, size)
    check_whole(tables, size)
    assert json.dumps(tables) == json.dumps(made_tables(seed, size))
    assert json.dumps(tables) != json.dumps(made_tables(seed + "x", size))


def test_names_are_only_those_of_the_split():
    names = [u["name"] for u in made_tables("a", "small")["users"].values()]
    assert all(split_of(n["first_name"], n["last_name"]) == "train" for n in names)


def test_one_of_the_flights_of_a_route_is_the_cheapest():
    offers = defaultdict(list)
    for flight in made_tables("a", "medium")["flights"].values():
        for day, on in flight["dates"].items():
            for cabin, price in on.get("prices", {}).items():
                offers[flight["origin"], flight["destination"], day, cabin].append(price)
    assert all(len(set(prices)) == len(prices) for prices in offers.values())


def test_a_tiny_airline_uses_the_pools_alone():
    """Or the tiny model's tokenizer would not have its ids, days and prices as single tokens."""
    methods = {i for ids in cat.PAYMENT_IDS.values() for i in ids}
    prices = {p for pool in cat.PRICES.values() for p in pool}
    for seed in range(30):
        tables = made_tables(str(seed), "tiny")
        assert set(tables["reservations"]) <= set(cat.RESERVATIONS) and set(tables["flights"]) <= set(cat.FLIGHTS)
        for flight in tables["flights"].values():
            assert set(flight["dates"]) <= {*cat.PAST, *cat.FUTURE}
            assert {p for on in flight["dates"].values() for p in on.get("prices", {}).values()} <= prices
        for user in tables["users"].values():
            assert user["name"]["first_name"] in cat.FIRST_NAMES and user["name"]["last_name"] in cat.LAST_NAMES
            assert user["user_id"].rsplit("_", 1)[1] in cat.NUMBERS
            assert set(user["payment_methods"]) <= methods and len(user["payment_methods"]) == 2
        for r in tables["reservations"].values():
            assert len(r["flights"]) == len(r["passengers"]) == 1 and 0 <= r["total_baggages"] <= 9
            assert r["passengers"][0]["dob"] in cat.BIRTHDAYS and r["flights"][0]["price"] in prices


def test_on_no_day_is_there_a_choice_of_flights_in_a_tiny_airline():
    for seed in range(30):
        days = defaultdict(list)
        for flight in made_tables(str(seed), "tiny")["flights"].values():
            days[flight["origin"], flight["destination"]] += flight["dates"]
        assert all(len(set(d)) == len(d) for d in days.values())


def test_the_pools_have_no_two_alike():
    pools = [cat.RESERVATIONS, cat.FLIGHTS, cat.CODES, cat.DAYS, cat.BIRTHDAYS, cat.NUMBERS]
    pools += [*cat.PAYMENT_IDS.values(), [p for prices in cat.PRICES.values() for p in prices]]
    assert all(len(set(p)) == len(p) for p in pools)
    assert not set(cat.PAST) & set(cat.FUTURE) and max(cat.PAST) < cat.TODAY < min(cat.FUTURE)


def test_the_official_tools_run_on_a_generated_airline():
    tables = made_tables("a", "small")
    world = Airline(database=tables, policy="", semantics="official").world()

    def use(name, **arguments):
        result = world.call("assistant", ToolCall("", name, arguments))
        assert not result.error
        return result.content

    for user_id, user in tables["users"].items():
        assert json.loads(use("get_user_details", user_id=user_id)) == user
    for key, reservation in tables["reservations"].items():
        assert json.loads(use("get_reservation_details", reservation_id=key)) == reservation
        for leg in reservation["flights"]:
            status = use("get_flight_status", flight_number=leg["flight_number"], date=leg["date"])
            assert status in ("available", "landed", "cancelled")
            ends = {"origin": leg["origin"], "destination": leg["destination"], "date": leg["date"]}
            found = {o["flight_number"] for o in json.loads(use("search_direct_flight", **ends))}
            assert (leg["flight_number"] in found) == (status == "available")
