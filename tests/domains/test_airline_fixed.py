"""What "fixed" semantics mend in the airline, beside what TAU2 does; databases that are malformed."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl_worlds.tau.airline.domain import Airline, airline_database
from support.small_airline import BOB, DATABASE, airline, booking, methods, paid, seats, tables, use


@pytest.fixture
def official():
    return airline("official").world()


@pytest.fixture
def fixed():
    return airline().world()


@pytest.mark.parametrize(
    ("date", "officially", "mended"),
    [
        ("2024-05-02", [], [("F2", "2024-05-03"), ("F3", "2024-05-03")]),  # TAU2 looks for 2024-05-3
        (
            "2024-05-10",
            [("F3", "2024-05-11")],
            [("F2", "2024-05-11"), ("F3", "2024-05-11")],
        ),  # "01:00:00" < "01:00:00+1"
    ],
)
def test_connections_over_midnight(official, fixed, date, officially, mended):
    for world, expected in ((official, officially), (fixed, mended)):
        pairs = json.loads(use(world, "search_onestop_flight", origin="JFK", destination="LAX", date=date).content)
        assert [(second["flight_number"], second["date"]) for _, second in pairs] == expected
        assert all((first["flight_number"], first["date"]) == ("F1", date) for first, _ in pairs)


def test_what_an_official_error_half_did_stays_done_and_fixed_never_lets_it(official, fixed):
    twice = booking(
        payment_methods=paid(("gift_1", 50), ("cert_1", 100), ("cert_1", 50)),
    )
    assert use(official, "book_reservation", **twice).content == "Error: 'cert_1'"
    assert methods(official)["gift_1"]["amount"] == 25.0 and "cert_1" not in methods(official)
    half = {"reservation_id": "R1", "total_baggages": 1, "nonfree_baggages": 0.25, "payment_id": "gift_1"}
    assert "a number with a fractional part" in use(official, "update_reservation_baggages", **half).content
    assert methods(official)["gift_1"]["amount"] == 12.5
    before = fixed.digest()
    assert use(fixed, "book_reservation", **twice).error and use(fixed, "update_reservation_baggages", **half).error
    assert fixed.digest() == before


def test_a_cancelled_reservation_is_refunded_each_time_officially_and_once_when_fixed(official, fixed):
    for world in (official, fixed):
        use(world, "book_reservation", **booking(payment_methods=paid(("card_1", 200))))
        first = json.loads(use(world, "cancel_reservation", reservation_id="HATHAT").content)
        assert first["status"] == "cancelled" and first["payment_history"] == paid(("card_1", 200), ("card_1", -200))
    again = json.loads(use(official, "cancel_reservation", reservation_id="HATHAT").content)
    assert [p["amount"] for p in again["payment_history"]] == [200, -200, -200, 200] and seats(official) == 1
    assert use(fixed, "cancel_reservation", reservation_id="HATHAT").content == "Error: Reservation HATHAT is cancelled"
    assert seats(fixed) == 2
    bags = {"reservation_id": "HATHAT", "total_baggages": 3, "nonfree_baggages": 0, "payment_id": "card_1"}
    assert use(fixed, "update_reservation_baggages", **bags).error
    assert not use(official, "update_reservation_baggages", **bags).error


def test_changed_flights_are_paid_or_refunded(official, fixed):
    change = {"reservation_id": "R1", "cabin": "business", "payment_id": "gift_1"}
    same = [{"flight_number": "F4", "date": "2024-05-20"}]
    for world in (official, fixed):
        assert use(world, "update_reservation_flights", flights=same, **change).content == (
            "Error: Gift card balance is not enough"
        )
        answer = use(world, "update_reservation_flights", flights=same, **{**change, "payment_id": "card_1"})
        shown = json.loads(answer.content)
        assert (shown["cabin"], shown["flights"][0]["price"]) == ("business", 300)
        assert shown["payment_history"][-1] == {"payment_id": "card_1", "amount": 150}
        other = [{"flight_number": "F4", "date": "2024-05-20"}, {"flight_number": "F5", "date": "2024-05-20"}]
        shown = json.loads(use(world, "update_reservation_flights", flights=other, **change).content)
        assert [leg["price"] for leg in shown["flights"]] == [300, 30]
        assert methods(world)["gift_1"]["amount"] == 45.0
        shown = json.loads(use(world, "update_reservation_flights", flights=other[1:], **change).content)
        assert shown["payment_history"][-1] == {"payment_id": "gift_1", "amount": -300}
        assert methods(world)["gift_1"]["amount"] == 345.0
    left = [
        [seats(w, "F4", "economy"), seats(w, "F4", "business"), seats(w, "F5", "business")] for w in (official, fixed)
    ]
    assert left == [[2, 2, 1], [3, 2, 0]]  # TAU2 moves no seats


def test_passengers_are_replaced(fixed):
    shown = json.loads(use(fixed, "update_reservation_passengers", reservation_id="R1", passengers=[BOB]).content)
    assert shown["passengers"] == [BOB]
    short = use(fixed, "update_reservation_passengers", reservation_id="R1", passengers=[{"first_name": "Bob"}])
    assert short.content == "Error: argument 'passengers[0]' lacks the field 'last_name'."


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"flights": []}, "argument 'flights' must not be empty."),
        ({"flights": [{"flight_number": "F4"}]}, "argument 'flights[0]' lacks the field 'date'."),
        (
            {"flights": [{"flight_number": "F4", "date": "2024-05-20"}] * 2},
            "argument 'flights[1]' names F4 on 2024-05-20 again.",
        ),
        ({"payment_methods": paid(("card_1", 100)) * 2}, "argument 'payment_methods[1]' names card_1 again."),
        (
            {"payment_methods": paid(("card_1", 250), ("gift_1", -50))},
            "argument 'payment_methods[1].amount' must be at least 0, not -50.",
        ),
        ({"total_baggages": -1}, "argument 'total_baggages' must be at least 0, not -1."),
        ({"nonfree_baggages": 2}, "argument 'nonfree_baggages' must be at most total_baggages (1), not 2."),
        (
            {"total_baggages": "1"},
            "book_reservation: argument 'total_baggages' must be a whole number, not a string ('1').",
        ),
    ],
)
def test_fixed_refuses_what_tau2_lets_pass(fixed, changes, text):
    before = fixed.digest()
    assert use(fixed, "book_reservation", **booking(**changes)).content == f"Error: {text}"
    assert fixed.digest() == before


def test_fixed_refuses_negative_certificates_and_amounts_written_as_text(fixed):
    assert use(fixed, "send_certificate", user_id="ann_1", amount=-5).error
    text = use(fixed, "book_reservation", **booking(payment_methods=paid(("card_1", "200")))).content
    assert text == "Error: argument 'payment_methods[0].amount' must be a whole number, not a string ('200')."


def test_observations_may_be_written_in_another_style():
    domain = Airline(database=DATABASE, policy="Be exact.", render=lambda name, value: f"{name}:{value['cabin']}")
    answer = use(domain.world(), "get_reservation_details", reservation_id="R1")
    assert answer.content == "get_reservation_details:economy" and domain.policy_text == "Be exact."


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (
            ("reservations", "R1", "flights", 0, "price"),
            None,
            r"reservations\['R1'\] lacks the field 'flights.0.price'",
        ),
        (("flights", "F4", "dates", "2024-05-20", "available"), "", None),
        (("users", "ann_1", "membership"), "platinum", r"users\['ann_1'\] has a malformed field 'membership': Input"),
        (("users", "ann_1", "payment_methods", "gift_1", "amount"), None, "'payment_methods.gift_1.gift_card.amount'"),
        (("flights", "F5"), 3, r"flights\['F5'\] is malformed: Input should be"),
        (("users",), None, "it lacks the table 'users'"),
        (("users",), [], "it has no records in the table 'users'"),
    ],
)
def test_a_malformed_database_is_named(path, value, text):
    broken = copy.deepcopy(tables())
    *way, last = path
    inner = broken
    for step in way:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    if text is None:  # fields that TAU2 does not know are dropped
        assert airline_database(broken).view().full_hash() == DATABASE.view().full_hash()
        return
    with pytest.raises(DataError, match=text):
        airline_database(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats(-3, 300) | st.sampled_from(["F4", "card_1", "1", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["payment_id", "amount", "date"]), inner)
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(sorted(booking())), JSON), max_size=2))
def test_whatever_is_asked_for_fixed_books_right_or_changes_nothing(changes):
    world = airline().world()
    before = world.digest()
    result = use(world, "book_reservation", **booking(**dict(changes)))
    if result.error:
        assert world.digest() == before and world.writes == []
        return
    made = json.loads(result.content)
    extras = 50 * made["nonfree_baggages"] + (30 if made["insurance"] == "yes" else 0) * len(made["passengers"])
    price = sum(leg["price"] for leg in made["flights"]) * len(made["passengers"]) + extras
    assert sum(p["amount"] for p in made["payment_history"]) == price
    assert all(type(made[name]) is int for name in ("total_baggages", "nonfree_baggages"))


@settings(max_examples=60)
@given(st.sampled_from(sorted(airline().tool_names())), st.dictionaries(st.sampled_from(sorted(booking())), JSON))
def test_no_call_ever_raises(name, arguments):
    for semantics in ("official", "fixed"):
        result = use(airline(semantics).world(), name, **arguments)
        assert result.error == result.content.startswith("Error: ")
