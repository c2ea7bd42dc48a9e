"""``muarl coldstart``: seeds become tasks, tasks become conversations, filters keep the good ones, a dataset is left.

Follow ``gather`` from top to bottom. Every conversation is on disk as soon as it is finished, so that a run that was
killed goes on without paying twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from muarl.budgets import Reserve
from muarl.coldstart import dataset
from muarl.coldstart.dataset import SCENARIO, Dataset, Dropped
from muarl.coldstart.duplicates import Seen
from muarl.coldstart.filters import Bounds, Candidate, reason
from muarl.coldstart.judging import Judged
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.endpoints import Endpoint
from muarl.episode import Episode, Usage
from muarl.errors import ConfigError
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import judge_endpoint, open_run, play_requests
from muarl.recipes.ledger import Ledger
from muarl.recipes.preflight import ask_endpoints, check_server
from muarl.recipes.scenes import Scene, check_bound, endpoints, scene_of, tools_endpoint
from muarl.recipes.setting import Draw
from muarl.rewards.judge import Judge, make_judge
from muarl.rollout import Budget, Rollout, RolloutEnd, RolloutRequest
from muarl.seeds import derive_seed

PATIENCE = 20
"""Conversations in a row, at least, that may fail before a run is given up."""

DRAWN = "drawn"
"""The tag that says which task an episode is of, so that it can be made again."""


def run(config: RunConfig) -> Path:
    """Make the dataset. Returns the run's folder, with ``dataset/`` in it."""
    tools = tools_endpoint(config)
    scenes = [scene_of(name, config, tools) for name in config.coldstart.scenarios]
    others = _Others.of(config.coldstart.judge, tools, *(scene.writer for scene in scenes))
    asked = endpoints(config)
    check_bound(config, asked)
    for scene in scenes:
        check_server(scene.setting.domain)
    ask_endpoints(asked)
    with open_run(config, "coldstart") as run, Progress() as progress:
        run.takes_place_in(", ".join(scene.name for scene in scenes), configured=True)
        wanted = _shares(config.coldstart.count, scenes)
        found = _Found()
        ledgers = {s.name: Ledger(run, s.name, context=True, phase=f"coldstart {s.name}") for s in scenes}
        for scene in scenes:
            _check_own(config, scene, ledgers[scene.name])
        for scene in scenes:
            gather(config, scene, wanted[scene.name], run, ledgers[scene.name], progress, found, others)
        for ledger in ledgers.values():
            ledger.close(sorted(ledger.kept.values(), key=lambda e: int(e.tags[DRAWN]["index"])))
        facts = {
            "teacher": "scripted experts" if config.coldstart.teacher == "expert" else scenes[0].agent.name,
            "users": scenes[0].users.name,
            "tools": config.coldstart.tools,
            "seed": config.coldstart.seed,
        }
        made = Dataset(found.kept, found.dropped, wanted, facts)
        card = dataset.write(run.path / "dataset", made, spent=found.spent, seconds=run.seconds)
        run.write_summary(card)
        progress.say(f"{card['kept']} conversations kept, {card['dropped']} dropped: {run.path / 'dataset'}")
        for name, part in card["scenarios"].items():
            if part["kept"] < part["wanted"]:
                progress.say(f"{name}: only {part['kept']} of {part['wanted']} were kept; dropped: {part['dropped']}")
        if found.end is not RolloutEnd.COMPLETE:
            progress.say(
                f"The {found.end.value.replace('_', ' ')} is spent. "
                f"`muarl coldstart --resume {run.path}` with a larger one to resume."
            )
    return run.path


@dataclass
class _Found:
    """What the run has come to so far. ``spent``: for the scenarios that are done, by all who take part.
    ``reserve``: knows what conversations cost."""

    kept: list[Episode] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    spent: Usage = Usage()
    end: RolloutEnd = RolloutEnd.COMPLETE
    reserve: Reserve = field(default_factory=Reserve)


@dataclass(frozen=True)
class _Others:
    """The models that take part in no conversation's account: those that play tools or write tasks, and the judge."""

    judge: Judge | None
    endpoints: tuple[Endpoint, ...]

    @classmethod
    def of(cls, judge: str | None, *others: Endpoint | None) -> _Others:
        """``judge``: as the configuration names it; ``others``: whoever else there is."""
        asked = (None if judge is None else judge_endpoint(judge), *others)
        return cls(None if judge is None else make_judge(judge), tuple(e for e in asked if e is not None))

    @property
    def used(self) -> Usage:
        """What they have used in this process."""
        return sum((e.usage for e in self.endpoints), Usage())

    def used_since(self, before: Usage) -> Usage:
        """What they have used since ``used`` was ``before``."""
        earlier = before.to_json()
        return Usage(**{name: value - earlier[name] for name, value in self.used.to_json().items()})


