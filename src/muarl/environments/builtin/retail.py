"""A web shop: orders are cancelled, changed, returned and exchanged."""

from __future__ import annotations

from muarl.domains.kit.duties import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.domains.retail.audit import RETAIL as RULES
from muarl.domains.retail.intents import SERVICE
from muarl.domains.retail.tiny_vocabulary import entities
from muarl.domains.retail.world_from_log import OBSERVER
from muarl.environments.service import environment

RETAIL = environment(
    SERVICE,
    name="retail-generated",
    about="A web shop: orders are cancelled, changed, returned and exchanged.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base",
    entities=entities,
    observer=OBSERVER,
)
