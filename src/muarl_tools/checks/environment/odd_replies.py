"""What experts do after replies that none of muarl's users gives: they must not write, and must not break off.

A user plays its part until the moment that is looked at (it is asked something, or would agree to a proposal) and then
says the odd reply instead. What counts is what the expert does before the user speaks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from muarl.domains.checking import CheckReport, NotChecked, Problem, of_task
from muarl.domains.tasks import Task
from muarl.language.consent import is_affirmative
from muarl.types.chat import STOP_WORDS, Message, is_stop
from muarl.types.episode import Episode
from muarl.users.base import User, UserFactory, UserTurn
from muarl_tools.checks.environment.samples import CheckContext

Moment = Literal["proposal", "question"]
Answers = Mapping[str, Sequence[str]]
"""What users have answered, by the agent's question."""
Say = Callable[[str, Sequence[str], Answers], str | None]
"""(own answer, the questions so far, answers of others): the odd reply, None where there is none."""

TASKS = 30
"""Tasks that every reply is tried in."""


@dataclass(frozen=True, slots=True)
class OddReply:
    """An odd reply. ``moment``: when it is given. ``say``: its text. ``agrees``: whether a write may follow."""

    name: str
    moment: Moment
    say: Say
    agrees: bool = False


def _always(text: str) -> Say:
    return lambda own, asked, answers: text


def _corrected(own: str, asked: Sequence[str], answers: Answers) -> str | None:
    """A detail as another user has it, to the last question that another user was asked, too."""
    return next((f"Actually, {text}" for q in reversed(asked) for text in answers.get(q, ()) if text != own), None)


def _two_values(own: str, asked: Sequence[str], answers: Answers) -> str | None:
    others = (text for text in answers.get(asked[-1], ()) if text != own)
    return next((f"{own} Or rather: {text}" for text in others), None)


REPLIES = (
    OddReply("Never mind, leave it.", "proposal", _always("Never mind, leave it.")),
    OddReply("a yes taken back", "proposal", _always("Yes, go ahead. No, wait! Stop, I am not sure.")),
    OddReply("Yes, how much will that cost me?", "proposal", _always("Yes, how much will that cost me?")),
    OddReply("Go ahead and explain first.", "proposal", _always("Go ahead and explain what that means first.")),
    OddReply("Yes, if it is free.", "proposal", _always("Yes, if it is free of charge for me.")),
    OddReply("Okay, as long as ...", "proposal", _always("Okay, as long as nothing else changes.")),
    OddReply("Yes, just a part of it.", "proposal", _always("Yes, but just the first half of it.")),
    OddReply("a corrected detail", "proposal", _corrected),
    OddReply("an answer with two values", "question", _two_values),
    OddReply("...", "proposal", _always("...")),
    OddReply("What?", "proposal", _always("What?")),
    OddReply("NO, LEAVE IT AS IT IS.", "proposal", _always("NO, LEAVE IT AS IT IS.")),
    OddReply("YES, GO AHEAD.", "proposal", _always("YES, GO AHEAD."), agrees=True),
    OddReply("I want to speak to a human.", "proposal", _always("I want to speak to a human.")),
)
"""What users say that none of muarl's rule-based users does."""


def odd_replies(context: CheckContext) -> CheckReport:
    """After a refusal, a question, a condition, silence or a correction the expert does not write, and nothing breaks
    it."""
    played = context.expert_episodes()
    tasks, answers = [task for task, _ in played[:TASKS]], _answers([episode for _, episode in played])
    # Where the policy asks for no yes, only what a yes would have led to counts as a write.
    free = not context.environment.audit_rules(context.domain).consent
    after_yes = {task.id: episode for task, episode in played} if free else {}
    found: list[Problem] = []
    given = 0
    for reply in REPLIES:
        users = _OddUsers(context.plays.users(), reply, answers)
        for task, episode in context.plays.play(context.plays.expert(), tasks, users):
            if task.id not in users.said:
                continue
            given += 1
            if episode.error:
                found.append(Problem(f"after {reply.name!r} the expert breaks off: {episode.error}", of_task(task)))
            elif not reply.agrees and _writes_after(context, episode, users.said[task.id], after_yes.get(task.id)):
                remedy = "Let it write only after a yes to its last proposal"
                found.append(Problem(f"the expert writes after {reply.name!r}", of_task(task), remedy))
    if not given:
        raise NotChecked("its user never agrees to a proposal, and is never asked")
    return CheckReport(f"{len(REPLIES)} replies, given {given} times", tuple(found))


