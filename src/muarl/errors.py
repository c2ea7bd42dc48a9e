"""The errors a person may meet: each message names file or field and the remedy; the CLI prints no traceback."""

from __future__ import annotations

from typing import Any


class MuarlError(Exception):
    """A problem the user can fix. Its text is one clear sentence or two."""


class ConfigError(MuarlError):
    """An unknown key, a value out of range, an unknown preset."""


class DataError(MuarlError):
    """A data file that is missing, changed or malformed."""


class CheckpointError(MuarlError):
    """A checkpoint that is missing, incomplete or of another architecture."""


class BudgetError(MuarlError):
    """What a run may spend is spent: it has stopped where it can go on, with a larger budget."""


class InfrastructureError(MuarlError):
    """Something outside the policy failed (endpoint, sampler, tool server). Such an episode is excluded, never scored.

    ``boundary`` says whose failure it is: "user", "agent", "judge", "world". ``retryable`` False means that trying
    again cannot help (a wrong API key, an unknown model), and that the run should end. ``usage``: what the failed
    request took all the same (an ``episode.Usage``), None where nobody counted.
    """

    usage: Any = None

    def __init__(self, message: str, *, boundary: str, retryable: bool = True) -> None:
        super().__init__(message)
        self.boundary = boundary
        self.retryable = retryable
