"""``muarl coldstart``: seeds become tasks, tasks become conversations, filters keep the good ones, a dataset is left.

Follow ``gather`` from top to bottom. Every conversation is on disk as soon as it is finished, so that a run that was
killed goes on without paying twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.expert import ExpertAgent
from muarl.coldstart import dataset
from muarl.coldstart.dataset import SCENARIO, Dataset, Dropped
from muarl.coldstart.duplicates import Seen
from muarl.coldstart.filters import Bounds, Candidate, reason
from muarl.config import RunConfig
from muarl.conversation import Limits
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.domains.generated import generated
from muarl.endpoints import Endpoint
from muarl.episode import Episode, Usage
from muarl.errors import ConfigError, InfrastructureError, MuarlError
from muarl.files import append_line, read_lines
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import judge_endpoint, make_endpoint, make_users, open_run, play_requests
from muarl.recipes.ledger import Ledger
from muarl.recipes.preflight import ask_endpoints
from muarl.recipes.setting import Setting, make_setting
from muarl.rewards.judge import Judge, make_judge
from muarl.rollout import Budget, Rollout, RolloutEnd, RolloutRequest
from muarl.seeds import derive_seed
from muarl.users.base import UserFactory

PATIENCE = 20
"""Conversations in a row, at least, that may fail before a run is given up."""

DRAWN = "drawn"
"""The tag that says which task an episode is of, so that it can be made again."""

EXPECTED = "The agent followed the policy that it was given, and everything it told the user is borne out by its tools."


def run(config: RunConfig) -> Path:
    """Make the dataset. Returns the run's folder, with ``dataset/`` in it."""
    scenes = [scene_of(name, config) for name in config.coldstart.scenarios]
    others = _Others.of(config)
    ask_endpoints(_endpoints(config))
    with open_run(config) as run, Progress() as progress:
        wanted = _shares(config.coldstart.count, scenes)
        found = _Found()
        for scene in scenes:
            gather(config, scene, wanted[scene.name], run, progress, found, others)
        facts = {
            "teacher": "scripted experts" if config.coldstart.teacher == "expert" else scenes[0].agent.name,
            "users": scenes[0].users.name,
            "tools": config.coldstart.tools,
            "seed": config.coldstart.seed,
        }
        made = Dataset(found.kept, found.dropped, wanted, facts)
        card = dataset.write(run.path / "dataset", made, spent=found.spent + others.used, seconds=run.seconds)
        run.write_summary(card)
        progress.say(f"{card['kept']} conversations kept, {card['dropped']} dropped: {run.path / 'dataset'}")
        for name, part in card["scenarios"].items():
            if part["kept"] < part["wanted"]:
                progress.say(f"{name}: only {part['kept']} of {part['wanted']} were kept; dropped: {part['dropped']}")
        if found.end is not RolloutEnd.COMPLETE:
            progress.say(
                f"The {found.end.value.replace('_', ' ')} is spent. "
                f"`muarl coldstart --resume {run.path}` with a larger one goes on."
            )
    return run.path


@dataclass(frozen=True)
class Scene:
    """One scenario of a run: where its conversations take place, and who takes part."""

    name: str
    setting: Setting
    agent: Agent
    users: UserFactory
    size: str


@dataclass
class _Found:
    """What the run has come to so far."""

    kept: list[Episode] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    spent: Usage = Usage()
    end: RolloutEnd = RolloutEnd.COMPLETE


@dataclass(frozen=True)
class _Others:
    """The models that take part in no conversation's account: those that play tools, and the judge."""

    judge: Judge | None
    endpoints: tuple[Endpoint, ...]

    @classmethod
    def of(cls, config: RunConfig) -> _Others:
        spec = config.coldstart.judge
        asked = [] if spec is None else [judge_endpoint(spec)]
        if config.coldstart.tools == "imagined":
            asked.append(tools_endpoint(config))
        return cls(None if spec is None else make_judge(spec), tuple(e for e in asked if e is not None))

    @property
    def used(self) -> Usage:
        """What they have used in this process."""
        return sum((e.usage for e in self.endpoints), Usage())


_TOOLS: dict[int, Endpoint] = {}


def tools_endpoint(config: RunConfig) -> Endpoint:
    """The client of the model that plays tools, one for all scenarios of a configuration."""
    section = config.coldstart.tools_endpoint
    if section is None:
        raise ConfigError("coldstart.tools_endpoint: name the model that plays the tools")
    if id(section) not in _TOOLS:
        _TOOLS[id(section)] = make_endpoint(section)
    return _TOOLS[id(section)]


def scene_of(name: str, config: RunConfig) -> Scene:
    """A scenario by its domain's name. ConfigError if it is none, or needs something that is not installed."""
    wanted = config.coldstart
    made = generated(name)
    size = wanted.size if wanted.size in made.sizes else made.sizes[-1]
    domain = config.domain.model_copy(update={"name": name, "size": size, "intents": (), "policy": None})
    setting = make_setting(config.model_copy(update={"domain": domain}))
    limits = Limits(turns=wanted.max_turns, tool_errors=max(config.rl.max_tool_errors, wanted.max_tool_errors + 1))
    setting = replace(setting, limits=limits)
    if wanted.tools == "imagined" and made.imagined is not None:
        setting = replace(setting, domain=made.imagined(size, tools_endpoint(config)), scored=False)
    agent: Agent
    if wanted.teacher == "endpoint" and wanted.endpoint is not None:
        agent = EndpointAgent(make_endpoint(wanted.endpoint))
    else:
        agent = ExpertAgent(Habits(**wanted.habits.model_dump()), made.expert)
    return Scene(name, setting, agent, make_users(config.user, setting), size)


