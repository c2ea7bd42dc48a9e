"""Telling the person that an endpoint fails, when it begins to fail, and not with every request that does."""

from __future__ import annotations

import logging
import time

from muarl.endpoints.failures import EndpointFailure

log = logging.getLogger(__name__)

NAMES = {"user": "user", "agent": "agent", "judge": "judge", "world": "tools'"}


class Outages:
    """One line for an endpoint's first failure, and one each time that nobody listens any more at its address."""

    def __init__(self) -> None:
        self._told = self._down = False

    def note(self, failure: EndpointFailure, until: float) -> None:
        """A request has failed and is tried again, at most until then (seconds since 1970)."""
        if self._down or (self._told and not failure.nobody):
            return
        self._told, self._down = True, failure.nobody
        who = NAMES.get(failure.boundary, failure.boundary)
        clock = time.strftime("%H:%M:%S", time.localtime(until))
        log.warning(
            "%s endpoint %s: %s; trying again, until %s at most", who, failure.where.model, failure.reason, clock
        )

    def over(self) -> None:
        """A request has been answered."""
        self._down = False
