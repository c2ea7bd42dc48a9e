"""What an agent's message does: asks for a yes, asks who one is, refuses, says that something is done, and so on.

One message may do several things at once ("The suite is not available. Shall I book the double room?"). Agents of any
kind are read, not only our own experts, so that the words are those that language models use, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from muarl.language.sentences import normal_text, without_open_questions

Act = Literal["transferred", "unavailable", "confirm", "refuse", "done", "ask_identity", "else", "question"]
"""``transferred``: hands over to a person. ``unavailable``: what is wanted is not to be had. ``confirm``: asks for a
yes (``asks_for_yes``). ``refuse``: will not do it. ``done``: reports that something is done, or asks what else there
is. ``ask_identity``: asks who one is, or has not found one. ``else``: asks whether there is anything else.
``question``: has a question mark, so that it may ask for any detail."""

_PATTERNS: Mapping[Act, str] = {
    "transferred": r"transferr?(?:ed|ing)\b[^.?!]{0,30}\b(?:human|person|agent|colleague|specialist|representative)"
    r"|\bhuman agent|connect(?:ed|ing)? you (?:with|to)\b",
    "unavailable": r"(?:not|n't)(?: currently| longer)? available|unavailable|sold out|out of stock|fully booked"
    r"|is full\b|already (?:taken|exists?)\b|no longer (?:free|available)|not free\b|not (?:one of|among) your"
    r"|not on the menu|(?:not|n't) exist\b|no such\b|(?:none|no \w+) (?:is |are )?left\b|has no changes|not staged"
    r"|\bthere is no (?:branch|book|compan|contact|entity|file|folder|member)",
    "refuse": r"cannot|can'?t\b|can not|unable|not allowed|not possible|not permitted|not eligible|do not allow"
    r"|against (?:our|the) (?:rules|policy)|won't be able",
    "done": r"anything else|what else|\bdone\b|has been|have been|is now\b|completed|all set|successfully"
    r"|\bi have (?:now )?\w+ed\b|is there more",
    "ask_identity": r"verify|identif|who am i (?:speaking|talking)|could not find (?:you|an account)|no account",
    "else": r"anything else|what else|is there more|something else i can",
    "question": r"\?",
}  # fmt: skip
_ACTS = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}

_A_FACT = (
    r"(?! (?:me )?(?:with )?(?:your|the) (?:\w+ )?(?:name|phone|number|date|e-?mail|zip|id|identity|account|reason)\b"
    r"|(?: if| that)? you have (?:provided|given))"
)
_ASKS_FOR_YES = re.compile(
    r"yes ?/ ?no|\byes or no\b|\(yes\b|\b(?:reply|answer|respond)(?: with)? [\"']?yes\b"
    rf"|\b(?:do|can|could|would) you (?:please |kindly )?(?:re-?)?confirm\b{_A_FACT}"
    rf"|\b(?:please|kindly|just to) confirm\b{_A_FACT}"
    r"|\b(?:do|would) you (?:agree|accept|approve|consent)\b|\bdo you wish to (?:proceed|go ahead|continue)\b"
    r"|\b(?:want|like|wish) me to\b"
    r"|\b(?:would you like|do you want|(?:if|whether) you(?:'d| would)? (?:like|want|wish)) to (?:proceed|go ahead)\b"
    r"|\b(?:would you like|do you want) to (?!know|hear|see|tell|give|provide|share|speak|talk|have|choose|use)\w"
    r"(?![^.?!]{0,200}\b(?:or|else|other|another|anything|something)\b)[^.?!]{0,200}\?"
    r"|\b(?:shall|should|may|can) (?:i|we) (?:now |then )?(?:go ahead|proceed|continue|do (?:it|that|this|so))\b"
    r"|(?:^|[.!?:,;] )(?:shall|should) (?:i|we)\b"
    r"|(?:^|[.!?:,;] )may i (?!please|have|ask|know|get|see|take|suggest|help|assist|offer)\w"
    r"|\b(?:go ahead|proceed)\?"
    r"|\b(?:is|are|does|would|if) (?:that|this|it|these|everything)(?: all| be| look| sound)?"
    r" (?:right|correct|ok|okay|fine|good|alright|all right|what you want|acceptable)\b"
    r"|(?:^|[.!?:,;] )(?:ok|okay|all right|alright|agreed|right)\?"
    r"|\bare you (?:sure|okay with|ok with|fine with|happy with|ready to proceed)\b"
)
_NAMES_NO_DEED = re.compile(
    r"(?:go ahead|proceed|confirm(?:ation)?|yes ?/ ?no|\(yes|do (?:so|this|that|it)\b)"
    r"(?![^.?!]{0,200}\b(?:else|your (?:name|e-?mail|id)))"
)
_ASKS_WITHOUT_A_MARK = (
    "agree", "approve", "confirm", "do you want", "is that ok", "let me know", "may i", "ok with", "okay with",
    "proceed", "reply", "shall i", "should i", "would you like", "yes/no", "yes or no", "(yes", "'yes'", '"yes"',
)  # fmt: skip


def hear(text: str | None) -> set[str]:
    """The acts (``Act``) that an agent's message may be."""
    return set(_heard(text))


@lru_cache(maxsize=1024)
def _heard(text: str | None) -> frozenset[str]:
    words = normal_text(text)
    acts: set[str] = {name for name, pattern in _ACTS.items() if pattern.search(words)}
    return frozenset(acts | {"confirm"} if asks_for_yes(text) else acts)


@lru_cache(maxsize=1024)  # users and audits ask of the same messages, and a task's rollouts say much alike
def asks_for_yes(text: str | None) -> bool:
    """True if an agent's message asks the user to agree to something, whether or not it says to what.

    A question that yes does not answer ("Which one shall I take?") is none, nor is one for a fact ("Could you confirm
    your name?").
    """
    return bool(_ASKS_FOR_YES.search(without_open_questions(normal_text(text))))


def asks_to_go_ahead(text: str | None) -> bool:
    """True if a message asks for a yes in words that may leave open to what: "Shall I go ahead?", "Please confirm."."""
    return asks_for_yes(text) and bool(_NAMES_NO_DEED.search(normal_text(text)))


def asks_for_answer(text: str | None) -> bool:
    """True if a message wants an answer of any kind: it has a question mark, or words that ask without one."""
    words = normal_text(text)
    return "?" in words or asks_for_yes(text) or any(w in words for w in _ASKS_WITHOUT_A_MARK)
