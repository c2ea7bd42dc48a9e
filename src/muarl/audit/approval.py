"""Whether a write is what the user approved: refusals, what was asked for, and values that differ from the proposal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from muarl.audit.consent import ACTION_WORDS, action_words
from muarl.audit.values import is_identifier, leaves, method_in, methods_in, names, others_alike
from muarl.language.consent import said_yes
from muarl.language.user_acts import asks_for_something_else, beginning_no, stands_by_no
from muarl.types.chat import ToolCall

if TYPE_CHECKING:
    from muarl.audit.transcript import AuditedCall

_ALTER = (
    "change", "modify", "switch", "replace", "swap", "exchange", "trade", "instead", "different", "update", "correct",
    "fix", "wrong", "move", "prefer", "rather", "new", "upgrade", "downgrade", "edit", "typo", "postpone", "shift",
    "set", "put",
)  # fmt: skip
REQUESTS = {
    **dict.fromkeys(("modify", "update", "change", "replace", "exchange", "set", "reschedule", "move"), _ALTER),
    "cancel": ("cancel", "call off", "don't want", "do not want", "no longer", "don't need", "do not need", "get rid",
               "money back", "refund", "stop", "undo", "drop", "won't be", "can't make"),
    "return": ("return", "send back", "send it back", "send them back", "refund", "money back", "don't want",
               "give back", "bring back", "don't like", "broken", "doesn't work", "defective"),
    "refund": ("refund", "money back", "reimburse", "return", "missing", "wrong", "damaged", "cold", "spoilt",
               "pay back"),
    "book": ("book", "reserve", "flight", "fly", "trip", "stay", "room", "appointment", "schedule", "travel", "see"),
    "send": ("certificate", "voucher", "compensat", "make up"),
    "add": ("add", "extra", "more", "another", "include", "also", "want", "put", "need"),
}  # fmt: skip
"""By the verb of a writing tool: how people ask for it, in their own words."""


FEW = 4
"""Words behind a no that need not say any more what is refused."""


def is_refusal(answer: str | None, call: ToolCall) -> bool:
    """Whether an answer begins by saying no, says yes nowhere, and requests for nothing else in place of what was
    proposed: neither in words nor by a value that was then written."""
    text = re.sub(r"\s+", " ", (answer or "").replace("’", "'")).strip()
    begins = beginning_no(text)
    if begins is None or said_yes(text) or asks_for_something_else(text):
        return False
    rest = text[len(begins) :]
    if len(rest.split()) > FEW and not stands_by_no(text):
        return False  # "no" and then something else: a correction, for all one can tell
    return not any(len(v) >= 3 and not is_identifier(v) and names(text, v) for _, v in _arguments(call))


def was_requested(user_text: str, call: ToolCall, spoken: Sequence[str] = (), person: str | None = None) -> bool | None:
    """Whether the user's own words, all together, may ask for such a call. None where that cannot be told: nobody has
    said how people ask for it, or they do speak of what it is about.

    False needs both: no word by which people ask for it, and none of the call's own values (``person``'s id aside).
    """
    verb = next((p for p in call.name.lower().split("_") if p in REQUESTS or p in ACTION_WORDS), None)
    if verb is None and not spoken:
        return None
    words = {*REQUESTS.get(verb or "", ()), *action_words(call.name, spoken)}
    lower = user_text.lower().replace("’", "'")
    if any(re.search(rf"(?<![a-z]){re.escape(_stem(w))}", lower) for w in words):
        return True
    about = {v for _, v in _arguments(call) if v != person and (len(v) >= 3 or (v.isdigit() and len(v) == 2))}
    return None if any(names(user_text, v.replace("_", " ")) or names(user_text, v) for v in about) else False


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def differs(step: AuditedCall, proposal: str, user_text: str) -> str | None:
    """What of a write is not what was proposed, in a few words; None if nothing shows it.

    Only values that the proposal gives in another form count: another order's number, another date, another payment
    method. What the user has named (``user_text``: all they said) may be written, and so may what no proposal speaks
    of.
    """
    text, said = " ".join(s for s in re.split(r"(?<=[.!?])\s+|\n", proposal) if not _NOT_THAT.search(s)), user_text
    served = step.person or ""
    own = {value.lower() for _, value in _arguments(step.record.call)}
    several = {
        v for items in step.record.call.arguments.values() if isinstance(items, (list, tuple)) and len(items) > 1
        for v in leaves(items)
    }  # fmt: skip
    whole = any(names(text, v) for v in several)  # a proposal that names none of several things tells nothing of them
    for name, value in _arguments(step.record.call):
        if value == served:
            continue
        method = method_in(value)
        if method is not None:
            spoken = methods_in(text)
            if spoken and method not in spoken and not _leaves_open(step.record.answer or "", method):
                return f"{value} as {name}, and the proposal spoke of the {_either(spoken)}"
        if is_identifier(value) and not names(said, value) and (value not in several or whole):
            others = others_alike(value, text) - own
            if others:
                return f"{value} as {name}, and the proposal spoke of {_either(others)}"
    return None


_NOT_THAT = re.compile(
    r"(?:not|n't|no longer) (?:currently |also )?available|unavailable|out of stock|sold out|cannot|can't",
    re.IGNORECASE,
)


def _leaves_open(said: str, method: str) -> bool:
    """Whether the user spoke of this payment method, or of the one that the purchase was paid with."""
    return method in methods_in(said) or bool(
        re.search(r"\b(?:original|same)\b[^.?!]{0,20}\b(?:payment|method|card)", said.lower())
    )


def _arguments(call: ToolCall) -> Iterator[tuple[str, str]]:
    for name, argument in call.arguments.items():
        for value in leaves(argument):
            yield name, value


def _either(options: set[str]) -> str:
    return " or ".join(sorted(options)[:3])
