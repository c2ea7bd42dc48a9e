"""What a plan is run with and what comes of it: a request as far as it is known, and the next move."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from muarl import moved
from muarl.domains.kit.authority import Limit
from muarl.domains.kit.device import Step

MoveKind = Literal[
    "ask", "call", "missing", "refuse", "transfer", "unavailable", "answer", "write", "instruct", "finished", "declined"
]  # fmt: skip
ENDS = ("refuse", "transfer", "unavailable", "declined")
"""How a request may end other than by being served."""


@dataclass(slots=True)
class Request:
    """One request as far as it is known: its intent, its slots, descriptions of records, and what has been done."""

    intent: str
    slots: dict[str, Any] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    confirmed: bool = False
    looked: dict[str, Any] = field(default_factory=dict)
    """Results of look-ups that it went by, which stay as they were when it has written."""
    written: list[Any] = field(default_factory=list)
    """Results of its writes, in order, those that were refused as ``WriteRefusal``."""
    reported: list[dict[str, Any]] = field(default_factory=list)
    """What the user told of each step."""
    over: bool = False
    """Conditions that refuse are passed over."""
    alone: bool | None = None
    """Nobody is asked for approval (an expert with errors; None: not decided yet)."""
    others: bool = False
    """The user says that it is about somebody else's things."""
    unsure: bool = False
    """The result of a write is not known, only that it was carried out."""
    put_off: bool = False
    """The system failed at it, and others were served first."""

    def forget_refusals(self) -> None:
        """Try again what was refused: something about the request has changed."""
        while self.written and isinstance(self.written[-1], WriteRefusal):
            self.written.pop()


class WriteRefusal(str):
    """What a tool answered that refused a write. It is false, and the text is there to be looked into."""

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Move:
    """What is to be done next."""

    kind: MoveKind
    """"ask" (``slot``), "call" (``tool``, ``arguments``), "missing" (there is no such record: ``slot``), "refuse",
    "transfer", "unavailable" (``slot``, ``options``; None: any other value may do), "answer", "write" (``tool``,
    ``arguments``; without ``texts`` it needs no yes of its own), "instruct" (the user takes ``step``), "finished", or
    "declined" (by the colleague who was asked)."""
    known: Mapping[str, Any]
    """What ``texts`` are filled from."""
    slot: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    """Wordings of what is said."""
    tell: tuple[str, ...] = ()
    """What an answer must hold."""
    options: tuple[Any, ...] | None = ()
    conditional: bool = False
    """Whether it hangs on a condition that an expert may ignore."""
    fails: str = ""
    """See ``Plan.write``."""
    place: str = field(default="", compare=False, repr=False)
    """Of a call, its line."""
    step: Step | None = None
    limit: Limit | None = field(default=None, compare=False, repr=False)
    """Of a write that asks the colleague, why the agent may not go on alone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A place where a plan may end otherwise than by serving the request."""

    kind: MoveKind
    text: str
    """What it says there, or the slot that is to be chosen anew."""
    numbers: tuple[str, ...] = field(default=(), compare=False)
    """Numbers of the policy's rules that it keeps."""
    place: str = field(default="", compare=False)
    """Its line, as "FILE:LINE"."""

    def also(self, numbers: tuple[str, ...]) -> Rule:
        """The same, which keeps these rules of the policy, too."""
        return replace(self, numbers=(*dict.fromkeys((*self.numbers, *numbers)),))


@dataclass
class Notes:
    """What a trial run meets."""

    rules: list[Rule] = field(default_factory=list)
    """Rules of the plan, which the run passes over."""
    texts: list[str] = field(default_factory=list)
    """All texts of the plan."""
    proposals: dict[str, set[str]] = field(default_factory=dict)
    """Wordings of proposals, by writing tool."""
    slots: set[str] = field(default_factory=set)
    """Slots that the run goes by."""
    cited: list[Rule] = field(default_factory=list)
    """Writes (``text``: the tool) and answers that keep numbered rules of the policy."""

    def add(self, rule: Rule, texts: tuple[str, ...]) -> None:
        """Note a rule, unless it is known; further numbers of one that is are added."""
        _merge(self.rules, rule)
        self.hear(texts)

    def cite(self, rule: Rule) -> None:
        """Note the numbers of the policy's rules that a write or an answer keeps."""
        if rule.numbers:
            _merge(self.cited, rule)

    def hear(self, texts: tuple[str, ...]) -> None:
        """Note texts."""
        self.texts += [text for text in texts if text not in self.texts]


def _merge(rules: list[Rule], rule: Rule) -> None:
    if rule in rules:
        place = rules.index(rule)
        rules[place] = rules[place].also(rule.numbers)
    else:
        rules.append(rule)


Seen = Mapping[str, Any]
"""Results of look-ups by ``call_key``; None for one that failed."""


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """What tells one look-up from another."""
    return f"{tool} {json.dumps(dict(arguments), sort_keys=True, default=str)}"


ANEW = "\n"
"""What stands between a look-up and how much was done before it; no look-up's arguments have a line break of theirs."""


def looked_up(key: str) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of a look-up that a request has gone by."""
    tool, arguments = key.split(ANEW)[0].split(" ", 1)
    return tool, json.loads(arguments)


moved.keep_old_names(__name__)
