"""A phone and a travel desk, with tools like those of ACEBench."""

from __future__ import annotations

from muarl.environments.services import shared_environment
from muarl_worlds.acebench.generated_domain import generated_acebench
from muarl_worlds.acebench.services import PHONE_SERVICE, TRAVEL_SERVICE

ACEBENCH = shared_environment(
    {PHONE_SERVICE: 0.58, TRAVEL_SERVICE: 0.42},
    name="acebench-generated",
    about="A phone and a travel desk, with tools like those of ACEBench.",
    domain=generated_acebench,
)
