"""What ``muarl audit`` reads: runs, episodes, other trainers' and live agents' conversations. Errors name the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muarl.audit.rules import RulesFile, kept_rules, read_rules
from muarl.audit.transcript import Transcript, transcript_of
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json, read_lines, read_yaml
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.environments.recorded_episodes import world_of
from muarl.records.conversation import LeftOutCounts, RecordedConversation
from muarl.records.episodes import EpisodeConversation
from muarl.records.reading import read
from muarl.records.rows import LOG_LINES
from muarl.rewards.state_changes import CannotReplay
from muarl.types.episode import Episode, Turn, Verdict
from muarl_tools.auditing.rules import Chosen, RulesOfConversations
from muarl_worlds.tau.tau1_benchmark import recorded_world
from muarl_worlds.tau.tau1_trajectories import Tau1Conversation
from muarl_worlds.tau.tau2_results import Simulation

EVALUATIONS = ("eval-before", "eval-after", "eval", "eval-typical", "eval-hard")
"""Files of a run's episodes that are evaluations, in the order in which they are shown."""


@dataclass(frozen=True)
class AuditedConversation:
    """A conversation to be audited."""

    episode: Episode
    chosen: Chosen
    where: Mapping[str, Any]
    """What a finding's line says of it."""
    task: Task | None = None
    domain: Domain | None = None
    beside: bool = False
    """See ``audit.Transcript``."""
    unread: bool = False
    """Whether the agent may have done more than was read."""

    @property
    def rules(self) -> AuditRules:
        """By which it is audited."""
        return self.chosen.rules

    def transcript(self) -> Transcript:
        """The conversation as the audit reads it."""
        return transcript_of(self.episode, self.task, domain=self.domain, rules=self.rules, beside=self.beside)


@dataclass(frozen=True)
class RunOfFile:
    """What the run that a file of episodes belongs to says of itself; nothing of any other file."""

    config: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """By id: the tasks as the run's tasks.jsonl has them, scenario and gold actions. A task made again that has another
    scenario is not that task."""
    kept: tuple[RulesFile, ...] = ()
    """What the run's domain declares itself."""

    @classmethod
    def at(cls, file: Path, *, rules: bool) -> RunOfFile:
        """The one of a file. ``rules``: read what its domain declares."""
        folder = file.parent.parent
        if file.parent.name != "episodes":
            return cls()
        given = read_yaml(folder / "config.yaml") if (folder / "config.yaml").is_file() else {}
        tasks = {task.id: task for task in _tasks(folder / "tasks.jsonl")}
        kept = tuple(read_rules(path, "") for path in kept_rules(folder)) if rules else ()
        return cls(given if isinstance(given, Mapping) else {}, tasks, kept)


