"""What users have at hand themselves, such as a phone: steps that the agent asks for, and troubles that they end.

    NETWORK = Step("network", says="Please check your network status.", calls=[("check_network_status", {})])
    AIRPLANE_OFF = Step("airplane", says="Please turn off airplane mode.", calls=[("toggle_airplane_mode", {})],
                        sets={"airplane": "off"})

    @intent(says="have service on my phone again", trouble=Trouble(shown_by="check_status_bar", ...))
    def no_service(it: Plan) -> None:
        if it.instruct(NETWORK).airplane == "on":
            it.instruct(AIRPLANE_OFF)

The rule-based user does what it is told with its own tools and tells what they show; the plan ends once that shows the
trouble to be over.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl import moved
from muarl.basics.errors import ConfigError
from muarl.basics.patterns import problem_of
from muarl.domains.tasks import Action

UserCall = tuple[str, Mapping[str, Any]]
"""A call of one of the user's tools: its name and arguments."""
Facts = Mapping[str, str]
"""What a device shows, by name."""
InitialCall = Mapping[str, Any]
"""An initial action or an assertion of a task: env_type, func_name, arguments."""
OVER = "over"
"""Among the facts that a user reports: whether the trouble is over."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that users do, or look at, when they are asked to."""

    name: str
    says: str | Sequence[str] = ()
    """The agent's words."""
    calls: Sequence[UserCall] = ()
    """The user's tools for it, in order; none: to see whether the trouble is over."""
    sets: Facts = field(default_factory=dict)
    """Facts that hold then."""
    look: str = ""
    """A tool that shows whether they hold already, for tools that only turn a switch over."""
    heard: str = ""
    """A regular expression by which it is known in any agent's words; empty: by ``says``."""

    def __post_init__(self) -> None:
        if self.heard and (problem := problem_of(self.heard)) is not None:
            raise ConfigError(f"step {self.name}: heard: {self.heard!r} is no regular expression: {problem}")

    @property
    def wordings(self) -> tuple[str, ...]:
        """What the agent may say for it."""
        return (self.says,) if isinstance(self.says, str) else tuple(self.says)

    def asked_in(self, text: str) -> bool:
        """Whether an agent's words ask for it."""
        if self.heard:
            return re.search(self.heard, text, re.IGNORECASE) is not None
        return any(words.lower().rstrip(".!?") in text.lower() for words in self.wordings)


@dataclass(frozen=True, kw_only=True)
class Device:
    """What users have at hand."""

    read: Callable[[str], Facts]
    """The facts in the answer of one of its tools."""
    words: Mapping[str, Mapping[str, str]]
    """By fact, how users tell its values."""
    steps: Sequence[Step] = ()
    """What users may be asked to do."""
    hear: Callable[[str], Sequence[Step]] | None = None
    """Where patterns do not do, a function that finds the steps that an agent's words ask for."""
    given: Callable[[Any], Sequence[InitialCall]] | None = None
    """Initial actions by which it becomes that of the user whose record it is given."""

    def asked(self, text: str) -> list[Step]:
        """The steps that an agent's words ask for."""
        return list(self.hear(text)) if self.hear else [step for step in self.steps if step.asked_in(text)]

    def tell(self, facts: Facts) -> str:
        """Facts in a user's words, those that have any."""
        return ", ".join(words[facts[name]] for name, words in self.words.items() if facts.get(name) in words)

    def told(self, text: str) -> dict[str, str]:
        """The facts that a user's words tell."""
        by_word = {word.lower(): (name, value) for name, words in self.words.items() for value, word in words.items()}
        longest = sorted(by_word, key=len, reverse=True)
        if not longest:
            return {}
        mentioned = re.findall("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest), text.lower())
        return dict(by_word[word] for word in mentioned)

    def report(self, facts: Facts, *, over: bool) -> dict[str, Any]:
        """What plans get of a step: all facts by name, "" for those that were not told."""
        return {**dict.fromkeys(self.words, ""), **facts, OVER: over}


@dataclass(frozen=True)
class BrokenDevice:
    """What is wrong in one task."""

    initial_actions: Sequence[InitialCall]
    """Break it."""
    checks: Callable[[Mapping[str, Any]], Sequence[InitialCall]]
    """Given the values of the request's slots, the assertions that hold when it was dealt with rightly."""
    names: Sequence[str] = ()
    """What reports call it."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What a request is about that ends once the user's device shows it."""

    shown_by: str
    """The user's tool that shows whether it is over."""
    over: Callable[[Facts], bool]
    """Says from that tool's facts whether it is over."""
    breaks: Callable[[random.Random, Any, str, bool], BrokenDevice | None]
    """Draws what is wrong, given chance, what draws may look at (``declaration.DrawContext``), the split, and whether
    the agent can end it; None where the request has no place for it."""


CallUser = Callable[[str, Mapping[str, Any]], str]
"""Calls one of the user's tools and gives the text of its answer."""


def take(
    device: Device, step: Step, call: CallUser, trouble: Trouble | None, changes: Callable[[str], bool]
) -> StepOutcome:
    """Take a step as a user does who does what it is told, and see whether the trouble is over if that may be."""
    facts: dict[str, str] = dict(device.read(call(step.look, {}))) if step.look else {}
    actions: list[Action] = []
    if not step.look or any(facts.get(name) != value for name, value in step.sets.items()):
        for tool, arguments in step.calls:
            facts |= device.read(call(tool, arguments))
            if changes(tool):
                actions.append(Action(tool, dict(arguments), "user"))
    facts |= step.sets
    over = False
    if trouble is not None and (actions or not step.calls):
        proof = device.read(call(trouble.shown_by, {}))
        over = trouble.over(proof)
    return StepOutcome(facts, over, actions)


@dataclass(frozen=True)
class StepOutcome:
    """What a step has shown, whether the trouble is over, and what was changed."""

    facts: Facts
    over: bool
    actions: Iterable[Action]


moved.keep_old_names(__name__)
