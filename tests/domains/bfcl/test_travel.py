"""TravelAPI: what its tools answer and change, in both revisions; expected values are upstream's."""

from __future__ import annotations

import time

import pytest

from muarl_worlds.bfcl.travel import REVISIONS

LONG = {
    "CREDIT_CARD_EXTENSION": {"1": {"card_number": "1", "balance": 5000.0}, "mine": {"balance": 0.0}},
    "BOOKING_RECORD_EXTENSION": {"booking_901": {"card_id": "1", "travel_cost": 400.0, "transaction_id": "trans_001"}},
}
CARDS = {"access_token": "tok", "token_expires_in": 2, "credit_card_list": {"mine": {"balance": 1000}}}
FLIGHT = {
    "access_token": "tok", "card_id": "mine", "travel_date": "2024-11-16", "travel_from": "RMS", "travel_to": "JFK",
    "travel_class": "economy",
}  # fmt: skip


def loaded(revision, config=CARDS, long_context=None):
    agency = REVISIONS[revision]()
    agency.load(config, long_context)
    return agency


@pytest.fixture(params=["v3", "v4"])
def agency(request):
    return loaded(request.param)


@pytest.mark.parametrize("revision", ["v3", "v4"])
def test_ids_are_drawn_in_upstreams_order(revision):
    agency = loaded(revision, {})
    assert list(agency.state()) == [
        "credit_card_list", "booking_record", "access_token", "token_type", "token_expires_in", "token_scope",
        "user_first_name", "user_last_name", "budget_limit", "long_context",
    ]  # fmt: skip
    assert agency.register_credit_card("x", "4111", "12/2028", "Ann Lee", 123) == {"error": "Token not initialized"}
    token = agency.authenticate_travel("i", "s", "r", "read_write", "Ann", "Lee")
    assert token == {"expires_in": 2, "access_token": "251675", "token_type": "Bearer", "scope": "read_write"}
    card = agency.register_credit_card("251675", "4111", "12/2028", "Ann Lee", 123)
    assert card == {"card_id": "391310425148"}
    assert agency.credit_card_list["391310425148"]["balance"] == 58617
    flight = FLIGHT | {"access_token": "251675", "card_id": "391310425148", "travel_class": "business"}
    assert agency.book_flight(**flight) == {
        "booking_id": "4191922", "transaction_id": "56121276", "booking_status": True, "booking_history": {}
    }  # fmt: skip
    assert agency.get_credit_card_balance("251675", "391310425148") == {"card_balance": 58197.0}
    assert agency.purchase_insurance("251675", "full", "4191922", 120.5, "391310425148") == {
        "insurance_id": "789652479", "insurance_status": True
    }  # fmt: skip
    assert agency.retrieve_invoice("251675", "4191922")["invoice"] == {
        "booking_id": "4191922", "travel_date": "2024-11-16", "travel_from": "RMS", "travel_to": "JFK",
        "travel_class": "business", "travel_cost": 420.0, "transaction_id": "56121276",
    }  # fmt: skip
    assert agency.cancel_booking("251675", "4191922") == {"cancel_status": True}
    assert agency.credit_card_list["391310425148"]["balance"] == 58617 - 120.5


def test_only_in_v3_wrong_tokens_use_the_token_up():
    old, new = loaded("v3"), loaded("v4")
    for agency in (old, new):
        assert agency.set_budget_limit("bad", 1) == {"error": "Invalid access token"}
        assert agency.cancel_booking("bad", "x") == {"cancel_status": False, "error": "Invalid access token"}
    assert old.set_budget_limit("tok", 1) == {"error": "Token expired"}
    assert old.travel_get_login_status() == {"status": False}
    assert new.set_budget_limit("tok", 1) == {"budget_limit": 1.0}
    with pytest.raises(TypeError, match="unsupported operand type.* for -=: 'NoneType' and 'int'"):
        loaded("v3", {}).set_budget_limit("bad", 1)


def test_bookings_that_cannot_be(agency):
    def refused(**changed):
        answer = agency.book_flight(**FLIGHT | changed)
        assert answer["booking_status"] is False
        return answer["error"]

    assert refused(card_id="x") == "Card not registered"
    assert refused(travel_from="XXX") == "Invalid departure airport code: XXX"
    assert refused(travel_to=["JFK"]) == "Invalid destination airport code: ['JFK']"
    assert refused(travel_date="16.11.2024") == "Invalid date format. Use YYYY-MM-DD."
    assert refused(travel_class="coach") == (
        "Invalid travel class. Must be one of {'first', 'business', 'economy'}"  # one order of upstream's set
    )
    assert refused(travel_to="HND") == "No available route for the given airports."
    assert refused(travel_class="first") == "Insufficient funds"
    agency.set_budget_limit("tok", "2_000")
    assert refused() == "Balance is less than budget limit"
    assert agency.booking_record == {}


