"""TAU2's domains, by the benchmark's own protocol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from muarl.domains.agenda import agenda_of
from muarl.domains.auditing import AuditRules
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.users.agenda_device import DeviceAgendaUser
from muarl_worlds.environments.telecom import TELECOM as CARRIER
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from muarl_worlds.tau.banking.audit import BANKING
from muarl_worlds.tau.protocol import tau2
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK
from muarl_worlds.tau.telecom.audit import TELECOM_BENCHMARK
from muarl_worlds.tau.telecom.intents import SERVICE
from muarl_worlds.tau.telecom.official import official_agenda


@dataclass(frozen=True, eq=False)
class Callers:
    """The rule-based users of a carrier's tasks: of made ones, or of the benchmark's, from their scenario."""

    def of(self, task: Task) -> partial[DeviceAgendaUser]:
        """What makes the user of a task."""
        agenda = agenda_of(task) if task.agenda is not None else official_agenda(task)
        return partial(DeviceAgendaUser, service=SERVICE, agenda=agenda)

    def __call__(self, task: Task, *, seed: int, persona: str | None = None) -> DeviceAgendaUser:
        return self.of(task)(task, seed=seed, persona=persona)


RETAIL = Environment(
    name="tau2-retail",
    about="TAU2: a web shop.",
    protocol=tau2("retail"),
    audit=RETAIL_BENCHMARK,
    practice="retail-generated",
)
AIRLINE = Environment(
    name="tau2-airline",
    about="TAU2: an airline.",
    protocol=tau2("airline"),
    audit=AIRLINE_BENCHMARK,
    practice="airline-generated",
)
TELECOM = Environment(
    name="tau2-telecom",
    about="TAU2: a carrier, whose users fix their phones.",
    protocol=tau2("telecom"),
    audit=TELECOM_BENCHMARK,
    practice="telecom-generated",
    expert=CARRIER.expert,
    rule_based_user=Callers(),
)
TELECOM_WORKFLOW = Environment(
    name="tau2-telecom-workflow",
    about="TAU2: the carrier, with the policy written as a workflow.",
    protocol=tau2("telecom-workflow"),
    audit=TELECOM_BENCHMARK,
    practice="telecom-generated",
    expert=CARRIER.expert,
    rule_based_user=Callers(),
)
# its policy of a few lines asks for no consent
MOCK = Environment(
    name="tau2-mock", about="TAU2: a small list of tasks, for trying.", protocol=tau2("mock"),
    audit=AuditRules(consent=False, one_person=False),
)  # fmt: skip
BANKING_KNOWLEDGE = Environment(
    name="tau2-banking_knowledge",
    about="TAU2: a bank, whose rules stand in documents.",
    protocol=tau2("banking_knowledge"),
    audit=BANKING,
)
