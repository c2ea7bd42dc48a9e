"""Which synthesised conversations are good enough to learn from. Each filter names what is wrong, or nothing.

A dropped conversation keeps the first reason that was found, as "filter: detail". The judge's answers are kept in a
file, so that none is paid for twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from muarl.accounts.metrics import is_success
from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import append_line, drop_broken_tail, read_lines
from muarl.domains.tasks import Task
from muarl.rewards.judge import Judge
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import Episode, StopReason
from muarl.user_errors.errors import find_user_errors

EXPECTED = "The agent followed the policy that it was given, and everything it told the user is borne out by its tools."


class JudgedConversations:
    """What a judge has said of conversations. ``path``: the file, a line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        drop_broken_tail(path)
        self._answers = {row["id"]: bool(row["ok"]) for row in read_lines(path)}

    def ask(self, judge: Judge | None, episodes: Sequence[Episode]) -> dict[str, bool]:
        """Whether each conversation is in keeping with its policy, by id; all asked at once, those known not again.

        Without a judge all are. MuarlError if the judge fails; what it had answered is kept.
        """
        if judge is None:
            return {e.id: True for e in episodes}
        missing = [e for e in episodes if e.id not in self._answers]
        if missing:
            with event_loop() as loop:
                loop.run(self._ask(judge, missing))
        return {e.id: self._answers[e.id] for e in episodes}

    async def _ask(self, judge: Judge, episodes: Sequence[Episode]) -> None:
        async def one(episode: Episode) -> None:
            answer = await judge(episode.messages, [f"The policy:\n{episode.system}\n\n{EXPECTED}"])
            append_line(self._path, {"id": episode.id, "ok": answer})
            self._answers[episode.id] = answer

        outcomes = await asyncio.gather(*map(one, episodes), return_exceptions=True)
        for failure in outcomes:
            if isinstance(failure, InfrastructureError):
                raise MuarlError(f"coldstart.judge: {failure}") from None
            if isinstance(failure, BaseException):
                raise failure


CONTROL = ("<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_response>")
"""What no participant says to another."""

COPIED_WORDS = 40
"""So many words of the policy in a row, spoken to the user, are a recital and no service."""

SAME_AGAIN = 3
"""How often an agent may say the same sentence, or make the same call, before it is going round in circles."""


@dataclass(frozen=True)
class FilterBounds:
    """Figures that filters go by; see ``config.coldstart`` for each."""

    min_turns: int = 2
    max_turns: int = 40
    max_words: int = 6000
    max_tool_errors: int = 2


@dataclass(frozen=True)
class Candidate:
    """A conversation with all that filters look at."""

    episode: Episode
    task: Task
    tools: Sequence[ToolSpec]
    """What the agent was offered at its start and later."""
    user_tools: Sequence[ToolSpec] = ()
    """The user's tools."""
    checkable: bool = True
    """Whether the task says what a right ending is."""

    @property
    def spoken(self) -> list[Message]:
        """The agent's messages."""
        return [m for m in self.episode.messages if m.role == "assistant"]


Filter = Callable[[Candidate, FilterBounds], str | None]


