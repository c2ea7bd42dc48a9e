"""What either side understands of the other's words: acts, intents, and values that belong to slots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domains.desk.spec import Script
from muarl.domains.desk.values import Mention, normal

_ACTS: Mapping[str, str] = {
    "transferred": r"transferr?(?:ed|ing)\b[^.?!]{0,30}\b(?:human|person|agent|colleague|specialist|representative)"
    r"|\bhuman agent|connect(?:ed|ing)? you (?:with|to)\b",
    "unavailable": r"(?:not|n['’]t)(?: currently| longer)? available|unavailable|sold out|out of stock|fully booked"
    r"|is full\b|already taken|no longer (?:free|available)|not free\b|not (?:one of|among) your|not on the menu",
    "confirm": r"yes/no|\(yes|(?:do|can|could|would) you (?:please )?confirm(?! your| the (?:name|phone|number|date))"
    r"|please confirm(?! your| the (?:name|phone|number|date))|(?:shall|should|may) i (?:go ahead|proceed"
    r"|continue|do (?:it|that|this|so))|(?:^|[.!?:] )(?:shall|should) i \w|want me to|like me to|go ahead\?|proceed\?"
    r"|is (?:that|this|it) (?:right|correct|ok|okay|fine|what you want)"
    r"|would you like to (?:proceed|go ahead|continue)",
    "refuse": r"cannot|can['’]?t\b|can not|unable|not allowed|not possible|not permitted|not eligible|do not allow"
    r"|against (?:our|the) (?:rules|policy)|won['’]t be able",
    "done": r"anything else|what else|\bdone\b|has been|have been|is now\b|completed|all set|successfully"
    r"|\bi have (?:now )?\w+ed\b|is there more",
    "ask_identity": r"verify|identif|who am i (?:speaking|talking)|could not find (?:you|an account)|no account",
    "else": r"anything else|what else|is there more|something else i can",
}  # fmt: skip
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _ACTS.items()}
_PART = re.compile(r"(?<=[.!?])\s+")
_OPENS = re.compile(
    r"\bi(?:'d| would)? (?:also )?(?:want|need|wanted|must|have|like|love|believe|think|guess|could)\b"
    r"|\bi was (?:trying|wondering)\b"
    r"|^please\b|\bcould you\b|\bcan i\b|\bhelp me\b|\bi can\b|\bmy (?:wish|plan)\b|\bwhat i need\b",
    re.IGNORECASE,
)
_JOIN = re.compile(
    r"(?i:\b(?:i also (?:want|need|wanted)|also, i (?:want|need)|and i'd like|one more thing|there is something else"
    r"|on top of that|while i have you|i still (?:need|want)|you forgot that|we are not done|what about the rest))"
)


def hear(text: str) -> set[str]:
    """The acts that an agent's message may be: some of ``_ACTS``' names, and "question" if it has a question mark."""
    acts = {name for name, pattern in _COMPILED.items() if pattern.search(text)}
    return acts | ({"question"} if "?" in text else set())


def intents_in(script: Script, text: str) -> list[str]:
    """The intents whose words stand in a text, in the file's order."""
    return [name for name, pattern in script.heard.items() if pattern.search(text)]


def read_slots(
    script: Script, text: str, slots: Sequence[str], *, waiting: str = "", taken: Iterable[str] = ()
) -> dict[str, Any]:
    """What a text says for these slots, and, as "described NAME", of records whose id it does not give.

    ``waiting``: the slot that was asked for, which gets a value of its kind first. ``taken``: slots that are known and
    only get a value that a cue assigns to them.
    """
    spec = script.spec.slots
    wanted: dict[str, list[str]] = {}
    for slot in slots:
        wanted.setdefault(spec[slot].kind, []).append(slot)
        how = spec[slot].described
        if how is not None:
            wanted.setdefault(how.kind, []).append(f"described {slot}")
    found: dict[str, Any] = {}
    for kind, mentions in script.kinds.mentions(text, list(wanted)).items():
        found |= _assign(script, text, mentions, wanted[kind], waiting, set(taken))
    for slot in slots:
        if slot in found:
            found.pop(f"described {slot}", None)
    return found


