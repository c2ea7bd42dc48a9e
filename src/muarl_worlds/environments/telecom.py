"""A carrier: bills, roaming, and phones that the user fixes with tools of its own."""

from __future__ import annotations

from muarl.domains.kit.audit import with_duties
from muarl.domains.kit.worlds import Worlds
from muarl.environments.service import environment
from muarl_worlds.tau.telecom.audit import TELECOM as RULES
from muarl_worlds.tau.telecom.intents import SERVICE
from muarl_worlds.tau.telecom.tiny_vocabulary import entities

TELECOM = environment(
    SERVICE,
    name="telecom-generated",
    about="A carrier: bills, roaming, and phones that the user mends with tools of its own.",
    audit=with_duties(RULES, Worlds(SERVICE)),
    checkpoint="base-telecom",
    entities=entities,
)
