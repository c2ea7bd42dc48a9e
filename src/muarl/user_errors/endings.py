"""How a user ends a conversation, and whether something was still open when it did: a question, something to do, a
request that nobody spoke of, or an agent that was still at work on what the user came for.

Users who leave such an agent spoil an episode for no fault of the agent's: nothing was done, and nothing explains why
they left. The agent had not refused, handed over, said that all is done or said goodbye, and it was not stuck.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muarl.domains.auditing import guessed_kind
from muarl.domains.tasks import Action, Task
from muarl.language import acts, facts, user_acts
from muarl.language.acts import asks_for_yes
from muarl.language.consent import is_affirmative
from muarl.language.scenarios import requests
from muarl.types.chat import STOP_WORDS, Message, visible_to_user

STOP, TRANSFER, OUT_OF_SCOPE = STOP_WORDS

_LOOKS_UP = re.compile(r"(get|find|search|list|check|calculate|think|transfer)_?")
_TELLING = frozenset({"order_id", "reservation_id", "address1", "bill_id", "line_id", "task_id", "title", "amount"})
"""Arguments of gold actions that tell one request from another, and that somebody must say aloud."""

ENDS_ON_YES = "asks for something and ends before it can be done"
"""What ``ended_early`` says of a yes, or an order, with a stop word."""

UNHEARD = 5
"""Telling words that a request must have at least, for it to count as unspoken because none of them was heard."""

_EXPLANATIONS = (acts.may_refuse, acts.may_hand_over, acts.may_have_done)
"""What an agent may have done that explains why a user leaves."""
ALIKE = 0.6
"""The share of two messages' telling words that are the same, from which on one says the other again."""
FAILURES = 2
"""Failed calls from which on an agent counts as stuck."""
_PLAIN = """
    a about again all am an and any are as at be before but by can could do does first for from give go have help how i
    if in is it its know like may me more my need now number of ok okay on or order our please s said so some still sure
    tell thank thanks that the them then there this to us want was we what when which who will with would yes you your
    yours
"""
_FILLERS = frozenset(_PLAIN.split())


def ended_early(task: Task, messages: Sequence[Message], has_tools: bool) -> str | None:
    """What was still open when the user ended the conversation with its last message; None if nothing was.

    ``has_tools``: whether the user could act on its own side.
    """
    last = messages[-1].content or ""
    word = next((w for w in STOP_WORDS if w in last), None)
    if word is None:
        return None
    text = last.replace(word, " ").strip()
    spoken = [m for m in visible_to_user(messages[:-1]) if m.role == "assistant"][(0 if task.history else 1) :]
    words = [m.content or "" for m in spoken]
    if not words:
        return f"{word} before the agent said a word"
    if word == TRANSFER:
        called = any(c.name.startswith("transfer") for m in messages for c in m.tool_calls)
        return None if called or any(acts.may_hand_over(w) for w in words) else "###TRANSFER### without any transfer"
    if word == OUT_OF_SCOPE:
        return None
    return (
        _unanswered(words[-1], text, has_tools, messages)
        or _abandoned(task, messages, words, text)
        or _unspoken(task, messages, words)
    )


def _unanswered(asked: str, text: str, has_tools: bool, messages: Sequence[Message]) -> str | None:
    """A question, or something to do, that the agent's work hangs on and that the end leaves without an answer."""
    parts = re.split(r"(?<=[.!?])\s+|\n+", asked.strip())[-3:]
    ending = " ".join(parts)
    asks = next((" ".join(parts[i:]) for i, part in enumerate(parts) if acts.must_be_answered(part)), "")
    open_to = acts.without_offers_of_more_help(ending)
    wants_yes = asks or asks_for_yes(open_to) or acts.waits_for_a_word(open_to)
    if user_acts.gives_order(text) or (wants_yes and is_affirmative(text)):
        return ENDS_ON_YES
    if asks and not (_offers_more(asks) or acts.may_have_done(ending) or user_acts.declines(text)):
        return "leaves the agent's request for consent without an answer"
    if acts.asks_for_details(ending) and not text and not (_offers_more(ending) or _refuses(asked)):
        return "leaves the agent's question without an answer"
    if has_tools and acts.asks_to_do(ending) and not (user_acts.declines(text) or _offers_more(ending)):
        before = _last_words(messages)
        if not any(m.role == "user" and m.tool_calls for m in messages[before + 1 :]):
            return "leaves what the agent asked for undone"
    return None


def _offers_more(text: str) -> bool:
    return acts.may_close(text) or acts.may_hand_over(text)


def _refuses(text: str) -> bool:
    return "refuse" in acts.hear(text) or acts.regrets(text)


def _last_words(messages: Sequence[Message]) -> int:
    return max((i for i, m in enumerate(messages) if m.role == "assistant" and not m.tool_calls), default=-1)


