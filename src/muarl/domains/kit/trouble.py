"""How the scripted expert gets along with systems that fail: what it takes for a failure, and how it finds out whether
a write that was not answered has been carried out.

It goes by what any agent is shown, the texts of answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from muarl.domains.kit.moves import ANEW, Move, Request, looked_up
from muarl.domains.kit.records import same
from muarl.types.chat import Message, ToolCall

if TYPE_CHECKING:
    from muarl.domains.kit.service import Service

TRIES = 4
"""How often a call is made at most while the system fails."""

Trouble = Literal["time-out", "outage", "permission", "withdrawn", "unknown", "cut", ""]

_ERRORS: tuple[tuple[Trouble, re.Pattern[str]], ...] = (
    ("time-out", re.compile(r"\b504\b|\btimed out after\b")),
    ("outage", re.compile(r"\b50[023] (?:Bad Gateway|Service Unavailable|Internal Server Error)\b")),
    ("withdrawn", re.compile(r"\b403 Forbidden\b.*\bwithdrawn\b")),
    ("permission", re.compile(r"\b403 Forbidden\b")),
    (
        "unknown",
        re.compile(
            r"^Error: (?:null|undefined|0x[0-9A-Fa-f]{4,}|ORA-\d+|\[object Object\]|Unexpected token .*"
            r"|.*\breturned code -?\d+)$"
        ),
    ),
)
_CUT = re.compile(r"\n\[truncated: [^\]\n]*\]\Z")
_NEW_NAME = re.compile(r'(?m)(?P<before>"|^|; |: |> |- )(?P<name>[a-z][a-z_.]*)_v2(?P<after>":|[:>]? )')


def trouble_in(message: Message) -> Trouble:
    """What is wrong with the system, by a tool's answer; empty where nothing is, or the tool itself refuses."""
    text = message.content or ""
    if message.error:
        return next((kind for kind, pattern in _ERRORS if pattern.search(text)), "")
    return "cut" if _CUT.search(text) else ""


def understood(text: str) -> str:
    """An answer without the mark of a cut, its fields under the names that they had before a new version."""

    def old(match: re.Match[str]) -> str:
        key = match["before"] == '"'
        return match[0] if key != (match["after"] == '":') else f"{match['before']}{match['name']}{match['after']}"

    return _NEW_NAME.sub(old, _CUT.sub("", text))


Look = tuple[str, Mapping[str, Any], Any]
"""A look-up: its tool, its arguments, and what it showed before the write; NOT_SEEN where it was not made."""
NOT_SEEN = object()
LISTINGS = 3
"""How many look-ups that were not made before it are made at most to find out about one write."""


@dataclass(slots=True)
class Doubt:
    """A write of which nobody knows whether it was carried out."""

    call: ToolCall
    move: Move | None
    looks: list[Look]
    """Look-ups by which it can be told: one that was made before shows something else now, or one that was not shows a
    record like the write's arguments."""


