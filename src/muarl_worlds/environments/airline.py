"""An airline: bookings, changes, cancellations, baggage."""

from __future__ import annotations

from muarl.domains.kit.audit import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.environments.service import environment
from muarl_worlds.tau.airline.audit import AIRLINE as RULES
from muarl_worlds.tau.airline.intents import SERVICE
from muarl_worlds.tau.airline.tiny_vocabulary import entities
from muarl_worlds.tau.airline.world_from_log import OBSERVER

AIRLINE = environment(
    SERVICE,
    name="airline-generated",
    about="An airline: bookings, changes, cancellations, baggage.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base-airline",
    entities=entities,
    observer=OBSERVER,
)