def _answers(episodes: Sequence[Episode]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for episode in episodes:
        asked = ""
        for message in episode.messages[1:]:
            text = message.content or ""
            if message.role == "assistant" and text:
                asked = text
            elif message.role == "user" and text and "?" in asked and not is_affirmative(text) and not is_stop(message):
                found.setdefault(asked, []).append(text)
    return found


@dataclass
class _OddUsers:
    """Makes users that say something odd, once. ``said``: what, by task; it is empty of tasks without the moment."""

    users: UserFactory
    odd: OddReply
    answers: Answers
    said: dict[str, str] = field(default_factory=dict)
    name: str = "odd"

    def __call__(self, task: Task, *, seed: int) -> User:
        return _OddUser(self, task, self.users(task, seed=seed))


class _OddUser:
    """A user until the moment of the reply, which it stops after."""

    def __init__(self, made_by: _OddUsers, task: Task, user: User) -> None:
        self._made_by, self._task, self._user = made_by, task, user

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says, or the odd reply in its place."""
        said = self._made_by.said
        if self._task.id in said:
            return UserTurn(Message("user", STOP_WORDS[0]))
        turn = await self._user.reply(conversation)
        text = self._instead(turn.message, conversation)
        if text is None:
            return turn
        said[self._task.id] = text
        return UserTurn(Message("user", text))

    def _instead(self, own: Message, conversation: Sequence[Message]) -> str | None:
        asked = [m.content or "" for m in conversation[1:] if m.role == "assistant" and "?" in (m.content or "")]
        last = conversation[-1] if conversation else None
        if last is None or last.role != "assistant" or not asked or asked[-1] != last.content or own.tool_calls:
            return None
        moment = "proposal" if is_affirmative(own.content) else "question"
        if moment != self._made_by.odd.moment or is_stop(own):
            return None
        return self._made_by.odd.say(own.content or "", asked, self._made_by.answers)


def _writes_after(context: CheckContext, episode: Episode, said: str, after_yes: Episode | None) -> bool:
    """Whether the expert writes between the odd reply and what the user says next. ``after_yes``: the conversation with
    a yes instead, where only what was proposed counts."""
    messages = episode.messages
    spoken = [n for n, m in enumerate(messages) if m.role == "user" and not m.tool_calls]
    at = next(n for n in reversed(spoken) if messages[n].content == said)
    writes = _writes(context, messages[at + 1 : next((n for n in spoken if n > at), None)])
    if after_yes is None:
        return bool(writes)
    before = next((m.content or "" for m in reversed(messages[:at]) if m.role == "assistant" and m.content), "")
    return any(write in _proposed(context, after_yes, before) for write in writes)


def _writes(context: CheckContext, messages: Sequence[Message]) -> list[tuple[str, dict[str, Any]]]:
    free = context.environment.audit_rules(context.domain).free_writes
    calls = [c for m in messages if m.role == "assistant" for c in m.tool_calls]
    return [(c.name, dict(c.arguments)) for c in calls if c.name in context.writing and c.name not in free]


def _proposed(context: CheckContext, after_yes: Episode, proposal: str) -> list[tuple[str, dict[str, Any]]]:
    """The write that followed the yes to a proposal."""
    messages = after_yes.messages
    at = next((n for n, m in enumerate(messages) if m.role == "assistant" and m.content == proposal), len(messages))
    answer = next((n for n in range(at, len(messages)) if messages[n].role == "user"), len(messages))
    agreed = answer < len(messages) and is_affirmative(messages[answer].content)
    return _writes(context, messages[answer:])[:1] if agreed else []
