"""A procedure, run step by step: what is to be done next in a request, given what is known of it.

The same interpreter drives the scripted expert, who learns the slots from a caller's words, and the generator, who
knows them and finds out what a right answer is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.desk.spec import Intent, Script, Step
from muarl.domains.desk.terms import Known, Unknown, holds, lookup, resolve, rows


@dataclass(slots=True)
class Frame:
    """One request: its intent, the slots that are known, descriptions of records, and what has been done.

    ``looked``: results of look-ups that it went by, which stay as they were when it has written. ``written``: results
    of the steps that have written, by number. ``over``: refusals are passed over (an expert with bad habits).
    """

    intent: str
    slots: dict[str, Any] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    confirmed: bool = False
    looked: dict[str, Any] = field(default_factory=dict)
    written: dict[int, Any] = field(default_factory=dict)
    over: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """What is to be done next. ``kind``: "ask" (``slot``), "call" (``tool``, ``args``), "missing" (no such record:
    ``slot``), "refuse", "transfer", "unavailable" (``slot``, ``options``), "answer", "write" (``tool``, ``args``), or
    "finished". ``step``: its number. ``known``: what its texts are filled from."""

    kind: str
    known: Known
    step: int = -1
    slot: str = ""
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Any, ...] = ()


def call_key(tool: str, args: Mapping[str, Any]) -> str:
    """What tells one look-up from another."""
    return f"{tool} {json.dumps(dict(args), sort_keys=True, default=str)}"


Seen = Mapping[str, Any]
"""Results of look-ups by ``call_key``; None for one that failed."""


def next_move(script: Script, frame: Frame, seen: Seen, caller: Known) -> Move:
    """The next thing to do in a request. What it needs to know is asked for by the move that it returns."""
    return _Run(script, frame, seen, caller).next()


class _Stop(Exception):
    def __init__(self, move: Move) -> None:
        self.move = move


class _Run:
    def __init__(self, script: Script, frame: Frame, seen: Seen, caller: Known) -> None:
        self.script, self.frame, self.seen = script, frame, seen
        self.intent: Intent = script.spec.intents[frame.intent]
        self.known: dict[str, Any] = {"caller": caller, "today": script.spec.today, **frame.slots}

    def next(self) -> Move:
        try:
            for number, step in enumerate(self.intent.steps):
                self._take(number, step)
        except _Stop as stop:
            return stop.move
        return Move("finished", self.known)

    def _stop(self, kind: str, number: int = -1, **more: Any) -> _Stop:
        return _Stop(Move(kind, self.known, number, **more))

    def _need(self, get: Callable[[], Any]) -> Any:
        """A value, after the slots that it needs are known. A slot that is not known is looked up or asked for."""
        while True:
            try:
                return get()
            except Unknown as missing:
                if missing.name not in self.intent.slots:
                    raise KeyError(f"{self.script.name}: {self.frame.intent} refers to {missing.name!r}") from None
                self._learn(missing.name)

    def _learn(self, slot: str) -> None:
        """Find the record that a caller has described; else ask."""
        how = self.script.spec.slots[slot].described
        described = self.frame.described.get(slot)
        if how is None or described is None:
            raise self._stop("ask", slot=slot)
        listed = self._look(how.look, how.args, slot)
        found = [r for r in rows(listed.get(how.list)) if holds({how.match: described}, self.known, r)]
        if len(found) != 1:
            raise self._stop("missing", slot=slot)
        self.known[slot] = found[0][how.id]

    def _look(self, tool: str, args: Mapping[str, Any], slot: str = "") -> Any:
        """The result of a look-up, which is asked for if it is not there yet."""
        given = self._need(lambda: {k: resolve(v, self.known) for k, v in args.items()})
        key = call_key(tool, given)
        if key not in self.frame.looked:
            if key not in self.seen:
                raise self._stop("call", tool=tool, args=given, slot=slot)
            self.frame.looked[key] = self.seen[key]
        result = self.frame.looked[key]
        if result is None:
            named = [v[1:] for v in args.values() if isinstance(v, str) and v[1:] in self.intent.slots]
            raise self._stop("missing", slot=slot or (named[0] if named else ""))
        return result

    def _applies(self, step: Step) -> bool:
        """Whether a step's condition lets it act; without one it does."""
        if step.when is not None and not self._need(lambda: holds(step.when or {}, self.known)):
            return False
        return step.unless is None or not self._need(lambda: holds(step.unless or {}, self.known))

    def _take(self, number: int, step: Step) -> None:
        verb = step.verb
        if not self._applies(step):
            return
        if verb == "look":
            self.known[step.name or step.look or ""] = self._look(step.look or "", step.args)
        elif verb == "pick":
            self._pick(number, step)
        elif verb == "unavailable":
            offered = rows(self._need(lambda: lookup((step.offer or "").removeprefix("$"), self.known)))
            raise self._stop("unavailable", number, slot=step.unavailable or "", options=tuple(offered))
        elif verb == "write":
            if number in self.frame.written:
                self.known[step.name or "result"] = self.frame.written[number]
                return
            args = self._need(lambda: {k: resolve(v, self.known) for k, v in step.args.items()})
            raise self._stop("write", number, tool=step.write or "", args=args)
        elif verb == "refuse":
            if not self.frame.over:
                raise self._stop("refuse", number)
        else:
            raise self._stop(verb, number)

    def _pick(self, number: int, step: Step) -> None:
        several = rows(self._need(lambda: resolve(step.source, self.known)))
        found = self._need(lambda: [r for r in several if holds(step.where, self.known, r)])
        if found:
            self.known[step.name or step.pick or ""] = found[0]
        elif step.refuse is not None:
            raise self._stop("refuse", number)
        else:
            fit = self._need(lambda: [r for r in several if holds(step.among, self.known, r)])
            options = tuple(dict.fromkeys(r[step.offer] if step.offer else r for r in fit))
            raise self._stop("unavailable", number, slot=step.unavailable or "", options=options)
