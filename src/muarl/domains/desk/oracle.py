"""What a right answer to a request is: its procedure, run in a live world by somebody who knows all details."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.chat import ToolCall
from muarl.domains.base import Action, World
from muarl.domains.desk.procedure import Frame, Move, call_key, next_move
from muarl.domains.desk.spec import Script
from muarl.domains.desk.terms import Known, fill
from muarl.domains.drawing import Infeasible

MAX_MOVES = 40


@dataclass(slots=True)
class Outcome:
    """How a request ends. ``kind``: "done", "refuse", "transfer", "unavailable", "answer", or "missing". ``step``: the
    number of the step that decided it. ``told``: what the caller must be told. ``looked``: how many of its look-ups are
    among the actions."""

    kind: str
    step: int = -1
    slot: str = ""
    options: tuple[Any, ...] = ()
    actions: list[Action] = field(default_factory=list)
    told: tuple[str, ...] = ()
    summary: str = ""
    looked: int = 0


def run(
    script: Script, open_world: Callable[[], World], caller: Known, frame: Frame, known: dict[str, Any] | None = None
) -> Outcome:
    """Serve one request in a world, which its writes change. Infeasible if a write fails.

    ``known``: results of look-ups in the world as it is before any write, which are added to. ``open_world`` is called
    when something is to be done that they do not answer.
    """
    seen = {} if known is None else known
    world: World | None = None
    outcome = Outcome("done")
    for _ in range(MAX_MOVES):
        move = next_move(script, frame, seen, caller)
        step = script.spec.intents[frame.intent].steps[move.step] if move.step >= 0 else None
        if move.kind in ("call", "write"):
            world = world or open_world()
            result = call(world, move.tool, move.args)
            if move.kind == "call":
                seen[call_key(move.tool, move.args)] = result
                continue
            if result is None:
                raise Infeasible
            outcome.actions += [*_looked(frame, outcome), Action(move.tool, move.args)]
            frame.written[move.step] = result
            seen = {}
        elif move.kind == "finished":
            return outcome
        else:
            outcome.actions += _looked(frame, outcome)
            return _ended(script, frame, move, outcome, step)
    raise RuntimeError(f"{script.name}: the procedure of {frame.intent} does not end")


def _looked(frame: Frame, outcome: Outcome) -> list[Action]:
    """The look-ups that a request has gone by since its last write."""
    pairs = [key.split(" ", 1) for key in list(frame.looked)[outcome.looked :]]
    outcome.looked = len(frame.looked)
    return [Action(tool, json.loads(args)) for tool, args in pairs]


def _ended(script: Script, frame: Frame, move: Move, outcome: Outcome, step: Any) -> Outcome:
    if move.kind == "ask":
        raise RuntimeError(f"{script.name}: {frame.intent} asks for {move.slot!r}, which was not drawn")
    outcome.kind, outcome.step, outcome.slot, outcome.options = move.kind, move.step, move.slot, move.options
    spoken = {s: script.show(s, v) for s, v in move.known.items() if s in script.spec.slots}
    if move.kind == "answer":
        outcome.told = tuple(fill(t, move.known, spoken) for t in step.tell)
    elif move.kind == "transfer":
        outcome.summary = fill(step.transfer, move.known, spoken)
    return outcome


def call(world: World, tool: str, args: Mapping[str, Any]) -> Any:
    """A tool's result, None for an error."""
    result = world.call("assistant", ToolCall("gold", tool, args))
    if result.error:
        return None
    try:
        return json.loads(result.content)
    except ValueError:
        return result.content
