"""Steps that a run has recorded, to be learned from again (``rl.replay``): their episodes, what the learner then was,
and what the update came to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.json_values import as_figure
from muarl.config.rl import RlConfig
from muarl.learning.checkpoint_folders import latest_checkpoint, list_checkpoints
from muarl.observe.rundir import RunDirectory
from muarl.records import parquet
from muarl.records.conversation import LeftOutCounts
from muarl.records.episodes import EpisodeConversation
from muarl.records.reading import read
from muarl.rollouts.rollout import Groups, collect_groups
from muarl.types.episode import ADVANTAGE, Episode, read_episodes

COUNTED = ("episodes", "excluded", "branches/episodes", "branches/excluded")
"""Figures that together say how many episodes a step has played."""
UNREPEATED = ("update/seconds", "update/tokens_per_second")
"""Figures of an update that differ each time."""


@dataclass(frozen=True)
class Recording:
    """What ``rl.replay`` names: some steps of a run, or conversations in a file or folder, which are one step."""

    place: Path
    """The run's folder, or the file or folder of conversations."""
    steps: tuple[int, ...]
    """The numbers of its steps, in order."""
    checkpoint: Path | None = None
    """What the learner continues from; None: it begins with the policy as it was at the start."""
    run: bool = True
    """Whether it is a run's."""
    start: Path | None = None
    """The policy that a run's reinforcement learning started with; None: ``model.checkpoint``."""

    @classmethod
    def of(cls, text: str) -> Recording:
        """What RUN, RUN:STEP or FILE stands for. A step whose checkpoint is gone is led up to from the last one before
        it. ConfigError if there is no such thing, or steps in between are not recorded."""
        place, step = Path(text).expanduser(), None
        if not place.exists():
            head, _, tail = text.rpartition(":")
            place, step = Path(head or text).expanduser(), tail if head else None
        if place.exists() and not (place / "episodes").is_dir():
            if step is not None:
                raise ConfigError(f"rl.replay: {place} is no run, and so one step: leave :{step} out")
            return cls(place, (0,), run=False)
        if not place.exists() or (step is not None and not step.isdecimal()):
            raise ConfigError(f"rl.replay: there is no run or file {text!r}; RUN, RUN:STEP and FILE are understood")
        names = (path.stem.removeprefix("train-") for path in (place / "episodes").glob("train-*.jsonl"))
        recorded = sorted(int(name) for name in names if name.isdecimal())
        last = int(step) if step is not None else recorded[-1] if recorded else 0
        checkpoints = (
            [] if step is None else [c for c in list_checkpoints(place / "checkpoints" / "rl") if c[0] <= last]
        )
        first, checkpoint = checkpoints[-1] if checkpoints else (0, None)
        if missing := sorted({*range(first, last + 1)} - {*recorded}):
            available = f"it has {_shown(recorded)}" if recorded else "it has none"
            raise ConfigError(
                f"rl.replay: {place} has not recorded step {missing[0]} ({available}); a run with rl.save_episodes=all "
                "records every step, and one with rl.checkpoint_every=1 can begin with any"
            )
        return cls(place, (*range(first, last + 1),), checkpoint, start=latest_checkpoint(place / "checkpoints"))

    def episodes(self, step: int) -> list[Episode]:
        """What was learned from in a step, or, where no update has looked at it yet, what was played. DataError if the
        run kept only a part of it, or if episodes have no tokens or no reward."""
        if not self.run:
            conversations = [*_conversations(self.place)]
            if not conversations:
                raise DataError(f"{self.place}: holds no conversations")
            return conversations
        path = self.place / "episodes" / f"train-{step:04d}.jsonl"
        episodes = [*read_episodes(path)]
        row = self.row(step)
        made = int(sum(as_figure(row.get(name)) or 0 for name in COUNTED))
        if row and made != len(episodes):
            raise DataError(
                f"{path}: holds {len(episodes)} of the step's {made} episodes: record with rl.save_episodes=all"
            )
        chosen = [e for e in episodes if ADVANTAGE in e.tags] or episodes
        for number, episode in enumerate(chosen):
            _check(episode, f"{path}, episode {number + 1}")
        return chosen

    def groups(self, step: int, rl: RlConfig) -> Groups:
        """The same in groups, as ``rl`` forms them."""
        return collect_groups(self.episodes(step), rl.group_size, minimum=rl.min_group)

    def row(self, step: int) -> Mapping[str, Any]:
        """The run's figures of a step; empty where there are none."""
        return self._rows.get(step, {})

    @cached_property
    def _rows(self) -> Mapping[Any, Mapping[str, Any]]:
        """The run's figures by step, read once."""
        rows = RunDirectory.at(self.place).read_metrics() if self.run else []
        return {row.get("step"): row for row in rows if row.get("phase") == "rl"}

    def differences(self, step: int, figures: Mapping[str, float]) -> tuple[int, dict[str, tuple[float, float]]]:
        """How many figures of the recorded update there are to compare with, and which of them differ: then and now.
        ``figures``: of today's."""
        row = self.row(step)
        then = {k: v for k, v in row.items() if k.startswith("update/") and k not in UNREPEATED}
        differ = {k: (v, figures.get(k, math.nan)) for k, v in then.items() if figures.get(k) != v}
        return len(then), differ


def _conversations(path: Path) -> Iterator[Episode]:
    """The episodes of a file or folder: muarl's, trajectories that muarl wrote, and rows with token ids."""
    for conversation in read(path, LeftOutCounts()):
        place = conversation.place
        if isinstance(conversation, EpisodeConversation):
            episode = conversation.episode
        else:
            episode = parquet.episode_of(conversation.value, conversation.messages, place)
        _check(episode, place)
        yield episode


def _check(episode: Episode, place: str) -> None:
    """DataError for an episode that counts and has no sampled tokens or no reward."""
    if not episode.learnable:
        return
    if episode.tokens is None or not episode.tokens.sampled_count:
        raise DataError(f"{place}: has no sampled token ids, and only these can be learned from")
    if episode.verdict is None:
        raise DataError(f"{place}: has no reward (verdict)")


def _shown(steps: Sequence[int]) -> str:
    text = ", ".join(map(str, steps[:8]))
    return text if len(steps) <= 8 else f"{text}, ... ({len(steps)} in all)"