def _assign(
    script: Script, text: str, mentions: Sequence[Mention], slots: Sequence[str], waiting: str, taken: set[str]
) -> dict[str, Any]:
    """Give the mentions of one kind to the slots of that kind: by cue, then to what was asked for, then in order."""
    found: dict[str, Any] = {}
    rest = sorted(mentions, key=lambda m: m.start)
    for slot in slots:
        cue, tail = script.cues.get(slot), script.tails.get(slot)
        for mention in rest:
            before = cue is not None and cue.search(text[: mention.start])
            if before or (tail is not None and tail.match(text, mention.end)):
                found[slot] = mention.value
                rest.remove(mention)
                break
    asked = [s for s in slots if s.removeprefix("described ") == waiting]
    free = [s for s in slots if s not in found and s not in asked and s not in taken]
    # A description without its cue is none, unless the record was asked for: restaurants are spoken of a lot.
    free = [s for s in free if not (s in script.cues and (s.startswith("described ") or script.spec.slots[s].strict))]
    for slot in [s for s in asked if s not in found] + free:
        if not rest:
            break
        found[slot] = rest.pop(0).value
    return found


def parts(script: Script, text: str, *, idle: bool = True) -> list[tuple[str, str]]:
    """A caller's message cut into (intent, its text); words before the first intent, or without any, have intent "".

    ``idle``: nothing is being spoken of, so that any words of an intent bring it up. Else, and after the first one,
    only a sentence that says what the caller wants brings up another: answers are full of words that intents have.
    """
    found: list[tuple[str, str]] = [("", "")]
    for sentence in _PART.split(text):
        heard = intents_in(script, sentence)
        current, before = found[-1]
        starts = bool(heard) and (heard[0] != current or bool(_JOIN.search(sentence)))
        if starts and ((idle and not current) or _OPENS.search(sentence)):
            found.append((heard[0], sentence))
        else:
            found[-1] = (current, f"{before} {sentence}".strip())
    return [part for part in found if part[0] or part[1]]


def joins(text: str) -> bool:
    """Whether a message says in so many words that it brings up something else."""
    return bool(_JOIN.search(text))


def identity_in(script: Script, text: str) -> dict[str, Any]:
    """The facts about the caller that a text gives."""
    fields = script.spec.identify.fields
    mentions = script.kinds.mentions(text, list(dict.fromkeys(f.kind for f in fields.values())))
    found = {}
    for name, field in fields.items():
        if mentions[field.kind]:
            found[name] = mentions[field.kind].pop(0).value
    return found


def speaks_of(script: Script, text: str, slot: str, value: Any) -> bool:
    """Whether a text mentions this value of a slot."""
    kind = script.spec.slots[slot].kind
    return normal(value) in [normal(m.value) for m in script.kinds[kind].find(text)]


def conflicts(script: Script, text: str, wish: Mapping[str, Any]) -> bool:
    """True if an agent's proposal is not the wish: it speaks of other values of a slot's kind and not of the wished
    one, or of none that would tell what is to be done."""
    spec = script.spec.slots
    kinds: dict[str, list[Any]] = {}
    for slot, value in wish.items():
        described = slot.startswith("described ")
        name = slot.removeprefix("described ")
        if not described and f"described {name}" in wish:
            continue  # an id that the caller does not know
        how = spec[name].described
        kind = how.kind if described and how is not None else spec[name].kind
        kinds.setdefault(kind, []).append(normal(value))
    mentions = script.kinds.mentions(text, list(kinds))
    hits = False
    for kind, values in kinds.items():
        said = [normal(m.value) for m in mentions[kind]]
        if said and not all(v in said for v in values):
            if len(values) == 1 or not any(v in said for v in values):
                return True
            if len(said) >= len(values):
                return True
        hits = hits or any(v in said for v in values)
    unnamed = [n.removeprefix("described ") for n in wish if n.startswith("described ")]
    named = any(script.kinds[spec[n].kind].find(text) for n in unnamed)  # an id that the caller can say nothing about
    return bool(kinds) and not hits and not named
