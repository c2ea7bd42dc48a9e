"""Difficult behaviours around any agenda user: silence, rage, chatter. What the user wants stays as it is."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from muarl.language.acts import asks_for_yes
from muarl.types.chat import STOP_WORDS, Message
from muarl.users.base import User, UserTurn

INSULTS: Sequence[str] = (
    "WHAT A JOKE OF A COMPANY!",
    "YOU PEOPLE ARE A DISGRACE!",
    "ARE YOU EVEN LISTENING, YOU CLOWN?!",
    "I HAVE BEEN WAITING FOR TWO HOURS!!!",
    "MY GRANDMOTHER IS FASTER AT THIS, AND SHE IS DEAD!",
    "This is the worst service that I have seen in my whole life.",
    "Who trained you, a potato?",
    "UNBELIEVABLE. SIMPLY UNBELIEVABLE.",
    "Idiots, all of you.",
    "I HATE EVERY MINUTE OF THIS!!",
    "You are as helpful as a brick.",
    "GET ON WITH IT!!!",
)

CHATTER: Sequence[str] = (
    "By the way, do you know a joke about penguins?",
    "My son has to write about the French Revolution by tomorrow. When did that begin?",
    "What is the capital of Mongolia? We have a bet here.",
    "Can you give me a recipe for pancakes?",
    "Do you believe in ghosts? I think there are some in our cellar.",
    "Which football team do you support?",
    "Write me a short poem about the sea, will you?",
    "What is seventeen times twenty-three? It is for homework.",
    "Is it raining where you are? Here it pours.",
    "Are you a robot? Be honest!",
    "Who do you think wins the election?",
    "My cat has just jumped on the keyboard. Do you like cats?",
    "How do you say good night in Finnish?",
    "Should I paint the kitchen yellow? What do you think?",
)

BACK: Sequence[str] = ("Anyway.", "Right, where were we.", "Well, back to business.", "Ha. So.")
"""Before an answer that was put off."""

SILENCES: Sequence[str] = ("...", "…", "hm", "?", "-", ".", "mh", "uh", "*silence*", "(no reply for four minutes)", "​")
"""What a silent user writes instead of an answer. The last is empty to the eye (a zero-width space): a message with
nothing in it counts as a failure of the simulator, and never reaches the agent."""

REPEAT: Sequence[str] = ("What?", "Again?", "Huh?", "Say again?")
"""What is said where a proposal was not made again."""

LEAVES: Sequence[str] = ("###STOP###", "bye ###STOP###", "... ###STOP###")

Hear = Callable[[str], set[str]]
"""The acts in an agent's message, by the domain's own way of hearing."""


def _text(conversation: Sequence[Message]) -> str:
    return (conversation[-1].content or "") if conversation else ""


class AlteredUser:
    """A user (``user``) whose words are changed on their way out by ``_alter``. Tool calls pass as they are."""

    def __init__(self, user: User, hear: Hear, rng: random.Random) -> None:
        self._user, self._hear, self._rng = user, hear, rng
        self._started = False

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says, in its own style."""
        return await self._said(conversation)

    async def _said(self, conversation: Sequence[Message]) -> UserTurn:
        turn = await self._user.reply(conversation)
        opening, self._started = not self._started, True
        if turn.message.tool_calls:
            return turn
        return UserTurn(Message("user", self._alter(turn.message.content or "", opening)), turn.usage)

    def _alter(self, text: str, opening: bool) -> str:
        raise NotImplementedError


def _before_stop(text: str, more: str) -> str:
    """A text with something added to its end, but before a stop word."""
    word = next((w for w in STOP_WORDS if w in text), None)
    if word is None:
        return f"{text} {more}"
    return f"{text.replace(word, '').strip()} {more} {word}".strip()


class Angry(AlteredUser):
    """Insults before the first words, and behind most others."""

    def _alter(self, text: str, opening: bool) -> str:
        if opening:
            text = f"{self._rng.choice(INSULTS)} {text}"
        if self._rng.random() < 0.8:
            text = _before_stop(text, self._rng.choice(INSULTS))
        return text


