"""What people say to a proposal who agree, and who agree and take it back; and users who say just that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from muarl.agents.expert import ExpertAgent
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.language.acts import asks_for_yes
from muarl.language.consent import is_affirmative
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import Message
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import User, UserTurn

AGREED = (
    "Yes, and no rush.",
    "Yes please, go ahead!",
    "Sure, go for it.",
    "Absolutely, do it.",
    "Ok, that works for me.",
    "Sounds good, thanks.",
    "Yes, no problem at all.",
    "Of course. Thank you for asking.",
    "Yep, that's right.",
    "Please do, I can't wait.",
    "Right, go ahead. No need to hurry.",
    "Yeah, why not, proceed.",
    "Perfect, please go ahead.",
    "I confirm. Don't worry about the details.",
    "That is correct, yes.",
    "Yes. Stop by at any time.",
)
"""All of these agree, though some have a "no", a "don't" or a "stop" in them."""

WITHDRAWN = (
    "Yes, go ahead. No, wait! Stop, I am not sure.",
    "Yes. Oh no, wait a moment!",
    "Yes, do it... no, stop!",
    "Sure. Hmm, hold on, let me check something.",
    "Yes please. Actually, don't do it yet.",
    "Okay, go ahead. Sorry, no, not now.",
    "Yes. On second thought, let me think about it.",
    "Yes, that is right. I need to sleep on it, though.",
    "Yes, go ahead. Hmm, give me a minute to think.",
    "Ok, do it. Please don't, I have doubts.",
    "Yes! Stop! I pressed the wrong key.",
    "Absolutely. Hm, I take that back.",
    "Yes, proceed. I have to ask my wife first.",
    "Go ahead. Or no, maybe later.",
    "Yes, but not today, I want to think it over.",
    "Yes, I mean no, I am not sure any more.",
)
"""All of these begin like a yes, and none of them is one in the end."""

HELD_BACK = (
    "Yes, how much will it cost?",
    "Yes, I have a question about that.",
    "Go ahead, tell me more.",
    "Go ahead and explain what that means first.",
    "Sure, and will I get a confirmation?",
    "Yes, can you do it today?",
    "Yes if you also waive the fee",
    "Fine, if it is free.",
    "Okay, as long as nothing else changes.",
    "Yes, but only after you have sent me the terms.",
    "Yes, just the first half of it.",
    "Okay, but leave the rest as it is.",
    "correct, that is my name",
    "Yes, I am listening.",
)
"""All of these begin like a yes, and ask, set a condition, mean a part, or answer something else."""


PATIENCE = 4
"""So many proposals are answered before a user who hears the same again leaves."""


class Answers:
    """Users of an environment that answer proposals which they would agree to with one ``reply``, each time."""

    def __init__(self, environment: Environment, reply: str) -> None:
        self._make, self._reply = AgendaUserFactory(environment.rule_based_user, seed=1), reply
        self.name = "answers"

    def __call__(self, task: Task, *, seed: int) -> User:
        return _Answers(self._make(task, seed=seed), self._reply)


class _Answers(User):
    def __init__(self, inner: User, reply: str) -> None:
        self._inner, self._reply = inner, reply
        self._answered = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        proposed = asks_for_yes(conversation[-1].content)
        if proposed and self._answered and not is_affirmative(self._reply):  # asked again, it says the same again
            return self._say()
        turn = await self._inner.reply(conversation)
        agrees = proposed and not turn.message.tool_calls and is_affirmative(turn.message.content)
        return self._say() if agrees else turn

    def _say(self) -> UserTurn:
        self._answered += 1
        return UserTurn(Message("user", self._reply if self._answered <= PATIENCE else "###STOP###"))


def answered_with(environment: Environment, reply: str, tasks: Sequence[Task]) -> list[Episode]:
    """One scored episode of the clean expert for each task, with a user who answers right proposals with ``reply``."""
    size = environment.sizes[0] if environment.sizes else None
    runner = EpisodeRunner(
        make_world=environment.make_domain(size).world,
        agent=ExpertAgent(make=environment.needed_expert()),
        make_user=Answers(environment, reply),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        rules=environment.rules,
        retries=0,
    )
    episodes = asyncio.run(rollout(requests_for(tasks, 1, seed=0), LocalExecutor(runner.play))).episodes
    assert not any(e.error for e in episodes), [e.error for e in episodes if e.error]
    return episodes


def writes_once_answered(environment: Environment, episode: Episode, reply: str) -> int | None:
    """How many writes the agent tried once a proposal had been answered with ``reply``; None if none was."""
    kind_of = environment.make_domain(environment.sizes[0] if environment.sizes else None).kind_of
    answered = next((i for i, m in enumerate(episode.messages) if m.role == "user" and m.content == reply), None)
    if answered is None:
        return None
    later = [c for m in episode.messages[answered:] if m.role == "assistant" for c in m.tool_calls]
    return sum(kind_of(call.name) == "write" for call in later)
