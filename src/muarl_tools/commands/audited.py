"""What ``muarl audit`` reads: runs, episodes, other trainers' and live agents' conversations. Errors name the place.

Files of lines are read line by line, so that their length does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.untrusted import parse_json, read_lines, read_yaml, to_float
from muarl.records.formats.logs import LogRow, conversations
from muarl.records.log_files import is_lines, lines_of, parquet_rows, rows_in, rows_of_file, whole_value
from muarl.records.log_messages import conversation_of, stop_of

if TYPE_CHECKING:
    from muarl.audit.rules_file import RulesFile
    from muarl.audit.transcript import Transcript
    from muarl.domains.auditing import AuditRules
    from muarl.domains.base import Domain, Task
    from muarl.environments.audit_rules import NamedRules
    from muarl.environments.environment import Environment
    from muarl.types.chat import Message
    from muarl.types.episode import Episode

EVALUATIONS = ("eval-before", "eval-after", "eval")
"""Files of a run's episodes that are evaluations."""
NONE = "none"
"""What is named where no rules were declared for a conversation."""


@dataclass(frozen=True)
class AuditedConversation:
    """A conversation to be audited. ``where``: what a finding's line says of it. ``beside``: see ``audit.Transcript``.
    ``named``: the rules that were used, for people. ``in_code``: rules that its domain's class declares in code, which
    nobody could apply."""

    episode: Episode
    rules: AuditRules
    where: Mapping[str, Any]
    task: Task | None = None
    domain: Domain | None = None
    beside: bool = False
    named: str = ""
    in_code: tuple[str, ...] = ()
    unread: bool = False
    """Whether the agent may have done more than was read."""

    def transcript(self) -> Transcript:
        """The conversation as the audit reads it."""
        from muarl.audit import transcript_of

        return transcript_of(self.episode, self.task, domain=self.domain, rules=self.rules, beside=self.beside)


