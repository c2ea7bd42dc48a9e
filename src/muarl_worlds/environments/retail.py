"""A web shop: orders are cancelled, changed, returned and exchanged."""

from __future__ import annotations

from muarl.domains.kit.audit import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.environments.service import environment
from muarl_worlds.tau.retail.audit import RETAIL as RULES
from muarl_worlds.tau.retail.intents import SERVICE
from muarl_worlds.tau.retail.tiny_vocabulary import entities
from muarl_worlds.tau.retail.world_from_log import OBSERVER

RETAIL = environment(
    SERVICE,
    name="retail-generated",
    about="A web shop: orders are cancelled, changed, returned and exchanged.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base",
    entities=entities,
    observer=OBSERVER,
)
