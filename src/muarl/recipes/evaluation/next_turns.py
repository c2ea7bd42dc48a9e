"""Calls right turn by turn: what an agent does next in a conversation that the scripted expert has led so far.

This is teacher forcing, the measure by which fine-tuned callers of functions are often published. It says less than
success: nobody answers the agent, a right turn may differ from the expert's, and errors do not add up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.agents.base import Agent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.basics.event_loop import event_loop
from muarl.basics.seeds import derive_seed
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, EvalConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.places import ByPlace, Places
from muarl.environments.registry import find
from muarl.observe.progress import Progress
from muarl.rollouts.conversation import agent_view
from muarl.runs.roles import Cast
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode


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


def figures(turns: Sequence[NextTurn]) -> dict[str, float]:
    """Shares of the expert's turns: ``call_right`` (tools and arguments), ``call_tools_right``, ``call_made`` of those
    with calls, ``words_kept`` of the others (the agent speaks, too), and how many there were of each."""
    calls, words = [t for t in turns if t.call], [t for t in turns if not t.call]
    shares = {"calls": float(len(calls)), "words": float(len(words))}
    if calls:
        shares["call_right"] = sum(t.whole for t in calls) / len(calls)
        shares["call_tools_right"] = sum(t.tools for t in calls) / len(calls)
        shares["call_made"] = sum(t.kind for t in calls) / len(calls)
    if words:
        shares["words_kept"] = sum(t.kind for t in words) / len(words)
    return shares


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
    return "; ".join(parts)


def next_turns(
    cast: Cast, concurrency: int, places: Places, agent: ByPlace[Agent], tasks: Sequence[Task], progress: Progress
) -> dict[str, dict[str, float]]:
    """The figures of an agent by environment, in conversations of a faultless expert with rule-based users on the first
    ``eval.next_turns`` tasks of each. A sampled agent is greedy."""
    # Here, as both need what an evaluation without a model does without.
    from muarl.agents.sampled import SampledAgent
    from muarl.recipes.demonstrations import demonstrate

    users = make_users(UserConfig(seed=cast.eval_user.seed), places)
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
            turns = _all(answering, places, episodes, concurrency, seed, phase.advance)
            by_place[place.name] = figures(loop.run(turns))
    return by_place


def check_experts(ev: EvalConfig, domains: Sequence[DomainConfig]) -> None:
    """ConfigError if ``eval.next_turns`` is asked for where nobody can be compared with an expert."""
    if not ev.next_turns:
        return
    if ev.agent not in ("sampled", "endpoint"):
        raise ConfigError(
            f"eval.next_turns compares a model with the expert, and eval.agent is {ev.agent}: leave one out"
        )
    try:
        for domain in domains:
            find(domain.name).needed_expert()
    except ConfigError as problem:
        raise ConfigError(f"eval.next_turns: {problem}") from None


async def _all(
    agent: Agent,
    places: Places,
    episodes: Sequence[Episode],
    concurrency: int,
    seed: int,
    advance: Callable[[], None],
) -> list[NextTurn]:
    room = asyncio.Semaphore(concurrency)

    async def one(episode: Episode) -> list[NextTurn]:
        async with room:
            turns = await _turns(agent, places, episode, derive_seed(seed, episode.id))
        advance()
        return turns

    return [turn for own in await asyncio.gather(*map(one, episodes)) for turn in own]


async def _turns(agent: Agent, places: Places, episode: Episode, seed: int) -> list[NextTurn]:
    place = places.of(episode)
    text = episode.system if episode.system is not None else place.system or place.domain.policy_text
    tools = place.domain.tool_specs() if episode.tools is None else episode.tools
    messages, turns = agent_view(episode.messages, place.rules), []
    for at, message in enumerate(messages):
        if message.role != "assistant" or at == 0:  # a greeting answers nothing
            continue
        session = agent.open(text, tools, seed=seed, session=f"{episode.id} turn {at}")
        try:
            turn = await session.act(messages[:at])
        finally:
            session.close()
        turns.append(compared(message, turn.message))
    return turns
