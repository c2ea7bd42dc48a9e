"""How an agent recovered from a system that failed: whether each failed call was made again, looked at, told of, or
handed over.

It goes by the faults that are noted with tools' answers (``domains.faults``), so that it needs neither task nor domain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from muarl.audit.calls import KindOf, fingerprint, with_results
from muarl.domains.auditing import guessed_kind
from muarl.types.chat import Message, ToolCall, ToolFault

_TELLS = re.compile(
    r"\b(?:system|service|server|technical|error|problem|trouble|issue|outage|glitch|delay(?:ed)?|unavailable|down"
    r"|not (?:available|responding|reachable|working|go(?:ne)? through)|tim(?:ed|ing)[ -]?out|time-?out"
    r"|try(?:ing)? again|second try|later|permission|cannot access|could ?n[o']t (?:be )?(?:complete|process)\w*)\b",
    re.IGNORECASE,
)

AMBIGUOUS = ("timeout_after_write", "latency")
"""Kinds of faults that fail a write so that nobody can tell whether it was carried out."""


@dataclass(frozen=True, slots=True)
class FaultRecovery:
    """What became of one call that a fault failed."""

    message: int
    """Index of the message that carries the call."""
    call: ToolCall
    fault: ToolFault

    tried_again: bool = False
    """The same call was made again."""

    solved: bool = False
    """The same call went through later, or a look showed that it had been carried out all along."""

    checked: bool = False
    """A read was answered before the same one was made again, if it was; counts for writes that timed out."""

    told: bool = False
    """The agent spoke of a problem to the user afterwards."""

    handed_over: bool = False
    """It was not solved, and a person took over afterwards."""

    repeated_at: int | None = None
    """The message that made a write again which had timed out, with no look in between."""

    @property
    def timed_out_write(self) -> bool:
        """Whether it is a write of which the agent could not know whether it was carried out."""
        return self.fault.writes and self.fault.kind in AMBIGUOUS


def recoveries(
    messages: Sequence[Message], transfer_tools: frozenset[str] = frozenset(), kind_of: KindOf = guessed_kind
) -> list[FaultRecovery]:
    """What became of the agent's calls that faults failed, in their order. Linear in the messages.

    ``transfer_tools``: those that hand the user over to a person. ``kind_of``: says which tools read."""
    spoken, out = -1, []
    for index, message in enumerate(messages):
        if message.role == "assistant" and not message.tool_calls and _TELLS.search(message.content or ""):
            spoken = index
    handed, read = -1, None  # the last hand-over, and the first read that was answered after the call in hand
    same: dict[str, int] = {}  # where a call was made the next time
    went_through: dict[str, int] = {}  # where it was made with success the next time
    calls = list(_calls(messages))
    for number, (index, call, result) in reversed(list(enumerate(calls))):
        key, fault = fingerprint(call), result.failed
        if not result.error and _hands_over(call.name, transfer_tools):
            handed = max(handed, index)
        if fault is not None:
            again, success = same.get(key), went_through.get(key)
            looked_first = read is not None and (again is None or read < again)
            looked = read is not None and (success is None or read < success)
            ambiguous = fault.writes and fault.kind in AMBIGUOUS
            solved = success is not None or (ambiguous and fault.ran and looked)
            out.append(
                FaultRecovery(
                    index,
                    call,
                    fault,
                    tried_again=again is not None,
                    solved=solved,
                    checked=ambiguous and looked_first,
                    told=spoken > index,
                    handed_over=handed > index and not solved,
                    repeated_at=calls[again][0] if ambiguous and again is not None and not looked_first else None,
                )
            )
        same[key] = number
        if not result.error:
            went_through[key] = number
            read = number if kind_of(call.name) == "read" else read
    return out[::-1]


def _calls(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall, Message]]:
    for index, message in enumerate(messages):
        if message.role == "assistant" and message.tool_calls:
            for call, result in with_results(messages, index):
                if result is not None:
                    yield index, call, result


def _hands_over(name: str, transfer_tools: frozenset[str]) -> bool:
    return name in transfer_tools or (not transfer_tools and name.startswith("transfer"))


def excuses_transfer(outcomes: Sequence[FaultRecovery], message: int) -> bool:
    """Whether a hand-over at this message was right because a call was failed by faults until then: more than once, or
    for lack of permission, or it was a write that nobody could tell the outcome of."""
    before = [one for one in outcomes if one.message < message and not one.solved]
    again = any(one.tried_again for one in before)
    return again or any(one.fault.kind == "permission" or one.timed_out_write for one in before)


def figures(outcomes: Sequence[FaultRecovery]) -> dict[str, float]:
    """Counts for a verdict's audit: calls that faults failed, and of those the ones that were made again, looked at
    before, told of, or handed over, and writes repeated without a look."""
    return {
        "failed_calls": float(len(outcomes)),
        "failed_calls_tried_again": float(sum(one.tried_again for one in outcomes)),
        "timed_out_writes": float(sum(one.timed_out_write for one in outcomes)),
        "timed_out_writes_checked": float(sum(one.checked for one in outcomes)),
        "failed_calls_told": float(sum(one.told for one in outcomes)),
        "failed_calls_handed_over": float(sum(one.handed_over for one in outcomes)),
        "blind_repeats": float(sum(one.repeated_at is not None for one in outcomes)),
    }


@dataclass(slots=True)
class FaultCount:
    """One kind of fault over many episodes."""

    episodes: int = 0
    """Episodes with such a fault."""
    scored: int = 0
    """Of these, episodes with a score."""
    successes: int = 0
    """Of the scored ones, episodes that succeeded."""
    faults: int = 0
    """How many such faults there were."""
    failed: int = 0
    """Faults that made an error of a call."""
    tried_again: int = 0
    """Failed calls that were made again."""
    timed_out_writes: int = 0
    """Failed calls that were writes which timed out."""
    checked: int = 0
    """Of these writes, those where a read was answered before the same write was made again, if it was."""
    repeated_blindly: int = 0
    """Of these writes, those that were made again with no look in between."""
    told: int = 0
    """Failed calls that the user was told of."""
    handed_over: int = 0
    """Failed calls that were handed over."""

    def add(self, faults: int, outcomes: Sequence[FaultRecovery], success: bool | None) -> None:
        """Take an episode's faults of the kind into account, and what became of those that failed a call."""
        self.episodes += 1
        self.scored += success is not None
        self.successes += success is True
        self.faults += faults
        self.failed += len(outcomes)
        self.tried_again += sum(one.tried_again for one in outcomes)
        self.timed_out_writes += sum(one.timed_out_write for one in outcomes)
        self.checked += sum(one.checked for one in outcomes)
        self.repeated_blindly += sum(one.repeated_at is not None for one in outcomes)
        self.told += sum(one.told for one in outcomes)
        self.handed_over += sum(one.handed_over for one in outcomes)

    def to_json(self) -> dict[str, int]:
        """A plain dict."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def count_faults(
    counts: dict[str, FaultCount], messages: Sequence[Message], success: bool | None, outcomes: Sequence[FaultRecovery]
) -> None:
    """Add one episode to the counts by kind. ``outcomes``: what became of its failed calls (``recoveries``)."""
    kinds = Counter(fault.kind for message in messages for fault in message.faults)
    for kind, faults in kinds.items():
        counts.setdefault(kind, FaultCount()).add(faults, [one for one in outcomes if one.fault.kind == kind], success)
