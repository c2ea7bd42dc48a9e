"""Users who leave an agent that is still at work on what they came for.

Nothing of it was done, and nothing in the conversation explains why they left: the agent had not refused, handed over,
said that all is done or said goodbye, and it was not stuck. Such an episode scores 0 for no fault of the agent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muarl.domains.auditing import guessed_kind
from muarl.domains.base import Action, Task
from muarl.language.acts import asks_for_yes
from muarl.rewards import facts
from muarl.types.chat import Message

_REFUSES = re.compile(
    r"\b(?:unable|cannot|can['’]?t|could ?n['’]t|could not|won['’]t|will not|unfortunately|afraid|ineligible"
    r"|unavailable"
    r"|not (?:be )?(?:able|possible|eligible|allowed|permitted|available|found|authori[sz]ed|refundable)"
    r"|(?:does|do|did) ?n(?:['’]t|ot) (?:allow|permit|cover|have|find|answer|go through|work|exist|match)"
    r"|only \w+ (?:\w+ )?(?:is|are|can)\b|no longer|against (?:the|our) (?:rules|policy)|polic(?:y|ies)"
    r"|there (?:is|are|was|were) (?:no|nothing|only)|(?:out of stock|sold out)|nothing (?:that )?(?:i|we) can"
    r"|belongs to (?:another|somebody|someone)|(?:problem|issue|trouble) (?:on our side|with our)"
    r"|without (?:a|any) refund)",
    re.IGNORECASE,
)
_HANDS_OVER = re.compile(
    r"\btransfer|\b(?:human|live|another|different) (?:agent|representative|person)|\bcolleague|\bescalat"
    r"|\bsupervisor|\b(?:connect|pass(?:ed|ing)?|put) you (?:on|to|through|with)|\bcall you back",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:i|we)(?:['’]ve| have) (?:now |just |already |also |successfully )?"
    r"(?!(?:found|located|looked|checked|got|received|noted|seen|pulled|retrieved|identified|verified|confirmed your"
    r"|read|understood|been|a|an|the|two|three|several|your|to|not|never)\b)\w+"
    r"|\b(?:has|have) (?:now |just |already |also |successfully )?been"
    r" (?!(?:found|located|identified|verified|received|confirmed as)\b)"
    r"|\bis now\b|\bsuccessful|^\W*done\b|\b(?:is|are) done\b|\ball set\b|\btaken care of\b"
    r"|\byou will (?:receive|get)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:anything|something|what) else\b|\bany other|\bfurther assistance|\bmore questions|\bgood ?bye\b|\bbye\b"
    r"|\b(?:thank you|thanks) for (?:calling|your call|contacting)|\bhave a (?:nice|great|good|wonderful|lovely)\b",
    re.IGNORECASE,
)
_OFFERS = re.compile(r"\b(?:would you like|do you want|which (?:one|of (?:these|those|them))|suits you)", re.IGNORECASE)
_DECLINES = re.compile(
    r"\b(?:no|nope|none|neither|never ?mind|not|don['’]?t|won['’]?t|can['’]?t|rather|instead|keep|leave it|forget"
    r"|doesn['’]?t|later|some other time|think about it|think it over|second thought|call back)\b",
    re.IGNORECASE,
)
FED_UP = re.compile(
    r"\b(?:told you|already (?:said|told|gave)|as i said|twice|again and again|(?:i['’]?m|i am) (?:fed up|done with)"
    r"|useless|ridiculous|waste of|not (?:working|helping|helpful)|isn['’]?t (?:working|helping)|leads? nowhere"
    r"|getting nowhere|give up|not work(?:ing)? for me)\b",
    re.IGNORECASE,
)
_CANNOT_SAY = re.compile(
    r"\b(?:(?:do ?n['’]?t|do not|did ?n['’]?t|can ?['’]?t|cannot|could ?n['’]?t) (?:\w+ ){0,2}(?:have|know|remember"
    r"|recall|find|tell|go on|access|provide)|no idea|not sure|have no|haven['’]?t got)\b",
    re.IGNORECASE,
)

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


def abandoned(task: Task, messages: Sequence[Message], words: Sequence[str], text: str) -> str | None:
    """What the user left undone by walking away; None if it did not, or if something explains why it left.

    ``words``: what the agent said to the user after its greeting. ``text``: what the user says with its stop word.
    """
    if task.actions is None or FED_UP.search(text) or _CANNOT_SAY.search(text):
        return None
    wanted = [a for a in task.actions if _writes(a.name)]
    if _tried(messages, {a.name for a in wanted}) or is_stuck(messages, words):
        return None
    if any(p.search(w) for p in (_REFUSES, _HANDS_OVER, _CLAIMS) for w in words) or _ENDS.search(words[-1]):
        return None
    if not wanted:
        return "leaves the agent's first question without an answer" if _only_asked(messages, words) else None
    offered = asks_for_yes(words[-1]) or _OFFERS.search(words[-1])
    if offered and _DECLINES.search(text) and not any(_named(a, words[-1]) for a in wanted):
        return None  # it may decline what is not its request
    return f"leaves before {wanted[0].name}, though the agent had not refused"


def _writes(name: str) -> bool:
    return guessed_kind(name) == "write"


def _tried(messages: Sequence[Message], wanted: set[str]) -> bool:
    """Whether either side tried what the task wants, or anything else that writes, or the agent handed over."""
    calls = (call.name for message in messages for call in message.tool_calls)
    return any(name in wanted or name.startswith("transfer") or _writes(name) for name in calls)


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
    told = [_telling(text) for text in texts]
    return any(_shared(a, b) for i, a in enumerate(told) for b in told[:i])


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
