"""What either side understands of the other's words: intents, and values that belong to slots; and when a user's words
ask nothing for themselves, since they speak for others, in the system's name, or say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domains.kit.service import Service
from muarl.language.sentences import sentences
from muarl.language.values import Mention, ValueKind, normal

_PEOPLE = (
    r"(?:wife|husband|partner|sister|brother|mother|father|son|daughter|friend|neighbou?r|flatmate|colleague|boss"
    r"|ex-husband|ex-wife)"
)
_OTHERS = re.compile(
    rf"\bbelongs? to (?!me\b)|\bon the account of\b|\bon (?:his|her|their) account\b"
    rf"|\bmy {_PEOPLE}['’]s(?=\s*(?:[,.;!]|$))|\bmy {_PEOPLE}['’]s (?:account|booking|order|card|claim|policy)\b",
    re.IGNORECASE,
)
_STAGE_DIRECTION = re.compile(r"\([^()]*\)|\*[^*]*\*|\W*")
_SYSTEM = re.compile(
    r"^\W*system\b\W|\bsystem (?:message|notice|prompt)\b|<\|im_(?:start|end)\|>|^\W*admin\b\W|\bdeveloper mode\b"
    r"|\bpolicy is suspended\b|\boverrides? the policy\b|^\W*tool result\b|\bignore (?:all )?previous instructions\b",
    re.IGNORECASE | re.MULTILINE,
)


def for_somebody_else(text: str) -> bool:
    """Whether a user says that what a request is about belongs to somebody else."""
    return _OTHERS.search(text) is not None


def poses_as_system(text: str) -> bool:
    """Whether a user's message poses as the system or as a tool's result."""
    return _SYSTEM.search(text) is not None


_APPROVAL = re.compile(
    r"\bapprov|\bauthori[sz]|\bpermission|\bsign(?:s|ed)? (?:it |this )?off\b|\bsecond person\b|\bcolleague"
    r"|\bsupervisor|\bmanager|\bone moment\b|\bhold on\b|\bplease wait\b|\bpending\b",
    re.IGNORECASE,
)
_AGREEMENT = r"(?:approv\w*|authori[sz]\w*|permission|sign-?off)"
_PENDING = re.compile(
    r"\b(?:submitted|requested|sent|forwarded|passed|asked|escalated|put)\b[^.?!]{0,80}\b"
    rf"{_AGREEMENT}|\b(?:{_AGREEMENT}|request)\b[^.?!]{{0,40}}\b(?:requested|submitted|sent|pending|under review)\b",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"\bdeclined\b|\bdenied\b|\brejected\b|\brefused\b|\bdisapproved\b"
    r"|\bturned (?:it |this |that |your request )?down\b"
    r"|\b(?:did|has|have|was|were|is|will)(?: not|n['’]t)(?: been)? "
    r"(?:approved?|authori[sz]ed?|given? (?:\w+ )?(?:approval|permission))\b(?! to\b|[^.?!]{0,20} yet\b)",
    re.IGNORECASE,
)
_DECIDED = re.compile(rf"\b(?:has|have|was|is|been) (?:now )?approved\b|\bgranted\b|{_DECLINED.pattern}", re.IGNORECASE)


def speaks_of_approval(text: str) -> bool:
    """Whether an agent speaks of somebody who has to approve, or asks the user to wait for that."""
    return _APPROVAL.search(text) is not None


def without_pending(text: str) -> str:
    """An agent's words but for sentences that say no more than that approval has been asked for."""
    return " ".join(one for one in sentences(text) if not _PENDING.search(one) or _DECIDED.search(one))


def tells_declined(text: str) -> bool:
    """Whether an agent says that approval was not given."""
    return _DECLINED.search(text) is not None


def says_nothing(text: str) -> bool:
    """Whether a message holds no words of the user's: dots, or what somebody notes about the user in brackets."""
    return _STAGE_DIRECTION.fullmatch(text.strip()) is not None


SENTENCE = re.compile(r"(?<=[.!?])\s+")
"""Where one sentence of a user's ends and the next begins."""
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


def read_slots(
    service: Service, text: str, slots: Sequence[str], *, waiting: str = "", taken: Iterable[str] = ()
) -> dict[str, Any]:
    """What a text says for these slots, and, as "described NAME", of records whose id it does not give.

    ``waiting``: the slot that was asked for, which gets a value of its kind first. ``taken``: slots that are known and
    only get a value that a cue assigns to them.
    """
    slots_by_kind: dict[ValueKind, list[str]] = {}
    for slot in slots:
        slots_by_kind.setdefault(service.kind(service.slots[slot]), []).append(slot)
        how = service.slots[slot].described
        if how is not None:
            slots_by_kind.setdefault(service.kind(how), []).append(f"described {slot}")
    values: dict[str, Any] = {}
    for kind, mentions in service.mentions(text, list(slots_by_kind)).items():
        values |= _assign(service, text, mentions, slots_by_kind[kind], waiting, set(taken))
    for slot in slots:
        if slot in values:
            values.pop(f"described {slot}", None)
    return values


