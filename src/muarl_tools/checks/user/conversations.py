"""A simulated user's conversations with agents of several kinds, so that no agent shapes the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.accounts.budgets import Budget, RolloutEnd
from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.agents.probes import CLAIMS, STALLS, InquisitiveAgent, MistakenAgent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.basics.event_loop import event_loop
from muarl.config.parts import Compute
from muarl.config.sections import EvalConfig, RunConfig
from muarl.domains.scripted_expert import SLOPPY
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.configure import places_of
from muarl.environments.place import Place
from muarl.environments.places import ByPlace, Places
from muarl.environments.play import local_executor
from muarl.observe.progress import Progress
from muarl.recipes.evaluation.measuring import play_all
from muarl.rewards.judge import Completer
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import RolloutError
from muarl.types.episode import Episode, StopReason, Usage
from muarl.user_errors.conduct import find_all
from muarl.user_errors.errors import UserError
from muarl.user_errors.judge import UserJudge
from muarl.users.base import UserFactory

LABEL = "user check"
SLOPPY_EXPERT, EXPERT = "sloppy expert", "expert"

AGENTS: Mapping[str, str] = {
    EXPERT: "serves by the book (needs the environment's scripted expert)",
    SLOPPY_EXPERT: "the expert with an error profile: skips confirmations, forgets, hands over needlessly, guesses",
    "inquisitive": "asks three needless questions first, most of them without an answer in the scenario",
    "mistaken": "the expert, with one digit wrong in each proposal: the user has to say no",
    "refusing": "refuses everything",
    "stalling": "is still looking into it, for ever",
    "claiming": "says that all is done, and has done nothing",
    "transferring": "hands over at once",
}
"""The agents by name, and what each does."""


@dataclass(frozen=True)
class PlayedConversation:
    """A conversation, who played it, and what was found of its user. ``judged``: the judge's findings, None where it
    was not asked or did not answer."""

    domain: str
    agent: str
    task: Task
    episode: Episode
    found: tuple[UserError, ...]
    judged: tuple[UserError, ...] | None = None

    @property
    def said(self) -> list[str]:
        """What the user said, without its calls."""
        return [m.content or "" for m in self.own if not m.tool_calls]

    @property
    def own(self) -> list[Any]:
        """The user's messages, calls included."""
        return [m for m in self.episode.messages[len(self.task.history) :] if m.role == "user"]


@dataclass
class PlayedCheck:
    """All conversations of a check. ``user``: its name for reports. ``lost``: failures outside the user's words, such
    as an endpoint that did not answer, by their text. ``missing``: agents that an environment cannot host, and why.
    ``broken``: where and why it broke off, None if it did not."""

    user: str
    conversations: list[PlayedConversation] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    end: RolloutEnd = RolloutEnd.COMPLETE
    spent: Usage = Usage()
    unjudged: int = 0
    broken: str | None = None


def play_check(
    config: RunConfig, progress: Progress, *, agents: Sequence[str] = (), endpoints: Sequence[Endpoint] = ()
) -> PlayedCheck:
    """Play the section ``eval_user`` of a configuration on the tasks of its section ``eval``, in each of its domains,
    once a trial with every agent. ``agents``: names of ``AGENTS``, none for all; ``endpoints``: further agents.

    Each agent meets users of the same seeds. What a limit cut is looked at, too; failures of infrastructure are only
    counted. The places, users and tasks of all domains are made before the first is played. What has been played is
    kept where a later agent or domain breaks off (``PlayedCheck.broken``). ConfigError for an agent that there is not,
    or a split that a domain has not; DataError for data that are not installed; MuarlError if no conversation could be
    played.
    """
    if unknown := [name for name in agents if name not in AGENTS]:
        raise ConfigError(f"--agents: there is no agent {unknown[0]!r}; there are: {', '.join(AGENTS)}")
    with event_loop() as loop:
        loop.closes(*endpoints)
        places = places_of(config, measuring=True)
        loop.closes(places)
        users = make_users(config.eval_user, places, Compute.of(config))
        loop.closes(users)
        out = PlayedCheck(users.name)
        casts = [_cast(out, place, config.eval, agents, endpoints) for place in places]
        try:
            for cast in casts:
                _play_domain(out, cast, config, users, progress)
        except RolloutError as problem:
            if not out.conversations:
                raise
            out.broken = str(problem)
    if not out.conversations:
        first = out.lost[0] if out.lost else "no episode was played"
        raise MuarlError(f"not one conversation could be played. The first failure: {first}")
    return out


@dataclass(frozen=True)
class _DomainCast:
    """What is played in a domain, and who serves there."""

    place: Place
    agents: Mapping[str, Agent]
    tasks: Sequence[Task]


