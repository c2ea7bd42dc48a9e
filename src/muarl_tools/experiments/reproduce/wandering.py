"""Agents that wander: they talk and call tools at random, and nobody is served. What the base of ``reproduce`` reads.

A base is to know what a pretrained language model knows (words, the chat format, how a call is written, that its
arguments are copied from what was said or shown) and nothing of how users are served. So its agent does not look at
what its user wants or at what the policy says. At each turn it does one of these:

- a call of a random tool (half of them: of a tool whose name has a word in common with what the user said last). The
  form of the arguments is that of a gold action of another task, and every value in it is replaced by a random one of
  the same argument that was said or shown in this conversation. Ids that were not are hardly ever used.
- a sentence, drawn from all that experts of the world say anywhere, whatever it is about, with its ids, names and
  values replaced in the same way.

Neither the order of the calls, nor when something is asked, proposed or refused, follows from anything.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.domains.scripted_expert import TRANSFER
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode

CALLS = 0.7
"""Share of the turns that are calls."""
RELATED = 0.5
"""Share of the calls that go to tools whose names have a word in common with the user's last message, if there are
any."""
TRANSFERS = 0.1
"""How often the tool that hands over (and ends the conversation) is drawn, in relation to another tool."""
STRANGE = 0.05
"""How often an id is used that was neither said nor shown."""
TRIES = 6
STEM = 4
"""Letters by which words are compared."""
COMMON = frozenset({"get", "find", "list", "details", "by", "to", "for", "the", "and", "user", "from"})
"""Words of tools' names that say little of what they do."""

Candidates = Mapping[str, Sequence[str]]
_WORD = re.compile(r"\w+|[^\w\s]")