def finished(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """A participant ended it; no limit cut it, and nothing broke."""
    stop = candidate.episode.stop
    if stop is StopReason.INFRASTRUCTURE:
        return candidate.episode.error or "broke off"
    if not candidate.episode.learnable:
        return "spoiled by its user"
    return None if stop.chosen else f"cut by {stop.value}"


def schema(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """Every call of agent and user can be read, names a tool there is, and fits its schema."""
    sides = {"assistant": {t.name: t for t in candidate.tools}, "user": {t.name: t for t in candidate.user_tools}}
    for message in candidate.episode.messages:
        tools = sides.get(message.role, {})
        for call in message.tool_calls:
            if call.invalid is not None:
                return f"{message.role} call that cannot be read: {call.invalid}"
            if call.name not in tools:
                return f"{message.role} call of {call.name!r}, which is no tool here"
            problem = _misfit(call.arguments, tools[call.name].parameters)
            if problem is not None:
                return f"{call.name}: {problem}"
    return None


def _misfit(arguments: Mapping[str, object], parameters: Mapping[str, object]) -> str | None:
    try:
        wrong = next(iter(Draft202012Validator(parameters).iter_errors(dict(arguments))), None)
    except SchemaError:
        return None
    return None if wrong is None else wrong.message[:200]


def errors(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """Few calls are answered by an error; one that is put right teaches, many don't."""
    failed = sum(m.role == "tool" and m.error for m in candidate.episode.messages)
    return None if failed <= bounds.max_tool_errors else f"{failed} calls failed"


def goal(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """The world is as it should be, where the task says how."""
    verdict = candidate.episode.verdict
    if not candidate.checkable or verdict is None or is_success(verdict.reward):
        return None
    missed = [name for name, value in verdict.breakdown.items() if value < 1]
    return f"not reached: {', '.join(missed) or verdict.note or 'reward 0'}"


POLICY = {
    "writes_without_consent": "wrote without the user's consent",
    "access_before_authentication": "used an account before it knew whose it was",
    "foreign_access": "used another user's account",
    "needless_transfers": "handed over without need",
}
"""What an audit (audit/metrics.py) may find that no conversation to learn from has."""


def policy(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """The audit finds no breach."""
    audit = candidate.episode.verdict.audit if candidate.episode.verdict is not None else {}
    return next((text for name, text in POLICY.items() if audit.get(name, 0.0) > 0), None)


def user(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """The simulated user keeps to its scenario and does not give it away (user_errors/errors.py)."""
    user_errors = find_user_errors(candidate.task, candidate.episode.messages, user_tools=candidate.user_tools)
    return next((f"{e.rule}: {e.detail}" for e in user_errors), None)


def leak(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """The agent neither writes control tokens nor recites its policy."""
    policy_words = _words(candidate.episode.system or "")
    grams = {tuple(policy_words[i : i + COPIED_WORDS]) for i in range(len(policy_words) - COPIED_WORDS + 1)}
    for message in candidate.spoken:
        text = message.content or ""
        token = next((t for t in CONTROL if t in text), None)
        if token is not None:
            return f"the agent wrote {token}"
        said = _words(text)
        if any(tuple(said[i : i + COPIED_WORDS]) in grams for i in range(len(said) - COPIED_WORDS + 1)):
            return "the agent recited its policy"
    return None


def repetition(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """The agent does not go round in circles."""
    said = Counter(" ".join(_words(m.content or "")) for m in candidate.spoken if not m.tool_calls and m.content)
    made = Counter((c.name, repr(sorted(c.arguments.items()))) for m in candidate.spoken for c in m.tool_calls)
    worst = max((*said.values(), *made.values()), default=0)
    return None if worst <= SAME_AGAIN else f"the same {worst} times"


def length(candidate: Candidate, bounds: FilterBounds) -> str | None:
    """Neither too short to show anything nor too long to learn from."""
    turns = len(candidate.spoken)
    if not bounds.min_turns <= turns <= bounds.max_turns:
        return f"{turns} messages of the agent"
    words = sum(len((m.content or "").split()) for m in candidate.episode.messages)
    return None if words <= bounds.max_words else f"{words} words"


FILTERS: Mapping[str, Filter] = {
    f.__name__: f for f in (finished, schema, errors, goal, policy, user, leak, repetition, length)
}
"""All filters on single conversations, in the order in which they are asked."""


def reason(candidate: Candidate, bounds: FilterBounds) -> tuple[str, str] | None:
    """The first filter that objects, and its detail; None for a conversation that passes them all."""
    for name, objects in FILTERS.items():
        detail = objects(candidate, bounds)
        if detail is not None:
            return name, detail
    return None


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()
