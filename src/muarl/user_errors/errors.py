"""What a simulated user did wrong, found by rules: an episode's score says little about an agent whose user failed it.

Each finding names the message and the rule. The rules read English, and would rather miss an error than see one where
there is none. A language model may look as well (``judge``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.tasks import Task
from muarl.language import facts
from muarl.language.acts import speaks_of_doing
from muarl.language.user_acts import (
    agents_part,
    call_as_text,
    narration,
    placeholder,
    reported_deed,
    talk_as_agent,
    talk_of_its_part,
)
from muarl.types.chat import STOP_WORDS, Message, ToolSpec
from muarl.user_errors.conversation import UserConversation, strings
from muarl.user_errors.endings import ended_early
from muarl.user_errors.omitted_actions import omitted_action

RULES: Mapping[str, str] = {
    "contradicts": "gives an id, a name or a number other than the one in its scenario",
    "invents": "gives an id, a name or a number that it cannot know",
    "leaks": "quotes its instructions, speaks of them or of being a model, or writes tool calls as text",
    "breaks_character": "speaks as the agent, writes the agent's part, or leaves a placeholder",
    "pretends": "reports an action or observation on its own side without a tool call, where no action is known",
    "omits_actions": "says that it did something on its device, without the tool call that does it",
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
    """One finding."""

    rule: str
    turn: int
    """Index of the user's message among the episode's messages."""
    detail: str
    """What is wrong, in a few words."""

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
    errors: list[UserError] = []
    talk = UserConversation.of(task, messages, user_tools)
    for turn, message in enumerate(messages):
        if message.role != "user" or (turn < len(task.history) if only is None else turn != only):
            continue
        for rule, look in _LOOKS:
            detail = look(talk, turn)
            if detail is not None:
                errors.append(UserError(rule, turn, detail))
    return tuple(errors)


# Facts that the user cannot have.


def _contradicts(talk: UserConversation, turn: int) -> str | None:
    return _wrong_fact(talk, turn, known_kind=True)


def _invents(talk: UserConversation, turn: int) -> str | None:
    return _wrong_fact(talk, turn, known_kind=False)


def _wrong_fact(talk: UserConversation, turn: int, *, known_kind: bool) -> str | None:
    """The first fact without a source, of a kind that the scenario has another one of, or has none of."""
    if talk.messages[turn].tool_calls:
        return None
    _, asked = talk.asked(turn)
    for fact in facts.stated(talk.text(turn), asked):
        if facts.has_source(fact, talk.told) or facts.has_source(fact, talk.heard(turn)):
            continue
        if facts.has_kind(fact.kind, talk.told) == known_kind:
            return f"{fact.kind.replace('_', ' ')} {fact.value!r}"
    return None


# What gives away that this is a play.

_SAY_THIS = re.compile(r"(?<!\w)'[^'\n]{12,}'(?!\w)|\"[^\"\n]{12,}\"|“[^”\n]{12,}”")
"""What a scenario puts between quotation marks, a user may be told to say word for word."""
_TELLS_SOMEBODY = frozenset({"you", "you're", "yourself", "agent", "user"})


def _leaks(talk: UserConversation, turn: int) -> str | None:
    if talk.messages[turn].tool_calls:
        return None
    text = talk.text(turn)
    if text in {line.strip() for line in strings(talk.task.agenda)}:  # some of it is to be said word for word
        return None
    if call := call_as_text(text):
        return f"a tool call as text: {_short(call)}"
    if words := talk_of_its_part(text):
        return f"speaks of its part: {_short(words)}"
    if (words := narration(text)) and not narration(talk.heard(turn)):
        return f"tells instead of speaking: {_short(words)}"
    scenario = _SAY_THIS.sub(" ; ", talk.task.scenario)
    run = longest_run(facts.words(text), facts.words(scenario))
    names = {w.lower() for w in re.findall(r"\b[A-Z]\w*", scenario)}
    plain = [w for w in run if w.isalpha() and w not in names]
    if len(set(plain)) >= QUOTED or (len(plain) >= QUOTED_ORDER and _TELLS_SOMEBODY & set(run)):
        return f"quotes its instructions: {_short(' '.join(run))}"
    return None


def longest_run(said: Sequence[str], source: Sequence[str]) -> Sequence[str]:
    """The longest stretch of ``said`` that stands word for word in ``source``."""
    best_end = best = 0
    before = [0] * (len(source) + 1)
    for i, word in enumerate(said, 1):
        row = [0] * (len(source) + 1)
        for j, other in enumerate(source, 1):
            if word == other:
                row[j] = before[j - 1] + 1
                if row[j] > best:
                    best, best_end = row[j], i
        before = row
    return said[best_end - best : best_end]


def _breaks_character(talk: UserConversation, turn: int) -> str | None:
    if talk.messages[turn].tool_calls:
        return None
    text = talk.text(turn)
    for find, what in (
        (agents_part, "writes the agent's part"),
        (talk_as_agent, "speaks as the agent"),
        (placeholder, "a placeholder"),
    ):
        if (words := find(text)) is not None:
            return f"{what}: {_short(words)}"
    return None


# What was not done, and what goes on and on.


def _pretends(talk: UserConversation, turn: int) -> str | None:
    if not talk.tools or talk.messages[turn].tool_calls or omitted_action(talk, turn) is not None:
        return None
    index, asked = talk.asked(turn)
    deed = reported_deed(talk.text(turn))
    if deed is None or not speaks_of_doing(asked):
        return None
    return None if talk.calls_between(index, turn) else f"without any call: {_short(deed)}"


def _stops_early(talk: UserConversation, turn: int) -> str | None:
    message = talk.messages[turn]
    if message.tool_calls or turn != len(talk.messages) - 1:
        return None
    return ended_early(talk.task, talk.messages, bool(talk.tools))


def _loops(talk: UserConversation, turn: int) -> str | None:
    """The third time in a row, though the agent did not repeat itself."""
    said = [i for i in range(turn + 1) if talk.messages[i].role == "user" and not talk.messages[i].tool_calls]
    if len(said) < 3 or said[-1] != turn:
        return None
    last = [facts.words(talk.text(i)) for i in said[-3:]]
    if not last[0] or last[0] != last[1] or last[1] != last[2]:
        return None
    answers = {talk.asked(i)[1].strip() for i in said[-2:]}
    return f"three times: {_short(talk.text(turn))}" if len(answers) == 2 else None


def _empty(talk: UserConversation, turn: int) -> str | None:
    message = talk.messages[turn]
    content = message.content or ""
    if message.tool_calls or any(word in content for word in STOP_WORDS) or re.search(r"\w", content):
        return None
    return f"no word: {content.strip()!r}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:119] + "…"


_LOOKS: tuple[tuple[str, Callable[[UserConversation, int], str | None]], ...] = (
    ("contradicts", _contradicts),
    ("invents", _invents),
    ("leaks", _leaks),
    ("breaks_character", _breaks_character),
    ("omits_actions", omitted_action),
    ("pretends", _pretends),
    ("stops_early", _stops_early),
    ("loops", _loops),
    ("empty", _empty),
)