class WanderingUser(AlteredUser):
    """Says something else instead of an answer now and then, and answers later. What an agent asked is answered once it
    has spoken again; a proposal only once it has been made again."""

    often: ClassVar[float]
    """How likely that is at a message."""
    longest: ClassVar[int]
    """How many times in a row."""
    most: ClassVar[int]
    """How many times in a conversation."""

    def __init__(self, user: User, hear: Hear, rng: random.Random, *, deeds: Callable[[str], bool]) -> None:
        """``deeds``: whether a message asks for something to be done, such as on a phone, which is done at once."""
        super().__init__(user, hear, rng)
        self._deeds = deeds
        self._held: Message | None = None
        self._row = self._all = self._asked_again = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """An aside, or what the user says to what it was last asked."""
        last = conversation[-1] if conversation else None
        if not self._started or last is None or last.role != "assistant":
            return await self._said(conversation)
        text = last.content or ""
        if "transferred" in self._hear(text):
            return await self._said(conversation)
        held = self._held
        asks = last if held is None else self._asked(held, last)
        if self._wanders(asks or last):
            self._held, self._row, self._all = asks or held, self._row + 1, self._all + 1
            return UserTurn(Message("user", self._aside(text)))
        if asks is None and self._asked_again < 2:  # it wants to hear the proposal again
            self._asked_again += 1
            return UserTurn(Message("user", self._rng.choice(REPEAT)))
        self._held, self._row, self._asked_again = None, 0, 0
        turn = await self._said([*conversation[:-1], asks or last])
        if held is None or turn.message.tool_calls:
            return turn
        return UserTurn(Message("user", self._return(turn.message.content or "")), turn.usage)

    def _wanders(self, asks: Message) -> bool:
        if self._row >= self.longest or self._all >= self.most or self._deeds(asks.content or ""):
            return False
        return self._rng.random() < self.often

    def _asked(self, held: Message, last: Message) -> Message | None:
        """The message that is to be answered, after something else was said to ``held`` and the agent said ``last``;
        None if ``held`` was a proposal that has not been made again."""
        said = last.content or ""
        if asks_for_yes(said) or self._deeds(said):
            return last
        if asks_for_yes(held.content):
            return None
        return last if any(act.startswith("ask_") for act in self._hear(said) - {"ask_help"}) else held

    def _aside(self, text: str) -> str:
        raise NotImplementedError

    def _return(self, text: str) -> str:
        """An answer that was put off."""
        return text


class OffTopic(WanderingUser):
    """Chatter behind answers, and now and then instead of them."""

    often, longest, most = 0.3, 1, 4

    def _alter(self, text: str, opening: bool) -> str:
        if any(word in text for word in STOP_WORDS) or self._rng.random() < 0.4:
            return text
        return f"{text} {self._rng.choice(CHATTER)}"

    def _aside(self, text: str) -> str:
        return self._rng.choice(CHATTER)

    def _return(self, text: str) -> str:
        begins = text.lower().startswith(("yes", "no", "never", "actually", "wait", "sorry"))
        return text if begins else f"{self._rng.choice(BACK)} {text}"


_WORDY = (
    (r"^(?:It is|I mean|Use my|With my|Make it|My (?:user id|number) is|The number is) ", ""),
    (r"^My name is (.+?) and my zip code is ", r"\1, "),
    (r" please\.$", "."),
    (r"^Yes, (?:please|go ahead|that is right)\.$", "Yes."),
)


class Silent(WanderingUser):
    """Dots and grunts instead of answers, and answers of a word or two. ``leaves``: no proposal is ever answered."""

    often, longest, most = 0.45, 2, 7

    def __init__(
        self, user: User, hear: Hear, rng: random.Random, *, deeds: Callable[[str], bool], leaves: bool = False
    ) -> None:
        super().__init__(user, hear, rng, deeds=deeds)
        self._leaves, self._patience = leaves, rng.randint(2, 3)
        self._gone = False

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Little, or nothing."""
        text = _text(conversation)
        heard = conversation and conversation[-1].role == "assistant" and self._started
        if self._leaves and heard and (self._gone or asks_for_yes(text)):
            self._gone = True
            self._patience -= 1
            if "transferred" in self._hear(text):
                return UserTurn(Message("user", "###TRANSFER###"))
            return UserTurn(Message("user", self._rng.choice(LEAVES if self._patience < 0 else SILENCES)))
        return await super().reply(conversation)

    def _alter(self, text: str, opening: bool) -> str:
        for pattern, instead in () if opening else _WORDY:
            text = re.sub(pattern, instead, text)
        return text

    def _aside(self, text: str) -> str:
        return self._rng.choice(SILENCES)
