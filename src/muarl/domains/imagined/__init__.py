"""Tools played by a model: specs and policy of a real domain, and a ledger that keeps the model to its word."""

from muarl.domains.imagined.domain import Fact, ImaginedDomain, ImaginedWorld, goal_met
from muarl.domains.imagined.ledger import Ledger
from muarl.domains.imagined.records import ImaginedCall, Played
from muarl.domains.imagined.scenario import ImaginedTool, Scenario, read_scenario, scenario_of

__all__ = [
    "Fact", "ImaginedCall", "ImaginedDomain", "ImaginedTool", "ImaginedWorld", "Ledger", "Played", "Scenario",
    "goal_met", "read_scenario", "scenario_of",
]  # fmt: skip
