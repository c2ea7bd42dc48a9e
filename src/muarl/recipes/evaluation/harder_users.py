"""The same tasks with users who are harder to serve, who leave out, interrupt, contradict themselves and leave: what an
agent's success among easy users is worth (docs/users.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muarl.accounts.budgets import RolloutEnd
from muarl.accounts.evaluation_report import evaluate_summary
from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION
from muarl.backends.users import make_users
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig
from muarl.environments.place import Place
from muarl.environments.places import ByPlace, Places
from muarl.recipes.evaluation.auditing import EvaluationAudit
from muarl.types.episode import Episode
from muarl.users.base import UserFactory
from muarl.users.traits.factory import can_have_traits

COPIED = ("success", "interval", SUCCESS_WITHOUT_VIOLATION, "tasks", "episodes", "excluded")
"""What a level's block has of an evaluation's."""
BEHAVIOUR = ("writes_without_consent", "needless_transfers", "turns")
"""Figures of behaviour in a level's block."""


def harder_users(ev: EvalConfig, user: UserConfig, places: Places) -> dict[str, ByPlace[UserFactory]]:
    """The users of each level of ``eval.harder_users``: those of ``user``, but as difficult. None where these have
    traits or strata of their own, or cannot have any."""
    if user.traits.any or user.strata or not all(_can_be_harder(user, place, ev.split) for place in places):
        return {}
    return {level: make_users(user.at(level), places) for level in ev.harder_users}


def _can_be_harder(user: UserConfig, place: Place, split: str) -> bool:
    if user.kind not in ("agenda", "llm") or place.own_users(None) is not None:
        return False
    return user.kind == "llm" or can_have_traits(place.example_task(split), place.needed_user())


def name_of(level: str) -> str:
    """The name of such an evaluation's file of episodes."""
    return f"eval-{level}"


def label_of(level: str) -> str:
    """What the progress display calls such an evaluation, and the phase of its row of figures."""
    return f"evaluation with {level} users"


def excluded_by(episodes: Sequence[Episode]) -> dict[str, int]:
    """How many episodes failed and are not scored, by the side that failed."""
    failed = (str(e.tags.get("boundary", "unknown")) for e in episodes if e.verdict is None)
    return dict(sorted(Counter(failed).items()))


@dataclass(frozen=True)
class HarderEvaluation:
    """An evaluation with users of one level: its episodes, and their audit by rules."""

    episodes: Sequence[Episode]
    audited: EvaluationAudit
    planned: int
    """How many episodes there were to be."""
    end: RolloutEnd = RolloutEnd.COMPLETE
    """Whether a budget kept some from being played."""

    def to_json(self) -> dict[str, Any]:
        """Its block of ``harder_users`` in summary.json: "success" (a share, null: no episode was scored), "interval"
        [low, high], "success_without_violation" and "catastrophic" (estimates, null: not checked), "behaviour",
        "tasks", "episodes", "excluded", "excluded_by" (failures by side), "planned" (episodes), "ended"."""
        block = evaluate_summary(self.episodes)
        own = {name: block[name] for name in COPIED} | ({} if block["episodes"] else {"success": None})
        behaviour = {name: block["behaviour"][name] for name in BEHAVIOUR if name in block["behaviour"]}
        return own | {
            "behaviour": behaviour,
            "catastrophic": self.audited.summary.to_json()["catastrophic"],
            "excluded_by": excluded_by(self.episodes),
            "planned": self.planned,
            "ended": self.end.value,
        }
