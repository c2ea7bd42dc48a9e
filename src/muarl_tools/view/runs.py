"""The runs that are looked at: each with its index, its figures and its small files."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from muarl.audit.episodes import audit_episode
from muarl.audit.findings import Finding
from muarl.audit.rules import RulesFile, kept_rules, read_rules
from muarl.basics.errors import MuarlError
from muarl.basics.untrusted import parse_json, parse_yaml
from muarl.domains.auditing import AuditRules, Resource
from muarl.observe.rundir import RunDirectory
from muarl.observe.status import RUNNING, state_of
from muarl.pages.shortening import NAME, cut, few_actions, is_long, shortened
from muarl.report.figures import Row, read_resumes
from muarl.rewards.state_changes import CannotReplay, ReplayOutcome, ReplayRecorded
from muarl.types.episode import Episode
from muarl_tools.view import audit_queries, queries, search
from muarl_tools.view.metrics import RunMetrics
from muarl_tools.view.queries import Filter, IndexedEpisode
from muarl_tools.view.rows import clean, finding_of
from muarl_tools.view.store import FINDINGS, Store

if TYPE_CHECKING:
    from tokenizers import Tokenizer


TOO_LONG = "It is too long for that here; muarl audit reads episodes of any length."
FINDINGS_SHOWN = 200
"""Findings on an episode's page, at most."""


class KnowsRules(Protocol):
    """Knows by which rules the episodes of a run with some configuration are audited."""

    def of_run(self, config: Mapping[str, Any]) -> Sequence[AuditRules]:
        """The rules of the domains that the configuration names."""
        ...

    def of_episode(self, config: Mapping[str, Any], episode: Episode, replayed: ReplayOutcome | None) -> AuditRules:
        """The rules for an episode, which may have been run again."""
        ...


@dataclass(frozen=True)
class EpisodeDetails:
    """One episode with all that is known of it. ``scenario``, ``gold``: of its task, None where they are not on record.
    ``replay``: what it did to its database, or why that cannot be said. ``findings``: what the run's findings.jsonl
    says of it (``recorded``), else what the audit's rules find in it (muarl.audit); None where it cannot be audited.
    ``long``: it is too long to be shown, run again or audited unasked; ``part``: ``episode`` is its beginning."""

    at: IndexedEpisode
    episode: Episode
    scenario: str | None
    gold: Sequence[Mapping[str, Any]] | None
    replay: ReplayOutcome | CannotReplay
    findings: tuple[Finding, ...] | None = None
    recorded: bool = False
    long: bool = False
    part: bool = False


