"""A scripted agent for phones and travel desks: near-perfect, with bad habits that can be switched on to make imperfect
demonstrations."""

from __future__ import annotations

from muarl.chat import Message
from muarl.domains.acebench.catalogue import TOPICS_PHONE
from muarl.domains.acebench.errand_steps import ErrandSteps
from muarl.domains.acebench.reading import PHONE_KINDS, Frame
from muarl.domains.acebench.trip_steps import TripSteps


class AceExpert(ErrandSteps, TripSteps):
    """One conversation's worth of expert. Which world it is in, it takes from what it is asked for."""

    def _serve(self, frame: Frame) -> Message:
        if frame.kind == "outside" and frame.slots.get("topic") in TOPICS_PHONE:
            return self._hand_over(f"The caller wants to talk about {frame.slots['topic']}.")
        return self._errand(frame) if frame.kind in PHONE_KINDS else self._trip(frame)
