"""Recipes: the kinds of requests that generated tasks are made of, and how each is served with tools.

A recipe's ``plan`` is what serves a request: it yields calls, is sent what they gave, and returns what is to be said.
The generator runs it in the task's world to find the gold calls; the scripted expert runs it on what it reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.bfcl.scenes import Size
from muarl.domains.drawing import Infeasible

Slots = dict[str, str]
"""What a request says, in its own words."""
Memory = dict[str, Any]
"""What an agent knows from earlier in the conversation: "cwd" (folders below the root), "token", and the ids of what it
made last ("order", "ticket", "post", "booking")."""
Step = tuple[str, dict[str, Any]]
"""A tool and its arguments."""
Answer = tuple[str, str]
"""What is to be said, and the part of it that was asked for; both empty where nothing was asked."""
Plan = Generator[Step, Any, Answer]
NOTHING: Answer = ("", "")


@dataclass(frozen=True, slots=True)
class Draw:
    """What a request is drawn from. ``state``: the live public state, class to attributes."""

    rng: random.Random
    size: Size
    state: Mapping[str, Mapping[str, Any]]
    memory: Memory

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of the choices. Infeasible if there is none."""
        if not choices:
            raise Infeasible
        return self.rng.choice(list(choices))


@dataclass(frozen=True, slots=True)
class Missing:
    """How a request sounds that lacks a slot. ``ask``: what an agent then asks; ``replies``: how the user gives the
    slot. ``guesses``: values that an agent might take without asking; all but the right one leave another state."""

    clauses: tuple[str, ...]
    ask: str
    replies: tuple[str, ...]
    guesses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind of request. ``apis``: the classes whose tools it needs. ``clauses``: its wordings, in the imperative and
    with the slots in braces.

    ``needs``: the login that must have come before. ``open``: its slots are free enough to tell splits apart wherever
    it stands; ``narrow``: they cannot tell splits apart at all. ``tiny``: it occurs in tiny worlds.
    """

    kind: str
    apis: tuple[str, ...]
    draw: Callable[[Draw], Slots]
    plan: Callable[[Slots, Memory], Plan]
    clauses: tuple[str, ...]
    needs: str = ""
    open: bool = False
    narrow: bool = False
    tiny: bool = False
    weight: float = 1.0
    missing: Mapping[str, Missing] = field(default_factory=dict)


def number(value: float) -> str:
    """A number as it is said: at most two decimals, none where they are zero."""
    text = f"{float(value):.2f}".rstrip("0").rstrip(".")
    return text


def quoted(text: str) -> str:
    """A text that fits between the quotation marks of a request, else Infeasible."""
    if not text or '"' in text or "\n" in text:
        raise Infeasible
    return text
