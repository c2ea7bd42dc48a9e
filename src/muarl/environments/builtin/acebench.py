"""A phone and a travel desk, with tools like those of ACEBench."""

from __future__ import annotations

from muarl.domains.acebench.generated_domain import generated_acebench
from muarl.domains.acebench.services import PHONE_SERVICE, TRAVEL_SERVICE
from muarl.environments.services import shared_environment

ACEBENCH = shared_environment(
    {PHONE_SERVICE: 0.58, TRAVEL_SERVICE: 0.42},
    name="acebench-generated",
    about="A phone and a travel desk, with tools like those of ACEBench.",
    domain=generated_acebench,
)
