"""``muarl coldstart``: seeds become tasks, tasks become conversations, filters keep the good ones, a dataset is left.

Follow ``gather`` from top to bottom. Every conversation is on disk as soon as it is finished, so that a run that was
killed continues without paying twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from muarl.accounts.budgets import Budget, Reserve, RolloutEnd
from muarl.basics.errors import ConfigError
from muarl.basics.event_loop import event_loop
from muarl.basics.seeds import derive_seed
from muarl.coldstart import dataset
from muarl.coldstart.dataset import SCENARIO, Dataset, DroppedConversation
from muarl.coldstart.duplicates import NearDuplicates
from muarl.coldstart.filters import Candidate, FilterBounds, JudgedConversations, reason
from muarl.config.sections import RunConfig
from muarl.config.stages import ColdstartConfig
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.place import Draw
from muarl.environments.places import Places
from muarl.environments.play import local_executor
from muarl.recipes.coldstart_scenarios import (
    ColdStartSource,
    check_bound,
    check_may_learn,
    check_size,
    endpoints,
    source_of,
    tools_endpoint,
)
from muarl.rewards.judge import Judge, ModelJudge, open_judge_model
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import Rollout, rollout
from muarl.runs.context import RunContext, open_context
from muarl.runs.prices import Bounds
from muarl.runs.results_store import ResultsStore
from muarl.runs.roles import ask_endpoints, check_server
from muarl.types.episode import Episode, Usage

PATIENCE = 20
"""Conversations in a row, at least, that may fail before a run is given up."""

DRAWN = "drawn"
"""The tag that says which task an episode is of, so that it can be made again."""


def run(config: RunConfig) -> Path:
    """Make the dataset. Returns the run's folder, with ``dataset/`` in it."""
    check_size(config.coldstart)
    check_may_learn(config.coldstart, on_benchmark=config.train_on_benchmark)
    tools = tools_endpoint(config.coldstart)
    sources = [source_of(name, config, tools) for name in config.coldstart.scenarios]
    others = _Others.of(config.coldstart.judge, tools, *(source.writer for source in sources))
    asked = endpoints(config.coldstart, config.user)
    check_bound(config.coldstart, asked)
    bounds = Bounds.of(config)
    bounds.check("coldstart", asks=bool(asked))
    for source in sources:
        check_server(source.place.domain)
    ask_endpoints(asked, bounds.name("coldstart"))
    with open_context(config, "coldstart", logs=False) as context:
        run, progress, coldstart = context.folder, context.progress, config.coldstart
        context.loop.closes(others, *(part for s in sources for part in (s.place, s.agent, s.users)))
        run.takes_place_in(", ".join(source.name for source in sources), configured=True)
        shares = _shares(coldstart.count, sources)
        gathered = _Found()
        stores = {s.name: ResultsStore(run, s.name, context=True, phase=f"coldstart {s.name}") for s in sources}
        for note in (note for source in sources for note in source.place.validation_notes()):
            progress.say(note)
        for source in sources:
            _check_own(coldstart.seed, source, stores[source.name])
        for source in sources:
            gather(context, coldstart, source, shares[source.name], stores[source.name], gathered, others)
        for results in stores.values():
            results.close(sorted(results.kept.values(), key=lambda e: int(e.tags[DRAWN]["index"])))
        facts = {
            "teacher": "scripted experts" if coldstart.teacher == "expert" else sources[0].agent.name,
            "users": sources[0].users.name,
            "tools": coldstart.tools,
            "seed": coldstart.seed,
        }
        made = Dataset(gathered.kept, gathered.dropped, shares, facts)
        card = dataset.write(run.path / "dataset", made, spent=gathered.spent, seconds=run.seconds)
        run.write_summary(card)
        progress.say(f"{card['kept']} conversations kept, {card['dropped']} dropped: {run.path / 'dataset'}")
        for name, part in card["scenarios"].items():
            if part["kept"] < part["wanted"]:
                progress.say(f"{name}: only {part['kept']} of {part['wanted']} were kept; dropped: {part['dropped']}")
        if gathered.end is not RolloutEnd.COMPLETE:
            progress.say(
                f"Not complete: {gathered.end.why}. `muarl coldstart --resume {run.path}` {gathered.end.remedy} to "
                "resume."
            )
    return run.path