def _cast(
    out: PlayedCheck, place: Place, ev: EvalConfig, agents: Sequence[str], endpoints: Sequence[Endpoint]
) -> _DomainCast:
    """A domain's agents and tasks; notes in ``out`` who is missing. ConfigError for a split that it has not, DataError
    for a task whose gold actions fail."""
    offered, missing = agents_for(place)
    chosen = {key: agent for key, agent in offered.items() if key in agents or not agents}
    chosen |= {f"endpoint:{e.model}": place.endpoint_agent(e) for e in endpoints}
    out.missing |= {f"{key} in {place.name}": why for key, why in missing.items() if key in agents or not agents}
    tasks = place.eval_tasks(ev.split, ev.tasks, seed=ev.seed, ids=ev.task_ids)
    place.check(tasks)
    return _DomainCast(place, chosen, tasks)


def _play_domain(
    out: PlayedCheck, cast: _DomainCast, config: RunConfig, users: ByPlace[UserFactory], progress: Progress
) -> None:
    """Play a domain with each of its agents. RolloutError where it breaks off; ``out`` keeps what was played."""
    ev, place = config.eval, cast.place
    requests = requests_for(cast.tasks, ev.trials, seed=ev.seed, label=LABEL)
    for key, agent in cast.agents.items():
        before = out.spent
        budget = Budget(ev.max_cost, ev.max_tokens, lambda before=before: before)  # type: ignore[misc]
        executor = local_executor(Places([place]), agent, users, config.rollout.concurrency)
        where = f"{key} in {place.name}"
        try:
            episodes, end = play_all(executor, requests, progress, where, budget=budget)
        except RolloutError as problem:
            _keep(out, cast, key, problem.episodes)
            raise RolloutError(f"{where}: {problem}", problem.episodes) from problem
        _keep(out, cast, key, episodes)
        if end is not RolloutEnd.COMPLETE:
            out.end = end
            return


def _keep(out: PlayedCheck, cast: _DomainCast, agent: str, episodes: Sequence[Episode]) -> None:
    """Note conversations with what is wrong with their user."""
    known = {task.id: task for task in cast.tasks}
    for episode in episodes:
        out.spent += episode.agent_usage + episode.user_usage
        if episode.stop is StopReason.INFRASTRUCTURE:
            out.lost.append(episode.error or "unknown")
            continue
        task = known[episode.task_id]
        found = find_all(task, episode.messages, user_tools=cast.place.user_tools(task))
        out.conversations.append(PlayedConversation(cast.place.name, agent, task, episode, found))


def agents_for(place: Place) -> tuple[dict[str, Agent], dict[str, str]]:
    """The agents of ``AGENTS`` that a place can host, and why it cannot host the others. Without a scripted
    expert, the inquisitive agent refuses after its questions."""
    offered: dict[str, Agent] = {}
    missing: dict[str, str] = {}
    refusing = IdleAgent(name="refusing")
    expert: Agent | None = None
    try:
        expert = place.expert_agent()
        offered |= {EXPERT: expert, SLOPPY_EXPERT: place.expert_agent(SLOPPY)}
    except ConfigError as problem:
        missing = dict.fromkeys((EXPERT, SLOPPY_EXPERT, "mistaken"), str(problem))
    offered["inquisitive"] = InquisitiveAgent(expert or refusing)
    if expert is not None:
        offered["mistaken"] = MistakenAgent(expert)
    offered |= {
        "refusing": refusing,
        "stalling": IdleAgent(STALLS, name="stalling"),
        "claiming": IdleAgent(CLAIMS, name="claiming"),
    }
    if place.can_transfer:
        offered["transferring"] = TransferAgent(place.transfer_tools, name="transferring")
    else:
        missing["transferring"] = "it has no tool to transfer with"
    return offered, missing


async def judge_check(check: PlayedCheck, model: Completer, progress: Progress, *, concurrency: int = 16) -> None:
    """Ask a judge about every conversation as well. Those that it does not answer for are counted in ``unjudged``."""
    import asyncio

    judge, room = UserJudge(model), asyncio.Semaphore(concurrency)
    with progress.phase("judging the user", len(check.conversations), "conversations") as phase:

        async def look(place: int) -> None:
            one = check.conversations[place]
            async with room:
                try:
                    found = await judge(one.task, one.episode.messages)
                    check.conversations[place] = replace(one, judged=tuple(found))
                except InfrastructureError:
                    check.unjudged += 1
                finally:
                    phase.advance()

        await asyncio.gather(*(look(place) for place in range(len(check.conversations))))