@dataclass
class ConversationReader:
    """Reads conversations, with the rules that they are audited by."""

    rules: RulesOfConversations
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)
    """What of a log was not taken over."""
    passed_over: list[str] = field(default_factory=list)
    """Files of a run's episodes that are no evaluations, and were not read, as it has some."""

    def read(self, path: Path, only: tuple[str, ...] = ()) -> Iterator[AuditedConversation]:
        """The conversations of a run's folder, or of whatever ``records.reading.read`` knows. ``only``: of a run, the
        files with these names; none: its evaluations, or all where it has none."""
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        if path.is_dir() and (path / "episodes").is_dir():
            for file in self._episodes(path, only):
                yield from self._file(file)
        elif only:
            raise ConfigError(f"--episodes: {path} is no run with several files of episodes")
        elif path.is_dir() and not any(path.glob("*.json")):
            raise DataError(
                f"{path}: neither a run (episodes/) nor a run of TAU2 (results.json and simulations/), and without "
                "trajectories (*.json)"
            )
        else:
            yield from self._file(path)

    def _episodes(self, path: Path, only: tuple[str, ...]) -> list[Path]:
        """The files of a run that are read."""
        files = sorted((path / "episodes").glob("*.jsonl"))
        names = {f.stem for f in files}
        if missing := [n for n in only if n not in names]:
            raise ConfigError(f"--episodes: {path} has no {missing[0]!r}; it has {', '.join(sorted(names)) or 'none'}")
        if not files:
            raise DataError(f"{path / 'episodes'}: holds no episodes yet")
        wanted = only or tuple(name for name in EVALUATIONS if name in names) or tuple(names)
        self.passed_over[:] = [] if only else sorted(names - set(wanted))
        order = {name: n for n, name in enumerate((*EVALUATIONS, *sorted(names - set(EVALUATIONS))))}
        return [f for f in sorted(files, key=lambda f: order[f.stem]) if f.stem in wanted]

    def _file(self, path: Path) -> Iterator[AuditedConversation]:
        run = RunOfFile.at(path, rules=self.rules.rules is None)
        lines = replace(LOG_LINES, unfinished_ok=path.parent.name == "episodes")
        for one in read(path, self.left_out, lines=lines):
            if isinstance(one, EpisodeConversation):
                yield self._episode(one, path, run)
            elif isinstance(one, (Simulation, Tau1Conversation)):
                yield self._benchmark(one)
            else:
                yield self._log(one, path)

    def _episode(self, one: EpisodeConversation, path: Path, run: RunOfFile) -> AuditedConversation:
        episode = one.episode
        where = {"file": path.stem, "episode": episode.id, "task_id": episode.task_id}
        domain: Domain | None = None
        task: Task | None = None
        try:
            if "played" not in episode.tags:
                domain, task = world_of(episode, run.config, path.stem == "eval")
        except CannotReplay:
            pass  # then only what the tools showed is known
        told = run.tasks.get(episode.task_id)
        if task is not None and told is not None and told.scenario != task.scenario:
            domain = task = None
        chosen = self.rules.of_episode(episode, task, domain, run.config, run.kept)
        return AuditedConversation(episode, chosen, where, told if task is None else task, domain)

    def _benchmark(self, one: Simulation | Tau1Conversation) -> AuditedConversation:
        """A conversation that a benchmark's own program has recorded."""
        name = one.domain or self.rules.domain
        if name is None:
            raise DataError(f"{one.place}: nothing tells its domain; name it with --domain")
        domain, task = one.run.world(one.task_id) if isinstance(one, Simulation) else recorded_world(one, name)
        episode = _episode_of(one, one.id, str(one.task_id), name)
        where = {"file": one.row.path.stem, "episode": episode.id, "task_id": episode.task_id}
        chosen = self.rules.of_benchmark(episode.domain, task, domain)
        if isinstance(one, Simulation) and one.run.solo:
            chosen = replace(chosen, rules=chosen.rules.alone())
        return AuditedConversation(episode, chosen, where, task, domain)

    def _log(self, one: RecordedConversation, path: Path) -> AuditedConversation:
        before = self.left_out.unread.total()
        _ = one.messages
        unread = self.left_out.unread.total() > before
        chosen = self.rules.of_log(one)
        identity = f"{path.stem}:{one.row.number}" if one.id is None else one.id
        task_id = identity if one.task_id is None else one.task_id
        system = next((m.content for m in one.messages if m.role == "system"), None)
        episode = _episode_of(one, identity, task_id, chosen.domain, system)
        where = {"file": path.stem, "episode": identity, "task_id": task_id}
        return AuditedConversation(episode, chosen, where, beside=True, unread=unread)


def _episode_of(
    one: RecordedConversation, identity: str, task_id: str, domain: str, system: str | None = None
) -> Episode:
    """A recorded conversation as an episode."""
    reward = one.reward
    verdict = None if reward is None else Verdict(reward, {"reward": reward})
    turns = [Turn(m) for m in one.messages]
    return Episode(identity, task_id, domain, turns, one.stop, verdict=verdict, system=system)


def _tasks(path: Path) -> Iterator[Task]:
    """Tasks as far as a run's tasks.jsonl tells them; lines that are none are passed over."""
    if path.is_file():
        for _, line in read_lines(path):
            try:
                row = parse_json(line)
                given = row.get("actions")
                actions = None if given is None else tuple(
                    Action(str(a["name"]), dict(a["arguments"]), requestor=a.get("requestor", "assistant"))
                    for a in given
                )  # fmt: skip
                yield Task(str(row["id"]), str(row.get("domain", "")), str(row["scenario"]), actions)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
