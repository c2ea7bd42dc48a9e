"""How a simulated user behaves over a conversation, by rules: beside its errors (``errors``), what makes it
unlike a person. They are of ``muarl user check`` and of the guard; evaluations and training report the errors alone.

Like those, they read English, and would rather miss something than see it where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from muarl.domains.tasks import Task
from muarl.language import facts
from muarl.language.acts import asks_about, asks_for_yes, hear, may_be_told_anything
from muarl.language.coherence import incoherent
from muarl.language.consent import is_affirmative
from muarl.language.scenarios import (
    IDENTITY,
    brings_up_one_by_one,
    identity_in,
    knows_not_all,
    requests,
    tells_all_at_once,
)
from muarl.language.user_acts import is_fed_up, says_forget_it
from muarl.language.values import find_dates
from muarl.types.chat import STOP_WORDS, Message, ToolSpec, visible_to_user
from muarl.user_errors.conversation import UserConversation
from muarl.user_errors.endings import ENDS_ON_YES, alike, is_stuck
from muarl.user_errors.errors import RULES as ERRORS
from muarl.user_errors.errors import UserError, find_user_errors

CONDUCT: Mapping[str, str] = {
    "unknown_tool": "calls a tool that it does not have",
    "agrees_wrongly": "says yes to a proposal that names another id or number than its own",
    "agrees_and_stops": "says yes, or asks for something, and ends before it can be done",
    "never_stops": "goes on though the agent has long had nothing new to say",
    "incoherent": "writes what is no language: random words, broken characters, a fragment over and over",
    "front_loads": "says who it is and nearly all that it wants in its first message",
    "overtells": "answers a question with details of other things that nobody asked for",
    "repeats": "says the same sentences again though the agent has said something else",
}
"""Every rule here and what it finds."""

RULES: Mapping[str, str] = {**ERRORS, **CONDUCT}
"""These and the errors."""

GOES_ON = 8
"""Messages in a row in which the agent says the same, from which on a person would have given up."""
LOOPS = 4
"""Times on end that a message is said, word for word, which no patience explains."""
ALL = 0.75
"""The share of all requests' telling words that tells nearly all."""
FEW = 3
"""Telling words; requests with fewer can be told in a word."""
MOST = 0.6
"""The share of a request's telling words that tells it."""
MORE = 2
"""Facts of other things than the one asked for, from which on an answer tells more than asked."""
SENTENCE = 8
"""Words; shorter messages may be said again."""

_NO_YEAR = "0000"
_CODE = re.compile(r"(?<![\w-])(?P<form>[A-Za-z]{1,4})-(?P<digits>\d{3,})(?![\w-])")
_GROUPS: Mapping[str, frozenset[str]] = {
    "identity": IDENTITY,
    "order": frozenset({"order_id", "item_id", "reservation_id", "flight_number"}),
    "payment": frozenset({"payment_id", "card_ending"}),
}


def find_conduct(
    task: Task, messages: Sequence[Message], *, user_tools: Sequence[ToolSpec] = (), only: int | None = None
) -> tuple[UserError, ...]:
    """What the rules of ``CONDUCT`` find in a conversation about a task, in order; at most one of each a message.

    ``user_tools``: the tools that this user had. Messages of the task's history are no doing of this user's. ``only``:
    the index of the one message to look at.
    """
    talk = UserConversation.of(task, messages, user_tools)
    return tuple(
        UserError(rule, turn, detail)
        for turn, message in enumerate(messages)
        if message.role == "user" and (turn >= len(task.history) if only is None else turn == only)
        for rule, look in _LOOKS
        if (detail := look(talk, turn)) is not None
    )


def find_all(
    task: Task, messages: Sequence[Message], *, user_tools: Sequence[ToolSpec] = (), only: int | None = None
) -> tuple[UserError, ...]:
    """What all ``RULES`` but the judge find, in order. An early end on a yes counts once, as ``agrees_and_stops``.
    ``only``: see ``find_conduct``."""
    errors = find_user_errors(task, messages, user_tools=user_tools, only=only)
    own = find_conduct(task, messages, user_tools=user_tools, only=only)
    on_yes = {e.turn for e in errors if e.rule == "stops_early" and e.detail == ENDS_ON_YES}
    remaining = [e for e in errors if e.rule != "stops_early" or not (e.turn in on_yes or _gives_up(messages))]
    yes = [UserError("agrees_and_stops", turn, ENDS_ON_YES) for turn in on_yes]
    return tuple(sorted({(e.turn, e.rule): e for e in (*own, *remaining, *yes)}.values(), key=lambda e: e.turn))


