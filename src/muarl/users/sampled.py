"""A user played by a small model of our own, in process: an LLM-simulated user that needs no endpoint.

The model is trained as the agent is, from the user's chair (recipes/user_model.py): its system prompt is the scenario,
what the agent says comes as role user, and what it samples is what the user says. Where a check finds a message untrue
to the scenario, it is sampled again, a bounded number of times.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from muarl.basics.errors import InfrastructureError
from muarl.basics.seeds import derive_seed
from muarl.chat_formats.base import ChatFormat
from muarl.domains.tasks import Task
from muarl.inference.base import Completion, Sampler, SamplingParams
from muarl.types.chat import Message, visible_to_user
from muarl.types.episode import USER_TOKENS, TokenTrace, Usage
from muarl.users.base import User, UserTurn


def from_the_users_chair(messages: Sequence[Message]) -> list[Message]:
    """What a user sees and says, with the roles changed: the user's words become role assistant, the agent's user."""
    swapped = {"user": "assistant", "assistant": "user"}
    return [Message(swapped[m.role], m.content) for m in visible_to_user(messages) if m.role in swapped]  # type: ignore[arg-type]


class MessageCheck(Protocol):
    """Looks at one conversation of a user's, message by message (users/goal_check.py)."""

    def hears(self, text: str) -> None:
        """Take note of what the agent said."""
        ...

    def problem(self, text: str) -> str | None:
        """What is wrong with what the user is about to say; None if nothing is."""
        ...

    def said(self, text: str) -> None:
        """Take note of what the user said."""
        ...


MakeCheck = Callable[[Task], MessageCheck | None]
"""The check of a task's user; None where there is none."""


@dataclass(slots=True)
class CheckCounts:
    """Messages that a check has seen, samples that it refused, and messages that were still refused at the last try and
    said all the same."""

    messages: int = 0
    refused: int = 0
    unmended: int = 0


