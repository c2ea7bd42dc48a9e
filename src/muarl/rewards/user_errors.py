"""What a simulated user did wrong, found by rules: an episode's score says little about an agent whose user failed it.

Each finding names the message and the rule. The rules read English, and would rather miss an error than see one where
there is none. A language model may look as well (rewards/user_judge.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.base import Task
from muarl.rewards import facts
from muarl.rewards.closings import ended_early
from muarl.types.chat import STOP_WORDS, Message, ToolSpec, visible_to_user

RULES: Mapping[str, str] = {
    "contradicts": "gives an id, a name or a number other than the one in its scenario",
    "invents": "gives an id, a name or a number that it cannot know",
    "leaks": "quotes its instructions, speaks of them or of being a model, or writes tool calls as text",
    "breaks_character": "speaks as the agent, writes the agent's part, or leaves a placeholder",
    "pretends": "reports an action or observation on its own side without a tool call",
    "stops_early": "ends the conversation with something still open",
    "loops": "repeats itself regardless of the agent's replies",
    "empty": "sends a message without words",
    "judge": "found by the judge of users",
}
"""Every rule and what it finds."""

QUOTED_ORDER, QUOTED = 8, 20
"""Words in a row that a user takes from its instructions, names and numbers not counted: enough if they tell somebody
what to do; enough anyhow, where they differ (a list such as passengers with their data has many words, few of them
different)."""


@dataclass(frozen=True, slots=True)
class UserError:
    """One finding. ``turn``: index of the user's message among the episode's messages. ``detail``: what was found."""

    rule: str
    turn: int
    detail: str

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields."""
        return {"rule": self.rule, "turn": self.turn, "detail": self.detail}


def find_user_errors(
    task: Task, messages: Sequence[Message], *, user_tools: Sequence[ToolSpec] = (), only: int | None = None
) -> tuple[UserError, ...]:
    """The user's errors in a conversation about a task, in order; at most one of each rule a message.

    ``user_tools``: the tools that this user had. Messages of the task's history are no doing of this user's. ``only``:
    the index of the one message to look at.
    """
    found: list[UserError] = []
    talk = _Talk(task, messages, frozenset(t.name for t in user_tools))
    for turn, message in enumerate(messages):
        if message.role != "user" or (turn < len(task.history) if only is None else turn != only):
            continue
        for rule, look in _LOOKS:
            detail = look(talk, turn)
            if detail is not None:
                found.append(UserError(rule, turn, detail))
    return tuple(found)