def _gives_up(messages: Sequence[Message]) -> bool:
    """Whether the last message is of one who leaves, with a word, an agent that goes round in circles."""
    words = [m.content or "" for m in visible_to_user(messages[:-1]) if m.role == "assistant"]
    text = messages[-1].content or ""
    return is_stuck(messages, words[1:]) and (is_fed_up(text) or says_forget_it(text))


# What one message shows.


def _unknown_tool(talk: UserConversation, turn: int) -> str | None:
    for call in talk.messages[turn].tool_calls:
        if call.name not in talk.tools:
            return f"{call.name!r}, and has {', '.join(sorted(talk.tools)) or 'none'}"
    return None


def _agrees_wrongly(talk: UserConversation, turn: int) -> str | None:
    """Yes to a proposal that names a fact of a kind that its scenario has, and not the one of its scenario, nor one
    that anybody spoke of before."""
    proposal = talk.asked(turn)[1]
    if turn not in talk.said or not asks_for_yes(proposal) or not is_affirmative(talk.text(turn), proposal):
        return None
    scenario = talk.task.scenario
    if knows_not_all(scenario):
        return None
    proposed = max((i for i in talk.agent if i < turn), default=0)
    sources = f"{scenario}\n{talk.earlier(proposed)}"
    own = list(facts.stated(scenario, "zip code"))
    for fact in facts.stated(proposal):
        others = [f for f in own if f.kind == fact.kind and _form(f.value) == _form(fact.value)]
        if fact.kind == "name" or not others or facts.has_source(fact, sources):
            continue
        if not any(facts.has_source(other, proposal) for other in others) and not _from_tools(
            talk, proposed, fact.value
        ):
            return f"to {fact.kind.replace('_', ' ')} {fact.value!r}"
    for find in (_codes, _days):
        named, mine, before = find(proposal), find(scenario), find(sources)
        for value, form in named.items():
            same = {v for v, f in mine.items() if f == form}
            if same and value not in before and not same & named.keys() and not _from_tools(talk, proposed, value):
                return f"to {value!r}"
    return None


def _form(value: str) -> str:
    """What ids of one kind have in common: the letters before the digits, if that is how they are made."""
    match = re.fullmatch(r"#?([A-Za-z]*)[\d-]+", value)
    return match[1].upper() if match else "mixed"


def _from_tools(talk: UserConversation, turn: int, value: str) -> bool:
    """Whether the agent may have a value from its tools: a user who cannot see them cannot know better."""
    return any(value.strip("#") in (m.content or "") for m in talk.messages[:turn] if m.role == "tool")


def _front_loads(talk: UserConversation, turn: int) -> str | None:
    """Who it is and most of all requests; or several requests, of one who is to bring them up one by one."""
    scenario = talk.task.scenario
    if not talk.said or turn != talk.said[0] or talk.task.history or tells_all_at_once(scenario):
        return None
    said, wishes = _stems(talk.text(turn)), requests(scenario, conditions=True)
    stated = [wish for wish in wishes if _share(wish, said) >= MOST]
    if len(stated) > 1 and brings_up_one_by_one(scenario):
        return f"{len(stated)} of {len(wishes)} wishes, which come one by one"
    every = [word for wish in wishes for word in wish]
    identity = {w[:5] for w in identity_in(scenario)} - {w[:5] for w in every}
    if len(set(every)) < FEW or not identity & said or _share(every, said) < ALL:
        return None
    return f"who it is, and {len(stated)} of {len(wishes)} wishes"


def _overtells(talk: UserConversation, turn: int) -> str | None:
    """Facts of kinds that the agent's question is not about, or a whole request in answer to who it is, which nobody
    has told yet."""
    if turn not in talk.said[1:]:
        return None
    asked, text, earlier = talk.asked(turn)[1], talk.text(turn), talk.earlier(turn)
    if "?" not in asked or asks_for_yes(asked) or may_be_told_anything(asked) or "else" in hear(asked):
        return None
    about = asks_about(asked)
    said, before = _stems(text), _stems(earlier)
    wishes = requests(talk.task.scenario, conditions=True)
    identity = {w[:5] for w in identity_in(talk.task.scenario)} - {w[:5] for wish in wishes for w in wish}
    if not about or (about == {"identity"} and not identity & said):  # an answer to something else tells no more
        return None
    more = []
    for fact in facts.stated(text, asked):
        group = next((g for g, kinds in _GROUPS.items() if fact.kind in kinds), None)
        if group is not None and group not in about and not facts.has_source(fact, earlier):
            more.append(fact.value)
    if len(dict.fromkeys(more)) >= MORE:
        return f"asked for {' and '.join(sorted(about))}, it tells {', '.join(dict.fromkeys(more))}"
    if about == {"identity"}:
        for wish in wishes:
            new = ({w[:5] for w in wish} - before) & said
            telling = len(new) + sum(any(c.isdigit() for c in stem) for stem in new)
            if telling >= MORE and _share(wish, said | before) >= MOST:
                return f"asked who it is, it tells: {' '.join(wish)}"
    return None


