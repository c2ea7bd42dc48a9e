"""Files, messages, tickets, stocks, trips and cars, with the tools of BFCL."""

from __future__ import annotations

from dataclasses import replace

from muarl.domains.auditing import NO_CONSENT
from muarl.domains.bfcl import generator, tiny_vocabulary
from muarl.domains.bfcl.expert import BfclExpert
from muarl.domains.bfcl.generated import generated_bfcl
from muarl.domains.bfcl.scenes import SIZES
from muarl.environments.environment import Environment
from muarl.users.agenda_bfcl import BfclAgendaUser

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
