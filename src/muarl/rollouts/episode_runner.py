"""How one episode is played: in a fresh world, tried again where something outside the policy failed, and scored.

Something outside the policy that fails (an endpoint, a sampler) never counts as the policy's failure. What a limit cut
is the policy's own doing: reward 0, and it stays.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muarl.accounts.budgets import add_besides, metered
from muarl.agents.base import Agent
from muarl.basics.errors import InfrastructureError
from muarl.basics.seeds import derive_seed
from muarl.domains.base import World
from muarl.domains.faults.rates import FaultRates
from muarl.domains.tasks import Task
from muarl.rollouts.conversation import Conversation, run_episode
from muarl.rollouts.rules import Limits, Rules
from muarl.types.chat import ToolSpec
from muarl.types.episode import BRANCH, Episode, StopReason, Usage, Verdict
from muarl.users.base import UserFactory

if TYPE_CHECKING:  # needs muarl[train], and whoever has a beginning has that
    from muarl.rollouts.beginnings import Beginning

MakeWorld = Callable[[Task], World]
Score = Callable[[Task, World, Episode], Verdict | Awaitable[Verdict]]
Audit = Callable[[Task, World, Episode], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One episode to play."""

    task: Task
    seed: int
    """The agent's randomness follows from it."""
    group: str
    """Names the rollouts that are compared with each other."""
    number: int = 0
    """Counts them."""
    user_seed: int | None = None
    """The user's randomness follows from it, or from ``seed`` where it is None."""
    one_seed: bool = False
    """The user is given that seed itself, as TAU2 gives both sides the same one."""
    beginning: Beginning | None = None
    """What is replayed from another episode's record before anything is sampled; the user's seed must be that
    episode's."""

    @property
    def episode_id(self) -> str:
        """Unique among the requests of a rollout."""
        return f"{self.group}#{self.number}"