@dataclass
class _Found:
    """What the run has come to so far."""

    kept: list[Episode] = field(default_factory=list)
    dropped: list[DroppedConversation] = field(default_factory=list)
    spent: Usage = Usage()
    """What all who take part have spent, for the scenarios that are done."""
    end: RolloutEnd = RolloutEnd.COMPLETE
    reserve: Reserve = field(default_factory=Reserve)
    """Knows what conversations cost."""


@dataclass(frozen=True)
class _Others:
    """The models that take part in no conversation's account: those that play tools or write tasks, and the judge."""

    judge: Judge | None
    endpoints: tuple[Endpoint, ...]

    @classmethod
    def of(cls, judge: str | None, *others: Endpoint | None) -> _Others:
        """``judge``: as the configuration names it; ``others``: whoever else there is."""
        model = None if judge is None else open_judge_model(judge)
        asked = (None if model is None else model.endpoint, *others)
        return cls(None if model is None else ModelJudge(model), tuple(e for e in asked if e is not None))

    async def aclose(self) -> None:
        """Close their connections."""
        for endpoint in self.endpoints:
            await endpoint.aclose()

    @property
    def used(self) -> Usage:
        """What they have used in this process."""
        return sum((e.usage for e in self.endpoints), Usage())

    def used_since(self, before: Usage) -> Usage:
        """What they have used since ``used`` was ``before``."""
        return self.used - before


def gather(
    context: RunContext,
    coldstart: ColdstartConfig,
    source: ColdStartSource,
    count: int,
    results: ResultsStore,
    gathered: _Found,
    others: _Others,
) -> None:
    """Play a scenario's tasks until ``count`` conversations are kept, every task has been tried, or a budget is
    spent."""
    run, progress = context.folder, context.progress
    draw = source.draw(run)
    judged = JudgedConversations(run.episodes / f"{source.name}.judged.jsonl")
    seen = NearDuplicates(coldstart.near_duplicate)
    tried, kept_count, before = 0, 0, Usage()
    used = partial(others.used_since, others.used)
    bounds = coldstart.max_cost, coldstart.max_tokens
    budget = Budget(*bounds, lambda: gathered.spent + before + used(), reserve=gathered.reserve)
    results.teach(budget)
    if results.kept:
        progress.say(f"{source.name}: {len(results.kept)} conversations were finished before.")
    with progress.phase(source.name, count, "conversations") as phase:
        while kept_count < count and tried < count * coldstart.attempts:
            more = min(count - kept_count, count * coldstart.attempts - tried)
            requests = _requests(coldstart.seed, source, draw, tried, more)
            tasks = {r.episode_id: r.task for r in requests}
            objections: dict[str, DroppedConversation | None] = {}

            def look(episode: Episode, tasks: Mapping[str, Task] = tasks, objections: Any = objections) -> None:
                objections[episode.id] = _objection(coldstart, source, tasks[episode.id], episode)
                # Judge and near-duplicates are asked later, so this may be taken back.
                phase.advance(objections[episode.id] is None)

            if not requests:  # a teacher that has nothing more to write
                break
            tried += len(requests)
            before = results.spent
            played = _play(source, results.open(requests), budget, results, used, look, coldstart.concurrency)
            if played is not None and played.end is not RolloutEnd.COMPLETE:
                gathered.end = played.end
            episodes = [(r.task, results.kept[r.episode_id]) for r in requests if r.episode_id in results.kept]
            for _, episode in episodes:
                if episode.id not in objections:
                    look(episode)
            passed = judged.ask(others.judge, [e for _, e in episodes if objections[e.id] is None])
            for _, episode in episodes:
                dropped = objections[episode.id] or _later_objection(episode, passed, seen)
                if dropped is None:
                    seen.keep(episode)
                    gathered.kept.append(episode)
                    kept_count += 1
                else:
                    gathered.dropped.append(dropped)
            results.log(used())
            phase.advance(kept_count - phase.done, tried=tried)
            if gathered.end is not RolloutEnd.COMPLETE:
                break
    gathered.spent += results.spent + used()


