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


@dataclass(frozen=True, slots=True)
class FaultRecovery:
    """What became of one call that a fault failed. ``message``, ``call``: the message that carries it, and the call."""

    message: int
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
    """A person took over afterwards."""

    repeated_at: int | None = None
    """The message that made a write again which had timed out, with no look in between."""

    @property
    def timed_out_write(self) -> bool:
        """Whether it is a write of which the agent could not know whether it was carried out."""
        return self.fault.writes and self.fault.kind in ("timeout_after_write", "latency")


def recoveries(
    messages: Sequence[Message], transfer_tools: frozenset[str] = frozenset(), kind_of: KindOf = guessed_kind
) -> list[FaultRecovery]:
    """What became of the agent's calls that faults failed, in their order. Linear in the messages, but for what follows
    each failed call. ``transfer_tools``: those that hand the user over to a person. ``kind_of``: says which tools
    read."""
    calls = list(_calls(messages))
    spoken = [
        i
        for i, m in enumerate(messages)
        if m.role == "assistant" and not m.tool_calls and m.content and _TELLS.search(m.content)
    ]
    handed = [i for i, call, result in calls if not result.error and _hands_over(call.name, transfer_tools)]
    out = []
    for number, (index, call, result) in enumerate(calls):
        if (fault := result.failed) is None:
            continue
        told, over = any(i > index for i in spoken), any(i > index for i in handed)
        out.append(_followed(index, call, fault, calls[number + 1 :], told=told, handed_over=over, kind_of=kind_of))
    return out


def _followed(
    index: int,
    call: ToolCall,
    fault: ToolFault,
    later: Sequence[tuple[int, ToolCall, Message]],
    *,
    told: bool,
    handed_over: bool,
    kind_of: KindOf,
) -> FaultRecovery:
    same, looked, tried, solved = fingerprint(call), False, False, False
    repeated_at = None
    for place, another, result in later:
        if fingerprint(another) != same:
            looked = looked or (not result.error and kind_of(another.name) == "read")
            continue
        if not tried:
            repeated_at = None if looked else place
        tried, solved = True, not result.error
        if solved:
            break
    ambiguous = fault.writes and fault.kind in ("timeout_after_write", "latency")
    return FaultRecovery(
        index,
        call,
        fault,
        tried_again=tried,
        solved=solved or (ambiguous and fault.ran and looked),
        checked=ambiguous and looked and repeated_at is None,
        told=told,
        handed_over=handed_over,
        repeated_at=repeated_at if ambiguous else None,
    )


def _calls(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall, Message]]:
    for index, message in enumerate(messages):
        if message.role == "assistant" and message.tool_calls:
            for call, result in with_results(messages, index):
                if result is not None:
                    yield index, call, result


def _hands_over(name: str, transfer_tools: frozenset[str]) -> bool:
    return name in transfer_tools or (not transfer_tools and name.startswith("transfer"))


def excuses_transfer(found: Sequence[FaultRecovery], message: int) -> bool:
    """Whether a hand-over at this message was right because a call was failed by faults until then: more than once, or
    for lack of permission, or it was a write that nobody could tell the outcome of."""
    before = [one for one in found if one.message < message and not one.solved]
    again = any(one.tried_again for one in before)
    return again or any(one.fault.kind == "permission" or one.timed_out_write for one in before)


def figures(found: Sequence[FaultRecovery]) -> dict[str, float]:
    """Counts for a verdict's audit: calls that faults failed, and of those the ones that were made again, looked at
    before, told of, or handed over, and writes repeated without a look."""
    return {
        "failed_calls": float(len(found)),
        "failed_calls_tried_again": float(sum(one.tried_again for one in found)),
        "timed_out_writes": float(sum(one.timed_out_write for one in found)),
        "timed_out_writes_checked": float(sum(one.checked for one in found)),
        "failed_calls_told": float(sum(one.told for one in found)),
        "failed_calls_handed_over": float(sum(one.handed_over for one in found)),
        "blind_repeats": float(sum(one.repeated_at is not None for one in found)),
    }


@dataclass(slots=True)
class FaultCount:
    """One kind of fault over many episodes. ``episodes``: with one; ``scored`` ones, and ``successes`` among these.
    ``faults``: how many; ``failed``: those that made an error of a call; of these, calls that were ``tried_again``,
    ``told`` of and ``handed_over``, and ``timed_out_writes``, of which ``checked`` and ``repeated_blindly`` are."""

    episodes: int = 0
    scored: int = 0
    successes: int = 0
    faults: int = 0
    failed: int = 0
    tried_again: int = 0
    timed_out_writes: int = 0
    checked: int = 0
    repeated_blindly: int = 0
    told: int = 0
    handed_over: int = 0

    def add(self, faults: int, found: Sequence[FaultRecovery], success: bool | None) -> None:
        """Take an episode's faults of the kind into account, and what became of those that failed a call."""
        self.episodes += 1
        self.scored += success is not None
        self.successes += success is True
        self.faults += faults
        self.failed += len(found)
        self.tried_again += sum(one.tried_again for one in found)
        self.timed_out_writes += sum(one.timed_out_write for one in found)
        self.checked += sum(one.checked for one in found)
        self.repeated_blindly += sum(one.repeated_at is not None for one in found)
        self.told += sum(one.told for one in found)
        self.handed_over += sum(one.handed_over for one in found)

    def to_json(self) -> dict[str, int]:
        """A plain dict."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def count_faults(
    counts: dict[str, FaultCount], messages: Sequence[Message], success: bool | None, found: Sequence[FaultRecovery]
) -> None:
    """Add one episode to the counts by kind. ``found``: what became of its failed calls (``recoveries``)."""
    kinds = Counter(fault.kind for message in messages for fault in message.faults)
    for kind, faults in kinds.items():
        counts.setdefault(kind, FaultCount()).add(faults, [one for one in found if one.fault.kind == kind], success)
