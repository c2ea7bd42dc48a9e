"""What ``muarl audit`` reads: runs, episodes, other trainers' and live agents' conversations. Errors name the place.

Files of lines are read line by line, so that their length does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.benchmarks.messages import items
from muarl.commands.audited_logs import message_of, stop_of
from muarl.errors import ConfigError, DataError, MuarlError
from muarl.untrusted import parse_json, read_lines, read_yaml

if TYPE_CHECKING:
    from muarl.audit.rules_file import RulesFile
    from muarl.audit.scene import Scene
    from muarl.chat import Message
    from muarl.domains.auditing import AuditRules
    from muarl.domains.base import Domain, Task
    from muarl.episode import Episode

OWN = "-generated"
"""What a domain's name ends in where muarl's own policy holds, and not TAU's."""

NONE = "none"
"""What is named where no rules were declared for a conversation."""


@dataclass(frozen=True)
class Heard:
    """A conversation to be audited. ``where``: what a finding's line says of it. ``beside``: see ``audit.Scene``.
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

    def scene(self) -> Scene:
        """The conversation as the audit reads it."""
        from muarl.audit import scene_of

        return scene_of(self.episode, self.task, domain=self.domain, rules=self.rules, beside=self.beside)


@dataclass
class Reader:
    """Reads conversations. ``domain``: where a conversation names none; ``rules``: in place of any domain's own, from
    the file of the name ``rules_name``.

    ConfigError for a domain that muarl does not know.
    """

    domain: str | None = None
    rules: AuditRules | None = None
    rules_name: str = ""
    kept: RulesFile | None = None
    """What the run's domain declares itself (``rules_file.FILE``)."""
    config: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """By id: the tasks as the run's tasks.jsonl has them, scenario and gold actions. A task made again that has another
    scenario is not that task."""

    def __post_init__(self) -> None:
        if self.domain is not None:
            self._known(self.domain, "--domain")

    def read(self, path: Path, only: tuple[str, ...] = ()) -> Iterator[Heard]:
        """The conversations of a run's folder, a folder or file of TAU2's, a file of TAU1's, or a file of lines.
        ``only``: of a run, the files with these names."""
        from muarl.benchmarks.tau2 import results

        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        if path.is_dir() and (path / "episodes").is_dir():
            yield from self._run(path, only)
        elif only:
            raise ConfigError(f"--episodes: {path} is no run with several files of episodes")
        elif (folder := results.folder_of(path)) is not None and (folder / "results.json").is_file():
            yield from self._tau2(results.read_folder(folder))
        elif path.is_dir():
            raise DataError(f"{path}: neither a run (episodes/) nor a run of TAU2 (results.json and simulations/)")
        elif _is_lines(path):
            yield from self._of_run(path)._lines(path)
        else:
            yield from self._whole(path)

    # The kinds of sources.

    def _run(self, path: Path, only: tuple[str, ...]) -> Iterator[Heard]:
        files = sorted((path / "episodes").glob("*.jsonl"))
        names = {f.stem for f in files}
        if missing := [n for n in only if n not in names]:
            raise ConfigError(f"--episodes: {path} has no {missing[0]!r}; it has {', '.join(sorted(names)) or 'none'}")
        if not files:
            raise DataError(f"{path / 'episodes'}: holds no episodes yet")
        for file in files:
            if not only or file.stem in only:
                yield from self._of_run(file)._lines(file)

    def _of_run(self, file: Path) -> Reader:
        """This reader with what the run that a file belongs to says of itself."""
        from muarl.audit.rules_file import FILE, read_rules

        folder = file.parent.parent
        config, declared = folder / "config.yaml", folder / FILE
        if file.parent.name != "episodes":
            return self
        given = read_yaml(config) if config.is_file() else {}
        told = {task.id: task for task in _tasks(folder / "tasks.jsonl")}
        kept = read_rules(declared, "") if declared.is_file() and self.rules is None else None
        return replace(self, config=given if isinstance(given, Mapping) else {}, tasks=told, kept=kept)

    def _lines(self, path: Path) -> Iterator[Heard]:
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                place = f"{path}, line {number}"
                try:
                    row = parse_json(line)
                except ValueError as problem:
                    if not line.endswith("\n") and path.parent.name == "episodes":
                        return  # a run that still writes, or was killed
                    raise DataError(f"{place}: not JSON: {problem}. Mend or remove that line.") from None
                if not isinstance(row, Mapping):
                    raise DataError(f"{place}: must be an object with messages (or turns, for an episode of muarl)")
                yield self._row(row, place, path, number)

    def _whole(self, path: Path) -> Iterator[Heard]:
        from muarl.benchmarks import tau1_trajectories
        from muarl.benchmarks.tau2 import results

        try:
            found = parse_json(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as problem:
            raise DataError(f"{path}: neither JSON lines nor one JSON value: {problem}") from None
        if results.is_results(found):
            yield from self._tau2(results.results(found, path))
        elif tau1_trajectories.is_historical(found):
            for i, row in enumerate(found):
                yield self._tau1(row, f"{path}, entry {i}", i)
        elif isinstance(found, list):
            for i, row in enumerate(found):
                if not isinstance(row, Mapping):
                    raise DataError(f"{path}, entry {i}: must be an object with messages")
                yield self._row(row, f"{path}, entry {i}", path, i)
        elif isinstance(found, Mapping):
            yield self._row(found, str(path), path, 1)
        else:
            raise DataError(f"{path}: must hold conversations: objects with messages, one a line")

    def _row(self, row: Mapping[str, Any], place: str, path: Path, number: int) -> Heard:
        if "traj" in row:
            return self._tau1(row, place, number)
        if "turns" in row and "messages" not in row:
            return self._episode(row, place, path)
        return self._messages(row, place, path, number)

    def _episode(self, row: Mapping[str, Any], place: str, path: Path) -> Heard:
        from muarl.audit.rules_file import FILE
        from muarl.episode import Episode
        from muarl.view.worlds import CannotReplay, world_of

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
        if self.rules is None and self.kept is not None and self.kept.domain in ("", episode.domain):
            name = f"{episode.domain} ({FILE})"
            return Heard(episode, self.kept.rules, where, told, named=name, in_code=self.kept.in_code)
        known = episode.domain if self._official(task) else episode.domain + OWN
        rules = self._rules(known, task, domain)
        named = self._named(rules, known, episode.domain)
        return Heard(episode, rules, where, told if task is None else task, domain, named=named)

    def _official(self, task: Task | None) -> bool:
        """Whether a benchmark's policy held, rather than muarl's own."""
        if task is not None:
            return task.benchmark
        domain = self.config.get("domain")
        return not str(domain.get("name", OWN) if isinstance(domain, Mapping) else OWN).endswith(OWN)

    def _named(self, rules: AuditRules, name: str | None, domain: str = "") -> str:
        """The rules that are used, for people; of a domain that has none, whose they would be."""
        if self.rules is not None:
            return self.rules_name
        if name is not None and rules.declared:
            return name
        return f"{NONE} for {domain or name}" if domain or name else NONE

    def _messages(self, row: Mapping[str, Any], place: str, path: Path, number: int) -> Heard:
        from muarl.episode import Episode, StopReason, Turn, Verdict

        messages = tuple(message_of(m, p) for m, p in items(row, "messages", place))
        name = row.get("domain", self.domain)
        if name is not None and not isinstance(name, str):
            raise DataError(f"{place}: domain must be a string, not {type(name).__name__}")
        known = name if self.rules is not None else self._guess(name, messages, row.get("tools"), place)
        identity = str(row.get("id", row.get("task_id", f"{path.stem}:{number}")))
        task_id = str(row.get("task_id", identity))
        reward = row.get("reward")
        scored = isinstance(reward, (int, float)) and not isinstance(reward, bool)
        stop = stop_of(row.get("termination_reason", row.get("stop")))
        episode = Episode(
            identity,
            task_id,
            (known or "").removesuffix(OWN),
            [Turn(m) for m in messages],
            StopReason(stop),
            verdict=Verdict(float(reward), {"reward": float(reward)}) if scored else None,  # type: ignore[arg-type]
            system=next((m.content for m in messages if m.role == "system"), None),
        )
        where = {"file": path.stem, "episode": identity, "task_id": task_id}
        rules = self._rules(known)
        return Heard(episode, rules, where, beside=True, named=self._named(rules, known))

    def _tau1(self, row: Any, place: str, number: int) -> Heard:
        from muarl.benchmarks import tau1, tau1_trajectories
        from muarl.episode import Episode, StopReason, Turn, Verdict

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
        return Heard(episode, rules, where, task, domain, named=self._named(rules, name))

    def _tau2(self, found: Any) -> Iterator[Heard]:
        from muarl.benchmarks import tau2
        from muarl.episode import Episode, StopReason, Turn, Verdict

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
            yield Heard(episode, rules, where, task, own, named=self._named(rules, found.domain))

    # By which rules.

    def _rules(self, name: str | None, task: Task | None = None, domain: Domain | None = None) -> AuditRules:
        from muarl.audit.rules import rules_for, rules_of
        from muarl.domains.auditing import UNDECLARED

        if self.rules is not None:
            return self.rules
        if task is not None and domain is not None:
            return rules_of(task, domain)
        if name is None:
            return UNDECLARED
        return rules_for(name.removesuffix(OWN), benchmark=not name.endswith(OWN))

    def _known(self, name: str, place: str) -> str:
        from muarl.audit.rules import RULES

        if name.removesuffix(OWN) not in RULES and self.rules is None:
            raise ConfigError(
                f"{place}: there are no rules for {name!r}; there are some for {', '.join(RULES)} (by TAU's policies) "
                f"and the same with {OWN} (by muarl's own). For a domain of your own, describe it in a file: --rules"
            )
        return name

    def _guess(self, name: str | None, messages: tuple[Message, ...], tools: Any, place: str) -> str | None:
        """The domain that a conversation names, else the one whose tools it has; None if that is no known one."""
        if name is not None:
            return self._known(name, place)
        names = {c.name for m in messages for c in m.tool_calls if m.role == "assistant"}
        for given in tools if isinstance(tools, list) else []:
            made = given.get("function", given) if isinstance(given, Mapping) else None
            if isinstance(made, Mapping) and isinstance(made.get("name"), str):
                names.add(made["name"])
        return _domain_of(frozenset(names))


TELLING = 3
"""Tools that must have a known domain's names for a conversation to be taken for that domain's."""


@cache
def _domain_of(names: frozenset[str]) -> str | None:
    from muarl.audit.rules import RULES

    own = {n: names & (r.kinds.keys() - r.transfer_tools) for n, r in RULES.items()}
    best = max(own, key=lambda n: len(own[n]))
    rest = len(names - own[best] - RULES[best].transfer_tools)
    return best if len(own[best]) >= TELLING and rest <= len(own[best]) / 4 else None


def _is_lines(path: Path) -> bool:
    """Whether a file has a JSON object on its first line, and is not one JSON value of several lines."""
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        first = next((line for line in lines if line.strip()), "")
        rest = next((line for line in lines if line.strip()), "")
    if not first:
        raise DataError(f"{path}: is empty")
    try:
        found = parse_json(first)
    except ValueError:
        return first.strip() not in ("{", "[") and not first.lstrip().startswith("[")
    return isinstance(found, Mapping) and not ({"simulations", "tasks"} <= set(found) and not rest)


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
