"""An airline small enough to read, for tests."""

from __future__ import annotations

from muarl.types.chat import ToolCall
from muarl_worlds.tau.airline.domain import Airline, airline_database

CABINS = ("business", "economy", "basic_economy")
ANN = {"first_name": "Ann", "last_name": "Ö'Hara", "dob": "1990-01-01"}
BOB = {"first_name": "Bob", "last_name": "Lee", "dob": "1991-01-01"}


def open_day(seats=2, price=100):
    return {
        "status": "available",
        "available_seats": dict.fromkeys(CABINS, seats),
        "prices": {cabin: price * (3 - i) for i, cabin in enumerate(CABINS)},
    }


def flight(number, origin, destination, leaves, arrives, dates):
    return {
        "flight_number": number,
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": leaves,
        "scheduled_arrival_time_est": arrives,
        "dates": dates,
        "aircraft": "dropped",
    }


def tables():
    landed = {"status": "landed", "actual_departure_time_est": "a", "actual_arrival_time_est": "b"}
    delayed = {"status": "delayed", "estimated_departure_time_est": "a", "estimated_arrival_time_est": "b"}
    flying = {"status": "flying", "actual_departure_time_est": "a", "estimated_arrival_time_est": "b"}
    days = {f"2024-05-{d:02d}": open_day() for d in (2, 3, 10, 11, 20)}
    return {
        "flights": {
            "F1": flight("F1", "JFK", "SEA", "20:00:00", "01:00:00+1", {**days, "2024-05-01": landed}),
            "F2": flight("F2", "SEA", "LAX", "01:00:00", "04:00:00", {**days, "2024-05-04": delayed}),
            "F3": flight("F3", "SEA", "LAX", "09:00:00", "12:00:00", {**days, "2024-05-05": flying}),
            "F4": flight("F4", "JFK", "LAX", "06:00:00", "12:00:00", {**days, "2024-05-06": {"status": "cancelled"}}),
            "F5": flight("F5", "LAX", "JFK", "13:00:00", "20:00:00", {"2024-05-20": open_day(1, 10)}),
        },
        "users": {
            "ann_1": {
                "user_id": "ann_1",
                "name": {"first_name": "Ann", "last_name": "Ö'Hara"},
                "address": {"address1": "1 Oak St", "city": "Bonn", "country": "DE", "state": "NW", "zip": "53111"},
                "email": "ann@example.com",
                "dob": "1990-01-01",
                "payment_methods": {
                    "card_1": {"source": "credit_card", "brand": "visa", "last_four": "1111", "id": "card_1"},
                    "gift_1": {"source": "gift_card", "amount": 75, "id": "gift_1"},
                    "cert_1": {"source": "certificate", "amount": 250, "id": "cert_1"},
                },
                "saved_passengers": [BOB],
                "membership": "gold",
                "reservations": ["R1"],
            }
        },
        "reservations": {
            "R1": {
                "reservation_id": "R1",
                "user_id": "ann_1",
                "origin": "JFK",
                "destination": "LAX",
                "flight_type": "one_way",
                "cabin": "economy",
                "flights": [
                    {"origin": "JFK", "destination": "LAX", "flight_number": "F4", "date": "2024-05-20", "price": 150}
                ],
                "passengers": [ANN],
                "payment_history": [{"payment_id": "card_1", "amount": 150}],
                "created_at": "2024-05-01T00:00:00",
                "total_baggages": 1,
                "nonfree_baggages": 0,
                "insurance": "no",
            }
        },
    }  # fmt: skip


def booking(**changes):
    return {
        "user_id": "ann_1",
        "origin": "JFK",
        "destination": "LAX",
        "flight_type": "one_way",
        "cabin": "economy",
        "flights": [{"flight_number": "F4", "date": "2024-05-20"}],
        "passengers": [ANN],
        "payment_methods": [{"payment_id": "card_1", "amount": 200}],
        "total_baggages": 1,
        "nonfree_baggages": 0,
        "insurance": "no",
        **changes,
    }


def paid(*amounts):
    return [{"payment_id": method, "amount": amount} for method, amount in amounts]


DATABASE = airline_database(tables())


def airline(semantics="fixed"):
    return Airline(database=DATABASE, policy="Be exact.", semantics=semantics)


def use(world, name, **arguments):
    return world.call("assistant", ToolCall("1", name, arguments))


def state(world, table, key):
    return world.toolkit().db[table].peek(key)


def methods(world):
    return state(world, "users", "ann_1")["payment_methods"]


def seats(world, number="F4", cabin="economy"):
    return state(world, "flights", number)["dates"]["2024-05-20"]["available_seats"][cabin]
