"""How a user ends a conversation, and whether something was still open when it did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muarl.domains.base import Task
from muarl.language.acts import asks_for_yes
from muarl.language.consent import is_affirmative
from muarl.rewards import facts
from muarl.rewards.abandoned import abandoned, is_stuck
from muarl.types.chat import STOP_WORDS, Message, visible_to_user

STOP, TRANSFER, OUT_OF_SCOPE = STOP_WORDS

_FACT = re.compile(r"\b(please|(can|could) you( please)?) confirm\b", re.IGNORECASE)
_OFFER = re.compile(
    r"\b(transfer|human agent|anything else|any other|further assistance|more questions)\b", re.IGNORECASE
)
_MAY_BE_LEFT = re.compile(r"\bwould you like (me )?to (?!proceed|go ahead|confirm|continue)\w+", re.IGNORECASE)
_NEEDS = re.compile(
    r"\b(please (provide|share|tell me|give me|specify|let me know (which|what|your))"
    r"|(could|can|may|would) (you|i) (please )?(provide|have|share|tell me|give me|specify)"
    r"|what is your|which (one|item|order|flight|payment))\b",
    re.IGNORECASE,
)
_TO_DO = re.compile(
    r"\b(please|could you|can you|next,?|now,?|try to|go ahead and)\b[^.?!\n]{0,40}?\b(turn|toggle|switch|restart"
    r"|reboot|reset|disable|enable|remove|reseat|re-?insert|grant|disconnect|run|check|set)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\bplease (do|go ahead|proceed|issue|transfer|connect|cancel|book|process|change|update|modify|refund|return"
    r"|exchange|send|add|remove|apply|use|resume|suspend|enable|refuel)\b(?! not\b)",
    re.IGNORECASE,
)
_COULD = re.compile(
    r"\b(i can (now |then )?(proceed|go ahead|transfer|cancel|book|issue|process)"
    r"|(let me know|tell me) how you'?d like to (proceed|go ahead))",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"[^.?!\n]*\b(anything else|any other|further assistance|more questions)\b[^.?!\n]*", re.IGNORECASE
)
_DECLINES = re.compile(
    r"\b(no|nope|not|don'?t|won'?t|never ?mind|nothing|cancel that|forget it|leave it|instead|later|some other time"
    r"|can'?t|unfortunately|call back|think about it|on second thought|give up|myself|keep|as (it|they) (is|are))\b",
    re.IGNORECASE,
)
_TRANSFERS = re.compile(r"\btransfer|\b(human|live|another|different) (agent|representative|person)", re.IGNORECASE)
_DONE = re.compile(
    r"\b(has|have) been|\bis now\b|successfully"
    r"|\b(i'?ve|i have) (cancel|process|updat|modif|book|issu|chang|submit|refund)",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(unable|cannot|can'?t|unfortunately|not (able|possible|eligible|allowed)|sorry|apologi[sz]e)\b", re.IGNORECASE
)

_SECTIONS = re.compile(r"^\s*(known info|unknown info|persona|domain):", re.IGNORECASE)
_OTHERS = re.compile(r"^\s*(reason for call|task instructions|instructions):", re.IGNORECASE)
_WISH = re.compile(
    r"\b(you|you'?d|also|and) (also |then |still |would |really |just )*(want|like|wish|ask|request)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(if|unless|when|whenever|in case|otherwise|only|until|once|after|before|should the|even though|except)\b"
    r"|\b(not|never|n't|no longer|avoid|refuse|hate)\b|n't\b",
    re.IGNORECASE,
)
_LOOKS_UP = re.compile(r"(get|find|search|list|check|calculate|think|transfer)_?")
_TELLING = frozenset({"order_id", "reservation_id", "address1", "bill_id", "line_id", "task_id", "title", "amount"})
"""Arguments of gold actions that tell one request from another, and that somebody must say aloud."""

ENDS_ON_YES = "asks for something and ends before it can be done"
"""What ``ended_early`` says of a yes, or an order, with a stop word."""

UNHEARD = 5
"""Telling words that a request must have at least, for it to count as unspoken because none of them was heard."""

_EVERYDAY = """
    about after agent also another anything asks assistant because been before being call calling case change could
    customer does done each either else ever every exact find first from getting give given goal have having help here
    information instead issue item items just know last like made make making many more most much must need needs next
    number only option order orders other over payment phone please possible prefer problem provide really reason
    receive request right same service should since some something soon still sure take tell than thank that their them
    then there these they thing things this those through time today together total under until upon user very
    want wanted wants ways well were what when where whether which while will wish with without would wrong your yours
    yourself fixed working work flight flights reservation account details contact contacting regarding