def gather(
    config: RunConfig,
    scene: Scene,
    wanted: int,
    run: RunDirectory,
    progress: Progress,
    found: _Found,
    others: _Others,
) -> None:
    """Play a scenario's tasks until enough conversations are kept, every task has been tried, or a budget is spent."""
    ledger = Ledger(run, scene.name, context=True, phase=f"coldstart {scene.name}")
    judged = _Judged(run.episodes / f"{scene.name}.judged.jsonl")
    seen = Seen(config.coldstart.near_duplicate)
    tried, kept, before = 0, 0, ledger.spent
    budget = Budget(
        config.coldstart.max_cost,
        config.coldstart.max_tokens,
        lambda: found.spent + before + others.used,
    )
    with progress.phase(scene.name, wanted, "conversations") as phase:
        while kept < wanted and tried < wanted * config.coldstart.attempts:
            count = min(wanted - kept, wanted * config.coldstart.attempts - tried)
            requests = _requests(config, scene, tried, count)
            tried += count
            played = _play(config, scene, ledger.open(requests), budget, ledger, others, phase.advance)
            if played is not None and played.end is not RolloutEnd.COMPLETE:
                found.end = played.end
            episodes = [(r.task, ledger.kept[r.episode_id]) for r in requests if r.episode_id in ledger.kept]
            for task, episode in episodes:
                dropped = _objection(config, scene, task, episode, seen)
                if dropped is None and not asyncio.run(judged.ask(others.judge, episode)):
                    dropped = Dropped(episode, "judge", "not in keeping with the policy")
                if dropped is None:
                    seen.keep(episode)
                    found.kept.append(episode)
                    kept += 1
                else:
                    found.dropped.append(dropped)
            phase.advance(0, kept=kept, tried=tried)
            if found.end is not RolloutEnd.COMPLETE:
                break
    found.spent += ledger.spent_by_episodes


def _requests(config: RunConfig, scene: Scene, start: int, count: int) -> list[RolloutRequest]:
    seed = config.coldstart.seed
    tasks = scene.setting.draw("train", count, seed, start)
    requests = []
    for number, task in enumerate(tasks, start):
        drawn = {"domain": scene.name, "size": scene.size, "split": "train", "seed": seed, "index": number}
        more = {SCENARIO: scene.name, DRAWN: drawn, "user_scenario": task.scenario}
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
    others: _Others,
    advance: Callable[[int], None],
) -> Rollout | None:
    """Play what the ledger lacks; each finished conversation goes there at once."""
    if not requests:
        return None

    def finished(episode: Episode, done: int, total: int) -> None:
        ledger.keep(episode, others.used)
        advance(1)

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


def _objection(config: RunConfig, scene: Scene, task: Task, episode: Episode, seen: Seen) -> Dropped | None:
    """What a filter has against a conversation, None if nothing."""
    wanted = config.coldstart
    bounds = Bounds(wanted.min_turns, wanted.max_turns, wanted.max_words, wanted.max_tool_errors)
    checkable = scene.setting.scored and (task.actions is not None or bool(task.env_assertions))
    offered = episode.tools if episode.tools is not None else scene.setting.tools(task)
    later = scene.setting.domain.tool_specs()
    candidate = Candidate(episode, task, (*later, *offered), scene.setting.user_tools(task), checkable)
    objection = reason(candidate, bounds)
    if objection is not None:
        return Dropped(episode, *objection)
    twin = seen.twin(episode)
    return None if twin is None else Dropped(episode, "near_duplicate", f"of {twin}")


class _Judged:
    """The judge's answers, kept in a file so that none is paid for twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {row["id"]: bool(row["ok"]) for row in read_lines(path)}

    async def ask(self, judge: Judge | None, episode: Episode) -> bool:
        if judge is None:
            return True
        if episode.id not in self._known:
            told = f"The policy:\n{episode.system}\n\n{EXPECTED}"
            try:
                answer = await judge(episode.messages, [told])
            except InfrastructureError as failure:
                raise MuarlError(f"coldstart.judge: {failure}") from None
            append_line(self._path, {"id": episode.id, "ok": answer})
            self._known[episode.id] = answer
        return self._known[episode.id]


def _shares(count: int, scenes: Sequence[Scene]) -> dict[str, int]:
    """Equal shares of the whole; what is left over goes to the first ones."""
    each, left = divmod(count, len(scenes))
    return {scene.name: each + (n < left) for n, scene in enumerate(scenes)}


def _endpoints(config: RunConfig) -> list[tuple[str, str, Endpoint]]:
    """(section, boundary, endpoint) of every model that the run will ask."""
    wanted = config.coldstart
    found = []
    if wanted.teacher == "endpoint" and wanted.endpoint is not None:
        found.append(("coldstart.endpoint", "agent", make_endpoint(wanted.endpoint)))
    if config.user.kind == "llm" and config.user.endpoint is not None:
        found.append(("user.endpoint", "user", make_endpoint(config.user.endpoint)))
    if wanted.tools == "imagined" and wanted.tools_endpoint is not None:
        found.append(("coldstart.tools_endpoint", "world", make_endpoint(wanted.tools_endpoint)))
    judge = None if wanted.judge is None else judge_endpoint(wanted.judge)
    if judge is not None:
        found.append(("coldstart.judge", "judge", judge))
    return found
