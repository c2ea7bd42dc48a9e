"""An airline: bookings, changes, cancellations, baggage."""

from __future__ import annotations

from muarl.domains.airline.audit import AIRLINE as RULES
from muarl.domains.airline.intents import SERVICE
from muarl.domains.airline.tiny_vocabulary import entities
from muarl.domains.airline.world_from_log import OBSERVER
from muarl.environments.service import environment

AIRLINE = environment(
    SERVICE,
    name="airline-generated",
    about="An airline: bookings, changes, cancellations, baggage.",
    audit=RULES,
    checkpoint="base-airline",
    entities=entities,
    observer=OBSERVER,
)