@dataclass
class ConversationReader:
    """Reads conversations. ``domain``: where a conversation names none; ``rules``: in place of any domain's own, from
    the file of the name ``rules_name``.

    ConfigError for a domain that muarl does not know.
    """

    domain: str | None = None
    rules: AuditRules | None = None
    rules_name: str = ""
    kept: tuple[RulesFile, ...] = ()
    """What the run's domain declares itself (``rules_file.FILE``)."""
    config: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """By id: the tasks as the run's tasks.jsonl has them, scenario and gold actions. A task made again that has another
    scenario is not that task."""

    lost: Counter[str] = field(default_factory=Counter)
    """How often something of a log, by kind, had no place in a conversation."""

    unread: Counter[str] = field(default_factory=Counter)
    """How often something that an agent may have done by, by kind, was not read."""

    passed_over: list[str] = field(default_factory=list)
    """Files of a run's episodes that are no evaluations, and were not read, as it has some."""

    environment: Environment | None = field(default=None, init=False)
    """The environment that ``domain`` names, where it is not one of those whose rules go by a name of their own."""

    def __post_init__(self) -> None:
        from muarl.environments.audit_rules import rules_named
        from muarl.environments.registry import built_in, find, is_reference, names

        if self.domain is None:
            return
        own = is_reference(self.domain) or (self.domain in names() and self.domain not in built_in())
        if own or (self.domain in built_in() and rules_named(self.domain) is None):
            self.environment = find(self.domain)
        else:
            self._known(self.domain, "--domain")

    def read(self, path: Path, only: tuple[str, ...] = ()) -> Iterator[AuditedConversation]:
        """The conversations of a run's folder, a folder or file of TAU2's, a file of TAU1's, or a file of lines.
        ``only``: of a run, the files with these names; none: its evaluations, or all where it has none."""
        from muarl_worlds.tau.tau2_benchmark import results

        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        if path.is_dir() and (path / "episodes").is_dir():
            yield from self._run(path, only)
        elif only:
            raise ConfigError(f"--episodes: {path} is no run with several files of episodes")
        elif (folder := results.folder_of(path)) is not None and (folder / "results.json").is_file():
            yield from self._tau2(results.read_folder(folder))
        elif path.is_dir() and not any(path.glob("*.json")):
            raise DataError(
                f"{path}: neither a run (episodes/) nor a run of TAU2 (results.json and simulations/), and without "
                "trajectories (*.json)"
            )
        elif path.is_dir():
            yield from self._rows(rows_of_file(path), path)
        elif path.suffix == ".parquet":
            yield from self._rows(parquet_rows(path), path)
        elif is_lines(path):
            yield from self._of_run(path)._lines(path)
        else:
            yield from self._whole(path)

    # The kinds of sources.

    def _run(self, path: Path, only: tuple[str, ...]) -> Iterator[AuditedConversation]:
        files = sorted((path / "episodes").glob("*.jsonl"))
        names = {f.stem for f in files}
        if missing := [n for n in only if n not in names]:
            raise ConfigError(f"--episodes: {path} has no {missing[0]!r}; it has {', '.join(sorted(names)) or 'none'}")
        if not files:
            raise DataError(f"{path / 'episodes'}: holds no episodes yet")
        wanted = only or tuple(name for name in EVALUATIONS if name in names) or tuple(names)
        self.passed_over[:] = [] if only else sorted(names - set(wanted))
        for file in sorted(files, key=lambda f: (f.stem != "eval-before", f.stem)):
            if file.stem in wanted:
                yield from self._of_run(file)._lines(file)

    def _of_run(self, file: Path) -> ConversationReader:
        """This reader with what the run that a file belongs to says of itself."""
        from muarl.audit.rules_file import kept_rules, read_rules

        folder = file.parent.parent
        config = folder / "config.yaml"
        if file.parent.name != "episodes":
            return self
        given = read_yaml(config) if config.is_file() else {}
        told = {task.id: task for task in _tasks(folder / "tasks.jsonl")}
        kept = tuple(read_rules(path, "") for path in kept_rules(folder)) if self.rules is None else ()
        return replace(self, config=given if isinstance(given, Mapping) else {}, tasks=told, kept=kept)

    def _lines(self, path: Path) -> Iterator[AuditedConversation]:
        yield from self._rows(lines_of(path, unfinished_ok=path.parent.name == "episodes"), path)

    def _rows(self, rows: Iterable[LogRow], path: Path) -> Iterator[AuditedConversation]:
        for row in conversations(rows, self.lost):
            yield self._row(row.value, row.place, path, row.number)

    def _whole(self, path: Path) -> Iterator[AuditedConversation]:
        from muarl_worlds.tau import tau1_trajectories
        from muarl_worlds.tau.tau2_benchmark import results

        found = whole_value(path)
        if results.is_results(found):
            yield from self._tau2(results.results(found, path))
        elif tau1_trajectories.is_historical(found):
            for i, row in enumerate(found):
                yield self._tau1(row, f"{path}, entry {i}", i)
        else:
            yield from self._rows(rows_in(found, path), path)

    def _row(self, row: Mapping[str, Any], place: str, path: Path, number: int) -> AuditedConversation:
        if "traj" in row:
            return self._tau1(row, place, number)
        if "turns" in row and "messages" not in row:
            return self._episode(row, place, path)
        return self._messages(row, place, path, number)

    def _episode(self, row: Mapping[str, Any], place: str, path: Path) -> AuditedConversation:
        from muarl.audit.rules_file import FILE
        from muarl.environments.audit_rules import rules_recorded
        from muarl.environments.recorded import usable, world_of
        from muarl.rewards.state_changes import CannotReplay
        from muarl.types.episode import Episode

        try:
            episode = Episode.from_json(row)
        except (ValueError, TypeError, AttributeError) as problem:
            raise DataError(f"{place}: this row is no episode: {problem}") from None
        where = {"file": path.stem, "episode": episode.id, "task_id": episode.task_id}
        domain: Domain | None = None
        task: Task | None = None
        try:
            if "played" not in episode.tags:
                domain, task = world_of(episode, self.config, path.stem == "eval")
        except CannotReplay:
            pass  # then only what the tools showed is known
        told = self.tasks.get(episode.task_id)
        if task is not None and told is not None and told.scenario != task.scenario:
            domain = task = None
        if (declared := self._declared(episode.domain, domain)) is not None:
            task = told if task is None else task
            return AuditedConversation(episode, declared[0], where, task, domain, named=declared[1])
        kept = next((found for found in self.kept if found.domain in ("", episode.domain)), None)
        at_hand = any(e.task_domain == episode.domain for e in usable(self.config))
        if self.rules is None and kept is not None and not at_hand:
            name = f"{episode.domain} ({FILE})"
            return AuditedConversation(episode, kept.rules, where, told, named=name, in_code=kept.in_code)
        found = rules_recorded(self.config, episode, task, domain)
        rules = found.rules if self.rules is None else self.rules
        named = self._named(rules, found.name, episode.domain)
        return AuditedConversation(episode, rules, where, told if task is None else task, domain, named=named)

    def _declared(self, name: str | None, domain: Domain | None = None) -> tuple[AuditRules, str] | None:
        """The rules of the environment that the person has named, and what to call them; None for another one's
        conversation, and where a file of rules counts instead."""
        environment = self.environment
        if self.rules is not None or environment is None or name not in (environment.name, environment.task_domain):
            return None
        rules = environment.audit_rules(domain or environment.make_domain())
        return rules, environment.name if rules.declared else f"{NONE} for {environment.name}"

    def _named(self, rules: AuditRules, name: str | None, domain: str = "") -> str:
        """The rules that are used, for people; of a domain that has none, whose they would be."""
        if self.rules is not None:
            return self.rules_name
        if name is not None and rules.declared:
            return name
        return f"{NONE} for {domain or name}" if domain or name else NONE

    def _messages(self, row: Mapping[str, Any], place: str, path: Path, number: int) -> AuditedConversation:
        from muarl.domains.auditing import UNDECLARED
        from muarl.types.episode import Episode, StopReason, Turn, Verdict

        before = self.unread.total()
        messages = conversation_of(row, place, self.lost, self.unread)
        given = self.domain if self.environment is None else self.environment.task_domain
        name = row.get("domain", given)
        if name is not None and not isinstance(name, str):
            raise DataError(f"{place}: domain must be a string, not {type(name).__name__}")
        declared = self._declared(name)
        known = None
        if self.rules is None and declared is None:
            known = self._guess(name, messages, row.get("tools", row.get("functions")), place)
        identity = str(row.get("id", row.get("task_id", f"{path.stem}:{number}")))
        task_id = str(row.get("task_id", identity))
        reward = row.get("reward")
        verdict = None
        if isinstance(reward, (int, float)) and not isinstance(reward, bool):
            value = to_float(reward, f"{place}: reward")
            verdict = Verdict(value, {"reward": value})
        stop = stop_of(row.get("termination_reason", row.get("stop")))
        episode = Episode(
            identity,
            task_id,
            (name or "") if known is None else known.domain,
            [Turn(m) for m in messages],
            StopReason(stop),
            verdict=verdict,
            system=next((m.content for m in messages if m.role == "system"), None),
        )
        where = {"file": path.stem, "episode": identity, "task_id": task_id}
        rules = self.rules or (UNDECLARED if known is None else known.rules)
        rules, named = declared or (rules, self._named(rules, name if known is None else known.name))
        unread = self.unread.total() > before
        return AuditedConversation(episode, rules, where, beside=True, named=named, unread=unread)

    def _tau1(self, row: Any, place: str, number: int) -> AuditedConversation:
        from muarl.types.episode import Episode, StopReason, Turn, Verdict
        from muarl_worlds.tau import tau1_benchmark as tau1
        from muarl_worlds.tau import tau1_trajectories

        found = tau1_trajectories.recorded(row, place)
        name = found.domain or self.domain
        if name is None:
            raise DataError(f"{place}: nothing tells its domain; name it with --domain")
        task: Task | None = None
        domain: Domain | None = None
        try:
            task = tau1.recorded_task(found, domain_name=name)
            domain = tau1.domain(name)
        except MuarlError:
            task = domain = None  # the data are not installed, or hold no such task
        stop = (
            StopReason.USER_STOP if isinstance(found.stop, str) and found.stop not in list(StopReason) else found.stop
        )
        verdict = None if found.reward is None else Verdict(found.reward, {"reward": found.reward})
        identity = f"{found.index}#{found.trial}"
        turns = [Turn(m) for m in found.messages]
        episode = Episode(identity, str(found.index), name, turns, StopReason(stop), verdict=verdict)
        where = {"file": Path(place.split(",")[0]).stem, "episode": identity, "task_id": str(found.index)}
        rules = self._rules(name, task, domain)
        return AuditedConversation(episode, rules, where, task, domain, named=self._named(rules, name))

    def _tau2(self, found: Any) -> Iterator[AuditedConversation]:
        from muarl.types.episode import Episode, StopReason, Turn, Verdict
        from muarl_worlds.tau import tau2_benchmark as tau2

        domain: Domain | None = None
        try:
            domain = tau2.domain(found.domain)
        except MuarlError:
            pass  # its data are not installed: what tools showed is known
        for simulation in found.simulations:
            task_id, reward = simulation.task_id, simulation.reward
            try:
                task = found.task(task_id) if domain is not None else None
            except DataError:
                task = None
            identity = str(simulation.row.get("id", task_id))
            stop = StopReason(stop_of(simulation.termination_reason))
            verdict = None if reward is None else Verdict(reward, {"reward": reward})
            turns = [Turn(m) for m in simulation.messages]
            episode = Episode(identity, task_id, found.domain, turns, stop, verdict=verdict)
            where = {"file": found.path.stem, "episode": identity, "task_id": task_id}
            own = domain if task is not None else None
            rules = self._rules(found.domain, task, own)
            yield AuditedConversation(episode, rules, where, task, own, named=self._named(rules, found.domain))

    # By which rules.

    def _rules(self, name: str, task: Task | None = None, domain: Domain | None = None) -> AuditRules:
        """The rules of a benchmark's domain."""
        from muarl.domains.auditing import UNDECLARED
        from muarl.environments.registry import environment_of

        if self.rules is not None:
            return self.rules
        environment = environment_of(name, benchmark=True)
        return UNDECLARED if environment is None else environment.audit_rules(None if task is None else domain)

    def _known(self, name: str, place: str) -> NamedRules | None:
        from muarl.environments.audit_rules import known_names, rules_named

        found = rules_named(name)
        if found is None and self.rules is None:
            raise ConfigError(
                f"{place}: there are no rules for {name!r}; there are some for {', '.join(known_names())} (by a "
                "benchmark's policy, where there is one), and by the names of `muarl domains`. For a domain of your "
                "own, describe it in a file: --rules, or name its environment: --domain FILE.py:NAME"
            )
        return found

    def _guess(self, name: str | None, messages: tuple[Message, ...], tools: Any, place: str) -> NamedRules | None:
        """The rules of the domain that a conversation names, else of the one whose tools it has; None if that is no
        known one."""
        from muarl.environments.audit_rules import domain_with_tools, rules_named

        if name is not None:
            return self._known(name, place)
        used = {c.name for m in messages for c in m.tool_calls if m.role == "assistant"}
        if isinstance(tools, str):  # as rows of datasets have them
            try:
                tools = parse_json(tools)
            except ValueError as problem:
                raise DataError(f"{place}: tools is text, and no JSON: {problem}") from None
        for given in tools if isinstance(tools, list) else []:
            made = given.get("function", given) if isinstance(given, Mapping) else None
            if isinstance(made, Mapping) and isinstance(made.get("name"), str):
                used.add(made["name"])
        guessed = domain_with_tools(used)
        return None if guessed is None else rules_named(guessed)


def _tasks(path: Path) -> Iterator[Task]:
    """Tasks as far as a run's tasks.jsonl tells them; lines that are none are passed over."""
    from muarl.domains.base import Action, Task

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
