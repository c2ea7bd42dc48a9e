"""What the clauses of a reply to a proposal do: agree, refuse, ask, set a condition, and so on.

A reply is cut into sentences and these into clauses. Each clause has the acts (``Act``) that its words show
(language/phrases.py). What comes behind "also", "by the way" or "my other order" is about another thing: what is asked
or wished for there takes nothing from a yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from muarl.language import phrases
from muarl.language.phrases import whole_words
from muarl.language.proposals import Proposal, content_words
from muarl.language.sentences import normal_text, spelled_out

Act = Literal[
    "agrees", "answers", "orders", "speaks", "strays", "withdraws", "hesitates", "doubts", "weakens",
    "mocks", "refuses", "asks", "conditions", "limits", "changes", "requests",
]  # fmt: skip
"""Acts of yes: ``agrees`` in words that mean nothing else ("go ahead", "I confirm"), ``answers`` in words that may
answer anything ("yes", "right", "fine"), ``orders`` what the agent proposed, or chooses among what it offered, in the
proposal's own words.

What a yes may belong to instead: ``speaks`` ("I am still here"), ``strays`` (has several words that
neither the proposal nor mere assent has).

What takes from a yes: ``withdraws`` (puts it off or takes it back), ``hesitates`` (wants to think or ask first),
``doubts`` (is not sure), ``weakens`` (does so beside a yes, and tells a story elsewhere), ``mocks``, ``refuses``,
``asks`` (wants to know something of what was proposed), ``conditions``, ``limits`` (means a part), ``changes``,
``requests`` (what was not proposed)."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What a clause does."""

    acts: frozenset[Act]
    further: bool
    """It is about another thing than the proposal."""
    sentence: int
    """The number of its sentence in the reply."""


YES_ACTS: frozenset[Act] = frozenset({"agrees", "answers", "orders"})
_LISTED: tuple[Act, ...] = tuple(act for act in get_args(Act) if act not in ("answers", "orders", "strays"))
_ACTS: Mapping[Act, re.Pattern[str]] = {act: whole_words(*getattr(phrases, act.upper())) for act in _LISTED}
_OF_ANOTHER_THING: frozenset[Act] = frozenset(
    {"strays", "hesitates", "doubts", "weakens", "refuses", "asks", "conditions", "limits", "changes", "requests"}
)
"""What counts for nothing where it is about another thing."""
_EVEN_IN_REASONS: Sequence[Act] = ("withdraws", "hesitates")

PLACE_WORDS = 4
"""So many words at most between two commas of an address."""