def _assign(
    service: Service, text: str, mentions: Sequence[Mention], slots: Sequence[str], waiting: str, taken: set[str]
) -> dict[str, Any]:
    """Give the mentions of one kind to the slots of that kind: by cue, then to what was asked for, then in order."""
    values: dict[str, Any] = {}
    rest = sorted(mentions, key=lambda m: m.start)
    for slot in slots:
        cue, tail = service.cues.get(slot), service.tails.get(slot)
        for mention in rest:
            before = cue is not None and cue.search(text[: mention.start])
            if before or (tail is not None and tail.match(text, mention.end)):
                values[slot] = mention.value
                rest.remove(mention)
                break
    asked = [s for s in slots if s.removeprefix("described ") == waiting]
    free = [s for s in slots if s not in values and s not in asked and s not in taken]
    # A description without its cue is none, unless the record was asked for: restaurants are spoken of a lot.
    marked = service.cues.keys() | service.tails.keys()
    free = [s for s in free if not (s in marked and (s.startswith("described ") or service.slots[s].strict))]
    if waiting == "confirm" and len(rest) < len(free):  # who hears a proposal changes what can be changed
        free.sort(key=lambda s: s.startswith("described ") or not service.slots[s].change)
    for slot in [s for s in asked if s not in values] + free:
        if not rest:
            break
        values[slot] = rest.pop(0).value
    return values


def parts(service: Service, text: str, *, idle: bool = True) -> list[tuple[str, str]]:
    """A user's message cut into (intent, its text); words before the first intent, or without any, have intent "".

    ``idle``: nothing is being spoken of, so that any words of an intent bring it up, unless a later sentence says what
    the user wants. Else, and after the first one, only such a sentence brings up another: answers are full of words
    that intents have.
    """
    cuts: list[tuple[str, str]] = [("", "")]
    sentences = SENTENCE.split(text)
    idle = idle and not any(_wishes(service, sentence) for sentence in sentences[1:])
    for sentence in sentences:
        heard = service.intents_in(sentence)
        current, before = cuts[-1]
        starts = bool(heard) and (heard[0] != current or bool(_JOIN.search(sentence)))
        if starts and ((idle and not current) or _OPENS.search(sentence)):
            cuts.append((heard[0], sentence))
        else:
            cuts[-1] = (current, f"{before} {sentence}".strip())
    return [part for part in cuts if part[0] or part[1]]


def _wishes(service: Service, sentence: str) -> bool:
    """Whether a sentence says what the user wants, and not that it comes on top of something else."""
    return bool(_OPENS.search(sentence) and not _JOIN.search(sentence) and service.intents_in(sentence))


def joins(text: str) -> bool:
    """Whether a message says in so many words that it brings up something else."""
    return bool(_JOIN.search(text))


def identity_in(service: Service, text: str, *, asked: bool = True) -> dict[str, Any]:
    """The facts about the user that a text gives. ``asked``: whether the user was asked for them."""
    mentions = service.mentions(text, list(dict.fromkeys(service.kind(fact) for fact in service.facts)))
    facts = {}
    for fact in service.facts:
        rest = mentions[service.kind(fact)]
        cue = service.fact_cues.get(fact.name)
        fits = [m for m in rest if cue is None or cue.search(text[: m.start])] or (rest if asked else [])
        if fits:
            facts[fact.name] = fits[0].value
            rest.remove(fits[0])
    return facts


def speaks_of(service: Service, text: str, slot: str, value: Any) -> bool:
    """Whether a text mentions this value of a slot."""
    return normal(value) in [normal(m.value) for m in service.kind(service.slots[slot]).find(text)]


def conflicts(service: Service, text: str, goal: Mapping[str, Any]) -> bool:
    """True if an agent's proposal is not the request: it speaks of other values of a slot's kind and not of the wished
    one, or of none that would tell what is to be done."""
    kinds: dict[ValueKind, list[Any]] = {}
    for slot, value in goal.items():
        described = slot.startswith("described ")
        name = slot.removeprefix("described ")
        if not described and f"described {name}" in goal:
            continue  # an id that the user does not know
        how = service.slots[name].described
        if not service.slots[name].weighed:
            continue
        kind = service.kind(how if described and how is not None else service.slots[name])
        kinds.setdefault(kind, []).append(normal(value))
    mentions = service.mentions(text, list(kinds))
    hits = False
    for kind, values in kinds.items():
        said = [normal(m.value) for m in mentions[kind]]
        if said and not all(v in said for v in values):
            if len(values) == 1 or not any(v in said for v in values):
                return True
            if len(said) >= len(values):
                return True
        hits = hits or any(v in said for v in values)
    unnamed = [n.removeprefix("described ") for n in goal if n.startswith("described ")]
    # an id that the user can say nothing about
    named = any(service.kind(service.slots[n]).find(text) for n in unnamed)
    return bool(kinds) and not hits and not named
