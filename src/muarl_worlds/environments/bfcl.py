"""Files, messages, tickets, stocks, trips and cars, with the tools of BFCL."""

from __future__ import annotations

from dataclasses import replace

from muarl.domains.auditing import NO_CONSENT
from muarl.environments.environment import Environment
from muarl_worlds.bfcl import generator, tiny_vocabulary
from muarl_worlds.bfcl.agenda_user import BfclAgendaUser
from muarl_worlds.bfcl.expert import BfclExpert
from muarl_worlds.bfcl.generated import generated_bfcl
from muarl_worlds.bfcl.scenes import SIZES

BFCL = Environment(
    name="bfcl-generated",
    about="Files, messages, tickets, stocks, trips and cars, with the tools of BFCL.",
    domain=generated_bfcl,
    tasks=generator.iter_tasks,
    replayed=True,
    sizes=tuple(SIZES),
    rule_based_user=BfclAgendaUser,
    expert=BfclExpert,
    audit=replace(NO_CONSENT, asks=generator.asked),
    entities=tiny_vocabulary.entities,
    phrases=tiny_vocabulary.phrases,
)