def _check_own(seed: int, source: ColdStartSource, results: ResultsStore) -> None:
    """ConfigError if the run holds a conversation that would not be played so now."""
    for episode in results.kept.values():
        drawn = episode.tags.get(DRAWN)
        index = drawn.get("index") if isinstance(drawn, dict) else None
        if (drawn, episode.agent, episode.user) != (_drawn(seed, source, index), source.agent.name, source.users.name):
            raise ConfigError(
                f"the run holds the conversation {episode.id}, which would now have another task, teacher or user: "
                "it can only be resumed with its own seed, size, teacher and users"
            )


def _drawn(seed: int, source: ColdStartSource, index: int | None) -> dict[str, object]:
    """Where a task comes from."""
    return {"domain": source.name, "size": source.size, "split": "train", "seed": seed, "index": index}


def _requests(seed: int, source: ColdStartSource, draw: Draw, start: int, count: int) -> list[RolloutRequest]:
    tasks = draw("train", count, seed, start)
    requests = []
    for number, task in enumerate(tasks, start):
        more = {SCENARIO: source.name, DRAWN: _drawn(seed, source, number), "user_scenario": task.scenario}
        tagged = replace(task, tags={**task.tags, **more})
        made = derive_seed(seed, f"coldstart {source.name} {number}")
        requests.append(RolloutRequest(tagged, made, f"coldstart/{source.name}/{number}", 0))
    return requests


def _play(
    source: ColdStartSource,
    requests: Sequence[RolloutRequest],
    budget: Budget,
    results: ResultsStore,
    used: Callable[[], Usage],
    look: Callable[[Episode], None],
    concurrency: int,
) -> Rollout | None:
    """Play what the results store lacks; each finished conversation goes there at once, and then to ``look``."""
    if not requests:
        return None

    def finished(episode: Episode, done: int, total: int) -> None:
        results.keep(episode, used())
        look(episode)

    executor = local_executor(Places([source.place]), source.agent, source.users, concurrency)
    with event_loop() as loop:
        return loop.run(
            rollout(requests, executor, budget=budget, give_up=max(PATIENCE, 2 * concurrency), progress=finished)
        )


def _objection(
    coldstart: ColdstartConfig, source: ColdStartSource, task: Task, episode: Episode
) -> DroppedConversation | None:
    """What a filter has against a conversation by itself, None if nothing."""
    bounds = FilterBounds(coldstart.min_turns, coldstart.max_turns, coldstart.max_words, coldstart.max_tool_errors)
    has_goal = task.actions is not None or bool(task.env_assertions)
    checkable = has_goal and source.place.checkable
    offered = episode.tools if episode.tools is not None else source.place.tools(task)
    later = source.place.domain.tool_specs()
    candidate = Candidate(episode, task, (*later, *offered), source.place.user_tools(task), checkable)
    objection = reason(candidate, bounds)
    return None if objection is None else DroppedConversation(episode, *objection)


def _later_objection(episode: Episode, passed: Mapping[str, bool], seen: NearDuplicates) -> DroppedConversation | None:
    """What the judge has against it, or that a kept one is all but the same."""
    if not passed[episode.id]:
        return DroppedConversation(episode, "judge", "not in keeping with the policy")
    twin = seen.twin(episode)
    return None if twin is None else DroppedConversation(episode, "near_duplicate", f"of {twin}")


def _shares(count: int, sources: Sequence[ColdStartSource]) -> dict[str, int]:
    """Equal shares of the whole; what is left over goes to the first ones."""
    each, left = divmod(count, len(sources))
    return {source.name: each + (n < left) for n, source in enumerate(sources)}