def _unspoken(task: Task, messages: Sequence[Message], words: Sequence[str]) -> str | None:
    """A request of the scenario of which neither side has said one word, though the agent was of use."""
    if _refuses(words[-1]) or any(acts.may_hand_over(w) for w in words[-2:]):
        return None
    if is_stuck(messages, words) or not any(m.role == "assistant" and m.tool_calls for m in messages):
        return None
    spoken = " ".join(m.content or "" for m in visible_to_user(messages))
    for action in task.actions or ():
        if action.requestor != "assistant" or _LOOKS_UP.match(action.name):
            continue
        telling = [v for k, v in action.arguments.items() if k in _TELLING and isinstance(v, str) and len(v) >= 4]
        values = [v for v in telling if v.lower() in task.scenario.lower()]
        if values and not any(facts.has_source(facts.StatedFact("id", v), spoken) for v in values):
            return f"never spoke of {values[0]}, which {action.name} is about"
    heard = {w[:5] for w in facts.words(spoken)}
    for request in requests(task.scenario):
        content = {w[:5] for w in request}
        if len(content) >= UNHEARD and not content & heard:
            return f"never spoke of: {' '.join(request)}"
    return None


def _abandoned(task: Task, messages: Sequence[Message], words: Sequence[str], text: str) -> str | None:
    """What the user left undone by walking away; None if it did not, or if something explains why it left.

    ``words``: what the agent said to the user after its greeting. ``text``: what the user says with its stop word.
    """
    if task.actions is None or user_acts.is_fed_up(text) or user_acts.cannot_say(text):
        return None
    writes = [a for a in task.actions if _writes(a.name)]
    if _tried(messages, {a.name for a in writes}) or is_stuck(messages, words):
        return None
    if any(explains(w) for explains in _EXPLANATIONS for w in words) or acts.may_close(words[-1]):
        return None
    if not writes:
        return "leaves the agent's first question without an answer" if _only_asked(messages, words) else None
    offered = asks_for_yes(words[-1]) or acts.offers(words[-1])
    if offered and user_acts.declines(text) and not any(_named(a, words[-1]) for a in writes):
        return None  # it may decline what is not its request
    return f"leaves before {writes[0].name}, though the agent had not refused"


def _writes(name: str) -> bool:
    return guessed_kind(name) == "write"


def _tried(messages: Sequence[Message], names: set[str]) -> bool:
    """Whether either side tried what the task wants, or anything else that writes, or the agent handed over."""
    calls = (call.name for message in messages for call in message.tool_calls)
    return any(name in names or name.startswith("transfer") or _writes(name) for name in calls)


def is_stuck(messages: Sequence[Message], words: Sequence[str]) -> bool:
    """Whether the agent said the same again, made the user say the same again, or failed with its calls."""
    failed = sum(m.role == "tool" and m.error and m.requestor == "assistant" for m in messages)
    said = [m.content or "" for m in messages[:-1] if m.role == "user" and not m.tool_calls]
    return failed >= FAILURES or _again(words) or _again(said)


def alike(one: str, other: str) -> bool:
    """Whether a text says, in much the same words, what another says."""
    return one == other or _shared(_telling(one), _telling(other))


def _again(texts: Sequence[str]) -> bool:
    """Whether a text says, in much the same words, what one before it said."""
    word_sets = [_telling(text) for text in texts]
    return any(_shared(a, b) for i, a in enumerate(word_sets) for b in word_sets[:i])


def _telling(text: str) -> frozenset[str]:
    return frozenset(w[:5] for w in facts.words(text) if w not in _FILLERS)


def _shared(a: frozenset[str], b: frozenset[str]) -> bool:
    both = len(a & b)
    return bool(a and b) and both >= ALIKE * min(len(a), len(b)) and (both > 1 or a == b)


def _only_asked(messages: Sequence[Message], words: Sequence[str]) -> bool:
    """Whether the agent has done nothing yet but ask."""
    acted = any(m.role == "assistant" and m.tool_calls for m in messages)
    return not acted and all(w.rstrip().endswith("?") for w in words)


def _named(action: Action, proposal: str) -> bool:
    """Whether a proposal names every id, number and date of a gold action, and so is the request itself."""
    said = facts.words(proposal)
    numbers = {float(n) for n in re.findall(r"\d+(?:\.\d+)?", proposal)}
    telling = [v for v in _leaves(action.arguments) if isinstance(v, (int, float)) or re.search(r"\d", v)]
    return bool(telling) and all(
        v in numbers if isinstance(v, (int, float)) else all(w in said for w in facts.words(v)) for v in telling
    )


def _leaves(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, (str, int, float)):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _leaves(inner)
