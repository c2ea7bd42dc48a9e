"""The episodes of an evaluation, each on disk as soon as it is final, so that a killed run can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from muarl.accounts.budgets import Budget
from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.files import append_bytes, drop_broken_tail, write_text
from muarl.observe.rundir import RunDirectory
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.episode import Episode, StopReason, Usage, read_episodes

PHASE = "evaluation"


class ResultsStore:
    """The episodes file of a run, appended to while it runs.

    ``kept``: by id, the episodes that an interrupted run had finished; a half-written last line is dropped. Those that
    infrastructure ended are to be played again, and what they cost goes to the next attempt. ``judged``: what judges
    (and whoever else takes part in no episode's account) had used before. ``context``: episodes are written with what
    the agent was told. ``phase``: of the rows of figures.
    """

    def __init__(self, run: RunDirectory, name: str = "eval", *, context: bool = False, phase: str = PHASE) -> None:
        self._run, self._path = run, run.episodes / f"{name}.jsonl"
        self._context, self._phase = context, phase
        self.kept: dict[str, Episode] = {}
        self._failed: dict[str, Episode] = {}
        drop_broken_tail(self._path)
        for episode in _read(self._path):
            failed = episode.stop is StopReason.INFRASTRUCTURE
            (self._failed if failed else self.kept)[episode.id] = episode
        self._failed = {name: e for name, e in self._failed.items() if name not in self.kept}
        self._logged, self.judged = _last_row(run, phase)

    def check(self, requests: Sequence[RolloutRequest], agent: str, user: str, *, former: str | None = None) -> None:
        """ConfigError if the file holds an episode that these requests would not have played so. ``former``: another
        name that the agent went by when the file was begun."""
        planned = {r.episode_id: r for r in requests}
        for episode in (*self.kept.values(), *self._failed.values()):
            request = planned.get(episode.id)
            what = None
            if request is None:
                what = f"episode {episode.id!r}, which is none of this evaluation's"
            elif request.seed != episode.seed:
                what = f"episode {episode.id!r} with the seed {episode.seed}, which would now be {request.seed}"
            elif episode.user != user or episode.agent not in (agent, former):
                what = f"episodes of {episode.agent} with {episode.user}, and not of {agent} with {user}"
            if what is not None:
                raise ConfigError(
                    f"{self._path} holds {what}: a run can only be resumed with its own tasks, seeds, agent and users"
                )

    def open(self, requests: Sequence[RolloutRequest]) -> list[RolloutRequest]:
        """The requests that are still to be played."""
        return [r for r in requests if r.episode_id not in self.kept]

    def teach(self, budget: Budget) -> None:
        """Tell a budget's reserve what the finished episodes cost."""
        for episode in self.kept.values():
            budget.reserve.learn(budget.whole(episode))

    @property
    def spent(self) -> Usage:
        """What agent, users and judges used before this process, failed episodes included."""
        return self.judged + self.spent_by_episodes

    @property
    def spent_by_episodes(self) -> Usage:
        """What agent and users used in all episodes of the file."""
        both = (*self.kept.values(), *self._failed.values())
        return sum((e.agent_usage + e.user_usage for e in both), Usage())

    def keep(self, episode: Episode, judged: Usage) -> None:
        """Append an episode, whole and flushed to the disk. ``judged``: what judges have used in this process."""
        before = self._failed.pop(episode.id, None)
        if before is not None and not episode.tags.get("resumed"):
            episode.agent_usage += before.agent_usage
            episode.user_usage += before.user_usage
            episode.tags["resumed"] = True
        # First what judges have used: were it lost, it would be spent twice.
        self._log(judged, len(self.kept) + (episode.id not in self.kept))
        append_bytes(self._path, self._line(episode).encode())
        _flush(self._path)
        self.kept[episode.id] = episode

    def log(self, judged: Usage) -> None:
        """One row of figures, from which a resumed run knows its clock and what judges had used; none if the last row
        says the same."""
        if self._logged != (len(self.kept), self.judged + judged):
            self._log(judged, len(self.kept))

    def close(self, episodes: Iterable[Episode]) -> None:
        """Write the files anew, the episodes in this order, as an uninterrupted run would have left them.

        Behind them stand those of an earlier process that infrastructure ended and nobody has played again, since they
        were paid for.
        """
        write_text(self._path, "".join(map(self._line, (*episodes, *self._failed.values()))))
        self._run.rewind()

    def _line(self, episode: Episode) -> str:
        return json.dumps(episode.to_json(context=self._context), ensure_ascii=False) + "\n"

    def _log(self, judged: Usage, count: int) -> None:
        total = self.judged + judged
        figures = {f"judge/{k}": v for k, v in total.to_json().items()}
        self._run.log({"episodes": count, **figures}, phase=self._phase, step=count)
        self._logged = count, total


def _read(path: Path) -> list[Episode]:
    try:
        return list(read_episodes(path)) if path.is_file() else []
    except ValueError as problem:
        raise MuarlError(f"{problem}. Fix or remove that line.") from None


def _last_row(run: RunDirectory, phase: str) -> tuple[tuple[int, Usage] | None, Usage]:
    """What the last row of a phase counts, None where there is none; and what judges had used by then."""
    rows = [r for r in run.read_metrics() if r.get("phase") == phase and "judge/requests" in r]
    if not rows:
        return None, Usage()
    judged = Usage.from_json(rows[-1], "judge/")
    return (int(rows[-1]["step"]), judged), judged


def _flush(path: Path) -> None:
    """Through to the disk, so that not even a power cut loses a finished conversation."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
