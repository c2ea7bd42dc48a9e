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

    def note(self, failure: EndpointFailure, until: float, left: int) -> None:
        """A request has failed and is tried again: so many times at most, and until then (seconds since 1970)."""
        if self._down or (self._told and not failure.nobody):
            return
        self._told, self._down = True, failure.nobody
        who = NAMES.get(failure.boundary, failure.boundary)
        clock = time.strftime("%H:%M:%S", time.localtime(until))
        times = "once" if left == 1 else f"up to {left} times"
        what = f"{who} endpoint {failure.where.model}: {failure.reason}"
        log.warning("%s; trying again %s, until %s at most", what, times, clock)

    def over(self) -> None:
        """A request has been answered."""
        self._down = False