def _repeats(talk: UserConversation, turn: int) -> str | None:
    """A sentence or more that it has said twice before, word for word, each time to other words of the agent's."""
    words = facts.words(talk.text(turn))
    if turn not in talk.said or len(words) < SENTENCE:
        return None
    same = [i for i in talk.said if i < turn and facts.words(talk.text(i)) == words]
    if not same:
        return None
    asked = [talk.asked(i)[1] for i in (*same, turn)]
    if any(alike(asked[-1], other) for other in asked[:-1]):
        return None
    return f"said before: {talk.text(turn)[:100]}"


def _loops(talk: UserConversation, turn: int) -> str | None:
    """Once a row: the same, word for word, for so many messages on end, whatever the agent says."""
    if turn not in talk.said:
        return None
    row = [facts.words(talk.text(i)) for i in talk.said if i <= turn][-LOOPS - 1 :]
    if len(row) < LOOPS or not row[-1] or any(words != row[-1] for words in row[-LOOPS:]):
        return None
    return f"{LOOPS} times: {talk.text(turn)[:100]}" if len(row) == LOOPS or row[0] != row[-1] else None


def _never_stops(talk: UserConversation, turn: int) -> str | None:
    """Once a conversation: the message behind so many of the agent's that all say the same."""
    if turn not in talk.said or any(w in (talk.messages[turn].content or "") for w in STOP_WORDS):
        return None
    heard = [talk.messages[i].content or "" for i in talk.agent if i < turn]
    if len(heard) <= GOES_ON or not _same(heard[-GOES_ON:]):
        return None
    return f"after {GOES_ON} messages that say the same" if not _same(heard[-GOES_ON - 1 : -1]) else None


def _incoherent(talk: UserConversation, turn: int) -> str | None:
    """What no writer of any language writes, or, with the messages before it, words that do not follow one another."""
    if turn not in talk.said or not talk.text(turn):
        return None
    seen = visible_to_user(talk.messages[:turn])
    heard = [(m.role == "user", m.content or "") for m in seen if m.content and not m.tool_calls]
    return incoherent([*heard, (True, talk.text(turn))], talk.told)


def _same(texts: Sequence[str]) -> bool:
    return all(alike(texts[0], text) for text in texts[1:])


def _mistaken(talk: UserConversation, turn: int, *, same_kind: bool) -> str | None:
    """A code or a date that neither the scenario nor anybody else has named; ``same_kind``: the scenario has another
    one. Facts that the errors' rules know of are left to them."""
    if turn not in talk.said:
        return None
    text, scenario, heard = talk.text(turn), talk.told, talk.heard(turn)
    for find, what in ((_codes, "code"), (_days, "date")):
        own = find(scenario)
        named, forms = {**own, **find(heard)}, frozenset(own.values())
        for value, form in find(text).items():
            if value not in named and (form in forms) == same_kind:
                return f"{what} {value!r}"
    return None


def _codes(text: str) -> dict[str, str]:
    """Codes in a text that no kind of fact is, such as CL-36444, each with its form, the letters before its digits."""
    for _, pattern in facts.KINDS:
        text = pattern.sub(" ", text)
    return {f"{m['form'].upper()}-{m['digits']}": m["form"].upper() for m in _CODE.finditer(text)}


def _days(text: str) -> dict[str, str]:
    """Days in a text, in each spelling that names them: with the year, where it is told, and without; all of one
    form."""
    out = {}
    for mention in find_dates(text, _NO_YEAR):
        out[mention.value[5:]] = "day"
        if not mention.value.startswith(_NO_YEAR):
            out[mention.value] = "day with its year"
    return out


def _share(wish: Sequence[str], said: frozenset[str]) -> float:
    stems = {w[:5] for w in wish}
    return len(stems & said) / len(stems) if stems else 0.0


def _stems(text: str) -> frozenset[str]:
    return frozenset(w[:5] for w in facts.words(text))


_LOOKS: tuple[tuple[str, Callable[[UserConversation, int], str | None]], ...] = (
    ("contradicts", partial(_mistaken, same_kind=True)),
    ("invents", partial(_mistaken, same_kind=False)),
    ("unknown_tool", _unknown_tool),
    ("agrees_wrongly", _agrees_wrongly),
    ("front_loads", _front_loads),
    ("overtells", _overtells),
    ("repeats", _repeats),
    ("loops", _loops),
    ("never_stops", _never_stops),
    ("incoherent", _incoherent),
)
