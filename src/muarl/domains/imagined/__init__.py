"""Tools played by a model: specs and policy of a real domain, and a ledger that keeps the model to its word."""

from muarl.domains.imagined.domain import Fact, ImaginedDomain, ImaginedWorld, goal_met
from muarl.domains.imagined.ledger import Ledger
from muarl.domains.imagined.records import ImaginedCall, ReplayedTeacher
from muarl.domains.imagined.scenario import ImaginedTool, ServiceDescription, read_scenario, scenario_of

__all__ = [
    "Fact", "ImaginedCall", "ImaginedDomain", "ImaginedTool", "ImaginedWorld", "Ledger", "ReplayedTeacher",
    "ServiceDescription", "goal_met", "read_scenario", "scenario_of",
]  # fmt: skip
