"""A carrier: bills, roaming, and phones that the user fixes with tools of its own."""

from __future__ import annotations

from muarl.domains.kit.duties import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.domains.telecom.audit import TELECOM as RULES
from muarl.domains.telecom.intents import SERVICE
from muarl.domains.telecom.tiny_vocabulary import entities
from muarl.environments.service import environment

TELECOM = environment(
    SERVICE,
    name="telecom-generated",
    about="A carrier: bills, roaming, and phones that the user mends with tools of its own.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base-telecom",
    entities=entities,
)
