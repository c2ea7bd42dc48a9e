"""A user played by a small model of our own, in process: an LLM-simulated user that needs no endpoint.

The model is trained as the agent is, from the user's chair (recipes/user_model.py): its system prompt is the scenario,
what the agent says comes as role user, and what it samples is what the user says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muarl.chat import Message, visible_to_user
from muarl.chat_formats.base import ChatFormat
from muarl.domains.base import Task
from muarl.episode import Usage
from muarl.errors import InfrastructureError
from muarl.inference.base import Sampler, SamplingParams
from muarl.seeds import derive_seed
from muarl.users.base import User, UserTurn


def from_the_users_chair(messages: Sequence[Message]) -> list[Message]:
    """What a user sees and says, with the roles changed: the user's words become role assistant, the agent's user."""
    swapped = {"user": "assistant", "assistant": "user"}
    return [Message(swapped[m.role], m.content) for m in visible_to_user(messages) if m.role in swapped]  # type: ignore[arg-type]


class SampledUser:
    """One episode of a user model. Every message has a seed of its own, which follows from the user's seed."""

    def __init__(self, owner: SampledUserFactory, task: Task, seed: int, session: str) -> None:
        self._owner, self._scenario, self._seed, self._session = owner, task.scenario, seed, session
        self._ids: list[int] = []
        self._tries = 0
        self._heard = self._turns = self._given = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Append what the agent said since the last time, and sample what the user says to it. A conversation that has
        outgrown the model's context, or that the model has nothing to say to, is given up with ###STOP###.

        InfrastructureError (boundary "user") if the engine fails.
        """
        owner, chat = self._owner, self._owner.chat
        new = [m for m in from_the_users_chair(conversation[self._heard :]) if m.role == "user"]
        self._heard, self._given = len(conversation), 0
        given = chat.extend(self._ids, new) if self._ids else chat.prompt(self._scenario, (), new)
        room = owner.context - len(self._ids) - len(given)
        if room < 1:
            return UserTurn(Message("user", "###STOP###"))
        self._ids += given
        self._given = len(self._ids)
        turn = await self._sample(room, derive_seed(self._seed, self._turns))
        self._turns += 1
        return turn

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """Another sample in place of the last one; the model does not hear of its ``faults``."""
        if not self._given:
            return UserTurn(rejected)
        del self._ids[self._given :]
        self._tries += 1
        seed = derive_seed(self._seed, self._turns - 1, "again", self._tries)
        return await self._sample(self._owner.context - self._given, seed)

    async def _sample(self, room: int, seed: int) -> UserTurn:
        owner, chat = self._owner, self._owner.chat
        params = SamplingParams(
            max_tokens=min(owner.turn_tokens, room),
            temperature=owner.temperature,
            stop_ids=chat.stop_ids,
            seed=seed,
        )
        try:
            sampled = await owner.sampler.sample(tuple(self._ids), params, session=self._session)
        except InfrastructureError as failure:  # engines speak of an agent: they do not know whom they play
            raise InfrastructureError(str(failure), boundary="user", retryable=failure.retryable) from failure
        usage = Usage(prompt_tokens=len(self._ids), completion_tokens=len(sampled.ids), requests=1)
        self._ids += sampled.ids
        said = chat.parse(sampled.ids)
        if not (said.content or "").strip():
            said = replace(said, content="###STOP###")
        return UserTurn(replace(said, role="user", tool_calls=()), usage)

    def close(self) -> None:
        """Let the sampler free the conversation's cache."""
        self._owner.sampler.close_session(self._session)


class SampledUserFactory:
    """Makes users of one model. ``turn_tokens``: cap on one message; ``context``: cap on a whole conversation."""

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
    ) -> None:
        self.sampler, self.chat, self.temperature = sampler, chat, temperature
        self.turn_tokens, self.context, self.seed, self.name = turn_tokens, context, seed, name
        self._made = 0

    def __call__(self, task: Task, *, seed: int) -> User:
        self._made += 1
        return SampledUser(self, task, derive_seed(seed, self.seed), f"user {self._made}")