def gather(
    config: RunConfig,
    scene: Scene,
    wanted: int,
    run: RunDirectory,
    ledger: Ledger,
    progress: Progress,
    found: _Found,
    others: _Others,
) -> None:
    """Play a scenario's tasks until enough conversations are kept, every task has been tried, or a budget is spent."""
    draw = scene.draw(run)
    judged = Judged(run.episodes / f"{scene.name}.judged.jsonl")
    seen = Seen(config.coldstart.near_duplicate)
    tried, kept, before = 0, 0, Usage()
    used = partial(others.used_since, others.used)
    bounds = config.coldstart.max_cost, config.coldstart.max_tokens
    budget = Budget(*bounds, lambda: found.spent + before + used(), reserve=found.reserve)
    ledger.teach(budget)
    if ledger.kept:
        progress.say(f"{scene.name}: {len(ledger.kept)} conversations were finished before.")
    with progress.phase(scene.name, wanted, "conversations") as phase:
        while kept < wanted and tried < wanted * config.coldstart.attempts:
            count = min(wanted - kept, wanted * config.coldstart.attempts - tried)
            requests = _requests(config, scene, draw, tried, count)
            tasks = {r.episode_id: r.task for r in requests}
            objections: dict[str, Dropped | None] = {}

            def look(episode: Episode, tasks: Mapping[str, Task] = tasks, objections: Any = objections) -> None:
                objections[episode.id] = _objection(config, scene, tasks[episode.id], episode)
                # Judge and near-duplicates are asked later, so this may be taken back.
                phase.advance(objections[episode.id] is None)

            if not requests:  # a teacher that has nothing more to write
                break
            tried += len(requests)
            before = ledger.spent
            played = _play(config, scene, ledger.open(requests), budget, ledger, used, look)
            if played is not None and played.end is not RolloutEnd.COMPLETE:
                found.end = played.end
            episodes = [(r.task, ledger.kept[r.episode_id]) for r in requests if r.episode_id in ledger.kept]
            for _, episode in episodes:
                if episode.id not in objections:
                    look(episode)
            passed = judged.ask(others.judge, [e for _, e in episodes if objections[e.id] is None])
            for _, episode in episodes:
                dropped = objections[episode.id] or _later_objection(episode, passed, seen)
                if dropped is None:
                    seen.keep(episode)
                    found.kept.append(episode)
                    kept += 1
                else:
                    found.dropped.append(dropped)
            ledger.log(used())
            phase.advance(kept - phase.done, tried=tried)
            if found.end is not RolloutEnd.COMPLETE:
                break
    found.spent += ledger.spent + used()


def _check_own(config: RunConfig, scene: Scene, ledger: Ledger) -> None:
    """ConfigError if the run holds a conversation that would not be played so now."""
    for episode in ledger.kept.values():
        drawn = episode.tags.get(DRAWN)
        index = drawn.get("index") if isinstance(drawn, dict) else None
        if (drawn, episode.agent, episode.user) != (_drawn(config, scene, index), scene.agent.name, scene.users.name):
            raise ConfigError(
                f"the run holds the conversation {episode.id}, which would now have another task, teacher or user: "
                "it can only be resumed with its own seed, size, teacher and users"
            )


def _drawn(config: RunConfig, scene: Scene, index: int | None) -> dict[str, object]:
    """Where a task comes from."""
    return {"domain": scene.name, "size": scene.size, "split": "train", "seed": config.coldstart.seed, "index": index}


def _requests(config: RunConfig, scene: Scene, draw: Draw, start: int, count: int) -> list[RolloutRequest]:
    seed = config.coldstart.seed
    tasks = draw("train", count, seed, start)
    requests = []
    for number, task in enumerate(tasks, start):
        more = {SCENARIO: scene.name, DRAWN: _drawn(config, scene, number), "user_scenario": task.scenario}
        tagged = replace(task, tags={**task.tags, **more})
        made = derive_seed(seed, f"coldstart {scene.name} {number}")
        requests.append(RolloutRequest(tagged, made, f"coldstart/{scene.name}/{number}", 0))
    return requests


def _play(
    config: RunConfig,
    scene: Scene,
    requests: Sequence[RolloutRequest],
    budget: Budget,
    ledger: Ledger,
    used: Callable[[], Usage],
    look: Callable[[Episode], None],
) -> Rollout | None:
    """Play what the ledger lacks; each finished conversation goes there at once, and then to ``look``."""
    if not requests:
        return None

    def finished(episode: Episode, done: int, total: int) -> None:
        ledger.keep(episode, used())
        look(episode)

    playing = play_requests(
        scene.setting,
        scene.agent,
        scene.users,
        requests,
        concurrency=config.coldstart.concurrency,
        budget=budget,
        give_up=max(PATIENCE, 2 * config.coldstart.concurrency),
        progress=finished,
    )
    return asyncio.run(playing)


def _objection(config: RunConfig, scene: Scene, task: Task, episode: Episode) -> Dropped | None:
    """What a filter has against a conversation by itself, None if nothing."""
    wanted = config.coldstart
    bounds = Bounds(wanted.min_turns, wanted.max_turns, wanted.max_words, wanted.max_tool_errors)
    known = task.actions is not None or bool(task.env_assertions)
    checkable = known and (scene.setting.scored or scene.setting.goal is not None)
    offered = episode.tools if episode.tools is not None else scene.setting.tools(task)
    later = scene.setting.domain.tool_specs()
    candidate = Candidate(episode, task, (*later, *offered), scene.setting.user_tools(task), checkable)
    objection = reason(candidate, bounds)
    return None if objection is None else Dropped(episode, *objection)


def _later_objection(episode: Episode, passed: Mapping[str, bool], seen: Seen) -> Dropped | None:
    """What the judge has against it, or that a kept one is all but the same."""
    if not passed[episode.id]:
        return Dropped(episode, "judge", "not in keeping with the policy")
    twin = seen.twin(episode)
    return None if twin is None else Dropped(episode, "near_duplicate", f"of {twin}")


def _shares(count: int, scenes: Sequence[Scene]) -> dict[str, int]:
    """Equal shares of the whole; what is left over goes to the first ones."""
    each, left = divmod(count, len(scenes))
    return {scene.name: each + (n < left) for n, scene in enumerate(scenes)}