def test_fares_depend_on_route_class_and_the_digits_of_the_date(agency):
    def cost(date, seats):
        return agency.get_flight_cost("RMS", "JFK", date, seats)["travel_cost_list"]

    assert cost("2024-11-16", "economy") == [210.0]
    assert cost("2024-11-17", "first") == [2100.0]
    assert cost(["a", "2"], "business") == [840.0]
    with pytest.raises(ValueError, match="^No available route for the given airports.$"):
        agency.get_flight_cost("JFK", "XXX", "2024-11-16", "economy")
    with pytest.raises(ValueError, match="^Invalid travel class. Options are: economy, business, first.$"):
        cost("2024-11-16", ["economy"])


def test_exchange_rates_give_floats_in_v4_and_what_comes_out_in_v3():
    old, new = loaded("v3"), loaded("v4")
    assert repr(old.compute_exchange_rate("USD", "RMB", 2)) == "{'exchanged_value': 14}"
    assert repr(new.compute_exchange_rate("USD", "RMB", 2)) == "{'exchanged_value': 14.0}"
    assert new.compute_exchange_rate("GBP", "USD", 100) == {"exchanged_value": 142.86}
    assert old.compute_exchange_rate("USD", "RMB", "ab") == {"exchanged_value": "ab" * 7}
    for agency in (old, new):
        with pytest.raises(ValueError, match="^No available exchange rate for the given currencies.$"):
            agency.compute_exchange_rate("GBP", "EUR", 1)
        with pytest.raises(ValueError):
            agency.compute_exchange_rate("USD", "JPY", "x" * 1_000_000)  # upstream would write 110 MB


def test_travellers_are_verified_by_name_age_and_passport(agency):
    agency.authenticate_travel("i", "s", "r", "read", "Ann", "Lee")
    assert agency.verify_traveler_information("Ann", "Lee", "1990-01-01", "US1") == {"verification_status": True}

    def why(*args):
        return agency.verify_traveler_information(*args)["verification_failure"]

    assert why("Bob", "Lee", "1990-01-01", "US1") == (
        "Cannot book flight information for another user.Expected Ann Lee, got Bob Lee"
    )
    assert why("Ann", "Lee", "1.1.1990", "US1") == "Invalid date of birth format. Please use YYYY-MM-DD."
    assert why("Ann", "Lee", f"{time.gmtime().tm_year - 5}-01-01", "US1") == "Traveler must be at least 18 years old."
    assert why("Ann", "Lee", "1990-01-01", "GB1") == "Passport must be issued by the United States."


def test_only_v4_shows_the_history():
    assert not hasattr(loaded("v3"), "get_booking_history")
    agency = loaded("v4", CARDS, LONG)
    shown = agency.get_booking_history("tok")["booking_history"]
    assert shown == agency.booking_record
    shown.clear()
    assert agency.booking_record


def test_long_context_adds_cards_and_bookings_and_all_costs():
    agency = loaded("v4", CARDS, LONG)
    assert agency.credit_card_list == {"mine": {"balance": 1000}, "1": {"card_number": "1", "balance": 5000.0}}
    assert len(agency.get_flight_cost("RMS", "JFK", "2024-11-16", "economy")["travel_cost_list"]) == 153
    booked = agency.book_flight(**FLIGHT | {"card_id": "1"})
    assert list(booked["booking_history"]) == ["booking_901", booked["booking_id"]]
    assert LONG["CREDIT_CARD_EXTENSION"]["1"]["balance"] == 5000.0
    assert list(LONG["BOOKING_RECORD_EXTENSION"]) == ["booking_901"]


def test_places_and_other_facts(agency):
    assert len(agency.list_all_airports()) == 23
    assert agency.get_nearest_airport_by_city("Tokyo") == {"nearest_airport": "HND"}
    assert agency.get_nearest_airport_by_city("tokyo") == {"nearest_airport": "Unknown"}
    assert agency.get_budget_fiscal_year(includeRemoved="x") == {"budget_fiscal_year": "2018"}
    assert agency.contact_customer_support("x", "help") == {"error": "Booking not found"}
    with pytest.raises(TypeError, match=r"^TravelAPI.get_all_credit_cards\(\) got an unexpected keyword argument 'x'"):
        agency.get_all_credit_cards(x=1)


def test_a_copy_goes_its_own_way(agency):
    agency.book_flight(**FLIGHT)
    twin, before = agency.copy(), repr(agency.state())
    assert repr(twin.state()) == before
    booked = twin.book_flight(**FLIGHT)
    twin.set_budget_limit("tok", 5)
    assert repr(agency.state()) == before
    assert agency.book_flight(**FLIGHT) == booked


def test_megabytes_cost_no_time(agency):
    long = "1" * 1_000_000
    assert agency.get_flight_cost("RMS", "JFK", long, "economy") == {"travel_cost_list": [420.0]}
    assert agency.book_flight(**FLIGHT | {"travel_date": long})["error"] == "Invalid date format. Use YYYY-MM-DD."
    with pytest.raises(OverflowError):
        agency.compute_exchange_rate("RMB", "USD", 10**30_000)
