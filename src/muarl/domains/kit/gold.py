"""What a right answer to a request is: its plan, run in a live world by somebody who knows all details."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError
from muarl.domains.authoring import nearest
from muarl.domains.base import World
from muarl.domains.generated import Infeasible
from muarl.domains.kit.device import take
from muarl.domains.kit.moves import Move, Notes, Request, WriteRefusal, call_key, looked_up
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.records import fill
from muarl.domains.tasks import Action
from muarl.types.chat import ToolCall, ToolResult

if TYPE_CHECKING:
    from muarl.domains.kit.service import Service

MAX_MOVES = 40


@dataclass(slots=True)
class RequestOutcome:
    """How a request ends."""

    kind: str
    """"done", "refuse", "transfer", "unavailable", "answer", "missing", or "declined" (by the colleague who was asked
    for approval)."""
    rule: str = ""
    """The text of the rule that decided it."""
    slot: str = ""
    options: tuple[Any, ...] | None = ()
    actions: list[Action] = field(default_factory=list)
    answers: tuple[str, ...] = ()
    """What the user must be told."""
    summary: str = ""
    looked: int = 0
    """How many of its look-ups are among the actions."""
    error: str = ""
    """The error of the last look-up that failed."""
    unasked: int | None = None
    """How many actions come before the first one that is proposed."""
    writes: list[Move] = field(default_factory=list)
    """The writes that went through."""
    ending: Move | None = None
    """The move that it ended with."""

    @property
    def dropped(self) -> RequestOutcome:
        """How it ends for a user who drops it on hearing the proposal."""
        return RequestOutcome("dropped", actions=self.actions[: self.unasked])


def run(
    service: Service,
    open_world: Callable[[], World],
    user: Mapping[str, Any],
    request: Request,
    answers: dict[str, Any] | None = None,
    notes: Notes | None = None,
) -> RequestOutcome:
    """Serve one request in a world, which its writes change. Infeasible, with the error, if a write fails; ConfigError
    for a call that no world would take.

    ``answers``: results of look-ups in the world as it is before any write, which are added to. ``open_world`` is
    called when something is to be done that they do not answer. ``notes``: see ``next_move``.
    """
    seen = {} if answers is None else answers
    world: World | None = None
    outcome = RequestOutcome("done")
    intent = service.intent(request.intent)
    for _ in range(MAX_MOVES):
        move = next_move(intent, request, seen, user, service.today, notes=notes, authority=service.authority)
        if move.kind in ("call", "write"):
            world = world or open_world()
            if move.kind == "write":
                outcome.actions += _looked(request, outcome)
                if move.texts and outcome.unasked is None:
                    outcome.unasked = len(outcome.actions)
            done = len(outcome.actions)
            by_policy = notes is None and not request.over
            result, error = _called(world, service, request.intent, move, outcome, by_policy=by_policy)
            if move.kind == "call":
                if len(outcome.actions) > done or move.tool in service.unlocks:
                    seen = dict(seen)  # it took a remedy, or unlocked something: others need to do that as well
                seen[call_key(move.tool, move.arguments)] = result
                outcome.error = f"{move.tool}: {error}" if error else outcome.error
                continue
            if error and not (move.fails and re.search(move.fails, error, re.IGNORECASE)):
                raise Infeasible(f"{move.tool}: {error}")
            if not error:
                compared = None if move.limit is None else tuple(n for n in move.arguments if n != "reason")
                outcome.actions.append(Action(move.tool, move.arguments, compare_args=compared))
                outcome.writes.append(move)
            request.written.append(WriteRefusal(error) if error else result)
            seen = {}
        elif move.kind == "instruct":
            world = world or open_world()
            outcome.actions += _looked(request, outcome)
            request.reported.append(report_of_step(world, service, move, request.intent, outcome.actions))
            seen = {}
        elif move.kind == "finished":
            outcome.ending = move
            return outcome
        else:
            outcome.actions += _looked(request, outcome)
            return _ended(service, request, move, outcome)
    raise ConfigError(
        f"{service.name}: intent {request.intent}: its plan does not end: it may look at it and at constants only, and "
        "must do the same each time"
    )


def _looked(request: Request, outcome: RequestOutcome) -> list[Action]:
    """The look-ups that a request has gone by since its last write."""
    later = list(request.looked.items())[outcome.looked :]
    calls = [looked_up(key) for key, result in later if result is not None]
    outcome.looked = len(request.looked)
    return [Action(tool, arguments) for tool, arguments in calls]


def report_of_step(
    world: World, service: Service, move: Move, intent: str, actions: list[Action] | None = None
) -> dict[str, Any]:
    """What a user tells who takes a step in a world. ``actions`` are added to: what was changed. ConfigError where
    users have nothing at hand."""
    if service.device is None or move.step is None:
        raise ConfigError(
            f"{service.name}: intent {intent}: its plan instructs the user, and the service has no device"
        )

    def call_user(tool: str, arguments: Mapping[str, Any]) -> str:
        result = world.call("user", ToolCall("gold", tool, arguments, "user"))
        if result.error:
            raise Infeasible(f"{tool}: {result.content}")
        return result.content

    trouble = service.intent(intent).trouble
    taken = take(service.device, move.step, call_user, trouble, service.changes)
    if actions is not None:
        actions += taken.actions
    return service.device.report(taken.facts, over=taken.over)


def _ended(service: Service, request: Request, move: Move, outcome: RequestOutcome) -> RequestOutcome:
    assert move.kind != "ask", f"{service.name}: {request.intent} asks for {move.slot}, which was not drawn"
    outcome.kind, outcome.slot, outcome.options, outcome.ending = move.kind, move.slot, move.options, move
    outcome.rule = move.slot or next(iter(move.texts), "")
    spoken = service.spoken(request.intent, move.known)
    if move.kind == "answer":
        outcome.answers = tuple(fill(text, move.known, spoken) for text in move.tell)
    elif move.kind == "transfer":
        outcome.summary = fill(move.texts[0], move.known, spoken)
    return outcome


def _called(
    world: World, service: Service, intent: str, move: Move, outcome: RequestOutcome, *, by_policy: bool
) -> tuple[Any, str]:
    """A tool's result and its error, one of them empty; what must be done before it works is done and noted.

    ``by_policy``: no refusal was passed over on the way to it.
    """
    needed_kind = "write" if move.kind == "write" else "read"
    kinds = service.tool_kinds
    if kinds.get(move.tool) != needed_kind:
        there = [name for name, kind in kinds.items() if kind == needed_kind]
        mend = _MENDS.get((needed_kind, kinds.get(move.tool, "")), "").format(move.tool)
        hint = mend if move.tool in kinds else nearest(move.tool, there)
        raise ConfigError(
            f"{service.name}: intent {intent}: its plan calls {move.tool}, which is not a tool that {needed_kind}s; "
            f"those of the domain are {', '.join(there)}{hint}{move.place}"
        )
    result, before = tried(service, world, move)
    outcome.actions += before
    if by_policy and (result.cause == "wrong argument" or (result.error and move.tool in service.unlocks)):
        why = _unknown_argument(world, move) or result.content
        raise ConfigError(f"{service.name}: intent {intent}: its plan's call fails: {why}{move.place}")
    return (None, result.content) if result.error else (_answer(service, move.tool, result.content), "")


_MENDS = {
    ("write", "read"): "; if {} changes something, mark it @tool(writes=True)",
    ("write", "generic"): "; if {} changes something, mark it @tool(writes=True)",
    ("read", "write"): "; call {} by it.write, which asks first, or by it.do",
}
"""What to do about a tool of another kind than a plan takes it for: (wanted, what it is)."""


def _unknown_argument(world: World, move: Move) -> str:
    """What a call says that the tool has no argument for, with what was probably meant; empty if nothing."""
    spec = next((spec for spec in world.domain.tool_specs() if spec.name == move.tool), None)
    arguments = [] if spec is None else list(spec.parameters.get("properties", {}))
    unknown = next((name for name in move.arguments if name not in arguments), None)
    if spec is None or unknown is None:
        return ""
    free = [name for name in arguments if name not in move.arguments]
    takes = f"it takes {', '.join(arguments)}" if arguments else "it takes none"
    return f"{move.tool} has no argument {unknown!r}; {takes}{nearest(unknown, free)}"


def tried(service: Service, world: World, move: Move) -> tuple[ToolResult, list[Action]]:
    """What a tool answers, and what had to be called before it worked."""
    before: list[Action] = []
    while True:
        result = world.call("assistant", ToolCall("gold", move.tool, move.arguments))
        remedy = service.remedy(result.content) if result.error else ""
        if not remedy or call(world, remedy, {}) is None:
            return result, before
        before.append(Action(remedy, {}))


def redo(world: World, action: Action) -> None:
    """Do once more what was done; whether it fails does not matter."""
    world.call(action.requestor, ToolCall("gold", action.name, action.arguments, action.requestor))


def call(world: World, tool: str, arguments: Mapping[str, Any], service: Service | None = None) -> Any:
    """A tool's result, None for an error."""
    return attempt(world, tool, arguments, service)[0]


def attempt(world: World, tool: str, arguments: Mapping[str, Any], service: Service | None = None) -> tuple[Any, str]:
    """A tool's result and its error, one of them empty."""
    result = world.call("assistant", ToolCall("gold", tool, arguments))
    if result.error:
        return None, result.content or "an error"
    return (_parsed(result.content) if service is None else service.parsed(tool, result.content)), ""


def noted(service: Service, tool: str, result: ToolResult) -> Any:
    """What a plan gets of a write: the answer, or the refusal."""
    return WriteRefusal(result.content) if result.error else _answer(service, tool, result.content)


def _answer(service: Service, tool: str, content: str) -> Any:
    return service.seen(tool, service.parsed(tool, content))


def _parsed(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content