_TITLES = re.compile(r"\b(dr|mr|mrs|ms|prof|st|a\.m|p\.m)\.(?=\s)")
_SENTENCE = re.compile(
    r"(?<=[.!?;])\s+|(?<=[.!?;][\"'])\s+|(?<=[!?;])(?=[a-z])|\.\.+|…"
    r"|(?<=[a-z]\.)(?=[a-z]{2})(?!(?:com|net|org|example)\b)"
)
_CLAUSE = re.compile(
    r"[,:]\s|[()]|\s-+\s|\s?[–—]\s?|\s(?=(?:and|but|though|although|because|since|thank|thanks|so (?!long|the|much|far)"
    r"|(?<!long )(?<!soon )as (?:i|we|my|the|it|you))\b)"
)
_REASON = re.compile(
    r"(?:because|since|which (?:is why|was|he|she|he's|she's|they)|as (?:i|we|my|the|it|you)"
    r"|so (?:that|i|we|he|she|they|my)|cause)\b"
)
_LEAD = re.compile(rf"(?:{'|'.join(phrases.LEADS)})\b(?!')[ .!]*")
_LEADING_YES = re.compile(r"(?:ok|okay|alright|fine|great|perfect|sure|yeah|yep|yes|yup)\b")
_CONTRAST = re.compile(r"(?:but|though|although|however|yet|except|only)\b")
_ASK_FOR = re.compile(
    r"^(?:you (?:may|can|could|should)|(?:i|we)(?:'d| would) (?:like|love|prefer) (?:for )?you to"
    r"|(?:can|could|would|will) you|let's|go ahead and) (?:please |just |kindly |then |now |go ahead and )?"
)
_DO_IT = re.compile(
    r"(?:file|submit|place|push|process|apply|execute|complete|send|book|issue|save|lock|set|run|push|switch|make)"
    r" (?:it|that|this|them|those)(?: (?:in|up|on|through|off|now|then|please|already)){0,2}"
)
_THANKS = re.compile(r"(?:thank|thanks|cheers)\b")
_THANKS_FOR = re.compile(r"(?:and )?(?:thank you|thanks|cheers)(?: so much| very much)? for (?!trying|the offer)")
_YES = whole_words(*phrases.YES, *(f"^{w}" for w in phrases.FIRST_YES), *phrases.LAST_YES)
_FURTHER, _FURTHER_REQUEST, _DEAL, _BESIDE = (
    whole_words(*words) for words in (phrases.FURTHER, phrases.FURTHER_REQUEST, phrases.DEAL, phrases.HARMLESS)
)
_REFERS = whole_words("(?<!at )it", "that", "this", "they", "them", "these", "those", "ones?(?!-)", "mine")
_NAMES_A_THING = whole_words(
    r"(?:my|our|another|other|an?|his|her|second) (?!questions?|minute|moment|few|couple|lot|bit)\w+"
)
_OTHER_DEED = re.compile(
    r"\b(?:can|could|would|will) (?:you|i|we) (?:please |kindly )?(?:search|look up|look into|find|book|add|arrange"
    r"|order|reserve|put|send|set up|email|mail|forward|print|borrow|check if|check whether)\b"
)
_POLITE_ORDER = re.compile(
    r"(?:can|could|would|will) you (?:(?:please|kindly|just|go ahead and) )*"
    r"(?:(?P<deed>\w+)(?: (?:it|that|this|them|those|so))?|go ahead)"
    r"(?: (?:for me|then|please|thanks|now|and \w+ (?:it|that|them)))*$"
)
_ABOUT_YOU = whole_words("where you are", "are you (?!sure|going|able|still|charging|saying|certain)")
_OPEN = re.compile(r"(?:which|what|where|who|whom|whose|when|why|how|and|or|but)\b")


def clauses(text: str, proposal: Proposal) -> list[Clause]:
    """The clauses of a reply, in order."""
    out: list[Clause] = []
    further = topic = False  # ``topic``: something else was named, which "it" may now mean
    for number, sentence in enumerate(_sentences(text)):
        parts = [part for p in _CLAUSE.split(sentence) if (part := p.strip(" .!?;,\"'*()"))]
        read = [_acts(part, proposal) for part in parts]
        if number == 0 and parts == ["please"]:
            read = [read[0] | {"agrees"}]
        says_yes = any(acts & YES_ACTS for acts in read)
        if says_yes:  # what stands beside a yes belongs to it
            read = [acts | _beside_yes(part, acts, sentence, proposal) for part, acts in zip(parts, read, strict=True)]
            read = _with_places(parts, read, proposal)
        question = sentence.rstrip("!. )").endswith("?")
        chatter = question and not (says_yes or further or _is_about_it(sentence, proposal, topic))
        for index, (part, acts) in enumerate(zip(parts, read, strict=True)):
            ends = question and index == len(parts) - 1
            further = further or _turns(part, acts, ends) or (ends and proposal.names_another_code(part))
            if index == 0 and part.startswith("but "):
                acts = acts | {"changes"}
            if chatter:
                acts = acts - {"asks"}
            elif ends and not (_is_order(part, proposal) or _is_order(" ".join(parts[-2:]), proposal)):
                acts = acts | {"asks"}
            names = bool(_NAMES_A_THING.search(part))
            if further and not ("asks" in acts and _REFERS.search(part) and not (topic or names)):
                acts = acts - _OF_ANOTHER_THING
            topic = (
                (further and "asks" not in acts and not _FURTHER.fullmatch(part)) or names or (topic and not says_yes)
            )
            if acts or not _THANKS.match(part):
                out.append(Clause(acts, further, number))
    return out


def _sentences(text: str) -> Iterator[str]:
    plain = _BESIDE.sub(" ", _TITLES.sub(r"\1", spelled_out(normal_text(text))))
    return (s.strip() for s in _SENTENCE.split(plain) if s.strip(" .!;,"))


