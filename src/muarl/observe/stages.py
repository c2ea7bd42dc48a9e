"""How far a job of several stages is, and about how long it will still take."""

from __future__ import annotations

from collections.abc import Mapping

MIN_SECONDS = 5.0
MIN_SHARE = 0.02
"""How much of the job must have been worked off, in seconds and as a share of it, before a time is told."""


def clock(seconds: float) -> str:
    """Seconds as a person says them: 8s, 1:05, 2:03:04."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, s = divmod(whole, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def roughly(seconds: float) -> str:
    """Seconds no more exactly than an estimate deserves: 40 s, 9 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(round(minutes, -1), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class JobStages:
    """The stages of a job, by name and in order, with the seconds that each took on some machine.

    The pace of this machine is what its stages took, over what they took there. A stage that was done before (by a run
    that is resumed) tells nothing of the pace, and is behind like any other.
    """

    def __init__(self, stages: Mapping[str, float]) -> None:
        self._names = tuple(stages)
        self._usual = tuple(stages.values())
        self._spent = self._worked = 0.0

    def add(self, name: str, seconds: float, worked: float) -> None:
        """Note that a stage is over: its seconds, and the share of it that was worked off in them."""
        if name in self._names and worked > 0:
            self._spent += seconds
            self._worked += self._usual[self._names.index(name)] * worked

    def text(self, name: str, seconds: float, done: float, worked: float) -> str:
        """Which stage this is, and the time left for it and all that follow, in words; "" for what is no stage.

        ``seconds``: since the stage began. ``done``: the share of it that is done, ``worked``: in these seconds.
        """
        if name not in self._names:
            return ""
        at = self._names.index(name)
        place = f"stage {at + 1} of {len(self._names)}"
        left = self._left(at, seconds, done, worked)
        return place if left is None else f"{place}, about {roughly(left)} left"

    def _left(self, at: int, seconds: float, done: float, worked: float) -> float | None:
        spent, usual = self._spent + seconds, self._worked + self._usual[at] * worked
        if spent < MIN_SECONDS or usual <= 0 or usual < MIN_SHARE * sum(self._usual):
            return None
        return spent / usual * (self._usual[at] * (1 - done) + sum(self._usual[at + 1 :]))
