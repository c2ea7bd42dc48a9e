"""A web shop: orders are cancelled, changed, returned and exchanged."""

from __future__ import annotations

from muarl.domains.retail.audit import RETAIL as RULES
from muarl.domains.retail.intents import SERVICE
from muarl.domains.retail.tiny_vocabulary import entities
from muarl.domains.retail.world_from_log import OBSERVER
from muarl.environments.service import environment

RETAIL = environment(
    SERVICE,
    name="retail-generated",
    about="A web shop: orders are cancelled, changed, returned and exchanged.",
    audit=RULES,
    checkpoint="base",
    entities=entities,
    observer=OBSERVER,
)