@dataclass(slots=True)
class RetryState:
    """What becomes of a call that the system has failed."""

    again: tuple[ToolCall, Move | None] | None = None
    """The call that is to be made again."""
    doubt: Doubt | None = None
    """The write of which it must be found out first whether it was carried out."""
    stuck: ToolCall | None = None
    """The call that nothing helps."""
    doubtful: bool = False
    """Nobody knows what came of ``stuck``."""
    tries: int = 0
    """Failed tries in a row."""
    look_tries: int = 0
    """Failed tries of a doubt's look-up."""
    relooks: int = 0
    """How often a look-up was made again because its answer made no sense."""

    @property
    def waiting(self) -> bool:
        """Whether there is something to do before anything else."""
        return self.again is not None or self.doubt is not None or self.stuck is not None

    def failed(self, trouble: Trouble, call: ToolCall, move: Move | None, looks: list[Look] | None) -> None:
        """Take in a failure. ``looks``: those by which a write can be told, None for a call that writes nothing."""
        if self.doubt is None:
            self.tries += 1
        else:
            self.look_tries += 1
        doubtful = looks is not None and trouble in ("time-out", "unknown")
        if (
            trouble == "withdrawn"
            or max(self.tries, self.look_tries) >= TRIES
            or (trouble == "time-out" and looks == [])
        ):
            self.stuck = call if self.doubt is None else self.doubt.call
            self.doubtful, self.doubt = doubtful or self.doubt is not None, None
        elif doubtful and looks:
            self.doubt = Doubt(call, move, looks)
        else:
            self.again = call, move

    def learn(self, answer: Any) -> bool:
        """What the first of the doubt's look-ups shows now: whether the write was carried out. It is made again where
        none of them shows anything new."""
        doubt, self.look_tries = self.doubt, 0
        assert doubt is not None
        _, asked, before = doubt.looks.pop(0)
        arguments = {name: value for name, value in doubt.call.arguments.items() if name not in asked}
        if (answer != before) if before is not NOT_SEEN else holds(answer, arguments):
            self.doubt = None
            return True
        if not doubt.looks:
            self.again, self.doubt = (doubt.call, doubt.move), None
        return False


def looks_of(request: Request, seen: Mapping[str, Any]) -> list[Look]:
    """The look-ups that a request has gone by since the last write, the last one first. ``seen``: see ``Seen``."""
    looks: dict[str, Look] = {}
    for key in reversed(request.looked):
        called = key.split(ANEW)[0]
        if called in seen:
            tool, arguments = looked_up(key)
            looks.setdefault(called, (tool, arguments, seen[called]))
    return list(looks.values())


def holds(value: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether a record within a result has two or more of these arguments as fields, or one that is a date, a time or
    an id, and none with another value."""
    if isinstance(value, list):
        return any(holds(one, arguments) for one in value)
    if not isinstance(value, Mapping):
        return False
    shared = [name for name in arguments if name in value]
    telling = len(shared) >= 2 or any(isinstance(value[name], str) and re.search(r"\d", value[name]) for name in shared)
    if telling and all(same(value[name], arguments[name]) for name in shared):
        return True
    return any(holds(one, arguments) for one in value.values())


def listings_of(service: Service, call: ToolCall, caller: Mapping[str, Any], made: list[Look]) -> list[Look]:
    """Look-ups for which only what is known is needed, such as all bookings of a guest whose id is: they show what a
    write has made. None for a write that changes a record which one of the look-ups ``made`` before it is of."""
    of_records = [
        dict(arguments) for _, arguments, _ in made if len(arguments) == 1 and not arguments.items() <= caller.items()
    ]
    if any(arguments.items() <= call.arguments.items() for arguments in of_records):
        return []
    values, before = {**caller, **call.arguments}, [(tool, dict(arguments)) for tool, arguments, _ in made]
    looks: list[Look] = []
    for tool, required in _reads(service).items():
        if required and all(name in values for name in required):
            arguments = {name: values[name] for name in required}
            looks += [(tool, arguments, NOT_SEEN)] if (tool, arguments) not in before else []
    return looks[:LISTINGS]


@lru_cache(maxsize=32)
def _reads(service: Service) -> Mapping[str, tuple[str, ...]]:
    """The tools that show data of users, with their required arguments."""
    domain = service.domain(database={}, policy="-") if service.rehearsal is None else service.domain()
    own = [s for s in domain.tool_specs() if service.tool_kinds[s.name] == "read" and s.name not in service.open_tools]
    return {spec.name: tuple(spec.parameters.get("required", ())) for spec in own}


def summary_of(call: ToolCall, caller: str, *, doubtful: bool) -> str:
    """What whoever takes over is told of a call that the system does not carry out."""
    arguments = ", ".join(f"{name} {value}" for name, value in call.arguments.items())
    doubt = " Whether it was carried out is not known." if doubtful else ""
    what = f"{call.name.replace('_', ' ')}{f' ({arguments})' if arguments else ''}"
    return f"The system fails at a request of the {caller}: {what}.{doubt}"
