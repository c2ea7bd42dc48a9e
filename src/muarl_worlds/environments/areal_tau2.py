"""AReaL-tau2-data's tasks for TAU2's domains, made to train on; installed by ``muarl data add areal-tau2``."""

from __future__ import annotations

from muarl.environments.environment import Environment
from muarl.rollouts.rules import Rules
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from muarl_worlds.tau.areal_tau2.domains import ArealAirline, ArealRetail, ArealTelecom, InstalledTasks
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK
from muarl_worlds.tau.telecom.audit import TELECOM_BENCHMARK

AIRLINE = Environment(
    name="areal-tau2-airline",
    about="AReaL-tau2-data: made tasks for TAU2's airline.",
    domain=ArealAirline,
    tasks=InstalledTasks("airline"),
    rules=Rules(),
    audit=AIRLINE_BENCHMARK,
)
RETAIL = Environment(
    name="areal-tau2-retail",
    about="AReaL-tau2-data: made tasks for TAU2's web shop.",
    domain=ArealRetail,
    tasks=InstalledTasks("retail"),
    rules=Rules(),
    audit=RETAIL_BENCHMARK,
)
TELECOM = Environment(
    name="areal-tau2-telecom",
    about="AReaL-tau2-data: made tasks for TAU2's carrier, whose users fix their phones.",
    domain=ArealTelecom,
    tasks=InstalledTasks("telecom"),
    rules=Rules(),
    audit=TELECOM_BENCHMARK,
)