class Run:
    """One run's folder, only ever read. ``slug``: its name in addresses. ``replay``: runs its episodes again; None:
    nobody does. ``rules``: the audit rules of environments; None: nobody knows them. ``problem``: what holds up its
    index.

    MuarlError if there is no run.
    """

    def __init__(
        self,
        path: Path,
        slug: str,
        *,
        index: Path | None = None,
        replay: ReplayRecorded | None = None,
        rules: KnowsRules | None = None,
    ) -> None:
        self.folder = RunDirectory.at(path)
        self.slug = slug
        self.store = Store(self.folder.path, index)
        self.figures = RunMetrics(self.folder.metrics)
        self._kept: dict[object, tuple[int, Any]] = {}
        self._json: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}
        self._run_again = replay
        self._rules_of = rules
        self._replaying = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self.problem: str | None = None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    def json(self, name: str) -> dict[str, Any]:
        """status.json and the like; empty where it is missing or broken. Read again when it has changed."""
        try:
            status = (self.folder.path / f"{name}.json").stat()
        except OSError:
            return {}
        now = status.st_mtime_ns, status.st_size
        if name not in self._json or self._json[name][0] != now:
            try:
                self._json[name] = now, self.folder.read_json(name)
            except (MuarlError, OSError):
                self._json[name] = now, {}
        return self._json[name][1]

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The run's configuration; empty where it is missing or broken."""
        try:
            found = parse_yaml(self.folder.read_config())
        except (MuarlError, ValueError, OSError):
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def declared(self) -> tuple[RulesFile, ...]:
        """The audit rules that the run's own domains declared; none where there are none, or they cannot be read."""
        try:
            return tuple(map(read_rules, kept_rules(self.folder.path)))
        except (MuarlError, OSError):
            return ()

    @property
    def rules(self) -> list[AuditRules]:
        """The rules for the run's episodes: the declared ones, and those of the domains that its configuration has."""
        kept = [found.rules for found in self.declared]
        if kept and not isinstance(self.config.get("domain"), list):
            return kept[:1]
        return [*kept, *(() if self._rules_of is None else self._rules_of.of_run(self.config))]

    def _kept_rules(self, episode: Episode) -> AuditRules | None:
        """The declared rules, without the patterns, which a page that somebody waits for does not run: a stranger may
        have written them. None where the run declares none for the episode's domain."""
        found = next((one for one in self.declared if one.domain in ("", episode.domain)), None)
        if found is None:
            return None
        rules = found.rules
        plain = tuple(r for r in rules.resources if r.pattern == Resource.pattern)
        return replace(rules, obligations=(), told_person=None, resources=plain)

    @property
    def running(self) -> bool:
        """True while the run is running."""
        return self.state == RUNNING

    @property
    def state(self) -> str:
        """running, finished, interrupted, failed, or killed (its process is gone without a word)."""
        return state_of(self.json("status"))

    @property
    def resumes(self) -> list[Row]:
        """Each time that the run was resumed, and with what changes; none where the file cannot be read."""
        return read_resumes(self.folder.path)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the run's model, None if it is not at hand (a young run may have no checkpoint yet)."""
        if self._tokenizer is None:
            from muarl_tools.view.tokens import tokenizer_of

            self._tokenizer = tokenizer_of(self.folder.path, self.config)
        return self._tokenizer

    def ask(self, question: Any, *arguments: Any) -> Any:
        """The answer of a function of queries.py; kept for as long as the index stays the same."""
        key, version = (question.__name__, *arguments), self.store.version
        known = self._kept.get(key)
        if known is not None and known[0] == version:
            return known[1]
        with self.store.reading() as db:
            found = question(db, *arguments)
        if len(self._kept) > 200:
            self._kept.clear()
        self._kept[key] = version, found
        return found

    def text(self, at: IndexedEpisode) -> dict[str, Any] | None:
        """An episode's row as its file has it; None if the file no longer has it."""
        with self.store.reading() as db:
            name = db.execute("SELECT name FROM files WHERE id = ?", (at.file,)).fetchone()
        line = None if name is None else self.store.line(name[0], at.start, at.length)
        try:
            row = None if line is None else parse_json(line)
        except ValueError:
            return None
        return row if isinstance(row, dict) and clean(row.get("id")) == at.name else None

    def told(self, key: int, *, whole: bool = False) -> EpisodeDetails | None:
        """An episode by its key; None if there is none, or its row cannot be read. ``whole``: also where it is long."""
        at = self.ask(queries.episode, key)
        row = None if at is None else self.text(at)
        if row is None:
            return None
        try:
            episode = Episode.from_json(row)
            long = is_long(episode)
            shown = shortened(episode) if long and not whole else episode
        except (ValueError, TypeError, AttributeError, KeyError):
            return None
        task = self.task(episode.task_id)
        replay = self._replay(episode, at, task) if not long else CannotReplay(TOO_LONG)
        scenario = None if task is None else task.get("scenario")
        gold = None if task is None else task.get("actions")
        if isinstance(replay, ReplayOutcome):
            scenario = scenario or replay.task.scenario
            if gold is None and replay.task.actions is not None:
                gold = [{"name": a.name, "arguments": dict(a.arguments)} for a in replay.task.actions]
        scenario = scenario or episode.tags.get("user_scenario")
        recorded = self.recorded(at)
        return EpisodeDetails(
            at,
            shown,
            None if scenario is None else cut(str(scenario)),
            few_actions([a for a in gold if isinstance(a, dict)]) if isinstance(gold, list) else None,
            replay,
            recorded or (None if long else self._audited(episode, replay)),
            bool(recorded),
            long,
            shown is not episode,
        )

    def recorded(self, at: IndexedEpisode) -> tuple[Finding, ...]:
        """What findings.jsonl says of an episode: a judge's findings and sprung traps are there alone."""
        with self.store.reading() as db:
            places = audit_queries.places(db, at.mark)
        out = []
        for start, length in places[:FINDINGS_SHOWN]:
            try:
                mark, finding = finding_of(self.store.line(FINDINGS, start, length) or b"")
            except ValueError:  # the file was replaced, and will be read again
                continue
            if mark.mark == at.mark:
                out.append(replace(finding, text=cut(finding.text), rule=cut(finding.rule, NAME)))
        return tuple(sorted(out, key=lambda f: f.message))

    def searched(self, wanted: Filter, skip: int) -> search.SearchPage:
        """A page of a search; kept as ``ask`` keeps answers."""

        def searched(db: Any, wanted: Filter, skip: int) -> search.SearchPage:
            return search.search(db, self.folder.path, wanted, skip)

        found: search.SearchPage = self.ask(searched, wanted, skip)
        return found

    def neighbours(self, wanted: Filter, at: IndexedEpisode) -> tuple[int | None, int | None]:
        """Keys of the episodes before and after one in a filter's list or search."""
        with self.store.reading() as db:
            if wanted.text:
                return search.next_hits(db, self.folder.path, wanted, at)
            return queries.neighbours(db, wanted, at)

    def _audited(self, episode: Episode, replay: ReplayOutcome | CannotReplay) -> tuple[Finding, ...] | None:
        """With the episode's own world where it can be had again, else by what its tools answered."""
        with self._replaying:
            try:
                again = replay if isinstance(replay, ReplayOutcome) and not replay.differing else None
                rules = self._kept_rules(episode) if again is None else None
                if rules is None and self._rules_of is not None:
                    rules = self._rules_of.of_episode(self.config, episode, again)
                if again is None:
                    return audit_episode(episode, rules=rules)
                return audit_episode(episode, again.task, domain=again.domain, rules=rules)
            except Exception:  # a hostile or foreign episode; it can be read all the same
                return None

    def _replay(
        self, episode: Episode, at: IndexedEpisode, task: Mapping[str, Any] | None
    ) -> ReplayOutcome | CannotReplay:
        if self._run_again is None:
            return CannotReplay("This viewer runs no calls again.")
        with self._replaying:  # domains keep what they made, and were not written for several threads
            try:
                return self._run_again(episode, self.config, measured=at.stage == "evaluation", known=task)
            except CannotReplay as reason:
                return reason

    def task(self, name: str) -> dict[str, Any] | None:
        """A task as the run's tasks.jsonl has it."""
        with self.store.reading() as db:
            row = db.execute("SELECT start, length FROM tasks WHERE name = ?", (name,)).fetchone()
        line = None if row is None else self.store.line("tasks.jsonl", *row)
        try:
            found = None if line is None else parse_json(line)
        except ValueError:
            return None
        return found if isinstance(found, dict) and clean(found.get("id")) == name else None

    def advantage(self, told: EpisodeDetails) -> tuple[float | None, bool]:
        """An episode's advantage and whether it is the trainer's own figure. Else it is worked out from the rewards of
        its group on file, by the run's rule; None where there is no group."""
        if told.at.advantage is not None:
            return told.at.advantage, True
        if told.at.stage != "training" or told.at.group is None or told.at.reward is None:
            return None, False
        rewards = self.ask(queries.group_rewards, told.at.group, told.at.stage)
        if len(rewards) < 2:
            return None, False
        section = self.config.get("rl")
        rule = str(section.get("advantage") or "") if isinstance(section, Mapping) else ""
        mean = sum(rewards) / len(rewards)
        if rule == "leave_one_out":
            return told.at.reward - (sum(rewards) - told.at.reward) / (len(rewards) - 1), False
        if rule == "group_mean":
            return told.at.reward - mean, False
        spread = (sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1)) ** 0.5
        return (told.at.reward - mean) / (spread + 1e-6), False


