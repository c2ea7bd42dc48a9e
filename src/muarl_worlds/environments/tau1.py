"""TAU1's domains, by the benchmark's own protocol."""

from __future__ import annotations

from muarl.environments.environment import Environment
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from muarl_worlds.tau.protocol import tau1
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK

RETAIL = Environment(
    name="tau1-retail",
    about="TAU1: a web shop.",
    protocol=tau1("retail"),
    audit=RETAIL_BENCHMARK,
    practice="retail-generated",
)
AIRLINE = Environment(
    name="tau1-airline",
    about="TAU1: an airline.",
    protocol=tau1("airline"),
    audit=AIRLINE_BENCHMARK,
    practice="airline-generated",
)
