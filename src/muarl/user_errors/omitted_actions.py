"""Users who say that they did something on their device, and did not: there is no tool call that does it.

Which actions a device has is read from the declarations of the user's own tools: the words of a tool's name, and the
verbs of its description's first sentence (``DeviceAction``). No device is known by name, so that this holds for tools
of any environment, and for those of other programs that talk through ``muarl user proxy``.

Found are

- a claim that names what an action is about ("I turned off airplane mode"), where the agent has spoken of it and no
  tool that is about it was called in the whole conversation;
- a claim that names nothing ("Done.", "I turned it off"), or a new state ("It's off now"), in answer to an agent that
  asks for an action, where no tool at all was called since.

Claims about what was before the call count as none, and neither does one that any fitting tool explains: something is
missed rather than seen where there is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from muarl.language.acts import asks_to_do
from muarl.language.user_acts import claimed_deeds, claims_done
from muarl.user_errors.conversation import UserConversation

_LOOKS = frozenset({
    "check", "get", "find", "list", "search", "show", "view", "read", "look", "see", "can", "is", "has", "measure",
    "checks", "gets", "finds", "lists", "searches", "shows", "displays", "returns", "measures", "reads", "tells",
})  # fmt: skip
"""First words of names and descriptions of tools that change nothing."""
_WHOLE = frozenset({"device", "phone", "computer", "machine", "system", "router"})
"""Words in names of tools for all of what the user has at hand."""
_GENERAL = _WHOLE | {"settings", "setting", "mode", "status", "preference", "preferences", "card", "request", "app"}
"""Words in names of tools that do not tell one action from another, if there are others."""
CLAIMS = 50
"""Claims of one message that are looked at; nobody makes more."""
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class DeviceAction:
    """What one of the user's tools does."""

    tool: str
    about: frozenset[str]
    """The words of its name that say to what, such as "data" and "saver"; none where it does it to the whole device."""
    verbs: frozenset[str]
    """The stems of the words for doing it."""

    def is_meant(self, words: frozenset[str], verb: str = "") -> bool:
        """Whether words are about it. Of the whole device, ``verb`` tells what is done to it."""
        return self.about <= words if self.about else bool(self.verbs & ({_stem(verb)} if verb else stems(words)))


@lru_cache(maxsize=64)
def device_actions(tools: tuple[tuple[str, str], ...]) -> tuple[DeviceAction, ...]:
    """The actions of a device, from its tools' names and descriptions; without those that only show something."""
    out = []
    for name, description in tools:
        verb, *about = _words(name)[:12] or [""]
        words = _words(re.split(r"[.(]", description, maxsplit=1)[0])
        if verb in _LOOKS or (words and words[0] in _LOOKS):
            continue
        verbs = {verb, *words[:1], *(word for word in words if word.endswith("ing"))}
        own = frozenset(about)
        out.append(DeviceAction(name, own - _GENERAL or own - _WHOLE, stems(verbs - {""})))
    return tuple(out)


def omitted_action(talk: UserConversation, turn: int) -> str | None:
    """What the user claims in a message to have done and has not; None if nothing of the kind."""
    message = talk.messages[turn]
    actions = device_actions(tuple((tool.name, tool.description[:400]) for tool in talk.tool_specs))
    if not actions or message.tool_calls or not talk.said or turn == talk.said[0]:
        return None
    text = talk.text(turn)
    claims = claimed_deeds(text)[:CLAIMS]
    heard = [frozenset(_words(talk.messages[i].content or "")) for i in talk.agent if i < turn] if claims else []
    called = {call.name for m in talk.messages[:turn] if m.role == "user" for call in m.tool_calls}
    for verb, clause in claims:
        meant = _most_precise(actions, clause, verb)
        names = {action.tool for action in meant}
        if not names & called and any(action.is_meant(words) for words in heard for action in meant):
            return f"{verb} {clause}".strip()[:100] + f", without a call of {' or '.join(sorted(names))}"
    done = claims_done(text)
    index, asked = talk.asked(turn)
    if done is None or talk.calls_between(index, turn):
        return None
    requested = _asked_for(actions, asked)
    return f"{done[:100]}, without a call of {' or '.join(sorted(a.tool for a in requested))}" if requested else None


def _asked_for(actions: Sequence[DeviceAction], asked: str) -> list[DeviceAction]:
    """The actions that an agent's words ask for."""
    sentences = [s for s in re.split(r"(?<=[.!?])\s+|\n+", asked) if asks_to_do(s)]
    return [action for sentence in sentences for action in _most_precise(actions, sentence)]


def _most_precise(actions: Iterable[DeviceAction], text: str, verb: str = "") -> list[DeviceAction]:
    """The actions that words are about, without those that another one says more precisely: "data saver" is not about
    data. What is done to the whole device counts only where nothing else is meant."""
    words = frozenset(_words(text))
    meant = [action for action in actions if action.is_meant(words, verb)]
    named = [a for a in meant if a.about and not any(a.about < other.about for other in meant)]
    return named or meant


def stems(words: Iterable[str]) -> frozenset[str]:
    """The stems of words."""
    return frozenset(map(_stem, words))


def _stem(word: str) -> str:
    """A verb without its ending, roughly: "restarted" and "restarts" are one, and so are "resetting" and "reset"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _words(text: str) -> list[str]:
    """Lower-case words and numbers; "Wi-Fi" is one word, as names of tools have it."""
    return _WORD.findall(text.lower().replace("_", " ").replace("wi-fi", "wifi").replace("re-", "re"))
