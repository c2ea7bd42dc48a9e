"""TAU1's domains, by the benchmark's own protocol."""

from __future__ import annotations

from muarl.domains.airline.audit import AIRLINE_BENCHMARK
from muarl.domains.retail.audit import RETAIL_BENCHMARK
from muarl.environments.environment import Environment
from muarl.environments.official.tau import Tau1

RETAIL = Environment(
    name="tau1-retail", about="TAU1: a web shop.", protocol=Tau1, audit=RETAIL_BENCHMARK, practice="retail-generated"
)
AIRLINE = Environment(
    name="tau1-airline", about="TAU1: an airline.", protocol=Tau1, audit=AIRLINE_BENCHMARK, practice="airline-generated"
)
