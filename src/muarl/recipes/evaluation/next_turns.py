"""Calls right turn by turn: what an agent does next in a conversation that the scripted expert has led so far.

This is teacher forcing, the measure by which fine-tuned callers of functions are often published. It says less than
success: nobody answers the agent, a right turn may differ from the expert's, and errors do not add up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from muarl.accounts.budgets import Budget, count, metered
from muarl.agents.base import Agent, AgentTurn
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.basics.event_loop import event_loop
from muarl.basics.seeds import derive_seed
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, EvalConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.places import ByPlace, Places
from muarl.environments.registry import find
from muarl.observe.progress import Progress
from muarl.recipes.evaluation.measuring import PATIENCE
from muarl.rollouts.conversation import agent_view
from muarl.runs.roles import Cast
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, Usage


@dataclass(frozen=True, slots=True)
class NextTurn:
    """One turn of the expert, and whether the agent's is like it. Of a turn in words ``tools`` and ``whole`` are as
    ``kind``: sentences are not compared."""

    call: bool
    """The expert calls tools; else it speaks."""
    kind: bool
    """The agent does the same of the two."""
    tools: bool
    """It calls the same tools, in their order."""
    whole: bool
    """It calls them with the same arguments."""


def compared(expert: Message, agent: Message) -> NextTurn:
    """The agent's turn beside the expert's. A call that cannot be read is none."""
    expected, made = _named(expert.tool_calls), _named(c for c in agent.tool_calls if c.invalid is None)
    if not expected:
        spoken = bool(agent.content) and not agent.tool_calls
        return NextTurn(False, spoken, spoken, spoken)
    same = [name for name, _ in expected] == [name for name, _ in made]
    return NextTurn(True, bool(made), same, expected == made)


def _named(calls: Iterable[ToolCall]) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in calls]


def figures(turns: Sequence[NextTurn], excluded: int = 0) -> dict[str, float]:
    """Shares of the expert's turns: ``call_right`` (tools and arguments), ``call_tools_right``, ``call_made`` of those
    with calls, ``words_kept`` of the others (the agent speaks, too), and how many there were of each. ``excluded``: how
    many the agent did not answer, which count in none; a figure where there are any."""
    calls, words = [t for t in turns if t.call], [t for t in turns if not t.call]
    shares = {"calls": float(len(calls)), "words": float(len(words))}
    if calls:
        shares["call_right"] = sum(t.whole for t in calls) / len(calls)
        shares["call_tools_right"] = sum(t.tools for t in calls) / len(calls)
        shares["call_made"] = sum(t.kind for t in calls) / len(calls)
    if words:
        shares["words_kept"] = sum(t.kind for t in words) / len(words)
    return shares | ({"excluded": float(excluded)} if excluded else {})


def text(shares: Mapping[str, float]) -> str:
    """The figures in words."""
    parts = []
    if shares["calls"]:
        parts.append(
            f"{shares['call_right']:.1%} of {shares['calls']:.0f} calls as the expert's, "
            f"{shares['call_tools_right']:.1%} the same tools"
        )
    if shares["words"]:
        parts.append(f"{shares['words_kept']:.1%} of {shares['words']:.0f} turns in words in words, too")
    if shares.get("excluded"):
        parts.append(
            f"{shares['excluded']:.0f} of the expert's turns left out: the agent did not answer, or was not asked"
        )
    return "; ".join(parts)


@dataclass(slots=True)
class Requests:
    """What the agent is asked for, in all environments together: within the evaluation's bounds, and no longer once so
    many requests in a row have failed that whatever they need is gone."""

    budget: Budget
    """Its ``besides`` includes ``usage``."""
    patience: int = PATIENCE
    usage: Usage = Usage()
    """What they took."""
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    unasked: int = 0
    """How many were not made any more."""
    gone: bool = False
    """Whether there is no use in asking again."""
    _in_a_row: int = 0

    @classmethod
    def of(cls, ev: EvalConfig, concurrency: int, spent: Usage = Usage()) -> Requests:
        """Those of an evaluation that has ``spent`` so much."""
        made = cls(Budget(), max(PATIENCE, 2 * concurrency))
        made.budget = Budget(ev.max_cost, ev.max_tokens, lambda: spent + made.usage)
        return made

    async def answer(self, ask: Callable[[], Awaitable[AgentTurn]]) -> AgentTurn | None:
        """What the agent does; None where the request fails or is not made."""
        async with self.budget.turn() as affordable:
            if not affordable or self.gone:
                self.unasked += 1
                return None
            try:
                with metered() as meter:
                    turn = await ask()
            except InfrastructureError as failure:
                self.usage += failure.usage or Usage()
                self.failures.append(str(failure))
                self._in_a_row += 1
                self.gone = self.gone or not failure.retryable or self._in_a_row >= self.patience
                return None
            count(turn.usage - meter.usage, "agent")  # endpoints count for themselves, models of this machine do not
            self.usage += turn.usage
            self.answered += 1
            self._in_a_row = 0
            return turn

    def tell(self, say: Callable[[str], None]) -> None:
        """Say how many turns were left out, and why. MuarlError if no request was answered, and some have failed."""
        first = f"The first failure: {self.failures[0]}" if self.failures else ""
        if self.failures and not self.answered:
            raise MuarlError(f"eval.next_turns: the agent answered in none of the expert's turns. {first}")
        if self.failures:
            say(f"eval.next_turns: in {len(self.failures)} of the expert's turns the agent did not answer. {first}")
        if self.unasked:
            end = self.budget.gone(Usage())
            why = "too many requests had failed" if end is None else f"{end.why} (eval.max_cost, eval.max_tokens)"
            say(f"eval.next_turns: in {self.unasked} of the expert's turns the agent was not asked: {why}.")


def next_turns(
    cast: Cast,
    concurrency: int,
    places: Places,
    agent: ByPlace[Agent],
    tasks: Sequence[Task],
    progress: Progress,
    requests: Requests | None = None,
) -> dict[str, dict[str, float]]:
    """The figures of an agent by environment, in conversations of a faultless expert with rule-based users on the first
    ``eval.next_turns`` tasks of each. A sampled agent is greedy. ``requests``: counts what they take, and says within
    which bounds; None for a new account.

    Turns whose request fails are left out, and counted. MuarlError if all failed."""
    # Here, as both need what an evaluation without a model does without.
    from muarl.agents.sampled import SampledAgent
    from muarl.recipes.demonstrations import demonstrate

    users = make_users(UserConfig(seed=cast.eval_user.seed), places)
    requests = requests or Requests.of(cast.eval, concurrency)
    by_place, seed = {}, cast.eval.seed
    for place in places:
        own = [task for task in tasks if places.of(task) is place][: cast.eval.next_turns]
        episodes = demonstrate(places, users, own, ErrorProfile(), seed=seed)
        answering = agent.at(place)
        if isinstance(answering, SampledAgent):
            greedy = replace(answering.sampling, temperature=0.0)
            answering = SampledAgent(answering.sampler, answering.chat, greedy, name=answering.name)
        label = f"the expert's turns in {place.name}, of {agent.name}"
        with event_loop() as loop, progress.phase(label, len(episodes), "conversations") as phase:
            turns = loop.run(_all(answering, places, episodes, concurrency, seed, requests, phase.advance))
        answered = [turn for turn in turns if turn is not None]
        by_place[place.name] = figures(answered, len(turns) - len(answered))
    requests.tell(progress.say)
    return by_place


def check_experts(ev: EvalConfig, domains: Sequence[DomainConfig]) -> None:
    """ConfigError if ``eval.next_turns`` is asked for where nobody can be compared with an expert, or nobody talks to
    it."""
    if not ev.next_turns:
        return
    if ev.agent not in ("sampled", "endpoint"):
        raise ConfigError(
            f"eval.next_turns compares a model with the expert, and eval.agent is {ev.agent}: leave one out"
        )
    for domain in domains:
        environment = find(domain.name)
        try:
            environment.needed_expert()
        except ConfigError as problem:
            raise ConfigError(f"eval.next_turns: {problem}") from None
        if environment.rule_based_user is None:
            raise ConfigError(
                f"eval.next_turns: {domain.name} has no rule-based user, and the expert's conversations are with one: "
                "leave eval.next_turns out, or give the environment a rule_based_user (docs/users.md)"
            )


async def _all(
    agent: Agent,
    places: Places,
    episodes: Sequence[Episode],
    concurrency: int,
    seed: int,
    requests: Requests,
    advance: Callable[[], None],
) -> list[NextTurn | None]:
    room = asyncio.Semaphore(concurrency)

    async def one(episode: Episode) -> list[NextTurn | None]:
        async with room:
            turns = await _turns(agent, places, episode, derive_seed(seed, episode.id), requests)
        advance()
        return turns

    return [turn for own in await asyncio.gather(*map(one, episodes)) for turn in own]


async def _turns(
    agent: Agent, places: Places, episode: Episode, seed: int, requests: Requests
) -> list[NextTurn | None]:
    """The expert's turns in an episode; None where the agent did not answer."""
    place = places.of(episode)
    text = episode.system if episode.system is not None else place.system or place.domain.policy_text
    tools = place.domain.tool_specs() if episode.tools is None else episode.tools
    messages = agent_view(episode.messages, place.rules)
    turns: list[NextTurn | None] = []
    for at, message in enumerate(messages):
        if message.role != "assistant" or at == 0:  # a greeting answers nothing
            continue
        session = agent.open(text, tools, seed=seed, session=f"{episode.id} turn {at}")
        try:
            turn = await requests.answer(partial(session.act, messages[:at]))
        finally:
            session.close()
        turns.append(None if turn is None else compared(message, turn.message))
    return turns
