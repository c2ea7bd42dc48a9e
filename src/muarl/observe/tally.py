"""What an evaluation has come to while it runs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from muarl.accounts.metrics import is_success
from muarl.types.episode import Episode


class Tally:
    """The figures beside the bar: success, failures, cost.

    Until all of the ``planned`` episodes are in, success is given by its bounds: the share of those that are in would
    mislead, since short conversations end first, and they are not like the others.
    """

    def __init__(self, planned: int, episodes: Sequence[Episode] = ()) -> None:
        self._planned = planned
        self._scored = self._right = self._failed = 0
        self._cost = 0.0
        self._why = ""
        for episode in episodes:
            self.add(episode)

    def add(self, episode: Episode) -> None:
        """Count an episode that is over."""
        self._cost += episode.agent_usage.cost + episode.user_usage.cost
        if episode.verdict is None:
            self._failed += 1
            self._why = why(episode.error) or self._why
        else:
            self._scored += 1
            self._right += is_success(episode.reward)

    @property
    def figures(self) -> dict[str, float | str]:
        """By name, as they are shown now."""
        shown: dict[str, float | str] = {}
        waiting = self._planned - self._scored - self._failed
        if self._scored:
            low, high = (right / (self._scored + waiting) for right in (self._right, self._right + waiting))
            shown["success"] = f"{low:.1%}" if not waiting else f"at least {low:.1%}, at most {high:.1%}"
        if self._failed:
            shown["failed"] = f"{self._failed} (last: {self._why})" if self._why else self._failed
        if self._cost:
            shown["cost"] = f"${self._cost:.2f}"
        return shown


def why(error: str | None) -> str:
    """The cause of a failed episode in a few words: whose it was and what happened, without address and advice."""
    text = re.sub(r"\bendpoint \S+ at \S+: ", "", error or "")
    text = re.split(r"; | \(gave up", text, maxsplit=1)[0]
    return textwrap.shorten("".join(c if c.isprintable() else " " for c in text), 60, placeholder="…")
