"""What a check of a simulated user comes to: rates with intervals, and a verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from muarl.accounts.intervals import Estimate, share_of, wilson
from muarl.accounts.metrics import is_success
from muarl.basics.errors import DataError
from muarl.language.profile import style
from muarl.records.reading import read
from muarl.types.chat import STOP_WORDS
from muarl.types.episode import Usage
from muarl.user_errors.conduct import RULES
from muarl_tools.checks.user.conversations import EXPERT, PlayedCheck, PlayedConversation

Turns = Callable[[PlayedConversation], set[int]]
"""The messages of a conversation in which something is found."""

STYLE = ("front_loads", "overtells", "repeats", "loops")
"""Rules about what makes a user unlike a person, or easier than one. All others spoil a conversation: they are
*grave*."""
GRAVE = tuple(rule for rule in RULES if rule not in STYLE and rule != "judge")

FIT, UNFIT = 0.05, 0.15
"""Shares of conversations with a grave fault: a user is fit whose 95% interval ends at or below the one, and unfit
whose interval begins above the other."""
STYLE_MOST = 0.25
"""The share of conversations with a fault of one style rule from whose being surely exceeded (the interval begins
above it) a user is fit with reservations at best."""
LOST_MOST = 0.05
"""The share of conversations lost to failures outside the user's words, above which a user is fit with reservations
at best."""

SOLVED_FIT, SOLVED_LEAST = 0.8, 0.5
"""Shares of its tasks that the expert, which makes no errors, solves with a user: with a fit one at least the first; a
user is unfit with whom it surely solves less than the second (the interval ends below it)."""


@dataclass(frozen=True, slots=True)
class FitnessVerdict:
    """``name``: "fit", "fit with reservations" or "unfit". ``reasons``: sentences, for all but a plain "fit"."""

    name: str
    reasons: tuple[str, ...] = ()


def said_by_people(logs: Sequence[Path]) -> list[list[str]]:
    """What the people of logs said, by conversation. DataError for files that hold fewer than two of those."""
    out: list[list[str]] = []
    for conversation in (one for path in logs for one in read(path)):
        said = []
        for message in conversation.messages:
            text = message.content or ""
            for word in STOP_WORDS:
                text = text.replace(word, "")
            if message.role == "user" and text.strip():
                said.append(text.strip())
        if said:
            out.append(said)
    if len(out) < 2:
        raise DataError(f"--logs: {', '.join(map(str, logs))}: fewer than two conversations in which a user says words")
    return out


def figures_of(check: PlayedCheck, judge: str | None = None) -> dict[str, Any]:
    """Plain JSON: ``verdict``; ``rules``, each with findings per 100 of the user's messages (95% interval, drawing
    whole conversations) and the share of conversations with any (drawing whole tasks); ``grave`` and ``any``, the same
    of all of them; ``by_agent``, ``by_domain``; ``style`` of its language; ``cost``; ``examples``;
    ``broke_off``, where and why not all was played, null if nothing broke off.

    ``judge``: who was asked besides; its findings stand under the rule "judge", and not in the verdict.
    """
    played = check.conversations
    verdict, solved = verdict_of(played, len(check.lost)), _solved(played)
    out = {
        "user": check.user,
        "verdict": {"name": verdict.name, "reasons": list(verdict.reasons)},
        "conversations": len(played),
        "tasks": len({(one.domain, one.task.id) for one in played}),
        "messages": sum(len(one.own) for one in played),
        "lost": {"conversations": len(check.lost), "first": check.lost[0] if check.lost else None},
        "ended": check.end.value,
        "broke_off": check.broken,
        "missing_agents": dict(check.missing),
        "grave": _rate(played, _turns(*GRAVE)),
        "any": _rate(played, _turns(*RULES)),
        "rules": {
            rule: {"about": about, "grave": rule in GRAVE, **_rate(played, _turns(rule))}
            for rule, about in RULES.items()
            if rule != "judge"
        },
        "by_agent": _by(played, "agent"),
        "by_domain": _by(played, "domain"),
        "solved_with_expert": None if solved is None else solved.to_json(),
        "style": style([one.said for one in played if one.said]),
        "cost": _cost(played),
        "examples": _examples(played),
    }
    if judge is not None:
        seen = [one for one in played if one.judged is not None]
        out["judge"] = {
            "model": judge,
            "unjudged": check.unjudged,
            **_rate(seen, lambda one: {e.turn for e in one.judged or ()}),
            "kinds": dict(Counter(e.detail.partition(":")[0] for one in seen for e in one.judged or ()).most_common()),
        }
    return out


def _turns(*rules: str) -> Turns:
    return lambda one: {e.turn for e in one.found if e.rule in rules}


def _rate(played: Sequence[PlayedConversation], turns: Turns) -> dict[str, Any]:
    """Findings, per 100 messages of the user, and the share of conversations with any."""
    flags = [[True] * len(found) + [False] * (len(one.own) - len(found)) for one in played for found in (turns(one),)]
    per = _wider(share_of(flags), sum(map(sum, flags)))
    return {
        "findings": sum(map(sum, flags)),
        "per_100": {"value": 100 * per.value, "interval": [100 * v for v in per.interval], "n": per.n},
        "conversations": spoiled(played, turns).to_json(),
    }


def spoiled(played: Sequence[PlayedConversation], turns: Turns) -> Estimate:
    """The share of conversations in which anything is found; those on one task resemble each other, so that whole tasks
    are drawn for its interval."""
    tasks: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for one in played:
        tasks[one.domain, one.task.id].append(bool(turns(one)))
    return _wider(share_of(tasks.values()), sum(map(sum, tasks.values())))


def _wider(found: Estimate, hits: int) -> Estimate:
    """An estimate with Wilson's interval where that is wider: with few hits, drawing again says too little. Where there
    is no hit or nothing else, it says nothing, and Wilson's stands alone."""
    low, high = wilson(hits, found.n)
    if 0 < hits < found.n:
        low, high = min(low, found.interval[0]), max(high, found.interval[1])
    return Estimate(found.value, (max(0.0, round(low, 12)), min(1.0, round(high, 12))), found.n)


