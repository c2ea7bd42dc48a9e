"""An airline: bookings, changes, cancellations, baggage."""

from __future__ import annotations

from muarl.domains.airline.audit import AIRLINE as RULES
from muarl.domains.airline.intents import SERVICE
from muarl.domains.airline.tiny_vocabulary import entities
from muarl.domains.airline.world_from_log import OBSERVER
from muarl.domains.kit.duties import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.environments.service import environment

AIRLINE = environment(
    SERVICE,
    name="airline-generated",
    about="An airline: bookings, changes, cancellations, baggage.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base-airline",
    entities=entities,
    observer=OBSERVER,
)