class _Talk:
    """A conversation with what its user could know, for the rules to look at."""

    def __init__(self, task: Task, messages: Sequence[Message], user_tools: frozenset[str]) -> None:
        self.task, self.messages, self.user_tools = task, messages, user_tools
        self.lines = frozenset(s.strip() for s in strings(task.agenda))
        """What an agenda holds, some of it word for word what is to be said."""
        self.told = task.scenario + "\n" + " ".join(strings(task.agenda))

    def text(self, turn: int) -> str:
        """A message's words, without stop words."""
        text = self.messages[turn].content or ""
        for word in STOP_WORDS:
            text = text.replace(word, " ")
        return text.strip()

    def heard(self, turn: int) -> str:
        """What others said or showed to the user before a message: the agent's words, its own tools' results."""
        seen = visible_to_user(self.messages[:turn])
        return "\n".join(m.content or "" for m in seen if m.role != "user")

    def agent_before(self, turn: int) -> tuple[int, str]:
        """Index and words of the agent's last message to the user before a message; (-1, "") if there is none."""
        for index in range(turn - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant" and not message.tool_calls:
                return index, message.content or ""
        return -1, ""

    def calls_between(self, first: int, last: int) -> bool:
        """Whether the user called a tool after one message and before another."""
        return any(m.role == "user" and m.tool_calls for m in self.messages[first + 1 : last])


def strings(value: Any) -> Iterator[str]:
    """All text within a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, Iterable):
        for inner in value:
            yield from strings(inner)


# Facts that the user cannot have.


def _contradicts(talk: _Talk, turn: int) -> str | None:
    return _wrong_fact(talk, turn, known_kind=True)


def _invents(talk: _Talk, turn: int) -> str | None:
    return _wrong_fact(talk, turn, known_kind=False)


def _wrong_fact(talk: _Talk, turn: int, *, known_kind: bool) -> str | None:
    """The first fact without a source, of a kind that the scenario has another one of, or has none of."""
    if talk.messages[turn].tool_calls:
        return None
    _, asked = talk.agent_before(turn)
    for fact in facts.stated(talk.text(turn), asked):
        if facts.has_source(fact, talk.told) or facts.has_source(fact, talk.heard(turn)):
            continue
        if facts.has_kind(fact.kind, talk.told) == known_kind:
            return f"{fact.kind.replace('_', ' ')} {fact.value!r}"
    return None


# What gives away that this is a play.

_SPEAKS_OF_IT = re.compile(
    r"\bas an? (ai|artificial intelligence|language model|llm)\b|\b(i'?m|i am) (just )?an? (ai|llm|language model)\b"
    r"|\b(large )?language model\b|\buser simulat|\bsimulated (user|customer)\b|\bsystem prompt\b"
    r"|\b(i'?m|i am) (only )?(simulating|role-?playing|playing the (role|part))\b"
    r"|\b(task|scenario|simulation|user) (instructions?|guidelines?)\b|\bmy instructions?\b|\bmy scenario\b"
    r"|\binstructions? (i|that i|i'?ve) (was|were|have been|been|am) given\b|\b(i was|i'?ve been|i am"
    r"|i'?m) instructed\b"
    r"|\b(the|this|my) (scenario|instructions?|prompt) (says?|states?|tells?|asks?|requires?|specif|mention|do(es)?n'?t"
    r"|do(es)? not|only says?|include|provide)"
    r"|\b(in|by|from|to|per) (the|my|this) (scenario|prompt)\b(?! (where|when|that|if|of|above|below))"
    r"|\baccording to (the|my) (scenario|instructions?)\b|\bper (the|my) instructions?\b"
    r"|\bn(ot|'t) (\w+ )?(provided|mentioned|specified|included|given|available|stated) (in|by) (the|my|this) "
    r"(scenario|instructions?|context|prompt)\b"
    r"|^\s*(reason for call|known info|unknown info|task instructions|persona|thought|user response)\s*:|</?think>",
    re.IGNORECASE | re.MULTILINE,
)
_NARRATES = re.compile(
    r"\bthe (user|customer) (wants?|would like|should|says?|is asking|asks?|needs?)\b", re.IGNORECASE
)
_TOOL_TEXT = re.compile(
    r"<tool_call>|<function[_=]|\bfunction_call\b|```(json|python|tool)?\s*[{\[]"
    r'|\{\s*"(name|tool|tool_name|function|action|arguments|parameters)"\s*:|\b[a-z]+(_[a-z]+)+\([^)]*\)',
)
_SAY_THIS = re.compile(r"(?<!\w)'[^'\n]{12,}'(?!\w)|\"[^\"\n]{12,}\"|“[^”\n]{12,}”")
"""What a scenario puts between quotation marks, a user may be told to say word for word."""
_TELLS_SOMEBODY = frozenset({"you", "you're", "yourself", "agent", "user"})


def _leaks(talk: _Talk, turn: int) -> str | None:
    if talk.messages[turn].tool_calls:
        return None
    text = talk.text(turn)
    if text in talk.lines:
        return None
    for pattern, what in ((_TOOL_TEXT, "a tool call as text"), (_SPEAKS_OF_IT, "speaks of its part")):
        if found := pattern.search(text):
            return f"{what}: {_short(found.group())}"
    if (found := _NARRATES.search(text)) and not _NARRATES.search(talk.heard(turn)):
        return f"tells instead of speaking: {_short(found.group())}"
    told = _SAY_THIS.sub(" ; ", talk.task.scenario)
    run = longest_run(facts.words(text), facts.words(told))
    names = {w.lower() for w in re.findall(r"\b[A-Z]\w*", told)}
    plain = [w for w in run if w.isalpha() and w not in names]
    if len(set(plain)) >= QUOTED or (len(plain) >= QUOTED_ORDER and _TELLS_SOMEBODY & set(run)):
        return f"quotes its instructions: {_short(' '.join(run))}"
    return None


def longest_run(said: Sequence[str], told: Sequence[str]) -> Sequence[str]:
    """The longest stretch of ``said`` that stands word for word in ``told``."""
    best_end = best = 0
    before = [0] * (len(told) + 1)
    for i, word in enumerate(said, 1):
        row = [0] * (len(told) + 1)
        for j, other in enumerate(told, 1):
            if word == other:
                row[j] = before[j - 1] + 1
                if row[j] > best:
                    best, best_end = row[j], i
        before = row
    return said[best_end - best : best_end]


_AS_AGENT = re.compile(
    r"\bhow (can|may) i (help|assist|be of)\b|\banything else (that )?i can (help|assist|do for) (you|with)\b"
    r"|\b(i have|i've|i) (now |just |successfully |already )*(processed|cancell?ed|updated|modified|refunded|exchanged"
    r"|booked|issued|scheduled|initiated|located|retrieved|verified|reactivated|refuelled|refueled) your\b"
    r"|\byour (order|reservation|refund|return|exchange|booking|flight|account|request|payment|certificate|line) "
    r"(\S+ ){0,3}?(has|have) been (successfully )?(process|cancel|updat|modif|refund|exchang|book|issu|chang|submit"
    r"|reactiv)"
    r"|\bthank(s| you) for (contacting|calling|reaching out to|choosing) (us|our|customer)\b"
    r"|\b(could|can|may) you (please )?(provide|give|share|confirm) (me )?(with )?your\b(?! (manager|supervisor"
    r"|name|phone))"
    r"|\b(i'?ll|i will|i can|let me) (now )?(transfer|connect) you\b|\bi'?m here to (help|assist)\b"
    r"|\b(feel free|don'?t hesitate) to (reach out|contact us|ask|let me know)\b"
    r"|\bto (help|assist) you (further|better|with (this|that|your))\b"
    r"|\bas (your|a|the) (customer (service|support)|support) (agent|representative|assistant)\b",
    re.IGNORECASE,
)
_AGENTS_PART = re.compile(
    r"^\s*\**(agent|assistant|customer service( (agent|representative))?|representative|support( agent)?)\**\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_PLACEHOLDER = re.compile(
    r"\[(your|my|insert|customer'?s?|user'?s?|order|reservation|name|email|phone|zip|first|last"
    r"|account)\b[^\]\n]{0,40}\]"
    r"|<(insert|your|my) [^>\n]{1,40}>|\bX{3,}[- ]?X{2,}",
    re.IGNORECASE,
)


def _breaks_character(talk: _Talk, turn: int) -> str | None:
    if talk.messages[turn].tool_calls:
        return None
    text = talk.text(turn)
    for pattern, what in (
        (_AGENTS_PART, "writes the agent's part"),
        (_AS_AGENT, "speaks as the agent"),
        (_PLACEHOLDER, "a placeholder"),
    ):
        if found := pattern.search(text):
            return f"{what}: {_short(found.group())}"
    return None


# What was not done, and what goes on and on.

_DID = re.compile(
    r"\bi(?:'ve| have)?(?: just| now| also| already)* (turned|toggled|switched|restarted|rebooted|reset|disabled"
    r"|enabled"
    r"|removed|reseated|re-?inserted|granted|disconnected|ran|checked|set|put) (?P<what>[^.,;!?]{2,60})"
    r"|\b(?:the|my) (status bar|speed test|apn|network mode|sim(?: card)?|vpn|wi-?fi|data saver|phone|screen) "
    r"(?:now |still |currently )*(says|shows|displays|reads)\b"
    r"|\b(?:the )?(speed test) (?:result )?(?:is|was|came)\b",
    re.IGNORECASE,
)
_BEFORE_THE_CALL = re.compile(
    r"\b(before|earlier|yesterday|already tried|this morning|last (night|week|time))\b", re.IGNORECASE
)
_ASKS_TO_DO = re.compile(
    r"\b(turn|toggle|switch|restart|reboot|reset|disable|enable|remove|reseat|re-?insert|grant|disconnect|run|check"
    r"|set|"
    r"look at|tell me what|open)\b",
    re.IGNORECASE,
)


def _pretends(talk: _Talk, turn: int) -> str | None:
    if not talk.user_tools or talk.messages[turn].tool_calls:
        return None
    index, asked = talk.agent_before(turn)
    text = talk.text(turn)
    found = _DID.search(text)
    if found is None or not _ASKS_TO_DO.search(asked) or _BEFORE_THE_CALL.search(text):
        return None
    return None if talk.calls_between(index, turn) else f"without any call: {_short(found.group())}"


def _stops_early(talk: _Talk, turn: int) -> str | None:
    message = talk.messages[turn]
    if message.tool_calls or turn != len(talk.messages) - 1:
        return None
    return ended_early(talk.task, talk.messages, bool(talk.user_tools))


def _loops(talk: _Talk, turn: int) -> str | None:
    """The third time in a row, though the agent did not repeat itself."""
    said = [i for i in range(turn + 1) if talk.messages[i].role == "user" and not talk.messages[i].tool_calls]
    if len(said) < 3 or said[-1] != turn:
        return None
    last = [facts.words(talk.text(i)) for i in said[-3:]]
    if not last[0] or last[0] != last[1] or last[1] != last[2]:
        return None
    answers = {talk.agent_before(i)[1].strip() for i in said[-2:]}
    return f"three times: {_short(talk.text(turn))}" if len(answers) == 2 else None


def _empty(talk: _Talk, turn: int) -> str | None:
    message = talk.messages[turn]
    content = message.content or ""
    if message.tool_calls or any(word in content for word in STOP_WORDS) or re.search(r"\w", content):
        return None
    return f"no word: {content.strip()!r}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:119] + "…"


_LOOKS: tuple[tuple[str, Callable[[_Talk, int], str | None]], ...] = (
    ("contradicts", _contradicts),
    ("invents", _invents),
    ("leaks", _leaks),
    ("breaks_character", _breaks_character),
    ("pretends", _pretends),
    ("stops_early", _stops_early),
    ("loops", _loops),
    ("empty", _empty),
)
