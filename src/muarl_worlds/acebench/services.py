"""A phone and a travel desk as services: who uses them, what they want, what only a person can help with."""

from __future__ import annotations

from muarl.domains.kit.declaration import Remedy
from muarl.domains.kit.service import Service
from muarl_worlds.acebench import catalogue as cat
from muarl_worlds.acebench import food_intents, phone_intents, travel_intents, travel_slots
from muarl_worlds.acebench.generated_domain import PHONE, TINY_TOOLS, TRAVEL, Phone, TravelDesk
from muarl_worlds.acebench.worlds import phone_tables, travel_tables

PHONE_SERVICE = Service(
    domain=Phone,
    about="your phone's assistant",
    today=cat.PHONE_NOW[:10],
    identity=phone_intents.IDENTITY,
    intents=(*food_intents.INTENTS, *phone_intents.INTENTS),
    tables=phone_tables,
    outside=cat.TOPICS_PHONE,
    tiny_tools=TINY_TOOLS[PHONE],
    free_writes=("login_food_platform",),
    remedies=(
        Remedy("device (?:is )?not logged in", "login_device"),
        Remedy("wi-fi is (?:turned off|not enabled)", "turn_on_wifi"),
    ),
    apart=(
        frozenset(
            {"send_message", "order_and_tell", "do_tasks", "delete_message", "delete_message_from",
             "delete_message_about"}
        ),
        frozenset({intent.name for intent in food_intents.INTENTS} - {"ask_balance"}),
    ),
)  # fmt: skip
TRAVEL_SERVICE = Service(
    domain=TravelDesk,
    about="a travel desk",
    today=cat.TODAY,
    identity=travel_slots.IDENTITY,
    intents=travel_intents.INTENTS,
    tables=travel_tables,
    outside=cat.TOPICS_TRAVEL,
    open_tools=("get_flight_details", "find_transfer_flights", "get_baggage_allowance", "calculate_baggage_fee"),
    tiny_tools=TINY_TOOLS[TRAVEL],
    apart=(frozenset({"book_flight", "book_connection"}),),
)
