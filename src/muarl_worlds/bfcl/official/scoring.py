"""Scores of played episodes: the official verdict, the strict one, and what BFCL's tables show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, is_stop
from muarl.types.episode import Episode, StopReason, Verdict
from muarl_worlds.bfcl.calls import call_text
from muarl_worlds.bfcl.domain import Bfcl
from muarl_worlds.bfcl.official.checker import CheckResult, Steps, judge
from muarl_worlds.bfcl.official.strict import strict
from muarl_worlds.bfcl.official.tasks import CATEGORIES

_PLAYED = (StopReason.USER_STOP, StopReason.AGENT_STOP, StopReason.MAX_TURNS)


def call_string(call: ToolCall) -> str:
    """The call string of a tool call: as the model wrote it, or as BFCL makes it of a native call."""
    return call.raw if call.raw is not None else call_text(call.name, call.arguments)


def turn_calls(messages: Sequence[Message]) -> list[list[list[str]]]:
    """The call strings of a conversation by turn and message. What the agent said before the user's first words does
    not count. Of a message with a call that could not be read, those calls count that were answered, if any."""
    turns: list[list[list[str]]] = []
    for place, message in enumerate(messages):
        if message.role == "user" and not is_stop(message):
            turns.append([])
        elif message.role == "assistant" and turns and message.tool_calls:
            calls = tuple(call for call in message.tool_calls if call.invalid is None)
            if len(calls) < len(message.tool_calls):
                calls = calls[: _results(messages, place + 1)]
            if calls:
                turns[-1].append([call_string(call) for call in calls])
    return turns


def _results(messages: Sequence[Message], start: int) -> int:
    """How many messages from there on are tools' results."""
    return sum(1 for _ in takewhile(lambda message: message.role == "tool", islice(messages, start, None)))


def score(task: Task, world: World, episode: Episode) -> Verdict:
    """The verdict on an episode.

    In official semantics the reward is BFCL's verdict, on the calls run again in fresh objects; in those of training it
    is the strict one, the calls run again as the episode ran them. ``audit`` has both ("official", "strict"), and in
    "turns" the share of the turns that were right before the first wrong one.
    """
    domain = world.domain
    assert isinstance(domain, Bfcl)
    calls = turn_calls(episode.messages) if episode.stop in _PLAYED else None
    official = judge(domain, task, calls)
    cut = episode.stop not in (StopReason.USER_STOP, StopReason.AGENT_STOP)
    if domain.semantics == "official":
        return _verdict(task, official, official, cut, rewarded="official")
    return _verdict(task, official, judge(domain, task, calls, checked=True), cut, rewarded="strict")


def _verdict(task: Task, official: CheckResult, own: CheckResult, cut: bool, *, rewarded: str) -> Verdict:
    firm = strict(own, cut=cut)
    found = {"official": float(official.valid), "strict": float(firm.valid)}
    turns = len((task.agenda or {}).get("ground_truth", ()))
    return Verdict(
        found[rewarded],
        {rewarded: found[rewarded]},
        audit={**found, "turns": own.passed / turns if turns else 0.0},
        note=official.error_type if rewarded == "official" else firm.error_type,
    )


def do_nothing(domain: Bfcl, task: Task) -> CheckResult:
    """BFCL's verdict on an agent that never calls anything."""
    nothing: list[Steps] = [[] for _ in (task.agenda or {}).get("turns", ())]
    return judge(domain, task, nothing)


def summary(episodes: Iterable[Episode]) -> dict[str, float]:
    """BFCL's figures: the share of valid episodes in each category, and over all the plain mean of the four.

    The mean is there only where all four categories are. The strict score has the same figures, by "strict_NAME".
    Episodes without a verdict are left out, as are those that something outside the agent ended.
    """
    shares: dict[str, dict[str, list[float]]] = {"": defaultdict(list), "strict_": defaultdict(list)}
    for episode in episodes:
        if episode.verdict is None or episode.stop is StopReason.INFRASTRUCTURE:
            continue
        category = str(episode.tags.get("category", ""))
        audit: Any = episode.verdict.audit
        shares[""][category].append(audit.get("official", episode.verdict.reward))
        shares["strict_"][category].append(audit.get("strict", episode.verdict.reward))
    found: dict[str, float] = {}
    for prefix, kinds in shares.items():
        means = {name: _mean(kinds[name]) for name in CATEGORIES if kinds[name]}
        found |= {prefix + name: mean for name, mean in means.items()}
        if len(means) == len(CATEGORIES):
            found[f"{prefix}overall"] = _mean(list(means.values()))
    return found


def _mean(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