"""
_COMMON = frozenset(_EVERYDAY.split())


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
        return None if called or any(_TRANSFERS.search(w) for w in words) else "###TRANSFER### without any transfer"
    if word == OUT_OF_SCOPE:
        return None
    return (
        _unanswered(words[-1], text, has_tools, messages)
        or abandoned(task, messages, words, text)
        or _unspoken(task, messages, words)
    )


def _unanswered(asked: str, text: str, has_tools: bool, messages: Sequence[Message]) -> str | None:
    """A question, or something to do, that the agent's work hangs on and that the end leaves without an answer."""
    parts = re.split(r"(?<=[.!?])\s+|\n+", asked.strip())[-3:]
    ending = " ".join(parts)
    asks = next((" ".join(parts[i:]) for i, part in enumerate(parts) if _must_be_answered(part)), "")
    open_to = _CLOSING.sub(" ", ending)
    wants_yes = asks or asks_for_yes(open_to) or _COULD.search(open_to)
    if _ORDERS.search(text) or (wants_yes and is_affirmative(text)):
        return ENDS_ON_YES
    if asks and not _OFFER.search(asks) and not _DONE.search(ending) and not _DECLINES.search(text):
        return "leaves the agent's request for consent without an answer"
    needs = _NEEDS.search(ending)
    if needs and not text and not _OFFER.search(ending) and not _REFUSES.search(asked):
        return "leaves the agent's question without an answer"
    if has_tools and _TO_DO.search(ending) and not _DECLINES.search(text) and not _OFFER.search(ending):
        before = _last_words(messages)
        if not any(m.role == "user" and m.tool_calls for m in messages[before + 1 :]):
            return "leaves what the agent asked for undone"
    return None


def _must_be_answered(sentence: str) -> bool:
    """Whether a sentence asks for a yes, or to confirm something; an offer ("Would you like me to ...") may be left."""
    return asks_for_yes(_MAY_BE_LEFT.sub(" ", sentence)) or bool(_FACT.search(sentence))


def _last_words(messages: Sequence[Message]) -> int:
    return max((i for i, m in enumerate(messages) if m.role == "assistant" and not m.tool_calls), default=-1)


def _unspoken(task: Task, messages: Sequence[Message], words: Sequence[str]) -> str | None:
    """A request of the scenario of which neither side has said one word, though the agent was of use."""
    if _REFUSES.search(words[-1]) or any(_TRANSFERS.search(w) for w in words[-2:]):
        return None
    if is_stuck(messages, words) or not any(m.role == "assistant" and m.tool_calls for m in messages):
        return None
    spoken = " ".join(m.content or "" for m in visible_to_user(messages))
    for action in task.actions or ():
        if action.requestor != "assistant" or _LOOKS_UP.match(action.name):
            continue
        telling = [v for k, v in action.arguments.items() if k in _TELLING and isinstance(v, str) and len(v) >= 4]
        wanted = [v for v in telling if v.lower() in task.scenario.lower()]
        if wanted and not any(facts.has_source(facts.StatedFact("id", v), spoken) for v in wanted):
            return f"never spoke of {wanted[0]}, which {action.name} is about"
    heard = {w[:5] for w in facts.words(spoken)}
    for request in requests(task.scenario):
        content = {w[:5] for w in request}
        if len(content) >= UNHEARD and not content & heard:
            return f"never spoke of: {' '.join(request)}"
    return None


def requests(scenario: str, *, conditions: bool = False) -> list[list[str]]:
    """The telling words of each sentence of a scenario that says what the user wants. ``conditions`` False: without any
    condition; True: also with one, but not beginning with it."""
    kept, skipping = [], False
    for line in scenario.splitlines():
        if _SECTIONS.match(line):
            skipping = True
        elif _OTHERS.match(line):
            skipping = False
        if not skipping:
            kept.append(line)
    found = []
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", "\n".join(kept)):
        bound = _CONDITION.match(sentence.strip()) if conditions else _CONDITION.search(sentence)
        if _WISH.search(sentence) and not bound:
            telling = [w for w in facts.words(sentence) if len(w) >= 4 and w not in _COMMON and not w.isdigit()]
            found.append(list(dict.fromkeys(telling)))
    return found