def requests_for(
    tasks: Iterable[Task], rollouts: int, *, seed: int, label: str = "", same_user: bool = False
) -> list[RolloutRequest]:
    """``rollouts`` requests a task, tasks in order. ``label`` (such as the training step) enters group names and seeds.

    ``same_user``: all rollouts of a task meet a user of the same seed, so that they differ only by what the agent does.
    """
    out = []
    for task in tasks:
        group = f"{label}/{task.id}" if label else task.id
        user = derive_seed(seed, group, "user") if same_user else None
        out += [RolloutRequest(task, derive_seed(seed, group, n), group, n, user) for n in range(rollouts)]
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRunner:
    """Who and what plays a rollout's episodes, on whatever machine.

    An episode that ends with ``infrastructure`` is played again, up to ``retries`` times, after a random wait below
    ``backoff`` * 2**attempt seconds.
    """

    make_world: MakeWorld
    agent: Agent
    make_user: UserFactory
    score: Score
    """(it may be a coroutine) gets the world as the episode left it; it is not asked about episodes that a limit cut,
    unless ``score_cut``: they get reward 0 with the part "finished": 0.0."""
    audit: Audit | None = None
    """Adds figures to every verdict."""
    limits: Limits | None = None
    rules: Rules | None = None
    system: Callable[[Task], str | None] | str | None = None
    """What the agent is told, None for the domain's policy."""
    tools: Callable[[Task], Sequence[ToolSpec] | None] | Sequence[ToolSpec] | None = None
    """What the agent is told of, None for the domain's tools for the task."""
    retries: int = 2
    score_cut: bool = False
    backoff: float = 1.0
    before_agent: Callable[[Conversation], None] | None = None
    """See ``run_episode``."""
    faults: FaultRates | None = None
    """How often tools fail; an episode's faults follow from the seed that its user's follows from."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries must not be negative, not {self.retries}")

    async def play(self, request: RolloutRequest) -> Episode:
        """One scored episode, or the last one that infrastructure ended; ``tags["attempts"]`` counts from the second
        try on. Usage is that of all tries; what judges and models of tools used is in the tags (``besides_of``). Every
        world is closed once its episode is scored.

        MuarlErrors other than InfrastructureError pass through, and so does cancellation.
        """
        wait = random.Random(request.seed)
        lost = Usage(), Usage()
        besides = Usage()
        for attempt in range(self.retries + 1):
            with metered() as meter:
                episode = await self._attempt(request, attempt)
            besides += meter.besides
            episode.agent_usage, episode.user_usage = episode.agent_usage + lost[0], episode.user_usage + lost[1]
            if attempt:
                episode.tags["attempts"] = attempt + 1
            if (
                episode.stop is not StopReason.INFRASTRUCTURE
                or not episode.tags["retryable"]
                or attempt == self.retries
            ):
                break
            lost = episode.agent_usage, episode.user_usage
            await asyncio.sleep(wait.uniform(0, self.backoff * 2**attempt))
        add_besides(episode, besides)
        return episode

    async def play_on(self, conversation: Conversation) -> Episode:
        """A copy of a conversation (``Conversation.fork``) played on to its end, and scored; once. Its world is closed
        then."""
        return await self._scored(conversation.task, conversation.world, conversation.play(self.before_agent))

    async def _attempt(self, request: RolloutRequest, attempt: int) -> Episode:
        task, name, begun = request.task, request.episode_id, request.beginning
        world = self.make_world(task)

        async def played() -> Episode:
            user_seed = request.seed if request.user_seed is None else request.user_seed
            faults = None
            if self.faults:
                from muarl.domains.faults.layer import FaultLayer  # most worlds never fail

                handing_over = (self.rules or Rules()).transfer_tool(world.domain.tool_names())
                spared = () if handing_over is None else (handing_over,)
                faults = FaultLayer(self.faults, derive_seed(user_seed, "faults"), spared=spared)
            user = self.make_user(task, seed=user_seed if request.one_seed else derive_seed(user_seed, "user"))
            episode = await run_episode(
                task,
                world,
                self.agent if begun is None else begun.agent(self.agent),
                user if begun is None else begun.user(user),
                self.limits,
                seed=request.seed,
                episode_id=f"{name}+{attempt}" if attempt else name,
                group=request.group,
                rules=self.rules,
                user_name=self.make_user.name,
                system=self.system(task) if callable(self.system) else self.system,
                tools=self.tools(task) if callable(self.tools) else self.tools,
                before_agent=self.before_agent,
                faults=faults,
            )
            episode.id = name
            if begun is not None:
                episode.tags[BRANCH] = begun.tag
            return episode

        return await self._scored(task, world, played())

    async def _scored(self, task: Task, world: World, playing: Awaitable[Episode]) -> Episode:
        """The episode with its verdict; the world is closed, whatever happens."""
        try:
            episode = await playing
            if episode.stop is not StopReason.INFRASTRUCTURE:
                try:
                    episode.verdict = await self._verdict(task, world, episode)
                except InfrastructureError as failure:
                    blame(episode, failure)
        except BaseException:
            await _close(world)
            raise
        unclosed = await _close(world)
        if unclosed is not None:
            episode.tags["unclosed"] = unclosed
        return episode

    async def _verdict(self, task: Task, world: World, episode: Episode) -> Verdict:
        if episode.stop.truncated and not self.score_cut:
            verdict = Verdict(0.0, {"finished": 0.0}, note=f"cut: {episode.stop.value}")
        else:
            outcome = self.score(task, world, episode)
            verdict = await outcome if inspect.isawaitable(outcome) else outcome
        if self.audit is None:
            return verdict
        return replace(verdict, audit={**verdict.audit, **self.audit(task, world, episode)})


def blame(episode: Episode, failure: InfrastructureError) -> None:
    """Note on a finished episode that it cannot count, and why; ``tags["stopped"]`` keeps how it had ended."""
    episode.error = f"{failure.boundary}: {failure}"
    episode.tags |= {
        "boundary": failure.boundary,
        "retryable": failure.retryable,
        "stopped": episode.stop.value,
    }
    episode.stop = StopReason.INFRASTRUCTURE


async def _close(world: World) -> str | None:
    """Close a world; what goes wrong then is told, since it must not cost the finished episode."""
    try:
        await world.aclose()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None