class SampledUser:
    """One episode of a user model. Every message has a seed of its own, which follows from the user's seed.

    Its tokens are kept as an agent's are: what it was given and what it said, id for id, with the sampler's
    log-probabilities (of tries that were thrown away nothing)."""

    def __init__(self, owner: SampledUserFactory, task: Task, seed: int, session: str) -> None:
        self._owner, self._scenario, self._seed, self._session = owner, task.scenario, seed, session
        self._check = None if owner.make_check is None or owner.tries == 1 else owner.make_check(task)
        self._said: str | None = None  # last, and the check has not taken note of it
        self._trace = TokenTrace()
        self._spans: list[tuple[int, int] | None] = []  # of each message
        self._tries = 0
        self._heard = self._turns = self._given = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> SampledUser:
        new = copy.copy(self)
        new._session = self._owner.new_session()
        new._trace, new._spans = self._trace.copy(), [*self._spans]
        new._check = copy.deepcopy(self._check, memo)
        return new

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Append what the agent said since the last time, and sample what the user says to it. A conversation that has
        outgrown the model's context, or that the model has nothing to say to, is given up with ###STOP###.

        InfrastructureError (boundary "user") if the engine fails.
        """
        owner, chat = self._owner, self._owner.chat
        new = [m for m in from_the_users_chair(conversation[self._heard :]) if m.role == "user"]
        self._heard, self._given = len(conversation), 0
        trace = self._trace
        added = chat.extend(trace.ids, new) if trace.ids else chat.prompt(self._scenario, (), new)
        room = owner.context - len(trace) - len(added)
        if room < 1:
            self._spans.append(None)
            return UserTurn(Message("user", "###STOP###"))
        trace.append_given(added)
        if self._check is not None:
            if self._said is not None:  # it stands: nobody has asked for another
                self._check.said(self._said)
            for message in new:
                self._check.hears(message.content or "")
        self._given = len(trace)
        turn = await self._say(room, (self._turns,))
        self._turns += 1
        return turn

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """Another message in place of the last one; the model does not hear of its ``faults``."""
        if not self._given:
            return UserTurn(rejected)
        self._trace.cut(self._given)
        self._spans.pop()
        self._tries += 1
        return await self._say(self._owner.context - self._given, (self._turns - 1, "again", self._tries))

    async def _say(self, room: int, number: tuple[int | str, ...]) -> UserTurn:
        """Sample a message that has ``room`` tokens, again as long as the check refuses it and tries are left; those
        that were thrown away are ``retries`` of the usage, and paid for. ``number``: enters its seed."""
        counts, usage, problem = self._owner.counts, Usage(), None
        for attempt in range(1 if self._check is None else self._owner.tries):
            sampled = await self._sample(min(self._owner.turn_tokens, room), attempt, number)
            usage += Usage(len(self._trace), len(sampled.ids), requests=1, retries=int(attempt > 0))
            said = self._owner.chat.parse(sampled.ids)
            if not (said.content or "").strip():
                said = replace(said, content="###STOP###")
            problem = None if self._check is None else self._check.problem(said.content or "")
            if problem is None:
                break
            counts.refused += 1
        if self._check is not None:
            counts.messages += 1
            counts.unmended += problem is not None
            self._said = said.content or ""
        self._spans.append(self._trace.append_sampled(sampled.ids, sampled.logprobs, sampled.version))
        return UserTurn(replace(said, role="user", tool_calls=()), usage)

    async def _sample(self, most: int, attempt: int, number: tuple[int | str, ...]) -> Completion:
        owner = self._owner
        params = SamplingParams(
            max_tokens=most,
            temperature=owner.temperature + attempt / owner.tries,
            stop_ids=owner.chat.stop_ids,
            seed=derive_seed(self._seed, *number, *([attempt] if attempt else [])),
        )
        try:
            return await owner.sampler.sample(tuple(self._trace.ids), params, session=self._session)
        except InfrastructureError as failure:  # engines speak of an agent: they do not know whom they play
            raise InfrastructureError(str(failure), boundary="user", retryable=failure.retryable) from failure

    def episode_tags(self) -> Mapping[str, Any]:
        """The exact tokens of the episode, where the factory keeps them."""
        if not self._owner.keeps_tokens:
            return {}
        return {USER_TOKENS: {"trace": self._trace.to_json(), "spans": [*map(_listed, self._spans)]}}

    def close(self) -> None:
        """Let the sampler free the conversation's cache."""
        self._owner.sampler.close_session(self._session)


def _listed(span: tuple[int, int] | None) -> list[int] | None:
    return None if span is None else [*span]


class SampledUserFactory:
    """Makes users of one model. ``turn_tokens``: cap on one message; ``context``: cap on a whole conversation.

    ``tries``: how often a message is sampled at most, until the check of ``make_check`` finds nothing wrong with it;
    the last one is said in any case. The temperature rises from try to try, by 1 in all: what is due may be something
    that the model hardly ever says, and at temperature 0 all tries would be the same. ``counts``: what checks did so
    far. ``keeps_tokens``: episodes get the users' tokens (the tag ``USER_TOKENS``), by which the model can be trained.
    """

    def __init__(
        self,
        sampler: Sampler,
        chat: ChatFormat,
        *,
        temperature: float = 1.0,
        turn_tokens: int = 96,
        context: int = 1024,
        seed: int = 0,
        name: str = "user model",
        tries: int = 1,
        make_check: MakeCheck | None = None,
        keeps_tokens: bool = False,
    ) -> None:
        self.sampler, self.chat, self.temperature = sampler, chat, temperature
        self.turn_tokens, self.context, self.seed, self.name = turn_tokens, context, seed, name
        self.tries, self.make_check, self.counts = tries, make_check, CheckCounts()
        self.keeps_tokens = keeps_tokens
        self._numbers = itertools.count(1)

    def __call__(self, task: Task, *, seed: int) -> User:
        return SampledUser(self, task, derive_seed(seed, self.seed), self.new_session())

    def new_session(self) -> str:
        """A name for the sampler that no other live user has."""
        return f"user {next(self._numbers)}"

    def checked(self, make_check: MakeCheck | None) -> SampledUserFactory:
        """The same users of the same model with another check."""
        other = copy.copy(self)
        other.make_check = make_check
        return other