class Library:
    """All runs of a viewer, and the thread that keeps their indexes up to date. ``index``: the folder of the indexes;
    None: the cache folder. ``replay``, ``rules``: see ``Run``."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        index: Path | None = None,
        replay: ReplayRecorded | None = None,
        rules: KnowsRules | None = None,
    ) -> None:
        self.runs: list[Run] = []
        for path in paths:
            slug = base = _slug(path.resolve().name)
            number = 2
            while slug in {run.slug for run in self.runs}:
                slug, number = f"{base}-{number}", number + 1
            own = None if index is None else index / f"{slug}.sqlite"
            self.runs.append(Run(path, slug, index=own, replay=replay, rules=rules))
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, slug: str) -> Run | None:
        """A run by its name in addresses."""
        return next((run for run in self.runs if run.slug == slug), None)

    def watch(self, every: float = 2.0) -> None:
        """Read what is new, again and again, in a thread of its own."""

        def work() -> None:
            while not self._stop.is_set():
                for run in self.runs:
                    try:
                        for _ in run.store.steps():
                            if self._stop.is_set():
                                return
                        run.problem = None
                    except Exception as problem:  # the pages say how far the index is; the next round tries again
                        run.problem = f"{type(problem).__name__}: {problem}"
                self._stop.wait(every)

        self._thread = threading.Thread(target=work, name="muarl view index", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=30)


def _slug(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip(".-")
    return kept[:80] or "run"