def verdict_of(played: Sequence[PlayedConversation], lost: int) -> FitnessVerdict:
    """Fit, fit with reservations, or unfit, by the limits above: of what the rules find, what the expert solves with
    this user, and what was lost."""
    grave = spoiled(played, _turns(*GRAVE))
    most = Counter(rule for one in played for rule in {e.rule for e in one.found} if rule in GRAVE).most_common(3)
    share = f"{grave.value:.1%} of conversations have a grave fault ({_span(grave)})"
    named = f"{share}, most often {', '.join(rule for rule, _ in most)}" if most else share
    reasons = []
    if grave.interval[0] > UNFIT:
        return FitnessVerdict("unfit", (f"{named}; a user with surely more than {UNFIT:.0%} is unfit.",))
    solved = _solved(played)
    if solved is not None and solved.value < SOLVED_FIT:
        told = f"The expert, which makes no errors, solves {solved.value:.1%} of its tasks with it ({_span(solved)})"
        if solved.interval[1] < SOLVED_LEAST:
            return FitnessVerdict("unfit", (f"{told}; a user with whom it surely solves less than half is unfit.",))
        reasons.append(f"{told}; with a fit user at least {SOLVED_FIT:.0%}.")
    if grave.value > FIT:
        reasons.append(f"{named}; at most {FIT:.0%} is fit.")
    elif grave.interval[1] > FIT:
        reasons.append(f"{share}: too few to be sure of at most {FIT:.0%}. Play more (--tasks, --trials).")
    for rule in STYLE:
        found = spoiled(played, _turns(rule))
        if found.interval[0] > STYLE_MOST:
            reasons.append(f"It {RULES[rule]}: in {found.value:.0%} of conversations ({_span(found)}).")
    if lost > LOST_MOST * (len(played) + lost):
        reasons.append(f"{lost} of {len(played) + lost} conversations were lost to failures of its endpoint or engine.")
    return FitnessVerdict("fit with reservations" if reasons else "fit", tuple(reasons))


def _span(found: Estimate) -> str:
    return f"95% interval {found.interval[0]:.1%} to {found.interval[1]:.1%}"


def _by(played: Sequence[PlayedConversation], key: str) -> dict[str, dict[str, Any]]:
    """The figures of the conversations of each agent, or of each domain."""
    out: dict[str, list[PlayedConversation]] = {}
    for one in played:
        out.setdefault(getattr(one, key), []).append(one)
    return {name: _part(own) for name, own in out.items()}


def _part(played: Sequence[PlayedConversation]) -> dict[str, Any]:
    return {
        "conversations": len(played),
        "messages": fmean(len(one.own) for one in played),
        "ended": dict(Counter(one.episode.stop.value for one in played).most_common()),
        "grave": _rate(played, _turns(*GRAVE)),
        "findings": dict(Counter(e.rule for one in played for e in one.found).most_common()),
    }


def _solved(played: Sequence[PlayedConversation]) -> Estimate | None:
    """How often the expert, which makes no errors, solves the task with this user."""
    tasks: dict[str, list[bool]] = defaultdict(list)
    for one in played:
        if one.agent == EXPERT and one.episode.verdict is not None:
            tasks[one.task.id].append(is_success(one.episode.reward))
    return _wider(share_of(tasks.values()), sum(map(sum, tasks.values()))) if tasks else None


def _cost(played: Sequence[PlayedConversation]) -> dict[str, Any]:
    """What a conversation's user costs, and how long one waits for it."""
    used = sum((one.episode.user_usage for one in played), Usage())
    replies = [t.seconds for one in played for t in one.episode.turns if t.message.role == "user"]
    n = len(played)
    return {
        "requests": used.requests / n,
        "prompt_tokens": used.prompt_tokens / n,
        "completion_tokens": used.completion_tokens / n,
        "dollars": used.cost / n,
        "seconds": sum(replies) / n,
        "seconds_a_message": {
            "median": float(np.median(replies)) if replies else 0.0,
            "95%": float(np.percentile(replies, 95)) if replies else 0.0,
        },
    }


def _examples(played: Sequence[PlayedConversation], most: int = 3) -> dict[str, list[Mapping[str, Any]]]:
    """Of each rule a few findings: where, what, and the message with what it answers."""
    out: dict[str, list[Mapping[str, Any]]] = {}
    for one in played:
        for error in (*one.found, *(one.judged or ())):
            rows = out.setdefault(error.rule, [])
            if len(rows) < most and all((r["agent"], r["task"]) != (one.agent, one.task.id) for r in rows):
                rows.append(_example(one, error.turn, error.detail))
    return out


def _example(one: PlayedConversation, turn: int, detail: str) -> dict[str, Any]:
    messages = one.episode.messages
    before = (m.content for m in reversed(messages[:turn]) if m.role == "assistant" and not m.tool_calls)
    said = messages[turn]
    calls = ", ".join(f"{c.name}()" for c in said.tool_calls)
    return {
        "domain": one.domain, "agent": one.agent, "task": one.task.id, "turn": turn, "detail": detail,
        "agent_said": next(before, None) or "", "user_said": said.content or f"(calls {calls})",
    }  # fmt: skip
