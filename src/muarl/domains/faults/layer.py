"""Between a conversation and its world: one episode's calls, and what the system does wrong with them.

Every draw follows from the episode's seed and the number of the call, or the name of the tool, whatever was drawn
before: the same calls meet the same faults, in a resumed run, in a copy of the conversation, and in one that begins as
another did. The world itself knows nothing of faults, so that the reward is that of its state.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace

from muarl.basics.errors import ConfigError
from muarl.basics.seeds import derive_seed
from muarl.domains.base import World
from muarl.domains.faults.answers import cut, field_to_rename, renamed
from muarl.domains.faults.rates import FaultRates
from muarl.types.chat import Requestor, ToolCall, ToolFault, ToolResult

UNDOCUMENTED = (
    "null",
    "[object Object]",
    "0x80131500",
    "Unexpected token < in JSON at position 0",
    "ORA-00054",
    "upstream returned code -1",
)
"""What stands behind "Error: " in errors that no document knows."""

NOT_PROCESSED = "The request was not processed."


@dataclass(frozen=True, slots=True)
class _Draws:
    """What is drawn for one call, whether it is used or not: so no rate changes what is drawn for another."""

    latency: float
    seconds: float
    outage: float
    everything: float
    length: float
    undocumented: float
    error: float
    timeout: float
    stale: float
    partial: float
    marked: float
    cut: int

    @classmethod
    def of(cls, seed: int, number: int) -> _Draws:
        rng = random.Random(derive_seed(seed, "call", number))
        latency, seconds, outage, everything, length, undocumented, error, timeout, stale, partial, marked = (
            rng.random() for _ in range(11)
        )
        return cls(
            latency, seconds, outage, everything, length, undocumented, error, timeout, stale, partial, marked,
            rng.getrandbits(32),
        )  # fmt: skip


@dataclass(slots=True)
class _ToolState:
    """One tool in one episode."""

    refused: int | None = 0
    """How many of its calls are still refused for lack of permission, None for all."""
    out: int = 0
    """How many still meet an outage."""
    renamed: str | None = None
    """Its field with a new name, "" as long as none was seen; None: no field has one."""


class FaultLayer:
    """One episode's faults, a function of the seed and of the calls. ``answers`` takes the place of the world's own.

    ``spared``: tools that always work, such as the one that hands over.
    """

    def __init__(self, rates: FaultRates, seed: int, *, spared: Iterable[str] = ()) -> None:
        self._rates, self._seed, self._spared = rates, seed, frozenset(spared)
        self._number = 0
        self._out = 0  # calls that still meet an outage of everything
        self._tools: dict[str, _ToolState] = {}
        self._before: World | None = None  # as it was before the last write

    def check(self, world: World) -> None:
        """ConfigError where the state before a write cannot be kept, and stale reads are asked for; and for tools that
        there are not."""
        self._rates.check_tools(world.domain.tool_names())
        if self._rates.stale_read:
            try:
                world.fork()
            except ConfigError as problem:
                raise ConfigError(f"world.faults.stale_read: {problem}. Leave it out") from None

    def fork(self) -> FaultLayer:
        """A copy that goes on by itself."""
        new = copy(self)
        new._tools = {name: copy(state) for name, state in self._tools.items()}
        new._before = None if self._before is None else self._before.fork()
        return new

    async def answers(self, world: World, requestor: Requestor, calls: Sequence[ToolCall]) -> AsyncIterator[ToolResult]:
        """The results of all calls of one message, in order."""
        for call in calls:
            kind = self._kind(world, requestor, call)
            if kind is None:
                yield await _result(world, requestor, call)
            else:
                yield await self._answer(world, call, writes=kind == "write")

    def _kind(self, world: World, requestor: Requestor, call: ToolCall) -> str | None:
        """Whether a tool reads or writes; None for a call that no fault may meet."""
        if requestor != "assistant" or call.invalid is not None or call.name in self._spared:
            return None
        if self._rates.tools and call.name not in self._rates.tools:
            return None
        try:
            kind = world.domain.kind_of(call.name)
        except KeyError:
            return None
        return None if kind == "generic" else kind

    async def _answer(self, world: World, call: ToolCall, *, writes: bool) -> ToolResult:
        draws, tool = _Draws.of(self._seed, self._number), self._tool(call.name, writes)
        self._number += 1
        failure = self._failure(call.name, tool, draws, writes)
        if failure is not None:
            return failure
        before = world.fork() if writes and self._rates.stale_read else None
        result = await _result(world, "assistant", call)
        faults: tuple[ToolFault, ...] = ()
        if draws.latency < self._rates.latency:
            faults = (ToolFault("latency", ran=True, writes=writes, seconds=self._seconds(draws)),)
        if result.error:
            return replace(result, faults=faults)
        if writes:
            self._before = self._before if before is None else before
            return self._written(call.name, result, draws, faults)
        return await self._read(call, result, tool, draws, faults)

    def _failure(self, name: str, tool: _ToolState, draws: _Draws, writes: bool) -> ToolResult | None:
        """The error that a call meets before it reaches its tool."""
        rates = self._rates
        if tool.refused is None or tool.refused:
            for_good = tool.refused is None
            tool.refused = None if tool.refused is None else tool.refused - 1
            state = "was withdrawn" if for_good else "is suspended for the moment"
            text = f"403 Forbidden: the permission to call {name} {state}. {NOT_PROCESSED}"
            return _failed("permission", text, writes, detail="for good" if for_good else "")
        if not (tool.out or self._out) and draws.outage < rates.outage:
            low, high = rates.outage_calls
            length = low + int(draws.length * (high - low + 1))
            if draws.everything < rates.outage_everything:
                self._out = length
            else:
                tool.out = length
        if self._out:
            self._out -= 1
            text = f"503 Service Unavailable: the system is down at the moment. {NOT_PROCESSED}"
            return _failed("outage", text, writes, detail="all tools")
        if tool.out:
            tool.out -= 1
            return _failed("outage", f"503 Service Unavailable: {name} is down at the moment. {NOT_PROCESSED}", writes)
        if draws.latency < rates.latency and (seconds := self._seconds(draws)) > rates.timeout:
            self._in_doubt(writes)
            return _failed("latency", self._timed_out(name, writes), writes, seconds=seconds)
        if draws.undocumented < rates.undocumented_error:
            self._in_doubt(writes)
            text = UNDOCUMENTED[int(draws.error * len(UNDOCUMENTED))]
            return _failed("undocumented_error", text, writes)
        return None

    def _written(self, name: str, result: ToolResult, draws: _Draws, faults: tuple[ToolFault, ...]) -> ToolResult:
        if draws.timeout >= self._rates.timeout_after_write:
            return replace(result, faults=faults)
        self._in_doubt(True)
        fault = ToolFault("timeout_after_write", failed=True, ran=True, writes=True, seconds=self._rates.timeout)
        return ToolResult(f"Error: {self._timed_out(name, True)}", True, "time-out", (fault,))

    async def _read(
        self, call: ToolCall, result: ToolResult, tool: _ToolState, draws: _Draws, faults: tuple[ToolFault, ...]
    ) -> ToolResult:
        content = result.content
        if self._before is not None and draws.stale < self._rates.stale_read:
            old = await _result(self._before, "assistant", call)
            if old.content != content:
                faults += (ToolFault("stale_read", failed=old.error, ran=True),)
                content = old.content
                if old.error:
                    return ToolResult(content, True, old.cause, faults)
        if tool.renamed == "":
            rng = random.Random(derive_seed(self._seed, "field", call.name))
            tool.renamed = field_to_rename(content, rng) or ""
        if tool.renamed and (new_content := renamed(content, tool.renamed)) is not None:
            faults += (ToolFault("renamed_field", ran=True, detail=tool.renamed),)
            content = new_content
        if draws.partial < self._rates.partial:
            marked = draws.marked < self._rates.partial_marked
            shorter = cut(content, random.Random(draws.cut), marked=marked)
            if shorter is not None:
                content, said = shorter
                faults += (ToolFault("partial", ran=True, detail=f"{said}, {'' if marked else 'not '}marked"),)
        return replace(result, content=content, faults=faults)

    def _tool(self, name: str, writes: bool) -> _ToolState:
        """A tool's state, which is drawn when it is first called."""
        if name not in self._tools:
            rates, rng = self._rates, random.Random(derive_seed(self._seed, "tool", name))
            withdrawn, for_good, length, new = (rng.random() for _ in range(4))
            low, high = rates.permission_calls
            state = _ToolState()
            if withdrawn < rates.permission:
                state.refused = None if for_good < rates.permission_for_good else low + int(length * (high - low + 1))
            if not writes and new < rates.renamed_field:
                state.renamed = ""
            self._tools[name] = state
        return self._tools[name]

    def _in_doubt(self, writes: bool) -> None:
        """Nobody can know whether a write was carried out: a stale look would mislead those who do what is right."""
        if writes:
            self._before = None

    def _seconds(self, draws: _Draws) -> float:
        low, high = self._rates.latency_seconds
        return round(low + draws.seconds * (high - low), 1)

    def _timed_out(self, name: str, writes: bool) -> str:
        doubt = " It is not known whether the request was processed." if writes else ""
        return f"504 Gateway Timeout: {name} timed out after {self._rates.timeout:g} seconds.{doubt}"


def _failed(kind: str, text: str, writes: bool, *, seconds: float | None = None, detail: str = "") -> ToolResult:
    fault = ToolFault(kind, failed=True, writes=writes, seconds=seconds, detail=detail)
    return ToolResult(f"Error: {text}", True, kind, (fault,))


async def _result(world: World, requestor: Requestor, call: ToolCall) -> ToolResult:
    """The world's own answer."""
    answers = world.answers(requestor, [call])
    result = await anext(answers, None)
    await answers.aclose()  # type: ignore[attr-defined]
    if result is None:
        raise RuntimeError("the world gave no result")
    return result
