"""Labelled ends of conversations: did the user leave too soon? And what the rule ``stops_early`` makes of it.

    PYTHONPATH=src:tests python -m support.early_stops        # the table of docs/history/evaluation.md

``early``: the user left while the agent was at work on what the user had come for. Nothing of it was done, and the
agent had neither refused, nor handed over, nor said that all was done, nor shown that it would lead nowhere (the same
question again, words without sense, calls that fail again and again). ``fine``: every other end. A user who lets go of
just what its scenario wants is early; one who declines something else is not.

The cases of user_errors/early_stops/held.txt were labelled before the rule was written, and the rule was not changed
because of them; by those of tune.txt it was. A case begins with "== name | goal | label"; its lines begin with ``A:``
(the agent speaks), ``A!`` (the agent calls that tool, and what it answers), ``A!!`` (the same, answered by an error),
``U:`` (the user speaks) or ``U!`` (the user calls that tool).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from muarl.domains.tasks import Action, Task
from muarl.types.chat import GREETING, Message, ToolCall, ToolSpec
from muarl.user_errors.errors import UserError, find_user_errors
from support import audited

CASES = Path(__file__).parent.parent / "user_errors" / "early_stops"
SPLITS = ("tune", "held")
PHONE = tuple(
    ToolSpec(name, name, {"type": "object", "properties": {}}) for name in ("toggle_airplane_mode", "check_status_bar")
)


def _task(scenario: str, *actions: Action, agenda: bool = False) -> Task:
    return Task("goal", "shop", scenario, actions, agenda={"requests": []} if agenda else None)


_LAMP = Action("exchange_delivered_order_items", {"order_id": "#W5512087", "item_ids": ["4471093320"]})
_RETURN = Action("return_delivered_order_items", {"order_id": "#W3390812", "item_ids": ["7720915538"]})
_FLIGHT = Action("update_reservation_flights", {"reservation_id": "MZDDS4", "flights": ["HAT101"]})
GOALS = {
    "lamp": _task("You are Nils Aumann, 40217. You want to exchange the table lamp in #W5512087 for one with a linen "
                  "shade. If there is none, you keep yours.", _LAMP),
    "return": _task("You are Tom Quill, tom.quill4410@example.com. You want to return all of #W3390812, which came too "
                    "late for your sister's wedding.", Action("get_order_details", {"order_id": "#W3390812"}), _RETURN),
    "flight": _task("You are mara_lund_5120. You want to move your flight in MZDDS4 to May 24.", _FLIGHT),
    "refused-flight": _task("You are lotte_vink_3301. You want to cancel QK7RZ2, if your money is paid back."),
    "books": _task("Your Dune in order #B1042 has a torn cover. You want half of the price back.",
                   Action("refund", {"order_id": "#B1042", "amount": 6.0, "reason": "damaged"})),
    "clinic": _task("You are Jo Marsh, born 1990-04-02. You want to move your appointment to Friday, at any time.",
                    Action("find_patient", {"name": "Jo Marsh"}), Action("move_appointment", {"day": "Friday"})),
    "hours": _task("You want to know what your order #B1042 cost.", Action("get_order", {"order_id": "#B1042"})),
    "signal": _task("Your phone, 555-246-8113, shows No Service. You are at home, and do what the agent suggests.",
                    Action("toggle_airplane_mode", {}, requestor="user")),
    "agenda-lamp": _task("You want to exchange the table lamp in #W5512087. You are Nils Aumann, 40217.", _LAMP,
                         agenda=True),
    "agenda-return": _task("You want to return #W3390812. You are Tom Quill, tom.quill4410@example.com.", _RETURN,
                           agenda=True),
    "agenda-flight": _task("You want to move your flight in MZDDS4 to May 24. Your user id is mara_lund_5120.", _FLIGHT,
                           agenda=True),
}  # fmt: skip
"""By name, tasks: what the user wants, and the calls that would have been right."""


@dataclass(frozen=True)
class Case:
    """One conversation and its label."""

    name: str
    goal: str
    split: str
    early: bool
    messages: tuple[Message, ...]

    @property
    def errors(self) -> tuple[UserError, ...]:
        """The rule's findings."""
        tools = PHONE if self.goal == "signal" else ()
        found = find_user_errors(GOALS[self.goal], self.messages, user_tools=tools)
        return tuple(e for e in found if e.rule == "stops_early")


def _conversation(lines: Sequence[str]) -> Iterator[Message]:
    yield Message("assistant", GREETING)
    for number, line in enumerate(lines):
        mark, _, text = line.partition(" ")
        side: Literal["assistant", "user"] = "assistant" if mark[0] == "A" else "user"
        if mark[1:] == ":":
            yield Message(side, text)
        elif mark[1:] in ("!", "!!"):
            name, _, result = text.partition(" ")
            call = ToolCall(f"c{number}", name, {}, requestor=side)
            yield Message(side, None, (call,))
            yield Message("tool", result, tool_call_id=call.id, name=name, error=mark[1:] == "!!", requestor=side)
        else:
            raise ValueError(f"{line!r} does not begin with A:, A!, A!!, U: or U!")


@cache
def cases() -> tuple[Case, ...]:
    """All cases."""
    out = []
    for split in SPLITS:
        text = (CASES / f"{split}.txt").read_text(encoding="utf-8")
        for block in text.split("== ")[1:]:
            head, *lines = block.strip().splitlines()
            name, goal, label = (part.strip() for part in head.split("|"))
            if label not in ("early", "fine"):
                raise ValueError(f"{name}: the label must be early or fine, not {label!r}")
            out.append(Case(name, goal, split, label == "early", tuple(_conversation(lines))))
    return tuple(out)


@dataclass(frozen=True)
class Score(audited.Score):
    """``left_alone``: ends that were rightly not found, besides what was found and missed."""

    left_alone: int


def score(split: str) -> Score:
    """How the rule did on a split."""
    own = [c for c in cases() if c.split == split]
    found = [bool(c.errors) for c in own]
    pairs = [(c.early, f) for c, f in zip(own, found, strict=True)]
    return Score(*(pairs.count(pair) for pair in ((True, True), (False, True), (True, False), (False, False))))


def table() -> str:
    """The table of docs/history/evaluation.md."""
    lines = ["| conversations | ended early | ended well | precision | recall |", "|---|---:|---:|---:|---:|"]
    for split, name in zip(SPLITS, ("tuned on", "held out"), strict=True):
        s = score(split)
        early, well = s.right + s.missed, s.false + s.left_alone
        lines.append(f"| {name} | {early} | {well} | {s.precision:.2f} | {s.recall:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
