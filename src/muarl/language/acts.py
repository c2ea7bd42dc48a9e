"""What an agent's message does: asks for a yes, asks who one is, refuses, says that something is done, and so on.

One message may do several things at once ("The suite is not available. Shall I book the double room?"). Agents of any
kind are read, not only our own experts, so that the words are those that language models use, too.

``hear`` and ``asks_for_yes`` are what users act on and audits count: they would rather miss something. The readings
below them (``may_refuse`` and those after it) are for who looks for the reasons of what a user did next, and would
rather see one too many.
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


_MAY_REFUSE = re.compile(
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
_REGRETS = re.compile(r"\b(?:sorry|apologi[sz]e|unfortunately)\b", re.IGNORECASE)
_MAY_HAND_OVER = re.compile(
    r"\btransfer|\b(?:human|live|another|different) (?:agent|representative|person)|\bcolleague|\bescalat"
    r"|\bsupervisor|\b(?:connect|pass(?:ed|ing)?|put) you (?:on|to|through|with)|\bcall you back",
    re.IGNORECASE,
)
_MAY_BE_DONE = re.compile(
    r"\b(?:i|we)(?:['’]ve| have) (?:now |just |already |also |successfully )?"
    r"(?!(?:found|located|looked|checked|got|received|noted|seen|pulled|retrieved|identified|verified|confirmed your"
    r"|read|understood|been|a|an|the|two|three|several|your|to|not|never)\b)\w+"
    r"|\b(?:has|have) (?:now |just |already |also |successfully )?been"
    r" (?!(?:found|located|identified|verified|received|confirmed as)\b)"
    r"|\bis now\b|\bsuccessful|^\W*done\b|\b(?:is|are) done\b|\ball set\b|\btaken care of\b"
    r"|\byou will (?:receive|get)\b",
    re.IGNORECASE,
)
_MORE_HELP = r"\b(?:(?:anything|something|what) else|any other|further assistance|more questions)\b"
_MAY_CLOSE = re.compile(
    rf"{_MORE_HELP}|\bgood ?bye\b|\bbye\b"
    r"|\b(?:thank you|thanks) for (?:calling|your call|contacting)|\bhave a (?:nice|great|good|wonderful|lovely)\b",
    re.IGNORECASE,
)
_OFFERS_MORE_HELP = re.compile(rf"[^.?!\n]*{_MORE_HELP}[^.?!\n]*", re.IGNORECASE)
_OFFERS = re.compile(r"\b(?:would you like|do you want|which (?:one|of (?:these|those|them))|suits you)", re.IGNORECASE)
_MAY_BE_LEFT = re.compile(r"\bwould you like (me )?to (?!proceed|go ahead|confirm|continue)\w+", re.IGNORECASE)
_CONFIRM_A_FACT = re.compile(r"\b(please|(can|could) you( please)?) confirm\b", re.IGNORECASE)
_COULD_GO_ON = re.compile(
    r"\b(i can (now |then )?(proceed|go ahead|transfer|cancel|book|issue|process)"
    r"|(let me know|tell me) how you'?d like to (proceed|go ahead))",
    re.IGNORECASE,
)
_ASKS_FOR_DETAILS = re.compile(
    r"\b(please (provide|share|tell me|give me|specify|let me know (which|what|your))"
    r"|(could|can|may|would) (you|i) (please )?(provide|have|share|tell me|give me|specify)"
    r"|what is your|which (one|item|order|flight|payment))\b",
    re.IGNORECASE,
)
_TOPICS: Mapping[str, re.Pattern[str]] = {
    "identity": re.compile(
        r"\b(?:name|e-?mail|user id|zip|postal code|phone|date of birth|birth|verify|identi\w+|who (?:am i|are you)"
        r"|customer (?:id|number)|account)\b",
        re.IGNORECASE,
    ),
    "order": re.compile(
        r"\b(?:order|item|product|reservation|booking|flight|confirmation (?:code|number))\b", re.IGNORECASE
    ),
    "payment": re.compile(r"\b(?:pay(?:ment|ing)?|card|refund(?:ed)? to|gift|method)\b", re.IGNORECASE),
}
_TELL_ANYTHING = re.compile(
    r"\b(?:everything|all (?:the |your )?(?:details|information)|more (?:details?|about)|how (?:can|may) i"
    r"|what (?:can|would))\b",
    re.IGNORECASE,
)
_DEEDS = (
    "turn|toggle|switch|restart|reboot|reset|disable|enable|remove|reseat|re-?insert|grant|disconnect|run|check|set"
)
"""What users do to their own devices."""
_ASKS_TO_DO = re.compile(
    rf"\b(please|could you|can you|next,?|now,?|try to|go ahead and)\b[^.?!\n]{{0,40}}?\b({_DEEDS})\b", re.IGNORECASE
)
_SPEAKS_OF_DOING = re.compile(rf"\b({_DEEDS}|look at|tell me what|open)\b", re.IGNORECASE)


def may_refuse(text: str) -> bool:
    """Whether an agent may have said that something cannot be done or had, or why not."""
    return bool(_MAY_REFUSE.search(text))


def regrets(text: str) -> bool:
    """Whether an agent says that it is sorry, for a refusal or for anything else."""
    return bool(_REGRETS.search(text))


def may_hand_over(text: str) -> bool:
    """Whether an agent may hand the user over, or speaks of it."""
    return bool(_MAY_HAND_OVER.search(text))


def may_have_done(text: str) -> bool:
    """Whether an agent may report something that it did, looking up aside."""
    return bool(_MAY_BE_DONE.search(text))


def may_close(text: str) -> bool:
    """Whether an agent may be closing: it offers more help, or says goodbye."""
    return bool(_MAY_CLOSE.search(text))


def without_offers_of_more_help(text: str) -> str:
    """A message without its sentences like "Is there anything else?"."""
    return _OFFERS_MORE_HELP.sub(" ", text)


def offers(text: str) -> bool:
    """Whether an agent offers something, or a choice."""
    return bool(_OFFERS.search(text))


def must_be_answered(sentence: str) -> bool:
    """Whether a sentence asks for a yes, or to confirm something; an offer ("Would you like me to ...") may be left."""
    return asks_for_yes(_MAY_BE_LEFT.sub(" ", sentence)) or bool(_CONFIRM_A_FACT.search(sentence))


def waits_for_a_word(text: str) -> bool:
    """Whether an agent says that it could go on, if told so: "I can now proceed"."""
    return bool(_COULD_GO_ON.search(text))


def asks_for_details(text: str) -> bool:
    """Whether an agent asks for a detail that only the user can give."""
    return bool(_ASKS_FOR_DETAILS.search(text))


def asks_about(question: str) -> set[str]:
    """What an agent's question is about: "identity", "order", "payment"."""
    return {topic for topic, pattern in _TOPICS.items() if pattern.search(question)}


def may_be_told_anything(question: str) -> bool:
    """Whether a question may be answered with anything: "How can I help you?"."""
    return bool(_TELL_ANYTHING.search(question))


def asks_to_do(text: str) -> bool:
    """Whether an agent asks the user to do something to a device of theirs."""
    return bool(_ASKS_TO_DO.search(text))


def speaks_of_doing(text: str) -> bool:
    """Whether an agent speaks of something that the user could do to a device, or look at there."""
    return bool(_SPEAKS_OF_DOING.search(text))