def shape(value: str) -> str:
    """What a value looks like: its capital letters as A, other letters as a, digits as 0."""
    return re.sub(r"\d", "0", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", value)))


class Finder:
    """Finds known values in text, the longest first where one begins with another. ``values``: the ids, names and other
    values of a world."""

    def __init__(self, values: Iterable[str]) -> None:
        self._known: dict[str, list[str]] = defaultdict(list)
        for value in sorted({v.strip() for v in values} - {""}, key=lambda v: (-len(v), v)):
            self._known[_WORD.findall(value)[0] if _WORD.search(value) else value[0]].append(value)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where known values stand in a text, from left to right, without overlap."""
        end = 0
        for match in _WORD.finditer(text):
            start = match.start()
            if start < end:
                continue
            for value in self._known.get(match[0], ()):
                after = start + len(value)
                if text.startswith(value, start) and not (text[after : after + 1].isalnum() and value[-1].isalnum()):
                    yield start, after
                    end = after
                    break

    def find(self, text: str) -> list[str]:
        """The known values in a text."""
        return [text[start:end] for start, end in self.spans(text)]


@dataclass(frozen=True)
class Material:
    """What a wandering agent draws from in one world.

    ``calls``: arguments of gold actions, by tool. ``values``: what stands in them, by the argument's name. ``shapes``:
    what of that has digits looks like. ``sentences``: what experts say. ``transfer``: the tools that hand over.
    """

    calls: Mapping[str, Sequence[Mapping[str, Any]]]
    values: Mapping[str, frozenset[str]]
    shapes: Mapping[str, frozenset[str]]
    sentences: Sequence[str]
    finder: Finder
    transfer: tuple[str, ...] = (TRANSFER,)

    @classmethod
    def of(
        cls,
        tasks: Iterable[Task],
        conversations: Iterable[Episode],
        entities: Iterable[str],
        transfer: tuple[str, ...] = (TRANSFER,),
    ) -> Material:
        """From some tasks of a world, conversations of its expert, and the world's ids, names and values."""
        calls: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        values: dict[str, set[str]] = defaultdict(set)
        for action in (a for task in tasks for a in task.actions or () if a.requestor == "assistant"):
            calls[action.name].append(action.arguments)
            for name, value in leaves(action.arguments):
                values[name].add(str(value))
        said = {m.content: None for e in conversations for m in e.messages if m.role == "assistant" and m.content}
        known = [*entities, *(v for found in values.values() for v in found)]
        return cls(
            calls,
            {name: frozenset(found) for name, found in values.items()},
            {name: frozenset(shape(v) for v in found if _is_id(v)) for name, found in values.items()},
            list(said),
            Finder(known),
            transfer,
        )

    def fits(self, name: str, value: str) -> bool:
        """Whether a value may be that argument's."""
        return value in self.values.get(name, ()) or (_is_id(value) and shape(value) in self.shapes.get(name, ()))

    def alike(self, one: str, other: str) -> bool:
        """Whether one value may stand where another does: both may be the same argument's."""
        if one == other:
            return True
        if _is_id(one) or _is_id(other):
            return shape(one) == shape(other)
        return any(one in found and other in found for found in self.values.values())


def _is_id(value: str) -> bool:
    return any(c.isdigit() for c in value)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What stands in a call's arguments, each with the innermost name that it has."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, str(key))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner, name)
    elif value is not None:
        yield name, value


class WanderingSession:
    """One conversation of an agent that wanders."""

    tokens = None

    def __init__(self, material: Material, tools: Sequence[ToolSpec], seed: int) -> None:
        self._material, self._rng = material, random.Random(f"wandering {seed}")
        self._tools = [tool.name for tool in tools]
        self._seen: dict[str, None] = {}  # what was said and shown
        self._heard: set[str] = set()  # stems of what the user said last
        self._calls = 0

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Take in the values in what came, and do something."""
        for message in new:
            text = message.content or ""
            self._seen |= dict.fromkeys(self._material.finder.find(text))
            if message.role == "user":
                self._heard = {word[:STEM].lower() for word in re.findall(r"[A-Za-z]{3,}", text)}
        call = self._call() if self._rng.random() < CALLS else None
        return AgentTurn(
            Message("assistant", self._sentence()) if call is None else Message("assistant", None, (call,))
        )

    def close(self) -> None:
        """Nothing is held."""

    def _call(self) -> ToolCall | None:
        rng, related = self._rng, [name for name in self._tools if self._heard & _stems(name)]
        for _ in range(TRIES):
            tools = related if related and rng.random() < RELATED else self._tools
            name = rng.choices(tools, [TRANSFERS if tool in self._material.transfer else 1.0 for tool in tools])[0]
            if known := self._material.calls.get(name):
                arguments = self._filled(rng.choice(known))
                if arguments is not None:
                    self._calls += 1
                    return ToolCall(f"call_{self._calls}", name, arguments)
        return None

    def _filled(self, example: Any, name: str = "") -> Any:
        """The example with values that were said or shown; None where it has an id and none was."""
        if isinstance(example, Mapping):
            inner = {key: self._filled(value, str(key)) for key, value in example.items()}
            return None if any(value is None and example[key] is not None for key, value in inner.items()) else inner
        if isinstance(example, (list, tuple)):
            listed = [self._filled(value, name) for value in example]
            return None if None in listed else listed
        if example is None or isinstance(example, bool):
            return example
        text = str(example)
        if fitting := [value for value in self._seen if self._material.fits(name, value)]:
            chosen = self._rng.choice(fitting)
            return chosen if isinstance(example, str) else _number(chosen, example)
        if isinstance(example, str) and _is_id(text) and self._rng.random() >= STRANGE:
            return None
        return example

    def _sentence(self) -> str:
        sentences, rng = self._material.sentences, self._rng
        for _ in range(TRIES):
            text = self._reworded(rng.choice(sentences))
            if text is not None:
                return text
        return min((rng.choice(sentences) for _ in range(TRIES)), key=lambda s: len(self._material.finder.find(s)))

    def _reworded(self, sentence: str) -> str | None:
        """A sentence with values that were said or shown; None where one of its ids has none to take its place."""
        out, end = "", 0
        for start, stop in self._material.finder.spans(sentence):
            value = sentence[start:stop]
            fitting = [seen for seen in self._seen if self._material.alike(seen, value)]
            if not fitting and _is_id(value) and self._rng.random() >= STRANGE:
                return None
            out += sentence[end:start] + (self._rng.choice(fitting) if fitting else value)
            end = stop
        return out + sentence[end:]


def _number(text: str, example: float) -> float:
    """What was said as a number of the example's kind; the example where it is none."""
    try:
        return type(example)(text)
    except ValueError:
        return example


def _stems(name: str) -> set[str]:
    return {word[:STEM] for word in name.lower().split("_") if len(word) > 2 and word not in COMMON}


class WanderingAgent:
    """An agent that wanders in one world."""

    name = "wandering agent"

    def __init__(self, material: Material) -> None:
        self.material = material

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> WanderingSession:
        """Start a conversation; the policy is not read."""
        return WanderingSession(self.material, tools, seed)