def _acts(part: str, proposal: Proposal) -> frozenset[Act]:
    if _THANKS_FOR.match(part):
        return frozenset()
    if _REASON.match(part):
        return frozenset(a for a in _EVEN_IN_REASONS if _ACTS[a].search(part))
    core, leads = _without_leads(part)
    acts = {name for name, pattern in _ACTS.items() if pattern.search(part) or (leads and pattern.search(core))}
    if _YES.search(core) or _YES.search(part) or any(_LEADING_YES.match(lead) for lead in leads):
        acts.add("answers")
    begins_with_deed = proposal.begins_with_deed(core)
    if _CONTRAST.match(part) and not acts & YES_ACTS:
        acts.add("weakens")
    if _DO_IT.fullmatch(core) or proposal.ordered_by(_ASK_FOR.sub("", core)):
        acts.add("orders")
        acts -= {"asks"}
    if proposal.has_all(core):
        acts -= {"changes", "requests", *(("limits",) if "orders" in acts else ())}
    if acts & YES_ACTS:
        acts.discard("requests")
    if proposal.offers and ("orders" in acts or content_words(core) & proposal.words):
        acts -= {"refuses", "limits", "weakens"}  # of what was offered, it names one
        if "orders" in acts:
            acts.discard("changes")
    if not (begins_with_deed or _THANKS.match(core)) and proposal.is_not_about(core):
        acts.add("strays")
    if (acts & YES_ACTS or part.startswith("with ") or begins_with_deed) and proposal.redirected_by(core):
        acts.add("changes")
    if acts & YES_ACTS and proposal.differs(core):
        acts.add("changes")
    return frozenset(acts)


def _beside_yes(part: str, acts: frozenset[Act], sentence: str, proposal: Proposal) -> frozenset[Act]:
    """What a clause in the sentence of a yes does by naming something else, or only a part."""
    changes: frozenset[Act] = frozenset({"changes"} if proposal.renamed_by(part) else ())
    return changes | ({"limits"} if acts & YES_ACTS and proposal.halved_by(part, sentence) else frozenset())


def _with_places(parts: Sequence[str], read: Sequence[frozenset[Act]], proposal: Proposal) -> list[frozenset[Act]]:
    """What the clauses of a sentence do where one orders to a place and the next ones go on with it: "Send it to 27
    Bridge Street, Atlanta, GA 54498" changes a proposal to send it to 27 Bridge Street, Portland, OR 13580."""
    out, to_a_place = list(read), False
    for index, (part, acts) in enumerate(zip(parts, read, strict=True)):
        if acts & YES_ACTS:
            to_a_place = acts & YES_ACTS == {"orders"} and proposal.says_where(part)
        elif to_a_place and len(part.split()) <= PLACE_WORDS and not _REASON.match(part):
            out[index] = acts | ({"changes"} if proposal.names_another(part) else set())
    return out


def _without_leads(part: str) -> tuple[str, list[str]]:
    """A clause without "oh, well, yes", and these, one by one."""
    leads = []
    while (lead := _LEAD.match(part)) is not None:
        leads.append(lead.group())
        part = part[lead.end() :]
    return part, leads


def _turns(part: str, acts: frozenset[Act], ends: bool) -> bool:
    """True if a clause begins another thing; "if you also waive the fee" does not. ``ends``: it ends a question."""
    if part.startswith("but ") and " also " not in part:
        return False
    turn = _FURTHER.search(part) or (None if ends or "asks" in acts else _FURTHER_REQUEST.search(part))
    condition = _ACTS["conditions"].search(part)
    if turn is not None:
        return condition is None or turn.start() <= condition.start()
    return bool(_OTHER_DEED.search(part)) and not _REFERS.search(part)


def _is_order(part: str, proposal: Proposal) -> bool:
    """True for an order in the form of a question: "Could you please do that?"."""
    order = _POLITE_ORDER.fullmatch(_without_leads(part)[0])
    if order is None:
        return False
    deed = order["deed"]
    return deed is None or deed in ("do", "proceed", "process") or proposal.names_deed(deed)


def _is_about_it(sentence: str, proposal: Proposal, topic: bool) -> bool:
    """True if a question may be about what was proposed; "Do you know a joke?" is not. ``topic``: something else was
    named before."""
    if _DEAL.search(sentence):
        return True
    if _ABOUT_YOU.search(sentence):
        return False
    if len(sentence.split()) <= 3 and _OPEN.match(sentence):
        return True
    return (bool(_REFERS.search(sentence)) and not topic) or bool(content_words(sentence) & proposal.words)
